/* Filter 32015: Zstandard frames (RFC 8878). values[0] is the level. */
#include "base/error.h"
#include "filter/filters.h"

#include <zstd.h>
#include <zstd_errors.h>

/* Returns the number of decoded bytes, or a negative errno. */
static int64_t expand(const uint8_t *data, size_t n, uint8_t *out, size_t size)
{
	size_t got = ZSTD_decompress(out, size, data, n);

	if (!ZSTD_isError(got))
		return (int64_t)got;
	if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
		return h5_fail(-ENOMEM, H5_UNDEF, "zstd: out of memory");
	if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall)
		return h5_filter_too_long("zstd", size);
	return h5_fail(-EUCLEAN, H5_UNDEF, "zstd: %s", ZSTD_getErrorName(got));
}

int h5_zstd_block(const uint8_t *data, size_t n, uint8_t *out, size_t size)
{
	int64_t got = expand(data, n, out, size);

	if (got < 0 && got != -EOVERFLOW)
		return (int)got;
	if (got < 0 || (uint64_t)got != size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "zstd: a block does not hold %zu bytes", size);
	return 0;
}

/* The decoded size that a single frame states; else `limit`. */
static size_t room_for(const uint8_t *data, size_t n, size_t limit)
{
	unsigned long long said = ZSTD_getFrameContentSize(data, n);

	if (said == ZSTD_CONTENTSIZE_UNKNOWN || said == ZSTD_CONTENTSIZE_ERROR || said >= limit ||
	    ZSTD_findFrameCompressedSize(data, n) != n)
		return limit;
	return (size_t)said;
}

int h5_zstd_unpack(const uint8_t *data, size_t n, struct h5_filter_buf *out, size_t limit)
{
	size_t room = room_for(data, n, limit);
	int64_t got;
	int rc = h5_filter_buf_reserve(out, room);

	if (rc)
		return rc;
	got = expand(data, n, out->data, room);
	if (got == -EOVERFLOW && room < limit)
		return h5_fail(-EUCLEAN, H5_UNDEF, "zstd: a frame has more bytes than it says");
	out->size = got < 0 ? 0 : (size_t)got;
	return got < 0 ? (int)got : 0;
}

int h5_zstd_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		   struct h5_filter_buf *out, size_t limit)
{
	(void)values; /* the level, of no meaning here */
	(void)count;
	return h5_zstd_unpack(in->data, in->size, out, limit);
}

int h5_zstd_pack(const uint8_t *data, size_t n, int level, struct h5_filter_buf *out)
{
	size_t stored;
	int rc = h5_filter_buf_grow(out, ZSTD_compressBound(n));

	if (rc)
		return rc;
	stored = ZSTD_compress(out->data + out->size, out->capacity - out->size, data, n, level);
	if (ZSTD_isError(stored))
		return h5_fail(-ENOMEM, H5_UNDEF, "zstd: %s", ZSTD_getErrorName(stored));
	out->size += stored;
	return 0;
}

int h5_zstd_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		   struct h5_filter_buf *out)
{
	return h5_zstd_pack(data, size, count ? (int)values[0] : 0, out);
}

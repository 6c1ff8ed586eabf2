/* Filter 32004: LZ4 blocks, each on its own. All numbers are big endian.
 *
 *   0   8  bytes that come out
 *   8   4  bytes that come out of each block; the last one may give less
 *   12     for each block:
 *            0  4  bytes stored; as many as come out: they are not compressed
 *            4     those                                                      */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "filter/filters.h"

#include <lz4.h>
#include <string.h>

int h5_lz4_block(const uint8_t *data, size_t n, uint8_t *out, size_t size)
{
	int got = -1;

	if (n <= INT32_MAX && size <= INT32_MAX)
		got = LZ4_decompress_safe((const char *)data, (char *)out, (int)n, (int)size);
	if (got < 0 || (size_t)got != size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "lz4: bad block, of %zu bytes in %zu", size, n);
	return 0;
}

static int expand(struct h5_reader *r, struct h5_filter_buf *out, size_t size, size_t block_size)
{
	while (out->size < size) {
		size_t room = (size_t)h5_min(block_size, size - out->size);
		size_t stored = __builtin_bswap32(h5_read_u32(r));
		const uint8_t *data = h5_read_bytes(r, stored);
		int rc = h5_reader_check(r, "lz4 block");

		if (rc)
			return rc;
		if (stored == room)
			memcpy(out->data + out->size, data, room);
		else
			rc = h5_lz4_block(data, stored, out->data + out->size, room);
		if (rc)
			return rc;
		out->size += room;
	}
	return 0;
}

int h5_lz4_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	struct h5_reader r = h5_reader_init(buf->data, buf->size, H5_UNDEF, 8, 8);
	uint64_t size = __builtin_bswap64(h5_read_u64(&r));
	uint32_t block_size = __builtin_bswap32(h5_read_u32(&r));
	struct h5_filter_buf out = {0};
	int rc = h5_reader_check(&r, "lz4 header");

	(void)values; /* the block size */
	(void)count;
	if (rc)
		return rc;
	if (size > limit || (!block_size && size))
		return h5_fail(-EUCLEAN, H5_UNDEF, "lz4: %llu bytes in blocks of %u instead of at most %zu",
			       (unsigned long long)size, block_size, limit);
	rc = h5_filter_buf_reserve(&out, (size_t)size);
	if (!rc)
		rc = expand(&r, &out, (size_t)size, block_size);
	return h5_filter_buf_replace(buf, &out, rc);
}

/* Filter 307: a bzip2 stream. values[0] is the block size, in units of 100,000 bytes. */
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"

#include <bzlib.h>

static int expand(struct h5_filter_buf *in, struct h5_filter_buf *out, size_t limit)
{
	unsigned size = (unsigned)limit;

	switch (BZ2_bzBuffToBuffDecompress((char *)out->data, &size, (char *)in->data, (unsigned)in->size, 0,
					   0)) {
	case BZ_OK:
		out->size = size;
		return 0;
	case BZ_MEM_ERROR:
		return h5_fail(-ENOMEM, H5_UNDEF, "bzip2: out of memory");
	case BZ_OUTBUFF_FULL:
		return h5_filter_too_long("bzip2", limit);
	case BZ_UNEXPECTED_EOF:
		return h5_fail(-EUCLEAN, H5_UNDEF, "bzip2: the stream is truncated");
	default:
		return h5_fail(-EUCLEAN, H5_UNDEF, "bzip2: bad stream");
	}
}

int h5_bzip2_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		    struct h5_filter_buf *out, size_t limit)
{
	int rc;

	(void)values; /* the block size, which is in the stream, too */
	(void)count;
	if (in->size > UINT32_MAX || limit > UINT32_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "bzip2: %zu bytes in one chunk", in->size);
	rc = h5_filter_buf_reserve(out, limit);
	if (!rc)
		rc = expand(in, out, limit);
	return rc;
}

int h5_bzip2_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		    struct h5_filter_buf *out)
{
	/* Enough, according to its manual. */
	uint64_t room = (uint64_t)size + size / 100 + 600;
	unsigned stored = (unsigned)room;
	uint32_t block = count ? values[0] : 9;
	int rc;

	if (block < 1 || block > 9 || room > UINT32_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "bzip2: %zu bytes with block size %u", size, block);
	rc = h5_filter_buf_reserve(out, (size_t)room);
	if (rc)
		return rc;
	if (BZ2_bzBuffToBuffCompress((char *)out->data, &stored, (char *)(uintptr_t)data, (unsigned)size,
				     (int)block, 0, 0) != BZ_OK)
		return h5_fail(-ENOMEM, H5_UNDEF, "bzip2: out of memory");
	out->size = stored;
	return 0;
}

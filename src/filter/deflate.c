/* Filter 1: a zlib stream (RFC 1950). values[0] is the level. Two libraries know how: deflate_libdeflate.c,
 * and deflate_zlib.c where configure did not find the faster one. */
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"

enum {
	EXPANSION_MAX = 1032, /* bytes out of one byte in: a match of 258 costs two bits */
	LEVEL_MAX = 9,
};

int h5_deflate_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		      struct h5_filter_buf *out, size_t limit)
{
	size_t room;
	int rc;

	(void)values; /* the level, of no meaning here */
	(void)count;
	if (in->size > UINT32_MAX || limit > UINT32_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "deflate: %zu bytes in one chunk", in->size);
	room = (size_t)h5_min(limit, EXPANSION_MAX * ((uint64_t)in->size + 1));
	rc = h5_filter_buf_reserve(out, room);
	return rc ? rc : h5_zlib_unpack(in, out, room);
}

int h5_deflate_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		      struct h5_filter_buf *out)
{
	if (count < 1 || values[0] > LEVEL_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "deflate: no level, or none of 0 to 9");
	return h5_zlib_pack((int)values[0], data, size, out);
}

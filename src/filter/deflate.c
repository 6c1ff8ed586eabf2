/* Filter 1: a zlib stream (RFC 1950). values[0] is the level. libdeflate is faster than zlib, and used if
 * configure has found it. */
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"

enum {
	EXPANSION_MAX = 1032, /* bytes decoded from one byte: a match of 258 takes two bits */
	LEVEL_MAX = 9,
	SMALL = 64, /* bytes; libdeflate does not compress less than that */
};

#ifdef HAVE_LIBDEFLATE
#define unpack h5_libdeflate_unpack

static int pack(int level, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	return (size < SMALL ? h5_zlib_pack : h5_libdeflate_pack)(level, data, size, out);
}
#else
#define unpack h5_zlib_unpack
#define pack   h5_zlib_pack
#endif

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
	return rc ? rc : unpack(in, out, room);
}

int h5_deflate_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		      struct h5_filter_buf *out)
{
	if (count < 1 || values[0] > LEVEL_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "deflate: no level, or none of 0 to 9");
	return pack((int)values[0], data, size, out);
}

/* It accepts all that zlib accepts, and also streams that define, but do not use, codes for lengths and
 * distances that do not exist. It checks the checksum as well. */
#include "base/error.h"
#include "filter/filters.h"

#include <assert.h>
#include <libdeflate.h>

int h5_libdeflate_unpack(const struct h5_filter_buf *in, struct h5_filter_buf *out, size_t room)
{
	/* Made for each call: it is small, and costs less than a lock. */
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	enum libdeflate_result result;

	assert(room <= out->capacity);
	if (!d)
		return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
	result = libdeflate_zlib_decompress(d, in->data, in->size, out->data, room, &out->size);
	libdeflate_free_decompressor(d);
	if (result == LIBDEFLATE_SUCCESS)
		return 0;
	if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
		return h5_filter_too_long("deflate", room);
	return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: a bad stream, or a truncated one");
}

int h5_libdeflate_pack(int level, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
	int rc;

	if (!c)
		return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
	rc = h5_filter_buf_reserve(out, libdeflate_zlib_compress_bound(c, size));
	if (!rc) {
		out->size = libdeflate_zlib_compress(c, data, size, out->data, out->capacity);
		/* There is enough room, so this does not happen. */
		if (!out->size)
			rc = h5_fail(-EIO, H5_UNDEF, "deflate: cannot compress");
	}
	libdeflate_free_compressor(c);
	return rc;
}

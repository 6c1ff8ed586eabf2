/* Filter 1: a zlib stream (RFC 1950). values[0] is the level. */
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"

#include <zlib.h>

enum { EXPANSION_MAX = 1032 }; /* bytes out of one byte in: a match of 258 costs two bits */

static int inflate_into(z_stream *z, struct h5_filter_buf *out, size_t limit)
{
	int status;

	z->next_out = out->data;
	z->avail_out = (uInt)out->capacity;
	status = inflate(z, Z_FINISH);
	out->size = out->capacity - z->avail_out;
	if (status == Z_MEM_ERROR)
		return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
	if (out->size > limit)
		return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: more than %zu bytes come out", limit);
	if (status == Z_BUF_ERROR)
		return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: the stream is truncated");
	if (status != Z_STREAM_END)
		return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: %s", z->msg ? z->msg : "bad stream");
	return 0;
}

int h5_deflate_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	struct h5_filter_buf out = {0};
	z_stream z = {.next_in = buf->data, .avail_in = (uInt)buf->size};
	uint64_t most;
	int rc;

	(void)values; /* the level, of no meaning here */
	(void)count;
	if (buf->size > UINT32_MAX || limit >= UINT32_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "deflate: %zu bytes in one chunk", buf->size);
	/* One byte more than may come out shows that more would. */
	most = h5_min((uint64_t)limit + 1, EXPANSION_MAX * ((uint64_t)buf->size + 1));
	rc = h5_filter_buf_reserve(&out, (size_t)most);
	if (rc)
		return rc;
	if (inflateInit(&z) != Z_OK) {
		h5_filter_buf_release(&out);
		return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
	}
	rc = inflate_into(&z, &out, limit);
	inflateEnd(&z);
	if (rc) {
		h5_filter_buf_release(&out);
		return rc;
	}
	h5_filter_buf_release(buf);
	*buf = out;
	return 0;
}

int h5_deflate_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		      struct h5_filter_buf *out)
{
	uLongf stored = compressBound(size);
	int rc;

	if (count < 1 || values[0] > Z_BEST_COMPRESSION)
		return h5_fail(-ENOTSUP, H5_UNDEF, "deflate: no level, or none of 0 to 9");
	rc = h5_filter_buf_reserve(out, stored);
	if (rc)
		return rc;
	/* The bound leaves only one cause of failure. */
	if (compress2(out->data, &stored, data, size, (int)values[0]) != Z_OK)
		return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
	out->size = stored;
	return 0;
}

#include "base/error.h"
#include "filter/filters.h"

#include <assert.h>
#include <zlib.h>

static int unpack(z_stream *z, struct h5_filter_buf *out, size_t room)
{
	int status;

	z->next_out = out->data;
	z->avail_out = (uInt)room;
	/* Enough room also for the end of the stream: it gives no bytes. */
	status = inflate(z, Z_FINISH);
	out->size = room - z->avail_out;
	if (status == Z_STREAM_END)
		return 0;
	if (status == Z_MEM_ERROR)
		return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
	if (status == Z_BUF_ERROR && z->avail_in)
		return h5_filter_too_long("deflate", room);
	if (status == Z_BUF_ERROR)
		return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: the stream is truncated");
	return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: %s", z->msg ? z->msg : "bad stream");
}

int h5_zlib_unpack(const struct h5_filter_buf *in, struct h5_filter_buf *out, size_t room)
{
	z_stream z = {.next_in = in->data, .avail_in = (uInt)in->size};
	int rc;

	assert(room <= out->capacity);
	if (inflateInit(&z) != Z_OK)
		return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
	rc = unpack(&z, out, room);
	inflateEnd(&z);
	return rc;
}

int h5_zlib_pack(int level, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	uLongf stored = compressBound(size);
	int rc = h5_filter_buf_reserve(out, stored);

	if (rc)
		return rc;
	/* There is enough room, so only memory can be missing. */
	if (compress2(out->data, &stored, data, size, level) != Z_OK)
		return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
	out->size = stored;
	return 0;
}

/* Filter 305, of PyTables: an LZO1X stream, without anything around it. */
#include "base/error.h"
#include "filter/filters.h"

#include <lzo/lzo1x.h>
#include <stdlib.h>

static int expand(const struct h5_filter_buf *in, struct h5_filter_buf *out, size_t limit)
{
	lzo_uint size = limit;

	if (lzo_init() != LZO_E_OK)
		return h5_fail(-ENOTSUP, H5_UNDEF, "lzo: the library does not fit this program");
	switch (lzo1x_decompress_safe(in->data, in->size, out->data, &size, NULL)) {
	case LZO_E_OK:
		out->size = size;
		return 0;
	case LZO_E_OUTPUT_OVERRUN:
		return h5_filter_too_long("lzo", limit);
	case LZO_E_INPUT_OVERRUN:
		return h5_fail(-EUCLEAN, H5_UNDEF, "lzo: the stream is truncated");
	default:
		return h5_fail(-EUCLEAN, H5_UNDEF, "lzo: bad stream");
	}
}

int h5_lzo_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in, struct h5_filter_buf *out,
		  size_t limit)
{
	int rc;

	(void)values; /* the level, and version and kind of the PyTables object */
	(void)count;
	rc = h5_filter_buf_reserve(out, limit);
	if (!rc)
		rc = expand(in, out, limit);
	return rc;
}

int h5_lzo_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		  struct h5_filter_buf *out)
{
	/* Enough, according to its manual. */
	lzo_uint stored = size + size / 16 + 64 + 3;
	void *work;
	int rc = h5_filter_buf_reserve(out, stored);

	(void)values;
	(void)count;
	if (rc)
		return rc;
	if (lzo_init() != LZO_E_OK)
		return h5_fail(-ENOTSUP, H5_UNDEF, "lzo: the library does not fit this program");
	work = malloc(LZO1X_1_MEM_COMPRESS);
	if (!work)
		return h5_fail(-ENOMEM, H5_UNDEF, "lzo: out of memory");
	if (lzo1x_1_compress(data, size, out->data, &stored, work) != LZO_E_OK)
		rc = h5_fail(-EIO, H5_UNDEF, "lzo: cannot compress");
	free(work);
	out->size = stored;
	return rc;
}

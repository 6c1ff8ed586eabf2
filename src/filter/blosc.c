/* Filter 32001: a Blosc (version 1) buffer, whose header tells the sizes, the compressor and the shuffling.
 */
#include "base/error.h"
#include "filter/filters.h"

#include <blosc.h>

/* Why nothing came out. */
static int fail(const struct h5_filter_buf *in)
{
	/* The format's number of the compressor, in the header; the library has one more, for a variant of
	 * LZ4. */
	int format = in->data[2] >> 5, code = format < 2 ? format : format + 1;
	const char *name = NULL;

	if (blosc_compcode_to_compname(code, &name) < 0)
		return h5_fail(-ENOTSUP, H5_UNDEF,
			       "filter 32001 (blosc): compressor %d (%s) is not available", format,
			       name ? name : "unknown");
	return h5_fail(-EUCLEAN, H5_UNDEF, "blosc: bad data");
}

static int expand(const struct h5_filter_buf *in, struct h5_filter_buf *out, size_t size)
{
	/* A context of its own, without threads: chunks are decoded side by side already. */
	int got = blosc_decompress_ctx(in->data, out->data, size, 1);

	if (got < 0 || (size_t)got != size)
		return fail(in);
	out->size = size;
	return 0;
}

int h5_blosc_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	struct h5_filter_buf out = {0};
	size_t size;
	int rc;

	(void)values; /* versions, sizes and how to compress: the buffer tells */
	(void)count;
	if (blosc_cbuffer_validate(buf->data, buf->size, &size))
		return h5_fail(-EUCLEAN, H5_UNDEF, "blosc: bad header");
	if (size > limit)
		return h5_fail(-EUCLEAN, H5_UNDEF, "blosc: %zu bytes instead of at most %zu", size, limit);
	rc = h5_filter_buf_reserve(&out, size);
	if (!rc)
		rc = expand(buf, &out, size);
	return h5_filter_buf_replace(buf, &out, rc);
}

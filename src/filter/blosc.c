/* Filter 32001: a Blosc (version 1) buffer. Its header holds the sizes, the compressor and the shuffling.
 *
 * values: version of the filter, of the format, size of an element, bytes of a chunk; then, if there are
 * more, the level, the shuffling (0 none, 1 bytes, 2 bits) and the compressor. */
#include "base/error.h"
#include "filter/filters.h"

#include <blosc.h>

enum { V_ELEMENT_SIZE = 2, V_LEVEL = 4, V_SHUFFLE, V_COMPRESSOR };

/* Says why decoding has failed. */
static int fail(const struct h5_filter_buf *in)
{
	/* The number of the compressor in the header. The library's numbers from 2 on are one more, since it
	 * has a variant of LZ4. */
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
	/* Without threads of its own: chunks are decoded side by side already. */
	int got = blosc_decompress_ctx(in->data, out->data, size, 1);

	if (got < 0 || (size_t)got != size)
		return fail(in);
	out->size = size;
	return 0;
}

int h5_blosc_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		    struct h5_filter_buf *out, size_t limit)
{
	size_t size;
	int rc;

	(void)values; /* the buffer's header has all that is needed */
	(void)count;
	if (blosc_cbuffer_validate(in->data, in->size, &size))
		return h5_fail(-EUCLEAN, H5_UNDEF, "blosc: bad header");
	if (size > limit)
		return h5_filter_too_long("blosc", limit);
	rc = h5_filter_buf_reserve(out, size);
	if (!rc)
		rc = expand(in, out, size);
	return rc;
}

int h5_blosc_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		    struct h5_filter_buf *out)
{
	uint32_t element_size = h5_filter_value(values, count, V_ELEMENT_SIZE, 0);
	uint32_t level = h5_filter_value(values, count, V_LEVEL, 5);
	uint32_t shuffle = h5_filter_value(values, count, V_SHUFFLE, BLOSC_SHUFFLE);
	uint32_t code = h5_filter_value(values, count, V_COMPRESSOR, BLOSC_BLOSCLZ);
	const char *compressor = NULL;
	int stored, rc;

	if (code > INT32_MAX || blosc_compcode_to_compname((int)code, &compressor) < 0)
		return h5_fail(-ENOTSUP, H5_UNDEF,
			       "filter 32001 (blosc): compressor %u (%s) is not available", code,
			       compressor ? compressor : "unknown");
	if (!element_size || level > 9 || shuffle > BLOSC_BITSHUFFLE || size > BLOSC_MAX_BUFFERSIZE)
		return h5_fail(-ENOTSUP, H5_UNDEF, "blosc: %zu bytes, elements of %u, level %u, shuffle %u",
			       size, element_size, level, shuffle);
	/* As the library does, except for sizes that overflow in it. */
	if (element_size > BLOSC_MAX_TYPESIZE)
		element_size = 1;
	rc = h5_filter_buf_reserve(out, size + BLOSC_MAX_OVERHEAD);
	if (rc)
		return rc;
	stored = blosc_compress_ctx((int)level, (int)shuffle, element_size, size, data, out->data,
				    size + BLOSC_MAX_OVERHEAD, compressor, 0, 1);
	/* This is enough room for a copy, so it cannot fail for want of room. */
	if (stored <= 0)
		return h5_fail(-ENOMEM, H5_UNDEF, "blosc: out of memory");
	out->size = (size_t)stored;
	return 0;
}

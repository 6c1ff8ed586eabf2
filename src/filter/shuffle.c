/* Filter 2: the first bytes of all elements, then all second bytes, ...; bytes after the last whole element
 * stay at the end. values[0] is the element size. */
#include "base/error.h"
#include "filter/filters.h"

#include <string.h>

int h5_shuffle_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	struct h5_filter_buf out = {0};
	size_t size, elements;
	const uint8_t *in = buf->data;
	int rc;

	if (count < 1 || !values[0])
		return h5_fail(-EUCLEAN, H5_UNDEF, "shuffle: no element size");
	if (buf->size > limit)
		return h5_fail(-EUCLEAN, H5_UNDEF, "shuffle: more than %zu bytes come out", limit);
	size = values[0];
	elements = buf->size / size;
	if (size == 1 || elements < 2)
		return 0;
	rc = h5_filter_buf_reserve(&out, buf->size);
	if (rc)
		return rc;
	for (size_t b = 0; b < size; b++) {
		uint8_t *p = out.data + b;

		for (size_t e = 0; e < elements; e++, p += size)
			*p = *in++;
	}
	memcpy(out.data + size * elements, in, buf->size - size * elements);
	out.size = buf->size;
	h5_filter_buf_release(buf);
	*buf = out;
	return 0;
}

enum { BLOCK = 1 << 14 }; /* bytes that stay in the cache while each of their bytes goes to its plane */

static void split(const uint8_t *in, uint8_t *out, size_t elements, size_t size)
{
	size_t step = BLOCK / size + 1;

	for (size_t at = 0; at < elements; at += step) {
		size_t n = elements - at < step ? elements - at : step;

		for (size_t b = 0; b < size; b++) {
			const uint8_t *p = in + at * size + b;
			uint8_t *plane = out + b * elements + at;

			for (size_t e = 0; e < n; e++)
				plane[e] = p[e * size];
		}
	}
}

int h5_shuffle_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		      struct h5_filter_buf *out)
{
	size_t elements, rest;
	int rc;

	if (count < 1 || !values[0])
		return h5_fail(-ENOTSUP, H5_UNDEF, "shuffle: no element size");
	rc = h5_filter_buf_reserve(out, size);
	if (rc)
		return rc;
	elements = size / values[0];
	rest = size % values[0];
	split(data, out->data, elements, values[0]);
	memcpy(out->data + size - rest, data + size - rest, rest);
	out->size = size;
	return 0;
}

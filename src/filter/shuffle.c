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

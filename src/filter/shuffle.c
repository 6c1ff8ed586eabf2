/* Filter 2: the first bytes of all elements, then all second bytes, ...; bytes after the last whole element
 * stay at the end. values[0] is the element size. */
#include "filter/shuffle.h"
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"
#include "filter/planes.h"

#include <string.h>

/* Copies bytes one by one, for parts of elements. */
static size_t copy_bytes(const uint8_t *in, size_t count, size_t element, size_t from, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = in[(from + i) % element * count + (from + i) / element];
	return n;
}

void h5_unshuffle(const uint8_t *in, size_t size, size_t element, size_t from, uint8_t *out, size_t n)
{
	size_t count = size / element, behind = count * element;
	size_t shuffled = from < behind ? (size_t)h5_min(n, behind - from) : 0;
	size_t head = (size_t)h5_min(shuffled, (element - from % element) % element);
	size_t whole = (shuffled - head) / element, at = copy_bytes(in, count, element, from, out, head);

	h5_planes_merge(in + (from + at) / element, count, whole, element, out + at);
	at += whole * element;
	at += copy_bytes(in, count, element, from + at, out + at, shuffled - at);
	memcpy(out + at, in + from + at, n - at);
}

bool h5_shuffle_is_identity(const uint32_t *values, unsigned count)
{
	return count && values[0] == 1;
}

int h5_shuffle_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		      struct h5_filter_buf *out, size_t limit)
{
	int rc;

	if (count < 1 || !values[0])
		return h5_fail(-EUCLEAN, H5_UNDEF, "shuffle: no element size");
	if (in->size > limit)
		return h5_filter_too_long("shuffle", limit);
	if (h5_shuffle_is_identity(values, count))
		return 0;
	rc = h5_filter_buf_reserve(out, in->size);
	if (rc)
		return rc;
	h5_unshuffle(in->data, in->size, values[0], 0, out->data, in->size);
	out->size = in->size;
	return 0;
}

int h5_shuffle_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		      struct h5_filter_buf *out)
{
	size_t rest;
	int rc;

	if (count < 1 || !values[0])
		return h5_fail(-ENOTSUP, H5_UNDEF, "shuffle: no element size");
	rc = h5_filter_buf_reserve(out, size);
	if (rc)
		return rc;
	rest = size % values[0];
	h5_planes_split(data, size / values[0], values[0], out->data);
	memcpy(out->data + size - rest, data + size - rest, rest);
	out->size = size;
	return 0;
}

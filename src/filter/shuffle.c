/* Filter 2: the first bytes of all elements, then all second bytes, ...; bytes after the last whole element
 * stay at the end. values[0] is the element size. */
#include "base/error.h"
#include "filter/filters.h"
#include "filter/planes.h"

#include <string.h>

bool h5_shuffle_is_identity(const uint32_t *values, unsigned count)
{
	return count && values[0] == 1;
}

int h5_shuffle_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		      struct h5_filter_buf *out, size_t limit)
{
	size_t rest;
	int rc;

	if (count < 1 || !values[0])
		return h5_fail(-EUCLEAN, H5_UNDEF, "shuffle: no element size");
	if (in->size > limit)
		return h5_fail(-EUCLEAN, H5_UNDEF, "shuffle: more than %zu bytes come out", limit);
	if (h5_shuffle_is_identity(values, count))
		return 0;
	rc = h5_filter_buf_reserve(out, in->size);
	if (rc)
		return rc;
	rest = in->size % values[0];
	h5_planes_merge(in->data, in->size / values[0], values[0], out->data);
	memcpy(out->data + in->size - rest, in->data + in->size - rest, rest);
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

/* Filter 32003: one block of Snappy, which begins with its decoded size. */
#include "base/error.h"
#include "filter/filters.h"

#include <snappy-c.h>

int h5_snappy_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		     struct h5_filter_buf *out, size_t limit)
{
	const char *data = (const char *)in->data;
	size_t size;
	int rc;

	(void)values; /* it has none */
	(void)count;
	if (snappy_uncompressed_length(data, in->size, &size) != SNAPPY_OK)
		return h5_fail(-EUCLEAN, H5_UNDEF, "snappy: bad header");
	if (size > limit)
		return h5_filter_too_long("snappy", limit);
	rc = h5_filter_buf_reserve(out, size);
	if (rc)
		return rc;
	if (snappy_uncompress(data, in->size, (char *)out->data, &size) != SNAPPY_OK)
		return h5_fail(-EUCLEAN, H5_UNDEF, "snappy: bad data");
	out->size = size;
	return 0;
}

int h5_snappy_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		     struct h5_filter_buf *out)
{
	size_t stored;
	int rc;

	(void)values;
	(void)count;
	if (size > UINT32_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "snappy: %zu bytes in one chunk", size);
	stored = snappy_max_compressed_length(size);
	rc = h5_filter_buf_reserve(out, stored);
	if (rc)
		return rc;
	if (snappy_compress((const char *)data, size, (char *)out->data, &stored) != SNAPPY_OK)
		return h5_fail(-ENOMEM, H5_UNDEF, "snappy: out of memory");
	out->size = stored;
	return 0;
}

/* Filter 3: Fletcher's checksum, appended as 4 bytes, little-endian. */
#include "base/fletcher32.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "filter/filters.h"

#include <string.h>

/* libhdf5 before 1.6.3 stored the bytes of each half swapped on little-endian machines. */
static uint32_t swap_halves(uint32_t v)
{
	return (v & 0x00ff00ff) << 8 | (v >> 8 & 0x00ff00ff);
}

int h5_fletcher32_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
			 struct h5_filter_buf *out, size_t limit)
{
	uint32_t stored, sum;

	(void)values;
	(void)count;
	(void)out;
	if (in->size < 4)
		return h5_fail(-EUCLEAN, H5_UNDEF, "fletcher32: no checksum in %zu bytes", in->size);
	if (in->size - 4 > limit)
		return h5_filter_too_long("fletcher32", limit);
	in->size -= 4;
	stored = (uint32_t)h5_uint_from(in->data + in->size, 4);
	sum = h5_fletcher32(in->data, in->size);
	if (!h5_checksum_matches(stored, sum) && !h5_checksum_matches(stored, swap_halves(sum)))
		return h5_fail(-EUCLEAN, H5_UNDEF, "fletcher32: wrong checksum");
	return 0;
}

int h5_fletcher32_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
			 struct h5_filter_buf *out)
{
	int rc = h5_filter_buf_reserve(out, size + 4);

	(void)values;
	(void)count;
	if (rc)
		return rc;
	memcpy(out->data, data, size);
	h5_uint_to(out->data + size, h5_fletcher32(data, size), 4);
	out->size = size + 4;
	return 0;
}

/* Filter 3: Fletcher's checksum (RFC 1146's algorithm on 16-bit words, big-endian, sums begin with 0),
 * appended as 4 bytes, little-endian. */
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "filter/filters.h"

#include <string.h>

/* One's complement arithmetic: no sum of anything but zeros gives 0. */
static uint32_t reduce(uint64_t sum)
{
	return sum ? (uint32_t)((sum - 1) % 0xffff + 1) : 0;
}

static uint32_t fletcher32(const uint8_t *p, size_t n)
{
	uint64_t sum1 = 0, sum2 = 0;

	while (n) {
		/* So many words cannot overflow 64 bits. */
		size_t block = n < 1u << 20 ? n : 1u << 20;

		for (size_t i = 0; i < block; i += 2) {
			sum1 += (uint64_t)p[i] << 8 | (i + 1 < block ? p[i + 1] : 0);
			sum2 += sum1;
		}
		sum1 = reduce(sum1);
		sum2 = reduce(sum2);
		p += block;
		n -= block;
	}
	return (uint32_t)(sum2 << 16 | sum1);
}

/* libhdf5 before 1.6.3 stored the bytes of each half swapped on little-endian machines. */
static uint32_t swap_halves(uint32_t v)
{
	return (v & 0x00ff00ff) << 8 | (v >> 8 & 0x00ff00ff);
}

int h5_fletcher32_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	uint32_t stored, sum;

	(void)values;
	(void)count;
	if (buf->size < 4)
		return h5_fail(-EUCLEAN, H5_UNDEF, "fletcher32: no checksum in %zu bytes", buf->size);
	if (buf->size - 4 > limit)
		return h5_fail(-EUCLEAN, H5_UNDEF, "fletcher32: more than %zu bytes come out", limit);
	buf->size -= 4;
	stored = (uint32_t)h5_uint_from(buf->data + buf->size, 4);
	sum = fletcher32(buf->data, buf->size);
	if (stored != sum && stored != swap_halves(sum))
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
	h5_uint_to(out->data + size, fletcher32(data, size), 4);
	out->size = size + 4;
	return 0;
}

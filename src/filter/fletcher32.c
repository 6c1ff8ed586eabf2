/* Filter 3: Fletcher's checksum (RFC 1146's algorithm on 16-bit words, big-endian, sums begin with 0),
 * appended as 4 bytes, little-endian. */
#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "filter/filters.h"

#include <string.h>

/* One's complement arithmetic: the result is 0 only if all words are. */
static uint32_t reduce(uint64_t sum)
{
	return sum ? (uint32_t)((sum - 1) % 0xffff + 1) : 0;
}

typedef uint32_t lanes __attribute__((vector_size(16))); /* of two words each */

enum {
	LANES = sizeof(lanes) / 4,
	WORDS = 2 * LANES,
	VECTORS = 256, /* most vectors whose sums a lane can hold: 65535 * 256 * 257 / 2 */
	/* Number of the word that is in the lower half of its lane, 0 or 1. */
	LOW = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__,
};

/* Adds vectors to the sums. Each lane holds two words; `a[0]` and `b[0]` sum the first of them, `a[1]` and
 * `b[1]` the second. A lane of `a` is the sum of every eighth word, a lane of `b` the sum of these sums. */
static void add_vectors(const uint8_t *p, size_t vectors, uint64_t *sum1, uint64_t *sum2)
{
	lanes a[2] = {{0}, {0}}, b[2] = {{0}, {0}};
	uint64_t all = 0;

	for (size_t i = 0; i < vectors; i++) {
		lanes w;

		memcpy(&w, p + i * sizeof w, sizeof w);
		a[LOW] += w & 0xffff;
		a[!LOW] += w >> 16;
		b[0] += a[0];
		b[1] += a[1];
	}
	*sum2 += vectors * WORDS * *sum1;
	for (unsigned j = 0; j < WORDS; j++) {
		uint64_t sum = a[j % 2][j / 2];

		all += sum;
		/* Each word counts once, and once more for each word that follows it: WORDS times for each
		 * vector from its own on, minus the j words before it in its vector. */
		*sum2 += WORDS * (uint64_t)b[j % 2][j / 2] - j * sum;
	}
	*sum1 = reduce(*sum1 + all);
	*sum2 = reduce(*sum2);
}

static uint32_t fletcher32(const uint8_t *p, size_t n)
{
	uint64_t sum1 = 0, sum2 = 0;
	uint16_t word;

	while (n >= sizeof(lanes)) {
		size_t vectors = (size_t)h5_min(n / sizeof(lanes), VECTORS);

		add_vectors(p, vectors, &sum1, &sum2);
		p += vectors * sizeof(lanes);
		n -= vectors * sizeof(lanes);
	}
	for (size_t i = 0; i < n; i += sizeof word) {
		word = 0;
		memcpy(&word, p + i, (size_t)h5_min(n - i, sizeof word));
		sum1 += word;
		sum2 += sum1;
	}
	/* The words were read in the byte order of this machine. Modulo 65535, multiplying by 256 swaps the
	 * bytes. */
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
		sum1 *= 256;
		sum2 *= 256;
	}
	return reduce(sum2) << 16 | reduce(sum1);
}

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
	sum = fletcher32(in->data, in->size);
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
	h5_uint_to(out->data + size, fletcher32(data, size), 4);
	out->size = size + 4;
	return 0;
}

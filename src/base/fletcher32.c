#include "base/fletcher32.h"

#include "base/checked.h"

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

void h5_fletcher32_add(struct h5_fletcher32 *sum, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint16_t word;

	while (n >= sizeof(lanes)) {
		size_t vectors = (size_t)h5_min(n / sizeof(lanes), VECTORS);

		add_vectors(p, vectors, &sum->first, &sum->second);
		p += vectors * sizeof(lanes);
		n -= vectors * sizeof(lanes);
	}
	for (size_t i = 0; i < n; i += sizeof word) {
		word = 0;
		memcpy(&word, p + i, (size_t)h5_min(n - i, sizeof word));
		sum->first += word;
		sum->second += sum->first;
	}
	sum->first = reduce(sum->first);
	sum->second = reduce(sum->second);
}

uint32_t h5_fletcher32_end(const struct h5_fletcher32 *sum)
{
	/* The words were read in the byte order of this machine. Modulo 65535, multiplying by 256 swaps the
	 * bytes. */
	const uint64_t swap = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 256 : 1;

	return reduce(sum->second * swap) << 16 | reduce(sum->first * swap);
}

uint32_t h5_fletcher32(const void *data, size_t n)
{
	struct h5_fletcher32 sum = {0};

	h5_fletcher32_add(&sum, data, n);
	return h5_fletcher32_end(&sum);
}

#include "base/siphash.h"

#include <endian.h>
#include <string.h>

/* `n` bytes, up to 8, the least significant one first. */
static uint64_t word(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return le64toh(v);
}

static uint64_t rotate(uint64_t v, unsigned n)
{
	return v << n | v >> (64 - n);
}

static void rounds(uint64_t v[4], unsigned n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static void take(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	rounds(v, 2);
	v[0] ^= m;
}

uint64_t h5_siphash(const uint8_t key[H5_SIPHASH_KEY], const void *data, size_t n)
{
	const uint64_t k0 = word(key, 8), k1 = word(key + 8, 8);
	uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
			 k1 ^ 0x7465646279746573};
	const uint8_t *p = data;
	size_t left = n;

	for (; left >= 8; left -= 8, p += 8)
		take(v, word(p, 8));
	take(v, word(p, left) | (uint64_t)n << 56);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

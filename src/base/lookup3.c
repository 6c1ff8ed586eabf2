#include "base/lookup3.h"

#include "base/little_endian.h"

#include <string.h>

static inline uint32_t rotate(uint32_t v, unsigned k)
{
	return v << k | v >> (32 - k);
}

uint32_t h5_lookup3(const void *data, size_t n, uint32_t initial)
{
	const uint8_t *p = data;
	uint32_t a = 0xdeadbeef + (uint32_t)n + initial, b = a, c = a;
	uint8_t tail[12] = {0};

	if (!n)
		return c;
	/* All but the last 1 to 12 bytes, twelve at a time. */
	for (; n > 12; n -= 12, p += 12) {
		a += h5_le32(p);
		b += h5_le32(p + 4);
		c += h5_le32(p + 8);
		a = (a - c) ^ rotate(c, 4);
		c += b;
		b = (b - a) ^ rotate(a, 6);
		a += c;
		c = (c - b) ^ rotate(b, 8);
		b += a;
		a = (a - c) ^ rotate(c, 16);
		c += b;
		b = (b - a) ^ rotate(a, 19);
		a += c;
		c = (c - b) ^ rotate(b, 4);
		b += a;
	}
	memcpy(tail, p, n);
	a += h5_le32(tail);
	b += h5_le32(tail + 4);
	c += h5_le32(tail + 8);
	c = (c ^ b) - rotate(b, 14);
	a = (a ^ c) - rotate(c, 11);
	b = (b ^ a) - rotate(a, 25);
	c = (c ^ b) - rotate(b, 16);
	a = (a ^ c) - rotate(c, 4);
	b = (b ^ a) - rotate(a, 14);
	c = (c ^ b) - rotate(b, 24);
	return c;
}

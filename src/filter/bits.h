/* Reader and writer of packed numbers: the bits of each byte begin with the most significant one. */
#ifndef H5_FILTER_BITS_H
#define H5_FILTER_BITS_H

#include <stddef.h>
#include <stdint.h>

struct h5_bits {
	const uint8_t *data; /* borrowed */
	size_t size;
	size_t at;     /* the byte that is being read */
	unsigned left; /* unread bits of it, 1 to 8 */
};

static inline struct h5_bits h5_bits_init(const uint8_t *data, size_t size)
{
	return (struct h5_bits){.data = data, .size = size, .left = 8};
}

/* The next n bits, 0 to 64, as a number; bits beyond the end are zeros. */
static inline uint64_t h5_bits_read(struct h5_bits *b, unsigned n)
{
	uint64_t v = 0;

	while (n) {
		unsigned take = n < b->left ? n : b->left;
		unsigned byte = b->at < b->size ? b->data[b->at] : 0;

		b->left -= take;
		v = v << take | (byte >> b->left & ((1u << take) - 1));
		n -= take;
		if (!b->left) {
			b->left = 8;
			b->at++;
		}
	}
	return v;
}

struct h5_bits_writer {
	uint8_t *data; /* borrowed; zeros before */
	size_t size;
	size_t at;     /* the byte that is being written */
	unsigned left; /* free bits of it, 1 to 8 */
};

static inline struct h5_bits_writer h5_bits_writer_init(uint8_t *data, size_t size)
{
	return (struct h5_bits_writer){.data = data, .size = size, .left = 8};
}

/* Writes the low n bits of v, 0 to 64. Bits beyond the end are dropped. */
static inline void h5_bits_write(struct h5_bits_writer *b, uint64_t v, unsigned n)
{
	while (n) {
		unsigned take = n < b->left ? n : b->left;

		b->left -= take;
		n -= take;
		if (b->at < b->size)
			b->data[b->at] |= (uint8_t)((v >> n & ((1u << take) - 1)) << b->left);
		if (!b->left) {
			b->left = 8;
			b->at++;
		}
	}
}

#endif

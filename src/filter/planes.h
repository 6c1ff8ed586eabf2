/* Elements as planes: the first bytes of all elements, then all second bytes, and so on. */
#ifndef H5_FILTER_PLANES_H
#define H5_FILTER_PLANES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Sixteen bytes. GCC and Clang use a vector register for them if the machine has such registers. */
typedef uint8_t h5_bytes __attribute__((vector_size(16)));

/* Interleaves the lower halves of two vectors (a byte of a, a byte of b, ...), and the upper halves. */
#ifdef __clang__
#define H5_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define H5_ZIP_HIGH(a, b)                                                                                    \
	__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define H5_UNROLL /* GCC unrolls anyway */
#else
#define H5_ZIP_LOW(a, b)                                                                                     \
	__builtin_shuffle(a, b, (h5_bytes){0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23})
#define H5_ZIP_HIGH(a, b)                                                                                    \
	__builtin_shuffle(a, b, (h5_bytes){8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31})
#define H5_UNROLL _Pragma("GCC unroll 16")
#endif

/* Interleaves the first half of the k vectors with the second one; k is a power of two. This rotates the bits
 * of each byte's number (among all bytes) to the left by one. After log2(k) times, byte e of vector b has
 * become byte b of element e; after four times more all bytes are back in their places. */
static inline __attribute__((always_inline)) void h5_zip(h5_bytes *v, unsigned k)
{
	h5_bytes w[8];

	assert(k <= 8 && !(k & (k - 1)));
	if (k < 2)
		return;
	H5_UNROLL
	for (unsigned i = 0; i < k / 2; i++) {
		w[2 * i] = H5_ZIP_LOW(v[i], v[i + k / 2]);
		w[2 * i + 1] = H5_ZIP_HIGH(v[i], v[i + k / 2]);
	}
	H5_UNROLL
	for (unsigned i = 0; i < k; i++)
		v[i] = w[i];
}

/* Makes n elements of `size` bytes from planes that lie `distance` bytes apart. */
void h5_planes_merge(const uint8_t *planes, size_t distance, size_t n, size_t size, uint8_t *out);
/* The reverse, into planes of n bytes. */
void h5_planes_split(const uint8_t *in, size_t n, size_t size, uint8_t *planes);

#endif

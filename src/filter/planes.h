/* Elements as planes: the first bytes of all elements, then all second bytes, and so on. */
#ifndef H5_FILTER_PLANES_H
#define H5_FILTER_PLANES_H

#include <stddef.h>
#include <stdint.h>

/* Sixteen bytes, which GCC and Clang make a register where the machine has such ones. */
typedef uint8_t h5_bytes __attribute__((vector_size(16)));

/* The bytes of the lower half of each, one of a, then one of b, and so on; and of the upper half. */
#ifdef __clang__
#define H5_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define H5_ZIP_HIGH(a, b)                                                                                    \
	__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define H5_UNROLL /* it does without being told */
#else
#define H5_ZIP_LOW(a, b)                                                                                     \
	__builtin_shuffle(a, b, (h5_bytes){0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23})
#define H5_ZIP_HIGH(a, b)                                                                                    \
	__builtin_shuffle(a, b, (h5_bytes){8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31})
#define H5_UNROLL _Pragma("GCC unroll 16")
#endif

/* Zips the first half of the k vectors with the second one, a power of two. That turns the bits of the number
 * that counts all their bytes by one to the left: log2(k) times, and byte e of vector b is byte b of element
 * e; four times more and all is as it was. */
static inline __attribute__((always_inline)) void h5_zip(h5_bytes *v, unsigned k)
{
	h5_bytes w[8];

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

/* n elements of `size` bytes, from planes that lie `distance` bytes apart. */
void h5_planes_merge(const uint8_t *planes, size_t distance, size_t n, size_t size, uint8_t *out);
/* And into planes of n bytes. */
void h5_planes_split(const uint8_t *in, size_t n, size_t size, uint8_t *planes);

#endif

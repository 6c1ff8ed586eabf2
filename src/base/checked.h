/* Arithmetic on values from a file. Every product and sum of them is made by these functions, which are false
 * on overflow. And which of two numbers is less. */
#ifndef H5_BASE_CHECKED_H
#define H5_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool h5_mul(uint64_t a, uint64_t b, uint64_t *product)
{
	return !__builtin_mul_overflow(a, b, product);
}

static inline bool h5_add(uint64_t a, uint64_t b, uint64_t *sum)
{
	return !__builtin_add_overflow(a, b, sum);
}

/* Product of n dimensions; 1 if n is 0. */
static inline bool h5_product(const uint64_t *dims, unsigned n, uint64_t *product)
{
	uint64_t all = 1;
	bool zero = false;

	/* One zero makes the product zero, even if the product of the others overflows. */
	for (unsigned i = 0; i < n; i++)
		zero |= !dims[i];
	for (unsigned i = 0; i < n && !zero; i++)
		if (!h5_mul(all, dims[i], &all))
			return false;
	*product = zero ? 0 : all;
	return true;
}

/* floor(log2(v)), 0 for 0. */
static inline unsigned h5_log2(uint64_t v)
{
	return v ? 63u - (unsigned)__builtin_clzll(v) : 0;
}

/* The least number of bytes that hold `limit`; the format stores numbers up to that in so many bytes. */
static inline unsigned h5_limit_size(uint64_t limit)
{
	return h5_log2(limit) / 8 + 1;
}

/* Memory of zeros for n elements; free(). NULL also if the address space has no room for them. */
static inline void *h5_calloc(uint64_t n, size_t size)
{
	return n > SIZE_MAX ? NULL : calloc((size_t)n, size);
}

static inline uint64_t h5_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t h5_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* -1: a < b; 0: they are equal; 1: a > b. */
static inline int h5_compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static inline int h5_compare_signed(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

#endif

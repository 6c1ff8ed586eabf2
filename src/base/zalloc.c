#include "base/zalloc.h"

#include <stdlib.h>
#include <string.h>

/* Kept apart, since compilers make malloc() and memset() of the same memory a calloc(). */
static __attribute__((noinline)) void *take(size_t n)
{
	return malloc(n);
}

void *h5_zalloc(size_t n)
{
	void *memory = take(n);

	return memory ? memset(memory, 0, n) : NULL;
}

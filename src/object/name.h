/* Order of link and attribute names: by their bytes. */
#ifndef H5_OBJECT_NAME_H
#define H5_OBJECT_NAME_H

#include <stddef.h>
#include <string.h>

static inline int h5_name_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t common = a_size < b_size ? a_size : b_size;
	int order = common ? memcmp(a, b, common) : 0;

	return order ? order : a_size < b_size ? -1 : a_size > b_size;
}

#endif

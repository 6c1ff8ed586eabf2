/* Link and attribute names: their order, by their bytes, and how many a listing may hold. */
#ifndef H5_OBJECT_NAME_H
#define H5_OBJECT_NAME_H

#include "base/checked.h"
#include "store/file.h"

#include <stddef.h>
#include <string.h>

static inline int h5_name_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t common = a_size < b_size ? a_size : b_size;
	int order = common ? memcmp(a, b, common) : 0;

	return order ? order : a_size < b_size ? -1 : a_size > b_size;
}

/* Bytes of names and targets that one listing may take. They are in the file too, none of them twice, but
 * perhaps compressed; and a file with holes may be of any size. */
static inline uint64_t h5_names_max(const struct h5_file *file)
{
	const uint64_t low = (uint64_t)64 << 20, high = (uint64_t)1 << 28;
	uint64_t size = h5_file_size(file);

	return size < low ? low : h5_min(size, high);
}

#endif

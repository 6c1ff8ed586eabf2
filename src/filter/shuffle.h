/* Undoing the shuffle filter in part. */
#ifndef H5_FILTER_SHUFFLE_H
#define H5_FILTER_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* A part of what undoing the shuffle of `size` bytes gives, without the rest: n bytes, the first one at
 * `from`. A reader of a few rows is done with one copy. */
void h5_unshuffle(const uint8_t *shuffled, size_t size, size_t element_size, size_t from, uint8_t *out,
		  size_t n);

#endif

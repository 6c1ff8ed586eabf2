/* Decodes a part of a shuffled chunk. */
#ifndef H5_FILTER_SHUFFLE_H
#define H5_FILTER_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* Decodes n of the `size` bytes, the first one at `from`, and not the rest. So a few rows go straight into
 * the reader's buffer, without unshuffling the whole chunk first. */
void h5_unshuffle(const uint8_t *shuffled, size_t size, size_t element_size, size_t from, uint8_t *out,
		  size_t n);

#endif

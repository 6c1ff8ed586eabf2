/* Global heap collections. Specification III.E. */
#ifndef H5_FORMAT_GLOBAL_HEAP_H
#define H5_FORMAT_GLOBAL_HEAP_H

#include "base/reader.h"

#include <stdint.h>

enum { H5_GLOBAL_HEAP_PREFIX = 16 }; /* bytes that tell a collection's size */

struct h5_global_heap_object {
	uint16_t index;	       /* 1, ... */
	uint64_t offset, size; /* of the data, in the collection */
};

/* `size`: of the whole collection. */
int h5_global_heap_size(struct h5_reader *prefix, uint64_t *size);

/* Checks size and free space of the collection that the reader is over. -EUCLEAN: some version of libhdf5
 * refuses the collection, or fails when it adds to it. It may still be readable. */
int h5_global_heap_verify(struct h5_reader *r);

/* The objects of a collection, sorted by index; *objects is owned by the caller, free(). */
int h5_global_heap_decode(struct h5_reader *r, struct h5_global_heap_object **objects, unsigned *count);

#endif

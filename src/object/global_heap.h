/* The global heap, which holds variable-length data and region references. Specification III.E. */
#ifndef H5_OBJECT_GLOBAL_HEAP_H
#define H5_OBJECT_GLOBAL_HEAP_H

#include "store/file.h"

/* The bytes of one object of the collection at the address; borrowed until h5_file_put(file, *ref).
 * -EUCLEAN: no such object. */
int h5_global_heap_get(struct h5_file *file, uint64_t address, uint32_t index, struct h5_lru_entry **ref,
		       const uint8_t **data, size_t *size);

/* Calls `visit` for each object of the collection, by its index, and tells the size of the collection. A
 * result that is not 0 ends it. */
int h5_global_heap_each(struct h5_file *file, uint64_t address, int (*visit)(void *arg, uint32_t index),
			void *arg, uint64_t *size);

/* -EUCLEAN if some version of libhdf5 refuses the collection; see h5_global_heap_verify(). */
int h5_global_heap_check(struct h5_file *file, uint64_t address);

#endif

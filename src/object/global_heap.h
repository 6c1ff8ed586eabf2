/* The global heap, which holds variable-length data and region references. Specification III.E. */
#ifndef H5_OBJECT_GLOBAL_HEAP_H
#define H5_OBJECT_GLOBAL_HEAP_H

#include "format/global_heap.h"
#include "store/file.h"

/* The bytes of one object of the collection at the address; borrowed until h5_file_put(file, *ref).
 * -EUCLEAN: no such object. */
int h5_global_heap_get(struct h5_file *file, uint64_t address, uint32_t index, struct h5_lru_entry **ref,
		       const uint8_t **data, size_t *size);

/* Visits all objects of the collection, in the order in which they lie there, and tells the size of the
 * collection. Reads little more than their headers. A result that is not 0 ends it. -EUCLEAN: as
 * h5_global_heap_check(), or it passes the end of the file. */
typedef int h5_global_heap_visit(void *arg, const struct h5_global_heap_object *object);
int h5_global_heap_each(struct h5_file *file, uint64_t address, h5_global_heap_visit *visit, void *arg,
			uint64_t *size);

/* -EUCLEAN if some version of libhdf5 refuses the collection; see h5_global_heap_verify(). */
int h5_global_heap_check(struct h5_file *file, uint64_t address);

#endif

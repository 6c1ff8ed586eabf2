/* Local heap: the names of an old-style group. Specification III.D. */
#ifndef H5_OBJECT_LOCAL_HEAP_H
#define H5_OBJECT_LOCAL_HEAP_H

#include "base/buf.h"
#include "store/file.h"

/* A plain struct: nothing to release. */
struct h5_local_heap {
	struct h5_file *file;	/* borrowed */
	uint64_t address, size; /* of the data segment */
	uint64_t free;		/* offset of the segment's first free block; H5_LOCAL_HEAP_END: none */
};

int h5_local_heap_open(struct h5_file *file, uint64_t address, struct h5_local_heap *heap);

/* Appends the text at the offset, without its NUL. -EUCLEAN: it does not end within the heap. */
int h5_local_heap_text(const struct h5_local_heap *heap, uint64_t offset, struct h5_buf *text);

/* Verifies the list of free blocks. -EUCLEAN: libhdf5 refuses the list, and with it the group; names can be
 * read all the same. */
int h5_local_heap_check(const struct h5_local_heap *heap);

#endif

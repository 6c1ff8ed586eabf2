/* Local heap: the names of an old-style group. Specification III.D. */
#ifndef H5_OBJECT_LOCAL_HEAP_H
#define H5_OBJECT_LOCAL_HEAP_H

#include "base/buf.h"
#include "base/extents.h"
#include "format/symbol_table.h"
#include "store/file.h"

/* A plain struct: nothing to release. */
struct h5_local_heap {
	struct h5_file *file;	/* borrowed */
	uint64_t address, size; /* of the data segment */
	uint64_t free;		/* offset of the segment's first free block; H5_LOCAL_HEAP_END: none */
};

/* The data segment of a large group has many megabytes, so it is cached in pieces of so many bytes, each
 * under its address. */
enum { H5_LOCAL_HEAP_PIECE = 1 << 16 };

int h5_local_heap_open(struct h5_file *file, uint64_t address, struct h5_local_heap *heap);

/* Bytes of the header of a heap. */
size_t h5_local_heap_header_size(const struct h5_file *file);
/* Visits the space of the heap: its header, and the pieces of its data segment. -EUCLEAN: the segment reaches
 * beyond the end of the file. */
int h5_local_heap_extents(struct h5_file *file, uint64_t address, h5_extent_visit *visit, void *arg);

/* Appends the text at the offset, without its NUL. -EUCLEAN: it does not end within the heap. */
int h5_local_heap_text(const struct h5_local_heap *heap, uint64_t offset, struct h5_buf *text);

/* The free block at the offset. -EUCLEAN: it does not lie in the heap. */
int h5_local_heap_free_block(const struct h5_local_heap *heap, uint64_t offset,
			     struct h5_local_heap_free *block);

/* Verifies the list of free blocks. -EUCLEAN: libhdf5 refuses the list, and with it the group; names can be
 * read all the same. */
int h5_local_heap_check(const struct h5_local_heap *heap);

#endif

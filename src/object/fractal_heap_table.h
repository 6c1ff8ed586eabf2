/* The doubling table of a fractal heap that changes: the way from the root to a direct block, and new blocks.
 */
#ifndef H5_OBJECT_FRACTAL_HEAP_TABLE_H
#define H5_OBJECT_FRACTAL_HEAP_TABLE_H

#include "object/fractal_heap_private.h"

enum { H5_HEAP_ROWS = 65 }; /* no indirect block has more: the address space has at most 64 bits */

struct h5_heap_change {
	struct h5_file *file; /* borrowed */
	uint64_t address;     /* of the heap's header */
	struct h5_fractal_heap heap;
	size_t prefix; /* bytes of a direct block before its objects */
	/* Bytes for objects in all direct blocks of an indirect block of so many rows. */
	uint64_t capacity[H5_HEAP_ROWS + 1];
};

/* Reads the heap's header. -ENOTSUP: the heap has filters. */
int h5_heap_change_load(struct h5_heap_change *change, struct h5_file *file, uint64_t address);

/* Writes n bytes into the direct block that has the offset, all of them behind its prefix and before its end;
 * else -EUCLEAN. `is_used`: the bytes are an object that a record leads to, so they change in one step.
 * May move blocks, and change heap.root. */
int h5_heap_change_write(struct h5_heap_change *change, uint64_t offset, const void *data, uint64_t n,
			 bool is_used);
/* Checks that the n bytes at the offset are in a direct block. */
int h5_heap_change_check(struct h5_heap_change *change, uint64_t offset, uint64_t n);
/* Allocates the next direct block that has room for an object of n bytes: *offset, *size: its room. The
 * header's fields change. */
int h5_heap_change_grow(struct h5_heap_change *change, uint64_t n, uint64_t *offset, uint64_t *size);

#endif

/* Changes of fractal heaps, in the transaction (change/transaction.h). Specification III.G.
 *
 * Each is a unit of change. A heap's header never moves, since all blocks name it. In a commit the header
 * changes before the indexes of what uses the heap: so a new object is in the heap before a record leads to
 * it, and a removed one has its bytes until no record does.
 *
 * Heaps with filters are refused: -ENOTSUP. */
#ifndef H5_OBJECT_FRACTAL_HEAP_WRITE_H
#define H5_OBJECT_FRACTAL_HEAP_WRITE_H

#include "store/file.h"

#include <stdbool.h>

struct h5_fractal_heap_parameters {
	uint16_t id_size;   /* bytes of an ID */
	uint16_t heap_bits; /* log2 of the address space */
};

/* A new heap without objects; all else is as libhdf5 has it for links and attributes. */
int h5_fractal_heap_create(struct h5_file *file, const struct h5_fractal_heap_parameters *parameters,
			   uint64_t *heap);
/* False: the header lies across the edge of a page, so only the journal heals it if a kill tears a change. */
bool h5_fractal_heap_is_safe(const struct h5_file *file, uint64_t heap);
/* Adds an object of `size` > 0 bytes, and writes its ID, id_size bytes. -EUCLEAN: the heap has IDs of another
 * size. -ENOSPC: the heap is full. */
int h5_fractal_heap_insert(struct h5_file *file, uint64_t heap, const void *data, size_t size, uint8_t *id,
			   size_t id_size);
/* Gives the object another value, in one step, under the same ID. False in *replaced: that is not possible,
 * and nothing has changed. It is possible if neither value is managed, or both are and have the same size. */
int h5_fractal_heap_replace(struct h5_file *file, uint64_t heap, const uint8_t *id, size_t id_size,
			    const void *data, size_t size, bool *replaced);
/* Removes an object. Its space is used again by later commits. */
int h5_fractal_heap_remove(struct h5_file *file, uint64_t heap, const uint8_t *id, size_t id_size);
/* Gives up all space of the heap. */
int h5_fractal_heap_free(struct h5_file *file, uint64_t heap);

#endif

/* Fractal heap, read side: from heap ID to object. Specification III.G. */
#ifndef H5_OBJECT_FRACTAL_HEAP_H
#define H5_OBJECT_FRACTAL_HEAP_H

#include "store/file.h"

/* Copies the object of the heap ID (id_size bytes) to *data, owned by the caller. Managed, huge (direct and
 * indirect) and tiny objects, filtered heaps included. */
int h5_fractal_heap_get(struct h5_file *file, uint64_t heap, const uint8_t *id, size_t id_size,
			uint8_t **data, size_t *size);

/* Length of the heap's IDs in bytes. */
int h5_fractal_heap_id_size(struct h5_file *file, uint64_t heap, unsigned *size);

#endif

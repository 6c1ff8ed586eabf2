/* Fractal heap, read side: from heap ID to object. Specification III.G. */
#ifndef H5_OBJECT_FRACTAL_HEAP_H
#define H5_OBJECT_FRACTAL_HEAP_H

#include "base/room.h"
#include "object/damage.h"
#include "store/file.h"

/* Copies the object of the heap ID (id_size bytes) to *data, owned by the caller. Managed, huge (direct and
 * indirect) and tiny objects, filtered heaps included. `charge`: {0}; it becomes that of the copy. */
int h5_fractal_heap_get(struct h5_file *file, uint64_t heap, const uint8_t *id, size_t id_size,
			uint8_t **data, size_t *size, struct h5_charge *charge);

/* Length of the heap's IDs in bytes. */
int h5_fractal_heap_id_size(struct h5_file *file, uint64_t heap, unsigned *size);

/* Verifies all of the heap: header, every block, the index of huge objects and these themselves, and the
 * free-space manager; notes what is damaged. What the managed objects are is not looked at. */
int h5_fractal_heap_check(struct h5_file *file, uint64_t heap, struct h5_damage *damage);

#endif

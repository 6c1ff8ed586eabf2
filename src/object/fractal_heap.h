/* Reads the objects of a fractal heap by their heap IDs. Specification III.G. */
#ifndef H5_OBJECT_FRACTAL_HEAP_H
#define H5_OBJECT_FRACTAL_HEAP_H

#include "base/extents.h"
#include "base/room.h"
#include "object/damage.h"
#include "store/file.h"

#include <stdlib.h>

/* Bytes of the largest ID of links and attributes, as libhdf5 makes them. */
enum { H5_HEAP_ID_MAX = 8 };

/* A copy of an object of a heap. {0}: none. */
struct h5_heap_object {
	uint8_t *data; /* owned */
	size_t size;
	struct h5_charge charge; /* of the data */
};

/* May run twice. */
static inline void h5_heap_object_release(struct h5_heap_object *object)
{
	free(object->data);
	h5_charge_release(&object->charge);
	*object = (struct h5_heap_object){0};
}

/* Copies the object of the heap ID (id_size bytes): a managed, huge (direct or indirect) or tiny one, of a
 * filtered heap, too. After a failure *object is {0}. */
int h5_fractal_heap_get(struct h5_file *file, uint64_t heap, const uint8_t *id, size_t id_size,
			struct h5_heap_object *object);

/* Verifies all of the heap: header, every block, huge objects with their index, and the free-space manager;
 * notes what is damaged. Managed objects are not looked at. */
int h5_fractal_heap_check(struct h5_file *file, uint64_t heap, struct h5_damage *damage);

/* Visits all space of the heap: header, blocks after they were read, huge objects with their index, and the
 * free-space manager. -EUCLEAN: some of it is damaged. */
int h5_fractal_heap_extents(struct h5_file *file, uint64_t heap, h5_extent_visit *visit, void *arg);

#endif

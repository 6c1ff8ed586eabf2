/* The objects of the global heap that values refer to: data of variable length, and what references to
 * regions and attributes lead to.
 *
 * A value owns such an object: no other one refers to it. Not so with references to regions as they were
 * before libhdf5 1.12: programs copy them as bytes, so that several lead to one object. */
#ifndef H5_OBJECT_VALUE_HEAP_H
#define H5_OBJECT_VALUE_HEAP_H

#include "object/global_heap_write.h"
#include "object/value.h"

/* Called for an object, before those that the object refers to. A result that is not 0 ends the walk. */
typedef int h5_value_heap_visit(void *arg, uint64_t address, uint32_t index);

/* Visits all objects that the element at `data` refers to. -EUCLEAN: one of them cannot be read. */
int h5_value_heap_walk(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
		       h5_value_heap_visit *visit, void *arg);
/* The same with those that it owns. */
int h5_value_heap_walk_own(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			   h5_value_heap_visit *visit, void *arg);

/* Makes the element at `data` own what it has from the element `like`, and refers to as that one does: copies
 * these objects. */
int h5_value_heap_own(struct h5_heap_sink *sink, struct h5_file *file, const struct h5_datatype *type,
		      const uint8_t *like, uint8_t *data);

/* Makes the element own nothing: its parts of variable length become empty, and those references null. */
void h5_value_heap_disown(struct h5_file *file, const struct h5_datatype *type, uint8_t *data);
/* True: the element owns something. */
bool h5_value_heap_is_owner(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data);

#endif

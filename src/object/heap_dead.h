/* Objects of the global heap that nothing refers to any more. A collection all of whose objects these are is
 * given up; of another one they are taken out, if one cell can do that (object/heap_compact.h). The others
 * stay there, and their space is lost to the file.
 *
 * An object that its collection counts as referred to several times stays, and so does all of a collection
 * that some version of libhdf5 refuses. */
#ifndef H5_OBJECT_HEAP_DEAD_H
#define H5_OBJECT_HEAP_DEAD_H

#include "base/extents.h"
#include "object/heap_set.h"

struct h5_heap_dead {
	struct h5_file *file; /* borrowed */
	struct h5_heap_set set;
};

void h5_heap_dead_init(struct h5_heap_dead *dead, struct h5_file *file);
void h5_heap_dead_release(struct h5_heap_dead *dead); /* makes it empty; may run twice */
bool h5_heap_dead_is_empty(const struct h5_heap_dead *dead);

/* Adds an object; once or several times. As h5_value_heap_visit; `dead` is the struct h5_heap_dead. -EUCLEAN:
 * there can be no such object. What takes too much memory is left out, and its space is lost to the file. */
int h5_heap_dead_add(void *dead, uint64_t address, uint32_t index);
/* Something refers to the object all the same. */
int h5_heap_dead_remove(void *dead, uint64_t address, uint32_t index);

/* Takes the objects out, in one unit, to whose end what has led to them is gone, too. `visit` gives up the
 * space of whole collections, such as h5_tx_free_extent(). Readers in an swmr mount may need all of it, so
 * there nothing is taken out. */
int h5_heap_dead_give_up(struct h5_heap_dead *dead, h5_extent_visit *visit, void *arg);

#endif

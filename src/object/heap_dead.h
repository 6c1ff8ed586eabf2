/* Objects of the global heap that nothing refers to any more. A collection all of whose objects these are is
 * given up; an object in a collection that has others stays there, and its space is lost to the file: no cell
 * could take it out. */
#ifndef H5_OBJECT_HEAP_DEAD_H
#define H5_OBJECT_HEAP_DEAD_H

#include "store/file.h"

struct h5_heap_dead {
	struct h5_file *file;			/* borrowed */
	struct h5_dead_collection *collections; /* hash table */
	uint64_t most;				/* collections that there may be in the file */
};

void h5_heap_dead_init(struct h5_heap_dead *dead, struct h5_file *file);
void h5_heap_dead_release(struct h5_heap_dead *dead); /* may run twice */

/* Adds an object; once or several times. As h5_value_heap_visit; `dead` is the struct h5_heap_dead. -EUCLEAN:
 * there can be no such object. */
int h5_heap_dead_add(void *dead, uint64_t address, uint32_t index);
/* Something refers to the object all the same. */
int h5_heap_dead_remove(void *dead, uint64_t address, uint32_t index);

/* Gives up the space of collections, in one unit. */
int h5_heap_dead_give_up(struct h5_heap_dead *dead);

#endif

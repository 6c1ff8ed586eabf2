/* A set of objects of the global heap: a bit for each, by the address of its collection and its index there.
 */
#ifndef H5_OBJECT_HEAP_SET_H
#define H5_OBJECT_HEAP_SET_H

#include "store/file.h"

#include <stdbool.h>

struct h5_heap_set {
	struct h5_heap_objects *collections; /* owned; a hash table */
	uint64_t most;			     /* collections that there may be in the file */
	size_t bytes;			     /* of memory, about */
	bool is_full; /* some were left out, as they would have taken too much memory */
};

/* The objects of one collection that are in the set. */
struct h5_heap_objects;

void h5_heap_set_init(struct h5_heap_set *set, struct h5_file *file);
void h5_heap_set_release(struct h5_heap_set *set); /* makes it empty; may run twice */

/* Adds an object; once or several times. -EUCLEAN: there can be no such object. If there is no room for it,
 * it is left out, and the set is full. */
int h5_heap_set_add(struct h5_heap_set *set, uint64_t address, uint32_t index);
void h5_heap_set_remove(struct h5_heap_set *set, uint64_t address, uint32_t index);
bool h5_heap_set_has(const struct h5_heap_set *set, uint64_t address, uint32_t index);

/* Those of the collection; NULL: it has never had any in the set. Borrowed until the set changes. */
const struct h5_heap_objects *h5_heap_set_find(const struct h5_heap_set *set, uint64_t address);
bool h5_heap_objects_have(const struct h5_heap_objects *objects, uint32_t index); /* NULL: none */

/* Visits the collections. A result other than 0 ends the visits and is returned. */
typedef int h5_heap_set_visit(void *arg, uint64_t address, const struct h5_heap_objects *objects);
int h5_heap_set_each(const struct h5_heap_set *set, h5_heap_set_visit *visit, void *arg);

#endif

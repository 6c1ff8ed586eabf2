/* The free space of a fractal heap as a change of the heap sees it: pieces of its direct blocks that no
 * object has.
 *
 * The heap's free-space manager lists them. A change writes a new manager with what is left, to which the
 * heap's header switches: so at no instant does a manager list the space of an object that a record leads to.
 *
 * The bytes of an object that is removed are free only when the commit is certain, since until then a record
 * may lead to them. So the change notes the object (struct h5_removed_object), and the next change that finds
 * the note committed makes its space free. A note that is lost costs the space, and no more; libhdf5 loses it
 * when it writes a manager.
 *
 * Of many pieces the largest are kept. The others are lost to the heap, but not to its statistic of free
 * space. */
#ifndef H5_OBJECT_FRACTAL_HEAP_SPACE_H
#define H5_OBJECT_FRACTAL_HEAP_SPACE_H

#include "base/extents.h"
#include "format/free_space.h"
#include "object/fractal_heap_private.h"

enum { H5_HEAP_SECTIONS = 150, H5_HEAP_REMOVED = 100 };

struct h5_heap_space {
	struct h5_file *file;		    /* borrowed */
	uint64_t manager;		    /* header of the manager; H5_UNDEF: none */
	struct h5_free_space_header header; /* of the manager */
	struct h5_free_section sections[H5_HEAP_SECTIONS];
	unsigned count;
	bool sections_changed, note_changed;
	struct h5_removed_object removed[H5_HEAP_REMOVED];
	unsigned removed_count;
	bool is_certain;		  /* the removed objects are committed */
	size_t behind_list;		  /* bytes that are allocated behind the section list, for the note */
	uint32_t list_checksum;		  /* of the section list that the note is of */
	uint64_t state[H5_REMOVED_STATE]; /* of the heap that the note is of */
};

/* A plain struct: nothing to release. */
int h5_heap_space_load(struct h5_file *file, const struct h5_fractal_heap *heap, struct h5_heap_space *space);
/* Writes a manager if something has changed, and sets heap->free_space. Inside a unit of change. */
int h5_heap_space_store(struct h5_heap_space *space, struct h5_fractal_heap *heap);
/* Visits the manager's space. */
int h5_heap_space_extents(const struct h5_heap_space *space, h5_extent_visit *visit, void *arg);

/* Takes n bytes from the smallest section that has them. False: none has. */
bool h5_heap_space_take(struct h5_heap_space *space, uint64_t n, uint64_t *offset);
void h5_heap_space_add(struct h5_heap_space *space, uint64_t offset, uint64_t size);
void h5_heap_space_note_removed(struct h5_heap_space *space, const struct h5_removed_object *object);

#endif

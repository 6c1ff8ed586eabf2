/* A set of bytes of the file, kept as extents that neither overlap nor touch, in ascending order. */
#ifndef H5_CHANGE_EXTENTS_H
#define H5_CHANGE_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h5_extent {
	uint64_t address, size;
};

/* All zero: empty. */
struct h5_extents {
	struct h5_extent *list; /* owned */
	size_t count, capacity;
};

void h5_extents_release(struct h5_extents *extents); /* may run twice */
/* Adds the bytes, those that are there already included. -ENOMEM: nothing is added. */
int h5_extents_add(struct h5_extents *extents, uint64_t address, uint64_t size);
/* Takes the bytes out, as far as they are there. -ENOMEM: nothing is taken. */
int h5_extents_remove(struct h5_extents *extents, uint64_t address, uint64_t size);
/* The same, and never fails: without memory, more of the extent that the bytes lie in is taken out with them.
 */
void h5_extents_drop(struct h5_extents *extents, uint64_t address, uint64_t size);
bool h5_extents_covers(const struct h5_extents *extents, uint64_t address,
		       uint64_t size); /* all of the bytes */
bool h5_extents_touches(const struct h5_extents *extents, uint64_t address, uint64_t size); /* some of them */
bool h5_extents_has(const struct h5_extents *extents, uint64_t address);
/* Moves all of `from` into `to`; what memory does not suffice for is lost. `from` is empty then. */
void h5_extents_move(struct h5_extents *to, struct h5_extents *from);

#endif

/* Which bytes of a file are used, and by what: for h5fs --check and --reclaim.
 *
 * All structures are found from the superblock on, but for collections of the global heap: any element may
 * refer to one. So all that looks like a collection, in space that nothing else uses, counts as used, unless
 * all that refers to collections is known. */
#ifndef H5_OFFLINE_USAGE_H
#define H5_OFFLINE_USAGE_H

#include "base/extents.h"
#include "object/damage.h"
#include "offline/check_values.h"
#include "store/file.h"

struct h5_use;

struct h5_usage {
	struct h5_file *file; /* borrowed; the caller sets it, and all else to 0 */
	struct h5_use *uses;  /* owned */
	size_t count, capacity;
	uint64_t owner; /* whose space is added; H5_UNDEF: the file's own */
	/* Borrowed: the objects of the global heap to which something refers, if all of these are known;
	 * NULL: they are not. */
	struct h5_check_values *values;
	bool incomplete; /* something could not be read, so there may be more uses */
};

/* Adds the space of structures that belong to no object. What cannot be read is noted in `damage`. */
int h5_usage_add_own(struct h5_usage *usage, struct h5_damage *damage);
/* Adds the space of the object. */
int h5_usage_add_object(struct h5_usage *usage, uint64_t address, struct h5_damage *damage);
/* Finds the bytes, up to the end that the superblock states, that nothing uses. Notes structures that
 * overlap, and those in space that the file records as free. To be called once, if the usage is not
 * incomplete. */
int h5_usage_find_unused(struct h5_usage *usage, struct h5_damage *damage, struct h5_extents *unused);
void h5_usage_release(struct h5_usage *usage); /* may run twice */

#endif

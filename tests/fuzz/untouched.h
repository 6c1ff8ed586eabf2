/* What a file holds, object by object, so that it can be compared after something was done to the file.
 *
 * In a damaged file structures may overlap, so that a change of one object rightly changes another. Therefore
 * each object has its space noted: what a request does to one object may only be seen in objects whose space
 * overlaps with that. */
#ifndef H5_TESTS_FUZZ_UNTOUCHED_H
#define H5_TESTS_FUZZ_UNTOUCHED_H

#include "base/extents.h"
#include "walk.h"

enum { FUZZ_OBJECTS = 64 }; /* that are looked at */

struct fuzz_object {
	uint64_t address; /* of its header */
	bool is_readable; /* all of it, so that `hash` is one of all that it says, but for the rest of large
			     contents */
	uint32_t hash;
	bool is_apart; /* its contents lie nowhere but in `space` */
	/* Of the object, and of the datatypes that it uses. `whole`: all of it was found. */
	struct h5_extents space;
	bool whole;
	uint64_t *types; /* headers of these datatypes; owned */
	size_t type_count, type_capacity;
	bool touched;
};

struct fuzz_objects {
	struct fuzz_object list[FUZZ_OBJECTS]; /* the first is the root group */
	unsigned count;
	struct h5_extents own; /* space of structures that belong to no object */
	bool own_whole;
	uint64_t end; /* of the file */
	bool strange; /* a request may have changed an object of which nothing is known */
};

/* Finds the objects that hard links lead to. The caller owes fuzz_objects_release(). */
void fuzz_objects_find(struct fuzz_objects *objects, struct h5_file *file, struct fuzz_budget *budget);
void fuzz_objects_release(struct fuzz_objects *objects);
/* A request may change the object with the header at the address. */
void fuzz_objects_touch(struct fuzz_objects *objects, uint64_t address);
/* False: in a damaged file requests may have changed what opening it needs. */
bool fuzz_objects_open(const struct fuzz_objects *objects);
/* The objects that no request may change are as they were. `sound`: the file was. */
void fuzz_objects_compare(struct fuzz_objects *objects, bool sound, struct h5_file *file,
			  struct fuzz_budget *budget);

#endif

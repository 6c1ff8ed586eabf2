/* Between the files of h5fs --check: check.c goes from object to object, check_object.c looks at each. */
#ifndef H5_OFFLINE_CHECK_PRIVATE_H
#define H5_OFFLINE_CHECK_PRIVATE_H

#include "base/seen.h"
#include "object/damage.h"
#include "offline/check.h"

struct h5_checker {
	struct h5_file *file;
	struct h5_check *check;
	const char *path;	 /* of what is looked at */
	struct h5_damage damage; /* hears of all damage */
	void *walk;		 /* check.c's */
	struct h5_seen heaps;	 /* global heap collections that were looked at */
};

/* All that belongs to the object, but for what its links lead to. */
int h5_check_object(struct h5_checker *c, uint64_t address);
/* A hard link of the object that is looked at, in check.c. */
int h5_check_link(struct h5_checker *c, const char *name, size_t size, uint64_t address);

#endif

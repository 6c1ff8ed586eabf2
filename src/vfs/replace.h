/* What a rename of a plain file onto another dataset does: the contents change, and the dataset stays. */
#ifndef H5_VFS_REPLACE_H
#define H5_VFS_REPLACE_H

#include "vfs/private.h"

/* What else changes when contents do. */
struct h5_also {
	int (*run)(void *arg); /* in a unit */
	void *arg;
};

/* Makes the contents of the dataset at `to` those of the one at `from`; `also` (NULL: nothing) changes in the
 * same unit. With the exclusive lock, in a change, outside of units. -EINVAL: they do not fit its type or its
 * shape, -EPERM: it cannot be written. On failure all is as it was, but if the elements are in other files, a
 * part of them may have changed. */
int h5_replace_contents(struct h5_vfs *vfs, uint64_t from, uint64_t to, const struct h5_also *also);

#endif

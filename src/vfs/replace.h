/* What a rename of a plain file onto another dataset does: the contents change, and the dataset stays. */
#ifndef H5_VFS_REPLACE_H
#define H5_VFS_REPLACE_H

#include "vfs/private.h"

/* Makes the contents of the dataset at `to` those of the one at `from`. With the exclusive lock, in a change,
 * outside of units. -EINVAL: they do not fit its type or its shape, -EPERM: it cannot be written; then it is
 * as it was. After other failures a part of it may have changed. */
int h5_replace_contents(struct h5_vfs *vfs, uint64_t from, uint64_t to);

#endif

/* What a mount shows, as one number. */
#ifndef H5_TESTS_VFS_DIGEST_H
#define H5_TESTS_VFS_DIGEST_H

#include "vfs/vfs.h"

/* A hash of the names, contents, sizes, counts of names, extended attributes and targets of symlinks of all
 * that is in the tree; times and what is below `.h5fs` do not count. */
int vfs_digest(struct h5_vfs *vfs, uint64_t *digest);

#endif

/* Virtual datasets on a mount for writing. Their sizes depend on their sources, so they are decoded again
 * after each change. */
#ifndef H5_VFS_FOLLOWERS_H
#define H5_VFS_FOLLOWERS_H

#include "vfs/private.h"

/* Remembers a virtual dataset. With the lock. */
int h5_followers_add(struct h5_vfs *vfs, const struct h5_node *node);
/* Forgets what was decoded of them. With the exclusive lock. */
void h5_followers_forget(struct h5_vfs *vfs);
void h5_followers_free(struct h5_vfs *vfs);

#endif

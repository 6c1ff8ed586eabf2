/* Files that have grown, while the kernel may have stale pages of them: h5_vfs_tell_size(). */
#ifndef H5_VFS_GROWTH_H
#define H5_VFS_GROWTH_H

#include "vfs/private.h"

/* After a file has grown. If the kernel may have stale pages, hides the new size from the kernel, and returns
 * the offset from which on they are stale; else H5_NOT_STALE. With the exclusive lock, so no other request
 * has seen the new size. */
uint64_t h5_growth_hide(struct h5_vfs *vfs, struct h5_node *node, uint64_t before, uint64_t offset,
			bool truncated);
/* True: the kernel may have pages of the file. */
static inline bool h5_growth_is_watched(struct h5_vfs *vfs, const struct h5_node *node)
{
	bool watched;

	pthread_mutex_lock(&vfs->lock);
	watched = node->cached;
	pthread_mutex_unlock(&vfs->lock);
	return watched;
}

#endif

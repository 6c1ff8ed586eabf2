#include "vfs/growth.h"

#include "base/checked.h"

#include <assert.h>

uint64_t h5_growth_hide(struct h5_vfs *vfs, struct h5_node *node, uint64_t before, uint64_t offset,
			bool truncated)
{
	uint64_t stale = H5_NOT_STALE;

	pthread_mutex_lock(&vfs->lock);
	if (node->cached && !(truncated && node->mapped)) {
		node->told_size = node->growing ? h5_min(node->told_size, before) : before;
		node->growing++;
		stale = h5_min(before, offset);
	}
	pthread_mutex_unlock(&vfs->lock);
	return stale;
}

uint64_t h5_vfs_size_limit(struct h5_vfs *vfs, const struct h5_node *node)
{
	uint64_t limit;

	pthread_mutex_lock(&vfs->lock);
	limit = node->growing ? node->told_size : UINT64_MAX;
	pthread_mutex_unlock(&vfs->lock);
	return limit;
}

void h5_vfs_tell_size(struct h5_vfs *vfs, struct h5_node *node)
{
	pthread_mutex_lock(&vfs->lock);
	assert(node->growing);
	node->growing--;
	pthread_mutex_unlock(&vfs->lock);
}

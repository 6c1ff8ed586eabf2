#include "vfs/followers.h"

#include <stdlib.h>

/* A virtual dataset. */
struct h5_follower {
	struct {
		struct h5_file *file;
		uint64_t address;
	} key;
	UT_hash_handle hh;
};

int h5_followers_add(struct h5_vfs *vfs, const struct h5_node *node)
{
	struct h5_follower *follower = NULL, *new;
	int rc = 0;

	if (!vfs->options.writable)
		return 0;
	new = calloc(1, sizeof *new);
	if (!new)
		return -ENOMEM;
	new->key.file = node->entity.file;
	new->key.address = node->entity.address;
	pthread_mutex_lock(&vfs->lock);
	HASH_FIND(hh, vfs->followers, &new->key, sizeof new->key, follower);
	if (!follower) {
		HASH_ADD(hh, vfs->followers, key, sizeof new->key, new);
		rc = new->hh.tbl ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&vfs->lock);
	if (follower || rc)
		free(new);
	return rc;
}

/* The lock is exclusive, so no other thread adds one. */
void h5_followers_forget(struct h5_vfs *vfs)
{
	struct h5_follower *follower, *next;

	HASH_ITER(hh, vfs->followers, follower, next)
	h5_lru_forget(vfs->blocks, h5_file_number(follower->key.file), follower->key.address, NULL);
}

void h5_followers_free(struct h5_vfs *vfs)
{
	struct h5_follower *follower, *next;

	HASH_ITER(hh, vfs->followers, follower, next)
	{
		HASH_DEL(vfs->followers, follower);
		free(follower);
	}
}

#include "store/followers.h"

#include "base/error.h"
#include "base/hash_table.h"
#include "base/lru.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

struct follower {
	struct {
		struct h5_file *file;
		uint64_t address;
	} key;
	UT_hash_handle hh;
};

struct h5_followers {
	pthread_mutex_t lock;
	struct follower *all; /* hash table, guarded by lock */
};

struct h5_followers *h5_followers_new(void)
{
	struct h5_followers *followers = calloc(1, sizeof *followers);

	if (followers)
		pthread_mutex_init(&followers->lock, NULL);
	return followers;
}

void h5_followers_free(struct h5_followers *followers)
{
	struct follower *follower, *next;

	if (!followers)
		return;
	HASH_ITER(hh, followers->all, follower, next)
	{
		HASH_DEL(followers->all, follower);
		free(follower);
	}
	h5_mutex_destroy(&followers->lock);
	free(followers);
}

int h5_followers_add(struct h5_followers *followers, struct h5_file *file, uint64_t address)
{
	struct follower *known = NULL, *new;
	bool added = false;

	if (!followers)
		return 0;
	new = calloc(1, sizeof *new);
	if (!new)
		return h5_fail(-ENOMEM, address, "out of memory");
	new->key.file = file;
	new->key.address = address;
	pthread_mutex_lock(&followers->lock);
	HASH_FIND(hh, followers->all, &new->key, sizeof new->key, known);
	if (!known) {
		HASH_ADD(hh, followers->all, key, sizeof new->key, new);
		added = new->hh.tbl;
	}
	pthread_mutex_unlock(&followers->lock);
	if (!added)
		free(new);
	return known || added ? 0 : h5_fail(-ENOMEM, address, "out of memory");
}

void h5_followers_forget(struct h5_followers *followers)
{
	struct follower *follower, *next;

	if (!followers)
		return;
	pthread_mutex_lock(&followers->lock);
	HASH_ITER(hh, followers->all, follower, next)
	h5_lru_forget(h5_file_shared(follower->key.file)->blocks, h5_file_number(follower->key.file),
		      follower->key.address, NULL);
	pthread_mutex_unlock(&followers->lock);
}

#include "fuse/commit.h"

#include "base/error.h"
#include "base/thread.h"
#include "fuse/log.h"
#include "vfs/vfs.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { DELAY = 5 }; /* seconds after the first change */

struct h5_committer {
	struct h5_vfs *vfs; /* borrowed */
	pthread_t thread;
	pthread_mutex_t lock; /* guards all below; nothing is locked under it */
	pthread_cond_t changed;
	bool wanted, ended;
};

/* True: it has failed, but may succeed later. */
static bool commit(struct h5_vfs *vfs)
{
	int rc;

	h5_error_clear();
	rc = h5_vfs_commit(vfs);
	if (rc)
		h5_log_failure("commit", rc, NULL);
	return rc && rc != -EROFS;
}

static void *run(void *arg)
{
	struct h5_committer *c = arg;
	struct timespec until;
	bool again;

	pthread_mutex_lock(&c->lock);
	while (!c->ended) {
		if (!c->wanted) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += DELAY;
		while (!c->ended && !pthread_cond_timedwait(&c->changed, &c->lock, &until))
			;
		if (c->ended)
			break;
		c->wanted = false;
		pthread_mutex_unlock(&c->lock);
		again = commit(c->vfs);
		pthread_mutex_lock(&c->lock);
		c->wanted |= again;
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int h5_committer_start(struct h5_vfs *vfs, struct h5_committer **out)
{
	struct h5_committer *c = calloc(1, sizeof *c);
	int rc;

	if (!c)
		return -ENOMEM;
	c->vfs = vfs;
	pthread_mutex_init(&c->lock, NULL);
	h5_thread_cond_init(&c->changed);
	rc = h5_thread_start(&c->thread, run, c, 0);
	if (rc) {
		free(c);
		return rc;
	}
	*out = c;
	return 0;
}

void h5_committer_want(struct h5_committer *c)
{
	pthread_mutex_lock(&c->lock);
	if (!c->wanted) {
		c->wanted = true;
		pthread_cond_signal(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
}

void h5_committer_stop(struct h5_committer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ended = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

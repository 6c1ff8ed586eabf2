#include "fuse/commit.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/thread.h"
#include "fuse/log.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DELAY = 5 }; /* seconds after the first change */

struct h5_committer {
	struct h5_vfs *vfs; /* borrowed */
	pthread_t thread;
};

static void *run(void *arg)
{
	struct h5_vfs *vfs = ((struct h5_committer *)arg)->vfs;

	while (h5_vfs_await_change(vfs, DELAY)) {
		int rc;

		h5_error_clear();
		rc = h5_vfs_commit(vfs);
		if (rc)
			h5_log_failure("commit", rc, NULL);
		rc = h5_vfs_give_back(vfs);
		if (rc)
			h5_log_failure("giving space back", rc, NULL);
	}
	return NULL;
}

int h5_committer_start(struct h5_vfs *vfs, struct h5_committer **out)
{
	struct h5_committer *c = malloc(sizeof *c);
	int rc;

	if (!c)
		return -ENOMEM;
	c->vfs = vfs;
	rc = h5_thread_start(&c->thread, run, c, 0);
	if (rc) {
		free(c);
		return rc;
	}
	*out = c;
	return 0;
}

void h5_committer_stop(struct h5_committer *c)
{
	if (!c)
		return;
	h5_vfs_await_none(c->vfs);
	pthread_join(c->thread, NULL);
	free(c);
}

int h5_commit_rest(struct h5_vfs *vfs, const char *file)
{
	int rc;

	h5_interrupt_begin(NULL, NULL);
	h5_error_clear();
	rc = h5_vfs_finish(vfs);
	if (rc)
		h5_log("%s: what was written last is lost: %s", file,
		       h5_error_last()->code == rc ? h5_error_last()->text : strerror(-rc));
	return rc;
}

#include "fuse/watch.h"

#include "base/buf.h"
#include "base/checked.h"
#include "base/thread.h"
#include "fuse/log.h"
#include "fuse/request.h"
#include "tree/tree.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
	ASK = SIGUSR1,	     /* signal that asks for statistics; blocked by h5_signals_begin() */
	TEXT_MOST = 1 << 12, /* most bytes of the statistics */
};

struct h5_watch {
	struct h5_mount *mount;
	struct h5_unmounter *unmounter;
	unsigned idle;
	pthread_t thread;
	atomic_bool ended;
};

static void log_statistics(const struct h5_mount *m)
{
	struct h5_buf text;

	h5_buf_init(&text, TEXT_MOST);
	if (!(m->tree ? h5_tree_statistics(m->tree, &text) : h5_vfs_statistics(m->vfs, &text)))
		h5_log("statistics: %.*s", (int)text.size, text.data);
	h5_buf_release(&text);
}

/* Seconds that the mount may still be idle; 0: it was idle for long enough. */
static time_t time_left(const struct h5_watch *w)
{
	time_t last = atomic_load_explicit(&w->mount->last_request, memory_order_relaxed);
	struct timespec now;
	int64_t left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left = (int64_t)w->idle + 1 - (now.tv_sec - last);
	return left > 0 ? (time_t)h5_min((uint64_t)left, INT32_MAX) : 0;
}

static void *run(void *arg)
{
	struct h5_watch *w = arg;
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, ASK);
	for (;;) {
		struct timespec wait = {.tv_sec = w->idle ? time_left(w) : 0};

		if (w->idle && !wait.tv_sec) {
			/* If it is in use nevertheless, by an open file or a shell inside, it stays. */
			h5_unmounter_try(w->unmounter);
			wait.tv_sec = (time_t)w->idle;
		}
		got = sigtimedwait(&set, NULL, w->idle ? &wait : NULL);
		if (atomic_load(&w->ended))
			return NULL;
		if (got == ASK)
			log_statistics(w->mount);
	}
}

int h5_watch_start(struct h5_mount *mount, struct h5_unmounter *unmounter, unsigned idle,
		   struct h5_watch **out)
{
	struct h5_watch *w = calloc(1, sizeof *w);
	int rc;

	if (!w)
		return -ENOMEM;
	w->mount = mount;
	w->unmounter = unmounter;
	w->idle = idle;
	h5_request_touch(mount);
	rc = h5_thread_start(&w->thread, run, w, 0);
	if (rc) {
		free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void h5_watch_stop(struct h5_watch *w)
{
	if (!w)
		return;
	atomic_store(&w->ended, true);
	pthread_kill(w->thread, ASK);
	pthread_join(w->thread, NULL);
	free(w);
}

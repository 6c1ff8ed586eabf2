#include "fuse/invalidate.h"

#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#define WAKE (SIGRTMIN + 1)

enum {
	AGAIN = 50000000, /* nanoseconds until the main thread is woken up once more */
};

struct item {
	struct h5_stale stale;
	struct item *prev, *next;
};

struct h5_invalidator {
	struct fuse_session *session; /* borrowed */
	struct h5_vfs *vfs;	      /* borrowed; its names are to be forgotten. NULL: none are */
	pthread_t thread, main_thread;
	uint8_t *page; /* owned; of the thread */
	size_t page_size;
	sigset_t ending; /* the signals that end the mount */
	sigset_t before; /* the signals that the main thread had blocked */
	struct sigaction wake_before;
	pthread_mutex_t lock; /* guards all below; nothing is locked under it */
	struct item *items;
	fuse_ino_t storing; /* the file whose new size we tell, but the kernel perhaps does not have yet; 0:
			       none */
	bool closed;	    /* the invalidator drops no more pages */
	bool stopped;	    /* the session has ended */
};

/* ---- requests ---- */

static void reply(struct h5_stale *stale)
{
	if (stale->from != H5_NOT_STALE)
		h5_vfs_tell_size(stale->r.in.vfs, stale->r.in.node);
	stale->reply(&stale->r, stale->written);
}

static void set_storing(struct h5_invalidator *v, fuse_ino_t ino)
{
	pthread_mutex_lock(&v->lock);
	v->storing = ino;
	pthread_mutex_unlock(&v->lock);
}

/* Reads the last page of the file, up to the file's end; 0: there is none. */
static size_t read_end(struct h5_invalidator *v, const struct h5_stale *stale, uint64_t *begin)
{
	struct stat st;
	size_t n;

	if (!v->page || h5_vfs_getattr(stale->r.in.vfs, stale->r.in.node, &st) || st.st_size <= 0)
		return 0;
	*begin = (uint64_t)(st.st_size - 1) / v->page_size * v->page_size;
	return h5_vfs_read(stale->handle, *begin, v->page, v->page_size, &n) ? 0 : n;
}

/* The kernel learns the new size of a file when the writer runs again. If another program asks for attributes
 * before that, the kernel takes the size from these and clears its pages behind it, even if the file has
 * grown more meanwhile. So it is given the size before the reply, and no other size until then. It takes a
 * size only with data. These are a whole page: if they were a part of it, the kernel might complete the page
 * with old bytes. */
static void drop_and_reply(struct h5_invalidator *v, struct h5_stale *stale)
{
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(0);
	uint64_t begin = 0;

	/* Both fail if the kernel does not have the file any more. */
	fuse_lowlevel_notify_inval_inode(v->session, stale->r.ino, (off_t)stale->from, 0);
	data.buf[0].size = stale->handle ? read_end(v, stale, &begin) : 0;
	data.buf[0].mem = v->page;
	set_storing(v, data.buf[0].size ? stale->r.ino : 0);
	h5_vfs_tell_size(stale->r.in.vfs, stale->r.in.node);
	if (data.buf[0].size)
		fuse_lowlevel_notify_store(v->session, stale->r.ino, (off_t)begin, &data, 0);
	set_storing(v, 0);
	stale->reply(&stale->r, stale->written);
}

static struct item *take(struct h5_invalidator *v)
{
	struct item *item;

	pthread_mutex_lock(&v->lock);
	item = v->items;
	if (item)
		DL_DELETE(v->items, item);
	pthread_mutex_unlock(&v->lock);
	return item;
}

/* False: there was no request. */
static bool serve_one(struct h5_invalidator *v, bool drop)
{
	struct item *item = take(v);

	if (!item)
		return false;
	if (drop && item->stale.from != H5_NOT_STALE)
		drop_and_reply(v, &item->stale);
	else
		reply(&item->stale);
	free(item);
	return true;
}

/* False: there was no name. */
static bool forget_name(struct h5_invalidator *v, bool tell)
{
	char name[NAME_MAX + 1];
	uint64_t directory;

	if (!v->vfs || !h5_vfs_take_stale_name(v->vfs, &directory, name))
		return false;
	if (!tell)
		return true;
	/* Both fail if the kernel does not have it any more. If it has no entry of that name, the first one
	 * leaves the directory's listing as it is. */
	fuse_lowlevel_notify_inval_entry(v->session, directory, name, strlen(name));
	fuse_lowlevel_notify_inval_inode(v->session, directory, 0, 0);
	return true;
}

static void wake_thread(void *arg)
{
	const struct h5_invalidator *v = arg;

	pthread_kill(v->thread, WAKE);
}

void h5_invalidator_add(struct h5_invalidator *v, struct h5_stale *stale)
{
	struct item *item = malloc(sizeof *item);
	bool closed;

	if (item)
		item->stale = *stale;
	pthread_mutex_lock(&v->lock);
	closed = v->closed || !item;
	if (!closed)
		DL_APPEND(v->items, item);
	pthread_mutex_unlock(&v->lock);
	if (!closed) {
		pthread_kill(v->thread, WAKE);
		return;
	}
	reply(stale);
	free(item);
}

bool h5_invalidator_postpone(struct h5_invalidator *v, struct h5_stale *stale)
{
	bool storing;

	pthread_mutex_lock(&v->lock);
	storing = v->storing == stale->r.ino;
	pthread_mutex_unlock(&v->lock);
	if (storing)
		h5_invalidator_add(v, stale);
	return storing;
}

/* ---- the thread ---- */

static bool is_stopped(struct h5_invalidator *v)
{
	bool stopped;

	pthread_mutex_lock(&v->lock);
	stopped = v->stopped;
	pthread_mutex_unlock(&v->lock);
	return stopped;
}

/* True: a signal that ends the mount has come. Without `timeout`: waits for any. */
static bool wait_for_signal(const struct h5_invalidator *v, const struct timespec *timeout)
{
	sigset_t set = v->ending;
	int n;

	sigaddset(&set, WAKE);
	n = sigtimedwait(&set, NULL, timeout);
	return n > 0 && n != WAKE;
}

static void close_queue(struct h5_invalidator *v)
{
	pthread_mutex_lock(&v->lock);
	v->closed = true;
	pthread_mutex_unlock(&v->lock);
	while (serve_one(v, false) || forget_name(v, false))
		;
}

/* The main thread may get the signal just before it begins to wait, so it gets more of them. */
static void end_session(struct h5_invalidator *v)
{
	const struct timespec again = {.tv_nsec = AGAIN};

	fuse_session_exit(v->session);
	while (!is_stopped(v)) {
		pthread_kill(v->main_thread, WAKE);
		wait_for_signal(v, &again);
	}
}

static void *run(void *arg)
{
	const struct timespec none = {0};
	struct h5_invalidator *v = arg;
	bool busy = false, ended = false;

	while (!ended && !is_stopped(v)) {
		ended = wait_for_signal(v, busy ? &none : NULL);
		busy = !ended && (forget_name(v, true) || serve_one(v, true));
	}
	close_queue(v);
	if (ended)
		end_session(v);
	return NULL;
}

/* ---- begin and end ---- */

static void wake(int number)
{
	(void)number;
}

/* Finds the signals that end the mount: not those that the program which has started us ignores. */
static void find_signals(struct h5_invalidator *v)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
	struct sigaction action;

	sigemptyset(&v->ending);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&v->ending, numbers[i]);
}

static int start_thread(struct h5_invalidator *v)
{
	sigset_t all, served;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &v->before);
	rc = pthread_create(&v->thread, NULL, run, v);
	served = v->before;
	for (int number = 1; !rc && number < NSIG; number++)
		if (sigismember(&v->ending, number) == 1)
			sigaddset(&served, number);
	pthread_sigmask(SIG_SETMASK, &served, NULL);
	return -rc;
}

int h5_invalidator_start(struct fuse_session *session, struct h5_vfs *vfs, struct h5_invalidator **out)
{
	struct h5_invalidator *v = calloc(1, sizeof *v);
	struct sigaction action = {.sa_handler = wake};
	int rc;

	if (!v)
		return -ENOMEM;
	v->session = session;
	v->vfs = vfs;
	v->main_thread = pthread_self();
	pthread_mutex_init(&v->lock, NULL);
	v->page_size = (size_t)sysconf(_SC_PAGESIZE);
	v->page = malloc(v->page_size);
	find_signals(v);
	sigaction(WAKE, &action, &v->wake_before);
	rc = start_thread(v);
	if (rc) {
		free(v->page);
		free(v);
		return rc;
	}
	if (vfs)
		h5_vfs_on_stale_names(vfs, wake_thread, v);
	*out = v;
	return 0;
}

void h5_invalidator_stop(struct h5_invalidator *v)
{
	if (!v)
		return;
	if (v->vfs)
		h5_vfs_on_stale_names(v->vfs, NULL, NULL);
	pthread_mutex_lock(&v->lock);
	v->stopped = true;
	pthread_mutex_unlock(&v->lock);
	pthread_kill(v->thread, WAKE);
	pthread_join(v->thread, NULL);
	assert(!v->items);
	pthread_sigmask(SIG_SETMASK, &v->before, NULL);
	sigaction(WAKE, &v->wake_before, NULL);
	h5_mutex_destroy(&v->lock);
	free(v->page);
	free(v);
}

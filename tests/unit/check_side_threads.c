/* The threads beside those that serve: one commits, one closes files, one looks how long the mount is idle
 * and logs statistics. */
#include "base/error.h"
#include "base/interrupt.h"
#include "base/thread.h"
#include "fuse/closer.h"
#include "fuse/commit.h"
#include "fuse/log.h"
#include "fuse/operations.h"
#include "fuse/unmounter.h"
#include "fuse/watch.h"
#include "tree/tree.h"
#include "unit.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct {
	bool no_memory, no_thread;
	unsigned changes;     /* that come; then nothing is awaited any more */
	int rc, give_back_rc; /* of a commit */
	bool with_text;	      /* the error has one */
	sem_t over;	      /* nothing is awaited any more */
	sem_t taken;	      /* all changes were */
	time_t now;
	int statistics_rc;
} scene;

/* What the thread that waits for signals gets, one after the other; then it waits for the end. */
static struct wait {
	int64_t seconds; /* that it wants to wait; -1: any time */
	int got;	 /* the signal; 0: none comes, and the time passes */
	unsigned after;	 /* seconds until it comes */
	bool request;	 /* one comes, too */
} const *waits;
static unsigned waits_left;

static char trace[600], said[600];
static struct h5_mount mount;
static struct h5_vfs *const vfs = (struct h5_vfs *)&scene;
static struct h5_tree *const tree = (struct h5_tree *)&mount;

static void note(const char *text)
{
	size_t n = strlen(trace);

	snprintf(trace + n, sizeof trace - n, "%s%s", n ? " " : "", text);
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard);
int __wrap_h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *wait);
int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *wait);

void *__wrap_malloc(size_t n)
{
	return scene.no_memory ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return scene.no_memory ? NULL : __real_calloc(n, size);
}

int __wrap_h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard)
{
	ck_assert_int_eq(heard, 0);
	return scene.no_thread ? -EAGAIN : __real_h5_thread_start(thread, run, arg, heard);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!scene.now)
		return __real_clock_gettime(clock, now);
	ck_assert(clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE);
	*now = (struct timespec){.tv_sec = scene.now, .tv_nsec = 999999999};
	return 0;
}

int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *wait)
{
	const struct wait *w = waits;

	for (int number = 1; number < SIGRTMIN; number++)
		ck_assert_int_eq(sigismember(set, number), number == SIGUSR1);
	ck_assert_ptr_null(info);
	if (!waits_left) {
		sem_post(&scene.over);
		return __real_sigtimedwait(set, info, NULL);
	}
	waits++;
	waits_left--;
	ck_assert_int_eq(wait ? (int64_t)wait->tv_sec : -1, w->seconds);
	scene.now += w->after;
	if (w->request)
		atomic_store(&mount.last_request, scene.now);
	errno = EAGAIN;
	return w->got ? w->got : -1;
}

void h5_log(const char *format, ...)
{
	va_list args;
	size_t n = strlen(said);

	va_start(args, format);
	vsnprintf(said + n, sizeof said - n, format, args);
	va_end(args);
	strcat(said, "; ");
}

void h5_log_failure(const char *what, int code, const char *path)
{
	ck_assert_ptr_null(path);
	h5_log("%s: %s", what, h5_error_last()->code == code ? h5_error_last()->text : strerror(-code));
}

void h5_unmounter_try(struct h5_unmounter *u)
{
	ck_assert_ptr_eq(u, (struct h5_unmounter *)&trace);
	note("try");
}

/* ---- the engine ---- */

bool h5_vfs_await_change(struct h5_vfs *v, unsigned seconds)
{
	ck_assert(v == vfs && seconds == 5);
	if (scene.changes) {
		scene.changes--;
		return true;
	}
	sem_post(&scene.taken);
	sem_wait(&scene.over);
	return false;
}

void h5_vfs_await_none(struct h5_vfs *v)
{
	ck_assert_ptr_eq(v, vfs);
	note("await-none");
	sem_post(&scene.over);
}

static bool never(void *arg)
{
	return arg;
}

static int commit(const char *what)
{
	note(what);
	/* What failed before is not told again. */
	ck_assert_int_eq(h5_error_last()->code, 0);
	if (scene.with_text)
		(void)h5_fail(scene.rc, H5_UNDEF, "why");
	return scene.rc;
}

int h5_vfs_commit(struct h5_vfs *v)
{
	ck_assert_ptr_eq(v, vfs);
	return commit("commit");
}

int h5_vfs_give_back(struct h5_vfs *v)
{
	ck_assert_ptr_eq(v, vfs);
	note("give-back");
	return scene.give_back_rc;
}

int h5_vfs_finish(struct h5_vfs *v)
{
	struct h5_interrupt now;

	ck_assert_ptr_eq(v, vfs);
	h5_interrupt_get(&now);
	ck_assert(!now.ask && !now.arg);
	return commit("finish");
}

int h5_vfs_statistics(struct h5_vfs *v, struct h5_buf *out)
{
	ck_assert_ptr_eq(v, vfs);
	h5_buf_add(out, "numbers of a file", 17);
	return scene.statistics_rc;
}

int h5_tree_statistics(struct h5_tree *t, struct h5_buf *out)
{
	ck_assert_ptr_eq(t, tree);
	h5_buf_add(out, "numbers of a folder", 19);
	return scene.statistics_rc;
}

bool h5_tree_close_idle(struct h5_tree *t)
{
	ck_assert_ptr_eq(t, tree);
	if (scene.changes) {
		scene.changes--;
		note("close");
		return true;
	}
	sem_post(&scene.taken);
	sem_wait(&scene.over);
	return false;
}

void h5_tree_await_none(struct h5_tree *t)
{
	ck_assert_ptr_eq(t, tree);
	note("await-none");
	sem_post(&scene.over);
}

static void begin(void)
{
	sigset_t set;

	memset(&scene, 0, sizeof scene);
	memset(trace, 0, sizeof trace);
	memset(said, 0, sizeof said);
	sem_init(&scene.over, 0, 0);
	sem_init(&scene.taken, 0, 0);
	h5_error_clear();
	/* As the daemon does it. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* ---- threads that cannot start ---- */

START_TEST(nothing_starts)
{
	for (unsigned i = 0; i < 2; i++) {
		const int rc = i ? -EAGAIN : -ENOMEM;
		struct h5_committer *committer = NULL;
		struct h5_closer *closer = NULL;
		struct h5_watch *watch = NULL;
		int rcs[3];

		begin();
		scene.no_memory = !i;
		scene.no_thread = i;
		rcs[0] = h5_committer_start(vfs, &committer);
		rcs[1] = h5_closer_start(tree, &closer);
		rcs[2] = h5_watch_start(&mount, NULL, 0, &watch);
		scene.no_memory = false;
		ck_assert(rcs[0] == rc && rcs[1] == rc && rcs[2] == rc);
		ck_assert(!committer && !closer && !watch);
		h5_committer_stop(committer);
		h5_closer_stop(closer);
		h5_watch_stop(watch);
		ck_assert_str_eq(trace, "");
	}
}
END_TEST

/* ---- commits ---- */

/* After each change space is given back, also if the commit has failed: the next one may succeed by that. */
START_TEST(changes_are_committed)
{
	static const struct {
		int rc, give_back_rc;
		bool with_text;
		const char *said;
	} cases[] = {
		{0, 0, false, ""},
		{-EIO, 0, false, "commit: Input/output error; commit: Input/output error; "},
		{-EIO, 0, true, "commit: why; commit: why; "},
		{0, -ENOSPC, false,
		 "giving space back: No space left on device; giving space back: No space left on device; "},
		{-EIO, -ENOSPC, true,
		 "commit: why; giving space back: No space left on device; commit: why; giving space "
		 "back: No space left on device; "}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_committer *committer;

		begin();
		scene.changes = 2;
		scene.rc = cases[i].rc;
		scene.give_back_rc = cases[i].give_back_rc;
		scene.with_text = cases[i].with_text;
		ck_assert_int_eq(h5_committer_start(vfs, &committer), 0);
		sem_wait(&scene.taken);
		h5_committer_stop(committer);
		ck_assert_str_eq(said, cases[i].said);
		ck_assert_str_eq(trace, "commit give-back commit give-back await-none");
	}
}
END_TEST

/* Nothing ends the last commit; that it has failed is told with the name of the file. */
START_TEST(the_last_commit)
{
	for (unsigned i = 0; i < 3; i++) {
		begin();
		scene.rc = i ? -EIO : 0;
		scene.with_text = i == 2;
		(void)h5_fail(-EIO, H5_UNDEF, "before");
		h5_interrupt_begin(never, &scene);
		ck_assert_int_eq(h5_commit_rest(vfs, "x.h5"), scene.rc);
		ck_assert_str_eq(trace, "finish");
		ck_assert_str_eq(said, i == 0	? ""
				       : i == 1 ? "x.h5: what was written last is lost: Input/output error; "
						: "x.h5: what was written last is lost: why; ");
	}
}
END_TEST

/* ---- files that close ---- */

START_TEST(files_are_closed)
{
	struct h5_closer *closer;

	begin();
	scene.changes = 3;
	ck_assert_int_eq(h5_closer_start(tree, &closer), 0);
	sem_wait(&scene.taken);
	h5_closer_stop(closer);
	ck_assert_str_eq(trace, "close close close await-none");
}
END_TEST

/* ---- idle mounts, and statistics ---- */

static void watch(unsigned idle, const struct wait *list, unsigned n)
{
	struct h5_watch *w;

	scene.now = 1000;
	waits = list;
	waits_left = n;
	ck_assert_int_eq(h5_watch_start(&mount, (struct h5_unmounter *)&trace, idle, &w), 0);
	sem_wait(&scene.over);
	h5_watch_stop(w);
	scene.now = 0; /* libcheck looks at the clock, too */
	ck_assert_uint_eq(waits_left, 0);
}

/* A second more than asked for, since the last request may have come at the end of its second. */
START_TEST(idle_mounts)
{
	static const struct wait list[] = {
		{61, 0, 10, true},			   /* a request 10 s later */
		{61, 0, 30, false},			   /* it was woken up too early */
		{31, 0, 31, false},			   /* idle: it tries */
		{60, 0, 60, false},			   /* and again */
		{60, 0, 5, true},			   /* somebody has used it */
		{61, 0, 60, false},	 {1, 0, 1, false}, /* it tries */
		{60, SIGUSR1, 1, false},		   /* and again after statistics */
	};
	static const struct wait long_time[] = {{INT32_MAX, 0, 1, false}};

	begin();
	mount = (struct h5_mount){.vfs = vfs};
	watch(60, list, sizeof list / sizeof *list);
	ck_assert_str_eq(trace, "try try try try");
	ck_assert_str_eq(said, "statistics: numbers of a file; ");
	ck_assert_int_eq(mount.last_request, 1000 + 10 + 30 + 31 + 60 + 5);
	begin();
	watch(UINT32_MAX, long_time, 1);
	ck_assert_str_eq(trace, "");
}
END_TEST

START_TEST(statistics)
{
	static const struct wait list[] = {
		{-1, SIGUSR1, 1, false}, {-1, 0, 1, false}, {-1, SIGUSR1, 1000, false}};

	for (unsigned i = 0; i < 4; i++) {
		begin();
		mount = (struct h5_mount){.vfs = i & 1 ? NULL : vfs, .tree = i & 1 ? tree : NULL};
		scene.statistics_rc = i & 2 ? -ENOMEM : 0;
		watch(0, list, 3);
		ck_assert_str_eq(trace, "");
		ck_assert_str_eq(said, i & 2   ? ""
				       : i & 1 ? "statistics: numbers of a folder; statistics: numbers of a "
						 "folder; "
					       : "statistics: numbers of a file; statistics: numbers of a "
						 "file; ");
	}
}
END_TEST

UNIT_MAIN("side_threads", nothing_starts, changes_are_committed, the_last_commit, files_are_closed,
	  idle_mounts, statistics)

/* All that the daemon calls: it is only noted. */
#ifndef H5_TESTS_DAEMON_SCENE_H
#define H5_TESTS_DAEMON_SCENE_H

#include "base/error.h"
#include "base/interrupt.h"
#include "base/wait.h"
#include "change/new_file.h"
#include "fuse/background.h"
#include "fuse/closer.h"
#include "fuse/commit.h"
#include "fuse/daemon.h"
#include "fuse/invalidate.h"
#include "fuse/io_uring.h"
#include "fuse/log.h"
#include "fuse/loop.h"
#include "fuse/mountpoint.h"
#include "fuse/negotiate.h"
#include "fuse/opening.h"
#include "fuse/operations.h"
#include "fuse/readahead.h"
#include "fuse/report.h"
#include "fuse/sandbox.h"
#include "fuse/signals.h"
#include "fuse/status.h"
#include "fuse/tree_operations.h"
#include "fuse/unmounter.h"
#include "fuse/watch.h"
#include "store/file.h"
#include "trace.h"
#include "tree/tree.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The descriptors that there are. */
enum { ROOT = 900, FILE_FD, DEVICES, JOURNALS, FOLDER, MADE };

/* What the calls are told. */
static struct {
	const char *fails; /* the step that fails; NULL: none */
	int error;	   /* of that */
	bool locked, marked, grows, unnamed;
	bool refuses_rings;
	int served; /* what serving gives */
} scene;

static char said[512];
static struct h5_options options;
static struct h5_file_shared shared;

/* True: the step fails. */
static bool fails(const char *name)
{
	return scene.fails && !strcmp(scene.fails, name);
}

static int step(const char *name)
{
	note("%s", name);
	return fails(name) ? scene.error : 0;
}

/* ---- the C library ---- */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_access(const char *path, int mode);
int __wrap_getrlimit64(int what, struct rlimit *limit);
int __wrap_setrlimit64(int what, const struct rlimit *limit);
int __wrap_mallopt(int what, int value);
time_t __wrap_time(time_t *now);

/* No file is made through this. */
int __wrap_open64(const char *path, int flags, ...)
{
	if (!strcmp(path, "/")) {
		ck_assert_int_eq(flags, O_PATH | O_DIRECTORY | O_CLOEXEC);
		return step("open-root") ? -1 : ROOT;
	}
	if (!strcmp(path, "/sys/devices/system")) {
		ck_assert_int_eq(flags, O_PATH | O_DIRECTORY | O_CLOEXEC);
		return step("open-devices") ? -1 : DEVICES;
	}
	if (strcmp(path, "x.h5") != 0)
		return __real_open64(path, flags);
	ck_assert_int_eq(flags, O_PATH | O_CLOEXEC);
	errno = -scene.error;
	return step("open-statfs") ? -1 : FILE_FD;
}

int __wrap_close(int fd)
{
	if (fd < ROOT)
		return __real_close(fd);
	note("close-%s", fd == ROOT ? "root" : fd == DEVICES ? "devices" : "another");
	return 0;
}

int __wrap_access(const char *path, int mode)
{
	ck_assert_str_eq(path, "/journals");
	ck_assert_int_eq(mode, W_OK | X_OK);
	errno = EROFS;
	return step("journals");
}

int __wrap_getrlimit64(int what, struct rlimit *limit)
{
	ck_assert_int_eq(what, RLIMIT_NOFILE);
	*limit = (struct rlimit){.rlim_cur = 10, .rlim_max = 20};
	return fails("limit") ? -1 : 0;
}

int __wrap_setrlimit64(int what, const struct rlimit *limit)
{
	ck_assert_int_eq(what, RLIMIT_NOFILE);
	ck_assert(limit->rlim_cur == 20 && limit->rlim_max == 20);
	note("all-descriptors");
	return 0;
}

int __wrap_mallopt(int what, int value)
{
	if (what == M_MMAP_THRESHOLD)
		ck_assert_int_eq(value, 8 << 20);
	else if (what == M_TRIM_THRESHOLD)
		ck_assert_int_eq(value, 32 << 20);
	else
		ck_assert(what == M_ARENA_MAX && value == 1);
	note(what == M_MMAP_THRESHOLD ? "keep" : what == M_TRIM_THRESHOLD ? "trim" : "one-arena");
	return 1;
}

time_t __wrap_time(time_t *now)
{
	ck_assert_ptr_null(now);
	return 1234;
}

uid_t __wrap_getuid(void);
gid_t __wrap_getgid(void);

uid_t __wrap_getuid(void)
{
	return 7;
}

gid_t __wrap_getgid(void)
{
	return 8;
}

/* ---- libfuse; the session is a real one ---- */

static struct fuse_session *session;
static fuse_log_func_t log_function;

void __real_fuse_session_destroy(struct fuse_session *s);
void __wrap_fuse_session_destroy(struct fuse_session *s);
void __wrap_fuse_session_unmount(struct fuse_session *s);
int __wrap_fuse_set_signal_handlers(struct fuse_session *s);
void __wrap_fuse_remove_signal_handlers(struct fuse_session *s);
int __wrap_fuse_session_loop(struct fuse_session *s);
int __wrap_fuse_session_loop_mt(struct fuse_session *s, struct fuse_loop_config *config);
int __wrap_fuse_session_loop_mt_312(struct fuse_session *s, struct fuse_loop_config *config);
void __wrap_fuse_set_log_func(fuse_log_func_t log);

void __wrap_fuse_session_destroy(struct fuse_session *s)
{
	note("destroy");
	__real_fuse_session_destroy(s);
}

void __wrap_fuse_session_unmount(struct fuse_session *s)
{
	ck_assert_ptr_eq(s, session);
	note("unmount");
}

int __wrap_fuse_set_signal_handlers(struct fuse_session *s)
{
	session = s;
	return step("handlers");
}

void __wrap_fuse_remove_signal_handlers(struct fuse_session *s)
{
	ck_assert_ptr_eq(s, session);
	note("remove-handlers");
}

static int serve(const struct fuse_session *s, const char *how)
{
	ck_assert_ptr_eq(s, session);
	note("%s", how);
	return scene.served;
}

int __wrap_fuse_session_loop(struct fuse_session *s)
{
	return serve(s, "serve-alone");
}

int __wrap_fuse_session_loop_mt(struct fuse_session *s, struct fuse_loop_config *config)
{
	ck_assert_ptr_null(config);
	return serve(s, "serve-rings");
}

int __wrap_fuse_session_loop_mt_312(struct fuse_session *s, struct fuse_loop_config *config)
{
	return __wrap_fuse_session_loop_mt(s, config);
}

int h5_serve(struct fuse_session *s)
{
	return serve(s, "serve");
}

void __wrap_fuse_set_log_func(fuse_log_func_t log)
{
	note("quiet");
	log_function = log;
}

const struct fuse_lowlevel_ops h5_operations, h5_tree_operations;

/* ---- parts of src/fuse ---- */

static struct h5_unmounter *const unmounter = (struct h5_unmounter *)&scene;
static struct h5_invalidator *const invalidator = (struct h5_invalidator *)&options;
static struct h5_committer *const committer = (struct h5_committer *)&trace;
static struct h5_closer *const closer = (struct h5_closer *)&said;
static struct h5_watch *const watch = (struct h5_watch *)&shared;
static struct h5_vfs *const vfs = (struct h5_vfs *)&session;
static struct h5_tree *const tree = (struct h5_tree *)&watch;
static struct h5_file_set *const set = (struct h5_file_set *)&shared;

static void say(const char *format, va_list args)
{
	size_t n = strlen(said);

	vsnprintf(said + n, sizeof said - n, format, args);
}

void h5_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void h5_log_at(enum h5_log_level level, const char *format, ...)
{
	va_list args;

	ck_assert_int_eq(level, H5_LOG_VERBOSE);
	va_start(args, format);
	say(format, args);
	va_end(args);
	strcat(said, "; ");
}

void h5_log_to_syslog(void)
{
	note("syslog");
}

void h5_log_detach(void)
{
	note("detach-log");
}

int h5_mountpoint_find(struct h5_options *o)
{
	ck_assert_ptr_eq(o, &options);
	return step("find");
}

void h5_signals_begin(bool foreground)
{
	note(foreground ? "signals-in-front" : "signals");
}

int h5_background_begin(struct h5_background *b)
{
	int rc = step("background");

	if (!rc)
		b->ready = 5;
	return rc;
}

void h5_background_detach(struct h5_background *b)
{
	note(b->ready == 5 ? "leave" : "stay");
}

void h5_background_ready(struct h5_background *b)
{
	note(b->ready == 5 ? "ready" : "ready-in-front");
}

void h5_mountpoint_remove(const struct h5_options *o)
{
	ck_assert_ptr_eq(o, &options);
	note("remove");
}

int h5_mountpoint_mount(struct h5_options *o, struct fuse_session *s, struct h5_mounted *mounted)
{
	ck_assert(o == &options && s == session);
	*mounted = (struct h5_mounted){1, 2, 3};
	return step("mount");
}

int h5_negotiate_start(struct h5_mount *m)
{
	ck_assert(m->session == session && m->writable);
	return step("negotiate");
}

int h5_unmounter_start(struct fuse_session *s, const struct h5_options *o, const struct h5_mounted *mounted,
		       struct h5_unmounter **out)
{
	int rc = step("unmounter");

	ck_assert(s == session && o == &options && mounted->major == 1 && mounted->minor == 2);
	*out = rc ? NULL : unmounter;
	return rc;
}

void h5_unmounter_detach(struct h5_unmounter *u)
{
	ck_assert_ptr_eq(u, unmounter);
	note("apart");
}

void h5_unmounter_abort(struct h5_unmounter *u)
{
	ck_assert_ptr_eq(u, unmounter);
	note("abort");
}

void h5_unmounter_stop(struct h5_unmounter *u, struct fuse_session *s)
{
	ck_assert_ptr_eq(s, session);
	note(u ? "end-unmounter" : "end-no-unmounter");
}

int h5_readahead_open(const struct h5_mounted *mounted)
{
	ck_assert(mounted->major == 1 && mounted->minor == 2);
	note("readahead");
	return 77;
}

void h5_io_uring_prepare(const struct h5_mount *m)
{
	note(m->io_uring ? "rings" : "no-rings");
}

void h5_io_uring_start(struct h5_mount *m, fuse_log_func_t log)
{
	ck_assert(!log == options.debug);
	ck_assert(!log || !log_function || log == log_function);
	note("start-rings");
	m->io_uring &= !scene.refuses_rings;
}

static const char *name_of(int fd)
{
	static const char *const names[] = {"root", "file", "devices", "journals", "folder", "made"};

	return fd < 0 ? "-" : names[fd - ROOT];
}

void h5_sandbox_enter_files(const struct h5_sandbox *s)
{
	note("files(%s,%s,%s,%s,%s,%s,%s,%s)%s", name_of(s->readable), name_of(s->listed),
	     name_of(s->writable), name_of(s->journals), name_of(s->pointers), name_of(s->changed),
	     name_of(s->machine), name_of(s->made), s->terminal ? "+terminal" : "");
}

void h5_sandbox_enter_calls(const struct h5_sandbox *s)
{
	note(s->io_uring ? "calls-with-rings" : "calls");
}

int h5_closer_start(struct h5_tree *t, struct h5_closer **out)
{
	int rc = step("closer");

	ck_assert_ptr_eq(t, tree);
	*out = rc ? NULL : closer;
	return rc;
}

void h5_closer_stop(struct h5_closer *c)
{
	if (c)
		note("end-closer");
}

int h5_committer_start(struct h5_vfs *v, struct h5_committer **out)
{
	int rc = step("committer");

	ck_assert_ptr_eq(v, vfs);
	*out = rc ? NULL : committer;
	return rc;
}

void h5_committer_stop(struct h5_committer *c)
{
	if (c)
		note("end-committer");
}

int h5_invalidator_start(struct fuse_session *s, struct h5_vfs *v, struct h5_invalidator **out)
{
	int rc = step("invalidator");

	ck_assert(s == session && (!v || v == vfs));
	*out = rc ? NULL : invalidator;
	return rc;
}

void h5_invalidator_stop(struct h5_invalidator *v)
{
	if (v)
		note("end-invalidator");
}

int h5_watch_start(struct h5_mount *m, struct h5_unmounter *u, unsigned idle, struct h5_watch **out)
{
	int rc = step("watch");

	ck_assert(m->session == session && m->readahead == 77 && u == unmounter && idle == 60);
	ck_assert(m->writable == options.set.writable && m->allow_other == options.allow_other);
	ck_assert(!m->vfs == options.is_folder && !m->tree == !options.is_folder);
	note("(%s%s%s)", m->locked ? "locked" : "", m->remote ? " remote" : "",
	     m->timeout >= 24 * 3600 ? " kept"
	     : m->timeout > 0	     ? " short"
				     : "");
	ck_assert(!atomic_flag_test_and_set(&m->opened)); /* no file was opened yet */
	atomic_flag_clear(&m->opened);
	*out = rc ? NULL : watch;
	return rc;
}

void h5_watch_stop(struct h5_watch *w)
{
	if (w)
		note("end-watch");
}

/* Work that the request's end does not end. */
int h5_commit_rest(struct h5_vfs *v, const char *file)
{
	h5_interrupt_begin(NULL, NULL);
	ck_assert_ptr_eq(v, vfs);
	ck_assert_str_eq(file, "x.h5");
	return step("commit");
}

int h5_report_refusal(const struct h5_options *o, int code)
{
	const struct h5_error *e = h5_error_last();

	ck_assert_ptr_eq(o, &options);
	note("refusal");
	strcat(said, e->code == code ? e->text : strerror(-code));
	return EXIT_FILE;
}

void h5_report_warnings(const struct h5_options *o, const char *name, const struct h5_file_set *s,
			const struct h5_opened *opened)
{
	ck_assert(o == &options && s == set && opened->journal_directory == JOURNALS);
	ck_assert_str_eq(name, "x.h5");
	note("warnings");
}

bool h5_report_is_marked(const struct h5_file *file)
{
	ck_assert_ptr_eq(file, shared.root);
	return scene.marked;
}

int h5_opening_start_fetcher(struct h5_options *o)
{
	int rc = step("fetcher");

	if (!rc)
		o->set.remote = (struct h5_remote *)&scene;
	return rc;
}

int h5_opening_begin(struct h5_options *o, struct h5_file_set **out, struct h5_opened *opened)
{
	int rc = step("open");

	ck_assert_int_eq(opened->journal_directory, -1);
	opened->journal_directory = JOURNALS;
	if (!rc)
		*out = set;
	if (o->url)
		o->set.remote = (struct h5_remote *)&scene;
	return rc;
}

void h5_opening_end(struct h5_options *o, struct h5_file_set *s, struct h5_opened *opened)
{
	ck_assert_ptr_eq(o, &options);
	(void)opened;
	note(s ? "close-set" : "close-none");
}

/* ---- the engine ---- */

int h5_new_file_make(const char *path, uint8_t superblock, uint32_t now)
{
	ck_assert_str_eq(path, "x.h5");
	ck_assert(superblock == 3 && now == 1234);
	return step("make");
}

int h5_file_set_directory(const struct h5_file_set *s)
{
	ck_assert_ptr_eq(s, set);
	return FOLDER;
}

const char *h5_file_set_path(const struct h5_file_set *s)
{
	ck_assert_ptr_eq(s, set);
	return "x.h5";
}

int h5_file_stat(struct h5_file *file, struct h5_io_stat *st)
{
	ck_assert_ptr_eq(file, shared.root);
	*st = (struct h5_io_stat){.locked = scene.locked, .pieces.size = scene.grows ? 4096 : 0};
	return fails("stat") ? scene.error : 0;
}

int h5_vfs_open(struct h5_file_set *s, const struct h5_vfs_options *o, struct h5_vfs **out)
{
	int rc = step("vfs");

	ck_assert(s == set && o == &options.vfs && !strcmp(o->file, "x.h5"));
	ck_assert_int_eq(o->file_fd, options.set.writable ? FILE_FD : -1);
	*out = rc ? NULL : vfs;
	return rc;
}

void h5_vfs_close(struct h5_vfs *v)
{
	if (v)
		note("close-vfs");
}

static struct h5_tree_options tree_options;

int h5_tree_open(const char *path, const struct h5_tree_options *o, struct h5_tree **out)
{
	int rc = step("tree");

	ck_assert_str_eq(path, "x.h5");
	tree_options = *o;
	*out = rc ? NULL : tree;
	return rc;
}

int h5_tree_finish(struct h5_tree *t)
{
	ck_assert_ptr_eq(t, tree);
	return step("finish");
}

void h5_tree_close(struct h5_tree *t)
{
	if (t)
		note("close-tree");
}

int h5_tree_folder(const struct h5_tree *t)
{
	ck_assert_ptr_eq(t, tree);
	return options.url ? -1 : FOLDER;
}

void h5_remote_end(struct h5_remote *remote)
{
	if (remote)
		note("end-remote");
}

#endif

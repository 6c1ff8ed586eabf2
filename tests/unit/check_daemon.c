/* What the daemon does, in which order, and what is left undone after a step that fails. All that it calls is
 * here, and only noted. */
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

static char trace[2048], said[512];
static struct h5_options options;
static struct h5_file_shared shared;

static __attribute__((format(printf, 1, 2))) void note(const char *format, ...)
{
	size_t n = strlen(trace);
	va_list args;

	if (n)
		trace[n++] = ' ';
	va_start(args, format);
	vsnprintf(trace + n, sizeof trace - n, format, args);
	va_end(args);
}

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

static struct h5_mount *mount; /* what the parts are told */
static struct h5_unmounter *const unmounter = (struct h5_unmounter *)&scene;
static struct h5_invalidator *const invalidator = (struct h5_invalidator *)&options;
static struct h5_committer *const committer = (struct h5_committer *)&trace;
static struct h5_closer *const closer = (struct h5_closer *)&said;
static struct h5_watch *const watch = (struct h5_watch *)&shared;
static struct h5_vfs *const vfs = (struct h5_vfs *)&session;
static struct h5_tree *const tree = (struct h5_tree *)&mount;
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
	mount = m;
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

/* ---- mounts ---- */

enum {
	WRITES = 1,
	FRONT = 2,
	IS_FOLDER = 4,
	URL = 8,
	NO_SANDBOX_AT_ALL = 16,
	RINGS = 32,
	DEBUG_OUTPUT = 64,
	ALONE = 128,
	CREATES = 256,
	HAS_JOURNALS = 512,
	RAW_WRITES = 1024,
	ANY = 2048,
	BENEATH = 4096,
	SWMR = 8192,
	LOGS = 1 << 14,
	SYSLOG = 1 << 15,
	LOCKED = 1 << 16,
	MARKED = 1 << 17,
	GROWS = 1 << 18,
	REFUSES_RINGS = 1 << 19,
	NO_OPTION = 1 << 20, /* that libfuse knows */
	RINGS_IF_THEY_ARE = 1 << 21,
};

static void set_options(unsigned what)
{
	static char *known[] = {(char *)"h5fs", NULL},
		    *unknown[] = {(char *)"h5fs", (char *)"-o", (char *)"none_such", NULL};

	memset(&options, 0, sizeof options);
	options = (struct h5_options){.file = (char *)"x.h5",
				      .mountpoint = (char *)"/m",
				      .url = what & URL ? (char *)"http://server/x.h5" : NULL,
				      .is_folder = what & IS_FOLDER,
				      .foreground = what & FRONT,
				      .debug = what & DEBUG_OUTPUT,
				      .single_thread = what & ALONE,
				      .sandbox = !(what & NO_SANDBOX_AT_ALL),
				      .io_uring = what & RINGS		     ? H5_IO_URING_YES
						  : what & RINGS_IF_THEY_ARE ? H5_IO_URING_AUTO
									     : H5_IO_URING_NO,
				      .create = what & CREATES ? 3 : 0,
				      .journal = what & HAS_JOURNALS ? (char *)"/journals" : NULL,
				      .log = what & LOGS ? (char *)"log" : NULL,
				      .to_syslog = what & SYSLOG,
				      .timeout = 60,
				      .set.writable = what & WRITES,
				      .set.swmr = what & SWMR,
				      .set.external = what & ANY       ? H5_EXTERNAL_ANY
						      : what & BENEATH ? H5_EXTERNAL_BENEATH
								       : H5_EXTERNAL_NONE,
				      .vfs.external_write = what & RAW_WRITES,
				      .vfs.file_fd = -1};
	options.args = what & NO_OPTION ? (struct fuse_args)FUSE_ARGS_INIT(3, unknown)
					: (struct fuse_args)FUSE_ARGS_INIT(1, known);
	scene.locked = what & LOCKED;
	scene.marked = what & MARKED;
	scene.grows = what & GROWS;
	scene.refuses_rings = what & REFUSES_RINGS;
}

static void begin(unsigned what, const char *step, int error)
{
	memset(&scene, 0, sizeof scene);
	memset(trace, 0, sizeof trace);
	memset(said, 0, sizeof said);
	h5_error_clear();
	shared.root = (struct h5_file *)&shared;
	scene.fails = step;
	scene.error = error;
	set_options(what);
}

static void run(unsigned what, int status, const char *expected, const char *told)
{
	int rc = h5_daemon_run(&options);

	ck_assert_msg(!strcmp(trace, expected), "%x, %s: %s", what,
		      scene.fails ? scene.fails : "nothing fails", trace);
	ck_assert_msg(rc == status, "%x, %s: %d", what, scene.fails ? scene.fails : "nothing fails", rc);
	ck_assert_str_eq(said, told);
	fuse_opt_free_args(&options.args);
}

#define IN_FRONT "find signals-in-front all-descriptors keep trim one-arena "
#define BEHIND	 "find signals background all-descriptors keep trim one-arena "
#define MOUNTS	 "warnings handlers mount quiet leave syslog detach-log unmounter readahead "
#define WRITABLE "warnings handlers mount negotiate quiet leave syslog detach-log unmounter readahead "
#define NOTHING	 "files(-,-,-,-,-,-,-,-) start-rings calls "
#define JOURNAL	 "files(-,-,-,journals,-,-,-,-) start-rings calls "
#define DONE	 "remove-handlers destroy close-vfs close-set remove"
#define READING	 "x.h5: mounted at /m for reading; "
#define WRITING	 "x.h5: mounted at /m for writing; "
#define END	 "x.h5: unmounted; "

/* ---- the order ---- */

START_TEST(a_file_for_reading)
{
	begin(0, NULL, 0);
	run(0, 0,
	    BEHIND "open vfs " MOUNTS "no-rings " NOTHING
		   "watch () apart ready serve end-watch commit end-unmounter " DONE,
	    READING END);
	begin(FRONT, NULL, 0);
	run(FRONT, 0,
	    IN_FRONT "open vfs warnings handlers mount quiet stay detach-log unmounter readahead "
		     "no-rings " NOTHING
		     "watch () apart ready-in-front serve end-watch commit end-unmounter " DONE,
	    READING END);
}
END_TEST

START_TEST(a_file_for_writing)
{
	begin(WRITES, NULL, 0);
	run(WRITES, 0,
	    BEHIND "open open-statfs vfs " WRITABLE "no-rings " JOURNAL
		   "committer invalidator watch () apart ready serve end-watch end-invalidator end-committer "
		   "commit end-unmounter " DONE,
	    WRITING END);
}
END_TEST

START_TEST(a_folder)
{
	begin(IS_FOLDER, NULL, 0);
	run(IS_FOLDER, 0,
	    BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		   "files(folder,folder,-,-,-,-,-,-) start-rings calls closer watch () apart ready serve "
		   "end-watch end-closer finish end-unmounter remove-handlers destroy close-tree close-none "
		   "remove",
	    READING END);
	begin(IS_FOLDER | WRITES, NULL, 0);
	run(IS_FOLDER | WRITES, 0,
	    BEHIND
	    "tree handlers mount negotiate quiet leave syslog detach-log unmounter readahead no-rings "
	    "files(folder,folder,-,-,-,folder,-,-) start-rings calls closer invalidator watch () apart "
	    "ready serve end-watch end-invalidator end-closer finish end-unmounter remove-handlers "
	    "destroy close-tree close-none remove",
	    WRITING END);
	begin(IS_FOLDER | URL, NULL, 0);
	run(IS_FOLDER | URL, 0,
	    BEHIND "fetcher tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		   "files(-,-,-,-,-,-,-,-) start-rings calls closer watch () apart ready serve end-watch "
		   "end-closer finish end-unmounter remove-handlers destroy end-remote close-tree close-none "
		   "remove",
	    READING END);
}
END_TEST

/* ---- steps that fail ---- */

static const struct {
	unsigned what;
	const char *fails;
	int error, status;
	const char *trace, *said;
} failing[] = {
	{0, "find", EXIT_STALE, EXIT_STALE, "find", ""},
	{0, "background", -EAGAIN, EXIT_FILE, "find signals background refusal remove",
	 "Resource temporarily unavailable"},
	{FRONT, "limit", -EPERM, 0,
	 "find signals-in-front keep trim one-arena open vfs warnings handlers mount quiet stay detach-log "
	 "unmounter readahead no-rings " NOTHING
	 "watch () apart ready-in-front serve end-watch commit end-unmounter " DONE,
	 READING END},
	{CREATES | WRITES, "make", -ENOSPC, EXIT_FILE, BEHIND "make refusal close-none remove",
	 "No space left on device"},
	{HAS_JOURNALS | WRITES, "journals", -1, EXIT_FILE, BEHIND "journals refusal close-none remove",
	 "/journals: no place for a journal: Read-only file system"},
	{0, "open", -EUCLEAN, EXIT_FILE, BEHIND "open refusal close-none remove", "Structure needs cleaning"},
	{WRITES, "open-statfs", -EMFILE, EXIT_FILE, BEHIND "open open-statfs refusal close-set remove",
	 "Too many open files"},
	{0, "stat", -EIO, EXIT_FILE, BEHIND "open refusal close-set remove", "Input/output error"},
	{0, "vfs", -ENOMEM, EXIT_FILE, BEHIND "open vfs refusal close-set remove", "Cannot allocate memory"},
	{0, "handlers", -1, EXIT_MOUNT,
	 BEHIND "open vfs warnings handlers destroy close-vfs close-set remove", ""},
	{0, "mount", EXIT_MOUNT, EXIT_MOUNT, BEHIND "open vfs warnings handlers mount " DONE, ""},
	{WRITES, "negotiate", -EMFILE, EXIT_MOUNT,
	 BEHIND "open open-statfs vfs warnings handlers mount negotiate unmount " DONE,
	 "x.h5: cannot answer the kernel's first request: Too many open files"},
	{0, "unmounter", -ENOMEM, EXIT_MOUNT, BEHIND "open vfs " MOUNTS "end-no-unmounter " DONE,
	 "x.h5: cannot start a process: Cannot allocate memory" END},
	{0, "watch", -EAGAIN, EXIT_MOUNT,
	 BEHIND "open vfs " MOUNTS "no-rings " NOTHING "watch () end-unmounter " DONE,
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{WRITES, "committer", -EAGAIN, EXIT_MOUNT,
	 BEHIND "open open-statfs vfs " WRITABLE "no-rings " JOURNAL "committer end-unmounter " DONE,
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{WRITES, "invalidator", -EAGAIN, EXIT_MOUNT,
	 BEHIND "open open-statfs vfs " WRITABLE "no-rings " JOURNAL
		"committer invalidator end-committer end-unmounter " DONE,
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{WRITES, "watch", -EAGAIN, EXIT_MOUNT,
	 BEHIND "open open-statfs vfs " WRITABLE "no-rings " JOURNAL
		"committer invalidator watch () end-invalidator end-committer end-unmounter " DONE,
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{0, "commit", -EIO, EXIT_COMMIT,
	 BEHIND "open vfs " MOUNTS "no-rings " NOTHING
		"watch () apart ready serve end-watch commit end-unmounter " DONE,
	 READING END},
	{IS_FOLDER | URL, "fetcher", -EAGAIN, EXIT_FILE, BEHIND "fetcher refusal close-none remove",
	 "Resource temporarily unavailable"},
	{IS_FOLDER, "tree", -ENOENT, EXIT_FILE, BEHIND "tree refusal close-none remove",
	 "No such file or directory"},
	{IS_FOLDER, "closer", -EAGAIN, EXIT_MOUNT,
	 BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		"files(folder,folder,-,-,-,-,-,-) start-rings calls closer end-unmounter remove-handlers "
		"destroy close-tree close-none remove",
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{IS_FOLDER, "unmounter", -EAGAIN, EXIT_MOUNT,
	 BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead end-no-unmounter "
		"remove-handlers destroy close-tree close-none remove",
	 "x.h5: cannot start a process: Resource temporarily unavailable" END},
	{IS_FOLDER, "watch", -EAGAIN, EXIT_MOUNT,
	 BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		"files(folder,folder,-,-,-,-,-,-) start-rings calls closer watch () end-closer end-unmounter "
		"remove-handlers destroy close-tree close-none remove",
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{IS_FOLDER, "finish", -EIO, EXIT_COMMIT,
	 BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		"files(folder,folder,-,-,-,-,-,-) start-rings calls closer watch () apart ready serve "
		"end-watch end-closer finish end-unmounter remove-handlers destroy close-tree close-none "
		"remove",
	 READING END},
};

START_TEST(what_comes_after_a_failure)
{
	for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
		begin(failing[i].what, failing[i].fails, failing[i].error);
		run(failing[i].what, failing[i].status, failing[i].trace, failing[i].said);
	}
}
END_TEST

/* An option that libfuse does not know. */
START_TEST(no_session)
{
	begin(NO_OPTION, NULL, 0);
	run(NO_OPTION, EXIT_MOUNT, BEHIND "open vfs warnings close-vfs close-set remove", "");
}
END_TEST

/* A file that is there is none that is made, and no failure. */
START_TEST(a_file_that_is_made)
{
	static const char trace_of_both[] =
		BEHIND "make open open-statfs vfs " WRITABLE "no-rings " JOURNAL
		       "committer invalidator watch () apart ready serve end-watch end-invalidator "
		       "end-committer commit end-unmounter " DONE;

	begin(CREATES | WRITES, NULL, 0);
	run(CREATES | WRITES, 0, trace_of_both, WRITING END);
	begin(CREATES | WRITES, "make", -EEXIST);
	run(CREATES | WRITES, 0, trace_of_both, WRITING END);
}
END_TEST

START_TEST(how_serving_ends)
{
	static const struct {
		int rc, status;
		bool aborts;
		const char *said;
	} ends[] = {{0, 0, false, READING END},
		    {SIGTERM, 0, false, READING END},
		    {-ECONNABORTED, 0, false, READING END},
		    {-EIO, EXIT_MOUNT, true,
		     READING "x.h5: the kernel's requests cannot be read: Input/output error" END}};

	for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++)
		for (unsigned alone = 0; alone < 2; alone++) {
			char expected[sizeof trace];

			snprintf(expected, sizeof expected,
				 BEHIND "open vfs " MOUNTS "no-rings " NOTHING
					"watch () apart ready %s %send-watch commit end-unmounter " DONE,
				 alone ? "serve-alone" : "serve", ends[i].aborts ? "abort " : "");
			begin(alone * ALONE, NULL, 0);
			scene.served = ends[i].rc;
			run(alone * ALONE, ends[i].status, expected, ends[i].said);
		}
	begin(0, "commit", -EIO);
	scene.served = -EIO;
	run(0, EXIT_COMMIT,
	    BEHIND "open vfs " MOUNTS "no-rings " NOTHING
		   "watch () apart ready serve abort end-watch commit end-unmounter " DONE,
	    ends[3].said);
}
END_TEST

/* ---- logs ---- */

START_TEST(where_lines_go)
{
	static const struct {
		unsigned what;
		bool to_syslog;
	} cases[] = {{0, true},	     {FRONT, false},	     {LOGS, false},	   {FRONT | LOGS, false},
		     {SYSLOG, true}, {FRONT | SYSLOG, true}, {LOGS | SYSLOG, true}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(cases[i].what, NULL, 0);
		ck_assert_int_eq(h5_daemon_run(&options), 0);
		ck_assert_msg(!strstr(trace, "syslog") == !cases[i].to_syslog, "%x: %s", cases[i].what,
			      trace);
		ck_assert_ptr_nonnull(strstr(trace, " detach-log unmounter "));
	}
}
END_TEST

static void call_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_function(FUSE_LOG_ERR, format, args);
	va_end(args);
}

/* libfuse says nothing, unless it shall. */
START_TEST(lines_of_libfuse)
{
	FILE *f = tmpfile();
	const int before = dup(STDERR_FILENO);

	begin(DEBUG_OUTPUT | FRONT, NULL, 0);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_ptr_null(strstr(trace, "quiet"));
	begin(FRONT, NULL, 0);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_ptr_nonnull(strstr(trace, "quiet"));
	fflush(stderr);
	dup2(fileno(f), STDERR_FILENO);
	call_log("%s\n", "a text");
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	ck_assert_int_eq(ftell(f), 0);
	fclose(f);
}
END_TEST

/* ---- what the mount is told ---- */

START_TEST(files_that_others_may_change)
{
	static const struct {
		unsigned what;
		const char *flags;
	} cases[] = {{0, " () "},
		     {LOCKED, " (locked kept) "},
		     {MARKED, " () "},
		     {LOCKED | MARKED, " () "},
		     {LOCKED | WRITES, " (locked kept) "},
		     {LOCKED | MARKED | WRITES, " (locked kept) "},
		     {LOCKED | SWMR, " () "},
		     {LOCKED | SWMR | WRITES, " () "},
		     {URL, " ( remote) "},
		     {URL | LOCKED, " (locked remote kept) "}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(cases[i].what, NULL, 0);
		options.allow_other = i % 2;
		ck_assert_int_eq(h5_daemon_run(&options), 0);
		ck_assert_msg(strstr(trace, cases[i].flags), "%x: %s", cases[i].what, trace);
		ck_assert(!atomic_flag_test_and_set(&mount->opened));
	}
}
END_TEST

/* ---- the sandbox ---- */

/* It is entered when what it forbids has been done. */
static const struct {
	unsigned what;
	const char *part;
} sandboxes[] = {
	{BENEATH, "readahead no-rings files(folder,-,-,-,-,-,-,-) start-rings calls watch"},
	{ANY, "readahead open-root no-rings files(root,-,-,-,-,-,-,-) start-rings calls close-root watch"},
	{RAW_WRITES | BENEATH, "files(folder,-,-,-,-,-,-,-)"},
	{WRITES | BENEATH, "files(folder,-,-,journals,-,-,-,-)"},
	{WRITES | RAW_WRITES, "files(-,-,-,journals,-,-,-,-)"},
	{WRITES | RAW_WRITES | BENEATH, "files(folder,-,folder,journals,-,-,-,-)"},
	{WRITES | RAW_WRITES | ANY, "files(root,-,root,journals,-,-,-,-)"},
	{HAS_JOURNALS, "files(-,-,-,-,-,-,-,-)"},
	{WRITES | HAS_JOURNALS, "files(-,-,-,journals,folder,-,-,-)"},
	{GROWS, "files(-,-,-,-,-,-,-,-)"},
	{WRITES | GROWS, "files(-,-,-,journals,-,folder,-,-)"},
	{IS_FOLDER | ANY,
	 "readahead open-root no-rings files(root,folder,-,-,-,-,-,-) start-rings calls close-root closer"},
	{IS_FOLDER | ANY | URL, "readahead no-rings files(-,-,-,-,-,-,-,-) start-rings calls closer"},
	{IS_FOLDER | BENEATH | URL, "readahead no-rings files(-,-,-,-,-,-,-,-) start-rings calls closer"},
	{IS_FOLDER | BENEATH | WRITES | RAW_WRITES, "files(folder,folder,-,-,-,folder,-,-)"},
	{IS_FOLDER | ANY | WRITES, "files(root,folder,-,-,-,folder,-,-)"},
	{IS_FOLDER | ANY | WRITES | RAW_WRITES, "files(root,folder,root,-,-,folder,-,-)"},
	{IS_FOLDER | ANY | RAW_WRITES, "files(root,folder,-,-,-,-,-,-)"},
	{NO_SANDBOX_AT_ALL, "readahead no-rings start-rings watch"},
	{NO_SANDBOX_AT_ALL | ANY, "readahead open-root no-rings start-rings close-root watch"},
};

START_TEST(what_is_allowed)
{
	for (size_t i = 0; i < sizeof sandboxes / sizeof *sandboxes; i++) {
		begin(sandboxes[i].what, NULL, 0);
		ck_assert_int_eq(h5_daemon_run(&options), 0);
		ck_assert_msg(strstr(trace, sandboxes[i].part), "%x: %s", sandboxes[i].what, trace);
		ck_assert_msg(!strstr(trace, "close-another"), "%x: %s", sandboxes[i].what, trace);
	}
}
END_TEST

/* Without the root only what it was opened for cannot be opened. */
START_TEST(no_descriptor_for_the_root)
{
	begin(ANY, "open-root", -EMFILE);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_ptr_nonnull(
		strstr(trace, " open-root no-rings files(-,-,-,-,-,-,-,-) start-rings calls watch "));
	begin(ANY | IS_FOLDER, "open-root", -EMFILE);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_ptr_nonnull(strstr(
		trace, " open-root no-rings files(folder,folder,-,-,-,-,-,-) start-rings calls closer "));
	ck_assert_ptr_null(strstr(trace, "close-root"));
}
END_TEST

START_TEST(commands_without_a_mount)
{
	const struct h5_opened opened = {.journal_directory = JOURNALS};

	begin(BENEATH, NULL, 0);
	options.command = H5_COMMAND_LIST;
	h5_daemon_enter_sandbox(&options, set, &opened, -1);
	ck_assert_str_eq(trace, "no-rings files(folder,-,-,-,-,-,-,-)+terminal start-rings calls");
	begin(0, NULL, 0);
	options.command = H5_COMMAND_EXTRACT;
	h5_daemon_enter_sandbox(&options, set, &opened, MADE);
	ck_assert_str_eq(trace, "no-rings files(-,-,-,-,-,-,-,made)+terminal start-rings calls");
	begin(WRITES, NULL, 0);
	options.command = H5_COMMAND_RECLAIM;
	h5_daemon_enter_sandbox(&options, set, &opened, -1);
	ck_assert_str_eq(trace, "no-rings files(-,-,-,journals,-,-,-,-)+terminal start-rings calls");
}
END_TEST

/* ---- io_uring ---- */

START_TEST(rings)
{
	static const char used[] =
		" rings open-devices files(-,-,-,-,-,-,devices,-) close-devices start-rings calls-with-rings "
		"watch () apart ready serve-rings end-watch ";

	begin(RINGS, NULL, 0);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_msg(strstr(trace, used), "%s", trace);
	begin(RINGS_IF_THEY_ARE, NULL, 0);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_msg(strstr(trace, used), "%s", trace);
	begin(RINGS_IF_THEY_ARE, "open-devices", -EMFILE);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_msg(
		strstr(trace, " rings open-devices files(-,-,-,-,-,-,-,-) start-rings calls-with-rings "),
		"%s", trace);
	begin(RINGS_IF_THEY_ARE | REFUSES_RINGS, NULL, 0);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_msg(strstr(trace, " close-devices start-rings calls watch () apart ready serve end-watch "),
		      "%s", trace);
	begin(RINGS | REFUSES_RINGS, NULL, 0);
	run(RINGS | REFUSES_RINGS, EXIT_MOUNT,
	    BEHIND "open vfs " MOUNTS
		   "rings open-devices files(-,-,-,-,-,-,devices,-) close-devices start-rings calls "
		   "end-unmounter " DONE,
	    "x.h5: -o io_uring=yes: the kernel or libfuse has refused it" END);
}
END_TEST

/* ---- files of a folder ---- */

START_TEST(options_of_a_folder)
{
	begin(IS_FOLDER, NULL, 0);
	options.vfs.uid = 7;
	options.vfs.gid = 8;
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_str_eq(tree_options.match, H5_TREE_MATCH);
	ck_assert_uint_eq(tree_options.open_files, 64);
	ck_assert(tree_options.keeps_uid && tree_options.keeps_gid);
	ck_assert_ptr_null(tree_options.set.remote);
	begin(IS_FOLDER | URL | ANY, NULL, 0);
	options.match = (char *)"*.nc";
	options.open_files = 3;
	options.vfs.uid = 70;
	options.vfs.gid = 8;
	options.vfs.fmask = 022;
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert_str_eq(tree_options.match, "*.nc");
	ck_assert_uint_eq(tree_options.open_files, 3);
	ck_assert(!tree_options.keeps_uid && tree_options.keeps_gid);
	ck_assert_ptr_eq(tree_options.set.remote, (struct h5_remote *)&scene);
	ck_assert_uint_eq(tree_options.set.external, H5_EXTERNAL_ANY);
	ck_assert_uint_eq(tree_options.vfs.fmask, 022);
	begin(IS_FOLDER, NULL, 0);
	options.vfs.uid = 7;
	options.vfs.gid = 80;
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	ck_assert(tree_options.keeps_uid && !tree_options.keeps_gid);
}
END_TEST

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void let_others_go_on(void)
{
	note("others");
}

/* Each has a committer as long as it is open for writing. When it closes, the request that it closes for goes
 * on as it was. */
START_TEST(files_that_open_and_close)
{
	const struct h5_opened opened = {.journal_directory = JOURNALS};
	struct h5_interrupt before, after;
	void *own = NULL;

	begin(IS_FOLDER | WRITES, NULL, 0);
	ck_assert_int_eq(h5_daemon_run(&options), 0);
	memset(trace, 0, sizeof trace);
	ck_assert_ptr_eq(tree_options.arg, &options);
	ck_assert_int_eq(tree_options.opened(&options, "x.h5", set, &opened, vfs, &own), 0);
	ck_assert_ptr_eq(own, committer);
	ck_assert_str_eq(trace, "committer warnings");
	h5_interrupt_begin(never, &scene);
	h5_wait_set(let_others_go_on);
	h5_interrupt_get(&before);
	ck_assert_int_eq(tree_options.closing(&options, "x.h5", vfs, own), 0);
	h5_interrupt_get(&after);
	ck_assert(after.ask == never && after.arg == &scene);
	ck_assert(after.begin.tv_sec == before.begin.tv_sec && after.begin.tv_nsec == before.begin.tv_nsec);
	h5_interrupt_begin(NULL, NULL);
	ck_assert_str_eq(trace, "committer warnings others end-committer commit");
	scene.fails = "committer";
	scene.error = -EAGAIN;
	own = NULL;
	ck_assert_int_eq(tree_options.opened(&options, "x.h5", set, &opened, vfs, &own), -EAGAIN);
	ck_assert_ptr_null(own);
	scene.fails = "commit";
	ck_assert_int_eq(tree_options.closing(&options, "x.h5", vfs, committer), -EAGAIN);
	ck_assert_str_eq(trace,
			 "committer warnings others end-committer commit committer end-committer commit");
	begin(IS_FOLDER, NULL, 0);
	own = &scene;
	ck_assert_int_eq(tree_options.opened(&options, "x.h5", set, &opened, vfs, &own), 0);
	ck_assert_ptr_null(own);
	ck_assert_str_eq(trace, "warnings");
	h5_wait_set(NULL);
}
END_TEST

UNIT_MAIN("daemon", a_file_for_reading, a_file_for_writing, a_folder, what_comes_after_a_failure, no_session,
	  a_file_that_is_made, how_serving_ends, where_lines_go, lines_of_libfuse,
	  files_that_others_may_change, what_is_allowed, no_descriptor_for_the_root, commands_without_a_mount,
	  rings, options_of_a_folder, files_that_open_and_close)

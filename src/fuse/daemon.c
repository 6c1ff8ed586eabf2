#include "fuse/daemon.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/wait.h"
#include "change/new_file.h"
#include "fuse/background.h"
#include "fuse/closer.h"
#include "fuse/commit.h"
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

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
	LONG = 365 * 24 * 3600, /* seconds that the kernel may keep names and attributes */
	OPEN_FILES = 64,	/* of a folder, if -o open_files= is not given */
};

/* Serves until the mount ends, then commits the rest. */
static int serve_and_commit(struct h5_mount *m, const struct h5_options *o, struct h5_unmounter *unmounter,
			    struct h5_background *background)
{
	struct h5_committer *committer = NULL;
	struct h5_closer *closer = NULL;
	struct h5_watch *watch = NULL;
	int rc = 0, code = 0;

	/* Each file of a folder has a committer as long as it is open. */
	if (m->tree)
		code = h5_closer_start(m->tree, &closer);
	else if (m->writable)
		code = h5_committer_start(m->vfs, &committer);
	if (m->writable && !code)
		code = h5_invalidator_start(m->session, m->vfs, &m->invalidator);
	if (!code)
		code = h5_watch_start(m, unmounter, o->timeout, &watch);
	if (code) {
		h5_invalidator_stop(m->invalidator);
		h5_committer_stop(committer);
		h5_closer_stop(closer);
		h5_log("%s: cannot start a thread: %s", o->file, strerror(-code));
		return EXIT_MOUNT;
	}
	h5_log_at(H5_LOG_VERBOSE, "%s: mounted at %s for %s", o->file, o->mountpoint,
		  m->writable ? "writing" : "reading");
	h5_unmounter_detach(unmounter);
	h5_background_ready(background);
	/* With io_uring only libfuse's own loop ends its threads; what it reads itself is little. */
	rc = m->io_uring	? fuse_session_loop_mt(m->session, NULL)
	     : o->single_thread ? fuse_session_loop(m->session)
				: h5_serve(m->session);
	/* If the file system goes while a request is being read, the kernel says this in place of ENODEV. */
	if (rc == -ECONNABORTED)
		rc = 0;
	/* Requests that nobody serves keep pages locked. The kernel shall abort them, so that the invalidator
	 * can end. */
	if (rc < 0) {
		h5_log("%s: the kernel's requests cannot be read: %s", o->file, strerror(-rc));
		h5_unmounter_abort(unmounter);
	}
	h5_watch_stop(watch);
	h5_invalidator_stop(m->invalidator);
	h5_committer_stop(committer);
	h5_closer_stop(closer);
	if (m->tree ? h5_tree_finish(m->tree) : h5_commit_rest(m->vfs, o->file))
		return EXIT_COMMIT;
	return rc < 0 ? EXIT_MOUNT : EXIT_SUCCESS;
}

/* libfuse's messages are not about the file. */
static void discard_log(enum fuse_log_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
}

/* Enters the sandbox, if the options want it, and starts io_uring's threads in it, if the mount shall have
 * them: they must be confined, too, but need more to start than afterwards. */
static void confine(const struct h5_options *o, struct h5_sandbox *sandbox, struct h5_mount *m)
{
	h5_io_uring_prepare(m);
	sandbox->machine = m->io_uring ? open("/sys/devices/system", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (o->sandbox)
		h5_sandbox_enter_files(sandbox);
	if (sandbox->machine >= 0)
		close(sandbox->machine);
	h5_io_uring_start(m, o->debug ? NULL : discard_log);
	sandbox->io_uring = m->io_uring;
	if (o->sandbox)
		h5_sandbox_enter_calls(sandbox);
}

/* Files that are open need not be opened by name again, so only other files are allowed. */
static void enter_sandbox_of_file(const struct h5_options *o, const struct h5_file_set *set,
				  const struct h5_opened *opened, int made, struct h5_mount *m)
{
	int all = o->set.external == H5_EXTERNAL_ANY ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	int folder = o->set.external == H5_EXTERNAL_BENEATH ? h5_file_set_directory(set) : all;
	struct h5_io_stat st;
	/* A family gets new members. */
	bool grows = o->set.writable && !h5_file_stat(h5_file_set_root(set), &st) && st.pieces.size;
	struct h5_sandbox sandbox = {
		.readable = folder,
		.listed = -1,
		.writable = o->set.writable && o->vfs.external_write ? folder : -1,
		.journals = o->set.writable ? opened->journal_directory : -1,
		.pointers = o->set.writable && o->journal ? h5_file_set_directory(set) : -1,
		.changed = grows ? h5_file_set_directory(set) : -1,
		.made = made,
		.terminal = o->command != H5_COMMAND_MOUNT,
	};

	confine(o, &sandbox, m);
	if (all >= 0)
		close(all);
}

void h5_daemon_enter_sandbox(const struct h5_options *o, const struct h5_file_set *set,
			     const struct h5_opened *opened, int made)
{
	struct h5_mount none = {0};

	enter_sandbox_of_file(o, set, opened, made, &none);
}

/* The files of the folder are opened by name when somebody looks at them, and their journals made then. */
static void enter_sandbox_of_folder(const struct h5_options *o, struct h5_mount *m)
{
	bool any = o->set.external == H5_EXTERNAL_ANY && !o->url;
	int all = any ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct h5_sandbox sandbox = {
		.readable = all >= 0 ? all : h5_tree_folder(m->tree),
		.listed = h5_tree_folder(m->tree),
		.writable = o->set.writable && o->vfs.external_write ? all : -1,
		.journals = -1,
		.pointers = -1,
		.changed = o->set.writable ? h5_tree_folder(m->tree) : -1,
		.made = -1,
	};

	confine(o, &sandbox, m);
	if (all >= 0)
		close(all);
}

/* The order matters: each step takes away something that those before it need. */
static int serve_mounted(struct h5_mount *m, const struct h5_options *o, const struct h5_file_set *set,
			 const struct h5_opened *opened, const struct h5_mounted *mounted,
			 struct h5_background *background)
{
	struct h5_unmounter *unmounter = NULL;
	int rc, code;

	h5_background_detach(background);
	if (o->to_syslog || (!o->foreground && !o->log))
		h5_log_to_syslog();
	h5_log_detach();
	code = h5_unmounter_start(m->session, o, mounted, &unmounter);
	if (code)
		h5_log("%s: cannot start a process: %s", o->file, strerror(-code));
	m->readahead = h5_readahead_open(mounted);
	if (!code && m->tree)
		enter_sandbox_of_folder(o, m);
	else if (!code)
		enter_sandbox_of_file(o, set, opened, -1, m);
	if (!code && o->io_uring == H5_IO_URING_YES && !m->io_uring) {
		h5_log("%s: -o io_uring=yes: the kernel or libfuse has refused it", o->file);
		code = -ENOTSUP;
	}
	rc = code ? EXIT_MOUNT : serve_and_commit(m, o, unmounter, background);
	h5_unmounter_stop(unmounter, m->session);
	h5_log_at(H5_LOG_VERBOSE, "%s: unmounted", o->file);
	return rc;
}

static int mount_and_serve(struct h5_mount *m, struct h5_options *o, const struct h5_file_set *set,
			   const struct h5_opened *opened, struct h5_background *background)
{
	struct fuse_session *session;
	struct h5_mounted mounted;
	int rc = EXIT_MOUNT, code;

	session = fuse_session_new(&o->args, m->tree ? &h5_tree_operations : &h5_operations,
				   sizeof h5_operations, m);
	if (!session)
		return rc;
	m->session = session;
	m->io_uring = o->io_uring != H5_IO_URING_NO;
	if (fuse_set_signal_handlers(session))
		goto destroy;
	if (h5_mountpoint_mount(o, session, &mounted))
		goto handlers;
	code = m->writable ? h5_negotiate_start(m) : 0;
	if (code) {
		h5_log("%s: cannot answer the kernel's first request: %s", o->file, strerror(-code));
		fuse_session_unmount(session);
		goto handlers;
	}
	if (!o->debug)
		fuse_set_log_func(discard_log);
	rc = serve_mounted(m, o, set, opened, &mounted, background);
handlers:
	fuse_remove_signal_handlers(session);
destroy:
	fuse_session_destroy(session);
	return rc;
}

/* Chunks come and go by the thousand. To return their memory to the kernel each time costs as much as copying
 * them, so malloc() keeps it. At the end of its arena it keeps as much as the chunks of one write take while
 * they are encoded. The memory of large chunks is returned nevertheless: their holes in the arena would fit
 * nothing else, and no budget would count them. There is one arena, since none can use the free memory of
 * another one. */
void h5_daemon_keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 8 << 20);
	mallopt(M_TRIM_THRESHOLD, 32 << 20);
	mallopt(M_ARENA_MAX, 1);
}

/* Each member of a family takes a descriptor, and so does each file that a link leads to. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Checks the folder of the journal. */
static int prepare_writing(const struct h5_options *o)
{
	if (o->set.writable && o->journal && access(o->journal, W_OK | X_OK))
		return h5_fail(-EACCES, H5_UNDEF, "%s: no place for a journal: %s", o->journal,
			       strerror(errno));
	return 0;
}

/* Opens a descriptor of the file for statfs. */
static int open_for_statfs(struct h5_options *o, const struct h5_file_set *set)
{
	if (!o->set.writable)
		return 0;
	o->vfs.file_fd = open(h5_file_set_path(set), O_PATH | O_CLOEXEC);
	return o->vfs.file_fd < 0 ? h5_fail(-errno, H5_UNDEF, "%s", strerror(errno)) : 0;
}

/* Makes the file if it is to be made and is not there. */
static int make_file(const struct h5_options *o)
{
	int rc = o->create ? h5_new_file_make(o->file, (uint8_t)o->create, (uint32_t)time(NULL)) : 0;

	return rc == -EEXIST ? 0 : rc;
}

static int open_and_mount(struct h5_options *o, struct h5_background *background)
{
	struct h5_opened opened = {.journal_directory = -1};
	struct h5_file_set *set = NULL;
	struct h5_mount m = {
		.writable = o->set.writable, .allow_other = o->allow_other, .opened = ATOMIC_FLAG_INIT};
	struct h5_io_stat st = {0};
	int rc, code;

	allow_many_files();
	h5_daemon_keep_memory();
	o->vfs.file = o->file;
	code = make_file(o);
	if (!code)
		code = prepare_writing(o);
	if (!code)
		code = h5_opening_begin(o, &set, &opened);
	if (!code)
		code = open_for_statfs(o, set);
	if (!code)
		code = h5_file_stat(h5_file_set_root(set), &st);
	if (!code)
		code = h5_vfs_open(set, &o->vfs, &m.vfs);
	if (!code) {
		h5_report_warnings(o, o->file, set, &opened);
		/* A SWMR writer gives up its own lock. */
		m.locked = st.locked && !o->set.swmr &&
			   (m.writable || !h5_report_is_marked(h5_file_set_root(set)));
		m.remote = o->set.remote;
		m.timeout = m.locked ? LONG : 0;
	}
	rc = code ? h5_report_refusal(o, code) : mount_and_serve(&m, o, set, &opened, background);
	h5_vfs_close(m.vfs);
	h5_opening_end(o, set, &opened);
	return rc;
}

/* ---- a folder ---- */

static int begin_file(void *arg, const char *path, const struct h5_file_set *set,
		      const struct h5_opened *opened, struct h5_vfs *vfs, void **own)
{
	const struct h5_options *o = arg;
	struct h5_committer *committer = NULL;
	int rc = o->set.writable ? h5_committer_start(vfs, &committer) : 0;

	if (rc)
		return rc;
	h5_report_warnings(o, path, set, opened);
	*own = committer;
	return 0;
}

static int end_file(void *arg, const char *path, struct h5_vfs *vfs, void *own)
{
	struct h5_interrupt interrupt;
	int rc;

	(void)arg;
	h5_wait_begins();
	h5_committer_stop(own);
	/* Another request may have it closed, for a file that it needs. */
	h5_interrupt_get(&interrupt);
	rc = h5_commit_rest(vfs, path);
	h5_interrupt_set(&interrupt);
	return rc;
}

static int open_and_mount_folder(struct h5_options *o, struct h5_background *background)
{
	struct h5_tree_options options = {
		.match = o->match ? o->match : H5_TREE_MATCH,
		.open_files = o->open_files ? o->open_files : OPEN_FILES,
		.keeps_uid = o->vfs.uid == getuid(),
		.keeps_gid = o->vfs.gid == getgid(),
		.set = o->set,
		.vfs = o->vfs,
		.opened = begin_file,
		.closing = end_file,
		.arg = o,
	};
	struct h5_mount m = {
		.writable = o->set.writable, .allow_other = o->allow_other, .opened = ATOMIC_FLAG_INIT};
	struct h5_opened opened = {.journal_directory = -1};
	int code, rc;

	allow_many_files();
	h5_daemon_keep_memory();
	code = o->url ? h5_opening_start_fetcher(o) : 0;
	options.set.remote = o->set.remote;
	if (!code)
		code = h5_tree_open(o->file, &options, &m.tree);
	rc = code ? h5_report_refusal(o, code) : mount_and_serve(&m, o, NULL, NULL, background);
	h5_remote_end(o->set.remote); /* work in the background may be waiting for bytes */
	h5_tree_close(m.tree);
	h5_opening_end(o, NULL, &opened);
	return rc;
}

int h5_daemon_run(struct h5_options *o)
{
	struct h5_background background = {.ready = -1};
	int rc = h5_mountpoint_find(o), code;

	if (rc)
		return rc;
	h5_signals_begin(o->foreground);
	/* Forked before it takes locks and starts threads, since these do not survive a fork. */
	code = o->foreground ? 0 : h5_background_begin(&background);
	rc = code	    ? h5_report_refusal(o, code)
	     : o->is_folder ? open_and_mount_folder(o, &background)
			    : open_and_mount(o, &background);
	/* In the sandbox this fails, but then the unmounter has removed it. */
	h5_mountpoint_remove(o);
	return rc;
}

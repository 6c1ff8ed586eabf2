/* h5fs: mounts an HDF5 file. */
#include "config.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "change/open.h"
#include "filter/filter.h"
#include "fuse/background.h"
#include "fuse/commit.h"
#include "fuse/invalidate.h"
#include "fuse/log.h"
#include "fuse/loop.h"
#include "fuse/mountpoint.h"
#include "fuse/negotiate.h"
#include "fuse/operations.h"
#include "fuse/options.h"
#include "fuse/readahead.h"
#include "fuse/sandbox.h"
#include "fuse/signals.h"
#include "fuse/status.h"
#include "fuse/unmounter.h"
#include "fuse/watch.h"
#include "offline/offline.h"
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

enum {
	LONG = 365 * 24 * 3600, /* seconds */
	HELPER_FAILED = 32,	/* the exit status by which mount(8) knows that mounting failed */
};

static int status_of(const struct h5_options *o, int code)
{
	switch (code) {
	case -EROFS:
	case -EACCES:
	case -EPERM:
	case -ENOSPC:
		return o->set.writable ? EXIT_READ_ONLY : EXIT_FILE;
	case -EBUSY:
	case -EMLINK:
		return EXIT_FORCE;
	case -EUCLEAN:
	case -EIO:
		return EXIT_DAMAGED;
	case -EWOULDBLOCK:
		return EXIT_LOCKED;
	case -ENOTSUP:
		return EXIT_UNSUPPORTED;
	default:
		return EXIT_FILE;
	}
}

/* Logs why the file is not mounted; returns the exit status. */
static int refuse(const struct h5_options *o, int code)
{
	const struct h5_error *e = h5_error_last();
	int status = status_of(o, code);
	const char *what = status == EXIT_READ_ONLY ? "cannot be written: " : "";

	if (e->code != code)
		h5_log("%s: %s%s", o->file, what, strerror(-code));
	else if (e->address == H5_UNDEF)
		h5_log("%s: %s%s", o->file, what, e->text);
	else
		h5_log("%s: %s%s at address %" PRIu64, o->file, what, e->text, e->address);
	return status;
}

/* True: the file is marked as being written. In older versions the flags mean nothing: libhdf5 1.6 left them
 * set. */
static bool is_marked(const struct h5_file *file)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	return sb->version >= 3 && sb->consistency & (H5_FLAG_WRITING | H5_FLAG_SWMR);
}

/* What was done about a journal; NULL: there was none, or it was not needed. */
static const char *recovery(const struct h5_opened *opened)
{
	switch (opened->recovered.what) {
	case H5_RECOVERY_REPLAYED:
		return "what a killed mount had begun to commit was completed from its journal";
	case H5_RECOVERY_STALE:
		return "its journal is stale, since another program has written the file: not replayed";
	case H5_RECOVERY_BUSY:
		return "another h5fs writes it";
	case H5_RECOVERY_UNFIT:
		return "its journal is not heeded: it is shown as it is";
	default:
		return opened->recovered.swmr ? "the marks of a killed swmr mount were cleared" : NULL;
	}
}

/* Logs what the user should know about a file that is mounted nevertheless. */
static void warn(const struct h5_options *o, const struct h5_file_set *set, const struct h5_opened *opened)
{
	struct h5_file *file = h5_file_set_root(set);
	const struct h5_superblock *sb = h5_file_superblock(file);
	const char *missing = h5_file_missing(file), *warning = opened->warning, *done = recovery(opened);
	uint64_t end = sb->base + h5_file_end(file);

	if (warning && done)
		h5_log_at(H5_LOG_NORMAL, "%s: %s (%s)", o->file, done, warning);
	else if (warning || done)
		h5_log_at(H5_LOG_NORMAL, "%s: %s", o->file, warning ? warning : done);
	if (!o->set.writable && is_marked(file))
		h5_log_at(
			H5_LOG_NORMAL,
			"%s: marked as open for writing: a program writes it without a lock, or has crashed",
			o->file);
	if (missing)
		h5_log_at(H5_LOG_NORMAL, "%s: missing%s: %s; what lies in it cannot be read", o->file,
			  o->set.external == H5_EXTERNAL_NONE ? ", or not opened (external=none)" : "",
			  missing);
	else if (sb->end != H5_UNDEF && sb->end > end)
		h5_log_at(H5_LOG_NORMAL,
			  "%s: truncated: %" PRIu64 " bytes of %" PRIu64 "; what lies beyond cannot be read",
			  o->file, end, sb->end);
}

/* libfuse's messages are not about the file. */
static void discard_log(enum fuse_log_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
}

/* Serves until the mount ends, then commits the rest. */
static int serve_and_commit(struct h5_mount *m, const struct h5_options *o, struct h5_unmounter *unmounter,
			    struct h5_background *background)
{
	struct h5_watch *watch = NULL;
	int rc = 0, code = 0;

	if (m->writable)
		code = h5_committer_start(m->vfs, &m->committer);
	if (m->writable && !code)
		code = h5_invalidator_start(m->session, m->vfs, &m->invalidator);
	if (!code)
		code = h5_watch_start(m, unmounter, o->timeout, &watch);
	if (code) {
		h5_invalidator_stop(m->invalidator);
		h5_committer_stop(m->committer);
		h5_log("%s: cannot start a thread: %s", o->file, strerror(-code));
		return EXIT_MOUNT;
	}
	h5_log_at(H5_LOG_VERBOSE, "%s: mounted at %s for %s", o->file, o->mountpoint,
		  m->writable ? "writing" : "reading");
	h5_unmounter_detach(unmounter);
	h5_background_ready(background);
	rc = o->single_thread ? fuse_session_loop(m->session) : h5_serve(m->session);
	/* Requests that nobody serves keep pages locked. The kernel shall abort them, so that the invalidator
	 * can end. */
	if (rc < 0)
		h5_unmounter_abort(unmounter);
	h5_watch_stop(watch);
	h5_invalidator_stop(m->invalidator);
	h5_committer_stop(m->committer);
	h5_interrupt_begin(NULL, NULL);
	h5_error_clear();
	code = h5_vfs_commit(m->vfs);
	if (code) {
		h5_log("%s: what was written last is lost: %s", o->file,
		       h5_error_last()->code == code ? h5_error_last()->text : strerror(-code));
		return EXIT_COMMIT;
	}
	return rc < 0 ? EXIT_MOUNT : EXIT_SUCCESS;
}

/* Files that are open need not be opened by name again, so only other files are allowed. */
static void enter_sandbox(const struct h5_options *o, const struct h5_file_set *set,
			  const struct h5_opened *opened)
{
	int all = o->set.external == H5_EXTERNAL_ANY ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	int folder = o->set.external == H5_EXTERNAL_BENEATH ? h5_file_set_directory(set) : all;
	const struct h5_sandbox sandbox = {
		.readable = folder,
		.writable = o->set.writable && o->vfs.external_write ? folder : -1,
		.journals = o->set.writable ? opened->journal_directory : -1,
		.pointers = o->set.writable && o->journal ? h5_file_set_directory(set) : -1,
	};

	if (o->sandbox)
		h5_sandbox_enter(&sandbox);
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
	if (!code)
		enter_sandbox(o, set, opened);
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
	int rc = EXIT_MOUNT;

	session = fuse_session_new(&o->args, &h5_operations, sizeof h5_operations, m);
	if (!session)
		return rc;
	m->session = session;
	if (fuse_set_signal_handlers(session))
		goto destroy;
	if (h5_mountpoint_mount(o, session, &mounted))
		goto handlers;
	if (m->writable && h5_negotiate_start(m))
		goto handlers;
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
 * them, so malloc() keeps it. The memory of large chunks is returned nevertheless: their holes in an arena
 * would fit nothing else, and no budget would count them. There are few arenas, since none can use the free
 * memory of another one. */
static void keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 8 << 20);
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
	mallopt(M_ARENA_MAX, 2);
}

/* A write beyond RLIMIT_FSIZE fails with EFBIG, like any other that has no room. */
static void survive_size_limit(void)
{
	signal(SIGXFSZ, SIG_IGN);
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

/* Opens a descriptor of the file for statfs, and checks the folder of the journal. */
static int open_place(struct h5_options *o)
{
	if (!o->set.writable)
		return 0;
	if (o->journal && access(o->journal, W_OK | X_OK))
		return h5_fail(-EACCES, H5_UNDEF, "%s: no place for a journal: %s", o->journal,
			       strerror(errno));
	o->vfs.file_fd = open(o->file, O_PATH | O_CLOEXEC);
	return o->vfs.file_fd < 0 ? h5_fail(-errno, H5_UNDEF, "%s", strerror(errno)) : 0;
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
	survive_size_limit();
	keep_memory();
	o->vfs.file = o->file;
	code = open_place(o);
	if (!code)
		code = h5_open_file(o->file, &o->set, &set, &opened);
	if (!code)
		code = h5_file_stat(h5_file_set_root(set), &st);
	if (!code)
		code = h5_vfs_open(set, &o->vfs, &m.vfs);
	if (!code) {
		warn(o, set, &opened);
		/* A SWMR writer gives up its own lock. */
		m.locked = st.locked && !o->set.swmr && (m.writable || !is_marked(h5_file_set_root(set)));
		m.timeout = m.locked ? LONG : 0;
	}
	rc = code ? refuse(o, code) : mount_and_serve(&m, o, set, &opened, background);
	h5_vfs_close(m.vfs);
	h5_file_set_close(set);
	h5_opened_release(&opened);
	return rc;
}

/* The daemon is forked before it takes locks and starts threads, since these do not survive a fork. */
static int run(struct h5_options *o)
{
	struct h5_background background = {.ready = -1};
	int rc = h5_mountpoint_find(o), code;

	if (rc)
		return rc;
	h5_signals_begin(o->foreground);
	code = o->foreground ? 0 : h5_background_begin(&background);
	rc = code ? refuse(o, code) : open_and_mount(o, &background);
	/* In the sandbox this fails, but then the unmounter has removed it. */
	h5_mountpoint_remove(o);
	return rc;
}

/* h5fs --recover: opening the file for writing recovers it. */
static int recover(const struct h5_options *o)
{
	struct h5_file_set *set;
	struct h5_opened opened;
	const char *done;
	int rc = h5_open_file(o->file, &o->set, &set, &opened);

	if (rc)
		return refuse(o, rc);
	done = recovery(&opened);
	printf("%s: %s\n", o->file, done ? done : "nothing to recover");
	h5_file_set_close(set);
	h5_opened_release(&opened);
	return EXIT_SUCCESS;
}

/* A command that only reads the open file. */
typedef int look(const struct h5_options *o, struct h5_file_set *set, enum h5_offline_result *result);

/* For the limit of a command's work, which is that of one request. */
struct work {
	const struct h5_options *options;
	struct h5_file_set *set;
};

static uint64_t work_limit(void *arg)
{
	const struct work *work = arg;

	return h5_file_set_work(work->set, work->options->vfs.max_work);
}

static int check(const struct h5_options *o, struct h5_file_set *set, enum h5_offline_result *result)
{
	return h5_offline_check(set, o->file, result);
}

static int list(const struct h5_options *o, struct h5_file_set *set, enum h5_offline_result *result)
{
	struct h5_vfs *vfs;
	int rc = h5_vfs_open(set, &o->vfs, &vfs);

	if (rc)
		return rc;
	rc = h5_offline_list(vfs, result);
	h5_vfs_close(vfs);
	return rc;
}

static int look_at(struct h5_options *o, look *what)
{
	static const int statuses[] = {
		[H5_OFFLINE_SOUND] = EXIT_SUCCESS,
		[H5_OFFLINE_UNKNOWN] = EXIT_UNSUPPORTED,
		[H5_OFFLINE_DAMAGED] = EXIT_DAMAGED,
	};
	enum h5_offline_result result = H5_OFFLINE_SOUND;
	struct h5_opened opened;
	struct h5_file_set *set;
	struct work work = {.options = o};
	int rc;

	o->set.writable = o->vfs.writable = false;
	keep_memory();
	rc = h5_open_file(o->file, &o->set, &set, &opened);
	if (rc)
		return refuse(o, rc);
	warn(o, set, &opened);
	enter_sandbox(o, set, &opened);
	work.set = set;
	h5_interrupt_begin(NULL, &work);
	h5_interrupt_bound(work_limit);
	rc = what(o, set, &result);
	h5_interrupt_begin(NULL, NULL);
	if (rc)
		rc = refuse(o, rc);
	h5_file_set_close(set);
	h5_opened_release(&opened);
	return rc ? rc : statuses[result];
}

static int obey(struct h5_options *o)
{
	switch (o->command) {
	case H5_COMMAND_CHECK:
		return look_at(o, check);
	case H5_COMMAND_LIST:
		return look_at(o, list);
	case H5_COMMAND_RECOVER:
		return recover(o);
	default:
		return run(o);
	}
}

static void print_versions(void)
{
	const struct h5_filter_ops *ops;

	printf("h5fs %s\nlibfuse %s\nzlib %s\nfilters:", PACKAGE_VERSION, fuse_pkgversion(), zlibVersion());
	for (unsigned n = 0; (ops = h5_filter_at(n)); n++)
		if (ops->decode)
			printf(" %s", ops->name);
	putchar('\n');
	h5_sandbox_describe(stdout);
}

/* If standard output were closed, the next file that is opened would get its number and be written to.
 * /dev/null opened for reading refuses writes. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Nobody must take half a report for the whole one, so a failed write is an error. */
static int check_output(int rc)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return rc;
	h5_log("standard output: %s", strerror(errno ? errno : EIO));
	return rc ? rc : EXIT_OUTPUT;
}

int main(int argc, char **argv)
{
	struct h5_options options;
	int rc = EXIT_SUCCESS;

	fill_standard_descriptors();
	if (h5_options_parse(argc, argv, &options))
		return options.is_helper ? HELPER_FAILED : EXIT_USAGE;
	h5_log_set_level(options.quiet ? H5_LOG_QUIET : options.verbose ? H5_LOG_VERBOSE : H5_LOG_NORMAL);
	options.set.check = h5_vfs_check_object;
	options.vfs.log = h5_log;
	options.vfs.waits = h5_serve_others;
	if (options.help)
		h5_options_usage(argv[0]);
	else if (options.version)
		print_versions();
	else
		rc = obey(&options);
	rc = check_output(rc);
	if (rc && options.is_helper)
		rc = HELPER_FAILED;
	h5_options_release(&options);
	return rc;
}

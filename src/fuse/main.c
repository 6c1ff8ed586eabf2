/* h5fs: mounts an HDF5 file, or looks at it without a mount. */
#include "config.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "filter/filter.h"
#include "fuse/daemon.h"
#include "fuse/log.h"
#include "fuse/loop.h"
#include "fuse/opening.h"
#include "fuse/options.h"
#include "fuse/report.h"
#include "fuse/sandbox.h"
#include "fuse/status.h"
#include "fuse/unmount.h"
#include "offline/offline.h"
#include "offline/progress.h"
#include "offline/stop.h"
#include "offline/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { HELPER_FAILED = 32 }; /* the exit status by which mount(8) knows that mounting failed */

struct recovery {
	struct h5_progress progress;
	const char *file;
};

static void show_recovery(void *arg, uint64_t done, uint64_t total)
{
	struct recovery *r = arg;

	if (!done)
		h5_progress_begin(&r->progress, total);
	h5_progress_show(&r->progress, done, r->file, strlen(r->file));
}

/* h5fs --recover: opening the file for writing recovers it. */
static int recover(struct h5_options *o)
{
	struct recovery r = {.progress.wanted = !o->quiet, .file = o->file};
	struct h5_file_set *set = NULL;
	struct h5_opened opened = {.journal_directory = -1};
	int rc;

	o->set.recovery_progress = show_recovery;
	o->set.recovery_arg = &r;
	rc = h5_opening_begin(o, &set, &opened);
	h5_progress_erase(&r.progress);
	if (rc) {
		rc = h5_report_refusal(o, rc);
	} else {
		const char *done = h5_report_recovery(&opened);

		printf("%s: %s\n", o->file, done ? done : "nothing to recover");
	}
	h5_opening_end(o, set, &opened);
	return rc;
}

/* A command that looks at the open file. */
struct command {
	const struct h5_options *options;
	struct h5_file_set *set;
	struct h5_progress progress;
	struct h5_target target; /* of --extract */
	enum h5_offline_result result;
};

typedef int look(struct command *c);

/* The limit of a command's work is that of one request. */
static uint64_t work_limit(void *arg)
{
	const struct command *c = arg;

	return h5_file_set_work(c->set, c->options->vfs.max_work);
}

static int check(struct command *c)
{
	return h5_offline_check(c->set, c->options->file, &c->progress, &c->result);
}

static int reclaim(struct command *c)
{
	return h5_offline_reclaim(c->set, c->options->file, &c->progress, &c->result);
}

/* ---- commands that look at the tree ---- */

static int list_tree(struct command *c, struct h5_vfs *vfs)
{
	const struct h5_options *o = c->options;

	return h5_offline_list(vfs, o->path ? o->path : "/", o->json, &c->result);
}

/* Says why something of the tree could not be read. */
static void complain(const struct h5_options *o, const char *path, int rc)
{
	const struct h5_error *e = h5_error_last();
	struct h5_buf said;

	h5_buf_init(&said, SIZE_MAX);
	h5_escape(&said, path, strlen(path));
	h5_log("%s: %.*s: %s", o->file, (int)said.size, said.data, e->code == rc ? e->text : strerror(-rc));
	h5_buf_release(&said);
}

static int cat_path(struct command *c, struct h5_vfs *vfs, const char *path)
{
	int rc = h5_offline_cat(vfs, path, c->options->file, &c->progress, &c->result);

	if (rc && c->result == H5_OFFLINE_NO_OUTPUT)
		h5_log("standard output: %s", strerror(-rc));
	else if (rc)
		complain(c->options, path, rc);
	return 0;
}

static int cat_file(struct command *c, struct h5_vfs *vfs)
{
	return cat_path(c, vfs, c->options->path);
}

static int cat_kerchunk(struct command *c, struct h5_vfs *vfs)
{
	/* A link may be called `.h5fs`; this name is always that of the views. */
	return cat_path(c, vfs, "%2Eh5fs/kerchunk.json");
}

static int extract_tree(struct command *c, struct h5_vfs *vfs)
{
	const struct h5_options *o = c->options;
	int rc;

	h5_stop_hear();
	rc = h5_offline_extract(vfs, o->path ? o->path : "/", &c->target, &c->progress, &c->result);
	if (rc)
		h5_log("%s: %s: what it has is not all", o->target,
		       rc == -EINTR ? "interrupted" : strerror(-rc));
	return 0;
}

static int look_at_tree(struct command *c, int (*what)(struct command *c, struct h5_vfs *vfs))
{
	struct h5_vfs *vfs;
	int rc = h5_vfs_open(c->set, &c->options->vfs, &vfs);

	if (rc)
		return rc;
	rc = what(c, vfs);
	h5_vfs_close(vfs);
	return rc;
}

static int list(struct command *c)
{
	return look_at_tree(c, list_tree);
}

static int cat(struct command *c)
{
	return look_at_tree(c, cat_file);
}

static int kerchunk(struct command *c)
{
	return look_at_tree(c, cat_kerchunk);
}

static int extract(struct command *c)
{
	return look_at_tree(c, extract_tree);
}

/* Opens the folder that is written to, which later the sandbox forbids. 0, or an exit status. */
static int open_target(struct command *c)
{
	const struct h5_options *o = c->options;
	int rc = o->target ? h5_target_open(o->target, &c->target) : 0;

	if (!rc)
		return 0;
	h5_log("%s: %s", o->target, h5_error_last()->text);
	return EXIT_FAILURE;
}

/* With the file open. Returns the exit status. */
static int look_at_open(struct command *c, const struct h5_opened *opened, look *what)
{
	static const int statuses[] = {
		[H5_OFFLINE_SOUND] = EXIT_SUCCESS,    [H5_OFFLINE_UNKNOWN] = EXIT_UNSUPPORTED,
		[H5_OFFLINE_DAMAGED] = EXIT_DAMAGED,  [H5_OFFLINE_FAILED] = EXIT_FAILURE,
		[H5_OFFLINE_NO_OUTPUT] = EXIT_OUTPUT,
	};
	int rc = open_target(c);

	if (rc)
		return rc;
	h5_report_warnings(c->options, c->options->file, c->set, opened);
	h5_daemon_enter_sandbox(c->options, c->set, opened, c->target.top);
	h5_interrupt_begin(NULL, c);
	h5_interrupt_bound(work_limit);
	rc = what(c);
	h5_interrupt_begin(NULL, NULL);
	h5_target_close(&c->target);
	if (rc)
		return h5_report_refusal(c->options, rc);
	if (c->options->set.remote && h5_remote_is_incomplete(c->options->set.remote))
		return h5_report_incomplete(c->options);
	return statuses[c->result];
}

/* False: the terminal has no place for a line that says how far the command is, since it prints there what it
 * reads. */
static bool can_show_progress(const struct h5_options *o)
{
	return (o->command != H5_COMMAND_CAT && o->command != H5_COMMAND_KERCHUNK) || !isatty(STDOUT_FILENO);
}

static int look_at(struct h5_options *o, look *what)
{
	struct command c = {
		.options = o, .progress.wanted = !o->quiet && can_show_progress(o), .target.top = -1};
	struct h5_opened opened = {.journal_directory = -1};
	int rc;

	h5_daemon_keep_memory();
	rc = h5_opening_begin(o, &c.set, &opened);
	rc = rc ? h5_report_refusal(o, rc) : look_at_open(&c, &opened, what);
	h5_opening_end(o, c.set, &opened);
	h5_stop_obey();
	return rc;
}

static int obey(struct h5_options *o)
{
	int rc;

	if (o->fake)
		return EXIT_SUCCESS;
	if (o->command == H5_COMMAND_UNMOUNT)
		return h5_unmount_command(o);
	if (o->command == H5_COMMAND_REMOUNT)
		return h5_remount_command(o);
	rc = h5_opening_check(o);
	if (rc)
		return h5_report_refusal(o, rc);
	switch (o->command) {
	case H5_COMMAND_CAT:
		return look_at(o, cat);
	case H5_COMMAND_CHECK:
		return look_at(o, check);
	case H5_COMMAND_EXTRACT:
		return look_at(o, extract);
	case H5_COMMAND_KERCHUNK:
		return look_at(o, kerchunk);
	case H5_COMMAND_LIST:
		return look_at(o, list);
	case H5_COMMAND_RECLAIM:
		return look_at(o, reclaim);
	case H5_COMMAND_RECOVER:
		return recover(o);
	default:
		return h5_daemon_run(o);
	}
}

static void print_versions(void)
{
	const char *curl = h5_fetcher_version();

	printf("h5fs %s\nlibfuse %s\nzlib %s\n", PACKAGE_VERSION, fuse_pkgversion(), zlibVersion());
	printf("libcurl %s\nfilters:", curl ? curl : "none: no URLs");
	for (const struct h5_filter_ops *ops = h5_filters; ops->name; ops++)
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
	while (fd != -1 && fd <= STDERR_FILENO);
	if (fd != -1)
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

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
#include "offline/offline.h"
#include "offline/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { HELPER_FAILED = 32 }; /* the exit status by which mount(8) knows that mounting failed */

/* h5fs --recover: opening the file for writing recovers it. */
static int recover(struct h5_options *o)
{
	struct h5_file_set *set = NULL;
	struct h5_opened opened = {.journal_directory = -1};
	const char *done;
	int rc = h5_opening_begin(o, &set, &opened);

	if (rc) {
		rc = h5_report_refusal(o, rc);
		h5_opening_end(o, set, &opened);
		return rc;
	}
	done = h5_report_recovery(&opened);
	printf("%s: %s\n", o->file, done ? done : "nothing to recover");
	h5_opening_end(o, set, &opened);
	return EXIT_SUCCESS;
}

/* A command that looks at the open file. */
typedef int look(const struct h5_options *o, struct h5_file_set *set, struct h5_progress *progress,
		 enum h5_offline_result *result);

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

static int check(const struct h5_options *o, struct h5_file_set *set, struct h5_progress *progress,
		 enum h5_offline_result *result)
{
	return h5_offline_check(set, o->file, progress, result);
}

static int reclaim(const struct h5_options *o, struct h5_file_set *set, struct h5_progress *progress,
		   enum h5_offline_result *result)
{
	return h5_offline_reclaim(set, o->file, progress, result);
}

static int list(const struct h5_options *o, struct h5_file_set *set, struct h5_progress *progress,
		enum h5_offline_result *result)
{
	struct h5_vfs *vfs;
	int rc = h5_vfs_open(set, &o->vfs, &vfs);

	(void)progress;
	if (rc)
		return rc;
	rc = h5_offline_list(vfs, o->path ? o->path : "/", o->json, result);
	h5_vfs_close(vfs);
	return rc;
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

static int cat(const struct h5_options *o, struct h5_file_set *set, struct h5_progress *progress,
	       enum h5_offline_result *result)
{
	struct h5_vfs *vfs;
	int rc = h5_vfs_open(set, &o->vfs, &vfs);

	(void)progress;
	if (rc)
		return rc;
	rc = h5_offline_cat(vfs, o->path, result);
	if (rc)
		complain(o, *result == H5_OFFLINE_NO_OUTPUT ? "standard output" : o->path, rc);
	h5_vfs_close(vfs);
	return 0;
}

static int look_at(struct h5_options *o, look *what)
{
	static const int statuses[] = {
		[H5_OFFLINE_SOUND] = EXIT_SUCCESS,    [H5_OFFLINE_UNKNOWN] = EXIT_UNSUPPORTED,
		[H5_OFFLINE_DAMAGED] = EXIT_DAMAGED,  [H5_OFFLINE_FAILED] = EXIT_FAILURE,
		[H5_OFFLINE_NO_OUTPUT] = EXIT_OUTPUT,
	};
	enum h5_offline_result result = H5_OFFLINE_SOUND;
	struct h5_opened opened = {.journal_directory = -1};
	struct h5_file_set *set = NULL;
	struct h5_progress progress = {.wanted = !o->quiet};
	struct work work = {.options = o};
	int rc;

	h5_daemon_keep_memory();
	rc = h5_opening_begin(o, &set, &opened);
	if (rc) {
		rc = h5_report_refusal(o, rc);
		h5_opening_end(o, set, &opened);
		return rc;
	}
	h5_report_warnings(o, set, &opened);
	h5_daemon_enter_sandbox(o, set, &opened);
	work.set = set;
	h5_interrupt_begin(NULL, &work);
	h5_interrupt_bound(work_limit);
	rc = what(o, set, &progress, &result);
	h5_interrupt_begin(NULL, NULL);
	if (rc)
		rc = h5_report_refusal(o, rc);
	h5_opening_end(o, set, &opened);
	return rc ? rc : statuses[result];
}

static int obey(struct h5_options *o)
{
	int rc = h5_opening_check(o);

	if (rc)
		return h5_report_refusal(o, rc);
	switch (o->command) {
	case H5_COMMAND_CAT:
		return look_at(o, cat);
	case H5_COMMAND_CHECK:
		return look_at(o, check);
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

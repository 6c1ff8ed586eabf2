/* A mount without FUSE, for tests that need to know each write: requests come on standard input, a line each,
 * with tabs between the words; for each a line is answered.
 *
 *	vfs_shell [FILE [RECORD]]
 *	vfs_shell --reclaim FILE RECORD
 *
 *	mount FILE		the first request where the command line has none; after `unmount` another one
 *	unmount			closes all; the error of what is written then
 *	check FILE		does what h5fs --check does, and prints what that prints before the answer
 *
 *	mkdir PATH		rmdir PATH		unlink PATH
 *	rename PATH PATH FLAGS	link PATH PATH		symlink TARGET PATH
 *	set PATH XATTR VALUE	remove PATH XATTR	commit
 *	fsync-directory PATH
 *	hold PATH		looks the path up and forgets it only at the end
 *	digest			a hash of all that the mount shows
 *	release			gives unused space back to the file system
 *
 * of files, which are known by a number N:
 *
 *	create PATH N [FLAGS]	open PATH N FLAGS	close N
 *	write N OFFSET BYTES SEED	byte i of the file becomes SEED + 7 * i + 13 * (i / 256)
 *	text N TEXT		at the end; | in the text is a newline
 *	put PATH FLAGS HEX	makes or opens the file, writes these bytes, closes it
 *	resize N SIZE		punch N OFFSET BYTES
 *	fsync N			flush N
 *
 * and faults:
 *
 *	fail N ERROR		the N-th call to write, resize or sync from now on fails; 0: none
 *	fail-all N ERROR	and all calls after it
 *	fail-memory N		the N-th allocation of the next request fails
 *	fail-read N		the N-th call to read of the next request fails
 *
 * With --reclaim it does what h5fs --reclaim does, and nothing else.
 *
 * The answer: the error, or 0; how many calls have been recorded; 1 if a fault has happened since it was
 * asked for, else 0; and the hash. In the end, RECORD has all calls (fault_io_save()). Paths are below the
 * root, without a slash at the ends; "" is the root. */
#include "vfs_shell.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/open.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "offline/offline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 200000 };

static int run_fail(struct shell *s, char *words[WORDS])
{
	fault_io_disarm(&s->fault);
	fault_io_arm(&s->fault, shell_number(words[1]));
	s->fault.error = *words[2] ? -(int)shell_number(words[2]) : -EIO;
	s->fault.lasting = !strcmp(words[0], "fail-all");
	s->fired = false;
	return 0;
}

static int run_fail_memory(struct shell *s, char *words[WORDS])
{
	s->fail_memory = shell_number(words[1]);
	return 0;
}

static int run_fail_read(struct shell *s, char *words[WORDS])
{
	s->fail_read = shell_number(words[1]);
	return 0;
}

static const struct request faults[] = {
	{"fail", run_fail},	      {"fail-all", run_fail}, {"fail-memory", run_fail_memory},
	{"fail-read", run_fail_read}, {NULL, NULL},
};

static int open_set(struct shell *s, const char *path, bool reclaims)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20,
						    .chunk_cache = 1 << 20,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = true,
						    .reclaims = reclaims,
						    .check = h5_vfs_check_object,
						    .wrap = fault_io_wrap,
						    .wrap_arg = &s->fault};

	return h5_open_file(path, &options, &s->set, NULL);
}

static int open_file(struct shell *s, const char *path)
{
	const struct h5_vfs_options vfs_options = {.writable = true, .gather = 1 << 20, .file_fd = -1};
	int rc = open_set(s, path, false);

	if (!rc)
		rc = h5_vfs_open(s->set, &vfs_options, &s->vfs);
	if (!rc)
		return 0;
	fprintf(stderr, "%s: %s: %s\n", path, strerror(-rc), h5_error_last()->text);
	h5_file_set_close(s->set);
	s->set = NULL;
	return rc;
}

static int close_file(struct shell *s)
{
	int rc;

	if (!s->set)
		return 0;
	for (unsigned i = 0; i < FILES; i++)
		shell_close(s, i);
	while (s->count)
		shell_forget(s, s->held[--s->count]);
	rc = h5_vfs_finish(s->vfs);
	h5_vfs_close(s->vfs);
	h5_file_set_close(s->set);
	s->vfs = NULL;
	s->set = NULL;
	return rc;
}

static int run_mount(struct shell *s, char *words[WORDS])
{
	if (s->set)
		return -EBUSY;
	fault_io_disarm(&s->fault);
	s->fault.files = 0;
	s->fired = false;
	return open_file(s, words[1]);
}

static int run_unmount(struct shell *s, char *words[WORDS])
{
	(void)words;
	return close_file(s);
}

static int run_check(struct shell *s, char *words[WORDS])
{
	const struct h5_file_set_options options = {
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_ALWAYS};
	enum h5_offline_result result = H5_OFFLINE_DAMAGED;
	struct h5_file_set *set = NULL;
	int rc = h5_open_file(words[1], &options, &set, NULL);

	(void)s;
	if (!rc)
		rc = h5_offline_check(set, words[1], NULL, &result);
	h5_file_set_close(set);
	return rc || result == H5_OFFLINE_SOUND ? rc : -EUCLEAN;
}

/* Those that need no mount. */
static const struct request mounts[] = {
	{"mount", run_mount},
	{"unmount", run_unmount},
	{"check", run_check},
	{NULL, NULL},
};

/* Runs the request with the faults that were asked for. */
static int run_request(struct shell *s, const struct request *request, char *words[WORDS])
{
	const bool arms = !strncmp(request->name, "fail", 4);
	int rc;

	if (!arms && s->fail_memory)
		fault_alloc_arm(s->fail_memory);
	if (!arms && s->fail_read)
		fault_call_arm(CALL_FAILS, s->fail_read, false);
	fault_alloc_count(!arms);
	rc = request->run(s, words);
	fault_alloc_count(false);
	if (arms)
		return rc;
	if (s->fail_memory || s->fail_read) {
		bool memory = fault_alloc_disarm(), read = fault_call_disarm();

		s->fired = memory || read;
		s->fail_memory = s->fail_read = 0;
	} else if (s->fault.fail) {
		s->fired = s->fault.calls >= s->fault.fail;
	}
	return rc;
}

static int run(struct shell *s, char *line)
{
	static const struct request *const tables[] = {mounts, shell_names, shell_files, faults};
	static char none[] = "";
	char *words[WORDS] = {none, none, none, none, none};

	line[strcspn(line, "\n")] = 0;
	for (unsigned i = 0; i < WORDS && line; i++)
		words[i] = strsep(&line, "\t");
	h5_error_clear();
	h5_interrupt_begin(NULL, NULL);
	for (unsigned t = 0; t < (s->set ? sizeof tables / sizeof *tables : 1); t++)
		for (const struct request *r = tables[t]; r->name; r++)
			if (!strcmp(r->name, words[0]))
				return run_request(s, r, words);
	return -ENOSYS;
}

/* Gives unused space of the file back. */
static int reclaim(struct shell *s, const char *path)
{
	enum h5_offline_result result = H5_OFFLINE_DAMAGED;
	int rc = open_set(s, path, true);

	if (rc)
		return rc;
	rc = h5_offline_reclaim(s->set, path, NULL, &result);
	h5_file_set_close(s->set);
	return rc || result == H5_OFFLINE_SOUND ? rc : -EUCLEAN;
}

int main(int argc, char **argv)
{
	static char line[LINE];
	struct shell s = {.fault = {.record = argc > 2, .error = -EIO}};
	int rc;

	if (argc == 4 && !strcmp(argv[1], "--reclaim")) {
		rc = reclaim(&s, argv[2]);
	} else {
		if (argc > 1 && open_file(&s, argv[1]))
			return 2;
		while (fgets(line, sizeof line, stdin)) {
			rc = run(&s, line);
			printf("%d %zu %d %016jx\n", -rc, s.fault.count, s.fired, (uintmax_t)s.digest);
			fflush(stdout);
		}
		rc = close_file(&s);
	}
	if (!rc && argc > 2)
		rc = fault_io_save(&s.fault, argv[argc - 1]);
	fault_io_release(&s.fault);
	if (rc)
		fprintf(stderr, "%s\n", strerror(-rc));
	return rc ? 1 : 0;
}

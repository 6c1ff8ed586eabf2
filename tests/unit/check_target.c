/* The directory that a tree is copied to: what is there stays, what fails leaves nothing, and nothing is
 * written elsewhere. */
#include "base/error.h"
#include "offline/target.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct copy {
	char path[160];
	struct h5_target target;
};

static const struct stat status = {
	.st_mode = S_IFREG | 0640, .st_mtim = {.tv_sec = 1000}, .st_atim = {.tv_sec = 2000}};

static void begin(struct copy *copy)
{
	snprintf(copy->path, sizeof copy->path, "%s/copy", scratch_folder());
	scratch_run("rm -rf '%s'", copy->path);
	SUCCEEDS(h5_target_open(copy->path, &copy->target));
}

static void end(struct copy *copy)
{
	h5_target_close(&copy->target);
	h5_target_close(&copy->target);
	scratch_run("rm -r '%s'", copy->path);
}

/* All that is in the directory, or in one of it. */
static void check_names(const struct copy *copy, const char *below, const char *expected)
{
	scratch_run("test \"$(cd '%s/%s'; echo $(ls -A))\" = '%s'", copy->path, below, expected);
}

static void check_text(const struct copy *copy, const char *name, const char *expected)
{
	scratch_run("test \"$(cat '%s/%s')\" = '%s'", copy->path, name, expected);
}

static int write_file(struct copy *copy, const char *name, const char *text)
{
	struct h5_target_file file;

	SUCCEEDS(h5_target_begin(&copy->target, name, &file));
	SUCCEEDS(h5_target_write(&file, 0, text, strlen(text)));
	return h5_target_end(&copy->target, &file, name, strlen(text), &status);
}

START_TEST(only_an_empty_directory)
{
	struct h5_target other;
	struct copy copy;
	char path[200];

	begin(&copy);
	SUCCEEDS(h5_target_open(copy.path, &other));
	h5_target_close(&other);
	SUCCEEDS(write_file(&copy, "file", "text"));
	ck_assert_int_eq(h5_target_open(copy.path, &other), -ENOTEMPTY);
	snprintf(path, sizeof path, "%s/file", copy.path);
	ck_assert_int_eq(h5_target_open(path, &other), -ENOTDIR);
	snprintf(path, sizeof path, "%s/none/below", copy.path);
	ck_assert_int_eq(h5_target_open(path, &other), -ENOENT);
	check_names(&copy, ".", "file");
	end(&copy);
}
END_TEST

/* One that cannot be looked through is not taken for empty, and nothing stays open. */
START_TEST(no_descriptor_is_left)
{
	static const char *const texts[] = {"cannot be opened: Too many open files", "Too many open files"};
	struct rlimit before, limit;
	struct h5_target other;
	struct copy copy;
	int next;

	begin(&copy);
	SUCCEEDS(write_file(&copy, "file", "text"));
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	next = dup(copy.target.top);
	close(next);
	for (int left = 0; left < 2; left++) {
		limit = before;
		limit.rlim_cur = (rlim_t)(next + left);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		ck_assert_int_eq(h5_target_open(copy.path, &other), -EMFILE);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
		ck_assert_str_eq(h5_error_last()->text, texts[left]);
		ck_assert_int_eq(dup(copy.target.top), next);
		close(next);
	}
	ck_assert_int_eq(h5_target_open(copy.path, &other), -ENOTEMPTY);
	end(&copy);
}
END_TEST

/* A directory that was made, but cannot be opened, is not gone into. */
START_TEST(no_descriptor_for_a_directory)
{
	struct rlimit before, limit;
	struct copy copy;
	int next;

	begin(&copy);
	SUCCEEDS(h5_target_enter(&copy.target, "a"));
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	next = dup(copy.target.top);
	close(next);
	limit = before;
	limit.rlim_cur = (rlim_t)next;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(h5_target_enter(&copy.target, "b"), -EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_str_eq(h5_error_last()->text, "cannot be opened: Too many open files");
	SUCCEEDS(write_file(&copy, "file", "text"));
	check_names(&copy, "a", "b file");
	SUCCEEDS(h5_target_leave(&copy.target));
	SUCCEEDS(write_file(&copy, "other", "text"));
	check_names(&copy, ".", "a other");
	end(&copy);
}
END_TEST

START_TEST(files_have_contents_and_status)
{
	struct h5_target_file file;
	struct copy copy;
	struct stat st;
	char path[200];

	begin(&copy);
	SUCCEEDS(h5_target_begin(&copy.target, "file", &file));
	SUCCEEDS(h5_target_write(&file, 2, "cd", 2));
	check_names(&copy, ".", ".h5fs-partial-0");
	SUCCEEDS(h5_target_write(&file, 0, "ab", 2));
	SUCCEEDS(h5_target_end(&copy.target, &file, "file", 6, &status));
	check_names(&copy, ".", "file");
	snprintf(path, sizeof path, "%s/file", copy.path);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 6);
	ck_assert_int_eq(st.st_mode, S_IFREG | 0640);
	ck_assert_int_eq(st.st_mtim.tv_sec, 1000);
	ck_assert_int_eq(st.st_atim.tv_sec, 2000);
	end(&copy);
}
END_TEST

/* A file that has the name already stays, and the new one is removed. */
START_TEST(names_that_are_taken)
{
	struct copy copy;

	begin(&copy);
	SUCCEEDS(write_file(&copy, "file", "first"));
	ck_assert_int_eq(write_file(&copy, "file", "second"), -EEXIST);
	check_names(&copy, ".", "file");
	check_text(&copy, "file", "first");
	ck_assert_int_eq(h5_target_enter(&copy.target, "file"), -EEXIST);
	ck_assert_int_eq(h5_target_symlink(&copy.target, "x", "file", &status), -EEXIST);
	ck_assert_int_eq(h5_target_link(&copy.target, "none", "link"), -ENOENT);
	ck_assert_int_eq(h5_target_link(&copy.target, "none/file", "link"), -ENOENT);
	ck_assert_int_eq(h5_target_link(&copy.target, "file", "file"), -EEXIST);
	SUCCEEDS(h5_target_link(&copy.target, "file", "link"));
	check_names(&copy, ".", "file link");
	check_text(&copy, "link", "first");
	end(&copy);
}
END_TEST

/* Files of the tree may have the names that files have while they are written. */
START_TEST(names_of_files_that_are_written)
{
	struct copy copy;

	begin(&copy);
	SUCCEEDS(write_file(&copy, ".h5fs-partial-0", "zero"));
	SUCCEEDS(write_file(&copy, ".h5fs-partial-1", "one"));
	SUCCEEDS(write_file(&copy, "file", "other"));
	check_names(&copy, ".", ".h5fs-partial-0 .h5fs-partial-1 file");
	check_text(&copy, ".h5fs-partial-0", "zero");
	check_text(&copy, ".h5fs-partial-1", "one");
	check_text(&copy, "file", "other");
	end(&copy);
}
END_TEST

START_TEST(files_that_cannot_be_written)
{
	const struct rlimit limit = {.rlim_cur = 4, .rlim_max = RLIM_INFINITY};
	struct rlimit before;
	struct h5_target_file file;
	struct copy copy;

	begin(&copy);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	SUCCEEDS(h5_target_begin(&copy.target, "file", &file));
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(h5_target_write(&file, 0, "longer", 6), -EFBIG);
	ck_assert_int_eq(h5_target_end(&copy.target, &file, "file", 6, &status), -EFBIG);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	check_names(&copy, ".", "");
	SUCCEEDS(h5_target_begin(&copy.target, "file", &file));
	h5_target_cancel(&copy.target, &file);
	check_names(&copy, ".", "");
	end(&copy);
}
END_TEST

START_TEST(directories_that_move)
{
	struct copy copy;
	unsigned descriptors;

	begin(&copy);
	SUCCEEDS(h5_target_enter(&copy.target, "a"));
	SUCCEEDS(h5_target_enter(&copy.target, "b"));
	SUCCEEDS(write_file(&copy, "file", "text"));
	SUCCEEDS(h5_target_leave(&copy.target));
	SUCCEEDS(h5_target_enter(&copy.target, "c"));
	scratch_run("mkdir '%s/d'; mv '%s/a/c' '%s/d'", copy.path, copy.path, copy.path);
	descriptors = unit_descriptors();
	ck_assert_int_eq(h5_target_leave(&copy.target), -ESTALE);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	check_names(&copy, "d", "c");
	scratch_run("mv '%s/d/c' '%s/a'", copy.path, copy.path);
	SUCCEEDS(h5_target_leave(&copy.target));
	SUCCEEDS(h5_target_leave(&copy.target));
	SUCCEEDS(write_file(&copy, "top", "text"));
	check_names(&copy, ".", "a d top");
	check_names(&copy, "a", "b c");
	end(&copy);
}
END_TEST

UNIT_MAIN("target", only_an_empty_directory, no_descriptor_is_left, no_descriptor_for_a_directory,
	  files_have_contents_and_status, names_that_are_taken, names_of_files_that_are_written,
	  files_that_cannot_be_written, directories_that_move)

/* The log: which lines it gets, and where they go. */
#include "base/error.h"
#include "fuse/log.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char path[160]; /* of the log */

static bool no_stat; /* fstat() fails */

int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);

int __wrap_fstat64(int fd, struct stat *st)
{
	if (!no_stat)
		return __real_fstat64(fd, st);
	errno = EIO;
	return -1;
}

/* The log of the process. It is opened once. */
static void begin(void)
{
	static bool opened;

	snprintf(path, sizeof path, "%s/log", scratch_folder());
	h5_log_set_level(H5_LOG_NORMAL);
	h5_error_clear();
	if (!opened) {
		SUCCEEDS(h5_log_open(path, "/none"));
		h5_log_detach();
	}
	opened = true;
	ck_assert_int_eq(truncate(path, 0), 0);
}

/* The lines of the log are these, each after the time and the process. */
static void check_lines(const char *const *expected, size_t count)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0, lines = 0;

	ck_assert_ptr_nonnull(f);
	for (ssize_t n; (n = getline(&line, &room, f)) > 0; lines++) {
		struct tm utc = {0};
		time_t now = time(NULL), when;
		const char *rest = strptime(line, "%Y-%m-%dT%H:%M:%SZ ", &utc);
		char process[32];

		ck_assert_ptr_nonnull(rest);
		when = timegm(&utc);
		ck_assert(when <= now && when > now - 1000);
		snprintf(process, sizeof process, "h5fs[%d]: ", (int)getpid());
		ck_assert(!strncmp(rest, process, strlen(process)));
		ck_assert_int_eq(line[n - 1], '\n');
		line[n - 1] = 0;
		ck_assert_uint_lt(lines, count);
		ck_assert_str_eq(rest + strlen(process), expected[lines]);
	}
	ck_assert_uint_eq(lines, count);
	free(line);
	fclose(f);
}

#define CHECK_LINES(...)                                                                                     \
	do {                                                                                                 \
		const char *const lines_[] = {__VA_ARGS__};                                                  \
		check_lines(lines_, sizeof lines_ / sizeof *lines_);                                         \
	} while (0)

/* A log is no pipe, no folder and not the HDF5 file, under whatever name. */
START_TEST(files_that_are_no_log)
{
	char name[200], other[200], said[64];
	int file, before;

	snprintf(name, sizeof name, "%s/fifo", scratch_folder());
	unlink(name);
	ck_assert_int_eq(mkfifo(name, 0600), 0);
	ck_assert_int_eq(h5_log_open(name, "/none"), -ENXIO);
	ck_assert_str_eq(h5_error_last()->text, "neither a file nor a character device");
	{
		int reader = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

		ck_assert_int_ge(reader, 0);
		ck_assert_int_eq(h5_log_open(name, "/none"), -EINVAL);
		ck_assert_str_eq(h5_error_last()->text, "neither a file nor a character device");
		close(reader);
	}
	unlink(name);
	ck_assert_int_eq(h5_log_open(scratch_folder(), "/none"), -EISDIR);
	snprintf(name, sizeof name, "%s/x.h5", scratch_folder());
	snprintf(other, sizeof other, "%s/link", scratch_folder());
	scratch_run("rm -f '%s' '%s'; echo >'%s'; ln '%s' '%s'", name, other, name, name, other);
	ck_assert_int_eq(h5_log_open(other, name), -EINVAL);
	ck_assert_str_eq(h5_error_last()->text, "this is the HDF5 file");
	scratch_run("rm '%s' '%s'", name, other);
	/* Without a log, lines still go to standard error. */
	h5_log_detach();
	file = memfd_create("stderr", MFD_CLOEXEC);
	before = dup(STDERR_FILENO);
	dup2(file, STDERR_FILENO);
	h5_log("a line");
	dup2(before, STDERR_FILENO);
	ck_assert_int_eq(pread(file, said, sizeof said, 0), (ssize_t)strlen("h5fs: a line\n"));
	ck_assert(!memcmp(said, "h5fs: a line\n", strlen("h5fs: a line\n")));
	close(before);
	close(file);
}
END_TEST

START_TEST(long_lines)
{
	char longest[1100], shown[1100], control[501], escaped[2001];

	begin();
	memset(longest, 'a', sizeof longest);
	longest[sizeof longest - 1] = 0;
	memset(shown, 'a', sizeof shown);
	shown[1023] = 0;
	memset(control, 1, sizeof control);
	control[500] = 0;
	for (size_t i = 0; i < 500; i++)
		memcpy(escaped + 4 * i, "\\001", 5);
	h5_log("%d and %s", 7, "a\nb");
	h5_log("%s", longest);
	h5_log("%s", control);
	CHECK_LINES("7 and a\\012b", shown, escaped);
}
END_TEST

START_TEST(lines_of_a_level)
{
	static const enum h5_log_level levels[] = {H5_LOG_QUIET, H5_LOG_NORMAL, H5_LOG_VERBOSE};

	begin();
	for (size_t i = 0; i < 3; i++) {
		h5_log_set_level(levels[i]);
		h5_log("always %zu", i);
		for (size_t k = 0; k < 3; k++)
			h5_log_at(levels[k], "%zu at %zu", k, i);
		ck_assert_int_eq(h5_log_wants(-EIO), i != 0);
	}
	CHECK_LINES("always 0", "0 at 0", "always 1", "0 at 1", "1 at 1", "always 2", "0 at 2", "1 at 2",
		    "2 at 2");
}
END_TEST

/* The log gets failures that are the file's fault, and refusals whose error has a text. */
START_TEST(failures)
{
	static const int about_the_file[] = {-EUCLEAN, -ENOTSUP, -EIO, -ENOMEM, -ENOSPC, -EDQUOT},
			 detailed[] = {-EFBIG, -EROFS, -EOVERFLOW},
			 others[] = {-ENOENT, -ENODATA, -EINVAL, -EACCES};

	begin();
	for (size_t i = 0; i < sizeof about_the_file / sizeof *about_the_file; i++)
		ck_assert(h5_log_wants(about_the_file[i]));
	for (size_t i = 0; i < sizeof detailed / sizeof *detailed; i++) {
		ck_assert(!h5_log_wants(detailed[i]));
		h5_fail(detailed[i], H5_UNDEF, "why");
		ck_assert(h5_log_wants(detailed[i]));
		h5_error_clear();
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		h5_fail(others[i], H5_UNDEF, "why");
		ck_assert(!h5_log_wants(others[i]));
		h5_log_failure("read", others[i], "x");
	}
	h5_error_clear();
	h5_log_failure("read", -EIO, NULL);
	h5_log_failure("read", -EIO, "group/data");
	h5_fail(-EUCLEAN, 700, "wrong");
	h5_log_failure("read", -EUCLEAN, "group/data");
	h5_log_failure("read", -EUCLEAN, "group/data");
	h5_log_failure("open", -EUCLEAN, NULL);
	h5_log_failure("open", -EIO, NULL);
	h5_fail(-EFBIG, H5_UNDEF, "much");
	h5_log_failure("write", -EFBIG, NULL);
	h5_fail(-EUCLEAN, 700, "wrong");
	h5_log_failure("read", -EUCLEAN, "group/data");
	CHECK_LINES("read: Input/output error", "read: Input/output error (group/data)",
		    "read: wrong at address 700 (group/data)", "open: wrong at address 700",
		    "open: Input/output error", "write: much", "read: wrong at address 700 (group/data)");
}
END_TEST

/* What cannot be looked at is no log, and is closed again. */
START_TEST(files_that_cannot_be_looked_at)
{
	const unsigned before = unit_descriptors();
	char name[200];

	snprintf(name, sizeof name, "%s/other", scratch_folder());
	no_stat = true;
	ck_assert_int_eq(h5_log_open(name, "/none"), -EIO);
	no_stat = false;
	ck_assert_str_eq(h5_error_last()->text, "Input/output error");
	ck_assert_uint_eq(unit_descriptors(), before);
	unlink(name);
}
END_TEST

/* A process that has closed all descriptors opens the log again with its first line, once; if that fails,
 * with the next one. */
START_TEST(a_log_that_is_opened_again)
{
	unsigned before;
	int reader;

	begin();
	h5_log("first");
	before = unit_descriptors();
	h5_log_reopen(getpid());
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	h5_log("lost");
	ck_assert_uint_eq(unit_descriptors(), before);
	ck_assert_int_eq(rmdir(path), 0);
	/* One that can be opened, but is no log. */
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	h5_log("lost, too");
	ck_assert_uint_eq(unit_descriptors(), before + 1);
	ck_assert_int_eq(unlink(path), 0);
	h5_log("second");
	close(reader);
	h5_log("third");
	ck_assert_uint_eq(unit_descriptors(), before + 1);
	CHECK_LINES("second", "third");
}
END_TEST

/* Another process writes to the system log for us. It gets the text as it is, and escapes it. */
START_TEST(lines_for_another_process)
{
	char text[1100], message[1100];
	int ends[2];

	begin();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
	h5_log_to_syslog();
	h5_log_through(ends[0]);
	h5_log("a\nb");
	ck_assert_int_eq(recv(ends[1], message, sizeof message, MSG_DONTWAIT), 4);
	ck_assert_mem_eq(message, "ma\nb", 4);
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = 0;
	h5_log("%s", text);
	ck_assert_int_eq(recv(ends[1], message, sizeof message, MSG_DONTWAIT), 1024);
	ck_assert_int_eq(message[0], H5_LOG_LINE);
	ck_assert_mem_eq(message + 1, text, 1023);
	h5_log_through(-1);
	close(ends[0]);
	close(ends[1]);
	h5_log_detach();
	check_lines(NULL, 0);
}
END_TEST

UNIT_MAIN("log", files_that_are_no_log, files_that_cannot_be_looked_at, a_log_that_is_opened_again,
	  long_lines, lines_of_a_level, failures, lines_for_another_process)

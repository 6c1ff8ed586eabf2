/* The folder of the disk cache: which files are believed, which one is found, and which have to go. */
#include "base/error.h"
#include "fault_alloc.h"
#include "remote/disk_folder.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 3 * H5_DISK_BLOCK + 5, MEGABYTE = 1 << 20, PAUSE = 5 };

static struct h5_disk_folder folder;
static char path[128];

/* ---- calls that fail, and the clock ---- */

static int64_t seconds; /* 0: the machine's clock */
static int rename_error, lock_error, stat_error, chance_error, unlink_error;
static int open_error; /* of the next file that is opened to be written, and not made */
static bool goes;      /* that file has been removed before */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_openat64(int dirfd, const char *name, int flags, mode_t mode);
int __wrap_openat64(int dirfd, const char *name, int flags, mode_t mode);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!seconds)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){.tv_sec = seconds};
	return 0;
}

#define WRAP(error, result, name, parameters, arguments)                                                     \
	result __real_##name parameters;                                                                     \
	result __wrap_##name parameters;                                                                     \
	result __wrap_##name parameters                                                                      \
	{                                                                                                    \
		errno = error;                                                                               \
		return error ? -1 : __real_##name arguments;                                                 \
	}

WRAP(rename_error, int, renameat2, (int from, const char *a, int to, const char *b, unsigned flags),
     (from, a, to, b, flags))
WRAP(unlink_error, int, unlinkat, (int dirfd, const char *name, int flags), (dirfd, name, flags))
WRAP(lock_error, int, flock, (int fd, int how), (fd, how))
WRAP(stat_error, int, fstat64, (int fd, struct stat *st), (fd, st))
WRAP(chance_error, ssize_t, getrandom, (void *bytes, size_t n, unsigned flags), (bytes, n, flags))

int __wrap_openat64(int dirfd, const char *name, int flags, mode_t mode)
{
	int error = open_error;

	if ((flags & O_ACCMODE) != O_RDWR || flags & O_CREAT)
		return __real_openat64(dirfd, name, flags, mode);
	open_error = 0;
	if (goes)
		unlinkat(dirfd, name, 0);
	goes = false;
	if (!error)
		return __real_openat64(dirfd, name, flags, mode);
	errno = error;
	return -1;
}

/* ---- */

static void begin(void)
{
	static unsigned number;
	int fd;

	snprintf(path, sizeof path, "%s/%u", scratch_folder(), number++);
	fd = h5_disk_folder_open(path);
	ck_assert_int_ge(fd, 0);
	folder = (struct h5_disk_folder){.there = true, .fd = fd, .budget = 100 * MEGABYTE};
}

static void end(void)
{
	seconds = 0;
	rename_error = lock_error = stat_error = chance_error = unlink_error = open_error = 0;
	ck_assert_uint_eq(folder.open, 0);
	close(folder.fd);
}

/* Of a URL and a version. */
static struct h5_disk_header header_of(unsigned url, const char *tag)
{
	struct h5_disk_header header = {.url = {(uint8_t)url, (uint8_t)(url >> 8)}, .size = SIZE, .mtime = 5};

	snprintf(header.tag, sizeof header.tag, "\"%s\"", tag);
	return header;
}

static const char *name_of(const struct h5_disk_header *header)
{
	static char name[H5_DISK_NAME];

	h5_disk_name(header->url, header->tag, name);
	return name;
}

/* Makes the file of a version, which nobody has open. */
static void make(const struct h5_disk_header *header)
{
	struct h5_disk_file *file = h5_disk_open(&folder, header);

	ck_assert_ptr_nonnull(file);
	h5_disk_close(&folder, file);
	ck_assert_str_eq(folder.note, "");
}

static void set_time(const struct h5_disk_header *header, int64_t sec, long nsec)
{
	const struct timespec times[] = {{.tv_sec = sec, .tv_nsec = nsec}, {.tv_sec = sec, .tv_nsec = nsec}};

	ck_assert_int_eq(utimensat(folder.fd, name_of(header), times, 0), 0);
}

static bool is_there(const struct h5_disk_header *header)
{
	return !faccessat(folder.fd, name_of(header), F_OK, 0);
}

/* How many names are in the folder. */
static unsigned count(void)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	for (const struct dirent *entry; (entry = readdir(dir));)
		n += *entry->d_name != '.';
	closedir(dir);
	return n;
}

/* ---- the folder ---- */

START_TEST(places)
{
	char text[256];
	struct stat st;
	int fd;

	begin();
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	ck_assert_uint_eq(count(), 0);
	snprintf(text, sizeof text, "%s/link", path);
	ck_assert_int_eq(symlink("/tmp", text), 0);
	ck_assert_int_eq(h5_disk_folder_open(text), -ELOOP);
	ck_assert(strstr(h5_error_last()->text, "a symbolic link"));
	snprintf(text, sizeof text, "%s/none/x", path);
	ck_assert_int_eq(h5_disk_folder_open(text), -ENOENT);
	ck_assert(strstr(h5_error_last()->text, "disk_cache=/"));
	snprintf(text, sizeof text, "%s/file", path);
	close(open(text, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ck_assert_int_eq(h5_disk_folder_open(text), -ENOTDIR);
	ck_assert(strstr(h5_error_last()->text, strerror(ENOTDIR)));
	/* Files must be locked there; if they are just now being removed, that is nothing. */
	lock_error = ENOLCK;
	ck_assert_int_eq(h5_disk_folder_open(path), -ENOLCK);
	ck_assert_uint_eq(count(), 2);
	lock_error = EWOULDBLOCK;
	snprintf(text, sizeof text, "%s", path);
	close(h5_disk_folder_open(text));
	ck_assert_uint_eq(count(), 2);
	/* A file that cannot be removed. */
	lock_error = 0;
	unlink_error = EACCES;
	ck_assert_int_eq(h5_disk_folder_open(path), -EACCES);
	/* The file is gone already. */
	unlink_error = ENOENT;
	fd = h5_disk_folder_open(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	end();
}
END_TEST

/* ---- files ---- */

START_TEST(versions)
{
	const struct h5_disk_header a = header_of(1, "a"), b = header_of(1, "b"), other = header_of(2, "a");
	struct h5_disk_file *file, *again;
	unsigned descriptors;

	begin();
	ck_assert_ptr_null(h5_disk_find(&folder, a.url));
	descriptors = unit_descriptors();
	file = h5_disk_open(&folder, &a);
	ck_assert_uint_eq(folder.open, 1);
	ck_assert_mem_eq(&file->header, &a, sizeof a);
	ck_assert_str_eq(file->name, name_of(&a));
	again = h5_disk_open(&folder, &a); /* it is there */
	ck_assert_uint_eq(folder.open, 2);
	ck_assert_mem_eq(&again->header, &a, sizeof a);
	ck_assert_uint_eq(count(), 1);
	h5_disk_close(&folder, file);
	h5_disk_close(&folder, again);
	h5_disk_close(&folder, NULL);
	make(&b);
	make(&other);
	ck_assert_uint_eq(count(), 3);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	end();
}
END_TEST

/* The version that was used last is found, to the nanosecond. */
START_TEST(the_last_one)
{
	const struct h5_disk_header a = header_of(1, "a"), b = header_of(1, "b"), c = header_of(1, "c"),
				    other = header_of(2, "a");
	const struct h5_disk_header *const all[] = {&a, &b, &c};
	struct h5_disk_file *file;

	begin();
	for (size_t i = 0; i < 3; i++)
		make(all[i]);
	make(&other);
	set_time(&other, 2000, 0);
	for (size_t last = 0; last < 3; last++)
		for (int by_seconds = 0; by_seconds < 2; by_seconds++) {
			for (size_t i = 0; i < 3; i++)
				if (by_seconds)
					set_time(all[i], i == last ? 1001 : 1000, i == last ? 0 : 999);
				else
					set_time(all[i], 1000, i == last ? 501 : 500);
			file = h5_disk_find(&folder, a.url);
			ck_assert_str_eq(file->header.tag, all[last]->tag);
			h5_disk_close(&folder, file);
		}
	/* One of the begin of time is older than others, but there. */
	set_time(&other, 0, 0);
	ck_assert_ptr_nonnull(file = h5_disk_find(&folder, other.url));
	h5_disk_close(&folder, file);
	end();
}
END_TEST

static int64_t time_of(const struct h5_disk_header *header)
{
	struct stat st;

	ck_assert_int_eq(fstatat(folder.fd, name_of(header), &st, 0), 0);
	return st.st_mtim.tv_sec;
}

START_TEST(use)
{
	const struct h5_disk_header a = header_of(1, "a");
	struct h5_disk_file *file;

	begin();
	make(&a);
	/* To be found is no use. */
	set_time(&a, 1000, 0);
	file = h5_disk_find(&folder, a.url);
	h5_disk_close(&folder, file);
	ck_assert_int_eq(time_of(&a), 1000);
	file = h5_disk_find(&folder, a.url);
	h5_disk_use(file);
	ck_assert_int_gt(time_of(&a), 1000);
	set_time(&a, 1000, 0);
	h5_disk_close(&folder, file);
	ck_assert_int_gt(time_of(&a), 1000);
	set_time(&a, 1000, 0);
	file = h5_disk_open(&folder, &a);
	ck_assert_int_gt(time_of(&a), 1000);
	h5_disk_close(&folder, file);
	end();
}
END_TEST

/* ---- what is not believed ---- */

static void become_link(const char *name)
{
	ck_assert_int_eq(unlinkat(folder.fd, name, 0), 0);
	ck_assert_int_eq(symlinkat("/dev/null", folder.fd, name), 0);
}

static void become_fifo(const char *name)
{
	ck_assert_int_eq(unlinkat(folder.fd, name, 0), 0);
	ck_assert_int_eq(mkfifoat(folder.fd, name, 0600), 0);
}

static void become_writable(const char *name)
{
	ck_assert_int_eq(fchmodat(folder.fd, name, 0620, 0), 0);
}

static void become_public(const char *name)
{
	ck_assert_int_eq(fchmodat(folder.fd, name, 0602, 0), 0);
}

static void become_two(const char *name)
{
	ck_assert_int_eq(linkat(folder.fd, name, folder.fd, "second", 0), 0);
}

static void become_empty(const char *name)
{
	int fd = openat(folder.fd, name, O_WRONLY | O_TRUNC | O_CLOEXEC);

	close(fd);
}

static void become_long(const char *name)
{
	int fd = openat(folder.fd, name, O_WRONLY | O_APPEND | O_CLOEXEC);

	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
}

static void become_damaged(const char *name)
{
	int fd = openat(folder.fd, name, O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, "x", 1, 20), 1);
	close(fd);
}

static void become_other(const char *name)
{
	const struct h5_disk_header other = header_of(2, "a");

	make(&other);
	ck_assert_int_eq(renameat(folder.fd, name_of(&other), folder.fd, name), 0);
}

static void become_another_version(const char *name)
{
	const struct h5_disk_header other = header_of(1, "b");

	make(&other);
	ck_assert_int_eq(renameat(folder.fd, name_of(&other), folder.fd, name), 0);
}

static void become_another_users(const char *name)
{
	if (!geteuid())
		ck_assert_int_eq(fchownat(folder.fd, name, 1, 1, 0), 0);
	else
		become_public(name);
}

static void become_another_size(const char *name)
{
	struct h5_disk_header other = header_of(1, "a");

	ck_assert_int_eq(unlinkat(folder.fd, name, 0), 0);
	other.size++;
	make(&other);
}

static const struct {
	void (*become)(const char *name);
	const char *why;
	bool is_found; /* only the server can tell */
} unsound[] = {
	{become_link, "a symbolic link", false},
	{become_fifo, "not a regular file", false},
	{become_writable, "others may write it", false},
	{become_public, "others may write it", false},
	{become_two, "it has several names", false},
	{become_empty, "", false},
	{become_long, "it does not have its size", false},
	{become_damaged, "the header is damaged", false},
	{become_other, "the file of another URL", false},
	{become_another_version, "the file of another URL", false},
	{become_another_users, "", false},
	{become_another_size, "another file has the same entity tag", true},
};

/* It is thrown away, and the log hears of it; a new file takes its place if it is to be used. */
START_TEST(what_is_not_believed)
{
	const struct h5_disk_header a = header_of(1, "a");
	struct h5_disk_file *file;
	char name[H5_DISK_NAME], expected[200];

	strcpy(name, name_of(&a));
	snprintf(expected, sizeof expected, "%s: %s", name, unsound[_i].why);
	for (int finds = 0; finds < 2; finds++) {
		struct stat st;

		begin();
		make(&a);
		unsound[_i].become(name);
		if (finds && !unsound[_i].is_found) {
			ck_assert_ptr_null(h5_disk_find(&folder, a.url));
			ck_assert(!is_there(&a));
		}
		file = h5_disk_open(&folder, &a);
		ck_assert_ptr_nonnull(file);
		ck_assert_mem_eq(&file->header, &a, sizeof a);
		ck_assert_int_eq(fstatat(folder.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600 && st.st_nlink == 1);
		ck_assert_msg(!strncmp(folder.note, expected, strlen(expected)), "%s", folder.note);
		ck_assert_ptr_nonnull(strstr(folder.note, ": thrown away"));
		ck_assert(!folder.stopped);
		h5_disk_close(&folder, file);
		end();
	}
}
END_TEST

/* What cannot be thrown away is left alone. */
START_TEST(a_folder_instead)
{
	const struct h5_disk_header a = header_of(1, "a");
	char expected[200];

	begin();
	ck_assert_int_eq(mkdirat(folder.fd, name_of(&a), 0700), 0);
	ck_assert_ptr_null(h5_disk_find(&folder, a.url));
	snprintf(expected, sizeof expected, "%s: not a regular file: not used, and cannot be removed",
		 name_of(&a));
	ck_assert_str_eq(folder.note, expected);
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert_uint_eq(count(), 1);
	/* The first note stays. */
	ck_assert_str_eq(folder.note, expected);
	end();
}
END_TEST

START_TEST(discarded_files)
{
	const struct h5_disk_header a = header_of(1, "a");
	struct h5_disk_file *file, *newer;

	begin();
	file = h5_disk_open(&folder, &a);
	h5_disk_discard(&folder, file, "why");
	ck_assert(!is_there(&a));
	ck_assert_ptr_nonnull(strstr(folder.note, ": why: thrown away"));
	/* The name leads to another file by now. */
	folder.note[0] = 0;
	file = h5_disk_open(&folder, &a);
	ck_assert_int_eq(unlinkat(folder.fd, name_of(&a), 0), 0);
	newer = h5_disk_open(&folder, &a);
	h5_disk_discard(&folder, file, "why");
	ck_assert(is_there(&a));
	ck_assert_str_eq(folder.note, "");
	h5_disk_close(&folder, newer);
	end();
}
END_TEST

/* Somebody removes the file just now, and again: it is not to be had, and that is all. */
START_TEST(files_that_go)
{
	const struct h5_disk_header a = header_of(1, "a");
	int fd;

	begin();
	make(&a);
	fd = openat(folder.fd, name_of(&a), O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	ck_assert_ptr_null(h5_disk_find(&folder, a.url));
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert(!folder.stopped && !*folder.note);
	ck_assert_uint_eq(count(), 1);
	close(fd);
	make(&a);
	end();
}
END_TEST

START_TEST(calls_that_fail)
{
	const struct h5_disk_header a = header_of(1, "a");
	struct rlimit before, limit;
	struct h5_disk_file *file;
	unsigned descriptors;

	/* A file system that does not know the flag. */
	begin();
	rename_error = EINVAL;
	make(&a);
	ck_assert_uint_eq(count(), 1);
	end();
	/* Nothing stays of what cannot be made. */
	begin();
	descriptors = unit_descriptors();
	rename_error = ENOSPC;
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert_uint_eq(count(), 0);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	ck_assert(folder.stopped);
	ck_assert_str_eq(folder.note, "nothing more is stored: No space left on device");
	end();
	begin();
	lock_error = ENOLCK;
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert_uint_eq(count(), 0);
	ck_assert_str_eq(folder.note, "nothing more is stored: No locks available");
	end();
	begin();
	lock_error = EWOULDBLOCK;
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert_uint_eq(count(), 0);
	ck_assert(!folder.stopped);
	end();
	/* One whose header cannot be written gets no name. */
	begin();
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 100;
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	file = h5_disk_open(&folder, &a);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	ck_assert_ptr_null(file);
	ck_assert_uint_eq(count(), 0);
	ck_assert_str_eq(folder.note, "nothing more is stored: File too large");
	end();
	/* It was faster. */
	begin();
	rename_error = EEXIST;
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert(!folder.stopped && !count());
	end();
	begin();
	make(&a);
	lock_error = ENOLCK;
	ck_assert_ptr_null(h5_disk_find(&folder, a.url));
	ck_assert(is_there(&a));
	end();
	begin();
	make(&a);
	folder.open = 512;
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert_ptr_null(h5_disk_find(&folder, a.url));
	folder.open = 511;
	file = h5_disk_open(&folder, &a);
	ck_assert_ptr_nonnull(file);
	h5_disk_close(&folder, file);
	file = h5_disk_find(&folder, a.url);
	h5_disk_close(&folder, file);
	ck_assert_uint_eq(folder.open, 511);
	folder.there = false;
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert_ptr_null(h5_disk_find(&folder, a.url));
	folder.open = 0;
	end();
}
END_TEST

/* A file that this user may not open is another one's. Any other error may pass by: the file stays. */
START_TEST(files_that_cannot_be_opened)
{
	static const struct {
		int error;
		bool stays;
	} cases[] = {{EACCES, false}, {EPERM, false}, {EMFILE, true}, {EIO, true}};
	const struct h5_disk_header a = header_of(1, "a");

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		make(&a);
		open_error = cases[i].error;
		ck_assert_ptr_null(h5_disk_find(&folder, a.url));
		ck_assert_int_eq(is_there(&a), cases[i].stays);
		ck_assert_int_eq(!*folder.note, cases[i].stays);
		if (!cases[i].stays)
			ck_assert_ptr_nonnull(strstr(folder.note, ": not a file of this user: thrown away"));
		ck_assert(!folder.stopped);
		end();
	}
}
END_TEST

START_TEST(files_that_cannot_be_looked_at)
{
	const struct h5_disk_header a = header_of(1, "a");
	unsigned descriptors;

	begin();
	make(&a);
	descriptors = unit_descriptors();
	stat_error = EIO;
	ck_assert_ptr_null(h5_disk_find(&folder, a.url));
	ck_assert(is_there(&a) && !folder.stopped && !*folder.note);
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert_str_eq(folder.note, "nothing more is stored: Input/output error");
	ck_assert(is_there(&a));
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	end();
}
END_TEST

/* Without random bytes no file can have a name that nobody knows. */
START_TEST(no_chance)
{
	const struct h5_disk_header a = header_of(1, "a");

	begin();
	chance_error = ENOSYS;
	ck_assert_int_eq(h5_disk_folder_open(path), -ENOSYS);
	ck_assert_ptr_null(h5_disk_open(&folder, &a));
	ck_assert_str_eq(folder.note, "nothing more is stored: Function not implemented");
	ck_assert_uint_eq(count(), 0);
	end();
}
END_TEST

/* ---- the budget ---- */

/* Makes a file of so many pages under the name. */
static void put(const char *name, size_t pages, int64_t when)
{
	static const char page[4096] = "x";
	const struct timespec times[] = {{.tv_sec = when / 10, .tv_nsec = when % 10},
					 {.tv_sec = when / 10, .tv_nsec = when % 10}};
	int fd = openat(folder.fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	for (size_t i = 0; i < pages; i++)
		ck_assert_int_eq(write(fd, page, sizeof page), sizeof page);
	futimens(fd, times);
	close(fd);
}

/* Five files of ten pages each, of which the last one was used first; a second or a nanosecond makes a
 * difference. */
static void put_five(void)
{
	for (unsigned i = 0; i < 5; i++) {
		const struct h5_disk_header header = header_of(i, "a");

		put(name_of(&header), 10, (i < 2 ? 1014 : 1004) - (int64_t)i);
	}
}

static unsigned count_five(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 5; i++) {
		const struct h5_disk_header header = header_of(i, "a");

		n |= (unsigned)is_there(&header) << i;
	}
	return n;
}

enum { PAGE = 4096, USED = 50 * PAGE };

/* Without files there is room for a part of the budget. */
START_TEST(parts_of_the_budget)
{
	static const struct {
		uint64_t budget, n, room;
		bool has;
	} cases[] = {{100 * MEGABYTE, 1, 25 * MEGABYTE, true},
		     {16 * MEGABYTE, 1, 4 * MEGABYTE, true},
		     {10 * MEGABYTE, 1, 4 * MEGABYTE, true},
		     {4 * MEGABYTE, 1, 4 * MEGABYTE, true},
		     {3 * MEGABYTE, 1, 3 * MEGABYTE, true},
		     {100, 100, 100, true},
		     {100, 101, 100, false},
		     {0, 1, 0, false},
		     {32 * MEGABYTE, 8 * MEGABYTE, 8 * MEGABYTE, true},
		     {32 * MEGABYTE, 8 * MEGABYTE + 1, 8 * MEGABYTE, false}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		folder.budget = cases[i].budget;
		ck_assert_int_eq(h5_disk_has_room(&folder, cases[i].n), cases[i].has);
		ck_assert_uint_eq(folder.room, cases[i].room - (cases[i].has ? cases[i].n : 0));
		/* That all was given is no want of room, so files are counted again. */
		if (cases[i].has && !folder.room)
			ck_assert(h5_disk_has_room(&folder, 1));
		end();
	}
}
END_TEST

/* Those go first that were not used for longest, and no more than have to. */
START_TEST(files_make_room)
{
	static const struct {
		uint64_t budget, n;
		unsigned left; /* of the five, a bit each */
		bool has;
	} cases[] = {
		{USED + PAGE, PAGE, 31, true},
		{USED + PAGE, PAGE + 1, 15, true},
		{USED, 1, 15, true},
		{USED, 10 * PAGE, 15, true},
		{USED, 10 * PAGE + 1, 7, true},
		{USED, USED, 0, true},
		/* What never will fit makes none go. */
		{USED, USED + 1, 31, false},
		{USED - 1, 1, 15, true},
		/* A part of the budget is free then: here 3 pages and a bit. */
		{USED + 1, 2, 15, true},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		put_five();
		folder.budget = cases[i].budget;
		ck_assert_msg(h5_disk_has_room(&folder, cases[i].n) == cases[i].has, "%zu", i);
		ck_assert_msg(count_five() == cases[i].left, "%zu: %u", i, count_five());
		ck_assert(!folder.stopped);
		end();
	}
	/* A sixteenth of the budget is more than one file. */
	begin();
	put_five();
	put("h5fs-new-x", 150, 9999);
	folder.budget = 200 * PAGE;
	ck_assert(h5_disk_has_room(&folder, 1));
	ck_assert_uint_eq(count_five(), 7);
	ck_assert_uint_eq(folder.room, 12 * PAGE + 8 * PAGE - 1);
	end();
}
END_TEST

/* The older of two goes, if only by a nanosecond. */
START_TEST(nanoseconds)
{
	for (uint8_t older = 0; older < 2; older++) {
		begin();
		for (uint8_t i = 0; i < 2; i++) {
			const struct h5_disk_header header = header_of(i, "a");

			put(name_of(&header), 10, 1000 + (i != older));
		}
		folder.budget = 20 * PAGE;
		ck_assert(h5_disk_has_room(&folder, 1));
		ck_assert_uint_eq(count_five(), older ? 1 : 2);
		end();
	}
}
END_TEST

/* Files in use, and those of others, do not go. */
START_TEST(files_that_stay)
{
	struct h5_disk_header header = header_of(4, "a");
	char longer[H5_DISK_NAME + 1] = ""; /* than any name of the cache */
	int fd;

	begin();
	put_five();
	put("mine", 100, 1);
	memset(longer, 'x', H5_DISK_NAME);
	put(memcpy(longer, H5_DISK_NEW, strlen(H5_DISK_NEW)), 100, 1);
	ck_assert_int_eq(mkdirat(folder.fd, "h5fs-new-folder", 0700), 0);
	fd = openat(folder.fd, name_of(&header), O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
	folder.budget = USED;
	ck_assert(h5_disk_has_room(&folder, 1));
	ck_assert_uint_eq(count_five(), 16 + 7);
	ck_assert_int_eq(faccessat(folder.fd, "mine", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(folder.fd, longer, F_OK, 0), 0);
	close(fd);
	end();
	/* One that cannot be opened, either; one that somebody else removes is gone. */
	for (int i = 0; i < 2; i++) {
		begin();
		put_five();
		open_error = i ? 0 : EACCES;
		goes = i;
		folder.budget = USED;
		ck_assert(h5_disk_has_room(&folder, 1));
		ck_assert_uint_eq(count_five(), i ? 15 : 16 + 7);
		end();
	}
	/* If all are in use, there is no room. */
	begin();
	put_five();
	lock_error = EWOULDBLOCK;
	folder.budget = USED;
	ck_assert(!h5_disk_has_room(&folder, 1));
	ck_assert_uint_eq(count_five(), 31);
	end();
}
END_TEST

/* Without room, files are not counted again and again. */
START_TEST(pauses)
{
	begin();
	put_five();
	lock_error = EWOULDBLOCK;
	folder.budget = USED;
	seconds = 1000;
	ck_assert(!h5_disk_has_room(&folder, 1));
	lock_error = 0;
	seconds += PAUSE - 1;
	ck_assert(!h5_disk_has_room(&folder, 1));
	ck_assert_uint_eq(count_five(), 31);
	seconds++;
	ck_assert(h5_disk_has_room(&folder, 1));
	ck_assert_uint_eq(count_five(), 15);
	/* As long as there is room, nothing is counted. */
	put("h5fs-new-y", 200, 1);
	ck_assert(h5_disk_has_room(&folder, folder.room));
	ck_assert_uint_eq(folder.room, 0);
	ck_assert_uint_eq(count_five(), 15);
	ck_assert(h5_disk_has_room(&folder, 1));
	ck_assert_int_eq(faccessat(folder.fd, "h5fs-new-y", F_OK, 0), -1);
	end();
}
END_TEST

START_TEST(an_end_of_storing)
{
	begin();
	h5_disk_stop(&folder, -EDQUOT);
	h5_disk_stop(&folder, -EIO);
	ck_assert_str_eq(folder.note, "nothing more is stored: Disk quota exceeded");
	ck_assert(!h5_disk_has_room(&folder, 1));
	end();
	begin();
	close(folder.fd);
	folder.fd = -1;
	ck_assert(!h5_disk_has_room(&folder, 1));
	ck_assert_str_eq(folder.note, "nothing more is stored: Bad file descriptor");
	folder.fd = open("/", O_RDONLY | O_CLOEXEC);
	end();
}
END_TEST

/* ---- memory ---- */

enum memory_task { COUNT, OPEN, FIND };

/* The n-th allocation fails. Returns false if there are fewer, and then all has succeeded. */
static bool fails(enum memory_task task, unsigned long n)
{
	const struct h5_disk_header a = header_of(7, "a");
	struct h5_disk_file *file = NULL;
	unsigned descriptors, before;
	bool has = false, fired;

	begin();
	put_five();
	if (task == FIND)
		make(&a);
	before = count();
	folder.budget = USED;
	folder.room = task == COUNT ? 0 : MEGABYTE;
	descriptors = unit_descriptors();
	fault_alloc_arm(n);
	fault_alloc_count(true);
	if (task == COUNT)
		has = h5_disk_has_room(&folder, PAGE);
	else
		file = task == OPEN ? h5_disk_open(&folder, &a) : h5_disk_find(&folder, a.url);
	fault_alloc_count(false);
	fired = fault_alloc_disarm();
	/* To open is tried several times. */
	ck_assert_int_eq(has || file, !fired || task == OPEN);
	h5_disk_close(&folder, file);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	ck_assert_uint_eq(folder.open, 0);
	if (fired)
		ck_assert_uint_eq(count(), before + (task == OPEN));
	ck_assert_str_eq(folder.note,
			 fired && task == COUNT ? "nothing more is stored: Cannot allocate memory" : "");
	end();
	return fired;
}

/* Then no file is taken away, nor left behind. */
START_TEST(memory_is_short)
{
	for (enum memory_task task = COUNT; task <= FIND; task++) {
		unsigned long n = 1;

		while (fails(task, n))
			n++;
		ck_assert_uint_gt(n, 1);
	}
}
END_TEST

UNIT_MAIN_LOOPS("disk_folder", {places, 1}, {versions, 1}, {the_last_one, 1}, {use, 1},
		{what_is_not_believed, sizeof unsound / sizeof *unsound}, {a_folder_instead, 1},
		{discarded_files, 1}, {files_that_go, 1}, {calls_that_fail, 1},
		{files_that_cannot_be_opened, 1}, {files_that_cannot_be_looked_at, 1}, {no_chance, 1},
		{parts_of_the_budget, 1}, {files_make_room, 1}, {nanoseconds, 1}, {files_that_stay, 1},
		{pauses, 1}, {an_end_of_storing, 1}, {memory_is_short, 1})

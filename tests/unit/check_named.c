/* Files that are opened by names that may lead anywhere: where each link and each dot leads. */
#include "io/named.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- calls that fail ---- */

static unsigned calls, failing; /* the call that fails, counted from 1; 0: none */
static int error;

static bool fails(void)
{
	if (!failing || ++calls != failing)
		return false;
	errno = error;
	return true;
}

static void arm(unsigned n, int code)
{
	calls = 0;
	failing = n;
	error = code;
}

/* True: a call has failed. */
static bool disarm(void)
{
	bool fired = failing && calls >= failing;

	failing = 0;
	return fired;
}

/* Another device, where all files are but the first that is looked at. */
struct elsewhere {
	unsigned major;
	const char *mounts; /* the table of mounts; NULL: there is none */
	bool is_opened;
};

enum { ELSEWHERE = 1048575 }; /* its minor number */

static const struct elsewhere *elsewhere; /* NULL: the kernel answers */
static unsigned looks, only_look;	  /* the one that finds another device; 0: all but the first */

static bool long_targets; /* links to files lead to more than there is room for */

/* openat2() has no wrapper in libc. */
static int beneath_error; /* 0: the kernel answers */
static unsigned beneath_calls, beneath_most;

int __real_open64(const char *path, int flags, ...);
int __real_openat64(int dirfd, const char *path, int flags, ...);
int __real_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st);
ssize_t __real_readlinkat(int dirfd, const char *path, char *target, size_t n);
int __real_fsync(int fd);
FILE *__real_fopen64(const char *path, const char *mode);
long __real_syscall(long number, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);
int __wrap_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st);
ssize_t __wrap_readlinkat(int dirfd, const char *path, char *target, size_t n);
int __wrap_fsync(int fd);
FILE *__wrap_fopen64(const char *path, const char *mode);
long __wrap_syscall(long number, ...);

/* No file is made through these. */
int __wrap_open64(const char *path, int flags, ...)
{
	return fails() ? -1 : __real_open64(path, flags, 0600);
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	return fails() ? -1 : __real_openat64(dirfd, path, flags, 0600);
}

int __wrap_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	int rc = fails() ? -1 : __real_statx(dirfd, path, flags, mask, st);

	if (!rc && elsewhere && (++looks == only_look || (!only_look && looks > 1))) {
		st->stx_dev_major = elsewhere->major;
		st->stx_dev_minor = ELSEWHERE;
	}
	return rc;
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	if (!elsewhere)
		return __real_fopen64(path, mode);
	ck_assert_str_eq(path, "/proc/self/mountinfo");
	if (!elsewhere->mounts)
		return NULL;
	if (*elsewhere->mounts == '/') /* a folder cannot be read */
		return __real_fopen64(elsewhere->mounts, mode);
	return fmemopen((char *)elsewhere->mounts, strlen(elsewhere->mounts), mode);
}

ssize_t __wrap_readlinkat(int dirfd, const char *path, char *target, size_t n)
{
	ssize_t size = fails() ? -1 : __real_readlinkat(dirfd, path, target, n);

	if (size < 0 || !long_targets)
		return size;
	memset(target + size, 0, n - (size_t)size); /* what is there would lead to a file */
	return (ssize_t)n;
}

int __wrap_fsync(int fd)
{
	return fails() ? -1 : __real_fsync(fd);
}

long __wrap_syscall(long number, ...)
{
	va_list arguments;
	long a[4];

	va_start(arguments, number);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_openat2 && beneath_error && beneath_calls++ < beneath_most) {
		errno = beneath_error;
		return -1;
	}
	return __real_syscall(number, a[0], a[1], a[2], a[3]);
}

/* ---- a folder ---- */

/* The folder "in" with files and links, and a file beside it. Each file holds its own name. */
struct scene {
	char top[128], in[160];
	int fd; /* of "in" */
};

static void make_file(const struct scene *s, const char *path)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof full, "%s/%s", s->top, path);
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	fputs(path, f);
	ck_assert_int_eq(fclose(f), 0);
}

static void make_folder(const struct scene *s, const char *path)
{
	char full[512];

	snprintf(full, sizeof full, "%s/%s", s->top, path);
	ck_assert_int_eq(mkdir(full, 0700), 0);
}

static void make_link(const struct scene *s, const char *path, const char *target)
{
	char full[512];

	snprintf(full, sizeof full, "%s/%s", s->top, path);
	ck_assert_int_eq(symlink(target, full), 0);
}

static void begin(struct scene *s)
{
	char absolute[512];

	snprintf(s->top, sizeof s->top, "%s/named", scratch_folder());
	snprintf(s->in, sizeof s->in, "%s/in", s->top);
	ck_assert_int_eq(mkdir(s->top, 0700), 0);
	make_folder(s, "in");
	make_folder(s, "in/deep");
	make_file(s, "beside");
	make_file(s, "in/file");
	make_file(s, "in/deep/file");
	make_link(s, "in/relative", "file");
	make_link(s, "in/to_folder", "deep");
	make_link(s, "in/deep/up", "../relative");
	make_link(s, "in/out", "../beside");
	make_link(s, "in/loop", "loop");
	snprintf(absolute, sizeof absolute, "%s/in/file", s->top);
	make_link(s, "in/absolute", absolute);
	snprintf(absolute, sizeof absolute, "%s/in/deep", s->top);
	make_link(s, "in/deep/again", absolute);
	s->fd = open(s->in, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(s->fd, 0);
}

static void end(struct scene *s)
{
	close(s->fd);
	scratch_run("rm -r %s", s->top);
}

/* `expected`: what the file holds; NULL: the error is `code`. */
static void opens(int fd, const char *path, const char *expected, int code)
{
	char found[64] = "";

	if (!expected) {
		ck_assert_msg(fd == code, "%s: %d", path, fd);
		return;
	}
	ck_assert_msg(fd >= 0, "%s: %d", path, fd);
	ck_assert_int_ge(read(fd, found, sizeof found - 1), 0);
	close(fd);
	ck_assert_msg(!strcmp(found, expected), "%s leads to %s", path, found);
}

START_TEST(names_that_may_lead_anywhere)
{
	static const struct {
		const char *path, *expected;
		int code;
	} names[] = {{"file", "in/file", 0},
		     {"./deep//file", "in/deep/file", 0},
		     {"deep/../file", "in/file", 0},
		     {"deep/./../file", "in/file", 0},
		     {"relative", "in/file", 0},
		     {"to_folder/file", "in/deep/file", 0},
		     {"to_folder/../file", "in/file", 0},
		     {"deep/up", "in/file", 0},
		     {"to_folder/up", "in/file", 0},
		     {"absolute", "in/file", 0},
		     {"deep/again/file", "in/deep/file", 0},
		     {"deep/again/../file", "in/file", 0},
		     {"deep/again/again/../deep/../../beside", "beside", 0},
		     {"../beside", "beside", 0},
		     {"out", "beside", 0},
		     {"deep/../../in/relative", "in/file", 0},
		     {"none", NULL, -ENOENT},
		     {"", NULL, -ENOENT},
		     {"deep", NULL, -EISDIR},
		     {"to_folder", NULL, -EISDIR},
		     {"file/", NULL, -ENOTDIR},
		     {"relative/none", NULL, -ENOTDIR},
		     {"loop", NULL, -ELOOP}};
	char absolute[512];
	struct scene s;

	begin(&s);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		opens(h5_named_open_anywhere(s.fd, s.in, names[i].path, O_RDONLY), names[i].path,
		      names[i].expected, names[i].code);
		snprintf(absolute, sizeof absolute, "%s/%s", s.in, names[i].path);
		if (*names[i].path)
			opens(h5_named_open_anywhere(s.fd, s.in, absolute, O_RDONLY), absolute,
			      names[i].expected, names[i].code);
	}
	/* Above the root is the root. */
	snprintf(absolute, sizeof absolute, "/../..%s/file", s.in);
	opens(h5_named_open_anywhere(s.fd, s.in, absolute, O_RDONLY), absolute, "in/file", 0);
	snprintf(absolute, sizeof absolute,
		 "../../../../../../../../../../../../../../../../../../../../../../../..%s/file", s.in);
	opens(h5_named_open_anywhere(s.fd, s.in, absolute, O_RDONLY), absolute, "in/file", 0);
	end(&s);
}
END_TEST

START_TEST(names_that_stay_beneath)
{
	char absolute[512];
	struct scene s;

	begin(&s);
	snprintf(absolute, sizeof absolute, "%s/file", s.in);
	opens(h5_named_open_beneath(s.fd, "relative", O_RDONLY), "relative", "in/file", 0);
	opens(h5_named_open_beneath(s.fd, "to_folder/up", O_RDONLY), "to_folder/up", "in/file", 0);
	opens(h5_named_open_beneath(s.fd, "out", O_RDONLY), "out", NULL, -EXDEV);
	opens(h5_named_open_beneath(s.fd, "absolute", O_RDONLY), "absolute", NULL, -EXDEV);
	opens(h5_named_open_beneath(s.fd, absolute, O_RDONLY), absolute, NULL, -EXDEV);
	opens(h5_named_open_without_links(s.fd, "deep/file", O_RDONLY), "deep/file", "in/deep/file", 0);
	opens(h5_named_open_without_links(s.fd, "relative", O_RDONLY), "relative", NULL, -ELOOP);
	opens(h5_named_open_without_links(s.fd, "to_folder/file", O_RDONLY), "to_folder/file", NULL, -ELOOP);
	end(&s);
}
END_TEST

/* Kernels and containers that do not know the call: the walk does the same. */
START_TEST(names_that_stay_beneath_without_the_call)
{
	static const int errors[] = {ENOSYS, EPERM, EAGAIN};
	static const struct {
		const char *path, *expected;
		int code;
	} names[] = {{"file", "in/file", 0},	  {"deep/./../file", "in/file", 0},
		     {"relative", "in/file", 0},  {"to_folder/up", "in/file", 0},
		     {"out", NULL, -EXDEV},	  {"absolute", NULL, -EXDEV},
		     {"../beside", NULL, -EXDEV}, {"deep/../../in/file", NULL, -EXDEV},
		     {"/", NULL, -EXDEV},	  {"none", NULL, -ENOENT},
		     {"loop", NULL, -ELOOP}};
	struct scene s;

	begin(&s);
	for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			beneath_error = errors[e];
			beneath_most = UINT_MAX;
			opens(h5_named_open_beneath(s.fd, names[i].path, O_RDONLY), names[i].path,
			      names[i].expected, names[i].code);
		}
	/* It is tried again. */
	beneath_error = EAGAIN;
	beneath_calls = 0;
	beneath_most = 1;
	opens(h5_named_open_without_links(s.fd, "file", O_RDONLY), "file", "in/file", 0);
	ck_assert_uint_eq(beneath_calls, 2);
	beneath_calls = 0;
	beneath_most = UINT_MAX;
	opens(h5_named_open_without_links(s.fd, "file", O_RDONLY), "file", NULL, -EAGAIN);
	ck_assert_uint_eq(beneath_calls, 16);
	/* No other error leads to a walk. */
	beneath_error = EMFILE;
	beneath_calls = 0;
	opens(h5_named_open_beneath(s.fd, "file", O_RDONLY), "file", NULL, -EMFILE);
	ck_assert_uint_eq(beneath_calls, 1);
	beneath_error = 0;
	end(&s);
}
END_TEST

/* Whatever fails, that is the error, and no descriptor stays open. */
START_TEST(each_call_of_a_walk_fails)
{
	static const char *const paths[] = {"file",	    "deep/file", "deep/../file", "relative",
					    "to_folder/up", "absolute",	 "../beside"};
	struct scene s;
	unsigned open;

	begin(&s);
	open = unit_descriptors();
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		bool fired = true;

		for (unsigned n = 1; fired; n++) {
			int fd;

			arm(n, n % 2 ? EMFILE : EIO);
			fd = h5_named_open_anywhere(s.fd, s.in, paths[i], O_RDONLY);
			fired = disarm();
			if (fired)
				ck_assert_msg(fd == (n % 2 ? -EMFILE : -EIO), "%s, call %u: %d", paths[i], n,
					      fd);
			else
				ck_assert_int_eq(close(fd), 0);
			ck_assert_uint_eq(unit_descriptors(), open);
		}
	}
	end(&s);
}
END_TEST

/* ---- mounts ---- */

/* Of the devices without hardware no h5fs is asked, or what may be one: it could be this one. */
START_TEST(files_of_an_h5fs)
{
	static const struct elsewhere cases[] = {
		{0, "36 35 0:1048575 / /mnt rw - fuse.h5fs h5fs rw\n", false},
		{0, "36 35 0:1048575 / /mnt rw shared:1 - fuse.h5fs h5fs rw\n", false},
		{0, "36 35 0:1048575 / /a rw - fuse.h5fs x rw\n37 35 0:9 / /b rw - tmpfs x rw\n", false},
		{0, "37 35 0:9 / /b rw - tmpfs x rw\n36 35 0:1048575 / /a rw - fuse.h5fs x rw\n", false},
		{0, "\n - fuse.h5fs \n36 35 0:1048575 / /a rw - fuse.h5fs x rw\n", false},
		{0, "/", false},
		{0, NULL, false},
		{1, "36 35 0:1048575 / /mnt rw - fuse.h5fs h5fs rw\n", true},
		{1, NULL, true},
		{0, "36 35 0:1048575 / /mnt rw - fuse.h5fsx h5fs rw\n", true},
		{0, "36 35 0:1048575 / /mnt rw - fuse h5fs rw\n", true},
		{0, "36 35 0:1048575 / /mnt rw fuse.h5fs h5fs rw\n", true},
		{0, "36 35 0:1048574 / /mnt rw - fuse.h5fs h5fs rw\n", true},
		{0, "36 35 1:1048575 / /mnt rw - fuse.h5fs h5fs rw\n", true},
		{0, "\n", true},
	};
	struct scene s;
	unsigned open;

	begin(&s);
	open = unit_descriptors();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int fd;

		elsewhere = &cases[i];
		looks = 0;
		fd = h5_named_open_anywhere(s.fd, s.in, "file", O_RDONLY);
		elsewhere = NULL;
		opens(fd, cases[i].mounts ? cases[i].mounts : "no table",
		      cases[i].is_opened ? "in/file" : NULL, -EXDEV);
		ck_assert_uint_eq(unit_descriptors(), open);
	}
	end(&s);
}
END_TEST

/* Something is mounted on any part of the path, also after the walk has looked at it. */
START_TEST(mounts_that_come_meanwhile)
{
	enum { LOOKS = 1 + 2 + 2 }; /* at where it begins, the folder and the file */
	static const struct elsewhere mounted = {0, "36 35 0:1048575 / /mnt rw - fuse.h5fs h5fs rw\n", false};
	struct scene s;
	unsigned open;

	begin(&s);
	open = unit_descriptors();
	for (unsigned beneath = 0; beneath < 2; beneath++)
		for (only_look = 2; only_look <= LOOKS; only_look++) {
			int fd;

			elsewhere = &mounted;
			looks = 0;
			beneath_error = beneath ? ENOSYS : 0;
			beneath_calls = 0;
			beneath_most = UINT_MAX;
			fd = beneath ? h5_named_open_beneath(s.fd, "deep/file", O_RDONLY)
				     : h5_named_open_anywhere(s.fd, s.in, "deep/file", O_RDONLY);
			beneath_error = 0;
			elsewhere = NULL;
			ck_assert_int_eq(fd, -EXDEV);
			ck_assert_uint_eq(unit_descriptors(), open);
		}
	only_look = 0;
	end(&s);
}
END_TEST

/* ---- as long as may be ---- */

/* `size` bytes: "./././" and so on, a name at their end. */
static char *padded(size_t size, const char *name)
{
	char *path = malloc(size + 1);

	for (size_t i = 0; i < size; i++)
		path[i] = i % 2 ? '/' : '.';
	strcpy(path + size - strlen(name), name);
	if ((size - strlen(name)) % 2)
		path[size - strlen(name) - 1] = '/';
	return path;
}

START_TEST(long_paths_and_many_links)
{
	enum { LINKS = 40, LINK = 2000 };
	char name[NAME_MAX + 2], link[16], target[16] = "file", *path, *rest;
	struct scene s;

	begin(&s);
	path = padded(PATH_MAX - 1, "file");
	opens(h5_named_open_anywhere(s.fd, s.in, path, O_RDONLY), "a path", "in/file", 0);
	free(path);
	path = padded(PATH_MAX, "file");
	opens(h5_named_open_anywhere(s.fd, s.in, path, O_RDONLY), "a path", NULL, -ENAMETOOLONG);
	free(path);
	memset(name, 'n', sizeof name);
	name[NAME_MAX + 1] = 0;
	opens(h5_named_open_anywhere(s.fd, s.in, name, O_RDONLY), "a name", NULL, -ENAMETOOLONG);
	name[NAME_MAX] = 0;
	opens(h5_named_open_anywhere(s.fd, s.in, name, O_RDONLY), "a name", NULL, -ENOENT);
	/* A link's target, and what is left behind the link. */
	path = padded(LINK, "deep");
	make_link(&s, "in/l", path);
	free(path);
	for (size_t more = 0; more < 2; more++) {
		rest = padded(PATH_MAX - 1 - LINK - 1 + more, "file");
		path = malloc(PATH_MAX);
		snprintf(path, PATH_MAX, "l/%s", rest);
		opens(h5_named_open_anywhere(s.fd, s.in, path, O_RDONLY), "a link",
		      more ? NULL : "in/deep/file", -ENAMETOOLONG);
		free(path);
		free(rest);
	}
	long_targets = true;
	opens(h5_named_open_anywhere(s.fd, s.in, "l", O_RDONLY), "a link", NULL, -ENAMETOOLONG);
	long_targets = false;
	for (unsigned i = 1; i <= LINKS + 1; i++) {
		snprintf(link, sizeof link, "in/%u", i);
		make_link(&s, link, target);
		strcpy(target, link + 3);
	}
	opens(h5_named_open_anywhere(s.fd, s.in, "40", O_RDONLY), "links", "in/file", 0);
	opens(h5_named_open_anywhere(s.fd, s.in, "41", O_RDONLY), "links", NULL, -ELOOP);
	end(&s);
}
END_TEST

/* Folders in folders, whose path is longer than any path may be. A link leads to the last ones. */
START_TEST(deep_folders)
{
	enum { NAME = 250, FOLDERS = PATH_MAX / (NAME + 1), LAST = PATH_MAX - 1 - FOLDERS * (NAME + 1) - 1 };
	char name[NAME + 1], last[NAME + 1], target[3 * NAME], path[PATH_MAX] = "";
	struct scene s;
	int fd;

	begin(&s);
	memset(name, 'f', NAME);
	name[NAME] = 0;
	fd = dup(s.fd);
	for (unsigned i = 1; i <= FOLDERS; i++) {
		int next;

		if (i == FOLDERS)
			for (unsigned more = 0; more < 2; more++) {
				memset(last, 'l', LAST + more);
				last[LAST + more] = 0;
				snprintf(target, sizeof target, "%s/%s/file", name, last);
				ck_assert_int_eq(symlinkat(target, fd, more ? "long" : "short"), 0);
			}
		else
			snprintf(path + strlen(path), sizeof path - strlen(path), "%s/", name);
		ck_assert_int_eq(mkdirat(fd, name, 0700), 0);
		next = openat(fd, name, O_PATH | O_DIRECTORY);
		ck_assert_int_ge(next, 0);
		close(fd);
		fd = next;
	}
	for (unsigned more = 0; more < 2; more++) {
		int in, file;

		last[LAST + more] = 0;
		memset(last, 'l', LAST + more);
		ck_assert_int_eq(mkdirat(fd, last, 0700), 0);
		in = openat(fd, last, O_PATH | O_DIRECTORY);
		file = (int)__real_syscall(SYS_openat, in, "file", O_WRONLY | O_CREAT, 0600);
		ck_assert_int_eq(write(file, "deep", 4), 4);
		close(file);
		close(in);
	}
	close(fd);
	strcat(path, "short");
	opens(h5_named_open_anywhere(s.fd, s.in, path, O_RDONLY), "short", "deep", 0);
	strcpy(strrchr(path, '/'), "/long");
	opens(h5_named_open_anywhere(s.fd, s.in, path, O_RDONLY), "long", NULL, -ENAMETOOLONG);
	end(&s);
}
END_TEST

/* ---- */

START_TEST(errors_that_programs_see)
{
	static const int codes[][2] = {
		{ENOENT, ENOENT},   {ENOTDIR, ENOENT}, {ENAMETOOLONG, ENOENT}, {ELOOP, ENOENT},
		{EXDEV, EACCES},    {EACCES, EACCES},  {EPERM, EACCES},	       {ENXIO, EINVAL},
		{ENODEV, EINVAL},   {EINVAL, EINVAL},  {EISDIR, EISDIR},       {EROFS, EROFS},
		{ETXTBSY, ETXTBSY}, {EMFILE, EMFILE},  {ENFILE, ENFILE},       {ENOMEM, ENOMEM},
		{EINTR, EINTR},	    {EIO, EIO},	       {EBUSY, EIO},	       {EOVERFLOW, EIO}};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		ck_assert_int_eq(h5_named_failure(-codes[i][0]), -codes[i][1]);
}
END_TEST

START_TEST(folders_are_synced)
{
	struct scene s;
	unsigned open;

	begin(&s);
	open = unit_descriptors();
	ck_assert_int_eq(h5_named_sync_folder(s.fd), 0);
	arm(1, EMFILE); /* to open it */
	ck_assert_int_eq(h5_named_sync_folder(s.fd), -EMFILE);
	arm(2, EIO);
	ck_assert_int_eq(h5_named_sync_folder(s.fd), -EIO);
	arm(2, EINVAL);
	ck_assert_int_eq(h5_named_sync_folder(s.fd), 0);
	ck_assert(disarm());
	ck_assert_uint_eq(unit_descriptors(), open);
	end(&s);
}
END_TEST

UNIT_MAIN("named", names_that_may_lead_anywhere, names_that_stay_beneath,
	  names_that_stay_beneath_without_the_call, each_call_of_a_walk_fails, files_of_an_h5fs,
	  mounts_that_come_meanwhile, long_paths_and_many_links, deep_folders, errors_that_programs_see,
	  folders_are_synced)

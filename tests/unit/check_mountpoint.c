/* The directory that is mounted on: which one it is, when it is made and removed, what is refused. */
#include "fault_alloc.h"
#include "fuse/log.h"
#include "fuse/mountpoint.h"
#include "fuse/status.h"
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct {
	bool is_mounted;   /* the attribute of a mount is there */
	int opendir_error; /* 0: none */
	int access_error, device_error;
	bool mounted;
	unsigned mounts; /* calls */
	unsigned fails;	 /* so many of these fail, */
	bool vanishes;	 /* and the directory goes then */
	bool identified; /* what it is can be asked for */
	unsigned mask;
} scene;

static char said[600], folder[160];
static struct h5_options options;
static struct fuse_session *const session = (struct fuse_session *)&scene;

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t n);
int __wrap_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st);
int __wrap_fuse_session_mount(struct fuse_session *s, const char *path);

int __wrap_access(const char *path, int mode)
{
	if (strcmp(path, "/dev/fuse") != 0) {
		/* It would be a request to ourselves. */
		ck_assert(!scene.mounted || strcmp(path, options.mountpoint) != 0);
		errno = scene.access_error;
		return scene.access_error ? -1 : __real_access(path, mode);
	}
	ck_assert_int_eq(mode, R_OK | W_OK);
	errno = scene.device_error;
	return scene.device_error ? -1 : 0;
}

DIR *__wrap_opendir(const char *path)
{
	if (!scene.opendir_error || strncmp(path, folder, strlen(folder)) != 0)
		return __real_opendir(path);
	errno = scene.opendir_error;
	return NULL;
}

ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t n)
{
	(void)path;
	ck_assert(!strcmp(name, "h5fs.pid") && !value && !n);
	errno = ENODATA;
	return scene.is_mounted ? 3 : -1;
}

int __wrap_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	ck_assert_int_eq(dirfd, AT_FDCWD);
	ck_assert_str_eq(path, options.mountpoint);
	ck_assert_int_eq(flags, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT);
	ck_assert_uint_eq(mask, STATX_TYPE | STATX_MNT_ID);
	*st = (struct statx){.stx_mask = scene.mask, .stx_dev_major = 3, .stx_dev_minor = 4, .stx_mnt_id = 5};
	return scene.identified ? 0 : -1;
}

int __wrap_fuse_session_mount(struct fuse_session *s, const char *path)
{
	ck_assert_ptr_eq(s, session);
	ck_assert_str_eq(path, options.mountpoint);
	scene.mounted = scene.mounts++ >= scene.fails;
	if (scene.mounted)
		return 0;
	if (scene.vanishes)
		rmdir(path);
	return -1;
}

void h5_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof said, format, args);
	va_end(args);
}

static void begin(const char *file, const char *mountpoint)
{
	snprintf(folder, sizeof folder, "%s", scratch_folder());
	scratch_run("rm -rf '%s'/*", folder);
	free(options.mountpoint);
	memset(&scene, 0, sizeof scene);
	memset(said, 0, sizeof said);
	scene.identified = true;
	scene.mask = STATX_MNT_ID;
	options = (struct h5_options){.file = (char *)file,
				      .mountpoint = mountpoint ? strdup(mountpoint) : NULL};
}

static const char *in_folder(const char *name)
{
	static char path[400];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

/* ---- which one ---- */

/* One that is missing has an absolute path, too. */
START_TEST(paths)
{
	static const char *const names[][2] = {
		{"new", "new"},	  {"new/", "new"},	  {"new//", "new"},
		{"./new", "new"}, {"sub/new", "sub/new"}, {"sub/../new///", "new"},
		{"sub", "sub"},	  {"sub/", "sub"},	  {"sub/.", "sub"}};
	char where[PATH_MAX], path[400];

	ck_assert_ptr_nonnull(getcwd(where, sizeof where));
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		for (unsigned absolute = 0; absolute < 2; absolute++) {
			begin("x.h5", NULL);
			ck_assert_int_eq(mkdir(in_folder("sub"), 0700), 0);
			ck_assert_int_eq(chdir(folder), 0);
			options.mountpoint = strdup(absolute ? in_folder(names[i][0]) : names[i][0]);
			ck_assert_int_eq(h5_mountpoint_find(&options), 0);
			snprintf(path, sizeof path, "%s/%s", folder, names[i][1]);
			ck_assert_str_eq(options.mountpoint, path);
			ck_assert_int_eq(access(in_folder("new"), F_OK), -1);
			ck_assert_str_eq(said, "");
		}
	ck_assert_int_eq(chdir(where), 0);
	begin("x.h5", "/none-such/");
	ck_assert_int_eq(h5_mountpoint_find(&options), 0);
	ck_assert_str_eq(options.mountpoint, "/none-such");
	begin("x.h5", "/none-such/sub");
	ck_assert_int_eq(h5_mountpoint_find(&options), EXIT_MOUNT);
	ck_assert_str_eq(said, "/none-such/sub: No such file or directory");
	begin("x.h5", "/dev/null/sub");
	ck_assert_int_eq(h5_mountpoint_find(&options), EXIT_MOUNT);
	ck_assert_str_eq(said, "/dev/null/sub: the mount point is not a directory");
}
END_TEST

START_TEST(a_name_after_the_file)
{
	static const struct {
		const char *file, *name; /* NULL: none follows */
	} cases[] = {{"/none/x.h5", "x"}, {"x.tar.h5", "x.tar"}, {"/a.b/x.h5", "x"}, {"/none/x", NULL},
		     {"/a.b/x", NULL},	  {".h5", NULL},	 {"/none/.h5", NULL}};
	char where[PATH_MAX];

	ck_assert_ptr_nonnull(getcwd(where, sizeof where));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[200];

		begin(cases[i].file, NULL);
		ck_assert_int_eq(chdir(folder), 0);
		ck_assert_int_eq(h5_mountpoint_find(&options), cases[i].name ? 0 : EXIT_MOUNT);
		if (cases[i].name)
			ck_assert_str_eq(options.mountpoint, in_folder(cases[i].name));
		snprintf(text, sizeof text, "%s: no mount point follows from this name: h5fs %s MOUNTPOINT",
			 cases[i].file, cases[i].file);
		ck_assert_str_eq(said, cases[i].name ? "" : text);
	}
	ck_assert_int_eq(chdir(where), 0);
}
END_TEST

/* Each allocation fails once. */
START_TEST(memory_is_short)
{
	static const char *const points[] = {NULL, "new", "sub/new"};
	char where[PATH_MAX];

	ck_assert_ptr_nonnull(getcwd(where, sizeof where));
	for (unsigned i = 0; i < 3; i++) {
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			int rc;

			begin("x.h5", points[i]);
			ck_assert_int_eq(mkdir(in_folder("sub"), 0700), 0);
			ck_assert_int_eq(chdir(folder), 0);
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_mountpoint_find(&options);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			/* The C library can do without some. */
			ck_assert(!rc || (fired && rc == EXIT_MOUNT));
			if (rc)
				ck_assert_ptr_nonnull(strstr(said, ": Cannot allocate memory"));
			else
				ck_assert_str_eq(options.mountpoint, in_folder(i == 0	? "x"
									       : i == 1 ? "new"
											: "sub/new"));
			ck_assert(!fired || n < 10);
		}
	}
	ck_assert_int_eq(chdir(where), 0);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(directories_that_are_not_empty)
{
	for (unsigned i = 0; i < 16; i++) {
		const bool has_file = i & 1, is_mounted = i & 2;
		int rc;

		begin("x.h5", NULL);
		scratch_run("mkdir '%s/m'", folder);
		if (has_file)
			scratch_run("touch '%s/m/.hidden'", folder);
		options.mountpoint = strdup(in_folder("m"));
		options.nonempty = i & 4;
		scene.is_mounted = is_mounted;
		if (i & 8) {
			struct h5_mounted mounted;

			rc = h5_mountpoint_mount(&options, session, &mounted);
		} else {
			rc = h5_mountpoint_find(&options);
		}
		ck_assert_int_eq(rc, !options.nonempty && (has_file || is_mounted) ? EXIT_MOUNT : 0);
		ck_assert_uint_eq(scene.mounts, i & 8 && !rc);
		ck_assert(!strstr(said, "already mounted") == !(rc && is_mounted));
		ck_assert(!strstr(said, "not empty") == !(rc && !is_mounted));
		h5_mountpoint_remove(&options);
		scene.mounted = false;
		ck_assert_int_eq(access(in_folder("m"), F_OK), 0);
	}
}
END_TEST

START_TEST(directories_that_cannot_be_read)
{
	static const struct {
		int error, status;
		const char *said;
	} cases[] = {{EACCES, 0, ""},
		     {EMFILE, EXIT_MOUNT, ": Too many open files"},
		     {ENOTDIR, EXIT_MOUNT, ": the mount point is not a directory"},
		     {ENOTCONN, EXIT_STALE,
		      ": a stale mount, whose daemon is no more; end it with: fusermount3 -u "}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[1000];

		begin("x.h5", NULL);
		options.mountpoint = strdup(folder);
		scene.opendir_error = cases[i].error;
		ck_assert_int_eq(h5_mountpoint_find(&options), cases[i].status);
		snprintf(text, sizeof text, "%s%s%s", *cases[i].said ? folder : "", cases[i].said,
			 cases[i].status == EXIT_STALE ? folder : "");
		ck_assert_str_eq(said, text);
	}
}
END_TEST

/* What to do about it is told. */
START_TEST(no_device)
{
	static const struct {
		int error;
		const char *said;
	} cases[] = {{EACCES,
		      "/dev/fuse: Permission denied; you need the right to read and write it (chmod 666 "
		      "/dev/fuse)"},
		     {ENOENT, "/dev/fuse: No such file or directory; the kernel or the container lacks FUSE "
			      "(modprobe fuse)"}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_mounted mounted;
		char text[600];

		begin("x.h5", NULL);
		options.mountpoint = strdup(in_folder("new"));
		scene.device_error = cases[i].error;
		ck_assert_int_eq(h5_mountpoint_mount(&options, session, &mounted), EXIT_MOUNT);
		snprintf(text, sizeof text, "%s: cannot mount: %s", in_folder("new"), cases[i].said);
		ck_assert_str_eq(said, text);
		ck_assert_uint_eq(scene.mounts, 0);
		h5_mountpoint_remove(&options);
		ck_assert_int_eq(access(in_folder("new"), F_OK), -1);
	}
}
END_TEST

/* ---- mounting ---- */

/* The mount before this one may remove the directory that it had made: it is made once more. */
START_TEST(directories_that_are_made)
{
	static const struct {
		bool is_there;
		unsigned fails;
		bool vanishes;
		int status;
		unsigned mounts;
		bool stays;
	} cases[] = {{false, 0, false, 0, 1, false},
		     {true, 0, false, 0, 1, true},
		     {false, 1, false, EXIT_MOUNT, 1, false},
		     {true, 1, false, EXIT_MOUNT, 1, true},
		     {true, 1, true, 0, 2, false},
		     {false, 1, true, 0, 2, false},
		     {true, 2, true, EXIT_MOUNT, 2, false}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_mounted mounted = {9, 9, 9};
		char text[600];

		begin("x.h5", NULL);
		options.mountpoint = strdup(in_folder("new"));
		if (cases[i].is_there)
			ck_assert_int_eq(mkdir(in_folder("new"), 0700), 0);
		scene.fails = cases[i].fails;
		scene.vanishes = cases[i].vanishes;
		ck_assert_int_eq(h5_mountpoint_mount(&options, session, &mounted), cases[i].status);
		ck_assert_uint_eq(scene.mounts, cases[i].mounts);
		snprintf(text, sizeof text,
			 "%s: cannot mount, for the reason above; if fusermount3 is missing, install the "
			 "package fuse3",
			 in_folder("new"));
		ck_assert_str_eq(said, cases[i].status ? text : "");
		if (!cases[i].status) {
			scene.mounted = false;
			ck_assert_int_eq(access(in_folder("new"), F_OK), 0);
			ck_assert(mounted.major == 3 && mounted.minor == 4 && mounted.id == 5);
		}
		h5_mountpoint_remove(&options);
		scene.mounted = false;
		ck_assert_int_eq(access(in_folder("new"), F_OK), cases[i].stays ? 0 : -1);
	}
	/* One of which nothing can be known is there. */
	begin("x.h5", NULL);
	options.mountpoint = strdup(folder);
	scene.access_error = EACCES;
	ck_assert_int_eq(h5_mountpoint_mount(&options, session, &(struct h5_mounted){0}), 0);
	ck_assert(scene.mounts == 1 && !options.mountpoint_made);
	begin("x.h5", NULL);
	options.mountpoint = strdup(in_folder("none/new"));
	ck_assert_int_eq(h5_mountpoint_mount(&options, session, &(struct h5_mounted){0}), EXIT_MOUNT);
	ck_assert_ptr_nonnull(strstr(said, "/none/new: No such file or directory"));
	ck_assert_uint_eq(scene.mounts, 0);
}
END_TEST

/* The kernel need not know the number of a mount, nor tell of one at all. */
START_TEST(what_is_mounted)
{
	for (unsigned i = 0; i < 3; i++) {
		struct h5_mounted mounted = {9, 9, 9};

		begin("x.h5", NULL);
		options.mountpoint = strdup(folder);
		scene.identified = i < 2;
		scene.mask = i ? STATX_TYPE : STATX_TYPE | STATX_MNT_ID;
		ck_assert_int_eq(h5_mountpoint_mount(&options, session, &mounted), 0);
		ck_assert_uint_eq(mounted.major, i < 2 ? 3 : 0);
		ck_assert_uint_eq(mounted.minor, i < 2 ? 4 : 0);
		ck_assert_uint_eq(mounted.id, i ? 0 : 5);
	}
}
END_TEST

UNIT_MAIN("mountpoint", paths, a_name_after_the_file, memory_is_short, directories_that_are_not_empty,
	  directories_that_cannot_be_read, no_device, directories_that_are_made, what_is_mounted)

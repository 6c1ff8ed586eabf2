/* The subfiles of a file, as they are found by their names beside its stub, or in a folder that is named. */
#include "fault_alloc.h"
#include "fault_call.h"
#include "format/driver_info.h"
#include "scratch.h"
#include "store/members.h"
#include "store/subfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STRIPE = 4 };

#define ALL "aaaabbbbccccdd" /* of two subfiles: aaaacccc, bbbbdd */

static struct {
	char folder_path[128];
	struct h5_folder folder;
	struct h5_members members;
	struct h5_driver_info info, said;
	struct h5_io *stub, *io;
	uintmax_t inode; /* of the stub */
} scene;

static void write_file(const char *name, const char *text)
{
	int fd = openat(scene.folder.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static const char *name_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *name_of(const char *format, ...)
{
	static char names[4][128];
	static unsigned next;
	char *name = names[next++ % 4];
	va_list list;

	va_start(list, format);
	vsnprintf(name, sizeof *names, format, list);
	va_end(list);
	return name;
}

static const char *config_of(unsigned stripe, unsigned subfiles, const char *folder)
{
	return name_of("stripe_size=%u\naggregator_count=1\nsubfile_count=%u\nhdf5_file=f\nsubfile_dir=%s\n",
		       stripe, subfiles, folder);
}

static void begin(void)
{
	static unsigned number;
	struct stat st;

	memset(&scene, 0, sizeof scene);
	snprintf(scene.folder_path, sizeof scene.folder_path, "%s/%u", scratch_folder(), number++);
	ck_assert_int_eq(mkdir(scene.folder_path, 0700), 0);
	SUCCEEDS(h5_folder_open(&scene.folder, scene.folder_path));
	scene.folder.external = H5_EXTERNAL_BENEATH;
	scene.folder.lock = H5_LOCK_ALWAYS;
	write_file("f", "stub");
	ck_assert_int_eq(fstatat(scene.folder.fd, "f", &st, 0), 0);
	scene.inode = st.st_ino;
	scene.members = (struct h5_members){.folder = &scene.folder, .path = "f"};
}

/* Both subfiles and their configuration, below that folder ("" or with a slash at its end), under the inode
 * number. */
static void make_set(const char *folder, uintmax_t inode)
{
	write_file(name_of("%sf.subfile_%ju.config", folder, inode), config_of(STRIPE, 2, ""));
	write_file(name_of("%sf.subfile_%ju_1_of_2", folder, inode), "aaaacccc");
	write_file(name_of("%sf.subfile_%ju_2_of_2", folder, inode), "bbbbdd");
}

static void be_sure(unsigned stripe, unsigned subfiles, const char *folder)
{
	scene.info = (struct h5_driver_info){
		.driver = H5_DRIVER_SUBFILING, .stripe_size = stripe, .subfiles = subfiles};
	strcpy(scene.info.folder, folder);
}

static int open_subfiles(void)
{
	int fd = openat(scene.folder.fd, "f", O_RDONLY | O_CLOEXEC), rc;

	SUCCEEDS(h5_io_open_fd(fd, H5_LOCK_ALWAYS, false, &scene.stub));
	scene.io = scene.stub;
	fault_alloc_count(true);
	rc = h5_subfiles_open(&scene.members, &scene.info, &scene.said, &scene.io);
	fault_alloc_count(false);
	return rc;
}

static void close_all(void)
{
	h5_io_close(scene.io);
	free(scene.members.missing);
	scene.members.missing = NULL;
}

static void end(void)
{
	h5_folder_close(&scene.folder);
}

static void opens(void)
{
	char got[sizeof ALL];
	size_t n;

	SUCCEEDS(open_subfiles());
	ck_assert_ptr_ne(scene.io, scene.stub);
	ck_assert_int_eq(scene.said.driver, H5_DRIVER_SUBFILING);
	ck_assert_uint_eq(scene.said.stripe_size, STRIPE);
	ck_assert_uint_eq(scene.said.subfiles, 2);
	ck_assert_ptr_null(scene.members.missing);
	SUCCEEDS(h5_io_read_some(scene.io, 0, got, sizeof got, &n));
	ck_assert_uint_eq(n, strlen(ALL));
	ck_assert_mem_eq(got, ALL, n);
	close_all();
}

/* It is no such file: all stays as it was. */
static void finds_none(void)
{
	unsigned before = unit_descriptors();

	SUCCEEDS(open_subfiles());
	ck_assert_ptr_eq(scene.io, scene.stub);
	close_all();
	ck_assert_uint_eq(unit_descriptors(), before);
}

static void refuses(int code, const char *text)
{
	unsigned before = unit_descriptors();

	ck_assert_int_eq(open_subfiles(), code);
	ck_assert_msg(strstr(h5_error_last()->text, text), "%s", h5_error_last()->text);
	ck_assert_ptr_eq(scene.io, scene.stub);
	close_all();
	ck_assert_uint_eq(unit_descriptors(), before);
}

/* ---- which set ---- */

START_TEST(a_set)
{
	begin();
	make_set("", scene.inode);
	/* Others are not looked at. */
	make_set("", scene.inode + 1);
	opens();
	be_sure(STRIPE, 2, "");
	opens();
	end();
}
END_TEST

/* The file was copied, so that its inode number is another one. */
START_TEST(a_copy)
{
	begin();
	make_set("", 4711);
	opens();
	be_sure(STRIPE, 2, "");
	opens();
	/* None of these is a name of a subfile of this file. */
	write_file("f.subfile_", "x");
	write_file("f.subfile_1", "x");
	write_file("f.subfile_1_of_2", "x");
	write_file("f.subfile_1_1_of_", "x");
	write_file("f.subfile_1_1_off2", "x");
	write_file("f.subfile_1_1_of_2x", "x");
	write_file("f.subfile_1_1_of_x", "x");
	write_file("f.subfile_1_x_of_2", "x");
	write_file("f.subfile_1-1_of_2", "x");
	write_file("f.subfile_1.configx", "x");
	write_file("f.subfile_x.config", "x");
	write_file("f.subfile_18446744073709551616.config", "x");
	write_file("f.subfile_99999999999999999999.config", "x");
	write_file("g.subfile_1_1_of_2", "x");
	write_file("xf.subfile_1_1_of_2", "x");
	write_file("f.subfilf_1_1_of_2", "x");
	opens();
	write_file("f.subfile_18446744073709551615.config", "x");
	refuses(-ENOTSUP, "several sets of subfiles beside it");
	ck_assert_int_eq(unlinkat(scene.folder.fd, "f.subfile_18446744073709551615.config", 0), 0);
	write_file("f.subfile_4712_01_of_10", "x");
	refuses(-ENOTSUP, "several sets of subfiles beside it");
	end();
}
END_TEST

/* Only the folder of the mounted file is listed. */
START_TEST(a_copy_below)
{
	begin();
	ck_assert_int_eq(mkdirat(scene.folder.fd, "sub", 0700), 0);
	make_set("sub/", 4711);
	make_set("", 4711); /* of the file that is mounted */
	scene.members.path = "sub/f";
	finds_none();
	be_sure(STRIPE, 2, "");
	refuses(-EIO, "a stub of the subfiling driver, without its subfiles (f.subfile_...) beside it");
	make_set("sub/", scene.inode);
	opens();
	end();
}
END_TEST

START_TEST(no_set)
{
	begin();
	finds_none();
	be_sure(STRIPE, 2, "");
	refuses(-EIO, "a stub of the subfiling driver, without its subfiles (f.subfile_...) beside it");
	ck_assert_ptr_null(strstr(h5_error_last()->text, "configuration"));
	be_sure(STRIPE, 2, "dir");
	refuses(-EIO, "(f.subfile_...) beside it, or their configuration in dir");
	be_sure(STRIPE, 2, "d");
	refuses(-EIO, "(f.subfile_...) beside it, or their configuration in d");
	end();
}
END_TEST

START_TEST(subfiles_themselves)
{
	static const char *const others[] = {"g.subfile_",
					     "g.subfile_7",
					     "g.subfile_7.config",
					     "g.subfile_7_1_of_",
					     "g.subfile_7_1_of_2x",
					     "g.subfile_x_1_of_2",
					     "g.subfile_99999999999999999999_1_of_2",
					     "g.subfil_7_1_of_2",
					     "g"};

	begin();
	scene.members.path = "g.subfile_7_1_of_2";
	refuses(-ENOTSUP, "one of the subfiles of a file: g stands for all");
	be_sure(STRIPE, 2, "");
	refuses(-ENOTSUP, "one of the subfiles of a file: g stands for all");
	scene.info = (struct h5_driver_info){0};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		scene.members.path = others[i];
		finds_none();
	}
	end();
}
END_TEST

START_TEST(behind_a_url)
{
	struct h5_remote *some = (struct h5_remote *)&scene; /* is not looked at */

	begin();
	make_set("", scene.inode);
	scene.folder.remote = some;
	finds_none();
	be_sure(STRIPE, 2, "");
	refuses(-ENOTSUP, "behind a URL its subfiles are not read");
	end();
}
END_TEST

/* ---- the configuration ---- */

START_TEST(configurations)
{
	begin();
	make_set("", scene.inode);
	be_sure(STRIPE + 1, 2, "");
	refuses(-EUCLEAN, "it contradicts the driver information of the file");
	be_sure(STRIPE, 3, "");
	refuses(-EUCLEAN, "it contradicts the driver information of the file");
	write_file(name_of("f.subfile_%ju.config", scene.inode), "no configuration");
	be_sure(STRIPE, 2, "");
	ck_assert_int_eq(open_subfiles(), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, ".config: "));
	close_all();
	/* Without it, the file may say enough. */
	ck_assert_int_eq(unlinkat(scene.folder.fd, name_of("f.subfile_%ju.config", scene.inode), 0), 0);
	opens();
	scene.info = (struct h5_driver_info){0};
	refuses(-EIO, "the size of the stripes is not known");
	/* The first subfile tells which set it is. */
	make_set("", 4711);
	be_sure(STRIPE, 2, "");
	opens();
	ck_assert_int_eq(unlinkat(scene.folder.fd, name_of("f.subfile_%ju_1_of_2", scene.inode), 0), 0);
	refuses(-ENOTSUP, "several sets of subfiles beside it");
	end();
}
END_TEST

START_TEST(the_number_of_subfiles)
{
	begin();
	write_file(name_of("f.subfile_%ju.config", scene.inode), config_of(STRIPE, H5_MEMBERS_MAX + 1, ""));
	refuses(-ENOTSUP, "more than 4096 subfiles");
	write_file(name_of("f.subfile_%ju.config", scene.inode), config_of(STRIPE, H5_MEMBERS_MAX, ""));
	refuses(-EIO, "_0001_of_4096, ...) are missing");
	write_file(name_of("f.subfile_%ju.config", scene.inode), config_of(STRIPE, 1, ""));
	refuses(-EIO, "_1_of_1) are missing");
	be_sure(STRIPE, H5_MEMBERS_MAX, "");
	ck_assert_int_eq(unlinkat(scene.folder.fd, name_of("f.subfile_%ju.config", scene.inode), 0), 0);
	write_file(name_of("f.subfile_%ju_0001_of_4096", scene.inode), "x");
	make_set("", 4711);
	SUCCEEDS(open_subfiles());
	ck_assert_str_eq(scene.members.missing,
			 name_of("f.subfile_%ju_0002_of_4096 and 4094 more", scene.inode));
	close_all();
	be_sure(STRIPE, H5_MEMBERS_MAX + 1, "");
	write_file(name_of("f.subfile_%ju_0001_of_4097", scene.inode), "x");
	ck_assert_int_lt(open_subfiles(), 0);
	close_all();
	end();
}
END_TEST

START_TEST(missing_subfiles)
{
	char byte[4];

	begin();
	make_set("", scene.inode);
	ck_assert_int_eq(unlinkat(scene.folder.fd, name_of("f.subfile_%ju_2_of_2", scene.inode), 0), 0);
	SUCCEEDS(open_subfiles());
	ck_assert_str_eq(scene.members.missing, name_of("f.subfile_%ju_2_of_2", scene.inode));
	SUCCEEDS(h5_io_read(scene.io, 8, byte, 4));
	ck_assert_mem_eq(byte, "cccc", 4);
	ck_assert_int_eq(h5_io_read(scene.io, 4, byte, 1), -EIO);
	close_all();
	end();
}
END_TEST

/* A program that writes a piece has it locked. */
START_TEST(locked_pieces)
{

	begin();
	make_set("", scene.inode);
	for (size_t i = 0; i < 3; i++) {
		char name[64];
		int fd;

		snprintf(name, sizeof name, i ? "f.subfile_%ju_%zu_of_2" : "f.subfile_%ju.config",
			 scene.inode, i);
		fd = openat(scene.folder.fd, name, O_RDONLY | O_CLOEXEC);
		ck_assert_int_eq(flock(fd, LOCK_EX), 0);
		ck_assert_int_eq(open_subfiles(), -EWOULDBLOCK);
		close_all();
		close(fd);
	}
	opens();
	end();
}
END_TEST

/* Others may read the pieces meanwhile: they are not written. */
START_TEST(shared_pieces)
{
	static const char *const folders[] = {"", "dir/"};

	for (size_t k = 0; k < 2; k++) {
		int fds[3];

		begin();
		ck_assert_int_eq(mkdirat(scene.folder.fd, "dir", 0700), 0);
		make_set(folders[k], scene.inode);
		if (k) {
			write_file(name_of("dir/f.subfile_%ju.config", scene.inode),
				   config_of(STRIPE, 2, "dir"));
			be_sure(STRIPE, 2, "dir");
		}
		for (size_t i = 0; i < 3; i++) {
			char name[64];

			snprintf(name, sizeof name, i ? "%sf.subfile_%ju_%zu_of_2" : "%sf.subfile_%ju.config",
				 folders[k], scene.inode, i);
			fds[i] = openat(scene.folder.fd, name, O_RDONLY | O_CLOEXEC);
			ck_assert_int_eq(flock(fds[i], LOCK_SH), 0);
		}
		opens();
		for (size_t i = 0; i < 3; i++)
			close(fds[i]);
		end();
	}
}
END_TEST

/* ---- other folders ---- */

START_TEST(folders)
{
	char text[300];

	begin();
	ck_assert_int_eq(mkdirat(scene.folder.fd, "dir", 0700), 0);
	make_set("dir/", scene.inode);
	/* Nobody names it. */
	finds_none();
	/* The stub names the folder of the configuration, that names the one of the subfiles. */
	be_sure(STRIPE, 2, "dir");
	refuses(-EIO, "are missing");
	write_file(name_of("dir/f.subfile_%ju.config", scene.inode), config_of(STRIPE, 2, "dir"));
	opens();
	snprintf(text, sizeof text, "stripe_size=4\nsubfile_count=2\nsubfile_dir=%s/dir\n",
		 scene.folder_path);
	write_file(name_of("dir/f.subfile_%ju.config", scene.inode), text);
	opens();
	/* A file must not choose what is shown. */
	scene.folder.external = H5_EXTERNAL_NONE;
	refuses(-EIO, "without its subfiles");
	scene.folder.external = H5_EXTERNAL_BENEATH;
	/* What lies beside the stub goes first. */
	write_file(name_of("f.subfile_%ju_1_of_2", scene.inode), "xxxx");
	SUCCEEDS(open_subfiles());
	SUCCEEDS(h5_io_read(scene.io, 0, text, 8));
	ck_assert_mem_eq(text, "xxxxbbbb", 8);
	close_all();
	end();
}
END_TEST

/* Folders are relative to that of the stub. */
START_TEST(folders_below)
{
	begin();
	ck_assert_int_eq(mkdirat(scene.folder.fd, "sub", 0700), 0);
	ck_assert_int_eq(mkdirat(scene.folder.fd, "sub/dir", 0700), 0);
	make_set("sub/dir/", scene.inode);
	write_file(name_of("sub/f.subfile_%ju.config", scene.inode), config_of(STRIPE, 2, "dir"));
	scene.members.path = "sub/f";
	opens();
	end();
}
END_TEST

/* With external=none, pieces must have the stub's owner and rights. */
START_TEST(rights)
{
	begin();
	make_set("", scene.inode);
	scene.folder.external = H5_EXTERNAL_NONE;
	opens();
	ck_assert_int_eq(fchmodat(scene.folder.fd, name_of("f.subfile_%ju_2_of_2", scene.inode), 0640, 0), 0);
	SUCCEEDS(open_subfiles());
	ck_assert_str_eq(scene.members.missing, name_of("f.subfile_%ju_2_of_2", scene.inode));
	close_all();
	scene.folder.external = H5_EXTERNAL_BENEATH;
	opens();
	end();
}
END_TEST

/* ---- faults ---- */

/* A set that takes all ways: the configuration in one folder, a subfile in another. */
START_TEST(memory_is_short)
{
	unsigned descriptors, refused = 0;
	bool fired = true;

	begin();
	ck_assert_int_eq(mkdirat(scene.folder.fd, "dir", 0700), 0);
	make_set("dir/", scene.inode);
	write_file(name_of("dir/f.subfile_%ju.config", scene.inode), config_of(STRIPE, 2, "dir"));
	be_sure(STRIPE, 2, "dir");
	opens();
	descriptors = unit_descriptors();
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		rc = open_subfiles();
		fired = fault_alloc_disarm();
		/* The C library does without the one that makes a text shorter. */
		ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%lu: %d", n, rc);
		refused += rc != 0;
		ck_assert_int_eq(scene.io == scene.stub, rc != 0);
		ck_assert_ptr_null(scene.members.missing);
		close_all();
		ck_assert_uint_eq(unit_descriptors(), descriptors);
	}
	ck_assert_uint_gt(refused, 10);
	end();
}
END_TEST

/* Of a copy the folder is listed. That it cannot be is as if there was nothing in it, but nothing stays open.
 */
START_TEST(memory_is_short_for_a_list)
{
	bool fired = true;
	unsigned descriptors, refused = 0;

	begin();
	make_set("", 4711);
	be_sure(STRIPE, 2, "");
	opens();
	descriptors = unit_descriptors();
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		rc = open_subfiles();
		fired = fault_alloc_disarm();
		ck_assert_msg(!rc || (fired && (rc == -ENOMEM || rc == -EIO)), "%lu: %d", n, rc);
		refused += rc != 0;
		ck_assert_int_eq(scene.io == scene.stub, rc != 0);
		close_all();
		ck_assert_uint_eq(unit_descriptors(), descriptors);
	}
	ck_assert_uint_gt(refused, 5);
	end();
}
END_TEST

/* What is missing is told, or it is an error. */
START_TEST(memory_is_short_for_words)
{
	bool fired = true;

	begin();
	make_set("", scene.inode);
	ck_assert_int_eq(unlinkat(scene.folder.fd, name_of("f.subfile_%ju_2_of_2", scene.inode), 0), 0);
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		rc = open_subfiles();
		fired = fault_alloc_disarm();
		ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%lu: %d", n, rc);
		if (!rc)
			ck_assert_str_eq(scene.members.missing, name_of("f.subfile_%ju_2_of_2", scene.inode));
		close_all();
	}
	end();
}
END_TEST

/* If files cannot be opened or read just now, none counts as missing. */
START_TEST(calls_that_fail)
{
	static const struct {
		enum call_fault fault;
		int code;
	} faults[] = {{CALL_OPENS_NONE, -EMFILE}, {CALL_FAILS, -EIO}};
	unsigned descriptors;

	begin();
	make_set("", scene.inode);
	opens();
	descriptors = unit_descriptors();
	for (size_t i = 0; i < 2; i++) {
		bool fired = true;

		for (unsigned long n = 2; fired; n++) { /* the first one is the test's own */
			int rc;

			fault_call_arm(faults[i].fault, n, false);
			rc = open_subfiles();
			fired = fault_call_disarm();
			ck_assert_msg(fired ? rc == faults[i].code : !rc, "%zu, %lu: %d", i, n, rc);
			close_all();
			ck_assert_uint_eq(unit_descriptors(), descriptors);
		}
	}
	end();
}
END_TEST

UNIT_MAIN("subfiles_open", a_set, a_copy, a_copy_below, no_set, subfiles_themselves, behind_a_url,
	  configurations, the_number_of_subfiles, missing_subfiles, locked_pieces, shared_pieces, folders,
	  folders_below, rights, memory_is_short, memory_is_short_for_a_list, memory_is_short_for_words,
	  calls_that_fail)

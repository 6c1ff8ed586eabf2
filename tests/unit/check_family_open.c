/* The members of a family, as they are found by their names and opened to be written. */
#include "fault_alloc.h"
#include "scratch.h"
#include "store/members.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 100, REST = 30, COUNT = 3, END = (COUNT - 1) * SIZE + REST };

/* ---- patterns ---- */

START_TEST(patterns)
{
	static const struct {
		const char *path, *first; /* NULL: it is no pattern */
	} cases[] = {
		{"a%d/b%d.h5", "a%d/b0.h5"},
		{"b%05d.h5", "b00000.h5"},
		{"%5d", "    0"},
		{"%%d%d%%", "%d0%"},
		{"b.h5", NULL},
		{"b%", NULL},
		{"b%u", NULL},
		{"b%5", NULL},
		{"b%%d", NULL},
		{"%d%d", NULL},
		{"a%d/b", NULL},
		{"%256d", NULL},
		{"%2550d", NULL},
		{"%2559d", NULL},
		{"%99999999999999999999d", NULL},
	};
	char *first;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_assert_int_eq(h5_members_first_path(cases[i].path, &first), 0);
		ck_assert_msg(!first == !cases[i].first && (!first || !strcmp(first, cases[i].first)),
			      "%s: %s", cases[i].path, first ? first : "none");
		free(first);
	}
}
END_TEST

/* Neither a number nor a pattern is longer than the name of a file. */
START_TEST(the_longest_patterns)
{
	char pattern[NAME_MAX + 2], *first;

	ck_assert_int_eq(h5_members_first_path("%255d", &first), 0);
	ck_assert_uint_eq(strlen(first), 255);
	free(first);
	for (size_t n = NAME_MAX; n <= NAME_MAX + 1; n++) {
		memset(pattern, 'x', n);
		memcpy(pattern + n - 2, "%d", 3);
		ck_assert_int_eq(h5_members_first_path(pattern, &first), 0);
		ck_assert_int_eq(!first, n > NAME_MAX);
		free(first);
	}
}
END_TEST

/* ---- a family in a folder ---- */

static struct {
	struct h5_folder folder;
	struct h5_members members;
	struct h5_io *first, *io; /* what was given to h5_members_open(), and what that made of it */
} scene;

static void make_file(unsigned number, size_t size, const char *begin)
{
	char path[200], bytes[SIZE];
	FILE *file;

	snprintf(path, sizeof path, "%s/f%u", scene.folder.path, number);
	file = fopen(path, "w");
	memset(bytes, 'a' + (int)number, SIZE);
	memcpy(bytes, begin, strlen(begin));
	ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
	ck_assert_int_eq(fclose(file), 0);
}

static void remove_files(void)
{
	for (unsigned i = 0; i < COUNT + 3; i++) {
		char name[8];

		snprintf(name, sizeof name, "f%u", i);
		(void)unlinkat(scene.folder.fd, name, AT_REMOVEDIR);
		(void)unlinkat(scene.folder.fd, name, 0);
	}
}

static off_t size_of(const char *name)
{
	struct stat st;

	return fstatat(scene.folder.fd, name, &st, 0) ? -1 : st.st_size;
}

/* COUNT members, and an open folder. */
static void setup(void)
{
	memset(&scene, 0, sizeof scene);
	SUCCEEDS(h5_folder_open(&scene.folder, scratch_folder()));
	scene.folder.external = H5_EXTERNAL_BENEATH;
	scene.folder.lock = H5_LOCK_ALWAYS;
	scene.members =
		(struct h5_members){.folder = &scene.folder, .path = "f0", .end = END, .writable = true};
	for (unsigned i = 0; i < COUNT; i++)
		make_file(i, i + 1 < COUNT ? SIZE : REST, "");
}

static void teardown(void)
{
	remove_files();
	h5_folder_close(&scene.folder);
}

static int open_family(void)
{
	const struct h5_driver_info info = {.driver = H5_DRIVER_FAMILY, .member_size = SIZE};
	char path[200];
	int rc;

	snprintf(path, sizeof path, "%s/f0", scene.folder.path);
	SUCCEEDS(h5_io_open_local(path, H5_LOCK_ALWAYS, true, &scene.first));
	scene.io = scene.first;
	fault_alloc_count(true);
	rc = h5_members_open(&scene.members, &info, true, &scene.io);
	fault_alloc_count(false);
	return rc;
}

/* The family is refused for this reason: the first member stays as it was, and the others are closed. */
static void refuses(int code, const char *text)
{
	unsigned before = unit_descriptors();
	char byte;

	ck_assert_int_eq(open_family(), code);
	ck_assert_msg(!text || strstr(h5_error_last()->text, text), "%s", h5_error_last()->text);
	ck_assert_ptr_eq(scene.io, scene.first);
	ck_assert_int_eq(h5_io_read(scene.io, 0, &byte, 1), 0);
	h5_io_close(scene.io);
	ck_assert_uint_eq(unit_descriptors(), before);
}

static void opens(void)
{
	SUCCEEDS(open_family());
	ck_assert_ptr_ne(scene.io, scene.first);
}

START_TEST(members_are_written_and_made)
{
	char back[20];

	opens();
	SUCCEEDS(h5_io_write(scene.io, COUNT * SIZE - 10, "zzzzzzzzzzyyyyyyyyyy", 20));
	SUCCEEDS(h5_io_read(scene.io, COUNT * SIZE - 10, back, 20));
	ck_assert_mem_eq(back, "zzzzzzzzzzyyyyyyyyyy", 20);
	SUCCEEDS(h5_io_read(scene.io, SIZE - 10, back, 20));
	ck_assert_mem_eq(back, "aaaaaaaaaabbbbbbbbbb", 20);
	h5_io_close(scene.io);
	ck_assert_int_eq(size_of("f2"), SIZE);
	ck_assert_int_eq(size_of("f3"), 10);
	ck_assert_int_eq(size_of("f4"), -1);
}
END_TEST

START_TEST(families_that_are_refused)
{
	char path[200], longest[NAME_MAX + 2] = "";
	int fd;

	ck_assert_int_eq(unlinkat(scene.folder.fd, "f1", 0), 0);
	refuses(-ENOENT, "f1");
	ck_assert_int_eq(linkat(scene.folder.fd, "f2", scene.folder.fd, "f1", 0), 0);
	scene.folder.lock = H5_LOCK_NONE;
	refuses(-EINVAL, "f1 and f2 are one file");
	scene.folder.lock = H5_LOCK_ALWAYS;
	refuses(-EWOULDBLOCK, "f2");
	ck_assert_int_eq(unlinkat(scene.folder.fd, "f1", 0), 0);
	ck_assert_int_eq(mkdirat(scene.folder.fd, "f1", 0700), 0);
	refuses(-EISDIR, "f1");
	ck_assert_int_eq(unlinkat(scene.folder.fd, "f1", AT_REMOVEDIR), 0);
	make_file(1, SIZE, "");
	snprintf(path, sizeof path, "%s/f3", scene.folder.path);
	make_file(3, REST, "");
	fd = open(path, O_RDONLY);
	ck_assert_int_eq(flock(fd, LOCK_SH), 0);
	refuses(-EWOULDBLOCK, NULL);
	close(fd);
	scene.members.path = "f1";
	refuses(-ENOTSUP, "no number 0");
	/* As an object store may have them. */
	memset(longest, '0', NAME_MAX + 1);
	scene.members.path = longest;
	refuses(-ENOTSUP, "no number 0");
	scene.members.path = "f0";
	scene.members.end = (uint64_t)H5_MEMBERS_MAX * SIZE + 1;
	refuses(-ENOTSUP, "more than");
	scene.members.end = END;
	opens();
	h5_io_close(scene.io);
}
END_TEST

/* A commit that was cut off has made them. An HDF5 file is none of them, and no member can take its place. */
START_TEST(what_follows_the_last_member)
{
	struct h5_io_stat st;

	make_file(3, REST, "");
	make_file(4, REST, "\x89HDF\r\n\x1a\n");
	opens();
	SUCCEEDS(h5_io_stat(scene.io, &st));
	ck_assert_uint_eq(st.end, 3 * SIZE + REST);
	ck_assert_int_eq(h5_io_write(scene.io, 4 * SIZE, "z", 1), -EEXIST);
	ck_assert_msg(strstr(h5_error_last()->text, "f4"), "%s", h5_error_last()->text);
	SUCCEEDS(h5_io_write(scene.io, 4 * SIZE - 1, "z", 1));
	h5_io_close(scene.io);
	ck_assert_int_eq(size_of("f3"), SIZE);
	ck_assert_int_eq(size_of("f4"), REST);
}
END_TEST

/* ---- families that are only read ---- */

static void write_file(const char *name, const char *text)
{
	int fd = openat(scene.folder.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void remove_file(const char *name)
{
	ck_assert_int_eq(unlinkat(scene.folder.fd, name, 0), 0);
}

/* Opens the file with the others, as the driver information has it. */
static int open_as(const char *name, const struct h5_driver_info *info, bool sure)
{
	char path[400];
	int rc;

	snprintf(path, sizeof path, "%s/%s", scene.folder.path, name);
	SUCCEEDS(h5_io_open_local(path, H5_LOCK_ALWAYS, false, &scene.first));
	scene.io = scene.first;
	scene.members.path = name;
	scene.members.writable = false;
	fault_alloc_count(true);
	rc = h5_members_open(&scene.members, info, sure, &scene.io);
	fault_alloc_count(false);
	ck_assert(!rc || scene.io == scene.first);
	return rc;
}

/* The whole file has the expected bytes, with "?" for each that cannot be read since the member `missing`
 * (NULL: none) is not there. */
static void is_file(const char *expected, const char *missing)
{
	char byte;

	ck_assert_pstr_eq(scene.members.missing, missing);
	for (size_t i = 0; i < strlen(expected); i++) {
		int rc = h5_io_read(scene.io, i, &byte, 1);

		ck_assert_int_eq(rc, expected[i] == '?' ? -EIO : 0);
		ck_assert(rc || byte == expected[i]);
	}
	ck_assert_int_ne(h5_io_read(scene.io, strlen(expected), &byte, 1), 0);
	h5_io_close(scene.io);
	free(scene.members.missing);
	scene.members.missing = NULL;
}

/* Which zeros in the name are the number. */
START_TEST(numbers_in_names)
{
	static const struct {
		const char *name, *files[2], *expected, *missing;
	} cases[] = {
		{"m0.h5", {"m1.h5", "m2.h5"}, "aabbc", NULL},
		{"m00.h5", {"m01.h5", "m02.h5"}, "aabbc", NULL},
		{"00", {"01", "02"}, "aabbc", NULL},
		{"r0f0", {"r0f1", "r0f2"}, "aabbc", NULL},
		{"r0f0", {"r1f0", "r2f0"}, "aabbc", NULL},
		{"r00f0x", {"r01f0x", "r02f0x"}, "aabbc", NULL},
		{"m100", {"m101", "m102"}, "aabbc", NULL},
		/* If no other is there, the last zeros count. */
		{"r00f00", {"other", "another"}, "aa???", "r00f01 and 1 more"},
		{"r00f0x", {"r00f2x", "other"}, "aa??b", "r00f1x"},
		{"nothing",
		 {"other", "another"},
		 "aa",
		 "all members but this one (its name has no number 0)"},
	};
	const struct h5_driver_info info = {.driver = H5_DRIVER_FAMILY, .member_size = 2};

	scene.members.end = 5;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		write_file(cases[i].name, "aa");
		write_file(cases[i].files[0], strstr(cases[i].expected, "?b") ? "b" : "bb");
		write_file(cases[i].files[1], "c");
		SUCCEEDS(open_as(cases[i].name, &info, true));
		is_file(cases[i].expected, cases[i].missing);
		remove_file(cases[i].name);
		remove_file(cases[i].files[0]);
		remove_file(cases[i].files[1]);
	}
}
END_TEST

/* The others are in the folder of the first. */
START_TEST(a_family_below)
{
	const struct h5_driver_info info = {.driver = H5_DRIVER_FAMILY, .member_size = 2};

	scene.members.end = 5;
	ck_assert_int_eq(mkdirat(scene.folder.fd, "s0", 0700), 0);
	write_file("s0/p0", "aa");
	write_file("s0/p1", "bb");
	write_file("p2", "x");
	SUCCEEDS(open_as("s0/p0", &info, true));
	is_file("aabb?", "p2");
	remove_file("s0/p0");
	remove_file("s0/p1");
	remove_file("p2");
	ck_assert_int_eq(unlinkat(scene.folder.fd, "s0", AT_REMOVEDIR), 0);
}
END_TEST

/* If only the size suggests a family, all must be as it would be in one. */
START_TEST(perhaps_a_family)
{
	static const struct {
		const char *second, *third; /* NULL: it is not there */
		bool is_family;
	} cases[] = {{"bb", "c", true},	 {"bb", "cc", true}, {"bb", "ccc", false}, {"bbb", "c", false},
		     {"b", "cc", false}, {NULL, "c", false}, {"bb", NULL, false},  {"bb", "", false}};
	const struct h5_driver_info info = {.driver = H5_DRIVER_FAMILY, .member_size = 2},
				    large = {.driver = H5_DRIVER_FAMILY, .member_size = 8};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		scene.members.end = 5;
		write_file("p0", "aa");
		if (cases[i].second)
			write_file("p1", cases[i].second);
		if (cases[i].third)
			write_file("p2", cases[i].third);
		SUCCEEDS(open_as("p0", &info, false));
		ck_assert_msg((scene.io != scene.first) == cases[i].is_family, "%zu", i);
		ck_assert_ptr_null(scene.members.missing);
		h5_io_close(scene.io);
		/* One member is no family. */
		scene.members.end = 2;
		SUCCEEDS(open_as("p0", &info, false));
		ck_assert_ptr_eq(scene.io, scene.first);
		h5_io_close(scene.io);
		(void)unlinkat(scene.folder.fd, "p1", 0);
		(void)unlinkat(scene.folder.fd, "p2", 0);
	}
	/* The others may be no files of their own. */
	write_file("p0", "aaaaaaaa");
	write_file("p1", "\x89HDF\r\n\x1a\n");
	scene.members.end = 16;
	SUCCEEDS(open_as("p0", &large, false));
	ck_assert_ptr_eq(scene.io, scene.first);
	h5_io_close(scene.io);
	write_file("p1", "\x89HDF\r\n\x1a.");
	SUCCEEDS(open_as("p0", &large, false));
	ck_assert_ptr_ne(scene.io, scene.first);
	h5_io_close(scene.io);
	/* No family has so many. */
	scene.members.end = (uint64_t)H5_MEMBERS_MAX * 2 + 1;
	SUCCEEDS(open_as("p0", &info, false));
	ck_assert_ptr_eq(scene.io, scene.first);
	h5_io_close(scene.io);
	scene.members.end = H5_UNDEF;
	SUCCEEDS(open_as("p0", &info, true));
	ck_assert_ptr_eq(scene.io, scene.first);
	h5_io_close(scene.io);
	/* Nor one whose name has no number. */
	write_file("p", "aa");
	scene.members.end = 5;
	SUCCEEDS(open_as("p", &info, false));
	ck_assert_ptr_eq(scene.io, scene.first);
	ck_assert_ptr_null(scene.members.missing);
	h5_io_close(scene.io);
	remove_file("p");
	remove_file("p0");
	remove_file("p1");
}
END_TEST

/* Without descriptors no member counts as missing, and no file as one that is cut. */
START_TEST(no_descriptors)
{
	const struct h5_driver_info info = {.driver = H5_DRIVER_FAMILY, .member_size = 2};
	struct rlimit before, limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	write_file("p0", "aa");
	write_file("p1", "bb");
	write_file("p2", "c");
	scene.members.end = 5;
	for (int sure = 0; sure < 2; sure++)
		for (rlim_t spare = 1; spare <= 3; spare++) {
			int next = dup(scene.folder.fd), rc;

			close(next);
			limit = (struct rlimit){.rlim_cur = (rlim_t)next + spare,
						.rlim_max = before.rlim_max};
			ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
			rc = open_as("p0", &info, sure);
			ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
			ck_assert_int_eq(rc, spare < 3 ? -EMFILE : 0);
			if (!rc)
				is_file("aabbc", NULL);
			else
				h5_io_close(scene.io);
		}
	remove_file("p0");
	remove_file("p1");
	remove_file("p2");
}
END_TEST

/* With external=none a file of its own, or one with other rights, is no member, unless the user names it. */
START_TEST(guarded_families)
{
	const struct h5_driver_info info = {.driver = H5_DRIVER_FAMILY, .member_size = 8};

	scene.members.end = 16;
	scene.folder.external = H5_EXTERNAL_NONE;
	write_file("p0", "aaaaaaaa");
	write_file("p1", "\x89HDF\r\n\x1a\n");
	SUCCEEDS(open_as("p0", &info, true));
	is_file("aaaaaaaa????????", "p1");
	scene.members.pattern = "p%d";
	SUCCEEDS(open_as("p0", &info, true));
	is_file("aaaaaaaa\x89HDF\r\n\x1a\n", NULL);
	scene.members.pattern = NULL;
	write_file("p1", "bbbbbbbb");
	SUCCEEDS(open_as("p0", &info, true));
	is_file("aaaaaaaabbbbbbbb", NULL);
	ck_assert_int_eq(fchmodat(scene.folder.fd, "p1", 0600, 0), 0);
	ck_assert_int_eq(fchmodat(scene.folder.fd, "p0", 0644, 0), 0);
	SUCCEEDS(open_as("p0", &info, true));
	is_file("aaaaaaaa????????", "p1");
	/* It does not matter whether it can be written. */
	ck_assert_int_eq(fchmodat(scene.folder.fd, "p1", 0444, 0), 0);
	SUCCEEDS(open_as("p0", &info, true));
	is_file("aaaaaaaabbbbbbbb", NULL);
	if (!geteuid()) {
		ck_assert_int_eq(fchownat(scene.folder.fd, "p1", 1, (gid_t)-1, 0), 0);
		SUCCEEDS(open_as("p0", &info, true));
		is_file("aaaaaaaa????????", "p1");
	}
	remove_file("p0");
	remove_file("p1");
}
END_TEST

/* ---- multi ---- */

static struct h5_driver_info multi_info(const char *first, const char *second, const char *third)
{
	struct h5_driver_info info = {.driver = H5_DRIVER_MULTI, .members = 3};
	const char *const names[] = {first, second, third};

	for (unsigned i = 0; i < 3; i++) {
		info.member[i].start = 2 * i;
		snprintf(info.member[i].name, sizeof info.member[i].name, "%s", names[i]);
	}
	return info;
}

/* The name of the first member says what the others are called. */
START_TEST(names_of_multi_members)
{
	static const struct {
		const char *names[3], *first, *expected, *missing;
		bool guarded;
	} cases[] = {
		{{"%s-s.h5", "%s-b.h5", "%s-r.h5"}, "m-s.h5", "aabbcc", NULL, false},
		{{"%s-s.h5", "%s-b.h5", "%s-r.h5"}, "m-s.h5", "aabbcc", NULL, true},
		{{"%s-s.h5", "%s-b.h5", "%s-x.h5"}, "m-s.h5", "aabb", "m-x.h5", false},
		{{"%s-s.h5", "%s-b.h5", "%s-x.h5"}, "m-s.h5", "aa", "m-b.h5 and 1 more", true},
		{{"pre-%s", "%s-b.h5", "%s-r.h5"}, "pre-m", "aabbcc", NULL, false},
		{{"fixed", "m-b.h5", "m-r.h5"}, "m-s.h5", "aabbcc", NULL, false},
		{{"fixed", "%s-b.h5", "m-r.h5"}, "m-s.h5", "aa??cc", "%s-b.h5", false},
		/* The first has another name by now. */
		{{"%s-t.h5", "%s-b.h5", "m-r.h5"}, "m-s.h5", "aa??cc", "%s-b.h5", false},
		{{"x%s-s.h5", "%s-b.h5", "m-r.h5"}, "m-s.h5", "aa??cc", "%s-b.h5", false},
		/* All of the name is outside of the hole. */
		{{"m-s%s.h5", "m-b%s.h5", "m-r%s.h5"}, "m-s.h5", "aabbcc", NULL, false},
		{{"m-s.%s.h5", "m-b%s.h5", "m-r%s.h5"}, "m-s.h5", "aa", "m-b%s.h5 and 1 more", false},
		{{"%s-s.h5", "../%s-b.h5", "%s-r.h5"}, "m-s.h5", "aa??cc", "../m-b.h5", false},
	};

	write_file("m-s.h5", "aa");
	write_file("pre-m", "aa");
	write_file("m-b.h5", "bb");
	write_file("m-r.h5", "cc");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_driver_info info =
			multi_info(cases[i].names[0], cases[i].names[1], cases[i].names[2]);

		scene.folder.external = cases[i].guarded ? H5_EXTERNAL_NONE : H5_EXTERNAL_BENEATH;
		SUCCEEDS(open_as(cases[i].first, &info, true));
		ck_assert_pstr_eq(scene.members.missing, cases[i].missing);
		if (strlen(cases[i].expected) == 6)
			is_file(cases[i].expected, cases[i].missing);
		else
			h5_io_close(scene.io);
		free(scene.members.missing);
		scene.members.missing = NULL;
	}
	remove_file("m-s.h5");
	remove_file("pre-m");
	remove_file("m-b.h5");
	remove_file("m-r.h5");
}
END_TEST

/* A name may be as long as names of files are. */
START_TEST(the_longest_name_of_a_multi_member)
{
	struct h5_driver_info info = multi_info("%s-s.h5", "%s-b.h5", "%s-r.h5");
	const char *const ends[] = {"-s.h5", "-b.h5", "-r.h5"}, *const texts[] = {"aa", "bb", "cc"};
	char names[3][NAME_MAX + 1];

	for (size_t i = 0; i < 3; i++) {
		memset(names[i], 'n', NAME_MAX);
		strcpy(names[i] + NAME_MAX - strlen(ends[i]), ends[i]);
		write_file(names[i], texts[i]);
	}
	SUCCEEDS(open_as(names[0], &info, true));
	is_file("aabbcc", NULL);
	for (size_t i = 0; i < 3; i++)
		remove_file(names[i]);
}
END_TEST

/* They are in the order of their addresses, wherever the information has them. */
START_TEST(addresses_of_multi_members)
{
	struct h5_driver_info info = multi_info("%s-s.h5", "%s-b.h5", "%s-r.h5");

	write_file("m-s.h5", "aa");
	write_file("m-b.h5", "bb");
	write_file("m-r.h5", "cc");
	info.member[1].start = 4;
	info.member[2].start = 2;
	SUCCEEDS(open_as("m-s.h5", &info, true));
	is_file("aaccbb", NULL);
	info.member[2].start = 4;
	ck_assert_int_eq(open_as("m-s.h5", &info, true), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "two members start at 4"));
	h5_io_close(scene.io);
	info.member[2].start = 0;
	ck_assert_int_eq(open_as("m-s.h5", &info, true), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "two members start at 0"));
	h5_io_close(scene.io);
	info.member[0].start = 6;
	ck_assert_int_eq(open_as("m-s.h5", &info, true), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "the superblock's member starts at 6"));
	h5_io_close(scene.io);
	remove_file("m-s.h5");
	remove_file("m-b.h5");
	remove_file("m-r.h5");
}
END_TEST

/* To be written, all must be there, and be different files. */
START_TEST(multi_members_that_are_written)
{
	struct h5_driver_info info = multi_info("%s-s.h5", "%s-b.h5", "%s-r.h5");
	char path[200], got[6];

	write_file("m-s.h5", "aa");
	write_file("m-b.h5", "bb");
	write_file("m-r.h5", "cc");
	snprintf(path, sizeof path, "%s/m-s.h5", scene.folder.path);
	scene.members.path = "m-s.h5";
	scene.members.writable = true;
	scene.folder.lock = H5_LOCK_NONE;
	for (int i = 0; i < 3; i++) {
		static const int codes[] = {0, -EINVAL, -ENOENT};

		SUCCEEDS(h5_io_open_local(path, H5_LOCK_NONE, true, &scene.first));
		scene.io = scene.first;
		ck_assert_int_eq(h5_members_open(&scene.members, &info, true, &scene.io), codes[i]);
		ck_assert_int_eq(scene.io == scene.first, i > 0);
		if (!i) {
			SUCCEEDS(h5_io_write(scene.io, 2, "xx", 2));
			SUCCEEDS(h5_io_read(scene.io, 0, got, 6));
			ck_assert_mem_eq(got, "aaxxcc", 6);
			remove_file("m-r.h5");
			ck_assert_int_eq(linkat(scene.folder.fd, "m-b.h5", scene.folder.fd, "m-r.h5", 0), 0);
		} else {
			ck_assert_ptr_nonnull(strstr(h5_error_last()->text,
						     i == 1 ? "m-b.h5 and m-r.h5 are one file" : "m-r.h5"));
			if (i == 1)
				remove_file("m-r.h5");
		}
		h5_io_close(scene.io);
	}
	remove_file("m-s.h5");
	remove_file("m-b.h5");
}
END_TEST

/* Without memory no member counts as missing. */
START_TEST(no_memory_to_read)
{
	const struct h5_driver_info multi = multi_info("%s-s.h5", "%s-b.h5", "%s-r.h5"),
				    family = {.driver = H5_DRIVER_FAMILY, .member_size = 2};
	const struct {
		const char *name;
		const struct h5_driver_info *info;
		bool sure;
		const char *expected, *missing;
	} cases[] = {{"m-s.h5", &multi, true, "aa??cc", "m-b.h5"},
		     {"p0", &family, true, "aabbc", NULL},
		     {"p0", &family, false, "aabbc", NULL},
		     {"q", &family, true, "aa", "all members but this one (its name has no number 0)"}};

	scene.members.end = 5;
	write_file("m-s.h5", "aa");
	write_file("m-r.h5", "cc");
	write_file("p0", "aa");
	write_file("p1", "bb");
	write_file("p2", "c");
	write_file("q", "aa");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned descriptors = unit_descriptors(), refused = 0;
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			int rc;

			fault_alloc_arm(n);
			rc = open_as(cases[i].name, cases[i].info, cases[i].sure);
			fired = fault_alloc_disarm();
			ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%zu, %lu: %d", i, n, rc);
			refused += rc != 0;
			if (!rc)
				is_file(cases[i].expected, cases[i].missing);
			else
				h5_io_close(scene.io);
			free(scene.members.missing);
			scene.members.missing = NULL;
			ck_assert_uint_eq(unit_descriptors(), descriptors);
		}
		ck_assert_uint_gt(refused, 0);
	}
	remove_file("m-s.h5");
	remove_file("m-r.h5");
	remove_file("p0");
	remove_file("p1");
	remove_file("p2");
	remove_file("q");
}
END_TEST

/* Bytes that are allocated, of the process; where a sanitizer allocates, it finds what is lost. */
static size_t allocated(void)
{
	return mallinfo2().uordblks;
}

START_TEST(a_member_that_cannot_be_made)
{
	size_t before;

	opens();
	make_file(3, REST, "\x89HDF\r\n\x1a\n");
	ck_assert_int_eq(h5_io_write(scene.io, 3 * SIZE, "z", 1), -EEXIST);
	before = allocated();
	for (unsigned i = 0; i < 100; i++)
		ck_assert_int_eq(h5_io_write(scene.io, 3 * SIZE, "z", 1), -EEXIST);
	ck_assert_uint_eq(allocated(), before);
	ck_assert_int_eq(unlinkat(scene.folder.fd, "f3", 0), 0);
	SUCCEEDS(h5_io_write(scene.io, 3 * SIZE, "z", 1));
	h5_io_close(scene.io);
}
END_TEST

static unsigned stat_fails;			  /* the n-th call from now on; 0: none */
static int rights_error, owner_error, sync_error; /* 0: they succeed */

int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode)
{
	errno = rights_error;
	return rights_error ? -1 : __real_fchmod(fd, mode);
}

int __real_h5_named_sync_folder(int fd);
int __wrap_h5_named_sync_folder(int fd);
int __wrap_h5_named_sync_folder(int fd)
{
	return sync_error ? -sync_error : __real_h5_named_sync_folder(fd);
}

int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st)
{
	errno = EIO;
	return stat_fails && !--stat_fails ? -1 : __real_fstat64(fd, st);
}

int __real_fchown(int fd, uid_t owner, gid_t group);
int __wrap_fchown(int fd, uid_t owner, gid_t group);

static uid_t owner; /* that a file was given */

int __wrap_fchown(int fd, uid_t to, gid_t group)
{
	owner = to;
	return owner_error ? (errno = owner_error, -1) : __real_fchown(fd, to, group);
}

/* What root makes belongs to the owner of the first member, or is not made. */
START_TEST(a_member_of_another_owner)
{
	if (geteuid())
		return;
	ck_assert_int_eq(fchownat(scene.folder.fd, "f0", 7, 8, 0), 0);
	opens();
	owner = 0;
	owner_error = EPERM;
	ck_assert_int_eq(h5_io_write(scene.io, 3 * SIZE, "z", 1), -EPERM);
	ck_assert_str_eq(h5_error_last()->text, "f3, the next member: Operation not permitted");
	ck_assert_uint_eq(owner, 7);
	ck_assert_int_eq(size_of("f3"), -1);
	owner_error = 0;
	SUCCEEDS(h5_io_write(scene.io, 3 * SIZE, "z", 1));
	h5_io_close(scene.io);
	ck_assert_int_eq(size_of("f3"), 1);
}
END_TEST

/* Nothing is left of it, and it is tried again. */
START_TEST(a_member_that_is_not_certain)
{
	unsigned descriptors;

	opens();
	descriptors = unit_descriptors();
	rights_error = EPERM;
	ck_assert_int_eq(h5_io_write(scene.io, 3 * SIZE, "z", 1), -EPERM);
	ck_assert_str_eq(h5_error_last()->text, "f3, the next member: Operation not permitted");
	rights_error = 0;
	sync_error = EIO;
	ck_assert_int_eq(h5_io_write(scene.io, 3 * SIZE, "z", 1), -EIO);
	ck_assert_str_eq(h5_error_last()->text, "f3, the next member: Input/output error");
	sync_error = 0;
	ck_assert_int_eq(size_of("f3"), -1);
	for (int i = 0; i < 2; i++) {
		int rc = -1;

		for (unsigned n = 1; rc; n++) {
			bool fired;

			stat_fails = i ? n : 0;
			fault_alloc_arm(i ? 0 : n);
			fault_alloc_count(true);
			rc = h5_io_write(scene.io, 3 * SIZE, "z", 1);
			fault_alloc_count(false);
			fired = i ? !stat_fails : fault_alloc_disarm();
			/* The C library does without the memory that makes a text shorter. */
			ck_assert(i && fired ? rc == -EIO : !rc || (fired && rc == -ENOMEM));
			ck_assert_int_eq(size_of("f3"), rc ? -1 : 1);
			ck_assert_uint_eq(unit_descriptors(), descriptors + !rc);
		}
		stat_fails = 0;
		h5_io_close(scene.io);
		ck_assert_int_eq(unlinkat(scene.folder.fd, "f3", 0), 0);
		opens();
	}
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	SUCCEEDS(h5_io_write(scene.io, 3 * SIZE, "z", 1));
	h5_io_close(scene.io);
	ck_assert_int_eq(size_of("f3"), 1);
}
END_TEST

/* Opens the family again and again, so that each allocation fails once. */
static void fail_each(void)
{
	bool failed = true;
	unsigned refused = 0;

	for (unsigned long n = 1; failed; n++) {
		int rc;

		fault_alloc_arm(n);
		rc = open_family();
		failed = fault_alloc_disarm();
		/* The C library does without the one that makes a text shorter. */
		ck_assert(!rc || (failed && rc == -ENOMEM));
		ck_assert_int_eq(scene.io == scene.first, rc != 0);
		refused += rc != 0;
		h5_io_close(scene.io);
	}
	ck_assert_uint_gt(refused, 10);
}

START_TEST(no_memory)
{
	unsigned descriptors = unit_descriptors();
	size_t before;

	make_file(3, REST, "");
	/* Some of what is freed stays in small caches, as much each time. */
	fail_each();
	fail_each();
	before = allocated();
	fail_each();
	ck_assert_uint_eq(allocated(), before);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
}
END_TEST

UNIT_MAIN_AROUND("family_open", setup, teardown, patterns, the_longest_patterns, members_are_written_and_made,
		 families_that_are_refused, what_follows_the_last_member, a_member_that_cannot_be_made,
		 a_member_that_is_not_certain, a_member_of_another_owner, numbers_in_names, a_family_below,
		 perhaps_a_family, no_descriptors, guarded_families, names_of_multi_members,
		 the_longest_name_of_a_multi_member, addresses_of_multi_members,
		 multi_members_that_are_written, no_memory_to_read, no_memory)

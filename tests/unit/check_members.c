#include "base/error.h"
#include "change/open.h"
#include "fake_piece.h"
#include "fault_alloc.h"
#include "fault_io.h"
#include "format/driver_info.h"
#include "io/io.h"
#include "io/pages.h"
#include "io/stripes.h"
#include "store/file.h"
#include "store/file_private.h"
#include "store/file_set.h"
#include "store/folder.h"
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- several pieces of memory as one ---- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

/* 0 to 9: "abcdefghij"; from 10 nothing; from 100 "klm"; from 1000 "nopq". */
static struct h5_io *open_pieces(void)
{
	struct h5_io_member m[4] = {
		{.start = 0, .name = strdup("one")},
		{.start = 10, .name = strdup("two")},
		{.start = 100, .name = strdup("three")},
		{.start = 1000, .name = strdup("four")},
	};
	struct h5_io *io;

	ck_assert_int_eq(h5_io_open_memory(letters, 20, &m[0].io), 0);
	ck_assert_int_eq(h5_io_open_memory(letters + 10, 3, &m[2].io), 0);
	ck_assert_int_eq(h5_io_open_memory(letters + 13, 4, &m[3].io), 0);
	ck_assert_int_eq(h5_io_open_members(m, 4, &io), 0);
	return io;
}

START_TEST(pieces_of_memory)
{
	struct h5_io *io = open_pieces();
	struct h5_io_stat st;
	char buf[16] = "";
	size_t got;

	ck_assert_int_eq(h5_io_read(io, 8, buf, 2), 0);
	ck_assert_mem_eq(buf, "ij", 2);
	ck_assert_int_eq(h5_io_read(io, 8, buf, 3), -EIO);
	ck_assert_msg(strstr(h5_error_last()->text, "two"), "%s", h5_error_last()->text);
	ck_assert_int_eq(h5_io_read(io, 10, buf, 1), -EIO);
	ck_assert_int_eq(h5_io_read(io, 99, buf, 1), -EIO);
	ck_assert_int_eq(h5_io_read(io, 100, buf, 3), 0);
	ck_assert_mem_eq(buf, "klm", 3);
	ck_assert_int_eq(h5_io_read(io, 101, buf, 3), -EUCLEAN);
	ck_assert_int_eq(h5_io_read_some(io, 101, buf, 3, &got), 0);
	ck_assert_uint_eq(got, 2);
	ck_assert_int_eq(h5_io_read_some(io, 500, buf, 3, &got), 0);
	ck_assert_uint_eq(got, 0);
	ck_assert_int_eq(h5_io_read(io, 1003, buf, 1), 0);
	ck_assert_int_eq(buf[0], 'q');
	ck_assert_int_eq(h5_io_read(io, 1004, buf, 1), -EUCLEAN);
	ck_assert_int_eq(h5_io_read(io, UINT64_MAX - 3, buf, 16), -EUCLEAN);
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert_uint_eq(st.size, 10 + 3 + 4); /* the first one is longer than its range */
	ck_assert_uint_eq(st.stored, 10 + 3 + 4);
	ck_assert_uint_eq(st.end, 1004);
	ck_assert(st.locked); /* nobody else can write this memory */
	h5_io_close(io);
}
END_TEST

/* Two files that record what is done to them, as members that begin at 0 and at START. */
static struct h5_io *open_writable(struct fault_io *fault, char paths[2][64], uint64_t start)
{
	struct h5_io_member m[2] = {{.name = strdup("one")}, {.start = start, .name = strdup("two")}};
	struct h5_io *io;

	for (unsigned i = 0; i < 2; i++) {
		strcpy(paths[i], "/tmp/check_members-XXXXXX");
		ck_assert_int_eq(h5_io_open_fd(mkstemp(paths[i]), H5_LOCK_NONE, true, &m[i].io), 0);
		m[i].io = fault_io_wrap(fault, m[i].io);
	}
	ck_assert_int_eq(h5_io_open_multi(m, 2, &io), 0);
	return io;
}

static void ck_event(const struct fault_io *fault, size_t i, enum fault_kind kind, unsigned file,
		     uint64_t offset)
{
	ck_assert_uint_gt(fault->count, i);
	ck_assert_int_eq(fault->events[i].kind, kind);
	ck_assert_uint_eq(fault->events[i].file, file);
	if (kind != FAULT_SYNC)
		ck_assert_uint_eq(fault->events[i].offset, offset);
}

/* A call reaches the member that holds the address. A sync reaches the members that were changed. */
START_TEST(members_that_are_written)
{
	const uint64_t start = (UINT64_C(1) << 63) - 1;
	struct fault_io fault = {.record = true, .error = -EIO};
	struct h5_io_stat st;
	char paths[2][64], buf[8];
	struct h5_io *io = open_writable(&fault, paths, start);

	ck_assert_int_eq(h5_io_sync(io), 0); /* what an earlier process has left unsynced */
	ck_event(&fault, 0, FAULT_SYNC, 0, 0);
	ck_event(&fault, 1, FAULT_SYNC, 1, 0);
	ck_assert_int_eq(h5_io_sync(io), 0);
	ck_assert_uint_eq(fault.count, 2);
	ck_assert_int_eq(h5_io_write(io, start + 5000, "there", 5), 0);
	ck_event(&fault, 2, FAULT_WRITE, 1, 5000);
	ck_assert_int_eq(h5_io_sync(io), 0);
	ck_event(&fault, 3, FAULT_SYNC, 1, 0);
	ck_assert_int_eq(h5_io_write(io, 10, "here", 4), 0);
	ck_event(&fault, 4, FAULT_WRITE, 0, 10);
	ck_assert_int_eq(h5_io_resize(io, 100), 0);
	ck_event(&fault, 5, FAULT_RESIZE, 0, 100);
	ck_assert_int_eq(h5_io_resize(io, start + 6000), 0);
	ck_event(&fault, 6, FAULT_RESIZE, 1, 6000);
	ck_assert_int_eq(h5_io_resize(io, start + 6000), 0);
	ck_assert_uint_eq(fault.count, 7);
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_io_sync(io), -EIO);
	fault_io_disarm(&fault);
	ck_assert_int_eq(h5_io_sync(io), 0); /* of both again */
	ck_event(&fault, 7, FAULT_SYNC, 0, 0);
	ck_event(&fault, 8, FAULT_SYNC, 1, 0);
	ck_assert_int_eq(h5_io_read(io, start + 5000, buf, 5), 0);
	ck_assert_mem_eq(buf, "there", 5);
	ck_assert_int_eq(h5_io_read(io, 10, buf, 4), 0);
	ck_assert_mem_eq(buf, "here", 4);
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert_uint_eq(st.size, 6100);
	ck_assert_uint_eq(st.end, start + 6000);
	ck_assert_uint_eq(st.pieces.count, 2);
	/* A page ends where those of its member do. */
	ck_assert_uint_eq(h5_io_left_in_block(&st.pieces, start + 5000, 4096), 8192 - 5000);
	ck_assert_uint_eq(h5_io_left_in_block(&st.pieces, 5000, 4096), 8192 - 5000);
	ck_assert_uint_eq(h5_io_left_in_block(&st.pieces, start - 10, 4096), 10);
	h5_io_close(io);
	fault_io_release(&fault);
	for (unsigned i = 0; i < 2; i++)
		unlink(paths[i]);
}
END_TEST

/* ---- driver information ---- */

#define U64(v) (v) & 0xff, (v) >> 8 & 0xff, 0, 0, 0, 0, 0, 0

/* It decodes from the block and from the message; nothing shorter does. */
static void check_driver_info(const char *id, const uint8_t *data, size_t n, struct h5_driver_info *info)
{
	uint8_t block[256] = {0, 0, 0, 0, (uint8_t)n}, message[256] = {0};
	struct h5_reader r;

	memcpy(block + 8, id, 8);
	memcpy(block + 16, data, n);
	memcpy(message + 1, id, 8);
	message[9] = (uint8_t)n;
	memcpy(message + 11, data, n);
	for (size_t cut = 1; cut <= 16 + n; cut++) {
		r = h5_reader_init(block, 16 + n - cut, 0, 8, 8);
		ck_assert_int_eq(h5_driver_info_block_decode(&r, info), -EUCLEAN);
	}
	for (size_t cut = 1; cut <= n && !memcmp(id, "NCSA", 4); cut++) {
		block[4] = (uint8_t)(n - cut);
		r = h5_reader_init(block, 16 + n - cut, 0, 8, 8);
		ck_assert_int_eq(h5_driver_info_block_decode(&r, info), -EUCLEAN);
	}
	block[4] = (uint8_t)n;
	r = h5_reader_init(block, 16 + n, 0, 8, 8);
	ck_assert_msg(!h5_driver_info_block_decode(&r, info), "%s", h5_error_last()->text);
	for (size_t cut = 1; cut <= 11 + n; cut++) {
		r = h5_reader_init(message, 11 + n - cut, 0, 8, 8);
		ck_assert_int_eq(h5_driver_info_message_decode(&r, info), -EUCLEAN);
	}
	block[0] = message[0] = 1;
	r = h5_reader_init(block, 16 + n, 0, 8, 8);
	ck_assert_int_eq(h5_driver_info_block_decode(&r, info), -EUCLEAN);
	r = h5_reader_init(message, 11 + n, 0, 8, 8);
	ck_assert_int_eq(h5_driver_info_message_decode(&r, info), -EUCLEAN);
	message[0] = 0;
	r = h5_reader_init(message, 11 + n, 0, 8, 8);
	ck_assert_msg(!h5_driver_info_message_decode(&r, info), "%s", h5_error_last()->text);
}

START_TEST(driver_information)
{
	static const uint8_t family[] = {U64(0x1234)};
	static const uint8_t split[] = {1,	 1,	     3,	      1,   1,	1,   0,	  0,   U64(0),
					U64(77), U64(0x800), U64(99), '%', 's', '.', 'm', 0,   0,
					0,	 0,	     'r',     'a', 'w', '-', '%', 's', '.',
					'h',	 '5',	     0,	      0,   0,	0,   0,	  0,   0};
	static const uint8_t other[] = {0, 0, 0};
	const uint64_t ends[] = {0x1122334455667788, 5};
	uint8_t changed[sizeof split];
	struct h5_driver_info info;
	size_t n;

	check_driver_info("NCSAfami", family, sizeof family, &info);
	ck_assert_int_eq(info.driver, H5_DRIVER_FAMILY);
	ck_assert_uint_eq(info.member_size, 0x1234);
	check_driver_info("NCSAmult", split, sizeof split, &info);
	ck_assert_int_eq(info.driver, H5_DRIVER_MULTI);
	ck_assert_uint_eq(info.members, 2);
	ck_assert_uint_eq(info.member[0].start, 0);
	ck_assert_uint_eq(info.member[1].start, 0x800);
	ck_assert_uint_eq(info.member[0].end, 77);
	ck_assert_uint_eq(info.member[1].end, 99);
	ck_assert_uint_eq(info.raw, 1);
	ck_assert_str_eq(info.member[0].name, "%s.m");
	ck_assert_str_eq(info.member[1].name, "raw-%s.h5");
	n = h5_driver_info_ends_size(2);
	ck_assert_uint_eq(n, 40);
	memcpy(changed, split, sizeof changed);
	ck_assert_int_eq(h5_driver_info_set_ends(changed, n - 1, ends, 2), -EUCLEAN);
	ck_assert_mem_eq(changed, split, sizeof changed);
	ck_assert_int_eq(h5_driver_info_set_ends(changed, n, ends, 2), 0);
	check_driver_info("NCSAmult", changed, sizeof changed, &info);
	ck_assert_uint_eq(info.member[0].start, 0);
	ck_assert_uint_eq(info.member[0].end, ends[0]);
	ck_assert_uint_eq(info.member[1].start, 0x800);
	ck_assert_uint_eq(info.member[1].end, ends[1]);
	ck_assert_str_eq(info.member[1].name, "raw-%s.h5");
	check_driver_info("whatever", other, sizeof other, &info);
	ck_assert_int_eq(info.driver, H5_DRIVER_NONE);
}
END_TEST

/* ---- files ---- */

static const struct h5_file_set_options options = {
	.block_cache = 1 << 20, .chunk_cache = 1 << 20, .external = H5_EXTERNAL_NONE, .lock = H5_LOCK_ALWAYS};

static char *path_of(const char *name)
{
	char *path;

	ck_assert_int_gt(asprintf(&path, "%s/members/%s", getenv("H5FS_TEST_DATA"), name), 0);
	return path;
}

static FILE *open_data(const char *name)
{
	char *path = path_of(name);
	FILE *f = fopen(path, "rb");

	ck_assert_msg(f, "%s", path);
	free(path);
	return f;
}

/* Each member's bytes are at its addresses, and none follow. Returns the first address after them. */
static uint64_t check_member(struct h5_file *file, uint64_t start, size_t size, const char *name)
{
	FILE *f = open_data(name);
	uint8_t *expected = malloc(size + 1), *read = malloc(size + 1);

	ck_assert_uint_eq(fread(expected, 1, size + 1, f), size);
	ck_assert_msg(!h5_file_read(file, start, read, size), "%s: %s", name, h5_error_last()->text);
	ck_assert_msg(!memcmp(read, expected, size), "%s", name);
	free(expected);
	free(read);
	fclose(f);
	return start + size;
}

static void check_addresses(struct h5_file *file, const char *name)
{
	unsigned long long start, size, bytes = 0, end = 0;
	char list[300], member[256];
	uint8_t two[2];
	FILE *f;

	snprintf(list, sizeof list, "%s.addresses", name);
	f = open_data(list);
	while (fscanf(f, "%llu %llu %255s", &start, &size, member) == 3) {
		/* Across the border, where there is no gap. */
		if (end && end == start)
			ck_assert_int_eq(h5_file_read(file, start - 1, two, 2), 0);
		else if (end)
			ck_assert_int_eq(h5_file_read(file, end - 1, two, 2), -EUCLEAN);
		if (size)
			end = check_member(file, start, size, member);
		bytes += size;
	}
	fclose(f);
	ck_assert_uint_gt(bytes, 0);
	ck_assert_int_eq(h5_file_read(file, end - 1, two, 2), -EUCLEAN);
	ck_assert_uint_eq(h5_file_size(file), bytes);
	ck_assert_uint_eq(h5_file_end(file), end);
}

START_TEST(files_in_several_pieces)
{
	char name[256], missing[256], addresses[256];
	FILE *list = open_data("list");
	int code, n = 0;

	while (fscanf(list, "%255[^\t]\t%d\t%255[^\t]\t%255s\n", name, &code, missing, addresses) == 4) {
		char *path = path_of(name);
		struct h5_file_set *set = NULL;
		int rc = h5_open_file(path, &options, &set, NULL);

		ck_assert_msg(rc == -code, "%s: %d: %s", name, rc, h5_error_last()->text);
		if (!rc) {
			struct h5_file *file = h5_file_set_root(set);
			const char *gone = h5_file_missing(file);

			ck_assert_msg(!strcmp(gone ? gone : "-", missing), "%s: %s", name, gone);
			if (strcmp(addresses, "-"))
				check_addresses(file, addresses);
		}
		h5_file_set_close(set);
		free(path);
		n++;
	}
	fclose(list);
	ck_assert_int_gt(n, 30);
}
END_TEST

/* How many bytes a member has. */
static uint64_t size_of(const char *name)
{
	char *path = path_of(name);
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	free(path);
	return (uint64_t)st.st_size;
}

/* Which of them could be written, if they were not open for reading. */
START_TEST(pieces_that_can_be_written)
{
	static const struct {
		const char *name, *why; /* why not; NULL: it could */
		bool in_pieces;
	} cases[] = {
		{"family_earliest_100_00000.h5", NULL, true},
		{"family_latest_1000_%05d.h5", NULL, true},
		{"alone_0.h5", NULL, false},
		{"joined_00000.h5", NULL, false},
		{"split_latest-m.h5", NULL, true},
		{"split_earliest-m.h5", NULL, true},
		{"old_00000.h5", "a family whose files do not say so", true},
		{"multi_latest-s.h5", "a file of the multi driver whose metadata are in several members",
		 true},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_file_area areas[H5_FILE_AREAS_MAX];
		char *path = path_of(cases[i].name);
		struct h5_file_set *set;
		struct h5_file *file;

		ck_assert_int_eq(h5_open_file(path, &options, &set, NULL), 0);
		file = h5_file_set_root(set);
		ck_assert_msg(h5_file_can_change(file) == (cases[i].why ? -ENOTSUP : -EROFS), "%s: %s",
			      cases[i].name, h5_error_last()->text);
		ck_assert(!cases[i].why || strstr(h5_error_last()->text, cases[i].why));
		ck_assert_msg(h5_file_is_family(file) == (cases[i].in_pieces && !cases[i].why), "%s",
			      cases[i].name);
		ck_assert_int_eq(h5_file_is_plain(file), !cases[i].in_pieces);
		ck_assert_uint_eq(h5_file_areas(file, areas), strncmp(cases[i].name, "split", 5) ? 1 : 2);
		if (!strncmp(cases[i].name, "split_earliest", 14)) {
			ck_assert(!areas[0].start && !areas[0].raw && !areas[0].member);
			ck_assert_uint_eq(areas[0].end, size_of("split_earliest-m.h5"));
			ck_assert(areas[1].raw && areas[1].member == 1);
			ck_assert_uint_eq(areas[1].end - areas[1].start, size_of("split_earliest-r.h5"));
		}
		h5_file_set_close(set);
		free(path);
	}
}
END_TEST

static struct h5_file_set *open_set(const char *name)
{
	char *path = path_of(name);
	struct h5_file_set *set;

	ck_assert_msg(!h5_open_file(path, &options, &set, NULL), "%s: %s", name, h5_error_last()->text);
	free(path);
	return set;
}

START_TEST(what_is_missing_cannot_be_read)
{
	struct h5_file_set *set = open_set("middle_00000.h5");
	struct h5_file *file = h5_file_set_root(set);
	uint8_t buf[3000];
	size_t got;

	ck_assert_int_eq(h5_file_read(file, 0, buf, 1000), 0);
	ck_assert_int_eq(h5_file_read(file, 0, buf, 1001), -EIO);
	ck_assert_int_eq(h5_file_read(file, 1500, buf, 1), -EIO);
	ck_assert_int_eq(h5_file_read_some(file, 1500, buf, 1, &got), -EIO);
	ck_assert_int_eq(h5_file_read(file, 2000, buf, 1000), 0);
	h5_file_set_close(set);

	/* Only the last member of a family may be short. */
	set = open_set("short_00000.h5");
	file = h5_file_set_root(set);
	ck_assert_int_eq(h5_file_read(file, 1000, buf, 900), 0);
	ck_assert_int_eq(h5_file_read(file, 1000, buf, 901), -EUCLEAN);
	ck_assert_int_eq(h5_file_read(file, 2000, buf, 1000), 0);
	h5_file_set_close(set);
}
END_TEST

START_TEST(members_are_locked)
{
	char *first = path_of("family_earliest_1000_00000.h5"),
	     *last = path_of("family_earliest_1000_00003.h5");
	struct h5_file_set *set;
	int fd = open(last, O_RDONLY);

	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	ck_assert_int_eq(h5_open_file(first, &options, &set, NULL), -EWOULDBLOCK);
	ck_assert_msg(strstr(h5_error_last()->text, "_00003.h5"), "%s", h5_error_last()->text);
	ck_assert_int_eq(flock(fd, LOCK_UN), 0);
	ck_assert_int_eq(h5_open_file(first, &options, &set, NULL), 0);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), -1);
	ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
	h5_file_set_close(set);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
	free(first);
	free(last);
}
END_TEST

/* 0, or the errno; *path: of the file that was opened. */
static int open_named(const struct h5_folder *folder, const char *beside, const char *name, size_t size,
		      char *path)
{
	int fd = h5_folder_open_named(folder, beside, name, false, path, size);

	if (fd < 0)
		return fd;
	ck_assert_int_gt(fd, 2); /* none that was there before */
	close(fd);
	return 0;
}

/* Other files, as HDF5 files name them: the folder "sub" has a file "odd_path". */
START_TEST(names_of_other_files)
{
	static const struct {
		const char *beside, *name;
		int rc;
		const char *path;
	} cases[] = {
		{"", "sub/odd_path", 0, "sub/odd_path"},
		{"sub/", "odd_path", 0, "sub/odd_path"},
		{"sub/", "/no/where/odd_path", 0, "sub/odd_path"}, /* its last component */
		{"", "/no/where/odd_path", -EACCES, NULL},	   /* neither here nor allowed there */
		{"", "odd_path", -ENOENT, NULL},
		{"sub/", "/dev/null", -EACCES, NULL},
		{"", "../members/sub/odd_path", -EACCES, NULL},
	};
	struct h5_folder folder = {.external = H5_EXTERNAL_BENEATH, .fd = -1};
	char *members = path_of(""), path[PATH_MAX];

	ck_assert_int_eq(h5_folder_open(&folder, members), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_assert_int_eq(open_named(&folder, cases[i].beside, cases[i].name, sizeof path, path),
				 cases[i].rc);
		if (!cases[i].rc)
			ck_assert_str_eq(path, cases[i].path);
	}
	/* A folder cannot be written; nothing else is tried. */
	ck_assert_int_eq(h5_folder_open_named(&folder, "", "sub", true, path, sizeof path), -EISDIR);
	/* twelve bytes and a NUL */
	ck_assert_int_eq(open_named(&folder, "", "sub/odd_path", 13, path), 0);
	ck_assert_int_eq(open_named(&folder, "", "sub/odd_path", 12, path), -ENAMETOOLONG);
	folder.external = H5_EXTERNAL_NONE;
	ck_assert_int_eq(open_named(&folder, "", "sub/odd_path", sizeof path, path), -EACCES);
	h5_folder_close(&folder);
	folder.external = H5_EXTERNAL_BENEATH;
	ck_assert_int_eq(open_named(&folder, "", "sub/odd_path", sizeof path, path), -EACCES);
	free(members);
}
END_TEST

/* A member lies beside the first one, and has its owner and its permissions, if these can be known. */
START_TEST(members_beside_the_first)
{
	static const char member[] = "family_earliest_1000_00001.h5";
	struct h5_folder folder = {.external = H5_EXTERNAL_BENEATH, .fd = -1};
	struct fake first = {.io.ops = &fake_ops};
	char *members = path_of(""), *path = path_of(member);
	struct h5_io *io = NULL;
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(h5_folder_open(&folder, members), 0);
	ck_assert_int_eq(h5_folder_open_beside(&folder, "sub/odd_path", "../a", NULL, false, &io), -EACCES);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "a member in another directory"));
	first.st.owner = st.st_uid;
	first.st.mode = st.st_mode & 0777;
	ck_assert_int_eq(h5_folder_open_beside(&folder, "a", member, &first.io, false, &io), 0);
	h5_io_close(io);
	io = NULL;
	first.st.owner++;
	ck_assert_int_eq(h5_folder_open_beside(&folder, "a", member, &first.io, false, &io), -EACCES);
	ck_assert_ptr_null(io);
	first.st.owner--;
	first.st.mode ^= 0400;
	ck_assert_int_eq(h5_folder_open_beside(&folder, "a", member, &first.io, false, &io), -EACCES);
	first.st.mode ^= 0400 | 0200; /* whether it can be written does not matter */
	ck_assert_int_eq(h5_folder_open_beside(&folder, "a", member, &first.io, false, &io), 0);
	h5_io_close(io);
	first.stat = -EIO;
	ck_assert_int_eq(h5_folder_open_beside(&folder, "a", member, &first.io, false, &io), -EIO);
	ck_assert_ptr_null(io);
	h5_folder_close(&folder);
	free(members);
	free(path);
}
END_TEST

/* Behind a URL, names lead to files below its folder alone. The link has ended, so none is there. */
START_TEST(names_behind_a_url)
{
	static const struct {
		const char *beside, *name, *path; /* NULL: it leads elsewhere */
	} cases[] = {
		{"", "a", "a"},
		{"", "a/b.h5", "a/b.h5"},
		{"sub/", "a", "sub/a"},
		{"sub/", "../a", "a"},
		{"sub/dir/", "../../a", "a"},
		{"sub/dir/", "../a/./b/../c", "sub/a/c"},
		{"sub/dir/", "./../x/..", "sub"},
		{"", "./a//b/.", "a/b"},
		{"", ".a/..b/...", ".a/..b/..."},
		{"", "ab/../c", "c"},
		{"sub/", "/no/where/a", "sub/a"},
		{"", "..", NULL},
		{"", "../a", NULL},
		{"sub/", "../../a", NULL},
		{"sub/", "a/../../../b", NULL},
		{"", "a/..", NULL},
		{"sub/", "..", NULL},
		{"", ".", NULL},
		{"", "", NULL},
	};
	struct h5_remote_end end;
	struct h5_folder folder = {.external = H5_EXTERNAL_BENEATH, .fd = -1};
	char path[PATH_MAX];
	struct h5_io *io;

	ck_assert_int_eq(h5_remote_new("http://h/", 1 << 20, 1, &folder.remote, &end), 0);
	close(end.fd);
	h5_remote_end(folder.remote);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int rc = h5_folder_open_remote(&folder, cases[i].beside, cases[i].name, path, sizeof path,
					       &io);

		ck_assert_msg(cases[i].path ? rc && rc != -EACCES : rc == -EACCES, "%zu: %d", i, rc);
		if (cases[i].path)
			ck_assert_str_eq(path, cases[i].path);
	}
	/* four bytes and a NUL */
	ck_assert_int_ne(h5_folder_open_remote(&folder, "b/", "cd", path, 5, &io), -ENAMETOOLONG);
	ck_assert_int_eq(h5_folder_open_remote(&folder, "b/", "cd", path, 4, &io), -ENAMETOOLONG);
	/* Of an absolute name only the last part counts. */
	ck_assert_int_ne(h5_folder_open_remote(&folder, "b/", "/x/y/cd", path, 5, &io), -ENAMETOOLONG);
	ck_assert_int_eq(h5_folder_open_remote(&folder, "b/", "/x/y/cd", path, 4, &io), -ENAMETOOLONG);
	folder.external = H5_EXTERNAL_NONE;
	ck_assert_int_eq(h5_folder_open_remote(&folder, "", "a", path, sizeof path, &io), -EACCES);
	h5_remote_close(folder.remote);
}
END_TEST

/* ---- members that fail ---- */

static struct h5_io *open_fakes(struct fake fakes[3], bool writable)
{
	struct h5_io_member m[3] = {{.start = 0}, {.start = 100}, {.start = 300}};
	struct h5_io *io;

	for (unsigned i = 0; i < 3; i++) {
		fakes[i] = (struct fake){.io.ops = &fake_ops, .st = {.size = 100 * (i + 1), .links = 1}};
		m[i].io = &fakes[i].io;
		m[i].name = malloc(8);
		snprintf(m[i].name, 8, "piece%u", i);
	}
	ck_assert_int_eq((writable ? h5_io_open_multi : h5_io_open_members)(m, 3, &io), 0);
	return io;
}

START_TEST(any_member_can_fail)
{
	char buf[600], name[8];

	for (unsigned i = 0; i < 3; i++) {
		struct fake fakes[3];
		struct h5_io *io = open_fakes(fakes, true);
		struct h5_io_stat st;
		size_t got;

		snprintf(name, sizeof name, "piece%u", i);
		ck_assert_int_eq(h5_io_read_some(io, 0, buf, 600, &got), 0);
		ck_assert_uint_eq(got, 600);
		fakes[i].read = h5_fail(-EIO, H5_UNDEF, "it fails");
		ck_assert_int_eq(h5_io_read_some(io, 0, buf, 600, &got), -EIO);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, name));
		fakes[i].read = 0;
		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_uint_eq(st.size, 600);
		fakes[i].stat = -EACCES;
		ck_assert_int_eq(h5_io_stat(io, &st), -EACCES);
		fakes[i].stat = 0;
		/* All locks are given up in spite of that. The first error is told. */
		fakes[i].unlock = -EIO;
		fakes[2].unlock = -EBADF;
		ck_assert_int_eq(h5_io_unlock(io), i < 2 ? -EIO : -EBADF);
		for (unsigned k = 0; k < 3; k++)
			ck_assert_uint_eq(fakes[k].unlocks, 1);
		fakes[i].write = h5_fail(-ENOSPC, H5_UNDEF, "it fails");
		ck_assert_int_eq(h5_io_write(io, 0, buf, 600), -ENOSPC);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, name));
		for (unsigned k = 0; k < 3; k++)
			ck_assert_uint_eq(fakes[k].writes, k <= i);
		fakes[i].sync = h5_fail(-EIO, H5_UNDEF, "it fails");
		ck_assert_int_eq(h5_io_sync(io), -EIO);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, name));
		fakes[i].sync = 0;
		fakes[i].resize = h5_fail(-EFBIG, H5_UNDEF, "it fails");
		ck_assert_int_eq(h5_io_resize(io, i == 0 ? 50 : i == 1 ? 250 : 1000), -EFBIG);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, name));
		ck_assert_int_eq(h5_io_punch(io, 0, 10), -EOPNOTSUPP);
		h5_io_close(io);
	}
}
END_TEST

/* What members tell together. */
START_TEST(members_tell_together)
{
	struct fake fakes[3];
	struct h5_io *io = open_fakes(fakes, false);
	struct h5_io_stat st;

	for (unsigned i = 0; i < 3; i++)
		fakes[i].st = (struct h5_io_stat){.size = 100 * (i + 1),
						  .stored = 70 * (i + 1),
						  .device = 8 + i,
						  .inode = 20 + i,
						  .mtime = {50 + i % 2, 7 - i},
						  .ctime = {60, 5 + i % 2},
						  .links = 1 + i % 2,
						  .mode = 0640 + i,
						  .locked = i != 1};
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert(st.device == 8 && st.inode == 20 && st.mode == 0640);
	ck_assert_uint_eq(st.size, 100 + 200 + 300);
	ck_assert_uint_eq(st.stored, 70 + 140 + 210);
	ck_assert_uint_eq(st.end, 300 + 300);
	ck_assert(st.mtime.tv_sec == 51 && st.mtime.tv_nsec == 6);
	ck_assert(st.ctime.tv_sec == 60 && st.ctime.tv_nsec == 6);
	ck_assert_uint_eq(st.links, 2);
	ck_assert(!st.locked);
	/* A member ends where the next one begins; behind the last one that has bytes there are none. */
	fakes[0].st.size = fakes[0].st.stored = 101;
	fakes[1].st.locked = true;
	fakes[2].st.size = 0;
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert_uint_eq(st.size, 100 + 200);
	ck_assert_uint_eq(st.stored, 100 + 140 + 210);
	ck_assert_uint_eq(st.end, 100 + 200);
	ck_assert(st.locked);
	for (unsigned n = 1; n < 3; n++) {
		fakes[0].stats = 0;
		fakes[0].failing_stat = n;
		ck_assert_int_eq(h5_io_stat(io, &st), -EIO);
	}
	h5_io_close(io);
}
END_TEST

/* Of several members, which is the one that a file is. */
START_TEST(members_are_found_by_their_identity)
{
	struct fake fakes[3];
	struct h5_io *io = open_fakes(fakes, false);

	for (unsigned i = 0; i < 3; i++)
		fakes[i].st.device = 7 + i, fakes[i].st.inode = 20 + i;
	for (uint64_t device = 6; device < 11; device++)
		for (uint64_t inode = 19; inode < 24; inode++)
			ck_assert_int_eq(h5_io_members_have(io, device, inode),
					 inode - 20 < 3 && device - 7 == inode - 20);
	fakes[1].stat = -EIO;
	ck_assert(!h5_io_members_have(io, 8, 21));
	ck_assert(h5_io_members_have(io, 9, 22));
	h5_io_close(io);
}
END_TEST

START_TEST(writes_end_before_the_last_address)
{
	struct fake fakes[3];
	struct h5_io *io = open_fakes(fakes, true);

	ck_assert_int_eq(h5_io_write(io, UINT64_MAX - 3, "abcd", 4), -EFBIG);
	ck_assert_uint_eq(fakes[2].writes, 0);
	ck_assert_int_eq(h5_io_write(io, UINT64_MAX - 4, "abcd", 4), 0);
	ck_assert_uint_eq(fakes[2].writes, 1);
	h5_io_close(io);
}
END_TEST

/* ---- while memory is short ---- */

static struct h5_io_member fake_members[2];
static size_t open_runs;
static char few_bytes[] = "few";

static int open_memory(struct h5_io **io)
{
	return h5_io_open_memory(few_bytes, 3, io);
}

static int open_plain(struct h5_io **io)
{
	return h5_io_open_members(fake_members, 2, io);
}

static int open_multi(struct h5_io **io)
{
	return h5_io_open_multi(fake_members, 2, io);
}

static int open_family(struct h5_io **io)
{
	const struct h5_io_family family = {.size = 100, .most = 5};

	return h5_io_open_family(fake_members, 2, &family, io);
}

static int open_striped(struct h5_io **io)
{
	return h5_io_open_stripes(fake_members[0].io, fake_members, 2, 100, io);
}

static int open_paged(struct h5_io **io)
{
	const struct h5_io_paged paged = {
		.origin = fake_members[0].io, .pages = fake_members[1].io, .open_runs = &open_runs};

	return h5_io_open_paged(&paged, io);
}

/* Each allocation fails once: then nothing has been taken over. */
START_TEST(pieces_while_memory_is_short)
{
	static int (*const opens[])(struct h5_io * *io) = {open_memory, open_plain,   open_multi,
							   open_family, open_striped, open_paged};

	for (size_t i = 0; i < sizeof opens / sizeof *opens; i++) {
		bool fired = true;
		unsigned failed = 0;

		for (unsigned n = 1; fired; n++) {
			struct fake fakes[2] = {{.io.ops = &fake_ops}, {.io.ops = &fake_ops}};
			struct h5_io *io = NULL;
			int rc;

			for (unsigned k = 0; k < 2; k++)
				fake_members[k] =
					(struct h5_io_member){&fakes[k].io, 100 * k, strdup("piece")};
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = opens[i](&io);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
			ck_assert_int_eq(!io, fired);
			failed += fired;
			if (io)
				h5_io_close(io);
			if (!io || opens[i] == open_memory || opens[i] == open_paged)
				h5_io_members_release(fake_members, 2);
		}
		ck_assert_uint_gt(failed, 0);
	}
}
END_TEST

/* A block begins anew in each piece. */
START_TEST(blocks_end_with_their_piece)
{
	static const struct h5_io_pieces whole = {0}, family = {.size = 1000},
					 huge = {.size = UINT64_C(1) << 63},
					 multi = {.count = 3, .start = {0, 1000, 1700}};
	static const struct {
		const struct h5_io_pieces *pieces;
		uint64_t offset, left; /* of blocks of 512 bytes */
	} cases[] = {{&whole, 0, 512},
		     {&whole, 511, 1},
		     {&whole, 512, 512},
		     {&whole, 1000, 24},
		     {&family, 0, 512},
		     {&family, 512, 488},
		     {&family, 999, 1},
		     {&family, 1000, 512},
		     {&family, 1511, 1},
		     {&family, 1512, 488},
		     {&multi, 999, 1},
		     {&multi, 1000, 512},
		     {&multi, 1512, 188},
		     {&multi, 1699, 1},
		     {&multi, 1700, 512},
		     {&multi, 2211, 1},
		     {&multi, 2212, 512},
		     {&multi, 3236, 512},
		     {&huge, 5, 507},
		     {&huge, (UINT64_C(1) << 63) - 1, 1},
		     {&huge, UINT64_C(1) << 63, 512},
		     {&huge, UINT64_MAX - 1, 1}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t left = h5_io_left_in_block(cases[i].pieces, cases[i].offset, 512);

		ck_assert_msg(left == cases[i].left, "%zu: %ju", i, (uintmax_t)left);
	}
}
END_TEST

UNIT_MAIN("members", pieces_of_memory, members_that_are_written, driver_information, files_in_several_pieces,
	  pieces_that_can_be_written, what_is_missing_cannot_be_read, members_are_locked,
	  names_of_other_files, members_beside_the_first, names_behind_a_url, any_member_can_fail,
	  members_tell_together, members_are_found_by_their_identity, writes_end_before_the_last_address,
	  pieces_while_memory_is_short, blocks_end_with_their_piece)

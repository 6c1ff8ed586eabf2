#include "base/error.h"
#include "fake_piece.h"
#include "format/driver_info.h"
#include "format/subfiling.h"
#include "io/stripes.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- driver information ---- */

/* As libhdf5 1.14 writes it: 3 subfiles, stripes of 4096 bytes, the folder "dir", and its lower driver. */
static const uint8_t stored[] = {0x31, 0x13, 0xd0, 0xfe, 1, 0, 0, 0, 1, 0, 0,	 0,    0,
				 0x10, 0,    0,	   0,	 0, 0, 0, 3, 0, 0, 0,	 0,    0,
				 0,    0,    4,	   0,	 0, 0, 0, 0, 0, 0, 'd',	 'i',  'r',
				 0,    'I',  'O',  'C',	 0, 0, 0, 0, 0, 0, 0x31, 0x13, 0xd2};

enum { FIXED = 36, LENGTH = 28 }; /* bytes before the folder, and before its length */

/* The error of decoding n bytes as a message. */
static int decode(const uint8_t *data, size_t n, struct h5_driver_info *info)
{
	uint8_t message[H5_DRIVER_BLOCK_MAX + 11] = {0};
	struct h5_reader r;

	memcpy(message + 1, "Subfilin", 8);
	message[9] = (uint8_t)n;
	message[10] = (uint8_t)(n >> 8);
	memcpy(message + 11, data, n);
	r = h5_reader_init(message, 11 + n, 0, 8, 8);
	return h5_driver_info_message_decode(&r, info);
}

START_TEST(driver_information)
{
	struct h5_driver_info info;
	uint8_t data[sizeof stored];

	ck_assert_int_eq(decode(stored, sizeof stored, &info), 0);
	ck_assert_int_eq(info.driver, H5_DRIVER_SUBFILING);
	ck_assert_uint_eq(info.stripe_size, 4096);
	ck_assert_uint_eq(info.subfiles, 3);
	ck_assert_str_eq(info.folder, "dir");
	for (size_t n = 0; n < FIXED + 4; n++)
		ck_assert_int_eq(decode(stored, n, &info), -EUCLEAN);
	ck_assert_int_eq(decode(stored, FIXED + 4, &info), 0);
	/* The magic number, the version; numbers that are negative or too large, and 0. */
	for (size_t i = 0; i < FIXED; i++) {
		memcpy(data, stored, sizeof data);
		data[i] |= 0x80;
		ck_assert_int_eq(decode(data, sizeof data, &info), i < 4 ? data[i] == stored[i] ? 0 : -EUCLEAN
								   : i < 8		? -ENOTSUP
								   : i == 19 || i >= 27 ? -EUCLEAN
											: 0);
	}
	for (size_t i = 0; i < 2; i++) {
		memcpy(data, stored, sizeof data);
		data[i ? 20 : 13] = 0;
		ck_assert_int_eq(decode(data, sizeof data, &info), -EUCLEAN);
	}
}
END_TEST

START_TEST(folders)
{
	static const struct {
		uint8_t length;
		int rc;
		const char *folder;
	} cases[] = {{0, 0, ""}, {3, -EUCLEAN, NULL}, {4, 0, "dir"}, {5, -EUCLEAN, NULL}};
	static uint8_t data[FIXED + H5_DRIVER_FOLDER_SIZE + 1];
	struct h5_driver_info info;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		memcpy(data, stored, sizeof stored);
		data[LENGTH] = cases[i].length;
		ck_assert_int_eq(decode(data, sizeof stored, &info), cases[i].rc);
		if (!cases[i].rc)
			ck_assert_str_eq(info.folder, cases[i].folder);
	}
	/* The longest, and one byte more. */
	memset(data + FIXED, 'x', H5_DRIVER_FOLDER_SIZE);
	data[LENGTH] = 0;
	data[LENGTH + 1] = H5_DRIVER_FOLDER_SIZE >> 8;
	data[FIXED + H5_DRIVER_FOLDER_SIZE - 1] = 0;
	ck_assert_int_eq(decode(data, FIXED + H5_DRIVER_FOLDER_SIZE, &info), 0);
	ck_assert_uint_eq(strlen(info.folder), H5_DRIVER_FOLDER_SIZE - 1);
	data[FIXED + H5_DRIVER_FOLDER_SIZE - 1] = 'x';
	data[LENGTH] = 1;
	ck_assert_int_eq(decode(data, sizeof data, &info), -EUCLEAN);
}
END_TEST

/* ---- the configuration ---- */

static const struct {
	const char *text;
	int rc;
	uint64_t stripe_size, subfiles;
	const char *folder;
} texts[] = {
	{"stripe_size=10\naggregator_count=2\nsubfile_count=3\nhdf5_file=/a/f\nsubfile_dir=/"
	 "a\nf.subfile_1_1_of_3\n",
	 0, 10, 3, "/a"},
	{"stripe_size=10\naggregator_count=2\nhdf5_file=/a/f\nsubfile_dir=/a b\n", 0, 10, 2, "/a b"},
	{"stripe_size=10\naggregator_count=2", 0, 10, 2, ""},
	{"stripe_size=10\nsubfile_dir=\nsubfile_count=2", 0, 10, 2, ""},
	{"stripe_size=10\nstripe_size=20\nsubfile_count=2", 0, 10, 2, ""}, /* the first line */
	{"xstripe_size=1\nstripe_size10\nsubfile_count=2", -EUCLEAN, 0, 0, NULL},
	{"stripe_size=10\n", -EUCLEAN, 0, 0, NULL},
	{"subfile_count=10\n", -EUCLEAN, 0, 0, NULL},
	{"stripe_size=\nsubfile_count=2", -EUCLEAN, 0, 0, NULL},
	{"stripe_size=0\nsubfile_count=2", -EUCLEAN, 0, 0, NULL},
	{"stripe_size=-1\nsubfile_count=2", -EUCLEAN, 0, 0, NULL},
	{"stripe_size= 1\nsubfile_count=2", -EUCLEAN, 0, 0, NULL},
	{"stripe_size=1x\nsubfile_count=2", -EUCLEAN, 0, 0, NULL},
	{"stripe_size=1\nsubfile_count=0\naggregator_count=2", -EUCLEAN, 0, 0, NULL},
	{"stripe_size=1\nsubfile_count=18446744073709551617", -EUCLEAN, 0, 0, NULL},
	{"stripe_size=9223372036854775799\nsubfile_count=1", 0, INT64_MAX - 8, 1, ""},
	{"stripe_size=9223372036854775808\nsubfile_count=1", -EUCLEAN, 0, 0, NULL},
	{"", -EUCLEAN, 0, 0, NULL},
	{"\n\n=\n", -EUCLEAN, 0, 0, NULL},
};

START_TEST(configurations)
{
	static const char begin[] = "stripe_size=1\nsubfile_count=1\nsubfile_dir=";
	static struct h5_subfiling_config config;
	static char text[2 * H5_SUBFILING_FOLDER_SIZE];

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		size_t n = strlen(texts[i].text);
		char *exact = malloc(n + !n); /* nothing behind it can be read */
		int rc;

		memcpy(exact, texts[i].text, n);
		rc = h5_subfiling_config_decode(exact, n, &config);
		ck_assert_msg(rc == texts[i].rc, "%s: %d", texts[i].text, rc);
		if (!rc) {
			ck_assert_uint_eq(config.stripe_size, texts[i].stripe_size);
			ck_assert_uint_eq(config.subfiles, texts[i].subfiles);
			ck_assert_str_eq(config.folder, texts[i].folder);
		}
		free(exact);
	}
	memset(text, '/', sizeof text);
	memcpy(text, begin, sizeof begin - 1);
	ck_assert_int_eq(
		h5_subfiling_config_decode(text, sizeof begin - 1 + H5_SUBFILING_FOLDER_SIZE - 1, &config),
		0);
	ck_assert_uint_eq(strlen(config.folder), H5_SUBFILING_FOLDER_SIZE - 1);
	ck_assert_int_eq(
		h5_subfiling_config_decode(text, sizeof begin - 1 + H5_SUBFILING_FOLDER_SIZE, &config),
		-EUCLEAN);
	text[sizeof begin] = 0;
	ck_assert_int_eq(h5_subfiling_config_decode(text, sizeof begin + 10, &config), -EUCLEAN);
}
END_TEST

/* ---- stripes ---- */

enum { SIZE = 3000, MOST = 7 };

/* The byte at an address of the whole file. */
static uint8_t byte_at(uint64_t at)
{
	return (uint8_t)(at * 7 + at / 256);
}

/* Cuts SIZE bytes into stripes; the subfile `gone` is missing. */
static struct h5_io *open_stripes(uint8_t pieces[MOST][SIZE], unsigned count, uint64_t stripe, unsigned gone)
{
	struct h5_io_member list[MOST] = {0};
	size_t sizes[MOST] = {0};
	struct h5_io *stub, *io;

	for (uint64_t at = 0; at < SIZE; at++) {
		unsigned i = (unsigned)(at / stripe % count);

		pieces[i][sizes[i]++] = byte_at(at);
	}
	for (unsigned i = 0; i < count; i++) {
		list[i].name = strdup("piece");
		if (i != gone)
			ck_assert_int_eq(h5_io_open_memory(pieces[i], sizes[i], &list[i].io), 0);
	}
	ck_assert_int_eq(h5_io_open_memory("", 0, &stub), 0);
	ck_assert_int_eq(h5_io_open_stripes(stub, list, count, stripe, &io), 0);
	return io;
}

START_TEST(stripes)
{
	static const unsigned widths[] = {1, 3, 10, 512, 1000, SIZE, SIZE + 1};
	static const unsigned sizes[] = {1, 2, 3, 9, 100, 2999, 3000, 4000};
	static uint8_t pieces[MOST][SIZE], buf[4001];
	struct h5_io_stat st;
	size_t got;

	for (size_t s = 0; s < sizeof widths / sizeof *widths; s++)
		for (unsigned count = 1; count <= MOST; count++) {
			struct h5_io *io = open_stripes(pieces, count, widths[s], MOST);

			ck_assert_int_eq(h5_io_stat(io, &st), 0);
			ck_assert_uint_eq(st.size, SIZE);
			ck_assert_uint_eq(st.end, SIZE);
			for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
				for (uint64_t at = 0; at <= SIZE; at += 171) {
					size_t n = sizes[k] < SIZE - at ? sizes[k] : (size_t)(SIZE - at);

					memset(buf, 0xee, sizeof buf);
					ck_assert_int_eq(h5_io_read_some(io, at, buf, sizes[k], &got), 0);
					ck_assert_uint_eq(got, n);
					for (size_t i = 0; i < n; i++)
						ck_assert_uint_eq(buf[i], byte_at(at + i));
					ck_assert_uint_eq(buf[sizes[k]], 0xee);
				}
			ck_assert_int_eq(h5_io_read_some(io, UINT64_MAX - 3, buf, 16, &got), 0);
			ck_assert_uint_eq(got, 0);
			ck_assert_int_eq(h5_io_read_some(io, INT64_MAX - 3, buf, 16, &got), 0);
			ck_assert_uint_eq(got, 0);
			h5_io_close(io);
		}
}
END_TEST

/* A subfile that counts how often it is read. */
struct counted {
	struct h5_io io;
	unsigned *reads;
};

static int count_read(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
		      size_t *got)
{
	(void)offset;
	*got = 0;
	for (unsigned i = 0; i < count; i++) {
		memset(buffers[i].iov_base, 0, buffers[i].iov_len);
		*got += buffers[i].iov_len;
	}
	++*((struct counted *)io)->reads;
	return 0;
}

static int count_plain_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	return count_read(io, offset, &(struct iovec){buf, n}, 1, got);
}

static int stat_counted(struct h5_io *io, struct h5_io_stat *st)
{
	(void)io;
	*st = (struct h5_io_stat){.size = SIZE, .end = SIZE};
	return 0;
}

static void close_counted(struct h5_io *io)
{
	free(io);
}

/* Many stripes of a subfile are read at once. */
START_TEST(reads_of_a_subfile)
{
	static const struct h5_io_ops counting = {
		.read = count_plain_read, .readv = count_read, .stat = stat_counted, .close = close_counted};
	static char buf[4 * H5_IO_BUFFERS];
	struct h5_io_member list[2] = {{.name = strdup("a")}, {.name = strdup("b")}};
	struct h5_io *stub, *io;
	unsigned reads = 0;

	ck_assert_int_eq(h5_io_open_memory("", 0, &stub), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct counted *counted = malloc(sizeof *counted);

		ck_assert_ptr_nonnull(counted);
		*counted = (struct counted){{.ops = &counting}, &reads};
		list[i].io = &counted->io;
	}
	ck_assert_int_eq(h5_io_open_stripes(stub, list, 2, 1, &io), 0);
	ck_assert_int_eq(h5_io_read(io, 0, buf, 2 * H5_IO_BUFFERS), 0);
	ck_assert_uint_eq(reads, 2);
	ck_assert_int_eq(h5_io_read(io, 0, buf, 2 * H5_IO_BUFFERS + 1), 0);
	ck_assert_uint_eq(reads, 2 + 3);
	h5_io_close(io);
}
END_TEST

START_TEST(a_missing_subfile)
{
	static uint8_t pieces[MOST][SIZE], buf[SIZE];
	struct h5_io *io = open_stripes(pieces, 3, 100, 1);
	struct h5_io_stat st;

	for (uint64_t at = 0; at < SIZE; at++)
		ck_assert_int_eq(h5_io_read(io, at, buf, 1), at / 100 % 3 == 1 ? -EIO : 0);
	ck_assert_int_eq(h5_io_read(io, 50, buf, 50), 0);
	ck_assert_int_eq(h5_io_read(io, 50, buf, 51), -EIO);
	ck_assert_int_eq(h5_io_read(io, 0, buf, SIZE), -EIO);
	ck_assert_int_eq(h5_io_read(io, 200, buf, 100), 0);
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert_uint_eq(st.end, SIZE);
	ck_assert_uint_eq(st.stored, SIZE - SIZE / 3);
	h5_io_close(io);
}
END_TEST

/* Bytes that are not there end what is read, wherever the other subfiles end. */
START_TEST(a_short_subfile)
{
	struct h5_io_member list[2] = {{.name = strdup("a")}, {.name = strdup("b")}};
	struct h5_io *stub, *io;
	struct h5_io_stat st;
	char buf[32];
	size_t got;

	ck_assert_int_eq(h5_io_open_memory("", 0, &stub), 0);
	ck_assert_int_eq(h5_io_open_memory("0145", 3, &list[0].io), 0);
	ck_assert_int_eq(h5_io_open_memory("2367ab", 6, &list[1].io), 0);
	ck_assert_int_eq(h5_io_open_stripes(stub, list, 2, 2, &io), 0);
	ck_assert_int_eq(h5_io_read_some(io, 0, buf, sizeof buf, &got), 0);
	ck_assert_uint_eq(got, 5);
	ck_assert_mem_eq(buf, "01234", 5);
	ck_assert_int_eq(h5_io_read(io, 2, buf, 4), -EUCLEAN);
	ck_assert_int_eq(h5_io_read(io, 6, buf, 2), 0);
	ck_assert_mem_eq(buf, "67", 2);
	ck_assert_int_eq(h5_io_read(io, 10, buf, 2), 0);
	ck_assert_mem_eq(buf, "ab", 2);
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert_uint_eq(st.end, 12);
	ck_assert_uint_eq(st.stored, 9);
	h5_io_close(io);
}
END_TEST

/* No sum or product overflows. */
START_TEST(huge_stripes)
{
	static const uint64_t sizes[] = {INT64_MAX, INT64_MAX / 2, (uint64_t)1 << 62};
	char buf[16];
	size_t got;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct h5_io_member list[4] = {0};
		struct h5_io *stub, *io;
		struct h5_io_stat st;

		for (unsigned k = 0; k < 4; k++) {
			list[k].name = strdup("piece");
			ck_assert_int_eq(h5_io_open_memory("abcd", 4, &list[k].io), 0);
		}
		ck_assert_int_eq(h5_io_open_memory("", 0, &stub), 0);
		ck_assert_int_eq(h5_io_open_stripes(stub, list, 4, sizes[i], &io), 0);
		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_uint_eq(st.end, INT64_MAX);
		ck_assert_int_eq(h5_io_read_some(io, 0, buf, sizeof buf, &got), 0);
		ck_assert_uint_eq(got, 4);
		ck_assert_int_eq(h5_io_read_some(io, sizes[i] - 1, buf, sizeof buf, &got), 0);
		ck_assert_uint_eq(got, 0);
		h5_io_close(io);
	}
}
END_TEST

/* ---- subfiles that fail, or are of odd sizes ---- */

static struct h5_io *open_fakes(struct fake *stub, struct fake *fakes, unsigned count, uint64_t stripe)
{
	struct h5_io_member list[MOST] = {0};
	struct h5_io *io;

	stub->io.ops = &fake_ops;
	for (unsigned i = 0; i < count; i++) {
		fakes[i].io.ops = &fake_ops;
		list[i].io = &fakes[i].io;
		list[i].name = malloc(8);
		snprintf(list[i].name, 8, "piece%u", i);
	}
	ck_assert_int_eq(h5_io_open_stripes(&stub->io, list, count, stripe, &io), 0);
	return io;
}

START_TEST(any_subfile_can_fail)
{
	char buf[600], name[8];

	for (unsigned i = 0; i <= 3; i++) {
		struct fake stub = {0}, fakes[3] = {{.st.size = 200}, {.st.size = 200}, {.st.size = 200}};
		struct fake *failing = i < 3 ? &fakes[i] : &stub;
		struct h5_io *io = open_fakes(&stub, fakes, 3, 100);
		struct h5_io_stat st;
		size_t got;

		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_uint_eq(st.size, 600);
		failing->stat = -EACCES;
		ck_assert_int_eq(h5_io_stat(io, &st), -EACCES);
		failing->stat = 0;
		failing->read = h5_fail(-EIO, H5_UNDEF, "it fails");
		snprintf(name, sizeof name, "piece%u", i);
		ck_assert_int_eq(h5_io_read_some(io, 0, buf, 600, &got), i < 3 ? -EIO : 0);
		if (i < 3)
			ck_assert_ptr_nonnull(strstr(h5_error_last()->text, name));
		/* Others are read all the same. */
		for (unsigned k = 0; k < 6; k++)
			ck_assert_int_eq(h5_io_read_some(io, k * 100, buf, 100, &got), k % 3 == i ? -EIO : 0);
		h5_io_close(io);
	}
}
END_TEST

/* A subfile that fails has more stripes in the range than are read at a time. */
START_TEST(many_stripes_that_fail)
{
	char buf[2000];

	for (unsigned i = 0; i < 2; i++)
		for (size_t n = 500; n <= sizeof buf; n += 3) {
			struct fake stub = {0}, fakes[2] = {{.st.size = 1000}, {.st.size = 1000}};
			struct h5_io *io = open_fakes(&stub, fakes, 2, 1);
			size_t got;

			ck_assert_int_eq(h5_io_read_some(io, 0, buf, n, &got), 0);
			ck_assert_uint_eq(got, n);
			fakes[i].read = -EIO;
			ck_assert_int_eq(h5_io_read_some(io, 0, buf, n, &got), -EIO);
			h5_io_close(io);
		}
}
END_TEST

/* Where addresses end, by the size of one subfile; the others are empty. */
START_TEST(sizes_of_subfiles)
{
	static const struct {
		uint64_t stripe, size;
		unsigned count, subfile;
		uint64_t end;
	} cases[] = {{100, 0, 3, 1, 0},
		     {100, 1, 3, 0, 1},
		     {100, 1, 3, 2, 201},
		     {100, 100, 3, 1, 200},
		     {100, 101, 3, 1, 401},
		     {1, INT64_MAX, 2, 1, INT64_MAX},
		     {1, INT64_MAX, 3, 0, INT64_MAX},
		     {1, UINT64_MAX, 2, 1, INT64_MAX},
		     {3, INT64_MAX, 4, 3, INT64_MAX},
		     {INT64_MAX, INT64_MAX, 2, 0, INT64_MAX},
		     {INT64_MAX, INT64_MAX, 2, 1, INT64_MAX},
		     {INT64_MAX, UINT64_MAX, 3, 2, INT64_MAX},
		     {1, (uint64_t)1 << 62, 2, 0, INT64_MAX},
		     {1, (uint64_t)1 << 62, 2, 1, INT64_MAX},
		     {1, ((uint64_t)1 << 62) - 1, 2, 1, INT64_MAX - 1}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fake stub = {0}, fakes[4] = {0};
		struct h5_io *io = open_fakes(&stub, fakes, cases[i].count, cases[i].stripe);
		struct h5_io_stat st;

		fakes[cases[i].subfile].st.size = cases[i].size;
		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_msg(st.end == cases[i].end, "%zu: %ju", i, (uintmax_t)st.end);
		ck_assert_uint_eq(st.size, st.end);
		h5_io_close(io);
	}
}
END_TEST

START_TEST(what_subfiles_tell_is_joined)
{
	struct fake stub = {.st = {.device = 5,
				   .inode = 6,
				   .links = 1,
				   .locked = true,
				   .mtime = {.tv_sec = 10, .tv_nsec = 5},
				   .ctime = {.tv_sec = 10, .tv_nsec = 5}}},
		    fakes[3] = {{.st = {.size = 100,
					.stored = 50,
					.locked = true,
					.mtime = {.tv_sec = 9, .tv_nsec = 7}}},
				{.st = {.size = 100,
					.stored = 40,
					.locked = true,
					.ctime = {.tv_sec = 10, .tv_nsec = 6}}},
				{.st = {.size = 90,
					.stored = 30,
					.locked = true,
					.mtime = {.tv_sec = 10, .tv_nsec = 4}}}};
	struct h5_io *io = open_fakes(&stub, fakes, 3, 100);
	struct h5_io_stat st;

	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert(st.device == 5 && st.inode == 6 && st.locked);
	ck_assert(st.size == 290 && st.end == 290 && st.stored == 120);
	ck_assert(st.mtime.tv_sec == 10 && st.mtime.tv_nsec == 5);
	ck_assert(st.ctime.tv_sec == 10 && st.ctime.tv_nsec == 6);
	fakes[0].st.mtime = (struct timespec){.tv_sec = 11};
	fakes[2].st.locked = false;
	/* No sum overflows. */
	for (unsigned i = 0; i < 3; i++)
		fakes[i].st.stored = INT64_MAX;
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert(st.mtime.tv_sec == 11 && !st.mtime.tv_nsec && !st.locked);
	ck_assert_uint_eq(st.stored, 290);
	h5_io_close(io);
}
END_TEST

UNIT_MAIN("subfiles", driver_information, folders, configurations, stripes, reads_of_a_subfile,
	  a_missing_subfile, a_short_subfile, huge_stripes, any_subfile_can_fail, many_stripes_that_fail,
	  sizes_of_subfiles, what_subfiles_tell_is_joined)

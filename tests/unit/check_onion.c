/* The history of a file of the onion driver: what each revision is, and damage that is found. */
#include "base/error.h"
#include "base/little_endian.h"
#include "fault_alloc.h"
#include "format/onion.h"
#include "onion_builder.h"
#include "scratch.h"
#include "store/onion.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ORIGIN = 36, PIECE = 3 * 1024 }; /* PIECE: places or pages that are read at once */

static uint8_t origin[ORIGIN];

/* ---- making one ---- */

static void begin(void)
{
	for (size_t i = 0; i < ORIGIN; i++)
		origin[i] = (uint8_t)('A' + i);
	onion_begin();
}

/* A page of new data; where it is. */
static uint64_t put_page(char c)
{
	size_t at = onion_size;

	for (unsigned i = 0; i < PAGE; i++)
		put(&c, 1);
	return at;
}

/* ---- opening it ---- */

/* An io that fails on request. */
static unsigned long failing, calls;

struct failing_io {
	struct h5_io io, *beneath;
};

static bool fails(void)
{
	return ++calls == failing;
}

static int read_failing(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	return fails() ? h5_fail(-EIO, offset, "fails")
		       : h5_io_read_some(((struct failing_io *)io)->beneath, offset, buf, n, got);
}

static int stat_failing(struct h5_io *io, struct h5_io_stat *st)
{
	return fails() ? h5_fail(-EIO, H5_UNDEF, "fails")
		       : h5_io_stat(((struct failing_io *)io)->beneath, st);
}

static unsigned closed;

static void close_failing(struct h5_io *io)
{
	h5_io_close(((struct failing_io *)io)->beneath);
	free(io);
	closed++;
}

static struct h5_io *io_of(const void *data, size_t n)
{
	static const struct h5_io_ops ops = {
		.read = read_failing, .stat = stat_failing, .close = close_failing};
	struct failing_io *io = malloc(sizeof *io);

	io->io = (struct h5_io){.ops = &ops};
	ck_assert_int_eq(h5_io_open_memory(data, n, &io->beneath), 0);
	return &io->io;
}

static int open_onion(struct h5_onion **onion)
{
	struct h5_io *first = io_of(origin, ORIGIN), *second = io_of(onion_bytes, onion_size);
	int rc;

	closed = 0;
	fault_alloc_count(true);
	rc = h5_onion_open(first, second, onion);
	fault_alloc_count(false);
	/* They are taken over, also on failure. */
	ck_assert_uint_eq(closed, rc ? 2 : 0);
	return rc;
}

/* The first error, of the history or a revision. */
static int check_all(void)
{
	struct h5_onion *onion;
	int rc = open_onion(&onion);

	if (rc)
		return rc;
	for (uint64_t i = h5_onion_first(onion); i <= h5_onion_newest(onion) && !rc; i++)
		rc = h5_onion_check(onion, i);
	h5_onion_close(onion);
	return rc;
}

static void refuses(int code, const char *text)
{
	ck_assert_int_eq(check_all(), code);
	ck_assert_msg(strstr(h5_error_last()->text, text), "%s", h5_error_last()->text);
}

/* The bytes of a revision are these. */
static void is_revision(struct h5_onion *onion, uint64_t revision, const char *expected)
{
	struct h5_io_stat st;
	struct h5_io *io;
	char got[100];
	size_t n;

	ck_assert_int_eq(h5_onion_open_revision(onion, revision, false, &io), 0);
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	ck_assert_uint_eq(st.size, strlen(expected));
	ck_assert_int_eq(h5_io_read_some(io, 0, got, sizeof got, &n), 0);
	ck_assert_uint_eq(n, strlen(expected));
	ck_assert_mem_eq(got, expected, n);
	h5_io_close(io);
}

/* Three revisions: the second has both pages of the first, of which one anew, and is longer. */
static void make_three(void)
{
	uint64_t a, b, c, d;

	begin();
	a = put_page('a');
	b = put_page('b');
	put_record(ORIGIN, PAGE, (struct page[]){{8, a}, {16, b}}, 2, 3);
	c = put_page('c');
	d = put_page('d');
	put_record(44, PAGE, (struct page[]){{8, a}, {16, c}, {24, d}, {40, a}}, 4, 0);
	put_record(10, PAGE, NULL, 0, 1);
	finish(ORIGIN);
}

START_TEST(revisions_are_read)
{
	struct h5_onion *onion;
	struct h5_io_stat st, own;
	struct h5_io *io;

	make_three();
	ck_assert_int_eq(open_onion(&onion), 0);
	ck_assert_uint_eq(h5_onion_first(onion), 0);
	ck_assert_uint_eq(h5_onion_newest(onion), 3);
	ck_assert(!h5_onion_is_written(onion));
	for (int i = 0; i < 2; i++) {
		is_revision(onion, 0, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcd");
		is_revision(onion, 1, "ABCDEFGHaaaaaaaabbbbbbbbYZ[\\]^_`abcd");
		ck_assert_int_eq(h5_onion_open_revision(onion, 2, true, &io), 0);
		h5_io_close(io);
		is_revision(onion, 3, "ABCDEFGHIJ");
	}
	/* What lies behind the origin's end was never written. */
	{
		char got[44];

		ck_assert_int_eq(h5_onion_open_revision(onion, 2, false, &io), 0);
		ck_assert_int_eq(h5_io_read(io, 0, got, 44), 0);
		ck_assert_mem_eq(got, "ABCDEFGHaaaaaaaaccccccccddddddddabcd\0\0\0\0aaaa", 44);
		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_int_eq(st.mtime.tv_sec, 1795430700);
		h5_io_close(io);
	}
	/* Each has an identity of its own; the file itself has that of the origin. */
	ck_assert_int_eq(h5_onion_open_revision(onion, 1, false, &io), 0);
	ck_assert_int_eq(h5_io_stat(io, &own), 0);
	h5_io_close(io);
	ck_assert(own.inode != st.inode || own.device != st.device);
	ck_assert_int_eq(h5_onion_open_revision(onion, 1, true, &io), 0);
	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	h5_io_close(io);
	ck_assert(own.device != st.device);
	for (uint64_t i = 4; i < 6; i++) {
		ck_assert_int_eq(h5_onion_open_revision(onion, i, false, &io), -ENOENT);
		ck_assert_int_eq(h5_onion_check(onion, i), -ENOENT);
	}
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "no revision 5: the file has 0 to 3"));
	h5_onion_close(onion);
	h5_onion_close(NULL);
}
END_TEST

/* If the file was made with its first revision, there is nothing before. */
START_TEST(no_origin)
{
	struct h5_onion *onion;
	struct h5_io *io;
	uint64_t a;

	begin();
	a = put_page('a');
	put_record(12, PAGE, (struct page[]){{0, a}}, 1, 0);
	finish(0);
	ck_assert_int_eq(open_onion(&onion), 0);
	ck_assert_uint_eq(h5_onion_first(onion), 1);
	ck_assert_int_eq(h5_onion_open_revision(onion, 0, false, &io), -ENOENT);
	ck_assert_int_eq(h5_onion_open_revision(onion, 1, false, &io), 0);
	{
		char got[12];

		ck_assert_int_eq(h5_io_read(io, 0, got, 12), 0);
		ck_assert_mem_eq(got, "aaaaaaaa\0\0\0\0", 12);
	}
	h5_io_close(io);
	h5_onion_close(onion);
}
END_TEST

/* Of a page that is there twice, the newer one lies behind. */
START_TEST(pages_that_are_there_twice)
{
	for (int i = 0; i < 2; i++) {
		struct h5_onion *onion;
		uint64_t a, b;

		begin();
		a = put_page('a');
		b = put_page('b');
		put_record(ORIGIN, PAGE, (struct page[]){{8, i ? a : b}, {8, i ? b : a}, {16, a}}, 3, 0);
		finish(ORIGIN);
		ck_assert_int_eq(open_onion(&onion), 0);
		is_revision(onion, 1, "ABCDEFGHbbbbbbbbaaaaaaaaYZ[\\]^_`abcd");
		h5_onion_close(onion);
	}
}
END_TEST

/* ---- damage ---- */

START_TEST(every_byte_is_watched)
{
	make_three();
	ck_assert_int_eq(check_all(), 0);
	for (size_t i = 0; i < onion_size; i++) {
		bool is_data = (i >= 40 && i < 56) || (i >= onion_places[0].offset + onion_places[0].size &&
						       i < onion_places[1].offset);

		for (int bit = 0; bit < 8; bit++) {
			int rc;

			onion_bytes[i] ^= (uint8_t)(1 << bit);
			rc = check_all();
			onion_bytes[i] ^= (uint8_t)(1 << bit);
			ck_assert_msg(is_data ? !rc : rc == -EUCLEAN || rc == -ENOTSUP || rc == -EINVAL,
				      "%zu: %d", i, rc);
		}
	}
	for (size_t all = onion_size; onion_size--;)
		ck_assert_msg(check_all() == -EUCLEAN || onion_size < 4, "%zu of %zu", onion_size, all);
}
END_TEST

/* Their checksums are right. */
START_TEST(what_cannot_be)
{
	static const uint64_t most = INT64_MAX;
	struct h5_onion *onion;

	begin();
	put_record(ORIGIN, PAGE, (struct page[]){{16, 40}, {8, 40}}, 2, 0);
	finish(ORIGIN);
	refuses(-EUCLEAN, "revision 1: index of a revision: not sorted");
	begin();
	put_record(ORIGIN, PAGE, (struct page[]){{most - 7, 40}}, 1, 0);
	finish(ORIGIN);
	ck_assert_int_eq(check_all(), -EUCLEAN);
	begin();
	put_record(ORIGIN, PAGE, (struct page[]){{most - 15, 40}}, 1, 0);
	finish(ORIGIN);
	ck_assert_int_eq(check_all(), 0);
	/* Pages of the size 1 begin anywhere. */
	begin();
	put_record(ORIGIN, 1, (struct page[]){{most - 1, 40}}, 1, 0);
	finish(ORIGIN);
	ck_assert_int_eq(check_all(), 0);
	begin();
	put_record(ORIGIN, 1, (struct page[]){{most, 40}}, 1, 0);
	finish(ORIGIN);
	refuses(-EUCLEAN, "a page at");
	/* A page that ends with the onion file, and one that does not. */
	for (int more = 0; more < 2; more++) {
		begin();
		put_record(ORIGIN, PAGE, (struct page[]){{8, 0}}, 1, 0);
		{
			uint64_t end = onion_places[0].offset + onion_places[0].size + 16 + 20 + 4;

			begin();
			put_record(ORIGIN, PAGE, (struct page[]){{8, end - PAGE + (uint64_t)more}}, 1, 0);
			finish(ORIGIN);
			ck_assert_uint_eq(onion_size, end);
		}
		if (more)
			refuses(-EUCLEAN, "index of a revision: reaches beyond the end of the onion file");
		else
			ck_assert_int_eq(check_all(), 0);
	}
	begin();
	put_record((uint64_t)INT64_MAX + 1, PAGE, NULL, 0, 0);
	finish(ORIGIN);
	refuses(-EUCLEAN, "record of a revision: a file of");
	begin();
	put_record(INT64_MAX, PAGE, NULL, 0, 0);
	finish(ORIGIN);
	ck_assert_int_eq(check_all(), 0);
	/* Places beyond the end. */
	begin();
	put_record(ORIGIN, PAGE, NULL, 0, 0);
	onion_places[0].offset += 1000;
	finish(ORIGIN);
	refuses(-EUCLEAN, "record of a revision: reaches beyond");
	begin();
	put_record(ORIGIN, PAGE, NULL, 0, 0);
	onion_places[0].offset = UINT64_MAX - 10;
	finish(ORIGIN);
	refuses(-EUCLEAN, "record of a revision: reaches beyond");
	make_three();
	put_header(ORIGIN, onion_size - 83, 84, 0);
	refuses(-EUCLEAN, "onion file: history: reaches beyond");
	put_header(ORIGIN, UINT64_MAX - 10, 84, 0);
	refuses(-EUCLEAN, "onion file: history: reaches beyond");
	/* The origin has lost bytes. */
	make_three();
	put_header(ORIGIN + 1, onion_size - 80, 80, 0);
	refuses(-EUCLEAN, "the file has 36 bytes, but 37 when its history began");
	/* A program is writing its first revision. */
	make_three();
	put_header(ORIGIN, 0, 0, 1);
	ck_assert_int_eq(open_onion(&onion), 0);
	ck_assert(h5_onion_is_written(onion));
	ck_assert_uint_eq(h5_onion_newest(onion), 0);
	is_revision(onion, 0, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcd");
	h5_onion_close(onion);
	put_header(ORIGIN, 0, 0, 0);
	ck_assert_int_eq(check_all(), -EUCLEAN);
	/* Its next one: the history is that of before. */
	make_three();
	put_header(ORIGIN, onion_size - 80, 80, 1);
	ck_assert_int_eq(open_onion(&onion), 0);
	ck_assert(h5_onion_is_written(onion));
	ck_assert_uint_eq(h5_onion_newest(onion), 3);
	h5_onion_close(onion);
}
END_TEST

/* The time of a text that is none is not known. */
START_TEST(times)
{
	static const char wrong[] = "x+- ";

	for (size_t k = 0; k < 15 * 4 + 1; k++) {
		size_t i = k / 4;
		char text[17] = TIME;
		struct h5_onion *onion;
		struct h5_io_stat st;
		struct h5_io *io;

		begin();
		time_text = text;
		if (i < 15)
			text[i] = wrong[k % 4];
		put_record(ORIGIN, PAGE, NULL, 0, 0);
		finish(ORIGIN);
		ck_assert_int_eq(open_onion(&onion), 0);
		ck_assert_int_eq(h5_onion_open_revision(onion, 1, true, &io), 0);
		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_int_eq(st.mtime.tv_sec, i < 15 ? 0 : 1795430700);
		h5_io_close(io);
		h5_onion_close(onion);
	}
}
END_TEST

/* ---- where it is ---- */

static void make_file(const char *name, const char *text)
{
	char path[400];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

START_TEST(names)
{
	struct h5_folder folder = {.fd = -1, .external = H5_EXTERNAL_BENEATH, .lock = H5_LOCK_ALWAYS},
			 none = folder;
	char path[200], name[NAME_MAX + 1] = "";
	struct h5_io *first, *pages;
	int fd;

	ck_assert_int_eq(h5_folder_open(&folder, scratch_folder()), 0);
	make_file("f", "text");
	snprintf(path, sizeof path, "%s/f", scratch_folder());
	ck_assert_int_eq(h5_io_open_local(path, H5_LOCK_NONE, false, &first), 0);
	ck_assert_int_eq(h5_onion_find(&folder, "f", first, &pages), 0);
	ck_assert_ptr_null(pages);
	make_file("f.onion", "OHDx");
	ck_assert_int_eq(h5_onion_find(&folder, "f", first, &pages), 0);
	ck_assert_ptr_null(pages);
	make_file("f.onion", "OHD");
	ck_assert_int_eq(h5_onion_find(&folder, "f", first, &pages), 0);
	ck_assert_ptr_null(pages);
	make_file("f.onion", "OHDH");
	ck_assert_int_eq(h5_onion_find(&folder, "f", first, &pages), 0);
	ck_assert_ptr_nonnull(pages);
	h5_io_close(pages);
	/* Bytes in memory have no folder. */
	ck_assert_int_eq(h5_onion_find(&none, "f", first, &pages), 0);
	ck_assert_ptr_null(pages);
	/* It cannot be had now. */
	strcat(path, ".onion");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(h5_onion_find(&folder, "f", first, &pages), -EWOULDBLOCK);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "the history of the file (f.onion): "));
	close(fd);
	/* If no others are opened, it must have the same rights. */
	ck_assert_int_eq(chmod(path, 0600), 0);
	folder.external = H5_EXTERNAL_NONE;
	ck_assert_int_eq(h5_onion_find(&folder, "f", first, &pages), -EACCES);
	folder.external = H5_EXTERNAL_BENEATH;
	ck_assert_int_eq(h5_onion_find(&folder, "f", first, &pages), 0);
	h5_io_close(pages);
	ck_assert_int_eq(remove(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(h5_onion_find(&folder, "f", first, &pages), 0);
	ck_assert_ptr_null(pages);
	/* The longest name, and one more byte. */
	memset(name, 'n', NAME_MAX);
	strcpy(name + NAME_MAX - 6, ".onion");
	make_file(name, "OHDH");
	name[NAME_MAX - 6] = 0;
	ck_assert_int_eq(h5_onion_find(&folder, name, first, &pages), 0);
	ck_assert_ptr_nonnull(pages);
	h5_io_close(pages);
	strcat(name, "n");
	ck_assert_int_eq(h5_onion_find(&folder, name, first, &pages), 0);
	ck_assert_ptr_null(pages);
	h5_io_close(first);
	h5_folder_close(&folder);
}
END_TEST

/* ---- many ---- */

/* Lists are read in pieces, and adjacent pages become one run. */
START_TEST(long_lists)
{
	static struct page pages[2 * PIECE + 1];

	for (size_t n = PIECE - 1; n <= 2 * PIECE + 1; n += n == PIECE + 1 ? PIECE - 2 : 1)
		for (size_t comment = 0; comment < 2; comment++) {
			struct h5_onion *onion;
			struct h5_io *io;
			uint8_t got[2];

			begin();
			onion_bytes[onion_size] = 'z';
			for (size_t i = 0; i < n; i++)
				pages[i] = (struct page){2 * i, 40 + 2 * i % 8};
			put_record(2 * n, 2, pages, n, comment * 70001);
			finish(ORIGIN);
			ck_assert_int_eq(open_onion(&onion), 0);
			ck_assert_int_eq(h5_onion_open_revision(onion, 1, false, &io), 0);
			ck_assert_int_eq(h5_io_read(io, 2 * n - 2, got, 2), 0);
			ck_assert_mem_eq(got, onion_bytes + pages[n - 1].offset, 2);
			h5_io_close(io);
			h5_onion_close(onion);
			/* Its last byte counts. */
			onion_bytes[onion_places[0].offset + onion_places[0].size - 5] ^= 1;
			ck_assert_int_eq(check_all(), -EUCLEAN);
		}
}
END_TEST

/* All revisions that are open have a bound together: of the pieces of their indexes. */
START_TEST(many_pieces)
{
	enum { EACH = 1 << 16, TIMES = (1 << 22) / EACH };
	static struct page pages[EACH];
	struct h5_io *ios[TIMES], *io;
	struct h5_onion *onion;
	uint64_t a;

	begin();
	a = put_page('a');
	for (size_t i = 0; i < EACH; i++)
		pages[i] = (struct page){i * PAGE, a};
	put_record(EACH * PAGE, PAGE, pages, EACH, 0);
	put_record(EACH * PAGE, PAGE, pages, EACH - 1, 0);
	put_record(2 * PAGE, PAGE, pages, 2, 0);
	put_record(PAGE, PAGE, pages, 1, 0);
	finish(ORIGIN);
	ck_assert_int_eq(open_onion(&onion), 0);
	/* All but one. */
	for (size_t i = 0; i < TIMES; i++)
		ck_assert_int_eq(h5_onion_open_revision(onion, i ? 1 : 2, false, &ios[i]), 0);
	ck_assert_int_eq(h5_onion_open_revision(onion, 3, false, &io), -ENOTSUP);
	ck_assert_ptr_nonnull(
		strstr(h5_error_last()->text, "revision 3: index of a revision: more than 4194304 pieces"));
	ck_assert_int_eq(h5_onion_check(onion, 3), -ENOTSUP);
	is_revision(onion, 4, "aaaaaaaa");
	is_revision(onion, 0, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcd");
	h5_io_close(ios[0]);
	is_revision(onion, 3, "aaaaaaaaaaaaaaaa");
	for (size_t i = 1; i < TIMES; i++)
		h5_io_close(ios[i]);
	h5_onion_close(onion);
}
END_TEST

/* Pages that lie side by side in both files are read at once. */
START_TEST(adjacent_pages)
{
	static const struct {
		size_t step_there, step_here; /* between pages */
		unsigned calls;
	} cases[] = {{2, 2, 1}, {2, 4, 10}, {4, 2, 19}};

	for (size_t k = 0; k < 3; k++) {
		struct page pages[10];
		struct h5_onion *onion;
		struct h5_io *io;
		uint8_t got[38];
		size_t n = 9 * cases[k].step_there + 2;

		begin();
		for (int i = 0; i < 5; i++)
			put_page((char)('a' + i));
		for (size_t i = 0; i < 10; i++)
			pages[i] = (struct page){i * cases[k].step_there, 40 + i * cases[k].step_here};
		put_record(n, 2, pages, 10, 0);
		finish(ORIGIN);
		ck_assert_int_eq(open_onion(&onion), 0);
		ck_assert_int_eq(h5_onion_open_revision(onion, 1, false, &io), 0);
		calls = 0;
		ck_assert_int_eq(h5_io_read(io, 0, got, n), 0);
		ck_assert_uint_eq(calls, cases[k].calls);
		for (size_t i = 0; i < 10; i++)
			ck_assert_mem_eq(got + pages[i].address, onion_bytes + pages[i].offset, 2);
		h5_io_close(io);
		h5_onion_close(onion);
	}
}
END_TEST

START_TEST(many_revisions)
{
	for (size_t n = PIECE - 1; n <= 2 * PIECE + 1; n += n == PIECE + 1 ? PIECE - 2 : 1) {
		struct h5_onion *onion;
		char *newest = "ABC";

		begin();
		for (size_t i = 0; i < n; i++)
			put_record(i + 1 == n ? 3 : 2, PAGE, NULL, 0, 0);
		finish(ORIGIN);
		ck_assert_int_eq(open_onion(&onion), 0);
		ck_assert_uint_eq(h5_onion_newest(onion), n);
		is_revision(onion, n, newest);
		is_revision(onion, n - 1, "AB");
		h5_onion_close(onion);
	}
	/* Up to a limit. */
	for (size_t n = H5_REVISIONS_MAX; n <= H5_REVISIONS_MAX + 1; n++) {
		begin();
		put_record(2, PAGE, NULL, 0, 0);
		while (onion_revisions < n)
			onion_places[onion_revisions++] = onion_places[0];
		finish(ORIGIN);
		if (n > H5_REVISIONS_MAX)
			refuses(-ENOTSUP, "more than");
		else
			ck_assert_int_eq(check_all(), 0);
	}
}
END_TEST

/* ---- faults ---- */

START_TEST(calls_that_fail)
{
	bool fired = true;

	make_three();
	for (unsigned long n = 1; fired; n++) {
		int rc;

		failing = n;
		calls = 0;
		rc = check_all();
		fired = calls >= n;
		failing = 0;
		ck_assert_int_eq(rc, fired ? -EIO : 0);
	}
	ck_assert_int_eq(check_all(), 0);
}
END_TEST

START_TEST(memory_is_short)
{
	bool fired = true;

	make_three();
	for (unsigned long n = 1; fired; n++) {
		struct h5_onion *onion;
		struct h5_io *io = NULL;
		int rc;

		fault_alloc_arm(n);
		rc = open_onion(&onion);
		if (!rc) {
			fault_alloc_count(true);
			rc = h5_onion_open_revision(onion, 2, false, &io);
			fault_alloc_count(false);
			if (!rc)
				h5_io_close(io);
			fired = fault_alloc_disarm();
			ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
			is_revision(onion, 1, "ABCDEFGHaaaaaaaabbbbbbbbYZ[\\]^_`abcd");
			h5_onion_close(onion);
		} else {
			ck_assert(fault_alloc_disarm());
			ck_assert_int_eq(rc, -ENOMEM);
		}
	}
}
END_TEST

UNIT_MAIN("onion", revisions_are_read, no_origin, pages_that_are_there_twice, every_byte_is_watched,
	  what_cannot_be, times, names, long_lists, many_pieces, adjacent_pages, many_revisions,
	  calls_that_fail, memory_is_short)

#include "fake_piece.h"
#include "io/overlay.h"
#include "io/pages.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

static void close_overlay(struct h5_io *io)
{
	h5_overlay_release((struct h5_overlay *)io);
}

static const struct h5_io_ops ops = {.read = h5_overlay_read,
				     .readv = h5_overlay_readv,
				     .want = h5_overlay_want,
				     .stat = h5_overlay_stat,
				     .unlock = h5_overlay_unlock,
				     .close = close_overlay};

/* Two that touch each other, and one behind the end. */
static struct h5_patch patches[] = {
	{2, 2, (const uint8_t *)"01"},
	{10, 5, (const uint8_t *)"23456"},
	{15, 1, (const uint8_t *)"7"},
	{30, 2, (const uint8_t *)"89"},
};

static void open_overlay(struct h5_overlay *overlay)
{
	*overlay = (struct h5_overlay){.io.ops = &ops};
	ck_assert_int_eq(h5_io_open_memory(letters, 26, &overlay->beneath), 0);
	ck_assert_int_eq(h5_patches_reserve(&overlay->patches, 4), 0);
	/* In another order than that of their offsets. */
	h5_patches_insert(&overlay->patches, 0, &patches[1]);
	h5_patches_insert(&overlay->patches, 1, &patches[3]);
	h5_patches_insert(&overlay->patches, 0, &patches[0]);
	h5_patches_insert(&overlay->patches, 2, &patches[2]);
}

/* What a file with these bytes gives. */
static void check_every_read(struct h5_overlay *overlay, const char *expected, size_t size)
{
	for (size_t at = 0; at < 40; at++)
		for (size_t n = 1; n < 40; n++) {
			size_t there = at >= size ? 0 : n < size - at ? n : size - at, got;
			char buf[48], three[48];
			struct iovec pieces[3] = {{three, n / 3}, {three + n / 3, 1}, {three, 0}};

			memset(buf, '?', sizeof buf);
			memset(three, '?', sizeof three);
			ck_assert_int_eq(h5_io_read_some(&overlay->io, at, buf, n, &got), 0);
			ck_assert_uint_eq(got, there);
			ck_assert_mem_eq(buf, expected + at, there);
			pieces[2] = (struct iovec){three + n / 3 + 1, n - n / 3 - 1};
			ck_assert_int_eq(h5_io_readv(&overlay->io, at, pieces, 3, &got), 0);
			ck_assert_uint_eq(got, there);
			ck_assert_mem_eq(three, expected + at, there);
		}
}

START_TEST(reads_see_patches)
{
	struct h5_overlay overlay;
	struct h5_io_stat st;

	open_overlay(&overlay);
	check_every_read(&overlay, "ab01efghij234567qrstuvwxyz", 26);
	ck_assert_int_eq(h5_io_stat(&overlay.io, &st), 0);
	ck_assert_uint_eq(st.size, 26);
	h5_patches_remove(&overlay.patches, 1, 2);
	check_every_read(&overlay, "ab01efghijklmnopqrstuvwxyz", 26);
	h5_patches_remove(&overlay.patches, 0, 2);
	check_every_read(&overlay, letters, 26);
	h5_io_close(&overlay.io);
}
END_TEST

static int unlock_fails(struct h5_io *io)
{
	(void)io;
	return -ENOLCK;
}

START_TEST(a_lock_beneath_that_cannot_be_given_up)
{
	static const struct h5_io_ops ops_beneath = {.unlock = unlock_fails};
	struct h5_io beneath = {.ops = &ops_beneath};
	struct h5_overlay overlay = {.io.ops = &ops, .beneath = &beneath};

	ck_assert_int_eq(h5_io_unlock(&overlay.io), -ENOLCK);
}
END_TEST

static const struct h5_io_range *wanted;
static enum h5_wanted wanted_when;

static uint64_t note_wanted(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
			    enum h5_wanted when)
{
	(void)io;
	ck_assert_uint_eq(count, 1);
	wanted = ranges;
	wanted_when = when;
	return 1234;
}

static int stat_fails(struct h5_io *io, struct h5_io_stat *st)
{
	(void)io;
	(void)st;
	return -EACCES;
}

START_TEST(what_is_beneath_is_asked)
{
	static const struct h5_io_ops ops_beneath = {.want = note_wanted, .stat = stat_fails};
	static const struct h5_io_range range = {5, 7};
	struct h5_io beneath = {.ops = &ops_beneath};
	struct h5_overlay overlay = {.io.ops = &ops, .beneath = &beneath};
	struct h5_io_stat st;

	ck_assert_uint_eq(h5_io_want(&overlay.io, &range, 1, H5_WANTED_SOON), 1234);
	ck_assert(wanted == &range && wanted_when == H5_WANTED_SOON);
	ck_assert_int_eq(h5_io_stat(&overlay.io, &st), -EACCES);
}
END_TEST

/* Also of an endless one, whose zeros stand for what is not there, not for what could not be read. */
START_TEST(bytes_beneath_that_cannot_be_read)
{
	struct fake beneath = {.io.ops = &fake_ops, .st.size = 26, .read = -EACCES};

	for (unsigned endless = 0; endless < 2; endless++) {
		struct h5_overlay overlay = {.io.ops = &ops, .beneath = &beneath.io, .endless = endless};
		char buf[8];
		struct iovec pieces[2] = {{buf, 4}, {buf + 4, 4}};
		size_t got;

		ck_assert_int_eq(h5_patches_reserve(&overlay.patches, 1), 0);
		h5_patches_insert(&overlay.patches, 0, &patches[1]);
		ck_assert_int_eq(h5_io_read_some(&overlay.io, 8, buf, 8, &got), -EACCES);
		ck_assert_int_eq(h5_io_readv(&overlay.io, 8, pieces, 2, &got), -EACCES);
		ck_assert_int_eq(h5_io_read_some(&overlay.io, 10, buf, 5, &got), endless ? 0 : -EACCES);
		h5_io_close(&overlay.io);
	}
}
END_TEST

START_TEST(an_endless_one_goes_on_with_zeros)
{
	struct h5_overlay overlay;
	char expected[128] = "ab01efghij234567qrstuvwxyz";

	open_overlay(&overlay);
	overlay.endless = true;
	expected[30] = '8';
	expected[31] = '9';
	check_every_read(&overlay, expected, 100);
	h5_io_close(&overlay.io);
}
END_TEST

START_TEST(patches_are_found_by_their_offset)
{
	struct h5_overlay overlay;
	const struct h5_patches *list = &overlay.patches;

	open_overlay(&overlay);
	ck_assert_uint_eq(h5_patches_find(list, 0), 0);
	ck_assert_uint_eq(h5_patches_find(list, 3), 0);
	ck_assert_uint_eq(h5_patches_find(list, 4), 1);
	ck_assert_uint_eq(h5_patches_find(list, 15), 2);
	ck_assert_uint_eq(h5_patches_find(list, 31), 3);
	ck_assert_uint_eq(h5_patches_find(list, 32), 4);
	ck_assert(h5_patches_cover(list, 11, 4));
	ck_assert(!h5_patches_cover(list, 11, 5)); /* two patches do */
	ck_assert(!h5_patches_cover(list, 9, 2));
	h5_io_close(&overlay.io);
}
END_TEST

/* ---- pages of a revision ---- */

static int fail_to_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	(void)io;
	(void)offset;
	(void)buf;
	(void)n;
	*got = 0;
	return -EIO;
}

static const struct h5_io_ops failing_ops = {.read = fail_to_read};

static size_t open_runs;

/* Runs at 4 and 30, of which the second one is not all there; 20 bytes of the origin count. */
static struct h5_io *open_paged(struct h5_io *origin, struct h5_io *pages)
{
	static const struct h5_io_run runs[] = {{.start = 4, .n = 4, .offset = 2},
						{.start = 30, .n = 8, .offset = 6}};
	struct h5_io_paged paged = {.origin = origin,
				    .pages = pages,
				    .origin_end = 20,
				    .end = 50,
				    .runs = malloc(sizeof runs),
				    .count = 2,
				    .open_runs = &open_runs};
	struct h5_io *io;

	memcpy(paged.runs, runs, sizeof runs);
	open_runs += 2;
	ck_assert_int_eq(h5_io_open_paged(&paged, &io), 0);
	return io;
}

START_TEST(pages_replace_the_origin)
{
	static const char expected[50] = "abcd2345ijklmnopqrst\0\0\0\0\0\0\0\0\0\0006789";
	struct h5_io *origin, *pages, *io;
	char buf[64];
	size_t got;

	ck_assert_int_eq(h5_io_open_memory(letters, 26, &origin), 0);
	ck_assert_int_eq(h5_io_open_memory("0123456789", 10, &pages), 0);
	io = open_paged(origin, pages);
	for (size_t at = 0; at < 60; at++)
		for (size_t n = 1; n <= 60; n++) {
			size_t end = at + n < 50 ? at + n : 50;

			/* Nothing comes behind what is missing. */
			if (at < 38 && end > 34)
				end = 34;
			ck_assert_int_eq(h5_io_read_some(io, at, buf, n, &got), 0);
			ck_assert_uint_eq(got, end > at ? end - at : 0);
			if (got)
				ck_assert_mem_eq(buf, expected + at, got);
		}
	h5_io_close(io);
	ck_assert_uint_eq(open_runs, 0);
	h5_io_close(pages);
	h5_io_close(origin);
}
END_TEST

START_TEST(either_file_of_pages_can_fail)
{
	struct h5_io failing = {.ops = &failing_ops}, *good, *io;
	char buf[64];
	size_t got;

	ck_assert_int_eq(h5_io_open_memory(letters, 26, &good), 0);
	io = open_paged(&failing, good);
	ck_assert_int_eq(h5_io_read_some(io, 0, buf, 4, &got), -EIO);
	ck_assert_int_eq(h5_io_read_some(io, 6, buf, 4, &got), -EIO);
	ck_assert_int_eq(h5_io_read_some(io, 4, buf, 4, &got), 0);
	ck_assert_mem_eq(buf, "cdef", 4);
	/* Behind the end of the origin are zeros, which need not be read. */
	ck_assert_int_eq(h5_io_read_some(io, 20, buf, 10, &got), 0);
	ck_assert_uint_eq(got, 10);
	h5_io_close(io);
	io = open_paged(good, &failing);
	ck_assert_int_eq(h5_io_read_some(io, 0, buf, 4, &got), 0);
	ck_assert_mem_eq(buf, "abcd", 4);
	ck_assert_int_eq(h5_io_read_some(io, 3, buf, 2, &got), -EIO);
	h5_io_close(io);
	h5_io_close(good);
}
END_TEST

/* Behind what the origin lacks nothing comes; behind where it shall end there are zeros. What a read has put
 * there before it failed does not count. */
START_TEST(an_origin_that_is_short_or_fails)
{
	struct fake origin = {.io.ops = &fake_ops, .st.size = 10};
	const struct h5_io_paged paged = {.origin = &origin.io,
					  .pages = &origin.io,
					  .origin_end = 20,
					  .end = 30,
					  .open_runs = &open_runs};
	char buf[30];
	struct h5_io *io;
	size_t got;

	ck_assert_int_eq(h5_io_open_paged(&paged, &io), 0);
	ck_assert_int_eq(h5_io_read_some(io, 0, buf, 30, &got), 0);
	ck_assert_uint_eq(got, 10);
	ck_assert_int_eq(h5_io_read_some(io, 4, buf, 8, &got), 0);
	ck_assert_uint_eq(got, 6);
	ck_assert_int_eq(h5_io_read_some(io, 12, buf, 4, &got), 0);
	ck_assert_uint_eq(got, 0);
	origin.st.size = 25;
	ck_assert_int_eq(h5_io_read_some(io, 0, buf, 30, &got), 0);
	ck_assert_uint_eq(got, 30);
	ck_assert_mem_eq(buf, "ffffffffffffffffffff\0\0\0\0\0\0\0\0\0\0", 30);
	origin.read = -EIO;
	ck_assert_int_eq(h5_io_read_some(io, 0, buf, 30, &got), -EIO);
	ck_assert_int_eq(h5_io_read_some(io, 4, buf, 8, &got), -EIO);
	h5_io_close(io);
}
END_TEST

/* ---- what is known of both ---- */

enum { OLDER = 100, NEWER = 200, ENTRY = 300 };

/* stat() tells the identity of the revision, and its time; without one, the time of the later file. */
START_TEST(a_stat_is_of_both_files)
{
	struct fake files[2]; /* the origin, the pages */
	struct h5_io_paged paged = {.origin = &files[0].io,
				    .pages = &files[1].io,
				    .end = 500,
				    .device = 7,
				    .inode = 8,
				    .open_runs = &open_runs};

	for (unsigned newer = 0; newer < 2; newer++)
		for (unsigned seconds = 0; seconds < 2; seconds++)
			for (unsigned entry = 0; entry < 2; entry++) {
				struct h5_io_stat st;
				struct h5_io *io;

				for (unsigned i = 0; i < 2; i++) {
					const long time = i == newer ? NEWER : OLDER;

					files[i] = (struct fake){.io.ops = &fake_ops, .st.stored = 200};
					/* If the seconds are the same, the nanoseconds tell. */
					files[i].st.mtime = (struct timespec){seconds ? time : 9, 500 - time};
					files[i].st.ctime = (struct timespec){seconds ? 1000 + time : 9, 5};
					if (!seconds) {
						files[i].st.mtime.tv_nsec = time;
						files[i].st.ctime.tv_nsec = 1000 + time;
					}
				}
				paged.time = (struct timespec){entry ? ENTRY : 0, entry ? 77 : 0};
				ck_assert_int_eq(h5_io_open_paged(&paged, &io), 0);
				ck_assert_int_eq(h5_io_stat(io, &st), 0);
				ck_assert_uint_eq(st.size, 500);
				ck_assert_uint_eq(st.end, 500);
				ck_assert_uint_eq(st.stored, 400);
				ck_assert_uint_eq(st.device, 7);
				ck_assert_uint_eq(st.inode, 8);
				ck_assert_int_eq(st.mtime.tv_sec, entry ? ENTRY : seconds ? NEWER : 9);
				ck_assert_int_eq(st.mtime.tv_nsec, entry     ? 77
								   : seconds ? 500 - NEWER
									     : NEWER);
				ck_assert_int_eq(st.ctime.tv_sec, entry ? ENTRY : seconds ? 1000 + NEWER : 9);
				ck_assert_int_eq(st.ctime.tv_nsec, entry ? 77 : seconds ? 5 : 1000 + NEWER);
				h5_io_close(io);
			}
}
END_TEST

/* There is a lock if both have one. No more is stored than there is. */
START_TEST(locks_and_bytes_of_both_files)
{
	struct fake files[2] = {{.io.ops = &fake_ops}, {.io.ops = &fake_ops}};
	const struct h5_io_paged paged = {
		.origin = &files[0].io, .pages = &files[1].io, .end = 500, .open_runs = &open_runs};
	static const struct {
		uint64_t origin, pages, stored;
	} cases[] = {{250, 249, 499},		{250, 250, 500},	  {250, 251, 500},
		     {UINT64_MAX - 9, 10, 500}, {UINT64_MAX - 9, 9, 500}, {0, 0, 0}};
	struct h5_io_stat st;
	struct h5_io *io;

	ck_assert_int_eq(h5_io_open_paged(&paged, &io), 0);
	for (unsigned i = 0; i < 4; i++) {
		files[0].st.locked = i & 1;
		files[1].st.locked = i & 2;
		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_int_eq(st.locked, i == 3);
	}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		files[0].st.stored = cases[i].origin;
		files[1].st.stored = cases[i].pages;
		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_uint_eq(st.stored, cases[i].stored);
	}
	for (unsigned i = 0; i < 2; i++) {
		files[i].stat = -EACCES - (int)i;
		ck_assert_int_eq(h5_io_stat(io, &st), -EACCES - (int)i);
		files[i].stat = 0;
	}
	h5_io_close(io);
}
END_TEST

UNIT_MAIN("overlay", reads_see_patches, a_lock_beneath_that_cannot_be_given_up, what_is_beneath_is_asked,
	  bytes_beneath_that_cannot_be_read, an_endless_one_goes_on_with_zeros,
	  patches_are_found_by_their_offset, pages_replace_the_origin, either_file_of_pages_can_fail,
	  an_origin_that_is_short_or_fails, a_stat_is_of_both_files, locks_and_bytes_of_both_files)

#include "io/overlay.h"
#include "unit.h"

#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

static void close_overlay(struct h5_io *io)
{
	h5_overlay_release((struct h5_overlay *)io);
}

static const struct h5_io_ops ops = {
	.read = h5_overlay_read, .readv = h5_overlay_readv, .stat = h5_overlay_stat, .close = close_overlay};

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
			char buf[48] = "", three[48] = "";
			struct iovec pieces[3] = {{three, n / 3}, {three + n / 3, 1}, {three, 0}};

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

UNIT_MAIN("overlay", reads_see_patches, an_endless_one_goes_on_with_zeros, patches_are_found_by_their_offset)

#include "base/buf.h"
#include "base/error.h"
#include "bytes.h"
#include "format/selection.h"
#include "unit.h"

static int decode(const struct bytes *b, struct h5_selection *s)
{
	uint8_t *copy = malloc(b->n + 1);
	struct h5_reader r = h5_reader_init(memcpy(copy, b->data, b->n), b->n, 0, 8, 8);
	int rc = h5_selection_decode(&r, s);

	if (!rc)
		ck_assert_uint_eq(h5_reader_left(&r), 0);
	free(copy);
	return rc;
}

/* Decodes it, and finds every shorter one truncated. */
static void decoded(const struct bytes *b, struct h5_selection *s)
{
	for (struct bytes cut = *b; cut.n--;)
		ck_assert_int_eq(decode(&cut, s), -EUCLEAN);
	ck_assert_int_eq(decode(b, s), 0);
}

static int write_block(void *arg, unsigned rank, const uint64_t *first, const uint64_t *last)
{
	struct h5_buf *out = arg;

	for (unsigned i = 0; i < rank; i++)
		h5_buf_printf(out, "%s%llu-%llu",
			      i		  ? ","
			      : out->size ? " "
					  : "",
			      (unsigned long long)first[i], (unsigned long long)last[i]);
	return out->err;
}

static void blocks_are(const struct h5_selection *s, const char *expected)
{
	struct h5_buf out;

	h5_buf_init(&out, 10000);
	ck_assert_int_eq(h5_selection_blocks(s, write_block, &out), 0);
	h5_buf_byte(&out, 0);
	ck_assert_str_eq(out.data, expected);
	h5_buf_release(&out);
}

START_TEST(none_and_all)
{
	for (unsigned kind = 0; kind <= 3; kind += 3) {
		struct bytes b = {.n = 0};
		struct h5_selection s;

		put(&b, kind, 4);
		put(&b, 1, 4);
		put(&b, 0, 8);
		decoded(&b, &s);
		ck_assert_uint_eq(s.kind, kind);
		ck_assert(!h5_selection_is_unlimited(&s));
		h5_selection_release(&s);
		h5_selection_release(&s);
		b.data[4] = 2;
		ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	}
}
END_TEST

static void points_header(struct bytes *b, unsigned version, unsigned width, uint32_t rank, uint64_t n)
{
	b->n = 0;
	put(b, H5_SELECT_POINTS, 4);
	put(b, version, 4);
	if (version == 1)
		put(b, 0, 8);
	else
		put(b, width, 1);
	put(b, rank, 4);
	put(b, n, width);
}

START_TEST(points)
{
	static const uint64_t at[] = {5, 9, 0, 0, 3, 3};

	for (unsigned version = 1; version <= 2; version++)
		for (unsigned width = version == 1 ? 4 : 2; width <= (version == 1 ? 4 : 8); width *= 2) {
			struct h5_selection s;
			struct bytes b;

			points_header(&b, version, width, 2, 3);
			put_all(&b, at, 6, width);
			decoded(&b, &s);
			ck_assert_int_eq(s.kind, H5_SELECT_POINTS);
			ck_assert_uint_eq(s.rank, 2);
			ck_assert_uint_eq(s.count, 3);
			ck_assert_mem_eq(s.coordinates, at, sizeof at);
			h5_selection_release(&s);
		}
}
END_TEST

START_TEST(points_refused)
{
	struct h5_selection s;
	struct bytes b;

	points_header(&b, 2, 8, 2, 1ull << 62); /* counts whose bytes overflow, or are not there */
	put(&b, 0, 8);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	points_header(&b, 1, 4, 2, 0xffffffff);
	put(&b, 0, 8);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	points_header(&b, 2, 3, 2, 0);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	points_header(&b, 1, 4, 33, 0);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	points_header(&b, 1, 4, 0, 0);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	points_header(&b, 3, 4, 2, 0);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	b.data[0] = 4;
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
}
END_TEST

/* Of `version`, with numbers of `width` bytes: 4 in version 1, 8 in version 2. */
static void slab_header(struct bytes *b, unsigned version, unsigned width, unsigned flags, uint32_t rank)
{
	b->n = 0;
	put(b, H5_SELECT_HYPERSLAB, 4);
	put(b, version, 4);
	if (version == 1)
		put(b, 0, 4);
	else
		put(b, flags, 1);
	if (version == 3)
		put(b, width, 1);
	else
		put(b, 0, 4);
	put(b, rank, 4);
}

START_TEST(irregular_hyperslabs)
{
	static const uint64_t at[] = {0, 2, 5, 4, 7, 1, 7, 1};

	for (unsigned version = 1; version <= 3; version++) {
		unsigned width = version == 1 ? 4 : version == 2 ? 8 : 2;
		struct h5_selection s;
		struct bytes b;

		slab_header(&b, version, width, 0, 2);
		put(&b, 2, width);
		put_all(&b, at, 8, width);
		decoded(&b, &s);
		ck_assert(s.kind == H5_SELECT_HYPERSLAB && !s.regular && s.count == 2 && s.rank == 2);
		blocks_are(&s, "0-5,2-4 7-7,1-1");
		h5_selection_release(&s);
		b.data[b.n - width] = 0; /* ends before it begins */
		ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	}
}
END_TEST

static void regular(struct bytes *b, unsigned width, const uint64_t slab[4])
{
	slab_header(b, width == 8 ? 2 : 3, width, 1, 1);
	put_all(b, slab, 4, width);
}

START_TEST(regular_hyperslabs)
{
	/* start, stride, count, block of two dimensions */
	static const uint64_t at[] = {1, 3, 2, 2, 10, 5, 2, 1};

	for (unsigned version = 2; version <= 3; version++)
		for (unsigned width = version == 2 ? 8 : 2; width <= 8; width *= 2) {
			struct h5_selection s;
			struct bytes b;

			slab_header(&b, version, width, 1, 2);
			put_all(&b, at, 8, width);
			decoded(&b, &s);
			ck_assert(s.regular && !h5_selection_is_unlimited(&s));
			ck_assert_uint_eq(s.slabs[0].end, 6);
			ck_assert_uint_eq(s.slabs[1].end, 16);
			blocks_are(&s, "1-2,10-10 1-2,15-15 4-5,10-10 4-5,15-15");
			h5_selection_release(&s);
		}
}
END_TEST

START_TEST(unlimited_hyperslabs_end_with_the_extent)
{
	for (unsigned width = 2; width <= 8; width *= 2) {
		const uint64_t many[] = {1, 4, UINT64_MAX, 3}, long_one[] = {3, 1, 1, UINT64_MAX};
		struct h5_selection s;
		struct bytes b;

		regular(&b, width, many);
		decoded(&b, &s);
		ck_assert(h5_selection_is_unlimited(&s));
		h5_selection_clip(&s, &(uint64_t){11});
		ck_assert(!h5_selection_is_unlimited(&s));
		blocks_are(&s, "1-3 5-7 9-10");
		h5_selection_release(&s);
		decoded(&b, &s);
		h5_selection_clip(&s, &(uint64_t){1});
		blocks_are(&s, "");
		regular(&b, width, long_one);
		decoded(&b, &s);
		h5_selection_clip(&s, &(uint64_t){7});
		blocks_are(&s, "3-6");
		h5_selection_release(&s);
		decoded(&b, &s);
		h5_selection_clip(&s, &(uint64_t){3});
		blocks_are(&s, "");
	}
}
END_TEST

START_TEST(hyperslabs_refused)
{
	const uint64_t no = UINT64_MAX;
	const uint64_t bad[][4] = {
		{0, 0, 1, 1},			/* stride 0 */
		{0, 2, 2, 3},			/* blocks overlap */
		{0, 1, no, no},			/* unlimited twice */
		{0, 1, 2, no},			/* unlimited blocks overlap */
		{no - 1, 1, 1, 3},		/* end overflows */
		{0, 1ull << 40, 1ull << 30, 1}, /* so does the product */
	};
	const uint64_t empty[] = {7, 1, 0, 1};
	struct h5_selection s;
	struct bytes b;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		regular(&b, 8, bad[i]);
		ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	}
	slab_header(&b, 2, 8, 1, 2); /* two unlimited dimensions */
	put_all(&b, (const uint64_t[]){0, 1, no, 1, 0, 1, no, 1}, 8, 8);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	regular(&b, 8, empty);
	ck_assert_int_eq(decode(&b, &s), 0);
	blocks_are(&s, "");
	slab_header(&b, 2, 8, 0, 1); /* a block whose end has no successor */
	put_all(&b, (const uint64_t[]){1, 0, no}, 3, 8);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	slab_header(&b, 4, 8, 1, 1);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
}
END_TEST

/* The same just within the limits. */
START_TEST(hyperslabs_at_their_limits)
{
	const uint64_t no = UINT64_MAX;
	static const struct {
		uint64_t slab[4], end;
	} good[] = {
		{{0, 2, 2, 2}, 4},
		{{0, 2, 1, 3}, 3},
		{{0, 1, 0, 5}, 0},
		{{7, 1, 1, 0}, 7},
		{{7, 2, 3, 0}, 7},
		{{UINT64_MAX - 1, 1, 1, 1}, UINT64_MAX},
		{{0, UINT64_MAX - 1, 2, 1}, UINT64_MAX},
		{{5, 3, UINT64_MAX, 3}, UINT64_MAX},
		{{5, 3, 1, UINT64_MAX}, UINT64_MAX},
		{{UINT64_MAX - 1, 1, 1, UINT64_MAX}, UINT64_MAX},
	};
	const uint64_t bad[][4] = {{0, 0, 0, 0},      {0, 2, 3, 3},	 {no, 1, no, 1},    {no, 1, 1, no},
				   {no, 1, 1, 1},     {no - 1, 1, 2, 1}, {0, no - 1, 2, 2}, {0, no, 2, 1},
				   {1, no - 1, 2, 1}, {0, 2, 2, no}};
	struct h5_selection s;
	struct bytes b;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		regular(&b, 8, good[i].slab);
		ck_assert_msg(!decode(&b, &s), "%zu: %s", i, h5_error_last()->text);
		ck_assert_uint_eq(s.slabs[0].end, good[i].end);
		ck_assert(h5_selection_is_unlimited(&s) == (good[i].slab[2] == no || good[i].slab[3] == no));
		h5_selection_release(&s);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		regular(&b, 8, bad[i]);
		ck_assert_msg(decode(&b, &s) == -EUCLEAN, "%zu", i);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "hyperslab that cannot be"));
	}
	/* One less than unlimited is a number, in few bytes, too. */
	regular(&b, 2, (const uint64_t[]){0, 1, 0xfffe, 1});
	ck_assert_int_eq(decode(&b, &s), 0);
	ck_assert(!h5_selection_is_unlimited(&s) && s.slabs[0].end == 0xfffe);
	h5_selection_release(&s);
	regular(&b, 4, (const uint64_t[]){0, 1, 1, 0xffffffff});
	ck_assert_int_eq(decode(&b, &s), 0);
	ck_assert(h5_selection_is_unlimited(&s));
	h5_selection_release(&s);
	/* 32 dimensions, and none of them more. */
	for (unsigned rank = 32; rank <= 33; rank++) {
		slab_header(&b, 2, 8, 1, rank);
		for (unsigned i = 0; i < rank; i++)
			put_all(&b, (const uint64_t[]){0, 1, 1, 1}, 4, 8);
		ck_assert_int_eq(decode(&b, &s), rank == 32 ? 0 : -EUCLEAN);
		h5_selection_release(&s);
	}
	/* A block of one element, and one that ends before it begins in the last dimension. */
	slab_header(&b, 2, 8, 0, 2);
	put_all(&b, (const uint64_t[]){1, 3, 4, 3, 4}, 5, 8);
	ck_assert_int_eq(decode(&b, &s), 0);
	blocks_are(&s, "3-3,4-4");
	h5_selection_release(&s);
	slab_header(&b, 2, 8, 0, 2);
	put_all(&b, (const uint64_t[]){1, 3, 4, 3, 3}, 5, 8);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	slab_header(&b, 0, 8, 0, 2);
	put_all(&b, (const uint64_t[]){1, 3, 4, 3, 4}, 5, 8);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
	points_header(&b, 0, 4, 2, 0);
	ck_assert_int_eq(decode(&b, &s), -EUCLEAN);
}
END_TEST

static int stop(void *arg, unsigned rank, const uint64_t *first, const uint64_t *last)
{
	(void)rank, (void)first, (void)last;
	return ++*(int *)arg == 5 ? -E2BIG : 0;
}

START_TEST(visits_can_be_ended)
{
	const uint64_t many[] = {0, 1, 1ull << 60, 1};
	struct h5_selection s;
	struct bytes b;
	int visits = 0;

	regular(&b, 8, many);
	ck_assert_int_eq(decode(&b, &s), 0);
	ck_assert_int_eq(h5_selection_blocks(&s, stop, &visits), -E2BIG);
	ck_assert_int_eq(visits, 5);
}
END_TEST

/* Any byte of any form may be anything. */
START_TEST(changed_bytes_do_no_harm)
{
	static const uint64_t at[] = {1, 3, 2, 2, 10, 5, 2, 1};

	for (unsigned form = 0; form < 4; form++) {
		struct bytes b;

		if (form == 0) {
			points_header(&b, 2, 2, 2, 4);
			put_all(&b, at, 8, 2);
		} else {
			slab_header(&b, form, form == 1 ? 4 : 8, form > 1, 2);
			if (form == 1)
				put(&b, 2, 4);
			put_all(&b, at, 8, form == 1 ? 4 : 8);
		}
		for (size_t i = 0; i < b.n; i++) {
			uint8_t was = b.data[i];

			for (unsigned v = 0; v < 256; v++) {
				struct h5_reader r = h5_reader_init(b.data, b.n, 0, 8, 8);
				struct h5_selection s;
				int visits = 0;

				b.data[i] = (uint8_t)v;
				if (h5_selection_decode(&r, &s))
					continue;
				h5_selection_clip(&s, (const uint64_t[H5_RANK_MAX]){100, 100});
				if (s.kind == H5_SELECT_HYPERSLAB)
					(void)h5_selection_blocks(&s, stop, &visits);
				h5_selection_release(&s);
			}
			b.data[i] = was;
		}
	}
}
END_TEST

UNIT_MAIN("selection", none_and_all, points, points_refused, irregular_hyperslabs, regular_hyperslabs,
	  unlimited_hyperslabs_end_with_the_extent, hyperslabs_refused, hyperslabs_at_their_limits,
	  visits_can_be_ended, changed_bytes_do_no_harm)

#include "base/checked.h"
#include "change/space.h"
#include "unit.h"

#include <errno.h>

enum {
	LEAST = 1000, /* the file's end at first: no multiple of anything */
	ROUNDS = 4000,
	HELD_MAX = 300,
	SIZES = 40, /* more than searches are remembered */
};

struct held {
	uint64_t address, n;
};

/* Random numbers, always the same ones. */
static unsigned any(uint64_t *seed, unsigned below)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return (unsigned)(*seed >> 33) % below;
}

static struct h5_extents *list_of(struct h5_space *space, enum h5_allocation kind, uint64_t n)
{
	bool metadata = space->page && n < space->page && kind != H5_ALLOCATE_RAW;

	return &space->free[metadata ? H5_ALLOCATE_METADATA : H5_ALLOCATE_RAW];
}

/* True: the bytes lie in one page of the piece in which they begin. */
static bool is_cell(const struct h5_space *space, uint64_t n, uint64_t at)
{
	uint64_t size = space->pieces.size, offset = at + space->base;

	if (size && offset / size != (offset + n - 1) / size)
		return false;
	offset = size ? offset % size : offset;
	return offset / H5_CELL == (offset + n - 1) / H5_CELL;
}

/* The rule of doc/writing.md, Cells, and of paged files, byte by byte. Where pieces begin at no multiple of
 * 8, some sizes up to a page fit nowhere. */
static bool may_lie(const struct h5_space *space, enum h5_allocation kind, uint64_t n, uint64_t at)
{
	if (space->page &&
	    (n >= space->page ? at % space->page != 0 : at / space->page != (at + n - 1) / space->page))
		return false;
	if (kind == H5_ALLOCATE_RAW)
		return true;
	return at % 8 == 0 && (n > (space->pieces.size % 8 ? H5_CELL - 7 : H5_CELL) ||
			       kind == H5_ALLOCATE_ONCE || is_cell(space, n, at));
}

/* The first place in free space; UINT64_MAX: none. */
static uint64_t first_place(struct h5_space *space, enum h5_allocation kind, uint64_t n)
{
	const struct h5_extents *free = list_of(space, kind, n);

	h5_extents_each(e, free) for (uint64_t at = e->address; at + n <= e->address + e->size;
				      at++) if (may_lie(space, kind, n, at)) return at;
	return UINT64_MAX;
}

/* Sizes that repeat, and sizes that do not. */
static uint64_t any_size(uint64_t *seed)
{
	static const uint64_t often[] = {8,	      48,	   512,		544,	 1024,
					 H5_CELL - 8, H5_CELL - 7, H5_CELL - 6, H5_CELL, 6000};

	if (any(seed, 3))
		return often[any(seed, sizeof often / sizeof *often)];
	return 1 + any(seed, SIZES) * 40;
}

static void allocate(struct h5_space *space, uint64_t *seed, struct held *held)
{
	static const enum h5_allocation kinds[] = {H5_ALLOCATE_RAW, H5_ALLOCATE_METADATA, H5_ALLOCATE_ONCE};
	enum h5_allocation kind = kinds[any(seed, 3)];
	uint64_t n = any_size(seed), end = space->areas[0].end, place = first_place(space, kind, n), address;

	ck_assert_int_eq(h5_space_allocate(space, kind, n, &address), 0);
	ck_assert(may_lie(space, kind, n, address));
	if (place == UINT64_MAX)
		ck_assert_uint_ge(address, end);
	else
		ck_assert_uint_eq(address, place);
	*held = (struct held){address, n};
}

static void check_places(uint64_t base, uint64_t page, uint64_t piece)
{
	struct h5_space space = {.base = base,
				 .pieces.size = piece,
				 .areas = {{.end = page ? 2 * page : LEAST, .limit = INT64_MAX}},
				 .page = page};
	struct held held[HELD_MAX];
	uint64_t seed = base + page + piece;
	unsigned count = 0;
	bool committed;

	space.areas[0].committed_end = space.areas[0].end;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned k = count ? any(&seed, count) : 0;

		if (count < HELD_MAX && (!count || any(&seed, 100) < 55)) {
			allocate(&space, &seed, &held[count++]);
			continue;
		}
		h5_space_free(&space, held[k].address, held[k].n, &committed);
		held[k] = held[--count];
		if (i % 500 == 499) {
			h5_space_committed(&space, true);
			h5_space_cooled(&space);
		}
	}
	h5_space_release(&space);
}

START_TEST(each_allocation_takes_the_first_place)
{
	check_places(0, 0, 0);
	check_places(512, 0, 0);
	check_places(0, 4096, 0);
	check_places(2048, 512, 0);
	check_places(0, 0, 5000);
	check_places(0, 0, 5001);
	check_places(512, 0, 4099);
	check_places(0, 512, 0);
	check_places(0, 3 * H5_CELL, 0);
}
END_TEST

/* The address of new space; UINT64_MAX: there is none. */
static uint64_t place_in(struct h5_space *space, enum h5_allocation kind, uint64_t n)
{
	uint64_t address;
	int rc = h5_space_allocate(space, kind, n, &address);

	ck_assert(!rc || rc == -ENOSPC);
	return rc ? UINT64_MAX : address;
}

/* Sizes and addresses that are exactly as large as can be, and one byte more. */
START_TEST(limits)
{
	struct h5_space space = {
		.areas = {{.start = 100, .end = 1000, .committed_end = 1000, .limit = 3000}}};
	bool committed;

	ck_assert(h5_space_has(&space, 900, 100) && h5_space_had(&space, 900, 100));
	ck_assert(!h5_space_has(&space, 900, 101) && !h5_space_had(&space, 900, 101));
	ck_assert(!h5_space_has(&space, 900, UINT64_MAX) && !h5_space_had(&space, 900, UINT64_MAX));
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 2901), UINT64_MAX);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 2900), UINT64_MAX);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 2001), UINT64_MAX);
	ck_assert_uint_eq(space.areas[0].end, 1000);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 2000), 1000);
	ck_assert(h5_space_has(&space, 2900, 100) && !h5_space_had(&space, 2900, 100));
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 1), UINT64_MAX);
	/* What is free is found however full the file is; nothing of no bytes, or beyond the end, becomes
	 * free. */
	h5_space_free(&space, 1500, 0, &committed);
	h5_space_free(&space, 2999, 2, &committed);
	ck_assert(!committed && !space.given.count);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 1), UINT64_MAX);
	/* Committed space, and new space, and not both. */
	h5_space_free(&space, 999, 2, &committed);
	ck_assert(!committed && !space.given.count);
	h5_space_free(&space, 998, 2, &committed);
	ck_assert(committed);
	for (int twice = 0; twice < 2; twice++) { /* as in a damaged file */
		h5_space_free(&space, 1200, 100, &committed);
		ck_assert(!committed);
	}
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 101), UINT64_MAX);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 100), 1200);
	/* Without a commit, all is as before. */
	h5_space_rollback(&space);
	ck_assert_uint_eq(space.areas[0].end, 1000);
	ck_assert(!space.given.count && !space.fresh.count && !space.free[0].count);
	h5_space_free(&space, 1000, UINT64_MAX, &committed);
	ck_assert(!committed);
	h5_space_release(&space);
	/* One that is empty, and becomes full at once. */
	space = (struct h5_space){.areas = {{.start = 100, .end = 100, .limit = 3000}}};
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 2901), UINT64_MAX);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 2900), 100);
	h5_space_free(&space, 200, UINT64_MAX - 50, &committed);
	ck_assert(!committed && !space.free[0].count);
	h5_space_release(&space);
}
END_TEST

/* In a damaged file, space may be given up that is in use for something else. */
START_TEST(old_and_new_space)
{
	struct h5_space space = {.areas = {{.end = 1000, .committed_end = 1000, .limit = INT64_MAX}}};
	bool committed;

	h5_space_free(&space, 500, 100, &committed);
	ck_assert(committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 50), 500);
	h5_space_free(&space, 490, 11, &committed);
	ck_assert(!committed);
	h5_space_free(&space, 549, 2, &committed);
	ck_assert(!committed && !space.given.count);
	h5_space_free(&space, 490, 10, &committed);
	ck_assert(committed);
	h5_space_release(&space);
}
END_TEST

/* Members of the multi driver may lie where addresses end. */
START_TEST(the_last_addresses)
{
	const uint64_t top = UINT64_MAX;
	struct h5_space space = {
		.areas = {
			{.start = top - 4999, .end = top - 50, .committed_end = top - 50, .limit = top - 1}}};

	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 50), top);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 100), top);
	/* A cell begins behind all that is free. */
	ck_assert_int_eq(h5_extents_add(&space.free[0], top - 300, 200), 0);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_METADATA, 300), top);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_METADATA, 150), top - 300 + 5);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 49), top - 50);
	h5_space_release(&space);
}
END_TEST

/* A gap before metadata is used only if it has 64 bytes. */
START_TEST(gaps_before_metadata)
{
	for (uint64_t gap = 56; gap <= 72; gap += 8) {
		struct h5_space space = {.areas = {{.end = H5_CELL - gap, .limit = INT64_MAX}}};

		ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_METADATA, 100), H5_CELL);
		ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 8),
				  gap < 64 ? H5_CELL + 100 : H5_CELL - gap);
		ck_assert_uint_eq(space.scraps.count, gap < 64);
		h5_space_release(&space);
	}
}
END_TEST

/* Pages that are larger than a cell, and do not begin where one does. */
START_TEST(no_place_in_a_page)
{
	struct h5_space space = {.areas = {{.end = 6000, .limit = INT64_MAX}}, .page = 6000};

	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_METADATA, 6000 - 2192), 8192);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_METADATA, 2192), 12288);
	/* In the page from 18000 to 24000 there is one edge, 20480. */
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_METADATA, 3521), UINT64_MAX);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_METADATA, 3521), 24576);
	h5_space_release(&space);
	/* No page fits before the end of the addresses; then nothing of it is taken. */
	for (uint64_t less = 0; less < 2; less++)
		for (int kind = H5_ALLOCATE_RAW; kind <= H5_ALLOCATE_METADATA; kind++) {
			space = (struct h5_space){.areas = {{.end = 8192, .limit = 12288 - less}},
						  .page = 4096};
			ck_assert_uint_eq(place_in(&space, (enum h5_allocation)kind, 8),
					  less ? UINT64_MAX : 8192);
			ck_assert_uint_eq(space.areas[0].end, less ? 8192 : 12288);
			ck_assert_uint_eq(space.pages[kind].count, !less);
			ck_assert_uint_eq(space.free[kind].count, !less);
			h5_space_release(&space);
		}
}
END_TEST

/* A whole page that would fit into one cell, where no page begins with one. */
START_TEST(a_page_that_is_no_cell)
{
	struct h5_space space = {.base = 512, .areas = {{.end = 8192, .limit = INT64_MAX}}, .page = H5_CELL};

	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_METADATA, H5_CELL) % H5_CELL, 0);
	ck_assert_uint_eq(space.areas[0].end % H5_CELL, 0);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, H5_CELL) % H5_CELL, 0);
	h5_space_release(&space);
}
END_TEST

/* A rollback frees the space before the end of the file that the changes had taken. */
START_TEST(a_rollback_frees_what_was_new)
{
	struct h5_space space = {
		.areas = {{.end = 9000, .committed_end = 9000, .least = 9000, .limit = INT64_MAX}}};

	h5_space_reclaim(&space, 1000, 500);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 500), 1000);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 500), 9000);
	h5_space_rollback(&space);
	ck_assert(h5_extents_covers(&space.free[0], 1000, 500));
	ck_assert_uint_eq(space.free[0].count, 1);
	ck_assert_uint_eq(space.areas[0].end, 9000);
	ck_assert_uint_eq(place_in(&space, H5_ALLOCATE_RAW, 500), 1000);
	h5_space_release(&space);
}
END_TEST

/* The end of any area may have moved. */
START_TEST(ends_that_are_committed)
{
	for (unsigned i = 0; i < 4; i++) {
		struct h5_space space = {.areas = {{.end = 10, .committed_end = 10},
						   {.start = 20, .end = 30, .committed_end = 30},
						   {.start = 40, .end = 50, .committed_end = 50}},
					 .others = 2};

		if (i < 3)
			space.areas[i].end++;
		ck_assert(h5_space_ends_as_committed(&space) == (i == 3));
		space.others = 0;
		ck_assert(h5_space_ends_as_committed(&space) == (i != 0));
	}
}
END_TEST

/* What lies behind a new end is forgotten, and nothing else: not what the next area has. */
START_TEST(cut_one_by_one)
{
	struct h5_space space = {
		.areas = {{.end = 1000, .committed_end = 1000, .least = 900},
			  {.start = 2000, .end = 3000, .committed_end = 3000, .least = 3000},
			  {.start = 4000, .end = 5000, .committed_end = 5000, .least = 5000}},
		.others = 2};
	struct h5_extents *const lists[] = {&space.free[0],  &space.free[1], &space.pages[0],
					    &space.pages[1], &space.scraps,  &space.holes};

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		for (uint64_t at = 500; at < 5000; at += 2000) {
			ck_assert_int_eq(h5_extents_add(lists[i], at, 10), 0);
			ck_assert_int_eq(h5_extents_add(lists[i], at + 300, 10), 0);
		}
	h5_space_cut(&space, &space.areas[0], 800);
	h5_space_cut(&space, &space.areas[1], 2501);
	ck_assert_uint_eq(space.areas[0].end, 800);
	ck_assert_uint_eq(space.areas[0].committed_end, 800);
	ck_assert_uint_eq(space.areas[0].least, 800);
	ck_assert_uint_eq(space.areas[1].end, 2501);
	ck_assert_uint_eq(space.areas[2].end, 5000);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		ck_assert_uint_eq(lists[i]->count, 4);
		ck_assert(h5_extents_covers(lists[i], 500, 10));
		ck_assert(h5_extents_covers(lists[i], 2500, 1));
		ck_assert(!h5_extents_has(lists[i], 2501) && !h5_extents_has(lists[i], 800));
		ck_assert(h5_extents_covers(lists[i], 4500, 10) && h5_extents_covers(lists[i], 4800, 10));
	}
	h5_space_release(&space);
}
END_TEST

/* What a file could give back: what is free at its end, and whole pages that still take room. */
START_TEST(waste_is_free_ends_and_pages)
{
	struct h5_space space = {.base = 512,
				 .areas = {{.end = 100000, .committed_end = 100000, .limit = INT64_MAX}}};
	bool committed;

	ck_assert_uint_eq(h5_space_waste(&space, true), 0);
	/* Of the file's bytes 512 + 3584 = 4096 begins a page. */
	h5_space_free(&space, 3000, 5000, &committed);
	h5_space_free(&space, 3584 + 5 * 4096, 3 * 4096 + 100, &committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	ck_assert_uint_eq(h5_space_waste(&space, false), 0);
	ck_assert_uint_eq(h5_space_waste(&space, true), 4096 + 3 * 4096);
	h5_space_punched(&space, 3584 + 6 * 4096, 4096);
	ck_assert_uint_eq(h5_space_waste(&space, true), 3 * 4096);
	h5_space_free(&space, 90000, 10000, &committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	ck_assert_uint_eq(h5_space_waste(&space, false), 10000);
	ck_assert_uint_eq(h5_space_waste(&space, true), 3 * 4096 + 10000);
	h5_space_release(&space);
}
END_TEST

/* The file can be cut behind its last byte in use, even if only one byte is in use there. */
START_TEST(the_last_byte)
{
	struct h5_space space = {.areas = {{.end = 100000, .committed_end = 100000, .limit = INT64_MAX}}};
	const struct h5_area *area = space.areas;
	bool committed;

	h5_space_reclaim(&space, 90000, 9999);
	ck_assert_uint_eq(h5_space_least_end(&space, area), 100000);
	h5_space_free(&space, 99999, 1, &committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	ck_assert_uint_eq(h5_space_least_end(&space, area), 90000);
	h5_space_release(&space);
	h5_space_reclaim(&space, 99999, 1);
	ck_assert_uint_eq(h5_space_least_end(&space, area), 99999);
	h5_space_cut(&space, &space.areas[0], 99999);
	ck_assert_uint_eq(h5_space_least_end(&space, area), 99999);
	h5_space_release(&space);
}
END_TEST

/* Members of the multi driver: small ones, so that they become full. */
enum { SECOND = 60001, THIRD = 130001, MEMBER = 40000 };

static struct h5_space in_members(void)
{
	return (struct h5_space){
		.pieces = {.count = 3, .start = {0, SECOND, THIRD}},
		.areas = {{.end = LEAST, .committed_end = LEAST, .least = LEAST, .limit = SECOND - 1},
			  {.start = SECOND, .end = SECOND + 8, .least = SECOND + 8, .limit = THIRD - 1},
			  {.start = THIRD,
			   .end = THIRD + LEAST,
			   .committed_end = THIRD + LEAST,
			   .least = THIRD + LEAST,
			   .limit = THIRD + MEMBER}},
		.others = 2,
		.raw = 2};
}

/* Metadata go to the first member, raw data to another one, each up to its own end. */
START_TEST(members_have_their_own_ends)
{
	struct h5_space space = in_members();
	uint64_t address, sum[2] = {0};
	bool committed;

	for (int kind = 0; kind < 2; kind++)
		while (!h5_space_allocate(&space, kind ? H5_ALLOCATE_METADATA : H5_ALLOCATE_RAW, 1000,
					  &address)) {
			ck_assert_uint_ge(address, kind ? LEAST : THIRD + LEAST);
			ck_assert_uint_le(address + 1000, kind ? SECOND - 1 : THIRD + MEMBER);
			ck_assert(!kind || address % 8 == 0);
			ck_assert(h5_space_has(&space, address, 1000));
			ck_assert(!h5_space_had(&space, address, 1000));
			sum[kind] += 1000;
		}
	ck_assert_uint_eq(sum[0], 39000);
	ck_assert_uint_ge(sum[1], 56000);
	ck_assert_uint_eq(space.areas[1].end, SECOND + 8);
	ck_assert(!h5_space_ends_as_committed(&space));
	ck_assert(!h5_space_has(&space, THIRD - 1, 1000));
	ck_assert(!h5_space_has(&space, SECOND - 1, 2));
	ck_assert(h5_space_has(&space, SECOND, 8));
	ck_assert(!h5_space_has(&space, SECOND, 9));
	/* Space that one area gives up is not used in the other one. */
	h5_space_free(&space, THIRD + LEAST, 39000, &committed);
	ck_assert(!committed);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, 1000, &address), -ENOSPC);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 39000, &address), 0);
	ck_assert_uint_eq(address, THIRD + LEAST);
	h5_space_rollback(&space);
	ck_assert_uint_eq(space.areas[0].end, LEAST);
	ck_assert_uint_eq(space.areas[1].end, SECOND + 8);
	ck_assert_uint_eq(space.areas[2].end, THIRD + LEAST);
	h5_space_release(&space);
}
END_TEST

START_TEST(members_are_cut_and_punched_one_by_one)
{
	struct h5_space space = in_members();
	struct h5_extents pages = {0};
	uint64_t raw, metadata;
	bool committed;

	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 30000, &raw), 0);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, 30000, &metadata), 0);
	h5_space_committed(&space, true);
	ck_assert(h5_space_ends_as_committed(&space));
	ck_assert(h5_space_had(&space, raw, 30000));
	h5_space_free(&space, raw, 29000, &committed);
	ck_assert(committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	/* Pages begin where the member does. */
	ck_assert_int_eq(h5_space_find_pages(&space, &pages), 0);
	ck_assert_uint_eq(pages.count, 1);
	ck_assert_uint_eq(h5_extents_from(&pages, 0)->address, THIRD + H5_CELL);
	ck_assert_uint_eq(h5_extents_from(&pages, 0)->size, 6 * H5_CELL);
	h5_extents_release(&pages);
	ck_assert_uint_eq(h5_space_waste(&space, true), 6 * H5_CELL);
	h5_space_free(&space, raw + 29000, 1000, &committed);
	h5_space_free(&space, metadata, 30000, &committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	for (unsigned i = 0; i < 3; i++)
		h5_space_cut(&space, &space.areas[i], h5_space_least_end(&space, &space.areas[i]));
	ck_assert_uint_eq(space.areas[0].end, LEAST);
	ck_assert_uint_eq(space.areas[1].end, SECOND + 8);
	ck_assert_uint_eq(space.areas[2].end, THIRD + LEAST);
	ck_assert_uint_eq(space.free[0].count, 0);
	/* One that could be empty keeps a few bytes. */
	h5_space_reclaim(&space, THIRD, LEAST);
	ck_assert_uint_eq(h5_space_least_end(&space, &space.areas[2]), THIRD + 8);
	h5_space_release(&space);
}
END_TEST

UNIT_MAIN("space", each_allocation_takes_the_first_place, limits, old_and_new_space, the_last_addresses,
	  gaps_before_metadata, no_place_in_a_page, a_page_that_is_no_cell, a_rollback_frees_what_was_new,
	  ends_that_are_committed, cut_one_by_one, waste_is_free_ends_and_pages, the_last_byte,
	  members_have_their_own_ends, members_are_cut_and_punched_one_by_one)

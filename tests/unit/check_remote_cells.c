/* The table of cells: which of them hold what, and which make room. */
#include "io/remote_cells.h"
#include "unit.h"

#include <errno.h>

enum { CELLS = 64 };

static uint32_t take_ready(struct h5_cells *cells, uint32_t file, uint64_t number, bool announced)
{
	uint32_t i = h5_cells_take(cells, file, number, announced);

	ck_assert_uint_lt(i, CELLS);
	h5_cells_end(cells, i, 0);
	return i;
}

static void read_of(struct h5_cells *cells, uint32_t i)
{
	h5_cells_hold(cells, i);
	h5_cells_use(cells, i);
	h5_cells_put(cells, i);
}

/* A full table: two files, the same numbers. */
static void fill(struct h5_cells *cells, uint32_t i[CELLS])
{
	ck_assert_int_eq(h5_cells_open(cells, CELLS), 0);
	for (uint32_t k = 0; k < CELLS; k++)
		i[k] = take_ready(cells, k % 2, k / 2, false);
	for (uint32_t k = 0; k < CELLS; k++)
		ck_assert_uint_eq(h5_cells_find(cells, k % 2, k / 2), i[k]);
	ck_assert_uint_eq(h5_cells_find(cells, 2, 0), H5_NO_CELL);
	ck_assert_uint_eq(h5_cells_find(cells, 0, CELLS / 2), H5_NO_CELL);
}

/* The cell that nobody has used for longest makes room; all others stay where they are. */
START_TEST(the_oldest_cell_makes_room)
{
	struct h5_cells cells;
	uint32_t i[CELLS];

	fill(&cells, i);
	/* In this order they were used last: even ones, then odd ones downwards. */
	for (uint32_t k = 0; k < CELLS; k += 2)
		read_of(&cells, i[k]);
	for (uint32_t k = CELLS - 1; k < CELLS; k -= 2)
		read_of(&cells, i[k]);
	for (uint32_t n = 0; n < CELLS; n++) {
		const uint32_t oldest = n < CELLS / 2 ? 2 * n : CELLS - 1 - 2 * (n - CELLS / 2);

		ck_assert_uint_eq(take_ready(&cells, 5, n, false), i[oldest]);
		ck_assert_uint_eq(h5_cells_find(&cells, oldest % 2, oldest / 2), H5_NO_CELL);
		i[oldest] = H5_NO_CELL;
		for (uint32_t k = 0; k < CELLS; k++)
			ck_assert_uint_eq(h5_cells_find(&cells, k % 2, k / 2), i[k]);
	}
	ck_assert_uint_eq(cells.wasted, 0);
	h5_cells_release(&cells);
	h5_cells_release(&cells);
}
END_TEST

/* Cells that are held, or wait for bytes, stay. */
START_TEST(cells_in_use_make_no_room)
{
	struct h5_cells cells;
	uint32_t i[CELLS], other;

	fill(&cells, i);
	for (uint32_t k = 0; k < CELLS; k++)
		if (k != 9 && k != 33)
			h5_cells_hold(&cells, i[k]);
	ck_assert_uint_eq(h5_cells_take(&cells, 2, 1, true), i[9]);
	ck_assert_uint_eq(h5_cells_take(&cells, 2, 2, true), i[33]);
	ck_assert_uint_eq(cells.wasted, 2);
	ck_assert_uint_eq(cells.waiting, 2);
	ck_assert_uint_eq(h5_cells_take(&cells, 2, 3, true), H5_NO_CELL);
	/* One that failed is free at once; but if somebody waits for it, when he has seen it. */
	h5_cells_hold(&cells, i[33]);
	h5_cells_end(&cells, i[9], -EIO);
	h5_cells_end(&cells, i[33], -EIO);
	ck_assert_uint_eq(cells.waiting, 1);
	ck_assert_uint_eq(h5_cells_find(&cells, 2, 1), H5_NO_CELL);
	ck_assert_uint_eq(h5_cells_find(&cells, 2, 2), i[33]);
	ck_assert_int_eq(cells.list[i[33]].code, -EIO);
	other = h5_cells_take(&cells, 2, 4, true);
	ck_assert_uint_eq(other, i[9]);
	ck_assert_uint_eq(h5_cells_take(&cells, 2, 5, true), H5_NO_CELL);
	h5_cells_put(&cells, i[33]);
	ck_assert_uint_eq(h5_cells_find(&cells, 2, 2), H5_NO_CELL);
	ck_assert_uint_eq(h5_cells_take(&cells, 2, 5, true), i[33]);
	h5_cells_end(&cells, i[9], 0);
	h5_cells_end(&cells, i[33], 0);
	ck_assert_uint_eq(cells.waiting, 2);
	for (uint32_t k = 0; k < CELLS; k++)
		if (k != 9 && k != 33)
			h5_cells_put(&cells, i[k]);
	h5_cells_forget(&cells, 1);
	for (uint32_t k = 0; k < CELLS; k++)
		if (k != 9 && k != 33)
			ck_assert_uint_eq(h5_cells_find(&cells, k % 2, k / 2), k % 2 ? H5_NO_CELL : i[k]);
	h5_cells_release(&cells);
	ck_assert_uint_eq(cells.waiting, 0);
}
END_TEST

/* Cells that were announced and read are the first to make room. A sixteenth of all cells is spared, as long
 * as others are idle. */
START_TEST(cells_that_were_read_ahead_make_room_first)
{
	enum { SPENT = CELLS / 16 };
	struct h5_cells cells;
	uint32_t i[CELLS];

	ck_assert_int_eq(h5_cells_open(&cells, CELLS), 0);
	for (uint32_t k = 0; k < CELLS; k++)
		i[k] = take_ready(&cells, 0, k, k >= CELLS - SPENT - 1);
	ck_assert_uint_eq(cells.waiting, SPENT + 1);
	for (uint32_t k = CELLS - SPENT - 1; k < CELLS; k++)
		read_of(&cells, i[k]);
	ck_assert_uint_eq(cells.waiting, 0);
	/* One more than these may be; then the oldest one that was not announced. */
	ck_assert_uint_eq(take_ready(&cells, 0, 100, false), i[CELLS - SPENT - 1]);
	ck_assert_uint_eq(take_ready(&cells, 0, 101, false), i[0]);
	ck_assert_uint_eq(cells.wasted, 1);
	for (uint32_t k = 0; k < CELLS - SPENT; k++)
		h5_cells_hold(&cells, i[k]);
	for (uint32_t k = CELLS - SPENT; k < CELLS; k++)
		ck_assert_uint_eq(h5_cells_take(&cells, 0, 200 + k, false), i[k]);
	ck_assert_uint_eq(h5_cells_take(&cells, 0, 300, false), H5_NO_CELL);
	for (uint32_t k = 0; k < CELLS - SPENT; k++)
		h5_cells_put(&cells, i[k]);
	h5_cells_release(&cells);
}
END_TEST

/* Cells of both kinds, in any number, make room for all that are wanted. */
START_TEST(idle_cells_make_room)
{
	enum { SPENT = CELLS / 16 };

	for (uint32_t spent = 0; spent <= SPENT; spent++)
		for (uint32_t kept = 0; kept <= SPENT; kept++) {
			struct h5_cells cells;
			uint32_t i[CELLS];

			ck_assert_int_eq(h5_cells_open(&cells, CELLS), 0);
			for (uint32_t k = 0; k < CELLS; k++) {
				i[k] = take_ready(&cells, 0, k, k < spent);
				if (k < spent)
					read_of(&cells, i[k]);
				else if (k >= spent + kept)
					h5_cells_hold(&cells, i[k]);
			}
			ck_assert_uint_eq(cells.spent.count, spent);
			ck_assert_uint_eq(cells.kept.count, kept);
			for (uint32_t k = 0; k < spent + kept; k++)
				ck_assert_uint_lt(h5_cells_take(&cells, 1, k, false), CELLS);
			ck_assert_uint_eq(h5_cells_take(&cells, 1, CELLS, false), H5_NO_CELL);
			ck_assert_uint_eq(cells.wasted, kept);
			for (uint32_t k = spent + kept; k < CELLS; k++)
				h5_cells_put(&cells, i[k]);
			h5_cells_release(&cells);
		}
}
END_TEST

UNIT_MAIN("remote cells", the_oldest_cell_makes_room, cells_in_use_make_no_room,
	  cells_that_were_read_ahead_make_room_first, idle_cells_make_room)

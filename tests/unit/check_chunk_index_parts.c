/* Parts of chunk indexes: blocks, pages, gaps, and what a kill has left. */
#include "base/error.h"
#include "base/lookup3.h"
#include "chunk_index/private.h"
#include "index_target.h"
#include "store/want.h"

#include <errno.h>
#include <string.h>

/* Chunks come to several pages of one new data block at once. */
START_TEST(pages_that_come_together)
{
	/* Behind chunk 131060 each page has 1024 elements. */
	static const uint64_t numbers[] = {131060 + 5, 131060 + 1024, 131060 + 3000, 131060 + 6};
	struct target t;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	for (unsigned i = 0; i < 4; i++)
		SUCCEEDS(target_set(&t, numbers[i]));
	for (unsigned again = 0; again < 2; again++) {
		for (unsigned i = 0; i < 4; i++) {
			target_assert_stored(&t, numbers[i], numbers[i] + 1);
			ck_assert_uint_eq(target_value(&t, numbers[i] + 1),
					  i ? H5_UNDEF : (numbers[3] * 7 + 3) % 256);
		}
		ck_assert_uint_eq(target_count(&t), 4);
		t.space.dims[0] = numbers[2] + 1;
		h5_chunk_index_resize(t.index, t.space.dims);
		SUCCEEDS(target_commit(&t));
		target_close(&t);
		target_open(&t);
	}
	target_release(&t);
}
END_TEST

/* ---- visits ---- */

static int skip_chunk(void *arg, uint64_t address, uint64_t n)
{
	(void)arg;
	(void)address;
	(void)n;
	return 0;
}

struct visits {
	unsigned done, fail;
	uint64_t end;		 /* of the file */
	struct h5_extents space; /* of the blocks, if none fails */
};

static int fail_block(void *arg, uint64_t address, uint64_t n)
{
	struct visits *visits = arg;

	ck_assert(n && address <= visits->end - n);
	ck_assert(!visits->fail || visits->done < visits->fail);
	if (!visits->fail) {
		ck_assert(!h5_extents_touches(&visits->space, address, n));
		SUCCEEDS(h5_extents_add(&visits->space, address, n));
	}
	return ++visits->done == visits->fail ? -EIO : 0;
}

/* The first visit that fails is the last one. */
START_TEST(visits_of_blocks_that_fail)
{
	static const char *const cases[][2] = {{"btree1_write-2.h5", "1f"},
					       {"btree2_write-empty.h5", "filtered"},
					       {"chunk_index_write-crossing-sparse.h5", "a"},
					       {"fixed_array_write-block.h5", "a"},
					       {"fixed_array_write-paged.h5", "a"}};

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct visits visits = {0};
		const struct h5_extent_visits all = {skip_chunk, fail_block, &visits};
		unsigned blocks;
		struct target t;

		target_init(&t, cases[c][0], cases[c][1], NULL);
		for (uint64_t n = 0; n < 12; n++)
			SUCCEEDS(h5_chunk_index_set(t.index, (const uint64_t[H5_RANK_MAX]){n},
						    &(struct h5_chunk){.address = 800 + 8 * n, .size = 1}));
		SUCCEEDS(target_commit(&t));
		visits.end = h5_file_end(t.file);
		SUCCEEDS(h5_chunk_index_extents(t.index, &all));
		h5_extents_release(&visits.space);
		blocks = visits.done;
		ck_assert_uint_gt(blocks, 1);
		for (visits.fail = 1; visits.fail <= blocks; visits.fail++) {
			visits.done = 0;
			ck_assert_int_eq(h5_chunk_index_extents(t.index, &all), -EIO);
			ck_assert_uint_eq(visits.done, visits.fail);
		}
		target_release(&t);
	}
}
END_TEST

/* ---- elements ---- */

/* A kill has left elements behind the last one that the header counts. They are no chunks, even after a chunk
 * was added behind them. */
START_TEST(what_a_kill_has_left)
{
	enum { HEADER = 72, COUNTED = 10, LEFT = 30 };
	uint8_t header[HEADER];
	struct target t;
	uint64_t at;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	target_append(&t, COUNTED, COUNTED);
	at = h5_chunk_index_layout(t.index)->address;
	target_append(&t, LEFT, LEFT);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, at);
	SUCCEEDS(h5_file_read(t.file, at, header, HEADER));
	ck_assert_mem_eq(header, "EAHD", 4);
	/* Behind six bytes and six more are counts; the fifth of these is Max Index Set. */
	ck_assert_uint_eq(h5_uint_from(header + 12 + 4 * 8, 8), LEFT);
	h5_uint_to(header + 12 + 4 * 8, COUNTED, 8);
	h5_uint_to(header + HEADER - 4, h5_lookup3(header, HEADER - 4, 0), 4);
	SUCCEEDS(h5_tx_patch(t.file, at, header, HEADER, H5_STAGE_INDEX));
	SUCCEEDS(h5_tx_commit(t.file));
	target_close(&t);
	target_open(&t);
	ck_assert_uint_eq(target_value(&t, COUNTED), H5_UNDEF);
	SUCCEEDS(target_set(&t, LEFT - 1));
	for (unsigned again = 0; again < 2; again++) {
		target_assert_stored(&t, 0, COUNTED);
		for (uint64_t n = COUNTED; n < LEFT - 1; n++)
			ck_assert_uint_eq(target_value(&t, n), H5_UNDEF);
		target_assert_stored(&t, LEFT - 1, LEFT);
		SUCCEEDS(target_commit(&t));
		target_close(&t);
		target_open(&t);
	}
	target_release(&t);
}
END_TEST

/* The second dimension is unlimited, so chunks are numbered column by column. A search along a row passes
 * over each block without chunks at once. */
START_TEST(gaps_along_a_row)
{
	enum { ROWS = 5, LAST = 199 };
	/* Blocks of the array before and up to the chunk: the index block, data blocks of 16, 32, twice 32
	 * and twice 64 elements, a super block of 4 data blocks of 64, and of one of 128, four of these. */
	enum { BLOCKS = 1 + 1 + 1 + 2 + 2 + 1 + 4 };
	const struct h5_chunk chunk = {.address = 800, .size = 1};
	const uint64_t last[H5_RANK_MAX] = {ROWS - 1, LAST};
	struct target t;

	target_init(&t, "chunk_index_write-second.h5", "a", NULL);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	t.space.dims[1] = LAST + 1;
	h5_chunk_index_resize(t.index, t.space.dims);
	SUCCEEDS(h5_chunk_index_set(t.index, last, &chunk));
	for (uint64_t row = 0; row < ROWS; row++) {
		struct h5_chunk_cursor cursor = {0};
		uint64_t at[H5_RANK_MAX] = {row, 0}, next[H5_RANK_MAX];
		unsigned steps = 0;
		bool stored = false;

		for (; at[0] == row && at[1] <= LAST && !stored; steps++) {
			SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, at, &stored, next));
			if (!stored)
				memcpy(at, next, sizeof at);
		}
		ck_assert_uint_eq(stored, row == ROWS - 1);
		ck_assert(!stored || at[1] == LAST);
		ck_assert_uint_le(steps, BLOCKS + 1);
		h5_chunk_cursor_release(t.index, &cursor);
	}
	target_release(&t);
}
END_TEST

/* Makes the index one of chunks of one byte, without any. */
static void set_shape(struct target *t, unsigned rank, const uint64_t *most)
{
	t->layout.chunked.rank = t->space.rank = rank;
	for (unsigned i = 0; i < rank; i++) {
		t->layout.chunked.dims[i] = 1;
		t->space.dims[i] = t->space.max[i] = most[i];
	}
	SUCCEEDS(target_open_index(t));
}

/* Steps to the next of `counts` coordinates in row-major order; false after the last. */
static bool next_place(const uint64_t *counts, unsigned rank, uint64_t *at)
{
	for (unsigned i = rank; i-- > 0; at[i] = 0)
		if (++at[i] < counts[i])
			return true;
	return false;
}

static int compare_places(const uint64_t *a, const uint64_t *b, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* A search from any place on finds the next chunk in row-major order, whatever the cursor has seen before. */
static const struct searched {
	const char *file, *name;
	unsigned rank;
	uint64_t most[3], counts[3]; /* maximum dimensions; where searches begin, and chunks are */
	uint64_t chunks[3][3];
	unsigned chunk_count;
} searches[] = {
	{"chunk_index_write-second.h5", "a", 2, {5, H5_UNLIMITED}, {5, 30}, {{0}}, 0},
	{"chunk_index_write-second.h5", "a", 2, {5, H5_UNLIMITED}, {5, 30}, {{1, 0}}, 1},
	{"chunk_index_write-second.h5", "a", 2, {5, H5_UNLIMITED}, {5, 30}, {{4, 3}, {2, 29}}, 2},
	{"chunk_index_write-second.h5", "a", 3, {2, H5_UNLIMITED, 3}, {2, 9, 3}, {{1, 0, 1}, {1, 8, 0}}, 2},
	{"chunk_index_write-second.h5", "a", 3, {2, 3, H5_UNLIMITED}, {2, 3, 9}, {{0, 2, 1}, {1, 0, 7}}, 2},
	{"chunk_index_write-plain.h5", "a", 2, {H5_UNLIMITED, 5}, {30, 5}, {{0, 4}, {29, 0}}, 2},
	/* Elements 244 to 499, and 500 to 1011, have no super block. */
	{"chunk_index_write-plain.h5", "a", 1, {H5_UNLIMITED}, {1600}, {{40}, {1012}, {1500}}, 3},
	{"fixed_array_write-paged.h5", "a", 1, {5000}, {4200}, {{40}, {3072}, {4100}}, 3},
	{"fixed_array_write-block.h5", "a", 2, {6, 7}, {6, 7}, {{0, 1}, {3, 6}, {5, 5}}, 3},
	{"btree1_write-2.h5", "2", 2, {6, 7}, {6, 7}, {{0, 1}, {3, 6}, {5, 5}}, 3},
	{"btree2_write-empty.h5", "filtered", 2, {H5_UNLIMITED, 7}, {6, 7}, {{0, 1}, {3, 6}, {5, 5}}, 3},
};

/* A cursor that has been there finds all chunks. */
static void find_all_from(const struct target *t, const struct searched *s, const uint64_t *at)
{
	for (unsigned i = 0; i < s->chunk_count; i++) {
		struct h5_chunk_cursor cursor = {0};
		struct h5_chunk chunk;

		SUCCEEDS(h5_chunk_index_lookup(t->index, &cursor, at, &chunk));
		ck_assert_uint_eq(chunk.address, H5_UNDEF);
		SUCCEEDS(h5_chunk_index_lookup(t->index, &cursor, s->chunks[i], &chunk));
		ck_assert_uint_eq(chunk.address, 800 + i);
		h5_chunk_cursor_release(t->index, &cursor);
	}
}

START_TEST(no_search_passes_a_chunk)
{
	const struct searched *s = &searches[_i];
	struct h5_chunk_cursor cursor = {0};
	uint64_t at[3] = {0};
	struct target t;

	target_init(&t, s->file, s->name, NULL);
	set_shape(&t, s->rank, s->most);
	for (unsigned i = 0; i < s->chunk_count; i++)
		SUCCEEDS(h5_chunk_index_set(t.index, s->chunks[i],
					    &(struct h5_chunk){.address = 800 + i, .size = 1}));
	do {
		const uint64_t *nearest = NULL;
		uint64_t next[3];
		bool stored;

		for (unsigned i = 0; i < s->chunk_count; i++)
			if (compare_places(s->chunks[i], at, s->rank) >= 0 &&
			    (!nearest || compare_places(s->chunks[i], nearest, s->rank) < 0))
				nearest = s->chunks[i];
		SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, at, &stored, next));
		ck_assert_int_eq(stored, nearest && !compare_places(nearest, at, s->rank));
		if (stored)
			continue;
		ck_assert_int_gt(compare_places(next, at, s->rank), 0);
		ck_assert(!nearest || compare_places(next, nearest, s->rank) <= 0);
		find_all_from(&t, s, at);
	} while (next_place(s->counts, s->rank, at));
	h5_chunk_cursor_release(t.index, &cursor);
	target_release(&t);
}
END_TEST

/* Chunks are numbered column by column, and the last one has number 1: no later row has any. */
START_TEST(no_row_has_a_chunk_any_more)
{
	static const uint64_t most[] = {5, H5_UNLIMITED}, last[] = {1, 0};
	const struct h5_chunk chunk = {.address = 800, .size = 1};
	struct target t;

	target_init(&t, "chunk_index_write-second.h5", "a", NULL);
	set_shape(&t, 2, most);
	SUCCEEDS(h5_chunk_index_set(t.index, last, &chunk));
	for (uint64_t row = 2; row < most[0]; row++) {
		struct h5_chunk_cursor cursor = {0};
		const uint64_t at[] = {row, 0};
		uint64_t next[2];
		bool stored;

		SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, at, &stored, next));
		ck_assert(!stored);
		ck_assert_uint_eq(next[0], UINT64_MAX);
		ck_assert_uint_eq(next[1], UINT64_MAX);
		h5_chunk_cursor_release(t.index, &cursor);
	}
	target_release(&t);
}
END_TEST

/* Other programs make the index block with the first chunk, too. */
START_TEST(an_array_without_an_index_block)
{
	enum { HEADER = 72, INDEX_BLOCK = 12 + 6 * 8 };
	uint8_t header[HEADER];
	struct target t;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	target_append(&t, 10, 10);
	SUCCEEDS(h5_file_read(t.file, t.layout.chunked.address, header, HEADER));
	memset(header + INDEX_BLOCK, 0xff, 8);
	h5_uint_to(header + HEADER - 4, h5_lookup3(header, HEADER - 4, 0), 4);
	SUCCEEDS(h5_tx_allocate(t.file, H5_ALLOCATE_METADATA, HEADER, &t.layout.chunked.address));
	SUCCEEDS(h5_tx_put(t.file, t.layout.chunked.address, header, HEADER));
	SUCCEEDS(target_open_index(&t));
	ck_assert_uint_ge(target_check_empty(&t), 10);
	target_release(&t);
}
END_TEST

/* Beyond the maximum dimensions, where a damaged file may send a search, there is nothing. */
START_TEST(searches_beyond_the_maximum)
{
	static const uint64_t most[] = {6, 7}, cases[][2][2] = {{{6, 0}, {UINT64_MAX, UINT64_MAX}},
								{{UINT64_MAX, 3}, {UINT64_MAX, UINT64_MAX}},
								{{5, 7}, {6, 0}},
								{{2, UINT64_MAX - 1}, {3, 0}}};
	const struct h5_chunk chunk = {.address = 800, .size = 1};
	struct h5_chunk_cursor cursor = {0};
	struct target t;

	target_init(&t, "fixed_array_write-block.h5", "a", NULL);
	set_shape(&t, 2, most);
	SUCCEEDS(h5_chunk_index_set(t.index, (const uint64_t[]){1, 1}, &chunk));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t next[2];
		bool stored;

		SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, cases[i][0], &stored, next));
		ck_assert(!stored);
		ck_assert_uint_eq(next[0], cases[i][1][0]);
		ck_assert_uint_eq(next[1], cases[i][1][1]);
	}
	h5_chunk_cursor_release(t.index, &cursor);
	target_release(&t);
}
END_TEST

/* All 64 bits of a chunk's coordinates count. */
START_TEST(chunks_that_are_far_apart)
{
	static const uint64_t places[] = {3, (UINT64_C(1) << 56) + 5, UINT64_C(1) << 63};
	enum { COUNT = sizeof places / sizeof *places };
	const uint64_t most = H5_UNLIMITED;
	struct target t;

	target_init(&t, "btree2_write-empty.h5", "filtered", NULL);
	set_shape(&t, 1, &most);
	for (unsigned i = 0; i < COUNT; i++)
		SUCCEEDS(h5_chunk_index_set(t.index, &places[i],
					    &(struct h5_chunk){.address = 800 + i, .size = 1}));
	for (unsigned i = 0; i < COUNT; i++) {
		struct h5_chunk_cursor cursor = {0};
		struct h5_chunk chunk;
		uint64_t before = places[i] - 1, behind = places[i] + 1, next;
		bool stored;

		SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, &before, &stored, &next));
		ck_assert(!stored);
		ck_assert_uint_eq(next, places[i]);
		SUCCEEDS(h5_chunk_index_lookup(t.index, &cursor, &next, &chunk));
		ck_assert_uint_eq(chunk.address, 800 + i);
		SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, &behind, &stored, &next));
		ck_assert(!stored);
		ck_assert_uint_eq(next, i + 1 < COUNT ? places[i + 1] : UINT64_MAX);
		h5_chunk_cursor_release(t.index, &cursor);
	}
	target_release(&t);
}
END_TEST

/* The width of the size of a structured chunk is what an element has room for, whatever chunks the dataset
 * has. */
START_TEST(widths_of_structured_chunks)
{
	static const struct {
		const char *file, *name;
	} cases[] = {{"btree2_write-empty.h5", "random"},
		     {"chunk_index_write-plain.h5", "a"},
		     {"fixed_array_write-block.h5", "a"}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const uint64_t zeros[H5_RANK_MAX] = {0};
		const struct h5_chunk chunk = {.address = 800, .size = 77, .metadata = {5}};
		struct h5_chunk found;
		struct target t;

		target_init(&t, cases[i].file, cases[i].name, NULL);
		t.layout.chunked.structured.offset_size = 1;
		SUCCEEDS(target_open_index(&t));
		SUCCEEDS(h5_chunk_index_set(t.index, zeros, &chunk));
		t.layout.chunked = *h5_chunk_index_layout(t.index);
		t.layout.chunked.element_size <<= 24;
		SUCCEEDS(target_open_index(&t));
		SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, zeros, &found));
		ck_assert_uint_eq(found.address, 800);
		ck_assert_uint_eq(found.size, 77);
		ck_assert_uint_eq(found.metadata[0], 5);
		/* There is no room for it. */
		t.layout.chunked.structured.offset_size = 8;
		ck_assert_int_eq(target_open_index(&t), -EUCLEAN);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, " bytes for structured chunks"));
		target_release(&t);
	}
}
END_TEST

/* ---- cursors ---- */

START_TEST(an_empty_cursor)
{
	struct h5_chunk_cursor cursor;

	memset(&cursor, 0xFF, sizeof cursor);
	h5_chunk_cursor_init(&cursor);
	ck_assert(!cursor.ref && !cursor.block && !cursor.held && !cursor.moves && !cursor.reach);
}
END_TEST

/* A cursor that goes on to another block expects reads of the next blocks, too. */
START_TEST(cursors_that_move)
{
	const uint64_t inside = 7, behind = 10;
	struct h5_chunk_cursor cursor = {.held = true, .low = {5}, .high = {10}};
	struct target t;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	ck_assert(h5_chunk_cursor_enter(t.index, &cursor, &inside, 1));
	ck_assert_uint_eq(h5_chunk_cursor_reach(&cursor), 0);
	ck_assert(!h5_chunk_cursor_enter(t.index, &cursor, &behind, 1));
	ck_assert(!cursor.held);
	ck_assert_uint_eq(h5_chunk_cursor_reach(&cursor), H5_WANT_NODES);
	/* Not if the block before could not be read. */
	cursor.block = &t;
	ck_assert_int_eq(h5_chunk_cursor_hold(t.index, &cursor, -EIO), -EIO);
	ck_assert(!cursor.held && !cursor.block);
	ck_assert(!h5_chunk_cursor_enter(t.index, &cursor, &inside, 1));
	ck_assert_uint_eq(h5_chunk_cursor_reach(&cursor), 0);
	cursor.reach = 3;
	ck_assert_uint_eq(h5_chunk_cursor_reach(&cursor), 3);
	target_release(&t);
}
END_TEST

/* Leaves bytes where the next function has its variables. */
static __attribute__((noinline)) void fill_stack(void)
{
	volatile uint8_t bytes[4096];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = 0xa5;
}

static int look_at_cursor(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			  const uint64_t *scaled, struct h5_chunk *chunk)
{
	(void)chunk;
	ck_assert(!h5_chunk_cursor_enter(index, cursor, scaled, 1));
	ck_assert_uint_eq(h5_chunk_cursor_reach(cursor), 0);
	ck_assert_ptr_null(cursor->block);
	ck_assert_uint_eq(cursor->next, 0);
	return h5_chunk_cursor_hold(index, cursor, 0);
}

/* A lookup without a cursor wants nothing but what it needs. */
START_TEST(lookups_without_a_cursor)
{
	const struct h5_chunk_index_ops ops = {.lookup = look_at_cursor};
	const uint64_t scaled[H5_RANK_MAX] = {3};
	struct h5_chunk chunk;
	struct target t;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	target_append(&t, 10, 10);
	t.index->ops = &ops;
	fill_stack();
	SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, scaled, &chunk));
	ck_assert_uint_eq(chunk.address, H5_UNDEF);
	target_release(&t);
}
END_TEST

/* All of a chunk is told, whatever was told before. */
START_TEST(elements_tell_all_of_a_chunk)
{
	uint8_t elements[2][64];
	struct target t;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	ck_assert_uint_le(h5_chunk_element_size(t.index), sizeof *elements);
	h5_chunk_elements_clear(t.index, *elements, 2);
	SUCCEEDS(h5_chunk_element_put(t.index, *elements, 0, &(struct h5_chunk){.address = 800, .size = 1}));
	for (uint64_t i = 0; i < 2; i++) {
		struct h5_chunk chunk;

		memset(&chunk, 0xff, sizeof chunk);
		h5_chunk_element_at(t.index, *elements, i, &chunk);
		ck_assert_uint_eq(chunk.address, i ? H5_UNDEF : 800);
		ck_assert_uint_eq(chunk.size, !i);
		ck_assert_uint_eq(chunk.filter_mask, 0);
	}
	target_release(&t);
}
END_TEST

/* ---- implicit chunks ---- */

/* They have their places from the beginning, and keep them. */
START_TEST(implicit_chunks_stay_where_they_are)
{
	static const struct {
		uint64_t at, address, size; /* the latter two added to what is so */
		uint32_t mask;
		int rc;
	} cases[] = {{0, 0, 0, 0, 0},	     {2, 0, 0, 0, 0},	     {2, 1, 0, 0, -ENOTSUP},
		     {2, 0, 1, 0, -ENOTSUP}, {2, 0, 0, 1, -ENOTSUP}, {3, 0, 0, 0, -ENOTSUP}};
	const uint64_t most = 3, first = 0;
	struct h5_chunk chunk = {.address = 800, .size = 1};
	struct target t;

	target_init(&t, "fixed_array_write-implicit.h5", "a", NULL);
	t.layout.chunked.address = 800;
	t.layout.chunked.element_size = 2;
	set_shape(&t, 1, &most);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		chunk = (struct h5_chunk){.address = 800 + 2 * cases[i].at + cases[i].address,
					  .size = 2 + cases[i].size,
					  .filter_mask = cases[i].mask};
		ck_assert_int_eq(h5_chunk_index_set(t.index, &cases[i].at, &chunk), cases[i].rc);
		if (cases[i].rc)
			ck_assert_str_eq(h5_error_last()->text, "implicit index: its chunks cannot move");
	}
	ck_assert(!h5_tx_is_pending(t.file));
	t.layout.chunked.address = H5_UNDEF;
	SUCCEEDS(target_open_index(&t));
	ck_assert_int_eq(h5_chunk_index_set(t.index, &first, &chunk), -ENOTSUP);
	ck_assert_str_eq(h5_error_last()->text, "implicit index: its chunks cannot move");
	target_release(&t);
}
END_TEST

/* The dataspace says that there are more chunks than there can be. */
START_TEST(implicit_chunks_beyond_the_maximum)
{
	static const uint64_t most[] = {2, 3}, more[][2] = {{2, 4}, {3, 3}};
	struct target t;

	target_init(&t, "fixed_array_write-implicit.h5", "a", NULL);
	t.layout.chunked.address = 800;
	set_shape(&t, 2, most);
	ck_assert_uint_eq(target_count(&t), 6);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t n = 0;

		h5_chunk_index_resize(t.index, more[i]);
		ck_assert_int_eq(h5_chunk_index_walk(t.index, target_count_chunk, &n), -EUCLEAN);
		ck_assert_str_eq(h5_error_last()->text, "implicit index: dimensions beyond their maximum");
		ck_assert_uint_eq(n, i ? 6 : 3);
	}
	target_release(&t);
}
END_TEST

/* ---- damage ---- */

/* Changes a byte of a structure of n bytes whose last four are its checksum. */
static void change_byte(struct target *t, uint64_t address, size_t n, size_t at, uint8_t value, bool seals)
{
	uint8_t bytes[1 << 10];

	ck_assert_uint_le(n, sizeof bytes);
	SUCCEEDS(h5_file_read(t->file, address, bytes, n));
	bytes[at] = value;
	if (seals)
		h5_uint_to(bytes + n - 4, h5_lookup3(bytes, n - 4, 0), 4);
	SUCCEEDS(h5_tx_patch(t->file, address, bytes, n, H5_STAGE_INDEX));
}

/* The header of an array says what chunks it is for. */
START_TEST(arrays_for_other_chunks)
{
	static const struct {
		uint8_t client;
		int rc;
		const char *text;
	} cases[] = {{0, 0, ""},
		     {1, -EUCLEAN, "it is for filtered chunks"},
		     {2, -EUCLEAN, "it is for unfiltered structured chunks"},
		     {3, -EUCLEAN, "it is for filtered structured chunks"},
		     {4, -ENOTSUP, "client 4 is not supported"},
		     {255, -ENOTSUP, "client 255 is not supported"}};
	static const struct {
		const char *file;
		size_t header;
	} arrays[] = {{"chunk_index_write-plain.h5", 72}, {"fixed_array_write-block.h5", 28}};

	for (size_t a = 0; a < 2; a++) {
		struct target t;

		target_init(&t, arrays[a].file, "a", NULL);
		target_set_range(&t, 0, 3);
		SUCCEEDS(target_commit(&t));
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			change_byte(&t, t.layout.chunked.address, arrays[a].header, 5, cases[i].client, true);
			ck_assert_int_eq(target_open_index(&t), cases[i].rc);
			ck_assert_msg(!cases[i].rc || strstr(h5_error_last()->text, cases[i].text), "%s",
				      h5_error_last()->text);
		}
		target_release(&t);
	}
}
END_TEST

/* A damaged index block is not used. */
START_TEST(an_index_block_that_is_damaged)
{
	const uint64_t zeros[H5_RANK_MAX] = {0};
	struct h5_chunk chunk;
	struct target t;
	uint64_t block;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	target_set_range(&t, 0, 3);
	SUCCEEDS(target_commit(&t));
	SUCCEEDS(h5_file_read(t.file, t.layout.chunked.address + 12 + 6 * 8, &block, 8));
	change_byte(&t, block, 6 + 8 + 4 * 8 + 31 * 8 + 4, 20, 0x5a, false);
	SUCCEEDS(target_open_index(&t));
	ck_assert_int_eq(h5_chunk_index_lookup(t.index, NULL, zeros, &chunk), -EUCLEAN);
	target_release(&t);
}
END_TEST

/* A key of a damaged B-tree is inside a chunk: a search goes on with the next chunk, and comes to an end. */
START_TEST(a_key_inside_a_chunk)
{
	enum { ENTRIES = 24, ENTRY = 8 + 3 * 8 + 8, BEFORE_COORDINATES = 8 };
	const uint64_t chunks[][H5_RANK_MAX] = {{3, 0}, {5, 0}}, at[H5_RANK_MAX] = {3, 1};
	const uint8_t wrong[16] = {3, 0, 0, 0, 0, 0, 0, 0, 3};
	struct h5_chunk_cursor cursor = {0};
	uint64_t next[H5_RANK_MAX];
	struct target t;
	bool stored;

	target_init(&t, "btree1_write-2.h5", "2", NULL);
	ck_assert_uint_eq(t.layout.chunked.dims[1], 2);
	for (unsigned i = 0; i < 2; i++)
		SUCCEEDS(h5_chunk_index_set(t.index, chunks[i],
					    &(struct h5_chunk){.address = 800, .size = 8}));
	SUCCEEDS(target_commit(&t));
	SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, at, &stored, next));
	ck_assert(!stored && next[0] == 5 && next[1] == 0);
	h5_chunk_cursor_release(t.index, &cursor);
	SUCCEEDS(h5_tx_patch(t.file, t.layout.chunked.address + ENTRIES + ENTRY + BEFORE_COORDINATES, wrong,
			     sizeof wrong, H5_STAGE_BLOCK));
	h5_tx_forget(t.file, t.layout.chunked.address);
	SUCCEEDS(target_open_index(&t));
	SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, at, &stored, next));
	ck_assert(!stored && next[0] == 3 && next[1] == 2);
	h5_chunk_cursor_release(t.index, &cursor);
	target_release(&t);
}
END_TEST

/* ---- trims ---- */

/* Chunks of several pages of a fixed array go from the middle of one of them on; each is visited once. */
START_TEST(trims_of_pages)
{
	static const uint64_t from[] = {2050, 2048, 1500, 1024, 1000};
	enum { FIRST = 990, LAST = 2100 };

	for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
		struct target t;

		target_init(&t, "fixed_array_write-paged.h5", "a", NULL);
		target_set_range(&t, FIRST, LAST);
		SUCCEEDS(target_commit(&t));
		ck_assert_uint_eq(target_trim(&t, from[i]), LAST - from[i]);
		ck_assert_uint_eq(target_count(&t), from[i] - FIRST);
		target_assert_stored(&t, FIRST, from[i]);
		ck_assert_uint_eq(target_value(&t, from[i]), H5_UNDEF);
		target_release(&t);
	}
}
END_TEST

/* A trim does not read the blocks before the chunks that it removes, so these may be damaged. */
START_TEST(a_trim_behind_what_is_damaged)
{
	enum {
		INDEX_BLOCK = 12 + 6 * 8,
		FIRST_DATA_BLOCK = 6 + 8 + 4 * 8,
		DATA_BLOCK = 4 + 2 + 8 + 4 + 16 * 8 + 4
	};
	const uint64_t n = 7;
	struct h5_chunk chunk;
	struct target t;
	uint64_t block;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	target_append(&t, 100, 100);
	SUCCEEDS(h5_file_read(t.file, t.layout.chunked.address + INDEX_BLOCK, &block, 8));
	SUCCEEDS(h5_file_read(t.file, block + FIRST_DATA_BLOCK, &block, 8));
	change_byte(&t, block, DATA_BLOCK, 20, 0x5a, false);
	SUCCEEDS(target_commit(&t));
	target_close(&t);
	target_open(&t);
	ck_assert_int_eq(h5_chunk_index_lookup(t.index, NULL, &n, &chunk), -EUCLEAN);
	ck_assert_uint_eq(target_trim(&t, 50), 50);
	target_assert_stored(&t, 20, 50);
	ck_assert_uint_eq(target_value(&t, 50), H5_UNDEF);
	target_release(&t);
}
END_TEST

UNIT_MAIN_LOOPS("chunk_index_parts", {pages_that_come_together, 1}, {visits_of_blocks_that_fail, 1},
		{what_a_kill_has_left, 1}, {gaps_along_a_row, 1},
		{no_search_passes_a_chunk, sizeof searches / sizeof *searches},
		{no_row_has_a_chunk_any_more, 1}, {an_array_without_an_index_block, 1},
		{searches_beyond_the_maximum, 1}, {chunks_that_are_far_apart, 1},
		{widths_of_structured_chunks, 1}, {an_empty_cursor, 1}, {cursors_that_move, 1},
		{lookups_without_a_cursor, 1}, {elements_tell_all_of_a_chunk, 1},
		{implicit_chunks_stay_where_they_are, 1}, {implicit_chunks_beyond_the_maximum, 1},
		{arrays_for_other_chunks, 1}, {an_index_block_that_is_damaged, 1}, {trims_of_pages, 1},
		{a_trim_behind_what_is_damaged, 1}, {a_key_inside_a_chunk, 1})

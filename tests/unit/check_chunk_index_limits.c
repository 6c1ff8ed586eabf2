/* Chunk indexes at their limits: numbers that overflow, blocks that are too large, structures that damaged
 * files or other writers leave. */
#include "base/error.h"
#include "base/lookup3.h"
#include "change/watch.h"
#include "index_target.h"

#include <string.h>

/* Without an address there is no chunk and no block. */
START_TEST(an_index_that_is_not_there_has_no_extents)
{
	static const char *const names[] = {"chunk_index_write-plain.h5", "fixed_array_write-block.h5",
					    "fixed_array_write-single.h5"};
	const struct h5_extent_visits visits = {NULL, NULL, NULL};
	struct target t;

	target_init(&t, names[_i], "a", NULL);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	SUCCEEDS(h5_chunk_index_extents(t.index, &visits));
	ck_assert_uint_eq(target_trim(&t, 0), 0);
	target_release(&t);
}
END_TEST

/* A chunk that has its place already. */
START_TEST(what_is_as_it_was_is_not_written)
{
	static const char *const names[] = {"fixed_array_write-block.h5", "fixed_array_write-paged.h5"};
	const uint64_t n = 7;
	struct h5_chunk chunk;
	struct target t;

	target_init(&t, names[_i], "a", NULL);
	target_append(&t, 20, 20);
	SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, &n, &chunk));
	ck_assert(!h5_tx_is_pending(t.file));
	SUCCEEDS(h5_chunk_index_set(t.index, &n, &chunk));
	ck_assert(!h5_tx_is_pending(t.file));
	target_assert_stored(&t, 0, 20);
	chunk.address++;
	SUCCEEDS(h5_chunk_index_set(t.index, &n, &chunk));
	ck_assert(h5_tx_is_pending(t.file));
	ck_assert_uint_eq(target_value(&t, n), (n + 1) * 7 + 3);
	target_release(&t);
}
END_TEST

/* All that filters change of a chunk: its size and the mask. */
START_TEST(what_filters_change_is_written)
{
	static const struct {
		const char *file, *name;
	} cases[] = {{"fixed_array_write-filtered.h5", "a"},
		     {"chunk_index_write-filtered.h5", "a"},
		     {"btree2_write-empty.h5", "filtered"},
		     {"btree1_write-2.h5", "1f"}};
	const uint64_t at[H5_RANK_MAX] = {0};
	struct h5_chunk chunk = {.address = 2800, .size = 1, .filter_mask = 0}, found;
	struct target t;

	target_init(&t, cases[_i].file, cases[_i].name, NULL);
	for (unsigned i = 0; i < 3; i++) {
		chunk.size += i == 1;
		chunk.filter_mask += i == 2;
		SUCCEEDS(h5_chunk_index_set(t.index, at, &chunk));
		SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, at, &found));
		ck_assert_uint_eq(found.address, chunk.address);
		ck_assert_uint_eq(found.size, chunk.size);
		ck_assert_uint_eq(found.filter_mask, chunk.filter_mask);
	}
	target_release(&t);
}
END_TEST

/* ---- coordinates ---- */

/* Chunks at coordinates that no dataset has: none is found, none can be, none is removed. */
START_TEST(coordinates_that_overflow)
{
	static const struct {
		const char *file, *name;
		uint64_t at[H5_RANK_MAX];
		int rc;
	} cases[] = {{"btree1_write-2.h5", "2", {0, UINT64_MAX}, -EFBIG},
		     {"chunk_index_write-second.h5", "a", {5, 0}, -EFBIG},
		     {"chunk_index_write-second.h5", "a", {0, UINT64_MAX / 2}, -EFBIG}};
	const struct h5_chunk new = {.address = 2800, .size = 1};
	const uint64_t first[H5_RANK_MAX] = {0};
	uint64_t next[H5_RANK_MAX];
	struct h5_chunk chunk;
	struct h5_chunk_cursor cursor = {0};
	struct target t;
	bool stored;

	target_init(&t, cases[_i].file, cases[_i].name, NULL);
	ck_assert_int_eq(h5_chunk_index_set(t.index, cases[_i].at, &new), cases[_i].rc);
	SUCCEEDS(h5_chunk_index_set(t.index, first, &new));
	ck_assert_int_eq(h5_chunk_index_set(t.index, cases[_i].at, &new), cases[_i].rc);
	SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, cases[_i].at, &chunk));
	ck_assert_uint_eq(chunk.address, H5_UNDEF);
	SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, cases[_i].at, &stored, next));
	ck_assert(!stored);
	h5_chunk_cursor_release(t.index, &cursor);
	ck_assert_uint_eq(target_trim(&t, UINT64_MAX), 0);
	ck_assert_uint_eq(target_count(&t), 1);
	target_release(&t);
}
END_TEST

/* ---- sizes ---- */

/* Blocks that are too large are not made. */
static const struct large {
	const char *file, *refusal;
	struct h5_chunk_layout layout;
	uint64_t most, at;
} large[] = {{"chunk_index_write-plain.h5",
	      "extensible array: a block of ",
	      {.index = H5_INDEX_EXTENSIBLE_ARRAY,
	       .extensible_array = {.max_bits = 60,
				    .index_elements = 4,
				    .min_elements = 16,
				    .min_pointers = 4,
				    .page_bits = 60}},
	      H5_UNLIMITED,
	      UINT64_C(1) << 59},
	     {"fixed_array_write-block.h5",
	      "fixed array: a block of ",
	      {.index = H5_INDEX_FIXED_ARRAY, .fixed_array = {.page_bits = 40}},
	      UINT64_C(1) << 30,
	      5}};

START_TEST(blocks_that_are_too_large)
{
	const struct large *l = &large[_i];
	const struct h5_chunk chunk = {.address = 2800, .size = 1};
	struct target t;
	uint64_t end;

	target_init(&t, l->file, "a", NULL);
	end = h5_file_end(t.file);
	t.layout.chunked = l->layout;
	t.layout.chunked.rank = 1;
	t.layout.chunked.dims[0] = 1;
	t.layout.chunked.element_size = 1;
	t.layout.chunked.address = H5_UNDEF;
	t.space.max[0] = l->most;
	SUCCEEDS(target_open_index(&t));
	ck_assert_int_eq(h5_chunk_index_set(t.index, &l->at, &chunk), -ENOTSUP);
	ck_assert(!strncmp(h5_error_last()->text, l->refusal, strlen(l->refusal)));
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	ck_assert_uint_eq(h5_file_end(t.file), end);
	target_release(&t);
}
END_TEST

UNIT_MAIN_LOOPS("chunk_index_limits", {an_index_that_is_not_there_has_no_extents, 3},
		{what_is_as_it_was_is_not_written, 2}, {what_filters_change_is_written, 4},
		{coordinates_that_overflow, 3}, {blocks_that_are_too_large, 2})

/* Chunk indexes at their limits: numbers that overflow, blocks that are too large, structures that damaged
 * files or other writers leave. */
#include "base/checked.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "change/watch.h"
#include "chunk_index/private.h"
#include "index_target.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* The specification has no structured chunks under an implicit index. */
START_TEST(structured_chunks_that_cannot_change)
{
	struct target t;

	target_init(&t, "fixed_array_write-implicit.h5", "a", NULL);
	SUCCEEDS(h5_chunk_index_can_change(t.index));
	t.layout.chunked.structured.offset_size = 8;
	SUCCEEDS(target_open_index(&t));
	ck_assert_int_eq(h5_chunk_index_can_change(t.index), -ENOTSUP);
	ck_assert_str_eq(h5_error_last()->text,
			 "chunk index: writing through an index of this kind is not supported");
	target_release(&t);
	target_init(&t, "fixed_array_write-block.h5", "a", NULL);
	t.layout.chunked.structured.offset_size = 8;
	SUCCEEDS(target_open_index(&t));
	SUCCEEDS(h5_chunk_index_can_change(t.index));
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

/* Chunks at coordinates that no dataset has: none is found, none can be, none is removed. `rows` in a chunk,
 * if not what the dataset says: then the first element of the chunk has number 0, in 64 bits. */
START_TEST(coordinates_that_overflow)
{
	static const struct {
		const char *file, *name;
		uint64_t at[H5_RANK_MAX], rows;
		bool is_inside; /* of the maximum dimensions: a search goes on behind it */
	} cases[] = {{"btree1_write-2.h5", "2", {0, UINT64_MAX}, 0, false},
		     {"btree1_write-2.h5", "2", {UINT64_C(1) << 62, 0}, 4, false},
		     {"chunk_index_write-second.h5", "a", {5, 0}, 0, false},
		     {"chunk_index_write-second.h5", "a", {0, UINT64_MAX / 2}, 0, true}};
	const struct h5_chunk new = {.address = 2800, .size = 1};
	const uint64_t first[H5_RANK_MAX] = {0};
	uint64_t next[H5_RANK_MAX];
	struct h5_chunk chunk;
	struct h5_chunk_cursor cursor = {0};
	struct target t;
	bool stored;

	target_init(&t, cases[_i].file, cases[_i].name, NULL);
	if (cases[_i].rows)
		t.layout.chunked.dims[0] = cases[_i].rows;
	SUCCEEDS(target_open_index(&t));
	ck_assert_int_eq(h5_chunk_index_set(t.index, cases[_i].at, &new), -EFBIG);
	SUCCEEDS(h5_chunk_index_set(t.index, first, &new));
	ck_assert_int_eq(h5_chunk_index_set(t.index, cases[_i].at, &new), -EFBIG);
	SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, cases[_i].at, &chunk));
	ck_assert_uint_eq(chunk.address, H5_UNDEF);
	SUCCEEDS(h5_chunk_index_gap(t.index, &cursor, cases[_i].at, &stored, next));
	ck_assert(!stored);
	if (cases[_i].is_inside) {
		ck_assert_uint_eq(next[0], cases[_i].at[0]);
		ck_assert_uint_eq(next[1], cases[_i].at[1] + 1);
	}
	h5_chunk_cursor_release(t.index, &cursor);
	ck_assert_uint_eq(target_trim(&t, UINT64_C(1) << 62), 0);
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

/* A dataset of the rank and maximum dimensions, with chunks of one byte, and without chunks. */
static int open_shape(struct target *t, enum h5_index_type type, unsigned rank, const uint64_t *most)
{
	t->layout.chunked.index = type;
	t->layout.chunked.rank = rank;
	t->space.rank = rank;
	for (unsigned i = 0; i < rank; i++) {
		t->layout.chunked.dims[i] = 1;
		t->space.dims[i] = 0;
		t->space.max[i] = most[i];
	}
	return target_open_index(t);
}

START_TEST(rows_beyond_all_numbers)
{
	static const struct {
		const char *file;
		enum h5_index_type type;
		uint64_t most[2];
	} cases[] = {{"chunk_index_write-plain.h5", H5_INDEX_EXTENSIBLE_ARRAY, {H5_UNLIMITED, 5}},
		     {"fixed_array_write-block.h5", H5_INDEX_FIXED_ARRAY, {4, 5}}};
	const struct h5_chunk chunk = {.address = 2800, .size = 1};
	const uint64_t at[H5_RANK_MAX] = {1, 0};
	struct target t;

	target_init(&t, cases[_i].file, "a", NULL);
	SUCCEEDS(open_shape(&t, cases[_i].type, 2, cases[_i].most));
	SUCCEEDS(h5_chunk_index_set(t.index, at, &chunk));
	/* Five times that is 4, in 64 bits. */
	ck_assert_uint_eq(target_trim(&t, UINT64_MAX / 5 * 4 + 4), 0);
	ck_assert_uint_eq(target_count(&t), 1);
	ck_assert_uint_eq(target_trim(&t, 1), 1);
	target_release(&t);
}
END_TEST

/* Nothing has a number in a dataset without a row, so nothing is removed. */
START_TEST(a_dataset_that_can_have_no_rows)
{
	struct target t;

	target_init(&t, "chunk_index_write-second.h5", "a", NULL);
	target_append(&t, 10, 10);
	t.space.max[0] = 0;
	SUCCEEDS(target_open_index(&t));
	ck_assert_uint_eq(target_trim(&t, 0), 0);
	t.space.max[0] = 5;
	SUCCEEDS(target_open_index(&t));
	target_assert_stored(&t, 0, 10);
	target_release(&t);
}
END_TEST

START_TEST(more_chunks_than_numbers)
{
	static const struct {
		const char *file;
		enum h5_index_type type;
	} cases[] = {{"fixed_array_write-implicit.h5", H5_INDEX_IMPLICIT},
		     {"fixed_array_write-block.h5", H5_INDEX_FIXED_ARRAY},
		     {"chunk_index_write-plain.h5", H5_INDEX_EXTENSIBLE_ARRAY}};
	const uint64_t many[] = {UINT64_C(1) << 32, UINT64_C(1) << 32, H5_UNLIMITED};
	struct target t;

	target_init(&t, cases[_i].file, "a", NULL);
	target_append(&t, _i ? 1 : 0, 1);
	ck_assert_int_eq(open_shape(&t, cases[_i].type, 2 + (_i == 2), many), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "chunk index: too many chunks to number");
	target_release(&t);
}
END_TEST

/* Of datasets whose messages do not fit together. `set`: the index opens, and refuses the first chunk. */
static const struct strange_index {
	const char *refusal;
	int rc;
	bool set, filtered;
	uint64_t chunk_size;
	struct h5_chunk_layout layout;
	unsigned rank;
	uint64_t most; /* dimensions of the dataset */
} strange_indexes[] = {
	{"chunk index: type 6", -EUCLEAN, .chunk_size = 40,
	 .layout = {.rank = 1, .dims = {10}, .element_size = 4, .index = 6}, .rank = 1},
	{"chunk index: chunks of rank 1 in a dataset of rank 2", -EUCLEAN, .chunk_size = 40,
	 .layout = {.rank = 1, .dims = {10, 10}, .element_size = 4, .index = H5_INDEX_SINGLE}, .rank = 2},
	{"chunk index: chunks of rank 2 in a dataset of rank 1", -EUCLEAN, .chunk_size = 400,
	 .layout = {.rank = 2, .dims = {10, 10}, .element_size = 4, .index = H5_INDEX_SINGLE}, .rank = 1},
	{"chunk index: chunks of rank 0 in a dataset of rank 0", -EUCLEAN, .chunk_size = 4,
	 .layout = {.rank = 0, .dims = {0}, .element_size = 4, .index = H5_INDEX_SINGLE}},
	{"chunk index: chunks of no bytes", -EUCLEAN,
	 .layout = {.rank = 1, .dims = {10}, .element_size = 4, .index = H5_INDEX_FIXED_ARRAY}, .rank = 1},
	{"chunk index: chunk dimension 1 is 0", -EUCLEAN, .chunk_size = 40,
	 .layout = {.rank = 2, .dims = {10, 0}, .element_size = 4, .index = H5_INDEX_FIXED_ARRAY}, .rank = 2},
	{"chunk index: chunk dimension 0 is 0", -EUCLEAN, .chunk_size = 40,
	 .layout = {.rank = 2, .dims = {0, 10}, .element_size = 4, .index = H5_INDEX_FIXED_ARRAY}, .rank = 2},
	{"single chunk index: it is for unfiltered chunks", -ENOTSUP, .set = true, .filtered = true,
	 .chunk_size = 40, .layout = {.rank = 1, .dims = {10}, .element_size = 4, .index = H5_INDEX_SINGLE},
	 .rank = 1},
	{"single chunk index: it is for filtered chunks", -ENOTSUP, .set = true, .chunk_size = 40,
	 .layout = {.rank = 1,
		    .dims = {10},
		    .element_size = 4,
		    .index = H5_INDEX_SINGLE,
		    .single = {.filtered = true}},
	 .rank = 1},
	{"fixed array: chunks without limit", -EUCLEAN, .set = true, .chunk_size = 40,
	 .layout = {.rank = 1,
		    .dims = {10},
		    .element_size = 4,
		    .index = H5_INDEX_FIXED_ARRAY,
		    .fixed_array = {10}},
	 .rank = 1, .most = H5_UNLIMITED},
};

START_TEST(indexes_that_cannot_be)
{
	const struct strange_index *i = &strange_indexes[_i];
	const uint64_t zeros[H5_RANK_MAX] = {0}, most = i->most ? i->most : 10;
	const struct h5_dataspace space = {H5_SPACE_SIMPLE, i->rank, {10, 10}, {most, most}, true, 0};
	const struct h5_chunk chunk = {.address = 4096, .size = 40};
	struct h5_chunk_layout layout = i->layout;
	struct h5_chunk_index *index = NULL;
	struct target t;
	uint64_t end;
	int rc;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	layout.address = H5_UNDEF;
	end = h5_file_end(t.file);
	rc = h5_chunk_index_open(t.file, 4, &layout, &space, i->filtered, i->chunk_size, &index);
	ck_assert_int_eq(rc, i->set ? 0 : i->rc);
	if (i->set) {
		rc = h5_chunk_index_set(index, zeros, &chunk);
		ck_assert_uint_eq(h5_chunk_index_layout(index)->address, H5_UNDEF);
	}
	ck_assert_int_eq(rc, i->rc);
	ck_assert_str_eq(h5_error_last()->text, i->refusal);
	ck_assert_uint_eq(h5_file_end(t.file), end);
	h5_chunk_index_close(index);
	target_release(&t);
}
END_TEST

START_TEST(chunks_that_cannot_be)
{
	const struct h5_chunk absent = {.address = H5_UNDEF, .size = 77},
			      too_large = {.address = 8, .size = 1 << 24};
	const uint64_t zero = 0, far = 100000, beyond = UINT64_C(1) << 32;
	struct target t;

	target_init(&t, "chunk_index_write-filtered.h5", "a", NULL);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &absent), 0);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &too_large), -EOVERFLOW);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	target_set_range(&t, 0, 3);
	/* To remove a chunk that does not exist changes nothing. */
	ck_assert_int_eq(h5_chunk_index_set(t.index, &far, &absent), 0);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &far, &too_large), -EOVERFLOW);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &beyond, &absent), 0);
	ck_assert_int_eq(target_set(&t, beyond), -EFBIG);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &absent), 0);
	ck_assert_uint_eq(target_value(&t, 0), H5_UNDEF);
	ck_assert_uint_eq(target_count(&t), 2);
	target_set_range(&t, 0, 1);
	target_set_range(&t, 3, 100);
	SUCCEEDS(target_publish(&t, 100));
	target_assert_stored(&t, 0, 100);
	target_release(&t);
}
END_TEST

/* All chunks of one byte that there can be lie in the file. */
START_TEST(implicit_chunks_in_the_file)
{
	static const struct {
		int before, more; /* bytes from the address to the file's end; chunks more than these */
		bool opens;
	} cases[] = {{0, 0, true}, {0, 1, false}, {1, 0, true}, {1, 1, false}, {9, 0, true}, {9, 1, false}};
	struct target t;
	uint64_t size;

	target_init(&t, "fixed_array_write-implicit.h5", "a", NULL);
	size = h5_file_size(t.file);
	ck_assert_uint_eq(h5_file_end(t.file), size);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		t.layout.chunked.address = size - (uint64_t)cases[i].before;
		t.space.dims[0] = t.space.max[0] = (uint64_t)(cases[i].before + cases[i].more);
		ck_assert_int_eq(target_open_index(&t), cases[i].opens ? 0 : -EUCLEAN);
	}
	/* The whole file, and a byte more */
	for (unsigned i = 0; i < 2; i++) {
		t.layout.chunked.address = 0;
		t.space.dims[0] = t.space.max[0] = size + i;
		ck_assert_int_eq(target_open_index(&t), i ? -EUCLEAN : 0);
	}
	target_release(&t);
}
END_TEST

/* What the header of an extensible array counts (specification VII.D). Elements of 8 bytes: 4 in the index
 * block, then data blocks of 16, 32, 2 x 32, 2 x 64 elements; the next four, of 64, have a super block. */
START_TEST(an_array_counts_its_blocks)
{
	enum { DATA_PREFIX = 4 + 2 + 8 + 4 + 4, SUPER_BLOCK = 4 + 2 + 8 + 4 + 4 * 8 + 4 };
	static const struct {
		uint64_t chunks, super_blocks, data_blocks, elements;
	} cases[] = {{1, 0, 0, 4},
		     {4, 0, 0, 4},
		     {5, 0, 1, 4 + 16},
		     {20, 0, 1, 4 + 16},
		     {21, 0, 2, 4 + 16 + 32},
		     {100, 0, 4, 4 + 16 + 3 * 32},
		     {244, 0, 6, 4 + 16 + 3 * 32 + 2 * 64},
		     {245, 1, 7, 4 + 16 + 3 * 32 + 3 * 64},
		     {500, 1, 10, 4 + 16 + 3 * 32 + 6 * 64}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t data_bytes = cases[i].data_blocks * DATA_PREFIX + (cases[i].elements - 4) * 8;
		const uint64_t counts[] = {cases[i].super_blocks, cases[i].super_blocks * SUPER_BLOCK,
					   cases[i].data_blocks,  data_bytes,
					   cases[i].chunks,	  cases[i].elements};
		uint8_t header[12 + sizeof counts];
		struct target t;

		target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
		target_append(&t, cases[i].chunks, 3);
		SUCCEEDS(
			h5_file_read(t.file, h5_chunk_index_layout(t.index)->address, header, sizeof header));
		for (unsigned n = 0; n < sizeof counts / sizeof *counts; n++)
			ck_assert_msg(h5_uint_from(header + 12 + 8 * n, 8) == counts[n],
				      "%zu: count %u: %ju, not %ju", i, n,
				      (uintmax_t)h5_uint_from(header + 12 + 8 * n, 8), (uintmax_t)counts[n]);
		target_release(&t);
	}
}
END_TEST

/* ---- arrays whose blocks are not theirs, or not there ---- */

/* Puts the header of the index into new space, with a field of eight bytes changed; its address. */
static uint64_t copy_header(const struct target *t, size_t size, size_t field, uint64_t value)
{
	uint8_t bytes[128];
	uint64_t at;

	SUCCEEDS(h5_file_read(t->file, h5_chunk_index_layout(t->index)->address, bytes, size));
	if (field)
		memcpy(bytes + field, &value, sizeof value);
	h5_uint_to(bytes + size - 4, h5_lookup3(bytes, size - 4, 0), 4);
	SUCCEEDS(h5_tx_allocate(t->file, H5_ALLOCATE_METADATA, size, &at));
	SUCCEEDS(h5_tx_put(t->file, at, bytes, size));
	return at;
}

/* Two headers lead to the same blocks. They belong to the first, whoever has read them. */
START_TEST(blocks_of_another_header)
{
	enum { HEADER = 72 };
	const uint64_t n = 50;
	uint64_t own, copy;
	struct h5_chunk chunk;
	struct target t;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	target_append(&t, 100, 100);
	own = h5_chunk_index_layout(t.index)->address;
	copy = copy_header(&t, HEADER, 0, 0);
	target_assert_stored(&t, 0, 100);
	for (unsigned i = 0; i < 2; i++) {
		t.layout.chunked.address = copy;
		SUCCEEDS(target_open_index(&t));
		ck_assert_int_eq(h5_chunk_index_lookup(t.index, NULL, &n, &chunk), -EUCLEAN);
		ck_assert_str_eq(h5_error_last()->text,
				 "extensible array index block: it belongs to another header");
		t.layout.chunked.address = own;
		SUCCEEDS(target_open_index(&t));
		target_assert_stored(&t, 0, 100);
	}
	target_release(&t);
}
END_TEST

enum { FIXED_HEADER = 28, FIXED_DATA_BLOCK = 16 };

/* Other programs make the data block with the first chunk, too; what they leave without one has no chunk. */
START_TEST(a_fixed_array_without_data_block)
{
	static const char *const names[] = {"fixed_array_write-block.h5", "fixed_array_write-paged.h5"};
	struct target t;

	target_init(&t, names[_i], "a", NULL);
	target_append(&t, 10, 10);
	t.layout.chunked.address = copy_header(&t, FIXED_HEADER, FIXED_DATA_BLOCK, H5_UNDEF);
	SUCCEEDS(target_open_index(&t));
	ck_assert_uint_eq(target_check_empty(&t), t.space.max[0]);
	target_release(&t);
}
END_TEST

/* Its last page would lie at an address that takes more than 64 bits. */
START_TEST(a_fixed_array_beyond_all_addresses)
{
	static const char *const names[] = {"fixed_array_write-block.h5", "fixed_array_write-paged.h5"};
	struct target t;

	target_init(&t, names[_i], "a", NULL);
	target_append(&t, 10, 10);
	t.layout.chunked.address = copy_header(&t, FIXED_HEADER, FIXED_DATA_BLOCK, UINT64_MAX - 400);
	ck_assert_int_eq(target_open_index(&t), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text,
			 "fixed array header: the data block reaches beyond 2^64 bytes");
	target_release(&t);
}
END_TEST

/* ---- the version 1 B-tree ---- */

enum { NODES_MAX = 64, KEYS = 24, KEY_STEP = 32 }; /* of chunks of rank 1 */

struct nodes {
	struct h5_file *file;
	uint64_t addresses[NODES_MAX];
	uint8_t bytes[NODES_MAX][256];
	unsigned count;
};

static int add_node(void *arg, uint64_t address, uint64_t n)
{
	struct nodes *nodes = arg;

	ck_assert_uint_lt(nodes->count, NODES_MAX);
	nodes->addresses[nodes->count] = address;
	SUCCEEDS(h5_file_read(nodes->file, address, nodes->bytes[nodes->count++],
			      n < sizeof *nodes->bytes ? (size_t)n : sizeof *nodes->bytes));
	return 0;
}

static int pass_chunk(void *arg, uint64_t address, uint64_t n)
{
	(void)arg;
	(void)address;
	(void)n;
	return 0;
}

static void read_nodes(const struct target *t, struct nodes *nodes)
{
	const struct h5_extent_visits visits = {pass_chunk, add_node, nodes};

	*nodes = (struct nodes){.file = t->file};
	SUCCEEDS(h5_chunk_index_extents(t->index, &visits));
}

static unsigned level_of(const uint8_t *node)
{
	return node[5];
}

static unsigned count_of(const uint8_t *node)
{
	return (unsigned)h5_uint_from(node + 6, 2);
}

static uint64_t key_of(const uint8_t *node, unsigned i)
{
	return h5_uint_from(node + KEYS + i * KEY_STEP + 8, 8);
}

static uint64_t child_of(const uint8_t *node, unsigned i)
{
	return h5_uint_from(node + KEYS + i * KEY_STEP + 24, 8);
}

/* In the file, which is closed. */
static void poke(const struct target *t, uint64_t address, uint64_t value, unsigned n)
{
	int fd = open(t->scratch.path, O_RDWR | O_CLOEXEC);
	uint8_t bytes[8];

	h5_uint_to(bytes, value, n);
	ck_assert_int_eq(pwrite(fd, bytes, n, (off_t)address), n);
	close(fd);
}

static void set_key(const struct target *t, uint64_t node, unsigned i, uint64_t value)
{
	poke(t, node + KEYS + i * KEY_STEP + 8, value, 8);
}

enum { CHUNKS = 40, APART = 4, SOUND = 200 };

/* Chunks 0, 4, 8, ... in a file that is closed, in leaves of which each has two or more. `sound`: the name of
 * a copy, which the caller removes. */
static void begin_tree(struct target *t, struct nodes *nodes, char sound[SOUND])
{
	target_init(t, "btree1_write-2.h5", "1", NULL);
	for (uint64_t n = 0; n < CHUNKS; n++) {
		const struct h5_chunk chunk = {.address = 2800 + n, .size = 4};
		const uint64_t at = n * APART;

		SUCCEEDS(h5_chunk_index_set(t->index, &at, &chunk));
	}
	SUCCEEDS(target_commit(t));
	read_nodes(t, nodes);
	target_close(t);
	snprintf(sound, SOUND, "%s.sound", t->scratch.path);
	scratch_copy(t->scratch.path, sound);
}

/* All up to before `end` are there, and `also`, and no others. */
static void check_tree(const struct target *t, uint64_t end, uint64_t also)
{
	for (uint64_t at = 0; at < APART * CHUNKS; at++) {
		struct h5_chunk chunk;

		SUCCEEDS(h5_chunk_index_lookup(t->index, NULL, &at, &chunk));
		ck_assert_int_eq(chunk.address != H5_UNDEF, at == also || (at < end && at % APART == 0));
	}
	ck_assert_uint_eq(target_count(t), (end + APART - 1) / APART + (also != H5_UNDEF));
}

/* A leaf, and what is above it, says that its chunks end before those of the next leaf begin. A chunk between
 * them comes into it, and it ends where the next one begins: libhdf5 would not find that chunk, else. */
START_TEST(a_chunk_between_two_leaves)
{
	static struct nodes nodes, after;
	char sound[SOUND];
	struct target t;
	unsigned tried = 0;

	begin_tree(&t, &nodes, sound);
	for (unsigned i = 0; i < nodes.count; i++) {
		const struct h5_chunk chunk = {.address = 2700, .size = 4};
		const uint8_t *leaf = nodes.bytes[i];
		const unsigned n = count_of(leaf);
		const uint64_t end = key_of(leaf, n), at = end - 2;
		unsigned seen = 0;

		/* The tree is walked in the order of chunks. */
		if (level_of(leaf) || i + 1 == nodes.count)
			continue;
		scratch_copy(sound, t.scratch.path);
		for (unsigned k = 0; k < nodes.count; k++) {
			unsigned last = count_of(nodes.bytes[k]);

			if (key_of(nodes.bytes[k], last) == end)
				set_key(&t, nodes.addresses[k], last, end - 3);
		}
		target_open(&t);
		SUCCEEDS(h5_chunk_index_set(t.index, &at, &chunk));
		SUCCEEDS(target_commit(&t));
		check_tree(&t, APART * CHUNKS, at);
		read_nodes(&t, &after);
		for (unsigned k = 0; k < after.count; k++) {
			const uint8_t *node = after.bytes[k];

			/* Neither what it was, nor one after the new chunk. */
			ck_assert_uint_ne(key_of(node, count_of(node)), end - 3);
			ck_assert_uint_ne(key_of(node, count_of(node)), at + 1);
			if (level_of(node) || key_of(node, count_of(node) - 1) != at)
				continue;
			ck_assert_uint_eq(key_of(node, count_of(node)), end);
			seen++;
		}
		ck_assert_uint_eq(seen, 1);
		target_close(&t);
		tried++;
	}
	ck_assert_uint_gt(tried, 8);
	unlink(sound);
	target_release(&t);
}
END_TEST

/* A node above says that the chunks of a leaf begin earlier than they do: the tree is cut between. */
START_TEST(a_leaf_that_begins_late)
{
	static struct nodes nodes;
	char sound[SOUND];
	struct target t;
	unsigned tried = 0;

	begin_tree(&t, &nodes, sound);
	for (unsigned i = 0; i < nodes.count; i++) {
		const uint8_t *node = nodes.bytes[i];

		for (unsigned k = 1; level_of(node) && k < count_of(node); k++) {
			const uint64_t begin = key_of(node, k);
			uint64_t child = child_of(node, k);
			struct h5_tx_watch watch = {0};

			scratch_copy(sound, t.scratch.path);
			set_key(&t, nodes.addresses[i], k, begin - 3);
			target_open(&t);
			h5_tx_watch(t.file, &watch, &child);
			ck_assert_uint_eq(target_trim(&t, begin - 1), CHUNKS - begin / APART);
			ck_assert_uint_eq(child, H5_UNDEF); /* its space was given up */
			h5_tx_unwatch(t.file, &watch);
			check_tree(&t, begin, H5_UNDEF);
			SUCCEEDS(target_commit(&t));
			target_close(&t);
			target_open(&t);
			check_tree(&t, begin, H5_UNDEF);
			target_close(&t);
			tried++;
		}
	}
	ck_assert_uint_gt(tried, 8);
	unlink(sound);
	target_release(&t);
}
END_TEST

/* A trim cannot read one of the leaves that it removes: the space of its chunks is lost, and no other chunk
 * is. */
START_TEST(a_damaged_leaf_is_cut_off)
{
	static struct nodes nodes;
	char sound[SOUND];
	struct target t;
	unsigned lost = 0;

	begin_tree(&t, &nodes, sound);
	for (unsigned i = 0; i < nodes.count; i++) {
		uint64_t n = 0, first = APART * 2;

		if (level_of(nodes.bytes[i]) || key_of(nodes.bytes[i], 0) <= first)
			continue;
		scratch_copy(sound, t.scratch.path);
		poke(&t, nodes.addresses[i], 0, 4);
		target_open(&t);
		n = target_trim(&t, first);
		ck_assert_uint_lt(n, CHUNKS - 2);
		lost++;
		check_tree(&t, first, H5_UNDEF);
		SUCCEEDS(target_commit(&t));
		target_close(&t);
		target_open(&t);
		check_tree(&t, first, H5_UNDEF);
		target_close(&t);
	}
	ck_assert_uint_gt(lost, 8);
	unlink(sound);
	target_release(&t);
}
END_TEST

/* A trim cannot read a node in which it would cut: nothing is removed. */
START_TEST(a_damaged_node_is_not_cut)
{
	static struct nodes nodes;
	char sound[SOUND];
	struct target t;
	unsigned tried = 0;

	begin_tree(&t, &nodes, sound);
	for (unsigned i = 0; i < nodes.count; i++) {
		const uint8_t *node = nodes.bytes[i];
		uint64_t n = 0;

		ck_assert_uint_gt(count_of(node), 1);
		scratch_copy(sound, t.scratch.path);
		poke(&t, nodes.addresses[i], 0, 4);
		target_open(&t);
		ck_assert_int_eq(h5_chunk_index_trim(t.index, key_of(node, count_of(node) - 1),
						     target_count_chunk, &n),
				 -EUCLEAN);
		ck_assert_uint_eq(n, 0);
		ck_assert(!h5_tx_is_pending(t.file));
		target_close(&t);
		tried += nodes.addresses[i] != t.layout.chunked.address;
	}
	ck_assert_uint_gt(tried, 8);
	unlink(sound);
	target_release(&t);
}
END_TEST

/* Another program has removed the last chunk since it was looked up. */
START_TEST(a_chunk_that_has_gone)
{
	const struct h5_chunk none = {.address = H5_UNDEF};
	const uint64_t gone = 702, there = 3;
	struct h5_chunk chunk;
	struct target t;

	target_init(&t, "btree1_write-2.h5", "1b", NULL);
	h5_unit_begin(t.file);
	SUCCEEDS(h5_unit_end(t.file, t.index->ops->set(t.index, &gone, &none)));
	ck_assert(!h5_tx_is_pending(t.file));
	SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, &there, &chunk));
	ck_assert_uint_ne(chunk.address, H5_UNDEF);
	target_release(&t);
}
END_TEST

UNIT_MAIN_LOOPS("chunk_index_limits", {an_index_that_is_not_there_has_no_extents, 3},
		{structured_chunks_that_cannot_change, 1}, {what_is_as_it_was_is_not_written, 2},
		{what_filters_change_is_written, 4}, {coordinates_that_overflow, 4},
		{blocks_that_are_too_large, 2}, {rows_beyond_all_numbers, 2},
		{a_dataset_that_can_have_no_rows, 1},
		{indexes_that_cannot_be, sizeof strange_indexes / sizeof *strange_indexes},
		{chunks_that_cannot_be, 1}, {an_array_counts_its_blocks, 1}, {implicit_chunks_in_the_file, 1},
		{more_chunks_than_numbers, 3}, {blocks_of_another_header, 1},
		{a_fixed_array_without_data_block, 2}, {a_fixed_array_beyond_all_addresses, 2},
		{a_chunk_between_two_leaves, 1}, {a_leaf_that_begins_late, 1}, {a_damaged_leaf_is_cut_off, 1},
		{a_damaged_node_is_not_cut, 1}, {a_chunk_that_has_gone, 1})

/* What a kill leaves of a chunk index between the cells of a commit: each chunk is where it was, or where it
 * will be; and where it will be as soon as the dataset has its new rows. */
#include "crash_image.h"
#include "index_target.h"
#include "store/file_open.h"

#include <stdlib.h>

enum { CHUNKS = 20000 };

/* Chunk n has the coordinates n, 0, ... */
struct scene {
	struct target t;
	struct fault_io record;
	struct crash_image image;
	uint64_t was[CHUNKS], is[CHUNKS]; /* addresses; H5_UNDEF: none */
	uint64_t limit;			  /* chunks below are looked at */
	uint64_t rows;			  /* of the last commit */
	unsigned states;
};

static struct scene *begin(const char *fixture, const char *name)
{
	struct scene *s = calloc(1, sizeof *s);

	ck_assert_ptr_nonnull(s);
	target_init(&s->t, fixture, name, &s->record);
	for (unsigned i = 0; i < CHUNKS; i++)
		s->was[i] = s->is[i] = H5_UNDEF;
	for (unsigned i = 1; i < s->t.space.rank; i++)
		s->t.space.dims[i] = 1;
	s->t.space.dims[0] = 0;
	SUCCEEDS(target_commit(&s->t));
	crash_image_load(&s->image, s->t.scratch.path);
	return s;
}

static void end(struct scene *s)
{
	target_release(&s->t);
	fault_io_release(&s->record);
	free(s->image.data);
	free(s);
}

static void set(struct scene *s, uint64_t n)
{
	struct h5_chunk chunk = {.size = 1, .filter_mask = s->t.filter_mask};
	const uint64_t scaled[H5_RANK_MAX] = {n};

	ck_assert_uint_lt(n, CHUNKS);
	SUCCEEDS(h5_tx_allocate(s->t.file, H5_ALLOCATE_RAW, 8, &chunk.address));
	SUCCEEDS(h5_chunk_index_set(s->t.index, scaled, &chunk));
	s->is[n] = chunk.address;
	s->limit = n < s->limit ? s->limit : n + 1;
}

static void check_chunks(const struct scene *s, const struct target *t)
{
	const bool grown = t->space.dims[0] != s->rows;

	ck_assert(!grown || t->space.dims[0] == s->t.space.dims[0]);
	for (uint64_t n = 0; n < s->limit; n++) {
		const uint64_t scaled[H5_RANK_MAX] = {n};
		struct h5_chunk chunk;

		SUCCEEDS(h5_chunk_index_lookup(t->index, NULL, scaled, &chunk));
		if (chunk.address != s->is[n] && (grown || chunk.address != s->was[n]))
			ck_abort_msg("chunk %ju is at %#jx", (uintmax_t)n, (uintmax_t)chunk.address);
	}
}

/* What another program would see now. */
static void check_state(const struct scene *s)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	struct target seen = {.header = s->t.header};
	struct h5_file_set *set;

	SUCCEEDS(h5_file_set_open_memory(s->image.data, s->image.size, &options, &set));
	seen.file = h5_file_set_root(set);
	SUCCEEDS(target_load(&seen));
	check_chunks(s, &seen);
	h5_chunk_index_close(seen.index);
	h5_file_set_close(set);
}

/* The dataset has so many rows now. */
static void publish(struct scene *s, uint64_t rows)
{
	s->t.space.dims[0] = rows;
	h5_chunk_index_resize(s->t.index, s->t.space.dims);
	s->record.record = true;
	SUCCEEDS(target_commit(&s->t));
	for (size_t i = 0; i < s->record.count; i++) {
		if (s->record.events[i].file)
			continue;
		crash_image_apply(&s->image, &s->record.events[i], s->record.events[i].size);
		check_state(s);
		s->states++;
	}
	fault_io_release(&s->record);
	s->record = (struct fault_io){0};
	memcpy(s->was, s->is, sizeof s->is);
	s->rows = rows;
	check_state(s);
}

static const struct {
	const char *fixture, *name;
} indexes[] = {{"chunk_index_write-plain.h5", "a"},  {"chunk_index_write-filtered.h5", "a"},
	       {"fixed_array_write-small.h5", "a"},  {"fixed_array_write-block.h5", "a"},
	       {"fixed_array_write-paged.h5", "a"},  {"btree1_write-2.h5", "1f"},
	       {"btree2_write-empty.h5", "filtered"}};

/* The last chunk was a part of one, and moves as it grows, sometimes alone; some are left out, and come in
 * the middle. */
START_TEST(rows_come)
{
	struct scene *s = begin(indexes[_i].fixture, indexes[_i].name);
	uint64_t rows = 0;

	for (unsigned i = 0; i < 12; i++) {
		if (rows)
			set(s, rows - 1);
		if (i % 3 == 2)
			set(s, rows / 2);
		for (unsigned k = 0; k < 1 + i % 4; k++, rows++)
			if (i % 4 && k != 2)
				set(s, rows);
		publish(s, rows);
	}
	ck_assert_uint_gt(s->states, 40);
	end(s);
}
END_TEST

/* A short page at the end of the array is a cell, and so is its bit. */
START_TEST(a_page_comes_before_its_bit)
{
	struct scene *s = begin("fixed_array_write-paged.h5", "a");

	set(s, 5);
	publish(s, 3073);
	for (unsigned i = 3074; i < 3077; i++) {
		set(s, i);
		publish(s, i % 2 ? 3077 : i + 1);
	}
	ck_assert_uint_gt(s->states, 15);
	end(s);
}
END_TEST

UNIT_MAIN_LOOPS("order of an index", {rows_come, sizeof indexes / sizeof *indexes},
		{a_page_comes_before_its_bit, 1})

/* Decoding chunks before they are asked for. */
#include "base/array.h"
#include "base/checked.h"
#include "dataset/boxes.h"
#include "dataset/chunk_cache.h"
#include "dataset/chunk_row.h"
#include "store/file_set.h"

#include <stdlib.h>

enum {
	MAX_CHUNKS = 1 << 12, /* most chunks that are decoded ahead at once */
};

/* Chunks that are decoded in the background. */
struct ahead {
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref; /* of the dataset */
	const struct h5_grid *grid;
	struct h5_chunk_cursor cursor;
	uint64_t budget; /* bytes that may still be decoded */
	size_t count, capacity;
	struct h5_chunk_wanted *chunks; /* owned; NULL: rows of chunks are decoded */
	uint64_t *rows;			/* owned; their numbers */
};

/* Stops at the first error: the read itself will report it. */
static void look_ahead(struct ahead *a, uint64_t offset, uint64_t n)
{
	struct h5_part_iterator parts;

	h5_part_begin(&parts, a->grid, offset, n);
	while (h5_part_next(&parts) > 0) {
		struct h5_chunk_wanted wanted;
		enum h5_chunk_state state;

		if (h5_chunk_locate(a->dataset, a->grid, &a->cursor, parts.part.scaled, &wanted, &state))
			return;
		if (state != H5_CHUNK_TO_DECODE || !h5_chunk_plan(&wanted))
			continue;
		if (a->dataset->chunk_size > a->budget || a->count == MAX_CHUNKS ||
		    h5_array_reserve(&a->chunks, &a->capacity, a->count + 1, NULL))
			return;
		a->chunks[a->count++] = wanted;
		a->budget -= a->dataset->chunk_size;
	}
}

/* The same for rows of chunks. */
static void look_for_rows(struct ahead *a, uint64_t offset, uint64_t n)
{
	const uint64_t size = a->grid->chunk[0] * a->grid->chunk_stride[0];
	struct h5_part_iterator parts;

	h5_part_begin(&parts, a->grid, offset, n);
	while (h5_part_next(&parts) > 0) {
		uint64_t number = h5_chunk_row_number(a->grid, parts.part.scaled);

		if (!h5_chunk_row_plan(a->dataset, number))
			continue;
		if (size > a->budget || a->count == MAX_CHUNKS ||
		    h5_array_reserve(&a->rows, &a->capacity, a->count + 1, NULL))
			return;
		a->rows[a->count++] = number;
		a->budget -= size;
	}
}

static int decode_ahead(void *arg, size_t i)
{
	const struct ahead *a = arg;

	return a->rows ? h5_chunk_row_load_ahead(a->dataset, a->rows[i]) : h5_chunk_load_ahead(&a->chunks[i]);
}

static void end_ahead(void *arg)
{
	struct ahead *a = arg;

	h5_file_put(a->dataset->file, a->ref);
	free(a->chunks);
	free(a->rows);
	free(a);
}

static void start_ahead(struct ahead *found)
{
	struct h5_file_set *set = h5_file_set_of(found->dataset->file);
	struct ahead *a = malloc(sizeof *a);

	if (a)
		*a = *found;
	if (!a || h5_dataset_get(a->dataset->file, a->dataset->address, &a->ref, &a->dataset)) {
		free(found->chunks);
		free(found->rows);
		free(a);
		return;
	}
	for (size_t i = 0; i < a->count && a->chunks; i++)
		a->chunks[i].dataset = a->dataset;
	h5_pool_start(h5_file_set_pool(set), decode_ahead, end_ahead, a, a->count);
}

uint64_t h5_dataset_ahead(const struct h5_dataset *dataset)
{
	bool has_workers = h5_pool_workers(h5_file_set_pool(h5_file_set_of(dataset->file)));

	return has_workers && h5_chunks_are_decoded(dataset) ? h5_chunks_window(dataset) : 0;
}

/* Rounds up to the end of a band if two bands fit into the budget. Otherwise two ranges would share chunks,
 * which would be looked up, and perhaps decoded, for both. */
uint64_t h5_dataset_ahead_end(const struct h5_dataset *dataset, uint64_t end)
{
	uint64_t band = h5_chunks_band(dataset), rest = end % band;

	if (rest && band <= h5_chunks_ahead_budget(dataset) / 2)
		end += band - rest;
	return h5_min(end, dataset->size);
}

void h5_dataset_read_ahead(const struct h5_dataset *dataset, uint64_t offset, uint64_t n)
{
	struct h5_grid grid;
	struct ahead a = {.dataset = dataset, .grid = &grid, .budget = h5_chunks_ahead_budget(dataset)};

	if (h5_chunk_rows_grid(dataset, &grid)) {
		look_for_rows(&a, offset, n);
	} else {
		h5_chunk_grid(dataset, &grid);
		look_ahead(&a, offset, n);
		h5_chunk_cursor_release(dataset->index, &a.cursor);
	}
	if (a.count)
		start_ahead(&a);
}

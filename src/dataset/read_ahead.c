/* Decoding chunks before they are asked for. */
#include "base/array.h"
#include "base/checked.h"
#include "dataset/boxes.h"
#include "dataset/chunk_cache.h"
#include "store/file_set.h"

#include <errno.h>
#include <stdlib.h>

enum {
	MIN_BYTES = 2 << 20,  /* least bytes that are decoded ahead */
	CACHE_SHARE = 4,      /* a fourth of the cache of chunks may be decoded ahead */
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
	struct h5_chunk_wanted *chunks; /* owned */
};

static int add_ahead(struct ahead *a, const struct h5_chunk_wanted *wanted)
{
	int rc = h5_array_reserve(&a->chunks, &a->capacity, a->count + 1, NULL);

	if (rc)
		return rc;
	a->chunks[a->count++] = *wanted;
	return 0;
}

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
		if (state != H5_CHUNK_TO_DECODE || h5_chunk_is_under_way(&wanted))
			continue;
		if (a->dataset->chunk_size > a->budget || a->count == MAX_CHUNKS || add_ahead(a, &wanted))
			return;
		a->budget -= a->dataset->chunk_size;
	}
}

static int decode_ahead(void *arg, size_t i)
{
	const struct ahead *a = arg;
	struct h5_chunk_decoded decoded;
	int rc = h5_chunk_get(&a->chunks[i], false, &decoded);

	if (!rc)
		h5_chunk_put(&a->chunks[i], &decoded, 0, a->dataset->chunk_size);
	return rc == -EAGAIN ? 0 : rc;
}

static void end_ahead(void *arg)
{
	struct ahead *a = arg;

	h5_file_put(a->dataset->file, a->ref);
	free(a->chunks);
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
		free(a);
		return;
	}
	for (size_t i = 0; i < a->count; i++)
		a->chunks[i].dataset = a->dataset;
	h5_pool_start(h5_file_set_pool(set), decode_ahead, end_ahead, a, a->count);
}

static uint64_t budget_of(const struct h5_dataset *dataset)
{
	return h5_file_set_chunk_budget(h5_file_set_of(dataset->file)) / CACHE_SHARE;
}

/* A band of chunks: the bytes of as many rows as a chunk has along the first dimension (at least MIN_BYTES,
 * at most the budget). 0: nothing is decoded ahead. */
uint64_t h5_dataset_ahead(const struct h5_dataset *dataset)
{
	struct h5_grid grid;
	uint64_t band;

	if (!h5_chunks_are_decoded(dataset) ||
	    !h5_pool_workers(h5_file_set_pool(h5_file_set_of(dataset->file))))
		return 0;
	h5_chunk_grid(dataset, &grid);
	if (!h5_mul(grid.chunk[0], grid.stride[0], &band))
		band = UINT64_MAX;
	return h5_min(h5_max(band, MIN_BYTES), budget_of(dataset));
}

void h5_dataset_read_ahead(const struct h5_dataset *dataset, uint64_t offset, uint64_t n)
{
	struct h5_grid grid;
	struct ahead a = {.dataset = dataset, .grid = &grid, .budget = budget_of(dataset)};

	h5_chunk_grid(dataset, &grid);
	look_ahead(&a, offset, n);
	h5_chunk_cursor_release(dataset->index, &a.cursor);
	if (a.count)
		start_ahead(&a);
	else
		free(a.chunks);
}

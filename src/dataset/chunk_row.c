#include "dataset/chunk_row.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lru.h"
#include "change/transaction.h"
#include "dataset/chunk_cache.h"
#include "dataset/stored_runs.h"
#include "store/file_set.h"

#include <stdlib.h>
#include <string.h>

enum {
	SMALL = 1 << 16, /* most bytes of a chunk that is decoded together with others */
	MOST = 1 << 19,	 /* most bytes of a row of chunks */
	SHARE = 16, /* a row has at most a 16th of the bytes that are decoded ahead: many run side by side */
};

/* Not on a mount for writing, since chunks may change; and not for a far file, from which chunks are fetched
 * one by one. */
static bool may_be_joined(const struct h5_dataset *dataset)
{
	return dataset->index && dataset->pipeline.count && !h5_dataset_is_sparse(dataset) &&
	       dataset->space.rank && dataset->chunk_size && dataset->chunk_size <= SMALL &&
	       !h5_file_is_far(dataset->file) && !h5_tx_is_writable(dataset->file);
}

bool h5_chunk_rows_grid(const struct h5_dataset *dataset, struct h5_grid *grid)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;
	const unsigned last = dataset->space.rank - 1;
	uint64_t dims[H5_RANK_MAX], most;

	if (!may_be_joined(dataset))
		return false;
	most = h5_min(MOST, h5_chunks_window(dataset) / SHARE) / dataset->chunk_size;
	if (most < 2 || dataset->space.dims[last] <= layout->dims[last])
		return false;
	memcpy(dims, layout->dims, layout->rank * sizeof *dims);
	/* A row of all chunks ends with the dataset, so that its rows lie side by side. */
	if (dataset->space.dims[last] / most >= dims[last])
		dims[last] *= most;
	else
		dims[last] = dataset->space.dims[last];
	h5_grid_init(grid, layout->rank, dataset->space.dims, dims, dataset->type->size);
	return true;
}

static uint64_t rows_along(const struct h5_grid *grid, unsigned i)
{
	return grid->dims[i] / grid->chunk[i] + (grid->dims[i] % grid->chunk[i] != 0);
}

uint64_t h5_chunk_row_number(const struct h5_grid *grid, const uint64_t *scaled)
{
	uint64_t number = 0;

	for (unsigned i = 0; i + 1 < grid->dims_count; i++)
		number = number * rows_along(grid, i) + scaled[i];
	return number;
}

static void find_scaled(const struct h5_grid *grid, uint64_t number, uint64_t *scaled)
{
	for (unsigned i = grid->dims_count - 1; i-- > 0; number /= rows_along(grid, i))
		scaled[i] = number % rows_along(grid, i);
}

/* ---- decoding ---- */

/* A row of chunks that load() decodes. */
struct wanted {
	const struct h5_dataset *dataset;
	uint64_t number;
};

static void fill_part(const struct h5_dataset *dataset, const struct h5_part *part, uint8_t *to)
{
	struct h5_run_iterator runs;

	h5_run_begin(&runs, part);
	while (h5_run_next(&runs))
		h5_dataset_fill(dataset, runs.run.in_dataset, to + runs.run.in_dataset, runs.run.n);
}

static void copy_part(const struct h5_part *part, const uint8_t *from, uint8_t *to)
{
	struct h5_run_iterator runs;
	struct h5_part_rows rows;

	h5_run_begin(&runs, part);
	while (h5_run_next_rows(&runs, &rows))
		h5_copy_rows(&rows, from + rows.first.in_chunk, to + rows.first.in_dataset);
}

/* A chunk that was stored without the bytes that lie outside of the dataset gets zeros there. */
static int complete(const struct h5_chunk_wanted *wanted, uint64_t needed, uint8_t **data, size_t size)
{
	const size_t whole = (size_t)wanted->dataset->chunk_size;
	int rc = h5_chunk_check_size(wanted, size, needed);
	uint8_t *larger;

	if (rc || size == whole)
		return rc;
	larger = realloc(*data, whole);
	if (!larger)
		return h5_fail(-ENOMEM, wanted->chunk.address, "chunk: out of memory");
	memset(larger + size, 0, whole - size);
	*data = larger;
	return 0;
}

/* Decodes the chunk `scaled` into its part of the row. */
static int decode_chunk(const struct h5_dataset *dataset, const struct h5_grid *chunks,
			struct h5_chunk_cursor *cursor, const uint64_t *scaled, const struct h5_part *part,
			uint8_t *to)
{
	struct h5_chunk_wanted wanted;
	enum h5_chunk_state state;
	uint8_t *data = NULL;
	size_t size;
	int rc = h5_chunk_locate(dataset, chunks, cursor, scaled, &wanted, &state);

	if (rc)
		return rc;
	if (state == H5_CHUNK_NOT_STORED) {
		fill_part(dataset, part, to);
		return 0;
	}
	rc = h5_chunk_read(&wanted, &data, &size);
	if (!rc)
		rc = complete(&wanted, h5_grid_needed(chunks, scaled), &data, size);
	if (!rc)
		copy_part(part, data, to);
	free(data);
	return rc;
}

/* Decodes all chunks of the row. To the parts the row is a dataset. */
static int decode_row(const struct wanted *wanted, const struct h5_grid *rows, uint8_t *to)
{
	const struct h5_dataset *dataset = wanted->dataset;
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;
	const unsigned last = layout->rank - 1;
	struct h5_chunk_cursor cursor = {.ref = NULL};
	struct h5_grid chunks, row;
	struct h5_part_iterator parts;
	uint64_t scaled[H5_RANK_MAX], first;
	int rc;

	h5_chunk_grid(dataset, &chunks);
	h5_grid_init(&row, layout->rank, rows->chunk, layout->dims, dataset->type->size);
	find_scaled(rows, wanted->number, scaled);
	first = scaled[last] * rows->chunk[last] / layout->dims[last];
	h5_part_begin(&parts, &row, 0, row.dims[0] * row.stride[0]);
	while ((rc = h5_part_next(&parts)) > 0) {
		scaled[last] = first + parts.part.scaled[last];
		if (scaled[last] * layout->dims[last] >= dataset->space.dims[last])
			continue; /* the last row has fewer chunks */
		rc = decode_chunk(dataset, &chunks, &cursor, scaled, &parts.part, to);
		if (rc)
			break;
	}
	h5_chunk_cursor_release(dataset->index, &cursor);
	return rc;
}

static int load(void *arg, void **value, size_t *cost)
{
	const struct wanted *wanted = arg;
	struct h5_grid grid;
	uint8_t *row;
	size_t size;
	int rc;

	if (!h5_chunk_rows_grid(wanted->dataset, &grid))
		return -EAGAIN; /* the dataset has changed */
	size = (size_t)(grid.chunk[0] * grid.chunk_stride[0]);
	row = malloc(size);
	if (!row)
		return h5_fail(-ENOMEM, wanted->dataset->address, "chunks: out of memory");
	rc = decode_row(wanted, &grid, row);
	if (rc) {
		free(row);
		return rc;
	}
	*value = row;
	*cost = size;
	return 0;
}

/* ---- the cache ---- */

static struct h5_lru *cache_of(const struct h5_dataset *dataset)
{
	return h5_file_set_chunks(h5_file_set_of(dataset->file));
}

/* As for a chunk, but the number stands for the address. */
static struct h5_lru_key key_of(const struct h5_dataset *dataset, uint64_t number)
{
	static const struct h5_lru_kind kind = {"row of chunks", free};

	return (struct h5_lru_key){
		.kind = &kind, .owner = dataset->number, .address = number, .variant = dataset->address};
}

bool h5_chunk_row_find(const struct h5_dataset *dataset, uint64_t number, struct h5_chunk_row *row)
{
	struct h5_lru_key key = key_of(dataset, number);

	if (!h5_lru_find(cache_of(dataset), &key, &row->ref))
		return false;
	row->data = h5_lru_value(row->ref);
	return true;
}

int h5_chunk_row_get(const struct h5_dataset *dataset, uint64_t number, bool wait, struct h5_chunk_row *row)
{
	struct wanted wanted = {dataset, number};
	struct h5_lru_key key = key_of(dataset, number);
	int rc = wait ? h5_lru_get(cache_of(dataset), &key, load, &wanted, &row->ref)
		      : h5_lru_try(cache_of(dataset), &key, load, &wanted, &row->ref);

	if (!rc)
		row->data = h5_lru_value(row->ref);
	return rc;
}

bool h5_chunk_row_is_under_way(const struct h5_dataset *dataset, uint64_t number)
{
	struct h5_lru_key key = key_of(dataset, number);

	return h5_lru_has(cache_of(dataset), &key);
}

bool h5_chunk_row_plan(const struct h5_dataset *dataset, uint64_t number)
{
	struct h5_lru_key key = key_of(dataset, number);

	return h5_lru_plan(cache_of(dataset), &key);
}

int h5_chunk_row_load_ahead(const struct h5_dataset *dataset, uint64_t number)
{
	struct wanted wanted = {dataset, number};
	struct h5_lru_key key = key_of(dataset, number);

	return h5_lru_load_ahead(cache_of(dataset), &key, load, &wanted);
}

void h5_chunk_row_put(const struct h5_dataset *dataset, struct h5_chunk_row *row, uint64_t taken,
		      uint64_t all)
{
	h5_lru_put_used(cache_of(dataset), row->ref, taken, all);
	row->ref = NULL;
}

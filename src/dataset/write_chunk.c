/* Single chunks of a dataset that is written. The numbers of invariants are those of doc/writing.md.
 *
 * What is written gathers in decoded chunks, and goes to the file when too many are held or the dataset is
 * settled; but whole chunks without filters, and long runs into stored ones, go there at once (write_run.c).
 * A filtered chunk always moves to new space (invariant 1).
 *
 * Chunks that reach beyond the dataset are stored without their filters where the layout has
 * unfiltered_edges. A kill may leave the dataset with its rows of the last commit, or with those of this one;
 * so whatever is partial with any number of rows that the file may be found with is stored raw, with all
 * filters marked as skipped, which is right whether it is partial or not. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "dataset/chunk_cache.h"
#include "dataset/write_private.h"
#include "store/file_set.h"
#include "store/pipeline.h"
#include "store/statistics.h"

#include <stdlib.h>

enum {
	HELD_MAX = 1 << 26,    /* bytes of chunks in memory */
	BATCH_MAX = 128,       /* chunks that are encoded together */
	BATCH_BYTES = 1 << 25, /* of them, but for the last one */
};

/* True: with so many rows the chunk reaches beyond the dataset. */
static bool is_partial(const struct h5_chunked_writer *c, const uint64_t *scaled, uint64_t rows)
{
	for (unsigned i = 0; i + 1 < c->grid.dims_count; i++) {
		uint64_t first = scaled[i] * c->grid.chunk[i], dim = i ? c->grid.dims[i] : rows;

		if (dim > first && dim - first < c->grid.chunk[i])
			return true;
	}
	return false;
}

/* True: the chunk is to be stored without its filters. */
static bool stays_raw(const struct h5_dataset_writer *w, const uint64_t *scaled)
{
	const struct h5_chunked_writer *c = &w->chunked;
	uint64_t first = scaled[0] * c->grid.chunk[0];

	return c->edges && (is_partial(c, scaled, w->rows) || is_partial(c, scaled, c->grid.dims[0]) ||
			    (first < w->settled && first + c->grid.chunk[0] > c->visible));
}

/* True: the chunk is stored without its filters. */
static bool is_raw(const struct h5_dataset_writer *w, const struct h5_place *place)
{
	const struct h5_chunked_writer *c = &w->chunked;

	return !c->filters || !h5_chunk_is_filtered(&w->dataset->pipeline, place->stored.filter_mask) ||
	       (c->edges && is_partial(c, place->scaled, w->rows));
}

static int check_stored(const struct h5_dataset_writer *w, const struct h5_chunk *chunk)
{
	uint64_t end = h5_file_end(w->file);

	if (chunk->address == H5_UNDEF)
		return 0;
	if (chunk->address >= end || chunk->size > end - chunk->address)
		return h5_fail(-EUCLEAN, chunk->address, "chunk: it reaches beyond the file");
	return 0;
}

int h5_chunked_place(struct h5_dataset_writer *w, const uint64_t *scaled, struct h5_place **place)
{
	struct h5_chunked_writer *c = &w->chunked;
	struct h5_chunk chunk;
	int rc;

	*place = h5_places_find(&c->places, scaled);
	if (*place)
		return 0;
	rc = h5_chunk_index_lookup(c->index, NULL, scaled, &chunk);
	if (!rc)
		rc = check_stored(w, &chunk);
	return rc ? rc : h5_places_add(&c->places, scaled, &chunk, place);
}

/* Bytes of the chunk that must be stored: up to the last one that readers may have seen. */
static uint64_t needed(const struct h5_dataset_writer *w, const struct h5_place *place)
{
	struct h5_grid grid = w->chunked.grid;

	grid.dims[0] = h5_min(grid.dims[0], w->rows);
	return h5_grid_needed(&grid, place->scaled);
}

static struct h5_chunk_wanted wanted_of(const struct h5_dataset_writer *w, const struct h5_place *place)
{
	struct h5_chunk_wanted wanted = {.dataset = w->dataset, .chunk = place->stored};

	wanted.filtered = !is_raw(w, place);
	if (!wanted.filtered)
		wanted.chunk.size = h5_min(place->stored.size, w->dataset->chunk_size);
	return wanted;
}

/* The stored bytes of the chunk, and the fill value for those that are not stored. */
static int read_stored(const struct h5_dataset_writer *w, const struct h5_place *place, uint8_t **data)
{
	struct h5_chunk_wanted wanted = wanted_of(w, place);
	size_t size = (size_t)w->dataset->chunk_size, got;
	uint8_t *all;
	int rc = h5_chunk_read(&wanted, data, &got);

	if (rc || got == size)
		return rc;
	rc = h5_chunk_check_size(&wanted, got, needed(w, place));
	all = rc ? NULL : realloc(*data, size);
	if (!all) {
		free(*data);
		return rc ? rc : h5_fail(-ENOMEM, place->stored.address, "chunk: out of memory");
	}
	h5_dataset_fill(w->dataset, got, all + got, size - got);
	*data = all;
	return 0;
}

bool h5_chunked_is_short(const struct h5_dataset_writer *w, const struct h5_place *place)
{
	return !w->chunked.filters && place->stored.address != H5_UNDEF &&
	       place->stored.size < w->dataset->chunk_size;
}

static int copy_bytes(struct h5_dataset_writer *w, uint64_t from, uint64_t to, uint64_t n)
{
	uint8_t piece[1 << 13];
	int rc = 0;

	for (uint64_t done = 0; done < n && !rc; done += sizeof piece) {
		size_t part = (size_t)h5_min(n - done, sizeof piece);

		rc = h5_interrupt_check();
		if (!rc)
			rc = h5_file_read(w->file, from + done, piece, part);
		if (!rc)
			rc = h5_tx_write(w->file, to + done, piece, part);
	}
	return rc;
}

int h5_chunked_widen(struct h5_dataset_writer *w, struct h5_place *place, bool whole)
{
	const struct h5_chunk old = place->stored;
	struct h5_chunk_wanted wanted = wanted_of(w, place);
	struct h5_chunk chunk = {.size = w->dataset->chunk_size};
	int rc = whole ? 0 : h5_chunk_check_size(&wanted, old.size, needed(w, place));

	if (!rc)
		rc = h5_tx_allocate(w->file, H5_ALLOCATE_RAW, chunk.size, &chunk.address);
	if (rc)
		return rc;
	rc = copy_bytes(w, old.address, chunk.address, old.size);
	if (!rc)
		rc = h5_write_fill_value(w, chunk.address + old.size, old.size, chunk.size - old.size);
	if (!rc)
		rc = h5_chunked_publish(w, place, &chunk);
	if (rc)
		h5_tx_free(w->file, chunk.address, chunk.size);
	return rc;
}

int h5_chunked_hold(struct h5_dataset_writer *w, struct h5_place *place, bool whole)
{
	struct h5_chunked_writer *c = &w->chunked;
	const struct h5_chunk *stored = &place->stored;
	size_t size = (size_t)w->dataset->chunk_size;
	uint8_t *data;
	int rc = 0;

	if (stored->address == H5_UNDEF || whole) {
		data = malloc(size);
		if (!data)
			return h5_fail(-ENOMEM, stored->address, "chunk: out of memory");
		if (!whole || is_partial(c, place->scaled, c->grid.dims[0]))
			h5_dataset_fill(w->dataset, 0, data, size);
	} else {
		rc = read_stored(w, place, &data);
	}
	if (!rc)
		h5_places_hold(&c->places, place, data);
	return rc;
}

int h5_chunked_publish(struct h5_dataset_writer *w, struct h5_place *place, const struct h5_chunk *chunk)
{
	struct h5_chunk old = place->stored;
	int rc = h5_tx_touch(w->file, w->address);

	w->index_changed = true;
	if (!rc)
		rc = h5_chunk_index_set(w->chunked.index, place->scaled, chunk);
	if (rc)
		return rc;
	if (old.address != H5_UNDEF)
		h5_tx_free(w->file, old.address, old.size);
	place->stored = *chunk;
	return 0;
}

/* Bytes of the chunk that belong to rows before this one. */
static uint64_t bytes_before(const struct h5_dataset_writer *w, const struct h5_place *place, uint64_t row)
{
	uint64_t chunk = w->chunked.grid.chunk[0], first = place->scaled[0] * chunk;

	return row <= first ? 0 : h5_min(row - first, chunk) * (w->dataset->chunk_size / chunk);
}

void h5_chunked_cover(struct h5_dataset_writer *w, const struct h5_place *place, uint64_t begin, uint64_t end)
{
	begin = h5_max(begin, bytes_before(w, place, w->settled));
	if (begin < end)
		h5_tx_cover(w->file, place->stored.address + begin, end - begin);
}

int h5_chunked_move(struct h5_dataset_writer *w, struct h5_place *place, struct h5_chunk *chunk,
		    const uint8_t *bytes)
{
	int rc = h5_tx_allocate(w->file, H5_ALLOCATE_RAW, chunk->size, &chunk->address);

	if (rc)
		return rc;
	rc = bytes ? h5_tx_write(w->file, chunk->address, bytes, (size_t)chunk->size)
		   : h5_write_fill_value(w, chunk->address, 0, chunk->size);
	if (!rc)
		rc = h5_chunked_publish(w, place, chunk);
	if (rc)
		h5_tx_free(w->file, chunk->address, chunk->size);
	else if (!w->chunked.filters)
		h5_tx_uncover(w->file, chunk->address + bytes_before(w, place, w->chunked.grid.dims[0]),
			      chunk->size - bytes_before(w, place, w->chunked.grid.dims[0]));
	return rc;
}

/* ---- what is held goes to the file ---- */

/* Chunks that are stored together. Their encoding is the work of many processors; where they go is decided in
 * their order, so that the file does not tell how many there were. */
struct batch {
	struct h5_dataset_writer *w;
	unsigned count;
	struct {
		struct h5_place *place;
		uint8_t *encoded; /* owned; NULL: stored as it is */
		struct h5_chunk chunk;
	} chunks[BATCH_MAX];
};

/* A part of h5_pool_run(): it changes nothing but its own chunk of the batch. */
static int encode(void *arg, size_t i)
{
	struct batch *b = arg;
	const struct h5_pipeline *pipeline = &b->w->dataset->pipeline;
	struct h5_chunk *chunk = &b->chunks[i].chunk;
	uint64_t bytes = chunk->size;
	struct timespec begin;
	size_t size;
	int rc;

	if (stays_raw(b->w, b->chunks[i].place->scaled)) {
		chunk->filter_mask = (uint32_t)((UINT64_C(1) << pipeline->count) - 1);
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	rc = h5_pipeline_encode(pipeline, b->chunks[i].place->data, (size_t)chunk->size,
				&b->chunks[i].encoded, &size, &chunk->filter_mask);
	if (rc)
		return rc;
	chunk->size = size;
	h5_count_filtered(&h5_file_set_statistics(h5_file_set_of(b->w->file))->encoded, bytes, &begin);
	return 0;
}

/* Chunk i of the batch, once it is encoded. */
static int store_chunk(struct h5_dataset_writer *w, struct batch *b, unsigned i)
{
	struct h5_place *place = b->chunks[i].place;
	uint64_t address = place->stored.address;
	int rc;

	if (w->chunked.filters || address == H5_UNDEF) {
		rc = h5_chunked_move(w, place, &b->chunks[i].chunk,
				     b->chunks[i].encoded ? b->chunks[i].encoded : place->data);
	} else {
		rc = h5_tx_write(w->file, address + place->begin, place->data + place->begin,
				 (size_t)(place->end - place->begin));
		h5_tx_forget(w->file, address);
		h5_chunked_cover(w, place, place->begin, place->end);
	}
	if (rc)
		return rc;
	place->begin = place->end = 0;
	w->dirty--;
	return 0;
}

static int store_batch(struct batch *b)
{
	struct h5_pool *pool = h5_file_set_pool(h5_file_set_of(b->w->file));
	int rc = b->w->chunked.filters && b->count ? h5_pool_run(pool, encode, b, b->count) : 0;

	for (unsigned i = 0; i < b->count; i++) {
		if (!rc)
			rc = store_chunk(b->w, b, i);
		free(b->chunks[i].encoded);
	}
	b->count = 0;
	return rc;
}

static void add_to_batch(struct batch *b, struct h5_place *place)
{
	b->chunks[b->count].place = place;
	b->chunks[b->count].encoded = NULL;
	b->chunks[b->count].chunk = (struct h5_chunk){.size = b->w->dataset->chunk_size};
	b->count++;
}

/* True: the chunk ends before the last row, or `all` are meant. */
static bool is_meant(const struct h5_chunked_writer *c, const struct h5_place *place, bool all)
{
	return all || place->scaled[0] < c->grid.dims[0] / c->grid.chunk[0];
}

int h5_chunked_store(struct h5_dataset_writer *w, bool all)
{
	uint64_t most = h5_min(BATCH_MAX, BATCH_BYTES / w->dataset->chunk_size + 1);
	struct batch b;
	int rc = 0;

	b.w = w;
	b.count = 0;
	for (struct h5_place *place = w->chunked.places.first; place && !rc; place = place->next) {
		if (place->begin == place->end || !is_meant(&w->chunked, place, all))
			continue;
		add_to_batch(&b, place);
		if (b.count >= most)
			rc = store_batch(&b);
	}
	return rc ? rc : store_batch(&b);
}

void h5_chunked_mark(struct h5_dataset_writer *w, struct h5_place *place, uint64_t begin, uint64_t end)
{
	if (place->begin == place->end) {
		w->dirty++;
		place->begin = begin;
		place->end = end;
	} else {
		place->begin = h5_min(place->begin, begin);
		place->end = place->end > end ? place->end : end;
	}
}

int h5_chunked_release(struct h5_dataset_writer *w, bool all)
{
	struct h5_chunked_writer *c = &w->chunked;
	struct h5_place **at = &c->places.first;
	int rc = h5_chunked_store(w, all);

	while (*at && !rc) {
		if (is_meant(c, *at, all))
			h5_places_remove(&c->places, at);
		else
			at = &(*at)->next;
	}
	return rc;
}

bool h5_chunked_is_full(const struct h5_dataset_writer *w)
{
	return w->chunked.places.bytes > HELD_MAX;
}

int h5_chunked_limit(struct h5_dataset_writer *w)
{
	int rc;

	if (!h5_chunked_is_full(w))
		return 0;
	rc = h5_chunked_release(w, false);
	if (!rc && w->chunked.places.bytes > HELD_MAX / 2)
		rc = h5_chunked_release(w, true);
	return rc;
}

void h5_chunked_drop(struct h5_dataset_writer *w, uint64_t row)
{
	struct h5_chunked_writer *c = &w->chunked;
	struct h5_place **at = &c->places.first;

	while (*at) {
		if ((*at)->scaled[0] * c->grid.chunk[0] >= row) {
			w->dirty -= (*at)->begin != (*at)->end;
			h5_places_remove(&c->places, at);
		} else {
			at = &(*at)->next;
		}
	}
}

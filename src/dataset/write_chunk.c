/* Single chunks of a dataset that is written. The numbers of invariants are those of doc/writing.md.
 *
 * What is written gathers in decoded chunks, and goes to the file when too many are held or the dataset is
 * settled; but long runs go into stored chunks without filters at once. A filtered chunk always moves to new
 * space (invariant 1).
 *
 * Chunks that reach beyond the dataset are stored without their filters where the layout has
 * unfiltered_edges. A kill may leave the dataset with its rows of the last commit, or with those of this one;
 * so whatever is partial with any number of rows that the file may be found with is stored raw, with all
 * filters marked as skipped, which is right whether it is partial or not. */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/write_private.h"
#include "store/pipeline.h"
#include "store/transaction.h"

#include <stdlib.h>

enum { HELD_MAX = 1 << 26 }; /* bytes of chunks in memory */

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
	if (!w->chunked.filters && chunk->size < w->dataset->chunk_size)
		return h5_fail(-EUCLEAN, chunk->address, "chunk: %ju bytes are stored of %ju",
			       (uintmax_t)chunk->size, (uintmax_t)w->dataset->chunk_size);
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

int h5_chunked_hold(struct h5_dataset_writer *w, struct h5_place *place, bool whole)
{
	struct h5_chunked_writer *c = &w->chunked;
	const struct h5_chunk *stored = &place->stored;
	size_t size = (size_t)w->dataset->chunk_size;
	bool raw = is_raw(w, place);
	uint8_t *data;
	int rc = 0;

	if (stored->address == H5_UNDEF || whole) {
		data = malloc(size);
		if (!data)
			return h5_fail(-ENOMEM, stored->address, "chunk: out of memory");
		if (!whole || is_partial(c, place->scaled, c->grid.dims[0]))
			h5_dataset_fill(w->dataset, 0, data, size);
	} else {
		rc = h5_pipeline_read(w->file, raw ? NULL : &w->dataset->pipeline, stored->filter_mask,
				      stored->address, raw ? size : stored->size, size, &data);
	}
	if (!rc)
		h5_places_hold(&c->places, place, data);
	return rc;
}

int h5_chunked_move(struct h5_dataset_writer *w, struct h5_place *place, struct h5_chunk *chunk,
		    const uint8_t *bytes)
{
	struct h5_chunk old = place->stored;
	int rc = h5_tx_allocate(w->file, H5_ALLOCATE_RAW, chunk->size, &chunk->address);

	if (rc)
		return rc;
	rc = bytes ? h5_tx_write(w->file, chunk->address, bytes, (size_t)chunk->size)
		   : h5_write_fill_value(w, chunk->address, 0, chunk->size);
	if (!rc)
		rc = h5_tx_touch(w->file, w->address);
	w->index_changed = true;
	if (!rc)
		rc = h5_chunk_index_set(w->chunked.index, place->scaled, chunk);
	if (rc) {
		h5_tx_free(w->file, chunk->address, chunk->size);
		return rc;
	}
	if (old.address != H5_UNDEF)
		h5_tx_free(w->file, old.address, old.size);
	place->stored = *chunk;
	return 0;
}

static int store_chunk(struct h5_dataset_writer *w, struct h5_place *place)
{
	const struct h5_pipeline *pipeline = &w->dataset->pipeline;
	struct h5_chunk chunk = {.size = w->dataset->chunk_size};
	uint8_t *encoded = NULL;
	size_t size;
	int rc = 0;

	if (w->chunked.filters && stays_raw(w, place->scaled)) {
		chunk.filter_mask = (uint32_t)((UINT64_C(1) << pipeline->count) - 1);
	} else if (w->chunked.filters) {
		rc = h5_pipeline_encode(pipeline, place->data, (size_t)chunk.size, &encoded, &size,
					&chunk.filter_mask);
		if (!rc)
			chunk.size = size;
	}
	if (!rc)
		rc = h5_chunked_move(w, place, &chunk, encoded ? encoded : place->data);
	free(encoded);
	return rc;
}

int h5_chunked_store(struct h5_dataset_writer *w, struct h5_place *place)
{
	uint64_t address = place->stored.address;
	int rc;

	if (place->begin == place->end)
		return 0;
	if (w->chunked.filters || address == H5_UNDEF) {
		rc = store_chunk(w, place);
	} else {
		rc = h5_tx_write(w->file, address + place->begin, place->data + place->begin,
				 (size_t)(place->end - place->begin));
		h5_tx_forget(w->file, address);
	}
	if (rc)
		return rc;
	place->begin = place->end = 0;
	w->dirty--;
	return 0;
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
	uint64_t last = c->grid.dims[0] / c->grid.chunk[0];
	struct h5_place **at = &c->places.first;
	int rc = 0;

	while (*at && !rc) {
		if (!all && (*at)->scaled[0] >= last) {
			at = &(*at)->next;
			continue;
		}
		rc = h5_chunked_store(w, *at);
		if (!rc)
			h5_places_remove(&c->places, at);
	}
	return rc;
}

int h5_chunked_limit(struct h5_dataset_writer *w)
{
	int rc;

	if (w->chunked.places.bytes <= HELD_MAX)
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

/* Writing chunked data. The numbers of invariants are those of doc/writing.md.
 *
 * What is written gathers in decoded chunks, and goes to the file when too many are held or the dataset is
 * settled; but long runs go into stored chunks without filters at once. A filtered chunk always moves to new
 * space (invariant 1).
 *
 * Chunks that reach beyond the dataset are stored without their filters where the layout has
 * unfiltered_edges. A kill may leave the dataset with its rows of the last commit, or with those of this one;
 * so whatever is partial with any number of rows that the file may be found with is stored raw, with all
 * filters marked as skipped, which is right whether it is partial or not. */
#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/write_private.h"
#include "store/pipeline.h"
#include "store/transaction.h"

#include <stdlib.h>
#include <string.h>

enum {
	HELD_MAX = 1 << 26,  /* bytes of chunks in memory */
	KEPT_MAX = 1 << 23,  /* of those that stay when all is in the file */
	CHUNK_MAX = 1 << 30, /* of a filtered chunk */
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

/* ---- single chunks ---- */

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

static int place_at(struct h5_dataset_writer *w, const uint64_t *scaled, struct h5_place **place)
{
	struct h5_chunked_writer *c = &w->chunked;
	struct h5_chunk chunk;
	int rc;

	*place = h5_places_find(&c->places, scaled);
	if (*place)
		return 0;
	rc = h5_chunk_index_lookup(c->index, scaled, &chunk);
	if (!rc)
		rc = check_stored(w, &chunk);
	return rc ? rc : h5_places_add(&c->places, scaled, &chunk, place);
}

/* Gets the chunk's bytes into memory; `whole`: all that lies inside the dataset will be overwritten. */
static int hold(struct h5_dataset_writer *w, struct h5_place *place, bool whole)
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

/* The chunk lies in new space from now on, as these bytes. */
static int move(struct h5_dataset_writer *w, struct h5_place *place, struct h5_chunk *chunk,
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
	if (!rc)
		rc = h5_chunk_index_set(w->chunked.index, place->scaled, chunk);
	if (rc) {
		h5_tx_free(w->file, chunk->address, chunk->size);
		return rc;
	}
	if (old.address != H5_UNDEF)
		h5_tx_free(w->file, old.address, old.size);
	place->stored = *chunk;
	w->index_changed = true;
	return 0;
}

static int store(struct h5_dataset_writer *w, struct h5_place *place)
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
		rc = move(w, place, &chunk, encoded ? encoded : place->data);
	free(encoded);
	return rc;
}

/* What the file does not have of the chunk goes there. */
static int flush_place(struct h5_dataset_writer *w, struct h5_place *place)
{
	uint64_t address = place->stored.address;
	int rc;

	if (place->begin == place->end)
		return 0;
	if (w->chunked.filters || address == H5_UNDEF) {
		rc = store(w, place);
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

static void mark(struct h5_dataset_writer *w, struct h5_place *place, uint64_t begin, uint64_t end)
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

/* Flushes the chunks and lets go of them: all, or those that end before the last row. */
static int release(struct h5_dataset_writer *w, bool all)
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
		rc = flush_place(w, *at);
		if (!rc)
			h5_places_remove(&c->places, at);
	}
	return rc;
}

static int limit_held(struct h5_dataset_writer *w)
{
	int rc = 0;

	if (w->chunked.places.bytes > HELD_MAX)
		rc = release(w, false);
	if (!rc && w->chunked.places.bytes > HELD_MAX / 2)
		rc = release(w, true);
	return rc;
}

/* ---- ranges ---- */

struct request {
	struct h5_dataset_writer *w;
	struct h5_place *place;
	const uint8_t *data; /* NULL: the fill value, where something is stored */
	uint64_t offset;     /* of data in the dataset */
};

static int gather_run(void *arg, uint64_t from, uint64_t to, size_t n)
{
	const struct request *q = arg;

	if (q->data)
		memcpy(q->place->data + from, q->data + (to - q->offset), n);
	else
		h5_dataset_fill(q->w->dataset, to, q->place->data + from, n);
	mark(q->w, q->place, from, from + n);
	return 0;
}

static int write_run(void *arg, uint64_t from, uint64_t to, size_t n)
{
	const struct request *q = arg;
	uint64_t address = q->place->stored.address + from;

	return q->data ? h5_tx_write(q->w->file, address, q->data + (to - q->offset), n)
		       : h5_write_fill_value(q->w, address, to, n);
}

/* Into the stored chunk, or a new one that is too large for memory. */
static int write_directly(struct request *q, const struct h5_part *part)
{
	struct h5_dataset_writer *w = q->w;
	int rc = 0;

	if (q->place->stored.address == H5_UNDEF) {
		struct h5_chunk chunk = {.size = w->dataset->chunk_size};

		rc = move(w, q->place, &chunk, NULL);
	}
	if (!rc)
		rc = h5_part_walk(part, write_run, q);
	h5_tx_forget(w->file, q->place->stored.address);
	return rc;
}

static bool is_direct(const struct h5_dataset_writer *w, const struct h5_place *place,
		      const struct h5_part *part)
{
	if (w->chunked.filters || place->data)
		return false;
	return w->dataset->chunk_size > H5_DIRECT_CHUNK ||
	       (place->stored.address != H5_UNDEF && part->run >= H5_DIRECT_RUN);
}

static int write_part(void *arg, const struct h5_part *part)
{
	struct request *q = arg;
	struct h5_dataset_writer *w = q->w;
	int rc = place_at(w, part->scaled, &q->place);

	if (!rc && !q->data)
		rc = h5_interrupt_check();
	if (rc)
		return rc;
	if (q->data || q->place->data || q->place->stored.address != H5_UNDEF) {
		if (is_direct(w, q->place, part)) {
			rc = write_directly(q, part);
		} else {
			if (!q->place->data)
				rc = hold(w, q->place, h5_part_is_whole(part));
			if (!rc)
				rc = h5_part_walk(part, gather_run, q);
		}
	}
	return rc ? rc : limit_held(w);
}

static int chunked_write(struct h5_dataset_writer *w, uint64_t offset, const uint8_t *data, size_t n)
{
	struct request q = {.w = w, .data = data, .offset = offset};

	return h5_grid_walk(&w->chunked.grid, offset, n, write_part, &q);
}

/* Rows become the fill value where something is stored for them. */
static int clear_rows(struct h5_dataset_writer *w, uint64_t first, uint64_t end)
{
	struct request q = {.w = w};

	return h5_grid_walk(&w->chunked.grid, first * w->row, (end - first) * w->row, write_part, &q);
}

/* The first row of the next chunk, or `most`, where that comes first. */
static uint64_t chunk_end(const struct h5_chunked_writer *c, uint64_t row, uint64_t most)
{
	uint64_t rest = row % c->grid.chunk[0];

	return row + h5_min(rest ? c->grid.chunk[0] - rest : 0, most - row);
}

/* Where rows from `first` on may be stored though they are not in the dataset: to the end of the last chunk,
 * or everywhere. */
static uint64_t stale_end(const struct h5_chunked_writer *c, uint64_t first, uint64_t most)
{
	return c->keeps ? most : chunk_end(c, first, most);
}

/* ---- dimension 0 ---- */

static void set_rows(struct h5_dataset_writer *w, uint64_t rows)
{
	w->chunked.grid.dims[0] = rows;
	h5_chunk_index_resize(w->chunked.index, w->chunked.grid.dims);
}

/* Extents of chunks that were removed. */
struct removed {
	uint64_t address, size;
};

static int add_removed(void *arg, const struct h5_chunk *chunk)
{
	struct removed one = {chunk->address, chunk->size}, last;
	struct h5_buf *list = arg;

	/* Most lie side by side. */
	if (list->size) {
		memcpy(&last, list->data + list->size - sizeof last, sizeof last);
		if (last.address + last.size == one.address) {
			last.size += one.size;
			memcpy(list->data + list->size - sizeof last, &last, sizeof last);
			return 0;
		}
	}
	/* Without memory for it, the space is lost. */
	h5_buf_add(list, &one, sizeof one);
	return 0;
}

static int ignore_removed(void *arg, const struct h5_chunk *chunk)
{
	(void)arg;
	(void)chunk;
	return 0;
}

/* Removes the chunks behind the last row. `discard`: what becomes of their space; NULL: it is lost, since who
 * left them there may have freed it. */
static int trim(struct h5_dataset_writer *w, void (*discard)(struct h5_file *, uint64_t, uint64_t))
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t first = w->rows / c->grid.chunk[0] + (w->rows % c->grid.chunk[0] != 0);
	struct h5_buf list;
	int rc;

	if (c->keeps)
		return 0;

	h5_buf_init(&list, SIZE_MAX);
	rc = h5_chunk_index_trim(c->index, first, discard ? add_removed : ignore_removed, &list);
	for (size_t i = 0; !rc && i < list.size; i += sizeof(struct removed)) {
		struct removed one;

		memcpy(&one, list.data + i, sizeof one);
		discard(w->file, one.address, one.size);
		w->index_changed = true;
	}
	h5_buf_release(&list);
	c->keeps = rc == -ENOTSUP;
	if (c->keeps)
		rc = 0;
	c->trimmed = !rc;
	return rc;
}

/* Forgets what is in memory of chunks from the row on. */
static void drop_from(struct h5_dataset_writer *w, uint64_t row)
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

/* After growing from w->rows has failed: nothing of it stays. Where that fails too, the next growth sees to
 * it. */
static void undo_growth(struct h5_dataset_writer *w)
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t end = stale_end(c, w->rows, c->grid.dims[0]);
	struct h5_error cause = *h5_error_last();

	(void)clear_rows(w, w->rows, end);
	drop_from(w, end);
	set_rows(w, w->rows);
	(void)trim(w, h5_tx_free);
	(void)h5_fail(cause.code, cause.address, "%s", cause.text);
}

static int grow(struct h5_dataset_writer *w, uint64_t rows, const uint8_t *data)
{
	struct h5_chunked_writer *c = &w->chunked;
	int rc = c->trimmed ? 0 : trim(w, NULL);

	if (rc)
		return rc;
	set_rows(w, rows);
	/* Invariant 2: stale rows are overwritten, or become the fill value, before they are uncovered. */
	if (data)
		rc = chunked_write(w, w->rows * w->row, data, (size_t)((rows - w->rows) * w->row));
	else
		rc = clear_rows(w, w->rows, stale_end(c, w->rows, rows));
	if (rc)
		undo_growth(w);
	else
		w->rows = rows;
	return rc;
}

static int touch_part(void *arg, const struct h5_part *part)
{
	struct h5_dataset_writer *w = arg;
	struct h5_place *place;
	int rc = place_at(w, part->scaled, &place);

	if (rc || (!place->data && place->stored.address == H5_UNDEF))
		return rc;
	if (!place->data)
		rc = hold(w, place, false);
	if (rc)
		return rc;
	mark(w, place, 0, w->dataset->chunk_size);
	return limit_held(w);
}

/* Stores the chunks between these rows anew: whether they are filtered has changed. */
static int store_again(struct h5_dataset_writer *w, uint64_t first, uint64_t end)
{
	return h5_grid_walk(&w->chunked.grid, first * w->row, (end - first) * w->row, touch_part, w);
}

static int commit(struct h5_dataset_writer *w)
{
	int rc = h5_dataset_writer_settle(w);

	if (!rc)
		rc = h5_tx_commit(w->file);
	if (!rc)
		w->chunked.visible = w->settled;
	return rc;
}

int h5_chunked_grow(struct h5_dataset_writer *w, uint64_t rows, const uint8_t *data)
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t first = w->rows - w->rows % c->grid.chunk[0], end = chunk_end(c, w->rows, rows);
	bool completed = c->edges && first < w->settled && end - first == c->grid.chunk[0];
	int rc = grow(w, rows, data);

	/* The last chunks had to stay raw, but not for ever. That the rows are there does not hang on it. */
	if (!rc && completed && !commit(w))
		(void)store_again(w, first, end);
	return rc;
}

/* Stores chunks that become partial raw, while they are not yet. */
static int unfilter_last(struct h5_dataset_writer *w, uint64_t rows)
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t first = rows - rows % c->grid.chunk[0];
	int rc;

	if (!c->edges || first == rows)
		return 0;
	c->grid.dims[0] = rows;
	rc = store_again(w, first, rows);
	if (!rc)
		rc = release(w, true);
	c->grid.dims[0] = w->rows;
	return rc;
}

/* Rows behind the last one become the fill value, or are not stored any more. */
static int clean(struct h5_dataset_writer *w, uint64_t before)
{
	struct h5_chunked_writer *c = &w->chunked;
	int rc = trim(w, h5_tx_discard);

	if (rc)
		return rc;
	c->grid.dims[0] = before;
	rc = clear_rows(w, w->rows, stale_end(c, w->rows, before));
	if (!rc)
		rc = release(w, true);
	c->grid.dims[0] = w->rows;
	return rc;
}

int h5_chunked_shrink(struct h5_dataset_writer *w, uint64_t rows)
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t before = w->rows;
	int rc = commit(w);

	if (!rc)
		rc = unfilter_last(w, rows);
	if (!rc)
		rc = release(w, true);
	if (rc)
		return rc;
	w->rows = rows;
	set_rows(w, rows);
	rc = commit(w);
	if (rc) {
		w->rows = before;
		set_rows(w, before);
		return rc;
	}
	/* The rows are gone. Where the rest fails, the next growth sees to it. */
	if (clean(w, before) || commit(w))
		c->trimmed = false;
	return 0;
}

/* ---- the whole ---- */

static int chunked_flush(struct h5_dataset_writer *w)
{
	struct h5_chunked_writer *c = &w->chunked;
	const struct h5_chunk_layout *now = h5_chunk_index_layout(c->index), *was = &w->layout.chunked;
	int rc = release(w, false);

	for (struct h5_place *place = c->places.first; place && !rc; place = place->next)
		rc = flush_place(w, place);
	if (!rc && c->places.bytes > KEPT_MAX)
		rc = release(w, true);
	if (now->address != was->address || now->single.size != was->single.size ||
	    now->single.filter_mask != was->single.filter_mask) {
		w->layout.chunked = *now;
		w->layout_changed = true;
	}
	return rc;
}

static int chunked_open(struct h5_dataset_writer *w)
{
	const struct h5_dataset *dataset = w->dataset;
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;
	struct h5_chunked_writer *c = &w->chunked;
	int rc = h5_write_needs(w, H5_MSG_LAYOUT);

	c->filters = dataset->pipeline.count;
	c->edges = c->filters && layout->unfiltered_edges;
	c->keeps = layout->index == H5_INDEX_IMPLICIT;
	c->visible = w->rows;
	h5_grid_init(&c->grid, layout->rank, dataset->space.dims, layout->dims, dataset->type->size);
	h5_places_init(&c->places, layout->rank, dataset->chunk_size);
	if (!rc)
		rc = h5_write_needs(w, H5_MSG_DATASPACE);
	if (!rc && layout->index == H5_INDEX_BTREE1 && h5_tx_is_swmr(w->file))
		rc = h5_fail(-ENOTSUP, w->address,
			     "dataset: its version 1 B-tree cannot be read along (swmr)");
	if (!rc && c->filters)
		rc = h5_pipeline_can_encode(&dataset->pipeline);
	if (!rc && c->filters && dataset->chunk_size > CHUNK_MAX)
		rc = h5_fail(-ENOTSUP, w->address, "dataset: filtered chunks of %ju bytes",
			     (uintmax_t)dataset->chunk_size);
	if (!rc)
		rc = h5_chunk_index_open(w->file, dataset->layout.version, layout, &dataset->space,
					 c->filters, dataset->chunk_size, &c->index);
	if (!rc)
		rc = h5_chunk_index_can_change(c->index);
	/* `visible` holds for what is committed. */
	if (!rc && c->edges)
		rc = h5_tx_commit(w->file);
	return rc;
}

static void chunked_close(struct h5_dataset_writer *w)
{
	h5_chunk_index_close(w->chunked.index);
	h5_places_release(&w->chunked.places);
}

const struct h5_write_ops h5_write_chunked = {chunked_open, chunked_write, chunked_flush, chunked_close};

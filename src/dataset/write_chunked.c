/* Ranges of the bytes of chunked data. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "dataset/write_private.h"
#include "store/pipeline.h"

#include <string.h>

enum {
	KEPT_MAX = 1 << 23, /* bytes of chunks in memory that stay when all is in the file */
};

struct request {
	struct h5_dataset_writer *w;
	const uint8_t *data; /* NULL: the fill value */
	bool stored_only;    /* data is NULL: chunks that are not stored stay so */
	uint64_t offset;     /* of data in the dataset */
	struct h5_chunk_run run;
};

/* Into the stored chunk, or a new one that is too large for memory. */
static int write_directly(const struct request *q, struct h5_place *place, const struct h5_part *part)
{
	struct h5_dataset_writer *w = q->w;
	struct h5_run_iterator runs;
	int rc = 0;

	if (place->stored.address == H5_UNDEF) {
		struct h5_chunk chunk = {.size = w->dataset->chunk_size};

		rc = h5_chunked_move(w, place, &chunk, NULL);
		if (!q->data)
			return rc;
	}
	h5_run_begin(&runs, part);
	while (!rc && h5_run_next(&runs)) {
		const struct h5_part_run *run = &runs.run;
		uint64_t address = place->stored.address + run->in_chunk;

		rc = q->data ? h5_tx_write(w->file, address, q->data + (run->in_dataset - q->offset), run->n)
			     : h5_write_fill_value(w, address, run->in_dataset, run->n);
		if (!rc)
			h5_chunked_cover(w, place, run->in_chunk, run->in_chunk + run->n);
	}
	h5_tx_forget(w->file, place->stored.address);
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

/* Into the chunk in memory. */
static int gather(const struct request *q, struct h5_place *place, const struct h5_part *part)
{
	struct h5_run_iterator runs;
	int rc = place->data ? 0 : h5_chunked_hold(q->w, place, h5_part_is_whole(part));

	if (rc)
		return rc;
	h5_run_begin(&runs, part);
	while (h5_run_next(&runs)) {
		const struct h5_part_run *run = &runs.run;
		uint8_t *bytes = place->data + run->in_chunk;

		if (q->data)
			memcpy(bytes, q->data + (run->in_dataset - q->offset), run->n);
		else
			h5_dataset_fill(q->w->dataset, run->in_dataset, bytes, run->n);
		h5_chunked_mark(q->w, place, run->in_chunk, run->in_chunk + run->n);
	}
	return 0;
}

/* True: the index has space for the chunk, but none of its rows has been in the dataset, so that anything may
 * stand there. */
static bool is_raw_space(const struct h5_dataset_writer *w, const struct h5_place *place)
{
	const struct h5_chunked_writer *c = &w->chunked;

	return c->keeps && !place->data && place->stored.address != H5_UNDEF &&
	       place->scaled[0] * c->grid.chunk[0] >= w->rows;
}

/* The chunk's space gets the fill value: its other rows, too, must have it when another program uncovers
 * them. */
static int fill_space(struct h5_dataset_writer *w, const struct h5_place *place)
{
	uint64_t address = place->stored.address, size = w->dataset->chunk_size;
	int rc = h5_write_fill_value(w, address, 0, size);

	if (!rc)
		h5_chunked_cover(w, place, 0, size);
	h5_tx_forget(w->file, address);
	return rc;
}

/* All of the chunk, which joins the run of its neighbours. */
static int add_whole(struct request *q, struct h5_place *place, const struct h5_part *part)
{
	struct h5_run_iterator runs;

	h5_run_begin(&runs, part);
	h5_run_next(&runs);
	return h5_chunk_run_add(q->w, &q->run, place, q->data + (runs.run.in_dataset - q->offset));
}

static int write_part(struct request *q, const struct h5_part *part)
{
	struct h5_dataset_writer *w = q->w;
	struct h5_place *place;
	int rc = h5_chunked_place(w, part->scaled, &place);

	if (!rc && !q->data)
		rc = h5_interrupt_check();
	if (!rc && h5_chunked_is_short(w, place))
		rc = h5_chunked_widen(w, place, h5_part_is_whole(part));
	if (!rc && is_raw_space(w, place) && part->run != w->dataset->chunk_size)
		rc = fill_space(w, place);
	if (rc)
		return rc;
	/* One run of so many bytes is all of the chunk. */
	if (q->data && !w->chunked.filters && !place->data && part->run == w->dataset->chunk_size)
		rc = add_whole(q, place, part);
	else if (q->stored_only && !place->data && place->stored.address == H5_UNDEF)
		rc = 0; /* it reads as the fill value */
	else
		rc = is_direct(w, place, part) ? write_directly(q, place, part) : gather(q, place, part);
	if (!rc && h5_chunked_is_full(w))
		rc = h5_chunk_run_end(w, &q->run);
	return rc ? rc : h5_chunked_limit(w);
}

static int open_index(struct h5_dataset_writer *w, const struct h5_chunk_layout *layout)
{
	struct h5_dataspace space = w->dataset->space;
	struct h5_chunk_index *index;
	int rc;

	space.dims[0] = w->chunked.grid.dims[0];
	rc = h5_chunk_index_open(w->file, w->layout.version, layout, &space, w->chunked.filters,
				 w->dataset->chunk_size, &index);
	if (rc)
		return rc;
	h5_chunk_index_close(w->chunked.index);
	w->chunked.index = index;
	return 0;
}

/* An implicit index has nothing where the dataset was made without rows: all chunks that there may be get
 * their places at once. */
static int make_places(struct h5_dataset_writer *w)
{
	const struct h5_dataspace *space = &w->dataset->space;
	struct h5_chunk_layout layout = *h5_chunk_index_layout(w->chunked.index);
	uint64_t bytes = w->dataset->chunk_size;
	int rc;

	for (unsigned i = 0; i < layout.rank; i++)
		if (!h5_mul(bytes, space->max[i] / layout.dims[i] + (space->max[i] % layout.dims[i] != 0),
			    &bytes))
			return h5_fail(-EUCLEAN, w->address, "dataset: more than 2^64 bytes of chunks");
	rc = h5_tx_allocate(w->file, H5_ALLOCATE_RAW, bytes, &layout.address);
	if (rc)
		return rc;
	rc = h5_write_fill_value(w, layout.address, 0, bytes);
	if (!rc)
		rc = open_index(w, &layout);
	if (rc) {
		h5_tx_free(w->file, layout.address, bytes);
		return rc;
	}
	w->index_changed = true;
	h5_chunked_drop(w, 0); /* that they were nowhere */
	return 0;
}

/* n bytes at the offset: the data, or (NULL) the fill value. */
static int write_range(struct h5_dataset_writer *w, uint64_t offset, const uint8_t *data, uint64_t n,
		       bool stored_only)
{
	const struct h5_chunk_layout *layout = h5_chunk_index_layout(w->chunked.index);
	struct h5_part_iterator parts;
	struct request q;
	int rc = 0;

	q.w = w;
	q.data = data;
	q.stored_only = stored_only;
	q.offset = offset;
	q.run.count = 0;
	if (!stored_only && layout->index == H5_INDEX_IMPLICIT && layout->address == H5_UNDEF)
		rc = make_places(w);
	h5_part_begin(&parts, &w->chunked.grid, offset, n);
	while (!rc && (rc = h5_part_next(&parts)) > 0)
		rc = write_part(&q, &parts.part);
	if (!rc)
		rc = h5_chunk_run_end(w, &q.run);
	h5_chunk_run_drop(w, &q.run);
	return rc;
}

int h5_chunked_write(struct h5_dataset_writer *w, uint64_t offset, const uint8_t *data, size_t n)
{
	return write_range(w, offset, data, n, false);
}

int h5_chunked_clear(struct h5_dataset_writer *w, uint64_t first, uint64_t end)
{
	return write_range(w, first * w->row, NULL, (end - first) * w->row, true);
}

int h5_chunked_fill(struct h5_dataset_writer *w, uint64_t first, uint64_t end)
{
	return write_range(w, first * w->row, NULL, (end - first) * w->row, false);
}

/* Marks the chunk as changed, if there is one. */
static int touch_chunk(struct h5_dataset_writer *w, const uint64_t *scaled)
{
	struct h5_place *place;
	int rc = h5_chunked_place(w, scaled, &place);

	if (rc || (!place->data && place->stored.address == H5_UNDEF))
		return rc;
	if (!place->data)
		rc = h5_chunked_hold(w, place, false);
	if (rc)
		return rc;
	h5_chunked_mark(w, place, 0, w->dataset->chunk_size);
	return h5_chunked_limit(w);
}

int h5_chunked_store_again(struct h5_dataset_writer *w, uint64_t first, uint64_t end)
{
	struct h5_part_iterator parts;
	int rc = 0;

	h5_part_begin(&parts, &w->chunked.grid, first * w->row, (end - first) * w->row);
	while (!rc && (rc = h5_part_next(&parts)) > 0)
		rc = touch_chunk(w, parts.part.scaled);
	return rc;
}

/* ---- the whole ---- */

static int chunked_flush(struct h5_dataset_writer *w)
{
	struct h5_chunked_writer *c = &w->chunked;
	const struct h5_chunk_layout *now = h5_chunk_index_layout(c->index), *was = &w->layout.chunked;
	int rc;

	if (c->unclean)
		(void)h5_chunked_clean(w);
	rc = h5_chunked_release(w, false);
	if (!rc)
		rc = h5_chunked_store(w, true);
	if (!rc && c->places.bytes > KEPT_MAX)
		rc = h5_chunked_release(w, true);
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
	if (!rc && c->filters)
		rc = h5_pipeline_check_size(w->file, dataset->pipeline.count, w->address,
					    dataset->chunk_size);
	if (!rc)
		rc = open_index(w, layout);
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

const struct h5_write_ops h5_write_chunked = {chunked_open, h5_chunked_write, chunked_flush, chunked_close};

/* Writing chunked data: ranges of its bytes, and its rows (dimension 0). The numbers of invariants are those
 * of doc/writing.md. */
#include "base/checked.h"
#include "base/error.h"
#include "base/extents.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "dataset/chunk_cache.h"
#include "dataset/chunked_store.h"
#include "dataset/structured.h"
#include "store/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEPT_MAX = 1 << 23, /* most bytes of chunks that stay in memory after all is in the file */
};

struct request {
	struct h5_dataset_writer *writer;
	const uint8_t *data; /* NULL: the fill value */
	bool stored_only;    /* data is NULL: skip chunks that are not stored */
	bool removes;	     /* data is NULL: remove chunks all of whose bytes are meant */
	uint64_t offset;     /* of the first byte of data in the dataset */
	struct h5_chunk_run run;
};

/* Writes into the stored chunk; or into a new one, if chunks are too large for memory. */
static int write_directly(const struct request *request, struct h5_known_chunk *known,
			  const struct h5_part *part)
{
	struct h5_dataset_writer *writer = request->writer;
	struct h5_run_iterator runs;
	int rc = 0;

	if (known->stored.address == H5_UNDEF) {
		struct h5_chunk chunk = {.size = writer->dataset->chunk_size};

		rc = h5_chunked_move(writer, known, &chunk, NULL);
		if (!request->data)
			return rc;
	}
	h5_run_begin(&runs, part);
	while (!rc && h5_run_next(&runs)) {
		const struct h5_part_run *run = &runs.run;
		uint64_t address = known->stored.address + run->in_chunk;

		rc = request->data ? h5_tx_write(writer->file, address,
						 request->data + (run->in_dataset - request->offset), run->n)
				   : h5_write_fill_value(writer, address, run->in_dataset, run->n);
		if (!rc)
			h5_chunked_cover(writer, known, run->in_chunk, run->in_chunk + run->n);
	}
	h5_tx_forget(writer->file, known->stored.address);
	return rc;
}

static bool is_direct(const struct h5_dataset_writer *writer, const struct h5_known_chunk *known,
		      const struct h5_part *part)
{
	if (h5_chunked_of(writer)->encodes || known->data)
		return false;
	return writer->dataset->chunk_size > H5_DIRECT_CHUNK ||
	       (known->stored.address != H5_UNDEF && part->run >= H5_DIRECT_RUN);
}

/* Writes into the chunk in memory. The fill value in a structured chunk means that elements are not defined.
 */
static int gather(const struct request *request, struct h5_known_chunk *known, const struct h5_part *part)
{
	const struct h5_dataset *dataset = request->writer->dataset;
	struct h5_run_iterator runs;
	int rc = known->data ? 0 : h5_chunked_hold(request->writer, known, h5_part_is_whole(part));

	if (rc)
		return rc;
	h5_run_begin(&runs, part);
	while (h5_run_next(&runs)) {
		const struct h5_part_run *run = &runs.run;
		uint8_t *bytes = known->data + run->in_chunk;

		if (request->data) {
			memcpy(bytes, request->data + (run->in_dataset - request->offset), run->n);
			h5_structured_define(dataset, known->data, run->in_chunk, run->n);
		} else {
			h5_dataset_fill(dataset, run->in_dataset, bytes, run->n);
			(void)h5_structured_erase(dataset, known->data, run->in_chunk, run->n);
		}
		h5_chunked_mark(request->writer, known, run->in_chunk, run->in_chunk + run->n);
	}
	return 0;
}

/* True: the chunk has space, but none of its rows has been in the dataset, so the space may contain
 * anything. */
static bool is_raw_space(const struct h5_dataset_writer *writer, const struct h5_known_chunk *known)
{
	const struct h5_chunked_writer *state = h5_chunked_of(writer);

	return state->keeps && !known->data && known->stored.address != H5_UNDEF &&
	       known->scaled[0] * state->grid.chunk[0] >= writer->rows;
}

/* Fills the space of the chunk: its other rows must have the fill value when another program makes the
 * dataset larger. */
static int fill_space(struct h5_dataset_writer *writer, const struct h5_known_chunk *known)
{
	uint64_t address = known->stored.address, size = writer->dataset->chunk_size;
	int rc = h5_write_fill_value(writer, address, 0, size);

	if (!rc)
		h5_chunked_cover(writer, known, 0, size);
	h5_tx_forget(writer->file, address);
	return rc;
}

/* Adds the chunk to the run of its neighbours. The part is the whole chunk. */
static int add_whole(struct request *request, struct h5_known_chunk *known, const struct h5_part *part)
{
	struct h5_run_iterator runs;

	h5_run_begin(&runs, part);
	h5_run_next(&runs);
	return h5_chunk_run_add(request->writer, &request->run, known,
				request->data + (runs.run.in_dataset - request->offset));
}

static int write_part(struct request *request, const struct h5_part *part)
{
	struct h5_dataset_writer *writer = request->writer;
	struct h5_known_chunk *known;
	int rc = h5_chunked_know(writer, part->scaled, &known);

	if (!rc && !request->data)
		rc = h5_interrupt_check();
	if (!rc && request->removes && h5_part_is_whole(part)) {
		rc = h5_chunked_remove(writer, known);
		return rc ? rc : h5_chunked_limit(writer);
	}
	if (!rc && h5_chunked_is_short(writer, known))
		rc = h5_chunked_widen(writer, known, h5_part_is_whole(part));
	if (!rc && is_raw_space(writer, known) && part->run != writer->dataset->chunk_size)
		rc = fill_space(writer, known);
	if (rc)
		return rc;
	/* A run of so many bytes is the whole chunk. */
	if (request->data && !h5_chunked_of(writer)->encodes && !known->data &&
	    part->run == writer->dataset->chunk_size)
		rc = add_whole(request, known, part);
	else if (request->stored_only && !known->data && known->stored.address == H5_UNDEF)
		rc = 0; /* the chunk reads as the fill value */
	else
		rc = is_direct(writer, known, part) ? write_directly(request, known, part)
						    : gather(request, known, part);
	if (!rc && h5_chunked_is_full(writer))
		rc = h5_chunk_run_end(writer, &request->run);
	return rc ? rc : h5_chunked_limit(writer);
}

/* What becomes of the bytes of a range. */
enum change {
	WRITE,	     /* they are data, or (NULL) the fill value */
	CLEAR_ROWS,  /* the fill value, if anything is stored for them */
	CLEAR_CHUNKS /* the same, and whole chunks are removed */
};

/* Writes n bytes at the offset, inside the grid. */
static int write_range(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data, uint64_t n,
		       enum change change)
{
	const struct h5_chunk_layout *layout = h5_chunk_index_layout(h5_chunked_of(writer)->index);
	bool stored_only = change != WRITE;
	struct h5_part_iterator parts;
	struct request request;
	int rc = 0;

	request.writer = writer;
	request.data = data;
	request.stored_only = stored_only;
	request.removes = change == CLEAR_CHUNKS;
	request.offset = offset;
	request.run.count = 0;
	if (!stored_only && h5_chunked_of(writer)->keeps && layout->address == H5_UNDEF)
		rc = h5_chunked_allocate_all(writer);
	h5_part_begin(&parts, &h5_chunked_of(writer)->grid, offset, n);
	while (!rc && (rc = h5_part_next(&parts)) > 0)
		rc = write_part(&request, &parts.part);
	if (!rc)
		rc = h5_chunk_run_end(writer, &request.run);
	h5_chunk_run_drop(writer, &request.run);
	return rc;
}

static int chunked_write(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data, size_t n)
{
	return write_range(writer, offset, data, n, WRITE);
}

/* SWMR readers, and libhdf5 with early allocation, rely on chunks that stay. */
static int chunked_punch(struct h5_dataset_writer *writer, uint64_t offset, uint64_t n)
{
	bool stays = h5_chunked_of(writer)->keeps || writer->dataset->early || h5_tx_is_swmr(writer->file);

	return write_range(writer, offset, NULL, n, stays ? CLEAR_ROWS : CLEAR_CHUNKS);
}

/* The rows from `first` to before `end` become the fill value if something is stored for them. */
static int clear_rows(struct h5_dataset_writer *writer, uint64_t first, uint64_t end)
{
	return write_range(writer, first * writer->row, NULL, (end - first) * writer->row, CLEAR_ROWS);
}

/* These rows become the fill value, and chunks that are not stored get space. */
static int fill_rows(struct h5_dataset_writer *writer, uint64_t first, uint64_t end)
{
	return write_range(writer, first * writer->row, NULL, (end - first) * writer->row, WRITE);
}

/* Marks all of the chunk as changed, if it is stored or in memory. */
static int touch_chunk(struct h5_dataset_writer *writer, const uint64_t *scaled)
{
	struct h5_known_chunk *known;
	int rc = h5_chunked_know(writer, scaled, &known);

	if (rc || (!known->data && known->stored.address == H5_UNDEF))
		return rc;
	if (!known->data)
		rc = h5_chunked_hold(writer, known, false);
	if (rc)
		return rc;
	h5_chunked_mark(writer, known, 0, writer->dataset->chunk_size);
	return h5_chunked_limit(writer);
}

/* Makes the chunks of these rows be stored again, since they are filtered now, or not any more. */
static int store_again(struct h5_dataset_writer *writer, uint64_t first, uint64_t end)
{
	struct h5_part_iterator parts;
	int rc = 0;

	h5_part_begin(&parts, &h5_chunked_of(writer)->grid, first * writer->row, (end - first) * writer->row);
	while (!rc && (rc = h5_part_next(&parts)) > 0)
		rc = touch_chunk(writer, parts.part.scaled);
	return rc;
}

/* ---- dimension 0 ---- */

/* The first row of a chunk from `row` on; at most `most`. */
static uint64_t chunk_end(const struct h5_chunked_writer *state, uint64_t row, uint64_t most)
{
	uint64_t rest = row % state->grid.chunk[0];

	return row + h5_min(rest ? state->grid.chunk[0] - rest : 0, most - row);
}

/* Stale rows may be stored though they are not in the dataset. Those from row `first` on end with the last
 * chunk, or at `most` if chunks are never removed. */
static uint64_t stale_end(const struct h5_chunked_writer *state, uint64_t first, uint64_t most)
{
	return state->keeps ? most : chunk_end(state, first, most);
}

static void set_rows(struct h5_dataset_writer *writer, uint64_t rows)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);

	state->grid.dims[0] = rows;
	h5_chunk_index_resize(state->index, state->grid.dims);
}

/* Adds the space of a removed chunk to the list `arg`. It is lost if that is NULL, or if there is no memory.
 */
static int note_removed(void *arg, const struct h5_chunk *chunk)
{
	if (arg)
		(void)h5_extents_add(arg, chunk->address, chunk->size);
	return 0;
}

/* Removes the chunks after the last row. `discard` gives up their space. NULL: the space is lost; these
 * chunks were there when the dataset was opened, and the program that left them there may have freed it. */
static int trim(struct h5_dataset_writer *writer, void (*discard)(struct h5_file *, uint64_t, uint64_t))
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	uint64_t first = writer->rows / state->grid.chunk[0] + (writer->rows % state->grid.chunk[0] != 0);
	struct h5_extents removed = {0};
	int rc;

	if (state->keeps)
		return 0;
	writer->index_changed = true;
	rc = h5_chunk_index_trim(state->index, first, note_removed, discard ? &removed : NULL);
	if (!rc)
		h5_extents_each(e, &removed) discard(writer->file, e->address, e->size);
	h5_extents_release(&removed);
	state->keeps = rc == -ENOTSUP;
	if (state->keeps)
		rc = 0;
	state->trimmed = !rc;
	return rc;
}

/* Undoes a growth from writer->rows that has failed. The next growth overwrites what cannot be undone. */
static void undo_growth(struct h5_dataset_writer *writer)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	uint64_t end = stale_end(state, writer->rows, state->grid.dims[0]);
	struct h5_error cause = *h5_error_last();

	/* This must be done even if the request was interrupted. */
	h5_interrupt_begin(NULL, NULL);
	(void)clear_rows(writer, writer->rows, end);
	h5_chunked_drop(writer, end);
	set_rows(writer, writer->rows);
	(void)trim(writer, h5_tx_free);
	(void)h5_fail(cause.code, cause.address, "%s", cause.text);
}

static int grow(struct h5_dataset_writer *writer, uint64_t rows, const uint8_t *data)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	int rc = state->trimmed ? 0 : trim(writer, NULL);

	assert(rows > writer->rows);
	if (rc)
		return rc;
	set_rows(writer, rows);
	/* Invariant 2: stale rows are overwritten, or become the fill value, before they are uncovered. */
	if (data)
		rc = chunked_write(writer, writer->rows * writer->row, data,
				   (size_t)((rows - writer->rows) * writer->row));
	else if (writer->dataset->early)
		rc = fill_rows(writer, writer->rows, rows);
	else
		rc = clear_rows(writer, writer->rows, stale_end(state, writer->rows, rows));
	if (rc)
		undo_growth(writer);
	else
		writer->rows = rows;
	return rc;
}

static int commit(struct h5_dataset_writer *writer)
{
	int rc = h5_tx_is_writable(writer->file) ? h5_tx_commit(writer->file) : -EROFS;

	if (!rc)
		rc = writer->participant.failure;
	if (!rc)
		h5_chunked_of(writer)->visible = writer->settled;
	return rc;
}

static int chunked_grow(struct h5_dataset_writer *writer, uint64_t rows, const uint8_t *data)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	uint64_t first = writer->rows - writer->rows % state->grid.chunk[0],
		 end = chunk_end(state, writer->rows, rows);
	bool completed = state->edges && first < writer->settled && end - first == state->grid.chunk[0];
	int rc = grow(writer, rows, data);

	/* The chunks that were the last had to be stored raw; now they can be filtered. The rows are there
	 * even if that fails. */
	if (!rc && completed && !commit(writer))
		(void)store_again(writer, first, end);
	return rc;
}

/* Stores raw, in advance, those chunks that will be partial with so many rows. */
static int unfilter_last(struct h5_dataset_writer *writer, uint64_t rows)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	uint64_t first = rows - rows % state->grid.chunk[0];
	int rc;

	if (!state->edges || first == rows)
		return 0;
	state->grid.dims[0] = rows;
	rc = store_again(writer, first, rows);
	if (!rc)
		rc = h5_chunked_release(writer, true);
	state->grid.dims[0] = writer->rows;
	return rc;
}

/* Notes that rows up to this one may still be stored though they are gone; 0: none are. `flush` has to clear
 * them. */
static void set_unclean(struct h5_dataset_writer *writer, uint64_t rows)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);

	writer->dirty += (size_t)(rows != 0) - (size_t)(state->unclean != 0);
	state->unclean = rows;
}

/* After the dataset has shrunk: removes chunks after the last row, and clears the rows of the last chunk that
 * are gone. */
static int clean(struct h5_dataset_writer *writer)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	int rc = h5_tx_touch(writer->file, writer->address);

	if (!rc)
		rc = trim(writer, h5_tx_discard);
	if (!rc && state->unclean > writer->rows) {
		state->grid.dims[0] = state->unclean;
		rc = clear_rows(writer, writer->rows, stale_end(state, writer->rows, state->unclean));
		if (!rc)
			rc = h5_chunked_release(writer, true);
		state->grid.dims[0] = writer->rows;
	}
	if (!rc)
		set_unclean(writer, 0);
	return rc;
}

static int chunked_shrink(struct h5_dataset_writer *writer, uint64_t rows)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	uint64_t before = writer->rows;
	int rc;

	assert(rows < before);
	rc = commit(writer);
	if (!rc)
		rc = unfilter_last(writer, rows);
	if (!rc)
		rc = h5_chunked_release(writer, true);
	if (rc)
		return rc;
	writer->rows = rows;
	set_rows(writer, rows);
	rc = commit(writer);
	if (rc) {
		writer->rows = before;
		set_rows(writer, before);
		return rc;
	}
	/* The rows are gone. If the rest fails, it is tried again whenever the dataset is settled. */
	set_unclean(writer, before);
	h5_interrupt_begin(NULL, NULL);
	if (clean(writer) || commit(writer))
		state->trimmed = false;
	return 0;
}

/* ---- the layout ---- */

static int chunked_flush(struct h5_dataset_writer *writer)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	const struct h5_chunk_layout *now = h5_chunk_index_layout(state->index),
				     *was = &writer->layout.chunked;
	int rc;

	if (state->unclean)
		(void)clean(writer);
	if (h5_dataset_writer_is_to_cut(writer))
		(void)h5_chunked_cut(writer);
	rc = h5_chunked_release(writer, false);
	if (!rc)
		rc = h5_chunked_store(writer, true);
	if (!rc && state->known_bytes > KEPT_MAX)
		rc = h5_chunked_release(writer, true);
	if (now->address != was->address || now->single.size != was->single.size ||
	    now->single.filter_mask != was->single.filter_mask ||
	    memcmp(now->single.metadata, was->single.metadata, sizeof now->single.metadata)) {
		writer->layout.chunked = *now;
		writer->layout_changed = true;
	}
	return rc;
}

static bool chunked_is_possible(const struct h5_dataset *dataset)
{
	if (h5_tx_is_swmr(dataset->file) && !h5_chunk_index_allows_swmr(dataset->layout.chunked.index))
		return false;
	return !dataset->shared_space && !dataset->shared_layout &&
	       !h5_pipeline_can_encode(&dataset->pipeline) && !h5_structured_can_encode(dataset);
}

static int chunked_open(struct h5_dataset_writer *writer)
{
	const struct h5_dataset *dataset = writer->dataset;
	const struct h5_chunk_layout *layout = &writer->layout.chunked;
	struct h5_chunked_writer *state = calloc(1, sizeof *state);
	int rc;

	if (!state)
		return h5_fail(-ENOMEM, writer->address, "dataset: out of memory");
	writer->state = state;
	rc = h5_structured_can_encode(dataset);
	if (rc)
		return rc;
	state->encodes = dataset->pipeline.count || h5_structured_marks(dataset);
	state->edges = (dataset->pipeline.count || dataset->section_pipelines) && layout->unfiltered_edges;
	state->keeps = h5_chunk_index_keeps(layout->index);
	state->visible = writer->rows;
	h5_grid_init(&state->grid, layout->rank, dataset->space.dims, layout->dims, dataset->type->size);
	state->grid.dims[0] = writer->rows;
	rc = h5_write_needs(writer, H5_MSG_LAYOUT);
	if (!rc)
		rc = h5_write_needs(writer, H5_MSG_DATASPACE);
	if (!rc && h5_tx_is_swmr(writer->file) && !h5_chunk_index_allows_swmr(layout->index))
		rc = h5_fail(-ENOTSUP, writer->address,
			     "dataset: SWMR readers cannot follow its version 1 B-tree");
	if (!rc)
		rc = h5_pipeline_can_encode(&dataset->pipeline);
	if (!rc && state->encodes)
		rc = h5_pipeline_check_size(writer->file, dataset->pipeline.count, writer->address,
					    dataset->chunk_size);
	if (!rc)
		rc = h5_chunked_open_index(writer, layout);
	if (!rc)
		rc = h5_chunk_index_can_change(state->index);
	/* `visible` must be the rows of the last commit. */
	if (!rc && state->edges)
		rc = h5_tx_commit(writer->file);
	return rc;
}

static void chunked_show(const struct h5_dataset_writer *writer, struct h5_dataset *copy)
{
	struct h5_chunk_index *index = h5_chunked_of(writer)->index;

	copy->layout.chunked = *h5_chunk_index_layout(index);
	copy->index = copy->layout.chunked.address == H5_UNDEF ? NULL : index;
}

static void chunked_close(struct h5_dataset_writer *writer)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);

	if (!state)
		return;
	h5_chunk_index_close(state->index);
	h5_chunked_drop(writer, 0);
	free(state);
}

const struct h5_write_ops h5_write_chunked = {
	.is_possible = chunked_is_possible,
	.open = chunked_open,
	.write = chunked_write,
	.punch = chunked_punch,
	.grow = chunked_grow,
	.shrink = chunked_shrink,
	.can_reshape = h5_chunked_can_reshape,
	.uncover = h5_chunked_uncover,
	.peek = h5_chunked_peek,
	.flush = chunked_flush,
	.show = chunked_show,
	.close = chunked_close,
};

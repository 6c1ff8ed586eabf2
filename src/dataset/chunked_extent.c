/* Changes of all dimensions of chunked data, by the rules of doc/writing.md. A dataset that becomes smaller
 * has its new dimensions first, and loses chunks and elements in a further commit. One that becomes larger
 * has the fill value everywhere that its new dimensions uncover, before it has these. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/chunk_cache.h"
#include "dataset/chunked_store.h"
#include "dataset/structured.h"

#include <stdlib.h>
#include <string.h>

static unsigned rank_of(const struct h5_dataset_writer *writer)
{
	return writer->dataset->space.rank;
}

/* ---- the chunks of a box ---- */

/* Chunks from the coordinates `low` to before `high`, in their order. */
struct box {
	unsigned rank;
	uint64_t low[H5_RANK_MAX], high[H5_RANK_MAX];
};

/* Moves the coordinates to the first ones in the box that are not before them. False: there are none. */
static bool enter(const struct box *box, uint64_t *at)
{
	unsigned i = 0;

	while (i < box->rank) {
		if (at[i] < box->low[i]) {
			memcpy(at + i, box->low + i, (box->rank - i) * sizeof *at);
			return true;
		}
		if (at[i] < box->high[i]) {
			i++;
			continue;
		}
		/* Those from i on begin anew, after the one before has gone on. */
		if (!i)
			return false;
		memcpy(at + i, box->low + i, (box->rank - i) * sizeof *at);
		at[--i]++;
	}
	return true;
}

static uint64_t chunks_for(uint64_t elements, uint64_t chunk)
{
	return elements / chunk + (elements % chunk != 0);
}

/* Sets the i-th of the boxes that together are all chunks which have elements of `outer` outside of `inner`;
 * no chunk is in two. False: it is empty. */
static bool set_box(const struct h5_chunked_writer *state, const uint64_t *inner, const uint64_t *outer,
		    unsigned i, struct box *box)
{
	const uint64_t *chunk = state->grid.chunk;

	box->rank = state->grid.dims_count - 1;
	for (unsigned k = 0; k < box->rank; k++) {
		/* Chunks that reach beyond `inner` along k are in box k, if not in one before. */
		box->low[k] = k == i ? inner[k] / chunk[k] : 0;
		box->high[k] = k < i ? inner[k] / chunk[k] : chunks_for(outer[k], chunk[k]);
		if (k < i && outer[k] <= inner[k])
			box->high[k] = chunks_for(outer[k], chunk[k]);
		if (box->low[k] >= box->high[k])
			return false;
	}
	return outer[i] > inner[i];
}

/* The index may change after it, so no cursor lives longer. */
static int find_gap(const struct h5_dataset_writer *writer, const uint64_t *scaled, bool *stored,
		    uint64_t *next)
{
	const struct h5_chunk_index *index = h5_chunked_of(writer)->index;
	struct h5_chunk_cursor cursor = {.ref = NULL};
	int rc = h5_chunk_index_gap(index, &cursor, scaled, stored, next);

	h5_chunk_cursor_release(index, &cursor);
	return rc;
}

typedef int visit_chunk(struct h5_dataset_writer *writer, const uint64_t *scaled, const uint64_t *dims);

/* Visits the stored chunks of the box; with `all`, the others, too. */
static int walk_box(struct h5_dataset_writer *writer, const struct box *box, bool all, visit_chunk *visit,
		    const uint64_t *dims)
{
	uint64_t at[H5_RANK_MAX], next[H5_RANK_MAX];
	bool visited = all;
	int rc = 0;

	memcpy(at, box->low, sizeof at);
	while (!rc && enter(box, at)) {
		rc = h5_interrupt_check();
		if (!rc && !all)
			rc = find_gap(writer, at, &visited, next);
		if (rc)
			break;
		if (visited) {
			rc = visit(writer, at, dims);
			at[box->rank - 1]++;
		} else {
			memcpy(at, next, sizeof at);
		}
	}
	return rc;
}

/* Visits chunks that have elements of `outer` outside of `inner`. */
static int walk(struct h5_dataset_writer *writer, const uint64_t *inner, const uint64_t *outer, bool all,
		visit_chunk *visit, const uint64_t *dims)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	struct box box;
	int rc;

	/* The index does not have the chunks yet that are only in memory. */
	rc = h5_chunked_release(writer, true);
	for (unsigned i = 0; i < rank_of(writer) && !rc; i++)
		if (set_box(state, inner, outer, i, &box))
			rc = walk_box(writer, &box, all, visit, dims);
	return rc ? rc : h5_chunked_release(writer, true);
}

/* ---- elements outside of the dimensions ---- */

/* The elements of a chunk, line by line along the last dimension. */
struct lines {
	const struct h5_chunked_writer *state;
	const uint64_t *scaled, *dims;
	uint64_t at[H5_RANK_MAX]; /* of the line in the chunk */
	uint64_t offset;	  /* bytes of the chunk before the line */
};

/* Bytes of the line that lie inside the dimensions: its first ones. */
static uint64_t inside(const struct lines *lines, uint64_t element)
{
	const struct h5_grid *grid = &lines->state->grid;
	unsigned last = grid->dims_count - 2;
	uint64_t first = lines->scaled[last] * grid->chunk[last];

	for (unsigned i = 0; i < last; i++)
		if (lines->scaled[i] * grid->chunk[i] + lines->at[i] >= lines->dims[i])
			return 0;
	return lines->dims[last] <= first ? 0
					  : h5_min(lines->dims[last] - first, grid->chunk[last]) * element;
}

static bool next_line(struct lines *lines, uint64_t bytes)
{
	lines->offset += bytes;
	for (unsigned i = lines->state->grid.dims_count - 2; i-- > 0; lines->at[i] = 0)
		if (++lines->at[i] < lines->state->grid.chunk[i])
			return true;
	return false;
}

/* Writes the fill value into the stored chunk, of which perhaps not all fits into memory. */
static int clear_directly(struct h5_dataset_writer *writer, struct h5_known_chunk *known, struct lines *lines,
			  uint64_t line)
{
	const uint64_t element = writer->dataset->type->size;
	int rc = 0;

	do {
		uint64_t begin = inside(lines, element), at = lines->offset + begin;

		rc = h5_interrupt_check();
		if (!rc && begin < line)
			rc = h5_write_fill_value(writer, known->stored.address + at, at, line - begin);
	} while (!rc && next_line(lines, line));
	h5_tx_forget(writer->file, known->stored.address);
	return rc;
}

/* The same in memory; most chunks have the fill value there already. Elements of structured chunks are not
 * defined there any more. */
static int clear_in_memory(struct h5_dataset_writer *writer, struct h5_known_chunk *known,
			   struct lines *lines, uint64_t line)
{
	const uint64_t element = writer->dataset->type->size;
	uint8_t *fill = malloc((size_t)line);
	int rc = fill ? 0 : h5_fail(-ENOMEM, known->stored.address, "chunk: out of memory");

	if (!rc && !known->data)
		rc = h5_chunked_hold(writer, known, false);
	if (!rc)
		h5_dataset_fill(writer->dataset, 0, fill, (size_t)line);
	while (!rc) {
		uint64_t begin = inside(lines, element), at = lines->offset + begin;
		bool was_defined = h5_structured_erase(writer->dataset, known->data, at, line - begin);

		if (was_defined || (begin < line && memcmp(known->data + at, fill, (size_t)(line - begin)))) {
			memcpy(known->data + at, fill, (size_t)(line - begin));
			h5_chunked_mark(writer, known, at, at + line - begin);
		}
		if (!next_line(lines, line))
			break;
	}
	free(fill);
	return rc ? rc : h5_chunked_limit(writer);
}

/* The elements of the stored chunk outside of the dimensions become the fill value. */
static int clear_outside(struct h5_dataset_writer *writer, const uint64_t *scaled, const uint64_t *dims)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	struct lines lines = {.state = state, .scaled = scaled, .dims = dims};
	const uint64_t line = state->grid.chunk[rank_of(writer) - 1] * writer->dataset->type->size;
	struct h5_known_chunk *known;
	int rc = h5_chunked_know(writer, scaled, &known);

	if (!rc && h5_chunked_is_short(writer, known))
		rc = h5_chunked_widen(writer, known, false);
	if (rc)
		return rc;
	if (!state->encodes && writer->dataset->chunk_size > H5_DIRECT_CHUNK)
		return clear_directly(writer, known, &lines, line);
	return clear_in_memory(writer, known, &lines, line);
}

static bool is_outside(const struct h5_chunked_writer *state, const uint64_t *scaled, const uint64_t *dims)
{
	for (unsigned i = 0; i + 1 < state->grid.dims_count; i++)
		if (scaled[i] * state->grid.chunk[i] >= dims[i])
			return true;
	return false;
}

static int remove_chunk(struct h5_dataset_writer *writer, const uint64_t *scaled, bool gives_up)
{
	const struct h5_chunk none = {.address = H5_UNDEF};
	struct h5_chunk_index *index = h5_chunked_of(writer)->index;
	struct h5_chunk chunk;
	int rc = h5_tx_touch(writer->file, writer->address);

	writer->index_changed = true;
	if (!rc)
		rc = h5_chunk_index_lookup(index, NULL, scaled, &chunk);
	if (!rc)
		rc = h5_chunk_index_set(index, scaled, &none);
	if (!rc && gives_up)
		h5_tx_discard(writer->file, chunk.address, chunk.size);
	return rc;
}

/* The dataset has these dimensions now: what lies outside of them goes. */
static int give_up_outside(struct h5_dataset_writer *writer, const uint64_t *scaled, const uint64_t *dims)
{
	const struct h5_chunked_writer *state = h5_chunked_of(writer);

	return !state->keeps && is_outside(state, scaled, dims) ? remove_chunk(writer, scaled, true)
								: clear_outside(writer, scaled, dims);
}

/* The same for what was there when the dataset was opened, or a change was killed: the program that has left
 * such chunks may have given up their space. */
static int forget_outside(struct h5_dataset_writer *writer, const uint64_t *scaled, const uint64_t *dims)
{
	const struct h5_chunked_writer *state = h5_chunked_of(writer);

	return !state->keeps && is_outside(state, scaled, dims) ? remove_chunk(writer, scaled, false)
								: clear_outside(writer, scaled, dims);
}

/* With early allocation all chunks are stored. */
static int store_fill(struct h5_dataset_writer *writer, const uint64_t *scaled, const uint64_t *dims)
{
	struct h5_known_chunk *known;
	int rc = h5_chunked_know(writer, scaled, &known);

	(void)dims;
	if (rc || known->stored.address != H5_UNDEF)
		return rc;
	if (!h5_chunked_of(writer)->encodes) {
		struct h5_chunk chunk = {.size = writer->dataset->chunk_size};

		rc = h5_chunked_move(writer, known, &chunk, NULL);
	} else {
		rc = h5_chunked_hold(writer, known, false);
		if (!rc)
			h5_chunked_mark(writer, known, 0, writer->dataset->chunk_size);
	}
	return rc ? rc : h5_chunked_limit(writer);
}

/* ---- struct h5_write_ops ---- */

int h5_chunked_can_reshape(const struct h5_dataset_writer *writer)
{
	return h5_chunked_of(writer)->edges ? h5_fail(-ENOTSUP, writer->address,
						      "dataset: with chunks that are not filtered at its "
						      "edges only dimension 0 changes")
					    : 0;
}

int h5_chunked_cut(struct h5_dataset_writer *writer)
{
	uint64_t now[H5_RANK_MAX];
	int rc;

	memcpy(now, writer->dataset->space.dims, sizeof now);
	now[0] = writer->rows;
	rc = walk(writer, now, writer->outer, false, give_up_outside, now);
	writer->is_cut = !rc;
	return rc;
}

int h5_chunked_uncover(struct h5_dataset_writer *writer, const uint64_t *now, const uint64_t *dims)
{
	const struct h5_chunked_writer *state = h5_chunked_of(writer);
	uint64_t elements;
	int rc = 0;

	if (state->keeps && h5_chunk_index_layout(state->index)->address == H5_UNDEF &&
	    h5_product(dims, rank_of(writer), &elements) && elements)
		rc = h5_chunked_allocate_all(writer);
	if (!rc)
		rc = walk(writer, now, dims, false, forget_outside, now);
	if (!rc && writer->dataset->early && !state->keeps)
		rc = walk(writer, now, dims, true, store_fill, dims);
	return rc;
}

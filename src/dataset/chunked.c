/* The layouts of chunked data, and of structured chunks. chunked_check.c verifies them, chunked_seek.c
 * finds their holes, chunked_rows.c writes.
 *
 * A read is cut into parts, one for each chunk. If the chunk is not stored, the part is filled; if it is
 * stored as it is, its runs are read, neighbours together; if it is in the cache, it is copied. Chunks that
 * must be decoded are put aside, and decoded side by side. Of small chunks whole rows are decoded
 * (dataset/chunk_row.h), if the read needs all chunks of a row. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/boxes.h"
#include "dataset/chunk_cache.h"
#include "dataset/chunk_row.h"
#include "dataset/private.h"
#include "dataset/stored_runs.h"
#include "filter/shuffle.h"
#include "store/file_set.h"

#include <stdlib.h>
#include <string.h>

enum {
	TOGETHER = 64, /* most chunks that a read puts aside */
	ENDS = 16,     /* a box at an end of a read has at most the n-th part of its bytes */
};

/* ---- reading ---- */

/* A part whose chunk must be decoded. */
struct aside {
	struct h5_part part;
	struct h5_chunk_wanted wanted;
	bool elsewhere; /* another thread is decoding the chunk */
};

/* A part whose row of chunks must be decoded. */
struct row_aside {
	struct h5_part part;
	uint64_t number;
	bool missing; /* another thread is decoding the row; or a chunk of it cannot be decoded */
};

struct request {
	const struct h5_dataset *dataset;
	struct h5_grid grid; /* of the chunks */
	uint64_t offset;     /* at which buf begins in the dataset */
	uint8_t *buf;
	struct h5_chunk_cursor cursor;
	struct h5_stored_runs runs;
	struct aside *aside; /* TOGETHER of them, once there are some */
	unsigned aside_count;
	struct row_aside *rows_aside; /* the same */
	unsigned rows_count;
};

/* ---- reading: a part of a chunk ---- */

/* Nothing is stored of the chunk. */
static void fill_part(const struct request *request, const struct h5_part *part)
{
	struct h5_run_iterator runs;

	h5_run_begin(&runs, part);
	while (h5_run_next(&runs))
		h5_dataset_fill(request->dataset, runs.run.in_dataset,
				request->buf + (runs.run.in_dataset - request->offset), runs.run.n);
}

/* Bytes of the chunk up to the end of the last run. */
static uint64_t end_in_chunk(const struct h5_part_rows *rows)
{
	return rows->first.in_chunk + (rows->count - 1) * rows->chunk_step + rows->first.n;
}

/* The chunk is stored as it is: its runs are read from the file. */
static int read_part(struct request *request, const struct h5_part *part,
		     const struct h5_chunk_wanted *wanted)
{
	const struct h5_chunk *chunk = &wanted->chunk;
	struct h5_run_iterator runs;
	struct h5_part_rows rows;
	uint64_t end;
	int rc = 0;

	h5_run_begin(&runs, part);
	while (!rc && h5_run_next_rows(&runs, &rows)) {
		rc = h5_chunk_check_size(wanted, chunk->size, end_in_chunk(&rows));
		if (!rc && !h5_add(chunk->address, end_in_chunk(&rows), &end))
			rc = h5_fail(-EUCLEAN, chunk->address, "chunk: it reaches beyond any file");
		if (!rc)
			rc = h5_stored_runs_add(&request->runs, chunk->address, &rows,
						request->buf + (rows.first.in_dataset - request->offset));
	}
	return rc;
}

static void copy_rows(const struct h5_chunk_decoded *decoded, const struct h5_part_rows *rows, uint8_t *buf)
{
	if (decoded->element_size <= 1) {
		h5_copy_rows(rows, decoded->data + rows->first.in_chunk, buf);
		return;
	}
	for (uint64_t i = 0; i < rows->count; i++)
		h5_unshuffle(decoded->data, decoded->size, decoded->element_size,
			     (size_t)(rows->first.in_chunk + i * rows->chunk_step),
			     buf + i * rows->dataset_step, rows->first.n);
}

/* The chunk is decoded: copies its runs, and gives it back. */
static int copy_part(const struct request *request, const struct h5_part *part,
		     const struct h5_chunk_wanted *wanted, struct h5_chunk_decoded *decoded)
{
	struct h5_run_iterator runs;
	struct h5_part_rows rows;
	int rc = 0;

	h5_run_begin(&runs, part);
	while (!rc && h5_run_next_rows(&runs, &rows)) {
		rc = h5_chunk_check_size(wanted, decoded->size, end_in_chunk(&rows));
		if (!rc)
			copy_rows(decoded, &rows, request->buf + (rows.first.in_dataset - request->offset));
	}
	h5_chunk_put(wanted, decoded, h5_part_size(part), h5_part_chunk_size(part));
	return rc;
}

/* ---- reading: what was put aside ---- */

static int decode_aside(void *arg, size_t i)
{
	struct request *request = arg;
	struct aside *a = &request->aside[i];
	struct h5_chunk_decoded decoded;
	int rc = h5_chunk_get(&a->wanted, request->aside_count == 1, &decoded);

	a->elsewhere = rc == -EAGAIN;
	if (rc)
		return a->elsewhere ? 0 : rc;
	return copy_part(request, &a->part, &a->wanted, &decoded);
}

/* Chunks that other threads are decoding come last, since these may be done by then. */
static int take_aside(struct request *request)
{
	struct h5_pool *pool = h5_file_set_pool(h5_file_set_of(request->dataset->file));
	int rc = h5_pool_run(pool, decode_aside, request, request->aside_count);

	for (unsigned i = 0; i < request->aside_count && !rc; i++) {
		struct aside *a = &request->aside[i];
		struct h5_chunk_decoded decoded;

		if (!a->elsewhere)
			continue;
		rc = h5_chunk_get(&a->wanted, true, &decoded);
		if (!rc)
			rc = copy_part(request, &a->part, &a->wanted, &decoded);
	}
	request->aside_count = 0;
	return rc;
}

static int put_aside(struct request *request, const struct h5_part *part,
		     const struct h5_chunk_wanted *wanted)
{
	struct aside *a;

	if (!request->aside)
		request->aside = malloc(TOGETHER * sizeof *request->aside);
	if (!request->aside)
		return h5_fail(-ENOMEM, request->dataset->address, "dataset: out of memory");
	a = &request->aside[request->aside_count++];
	a->part = *part;
	a->wanted = *wanted;
	return request->aside_count == TOGETHER ? take_aside(request) : 0;
}

/* ---- reading: a request ---- */

/* True: the part of a chunk without filters is read from the file. Otherwise it is many short runs of a small
 * chunk, which is better kept in the cache, since a sweep over the rows comes back to it. But a large read
 * comes back only for the rows at its ends, which are few. `n`: bytes of the read. */
static bool is_read_by_runs(const struct h5_dataset *dataset, const struct h5_part_iterator *parts, size_t n)
{
	const struct h5_part *part = &parts->part;
	uint64_t stretch = h5_part_stretch(part);

	return stretch >= H5_DIRECT_RUN || stretch == dataset->chunk_size ||
	       dataset->chunk_size > H5_DIRECT_CHUNK ||
	       (stretch == h5_part_size(part) &&
		(h5_part_box_passes(parts) || h5_part_box_size(parts) <= n / ENDS));
}

/* Reads n bytes from the offset: copies the parts that need no decoding, and puts the others aside. */
static int read_parts(struct request *request, uint64_t offset, size_t n)
{
	struct h5_part_iterator parts;
	int rc;

	h5_part_begin(&parts, &request->grid, offset, n);
	while ((rc = h5_part_next(&parts)) > 0) {
		const struct h5_part *part = &parts.part;
		struct h5_chunk_wanted wanted;
		struct h5_chunk_decoded decoded;
		enum h5_chunk_state state;

		rc = h5_chunk_locate(request->dataset, &request->grid, &request->cursor, part->scaled,
				     &wanted, &state);
		if (rc)
			break;
		if (state == H5_CHUNK_NOT_STORED)
			fill_part(request, part);
		else if (state == H5_CHUNK_AS_IT_IS && is_read_by_runs(request->dataset, &parts, n))
			rc = read_part(request, part, &wanted);
		else if (h5_chunk_find(&wanted, &decoded))
			rc = copy_part(request, part, &wanted, &decoded);
		else
			rc = put_aside(request, part, &wanted);
		if (rc)
			break;
	}
	return rc;
}

/* ---- reading: rows of chunks ---- */

static void copy_from_row(const struct request *request, const struct h5_part *part, struct h5_chunk_row *row)
{
	struct h5_run_iterator runs;
	struct h5_part_rows rows;

	h5_run_begin(&runs, part);
	while (h5_run_next_rows(&runs, &rows))
		h5_copy_rows(&rows, row->data + rows.first.in_chunk,
			     request->buf + (rows.first.in_dataset - request->offset));
	h5_chunk_row_put(request->dataset, row, h5_part_size(part), h5_part_chunk_size(part));
}

/* Reads the part from its chunks one by one. */
static int read_from_chunks(struct request *request, const struct h5_part *part)
{
	struct h5_run_iterator runs;
	int rc = 0;

	h5_run_begin(&runs, part);
	while (!rc && h5_run_next(&runs))
		rc = read_parts(request, runs.run.in_dataset, runs.run.n);
	return rc;
}

static int decode_row_aside(void *arg, size_t i)
{
	struct request *request = arg;
	struct row_aside *a = &request->rows_aside[i];
	struct h5_chunk_row row;
	int rc = h5_chunk_row_get(request->dataset, a->number, false, &row);

	a->missing = rc;
	if (!rc)
		copy_from_row(request, &a->part, &row);
	return rc == -EINTR ? rc : 0;
}

/* If a row cannot be decoded, some of its chunks may be. */
static int take_rows_aside(struct request *request)
{
	struct h5_pool *pool = h5_file_set_pool(h5_file_set_of(request->dataset->file));
	int rc = h5_pool_run(pool, decode_row_aside, request, request->rows_count);

	for (unsigned i = 0; i < request->rows_count && !rc; i++) {
		struct row_aside *a = &request->rows_aside[i];
		struct h5_chunk_row row;

		if (!a->missing)
			continue;
		rc = h5_chunk_row_get(request->dataset, a->number, true, &row);
		if (!rc)
			copy_from_row(request, &a->part, &row);
		else if (rc != -EINTR)
			rc = read_from_chunks(request, &a->part);
	}
	request->rows_count = 0;
	return rc;
}

static int put_row_aside(struct request *request, const struct h5_part *part, uint64_t number)
{
	if (!request->rows_aside)
		request->rows_aside = malloc(TOGETHER * sizeof *request->rows_aside);
	if (!request->rows_aside)
		return h5_fail(-ENOMEM, request->dataset->address, "dataset: out of memory");
	request->rows_aside[request->rows_count++] = (struct row_aside){.part = *part, .number = number};
	return request->rows_count == TOGETHER ? take_rows_aside(request) : 0;
}

static int read_rows(struct request *request, const struct h5_grid *grid, size_t n)
{
	const unsigned last = grid->dims_count - 2;
	/* A read as long as a row of chunks needs all chunks of most of its rows, or goes on with the rest.
	 */
	const bool is_long = n >= grid->chunk[last] * grid->chunk_stride[last];
	struct h5_part_iterator parts;
	int rc;

	h5_part_begin(&parts, grid, request->offset, n);
	while ((rc = h5_part_next(&parts)) > 0) {
		const struct h5_part *part = &parts.part;
		uint64_t number = h5_chunk_row_number(grid, part->scaled);
		struct h5_chunk_row row;

		if (h5_chunk_row_find(request->dataset, number, &row)) {
			copy_from_row(request, part, &row);
			continue;
		}
		if (is_long || h5_chunk_row_is_under_way(request->dataset, number))
			rc = put_row_aside(request, part, number);
		else
			rc = read_from_chunks(request, part);
		if (rc)
			break;
	}
	return rc ? rc : take_rows_aside(request);
}

/* ---- reading: all of it ---- */

static int chunked_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	struct request request;
	struct h5_grid rows;
	int rc;

	request.dataset = dataset;
	request.offset = offset;
	request.buf = buf;
	request.aside = NULL;
	request.aside_count = 0;
	request.rows_aside = NULL;
	request.rows_count = 0;
	h5_chunk_cursor_init(&request.cursor);
	h5_stored_runs_init(&request.runs, dataset->file);
	h5_chunk_grid(dataset, &request.grid);
	if (dataset->index && h5_file_is_far(dataset->file))
		h5_dataset_want(dataset, offset, n, H5_WANTED_NOW);
	rc = h5_chunk_rows_grid(dataset, &rows) ? read_rows(&request, &rows, n)
						: read_parts(&request, offset, n);
	if (!rc)
		rc = h5_stored_runs_flush(&request.runs);
	if (!rc)
		rc = take_aside(&request);
	if (dataset->index)
		h5_chunk_cursor_release(dataset->index, &request.cursor);
	h5_stored_runs_release(&request.runs);
	free(request.aside);
	free(request.rows_aside);
	return rc;
}

/* ---- the layout ---- */

static int chunked_open(struct h5_dataset *dataset)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;

	if (dataset->space.rank != layout->rank)
		return h5_fail(-EUCLEAN, dataset->address, "dataset: chunks of rank %u, dataspace of rank %u",
			       layout->rank, dataset->space.rank);
	if (dataset->type->size != layout->element_size)
		return h5_fail(-EUCLEAN, dataset->address,
			       "dataset: chunks of %u-byte elements, datatype of %u bytes",
			       layout->element_size, dataset->type->size);
	if (!h5_product(layout->dims, layout->rank, &dataset->chunk_size) ||
	    !h5_mul(dataset->chunk_size, layout->element_size, &dataset->chunk_size))
		return h5_fail(-EUCLEAN, dataset->address, "dataset: chunks of more than 2^64 bytes");
	if (layout->address == H5_UNDEF)
		return 0;
	return h5_chunk_index_open(dataset->file, dataset->layout.version, layout, &dataset->space,
				   dataset->pipeline.count || dataset->section_pipelines, dataset->chunk_size,
				   &dataset->index);
}

static int add_stored(void *arg, const struct h5_chunk *chunk)
{
	uint64_t *bytes = arg;

	if (!h5_add(*bytes, chunk->size, bytes))
		return h5_fail(-EUCLEAN, chunk->address, "chunks: more than 2^64 bytes are stored");
	return h5_interrupt_check();
}

static int chunked_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	*bytes = 0;
	return dataset->index ? h5_chunk_index_walk(dataset->index, add_stored, bytes) : 0;
}

static int chunked_extents(const struct h5_dataset *dataset, const struct h5_extent_visits *visits)
{
	return dataset->index ? h5_chunk_index_extents(dataset->index, visits) : 0;
}

/* A read ends with the chunk, or with the row if that comes first. */
static uint64_t chunked_window(const struct h5_dataset *dataset, uint64_t offset)
{
	const struct h5_chunk_layout *chunk = &dataset->layout.chunked;
	uint64_t size = dataset->type->size, row = dataset->space.dims[chunk->rank - 1] * size;
	uint64_t width = chunk->dims[chunk->rank - 1] * size, at = offset % row;

	return offset - at + h5_min(row, (at / width + 1) * width);
}

const struct h5_layout_ops h5_layout_chunked = {
	.name = "chunked",
	.has_chunks = true,
	.open = chunked_open,
	.read = chunked_read,
	.storage = chunked_storage,
	.seek = h5_chunked_seek,
	.window = chunked_window,
	.check = h5_chunked_check,
	.extents = chunked_extents,
	.write = &h5_write_chunked,
};

/* ---- structured chunks ---- */

static int structured_open(struct h5_dataset *dataset)
{
	dataset->early = false; /* a chunk without defined elements is never stored */
	return dataset->layout.chunked.structured.sparse ? chunked_open(dataset) : 0;
}

static int structured_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	if (!dataset->layout.chunked.structured.sparse)
		return h5_fail(-ENOTSUP, dataset->address,
			       "dataset: structured chunks are only supported for sparse data of fixed size");
	return chunked_read(dataset, offset, buf, n);
}

static int structured_extents(const struct h5_dataset *dataset, const struct h5_extent_visits *visits)
{
	if (!dataset->layout.chunked.structured.sparse && dataset->layout.chunked.address != H5_UNDEF)
		return h5_fail(-ENOTSUP, dataset->address, "dataset: its structured chunks cannot be found");
	return chunked_extents(dataset, visits);
}

const struct h5_layout_ops h5_layout_structured = {
	.name = "structured",
	.is_sparse = true,
	.open = structured_open,
	.read = structured_read,
	.storage = chunked_storage,
	.seek = h5_chunked_seek,
	.check = h5_chunked_check,
	.extents = structured_extents,
	.write = &h5_write_chunked,
};

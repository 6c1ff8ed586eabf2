/* Reading chunked data.
 *
 * A request is cut into parts, one for each chunk. If the chunk is not stored, the part is filled; if it is
 * stored as it is, its runs are read, neighbours together; if it is in the cache, it is copied. Chunks that
 * must be decoded are put aside, and decoded side by side. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/boxes.h"
#include "dataset/chunk_cache.h"
#include "dataset/chunked.h"
#include "dataset/runs.h"
#include "filter/shuffle.h"
#include "store/file_set.h"

#include <stdlib.h>
#include <string.h>

enum { TOGETHER = 64 }; /* chunks that are put aside */

/* A part whose chunk must be decoded. */
struct aside {
	struct h5_part part;
	struct h5_chunk_wanted wanted;
	bool elsewhere; /* another thread is decoding it */
};

struct request {
	const struct h5_dataset *dataset;
	struct h5_grid grid;
	uint64_t offset; /* of buf in the dataset */
	uint8_t *buf;
	struct h5_chunk_cursor cursor;
	struct h5_runs runs;
	struct aside *aside; /* TOGETHER of them, once there are some */
	unsigned aside_count;
};

/* ---- a part of a chunk ---- */

/* Nothing is stored of the chunk. */
static void fill_part(const struct request *q, const struct h5_part *part)
{
	struct h5_run_iterator runs;

	h5_run_begin(&runs, part);
	while (h5_run_next(&runs))
		h5_dataset_fill(q->dataset, runs.run.in_dataset, q->buf + (runs.run.in_dataset - q->offset),
				runs.run.n);
}

/* The chunk is stored as it is: its runs are read from the file. */
static int read_part(struct request *q, const struct h5_part *part, const struct h5_chunk_wanted *wanted)
{
	const struct h5_chunk *chunk = &wanted->chunk;
	struct h5_run_iterator runs;
	int rc = 0;

	h5_run_begin(&runs, part);
	while (!rc && h5_run_next(&runs)) {
		const struct h5_part_run *run = &runs.run;
		uint64_t address;

		rc = h5_chunk_check_size(wanted, chunk->size, run->in_chunk + run->n);
		if (!rc && !h5_add(chunk->address, run->in_chunk, &address))
			rc = h5_fail(-EUCLEAN, chunk->address, "chunk: it reaches beyond any file");
		if (!rc)
			rc = h5_runs_add(&q->runs, address, q->buf + (run->in_dataset - q->offset), run->n);
	}
	return rc;
}

static void copy_bytes(const struct h5_chunk_decoded *decoded, uint64_t from, uint8_t *buf, size_t n)
{
	if (decoded->element_size > 1)
		h5_unshuffle(decoded->data, decoded->size, decoded->element_size, (size_t)from, buf, n);
	else
		memcpy(buf, decoded->data + from, n);
}

/* The chunk is decoded: copies its runs, and gives it back. */
static int copy_part(const struct request *q, const struct h5_part *part,
		     const struct h5_chunk_wanted *wanted, struct h5_chunk_decoded *decoded)
{
	struct h5_run_iterator runs;
	int rc = 0;

	h5_run_begin(&runs, part);
	while (!rc && h5_run_next(&runs)) {
		const struct h5_part_run *run = &runs.run;

		rc = h5_chunk_check_size(wanted, decoded->size, run->in_chunk + run->n);
		if (!rc)
			copy_bytes(decoded, run->in_chunk, q->buf + (run->in_dataset - q->offset), run->n);
	}
	h5_chunk_put(wanted, decoded, h5_part_size(part), h5_part_chunk_size(part));
	return rc;
}

/* ---- what was put aside ---- */

static int decode_aside(void *arg, size_t i)
{
	struct request *q = arg;
	struct aside *a = &q->aside[i];
	struct h5_chunk_decoded decoded;
	int rc = h5_chunk_get(&a->wanted, q->aside_count == 1, &decoded);

	a->elsewhere = rc == -EAGAIN;
	if (rc)
		return a->elsewhere ? 0 : rc;
	return copy_part(q, &a->part, &a->wanted, &decoded);
}

/* Chunks that other threads are decoding come last, since these may be done by then. */
static int take_aside(struct request *q)
{
	struct h5_pool *pool = h5_file_set_pool(h5_file_set_of(q->dataset->file));
	int rc = h5_pool_run(pool, decode_aside, q, q->aside_count);

	for (unsigned i = 0; i < q->aside_count && !rc; i++) {
		struct aside *a = &q->aside[i];
		struct h5_chunk_decoded decoded;

		if (!a->elsewhere)
			continue;
		rc = h5_chunk_get(&a->wanted, true, &decoded);
		if (!rc)
			rc = copy_part(q, &a->part, &a->wanted, &decoded);
	}
	q->aside_count = 0;
	return rc;
}

static int put_aside(struct request *q, const struct h5_part *part, const struct h5_chunk_wanted *wanted)
{
	struct aside *a;

	if (!q->aside)
		q->aside = malloc(TOGETHER * sizeof *q->aside);
	if (!q->aside)
		return h5_fail(-ENOMEM, q->dataset->address, "dataset: out of memory");
	a = &q->aside[q->aside_count++];
	a->part = *part;
	a->wanted = *wanted;
	return q->aside_count == TOGETHER ? take_aside(q) : 0;
}

/* ---- a request ---- */

/* True: the part of a chunk without filters is read from the file. Otherwise it is many short runs of a small
 * chunk, which is better kept in the cache, since a sweep over the rows comes back to it. */
static bool is_read_by_runs(const struct h5_dataset *dataset, const struct h5_part *part)
{
	uint64_t stretch = h5_part_stretch(part);

	return stretch >= H5_DIRECT_RUN || stretch == dataset->chunk_size ||
	       dataset->chunk_size > H5_DIRECT_CHUNK;
}

/* Reads all parts, except for those that are put aside. */
static int read_parts(struct request *q, size_t n)
{
	struct h5_part_iterator parts;
	int rc;

	h5_part_begin(&parts, &q->grid, q->offset, n);
	while ((rc = h5_part_next(&parts)) > 0) {
		const struct h5_part *part = &parts.part;
		struct h5_chunk_wanted wanted;
		struct h5_chunk_decoded decoded;
		enum h5_chunk_state state;

		rc = h5_chunk_locate(q->dataset, &q->grid, &q->cursor, part->scaled, &wanted, &state);
		if (rc)
			break;
		if (state == H5_CHUNK_NOT_STORED)
			fill_part(q, part);
		else if (state == H5_CHUNK_AS_IT_IS && is_read_by_runs(q->dataset, part))
			rc = read_part(q, part, &wanted);
		else if (h5_chunk_find(&wanted, &decoded))
			rc = copy_part(q, part, &wanted, &decoded);
		else
			rc = put_aside(q, part, &wanted);
		if (rc)
			break;
	}
	return rc;
}

int h5_chunked_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	struct request q;
	int rc;

	q.dataset = dataset;
	q.offset = offset;
	q.buf = buf;
	q.aside = NULL;
	q.aside_count = 0;
	q.cursor.ref = NULL;
	q.cursor.held = false;
	h5_runs_init(&q.runs, dataset->file);
	h5_chunk_grid(dataset, &q.grid);
	rc = read_parts(&q, n);
	if (!rc)
		rc = h5_runs_flush(&q.runs);
	if (!rc)
		rc = take_aside(&q);
	if (dataset->index)
		h5_chunk_cursor_release(dataset->index, &q.cursor);
	free(q.aside);
	return rc;
}

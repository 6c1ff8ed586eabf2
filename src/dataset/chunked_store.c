/* The chunks of a dataset that is written. The numbers of invariants are those of doc/writing.md.
 *
 * Writes gather in decoded chunks, which are stored when too many are held or when the dataset is settled.
 * But whole chunks without filters, and long runs into stored chunks, are written at once. A filtered or
 * structured chunk always moves to new space (invariant 1).
 *
 * If the layout has unfiltered_edges, *partial* chunks, which reach beyond the dataset, are stored *raw*:
 * without their filters. A kill may leave the dataset with the rows of the last commit or with those of this
 * one. So a chunk that is partial with any of these numbers of rows is stored raw, and its mask skips all
 * filters: then it is right whether it is partial or not. */
#include "dataset/chunked_store.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "dataset/chunk_cache.h"
#include "dataset/structured.h"
#include "store/file_set.h"
#include "store/pipeline.h"
#include "store/statistics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	HELD_MAX = 1 << 26,    /* most bytes of chunks in memory */
	BATCH_MAX = 128,       /* most chunks that are encoded together */
	BATCH_BYTES = 1 << 25, /* most bytes of these chunks, not counting the last one */
};

/* True: with so many rows the chunk is partial. */
static bool is_partial(const struct h5_chunked_writer *state, const uint64_t *scaled, uint64_t rows)
{
	for (unsigned i = 0; i + 1 < state->grid.dims_count; i++) {
		uint64_t first = scaled[i] * state->grid.chunk[i], dim = i ? state->grid.dims[i] : rows;

		if (dim > first && dim - first < state->grid.chunk[i])
			return true;
	}
	return false;
}

/* True: the chunk must be stored raw. */
static bool stays_raw(const struct h5_dataset_writer *writer, const uint64_t *scaled)
{
	const struct h5_chunked_writer *state = h5_chunked_of(writer);
	uint64_t first = scaled[0] * state->grid.chunk[0];

	return state->edges &&
	       (is_partial(state, scaled, writer->rows) || is_partial(state, scaled, state->grid.dims[0]) ||
		(first < writer->settled && first + state->grid.chunk[0] > state->visible));
}

/* True: the chunk is stored raw. */
static bool is_raw(const struct h5_dataset_writer *writer, const struct h5_known_chunk *known)
{
	const struct h5_chunked_writer *state = h5_chunked_of(writer);

	if (state->edges && is_partial(state, known->scaled, writer->rows))
		return true;
	/* The sections of a structured chunk have masks of their own. */
	return !h5_structured_marks(writer->dataset) &&
	       !h5_chunk_is_filtered(&writer->dataset->pipeline, known->stored.filter_mask);
}

static int check_stored(const struct h5_dataset_writer *writer, const struct h5_chunk *chunk)
{
	uint64_t end = h5_file_end(writer->file);

	if (chunk->address == H5_UNDEF)
		return 0;
	if (chunk->address >= end || chunk->size > end - chunk->address)
		return h5_fail(-EUCLEAN, chunk->address, "chunk: it reaches beyond the file");
	return 0;
}

/* ---- chunks that are known ---- */

/* Bytes of memory of a decoded chunk. */
static size_t held_size(const struct h5_dataset_writer *writer)
{
	return (size_t)(writer->dataset->chunk_size + h5_structured_marks(writer->dataset));
}

static size_t key_size(const struct h5_chunked_writer *state)
{
	return (state->grid.dims_count - 1) * sizeof(uint64_t);
}

static struct h5_known_chunk *find_known(struct h5_chunked_writer *state, const uint64_t *scaled)
{
	struct h5_known_chunk *known = state->last_known;

	if (known && !memcmp(known->scaled, scaled, key_size(state)))
		return known;
	HASH_FIND(hh, state->known, scaled, key_size(state), known);
	if (known)
		state->last_known = known;
	return known;
}

static int add_known(struct h5_chunked_writer *state, const uint64_t *scaled, const struct h5_chunk *stored,
		     struct h5_known_chunk **out)
{
	struct h5_known_chunk *known = calloc(1, sizeof *known + key_size(state));

	if (!known)
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	known->stored = *stored;
	memcpy(known->scaled, scaled, key_size(state));
	HASH_ADD(hh, state->known, scaled, key_size(state), known);
	if (!known->hh.tbl) {
		free(known);
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	}
	state->known_bytes += sizeof *known + key_size(state);
	state->last_known = known;
	*out = known;
	return 0;
}

static void remove_known(struct h5_dataset_writer *writer, struct h5_known_chunk *known)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);

	HASH_DEL(state->known, known);
	state->known_bytes -= sizeof *known + key_size(state);
	if (known->data)
		state->known_bytes -= held_size(writer);
	if (state->last_known == known)
		state->last_known = NULL;
	assert(state->known || !state->known_bytes);
	free(known->data);
	free(known);
}

int h5_chunked_know(struct h5_dataset_writer *writer, const uint64_t *scaled, struct h5_known_chunk **known)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	struct h5_chunk chunk;
	int rc;

	*known = find_known(state, scaled);
	if (*known)
		return 0;
	rc = h5_chunk_index_lookup(state->index, NULL, scaled, &chunk);
	if (!rc)
		rc = check_stored(writer, &chunk);
	return rc ? rc : add_known(state, scaled, &chunk, known);
}

/* How many bytes of a stored chunk must be there: up to the last one that readers may have seen. */
static uint64_t needed(const struct h5_dataset_writer *writer, const struct h5_known_chunk *known)
{
	struct h5_grid grid = h5_chunked_of(writer)->grid;

	grid.dims[0] = h5_min(grid.dims[0], writer->rows);
	return h5_grid_needed(&grid, known->scaled);
}

static struct h5_chunk_wanted wanted_of(const struct h5_dataset_writer *writer,
					const struct h5_known_chunk *known)
{
	struct h5_chunk_wanted wanted = {.dataset = writer->dataset, .chunk = known->stored};

	wanted.filtered = !is_raw(writer, known);
	if (!wanted.filtered && !h5_structured_marks(writer->dataset))
		wanted.chunk.size = h5_min(known->stored.size, writer->dataset->chunk_size);
	return wanted;
}

/* Reads the chunk. Bytes that are not stored get the fill value. */
static int read_stored(const struct h5_dataset_writer *writer, const struct h5_known_chunk *known,
		       uint8_t **data)
{
	struct h5_chunk_wanted wanted = wanted_of(writer, known);
	size_t size = (size_t)writer->dataset->chunk_size, got;
	uint8_t *all;
	int rc = h5_chunk_read(&wanted, data, &got);

	if (rc || got == size)
		return rc;
	rc = h5_chunk_check_size(&wanted, got, needed(writer, known));
	all = rc ? NULL : realloc(*data, size);
	if (!all) {
		free(*data);
		return rc ? rc : h5_fail(-ENOMEM, known->stored.address, "chunk: out of memory");
	}
	h5_dataset_fill(writer->dataset, got, all + got, size - got);
	*data = all;
	return 0;
}

bool h5_chunked_is_short(const struct h5_dataset_writer *writer, const struct h5_known_chunk *known)
{
	return !h5_chunked_of(writer)->encodes && known->stored.address != H5_UNDEF &&
	       known->stored.size < writer->dataset->chunk_size;
}

int h5_chunked_publish(struct h5_dataset_writer *writer, struct h5_known_chunk *known,
		       const struct h5_chunk *chunk)
{
	struct h5_chunk old = known->stored;
	int rc = h5_tx_touch(writer->file, writer->address);

	writer->index_changed = true;
	if (!rc)
		rc = h5_chunk_index_set(h5_chunked_of(writer)->index, known->scaled, chunk);
	if (rc)
		return rc;
	if (old.address != H5_UNDEF)
		h5_tx_free(writer->file, old.address, old.size);
	known->stored = *chunk;
	return 0;
}

static int copy_bytes(struct h5_dataset_writer *writer, uint64_t from, uint64_t to, uint64_t n)
{
	uint8_t piece[1 << 13];
	int rc = 0;

	for (uint64_t done = 0; done < n && !rc; done += sizeof piece) {
		size_t part = (size_t)h5_min(n - done, sizeof piece);

		rc = h5_interrupt_check();
		if (!rc)
			rc = h5_file_read(writer->file, from + done, piece, part);
		if (!rc)
			rc = h5_tx_write(writer->file, to + done, piece, part);
	}
	return rc;
}

int h5_chunked_widen(struct h5_dataset_writer *writer, struct h5_known_chunk *known, bool whole)
{
	const struct h5_chunk old = known->stored;
	struct h5_chunk_wanted wanted = wanted_of(writer, known);
	struct h5_chunk chunk = {.size = writer->dataset->chunk_size};
	int rc = whole ? 0 : h5_chunk_check_size(&wanted, old.size, needed(writer, known));

	if (!rc)
		rc = h5_tx_allocate(writer->file, H5_ALLOCATE_RAW, chunk.size, &chunk.address);
	if (rc)
		return rc;
	rc = copy_bytes(writer, old.address, chunk.address, old.size);
	if (!rc)
		rc = h5_write_fill_value(writer, chunk.address + old.size, old.size, chunk.size - old.size);
	if (!rc)
		rc = h5_chunked_publish(writer, known, &chunk);
	if (rc)
		h5_tx_free(writer->file, chunk.address, chunk.size);
	return rc;
}

int h5_chunked_hold(struct h5_dataset_writer *writer, struct h5_known_chunk *known, bool whole)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	const struct h5_chunk *stored = &known->stored;
	size_t size = (size_t)writer->dataset->chunk_size;
	uint8_t *data;
	int rc = 0;

	if (stored->address == H5_UNDEF || whole) {
		data = malloc(held_size(writer));
		if (!data)
			return h5_fail(-ENOMEM, stored->address, "chunk: out of memory");
		if (!whole || is_partial(state, known->scaled, state->grid.dims[0]))
			h5_dataset_fill(writer->dataset, 0, data, size);
		memset(data + size, 0, held_size(writer) - size);
	} else {
		rc = read_stored(writer, known, &data);
	}
	if (rc)
		return rc;
	assert(!known->data);
	known->data = data;
	state->known_bytes += held_size(writer);
	return 0;
}

/* Bytes of the chunk that belong to rows before this one. */
static uint64_t bytes_before(const struct h5_dataset_writer *writer, const struct h5_known_chunk *known,
			     uint64_t row)
{
	uint64_t chunk = h5_chunked_of(writer)->grid.chunk[0], first = known->scaled[0] * chunk;

	return row <= first ? 0 : h5_min(row - first, chunk) * (writer->dataset->chunk_size / chunk);
}

void h5_chunked_cover(struct h5_dataset_writer *writer, const struct h5_known_chunk *known, uint64_t begin,
		      uint64_t end)
{
	begin = h5_max(begin, bytes_before(writer, known, writer->settled));
	if (begin < end)
		h5_tx_cover(writer->file, known->stored.address + begin, end - begin);
}

int h5_chunked_move(struct h5_dataset_writer *writer, struct h5_known_chunk *known, struct h5_chunk *chunk,
		    const uint8_t *bytes)
{
	uint64_t inside = bytes_before(writer, known, h5_chunked_of(writer)->grid.dims[0]);
	int rc = h5_tx_allocate(writer->file, H5_ALLOCATE_RAW, chunk->size, &chunk->address);

	if (rc)
		return rc;
	rc = bytes ? h5_tx_write(writer->file, chunk->address, bytes, (size_t)chunk->size)
		   : h5_write_fill_value(writer, chunk->address, 0, chunk->size);
	if (!rc)
		rc = h5_chunked_publish(writer, known, chunk);
	if (rc)
		h5_tx_free(writer->file, chunk->address, chunk->size);
	else if (!h5_chunked_of(writer)->encodes)
		h5_tx_uncover(writer->file, chunk->address + inside, chunk->size - inside);
	return rc;
}

/* Notes which bytes of the chunk the file lacks; begin == end: none. */
static void set_changed(struct h5_dataset_writer *writer, struct h5_known_chunk *known, uint64_t begin,
			uint64_t end)
{
	size_t was = known->begin != known->end, is = begin != end;

	assert(begin <= end && end <= writer->dataset->chunk_size);
	assert(!is || known->data);
	writer->dirty += is - was;
	writer->held += (is - was) * held_size(writer);
	known->begin = begin;
	known->end = end;
}

int h5_chunked_remove(struct h5_dataset_writer *writer, struct h5_known_chunk *known)
{
	const struct h5_chunk none = {.address = H5_UNDEF};
	int rc = known->stored.address == H5_UNDEF ? 0 : h5_chunked_publish(writer, known, &none);

	if (rc || !known->data)
		return rc;
	set_changed(writer, known, 0, 0);
	free(known->data);
	known->data = NULL;
	h5_chunked_of(writer)->known_bytes -= held_size(writer);
	return 0;
}

/* ---- storing chunks ---- */

/* Chunks that are stored together. They are encoded in parallel, then stored in their order, so that the file
 * does not depend on the number of processors. */
struct batch {
	struct h5_dataset_writer *writer;
	unsigned count;
	struct {
		struct h5_known_chunk *known;
		uint8_t *encoded; /* owned; NULL: stored as it is */
		struct h5_chunk chunk;
	} chunks[BATCH_MAX];
};

/* Runs in a worker; changes only its own chunk of the batch. */
static int encode(void *arg, size_t i)
{
	struct batch *b = arg;
	const struct h5_dataset *dataset = b->writer->dataset;
	const struct h5_pipeline *pipeline = &dataset->pipeline;
	const uint8_t *data = b->chunks[i].known->data;
	struct h5_chunk *chunk = &b->chunks[i].chunk;
	uint64_t bytes = chunk->size;
	bool raw = stays_raw(b->writer, b->chunks[i].known->scaled);
	struct timespec begin;
	size_t size;
	int rc;

	if (raw && !h5_structured_marks(dataset)) {
		chunk->filter_mask = (uint32_t)((UINT64_C(1) << pipeline->count) - 1);
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (h5_structured_marks(dataset)) {
		rc = h5_structured_encode(dataset, data, raw, chunk, &b->chunks[i].encoded);
	} else {
		rc = h5_pipeline_encode(pipeline, data, (size_t)bytes, &b->chunks[i].encoded, &size,
					&chunk->filter_mask);
		chunk->size = size;
	}
	if (rc)
		return rc;
	h5_count_filtered(&h5_file_set_statistics(h5_file_set_of(b->writer->file))->encoded, bytes, &begin);
	return 0;
}

/* Stores chunk i of the batch, after it was encoded. */
static int store_chunk(struct h5_dataset_writer *writer, struct batch *b, unsigned i)
{
	struct h5_known_chunk *known = b->chunks[i].known;
	uint64_t address = known->stored.address;
	int rc;

	/* No element of a structured chunk is defined any more. */
	if (!b->chunks[i].chunk.size)
		return h5_chunked_remove(writer, known);
	if (h5_chunked_of(writer)->encodes || address == H5_UNDEF) {
		rc = h5_chunked_move(writer, known, &b->chunks[i].chunk,
				     b->chunks[i].encoded ? b->chunks[i].encoded : known->data);
	} else {
		rc = h5_tx_write(writer->file, address + known->begin, known->data + known->begin,
				 (size_t)(known->end - known->begin));
		h5_tx_forget(writer->file, address);
		h5_chunked_cover(writer, known, known->begin, known->end);
	}
	if (rc)
		return rc;
	set_changed(writer, known, 0, 0);
	return 0;
}

static int store_batch(struct batch *b)
{
	struct h5_pool *pool = h5_file_set_pool(h5_file_set_of(b->writer->file));
	int rc = h5_chunked_of(b->writer)->encodes && b->count ? h5_pool_run(pool, encode, b, b->count) : 0;

	for (unsigned i = 0; i < b->count; i++) {
		if (!rc)
			rc = store_chunk(b->writer, b, i);
		free(b->chunks[i].encoded);
	}
	b->count = 0;
	return rc;
}

static void add_to_batch(struct batch *b, struct h5_known_chunk *known)
{
	assert(b->count < BATCH_MAX && known->data);
	b->chunks[b->count].known = known;
	b->chunks[b->count].encoded = NULL;
	b->chunks[b->count].chunk = (struct h5_chunk){.size = b->writer->dataset->chunk_size};
	b->count++;
}

/* True: all chunks are meant, or the chunk has no rows beyond the end of the dataset. */
static bool is_meant(const struct h5_chunked_writer *state, const struct h5_known_chunk *known, bool all)
{
	return all || known->scaled[0] < state->grid.dims[0] / state->grid.chunk[0];
}

int h5_chunked_store(struct h5_dataset_writer *writer, bool all)
{
	uint64_t most = h5_min(BATCH_MAX, BATCH_BYTES / writer->dataset->chunk_size + 1);
	struct batch b;
	int rc = 0;

	b.writer = writer;
	b.count = 0;
	for (struct h5_known_chunk *known = h5_chunked_of(writer)->known; known && !rc;
	     known = known->hh.next) {
		if (known->begin == known->end || !is_meant(h5_chunked_of(writer), known, all))
			continue;
		add_to_batch(&b, known);
		if (b.count >= most)
			rc = store_batch(&b);
	}
	return rc ? rc : store_batch(&b);
}

void h5_chunked_mark(struct h5_dataset_writer *writer, struct h5_known_chunk *known, uint64_t begin,
		     uint64_t end)
{
	if (known->begin != known->end) {
		begin = h5_min(known->begin, begin);
		end = h5_max(known->end, end);
	}
	set_changed(writer, known, begin, end);
}

int h5_chunked_release(struct h5_dataset_writer *writer, bool all)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	struct h5_known_chunk *known, *next;
	int rc = h5_chunked_store(writer, all);

	if (rc)
		return rc;
	HASH_ITER(hh, state->known, known, next)
	if (is_meant(state, known, all))
		remove_known(writer, known);
	return 0;
}

bool h5_chunked_is_full(const struct h5_dataset_writer *writer)
{
	return h5_chunked_of(writer)->known_bytes > HELD_MAX;
}

int h5_chunked_limit(struct h5_dataset_writer *writer)
{
	int rc;

	if (!h5_chunked_is_full(writer))
		return 0;
	rc = h5_chunked_release(writer, false);
	if (!rc && h5_chunked_of(writer)->known_bytes > HELD_MAX / 2)
		rc = h5_chunked_release(writer, true);
	return rc;
}

void h5_chunked_drop(struct h5_dataset_writer *writer, uint64_t row)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	struct h5_known_chunk *known, *next;

	HASH_ITER(hh, state->known, known, next)
	{
		if (known->scaled[0] * state->grid.chunk[0] < row)
			continue;
		set_changed(writer, known, 0, 0);
		remove_known(writer, known);
	}
}

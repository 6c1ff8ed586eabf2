/* Verifying chunked data: the whole index, and every chunk by decoding it. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/pool.h"
#include "dataset/chunk_cache.h"
#include "dataset/private.h"
#include "store/file_set.h"

#include <stdlib.h>
#include <string.h>

enum {
	BATCH = 64,	      /* chunks that are decoded side by side */
	BATCH_SIZE = 1 << 26, /* decoded bytes of these; but at least one chunk */
	/* Steps that may be made to look for chunks: so many, and one more for each byte of the file. */
	STEPS_LEAST = 1 << 20,
};

struct chunk_check {
	const struct h5_dataset *dataset;
	struct h5_damage *damage;
	h5_check_done *done;
	void *arg;
	struct h5_grid grid;
	struct h5_chunk_cursor cursor;
	uint64_t stored; /* bytes of all chunks so far */
	uint64_t left;	 /* chunks of the index that were not met yet */
	uint64_t met;	 /* chunks of the dataset that are stored */
	uint64_t steps;	 /* that may still be made */
	unsigned count;
	struct h5_chunk_wanted batch[BATCH];
	uint64_t needed[BATCH]; /* bytes of each, as h5_grid_needed() has it */
	int results[BATCH];
	struct h5_error errors[BATCH];
};

/* Runs in a worker, which has its own error. One thread notes them later, in order. */
static int decode_part(void *arg, size_t i)
{
	struct chunk_check *c = arg;
	uint8_t *data = NULL;
	size_t size = 0;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_chunk_read(&c->batch[i], &data, &size);
	if (!rc)
		rc = h5_chunk_check_size(&c->batch[i], size, c->needed[i]);
	free(data);
	c->results[i] = rc;
	c->errors[i] = *h5_error_last();
	return h5_is_own(rc) ? rc : 0;
}

static int decode_batch(struct chunk_check *c)
{
	struct h5_pool *pool = h5_file_set_pool(h5_file_set_of(c->dataset->file));
	int rc = h5_pool_run(pool, decode_part, c, c->count);

	for (unsigned i = 0; i < c->count && !rc; i++) {
		if (c->results[i])
			rc = h5_damage_note(c->damage, h5_fail(c->results[i], c->errors[i].address, "%s",
							       c->errors[i].text));
		if (c->done)
			c->done(c->arg, c->batch[i].chunk.size);
	}
	c->count = 0;
	return rc;
}

/* Chunks that share bytes are damage. Without a bound they could be more than can ever be decoded. */
static int count_stored(struct chunk_check *c, const struct h5_chunk *chunk)
{
	if (!h5_add(c->stored, chunk->size, &c->stored) || c->stored > h5_file_end(c->dataset->file))
		return h5_fail(-EUCLEAN, chunk->address, "chunks: more bytes than the file has");
	return 0;
}

static int add_chunk(struct chunk_check *c, const uint64_t *scaled)
{
	struct h5_chunk_wanted *wanted = &c->batch[c->count];
	enum h5_chunk_state state;
	int rc = h5_chunk_locate(c->dataset, &c->grid, &c->cursor, scaled, wanted, &state);
	uint64_t end = h5_file_end(c->dataset->file);

	if (rc || state == H5_CHUNK_NOT_STORED)
		return h5_damage_note(c->damage, rc);
	if (wanted->chunk.address > end || wanted->chunk.size > end - wanted->chunk.address)
		return h5_damage_note(c->damage, h5_fail(-EUCLEAN, wanted->chunk.address,
							 "chunk: it reaches beyond the end of the file"));
	c->needed[c->count] = h5_grid_needed(&c->grid, scaled);
	/* Bytes that are stored as they are have no checksum: only their number can be verified. */
	if (state == H5_CHUNK_AS_IT_IS)
		return h5_damage_note(c->damage,
				      h5_chunk_check_size(wanted, wanted->chunk.size, c->needed[c->count]));
	rc = count_stored(c, &wanted->chunk);
	if (rc)
		return rc;
	c->count++;
	if (c->count < BATCH && c->count < BATCH_SIZE / (c->dataset->chunk_size + 1))
		return 0;
	return decode_batch(c);
}

/* If the chunk is beyond the end of a row, goes to the next row. False: there is none. */
static bool move_inside(const struct chunk_check *c, uint64_t *scaled)
{
	unsigned rank = c->dataset->layout.chunked.rank, d = 0;

	while (d < rank && scaled[d] <= (c->grid.dims[d] - 1) / c->grid.chunk[d])
		d++;
	if (d == rank)
		return true;
	memset(scaled + d, 0, (rank - d) * sizeof *scaled);
	while (d-- > 0) {
		scaled[d]++;
		if (scaled[d] <= (c->grid.dims[d] - 1) / c->grid.chunk[d])
			return true;
		scaled[d] = 0;
	}
	return false;
}

/* Bounds the steps: dimensions may claim any size, so looking for chunks that the index counts but does not
 * find could take for ever. */
static int count_step(struct chunk_check *c)
{
	if (!c->steps--)
		return h5_fail(-EFBIG, c->dataset->address,
			       "chunks: too many chunks are not stored before the next one that is");
	return h5_interrupt_check();
}

static int check_each(struct chunk_check *c)
{
	uint64_t scaled[H5_RANK_MAX] = {0}, next[H5_RANK_MAX];
	bool stored, more = true;
	int rc = 0;

	while (more && c->left && !rc) {
		rc = count_step(c);
		if (!rc)
			rc = h5_chunk_index_gap(c->dataset->index, &c->cursor, scaled, &stored, next);
		if (rc)
			break;
		if (stored) {
			c->left--;
			c->met++;
			rc = add_chunk(c, scaled);
			scaled[c->dataset->layout.chunked.rank - 1]++;
		} else {
			memcpy(scaled, next, sizeof scaled);
		}
		more = move_inside(c, scaled);
	}
	if (!rc)
		rc = decode_batch(c);
	return rc;
}

/* With early allocation: some versions of libhdf5 abort if a chunk that they write to is not stored. */
static int check_early(const struct chunk_check *c)
{
	uint64_t all = 1;
	bool fits = true;

	for (unsigned d = 0; d < c->dataset->layout.chunked.rank && fits; d++)
		fits = h5_mul(all, (c->grid.dims[d] - 1) / c->grid.chunk[d] + 1, &all);
	if (fits && c->met >= all)
		return 0;
	return h5_fail(-EUCLEAN, c->dataset->address,
		       "chunks: only %ju are stored, but with early allocation all must be",
		       (uintmax_t)c->met);
}

static int count_chunk(void *arg, const struct h5_chunk *chunk)
{
	uint64_t *count = arg;

	(void)chunk;
	++*count;
	return h5_interrupt_check();
}

int h5_chunked_check(const struct h5_dataset *dataset, struct h5_damage *damage, h5_check_done *done,
		     void *arg)
{
	struct chunk_check *c;
	uint64_t count = 0;
	int rc;

	if (!dataset->index)
		return 0;
	/* First all blocks of the index, also those with chunks beyond the dataset. */
	rc = h5_chunk_index_walk(dataset->index, count_chunk, &count);
	if (rc)
		return h5_damage_note(damage, rc);
	if (!dataset->space.elements)
		return 0;
	c = calloc(1, sizeof *c);
	if (!c)
		return h5_fail(-ENOMEM, dataset->address, "dataset: out of memory");
	c->dataset = dataset;
	c->damage = damage;
	c->done = done;
	c->arg = arg;
	c->left = count;
	c->steps = STEPS_LEAST + h5_file_size(dataset->file);
	h5_chunk_grid(dataset, &c->grid);
	rc = check_each(c);
	if (!rc && dataset->early)
		rc = check_early(c);
	h5_chunk_cursor_release(dataset->index, &c->cursor);
	free(c);
	return h5_damage_note(damage, rc);
}

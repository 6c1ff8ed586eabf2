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
	BATCH = 64,	      /* most chunks that are decoded side by side */
	BATCH_SIZE = 1 << 26, /* most decoded bytes of a batch, unless it is one chunk */
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
	uint64_t steps;	 /* number of steps that may still be made */
	unsigned count;
	struct h5_chunk_wanted batch[BATCH];
	uint64_t needed[BATCH]; /* bytes of each chunk in `batch`, by h5_grid_needed() */
	int results[BATCH];
	struct h5_error errors[BATCH];
};

/* Runs in a worker, which has its own error. One thread notes them later, in order. */
static int decode_part(void *arg, size_t i)
{
	struct chunk_check *check = arg;
	uint8_t *data = NULL;
	size_t size = 0;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_chunk_read(&check->batch[i], &data, &size);
	if (!rc)
		rc = h5_chunk_check_size(&check->batch[i], size, check->needed[i]);
	free(data);
	check->results[i] = rc;
	check->errors[i] = *h5_error_last();
	return h5_is_own(rc) ? rc : 0;
}

static int decode_batch(struct chunk_check *check)
{
	struct h5_pool *pool = h5_file_set_pool(h5_file_set_of(check->dataset->file));
	int rc = h5_pool_run(pool, decode_part, check, check->count);

	for (unsigned i = 0; i < check->count && !rc; i++) {
		if (check->results[i])
			rc = h5_damage_note(check->damage,
					    h5_fail(check->results[i], check->errors[i].address, "%s",
						    check->errors[i].text));
		if (check->done)
			check->done(check->arg, check->batch[i].chunk.size);
	}
	check->count = 0;
	return rc;
}

/* Chunks that share bytes are damage. Without a bound they could be more than can ever be decoded. */
static int count_stored(struct chunk_check *check, const struct h5_chunk *chunk)
{
	if (!h5_add(check->stored, chunk->size, &check->stored) ||
	    check->stored > h5_file_end(check->dataset->file))
		return h5_fail(-EUCLEAN, chunk->address, "chunks: more bytes than the file has");
	return 0;
}

static int add_chunk(struct chunk_check *check, const uint64_t *scaled)
{
	struct h5_chunk_wanted *wanted = &check->batch[check->count];
	enum h5_chunk_state state;
	int rc = h5_chunk_locate(check->dataset, &check->grid, &check->cursor, scaled, wanted, &state);
	uint64_t end = h5_file_end(check->dataset->file);

	if (rc || state == H5_CHUNK_NOT_STORED)
		return h5_damage_note(check->damage, rc);
	if (wanted->chunk.address > end || wanted->chunk.size > end - wanted->chunk.address)
		return h5_damage_note(check->damage, h5_fail(-EUCLEAN, wanted->chunk.address,
							     "chunk: it reaches beyond the end of the file"));
	check->needed[check->count] = h5_grid_needed(&check->grid, scaled);
	/* Bytes that are stored as they are have no checksum: only their number can be verified. */
	if (state == H5_CHUNK_AS_IT_IS)
		return h5_damage_note(check->damage, h5_chunk_check_size(wanted, wanted->chunk.size,
									 check->needed[check->count]));
	rc = count_stored(check, &wanted->chunk);
	if (rc)
		return rc;
	check->count++;
	if (check->count < BATCH && check->count < BATCH_SIZE / (check->dataset->chunk_size + 1))
		return 0;
	return decode_batch(check);
}

/* If the chunk is beyond the end of a row, goes to the next row. False: there is none. */
static bool move_inside(const struct chunk_check *check, uint64_t *scaled)
{
	unsigned rank = check->dataset->layout.chunked.rank, d = 0;

	while (d < rank && scaled[d] <= (check->grid.dims[d] - 1) / check->grid.chunk[d])
		d++;
	if (d == rank)
		return true;
	memset(scaled + d, 0, (rank - d) * sizeof *scaled);
	while (d-- > 0) {
		scaled[d]++;
		if (scaled[d] <= (check->grid.dims[d] - 1) / check->grid.chunk[d])
			return true;
		scaled[d] = 0;
	}
	return false;
}

/* Bounds the steps: dimensions may claim any size, so looking for chunks that the index counts but does not
 * find could take for ever. */
static int count_step(struct chunk_check *check)
{
	if (!check->steps--)
		return h5_fail(-EFBIG, check->dataset->address,
			       "chunks: too many chunks are not stored before the next one that is");
	return h5_interrupt_check();
}

static int check_each(struct chunk_check *check)
{
	uint64_t scaled[H5_RANK_MAX] = {0}, next[H5_RANK_MAX];
	bool stored, more = true;
	int rc = 0;

	while (more && check->left && !rc) {
		rc = count_step(check);
		if (!rc)
			rc = h5_chunk_index_gap(check->dataset->index, &check->cursor, scaled, &stored, next);
		if (rc)
			break;
		if (stored) {
			check->left--;
			check->met++;
			rc = add_chunk(check, scaled);
			scaled[check->dataset->layout.chunked.rank - 1]++;
		} else {
			memcpy(scaled, next, sizeof scaled);
		}
		more = move_inside(check, scaled);
	}
	if (!rc)
		rc = decode_batch(check);
	return rc;
}

/* With early allocation: some versions of libhdf5 abort if a chunk that they write to is not stored. */
static int check_early(const struct chunk_check *check)
{
	uint64_t all = 1;
	bool fits = true;

	for (unsigned d = 0; d < check->dataset->layout.chunked.rank && fits; d++)
		fits = h5_mul(all, (check->grid.dims[d] - 1) / check->grid.chunk[d] + 1, &all);
	if (fits && check->met >= all)
		return 0;
	return h5_fail(-EUCLEAN, check->dataset->address,
		       "chunks: only %ju are stored, but with early allocation all must be",
		       (uintmax_t)check->met);
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
	struct chunk_check *check;
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
	check = calloc(1, sizeof *check);
	if (!check)
		return h5_fail(-ENOMEM, dataset->address, "dataset: out of memory");
	check->dataset = dataset;
	check->damage = damage;
	check->done = done;
	check->arg = arg;
	check->left = count;
	check->steps = STEPS_LEAST + h5_file_size(dataset->file);
	h5_chunk_grid(dataset, &check->grid);
	rc = check_each(check);
	if (!rc && dataset->early)
		rc = check_early(check);
	h5_chunk_cursor_release(dataset->index, &check->cursor);
	free(check);
	return h5_damage_note(damage, rc);
}

#include "base/checked.h"
#include "chunk_index/private.h"

/* The implicit index, specification VII.B: all chunks of the maximum dimensions lie one after the other. */

static int open_index(struct h5_chunk_index *index)
{
	uint64_t address = index->layout.address, end = h5_file_end(index->file), bytes;
	int rc = h5_chunk_index_number(index, 0);

	if (rc)
		return rc;
	if (index->filtered)
		return h5_fail(-EUCLEAN, address, "implicit index: filtered chunks");
	if (index->count == H5_UNLIMITED || !h5_mul(index->count, index->chunk_size, &bytes) ||
	    bytes > h5_file_size(index->file) || address > end || bytes > end - address)
		return h5_fail(-EUCLEAN, address, "implicit index: chunks beyond the end of the file");
	return 0;
}

/* The chunk, if it can be stored. */
static struct h5_chunk find(const struct h5_chunk_index *index, const uint64_t *scaled)
{
	uint64_t number;

	if (!h5_chunk_index_number_of(index, scaled, &number))
		return h5_chunk_absent();
	return (struct h5_chunk){.address = index->layout.address + number * index->chunk_size,
				 .size = index->chunk_size};
}

static int lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor, const uint64_t *scaled,
		  struct h5_chunk *chunk)
{
	(void)cursor;
	*chunk = find(index, scaled);
	return 0;
}

/* The next chunk of the dataspace in row-major order; false after the last. */
static bool next(const struct h5_chunk_index *index, uint64_t *scaled)
{
	for (unsigned i = index->layout.rank; i-- > 0; scaled[i] = 0)
		if (++scaled[i] <= (index->dims[i] - 1) / index->layout.dims[i])
			return true;
	return false;
}

/* All chunks of the maximum dimensions have space. Those of the current dimensions count as stored, as in
 * libhdf5. */
static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, h5_extent_visit *block, void *arg)
{
	uint64_t scaled[H5_RANK_MAX] = {0};
	int rc;

	(void)block;
	for (unsigned i = 0; i < index->layout.rank; i++)
		if (!index->dims[i])
			return 0;
	do {
		const struct h5_chunk chunk = find(index, scaled);

		if (chunk.address == H5_UNDEF)
			return h5_fail(-EUCLEAN, index->layout.address,
				       "implicit index: dimensions beyond their maximum");
		rc = visit(arg, &chunk);
	} while (!rc && next(index, scaled));
	return rc;
}

static uint64_t run(const struct h5_chunk_index *index)
{
	return index->count * index->chunk_size; /* was checked when the index was opened */
}

/* All chunks have their space from the creation of the dataset on, and keep it. */
static int set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	const struct h5_chunk old = find(index, scaled); /* none in an index that does not exist */

	if (old.address == H5_UNDEF || old.address != chunk->address || old.size != chunk->size ||
	    chunk->filter_mask)
		return h5_fail(-ENOTSUP, index->layout.address, "implicit index: its chunks cannot move");
	return 0;
}

/* Removes nothing: chunks beyond the dataspace are still there when it grows again. */
static int trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	(void)index;
	(void)first;
	(void)visit;
	(void)arg;
	return 0;
}

const struct h5_chunk_index_ops h5_chunk_index_implicit = {
	.name = "implicit",
	.keeps = true,
	.open = open_index,
	.lookup = lookup,
	.walk = walk,
	.run = run,
	.set = set,
	.trim = trim,
};

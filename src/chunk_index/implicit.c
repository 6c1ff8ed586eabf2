#include "base/checked.h"
#include "chunk_index/private.h"

/* The implicit index, specification VII.B: all chunks of the maximum dimensions lie one behind the other. */

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

static struct h5_chunk chunk_at(const struct h5_chunk_index *index, uint64_t number)
{
	return (struct h5_chunk){.address = index->layout.address + number * index->chunk_size,
				 .size = index->chunk_size};
}

static int lookup(const struct h5_chunk_index *index, const uint64_t *scaled, struct h5_chunk *chunk)
{
	uint64_t number;

	if (h5_chunk_index_number_of(index, scaled, &number) && number < index->count)
		*chunk = chunk_at(index, number);
	return 0;
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg)
{
	int rc = 0;

	for (uint64_t i = 0; i < index->count && !rc; i++) {
		struct h5_chunk chunk = chunk_at(index, i);

		rc = visit(arg, &chunk);
	}
	return rc;
}

const struct h5_chunk_index_ops h5_chunk_index_implicit = {open_index, lookup, walk};

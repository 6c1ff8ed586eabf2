#include "dataset/whole_chunk.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "filter/shuffle.h"

#include <string.h>

enum { CHECKED = 1024 }; /* steps between two questions if the request is still wanted */

int h5_whole_chunk_find(const struct h5_dataset *dataset, struct h5_chunk_cursor *cursor,
			const uint64_t *scaled, struct h5_whole_chunk *chunk)
{
	struct h5_grid grid;
	int rc;

	h5_chunk_grid(dataset, &grid);
	rc = h5_chunk_locate(dataset, &grid, cursor, scaled, &chunk->wanted, &chunk->state);
	chunk->needed = rc || chunk->state == H5_CHUNK_NOT_STORED ? 0 : h5_grid_needed(&grid, scaled);
	return rc;
}

bool h5_whole_chunk_is_filtered(const struct h5_whole_chunk *chunk)
{
	const struct h5_dataset *dataset = chunk->wanted.dataset;
	uint64_t all = (UINT64_C(1) << dataset->pipeline.count) - 1;

	if (!dataset->pipeline.count)
		return chunk->state == H5_CHUNK_AS_IT_IS;
	return chunk->wanted.filtered && !(chunk->wanted.chunk.filter_mask & all);
}

static int read_as_it_is(const struct h5_whole_chunk *chunk, uint64_t offset, uint8_t *buf, size_t n)
{
	uint64_t stored = chunk->wanted.chunk.size, address;
	size_t part = offset < stored ? (size_t)h5_min(n, stored - offset) : 0;

	memset(buf + part, 0, n - part);
	if (!part)
		return 0;
	if (!h5_add(chunk->wanted.chunk.address, offset, &address))
		return h5_fail(-EUCLEAN, chunk->wanted.chunk.address, "chunk: it reaches beyond any file");
	return h5_file_read(chunk->wanted.dataset->file, address, buf, part);
}

static int read_decoded(const struct h5_whole_chunk *chunk, uint64_t offset, uint8_t *buf, size_t n)
{
	struct h5_chunk_decoded decoded;
	int rc = h5_chunk_get(&chunk->wanted, true, &decoded);
	size_t part;

	if (rc)
		return rc;
	rc = h5_chunk_check_size(&chunk->wanted, decoded.size, chunk->needed);
	part = offset < decoded.size ? (size_t)h5_min(n, decoded.size - offset) : 0;
	memset(buf + part, 0, n - part);
	if (part && decoded.element_size > 1)
		h5_unshuffle(decoded.data, decoded.size, decoded.element_size, (size_t)offset, buf, part);
	else if (part)
		memcpy(buf, decoded.data + offset, part);
	h5_chunk_put(&chunk->wanted, &decoded, n, chunk->wanted.dataset->chunk_size);
	return rc;
}

int h5_whole_chunk_read(const struct h5_whole_chunk *chunk, uint64_t offset, uint8_t *buf, size_t n)
{
	int rc;

	if (chunk->state == H5_CHUNK_TO_DECODE)
		return read_decoded(chunk, offset, buf, n);
	rc = h5_chunk_check_size(&chunk->wanted, chunk->wanted.chunk.size, chunk->needed);
	return rc ? rc : read_as_it_is(chunk, offset, buf, n);
}

void h5_whole_chunk_scaled(const uint64_t *grid, unsigned rank, uint64_t number, uint64_t *scaled)
{
	for (unsigned d = rank; d-- > 0; number /= grid[d])
		scaled[d] = number % grid[d];
}

uint64_t h5_whole_chunk_number(const uint64_t *grid, unsigned rank, const uint64_t *scaled)
{
	uint64_t number = 0, inside = 1; /* 0: a coordinate before was beyond the end */

	for (unsigned d = 0; d < rank; d++) {
		if (inside && scaled[d] >= grid[d]) {
			/* All chunks with these first coordinates come before. */
			inside = 0;
			number++;
		}
		number = number * grid[d] + (inside ? scaled[d] : 0);
	}
	return number;
}

int h5_whole_chunk_next(const struct h5_dataset *dataset, struct h5_chunk_cursor *cursor,
			const uint64_t *grid, uint64_t *number, uint64_t end)
{
	uint64_t scaled[H5_RANK_MAX], next[H5_RANK_MAX];
	const unsigned rank = dataset->layout.chunked.rank;
	bool stored;

	if (!dataset->index)
		*number = h5_max(*number, end);
	for (unsigned steps = 0; *number < end; steps++) {
		int rc = steps % CHECKED ? 0 : h5_interrupt_check();

		h5_whole_chunk_scaled(grid, rank, *number, scaled);
		if (!rc)
			rc = h5_chunk_index_gap(dataset->index, cursor, scaled, &stored, next);
		if (rc || stored)
			return rc;
		*number = h5_whole_chunk_number(grid, rank, next);
	}
	return 0;
}

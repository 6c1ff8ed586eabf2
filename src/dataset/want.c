/* Tells a file that is far away what will be read of a dataset. */
#include "store/want.h"

#include "base/checked.h"
#include "dataset/boxes.h"
#include "dataset/chunk_cache.h"
#include "dataset/private.h"

/* True: the whole chunk is about to be read from the file. */
static bool is_read(const struct h5_chunk_wanted *wanted, const struct h5_part *part,
		    enum h5_chunk_state state)
{
	if (state == H5_CHUNK_TO_DECODE)
		return !h5_chunk_is_under_way(wanted);
	return state == H5_CHUNK_AS_IT_IS && h5_part_size(part) >= h5_part_chunk_size(part) / 2;
}

enum { CHUNKS = 8 }; /* that are wanted at once for each node of the index that comes ahead */

/* Nodes of the index that come ahead of n bytes. A reader that wants many chunks at once has read many. If
 * then only a few nodes came, each few would take the time of an answer. */
static unsigned reach_of(const struct h5_dataset *dataset, uint64_t n)
{
	uint64_t nodes = n / dataset->chunk_size / CHUNKS;

	return nodes > H5_WANT_NODES ? (unsigned)h5_min(nodes, H5_WANT_NODES_MOST) : 0;
}

/* The chunks of n bytes from the offset. Stops at the first error: the read will report it. */
static void find_chunks(const struct h5_dataset *dataset, uint64_t offset, uint64_t n, struct h5_want *want)
{
	struct h5_chunk_cursor cursor = {.reach = reach_of(dataset, n)};
	struct h5_part_iterator parts;
	struct h5_grid grid;

	h5_chunk_grid(dataset, &grid);
	h5_part_begin(&parts, &grid, offset, n);
	while (want->count < H5_WANT_MAX && h5_part_next(&parts) > 0) {
		struct h5_chunk_wanted wanted;
		enum h5_chunk_state state;

		if (h5_chunk_locate(dataset, &grid, &cursor, parts.part.scaled, &wanted, &state))
			break;
		if (is_read(&wanted, &parts.part, state))
			h5_want_add(want, wanted.chunk.address, wanted.chunk.size);
	}
	h5_chunk_cursor_release(dataset->index, &cursor);
}

void h5_dataset_want(const struct h5_dataset *dataset, uint64_t offset, uint64_t n, enum h5_wanted when)
{
	struct h5_want want = {.file = dataset->file};

	if (dataset->ops == &h5_layout_contiguous) {
		uint64_t address = dataset->layout.contiguous.address, size = dataset->layout.contiguous.size;

		if (address != H5_UNDEF && offset < size)
			h5_want_add(&want, address + offset, h5_min(n, size - offset));
	} else if (dataset->index) {
		find_chunks(dataset, offset, n, &want);
	}
	h5_want_send(&want, when);
}

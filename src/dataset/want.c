/* Tells a file that is far away what will be read of a dataset. */
#include "base/array.h"
#include "base/checked.h"
#include "dataset/boxes.h"
#include "dataset/chunk_cache.h"
#include "dataset/private.h"

#include <stdlib.h>

enum { CHUNKS_MAX = 1 << 12 }; /* that are looked up at once */

struct ranges {
	struct h5_io_range *list; /* owned */
	size_t count, capacity;
};

static int add(struct ranges *ranges, uint64_t offset, uint64_t n)
{
	int rc = h5_array_reserve(&ranges->list, &ranges->capacity, ranges->count + 1, NULL);

	if (!rc)
		ranges->list[ranges->count++] = (struct h5_io_range){offset, n};
	return rc;
}

static int by_offset(const void *a, const void *b)
{
	const struct h5_io_range *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* True: the whole chunk is about to be read from the file. */
static bool is_read(const struct h5_chunk_wanted *wanted, const struct h5_part *part,
		    enum h5_chunk_state state)
{
	if (state == H5_CHUNK_TO_DECODE)
		return !h5_chunk_is_under_way(wanted);
	return state == H5_CHUNK_AS_IT_IS && h5_part_size(part) >= h5_part_chunk_size(part) / 2;
}

/* The chunks of n bytes from the offset. Stops at the first error: the read will report it. */
static void find_chunks(const struct h5_dataset *dataset, uint64_t offset, uint64_t n, struct ranges *ranges)
{
	struct h5_chunk_cursor cursor = {0};
	struct h5_part_iterator parts;
	struct h5_grid grid;

	h5_chunk_grid(dataset, &grid);
	h5_part_begin(&parts, &grid, offset, n);
	while (ranges->count < CHUNKS_MAX && h5_part_next(&parts) > 0) {
		struct h5_chunk_wanted wanted;
		enum h5_chunk_state state;

		if (h5_chunk_locate(dataset, &grid, &cursor, parts.part.scaled, &wanted, &state) ||
		    (is_read(&wanted, &parts.part, state) &&
		     add(ranges, wanted.chunk.address, wanted.chunk.size)))
			break;
	}
	h5_chunk_cursor_release(dataset->index, &cursor);
}

void h5_dataset_want(const struct h5_dataset *dataset, uint64_t offset, uint64_t n, bool now)
{
	struct ranges ranges = {0};

	if (dataset->ops == &h5_layout_contiguous) {
		uint64_t address = dataset->layout.contiguous.address, size = dataset->layout.contiguous.size;

		if (address != H5_UNDEF && offset < size)
			add(&ranges, address + offset, h5_min(n, size - offset));
	} else if (dataset->index) {
		find_chunks(dataset, offset, n, &ranges);
	}
	if (ranges.count) {
		qsort(ranges.list, ranges.count, sizeof *ranges.list, by_offset);
		h5_file_want(dataset->file, ranges.list, ranges.count, now);
	}
	free(ranges.list);
}

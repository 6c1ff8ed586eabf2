#include "dataset/boxes.h"

#include "base/checked.h"
#include "base/interrupt.h"

#include <string.h>

struct box {
	uint64_t first[H5_BOX_DIMS], count[H5_BOX_DIMS];
};

void h5_grid_init(struct h5_grid *grid, unsigned rank, const uint64_t *dims, const uint64_t *chunk,
		  uint32_t element_size)
{
	grid->dims_count = rank + 1;
	memcpy(grid->dims, dims, rank * sizeof *dims);
	memcpy(grid->chunk, chunk, rank * sizeof *chunk);
	grid->dims[rank] = grid->chunk[rank] = element_size;
	grid->stride[rank] = grid->chunk_stride[rank] = 1;
	for (unsigned i = rank; i-- > 0;) {
		grid->stride[i] = grid->stride[i + 1] * grid->dims[i + 1];
		grid->chunk_stride[i] = grid->chunk_stride[i + 1] * grid->chunk[i + 1];
	}
}

bool h5_box_step(uint64_t *at, const uint64_t *first, const uint64_t *count, unsigned n)
{
	while (n--) {
		if (++at[n] - first[n] < count[n])
			return true;
		at[n] = first[n];
	}
	return false;
}

/* First index and number of the chunk's indexes in a dimension that are inside the dataset. */
static void chunk_range(const struct h5_grid *grid, const uint64_t *scaled, unsigned i, uint64_t *first,
			uint64_t *count)
{
	*first = i + 1 < grid->dims_count ? scaled[i] * grid->chunk[i] : 0;
	*count = h5_min(grid->chunk[i], grid->dims[i] - *first);
}

static void intersect(const struct h5_grid *grid, const struct box *box, struct h5_part *part)
{
	memcpy(part->first, box->first, sizeof part->first);
	memcpy(part->count, box->count, sizeof part->count);
	for (unsigned i = 0; i + 1 < grid->dims_count; i++) {
		uint64_t first, count;

		chunk_range(grid, part->scaled, i, &first, &count);
		if (part->first[i] < first) {
			part->count[i] -= first - part->first[i];
			part->first[i] = first;
		}
		part->count[i] = h5_min(part->count[i], first + count - part->first[i]);
	}
	part->outer = grid->dims_count - 1;
	while (part->outer && part->count[part->outer] == grid->dims[part->outer] &&
	       part->count[part->outer] == grid->chunk[part->outer])
		part->outer--;
	part->run = part->count[part->outer] * grid->stride[part->outer];
}

bool h5_part_is_whole(const struct h5_part *part)
{
	for (unsigned i = 0; i < part->grid->dims_count; i++) {
		uint64_t first, count;

		chunk_range(part->grid, part->scaled, i, &first, &count);
		if (part->count[i] != count)
			return false;
	}
	return true;
}

uint64_t h5_part_size(const struct h5_part *part)
{
	uint64_t size = 1;

	for (unsigned i = 0; i < part->grid->dims_count; i++)
		size *= part->count[i];
	return size;
}

uint64_t h5_part_chunk_size(const struct h5_part *part)
{
	uint64_t size = 1;

	for (unsigned i = 0; i < part->grid->dims_count; i++) {
		uint64_t first, count;

		chunk_range(part->grid, part->scaled, i, &first, &count);
		size *= count;
	}
	return size;
}

uint64_t h5_part_stretch(const struct h5_part *part)
{
	unsigned i = part->grid->dims_count - 1;

	while (i && part->count[i] == part->grid->chunk[i])
		i--;
	return part->count[i] * part->grid->chunk_stride[i];
}

int h5_part_walk(const struct h5_part *part, h5_run_visit *visit, void *arg)
{
	const struct h5_grid *grid = part->grid;
	uint64_t at[H5_BOX_DIMS];
	int rc;

	memcpy(at, part->first, sizeof at);
	do {
		uint64_t from = 0, to = 0;

		for (unsigned i = 0; i < grid->dims_count; i++) {
			uint64_t origin = i + 1 < grid->dims_count ? part->scaled[i] * grid->chunk[i] : 0;

			from += (at[i] - origin) * grid->chunk_stride[i];
			to += at[i] * grid->stride[i];
		}
		rc = visit(arg, from, to, (size_t)part->run);
	} while (!rc && h5_box_step(at, part->first, part->count, part->outer));
	return rc;
}

static int walk_box(const struct h5_grid *grid, const struct box *box, h5_part_visit *visit, void *arg)
{
	uint64_t first[H5_BOX_DIMS], count[H5_BOX_DIMS], scaled[H5_BOX_DIMS];
	unsigned rank = grid->dims_count - 1;
	struct h5_part part = {.grid = grid, .scaled = scaled};
	unsigned parts = 0;
	int rc;

	for (unsigned i = 0; i < rank; i++) {
		first[i] = scaled[i] = box->first[i] / grid->chunk[i];
		count[i] = (box->first[i] + box->count[i] - 1) / grid->chunk[i] - first[i] + 1;
	}
	do {
		intersect(grid, box, &part);
		rc = visit(arg, &part);
		if (!rc && !(++parts % 1024))
			rc = h5_interrupt_check();
	} while (!rc && h5_box_step(scaled, first, count, rank));
	return rc;
}

/* The largest box that begins at the offset and has at most n bytes; its bytes. */
static uint64_t cut_box(const struct h5_grid *grid, uint64_t offset, uint64_t n, struct box *box)
{
	unsigned whole = 0; /* this dimension's indexes are taken whole */
	uint64_t rest = offset;

	while (rest % grid->stride[whole] || grid->stride[whole] > n) {
		box->first[whole] = rest / grid->stride[whole];
		box->count[whole] = 1;
		rest %= grid->stride[whole];
		whole++;
	}
	box->first[whole] = rest / grid->stride[whole];
	box->count[whole] = h5_min(n / grid->stride[whole], grid->dims[whole] - box->first[whole]);
	for (unsigned i = whole + 1; i < grid->dims_count; i++) {
		box->first[i] = 0;
		box->count[i] = grid->dims[i];
	}
	return box->count[whole] * grid->stride[whole];
}

int h5_grid_walk(const struct h5_grid *grid, uint64_t offset, uint64_t n, h5_part_visit *visit, void *arg)
{
	int rc = 0;

	while (n && !rc) {
		struct box box;
		uint64_t bytes = cut_box(grid, offset, n, &box);

		rc = walk_box(grid, &box, visit, arg);
		offset += bytes;
		n -= bytes;
	}
	return rc;
}

uint64_t h5_grid_needed(const struct h5_grid *grid, const uint64_t *scaled)
{
	unsigned last = grid->dims_count - 1; /* the bytes of an element, all of which are there */
	uint64_t needed = grid->chunk[last];

	for (unsigned i = 0; i < last; i++) {
		uint64_t first = scaled[i] * grid->chunk[i];

		if (grid->dims[i] <= first)
			return 0;
		needed += (h5_min(grid->dims[i] - first, grid->chunk[i]) - 1) * grid->chunk_stride[i];
	}
	return needed;
}

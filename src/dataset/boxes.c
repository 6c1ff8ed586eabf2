#include "dataset/boxes.h"

#include "base/checked.h"
#include "base/interrupt.h"

#include <assert.h>
#include <string.h>

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

/* Which indexes of dimension i the chunk has inside the dataset: the first, and how many. */
static void chunk_range(const struct h5_grid *grid, const uint64_t *scaled, unsigned i, uint64_t *first,
			uint64_t *count)
{
	*first = i + 1 < grid->dims_count ? scaled[i] * grid->chunk[i] : 0;
	*count = h5_min(grid->chunk[i], grid->dims[i] - *first);
}

/* Sets the part to what the box and the chunk part->scaled have in common. */
static void intersect(const struct h5_box *box, struct h5_part *part)
{
	const struct h5_grid *grid = part->grid;
	struct h5_box *common = &part->box;

	*common = *box;
	for (unsigned i = 0; i + 1 < grid->dims_count; i++) {
		uint64_t first, count;

		chunk_range(grid, part->scaled, i, &first, &count);
		if (common->first[i] < first) {
			common->count[i] -= first - common->first[i];
			common->first[i] = first;
		}
		common->count[i] = h5_min(common->count[i], first + count - common->first[i]);
	}
	part->outer = grid->dims_count - 1;
	while (part->outer && common->count[part->outer] == grid->dims[part->outer] &&
	       common->count[part->outer] == grid->chunk[part->outer])
		part->outer--;
	part->run = common->count[part->outer] * grid->stride[part->outer];
}

bool h5_part_is_whole(const struct h5_part *part)
{
	for (unsigned i = 0; i < part->grid->dims_count; i++) {
		uint64_t first, count;

		chunk_range(part->grid, part->scaled, i, &first, &count);
		if (part->box.count[i] != count)
			return false;
	}
	return true;
}

static uint64_t box_size(const struct h5_grid *grid, const struct h5_box *box)
{
	uint64_t size = 1;

	for (unsigned i = 0; i < grid->dims_count; i++)
		size *= box->count[i];
	return size;
}

uint64_t h5_part_size(const struct h5_part *part)
{
	return box_size(part->grid, &part->box);
}

uint64_t h5_part_box_size(const struct h5_part_iterator *parts)
{
	return box_size(parts->part.grid, &parts->box);
}

bool h5_part_box_passes(const struct h5_part_iterator *parts)
{
	for (unsigned i = 0; i + 2 < parts->part.grid->dims_count; i++)
		if (parts->chunks.count[i] > 1)
			return true;
	return false;
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

	while (i && part->box.count[i] == part->grid->chunk[i])
		i--;
	return part->box.count[i] * part->grid->chunk_stride[i];
}

/* Finds the largest box that begins at the offset and has at most n bytes. Returns how many it has. */
static uint64_t cut_box(const struct h5_grid *grid, uint64_t offset, uint64_t n, struct h5_box *box)
{
	unsigned whole = 0; /* the box has all of each index of this dimension */
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

/* Begins the next box of the range. */
static void begin_box(struct h5_part_iterator *parts)
{
	const struct h5_grid *grid = parts->part.grid;
	uint64_t bytes = cut_box(grid, parts->offset, parts->left, &parts->box);

	parts->offset += bytes;
	parts->left -= bytes;
	for (unsigned i = 0; i + 1 < grid->dims_count; i++) {
		uint64_t first = parts->box.first[i] / grid->chunk[i];
		uint64_t last = (parts->box.first[i] + parts->box.count[i] - 1) / grid->chunk[i];

		parts->chunks.first[i] = parts->part.scaled[i] = first;
		parts->chunks.count[i] = last - first + 1;
	}
}

void h5_part_begin(struct h5_part_iterator *parts, const struct h5_grid *grid, uint64_t offset, uint64_t n)
{
	assert(offset <= grid->dims[0] * grid->stride[0] && n <= grid->dims[0] * grid->stride[0] - offset);
	parts->part.grid = grid;
	parts->offset = offset;
	parts->left = n;
	parts->inside = false;
	parts->count = 0;
}

int h5_part_next(struct h5_part_iterator *parts)
{
	unsigned rank = parts->part.grid->dims_count - 1;
	int rc;

	if (parts->inside)
		parts->inside =
			h5_box_step(parts->part.scaled, parts->chunks.first, parts->chunks.count, rank);
	if (!parts->inside) {
		if (!parts->left)
			return 0;
		begin_box(parts);
		parts->inside = true;
	}
	intersect(&parts->box, &parts->part);
	if (++parts->count % 1024)
		return 1;
	rc = h5_interrupt_check();
	return rc ? rc : 1;
}

void h5_run_begin(struct h5_run_iterator *runs, const struct h5_part *part)
{
	const struct h5_grid *grid = part->grid;

	runs->part = part;
	runs->more = true;
	memcpy(runs->at, part->box.first, sizeof runs->at);
	runs->next = (struct h5_part_run){.n = (size_t)part->run};
	for (unsigned i = 0; i < grid->dims_count; i++) {
		uint64_t origin = i + 1 < grid->dims_count ? part->scaled[i] * grid->chunk[i] : 0;

		runs->next.in_chunk += (runs->at[i] - origin) * grid->chunk_stride[i];
		runs->next.in_dataset += runs->at[i] * grid->stride[i];
	}
}

/* As h5_box_step() for the first n dimensions, and the run steps along. */
static bool step_run(struct h5_run_iterator *runs, unsigned n)
{
	const struct h5_grid *grid = runs->part->grid;
	const struct h5_box *box = &runs->part->box;

	for (unsigned i = n; i-- > 0;) {
		if (++runs->at[i] - box->first[i] < box->count[i]) {
			runs->next.in_chunk += grid->chunk_stride[i];
			runs->next.in_dataset += grid->stride[i];
			return true;
		}
		runs->at[i] = box->first[i];
		runs->next.in_chunk -= (box->count[i] - 1) * grid->chunk_stride[i];
		runs->next.in_dataset -= (box->count[i] - 1) * grid->stride[i];
	}
	return false;
}

bool h5_run_next(struct h5_run_iterator *runs)
{
	if (!runs->more)
		return false;
	runs->run = runs->next;
	runs->more = step_run(runs, runs->part->outer);
	return true;
}

bool h5_run_next_rows(struct h5_run_iterator *runs, struct h5_part_rows *rows)
{
	const struct h5_grid *grid = runs->part->grid;
	const unsigned outer = runs->part->outer;

	if (!runs->more)
		return false;
	*rows = (struct h5_part_rows){.first = runs->next, .count = 1};
	if (outer) {
		rows->count = runs->part->box.count[outer - 1];
		rows->chunk_step = grid->chunk_stride[outer - 1];
		rows->dataset_step = grid->stride[outer - 1];
	}
	runs->more = outer && step_run(runs, outer - 1);
	return true;
}

uint64_t h5_grid_needed(const struct h5_grid *grid, const uint64_t *scaled)
{
	unsigned last =
		grid->dims_count - 1; /* the dimension of the bytes of an element; all of them are there */
	uint64_t needed = grid->chunk[last];

	for (unsigned i = 0; i < last; i++) {
		uint64_t first = scaled[i] * grid->chunk[i];

		if (grid->dims[i] <= first)
			return 0;
		needed += (h5_min(grid->dims[i] - first, grid->chunk[i]) - 1) * grid->chunk_stride[i];
	}
	return needed;
}

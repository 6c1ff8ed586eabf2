#include "dataset/selection_walk.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lower_bound.h"
#include "dataset/selection_private.h"

/* ---- regular walks ---- */

/* How many indexes are selected. */
static uint64_t slab_count(const struct h5_hyperslab *slab)
{
	uint64_t last;

	if (!slab->count || !slab->block)
		return 0;
	last = slab->end - slab->start - (slab->count - 1) * slab->stride;
	return (slab->count - 1) * slab->block + h5_min(slab->block, last);
}

static void set_dim(struct h5_walk_dim *dim, const struct h5_hyperslab *slab, uint64_t extent)
{
	dim->start = slab->start;
	dim->stride = slab->stride;
	dim->block = slab->block;
	dim->count = slab_count(slab);
	dim->extent = extent;
	if (slab->count < 2 || slab->block == slab->stride)
		dim->stride = dim->block = dim->count;
}

static bool is_whole(const struct h5_walk_dim *dim)
{
	return !dim->start && dim->count == dim->extent;
}

/* Joins a dimension of which all indexes are selected to the one before it, for longer runs. */
static void join_dims(struct h5_walk *walk)
{
	unsigned kept = 0;

	for (unsigned i = 1; i < walk->rank; i++) {
		const struct h5_walk_dim *dim = &walk->dims[i];
		struct h5_walk_dim *outer = &walk->dims[kept];

		if (!walk->inside || !is_whole(dim)) {
			walk->dims[++kept] = *dim;
			continue;
		}
		outer->start *= dim->extent;
		outer->stride *= dim->extent;
		outer->block *= dim->extent;
		outer->count *= dim->extent;
		outer->extent *= dim->extent;
		if (outer->count == outer->block)
			outer->stride = outer->block;
	}
	walk->rank = kept + 1;
}

static int count_elements(struct h5_walk *walk)
{
	uint64_t counts[H5_RANK_MAX], step = 1;

	for (unsigned i = 0; i < walk->rank; i++)
		counts[i] = walk->dims[i].count;
	if (!h5_product(counts, walk->rank, &walk->count))
		return h5_fail(-EUCLEAN, H5_UNDEF, "selection: more than 2^64 elements");
	for (unsigned i = walk->rank; i-- > 0; step *= walk->dims[i].extent) {
		walk->dims[i].step = step;
		walk->dims[i].weight = i + 1 < walk->rank && walk->count
					       ? walk->dims[i + 1].weight * walk->dims[i + 1].count
					       : 1;
	}
	return 0;
}

/* All elements: one dimension of which each index is selected. */
static void init_all(struct h5_walk *walk, unsigned rank, const uint64_t *dims)
{
	struct h5_walk_dim *dim = &walk->dims[0];

	walk->rank = 1;
	walk->inside = true;
	h5_product(dims, rank, &dim->extent);
	dim->start = 0;
	dim->stride = dim->block = dim->count = dim->extent;
}

int h5_walk_init(struct h5_walk *walk, const struct h5_shape *shape, unsigned rank, const uint64_t *dims,
		 const struct h5_hyperslab *slab)
{
	walk->shape = shape;
	walk->rank = rank;
	walk->inside = true;
	if (shape->kind == H5_SELECT_ALL) {
		init_all(walk, rank, dims);
		return count_elements(walk);
	}
	for (unsigned i = 0; i < rank; i++)
		walk->dims[i].extent = dims[i];
	if (!shape->slabs) {
		walk->count = shape->count;
		for (unsigned i = 0; i < rank && shape->levels; i++)
			walk->inside &= shape->ends[i] <= dims[i];
		for (uint64_t i = rank, step = 1; i-- > 0; step *= dims[i])
			walk->dims[i].step = step;
		return 0;
	}
	for (unsigned i = 0; i < rank; i++) {
		const struct h5_hyperslab *one = (int)i == shape->unlimited ? slab : &shape->slabs[i];

		set_dim(&walk->dims[i], one, dims[i]);
		walk->inside &= !walk->dims[i].count || one->end <= dims[i];
	}
	join_dims(walk);
	return count_elements(walk);
}

/* How many selected indexes are below this one. */
static uint64_t dim_below(const struct h5_walk_dim *dim, uint64_t at)
{
	uint64_t ahead = at > dim->start ? at - dim->start : 0;

	if (!dim->stride)
		return 0;
	return h5_min(dim->count, ahead / dim->stride * dim->block + h5_min(ahead % dim->stride, dim->block));
}

/* The selected index number `number`. */
static uint64_t dim_index(const struct h5_walk_dim *dim, uint64_t number)
{
	return dim->start + number / dim->block * dim->stride + number % dim->block;
}

/* Makes the run that begins at these numbers of selected indexes. */
static void make_run(const struct h5_walk *walk, const uint64_t *numbers, struct h5_run *run)
{
	const struct h5_walk_dim *dim = &walk->dims[walk->rank - 1];
	uint64_t number = numbers[walk->rank - 1], at = 0;
	bool outside = false;

	run->position = run->index = 0;
	for (unsigned i = 0; i < walk->rank; i++) {
		at = dim_index(&walk->dims[i], numbers[i]);
		outside |= at >= walk->dims[i].extent;
		run->index += numbers[i] * walk->dims[i].weight;
		run->position += at * walk->dims[i].step;
	}
	run->count = h5_min(dim->block - number % dim->block, dim->count - number);
	if (outside)
		run->position = UINT64_MAX;
	else
		run->count = h5_min(run->count, dim->extent - at);
}

static bool regular_from(const struct h5_walk *walk, uint64_t position, struct h5_run *run)
{
	uint64_t numbers[H5_RANK_MAX] = {0};
	unsigned i;

	for (i = 0; i < walk->rank; i++) {
		const struct h5_walk_dim *dim = &walk->dims[i];
		uint64_t at = position / dim->step;

		position %= dim->step;
		numbers[i] = dim_below(dim, at);
		if (numbers[i] == dim->count || dim_index(dim, numbers[i]) != at)
			break;
	}
	/* The position is beyond the selected indexes of dimension i: goes on with the next index of the
	 * dimension before, and the first ones of the later dimensions. */
	while (i < walk->rank && numbers[i] == walk->dims[i].count) {
		numbers[i] = 0;
		if (!i)
			return false;
		numbers[--i]++;
	}
	make_run(walk, numbers, run);
	return true;
}

static void regular_at(const struct h5_walk *walk, uint64_t index, struct h5_run *run)
{
	uint64_t numbers[H5_RANK_MAX];

	for (unsigned i = 0; i < walk->rank; i++) {
		numbers[i] = index / walk->dims[i].weight;
		index %= walk->dims[i].weight;
	}
	make_run(walk, numbers, run);
}

/* ---- walks of blocks ---- */

/* The first of the nodes that does not end before the index. */
static size_t node_from(const struct h5_shape_level *level, size_t begin, size_t end, uint64_t at)
{
	return begin + h5_lower_bound(i, end - begin, level->nodes[begin + i].last < at);
}

/* Finds the first run of these nodes of level d from the element with the indexes `at` on (NULL: from their
 * first one on), and adds it to *run, which has what the dimensions before give. False: there is none. */
static bool blocks_from(const struct h5_walk *walk, unsigned d, size_t begin, size_t end, const uint64_t *at,
			struct h5_run *run)
{
	const struct h5_shape_level *level = &walk->shape->levels[d];
	size_t i = at ? node_from(level, begin, end, at[d]) : begin;

	for (; i < end; i++) {
		const struct h5_shape_node *node = &level->nodes[i];
		bool within = at && at[d] >= node->first; /* the node has the index itself */
		uint64_t index = within ? at[d] : node->first;
		struct h5_run found = *run;

		if (d + 1 == walk->rank) {
			run->position += index;
			run->index += node->before + (index - node->first);
			run->count = node->last - index + 1;
			return true;
		}
		/* First in this index; then in the next one, all elements of which come later. */
		for (; index <= node->last; index++, within = false) {
			found.position = run->position + index * walk->dims[d].step;
			found.index = run->index + node->before + (index - node->first) * node->each;
			if (blocks_from(walk, d + 1, node->begin, node->end, within ? at : NULL, &found)) {
				*run = found;
				return true;
			}
		}
		at = NULL;
	}
	return false;
}

static void blocks_at(const struct h5_walk *walk, uint64_t number, struct h5_run *run)
{
	size_t begin = 0, end = walk->shape->levels[0].count;
	bool outside = false;

	*run = (struct h5_run){.index = number};
	for (unsigned d = 0; d < walk->rank; d++) {
		const struct h5_shape_level *level = &walk->shape->levels[d];
		const struct h5_shape_node *node;
		uint64_t index;

		/* The last node that begins at the number or before. */
		begin += h5_lower_bound(i, end - begin - 1, level->nodes[begin + i + 1].before <= number);
		node = &level->nodes[begin];
		number -= node->before;
		index = node->first + number / node->each;
		number %= node->each;
		outside |= index >= walk->dims[d].extent;
		run->position += index * walk->dims[d].step;
		run->count = node->last - index + 1;
		if (!outside && d + 1 == walk->rank)
			run->count = h5_min(run->count, walk->dims[d].extent - index);
		begin = node->begin;
		end = node->end;
	}
	if (outside)
		run->position = UINT64_MAX;
}

/* ---- walks of points ---- */

static bool points_from(const struct h5_shape *shape, uint64_t position, struct h5_run *run)
{
	size_t begin = h5_lower_bound(i, shape->run_count,
				      shape->runs[i].position + shape->runs[i].count <= position);

	if (begin == shape->run_count)
		return false;
	*run = shape->runs[begin];
	if (run->position < position) {
		uint64_t passed = position - run->position;

		*run = (struct h5_run){position, run->index + passed, run->count - passed};
	}
	return true;
}

static void points_at(const struct h5_walk *walk, uint64_t index, struct h5_run *run)
{
	const uint64_t *point = walk->shape->points + index * walk->shape->rank;
	uint64_t dims[H5_RANK_MAX];

	for (unsigned i = 0; i < walk->rank; i++)
		dims[i] = walk->dims[i].extent;
	run->index = index;
	run->count = 1;
	if (!h5_selection_position(point, walk->rank, dims, &run->position))
		run->position = UINT64_MAX;
}

/* ---- walks ---- */

bool h5_walk_from(const struct h5_walk *walk, uint64_t position, struct h5_run *run)
{
	const struct h5_shape *shape = walk->shape;
	uint64_t at[H5_RANK_MAX];

	if (!walk->count)
		return false;
	if (shape->points)
		return points_from(shape, position, run);
	if (!shape->levels)
		return regular_from(walk, position, run);
	for (unsigned i = 0; i < walk->rank; i++) {
		at[i] = position / walk->dims[i].step;
		position %= walk->dims[i].step;
	}
	*run = (struct h5_run){0};
	return blocks_from(walk, 0, 0, shape->levels[0].count, at, run);
}

void h5_walk_at(const struct h5_walk *walk, uint64_t index, struct h5_run *run)
{
	if (walk->shape->points)
		points_at(walk, index, run);
	else if (walk->shape->levels)
		blocks_at(walk, index, run);
	else
		regular_at(walk, index, run);
}

void h5_walk_bounds(const struct h5_walk *walk, uint64_t *begin, uint64_t *end)
{
	const struct h5_shape *shape = walk->shape;
	struct h5_run run = {0};

	h5_walk_from(walk, 0, &run);
	*begin = run.position;
	if (shape->points)
		run = shape->runs[shape->run_count - 1];
	else
		h5_walk_at(walk, walk->count - 1, &run);
	*end = run.position + run.count;
}

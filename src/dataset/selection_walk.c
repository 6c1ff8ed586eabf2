#include "dataset/selection_walk.h"

#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* The blocks of an irregular hyperslab become a tree with a level for each dimension: a node is a range of
 * indexes that select the same in the dimensions after it, which its children say. */
struct node {
	uint64_t first, last;
	uint64_t before;   /* elements of its earlier siblings */
	uint64_t each;	   /* elements of one index */
	size_t begin, end; /* its children in the next level */
};

struct level {
	struct node *nodes;
	size_t count, capacity;
};

struct h5_shape {
	enum h5_selection_kind kind;
	unsigned rank; /* 0: all and none, which fit every rank */
	int unlimited;
	struct h5_hyperslab *slabs; /* regular hyperslab; else NULL */
	struct level *levels;	    /* irregular one: a level a dimension */
	uint64_t *ends;		    /* and beyond its last index in each dimension */
	uint64_t count;		    /* irregular: elements; points */
	uint64_t *points;
	struct h5_run *runs; /* of points, by position; NULL: not asked for */
	size_t run_count;
};

/* ---- irregular hyperslabs ---- */

/* Nodes and visits to blocks beyond what blocks that don't overlap in parts need. */
enum { TREE_WORK = 1 << 20 };

struct tree {
	struct h5_shape *shape;
	uint64_t work; /* that may still be done */
};

static int damaged(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "selection: %s", what);
}

static int push(struct tree *tree, unsigned d, const struct node *node)
{
	struct level *level = &tree->shape->levels[d];

	if (level->count == level->capacity) {
		size_t capacity = level->capacity ? 2 * level->capacity : 4;
		struct node *nodes = realloc(level->nodes, capacity * sizeof *nodes);

		if (!nodes)
			return -ENOMEM;
		level->nodes = nodes;
		level->capacity = capacity;
	}
	level->nodes[level->count++] = *node;
	return 0;
}

/* Blocks are pointers to their first corner in dimension d; `rank` further is their last one. */
static int by_first(const void *a, const void *b, void *dimension)
{
	const uint64_t *x = *(const uint64_t *const *)a, *y = *(const uint64_t *const *)b;
	unsigned d = *(const unsigned *)dimension;

	return (x[d] > y[d]) - (x[d] < y[d]);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The last dimension: ranges that touch become one. `blocks` are sorted. */
static int build_last(struct tree *tree, const uint64_t **blocks, size_t n, uint64_t *total)
{
	unsigned rank = tree->shape->rank, d = rank - 1;
	struct node node = {.each = 1};
	int rc = 0;

	for (size_t i = 0; i < n && !rc;) {
		node.first = blocks[i][d];
		node.last = blocks[i][rank + d];
		for (i++; i < n && blocks[i][d] <= node.last + 1; i++)
			if (blocks[i][rank + d] > node.last)
				node.last = blocks[i][rank + d];
		node.before = *total;
		*total += node.last - node.first + 1;
		rc = push(tree, d, &node);
	}
	return rc;
}

static int build(struct tree *tree, unsigned d, const uint64_t **blocks, size_t n, uint64_t *total);

/* One node: the indexes from first to last, where just these blocks are. */
static int build_node(struct tree *tree, unsigned d, const uint64_t **blocks, size_t n, uint64_t first,
		      uint64_t last, uint64_t *total)
{
	struct node node = {.first = first, .last = last, .before = *total};
	uint64_t elements;
	int rc;

	if (n >= tree->work)
		return h5_fail(-ENOTSUP, H5_UNDEF, "selection: too many blocks overlap");
	tree->work -= n + 1;
	node.begin = tree->shape->levels[d + 1].count;
	rc = build(tree, d + 1, blocks, n, &node.each);
	if (rc)
		return rc;
	node.end = tree->shape->levels[d + 1].count;
	if (!h5_mul(last - first + 1, node.each, &elements) || !h5_add(*total, elements, total))
		return damaged("more than 2^64 elements");
	return push(tree, d, &node);
}

/* Cuts the dimension where blocks begin and end. `at`: where, sorted; `active`: room for n blocks, twice. */
static int build_cuts(struct tree *tree, unsigned d, const uint64_t **blocks, size_t n, const uint64_t *at,
		      const uint64_t **active, uint64_t *total)
{
	unsigned rank = tree->shape->rank;
	size_t next = 0, count = 0;
	int rc = 0;

	for (size_t i = 0; i + 1 < 2 * n && !rc; i++) {
		size_t kept = 0;

		if (at[i] == at[i + 1])
			continue;
		for (size_t k = 0; k < count; k++)
			if (active[k][rank + d] >= at[i])
				active[kept++] = active[k];
		count = kept;
		while (next < n && blocks[next][d] <= at[i])
			active[count++] = blocks[next++];
		if (!count)
			continue;
		memcpy(active + n, active, count * sizeof *active); /* which is sorted again */
		rc = build_node(tree, d, active + n, count, at[i], at[i + 1] - 1, total);
	}
	return rc;
}

/* Appends the nodes of these blocks to level d; *total: their elements. Deep as the rank. */
static int build(struct tree *tree, unsigned d, const uint64_t **blocks, size_t n, uint64_t *total)
{
	unsigned rank = tree->shape->rank;
	const uint64_t **active;
	uint64_t *at;
	int rc = -ENOMEM;

	*total = 0;
	qsort_r(blocks, n, sizeof *blocks, by_first, &d);
	if (d + 1 == rank)
		return build_last(tree, blocks, n, total);
	at = malloc(2 * n * sizeof *at);
	active = malloc(2 * n * sizeof *active);
	if (at && active) {
		for (size_t i = 0; i < n; i++) {
			at[2 * i] = blocks[i][d];
			at[2 * i + 1] = blocks[i][rank + d] + 1;
		}
		qsort(at, 2 * n, sizeof *at, by_value);
		rc = build_cuts(tree, d, blocks, n, at, active, total);
	}
	free(at);
	free(active);
	return rc;
}

static int open_blocks(struct h5_shape *shape, const uint64_t *coordinates, uint64_t count)
{
	struct tree tree = {shape, 4 * count * shape->rank + TREE_WORK};
	const uint64_t **blocks = calloc(count + 1, sizeof *blocks);
	int rc;

	shape->levels = calloc(shape->rank, sizeof *shape->levels);
	shape->ends = calloc(shape->rank, sizeof *shape->ends);
	if (!blocks || !shape->levels || !shape->ends) {
		free(blocks);
		return -ENOMEM;
	}
	for (uint64_t b = 0; b < count; b++) {
		blocks[b] = coordinates + 2 * shape->rank * b;
		for (unsigned i = 0; i < shape->rank; i++)
			if (blocks[b][shape->rank + i] >= shape->ends[i])
				shape->ends[i] = blocks[b][shape->rank + i] + 1;
	}
	rc = count ? build(&tree, 0, blocks, count, &shape->count) : 0;
	free(blocks);
	return rc;
}

/* ---- points ---- */

static int by_position(const void *a, const void *b)
{
	const struct h5_run *x = a, *y = b;

	if (x->position != y->position)
		return x->position > y->position ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static bool position_of(const uint64_t *point, unsigned rank, const uint64_t *dims, uint64_t *position)
{
	*position = 0;
	for (unsigned i = 0; i < rank; i++) {
		if (point[i] >= dims[i])
			return false;
		*position = *position * dims[i] + point[i];
	}
	return true;
}

/* Of a point that is there twice the later one counts. */
static void join_points(struct h5_shape *shape)
{
	size_t kept = 0;

	for (size_t i = 0; i < shape->count; i++) {
		const struct h5_run *point = &shape->runs[i];
		struct h5_run *run = kept ? &shape->runs[kept - 1] : NULL;

		if (i + 1 < shape->count && shape->runs[i + 1].position == point->position)
			continue;
		if (run && point->position == run->position + run->count &&
		    point->index == run->index + run->count)
			run->count++;
		else
			shape->runs[kept++] = *point;
	}
	shape->run_count = kept;
}

static int sort_points(struct h5_shape *shape, const uint64_t *dims)
{
	shape->runs = calloc(shape->count + 1, sizeof *shape->runs);
	if (!shape->runs)
		return -ENOMEM;
	for (uint64_t i = 0; i < shape->count; i++) {
		shape->runs[i].index = i;
		shape->runs[i].count = 1;
		if (!position_of(shape->points + i * shape->rank, shape->rank, dims,
				 &shape->runs[i].position))
			return damaged("a point outside the dataset");
	}
	qsort(shape->runs, shape->count, sizeof *shape->runs, by_position);
	join_points(shape);
	return 0;
}

/* ---- shapes ---- */

static int open_slabs(struct h5_shape *shape, const struct h5_selection *selection)
{
	shape->slabs = malloc(shape->rank * sizeof *shape->slabs);
	if (!shape->slabs)
		return -ENOMEM;
	memcpy(shape->slabs, selection->slabs, shape->rank * sizeof *shape->slabs);
	for (unsigned i = 0; i < shape->rank; i++)
		if (shape->slabs[i].count == H5_UNLIMITED || shape->slabs[i].block == H5_UNLIMITED)
			shape->unlimited = (int)i;
	return 0;
}

static size_t cost_of(const struct h5_shape *shape)
{
	size_t cost = sizeof *shape + shape->run_count * sizeof *shape->runs;

	if (shape->slabs)
		cost += shape->rank * sizeof *shape->slabs;
	if (shape->points)
		cost += shape->count * shape->rank * sizeof *shape->points;
	for (unsigned i = 0; shape->levels && i < shape->rank; i++)
		cost += sizeof *shape->levels + shape->levels[i].capacity * sizeof(struct node);
	return cost;
}

int h5_shape_open(struct h5_selection *selection, const uint64_t *dims, struct h5_shape **out, size_t *cost)
{
	struct h5_shape *shape = calloc(1, sizeof *shape);
	int rc = 0;

	if (!shape)
		return h5_fail(-ENOMEM, H5_UNDEF, "selection: out of memory");
	shape->kind = selection->kind;
	shape->rank = selection->rank;
	shape->unlimited = -1;
	if (selection->kind == H5_SELECT_HYPERSLAB && selection->regular) {
		rc = open_slabs(shape, selection);
	} else if (selection->kind == H5_SELECT_HYPERSLAB) {
		rc = open_blocks(shape, selection->coordinates, selection->count);
	} else if (selection->kind == H5_SELECT_POINTS) {
		shape->points = selection->coordinates;
		shape->count = selection->count;
		selection->coordinates = NULL;
		rc = dims ? sort_points(shape, dims) : 0;
	}
	if (rc) {
		h5_shape_close(shape);
		return rc == -ENOMEM ? h5_fail(rc, H5_UNDEF, "selection: out of memory") : rc;
	}
	*cost = cost_of(shape);
	*out = shape;
	return 0;
}

void h5_shape_close(struct h5_shape *shape)
{
	if (!shape)
		return;
	for (unsigned i = 0; shape->levels && i < shape->rank; i++)
		free(shape->levels[i].nodes);
	free(shape->levels);
	free(shape->ends);
	free(shape->slabs);
	free(shape->points);
	free(shape->runs);
	free(shape);
}

bool h5_shape_has_rank(const struct h5_shape *shape, unsigned rank)
{
	return shape->kind == H5_SELECT_ALL || shape->kind == H5_SELECT_NONE || shape->rank == rank;
}

int h5_shape_unlimited(const struct h5_shape *shape)
{
	return shape->unlimited;
}

/* Blocks without gaps between them count as one. */
static bool is_gapless(const struct h5_hyperslab *slab)
{
	return slab->block == H5_UNLIMITED || slab->block == slab->stride;
}

uint64_t h5_shape_slices(const struct h5_shape *shape, uint64_t extent)
{
	const struct h5_hyperslab *slab = &shape->slabs[shape->unlimited];
	uint64_t left = extent > slab->start ? extent - slab->start : 0;

	if (is_gapless(slab))
		return left;
	return left / slab->stride * slab->block + h5_min(left % slab->stride, slab->block);
}

uint64_t h5_shape_extent(const struct h5_shape *shape, uint64_t slices)
{
	struct h5_hyperslab slab;

	if (!slices)
		return 0;
	return h5_shape_cut(shape, slices, &slab) ? slab.end : UINT64_MAX;
}

bool h5_shape_cut(const struct h5_shape *shape, uint64_t slices, struct h5_hyperslab *slab)
{
	uint64_t last;

	*slab = shape->slabs[shape->unlimited];
	if (is_gapless(slab)) {
		slab->count = 1;
		slab->block = slab->stride = slices;
		return h5_add(slab->start, slices, &slab->end);
	}
	if (!slices || !slab->block) {
		slab->count = 0;
		slab->end = slab->start;
		return true;
	}
	slab->count = (slices - 1) / slab->block + 1;
	last = (slices - 1) % slab->block + 1;
	return h5_mul(slab->count - 1, slab->stride, &slab->end) && h5_add(slab->end, last, &slab->end) &&
	       h5_add(slab->end, slab->start, &slab->end);
}

bool h5_shape_block(const struct h5_shape *shape, uint64_t block, struct h5_hyperslab *slab)
{
	uint64_t ahead;

	*slab = shape->slabs[shape->unlimited];
	if (slab->block == H5_UNLIMITED || !h5_mul(block, slab->stride, &ahead) ||
	    !h5_add(slab->start, ahead, &slab->start) || !h5_add(slab->start, slab->block, &slab->end))
		return false;
	slab->count = 1;
	return true;
}

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

/* Dimensions that are taken whole become one with those before them, for longer runs. */
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
		return damaged("more than 2^64 elements");
	for (unsigned i = walk->rank; i-- > 0; step *= walk->dims[i].extent) {
		walk->dims[i].step = step;
		walk->dims[i].weight = i + 1 < walk->rank && walk->count
					       ? walk->dims[i + 1].weight * walk->dims[i + 1].count
					       : 1;
	}
	return 0;
}

/* All elements are one dimension of which each index is taken. */
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

/* The selected index of that number. */
static uint64_t dim_index(const struct h5_walk_dim *dim, uint64_t number)
{
	return dim->start + number / dim->block * dim->stride + number % dim->block;
}

/* Fills the run from the selected indexes' numbers. */
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
	/* From dimension i on the position is behind: the first of what is selected there. Where there is no
	 * more, the dimension before goes on. */
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

/* The first of the nodes that ends at the index or beyond. */
static size_t node_from(const struct level *level, size_t begin, size_t end, uint64_t at)
{
	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;

		if (level->nodes[middle].last < at)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

/* Adds the first elements of these nodes from the index `at` of each dimension on, where `behind` is false
 * all of them, to the run. False: none. */
static bool blocks_from(const struct h5_walk *walk, unsigned d, size_t begin, size_t end, const uint64_t *at,
			struct h5_run *run)
{
	const struct level *level = &walk->shape->levels[d];
	size_t i = at ? node_from(level, begin, end, at[d]) : begin;

	for (; i < end; i++) {
		const struct node *node = &level->nodes[i];
		bool within = at && at[d] >= node->first; /* it holds the index itself */
		uint64_t index = within ? at[d] : node->first;
		struct h5_run found = *run;

		if (d + 1 == walk->rank) {
			run->position += index;
			run->index += node->before + (index - node->first);
			run->count = node->last - index + 1;
			return true;
		}
		/* In the index itself, then in the next one, whose elements all come after. */
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
		const struct level *level = &walk->shape->levels[d];
		const struct node *node;
		uint64_t index;

		/* the last that begins at the number or before */
		while (end - begin > 1) {
			size_t middle = begin + (end - begin) / 2;

			if (level->nodes[middle].before <= number)
				begin = middle;
			else
				end = middle;
		}
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
	size_t begin = 0, end = shape->run_count;

	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;

		if (shape->runs[middle].position + shape->runs[middle].count <= position)
			begin = middle + 1;
		else
			end = middle;
	}
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
	if (!position_of(point, walk->rank, dims, &run->position))
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

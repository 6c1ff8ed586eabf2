#include "dataset/selection_private.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- irregular hyperslabs ---- */

/* Bounds the work on blocks that overlap in parts, which may need many more nodes than there are blocks. */
enum { TREE_WORK = 1 << 20 };

struct tree {
	struct h5_shape *shape;
	uint64_t work; /* nodes and blocks that may still be visited */
};

static int damaged(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "selection: %s", what);
}

static int push(struct tree *tree, unsigned d, const struct h5_shape_node *node)
{
	struct h5_shape_level *level = &tree->shape->levels[d];
	int rc = h5_array_reserve(&level->nodes, &level->capacity, level->count + 1, NULL);

	if (rc)
		return rc;
	level->nodes[level->count++] = *node;
	return 0;
}

/* Each of x and y is a block: its first index in dimension d is x[d], its last one x[rank + d]. */
static int by_first(const void *a, const void *b, void *dimension)
{
	const uint64_t *x = *(const uint64_t *const *)a, *y = *(const uint64_t *const *)b;
	unsigned d = *(const unsigned *)dimension;

	return h5_compare(x[d], y[d]);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return h5_compare(*x, *y);
}

/* In the last dimension, ranges that touch become one node. `blocks` are sorted. */
static int build_last(struct tree *tree, const uint64_t **blocks, size_t n, uint64_t *total)
{
	unsigned rank = tree->shape->rank, d = rank - 1;
	struct h5_shape_node node = {.each = 1};
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

/* Adds a node: the indexes from first to last, all of which are in just these blocks. */
static int build_node(struct tree *tree, unsigned d, const uint64_t **blocks, size_t n, uint64_t first,
		      uint64_t last, uint64_t *total)
{
	struct h5_shape_node node = {.first = first, .last = last, .before = *total};
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

/* Cuts the dimension at `at`, where blocks begin and end, sorted. `active`: room for n blocks, twice. */
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
		memcpy(active + n, active, count * sizeof *active); /* sorting changes their order */
		rc = build_node(tree, d, active + n, count, at[i], at[i + 1] - 1, total);
	}
	return rc;
}

/* Appends the nodes of these blocks to level d; *total: their elements. The recursion is as deep as the
 * rank. */
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

static int open_blocks(struct h5_shape *shape, const uint64_t *coordinates, size_t count)
{
	struct tree tree = {shape, (uint64_t)4 * count * shape->rank + TREE_WORK};
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
		return h5_compare(x->position, y->position);
	return h5_compare(x->index, y->index);
}

bool h5_selection_position(const uint64_t *point, unsigned rank, const uint64_t *dims, uint64_t *position)
{
	*position = 0;
	for (unsigned i = 0; i < rank; i++) {
		if (point[i] >= dims[i])
			return false;
		*position = *position * dims[i] + point[i];
	}
	return true;
}

/* If a point is there twice, the later one counts. */
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
	shape->runs = h5_calloc(shape->count + 1, sizeof *shape->runs);
	if (!shape->runs)
		return -ENOMEM;
	for (uint64_t i = 0; i < shape->count; i++) {
		shape->runs[i].index = i;
		shape->runs[i].count = 1;
		if (!h5_selection_position(shape->points + i * shape->rank, shape->rank, dims,
					   &shape->runs[i].position))
			return damaged("a point outside the dataset");
	}
	qsort(shape->runs, (size_t)shape->count, sizeof *shape->runs, by_position);
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

/* One block alone is a regular hyperslab, however it is stored. */
static int open_one_block(struct h5_shape *shape, const uint64_t *corners)
{
	shape->slabs = malloc(shape->rank * sizeof *shape->slabs);
	if (!shape->slabs)
		return -ENOMEM;
	for (unsigned i = 0; i < shape->rank; i++) {
		uint64_t size = corners[shape->rank + i] - corners[i] + 1;

		shape->slabs[i] = (struct h5_hyperslab){.start = corners[i],
							.stride = size,
							.count = 1,
							.block = size,
							.end = corners[i] + size};
	}
	return 0;
}

static size_t cost_of(const struct h5_shape *shape)
{
	size_t cost = sizeof *shape + shape->run_count * sizeof *shape->runs;

	if (shape->slabs)
		cost += shape->rank * sizeof *shape->slabs;
	if (shape->points)
		cost += (size_t)shape->count * shape->rank * sizeof *shape->points;
	for (unsigned i = 0; shape->levels && i < shape->rank; i++)
		cost += sizeof *shape->levels + shape->levels[i].capacity * sizeof(struct h5_shape_node);
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
	} else if (selection->kind == H5_SELECT_HYPERSLAB && selection->count == 1) {
		rc = open_one_block(shape, selection->coordinates);
	} else if (selection->kind == H5_SELECT_HYPERSLAB) {
		rc = open_blocks(shape, selection->coordinates, (size_t)selection->count);
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

/* Blocks without gaps between them become one. */
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

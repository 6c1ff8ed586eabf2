/* Walks through selections of small datasets, element by element: against lists of all elements. */
#include "base/error.h"
#include "dataset/selection_private.h"
#include "fault_alloc.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDE UINT64_MAX

enum { ELEMENTS = 4096, RANKS = 3, SIDE = 9 /* no index is larger */ };

/* A selection, and the positions of its elements in their order. */
struct scene {
	unsigned rank;
	uint64_t dims[RANKS], size; /* of the dataset */
	struct h5_selection selection;
	uint64_t elements[ELEMENTS];
	uint64_t count;
	bool boxes;			/* one range of indexes in each dimension */
	struct h5_hyperslab *unlimited; /* replaces the unlimited dimension; NULL: none */
};

static uint64_t state;

void __real_qsort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *));
void __wrap_qsort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *));

/* qsort() may put elements that compare as equal into any order; here, into the reverse of the one they were
 * in. */
void __wrap_qsort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	uint8_t *bytes = array;

	for (size_t i = 0; i < n / 2; i++)
		for (size_t k = 0; k < size; k++) {
			uint8_t *a = bytes + i * size + k, *b = bytes + (n - 1 - i) * size + k, byte = *a;

			*a = *b;
			*b = byte;
		}
	__real_qsort(array, n, size, compare);
}

/* A number below this one. */
static uint64_t draw(uint64_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (state >> 33) % below;
}

static uint64_t position_of(const struct scene *s, const uint64_t *point)
{
	uint64_t position = 0;

	for (unsigned i = 0; i < s->rank; i++) {
		if (point[i] >= s->dims[i])
			return OUTSIDE;
		position = position * s->dims[i] + point[i];
	}
	return position;
}

static void add_element(struct scene *s, const uint64_t *point)
{
	ck_assert_uint_lt(s->count, ELEMENTS);
	s->elements[s->count++] = position_of(s, point);
}

static void draw_dims(struct scene *s)
{
	memset(s, 0, sizeof *s);
	s->rank = 1 + (unsigned)draw(RANKS);
	s->size = 1;
	for (unsigned i = 0; i < s->rank; i++) {
		s->dims[i] = 1 + draw(6);
		s->size *= s->dims[i];
	}
	s->selection.rank = s->rank;
}

/* All points whose indexes are marked: in row-major order. */
static void add_product(struct scene *s, bool marked[RANKS][4 * SIDE], unsigned d, uint64_t *point)
{
	for (point[d] = 0; point[d] < 4 * SIDE; point[d]++)
		if (marked[d][point[d]] && d + 1 < s->rank)
			add_product(s, marked, d + 1, point);
		else if (marked[d][point[d]])
			add_element(s, point);
}

static void add_slabs(struct scene *s)
{
	bool marked[RANKS][4 * SIDE] = {0};
	uint64_t point[RANKS];

	s->boxes = true;
	for (unsigned i = 0; i < s->rank; i++) {
		const struct h5_hyperslab *slab = &s->selection.slabs[i];

		for (uint64_t b = 0; b < slab->count; b++)
			for (uint64_t k = 0;
			     k < slab->block && slab->start + b * slab->stride + k < slab->end; k++)
				marked[i][slab->start + b * slab->stride + k] = true;
		s->boxes &= slab->count < 2 || slab->block == slab->stride;
	}
	add_product(s, marked, 0, point);
}

static void draw_slabs(struct scene *s, bool inside)
{
	s->selection.kind = H5_SELECT_HYPERSLAB;
	s->selection.regular = true;
	for (unsigned i = 0; i < s->rank; i++) {
		struct h5_hyperslab *slab = &s->selection.slabs[i];

		do {
			bool all = !draw(3);

			slab->start = all ? 0 : draw(4);
			slab->stride = 1 + draw(3);
			slab->count = all ? 1 : draw(4);
			slab->block = all ? s->dims[i] : draw(slab->stride + 1);
			if (all && slab->stride < slab->block)
				slab->stride = slab->block;
			slab->end = slab->count && slab->block
					    ? slab->start + (slab->count - 1) * slab->stride + slab->block
					    : slab->start;
		} while (slab->end > (inside ? s->dims[i] : SIDE));
	}
	add_slabs(s);
}

/* Blocks, which may overlap: each element counts once, in row-major order. */
static void draw_blocks(struct scene *s, bool inside)
{
	bool chosen[SIDE][SIDE][SIDE] = {0};
	uint64_t n = s->selection.count = draw(6), point[3] = {0};
	uint64_t *c = s->selection.coordinates = calloc(2 * n * s->rank + 1, sizeof *c);

	s->selection.kind = H5_SELECT_HYPERSLAB;
	for (uint64_t b = 0; b < n; b++, c += 2 * s->rank) {
		uint64_t first[3] = {0}, last[3] = {0};

		for (unsigned i = 0; i < s->rank; i++) {
			uint64_t most = inside ? s->dims[i] : SIDE;

			c[i] = first[i] = draw(most);
			c[s->rank + i] = last[i] = first[i] + draw(most - first[i]);
		}
		for (uint64_t x = first[0]; x <= last[0]; x++)
			for (uint64_t y = first[1]; y <= last[1]; y++)
				for (uint64_t z = first[2]; z <= last[2]; z++)
					chosen[x][y][z] = true;
	}
	for (point[0] = 0; point[0] < SIDE; point[0]++)
		for (point[1] = 0; point[1] < SIDE; point[1]++)
			for (point[2] = 0; point[2] < SIDE; point[2]++)
				if (chosen[point[0]][point[1]][point[2]])
					add_element(s, point);
}

static void draw_points(struct scene *s, bool inside)
{
	uint64_t n = s->selection.count = 1 + draw(7);
	uint64_t *c = s->selection.coordinates = calloc(n * s->rank, sizeof *c);

	s->selection.kind = H5_SELECT_POINTS;
	for (uint64_t p = 0; p < n; p++, c += s->rank) {
		for (unsigned i = 0; i < s->rank; i++)
			c[i] = draw(inside ? s->dims[i] : s->dims[i] + 1);
		/* Some follow each other. */
		if (p && draw(2)) {
			memcpy(c, c - s->rank, s->rank * sizeof *c);
			c[s->rank - 1] += c[s->rank - 1] + 1 < s->dims[s->rank - 1];
		}
		add_element(s, c);
	}
}

static void choose_all(struct scene *s)
{
	s->selection.kind = H5_SELECT_ALL;
	s->selection.rank = 0;
	s->boxes = true;
	for (uint64_t i = 0; i < s->size; i++)
		s->elements[s->count++] = i;
}

static bool is_inside(const struct scene *s)
{
	for (uint64_t i = 0; i < s->count; i++)
		if (s->elements[i] == OUTSIDE)
			return false;
	return true;
}

/* What a run says of its elements. With `last`, of elements that are there twice the later one counts. */
static void check_run(const struct scene *s, const struct h5_run *run)
{
	ck_assert_uint_ge(run->count, 1);
	ck_assert_uint_le(run->count, s->count - run->index);
	for (uint64_t k = 0; k < run->count; k++)
		ck_assert_uint_eq(s->elements[run->index + k],
				  run->position == OUTSIDE ? OUTSIDE : run->position + k);
}

/* The index of the last element at the first selected position from this one on; `count`: there is none. */
static uint64_t find_from(const struct scene *s, uint64_t position)
{
	uint64_t found = s->count;

	for (uint64_t i = 0; i < s->count; i++)
		if (s->elements[i] >= position && (found == s->count || s->elements[i] <= s->elements[found]))
			found = i;
	return found;
}

static void check_walk(const struct scene *s, const struct h5_walk *walk, bool is_sorted)
{
	struct h5_run run;
	uint64_t least = find_from(s, 0), begin, end, most = 0;

	ck_assert_uint_eq(walk->count, s->count);
	for (uint64_t i = 0; i < s->count; i++) {
		uint64_t stretch = 1;

		h5_walk_at(walk, i, &run);
		ck_assert(run.index == i && run.position == s->elements[i]);
		check_run(s, &run);
		while (i + stretch < s->count && s->elements[i + stretch] == s->elements[i] + stretch)
			stretch++;
		if (s->boxes && is_inside(s))
			ck_assert_uint_eq(run.count, stretch);
		most = s->elements[i] > most ? s->elements[i] : most;
	}
	if (!is_sorted || !is_inside(s))
		return;
	for (uint64_t position = 0; position < s->size; position++) {
		uint64_t i = find_from(s, position);

		ck_assert(h5_walk_from(walk, position, &run) == (i < s->count));
		if (i == s->count)
			continue;
		ck_assert(run.index == i && run.position == s->elements[i]);
		check_run(s, &run);
		for (uint64_t k = 0; k < run.count; k++)
			ck_assert_uint_eq(find_from(s, run.position + k), i + k);
	}
	if (!s->count)
		return;
	h5_walk_bounds(walk, &begin, &end);
	ck_assert(begin == s->elements[least] && end == most + 1);
}

/* Of memory. */
static size_t bytes_of(const struct h5_shape *shape)
{
	size_t bytes = sizeof *shape;

	if (shape->slabs)
		bytes += shape->rank * sizeof(struct h5_hyperslab);
	if (shape->points)
		bytes += (size_t)shape->count * shape->rank * sizeof(uint64_t);
	if (shape->runs)
		bytes += shape->run_count * sizeof(struct h5_run);
	if (shape->levels)
		bytes += shape->rank * sizeof(struct h5_shape_level);
	for (unsigned i = 0; i < shape->rank && shape->levels; i++)
		bytes += shape->levels[i].capacity * sizeof(struct h5_shape_node);
	return bytes;
}

/* Opens the shape with the dimensions, and without. */
static void check_scene(struct scene *s)
{
	const bool points = s->selection.kind == H5_SELECT_POINTS;
	struct h5_shape *shape;
	struct h5_walk walk;
	size_t cost;

	for (unsigned sorted = 0; sorted < 2; sorted++) {
		struct h5_selection selection = s->selection;
		size_t n = (size_t)(selection.count * s->rank * (points ? 1 : 2));
		int rc;

		if (s->selection.coordinates) {
			selection.coordinates = malloc(n * sizeof(uint64_t) + 1);
			memcpy(selection.coordinates, s->selection.coordinates, n * sizeof(uint64_t));
		}
		rc = h5_shape_open(&selection, sorted ? s->dims : NULL, &shape, &cost);
		h5_selection_release(&selection);
		if (points && sorted && !is_inside(s)) {
			ck_assert_int_eq(rc, -EUCLEAN);
			ck_assert_str_eq(h5_error_last()->text, "selection: a point outside the dataset");
			continue;
		}
		ck_assert_int_eq(rc, 0);
		ck_assert_uint_eq(cost, bytes_of(shape));
		for (unsigned rank = 1; rank <= RANKS; rank++)
			ck_assert(h5_shape_has_rank(shape, rank) == (!s->selection.rank || rank == s->rank));
		memset(&walk, 0, sizeof walk); /* dimensions that are not there have no steps */
		ck_assert_int_eq(h5_walk_init(&walk, shape, s->rank, s->dims, NULL), 0);
		/* Of selections without elements it does not matter. */
		ck_assert(walk.inside == is_inside(s) || points || !s->count);
		ck_assert_int_eq(h5_shape_unlimited(shape), -1);
		check_walk(s, &walk, sorted || !points);
		h5_shape_close(shape);
	}
	h5_selection_release(&s->selection);
}

START_TEST(each_element)
{
	static struct scene s;

	state = 1;
	for (unsigned i = 0; i < 6000; i++) {
		draw_dims(&s);
		if (i % 10 == 0)
			choose_all(&s);
		else if (i % 5 == 1)
			draw_points(&s, i % 2);
		else if (i % 5 < 4)
			draw_blocks(&s, i % 2);
		else
			draw_slabs(&s, i % 2);
		check_scene(&s);
	}
	draw_dims(&s);
	s.selection.rank = 0;
	s.selection.kind = H5_SELECT_NONE;
	check_scene(&s);
}
END_TEST

/* ---- unlimited dimensions ---- */

static struct h5_shape *open_slabs(unsigned rank, const struct h5_hyperslab *slabs)
{
	struct h5_selection selection = {.kind = H5_SELECT_HYPERSLAB, .rank = rank, .regular = true};
	struct h5_shape *shape;
	size_t cost;

	memcpy(selection.slabs, slabs, rank * sizeof *slabs);
	ck_assert_int_eq(h5_shape_open(&selection, NULL, &shape, &cost), 0);
	return shape;
}

static bool is_chosen(const struct h5_hyperslab *slab, uint64_t index)
{
	if (index < slab->start || !slab->block)
		return false;
	return slab->block == H5_UNLIMITED || (index - slab->start) % slab->stride < slab->block;
}

/* All extents up to a small one; the unlimited dimension is the first or the last one of two. */
static void check_unlimited(struct h5_hyperslab slab, unsigned at)
{
	struct h5_hyperslab slabs[2] = {{1, 2, 2, 1, 4}, {1, 2, 2, 1, 4}}, cut;
	struct h5_shape *shape;
	static struct scene s;
	uint64_t slices = 0;

	slabs[at] = slab;
	shape = open_slabs(2, slabs);
	ck_assert_int_eq(h5_shape_unlimited(shape), (int)at);
	ck_assert_uint_eq(h5_shape_extent(shape, 0), 0);
	for (uint64_t extent = 0; extent < 3 * SIDE; extent++) {
		struct h5_walk walk;

		ck_assert_uint_eq(h5_shape_slices(shape, extent), slices);
		ck_assert(h5_shape_cut(shape, slices, &cut));
		/* Blocks without gaps are one. */
		if (slab.block == H5_UNLIMITED || slab.block == slab.stride)
			ck_assert(cut.count == 1 && cut.block == slices);
		ck_assert_uint_le(cut.end, extent < slab.start ? slab.start : extent);
		memset(&s, 0, sizeof s);
		s.rank = 2;
		s.dims[at] = extent + 1;
		s.dims[1 - at] = 5;
		s.size = 5 * (extent + 1);
		memcpy(s.selection.slabs, slabs, sizeof slabs);
		s.selection.slabs[at] = cut;
		s.selection.rank = 2;
		add_slabs(&s);
		ck_assert_uint_eq(s.count, 2 * slices);
		ck_assert_int_eq(h5_walk_init(&walk, shape, 2, s.dims, &cut), 0);
		ck_assert(walk.inside);
		check_walk(&s, &walk, true);
		if (is_chosen(&slab, extent))
			ck_assert_uint_eq(h5_shape_extent(shape, ++slices), extent + 1);
	}
	for (uint64_t block = 0; block < 4; block++) {
		bool found = h5_shape_block(shape, block, &cut);

		ck_assert(found == (slab.block != H5_UNLIMITED));
		if (found) {
			ck_assert(cut.start == slab.start + block * slab.stride && cut.count == 1);
			ck_assert(cut.block == slab.block && cut.end == cut.start + slab.block);
		}
	}
	h5_shape_close(shape);
}

START_TEST(unlimited_dimensions)
{
	for (uint64_t start = 0; start < 4; start++)
		for (unsigned at = 0; at < 2; at++) {
			for (uint64_t stride = 1; stride < 5; stride++)
				for (uint64_t block = 0; block <= stride; block++)
					check_unlimited((struct h5_hyperslab){start, stride, H5_UNLIMITED,
									      block, UINT64_MAX},
							at);
			check_unlimited((struct h5_hyperslab){start, 1, 1, H5_UNLIMITED, UINT64_MAX}, at);
		}
}
END_TEST

/* Nothing lies beyond 2^64. */
START_TEST(the_largest_numbers)
{
	const uint64_t half = UINT64_C(1) << 63;
	struct h5_hyperslab slab = {10, 8, H5_UNLIMITED, 4, UINT64_MAX}, cut;
	struct h5_shape *shape = open_slabs(1, &slab);

	/* Block n begins at 10 + 8 n. */
	ck_assert(h5_shape_block(shape, (UINT64_MAX - 14) / 8, &cut));
	ck_assert_uint_eq(cut.end, 14 + (UINT64_MAX - 14) / 8 * 8);
	ck_assert(!h5_shape_block(shape, (UINT64_MAX - 14) / 8 + 1, &cut));
	ck_assert(!h5_shape_block(shape, half, &cut));
	ck_assert(!h5_shape_cut(shape, half, &cut));
	ck_assert(h5_shape_cut(shape, (UINT64_MAX - 14) / 8 * 4 + 4, &cut));
	ck_assert_uint_eq(cut.end, 14 + (UINT64_MAX - 14) / 8 * 8);
	ck_assert(!h5_shape_cut(shape, (UINT64_MAX - 14) / 8 * 4 + 8, &cut));
	ck_assert_uint_eq(h5_shape_extent(shape, half), UINT64_MAX);
	h5_shape_close(shape);

	slab = (struct h5_hyperslab){10, 1, 1, H5_UNLIMITED, UINT64_MAX};
	shape = open_slabs(1, &slab);
	ck_assert(h5_shape_cut(shape, UINT64_MAX - 10, &cut));
	ck_assert(cut.end == UINT64_MAX && cut.block == UINT64_MAX - 10);
	ck_assert(!h5_shape_cut(shape, UINT64_MAX - 9, &cut));
	h5_shape_close(shape);
}
END_TEST

/* ---- what is refused ---- */

static int open_blocks(unsigned rank, const uint64_t *coordinates, uint64_t count, struct h5_shape **shape)
{
	struct h5_selection selection = {.kind = H5_SELECT_HYPERSLAB, .rank = rank, .count = count};
	size_t n = (size_t)count * 2 * rank * sizeof *coordinates, cost;
	int rc;

	selection.coordinates = memcpy(malloc(n), coordinates, n);
	rc = h5_shape_open(&selection, NULL, shape, &cost);
	h5_selection_release(&selection);
	return rc;
}

START_TEST(too_many_elements)
{
	const uint64_t far = UINT64_C(1) << 32;
	/* 2^64 elements; and one fewer row of them. */
	uint64_t blocks[] = {0, 0, far - 1, far - 1, 0, 0, 0, 0};
	struct h5_hyperslab slabs[2] = {{0, far, 1, far, far}, {0, far, 1, far, far}};
	uint64_t dims[] = {5, 5};
	struct h5_shape *shape;
	struct h5_walk walk;

	ck_assert_int_eq(open_blocks(2, blocks, 2, &shape), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "selection: more than 2^64 elements");
	blocks[2]--;
	ck_assert_int_eq(open_blocks(2, blocks, 2, &shape), 0);
	h5_shape_close(shape);
	/* The elements of two ranges together. */
	blocks[2] = far / 2 - 1;
	blocks[4] = far;
	blocks[6] = far + far / 2 - 1;
	blocks[7] = far - 1;
	ck_assert_int_eq(open_blocks(2, blocks, 2, &shape), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "selection: more than 2^64 elements");

	shape = open_slabs(2, slabs);
	ck_assert_int_eq(h5_walk_init(&walk, shape, 2, dims, NULL), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "selection: more than 2^64 elements");
	h5_shape_close(shape);
	slabs[0].block = slabs[0].end = far - 1;
	shape = open_slabs(2, slabs);
	ck_assert_int_eq(h5_walk_init(&walk, shape, 2, dims, NULL), 0);
	ck_assert_uint_eq(walk.count, far * (far - 1));
	h5_shape_close(shape);
}
END_TEST

/* Blocks that lie one in another need more nodes than memory has. */
START_TEST(blocks_that_overlap)
{
	enum { MANY = 200, FEW = 8, RANK = 3 };
	static uint64_t blocks[MANY * 2 * RANK];
	struct h5_shape *shape;

	for (unsigned b = 0; b < MANY; b++)
		for (unsigned i = 0; i < RANK; i++) {
			blocks[(2 * b) * RANK + i] = b;
			blocks[(2 * b + 1) * RANK + i] = 3 * MANY - b;
		}
	ck_assert_int_eq(open_blocks(RANK, blocks, MANY, &shape), -ENOTSUP);
	ck_assert_str_eq(h5_error_last()->text, "selection: too many blocks overlap");
	ck_assert_int_eq(open_blocks(RANK, blocks, FEW, &shape), 0);
	h5_shape_close(shape);
}
END_TEST

/* Blocks of which none overlaps another need more nodes the more of them there are. */
START_TEST(blocks_that_lie_apart)
{
	enum { MANY = 1 << 18, RANK = 4 };
	uint64_t *blocks = malloc(sizeof *blocks * MANY * 2 * RANK);
	struct h5_shape *shape;

	for (size_t i = 0; i < (size_t)MANY * 2 * RANK; i++)
		blocks[i] = i / (2 * RANK);
	ck_assert_int_eq(open_blocks(RANK, blocks, MANY, &shape), 0);
	h5_shape_close(shape);
	free(blocks);
}
END_TEST

START_TEST(memory_is_short)
{
	const uint64_t dims[] = {9, 9};
	unsigned failures = 0;

	for (unsigned kind = 0; kind < 4; kind++) {
		int rc = -ENOMEM;

		for (unsigned long n = 1; rc; n++) {
			struct h5_selection selection = {
				.kind = kind == 3 ? H5_SELECT_POINTS : H5_SELECT_HYPERSLAB,
				.rank = 2,
				.regular = !kind,
				.slabs = {{1, 2, 2, 1, 4}, {1, 2, 2, 1, 4}},
				.count = kind,
			};
			struct h5_shape *shape;
			size_t cost;

			selection.coordinates = calloc(16, sizeof(uint64_t));
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_shape_open(&selection, dims, &shape, &cost);
			fault_alloc_count(false);
			fault_alloc_disarm();
			ck_assert(!rc || rc == -ENOMEM);
			if (rc)
				ck_assert_str_eq(h5_error_last()->text, "selection: out of memory");
			else
				h5_shape_close(shape);
			failures += rc != 0;
			h5_selection_release(&selection);
		}
	}
	ck_assert_uint_ge(failures, 12);
}
END_TEST

UNIT_MAIN("selection walk", each_element, unlimited_dimensions, the_largest_numbers, too_many_elements,
	  blocks_that_overlap, blocks_that_lie_apart, memory_is_short)

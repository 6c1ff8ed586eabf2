/* Walking selections: which elements of a dataset a selection holds, in which order, without a list of them.
 *
 * A position is the number of an element in the dataset, an index its number in the selection, both from 0:
 * in row-major order, but for points, which are in the order of the list. */
#ifndef H5_DATASET_SELECTION_WALK_H
#define H5_DATASET_SELECTION_WALK_H

#include "format/selection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements that follow each other both in the dataset and in the selection. */
struct h5_run {
	uint64_t position; /* of the first; UINT64_MAX: they lie outside the dataset */
	uint64_t index, count;
};

/* A selection made ready for walks. */
struct h5_shape;

/* Takes the selection's coordinates over. With `dims`, of a dataset of rank selection->rank, points are
 * sorted for h5_walk_from(); -EUCLEAN where one lies outside. *cost: bytes of memory. */
int h5_shape_open(struct h5_selection *selection, const uint64_t *dims, struct h5_shape **shape,
		  size_t *cost);
void h5_shape_close(struct h5_shape *shape); /* NULL is fine */

bool h5_shape_has_rank(const struct h5_shape *shape, unsigned rank);
/* The unlimited dimension, -1: none. */
int h5_shape_unlimited(const struct h5_shape *shape);
/* How many indexes of the unlimited dimension are selected below the extent. */
uint64_t h5_shape_slices(const struct h5_shape *shape, uint64_t extent);
/* The least extent with so many. */
uint64_t h5_shape_extent(const struct h5_shape *shape, uint64_t slices);
/* The unlimited dimension cut to so many; false where that passes 2^64. */
bool h5_shape_cut(const struct h5_shape *shape, uint64_t slices, struct h5_hyperslab *slab);
/* The unlimited dimension's block of that number alone; false where there is no such. */
bool h5_shape_block(const struct h5_shape *shape, uint64_t block, struct h5_hyperslab *slab);

struct h5_walk_dim {
	uint64_t start, stride, block; /* as in a hyperslab */
	uint64_t count;		       /* indexes that are selected */
	uint64_t extent;
	uint64_t step;	 /* elements of the dataset from one index to the next */
	uint64_t weight; /* elements of the selection from one selected index to the next */
};

/* A selection within a dataset. */
struct h5_walk {
	const struct h5_shape *shape; /* borrowed */
	unsigned rank;
	bool inside;	/* no element is outside the dataset */
	uint64_t count; /* elements that are selected */
	struct h5_walk_dim dims[H5_RANK_MAX];
};

/* Of the shape in a dataset of this rank, which it must have, and of less than 2^63 elements. `slab` takes
 * the place of the unlimited dimension; NULL where there is none. */
int h5_walk_init(struct h5_walk *walk, const struct h5_shape *shape, unsigned rank, const uint64_t *dims,
		 const struct h5_hyperslab *slab);

/* The first run that ends beyond the position, cut to begin there or later; false: none. Only for walks that
 * are inside, and shapes opened with `dims`. */
bool h5_walk_from(const struct h5_walk *walk, uint64_t position, struct h5_run *run);
/* The run from the index, which is below the count, on. */
void h5_walk_at(const struct h5_walk *walk, uint64_t index, struct h5_run *run);
/* Positions of the first element and beyond the last one; of walks as for h5_walk_from() that select some. */
void h5_walk_bounds(const struct h5_walk *walk, uint64_t *begin, uint64_t *end);

#endif

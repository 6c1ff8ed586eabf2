/* Walks through selections: which elements of a dataset a selection has, and in which order, without a list
 * of them.
 *
 * A *position* is the number of an element in the dataset, an *index* its number in the selection. Both begin
 * at 0 and are in row-major order; but a selection of points has the order of its list. */
#ifndef H5_DATASET_SELECTION_WALK_H
#define H5_DATASET_SELECTION_WALK_H

#include "format/selection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements that follow each other both in the dataset and in the selection. */
struct h5_run {
	uint64_t position; /* of the first element; UINT64_MAX: the elements lie outside the dataset */
	uint64_t index, count;
};

/* A selection that is prepared for walks. */
struct h5_shape;

/* Prepares the selection, and takes over its coordinates. `dims`: of a dataset of rank selection->rank; then
 * points are sorted for h5_walk_from(), and -EUCLEAN: one lies outside. NULL: they are not. *cost: bytes of
 * memory. */
int h5_shape_open(struct h5_selection *selection, const uint64_t *dims, struct h5_shape **shape,
		  size_t *cost);
void h5_shape_close(struct h5_shape *shape); /* NULL is fine */

bool h5_shape_has_rank(const struct h5_shape *shape, unsigned rank);
/* The unlimited dimension, -1: none. */
int h5_shape_unlimited(const struct h5_shape *shape);
/* How many indexes of the unlimited dimension are selected if it has this extent. */
uint64_t h5_shape_slices(const struct h5_shape *shape, uint64_t extent);
/* The least extent with so many selected indexes. */
uint64_t h5_shape_extent(const struct h5_shape *shape, uint64_t slices);
/* Cuts the unlimited dimension to so many selected indexes. False: they reach beyond 2^64. */
bool h5_shape_cut(const struct h5_shape *shape, uint64_t slices, struct h5_hyperslab *slab);
/* One block of the unlimited dimension. False: there is none of this number. */
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

/* A walk through the shape in a dataset of this rank, which the shape must have, and of less than 2^63
 * elements. `slab` replaces the unlimited dimension; NULL: there is none. */
int h5_walk_init(struct h5_walk *walk, const struct h5_shape *shape, unsigned rank, const uint64_t *dims,
		 const struct h5_hyperslab *slab);

/* The next run from the position on, which may be inside the run; false: there is none. Only for walks that
 * are inside, and shapes opened with `dims`. */
bool h5_walk_from(const struct h5_walk *walk, uint64_t position, struct h5_run *run);
/* The run that begins at the index, which is less than the count. */
void h5_walk_at(const struct h5_walk *walk, uint64_t index, struct h5_run *run);
/* The positions of the first element and after the last one. Only for walks as for h5_walk_from() that select
 * some. */
void h5_walk_bounds(const struct h5_walk *walk, uint64_t *begin, uint64_t *end);

#endif

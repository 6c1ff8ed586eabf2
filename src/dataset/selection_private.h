/* The inside of a shape. */
#ifndef H5_DATASET_SELECTION_PRIVATE_H
#define H5_DATASET_SELECTION_PRIVATE_H

#include "dataset/selection_walk.h"

/* The blocks of an irregular hyperslab become a tree with a level for each dimension. A node is a range of
 * indexes that select the same in the later dimensions; its children say what. */
struct h5_shape_node {
	uint64_t first, last;
	uint64_t before;   /* elements of its earlier siblings */
	uint64_t each;	   /* elements of one index */
	size_t begin, end; /* its children in the next level */
};

struct h5_shape_level {
	struct h5_shape_node *nodes;
	size_t count, capacity;
};

struct h5_shape {
	enum h5_selection_kind kind;
	unsigned rank; /* 0: H5_SELECT_ALL and _NONE, which fit every rank */
	int unlimited;
	struct h5_hyperslab *slabs;    /* regular hyperslab; else NULL */
	struct h5_shape_level *levels; /* irregular hyperslab: one level for each dimension */
	uint64_t *ends; /* of the irregular hyperslab: the end of its last block in each dimension */
	uint64_t count; /* irregular: elements; points */
	uint64_t *points;
	struct h5_run *runs; /* points, sorted by position; NULL: not asked for */
	size_t run_count;
};

/* The number of the element in row-major order; false: it is outside. */
bool h5_selection_position(const uint64_t *point, unsigned rank, const uint64_t *dims, uint64_t *position);

#endif

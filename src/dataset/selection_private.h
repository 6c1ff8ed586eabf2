/* How a shape is held. */
#ifndef H5_DATASET_SELECTION_PRIVATE_H
#define H5_DATASET_SELECTION_PRIVATE_H

#include "dataset/selection_walk.h"

/* The blocks of an irregular hyperslab become a tree with a level for each dimension: a node is a range of
 * indexes that select the same in the dimensions after it, which its children say. */
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
	unsigned rank; /* 0: all and none, which fit every rank */
	int unlimited;
	struct h5_hyperslab *slabs;    /* regular hyperslab; else NULL */
	struct h5_shape_level *levels; /* irregular one: a level a dimension */
	uint64_t *ends;		       /* and beyond its last index in each dimension */
	uint64_t count;		       /* irregular: elements; points */
	uint64_t *points;
	struct h5_run *runs; /* of points, by position; NULL: not asked for */
	size_t run_count;
};

/* The number of the element in row-major order; false: it is outside. */
bool h5_selection_position(const uint64_t *point, unsigned rank, const uint64_t *dims, uint64_t *position);

#endif

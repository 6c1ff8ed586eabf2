/* Dataspace selections as region references and virtual dataset mappings store them. Specification III.E,
 * "Dataspace Selection"; hyperslab version 3 and points version 2 as libhdf5 1.12 writes them. */
#ifndef H5_FORMAT_SELECTION_H
#define H5_FORMAT_SELECTION_H

#include "base/reader.h"
#include "format/dataspace.h"

#include <stdbool.h>
#include <stdint.h>

/* Most coordinates of one selection; sorting and joining takes many times their bytes. */
enum { H5_SELECTION_COORDINATES_MAX = 1 << 23 };

enum h5_selection_kind {
	H5_SELECT_NONE = 0,
	H5_SELECT_POINTS = 1,
	H5_SELECT_HYPERSLAB = 2,
	H5_SELECT_ALL = 3
};

/* One dimension of a regular hyperslab: `count` blocks of `block` elements, their starts `stride` apart.
 * Either count or block may be H5_UNLIMITED, in one dimension at most. If not, the last element is below 2^64
 * - 1. */
struct h5_hyperslab {
	uint64_t start, stride, count, block;
	uint64_t end; /* behind the last element; UINT64_MAX if unlimited */
};

struct h5_selection {
	enum h5_selection_kind kind;
	unsigned rank; /* 0 for none and all */
	bool regular;  /* hyperslab: `slabs` hold it, else the blocks in `coordinates` */
	struct h5_hyperslab slabs[H5_RANK_MAX];
	uint64_t count;	       /* of points or of blocks in `coordinates` */
	uint64_t *coordinates; /* owned; a point: rank of them; a block: rank of the first element, rank of
				  the last */
};

/* Then the reader is behind the selection. */
int h5_selection_decode(struct h5_reader *r, struct h5_selection *selection);
void h5_selection_release(struct h5_selection *selection); /* may run twice */

bool h5_selection_is_unlimited(const struct h5_selection *selection);
/* Makes an unlimited dimension end where the extent `dims` ends; a partial last block is cut. */
void h5_selection_clip(struct h5_selection *selection, const uint64_t *dims);

/* Visits the blocks of a hyperslab, which must not be unlimited (h5_selection_clip()): in row-major order of
 * their first elements, or as stored if it is not regular. A result of `visit` other than 0 ends the walk and
 * is returned. */
typedef int h5_selection_visit(void *arg, unsigned rank, const uint64_t *first, const uint64_t *last);
int h5_selection_blocks(const struct h5_selection *selection, h5_selection_visit *visit, void *arg);

#endif

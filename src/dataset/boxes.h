/* Where the bytes of a chunked dataset lie in its chunks.
 *
 * A range of bytes is cut into boxes: from its start the largest box of whole rows (or planes, ...) that it
 * holds, and so on, at most two for each dimension. Each box is taken chunk by chunk, and of each chunk those
 * runs of bytes that lie together both in the chunk and in the dataset. The bytes of an element count as one
 * more dimension, so that a range may begin and end inside of one. */
#ifndef H5_DATASET_BOXES_H
#define H5_DATASET_BOXES_H

#include "format/datatype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { H5_BOX_DIMS = H5_RANK_MAX + 1 };

struct h5_grid {
	unsigned dims_count; /* rank + 1 */
	uint64_t dims[H5_BOX_DIMS], chunk[H5_BOX_DIMS];
	uint64_t stride[H5_BOX_DIMS], chunk_stride[H5_BOX_DIMS]; /* bytes from one index to the next */
};

/* Dimensions of the dataset and of a chunk, `rank` of each. The bytes of both fit 64 bits. */
void h5_grid_init(struct h5_grid *grid, unsigned rank, const uint64_t *dims, const uint64_t *chunk,
		  uint32_t element_size);

/* What a box and a chunk have in common. */
struct h5_part {
	const struct h5_grid *grid;
	const uint64_t *scaled; /* of the chunk */
	uint64_t first[H5_BOX_DIMS], count[H5_BOX_DIMS];
	unsigned outer; /* dimensions that are walked; the others make up a run */
	uint64_t run;	/* bytes */
};

/* Bytes of a chunk up to the last one that lies inside the dataset; 0: none does. */
uint64_t h5_grid_needed(const struct h5_grid *grid, const uint64_t *scaled);

/* A result other than 0 ends the walk and is returned. */
typedef int h5_part_visit(void *arg, const struct h5_part *part);
/* Visits the parts of all chunks that n bytes from the offset lie in, all inside the dataset. */
int h5_grid_walk(const struct h5_grid *grid, uint64_t offset, uint64_t n, h5_part_visit *visit, void *arg);

/* n bytes at the offset `from` of the chunk are those at the offset `to` of the dataset. */
typedef int h5_run_visit(void *arg, uint64_t from, uint64_t to, size_t n);
int h5_part_walk(const struct h5_part *part, h5_run_visit *visit, void *arg);

/* True: the part has all of the chunk that lies inside the dataset. */
bool h5_part_is_whole(const struct h5_part *part);
/* Bytes of the part. */
uint64_t h5_part_size(const struct h5_part *part);
/* Bytes of its chunk that lie inside the dataset. */
uint64_t h5_part_chunk_size(const struct h5_part *part);
/* Bytes of the part that lie together in the chunk, from its first one on. */
uint64_t h5_part_stretch(const struct h5_part *part);

/* Steps `at` to the next index of a box in row-major order over its first n dimensions; false after the last,
 * when it stands at the first again. */
bool h5_box_step(uint64_t *at, const uint64_t *first, const uint64_t *count, unsigned n);

#endif

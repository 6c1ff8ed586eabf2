/* Where the bytes of a chunked dataset lie in its chunks.
 *
 * A range of bytes is cut into boxes: first the largest box of whole rows (or planes, ...) at its start, then
 * the next, and so on; at most two for each dimension. A box is cut into *parts*: what it has in common with
 * one chunk. A part is cut into *runs*: bytes that lie together both in the chunk and in the dataset. The
 * bytes of an element count as one more dimension, so that a range may begin and end inside an element. */
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

/* Bytes of a chunk up to the last one that lies inside the dataset; 0: none does. */
uint64_t h5_grid_needed(const struct h5_grid *grid, const uint64_t *scaled);

struct h5_box {
	uint64_t first[H5_BOX_DIMS], count[H5_BOX_DIMS];
};

/* What a box and a chunk have in common. */
struct h5_part {
	const struct h5_grid *grid;   /* borrowed */
	uint64_t scaled[H5_BOX_DIMS]; /* coordinates of the chunk */
	struct h5_box box;
	unsigned outer; /* dimensions that the runs step through; a run has all of the others */
	uint64_t run;	/* bytes */
};

/* Goes through the parts of a range of bytes. */
struct h5_part_iterator {
	struct h5_part part;	   /* the present one */
	uint64_t offset, left;	   /* the range after the present box */
	struct h5_box box, chunks; /* the present box, and the chunks that it touches */
	bool inside;		   /* the present part is inside the box */
	unsigned count;		   /* parts so far */
};

/* Stands before the first part of n bytes from the offset, all inside the dataset. */
void h5_part_begin(struct h5_part_iterator *parts, const struct h5_grid *grid, uint64_t offset, uint64_t n);
/* Goes to the next part, and returns 1; 0: there are no more. Fails as h5_interrupt_check(). */
int h5_part_next(struct h5_part_iterator *parts);

/* Bytes that lie together both in a chunk and in the dataset. */
struct h5_part_run {
	uint64_t in_chunk, in_dataset; /* offsets */
	size_t n;
};

/* Goes through the runs of a part. */
struct h5_run_iterator {
	struct h5_part_run run, next; /* the present one, and the one that follows */
	const struct h5_part *part;   /* borrowed */
	uint64_t at[H5_BOX_DIMS];     /* indexes of the next run */
	bool more;
};

/* Bytes of the box that the present part is in. */
uint64_t h5_part_box_size(const struct h5_part_iterator *parts);
/* True: the box reaches from one chunk into another in a dimension before the last: it has rows of both. */
bool h5_part_box_passes(const struct h5_part_iterator *parts);

/* Stands before the first run of the part. */
void h5_run_begin(struct h5_run_iterator *runs, const struct h5_part *part);
/* Goes to the next run. False: there are no more. */
bool h5_run_next(struct h5_run_iterator *runs);

/* Runs that lie at equal distances. */
struct h5_part_rows {
	struct h5_part_run first;
	uint64_t count;
	uint64_t chunk_step, dataset_step; /* bytes from one to the next */
};

/* Goes to the next runs that lie at equal distances, as many as there are. False: there are no more. Not to
 * be mixed with h5_run_next(). */
bool h5_run_next_rows(struct h5_run_iterator *runs, struct h5_part_rows *rows);

/* True: the part has all of the chunk that lies inside the dataset. */
bool h5_part_is_whole(const struct h5_part *part);
/* Bytes of the part. */
uint64_t h5_part_size(const struct h5_part *part);
/* Bytes of its chunk that lie inside the dataset. */
uint64_t h5_part_chunk_size(const struct h5_part *part);
/* How many bytes from the first one of the part on lie together in the chunk. */
uint64_t h5_part_stretch(const struct h5_part *part);

/* Steps `at` to the next index of a box, in row-major order of its first n dimensions. False after the last;
 * then it is the first again. */
bool h5_box_step(uint64_t *at, const uint64_t *first, const uint64_t *count, unsigned n);

#endif

/* Where a dataset has nothing stored. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/chunk_cache.h"

#include <string.h>

/* Chunks that one call looks at: the dimensions may claim any number of them. What lies behind is called
 * data, which is always right. */
enum { STEPS_MAX = 1 << 22 };

/* A position in a chunked dataset that moves over pieces that are stored, or not. */
struct walker {
	const struct h5_dataset *dataset;
	struct h5_chunk_cursor cursor;
	struct h5_grid grid;
	unsigned last;		 /* dimension along a row; behind it is that of the bytes of an element */
	uint64_t begin;		 /* where the walk began, in bytes */
	uint64_t at;		 /* where it is now */
	uint64_t x[H5_BOX_DIMS]; /* the same as indices */
	uint64_t hole;		 /* what was not stored right before began here; `at`: it was stored */
	unsigned steps;
};

static void walker_init(struct walker *w, const struct h5_dataset *dataset, uint64_t offset)
{
	memset(w, 0, sizeof *w);
	w->dataset = dataset;
	w->last = dataset->layout.chunked.rank - 1;
	h5_chunk_grid(dataset, &w->grid);
	w->begin = w->at = w->hole = offset;
}

/* Byte at which index i of dimension d begins, the indices before as they are; at most the end of them all.
 */
static uint64_t begin_of(const struct walker *w, unsigned d, uint64_t i)
{
	uint64_t at = h5_min(i, w->grid.dims[d]) * w->grid.stride[d];

	while (d-- > 0)
		at += w->x[d] * w->grid.stride[d];
	return at;
}

/* Byte at which chunks of that coordinate begin. */
static uint64_t begin_of_chunk(const struct walker *w, unsigned d, uint64_t scaled)
{
	uint64_t i;

	return begin_of(w, d, h5_mul(scaled, w->grid.chunk[d], &i) ? i : UINT64_MAX);
}

/* The first dimension of which an index begins here. */
static unsigned outermost(const struct walker *w)
{
	unsigned d = w->last;

	while (d && !w->x[d] && !w->x[w->last + 1])
		d--;
	return d;
}

/* The end of what isn't stored from here on: there is no chunk up to `next`. An index of a dimension that
 * begins here has, from this chunk on, all chunks of the dimensions behind. */
static uint64_t end_of_gap(const struct walker *w, const uint64_t *scaled, const uint64_t *next)
{
	unsigned d = outermost(w), differs = 0;

	while (next[differs] == scaled[differs])
		differs++;
	return differs < d ? begin_of(w, d, UINT64_MAX) : begin_of_chunk(w, differs, next[differs]);
}

static void find_indices(struct walker *w)
{
	uint64_t rest = w->at;

	for (unsigned d = 0; d < w->grid.dims_count; d++) {
		w->x[d] = rest / w->grid.stride[d];
		rest %= w->grid.stride[d];
	}
}

/* Where two rows, or planes, ... one after the other had no hole, the others of the same chunks have none
 * either: passes over these. */
static void pass_over_alike(struct walker *w)
{
	for (unsigned d = outermost(w); d < w->last; d++) {
		uint64_t in_chunk = w->x[d] % w->grid.chunk[d], stride = w->grid.stride[d], end;

		if (in_chunk < 2 || w->at - w->begin < 2 * stride || w->at - w->hole >= stride)
			continue;
		end = begin_of_chunk(w, d, w->x[d] / w->grid.chunk[d] + 1);
		w->hole += end - w->at;
		w->at = end;
		find_indices(w);
		return;
	}
}

/* Moves over a piece inside the dataset. */
static int step(struct walker *w, bool *stored)
{
	uint64_t scaled[H5_RANK_MAX], next[H5_RANK_MAX];
	int rc = w->steps++ % 1024 ? 0 : h5_interrupt_check();

	if (rc)
		return rc;
	for (unsigned d = 0; d <= w->last; d++)
		scaled[d] = w->x[d] / w->grid.chunk[d];
	rc = h5_chunk_index_gap(w->dataset->index, &w->cursor, scaled, stored, next);
	if (h5_is_passing(rc))
		return rc;
	*stored |= !!rc; /* reading it will tell */
	if (*stored)
		w->at = w->hole = begin_of_chunk(w, w->last, scaled[w->last] + 1);
	else
		w->at = end_of_gap(w, scaled, next);
	return 0;
}

static int find_hole(struct walker *w, uint64_t *found)
{
	int rc = 0;

	while (!rc && w->at < w->dataset->size && w->at - w->hole < H5_HOLE_LEAST && w->steps < STEPS_MAX) {
		bool stored;

		find_indices(w);
		pass_over_alike(w);
		if (w->at < w->dataset->size)
			rc = step(w, &stored);
	}
	*found = w->at - w->hole < H5_HOLE_LEAST ? w->dataset->size : w->hole;
	return rc;
}

/* Where what is not stored from one byte up to another gets one who seeks data. */
static uint64_t data_after(uint64_t begin, uint64_t end)
{
	return end - begin < H5_HOLE_LEAST ? begin : end;
}

static int find_data(struct walker *w, uint64_t *found)
{
	uint64_t end = w->at;
	bool stored = false;
	int rc = 0;

	while (!rc && !stored && w->at < w->dataset->size && w->steps < STEPS_MAX) {
		end = w->at;
		find_indices(w);
		rc = step(w, &stored);
	}
	*found = data_after(w->begin, stored ? end : w->at);
	return rc;
}

static bool is_zero(const struct h5_dataset *dataset)
{
	return !dataset->fill || dataset->fill_never ||
	       (!dataset->fill[0] && !memcmp(dataset->fill, dataset->fill + 1, dataset->type->size - 1));
}

/* Whatever is read where nothing is stored. */
static int seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found)
{
	const enum h5_layout_class class = dataset->layout.class;
	struct walker w;
	int rc;

	*found = hole ? dataset->size : offset;
	if (dataset->external)
		return 0;
	if ((class == H5_LAYOUT_CONTIGUOUS && dataset->layout.contiguous.address == H5_UNDEF) ||
	    (class == H5_LAYOUT_CHUNKED && !dataset->index)) {
		if (dataset->size - offset >= H5_HOLE_LEAST)
			*found = hole ? offset : dataset->size;
		return 0;
	}
	if (class != H5_LAYOUT_CHUNKED)
		return 0;
	walker_init(&w, dataset, offset);
	rc = hole ? find_hole(&w, found) : find_data(&w, found);
	h5_chunk_cursor_release(dataset->index, &w.cursor);
	return rc;
}

int h5_dataset_seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found)
{
	if (is_zero(dataset))
		return seek(dataset, offset, hole, found);
	*found = hole ? dataset->size : offset;
	return 0;
}

int h5_dataset_seek_stored(const struct h5_dataset *dataset, uint64_t offset, uint64_t *found)
{
	return seek(dataset, offset, false, found);
}

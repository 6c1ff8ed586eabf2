/* Holes of chunked data: ranges that the index has no chunks for; in structured chunks, elements that are not
 * defined. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/boxes.h"
#include "dataset/chunk_cache.h"
#include "dataset/private.h"
#include "dataset/structured.h"

#include <string.h>

enum {
	/* Chunks that one search for a hole looks at, since dimensions may claim any number of them. The rest
	 * counts as data, which is never wrong. */
	STEPS_MAX = 1 << 22,
};

/* A position in a chunked dataset. It moves over pieces that are stored, or not. */
struct walker {
	const struct h5_dataset *dataset;
	struct h5_chunk_cursor cursor;
	struct h5_grid grid;
	unsigned last;	/* the last dimension of the dataset; the next one counts the bytes of an element */
	uint64_t begin; /* where the walk began, in bytes */
	uint64_t at;	/* where the walk is now, in bytes */
	uint64_t x[H5_BOX_DIMS]; /* `at` as indices */
	uint64_t hole;		 /* where the hole right before `at` begins; equal to `at`: there is none */
	uint64_t least;		 /* bytes of a hole */
	unsigned steps;
};

static void walker_init(struct walker *walker, const struct h5_dataset *dataset, uint64_t offset)
{
	memset(walker, 0, sizeof *walker);
	walker->dataset = dataset;
	walker->last = dataset->layout.chunked.rank - 1;
	h5_chunk_grid(dataset, &walker->grid);
	walker->begin = walker->at = walker->hole = offset;
	walker->least = h5_structured_marks(dataset) ? 1 : H5_HOLE_LEAST;
}

/* The byte at which index i of dimension d begins, with the present indices of the dimensions before. At most
 * the end of the dimension. */
static uint64_t begin_of(const struct walker *walker, unsigned d, uint64_t i)
{
	uint64_t at = h5_min(i, walker->grid.dims[d]) * walker->grid.stride[d];

	while (d-- > 0)
		at += walker->x[d] * walker->grid.stride[d];
	return at;
}

/* The byte at which the chunk of this coordinate begins. */
static uint64_t begin_of_chunk(const struct walker *walker, unsigned d, uint64_t scaled)
{
	uint64_t i;

	return begin_of(walker, d, h5_mul(scaled, walker->grid.chunk[d], &i) ? i : UINT64_MAX);
}

/* The first dimension of which an index begins at the position. */
static unsigned outermost(const struct walker *walker)
{
	unsigned d = walker->last;

	while (d && !walker->x[d] && !walker->x[walker->last + 1])
		d--;
	return d;
}

/* The end of the hole at the position, if no chunk is stored from `scaled` to before `next`. If an index of a
 * dimension begins at the position, its bytes are in all chunks of the later dimensions. */
static uint64_t end_of_gap(const struct walker *walker, const uint64_t *scaled, const uint64_t *next)
{
	unsigned d = outermost(walker), differs = 0;

	while (next[differs] == scaled[differs])
		differs++;
	return differs < d ? begin_of(walker, d, UINT64_MAX) : begin_of_chunk(walker, differs, next[differs]);
}

static void find_indices(struct walker *walker)
{
	uint64_t rest = walker->at;

	for (unsigned d = 0; d < walker->grid.dims_count; d++) {
		walker->x[d] = rest / walker->grid.stride[d];
		rest %= walker->grid.stride[d];
	}
}

/* If two neighbouring rows (or planes, ...) had no hole, the other rows of the same chunks have none either:
 * moves to their end. */
static void pass_over_alike(struct walker *walker)
{
	for (unsigned d = outermost(walker); d < walker->last; d++) {
		uint64_t in_chunk = walker->x[d] % walker->grid.chunk[d], stride = walker->grid.stride[d],
			 end;

		if (in_chunk < 2 || walker->at - walker->begin < 2 * stride ||
		    walker->at - walker->hole >= stride)
			continue;
		end = begin_of_chunk(walker, d, walker->x[d] / walker->grid.chunk[d] + 1);
		walker->hole += end - walker->at;
		walker->at = end;
		find_indices(walker);
		return;
	}
}

/* The chunk at the position is stored. *n, the bytes of it that follow in the row, becomes how many of them
 * are defined, or are not, as the first one is. */
static int find_marks(struct walker *walker, const uint64_t *scaled, uint64_t *n, bool *defined)
{
	const struct h5_grid *grid = &walker->grid;
	struct h5_chunk_wanted wanted;
	struct h5_chunk_decoded decoded;
	enum h5_chunk_state state;
	uint64_t in_chunk = 0;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_chunk_locate(walker->dataset, grid, &walker->cursor, scaled, &wanted, &state);
	if (!rc)
		rc = h5_chunk_get(&wanted, true, &decoded);
	if (rc)
		return rc;
	for (unsigned d = 0; d < grid->dims_count; d++)
		in_chunk += walker->x[d] % grid->chunk[d] * grid->chunk_stride[d];
	*n = h5_structured_run(walker->dataset, decoded.data, in_chunk, *n, defined);
	h5_chunk_put(&wanted, &decoded, 0, 1);
	return 0;
}

/* Moves over one piece, which begins inside the dataset. *stored: a chunk is stored for it; if it is
 * structured, with elements that are defined. */
static int step(struct walker *walker, bool *stored)
{
	uint64_t scaled[H5_RANK_MAX], next[H5_RANK_MAX], n;
	int rc = walker->steps++ % 1024 ? 0 : h5_interrupt_check();

	if (rc)
		return rc;
	for (unsigned d = 0; d <= walker->last; d++)
		scaled[d] = walker->x[d] / walker->grid.chunk[d];
	rc = h5_chunk_index_gap(walker->dataset->index, &walker->cursor, scaled, stored, next);
	if (h5_is_passing(rc))
		return rc;
	*stored |= !!rc; /* damage counts as data: a read will report it */
	if (!*stored) {
		walker->at = end_of_gap(walker, scaled, next);
		return 0;
	}
	n = begin_of_chunk(walker, walker->last, scaled[walker->last] + 1) - walker->at;
	if (!rc && h5_structured_marks(walker->dataset))
		rc = find_marks(walker, scaled, &n, stored);
	if (h5_is_passing(rc))
		return rc;
	walker->at += n;
	if (*stored)
		walker->hole = walker->at;
	return 0;
}

static int find_hole(struct walker *walker, uint64_t *found)
{
	int rc = 0;

	while (!rc && walker->at < walker->dataset->size && walker->at - walker->hole < walker->least &&
	       walker->steps < STEPS_MAX) {
		bool stored;

		find_indices(walker);
		if (!h5_structured_marks(walker->dataset))
			pass_over_alike(walker);
		if (walker->at < walker->dataset->size)
			rc = step(walker, &stored);
	}
	*found = walker->at - walker->hole < walker->least ? walker->dataset->size : walker->hole;
	return rc;
}

static int find_data(struct walker *walker, uint64_t *found)
{
	uint64_t end = walker->at;
	bool stored = false;
	int rc = 0;

	while (!rc && !stored && walker->at < walker->dataset->size && walker->steps < STEPS_MAX) {
		end = walker->at;
		find_indices(walker);
		rc = step(walker, &stored);
	}
	if (!stored)
		end = walker->at;
	/* So few bytes are no hole. */
	*found = end - walker->begin < walker->least ? walker->begin : end;
	return rc;
}

int h5_chunked_seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found)
{
	struct walker walker;
	int rc;

	if (!dataset->index && h5_structured_marks(dataset)) {
		*found = hole ? offset : dataset->size;
		return 0;
	}
	if (!dataset->index)
		return h5_dataset_seek_nothing(dataset, offset, hole, found);
	walker_init(&walker, dataset, offset);
	rc = hole ? find_hole(&walker, found) : find_data(&walker, found);
	h5_chunk_cursor_release(dataset->index, &walker.cursor);
	return rc;
}

/* Virtual datasets: their elements are those of other datasets, the sources.
 *
 * A read goes through the mappings that may have elements in the range, the last one first, since a later
 * mapping overrides an earlier one. Each mapping takes those of its elements that no other has taken.
 * Elements that no source has get the fill value. The runs of a mapping are gathered, so that runs that lie
 * close together in the source are read at once. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/private.h"
#include "dataset/selection_walk.h"
#include "dataset/virtual_map.h"
#include "dataset/virtual_source.h"
#include "format/convert.h"

#include <stdlib.h>
#include <string.h>

enum {
	WINDOW = 4 << 20, /* bytes that are read at once */
	PIECES = 256,
	SCRATCH = 64 << 10,
	/* It is cheaper to read so many bytes between two runs than to skip them. */
	GAP = 4 << 10,
};

struct request {
	const struct h5_dataset *dataset;
	unsigned depth; /* levels of virtual datasets that may yet follow */
	uint64_t offset;
	uint8_t *buf;
	size_t n;
	uint64_t begin, end; /* elements that the range touches */
	uint64_t left;	     /* number of these elements that are not taken yet */
	uint64_t *taken;     /* a bit for each element: a mapping has given it */
	uint8_t *scratch;    /* twice SCRATCH bytes; NULL: not needed yet */
};

/* Elements of the source from position `from` on that are those of the virtual dataset from position `to`
 * on. */
struct piece {
	uint64_t from, to, count;
};

struct source {
	struct h5_file *file;
	struct h5_lru_entry *ref;
	const struct h5_dataset *dataset;
	bool convert;
	size_t count;
	struct piece pieces[PIECES];
};

static int read_range(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n,
		      unsigned depth);

/* ---- what is taken ---- */

/* The first element from `at` on that is taken, or is not; `end` if there is none before. */
static uint64_t next_bit(const struct request *request, uint64_t at, uint64_t end, bool taken)
{
	while (at < end) {
		uint64_t bit = at - request->begin, word = request->taken[bit / 64];

		word = (taken ? word : ~word) >> bit % 64;
		if (word)
			return h5_min(end, at + (unsigned)__builtin_ctzll(word));
		at += 64 - bit % 64;
	}
	return end;
}

static void take(struct request *request, uint64_t at, uint64_t count)
{
	request->left -= count;
	for (uint64_t bit = at - request->begin; count; bit++) {
		/* whole words at once */
		if (bit % 64 || count < 64) {
			request->taken[bit / 64] |= UINT64_C(1) << bit % 64;
			count--;
		} else {
			request->taken[bit / 64] = UINT64_MAX;
			bit += 63;
			count -= 64;
		}
	}
}

/* The next run of elements of the walk in the request, from the position on, that are not taken. */
static bool next_free(const struct request *request, const struct h5_walk *walk, uint64_t at,
		      struct h5_run *run)
{
	while (at < request->end && h5_walk_from(walk, at, run) && run->position < request->end) {
		uint64_t end = run->position + h5_min(run->count, request->end - run->position);
		uint64_t free = next_bit(request, run->position, end, false);

		if (free < end) {
			run->index += free - run->position;
			run->position = free;
			run->count = next_bit(request, free, end, true) - free;
			return true;
		}
		at = end;
	}
	return false;
}

/* ---- pieces ---- */

/* The part of the elements that the request asks for, as bytes of the virtual dataset. */
static void clip(const struct request *request, const struct piece *piece, uint64_t *begin, size_t *n)
{
	uint64_t size = request->dataset->type->size, first = piece->to * size;
	uint64_t end = h5_min(first + piece->count * size, request->offset + request->n);

	*begin = first > request->offset ? first : request->offset;
	*n = (size_t)(end - *begin);
}

static int read_source(const struct request *request, const struct source *source, uint64_t offset,
		       uint8_t *buf, size_t n)
{
	if (source->dataset->ops->is_virtual)
		return read_range(source->dataset, offset, buf, n, request->depth - 1);
	return h5_dataset_read(source->dataset, offset, buf, n);
}

static int read_direct(const struct request *request, const struct source *source, const struct piece *piece)
{
	uint64_t size = request->dataset->type->size, begin;
	size_t n;

	clip(request, piece, &begin, &n);
	return read_source(request, source, piece->from * size + (begin - piece->to * size),
			   request->buf + (begin - request->offset), n);
}

/* Reads all from the first to the last of the pieces at once, and copies the pieces from that. */
static int read_together(struct request *request, const struct source *source, const struct piece *pieces,
			 size_t count)
{
	uint64_t size = source->dataset->type->size, first = pieces[0].from;
	uint64_t end = pieces[count - 1].from + pieces[count - 1].count;
	int rc;

	if (!request->scratch)
		request->scratch = malloc(2 * SCRATCH);
	if (!request->scratch)
		return h5_fail(-ENOMEM, request->dataset->address, "virtual dataset: out of memory");
	rc = read_source(request, source, first * size, request->scratch, (size_t)((end - first) * size));
	for (size_t i = 0; i < count && !rc; i++) {
		const uint8_t *data = request->scratch + (pieces[i].from - first) * size;
		uint64_t begin;
		size_t n;

		if (source->convert) {
			h5_convert(source->dataset->type, data, request->dataset->type,
				   request->scratch + SCRATCH, (size_t)pieces[i].count);
			data = request->scratch + SCRATCH;
		}
		clip(request, &pieces[i], &begin, &n);
		memcpy(request->buf + (begin - request->offset),
		       data + (begin - pieces[i].to * request->dataset->type->size), n);
	}
	return rc;
}

static uint64_t window_end(const struct h5_dataset *source, uint64_t from)
{
	return source->ops->window ? source->ops->window(source, from) : from;
}

/* How many of the pieces are read together with the first. */
static size_t count_together(const struct source *source, const struct piece *pieces, size_t count)
{
	uint64_t size = source->dataset->type->size, first = pieces[0].from, end = first + pieces[0].count;
	uint64_t window = window_end(source->dataset, first * size);
	size_t n = 1;

	for (; n < count && pieces[n].from >= end; n++) {
		uint64_t gap = pieces[n].from - end, next = pieces[n].from + pieces[n].count;

		if (gap > GAP / size || (gap && next * size > window) || next - first > SCRATCH / size)
			break;
		end = next;
	}
	return n;
}

static int flush(struct request *request, struct source *source)
{
	int rc = 0;

	for (size_t i = 0; i < source->count && !rc;) {
		const struct piece *pieces = source->pieces + i;
		size_t n = count_together(source, pieces, source->count - i);

		rc = n == 1 && !source->convert ? read_direct(request, source, pieces)
						: read_together(request, source, pieces, n);
		i += n;
	}
	source->count = 0;
	return rc;
}

static int add_piece(struct request *request, struct source *source, struct piece piece)
{
	struct piece *last = source->count ? &source->pieces[source->count - 1] : NULL;
	uint64_t most = UINT64_MAX;

	if (last && !source->convert && piece.from == last->from + last->count &&
	    piece.to == last->to + last->count) {
		last->count += piece.count;
		return 0;
	}
	if (source->convert) {
		uint32_t from = source->dataset->type->size, to = request->dataset->type->size;

		most = SCRATCH / (from > to ? from : to);
	}
	while (piece.count) {
		struct piece part = {piece.from, piece.to, h5_min(piece.count, most)};
		int rc = source->count == PIECES ? flush(request, source) : 0;

		if (rc)
			return rc;
		source->pieces[source->count++] = part;
		piece.from += part.count;
		piece.to += part.count;
		piece.count -= part.count;
	}
	return 0;
}

/* ---- mappings ---- */

static int check_source(const struct request *request, struct source *source)
{
	const struct h5_datatype *from = source->dataset->type, *to = request->dataset->type;

	if (source->dataset->size == UINT64_MAX)
		return h5_fail(-EOVERFLOW, source->dataset->address, "dataset: more than 2^63-1 bytes");
	if (source->dataset->ops->is_virtual && !request->depth)
		return h5_fail(-ELOOP, source->dataset->address,
			       "virtual dataset: too many sources in a row");
	source->convert = h5_convert_is_needed(from, to);
	if (source->convert && (!h5_convert_can(from, to) || from->size > SCRATCH || to->size > SCRATCH))
		return h5_fail(-ENOTSUP, source->dataset->address,
			       "virtual dataset: its source is of a type that is not converted");
	if (!h5_datatype_is_fixed(to) && source->dataset->file != request->dataset->file)
		return h5_fail(-ENOTSUP, request->dataset->address,
			       "virtual dataset: variable-length data or references in another file");
	return 0;
}

static int open_source(const struct request *request, const struct h5_virtual_entry *entry, uint64_t block,
		       struct source *source)
{
	uint64_t address;
	int rc = h5_interrupt_check();

	source->count = 0;
	source->ref = NULL;
	if (!rc)
		rc = h5_virtual_find_source(request->dataset->file, entry->file, entry->dataset, block,
					    &source->file, &address);
	if (!rc)
		rc = h5_dataset_get_by(request->dataset->layouts, source->file, address, &source->ref,
				       &source->dataset);
	if (!rc)
		rc = check_source(request, source);
	if (rc && source->ref) {
		h5_file_put(source->file, source->ref);
		source->ref = NULL;
	}
	return rc ? h5_fail_in(rc, "%s in %s", entry->dataset, entry->file) : 0;
}

/* The walk through the source. If both selections are unlimited, the walk through the virtual dataset is cut
 * to as many slices as the source has. */
static int walk_source(const struct request *request, const struct h5_virtual_entry *entry,
		       const struct h5_dataset *source, struct h5_walk *from, struct h5_walk *to)
{
	const struct h5_dataspace *space = &request->dataset->space;
	int unlimited = h5_shape_unlimited(entry->source), d = h5_shape_unlimited(entry->virtual);
	struct h5_hyperslab slab, virtual_slab;
	uint64_t slices;
	int rc;

	if (!h5_shape_has_rank(entry->source, source->space.rank))
		return h5_fail(-EUCLEAN, request->dataset->address,
			       "virtual dataset: source selection of another rank");
	if (unlimited >= 0) {
		slices = h5_shape_slices(entry->source, source->space.dims[unlimited]);
		if (d >= 0)
			slices = h5_min(slices, h5_shape_slices(entry->virtual, space->dims[d]));
		if (!h5_shape_cut(entry->source, slices, &slab) ||
		    (d >= 0 && !h5_shape_cut(entry->virtual, slices, &virtual_slab)))
			return h5_fail(-EUCLEAN, request->dataset->address,
				       "virtual dataset: selection beyond 2^64");
	}
	rc = h5_walk_init(from, entry->source, source->space.rank, source->space.dims, &slab);
	if (source->space.kind == H5_SPACE_NULL)
		from->count = 0;
	if (!rc && unlimited >= 0 && d >= 0)
		rc = h5_walk_init(to, entry->virtual, space->rank, space->dims, &virtual_slab);
	return rc;
}

/* Copies one run of the virtual dataset, from as many runs of the source as it needs. Elements that the
 * source does not have are not taken. */
static int copy_run(struct request *request, struct source *source, const struct h5_walk *from,
		    const struct h5_run *run)
{
	int rc = 0;

	for (uint64_t done = 0, count; done < run->count && !rc; done += count) {
		struct h5_run part;

		if (run->index + done >= from->count)
			return 0;
		h5_walk_at(from, run->index + done, &part);
		count = h5_min(part.count, run->count - done);
		if (part.position == UINT64_MAX)
			continue;
		take(request, run->position + done, count);
		rc = add_piece(request, source, (struct piece){part.position, run->position + done, count});
	}
	return rc;
}

/* Reads those elements of one mapping, or of one block of it, that no later mapping has given yet; `slab`
 * replaces the mapping's unlimited dimension. */
static int read_block(struct request *request, const struct h5_virtual_entry *entry, uint64_t block,
		      const struct h5_hyperslab *slab)
{
	const struct h5_dataspace *space = &request->dataset->space;
	struct h5_walk to, from;
	struct source source;
	struct h5_run run;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_walk_init(&to, entry->virtual, space->rank, space->dims, slab);
	if (rc || !to.inside || !next_free(request, &to, request->begin, &run))
		return rc;
	rc = open_source(request, entry, block, &source);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = walk_source(request, entry, source.dataset, &from, &to);
	for (uint64_t at = request->begin; !rc && next_free(request, &to, at, &run);
	     at = run.position + run.count)
		rc = copy_run(request, &source, &from, &run);
	if (!rc)
		rc = flush(request, &source);
	h5_file_put(source.file, source.ref);
	return rc;
}

/* Reads the blocks that touch the indexes from first to last of the unlimited dimension. */
static int read_blocks(struct request *request, const struct h5_virtual_entry *entry, uint64_t first,
		       uint64_t last)
{
	struct h5_hyperslab slab;
	uint64_t start, stride;
	int rc = 0;

	if (!h5_shape_block(entry->virtual, 0, &slab))
		return h5_fail(-EUCLEAN, request->dataset->address, "virtual dataset: blocks without number");
	start = slab.start;
	stride = slab.stride;
	if (last < start)
		return 0;
	for (uint64_t block = first > start ? (first - start) / stride : 0;
	     block <= (last - start) / stride && !rc && request->left; block++) {
		if (!h5_shape_block(entry->virtual, block, &slab))
			break;
		rc = read_block(request, entry, block, &slab);
	}
	return rc;
}

/* If each block has a source of its own, reads the blocks that the range of elements touches. */
static int read_counted(struct request *request, const struct h5_virtual_entry *entry, unsigned d)
{
	const struct h5_dataspace *space = &request->dataset->space;
	uint64_t step = 1, row, first, last;
	int rc;

	for (unsigned i = d + 1; i < space->rank; i++)
		step *= space->dims[i];
	row = step * space->dims[d];
	first = request->begin % row / step;
	last = (request->end - 1) % row / step;
	if (request->begin / row == (request->end - 1) / row)
		return read_blocks(request, entry, first, last);
	if (request->end - request->begin >= row || first <= last)
		return read_blocks(request, entry, 0, space->dims[d] - 1);
	rc = read_blocks(request, entry, 0, last);
	return rc ? rc : read_blocks(request, entry, first, space->dims[d] - 1);
}

static int read_mapping(struct request *request, const struct h5_virtual_entry *entry)
{
	int d = h5_shape_unlimited(entry->virtual);
	struct h5_hyperslab slab;

	if (d < 0)
		return read_block(request, entry, 0, NULL);
	if (h5_shape_unlimited(entry->source) < 0)
		return read_counted(request, entry, (unsigned)d);
	/* Cannot fail: it was checked when the map was made. */
	h5_shape_cut(entry->virtual, h5_shape_slices(entry->virtual, request->dataset->space.dims[d]), &slab);
	return read_block(request, entry, 0, &slab);
}

/* ---- reading ---- */

static void fill_free(const struct request *request)
{
	uint64_t at = request->begin, begin;
	size_t n;

	while (request->left && (at = next_bit(request, at, request->end, false)) < request->end) {
		struct piece piece = {0, at, next_bit(request, at, request->end, true) - at};

		clip(request, &piece, &begin, &n);
		h5_dataset_fill(request->dataset, begin, request->buf + (begin - request->offset), n);
		at += piece.count;
	}
}

static int read_window(struct request *request, const struct h5_virtual_map *map)
{
	const struct h5_virtual_entry **entries;
	uint32_t size = request->dataset->type->size;
	size_t count;
	int rc;

	request->begin = request->offset / size;
	request->end = (request->offset + request->n - 1) / size + 1;
	request->left = request->end - request->begin;
	request->taken = h5_calloc(request->left / 64 + 1, sizeof *request->taken);
	if (!request->taken)
		return h5_fail(-ENOMEM, request->dataset->address, "virtual dataset: out of memory");
	rc = h5_virtual_map_find(map, request->begin, request->end, &entries, &count);
	if (!rc) {
		for (size_t i = 0; i < count && request->left && !rc; i++)
			rc = read_mapping(request, entries[i]);
		free(entries);
	}
	if (!rc)
		fill_free(request);
	free(request->taken);
	return rc;
}

static int read_range(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n,
		      unsigned depth)
{
	struct request request = {.dataset = dataset, .depth = depth};
	const struct h5_virtual_map *map;
	struct h5_lru_entry *ref;
	int rc = h5_virtual_map_get(dataset, &ref, &map);

	if (rc)
		return rc;
	for (size_t done = 0; done < n && !rc; done += request.n) {
		request.offset = offset + done;
		request.buf = buf + done;
		request.n = (size_t)h5_min(n - done, WINDOW);
		rc = read_window(&request, map);
	}
	free(request.scratch);
	h5_file_put(dataset->file, ref);
	return rc;
}

static int virtual_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	return read_range(dataset, offset, buf, n, H5_VIRTUAL_DEPTH);
}

static int virtual_open(struct h5_dataset *dataset)
{
	int rc = h5_virtual_extent(dataset->file, &dataset->layout, &dataset->space);

	if (rc)
		return rc;
	if (!h5_mul(dataset->space.elements, dataset->type->size, &dataset->size) ||
	    dataset->size > INT64_MAX)
		dataset->size = UINT64_MAX;
	/* Nothing is ever written to a virtual dataset, so it does not matter when its fill value is
	 * written. */
	dataset->fill_never = false;
	return 0;
}

static int virtual_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	(void)dataset;
	*bytes = 0;
	return 0;
}

static int virtual_check(const struct h5_dataset *dataset, struct h5_damage *damage, h5_check_done *done,
			 void *arg)
{
	const struct h5_virtual_map *map;
	struct h5_lru_entry *ref;
	int rc = h5_virtual_map_get(dataset, &ref, &map);

	(void)done;
	(void)arg;
	if (!rc)
		h5_file_put(dataset->file, ref);
	return h5_damage_note(damage, rc);
}

const struct h5_layout_ops h5_layout_virtual = {
	.name = "virtual",
	.is_virtual = true,
	.is_elsewhere = true,
	.open = virtual_open,
	.read = virtual_read,
	.storage = virtual_storage,
	.check = virtual_check,
};

#include "view/zarr_array.h"

#include "base/checked.h"
#include "base/error.h"
#include "store/pipeline.h"
#include "view/strings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	ROWS_BYTES = 1 << 20,  /* of a chunk of rows, about */
	SMALL_BYTES = 1 << 16, /* of chunks that are joined: fewer */
	BAND_MOST = 8 << 20,   /* of chunks that others are joined to */
	JOINED_CHUNKS = 1 << 20,
	DTYPE_MAX = 1 << 20,
};

/* ---- which datasets, which types ---- */

const struct h5_datatype *h5_zarr_type(const struct h5_dataset *dataset)
{
	const struct h5_datatype *t = dataset->type;

	while (t->class == H5_CLASS_ARRAY)
		t = t->array.base;
	return t;
}

static bool is_strings(const struct h5_datatype *t)
{
	return t->class == H5_CLASS_VLEN && t->vlen.is_string;
}

/* Version 3 has no names for structures and opaque bytes that all readers know. */
static bool has_name_in_v3(const char *dtype, size_t n)
{
	return n > 3 && strchr("biufcS", dtype[2]);
}

/* 0: Zarr has the type. */
static int check_type(const struct h5_dataset *dataset, enum h5_zarr_version version)
{
	struct h5_buf dtype;
	bool good;
	int rc;

	if (is_strings(dataset->type))
		return 0;
	h5_buf_init(&dtype, DTYPE_MAX);
	good = h5_datatype_zarr(h5_zarr_type(dataset), &dtype);
	rc = dtype.err;
	if (!rc && good && version == H5_ZARR_V3)
		good = dtype.data[0] == '"' && has_name_in_v3(dtype.data, dtype.size);
	h5_buf_release(&dtype);
	return h5_is_passing(rc) ? rc : rc || !good ? -ENOENT : 0;
}

/* ---- filters ---- */

enum { DEFLATE = 1, FLETCHER32 = 3, BZIP2 = 307, BLOSC = 32001, ZSTD = 32015 };

/* Shuffling must be the first filter: it does not shuffle bytes behind the last whole element, but readers of
 * Zarr refuse such bytes. */
static bool is_codec(const struct h5_zarr_array *a, unsigned i)
{
	const struct h5_filter_info *f = &a->dataset->pipeline.filters[i];

	switch (f->id) {
	case DEFLATE:
	case BZIP2:
	case ZSTD:
		return true;
	case BLOSC:
		return f->count < 7 || f->values[6] <= 5;
	case 2:
		return !i && f->count && f->values[0] && a->chunk_bytes % f->values[0] == 0;
	default:
		return false;
	}
}

static void find_codecs(struct h5_zarr_array *a)
{
	const struct h5_pipeline *p = &a->dataset->pipeline;
	unsigned n = p->count;

	a->is_passed = !a->is_strings && !a->has_padding;
	a->has_checksum = n && p->filters[n - 1].id == FLETCHER32;
	a->codecs = n - a->has_checksum;
	for (unsigned i = 0; i < a->codecs; i++)
		a->is_passed &= is_codec(a, i);
	if (!a->is_passed)
		h5_zarr_array_decode(a);
}

void h5_zarr_array_decode(struct h5_zarr_array *a)
{
	a->is_passed = a->has_checksum = false;
	a->codecs = 0;
}

/* ---- shape and chunks ---- */

static bool add_dims_of_type(struct h5_zarr_array *a)
{
	for (const struct h5_datatype *t = a->dataset->type; t->class == H5_CLASS_ARRAY; t = t->array.base)
		for (unsigned i = 0; i < t->array.rank; i++) {
			if (a->rank == H5_RANK_MAX)
				return false;
			a->shape[a->rank] = a->chunk[a->rank] = t->array.dims[i];
			a->rank++;
		}
	return true;
}

/* Chunks of rows: as many indices of one dimension as fit, one of each before it, all of those behind it. */
static void cut_rows(struct h5_zarr_array *a, uint64_t bytes)
{
	uint64_t size = a->dataset->type->size, room = bytes;

	for (unsigned d = a->dataset->space.rank; d-- > 0;) {
		uint64_t most = room / size;

		a->chunk[d] = h5_max(h5_min(most, a->shape[d]), 1);
		/* What comes before is cut once this dimension is. */
		if (a->chunk[d] < a->shape[d])
			room = 0;
		size *= a->chunk[d]; /* does not overflow: more than one are at most the room */
	}
}

static bool count_chunks(struct h5_zarr_array *a)
{
	for (unsigned d = 0; d < a->rank; d++)
		a->grid[d] = a->shape[d] / a->chunk[d] + (a->shape[d] % a->chunk[d] != 0);
	return h5_product(a->grid, a->rank, &a->chunks) && a->chunks <= H5_ZARR_CHUNKS_MAX &&
	       h5_product(a->chunk, a->dataset->space.rank, &a->chunk_bytes) &&
	       h5_mul(a->chunk_bytes, a->dataset->type->size, &a->chunk_bytes) && a->chunk_bytes <= INT64_MAX;
}

static bool set_chunks(struct h5_zarr_array *a)
{
	const struct h5_dataset *d = a->dataset;

	a->rank = d->space.rank;
	a->is_chunked = h5_dataset_chunks(d);
	memcpy(a->shape, d->space.dims, a->rank * sizeof *a->shape);
	if (a->is_chunked)
		memcpy(a->chunk, d->layout.chunked.dims, a->rank * sizeof *a->chunk);
	else
		cut_rows(a, ROWS_BYTES);
	return add_dims_of_type(a) && count_chunks(a);
}

int h5_zarr_array_init(struct h5_zarr_array *a, enum h5_zarr_version version,
		       const struct h5_dataset *dataset)
{
	int rc;

	*a = (struct h5_zarr_array){.dataset = dataset,
				    .version = version,
				    .is_strings = is_strings(dataset->type),
				    .has_padding = h5_strings_have_padding(dataset->type)};
	if (dataset->space.kind == H5_SPACE_NULL || dataset->size == UINT64_MAX || !set_chunks(a))
		return -ENOENT;
	rc = check_type(dataset, version);
	if (rc)
		return rc;
	if (a->is_chunked)
		find_codecs(a);
	return 0;
}

/* Chunks along a dimension that have elements of the dataset. */
static uint64_t own_grid(const struct h5_zarr_array *a, unsigned d)
{
	uint64_t n = a->dataset->space.dims[d];

	return n / a->chunk[d] + (n % a->chunk[d] != 0);
}

static bool is_cut(const struct h5_zarr_array *a, unsigned d)
{
	uint64_t n = a->dataset->space.dims[d];

	return a->shape[d] > n && n % a->chunk[d];
}

uint64_t h5_zarr_array_cut_chunks(const struct h5_zarr_array *a)
{
	uint64_t own = 1, cut = 0;

	for (unsigned d = 0; d < a->dataset->space.rank; d++)
		own *= own_grid(a, d);
	for (unsigned d = 0; d < a->dataset->space.rank && own; d++)
		cut += is_cut(a, d) ? own / own_grid(a, d) : 0;
	return cut;
}

/* 0: chunks can be encoded as the stored ones are. -ENOTSUP: this build lacks a library. */
static int check_encoders(const struct h5_zarr_array *a)
{
	struct h5_pipeline codecs = a->dataset->pipeline;

	codecs.count = a->codecs;
	return h5_pipeline_can_encode(&codecs);
}

int h5_zarr_array_can_fill(const struct h5_zarr_array *a, bool *can)
{
	int rc = check_encoders(a);

	*can = !rc;
	return h5_is_passing(rc) ? rc : 0;
}

int h5_zarr_array_extend(struct h5_zarr_array *a, const uint64_t *shape)
{
	const struct h5_zarr_array before = *a;
	int rc = 0;

	if (!a->is_chunked)
		return 0;
	for (unsigned d = 0; d < a->dataset->space.rank; d++)
		a->shape[d] = h5_max(a->shape[d], shape[d]);
	a->is_extended = memcmp(a->shape, before.shape, sizeof a->shape);
	if (h5_zarr_array_cut_chunks(a))
		rc = check_encoders(a);
	if (rc || !count_chunks(a))
		*a = before;
	return h5_is_passing(rc) ? rc : 0;
}

/* As cut_rows(), but stored chunks are taken whole. False: rows would cut them, or be too long. */
static bool cut_bands(struct h5_zarr_array *a)
{
	const uint64_t *stored = a->dataset->layout.chunked.dims;
	bool is_cut = false;

	cut_rows(a, ROWS_BYTES);
	for (unsigned d = a->dataset->space.rank; d-- > 0;) {
		if (is_cut && stored[d] > 1)
			return false;
		if (a->chunk[d] >= a->shape[d])
			continue;
		is_cut = true;
		a->chunk[d] = h5_min(h5_max(a->chunk[d] / stored[d], 1) * stored[d], a->shape[d]);
	}
	return count_chunks(a) && a->chunk_bytes <= BAND_MOST;
}

void h5_zarr_array_join(struct h5_zarr_array *a)
{
	const struct h5_zarr_array before = *a;

	if (!a->is_chunked || a->is_passed || a->is_extended || a->chunk_bytes >= SMALL_BYTES)
		return;
	a->is_chunked = false;
	if (!cut_bands(a) || a->chunks > JOINED_CHUNKS)
		*a = before;
}

void h5_zarr_array_fit(struct h5_zarr_array *a, uint64_t room)
{
	uint64_t end = a->chunk_bytes, stride = a->dataset->type->size;

	for (unsigned d = a->dataset->space.rank; a->chunks && d-- > 0; stride *= a->shape[d])
		end += (a->grid[d] - 1) * a->chunk[d] * stride;
	if (end <= room)
		return;
	cut_rows(a, UINT64_MAX);
	count_chunks(a);
}

/* ---- finding chunks ---- */

static void find_rows(const struct h5_zarr_array *a, struct h5_zarr_chunk *c)
{
	const struct h5_dataset *d = a->dataset;
	uint64_t stride = d->type->size;

	c->source = c->elements = H5_ZARR_ROWS;
	c->begin = 0;
	c->rows_size = stride;
	for (unsigned i = d->space.rank; i-- > 0; stride *= a->shape[i]) {
		uint64_t first = c->scaled[i] * a->chunk[i];

		c->begin += first * stride;
		c->rows_size *= h5_min(a->chunk[i], a->shape[i] - first);
	}
	c->size = a->chunk_bytes;
}

static void find_stored(const struct h5_zarr_array *a, struct h5_zarr_chunk *c)
{
	const struct h5_whole_chunk *stored = &c->stored;
	uint64_t checksum = a->has_checksum ? 4 : 0;

	c->source = c->elements = H5_ZARR_CHUNK;
	c->size = a->chunk_bytes;
	if (!a->is_passed)
		return;
	if (a->dataset->pipeline.count && !h5_whole_chunk_is_filtered(stored)) {
		/* Without codecs, a chunk whose checksum was left out is as it is decoded. */
		if (a->codecs) {
			c->source = H5_ZARR_MADE;
			c->size = 0;
		}
		return;
	}
	/* A chunk that is too short, or too long, is read by the rules for those. */
	if (!a->codecs && stored->wanted.chunk.size != a->chunk_bytes + checksum)
		return;
	if (stored->wanted.chunk.size < checksum)
		return;
	c->source = H5_ZARR_STORED;
	c->size = stored->wanted.chunk.size - checksum;
}

/* True: nothing is stored of a dataset that is not chunked. */
static bool is_empty(const struct h5_dataset *d)
{
	return d->layout.class == H5_LAYOUT_CONTIGUOUS && !d->external &&
	       d->layout.contiguous.address == H5_UNDEF;
}

/* True: the chunk has elements of the dataset. */
static bool is_inside(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c)
{
	for (unsigned d = 0; d < a->dataset->space.rank && a->is_extended; d++)
		if (c->scaled[d] >= own_grid(a, d))
			return false;
	return true;
}

/* True: it also has elements of the array that lie behind the dataset's end. They may be stored, as anything.
 */
static bool is_cut_chunk(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c)
{
	for (unsigned d = 0; d < a->dataset->space.rank && a->is_extended; d++)
		if (is_cut(a, d) && c->scaled[d] == own_grid(a, d) - 1)
			return true;
	return false;
}

/* -ENOENT: it is not stored. */
static int find(const struct h5_zarr_array *a, struct h5_chunk_cursor *cursor, struct h5_zarr_chunk *c)
{
	int rc = 0;

	if (!a->is_chunked && is_empty(a->dataset))
		return -ENOENT;
	if (!a->is_chunked) {
		find_rows(a, c);
		return 0;
	}
	if (is_inside(a, c))
		rc = h5_whole_chunk_find(a->dataset, cursor, c->scaled, &c->stored);
	if (rc || c->stored.state == H5_CHUNK_NOT_STORED)
		return rc ? rc : -ENOENT;
	find_stored(a, c);
	return 0;
}

int h5_zarr_chunk_find(const struct h5_zarr_array *a, struct h5_chunk_cursor *cursor, uint64_t number,
		       struct h5_zarr_chunk *c)
{
	int rc;

	*c = (struct h5_zarr_chunk){.stored.state = H5_CHUNK_NOT_STORED};
	h5_whole_chunk_scaled(a->grid, a->rank, number, c->scaled);
	rc = find(a, cursor, c);
	if (rc == -ENOENT && a->is_filled) {
		c->source = c->elements = H5_ZARR_FILL;
		c->size = a->chunk_bytes;
		rc = 0;
	}
	if (rc)
		return rc;
	if (a->is_strings || a->has_padding || (c->elements == H5_ZARR_FILL && a->codecs) ||
	    (c->elements == H5_ZARR_CHUNK && is_cut_chunk(a, c))) {
		c->source = H5_ZARR_MADE;
		c->size = 0;
	}
	return 0;
}

/* As h5_whole_chunk_next(), but of the array's chunks. */
static int next_stored(const struct h5_zarr_array *a, struct h5_chunk_cursor *cursor, uint64_t *number,
		       uint64_t end)
{
	uint64_t own[H5_RANK_MAX], scaled[H5_RANK_MAX], all = 1, next;
	const unsigned rank = a->dataset->space.rank;
	int rc;

	if (!a->is_extended || *number >= end)
		return h5_whole_chunk_next(a->dataset, cursor, a->grid, number, end);
	for (unsigned d = 0; d < rank; d++) {
		own[d] = own_grid(a, d);
		all *= own[d];
	}
	/* The dimensions of an array type are one chunk each: they change no number. */
	h5_whole_chunk_scaled(a->grid, rank, *number, scaled);
	next = all ? h5_whole_chunk_number(own, rank, scaled) : 0;
	rc = h5_whole_chunk_next(a->dataset, cursor, own, &next, all);
	*number = end;
	if (rc || next >= all)
		return rc;
	h5_whole_chunk_scaled(own, rank, next, scaled);
	*number = h5_whole_chunk_number(a->grid, rank, scaled);
	return 0;
}

int h5_zarr_chunk_next(const struct h5_zarr_array *a, struct h5_chunk_cursor *cursor, uint64_t *number,
		       uint64_t end)
{
	int rc = 0;

	if (!a->is_filled && a->is_chunked)
		rc = next_stored(a, cursor, number, end);
	else if (!a->is_filled && is_empty(a->dataset))
		*number = h5_max(*number, end);
	*number = h5_min(*number, end);
	return rc;
}

int h5_zarr_is_complete(const struct h5_zarr_array *a, bool *complete)
{
	enum { MOST = 1 << 20 };
	struct h5_chunk_cursor cursor = {0};
	uint64_t number = 0, next = 0;
	int rc = 0;

	*complete = false;
	if (!a->is_chunked)
		*complete = !is_empty(a->dataset);
	if (!a->is_chunked || a->chunks > MOST)
		return 0;
	while (!rc && number < a->chunks && next == number) {
		rc = h5_zarr_chunk_next(a, &cursor, &next, a->chunks);
		if (next == number)
			next = ++number;
	}
	if (a->dataset->index)
		h5_chunk_cursor_release(a->dataset->index, &cursor);
	*complete = !rc && number == a->chunks;
	return rc;
}

void h5_zarr_chunk_name(const struct h5_zarr_array *a, uint64_t number, char name[H5_ZARR_NAME_MAX + 1])
{
	uint64_t scaled[H5_RANK_MAX];
	size_t n = 0;

	h5_whole_chunk_scaled(a->grid, a->rank, number, scaled);
	strcpy(name, "0");
	/* 32 coordinates whose product is below 2^61 have fewer than 92 digits. */
	for (unsigned d = 0; d < a->rank; d++)
		n += (size_t)snprintf(name + n, H5_ZARR_NAME_MAX + 1 - n, d ? ".%" PRIu64 : "%" PRIu64,
				      scaled[d]);
}

/* ---- bytes of chunks ---- */

static int read_rows(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c, uint64_t offset,
		     uint8_t *buf, size_t n)
{
	size_t part = offset < c->rows_size ? (size_t)h5_min(n, c->rows_size - offset) : 0;

	if (n > part)
		h5_dataset_fill(a->dataset, c->begin + offset + part, buf + part, n - part);
	/* Behind the end of the dataset there is nothing to read, not even no bytes. */
	return part ? h5_dataset_read(a->dataset, c->begin + offset, buf, part) : 0;
}

int h5_zarr_chunk_read(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c, uint64_t offset,
		       uint8_t *buf, size_t n)
{
	const struct h5_chunk *stored = &c->stored.wanted.chunk;
	uint64_t address;

	switch (c->source) {
	case H5_ZARR_ROWS:
		return read_rows(a, c, offset, buf, n);
	case H5_ZARR_CHUNK:
		return h5_whole_chunk_read(&c->stored, offset, buf, n);
	case H5_ZARR_STORED:
		if (!h5_add(stored->address, offset, &address))
			return h5_fail(-EUCLEAN, stored->address, "chunk: it reaches beyond any file");
		return h5_file_read(a->dataset->file, address, buf, n);
	case H5_ZARR_FILL:
		h5_dataset_fill(a->dataset, offset, buf, n);
		return 0;
	case H5_ZARR_MADE:
		break;
	}
	assert(false); /* the caller has made it */
	return -EINVAL;
}

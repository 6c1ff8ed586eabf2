/* What all chunk indexes share: the requests, of which each index does its part; cursors; the numbers of
 * chunks; elements, and pages of them. */
#include "chunk_index/chunk_index.h"

#include "base/checked.h"
#include "change/transaction.h"
#include "chunk_index/private.h"
#include "store/block.h"
#include "store/file.h"
#include "store/want.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- cursors ---- */

/* The range, and what stands behind it, come with the first block. */
void h5_chunk_cursor_init(struct h5_chunk_cursor *cursor)
{
	memset(cursor, 0, offsetof(struct h5_chunk_cursor, low));
}

void h5_chunk_cursor_release(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor)
{
	h5_file_put(index->file, cursor->ref);
	cursor->ref = NULL;
	cursor->block = NULL;
	cursor->held = false;
	cursor->next = 0;
}

bool h5_chunk_cursor_covers(const struct h5_chunk_cursor *cursor, const uint64_t *key, unsigned n)
{
	return cursor->held && h5_chunk_compare(key, cursor->low, n) >= 0 &&
	       h5_chunk_compare(key, cursor->high, n) < 0;
}

bool h5_chunk_cursor_enter(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			   const uint64_t *key, unsigned n)
{
	if (h5_chunk_cursor_covers(cursor, key, n))
		return true;
	cursor->moves = cursor->held;
	h5_chunk_cursor_release(index, cursor);
	return false;
}

unsigned h5_chunk_cursor_reach(const struct h5_chunk_cursor *cursor)
{
	return cursor->reach ? cursor->reach : cursor->moves ? H5_WANT_NODES : 0;
}

int h5_chunk_cursor_hold(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor, int rc)
{
	if (rc) {
		h5_chunk_cursor_release(index, cursor);
		return rc;
	}
	assert(!cursor->block || cursor->ref);
	cursor->held = true;
	return 0;
}

/* ---- numbers ---- */

/* How many chunks there can be along a dimension. The specification counts by the current size, but writers
 * count by the maximum, so that numbers stay when the dataset grows. */
static uint64_t chunks_along(const struct h5_chunk_index *index, unsigned i)
{
	uint64_t max = index->max[i], chunk = index->layout.dims[i];

	return max == H5_UNLIMITED ? H5_UNLIMITED : max / chunk + (max % chunk != 0);
}

int h5_chunk_index_number(struct h5_chunk_index *index, unsigned slowest)
{
	uint64_t n = 1;
	bool fits = true;

	for (unsigned i = index->layout.rank; i-- > 0;) {
		index->along[i] = chunks_along(index, i);
		if (i == slowest)
			continue;
		index->step[i] = n;
		fits = fits && index->max[i] != H5_UNLIMITED && h5_mul(n, index->along[i], &n);
	}
	index->step[slowest] = n;
	index->slowest = slowest;
	index->count = H5_UNLIMITED;
	if (index->max[slowest] != H5_UNLIMITED)
		fits = fits && h5_mul(n, index->along[slowest], &index->count);
	return fits ? 0 : h5_fail(-EUCLEAN, index->layout.address, "chunk index: too many chunks to number");
}

bool h5_chunk_index_number_of(const struct h5_chunk_index *index, const uint64_t *scaled, uint64_t *number)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < index->layout.rank; i++) {
		uint64_t steps;

		if (scaled[i] >= index->along[i] || !h5_mul(scaled[i], index->step[i], &steps) ||
		    !h5_add(n, steps, &n))
			return false;
	}
	*number = n;
	return true;
}

/* ---- elements ---- */

unsigned h5_chunk_element_size(const struct h5_chunk_index *index)
{
	return h5_chunk_prefix_size(index) + index->scaled_size + index->metadata_size;
}

unsigned h5_chunk_prefix_size(const struct h5_chunk_index *index)
{
	unsigned size = h5_file_superblock(index->file)->size_of_offsets;

	if (index->layout.structured.offset_size)
		return size + index->size_width;
	return index->filtered ? size + index->size_width + 4 : size;
}

int h5_chunk_element_fit(struct h5_chunk_index *index, unsigned size)
{
	unsigned others = h5_chunk_element_size(index) - index->size_width;

	if (size <= others || size > others + 8)
		return h5_fail(-EUCLEAN, index->layout.address,
			       "chunk index: elements of %u bytes for structured chunks", size);
	index->size_width = (uint8_t)(size - others);
	return 0;
}

unsigned h5_chunk_element_client(const struct h5_chunk_index *index)
{
	return (index->layout.structured.offset_size ? 2u : 0u) + (index->filtered ? 1u : 0u);
}

int h5_chunk_element_check(struct h5_chunk_index *index, unsigned client, unsigned size, const char *what)
{
	bool structured = index->layout.structured.offset_size;

	if (client > 3)
		return h5_fail(-ENOTSUP, index->layout.address, "%s: client %u is not supported", what,
			       client);
	if (client != h5_chunk_element_client(index))
		return h5_fail(-EUCLEAN, index->layout.address, "%s: it is for %sfiltered%s chunks", what,
			       client % 2 ? "" : "un", client > 1 ? " structured" : "");
	if (structured)
		return h5_chunk_element_fit(index, size);
	if (size != h5_chunk_element_size(index))
		return h5_fail(-EUCLEAN, index->layout.address, "%s: elements of %u bytes, not %u", what,
			       size, h5_chunk_element_size(index));
	return 0;
}

static void decode_element(const struct h5_chunk_index *index, struct h5_reader *r, struct h5_chunk *chunk)
{
	chunk->address = h5_read_offset(r);
	chunk->size = index->chunk_size;
	chunk->filter_mask = 0;
	if (index->layout.structured.offset_size) {
		const uint8_t *metadata;

		chunk->size = h5_read_uint(r, index->size_width);
		h5_reader_skip(r, index->scaled_size);
		metadata = h5_read_bytes(r, index->metadata_size);
		if (metadata)
			memcpy(chunk->metadata, metadata, index->metadata_size);
	} else if (index->filtered) {
		chunk->size = h5_read_uint(r, index->size_width);
		chunk->filter_mask = h5_read_u32(r);
	}
}

int h5_chunk_element_encode(const struct h5_chunk_index *index, struct h5_writer *w,
			    const struct h5_chunk *chunk, const uint64_t *scaled)
{
	unsigned width = index->size_width;
	bool structured = index->layout.structured.offset_size, sized = structured || index->filtered;

	h5_write_offset(w, chunk->address);
	if (sized && width < 8 && chunk->size >> 8 * width)
		return h5_fail(
			-EOVERFLOW, chunk->address,
			"chunk index element: the size of a chunk, %ju bytes, does not fit in %u bytes",
			(uintmax_t)chunk->size, width);
	if (sized)
		h5_write_uint(w, chunk->size, width);
	if (sized && !structured)
		h5_write_u32(w, chunk->filter_mask);
	for (unsigned i = 0; i < index->scaled_size / 8u; i++)
		h5_write_u64(w, scaled[i]);
	h5_write_bytes(w, chunk->metadata, index->metadata_size);
	return h5_writer_check(w, "chunk index element");
}

int h5_chunk_element_put(const struct h5_chunk_index *index, uint8_t *elements, uint64_t i,
			 const struct h5_chunk *chunk)
{
	const struct h5_superblock *superblock = h5_file_superblock(index->file);
	unsigned size = h5_chunk_element_size(index);
	struct h5_writer w = h5_writer_init(elements + i * size, size, superblock->size_of_offsets,
					    superblock->size_of_lengths);

	return h5_chunk_element_encode(index, &w, chunk, NULL);
}

void h5_chunk_elements_clear(const struct h5_chunk_index *index, uint8_t *elements, uint64_t n)
{
	unsigned size = h5_chunk_element_size(index);
	unsigned size_of_offsets = h5_file_superblock(index->file)->size_of_offsets;

	memset(elements, 0, (size_t)n * size);
	for (uint64_t i = 0; i < n; i++)
		memset(elements + i * size, 0xff, size_of_offsets);
}

void h5_chunk_element_at(const struct h5_chunk_index *index, const uint8_t *elements, uint64_t i,
			 struct h5_chunk *chunk)
{
	unsigned size = h5_chunk_element_size(index);
	struct h5_reader r = h5_file_reader(index->file, elements + i * size, size, H5_UNDEF);

	decode_element(index, &r, chunk);
	if (chunk->address == H5_UNDEF)
		*chunk = h5_chunk_absent();
}

int h5_chunk_elements_walk(const struct h5_chunk_index *index, const uint8_t *elements, uint64_t n,
			   h5_chunk_visit *visit, void *arg)
{
	int rc = 0;

	for (uint64_t i = 0; i < n && !rc; i++) {
		struct h5_chunk chunk;

		h5_chunk_element_at(index, elements, i, &chunk);
		if (chunk.address != H5_UNDEF)
			rc = visit(arg, &chunk);
	}
	return rc;
}

/* The first number, from this one on, of a chunk that may be stored, as far as the cursor tells. */
static uint64_t absent_until(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
			     uint64_t number)
{
	struct h5_chunk chunk = h5_chunk_absent();

	if (!cursor->block)
		return cursor->high[0];
	while (number < cursor->high[0]) {
		h5_chunk_element_at(index, cursor->block, number - cursor->low[0], &chunk);
		if (chunk.address != H5_UNDEF)
			break;
		number++;
	}
	return number;
}

void h5_chunk_elements_gap(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
			   const uint64_t *scaled, uint64_t *next)
{
	const unsigned rank = index->layout.rank;
	uint64_t number, end;

	if (!h5_chunk_index_number_of(index, scaled, &number) || !h5_chunk_cursor_covers(cursor, &number, 1))
		return;
	/* Since it has a number, there are chunks along each dimension, and no step is 0. */
	end = absent_until(index, cursor, number);
	if (index->slowest && cursor->high[0] == UINT64_MAX &&
	    number - scaled[index->slowest] * index->step[index->slowest] >= cursor->low[0]) {
		/* No later row has a chunk either. */
		memset(next, 0xff, rank * sizeof *next);
		return;
	}
	if (index->slowest) { /* chunks with consecutive numbers are not neighbours in row-major order */
		/* It is at most `end`, so nothing overflows. */
		next[rank - 1] = scaled[rank - 1] + (end - number - 1) / index->step[rank - 1] + 1;
		return;
	}
	for (unsigned i = 0; i < rank; i++) {
		next[i] = end / index->step[i];
		end %= index->step[i];
	}
}

uint64_t h5_chunk_address_at(const struct h5_chunk_index *index, const uint8_t *addresses, uint64_t i)
{
	unsigned size = h5_file_superblock(index->file)->size_of_offsets;
	struct h5_reader r = h5_file_reader(index->file, addresses + i * size, size, H5_UNDEF);

	return h5_read_offset(&r);
}

void h5_chunk_address_put(const struct h5_chunk_index *index, uint8_t *addresses, uint64_t i,
			  uint64_t address)
{
	unsigned size = h5_file_superblock(index->file)->size_of_offsets;

	h5_uint_to(addresses + i * size, address, size);
}

static int load_page(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const uint64_t size = *(const uint64_t *)arg + 4; /* no array has pages whose size overflows */
	struct h5_reader r;
	int rc = h5_block_read(file, address, 0, size, "chunk index page", value);

	if (rc)
		return rc;
	r = h5_file_reader(file, *value, (size_t)size, address);
	h5_reader_skip(&r, (size_t)size - 4);
	rc = h5_reader_checksum(&r, "chunk index page");
	if (rc)
		free(*value);
	*cost = (size_t)size;
	return rc;
}

static const struct h5_block_type chunk_page = {{"chunk index page", free}, load_page};

int h5_chunk_page_get(const struct h5_chunk_index *index, uint64_t address, uint64_t size,
		      struct h5_lru_entry **ref, const uint8_t **elements)
{
	/* The decoded form depends only on the size: it is the bytes, verified. */
	int rc = h5_file_block(index->file, &chunk_page, address, size, &size, ref);

	if (!rc)
		*elements = h5_lru_value(*ref);
	return rc;
}

/* ---- requests ---- */

int h5_chunk_index_lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			  const uint64_t *scaled, struct h5_chunk *chunk)
{
	struct h5_chunk_cursor own;
	int rc;

	*chunk = h5_chunk_absent();
	if (index->layout.address == H5_UNDEF)
		return 0;
	if (cursor)
		return index->ops->lookup(index, cursor, scaled, chunk);
	h5_chunk_cursor_init(&own);
	rc = index->ops->lookup(index, &own, scaled, chunk);
	h5_chunk_cursor_release(index, &own);
	return rc;
}

/* If the chunk lies beyond the maximum dimensions, as it may in a damaged file, sets *next to the next one
 * inside. Then the `gap` of an index has nothing to add. */
static void pass_maximum(const struct h5_chunk_index *index, const uint64_t *scaled, uint64_t *next)
{
	const unsigned rank = index->layout.rank;
	unsigned i = 0;

	while (i < rank && (!index->along[i] || scaled[i] < index->along[i]))
		i++;
	if (i == rank)
		return;
	if (!i) {
		memset(next, 0xff, rank * sizeof *next);
		return;
	}
	memcpy(next, scaled, i * sizeof *next);
	memset(next + i, 0, (rank - i) * sizeof *next);
	next[i - 1]++;
}

int h5_chunk_index_gap(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
		       const uint64_t *scaled, bool *stored, uint64_t *next)
{
	const unsigned rank = index->layout.rank;
	struct h5_chunk chunk;
	int rc = h5_chunk_index_lookup(index, cursor, scaled, &chunk);

	*stored = !rc && chunk.address != H5_UNDEF;
	if (rc || *stored)
		return rc;
	memcpy(next, scaled, rank * sizeof *next);
	next[rank - 1]++;
	pass_maximum(index, scaled, next);
	if (index->layout.address == H5_UNDEF)
		memset(next, 0xff, rank * sizeof *next);
	else if (index->ops->gap)
		index->ops->gap(index, cursor, scaled, next);
	if (h5_chunk_compare(next, scaled, rank) <= 0) { /* a damaged index */
		memcpy(next, scaled, rank * sizeof *next);
		next[rank - 1]++;
	}
	return 0;
}

int h5_chunk_index_can_change(const struct h5_chunk_index *index)
{
	if (index->ops->keeps && index->layout.structured.offset_size)
		return h5_fail(-ENOTSUP, index->layout.address,
			       "chunk index: writing through an index of this kind is not supported");
	return 0;
}

/* Begins a unit of change that restores the index in memory if it fails. */
static int begin_change(struct h5_chunk_index *index)
{
	int rc;

	h5_unit_begin(index->file);
	rc = h5_unit_save(index->file, index, sizeof *index);
	return rc ? h5_unit_end(index->file, rc) : 0;
}

int h5_chunk_index_set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	int rc;

	if (chunk->address == H5_UNDEF) {
		struct h5_chunk stored;

		rc = h5_chunk_index_lookup(index, NULL, scaled, &stored);
		if (rc || stored.address == H5_UNDEF)
			return rc;
	}
	rc = begin_change(index);
	return rc ? rc : h5_unit_end(index->file, index->ops->set(index, scaled, chunk));
}

int h5_chunk_index_trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	int rc;

	if (index->layout.address == H5_UNDEF)
		return 0;
	rc = begin_change(index);
	return rc ? rc : h5_unit_end(index->file, index->ops->trim(index, first, visit, arg));
}

void h5_chunk_index_resize(struct h5_chunk_index *index, const uint64_t *dims)
{
	memcpy(index->dims, dims, index->layout.rank * sizeof *dims);
}

const struct h5_chunk_layout *h5_chunk_index_layout(const struct h5_chunk_index *index)
{
	return &index->layout;
}

int h5_chunk_index_walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg)
{
	return index->layout.address == H5_UNDEF ? 0 : index->ops->walk(index, visit, NULL, arg);
}

static int visit_data(void *arg, const struct h5_chunk *chunk)
{
	const struct h5_extent_visits *visits = arg;

	return visits->data(visits->arg, chunk->address, chunk->size);
}

static int visit_block(void *arg, uint64_t address, uint64_t n)
{
	const struct h5_extent_visits *visits = arg;

	return visits->block(visits->arg, address, n);
}

int h5_chunk_index_extents(const struct h5_chunk_index *index, const struct h5_extent_visits *visits)
{
	struct h5_extent_visits copy = *visits;

	if (index->layout.address == H5_UNDEF)
		return 0;
	if (index->ops->run)
		return visits->data(visits->arg, index->layout.address, index->ops->run(index));
	return index->ops->walk(index, visit_data, visit_block, &copy);
}

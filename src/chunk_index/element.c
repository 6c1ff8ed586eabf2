#include "base/checked.h"
#include "chunk_index/private.h"
#include "store/block.h"

#include <stdlib.h>
#include <string.h>

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

int h5_chunk_element_check(struct h5_chunk_index *index, unsigned client, unsigned size, const char *what)
{
	bool structured = index->layout.structured.offset_size;

	if (client > 3)
		return h5_fail(-ENOTSUP, index->layout.address, "%s: client %u is not supported", what,
			       client);
	if (client != (structured ? 2u : 0u) + (index->filtered ? 1u : 0u))
		return h5_fail(-EUCLEAN, index->layout.address, "%s: it is for %sfiltered%s chunks", what,
			       client % 2 ? "" : "un", client > 1 ? " structured" : "");
	if (structured)
		return h5_chunk_element_fit(index, size);
	if (size != h5_chunk_element_size(index))
		return h5_fail(-EUCLEAN, index->layout.address, "%s: elements of %u bytes, not %u", what,
			       size, h5_chunk_element_size(index));
	return 0;
}

void h5_chunk_element_decode(const struct h5_chunk_index *index, struct h5_reader *r, struct h5_chunk *chunk)
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
			    const struct h5_chunk *chunk)
{
	unsigned width = index->size_width;

	h5_write_offset(w, chunk->address);
	if (!index->filtered)
		return h5_writer_check(w, "chunk index element");
	if (width < 8 && chunk->size >> 8 * width)
		return h5_fail(
			-EOVERFLOW, chunk->address,
			"chunk index element: the size of a chunk, %ju bytes, does not fit in %u bytes",
			(uintmax_t)chunk->size, width);
	h5_write_uint(w, chunk->size, width);
	h5_write_u32(w, chunk->filter_mask);
	return h5_writer_check(w, "chunk index element");
}

int h5_chunk_element_put(const struct h5_chunk_index *index, uint8_t *elements, uint64_t i,
			 const struct h5_chunk *chunk)
{
	const struct h5_superblock *superblock = h5_file_superblock(index->file);
	unsigned size = h5_chunk_prefix_size(index);
	struct h5_writer w = h5_writer_init(elements + i * size, size, superblock->size_of_offsets,
					    superblock->size_of_lengths);

	return h5_chunk_element_encode(index, &w, chunk);
}

void h5_chunk_elements_clear(const struct h5_chunk_index *index, uint8_t *elements, uint64_t n)
{
	unsigned size = h5_chunk_prefix_size(index);
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

	h5_chunk_element_decode(index, &r, chunk);
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
	uint64_t number, end, steps;

	if (!h5_chunk_index_number_of(index, scaled, &number) || !h5_chunk_cursor_covers(cursor, &number, 1))
		return;
	for (unsigned i = 0; i < rank; i++)
		if (!index->step[i])
			return;
	end = absent_until(index, cursor, number);
	if (index->slowest && cursor->high[0] == UINT64_MAX &&
	    number - scaled[index->slowest] * index->step[index->slowest] >= cursor->low[0]) {
		/* No later row has a chunk either. */
		memset(next, 0xff, rank * sizeof *next);
		return;
	}
	if (index->slowest) { /* chunks with consecutive numbers are not neighbours in row-major order */
		steps = (end - number - 1) / index->step[rank - 1] + 1;
		if (!h5_add(scaled[rank - 1], steps, &next[rank - 1]))
			next[rank - 1] = UINT64_MAX;
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
	const uint64_t *size = arg;
	struct h5_reader r;
	size_t n;
	int rc;

	/* No file has more bytes than a size_t can hold. */
	if (__builtin_add_overflow(*size, 4, &n))
		return h5_fail(-EUCLEAN, address, "chunk index page: %ju bytes", (uintmax_t)*size);
	rc = h5_block_read(file, address, 0, n, "chunk index page", value);
	if (rc)
		return rc;
	r = h5_file_reader(file, *value, n, address);
	h5_reader_skip(&r, n - 4);
	rc = h5_reader_checksum(&r, "chunk index page");
	if (rc)
		free(*value);
	*cost = n;
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

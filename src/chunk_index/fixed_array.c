#include "chunk_index/fixed_array.h"

#include "base/checked.h"
#include "store/block.h"

#include <stdlib.h>

/* The fixed array, specification VII.C: chunk numbers by the maximum dimensions; header, data block, pages.
 */

static int decode_header(struct h5_reader *r, void *header)
{
	return h5_fixed_array_header_decode(r, header);
}

static int load_header(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	(void)arg;
	return h5_block_load_header(file, address, H5_FIXED_ARRAY_HEADER_MAX, decode_header,
				    sizeof(struct h5_fixed_array_header), value, cost);
}

static const struct h5_block_type fixed_array_header = {{"fixed array header", free}, load_header};

struct data_block {
	uint64_t size; /* of the bytes */
	struct h5_fixed_array_block decoded;
	uint8_t bytes[]; /* verified */
};

static int load_block(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct h5_fixed_array_header *header = arg;
	struct data_block *block;
	struct h5_reader r;
	int rc = h5_block_read(file, address, sizeof *block, header->block_size, "fixed array data block",
			       value);

	if (rc)
		return rc;
	block = *value;
	block->size = header->block_size;
	r = h5_file_reader(file, block->bytes, (size_t)block->size, address);
	rc = h5_fixed_array_block_decode(&r, header, &block->decoded);
	if (rc)
		free(block);
	*cost = sizeof *block + (size_t)header->block_size;
	return rc;
}

static const struct h5_block_type fixed_array_block = {{"fixed array data block", free}, load_block};

static int open_index(struct h5_chunk_index *index)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	uint64_t address = index->layout.address;
	struct h5_lru_entry *ref;
	int rc = h5_chunk_index_number(index, 0);

	if (!rc)
		rc = h5_file_block(index->file, &fixed_array_header, address, 0, NULL, &ref);
	if (rc)
		return rc;
	index->fixed_array = *(const struct h5_fixed_array_header *)h5_lru_value(ref);
	h5_file_put(index->file, ref);
	if (header->elements != index->count)
		return h5_fail(-EUCLEAN, address, "fixed array: %ju elements for %ju chunks",
			       (uintmax_t)header->elements, (uintmax_t)index->count);
	return h5_chunk_element_check(index, header->client, header->element_size, "fixed array");
}

int h5_farray_block_get(const struct h5_chunk_index *index, struct h5_lru_entry **ref,
			const struct h5_fixed_array_block **out)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	const struct data_block *block;
	int rc = h5_file_block(index->file, &fixed_array_block, header->data_block, header->address, header,
			       ref);

	if (rc)
		return rc;
	block = h5_lru_value(*ref);
	/* The cache has what another index read by this header, which somebody may have written since. */
	if (block->size != header->block_size || !block->decoded.bitmap != !header->pages) {
		h5_file_put(index->file, *ref);
		return h5_fail(-EUCLEAN, header->address, "fixed array header: it has changed");
	}
	*out = &block->decoded;
	return 0;
}

int h5_farray_page_get(const struct h5_chunk_index *index, const struct h5_fixed_array_block *block,
		       uint64_t page, struct h5_lru_entry **ref, const uint8_t **elements, uint64_t *size)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	uint64_t address;

	*ref = NULL;
	if (!h5_fixed_array_has_page(block, page))
		return 0;
	if (!h5_fixed_array_page(header, page, &address, size))
		return h5_fail(-EUCLEAN, header->data_block, "fixed array: page %ju", (uintmax_t)page);
	return h5_chunk_page_get(index, address, *size, ref, elements);
}

/* The elements that element *number lies with: those of its page, or all. */
static int seek(const struct h5_chunk_index *index, const uint64_t *number, struct h5_chunk_cursor *cursor)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	uint64_t page = header->pages ? *number / header->page_elements : 0, size;
	const struct h5_fixed_array_block *block;
	struct h5_lru_entry *block_ref;
	const uint8_t *elements;
	int rc;

	cursor->low[0] = 0;
	cursor->high[0] = header->elements;
	if (header->data_block == H5_UNDEF)
		return 0;
	rc = h5_farray_block_get(index, &block_ref, &block);
	if (rc)
		return rc;
	if (!header->pages) {
		cursor->ref = block_ref;
		cursor->block = block->elements;
		return 0;
	}
	rc = h5_farray_page_get(index, block, page, &cursor->ref, &elements, &size);
	if (cursor->ref)
		cursor->block = elements;
	cursor->low[0] = page * header->page_elements;
	cursor->high[0] = h5_min(header->elements - cursor->low[0], header->page_elements) + cursor->low[0];
	h5_file_put(index->file, block_ref);
	return rc;
}

static int lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor, const uint64_t *scaled,
		  struct h5_chunk *chunk)
{
	uint64_t number;
	int rc;

	if (!h5_chunk_index_number_of(index, scaled, &number) || number >= index->fixed_array.elements)
		return 0;
	rc = h5_chunk_cursor_move(index, cursor, &number, 1, seek);
	if (!rc && cursor->block)
		h5_chunk_element_at(index, cursor->block, number - cursor->low[0], chunk);
	return rc;
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	const struct h5_fixed_array_block *block;
	struct h5_lru_entry *block_ref;
	int rc;

	if (header->data_block == H5_UNDEF)
		return 0;
	rc = h5_farray_block_get(index, &block_ref, &block);
	if (rc)
		return rc;
	if (!header->pages)
		rc = h5_chunk_elements_walk(index, block->elements, header->elements, visit, arg);
	for (uint64_t page = 0; page < header->pages && !rc; page++) {
		struct h5_lru_entry *page_ref;
		const uint8_t *elements;
		uint64_t size;

		rc = h5_farray_page_get(index, block, page, &page_ref, &elements, &size);
		if (page_ref)
			rc = h5_chunk_elements_walk(index, elements, size / header->element_size, visit, arg);
		h5_file_put(index->file, page_ref);
	}
	h5_file_put(index->file, block_ref);
	return rc;
}

const struct h5_chunk_index_ops h5_chunk_index_fixed_array = {.open = open_index,
							      .lookup = lookup,
							      .gap = h5_chunk_elements_gap,
							      .walk = walk,
							      .set = h5_farray_set,
							      .trim = h5_farray_trim};

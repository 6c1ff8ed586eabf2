/* The extensible array, specification VII.D. Chunks are numbered by the maximum dimensions, the unlimited one
 * first. It consists of a header, an index block, super blocks, data blocks and pages. */
#include "chunk_index/extensible_array.h"

#include "base/checked.h"
#include "store/block.h"

#include <stdlib.h>

static int decode_header(struct h5_reader *r, void *header)
{
	return h5_extensible_array_header_decode(r, header);
}

static int load_header(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	(void)arg;
	return h5_block_load_header(file, address, H5_EXTENSIBLE_ARRAY_HEADER_MAX, decode_header,
				    sizeof(struct h5_extensible_array_header), value, cost);
}

static const struct h5_block_type array_header = {{"extensible array header", free}, load_header};

static int open_index(struct h5_chunk_index *index)
{
	const struct h5_extensible_array_header *header = &index->extensible_array;
	struct h5_lru_entry *ref;
	int rc = h5_earray_number(index);

	if (!rc)
		rc = h5_file_block(index->file, &array_header, index->layout.address, 0, NULL, &ref);
	if (rc)
		return rc;
	index->extensible_array = *(const struct h5_extensible_array_header *)h5_lru_value(ref);
	h5_file_put(index->file, ref);
	return h5_chunk_element_check(index, header->client, header->element_size, "extensible array");
}

static int seek(const struct h5_chunk_index *index, const uint64_t *number, struct h5_chunk_cursor *cursor)
{
	const struct h5_extensible_array_header *header = &index->extensible_array;
	struct h5_earray_position position;
	const uint8_t *elements;
	int rc;

	if (*number >= header->max_index || !h5_earray_locate(index, header, *number, &position)) {
		cursor->low[0] = *number;
		cursor->high[0] = UINT64_MAX;
		return 0;
	}
	rc = h5_earray_leaf_get(index, &position, &cursor->ref, &elements, &cursor->low[0], &cursor->high[0]);
	cursor->block = elements;
	/* beyond Max Index Set nothing is stored, whatever the leaf says */
	cursor->high[0] = h5_min(cursor->high[0], header->max_index);
	return rc;
}

static int lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor, const uint64_t *scaled,
		  struct h5_chunk *chunk)
{
	uint64_t number;
	int rc;

	if (!h5_chunk_index_number_of(index, scaled, &number))
		return 0;
	rc = h5_chunk_cursor_move(index, cursor, &number, 1, seek);
	if (!rc && cursor->block)
		h5_chunk_element_at(index, cursor->block, number - cursor->low[0], chunk);
	return rc;
}

struct walker {
	const struct h5_chunk_index *index;
	const struct h5_earray_block *root;
	h5_chunk_visit *visit;
	void *arg;
	uint64_t left; /* bytes of blocks that the file can still hold */
};

static int walk_data_block(struct walker *walker, const struct h5_earray_shape *shape,
			   const struct h5_earray_block *super, uint64_t i)
{
	uint64_t address = h5_earray_data_block_address(walker->index, walker->root, shape, super, i);
	const struct h5_earray_block *data;
	struct h5_lru_entry *ref;
	int rc;

	if (address == H5_UNDEF)
		return 0;
	rc = h5_chunk_index_spend(walker->index, &walker->left, shape->super.data_block_size);
	if (!rc)
		rc = h5_earray_block_get(walker->index, &h5_earray_data_block, address, shape, &ref, &data);
	if (rc)
		return rc;
	if (!shape->super.pages)
		rc = h5_chunk_elements_walk(walker->index, data->data.elements, shape->super.elements,
					    walker->visit, walker->arg);
	for (uint64_t page = 0; page < shape->super.pages && !rc; page++) {
		uint64_t n = shape->header->page_elements;
		struct h5_lru_entry *page_ref;
		const uint8_t *elements;

		rc = h5_earray_page_get(walker->index, shape, super, i, address, page, &page_ref, &elements);
		if (page_ref)
			rc = h5_chunk_index_spend(walker->index, &walker->left,
						  n * shape->header->element_size);
		if (page_ref && !rc)
			rc = h5_chunk_elements_walk(walker->index, elements, n, walker->visit, walker->arg);
		h5_file_put(walker->index->file, page_ref);
	}
	h5_file_put(walker->index->file, ref);
	return rc;
}

static int walk_super_block(struct walker *walker, const struct h5_earray_shape *shape)
{
	const struct h5_earray_block *super;
	struct h5_lru_entry *ref;
	int rc = h5_earray_super_get(walker->index, walker->root, shape, &ref, &super);

	if (rc || (!super && shape->super.number >= shape->header->index_super_blocks))
		return rc;
	for (uint64_t i = 0; i < shape->super.data_blocks && !rc; i++)
		rc = walk_data_block(walker, shape, super, i);
	h5_file_put(walker->index->file, ref);
	return rc;
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg)
{
	const struct h5_extensible_array_header *header = &index->extensible_array;
	struct walker walker = {index, NULL, visit, arg, h5_file_size(index->file)};
	struct h5_lru_entry *ref;
	int rc;

	if (header->index_block == H5_UNDEF)
		return 0;
	rc = h5_earray_root_get(index, header, &ref, &walker.root);
	if (rc)
		return rc;
	rc = h5_chunk_elements_walk(index, walker.root->index.elements, header->index_elements, visit, arg);
	for (unsigned i = 0; i < header->super_blocks && !rc; i++) {
		struct h5_earray_shape shape;

		h5_earray_shape_init(index, header, i, &shape);
		rc = walk_super_block(&walker, &shape);
	}
	h5_file_put(index->file, ref);
	return rc;
}

const struct h5_chunk_index_ops h5_chunk_index_extensible_array = {
	.name = "earray",
	.open = open_index,
	.lookup = lookup,
	.gap = h5_chunk_elements_gap,
	.walk = walk,
	.set = h5_earray_set,
	.trim = h5_earray_trim,
};

#include "chunk_index/extensible_array.h"

#include "base/checked.h"
#include "store/block.h"

#include <stdlib.h>

/* The extensible array, specification VII.D: chunk numbers by the maximum dimensions, the unlimited one moved
 * to the front; header, index block, super blocks, data blocks, pages. */

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

static int read_block(struct h5_file *file, uint64_t address, const struct h5_earray_shape *shape,
		      uint64_t size, const char *what, struct h5_earray_block **out, struct h5_reader *r,
		      size_t *cost)
{
	void *memory;
	int rc = h5_block_read(file, address, sizeof **out, size, what, &memory);

	if (rc)
		return rc;
	*out = memory;
	(*out)->header = shape->header->address;
	*r = h5_file_reader(file, (*out)->bytes, (size_t)size, address);
	*cost = sizeof **out + (size_t)size;
	return 0;
}

/* Hands a block over, or frees it where its decoder failed. */
static int decoded(struct h5_earray_block *block, int rc, void **value)
{
	if (rc)
		free(block);
	else
		*value = block;
	return rc;
}

static int load_index_block(struct h5_file *file, uint64_t address, const void *arg, void **value,
			    size_t *cost)
{
	const struct h5_earray_shape *shape = arg;
	struct h5_earray_block *block;
	struct h5_reader r;
	int rc = read_block(file, address, shape, shape->header->index_block_size,
			    "extensible array index block", &block, &r, cost);

	if (rc)
		return rc;
	rc = h5_extensible_array_index_block_decode(&r, shape->header, &block->index);
	return decoded(block, rc, value);
}

static int load_super_block(struct h5_file *file, uint64_t address, const void *arg, void **value,
			    size_t *cost)
{
	const struct h5_earray_shape *shape = arg;
	struct h5_earray_block *block;
	struct h5_reader r;
	int rc = read_block(file, address, shape, shape->super.block_size, "extensible array super block",
			    &block, &r, cost);

	if (rc)
		return rc;
	rc = h5_extensible_array_super_block_decode(&r, shape->header, &shape->super, &block->super);
	return decoded(block, rc, value);
}

static int load_data_block(struct h5_file *file, uint64_t address, const void *arg, void **value,
			   size_t *cost)
{
	const struct h5_earray_shape *shape = arg;
	struct h5_earray_block *block;
	struct h5_reader r;
	int rc = read_block(file, address, shape, shape->super.data_block_size, "extensible array data block",
			    &block, &r, cost);

	if (rc)
		return rc;
	rc = h5_extensible_array_data_block_decode(&r, shape->header, &shape->super, &block->data);
	return decoded(block, rc, value);
}

static const struct h5_block_type array_header = {{"extensible array header", free}, load_header};
const struct h5_block_type h5_earray_index_block = {{"extensible array index block", free}, load_index_block};
const struct h5_block_type h5_earray_super_block = {{"extensible array super block", free}, load_super_block};
const struct h5_block_type h5_earray_data_block = {{"extensible array data block", free}, load_data_block};

int h5_earray_number(struct h5_chunk_index *index)
{
	unsigned unlimited = 0, n = 0;

	for (unsigned i = 0; i < index->layout.rank; i++) {
		if (index->max[i] == H5_UNLIMITED) {
			unlimited = i;
			n++;
		}
	}
	if (n != 1)
		return h5_fail(-EUCLEAN, index->layout.address, "extensible array: %u unlimited dimensions",
			       n);
	return h5_chunk_index_number(index, unlimited);
}

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

void h5_earray_shape_init(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
			  unsigned number, struct h5_earray_shape *shape)
{
	shape->header = header;
	h5_extensible_array_super(header, number, h5_file_superblock(index->file)->size_of_offsets,
				  &shape->super);
}

int h5_earray_block_get(const struct h5_chunk_index *index, const struct h5_block_type *type,
			uint64_t address, const struct h5_earray_shape *shape, struct h5_lru_entry **ref,
			const struct h5_earray_block **out)
{
	uint64_t variant = shape->header->shape | (uint64_t)shape->super.number << 56;
	const struct h5_earray_block *block;
	int rc = h5_file_block(index->file, type, address, variant, shape, ref);

	if (rc)
		return rc;
	block = h5_lru_value(*ref);
	/* Decoding has compared it with the header that first led here. */
	if (block->header != shape->header->address) {
		h5_file_put(index->file, *ref);
		*ref = NULL;
		return h5_fail(-EUCLEAN, address, "%s: it belongs to another header", type->kind.name);
	}
	*out = block;
	return 0;
}

int h5_earray_root_get(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
		       struct h5_lru_entry **ref, const struct h5_earray_block **block)
{
	struct h5_earray_shape shape;

	h5_earray_shape_init(index, header, 0, &shape);
	return h5_earray_block_get(index, &h5_earray_index_block, header->index_block, &shape, ref, block);
}

int h5_earray_super_get(const struct h5_chunk_index *index, const struct h5_earray_block *root,
			const struct h5_earray_shape *shape, struct h5_lru_entry **ref,
			const struct h5_earray_block **block)
{
	const struct h5_extensible_array_header *header = shape->header;
	uint64_t address;

	*ref = NULL;
	*block = NULL;
	if (shape->super.number < header->index_super_blocks)
		return 0;
	address = h5_chunk_address_at(index, root->index.super_blocks,
				      shape->super.number - header->index_super_blocks);
	if (address == H5_UNDEF)
		return 0;
	return h5_earray_block_get(index, &h5_earray_super_block, address, shape, ref, block);
}

uint64_t h5_earray_data_block_address(const struct h5_chunk_index *index, const struct h5_earray_block *root,
				      const struct h5_earray_shape *shape,
				      const struct h5_earray_block *super, uint64_t i)
{
	if (super)
		return h5_chunk_address_at(index, super->super.data_blocks, i);
	if (shape->super.number < shape->header->index_super_blocks)
		return h5_chunk_address_at(index, root->index.data_blocks, shape->super.first_data_block + i);
	return H5_UNDEF;
}

/* A page is less than a data block, which lies in the file, or is refused when it is read. */
uint64_t h5_earray_page_address(const struct h5_earray_shape *shape, uint64_t data_block, uint64_t page)
{
	return data_block + shape->super.data_block_size + page * shape->super.page_size;
}

/* Page `page` of data block i, whose address that is. *ref is NULL where it isn't initialised. */
static int page_get(const struct h5_chunk_index *index, const struct h5_earray_shape *shape,
		    const struct h5_earray_block *super, uint64_t i, uint64_t address, uint64_t page,
		    struct h5_lru_entry **ref, const uint8_t **elements)
{
	*ref = NULL;
	*elements = NULL;
	if (!h5_extensible_array_has_page(&shape->super, &super->super, i, page))
		return 0;
	return h5_chunk_page_get(index, h5_earray_page_address(shape, address, page),
				 shape->header->page_elements * shape->header->element_size, ref, elements);
}

bool h5_earray_locate(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
		      uint64_t number, struct h5_earray_place *place)
{
	struct h5_extensible_array_super *super = &place->shape.super;

	*place = (struct h5_earray_place){.in_index = number < header->index_elements, .number = number};
	if (number >> header->max_bits)
		return false;
	if (place->in_index) {
		h5_earray_shape_init(index, header, 0, &place->shape);
		place->at = number;
		place->n = header->index_elements;
		return true;
	}
	number -= header->index_elements;
	h5_earray_shape_init(index, header, h5_extensible_array_super_of(header, number), &place->shape);
	number -= super->first_element;
	place->in_super = number;
	place->data_block = number / super->elements;
	place->at = number % super->elements;
	place->n = super->elements;
	if (super->pages) {
		place->page = place->at / header->page_elements;
		place->at %= header->page_elements;
		place->n = header->page_elements;
	}
	return true;
}

static void span(uint64_t from, uint64_t n, uint64_t *first, uint64_t *end)
{
	*first = from;
	*end = h5_add(from, n, end) ? *end : UINT64_MAX;
}

/* The same for a leaf below the index block. */
static int leaf_below(const struct h5_chunk_index *index, const struct h5_earray_block *root,
		      const struct h5_earray_place *place, struct h5_lru_entry **ref,
		      const uint8_t **elements, uint64_t *first, uint64_t *end)
{
	const struct h5_earray_shape *shape = &place->shape;
	const struct h5_earray_block *super, *data;
	struct h5_lru_entry *super_ref, *data_ref;
	uint64_t address;
	int rc = h5_earray_super_get(index, root, shape, &super_ref, &super);

	if (rc)
		return rc;
	address = h5_earray_data_block_address(index, root, shape, super, place->data_block);
	if (address == H5_UNDEF) {
		if (!super && shape->super.number >= shape->header->index_super_blocks)
			span(place->number - place->in_super,
			     shape->super.data_blocks * shape->super.elements, first, end);
		else
			span(place->number - place->in_super % shape->super.elements, shape->super.elements,
			     first, end);
		goto out;
	}
	rc = h5_earray_block_get(index, &h5_earray_data_block, address, shape, &data_ref, &data);
	if (rc)
		goto out;
	if (!shape->super.pages) {
		*ref = data_ref;
		*elements = data->data.elements;
		goto out;
	}
	rc = page_get(index, shape, super, place->data_block, address, place->page, ref, elements);
	h5_file_put(index->file, data_ref);
out:
	h5_file_put(index->file, super_ref);
	return rc;
}

int h5_earray_leaf_get(const struct h5_chunk_index *index, const struct h5_earray_place *place,
		       struct h5_lru_entry **ref, const uint8_t **elements, uint64_t *first, uint64_t *end)
{
	const struct h5_earray_block *root;
	struct h5_lru_entry *root_ref;
	int rc;

	*ref = NULL;
	*elements = NULL;
	span(place->number - place->at, place->n, first, end);
	if (place->shape.header->index_block == H5_UNDEF) {
		span(0, UINT64_C(1) << place->shape.header->max_bits, first, end);
		return 0;
	}
	rc = h5_earray_root_get(index, place->shape.header, &root_ref, &root);
	if (rc)
		return rc;
	if (place->in_index) {
		*ref = root_ref;
		*elements = root->index.elements;
		return 0;
	}
	rc = leaf_below(index, root, place, ref, elements, first, end);
	h5_file_put(index->file, root_ref);
	return rc;
}

static int seek(const struct h5_chunk_index *index, const uint64_t *number, struct h5_chunk_cursor *cursor)
{
	const struct h5_extensible_array_header *header = &index->extensible_array;
	struct h5_earray_place place;
	const uint8_t *elements;
	int rc;

	if (*number >= header->max_index || !h5_earray_locate(index, header, *number, &place)) {
		cursor->low[0] = *number;
		cursor->high[0] = UINT64_MAX;
		return 0;
	}
	rc = h5_earray_leaf_get(index, &place, &cursor->ref, &elements, &cursor->low[0], &cursor->high[0]);
	cursor->block = elements;
	/* what lies beyond Max Index Set is not stored, whatever the leaf says */
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

struct walk {
	const struct h5_chunk_index *index;
	const struct h5_earray_block *root;
	h5_chunk_visit *visit;
	void *arg;
	uint64_t left; /* bytes of blocks that the file can still hold */
};

static int walk_data_block(struct walk *w, const struct h5_earray_shape *shape,
			   const struct h5_earray_block *super, uint64_t i)
{
	uint64_t address = h5_earray_data_block_address(w->index, w->root, shape, super, i);
	const struct h5_earray_block *data;
	struct h5_lru_entry *ref;
	int rc;

	if (address == H5_UNDEF)
		return 0;
	rc = h5_chunk_index_spend(w->index, &w->left, shape->super.data_block_size);
	if (!rc)
		rc = h5_earray_block_get(w->index, &h5_earray_data_block, address, shape, &ref, &data);
	if (rc)
		return rc;
	if (!shape->super.pages)
		rc = h5_chunk_elements_walk(w->index, data->data.elements, shape->super.elements, w->visit,
					    w->arg);
	for (uint64_t page = 0; page < shape->super.pages && !rc; page++) {
		uint64_t n = shape->header->page_elements;
		struct h5_lru_entry *page_ref;
		const uint8_t *elements;

		rc = page_get(w->index, shape, super, i, address, page, &page_ref, &elements);
		if (page_ref)
			rc = h5_chunk_index_spend(w->index, &w->left, n * shape->header->element_size);
		if (page_ref && !rc)
			rc = h5_chunk_elements_walk(w->index, elements, n, w->visit, w->arg);
		h5_file_put(w->index->file, page_ref);
	}
	h5_file_put(w->index->file, ref);
	return rc;
}

static int walk_super_block(struct walk *w, const struct h5_earray_shape *shape)
{
	const struct h5_earray_block *super;
	struct h5_lru_entry *ref;
	int rc = h5_earray_super_get(w->index, w->root, shape, &ref, &super);

	if (rc || (!super && shape->super.number >= shape->header->index_super_blocks))
		return rc;
	for (uint64_t i = 0; i < shape->super.data_blocks && !rc; i++)
		rc = walk_data_block(w, shape, super, i);
	h5_file_put(w->index->file, ref);
	return rc;
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg)
{
	const struct h5_extensible_array_header *header = &index->extensible_array;
	struct walk w = {index, NULL, visit, arg, h5_file_size(index->file)};
	struct h5_lru_entry *ref;
	int rc;

	if (header->index_block == H5_UNDEF)
		return 0;
	rc = h5_earray_root_get(index, header, &ref, &w.root);
	if (rc)
		return rc;
	rc = h5_chunk_elements_walk(index, w.root->index.elements, header->index_elements, visit, arg);
	for (unsigned i = 0; i < header->super_blocks && !rc; i++) {
		struct h5_earray_shape shape;

		h5_earray_shape_init(index, header, i, &shape);
		rc = walk_super_block(&w, &shape);
	}
	h5_file_put(index->file, ref);
	return rc;
}

const struct h5_chunk_index_ops h5_chunk_index_extensible_array = {.open = open_index,
								   .lookup = lookup,
								   .gap = h5_chunk_elements_gap,
								   .walk = walk,
								   .set = h5_earray_set,
								   .trim = h5_earray_trim};

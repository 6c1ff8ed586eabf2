#include "base/checked.h"
#include "chunk_index/private.h"
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

/* What the form of a block depends on, beside the header. */
struct shape {
	const struct h5_extensible_array_header *header;
	unsigned number; /* of the super block; 0 for the index block */
	struct h5_extensible_array_super super;
};

struct block {
	uint64_t header; /* address */
	union {
		struct h5_extensible_array_index_block index;
		struct h5_extensible_array_super_block super;
		struct h5_extensible_array_data_block data;
	};
	uint8_t bytes[]; /* verified, and what the decoded block points into */
};

static int read_block(struct h5_file *file, uint64_t address, const struct shape *shape, uint64_t size,
		      const char *what, struct block **out, struct h5_reader *r, size_t *cost)
{
	void *memory;
	int rc = h5_block_read(file, address, sizeof **out, (size_t)size, what, &memory);

	if (rc)
		return rc;
	*out = memory;
	(*out)->header = shape->header->address;
	*r = h5_file_reader(file, (*out)->bytes, (size_t)size, address);
	*cost = sizeof **out + (size_t)size;
	return 0;
}

/* Hands a block over, or frees it where its decoder failed. */
static int decoded(struct block *block, int rc, void **value)
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
	const struct shape *shape = arg;
	struct block *block;
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
	const struct shape *shape = arg;
	struct block *block;
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
	const struct shape *shape = arg;
	struct block *block;
	struct h5_reader r;
	int rc = read_block(file, address, shape, shape->super.data_block_size, "extensible array data block",
			    &block, &r, cost);

	if (rc)
		return rc;
	rc = h5_extensible_array_data_block_decode(&r, shape->header, &shape->super, &block->data);
	return decoded(block, rc, value);
}

static const struct h5_block_type array_header = {{"extensible array header", free}, load_header};
static const struct h5_block_type index_block = {{"extensible array index block", free}, load_index_block};
static const struct h5_block_type super_block = {{"extensible array super block", free}, load_super_block};
static const struct h5_block_type data_block = {{"extensible array data block", free}, load_data_block};

static int open_index(struct h5_chunk_index *index)
{
	const struct h5_extensible_array_header *header = &index->extensible_array;
	uint64_t address = index->layout.address;
	unsigned unlimited = 0, n = 0;
	struct h5_lru_entry *ref;
	int rc;

	for (unsigned i = 0; i < index->layout.rank; i++) {
		if (index->max[i] == H5_UNLIMITED) {
			unlimited = i;
			n++;
		}
	}
	if (n != 1)
		return h5_fail(-EUCLEAN, address, "extensible array: %u unlimited dimensions", n);
	rc = h5_chunk_index_number(index, unlimited);
	if (!rc)
		rc = h5_file_block(index->file, &array_header, address, 0, NULL, &ref);
	if (rc)
		return rc;
	index->extensible_array = *(const struct h5_extensible_array_header *)h5_lru_value(ref);
	h5_file_put(index->file, ref);
	return h5_chunk_element_check(index, header->client, header->element_size, "extensible array");
}

static void shape_init(const struct h5_chunk_index *index, unsigned number, struct shape *shape)
{
	shape->header = &index->extensible_array;
	shape->number = number;
	h5_extensible_array_super(shape->header, number, h5_file_superblock(index->file)->size_of_offsets,
				  &shape->super);
}

static int block_get(const struct h5_chunk_index *index, const struct h5_block_type *type, uint64_t address,
		     const struct shape *shape, struct h5_lru_entry **ref, const struct block **out)
{
	uint64_t variant = shape->header->shape | (uint64_t)shape->number << 56;
	const struct block *block;
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

static int index_block_get(const struct h5_chunk_index *index, struct h5_lru_entry **ref,
			   const struct block **block)
{
	struct shape shape;

	shape_init(index, 0, &shape);
	return block_get(index, &index_block, shape.header->index_block, &shape, ref, block);
}

/* The super block; *ref and *block are NULL where it is not stored, or in the index block. */
static int super_block_get(const struct h5_chunk_index *index, const struct block *root,
			   const struct shape *shape, struct h5_lru_entry **ref, const struct block **block)
{
	const struct h5_extensible_array_header *header = shape->header;
	uint64_t address;

	*ref = NULL;
	*block = NULL;
	if (shape->number < header->index_super_blocks)
		return 0;
	address = h5_chunk_address_at(index, root->index.super_blocks,
				      shape->number - header->index_super_blocks);
	if (address == H5_UNDEF)
		return 0;
	return block_get(index, &super_block, address, shape, ref, block);
}

/* Address of data block i of a super block, which is NULL as super_block_get() leaves it. */
static uint64_t data_block_address(const struct h5_chunk_index *index, const struct block *root,
				   const struct shape *shape, const struct block *super, uint64_t i)
{
	if (super)
		return h5_chunk_address_at(index, super->super.data_blocks, i);
	if (shape->number < shape->header->index_super_blocks)
		return h5_chunk_address_at(index, root->index.data_blocks, shape->super.first_data_block + i);
	return H5_UNDEF;
}

/* Page `page` of data block i. *ref is NULL where it isn't initialised. */
static int page_get(const struct h5_chunk_index *index, const struct shape *shape, const struct block *super,
		    uint64_t i, uint64_t data_block_at, uint64_t page, struct h5_lru_entry **ref,
		    const uint8_t **elements)
{
	uint64_t size = shape->header->page_elements * shape->header->element_size, address;

	*ref = NULL;
	if (!h5_extensible_array_has_page(&shape->super, &super->super, i, page))
		return 0;
	/* A page is less than a data block, whose size doesn't overflow. */
	if (!h5_mul(page, size + 4, &address) || !h5_add(address, shape->super.data_block_size, &address) ||
	    !h5_add(address, data_block_at, &address))
		return h5_fail(-EUCLEAN, data_block_at, "extensible array: page %ju", (uintmax_t)page);
	return h5_chunk_page_get(index, address, size, ref, elements);
}

/* Element `element` of data block i. */
static int lookup_in_data_block(const struct h5_chunk_index *index, const struct block *root,
				const struct shape *shape, uint64_t i, uint64_t element,
				struct h5_chunk *chunk)
{
	struct h5_lru_entry *super_ref, *data_ref = NULL, *page_ref = NULL;
	const struct block *super, *data;
	const uint8_t *elements;
	uint64_t address;
	int rc = super_block_get(index, root, shape, &super_ref, &super);

	if (rc)
		return rc;
	address = data_block_address(index, root, shape, super, i);
	if (address == H5_UNDEF)
		goto out;
	rc = block_get(index, &data_block, address, shape, &data_ref, &data);
	if (rc)
		goto out;
	if (!shape->super.pages) {
		h5_chunk_element_at(index, data->data.elements, element, chunk);
		goto out;
	}
	rc = page_get(index, shape, super, i, address, element / shape->header->page_elements, &page_ref,
		      &elements);
	if (page_ref)
		h5_chunk_element_at(index, elements, element % shape->header->page_elements, chunk);
out:
	h5_file_put(index->file, page_ref);
	h5_file_put(index->file, data_ref);
	h5_file_put(index->file, super_ref);
	return rc;
}

static int lookup(const struct h5_chunk_index *index, const uint64_t *scaled, struct h5_chunk *chunk)
{
	const struct h5_extensible_array_header *header = &index->extensible_array;
	const struct block *root;
	struct h5_lru_entry *ref;
	struct shape shape;
	uint64_t number;
	int rc;

	if (header->index_block == H5_UNDEF || !h5_chunk_index_number_of(index, scaled, &number) ||
	    number >= header->max_index || number >> header->max_bits)
		return 0;
	rc = index_block_get(index, &ref, &root);
	if (rc)
		return rc;
	if (number < header->index_elements) {
		h5_chunk_element_at(index, root->index.elements, number, chunk);
	} else {
		number -= header->index_elements;
		shape_init(index, h5_extensible_array_super_of(header, number), &shape);
		number -= shape.super.first_element;
		rc = lookup_in_data_block(index, root, &shape, number / shape.super.elements,
					  number % shape.super.elements, chunk);
	}
	h5_file_put(index->file, ref);
	return rc;
}

struct walk {
	const struct h5_chunk_index *index;
	const struct block *root;
	h5_chunk_visit *visit;
	void *arg;
	uint64_t left; /* bytes of blocks that the file can still hold */
};

static int walk_data_block(struct walk *w, const struct shape *shape, const struct block *super, uint64_t i)
{
	uint64_t address = data_block_address(w->index, w->root, shape, super, i);
	const struct block *data;
	struct h5_lru_entry *ref;
	int rc;

	if (address == H5_UNDEF)
		return 0;
	rc = h5_chunk_index_spend(w->index, &w->left, shape->super.data_block_size);
	if (!rc)
		rc = block_get(w->index, &data_block, address, shape, &ref, &data);
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

static int walk_super_block(struct walk *w, const struct shape *shape)
{
	const struct block *super;
	struct h5_lru_entry *ref;
	int rc = super_block_get(w->index, w->root, shape, &ref, &super);

	if (rc || (!super && shape->number >= shape->header->index_super_blocks))
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
	rc = index_block_get(index, &ref, &w.root);
	if (rc)
		return rc;
	rc = h5_chunk_elements_walk(index, w.root->index.elements, header->index_elements, visit, arg);
	for (unsigned i = 0; i < header->super_blocks && !rc; i++) {
		struct shape shape;

		shape_init(index, i, &shape);
		rc = walk_super_block(&w, &shape);
	}
	h5_file_put(index->file, ref);
	return rc;
}

const struct h5_chunk_index_ops h5_chunk_index_extensible_array = {
	.open = open_index, .lookup = lookup, .walk = walk};

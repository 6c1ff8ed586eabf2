/* The extensible array, specification VII.D. Chunks are numbered by the maximum dimensions, the unlimited one
 * first. The array consists of a header, an index block, super blocks, data blocks and pages. */
#include "chunk_index/extensible_array.h"

#include "base/checked.h"
#include "base/lookup3.h"
#include "change/transaction.h"
#include "store/block.h"
#include "store/want.h"

#include <stdlib.h>

/* ---- blocks ---- */

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

/* Returns a block in *value, or frees it if its decoder has failed. */
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
	/* The block may be in the cache because another array loaded it. So the decoder's check of its header
	 * may have been for that array. */
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

/* This cannot overflow: the data block has been read, or will be refused. */
uint64_t h5_earray_page_address(const struct h5_earray_shape *shape, uint64_t data_block, uint64_t page)
{
	return data_block + shape->super.data_block_size + page * shape->super.page_size;
}

/* Page `page` of data block i of the super block; the data block lies at the address. *ref and *elements are
 * NULL if the page is not initialised. */
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
		      uint64_t number, struct h5_earray_position *position)
{
	struct h5_extensible_array_super *super = &position->shape.super;

	*position =
		(struct h5_earray_position){.in_index = number < header->index_elements, .number = number};
	if (number >> header->max_bits)
		return false;
	if (position->in_index) {
		h5_earray_shape_init(index, header, 0, &position->shape);
		position->at = number;
		position->n = header->index_elements;
		return true;
	}
	number -= header->index_elements;
	h5_earray_shape_init(index, header, h5_extensible_array_super_of(header, number), &position->shape);
	number -= super->first_element;
	position->in_super = number;
	position->data_block = number / super->elements;
	position->at = number % super->elements;
	position->n = super->elements;
	if (super->pages) {
		position->page = position->at / header->page_elements;
		position->at %= header->page_elements;
		position->n = header->page_elements;
	}
	return true;
}

static void span(uint64_t from, uint64_t n, uint64_t *first, uint64_t *end)
{
	*first = from;
	*end = h5_add(from, n, end) ? *end : UINT64_MAX;
}

/* h5_earray_leaf_get() for a leaf below the index block. */
static int leaf_below(const struct h5_chunk_index *index, const struct h5_earray_block *root,
		      const struct h5_earray_position *position, struct h5_lru_entry **ref,
		      const uint8_t **elements, uint64_t *first, uint64_t *end)
{
	const struct h5_earray_shape *shape = &position->shape;
	const struct h5_earray_block *super, *data;
	struct h5_lru_entry *super_ref, *data_ref;
	uint64_t address;
	int rc = h5_earray_super_get(index, root, shape, &super_ref, &super);

	if (rc)
		return rc;
	address = h5_earray_data_block_address(index, root, shape, super, position->data_block);
	if (address == H5_UNDEF) {
		if (!super && shape->super.number >= shape->header->index_super_blocks)
			span(position->number - position->in_super,
			     shape->super.data_blocks * shape->super.elements, first, end);
		else
			span(position->number - position->in_super % shape->super.elements,
			     shape->super.elements, first, end);
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
	rc = page_get(index, shape, super, position->data_block, address, position->page, ref, elements);
	h5_file_put(index->file, data_ref);
out:
	h5_file_put(index->file, super_ref);
	return rc;
}

int h5_earray_leaf_get(const struct h5_chunk_index *index, const struct h5_earray_position *position,
		       struct h5_lru_entry **ref, const uint8_t **elements, uint64_t *first, uint64_t *end)
{
	const struct h5_earray_block *root;
	struct h5_lru_entry *root_ref;
	int rc;

	*ref = NULL;
	*elements = NULL;
	span(position->number - position->at, position->n, first, end);
	if (position->shape.header->index_block == H5_UNDEF) {
		span(0, UINT64_C(1) << position->shape.header->max_bits, first, end);
		return 0;
	}
	rc = h5_earray_root_get(index, position->shape.header, &root_ref, &root);
	if (rc)
		return rc;
	if (position->in_index) {
		*ref = root_ref;
		*elements = root->index.elements;
		return 0;
	}
	rc = leaf_below(index, root, position, ref, elements, first, end);
	h5_file_put(index->file, root_ref);
	return rc;
}

/* ---- blocks that are changed ---- */

struct h5_writer h5_earray_writer(const struct h5_chunk_index *index, uint8_t *bytes, size_t n)
{
	const struct h5_superblock *superblock = h5_file_superblock(index->file);

	return h5_writer_init(bytes, n, superblock->size_of_offsets, superblock->size_of_lengths);
}

size_t h5_earray_header_size(const struct h5_chunk_index *index)
{
	const struct h5_superblock *superblock = h5_file_superblock(index->file);

	return h5_extensible_array_header_size(superblock->size_of_offsets, superblock->size_of_lengths);
}

int h5_earray_write_header(const struct h5_chunk_index *index,
			   const struct h5_extensible_array_header *header)
{
	uint8_t bytes[H5_EXTENSIBLE_ARRAY_HEADER_MAX];
	struct h5_writer w = h5_earray_writer(index, bytes, h5_earray_header_size(index));
	int rc;

	h5_extensible_array_header_encode(&w, header);
	rc = h5_writer_check(&w, "extensible array header");
	return rc ? rc : h5_tx_patch(index->file, header->address, bytes, h5_writer_at(&w), H5_STAGE_INDEX);
}

void h5_earray_seal(uint8_t *bytes, size_t n)
{
	h5_uint_to(bytes + n - 4, h5_lookup3(bytes, n - 4, 0), 4);
}

uint8_t *h5_earray_part(struct h5_earray_block *draft, const uint8_t *decoded)
{
	return draft->bytes + (decoded - draft->bytes);
}

int h5_earray_draft(const struct h5_chunk_index *index, const struct h5_block_type *type, uint64_t address,
		    const struct h5_earray_shape *shape, struct h5_earray_block **draft)
{
	void *value;
	size_t cost;
	int rc = type->load(index->file, address, shape, &value, &cost);

	if (!rc)
		*draft = value;
	return rc;
}

/* ---- the index ---- */

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

int h5_earray_open(struct h5_chunk_index *index)
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

/* So many data blocks from that of the position on, and the next super block, will be read. */
static void want_blocks(const struct h5_chunk_index *index, const struct h5_earray_block *root,
			const struct h5_earray_position *position, unsigned count)
{
	const struct h5_extensible_array_header *header = position->shape.header;
	const struct h5_extensible_array_super *super = &position->shape.super;
	uint64_t size = super->data_block_size + (super->pages ? super->page_size : 0);
	struct h5_want want = {.file = index->file};
	const struct h5_earray_block *block;
	struct h5_lru_entry *ref;

	if (h5_earray_super_get(index, root, &position->shape, &ref, &block))
		return;
	for (uint64_t i = position->data_block; i < super->data_blocks && want.count < count; i++)
		h5_want_add(&want, h5_earray_data_block_address(index, root, &position->shape, block, i),
			    size);
	if (super->number + 1 >= header->index_super_blocks && super->number + 1 < header->super_blocks)
		h5_want_add(&want,
			    h5_chunk_address_at(index, root->index.super_blocks,
						super->number + 1 - header->index_super_blocks),
			    H5_BLOCK_HEADER_MAX);
	h5_file_put(index->file, ref);
	h5_want_send(&want, H5_WANTED_AMONG);
}

/* The same, if the file is far away. */
static void want_next(const struct h5_chunk_index *index, const struct h5_earray_position *position,
		      unsigned count)
{
	const struct h5_earray_block *root;
	struct h5_lru_entry *ref;

	if (position->in_index || position->shape.header->index_block == H5_UNDEF ||
	    !h5_file_is_far(index->file) || h5_earray_root_get(index, position->shape.header, &ref, &root))
		return;
	want_blocks(index, root, position, count);
	h5_file_put(index->file, ref);
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
	if (h5_chunk_cursor_reach(cursor))
		want_next(index, &position, h5_chunk_cursor_reach(cursor));
	rc = h5_earray_leaf_get(index, &position, &cursor->ref, &elements, &cursor->low[0], &cursor->high[0]);
	cursor->block = elements;
	/* beyond Max Index Set nothing is stored, whatever the leaf says */
	cursor->high[0] = h5_min(cursor->high[0], header->max_index);
	return rc;
}

int h5_earray_lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
		     const uint64_t *scaled, struct h5_chunk *chunk)
{
	uint64_t number;
	int rc = 0;

	if (!h5_chunk_index_number_of(index, scaled, &number))
		return 0;
	if (!h5_chunk_cursor_enter(index, cursor, &number, 1))
		rc = h5_chunk_cursor_hold(index, cursor, seek(index, &number, cursor));
	if (!rc && cursor->block)
		h5_chunk_element_at(index, cursor->block, number - cursor->low[0], chunk);
	return rc;
}

struct walker {
	const struct h5_chunk_index *index;
	const struct h5_earray_block *root;
	h5_chunk_visit *visit;
	h5_extent_visit *block; /* NULL: not called */
	void *arg;
	uint64_t left; /* bytes of blocks that the file can still hold */
};

static int visit_block(const struct walker *walker, uint64_t address, uint64_t n)
{
	return walker->block ? walker->block(walker->arg, address, n) : 0;
}

/* Page `page` of data block i. Pages that are not initialised have space, too. */
static int walk_page(struct walker *walker, const struct h5_earray_shape *shape,
		     const struct h5_earray_block *super, uint64_t i, uint64_t data_block, uint64_t page)
{
	uint64_t n = shape->header->page_elements;
	struct h5_lru_entry *ref;
	const uint8_t *elements;
	int rc = visit_block(walker, h5_earray_page_address(shape, data_block, page), shape->super.page_size);

	if (!rc)
		rc = page_get(walker->index, shape, super, i, data_block, page, &ref, &elements);
	if (rc || !ref)
		return rc;
	rc = h5_chunk_index_spend(walker->index, &walker->left, n * shape->header->element_size);
	if (!rc)
		rc = h5_chunk_elements_walk(walker->index, elements, n, walker->visit, walker->arg);
	h5_file_put(walker->index->file, ref);
	return rc;
}

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
	rc = visit_block(walker, address, shape->super.data_block_size);
	if (!rc && !shape->super.pages)
		rc = h5_chunk_elements_walk(walker->index, data->data.elements, shape->super.elements,
					    walker->visit, walker->arg);
	for (uint64_t page = 0; page < shape->super.pages && !rc; page++)
		rc = walk_page(walker, shape, super, i, address, page);
	h5_file_put(walker->index->file, ref);
	return rc;
}

/* `address`: of the super block; H5_UNDEF: it is in the index block. */
static int walk_super_block(struct walker *walker, const struct h5_earray_shape *shape, uint64_t address)
{
	const struct h5_earray_block *super;
	struct h5_lru_entry *ref;
	int rc = h5_earray_super_get(walker->index, walker->root, shape, &ref, &super);

	if (!rc && super)
		rc = visit_block(walker, address, shape->super.block_size);
	for (uint64_t i = 0; i < shape->super.data_blocks && !rc; i++)
		rc = walk_data_block(walker, shape, super, i);
	h5_file_put(walker->index->file, ref);
	return rc;
}

static int walk_index_block(struct walker *walker)
{
	const struct h5_extensible_array_header *header = &walker->index->extensible_array;
	int rc = visit_block(walker, header->index_block, header->index_block_size);

	if (!rc)
		rc = h5_chunk_elements_walk(walker->index, walker->root->index.elements,
					    header->index_elements, walker->visit, walker->arg);
	for (unsigned i = 0; i < header->super_blocks && !rc; i++) {
		uint64_t address = H5_UNDEF;
		struct h5_earray_shape shape;

		if (i >= header->index_super_blocks) {
			address = h5_chunk_address_at(walker->index, walker->root->index.super_blocks,
						      i - header->index_super_blocks);
			if (address == H5_UNDEF)
				continue; /* as most are: there is one for each power of two */
		}
		h5_earray_shape_init(walker->index, header, i, &shape);
		rc = walk_super_block(walker, &shape, address);
	}
	return rc;
}

int h5_earray_walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, h5_extent_visit *block,
		   void *arg)
{
	const struct h5_extensible_array_header *header = &index->extensible_array;
	struct walker walker = {index, NULL, visit, block, arg, h5_file_size(index->file)};
	struct h5_lru_entry *ref;
	int rc = visit_block(&walker, header->address, h5_earray_header_size(index));

	if (rc || header->index_block == H5_UNDEF)
		return rc;
	rc = h5_earray_root_get(index, header, &ref, &walker.root);
	if (rc)
		return rc;
	rc = walk_index_block(&walker);
	h5_file_put(index->file, ref);
	return rc;
}

#include "base/checked.h"
#include "base/lookup3.h"
#include "change/transaction.h"
#include "chunk_index/extensible_array.h"
#include "store/block.h"
#include "store/file.h"

#include <stdlib.h>

/* Copies an extensible array to new space: one paged data block, if one of its pages is new or cannot change
 * in place; or the whole array, if its header cannot stay, since each block has the address of the header. */

static void adopt(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
		  struct h5_earray_block *draft, size_t size)
{
	h5_extensible_array_block_adopt(draft->bytes, header,
					h5_file_superblock(index->file)->size_of_offsets);
	h5_earray_seal(draft->bytes, size);
}

int h5_earray_copy_paged(const struct h5_chunk_index *index, const struct h5_earray_shape *shape,
			 const struct h5_extensible_array_header *header, const struct h5_earray_block *super,
			 uint64_t i, uint64_t from, uint64_t to)
{
	const struct h5_extensible_array_super *s = &shape->super;
	struct h5_earray_block *draft;
	int rc = h5_earray_draft(index, &h5_earray_data_block, from, shape, &draft);

	if (rc)
		return rc;
	adopt(index, header, draft, (size_t)s->data_block_size);

	rc = h5_tx_put(index->file, to, draft->bytes, (size_t)s->data_block_size);
	free(draft);
	for (uint64_t p = 0; p < s->pages && !rc; p++) {
		uint64_t at = h5_earray_page_address(shape, from, p);
		void *memory;

		if (!h5_extensible_array_has_page(s, &super->super, i, p))
			continue;
		rc = h5_block_read(index->file, at, 0, s->page_size, "extensible array page", &memory);
		if (rc)
			break;
		rc = h5_tx_put(index->file, h5_earray_page_address(shape, to, p), memory,
			       (size_t)s->page_size);
		h5_tx_forget(index->file, at);
		free(memory);
	}
	return rc;
}

/* ---- the whole ---- */

struct copy {
	struct h5_chunk_index *index;
	struct h5_extensible_array_header header; /* of the copy */
	uint64_t left;				  /* bytes of blocks that the file can still hold */
};

/* Copies data block i to new space. */
static int copy_data_block(struct copy *copy, const struct h5_earray_shape *shape,
			   const struct h5_earray_block *super, uint64_t i, uint64_t *address)
{
	struct h5_file *file = copy->index->file;
	size_t size = (size_t)shape->super.data_block_size;
	uint64_t from = *address;
	struct h5_earray_block *draft;
	int rc = h5_chunk_index_spend(copy->index, &copy->left, shape->super.data_block_space);

	if (rc)
		return rc;
	if (shape->super.pages) {
		rc = h5_tx_allocate(file, H5_ALLOCATE_METADATA, shape->super.data_block_space, address);
		return rc ? rc
			  : h5_earray_copy_paged(copy->index, shape, &copy->header, super, i, from, *address);
	}
	rc = h5_earray_draft(copy->index, &h5_earray_data_block, from, shape, &draft);
	if (rc)
		return rc;
	adopt(copy->index, &copy->header, draft, size);
	*address = H5_UNDEF;
	rc = h5_tx_shadow(file, address, draft->bytes, size);
	free(draft);
	return rc;
}

/* Copies the data blocks of a super block to new space, and updates their addresses. */
static int copy_data_blocks(struct copy *copy, const struct h5_earray_shape *shape,
			    const struct h5_earray_block *super, uint8_t *addresses)
{
	int rc = 0;

	for (uint64_t i = 0; i < shape->super.data_blocks && !rc; i++) {
		uint64_t address = h5_chunk_address_at(copy->index, addresses, i);

		if (address == H5_UNDEF)
			continue;
		rc = copy_data_block(copy, shape, super, i, &address);
		h5_chunk_address_put(copy->index, addresses, i, address);
	}
	return rc;
}

static int copy_super_block(struct copy *copy, const struct h5_earray_shape *shape, uint64_t *address)
{
	size_t size = (size_t)shape->super.block_size;
	struct h5_earray_block *draft;
	int rc = h5_chunk_index_spend(copy->index, &copy->left, size);

	if (!rc)
		rc = h5_earray_draft(copy->index, &h5_earray_super_block, *address, shape, &draft);
	if (rc)
		return rc;
	rc = copy_data_blocks(copy, shape, draft, h5_earray_part(draft, draft->super.data_blocks));
	adopt(copy->index, &copy->header, draft, size);
	*address = H5_UNDEF;
	if (!rc)
		rc = h5_tx_shadow(copy->index->file, address, draft->bytes, size);
	free(draft);
	return rc;
}

static int copy_below(struct copy *copy, struct h5_earray_block *root)
{
	const struct h5_extensible_array_header *from = &copy->index->extensible_array;
	unsigned size_of_offsets = h5_file_superblock(copy->index->file)->size_of_offsets;
	uint8_t *super_blocks = h5_earray_part(root, root->index.super_blocks);
	uint8_t *data_blocks = h5_earray_part(root, root->index.data_blocks);
	int rc = 0;

	for (unsigned number = 0; number < from->super_blocks && !rc; number++) {
		struct h5_earray_shape shape;
		uint64_t address;

		h5_earray_shape_init(copy->index, from, number, &shape);
		if (number < from->index_super_blocks) {
			rc = copy_data_blocks(copy, &shape, NULL,
					      data_blocks + shape.super.first_data_block * size_of_offsets);
			continue;
		}
		address = h5_chunk_address_at(copy->index, super_blocks, number - from->index_super_blocks);
		if (address == H5_UNDEF)
			continue;
		rc = copy_super_block(copy, &shape, &address);
		h5_chunk_address_put(copy->index, super_blocks, number - from->index_super_blocks, address);
	}
	return rc;
}

static int copy_index_block(struct copy *copy)
{
	const struct h5_extensible_array_header *from = &copy->index->extensible_array;
	struct h5_earray_block *draft;
	struct h5_earray_shape shape;
	int rc;

	h5_earray_shape_init(copy->index, from, 0, &shape);
	rc = h5_earray_draft(copy->index, &h5_earray_index_block, from->index_block, &shape, &draft);
	if (rc)
		return rc;
	rc = copy_below(copy, draft);
	adopt(copy->index, &copy->header, draft, from->index_block_size);
	copy->header.index_block = H5_UNDEF;
	if (!rc)
		rc = h5_tx_shadow(copy->index->file, &copy->header.index_block, draft->bytes,
				  from->index_block_size);
	free(draft);
	return rc;
}

static void release_data_blocks(const struct h5_chunk_index *index, const struct h5_earray_shape *shape,
				const struct h5_earray_block *root, const struct h5_earray_block *super)
{
	for (uint64_t i = 0; i < shape->super.data_blocks; i++) {
		uint64_t address = h5_earray_data_block_address(index, root, shape, super, i);

		if (address != H5_UNDEF)
			h5_tx_free(index->file, address, shape->super.data_block_space);
	}
}

/* Gives up the space of the index that has this header. */
static void release(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header)
{
	const struct h5_earray_block *root, *super;
	struct h5_lru_entry *root_ref, *ref;

	/* The space below a block that cannot be read is lost. */
	if (header->index_block != H5_UNDEF && !h5_earray_root_get(index, header, &root_ref, &root)) {
		for (unsigned number = 0; number < header->super_blocks; number++) {
			struct h5_earray_shape shape;

			h5_earray_shape_init(index, header, number, &shape);
			if (h5_earray_super_get(index, root, &shape, &ref, &super))
				continue;
			release_data_blocks(index, &shape, root, super);
			if (super)
				h5_tx_free(index->file,
					   h5_chunk_address_at(index, root->index.super_blocks,
							       number - header->index_super_blocks),
					   shape.super.block_size);
			h5_file_put(index->file, ref);
		}
		h5_file_put(index->file, root_ref);
		h5_tx_free(index->file, header->index_block, header->index_block_size);
	}
	h5_tx_free(index->file, header->address, h5_earray_header_size(index));
}

int h5_earray_move(struct h5_chunk_index *index)
{
	struct copy copy = {index, index->extensible_array, h5_file_size(index->file)};
	int rc = h5_tx_allocate(index->file, H5_ALLOCATE_METADATA, h5_earray_header_size(index),
				&copy.header.address);

	if (!rc && copy.header.index_block != H5_UNDEF)
		rc = copy_index_block(&copy);
	if (!rc)
		rc = h5_earray_write_header(index, &copy.header);
	if (rc)
		return rc;
	release(index, &index->extensible_array);
	index->extensible_array = copy.header;
	index->layout.address = copy.header.address;
	return 0;
}

#include "chunk_index/extensible_array.h"

#include "base/checked.h"
#include "change/transaction.h"
#include "store/block.h"
#include "store/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Changes of the extensible array. A change begins at a leaf: the index block, a data block or a page. Then
 * its ancestors change, up to the first that can be changed in place. The header has counts that change,
 * too. */

struct change {
	struct h5_chunk_index *index;
	struct h5_earray_position position; /* its shape borrows the header of the index */
	const struct h5_chunk *chunk;	    /* NULL: the leaf is cleared from the position on ... */
	uint64_t first;			    /* ... of chunks with scaled[0] >= first */
};

/* ---- drafts: copies of blocks, to be changed ---- */

static int draft_empty(uint64_t size, struct h5_earray_block **draft)
{
	if (size > H5_BLOCK_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "extensible array: a block of %ju bytes is not supported",
			       (uintmax_t)size);
	*draft = calloc(1, sizeof **draft + (size_t)size);
	return *draft ? 0 : h5_fail(-ENOMEM, H5_UNDEF, "extensible array: out of memory");
}

/* Makes an empty block of the type for the position of the change, and decodes it. */
static int draft_new(struct change *change, const struct h5_block_type *type, uint64_t size,
		     struct h5_earray_block **out)
{
	const struct h5_extensible_array_super *super = &change->position.shape.super;
	const struct h5_extensible_array_header *header = &change->index->extensible_array;
	struct h5_earray_block *draft;
	struct h5_writer w;
	struct h5_reader r;
	int rc = draft_empty(size, &draft);

	if (rc)
		return rc;
	w = h5_earray_writer(change->index, draft->bytes, (size_t)size);
	r = h5_file_reader(change->index->file, draft->bytes, (size_t)size, H5_UNDEF);
	if (type == &h5_earray_index_block) {
		h5_extensible_array_index_block_encode(&w, header);
		rc = h5_extensible_array_index_block_decode(&r, header, &draft->index);
	} else if (type == &h5_earray_super_block) {
		h5_extensible_array_super_block_encode(&w, header, super);
		rc = h5_extensible_array_super_block_decode(&r, header, super, &draft->super);
	} else {
		h5_extensible_array_data_block_encode(&w, header, super, change->position.data_block);
		rc = h5_extensible_array_data_block_decode(&r, header, super, &draft->data);
	}
	/* It is as it was encoded. */
	assert(!rc);
	*out = draft;
	return rc;
}

static int draft_index_block(struct change *change, struct h5_earray_block **out)
{
	struct h5_extensible_array_header *header = &change->index->extensible_array;
	struct h5_earray_shape shape;
	int rc;

	h5_earray_shape_init(change->index, header, 0, &shape);
	if (header->index_block != H5_UNDEF)
		return h5_earray_draft(change->index, &h5_earray_index_block, header->index_block, &shape,
				       out);
	rc = draft_new(change, &h5_earray_index_block, header->index_block_size, out);
	if (rc)
		return rc;
	h5_chunk_elements_clear(change->index, h5_earray_part(*out, (*out)->index.elements),
				header->index_elements);
	header->elements += header->index_elements;
	return 0;
}

static int draft_super_block(struct change *change, uint64_t address, struct h5_earray_block **out)
{
	const struct h5_extensible_array_super *super = &change->position.shape.super;
	int rc;

	if (address != H5_UNDEF)
		return h5_earray_draft(change->index, &h5_earray_super_block, address,
				       &change->position.shape, out);
	rc = draft_new(change, &h5_earray_super_block, super->block_size, out);
	if (rc)
		return rc;
	change->index->extensible_array.super_count++;
	change->index->extensible_array.super_bytes += super->block_size;
	return 0;
}

static int draft_data_block(struct change *change, uint64_t address, struct h5_earray_block **out)
{
	const struct h5_extensible_array_super *super = &change->position.shape.super;
	struct h5_extensible_array_header *header = &change->index->extensible_array;
	int rc;

	if (address != H5_UNDEF)
		return h5_earray_draft(change->index, &h5_earray_data_block, address, &change->position.shape,
				       out);
	rc = draft_new(change, &h5_earray_data_block, super->data_block_size, out);
	if (rc)
		return rc;
	if ((*out)->data.elements)
		h5_chunk_elements_clear(change->index, h5_earray_part(*out, (*out)->data.elements),
					super->elements);
	header->data_count++;
	header->data_bytes += super->data_block_space;
	header->elements += super->elements;
	return 0;
}

/* `address` H5_UNDEF: the page is not initialised; the draft is an empty one. */
static int draft_page(struct change *change, uint64_t address, struct h5_earray_block **out)
{
	const struct h5_extensible_array_super *super = &change->position.shape.super;
	struct h5_file *file = change->index->file;
	size_t size = (size_t)super->page_size;
	struct h5_earray_block *draft;
	struct h5_reader r;
	void *memory;
	int rc;

	if (address == H5_UNDEF) {
		rc = draft_empty(super->page_size, &draft);
		if (!rc) {
			h5_chunk_elements_clear(change->index, draft->bytes, change->position.n);
			*out = draft;
		}
		return rc;
	}
	rc = h5_block_read(file, address, sizeof *draft, size, "extensible array page", &memory);
	if (rc)
		return rc;
	draft = memory;
	r = h5_file_reader(file, draft->bytes, size, address);
	h5_reader_skip(&r, size - 4);
	rc = h5_reader_checksum(&r, "extensible array page");
	if (rc)
		free(draft);
	else
		*out = draft;
	return rc;
}

/* ---- writing drafts ---- */

/* Writes the draft and frees it. *address changes if it cannot be written in place. All blocks are of one
 * stage: if one changes because another one has come or moved, that one is in new space. */
static int put_draft(const struct change *change, struct h5_earray_block *draft, uint64_t size,
		     uint64_t *address)
{
	int rc;

	h5_earray_seal(draft->bytes, (size_t)size);
	rc = h5_tx_store(change->index->file, address, draft->bytes, (size_t)size, H5_STAGE_BLOCK);
	free(draft);
	return rc;
}

/* ---- the levels, from the leaf up ---- */

/* True: the chunk of this number has scaled[0] >= first. */
static bool is_behind(const struct h5_chunk_index *index, uint64_t number, uint64_t first)
{
	if (index->slowest)
		number %= index->step[index->slowest];
	return number / index->step[0] >= first;
}

static int edit(const struct change *change, uint8_t *elements)
{
	const struct h5_earray_position *position = &change->position;

	if (change->chunk)
		return h5_chunk_element_put(change->index, elements, position->at, change->chunk);
	for (uint64_t i = position->at; i < position->n; i++)
		if (is_behind(change->index, position->number + (i - position->at), change->first))
			h5_chunk_elements_clear(change->index,
						elements + i * change->index->extensible_array.element_size,
						1);
	return 0;
}

/* Makes sure that the paged data block is in new space: makes it, or copies it. */
static int renew_paged(struct change *change, const struct h5_earray_block *super, uint64_t *address)
{
	const struct h5_earray_shape *shape = &change->position.shape;
	struct h5_file *file = change->index->file;
	uint64_t space = shape->super.data_block_space, at;
	struct h5_earray_block *draft;
	int rc;

	if (*address != H5_UNDEF && h5_tx_is_new(file, *address))
		return 0;
	rc = h5_tx_allocate(file, H5_ALLOCATE_METADATA, space, &at);
	if (rc)
		return rc;
	if (*address != H5_UNDEF) {
		rc = h5_earray_copy_paged(change->index, shape, shape->header, super,
					  change->position.data_block, *address, at);
		h5_tx_free(file, *address, space);
	} else {
		rc = draft_data_block(change, H5_UNDEF, &draft);
		if (!rc) {
			rc = h5_tx_put(file, at, draft->bytes, (size_t)shape->super.data_block_size);
			free(draft);
		}
	}
	*address = at;
	return rc;
}

/* *initialised: the page exists. A new page exists once its bit is set. */
static int change_page(struct change *change, const struct h5_earray_block *super, uint64_t *address,
		       bool *initialised)
{
	const struct h5_earray_shape *shape = &change->position.shape;
	size_t size = (size_t)shape->super.page_size;
	uint64_t at =
		*initialised ? h5_earray_page_address(shape, *address, change->position.page) : H5_UNDEF;
	struct h5_earray_block *draft;
	int rc = draft_page(change, at, &draft);

	if (rc)
		return rc;
	rc = edit(change, draft->bytes);
	if (!rc && *initialised && h5_tx_is_safe(change->index->file, at, size))
		return put_draft(change, draft, size, &at);
	if (!rc)
		rc = renew_paged(change, super, address);
	if (!rc) {
		h5_earray_seal(draft->bytes, size);
		at = h5_earray_page_address(shape, *address, change->position.page);
		rc = h5_tx_put(change->index->file, at, draft->bytes, size);
		*initialised = true;
	}
	free(draft);
	return rc;
}

static int change_data_block(struct change *change, uint64_t *address)
{
	struct h5_earray_block *draft;
	int rc = draft_data_block(change, *address, &draft);

	if (rc)
		return rc;
	rc = edit(change, h5_earray_part(draft, draft->data.elements));
	if (rc) {
		free(draft);
		return rc;
	}
	return put_draft(change, draft, change->position.shape.super.data_block_size, address);
}

static int change_super_block(struct change *change, uint64_t *address)
{
	const struct h5_earray_shape *shape = &change->position.shape;
	uint64_t before = H5_UNDEF, after, i = change->position.data_block;
	const struct h5_earray_block *super = NULL;
	struct h5_lru_entry *ref = NULL;
	bool was = false, is;
	struct h5_earray_block *draft;
	int rc = 0;

	if (*address != H5_UNDEF)
		rc = h5_earray_block_get(change->index, &h5_earray_super_block, *address, shape, &ref,
					 &super);
	if (rc)
		return rc;
	if (super) {
		before = h5_chunk_address_at(change->index, super->super.data_blocks, i);
		was = before != H5_UNDEF && shape->super.pages &&
		      h5_extensible_array_has_page(&shape->super, &super->super, i, change->position.page);
	}
	after = before;
	is = was;
	rc = shape->super.pages ? change_page(change, super, &after, &is) : change_data_block(change, &after);
	h5_file_put(change->index->file, ref);
	if (rc || (after == before && is == was))
		return rc;
	rc = draft_super_block(change, *address, &draft);
	if (rc)
		return rc;
	h5_chunk_address_put(change->index, h5_earray_part(draft, draft->super.data_blocks), i, after);
	if (is)
		h5_extensible_array_set_page(&shape->super, h5_earray_part(draft, draft->super.bitmap), i,
					     change->position.page);
	return put_draft(change, draft, shape->super.block_size, address);
}

/* Changes a leaf below the index block. */
static int change_below(struct change *change)
{
	struct h5_extensible_array_header *header = &change->index->extensible_array;
	const struct h5_extensible_array_super *super = &change->position.shape.super;
	bool direct = super->number < header->index_super_blocks;
	uint64_t i = direct ? super->first_data_block + change->position.data_block
			    : super->number - header->index_super_blocks;
	uint64_t before = H5_UNDEF, after;
	const struct h5_earray_block *root;
	struct h5_earray_block *draft;
	struct h5_lru_entry *ref;
	int rc;

	if (header->index_block != H5_UNDEF) {
		rc = h5_earray_root_get(change->index, header, &ref, &root);
		if (rc)
			return rc;
		before = h5_chunk_address_at(change->index,
					     direct ? root->index.data_blocks : root->index.super_blocks, i);
		h5_file_put(change->index->file, ref);
	}
	after = before;
	rc = direct ? change_data_block(change, &after) : change_super_block(change, &after);
	if (rc || after == before)
		return rc;
	rc = draft_index_block(change, &draft);
	if (rc)
		return rc;
	h5_chunk_address_put(
		change->index,
		h5_earray_part(draft, direct ? draft->index.data_blocks : draft->index.super_blocks), i,
		after);
	return put_draft(change, draft, header->index_block_size, &header->index_block);
}

static int change_in_index_block(struct change *change)
{
	struct h5_extensible_array_header *header = &change->index->extensible_array;
	struct h5_earray_block *draft;
	int rc = draft_index_block(change, &draft);

	if (rc)
		return rc;
	rc = edit(change, h5_earray_part(draft, draft->index.elements));
	if (rc) {
		free(draft);
		return rc;
	}
	return put_draft(change, draft, header->index_block_size, &header->index_block);
}

static bool differs(const struct h5_extensible_array_header *a, const struct h5_extensible_array_header *b)
{
	/* Other fields change only together with one of these. */
	return a->index_block != b->index_block || a->max_index != b->max_index ||
	       a->data_count != b->data_count || a->super_count != b->super_count;
}

/* The header can be changed in place, or is new. `written`: the header as it is in the file. */
static int change_leaf(struct change *change, const struct h5_extensible_array_header *written)
{
	const struct h5_extensible_array_header *header = &change->index->extensible_array;
	int rc;

	change->position.shape.header = header;
	rc = change->position.in_index ? change_in_index_block(change) : change_below(change);
	return !rc && differs(header, written) ? h5_earray_write_header(change->index, header) : rc;
}

/* Makes sure that the header can be changed in place, by moving the index if it cannot. */
static int prepare(struct h5_chunk_index *index)
{
	bool safe = h5_tx_is_safe(index->file, index->extensible_array.address, h5_earray_header_size(index));

	return safe ? 0 : h5_earray_move(index);
}

/* Makes the header of an index without chunks, in new space. */
static int create(struct h5_chunk_index *index)
{
	struct h5_extensible_array_header *header = &index->extensible_array;
	const struct h5_chunk_layout *layout = &index->layout;
	const struct h5_extensible_array_parameters parameters = {
		.client = (uint8_t)h5_chunk_element_client(index),
		.element_size = (uint8_t)h5_chunk_element_size(index),
		.max_bits = layout->extensible_array.max_bits,
		.index_elements = layout->extensible_array.index_elements,
		.min_elements = layout->extensible_array.min_elements,
		.min_pointers = layout->extensible_array.min_pointers,
		.page_bits = layout->extensible_array.page_bits,
	};
	int rc = h5_extensible_array_header_init(header, H5_UNDEF, &parameters,
						 h5_file_superblock(index->file)->size_of_offsets);

	if (!rc)
		rc = h5_tx_allocate(index->file, H5_ALLOCATE_METADATA, h5_earray_header_size(index),
				    &header->address);
	index->layout.address = header->address;
	return rc;
}

/* Finds the next of the n elements from the position on, element *i itself or one behind it, that is stored
 * and has scaled[0] >= first. */
static bool next_behind(const struct h5_chunk_index *index, const struct h5_earray_position *position,
			const uint8_t *elements, uint64_t n, uint64_t first, uint64_t *i,
			struct h5_chunk *chunk)
{
	for (; *i < n; ++*i) {
		if (!is_behind(index, position->number + *i, first))
			continue;
		h5_chunk_element_at(index, elements, position->at + *i, chunk);
		if (chunk->address != H5_UNDEF)
			return true;
	}
	return false;
}

/* Clears the chunks with scaled[0] >= first in the leaf from the position on, and visits those of the n that
 * were stored. */
static int trim_leaf(struct h5_chunk_index *index, const struct h5_earray_position *position, uint64_t first,
		     const uint8_t *elements, uint64_t n, h5_chunk_visit *visit, void *arg)
{
	const struct h5_extensible_array_header written = index->extensible_array;
	struct change change = {.index = index, .position = *position, .first = first};
	struct h5_chunk chunk;
	uint64_t i = 0;
	int rc;

	if (!next_behind(index, position, elements, n, first, &i, &chunk))
		return 0;
	rc = change_leaf(&change, &written);
	for (; !rc && next_behind(index, position, elements, n, first, &i, &chunk); i++)
		rc = visit(arg, &chunk);
	return rc;
}

/* Calls trim_leaf() for each leaf that has chunks from `number` up to, but not including, `last`. */
static int trim_leaves(struct h5_chunk_index *index, uint64_t number, uint64_t last, uint64_t first,
		       h5_chunk_visit *visit, void *arg)
{
	uint64_t left = h5_file_size(index->file), from, end;
	struct h5_earray_position position;
	int rc = 0;

	for (; !rc && number < last && h5_earray_locate(index, &index->extensible_array, number, &position);
	     number = end) {
		struct h5_lru_entry *ref;
		const uint8_t *elements;

		rc = h5_earray_leaf_get(index, &position, &ref, &elements, &from, &end);
		if (elements)
			rc = h5_chunk_index_spend(index, &left,
						  position.n * position.shape.header->element_size);
		/* The elements stay valid while the block changes, since this is a reference. */
		if (elements && !rc)
			rc = trim_leaf(index, &position, first, elements, end - number, visit, arg);
		h5_file_put(index->file, ref);
	}
	return rc;
}

static int trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	uint64_t number = 0;
	int rc;

	/* If dimension 0 is not the unlimited one, the chunks to remove are spread over all of the array. */
	if (!index->step[index->slowest] || (!index->slowest && !h5_mul(first, index->step[0], &number)))
		return 0;
	rc = prepare(index);
	/* Also beyond Max Index Set: a kill may have left elements there without the new header. */
	return rc ? rc : trim_leaves(index, number, UINT64_MAX, first, visit, arg);
}

static int no_visit(void *arg, const struct h5_chunk *chunk)
{
	(void)arg;
	(void)chunk;
	return 0;
}

static int set_number(struct h5_chunk_index *index, uint64_t number, const struct h5_chunk *chunk)
{
	struct h5_extensible_array_header *header = &index->extensible_array,
					  written = {.index_block = H5_UNDEF};
	struct change change = {.index = index, .chunk = chunk};
	int rc;

	if (index->layout.address == H5_UNDEF) {
		rc = create(index);
	} else {
		rc = prepare(index);
		/* What a kill has left there would be found with the new Max Index Set. */
		if (!rc)
			rc = trim_leaves(index, header->max_index, number, 0, no_visit, NULL);
		written = *header;
	}
	if (rc)
		return rc;
	if (!h5_earray_locate(index, header, number, &change.position))
		return h5_fail(-EFBIG, index->layout.address, "extensible array: it has no chunk %ju",
			       (uintmax_t)number);
	if (number >= header->max_index)
		header->max_index = number + 1;
	return change_leaf(&change, &written);
}

static int set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	const struct h5_chunk absent = h5_chunk_absent();
	uint64_t number;
	int rc = 0;

	if (index->layout.address == H5_UNDEF)
		rc = h5_earray_number(index);
	if (!rc && !h5_chunk_index_number_of(index, scaled, &number))
		rc = h5_fail(-EFBIG, index->layout.address, "extensible array: a chunk beyond the maximum");
	return rc ? rc : set_number(index, number, chunk->address == H5_UNDEF ? &absent : chunk);
}

const struct h5_chunk_index_ops h5_chunk_index_extensible_array = {
	.name = "earray",
	.open = h5_earray_open,
	.lookup = h5_earray_lookup,
	.gap = h5_chunk_elements_gap,
	.walk = h5_earray_walk,
	.set = set,
	.trim = trim,
};

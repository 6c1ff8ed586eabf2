/* The fixed array, specification VII.C. Chunks are numbered by the maximum dimensions. The array consists of
 * a header, a data block and pages.
 *
 * A data block or a page changes in place if it is a cell or lies in new space. Otherwise the whole array is
 * copied to new space first, which happens once in a transaction. */
#include "base/checked.h"
#include "base/lookup3.h"
#include "change/transaction.h"
#include "chunk_index/private.h"
#include "store/block.h"
#include "store/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKSUM_SIZE = 4 };

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

static int block_get(const struct h5_chunk_index *index, struct h5_lru_entry **ref,
		     const struct h5_fixed_array_block **out)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	const struct data_block *block;
	int rc = h5_file_block(index->file, &fixed_array_block, header->data_block, header->address, header,
			       ref);

	if (rc)
		return rc;
	block = h5_lru_value(*ref);
	/* Another reader of the index may have loaded the block, by a header that has changed since. */
	if (block->size != header->block_size || !block->decoded.bitmap != !header->pages) {
		h5_file_put(index->file, *ref);
		return h5_fail(-EUCLEAN, header->address, "fixed array header: it has changed");
	}
	*out = &block->decoded;
	return 0;
}

static int page_get(const struct h5_chunk_index *index, const struct h5_fixed_array_block *block,
		    uint64_t page, struct h5_lru_entry **ref, const uint8_t **elements, uint64_t *size)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	uint64_t address;

	*ref = NULL;
	if (!h5_fixed_array_has_page(block, page))
		return 0;
	h5_fixed_array_page(header, page, &address, size);
	return h5_chunk_page_get(index, address, *size, ref, elements);
}

/* Finds the elements of the page of element *number, or all if there are no pages. */
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
	rc = block_get(index, &block_ref, &block);
	if (rc)
		return rc;
	if (!header->pages) {
		cursor->ref = block_ref;
		cursor->block = block->elements;
		return 0;
	}
	rc = page_get(index, block, page, &cursor->ref, &elements, &size);
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
	int rc = 0;

	if (!h5_chunk_index_number_of(index, scaled, &number))
		return 0;
	assert(number < index->fixed_array.elements);
	if (!h5_chunk_cursor_enter(index, cursor, &number, 1))
		rc = h5_chunk_cursor_hold(index, cursor, seek(index, &number, cursor));
	if (!rc && cursor->block)
		h5_chunk_element_at(index, cursor->block, number - cursor->low[0], chunk);
	return rc;
}

static int walk_pages(const struct h5_chunk_index *index, const struct h5_fixed_array_block *block,
		      h5_chunk_visit *visit, void *arg)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	int rc = 0;

	for (uint64_t page = 0; page < header->pages && !rc; page++) {
		struct h5_lru_entry *page_ref;
		const uint8_t *elements;
		uint64_t size;

		rc = page_get(index, block, page, &page_ref, &elements, &size);
		if (page_ref)
			rc = h5_chunk_elements_walk(index, elements, size / header->element_size, visit, arg);
		h5_file_put(index->file, page_ref);
	}
	return rc;
}

static size_t header_size(const struct h5_chunk_index *index)
{
	const struct h5_superblock *sb = h5_file_superblock(index->file);

	return 8u + sb->size_of_offsets + sb->size_of_lengths + CHECKSUM_SIZE;
}

/* Pages have space whether they are initialised or not. Each is cached by its address, so each is a visit of
 * its own. */
static int walk_blocks(const struct h5_chunk_index *index, h5_extent_visit *visit, void *arg)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	int rc = visit(arg, header->address, header_size(index));

	if (!rc && header->data_block != H5_UNDEF)
		rc = visit(arg, header->data_block, header->block_size);
	for (uint64_t page = 0; header->data_block != H5_UNDEF && page < header->pages && !rc; page++) {
		uint64_t address, size;

		h5_fixed_array_page(header, page, &address, &size);
		rc = visit(arg, address, size + CHECKSUM_SIZE);
	}
	return rc;
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, h5_extent_visit *block_visit,
		void *arg)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	const struct h5_fixed_array_block *block;
	struct h5_lru_entry *ref;
	int rc = block_visit ? walk_blocks(index, block_visit, arg) : 0;

	if (rc || header->data_block == H5_UNDEF)
		return rc;
	rc = block_get(index, &ref, &block);
	if (rc)
		return rc;
	rc = header->pages ? walk_pages(index, block, visit, arg)
			   : h5_chunk_elements_walk(index, block->elements, header->elements, visit, arg);
	h5_file_put(index->file, ref);
	return rc;
}

/* ---- changes ---- */

static struct h5_writer writer(const struct h5_chunk_index *index, void *data, size_t n)
{
	const struct h5_superblock *sb = h5_file_superblock(index->file);

	return h5_writer_init(data, n, sb->size_of_offsets, sb->size_of_lengths);
}

/* A copy of the data block without its pages, or of a page, to be changed. */
struct draft {
	uint64_t address;
	size_t size;
	uint8_t *bytes; /* owned */
	uint8_t *body;	/* its elements, or its bitmap */
};

static int draft_init(struct draft *draft, uint64_t address, uint64_t size)
{
	*draft = (struct draft){.address = address, .size = (size_t)size};
	if (size > H5_BLOCK_MAX)
		return h5_fail(-ENOTSUP, address, "fixed array: a block of %ju bytes is not supported",
			       (uintmax_t)size);
	draft->body = draft->bytes = calloc(1, draft->size);
	return draft->bytes ? 0 : h5_fail(-ENOMEM, address, "fixed array: out of memory");
}

static void draft_release(struct draft *draft)
{
	free(draft->bytes);
	draft->bytes = NULL;
}

static void draft_seal(const struct draft *draft)
{
	size_t n = draft->size - CHECKSUM_SIZE;

	h5_uint_to(draft->bytes + n, h5_lookup3(draft->bytes, n, 0), CHECKSUM_SIZE);
}

static int draft_write(const struct h5_chunk_index *index, const struct draft *draft, unsigned stage)
{
	draft_seal(draft);
	return h5_tx_patch(index->file, draft->address, draft->bytes, draft->size, stage);
}

/* Into new space. */
static int draft_put(const struct h5_chunk_index *index, const struct draft *draft)
{
	draft_seal(draft);
	return h5_tx_put(index->file, draft->address, draft->bytes, draft->size);
}

/* A copy of the data block, to be written where `header` says, which need not be where it lies now. If the
 * index has no data block yet, a block without chunks. */
static int draft_block(const struct h5_chunk_index *index, const struct h5_fixed_array_header *header,
		       struct draft *draft)
{
	const struct h5_fixed_array_block *block;
	struct h5_lru_entry *ref = NULL;
	struct h5_writer w;
	int rc = draft_init(draft, header->data_block, header->block_size);

	if (!rc && index->fixed_array.data_block != H5_UNDEF)
		rc = block_get(index, &ref, &block);
	if (rc)
		return rc;
	w = writer(index, draft->bytes, draft->size);
	h5_fixed_array_block_encode(&w, header);
	draft->body = w.p;
	if (ref)
		memcpy(draft->body, header->pages ? block->bitmap : block->elements,
		       (size_t)(w.end - w.p) - CHECKSUM_SIZE);
	else if (!header->pages)
		h5_chunk_elements_clear(index, draft->body, header->elements);
	h5_file_put(index->file, ref);
	return h5_writer_check(&w, "fixed array data block");
}

static int draft_page(const struct h5_chunk_index *index, uint64_t page, struct draft *draft, bool *made)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	const struct h5_fixed_array_block *block;
	struct h5_lru_entry *block_ref, *ref = NULL;
	const uint8_t *elements;
	uint64_t address, size;
	int rc;

	*draft = (struct draft){0};
	h5_fixed_array_page(header, page, &address, &size);
	rc = block_get(index, &block_ref, &block);
	if (rc)
		return rc;
	rc = page_get(index, block, page, &ref, &elements, &size);
	if (!rc)
		rc = draft_init(draft, address, size + CHECKSUM_SIZE);
	if (!rc && ref)
		memcpy(draft->bytes, elements, (size_t)size);
	else if (!rc)
		h5_chunk_elements_clear(index, draft->bytes, size / header->element_size);
	*made = !ref;
	h5_file_put(index->file, ref);
	h5_file_put(index->file, block_ref);
	return rc;
}

static int write_header(const struct h5_chunk_index *index, const struct h5_fixed_array_header *header)
{
	uint8_t bytes[H5_FIXED_ARRAY_HEADER_MAX];
	struct h5_writer w = writer(index, bytes, sizeof bytes);
	int rc;

	h5_fixed_array_header_encode(&w, header);
	rc = h5_writer_check(&w, "fixed array header");
	return rc ? rc : h5_tx_patch(index->file, header->address, bytes, h5_writer_at(&w), H5_STAGE_INDEX);
}

/* Copies the pages to the data block of another header. */
static int copy_pages(const struct h5_chunk_index *index, const struct h5_fixed_array_header *to,
		      const uint8_t *bitmap)
{
	const struct h5_fixed_array_block block = {.bitmap = bitmap};
	int rc = 0;

	for (uint64_t page = 0; page < to->pages && !rc; page++) {
		struct draft draft;
		uint64_t size;
		bool made;

		if (!h5_fixed_array_has_page(&block, page))
			continue;
		rc = draft_page(index, page, &draft, &made);
		h5_fixed_array_page(to, page, &draft.address, &size);
		if (!rc)
			rc = draft_put(index, &draft);
		draft_release(&draft);
	}
	return rc;
}

/* Copies the array to the new space of `to`. */
static int write_copy(const struct h5_chunk_index *index, const struct h5_fixed_array_header *to)
{
	struct draft block;
	int rc = draft_block(index, to, &block);

	if (!rc)
		rc = copy_pages(index, to, block.body);
	if (!rc)
		rc = draft_put(index, &block);
	if (!rc)
		rc = write_header(index, to);
	draft_release(&block);
	return rc;
}

/* Gives the array a new data block. Also a new header if there is none yet, or if the old one cannot change
 * in place to point to that block. */
static int rebuild(struct h5_chunk_index *index)
{
	const struct h5_fixed_array_header old = index->fixed_array;
	struct h5_fixed_array_header new = old;
	size_t n = header_size(index);
	bool moves = old.address == H5_UNDEF || !h5_tx_is_safe(index->file, old.address, n);
	int rc = h5_tx_allocate(index->file, H5_ALLOCATE_METADATA, old.block_space, &new.data_block);

	if (!rc && moves)
		rc = h5_tx_allocate(index->file, H5_ALLOCATE_METADATA, n, &new.address);
	if (!rc)
		rc = write_copy(index, &new);
	if (rc)
		return rc;
	if (old.data_block != H5_UNDEF)
		h5_tx_free(index->file, old.data_block, old.block_space);
	if (moves && old.address != H5_UNDEF)
		h5_tx_free(index->file, old.address, n);
	index->fixed_array = new;
	index->layout.address = new.address;
	return 0;
}

/* *safe: the page can change in place, and so can the bitmap if the page's bit is still to be set. */
static int page_is_safe(const struct h5_chunk_index *index, uint64_t page, bool *safe)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	const struct h5_fixed_array_block *block;
	struct h5_lru_entry *ref;
	uint64_t address, size;
	int rc;

	h5_fixed_array_page(header, page, &address, &size);
	rc = block_get(index, &ref, &block);
	if (rc)
		return rc;
	*safe = h5_tx_is_safe(index->file, address, (size_t)size + CHECKSUM_SIZE) &&
		(h5_fixed_array_has_page(block, page) ||
		 h5_tx_is_safe(index->file, header->data_block, (size_t)header->block_size));
	h5_file_put(index->file, ref);
	return 0;
}

/* Makes sure that the elements of the page, or of a data block without pages, can change in place. */
static int make_safe(struct h5_chunk_index *index, uint64_t page)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	bool safe;
	int rc = 0;

	if (header->data_block == H5_UNDEF)
		return rebuild(index);
	if (header->pages)
		rc = page_is_safe(index, page, &safe);
	else
		safe = h5_tx_is_safe(index->file, header->data_block, (size_t)header->block_size);
	return rc || safe ? rc : rebuild(index);
}

static int set_page_bit(const struct h5_chunk_index *index, uint64_t page)
{
	struct draft block;
	int rc = draft_block(index, &index->fixed_array, &block);

	if (!rc) {
		h5_fixed_array_set_page(block.body, page);
		/* after the page */
		rc = draft_write(index, &block, H5_STAGE_BLOCK + 1);
	}
	draft_release(&block);
	return rc;
}

/* Changes n elements from `first` on, all in one page. NULL: they become those of chunks that are not stored;
 * else n is 1. */
static int change(struct h5_chunk_index *index, uint64_t first, uint64_t n, const uint8_t *element)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	uint64_t page = header->pages ? first / header->page_elements : 0;
	uint64_t i = first - page * header->page_elements;
	struct draft draft = {0};
	bool made = false;
	int rc = make_safe(index, page);

	if (rc)
		return rc;
	rc = header->pages ? draft_page(index, page, &draft, &made) : draft_block(index, header, &draft);
	if (!rc && element)
		memcpy(draft.body + i * header->element_size, element, header->element_size);
	else if (!rc)
		h5_chunk_elements_clear(index, draft.body + i * header->element_size, n);
	if (!rc)
		rc = draft_write(index, &draft, H5_STAGE_BLOCK);
	if (!rc && made)
		rc = set_page_bit(index, page);
	draft_release(&draft);
	return rc;
}

/* Makes the header of a new array. */
static int prepare(struct h5_chunk_index *index)
{
	int rc = h5_chunk_index_number(index, 0);

	if (!rc && index->count == H5_UNLIMITED)
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "fixed array: chunks without limit");
	return rc ? rc
		  : h5_fixed_array_header_init(&index->fixed_array, h5_chunk_element_client(index),
					       h5_chunk_element_size(index),
					       index->layout.fixed_array.page_bits, index->count,
					       h5_file_superblock(index->file)->size_of_offsets);
}

static int set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	struct h5_chunk old = h5_chunk_absent();
	struct h5_chunk_cursor cursor = {0};
	uint8_t element[UINT8_MAX];
	uint64_t number;
	int rc = index->layout.address == H5_UNDEF ? prepare(index) : lookup(index, &cursor, scaled, &old);

	h5_chunk_cursor_release(index, &cursor);
	if (rc)
		return rc;
	if (old.address == chunk->address && old.size == chunk->size && old.filter_mask == chunk->filter_mask)
		return 0;
	if (!h5_chunk_index_number_of(index, scaled, &number))
		return h5_fail(-EFBIG, index->layout.address, "fixed array: a chunk beyond the maximum");
	assert(number < index->fixed_array.elements);
	if (chunk->address == H5_UNDEF)
		return change(index, number, 1, NULL);
	rc = h5_chunk_element_put(index, element, 0, chunk);
	return rc ? rc : change(index, number, 1, element);
}

static int any(void *arg, const struct h5_chunk *chunk)
{
	(void)arg;
	(void)chunk;
	return 1;
}

/* Removes the chunks from number `first` on that are in the page, or in a data block without pages. */
static int trim_page(struct h5_chunk_index *index, uint64_t page, uint64_t first, h5_chunk_visit *visit,
		     void *arg)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	uint64_t begin = page * header->page_elements;
	uint64_t end = header->pages ? begin + h5_min(header->page_elements, header->elements - begin)
				     : header->elements;
	struct draft draft = {0};
	bool made = false;
	const uint8_t *elements;
	int rc;

	first = first > begin ? first : begin;
	rc = header->pages ? draft_page(index, page, &draft, &made) : draft_block(index, header, &draft);
	if (!rc && !made) {
		elements = draft.body + (first - begin) * header->element_size;
		rc = h5_chunk_elements_walk(index, elements, end - first, any, NULL);
		if (rc > 0)
			rc = change(index, first, end - first, NULL);
		if (!rc)
			rc = h5_chunk_elements_walk(index, elements, end - first, visit, arg);
	}
	draft_release(&draft);
	return rc;
}

static int trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	const struct h5_fixed_array_header *header = &index->fixed_array;
	uint64_t from;
	int rc = 0;

	if (header->data_block == H5_UNDEF || !h5_mul(first, index->step[0], &from) ||
	    from >= header->elements)
		return 0;
	if (!header->pages)
		return trim_page(index, 0, from, visit, arg);
	for (uint64_t page = from / header->page_elements; page < header->pages && !rc; page++)
		rc = trim_page(index, page, from, visit, arg);
	return rc;
}

const struct h5_chunk_index_ops h5_chunk_index_fixed_array = {
	.name = "farray",
	.open = open_index,
	.lookup = lookup,
	.gap = h5_chunk_elements_gap,
	.walk = walk,
	.set = set,
	.trim = trim,
};

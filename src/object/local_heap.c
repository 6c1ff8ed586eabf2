#include "object/local_heap.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "store/block.h"
#include "store/file.h"

#include <stdlib.h>
#include <string.h>

static int decode_header(struct h5_reader *r, void *header)
{
	return h5_local_heap_decode(r, header);
}

static int load_header(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	(void)arg;
	return h5_block_load_header(file, address, H5_LOCAL_HEAP_MAX, decode_header,
				    sizeof(struct h5_local_heap_header), value, cost);
}

static const struct h5_block_type header_block = {{"local heap", free}, load_header};

int h5_local_heap_open(struct h5_file *file, uint64_t address, struct h5_local_heap *heap)
{
	const struct h5_local_heap_header *header;
	struct h5_lru_entry *ref;
	int rc = h5_file_block(file, &header_block, address, 0, NULL, &ref);

	if (rc)
		return rc;
	header = h5_lru_value(ref);
	*heap = (struct h5_local_heap){file, header->data, header->size, header->free};
	h5_file_put(file, ref);
	return 0;
}

size_t h5_local_heap_header_size(const struct h5_file *file)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	return H5_LOCAL_HEAP_FIXED + 2 * (size_t)sb->size_of_lengths + sb->size_of_offsets;
}

int h5_local_heap_extents(struct h5_file *file, uint64_t address, h5_extent_visit *visit, void *arg)
{
	struct h5_local_heap heap;
	uint64_t end;
	int rc = h5_local_heap_open(file, address, &heap);

	if (rc)
		return rc;
	if (!h5_add(heap.address, heap.size, &end) || end > h5_file_end(file))
		return h5_fail(-EUCLEAN, address, "local heap: beyond the end of the file");
	for (uint64_t at = 0, n; at < heap.size && !rc; at += n) {
		n = h5_min(H5_LOCAL_HEAP_PIECE, heap.size - at);
		rc = visit(arg, heap.address + at, n);
	}
	return rc ? rc : visit(arg, address, h5_local_heap_header_size(file));
}

/* The value of a piece is its bytes. Their number is the variant of the key. */
static int load_piece(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	*cost = *(const size_t *)arg;
	return h5_block_read(file, address, 0, *cost, "local heap", value);
}

static const struct h5_block_type piece_block = {{"local heap data", free}, load_piece};

int h5_local_heap_text(const struct h5_local_heap *heap, uint64_t offset, struct h5_buf *text)
{
	while (offset < heap->size) {
		uint64_t begin = offset - offset % H5_LOCAL_HEAP_PIECE, address;
		size_t size = (size_t)h5_min(H5_LOCAL_HEAP_PIECE, heap->size - begin), left, n;
		struct h5_lru_entry *ref;
		const char *at;
		int rc;

		if (!h5_add(heap->address, begin, &address))
			return h5_fail(-EUCLEAN, heap->address, "local heap: beyond the end of the file");
		rc = h5_file_block(heap->file, &piece_block, address, size, &size, &ref);
		if (rc)
			return rc;
		at = (const char *)h5_lru_value(ref) + (offset - begin);
		left = size - (size_t)(offset - begin);
		n = strnlen(at, left);
		h5_buf_add(text, at, n);
		h5_file_put(heap->file, ref);
		if (text->err)
			return h5_fail(text->err == -ENOMEM ? -ENOMEM : -EUCLEAN, heap->address,
				       "local heap: a text that is too long");
		if (n < left)
			return 0;
		offset += n;
	}
	return h5_fail(-EUCLEAN, heap->address, "local heap: a text at offset %llu does not end in the heap",
		       (unsigned long long)offset);
}

static int fail_list(const struct h5_local_heap *heap)
{
	return h5_fail(-EUCLEAN, heap->address, "local heap: a list of free blocks that leads nowhere");
}

int h5_local_heap_free_block(const struct h5_local_heap *heap, uint64_t offset,
			     struct h5_local_heap_free *block)
{
	size_t n = 2 * (size_t)h5_file_superblock(heap->file)->size_of_lengths;
	uint8_t bytes[2 * 8];
	struct h5_reader r;
	uint64_t address;
	int rc;

	if (offset >= heap->size || heap->size - offset < n || !h5_add(heap->address, offset, &address))
		return fail_list(heap);
	rc = h5_file_read(heap->file, address, bytes, n);
	if (rc)
		return rc;
	r = h5_file_reader(heap->file, bytes, n, address);
	rc = h5_local_heap_free_decode(&r, block);
	if (!rc && (!block->next || block->size > heap->size - offset))
		rc = h5_fail(-EUCLEAN, address, "local heap: a free block that is none");
	return rc;
}

int h5_local_heap_check(const struct h5_local_heap *heap)
{
	uint64_t most = heap->size / (2 * (uint64_t)h5_file_superblock(heap->file)->size_of_lengths);
	struct h5_local_heap_free block = {.next = heap->free};

	for (uint64_t blocks = 0; block.next != H5_LOCAL_HEAP_END; blocks++) {
		int rc = h5_interrupt_check();

		/* More blocks than there is room for: the list is a circle. */
		if (!rc && blocks == most)
			rc = fail_list(heap);
		if (!rc)
			rc = h5_local_heap_free_block(heap, block.next, &block);
		if (rc)
			return rc;
	}
	return 0;
}

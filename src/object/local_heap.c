#include "object/local_heap.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "format/symbol_table.h"
#include "store/file.h"

#include <stdlib.h>
#include <string.h>

/* The data segment of a large group has many megabytes, so it is cached in pieces. */
enum { PIECE = 1 << 16 };

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
		uint64_t begin = offset - offset % PIECE, address;
		size_t size = (size_t)h5_min(PIECE, heap->size - begin), left, n;
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

int h5_local_heap_check(const struct h5_local_heap *heap)
{
	unsigned field = h5_file_superblock(heap->file)->size_of_lengths;
	uint64_t at = heap->free, blocks = 0, address;

	while (at != H5_LOCAL_HEAP_END) {
		struct h5_local_heap_free block;
		uint8_t bytes[2 * 8];
		struct h5_reader r;
		int rc = h5_interrupt_check();

		/* More blocks than there is room for: the list is a circle. */
		if (at >= heap->size || heap->size - at < 2 * field || ++blocks > heap->size / (2 * field) ||
		    !h5_add(heap->address, at, &address))
			return h5_fail(-EUCLEAN, heap->address,
				       "local heap: a list of free blocks that leads nowhere");
		if (!rc)
			rc = h5_file_read(heap->file, address, bytes, 2 * field);
		if (rc)
			return rc;
		r = h5_file_reader(heap->file, bytes, 2 * field, address);
		rc = h5_local_heap_free_decode(&r, &block);
		if (rc)
			return rc;
		if (!block.next || block.size > heap->size - at)
			return h5_fail(-EUCLEAN, address, "local heap: a free block that is none");
		at = block.next;
	}
	return 0;
}

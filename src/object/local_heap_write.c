#include "object/local_heap_write.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/extents.h"
#include "change/transaction.h"
#include "store/block.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	UNIT = H5_LOCAL_HEAP_UNIT,
	BLOCK_MIN = 16,	  /* bytes of the smallest free block */
	BLOCKS_TRIED = 8, /* for one text */
};

/* Of a commit: texts, and then what makes their space theirs, before any entry that refers to them. */
enum {
	STAGE_TEXT = 2,
	STAGE_FREE = 3,
	STAGE_HEADER = 4,
};

static_assert((int)STAGE_HEADER < (int)H5_STAGE_BLOCK, "texts come before the nodes that refer to them");

static uint64_t round_up(uint64_t n)
{
	return (n + UNIT - 1) / UNIT * UNIT;
}

uint64_t h5_local_heap_need(uint64_t n)
{
	return round_up(n + 1);
}

/* ---- bytes of the heap ---- */

static void forget(const struct h5_local_heap *heap, uint64_t offset, uint64_t n)
{
	for (uint64_t begin = offset - offset % H5_LOCAL_HEAP_PIECE; begin < offset + n;
	     begin += H5_LOCAL_HEAP_PIECE)
		h5_tx_forget(heap->file, heap->address + begin);
}

static int out_of_memory(uint64_t address)
{
	return h5_fail(-ENOMEM, address, "local heap: out of memory");
}

/* Writes bytes of the segment page by page: so each write is a cell, and a later one takes with it no more
 * than the page that it changes. */
static int write_bytes(const struct h5_local_heap *heap, uint64_t offset, const uint8_t *data, uint64_t n,
		       unsigned stage)
{
	int rc = 0;

	for (uint64_t done = 0, part; done < n && !rc; done += part) {
		uint64_t at = heap->address + offset + done;

		part = h5_min(n - done, h5_tx_left_in_cell(heap->file, at));
		rc = h5_tx_patch(heap->file, at, data + done, (size_t)part, stage);
	}
	forget(heap, offset, n);
	return rc;
}

static int write_header(struct h5_file *file, uint64_t address, const struct h5_local_heap_header *header)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	uint8_t bytes[H5_LOCAL_HEAP_MAX];
	struct h5_writer w = h5_writer_init(bytes, sizeof bytes, sb->size_of_offsets, sb->size_of_lengths);
	size_t first = h5_tx_is_new(file, address) ? 0 : H5_LOCAL_HEAP_FIXED;
	int rc = h5_local_heap_encode(&w, header);

	if (!rc)
		rc = h5_tx_patch(file, address + first, bytes + first, h5_writer_at(&w) - first,
				 STAGE_HEADER);
	h5_tx_forget(file, address);
	return rc;
}

static int encode_block(const struct h5_file *file, uint8_t *bytes, size_t n,
			const struct h5_local_heap_free *block)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_writer w = h5_writer_init(bytes, n, sb->size_of_offsets, sb->size_of_lengths);

	return h5_local_heap_free_encode(&w, block);
}

/* Puts a segment into new space, and makes the heap this one. */
static int store_segment(struct h5_file *file, uint64_t address, uint64_t free, const uint8_t *bytes,
			 uint64_t size)
{
	struct h5_local_heap heap = {.file = file, .size = size, .free = free};
	int rc = h5_tx_allocate(file, H5_ALLOCATE_METADATA, size, &heap.address);

	if (!rc)
		rc = write_bytes(&heap, 0, bytes, size, STAGE_TEXT);
	return rc ? rc
		  : write_header(file, address, &(struct h5_local_heap_header){size, free, heap.address});
}

static void free_segment(const struct h5_local_heap *heap)
{
	forget(heap, 0, heap->size);
	h5_tx_free(heap->file, heap->address, heap->size);
}

/* ---- texts ---- */

/* Stores the text in the tail of a free block. */
static int take(const struct h5_local_heap *heap, uint64_t at, struct h5_local_heap_free *block,
		const char *text, size_t n, uint64_t *offset)
{
	size_t field = h5_file_superblock(heap->file)->size_of_lengths;
	uint64_t need = h5_local_heap_need(n);
	uint8_t bytes[2 * 8], *padded;
	int rc;

	block->size -= need;
	*offset = at + block->size;
	rc = encode_block(heap->file, bytes, 2 * field, block);
	if (rc)
		return rc;
	padded = calloc(1, (size_t)need);
	if (!padded)
		return out_of_memory(heap->address);
	memcpy(padded, text, n);
	rc = write_bytes(heap, *offset, padded, need, STAGE_TEXT);
	free(padded);
	return rc ? rc : write_bytes(heap, at, bytes, 2 * field, STAGE_FREE);
}

int h5_local_heap_add(struct h5_file *file, uint64_t address, const char *text, size_t n, uint64_t *offset)
{
	size_t field = h5_file_superblock(file)->size_of_lengths;
	struct h5_local_heap_free block;
	struct h5_local_heap heap = {.free = H5_LOCAL_HEAP_END};
	int rc = h5_local_heap_open(file, address, &heap);

	block.next = heap.free;
	for (unsigned i = 0; i < BLOCKS_TRIED && !rc && block.next != H5_LOCAL_HEAP_END; i++) {
		uint64_t at = block.next;

		rc = h5_local_heap_free_block(&heap, at, &block);
		/* Something of the block stays, so that the list does not change. */
		if (!rc && at % UNIT == 0 && block.size % UNIT == 0 &&
		    block.size >= h5_local_heap_need(n) + BLOCK_MIN &&
		    h5_tx_is_safe(file, heap.address + at, 2 * field))
			return take(&heap, at, &block, text, n, offset);
	}
	return rc ? rc : 1;
}

/* ---- collecting ---- */

int h5_local_heap_collect_begin(struct h5_local_heap_collect *collect, struct h5_file *file, uint64_t address)
{
	void *bytes;
	int rc;

	*collect = (struct h5_local_heap_collect){.address = address};
	rc = h5_local_heap_open(file, address, &collect->heap);
	if (!rc)
		rc = h5_local_heap_check(&collect->heap);
	if (!rc)
		rc = h5_block_read(file, collect->heap.address, 0, collect->heap.size, "local heap", &bytes);
	if (rc)
		return rc;
	collect->bytes = bytes;
	collect->used = calloc(1, (size_t)(collect->heap.size / UNIT + 1));
	if (!collect->used)
		return out_of_memory(address);
	collect->used[0] = 1;
	collect->left = 16 * collect->heap.size;
	return 0;
}

void h5_local_heap_collect_release(struct h5_local_heap_collect *collect)
{
	free(collect->bytes);
	free(collect->used);
}

int h5_local_heap_collect_keep(struct h5_local_heap_collect *collect, uint64_t offset)
{
	const struct h5_local_heap *heap = &collect->heap;
	size_t n;

	if (offset >= heap->size)
		return h5_fail(-EUCLEAN, heap->address, "local heap: a text at offset %ju, of %ju",
			       (uintmax_t)offset, (uintmax_t)heap->size);
	/* If it is a part of a text that is in use, both end at the same NUL. */
	if (offset % UNIT == 0 && collect->used[offset / UNIT])
		return 0;
	n = strnlen((const char *)collect->bytes + offset, (size_t)(heap->size - offset));
	if (n == heap->size - offset || n >= collect->left)
		return h5_fail(-EUCLEAN, heap->address, "local heap: a text at offset %ju does not end",
			       (uintmax_t)offset);
	collect->left -= n + 1;
	memset(collect->used + offset / UNIT, 1, (size_t)((offset + n) / UNIT - offset / UNIT + 1));
	return 0;
}

int h5_local_heap_collect_keep_all(struct h5_local_heap_collect *collect)
{
	const struct h5_local_heap *heap = &collect->heap;
	struct h5_local_heap_free block = {.next = heap->free};
	int rc = 0;

	memset(collect->used, 1, (size_t)(heap->size / UNIT + 1));
	while (!rc && block.next != H5_LOCAL_HEAP_END) {
		uint64_t first = round_up(block.next) / UNIT, at = block.next;

		rc = h5_local_heap_free_block(heap, at, &block);
		for (uint64_t unit = first; !rc && unit < (at + block.size) / UNIT; unit++)
			collect->used[unit] = 0;
	}
	collect->used[0] = 1;
	return rc;
}

/* The first free block from the offset on; its size is 0 if there is none. */
static struct h5_extent next_free(const struct h5_local_heap_collect *collect, uint64_t offset)
{
	uint64_t units = collect->heap.size / UNIT, first = offset / UNIT, end;

	for (;; first = end) {
		while (first < units && collect->used[first])
			first++;
		for (end = first; end < units && !collect->used[end];)
			end++;
		if (end - first >= BLOCK_MIN / UNIT || first == units)
			return (struct h5_extent){first * UNIT, (end - first) * UNIT};
	}
}

static struct h5_extent largest_free(const struct h5_local_heap_collect *collect)
{
	struct h5_extent largest = {0}, free = {0};

	while ((free = next_free(collect, free.address + free.size)).size)
		if (free.size > largest.size)
			largest = free;
	return largest;
}

/* Makes the segment larger by what becomes a free block at its end. */
static int grow(struct h5_local_heap_collect *collect, uint64_t need)
{
	uint64_t size = round_up(collect->heap.size + h5_max(collect->heap.size, need + BLOCK_MIN));
	uint8_t *bytes, *used;

	if (size > H5_BLOCK_MAX)
		return h5_fail(-EFBIG, collect->address, "local heap: %ju bytes of texts", (uintmax_t)size);
	bytes = realloc(collect->bytes, (size_t)size);
	if (!bytes)
		return out_of_memory(collect->address);
	collect->bytes = bytes;
	used = realloc(collect->used, (size_t)(size / UNIT + 1));
	if (!used)
		return out_of_memory(collect->address);
	collect->used = used;
	memset(bytes + collect->heap.size, 0, (size_t)(size - collect->heap.size));
	/* The last text may end inside a unit. */
	for (uint64_t unit = round_up(collect->heap.size) / UNIT; unit <= size / UNIT; unit++)
		used[unit] = !unit;
	collect->heap.size = size;
	return 0;
}

/* Lists all free blocks in the segment, `first` before all others. */
static int list_free(struct h5_local_heap_collect *collect, struct h5_extent first)
{
	size_t field = h5_file_superblock(collect->heap.file)->size_of_lengths;
	struct h5_extent block = first, next = {0};
	int rc = 0;

	collect->heap.free = first.address;
	while (block.size && !rc) {
		do
			next = next_free(collect, next.address + next.size);
		while (next.size && next.address == first.address);
		memset(collect->bytes + block.address, 0, (size_t)block.size);
		rc = encode_block(collect->heap.file, collect->bytes + block.address, 2 * field,
				  &(struct h5_local_heap_free){next.size ? next.address : H5_LOCAL_HEAP_END,
							       block.size});
		block = next;
	}
	return rc;
}

int h5_local_heap_collect_end(struct h5_local_heap_collect *collect, uint64_t need)
{
	const struct h5_local_heap before = collect->heap;
	struct h5_extent largest = largest_free(collect);
	int rc = 0;

	if (largest.size < need + BLOCK_MIN || largest.size < before.size / 4) {
		rc = grow(collect, need);
		largest = largest_free(collect);
	}
	if (!rc)
		rc = list_free(collect, largest);
	if (!rc)
		rc = store_segment(before.file, collect->address, collect->heap.free, collect->bytes,
				   collect->heap.size);
	if (!rc)
		free_segment(&before);
	return rc;
}

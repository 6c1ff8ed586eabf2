#include "object/heap_batch.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "format/global_heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	SIZE_MOST = 1 << 16,  /* of a collection, unless one object is larger: libhdf5 reads it as a whole */
	BLOCK_LEAST = 1 << 9, /* bytes of memory of a block */
};

static uint8_t lengths_of(const struct h5_heap_batch *batch)
{
	return h5_file_superblock(batch->file)->size_of_lengths;
}

/* Bytes of the prefix of a collection, and of the header of its free space. */
static uint64_t header_size(const struct h5_heap_batch *batch)
{
	return h5_global_heap_room(lengths_of(batch), 0);
}

static int put_to_batch(struct h5_heap_sink *sink, const void *data, size_t n, uint64_t *address,
			uint32_t *index);

void h5_heap_batch_init(struct h5_heap_batch *batch, struct h5_file *file)
{
	*batch = (struct h5_heap_batch){.sink = {put_to_batch},
					.file = file,
					.next_size = H5_GLOBAL_HEAP_LEAST,
					.last = {.address = H5_UNDEF}};
}

/* Frees the memory of blocks from the first one that is not kept. */
static void drop_blocks(struct h5_heap_batch *batch, size_t kept)
{
	while (batch->count > kept) {
		struct h5_heap_block *block = &batch->blocks[--batch->count];

		batch->held -= block->capacity;
		free(block->data);
	}
}

void h5_heap_batch_release(struct h5_heap_batch *batch)
{
	drop_blocks(batch, 0);
	assert(!batch->held);
	free(batch->blocks);
	h5_tx_unwatch(batch->file, &batch->watch);
	h5_heap_batch_init(batch, batch->file);
}

/* ---- putting ---- */

/* True: the object can be added to the collection. Indexes are no limit: a collection of several objects is
 * too small for so many. */
static bool fits(const struct h5_heap_block *block, uint64_t room)
{
	assert(block->index < UINT16_MAX);
	return room <= block->size - block->used;
}

/* True: the last collection may take more. If it is new, it may. Else the last change of its free space must
 * be committed, as one commit can change it only once; and the header of the free space must be a cell. */
static bool may_go_on(const struct h5_heap_batch *batch)
{
	const struct h5_heap_block *last = &batch->last;

	if (last->address == H5_UNDEF || h5_tx_is_swmr(batch->file))
		return false;
	return h5_tx_is_new(batch->file, last->address) ||
	       (batch->transaction != h5_tx_number(batch->file) &&
		h5_tx_is_safe(batch->file, last->address + last->used, header_size(batch)));
}

/* Adds a collection with room for one object at least: the last one, or a new one. */
static int begin(struct h5_heap_batch *batch, uint64_t room)
{
	struct h5_heap_block block = {.size = h5_max(batch->next_size, header_size(batch) + room)};
	int rc = h5_array_reserve(&batch->blocks, &batch->capacity, batch->count + 1, NULL);

	if (rc)
		return rc;
	if (!batch->count && may_go_on(batch) && fits(&batch->last, room)) {
		block = batch->last;
	} else {
		rc = h5_tx_allocate(batch->file, H5_ALLOCATE_METADATA, block.size, &block.address);
		block.used = header_size(batch);
		batch->next_size = h5_min(2 * batch->next_size, SIZE_MOST);
	}
	if (!rc)
		batch->blocks[batch->count++] = block;
	return rc;
}

static int reserve(struct h5_heap_batch *batch, struct h5_heap_block *block, uint64_t n)
{
	/* Few objects come one by one; if collections are large by now, many come. */
	uint64_t wanted =
		block->size > H5_GLOBAL_HEAP_LEAST ? block->size : h5_max(2 * block->capacity, BLOCK_LEAST);
	size_t capacity = (size_t)h5_max(n, h5_min(block->size, wanted));
	uint8_t *data;

	if (n <= block->capacity)
		return 0;
	data = realloc(block->data, capacity);
	if (!data)
		return h5_fail(-ENOMEM, block->address, "global heap collection: out of memory");
	batch->held += capacity - block->capacity;
	block->data = data;
	block->capacity = capacity;
	return 0;
}

static struct h5_writer writer_at(const struct h5_heap_batch *batch, const struct h5_heap_block *block,
				  uint64_t from, uint64_t to)
{
	const struct h5_superblock *sb = h5_file_superblock(batch->file);

	return h5_writer_init(block->data + from, (size_t)(to - from), sb->size_of_offsets,
			      sb->size_of_lengths);
}

/* Encodes an object at the end of the block, where it takes so much room. */
static void add_object(const struct h5_heap_batch *batch, struct h5_heap_block *block, const void *data,
		       size_t n, uint64_t room)
{
	const uint64_t end = block->used + room;
	struct h5_writer w = writer_at(batch, block, block->used, end);

	h5_global_heap_encode_object(&w, ++block->index, data, n);
	assert(!w.err);
	block->used = end;
}

static int put_to_batch(struct h5_heap_sink *sink, const void *data, size_t n, uint64_t *address,
			uint32_t *index)
{
	struct h5_heap_batch *batch = (struct h5_heap_batch *)sink;
	uint64_t room = h5_global_heap_room(lengths_of(batch), n);
	struct h5_heap_block *block;
	int rc = 0;

	assert(n && n <= SIZE_MAX / 4);
	if (lengths_of(batch) < 8 && room > UINT64_C(1) << (8 * lengths_of(batch) - 1))
		return h5_fail(-EFBIG, H5_UNDEF, "a global heap object of %zu bytes", n);
	if (!batch->count || !fits(&batch->blocks[batch->count - 1], room))
		rc = begin(batch, room);
	if (rc)
		return rc;
	/* If this fails, the caller goes back to its mark. */
	block = &batch->blocks[batch->count - 1];
	rc = reserve(batch, block, block->used + room);
	if (rc)
		return rc;
	add_object(batch, block, data, n, room);
	*address = block->address;
	*index = block->index;
	return 0;
}

/* ---- going back ---- */

void h5_heap_batch_back(struct h5_heap_batch *batch, const struct h5_heap_mark *mark)
{
	assert(batch->count >= mark->count);
	for (size_t i = mark->count; i < batch->count; i++)
		if (!batch->blocks[i].from)
			h5_tx_free(batch->file, batch->blocks[i].address, batch->blocks[i].size);
	drop_blocks(batch, mark->count);
	batch->next_size = mark->next_size;
	if (mark->count) {
		batch->blocks[mark->count - 1].used = mark->used;
		batch->blocks[mark->count - 1].index = mark->index;
	}
}

/* ---- flushing ---- */

/* Writes bytes of a committed collection that nothing refers to yet. */
static int patch(struct h5_heap_batch *batch, const struct h5_heap_block *block, uint64_t from, uint64_t to)
{
	int rc = 0;

	for (uint64_t part; from < to && !rc; from += part) {
		uint64_t at = block->address + from;

		part = h5_min(to - from, h5_tx_left_in_cell(batch->file, at));
		rc = h5_tx_patch(batch->file, at, block->data + from, (size_t)part, H5_STAGE_BLOCK);
	}
	return rc;
}

/* Writes all that lies behind the header of the free space. Then the header of the first object takes its
 * place. */
static int extend(struct h5_heap_batch *batch, const struct h5_heap_block *block, uint64_t end)
{
	const uint64_t header = header_size(batch);
	int rc = patch(batch, block, block->from + header, end);

	return rc ? rc
		  : h5_tx_patch(batch->file, block->address + block->from, block->data + block->from,
				(size_t)header, H5_STAGE_BLOCK + 1);
}

/* Gives back the end of a new collection, which is as large as later objects would have needed it: whole
 * pages, so that no bytes are left between collections that nothing could use. Without these, the pages that
 * collections take become free with them. */
static void cut(struct h5_heap_batch *batch, struct h5_heap_block *block)
{
	const uint64_t begin = h5_file_superblock(batch->file)->base + block->address;
	uint64_t size = h5_max(block->used, H5_GLOBAL_HEAP_LEAST);

	size += (H5_CELL - (begin + size) % H5_CELL) % H5_CELL;
	if (block->from || size >= block->size)
		return;
	h5_tx_free(batch->file, block->address + size, block->size - size);
	block->size = size;
}

/* What never changes again is written at once, like raw data, so it takes no more memory until the commit.
 * But cells may change the free space of the last collection later, so it is metadata. */
static int put_new(struct h5_heap_batch *batch, const struct h5_heap_block *block)
{
	const uint8_t *data = block->data + block->from;
	size_t n = (size_t)(block->size - block->from);
	bool changes = block->from || block == &batch->blocks[batch->count - 1];

	return changes ? h5_tx_put(batch->file, block->address + block->from, data, n)
		       : h5_tx_write(batch->file, block->address + block->from, data, n);
}

/* Brings the block into the transaction, with the header of the free space behind its objects. */
static int flush_block(struct h5_heap_batch *batch, struct h5_heap_block *block)
{
	uint64_t end = h5_min(block->used + header_size(batch), block->size);
	bool is_new = h5_tx_is_new(batch->file, block->address);
	struct h5_writer w;
	int rc = reserve(batch, block, is_new ? block->size : end);

	if (rc)
		return rc;
	memset(block->data + block->used, 0, (size_t)((is_new ? block->size : end) - block->used));
	if (!block->from) {
		w = writer_at(batch, block, 0, header_size(batch));
		h5_global_heap_encode_prefix(&w, block->size);
	}
	w = writer_at(batch, block, block->used, end);
	h5_global_heap_encode_free(&w, block->size - block->used);
	if (is_new)
		rc = put_new(batch, block);
	else
		rc = extend(batch, block, end);
	h5_tx_forget(batch->file, block->address);
	return rc;
}

static int flush_all(struct h5_heap_batch *batch)
{
	int rc = 0;

	for (size_t i = 0; i < batch->count && !rc; i++) {
		if (batch->blocks[i].from && batch->blocks[i].address != batch->last.address)
			return h5_fail(-EUCLEAN, batch->blocks[i].address,
				       "global heap collection: other values share it");
		cut(batch, &batch->blocks[i]);
		rc = flush_block(batch, &batch->blocks[i]);
	}
	return rc;
}

int h5_heap_batch_flush(struct h5_heap_batch *batch)
{
	int rc;

	if (!batch->count)
		return 0;
	h5_unit_begin(batch->file);
	rc = h5_unit_end(batch->file, flush_all(batch));
	if (rc)
		return rc;
	batch->last = batch->blocks[batch->count - 1];
	batch->last.from = batch->last.used;
	batch->last.data = NULL;
	batch->last.capacity = 0;
	batch->transaction = h5_tx_number(batch->file);
	h5_tx_watch(batch->file, &batch->watch, &batch->last.address);
	drop_blocks(batch, 0);
	return 0;
}

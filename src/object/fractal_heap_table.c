#include "object/fractal_heap_table.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

static int compute_capacity(struct h5_heap_change *change)
{
	const struct h5_fractal_heap *heap = &change->heap;

	if (heap->start_size <= change->prefix || heap->rows_max > H5_HEAP_ROWS)
		return h5_fail(-EUCLEAN, change->address, "fractal heap: direct blocks of %ju bytes",
			       (uintmax_t)heap->start_size);
	for (unsigned row = 0; row < heap->rows_max; row++) {
		uint64_t size = h5_fractal_heap_row_size(heap, row);
		uint64_t block = row < heap->direct_rows ? size - change->prefix
							 : change->capacity[h5_fractal_heap_rows(heap, size)];

		change->capacity[row + 1] = change->capacity[row] + heap->width * block;
	}
	return 0;
}

int h5_heap_change_load(struct h5_heap_change *change, struct h5_file *file, uint64_t address)
{
	const struct h5_fractal_heap *heap;
	struct h5_lru_entry *ref;
	int rc = h5_heap_header_get(file, address, &ref, &heap);

	if (rc)
		return rc;
	*change = (struct h5_heap_change){.file = file, .address = address, .heap = *heap};
	h5_file_put(file, ref);
	if (change->heap.filtered)
		return h5_fail(-ENOTSUP, address, "fractal heap: changing one with filters is not supported");
	change->prefix =
		h5_fractal_heap_direct_prefix(&change->heap, h5_file_superblock(file)->size_of_offsets);
	return compute_capacity(change);
}

/* Bytes of the address space that an indirect block of so many rows spans. */
static uint64_t span_of(const struct h5_fractal_heap *heap, unsigned rows)
{
	unsigned bits = heap->row_bits + rows - 1;

	return !rows ? 0 : bits > 63 ? UINT64_MAX : (uint64_t)1 << bits;
}

static size_t indirect_size(const struct h5_heap_change *change, unsigned rows)
{
	const struct h5_superblock *sb = h5_file_superblock(change->file);

	return h5_fractal_heap_indirect_size(&change->heap, rows, sb->size_of_offsets, sb->size_of_lengths);
}

static struct h5_writer writer(const struct h5_heap_change *change, void *data, size_t size)
{
	const struct h5_superblock *sb = h5_file_superblock(change->file);

	return h5_writer_init(data, size, sb->size_of_offsets, sb->size_of_lengths);
}

/* ---- the way to a direct block ---- */

/* An indirect block on the way. */
struct level {
	struct h5_heap_request request; /* its address: H5_UNDEF if it is new */
	unsigned old_rows;		/* in the file */
	struct h5_fractal_heap_entry *entries;
	size_t i; /* of the entry on the way */
};

struct way {
	struct level levels[H5_HEAP_ROWS]; /* the root first */
	unsigned count;
	struct h5_heap_request direct;
};

static void way_release(struct way *way)
{
	for (unsigned i = 0; i < way->count; i++)
		free(way->levels[i].entries);
	way->count = 0;
}

/* Adds an indirect block to the way: one of the file, which may get more rows, or a new one. */
static int add_level(struct h5_heap_change *change, struct way *way, const struct h5_heap_request *request,
		     unsigned old_rows)
{
	size_t old = (size_t)old_rows * change->heap.width, all = (size_t)request->rows * change->heap.width;
	struct level *level = &way->levels[way->count];
	const struct h5_heap_indirect *block;
	struct h5_lru_entry *ref;
	int rc;

	assert(way->count < H5_HEAP_ROWS && old_rows <= request->rows);
	*level = (struct level){.request = *request, .old_rows = old_rows};
	level->entries = malloc(all * sizeof *level->entries);
	if (!level->entries)
		return h5_fail(-ENOMEM, request->entry.address, "fractal heap: out of memory");
	way->count++;
	for (size_t i = old; i < all; i++)
		level->entries[i] = (struct h5_fractal_heap_entry){.address = H5_UNDEF};
	if (!old)
		return 0;
	level->request.rows = old_rows;
	rc = h5_heap_indirect_get(change->file, &level->request, &ref, &block);
	level->request.rows = request->rows;
	if (rc)
		return rc;
	memcpy(level->entries, block->entries, old * sizeof *level->entries);
	h5_file_put(change->file, ref);
	return 0;
}

/* Goes on from the last level to the direct block that has the offset. `create`: indirect blocks that are
 * missing on the way are added. */
static int descend(struct h5_heap_change *change, struct way *way, uint64_t offset, bool create)
{
	for (;;) {
		struct level *level = &way->levels[way->count - 1];
		struct h5_fractal_heap_slot slot =
			h5_fractal_heap_locate(&change->heap, offset - level->request.begin);
		struct h5_heap_request next;
		int rc;

		if (slot.row >= level->request.rows)
			return h5_fail(-EUCLEAN, change->address, "fractal heap: no block at offset %ju",
				       (uintmax_t)offset);
		level->i = (size_t)slot.row * change->heap.width + slot.column;
		rc = h5_heap_entry_request(&level->request, &level->entries[level->i], level->i, &next);
		if (rc)
			return rc;
		if (!next.rows) {
			way->direct = next;
			return 0;
		}
		if (next.entry.address == H5_UNDEF && !create)
			return h5_fail(-EUCLEAN, change->address, "fractal heap: no block at offset %ju",
				       (uintmax_t)offset);
		rc = add_level(change, way, &next, next.entry.address == H5_UNDEF ? 0 : next.rows);
		if (rc)
			return rc;
	}
}

static struct h5_heap_request root_request(const struct h5_heap_change *change)
{
	return (struct h5_heap_request){
		.heap = &change->heap,
		.header = change->address,
		.rows = change->heap.root_rows,
		.size = change->heap.start_size,
		.entry = {.address = change->heap.root},
	};
}

/* The way to a block that is there and has the n bytes. */
static int find_way(struct h5_heap_change *change, uint64_t offset, uint64_t n, struct way *way)
{
	struct h5_heap_request root = root_request(change);
	uint64_t at;
	int rc = 0;

	way->count = 0;
	if (change->heap.heap_bits < 64 && offset >> change->heap.heap_bits)
		return h5_fail(-EUCLEAN, change->address, "fractal heap: offset %ju beyond the heap",
			       (uintmax_t)offset);
	if (change->heap.root_rows) {
		rc = add_level(change, way, &root, root.rows);
		if (!rc)
			rc = descend(change, way, offset, false);
	} else {
		way->direct = root;
	}
	at = offset - way->direct.begin;
	if (!rc && (way->direct.entry.address == H5_UNDEF || at < change->prefix || at > way->direct.size ||
		    n > way->direct.size - at))
		rc = h5_fail(-EUCLEAN, change->address, "fractal heap: no %ju bytes at offset %ju",
			     (uintmax_t)n, (uintmax_t)offset);
	return rc;
}

int h5_heap_change_check(struct h5_heap_change *change, uint64_t offset, uint64_t n)
{
	struct way way;
	int rc = find_way(change, offset, n, &way);

	way_release(&way);
	return rc;
}

/* ---- writing ---- */

/* Writes an indirect block. `moves`: it changes together with its parent. */
static int store_level(struct h5_heap_change *change, struct level *level, bool moves, uint64_t *address)
{
	size_t size = indirect_size(change, level->request.rows);
	uint8_t *data = malloc(size);
	struct h5_writer w = writer(change, data, size);
	int rc;

	if (!data)
		return h5_fail(-ENOMEM, change->address, "fractal heap: out of memory");
	*address = level->request.entry.address;
	if (*address != H5_UNDEF && level->old_rows != level->request.rows) {
		h5_tx_free(change->file, *address, indirect_size(change, level->old_rows));
		*address = H5_UNDEF;
	}
	rc = h5_fractal_heap_indirect_encode(&w, &change->heap, change->address, level->request.begin,
					     level->request.rows, level->entries);
	if (!rc)
		rc = moves ? h5_tx_shadow(change->file, address, data, size)
			   : h5_tx_store(change->file, address, data, size, H5_STAGE_HEAP);
	free(data);
	return rc;
}

/* Makes the indirect blocks on the way, and the header, point to the direct block at the address. */
static int store_way(struct h5_heap_change *change, struct way *way, uint64_t address, bool moves)
{
	for (unsigned n = way->count; n; n--) {
		struct level *level = &way->levels[n - 1];
		int rc;

		if (level->entries[level->i].address == address && level->old_rows == level->request.rows)
			return 0;
		level->entries[level->i].address = address;
		rc = store_level(change, level, moves, &address);
		if (rc)
			return rc;
	}
	change->heap.root = address;
	return 0;
}

/* Writes the whole block with the change in it: in place, if it is a cell. */
static int rewrite_block(struct h5_heap_change *change, struct way *way, uint64_t at, const void *data,
			 size_t n)
{
	uint64_t address = way->direct.entry.address;
	size_t size = (size_t)way->direct.size;
	const struct h5_heap_direct *block;
	struct h5_lru_entry *ref;
	struct h5_writer w;
	uint8_t *copy;
	int rc = h5_heap_direct_get(change->file, &way->direct, &ref, &block);

	if (rc)
		return rc;
	copy = malloc(size);
	if (copy)
		memcpy(copy, block->data, size);
	h5_file_put(change->file, ref);
	if (!copy)
		return h5_fail(-ENOMEM, address, "fractal heap direct block: out of memory");
	memcpy(copy + at, data, n);
	w = writer(change, copy, size);
	rc = h5_fractal_heap_direct_encode(&w, &change->heap, change->address, way->direct.begin);
	if (!rc)
		rc = h5_tx_store(change->file, &address, copy, size, H5_STAGE_HEAP);
	free(copy);
	return rc ? rc : store_way(change, way, address, false);
}

/* A block without checksum takes new bytes in place, even if they are no cell: a kill leaves a part of them,
 * and nothing refers to that. */
static int write_bytes(struct h5_heap_change *change, struct way *way, uint64_t at, const void *data,
		       size_t n, bool is_used)
{
	uint64_t block = way->direct.entry.address;
	int rc;

	if (change->heap.checksums || (is_used && !h5_tx_is_safe(change->file, block + at, n)))
		return rewrite_block(change, way, at, data, n);
	rc = h5_tx_patch(change->file, block + at, data, n, H5_STAGE_HEAP);
	if (!rc)
		h5_tx_forget(change->file, block);
	return rc;
}

int h5_heap_change_write(struct h5_heap_change *change, uint64_t offset, const void *data, uint64_t n,
			 bool is_used)
{
	struct way way;
	int rc = find_way(change, offset, n, &way);

	if (!rc)
		rc = write_bytes(change, &way, offset - way.direct.begin, data, (size_t)n, is_used);
	way_release(&way);
	return rc;
}

/* ---- new blocks ---- */

/* Finds the first direct block of at least `size` bytes from *offset on, in a root of so many rows. False:
 * there is none; *offset is then at the end of the root, or behind. */
static bool find_place(const struct h5_fractal_heap *heap, unsigned rows, uint64_t size, uint64_t *offset)
{
	uint64_t begin = 0, all = span_of(heap, rows);
	unsigned of = rows; /* of the indirect block at `begin` */

	while (*offset < all) {
		struct h5_fractal_heap_slot slot = h5_fractal_heap_locate(heap, *offset - begin);
		unsigned child = slot.row < heap->direct_rows ? 0 : h5_fractal_heap_rows(heap, slot.size);
		uint64_t largest = slot.row < heap->direct_rows
					   ? slot.size
					   : h5_fractal_heap_row_size(heap, child ? child - 1 : 0);

		if (slot.row >= of || (slot.row >= heap->direct_rows && !child))
			return false;
		if (slot.row < heap->direct_rows && slot.size >= size && begin + slot.begin == *offset)
			return true;
		if (slot.row >= heap->direct_rows && h5_min(largest, heap->direct_max) >= size) {
			begin += slot.begin;
			of = child;
			continue;
		}
		/* Passes over the block, and begins again at the root. */
		*offset = begin + slot.begin + slot.size;
		begin = 0;
		of = rows;
	}
	return false;
}

static int new_direct_block(struct h5_heap_change *change, uint64_t begin, uint64_t size, uint64_t *address)
{
	uint8_t *data = calloc(1, (size_t)size);
	struct h5_writer w = writer(change, data, (size_t)size);
	int rc = data ? h5_fractal_heap_direct_encode(&w, &change->heap, change->address, begin)
		      : h5_fail(-ENOMEM, change->address, "fractal heap direct block: out of memory");

	*address = H5_UNDEF;
	if (!rc)
		rc = h5_tx_shadow(change->file, address, data, (size_t)size);
	free(data);
	return rc;
}

/* The first block of a heap is the root itself. */
static int grow_root_block(struct h5_heap_change *change, uint64_t *offset, uint64_t *room)
{
	struct h5_fractal_heap *heap = &change->heap;
	int rc = new_direct_block(change, 0, heap->start_size, &heap->root);

	*offset = change->prefix;
	*room = heap->start_size - change->prefix;
	heap->root_rows = 0;
	heap->managed = heap->allocated = heap->start_size;
	heap->free = *room;
	heap->iterator = 0;
	return rc;
}

/* The way to the place of a new block, in a root of `rows` rows: it may be new, or get more rows. */
static int find_new_way(struct h5_heap_change *change, unsigned rows, uint64_t offset, struct way *way)
{
	struct h5_heap_request root = root_request(change);
	unsigned old_rows = root.rows;
	int rc;

	way->count = 0;
	root.rows = rows;
	if (!old_rows)
		root.entry.address = H5_UNDEF;
	rc = add_level(change, way, &root, old_rows);
	if (!rc && !old_rows)
		way->levels[0].entries[0].address = change->heap.root;
	if (!rc)
		rc = descend(change, way, offset, true);
	if (!rc && (way->direct.begin != offset || way->direct.entry.address != H5_UNDEF))
		rc = h5_fail(-EUCLEAN, change->address,
			     "fractal heap: the iterator is at offset %ju, inside a block",
			     (uintmax_t)offset);
	return rc;
}

/* Finds the place of the next block of at least `size` bytes: its offset, and rows of the root. */
static int next_place(const struct h5_heap_change *change, uint64_t size, unsigned *rows, uint64_t *offset)
{
	const struct h5_fractal_heap *heap = &change->heap;

	*rows = heap->root_rows ? heap->root_rows : heap->start_rows ? heap->start_rows : heap->rows_max;
	*rows = (unsigned)h5_min(*rows, heap->rows_max);
	*offset = heap->root_rows ? heap->iterator : heap->root == H5_UNDEF ? 0 : heap->start_size;
	while (!find_place(heap, *rows, size, offset)) {
		if (*rows == heap->rows_max)
			return h5_fail(-ENOSPC, change->address, "fractal heap: it is full");
		*rows = (unsigned)h5_min(2 * *rows, heap->rows_max);
	}
	return 0;
}

int h5_heap_change_grow(struct h5_heap_change *change, uint64_t n, uint64_t *offset, uint64_t *room)
{
	struct h5_fractal_heap *heap = &change->heap;
	uint64_t size = heap->start_size, address, old_capacity;
	struct way way;
	unsigned rows;
	int rc;

	while (size < heap->direct_max && size - change->prefix < n)
		size *= 2;
	if (size - change->prefix < n)
		return h5_fail(-EUCLEAN, change->address, "fractal heap: managed objects of %ju bytes",
			       (uintmax_t)n);
	if (heap->root == H5_UNDEF && size == heap->start_size)
		return grow_root_block(change, offset, room);
	rc = next_place(change, size, &rows, offset);
	if (rc)
		return rc;
	old_capacity = heap->root_rows		? change->capacity[heap->root_rows]
		       : heap->root == H5_UNDEF ? 0
						: heap->start_size - change->prefix;
	rc = find_new_way(change, rows, *offset, &way);
	if (!rc)
		rc = new_direct_block(change, *offset, way.direct.size, &address);
	if (!rc)
		rc = store_way(change, &way, address, true);
	if (!rc) {
		heap->root_rows = (uint16_t)rows;
		heap->managed = span_of(heap, rows);
		heap->allocated += way.direct.size;
		heap->free += change->capacity[rows] - old_capacity;
		heap->iterator = *offset + way.direct.size;
		*offset += change->prefix;
		*room = way.direct.size - change->prefix;
	}
	way_release(&way);
	return rc;
}

#include "object/global_heap_write.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "format/global_heap.h"

#include <assert.h>
#include <stdlib.h>

static int put_to_writer(struct h5_heap_sink *sink, const void *data, size_t n, uint64_t *address,
			 uint32_t *index)
{
	return h5_global_heap_put((struct h5_global_heap_writer *)sink, data, n, address, index);
}

void h5_global_heap_writer_init(struct h5_global_heap_writer *writer, struct h5_file *file)
{
	*writer = (struct h5_global_heap_writer){
		.sink = {put_to_writer}, .file = file, .open = {.address = H5_UNDEF}};
}

void h5_global_heap_writer_release(struct h5_global_heap_writer *writer)
{
	h5_tx_unwatch(writer->file, &writer->watch);
}

/* True: the object can be added to the open collection. Indexes are no limit: a collection of several objects
 * is too small for so many. */
static bool fits(const struct h5_file *file, const struct h5_heap_open *open, uint64_t room)
{
	assert(open->index < UINT16_MAX);
	return open->address != H5_UNDEF && open->transaction == h5_tx_number(file) &&
	       room <= open->size - open->used;
}

/* Writes the object, and the free space behind it, from byte `from` of the collection on. A new collection
 * begins with its prefix. */
static int store(struct h5_global_heap_writer *writer, uint64_t from, const void *data, size_t n)
{
	const struct h5_superblock *sb = h5_file_superblock(writer->file);
	uint64_t header = h5_global_heap_room(sb->size_of_lengths, 0), end, size;
	struct h5_writer w;
	uint8_t *block;
	int rc;

	end = writer->open.used + h5_global_heap_room(sb->size_of_lengths, n);
	/* All bytes of a new collection are written. Of an old one the rest is zero already. */
	size = (from ? h5_min(end + header, writer->open.size) : writer->open.size) - from;
	block = h5_calloc(size, 1);
	if (!block)
		return h5_fail(-ENOMEM, writer->open.address, "global heap collection: out of memory");
	w = h5_writer_init(block, (size_t)size, sb->size_of_offsets, sb->size_of_lengths);
	if (!from)
		h5_global_heap_encode_prefix(&w, writer->open.size);
	h5_global_heap_encode_object(&w, (uint16_t)(writer->open.index + 1), data, n);
	h5_global_heap_encode_free(&w, writer->open.size - end);
	rc = h5_writer_check(&w, "global heap collection");
	if (!rc)
		rc = h5_tx_put(writer->file, writer->open.address + from, block, (size_t)size);
	free(block);
	/* The collection is cached under its own address. */
	h5_tx_forget(writer->file, writer->open.address);
	if (rc)
		return rc;
	writer->open.used = end;
	writer->open.index++;
	return 0;
}

/* Begins a collection with room for one object at least. */
static int begin(struct h5_global_heap_writer *writer, uint64_t room)
{
	uint8_t lengths = h5_file_superblock(writer->file)->size_of_lengths;
	uint64_t prefix = h5_global_heap_room(lengths, 0);
	int rc;

	writer->open.size = h5_max(H5_GLOBAL_HEAP_LEAST, prefix + room);
	writer->open.used = prefix;
	writer->open.index = 0;
	writer->open.transaction = h5_tx_number(writer->file);
	rc = h5_tx_allocate(writer->file, H5_ALLOCATE_METADATA, writer->open.size, &writer->open.address);
	assert(rc || writer->open.size % 8 == 0);
	h5_tx_watch(writer->file, &writer->watch, &writer->open.address);
	return rc;
}

/* Puts the object into a collection of its own, or one that it opens. The writer keeps the collection that
 * has more space left. */
static int put_new(struct h5_global_heap_writer *writer, uint64_t room, const void *data, size_t n,
		   uint64_t *address)
{
	const struct h5_heap_open open = writer->open;
	int rc = begin(writer, room);

	if (!rc)
		rc = store(writer, 0, data, n);
	if (rc)
		return rc;
	*address = writer->open.address;
	if (fits(writer->file, &open, writer->open.size - writer->open.used))
		writer->open = open;
	return 0;
}

static int put(struct h5_global_heap_writer *writer, const void *data, size_t n, uint64_t *address,
	       uint32_t *index)
{
	uint8_t lengths = h5_file_superblock(writer->file)->size_of_lengths;
	uint64_t room = h5_global_heap_room(lengths, n);

	if (lengths < 8 && room > UINT64_C(1) << (8 * lengths - 1))
		return h5_fail(-EFBIG, H5_UNDEF, "a global heap object of %zu bytes", n);
	if (!fits(writer->file, &writer->open, room)) {
		*index = 1;
		return put_new(writer, room, data, n, address);
	}
	*address = writer->open.address;
	*index = writer->open.index + 1u;
	return store(writer, writer->open.used, data, n);
}

int h5_global_heap_put(struct h5_global_heap_writer *writer, const void *data, size_t n, uint64_t *address,
		       uint32_t *index)
{
	int rc;

	h5_unit_begin(writer->file);
	assert(n && n <= SIZE_MAX / 2);
	rc = h5_unit_save(writer->file, &writer->open, sizeof writer->open);
	if (!rc)
		rc = put(writer, data, n, address, index);
	return h5_unit_end(writer->file, rc);
}

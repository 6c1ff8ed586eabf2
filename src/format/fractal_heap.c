#include "format/fractal_heap.h"

#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/lookup3.h"

#include <assert.h>
#include <string.h>

enum {
	FLAG_HUGE_WRAPPED = 0x01,
	FLAG_CHECKSUMS = 0x02,
	TINY_SHORT = 16, /* bytes that the 4-bit length of a tiny ID counts */
};

static bool is_power(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* Checks the parameters of the doubling table, and computes what follows from them. */
static int check_table(struct h5_fractal_heap *heap, uint64_t address)
{
	unsigned start_bits = h5_log2(heap->start_size), direct_bits = h5_log2(heap->direct_max);

	if (!heap->id_size)
		return h5_fail(-EUCLEAN, address, "fractal heap: IDs of no bytes");
	if (!is_power(heap->width) || !is_power(heap->start_size) || !is_power(heap->direct_max) ||
	    heap->start_size > heap->direct_max)
		return h5_fail(-EUCLEAN, address, "fractal heap: nonsense doubling table");
	if (heap->direct_max > H5_FRACTAL_HEAP_DIRECT_MAX)
		return h5_fail(-ENOTSUP, address,
			       "fractal heap: direct blocks of %llu bytes are not supported",
			       (unsigned long long)heap->direct_max);
	heap->row_bits = start_bits + h5_log2(heap->width);
	if (heap->heap_bits > 64 || heap->heap_bits < heap->row_bits || heap->heap_bits < direct_bits)
		return h5_fail(-EUCLEAN, address, "fractal heap: address space of %u bits", heap->heap_bits);
	heap->direct_rows = direct_bits - start_bits + 2;
	heap->rows_max = heap->heap_bits - heap->row_bits + 1;
	if (heap->root_rows > heap->rows_max)
		return h5_fail(-EUCLEAN, address, "fractal heap: root indirect block of %u rows",
			       heap->root_rows);
	heap->offset_size = (heap->heap_bits + 7u) / 8;
	heap->length_size = (unsigned)h5_min((direct_bits + 7) / 8, h5_limit_size(heap->managed_max));
	return 0;
}

int h5_fractal_heap_compute(struct h5_fractal_heap *heap, unsigned size_of_offsets, unsigned size_of_lengths,
			    uint64_t address)
{
	unsigned filters = heap->filtered ? size_of_lengths + 4u : 0;

	heap->huge_in_id = heap->id_size > size_of_offsets + size_of_lengths + filters;
	return check_table(heap, address);
}

/* The header.
 *
 *   size  field
 *      4  signature FRHP
 *      1  version, 0
 *      2  heap ID length
 *      2  I/O filters' encoded length F
 *      1  flags
 *      4  maximum size of managed objects
 *      L  next huge object ID
 *      O  version 2 B-tree of huge objects
 *      L  free space in managed blocks
 *      O  free space manager
 *  8 x L  managed space, allocated managed space, allocation iterator, managed objects,
 *         size and number of huge objects, size and number of tiny objects
 *      2  table width
 *      L  starting block size
 *      L  maximum direct block size
 *      2  maximum heap size, log2
 *      2  starting number of rows of the root indirect block
 *      O  root block
 *      2  current number of rows of the root indirect block
 *         only if F is not 0:
 *      L    size of the filtered root direct block
 *      4    I/O filter mask
 *      F    filter pipeline message
 *      4  checksum                                                               */
int h5_fractal_heap_size(struct h5_reader *prefix, size_t *size)
{
	unsigned lengths = prefix->size_of_lengths, offsets = prefix->size_of_offsets, filters;

	if (!h5_read_signature(prefix, "FRHP"))
		return h5_fail(-EUCLEAN, prefix->address, "fractal heap: wrong signature");
	h5_reader_skip(prefix, 3);
	filters = h5_read_u16(prefix);
	*size = h5_fractal_heap_header_size(offsets, lengths);
	if (filters)
		*size += lengths + 4 + filters;
	return h5_reader_check(prefix, "fractal heap");
}

int h5_fractal_heap_decode(struct h5_reader *r, struct h5_fractal_heap *heap)
{
	struct h5_reader pipeline;
	uint16_t filters;
	uint8_t version, flags;
	int rc;

	memset(heap, 0, sizeof *heap);
	h5_reader_skip(r, 4);
	version = h5_read_u8(r);
	if (version)
		return h5_fail(-EUCLEAN, r->address, "fractal heap: version %u", version);
	heap->id_size = h5_read_u16(r);
	filters = h5_read_u16(r);
	flags = h5_read_u8(r);
	heap->huge_wrapped = flags & FLAG_HUGE_WRAPPED;
	heap->checksums = flags & FLAG_CHECKSUMS;
	heap->managed_max = h5_read_u32(r);
	heap->huge_last = h5_read_length(r);
	heap->huge_btree = h5_read_offset(r);
	heap->free = h5_read_length(r);
	heap->free_space = h5_read_offset(r);
	heap->managed = h5_read_length(r);
	heap->allocated = h5_read_length(r);
	heap->iterator = h5_read_length(r);
	heap->objects = h5_read_length(r);
	heap->huge_bytes = h5_read_length(r);
	heap->huge_objects = h5_read_length(r);
	heap->tiny_bytes = h5_read_length(r);
	heap->tiny_objects = h5_read_length(r);
	heap->width = h5_read_u16(r);
	heap->start_size = h5_read_length(r);
	heap->direct_max = h5_read_length(r);
	heap->heap_bits = h5_read_u16(r);
	heap->start_rows = h5_read_u16(r);
	heap->root = h5_read_offset(r);
	heap->root_rows = h5_read_u16(r);
	heap->filtered = filters;
	if (filters) {
		heap->root_stored = h5_read_length(r);
		heap->root_mask = h5_read_u32(r);
	}
	pipeline = h5_reader_sub(r, filters);
	rc = h5_reader_checksum(r, "fractal heap");
	if (!rc)
		rc = h5_fractal_heap_compute(heap, r->size_of_offsets, r->size_of_lengths, r->address);
	if (!rc && filters)
		rc = h5_pipeline_decode(&pipeline, &heap->pipeline);
	return rc;
}

size_t h5_fractal_heap_header_size(unsigned size_of_offsets, unsigned size_of_lengths)
{
	return H5_FRACTAL_HEAP_PREFIX + 5 + 12 * size_of_lengths + 3 * size_of_offsets + 8 + 4;
}

int h5_fractal_heap_encode(struct h5_writer *w, const struct h5_fractal_heap *heap)
{
	assert(!heap->filtered);
	h5_write_bytes(w, "FRHP", 4);
	h5_write_u8(w, 0);
	h5_write_u16(w, heap->id_size);
	h5_write_u16(w, 0);
	h5_write_u8(w, (heap->huge_wrapped ? FLAG_HUGE_WRAPPED : 0) | (heap->checksums ? FLAG_CHECKSUMS : 0));
	h5_write_u32(w, heap->managed_max);
	h5_write_length(w, heap->huge_last);
	h5_write_offset(w, heap->huge_btree);
	h5_write_length(w, heap->free);
	h5_write_offset(w, heap->free_space);
	h5_write_length(w, heap->managed);
	h5_write_length(w, heap->allocated);
	h5_write_length(w, heap->iterator);
	h5_write_length(w, heap->objects);
	h5_write_length(w, heap->huge_bytes);
	h5_write_length(w, heap->huge_objects);
	h5_write_length(w, heap->tiny_bytes);
	h5_write_length(w, heap->tiny_objects);
	h5_write_u16(w, heap->width);
	h5_write_length(w, heap->start_size);
	h5_write_length(w, heap->direct_max);
	h5_write_u16(w, heap->heap_bits);
	h5_write_u16(w, heap->start_rows);
	h5_write_offset(w, heap->root);
	h5_write_u16(w, heap->root_rows);
	h5_write_checksum(w);
	return h5_writer_check(w, "fractal heap");
}

void h5_fractal_heap_release(struct h5_fractal_heap *heap)
{
	h5_pipeline_release(&heap->pipeline);
}

uint64_t h5_fractal_heap_row_size(const struct h5_fractal_heap *heap, unsigned row)
{
	return row ? heap->start_size << (row - 1) : heap->start_size;
}

unsigned h5_fractal_heap_rows(const struct h5_fractal_heap *heap, uint64_t size)
{
	return size >> heap->row_bits ? h5_log2(size) - heap->row_bits + 1 : 0;
}

struct h5_fractal_heap_slot h5_fractal_heap_locate(const struct h5_fractal_heap *heap, uint64_t offset)
{
	struct h5_fractal_heap_slot slot = {0};
	uint64_t row_begin = 0;

	if (offset >> heap->row_bits) {
		unsigned high = h5_log2(offset);

		slot.row = high - heap->row_bits + 1;
		row_begin = (uint64_t)1 << high;
	}
	slot.size = h5_fractal_heap_row_size(heap, slot.row);
	slot.column = (unsigned)((offset - row_begin) / slot.size);
	slot.begin = row_begin + slot.column * slot.size;
	return slot;
}

/* The prefix of direct and indirect blocks.
 *
 *   size  field
 *      4  signature FHDB or FHIB
 *      1  version, 0
 *      O  address of the heap's header
 *         offset of the block in the heap's address space: as many bytes as the IDs have for offsets */
static int read_block_prefix(struct h5_reader *r, const struct h5_fractal_heap *heap, const char *signature,
			     uint64_t header, uint64_t offset)
{
	bool is_block = h5_read_signature(r, signature);
	uint8_t version = h5_read_u8(r);
	uint64_t owner = h5_read_offset(r), place = h5_read_uint(r, heap->offset_size);

	if (!is_block)
		return h5_fail(-EUCLEAN, r->address, "fractal heap block: wrong signature");
	if (version)
		return h5_fail(-EUCLEAN, r->address, "fractal heap block: version %u", version);
	if (owner != header)
		return h5_fail(-EUCLEAN, r->address, "fractal heap block: it belongs to another heap");
	if (place != offset)
		return h5_fail(-EUCLEAN, r->address, "fractal heap block: it belongs to another offset");
	return h5_reader_check(r, "fractal heap block");
}

static void write_block_prefix(struct h5_writer *w, const struct h5_fractal_heap *heap, const char *signature,
			       uint64_t header, uint64_t offset)
{
	h5_write_bytes(w, signature, 4);
	h5_write_u8(w, 0);
	h5_write_offset(w, header);
	h5_write_uint(w, offset, heap->offset_size);
}

size_t h5_fractal_heap_direct_prefix(const struct h5_fractal_heap *heap, uint8_t size_of_offsets)
{
	return 5u + size_of_offsets + heap->offset_size + (heap->checksums ? 4 : 0);
}

/* After the prefix, if the heap has them: a checksum of the whole block with zeros in place of the checksum.
 */
int h5_fractal_heap_direct_check(struct h5_reader *r, uint8_t *block, const struct h5_fractal_heap *heap,
				 uint64_t header, uint64_t offset)
{
	int rc = read_block_prefix(r, heap, "FHDB", header, offset);
	size_t at = h5_reader_at(r);
	uint32_t stored;

	if (rc || !heap->checksums)
		return rc;
	stored = h5_read_u32(r);
	rc = h5_reader_check(r, "fractal heap block");
	if (rc)
		return rc;
	memset(block + at, 0, 4);
	if (!h5_checksum_matches(stored, h5_lookup3(block, (size_t)(r->end - r->begin), 0)))
		return h5_fail(-EUCLEAN, r->address, "fractal heap direct block: wrong checksum");
	return 0;
}

int h5_fractal_heap_direct_encode(struct h5_writer *w, const struct h5_fractal_heap *heap, uint64_t header,
				  uint64_t offset)
{
	uint8_t *checksum;

	write_block_prefix(w, heap, "FHDB", header, offset);
	if (heap->checksums && !w->err) {
		checksum = w->p;
		h5_write_u32(w, 0);
		if (!w->err)
			h5_uint_to(checksum, h5_lookup3(w->begin, (size_t)(w->end - w->begin), 0), 4);
	}
	return h5_writer_check(w, "fractal heap direct block");
}

static size_t direct_entries(const struct h5_fractal_heap *heap, unsigned rows)
{
	return (size_t)h5_min(rows, heap->direct_rows) * heap->width;
}

size_t h5_fractal_heap_indirect_size(const struct h5_fractal_heap *heap, unsigned rows,
				     uint8_t size_of_offsets, uint8_t size_of_lengths)
{
	size_t filters = heap->filtered ? size_of_lengths + 4u : 0;

	return 5u + size_of_offsets + heap->offset_size + (size_t)rows * heap->width * size_of_offsets +
	       direct_entries(heap, rows) * filters + 4;
}

/* After the prefix:
 *
 *   size  field
 *         for each block of the rows of direct blocks:
 *      O    address
 *      L    size of the filtered block, if the heap is filtered
 *      4    filter mask, if the heap is filtered
 *         for each block of the other rows:
 *      O    address of an indirect block
 *      4  checksum                                             */
int h5_fractal_heap_indirect_decode(struct h5_reader *r, const struct h5_fractal_heap *heap, uint64_t header,
				    uint64_t offset, unsigned rows, struct h5_fractal_heap_entry *entries)
{
	size_t direct = direct_entries(heap, rows), all = (size_t)rows * heap->width;
	int rc = read_block_prefix(r, heap, "FHIB", header, offset);

	if (rc)
		return rc;
	for (size_t i = 0; i < all; i++) {
		entries[i] = (struct h5_fractal_heap_entry){.address = h5_read_offset(r)};
		if (i < direct && heap->filtered) {
			entries[i].stored = h5_read_length(r);
			entries[i].mask = h5_read_u32(r);
		}
	}
	return h5_reader_checksum(r, "fractal heap indirect block");
}

int h5_fractal_heap_indirect_encode(struct h5_writer *w, const struct h5_fractal_heap *heap, uint64_t header,
				    uint64_t offset, unsigned rows,
				    const struct h5_fractal_heap_entry *entries)
{
	assert(!heap->filtered);
	write_block_prefix(w, heap, "FHIB", header, offset);
	for (size_t i = 0; i < (size_t)rows * heap->width; i++)
		h5_write_offset(w, entries[i].address);
	h5_write_checksum(w);
	return h5_writer_check(w, "fractal heap indirect block");
}

/* Tiny: length - 1 in bits 0-3 of the first byte; in heaps whose IDs have more room, in these and a second
 * byte. */
static void read_tiny(struct h5_reader *r, const struct h5_fractal_heap *heap, uint8_t first,
		      struct h5_fractal_heap_id *id)
{
	id->size = first & 0x0f;
	if (heap->id_size > TINY_SHORT + 2)
		id->size = id->size << 8 | h5_read_u8(r);
	id->size++;
	id->data = h5_read_bytes(r, id->size);
}

/* Huge: address and size if the heap's IDs have room for them, else the key of a record in the B-tree. */
static void read_huge(struct h5_reader *r, const struct h5_fractal_heap *heap, struct h5_fractal_heap_id *id)
{
	id->direct = heap->huge_in_id;
	if (!id->direct) {
		id->key = h5_read_uint(r, (unsigned)h5_min(heap->id_size - 1u, 8));
		return;
	}
	id->address = h5_read_offset(r);
	id->size = id->memory_size = h5_read_length(r);
	if (heap->filtered) {
		id->mask = h5_read_u32(r);
		id->memory_size = h5_read_length(r);
	}
}

/* First byte: version in bits 6-7 (0), type in bits 4-5. */
int h5_fractal_heap_id_decode(struct h5_reader *r, const struct h5_fractal_heap *heap,
			      struct h5_fractal_heap_id *id)
{
	uint8_t first = h5_read_u8(r);

	memset(id, 0, sizeof *id);
	if (first >> 6 || (first >> 4 & 3) > H5_HEAP_ID_TINY)
		return h5_fail(-EUCLEAN, r->address, "fractal heap: nonsense ID (first byte %#x)", first);
	id->type = first >> 4 & 3;
	if (id->type == H5_HEAP_ID_TINY) {
		read_tiny(r, heap, first, id);
	} else if (id->type == H5_HEAP_ID_HUGE) {
		read_huge(r, heap, id);
	} else {
		id->offset = h5_read_uint(r, heap->offset_size);
		id->size = h5_read_uint(r, heap->length_size);
	}
	return h5_reader_check(r, "fractal heap ID");
}

int h5_fractal_heap_id_encode(struct h5_writer *w, const struct h5_fractal_heap *heap,
			      const struct h5_fractal_heap_id *id)
{
	size_t used;

	assert(!heap->filtered && id->type != H5_HEAP_ID_TINY);
	h5_write_u8(w, (uint8_t)(id->type << 4));
	if (id->type == H5_HEAP_ID_MANAGED) {
		h5_write_uint(w, id->offset, heap->offset_size);
		h5_write_uint(w, id->size, heap->length_size);
	} else if (id->direct) {
		h5_write_offset(w, id->address);
		h5_write_length(w, id->size);
	} else {
		h5_write_uint(w, id->key, (unsigned)h5_min(heap->id_size - 1u, 8));
	}
	used = h5_writer_at(w);
	if (used <= heap->id_size)
		h5_write_fill(w, 0, heap->id_size - used);
	return h5_writer_check(w, "fractal heap ID");
}

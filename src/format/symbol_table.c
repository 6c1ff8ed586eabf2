#include "format/symbol_table.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH_PAD = 16 };

/*   size  field
 *      O  version 1 B-tree
 *      O  local heap      */
int h5_symbol_table_decode(struct h5_reader *r, struct h5_symbol_table *table)
{
	table->btree = h5_read_offset(r);
	table->heap = h5_read_offset(r);
	return h5_reader_check(r, "symbol table message");
}

int h5_symbol_table_encode(struct h5_writer *w, const struct h5_symbol_table *table)
{
	h5_write_offset(w, table->btree);
	h5_write_offset(w, table->heap);
	return h5_writer_check(w, "symbol table message");
}

/* Node.
 *
 *   offset  size  field
 *        0     4  signature SNOD
 *        4     1  version, 1
 *        5     1  reserved
 *        6     2  number of symbols
 *        8        entries
 *
 * Entry.
 *
 *   size  field
 *      L  link name offset (writers: L, as all offsets in a local heap; the specification: O)
 *      O  object header address
 *      4  cache type
 *      4  reserved
 *     16  scratch pad; of a soft link: 4 bytes, offset of its value */
static size_t entry_size(uint8_t size_of_offsets, uint8_t size_of_lengths)
{
	return (size_t)size_of_lengths + size_of_offsets + 8 + SCRATCH_PAD;
}

int h5_symbol_node_size(struct h5_reader *prefix, size_t *size)
{
	size_t entry = entry_size(prefix->size_of_offsets, prefix->size_of_lengths);
	uint8_t version;

	if (!h5_read_signature(prefix, "SNOD"))
		return h5_fail(-EUCLEAN, prefix->address, "symbol table node: wrong signature");
	version = h5_read_u8(prefix);
	if (version != 1)
		return h5_fail(-EUCLEAN, prefix->address, "symbol table node: version %u", version);
	h5_reader_skip(prefix, 1);
	*size = H5_SYMBOL_NODE_PREFIX + h5_read_u16(prefix) * entry;
	return h5_reader_check(prefix, "symbol table node");
}

int h5_symbol_node_decode(struct h5_reader *r, struct h5_symbol_node **out, size_t *cost)
{
	struct h5_symbol_node *node;
	unsigned count;
	int rc;

	h5_reader_skip(r, 6);
	count = h5_read_u16(r);
	*cost = sizeof *node + count * sizeof *node->symbols;
	node = malloc(*cost);
	if (!node)
		return h5_fail(-ENOMEM, r->address, "symbol table node: out of memory");
	node->count = count;
	for (unsigned i = 0; i < count; i++) {
		struct h5_symbol *symbol = &node->symbols[i];

		symbol->name = h5_read_length(r);
		symbol->address = h5_read_offset(r);
		symbol->cache = h5_read_u32(r);
		h5_reader_skip(r, 4);
		symbol->target = h5_read_u32(r);
		h5_reader_skip(r, SCRATCH_PAD - 4);
	}
	rc = h5_reader_check(r, "symbol table node");
	if (rc)
		free(node);
	else
		*out = node;
	return rc;
}

size_t h5_symbol_node_room(unsigned k, uint8_t size_of_offsets, uint8_t size_of_lengths)
{
	return H5_SYMBOL_NODE_PREFIX + 2 * (size_t)k * entry_size(size_of_offsets, size_of_lengths);
}

static unsigned count_of(const struct h5_writer *node)
{
	return (unsigned)h5_uint_from(node->begin + 6, 2);
}

static void set_count(struct h5_writer *node, unsigned count)
{
	h5_uint_to(node->begin + 6, count, 2);
}

/* The bytes of entry i, which may be the end of the last one. */
static uint8_t *entry_at(const struct h5_writer *node, unsigned i)
{
	uint8_t *entry = node->begin + H5_SYMBOL_NODE_PREFIX +
			 i * entry_size(node->size_of_offsets, node->size_of_lengths);

	assert(entry <= node->end);
	return entry;
}

void h5_symbol_node_clear(struct h5_writer *node)
{
	h5_write_bytes(node, "SNOD", 4);
	h5_write_u8(node, 1);
	h5_write_fill(node, 0, (size_t)(node->end - node->p));
}

int h5_symbol_node_replace(struct h5_writer *node, unsigned i, const struct h5_symbol *symbol)
{
	struct h5_writer w =
		h5_writer_init(entry_at(node, i), entry_size(node->size_of_offsets, node->size_of_lengths),
			       node->size_of_offsets, node->size_of_lengths);

	assert(i < count_of(node));
	h5_write_length(&w, symbol->name);
	h5_write_offset(&w, symbol->address);
	h5_write_u32(&w, symbol->cache);
	h5_write_u32(&w, 0);
	h5_write_u32(&w, symbol->target);
	h5_write_fill(&w, 0, SCRATCH_PAD - 4);
	return h5_writer_check(&w, "symbol table entry");
}

int h5_symbol_node_insert(struct h5_writer *node, unsigned i, const struct h5_symbol *symbol)
{
	unsigned count = count_of(node);
	uint8_t *end = entry_at(node, count + 1);

	assert(i <= count);
	memmove(entry_at(node, i + 1), entry_at(node, i), (size_t)(end - entry_at(node, i + 1)));
	set_count(node, count + 1);
	return h5_symbol_node_replace(node, i, symbol);
}

void h5_symbol_node_remove(struct h5_writer *node, unsigned i)
{
	unsigned count = count_of(node);
	uint8_t *last = entry_at(node, count - 1), *end = entry_at(node, count);

	assert(i < count);
	memmove(entry_at(node, i), entry_at(node, i + 1), (size_t)(end - entry_at(node, i + 1)));
	memset(last, 0, (size_t)(end - last));
	set_count(node, count - 1);
}

void h5_symbol_node_split(struct h5_writer *node, unsigned i, struct h5_writer *right)
{
	unsigned count = count_of(node);
	size_t n = (size_t)(entry_at(node, count) - entry_at(node, i));

	assert(i <= count && !count_of(right));
	memcpy(entry_at(right, 0), entry_at(node, i), n);
	memset(entry_at(node, i), 0, n);
	set_count(right, count - i);
	set_count(node, i);
}

/*   size  field
 *      4  signature HEAP
 *      1  version, 0
 *      3  reserved
 *      L  data segment size
 *      L  offset to the head of the free list
 *      O  address of the data segment        */
int h5_local_heap_decode(struct h5_reader *r, struct h5_local_heap_header *heap)
{
	bool is_heap = h5_read_signature(r, "HEAP");
	uint8_t version = h5_read_u8(r);

	if (!is_heap)
		return h5_fail(-EUCLEAN, r->address, "local heap: wrong signature");
	if (version)
		return h5_fail(-EUCLEAN, r->address, "local heap: version %u", version);
	h5_reader_skip(r, 3);
	heap->size = h5_read_length(r);
	heap->free = h5_read_length(r);
	heap->data = h5_read_offset(r);
	return h5_reader_check(r, "local heap");
}

/*   size  field
 *      L  offset of the next free block
 *      L  bytes of this one            */
int h5_local_heap_free_decode(struct h5_reader *r, struct h5_local_heap_free *block)
{
	block->next = h5_read_length(r);
	block->size = h5_read_length(r);
	return h5_reader_check(r, "free block of a local heap");
}

int h5_local_heap_encode(struct h5_writer *w, const struct h5_local_heap_header *heap)
{
	h5_write_bytes(w, "HEAP", 4);
	h5_write_fill(w, 0, 4);
	h5_write_length(w, heap->size);
	h5_write_length(w, heap->free);
	h5_write_offset(w, heap->data);
	return h5_writer_check(w, "local heap");
}

int h5_local_heap_free_encode(struct h5_writer *w, const struct h5_local_heap_free *block)
{
	h5_write_length(w, block->next);
	h5_write_length(w, block->size);
	return h5_writer_check(w, "free block of a local heap");
}

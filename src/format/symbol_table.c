#include "format/symbol_table.h"

#include "base/error.h"

#include <stdlib.h>

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
int h5_symbol_node_size(struct h5_reader *prefix, size_t *size)
{
	size_t entry = (size_t)prefix->size_of_lengths + prefix->size_of_offsets + 8 + SCRATCH_PAD;
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

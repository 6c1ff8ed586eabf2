/* Old-style groups: symbol table message, symbol table nodes and the header of the local heap.
 * Specification IV.A.2.r, III.B, III.C, III.D. */
#ifndef H5_FORMAT_SYMBOL_TABLE_H
#define H5_FORMAT_SYMBOL_TABLE_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdint.h>

struct h5_symbol_table {
	uint64_t btree; /* version 1 B-tree, whose leaves point to symbol table nodes */
	uint64_t heap;	/* local heap of names */
};

int h5_symbol_table_decode(struct h5_reader *r, struct h5_symbol_table *table);
int h5_symbol_table_encode(struct h5_writer *w, const struct h5_symbol_table *table);

enum h5_symbol_cache {
	H5_SYMBOL_NOTHING = 0,
	H5_SYMBOL_GROUP = 1, /* the object is a group */
	H5_SYMBOL_SOFT = 2,  /* the entry is a soft link */
};

struct h5_symbol {
	uint64_t name;	  /* offset in the local heap */
	uint64_t address; /* of the object header */
	uint32_t cache;	  /* enum h5_symbol_cache */
	uint32_t target;  /* soft: offset in the local heap */
};

struct h5_symbol_node {
	unsigned count;
	struct h5_symbol symbols[]; /* by name */
};

enum { H5_SYMBOL_NODE_PREFIX = 8 };

/* Bytes of a node, by its prefix. */
int h5_symbol_node_size(struct h5_reader *prefix, size_t *size);
/* One allocation; free() it. */
int h5_symbol_node_decode(struct h5_reader *r, struct h5_symbol_node **node, size_t *cost);

/* Bytes that the file keeps for a node: 2K entries, however many it uses. */
size_t h5_symbol_node_room(unsigned k, uint8_t size_of_offsets, uint8_t size_of_lengths);

/* Changes of a node in its bytes, so that other entries keep what is cached in them. The writer has all bytes
 * of the node, from its begin to its end. Entry numbers are the caller's to check, and whether there is room.
 */

/* A node without entries. */
void h5_symbol_node_clear(struct h5_writer *node);
/* Puts an entry before the i-th one. */
int h5_symbol_node_insert(struct h5_writer *node, unsigned i, const struct h5_symbol *symbol);
/* Makes entry i this one. */
int h5_symbol_node_replace(struct h5_writer *node, unsigned i, const struct h5_symbol *symbol);
void h5_symbol_node_remove(struct h5_writer *node, unsigned i);
/* Moves the entries from the i-th one on to a node without entries. */
void h5_symbol_node_split(struct h5_writer *node, unsigned i, struct h5_writer *right);

struct h5_local_heap_header {
	uint64_t size; /* of the data segment */
	uint64_t free; /* offset of the first free block in the segment; H5_LOCAL_HEAP_END: none */
	uint64_t data; /* address of the data segment */
};

enum { H5_LOCAL_HEAP_END = 1 }; /* ends the list of free blocks */

struct h5_local_heap_free {
	uint64_t next, size; /* of the whole block */
};

enum {
	H5_LOCAL_HEAP_MAX = 32,	 /* bytes of the largest header */
	H5_LOCAL_HEAP_FIXED = 8, /* its first bytes, which never change */
	/* Texts begin at multiples of this, and it divides the sizes of the segment and of free blocks. */
	H5_LOCAL_HEAP_UNIT = 8,
};

int h5_local_heap_decode(struct h5_reader *r, struct h5_local_heap_header *heap);
/* A free block; r begins with it. */
int h5_local_heap_free_decode(struct h5_reader *r, struct h5_local_heap_free *block);

int h5_local_heap_encode(struct h5_writer *w, const struct h5_local_heap_header *heap);
int h5_local_heap_free_encode(struct h5_writer *w, const struct h5_local_heap_free *block);

#endif

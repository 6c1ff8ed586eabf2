/* Entries of an old-style group: version 1 B-tree, symbol table nodes, local heap. Specification III.B,
 * III.C, III.D. */
#ifndef H5_OBJECT_SYMBOL_TABLE_H
#define H5_OBJECT_SYMBOL_TABLE_H

#include "base/seen.h"
#include "format/symbol_table.h"
#include "object/damage.h"
#include "object/local_heap.h"
#include "store/btree1.h"

#include <stdbool.h>

/* A node through the cache; h5_file_put(). */
int h5_symbol_node_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		       const struct h5_symbol_node **node);

/* Looks for a name, node by node:
 *
 *   rc = h5_symbol_search_begin(&search, file, table, name, size);
 *   ...
 *   h5_symbol_search_end(&search); */
struct h5_symbol_search {
	struct h5_file *file; /* borrowed */
	struct h5_local_heap heap;
	const char *name; /* borrowed */
	size_t size;
	struct h5_buf text;
};

int h5_symbol_search_begin(struct h5_symbol_search *search, struct h5_file *file,
			   const struct h5_symbol_table *table, const char *name, size_t size);
void h5_symbol_search_end(struct h5_symbol_search *search);
/* *order is <0, 0, >0: the name comes before, at, after the one at the offset in the heap. */
int h5_symbol_search_compare(struct h5_symbol_search *search, uint64_t offset, int *order);
/* *i: the first child with a right key that is not less than the name; `count`: there is none. */
int h5_symbol_search_child(struct h5_symbol_search *search, const struct h5_btree1_node *node, size_t *i);
/* *i: the first entry that is not less than the name; *found: it is the one of that name. */
int h5_symbol_search_entry(struct h5_symbol_search *search, const struct h5_symbol_node *node, size_t *i,
			   bool *found);

/* -ENOENT: no entry of that name. */
int h5_symbol_table_lookup(struct h5_file *file, const struct h5_symbol_table *table, const char *name,
			   size_t size, struct h5_symbol *symbol);

/* All entries, sorted by name:
 *
 *   rc = h5_symbol_begin(&walk, file, table);
 *   while (!rc && (rc = h5_symbol_next(&walk, &symbol)) > 0)
 *           rc = ...;
 *   h5_symbol_end(&walk);
 *
 * Damaged nodes are left out; the first such error comes at the end. */
enum { H5_SYMBOL_DEPTH = 256 }; /* a level of the B-tree is a byte */

struct h5_symbol_step {
	struct h5_lru_entry *ref;
	const struct h5_btree1_node *node;
	size_t next; /* child */
};

struct h5_symbol_walk {
	struct h5_file *file; /* borrowed */
	struct h5_symbol_step path[H5_SYMBOL_DEPTH];
	unsigned depth;			      /* steps of the path, from the root */
	struct h5_lru_entry *ref;	      /* of the symbol table node */
	const struct h5_symbol_node *symbols; /* NULL: none yet, or no more */
	size_t next;			      /* number of the next symbol of the node */
	struct h5_damage damage;
	struct h5_seen seen; /* nodes: a damaged tree may lead to one twice */
};

int h5_symbol_begin(struct h5_symbol_walk *walk, struct h5_file *file, const struct h5_symbol_table *table);
/* 1: *symbol is the next one, borrowed until the next call; 0: the end; else an error. */
int h5_symbol_next(struct h5_symbol_walk *walk, const struct h5_symbol **symbol);
void h5_symbol_end(struct h5_symbol_walk *walk); /* also after a failure */

#endif

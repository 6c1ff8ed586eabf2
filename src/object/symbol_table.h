/* Entries of an old-style group: version 1 B-tree, symbol table nodes, local heap. Specification III.B,
 * III.C, III.D. */
#ifndef H5_OBJECT_SYMBOL_TABLE_H
#define H5_OBJECT_SYMBOL_TABLE_H

#include "base/seen.h"
#include "format/symbol_table.h"
#include "object/damage.h"
#include "object/local_heap.h"
#include "store/btree1.h"

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

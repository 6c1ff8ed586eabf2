/* Entries of an old-style group: version 1 B-tree, symbol table nodes, local heap. Specification III.B,
 * III.C, III.D. */
#ifndef H5_OBJECT_SYMBOL_TABLE_H
#define H5_OBJECT_SYMBOL_TABLE_H

#include "format/symbol_table.h"
#include "object/local_heap.h"
#include "store/file.h"

/* -ENOENT: no entry of that name. */
int h5_symbol_table_lookup(struct h5_file *file, const struct h5_symbol_table *table, const char *name,
			   size_t size, struct h5_symbol *symbol);

/* Visits all entries, sorted by name. If `visit` returns anything but 0, the walk ends and returns it.
 * Damaged nodes are left out; the first such error is returned after all other entries have been visited. */
typedef int h5_symbol_visit(void *arg, const struct h5_symbol *symbol);
int h5_symbol_table_iterate(struct h5_file *file, const struct h5_symbol_table *table, h5_symbol_visit *visit,
			    void *arg);

#endif

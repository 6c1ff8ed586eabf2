/* A walk over all blocks of a symbol table, for its writer: to learn which texts of the heap are in use, and
 * to give the space up. Readers walk by object/symbol_table.h. Specification III.A.1, III.B. */
#ifndef H5_OBJECT_SYMBOL_TABLE_SWEEP_H
#define H5_OBJECT_SYMBOL_TABLE_SWEEP_H

#include "base/extents.h"
#include "base/seen.h"
#include "format/symbol_table.h"
#include "store/file.h"

/* The caller sets the first members. Blocks are read past the cache. */
struct h5_symbol_sweep {
	struct h5_file *file;
	/* h5_file_read() or h5_tx_read_committed() */
	int (*read)(struct h5_file *file, uint64_t address, void *data, size_t n);
	/* For each key, name and target: the offset in the heap. An error ends the walk. NULL: not called. */
	int (*text)(void *arg, uint64_t offset);
	/* For each node of the B-tree and each symbol table node, after it was read. An error ends the walk.
	 * NULL: not called. */
	h5_extent_visit *block;
	void *arg;

	size_t tree_room, node_room; /* bytes of nodes */
	struct h5_seen seen;
};

/* Walks from the root of the B-tree on. -EUCLEAN: a node is damaged, or belongs to two places. */
int h5_symbol_sweep(struct h5_symbol_sweep *sweep, uint64_t root);

/* Visits all space of a symbol table: nodes, and the local heap. Errors as above. */
int h5_symbol_table_extents(struct h5_file *file, const struct h5_symbol_table *table, h5_extent_visit *visit,
			    void *arg);

#endif

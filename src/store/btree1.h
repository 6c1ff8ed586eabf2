/* Nodes of version 1 B-trees, through the block cache. */
#ifndef H5_STORE_BTREE1_H
#define H5_STORE_BTREE1_H

#include "format/btree1.h"
#include "store/want.h"

/* A reference to the node at the address; put it back with h5_file_put(). `level` is the one that
 * the node must have: one less than its parent; -1: any, since it is a root. Another level is -EUCLEAN, so
 * that no walk goes in circles. */
int h5_btree1_node_get(struct h5_file *file, uint64_t address, enum h5_btree1_type type, unsigned rank,
		       int level, struct h5_lru_entry **ref, const struct h5_btree1_node **node);

/* Tells a file that is far away that the children from the one of this number on will be read: nodes or
 * symbol table nodes. `most`: how many; up to
 * H5_WANT_NODES_MOST: by a reader of chunks. */
void h5_btree1_want(struct h5_file *file, const struct h5_btree1_node *node, unsigned rank, unsigned first,
		    unsigned most);

/* The same for all nodes of a group's tree, level by level: those of one level come together. */
void h5_btree1_want_all(struct h5_file *file, uint64_t address);

/* K of the file's trees of a type: a node has at most 2K entries. */
int h5_btree1_node_k(struct h5_file *file, enum h5_btree1_type type, unsigned *k);
/* K of the symbol table nodes that the leaves of a group's tree point to. */
int h5_symbol_node_k(struct h5_file *file, unsigned *k);

#endif

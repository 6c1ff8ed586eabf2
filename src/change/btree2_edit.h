/* The nodes of a version 2 B-tree that a change meets, in memory. btree2_write.c decides what becomes of
 * them.
 */
#ifndef H5_CHANGE_BTREE2_EDIT_H
#define H5_CHANGE_BTREE2_EDIT_H

#include "base/seen.h"
#include "store/btree2.h"

enum h5_btree2_state {
	H5_BTREE2_KEPT,	    /* the node is as in the file */
	H5_BTREE2_REPLACED, /* the node has as many records, some of them new: it may stay at its address */
	H5_BTREE2_CHANGED,  /* the node goes to new space */
};

struct h5_btree2_edit_node {
	struct h5_btree2_node *node; /* with room for all that its level allows */
	enum h5_btree2_state state;
	uint64_t address;		       /* H5_UNDEF: nowhere yet */
	struct h5_btree2_edit_node **children; /* those that were loaded, else NULL; not in a leaf */
};

struct h5_btree2_edit {
	struct h5_btree2 *tree;		  /* borrowed */
	struct h5_btree2_header header;	  /* as it will be, except for the root and counts */
	struct h5_btree2_edit_node *root; /* NULL: no records */
	unsigned stage;	     /* of all that changes in place; 0: as blocks and headers of indexes have */
	struct h5_seen seen; /* addresses of loaded nodes, so that none is loaded twice */
};

/* Writes a new tree without records. The header has its type, its sizes and the two percentages. */
int h5_btree2_edit_create(struct h5_file *file, const struct h5_btree2_header *header,
			  struct h5_btree2 *tree);
/* Begins a unit of change and loads the root. On failure there is nothing to end. */
int h5_btree2_edit_begin(struct h5_btree2_edit *edit, struct h5_btree2 *tree);
/* If the change has succeeded (rc 0), writes all of it and brings *tree up to date. Releases *edit, and ends
 * the unit with the result, which it returns. */
int h5_btree2_edit_end(struct h5_btree2_edit *edit, int rc);

/* Child i, borrowed. */
int h5_btree2_edit_child(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t i,
			 struct h5_btree2_edit_node **child);
/* Puts a new root without records above the root; in an empty tree, a leaf. */
int h5_btree2_edit_raise(struct h5_btree2_edit *edit);
/* The only child of the root becomes the root. If the root is an empty leaf, the tree has none any more. */
void h5_btree2_edit_lower(struct h5_btree2_edit *edit);
/* Deals the records of `before` children from `first` on, and those between them, out to `after` children in
 * their place: counts[i] records to the i-th one. At most 3 of either. */
int h5_btree2_edit_deal(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t first,
			unsigned before, unsigned after, const size_t *counts);
/* Insert and remove a record of a leaf, which has room for it. */
void h5_btree2_edit_insert(const struct h5_btree2_edit *edit, struct h5_btree2_edit_node *leaf, size_t i,
			   const uint8_t *record);
void h5_btree2_edit_remove(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *leaf, size_t i);

static inline uint8_t *h5_btree2_edit_record(const struct h5_btree2_edit *edit,
					     const struct h5_btree2_edit_node *node, size_t i)
{
	return node->node->records + i * edit->header.record_size;
}

#endif

/* One change of a version 1 B-tree, of chunks or of a group: the nodes that it touches are loaded, edited in
 * memory, and then written level by level, inside a unit of change.
 *
 * A node that splits always moves. So a node that stays in place never loses an entry that is still wanted,
 * and a lookup finds each chunk through any mixture of old and new nodes. (Except if a chunk is removed and
 * set again in one commit; the writer of a dataset does not do that. What a group's tree does beside this,
 * object/symbol_table_write.c says.) The commit writes nodes from the root down, by their stages. In another
 * order a kill could leave a leaf with an entry that a search from the root does not find, and libhdf5 would
 * trust that entry when it adds a chunk. */
#ifndef H5_CHANGE_BTREE1_CHANGE_H
#define H5_CHANGE_BTREE1_CHANGE_H

#include "store/btree1.h"

#include <stdbool.h>

/* A node while it is edited. */
struct h5_btree1_edit {
	struct h5_btree1_edit *next;   /* of all */
	struct h5_btree1_edit *parent; /* NULL: the root */
	unsigned index;		       /* the node's number among the parent's children */
	uint64_t address;	       /* in the file; H5_UNDEF: the node is new */
	uint64_t to;		       /* where the node will be written */
	struct h5_lru_entry *ref;      /* the node as it was; NULL: the node is new */
	bool dirty;
	bool moves;		    /* the node must not be written in place */
	bool dropped;		    /* the node is removed from the tree */
	unsigned kept;		    /* entries that stay when the tail is cut */
	struct h5_btree1_node node; /* with room for 2K entries, without the offsets of the keys */
};

struct h5_btree1_level {
	struct h5_btree1_edit *node[2]; /* neighbours from left to right; NULL: none */
};

struct h5_btree1_change {
	struct h5_file *file; /* borrowed */
	enum h5_btree1_type type;
	unsigned rank;	   /* of the dataset; 0: a group */
	unsigned capacity; /* entries of a node, 2K */
	size_t size;	   /* bytes of a node */
	unsigned stage;	   /* of all nodes; 0: by their level, the root first */
	bool tail;	   /* everything to the right of the edited nodes is removed */
	struct h5_btree1_edit *root, *edits;
	struct h5_btree1_level *levels; /* from the leaves up to the root, and one for a new root */
	unsigned height;		/* level of the root */
};

/* Reads K, and the root; if there is no tree yet (H5_UNDEF), the root is a new empty leaf. To be released,
 * even on failure. */
int h5_btree1_change_init(struct h5_btree1_change *change, struct h5_file *file, enum h5_btree1_type type,
			  unsigned rank, uint64_t root);
void h5_btree1_change_release(struct h5_btree1_change *change);

/* Loads child i of `parent`. The child must lie to the left of the edited nodes of its own level. */
int h5_btree1_change_load(struct h5_btree1_change *change, struct h5_btree1_edit *parent, unsigned i,
			  struct h5_btree1_edit **edit);
/* The same for a child that lies to their right. */
int h5_btree1_change_load_right(struct h5_btree1_change *change, struct h5_btree1_edit *parent, unsigned i,
				struct h5_btree1_edit **edit);
/* Adds an entry before entry *p. If the node splits, *key, *child and *p are then the entry that its parent
 * gets, and where. Otherwise *child is H5_UNDEF. */
int h5_btree1_change_insert(struct h5_btree1_change *change, struct h5_btree1_edit *e,
			    struct h5_btree1_key *key, uint64_t *child, unsigned *p);
/* Removes entry p and its left key. */
void h5_btree1_change_take(struct h5_btree1_edit *e, unsigned p);
/* Writes the edited nodes of a level, in place or to new space, and updates the pointers of their neighbours.
 * To be called for the lower levels first. */
int h5_btree1_change_write(struct h5_btree1_change *change, unsigned level);
/* After all levels are written: gives up the space of nodes that are not used any more. Returns where the
 * root is. */
uint64_t h5_btree1_change_finish(struct h5_btree1_change *change);

#endif

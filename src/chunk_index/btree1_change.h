/* One change of the version 1 B-tree of chunks: the nodes that it touches are loaded, edited in memory, and
 * then written level by level, inside a unit of change.
 *
 * A node that loses entries which are still wanted - one that splits - never stays in place. So every node
 * that does stay in place, as it was and as it becomes, has each chunk that lay and lies under it, and any
 * mixture of old and new nodes on the way down finds it: the order of the cells is free. (But for a chunk
 * that is removed and set again in one commit, which the writer of a dataset doesn't do.) They get
 * into the file from the root down, since libhdf5, adding a chunk where a kill left a part of them, trusts a
 * leaf's entry that its own search cannot have found. */
#ifndef H5_CHUNK_INDEX_BTREE1_CHANGE_H
#define H5_CHUNK_INDEX_BTREE1_CHANGE_H

#include "chunk_index/private.h"
#include "store/btree1.h"

/* A node through the cache, level -1: of any. */
int h5_chunk_btree1_node_get(const struct h5_chunk_index *index, uint64_t address, int level,
			     struct h5_lru_entry **ref, const struct h5_btree1_node **node);

/* A node while it is edited. */
struct h5_btree1_edit {
	struct h5_btree1_edit *next;   /* of all */
	struct h5_btree1_edit *parent; /* NULL: the root */
	unsigned index;		       /* among the parent's children */
	uint64_t address;	       /* where it is; H5_UNDEF: it is new */
	uint64_t to;		       /* where it goes */
	struct h5_lru_entry *ref;      /* what was at the address; NULL: it is new */
	bool dirty;
	bool moves;		    /* not in place */
	bool dropped;		    /* leaves the tree */
	unsigned kept;		    /* when the tail is cut: entries that were kept of what it was */
	struct h5_btree1_node node; /* with room for 2K entries; offsets of keys lie elsewhere */
};

struct h5_btree1_level {
	struct h5_btree1_edit *node[2]; /* neighbours from left to right; NULL: none */
};

struct h5_btree1_change {
	struct h5_chunk_index *index; /* borrowed */
	unsigned capacity;	      /* entries of a node, 2K */
	size_t size;		      /* bytes of a node */
	bool tail;		      /* nothing remains to the right of the edited nodes */
	struct h5_btree1_edit *root, *edits;
	struct h5_btree1_level *levels; /* from the leaves up to the root, and one more */
	unsigned height;		/* level of the root */
};

/* Reads K, and the root where there is a tree; else makes an empty leaf of it. Release it in either case. */
int h5_btree1_change_init(struct h5_btree1_change *c, struct h5_chunk_index *index);
void h5_btree1_change_release(struct h5_btree1_change *c);

/* Loads a child of a node, to the left of what is edited of its level. */
int h5_btree1_change_load(struct h5_btree1_change *c, struct h5_btree1_edit *parent, unsigned i,
			  struct h5_btree1_edit **edit);
/* Adds an entry before entry p. The node may split; what its parent gets for that is *key and *child, at
 * *p. *child H5_UNDEF: it didn't. */
int h5_btree1_change_insert(struct h5_btree1_change *c, struct h5_btree1_edit *e,
			    struct h5_btree1_chunk_key *key, uint64_t *child, unsigned *p);
/* Removes entry p; the key after it takes the place of its own. */
void h5_btree1_change_take(struct h5_btree1_edit *e, unsigned p);
/* Gives the edited nodes of a level their places and writes them; what stands to their left and right points
 * to them. The levels below come before. */
int h5_btree1_change_write(struct h5_btree1_change *c, unsigned level);
/* All levels are written: the root is where it now is, and what left the tree is given up. */
void h5_btree1_change_finish(struct h5_btree1_change *c);

#endif

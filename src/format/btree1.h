/* Version 1 B-tree nodes. Specification III.A.1.
 *
 * A node of n entries has n children and n + 1 keys. Child i holds the entries from key i up to key i + 1. */
#ifndef H5_FORMAT_BTREE1_H
#define H5_FORMAT_BTREE1_H

#include "base/reader.h"
#include "base/writer.h"
#include "format/datatype.h"

#include <stdint.h>

enum h5_btree1_type { H5_BTREE1_GROUP = 0, H5_BTREE1_CHUNK = 1 };

struct h5_btree1_key {
	union {
		uint64_t name;	       /* group: offset into the local heap */
		struct {	       /* chunk */
			uint32_t size; /* stored bytes */
			uint32_t filter_mask;
			/* rank + 1 element coordinates. The last one is inside the element: 0 in the key of a
			 * chunk. In a decoded node they are part of its memory. */
			const uint64_t *offsets;
		};
	};
};

struct h5_btree1_node {
	enum h5_btree1_type type;
	uint8_t level;	      /* 0: leaf */
	unsigned count;	      /* entries used */
	uint64_t left, right; /* siblings, H5_UNDEF: none */
	uint64_t *children;   /* `count` addresses: of nodes; in a leaf of symbol table nodes or chunks */
	struct h5_btree1_key *keys; /* count + 1 */
};

enum {
	H5_BTREE1_PREFIX_MAX = 24,
	H5_BTREE1_LEVELS = 256, /* most levels of a tree */
};

/* The size of a node in bytes, which depends on the `count` in its prefix; only the prefix is read. `rank` is
 * the dataset's, without the element dimension; it means nothing for groups. */
int h5_btree1_node_size(struct h5_reader *prefix, enum h5_btree1_type type, unsigned rank, size_t *size);
/* One allocation; free() it. */
int h5_btree1_node_decode(struct h5_reader *r, enum h5_btree1_type type, unsigned rank,
			  struct h5_btree1_node **node, size_t *cost);

/* Bytes that the file keeps for a node: 2K entries, however many it uses. */
size_t h5_btree1_node_room(enum h5_btree1_type type, unsigned rank, unsigned k, uint8_t size_of_offsets,
			   uint8_t size_of_lengths);
/* Writes a node, and zeros behind it up to the writer's end. */
int h5_btree1_node_encode(struct h5_writer *w, const struct h5_btree1_node *node, unsigned rank);
/* The offset of a sibling's address in a node. */
unsigned h5_btree1_sibling_offset(bool right, uint8_t size_of_offsets);

/* The most entries that nodes have is twice these. */
struct h5_btree1_k {
	uint16_t chunk;		 /* nodes of the trees of chunks */
	uint16_t group_internal; /* nodes of the trees of groups */
	uint16_t group_leaf;	 /* symbol table nodes */
};

/* Body of a B-tree 'K' Values message (specification IV.A.2.t). */
int h5_btree1_k_decode(struct h5_reader *r, struct h5_btree1_k *k);
enum { H5_BTREE1_K_SIZE = 7 };
void h5_btree1_k_encode(struct h5_writer *w, const struct h5_btree1_k *k);

#endif

/* Version 1 B-tree nodes. Specification III.A.1.
 *
 * A node of n entries has n children and n + 1 keys; child i holds what lies from key i up to key i + 1. */
#ifndef H5_FORMAT_BTREE1_H
#define H5_FORMAT_BTREE1_H

#include "base/reader.h"
#include "format/datatype.h"

#include <stdint.h>

enum h5_btree1_type { H5_BTREE1_GROUP = 0, H5_BTREE1_CHUNK = 1 };

struct h5_btree1_chunk_key {
	uint32_t size; /* stored bytes */
	uint32_t filter_mask;
	const uint64_t *offsets; /* rank element coordinates; into the node's memory */
};

struct h5_btree1_node {
	enum h5_btree1_type type;
	uint8_t level;			  /* 0: leaf */
	unsigned count;			  /* entries used */
	uint64_t left, right;		  /* siblings, H5_UNDEF: none */
	uint64_t *children;		  /* count: nodes; in a leaf symbol table nodes or chunks */
	uint64_t *names;		  /* group: count + 1 offsets into the local heap */
	struct h5_btree1_chunk_key *keys; /* chunk: count + 1 */
};

enum { H5_BTREE1_PREFIX_MAX = 24 };

/* Bytes that a node takes from its prefix, whose `count` they depend on: reads only the prefix.
 * `rank` is the dataset's, without the element dimension; of no meaning to groups. */
int h5_btree1_node_size(struct h5_reader *prefix, enum h5_btree1_type type, unsigned rank, size_t *size);
/* One allocation; free() it. */
int h5_btree1_node_decode(struct h5_reader *r, enum h5_btree1_type type, unsigned rank,
			  struct h5_btree1_node **node, size_t *cost);

#endif

/* Between the reading and the changing half of the version 1 B-tree of chunks. */
#ifndef H5_CHUNK_INDEX_BTREE1_H
#define H5_CHUNK_INDEX_BTREE1_H

#include "chunk_index/private.h"
#include "store/btree1.h"

int h5_chunk_btree1_node_get(const struct h5_chunk_index *index, uint64_t address, int level,
			     struct h5_lru_entry **ref, const struct h5_btree1_node **node);
/* The last child whose key isn't after the rank element coordinates; count: none. *exact: the key is theirs.
 */
unsigned h5_chunk_btree1_search(const struct h5_btree1_node *node, const uint64_t *offsets, unsigned rank,
				bool *exact);
struct h5_chunk h5_chunk_btree1_chunk_of(const struct h5_chunk_index *index,
					 const struct h5_btree1_node *leaf, unsigned i);

int h5_chunk_btree1_set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk);
int h5_chunk_btree1_trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg);

#endif

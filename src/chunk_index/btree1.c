#include "chunk_index/btree1.h"

#include "base/checked.h"
#include "base/interrupt.h"

#include <string.h>

/* The version 1 B-tree of chunks, specification III.A.1, node type 1.
 *
 * The key of child i is the first chunk in it, so that a node is searched by its left keys alone. The last
 * key is no chunk's: writers leave one there that compares like a chunk right behind, or like one still to
 * come. */

int h5_chunk_btree1_node_get(const struct h5_chunk_index *index, uint64_t address, int level,
			     struct h5_lru_entry **ref, const struct h5_btree1_node **node)
{
	return h5_btree1_node_get(index->file, address, H5_BTREE1_CHUNK, index->layout.rank, level, ref,
				  node);
}

unsigned h5_chunk_btree1_search(const struct h5_btree1_node *node, const uint64_t *offsets, unsigned rank,
				bool *exact)
{
	unsigned low = 0,
		 high = node->count; /* keys before low are not after the offsets, those from high on are */

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (h5_chunk_compare(node->keys[middle].offsets, offsets, rank) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	*exact = low && !h5_chunk_compare(node->keys[low - 1].offsets, offsets, rank);
	return low ? low - 1 : node->count;
}

/* Without filters a chunk has its own size; some writers store less of one at the edge of the dataset, or
 * leave the field empty. */
static uint64_t stored_size(const struct h5_chunk_index *index, uint32_t size)
{
	if (index->filtered)
		return size;
	return size ? h5_min(size, index->chunk_size) : index->chunk_size;
}

struct h5_chunk h5_chunk_btree1_chunk_of(const struct h5_chunk_index *index,
					 const struct h5_btree1_node *leaf, unsigned i)
{
	if (leaf->children[i] == H5_UNDEF)
		return h5_chunk_absent();
	return (struct h5_chunk){.address = leaf->children[i],
				 .size = stored_size(index, leaf->keys[i].size),
				 .filter_mask = index->filtered ? leaf->keys[i].filter_mask : 0};
}

/* The leaf for the element coordinates. */
static int seek(const struct h5_chunk_index *index, const uint64_t *offsets, struct h5_chunk_cursor *cursor)
{
	const size_t size = index->layout.rank * sizeof *offsets;
	uint64_t address = index->layout.address;
	int level = -1; /* any: the root's */

	memset(cursor->low, 0, size);
	memset(cursor->high, 0xff, size);
	do {
		const struct h5_btree1_node *node;
		unsigned i, next;
		bool exact;
		int rc = h5_chunk_btree1_node_get(index, address, level, &cursor->ref, &node);

		if (rc)
			return rc;
		level = node->level - 1;
		cursor->block = node;
		if (level < 0)
			break;
		i = h5_chunk_btree1_search(node, offsets, index->layout.rank, &exact);
		next = i == node->count ? 0 : i + 1;
		if (next < node->count)
			memcpy(cursor->high, node->keys[next].offsets, size);
		cursor->block = NULL;
		if (i == node->count) {
			level = -1; /* before the first chunk */
		} else {
			memcpy(cursor->low, node->keys[i].offsets, size);
			address = node->children[i];
		}
		h5_file_put(index->file, cursor->ref);
		cursor->ref = NULL;
	} while (level >= 0);
	return 0;
}

static int lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor, const uint64_t *scaled,
		  struct h5_chunk *chunk)
{
	unsigned rank = index->layout.rank, i;
	const struct h5_btree1_node *leaf;
	uint64_t offsets[H5_RANK_MAX];
	bool exact;
	int rc;

	for (i = 0; i < rank; i++)
		if (!h5_mul(scaled[i], index->layout.dims[i], &offsets[i]))
			return 0;
	rc = h5_chunk_cursor_move(index, cursor, offsets, rank, seek);
	if (rc || !cursor->block)
		return rc;
	leaf = cursor->block;
	i = (unsigned)cursor->next;
	exact = i < leaf->count && !h5_chunk_compare(leaf->keys[i].offsets, offsets, rank);
	if (!exact)
		i = h5_chunk_btree1_search(leaf, offsets, rank, &exact);
	if (exact) {
		*chunk = h5_chunk_btree1_chunk_of(index, leaf, i);
		cursor->next = i + 1;
	}
	return 0;
}

static void gap(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
		const uint64_t *scaled, uint64_t *next)
{
	const unsigned rank = index->layout.rank;
	const struct h5_btree1_node *leaf = cursor->block;
	const uint64_t *end = cursor->high;
	uint64_t offsets[H5_RANK_MAX];

	for (unsigned i = 0; i < rank; i++)
		if (!h5_mul(scaled[i], index->layout.dims[i], &offsets[i]))
			return;
	if (!h5_chunk_cursor_covers(cursor, offsets, rank))
		return;
	if (leaf) {
		bool exact;
		unsigned i = h5_chunk_btree1_search(leaf, offsets, rank, &exact);

		i = i == leaf->count ? 0 : i + 1;
		if (i < leaf->count)
			end = leaf->keys[i].offsets;
	}
	for (unsigned i = 0; i < rank; i++)
		next[i] = end[i] / index->layout.dims[i];
}

/* The recursion is as deep as the tree: 255 levels at most, as a writer with K = 1 gives it. */
static int walk_node(const struct h5_chunk_index *index, uint64_t address, int level, uint64_t *left,
		     h5_chunk_visit *visit, void *arg)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_chunk_btree1_node_get(index, address, level, &ref, &node);
	if (rc)
		return rc;
	/* its keys: 8 bytes and rank + 1 offsets each */
	rc = h5_chunk_index_spend(index, left, ((uint64_t)node->count + 1) * (16 + 8 * index->layout.rank));
	for (unsigned i = 0; i < node->count && !rc; i++) {
		if (node->level) {
			rc = walk_node(index, node->children[i], node->level - 1, left, visit, arg);
		} else {
			struct h5_chunk chunk = h5_chunk_btree1_chunk_of(index, node, i);

			if (chunk.address != H5_UNDEF)
				rc = visit(arg, &chunk);
		}
	}
	h5_file_put(index->file, ref);
	return rc;
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg)
{
	uint64_t left = h5_file_size(index->file);

	return walk_node(index, index->layout.address, -1, &left, visit, arg);
}

const struct h5_chunk_index_ops h5_chunk_index_btree1 = {
	.lookup = lookup, .gap = gap, .walk = walk, .set = h5_chunk_btree1_set, .trim = h5_chunk_btree1_trim};

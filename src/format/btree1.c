#include "format/btree1.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>

/* Node, specification III.A.1.
 *
 *   offset  size  field
 *        0     4  signature "TREE"
 *        4     1  node type
 *        5     1  node level
 *        6     2  entries used N
 *        8     O  address of left sibling
 *      8+O     O  address of right sibling
 *     8+2O        key 0, child 0, key 1, child 1, ... key N; a child: O
 *
 * Key of a group node: offset into the local heap, L. Key of a chunk node: chunk size 4, filter mask 4, rank
 * + 1 element coordinates of 8 bytes, the last of them inside the element. */
struct prefix {
	uint8_t level;
	unsigned count;
	uint64_t left, right;
};

static int decode_prefix(struct h5_reader *r, enum h5_btree1_type type, struct prefix *prefix)
{
	uint64_t at = h5_reader_address(r);
	unsigned stored;
	int rc;

	if (!h5_read_signature(r, "TREE"))
		return h5_fail(-EUCLEAN, at, "version 1 B-tree: no signature");
	stored = h5_read_u8(r);
	prefix->level = h5_read_u8(r);
	prefix->count = h5_read_u16(r);
	prefix->left = h5_read_offset(r);
	prefix->right = h5_read_offset(r);
	rc = h5_reader_check(r, "version 1 B-tree");
	if (rc)
		return rc;
	if (stored != type)
		return h5_fail(-EUCLEAN, at, "version 1 B-tree: node of type %u, not %u", stored, type);
	return 0;
}

static size_t chunk_key_size(unsigned rank)
{
	return 8 + 8 * ((size_t)rank + 1);
}

static size_t key_size(enum h5_btree1_type type, unsigned rank, uint8_t size_of_lengths)
{
	return type == H5_BTREE1_GROUP ? size_of_lengths : chunk_key_size(rank);
}

static size_t node_size(size_t count, size_t key, uint8_t size_of_offsets)
{
	return 8 + 2 * (size_t)size_of_offsets + count * (key + size_of_offsets) + key;
}

int h5_btree1_node_size(struct h5_reader *r, enum h5_btree1_type type, unsigned rank, size_t *size)
{
	size_t key = key_size(type, rank, r->size_of_lengths);
	struct prefix prefix;
	int rc = decode_prefix(r, type, &prefix);

	if (!rc)
		*size = node_size(prefix.count, key, r->size_of_offsets);
	return rc;
}

static void decode_chunk_key(struct h5_reader *r, unsigned rank, struct h5_btree1_key *key, uint64_t *offsets)
{
	key->size = h5_read_u32(r);
	key->filter_mask = h5_read_u32(r);
	key->offsets = offsets;
	for (unsigned i = 0; i <= rank; i++)
		offsets[i] = h5_read_u64(r);
}

int h5_btree1_node_decode(struct h5_reader *r, enum h5_btree1_type type, unsigned rank,
			  struct h5_btree1_node **out, size_t *cost)
{
	bool group = type == H5_BTREE1_GROUP;
	struct h5_btree1_node *node;
	struct prefix prefix;
	size_t keys, words_of_key, size;
	uint64_t *words;
	int rc = decode_prefix(r, type, &prefix);

	if (rc)
		return rc;
	keys = (size_t)prefix.count + 1;
	words_of_key = (size_t)rank + 1;
	if (h5_reader_left(r) / key_size(type, rank, r->size_of_lengths) < keys)
		return h5_fail(-EUCLEAN, r->address, "version 1 B-tree: truncated");

	/* the node, its children, its keys, then the offsets of these */
	size = sizeof *node + prefix.count * sizeof *node->children;
	size += keys * (sizeof *node->keys + (group ? 0 : words_of_key * sizeof(uint64_t)));
	node = malloc(size);
	if (!node)
		return h5_fail(-ENOMEM, r->address, "version 1 B-tree: out of memory");
	*node = (struct h5_btree1_node){.type = type,
					.level = prefix.level,
					.count = prefix.count,
					.left = prefix.left,
					.right = prefix.right,
					.children = (uint64_t *)(node + 1)};
	node->keys = (struct h5_btree1_key *)(node->children + node->count);
	words = (uint64_t *)(node->keys + keys);
	for (size_t i = 0; i < keys; i++) {
		if (group)
			node->keys[i].name = h5_read_length(r);
		else
			decode_chunk_key(r, rank, &node->keys[i], words + i * words_of_key);
		if (i < node->count)
			node->children[i] = h5_read_offset(r);
	}
	rc = h5_reader_check(r, "version 1 B-tree");
	if (rc) {
		free(node);
		return rc;
	}
	*out = node;
	*cost = size;
	return 0;
}

size_t h5_btree1_node_room(enum h5_btree1_type type, unsigned rank, unsigned k, uint8_t size_of_offsets,
			   uint8_t size_of_lengths)
{
	return node_size(2 * (size_t)k, key_size(type, rank, size_of_lengths), size_of_offsets);
}

static void encode_chunk_key(struct h5_writer *w, unsigned rank, const struct h5_btree1_key *key)
{
	h5_write_u32(w, key->size);
	h5_write_u32(w, key->filter_mask);
	for (unsigned i = 0; i <= rank; i++)
		h5_write_u64(w, key->offsets[i]);
}

int h5_btree1_node_encode(struct h5_writer *w, const struct h5_btree1_node *node, unsigned rank)
{
	assert(node->count <= UINT16_MAX);
	h5_write_bytes(w, "TREE", 4);
	h5_write_u8(w, (uint8_t)node->type);
	h5_write_u8(w, node->level);
	h5_write_u16(w, (uint16_t)node->count);
	h5_write_offset(w, node->left);
	h5_write_offset(w, node->right);
	for (unsigned i = 0; i <= node->count; i++) {
		if (node->type == H5_BTREE1_GROUP)
			h5_write_length(w, node->keys[i].name);
		else
			encode_chunk_key(w, rank, &node->keys[i]);
		if (i < node->count)
			h5_write_offset(w, node->children[i]);
	}
	h5_write_fill(w, 0, (size_t)(w->end - w->p));
	return h5_writer_check(w, "version 1 B-tree");
}

unsigned h5_btree1_sibling_offset(bool right, uint8_t size_of_offsets)
{
	return 8 + (right ? size_of_offsets : 0u);
}

/* B-tree 'K' Values message, specification IV.A.2.t.
 *
 *   offset  size  field
 *        0     1  version, 0
 *        1     2  indexed storage internal node K
 *        3     2  group internal node K
 *        5     2  group leaf node K                 */
int h5_btree1_k_decode(struct h5_reader *r, struct h5_btree1_k *k)
{
	unsigned version = h5_read_u8(r);
	int rc;

	k->chunk = h5_read_u16(r);
	k->group_internal = h5_read_u16(r);
	k->group_leaf = h5_read_u16(r);
	rc = h5_reader_check(r, "B-tree 'K' values");
	if (!rc && version)
		rc = h5_fail(-ENOTSUP, r->address, "B-tree 'K' values: version %u is not supported", version);
	return rc;
}

void h5_btree1_k_encode(struct h5_writer *w, const struct h5_btree1_k *k)
{
	h5_write_u8(w, 0);
	h5_write_u16(w, k->chunk);
	h5_write_u16(w, k->group_internal);
	h5_write_u16(w, k->group_leaf);
}

#include "store/btree1.h"

#include "base/error.h"
#include "store/block.h"
#include "store/extension.h"

#include <stdlib.h>

enum {
	SYMBOL_NODE = 1024, /* bytes; most symbol table nodes are smaller */
	DEPTH = 8,	    /* levels that are asked for before they are read; no tree has more */
};

struct node_shape {
	enum h5_btree1_type type;
	unsigned rank;
};

static int load_node(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct node_shape *shape = arg;
	struct h5_btree1_node *node;
	uint8_t prefix[H5_BTREE1_PREFIX_MAX];
	struct h5_reader r;
	size_t size;
	void *data;
	int rc;

	rc = h5_file_read_some(file, address, prefix, sizeof prefix, &size);
	if (rc)
		return rc;
	r = h5_file_reader(file, prefix, size, address);
	rc = h5_btree1_node_size(&r, shape->type, shape->rank, &size);
	if (rc)
		return rc;
	rc = h5_block_open(file, address, size, "version 1 B-tree", &data, &r);
	if (rc)
		return rc;
	rc = h5_btree1_node_decode(&r, shape->type, shape->rank, &node, cost);
	if (!rc)
		*value = node;
	free(data);
	return rc;
}

static const struct h5_block_type btree1_node = {{"version 1 B-tree node", free}, load_node};

int h5_btree1_node_get(struct h5_file *file, uint64_t address, enum h5_btree1_type type, unsigned rank,
		       int level, struct h5_lru_entry **ref, const struct h5_btree1_node **out)
{
	const struct node_shape shape = {type, rank};
	const struct h5_btree1_node *node;
	/* Variant 0: a node of a group's tree; rank + 1: a node of a chunk tree. */
	uint64_t variant = type == H5_BTREE1_CHUNK ? (uint64_t)rank + 1 : 0;
	int rc = h5_file_block(file, &btree1_node, address, variant, &shape, ref);

	if (rc)
		return rc;
	node = h5_lru_value(*ref);
	if (level >= 0 && node->level != level) {
		unsigned stored = node->level;

		h5_file_put(file, *ref);
		*ref = NULL;
		return h5_fail(-EUCLEAN, address, "version 1 B-tree: node of level %u where %d belongs",
			       stored, level);
	}
	*out = node;
	return 0;
}

static int read_k(struct h5_file *file, struct h5_btree1_k *k)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	int rc;

	/* As superblocks do, the extension leaves the defaults out. */
	*k = (struct h5_btree1_k){
		.chunk = sb->chunk_k, .group_internal = sb->group_internal_k, .group_leaf = sb->group_leaf_k};
	rc = h5_extension_btree_k(file, k);
	return rc == -ENODATA ? 0 : rc;
}

static int check_k(unsigned k)
{
	/* Entries are counted in 16 bits. */
	if (!k || k > UINT16_MAX / 2)
		return h5_fail(-EUCLEAN, H5_UNDEF, "version 1 B-tree: K is %u", k);
	return 0;
}

int h5_btree1_node_k(struct h5_file *file, enum h5_btree1_type type, unsigned *k)
{
	struct h5_btree1_k all;
	int rc = read_k(file, &all);

	if (rc)
		return rc;
	*k = type == H5_BTREE1_GROUP ? all.group_internal : all.chunk;
	return check_k(*k);
}

int h5_symbol_node_k(struct h5_file *file, unsigned *k)
{
	struct h5_btree1_k all;
	int rc = read_k(file, &all);

	if (rc)
		return rc;
	*k = all.group_leaf;
	return check_k(*k);
}

/* Bytes to ask for of each child of a node; 0: nothing is to be asked for. */
static size_t child_size(struct h5_file *file, const struct h5_btree1_node *node, unsigned rank)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	unsigned k;

	if (!node->level)
		return node->type == H5_BTREE1_GROUP ? SYMBOL_NODE : 0;
	if (h5_btree1_node_k(file, node->type, &k))
		return 0;
	return h5_btree1_node_room(node->type, rank, k, sb->size_of_offsets, sb->size_of_lengths);
}

void h5_btree1_want(struct h5_file *file, const struct h5_btree1_node *node, unsigned rank, unsigned first,
		    unsigned most)
{
	struct h5_want want = {.file = file};
	size_t size = h5_file_is_far(file) ? child_size(file, node, rank) : 0;
	enum h5_wanted among = most <= H5_WANT_NODES_MOST ? H5_WANTED_AMONG : H5_WANTED_NOW;

	for (unsigned i = first; size && i < node->count && want.count < most; i++)
		h5_want_add(&want, node->children[i], size);
	h5_want_send(&want, node->type == H5_BTREE1_GROUP ? H5_WANTED_AROUND : among);
}

/* True: they are nodes, too. */
static bool add_children(struct h5_want *want, const struct h5_btree1_node *node)
{
	size_t size = child_size(want->file, node, 0);

	for (unsigned i = 0; size && i < node->count; i++)
		h5_want_add(want, node->children[i], size);
	return node->level;
}

/* Reads the nodes of a list, and makes it the list of their children. False: that was the lowest level, or no
 * more can be known. */
static bool descend(struct h5_want *level)
{
	struct h5_want below = {.file = level->file};
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	bool more = false;

	for (size_t i = 0; i < level->count; i++) {
		if (h5_btree1_node_get(level->file, level->list[i].offset, H5_BTREE1_GROUP, 0, -1, &ref,
				       &node))
			break;
		more |= add_children(&below, node);
		h5_file_put(level->file, ref);
	}
	free(level->list);
	*level = below;
	return more;
}

void h5_btree1_want_all(struct h5_file *file, uint64_t address)
{
	struct h5_want level = {.file = file};
	bool more = true;

	if (!h5_file_is_far(file))
		return;
	h5_want_add(&level, address, 1);
	for (unsigned depth = 0; more && level.count && depth < DEPTH; depth++) {
		more = descend(&level);
		h5_want_tell(&level, H5_WANTED_AROUND);
	}
	h5_want_release(&level);
}

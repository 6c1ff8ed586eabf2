#include "object/symbol_table_sweep.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "object/local_heap.h"
#include "store/btree1.h"

#include <stdlib.h>

static int find_sizes(struct h5_symbol_sweep *sweep)
{
	const struct h5_superblock *sb = h5_file_superblock(sweep->file);
	unsigned tree_k, node_k;
	int rc = h5_btree1_node_k(sweep->file, H5_BTREE1_GROUP, &tree_k);

	if (!rc)
		rc = h5_symbol_node_k(sweep->file, &node_k);
	if (rc)
		return rc;
	sweep->tree_room =
		h5_btree1_node_room(H5_BTREE1_GROUP, 0, tree_k, sb->size_of_offsets, sb->size_of_lengths);
	sweep->node_room = h5_symbol_node_room(node_k, sb->size_of_offsets, sb->size_of_lengths);
	return 0;
}

/* Reads a node, n bytes; free(). */
static int sweep_read(struct h5_symbol_sweep *sweep, uint64_t address, size_t n, void **data,
		      struct h5_reader *r)
{
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_seen_add(&sweep->seen, address);
	if (rc == -EEXIST)
		return h5_fail(-EUCLEAN, address, "symbol table: a node belongs to two places");
	if (rc)
		return rc;
	*data = malloc(n);
	if (!*data)
		return h5_fail(-ENOMEM, address, "symbol table: out of memory");
	*r = h5_file_reader(sweep->file, *data, n, address);
	rc = sweep->read(sweep->file, address, *data, n);
	if (!rc && sweep->block)
		rc = sweep->block(sweep->arg, address, n);
	if (rc)
		free(*data);
	return rc;
}

static int sweep_text(struct h5_symbol_sweep *sweep, uint64_t offset)
{
	return sweep->text ? sweep->text(sweep->arg, offset) : 0;
}

static int sweep_symbols(struct h5_symbol_sweep *sweep, uint64_t address)
{
	struct h5_symbol_node *node = NULL;
	struct h5_reader r, prefix;
	size_t size, cost;
	void *data;
	int rc = sweep_read(sweep, address, sweep->node_room, &data, &r);

	if (rc)
		return rc;
	prefix = r;
	rc = h5_symbol_node_size(&prefix, &size);
	if (!rc)
		rc = h5_symbol_node_decode(&r, &node, &cost);
	free(data);
	for (unsigned i = 0; !rc && i < node->count; i++) {
		rc = sweep_text(sweep, node->symbols[i].name);
		if (!rc && node->symbols[i].cache == H5_SYMBOL_SOFT)
			rc = sweep_text(sweep, node->symbols[i].target);
	}
	free(node);
	return rc;
}

/* The recursion is as deep as the tree, at most H5_BTREE1_LEVELS. Level -1: any. */
static int sweep_tree(struct h5_symbol_sweep *sweep, uint64_t address, int level)
{
	struct h5_btree1_node *node = NULL;
	struct h5_reader r;
	size_t cost;
	void *data;
	int rc = sweep_read(sweep, address, sweep->tree_room, &data, &r);

	if (rc)
		return rc;
	rc = h5_btree1_node_decode(&r, H5_BTREE1_GROUP, 0, &node, &cost);
	free(data);
	if (!rc && level >= 0 && node->level != level)
		rc = h5_fail(-EUCLEAN, address, "version 1 B-tree: node of level %u where %d belongs",
			     node->level, level);
	for (unsigned i = 0; !rc && node->count && i <= node->count; i++)
		rc = sweep_text(sweep, node->keys[i].name);
	for (unsigned i = 0; !rc && i < node->count; i++)
		rc = node->level ? sweep_tree(sweep, node->children[i], node->level - 1)
				 : sweep_symbols(sweep, node->children[i]);
	free(node);
	return rc;
}

int h5_symbol_sweep(struct h5_symbol_sweep *sweep, uint64_t root)
{
	int rc = find_sizes(sweep);

	if (!rc)
		rc = sweep_tree(sweep, root, -1);
	h5_seen_release(&sweep->seen);
	return rc;
}

int h5_symbol_table_extents(struct h5_file *file, const struct h5_symbol_table *table, h5_extent_visit *visit,
			    void *arg)
{
	struct h5_symbol_sweep sweep = {.file = file, .read = h5_file_read, .block = visit, .arg = arg};
	int rc = h5_symbol_sweep(&sweep, table->btree);

	return rc ? rc : h5_local_heap_extents(file, table->heap, visit, arg);
}

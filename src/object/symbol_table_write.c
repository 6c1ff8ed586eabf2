/* How entries change so that a kill between any two cells of the commit leaves a sound table.
 *
 * Texts come first: object/local_heap_write.h. Then each change of the table is one cell: the symbol table
 * node alone, or one node of the B-tree, and what changes beneath that is in new space. For this, a node
 * stays in place only if nothing changes in its parent since the last commit. So no node ever depends on a
 * change of its parent that is another cell. (Except if the root moves. And pointers between siblings are
 * cells of their own: no lookup follows them, but libhdf5 does when it removes a name, to change the keys of
 * a neighbour.) If an entry gets another name, both changes have to be one cell, so the root changes, and all
 * of both that is beneath it is in new space.
 *
 * Keys of the B-tree are offsets of texts: a node has the names that are greater than its left key, and at
 * most its right key. Keys are as libhdf5 makes them, since it changes only some of them later: the right key
 * of a symbol table node is the name of its last entry, and the same key is the left one of the next node,
 * and stands in the nodes above. If it were greater, libhdf5 would lower it when it appends an entry to that
 * node, but not the same key in the first node of the next subtree; and the names between could not be found.
 */
#include "object/symbol_table_write.h"

#include "base/error.h"
#include "change/btree1_change.h"
#include "change/transaction.h"
#include "object/local_heap_write.h"
#include "object/symbol_table.h"
#include "object/symbol_table_sweep.h"
#include "store/block.h"

#include <stdlib.h>
#include <string.h>

/* ---- a change of one entry ---- */

struct change {
	struct h5_file *file;
	struct h5_symbol_table *table;
	struct h5_symbol_search search;
	struct h5_btree1_change tree;
	/* By level: the name lies beyond the keys of the node on the way. */
	bool above[H5_BTREE1_LEVELS], below[H5_BTREE1_LEVELS];
	unsigned child;	   /* of the leaf: number of the symbol table node */
	uint64_t address;  /* of the symbol table node; H5_UNDEF: there is none yet */
	unsigned capacity; /* of symbol table nodes */
	size_t room;	   /* their bytes */
	uint8_t *bytes;	   /* of the symbol table node, as they will be */
	unsigned count, i; /* its entries, and the place of the name among them */
	struct h5_lru_entry *ref;
	const struct h5_symbol_node *node; /* the symbol table node as it was */
	bool found;			   /* entry i has the name */
};

/* A change of the entry of a name. */
struct order {
	const char *name;
	size_t size;
	const struct h5_link *link; /* what it becomes; NULL: the entry is removed */
	bool exists;		    /* it must be there; else it must not */
	bool at_root;		    /* it takes effect with the cell of the root, as others do */
};

static struct h5_btree1_edit *leaf_of(const struct change *c)
{
	return c->tree.levels[0].node[0];
}

static struct h5_writer node_writer(const struct change *c, uint8_t *bytes)
{
	const struct h5_superblock *sb = h5_file_superblock(c->file);

	return h5_writer_init(bytes, c->room, sb->size_of_offsets, sb->size_of_lengths);
}

static int out_of_memory(const struct change *c)
{
	return h5_fail(-ENOMEM, c->table->btree, "symbol table: out of memory");
}

/* Loads the nodes of the B-tree on the way to the name. */
static int descend(struct change *c)
{
	struct h5_btree1_edit *e = c->tree.root;

	for (;;) {
		unsigned level = e->node.level;
		size_t i;
		int order, rc = h5_symbol_search_child(&c->search, &e->node, &i);

		if (!rc && !e->node.count && e->parent)
			rc = h5_fail(-EUCLEAN, e->address, "version 1 B-tree: an empty node below the root");
		if (rc || !e->node.count)
			return rc;
		c->above[level] = i == e->node.count;
		i -= c->above[level];
		if (!i) {
			rc = h5_symbol_search_compare(&c->search, e->node.keys[0].name, &order);
			c->below[level] = !rc && order <= 0;
		}
		if (!rc && c->below[level] && !e->parent)
			rc = h5_fail(-EUCLEAN, c->table->btree, "symbol table: names before the first key");
		c->child = (unsigned)i;
		if (rc || !level)
			return rc;
		rc = h5_btree1_change_load(&c->tree, e, c->child, &e);
		if (rc)
			return rc;
	}
}

static int load_symbols(struct change *c)
{
	size_t i;
	int rc;

	c->address = leaf_of(c)->node.count ? leaf_of(c)->node.children[c->child] : H5_UNDEF;
	if (c->address == H5_UNDEF)
		return 0;
	rc = h5_symbol_node_get(c->file, c->address, &c->ref, &c->node);
	if (rc)
		return rc;
	c->count = c->node->count;
	rc = h5_symbol_search_entry(&c->search, c->node, &i, &c->found);
	c->i = (unsigned)i;
	if (!rc && c->count > c->capacity)
		rc = h5_fail(-EUCLEAN, c->address, "symbol table: %u entries in a node for %u", c->count,
			     c->capacity);
	return rc ? rc : h5_file_read(c->file, c->address, c->bytes, c->room);
}

/* Finds the place of the name. To be released, even on failure. */
static int change_init(struct change *c, struct h5_file *file, struct h5_symbol_table *table,
		       const char *name, size_t size)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	unsigned k;
	int rc;

	*c = (struct change){.file = file, .table = table};
	rc = h5_symbol_search_begin(&c->search, file, table, name, size);
	if (!rc)
		rc = h5_symbol_node_k(file, &k);
	if (!rc)
		rc = h5_btree1_change_init(&c->tree, file, H5_BTREE1_GROUP, 0, table->btree);
	if (rc)
		return rc;
	c->capacity = 2 * k;
	c->room = h5_symbol_node_room(k, sb->size_of_offsets, sb->size_of_lengths);
	c->bytes = calloc(1, c->room);
	if (!c->bytes)
		return out_of_memory(c);
	rc = descend(c);
	return rc ? rc : load_symbols(c);
}

static void change_release(struct change *c)
{
	free(c->bytes);
	h5_file_put(c->file, c->ref);
	h5_btree1_change_release(&c->tree);
	h5_symbol_search_end(&c->search);
}

/* ---- texts ---- */

static int keep_text(void *arg, uint64_t offset)
{
	return h5_local_heap_collect_keep(arg, offset);
}

/* Marks the texts that the table refers to: now, and as the last commit has left it. */
static int keep_texts(const struct change *c, struct h5_local_heap_collect *collect)
{
	struct h5_symbol_sweep now = {
		.file = c->file, .read = h5_file_read, .text = keep_text, .arg = collect};
	struct h5_symbol_sweep before = {
		.file = c->file, .read = h5_tx_read_committed, .text = keep_text, .arg = collect};
	bool is_new = h5_tx_is_new(c->file, c->table->heap);
	int rc;

	/* The root has moved since the last commit, so it is not known where that has its nodes. */
	if (!is_new && h5_tx_is_new(c->file, c->table->btree))
		return h5_local_heap_collect_keep_all(collect);
	rc = h5_symbol_sweep(&now, c->table->btree);
	return rc || is_new ? rc : h5_symbol_sweep(&before, c->table->btree);
}

/* Makes room for texts, one of which was just stored at the offset `stored`. */
static int make_room(const struct change *c, uint64_t need, uint64_t stored)
{
	struct h5_local_heap_collect collect;
	int rc = h5_local_heap_collect_begin(&collect, c->file, c->table->heap);

	if (!rc)
		rc = keep_texts(c, &collect);
	if (!rc && stored != H5_UNDEF)
		rc = h5_local_heap_collect_keep(&collect, stored);
	if (!rc)
		rc = h5_local_heap_collect_end(&collect, need);
	h5_local_heap_collect_release(&collect);
	return rc;
}

static int add_text(const struct change *c, const char *text, size_t n, uint64_t stored, uint64_t *offset)
{
	int rc = h5_local_heap_add(c->file, c->table->heap, text, n, offset);

	if (rc <= 0)
		return rc;
	rc = make_room(c, h5_local_heap_need(n), stored);
	if (!rc)
		rc = h5_local_heap_add(c->file, c->table->heap, text, n, offset);
	return rc > 0 ? h5_fail(-EUCLEAN, c->table->heap, "local heap: no room") : rc;
}

/* The entry that stands for the link. `name`: the offset of its name. */
static int make_symbol(const struct change *c, uint64_t name, const struct h5_link *link,
		       struct h5_symbol *symbol)
{
	uint64_t target = 0;
	int rc;

	*symbol = (struct h5_symbol){.name = name, .address = link->address};
	if (link->type == H5_LINK_HARD)
		return 0;
	symbol->address = H5_UNDEF;
	symbol->cache = H5_SYMBOL_SOFT;
	rc = add_text(c, link->target, link->target_size, name, &target);
	symbol->target = (uint32_t)target; /* a heap is smaller than H5_BLOCK_MAX */
	return rc;
}

/* ---- nodes ---- */

/* True: the node of the B-tree differs from what the last commit has left. */
static bool is_changed(const struct change *c, const struct h5_btree1_edit *e)
{
	return e->dirty || e->address == H5_UNDEF || h5_tx_is_changed(c->file, e->address, c->tree.size);
}

/* Writes the symbol table node: in place, or to new space, and then the leaf refers to that. */
static int store_symbols(struct change *c)
{
	struct h5_btree1_edit *leaf = leaf_of(c);
	uint64_t before = c->address;
	int rc;

	if (before != H5_UNDEF && !is_changed(c, leaf) && h5_tx_is_safe(c->file, before, c->room))
		return h5_tx_patch(c->file, before, c->bytes, c->room, c->tree.stage);
	rc = h5_tx_shadow(c->file, &c->address, c->bytes, c->room);
	if (!rc && before != H5_UNDEF && c->address != before) {
		leaf->node.children[c->child] = c->address;
		leaf->dirty = true;
	}
	return rc;
}

/* Decides if the node goes to new space. The levels below are written. */
static void settle_place(struct change *c, struct h5_btree1_edit *e)
{
	if (!e || !e->dirty || !e->parent)
		return;
	if (e->address != H5_UNDEF && !h5_tx_is_new(c->file, e->address) && is_changed(c, e->parent))
		e->moves = true;
}

/* Writes the nodes of the B-tree that have changed. The leaf gets an entry for `child` (H5_UNDEF: none) with
 * the left key `key` as its p-th one. */
static int write_tree(struct change *c, uint64_t key, uint64_t child, unsigned p)
{
	struct h5_btree1_key left = {.name = key};
	int rc = 0;

	for (unsigned level = 0; level <= c->tree.height && !rc; level++) {
		struct h5_btree1_edit *e = c->tree.levels[level].node[0];

		if (child != H5_UNDEF)
			rc = h5_btree1_change_insert(&c->tree, e, &left, &child, &p);
		settle_place(c, e);
		settle_place(c, c->tree.levels[level].node[1]);
		if (!rc)
			rc = h5_btree1_change_write(&c->tree, level);
	}
	if (!rc)
		c->table->btree = h5_btree1_change_finish(&c->tree);
	return rc;
}

/* Makes the keys on the way such that the new name, at that offset of the heap, lies between them. */
static void widen(struct change *c, uint64_t name)
{
	for (unsigned level = c->tree.height + 1; level-- > 0;) {
		struct h5_btree1_edit *e = c->tree.levels[level].node[0];
		const struct h5_btree1_key *keys = e->parent ? e->parent->node.keys + e->index : NULL;

		if (c->above[level])
			e->node.keys[e->node.count].name = keys ? keys[1].name : name;
		if (c->below[level])
			e->node.keys[0].name = keys[0].name;
		e->dirty |= c->above[level] || c->below[level];
	}
}

/* ---- insert ---- */

/* The first entry of the table. */
static int insert_first(struct change *c, const struct h5_symbol *symbol)
{
	struct h5_writer node = node_writer(c, c->bytes);
	int rc;

	h5_symbol_node_clear(&node);
	rc = h5_symbol_node_insert(&node, 0, symbol);
	if (!rc)
		rc = store_symbols(c);
	/* What is the left key becomes the right one when the entry comes before it. */
	leaf_of(c)->node.keys[0].name = symbol->name;
	return rc ? rc : write_tree(c, 0, c->address, 0);
}

/* Splits the full node, and puts the entry into one of the halves. All of a node stays if the new name comes
 * after it, so that names that come in order fill their nodes. */
static int insert_split(struct change *c, const struct h5_symbol *symbol)
{
	unsigned stay = c->i == c->count ? c->count : c->count / 2;
	uint8_t *bytes = calloc(1, c->room);
	struct h5_writer left = node_writer(c, c->bytes), right = node_writer(c, bytes);
	/* The last name of the left half. */
	uint64_t key = c->node->symbols[stay - 1].name, address = H5_UNDEF;
	int rc;

	if (!bytes)
		return out_of_memory(c);
	h5_symbol_node_clear(&right);
	h5_symbol_node_split(&left, stay, &right);
	if (c->i <= stay && stay < c->count)
		rc = h5_symbol_node_insert(&left, c->i, symbol);
	else
		rc = h5_symbol_node_insert(&right, c->i - stay, symbol);
	if (c->i == stay && stay < c->count)
		key = symbol->name;
	if (!rc)
		rc = h5_tx_shadow(c->file, &address, bytes, c->room);
	free(bytes);
	leaf_of(c)->dirty = true;
	if (!rc && stay < c->count)
		rc = store_symbols(c);
	return rc ? rc : write_tree(c, key, address, c->child + 1);
}

static int insert(struct change *c, const struct h5_link *link)
{
	struct h5_writer node = node_writer(c, c->bytes);
	struct h5_symbol symbol;
	uint64_t name;
	int rc = add_text(c, c->search.name, c->search.size, H5_UNDEF, &name);

	if (!rc)
		rc = make_symbol(c, name, link, &symbol);
	if (rc)
		return rc;
	widen(c, name);
	if (c->address == H5_UNDEF)
		return insert_first(c, &symbol);
	if (c->count == c->capacity)
		return insert_split(c, &symbol);
	rc = h5_symbol_node_insert(&node, c->i, &symbol);
	if (!rc)
		rc = store_symbols(c);
	return rc ? rc : write_tree(c, 0, H5_UNDEF, 0);
}

/* ---- change and remove ---- */

static int replace(struct change *c, const struct h5_link *link)
{
	struct h5_writer node = node_writer(c, c->bytes);
	struct h5_symbol symbol;
	int rc = make_symbol(c, c->node->symbols[c->i].name, link, &symbol);

	if (!rc)
		rc = h5_symbol_node_replace(&node, c->i, &symbol);
	if (!rc)
		rc = store_symbols(c);
	return rc ? rc : write_tree(c, 0, H5_UNDEF, 0);
}

/* Makes `key` the first key of child i, and of the first node on each level below. Only leaves are empty. */
static int set_first(struct change *c, struct h5_btree1_edit *e, unsigned i, uint64_t key)
{
	for (; e->node.level; i = 0) {
		int rc = h5_btree1_change_load_right(&c->tree, e, i, &e);

		if (rc)
			return rc;
		e->node.keys[0].name = key;
		e->dirty = true;
	}
	return 0;
}

/* Makes `key` the key behind child i. */
static int set_key(struct change *c, struct h5_btree1_edit *e, unsigned i, uint64_t key)
{
	for (;; i = e->index, e = e->parent) {
		e->node.keys[i + 1].name = key;
		e->dirty = true;
		if (i + 1 < e->node.count)
			return set_first(c, e, i + 1, key);
		if (!e->parent)
			return 0;
	}
}

/* Removes the symbol table node from the B-tree, and all nodes above it that have no other child. The range
 * of names goes to what follows. */
static int drop_symbols(struct change *c)
{
	struct h5_btree1_edit *e = leaf_of(c);
	struct h5_btree1_key key;
	unsigned i = c->child;
	int rc = 0;

	h5_tx_free(c->file, c->address, c->room);
	for (; e->node.count == 1 && e->parent; e = e->parent) {
		e->dropped = true;
		i = e->index;
	}
	key = e->node.keys[i];
	h5_btree1_change_take(e, i);
	e->node.keys[i] = key;
	if (!e->node.count)
		e->node.level = 0;
	else if (i < e->node.count)
		rc = set_first(c, e, i, key.name);
	else
		rc = set_key(c, e, i - 1, key.name);
	return rc ? rc : write_tree(c, 0, H5_UNDEF, 0);
}

static int remove_entry(struct change *c)
{
	struct h5_writer node = node_writer(c, c->bytes);
	int rc = 0;

	if (c->count == 1)
		return drop_symbols(c);
	if (c->i == c->count - 1)
		rc = set_key(c, leaf_of(c), c->child, c->node->symbols[c->i - 1].name);
	h5_symbol_node_remove(&node, c->i);
	if (!rc)
		rc = store_symbols(c);
	return rc ? rc : write_tree(c, 0, H5_UNDEF, 0);
}

/* ---- the interface ---- */

static int check_text(const char *text, size_t size)
{
	if (size > H5_SYMBOL_TEXT_MAX)
		return h5_fail(-ENAMETOOLONG, H5_UNDEF, "symbol table: a text of %zu bytes", size);
	if (!size || memchr(text, 0, size))
		return h5_fail(-EINVAL, H5_UNDEF, "symbol table: a text that is empty, or has a NUL");
	return 0;
}

static int check_link(const struct h5_link *link)
{
	if (link->type == H5_LINK_HARD)
		return 0;
	if (link->type == H5_LINK_SOFT)
		return check_text(link->target, link->target_size);
	return h5_fail(-ENOTSUP, H5_UNDEF, "symbol table: no links of type %u", link->type);
}

/* All nodes on the way to the entry change, so what is below the root goes to new space. */
static void gather(struct change *c)
{
	for (unsigned level = 0; level <= c->tree.height; level++)
		c->tree.levels[level].node[0]->dirty = true;
}

/* Ends a change: a unit of its own. */
static int change_apply(struct change *c, const struct order *order)
{
	const struct h5_link *link = order->link;
	int rc;

	h5_unit_begin(c->file);
	rc = h5_unit_save(c->file, c->table, sizeof *c->table);
	c->tree.stage = link ? H5_STAGE_NAME : H5_STAGE_UNNAME;
	if (order->at_root)
		gather(c);
	if (!rc)
		rc = !link ? remove_entry(c) : c->found ? replace(c, link) : insert(c, link);
	return h5_unit_end(c->file, rc);
}

static int change_entry(struct h5_file *file, struct h5_symbol_table *table, const struct order *order)
{
	struct change c;
	int rc = h5_tx_is_writable(file) ? check_text(order->name, order->size) : -EROFS;

	if (!rc && order->link)
		rc = check_link(order->link);
	if (rc)
		return rc;
	rc = change_init(&c, file, table, order->name, order->size);
	if (!rc && c.found != order->exists)
		rc = order->exists ? -ENOENT : -EEXIST;
	if (!rc)
		rc = change_apply(&c, order);
	change_release(&c);
	return rc;
}

int h5_symbol_table_insert(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size,
			   const struct h5_link *link)
{
	return change_entry(file, table, &(struct order){name, size, link, false, false});
}

int h5_symbol_table_change(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size,
			   const struct h5_link *link)
{
	return change_entry(file, table, &(struct order){name, size, link, true, false});
}

int h5_symbol_table_remove(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size)
{
	return change_entry(file, table, &(struct order){name, size, NULL, true, false});
}

int h5_symbol_table_rename(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size,
			   const struct h5_link *as)
{
	const struct order insert = {as->name, as->name_size, as, false, true},
			   remove = {name, size, NULL, true, true};
	int rc;

	h5_unit_begin(file);
	rc = change_entry(file, table, &insert);
	if (!rc)
		rc = change_entry(file, table, &remove);
	return h5_unit_end(file, rc);
}

int h5_symbol_table_free(struct h5_file *file, const struct h5_symbol_table *table)
{
	h5_unit_begin(file);
	return h5_unit_end(file, h5_symbol_table_extents(file, table, h5_tx_free_extent, file));
}

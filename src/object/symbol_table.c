#include "object/symbol_table.h"

#include "base/error.h"
#include "base/lower_bound.h"
#include "object/named_message.h"
#include "store/block.h"
#include "store/file.h"

#include <assert.h>
#include <stdlib.h>

enum {
	NAME_MAX_SIZE = 1 << 20,
	FIRST_READ = 512, /* bytes that the first read of a node asks for; most nodes are smaller */
};

static int load_node(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	uint8_t first[FIRST_READ];
	struct h5_symbol_node *node;
	struct h5_reader r;
	size_t size, got;
	void *data = NULL;
	int rc = h5_file_read_some(file, address, first, sizeof first, &got);

	(void)arg;
	if (rc)
		return rc;
	r = h5_file_reader(file, first, got, address);
	rc = h5_symbol_node_size(&r, &size);
	if (!rc && size > got)
		rc = h5_block_open(file, address, size, "symbol table node", &data, &r);
	else if (!rc)
		r = h5_file_reader(file, first, size, address);
	if (!rc)
		rc = h5_symbol_node_decode(&r, &node, cost);
	if (!rc)
		*value = node;
	free(data);
	return rc;
}

static const struct h5_block_type node_block = {{"symbol table node", free}, load_node};

int h5_symbol_node_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		       const struct h5_symbol_node **node)
{
	int rc = h5_file_block(file, &node_block, address, 0, NULL, ref);

	*node = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

/* ---- one entry ---- */

int h5_symbol_search_begin(struct h5_symbol_search *search, struct h5_file *file,
			   const struct h5_symbol_table *table, const char *name, size_t size)
{
	*search = (struct h5_symbol_search){.file = file, .name = name, .size = size};
	h5_buf_init(&search->text, NAME_MAX_SIZE);
	return h5_local_heap_open(file, table->heap, &search->heap);
}

void h5_symbol_search_end(struct h5_symbol_search *search)
{
	h5_buf_release(&search->text);
}

int h5_symbol_search_compare(struct h5_symbol_search *search, uint64_t offset, int *order)
{
	int rc;

	search->text.size = 0;
	rc = h5_local_heap_text(&search->heap, offset, &search->text);
	if (!rc)
		*order = h5_name_compare(search->name, search->size, search->text.data, search->text.size);
	return rc;
}

/* For binary searches: true if the name that is sought comes after the one at the offset. After an error,
 * which is in *rc then, it is false at once. */
static bool is_after(struct h5_symbol_search *search, uint64_t offset, int *rc)
{
	int order = 0;

	if (!*rc)
		*rc = h5_symbol_search_compare(search, offset, &order);
	return order > 0;
}

/* Child i holds the names that are greater than key i, up to and including key i + 1. So a name belongs to
 * the first child whose upper key is not less than it. */
int h5_symbol_search_child(struct h5_symbol_search *search, const struct h5_btree1_node *node, size_t *i)
{
	int rc = 0;

	*i = h5_lower_bound(k, node->count, is_after(search, node->keys[k + 1].name, &rc));
	return rc;
}

int h5_symbol_search_entry(struct h5_symbol_search *search, const struct h5_symbol_node *node, size_t *i,
			   bool *found)
{
	int order = 0, rc = 0;

	*found = false;
	*i = h5_lower_bound(k, node->count, is_after(search, node->symbols[k].name, &rc));
	if (rc || *i == node->count)
		return rc;
	rc = h5_symbol_search_compare(search, node->symbols[*i].name, &order);
	*found = !rc && !order;
	return rc;
}

/* From the root of the B-tree to the address of the symbol table node; the level falls at each step. */
static int descend(struct h5_symbol_search *search, uint64_t *address)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	int rc, level = -1;

	do {
		size_t i;

		rc = h5_btree1_node_get(search->file, *address, H5_BTREE1_GROUP, 0, level, &ref, &node);
		if (rc)
			return rc;
		level = node->level - 1;
		rc = h5_symbol_search_child(search, node, &i);
		if (!rc && i == node->count)
			rc = -ENOENT;
		if (!rc)
			*address = node->children[i];
		h5_file_put(search->file, ref);
		if (rc)
			return rc;
	} while (level >= 0);
	return 0;
}

static int find_symbol(struct h5_symbol_search *search, uint64_t address, struct h5_symbol *symbol)
{
	const struct h5_symbol_node *node;
	struct h5_lru_entry *ref;
	bool found;
	size_t i;
	int rc = h5_symbol_node_get(search->file, address, &ref, &node);

	if (rc)
		return rc;
	rc = h5_symbol_search_entry(search, node, &i, &found);
	if (!rc && !found)
		rc = -ENOENT;
	if (!rc)
		*symbol = node->symbols[i];
	h5_file_put(search->file, ref);
	return rc;
}

int h5_symbol_table_lookup(struct h5_file *file, const struct h5_symbol_table *table, const char *name,
			   size_t size, struct h5_symbol *symbol)
{
	struct h5_symbol_search search;
	uint64_t address = table->btree;
	int rc = h5_symbol_search_begin(&search, file, table, name, size);

	if (!rc)
		rc = descend(&search, &address);
	if (!rc)
		rc = find_symbol(&search, address, symbol);
	h5_symbol_search_end(&search);
	return rc;
}

/* ---- all entries ---- */

static int mark_seen(struct h5_symbol_walk *walk, uint64_t address)
{
	int rc = h5_seen_add(&walk->seen, address);

	if (rc == -EEXIST)
		return h5_fail(-EUCLEAN, address, "symbol table: a node belongs to two places");
	return rc ? h5_fail(rc, address, "symbol table: out of memory") : 0;
}

/* Goes down to a node of the B-tree; level -1: of any level. */
static int enter_node(struct h5_symbol_walk *walk, uint64_t address, int level)
{
	struct h5_symbol_step *step = &walk->path[walk->depth];
	int rc;

	assert(walk->depth < H5_SYMBOL_DEPTH);
	rc = mark_seen(walk, address);
	*step = (struct h5_symbol_step){.next = 0};
	if (!rc)
		rc = h5_btree1_node_get(walk->file, address, H5_BTREE1_GROUP, 0, level, &step->ref,
					&step->node);
	if (!rc)
		h5_btree1_want(walk->file, step->node, 0, 0, H5_WANT_MAX);
	walk->depth += !rc;
	return rc;
}

static int enter_symbols(struct h5_symbol_walk *walk, uint64_t address)
{
	int rc = mark_seen(walk, address);

	if (!rc)
		rc = h5_symbol_node_get(walk->file, address, &walk->ref, &walk->symbols);
	walk->next = 0;
	return rc;
}

static void leave_symbols(struct h5_symbol_walk *walk)
{
	h5_file_put(walk->file, walk->ref);
	walk->ref = NULL;
	walk->symbols = NULL;
}

/* Moves to the next symbol table node that can be read; walk->symbols is NULL if there is none. */
static int next_symbols(struct h5_symbol_walk *walk)
{
	int rc = 0;

	leave_symbols(walk);
	while (walk->depth && !walk->symbols && !rc) {
		struct h5_symbol_step *step = &walk->path[walk->depth - 1];
		uint64_t child;

		if (step->next == step->node->count) {
			h5_file_put(walk->file, step->ref);
			walk->depth--;
			continue;
		}
		child = step->node->children[step->next++];
		/* The level falls with each step down. */
		rc = step->node->level ? enter_node(walk, child, step->node->level - 1)
				       : enter_symbols(walk, child);
		rc = h5_damage_note(&walk->damage, rc);
	}
	return rc;
}

int h5_symbol_begin(struct h5_symbol_walk *walk, struct h5_file *file, const struct h5_symbol_table *table)
{
	*walk = (struct h5_symbol_walk){.file = file};
	h5_btree1_want_all(file, table->btree);
	return enter_node(walk, table->btree, -1);
}

int h5_symbol_next(struct h5_symbol_walk *walk, const struct h5_symbol **symbol)
{
	while (!walk->symbols || walk->next == walk->symbols->count) {
		int rc = next_symbols(walk);

		if (rc || !walk->symbols)
			return rc ? rc : h5_damage_result(&walk->damage);
	}
	*symbol = &walk->symbols->symbols[walk->next++];
	return 1;
}

void h5_symbol_end(struct h5_symbol_walk *walk)
{
	leave_symbols(walk);
	while (walk->depth)
		h5_file_put(walk->file, walk->path[--walk->depth].ref);
	h5_seen_release(&walk->seen);
}

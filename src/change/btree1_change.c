#include "change/btree1_change.h"

#include "base/error.h"
#include "base/writer.h"
#include "change/transaction.h"

#include <stdlib.h>
#include <string.h>

static int out_of_memory(void)
{
	return h5_fail(-ENOMEM, H5_UNDEF, "version 1 B-tree: out of memory");
}

static unsigned stage_of(const struct h5_btree1_change *change, unsigned level)
{
	return change->stage ? change->stage : H5_STAGE_BLOCK + (H5_BTREE1_LEVELS - 1 - level);
}

/* A node through the cache. Level -1: any. */
static int node_get(const struct h5_btree1_change *change, uint64_t address, int level,
		    struct h5_lru_entry **ref, const struct h5_btree1_node **node)
{
	return h5_btree1_node_get(change->file, address, change->type, change->rank, level, ref, node);
}

/* ---- nodes ---- */

static int edit_new(struct h5_btree1_change *change, struct h5_btree1_edit **out)
{
	struct h5_btree1_edit *e = calloc(1, sizeof *e + change->capacity * sizeof *e->node.children +
						     (change->capacity + 1) * sizeof *e->node.keys);

	if (!e)
		return out_of_memory();
	e->node.type = change->type;
	e->node.left = e->node.right = H5_UNDEF;
	e->node.children = (uint64_t *)(e + 1);
	e->node.keys = (struct h5_btree1_key *)(e->node.children + change->capacity);
	e->address = e->to = H5_UNDEF;
	e->next = change->edits;
	change->edits = e;
	*out = e;
	return 0;
}

static int edit_load(struct h5_btree1_change *change, uint64_t address, int level,
		     struct h5_btree1_edit **out)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	struct h5_btree1_edit *e;
	int rc = node_get(change, address, level, &ref, &node);

	if (rc)
		return rc;
	if (node->count > change->capacity)
		rc = h5_fail(-EUCLEAN, address, "version 1 B-tree: %u entries in a node for %u", node->count,
			     change->capacity);
	else if (!node->count && node->level)
		rc = h5_fail(-EUCLEAN, address, "version 1 B-tree: empty node of level %u", node->level);
	else
		rc = edit_new(change, &e);
	if (rc) {
		h5_file_put(change->file, ref);
		return rc;
	}
	e->ref = ref;
	e->address = address;
	e->node.level = node->level;
	e->node.count = node->count;
	e->node.left = node->left;
	e->node.right = node->right;
	memcpy(e->node.children, node->children, node->count * sizeof *node->children);
	memcpy(e->node.keys, node->keys, (node->count + 1) * sizeof *node->keys);
	*out = e;
	return 0;
}

static int load_child(struct h5_btree1_change *change, struct h5_btree1_edit *parent, unsigned i,
		      struct h5_btree1_edit **edit)
{
	int rc = edit_load(change, parent->node.children[i], parent->node.level - 1, edit);

	if (rc)
		return rc;
	(*edit)->parent = parent;
	(*edit)->index = i;
	return 0;
}

int h5_btree1_change_load(struct h5_btree1_change *change, struct h5_btree1_edit *parent, unsigned i,
			  struct h5_btree1_edit **edit)
{
	struct h5_btree1_level *level = &change->levels[parent->node.level - 1];
	int rc = load_child(change, parent, i, edit);

	if (rc)
		return rc;
	level->node[1] = level->node[0];
	level->node[0] = *edit;
	return 0;
}

int h5_btree1_change_load_right(struct h5_btree1_change *change, struct h5_btree1_edit *parent, unsigned i,
				struct h5_btree1_edit **edit)
{
	int rc = load_child(change, parent, i, edit);

	if (!rc)
		change->levels[parent->node.level - 1].node[1] = *edit;
	return rc;
}

int h5_btree1_change_init(struct h5_btree1_change *change, struct h5_file *file, enum h5_btree1_type type,
			  unsigned rank, uint64_t root)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	unsigned k;
	int rc = h5_btree1_node_k(file, type, &k);

	*change = (struct h5_btree1_change){.file = file, .type = type, .rank = rank};
	if (rc)
		return rc;
	change->capacity = 2 * k;
	change->size = h5_btree1_node_room(type, rank, k, sb->size_of_offsets, sb->size_of_lengths);
	if (root == H5_UNDEF)
		rc = edit_new(change, &change->root);
	else
		rc = edit_load(change, root, -1, &change->root);
	if (rc)
		return rc;
	change->height = change->root->node.level;
	change->levels = calloc(change->height + 2u, sizeof *change->levels);
	if (!change->levels)
		return out_of_memory();
	change->levels[change->height].node[0] = change->root;
	return 0;
}

void h5_btree1_change_release(struct h5_btree1_change *change)
{
	struct h5_btree1_edit *next;

	for (struct h5_btree1_edit *e = change->edits; e; e = next) {
		next = e->next;
		h5_file_put(change->file, e->ref);
		free(e);
	}
	free(change->levels);
	*change = (struct h5_btree1_change){0};
}

/* ---- entries ---- */

static void put_entry(struct h5_btree1_edit *e, unsigned p, const struct h5_btree1_key *key, uint64_t child)
{
	struct h5_btree1_node *node = &e->node;

	memmove(node->keys + p + 1, node->keys + p, (node->count + 1 - p) * sizeof *node->keys);
	memmove(node->children + p + 1, node->children + p, (node->count - p) * sizeof *node->children);
	node->keys[p] = *key;
	node->children[p] = child;
	node->count++;
	e->dirty = true;
}

void h5_btree1_change_take(struct h5_btree1_edit *e, unsigned p)
{
	struct h5_btree1_node *node = &e->node;

	node->count--;
	memmove(node->keys + p, node->keys + p + 1, (node->count + 1 - p) * sizeof *node->keys);
	memmove(node->children + p, node->children + p + 1, (node->count - p) * sizeof *node->children);
	e->dirty = true;
}

/* How many entries stay in a full node that splits: as in libhdf5, up to the rounding of its ratios, so that
 * the trees are alike. At the right end of a level, where appends go, 0.9 of them; at the left end 0.1; else
 * half. */
static unsigned split_at(const struct h5_btree1_change *change, const struct h5_btree1_node *node)
{
	float ratio = node->right == H5_UNDEF ? 0.9f : node->left == H5_UNDEF ? 0.1f : 0.5f;
	unsigned stay = (unsigned)(change->capacity * (double)ratio);

	return stay ? stay : 1;
}

static int split(struct h5_btree1_change *change, struct h5_btree1_edit *e)
{
	unsigned stay = split_at(change, &e->node);
	struct h5_btree1_edit *right;
	int rc = edit_new(change, &right);

	if (rc)
		return rc;
	right->dirty = true;
	right->node.level = e->node.level;
	right->node.right = e->node.right;
	right->node.count = e->node.count - stay;
	memcpy(right->node.keys, e->node.keys + stay, (right->node.count + 1) * sizeof *e->node.keys);
	memcpy(right->node.children, e->node.children + stay, right->node.count * sizeof *e->node.children);
	e->node.count = stay;
	e->moves = true;
	change->levels[e->node.level].node[1] = right;
	return 0;
}

/* Puts a new root above the old one, and at its address, as libhdf5 does. So the layout message does not
 * change. */
static int raise_root(struct h5_btree1_change *change, const struct h5_btree1_key *last)
{
	struct h5_btree1_edit *old = change->root, *root;
	int rc;

	if (change->height + 1 == H5_BTREE1_LEVELS)
		return h5_fail(-EFBIG, old->address, "version 1 B-tree: too many levels");
	rc = edit_new(change, &root);
	if (rc)
		return rc;
	root->address = old->address;
	root->ref = old->ref;
	root->node.level = (uint8_t)(old->node.level + 1);
	root->node.count = 1;
	root->node.keys[0] = old->node.keys[0];
	root->node.keys[1] = *last;
	old->address = H5_UNDEF;
	old->ref = NULL;
	old->parent = root;
	change->root = root;
	change->height++;
	change->levels[change->height].node[0] = root;
	return 0;
}

int h5_btree1_change_insert(struct h5_btree1_change *change, struct h5_btree1_edit *e,
			    struct h5_btree1_key *key, uint64_t *child, unsigned *p)
{
	/* The entry before the new one, or else the first; if the node splits, the new entry goes where this
	 * one is. */
	unsigned near = *p ? *p - 1 : 0;
	struct h5_btree1_edit *right;
	int rc;

	if (e->node.count < change->capacity) {
		put_entry(e, *p, key, *child);
		*child = H5_UNDEF;
		return 0;
	}
	rc = split(change, e);
	if (rc)
		return rc;
	right = change->levels[e->node.level].node[1];
	if (near < e->node.count)
		put_entry(e, *p, key, *child);
	else
		put_entry(right, *p - e->node.count, key, *child);
	e->dirty = true;
	if (!e->parent)
		rc = raise_root(change, &right->node.keys[right->node.count]);
	if (!rc)
		rc = h5_tx_allocate(change->file, H5_ALLOCATE_METADATA, change->size, &right->to);
	*key = right->node.keys[0];
	*child = right->to;
	*p = e->index + 1;
	return rc;
}

/* ---- addresses ---- */

/* Each small file has a tree of its own, whose one node has half a page or more, and seldom changes. So it
 * lies anywhere; if it changes in a later commit, it may have to move, once. */
static enum h5_allocation kind_of(const struct h5_btree1_change *change, const struct h5_btree1_edit *e)
{
	bool is_first = e->address == H5_UNDEF && e == change->root && !e->node.level && change->rank;

	return is_first ? H5_ALLOCATE_ONCE : H5_ALLOCATE_METADATA;
}

static int place(struct h5_btree1_change *change, struct h5_btree1_edit *e)
{
	struct h5_file *file = change->file;
	int rc = 0;

	if (!e->dirty ||
	    (e->address != H5_UNDEF && !e->moves && h5_tx_is_safe(file, e->address, change->size)))
		e->to = e->address;
	else if (e->to == H5_UNDEF)
		rc = h5_tx_allocate(file, kind_of(change, e), change->size, &e->to);
	if (!rc && e->parent && e->parent->node.children[e->index] != e->to) {
		e->parent->node.children[e->index] = e->to;
		e->parent->dirty = true;
	}
	return rc;
}

static int write_node(const struct h5_btree1_change *change, const struct h5_btree1_edit *e)
{
	const struct h5_superblock *sb = h5_file_superblock(change->file);
	void *memory = malloc(change->size);
	struct h5_writer w = h5_writer_init(memory, change->size, sb->size_of_offsets, sb->size_of_lengths);
	int rc = memory ? h5_btree1_node_encode(&w, &e->node, change->rank) : out_of_memory();

	if (!rc)
		rc = h5_tx_patch(change->file, e->to, memory, change->size, stage_of(change, e->node.level));
	free(memory);
	return rc;
}

/* Changes the sibling on that side of the node at the address from `from` to `to`. Only changes of the tree
 * use siblings, no lookup does. So nothing is done if there is no node, or if it has another sibling: that is
 * a remnant without meaning. If the field crosses a page, only the journal protects it. */
static int relink(const struct h5_btree1_change *change, unsigned level, uint64_t address, bool right,
		  uint64_t from, uint64_t to)
{
	unsigned width = h5_file_superblock(change->file)->size_of_offsets;
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	uint8_t bytes[8];
	bool points_back;
	int rc;

	if (address == H5_UNDEF || from == H5_UNDEF || from == to)
		return 0;
	rc = node_get(change, address, (int)level, &ref, &node);
	if (rc)
		return rc == -EUCLEAN ? 0 : rc;
	points_back = (right ? node->right : node->left) == from;
	h5_file_put(change->file, ref);
	if (!points_back)
		return 0;
	h5_uint_to(bytes, to, width);
	rc = h5_tx_patch(change->file, address + h5_btree1_sibling_offset(right, (uint8_t)width), bytes,
			 width, stage_of(change, level));
	h5_tx_forget(change->file, address);
	return rc;
}

int h5_btree1_change_write(struct h5_btree1_change *change, unsigned level)
{
	struct h5_btree1_level *l = &change->levels[level];
	struct h5_btree1_edit *first = l->node[0], *last = l->node[1] ? l->node[1] : first, *stay[2];
	uint64_t left, right, from;
	unsigned n = 0;
	int rc = 0;

	if (!first)
		return 0;
	left = first->node.left;
	right = change->tail ? H5_UNDEF : last->node.right;
	from = last->address == H5_UNDEF ? first->address : last->address;
	for (unsigned i = 0; i < 2 && !rc; i++) {
		if (!l->node[i] || l->node[i]->dropped)
			continue;
		stay[n++] = l->node[i];
		rc = place(change, l->node[i]);
	}
	for (unsigned i = 0; i < n && !rc; i++) {
		stay[i]->node.left = i ? stay[i - 1]->to : left;
		stay[i]->node.right = i + 1 < n ? stay[i + 1]->to : right;
		if (stay[i]->dirty)
			rc = write_node(change, stay[i]);
	}
	if (!rc)
		rc = relink(change, level, left, true, first->address, n ? stay[0]->to : right);
	return rc ? rc : relink(change, level, right, false, from, n ? stay[n - 1]->to : left);
}

uint64_t h5_btree1_change_finish(struct h5_btree1_change *change)
{
	for (struct h5_btree1_edit *e = change->edits; e; e = e->next)
		if (e->address != H5_UNDEF && (e->dropped || e->to != e->address))
			h5_tx_free(change->file, e->address, change->size);
	return change->root->to;
}

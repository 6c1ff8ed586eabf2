#include "chunk_index/btree1_change.h"

#include "base/checked.h"
#include "base/writer.h"
#include "change/transaction.h"

#include <stdlib.h>
#include <string.h>

int h5_chunk_btree1_node_get(const struct h5_chunk_index *index, uint64_t address, int level,
			     struct h5_lru_entry **ref, const struct h5_btree1_node **node)
{
	return h5_btree1_node_get(index->file, address, H5_BTREE1_CHUNK, index->layout.rank, level, ref,
				  node);
}

static int out_of_memory(const struct h5_btree1_change *c)
{
	return h5_fail(-ENOMEM, c->index->layout.address, "version 1 B-tree: out of memory");
}

static unsigned stage_of(unsigned level)
{
	return H5_STAGE_BLOCK + (H5_BTREE1_LEVELS - 1 - level);
}

/* ---- nodes ---- */

static int edit_new(struct h5_btree1_change *c, struct h5_btree1_edit **out)
{
	struct h5_btree1_edit *e = calloc(1, sizeof *e + c->capacity * sizeof *e->node.children +
						     (c->capacity + 1) * sizeof *e->node.keys);

	if (!e)
		return out_of_memory(c);
	e->node.type = H5_BTREE1_CHUNK;
	e->node.left = e->node.right = H5_UNDEF;
	e->node.children = (uint64_t *)(e + 1);
	e->node.keys = (struct h5_btree1_chunk_key *)(e->node.children + c->capacity);
	e->address = e->to = H5_UNDEF;
	e->next = c->edits;
	c->edits = e;
	*out = e;
	return 0;
}

static int edit_load(struct h5_btree1_change *c, uint64_t address, int level, struct h5_btree1_edit **out)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	struct h5_btree1_edit *e;
	int rc = h5_chunk_btree1_node_get(c->index, address, level, &ref, &node);

	if (rc)
		return rc;
	if (node->count > c->capacity)
		rc = h5_fail(-EUCLEAN, address, "version 1 B-tree: %u entries in a node for %u", node->count,
			     c->capacity);
	else if (!node->count && node->level)
		rc = h5_fail(-EUCLEAN, address, "version 1 B-tree: empty node of level %u", node->level);
	else
		rc = edit_new(c, &e);
	if (rc) {
		h5_file_put(c->index->file, ref);
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

int h5_btree1_change_load(struct h5_btree1_change *c, struct h5_btree1_edit *parent, unsigned i,
			  struct h5_btree1_edit **edit)
{
	struct h5_btree1_level *level = &c->levels[parent->node.level - 1];
	int rc = edit_load(c, parent->node.children[i], parent->node.level - 1, edit);

	if (rc)
		return rc;
	(*edit)->parent = parent;
	(*edit)->index = i;
	level->node[1] = level->node[0];
	level->node[0] = *edit;
	return 0;
}

int h5_btree1_change_init(struct h5_btree1_change *c, struct h5_chunk_index *index)
{
	unsigned k;
	int rc = h5_btree1_chunk_k(index->file, &k);

	*c = (struct h5_btree1_change){.index = index};
	if (rc)
		return rc;
	c->capacity = 2 * k;
	c->size = h5_btree1_chunk_node_size(index->layout.rank, k,
					    h5_file_superblock(index->file)->size_of_offsets);
	if (index->layout.address == H5_UNDEF)
		rc = edit_new(c, &c->root);
	else
		rc = edit_load(c, index->layout.address, -1, &c->root);
	if (rc)
		return rc;
	c->height = c->root->node.level;
	c->levels = calloc(c->height + 2u, sizeof *c->levels);
	if (!c->levels)
		return out_of_memory(c);
	c->levels[c->height].node[0] = c->root;
	return 0;
}

void h5_btree1_change_release(struct h5_btree1_change *c)
{
	struct h5_btree1_edit *next;

	for (struct h5_btree1_edit *e = c->edits; e; e = next) {
		next = e->next;
		h5_file_put(c->index->file, e->ref);
		free(e);
	}
	free(c->levels);
	*c = (struct h5_btree1_change){0};
}

/* ---- entries ---- */

static void put_entry(struct h5_btree1_edit *e, unsigned p, const struct h5_btree1_chunk_key *key,
		      uint64_t child)
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
static unsigned split_at(const struct h5_btree1_change *c, const struct h5_btree1_node *node)
{
	float ratio = node->right == H5_UNDEF ? 0.9f : node->left == H5_UNDEF ? 0.1f : 0.5f;
	unsigned stay = (unsigned)(c->capacity * (double)ratio);

	return stay ? stay : 1;
}

static int split(struct h5_btree1_change *c, struct h5_btree1_edit *e)
{
	unsigned stay = split_at(c, &e->node);
	struct h5_btree1_edit *right;
	int rc = edit_new(c, &right);

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
	c->levels[e->node.level].node[1] = right;
	return 0;
}

/* Puts a new root above the old one, and at its address, as libhdf5 does. So the layout message does not
 * change. */
static int raise_root(struct h5_btree1_change *c, const struct h5_btree1_chunk_key *last)
{
	struct h5_btree1_edit *old = c->root, *root;
	int rc;

	if (c->height + 1 == H5_BTREE1_LEVELS)
		return h5_fail(-EFBIG, old->address, "version 1 B-tree: too many levels");
	rc = edit_new(c, &root);
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
	c->root = root;
	c->height++;
	c->levels[c->height].node[0] = root;
	return 0;
}

int h5_btree1_change_insert(struct h5_btree1_change *c, struct h5_btree1_edit *e,
			    struct h5_btree1_chunk_key *key, uint64_t *child, unsigned *p)
{
	unsigned near = *p ? *p - 1 : 0; /* the new entry goes into the same node as this one */
	struct h5_btree1_edit *right;
	int rc;

	if (e->node.count < c->capacity) {
		put_entry(e, *p, key, *child);
		*child = H5_UNDEF;
		return 0;
	}
	rc = split(c, e);
	if (rc)
		return rc;
	right = c->levels[e->node.level].node[1];
	if (near < e->node.count)
		put_entry(e, *p, key, *child);
	else
		put_entry(right, *p - e->node.count, key, *child);
	e->dirty = true;
	if (!e->parent)
		rc = raise_root(c, &right->node.keys[right->node.count]);
	if (!rc)
		rc = h5_tx_allocate(c->index->file, H5_ALLOCATE_METADATA, c->size, &right->to);
	*key = right->node.keys[0];
	*child = right->to;
	*p = e->index + 1;
	return rc;
}

/* ---- addresses ---- */

static int place(struct h5_btree1_change *c, struct h5_btree1_edit *e)
{
	struct h5_file *file = c->index->file;
	int rc = 0;

	if (!e->dirty || (e->address != H5_UNDEF && !e->moves && h5_tx_is_safe(file, e->address, c->size)))
		e->to = e->address;
	else if (e->to == H5_UNDEF)
		rc = h5_tx_allocate(file, H5_ALLOCATE_METADATA, c->size, &e->to);
	if (!rc && e->parent && e->parent->node.children[e->index] != e->to) {
		e->parent->node.children[e->index] = e->to;
		e->parent->dirty = true;
	}
	return rc;
}

static int write_node(const struct h5_btree1_change *c, const struct h5_btree1_edit *e)
{
	const struct h5_superblock *sb = h5_file_superblock(c->index->file);
	void *memory = malloc(c->size);
	struct h5_writer w = h5_writer_init(memory, c->size, sb->size_of_offsets, sb->size_of_lengths);
	int rc = memory ? h5_btree1_chunk_node_encode(&w, &e->node, c->index->layout.rank) : out_of_memory(c);

	if (!rc)
		rc = h5_tx_patch(c->index->file, e->to, memory, c->size, stage_of(e->node.level));
	free(memory);
	return rc;
}

/* Changes the sibling on that side of the node at the address from `from` to `to`. Only changes of the tree
 * use siblings, no lookup does. So nothing is done if there is no node, or if it has another sibling: that is
 * a remnant without meaning. If the field crosses a page, only the journal protects it. */
static int relink(const struct h5_btree1_change *c, unsigned level, uint64_t address, bool right,
		  uint64_t from, uint64_t to)
{
	unsigned width = h5_file_superblock(c->index->file)->size_of_offsets;
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	uint8_t bytes[8];
	bool points_back;
	int rc;

	if (address == H5_UNDEF || from == H5_UNDEF || from == to)
		return 0;
	rc = h5_chunk_btree1_node_get(c->index, address, (int)level, &ref, &node);
	if (rc)
		return rc == -EUCLEAN ? 0 : rc;
	points_back = (right ? node->right : node->left) == from;
	h5_file_put(c->index->file, ref);
	if (!points_back)
		return 0;
	h5_uint_to(bytes, to, width);
	rc = h5_tx_patch(c->index->file, address + h5_btree1_sibling_offset(right, (uint8_t)width), bytes,
			 width, stage_of(level));
	h5_tx_forget(c->index->file, address);
	return rc;
}

int h5_btree1_change_write(struct h5_btree1_change *c, unsigned level)
{
	struct h5_btree1_level *l = &c->levels[level];
	struct h5_btree1_edit *first = l->node[0], *last = l->node[1] ? l->node[1] : first, *stay[2];
	uint64_t left, right, from;
	unsigned n = 0;
	int rc = 0;

	if (!first)
		return 0;
	left = first->node.left;
	right = c->tail ? H5_UNDEF : last->node.right;
	from = last->address == H5_UNDEF ? first->address : last->address;
	for (unsigned i = 0; i < 2 && !rc; i++) {
		if (!l->node[i] || l->node[i]->dropped)
			continue;
		stay[n++] = l->node[i];
		rc = place(c, l->node[i]);
	}
	for (unsigned i = 0; i < n && !rc; i++) {
		stay[i]->node.left = i ? stay[i - 1]->to : left;
		stay[i]->node.right = i + 1 < n ? stay[i + 1]->to : right;
		if (stay[i]->dirty)
			rc = write_node(c, stay[i]);
	}
	if (!rc)
		rc = relink(c, level, left, true, first->address, n ? stay[0]->to : right);
	return rc ? rc : relink(c, level, right, false, from, n ? stay[n - 1]->to : left);
}

void h5_btree1_change_finish(struct h5_btree1_change *c)
{
	c->index->layout.address = c->root->to;
	for (struct h5_btree1_edit *e = c->edits; e; e = e->next)
		if (e->address != H5_UNDEF && (e->dropped || e->to != e->address))
			h5_tx_free(c->index->file, e->address, c->size);
}

#include "base/checked.h"
#include "change/transaction.h"
#include "chunk_index/btree1_change.h"

#include <string.h>

/* Changing the version 1 B-tree of chunks. Keys are kept as libhdf5 keeps them, since it compares with the
 * right ones too: two neighbours of one level share the key between them, which also stands in the node above
 * that parts them; the last one of all lies behind the last chunk, but may be that of a chunk still to come.
 */

/* A chunk, and a last key for when it is the last of all. */
struct entry {
	struct h5_btree1_chunk_key key, after;
	uint64_t offsets[H5_RANK_MAX + 1], after_offsets[H5_RANK_MAX + 1];
	uint64_t address;
};

static int entry_init(struct entry *entry, const struct h5_chunk_index *index, const uint64_t *scaled,
		      const struct h5_chunk *chunk)
{
	const struct h5_chunk_layout *layout = &index->layout;
	uint64_t size = index->filtered ? chunk->size : index->chunk_size;

	memset(entry, 0, sizeof *entry);
	for (unsigned i = 0; i < layout->rank; i++)
		if (!h5_mul(scaled[i], layout->dims[i], &entry->offsets[i]) ||
		    !h5_add(entry->offsets[i], layout->dims[i], &entry->after_offsets[i]))
			return h5_fail(-EFBIG, layout->address,
				       "version 1 B-tree: chunk beyond 2^64 elements");
	if (size > UINT32_MAX)
		return h5_fail(-EFBIG, layout->address, "version 1 B-tree: chunk of %ju bytes",
			       (uintmax_t)size);
	entry->after_offsets[layout->rank] = layout->element_size;
	entry->key = (struct h5_btree1_chunk_key){.size = (uint32_t)size,
						  .filter_mask = index->filtered ? chunk->filter_mask : 0,
						  .offsets = entry->offsets};
	entry->after = (struct h5_btree1_chunk_key){.offsets = entry->after_offsets};
	entry->address = chunk->address;
	return 0;
}

/* Loads the nodes from the root down to the leaf where the chunk belongs. */
static int descend(struct h5_btree1_change *c, const uint64_t *offsets)
{
	struct h5_btree1_edit *e = c->root;
	int rc = 0;

	while (e->node.level && !rc) {
		bool exact;
		unsigned i = h5_chunk_btree1_search(&e->node, offsets, c->index->layout.rank, &exact);

		rc = h5_btree1_change_load(c, e, i == e->node.count ? 0 : i, &e);
	}
	return rc;
}

static int write_levels(struct h5_btree1_change *c)
{
	int rc = 0;

	for (unsigned level = 0; level <= c->height && !rc; level++)
		rc = h5_btree1_change_write(c, level);
	return rc;
}

static int replace(struct h5_btree1_change *c, const struct entry *entry, unsigned i)
{
	struct h5_btree1_edit *leaf = c->levels[0].node[0];
	struct h5_btree1_chunk_key *key = &leaf->node.keys[i];

	key->size = entry->key.size;
	key->filter_mask = entry->key.filter_mask;
	leaf->node.children[i] = entry->address;
	leaf->dirty = true;
	return write_levels(c);
}

/* Makes the range of keys above the leaf hold the chunk, where it comes before the first one or behind the
 * last. */
static void widen(struct h5_btree1_change *c, const struct entry *entry)
{
	struct h5_btree1_edit *leaf = c->levels[0].node[0], *e;
	struct h5_btree1_chunk_key last = entry->after;
	unsigned words = c->index->layout.rank + 1;

	for (e = leaf; e->parent; e = e->parent) {
		struct h5_btree1_chunk_key *key = &e->parent->node.keys[e->index];

		if (h5_chunk_compare(entry->offsets, key->offsets, words) >= 0)
			break;
		*key = entry->key;
		e->parent->dirty = true;
	}
	if (leaf->node.count &&
	    h5_chunk_compare(entry->offsets, leaf->node.keys[leaf->node.count].offsets, words) < 0)
		return;
	/* Between two nodes it is the key that parts them. */
	for (e = leaf; e->parent; e = e->parent) {
		if (e->index + 1 < e->parent->node.count) {
			last = e->parent->node.keys[e->index + 1];
			break;
		}
	}
	for (e = leaf;; e = e->parent) {
		e->node.keys[e->node.count] = last;
		e->dirty = true;
		if (!e->parent || e->index + 1 < e->parent->node.count)
			return;
	}
}

static int insert(struct h5_btree1_change *c, const struct entry *entry, unsigned p)
{
	struct h5_btree1_chunk_key key = entry->key;
	uint64_t child = entry->address;
	int rc = 0;

	widen(c, entry);
	for (unsigned level = 0; level <= c->height && !rc; level++) {
		if (child != H5_UNDEF)
			rc = h5_btree1_change_insert(c, c->levels[level].node[0], &key, &child, &p);
		if (!rc)
			rc = h5_btree1_change_write(c, level);
	}
	return rc;
}

/* The last chunk of the nodes to the left of the removed entry is followed by this key now: `e` parts them
 * from what is to the right, its child i is on their side. */
static int close_gap(struct h5_btree1_change *c, struct h5_btree1_edit *e, unsigned i,
		     struct h5_btree1_chunk_key key)
{
	int rc = 0;

	while (e->node.level) {
		rc = h5_btree1_change_load(c, e, i, &e);
		if (rc)
			return rc;
		e->node.keys[e->node.count] = key;
		e->dirty = true;
		i = e->node.count - 1;
	}
	return rc;
}

static int remove_entry(struct h5_btree1_change *c, unsigned p)
{
	struct h5_btree1_edit *e = c->levels[0].node[0];
	struct h5_btree1_chunk_key key;
	int rc = 0;

	for (h5_btree1_change_take(e, p); !e->node.count && e->parent; h5_btree1_change_take(e, p)) {
		e->dropped = true;
		p = e->index;
		e = e->parent;
	}
	if (!e->node.count) {
		/* The root stays, an empty leaf. */
		e->node.level = 0;
		return write_levels(c);
	}
	key = e->node.keys[p];
	if (p) {
		rc = close_gap(c, e, p - 1, key);
	} else {
		unsigned i = 0;

		for (; e->parent && !i; e = e->parent) {
			i = e->index;
			e->parent->node.keys[i] = key;
			e->parent->dirty = true;
		}
		if (i)
			rc = close_gap(c, e, i - 1, key);
	}
	return rc ? rc : write_levels(c);
}

int h5_chunk_btree1_set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	struct h5_btree1_change c;
	struct h5_btree1_node *leaf;
	struct entry entry;
	bool exact, absent = chunk->address == H5_UNDEF;
	unsigned i;
	int rc = h5_btree1_change_init(&c, index);

	if (!rc)
		rc = entry_init(&entry, index, scaled, chunk);
	if (!rc)
		rc = descend(&c, entry.offsets);
	if (rc)
		goto out;
	leaf = &c.levels[0].node[0]->node;
	i = h5_chunk_btree1_search(leaf, entry.offsets, index->layout.rank, &exact);
	if (!exact && absent)
		goto out;
	if (!exact)
		rc = insert(&c, &entry, i == leaf->count ? 0 : i + 1);
	else if (absent)
		rc = remove_entry(&c, i);
	else
		rc = replace(&c, &entry, i);
	if (!rc)
		h5_btree1_change_finish(&c);
out:
	h5_btree1_change_release(&c);
	return rc;
}

/* ---- the tail ---- */

/* Keeps the first n entries. */
static void cut_node(struct h5_btree1_edit *e, unsigned n, struct h5_btree1_chunk_key last)
{
	e->node.count = n;
	e->node.keys[n] = last;
	e->dirty = true;
}

/* Cuts the nodes along the way down to the first chunk that goes. *cut: there is one. */
static int cut(struct h5_btree1_change *c, uint64_t limit, bool *cut_any)
{
	/* Chunks are ordered by their first coordinate before all, so that those which go are the tail. */
	const struct h5_btree1_chunk_key last = c->root->node.keys[c->root->node.count];
	struct h5_btree1_edit *e = c->root;
	int rc;

	for (;;) {
		unsigned n = e->node.count;

		while (n && e->node.keys[n - 1].offsets[0] >= limit)
			n--;
		*cut_any |= n < e->node.count;
		e->kept = n;
		cut_node(e, n, last);
		if (!n || !e->node.level)
			break;
		rc = h5_btree1_change_load(c, e, n - 1, &e);
		if (rc)
			return rc;
	}
	for (; !e->node.count && e->parent; e = e->parent) {
		e->dropped = true;
		cut_node(e->parent, e->index, last);
	}
	if (!e->node.count)
		e->node.level = 0;
	c->tail = true;
	return 0;
}

struct visitor {
	const struct h5_btree1_change *c;
	h5_chunk_visit *visit;
	void *arg;
	uint64_t left; /* bytes of nodes that the file can still hold */
};

/* Visits the chunks under the entries of a node from i on, and gives up the nodes below it. The recursion is
 * as deep as the tree. */
static int give_up(struct visitor *v, const struct h5_btree1_node *node, unsigned i)
{
	const struct h5_chunk_index *index = v->c->index;
	int rc = 0;

	for (; i < node->count && !rc; i++) {
		if (node->level) {
			const struct h5_btree1_node *child;
			struct h5_lru_entry *ref;

			rc = h5_chunk_index_spend(index, &v->left, v->c->size);
			if (!rc)
				rc = h5_chunk_btree1_node_get(index, node->children[i], node->level - 1, &ref,
							      &child);
			if (rc)
				break;
			rc = give_up(v, child, 0);
			h5_file_put(index->file, ref);
			h5_tx_free(index->file, node->children[i], v->c->size);
		} else {
			struct h5_chunk chunk = h5_chunk_btree1_chunk_of(index, node, i);

			if (chunk.address != H5_UNDEF)
				rc = v->visit(v->arg, &chunk);
		}
	}
	return rc;
}

int h5_chunk_btree1_trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	struct h5_btree1_change c;
	bool cut_any = false;
	uint64_t limit;
	int rc;

	if (!h5_mul(first, index->layout.dims[0], &limit))
		return 0;
	rc = h5_btree1_change_init(&c, index);
	if (!rc)
		rc = cut(&c, limit, &cut_any);
	if (!rc && cut_any)
		rc = write_levels(&c);
	if (!rc && cut_any) {
		struct visitor v = {&c, visit, arg, h5_file_size(index->file)};

		h5_btree1_change_finish(&c);
		for (struct h5_btree1_edit *e = c.edits; e && !rc; e = e->next) {
			const struct h5_btree1_node *old = h5_lru_value(e->ref);

			rc = give_up(&v, old, e->kept);
		}
		/* What is damaged of them is lost, and does not keep the others from going. */
		if (rc == -EUCLEAN)
			rc = 0;
	}
	h5_btree1_change_release(&c);
	return rc;
}

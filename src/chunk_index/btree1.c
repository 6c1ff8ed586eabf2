/* The version 1 B-tree of chunks, specification III.A.1, node type 1.
 *
 * Key i is the first chunk in child i, and a search needs no more. A node has one key more than it has
 * children: the last one comes after all chunks of the node. */
#include "base/checked.h"
#include "base/interrupt.h"
#include "base/lower_bound.h"
#include "change/btree1_change.h"
#include "change/transaction.h"
#include "chunk_index/private.h"

#include <assert.h>
#include <string.h>

/* A node through the cache. Level -1: any. */
static int node_get(const struct h5_chunk_index *index, uint64_t address, int level,
		    struct h5_lru_entry **ref, const struct h5_btree1_node **node)
{
	return h5_btree1_node_get(index->file, address, H5_BTREE1_CHUNK, index->layout.rank, level, ref,
				  node);
}

static unsigned search(const struct h5_btree1_node *node, const uint64_t *offsets, unsigned rank, bool *exact)
{
	/* The first key after the offsets. */
	unsigned after = (unsigned)h5_lower_bound(
		i, node->count, h5_chunk_compare(node->keys[i].offsets, offsets, rank) <= 0);

	*exact = after && !h5_chunk_compare(node->keys[after - 1].offsets, offsets, rank);
	return after ? after - 1 : node->count;
}

/* Without filters a chunk has its full size. But some writers store less of a chunk at the edge of the
 * dataset, or leave the field 0. */
static uint64_t stored_size(const struct h5_chunk_index *index, uint32_t size)
{
	if (index->filtered)
		return size;
	return size ? h5_min(size, index->chunk_size) : index->chunk_size;
}

static struct h5_chunk chunk_of(const struct h5_chunk_index *index, const struct h5_btree1_node *leaf,
				unsigned i)
{
	if (leaf->children[i] == H5_UNDEF)
		return h5_chunk_absent();
	return (struct h5_chunk){.address = leaf->children[i],
				 .size = stored_size(index, leaf->keys[i].size),
				 .filter_mask = index->filtered ? leaf->keys[i].filter_mask : 0};
}

/* Finds the leaf for the element coordinates. */
static int seek(const struct h5_chunk_index *index, const uint64_t *offsets, struct h5_chunk_cursor *cursor)
{
	const size_t size = index->layout.rank * sizeof *offsets;
	uint64_t address = index->layout.address;
	int level = -1; /* any level: it is the root */

	memset(cursor->low, 0, size);
	memset(cursor->high, 0xff, size);
	do {
		const struct h5_btree1_node *node;
		unsigned i, next;
		bool exact;
		int rc = node_get(index, address, level, &cursor->ref, &node);

		if (rc)
			return rc;
		level = node->level - 1;
		cursor->block = node;
		if (level < 0)
			break;
		i = search(node, offsets, index->layout.rank, &exact);
		next = i == node->count ? 0 : i + 1;
		if (next < node->count)
			memcpy(cursor->high, node->keys[next].offsets, size);
		cursor->block = NULL;
		if (i == node->count) {
			level = -1; /* before the first chunk */
		} else {
			memcpy(cursor->low, node->keys[i].offsets, size);
			address = node->children[i];
			if (h5_chunk_cursor_reach(cursor))
				h5_btree1_want(index->file, node, index->layout.rank, i,
					       h5_chunk_cursor_reach(cursor));
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
	int rc = 0;

	for (i = 0; i < rank; i++)
		if (!h5_mul(scaled[i], index->layout.dims[i], &offsets[i]))
			return 0;
	if (!h5_chunk_cursor_enter(index, cursor, offsets, rank))
		rc = h5_chunk_cursor_hold(index, cursor, seek(index, offsets, cursor));
	if (rc || !cursor->block)
		return rc;
	leaf = cursor->block;
	i = (unsigned)cursor->next;
	exact = i < leaf->count && !h5_chunk_compare(leaf->keys[i].offsets, offsets, rank);
	if (!exact)
		i = search(leaf, offsets, rank, &exact);
	if (exact) {
		*chunk = chunk_of(index, leaf, i);
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
	assert(h5_chunk_cursor_covers(cursor, offsets, rank));
	if (leaf) {
		bool exact;
		unsigned i = search(leaf, offsets, rank, &exact);

		i = i == leaf->count ? 0 : i + 1;
		if (i < leaf->count)
			end = leaf->keys[i].offsets;
	}
	for (unsigned i = 0; i < rank; i++)
		next[i] = end[i] / index->layout.dims[i];
}

struct walker {
	const struct h5_chunk_index *index;
	h5_chunk_visit *visit;
	h5_extent_visit *block; /* NULL: not called */
	void *arg;
	size_t room;   /* bytes of a node, for `block` */
	uint64_t left; /* bytes of nodes that the file can still hold */
};

static int walk_children(struct walker *w, const struct h5_btree1_node *node);

/* The recursion is as deep as the tree, at most 255 levels. */
static int walk_node(struct walker *w, uint64_t address, int level)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = node_get(w->index, address, level, &ref, &node);
	if (rc)
		return rc;
	/* each key is 8 bytes and rank + 1 offsets */
	rc = h5_chunk_index_spend(w->index, &w->left,
				  ((uint64_t)node->count + 1) * (16 + 8 * w->index->layout.rank));
	if (!rc && w->block)
		rc = w->block(w->arg, address, w->room);
	if (!rc) {
		h5_btree1_want(w->index->file, node, w->index->layout.rank, 0, H5_WANT_MAX);
		rc = walk_children(w, node);
	}
	h5_file_put(w->index->file, ref);
	return rc;
}

static int walk_children(struct walker *w, const struct h5_btree1_node *node)
{
	int rc = 0;

	for (unsigned i = 0; i < node->count && !rc; i++) {
		if (node->level) {
			rc = walk_node(w, node->children[i], node->level - 1);
		} else {
			struct h5_chunk chunk = chunk_of(w->index, node, i);

			if (chunk.address != H5_UNDEF)
				rc = w->visit(w->arg, &chunk);
		}
	}
	return rc;
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, h5_extent_visit *block, void *arg)
{
	const struct h5_superblock *sb = h5_file_superblock(index->file);
	struct walker w = {index, visit, block, arg, 0, h5_file_size(index->file)};
	unsigned k;
	int rc = block ? h5_btree1_node_k(index->file, H5_BTREE1_CHUNK, &k) : 0;

	if (!rc && block)
		w.room = h5_btree1_node_room(H5_BTREE1_CHUNK, index->layout.rank, k, sb->size_of_offsets,
					     sb->size_of_lengths);
	return rc ? rc : walk_node(&w, index->layout.address, -1);
}

/* ---- changes ----
 *
 * Keys are as libhdf5 makes them, since it compares with the right keys, too: two neighbours of one level
 * share the key between them, and the node above them has it, too. The last key of all is greater than that
 * of the last chunk; no chunk need exist there. */

/* An entry for a chunk, and the key after it if it is the last of all. */
struct entry {
	struct h5_btree1_key key, after;
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
	entry->key = (struct h5_btree1_key){.size = (uint32_t)size,
					    .filter_mask = index->filtered ? chunk->filter_mask : 0,
					    .offsets = entry->offsets};
	entry->after = (struct h5_btree1_key){.offsets = entry->after_offsets};
	entry->address = chunk->address;
	return 0;
}

/* Loads the nodes from the root down to the leaf where the chunk belongs. */
static int descend(struct h5_btree1_change *change, const uint64_t *offsets)
{
	struct h5_btree1_edit *e = change->root;
	int rc = 0;

	while (e->node.level && !rc) {
		bool exact;
		unsigned i = search(&e->node, offsets, change->rank, &exact);

		rc = h5_btree1_change_load(change, e, i == e->node.count ? 0 : i, &e);
	}
	return rc;
}

static int write_levels(struct h5_btree1_change *change)
{
	int rc = 0;

	for (unsigned level = 0; level <= change->height && !rc; level++)
		rc = h5_btree1_change_write(change, level);
	return rc;
}

static int replace(struct h5_btree1_change *change, const struct entry *entry, unsigned i)
{
	struct h5_btree1_edit *leaf = change->levels[0].node[0];
	struct h5_btree1_key *key = &leaf->node.keys[i];

	key->size = entry->key.size;
	key->filter_mask = entry->key.filter_mask;
	leaf->node.children[i] = entry->address;
	leaf->dirty = true;
	return write_levels(change);
}

/* Widens the range of keys of the leaf and of the nodes above it, if the chunk comes before the first key or
 * after the last. */
static void widen(struct h5_btree1_change *change, const struct entry *entry)
{
	struct h5_btree1_edit *leaf = change->levels[0].node[0], *e;
	struct h5_btree1_key last = entry->after;
	unsigned words = change->rank + 1;

	for (e = leaf; e->parent; e = e->parent) {
		struct h5_btree1_key *key = &e->parent->node.keys[e->index];

		if (h5_chunk_compare(entry->offsets, key->offsets, words) >= 0)
			break;
		*key = entry->key;
		e->parent->dirty = true;
	}
	if (leaf->node.count &&
	    h5_chunk_compare(entry->offsets, leaf->node.keys[leaf->node.count].offsets, words) < 0)
		return;
	/* If another node follows, the last key is the first key of that node. */
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

static int insert(struct h5_btree1_change *change, const struct entry *entry, unsigned p)
{
	struct h5_btree1_key key = entry->key;
	uint64_t child = entry->address;
	int rc = 0;

	widen(change, entry);
	for (unsigned level = 0; level <= change->height && !rc; level++) {
		if (child != H5_UNDEF)
			rc = h5_btree1_change_insert(change, change->levels[level].node[0], &key, &child, &p);
		if (!rc)
			rc = h5_btree1_change_write(change, level);
	}
	return rc;
}

/* Makes `key` the last key of the nodes to the left of the removed entry: of child i of `e`, and of the last
 * child of each level below. */
static int close_gap(struct h5_btree1_change *change, struct h5_btree1_edit *e, unsigned i,
		     struct h5_btree1_key key)
{
	int rc = 0;

	while (e->node.level) {
		rc = h5_btree1_change_load(change, e, i, &e);
		if (rc)
			return rc;
		e->node.keys[e->node.count] = key;
		e->dirty = true;
		i = e->node.count - 1;
	}
	return rc;
}

static int remove_entry(struct h5_btree1_change *change, unsigned p)
{
	struct h5_btree1_edit *e = change->levels[0].node[0];
	struct h5_btree1_key key;
	int rc = 0;

	for (h5_btree1_change_take(e, p); !e->node.count && e->parent; h5_btree1_change_take(e, p)) {
		e->dropped = true;
		p = e->index;
		e = e->parent;
	}
	if (!e->node.count) {
		/* The root stays, as an empty leaf. */
		e->node.level = 0;
		return write_levels(change);
	}
	key = e->node.keys[p];
	if (p) {
		rc = close_gap(change, e, p - 1, key);
	} else {
		unsigned i = 0;

		for (; e->parent && !i; e = e->parent) {
			i = e->index;
			e->parent->node.keys[i] = key;
			e->parent->dirty = true;
		}
		if (i)
			rc = close_gap(change, e, i - 1, key);
	}
	return rc ? rc : write_levels(change);
}

static int change_init(struct h5_btree1_change *change, const struct h5_chunk_index *index)
{
	return h5_btree1_change_init(change, index->file, H5_BTREE1_CHUNK, index->layout.rank,
				     index->layout.address);
}

static int set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	struct h5_btree1_change change;
	struct h5_btree1_node *leaf;
	struct entry entry;
	bool exact, absent = chunk->address == H5_UNDEF;
	unsigned i;
	int rc = change_init(&change, index);

	if (!rc)
		rc = entry_init(&entry, index, scaled, chunk);
	if (!rc)
		rc = descend(&change, entry.offsets);
	if (rc)
		goto out;
	leaf = &change.levels[0].node[0]->node;
	i = search(leaf, entry.offsets, index->layout.rank, &exact);
	if (!exact && absent)
		goto out; /* another program has removed it since it was looked up */
	if (!exact)
		rc = insert(&change, &entry, i == leaf->count ? 0 : i + 1);
	else if (absent)
		rc = remove_entry(&change, i);
	else
		rc = replace(&change, &entry, i);
	if (!rc)
		index->layout.address = h5_btree1_change_finish(&change);
out:
	h5_btree1_change_release(&change);
	return rc;
}

/* ---- the tail ---- */

/* Keeps the first n entries. */
static void cut_node(struct h5_btree1_edit *e, unsigned n, struct h5_btree1_key last)
{
	e->node.count = n;
	e->node.keys[n] = last;
	e->dirty = true;
}

/* Cuts the nodes on the way down to the first chunk that is removed. *cut_any: there is one. */
static int cut(struct h5_btree1_change *change, uint64_t limit, bool *cut_any)
{
	/* Chunks are ordered by their first coordinate first, so all that are removed are at the end. */
	const struct h5_btree1_key last = change->root->node.keys[change->root->node.count];
	struct h5_btree1_edit *e = change->root;
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
		rc = h5_btree1_change_load(change, e, n - 1, &e);
		if (rc)
			return rc;
	}
	for (; !e->node.count && e->parent; e = e->parent) {
		e->dropped = true;
		cut_node(e->parent, e->index, last);
	}
	if (!e->node.count)
		e->node.level = 0;
	change->tail = true;
	return 0;
}

struct visitor {
	const struct h5_chunk_index *index;
	size_t size; /* bytes of a node */
	h5_chunk_visit *visit;
	void *arg;
	uint64_t left; /* bytes of nodes that the file can still hold */
	bool damaged;  /* a node could not be read */
};

/* Visits the chunks under the entries of a node from i on, and gives up the nodes below it. The recursion is
 * as deep as the tree. */
static int give_up(struct visitor *v, const struct h5_btree1_node *node, unsigned i)
{
	const struct h5_chunk_index *index = v->index;
	int rc = 0;

	for (; i < node->count && !rc; i++) {
		if (node->level) {
			const struct h5_btree1_node *child;
			struct h5_lru_entry *ref;

			rc = h5_chunk_index_spend(index, &v->left, v->size);
			if (!rc)
				rc = node_get(index, node->children[i], node->level - 1, &ref, &child);
			if (rc) {
				v->damaged = rc == -EUCLEAN;
				break;
			}
			rc = give_up(v, child, 0);
			h5_file_put(index->file, ref);
			h5_tx_free(index->file, node->children[i], v->size);
		} else {
			struct h5_chunk chunk = chunk_of(index, node, i);

			if (chunk.address != H5_UNDEF)
				rc = v->visit(v->arg, &chunk);
		}
	}
	return rc;
}

static int trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	struct h5_btree1_change change;
	bool cut_any = false;
	uint64_t limit;
	int rc;

	if (!h5_mul(first, index->layout.dims[0], &limit))
		return 0;
	rc = change_init(&change, index);
	if (!rc)
		rc = cut(&change, limit, &cut_any);
	if (!rc && cut_any)
		rc = write_levels(&change);
	if (!rc && cut_any) {
		struct visitor v = {index, change.size, visit, arg, h5_file_size(index->file), false};

		index->layout.address = h5_btree1_change_finish(&change);
		for (struct h5_btree1_edit *e = change.edits; e && !rc; e = e->next) {
			const struct h5_btree1_node *old = h5_lru_value(e->ref);

			rc = give_up(&v, old, e->kept);
		}
		/* After a damaged node no more is given up: that space is lost. */
		if (v.damaged)
			rc = 0;
	}
	h5_btree1_change_release(&change);
	return rc;
}

const struct h5_chunk_index_ops h5_chunk_index_btree1 = {
	.name = "btree1",
	.no_swmr = true,
	.lookup = lookup,
	.gap = gap,
	.walk = walk,
	.set = set,
	.trim = trim,
};

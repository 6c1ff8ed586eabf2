#include "change/btree2_edit.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/zalloc.h"
#include "change/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- nodes in memory ---- */

static void node_free(struct h5_btree2_edit_node *node)
{
	if (!node)
		return;
	free(node->node);
	free(node->children);
	free(node);
}

/* Frees the node and all nodes beneath it. `written`: the tree that they were written to; the cache gets the
 * nodes that changed. NULL: the change was not written. The recursion is at most H5_BTREE2_DEPTH deep. */
static void release(struct h5_btree2_edit_node *node, const struct h5_btree2 *written)
{
	if (!node)
		return;
	for (size_t i = 0; node->children && i <= node->node->count; i++)
		release(node->children[i], written);
	if (written && node->state != H5_BTREE2_KEPT) {
		h5_btree2_keep_node(written, node->address, node->node);
		node->node = NULL;
	}
	node_free(node);
}

/* A node without records. */
static struct h5_btree2_edit_node *node_new(const struct h5_btree2_edit *edit, unsigned level, size_t room)
{
	struct h5_btree2_edit_node *node = h5_zalloc(sizeof *node);

	if (node) {
		node->node = h5_btree2_node_new(&edit->header, level, room);
		node->address = H5_UNDEF;
		node->state = H5_BTREE2_CHANGED;
		node->children = level ? calloc(room + 1, sizeof(void *)) : NULL;
	}
	if (node && node->node && (!level || node->children))
		return node;
	node_free(node);
	h5_fail(-ENOMEM, edit->tree->address, "version 2 B-tree: out of memory");
	return NULL;
}

/* A node with the records and child pointers of the one in the file, and room for all that its level allows.
 */
static int node_copy(const struct h5_btree2_edit *edit, const struct h5_btree2_child *pointer,
		     const struct h5_btree2_node *from, struct h5_btree2_edit_node **out)
{
	struct h5_btree2_edit_node *node =
		node_new(edit, from->level, (size_t)edit->header.levels[from->level].max_records);
	struct h5_btree2_node *to;

	if (!node)
		return -ENOMEM;
	to = node->node;
	to->count = from->count;
	memcpy(to->records, from->records, from->count * edit->header.record_size);
	if (from->level)
		memcpy(to->children, from->children, (from->count + 1) * sizeof *to->children);
	node->address = pointer->address;
	node->state = H5_BTREE2_KEPT;
	*out = node;
	return 0;
}

/* Counts the records of the node and of all nodes beneath it. */
static int total_of(const struct h5_btree2_edit *edit, const struct h5_btree2_edit_node *node,
		    uint64_t *total)
{
	*total = node->node->count;
	for (size_t i = 0; node->children && i <= node->node->count; i++)
		if (!h5_add(*total, node->node->children[i].total, total))
			return h5_fail(-EUCLEAN, edit->tree->address,
				       "version 2 B-tree: more records than can be counted");
	return 0;
}

static int load(struct h5_btree2_edit *edit, unsigned level, const struct h5_btree2_child *pointer,
		struct h5_btree2_edit_node **out)
{
	struct h5_file *file = edit->tree->file;
	const struct h5_btree2_node *found;
	struct h5_btree2_edit_node *node;
	struct h5_lru_entry *ref;
	uint64_t total;
	int rc = h5_seen_add(&edit->seen, pointer->address);

	if (rc == -EEXIST)
		return h5_fail(-EUCLEAN, pointer->address, "version 2 B-tree: a node belongs to two places");
	if (rc)
		return h5_fail(rc, pointer->address, "version 2 B-tree: out of memory");
	rc = h5_btree2_node_get(edit->tree, &edit->header, pointer->address, level, pointer->records, &ref,
				&found);
	if (rc)
		return rc;
	rc = node_copy(edit, pointer, found, &node);
	h5_file_put(file, ref);
	if (rc)
		return rc;
	rc = total_of(edit, node, &total);
	if (!rc && total != pointer->total)
		rc = h5_fail(-EUCLEAN, pointer->address,
			     "version 2 B-tree node: %ju records in it and beneath, not %ju",
			     (uintmax_t)total, (uintmax_t)pointer->total);
	if (rc) {
		node_free(node);
		return rc;
	}
	*out = node;
	return 0;
}

int h5_btree2_edit_child(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t i,
			 struct h5_btree2_edit_node **child)
{
	struct h5_btree2_edit_node **slot = &parent->children[i];
	int rc = 0;

	if (!*slot)
		rc = load(edit, parent->node->level - 1, &parent->node->children[i], slot);
	*child = *slot;
	return rc;
}

/* ---- begin and end ---- */

/* Checks that the results of splitting and merging fit into nodes. */
static int check_level(const struct h5_btree2_edit *edit, unsigned i)
{
	const struct h5_btree2_level *level = &edit->header.levels[i];

	if (level->max_records > UINT16_MAX || level->split_records < 3 ||
	    level->split_records > level->max_records || !level->merge_records ||
	    2 * level->merge_records + 2 > level->max_records)
		return h5_fail(-ENOTSUP, edit->tree->address,
			       "version 2 B-tree: changing nodes of %ju records, split at %ju, merged at %ju "
			       "is not supported",
			       (uintmax_t)level->max_records, (uintmax_t)level->split_records,
			       (uintmax_t)level->merge_records);
	return 0;
}

static int load_root(struct h5_btree2_edit *edit)
{
	const struct h5_btree2 *tree = edit->tree;
	const struct h5_btree2_header *header;
	struct h5_btree2_child root;
	struct h5_lru_entry *ref;
	int rc = h5_btree2_header_get(tree, &ref, &header);

	if (rc)
		return rc;
	memcpy(&edit->header, header, h5_btree2_header_bytes(header));
	h5_file_put(tree->file, ref);
	for (unsigned i = 0; i <= edit->header.depth && !rc; i++)
		rc = check_level(edit, i);
	root = (struct h5_btree2_child){edit->header.root, edit->header.root_records, edit->header.records};
	if (!rc && root.address == H5_UNDEF && (edit->header.depth || root.records || root.total))
		rc = h5_fail(-EUCLEAN, tree->address, "version 2 B-tree header: records, but no root");
	if (!rc && root.address != H5_UNDEF)
		rc = load(edit, edit->header.depth, &root, &edit->root);
	return rc;
}

int h5_btree2_edit_begin(struct h5_btree2_edit *edit, struct h5_btree2 *tree)
{
	int rc;

	h5_unit_begin(tree->file);
	*edit = (struct h5_btree2_edit){.tree = tree};
	rc = h5_unit_save(tree->file, tree, sizeof *tree);
	if (!rc)
		rc = load_root(edit);
	return rc ? h5_btree2_edit_end(edit, rc) : 0;
}

/* Writes the node in place, if it may stay there and that is safe, or if it is new; else into new space. */
static int write_node(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *node)
{
	const struct h5_btree2_header *h = &edit->header;
	size_t size = h5_btree2_node_size(h, node->node->level, node->node->count);
	struct h5_file *file = edit->tree->file;
	uint8_t *data = h5_zalloc(h->node_size);
	struct h5_writer w = h5_writer_init(data, size, h5_file_superblock(file)->size_of_offsets,
					    h5_file_superblock(file)->size_of_lengths);
	int rc = data ? h5_btree2_node_encode(&w, h, node->node)
		      : h5_fail(-ENOMEM, node->address, "version 2 B-tree node: out of memory");

	if (rc)
		goto done;
	if (node->state == H5_BTREE2_REPLACED && h5_tx_is_safe(file, node->address, size)) {
		rc = h5_tx_patch(file, node->address, data, size, edit->stage ? edit->stage : H5_STAGE_BLOCK);
		goto done;
	}
	rc = h5_tx_shadow(file, &node->address, data, h->node_size);
done:
	free(data);
	return rc;
}

/* Writes children before parents, since a node changes if the address or count of a child does. */
static int flush(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *node, struct h5_btree2_child *now)
{
	struct h5_btree2_node *data = node->node;
	int rc = 0;

	for (size_t i = 0; node->children && i <= data->count && !rc; i++) {
		struct h5_btree2_child *old = &data->children[i], child;

		if (!node->children[i])
			continue;
		rc = flush(edit, node->children[i], &child);
		if (!rc && (child.address != old->address || child.records != old->records ||
			    child.total != old->total)) {
			*old = child;
			node->state = H5_BTREE2_CHANGED;
		}
	}
	if (!rc && node->state != H5_BTREE2_KEPT)
		rc = write_node(edit, node);
	now->address = node->address;
	now->records = data->count;
	return rc ? rc : total_of(edit, node, &now->total);
}

static int write_header(struct h5_btree2_edit *edit, const struct h5_btree2_child *root)
{
	const struct h5_superblock *superblock = h5_file_superblock(edit->tree->file);
	uint8_t data[H5_BTREE2_HEADER_MAX];
	struct h5_writer w =
		h5_writer_init(data, sizeof data, superblock->size_of_offsets, superblock->size_of_lengths);
	struct h5_btree2_header *h = &edit->header;
	int rc;

	h->root = root->address;
	h->root_records = (uint16_t)root->records;
	h->records = root->total;
	rc = h5_btree2_header_encode(&w, h);
	if (!rc)
		rc = h5_tx_store(edit->tree->file, &edit->tree->address, data, h5_writer_at(&w),
				 edit->stage ? edit->stage : H5_STAGE_INDEX);
	if (rc)
		return rc;
	edit->tree->records = h->records;
	h5_btree2_keep_header(edit->tree, h);
	return 0;
}

static int write_tree(struct h5_btree2_edit *edit)
{
	struct h5_btree2_child root = {.address = H5_UNDEF};
	int rc = edit->root ? flush(edit, edit->root, &root) : 0;

	return !rc && (root.address != edit->header.root || root.records != edit->header.root_records ||
		       root.total != edit->header.records)
		       ? write_header(edit, &root)
		       : rc;
}

int h5_btree2_edit_end(struct h5_btree2_edit *edit, int rc)
{
	if (!rc)
		rc = write_tree(edit);
	release(edit->root, rc ? NULL : edit->tree);
	h5_seen_release(&edit->seen);
	return h5_unit_end(edit->tree->file, rc);
}

int h5_btree2_edit_create(struct h5_file *file, const struct h5_btree2_header *header, struct h5_btree2 *tree)
{
	struct h5_btree2 new = {.file = file,
				.address = H5_UNDEF,
				.type = (enum h5_btree2_type)header->type,
				.record_size = header->record_size};
	struct h5_btree2_edit edit = {.tree = &new, .header = *header};
	int rc;

	rc = h5_btree2_header_compute(&edit.header, H5_UNDEF, h5_file_superblock(file)->size_of_offsets);
	if (!rc)
		rc = check_level(&edit, 0);
	if (!rc)
		rc = write_header(&edit, &(struct h5_btree2_child){.address = H5_UNDEF});
	if (!rc)
		*tree = new;
	return rc;
}

/* ---- the shape of the tree ---- */

int h5_btree2_edit_raise(struct h5_btree2_edit *edit)
{
	struct h5_btree2_header *h = &edit->header;
	struct h5_btree2_edit_node *root;
	int rc = 0;

	if (edit->root) {
		h->depth++;
		rc = h5_btree2_header_compute(h, edit->tree->address,
					      h5_file_superblock(edit->tree->file)->size_of_offsets);
		if (!rc)
			rc = check_level(edit, h->depth);
		if (rc)
			return rc;
	}
	root = node_new(edit, h->depth, (size_t)h->levels[h->depth].max_records);
	if (!root)
		return -ENOMEM;
	if (edit->root)
		root->children[0] = edit->root;
	edit->root = root;
	return 0;
}

/* Gives up a node that the tree no longer has. */
static void drop(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *node)
{
	if (node->address != H5_UNDEF)
		h5_tx_free(edit->tree->file, node->address, edit->header.node_size);
	node_free(node);
}

void h5_btree2_edit_lower(struct h5_btree2_edit *edit)
{
	struct h5_btree2_edit_node *root = edit->root;

	edit->root = root->children ? root->children[0] : NULL;
	if (edit->root)
		edit->header.depth--;
	drop(edit, root);
}

/* Copies n records, and if there are children the n + 1 around them. */
static void copy(const struct h5_btree2_edit *edit, struct h5_btree2_edit_node *to, size_t to_i,
		 const struct h5_btree2_edit_node *from, size_t from_i, size_t n)
{
	memmove(h5_btree2_edit_record(edit, to, to_i), h5_btree2_edit_record(edit, from, from_i),
		n * edit->header.record_size);
	if (!to->children)
		return;
	memmove(to->node->children + to_i, from->node->children + from_i,
		(n + 1) * sizeof *to->node->children);
	memmove(to->children + to_i, from->children + from_i, (n + 1) * sizeof *to->children);
}

static void copy_record(const struct h5_btree2_edit *edit, struct h5_btree2_edit_node *to, size_t to_i,
			const struct h5_btree2_edit_node *from, size_t from_i)
{
	memcpy(h5_btree2_edit_record(edit, to, to_i), h5_btree2_edit_record(edit, from, from_i),
	       edit->header.record_size);
}

/* Gathers all records of the children in one node, which may be larger than any in a file. */
static int gather(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t first, unsigned n,
		  struct h5_btree2_edit_node **out)
{
	struct h5_btree2_edit_node *child[3], *all;
	size_t count = n - 1, at = 0;

	for (unsigned i = 0; i < n; i++) {
		int rc = h5_btree2_edit_child(edit, parent, first + i, &child[i]);

		if (rc)
			return rc;
		count += child[i]->node->count;
	}
	all = node_new(edit, parent->node->level - 1, count);
	if (!all)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		copy(edit, all, at, child[i], 0, child[i]->node->count);
		at += child[i]->node->count;
		if (i + 1 < n)
			copy_record(edit, all, at++, parent, first + i);
	}
	all->node->count = count;
	*out = all;
	return 0;
}

/* Makes room for `after` children, and the records between them, in place of `before`. */
static int replace_slots(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t first,
			 unsigned before, unsigned after)
{
	uint64_t room = edit->header.levels[parent->node->level - 1].max_records;
	size_t count = parent->node->count, behind = count - (first + before - 1);
	int rc = 0;

	/* Their children have been taken out of them. */
	for (unsigned i = after; i < before; i++)
		drop(edit, parent->children[first + i]);
	memmove(h5_btree2_edit_record(edit, parent, first + after - 1),
		h5_btree2_edit_record(edit, parent, first + before - 1), behind * edit->header.record_size);
	memmove(parent->node->children + first + after, parent->node->children + first + before,
		behind * sizeof *parent->node->children);
	memmove(parent->children + first + after, parent->children + first + before,
		behind * sizeof *parent->children);
	parent->node->count = count + after - before;
	for (unsigned i = before; i < after; i++)
		parent->children[first + i] = NULL;
	for (unsigned i = before; i < after && !rc; i++) {
		parent->node->children[first + i] = (struct h5_btree2_child){.address = H5_UNDEF};
		parent->children[first + i] = node_new(edit, parent->node->level - 1, (size_t)room);
		if (!parent->children[first + i])
			rc = -ENOMEM;
	}
	return rc;
}

int h5_btree2_edit_deal(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t first,
			unsigned before, unsigned after, const size_t *counts)
{
	unsigned level = parent->node->level;
	bool fits = parent->node->count + after - before <= edit->header.levels[level].max_records;
	struct h5_btree2_edit_node *all;
	size_t at = 0;
	int rc;

	for (unsigned i = 0; i < after; i++)
		fits = fits && counts[i] <= edit->header.levels[level - 1].max_records;
	if (!fits)
		return h5_fail(-EUCLEAN, edit->tree->address,
			       "version 2 B-tree: nodes fuller or emptier than it allows");
	rc = gather(edit, parent, first, before, &all);
	if (rc)
		return rc;
	for (unsigned i = 0; i < before; i++)
		if (parent->children[first + i]->children)
			memset(parent->children[first + i]->children, 0,
			       (parent->children[first + i]->node->count + 1) * sizeof(void *));
	rc = replace_slots(edit, parent, first, before, after);
	if (rc) {
		release(all, NULL);
		return rc;
	}
	for (unsigned i = 0; i < after; i++) {
		struct h5_btree2_edit_node *child = parent->children[first + i];

		copy(edit, child, 0, all, at, counts[i]);
		child->node->count = counts[i];
		child->state = H5_BTREE2_CHANGED;
		at += counts[i];
		if (i + 1 < after)
			copy_record(edit, parent, first + i, all, at++);
	}
	assert(at == all->node->count);
	parent->state = H5_BTREE2_CHANGED;
	node_free(all);
	return 0;
}

void h5_btree2_edit_insert(const struct h5_btree2_edit *edit, struct h5_btree2_edit_node *leaf, size_t i,
			   const uint8_t *record)
{
	size_t count = leaf->node->count;

	assert(!leaf->children && i <= count && count < edit->header.levels[0].max_records);
	copy(edit, leaf, i + 1, leaf, i, count - i);
	memcpy(h5_btree2_edit_record(edit, leaf, i), record, edit->header.record_size);
	leaf->node->count++;
	leaf->state = H5_BTREE2_CHANGED;
}

void h5_btree2_edit_remove(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *leaf, size_t i)
{
	assert(!leaf->children && i < leaf->node->count);
	copy(edit, leaf, i, leaf, i + 1, --leaf->node->count - i);
	leaf->state = H5_BTREE2_CHANGED;
}

#include "change/btree2_write.h"

#include "base/array.h"
#include "base/error.h"
#include "change/btree2_edit.h"
#include "change/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Inserting and removing. Nodes split, share with siblings and merge just as in libhdf5, so that a tree of
 * ours has the same shape. Each node is made ready on the way down, so nothing is left to do on the way back.
 */

enum aim {
	AIM_SOUGHT,
	AIM_FIRST,
	AIM_LAST,
};

struct seek {
	struct h5_btree2_edit *edit;
	h5_btree2_compare *compare;
	void *arg;
	enum aim aim;
};

/* Finds the place in a leaf, or the child of a node; *equal: the record is in the node itself, at *i. */
static int seek_in(const struct seek *seek, const struct h5_btree2_edit_node *node, size_t *i, bool *equal)
{
	*equal = false;
	if (seek->aim == AIM_SOUGHT)
		return h5_btree2_lower_bound(seek->edit->tree, node->node, seek->compare, seek->arg, i,
					     equal);
	*i = seek->aim == AIM_FIRST ? 0 : node->node->count;
	return 0;
}

static size_t count_of(const struct h5_btree2_edit_node *parent, size_t i)
{
	return parent->children[i] ? parent->children[i]->node->count
				   : (size_t)parent->node->children[i].records;
}

static const struct h5_btree2_level *level_of_children(const struct h5_btree2_edit *edit,
						       const struct h5_btree2_edit_node *parent)
{
	return &edit->header.levels[parent->node->level - 1];
}

/* ---- children share, split and merge ---- */

static int split(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t i)
{
	size_t all = count_of(parent, i);

	return h5_btree2_edit_deal(edit, parent, i, 1, 2, (size_t[]){all / 2, all - all / 2 - 1});
}

/* Evens out children i and i + 1. */
static int share2(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t i)
{
	size_t left = count_of(parent, i), right = count_of(parent, i + 1), all = left + right;
	size_t new_left = left < right ? all - all / 2 : all / 2;

	return h5_btree2_edit_deal(edit, parent, i, 2, 2, (size_t[]){new_left, all - new_left});
}

/* Evens out child i and those beside it. */
static int share3(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t i)
{
	size_t all = count_of(parent, i - 1) + count_of(parent, i) + count_of(parent, i + 1);
	size_t middle = all / 3, left = (all - middle) / 2;

	return h5_btree2_edit_deal(edit, parent, i - 1, 3, 3, (size_t[]){left, middle, all - middle - left});
}

static int merge2(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t i)
{
	size_t all = count_of(parent, i) + count_of(parent, i + 1);

	return h5_btree2_edit_deal(edit, parent, i, 2, 1, (size_t[]){all + 1});
}

static int merge3(struct h5_btree2_edit *edit, struct h5_btree2_edit_node *parent, size_t i)
{
	size_t all = count_of(parent, i - 1) + count_of(parent, i) + count_of(parent, i + 1) + 1;

	return h5_btree2_edit_deal(edit, parent, i - 1, 3, 2, (size_t[]){all / 2, all - all / 2});
}

/* How often children share. Sharing may move the sought place to a sibling that is just as full, or as empty,
 * so it must end. */
enum { TRIES = 2 };

/* Makes room in the child that the record goes to, and sets *i to it. */
static int make_room(const struct seek *seek, struct h5_btree2_edit_node *node, size_t *i)
{
	struct h5_btree2_edit *edit = seek->edit;
	size_t limit = (size_t)level_of_children(edit, node)->split_records;

	for (int tries = TRIES;; tries--) {
		bool equal, before, behind;
		int rc = seek_in(seek, node, i, &equal);

		if (rc || count_of(node, *i) < limit)
			return rc;
		before = tries > 0 && *i && count_of(node, *i - 1) < limit;
		behind = tries > 0 && *i < node->node->count && count_of(node, *i + 1) < limit;
		if (!before && !behind)
			rc = split(edit, node, *i);
		else if (*i && *i < node->node->count)
			rc = share3(edit, node, *i);
		else
			rc = share2(edit, node, *i ? *i - 1 : 0);
		if (rc)
			return rc;
	}
}

/* Gives the child that loses a record one to spare, and sets *i to it. *equal: the sought record is in the
 * node itself, before the child. */
static int make_spare(const struct seek *seek, struct h5_btree2_edit_node *node, size_t *i, bool *equal)
{
	struct h5_btree2_edit *edit = seek->edit;
	size_t limit = (size_t)level_of_children(edit, node)->merge_records;

	for (int tries = TRIES;; tries--) {
		bool before, behind;
		int rc = seek_in(seek, node, i, equal);

		*i += !rc && *equal;
		if (rc || count_of(node, *i) > limit || !node->node->count)
			return rc;
		before = *i && count_of(node, *i - 1) > limit;
		behind = *i < node->node->count && count_of(node, *i + 1) > limit;
		if (*i && *i < node->node->count)
			rc = tries > 0 && (before || behind) ? share3(edit, node, *i)
							     : merge3(edit, node, *i);
		else if (tries > 0 && (before || behind))
			rc = share2(edit, node, *i ? *i - 1 : 0);
		else
			rc = merge2(edit, node, *i ? *i - 1 : 0);
		if (rc)
			return rc;
	}
}

/* ---- insert ---- */

/* Inserts beneath a node that has room for one more record. */
static int insert_beneath(const struct seek *seek, struct h5_btree2_edit_node *node, const uint8_t *record)
{
	bool equal;
	size_t i;
	int rc;

	while (node->children) {
		rc = make_room(seek, node, &i);
		if (!rc)
			rc = h5_btree2_edit_child(seek->edit, node, i, &node);
		if (rc)
			return rc;
	}
	rc = seek_in(seek, node, &i, &equal);
	if (!rc)
		h5_btree2_edit_insert(seek->edit, node, i, record);
	return rc;
}

/* True: making room in child i might split it, since a sibling is about as full. */
static bool could_split(const struct h5_btree2_edit *edit, const struct h5_btree2_edit_node *node, size_t i)
{
	uint64_t limit = 2 * level_of_children(edit, node)->split_records - 1;

	return (i && count_of(node, i) + count_of(node, i - 1) >= limit) ||
	       (i < node->node->count && count_of(node, i) + count_of(node, i + 1) >= limit);
}

static int set(const struct seek *seek, const uint8_t *record)
{
	struct h5_btree2_edit *edit = seek->edit;
	struct h5_btree2_edit_node *path[H5_BTREE2_DEPTH + 1], *node;
	size_t at[H5_BTREE2_DEPTH + 1];
	unsigned level;
	int rc = edit->root ? 0 : h5_btree2_edit_raise(edit);

	if (rc)
		return rc;
	level = edit->header.depth;
	node = edit->root;
	for (;;) {
		bool equal;

		path[level] = node;
		rc = seek_in(seek, node, &at[level], &equal);
		if (rc)
			return rc;
		if (equal) {
			memcpy(h5_btree2_edit_record(edit, node, at[level]), record,
			       edit->header.record_size);
			node->state = H5_BTREE2_REPLACED;
			return 0;
		}
		if (!level)
			break;
		rc = h5_btree2_edit_child(edit, node, at[level], &node);
		if (rc)
			return rc;
		level--;
	}
	if (node->node->count < edit->header.levels[0].split_records) {
		h5_btree2_edit_insert(edit, node, at[0], record);
		return 0;
	}
	/* Begin at the lowest node that has room for another child, or needs none. */
	for (level = 1; level <= edit->header.depth; level++)
		if (path[level]->node->count < edit->header.levels[level].split_records ||
		    !could_split(edit, path[level], at[level]))
			return insert_beneath(seek, path[level], record);
	rc = h5_btree2_edit_raise(edit);
	if (!rc)
		rc = split(edit, edit->root, 0);
	return rc ? rc : insert_beneath(seek, edit->root, record);
}

/* Indexes of links have names: these come after what they lead to, and go after others have come. Those of
 * shared messages count uses, of which there are never more. */
static unsigned stage_of(const struct h5_btree2_edit *edit, bool comes)
{
	if (edit->header.type == H5_BTREE2_SHARED_MESSAGE)
		return H5_STAGE_UNCOUNT;
	if (edit->header.type != H5_BTREE2_LINK_NAME && edit->header.type != H5_BTREE2_LINK_ORDER)
		return 0;
	return comes ? H5_STAGE_NAME : H5_STAGE_UNNAME;
}

int h5_btree2_set(struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg, const uint8_t *record)
{
	struct h5_btree2_edit edit;
	const struct seek seek = {.edit = &edit, .compare = compare, .arg = arg};
	int rc = h5_btree2_edit_begin(&edit, tree);

	if (rc)
		return rc;
	edit.stage = stage_of(&edit, true);
	return h5_btree2_edit_end(&edit, set(&seek, record));
}

/* ---- remove ---- */

/* Gives a root with one record its two children's records, if they fit. */
static int try_lower(struct h5_btree2_edit *edit, bool *lowered)
{
	struct h5_btree2_edit_node *root = edit->root;
	int rc;

	*lowered = root->node->count == 1 && count_of(root, 0) + count_of(root, 1) <=
						     2 * level_of_children(edit, root)->merge_records + 1;
	if (!*lowered)
		return 0;
	rc = merge2(edit, root, 0);
	if (!rc)
		h5_btree2_edit_lower(edit);
	return rc;
}

static int remove_one(struct h5_btree2_edit *edit, struct seek seek)
{
	struct h5_btree2_edit_node *node = edit->root;
	/* The record to remove, if it is in an internal node: its successor takes its place. */
	uint8_t *hole = NULL;
	bool equal;
	size_t i;
	int rc;

	while (node->children) {
		if (node == edit->root) {
			bool lowered;

			rc = try_lower(edit, &lowered);
			if (rc)
				return rc;
			node = edit->root;
			if (lowered)
				continue;
		}
		rc = make_spare(&seek, node, &i, &equal);
		if (rc)
			return rc;
		if (equal) {
			hole = h5_btree2_edit_record(edit, node, i - 1);
			seek.aim = AIM_FIRST;
		}
		rc = h5_btree2_edit_child(edit, node, i, &node);
		if (rc)
			return rc;
	}
	rc = seek_in(&seek, node, &i, &equal);
	if (rc)
		return rc;
	if (seek.aim == AIM_SOUGHT && !equal)
		return -ENOENT;
	assert(node->node->count);
	if (seek.aim == AIM_LAST)
		i--;
	/* The node with the hole is written anyway, since the count of its child changes. */
	if (hole)
		memcpy(hole, h5_btree2_edit_record(edit, node, i), edit->header.record_size);
	h5_btree2_edit_remove(edit, node, i);
	if (node == edit->root && !node->node->count)
		h5_btree2_edit_lower(edit);
	return 0;
}

int h5_btree2_remove(struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg)
{
	struct h5_btree2_edit edit;
	const struct seek seek = {.edit = &edit, .compare = compare, .arg = arg};
	int rc = h5_btree2_edit_begin(&edit, tree);

	if (rc)
		return rc;
	edit.stage = stage_of(&edit, false);
	return h5_btree2_edit_end(&edit, edit.root ? remove_one(&edit, seek) : -ENOENT);
}

/* ---- trim ---- */

struct removed {
	uint8_t *records;
	size_t count, room, record_size;
};

static int removed_add(struct removed *removed, const uint8_t *record)
{
	int rc = h5_array_reserve_bytes(&removed->records, removed->record_size, &removed->room,
					removed->count + 1, NULL);

	if (rc)
		return rc;
	memcpy(removed->records + removed->count++ * removed->record_size, record, removed->record_size);
	return 0;
}

static int last_leaf(struct h5_btree2_edit *edit, struct h5_btree2_edit_node **leaf)
{
	struct h5_btree2_edit_node *node = edit->root;
	int rc = 0;

	while (!rc && node->children)
		rc = h5_btree2_edit_child(edit, node, node->node->count, &node);
	if (!rc && !node->node->count)
		rc = h5_fail(-EUCLEAN, edit->tree->address, "version 2 B-tree: a leaf without records");
	*leaf = node;
	return rc;
}

static int trim(const struct seek *seek, struct removed *removed)
{
	struct h5_btree2_edit *edit = seek->edit;
	int rc = 0;

	while (!rc && edit->root) {
		struct h5_btree2_edit_node *leaf;
		size_t last;
		int order;

		rc = last_leaf(edit, &leaf);
		if (rc)
			break;
		last = leaf->node->count - 1;
		order = seek->compare(seek->arg, h5_btree2_record_at(edit->tree, leaf->node, last), &rc);
		if (rc || order > 0)
			break;
		rc = removed_add(removed, h5_btree2_edit_record(edit, leaf, last));
		if (!rc)
			rc = remove_one(edit, *seek);
	}
	return rc;
}

int h5_btree2_trim(struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg, h5_btree2_visit *visit,
		   void *visit_arg)
{
	struct h5_btree2_edit edit;
	const struct seek seek = {&edit, compare, arg, AIM_LAST};
	struct removed removed = {.record_size = tree->record_size};
	int rc = h5_btree2_edit_begin(&edit, tree);

	if (!rc)
		rc = h5_btree2_edit_end(&edit, trim(&seek, &removed));
	for (size_t i = 0; i < removed.count && !rc; i++)
		rc = visit(visit_arg, h5_file_reader(tree->file, removed.records + i * removed.record_size,
						     removed.record_size, H5_UNDEF));
	free(removed.records);
	return rc;
}

/* ---- a new tree ---- */

int h5_btree2_create(struct h5_file *file, const struct h5_btree2_parameters *parameters,
		     struct h5_btree2 *tree)
{
	const struct h5_btree2_header header = {
		.version = h5_btree2_version(parameters->type),
		.type = (uint8_t)parameters->type,
		.record_size = parameters->record_size,
		.node_size = parameters->node_size,
		.split_percent = parameters->split_percent,
		.merge_percent = parameters->merge_percent,
	};

	return h5_btree2_edit_create(file, &header, tree);
}

/* ---- a whole tree ---- */

int h5_btree2_free(struct h5_btree2 *tree)
{
	int rc;

	h5_unit_begin(tree->file);
	rc = h5_unit_save(tree->file, tree, sizeof *tree);
	if (!rc)
		rc = h5_btree2_extents(tree, h5_tx_free_extent, tree->file);
	if (!rc) {
		tree->address = H5_UNDEF;
		tree->records = 0;
	}
	return h5_unit_end(tree->file, rc);
}

int h5_btree2_move(struct h5_btree2 *tree)
{
	const struct h5_superblock *superblock = h5_file_superblock(tree->file);
	size_t size = h5_btree2_header_size(superblock->size_of_offsets, superblock->size_of_lengths);
	uint8_t data[H5_BTREE2_HEADER_MAX];
	int rc;

	if (h5_tx_is_new(tree->file, tree->address))
		return 0;
	h5_unit_begin(tree->file);
	rc = h5_unit_save(tree->file, tree, sizeof *tree);
	if (!rc)
		rc = h5_file_read(tree->file, tree->address, data, size);
	if (!rc)
		rc = h5_tx_shadow(tree->file, &tree->address, data, size);
	return h5_unit_end(tree->file, rc);
}

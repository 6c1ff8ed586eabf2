#include "object/named_record_write.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/btree2_write.h"
#include "change/transaction.h"

#include <assert.h>
#include <string.h>

enum {
	RECORD_MAX = 17, /* bytes of the largest record */
	/* What libhdf5 gives these trees. */
	NODE_SIZE = 512,
	SPLIT_PERCENT = 100,
	MERGE_PERCENT = 40,
};

typedef int decode_record(struct h5_reader *r, struct h5_named_record *record);
typedef int encode_record(struct h5_writer *w, const struct h5_named_record *record);

struct index_type {
	enum h5_btree2_type type;
	uint16_t record_size;
	decode_record *decode;
	encode_record *encode;
};

struct kind {
	struct h5_fractal_heap_parameters heap;
	struct index_type name, order;
};

static const struct kind kinds[] = {
	[H5_NAMED_LINK] = {{7, 32},
			   {H5_BTREE2_LINK_NAME, 11, h5_link_record_decode, h5_link_record_encode},
			   {H5_BTREE2_LINK_ORDER, 15, h5_link_order_record_decode,
			    h5_link_order_record_encode}},
	[H5_NAMED_ATTRIBUTE] = {{8, 40},
				{H5_BTREE2_ATTRIBUTE_NAME, 17, h5_attribute_record_decode,
				 h5_attribute_record_encode},
				{H5_BTREE2_ATTRIBUTE_ORDER, 13, h5_attribute_order_record_decode,
				 h5_attribute_order_record_encode}},
};

struct h5_fractal_heap_parameters h5_named_heap_parameters(enum h5_named_kind kind)
{
	return kinds[kind].heap;
}

/* ---- trees ---- */

static int create_tree(struct h5_file *file, const struct index_type *type, uint64_t *address)
{
	const struct h5_btree2_parameters parameters = {
		.type = type->type,
		.record_size = type->record_size,
		.node_size = NODE_SIZE,
		.split_percent = SPLIT_PERCENT,
		.merge_percent = MERGE_PERCENT,
	};
	struct h5_btree2 tree;
	int rc = h5_btree2_create(file, &parameters, &tree);

	h5_unit_unsave(file, &tree, sizeof tree);
	*address = rc ? H5_UNDEF : tree.address;
	return rc;
}

static int open_tree(struct h5_file *file, const struct index_type *type, uint64_t address,
		     struct h5_btree2 *tree)
{
	int rc;

	if (address == H5_UNDEF)
		return h5_fail(-EUCLEAN, address, "dense storage: it has no index by name");
	rc = h5_btree2_open(file, address, type->type, type->record_size, tree);
	if (!rc && tree->record_size != type->record_size)
		rc = h5_fail(-ENOTSUP, address, "dense storage: records of %u bytes are not supported",
			     tree->record_size);
	return rc;
}

/* Moves the headers of both indexes to new space. So the info message switches to both of them at once. */
static int move_trees(struct h5_file *file, const struct kind *kind, struct h5_named_info *info)
{
	struct h5_btree2 names, orders;
	int rc;

	if (info->order_index == H5_UNDEF)
		return 0;
	rc = open_tree(file, &kind->name, info->name_index, &names);
	if (!rc)
		rc = open_tree(file, &kind->order, info->order_index, &orders);
	if (!rc)
		rc = h5_btree2_move(&names);
	if (!rc)
		rc = h5_btree2_move(&orders);
	h5_unit_unsave(file, &names, sizeof names);
	h5_unit_unsave(file, &orders, sizeof orders);
	if (rc)
		return rc;
	info->name_index = names.address;
	info->order_index = orders.address;
	return 0;
}

/* *is_new: there was no such record. */
static int set_record(struct h5_file *file, const struct index_type *type, uint64_t *address,
		      h5_btree2_compare *compare, void *arg, const struct h5_named_record *record,
		      bool *is_new)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	uint8_t bytes[RECORD_MAX];
	struct h5_writer w =
		h5_writer_init(bytes, type->record_size, sb->size_of_offsets, sb->size_of_lengths);
	struct h5_btree2 tree;
	uint64_t before;
	int rc = type->encode(&w, record);

	if (!rc)
		rc = open_tree(file, type, *address, &tree);
	if (rc)
		return rc;
	before = tree.records;
	rc = h5_btree2_set(&tree, compare, arg, bytes);
	h5_unit_unsave(file, &tree, sizeof tree);
	if (rc)
		return rc;
	*address = tree.address;
	*is_new = tree.records != before;
	return 0;
}

static int remove_record(struct h5_file *file, const struct index_type *type, uint64_t *address,
			 h5_btree2_compare *compare, void *arg)
{
	struct h5_btree2 tree;
	int rc = open_tree(file, type, *address, &tree);

	if (!rc)
		rc = h5_btree2_remove(&tree, compare, arg);
	h5_unit_unsave(file, &tree, sizeof tree);
	if (!rc)
		*address = tree.address;
	return rc;
}

/* ---- by creation order ---- */

struct order_search {
	decode_record *decode;
	int64_t order;
};

static int compare_order(void *arg, struct h5_reader r, int *rc)
{
	const struct order_search *s = arg;
	struct h5_named_record record;

	*rc = s->decode(&r, &record);
	return h5_compare_signed(s->order, record.order);
}

static struct order_search order_search(const struct kind *kind, int64_t order)
{
	return (struct order_search){kind->order.decode, order};
}

/* ---- both ---- */

int h5_named_index_create(struct h5_file *file, enum h5_named_kind kind, bool by_order,
			  struct h5_named_info *info)
{
	int rc;

	h5_unit_begin(file);
	rc = h5_unit_save(file, info, sizeof *info);
	if (!rc) {
		info->order_index = H5_UNDEF;
		rc = create_tree(file, &kinds[kind].name, &info->name_index);
	}
	if (!rc && by_order)
		rc = create_tree(file, &kinds[kind].order, &info->order_index);
	return h5_unit_end(file, rc);
}

int h5_named_index_find(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
			const char *name, size_t name_size, struct h5_named_entry *entry)
{
	const struct index_type *type = &kinds[kind].name;
	uint8_t bytes[RECORD_MAX];
	struct h5_named_storage storage;
	struct h5_named_search search;
	struct h5_message_body body;
	struct h5_btree2 tree;
	int rc;

	h5_named_storage_dense(file, kind, info, &storage);
	search = h5_named_search_init(&storage, name, name_size, &body);
	rc = open_tree(file, type, info->name_index, &tree);
	search.entry = entry;
	if (!rc)
		rc = h5_btree2_find(&tree, h5_named_compare, &search, bytes);
	h5_message_release(file, &body);
	return rc;
}

static int set(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info, const char *name,
	       size_t name_size, const struct h5_named_entry *entry)
{
	struct h5_named_record record = {
		.id = entry->id,
		.id_size = entry->id_size,
		.is_shared = entry->is_shared,
		.order = entry->order,
	};
	struct order_search order = order_search(&kinds[kind], entry->order);
	struct h5_named_storage storage;
	struct h5_named_search search;
	struct h5_message_body body;
	bool is_new, has_new_order;
	int rc;

	h5_named_storage_dense(file, kind, info, &storage);
	search = h5_named_search_init(&storage, name, name_size, &body);
	record.hash = search.hash;
	rc = set_record(file, &kinds[kind].name, &info->name_index, h5_named_compare, &search, &record,
			&is_new);
	h5_message_release(file, &body);
	if (rc || info->order_index == H5_UNDEF)
		return rc;
	rc = set_record(file, &kinds[kind].order, &info->order_index, compare_order, &order, &record,
			&has_new_order);
	if (!rc && is_new != has_new_order)
		rc = h5_fail(-EUCLEAN, info->order_index,
			     "dense storage: the indexes disagree about creation order %jd",
			     (intmax_t)entry->order);
	return rc;
}

/* Begins the unit of a change of both indexes. On failure there is nothing to end. */
static int begin_change(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info)
{
	int rc;

	h5_unit_begin(file);
	rc = h5_unit_save(file, info, sizeof *info);
	if (!rc)
		rc = move_trees(file, &kinds[kind], info);
	return rc ? h5_unit_end(file, rc) : 0;
}

int h5_named_index_set(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info,
		       const char *name, size_t name_size, const struct h5_named_entry *entry)
{
	int rc = begin_change(file, kind, info);

	return rc ? rc : h5_unit_end(file, set(file, kind, info, name, name_size, entry));
}

static int remove_name(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info,
		       const char *name, size_t name_size, struct h5_named_entry *entry)
{
	struct h5_named_storage storage;
	struct h5_named_search search;
	struct h5_message_body body;
	int rc;

	h5_named_storage_dense(file, kind, info, &storage);
	search = h5_named_search_init(&storage, name, name_size, &body);
	search.entry = entry;
	rc = remove_record(file, &kinds[kind].name, &info->name_index, h5_named_compare, &search);
	h5_message_release(file, &body);
	return rc;
}

static int remove_order(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info,
			int64_t order)
{
	struct order_search search = order_search(&kinds[kind], order);
	int rc = remove_record(file, &kinds[kind].order, &info->order_index, compare_order, &search);

	return rc == -ENOENT ? h5_fail(-EUCLEAN, info->order_index, "dense storage: an index lacks a record")
			     : rc;
}

int h5_named_index_remove(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info,
			  const char *name, size_t name_size, struct h5_named_entry *entry)
{
	int rc = begin_change(file, kind, info);

	if (rc)
		return rc;
	rc = remove_name(file, kind, info, name, name_size, entry);
	if (!rc && info->order_index != H5_UNDEF)
		rc = remove_order(file, kind, info, entry->order);
	return h5_unit_end(file, rc);
}

/* ---- all of an index ---- */

/* Whatever the size of its records is. */
static int tree_extents(struct h5_file *file, const struct index_type *type, uint64_t address,
			h5_extent_visit *visit, void *arg)
{
	struct h5_btree2 tree;
	int rc = h5_btree2_open(file, address, type->type, 1, &tree);

	return rc ? rc : h5_btree2_extents(&tree, visit, arg);
}

int h5_named_index_extents(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
			   h5_extent_visit *visit, void *arg)
{
	int rc = tree_extents(file, &kinds[kind].name, info->name_index, visit, arg);

	if (!rc && info->order_index != H5_UNDEF)
		rc = tree_extents(file, &kinds[kind].order, info->order_index, visit, arg);
	return rc;
}

static int refuse_shared(void *arg, struct h5_reader r)
{
	const struct index_type *type = arg;
	struct h5_named_record record;
	int rc = type->decode(&r, &record);

	if (!rc && record.is_shared)
		rc = h5_fail(-ENOTSUP, H5_UNDEF,
			     "dense storage: removing shared attributes is not supported");
	return rc;
}

static int check_own(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info)
{
	struct index_type type = kinds[kind].name;
	struct h5_btree2 tree;
	int rc = open_tree(file, &type, info->name_index, &tree);

	return rc ? rc : h5_btree2_iterate(&tree, refuse_shared, &type);
}

int h5_named_index_free(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info)
{
	int rc;

	h5_unit_begin(file);
	rc = h5_unit_save(file, info, sizeof *info);
	if (!rc)
		rc = check_own(file, kind, info);
	if (!rc)
		rc = h5_named_index_extents(file, kind, info, h5_tx_free_extent, file);
	if (!rc)
		info->name_index = info->order_index = H5_UNDEF;
	return h5_unit_end(file, rc);
}

#include "object/shared_table.h"

#include "base/error.h"
#include "base/lookup3.h"
#include "format/shared_message.h"
#include "store/block.h"
#include "store/btree2.h"
#include "store/extension.h"
#include "store/file.h"

#include <stdlib.h>

static int load_table(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct h5_shared_table_message *message = arg;
	size_t size = h5_shared_table_size(message->indexes, h5_file_superblock(file)->size_of_offsets);
	struct h5_shared_table *table = malloc(sizeof *table);
	void *data = NULL;
	struct h5_reader r;
	int rc;

	rc = table ? h5_block_open(file, address, size, "shared message table", &data, &r)
		   : h5_fail(-ENOMEM, address, "shared message table: out of memory");
	if (!rc)
		rc = h5_shared_table_decode(&r, message->indexes, table);
	free(data);
	if (rc) {
		free(table);
		return rc;
	}
	*value = table;
	*cost = sizeof *table;
	return 0;
}

static const struct h5_block_type table_block = {
	.kind = {.name = "shared message table", .release = free},
	.load = load_table,
};

/* -ENODATA: the file has none. */
static int table_get(struct h5_file *file, struct h5_shared_table_message *message, struct h5_lru_entry **ref)
{
	int rc = h5_extension_shared_table(file, message);

	return rc ? rc : h5_file_block(file, &table_block, message->address, message->indexes, message, ref);
}

static uint64_t heap_of(const struct h5_shared_table *table, enum h5_message_type type)
{
	for (unsigned i = 0; i < table->count; i++)
		if (table->indexes[i].types & h5_shared_type_flag(type))
			return table->indexes[i].heap;
	return H5_UNDEF;
}

int h5_shared_table_get(struct h5_file *file, enum h5_message_type type, const uint8_t *id,
			struct h5_heap_object *message)
{
	struct h5_shared_table_message table;
	struct h5_lru_entry *ref;
	uint64_t heap;
	int rc = table_get(file, &table, &ref);

	*message = (struct h5_heap_object){0};
	if (rc == -ENODATA)
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "shared message: the file has no shared message table");
	if (rc)
		return rc;
	heap = heap_of(h5_lru_value(ref), type);
	h5_file_put(file, ref);
	if (heap == H5_UNDEF)
		return h5_fail(-EUCLEAN, table.address,
			       "shared message table: no heap for messages of type %#x", type);
	return h5_fractal_heap_get(file, heap, id, H5_SHARED_ID_SIZE, message);
}

/* ---- records ---- */

typedef int visit_record(void *arg, struct h5_reader record);

static int walk_list(struct h5_file *file, uint64_t address, unsigned messages, visit_record *visit,
		     void *arg)
{
	uint8_t offsets = h5_file_superblock(file)->size_of_offsets;
	size_t size = h5_shared_list_size(messages, offsets);
	struct h5_reader r, records;
	void *data;
	int rc = h5_block_open(file, address, size, "shared message list", &data, &r);

	if (rc)
		return rc;
	rc = h5_shared_list_decode(&r, &records);
	for (unsigned i = 0; i < messages && !rc; i++)
		rc = visit(arg, h5_reader_sub(&records, h5_shared_record_size(offsets)));
	free(data);
	return rc;
}

static int tree_open(struct h5_file *file, uint64_t address, struct h5_btree2 *tree)
{
	unsigned size = (unsigned)h5_shared_record_size(h5_file_superblock(file)->size_of_offsets);

	return h5_btree2_open(file, address, H5_BTREE2_SHARED_MESSAGE, size, tree);
}

static int walk_tree(struct h5_file *file, uint64_t address, visit_record *visit, void *arg)
{
	struct h5_btree2 tree;
	int rc = tree_open(file, address, &tree);

	return rc ? rc : h5_btree2_iterate(&tree, visit, arg);
}

/* Visits the records of index i. */
static int walk_index(struct h5_file *file, const struct h5_shared_table *table, unsigned i,
		      visit_record *visit, void *arg)
{
	if (table->indexes[i].index == H5_UNDEF)
		return 0;
	return table->indexes[i].is_list
		       ? walk_list(file, table->indexes[i].index, table->indexes[i].messages, visit, arg)
		       : walk_tree(file, table->indexes[i].index, visit, arg);
}

struct counts {
	unsigned types;
	h5_shared_count_visit *visit;
	void *arg;
};

static int visit_count(void *arg, struct h5_reader r)
{
	const struct counts *counts = arg;
	struct h5_shared_record record;
	int rc = h5_shared_record_decode(&r, &record);

	return rc || !record.in_heap ? rc : counts->visit(counts->arg, counts->types, &record);
}

int h5_shared_table_counts(struct h5_file *file, h5_shared_count_visit *visit, void *arg)
{
	struct counts counts = {.visit = visit, .arg = arg};
	struct h5_shared_table_message message;
	const struct h5_shared_table *table;
	struct h5_lru_entry *ref;
	int rc = table_get(file, &message, &ref);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	table = h5_lru_value(ref);
	for (unsigned i = 0; i < table->count && !rc; i++) {
		counts.types = table->indexes[i].types;
		rc = walk_index(file, table, i, visit_count, &counts);
	}
	h5_file_put(file, ref);
	return rc;
}

/* ---- verifying it all ---- */

struct table_check {
	struct h5_file *file;
	uint64_t heap;
	unsigned types; /* of messages in the index: bit t for type t */
	struct h5_damage *damage;
};

/* The hash of a message begins with its type. */
static bool has_hash(const struct table_check *check, const uint8_t *data, size_t size, uint32_t hash)
{
	for (unsigned type = 0; check->types >> type; type++)
		if (check->types >> type & 1 && h5_lookup3(data, size, type) == hash)
			return true;
	return false;
}

/* Checks that the message is there and has the hash of the record. */
static int check_record(void *arg, struct h5_reader r)
{
	const struct table_check *check = arg;
	struct h5_shared_record record;
	struct h5_heap_object message;
	uint64_t address = r.address;
	struct h5_header header;
	int rc = h5_shared_record_decode(&r, &record);

	/* libhdf5 reads the header that has the message when it makes an equal one. */
	if (!rc && !record.in_heap && !(rc = h5_header_load(check->file, record.address, &header)))
		h5_header_release(&header);
	if (!rc && record.in_heap) {
		rc = h5_fractal_heap_get(check->file, check->heap, record.id, H5_SHARED_ID_SIZE, &message);
		if (!rc && !has_hash(check, message.data, message.size, record.hash))
			rc = h5_fail(-EUCLEAN, address, "shared message record: wrong hash of its message");
		h5_heap_object_release(&message);
	}
	return h5_damage_note(check->damage, rc);
}

int h5_shared_table_check(struct h5_file *file, struct h5_damage *damage)
{
	struct table_check check = {.file = file, .damage = damage};
	struct h5_shared_table_message message;
	const struct h5_shared_table *table;
	struct h5_lru_entry *ref;
	int rc = table_get(file, &message, &ref);

	if (rc)
		return rc == -ENODATA ? 0 : h5_damage_note(damage, rc);
	table = h5_lru_value(ref);
	for (unsigned i = 0; i < table->count && !rc; i++) {
		check.heap = table->indexes[i].heap;
		check.types = table->indexes[i].types;
		if (check.heap != H5_UNDEF)
			rc = h5_fractal_heap_check(file, check.heap, damage);
		if (!rc)
			rc = h5_damage_note(damage, walk_index(file, table, i, check_record, &check));
	}
	h5_file_put(file, ref);
	return rc;
}

/* ---- its space ---- */

static int list_extent(struct h5_file *file, const struct h5_shared_table *table, unsigned i,
		       h5_extent_visit *visit, void *arg)
{
	unsigned room = table->indexes[i].list_max, messages = table->indexes[i].messages;
	uint8_t offsets = h5_file_superblock(file)->size_of_offsets;

	return visit(arg, table->indexes[i].index,
		     h5_shared_list_size(room > messages ? room : messages, offsets));
}

static int tree_extents(struct h5_file *file, uint64_t address, h5_extent_visit *visit, void *arg)
{
	struct h5_btree2 tree;
	int rc = tree_open(file, address, &tree);

	return rc ? rc : h5_btree2_extents(&tree, visit, arg);
}

static int index_extents(struct h5_file *file, const struct h5_shared_table *table, unsigned i,
			 h5_extent_visit *visit, void *arg)
{
	uint64_t heap = table->indexes[i].heap, index = table->indexes[i].index;
	int rc = heap == H5_UNDEF ? 0 : h5_fractal_heap_extents(file, heap, visit, arg);

	if (!rc && heap != H5_UNDEF && table->indexes[i].types & h5_shared_type_flag(H5_MSG_ATTRIBUTE))
		rc = h5_fail(-ENOTSUP, heap, "shared message table: datatypes of shared attributes");
	if (rc || index == H5_UNDEF)
		return rc;
	return table->indexes[i].is_list ? list_extent(file, table, i, visit, arg)
					 : tree_extents(file, index, visit, arg);
}

int h5_shared_table_extents(struct h5_file *file, h5_extent_visit *visit, void *arg)
{
	struct h5_shared_table_message message;
	const struct h5_shared_table *table;
	struct h5_lru_entry *ref;
	int rc = table_get(file, &message, &ref);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	table = h5_lru_value(ref);
	rc = visit(arg, message.address,
		   h5_shared_table_size(message.indexes, h5_file_superblock(file)->size_of_offsets));
	for (unsigned i = 0; i < table->count && !rc; i++)
		rc = index_extents(file, table, i, visit, arg);
	h5_file_put(file, ref);
	return rc;
}

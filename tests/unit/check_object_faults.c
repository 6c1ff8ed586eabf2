/* Each read fails once, and each of many allocations, wherever it stands in walks over what objects consist
 * of and in changes of them: the error is told, what fails changes nothing, and the next try finds the same.
 * And indexes of dense storage that do not fit together. */
#include "base/error.h"
#include "base/lookup3.h"
#include "change/transaction.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "format/datatype_make.h"
#include "object/attribute_values.h"
#include "object/attribute_write.h"
#include "object/dense_write.h"
#include "object/file_space.h"
#include "object/global_heap.h"
#include "object/group_write.h"
#include "object/local_heap.h"
#include "object/own_message.h"
#include "object/path.h"
#include "object/shared_table.h"
#include "object/symbol_table_write.h"
#include "scratch.h"
#include "store/extension.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* An object of a file, and what a walk has found, as a number. */
struct scene {
	struct h5_file *file;
	uint64_t address;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	uint32_t found;
	const struct h5_datatype *type; /* four bytes */
	const char *link, *attribute;	/* of the object: the third one, the first one */
};

static void add(struct scene *s, const void *bytes, size_t n)
{
	s->found = h5_lookup3(bytes, n, s->found);
}

static int add_extent(void *scene, uint64_t address, uint64_t n)
{
	add(scene, &address, sizeof address);
	add(scene, &n, sizeof n);
	return 0;
}

static int damage_of(int rc, const struct h5_damage *damage)
{
	return rc ? rc : damage->first.code;
}

/* ---- walks ---- */

static int storage_of(struct scene *s, enum h5_named_kind kind, struct h5_named_storage *storage)
{
	int rc = h5_named_storage_find(s->file, s->object, kind, storage);

	return damage_of(rc, &storage->damage);
}

static int extents_of(struct scene *s, enum h5_named_kind kind)
{
	struct h5_named_storage storage;
	int rc = storage_of(s, kind, &storage);

	return rc ? rc : h5_dense_extents(s->file, kind, &storage.info, add_extent, s);
}

static int link_extents(struct scene *s)
{
	return extents_of(s, H5_NAMED_LINK);
}

static int attribute_extents(struct scene *s)
{
	return extents_of(s, H5_NAMED_ATTRIBUTE);
}

static int check_of(struct scene *s, enum h5_named_kind kind)
{
	struct h5_named_storage storage;
	struct h5_damage damage = {0};
	int rc = storage_of(s, kind, &storage);

	return rc ? rc : damage_of(h5_named_check(&storage, &damage), &damage);
}

static int check_links(struct scene *s)
{
	return check_of(s, H5_NAMED_LINK);
}

static int check_attributes(struct scene *s)
{
	return check_of(s, H5_NAMED_ATTRIBUTE);
}

static int add_message(void *scene, const struct h5_name *name, const struct h5_named_record *record,
		       struct h5_reader message)
{
	add(scene, name->text, name->size);
	add(scene, record->id, record->id_size);
	add(scene, message.p, h5_reader_left(&message));
	return 0;
}

static int iterate_links(struct scene *s)
{
	struct h5_named_storage storage;
	int rc = storage_of(s, H5_NAMED_LINK, &storage);

	return rc ? rc : h5_named_iterate_dense(&storage, add_message, s);
}

static int walk_attributes(struct scene *s)
{
	const struct h5_attribute *attribute;
	struct h5_attribute_walk walk;
	int rc = h5_attribute_begin(&walk, s->file, s->object);

	while (!rc && (rc = h5_attribute_next(&walk, &attribute)) > 0) {
		rc = attribute->type ? 0 : h5_error_last()->code;
		add(s, attribute->name, strlen(attribute->name));
		if (!rc)
			add(s, attribute->data, attribute->size);
	}
	h5_attribute_end(&walk);
	return rc;
}

static int walk_links(struct scene *s, enum h5_name_order order)
{
	const struct h5_link *link;
	struct h5_link_walk walk;
	int rc = h5_link_begin(&walk, s->file, s->object, order);

	while (!rc && (rc = h5_link_next(&walk, &link)) > 0) {
		rc = 0;
		add(s, link->name, link->name_size);
		add(s, link->target, link->target_size);
		add(s, &link->address, sizeof link->address);
	}
	h5_link_end(&walk);
	return rc;
}

static int walk_links_by_name(struct scene *s)
{
	return walk_links(s, H5_NAMES_SORTED);
}

static int walk_links_by_order(struct scene *s)
{
	return walk_links(s, H5_NAMES_BY_CREATION);
}

static int count_links(struct scene *s)
{
	uint64_t count;
	int rc = h5_group_count(s->file, s->object, &count);

	add(s, &count, sizeof count);
	return rc;
}

static int look_up_link(struct scene *s)
{
	struct h5_link link;
	int rc = h5_group_lookup(s->file, s->object, s->link, strlen(s->link), &link);

	if (!rc)
		add(s, link.name, link.name_size);
	h5_link_release(&link);
	return rc;
}

static int look_up_attribute(struct scene *s)
{
	struct h5_attribute attribute;
	int rc = h5_attribute_lookup(s->file, s->object, s->attribute, &attribute);

	if (rc)
		return rc;
	add(s, attribute.data, attribute.size);
	h5_attribute_release(&attribute);
	return 0;
}

static int walk_heap_object(void *scene, const struct h5_global_heap_object *object)
{
	add(scene, &object->index, sizeof object->index);
	add(scene, &object->size, sizeof object->size);
	return 0;
}

static int walk_collection(void *scene, uint64_t address, uint32_t index)
{
	struct scene *s = scene;
	struct h5_lru_entry *ref;
	const uint8_t *data;
	uint64_t size;
	size_t n;
	int rc = h5_global_heap_each(s->file, address, walk_heap_object, s, &size);

	if (!rc)
		rc = h5_global_heap_check(s->file, address);
	if (!rc)
		rc = h5_global_heap_get(s->file, address, index, &ref, &data, &n);
	if (rc)
		return rc;
	add(s, data, n);
	h5_file_put(s->file, ref);
	return 0;
}

static int walk_values(struct scene *s)
{
	return h5_attributes_own(s->file, s->object, walk_collection, s);
}

static int walk_symbols(struct scene *s)
{
	struct h5_group_storage storage;
	struct h5_local_heap heap;
	int rc = h5_group_storage_find(s->file, s->object, &storage);

	if (!rc)
		rc = h5_local_heap_open(s->file, storage.table.heap, &heap);
	if (!rc)
		rc = h5_local_heap_check(&heap);
	return rc ? rc : h5_local_heap_extents(s->file, storage.table.heap, add_extent, s);
}

static int check_shared(struct scene *s)
{
	struct h5_damage damage = {0};

	return damage_of(h5_shared_table_check(s->file, &damage), &damage);
}

static int add_record(void *scene, unsigned types, const struct h5_shared_record *record)
{
	add(scene, &types, sizeof types);
	add(scene, record->id, H5_SHARED_ID_SIZE);
	add(scene, &record->count, sizeof record->count);
	return 0;
}

static int count_shared(struct scene *s)
{
	return h5_shared_table_counts(s->file, add_record, s);
}

static int shared_extents(struct scene *s)
{
	return h5_shared_table_extents(s->file, add_extent, s);
}

static int free_bytes(struct scene *s)
{
	uint64_t bytes;
	int rc = h5_file_space_free(s->file, &bytes);

	add(s, &bytes, sizeof bytes);
	return rc;
}

static int check_space(struct scene *s)
{
	struct h5_damage damage = {0};

	return damage_of(h5_file_space_check(s->file, &damage), &damage);
}

static int space_extents(struct scene *s)
{
	return h5_file_space_extents(s->file, add_extent, s);
}

static int add_section(void *scene, unsigned manager, const struct h5_free_section *section)
{
	(void)manager;
	return add_extent(scene, section->offset, section->size);
}

static int walk_sections(struct scene *s)
{
	return h5_file_space_sections(s->file, add_section, s);
}

/* ---- changes ---- */

static const char long_name[] = "a name that is a bit longer than those which are here already";

static struct h5_link soft_link(const char *name)
{
	return (struct h5_link){.type = H5_LINK_SOFT,
				.name = name,
				.name_size = strlen(name),
				.target = "somewhere/else",
				.target_size = strlen("somewhere/else")};
}

static int insert_link(struct scene *s)
{
	const struct h5_link link = soft_link(long_name);

	return h5_group_insert(s->file, s->address, &link);
}

static int insert_external(struct scene *s)
{
	struct h5_link link = soft_link(long_name);

	link.type = H5_LINK_EXTERNAL;
	link.file = "other.h5";
	link.file_size = strlen(link.file);
	return h5_group_insert(s->file, s->address, &link);
}

static int change_link(struct scene *s)
{
	const struct h5_link link = soft_link(s->link);

	return h5_group_change(s->file, s->address, &link);
}

static int rename_link(struct scene *s)
{
	const struct h5_link link = soft_link(long_name);

	return h5_group_rename(s->file, s->address, s->link, strlen(s->link), &link);
}

static int remove_link(struct scene *s)
{
	return h5_group_remove(s->file, s->address, s->link, strlen(s->link));
}

static int create_attribute(struct scene *s)
{
	static const int32_t values[3] = {1, 2, 3};
	const struct h5_dataspace space = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {3}, .max = {3}, .elements = 3};

	return h5_attribute_create(s->file, s->address, long_name, s->type, &space, values);
}

static int replace_attribute(struct scene *s)
{
	static const int32_t values[3] = {1, 2, 3};
	const struct h5_dataspace space = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {3}, .max = {3}, .elements = 3};

	return h5_attribute_replace(s->file, s->address, s->attribute, s->type, &space, values);
}

static int update_attribute(struct scene *s)
{
	static const uint8_t bytes[8];

	return h5_attribute_update(s->file, s->address, s->attribute, bytes, sizeof bytes);
}

static int remove_attribute(struct scene *s)
{
	return h5_attribute_remove(s->file, s->address, s->attribute);
}

static int free_of(struct scene *s, enum h5_named_kind kind)
{
	struct h5_named_storage storage;
	int rc = storage_of(s, kind, &storage);

	return rc ? rc : h5_dense_free(s->file, &storage.info, kind);
}

static int free_links(struct scene *s)
{
	return free_of(s, H5_NAMED_LINK);
}

static int free_attributes(struct scene *s)
{
	return free_of(s, H5_NAMED_ATTRIBUTE);
}

static int free_symbols(struct scene *s)
{
	struct h5_group_storage storage;
	int rc = h5_group_storage_find(s->file, s->object, &storage);

	return rc ? rc : h5_symbol_table_free(s->file, &storage.table);
}

static int own_dataspace(struct scene *s)
{
	int rc = h5_own_message_check(s->file, s->address, H5_MSG_DATASPACE);

	return rc ? rc : h5_own_message(s->file, s->address, H5_MSG_DATASPACE);
}

static int own_datatype(struct scene *s)
{
	return h5_own_message(s->file, s->address, H5_MSG_DATATYPE);
}

/* ---- faults ---- */

struct task {
	const char *file, *path;
	int (*run)(struct scene *s);
};

/* Puts a block, whose last bytes are its checksum, into the file, which is closed. */
static void put_block(const struct scratch *s, uint64_t at, uint8_t *bytes, size_t n)
{
	FILE *f = fopen(s->path, "r+b");

	h5_uint_to(bytes + n - 4, h5_lookup3(bytes, n - 4, 0), 4);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* The table of shared messages has an index, which then has no attributes. */
static void share_no_attributes(struct scratch *s)
{
	enum { TYPES = 6, ATTRIBUTES = 1 << 4, SIZE = 4 + 30 + 4 };
	struct h5_shared_table_message where;
	uint8_t bytes[SIZE];

	scratch_open(s);
	SUCCEEDS(h5_extension_shared_table(s->file, &where));
	SUCCEEDS(h5_file_read(s->file, where.address, bytes, sizeof bytes));
	scratch_close(s);
	ck_assert_uint_eq(where.indexes, 1);
	ck_assert(bytes[TYPES + 1] & ATTRIBUTES);
	bytes[TYPES + 1] &= (uint8_t)~ATTRIBUTES;
	put_block(s, where.address, bytes, SIZE);
}

static const struct task tasks[] = {
	/* walks */
	{"dense_write.h5", "links-tracked-60", link_extents},
	{"dense_write.h5", "links-tracked-60", check_links},
	{"dense_write.h5", "links-tracked-60", iterate_links},
	{"dense_write.h5", "links-tracked-60", walk_links_by_name},
	{"dense_write.h5", "links-tracked-60", walk_links_by_order},
	{"dense_write.h5", "links-tracked-60", count_links},
	{"dense_write.h5", "attributes-tracked-60", attribute_extents},
	{"dense_write.h5", "attributes-tracked-60", check_attributes},
	{"dense_write.h5", "attributes-unordered-10", walk_attributes},
	{"dense_write.h5", "links-tracked-60", look_up_link},
	{"dense_write.h5", "attributes-tracked-60", look_up_attribute},
	{"object_shared.h5", "typed0", look_up_attribute},
	{"rare_sohm_tree.h5", "data0", look_up_attribute},
	{"group_write-indexed-7.h5", "g", look_up_link},
	{"symbol_table_write-100.h5", "g", look_up_link},
	{"symbol_table_write-100.h5", "g", walk_links_by_name},
	{"symbol_table_write-100.h5", "g", walk_symbols},
	{"symbol_table_write-100.h5", "g", count_links},
	{"attribute_write-v2-12.h5", "g", walk_values},
	{"attribute_write-v1-1.h5", "g", walk_values},
	{"rare_sohm_tree.h5", "data0", walk_attributes},
	{"rare_sohm_tree.h5", "data0", check_shared},
	{"rare_sohm_list.h5", "data0", check_shared},
	{"rare_sohm_tree.h5", "data0", count_shared},
	{"rare_sohm_list.h5", "data0", count_shared},
	{"rare_sohm_tree.h5", "data0", shared_extents},
	{"rare_sohm_list.h5", "data0", shared_extents},
	{"write_faults_persist.h5", "d0", free_bytes},
	{"write_faults_persist.h5", "d0", check_space},
	{"write_faults_persist.h5", "d0", space_extents},
	{"write_faults_persist.h5", "d0", walk_sections},
	/* changes of links: dense, messages of the header, symbol tables; from one to the other */
	{"group_write-indexed-60.h5", "g", insert_link},
	{"group_write-indexed-60.h5", "g", change_link},
	{"group_write-indexed-60.h5", "g", rename_link},
	{"group_write-indexed-60.h5", "g", remove_link},
	{"dense_write.h5", "links-tracked-60", free_links},
	{"dense_write-crossing-links.h5", "links-tracked-60", insert_link},
	{"group_write-indexed-7.h5", "g", rename_link},
	{"group_write-crossing-8.h5", "g", insert_link},
	{"group_write-old-60.h5", "g", insert_link},
	{"group_write-old-60.h5", "g", insert_external},
	{"group_write-old-7.h5", "g", insert_external},
	{"group_write-old-60.h5", "g", change_link},
	{"group_write-old-60.h5", "g", rename_link},
	{"group_write-old-60.h5", "g", remove_link},
	{"symbol_table_write-100.h5", "g", free_symbols},
	/* changes of attributes */
	{"attribute_write-v2-12.h5", "g", create_attribute},
	{"attribute_write-v2-12.h5", "g", replace_attribute},
	{"attribute_write-v2-12.h5", "g", update_attribute},
	{"attribute_write-v2-12.h5", "g", remove_attribute},
	{"attribute_write-v1-12.h5", "g", replace_attribute},
	{"dense_write.h5", "attributes-tracked-60", free_attributes},
	{"dense_write-crossing-attributes.h5", "attributes-unordered-60", create_attribute},
	{"rare_sohm_tree.h5", "data0", replace_attribute},
	{"rare_sohm_tree.h5", "data0", update_attribute},
	{"rare_sohm_tree.h5", "data0", remove_attribute},
	{"rare_sohm_list.h5", "data0", remove_attribute},
	{"rare_sohm_five.h5", "data1", remove_attribute},
	{"object_shared.h5", "data0", remove_attribute},
	{"object_shared.h5", "typed0", remove_attribute},
	{"rare_sohm_tree.h5", "data0", own_dataspace},
	{"rare_sohm_list.h5", "data0", own_datatype},
};

/* A file, and all of its bytes as they are. */
struct target {
	struct scratch scratch;
	uint64_t address;
	char link[64], attribute[64]; /* of the object */
	uint8_t *bytes;
	size_t size;
};

static uint8_t *bytes_of(struct target *t)
{
	uint8_t *bytes = malloc(t->size);

	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_file_read(t->scratch.file, 0, bytes, t->size));
	return bytes;
}

static void find_names(struct target *t)
{
	const struct h5_attribute *attribute;
	struct h5_attribute_walk attributes;
	const struct h5_object *object;
	const struct h5_link *link;
	struct h5_link_walk links;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(t->scratch.file, t->address, &ref, &object));
	SUCCEEDS(h5_attribute_begin(&attributes, t->scratch.file, object));
	if (h5_attribute_next(&attributes, &attribute) > 0)
		snprintf(t->attribute, sizeof t->attribute, "%s", attribute->name);
	h5_attribute_end(&attributes);
	if (object->kind == H5_OBJECT_GROUP) {
		SUCCEEDS(h5_link_begin(&links, t->scratch.file, object, H5_NAMES_SORTED));
		for (int n = 0; n < 3 && h5_link_next(&links, &link) > 0; n++)
			snprintf(t->link, sizeof t->link, "%.*s", (int)link->name_size, link->name);
		h5_link_end(&links);
	}
	h5_file_put(t->scratch.file, ref);
}

static void target_begin(struct target *t, const struct task *task)
{
	struct h5_file *file;

	memset(t, 0, sizeof *t);
	scratch_init(&t->scratch, task->file);
	if (task->run == shared_extents)
		share_no_attributes(&t->scratch);
	scratch_open(&t->scratch);
	file = t->scratch.file;
	SUCCEEDS(h5_path_find(file, h5_file_superblock(file)->root, task->path, strlen(task->path), &file,
			      &t->address));
	find_names(t);
	t->size = (size_t)h5_file_end(t->scratch.file);
	t->bytes = bytes_of(t);
	scratch_close(&t->scratch);
}

static void target_end(struct target *t)
{
	free(t->bytes);
	scratch_release(&t->scratch);
}

static struct h5_datatype *type;

static int run(const struct target *t, const struct task *task, uint32_t *found)
{
	struct scene s = {.file = t->scratch.file,
			  .address = t->address,
			  .type = type,
			  .link = t->link,
			  .attribute = t->attribute};
	int rc;

	h5_error_clear();
	rc = h5_object_get(s.file, s.address, &s.ref, &s.object);
	if (!rc)
		rc = task->run(&s);
	h5_file_put(s.file, s.ref);
	*found = s.found;
	return rc;
}

struct fault {
	const char *name;
	int error;
};

static const struct fault failed_read = {"failed read", -EIO},
			  failed_allocation = {"failed allocation", -ENOMEM};

/* The n-th fault. False: there was none. *found: what the task finds. */
static bool meet(struct target *t, const struct task *task, const struct fault *fault, unsigned long n,
		 uint32_t *found)
{
	uint32_t now, again;
	uint8_t *bytes;
	bool fired;
	int rc;

	scratch_open(&t->scratch);
	if (fault == &failed_read)
		fault_call_arm(CALL_FAILS, n, false);
	else
		fault_alloc_arm(n);
	fault_alloc_count(true);
	rc = run(t, task, &now);
	fault_alloc_count(false);
	fired = fault == &failed_read ? fault_call_disarm() : fault_alloc_disarm();
	if (rc ? !fired || rc != fault->error : fired && fault == &failed_read)
		ck_abort_msg("%s %s, task %d, %s %lu: %d (%s)", task->file, task->path, (int)(task - tasks),
			     fault->name, n, rc, h5_error_last()->text);
	if (rc) {
		bytes = bytes_of(t);
		ck_assert_mem_eq(bytes, t->bytes, t->size);
		free(bytes);
		SUCCEEDS(run(t, task, &again));
	} else {
		again = now;
	}
	ck_assert_uint_eq(again, fired ? *found : again);
	*found = again;
	if (h5_tx_is_writable(t->scratch.file))
		h5_tx_abandon(t->scratch.file);
	scratch_close(&t->scratch);
	return fired;
}

static void fail_everywhere(const struct task *task, const struct fault *fault)
{
	struct target t;
	uint32_t found;
	unsigned long n = 1, faults = 0;

	target_begin(&t, task);
	meet(&t, task, fault, ULONG_MAX, &found);
	for (; meet(&t, task, fault, n, &found); n++)
		faults++;
	ck_assert_uint_gt(faults, 0);
	target_end(&t);
}

START_TEST(reads_fail)
{
	type = h5_datatype_make_integer(4, true, H5_ORDER_LE);
	fail_everywhere(&tasks[_i], &failed_read);
	h5_datatype_free(type);
}
END_TEST

START_TEST(memory_is_short)
{
	type = h5_datatype_make_integer(4, true, H5_ORDER_LE);
	fail_everywhere(&tasks[_i], &failed_allocation);
	h5_datatype_free(type);
}
END_TEST

/* ---- indexes that do not fit ---- */

/* The dense links of a group. */
static struct h5_named_info links_of(struct h5_file *file, const char *name)
{
	struct h5_named_storage storage;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct h5_file *found;
	uint64_t address;

	SUCCEEDS(h5_path_find(file, h5_file_superblock(file)->root, name, strlen(name), &found, &address));
	SUCCEEDS(h5_object_get(file, address, &ref, &object));
	SUCCEEDS(h5_named_storage_find(file, object, H5_NAMED_LINK, &storage));
	h5_file_put(file, ref);
	ck_assert(storage.is_dense);
	return storage.info;
}

/* Changes a field of the header of a version 2 B-tree. */
static void patch_tree(struct h5_file *file, uint64_t address, unsigned at, unsigned width, int more)
{
	enum { SIZE = 38 };
	uint8_t bytes[SIZE];

	SUCCEEDS(h5_file_read(file, address, bytes, SIZE));
	ck_assert_mem_eq(bytes, "BTHD", 4);
	h5_uint_to(bytes + at, h5_uint_from(bytes + at, width) + (uint64_t)more, width);
	h5_uint_to(bytes + SIZE - 4, h5_lookup3(bytes, SIZE - 4, 0), 4);
	SUCCEEDS(h5_tx_patch(file, address, bytes, SIZE, H5_STAGE_HEAP));
	h5_tx_forget(file, address);
}

enum index_damage { NO_NAMES, FEWER_ORDERS, LARGER_RECORDS, LARGER_ORDERS, MORE_RECORDS, INDEX_DAMAGES };

static int remove_m50(struct h5_file *file, struct h5_named_info *info)
{
	return h5_dense_remove(file, info, H5_NAMED_LINK, "m50", 3);
}

/* One that has the number of creation of another one. */
static int insert_new(struct h5_file *file, struct h5_named_info *info)
{
	return h5_dense_insert(file, info, H5_NAMED_LINK, "new", 3, "message", 7, 5);
}

static int check_indexes(struct h5_file *file, struct h5_named_info *info)
{
	struct h5_named_storage storage;
	struct h5_damage damage = {0};
	int rc;

	h5_named_storage_dense(file, H5_NAMED_LINK, info, &storage);
	rc = h5_named_check(&storage, &damage);
	return rc ? rc : h5_damage_result(&damage);
}

static const struct {
	enum index_damage damage;
	int (*run)(struct h5_file *file, struct h5_named_info *info);
	int rc;
	const char *error;
} index_cases[] = {
	{INDEX_DAMAGES, check_indexes, 0, ""},
	{INDEX_DAMAGES, remove_m50, 0, ""},
	{NO_NAMES, remove_m50, -EUCLEAN, "dense storage: it has no index by name"},
	{NO_NAMES, insert_new, -EUCLEAN, "dense storage: it has no index by name"},
	{FEWER_ORDERS, remove_m50, -EUCLEAN, "dense storage: an index lacks a record"},
	{FEWER_ORDERS, insert_new, -EUCLEAN, "dense storage: the indexes disagree about creation order 5"},
	{FEWER_ORDERS, check_indexes, -EUCLEAN,
	 "version 2 B-tree: 10 records by creation order, but 60 by name"},
	{LARGER_RECORDS, remove_m50, -ENOTSUP, "dense storage: records of 12 bytes are not supported"},
	{LARGER_ORDERS, remove_m50, -ENOTSUP, "dense storage: records of 16 bytes are not supported"},
	{MORE_RECORDS, check_indexes, -EUCLEAN, "version 2 B-tree: 60 records, not 61"},
};
enum { INDEX_CASES = sizeof index_cases / sizeof *index_cases };

/* What fails leaves the storage as it is. */
START_TEST(indexes_do_not_fit)
{
	enum { RECORD_SIZE = 10, RECORDS = 26 };
	struct h5_named_info info, before;
	struct scratch scratch;

	scratch_init(&scratch, "dense_write.h5");
	scratch_open(&scratch);
	info = links_of(scratch.file, "links-tracked-60");
	switch (index_cases[_i].damage) {
	case NO_NAMES:
		info.name_index = H5_UNDEF;
		break;
	case FEWER_ORDERS:
		info.order_index = links_of(scratch.file, "links-tracked-10").order_index;
		break;
	case LARGER_RECORDS:
		patch_tree(scratch.file, info.name_index, RECORD_SIZE, 2, 1);
		break;
	case LARGER_ORDERS:
		patch_tree(scratch.file, info.order_index, RECORD_SIZE, 2, 1);
		break;
	case MORE_RECORDS:
		patch_tree(scratch.file, info.name_index, RECORDS, 8, 1);
		break;
	default:
		break;
	}
	before = info;
	h5_error_clear();
	ck_assert_int_eq(index_cases[_i].run(scratch.file, &info), index_cases[_i].rc);
	ck_assert_str_eq(h5_error_last()->text, index_cases[_i].error);
	if (index_cases[_i].rc)
		ck_assert(!h5_dense_has_moved(&before, &info));
	h5_tx_abandon(scratch.file);
	scratch_release(&scratch);
}
END_TEST

/* ---- records that say what is not so ---- */

/* A record of a message whose hash is another one; a type of messages that no index has. */
START_TEST(a_wrong_hash)
{
	enum { INDEX = 4 + 14, HEAD = 4, RECORD = 17, MOST = 1 << 12 };
	static const uint8_t id[H5_SHARED_ID_SIZE];
	struct h5_shared_table_message where;
	struct h5_damage damage = {0};
	struct h5_heap_object message;
	uint8_t bytes[MOST], number[8];
	struct scratch scratch;
	uint64_t index;
	size_t n;

	scratch_init(&scratch, "rare_sohm_list.h5");
	scratch_open(&scratch);
	SUCCEEDS(h5_extension_shared_table(scratch.file, &where));
	SUCCEEDS(h5_file_read(scratch.file, where.address + INDEX, number, sizeof number));
	index = h5_uint_from(number, 8);
	SUCCEEDS(h5_file_read(scratch.file, where.address + INDEX - 2, number, 2));
	n = HEAD + RECORD * (size_t)h5_uint_from(number, 2) + 4;
	ck_assert_uint_le(n, MOST);
	SUCCEEDS(h5_file_read(scratch.file, index, bytes, n));
	SUCCEEDS(h5_shared_table_check(scratch.file, &damage));
	ck_assert_int_eq(damage.first.code, 0);
	ck_assert_int_eq(h5_shared_table_get(scratch.file, H5_MSG_LAYOUT, id, &message), -EUCLEAN);
	ck_assert(!!strstr(h5_error_last()->text, "no heap for messages of type 0x8"));
	ck_assert_ptr_null(message.data);
	scratch_close(&scratch);
	ck_assert_uint_eq(bytes[HEAD + RECORD], 0);
	bytes[HEAD + RECORD + 1] ^= 1;
	put_block(&scratch, index, bytes, n);
	scratch_open(&scratch);
	SUCCEEDS(h5_shared_table_check(scratch.file, &damage));
	ck_assert_int_eq(damage.first.code, -EUCLEAN);
	ck_assert_str_eq(damage.first.text, "shared message record: wrong hash of its message");
	scratch_release(&scratch);
}
END_TEST

static int stop_at_second(void *arg, uint64_t address, uint64_t n)
{
	unsigned *count = arg;

	(void)address;
	(void)n;
	return ++*count == 2 ? 77 : 0;
}

/* Two managers of free space that have more bytes than can be counted, or just as many; one without a list.
 */
START_TEST(free_space_of_managers)
{
	enum { SIZE = 82, TOTAL = 6, LIST = 54 };
	struct h5_file_space_info info;
	struct h5_damage damage = {0};
	unsigned count = 0, with_list = 0;
	struct scratch scratch;
	uint8_t bytes[SIZE];
	uint64_t total;

	scratch_init(&scratch, "crash_persist.h5");
	scratch_open(&scratch);
	SUCCEEDS(h5_extension_file_space(scratch.file, &info));
	scratch_close(&scratch);
	for (unsigned i = 0; i < info.count; i++) {
		if (info.managers[i] == H5_UNDEF)
			continue;
		scratch_open(&scratch);
		SUCCEEDS(h5_file_read(scratch.file, info.managers[i], bytes, SIZE));
		scratch_close(&scratch);
		h5_uint_to(bytes + TOTAL, count ? (UINT64_C(1) << 63) - !_i : UINT64_C(1) << 63, 8);
		if (count)
			h5_uint_to(bytes + LIST, H5_UNDEF, 8);
		with_list += !count;
		count++;
		put_block(&scratch, info.managers[i], bytes, SIZE);
	}
	ck_assert_uint_eq(count, 2);
	scratch_open(&scratch);
	ck_assert_int_eq(h5_file_space_free(scratch.file, &total), _i ? -EUCLEAN : 0);
	if (!_i)
		ck_assert_uint_eq(total, UINT64_MAX);
	count = 0;
	ck_assert_int_eq(h5_file_space_extents(scratch.file, stop_at_second, &count), 77);
	ck_assert_uint_eq(count, 2);
	count = 2;
	SUCCEEDS(h5_file_space_extents(scratch.file, stop_at_second, &count));
	ck_assert_uint_eq(count, 2 + 2 + with_list);
	SUCCEEDS(h5_file_space_check(scratch.file, &damage));
	ck_assert_int_eq(damage.first.code, 0);
	scratch_release(&scratch);
}
END_TEST

enum { TASKS = sizeof tasks / sizeof *tasks };

UNIT_MAIN_LOOPS("object_faults", {reads_fail, TASKS}, {memory_is_short, TASKS},
		{indexes_do_not_fit, INDEX_CASES}, {a_wrong_hash, 1}, {free_space_of_managers, 2})

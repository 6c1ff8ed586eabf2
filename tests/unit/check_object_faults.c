/* Each read fails once, each of many allocations, and each question whether somebody still waits, wherever it
 * stands in walks over what objects consist of and in changes of them: the error is told, what fails changes
 * nothing, and the next try finds the same. */
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
	unsigned long questions; /* that are asked at least, one for each name of a walk */
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
	{"dense_write.h5", "links-tracked-60", link_extents, 1},
	{"dense_write.h5", "links-tracked-60", check_links, 60},
	{"dense_write.h5", "links-tracked-60", iterate_links, 60},
	{"dense_write.h5", "links-tracked-60", walk_links_by_name, 120},
	{"dense_write.h5", "links-tracked-60", walk_links_by_order, 120},
	{"dense_write.h5", "links-tracked-60", count_links, 1},
	{"dense_write.h5", "attributes-tracked-60", attribute_extents, 1},
	{"dense_write.h5", "attributes-tracked-60", check_attributes, 60},
	{"dense_write.h5", "attributes-unordered-10", walk_attributes, 20},
	{"dense_write.h5", "links-tracked-60", look_up_link, 1},
	{"dense_write.h5", "attributes-tracked-60", look_up_attribute, 1},
	{"object_shared.h5", "typed0", look_up_attribute, 1},
	{"rare_sohm_tree.h5", "data0", look_up_attribute, 1},
	{"group_write-indexed-7.h5", "g", look_up_link, 1},
	{"symbol_table_write-100.h5", "g", look_up_link, 1},
	{"symbol_table_write-100.h5", "g", walk_links_by_name, 1},
	{"symbol_table_write-100.h5", "g", walk_symbols, 1},
	{"symbol_table_write-100.h5", "g", count_links, 1},
	{"attribute_write-v2-12.h5", "g", walk_values, 12},
	{"attribute_write-v1-1.h5", "g", walk_values, 1},
	{"rare_sohm_tree.h5", "data0", walk_attributes, 1},
	{"rare_sohm_tree.h5", "data0", check_shared, 1},
	{"rare_sohm_list.h5", "data0", check_shared, 1},
	{"rare_sohm_tree.h5", "data0", count_shared, 1},
	{"rare_sohm_list.h5", "data0", count_shared, 1},
	{"rare_sohm_tree.h5", "data0", shared_extents, 1},
	{"rare_sohm_list.h5", "data0", shared_extents, 1},
	{"write_faults_persist.h5", "d0", free_bytes, 1},
	{"write_faults_persist.h5", "d0", check_space, 1},
	{"write_faults_persist.h5", "d0", space_extents, 1},
	{"write_faults_persist.h5", "d0", walk_sections, 1},
	/* changes of links: dense, messages of the header, symbol tables; from one to the other */
	{"group_write-indexed-60.h5", "g", insert_link, 1},
	{"group_write-indexed-60.h5", "g", change_link, 1},
	{"group_write-indexed-60.h5", "g", rename_link, 1},
	{"group_write-indexed-60.h5", "g", remove_link, 1},
	{"dense_write.h5", "links-tracked-60", free_links, 1},
	{"dense_write-crossing-links.h5", "links-tracked-60", insert_link, 1},
	{"group_write-indexed-7.h5", "g", rename_link, 1},
	{"group_write-crossing-8.h5", "g", insert_link, 1},
	{"group_write-old-60.h5", "g", insert_link, 1},
	{"group_write-old-60.h5", "g", insert_external, 1},
	{"group_write-old-7.h5", "g", insert_external, 1},
	{"group_write-old-60.h5", "g", change_link, 1},
	{"group_write-old-60.h5", "g", rename_link, 1},
	{"group_write-old-60.h5", "g", remove_link, 1},
	{"symbol_table_write-100.h5", "g", free_symbols, 1},
	/* changes of attributes */
	{"attribute_write-v2-12.h5", "g", create_attribute, 1},
	{"attribute_write-v2-12.h5", "g", replace_attribute, 1},
	{"attribute_write-v2-12.h5", "g", update_attribute, 1},
	{"attribute_write-v2-12.h5", "g", remove_attribute, 1},
	{"attribute_write-v1-12.h5", "g", replace_attribute, 1},
	{"dense_write.h5", "attributes-tracked-60", free_attributes, 1},
	{"dense_write-crossing-attributes.h5", "attributes-unordered-60", create_attribute, 1},
	{"rare_sohm_tree.h5", "data0", replace_attribute, 1},
	{"rare_sohm_tree.h5", "data0", update_attribute, 1},
	{"rare_sohm_tree.h5", "data0", remove_attribute, 1},
	{"rare_sohm_list.h5", "data0", remove_attribute, 1},
	{"rare_sohm_five.h5", "data1", remove_attribute, 1},
	{"object_shared.h5", "data0", remove_attribute, 1},
	{"object_shared.h5", "typed0", remove_attribute, 1},
	{"rare_sohm_tree.h5", "data0", own_dataspace, 1},
	{"rare_sohm_list.h5", "data0", own_datatype, 1},
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
			  failed_allocation = {"failed allocation", -ENOMEM},
			  interruption = {"interruption", -EINTR};

static unsigned long checks, interrupted; /* of h5_interrupt_check(): so far, and which one ends the task */

int __wrap_h5_interrupt_check(void);
int __wrap_h5_interrupt_check(void)
{
	return interrupted && ++checks == interrupted ? h5_fail(-EINTR, H5_UNDEF, "interrupted") : 0;
}

static void arm(const struct fault *fault, unsigned long n)
{
	checks = 0;
	if (fault == &interruption)
		interrupted = n;
	else if (fault == &failed_read)
		fault_call_arm(CALL_FAILS, n, false);
	else
		fault_alloc_arm(n);
	fault_alloc_count(true);
}

/* True: there was a fault. */
static bool disarm(const struct fault *fault)
{
	const bool fired = interrupted && checks >= interrupted;

	fault_alloc_count(false);
	interrupted = 0;
	return fault == &interruption  ? fired
	       : fault == &failed_read ? fault_call_disarm()
				       : fault_alloc_disarm();
}

/* The n-th fault. False: there was none. *found: what the task finds. */
static bool meet(struct target *t, const struct task *task, const struct fault *fault, unsigned long n,
		 uint32_t *found)
{
	uint32_t now, again;
	uint8_t *bytes;
	bool fired;
	int rc;

	scratch_open(&t->scratch);
	arm(fault, n);
	rc = run(t, task, &now);
	fired = disarm(fault);
	if (rc ? !fired || rc != fault->error : fired && fault != &failed_allocation)
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

enum { MANY = 60, STEP = 7 }; /* of so many interruptions all are tried; then each so many */

/* Returns how many faults there can be. */
static unsigned long fail_everywhere(const struct task *task, const struct fault *fault)
{
	struct target t;
	uint32_t found;
	unsigned long n = 1, faults = 0;

	target_begin(&t, task);
	meet(&t, task, fault, ULONG_MAX, &found);
	for (; meet(&t, task, fault, n, &found); n += fault == &interruption && n > MANY ? STEP : 1)
		faults = n;
	target_end(&t);
	return faults;
}

START_TEST(reads_fail)
{
	type = h5_datatype_make_integer(4, true, H5_ORDER_LE);
	ck_assert_uint_gt(fail_everywhere(&tasks[_i], &failed_read), 0);
	h5_datatype_free(type);
}
END_TEST

START_TEST(memory_is_short)
{
	type = h5_datatype_make_integer(4, true, H5_ORDER_LE);
	ck_assert_uint_gt(fail_everywhere(&tasks[_i], &failed_allocation), 0);
	h5_datatype_free(type);
}
END_TEST

/* What nobody wants any more ends at once. */
START_TEST(nobody_waits)
{
	type = h5_datatype_make_integer(4, true, H5_ORDER_LE);
	ck_assert_uint_ge(fail_everywhere(&tasks[_i], &interruption), tasks[_i].questions);
	h5_datatype_free(type);
}
END_TEST

enum { TASKS = sizeof tasks / sizeof *tasks };

UNIT_MAIN_LOOPS("object_faults", {reads_fail, TASKS}, {memory_is_short, TASKS}, {nobody_waits, TASKS})

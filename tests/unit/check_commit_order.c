/* The order in which a commit writes its cells (enum h5_stage): each row of the table makes changes, whose
 * cells were made in the wrong order, and what a kill leaves after each of them is looked at. */
#include "change/object_header_create.h"
#include "change/object_header_edit.h"
#include "crash_image.h"
#include "dataset/create.h"
#include "format/datatype_make.h"
#include "format/header_messages.h"
#include "group_model.h"
#include "object/attribute.h"
#include "object/attribute_write.h"
#include "object/global_heap.h"
#include "object/global_heap_write.h"
#include "object/heap_dead.h"
#include "object/named_record_write.h"

#include <stdio.h>
#include <string.h>

enum { NAMES = 12, ELEMENT = 16, ATTRIBUTES = 12 };

/* Two groups of a file, the root and one of its own storage, and datasets with a name in each. */
struct scene {
	struct group_model *m;
	struct fault_io record;
	uint64_t groups[2];
	uint64_t dataset, other;
	unsigned made;	     /* datasets with one name */
	unsigned extra;	     /* names that the dataset may have more than it counts */
	bool renews;	     /* groups of the old style become ones of the new style */
	uint64_t counter;    /* an object whose attributes know their order of creation */
	unsigned attributes; /* that it has */
	uint64_t collection; /* of the global heap, with the values of attributes */
};

typedef void check_state(const void *scene, struct h5_file *file);

/* ---- changes ---- */

static void insert(struct scene *s, unsigned group, uint64_t address, const char *prefix, unsigned i)
{
	char name[32];
	const struct h5_link link = {.address = address,
				     .name = name,
				     .name_size = (size_t)snprintf(name, sizeof name, "%s%u", prefix, i)};

	SUCCEEDS(h5_group_insert(s->m->file, s->groups[group], &link));
}

/* No group of the old style has such a link. */
static void insert_external(struct scene *s, unsigned group)
{
	group_insert_external(s->m->file, s->groups[group]);
}

static void remove_name(struct scene *s, unsigned group, const char *prefix, unsigned i)
{
	char name[32];
	const int n = snprintf(name, sizeof name, "%s%u", prefix, i);

	SUCCEEDS(h5_group_remove(s->m->file, s->groups[group], name, (size_t)n));
}

static void count(const struct scene *s, uint64_t address, int change)
{
	SUCCEEDS(h5_header_set_references(s->m->file, address,
					  scratch_references(s->m->file, address) + (uint32_t)change));
}

/* ---- the files ---- */

static uint64_t make_dataset(const struct scene *s)
{
	struct h5_datatype *type = h5_datatype_make_integer(4, true, H5_ORDER_LE);
	const struct h5_new_dataset how = {.type = type,
					   .space = {.kind = H5_SPACE_SIMPLE,
						     .rank = 1,
						     .dims = {3},
						     .max = {H5_UNLIMITED},
						     .has_max = true},
					   .layout = H5_LAYOUT_CHUNKED,
					   .chunk = {16}};
	uint64_t address;

	ck_assert_ptr_nonnull(type);
	SUCCEEDS(h5_dataset_create(s->m->file, &how, &address));
	h5_datatype_free(type);
	return address;
}

/* The names "d" and "e" of both datasets, one after the other, in both groups. */
static void make_names(struct scene *s)
{
	for (unsigned i = 0; i < NAMES; i++)
		for (unsigned group = 0; group < 2; group++) {
			insert(s, group, s->other, "xe", i);
			insert(s, group, s->dataset, "xd", i);
		}
	count(s, s->dataset, 2 * NAMES - 1);
	count(s, s->other, 2 * NAMES - 1);
}

static void begin(struct scene *s, const char *form, unsigned links)
{
	*s = (struct scene){.m = NULL};
	s->m = group_model_begin(form, links, &s->record);
	s->groups[0] = h5_file_superblock(s->m->file)->root;
	s->groups[1] = s->m->group;
	s->dataset = make_dataset(s);
	s->other = make_dataset(s);
	make_names(s);
	group_model_commit(s->m);
}

static void end(struct scene *s)
{
	group_model_end(s->m);
	fault_io_release(&s->record);
}

/* Looks at what a kill leaves, from the last commit on. */
static void commit(struct scene *s, struct crash_image *image, check_state *check)
{
	s->record.record = true;
	group_model_commit(s->m);
	ck_assert_uint_gt(crash_image_look(image, &s->record, check, s), 2);
}

/* ---- names ---- */

static unsigned names_in(struct h5_file *file, uint64_t address, uint64_t target)
{
	const struct h5_object *group;
	const struct h5_link *link;
	struct h5_link_walk walk;
	struct h5_lru_entry *ref;
	unsigned found = 0;
	int rc;

	SUCCEEDS(h5_object_get(file, address, &ref, &group));
	rc = h5_link_begin(&walk, file, group, H5_NAMES_SORTED);
	while (!rc && (rc = h5_link_next(&walk, &link)) > 0) {
		found += link->type == H5_LINK_HARD && link->address == target;
		rc = 0;
	}
	SUCCEEDS(rc);
	h5_link_end(&walk);
	h5_file_put(file, ref);
	return found;
}

/* An object counts all of its names. */
static void check_names(const void *scene, struct h5_file *file)
{
	const struct scene *s = scene;
	const uint64_t objects[] = {s->dataset, s->other};

	for (unsigned i = 0; i < 2; i++) {
		const unsigned names =
			names_in(file, s->groups[0], objects[i]) + names_in(file, s->groups[1], objects[i]);

		ck_assert_uint_gt(names, 0);
		ck_assert_uint_le(names, scratch_references(file, objects[i]) + (i ? 0 : s->extra));
	}
}

/* A name, before the count that rises in one cell with the dataspace. */
static void link_what_grows(struct scene *s, unsigned group, unsigned i)
{
	count(s, s->dataset, 1);
	if (s->renews && !i)
		insert_external(s, group);
	insert(s, group, s->dataset, i % 2 ? "new" : "xd0", i);
	SUCCEEDS(h5_header_update(s->m->file, s->dataset, H5_MSG_DATASPACE, scratch_add_row, s->m->file));
}

/* Each takes a name from the group, whose cell is there then, and another one after it. */
static void unlink_twice(struct scene *s, unsigned group, unsigned i)
{
	remove_name(s, !group, "xe", i);
	count(s, s->other, -1);
	remove_name(s, group, "xe", i);
	count(s, s->other, -1);
}

/* Only one name of the dataset stays, in the group. */
static void leave_one_name(struct scene *s, unsigned group)
{
	for (unsigned i = 0; i < NAMES; i++) {
		remove_name(s, !group, "xd", i);
		if (i)
			remove_name(s, group, "xd", i);
	}
	count(s, s->dataset, 1 - 2 * NAMES);
	group_model_commit(s->m);
	s->extra = 1;
}

/* It goes to the other group, after another name has gone from this one. */
static void move_after_unlink(struct scene *s, unsigned group, unsigned i)
{
	const unsigned from = i % 2 ? !group : group;

	remove_name(s, from, "xe", i);
	count(s, s->other, -1);
	if (s->renews && !i)
		insert_external(s, !from);
	insert(s, !from, s->dataset, "xd", 0);
	remove_name(s, from, "xd", 0);
}

static void insert_new(struct scene *s, unsigned group, unsigned i, unsigned names)
{
	for (unsigned k = 0; k < names; k++)
		insert(s, group, make_dataset(s), i % 2 ? "a" : "zz", s->made++);
}

/* The same with other names that come, before it to this group, so that the name goes in new space, or after
 * it to both. One that goes with them is counted until it has gone. */
static void move_among_new(struct scene *s, unsigned group, unsigned i)
{
	const unsigned from = i % 2 ? !group : group, names = i % 3 ? 1 : 12;

	if (i % 3 < 2)
		insert_new(s, from, i, names);
	remove_name(s, from, "xe", i);
	count(s, s->other, -1);
	h5_unit_begin(s->m->file);
	SUCCEEDS(h5_unit_leave(s->m->file, s->groups[from]));
	insert(s, !from, s->dataset, "xd", 0);
	remove_name(s, from, "xd", 0);
	SUCCEEDS(h5_unit_end(s->m->file, 0));
	if (i % 3 == 2) {
		insert_new(s, from, i, 12);
		insert_new(s, !from, i, 12);
	}
}

static const struct {
	void (*prepare)(struct scene *s, unsigned group);
	void (*change)(struct scene *s, unsigned group, unsigned i);
} programs[] = {{NULL, link_what_grows},
		{NULL, unlink_twice},
		{leave_one_name, move_after_unlink},
		{leave_one_name, move_among_new}};

static const struct {
	const char *form;
	unsigned links;
	bool renews;
} files[] = {{"old", 7, false},	 {"old", 60, false},	 {"old", 7, true},	 {"new", 0, false},
	     {"new", 60, false}, {"tracked", 60, false}, {"indexed", 60, false}, {"v108", 7, false}};

enum { PROGRAMS = sizeof programs / sizeof *programs, FILES = sizeof files / sizeof *files };

START_TEST(names)
{
	const unsigned program = (unsigned)_i % PROGRAMS, group = (unsigned)_i / PROGRAMS % 2,
		       file = (unsigned)_i / PROGRAMS / 2;
	struct crash_image image = {0};
	struct scene s;

	begin(&s, files[file].form, files[file].links);
	s.renews = files[file].renews;
	if (programs[program].prepare)
		programs[program].prepare(&s, group);
	crash_image_load(&image, s.m->scratch.path);
	for (unsigned i = 0; i < NAMES / 2; i++) {
		programs[program].change(&s, group, i);
		commit(&s, &image, check_names);
	}
	end(&s);
	free(image.data);
}
END_TEST

/* Long names fill large blocks of a heap that has checksums: such a block moves with each name that comes,
 * and is there before the name. */
START_TEST(large_blocks)
{
	enum { LONG = 1000, COMMITS = 8, TOGETHER = 6 };
	struct crash_image image = {0};
	char name[LONG];
	struct scene s;

	begin(&s, "new", 60);
	memset(name, 'n', sizeof name);
	crash_image_load(&image, s.m->scratch.path);
	for (unsigned i = 0; i < COMMITS * TOGETHER; i++) {
		const struct h5_link link = {.address = s.other, .name = name, .name_size = sizeof name - i};

		count(&s, s.other, 1);
		SUCCEEDS(h5_group_insert(s.m->file, s.groups[1], &link));
		if (i % TOGETHER == TOGETHER - 1)
			commit(&s, &image, check_names);
	}
	end(&s);
	free(image.data);
}
END_TEST

/* ---- values of attributes ---- */

static void set_value(const struct scene *s, struct h5_global_heap_writer *heap, uint64_t object)
{
	struct h5_datatype *type = h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8);
	const struct h5_dataspace space = {.kind = H5_SPACE_SCALAR, .elements = 1};
	uint8_t element[ELEMENT];
	uint64_t address;
	uint32_t index;

	ck_assert_ptr_nonnull(type);
	SUCCEEDS(h5_global_heap_put(heap, "text", 4, &address, &index));
	h5_uint_to(element, 4, 4);
	h5_uint_to(element + 4, address, 8);
	h5_uint_to(element + 12, index, 4);
	SUCCEEDS(h5_attribute_create(s->m->file, object, "s", type, &space, element));
	h5_datatype_free(type);
}

/* False: the object has no such attribute. */
static bool find_value(struct h5_file *file, uint64_t object, uint64_t *address, uint32_t *index)
{
	struct h5_attribute attribute;
	const struct h5_object *found;
	struct h5_lru_entry *ref;
	int rc;

	SUCCEEDS(h5_object_get(file, object, &ref, &found));
	rc = h5_attribute_lookup(file, found, "s", &attribute);
	h5_file_put(file, ref);
	if (rc == -ENODATA)
		return false;
	SUCCEEDS(rc);
	ck_assert_uint_eq(attribute.size, ELEMENT);
	*address = h5_uint_from(attribute.data + 4, 8);
	*index = (uint32_t)h5_uint_from(attribute.data + 12, 4);
	h5_attribute_release(&attribute);
	return true;
}

static void check_values(const void *scene, struct h5_file *file)
{
	const struct scene *s = scene;
	const uint64_t objects[] = {s->dataset, s->other, s->groups[1]};

	for (unsigned i = 0; i < 3; i++) {
		struct h5_lru_entry *ref;
		const uint8_t *data;
		uint64_t address;
		uint32_t index;
		size_t n;

		if (!find_value(file, objects[i], &address, &index))
			continue;
		SUCCEEDS(h5_global_heap_get(file, address, index, &ref, &data, &n));
		ck_assert_mem_eq(data, "text", 4);
		h5_file_put(file, ref);
	}
}

static void remove_value(struct scene *s, uint64_t object)
{
	struct h5_heap_dead dead;
	uint32_t index;

	ck_assert(find_value(s->m->file, object, &s->collection, &index));
	SUCCEEDS(h5_attribute_remove(s->m->file, object, "s"));
	h5_heap_dead_init(&dead, s->m->file);
	SUCCEEDS(h5_heap_dead_add(&dead, s->collection, index));
	SUCCEEDS(h5_heap_dead_give_up(&dead, h5_tx_free_extent, s->m->file));
	h5_heap_dead_release(&dead);
}

static int count_object(void *found, const struct h5_global_heap_object *object)
{
	(void)object;
	++*(unsigned *)found;
	return 0;
}

/* The collection has one value left. */
static void check_one_value(const struct scene *s)
{
	unsigned left = 0;
	uint64_t size;

	SUCCEEDS(h5_global_heap_each(s->m->file, s->collection, count_object, &left, &size));
	ck_assert_uint_eq(left, 1);
}

/* The heap changes with the first value that goes. The header that the last one goes from counts a name less,
 * in the same cell. */
START_TEST(values)
{
	struct h5_global_heap_writer heap;
	struct crash_image image = {0};
	struct scene s;

	begin(&s, "new", 60);
	h5_global_heap_writer_init(&heap, s.m->file);
	set_value(&s, &heap, s.other);
	set_value(&s, &heap, s.dataset);
	set_value(&s, &heap, s.groups[1]);
	h5_global_heap_writer_release(&heap);
	group_model_commit(s.m);
	crash_image_load(&image, s.m->scratch.path);
	remove_value(&s, s.other);
	remove_value(&s, s.dataset);
	remove_name(&s, 1, "xd", 0);
	count(&s, s.dataset, -1);
	commit(&s, &image, check_values);
	check_one_value(&s);
	end(&s);
	free(image.data);
}
END_TEST

/* The header of a group that an object leaves comes late, and all the same before the heap, though its cell
 * begins anew with each change. */
START_TEST(values_of_a_group_that_is_left)
{
	struct h5_global_heap_writer heap;
	struct crash_image image = {0};
	struct scene s;

	begin(&s, "tracked", 60);
	h5_global_heap_writer_init(&heap, s.m->file);
	set_value(&s, &heap, s.other);
	set_value(&s, &heap, s.groups[1]);
	h5_global_heap_writer_release(&heap);
	group_model_commit(s.m);
	crash_image_load(&image, s.m->scratch.path);
	h5_unit_begin(s.m->file);
	SUCCEEDS(h5_unit_leave(s.m->file, s.groups[1]));
	remove_value(&s, s.groups[1]);
	SUCCEEDS(h5_unit_end(s.m->file, 0));
	insert(&s, 1, make_dataset(&s), "new", 0);
	commit(&s, &image, check_values);
	check_one_value(&s);
	end(&s);
	free(image.data);
}
END_TEST

/* ---- the order of creation of attributes ---- */

static int name_attribute(unsigned i, char name[16])
{
	return snprintf(name, 16, "a%u", i);
}

static void add_number(struct scene *s)
{
	struct h5_datatype *type = h5_datatype_make_integer(1, true, H5_ORDER_LE);
	const struct h5_dataspace space = {.kind = H5_SPACE_SCALAR, .elements = 1};
	char name[16];

	ck_assert_ptr_nonnull(type);
	name_attribute(s->attributes++, name);
	SUCCEEDS(h5_attribute_create(s->m->file, s->counter, name, type, &space, "1"));
	h5_datatype_free(type);
}

/* The next attribute will have another order than all that are there. */
static void check_orders(const void *scene, struct h5_file *file)
{
	const struct scene *s = scene;
	struct h5_named_storage storage;
	const struct h5_object *object;
	struct h5_named_entry entry;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(file, s->counter, &ref, &object));
	SUCCEEDS(h5_named_storage_find(file, object, H5_NAMED_ATTRIBUTE, &storage));
	ck_assert(storage.is_dense);
	for (unsigned i = 0; i < s->attributes; i++) {
		char name[16];
		const int n = name_attribute(i, name);
		int rc =
			h5_named_index_find(file, H5_NAMED_ATTRIBUTE, &storage.info, name, (size_t)n, &entry);

		ck_assert(!rc || (rc == -ENOENT && i == s->attributes - 1));
		ck_assert(rc || entry.order < (int64_t)storage.info.next_order);
	}
	h5_file_put(file, ref);
}

START_TEST(orders)
{
	const struct h5_new_header how = {.tracks_order = true, .room = 100};
	struct crash_image image = {0};
	struct scene s;

	begin(&s, "new", 7);
	SUCCEEDS(h5_header_create(s.m->file, NULL, 0, &how, &s.counter));
	insert(&s, 0, s.counter, "counter", 0);
	for (unsigned i = 0; i < ATTRIBUTES; i++)
		add_number(&s);
	group_model_commit(s.m);
	crash_image_load(&image, s.m->scratch.path);
	add_number(&s);
	commit(&s, &image, check_orders);
	end(&s);
	free(image.data);
}
END_TEST

static void set_number(const struct scene *s, unsigned i, unsigned size, const char *value)
{
	struct h5_datatype *type = h5_datatype_make_integer(size, true, H5_ORDER_LE);
	const struct h5_dataspace space = {.kind = H5_SPACE_SCALAR, .elements = 1};
	char name[16];

	ck_assert_ptr_nonnull(type);
	name_attribute(i, name);
	SUCCEEDS(h5_attribute_replace(s->m->file, s->counter, name, type, &space, value));
	h5_datatype_free(type);
}

/* Each is as it was, or as it will be. */
static void check_numbers(const void *scene, struct h5_file *file)
{
	const struct scene *s = scene;
	const struct h5_object *object;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(file, s->counter, &ref, &object));
	for (unsigned i = 0; i < s->attributes; i++) {
		struct h5_attribute attribute;
		char name[16];

		name_attribute(i, name);
		SUCCEEDS(h5_attribute_lookup(file, object, name, &attribute));
		if (attribute.size == 1)
			ck_assert_mem_eq(attribute.data, "1", 1);
		else
			ck_assert_mem_eq(attribute.data, "12345678", attribute.size);
		h5_attribute_release(&attribute);
	}
	h5_file_put(file, ref);
}

/* A larger value is another object of the heap, to which the record leads that was there. */
START_TEST(larger_numbers)
{
	const struct h5_new_header how = {.room = 100};
	struct crash_image image = {0};
	struct scene s;

	begin(&s, "new", 7);
	SUCCEEDS(h5_header_create(s.m->file, NULL, 0, &how, &s.counter));
	insert(&s, 0, s.counter, "counter", 0);
	for (unsigned i = 0; i < ATTRIBUTES; i++)
		add_number(&s);
	group_model_commit(s.m);
	crash_image_load(&image, s.m->scratch.path);
	for (unsigned i = 0; i < 3; i++) {
		set_number(&s, i, 4u << i % 2, "12345678");
		set_number(&s, 8 - i, 8, "12345678");
		commit(&s, &image, check_numbers);
	}
	end(&s);
	free(image.data);
}
END_TEST

/* ---- messages of version 1 headers ---- */

static void check_messages(const void *scene, struct h5_file *file)
{
	const struct scene *s = scene;
	struct h5_header header;
	unsigned found = 0;

	SUCCEEDS(h5_header_load(file, s->counter, &header));
	ck_assert_uint_eq(header.prefix.version, 1);
	for (unsigned i = 0; i < header.chunk_count; i++) {
		struct h5_reader r = h5_header_chunk_messages(file, &header.prefix, &header.chunks[i]);
		struct h5_message message;

		while (h5_object_header_next(&r, &header.prefix, &message) > 0)
			found++;
	}
	ck_assert_uint_le(found, header.prefix.messages);
	h5_header_release(&header);
}

static void insert_comment(const struct scene *s, uint8_t value, size_t n)
{
	uint8_t body[64];
	const struct h5_new_message comment = {.type = H5_MSG_COMMENT, .body = body, .size = n};

	memset(body, value, n);
	SUCCEEDS(h5_header_insert(s->m->file, s->counter, &comment));
}

static void remove_comment(const struct scene *s)
{
	struct h5_header header;

	SUCCEEDS(h5_header_load(s->m->file, s->counter, &header));
	SUCCEEDS(h5_header_remove(s->m->file, s->counter, h5_header_find(&header, H5_MSG_COMMENT)));
	h5_header_release(&header);
}

/* The cell of the large message is there before some small ones take its place. */
START_TEST(messages)
{
	struct crash_image image = {0};
	struct scene s;

	begin(&s, "old", 7);
	s.counter = s.m->targets[0];
	insert_comment(&s, 1, 64);
	group_model_commit(s.m);
	crash_image_load(&image, s.m->scratch.path);
	remove_comment(&s);
	insert_comment(&s, 2, 64);
	remove_comment(&s);
	for (uint8_t i = 0; i < 3; i++)
		insert_comment(&s, i, 8);
	commit(&s, &image, check_messages);
	end(&s);
	free(image.data);
}
END_TEST

/* The messages of a dataset that gets a pipeline are laid anew, and are more than before. */
START_TEST(definitions)
{
	struct h5_datatype *type = h5_datatype_make_integer(4, true, H5_ORDER_LE);
	struct h5_new_dataset how = {.type = type,
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {3}, .max = {3}},
				     .layout = H5_LAYOUT_CHUNKED,
				     .chunk = {3}};
	struct crash_image image = {0};
	struct scene s;

	begin(&s, "old", 7);
	s.counter = s.m->targets[0];
	crash_image_load(&image, s.m->scratch.path);
	ck_assert_ptr_nonnull(type);
	SUCCEEDS(h5_filter_list_parse("deflate(1)", 10, &how.filters));
	SUCCEEDS(h5_dataset_define(s.m->file, s.counter, &how));
	commit(&s, &image, check_messages);
	h5_datatype_free(type);
	end(&s);
	free(image.data);
}
END_TEST

UNIT_MAIN_LOOPS("order of a commit", {names, PROGRAMS * 2 * FILES}, {large_blocks, 1}, {values, 1},
		{values_of_a_group_that_is_left, 1}, {orders, 1}, {larger_numbers, 1}, {messages, 1},
		{definitions, 1})

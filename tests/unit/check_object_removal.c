/* Objects are named and removed: all space that only they use is given up, and nothing else. */
#include "base/error.h"
#include "base/seen.h"
#include "change/object_header_insert.h"
#include "change/open.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/removal.h"
#include "dataset/values.h"
#include "dataset/writer.h"
#include "format/shared_message.h"
#include "object/attribute_write.h"
#include "object/global_heap_write.h"
#include "object/group.h"
#include "object/numpy_parse.h"
#include "object/own_message.h"
#include "object/shared_table.h"
#include "removal_scene.h"
#include "store/extension.h"

#include <stdio.h>
#include <string.h>

/* ---- names ---- */

START_TEST(names_are_counted)
{
	struct removal_scene s;
	struct h5_file *file;
	uint64_t address;
	bool last;

	removal_begin(&s, removal_versions[_i]);
	file = s.scratch.file;
	address = removal_find(&s, "0/contiguous");
	SUCCEEDS(h5_object_add_name(file, address));
	SUCCEEDS(h5_object_add_name(file, address));
	ck_assert_int_eq(h5_object_remove(file, address), -EBUSY);
	SUCCEEDS(h5_object_drop_name(file, address, &last));
	ck_assert(!last);
	SUCCEEDS(h5_object_drop_name(file, address, &last));
	ck_assert(!last);
	SUCCEEDS(h5_object_drop_name(file, address, &last));
	ck_assert(last);
	SUCCEEDS(h5_object_remove(file, address));
	ck_assert_int_eq(h5_object_remove(file, h5_file_superblock(file)->root), -EBUSY);
	ck_assert_int_eq(h5_object_remove(file, removal_find(&s, "0")), -ENOTEMPTY);
	removal_end(&s);
}
END_TEST

/* No more than 2^32-1 names can be counted. */
START_TEST(too_many_names)
{
	struct removal_scene s;
	struct h5_file *file;
	uint64_t address;

	removal_begin(&s, removal_versions[_i]);
	file = s.scratch.file;
	address = removal_find(&s, "0/contiguous");
	SUCCEEDS(h5_header_set_references(file, address, UINT32_MAX - 1));
	SUCCEEDS(h5_object_add_name(file, address));
	ck_assert_uint_eq(scratch_references(file, address), UINT32_MAX);
	ck_assert_int_eq(h5_object_add_name(file, address), -EMLINK);
	ck_assert_str_eq(h5_error_last()->text, "object header: no more names can be counted");
	ck_assert_uint_eq(scratch_references(file, address), UINT32_MAX);
	removal_end(&s);
}
END_TEST

/* A count of 0 is damage: the object has the name by which it was found, so the next one is its second. It
 * may have other names, so it is not removed with one that goes. */
START_TEST(names_that_were_not_counted)
{
	enum { COUNT_AT = 4 }; /* in an object header of version 1 */
	struct removal_scene s;
	struct h5_file *file;
	uint8_t none[4] = {0};
	uint64_t address;
	bool last = true;

	removal_begin(&s, 0);
	file = s.scratch.file;
	address = removal_find(&s, "0/contiguous");
	ck_assert_uint_eq(scratch_references(file, address), 1);
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_tx_patch(file, address + COUNT_AT, none, 4, H5_STAGE_OBJECT)));
	h5_tx_forget(file, address);
	ck_assert_uint_eq(scratch_references(file, address), 0);
	SUCCEEDS(h5_object_drop_name(file, address, &last));
	ck_assert(!last);
	ck_assert_uint_eq(scratch_references(file, address), 0);
	SUCCEEDS(h5_object_add_name(file, address));
	ck_assert_uint_eq(scratch_references(file, address), 2);
	removal_end(&s);
}
END_TEST

/* ---- extents ---- */

START_TEST(extents_are_what_libhdf5_frees)
{
	struct h5_extents met = {0};
	struct removal_scene s;

	removal_begin(&s, removal_versions[_i]);
	for (unsigned i = 0; i < REMOVAL_OBJECTS_MAX; i++) {
		const struct removable *object = &s.objects[i];
		struct removal_sum sum = {0, &met};

		if (!*object->path)
			continue;
		SUCCEEDS(h5_object_extents(s.scratch.file, removal_find(&s, object->path), removal_add_extent,
					   &sum));
		ck_assert_msg(sum.bytes == object->bytes, "%s: %ju bytes, not %ju", object->path,
			      (uintmax_t)sum.bytes, (uintmax_t)object->bytes);
	}
	ck_assert_int_eq(h5_object_extents(s.scratch.file, removal_find(&s, "0"), removal_stop, NULL), 77);
	h5_extents_release(&met);
	removal_end(&s);
}
END_TEST

/* ---- files with rare structures ---- */

static const char *const rare[] = {
	"object_filtered.h5",
	"object_latest.h5",
	"object_narrow.h5",
	"object_old.h5",
	"object_shared.h5",
	"rare_heap_ids_42.h5",
	"rare_heaps_24_deflate.h5",
	"rare_heaps_88_two.h5",
	"rare_layout4_48.h5",
	"rare_library_22old.h5",
	"rare_library_84latest.h5",
	"rare_sohm_five.h5",
	"structured_btree_four_filtered.h5",
	"structured_extensible_four_filtered.h5",
	"structured_fixed_now_filtered.h5",
};
enum { RARE = sizeof rare / sizeof *rare };

/* Visits the object and all below it. The tests' groups are not deep. */
static void visit_all(struct h5_file *file, uint64_t address, struct h5_seen *seen, struct removal_sum *sum)
{
	const struct h5_object *object;
	const struct h5_link *link;
	struct h5_link_walk walk;
	struct h5_lru_entry *ref;
	int rc = h5_seen_add(seen, address);

	if (rc == -EEXIST)
		return;
	SUCCEEDS(h5_object_extents(file, address, removal_add_extent, sum));
	SUCCEEDS(h5_object_get(file, address, &ref, &object));
	if (object->kind == H5_OBJECT_GROUP) {
		SUCCEEDS(h5_link_begin(&walk, file, object, H5_NAMES_SORTED));
		while ((rc = h5_link_next(&walk, &link)) > 0)
			if (link->type == H5_LINK_HARD)
				visit_all(file, link->address, seen, sum);
		ck_assert_int_eq(rc, 0);
		h5_link_end(&walk);
	}
	h5_file_put(file, ref);
}

/* All objects together have no byte twice. */
START_TEST(no_byte_is_of_two_objects)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 22, .chunk_cache = 1 << 20};
	struct h5_extents met = {0};
	struct removal_sum sum = {0, &met};
	struct h5_seen seen = {0};
	struct h5_file_set *set;
	struct h5_file *file;
	char path[512];

	scratch_fixture(rare[_i], path);
	SUCCEEDS(h5_open_file(path, &options, &set, NULL));
	file = h5_file_set_root(set);
	visit_all(file, h5_file_superblock(file)->root, &seen, &sum);
	ck_assert_uint_gt(sum.bytes, 0);
	h5_seen_release(&seen);
	h5_extents_release(&met);
	h5_file_set_close(set);
}
END_TEST

/* ---- removal ---- */

/* What is left is as it was, and libhdf5 goes on with the file. */
#define JUDGE                                                                                                \
	"/usr/bin/python3 -c \""                                                                             \
	"import h5py, numpy, sys\n"                                                                          \
	"with h5py.File(sys.argv[1], 'r+') as f:\n"                                                          \
	"    left = [g + '/' + name for g in f for name in f[g]]\n"                                          \
	"    assert sorted(n.split('/')[1] for n in left) == sys.argv[2].split(), left\n"                    \
	"    for name in left:\n"                                                                            \
	"        if 'keep' in name: assert (f[name][()] == numpy.arange(100)).all()\n"                       \
	"        f[name + ' too'] = f[name]\n"                                                               \
	"        f[name + ' more'] = 1\n"                                                                    \
	"        del f[name], f[name + ' too']\n"                                                            \
	"\" %s '%s'"

static void judge(struct removal_scene *s, bool by_all, const char *left)
{
	SUCCEEDS(h5_tx_commit(s->scratch.file));
	scratch_close(&s->scratch);
	if (by_all)
		scratch_judge(JUDGE, s->scratch.path, left);
	else
		scratch_own_judge(JUDGE, s->scratch.path, left);
}

START_TEST(objects_go)
{
	struct removal_scene s;

	removal_begin(&s, removal_versions[_i]);
	for (unsigned i = 0; i < s.count; i++)
		SUCCEEDS(removal_remove(&s, s.objects[i].path));
	judge(&s, true, "full full-of-many keep keep-chunks");
	removal_end(&s);
}
END_TEST

START_TEST(space_is_used_again)
{
	struct h5_extents met = {0};
	struct removal_sum sum = {0, &met};
	struct removal_scene s;

	removal_begin(&s, removal_versions[_i]);
	for (unsigned i = 0; i < s.count; i++) {
		SUCCEEDS(h5_object_extents(s.scratch.file, removal_find(&s, s.objects[i].path),
					   removal_add_extent, &sum));
		SUCCEEDS(removal_remove(&s, s.objects[i].path));
	}
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	removal_assert_is_free(&s, &met);
	h5_extents_release(&met);
	removal_end(&s);
}
END_TEST

/* In the message of a virtual layout the heap's address becomes undefined. */
static int leave_heap(const void *arg, uint8_t *body, size_t n)
{
	enum { HEAP_AT = 2 };

	(void)arg;
	ck_assert_uint_eq(n, HEAP_AT + 8 + 4);
	memset(body + HEAP_AT, 0xff, 8);
	return 0;
}

/* True: values of the object go with it. */
static bool has_values(struct h5_file *file, uint64_t address)
{
	const struct h5_object *object;
	struct h5_heap_dead dead;
	struct h5_lru_entry *ref;
	bool empty;

	h5_heap_dead_init(&dead, file);
	SUCCEEDS(h5_object_get(file, address, &ref, &object));
	SUCCEEDS(h5_object_find_values(file, object, &dead));
	h5_file_put(file, ref);
	empty = h5_heap_dead_is_empty(&dead);
	h5_heap_dead_release(&dead);
	return !empty;
}

/* A virtual dataset that leads to no mappings owns none. */
START_TEST(mappings_that_are_nowhere)
{
	struct removal_scene s;
	struct h5_file *file;
	uint64_t address = H5_UNDEF;

	removal_begin(&s, 3);
	file = s.scratch.file;
	for (unsigned i = 0; i < s.count; i++)
		if (strstr(s.objects[i].path, "/virtual"))
			address = removal_find(&s, s.objects[i].path);
	ck_assert_uint_ne(address, H5_UNDEF);
	ck_assert(has_values(file, address));
	SUCCEEDS(h5_own_message_update(file, address, H5_MSG_LAYOUT, leave_heap, NULL));
	h5_tx_forget(file, address);
	ck_assert(!has_values(file, address));
	SUCCEEDS(h5_object_remove(file, address));
	removal_end(&s);
}
END_TEST

/* ---- committed datatypes ---- */

/* The committed datatype of a dataset. */
static uint64_t committed_type(const struct removal_scene *s, const char *path)
{
	struct h5_shared_message shared;
	struct h5_reader r;
	size_t n;
	uint8_t *body = scratch_message(&s->scratch, removal_find(s, path), H5_MSG_DATATYPE, &n);

	r = h5_file_reader(s->scratch.file, body, n, 0);
	SUCCEEDS(h5_shared_message_decode(&r, &shared));
	free(body);
	return shared.address;
}

/* libhdf5 finds the count that is expected, and removes the datatype with its last use. */
#define JUDGE_TYPES                                                                                          \
	"/usr/bin/python3 -c \""                                                                             \
	"import h5py, sys\n"                                                                                 \
	"with h5py.File(sys.argv[1], 'r+') as f:\n"                                                          \
	"    rc = lambda: h5py.h5o.get_info(f['types/kept'].id).rc\n"                                        \
	"    assert rc() == 1, rc()\n"                                                                       \
	"    f['0/new'] = 1\n"                                                                               \
	"    f['0'].attrs.create('a', 1, dtype=f['types/kept'])\n"                                           \
	"    assert rc() == 2, rc()\n"                                                                       \
	"    del f['0'], f['types/kept']\n"                                                                  \
	"\" %s"

START_TEST(uses_of_types_are_counted)
{
	struct removal_scene s;
	struct h5_file *file;
	struct h5_extents met = {0};
	struct removal_sum sum = {0, &met};
	uint64_t type;

	removal_open(&s, "types-", removal_versions[_i]);
	file = s.scratch.file;
	ck_assert_uint_eq(removal_references(&s, "types/kept"), 27);
	SUCCEEDS(h5_attribute_remove(file, removal_find(&s, "0/few"), "own"));
	ck_assert_uint_eq(removal_references(&s, "types/kept"), 27);
	SUCCEEDS(h5_attribute_remove(file, removal_find(&s, "0/few"), "attribute 1"));
	SUCCEEDS(h5_attribute_remove(file, removal_find(&s, "0/many"), "attribute 11"));
	ck_assert_uint_eq(removal_references(&s, "types/kept"), 25);
	SUCCEEDS(removal_remove(&s, "0/few"));
	ck_assert_uint_eq(removal_references(&s, "types/kept"), 23);
	SUCCEEDS(removal_remove(&s, "0/many"));
	ck_assert_uint_eq(removal_references(&s, "types/kept"), 4);
	SUCCEEDS(removal_remove(&s, "0/dataset"));
	ck_assert_uint_eq(removal_references(&s, "types/kept"), 2);
	type = committed_type(&s, "0/user");
	SUCCEEDS(h5_object_extents(file, type, removal_add_extent, &sum));
	SUCCEEDS(h5_tx_commit(file));
	SUCCEEDS(removal_remove(&s, "0/user"));
	ck_assert_uint_eq(removal_references(&s, "types/kept"), 1);
	SUCCEEDS(h5_tx_commit(file));
	removal_assert_is_free(&s, &met);
	h5_extents_release(&met);
	scratch_close(&s.scratch);
	scratch_judge(JUDGE_TYPES, s.scratch.path);
	removal_end(&s);
}
END_TEST

/* A count that is too low for the uses that go: the datatype stays. */
START_TEST(low_counts)
{
	struct removal_scene s;
	struct h5_file *file;
	uint64_t kept;

	removal_open(&s, "types-", removal_versions[_i]);
	file = s.scratch.file;
	kept = removal_find(&s, "types/kept");
	SUCCEEDS(h5_header_set_references(file, kept, 2));
	SUCCEEDS(removal_remove(&s, "0/few"));
	ck_assert_uint_eq(removal_references(&s, "types/kept"), 2);
	SUCCEEDS(removal_remove(&s, "0/dataset"));
	ck_assert_int_eq(h5_object_extents(file, kept, removal_stop, NULL), 77);
	SUCCEEDS(h5_header_set_references(file, kept, 1));
	SUCCEEDS(removal_remove(&s, "0/user"));
	SUCCEEDS(removal_remove(&s, "0/many"));
	SUCCEEDS(h5_tx_commit(file));
	removal_end(&s);
}
END_TEST

/* ---- shared messages ---- */

/* The address of the table of shared messages. *messages: how many messages its indexes have. */
static uint64_t find_table(const struct removal_scene *s, unsigned *messages)
{
	struct h5_shared_table_message where;
	struct h5_shared_table table;
	struct h5_reader r;
	uint8_t bytes[256];
	size_t n;

	SUCCEEDS(h5_extension_shared_table(s->scratch.file, &where));
	n = h5_shared_table_size(where.indexes, 8);
	SUCCEEDS(h5_file_read(s->scratch.file, where.address, bytes, n));
	r = h5_file_reader(s->scratch.file, bytes, n, where.address);
	SUCCEEDS(h5_shared_table_decode(&r, where.indexes, &table));
	*messages = 0;
	for (unsigned i = 0; i < table.count; i++)
		*messages += table.indexes[i].messages;
	return where.address;
}

#define JUDGE_SHARED                                                                                         \
	"/usr/bin/python3 -c \""                                                                             \
	"import h5py, sys\n"                                                                                 \
	"with h5py.File(sys.argv[1], 'r') as f:\n"                                                           \
	"    assert len(f) == int(sys.argv[2]), list(f)\n"                                                   \
	"    for d in f.values():\n"                                                                         \
	"        d[()], [d.attrs[a] for a in d.attrs]\n"                                                     \
	"\" %s %u"

/* The superblock's extension leads to the table where it is then. */
START_TEST(a_table_of_shared_messages_moves)
{
	struct h5_damage damage = {0};
	unsigned before, messages, left = 12;
	struct removal_scene s = {0};
	uint64_t at, now;

	scratch_init(&s.scratch, _i ? "rare_sohm_tree.h5" : "rare_sohm_list.h5");
	scratch_open(&s.scratch);
	at = removal_put_table_across_pages(&s);
	scratch_close(&s.scratch);
	scratch_open(&s.scratch);
	ck_assert_uint_eq(find_table(&s, &before), at);
	do {
		char name[24];

		ck_assert_uint_gt(left, 1);
		snprintf(name, sizeof name, "./data%u", --left);
		SUCCEEDS(removal_remove(&s, name));
		now = find_table(&s, &messages);
	} while (now == at);
	ck_assert_uint_lt(messages, before);
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	scratch_close(&s.scratch);
	scratch_open(&s.scratch);
	ck_assert_uint_eq(find_table(&s, &before), now);
	ck_assert_uint_eq(before, messages);
	SUCCEEDS(h5_shared_table_check(s.scratch.file, &damage));
	SUCCEEDS(h5_damage_result(&damage));
	scratch_close(&s.scratch);
	scratch_judge(JUDGE_SHARED, s.scratch.path, left);
	removal_end(&s);
}
END_TEST

/* A datatype that an attribute of its own uses, of which its count does not know. It goes once. */
START_TEST(a_type_that_uses_itself)
{
	const struct h5_message *attribute;
	struct h5_header header;
	struct removal_scene s;
	struct h5_file *file;
	uint64_t kept;

	removal_open(&s, "types-", removal_versions[_i]);
	file = s.scratch.file;
	kept = removal_find(&s, "types/kept");
	SUCCEEDS(h5_header_load(file, removal_find(&s, "0/dataset"), &header));
	attribute = h5_header_find(&header, H5_MSG_ATTRIBUTE);
	ck_assert_ptr_nonnull(attribute);
	SUCCEEDS(h5_header_insert(file, kept,
				  &(struct h5_new_message){.type = H5_MSG_ATTRIBUTE,
							   .flags = attribute->flags,
							   .body = attribute->data,
							   .size = attribute->size}));
	h5_header_release(&header);
	SUCCEEDS(h5_header_set_references(file, kept, 1));
	SUCCEEDS(h5_object_remove(file, kept));
	SUCCEEDS(h5_tx_commit(file));
	removal_end(&s);
}
END_TEST

/* Uses of one datatype. */
struct type_uses {
	uint64_t type, count;
};

static int count_type(void *arg, uint64_t address)
{
	struct type_uses *uses = arg;

	uses->count += uses->type == address;
	return 0;
}

static uint64_t count_uses(struct h5_file *file, uint64_t object, uint64_t type)
{
	static const struct h5_use_visits visits = {count_type, NULL};
	struct type_uses uses = {.type = type};

	SUCCEEDS(h5_object_uses(file, object, &visits, &uses));
	return uses.count;
}

/* An attribute uses its datatype also if an index of shared messages knows it. */
START_TEST(tracked_attributes_use_types)
{
	const struct h5_message *attribute;
	struct h5_new_message tracked;
	struct removal_scene s;
	struct h5_header header;
	struct h5_file *file;
	uint64_t object, type, uses;
	uint8_t *body;

	removal_open(&s, "types-", removal_versions[_i]);
	file = s.scratch.file;
	object = removal_find(&s, "0/dataset");
	type = removal_find(&s, "types/kept");
	uses = count_uses(file, object, type);
	ck_assert_uint_gt(uses, 0);
	SUCCEEDS(h5_header_load(file, object, &header));
	attribute = h5_header_find(&header, H5_MSG_ATTRIBUTE);
	ck_assert_ptr_nonnull(attribute);
	body = malloc(attribute->size);
	memcpy(body, attribute->data, attribute->size);
	tracked = (struct h5_new_message){.type = H5_MSG_ATTRIBUTE,
					  .flags = attribute->flags | H5_MSG_FLAG_TRACKED,
					  .body = body,
					  .size = attribute->size};
	SUCCEEDS(h5_header_remove(file, object, attribute));
	ck_assert_uint_eq(count_uses(file, object, type), uses - 1);
	SUCCEEDS(h5_header_insert(file, object, &tracked));
	ck_assert_uint_eq(count_uses(file, object, type), uses);
	free(body);
	h5_header_release(&header);
	removal_end(&s);
}
END_TEST

/* An object that uses several datatypes lets go of all of them. */
START_TEST(several_types)
{
	const struct h5_message *attribute;
	struct h5_new_message other;
	struct removal_scene s;
	struct h5_header header;
	struct h5_file *file;
	uint64_t object, kept, last;
	uint8_t *body, *at, address[8];

	removal_open(&s, "types-", removal_versions[_i]);
	file = s.scratch.file;
	object = removal_find(&s, "0/dataset");
	kept = removal_find(&s, "types/kept");
	last = committed_type(&s, "0/user");
	ck_assert_uint_ne(kept, last);
	SUCCEEDS(h5_header_load(file, object, &header));
	attribute = h5_header_find(&header, H5_MSG_ATTRIBUTE);
	ck_assert_ptr_nonnull(attribute);
	body = malloc(attribute->size);
	memcpy(body, attribute->data, attribute->size);
	h5_uint_to(address, kept, sizeof address);
	at = memmem(body, attribute->size, address, sizeof address);
	ck_assert_ptr_nonnull(at);
	h5_uint_to(at, last, sizeof address);
	other = (struct h5_new_message){
		.type = H5_MSG_ATTRIBUTE, .flags = attribute->flags, .body = body, .size = attribute->size};
	SUCCEEDS(h5_header_insert(file, object, &other));
	SUCCEEDS(h5_header_set_references(file, last, scratch_references(file, last) + 1));
	free(body);
	h5_header_release(&header);
	ck_assert_uint_eq(count_uses(file, object, kept), 2);
	ck_assert_uint_eq(count_uses(file, object, last), 1);
	ck_assert_uint_eq(scratch_references(file, kept), 27);
	ck_assert_uint_eq(scratch_references(file, last), 2);
	SUCCEEDS(removal_remove(&s, "0/dataset"));
	ck_assert_uint_eq(scratch_references(file, kept), 25);
	ck_assert_uint_eq(scratch_references(file, last), 1);
	SUCCEEDS(h5_tx_commit(file));
	removal_end(&s);
}
END_TEST

/* The elements of a long dataset are looked at one slab after the other. Those in the first, the second and
 * the last one have all objects of a collection, which goes with them. */
START_TEST(values_of_many_elements)
{
	enum { ELEMENT = 16, ROWS = 40000, COLLECTION = 4096 };
	static const unsigned rows[] = {0, 20000, ROWS - 1};
	struct h5_new_dataset how = {
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {ROWS}, .max = {ROWS}},
		.layout = H5_LAYOUT_CONTIGUOUS};
	uint8_t *data = calloc(ROWS, ELEMENT);
	struct h5_global_heap_writer heap;
	struct h5_dataset_writer *writer;
	uint64_t address, collection;
	struct h5_datatype *type;
	struct h5_extents space = {0};
	struct removal_scene s = {0};

	scratch_init(&s.scratch, "header_create-latest.h5");
	scratch_open(&s.scratch);
	h5_global_heap_writer_init(&heap, s.scratch.file);
	for (unsigned i = 0; i < 3; i++) {
		uint8_t *element = data + (size_t)rows[i] * ELEMENT;
		uint32_t index;

		SUCCEEDS(h5_global_heap_put(&heap, "text", 4, &collection, &index));
		h5_uint_to(element, 4, 4);
		h5_uint_to(element + 4, collection, 8);
		h5_uint_to(element + 12, index, 4);
	}
	h5_global_heap_writer_release(&heap);
	SUCCEEDS(h5_numpy_parse("vlen str", 8, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s.scratch.file, &how, &address));
	h5_datatype_free(type);
	SUCCEEDS(h5_dataset_writer_get(s.scratch.file, address, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, (size_t)ROWS * ELEMENT));
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	SUCCEEDS(h5_object_remove(s.scratch.file, address));
	SUCCEEDS(h5_extents_add(&space, collection, COLLECTION));
	removal_assert_is_free(&s, &space);
	h5_extents_release(&space);
	h5_dataset_writers_close(s.scratch.file);
	removal_end(&s);
	free(data);
}
END_TEST

/* The last dataset that uses a datatype is removed. The datatype has a damaged header, so it keeps its space.
 */
START_TEST(a_damaged_type_stays)
{
	struct h5_extents met = {0};
	struct removal_sum sum = {0, &met};
	struct removal_scene s;
	uint64_t kept;
	uint8_t byte = 0xff;
	FILE *f;

	removal_open(&s, "types-", removal_versions[_i]);
	kept = removal_find(&s, "types/kept");
	SUCCEEDS(h5_object_extents(s.scratch.file, removal_find(&s, "0/few"), removal_add_extent, &sum));
	scratch_close(&s.scratch);
	f = fopen(s.scratch.path, "r+");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, (long)kept, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(&byte, 1, 1, f), 1);
	fclose(f);
	scratch_open(&s.scratch);
	SUCCEEDS(removal_remove(&s, "0/few"));
	removal_assert_is_free(&s, &met);
	SUCCEEDS(h5_file_read(s.scratch.file, kept, &byte, 1));
	ck_assert_uint_eq(byte, 0xff);
	h5_extents_release(&met);
	removal_end(&s);
}
END_TEST

/* The test removes attributes one by one. Some are shared. Others belong to one object, but an index has
 * them, too. After each removal the counts of the indexes are right. */
START_TEST(attributes_that_indexes_know)
{
	static const char *const objects[][2] = {{"rare_sohm_list.h5", "data7"},
						 {"rare_sohm_tree.h5", "data7"},
						 {"object_shared.h5", "data3"}};
	struct h5_damage damage = {0};
	unsigned before, messages, removed = 0;
	struct removal_scene s = {0};
	uint64_t object;

	scratch_init(&s.scratch, objects[_i][0]);
	scratch_open(&s.scratch);
	find_table(&s, &before);
	object = removal_find(&s, objects[_i][1]);
	for (;;) {
		char name[64];
		struct h5_attribute_walk walk;
		const struct h5_attribute *attribute;
		const struct h5_object *found;
		struct h5_lru_entry *ref;
		int rc;

		SUCCEEDS(h5_object_get(s.scratch.file, object, &ref, &found));
		SUCCEEDS(h5_attribute_begin(&walk, s.scratch.file, found));
		rc = h5_attribute_next(&walk, &attribute);
		ck_assert_int_ge(rc, 0);
		snprintf(name, sizeof name, "%s", rc ? attribute->name : "");
		h5_attribute_end(&walk);
		h5_file_put(s.scratch.file, ref);
		if (!rc)
			break;
		SUCCEEDS(h5_attribute_remove(s.scratch.file, object, name));
		removed++;
		SUCCEEDS(h5_shared_table_check(s.scratch.file, &damage));
		SUCCEEDS(h5_damage_result(&damage));
	}
	ck_assert_uint_gt(removed, 1);
	find_table(&s, &messages);
	ck_assert_uint_lt(messages, before);
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	removal_end(&s);
}
END_TEST

UNIT_MAIN_LOOPS("object_removal", {names_are_counted, REMOVAL_VERSIONS}, {names_that_were_not_counted, 1},
		{mappings_that_are_nowhere, 1}, {too_many_names, REMOVAL_VERSIONS},
		{a_type_that_uses_itself, REMOVAL_VERSIONS}, {tracked_attributes_use_types, REMOVAL_VERSIONS},
		{a_damaged_type_stays, REMOVAL_VERSIONS}, {several_types, REMOVAL_VERSIONS},
		{values_of_many_elements, 1}, {extents_are_what_libhdf5_frees, REMOVAL_VERSIONS},
		{no_byte_is_of_two_objects, RARE}, {objects_go, REMOVAL_VERSIONS},
		{space_is_used_again, REMOVAL_VERSIONS}, {uses_of_types_are_counted, REMOVAL_VERSIONS},
		{low_counts, REMOVAL_VERSIONS}, {a_table_of_shared_messages_moves, 2},
		{attributes_that_indexes_know, 3})

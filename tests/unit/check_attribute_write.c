/* Attributes are made, changed and removed in each storage: what fails changes nothing, and libhdf5 finds
 * what the reader finds. */
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "change/object_header_layout.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "fault_alloc.h"
#include "format/datatype_make.h"
#include "object/attribute_write.h"
#include "object/fractal_heap.h"
#include "object/named_message_write.h"
#include "object/named_record_write.h"
#include "object/path.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the attributes of /g ---- */

struct scene {
	struct scratch scratch;
	struct fault_io fault;
	uint64_t group;
	unsigned count;		  /* attributes of the fixture */
	struct h5_datatype *type; /* i4 */
};

static void begin(struct scene *s, const char *form, unsigned n)
{
	char fixture[64];
	struct h5_file *file;

	memset(s, 0, sizeof *s);
	s->count = n;
	snprintf(fixture, sizeof fixture, "attribute_write-%s-%u.h5", form, n);
	scratch_init(&s->scratch, fixture);
	scratch_wrap(&s->scratch, &s->fault);
	scratch_open(&s->scratch);
	SUCCEEDS(h5_path_find(s->scratch.file, h5_file_superblock(s->scratch.file)->root, "g", 1, &file,
			      &s->group));
	s->type = h5_datatype_make_integer(4, true, H5_ORDER_LE);
	ck_assert_ptr_nonnull(s->type);
}

static void end(struct scene *s)
{
	h5_datatype_free(s->type);
	scratch_release(&s->scratch);
	fault_io_release(&s->fault);
}

/* The names and bytes of all attributes, as one text. */
static void describe(struct scene *s, char *text, size_t room)
{
	struct h5_attribute_walk walk;
	const struct h5_attribute *a;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	size_t at = 0;
	int rc;

	SUCCEEDS(h5_object_get(s->scratch.file, s->group, &ref, &object));
	SUCCEEDS(h5_attribute_begin(&walk, s->scratch.file, object));
	*text = '\0';
	while ((rc = h5_attribute_next(&walk, &a)) > 0) {
		at += (size_t)snprintf(text + at, room - at, "%s ", a->name);
		for (size_t i = 0; i < a->size; i++)
			at += (size_t)snprintf(text + at, room - at, "%02x", a->data[i]);
		at += (size_t)snprintf(text + at, room - at, "\n");
		ck_assert_uint_lt(at, room);
	}
	ck_assert_int_eq(rc, 0);
	h5_attribute_end(&walk);
	h5_file_put(s->scratch.file, ref);
}

/* ---- changes ---- */

enum step { CREATE, CREATE_LARGE, UPDATE, REMOVE, REMOVE_REST, STEPS };

static int create(struct scene *s, const char *name, unsigned elements)
{
	static const int32_t values[20000] = {1, -2, 3};
	struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE,
				     .rank = 1,
				     .dims = {elements},
				     .max = {elements},
				     .elements = elements};

	return h5_attribute_create(s->scratch.file, s->group, name, s->type, &space, values);
}

static int remove_rest(struct scene *s)
{
	char name[16];
	int rc = 0;

	h5_unit_begin(s->scratch.file);
	for (unsigned i = 0; i < s->count && !rc; i++) {
		snprintf(name, sizeof name, "a%02u", i);
		rc = h5_attribute_remove(s->scratch.file, s->group, name);
	}
	if (!rc)
		rc = h5_attribute_remove(s->scratch.file, s->group, "large");
	return h5_unit_end(s->scratch.file, rc);
}

static int perform(struct scene *s, enum step step)
{
	const int32_t value = 77;

	switch (step) {
	case CREATE:
		return create(s, "new", 1);
	case CREATE_LARGE:
		return create(s, "large", 1000);
	case UPDATE:
		return h5_attribute_update(s->scratch.file, s->group, "new", &value, sizeof value);
	case REMOVE:
		return h5_attribute_remove(s->scratch.file, s->group, "new");
	default:
		return remove_rest(s);
	}
}

static const char *const forms[] = {"v1", "v2", "ordered"};
static const unsigned counts[] = {0, 1, 12};

/* libhdf5 finds the names in the second file, and goes on with the first. */
#define JUDGE                                                                                                \
	"/usr/bin/python3 -c \""                                                                             \
	"import h5py, sys\n"                                                                                 \
	"with h5py.File(sys.argv[1], 'r+') as f:\n"                                                          \
	"    g = f['g']\n"                                                                                   \
	"    assert sorted(g.attrs) == open(sys.argv[2]).read().split(), sorted(g.attrs)\n"                  \
	"    assert not 'new' in g.attrs or g.attrs['new'].tolist() == [77]\n"                               \
	"    g.attrs['theirs'] = 1\n"                                                                        \
	"    for name in sorted(g.attrs)[::2]: del g.attrs[name]\n"                                          \
	"\" %s %s"

/* by_all: by newer versions of libhdf5, too. */
static void judge(struct scene *s, bool by_all)
{
	static char text[1 << 19];
	char path[128];
	FILE *f;

	describe(s, text, sizeof text);
	snprintf(path, sizeof path, "%s/expected", scratch_folder());
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(f, "%.*s\n", (int)strcspn(line, " "), line);
	fclose(f);
	SUCCEEDS(h5_tx_commit(s->scratch.file));
	scratch_close(&s->scratch);
	if (by_all)
		scratch_judge(JUDGE, s->scratch.path, path);
	else
		scratch_own_judge(JUDGE, s->scratch.path, path);
}

/* Each allocation fails once. */
START_TEST(what_fails_changes_nothing)
{
	char before[1 << 14], after[1 << 14];
	unsigned failures = 0;
	struct scene s;

	begin(&s, forms[_i / 3], counts[_i % 3]);
	for (enum step step = 0; step < STEPS; step++) {
		int rc = -ENOMEM;

		describe(&s, before, sizeof before);
		for (unsigned long n = 1; rc; n++) {
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = perform(&s, step);
			fault_alloc_count(false);
			fault_alloc_disarm();
			if (!rc)
				break;
			ck_assert_int_eq(rc, -ENOMEM);
			failures++;
			describe(&s, after, sizeof after);
			ck_assert_str_eq(before, after);
		}
		describe(&s, after, sizeof after);
		ck_assert_str_ne(before, after);
	}
	ck_assert_uint_gt(failures, 20);
	ck_assert_uint_eq(strlen(after), 0);
	SUCCEEDS(create(&s, "last", 3));
	judge(&s, _i % 4 == 0);
	end(&s);
}
END_TEST

/* An enumeration is written as the library that has made the file would write it. */
START_TEST(versions_of_types)
{
	static const struct {
		const char *fixture;
		unsigned version;
	} files[] = {{"header_create-v18.h5", 1}, {"header_create-latest.h5", 3}};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct scene s = {.type = h5_datatype_make_boolean()};
		struct h5_attribute_walk walk;
		const struct h5_attribute *a;
		const struct h5_object *object;
		struct h5_lru_entry *ref;

		scratch_init(&s.scratch, files[i].fixture);
		scratch_open(&s.scratch);
		s.group = h5_file_superblock(s.scratch.file)->root;
		SUCCEEDS(create(&s, "new", 1));
		SUCCEEDS(h5_object_get(s.scratch.file, s.group, &ref, &object));
		SUCCEEDS(h5_attribute_begin(&walk, s.scratch.file, object));
		ck_assert_int_eq(h5_attribute_next(&walk, &a), 1);
		ck_assert_uint_eq(a->type->version, files[i].version);
		h5_attribute_end(&walk);
		h5_file_put(s.scratch.file, ref);
		end(&s);
	}
}
END_TEST

START_TEST(what_is_refused)
{
	enum { NAME = 65535 }; /* bytes of a name that is too long by its NUL */
	const uint64_t most = UINT64_MAX / 4 + 1;
	const struct h5_dataspace one = {.kind = H5_SPACE_SCALAR, .elements = 1},
				  huge = {H5_SPACE_SIMPLE, 1, {most}, {most}, false, most};
	const int32_t values[16] = {0};
	static char name[NAME + 1];
	struct scene s;

	begin(&s, forms[_i / 3], counts[_i % 3]);
	SUCCEEDS(create(&s, "new", 1));
	ck_assert_int_eq(create(&s, "new", 1), -EEXIST);
	ck_assert_int_eq(h5_attribute_update(s.scratch.file, s.group, "none", values, 4), -ENODATA);
	ck_assert_int_eq(h5_attribute_update(s.scratch.file, s.group, "new", values, sizeof values), -EINVAL);
	ck_assert_int_eq(h5_attribute_remove(s.scratch.file, s.group, "none"), -ENODATA);
	ck_assert_int_eq(h5_attribute_replace(s.scratch.file, s.group, "none", s.type, &one, values),
			 -ENODATA);
	ck_assert_int_eq(h5_attribute_create(s.scratch.file, s.group, "huge", s.type, &huge, values), -E2BIG);
	ck_assert_int_eq(h5_attribute_replace(s.scratch.file, s.group, "new", s.type, &huge, values), -E2BIG);
	memset(name, 'n', NAME);
	ck_assert_int_eq(h5_attribute_create(s.scratch.file, s.group, name, s.type, &one, values), -E2BIG);
	/* There is no object at address 8. */
	ck_assert_int_eq(h5_attribute_create(s.scratch.file, 8, "x", s.type, &one, values), -EUCLEAN);
	ck_assert_int_eq(h5_attribute_replace(s.scratch.file, 8, "new", s.type, &one, values), -EUCLEAN);
	ck_assert_int_eq(h5_attribute_update(s.scratch.file, 8, "new", values, 4), -EUCLEAN);
	ck_assert_int_eq(h5_attribute_remove(s.scratch.file, 8, "new"), -EUCLEAN);
	SUCCEEDS(perform(&s, UPDATE));
	judge(&s, _i % 4 == 0);
	end(&s);
}
END_TEST

static struct h5_named_storage storage_of(struct scene *s)
{
	struct h5_named_storage storage;
	const struct h5_object *object;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(s->scratch.file, s->group, &ref, &object));
	SUCCEEDS(h5_named_storage_find(s->scratch.file, object, H5_NAMED_ATTRIBUTE, &storage));
	h5_file_put(s->scratch.file, ref);
	return storage;
}

static bool is_dense(struct scene *s)
{
	return storage_of(s).is_dense;
}

/* More than 8 attributes are dense, but in a header of version 1. */
START_TEST(many)
{
	struct scene s;
	char name[16];

	begin(&s, forms[_i / 3], counts[_i % 3]);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "m%u", i);
		SUCCEEDS(create(&s, name, i % 7 == 6 ? 3000 : i));
		ck_assert_int_eq(is_dense(&s), _i / 3 && s.count + i + 1 > 8);
	}
	judge(&s, _i == 8);
	end(&s);
}
END_TEST

/* One that is larger than a message of a header can be is dense, or refused. */
START_TEST(too_large_for_a_message)
{
	int32_t *values = calloc(17000, sizeof *values);
	struct scene s;

	ck_assert_ptr_nonnull(values);
	begin(&s, forms[_i / 3], counts[_i % 3]);
	SUCCEEDS(create(&s, "large", 16000));
	if (_i / 3) {
		SUCCEEDS(create(&s, "larger", 17000));
		ck_assert(is_dense(&s));
		values[16999] = 5;
		SUCCEEDS(h5_attribute_update(s.scratch.file, s.group, "larger", values,
					     17000 * sizeof *values));
	} else {
		ck_assert_int_eq(create(&s, "larger", 17000), -E2BIG);
		ck_assert(!is_dense(&s));
	}
	judge(&s, _i == 4);
	free(values);
	end(&s);
}
END_TEST

/* The order of creation of an attribute in dense storage. */
static int64_t dense_order(struct scene *s, const char *name)
{
	struct h5_named_storage storage;
	struct h5_named_entry entry;
	const struct h5_object *object;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(s->scratch.file, s->group, &ref, &object));
	SUCCEEDS(h5_named_storage_find(s->scratch.file, object, H5_NAMED_ATTRIBUTE, &storage));
	ck_assert(storage.is_dense);
	SUCCEEDS(h5_named_index_find(s->scratch.file, H5_NAMED_ATTRIBUTE, &storage.info, name, strlen(name),
				     &entry));
	h5_file_put(s->scratch.file, ref);
	return entry.order;
}

/* An attribute gets so many elements that it does not fit into a message. It keeps its place in the order. */
START_TEST(replaced_by_one_too_large_for_a_message)
{
	enum { MANY = 17000 };
	const struct h5_dataspace space = {H5_SPACE_SIMPLE, 1, {MANY}, {MANY}, false, MANY};
	static char before[1 << 14], after[1 << 19];
	int32_t *values = calloc(MANY, sizeof *values);
	struct scene s;
	int rc;

	ck_assert_ptr_nonnull(values);
	values[MANY - 1] = 0x11223344;
	begin(&s, forms[_i / 3], counts[_i % 3]);
	SUCCEEDS(create(&s, "wide", 1));
	SUCCEEDS(create(&s, "other", 1));
	describe(&s, before, sizeof before);
	rc = h5_attribute_replace(s.scratch.file, s.group, "wide", s.type, &space, values);
	ck_assert_int_eq(rc, _i / 3 ? 0 : -E2BIG);
	describe(&s, after, sizeof after);
	if (rc) {
		ck_assert_str_eq(before, after);
	} else {
		ck_assert_ptr_nonnull(strstr(after, "0000000044332211\n"));
		if (_i / 3 == 2) {
			ck_assert_int_eq(dense_order(&s, "wide"), s.count);
			ck_assert_int_eq(dense_order(&s, "other"), s.count + 1);
			SUCCEEDS(create(&s, "next", 1));
			ck_assert_int_eq(dense_order(&s, "next"), s.count + 2);
		}
	}
	judge(&s, false);
	free(values);
	end(&s);
}
END_TEST

/* In a file whose lengths have fewer bytes than ours. */
START_TEST(more_elements_than_the_file_can_count)
{
	struct h5_datatype *byte = h5_datatype_make_integer(1, false, H5_ORDER_LE);
	struct h5_attribute found;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct scratch scratch;
	uint64_t root, most;

	scratch_init(&scratch, "object_narrow.h5");
	scratch_open(&scratch);
	root = h5_file_superblock(scratch.file)->root;
	ck_assert_uint_lt(h5_file_superblock(scratch.file)->size_of_lengths, 8);
	most = (UINT64_C(1) << 8 * h5_file_superblock(scratch.file)->size_of_lengths) - 2;
	for (uint64_t n = most; n <= most + 1; n++) {
		const struct h5_dataspace space = {H5_SPACE_SIMPLE, 2, {0, n}, {0, n}, false, 0};

		ck_assert_int_eq(h5_attribute_create(scratch.file, root, n == most ? "most" : "more", byte,
						     &space, ""),
				 n == most ? 0 : -EOVERFLOW);
	}
	SUCCEEDS(h5_object_get(scratch.file, root, &ref, &object));
	SUCCEEDS(h5_attribute_lookup(scratch.file, object, "most", &found));
	ck_assert_uint_eq(found.space.dims[1], most);
	h5_attribute_release(&found);
	ck_assert_int_eq(h5_attribute_lookup(scratch.file, object, "more", &found), -ENODATA);
	h5_file_put(scratch.file, ref);
	h5_datatype_free(byte);
	scratch_release(&scratch);
}
END_TEST

static int set_next_order(const void *arg, uint8_t *body, size_t n)
{
	const unsigned *order = arg;

	ck_assert_uint_ge(n, 4);
	h5_uint_to(body + 2, *order, 2);
	return 0;
}

/* The order of creation has 16 bits. */
START_TEST(more_than_can_be_counted)
{
	const unsigned last = 65534;
	const int32_t value = 77;
	static char before[1 << 14], after[1 << 14];
	struct scene s;

	begin(&s, "ordered", _i ? 12 : 1);
	SUCCEEDS(h5_header_update(s.scratch.file, s.group, H5_MSG_ATTRIBUTE_INFO, set_next_order, &last));
	SUCCEEDS(create(&s, "new", 1));
	describe(&s, before, sizeof before);
	ck_assert_int_eq(create(&s, "more", 1), -ENOSPC);
	ck_assert_str_eq(h5_error_last()->text, "no more attributes can be counted");
	ck_assert_int_eq(create(&s, "large", 1000), -ENOSPC);
	describe(&s, after, sizeof after);
	ck_assert_str_eq(before, after);
	SUCCEEDS(h5_attribute_update(s.scratch.file, s.group, "new", &value, sizeof value));
	SUCCEEDS(h5_attribute_remove(s.scratch.file, s.group, "new"));
	end(&s);
}
END_TEST

static int spoil_version(const void *arg, uint8_t *body, size_t n)
{
	(void)arg;
	ck_assert_uint_gt(n, 0);
	body[0] = 0x7f;
	return 0;
}

/* Nobody knows where attributes of such an object are. */
START_TEST(a_damaged_attribute_info_message)
{
	const struct h5_dataspace one = {.kind = H5_SPACE_SCALAR, .elements = 1};
	const int32_t value = 77;
	struct scene s;

	begin(&s, forms[1 + _i % 2], _i / 2 ? 12 : 1);
	SUCCEEDS(create(&s, "new", 1));
	SUCCEEDS(h5_header_update(s.scratch.file, s.group, H5_MSG_ATTRIBUTE_INFO, spoil_version, NULL));
	ck_assert_int_eq(create(&s, "newer", 1), -EUCLEAN);
	ck_assert_int_eq(h5_attribute_remove(s.scratch.file, s.group, _i / 2 ? "a11" : "a00"), -EUCLEAN);
	ck_assert_int_eq(h5_attribute_replace(s.scratch.file, s.group, "new", s.type, &one, &value),
			 -EUCLEAN);
	ck_assert_int_eq(h5_attribute_update(s.scratch.file, s.group, "new", &value, sizeof value), -EUCLEAN);
	end(&s);
}
END_TEST

static int name_as_other(const void *arg, uint8_t *body, size_t n)
{
	uint8_t *name = memmem(body, n, "m0", 3);

	(void)arg;
	ck_assert_ptr_nonnull(name);
	name[1] = '1';
	return 0;
}

/* Dense storage holds no name twice. What the header has stays there. */
START_TEST(two_messages_of_one_name)
{
	static char before[1 << 14], after[1 << 14];
	char name[16];
	struct scene s;

	begin(&s, forms[1 + _i], 0);
	for (unsigned i = 0; i < 8; i++) {
		snprintf(name, sizeof name, "m%u", i);
		SUCCEEDS(create(&s, name, 1 + i));
	}
	SUCCEEDS(h5_header_update(s.scratch.file, s.group, H5_MSG_ATTRIBUTE, name_as_other, NULL));
	describe(&s, before, sizeof before);
	ck_assert_int_eq(create(&s, "m8", 1), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "object header: two messages of one name");
	describe(&s, after, sizeof after);
	ck_assert_str_eq(before, after);
	ck_assert(!is_dense(&s));
	end(&s);
}
END_TEST

/* ---- stages ---- */

struct stages {
	const struct h5_file *file;
	unsigned stage, count; /* of blocks that change */
};

static int check_stage(void *arg, uint64_t address, uint64_t n)
{
	struct stages *s = arg;
	const unsigned latest = h5_tx_latest_stage(s->file, address, n);

	ck_assert_msg(!latest || latest == s->stage, "%u at %ju", latest, (uintmax_t)address);
	s->count += latest != 0;
	return 0;
}

/* The message of a new attribute is there before the records that lead to it. */
START_TEST(stages_of_dense_attributes)
{
	struct h5_named_storage storage;
	struct stages heap;
	struct scene s;

	begin(&s, "v2", 12);
	storage = storage_of(&s);
	ck_assert(storage.is_dense);
	SUCCEEDS(create(&s, "another", 1));
	heap = (struct stages){s.scratch.file, H5_STAGE_HEAP, 0};
	SUCCEEDS(h5_fractal_heap_extents(s.scratch.file, storage.info.heap, check_stage, &heap));
	ck_assert_uint_ge(heap.count, 2); /* the header, and the block */
	ck_assert(h5_tx_latest_stage(s.scratch.file, storage.info.name_index, 1) > H5_STAGE_HEAP);
	end(&s);
}
END_TEST

/* ---- flags ---- */

enum { CONSTANT = 0x01, NOT_SHARED = 0x04 }; /* these mean nothing here */

/* The flags of the first message of the type. */
static unsigned flags_of(struct scene *s, enum h5_message_type type)
{
	const struct h5_message *message;
	struct h5_header header;
	unsigned flags;

	SUCCEEDS(h5_header_load(s->scratch.file, s->group, &header));
	message = h5_header_find(&header, type);
	ck_assert_ptr_nonnull(message);
	flags = message->flags;
	h5_header_release(&header);
	return flags;
}

static void set_flags(struct scene *s, enum h5_message_type type, uint8_t flags)
{
	const struct h5_message *message;
	struct h5_new_message new;
	struct h5_header header;

	SUCCEEDS(h5_header_load(s->scratch.file, s->group, &header));
	message = h5_header_find(&header, type);
	ck_assert_ptr_nonnull(message);
	new = (struct h5_new_message){
		.type = type, .flags = flags, .body = message->data, .size = message->size};
	SUCCEEDS(h5_header_set(s->scratch.file, s->group, message, &new));
	h5_header_release(&header);
	ck_assert_uint_eq(flags_of(s, type), flags);
}

/* What takes the place of a message has its flags, but for those of a shared one. */
START_TEST(flags_stay)
{
	struct h5_new_named new = {.kind = H5_NAMED_ATTRIBUTE, .name = "new", .name_size = 3};
	char name[16];
	struct scene s;
	uint8_t *body;

	begin(&s, forms[_i], 0);
	SUCCEEDS(create(&s, "new", 3));
	new.body = body = scratch_message(&s.scratch, s.group, H5_MSG_ATTRIBUTE, &new.size);
	set_flags(&s, H5_MSG_ATTRIBUTE, CONSTANT | NOT_SHARED | H5_MSG_FLAG_TRACKED);
	SUCCEEDS(h5_named_replace(s.scratch.file, s.group, &new));
	ck_assert_uint_eq(flags_of(&s, H5_MSG_ATTRIBUTE), CONSTANT | NOT_SHARED);
	free(body);
	if (_i) {
		SUCCEEDS(create(&s, "other", 1));
		set_flags(&s, H5_MSG_ATTRIBUTE_INFO, CONSTANT | NOT_SHARED);
		for (unsigned i = 0; !is_dense(&s); i++) {
			ck_assert_uint_lt(i, 20);
			snprintf(name, sizeof name, "m%u", i);
			SUCCEEDS(create(&s, name, 1));
		}
		ck_assert_uint_eq(flags_of(&s, H5_MSG_ATTRIBUTE_INFO), CONSTANT | NOT_SHARED);
	}
	end(&s);
}
END_TEST

/* In each state of the commit that makes them dense there are the 8 attributes before it, or 9. */
#define JUDGE_STATES                                                                                         \
	"/usr/bin/python3 -c \""                                                                             \
	"import glob, h5py, sys\n"                                                                           \
	"seen = set()\n"                                                                                     \
	"for path in glob.glob(sys.argv[1] + '-*.h5'):\n"                                                    \
	"    with h5py.File(path, 'r+') as f:\n"                                                             \
	"        a = f['g'].attrs\n"                                                                         \
	"        seen.add(len(a))\n"                                                                         \
	"        assert sorted(a) == ['m%%u' %% i for i in range(len(a))], sorted(a)\n"                      \
	"        assert all(a[name][0] == 1 for name in a)\n"                                                \
	"        for i in range(5): a['theirs%%u' %% i] = i\n"                                               \
	"        for name in sorted(a)[::2]: del a[name]\n"                                                  \
	"    with h5py.File(path, 'r') as f: assert len(f['g'].attrs) == len(list(f['g'].attrs)) >= 6\n"     \
	"assert seen == {8, 9}, seen\n"                                                                      \
	"\" %s"

START_TEST(killed_as_they_become_dense)
{
	struct crash_image image = {0};
	char name[16], prefix[160];
	struct scene s;

	begin(&s, forms[1 + _i], 0);
	for (unsigned i = 0; i < 8; i++) {
		snprintf(name, sizeof name, "m%u", i);
		SUCCEEDS(create(&s, name, i % 3 == 2 ? 900 : 1));
	}
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	crash_image_load(&image, s.scratch.path);
	s.fault.record = true;
	SUCCEEDS(create(&s, "m8", 1));
	ck_assert(is_dense(&s));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	s.fault.record = false;
	snprintf(prefix, sizeof prefix, "%s/state%d", scratch_folder(), _i);
	crash_image_save_states(&image, &s.fault, prefix);
	scratch_judge(JUDGE_STATES, prefix);
	free(image.data);
	end(&s);
}
END_TEST

UNIT_MAIN_LOOPS("attribute_write", {what_fails_changes_nothing, 9}, {versions_of_types, 1},
		{what_is_refused, 9}, {many, 9}, {too_large_for_a_message, 9},
		{replaced_by_one_too_large_for_a_message, 9}, {more_elements_than_the_file_can_count, 1},
		{more_than_can_be_counted, 2}, {a_damaged_attribute_info_message, 4},
		{two_messages_of_one_name, 2}, {flags_stay, 3}, {stages_of_dense_attributes, 1},
		{killed_as_they_become_dense, 2})

/* Objects are named and removed: all space that only they use is given up, and nothing else. */
#include "base/error.h"
#include "base/extents.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "dataset/removal.h"
#include "format/shared_message.h"
#include "object/attribute_write.h"
#include "object/named_message_write.h"
#include "object/path.h"
#include "object/symbol_table_write.h"
#include "scratch.h"
#include "store/object_header.h"

#include <stdio.h>
#include <string.h>

/* ---- a file with objects to remove ---- */

static const unsigned versions[] = {0, 2, 3};
enum { VERSIONS = sizeof versions / sizeof *versions, OBJECTS_MAX = 64 };

/* An object that can be removed. */
struct removable {
	char path[64];
	uint64_t bytes; /* that it has, as libhdf5 sees it */
};

struct scene {
	struct scratch scratch;
	struct fault_io fault;
	struct removable objects[OBJECTS_MAX];
	unsigned count;
};

static void open_scene(struct scene *s, const char *prefix, unsigned version)
{
	char name[64];

	memset(s, 0, sizeof *s);
	snprintf(name, sizeof name, "object_removal-%s%u.h5", prefix, version);
	scratch_init(&s->scratch, name);
	scratch_wrap(&s->scratch, &s->fault);
	scratch_open(&s->scratch);
}

static void begin(struct scene *s, unsigned version)
{
	char name[64], path[512];
	FILE *f;

	open_scene(s, "", version);
	snprintf(name, sizeof name, "object_removal-%u.txt", version);
	scratch_fixture(name, path);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	for (; fscanf(f, "%63s %ju", s->objects[s->count].path, &s->objects[s->count].bytes) == 2; s->count++)
		ck_assert_uint_lt(s->count + 1, OBJECTS_MAX);
	fclose(f);
	ck_assert_uint_gt(s->count, 20);
}

static void end(struct scene *s)
{
	scratch_release(&s->scratch);
	fault_io_release(&s->fault);
}

static uint64_t find_n(const struct scene *s, const char *path, size_t n)
{
	struct h5_file *file;
	uint64_t address;

	SUCCEEDS(h5_path_find(s->scratch.file, h5_file_superblock(s->scratch.file)->root, path, n, &file,
			      &address));
	return address;
}

static uint64_t find(const struct scene *s, const char *path)
{
	return find_n(s, path, strlen(path));
}

/* Removes the link of that path. */
static int remove_link(struct scene *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	uint64_t group = find_n(s, path, (size_t)(slash - path));
	struct h5_file *file = s->scratch.file;
	const struct h5_message *message;
	struct h5_symbol_table table;
	struct h5_header header;
	struct h5_reader r;
	int rc = h5_header_load(file, group, &header);

	if (rc)
		return rc;
	message = h5_header_find(&header, H5_MSG_SYMBOL_TABLE);
	if (!message) {
		rc = h5_named_remove(file, group, H5_NAMED_LINK, slash + 1, strlen(slash + 1));
	} else {
		r = h5_file_reader(file, message->data, message->size, message->address);
		SUCCEEDS(h5_symbol_table_decode(&r, &table));
		rc = h5_symbol_table_remove(file, &table, slash + 1, strlen(slash + 1));
	}
	h5_header_release(&header);
	return rc;
}

/* Removes an object with its only name. */
static int remove_object(struct scene *s, const char *path)
{
	struct h5_file *file = s->scratch.file;
	uint64_t address = find(s, path);
	bool last;
	int rc = h5_unit_begin(file);

	if (rc)
		return rc;
	rc = remove_link(s, path);
	if (!rc)
		rc = h5_object_drop_name(file, address, &last);
	if (!rc) {
		ck_assert(last);
		rc = h5_object_remove(file, address);
	}
	return h5_unit_end(file, rc);
}

/* ---- names ---- */

START_TEST(names_are_counted)
{
	struct scene s;
	struct h5_file *file;
	uint64_t address;
	bool last;

	begin(&s, versions[_i]);
	file = s.scratch.file;
	address = find(&s, "0/contiguous");
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
	ck_assert_int_eq(h5_object_remove(file, find(&s, "0")), -ENOTEMPTY);
	end(&s);
}
END_TEST

/* ---- extents ---- */

struct sum {
	uint64_t bytes;
	struct h5_extents *met; /* by this and other objects */
};

static int add_extent(void *arg, uint64_t address, uint64_t n)
{
	struct sum *sum = arg;

	sum->bytes += n;
	ck_assert_msg(!h5_extents_touches(sum->met, address, n), "%ju bytes at %ju are visited twice",
		      (uintmax_t)n, (uintmax_t)address);
	ck_assert_int_eq(h5_extents_add(sum->met, address, n), 0);
	return 0;
}

static int stop(void *arg, uint64_t address, uint64_t n)
{
	(void)arg;
	(void)address;
	(void)n;
	return 77;
}

START_TEST(extents_are_what_libhdf5_frees)
{
	struct h5_extents met = {0};
	struct scene s;

	begin(&s, versions[_i]);
	for (unsigned i = 0; i < s.count; i++) {
		const struct removable *object = &s.objects[i];
		struct sum sum = {0, &met};

		SUCCEEDS(h5_object_extents(s.scratch.file, find(&s, object->path), add_extent, &sum));
		ck_assert_msg(sum.bytes == object->bytes, "%s: %ju bytes, not %ju", object->path,
			      (uintmax_t)sum.bytes, (uintmax_t)object->bytes);
	}
	ck_assert_int_eq(h5_object_extents(s.scratch.file, find(&s, "0"), stop, NULL), 77);
	h5_extents_release(&met);
	end(&s);
}
END_TEST

/* The space becomes free with the next commits: it can be allocated as a whole. */
static void assert_is_free(struct scene *s, const struct h5_extents *space)
{
	struct h5_extents left = {0};
	uint64_t end = h5_file_end(s->scratch.file), address;

	for (size_t i = 0; i < space->count; i++)
		SUCCEEDS(h5_extents_add(&left, space->list[i].address, space->list[i].size));
	for (int i = 0; i < 2; i++) {
		SUCCEEDS(h5_tx_allocate(s->scratch.file, H5_ALLOCATE_RAW, 1, &address));
		SUCCEEDS(h5_tx_write(s->scratch.file, address, "", 1));
		SUCCEEDS(h5_extents_remove(&left, address, 1));
		SUCCEEDS(h5_tx_commit(s->scratch.file));
	}
	for (address = 0; address < end && left.count;) {
		SUCCEEDS(h5_tx_allocate(s->scratch.file, H5_ALLOCATE_RAW, 1, &address));
		SUCCEEDS(h5_extents_remove(&left, address, 1));
	}
	ck_assert_uint_eq(left.count, 0);
	h5_extents_release(&left);
}

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

static void judge(struct scene *s, bool by_all, const char *left)
{
	SUCCEEDS(h5_tx_commit(s->scratch.file));
	scratch_close(&s->scratch);
	if (by_all)
		scratch_judge(JUDGE, s->scratch.path, left);
	else
		scratch_run(JUDGE, s->scratch.path, left);
}

START_TEST(objects_go)
{
	struct scene s;

	begin(&s, versions[_i]);
	for (unsigned i = 0; i < s.count; i++)
		SUCCEEDS(remove_object(&s, s.objects[i].path));
	judge(&s, true, "full keep keep-chunks");
	end(&s);
}
END_TEST

START_TEST(space_is_used_again)
{
	struct h5_extents met = {0};
	struct sum sum = {0, &met};
	struct scene s;

	begin(&s, versions[_i]);
	for (unsigned i = 0; i < s.count; i++) {
		SUCCEEDS(h5_object_extents(s.scratch.file, find(&s, s.objects[i].path), add_extent, &sum));
		SUCCEEDS(remove_object(&s, s.objects[i].path));
	}
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	assert_is_free(&s, &met);
	h5_extents_release(&met);
	end(&s);
}
END_TEST

/* ---- committed datatypes ---- */

static uint32_t references(const struct scene *s, const char *path)
{
	uint32_t count;

	SUCCEEDS(h5_header_references(s->scratch.file, find(s, path), &count));
	return count;
}

/* The committed datatype of a dataset. */
static uint64_t committed_type(const struct scene *s, const char *path)
{
	struct h5_shared_message shared;
	struct h5_reader r;
	size_t n;
	uint8_t *body = scratch_message(&s->scratch, find(s, path), H5_MSG_DATATYPE, &n);

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
	struct scene s;
	struct h5_file *file;
	struct h5_extents met = {0};
	struct sum sum = {0, &met};
	uint64_t type;

	open_scene(&s, "types-", versions[_i]);
	file = s.scratch.file;
	ck_assert_uint_eq(references(&s, "types/kept"), 27);
	SUCCEEDS(h5_attribute_remove(file, find(&s, "0/few"), "own"));
	ck_assert_uint_eq(references(&s, "types/kept"), 27);
	SUCCEEDS(h5_attribute_remove(file, find(&s, "0/few"), "attribute 1"));
	SUCCEEDS(h5_attribute_remove(file, find(&s, "0/many"), "attribute 11"));
	ck_assert_uint_eq(references(&s, "types/kept"), 25);
	SUCCEEDS(remove_object(&s, "0/few"));
	ck_assert_uint_eq(references(&s, "types/kept"), 23);
	SUCCEEDS(remove_object(&s, "0/many"));
	ck_assert_uint_eq(references(&s, "types/kept"), 4);
	SUCCEEDS(remove_object(&s, "0/dataset"));
	ck_assert_uint_eq(references(&s, "types/kept"), 2);
	type = committed_type(&s, "0/user");
	SUCCEEDS(h5_object_extents(file, type, add_extent, &sum));
	SUCCEEDS(h5_tx_commit(file));
	SUCCEEDS(remove_object(&s, "0/user"));
	ck_assert_uint_eq(references(&s, "types/kept"), 1);
	SUCCEEDS(h5_tx_commit(file));
	assert_is_free(&s, &met);
	h5_extents_release(&met);
	scratch_close(&s.scratch);
	scratch_judge(JUDGE_TYPES, s.scratch.path);
	end(&s);
}
END_TEST

UNIT_MAIN_LOOPS("object_removal", {names_are_counted, VERSIONS}, {extents_are_what_libhdf5_frees, VERSIONS},
		{objects_go, VERSIONS}, {space_is_used_again, VERSIONS},
		{uses_of_types_are_counted, VERSIONS})

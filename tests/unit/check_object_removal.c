/* Objects are named and removed: all space that only they use is given up, and nothing else. */
#include "base/checked.h"
#include "base/error.h"
#include "base/extents.h"
#include "base/seen.h"
#include "change/object_header_insert.h"
#include "change/open.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "dataset/removal.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "format/layout.h"
#include "format/shared_message.h"
#include "object/attribute_write.h"
#include "object/group.h"
#include "object/group_write.h"
#include "object/path.h"
#include "scratch.h"
#include "store/object_header.h"

#include <stdio.h>
#include <string.h>

/* ---- a file with objects to remove ---- */

static const unsigned versions[] = {0, 2, 3};
enum { VERSIONS = sizeof versions / sizeof *versions, OBJECTS_MAX = 64 };

/* An object. */
struct removable {
	char path[64];
	uint64_t bytes; /* that it has, as libhdf5 sees it */
};

struct scene {
	struct scratch scratch;
	struct fault_io fault;
	struct removable objects[OBJECTS_MAX];
	unsigned count, staying; /* the first ones go; the last ones stay */
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
	char name[64], path[512], stays[8];
	struct removable object;
	FILE *f;

	open_scene(s, "", version);
	snprintf(name, sizeof name, "object_removal-%u.txt", version);
	scratch_fixture(name, path);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (fscanf(f, "%63s %ju %7s", object.path, &object.bytes, stays) == 3) {
		ck_assert_uint_lt(s->count + s->staying, OBJECTS_MAX);
		if (strcmp(stays, "stays"))
			s->objects[s->count++] = object;
		else
			s->objects[OBJECTS_MAX - ++s->staying] = object;
	}
	fclose(f);
	ck_assert_uint_gt(s->count, 20);
}

static void end(struct scene *s)
{
	scratch_release(&s->scratch);
	fault_io_release(&s->fault);
}

static int look_up(const struct scene *s, const char *path, size_t n, uint64_t *address)
{
	struct h5_file *file;

	return h5_path_find(s->scratch.file, h5_file_superblock(s->scratch.file)->root, path, n, &file,
			    address);
}

static uint64_t find(const struct scene *s, const char *path)
{
	uint64_t address;

	SUCCEEDS(look_up(s, path, strlen(path), &address));
	return address;
}

/* Removes the link of that path. */
static int remove_link(struct scene *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	uint64_t group;
	int rc = look_up(s, path, (size_t)(slash - path), &group);

	return rc ? rc : h5_group_remove(s->scratch.file, group, slash + 1, strlen(slash + 1));
}

/* Removes an object with its only name. */
static int remove_object(struct scene *s, const char *path)
{
	struct h5_file *file = s->scratch.file;
	uint64_t address;
	bool last;
	int rc = look_up(s, path, strlen(path), &address);

	if (!rc)
		rc = h5_unit_begin(file);
	if (rc)
		return rc;
	rc = remove_link(s, path);
	if (!rc)
		rc = h5_object_drop_name(file, address, &last);
	if (!rc)
		rc = last ? h5_object_remove(file, address) : -EINVAL;
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
	for (unsigned i = 0; i < OBJECTS_MAX; i++) {
		const struct removable *object = &s.objects[i];
		struct sum sum = {0, &met};

		if (!*object->path)
			continue;
		SUCCEEDS(h5_object_extents(s.scratch.file, find(&s, object->path), add_extent, &sum));
		ck_assert_msg(sum.bytes == object->bytes, "%s: %ju bytes, not %ju", object->path,
			      (uintmax_t)sum.bytes, (uintmax_t)object->bytes);
	}
	ck_assert_int_eq(h5_object_extents(s.scratch.file, find(&s, "0"), stop, NULL), 77);
	h5_extents_release(&met);
	end(&s);
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
static void visit_all(struct h5_file *file, uint64_t address, struct h5_seen *seen, struct sum *sum)
{
	const struct h5_object *object;
	const struct h5_link *link;
	struct h5_link_walk walk;
	struct h5_lru_entry *ref;
	int rc = h5_seen_add(seen, address);

	if (rc == -EEXIST)
		return;
	SUCCEEDS(h5_object_extents(file, address, add_extent, sum));
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
	struct sum sum = {0, &met};
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
	judge(&s, true, "full full-of-many keep keep-chunks");
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

/* ---- failures ---- */

/* Numbers of failing allocations: the first ones, then fewer and fewer. */
static unsigned long next_failure(unsigned long n)
{
	return n + 1 + n / 5;
}

/* What the object has, and how often its datatype is used. */
struct state {
	uint64_t bytes;
	uint32_t uses;
};

static struct state state_of(const struct scene *s, const char *path, const char *type)
{
	struct h5_extents met = {0};
	struct sum sum = {0, &met};
	struct state state = {0};

	SUCCEEDS(h5_object_extents(s->scratch.file, find(s, path), add_extent, &sum));
	h5_extents_release(&met);
	state.bytes = sum.bytes;
	if (type)
		state.uses = references(s, type);
	return state;
}

static void fail_at_each_allocation(struct scene *s, const char *path, const char *type)
{
	const struct state before = state_of(s, path, type);
	int rc = -ENOMEM;

	for (unsigned long n = 1; rc; n = next_failure(n)) {
		struct state after;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = remove_object(s, path);
		fault_alloc_count(false);
		fault_alloc_disarm();
		if (!rc)
			break;
		ck_assert_int_eq(rc, -ENOMEM);
		after = state_of(s, path, type);
		ck_assert_uint_eq(before.bytes, after.bytes);
		ck_assert_uint_eq(before.uses, after.uses);
	}
}

START_TEST(what_fails_changes_nothing)
{
	struct scene s;

	begin(&s, versions[_i]);
	for (unsigned i = (unsigned)_i % 2; i < s.count; i += 2)
		fail_at_each_allocation(&s, s.objects[i].path, NULL);
	end(&s);
	open_scene(&s, "types-", versions[_i]);
	fail_at_each_allocation(&s, "0/few", "types/kept");
	fail_at_each_allocation(&s, "0/dataset", "types/kept");
	fail_at_each_allocation(&s, "0/user", "types/kept");
	end(&s);
}
END_TEST

/* Each read fails once, of a file of which nothing is cached. */
START_TEST(failing_reads)
{
	unsigned failures = 0;
	struct scene s;

	begin(&s, versions[_i]);
	for (unsigned i = (unsigned)_i; i < s.count; i += 6) {
		const struct removable *object = &s.objects[i];
		bool failed = true;

		for (unsigned long n = 1; failed; n = next_failure(n)) {
			int rc;

			scratch_close(&s.scratch);
			scratch_open(&s.scratch);
			fault_call_arm(CALL_FAILS, n, false);
			rc = remove_object(&s, object->path);
			failed = fault_call_disarm();
			ck_assert_int_eq(rc, failed ? -EIO : 0);
			if (failed)
				ck_assert_uint_eq(state_of(&s, object->path, NULL).bytes, object->bytes);
			failures += failed;
		}
	}
	ck_assert_uint_gt(failures, 30);
	end(&s);
}
END_TEST

/* A failing write or sync of the commit. */
START_TEST(failing_commits)
{
	unsigned failures = 0;

	for (unsigned long n = 1;; n++) {
		struct scene s;
		bool failed;

		begin(&s, versions[_i]);
		for (unsigned i = 0; i < s.count; i += 5)
			SUCCEEDS(remove_object(&s, s.objects[i].path));
		fault_io_arm(&s.fault, n);
		failed = h5_tx_commit(s.scratch.file);
		if (!fault_io_disarm(&s.fault)) {
			end(&s);
			break;
		}
		failures++;
		if (failed && h5_tx_is_writable(s.scratch.file)) {
			h5_tx_abandon(s.scratch.file);
			for (unsigned i = 0; i < s.count; i++)
				ck_assert_uint_eq(state_of(&s, s.objects[i].path, NULL).bytes,
						  s.objects[i].bytes);
			for (unsigned i = 0; i < s.count; i++)
				SUCCEEDS(remove_object(&s, s.objects[i].path));
			SUCCEEDS(h5_tx_commit(s.scratch.file));
		}
		end(&s);
	}
	ck_assert_uint_gt(failures, 5);
}
END_TEST

/* ---- kills ---- */

/* In each state, all that has a name is as it was in the first one. */
static const char judge_states[] =
	"import sys, glob, h5py\n"
	"def facts(o):\n"
	"    attributes = {n: a.tobytes() if hasattr(a, 'tobytes') else a for n, a in o.attrs.items()}\n"
	"    if isinstance(o, h5py.Dataset): return attributes, o.shape, o.external or repr(o[()])\n"
	"    return attributes, len(o) if isinstance(o, h5py.Group) else o.dtype\n"
	"first, counts = None, set()\n"
	"for path in sorted(glob.glob(sys.argv[1] + '/state-*.h5')):\n"
	"    with h5py.File(path, 'r') as f:\n"
	"        all = {g + '/' + n: facts(f[g][n]) for g in f for n in f[g]}\n"
	"        first = first or all\n"
	"        assert all == {n: first[n] for n in all}, path\n"
	"        counts.add(len(all))\n"
	"assert len(counts) > 8, counts\n";

/* Fills space that was given up, as soon as it is free. */
static void fill(struct scene *s, size_t n)
{
	static const uint8_t garbage[4096] = {0xa5, 0x5a, 1, 2, 3};

	for (; n; n -= sizeof garbage) {
		uint64_t address;

		SUCCEEDS(h5_tx_allocate(s->scratch.file, H5_ALLOCATE_METADATA, sizeof garbage, &address));
		SUCCEEDS(h5_tx_put(s->scratch.file, address, garbage, sizeof garbage));
	}
}

START_TEST(killed_between_cells)
{
	struct crash_image image = {0};
	char prefix[128];
	struct scene s;

	begin(&s, versions[_i]);
	crash_image_load(&image, s.scratch.path);
	s.fault.record = true;
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned j = i; j < s.count; j += 4)
			if (j % 2)
				SUCCEEDS(remove_object(&s, s.objects[j].path));
		fill(&s, 1 << 14);
		SUCCEEDS(h5_tx_commit(s.scratch.file));
	}
	snprintf(prefix, sizeof prefix, "%s/state", scratch_folder());
	ck_assert_uint_gt(crash_image_save_states(&image, &s.fault, prefix), 10);
	scratch_run("/usr/bin/python3 -c \"%s\" %s", judge_states, scratch_folder());
	end(&s);
	free(image.data);
}
END_TEST

/* ---- damage ---- */

struct subset {
	const struct h5_extents *of;
	const char *path;
};

static int assert_inside(void *arg, uint64_t address, uint64_t n)
{
	const struct subset *subset = arg;

	ck_assert_msg(h5_extents_covers(subset->of, address, n), "%s: %ju bytes at %ju are not its own",
		      subset->path, (uintmax_t)n, (uintmax_t)address);
	return 0;
}

/* Bytes of the object change, one at a time: no bytes of others are ever taken for its own. Structures of
 * superblock 3 have checksums; the heap of names of external files has none. */
START_TEST(damage_gives_up_nothing_else)
{
	struct crash_image image = {0};
	struct scene s;
	unsigned refused = 0;
	uint64_t random = 1;

	begin(&s, 3);
	crash_image_load(&image, s.scratch.path);
	for (unsigned i = 0; i < s.count; i++) {
		const char *path = s.objects[i].path;
		uint64_t address = find(&s, path);
		struct h5_extents met = {0};
		struct sum sum = {0, &met};
		const struct subset subset = {&met, path};

		SUCCEEDS(h5_object_extents(s.scratch.file, address, add_extent, &sum));
		for (unsigned j = 0; j < 60 && !strstr(path, "external"); j++) {
			const struct h5_file_set_options options = {.block_cache = 1 << 20,
								    .chunk_cache = 1 << 20};
			struct h5_file_set *set;
			const struct h5_extent *e;
			uint8_t *byte;
			int rc;

			random = random * 6364136223846793005u + 1442695040888963407u;
			e = &met.list[(random >> 40) % met.count];
			byte = &image.data[e->address + (random >> 33) % h5_min(e->size, 100)];
			*byte = (uint8_t)(*byte ^ 1u << j % 8);
			SUCCEEDS(h5_file_set_open_memory(image.data, image.size, &options, &set));
			rc = h5_object_extents(h5_file_set_root(set), address, assert_inside,
					       (void *)(uintptr_t)&subset);
			ck_assert(!rc || rc == -EUCLEAN || rc == -ENOTSUP);
			refused += rc != 0;
			h5_file_set_close(set);
			*byte = (uint8_t)(*byte ^ 1u << j % 8);
		}
		h5_extents_release(&met);
	}
	ck_assert_uint_gt(refused, 100);
	free(image.data);
	end(&s);
}
END_TEST

static void overwrite(struct scene *s, uint64_t address, const void *bytes)
{
	FILE *f;

	scratch_close(&s->scratch);
	f = fopen(s->scratch.path, "r+b");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, (long)address, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(bytes, 1, 8, f), 8);
	fclose(f);
	scratch_open(&s->scratch);
}

/* The address of the chunk index or data of a dataset. */
static uint64_t layout_address(const struct scene *s, const char *path)
{
	struct h5_layout layout;
	struct h5_reader r;
	size_t n;
	uint8_t *body = scratch_message(&s->scratch, find(s, path), H5_MSG_LAYOUT, &n);

	r = h5_file_reader(s->scratch.file, body, n, 0);
	SUCCEEDS(h5_layout_decode(&r, &layout));
	free(body);
	return layout.chunked.address;
}

/* A version 1 B-tree has no checksum: its second chunk lies where the first one does, over the superblock,
 * over the tree itself, across the end of the file, nowhere. Nothing of the data is given up, and of the rest
 * nothing if two blocks overlap. */
START_TEST(blocks_that_cannot_be)
{
	enum { HEAD = 24, KEY = 8 + 3 * 8, CHILD = 8 };
	struct h5_extents met = {0};
	uint8_t child[8], first[8];
	uint64_t address, tree, file_end;
	struct scene s;

	begin(&s, 0);
	address = find(&s, "0/fixed");
	tree = layout_address(&s, "0/fixed");
	file_end = h5_file_end(s.scratch.file);
	SUCCEEDS(h5_file_read(s.scratch.file, tree + HEAD + KEY, first, sizeof first));
	const uint64_t places[] = {h5_uint_from(first, 8), 8, tree + 100, file_end - 8, UINT64_MAX - 16};
	h5_uint_to(child, places[_i], sizeof child);
	overwrite(&s, tree + HEAD + KEY + CHILD + KEY, child);
	ck_assert_int_eq(h5_object_extents(s.scratch.file, address, stop, NULL), -EUCLEAN);
	SUCCEEDS(remove_object(&s, "0/fixed"));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	for (int i = 0; i < 3; i++) {
		uint64_t at;

		SUCCEEDS(h5_tx_allocate(s.scratch.file, H5_ALLOCATE_RAW, 8, &at));
		SUCCEEDS(h5_tx_write(s.scratch.file, at, "new data", 8));
		SUCCEEDS(h5_tx_commit(s.scratch.file));
		SUCCEEDS(h5_extents_add(&met, at, 8));
	}
	/* The header is free if no two blocks overlap. What was beyond the end is now a new block of the
	 * group. */
	ck_assert_int_eq(h5_extents_touches(&met, address, 200), _i == 1 || _i == 4);
	ck_assert(!h5_extents_touches(&met, tree, 100));
	ck_assert(!h5_extents_touches(&met, h5_uint_from(first, 8), 1));
	h5_extents_release(&met);
	end(&s);
}
END_TEST

static const char judge_rest[] =
	"import sys, h5py\n"
	"with h5py.File(sys.argv[1], 'r+') as f:\n"
	"    names = [g + '/' + n for g in f for n in f[g]]\n"
	"    for n in names: isinstance(f[n], h5py.Dataset) and (f[n].external or f[n][()])\n"
	"    for n in names: del f[n]\n";

/* What is damaged stays; the object goes all the same. */
START_TEST(damaged_objects_go)
{
	static const char *const paths[] = {"0/fixed", "1/growing", "3/tree"};
	const char *path = paths[_i];
	struct h5_extents met = {0};
	struct scene s;
	uint64_t address;
	bool last;

	begin(&s, 3);
	address = find(&s, path);
	overwrite(&s, layout_address(&s, path), "damaged!");
	ck_assert_int_eq(h5_object_extents(s.scratch.file, address, stop, NULL), -EUCLEAN);
	SUCCEEDS(remove_object(&s, path));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	SUCCEEDS(h5_extents_add(&met, address, 100)); /* of its header */
	assert_is_free(&s, &met);
	h5_extents_release(&met);
	address = find(&s, "2/paged");
	overwrite(&s, address, "damaged!");
	SUCCEEDS(h5_object_drop_name(s.scratch.file, address, &last));
	ck_assert(!last);
	SUCCEEDS(h5_object_remove(s.scratch.file, address));
	SUCCEEDS(remove_link(&s, "2/paged"));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	scratch_close(&s.scratch);
	scratch_run("/usr/bin/python3 -c \"%s\" %s", judge_rest, s.scratch.path);
	end(&s);
}
END_TEST

UNIT_MAIN_LOOPS("object_removal", {names_are_counted, VERSIONS}, {extents_are_what_libhdf5_frees, VERSIONS},
		{no_byte_is_of_two_objects, RARE}, {objects_go, VERSIONS}, {space_is_used_again, VERSIONS},
		{uses_of_types_are_counted, VERSIONS}, {what_fails_changes_nothing, VERSIONS},
		{failing_reads, VERSIONS}, {failing_commits, VERSIONS}, {killed_between_cells, VERSIONS},
		{damage_gives_up_nothing_else, 1}, {damaged_objects_go, 3}, {blocks_that_cannot_be, 5})

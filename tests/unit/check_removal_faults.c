/* Objects whose removal fails, is killed or meets damage. */
#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "dataset/removal.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "format/layout.h"
#include "removal_scene.h"

#include <stdio.h>
#include <string.h>

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

static struct state state_of(const struct removal_scene *s, const char *path, const char *type)
{
	struct h5_extents met = {0};
	struct removal_sum sum = {0, &met};
	struct state state = {0};

	SUCCEEDS(h5_object_extents(s->scratch.file, removal_find(s, path), removal_add_extent, &sum));
	h5_extents_release(&met);
	state.bytes = sum.bytes;
	if (type)
		state.uses = removal_references(s, type);
	return state;
}

static void fail_at_each_allocation(struct removal_scene *s, const char *path, const char *type)
{
	const struct state before = state_of(s, path, type);
	int rc = -ENOMEM;

	for (unsigned long n = 1; rc; n = next_failure(n)) {
		struct state after;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = removal_remove(s, path);
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
	struct removal_scene s;

	removal_begin(&s, removal_versions[_i]);
	for (unsigned i = (unsigned)_i % 2; i < s.count; i += 2)
		fail_at_each_allocation(&s, s.objects[i].path, NULL);
	removal_end(&s);
	removal_open(&s, "types-", removal_versions[_i]);
	fail_at_each_allocation(&s, "0/few", "types/kept");
	fail_at_each_allocation(&s, "0/dataset", "types/kept");
	fail_at_each_allocation(&s, "0/user", "types/kept");
	removal_end(&s);
}
END_TEST

/* Each read fails once, of a file of which nothing is cached. */
START_TEST(failing_reads)
{
	unsigned failures = 0;
	struct removal_scene s;

	removal_begin(&s, removal_versions[_i]);
	for (unsigned i = (unsigned)_i; i < s.count; i += 6) {
		const struct removable *object = &s.objects[i];
		bool failed = true;

		for (unsigned long n = 1; failed; n = next_failure(n)) {
			int rc;

			scratch_close(&s.scratch);
			scratch_open(&s.scratch);
			fault_call_arm(CALL_FAILS, n, false);
			rc = removal_remove(&s, object->path);
			failed = fault_call_disarm();
			ck_assert_int_eq(rc, failed ? -EIO : 0);
			if (failed)
				ck_assert_uint_eq(state_of(&s, object->path, NULL).bytes, object->bytes);
			failures += failed;
		}
	}
	ck_assert_uint_gt(failures, 30);
	removal_end(&s);
}
END_TEST

/* A failing write or sync of the commit. */
START_TEST(failing_commits)
{
	unsigned failures = 0;

	for (unsigned long n = 1;; n++) {
		struct removal_scene s;
		bool failed;

		removal_begin(&s, removal_versions[_i]);
		for (unsigned i = 0; i < s.count; i += 5)
			SUCCEEDS(removal_remove(&s, s.objects[i].path));
		fault_io_arm(&s.fault, n);
		failed = h5_tx_commit(s.scratch.file);
		if (!fault_io_disarm(&s.fault)) {
			removal_end(&s);
			break;
		}
		failures++;
		if (failed && h5_tx_is_writable(s.scratch.file)) {
			h5_tx_abandon(s.scratch.file);
			for (unsigned i = 0; i < s.count; i++)
				ck_assert_uint_eq(state_of(&s, s.objects[i].path, NULL).bytes,
						  s.objects[i].bytes);
			for (unsigned i = 0; i < s.count; i++)
				SUCCEEDS(removal_remove(&s, s.objects[i].path));
			SUCCEEDS(h5_tx_commit(s.scratch.file));
		}
		removal_end(&s);
	}
	ck_assert_uint_gt(failures, 5);
}
END_TEST

/* ---- kills ---- */

/* In each state, all that has a name is as it was in the first one. Of many chunks, which libhdf5 takes long
 * to read, those at the ends, and in some of the states all. */
static const char judge_states[] =
	"import sys, glob, h5py\n"
	"def data(o, whole):\n"
	"    if whole or not o.chunks or len(o) < 300: return o.external or repr(o[()])\n"
	"    return repr((o[:9], o[-9:]))\n"
	"def facts(o, whole):\n"
	"    attributes = {n: a.tobytes() if hasattr(a, 'tobytes') else a for n, a in o.attrs.items()}\n"
	"    if isinstance(o, h5py.Dataset): return attributes, o.shape, data(o, whole)\n"
	"    return attributes, len(o) if isinstance(o, h5py.Group) else o.dtype\n"
	"def all(f, whole): return {g + '/' + n: facts(f[g][n], whole) for g in f for n in f[g]}\n"
	"counts = set()\n"
	"for i, path in enumerate(sorted(glob.glob(sys.argv[1] + '/state-*.h5'))):\n"
	"    with h5py.File(path, 'r') as f:\n"
	"        if not i: first = all(f, False), all(f, True)\n"
	"        whole = i % 20 == 0\n"
	"        found = all(f, whole)\n"
	"        assert found == {n: first[whole][n] for n in found}, path\n"
	"        counts.add(len(found))\n"
	"assert len(counts) > 8, counts\n";

/* Fills space that was given up, as soon as it is free. */
static void fill(struct removal_scene *s, size_t n)
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
	struct removal_scene s;

	removal_begin(&s, removal_versions[_i]);
	crash_image_load(&image, s.scratch.path);
	s.fault.record = true;
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned j = i; j < s.count; j += 4)
			if (j % 2)
				SUCCEEDS(removal_remove(&s, s.objects[j].path));
		fill(&s, 1 << 14);
		SUCCEEDS(h5_tx_commit(s.scratch.file));
	}
	snprintf(prefix, sizeof prefix, "%s/state", s.scratch.folder);
	ck_assert_uint_gt(crash_image_save_states(&image, &s.fault, prefix), 10);
	scratch_own_judge("/usr/bin/python3 -c \"%s\" %s", judge_states, s.scratch.folder);
	removal_end(&s);
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
	struct removal_scene s;
	unsigned refused = 0;
	uint64_t random = 1;

	removal_begin(&s, 3);
	crash_image_load(&image, s.scratch.path);
	for (unsigned i = 0; i < s.count; i++) {
		const char *path = s.objects[i].path;
		uint64_t address = removal_find(&s, path);
		struct h5_extents met = {0};
		struct removal_sum sum = {0, &met};
		const struct subset subset = {&met, path};

		SUCCEEDS(h5_object_extents(s.scratch.file, address, removal_add_extent, &sum));
		for (unsigned j = 0; j < 60 && !strstr(path, "external"); j++) {
			const struct h5_file_set_options options = {.block_cache = 1 << 20,
								    .chunk_cache = 1 << 20};
			struct h5_file_set *set;
			const struct h5_extent *e;
			uint8_t *byte;
			int rc;

			random = random * 6364136223846793005u + 1442695040888963407u;
			e = h5_extents_from(&met, (random >> 40) % (h5_extents_last(&met)->address + 1));
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
	removal_end(&s);
}
END_TEST

static void overwrite(struct removal_scene *s, uint64_t address, const void *bytes)
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
static uint64_t layout_address(const struct removal_scene *s, const char *path)
{
	struct h5_layout layout;
	struct h5_reader r;
	size_t n;
	uint8_t *body = scratch_message(&s->scratch, removal_find(s, path), H5_MSG_LAYOUT, &n);

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
	struct removal_scene s;

	removal_begin(&s, 0);
	address = removal_find(&s, "0/fixed");
	tree = layout_address(&s, "0/fixed");
	file_end = h5_file_end(s.scratch.file);
	SUCCEEDS(h5_file_read(s.scratch.file, tree + HEAD + KEY, first, sizeof first));
	const uint64_t places[] = {h5_uint_from(first, 8), 8, tree + 100, file_end - 8, UINT64_MAX - 16};
	h5_uint_to(child, places[_i], sizeof child);
	overwrite(&s, tree + HEAD + KEY + CHILD + KEY, child);
	ck_assert_int_eq(h5_object_extents(s.scratch.file, address, removal_stop, NULL), -EUCLEAN);
	SUCCEEDS(removal_remove(&s, "0/fixed"));
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
	removal_end(&s);
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
	struct removal_scene s;
	uint64_t address;
	bool last;

	removal_begin(&s, 3);
	address = removal_find(&s, path);
	overwrite(&s, layout_address(&s, path), "damaged!");
	ck_assert_int_eq(h5_object_extents(s.scratch.file, address, removal_stop, NULL), -EUCLEAN);
	SUCCEEDS(removal_remove(&s, path));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	SUCCEEDS(h5_extents_add(&met, address, 100)); /* of its header */
	removal_assert_is_free(&s, &met);
	h5_extents_release(&met);
	address = removal_find(&s, "2/paged");
	overwrite(&s, address, "damaged!");
	SUCCEEDS(h5_object_drop_name(s.scratch.file, address, &last));
	ck_assert(!last);
	SUCCEEDS(h5_object_remove(s.scratch.file, address));
	SUCCEEDS(removal_unlink(&s, "2/paged"));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	scratch_close(&s.scratch);
	scratch_own_judge("/usr/bin/python3 -c \"%s\" %s", judge_rest, s.scratch.path);
	removal_end(&s);
}
END_TEST

UNIT_MAIN_LOOPS("removal_faults", {what_fails_changes_nothing, REMOVAL_VERSIONS},
		{failing_reads, REMOVAL_VERSIONS}, {failing_commits, REMOVAL_VERSIONS},
		{killed_between_cells, REMOVAL_VERSIONS}, {damage_gives_up_nothing_else, 1},
		{damaged_objects_go, 3}, {blocks_that_cannot_be, 5})

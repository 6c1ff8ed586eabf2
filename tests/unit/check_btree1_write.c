/* Chunks set and removed through version 1 B-trees (tests/fixtures/btree1_write.py). Our reader is asked
 * after every commit; libhdf5 at the end, which does the same in a file of its own
 * (tests/judge/btree1_judge.py).
 */
#include "base/checked.h"
#include "base/error.h"
#include "base/writer.h"
#include "change/object_header_edit.h"
#include "chunk_index/chunk_index.h"
#include "crash_image.h"
#include "index_target.h"
#include "store/btree1.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNKS_MAX = 1000 };

static FILE *jobs; /* what is to be judged */

struct tree {
	struct target t;
	char operations_path[192];
	FILE *operations;
	struct fault_io fault;
	uint64_t chunk_size;
	uint64_t counts[H5_RANK_MAX], count; /* chunks */
	uint32_t value[CHUNKS_MAX];	     /* of each chunk; 0: not stored */
	uint32_t random;
};

static uint32_t draw(struct tree *t, uint32_t below)
{
	t->random = t->random * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)t->random * below >> 32);
}

static void to_scaled(const struct tree *t, uint64_t n, uint64_t *scaled)
{
	for (unsigned d = t->t.space.rank; d-- > 0; n /= t->counts[d])
		scaled[d] = n % t->counts[d];
}

/* ---- what our reader finds ---- */

static uint32_t stored_value(struct tree *t, const struct h5_chunk *chunk)
{
	uint8_t stored[256], raw[64];
	uLongf n = sizeof raw;

	if (chunk->size > sizeof stored)
		ck_abort_msg("%ju bytes", (uintmax_t)chunk->size);
	SUCCEEDS(h5_file_read(t->t.file, chunk->address, stored, chunk->size));
	if (!t->t.filtered || chunk->filter_mask)
		return (uint32_t)h5_uint_from(stored, 4);
	if (uncompress(raw, &n, stored, chunk->size) != Z_OK)
		ck_abort_msg("a chunk at %ju", (uintmax_t)chunk->address);
	return (uint32_t)h5_uint_from(raw, 4);
}

static uint32_t look(struct tree *t, uint64_t n)
{
	uint64_t scaled[H5_RANK_MAX];
	struct h5_chunk chunk;

	to_scaled(t, n, scaled);
	SUCCEEDS(h5_chunk_index_lookup(t->t.index, NULL, scaled, &chunk));
	return chunk.address == H5_UNDEF ? 0 : stored_value(t, &chunk);
}

static void check_all(struct tree *t)
{
	uint64_t stored = 0;

	for (uint64_t n = 0; n < t->count; n++) {
		uint32_t found = look(t, n);

		if (found != t->value[n])
			ck_abort_msg("%s: chunk %ju is %u, not %u", t->t.name, (uintmax_t)n, found,
				     t->value[n]);
		stored += found != 0;
	}
	ck_assert_uint_eq(target_count(&t->t), stored);
}

/* ---- a dataset in a copy of the file ---- */

static struct tree *tree_init(unsigned k, const char *name)
{
	struct tree *t = calloc(1, sizeof *t);
	char fixture[64];

	ck_assert_ptr_nonnull(t);
	snprintf(fixture, sizeof fixture, "btree1_write-%u.h5", k);
	target_init(&t->t, fixture, name, &t->fault);
	ck_assert_int_eq(h5_chunk_index_can_change(t->t.index), 0);
	snprintf(t->operations_path, sizeof t->operations_path, "%s.operations", t->t.scratch.path);
	t->operations = fopen(t->operations_path, "w");
	ck_assert_ptr_nonnull(t->operations);
	t->chunk_size = t->t.layout.chunked.element_size;
	t->count = 1;
	for (unsigned d = 0; d < t->t.space.rank; d++) {
		uint64_t chunk = t->t.layout.chunked.dims[d];

		t->counts[d] = (t->t.space.dims[d] + chunk - 1) / chunk;
		t->count *= t->counts[d];
		t->chunk_size *= chunk;
	}
	ck_assert_uint_le(t->count, CHUNKS_MAX);
	for (uint64_t n = 0; n < t->count; n++) {
		t->value[n] = look(t, n);
		ck_assert_uint_eq(t->value[n],
				  (strchr(name, 'b') && n % 3 == 0) || (*name == 's' && n < 121) ? n + 1 : 0);
	}
	t->random = k * 31 + (uint32_t)name[0];
	return t;
}

/* The file stays for the judge. */
static void tree_release(struct tree *t)
{
	target_close(&t->t);
	fault_io_release(&t->fault);
	fclose(t->operations);
	free(t);
}

/* ---- libhdf5 ---- */

static void begin(void)
{
	char path[128];

	snprintf(path, sizeof path, "%s/jobs", scratch_folder());
	jobs = fopen(path, "w");
	ck_assert_ptr_nonnull(jobs);
}

static void add_job(const struct tree *t, const char *path, const char *operations)
{
	fprintf(jobs, "%s %s %s %s\n", t->t.scratch.original, path, t->t.name, operations);
}

static void judge(void)
{
	fclose(jobs);
	scratch_judge_python("tests/judge/btree1_judge.py %s/jobs", scratch_folder());
}

/* ---- changes ---- */

static int try_set(struct tree *t, uint64_t n, uint32_t value)
{
	uint64_t scaled[H5_RANK_MAX];
	uint8_t raw[64], stored[256];
	uLongf size = sizeof stored;
	struct h5_chunk chunk = {.size = t->chunk_size}, old;
	int rc;

	for (size_t i = 0; i < t->chunk_size; i += 4)
		h5_uint_to(raw + i, value, 4);
	memcpy(stored, raw, t->chunk_size);
	if (t->t.filtered) {
		ck_assert_int_eq(compress2(stored, &size, raw, t->chunk_size, 6), Z_OK);
		chunk.size = size;
	}
	to_scaled(t, n, scaled);
	rc = h5_chunk_index_lookup(t->t.index, NULL, scaled, &old);
	if (!rc)
		rc = h5_tx_allocate(t->t.file, H5_ALLOCATE_RAW, chunk.size, &chunk.address);
	if (!rc)
		rc = h5_tx_write(t->t.file, chunk.address, stored, chunk.size);
	if (!rc)
		rc = h5_chunk_index_set(t->t.index, scaled, &chunk);
	if (!rc && old.address != H5_UNDEF)
		h5_tx_free(t->t.file, old.address, old.size);
	if (!rc) {
		t->value[n] = value;
		fprintf(t->operations, "set %ju %u\n", (uintmax_t)n, value);
	}
	return rc;
}

static void set(struct tree *t, uint64_t n, uint32_t value)
{
	int rc = try_set(t, n, value);

	ck_assert_msg(!rc, "%s %ju: %s", t->t.name, (uintmax_t)n, h5_error_last()->text);
}

static void clear(struct tree *t, uint64_t n)
{
	const struct h5_chunk none = {.address = H5_UNDEF};
	uint64_t scaled[H5_RANK_MAX];
	int rc;

	to_scaled(t, n, scaled);
	rc = h5_chunk_index_set(t->t.index, scaled, &none);
	ck_assert_msg(!rc, "%s %ju: %s", t->t.name, (uintmax_t)n, h5_error_last()->text);
	t->value[n] = 0;
}

static void commit(struct tree *t)
{
	SUCCEEDS(target_commit(&t->t));
}

static int free_chunk(void *arg, const struct h5_chunk *chunk)
{
	struct tree *t = arg;

	ck_assert_uint_ne(stored_value(t, chunk), 0);
	h5_tx_free(t->t.file, chunk->address, chunk->size);
	return 0;
}

static void trim(struct tree *t, uint64_t first)
{
	int rc = h5_chunk_index_trim(t->t.index, first, free_chunk, t);

	SUCCEEDS(rc);
	for (uint64_t n = first * (t->count / t->counts[0]); n < t->count; n++)
		t->value[n] = 0;
	fprintf(t->operations, "trim %ju\n", (uintmax_t)first);
}

static const unsigned ks[] = {2, 3, 32, 80};
static const char *const names[] = {"1", "1fb", "2b", "2f", "3", "3fb"};

typedef void test_tree(struct tree *t);

static void with_each(test_tree *test)
{
	begin();
	for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
		for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
			struct tree *t = tree_init(ks[i], names[j]);

			test(t);
			commit(t);
			check_all(t);
			add_job(t, t->t.scratch.path, t->operations_path);
			tree_release(t);
		}
	judge();
}

/* ---- tests ---- */

static void append_all(struct tree *t)
{
	for (uint64_t n = 0; n < t->count; n++) {
		set(t, n, (uint32_t)n + 1000);
		if (n % 37 == 5) {
			commit(t);
			check_all(t);
		}
	}
}

START_TEST(appending_makes_the_tree_of_libhdf5)
{
	with_each(append_all);
}
END_TEST

static void insert_at_random(struct tree *t)
{
	for (uint64_t i = 0; i < t->count; i++) {
		set(t, draw(t, (uint32_t)t->count), (uint32_t)i + 1000);
		if (!draw(t, 40)) {
			commit(t);
			check_all(t);
		}
	}
}

START_TEST(inserting_anywhere_makes_the_tree_of_libhdf5)
{
	with_each(insert_at_random);
}
END_TEST

static void insert_and_trim(struct tree *t)
{
	for (unsigned round = 0; round < 12; round++) {
		uint64_t many = draw(t, (uint32_t)t->count / 2);

		for (uint64_t i = 0; i < many; i++)
			set(t, draw(t, (uint32_t)t->count), round * 1000 + (uint32_t)i + 1);
		if (draw(t, 3))
			commit(t);
		trim(t, round == 5 ? 0 : draw(t, (uint32_t)t->counts[0]));
		if (draw(t, 3))
			commit(t);
		check_all(t);
	}
}

START_TEST(trimming_makes_the_tree_of_libhdf5)
{
	with_each(insert_and_trim);
}
END_TEST

/* Each chunk by itself, which libhdf5 does where it shrinks along the second dimension. */
static void insert_and_clear(struct tree *t)
{
	if (t->t.space.rank < 2)
		return;
	for (unsigned round = 0; round < 6; round++) {
		uint64_t many = draw(t, (uint32_t)t->count / 2), first = draw(t, (uint32_t)t->counts[1]);

		for (uint64_t i = 0; i < many; i++)
			set(t, draw(t, (uint32_t)t->count), round * 1000 + (uint32_t)i + 1);
		if (draw(t, 3))
			commit(t);
		for (uint64_t i = 0; i < t->count; i++) {
			uint64_t n = i * 7919 % t->count, scaled[H5_RANK_MAX] = {0};

			to_scaled(t, n, scaled);
			if (scaled[1] >= first)
				clear(t, n);
			if (!draw(t, 200))
				commit(t);
		}
		fprintf(t->operations, "trim1 %ju\n", (uintmax_t)first);
		check_all(t);
	}
}

START_TEST(clearing_makes_the_tree_of_libhdf5)
{
	with_each(insert_and_clear);
}
END_TEST

/* ---- a commit that is cut short ---- */

/* Every chunk is what it was before the commit, or what it is afterwards. */
static void check_image(const struct tree *t, const struct crash_image *image, const uint32_t *before)
{
	const struct h5_file_set_options options = {.block_cache = 4 << 20, .chunk_cache = 1 << 20};
	struct tree cut = {.t = {.header = t->t.header}};
	struct h5_file_set *set;

	strcpy(cut.t.name, t->t.name);
	SUCCEEDS(h5_file_set_open_memory(image->data, image->size, &options, &set));
	cut.t.file = h5_file_set_root(set);
	SUCCEEDS(target_load(&cut.t));
	memcpy(cut.counts, t->counts, sizeof cut.counts);
	for (uint64_t n = 0; n < t->count; n++) {
		uint32_t found = look(&cut, n);

		if (found != before[n] && found != t->value[n])
			ck_abort_msg("%s: chunk %ju is %u, neither %u nor %u", t->t.name, (uintmax_t)n, found,
				     before[n], t->value[n]);
	}
	h5_chunk_index_close(cut.t.index);
	h5_file_set_close(set);
}

/* The file as it is now, for libhdf5. */
static void judge_image(struct tree *t, const struct crash_image *image)
{
	static unsigned number;
	char path[192], operations[192];

	number++;
	fflush(t->operations);
	snprintf(operations, sizeof operations, "%s/cut%u.operations", scratch_folder(), number);
	scratch_copy(t->operations_path, operations);
	snprintf(path, sizeof path, "%s/cut%u.h5", scratch_folder(), number);
	crash_image_save(image, path);
	add_job(t, path, operations);
}

/* Commits what is pending, and looks at the file between any two writes; libhdf5 at each seventh. */
static void cut_commit(struct tree *t, struct crash_image *image, const uint32_t *before)
{
	static unsigned cuts;
	bool committing = false;

	fault_io_mark(&t->fault, 0);
	commit(t);
	for (size_t i = 0; i < t->fault.count; i++) {
		const struct fault_event *e = &t->fault.events[i];

		committing |= e->kind == FAULT_MARK;
		if (e->file)
			continue;
		if (committing && e->kind == FAULT_WRITE) {
			if (cuts++ % 7 == 0)
				judge_image(t, image);
			check_image(t, image, before);
		}
		crash_image_apply(image, e, e->size);
	}
	check_image(t, image, t->value);
	fault_io_release(&t->fault);
}

static void cut_commits(struct tree *t)
{
	struct crash_image image = {0};

	t->fault.record = true;
	crash_image_load(&image, t->t.scratch.path);
	for (unsigned round = 0; round < 5; round++) {
		uint32_t before[CHUNKS_MAX];

		memcpy(before, t->value, sizeof before);
		fprintf(t->operations, "part\n");
		/* What is removed is not set again in the same commit. */
		if (round == 3)
			trim(t, draw(t, (uint32_t)t->counts[0]));
		for (unsigned k = 0; k < 60 && round != 3; k++)
			set(t, round % 2 ? draw(t, (uint32_t)t->count) : (round / 2) * 60 + k,
			    (round + 1) * 1000 + k);
		cut_commit(t, &image, before);
	}
	free(image.data);
	fprintf(t->operations, "whole\n");
}

START_TEST(any_part_of_a_commit_is_readable)
{
	with_each(cut_commits);
}
END_TEST

/* Leaves that are full, wherever they and their roots lie: one that splits in place would lose chunks until
 * a root that moves is switched. */
START_TEST(a_leaf_splits_together_with_what_is_above)
{
	unsigned moved = 0;

	begin();
	for (unsigned i = 0; i < 24; i++) {
		uint32_t before[CHUNKS_MAX];
		struct crash_image image = {0};
		struct tree *t;
		uint64_t root;
		char name[8];

		snprintf(name, sizeof name, "s%u", i);
		t = tree_init(32, name);
		root = t->t.layout.chunked.address;
		t->fault.record = true;
		crash_image_load(&image, t->t.scratch.path);
		memcpy(before, t->value, sizeof before);
		fprintf(t->operations, "part\n");
		set(t, 121, 1000);
		moved += h5_chunk_index_layout(t->t.index)->address != root;
		cut_commit(t, &image, before);
		fprintf(t->operations, "whole\n");
		free(image.data);
		add_job(t, t->t.scratch.path, t->operations_path);
		tree_release(t);
	}
	ck_assert_uint_gt(moved, 4);
	ck_assert_uint_lt(moved, 20);
	judge();
}
END_TEST

/* ---- failures ---- */

/* One write fails: the index has the chunk or not, and all others, and goes on. */
static bool fail_at(unsigned k, const char *name, unsigned long call)
{
	struct tree *t = tree_init(k, name);
	bool failed = false;

	fault_io_arm(&t->fault, call);
	t->fault.error = -ENOSPC;
	for (unsigned i = 0; i < 30; i++) {
		uint64_t n = draw(t, (uint32_t)t->count);
		int rc = try_set(t, n, i + 1000);

		if (rc) {
			uint32_t found = look(t, n);

			ck_assert_int_eq(rc, -ENOSPC);
			ck_assert(found == t->value[n] || found == i + 1000);
			t->value[n] = found;
			failed = true;
			check_all(t);
		}
	}
	if (failed) {
		commit(t);
		check_all(t);
		target_close(&t->t);
		target_open(&t->t);
		check_all(t);
	}
	tree_release(t);
	return failed;
}

START_TEST(a_failed_write_loses_nothing)
{
	static const struct {
		unsigned k;
		const char *name;
	} some[] = {{2, "2fb"}, {32, "1fb"}, {80, "2b"}};

	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		unsigned long call = 1;

		begin();
		while (fail_at(some[i].k, some[i].name, call))
			call++;
		ck_assert_uint_gt(call, 30);
		judge();
	}
}
END_TEST

START_TEST(what_the_format_cannot_hold)
{
	const uint64_t far[] = {UINT64_MAX - 1, UINT64_MAX / 2}, near[] = {1, 1};
	struct h5_chunk chunk = {.address = 4096, .size = 16};
	struct tree *t;

	begin();
	t = tree_init(32, "2fb");
	ck_assert_int_eq(h5_chunk_index_set(t->t.index, far, &chunk), -EFBIG);
	chunk.size = UINT64_C(1) << 32;
	ck_assert_int_eq(h5_chunk_index_set(t->t.index, near, &chunk), -EFBIG);
	check_all(t);
	ck_assert(!h5_tx_is_pending(t->t.file));
	tree_release(t);
	judge();
}
END_TEST

/* ---- trees that cannot be ---- */

enum { ENTRIES = 4, KEY = 8 + 2 * 8 }; /* in a node of K = 2, rank 1 */

/* A full node. Key i is the chunk at first + i * step; the child `first_child` is the first of its children.
 */
static void put_node(struct h5_file *file, uint64_t address, uint8_t level, uint64_t first, uint64_t step,
		     uint64_t first_child)
{
	uint64_t children[ENTRIES], offsets[ENTRIES + 1][2] = {{0}};
	struct h5_btree1_key keys[ENTRIES + 1];
	const struct h5_btree1_node node = {.type = H5_BTREE1_CHUNK,
					    .level = level,
					    .count = ENTRIES,
					    .left = H5_UNDEF,
					    .right = H5_UNDEF,
					    .children = children,
					    .keys = keys};
	const size_t n = h5_btree1_node_room(H5_BTREE1_CHUNK, 1, ENTRIES / 2, 8, 8);
	uint8_t bytes[256];
	struct h5_writer w = h5_writer_init(bytes, n, 8, 8);

	ck_assert_uint_le(n, sizeof bytes);
	for (unsigned i = 0; i <= ENTRIES; i++) {
		offsets[i][0] = first + i * step;
		keys[i] = (struct h5_btree1_key){.size = 4, .offsets = offsets[i]};
	}
	for (unsigned i = 0; i < ENTRIES; i++)
		children[i] = first_child + i;
	ck_assert_int_eq(h5_btree1_node_encode(&w, &node, 1), 0);
	SUCCEEDS(h5_tx_put(file, address, bytes, n));
}

/* A chunk that splits all nodes from the leaf to the root needs a new root; there are no more than so many
 * levels. */
START_TEST(too_many_levels)
{
	const size_t room = h5_btree1_node_room(H5_BTREE1_CHUNK, 1, ENTRIES / 2, 8, 8);
	const uint64_t scaled[] = {5};

	begin();
	for (unsigned levels = H5_BTREE1_LEVELS - 1; levels <= H5_BTREE1_LEVELS; levels++) {
		const bool fits = levels < H5_BTREE1_LEVELS;
		struct h5_chunk chunk = {.address = 4096, .size = 4}, found;
		struct tree *t = tree_init(2, "1");
		uint64_t at;
		int rc;

		SUCCEEDS(h5_tx_allocate(t->t.file, H5_ALLOCATE_METADATA, levels * room, &at));
		put_node(t->t.file, at, 0, 2, 2, 4096);
		for (unsigned level = 1; level < levels; level++)
			put_node(t->t.file, at + level * room, (uint8_t)level, 2, 2 * ENTRIES,
				 at + (level - 1) * room);
		t->t.layout.chunked.address = at + (levels - 1) * room;
		SUCCEEDS(target_open_index(&t->t));
		rc = h5_chunk_index_set(t->t.index, scaled, &chunk);
		ck_assert_msg(rc == (fits ? 0 : -EFBIG), "%u levels: %d, %s", levels, rc,
			      h5_error_last()->text);
		ck_assert(fits || strstr(h5_error_last()->text, "too many levels"));
		/* The index still finds the chunks that it had. */
		SUCCEEDS(h5_chunk_index_lookup(t->t.index, NULL, (const uint64_t[]){4}, &found));
		ck_assert_uint_eq(found.address, 4097);
		SUCCEEDS(h5_chunk_index_lookup(t->t.index, NULL, scaled, &found));
		ck_assert_uint_eq(found.address, fits ? 4096 : H5_UNDEF);
		tree_release(t);
	}
	fclose(jobs);
}
END_TEST

static int set_k(const void *k, uint8_t *body, size_t n)
{
	ck_assert_uint_ge(n, 3);
	h5_uint_to(body + 1, *(const unsigned *)k, 2);
	return 0;
}

/* A node above the leaves that leads nowhere, and nodes without room. */
START_TEST(nodes_that_cannot_be)
{
	const uint64_t scaled[] = {1};
	const struct h5_chunk chunk = {.address = 4096, .size = 4};
	const uint8_t empty[] = {1, 0, 0}; /* level, entries */
	const unsigned none = 0;
	struct tree *t;
	uint64_t root;

	begin();
	t = tree_init(32, "1b");
	root = t->t.layout.chunked.address;
	SUCCEEDS(h5_tx_patch(t->t.file, root + 5, empty, sizeof empty, H5_STAGE_BLOCK));
	h5_tx_forget(t->t.file, root);
	SUCCEEDS(target_open_index(&t->t));
	ck_assert_int_eq(h5_chunk_index_set(t->t.index, scaled, &chunk), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "empty node of level 1"));
	tree_release(t);
	t = tree_init(3, "1b");
	SUCCEEDS(h5_header_update(t->t.file, h5_file_superblock(t->t.file)->extension, H5_MSG_BTREE_K, set_k,
				  &none));
	ck_assert_int_eq(h5_chunk_index_set(t->t.index, scaled, &chunk), -EUCLEAN);
	tree_release(t);
	fclose(jobs);
}
END_TEST

UNIT_MAIN("btree1_write", appending_makes_the_tree_of_libhdf5, inserting_anywhere_makes_the_tree_of_libhdf5,
	  trimming_makes_the_tree_of_libhdf5, clearing_makes_the_tree_of_libhdf5,
	  any_part_of_a_commit_is_readable, a_leaf_splits_together_with_what_is_above,
	  a_failed_write_loses_nothing, what_the_format_cannot_hold, too_many_levels, nodes_that_cannot_be)

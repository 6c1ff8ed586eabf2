/* Changes of version 2 B-trees that fail, and trees that are damaged or make no sense. */
#include "base/error.h"
#include "base/lookup3.h"
#include "btree2_model.h"
#include "crash_image.h"
#include "fault_alloc.h"

#include <errno.h>
#include <string.h>

static int ignore_chunk(void *arg, const struct h5_chunk *chunk)
{
	(void)arg;
	(void)chunk;
	return 0;
}

/* Each write of some change fails once: the tree is as it was, and takes the change then. */
START_TEST(a_failed_change_changes_nothing)
{
	const uint64_t shape[3] = {20, 20, 1};
	struct fault_io fault = {.error = -EIO};
	struct model *m = model_begin("filtered", 288, shape, &fault);
	unsigned failures = 0;

	model_shake(m, 1, 100); /* which makes the tree */
	for (unsigned round = 0; round < 300; round++) {
		size_t i = (size_t)model_choose(m, model_size(m));
		bool sets = model_choose(m, 100) < 70;
		int rc = -EIO;

		for (unsigned n = 1; rc; n++) {
			fault_io_arm(&fault, n);
			rc = sets ? model_set(m, i) : model_remove(m, i);
			fault_io_disarm(&fault);
			ck_assert(!rc || rc == -EIO);
			failures += rc != 0;
			if (rc && round % 10 == 0)
				model_check(m);
		}
		if (round % 50 == 0)
			model_reopen(m);
	}
	ck_assert_uint_gt(failures, 100);
	for (unsigned n = 1;; n++) {
		int rc;

		fault_io_arm(&fault, n);
		rc = h5_chunk_index_trim(m->t.index, 7, ignore_chunk, NULL);
		fault_io_disarm(&fault);
		if (!rc)
			break;
		ck_assert_int_eq(rc, -EIO);
		model_check(m);
	}
	memset(m->values + 7 * 20, 0, 13 * 20 * sizeof *m->values);
	model_reopen(m);
	model_judge(m, 5);
	model_end(m);
	fault_io_release(&fault);
}
END_TEST

/* Each allocation of a change fails once. If the change is made all the same, it is taken back. Returns how
 * often it has failed. */
static unsigned fail_allocations(struct model *m, size_t i, bool sets)
{
	uint64_t scaled[H5_RANK_MAX];
	struct h5_chunk chunk;
	unsigned failed = 0;
	bool fired = true;

	model_scaled(m, i, scaled);
	for (unsigned long n = 1; fired; n++) {
		int rc;

		h5_unit_begin(m->t.file);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = sets ? btree2_set(&m->t, scaled, 1) : btree2_remove(&m->t, scaled);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%lu: %d", n, rc);
		if (!rc) {
			SUCCEEDS(h5_chunk_index_lookup(m->t.index, NULL, scaled, &chunk));
			ck_assert_int_eq(chunk.address != H5_UNDEF, sets);
		}
		ck_assert_int_eq(h5_unit_end(m->t.file, rc ? rc : -ECANCELED), rc ? rc : -ECANCELED);
		failed += rc != 0;
	}
	return failed;
}

/* Of some changes, while a tree of small nodes grows and becomes empty again. */
START_TEST(every_allocation_can_fail)
{
	enum { CHUNKS = 961, STEP = 5, LAST = 150 };
	const uint64_t shape[3] = {31, 31, 1};
	struct model *m = model_begin("random", 170, shape, NULL);
	unsigned failed = 0;

	for (size_t i = 0; i < 2 * CHUNKS; i++) {
		const size_t k = i * (i < CHUNKS ? 50 : 90) % CHUNKS;
		const bool sets = i < CHUNKS;

		if (i % STEP == 0 || i > 2 * CHUNKS - LAST)
			failed += fail_allocations(m, k, sets);
		if (i % (20 * STEP) == 0)
			model_check(m);
		SUCCEEDS(sets ? model_set(m, k) : model_remove(m, k));
		if (i + 1 == CHUNKS)
			model_reopen(m);
	}
	ck_assert_uint_gt(failed, 1000);
	model_reopen(m);
	model_end(m);
}
END_TEST

/* Bytes of a block that the checksum vouches for, and that are wrong; more often where its fields are. */
static void damage(struct model *m, const struct btree2_block *block, uint8_t *image)
{
	uint8_t *bytes = image + block->address;

	for (uint64_t n = 1 + model_choose(m, 3); n; n--) {
		size_t at = (size_t)(model_choose(m, 2) ? model_choose(m, block->size - 4)
							: block->size - 5 - model_choose(m, block->size / 3));

		bytes[at] = (uint8_t)(model_choose(m, 2) ? model_choose(m, 256)
							 : bytes[at] + model_choose(m, 3) - 1);
	}
	h5_uint_to(bytes + block->size - 4, h5_lookup3(bytes, block->size - 4, 0), 4);
}

/* Whatever the result: no memory is hurt, and no walk is endless. */
START_TEST(damaged_trees)
{
	enum { BLOCKS = 1000 };
	const uint64_t shape[3] = {40, 40, 1};
	struct model *m = model_begin("random", 512, shape, NULL);
	struct crash_image image = {0}, changed = {0};
	struct btree2_tree tree = {.target = &m->t, .blocks = calloc(BLOCKS, sizeof *tree.blocks)};
	unsigned refused = 0;

	model_shake(m, 1600, 95);
	SUCCEEDS(target_commit(&m->t));
	btree2_check(&tree);
	ck_assert_uint_ge(tree.header.depth, 2);
	ck_assert_uint_le(tree.block_count, BLOCKS);
	target_close(&m->t);
	crash_image_load(&image, m->t.scratch.path);
	for (unsigned round = 0; round < 400; round++) {
		/* The header, the root, and the others. */
		size_t i =
			(size_t)(model_choose(m, 2) ? model_choose(m, 2) : model_choose(m, tree.block_count));

		crash_image_copy(&changed, &image);
		damage(m, &tree.blocks[i], changed.data);
		crash_image_save(&changed, m->t.scratch.path);
		scratch_open(&m->t.scratch);
		m->t.file = m->t.scratch.file;
		refused += target_load(&m->t) != 0;
		for (unsigned n = 0; m->t.index && n < 40; n++) {
			uint64_t scaled[H5_RANK_MAX];

			model_scaled(m, (size_t)model_choose(m, model_size(m)), scaled);
			refused += (n % 2 ? btree2_set(&m->t, scaled, n) : btree2_remove(&m->t, scaled)) != 0;
		}
		if (m->t.index)
			refused +=
				h5_chunk_index_trim(m->t.index, model_choose(m, 40), ignore_chunk, NULL) != 0;
		target_close(&m->t);
	}
	ck_assert_uint_gt(refused, 400);
	free(tree.blocks);
	free(image.data);
	free(changed.data);
	model_end(m);
}
END_TEST

/* The root's children are nowhere: only its own records are found, and each lookup releases it once. */
START_TEST(children_that_are_nowhere)
{
	enum { BLOCKS = 200 };
	const uint64_t shape[3] = {20, 20, 1};
	struct model *m = model_begin("random", 512, shape, NULL);
	struct crash_image image = {0};
	struct btree2_tree tree = {.target = &m->t, .blocks = calloc(BLOCKS, sizeof *tree.blocks)};
	const struct btree2_block *root = tree.blocks + 1;
	unsigned found = 0;
	uint8_t *bytes;

	model_shake(m, 300, 100);
	SUCCEEDS(target_commit(&m->t));
	btree2_check(&tree);
	ck_assert_uint_ge(tree.header.depth, 1);
	ck_assert_uint_le(tree.block_count, BLOCKS);
	target_close(&m->t);
	crash_image_load(&image, m->t.scratch.path);
	bytes = image.data + root->address;
	for (unsigned i = 0; i <= tree.header.root_records; i++)
		memset(bytes + 6 + tree.header.root_records * tree.header.record_size +
			       i * tree.header.levels[tree.header.depth].pointer_size,
		       255, 8);
	h5_uint_to(bytes + root->size - 4, h5_lookup3(bytes, root->size - 4, 0), 4);
	crash_image_save(&image, m->t.scratch.path);
	target_open(&m->t);
	for (size_t i = 0; i < model_size(m); i++) {
		uint64_t scaled[H5_RANK_MAX];
		struct h5_chunk chunk;
		int rc;

		model_scaled(m, i, scaled);
		rc = h5_chunk_index_lookup(m->t.index, NULL, scaled, &chunk);
		ck_assert(!rc || rc == -EUCLEAN);
		found += !rc && chunk.address != H5_UNDEF;
	}
	ck_assert_uint_eq(found, tree.header.root_records);
	free(tree.blocks);
	free(image.data);
	model_end(m);
}
END_TEST

/* Sets the checksum of a block again. */
static void seal(uint8_t *bytes, size_t n)
{
	h5_uint_to(bytes + n - 4, h5_lookup3(bytes, n - 4, 0), 4);
}

/* What the file is after a change of a sound tree's header, or of its root, which has leaves. */
static void open_changed(struct model *m, const struct btree2_tree *tree, const struct crash_image *sound,
			 struct crash_image *changed,
			 void (*change)(const struct btree2_tree *tree, uint8_t *header, uint8_t *root,
					unsigned arg),
			 unsigned arg)
{
	const struct btree2_block *header = tree->blocks, *root = tree->blocks + 1;

	target_close(&m->t);
	crash_image_copy(changed, sound);
	change(tree, changed->data + header->address, changed->data + root->address, arg);
	seal(changed->data + header->address, header->size);
	seal(changed->data + root->address, root->size);
	crash_image_save(changed, m->t.scratch.path);
	target_open(&m->t);
}

enum { DEPTH = 12, ROOT = 16, ROOT_RECORDS = 24, RECORDS = 26 }; /* offsets in the header */

/* Nothing, or one of the fields that say that there is something. */
static void take_root(const struct btree2_tree *tree, uint8_t *header, uint8_t *root, unsigned arg)
{
	(void)tree;
	(void)root;
	memset(header + ROOT, 0xff, 8);
	h5_uint_to(header + DEPTH, arg == 1, 2);
	h5_uint_to(header + ROOT_RECORDS, arg == 2, 2);
	h5_uint_to(header + RECORDS, arg == 3, 8);
}

/* One record more than there are. */
static void count_one_more(const struct btree2_tree *tree, uint8_t *header, uint8_t *root, unsigned arg)
{
	(void)root;
	(void)arg;
	h5_uint_to(header + RECORDS, tree->header.records + 1, 8);
}

/* In the root: what leads to leaf i. */
static uint8_t *pointer(const struct btree2_tree *tree, uint8_t *root, unsigned i)
{
	return root + 6 + tree->header.root_records * tree->header.record_size +
	       i * tree->header.levels[tree->header.depth].pointer_size;
}

/* The last leaf but one is the last one, too. The number of its records has one byte. */
static void share_leaf(const struct btree2_tree *tree, uint8_t *header, uint8_t *root, unsigned arg)
{
	uint8_t *last = pointer(tree, root, tree->header.root_records),
		*other = pointer(tree, root, tree->header.root_records - 1u);

	(void)arg;
	h5_uint_to(header + RECORDS, tree->header.records + other[8] - last[8], 8);
	memcpy(last, other, tree->header.levels[tree->header.depth].pointer_size);
}

/* The last leaf has no records. */
static void empty_leaf(const struct btree2_tree *tree, uint8_t *header, uint8_t *root, unsigned arg)
{
	uint8_t *last = pointer(tree, root, tree->header.root_records);
	uint8_t *leaf = root - tree->blocks[1].address + h5_uint_from(last, 8);

	(void)arg;
	h5_uint_to(header + RECORDS, tree->header.records - last[8], 8);
	last[8] = 0;
	seal(leaf, 6 + 4);
}

/* A tree so deep that the numbers of records beneath the root have eight bytes; the sum of two has more. */
static void overflow(const struct btree2_tree *tree, uint8_t *header, uint8_t *root, unsigned arg)
{
	enum { DEEP = 15, POINTER = 8 + 1 + 8 };
	uint8_t *child = root + 6 + tree->header.record_size;

	(void)arg;
	h5_uint_to(header + DEPTH, DEEP, 2);
	h5_uint_to(header + ROOT_RECORDS, 1, 2);
	for (unsigned i = 0; i < 2; i++) {
		h5_uint_to(child + i * POINTER, 4096 + i * 4096, 8);
		child[i * POINTER + 8] = 1;
		h5_uint_to(child + i * POINTER + 9, UINT64_C(1) << 63, 8);
	}
	seal(root, 6 + tree->header.record_size + 2 * POINTER + 4);
}

static int trim_all(struct model *m)
{
	return h5_chunk_index_trim(m->t.index, 0, ignore_chunk, NULL);
}

START_TEST(trees_that_contradict_themselves)
{
	enum { BLOCKS = 200 };
	const uint64_t shape[3] = {20, 20, 1}, scaled[H5_RANK_MAX] = {1, 1};
	struct model *m = model_begin("random", 512, shape, NULL);
	struct crash_image image = {0}, changed = {0};
	struct btree2_tree tree = {.target = &m->t, .blocks = calloc(BLOCKS, sizeof *tree.blocks)};

	model_shake(m, 150, 100);
	SUCCEEDS(target_commit(&m->t));
	btree2_check(&tree);
	ck_assert_uint_eq(tree.header.depth, 1);
	ck_assert_uint_ge(tree.header.root_records, 2);
	target_close(&m->t);
	crash_image_load(&image, m->t.scratch.path);
	for (unsigned arg = 0; arg < 4; arg++) {
		open_changed(m, &tree, &image, &changed, take_root, arg);
		ck_assert_int_eq(btree2_set(&m->t, scaled, 1), arg ? -EUCLEAN : 0);
	}
	open_changed(m, &tree, &image, &changed, count_one_more, 0);
	ck_assert_int_eq(btree2_set(&m->t, scaled, 1), -EUCLEAN);
	open_changed(m, &tree, &image, &changed, overflow, 0);
	ck_assert_int_eq(btree2_set(&m->t, scaled, 1), -EUCLEAN);
	ck_assert_msg(!!strstr(h5_error_last()->text, "more records than can be counted"), "%s",
		      h5_error_last()->text);
	open_changed(m, &tree, &image, &changed, share_leaf, 0);
	ck_assert_int_eq(trim_all(m), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "belongs to two places"));
	open_changed(m, &tree, &image, &changed, empty_leaf, 0);
	ck_assert_int_eq(trim_all(m), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "without records"));
	target_close(&m->t);
	crash_image_save(&image, m->t.scratch.path);
	target_open(&m->t);
	model_check(m);
	SUCCEEDS(trim_all(m));
	free(tree.blocks);
	free(image.data);
	free(changed.data);
	model_end(m);
}
END_TEST

/* Parameters that make no tree that can be changed. */
START_TEST(impossible_trees)
{
	static const struct {
		uint32_t node_size;
		uint8_t split_percent, merge_percent;
	} bad[] = {{0, 100, 40},  {10, 100, 40}, {80, 100, 40},	  {UINT32_MAX, 100, 40}, {2048, 103, 40},
		   {2048, 0, 40}, {2048, 1, 0},	 {2048, 100, 50}, {2048, 100, 0},	 {2048, 100, 90}};
	const uint64_t shape[3] = {20, 20, 1}, scaled[2] = {1, 1};
	struct model *m = model_begin("random", 2048, shape, NULL);

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int rc;

		m->t.layout.chunked.btree2.node_size = bad[i].node_size;
		m->t.layout.chunked.btree2.split_percent = bad[i].split_percent;
		m->t.layout.chunked.btree2.merge_percent = bad[i].merge_percent;
		SUCCEEDS(target_open_index(&m->t));
		rc = btree2_set(&m->t, scaled, 1);
		ck_assert_msg(rc == -ENOTSUP || rc == -EUCLEAN, "%zu: %d", i, rc);
		ck_assert(h5_chunk_index_layout(m->t.index)->address == H5_UNDEF);
	}
	model_check(m);
	model_end(m);
}
END_TEST

/* Leaves have room for four records, but inner nodes for two. */
START_TEST(a_tree_that_cannot_grow)
{
	enum { LEAF = 10 + 4 * 24 };
	const uint64_t shape[3] = {20, 20, 1};
	struct model *m = model_begin("random", LEAF, shape, NULL);

	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < 4; i++)
			SUCCEEDS(model_set(m, i * 3));
		for (size_t i = 0; i < 3; i++) {
			ck_assert_int_eq(model_set(m, 5 * i + 2), -ENOTSUP);
			model_check(m);
		}
		model_reopen(m);
		for (size_t i = 0; i < 4; i++)
			SUCCEEDS(model_remove(m, i * 3));
		model_reopen(m);
	}
	model_end(m);
}
END_TEST

UNIT_MAIN("btree2_faults", every_allocation_can_fail, a_tree_that_cannot_grow,
	  a_failed_change_changes_nothing, damaged_trees, children_that_are_nowhere,
	  trees_that_contradict_themselves, impossible_trees)

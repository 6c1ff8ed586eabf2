/* What follows units of change: stages, the journal, caches, blocks that were written meanwhile, and indexes.
 */
#include "change/btree2_write.h"
#include "change/watch.h"
#include "crash_image.h"
#include "fault_alloc.h"
#include "format/btree1.h"
#include "format/journal.h"
#include "index_target.h"
#include "unit_scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MUCH_RAW = 100000 };

/* The later stage counts, whether the unit succeeds or not. */
START_TEST(stages_stay)
{
	for (int fails = 0; fails < 2; fails++) {
		struct fault_io record = {.record = true};
		uint64_t first = 0, last = 0;
		struct scratch scratch;
		struct scene s = {0};

		scratch_init(&scratch, "dataset_latest.h5");
		scratch_wrap(&scratch, &record);
		scratch_open(&scratch);
		s.file = scratch.file;
		SUCCEEDS(scene_patch(&s, AT, 1, 10, H5_STAGE_OBJECT));
		SUCCEEDS(scene_patch(&s, AT + 100, 1, 10, H5_STAGE_INDEX));
		h5_unit_begin(s.file);
		SUCCEEDS(scene_patch(&s, AT, 2, 10, H5_STAGE_BLOCK));
		ck_assert_int_eq(h5_unit_end(s.file, -fails), -fails);
		SUCCEEDS(h5_tx_commit(s.file));
		for (size_t i = 0; i < record.count; i++)
			if (record.events[i].kind == FAULT_WRITE && !record.events[i].file) {
				first = last;
				last = record.events[i].offset;
			}
		ck_assert_uint_eq(first, AT + 100);
		ck_assert_uint_eq(last, AT);
		scratch_release(&scratch);
		fault_io_release(&record);
	}
}
END_TEST

/* ---- the journal ---- */

/* True: the record of the last commit has a hash of some of these bytes. */
static bool is_hashed(const struct scene *s, uint64_t at, uint64_t n)
{
	struct h5_journal_record record;
	struct crash_image journal = {0};
	bool found = false;
	char path[180];

	snprintf(path, sizeof path, "%s.h5fs-journal", s->scratch.path);
	crash_image_load(&journal, path);
	SUCCEEDS(h5_journal_record_decode(journal.data + H5_JOURNAL_HEADER, journal.size - H5_JOURNAL_HEADER,
					  &record));
	for (unsigned i = 0; i < record.extent_count; i++)
		found |= record.extents[i].offset < at + n &&
			 at < record.extents[i].offset + record.extents[i].size;
	h5_journal_record_release(&record);
	free(journal.data);
	return found;
}

static uint64_t write_raw(struct h5_file *file, size_t n)
{
	uint8_t *bytes = calloc(1, n);
	uint64_t at;

	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, n, &at));
	SUCCEEDS(h5_tx_write(file, at, bytes, n));
	free(bytes);
	return at;
}

/* The journal hashes the raw data of a unit only if it succeeds, and those that it gives up only if it fails.
 */
START_TEST(the_journal_follows)
{
	for (int fails = 0; fails < 2; fails++) {
		uint64_t before, much, little;
		struct scene s;

		scene_init(&s);
		before = write_raw(s.file, MUCH_RAW);
		h5_unit_begin(s.file);
		h5_tx_free(s.file, before, MUCH_RAW);
		much = write_raw(s.file, MUCH_RAW);
		little = write_raw(s.file, CHUNK);
		ck_assert_int_eq(h5_unit_end(s.file, -fails), -fails);
		SUCCEEDS(h5_tx_commit(s.file));
		ck_assert(is_hashed(&s, before, MUCH_RAW) == fails);
		ck_assert(is_hashed(&s, much, MUCH_RAW) == !fails);
		ck_assert(is_hashed(&s, little, CHUNK) == !fails);
		scene_release(&s);
	}
}
END_TEST

/* Raw data that change before the commit, by a write or by a hole, are hashed as they are then. */
START_TEST(the_journal_hashes_what_is_there)
{
	enum { SIZE = 1 << 18 };
	struct h5_journal_record record;
	struct crash_image journal = {0}, file = {0};
	uint8_t *bytes = calloc(1, SIZE);
	bool found = false;
	struct scene s;
	char path[180];
	uint64_t raw;

	ck_assert_ptr_nonnull(bytes);
	scene_init(&s);
	SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, SIZE, &raw));
	memset(bytes, 1, SIZE);
	SUCCEEDS(h5_tx_write(s.file, raw, bytes, SIZE / 2));
	SUCCEEDS(h5_tx_write(s.file, raw + SIZE / 2, bytes, SIZE / 2));
	SUCCEEDS(h5_tx_write(s.file, raw + 5000, "other", 5));
	ck_assert(h5_tx_punch(s.file, raw + SIZE / 2 + 8192, 4096));
	SUCCEEDS(h5_tx_commit(s.file));
	snprintf(path, sizeof path, "%s.h5fs-journal", s.scratch.path);
	crash_image_load(&journal, path);
	crash_image_load(&file, s.scratch.path);
	SUCCEEDS(h5_journal_record_decode(journal.data + H5_JOURNAL_HEADER, journal.size - H5_JOURNAL_HEADER,
					  &record));
	for (unsigned i = 0; i < record.extent_count; i++) {
		const struct h5_journal_extent *e = &record.extents[i];

		ck_assert_uint_le(e->offset + e->size, file.size);
		ck_assert_uint_eq(e->hash, h5_journal_hash(file.data + e->offset, e->size));
		found |= e->offset <= raw + 5000 && raw + 5000 < e->offset + e->size;
	}
	ck_assert(found);
	h5_journal_record_release(&record);
	free(journal.data);
	free(file.data);
	free(bytes);
	scene_release(&s);
}
END_TEST

/* Raw data that the journal has hashed are overwritten only after a sync. If that fails, even what was
 * pending before the unit is lost. */
START_TEST(a_failed_sync_takes_all)
{
	struct fault_io fault = {.error = -EIO};
	uint8_t data[CHUNK] = {1};
	struct scratch scratch;
	struct scene s = {0};
	uint64_t put, raw;

	scratch_init(&scratch, "dataset_latest.h5");
	scratch_wrap(&scratch, &fault);
	scratch_open(&scratch);
	s.file = scratch.file;
	SUCCEEDS(scene_patch(&s, AT, 1, 10, H5_STAGE_BLOCK));
	raw = write_raw(s.file, CHUNK);
	SUCCEEDS(h5_tx_commit(s.file));
	SUCCEEDS(scene_patch(&s, AT, 2, 10, H5_STAGE_BLOCK));
	put = scene_new_block(s.file, 3);
	h5_unit_begin(s.file);
	SUCCEEDS(h5_unit_save(s.file, &s.known, sizeof s.known));
	s.known.changes++;
	SUCCEEDS(scene_patch(&s, AT, 4, 10, H5_STAGE_BLOCK));
	SUCCEEDS(scene_patch(&s, put, 4, 10, H5_STAGE_BLOCK));
	scene_new_block(s.file, 16);
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_tx_write(s.file, raw, data, sizeof data), -EIO);
	ck_assert_int_eq(h5_unit_end(s.file, -EIO), -EIO);
	ck_assert(fault_io_disarm(&fault));
	scene_check_bytes(&s, AT, 1, 10);
	ck_assert_uint_eq(s.known.changes, 0);
	ck_assert(!h5_tx_is_writable(s.file));
	h5_unit_begin(s.file);
	ck_assert_int_eq(h5_unit_end(s.file, 0), -EROFS);
	scratch_release(&scratch);
	fault_io_release(&fault);
}
END_TEST

/* After a sync that fails, the success of another one proves nothing: all is over, and what was pending is
 * lost. */
START_TEST(a_commit_whose_sync_fails)
{
	struct fault_io fault = {.error = -EIO, .record = true};
	struct scratch scratch;
	struct scene s = {0};
	size_t calls;

	scratch_init(&scratch, "dataset_latest.h5");
	scratch_wrap(&scratch, &fault);
	scratch_open(&scratch);
	s.file = scratch.file;
	SUCCEEDS(scene_patch(&s, AT, 1, 10, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_commit(s.file));
	SUCCEEDS(scene_patch(&s, AT, 2, 10, H5_STAGE_BLOCK));
	calls = fault.count;
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_tx_commit(s.file), -EIO);
	ck_assert(fault_io_disarm(&fault));
	ck_assert_uint_eq(fault.count, calls);
	ck_assert(!h5_tx_is_writable(s.file) && !h5_tx_is_pending(s.file));
	scene_check_bytes(&s, AT, 1, 10);
	ck_assert_int_eq(scene_patch(&s, AT, 3, 10, H5_STAGE_BLOCK), -EROFS);
	SUCCEEDS(h5_tx_commit(s.file));
	ck_assert_uint_eq(fault.count, calls);
	scratch_release(&scratch);
	fault_io_release(&fault);
}
END_TEST

/* After h5_tx_abandon() there is nothing to commit. */
START_TEST(an_abandoned_write)
{
	struct scene s;

	scene_init(&s);
	SUCCEEDS(h5_tx_commit(s.file));
	ck_assert(!h5_tx_is_pending(s.file));
	write_raw(s.file, CHUNK);
	ck_assert(h5_tx_is_pending(s.file));
	h5_tx_abandon(s.file);
	ck_assert(!h5_tx_is_pending(s.file) && h5_tx_is_writable(s.file));
	scene_release(&s);
}
END_TEST

/* The next record has raw data of earlier commits too, unless they are many. */
START_TEST(the_next_record_covers_raw_data)
{
	struct scene s;
	uint64_t raw;

	scene_init(&s);
	raw = write_raw(s.file, CHUNK);
	SUCCEEDS(h5_tx_commit(s.file));
	for (uint8_t i = 0; i < 3; i++) {
		SUCCEEDS(scene_patch(&s, AT, i, 1, H5_STAGE_BLOCK));
		if (i == 1)
			write_raw(s.file, MUCH_RAW);
		SUCCEEDS(h5_tx_commit(s.file));
		ck_assert_int_eq(is_hashed(&s, raw, CHUNK), i < 2);
	}
	scene_release(&s);
}
END_TEST

/* ---- what was decoded ---- */

static int load(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	uint8_t *byte = malloc(1);

	(void)arg;
	ck_assert_ptr_nonnull(byte);
	SUCCEEDS(h5_file_read(file, address, byte, 1));
	*value = byte;
	*cost = 1;
	return 0;
}

static uint8_t decoded(struct h5_file *file, uint64_t address)
{
	static const struct h5_block_type type = {{"test", free}, load};
	struct h5_lru_entry *ref;
	uint8_t byte;

	SUCCEEDS(h5_file_block(file, &type, address, 0, NULL, &ref));
	byte = *(const uint8_t *)h5_lru_value(ref);
	h5_file_put(file, ref);
	return byte;
}

START_TEST(caches_follow)
{
	struct scene s;

	for (int fails = 0; fails < 2; fails++) {
		scene_init(&s);
		ck_assert_uint_eq(decoded(s.file, AT + 100), 1);
		ck_assert_uint_eq(decoded(s.file, s.put), 3);
		h5_unit_begin(s.file);
		SUCCEEDS(scene_patch(&s, AT + 100, 55, 10, H5_STAGE_BLOCK));
		SUCCEEDS(scene_patch(&s, s.put, 56, 10, H5_STAGE_BLOCK));
		ck_assert_uint_eq(decoded(s.file, AT + 100), 55);
		ck_assert_uint_eq(decoded(s.file, s.put), 56);
		ck_assert_int_eq(h5_unit_end(s.file, -fails), -fails);
		ck_assert_uint_eq(decoded(s.file, AT + 100), fails ? 1 : 55);
		ck_assert_uint_eq(decoded(s.file, s.put), fails ? 3 : 56);
		scene_release(&s);
	}
}
END_TEST

/* ---- more than memory holds of new blocks ---- */

/* Has the new blocks that are held written. */
static void flush(struct h5_file *file)
{
	enum { MUCH = 9 << 20 };
	uint8_t *bytes = calloc(1, MUCH);
	uint64_t at;

	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_METADATA, MUCH, &at));
	SUCCEEDS(h5_tx_put(file, at, bytes, MUCH));
	scene_new_block(file, 9);
	free(bytes);
}

START_TEST(blocks_are_written_meanwhile)
{
	uint8_t now[BLOCK], expected[BLOCK];
	struct scene s;
	uint64_t late;
	int fd;

	scene_init(&s);
	flush(s.file);
	late = scene_new_block(s.file, 77);
	h5_unit_begin(s.file);
	SUCCEEDS(scene_patch(&s, s.put, 33, BLOCK, H5_STAGE_BLOCK)); /* it is in the file already */
	SUCCEEDS(scene_patch(&s, late, 34, BLOCK, H5_STAGE_BLOCK));  /* this one is not */
	flush(s.file);
	ck_assert_int_eq(h5_unit_end(s.file, -EIO), -EIO);
	flush(s.file);
	SUCCEEDS(h5_tx_commit(s.file));
	fd = open(s.scratch.path, O_RDONLY);
	memset(expected, 3, sizeof expected);
	ck_assert_int_eq(pread(fd, now, sizeof now, (off_t)s.put), BLOCK);
	ck_assert_mem_eq(now, expected, sizeof now);
	memset(expected, 77, sizeof expected);
	ck_assert_int_eq(pread(fd, now, sizeof now, (off_t)late), BLOCK);
	ck_assert_mem_eq(now, expected, sizeof now);
	close(fd);
	scene_release(&s);
}
END_TEST

/* New blocks of a unit that hold much memory are written before its end, whatever lies before the file. */
START_TEST(new_blocks_of_a_unit_are_written_meanwhile)
{
	static const char *const files[] = {"header_edit_v2.h5", "header_edit_block.h5"};

	for (int i = 0; i < 2; i++) {
		struct fault_io record = {0};
		unsigned writes = 0;
		struct scratch s;

		scratch_init(&s, files[i]);
		scratch_wrap(&s, &record);
		scratch_open(&s);
		ck_assert_int_eq(h5_file_superblock(s.file)->base != 0, i);
		SUCCEEDS(h5_tx_commit(s.file));
		record.record = true;
		h5_unit_begin(s.file);
		flush(s.file);
		for (size_t k = 0; k < record.count; k++)
			writes += record.events[k].kind == FAULT_WRITE && !record.events[k].file;
		ck_assert_uint_gt(writes, 0);
		ck_assert_int_eq(h5_unit_end(s.file, -EIO), -EIO);
		scratch_release(&s);
		fault_io_release(&record);
	}
}
END_TEST

/* ---- chunk indexes ---- */

struct contents {
	uint64_t chunks, sum;
};

static int add_chunk(void *arg, const struct h5_chunk *chunk)
{
	struct contents *contents = arg;

	contents->chunks++;
	contents->sum = contents->sum * 31 + chunk->address + 7 * chunk->size;
	return 0;
}

static struct contents contents_of(const struct target *t)
{
	struct contents contents = {0};

	SUCCEEDS(h5_chunk_index_walk(t->index, add_chunk, &contents));
	return contents;
}

enum { FAR = 100 }; /* the first change of a chunk that is far from all others */

/* What the n-th change does. */
static int change_index(struct target *t, unsigned n)
{
	static const uint64_t far[] = {1000, 20000, 131500, 140000};
	const uint64_t scaled[H5_RANK_MAX] = {n < FAR ? n * 7 % 30 : far[n - FAR]};
	struct h5_chunk chunk = {.address = 800 + 8 * n, .size = 1 + n};

	if (n < FAR && n % 12 == 11)
		return h5_chunk_index_trim(t->index, 20, target_count_chunk, &(uint64_t){0});
	if (n < FAR && n % 4 == 3)
		chunk = (struct h5_chunk){.address = H5_UNDEF};
	return h5_chunk_index_set(t->index, scaled, &chunk);
}

/* The n-th change has taken effect. */
static void check_change(struct target *t, unsigned n)
{
	static const uint64_t far[] = {1000, 20000, 131500, 140000};
	const uint64_t first = n < FAR ? n * 7 % 30 : far[n - FAR];
	const bool trims = n < FAR && n % 12 == 11;

	for (uint64_t i = trims ? 20 : first; i < (trims ? 30 : first + 1); i++) {
		const uint64_t scaled[H5_RANK_MAX] = {i};
		struct h5_chunk chunk;

		SUCCEEDS(h5_chunk_index_lookup(t->index, NULL, scaled, &chunk));
		if (trims || (n < FAR && n % 4 == 3))
			ck_assert_uint_eq(chunk.address, H5_UNDEF);
		else
			ck_assert(chunk.address == 800 + 8 * n && (chunk.size == 1 + n || !t->filtered));
	}
}

/* Allocations of a change fail, one at a time: the index, in the file and in memory, is as it was. */
static void fail_change(struct target *t, unsigned n, unsigned stride)
{
	struct contents before = contents_of(t), after;
	const struct h5_chunk_layout layout = *h5_chunk_index_layout(t->index);
	int rc = -ENOMEM;

	for (unsigned long fail = 1; rc; fail += stride) {
		fault_alloc_arm(fail);
		fault_alloc_count(true);
		rc = change_index(t, n);
		fault_alloc_count(false);
		fault_alloc_disarm();
		if (!rc)
			break;
		ck_assert_int_eq(rc, -ENOMEM);
		ck_assert_mem_eq(h5_chunk_index_layout(t->index), &layout, sizeof layout);
		after = contents_of(t);
		ck_assert_uint_eq(after.chunks, before.chunks);
		ck_assert_uint_eq(after.sum, before.sum);
	}
	check_change(t, n);
}

START_TEST(indexes_are_as_they_were)
{
	static const struct {
		const char *file, *name;
		unsigned changes, stride;
	} cases[] = {{"btree1_write-2.h5", "1f", 48, 1},
		     {"btree2_write-empty.h5", "filtered", 48, 1},
		     {"chunk_index_write-plain.h5", "a", 24, 1},
		     /* all of its many blocks move with the first change */
		     {"chunk_index_write-crossing.h5", "a", 1, 101},
		     {"fixed_array_write-crossing-paged.h5", "a", 4, 7},
		     {"fixed_array_write-filtered.h5", "a", 24, 1}};
	struct contents before, after;
	struct target t;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		target_init(&t, cases[i].file, cases[i].name, NULL);
		for (unsigned n = 0; n < cases[i].changes; n++) {
			fail_change(&t, n, cases[i].stride);
			if (n % 16 == 15)
				SUCCEEDS(target_commit(&t));
		}
		SUCCEEDS(target_commit(&t));
		before = contents_of(&t);
		ck_assert_uint_gt(before.chunks, 0);
		target_close(&t);
		target_open(&t);
		after = contents_of(&t);
		ck_assert_uint_eq(after.chunks, before.chunks);
		ck_assert_uint_eq(after.sum, before.sum);
		target_release(&t);
	}
}
END_TEST

/* A record that is replaced where it lies changes with the blocks, which come before what leads to them; and
 * what leads to new ones follows. */
START_TEST(stages_of_indexes)
{
	static const struct {
		const char *file, *name;
		unsigned replaced, first; /* stages */
	} cases[] = {{"btree2_write-empty.h5", "filtered", H5_STAGE_BLOCK, H5_STAGE_INDEX},
		     {"btree1_write-2.h5", "1f", H5_STAGE_BLOCK + H5_BTREE1_LEVELS - 1, 0}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const uint64_t scaled[H5_RANK_MAX] = {1}, other[H5_RANK_MAX] = {2};
		struct h5_chunk chunk = {.address = 800, .size = 1};
		struct target t;

		target_init(&t, cases[i].file, cases[i].name, NULL);
		SUCCEEDS(h5_chunk_index_set(t.index, scaled, &chunk));
		SUCCEEDS(target_commit(&t));
		chunk.size++;
		SUCCEEDS(h5_chunk_index_set(t.index, scaled, &chunk));
		ck_assert(!h5_tx_changes_before(t.file, 0, h5_file_end(t.file), cases[i].replaced));
		ck_assert_uint_eq(h5_tx_latest_stage(t.file, 0, h5_file_end(t.file)), cases[i].replaced);
		SUCCEEDS(target_commit(&t));
		if (cases[i].first) {
			SUCCEEDS(h5_chunk_index_set(t.index, other, &chunk));
			ck_assert_uint_eq(h5_tx_latest_stage(t.file, 0, h5_file_end(t.file)), cases[i].first);
			SUCCEEDS(target_commit(&t));
		}
		target_release(&t);
	}
}
END_TEST

static int compare_first(void *arg, struct h5_reader record, int *rc)
{
	const uint8_t sought = *(const uint8_t *)arg, found = h5_read_u8(&record);

	(void)rc;
	return sought < found ? -1 : sought > found;
}

/* The latest stage of a change; the header of the tree changes then. */
static unsigned stage_of(const struct h5_btree2 *tree)
{
	const unsigned latest = h5_tx_latest_stage(tree->file, 0, h5_file_end(tree->file));

	ck_assert(!h5_tx_changes_before(tree->file, tree->address, 1, latest));
	SUCCEEDS(h5_tx_commit(tree->file));
	return latest;
}

/* An index gets a name once the object is stored, and loses one once the new names are stored. Indexes that
 * count uses change last. */
START_TEST(stages_of_indexes_of_names)
{
	static const struct {
		enum h5_btree2_type type;
		unsigned comes, goes;
	} cases[] = {{H5_BTREE2_LINK_NAME, H5_STAGE_NAME, H5_STAGE_UNNAME},
		     {H5_BTREE2_LINK_ORDER, H5_STAGE_NAME, H5_STAGE_UNNAME},
		     {H5_BTREE2_SHARED_MESSAGE, H5_STAGE_UNCOUNT, H5_STAGE_UNCOUNT},
		     {H5_BTREE2_ATTRIBUTE_NAME, H5_STAGE_INDEX, H5_STAGE_INDEX}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct h5_btree2_parameters parameters = {cases[i].type, 16, 512, 100, 40};
		struct h5_btree2 tree;
		struct scratch s;
		uint64_t address;

		scratch_init(&s, "dataset_latest.h5");
		scratch_open(&s);
		SUCCEEDS(h5_btree2_create(s.file, &parameters, &tree));
		address = tree.address;
		SUCCEEDS(h5_btree2_move(&tree)); /* it is in new space already */
		ck_assert_uint_eq(tree.address, address);
		SUCCEEDS(h5_tx_commit(s.file));
		for (uint8_t n = 1; n < 4; n++) {
			const uint8_t record[16] = {n};

			SUCCEEDS(h5_btree2_set(&tree, compare_first, &(uint8_t){n}, record));
			ck_assert_uint_eq(stage_of(&tree), cases[i].comes);
		}
		for (uint8_t n = 1; n < 4; n++) {
			SUCCEEDS(h5_btree2_remove(&tree, compare_first, &(uint8_t){n}));
			ck_assert_uint_eq(stage_of(&tree), cases[i].goes);
			ck_assert_uint_eq(tree.records, 3u - n);
		}
		SUCCEEDS(h5_btree2_set(&tree, compare_first, &(uint8_t){1}, (const uint8_t[16]){1}));
		h5_unit_begin(s.file);
		SUCCEEDS(h5_btree2_free(&tree));
		ck_assert(tree.address == H5_UNDEF && !tree.records);
		ck_assert_int_eq(h5_unit_end(s.file, -EIO), -EIO);
		ck_assert(tree.address == address && tree.records == 1);
		scratch_release(&s);
	}
}
END_TEST

/* ---- space ---- */

/* Bytes that could not be written are not in the file for those who read it. */
START_TEST(a_failed_write_does_not_move_the_end)
{
	enum { SIZE = 1 << 20 };
	static const uint8_t bytes[SIZE];
	struct fault_io fault = {.error = -EIO};
	struct scratch s;
	uint64_t address = 0;

	scratch_init(&s, "header_edit_v2.h5");
	scratch_wrap(&s, &fault);
	scratch_open(&s);
	SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, SIZE, &address));
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_tx_write(s.file, address, bytes, SIZE), -EIO);
	ck_assert(fault_io_disarm(&fault));
	ck_assert_uint_le(h5_file_end(s.file), address);
	SUCCEEDS(h5_tx_write(s.file, address, bytes, SIZE));
	ck_assert_uint_eq(h5_file_end(s.file), address + SIZE);
	scratch_release(&s);
	fault_io_release(&fault);
}
END_TEST

/* Space that is given up may be used again before the commit. If memory is short meanwhile, the journal must
 * not take the new block there for a part of the raw data as well. */
START_TEST(given_up_without_memory)
{
	enum { EXTENTS = 10 }; /* so many take no memory for one more, which the hole makes */
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		const uint8_t data[3 * CHUNK] = {1};
		struct scratch scratch;
		uint64_t raw, hole;

		scratch_init(&scratch, "dataset_latest.h5");
		scratch_open(&scratch);
		SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, (2 * EXTENTS + 2) * CHUNK, &raw));
		for (unsigned i = 0; i < EXTENTS; i++)
			SUCCEEDS(h5_tx_write(scratch.file, raw + 2 * i * CHUNK, data,
					     i < EXTENTS - 1 ? CHUNK : sizeof data));
		hole = raw + 2 * (EXTENTS - 1) * CHUNK + CHUNK;
		fault_alloc_arm(n);
		fault_alloc_count(true);
		h5_tx_free(scratch.file, hole, CHUNK);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		if (!fired)
			ck_assert_uint_lt(scene_new_block(scratch.file, 7) - hole, CHUNK);
		else
			scene_new_block(scratch.file, 7);
		SUCCEEDS(h5_tx_commit(scratch.file));
		scratch_release(&scratch);
	}
}
END_TEST

/* Each has blocks of its own, of all kinds. */
START_TEST(new_blocks_without_memory)
{
	struct contents contents;
	struct target t;

	target_init(&t, "chunk_index_write-plain.h5", "a", NULL);
	for (unsigned n = 0; n < 4; n++) {
		fail_change(&t, FAR + n, 1);
		contents = contents_of(&t);
		ck_assert_uint_eq(contents.chunks, n + 1);
	}
	SUCCEEDS(target_commit(&t));
	target_close(&t);
	target_open(&t);
	contents = contents_of(&t);
	ck_assert_uint_eq(contents.chunks, 4);
	target_release(&t);
}
END_TEST

/* A parent has a key that is below the first key of its last node. If all chunks of that node go, so does
 * the node. */
START_TEST(a_key_below_its_node)
{
	enum { CHUNKS = 24, ENTRIES = 24 /* bytes before them */, KEY = 8 + 2 * 8, ENTRY = KEY + 8 };
	uint8_t root[ENTRIES];
	uint64_t at, first, node;
	struct h5_tx_watch watch = {0};
	struct target t;
	int fd;

	target_init(&t, "btree1_write-2.h5", "1f", NULL);
	target_set_range(&t, 0, CHUNKS);
	SUCCEEDS(target_commit(&t));
	SUCCEEDS(h5_file_read(t.file, t.layout.chunked.address, root, sizeof root));
	ck_assert_mem_eq(root, "TREE\1", 5);
	ck_assert_uint_gt(root[5], 0); /* the level */
	ck_assert_uint_gt(root[6], 1); /* entries */
	at = t.layout.chunked.address + ENTRIES + (root[6] - 1u) * ENTRY + 8;
	SUCCEEDS(h5_file_read(t.file, at, &first, sizeof first));
	first /= t.layout.chunked.dims[0];
	ck_assert(first > 2 && first < CHUNKS);
	SUCCEEDS(h5_chunk_index_set(t.index, (const uint64_t[H5_RANK_MAX]){first - 1},
				    &(struct h5_chunk){.address = H5_UNDEF}));
	SUCCEEDS(target_commit(&t));
	SUCCEEDS(h5_file_read(t.file, t.layout.chunked.address, root, sizeof root));
	at = t.layout.chunked.address + ENTRIES + (root[6] - 1u) * ENTRY + 8;
	target_close(&t);
	fd = open(t.scratch.path, O_RDWR);
	ck_assert_int_eq(pwrite(fd, &(uint64_t){(first - 1) * t.layout.chunked.dims[0]}, 8, (off_t)at), 8);
	close(fd);
	target_open(&t);
	ck_assert_uint_eq(target_count(&t), CHUNKS - 1);
	SUCCEEDS(h5_file_read(t.file, at + 2 * 8, &node, sizeof node));
	h5_tx_watch(t.file, &watch, &node);
	ck_assert_uint_eq(target_trim(&t, first), CHUNKS - first);
	ck_assert_uint_eq(node, H5_UNDEF); /* its space was given up */
	h5_tx_unwatch(t.file, &watch);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(target_count(&t), first - 1);
		target_assert_stored(&t, 0, first - 1);
		ck_assert_uint_eq(target_value(&t, first), H5_UNDEF);
		SUCCEEDS(target_commit(&t));
		target_close(&t);
		target_open(&t);
	}
	target_set_range(&t, first - 1, CHUNKS);
	SUCCEEDS(target_commit(&t));
	target_close(&t);
	target_open(&t);
	target_assert_stored(&t, 0, CHUNKS);
	ck_assert_uint_eq(target_count(&t), CHUNKS);
	target_release(&t);
}
END_TEST

/* ---- an array that moves ---- */

enum { BLOCKS = 50 };

struct blocks {
	struct h5_io_range at[BLOCKS];
	size_t count;
};

static int add_block(void *arg, uint64_t address, uint64_t n)
{
	struct blocks *blocks = arg;

	ck_assert_uint_lt(blocks->count, BLOCKS);
	blocks->at[blocks->count++] = (struct h5_io_range){.offset = address, .n = n};
	return 0;
}

static int skip_chunk(void *arg, uint64_t address, uint64_t n)
{
	(void)arg;
	(void)address;
	(void)n;
	return 0;
}

static bool is_in_blocks(const struct blocks *blocks, uint64_t address)
{
	for (size_t i = 0; i < blocks->count; i++)
		if (address - blocks->at[i].offset < blocks->at[i].n)
			return true;
	return false;
}

/* Its header lies across a page, so with the first change all its blocks go, those of each kind; what lies
 * beside them stays. */
START_TEST(a_moved_array_gives_up_its_blocks)
{
	struct {
		struct h5_tx_watch watch;
		uint64_t at, now; /* H5_UNDEF: its space was given up */
	} edges[4 * BLOCKS] = {0};
	struct blocks blocks = {0};
	const struct h5_extent_visits visits = {skip_chunk, add_block, &blocks};
	size_t count = 0, beside = 0;
	uint64_t end;
	struct target t;

	target_init(&t, "chunk_index_write-crossing-sparse.h5", "a", NULL);
	end = h5_file_end(t.file);
	SUCCEEDS(h5_chunk_index_extents(t.index, &visits));
	ck_assert_uint_gt(blocks.count, 6);
	for (size_t i = 0; i < blocks.count; i++) {
		const uint64_t first = blocks.at[i].offset, after = first + blocks.at[i].n;

		edges[count++].at = first;
		edges[count++].at = after - 1;
		edges[count++].at = first - 1;
		if (after < end)
			edges[count++].at = after;
	}
	for (size_t i = 0; i < count; i++) {
		edges[i].now = edges[i].at;
		h5_tx_watch(t.file, &edges[i].watch, &edges[i].now);
	}
	SUCCEEDS(target_set(&t, 7));
	for (size_t i = 0; i < count; i++) {
		const bool goes = is_in_blocks(&blocks, edges[i].at);

		ck_assert_uint_eq(edges[i].now, goes ? H5_UNDEF : edges[i].at);
		beside += !goes;
		h5_tx_unwatch(t.file, &edges[i].watch);
	}
	ck_assert_uint_gt(beside, 0);
	target_release(&t);
}
END_TEST

static int refuse_chunk(void *arg, const struct h5_chunk *chunk)
{
	(void)arg;
	(void)chunk;
	return -EIO;
}

/* A trim that finds no chunk changes nothing. One whose visit fails leaves the index as it was. */
START_TEST(trims_of_nothing_and_that_fail)
{
	static const char *const cases[][2] = {{"btree1_write-2.h5", "1f"},
					       {"btree2_write-empty.h5", "filtered"},
					       {"chunk_index_write-plain.h5", "a"},
					       {"fixed_array_write-block.h5", "a"},
					       {"fixed_array_write-paged.h5", "a"}};
	enum { CHUNKS = 22 };

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct fault_io record = {0};
		struct h5_tx_watch watches[BLOCKS] = {0};
		struct blocks blocks = {0};
		const struct h5_extent_visits visits = {skip_chunk, add_block, &blocks};
		struct contents before, after;
		uint64_t at[BLOCKS];
		struct target t;

		target_init(&t, cases[c][0], cases[c][1], &record);
		for (uint64_t n = 0; n < CHUNKS; n++)
			SUCCEEDS(h5_chunk_index_set(t.index, (const uint64_t[H5_RANK_MAX]){n},
						    &(struct h5_chunk){.address = 800 + 8 * n, .size = 1}));
		SUCCEEDS(target_commit(&t));
		before = contents_of(&t);
		ck_assert_uint_eq(before.chunks, CHUNKS);
		SUCCEEDS(h5_chunk_index_extents(t.index, &visits));
		for (size_t i = 0; i < blocks.count; i++) {
			at[i] = blocks.at[i].offset;
			h5_tx_watch(t.file, &watches[i], &at[i]);
		}
		ck_assert_int_eq(h5_chunk_index_trim(t.index, CHUNKS, refuse_chunk, NULL), 0);
		record.record = true;
		SUCCEEDS(h5_tx_commit(t.file));
		ck_assert_uint_eq(record.count, 0);
		for (size_t i = 0; i < blocks.count; i++) {
			ck_assert_uint_eq(at[i], blocks.at[i].offset);
			h5_tx_unwatch(t.file, &watches[i]);
		}
		ck_assert_int_eq(h5_chunk_index_trim(t.index, CHUNKS / 2, refuse_chunk, NULL), -EIO);
		after = contents_of(&t);
		ck_assert_uint_eq(after.chunks, before.chunks);
		ck_assert_uint_eq(after.sum, before.sum);
		target_release(&t);
		fault_io_release(&record);
	}
}
END_TEST

UNIT_MAIN("effects of units of change", stages_stay, the_journal_follows, the_journal_hashes_what_is_there,
	  a_failed_sync_takes_all, a_commit_whose_sync_fails, an_abandoned_write,
	  the_next_record_covers_raw_data, caches_follow, blocks_are_written_meanwhile,
	  new_blocks_of_a_unit_are_written_meanwhile, indexes_are_as_they_were, new_blocks_without_memory,
	  a_key_below_its_node, a_moved_array_gives_up_its_blocks, trims_of_nothing_and_that_fail,
	  stages_of_indexes, stages_of_indexes_of_names, given_up_without_memory,
	  a_failed_write_does_not_move_the_end)

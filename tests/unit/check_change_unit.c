/* Units of change: all of one takes effect or nothing, wherever it fails. */
#include "crash_image.h"
#include "fault_alloc.h"
#include "format/journal.h"
#include "unit_scene.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the steps of a unit ---- */

static int wide_patch(struct scene *s)
{
	return scene_patch(s, AT + 90, 11, 70, H5_STAGE_OBJECT); /* over both pending ones */
}

static int same_patch(struct scene *s)
{
	return scene_patch(s, AT + 100, 12, 32, H5_STAGE_BLOCK);
}

static int inner_patch(struct scene *s)
{
	return scene_patch(s, AT + 110, 13, 5, H5_STAGE_MESSAGES);
}

static int other_cell(struct scene *s)
{
	return scene_patch(s, AT + 200, 14, 10, H5_STAGE_BLOCK);
}

static int raw_data(struct scene *s)
{
	uint8_t bytes[CHUNK] = {15};
	int rc = h5_tx_allocate(s->file, H5_ALLOCATE_RAW, CHUNK, &s->raw);

	return rc ? rc : h5_tx_write(s->file, s->raw, bytes, sizeof bytes);
}

static int another_block(struct scene *s)
{
	uint8_t bytes[BLOCK] = {16};

	s->at = H5_UNDEF;
	return h5_tx_store(s->file, &s->at, bytes, sizeof bytes, H5_STAGE_BLOCK);
}

static int block_again(struct scene *s)
{
	return scene_patch(s, s->at + 10, 17, 20, H5_STAGE_BLOCK);
}

static int older_block(struct scene *s)
{
	return scene_patch(s, s->put + 10, 18, 100, H5_STAGE_BLOCK);
}

static int committed_block(struct scene *s)
{
	uint8_t bytes[BLOCK] = {19};
	uint64_t at = s->old;

	return h5_tx_shadow(s->file, &at, bytes, sizeof bytes);
}

/* An object: the journal guards messages of it. */
static int touch(struct scene *s)
{
	return h5_tx_touch(s->file, h5_file_superblock(s->file)->root);
}

static int give_up(struct scene *s)
{
	h5_tx_free(s->file, s->other, BLOCK);
	h5_tx_discard(s->file, s->old + 2 * BLOCK, BLOCK);
	/* It is as it was until the unit has ended. */
	if (s->in_unit)
		scene_check_bytes(s, s->other, 4, BLOCK);
	return 0;
}

static int known_changes(struct scene *s)
{
	int rc = h5_unit_save(s->file, &s->known, sizeof s->known);

	if (!rc)
		s->known = (struct known){8, s->known.changes + 1};
	return rc;
}

static int inner_unit(struct scene *s)
{
	int rc = 0;

	h5_unit_begin(s->file);
	rc = known_changes(s);
	if (!rc)
		rc = same_patch(s);
	return h5_unit_end(s->file, rc);
}

static int failing_inner_unit(struct scene *s)
{
	int rc = 0;

	h5_unit_begin(s->file);
	rc = inner_patch(s);
	return h5_unit_end(s->file, rc || s->step != s->fail ? rc : -ENOSPC);
}

typedef int step(struct scene *s);

/* What is given up comes last: without a unit it could be allocated again at once. */
static step *const steps[] = {same_patch,	  inner_patch,	   wide_patch,	same_patch,    other_cell,
			      raw_data,		  another_block,   block_again, older_block,   older_block,
			      known_changes,	  committed_block, inner_unit,	known_changes, wide_patch,
			      failing_inner_unit, touch,	   give_up};
enum { STEPS = sizeof steps / sizeof *steps };

static int take_steps(struct scene *s)
{
	int rc = 0;

	for (s->step = 1; s->step <= STEPS && !rc; s->step++) {
		rc = steps[s->step - 1](s);
		if (!rc && s->step == s->fail)
			rc = -EIO;
	}
	return rc;
}

static int change(struct scene *s)
{
	int rc = 0;

	h5_unit_begin(s->file);
	s->in_unit = true;
	rc = take_steps(s);
	return h5_unit_end(s->file, rc);
}

/* ---- after it ---- */

static void check_unchanged(const struct scene *s)
{
	uint8_t *now = scene_view(s);

	ck_assert_mem_eq(now, s->before, s->other + BLOCK);
	free(now);
	ck_assert_uint_eq(s->known.address, 7);
	ck_assert_uint_eq(s->known.changes, 0);
}

/* The file after the commit, without what says where it ends. */
static struct crash_image committed(struct scene *s)
{
	struct crash_image image = {0};

	SUCCEEDS(h5_tx_commit(s->file));
	crash_image_load(&image, s->scratch.path);
	memset(image.data, 0, 48);
	return image;
}

/* What was there before the unit is committed as if there had been none. */
static void check_commit(struct scene *s)
{
	struct crash_image now = committed(s), expected;
	struct scene without;
	uint64_t at;

	scene_init(&without);
	expected = committed(&without);
	ck_assert_uint_eq(expected.size, s->other + BLOCK);
	ck_assert_mem_eq(now.data, expected.data, expected.size);
	free(now.data);
	free(expected.data);
	scene_release(&without);
	/* Nothing that is committed was given up. */
	for (unsigned i = 0; i < 3; i++) {
		SUCCEEDS(h5_tx_allocate(s->file, H5_ALLOCATE_METADATA, 8, &at));
		ck_assert_uint_ge(at, s->other + BLOCK);
		SUCCEEDS(scene_patch(s, at, 1, 8, H5_STAGE_BLOCK));
		SUCCEEDS(h5_tx_commit(s->file));
	}
}

START_TEST(every_step_can_fail)
{
	for (unsigned fail = 1; fail <= STEPS; fail++) {
		struct scene s;
		uint64_t at;

		scene_init(&s);
		s.fail = fail;
		ck_assert_int_lt(change(&s), 0);
		check_unchanged(&s);
		if (s.raw) {
			/* Its space is free again. */
			SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, CHUNK, &at));
			ck_assert_uint_eq(at, s.raw);
			h5_tx_free(s.file, at, CHUNK);
		}
		check_commit(&s);
		scene_release(&s);
	}
}
END_TEST

START_TEST(every_allocation_can_fail)
{
	unsigned failures = 0;

	for (unsigned long n = 1;; n++) {
		struct scene s;
		bool fired;
		int rc;

		scene_init(&s);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = change(&s);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		if (rc) {
			ck_assert_int_eq(rc, -ENOMEM);
			ck_assert_int_eq(h5_error_last()->code, -ENOMEM);
			check_unchanged(&s);
			check_commit(&s);
			failures++;
		}
		scene_release(&s);
		if (!fired)
			break;
	}
	ck_assert_uint_gt(failures, STEPS);
}
END_TEST

/* Of a unit, and of the commit behind it. */
START_TEST(every_read_can_fail)
{
	unsigned in_unit = 0, in_commit = 0;
	struct crash_image expected;
	bool fired = true;
	struct scene s;

	scene_init(&s);
	SUCCEEDS(change(&s));
	expected = committed(&s);
	scene_release(&s);
	for (unsigned long n = 1; fired; n++) {
		struct fault_io fault = {.reads = true, .error = -EIO};
		struct crash_image now;
		bool commits;
		int rc;

		scene_init_wrapped(&s, &fault);
		fault_io_arm(&fault, n);
		rc = change(&s);
		commits = !rc;
		if (commits)
			rc = h5_tx_commit(s.file);
		fired = fault_io_disarm(&fault);
		ck_assert_int_eq(rc, fired ? -EIO : 0);
		in_unit += fired && !commits;
		in_commit += fired && commits;
		if (fired && !commits) {
			check_unchanged(&s);
			check_commit(&s);
		} else {
			/* The commit can be asked for again. */
			ck_assert(h5_tx_is_writable(s.file));
			ck_assert(h5_tx_is_pending(s.file) == fired);
			now = committed(&s);
			ck_assert_uint_eq(now.size, expected.size);
			ck_assert_mem_eq(now.data, expected.data, expected.size);
			free(now.data);
		}
		scene_release(&s);
	}
	ck_assert_uint_ge(in_unit, 3);
	ck_assert_uint_ge(in_commit, 5);
	free(expected.data);
}
END_TEST

/* A unit that succeeds makes what its changes make without it. */
START_TEST(all_takes_effect)
{
	struct crash_image with, without;
	struct scene s;

	scene_init(&s);
	SUCCEEDS(change(&s));
	ck_assert_uint_eq(s.known.address, 8);
	ck_assert_uint_eq(s.known.changes, 3);
	with = committed(&s);
	scene_release(&s);
	scene_init(&s);
	for (unsigned i = 0; i < STEPS; i++)
		if (steps[i] == known_changes)
			s.known.changes++;
		else if (steps[i] == inner_unit)
			SUCCEEDS(same_patch(&s));
		else if (steps[i] == failing_inner_unit)
			SUCCEEDS(inner_patch(&s));
		else
			SUCCEEDS(steps[i](&s));
	without = committed(&s);
	ck_assert_uint_eq(with.size, without.size);
	ck_assert_mem_eq(with.data, without.data, with.size);
	free(with.data);
	free(without.data);
	scene_release(&s);
}
END_TEST

/* Memory that goes away before the outermost unit fails is left alone; other memory is not. */
START_TEST(what_is_not_saved_any_more)
{
	struct {
		uint32_t before, inside[2], behind;
	} memory = {1, {2, 3}, 4};
	struct scene s;

	scene_init(&s);
	h5_unit_begin(s.file);
	SUCCEEDS(h5_unit_save(s.file, &memory.before, sizeof memory.before));
	h5_unit_begin(s.file);
	SUCCEEDS(h5_unit_save(s.file, &memory.inside, sizeof memory.inside));
	SUCCEEDS(h5_unit_save(s.file, &memory.inside[1], sizeof memory.inside[1]));
	SUCCEEDS(h5_unit_save(s.file, &memory.behind, sizeof memory.behind));
	memset(&memory, 9, sizeof memory);
	SUCCEEDS(h5_unit_end(s.file, 0));
	h5_unit_unsave(s.file, &memory.inside, sizeof memory.inside);
	ck_assert_int_eq(h5_unit_end(s.file, -EIO), -EIO);
	ck_assert_uint_eq(memory.before, 1);
	ck_assert_uint_eq(memory.inside[0], 0x09090909);
	ck_assert_uint_eq(memory.inside[1], 0x09090909);
	ck_assert_uint_eq(memory.behind, 4);
	h5_unit_unsave(s.file, &memory, sizeof memory); /* after the outermost unit, too */
	scene_release(&s);
}
END_TEST

/* ---- mistakes of ours ---- */

static void commit_inside(struct scene *s)
{
	h5_unit_begin(s->file);
	h5_tx_commit(s->file);
}

static void abandon_inside(struct scene *s)
{
	h5_unit_begin(s->file);
	h5_tx_abandon(s->file);
}

static void swallow_a_failure(struct scene *s)
{
	h5_unit_begin(s->file);
	h5_unit_begin(s->file);
	h5_unit_end(s->file, -EIO);
	h5_unit_end(s->file, 0);
}

static void end_without_begin(struct scene *s)
{
	h5_unit_end(s->file, 0);
}

START_TEST(mistakes_abort)
{
	static void (*const mistakes[])(struct scene * s) = {commit_inside, abandon_inside, swallow_a_failure,
							     end_without_begin};
	struct scene s;

	scene_init(&s);
	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
		int status;
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (!pid) {
			const struct rlimit none = {0, 0};

			setrlimit(RLIMIT_CORE, &none);
			close(STDERR_FILENO);
			mistakes[i](&s);
			_exit(0);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
	scene_release(&s);
}
END_TEST

START_TEST(a_file_for_reading_has_none)
{
	const struct h5_extents none = {0};
	struct scratch scratch;
	struct h5_file *file;
	uint64_t address;
	int number = 1;

	scratch_init(&scratch, "dataset_latest.h5");
	scratch.options.writable = false;
	scratch_open(&scratch);
	file = scratch.file;
	h5_unit_begin(file);
	h5_unit_hasten(file, H5_STAGE_EXTENSION);
	ck_assert_int_eq(h5_unit_save(file, &number, sizeof number), -EROFS);
	h5_unit_unsave(file, &number, sizeof number);
	ck_assert_int_eq(h5_unit_leave(file, h5_file_superblock(file)->root), -EROFS);
	ck_assert_int_eq(h5_tx_touch(file, h5_file_superblock(file)->root), -EROFS);
	ck_assert_int_eq(h5_tx_allocate(file, H5_ALLOCATE_RAW, 1, &address), -EROFS);
	h5_tx_free(file, AT, 1);
	ck_assert_int_eq(h5_unit_end(file, 0), -EROFS);
	h5_unit_begin(file);
	ck_assert_int_eq(h5_unit_end(file, -EIO), -EIO);
	/* Nothing is held, and there is nothing to give back. */
	SUCCEEDS(h5_tx_settle(file));
	ck_assert(!h5_tx_is_unsettled(file) && !h5_tx_held(file) && !h5_tx_is_pending(file));
	ck_assert_ptr_null(h5_tx_participants(file));
	SUCCEEDS(h5_tx_give_back(file, 1));
	ck_assert_int_eq(h5_tx_reclaim(file, &none), -EROFS);
	scratch_release(&scratch);
}
END_TEST

/* Space is allocated in a unit that fails, while memory is short: if it was allocated at all, it is free
 * again.
 */
START_TEST(space_of_a_unit_without_memory)
{
	uint64_t first = 0, address;
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 0; fired; n++) {
		struct scratch scratch;
		int rc;

		scratch_init(&scratch, "dataset_latest.h5");
		scratch_open(&scratch);
		h5_unit_begin(scratch.file);
		fault_alloc_arm(n);
		fault_alloc_count(n > 0);
		rc = h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, CHUNK, &address);
		fault_alloc_count(false);
		fired = fault_alloc_disarm() || !n;
		ck_assert(!rc || (n && fired && rc == -ENOMEM));
		ck_assert_int_eq(h5_unit_end(scratch.file, -EIO), -EIO);
		first = n ? first : address;
		if (!rc) {
			SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, CHUNK, &address));
			ck_assert_uint_eq(address, first);
		}
		h5_tx_abandon(scratch.file);
		scratch_release(&scratch);
		failed += rc != 0;
	}
	ck_assert_uint_ge(failed, 2);
}
END_TEST

/* A new block is put with all that its commit needs, or not at all. */
START_TEST(blocks_without_memory)
{
	const uint8_t bytes[BLOCK] = {1};
	unsigned long n = 0;
	bool fired = true;

	while (fired) {
		struct scratch scratch;
		uint64_t at;
		int rc;

		scratch_init(&scratch, "dataset_latest.h5");
		scratch_open(&scratch);
		SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_METADATA, BLOCK, &at));
		fault_alloc_arm(++n);
		fault_alloc_count(true);
		rc = h5_tx_put(scratch.file, at, bytes, BLOCK);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
		h5_tx_abandon(scratch.file);
		scratch_release(&scratch);
	}
	ck_assert_uint_gt(n, 3);
}
END_TEST

/* Many bytes of new blocks are not held in memory: they are written with the next block. If that fails, it is
 * told, and they are there all the same. */
START_TEST(blocks_that_cannot_be_held)
{
	enum { MANY = (8 << 20) + 1 };
	struct fault_io fault = {.error = -EIO};
	static uint8_t bytes[MANY];
	struct scratch scratch;
	uint64_t large, small;

	scratch_init(&scratch, "dataset_latest.h5");
	scratch_wrap(&scratch, &fault);
	scratch_open(&scratch);
	memset(bytes, 7, MANY);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_METADATA, MANY, &large));
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_METADATA, 8, &small));
	SUCCEEDS(h5_tx_put(scratch.file, large, bytes, MANY));
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_tx_put(scratch.file, small, "small", 5), -EIO);
	ck_assert(fault_io_disarm(&fault));
	SUCCEEDS(h5_tx_put(scratch.file, small, "small", 5));
	SUCCEEDS(h5_tx_commit(scratch.file));
	scratch_close(&scratch);
	scratch_wrap(&scratch, NULL);
	scratch_open(&scratch);
	memset(bytes, 0, MANY);
	SUCCEEDS(h5_file_read(scratch.file, large, bytes, MANY));
	for (size_t i = 0; i < MANY; i += 1023)
		ck_assert_uint_eq(bytes[i], 7);
	SUCCEEDS(h5_file_read(scratch.file, small, bytes, 5));
	ck_assert_mem_eq(bytes, "small", 5);
	scratch_release(&scratch);
	fault_io_release(&fault);
}
END_TEST

/* ---- patches ---- */

/* Patches of one stage are written in the order in which they were made; one that joins others is the last.
 */
START_TEST(patches_keep_their_order)
{
	static const unsigned at[] = {500, 0, 300, 900, 100, 700, 200, 800, 400, 600, 305, 1000};
	/* 300 has become a part of 305. */
	static const unsigned expected[] = {500, 0, 900, 100, 700, 200, 800, 400, 600, 300, 1000};
	enum { PATCHES = sizeof at / sizeof *at, WRITES = sizeof expected / sizeof *expected };
	struct fault_io record = {0};
	struct scratch scratch;
	struct scene s = {0};
	unsigned n = 0;

	scratch_init(&scratch, "dataset_latest.h5");
	scratch_wrap(&scratch, &record);
	scratch_open(&scratch);
	s.file = scratch.file;
	for (unsigned i = 0; i < PATCHES; i++)
		SUCCEEDS(scene_patch(&s, AT + at[i], 0xa5, 10, H5_STAGE_OBJECT));
	/* A patch that changes again keeps its place, in a unit as well. */
	SUCCEEDS(scene_patch(&s, AT + 100, 0xa6, 10, H5_STAGE_OBJECT));
	h5_unit_begin(s.file);
	SUCCEEDS(scene_patch(&s, AT + 800, 0xa6, 10, H5_STAGE_OBJECT));
	SUCCEEDS(h5_unit_end(s.file, 0));
	record.record = true;
	SUCCEEDS(h5_tx_commit(s.file));
	for (size_t i = 0; i < record.count; i++) {
		if (record.events[i].kind != FAULT_WRITE || record.events[i].file)
			continue;
		ck_assert_uint_lt(n, WRITES);
		ck_assert_uint_eq(record.events[i].offset, AT + expected[n++]);
	}
	ck_assert_uint_eq(n, WRITES);
	scratch_release(&scratch);
	fault_io_release(&record);
}
END_TEST

/* A patch of before the unit waits for a later stage, or for names in other groups. If the unit fails, it
 * does not, though memory may be short. */
START_TEST(delays_are_taken_back)
{
	for (unsigned leaves = 0; leaves < 2; leaves++) {
		unsigned failed = 0;
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			struct scratch scratch;
			struct scene s = {0};
			int rc;

			scratch_init(&scratch, "dataset_latest.h5");
			scratch_open(&scratch);
			s.file = scratch.file;
			SUCCEEDS(h5_tx_touch(s.file, h5_file_superblock(s.file)->root));
			SUCCEEDS(scene_patch(&s, AT, 1, 10, H5_STAGE_OBJECT));
			SUCCEEDS(scene_patch(&s, AT + 20, 2, 10, H5_STAGE_BLOCK));
			h5_unit_begin(s.file);
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = leaves ? h5_unit_leave(s.file, h5_file_superblock(s.file)->root)
				    : h5_tx_delay(s.file, AT, 30, H5_STAGE_UNNAME);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
			if (!rc) {
				ck_assert_uint_eq(h5_tx_latest_stage(s.file, AT, 1), H5_STAGE_UNNAME);
				ck_assert_uint_eq(h5_tx_latest_stage(s.file, AT + 20, 1),
						  leaves ? H5_STAGE_BLOCK : H5_STAGE_UNNAME);
			}
			failed += rc != 0;
			ck_assert_int_eq(h5_unit_end(s.file, -EIO), -EIO);
			ck_assert_uint_eq(h5_tx_latest_stage(s.file, AT, 1), H5_STAGE_OBJECT);
			ck_assert_uint_eq(h5_tx_latest_stage(s.file, AT + 20, 1), H5_STAGE_BLOCK);
			h5_tx_abandon(s.file);
			scratch_release(&scratch);
		}
		ck_assert_uint_ge(failed, 2);
	}
}
END_TEST

/* The record of a commit guards what the one before has changed, unless that is a lot. */
START_TEST(changes_are_guarded)
{
	enum { MOST = 16 << 20 };
	static uint8_t bytes[MOST + 1];

	for (unsigned more = 0; more < 2; more++) {
		/* The superblock changes, too. */
		const size_t n = more ? MOST + 1 : MOST - 512;
		struct crash_image journal = {0};
		struct h5_journal_record record;
		struct scratch scratch;
		uint64_t at, guarded = 0;
		char path[180];

		scratch_init(&scratch, "dataset_latest.h5");
		scratch_open(&scratch);
		SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, MOST + 100, &at));
		SUCCEEDS(h5_tx_write(scratch.file, at, "", 1));
		SUCCEEDS(h5_tx_write(scratch.file, at + MOST + 99, "", 1));
		SUCCEEDS(h5_tx_commit(scratch.file));
		memset(bytes, 1, n);
		SUCCEEDS(h5_tx_patch(scratch.file, at, bytes, n, H5_STAGE_BLOCK));
		SUCCEEDS(h5_tx_commit(scratch.file));
		SUCCEEDS(h5_tx_patch(scratch.file, at + MOST + 50, "x", 1, H5_STAGE_BLOCK));
		SUCCEEDS(h5_tx_commit(scratch.file));
		snprintf(path, sizeof path, "%s.h5fs-journal", scratch.path);
		crash_image_load(&journal, path);
		SUCCEEDS(h5_journal_record_decode(journal.data + H5_JOURNAL_HEADER,
						  journal.size - H5_JOURNAL_HEADER, &record));
		for (unsigned i = 0; i < record.patch_count; i++)
			if (record.patches[i].guard && record.patches[i].size > 100) {
				ck_assert_uint_eq(record.patches[i].offset, at);
				guarded += record.patches[i].size;
			}
		ck_assert_uint_eq(guarded, more ? 0 : n);
		h5_journal_record_release(&record);
		free(journal.data);
		scratch_release(&scratch);
	}
}
END_TEST

/* What changes with the commit, to the byte. */
START_TEST(what_is_changed)
{
	struct scene s;
	uint64_t block;

	scene_init(&s);
	SUCCEEDS(h5_tx_commit(s.file));
	ck_assert(!h5_tx_is_changed(s.file, AT, 100));
	SUCCEEDS(scene_patch(&s, AT + 50, 0xa5, 10, H5_STAGE_OBJECT));
	ck_assert(h5_tx_is_changed(s.file, AT, 51) && !h5_tx_is_changed(s.file, AT, 50));
	ck_assert(h5_tx_is_changed(s.file, AT + 50, 1));
	ck_assert(h5_tx_is_changed(s.file, AT + 59, 100) && !h5_tx_is_changed(s.file, AT + 60, 100));
	block = scene_new_block(s.file, 1);
	ck_assert(h5_tx_is_changed(s.file, block, 1));
	scene_release(&s);
}
END_TEST

UNIT_MAIN("units of change", every_step_can_fail, every_allocation_can_fail, every_read_can_fail,
	  all_takes_effect, what_is_not_saved_any_more, mistakes_abort, a_file_for_reading_has_none,
	  patches_keep_their_order, blocks_that_cannot_be_held, delays_are_taken_back, changes_are_guarded,
	  what_is_changed, space_of_a_unit_without_memory, blocks_without_memory)

/* Changes through the extensible array, against what libhdf5 makes of the same sequence
 * (tests/fixtures/chunk_index_write.py); tests/judge/index_structure.py compares. */
#include "base/error.h"
#include "change/watch.h"
#include "crash_image.h"
#include "index_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGED = 131060 }; /* the first chunk in a page */

static void begin(struct target *t, const char *name, struct fault_io *fault)
{
	char fixture[64];

	snprintf(fixture, sizeof fixture, "chunk_index_write-%s.h5", name);
	target_init(t, fixture, "a", fault);
}

/* "a" is as the other dataset of the file. */
static void judge(struct target *t, const char *other)
{
	target_compare(t, t->scratch.path, other);
	target_release(t);
}

START_TEST(appending_makes_what_libhdf5_makes)
{
	static const struct {
		const char *name;
		uint64_t n, step;
	} cases[] = {{"plain", PAGED + 5000, PAGED + 5000},
		     {"plain", PAGED + 5000, 1013},
		     {"filtered", PAGED + 2500, 7919},
		     {"second", 15000, 111}};
	struct target t;

	begin(&t, cases[_i].name, NULL);
	target_append(&t, cases[_i].n, cases[_i].step);
	ck_assert_uint_eq(target_count(&t), cases[_i].n);
	judge(&t, "b");
}
END_TEST

START_TEST(from_the_end_with_gaps)
{
	struct target t;
	uint64_t n = 200000;

	begin(&t, "sparse", NULL);
	for (unsigned i = 0; n <= 200000; n -= 997, i++) {
		ck_assert_int_eq(target_set(&t, n), 0);
		if (i % 7 == 6)
			SUCCEEDS(target_publish(&t, 200001));
	}
	SUCCEEDS(target_publish(&t, 200001));
	ck_assert_uint_eq(target_value(&t, 200000 - 997), ((200000 - 997) * 7 + 3) & 0xff);
	ck_assert_uint_eq(target_value(&t, 200000 - 996), H5_UNDEF);
	judge(&t, "b");
}
END_TEST

START_TEST(trimming_leaves_what_libhdf5_leaves)
{
	static const char *const names[] = {"trimmed", "trimmed-filtered"};
	struct target t;

	begin(&t, names[_i], NULL);
	target_set_range(&t, 0, PAGED + 3000);
	SUCCEEDS(target_publish(&t, PAGED + 3000));
	ck_assert_uint_eq(target_trim(&t, PAGED + 1500), 1500);
	ck_assert_uint_eq(target_trim(&t, PAGED + 1500), 0);
	target_assert_stored(&t, PAGED - 10, PAGED + 1500);
	ck_assert_uint_eq(target_value(&t, PAGED + 1500), H5_UNDEF);
	SUCCEEDS(target_publish(&t, PAGED + 1500));
	ck_assert_uint_eq(target_trim(&t, 500), PAGED + 1000);
	ck_assert_uint_eq(target_count(&t), 500);
	target_set_range(&t, 500, 600);
	SUCCEEDS(target_publish(&t, 600));
	judge(&t, "b");
}
END_TEST

/* The rows that go are spread over all of the array. */
START_TEST(rows_are_trimmed_along_a_limited_dimension)
{
	enum { ROWS = 5, KEPT = 2, CHUNKS = 15000 };
	struct target t;
	uint64_t n = 0;

	begin(&t, "second", NULL);
	target_set_range(&t, 0, CHUNKS);
	SUCCEEDS(target_publish(&t, CHUNKS));
	SUCCEEDS(h5_chunk_index_trim(t.index, KEPT, target_count_chunk, &n));
	ck_assert_uint_eq(n, CHUNKS / ROWS * (ROWS - KEPT));
	for (uint64_t i = 0; i < CHUNKS; i++)
		ck_assert_int_eq(target_value(&t, i) == H5_UNDEF, i % ROWS >= KEPT);
	ck_assert_uint_eq(target_count(&t), CHUNKS - n);
	n = 0;
	SUCCEEDS(h5_chunk_index_trim(t.index, KEPT, target_count_chunk, &n));
	ck_assert_uint_eq(n, 0);
	for (uint64_t i = 0; i < CHUNKS; i++)
		if (i % ROWS >= KEPT)
			SUCCEEDS(target_set(&t, i));
	SUCCEEDS(target_publish(&t, CHUNKS));
	judge(&t, "b");
}
END_TEST

/* ---- an array that moves ---- */

/* The first and the last bytes of the blocks of an index. */
struct edges {
	struct h5_file *file;
	struct h5_tx_watch watches[2000];
	uint64_t addresses[2000]; /* H5_UNDEF: its space was given up */
	size_t count;
};

static void watch_byte(struct edges *edges, uint64_t address)
{
	ck_assert_uint_lt(edges->count, sizeof edges->watches / sizeof *edges->watches);
	edges->addresses[edges->count] = address;
	h5_tx_watch(edges->file, &edges->watches[edges->count], &edges->addresses[edges->count]);
	edges->count++;
}

static int watch_block(void *arg, uint64_t address, uint64_t n)
{
	watch_byte(arg, address);
	watch_byte(arg, address + n - 1);
	return 0;
}

static int no_visit(void *arg, uint64_t address, uint64_t n)
{
	(void)arg;
	(void)address;
	(void)n;
	return 0;
}

static struct edges *watch_blocks(const struct target *t)
{
	struct edges *edges = calloc(1, sizeof *edges);
	const struct h5_extent_visits visits = {no_visit, watch_block, edges};

	ck_assert_ptr_nonnull(edges);
	edges->file = t->file;
	SUCCEEDS(h5_chunk_index_extents(t->index, &visits));
	return edges;
}

static void assert_given_up(struct edges *edges)
{
	ck_assert_uint_gt(edges->count, 0);
	for (size_t i = 0; i < edges->count; i++) {
		ck_assert_uint_eq(edges->addresses[i], H5_UNDEF);
		h5_tx_unwatch(edges->file, &edges->watches[i]);
	}
	free(edges);
}

/* The header lies across a page: with the first change the whole array moves. */
START_TEST(an_array_that_has_to_move)
{
	struct edges *edges;
	struct target t;
	uint64_t before;

	begin(&t, "crossing", NULL);
	before = t.layout.chunked.address;
	ck_assert(!h5_tx_is_safe(t.file, before, 72));
	edges = watch_blocks(&t);
	ck_assert_int_eq(target_set(&t, PAGED + 1100), 0);
	assert_given_up(edges);
	ck_assert_uint_ne(h5_chunk_index_layout(t.index)->address, before);
	target_assert_stored(&t, 0, PAGED + 1101);
	SUCCEEDS(target_publish(&t, PAGED + 1101));
	before = h5_chunk_index_layout(t.index)->address;
	ck_assert(h5_tx_is_safe(t.file, before, 72));
	ck_assert_int_eq(target_set(&t, 7), 0);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, before);
	SUCCEEDS(target_publish(&t, PAGED + 1101));
	judge(&t, "b");
}
END_TEST

static uint64_t index_block(const struct target *t)
{
	enum { INDEX_BLOCK = 12 + 6 * 8 }; /* its address, in the header */
	uint64_t address;

	SUCCEEDS(h5_file_read(t->file, h5_chunk_index_layout(t->index)->address + INDEX_BLOCK, &address,
			      sizeof address));
	return address;
}

/* The index block lies across a page: with the first change it moves, and the header, of which nothing else
 * changes, leads to it. */
START_TEST(an_index_block_that_has_to_move)
{
	struct target t;
	uint64_t before, header;

	begin(&t, "crossing-block", NULL);
	header = h5_chunk_index_layout(t.index)->address;
	before = index_block(&t);
	ck_assert(h5_tx_is_safe(t.file, header, 72));
	ck_assert(!h5_tx_is_safe(t.file, before, 298));
	ck_assert_uint_eq(target_value(&t, 2), H5_UNDEF);
	ck_assert_int_eq(target_set(&t, 2), 0);
	SUCCEEDS(target_publish(&t, 600));
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, header);
	ck_assert_uint_ne(index_block(&t), before);
	target_close(&t);
	target_open(&t);
	target_assert_stored(&t, 0, 600);
	judge(&t, "b");
}
END_TEST

/* Writes to the first n bytes of the file; each lies in one page. */
static unsigned count_cells(const struct fault_io *record, size_t n)
{
	unsigned cells = 0;

	for (size_t i = 0; i < record->count; i++) {
		const struct fault_event *e = &record->events[i];

		if (e->kind != FAULT_WRITE || e->file || e->offset >= n)
			continue;
		ck_assert_uint_eq(e->offset / H5_CELL, (e->offset + e->size - 1) / H5_CELL);
		cells++;
	}
	return cells;
}

/* Chunks move, are added and removed: until the commit nothing that is in the file changes, and then by cells
 * alone. */
START_TEST(what_is_committed_stays)
{
	struct fault_io record = {.record = true};
	struct crash_image before = {0}, now = {0};
	struct target t;

	begin(&t, "plain", &record);
	target_set_range(&t, 0, PAGED + 3100);
	SUCCEEDS(target_publish(&t, PAGED + 3100));
	crash_image_load(&before, t.scratch.path);
	target_set_range(&t, 0, 10);
	target_set_range(&t, 1000, 1010);
	target_set_range(&t, PAGED - 10, PAGED + 6000);
	ck_assert_uint_eq(target_trim(&t, PAGED + 2500), 3500);
	ck_assert_uint_eq(target_trim(&t, 100000), PAGED + 2500 - 100000);
	target_assert_stored(&t, 0, 2000);
	crash_image_load(&now, t.scratch.path);
	ck_assert_uint_ge(now.size, before.size);
	ck_assert_mem_eq(before.data, now.data, before.size);
	free(before.data);
	free(now.data);
	fault_io_release(&record);
	record.record = true;
	SUCCEEDS(target_publish(&t, 100000));
	ck_assert_uint_gt(count_cells(&record, before.size), 3);
	judge(&t, "a");
	fault_io_release(&record);
}
END_TEST

/* Between any two cells of a commit libhdf5 reads the rows of this commit or of the one before. */
START_TEST(killed_between_cells)
{
	static const uint64_t cases[][2] = {{0, 10},
					    {3, 5},
					    {100, 1100},
					    {240, 250},
					    {PAGED - 5, PAGED + 10},
					    {PAGED + 1030, PAGED + 4100}};
	static const char judge_states[] =
		"import sys, glob, h5py, numpy as np\n"
		"lengths = set()\n"
		"for path in glob.glob(sys.argv[1] + '/state-*.h5'):\n"
		"    d = h5py.File(path, 'r')['a']\n"
		"    lengths.add(len(d))\n"
		"    expected = (np.arange(len(d)) * 7 + 3).astype('u1')\n"
		"    for part in np.s_[:3000], np.s_[-8000:]:\n" /* what the commits change, and the first */
		"        assert (d[part] == expected[part]).all(), path\n"
		"assert lengths == {int(n) for n in sys.argv[2:]}, lengths\n";
	const uint64_t *n = cases[_i];
	struct fault_io record = {0};
	struct crash_image image = {0};
	char prefix[128];
	struct target t;

	begin(&t, "plain", &record);
	target_set_range(&t, 0, n[0]);
	SUCCEEDS(target_publish(&t, n[0]));
	crash_image_load(&image, t.scratch.path);
	record.record = true;
	target_set_range(&t, n[0], n[1]);
	SUCCEEDS(target_publish(&t, n[1]));
	snprintf(prefix, sizeof prefix, "%s/state", scratch_folder());
	ck_assert_uint_gt(crash_image_save_states(&image, &record, prefix), 2);
	scratch_judge("/usr/bin/python3 -c \"%s\" %s %ju %ju", judge_states, scratch_folder(),
		      (uintmax_t)n[0], (uintmax_t)n[1]);
	target_release(&t);
	fault_io_release(&record);
	free(image.data);
}
END_TEST

/* A kill whose journal is lost may leave chunks in a block without the header's new Max Index Set. Whether
 * they are found does not change when later chunks are set. */
START_TEST(what_a_kill_leaves_stays_as_it_is)
{
	static const struct {
		uint64_t stored;    /* chunks before */
		uint64_t killed[3]; /* set by the commit that is killed */
		uint64_t next;	    /* set after it */
	} cases[] = {{1, {2, 3, 3}, 3},
		     {10, {11, 12, 13}, 14},
		     {10, {11, 12, 13}, 15},
		     {100, {101, 102, 1000}, 5000},
		     {PAGED + 10, {PAGED + 11, PAGED + 100, PAGED + 1023}, PAGED + 5000}};
	const uint64_t *killed = cases[_i].killed, next = cases[_i].next;
	struct fault_io record = {0};
	struct crash_image image = {0};
	char prefix[128], path[160];
	unsigned states, hidden = 0;
	struct target t;

	begin(&t, "plain", &record);
	target_set_range(&t, 0, cases[_i].stored);
	SUCCEEDS(target_publish(&t, PAGED + 6000));
	crash_image_load(&image, t.scratch.path);
	record.record = true;
	for (unsigned i = 0; i < 3; i++)
		SUCCEEDS(target_set(&t, killed[i]));
	SUCCEEDS(target_commit(&t));
	target_close(&t);
	scratch_wrap(&t.scratch, NULL);
	snprintf(prefix, sizeof prefix, "%s/state", scratch_folder());
	states = crash_image_save_states(&image, &record, prefix);
	ck_assert_uint_gt(states, 2);
	for (unsigned state = 0; state < states; state++) {
		uint64_t found[3];

		snprintf(path, sizeof path, "%s-%03u.h5", prefix, state);
		scratch_copy(path, t.scratch.path);
		target_open(&t);
		for (unsigned i = 0; i < 3; i++) {
			found[i] = target_value(&t, killed[i]);
			ck_assert(found[i] == H5_UNDEF || found[i] == ((killed[i] * 7 + 3) & 0xff));
			hidden += found[i] == H5_UNDEF;
		}
		SUCCEEDS(target_set(&t, next));
		SUCCEEDS(target_commit(&t));
		target_close(&t);
		target_open(&t);
		target_assert_stored(&t, 0, cases[_i].stored);
		target_assert_stored(&t, next, next + 1);
		for (unsigned i = 0; i < 3; i++)
			if (killed[i] != next)
				ck_assert_uint_eq(target_value(&t, killed[i]), found[i]);
		target_close(&t);
	}
	ck_assert_uint_gt(hidden, 3);
	target_release(&t);
	fault_io_release(&record);
	free(image.data);
}
END_TEST

/* Every call that writes fails once. What was not changed for that is changed by another try; but a block
 * that is new, and was torn while it was written again, is lost with the transaction. */
START_TEST(every_write_can_fail)
{
	static const uint64_t first[] = {3, 1000, PAGED, PAGED + 1};
	static const uint64_t then[] = {4, 1001, 5000, PAGED + 2, PAGED + 1024, PAGED + 4096, PAGED + 4097};
	const size_t firsts = sizeof first / sizeof *first, thens = sizeof then / sizeof *then;
	unsigned mended = 0, lost = 0;
	bool fired = true;

	for (unsigned long fail = 1; fired; fail++) {
		struct fault_io fault = {.error = -EIO};
		struct target t;
		bool torn = false;
		uint64_t n = 0;

		begin(&t, "plain", &fault);
		for (size_t i = 0; i < firsts; i++)
			ck_assert_int_eq(target_set(&t, first[i]), 0);
		SUCCEEDS(target_publish(&t, PAGED + 2));
		fault_io_arm(&fault, fail);
		for (size_t i = 0; i < thens && !torn; i++)
			torn = target_set(&t, then[i]) && target_set(&t, then[i]);
		if (!torn)
			torn = h5_chunk_index_trim(t.index, PAGED + 4097, target_count_chunk, &n) &&
			       h5_chunk_index_trim(t.index, PAGED + 4097, target_count_chunk, &n);
		fired = fault_io_disarm(&fault);
		if (!torn) {
			ck_assert_uint_eq(n, 1);
			SUCCEEDS(target_publish(&t, PAGED + 5000));
			mended++;
		}
		lost += torn;
		target_close(&t);
		scratch_wrap(&t.scratch, NULL);
		target_open(&t);
		for (size_t i = 0; i < firsts; i++)
			target_assert_stored(&t, first[i], first[i] + 1);
		for (size_t i = 0; i + 1 < thens && !torn; i++)
			target_assert_stored(&t, then[i], then[i] + 1);
		ck_assert_uint_eq(target_count(&t), torn ? firsts : firsts + thens - 1);
		judge(&t, "a");
		fault_io_release(&fault);
	}
	ck_assert_uint_gt(mended, 4);
	ck_assert_uint_le(lost, 6);
}
END_TEST

UNIT_MAIN_LOOPS("chunk_index_write", {appending_makes_what_libhdf5_makes, 4}, {from_the_end_with_gaps, 1},
		{trimming_leaves_what_libhdf5_leaves, 2}, {rows_are_trimmed_along_a_limited_dimension, 1},
		{an_array_that_has_to_move, 1}, {an_index_block_that_has_to_move, 1},
		{what_is_committed_stays, 1}, {killed_between_cells, 6},
		{what_a_kill_leaves_stays_as_it_is, 5}, {every_write_can_fail, 1})

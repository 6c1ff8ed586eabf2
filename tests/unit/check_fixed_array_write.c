/* Changes through the fixed array, the single chunk and the implicit index, against what libhdf5 makes of the
 * same sequence (tests/fixtures/fixed_array_write.py); tests/judge/index_structure.py compares. */
#include "base/error.h"
#include "crash_image.h"
#include "index_target.h"

#include <stdio.h>

static void begin(struct target *t, const char *name, struct fault_io *fault)
{
	char fixture[64];

	snprintf(fixture, sizeof fixture, "fixed_array_write-%s.h5", name);
	target_init(t, fixture, "a", fault);
	t->filter_mask = 0; /* shuffled, a byte is the same */
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
	} cases[] = {{"small", 40, 40},	      {"small", 40, 1},	     {"block", 900, 900},
		     {"block", 900, 70},      {"paged", 3077, 3077}, {"paged", 3077, 213},
		     {"filtered", 2500, 311}, {"crossing", 81, 7}};
	struct target t;

	begin(&t, cases[_i].name, NULL);
	target_append(&t, cases[_i].n, cases[_i].step);
	ck_assert_uint_eq(target_count(&t), cases[_i].n);
	target_assert_stored(&t, 0, cases[_i].n);
	judge(&t, "b");
}
END_TEST

START_TEST(rows_of_chunks)
{
	struct target t;

	begin(&t, "rows", NULL);
	target_set_range(&t, 0, 2100);
	SUCCEEDS(target_publish(&t, 2100));
	ck_assert_uint_eq(target_trim(&t, 171), 129 * 7);
	SUCCEEDS(target_publish(&t, 171 * 7));
	ck_assert_uint_eq(target_value(&t, 171 * 7), H5_UNDEF);
	target_assert_stored(&t, 0, 171 * 7);
	judge(&t, "b");
}
END_TEST

START_TEST(pages_come_to_be_with_their_chunks)
{
	static const uint64_t numbers[] = {19999, 5, 6000, 5999, 12287, 12288};
	struct target t;

	begin(&t, "sparse", NULL);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		ck_assert_int_eq(target_set(&t, numbers[i]), 0);
		if (i % 2)
			SUCCEEDS(target_publish(&t, 20000));
	}
	ck_assert_uint_eq(target_value(&t, 6001), H5_UNDEF);
	ck_assert_uint_eq(target_value(&t, 8000), H5_UNDEF);
	judge(&t, "b");
}
END_TEST

START_TEST(trimming_leaves_what_libhdf5_leaves)
{
	static const char *const names[] = {"trimmed", "trimmed-filtered"};
	struct target t;

	begin(&t, names[_i], NULL);
	target_set_range(&t, 0, 4500);
	SUCCEEDS(target_publish(&t, 4500));
	ck_assert_uint_eq(target_trim(&t, 2000), 2500);
	ck_assert_uint_eq(target_trim(&t, 2000), 0);
	target_assert_stored(&t, 1024, 2000);
	ck_assert_uint_eq(target_value(&t, 2000), H5_UNDEF);
	SUCCEEDS(target_publish(&t, 2000));
	ck_assert_uint_eq(target_trim(&t, 10), 1990);
	ck_assert_uint_eq(target_count(&t), 10);
	target_set_range(&t, 10, 100);
	SUCCEEDS(target_publish(&t, 100));
	judge(&t, "b");
}
END_TEST

static int add_extent(void *extents, uint64_t address, uint64_t n)
{
	return h5_extents_add(extents, address, n);
}

static int skip_extent(void *extents, uint64_t address, uint64_t n)
{
	(void)extents;
	(void)address;
	(void)n;
	return 0;
}

/* The header lies across a page: with the first change the whole array moves, and never again. */
START_TEST(an_array_that_has_to_move)
{
	static const struct {
		const char *name;
		uint64_t n;
	} cases[] = {{"crossing", 80}, {"crossing-paged", 2100}};
	struct h5_extents old = {0};
	struct target t;
	uint64_t before;

	begin(&t, cases[_i].name, NULL);
	SUCCEEDS(h5_chunk_index_extents(t.index, &(struct h5_extent_visits){skip_extent, add_extent, &old}));
	ck_assert_uint_ge(old.count, 1);
	before = t.layout.chunked.address;
	ck_assert(!h5_tx_is_safe(t.file, before, 28));
	ck_assert_int_eq(target_set(&t, cases[_i].n), 0);
	ck_assert_uint_ne(h5_chunk_index_layout(t.index)->address, before);
	target_assert_stored(&t, 0, cases[_i].n + 1);
	SUCCEEDS(target_publish(&t, cases[_i].n + 1));
	before = h5_chunk_index_layout(t.index)->address;
	ck_assert(h5_tx_is_safe(t.file, before, 28));
	ck_assert_int_eq(target_set(&t, 7), 0);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, before);
	SUCCEEDS(target_publish(&t, cases[_i].n + 1));
	space_take_out_free(&old, t.file);
	ck_assert_uint_eq(old.count, 0);
	h5_extents_release(&old);
	judge(&t, "b");
}
END_TEST

START_TEST(a_single_chunk)
{
	static const char *const names[] = {"single", "single-filtered"};
	struct target t;

	begin(&t, names[_i], NULL);
	target_set_range(&t, 0, 1);
	ck_assert_int_eq(target_set(&t, 1), -EFBIG);
	SUCCEEDS(target_publish(&t, 1));
	ck_assert_uint_eq(target_trim(&t, 1), 0);
	ck_assert_uint_eq(target_trim(&t, 0), 1);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->single.size, 0);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->single.filter_mask, 0);
	SUCCEEDS(target_publish(&t, 1));
	target_set_range(&t, 0, 1);
	SUCCEEDS(target_publish(&t, 1));
	target_assert_stored(&t, 0, 1);
	judge(&t, "b");
}
END_TEST

/* The chunks have their places. */
START_TEST(implicit_chunks_stay)
{
	struct h5_chunk chunk;
	struct target t;
	uint64_t n = 3;

	begin(&t, "implicit", NULL);
	ck_assert_int_eq(target_set(&t, 3), -ENOTSUP);
	SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, &n, &chunk));
	SUCCEEDS(h5_chunk_index_set(t.index, &n, &chunk));
	ck_assert_uint_eq(target_trim(&t, 3), 0);
	SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, &n, &chunk));
	ck_assert_uint_ne(chunk.address, H5_UNDEF);
	for (n = 0; n < 10; n++) {
		uint8_t value = (uint8_t)(n * 7 + 3);

		SUCCEEDS(h5_chunk_index_lookup(t.index, NULL, &n, &chunk));
		SUCCEEDS(h5_tx_write(t.file, chunk.address, &value, 1));
	}
	SUCCEEDS(target_publish(&t, 10));
	judge(&t, "b");
}
END_TEST

START_TEST(chunks_that_cannot_be)
{
	const struct h5_chunk absent = {.address = H5_UNDEF, .size = 77},
			      large = {.address = 8, .size = 1 << 24};
	const uint64_t zero = 0, far = 2999, beyond = 3000;
	struct target t;

	begin(&t, "filtered", NULL);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &absent), 0);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &large), -EOVERFLOW);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	target_set_range(&t, 0, 3);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &far, &absent), 0);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &far, &large), -EOVERFLOW);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &beyond, &absent), 0);
	ck_assert_int_eq(target_set(&t, beyond), -EFBIG);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &absent), 0);
	ck_assert_uint_eq(target_value(&t, 0), H5_UNDEF);
	ck_assert_uint_eq(target_count(&t), 2);
	target_set_range(&t, 0, 1);
	target_set_range(&t, 3, 2500);
	SUCCEEDS(target_publish(&t, 2500));
	judge(&t, "b");
}
END_TEST

/* Until the commit nothing that is in the file changes but what nothing refers to; and all writes of a commit
 * into what was there are cells. */
START_TEST(only_cells_change_what_is_there)
{
	static const char *const names[] = {"small", "block", "paged", "filtered", "crossing-paged"};
	struct fault_io fault = {.record = true};
	struct target t;
	uint64_t end;
	size_t first;

	begin(&t, names[_i], &fault);
	target_set_range(&t, 0, 30);
	SUCCEEDS(target_publish(&t, 40));
	end = h5_file_end(t.file);
	first = fault.count;
	target_set_range(&t, 10, 30);
	ck_assert_uint_gt(target_trim(&t, 28), 0);
	for (size_t i = first; i < fault.count; i++)
		ck_assert(fault.events[i].kind != FAULT_WRITE || fault.events[i].offset >= end);
	SUCCEEDS(target_publish(&t, 40));
	for (size_t i = first; i < fault.count; i++) {
		const struct fault_event *e = &fault.events[i];

		ck_assert(e->file || e->kind != FAULT_WRITE || e->offset >= end ||
			  e->offset / H5_CELL == (e->offset + e->size - 1) / H5_CELL);
	}
	target_release(&t);
	fault_io_release(&fault);
}
END_TEST

static uint64_t data_block(const struct target *t)
{
	enum { DATA_BLOCK = 16 }; /* its address, in the header */
	uint64_t address;

	SUCCEEDS(h5_file_read(t->file, h5_chunk_index_layout(t->index)->address + DATA_BLOCK, &address,
			      sizeof address));
	return address;
}

/* Between any two cells of a commit libhdf5 reads all that was there, and of what comes what has come. In a
 * short page of an array that stays where it is: its bit in the bitmap comes after it. */
START_TEST(killed_between_cells)
{
	static const struct {
		const char *name;
		uint64_t before, after;
		bool stays;
	} cases[] = {{"small", 3, 5, true},
		     {"block", 100, 300, false},
		     {"paged", 1000, 2050, false},
		     {"short", 1024, 1090, true}};
	static const char judge_states[] =
		"import sys, glob, h5py, numpy as np\n"
		"folder, name, before, after = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])\n"
		"expected = (np.arange(after) * 7 + 3).astype('u1')\n"
		"states = set()\n"
		"for path in glob.glob(folder + '/' + name + '-*.h5'):\n"
		"    found = h5py.File(path, 'r')['a'][:after]\n"
		"    assert (found[:before] == expected[:before]).all(), path\n"
		"    assert ((found == expected) | (found == 0)).all(), path\n"
		"    states.add((found == expected).all())\n"
		"assert states == {False, True}, states\n";
	uint64_t before = cases[_i].before, after = cases[_i].after, address;
	struct fault_io record = {0};
	struct crash_image image = {0};
	char prefix[128];
	struct target t;

	begin(&t, cases[_i].name, &record);
	target_set_range(&t, 0, before);
	SUCCEEDS(target_publish(&t, after));
	address = data_block(&t);
	crash_image_load(&image, t.scratch.path);
	record.record = true;
	target_set_range(&t, before, after);
	SUCCEEDS(target_publish(&t, after));
	ck_assert_int_eq(data_block(&t) == address, cases[_i].stays);
	snprintf(prefix, sizeof prefix, "%s/%s", scratch_folder(), cases[_i].name);
	ck_assert_uint_gt(crash_image_save_states(&image, &record, prefix), 1);
	scratch_judge("/usr/bin/python3 -c \"%s\" %s %s %ju %ju", judge_states, scratch_folder(),
		      cases[_i].name, (uintmax_t)before, (uintmax_t)after);
	target_release(&t);
	fault_io_release(&record);
	free(image.data);
}
END_TEST

/* Every call that writes fails once. What was not changed for that is changed by another try; but a block
 * that is new, and was torn while it was written again, is lost with the transaction. */
START_TEST(every_write_can_fail)
{
	static const char *const names[] = {"small", "block", "paged", "crossing-paged"};
	bool fired = true;

	for (unsigned long fail = 1; fired; fail++) {
		struct fault_io fault = {.error = -EIO};
		struct target t;
		bool torn = false;
		uint64_t n = 0, before;

		begin(&t, names[_i], &fault);
		for (uint64_t i = 0; i < 20; i += 2)
			ck_assert_int_eq(target_set(&t, i), 0);
		SUCCEEDS(target_publish(&t, 40));
		before = target_count(&t);
		fault_io_arm(&fault, fail);
		for (uint64_t i = 1; i < 10 && !torn; i += 2)
			torn = target_set(&t, i) && target_set(&t, i);
		if (!torn)
			torn = h5_chunk_index_trim(t.index, 9, target_count_chunk, &n) &&
			       h5_chunk_index_trim(t.index, 9, target_count_chunk, &n);
		fired = fault_io_disarm(&fault);
		if (!torn) {
			target_assert_stored(&t, 0, 9);
			ck_assert_uint_eq(target_count(&t), 9);
			SUCCEEDS(target_publish(&t, 40));
		}
		target_close(&t);
		scratch_wrap(&t.scratch, NULL);
		target_open(&t);
		target_assert_stored(&t, 0, torn ? 1 : 9);
		ck_assert_uint_eq(target_count(&t), torn ? before : 9);
		judge(&t, "a");
		fault_io_release(&fault);
	}
}
END_TEST

UNIT_MAIN_LOOPS("fixed_array_write", {appending_makes_what_libhdf5_makes, 8}, {rows_of_chunks, 1},
		{pages_come_to_be_with_their_chunks, 1}, {trimming_leaves_what_libhdf5_leaves, 2},
		{an_array_that_has_to_move, 2}, {a_single_chunk, 2}, {implicit_chunks_stay, 1},
		{chunks_that_cannot_be, 1}, {only_cells_change_what_is_there, 5}, {killed_between_cells, 4},
		{every_write_can_fail, 4})

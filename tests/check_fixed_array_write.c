/* Changes through the fixed array, the single chunk and the implicit index, against what libhdf5 makes of the
 * same sequence (tests/fixtures/fixed_array_write.py); tests/index_structure.py compares. */
#include "base/error.h"
#include "chunk_index/chunk_index.h"
#include "fault_io.h"
#include "store/file_set.h"
#include "store/object_header.h"
#include "store/transaction.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static struct h5_file_set_options options = {
	.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_ALWAYS, .writable = true};

#define SUCCEEDS(call) ck_assert_msg(!(call), "%s", h5_error_last()->text)

/* A dataset of a copy of its file. */
struct target {
	char folder[64], path[80];
	uint64_t header;
	struct h5_file_set *set;
	struct h5_file *file;
	struct h5_layout layout;
	struct h5_dataspace space;
	bool filtered;
	struct h5_chunk_index *index;
};

/* The body of a message, free(). */
static uint8_t *body_of(const struct target *t, enum h5_message_type type, size_t *n)
{
	const struct h5_message *m;
	struct h5_header header;
	uint8_t *body;

	SUCCEEDS(h5_header_load(t->file, t->header, &header));
	m = h5_header_find(&header, type);
	*n = m ? m->size : 0;
	body = m ? malloc(m->size) : NULL;
	if (m)
		memcpy(body, m->data, m->size);
	h5_header_release(&header);
	return body;
}

static void open_file(struct target *t)
{
	uint8_t *body;
	struct h5_reader r;
	size_t n;

	SUCCEEDS(h5_file_set_open(t->path, &options, &t->set));
	t->file = h5_file_set_root(t->set);
	body = body_of(t, H5_MSG_LAYOUT, &n);
	r = h5_file_reader(t->file, body, n, 0);
	SUCCEEDS(h5_layout_decode(&r, &t->layout));
	free(body);
	body = body_of(t, H5_MSG_DATASPACE, &n);
	r = h5_file_reader(t->file, body, n, 0);
	SUCCEEDS(h5_dataspace_decode(&r, &t->space));
	free(body);
	body = body_of(t, H5_MSG_PIPELINE, &n);
	t->filtered = body;
	free(body);
	SUCCEEDS(h5_chunk_index_open(t->file, t->layout.version, &t->layout.chunked, &t->space, t->filtered,
				     1, &t->index));
}

static void close_file(struct target *t)
{
	h5_chunk_index_close(t->index);
	h5_file_set_close(t->set);
}

static void open_copy(struct target *t, const char *name)
{
	const char *folder = getenv("H5FS_TEST_DATA");
	char path[4096], command[8192], found[64];
	bool known = false;
	FILE *text;

	*t = (struct target){.folder = "/tmp/check_fixed_array_write.XXXXXX"};
	ck_assert_ptr_nonnull(mkdtemp(t->folder));
	snprintf(t->path, sizeof t->path, "%s/file.h5", t->folder);
	snprintf(path, sizeof path, "%s/fixed_array_write.txt", folder);
	text = fopen(path, "r");
	ck_assert_ptr_nonnull(text);
	while (!known && fscanf(text, "%63s %ju", found, &t->header) == 2)
		known = !strcmp(found, name);
	fclose(text);
	ck_assert(known);
	snprintf(command, sizeof command, "cp %s/fixed_array_write-%s.h5 %s", folder, name, t->path);
	ck_assert_int_eq(system(command), 0);
	open_file(t);
}

static void remove_copy(struct target *t)
{
	char command[128];

	snprintf(command, sizeof command, "rm -r %s", t->folder);
	ck_assert_int_eq(system(command), 0);
}

/* Closes the file: "a" is as the other dataset, and neither has anything wrong with it. */
static void judge(struct target *t, const char *other)
{
	const char *folder = getenv("srcdir");
	char command[4096];

	close_file(t);
	snprintf(command, sizeof command, "/usr/bin/python3 %s/tests/index_structure.py %s a %s %s",
		 folder ? folder : ".", t->path, t->path, other);
	ck_assert_int_eq(system(command), 0);
	remove_copy(t);
}

/* ---- changes ---- */

/* Numbers go along the rows. */
static void to_scaled(const struct target *t, uint64_t n, uint64_t *scaled)
{
	uint64_t row = t->space.rank > 1 ? t->space.dims[1] : 1;

	scaled[0] = n / row;
	scaled[1] = n % row;
}

static int set_chunk(struct target *t, uint64_t n)
{
	uint8_t value = (uint8_t)(n * 7 + 3);
	struct h5_chunk chunk = {.size = 1};
	uint64_t scaled[H5_RANK_MAX];
	int rc = h5_tx_allocate(t->file, H5_ALLOCATE_RAW, 1, &chunk.address);

	to_scaled(t, n, scaled);
	if (!rc)
		rc = h5_tx_write(t->file, chunk.address, &value, 1);
	return rc ? rc : h5_chunk_index_set(t->index, scaled, &chunk);
}

static void set_chunks(struct target *t, uint64_t first, uint64_t last)
{
	for (uint64_t n = first; n < last; n++)
		ck_assert_msg(!set_chunk(t, n), "chunk %ju: %s", (uintmax_t)n, h5_error_last()->text);
}

/* Publishes so many rows. */
static int commit(struct target *t, uint64_t rows)
{
	const struct h5_superblock *sb = h5_file_superblock(t->file);
	uint8_t *body;
	size_t n;
	int rc;

	t->layout.chunked = *h5_chunk_index_layout(t->index);
	body = body_of(t, H5_MSG_LAYOUT, &n);
	SUCCEEDS(h5_layout_update(body, n, sb->size_of_offsets, sb->size_of_lengths, &t->layout));
	rc = h5_header_replace(t->file, t->header, H5_MSG_LAYOUT, body, n);
	free(body);
	if (rc)
		return rc;
	t->space.dims[0] = rows;
	h5_chunk_index_resize(t->index, t->space.dims);
	body = body_of(t, H5_MSG_DATASPACE, &n);
	SUCCEEDS(h5_dataspace_update(body, n, sb->size_of_lengths, &t->space));
	rc = h5_header_replace(t->file, t->header, H5_MSG_DATASPACE, body, n);
	free(body);
	return rc ? rc : h5_tx_commit(t->file);
}

/* ---- what is there ---- */

static uint64_t value_of(const struct target *t, uint64_t n)
{
	uint64_t scaled[H5_RANK_MAX];
	struct h5_chunk chunk;
	uint8_t value;

	to_scaled(t, n, scaled);
	SUCCEEDS(h5_chunk_index_lookup(t->index, scaled, &chunk));
	if (chunk.address == H5_UNDEF)
		return H5_UNDEF;
	ck_assert_uint_eq(chunk.size, 1);
	ck_assert_uint_eq(chunk.filter_mask, 0);
	SUCCEEDS(h5_file_read(t->file, chunk.address, &value, 1));
	return value;
}

static void assert_stored(const struct target *t, uint64_t first, uint64_t last)
{
	for (uint64_t n = first; n < last; n++)
		ck_assert_uint_eq(value_of(t, n), (n * 7 + 3) & 0xff);
}

static int count_chunk(void *arg, const struct h5_chunk *chunk)
{
	ck_assert_uint_eq(chunk->size, 1);
	++*(uint64_t *)arg;
	return 0;
}

static uint64_t count(const struct target *t)
{
	uint64_t n = 0;

	SUCCEEDS(h5_chunk_index_walk(t->index, count_chunk, &n));
	return n;
}

static uint64_t trim(struct target *t, uint64_t first)
{
	uint64_t n = 0;

	SUCCEEDS(h5_chunk_index_trim(t->index, first, count_chunk, &n));
	return n;
}

/* ---- tests ---- */

START_TEST(appending_makes_what_libhdf5_makes)
{
	static const struct {
		const char *name;
		uint64_t n, step;
	} cases[] = {{"small", 40, 40},	      {"small", 40, 1},	     {"block", 900, 900},
		     {"block", 900, 70},      {"paged", 3077, 3077}, {"paged", 3077, 213},
		     {"filtered", 2500, 311}, {"crossing", 81, 7}};
	struct target t;

	open_copy(&t, cases[_i].name);
	for (uint64_t first = 0; first < cases[_i].n; first += cases[_i].step) {
		uint64_t last = first + cases[_i].step < cases[_i].n ? first + cases[_i].step : cases[_i].n;

		set_chunks(&t, first, last);
		SUCCEEDS(commit(&t, last));
	}
	ck_assert_uint_eq(count(&t), cases[_i].n);
	assert_stored(&t, 0, cases[_i].n);
	judge(&t, "b");
}
END_TEST

START_TEST(rows_of_chunks)
{
	struct target t;

	open_copy(&t, "rows");
	set_chunks(&t, 0, 2100);
	SUCCEEDS(commit(&t, 300));
	ck_assert_uint_eq(trim(&t, 171), 129 * 7);
	SUCCEEDS(commit(&t, 171));
	ck_assert_uint_eq(value_of(&t, 171 * 7), H5_UNDEF);
	assert_stored(&t, 0, 171 * 7);
	judge(&t, "b");
}
END_TEST

START_TEST(pages_come_to_be_with_their_chunks)
{
	static const uint64_t numbers[] = {19999, 5, 6000, 5999, 12287, 12288};
	struct target t;

	open_copy(&t, "sparse");
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		ck_assert_int_eq(set_chunk(&t, numbers[i]), 0);
		if (i % 2)
			SUCCEEDS(commit(&t, 20000));
	}
	ck_assert_uint_eq(value_of(&t, 6001), H5_UNDEF);
	ck_assert_uint_eq(value_of(&t, 8000), H5_UNDEF);
	judge(&t, "b");
}
END_TEST

START_TEST(trimming_leaves_what_libhdf5_leaves)
{
	static const char *const names[] = {"trimmed", "trimmed-filtered"};
	struct target t;

	open_copy(&t, names[_i]);
	set_chunks(&t, 0, 4500);
	SUCCEEDS(commit(&t, 4500));
	ck_assert_uint_eq(trim(&t, 2000), 2500);
	ck_assert_uint_eq(trim(&t, 2000), 0);
	assert_stored(&t, 1024, 2000);
	ck_assert_uint_eq(value_of(&t, 2000), H5_UNDEF);
	SUCCEEDS(commit(&t, 2000));
	ck_assert_uint_eq(trim(&t, 10), 1990);
	ck_assert_uint_eq(count(&t), 10);
	set_chunks(&t, 10, 100);
	SUCCEEDS(commit(&t, 100));
	judge(&t, "b");
}
END_TEST

/* The header lies across a page: with the first change the whole array moves, and never again. */
START_TEST(an_array_that_has_to_move)
{
	static const struct {
		const char *name;
		uint64_t n;
	} cases[] = {{"crossing", 80}, {"crossing-paged", 2100}};
	struct target t;
	uint64_t before;

	open_copy(&t, cases[_i].name);
	before = t.layout.chunked.address;
	ck_assert(!h5_tx_is_safe(t.file, before, 28));
	ck_assert_int_eq(set_chunk(&t, cases[_i].n), 0);
	ck_assert_uint_ne(h5_chunk_index_layout(t.index)->address, before);
	assert_stored(&t, 0, cases[_i].n + 1);
	SUCCEEDS(commit(&t, cases[_i].n + 1));
	before = h5_chunk_index_layout(t.index)->address;
	ck_assert(h5_tx_is_safe(t.file, before, 28));
	ck_assert_int_eq(set_chunk(&t, 7), 0);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, before);
	SUCCEEDS(commit(&t, cases[_i].n + 1));
	judge(&t, "b");
}
END_TEST

START_TEST(a_single_chunk)
{
	static const char *const names[] = {"single", "single-filtered"};
	struct target t;

	open_copy(&t, names[_i]);
	set_chunks(&t, 0, 1);
	ck_assert_int_eq(set_chunk(&t, 1), -EFBIG);
	SUCCEEDS(commit(&t, 1));
	ck_assert_uint_eq(trim(&t, 1), 0);
	ck_assert_uint_eq(trim(&t, 0), 1);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	SUCCEEDS(commit(&t, 1));
	set_chunks(&t, 0, 1);
	SUCCEEDS(commit(&t, 1));
	assert_stored(&t, 0, 1);
	judge(&t, "b");
}
END_TEST

/* The chunks have their places. */
START_TEST(implicit_chunks_stay)
{
	struct h5_chunk chunk;
	struct target t;
	uint64_t n = 3;

	open_copy(&t, "implicit");
	ck_assert_int_eq(set_chunk(&t, 3), -ENOTSUP);
	SUCCEEDS(h5_chunk_index_lookup(t.index, &n, &chunk));
	SUCCEEDS(h5_chunk_index_set(t.index, &n, &chunk));
	ck_assert_uint_eq(trim(&t, 3), 0);
	SUCCEEDS(h5_chunk_index_lookup(t.index, &n, &chunk));
	ck_assert_uint_ne(chunk.address, H5_UNDEF);
	for (n = 0; n < 10; n++) {
		uint8_t value = (uint8_t)(n * 7 + 3);

		SUCCEEDS(h5_chunk_index_lookup(t.index, &n, &chunk));
		SUCCEEDS(h5_tx_write(t.file, chunk.address, &value, 1));
	}
	SUCCEEDS(commit(&t, 10));
	judge(&t, "b");
}
END_TEST

START_TEST(chunks_that_cannot_be)
{
	const struct h5_chunk absent = {.address = H5_UNDEF, .size = 77},
			      large = {.address = 8, .size = 1 << 24};
	const uint64_t zero = 0, far = 2999, beyond = 3000;
	struct target t;

	open_copy(&t, "filtered");
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &absent), 0);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &large), -EOVERFLOW);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	set_chunks(&t, 0, 3);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &far, &absent), 0);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &far, &large), -EOVERFLOW);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &beyond, &absent), 0);
	ck_assert_int_eq(set_chunk(&t, beyond), -EFBIG);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &absent), 0);
	ck_assert_uint_eq(value_of(&t, 0), H5_UNDEF);
	ck_assert_uint_eq(count(&t), 2);
	set_chunks(&t, 0, 1);
	set_chunks(&t, 3, 2500);
	SUCCEEDS(commit(&t, 2500));
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
	size_t begin;

	options.wrap = fault_io_wrap;
	options.wrap_arg = &fault;
	open_copy(&t, names[_i]);
	set_chunks(&t, 0, 30);
	SUCCEEDS(commit(&t, 40));
	end = h5_file_end(t.file);
	begin = fault.count;
	set_chunks(&t, 10, 30);
	ck_assert_uint_gt(trim(&t, 28), 0);
	for (size_t i = begin; i < fault.count; i++)
		ck_assert(fault.events[i].kind != FAULT_WRITE || fault.events[i].offset >= end);
	SUCCEEDS(commit(&t, 40));
	for (size_t i = begin; i < fault.count; i++) {
		const struct fault_event *e = &fault.events[i];

		ck_assert(e->file || e->kind != FAULT_WRITE || e->offset >= end ||
			  e->offset / H5_CELL == (e->offset + e->size - 1) / H5_CELL);
	}
	close_file(&t);
	options.wrap = NULL;
	remove_copy(&t);
	fault_io_release(&fault);
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

		options.wrap = fault_io_wrap;
		options.wrap_arg = &fault;
		open_copy(&t, names[_i]);
		for (uint64_t i = 0; i < 20; i += 2)
			ck_assert_int_eq(set_chunk(&t, i), 0);
		SUCCEEDS(commit(&t, 40));
		before = count(&t);
		fault.calls = 0;
		fault.fail = fail;
		for (uint64_t i = 1; i < 10 && !torn; i += 2)
			torn = set_chunk(&t, i) && set_chunk(&t, i);
		if (!torn)
			torn = h5_chunk_index_trim(t.index, 9, count_chunk, &n) &&
			       h5_chunk_index_trim(t.index, 9, count_chunk, &n);
		fired = fault.calls >= fail;
		fault.fail = 0;
		if (!torn) {
			assert_stored(&t, 0, 9);
			ck_assert_uint_eq(count(&t), 9);
			SUCCEEDS(commit(&t, 40));
		}
		close_file(&t);
		options.wrap = NULL;
		open_file(&t);
		assert_stored(&t, 0, torn ? 1 : 9);
		ck_assert_uint_eq(count(&t), torn ? before : 9);
		judge(&t, "a");
		fault_io_release(&fault);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fixed_array_write");
	TCase *all = tcase_create("fixed array");
	SRunner *runner;
	int failed;

	tcase_set_timeout(all, 300);
	tcase_add_loop_test(all, appending_makes_what_libhdf5_makes, 0, 8);
	tcase_add_test(all, rows_of_chunks);
	tcase_add_test(all, pages_come_to_be_with_their_chunks);
	tcase_add_loop_test(all, trimming_leaves_what_libhdf5_leaves, 0, 2);
	tcase_add_loop_test(all, an_array_that_has_to_move, 0, 2);
	tcase_add_loop_test(all, a_single_chunk, 0, 2);
	tcase_add_test(all, implicit_chunks_stay);
	tcase_add_test(all, chunks_that_cannot_be);
	tcase_add_loop_test(all, only_cells_change_what_is_there, 0, 5);
	tcase_add_loop_test(all, every_write_can_fail, 0, 4);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

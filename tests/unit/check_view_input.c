/* What programs write into datasets through views, piece by piece: bytes and lines that are no whole row yet
 * stay with the open file. */
#include "base/checked.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/writer.h"
#include "fault_kinds.h"
#include "format/datatype_make.h"
#include "object/numpy_parse.h"
#include "object/value.h"
#include "scratch.h"
#include "store/block.h"
#include "view/views.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1 << 17, MEGABYTE = 1 << 20 };

/* ---- calls of what lies below ---- */

enum { ALL_FAULTS = FAULTS + 1 };

static unsigned long calls_left; /* the last of so many fails, and that one alone; 0: none does */
static bool call_failed;

static bool call_fails(void)
{
	bool last = calls_left == 1;

	calls_left -= calls_left > 0;
	call_failed |= last;
	return last;
}

static void arm_call(unsigned long n)
{
	calls_left = n;
	call_failed = false;
}

static bool disarm_call(void)
{
	calls_left = 0;
	return call_failed;
}

/* A block, though it may be in the cache. */
int __real_h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address,
			 uint64_t variant, const void *arg, struct h5_lru_entry **ref);
int __wrap_h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address,
			 uint64_t variant, const void *arg, struct h5_lru_entry **ref);
int __wrap_h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address,
			 uint64_t variant, const void *arg, struct h5_lru_entry **ref)
{
	if (!call_fails())
		return __real_h5_file_block(file, type, address, variant, arg, ref);
	*ref = NULL;
	return h5_fail(-EIO, address, "cannot be read");
}

/* New rows. */
int __real_h5_dataset_writer_resize(struct h5_dataset_writer *writer, uint64_t rows);
int __wrap_h5_dataset_writer_resize(struct h5_dataset_writer *writer, uint64_t rows);
int __wrap_h5_dataset_writer_resize(struct h5_dataset_writer *writer, uint64_t rows)
{
	return call_fails() ? -EIO : __real_h5_dataset_writer_resize(writer, rows);
}

/* ---- a dataset, and an open file ---- */

struct scene {
	struct scratch scratch;
	uint64_t address;
	struct h5_view_input in;
	int error; /* of the call that failed; 0: none has */
};

/* An empty dataset with rows of so many elements; at most `rows` of them. */
static void make(struct scene *s, const char *type_name, uint64_t row, uint64_t rows)
{
	struct h5_new_dataset how = {
		.space = {.kind = H5_SPACE_SIMPLE,
			  .rank = 2,
			  .dims = {0, row},
			  .has_max = true,
			  .max = {rows, row ? row : H5_UNLIMITED}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {1, h5_max(h5_min(row, MEGABYTE), 1)},
	};
	struct h5_datatype *type;

	scratch_open(&s->scratch);
	SUCCEEDS(h5_numpy_parse(type_name, strlen(type_name), 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s->scratch.file, &how, &s->address));
	h5_datatype_free(type);
	SUCCEEDS(h5_tx_commit(s->scratch.file));
}

static void open_input(struct scene *s, const struct h5_view_ops *ops, struct h5_view_input *in)
{
	*in = (struct h5_view_input){.ops = ops,
				     .file = s->scratch.file,
				     .address = s->address,
				     .context = {.file = s->scratch.file}};
	SUCCEEDS(h5_dataset_writer_get(s->scratch.file, s->address, false, &in->writer));
}

static void close_input(struct h5_view_input *in)
{
	h5_dataset_writer_put(in->writer);
	h5_view_input_release(in);
	h5_view_input_release(in);
}

static void begin(struct scene *s, const struct h5_view_ops *ops, const char *type, uint64_t row,
		  uint64_t rows)
{
	*s = (struct scene){0};
	scratch_init(&s->scratch, "header_create-latest.h5");
	make(s, type, row, rows);
	open_input(s, ops, &s->in);
}

static void finish(struct scene *s)
{
	close_input(&s->in);
	SUCCEEDS(h5_tx_commit(s->scratch.file));
	h5_dataset_writers_close(s->scratch.file);
	scratch_release(&s->scratch);
}

/* One call fails at most. */
static void note(struct scene *s, int rc)
{
	ck_assert_msg(!rc || !s->error, "again: %d %s", rc, h5_error_last()->text);
	if (rc)
		s->error = rc;
}

/* A program that goes on after an error from where the error left it. */
static void put(struct scene *s, uint64_t offset, const void *data, size_t n, bool append)
{
	for (size_t done = 0, written; done < n; done += written) {
		int rc;

		written = 0;
		fault_alloc_count(true);
		rc = h5_dataset_writer_ready(s->in.writer);
		if (!rc)
			rc = s->in.ops->write(&s->in, offset + done, (const char *)data + done, n - done,
					      append, &written);
		fault_alloc_count(false);
		ck_assert_uint_le(written, n - done);
		ck_assert_msg(rc || written == n - done, "%zu of %zu", written, n - done);
		note(s, rc);
	}
}

static uint64_t size_of(struct scene *s)
{
	return h5_dataset_writer_size(s->in.writer);
}

/* All bytes of the dataset. */
static void check_bytes(struct scene *s, const uint8_t *expected, size_t n)
{
	static uint8_t bytes[MOST];
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_tx_settle(s->scratch.file));
	SUCCEEDS(h5_dataset_get(s->scratch.file, s->address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, n);
	ck_assert_uint_le(n, MOST);
	if (n)
		SUCCEEDS(h5_dataset_read(dataset, 0, bytes, n));
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(bytes[i] == expected[i], "byte %zu is %u, not %u", i, bytes[i], expected[i]);
	h5_file_put(s->scratch.file, ref);
}

/* ---- bytes ---- */

enum { ROW = 10000 };

/* What a program writes, one after the other, into rows of ROW bytes. */
static const struct {
	bool append;
	uint64_t offset;
	size_t n;
	uint64_t rows; /* that the dataset then has */
	uint64_t kept; /* rows, of which others make the dataset have fewer; 0: nobody does */
} steps[] = {
	{false, 0, 3000, 0, 0},			  /* the begin of a row */
	{false, 2000, 2000, 0, 0},		  /* over its end */
	{false, 500, 700, 0, 0},		  /* inside */
	{false, 6000, 1000, 0, 0},		  /* beyond, with a gap */
	{false, 7000, 3000 + ROW + 500, 2, 0},	  /* its end, a row, and the begin of another */
	{false, 200, ROW, 2, 0},		  /* in place */
	{false, 3 * ROW + 700, 300, 3, 0},	  /* beyond that row, which becomes complete */
	{false, ROW - 50, 100, 3, 0},		  /* in place, over the end of a row */
	{true, 0, 9000, 4, 0},			  /* the rest of the row */
	{true, 0, 1, 4, 0},			  /* a byte */
	{false, 4 * ROW + 100, 2 * ROW, 6, 0},	  /* behind a gap, as far as another row */
	{false, 6 * ROW - 50, 200, 6, 0},	  /* in place, and on in the row that is incomplete */
	{true, 0, ROW - 150, 7, 0},		  /* its end */
	{false, 9 * ROW, 100, 9, 0},		  /* the begin of a row further on */
	{false, 0, 0, 8, 8},			  /* rows before it go */
	{false, 9 * ROW + 100, ROW - 100, 10, 0}, /* its end */
};

static void cut(struct scene *s, uint64_t rows)
{
	int rc;

	do {
		fault_alloc_count(true);
		rc = h5_dataset_writer_ready(s->in.writer);
		if (!rc)
			rc = h5_dataset_writer_resize(s->in.writer, rows);
		fault_alloc_count(false);
		note(s, rc);
	} while (rc);
}

static uint8_t steps_expected[MOST];
static size_t steps_end;

static void write_steps(struct scene *s)
{
	static uint8_t data[3 * ROW];
	uint8_t *expected = steps_expected;
	size_t end = 0;

	memset(expected, 0, MOST);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const size_t offset = steps[i].append ? end : steps[i].offset;

		for (size_t k = 0; k < steps[i].n; k++)
			data[k] = (uint8_t)(1 + (offset + 7 * i + k * k) % 255);
		memcpy(expected + offset, data, steps[i].n);
		end = end > offset + steps[i].n ? end : offset + steps[i].n;
		if (steps[i].kept)
			cut(s, steps[i].kept);
		put(s, steps[i].append ? 12345 : offset, data, steps[i].n, steps[i].append);
		ck_assert_msg(size_of(s) == steps[i].rows * ROW, "step %zu: %ju bytes", i,
			      (uintmax_t)size_of(s));
	}
	steps_end = end;
}

static void check_steps(struct scene *s)
{
	check_bytes(s, steps_expected, steps_end);
}

static size_t piece_size; /* of what is written at once */

/* Every allocation, every read, or every call of those above fails once. */
static void fail_each(const struct h5_view_ops *ops, const char *type, uint64_t row, unsigned number,
		      void (*run)(struct scene *s), void (*check)(struct scene *s))
{
	static const struct fault own = {arm_call, disarm_call, -EIO};
	const struct fault *const fault = number < FAULTS ? &faults[number] : &own;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct scene s;

		begin(&s, ops, type, row, UINT64_MAX);
		h5_error_clear();
		fault->arm(n);
		run(&s);
		fired = fault->disarm();
		ck_assert_msg(!s.error || (fired && s.error == fault->error), "call %lu: %d %s", n, s.error,
			      h5_error_last()->text);
		check(&s);
		finish(&s);
	}
}

START_TEST(bytes_are_written_in_pieces)
{
	fail_each(&h5_view_raw, "|u1", ROW, (unsigned)_i, write_steps, check_steps);
}
END_TEST

/* Memory grows by doubling, and up to the row. That of large rows goes when they are complete. */
START_TEST(incomplete_rows_need_little_memory)
{
	static const uint8_t data[2 * MEGABYTE] = {0};
	static const struct {
		size_t row, n, capacity; /* of n bytes of the row */
	} cases[] = {{100, 1, 100},
		     {ROW, 4096, 4096},
		     {ROW, 4097, 8192},
		     {ROW, 8192, 8192},
		     {ROW, 8193, ROW},
		     {ROW, ROW, ROW},
		     {8192, 4097, 8192},
		     {8193, 4097, 8192},
		     {8191, 4097, 8191},
		     {8191, 4096, 4096},
		     {MEGABYTE, 5000, 8192},
		     {MEGABYTE, MEGABYTE, MEGABYTE},
		     {MEGABYTE + 1, MEGABYTE + 1, 0}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct scene s;

		begin(&s, &h5_view_raw, "|u1", cases[i].row, UINT64_MAX);
		put(&s, 0, data, 1, false);
		if (cases[i].n > 1)
			put(&s, 1, data, cases[i].n - 1, false);
		ck_assert_int_eq(s.error, 0);
		ck_assert_msg(s.in.capacity == cases[i].capacity, "%zu: %zu bytes", i, s.in.capacity);
		ck_assert_uint_eq(s.in.filled, cases[i].n < cases[i].row ? cases[i].n : 0);
		finish(&s);
	}
}
END_TEST

/* More of the fill value in front of a byte than memory is given for. */
START_TEST(a_gap_has_its_limit)
{
	enum { GAP_MOST = 256 * MEGABYTE };
	struct scene s;
	size_t written;

	begin(&s, &h5_view_raw, "|u1", 2 * (uint64_t)GAP_MOST, UINT64_MAX);
	ck_assert_int_eq(h5_view_raw.write(&s.in, GAP_MOST, "x", 1, false, &written), -ENOMEM);
	ck_assert_uint_eq(written, 0);
	ck_assert_uint_eq(s.in.filled, 0);
	put(&s, GAP_MOST - 1, "x", 1, false);
	ck_assert_int_eq(s.error, 0);
	ck_assert_uint_eq(s.in.filled, GAP_MOST);
	ck_assert_int_eq(s.in.data[0], 0);
	ck_assert_int_eq(s.in.data[GAP_MOST - 2], 0);
	ck_assert_int_eq(s.in.data[GAP_MOST - 1], 'x');
	finish(&s);
}
END_TEST

/* Two programs: the rows of one take the place that the incomplete row of the other has. */
START_TEST(rows_of_another_program_come_first)
{
	static uint8_t expected[3 * ROW], own[ROW];
	struct h5_view_input *own_input, other;
	struct scene s;

	begin(&s, &h5_view_raw, "|u1", ROW, UINT64_MAX);
	memset(own, 'o', sizeof own);
	put(&s, ROW, own, 40, false); /* row 1; row 0 has the fill value now */
	ck_assert_uint_eq(size_of(&s), ROW);
	own_input = malloc(sizeof *own_input);
	*own_input = s.in;
	open_input(&s, &h5_view_raw, &other);
	s.in = other;
	memset(expected, 'e', sizeof expected);
	put(&s, ROW, expected, 2 * ROW, false);
	ck_assert_uint_eq(size_of(&s), 3 * ROW);
	other = s.in;
	s.in = *own_input;
	free(own_input);
	/* In place up to the own row; into it; and behind what it has, in place. */
	put(&s, ROW - 10, "0123456789abcdefghij", 20, false);
	memset(expected, 0, ROW);
	memcpy(expected + ROW - 10, "0123456789", 10);
	check_bytes(&s, expected, sizeof expected);
	put(&s, 2 * ROW - 5, "fghijklmno", 10, false);
	memcpy(expected + 2 * ROW - 5, "fghijklmno", 10);
	check_bytes(&s, expected, sizeof expected);
	/* The row is complete: it is what it has. */
	put(&s, ROW + 40, own + 40, ROW - 40, false);
	memcpy(expected + ROW, "abcdefghij", 10);
	memset(expected + ROW + 10, 'o', ROW - 10);
	check_bytes(&s, expected, sizeof expected);
	ck_assert_int_eq(s.error, 0);
	close_input(&other);
	finish(&s);
}
END_TEST

/* Of a file that is made longer. */
START_TEST(a_size_completes_a_row)
{
	static const struct {
		uint64_t size;
		bool is_completed;
	} sizes[] = {{0, false},	  {ROW - 1, false},	{ROW, false},
		     {2 * ROW, false},	  {3 * ROW - 1, false}, {3 * ROW, true},
		     {3 * ROW + 1, true}, {4 * ROW, true},	{UINT64_MAX, true}};
	struct scene s;

	begin(&s, &h5_view_raw, "|u1", ROW, UINT64_MAX);
	ck_assert(!h5_view_raw.is_completed(&s.in, ROW));
	put(&s, 2 * ROW + 5, "x", 1, false);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		ck_assert_msg(h5_view_raw.is_completed(&s.in, sizes[i].size) == sizes[i].is_completed, "%zu",
			      i);
	finish(&s);
	begin(&s, &h5_view_raw, "|u1", ROW, UINT64_MAX);
	put(&s, 0, "x", 1, false);
	ck_assert(!h5_view_raw.is_completed(&s.in, ROW - 1));
	ck_assert(h5_view_raw.is_completed(&s.in, ROW));
	finish(&s);
}
END_TEST

/* ---- lines ---- */

enum { LINES = 3 };

static const char text[] = "one\ntwo\n\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n"
			   "thirteen\nfourteen\nfifteen\n16\n17\n18\n19\n20\n21";

/* All strings of the dataset, with an end of line behind each. */
static void check_lines(struct scene *s, const char *expected)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct h5_buf all;
	uint8_t *elements;

	SUCCEEDS(h5_tx_settle(s->scratch.file));
	SUCCEEDS(h5_dataset_get(s->scratch.file, s->address, &ref, &dataset));
	elements = malloc(dataset->size + 1);
	if (dataset->size)
		SUCCEEDS(h5_dataset_read(dataset, 0, elements, dataset->size));
	h5_buf_init(&all, MOST);
	for (size_t at = 0; at < dataset->size; at += dataset->type->size) {
		SUCCEEDS(h5_value_vlen_string(s->scratch.file, dataset->type, elements + at, &all));
		h5_buf_byte(&all, '\n');
	}
	h5_buf_byte(&all, 0);
	ck_assert_str_eq(all.data, expected);
	h5_buf_release(&all);
	free(elements);
	h5_file_put(s->scratch.file, ref);
}

/* The last line has no end: it is complete when the file is closed. */
static void write_text(struct scene *s)
{
	int rc;

	for (size_t at = 0, n; at < sizeof text - 1; at += n) {
		n = h5_min(piece_size, sizeof text - 1 - at);
		put(s, at, text + at, n, true);
	}
	ck_assert_uint_eq(size_of(s) / h5_dataset_writer_row(s->in.writer), 6);
	for (unsigned tries = 0; tries < 2; tries++) {
		fault_alloc_count(true);
		rc = h5_dataset_writer_ready(s->in.writer);
		if (!rc)
			rc = s->in.ops->check(&s->in);
		fault_alloc_count(false);
		note(s, rc);
	}
	do {
		fault_alloc_count(true);
		rc = s->in.ops->finish(&s->in);
		fault_alloc_count(false);
		note(s, rc);
	} while (rc);
	ck_assert_uint_eq(s->in.filled, 0);
}

static void check_text(struct scene *s)
{
	char expected[sizeof text + 1];

	snprintf(expected, sizeof expected, "%s\n", text);
	check_lines(s, expected);
}

START_TEST(lines_are_written_in_pieces)
{
	static const size_t sizes[] = {1, 7, 30, sizeof text};

	piece_size = sizes[(unsigned)_i / ALL_FAULTS];
	fail_each(&h5_view_lines, "vlen str", LINES, (unsigned)_i % ALL_FAULTS, write_text, check_text);
}
END_TEST

/* A line that never ends, and one that is longer than any may be. */
START_TEST(lines_have_their_limits)
{
	enum { LINE_MOST = 128 * MEGABYTE, ROW_MOST = 256 * MEGABYTE };
	char *line = malloc(ROW_MOST + 1);
	struct scene s;
	size_t written;

	memset(line, 'x', ROW_MOST + 1);
	begin(&s, &h5_view_lines, "vlen str", LINES, UINT64_MAX);
	ck_assert_int_eq(h5_view_lines.write(&s.in, 0, line, ROW_MOST + 1, true, &written), -EFBIG);
	ck_assert_uint_eq(written, 0);
	ck_assert_uint_eq(s.in.filled, 0);
	SUCCEEDS(h5_view_lines.write(&s.in, 0, line, ROW_MOST, true, &written));
	ck_assert_uint_eq(written, ROW_MOST);
	ck_assert_uint_eq(s.in.capacity, ROW_MOST);
	ck_assert_int_eq(h5_view_lines.write(&s.in, 0, line, 1, true, &written), -EFBIG);
	ck_assert_uint_eq(s.in.filled, ROW_MOST);
	h5_view_input_release(&s.in);
	line[LINE_MOST] = '\n';
	ck_assert_int_eq(h5_view_lines.write(&s.in, 0, line, LINE_MOST + 1, true, &written), -EFBIG);
	ck_assert_uint_eq(written, 0);
	line[LINE_MOST - 1] = '\n';
	SUCCEEDS(h5_view_lines.write(&s.in, 0, line, LINE_MOST, true, &written));
	ck_assert_uint_eq(written, LINE_MOST);
	ck_assert_uint_eq(s.in.lines, 1);
	finish(&s);
	free(line);
}
END_TEST

/* The memory of a long row goes when it is complete; that of a short one stays. */
START_TEST(long_rows_give_up_their_memory)
{
	static char line[MEGABYTE];
	struct scene s;

	for (size_t excess = 0; excess < 2; excess++) {
		begin(&s, &h5_view_lines, "vlen str", 2, UINT64_MAX);
		memset(line, 'x', sizeof line);
		line[sizeof line - 1 - 2 + excess] = '\n';
		put(&s, 0, line, sizeof line - 2 + excess, true);
		ck_assert_uint_eq(s.in.lines, 1);
		put(&s, 0, "y\n", 2, true);
		ck_assert_uint_eq(size_of(&s), h5_dataset_writer_row(s.in.writer));
		ck_assert_uint_eq(s.in.capacity, excess ? 0 : MEGABYTE);
		ck_assert_int_eq(s.error, 0);
		finish(&s);
	}
}
END_TEST

/* A line that is no element, or has no place, is not there afterwards, and the next one is. */
START_TEST(a_bad_line_goes)
{
	static const char *const pieces[] = {"1\n2\n", "x", "y\n", "3\n4", "\n5\nz\n", "6\n"};
	static const uint8_t expected[] = {1, 2, 3, 4, 5, 6};
	static const uint64_t lines[] = {2, 2, 2, 3, 5, 6};
	struct scene s;

	begin(&s, &h5_view_values, "|u1", LINES, 2);
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		const size_t n = strlen(pieces[i]);
		size_t done = 0, written;
		int rc;

		do {
			rc = h5_view_values.write(&s.in, 0, pieces[i] + done, n - done, true, &written);
			done += written;
		} while (!rc && done < n);
		ck_assert_msg(rc == (strpbrk(pieces[i], "yz") ? -EINVAL : 0), "%zu: %d", i, rc);
		ck_assert_uint_eq(size_of(&s) + s.in.lines, lines[i]);
	}
	check_bytes(&s, expected, sizeof expected);
	ck_assert_int_eq(h5_view_values.write(&s.in, 0, "7", 1, true, &(size_t){0}), -EFBIG);
	ck_assert_uint_eq(s.in.filled, 0);
	SUCCEEDS(h5_view_values.check(&s.in));
	finish(&s);
}
END_TEST

/* The last line needs no end, unless the row does. */
START_TEST(values_end_with_a_row)
{
	static const uint8_t expected[] = {1, 2, 3};
	struct scene s;

	begin(&s, &h5_view_values, "|u1", LINES, 2);
	SUCCEEDS(h5_view_values.finish(&s.in));
	put(&s, 0, "1\n2\n3", 5, true);
	SUCCEEDS(h5_view_values.check(&s.in));
	check_bytes(&s, expected, 0);
	SUCCEEDS(h5_view_values.finish(&s.in));
	check_bytes(&s, expected, 3);
	put(&s, 0, "4\n5", 3, true);
	ck_assert_int_eq(h5_view_values.check(&s.in), -EINVAL);
	ck_assert_str_eq(h5_error_last()->text, "the last row is incomplete: 2 lines of 3");
	ck_assert_int_eq(h5_view_values.finish(&s.in), -EINVAL);
	check_bytes(&s, expected, 3);
	ck_assert_int_eq(s.error, 0);
	finish(&s);
}
END_TEST

/* Another program takes the last rows while this one has a part of a row. */
START_TEST(rows_that_others_take)
{
	static const uint8_t expected[] = {1, 2, 3, 4, 5, 6};
	struct h5_view_input other;
	struct scene s;
	size_t written;

	begin(&s, &h5_view_values, "|u1", LINES, 2);
	put(&s, 0, "7\n8", 3, true);
	open_input(&s, &h5_view_values, &other);
	SUCCEEDS(h5_view_values.write(&other, 0, "1\n2\n3\n4\n5\n6\n", 12, true, &written));
	ck_assert_uint_eq(written, 12);
	arm_call(1);
	ck_assert_int_eq(h5_view_values.write(&s.in, 0, "\n", 1, true, &written), -EIO);
	ck_assert(disarm_call());
	ck_assert_int_eq(h5_view_values.write(&s.in, 0, "\n", 1, true, &written), -EFBIG);
	ck_assert_str_eq(h5_error_last()->text, "the dataset has all the rows that it may have");
	ck_assert_uint_eq(written, 0);
	ck_assert_uint_eq(s.in.filled, 3);
	check_bytes(&s, expected, 6);
	close_input(&other);
	finish(&s);
}
END_TEST

START_TEST(rows_of_nothing_cannot_be_added)
{
	struct scene s;
	size_t written;

	begin(&s, &h5_view_values, "|u1", 0, UINT64_MAX);
	ck_assert_int_eq(h5_view_values.write(&s.in, 0, "1\n", 2, true, &written), -EFBIG);
	ck_assert_uint_eq(written, 0);
	ck_assert_int_eq(h5_view_raw.write(&s.in, 0, "1", 1, true, &written), -EFBIG);
	ck_assert_uint_eq(written, 0);
	SUCCEEDS(h5_view_values.finish(&s.in));
	finish(&s);
}
END_TEST

/* What no member has is that of the fill value. */
START_TEST(gaps_of_elements_are_the_fill_value)
{
	static const char lines[] = "{\"a\": 1, \"b\": 2}\n{\"a\": 3, \"b\": 4}\n";
	static const uint8_t fill[] = {9, 8, 7, 6}, expected[] = {1, 8, 7, 2, 3, 8, 7, 4};
	struct h5_datatype *type = h5_datatype_make_compound(4, 2);
	struct h5_new_dataset how = {
		.type = type,
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .has_max = true, .max = {H5_UNLIMITED}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {8},
		.fill = fill};
	struct scene s = {0};

	scratch_init(&s.scratch, "header_create-latest.h5");
	scratch_open(&s.scratch);
	for (unsigned i = 0; i < 2; i++)
		SUCCEEDS(h5_datatype_add_member(type, i ? "b" : "a", 3 * i,
						h5_datatype_make_integer(1, false, H5_ORDER_LE)));
	SUCCEEDS(h5_dataset_create(s.scratch.file, &how, &s.address));
	h5_datatype_free(type);
	open_input(&s, &h5_view_jsonl, &s.in);
	put(&s, 0, lines, strlen(lines), true);
	ck_assert_int_eq(s.error, 0);
	check_bytes(&s, expected, sizeof expected);
	finish(&s);
}
END_TEST

UNIT_MAIN_LOOPS("view input", {bytes_are_written_in_pieces, ALL_FAULTS},
		{incomplete_rows_need_little_memory, 1}, {a_gap_has_its_limit, 1},
		{rows_of_another_program_come_first, 1}, {a_size_completes_a_row, 1},
		{lines_are_written_in_pieces, 4 * ALL_FAULTS}, {lines_have_their_limits, 1},
		{long_rows_give_up_their_memory, 1}, {a_bad_line_goes, 1}, {values_end_with_a_row, 1},
		{rows_that_others_take, 1}, {rows_of_nothing_cannot_be_added, 1},
		{gaps_of_elements_are_the_fill_value, 1})

/* Rows that gather in memory before they are stored, when storing them fails. */
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/writer.h"
#include "object/numpy_parse.h"
#include "scratch.h"

#include <errno.h>

enum {
	ELEMENT = 16, /* bytes */
	CHUNK = 16 * ELEMENT,
	GATHERED = 1 << 16, /* bytes of rows that are stored at once */
};

/* An empty dataset of strings of variable length, in chunks of so many bytes, and its writer. */
static struct h5_dataset_writer *make(struct scratch *s, size_t chunk, uint64_t *address)
{
	struct h5_new_dataset how = {
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .max = {H5_UNLIMITED}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {chunk / ELEMENT},
	};
	struct h5_dataset_writer *writer;
	struct h5_datatype *type;

	SUCCEEDS(h5_numpy_parse("vlen str", 8, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s->file, &how, address));
	h5_datatype_free(type);
	SUCCEEDS(h5_tx_commit(s->file));
	SUCCEEDS(h5_dataset_writer_get(s->file, *address, false, &writer));
	return writer;
}

/* The last append is undone. The rows before it still wait in memory. */
START_TEST(a_failed_append_adds_no_rows)
{
	static const uint8_t none[GATHERED];
	struct h5_dataset_writer *writer;
	const struct h5_dataset *dataset;
	struct fault_io fault = {0};
	struct h5_lru_entry *ref;
	struct scratch s;
	uint64_t address;

	scratch_init(&s, "header_create-latest.h5");
	scratch_wrap(&s, &fault);
	scratch_open(&s);
	writer = make(&s, CHUNK, &address);
	SUCCEEDS(h5_dataset_writer_append(writer, none, GATHERED - ELEMENT));
	fault_io_arm(&fault, 1);
	fault.error = -ENOSPC;
	ck_assert_int_eq(h5_dataset_writer_append(writer, none, ELEMENT), -ENOSPC);
	ck_assert(fault_io_disarm(&fault));
	ck_assert_uint_eq(h5_dataset_writer_size(writer), GATHERED - ELEMENT);
	SUCCEEDS(h5_dataset_writer_append(writer, none, ELEMENT));
	ck_assert_uint_eq(h5_dataset_writer_size(writer), GATHERED);
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(s.file));
	h5_dataset_writers_close(s.file);
	SUCCEEDS(h5_dataset_get(s.file, address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, GATHERED);
	h5_file_put(s.file, ref);
	scratch_release(&s);
}
END_TEST

/* Rows that would be a part of a chunk wait for more, so no chunk is held in memory. */
START_TEST(whole_chunks_are_stored)
{
	static const size_t sizes[] = {GATHERED + ELEMENT, GATHERED - ELEMENT, GATHERED + 5 * ELEMENT,
				       3 * GATHERED - 2 * ELEMENT, GATHERED};
	static uint8_t rows[8 * GATHERED], stored[sizeof rows];
	struct h5_dataset_writer *writer;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct scratch s;
	uint64_t address;
	size_t n = 0;

	/* Nothing, of length 0 and address 0, with a number by which it can be told. */
	for (size_t at = 0; at < sizeof rows; at += ELEMENT)
		memcpy(rows + at + ELEMENT - sizeof(uint32_t), &(uint32_t){(uint32_t)at}, sizeof(uint32_t));
	scratch_init(&s, "header_create-latest.h5");
	scratch_open(&s);
	writer = make(&s, CHUNK, &address);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		SUCCEEDS(h5_dataset_writer_append(writer, rows + n, sizes[i]));
		n += sizes[i];
		ck_assert_uint_eq(h5_dataset_writer_size(writer), n);
		ck_assert_uint_eq(h5_dataset_writer_held(writer), n % CHUNK);
	}
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(s.file));
	h5_dataset_writers_close(s.file);
	SUCCEEDS(h5_dataset_get(s.file, address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, n);
	SUCCEEDS(h5_dataset_read(dataset, 0, stored, n));
	ck_assert_mem_eq(stored, rows, n);
	h5_file_put(s.file, ref);
	scratch_release(&s);
}
END_TEST

/* A part of a large chunk does not wait. */
START_TEST(large_chunks_are_held)
{
	static const uint8_t none[GATHERED];
	struct h5_dataset_writer *writer;
	struct scratch s;
	uint64_t address;

	scratch_init(&s, "header_create-latest.h5");
	scratch_open(&s);
	writer = make(&s, 3 * GATHERED, &address);
	for (size_t i = 0; i < 2; i++) {
		SUCCEEDS(h5_dataset_writer_append(writer, none, GATHERED));
		ck_assert_uint_eq(h5_dataset_writer_held(writer), 3 * GATHERED);
	}
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(s.file));
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* Elements of variable length need space elsewhere, which SWMR readers cannot follow. */
START_TEST(no_rows_for_swmr_readers)
{
	struct h5_dataset_writer *writer;
	struct scratch s;
	uint64_t address;

	scratch_init(&s, "header_create-latest.h5");
	scratch_open(&s);
	h5_dataset_writer_put(make(&s, CHUNK, &address));
	SUCCEEDS(h5_tx_commit(s.file));
	h5_dataset_writers_close(s.file);
	scratch_close(&s);
	s.options.swmr = true;
	scratch_open(&s);
	ck_assert_int_eq(h5_dataset_writer_get(s.file, address, false, &writer), -EPERM);
	ck_assert_str_eq(h5_error_last()->text, "dataset: SWMR readers cannot follow its values");
	scratch_release(&s);
}
END_TEST

enum { ROWS = 300 };

static int do_write(struct h5_dataset_writer *writer)
{
	static const uint8_t none[ELEMENT];

	return h5_dataset_writer_write(writer, ELEMENT, none, ELEMENT);
}

static int do_punch(struct h5_dataset_writer *writer)
{
	return h5_dataset_writer_punch(writer, 0, 2 * CHUNK);
}

static int do_resize(struct h5_dataset_writer *writer)
{
	return h5_dataset_writer_resize(writer, ROWS);
}

static int do_peek(struct h5_dataset_writer *writer)
{
	uint8_t rows[ROWS * ELEMENT];

	return h5_dataset_writer_peek(writer, rows, sizeof rows);
}

static const struct {
	int (*run)(struct h5_dataset_writer *writer);
	int then; /* what it gives once rows can be stored */
} operations[] = {{do_write, 0}, {do_punch, 0}, {do_resize, 0}, {do_peek, -ENODATA}};

/* Whatever needs the rows stored fails if they cannot be. They wait on. */
START_TEST(rows_that_cannot_be_stored_wait)
{
	uint8_t rows[ROWS * ELEMENT] = {0};
	struct h5_dataset_writer *writer;
	struct fault_io fault = {.error = -ENOSPC};
	struct scratch s;
	uint64_t address;

	scratch_init(&s, "header_create-latest.h5");
	scratch_wrap(&s, &fault);
	scratch_open(&s);
	writer = make(&s, CHUNK, &address);
	SUCCEEDS(h5_dataset_writer_append(writer, rows, sizeof rows));
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(operations[_i].run(writer), -ENOSPC);
	ck_assert(fault_io_disarm(&fault));
	ck_assert_uint_eq(h5_dataset_writer_held(writer), sizeof rows);
	ck_assert_uint_eq(h5_dataset_writer_size(writer), sizeof rows);
	ck_assert_int_eq(operations[_i].run(writer), operations[_i].then);
	ck_assert_uint_lt(h5_dataset_writer_held(writer), sizeof rows);
	ck_assert_uint_eq(h5_dataset_writer_size(writer), sizeof rows);
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(s.file));
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

UNIT_MAIN_LOOPS("added_rows", {a_failed_append_adds_no_rows, 1}, {whole_chunks_are_stored, 1},
		{large_chunks_are_held, 1}, {no_rows_for_swmr_readers, 1},
		{rows_that_cannot_be_stored_wait, sizeof operations / sizeof *operations})

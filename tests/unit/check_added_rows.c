/* Rows that gather in memory before they are stored, when storing them fails. */
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/writer.h"
#include "object/numpy_parse.h"
#include "scratch.h"

#include <errno.h>

enum { ELEMENT = 16, GATHERED = 1 << 16 }; /* bytes of an element; bytes of rows that are stored at once */

/* An empty dataset of strings of variable length, and its writer. */
static struct h5_dataset_writer *make(struct scratch *s, uint64_t *address)
{
	struct h5_new_dataset how = {
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .max = {H5_UNLIMITED}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {16},
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
	writer = make(&s, &address);
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

UNIT_MAIN("added_rows", a_failed_append_adds_no_rows)

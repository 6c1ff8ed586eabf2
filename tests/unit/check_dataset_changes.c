/* Changes of datasets, one at a time: which chunks they filter, what they refuse, and what they do if
 * something that must come first fails. */
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "dataset/chunked_store.h"
#include "dataset/create.h"
#include "dataset/reshape.h"
#include "dataset_model.h"
#include "fault_alloc.h"
#include "object/numpy_parse.h"

#include <errno.h>
#include <string.h>

/* ---- chunks at the edge ---- */

enum { CHUNK = 4 * 4 }; /* bytes of a chunk */

/* The chunks of a dataset of one dimension: each of them 'f' (filtered) or 'r' (raw). */
static void check_chunks(struct model_run *r, struct model *m, const char *expected)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;

	model_commit(r);
	model_compare(r, m);
	SUCCEEDS(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset));
	for (uint64_t i = 0; expected[i]; i++) {
		struct h5_chunk chunk;

		SUCCEEDS(h5_chunk_index_lookup(dataset->index, NULL, &i, &chunk));
		ck_assert_uint_ne(chunk.address, H5_UNDEF);
		ck_assert_msg(chunk.filter_mask == (expected[i] == 'r'), "chunk %ju of %s has mask %u",
			      (uintmax_t)i, expected, chunk.filter_mask);
		if (expected[i] == 'r')
			ck_assert_uint_eq(chunk.size, CHUNK);
	}
	h5_file_put(r->scratch.file, ref);
}

/* The last chunk is stored raw as long as it is not complete, however its rows come and go. */
START_TEST(chunks_are_filtered_once_they_are_complete)
{
	struct model_run r;
	struct model *m;

	model_begin(&r, "edges", 1);
	m = model_find(&r, "edges1");
	ck_assert_uint_eq(m->rows, 7);
	model_append(&r, m, 1);
	check_chunks(&r, m, "ff");
	model_append(&r, m, 1);
	check_chunks(&r, m, "ffr");
	model_append(&r, m, 2);
	check_chunks(&r, m, "ffr");
	model_append(&r, m, 1);
	check_chunks(&r, m, "fff");
	model_append(&r, m, 6);
	check_chunks(&r, m, "ffffr");
	model_append(&r, m, 3);
	check_chunks(&r, m, "fffffr");
	model_resize(&r, m, 24);
	check_chunks(&r, m, "ffffff");
	model_resize(&r, m, 21);
	check_chunks(&r, m, "fffffr");
	model_resize(&r, m, 20);
	check_chunks(&r, m, "fffff");
	model_resize(&r, m, 14);
	check_chunks(&r, m, "fffr");
	model_reopen(&r);
	model_end(&r);
}
END_TEST

/* ---- what comes first ---- */

/* From here on, `n` calls are those of a commit. */
static struct model *begin_change(struct model_run *r, unsigned long *n)
{
	struct model *m;

	model_begin(r, "latest", 1);
	m = model_find(r, "both");
	model_append(r, m, 1);
	SUCCEEDS(h5_tx_settle(r->scratch.file));
	r->fault.error = -ENOSPC;
	if (!n)
		return m;
	*n = r->fault.calls;
	SUCCEEDS(h5_tx_commit(r->scratch.file));
	*n = r->fault.calls - *n;
	return m;
}

static int make_smaller(struct model *m, bool all)
{
	const uint64_t dims[] = {10, 12};

	return all ? h5_dataset_reshape(m->writer, dims) : h5_dataset_writer_resize(m->writer, 5);
}

/* A dataset becomes smaller after a commit of what it was before. If that fails it stays as it is. */
START_TEST(a_dataset_that_cannot_be_committed_stays)
{
	const uint64_t smaller = _i ? 10 * 12 * 4 : 5 * 14 * 4;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct model_run r;
	unsigned long n;
	struct model *m;

	(void)begin_change(&r, &n);
	model_end(&r);
	ck_assert_uint_gt(n, 2);
	for (unsigned long i = 1; i <= n; i++) {
		m = begin_change(&r, NULL);
		fault_io_arm(&r.fault, i);
		ck_assert_int_eq(make_smaller(m, _i), -ENOSPC);
		ck_assert(fault_io_disarm(&r.fault));
		if (h5_tx_is_writable(r.scratch.file)) {
			model_compare(&r, m);
			SUCCEEDS(make_smaller(m, _i));
			ck_assert_uint_eq(h5_dataset_writer_size(m->writer), smaller);
		} else {
			model_close(&r);
			scratch_open(&r.scratch);
			SUCCEEDS(h5_dataset_get(r.scratch.file, m->address, &ref, &dataset));
			ck_assert(dataset->size == m->size || dataset->size == m->size - m->row);
			h5_file_put(r.scratch.file, ref);
		}
		model_end(&r);
	}
}
END_TEST

/* ---- what lies outside of a new shape ---- */

static int count_chunk(void *count, const struct h5_chunk *chunk)
{
	(void)chunk;
	++*(unsigned *)count;
	return 0;
}

/* The dataset has these dimensions and so many chunks. Of `was`, elements that had so many columns, it has
 * the first columns; others have the fill value. */
static void check_shape(struct model_run *r, const struct model *m, const uint64_t dims[2], unsigned chunks,
			uint64_t columns)
{
	const uint64_t was = m->row / m->element;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	unsigned count = 0;
	uint8_t *data;

	SUCCEEDS(h5_tx_settle(r->scratch.file));
	SUCCEEDS(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset));
	ck_assert_mem_eq(dataset->space.dims, dims, 2 * sizeof *dims);
	SUCCEEDS(h5_chunk_index_walk(dataset->index, count_chunk, &count));
	ck_assert_msg(count == chunks, "%s: %u chunks of %u", m->name, count, chunks);
	data = malloc(dataset->size);
	SUCCEEDS(h5_dataset_read(dataset, 0, data, dataset->size));
	for (uint64_t i = 0; i < dims[0] * dims[1]; i++) {
		const uint64_t row = i / dims[1], column = i % dims[1];
		const uint8_t *expected =
			column < columns ? m->data + (row * was + column) * m->element : m->fill;

		ck_assert_mem_eq(data + i * m->element, expected, m->element);
	}
	free(data);
	h5_file_put(r->scratch.file, ref);
}

/* Chunks outside go. Those that come have the fill value, and with early allocation are stored at once. */
START_TEST(chunks_go_and_come_with_the_shape)
{
	static const struct {
		const char *version, *name;
		bool early;
	} cases[] = {{"latest", "both", false},		 {"latest", "both_gzip", false},
		     {"earliest", "plain2", false},	 {"earliest", "plain2_gzip", false},
		     {"latest", "early_gzip", true},	 {"earliest", "early_gzip", true},
		     {"latest", "early_unlimited", true}};
	struct model_run r;
	struct model *m;
	uint64_t dims[2];

	model_begin(&r, cases[_i].version, 1);
	m = model_find(&r, cases[_i].name);
	ck_assert_uint_eq(m->rows, 9);
	dims[0] = m->rows;
	dims[1] = m->row / m->element;
	/* 3 by 3 chunks of 4 rows and 5 columns. */
	check_shape(&r, m, dims, 9, dims[1]);
	SUCCEEDS(h5_dataset_reshape(model_writer(&r, m), (const uint64_t[]){9, 10}));
	check_shape(&r, m, (const uint64_t[]){9, 10}, 6, 10);
	SUCCEEDS(h5_dataset_reshape(m->writer, (const uint64_t[]){9, 4}));
	check_shape(&r, m, (const uint64_t[]){9, 4}, 3, 4);
	SUCCEEDS(h5_dataset_reshape(m->writer, dims));
	check_shape(&r, m, dims, cases[_i].early ? 9 : 3, 4);
	SUCCEEDS(h5_dataset_reshape(m->writer, (const uint64_t[]){8, 11}));
	check_shape(&r, m, (const uint64_t[]){8, 11}, cases[_i].early ? 6 : 2, 4);
	model_end(&r);
}
END_TEST

enum { SIDE = 30 };

/* A square of bytes in chunks of one, of which the index has a block that moves with each change. */
static struct h5_dataset_writer *make_square(struct scratch *s, uint8_t data[SIDE * SIDE])
{
	struct h5_new_dataset how = {
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 2, .dims = {SIDE, SIDE}, .max = {SIDE, SIDE}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {1, 1}};
	struct h5_dataset_writer *writer;
	struct h5_datatype *type;
	uint64_t address;

	scratch_init(s, "header_create-latest.h5");
	scratch_open(s);
	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s->file, &how, &address));
	h5_datatype_free(type);
	for (unsigned i = 0; i < SIDE * SIDE; i++)
		data[i] = (uint8_t)(1 + i % 250);
	SUCCEEDS(h5_dataset_writer_get(s->file, address, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, SIDE * SIDE));
	SUCCEEDS(h5_tx_commit(s->file));
	return writer;
}

/* Space that was given up gets other bytes. */
static void use_space(struct scratch *s)
{
	uint8_t block[512];

	memset(block, 0xff, sizeof block);
	for (unsigned i = 0; i < 3; i++) {
		SUCCEEDS(h5_tx_commit(s->file));
		for (unsigned k = 0; k < 40; k++) {
			uint64_t at;

			SUCCEEDS(h5_tx_allocate(s->file, H5_ALLOCATE_RAW, sizeof block, &at));
			SUCCEEDS(h5_tx_write(s->file, at, block, sizeof block));
		}
	}
	SUCCEEDS(h5_tx_commit(s->file));
}

/* A reader finds so many rows and columns of the square. */
static void read_square(struct scratch *s, const struct h5_dataset_writer *writer, const uint8_t *data,
			uint64_t rows, uint64_t columns)
{
	const struct h5_dataset *dataset;
	uint8_t found[SIDE * SIDE];
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_dataset_get(s->file, h5_dataset_writer_participant(writer)->address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, rows * columns);
	SUCCEEDS(h5_dataset_read(dataset, 0, found, rows * columns));
	for (unsigned i = 0; i < rows * columns; i++)
		ck_assert_uint_eq(found[i], data[i / columns * SIDE + i % columns]);
	h5_file_put(s->file, ref);
}

static void end_square(struct scratch *s, struct h5_dataset_writer *writer)
{
	h5_dataset_writer_put(writer);
	h5_dataset_writers_close(s->file);
	scratch_release(s);
}

/* Readers look for chunks in the index as it is once chunks have gone. */
START_TEST(readers_see_an_index_that_changes)
{
	struct h5_dataset_writer *writer;
	uint8_t data[SIDE * SIDE];
	struct scratch s;

	writer = make_square(&s, data);
	SUCCEEDS(h5_dataset_reshape(writer, (const uint64_t[]){SIDE, 1}));
	use_space(&s);
	read_square(&s, writer, data, SIDE, 1);
	end_square(&s, writer);
}
END_TEST

/* The same of rows that cannot go at once, for lack of memory. */
START_TEST(readers_see_an_index_that_changes_later)
{
	unsigned later = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_dataset_writer *writer;
		uint8_t data[SIDE * SIDE];
		struct scratch s;
		int rc;

		writer = make_square(&s, data);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_dataset_writer_resize(writer, 2);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		if (!rc) {
			later += fired;
			read_square(&s, writer, data, 2, SIDE);
			SUCCEEDS(h5_tx_settle(s.file));
			use_space(&s);
			read_square(&s, writer, data, 2, SIDE);
		}
		end_square(&s, writer);
	}
	ck_assert_uint_gt(later, 0);
}
END_TEST

/* Rows that could not be removed when the dataset became smaller do not come back with other ones. */
START_TEST(rows_that_stay_behind)
{
	static const char *const names[] = {"plain1", "plain1_gzip"};
	unsigned later = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct model_run r;
		struct model *m;
		uint64_t rows;
		int rc;

		model_begin(&r, _i % 2 ? "latest" : "earliest", 1);
		m = model_find(&r, names[_i / 2]);
		model_append(&r, m, 1);
		model_commit(&r);
		rows = m->rows;
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_dataset_writer_resize(m->writer, 1);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		if (!rc) {
			later += fired;
			model_set_rows(m, 1);
			model_resize(&r, m, rows);
			model_compare(&r, m);
		}
		model_end(&r);
	}
	ck_assert_uint_gt(later, 0);
}
END_TEST

/* ---- what is refused ---- */

/* SWMR readers do not look for a message of a header that is in an index of shared ones, so it cannot change.
 */
START_TEST(messages_that_readers_keep)
{
	const enum h5_message_type type = _i ? H5_MSG_LAYOUT : H5_MSG_DATASPACE;
	const struct h5_dataset *dataset;
	struct h5_dataset_writer *writer;
	const struct h5_message *old;
	struct h5_new_message new;
	struct h5_header header;
	struct h5_lru_entry *ref;
	struct model_run r;
	struct model *m;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "plain1");
	SUCCEEDS(h5_header_load(r.scratch.file, m->address, &header));
	old = h5_header_find(&header, type);
	new = (struct h5_new_message){.type = type,
				      .flags = (uint8_t)(old->flags | H5_MSG_FLAG_TRACKED),
				      .body = old->data,
				      .size = old->size};
	SUCCEEDS(h5_header_set(r.scratch.file, m->address, old, &new));
	h5_header_release(&header);
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	model_close(&r);
	r.scratch.options.swmr = true;
	scratch_open(&r.scratch);
	SUCCEEDS(h5_dataset_get(r.scratch.file, m->address, &ref, &dataset));
	ck_assert(!h5_dataset_can_be_written(dataset, false));
	h5_file_put(r.scratch.file, ref);
	ck_assert_int_eq(h5_dataset_writer_get(r.scratch.file, m->address, false, &writer), -EPERM);
	ck_assert_str_eq(h5_error_last()->text,
			 _i ? "object header: message type 0x8 is shared: changing it is not supported"
			    : "object header: message type 0x1 is shared: changing it is not supported");
	m = model_find(&r, "plain2");
	SUCCEEDS(h5_dataset_get(r.scratch.file, m->address, &ref, &dataset));
	ck_assert(h5_dataset_can_be_written(dataset, false));
	h5_file_put(r.scratch.file, ref);
	model_append(&r, m, 1);
	model_compare(&r, m);
	model_end(&r);
}
END_TEST

/* An index of chunks that SWMR readers cannot follow is told before anybody writes. */
START_TEST(an_index_that_readers_cannot_follow)
{
	const struct h5_layout layout = {.version = 3,
					 .class = H5_LAYOUT_CHUNKED,
					 .chunked = {.index = H5_INDEX_BTREE1,
						     .rank = 1,
						     .dims = {4},
						     .element_size = 1,
						     .address = H5_UNDEF}};
	struct h5_new_dataset how = {
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {10}, .max = {H5_UNLIMITED}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {4},
		.stored = &layout};
	const struct h5_dataset *dataset;
	struct h5_dataset_writer *writer;
	struct h5_datatype *type;
	struct h5_lru_entry *ref;
	struct scratch s;
	uint64_t address;

	scratch_init(&s, "header_create-latest.h5");
	scratch_open(&s);
	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s.file, &how, &address));
	h5_datatype_free(type);
	SUCCEEDS(h5_tx_commit(s.file));
	for (unsigned swmr = 0; swmr < 2; swmr++) {
		scratch_close(&s);
		s.options.swmr = swmr;
		scratch_open(&s);
		SUCCEEDS(h5_dataset_get(s.file, address, &ref, &dataset));
		ck_assert_str_eq(h5_dataset_index_name(dataset), "btree1");
		ck_assert_int_eq(h5_dataset_can_be_written(dataset, false), !swmr);
		h5_file_put(s.file, ref);
	}
	ck_assert_int_eq(h5_dataset_writer_get(s.file, address, false, &writer), -ENOTSUP);
	ck_assert_str_eq(h5_error_last()->text, "dataset: SWMR readers cannot follow its version 1 B-tree");
	scratch_release(&s);
}
END_TEST

/* A chunk that waits in memory is removed: it needs neither memory nor space any more. */
START_TEST(a_chunk_that_waits_is_removed)
{
	static const uint64_t scaled[] = {1};
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct h5_chunk chunk;
	struct model_run r;
	struct model *m;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "plain1_gzip");
	ck_assert_uint_eq(h5_dataset_writer_held(model_writer(&r, m)), 0);
	/* A chunk has 5 elements of 4 bytes. */
	model_overwrite(&r, m, 20 + 3, 10);
	ck_assert_uint_eq(h5_dataset_writer_held(m->writer), 20);
	ck_assert_uint_eq(h5_chunked_of(m->writer)->known_bytes,
			  20 + sizeof(struct h5_known_chunk) + sizeof(uint64_t));
	SUCCEEDS(h5_dataset_writer_punch(m->writer, 20, 20));
	memset(m->data + 20, 0, 20);
	ck_assert_uint_eq(h5_dataset_writer_held(m->writer), 0);
	ck_assert_uint_eq(h5_chunked_of(m->writer)->known_bytes,
			  sizeof(struct h5_known_chunk) + sizeof(uint64_t));
	model_compare(&r, m);
	SUCCEEDS(h5_dataset_get(r.scratch.file, m->address, &ref, &dataset));
	SUCCEEDS(h5_chunk_index_lookup(dataset->index, NULL, scaled, &chunk));
	ck_assert_uint_eq(chunk.address, H5_UNDEF);
	h5_file_put(r.scratch.file, ref);
	model_overwrite(&r, m, 20, 7);
	model_compare(&r, m);
	model_reopen(&r);
	model_end(&r);
}
END_TEST

/* ---- what is found ---- */

static int set_address(const void *address, uint8_t *body, size_t n)
{
	ck_assert_uint_ge(n, 18);
	ck_assert(body[0] >= 3 && body[1] == H5_LAYOUT_CONTIGUOUS);
	memcpy(body + 2, address, 8);
	return 0;
}

/* The check of a dataset in one piece, whose bytes are said to end so far from the end of the file. */
static int check_end(struct model_run *r, const struct model *m, int64_t beyond)
{
	const uint64_t address = h5_file_end(r->scratch.file) - m->size + (uint64_t)beyond;
	const struct h5_dataset *dataset;
	struct h5_damage damage = {0};
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_header_update(r->scratch.file, m->address, H5_MSG_LAYOUT, set_address, &address));
	SUCCEEDS(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset));
	SUCCEEDS(h5_dataset_check(dataset, &damage, NULL, NULL));
	h5_file_put(r->scratch.file, ref);
	if (damage.first.code)
		ck_assert_str_eq(damage.first.text, "dataset: its data reach beyond the end of the file");
	return damage.first.code;
}

START_TEST(data_beyond_the_end_are_damage)
{
	struct model_run r;
	struct model *m;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "matrix");
	ck_assert_uint_gt(m->size, 100);
	ck_assert_int_eq(check_end(&r, m, -1), 0);
	ck_assert_int_eq(check_end(&r, m, 0), 0);
	ck_assert_int_eq(check_end(&r, m, 1), -EUCLEAN);
	ck_assert_int_eq(check_end(&r, m, (int64_t)m->size), -EUCLEAN);
	ck_assert_int_eq(check_end(&r, m, (int64_t)m->size + 1), -EUCLEAN);
	ck_assert_int_eq(check_end(&r, m, INT64_C(1) << 50), -EUCLEAN);
	model_end(&r);
}
END_TEST

UNIT_MAIN_LOOPS("dataset_changes", {a_chunk_that_waits_is_removed, 1},
		{an_index_that_readers_cannot_follow, 1}, {rows_that_stay_behind, 4},
		{chunks_are_filtered_once_they_are_complete, 1},
		{a_dataset_that_cannot_be_committed_stays, 2}, {chunks_go_and_come_with_the_shape, 7},
		{readers_see_an_index_that_changes, 1}, {readers_see_an_index_that_changes_later, 1},
		{messages_that_readers_keep, 2}, {data_beyond_the_end_are_damage, 1})

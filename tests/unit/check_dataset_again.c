/* Datasets that are changed again and again: what a change, or a failure in it, leaves to the next one. */
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "dataset/chunked_store.h"
#include "dataset/create.h"
#include "dataset/rechunk.h"
#include "dataset/replacement.h"
#include "dataset/reshape.h"
#include "dataset/take_over.h"
#include "dataset_model.h"
#include "fault_alloc.h"
#include "format/datatype.h"
#include "object/numpy_parse.h"
#include "object/object.h"
#include "object/own_message.h"
#include "object/path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- failures ---- */

/* What comes after a change that has failed. */
enum next { FILL, APPEND, OVERWRITE, NEXTS };

/* The n-th allocation, or read, fails while the dataset becomes smaller; it may have done so all the same,
 * and clears later what is gone. But another change comes before that. False: none fails. */
static bool shrink_and_grow(struct model_run *r, struct model *m, unsigned long n, enum next next,
			    bool memory)
{
	uint64_t rows = m->rows;
	bool fired;
	int rc;

	model_append(r, m, 1);
	if (memory)
		fault_alloc_arm(n);
	else
		fault_io_arm(&r->fault, n);
	fault_alloc_count(true);
	rc = h5_dataset_writer_resize(m->writer, 3);
	fault_alloc_count(false);
	fired = memory ? fault_alloc_disarm() : fault_io_disarm(&r->fault);
	ck_assert_int_eq(rc, fired && rc ? (memory ? -ENOMEM : -EIO) : 0);
	SUCCEEDS(h5_dataset_writer_ready(m->writer));
	if (!rc)
		model_set_rows(m, 3);
	else
		model_resize(r, m, 3);
	if (next == OVERWRITE) {
		model_overwrite(r, m, 0, 1);
		model_compare(r, m);
	}
	if (next == APPEND)
		model_append(r, m, rows - 3);
	else
		model_resize(r, m, rows);
	model_compare(r, m);
	model_commit(r);
	return fired;
}

/* `_i`: whether it is the allocations that fail, and what comes next. */
START_TEST(rows_that_were_not_cleared_do_not_come_back)
{
	static const struct {
		const char *version, *name;
	} datasets[] = {{"earliest", "plain2"},
			{"latest", "plain2"},
			{"latest", "both"},
			{"earliest", "plain2_gzip"},
			{"latest", "bounded"}};
	const bool memory = _i % 2;

	for (unsigned i = 0; i < sizeof datasets / sizeof *datasets; i++) {
		struct model_run r;
		struct model *m;

		model_begin(&r, datasets[i].version, i);
		m = model_find(&r, datasets[i].name);
		model_writer(&r, m);
		r.fault.reads = true;
		r.fault.error = -EIO;
		for (unsigned long n = 1; shrink_and_grow(&r, m, n, (enum next)(_i / 2), memory); n++)
			;
		model_reopen(&r);
		model_end(&r);
	}
}
END_TEST

static int refuse(void *arg)
{
	(void)arg;
	return h5_fail(-ENOSPC, H5_UNDEF, "something else fails");
}

/* New contents take their place together with something else. That fails, so they wait, and nobody takes
 * their writer for the one of the old contents. */
START_TEST(contents_that_wait)
{
	static uint8_t data[DATA_MAX];
	struct h5_replacement *p;
	struct model_run r;
	struct model *m;

	model_begin(&r, "latest", 1);
	m = model_find(&r, _i ? "plain2" : "fixed");
	SUCCEEDS(h5_replacement_begin(r.scratch.file, m->address, &p));
	/* They have as many rows as the dataset, even if that may have more. */
	ck_assert(!h5_replacement_grows(p));
	ck_assert_uint_eq(h5_replacement_whole(p), m->size);
	ck_assert_int_eq(h5_replacement_expect(p, m->size + m->row), -EINVAL);
	model_fill(&r, data, m->size);
	SUCCEEDS(h5_replacement_write(p, 0, data, m->size));
	ck_assert_int_eq(h5_replacement_finish_with(p, refuse, NULL), -ENOSPC);
	ck_assert_ptr_null(h5_dataset_writer_find(r.scratch.file, m->address));
	model_compare(&r, m);
	model_overwrite(&r, m, 0, m->row);
	model_compare(&r, m);
	SUCCEEDS(h5_replacement_finish(p));
	h5_replacement_end(p);
	SUCCEEDS(h5_dataset_writer_ready(m->writer));
	memcpy(m->data, data, m->size);
	model_compare(&r, m);
	model_reopen(&r);
	model_end(&r);
}
END_TEST

/* ---- space ---- */

/* Committed space is given up. */
static void replace(struct model_run *r, struct model *m)
{
	struct h5_replacement *p;

	model_fill(r, m->data, m->size);
	SUCCEEDS(h5_replacement_begin(r->scratch.file, m->address, &p));
	SUCCEEDS(h5_replacement_write(p, 0, m->data, m->size));
	SUCCEEDS(h5_replacement_finish(p));
	h5_replacement_end(p);
}

static void make_wider(struct model_run *r, bool wide)
{
	const uint64_t dims[] = {9, wide ? 15 : 14};

	SUCCEEDS(h5_dataset_reshape(model_writer(r, model_find(r, "both")), dims));
}

/* Rows that only memory has get other chunks. */
static void rechunk_rows(struct model_run *r, unsigned round)
{
	const uint64_t chunk[] = {2 + round % 2, 2};
	struct model *m = model_find(r, "none");

	model_append(r, m, 2);
	SUCCEEDS(h5_dataset_rechunk(r->scratch.file, m->address, chunk));
	SUCCEEDS(h5_dataset_writer_ready(m->writer));
	model_compare(r, m);
}

/* A change gives up space. After the commit that space is free, even if other changes came before the commit.
 */
START_TEST(what_was_given_up_is_used_again)
{
	struct model_run r;
	uint64_t end = 0;
	struct model *m;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "fixed");
	for (unsigned round = 0; round < 10; round++) {
		replace(&r, m);
		if (_i == 1)
			make_wider(&r, true);
		else if (_i == 2)
			rechunk_rows(&r, round);
		model_commit(&r);
		if (_i == 1)
			make_wider(&r, false);
		else if (_i == 2)
			model_resize(&r, model_find(&r, "none"), 0);
		model_commit(&r);
		if (round == 4)
			end = h5_file_end(r.scratch.file);
	}
	ck_assert_uint_eq(h5_file_end(r.scratch.file), end);
	model_end(&r);
}
END_TEST

static uint64_t first_chunk(struct model_run *r, const struct model *m)
{
	static const uint64_t scaled[] = {0, 0};
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct h5_chunk chunk;

	SUCCEEDS(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset));
	SUCCEEDS(h5_chunk_index_lookup(dataset->index, NULL, scaled, &chunk));
	h5_file_put(r->scratch.file, ref);
	ck_assert_uint_ne(chunk.address, H5_UNDEF);
	return chunk.address;
}

/* True: new space of so many bytes is at the address before it is behind all that there is. */
static bool is_free(struct model_run *r, uint64_t address, uint64_t n)
{
	const uint64_t end = h5_file_end(r->scratch.file);
	uint64_t got;

	do {
		SUCCEEDS(h5_tx_allocate(r->scratch.file, H5_ALLOCATE_RAW, n, &got));
	} while (got != address && got < end);
	return got == address;
}

/* The same, while another dataset has rows in memory alone: it gets other chunks. */
START_TEST(what_was_given_up_is_free)
{
	enum { CHUNK = 4 * 5 * 4 };
	struct model_run r;
	uint64_t address;
	struct model *m;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "fixed");
	address = first_chunk(&r, m);
	ck_assert(!is_free(&r, address, CHUNK));
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	replace(&r, m);
	rechunk_rows(&r, 0);
	model_commit(&r);
	replace(&r, m);
	model_commit(&r);
	ck_assert(is_free(&r, address, CHUNK));
	model_compare_all(&r);
	model_end(&r);
}
END_TEST

/* ---- large chunks ---- */

enum { LARGE = (1 << 20) + 100000, LESS = LARGE - 9999, FILLED = 'f' };

/* A dataset of bytes in one large chunk, which may have a fill value. */
static struct h5_dataset_writer *make_large(struct model_run *r, const uint8_t *fill)
{
	struct h5_new_dataset how = {.layout = H5_LAYOUT_CHUNKED, .chunk = {LARGE}, .fill = fill};
	struct h5_dataset_writer *writer;
	struct h5_datatype *type;
	uint64_t address;

	how.space.kind = H5_SPACE_SIMPLE;
	how.space.rank = 1;
	how.space.dims[0] = LESS;
	how.space.max[0] = H5_UNLIMITED;
	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(r->scratch.file, &how, &address));
	h5_datatype_free(type);
	SUCCEEDS(h5_dataset_writer_get(r->scratch.file, address, false, &writer));
	return writer;
}

static void expect(struct model_run *r, struct h5_dataset_writer *writer, const uint8_t *expected, size_t n)
{
	const struct h5_dataset *dataset;
	static uint8_t found[LARGE];
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_tx_settle(r->scratch.file));
	SUCCEEDS(h5_dataset_get(r->scratch.file, h5_dataset_writer_participant(writer)->address, &ref,
				&dataset));
	ck_assert_uint_eq(dataset->size, n);
	SUCCEEDS(h5_dataset_read(dataset, 0, found, n));
	ck_assert(!memcmp(found, expected, n));
	h5_file_put(r->scratch.file, ref);
}

/* One byte is written: all others, which are more than one piece, have the fill value. */
START_TEST(the_rest_of_a_chunk_is_filled)
{
	static const uint8_t fill = FILLED, byte = 'b';
	static uint8_t data[LARGE];
	struct h5_dataset_writer *writer;
	struct model_run r;

	model_begin(&r, _i ? "latest" : "earliest", 1);
	memset(data, FILLED, sizeof data);
	writer = make_large(&r, &fill);
	SUCCEEDS(h5_dataset_writer_write(writer, 10, &byte, 1));
	data[10] = byte;
	expect(&r, writer, data, LESS);
	SUCCEEDS(h5_dataset_writer_resize(writer, LARGE));
	expect(&r, writer, data, LARGE);
	h5_dataset_writer_close(writer);
	model_end(&r);
}
END_TEST

/* The chunk is stored without its last bytes, which lie outside of the dataset. When it is written it moves
 * to where it has all its bytes. */
START_TEST(a_large_chunk_gets_all_its_bytes)
{
	static const uint64_t scaled[] = {0};
	static const uint8_t fill = FILLED, byte = 'b';
	static uint8_t data[LARGE];
	struct h5_dataset_writer *writer;
	struct h5_chunk chunk;
	struct model_run r;

	model_begin(&r, "earliest", 1);
	writer = make_large(&r, &fill);
	model_fill(&r, data, LESS);
	memset(data + LESS, FILLED, LARGE - LESS);
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, LESS));
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	SUCCEEDS(h5_chunk_index_lookup(h5_chunked_of(writer)->index, NULL, scaled, &chunk));
	ck_assert_uint_eq(chunk.size, LARGE);
	chunk.size = LESS;
	SUCCEEDS(h5_tx_touch(r.scratch.file, h5_dataset_writer_participant(writer)->address));
	SUCCEEDS(h5_chunk_index_set(h5_chunked_of(writer)->index, scaled, &chunk));
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	h5_tx_drop(r.scratch.file, &writer->participant);
	SUCCEEDS(h5_dataset_writer_ready(writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 10, &byte, 1));
	data[10] = byte;
	expect(&r, writer, data, LESS);
	SUCCEEDS(h5_dataset_writer_resize(writer, LARGE));
	expect(&r, writer, data, LARGE);
	h5_dataset_writer_close(writer);
	model_end(&r);
}
END_TEST

static bool was_punched(const struct fault_io *fault, size_t least)
{
	for (size_t i = 0; i < fault->count; i++)
		if (fault->events[i].kind == FAULT_PUNCH && fault->events[i].size >= least)
			return true;
	return false;
}

/* New contents of which only the last byte was written: those before it are filled, in many pieces. */
START_TEST(a_long_gap_is_filled)
{
	static const uint8_t fill = FILLED, byte = 'b';
	struct h5_new_dataset how = {.layout = H5_LAYOUT_CONTIGUOUS, .fill = &fill};
	static uint8_t data[LARGE];
	struct h5_dataset_writer *writer;
	struct h5_replacement *p;
	struct h5_datatype *type;
	struct model_run r;
	uint64_t address;

	model_begin(&r, "latest", 1);
	how.space.kind = H5_SPACE_SIMPLE;
	how.space.rank = 1;
	how.space.dims[0] = how.space.max[0] = LARGE;
	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(r.scratch.file, &how, &address));
	h5_datatype_free(type);
	SUCCEEDS(h5_replacement_begin(r.scratch.file, address, &p));
	SUCCEEDS(h5_replacement_write(p, LARGE - 1, &byte, 1));
	SUCCEEDS(h5_replacement_finish(p));
	h5_replacement_end(p);
	memset(data, FILLED, LARGE - 1);
	data[LARGE - 1] = byte;
	SUCCEEDS(h5_dataset_writer_get(r.scratch.file, address, false, &writer));
	expect(&r, writer, data, LARGE);
	h5_dataset_writer_close(writer);
	model_end(&r);
}
END_TEST

/* Stored zeros become a hole, other fill values cannot. */
START_TEST(zeros_become_holes)
{
	enum { PUNCHED = 900000 };
	static const uint8_t fills[] = {0, FILLED};
	static uint8_t data[LARGE];
	const uint8_t *fill = &fills[_i];
	struct h5_dataset_writer *writer;
	struct model_run r;

	model_begin(&r, "latest", 1);
	writer = make_large(&r, fill);
	model_fill(&r, data, LESS);
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, LESS));
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	r.fault.record = true;
	SUCCEEDS(h5_dataset_writer_punch(writer, 0, PUNCHED));
	memset(data, *fill, PUNCHED);
	expect(&r, writer, data, LESS);
	ck_assert_int_eq(was_punched(&r.fault, PUNCHED / 2), !*fill);
	h5_dataset_writer_close(writer);
	model_end(&r);
	fault_io_release(&r.fault);
}
END_TEST

/* ---- what is known ---- */

/* The last chunks, to which rows will be added, stay in memory; the others do not. */
START_TEST(the_last_chunks_stay_in_memory)
{
	struct model_run r;
	struct model *m;

	model_begin(&r, "latest", 1);
	m = model_find(&r, _i ? "plain2" : "plain2_gzip");
	model_append(&r, m, 4);
	ck_assert_uint_eq(m->rows % 4, 1);
	model_commit(&r);
	ck_assert_uint_eq(HASH_COUNT(h5_chunked_of(m->writer)->known), 3);
	model_append(&r, m, 3);
	model_commit(&r);
	ck_assert_uint_eq(HASH_COUNT(h5_chunked_of(m->writer)->known), 0);
	model_reopen(&r);
	model_end(&r);
}
END_TEST

/* A dataset that is defined as it is stays as it is; nothing is written. A new one has the time that it is
 * told. */
START_TEST(definitions)
{
	enum { TIME = 123456789 };
	struct h5_new_dataset how = {.layout = H5_LAYOUT_CHUNKED, .chunk = {3}, .time = TIME};
	static const char text[200] = "a comment";
	const struct h5_object *object;
	struct h5_datatype *type;
	struct h5_lru_entry *ref;
	struct model_run r;
	unsigned long calls;
	uint64_t address;

	model_begin(&r, "latest", 1);
	how.space.kind = H5_SPACE_SIMPLE;
	how.space.rank = 1;
	how.space.dims[0] = how.space.max[0] = 10;
	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(r.scratch.file, &how, &address));
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	SUCCEEDS(h5_object_get(r.scratch.file, address, &ref, &object));
	ck_assert(object->has_mtime && object->mtime == TIME);
	h5_file_put(r.scratch.file, ref);
	calls = r.fault.calls;
	SUCCEEDS(h5_dataset_define(r.scratch.file, address, &how));
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	ck_assert_uint_eq(r.fault.calls, calls);
	/* The same if its messages lie in two blocks. */
	for (unsigned i = 0; i < 3; i++) {
		const struct h5_new_message more = {
			.type = H5_MSG_COMMENT, .body = text, .size = sizeof text};

		SUCCEEDS(h5_header_insert(r.scratch.file, address, &more));
	}
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	SUCCEEDS(h5_object_get(r.scratch.file, address, &ref, &object));
	ck_assert_uint_gt(object->header.chunk_count, 1);
	h5_file_put(r.scratch.file, ref);
	calls = r.fault.calls;
	SUCCEEDS(h5_dataset_define(r.scratch.file, address, &how));
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	ck_assert_uint_eq(r.fault.calls, calls);
	how.chunk[0] = 4;
	SUCCEEDS(h5_dataset_define(r.scratch.file, address, &how));
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	ck_assert_uint_gt(r.fault.calls, calls);
	h5_datatype_free(type);
	model_end(&r);
}
END_TEST

/* ---- what is alike ---- */

static bool are_alike(struct model_run *r, const char *first, const char *second)
{
	const struct h5_dataset *a, *b;
	struct h5_lru_entry *a_ref, *b_ref;
	bool alike, again;

	SUCCEEDS(h5_dataset_get(r->scratch.file, model_find(r, first)->address, &a_ref, &a));
	SUCCEEDS(h5_dataset_get(r->scratch.file, model_find(r, second)->address, &b_ref, &b));
	SUCCEEDS(h5_dataset_is_alike(a, b, &alike));
	SUCCEEDS(h5_dataset_is_alike(b, a, &again));
	ck_assert_int_eq(alike, again);
	h5_file_put(r->scratch.file, a_ref);
	h5_file_put(r->scratch.file, b_ref);
	return alike;
}

/* Datasets with the same type and the same shape, but for the number of rows. */
START_TEST(datasets_that_are_alike)
{
	struct model_run r;

	model_begin(&r, _i ? "latest" : "earliest", 1);
	ck_assert(are_alike(&r, "plain2", "both_gzip"));
	ck_assert(are_alike(&r, "fixed", "early"));
	ck_assert(are_alike(&r, "odd_size", "late_fill"));
	ck_assert(are_alike(&r, "scalar", "scalar"));
	ck_assert(!are_alike(&r, "plain2", "fixed"));
	ck_assert(!are_alike(&r, "plain2", "plain1"));
	ck_assert(!are_alike(&r, "single1", "bounded1"));
	ck_assert(!are_alike(&r, "compound", "plain1"));
	ck_assert(!are_alike(&r, "scalar", "single1"));
	model_end(&r);
}
END_TEST

static void read_raw(struct model_run *r, const char *name, uint8_t data[16])
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct h5_file *in;
	uint64_t address;

	SUCCEEDS(h5_path_find(r->scratch.file, h5_file_superblock(r->scratch.file)->root, name, strlen(name),
			      &in, &address));
	SUCCEEDS(h5_dataset_get(in, address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, 16);
	SUCCEEDS(h5_dataset_read(dataset, 0, data, 16));
	h5_file_put(in, ref);
}

/* A raw file that is not there reads as the fill value, and is not made by that. Raw data may lie in the HDF5
 * file itself, where they are read, but not written. */
START_TEST(raw_files_that_are_read)
{
	static const uint8_t zeros[16];
	uint8_t data[16], begin[20];
	struct h5_replacement *p;
	struct model_run r;
	char path[512];

	model_begin(&r, "latest", 1);
	/* New contents would be written over the old ones. */
	ck_assert_int_eq(h5_replacement_begin(r.scratch.file, model_find(&r, "external")->address, &p),
			 -EPERM);
	read_raw(&r, "gone", data);
	ck_assert_mem_eq(data, zeros, sizeof data);
	snprintf(path, sizeof path, "%s/dataset_write_gone.raw", r.scratch.folder);
	ck_assert_int_eq(access(path, F_OK), -1);
	read_raw(&r, "itself", data);
	SUCCEEDS(h5_file_read(r.scratch.file, 0, begin, sizeof begin));
	ck_assert_mem_eq(data, begin + 4, sizeof data);
	model_end(&r);
}
END_TEST

/* SWMR readers keep what they know of shared messages, so these do not become the header's own. */
START_TEST(messages_that_readers_share)
{
	static uint8_t data[8];
	const struct h5_message own = {.data = data, .size = sizeof data},
				tracked = {.flags = H5_MSG_FLAG_TRACKED, .data = data, .size = sizeof data};
	struct model_run r;

	model_begin(&r, "latest", 1);
	ck_assert(h5_own_message_is_possible(r.scratch.file, &own));
	ck_assert(h5_own_message_is_possible(r.scratch.file, &tracked));
	model_close(&r);
	r.scratch.options.swmr = true;
	scratch_open(&r.scratch);
	ck_assert(h5_own_message_is_possible(r.scratch.file, &own));
	ck_assert(!h5_own_message_is_possible(r.scratch.file, &tracked));
	model_end(&r);
}
END_TEST

UNIT_MAIN_LOOPS("dataset_again", {rows_that_were_not_cleared_do_not_come_back, 2 * NEXTS},
		{contents_that_wait, 2}, {what_was_given_up_is_used_again, 3}, {what_was_given_up_is_free, 1},
		{the_last_chunks_stay_in_memory, 2}, {definitions, 1}, {datasets_that_are_alike, 2},
		{raw_files_that_are_read, 1}, {the_rest_of_a_chunk_is_filled, 2},
		{a_large_chunk_gets_all_its_bytes, 1}, {zeros_become_holes, 2}, {a_long_gap_is_filled, 1},
		{messages_that_readers_share, 1})

/* Changes of datasets whose request is interrupted: they have not happened, or are finished all the same, and
 * leave nothing behind. */
#include "base/interrupt.h"
#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/rechunk.h"
#include "dataset/removal.h"
#include "dataset/replacement.h"
#include "dataset/reshape.h"
#include "dataset/values.h"
#include "dataset_model.h"
#include "object/numpy_parse.h"

#include <errno.h>
#include <string.h>

/* ---- what interrupts ---- */

static unsigned long checks_left; /* the last of so many is the interrupt; 0: none is */
static bool lasts;		  /* and so are all behind it */
static bool interrupted;

static bool is_unwanted(void *arg)
{
	(void)arg;
	return false;
}

/* Only a request that asks can be interrupted. */
int __wrap_h5_interrupt_check(void);
int __wrap_h5_interrupt_check(void)
{
	struct h5_interrupt request;

	h5_interrupt_get(&request);
	if (request.ask != is_unwanted || !((checks_left && !--checks_left) || (interrupted && lasts)))
		return 0;
	interrupted = true;
	return h5_fail(-EINTR, H5_UNDEF, "interrupted");
}

static void begin_request(unsigned long n, bool lasting)
{
	checks_left = n;
	lasts = lasting;
	interrupted = false;
	h5_interrupt_begin(is_unwanted, NULL);
}

/* True: it was interrupted. */
static bool end_request(void)
{
	const bool was = interrupted;

	interrupted = false;
	checks_left = 0;
	h5_interrupt_begin(NULL, NULL);
	return was;
}

/* ---- what is done ---- */

enum { MORE = 9 }; /* rows */

struct change {
	uint64_t dims[2]; /* before it */
	int (*run)(struct h5_dataset_writer *writer);
	uint64_t after[2];
};

static int add_rows(struct h5_dataset_writer *writer)
{
	static uint8_t data[1 << 12];

	memset(data, 'n', sizeof data);
	return h5_dataset_writer_append(writer, data, MORE * h5_dataset_writer_row(writer));
}

static int fill_rows(struct h5_dataset_writer *writer)
{
	return h5_dataset_writer_resize(
		writer, h5_dataset_writer_size(writer) / h5_dataset_writer_row(writer) + MORE);
}

static int remove_rows(struct h5_dataset_writer *writer)
{
	return h5_dataset_writer_resize(writer, 2);
}

static int make_narrow(struct h5_dataset_writer *writer)
{
	return h5_dataset_reshape(writer, (const uint64_t[]){9, 3});
}

static int make_wide(struct h5_dataset_writer *writer)
{
	return h5_dataset_reshape(writer, (const uint64_t[]){9, 13});
}

static const struct change changes[] = {
	{{9, 13}, add_rows, {9 + MORE, 13}}, {{9, 13}, fill_rows, {9 + MORE, 13}},
	{{9, 13}, remove_rows, {2, 13}},     {{9, 13}, make_narrow, {9, 3}},
	{{9, 4}, make_wide, {9, 13}},
};
static const struct {
	const char *version, *name;
} datasets[] = {{"latest", "both"},
		{"latest", "both_gzip"},
		{"earliest", "plain2"},
		{"earliest", "plain2_gzip"},
		{"latest", "early_bounded"},
		{"latest", "early_gzip"},
		{"earliest", "early_unlimited"}};

enum { CHANGES = sizeof changes / sizeof *changes, DATASETS = sizeof datasets / sizeof *datasets };

static int count_chunk(void *count, const struct h5_chunk *chunk)
{
	(void)chunk;
	++*(unsigned *)count;
	return 0;
}

/* What readers find: the elements, in a buffer of `data`, and how many chunks there are. */
static unsigned look(struct model_run *r, const struct model *m, const uint64_t dims[2], uint8_t *data)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	unsigned count = 0;

	SUCCEEDS(h5_tx_settle(r->scratch.file));
	SUCCEEDS(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset));
	ck_assert_mem_eq(dataset->space.dims, dims, 2 * sizeof *dims);
	SUCCEEDS(h5_chunk_index_walk(dataset->index, count_chunk, &count));
	SUCCEEDS(h5_dataset_read(dataset, 0, data, dataset->size));
	h5_file_put(r->scratch.file, ref);
	return count;
}

/* Another program makes the dataset larger: its new row has the fill value. */
static void check_next_row(struct model_run *r, struct model *m, uint64_t columns, size_t size)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint8_t row[256];

	h5_dataset_writer_close(m->writer);
	m->writer = NULL;
	SUCCEEDS(h5_header_update(r->scratch.file, m->address, H5_MSG_DATASPACE, scratch_add_row,
				  r->scratch.file));
	SUCCEEDS(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, size + columns * m->element);
	SUCCEEDS(h5_dataset_read(dataset, size, row, columns * m->element));
	for (uint64_t i = 0; i < columns; i++)
		ck_assert_mem_eq(row + i * m->element, m->fill, m->element);
	h5_file_put(r->scratch.file, ref);
}

/* The change was made: elements inside both shapes are as before, others are new ones or have the fill value.
 */
static void check_after(struct model_run *r, const struct model *m, const struct change *change,
			const uint8_t *before)
{
	static uint8_t after[1 << 13];
	const size_t n = m->element;

	(void)look(r, m, change->after, after);
	for (uint64_t i = 0; i < change->after[0] * change->after[1]; i++) {
		const uint64_t row = i / change->after[1], column = i % change->after[1];
		static const uint8_t new[] = {'n', 'n', 'n', 'n'};

		if (row < change->dims[0] && column < change->dims[1])
			ck_assert_mem_eq(after + i * n, before + (row * change->dims[1] + column) * n, n);
		else
			ck_assert_mem_eq(after + i * n, change->run == add_rows ? new : m->fill, n);
	}
}

/* The n-th check of the request is the interrupt. False: there are not so many. *done: the change was made.
 */
static bool interrupt(unsigned dataset, const struct change *change, unsigned long n, bool lasting,
		      bool *done)
{
	static uint8_t before[1 << 13], after[1 << 13];
	const size_t size = change->dims[0] * change->dims[1] * 4;
	struct h5_interrupt request;
	struct model_run r;
	unsigned chunks, now;
	struct model *m;
	bool fired;
	int rc;

	model_begin(&r, datasets[dataset].version, 1);
	m = model_find(&r, datasets[dataset].name);
	ck_assert_uint_eq(m->element, 4);
	SUCCEEDS(h5_dataset_reshape(model_writer(&r, m), change->dims));
	chunks = look(&r, m, change->dims, before);
	begin_request(n, lasting);
	rc = change->run(m->writer);
	/* What failed may have other things to do, for which it can be interrupted. */
	h5_interrupt_get(&request);
	if (rc && change->run == make_narrow)
		ck_assert(request.ask == is_unwanted);
	fired = end_request();
	/* If the dimensions are there, it does not matter that the writer could not be opened anew. */
	ck_assert(rc == (fired ? -EINTR : 0) || (!rc && change->run == make_wide));
	*done = !rc;
	/* What goes is gone. */
	if (!rc && (change->run == remove_rows || change->run == make_narrow))
		ck_assert(!h5_dataset_writer_is_dirty(m->writer));
	SUCCEEDS(h5_dataset_writer_ready(m->writer));
	if (!rc) {
		check_after(&r, m, change, before);
	} else {
		now = look(&r, m, change->dims, after);
		/* Chunks that early allocation needs may have come before the dimensions. */
		ck_assert(now == chunks || (now > chunks && change->run == make_wide));
		ck_assert_mem_eq(before, after, size);
		if (n % 2) {
			check_next_row(&r, m, change->dims[1], size);
		} else {
			SUCCEEDS(change->run(m->writer));
			check_after(&r, m, change, before);
		}
	}
	model_end(&r);
	return fired;
}

START_TEST(interrupted_changes)
{
	const unsigned dataset = (unsigned)_i / 2 % DATASETS;
	const struct change *change = &changes[(unsigned)_i / 2 / DATASETS];
	unsigned refused = 0, made = 0;
	bool done, fired = true;

	for (unsigned long n = 1; fired; n++) {
		fired = interrupt(dataset, change, n, _i % 2, &done);
		refused += !done;
		made += done;
		/* From some check on it is too late. */
		ck_assert(done || !made);
	}
	if (change->run == fill_rows || change->run == make_wide)
		ck_assert_uint_gt(refused, 0);
}
END_TEST

/* Elements that are punched are the fill value as far as it goes, and all are when it is done again. */
START_TEST(interrupted_holes)
{
	static const struct {
		const char *version, *name;
	} punched[] = {{"latest", "matrix"},	  {"latest", "compact"}, {"latest", "both"},
		       {"latest", "plain2_gzip"}, {"earliest", "early"}, {"latest", "large"}};
	bool fired = true;
	unsigned long n;

	for (n = 1; fired; n++) {
		const struct h5_dataset *dataset;
		struct h5_lru_entry *ref;
		struct model_run r;
		struct model *m;
		uint8_t *data;
		int rc;

		model_begin(&r, punched[_i / 2].version, 1);
		m = model_find(&r, punched[_i / 2].name);
		(void)model_writer(&r, m);
		begin_request(n, _i % 2);
		rc = h5_dataset_writer_punch(m->writer, 0, m->size);
		fired = end_request();
		ck_assert_int_eq(rc, fired ? -EINTR : 0);
		SUCCEEDS(h5_tx_settle(r.scratch.file));
		SUCCEEDS(h5_dataset_get(r.scratch.file, m->address, &ref, &dataset));
		data = malloc(m->size);
		SUCCEEDS(h5_dataset_read(dataset, 0, data, m->size));
		for (size_t i = 0; i < m->size; i++)
			ck_assert(data[i] == m->fill[i % m->element] || (fired && data[i] == m->data[i]));
		free(data);
		h5_file_put(r.scratch.file, ref);
		SUCCEEDS(h5_dataset_writer_punch(m->writer, 0, m->size));
		for (size_t i = 0; i < m->size; i++)
			m->data[i] = m->fill[i % m->element];
		model_compare(&r, m);
		model_end(&r);
	}
	ck_assert_uint_gt(n, 2);
}
END_TEST

/* Rows that only memory has, or the file, get other chunks. They are there, whether that is interrupted or
 * not.
 */
START_TEST(interrupted_rechunking)
{
	static const uint64_t chunk[] = {4, 3};
	const bool stored = _i / 2;
	unsigned refused = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_interrupt request;
		struct model_run r;
		struct model *m;
		int rc;

		model_begin(&r, "latest", 1);
		m = model_find(&r, "none");
		model_append(&r, m, 7);
		if (stored)
			model_commit(&r);
		begin_request(n, _i % 2);
		rc = h5_dataset_rechunk(r.scratch.file, m->address, chunk);
		h5_interrupt_get(&request);
		ck_assert(request.ask == is_unwanted);
		fired = end_request();
		ck_assert_int_eq(rc, fired ? -EINTR : 0);
		refused += rc != 0;
		SUCCEEDS(h5_dataset_writer_ready(m->writer));
		ck_assert_uint_eq(h5_dataset_writer_size(m->writer), m->size);
		model_compare(&r, m);
		SUCCEEDS(h5_dataset_rechunk(r.scratch.file, m->address, chunk));
		SUCCEEDS(h5_dataset_writer_ready(m->writer));
		model_compare(&r, m);
		model_end(&r);
	}
	ck_assert_uint_gt(refused, 1);
}
END_TEST

/* New contents that are not finished give up their space, even if nobody waits for it. */
START_TEST(contents_that_are_given_up)
{
	static const char *const names[] = {"fixed", "both_gzip"};
	static uint8_t data[1 << 12];
	uint64_t ends[2];

	for (unsigned lasting = 0; lasting < 2; lasting++) {
		struct h5_interrupt request;
		struct model_run r;
		struct model *m;

		model_begin(&r, "latest", 1);
		m = model_find(&r, names[_i]);
		for (unsigned round = 0; round < 5; round++) {
			struct h5_replacement *p;

			SUCCEEDS(h5_replacement_begin(r.scratch.file, m->address, &p));
			SUCCEEDS(h5_replacement_write(p, 0, data, m->size));
			SUCCEEDS(h5_tx_settle(r.scratch.file));
			begin_request(lasting, true);
			h5_replacement_end(p);
			h5_interrupt_get(&request);
			ck_assert(request.ask == is_unwanted);
			(void)end_request();
			model_commit(&r);
		}
		ends[lasting] = h5_file_end(r.scratch.file);
		model_compare(&r, m);
		model_end(&r);
	}
	ck_assert_uint_eq(ends[0], ends[1]);
}
END_TEST

/* A dataset whose removal is interrupted has what was written to it, which only memory has. */
START_TEST(interrupted_removals)
{
	static const char *const names[] = {"plain2_gzip", "both_gzip"};
	unsigned refused = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_interrupt request;
		struct model_run r;
		struct model *m;
		int rc;

		model_begin(&r, "latest", 1);
		m = model_find(&r, names[_i / 2]);
		model_overwrite(&r, m, 3, 10);
		ck_assert_uint_gt(h5_dataset_writer_held(m->writer), 0);
		begin_request(n, _i % 2);
		rc = h5_object_remove(r.scratch.file, m->address);
		h5_interrupt_get(&request);
		ck_assert(request.ask == is_unwanted);
		fired = end_request();
		ck_assert_int_eq(rc, fired ? -EINTR : 0);
		if (rc) {
			SUCCEEDS(h5_dataset_writer_ready(m->writer));
			model_compare(&r, m);
			refused++;
		}
		model_end(&r);
	}
	ck_assert(refused || !(_i / 2));
}
END_TEST

/* ---- what elements own ---- */

enum { ELEMENT = 16, TEXTS = 40 };

/* A dataset of texts, which are nothing, and its writer. */
static struct h5_dataset_writer *make_texts(struct scratch *s, uint64_t *address)
{
	struct h5_new_dataset how = {
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .max = {H5_UNLIMITED}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {4},
	};
	static const uint8_t none[TEXTS * ELEMENT];
	struct h5_dataset_writer *writer;
	struct h5_datatype *type;

	scratch_init(s, "header_create-latest.h5");
	scratch_open(s);
	SUCCEEDS(h5_numpy_parse("vlen str", 8, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s->file, &how, address));
	h5_datatype_free(type);
	SUCCEEDS(h5_dataset_writer_get(s->file, *address, false, &writer));
	SUCCEEDS(h5_dataset_writer_append(writer, none, sizeof none));
	SUCCEEDS(h5_tx_commit(s->file));
	return writer;
}

/* All that goes is looked at before the dataset becomes smaller. */
START_TEST(interrupted_texts)
{
	unsigned long n;
	bool fired = true;

	for (n = 1; fired; n++) {
		struct h5_dataset_writer *writer;
		struct scratch s;
		uint64_t address;
		int rc;

		writer = make_texts(&s, &address);
		begin_request(n, _i % 2);
		rc = h5_dataset_writer_resize(writer, 3);
		fired = end_request();
		ck_assert_int_eq(rc, fired ? -EINTR : 0);
		ck_assert_uint_eq(h5_dataset_writer_size(writer), (fired ? TEXTS : 3) * ELEMENT);
		SUCCEEDS(h5_dataset_writer_resize(writer, 3));
		ck_assert_uint_eq(h5_dataset_writer_size(writer), 3 * ELEMENT);
		h5_dataset_writer_put(writer);
		SUCCEEDS(h5_tx_commit(s.file));
		h5_dataset_writers_close(s.file);
		scratch_release(&s);
	}
	ck_assert_uint_gt(n, 2);
}
END_TEST

/* The look at what a removed object owns is not interrupted; what comes after it may be. */
START_TEST(a_removal_is_not_interrupted)
{
	struct h5_dataset_writer *writer;
	struct h5_heap_dead dead;
	const struct h5_object *object;
	struct h5_interrupt request;
	struct h5_lru_entry *ref;
	struct scratch s;
	uint64_t address;

	writer = make_texts(&s, &address);
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_object_get(s.file, address, &ref, &object));
	h5_heap_dead_init(&dead, s.file);
	begin_request(1, true);
	SUCCEEDS(h5_object_find_values(s.file, object, &dead));
	ck_assert(!interrupted);
	h5_interrupt_get(&request);
	ck_assert(request.ask == is_unwanted);
	ck_assert_int_eq(h5_interrupt_check(), -EINTR);
	(void)end_request();
	h5_heap_dead_release(&dead);
	h5_file_put(s.file, ref);
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

UNIT_MAIN_LOOPS("dataset_interrupts", {interrupted_rechunking, 4}, {interrupted_removals, 4},
		{contents_that_are_given_up, 2}, {interrupted_texts, 2}, {a_removal_is_not_interrupted, 1},
		{interrupted_changes, 2 * CHANGES *DATASETS}, {interrupted_holes, 2 * 6})

/* Datasets that change all their dimensions: whatever fails on the way, each has one of the shapes and what
 * belongs in it, and so has libhdf5 after a kill (tests/judge/shape_judge.py). */
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "dataset/create.h"
#include "dataset/reshape.h"
#include "dataset/writing.h"
#include "fault_alloc.h"
#include "object/group_write.h"
#include "object/numpy_parse.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

enum { INF = -1, ROWS = 12, COLUMNS = 13, FILL = 'f', MOST = 64 * 64 };

/* A dataset of bytes; the dimensions at first are ROWS and COLUMNS. */
struct kind {
	const char *name;
	int max[2];
	const char *filters;
};

static const struct kind kinds[] = {{"rows", {INF, 30}, ""},
				    {"rows-filtered", {INF, 30}, "deflate(1)"},
				    {"columns", {30, INF}, "fletcher32"},
				    {"both", {INF, INF}, ""},
				    {"both-filtered", {INF, INF}, "shuffle,deflate(1)"},
				    {"fixed", {30, 30}, ""},
				    {"fixed-filtered", {30, 30}, "deflate(1)"}};

/* One after the other; all fit into each maximum. */
static const uint64_t shapes[][2] = {{ROWS, COLUMNS}, {12, 7}, {15, 20}, {9, 30}, {0, 4}, {20, 9}, {8, 8}};

enum { KINDS = sizeof kinds / sizeof *kinds, SHAPES = sizeof shapes / sizeof *shapes };

/* What a dataset contains. */
struct model {
	uint64_t dims[2];
	uint8_t data[MOST];
};

static void resize(struct model *m, const uint64_t *dims)
{
	struct model before = *m;

	memset(m->data, FILL, sizeof m->data);
	memcpy(m->dims, dims, sizeof m->dims);
	for (uint64_t i = 0; i < dims[0] && i < before.dims[0]; i++)
		for (uint64_t j = 0; j < dims[1] && j < before.dims[1]; j++)
			m->data[i * dims[1] + j] = before.data[i * before.dims[1] + j];
}

static void first_model(struct model *m)
{
	memcpy(m->dims, shapes[0], sizeof m->dims);
	for (unsigned i = 0; i < ROWS * COLUMNS; i++)
		m->data[i] = (uint8_t)i;
}

static uint64_t extent(int n)
{
	return n == INF ? H5_UNLIMITED : (uint64_t)n;
}

static uint64_t make(struct scratch *s, const struct kind *kind)
{
	const uint8_t fill = FILL;
	struct h5_new_dataset how = {.layout = H5_LAYOUT_CHUNKED, .chunk = {4, 5}, .fill = &fill};
	struct h5_link link = {.type = H5_LINK_HARD, .name = kind->name, .name_size = strlen(kind->name)};
	struct h5_dataset_writer *writer;
	struct h5_datatype *type;
	struct model m;

	first_model(&m);
	how.space.kind = H5_SPACE_SIMPLE;
	how.space.rank = 2;
	for (unsigned i = 0; i < 2; i++) {
		how.space.dims[i] = shapes[0][i];
		how.space.max[i] = extent(kind->max[i]);
	}
	SUCCEEDS(h5_filter_list_parse(kind->filters, strlen(kind->filters), &how.filters));
	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s->file, &how, &link.address));
	SUCCEEDS(h5_group_insert(s->file, h5_file_superblock(s->file)->root, &link));
	SUCCEEDS(h5_dataset_writer_get(s->file, link.address, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, m.data, ROWS * COLUMNS));
	h5_dataset_writer_put(writer);
	h5_datatype_free(type);
	return link.address;
}

static void begin(struct scratch *s, bool latest, uint64_t addresses[KINDS])
{
	scratch_init(s, latest ? "header_create-latest.h5" : "header_create-v18.h5");
	scratch_wrap(s, NULL);
	scratch_open(s);
	for (unsigned k = 0; k < KINDS; k++)
		addresses[k] = make(s, &kinds[k]);
	SUCCEEDS(h5_tx_commit(s->file));
}

static int set_dims(struct scratch *s, uint64_t address, const uint64_t *dims)
{
	struct h5_dataset_writer *writer;
	int rc = h5_dataset_writer_get(s->file, address, false, &writer);

	if (rc)
		return rc;
	rc = h5_dataset_reshape(writer, dims);
	h5_dataset_writer_put(writer);
	return rc;
}

static bool has(struct scratch *s, uint64_t address, const struct model *m)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint8_t data[MOST];
	bool same;

	SUCCEEDS(h5_tx_settle(s->file));
	SUCCEEDS(h5_dataset_get(s->file, address, &ref, &dataset));
	same = !memcmp(dataset->space.dims, m->dims, sizeof m->dims);
	if (same) {
		SUCCEEDS(h5_dataset_read(dataset, 0, data, (size_t)dataset->size));
		ck_assert(!memcmp(data, m->data, (size_t)dataset->size));
	}
	h5_file_put(s->file, ref);
	return same;
}

static void finish(struct scratch *s)
{
	SUCCEEDS(h5_tx_commit(s->file));
	h5_dataset_writers_close(s->file);
	scratch_close(s);
}

/* Until the change succeeds, the dataset is as before, or as the change, or its first half, has made it. */
static unsigned change(struct scratch *s, uint64_t address, struct model *m, const uint64_t *dims)
{
	uint64_t least[2] = {dims[0] < m->dims[0] ? dims[0] : m->dims[0],
			     dims[1] < m->dims[1] ? dims[1] : m->dims[1]};
	unsigned failures = 0;
	int rc = -ENOMEM;

	for (unsigned long n = 1; rc; n++) {
		struct model half = *m, whole;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = set_dims(s, address, dims);
		fault_alloc_count(false);
		fault_alloc_disarm();
		ck_assert(!rc || rc == -ENOMEM);
		failures += rc != 0;
		resize(&half, least);
		whole = half;
		resize(&whole, dims);
		if (!rc || has(s, address, &whole)) {
			*m = whole;
			ck_assert(has(s, address, m));
		} else if (has(s, address, &half)) {
			*m = half;
		} else {
			ck_assert(has(s, address, m));
		}
	}
	return failures;
}

START_TEST(every_allocation_can_fail)
{
	uint64_t addresses[KINDS];
	unsigned failures = 0;
	struct scratch s;

	begin(&s, _i, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		struct model m;

		first_model(&m);
		for (unsigned i = 1; i < SHAPES; i++)
			failures += change(&s, addresses[k], &m, shapes[i]);
	}
	ck_assert_uint_gt(failures, 3 * KINDS * SHAPES);
	finish(&s);
	scratch_judge_python("tests/judge/shape_judge.py last %s", s.path);
	scratch_release(&s);
}
END_TEST

/* Once a dataset has become smaller, that succeeds, whatever fails when it gives up elements: the next commit
 * does that. */
START_TEST(what_is_outside_goes_later)
{
	const uint64_t small[2] = {7, 8};
	unsigned later = 0;
	bool fired = true;
	char prefix[128];

	snprintf(prefix, sizeof prefix, "%s/small", scratch_folder());
	for (unsigned long n = 1; fired; n++) {
		struct crash_image image = {0};
		uint64_t addresses[KINDS];
		struct scratch s;
		char path[160];

		begin(&s, _i, addresses);
		fired = false;
		for (unsigned k = 0; k < KINDS; k++) {
			bool now;
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = set_dims(&s, addresses[k], small);
			fault_alloc_count(false);
			now = fault_alloc_disarm();
			ck_assert(!rc || (now && rc == -ENOMEM));
			later += now && !rc;
			fired |= now;
			if (rc)
				SUCCEEDS(set_dims(&s, addresses[k], small));
		}
		finish(&s);
		crash_image_load(&image, s.path);
		snprintf(path, sizeof path, "%s-%lu.h5", prefix, n);
		crash_image_save(&image, path);
		free(image.data);
		scratch_release(&s);
	}
	ck_assert_uint_gt(later, 3 * KINDS);
	scratch_own_judge_python("tests/judge/shape_judge.py %d,%d %s-*.h5", (int)small[0], (int)small[1],
				 prefix);
}
END_TEST

/* Rows that came last are in memory, and what a smaller shape leaves of them is the fill value. */
START_TEST(new_rows_are_cut)
{
	static const uint64_t large[2] = {ROWS + 2, COLUMNS}, narrow[2] = {ROWS + 2, 3};
	uint64_t addresses[KINDS];
	struct scratch s;

	begin(&s, _i, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		struct h5_dataset_writer *writer;
		struct model m;

		first_model(&m);
		resize(&m, large);
		SUCCEEDS(set_dims(&s, addresses[k], large));
		for (unsigned i = ROWS * COLUMNS; i < (ROWS + 2) * COLUMNS; i++)
			m.data[i] = (uint8_t)i;
		SUCCEEDS(h5_dataset_writer_get(s.file, addresses[k], false, &writer));
		SUCCEEDS(h5_dataset_writer_write(writer, ROWS * COLUMNS, m.data + ROWS * COLUMNS,
						 2 * COLUMNS));
		h5_dataset_writer_put(writer);
		resize(&m, narrow);
		SUCCEEDS(set_dims(&s, addresses[k], narrow));
		resize(&m, large);
		SUCCEEDS(set_dims(&s, addresses[k], large));
		ck_assert(has(&s, addresses[k], &m));
	}
	finish(&s);
	scratch_release(&s);
}
END_TEST

/* The calls of the file fail from the n-th on: a dataset that is said to be smaller is smaller in the file.
 */
START_TEST(smaller_shapes_are_committed)
{
	const uint64_t small[2] = {7, 8};
	unsigned refused = 0, fewer = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct fault_io fault = {.lasting = true, .error = -ENOSPC};
		uint64_t addresses[KINDS];
		struct scratch s;
		struct model m;
		int rc;

		begin(&s, true, addresses);
		h5_dataset_writers_close(s.file);
		scratch_close(&s);
		scratch_wrap(&s, &fault);
		scratch_open(&s);
		fault_io_arm(&fault, n);
		rc = set_dims(&s, addresses[n % KINDS], small);
		ck_assert(!rc || rc == -ENOSPC);
		refused += rc != 0;
		h5_dataset_writers_close(s.file);
		scratch_close(&s);
		fired = fault_io_disarm(&fault);
		scratch_wrap(&s, NULL);
		scratch_open(&s);
		first_model(&m);
		if (!has(&s, addresses[n % KINDS], &m)) {
			resize(&m, small);
			ck_assert(has(&s, addresses[n % KINDS], &m));
			fewer++;
		} else {
			ck_assert_int_eq(rc, -ENOSPC);
		}
		finish(&s);
		scratch_release(&s);
	}
	ck_assert(refused > 2 && fewer > 2);
}
END_TEST

START_TEST(killed_between_cells)
{
	struct fault_io record = {.record = true};
	struct crash_image image = {0};
	uint64_t addresses[KINDS];
	char prefix[128];
	struct scratch s;

	begin(&s, _i, addresses);
	h5_dataset_writers_close(s.file);
	scratch_close(&s);
	crash_image_load(&image, s.path);
	scratch_wrap(&s, &record);
	scratch_open(&s);
	for (unsigned i = 1; i < SHAPES; i++)
		for (unsigned k = 0; k < KINDS; k++)
			SUCCEEDS(set_dims(&s, addresses[k], shapes[i]));
	finish(&s);
	snprintf(prefix, sizeof prefix, "%s/state", scratch_folder());
	ck_assert_uint_gt(crash_image_save_states(&image, &record, prefix), KINDS * SHAPES);
	scratch_own_judge_python("tests/judge/shape_judge.py any %s-*.h5", prefix);
	free(image.data);
	scratch_release(&s);
	fault_io_release(&record);
}
END_TEST

/* A dataset has 2^63-1 bytes at most. */
START_TEST(the_largest_shape)
{
	const uint64_t largest[2] = {7, INT64_MAX / 7}, larger[2] = {8, INT64_MAX / 8 + 1};
	uint64_t addresses[KINDS];
	struct scratch s;

	begin(&s, _i, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		if (kinds[k].max[0] != INF || kinds[k].max[1] != INF)
			continue;
		ck_assert_int_eq(set_dims(&s, addresses[k], larger), -EINVAL);
		ck_assert_str_eq(h5_error_last()->text, "dataset: more than 2^63-1 bytes");
		SUCCEEDS(set_dims(&s, addresses[k], largest));
		ck_assert_int_eq(set_dims(&s, addresses[k], larger), -EINVAL);
	}
	finish(&s);
	scratch_release(&s);
}
END_TEST

/* Of many rows that are not stored none is looked at, though each has chunks outside of the new columns. What
 * is outside of them does not come back. */
START_TEST(many_rows_become_narrower)
{
	enum { FIRST = 7, STORED = 3, A = 10, B = 8, ROW = A * B };
	static const uint64_t many = UINT64_C(1) << 40;
	/* To the edge of a chunk or not, and in one or both of the other dimensions. */
	static const uint64_t shapes_of_rows[][2] = {{10, 3}, {10, 4}, {4, 3}, {4, 8}, {5, 4}, {5, 5}};
	const uint64_t *narrow = shapes_of_rows[_i];
	struct h5_new_dataset how = {.layout = H5_LAYOUT_CHUNKED, .chunk = {1, 5, 4}};
	uint8_t data[STORED * ROW], found[STORED * ROW];
	const struct h5_dataset *dataset;
	struct h5_dataset_writer *writer;
	struct h5_datatype *type;
	struct h5_lru_entry *ref;
	struct scratch s;
	uint64_t address;

	scratch_init(&s, "header_create-latest.h5");
	scratch_wrap(&s, NULL);
	scratch_open(&s);
	how.space.kind = H5_SPACE_SIMPLE;
	how.space.rank = 3;
	memcpy(how.space.dims, (const uint64_t[]){many, A, B}, 3 * sizeof many);
	for (unsigned i = 0; i < 3; i++)
		how.space.max[i] = H5_UNLIMITED;
	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s.file, &how, &address));
	h5_datatype_free(type);
	SUCCEEDS(h5_dataset_writer_get(s.file, address, false, &writer));
	memset(data, 'd', sizeof data);
	SUCCEEDS(h5_dataset_writer_write(writer, ROW * FIRST, data, sizeof data));
	SUCCEEDS(h5_dataset_reshape(writer, (const uint64_t[]){many, narrow[0], narrow[1]}));
	SUCCEEDS(h5_tx_commit(s.file));
	SUCCEEDS(h5_dataset_get(s.file, address, &ref, &dataset));
	SUCCEEDS(h5_dataset_read(dataset, narrow[0] * narrow[1] * FIRST, found,
				 narrow[0] * narrow[1] * STORED));
	ck_assert_mem_eq(found, data, narrow[0] * narrow[1] * STORED);
	h5_file_put(s.file, ref);
	SUCCEEDS(h5_dataset_reshape(writer, how.space.dims));
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(s.file));
	for (unsigned i = 0; i < sizeof data; i++)
		if (i / B % A >= narrow[0] || i % B >= narrow[1])
			data[i] = 0;
	SUCCEEDS(h5_dataset_get(s.file, address, &ref, &dataset));
	SUCCEEDS(h5_dataset_read(dataset, ROW * FIRST, found, sizeof found));
	ck_assert_mem_eq(found, data, sizeof data);
	h5_file_put(s.file, ref);
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* A dataset that becomes small and large again and again needs no more of the file than once. */
START_TEST(what_is_outside_is_used_again)
{
	static const uint64_t small[2] = {3, 4};
	uint64_t addresses[KINDS], end = 0;
	struct scratch s;
	struct model m;

	begin(&s, true, addresses);
	first_model(&m);
	for (unsigned round = 0; round < 9; round++) {
		struct h5_dataset_writer *writer;

		SUCCEEDS(set_dims(&s, addresses[_i], small));
		SUCCEEDS(h5_tx_commit(s.file));
		SUCCEEDS(set_dims(&s, addresses[_i], shapes[0]));
		SUCCEEDS(h5_dataset_writer_get(s.file, addresses[_i], false, &writer));
		SUCCEEDS(h5_dataset_writer_write(writer, 0, m.data, ROWS * COLUMNS));
		h5_dataset_writer_put(writer);
		SUCCEEDS(h5_tx_commit(s.file));
		ck_assert(has(&s, addresses[_i], &m));
		if (round == 3)
			end = h5_file_end(s.file);
	}
	ck_assert_uint_eq(h5_file_end(s.file), end);
	finish(&s);
	scratch_release(&s);
}
END_TEST

static int set_columns(const void *columns, uint8_t *body, size_t n)
{
	ck_assert_uint_ge(n, 4 + 2 * 8);
	memcpy(body + 4 + 8, columns, 8);
	return 0;
}

/* A writer that is opened anew after the commit has nothing to cut. */
START_TEST(what_is_outside_goes_once)
{
	static const uint64_t small[2] = {3, 4};
	struct h5_dataset_writer *writer;
	uint64_t addresses[KINDS];
	struct scratch s;

	begin(&s, true, addresses);
	SUCCEEDS(h5_dataset_writer_get(s.file, addresses[_i], false, &writer));
	SUCCEEDS(h5_dataset_reshape(writer, small));
	SUCCEEDS(h5_tx_commit(s.file));
	h5_tx_drop(s.file, &writer->participant);
	SUCCEEDS(h5_dataset_writer_ready(writer));
	ck_assert(!h5_dataset_writer_is_dirty(writer));
	h5_dataset_writer_put(writer);
	finish(&s);
	scratch_release(&s);
}
END_TEST

/* Another program has left chunks outside of the dataset, and has perhaps given up their space, so that it
 * belongs to something else now. They are forgotten, but nothing is written there. */
START_TEST(space_of_what_another_program_has_left)
{
	enum { LEFT = 3 * 2, CHUNK = 4 * 5 };
	static const uint8_t five[8] = {5};
	static const uint64_t narrow[2] = {ROWS, 5};
	const struct h5_dataset *dataset;
	struct h5_chunk chunks[LEFT];
	uint64_t addresses[KINDS];
	struct h5_lru_entry *ref;
	struct scratch s;
	struct model m;

	begin(&s, true, addresses);
	SUCCEEDS(h5_dataset_get(s.file, addresses[_i], &ref, &dataset));
	for (unsigned i = 0; i < LEFT; i++) {
		uint64_t scaled[] = {i / 2, i % 2 + 1};

		SUCCEEDS(h5_chunk_index_lookup(dataset->index, NULL, scaled, &chunks[i]));
		ck_assert_uint_ne(chunks[i].address, H5_UNDEF);
	}
	h5_file_put(s.file, ref);
	h5_dataset_writers_close(s.file);
	SUCCEEDS(h5_header_update(s.file, addresses[_i], H5_MSG_DATASPACE, set_columns, five));
	SUCCEEDS(h5_tx_commit(s.file));
	SUCCEEDS(set_dims(&s, addresses[_i], shapes[0]));
	SUCCEEDS(h5_tx_commit(s.file));
	/* Space that was given up is used again after later commits. */
	for (unsigned i = 0; i < SHAPES; i++) {
		SUCCEEDS(set_dims(&s, addresses[(_i + 1) % KINDS], shapes[i]));
		SUCCEEDS(h5_tx_commit(s.file));
	}
	for (unsigned n = 0; n < 4 * LEFT; n++) {
		uint64_t address;

		SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, CHUNK, &address));
		for (unsigned i = 0; i < LEFT; i++)
			ck_assert(address + CHUNK <= chunks[i].address ||
				  chunks[i].address + chunks[i].size <= address);
	}
	first_model(&m);
	resize(&m, narrow);
	resize(&m, shapes[0]);
	ck_assert(has(&s, addresses[_i], &m));
	finish(&s);
	scratch_release(&s);
}
END_TEST

/* Reads fail from the n-th on, while one dimension becomes smaller and another one larger: the dataset is as
 * before, or has lost what it should lose. */
START_TEST(no_read_in_the_midst)
{
	static const uint64_t other[2] = {7, 20}, smaller[2] = {7, COLUMNS};
	unsigned before = 0, half = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct fault_io fault = {.lasting = true, .reads = true, .error = -EIO};
		const unsigned k = (unsigned)_i;
		uint64_t addresses[KINDS];
		struct scratch s;
		struct model m;
		int rc;

		begin(&s, true, addresses);
		h5_dataset_writers_close(s.file);
		scratch_close(&s);
		scratch_wrap(&s, &fault);
		scratch_open(&s);
		fault_io_arm(&fault, n);
		rc = set_dims(&s, addresses[k], other);
		fired = fault_io_disarm(&fault);
		ck_assert_int_eq(rc, fired && rc ? -EIO : 0);
		first_model(&m);
		if (rc && has(&s, addresses[k], &m)) {
			before++;
		} else {
			resize(&m, smaller);
			half += rc != 0;
			if (!rc)
				resize(&m, other);
			ck_assert(has(&s, addresses[k], &m));
		}
		SUCCEEDS(set_dims(&s, addresses[k], other));
		resize(&m, other);
		ck_assert(has(&s, addresses[k], &m));
		finish(&s);
		scratch_release(&s);
	}
	ck_assert_uint_gt(before, 0);
	ck_assert_uint_gt(half, 0);
}
END_TEST

UNIT_MAIN_LOOPS("shape", {what_is_outside_is_used_again, KINDS}, {what_is_outside_goes_once, KINDS},
		{space_of_what_another_program_has_left, KINDS}, {the_largest_shape, 2},
		{many_rows_become_narrower, 6}, {no_read_in_the_midst, KINDS}, {every_allocation_can_fail, 2},
		{what_is_outside_goes_later, 2}, {new_rows_are_cut, 2}, {smaller_shapes_are_committed, 1},
		{killed_between_cells, 2})

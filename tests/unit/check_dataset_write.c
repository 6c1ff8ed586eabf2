/* Datasets of every layout, chunk index and filter (tests/fixtures/dataset_write.py) are written at random,
 * beside a model in memory. What we read must be the model, before and after the file was opened anew; and at
 * the end libhdf5 reads the file, and goes on with it (tests/judge/dataset_write_judge.py). */
#include "base/checked.h"
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "dataset/rechunk.h"
#include "dataset_model.h"
#include "object/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OPERATIONS = 40,     /* on each dataset */
	SIZE_MOST = 1 << 16, /* bytes that datasets grow to */
};

static void operate(struct model_run *r, struct model *m)
{
	uint64_t room = m->row && m->size < SIZE_MOST ? (SIZE_MOST - m->size) / m->row : 0;

	room = room > 40 ? 40 : room;
	switch (m->most ? model_draw(r, 10) : model_draw(r, 4)) {
	case 0:
	case 1:
		if (m->size) {
			uint64_t offset = model_draw(r, m->size);

			model_overwrite(r, m, offset, (size_t)model_draw(r, m->size - offset) + 1);
		}
		break;
	case 2:
		if (m->size)
			model_overwrite(r, m, model_draw(r, m->size), 1);
		break;
	case 3:
		model_compare(r, m);
		break;
	case 4:
	case 5:
		model_append(r, m, model_draw(r, (room < 3 ? room : 3) + 1));
		break;
	case 6:
		model_append(r, m, model_draw(r, room + 1));
		break;
	case 7:
		model_resize(r, m, m->rows + model_draw(r, room + 1));
		break;
	case 8:
		model_resize(r, m, m->rows - model_draw(r, (m->rows < 6 ? m->rows : 6) + 1));
		break;
	default:
		model_resize(r, m, model_draw(r, m->rows + (room < 4 ? room : 4) + 1));
	}
}

static void live(const char *version, uint64_t seed)
{
	struct model_run r;

	model_begin(&r, version, seed);
	for (unsigned round = 0; round < OPERATIONS; round++) {
		for (unsigned i = 0; i < r.count; i++) {
			struct model *m = &r.models[i];

			if (!m->error && model_draw(&r, 3))
				operate(&r, m);
			if (m->writer && !model_draw(&r, 20)) {
				model_compare(&r, m);
				h5_dataset_writer_close(m->writer);
				m->writer = NULL;
			}
		}
		if (!model_draw(&r, 4))
			model_commit(&r);
		if (round % 8 == 7)
			model_reopen(&r);
	}
	model_reopen(&r);
	model_close(&r);
	model_judge(&r);
	model_end(&r);
}

START_TEST(random_changes_of_old_files)
{
	for (uint64_t seed = 1; seed < 3; seed++)
		live("earliest", seed);
}
END_TEST

START_TEST(random_changes_of_v108_files)
{
	live("v108", 1);
}
END_TEST

START_TEST(random_changes_of_new_files)
{
	for (uint64_t seed = 1; seed < 3; seed++)
		live("latest", seed);
}
END_TEST

static int open_rc(struct model_run *r, const char *name, bool external)
{
	struct h5_dataset_writer *writer = NULL;
	struct h5_file *file;
	uint64_t address;
	int rc = h5_path_find(r->scratch.file, h5_file_superblock(r->scratch.file)->root, name, strlen(name),
			      &file, &address);

	ck_assert_msg(!rc, "%s: %s", name, h5_error_last()->text);
	rc = h5_dataset_writer_get(file, address, external, &writer);
	if (!rc)
		rc = h5_dataset_writer_write(writer, 0, "abcd", 4);
	h5_dataset_writer_close(writer);
	return rc;
}

START_TEST(what_cannot_be_written_is_refused)
{
	struct model_run r;

	model_begin(&r, "latest", 1);
	ck_assert_int_eq(open_rc(&r, "virtual", true), -EPERM);
	ck_assert_int_eq(open_rc(&r, "external", false), -EPERM);
	ck_assert_int_eq(open_rc(&r, "external", true), 0);
	ck_assert_int_eq(open_rc(&r, "itself", true), -EPERM);
	ck_assert_int_eq(open_rc(&r, "gone", true), -ENOENT);
	ck_assert_int_eq(open_rc(&r, "matrix", false), 0);
	model_end(&r);
}
END_TEST

static unsigned count_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Files of raw data are open from the first write to the commit. */
START_TEST(raw_files_are_closed)
{
	struct model_run r;
	struct model *m;
	unsigned before;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "external");
	SUCCEEDS(h5_dataset_writer_get(r.scratch.file, m->address, true, &m->writer));
	before = count_descriptors();
	for (unsigned i = 0; i < 3; i++) {
		SUCCEEDS(h5_dataset_writer_write(m->writer, 0, m->data, m->size));
		SUCCEEDS(h5_tx_commit(r.scratch.file));
		ck_assert_uint_eq(count_descriptors(), before);
	}
	model_end(&r);
}
END_TEST

START_TEST(what_cannot_change_its_size_is_told)
{
	static const uint64_t chunk[] = {2, 2};
	struct model_run r;
	struct model *m;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "matrix");
	ck_assert_int_eq(h5_dataset_writer_resize(model_writer(&r, m), 7), 0);
	ck_assert_int_eq(h5_dataset_writer_resize(m->writer, 6), -EPERM);
	ck_assert_int_eq(h5_dataset_writer_append(m->writer, m->data, m->row), -EFBIG);
	ck_assert_int_eq(h5_dataset_writer_write(m->writer, m->size, m->data, 1), -EINVAL);
	ck_assert_uint_eq(h5_dataset_writer_max_rows(m->writer), 7);
	ck_assert_int_eq(h5_dataset_writer_punch(m->writer, m->size, 0), 0);
	ck_assert_int_eq(h5_dataset_writer_punch(m->writer, m->size, 1), -EINVAL);
	ck_assert_int_eq(h5_dataset_writer_punch(m->writer, 1, m->size), -EINVAL);
	ck_assert_int_eq(h5_dataset_writer_punch(m->writer, m->size + 1, 0), -EINVAL);
	ck_assert_int_eq(h5_dataset_writer_punch(m->writer, 2, UINT64_MAX - 1), -EINVAL);
	ck_assert_int_eq(h5_dataset_rechunk(r.scratch.file, m->address, chunk), -EINVAL);
	m = model_find(&r, "scalar");
	ck_assert_int_eq(h5_dataset_writer_append(model_writer(&r, m), m->data, 8), -EINVAL);
	ck_assert_int_eq(h5_dataset_writer_resize(m->writer, 1), -EPERM);
	m = model_find(&r, "bounded");
	ck_assert_uint_eq(h5_dataset_writer_max_rows(model_writer(&r, m)), 40);
	ck_assert_int_eq(h5_dataset_writer_append(m->writer, m->data, m->row - 1), -EINVAL);
	model_compare_all(&r);
	model_end(&r);
}
END_TEST

static const struct lying_layout {
	const char *name;
	uint64_t address, size;	  /* that the layout message claims */
	uint64_t offset;	  /* of the ten bytes that are read and written */
	const char *read, *write; /* how they are refused; NULL: they are not */
} lying_layouts[] = {
	{"late", H5_UNDEF, 399, 0, NULL, "dataset: 400 bytes in storage of 399"},
	{"late", H5_UNDEF, 401, 0, NULL, "dataset: 400 bytes in storage of 401"},
	{"late", H5_UNDEF, 400, 390, NULL, NULL},
	{"matrix", UINT64_MAX - 200, 252, 201, "dataset: its data lie beyond any file",
	 "dataset: its data lie beyond any file"},
	{"matrix", UINT64_MAX - 200, 252, 100, "10 bytes reach beyond the end of the file",
	 "a write beyond the end of the file"},
	{"matrix", 8, 251, 242, "dataset: 251 bytes are stored of 252",
	 "dataset: 251 bytes are stored of 252"},
	{"matrix", UINT64_C(1) << 50, 252, 0, "10 bytes reach beyond the end of the file",
	 "a write beyond the end of the file"},
};

static int set_lying_layout(const void *arg, uint8_t *body, size_t n)
{
	const struct lying_layout *l = arg;

	ck_assert_uint_ge(n, 18);
	ck_assert(body[0] >= 3 && body[1] == H5_LAYOUT_CONTIGUOUS);
	h5_uint_to(body + 2, l->address, 8);
	h5_uint_to(body + 10, l->size, 8);
	return 0;
}

static void check_refusal(int rc, const char *refusal)
{
	ck_assert_int_eq(rc, refusal ? -EUCLEAN : 0);
	if (refusal)
		ck_assert_str_eq(h5_error_last()->text, refusal);
}

/* Contiguous layouts whose storage is not as large as the dataset, or outside of the file: nothing is written
 * elsewhere. */
START_TEST(storage_that_is_not_there)
{
	const struct lying_layout *l = &lying_layouts[_i];
	struct h5_dataset_writer *writer;
	uint8_t data[10] = {0}, *before, *after;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct model_run r;
	struct model *m;
	size_t size;

	model_begin(&r, "latest", 1);
	m = model_find(&r, l->name);
	size = (size_t)h5_file_end(r.scratch.file);
	before = malloc(size);
	after = malloc(size);
	SUCCEEDS(h5_header_update(r.scratch.file, m->address, H5_MSG_LAYOUT, set_lying_layout, l));
	SUCCEEDS(h5_file_read(r.scratch.file, 0, before, size));
	SUCCEEDS(h5_dataset_get(r.scratch.file, m->address, &ref, &dataset));
	check_refusal(h5_dataset_read(dataset, l->offset, data, sizeof data), l->read);
	h5_file_put(r.scratch.file, ref);
	SUCCEEDS(h5_dataset_writer_get(r.scratch.file, m->address, false, &writer));
	check_refusal(h5_dataset_writer_punch(writer, l->offset, sizeof data),
		      l->address == H5_UNDEF ? NULL : l->write);
	check_refusal(h5_dataset_writer_write(writer, l->offset, data, sizeof data), l->write);
	h5_dataset_writer_close(writer);
	SUCCEEDS(h5_file_read(r.scratch.file, 0, after, size));
	ck_assert_mem_eq(before, after, size);
	if (l->write)
		ck_assert_uint_eq(h5_file_end(r.scratch.file), size);
	free(before);
	free(after);
	model_end(&r);
}
END_TEST

/* More than may be held in memory, row by row. */
START_TEST(long_appends_are_held_in_bounds)
{
	enum { HELD_MOST = 80 << 20, ROWS = 1 << 12 };
	struct model_run r;
	struct model *m;
	uint8_t *data;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "large_gzip");
	free(m->data);
	m->data = data = malloc(120 << 20);
	memset(data, 7, m->row * ROWS);
	h5_dataset_writer_close(m->writer);
	m->writer = NULL;
	ck_assert_int_eq(h5_dataset_writer_resize((m->size = 7 * m->row, model_writer(&r, m)), 0), 0);
	m->size = m->rows = 0;
	while (m->size + ROWS * m->row <= 110 << 20) {
		data[m->size + 5] = (uint8_t)m->rows;
		ck_assert_int_eq(h5_dataset_writer_append(m->writer, data + m->size, ROWS * (size_t)m->row),
				 0);
		m->size += ROWS * (size_t)m->row;
		m->rows += ROWS;
		memset(data + m->size, 7, m->row * ROWS);
		ck_assert_uint_le(h5_dataset_writer_held(m->writer), HELD_MOST);
	}
	model_reopen(&r);
	model_end(&r);
}
END_TEST

static int count_chunk(void *arg, const struct h5_chunk *chunk)
{
	unsigned *count = arg;

	(void)chunk;
	++*count;
	return 0;
}

/* All chunks of the dataset are stored. */
static void check_all_stored(struct model_run *r, struct model *m)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	unsigned count = 0;

	ck_assert_int_eq(h5_dataset_writer_settle(m->writer), 0);
	ck_assert_int_eq(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset), 0);
	ck_assert_ptr_nonnull(dataset->index);
	ck_assert_int_eq(h5_chunk_index_walk(dataset->index, count_chunk, &count), 0);
	/* Chunks of 4 rows, 3 of them side by side; an implicit index has those of all rows that there may
	 * be. */
	if (dataset->layout.chunked.index != H5_INDEX_IMPLICIT)
		ck_assert_msg(count == (m->rows + 3) / 4 * 3, "%s: %u chunks of %llu rows", m->name, count,
			      m->rows);
	h5_file_put(r->scratch.file, ref);
}

/* libhdf5 counts on it that a dataset with early allocation has all of its chunks. */
START_TEST(early_allocation_leaves_no_chunk_out)
{
	static const char *const versions[] = {"earliest", "v108", "latest"};
	static const char *const names[] = {"early_bounded", "early_unlimited", "early_gzip", "early_none",
					    "early_second"};

	for (unsigned v = 0; v < sizeof versions / sizeof *versions; v++) {
		struct model_run r;

		model_begin(&r, versions[v], v);
		for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
			struct model *m = model_find(&r, names[i]);

			model_resize(&r, m, m->rows + 12);
			check_all_stored(&r, m);
			model_resize(&r, m, 2);
			check_all_stored(&r, m);
			model_resize(&r, m, 19);
			model_append(&r, m, 6);
			check_all_stored(&r, m);
		}
		model_reopen(&r);
		model_close(&r);
		model_judge(&r);
		model_end(&r);
	}
}
END_TEST

/* Whole chunks of one append go to the file from where they are, side by side: with one write. */
START_TEST(whole_chunks_take_one_write)
{
	enum { CHUNK = 5, CHUNKS = 100 };
	uint8_t data[4 * CHUNK * CHUNKS];
	unsigned writes = 0;
	struct model *m;
	struct model_run r;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7);
	model_begin(&r, "latest", 1);
	m = model_find(&r, "plain1");
	model_append_rows(&r, m, data, CHUNK - m->rows % CHUNK);
	r.fault.record = true;
	model_append_rows(&r, m, data, CHUNK * CHUNKS);
	r.fault.record = false;
	for (size_t i = 0; i < r.fault.count; i++)
		if (r.fault.events[i].kind == FAULT_WRITE) {
			ck_assert_uint_eq(r.fault.events[i].size, sizeof data);
			writes++;
		}
	ck_assert_uint_eq(writes, 1);
	model_compare(&r, m);
	model_reopen(&r);
	fault_io_release(&r.fault);
	model_end(&r);
}
END_TEST

/* What the file holds does not tell how many processors have encoded it. */
START_TEST(workers_make_the_same_file)
{
	static const char *const names[] = {"plain1_gzip", "plain2_all", "both_gzip", "long_runs_all"};
	struct model_run runs[2];

	for (unsigned k = 0; k < 2; k++) {
		struct model_run *r = &runs[k];

		model_begin(r, "latest", 1);
		model_close(r);
		r->scratch.options.workers = k ? 4 : 0;
		scratch_open(&r->scratch);
		for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
			struct model *m = model_find(r, names[i]);
			size_t rows = h5_min(150, (DATA_MAX - m->size) / m->row);
			uint8_t *data = malloc(rows * m->row);

			for (size_t j = 0; j < rows * m->row; j++)
				data[j] = (uint8_t)(j * j >> 5);
			model_append_rows(r, m, data, rows);
			free(data);
		}
		ck_assert_int_eq(h5_tx_commit(r->scratch.file), 0);
		model_close(r);
	}
	scratch_run("cmp %s %s", runs[0].scratch.path, runs[1].scratch.path);
	for (unsigned k = 0; k < 2; k++)
		model_end(&runs[k]);
}
END_TEST

UNIT_MAIN_LOOPS_AROUND("dataset_write", scratch_keep_accounts, NULL,
		       {early_allocation_leaves_no_chunk_out, 1}, {whole_chunks_take_one_write, 1},
		       {workers_make_the_same_file, 1}, {what_cannot_be_written_is_refused, 1},
		       {raw_files_are_closed, 1}, {what_cannot_change_its_size_is_told, 1},
		       {storage_that_is_not_there, sizeof lying_layouts / sizeof *lying_layouts},
		       {long_appends_are_held_in_bounds, 1}, {random_changes_of_old_files, 1},
		       {random_changes_of_v108_files, 1}, {random_changes_of_new_files, 1})

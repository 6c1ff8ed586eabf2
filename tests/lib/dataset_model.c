#include "dataset_model.h"

#include "base/error.h"
#include "change/transaction.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t model_draw(struct model_run *r, uint64_t below)
{
	r->random = r->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (r->random >> 33) % below;
}

/* ---- memory ---- */

/* Of models that have ended. There are a hundred in each run: to give so much back and to ask for it again
 * takes longer than many a run. */
static struct {
	uint8_t *data[DATASETS_MAX];
	unsigned count;
} spare;

static uint8_t *take_data(void)
{
	uint8_t *data = spare.count ? spare.data[--spare.count] : malloc(DATA_MAX);

	ck_assert_ptr_nonnull(data);
	return data;
}

static void give_data(uint8_t *data)
{
	if (spare.count < DATASETS_MAX)
		spare.data[spare.count++] = data;
	else
		free(data);
}

/* ---- files ---- */

static void read_line(struct model_run *r, const char *line)
{
	struct model *m = &r->models[r->count];
	char file[64], fill[129], name[160], path[512];
	long long most;
	FILE *f;

	ck_assert_int_eq(sscanf(line, "%63s %63s %llu %d %llu %llu %lld %zu %128s", file, m->name,
				&m->address, &m->error, &m->rows, &m->row, &most, &m->element, fill),
			 9);
	if (strcmp(file, r->file_name) != 0)
		return;
	m->most = (unsigned long long)most;
	ck_assert_uint_le(m->element, sizeof m->fill);
	for (size_t i = 0; i < m->element; i++)
		ck_assert_int_eq(sscanf(fill + 2 * i, "%2hhx", &m->fill[i]), 1);
	snprintf(name, sizeof name, "%s.%s.bin", file, m->name);
	scratch_fixture(name, path);
	f = fopen(path, "rb");
	ck_assert_msg(f, "%s", path);
	m->data = take_data();
	m->size = fread(m->data, 1, DATA_MAX, f);
	fclose(f);
	ck_assert_uint_lt(++r->count, DATASETS_MAX);
}

static void copy_external(const struct model_run *r)
{
	char name[96], from[512], to[512];

	for (char letter = 'a'; letter <= 'b'; letter++) {
		snprintf(name, sizeof name, "%s_%c.raw", r->file_name, letter);
		scratch_fixture(name, from);
		ck_assert_int_lt(snprintf(to, sizeof to, "%s/%s", r->scratch.folder, name), (int)sizeof to);
		if (!access(from, F_OK))
			scratch_copy(from, to);
	}
}

void model_begin(struct model_run *r, const char *version, uint64_t seed)
{
	char fixture[80], path[512], line[512];
	FILE *list;

	memset(r, 0, sizeof *r);
	r->random = seed;
	snprintf(r->file_name, sizeof r->file_name, "dataset_write_%s", version);
	snprintf(fixture, sizeof fixture, "%s.h5", r->file_name);
	scratch_init(&r->scratch, fixture);
	scratch_wrap(&r->scratch, &r->fault);
	r->scratch.options.external = H5_EXTERNAL_BENEATH;
	copy_external(r);
	scratch_fixture("dataset_write.list", path);
	list = fopen(path, "r");
	ck_assert_ptr_nonnull(list);
	while (fgets(line, sizeof line, list))
		read_line(r, line);
	fclose(list);
	scratch_open(&r->scratch);
}

void model_close(struct model_run *r)
{
	for (unsigned i = 0; i < r->count; i++) {
		h5_dataset_writer_close(r->models[i].writer);
		r->models[i].writer = NULL;
	}
	scratch_close(&r->scratch);
}

void model_end(struct model_run *r)
{
	model_close(r);
	for (unsigned i = 0; i < r->count; i++)
		give_data(r->models[i].data);
	scratch_release(&r->scratch);
}

struct model *model_find(struct model_run *r, const char *name)
{
	for (unsigned i = 0; i < r->count; i++)
		if (!strcmp(r->models[i].name, name))
			return &r->models[i];
	ck_abort_msg("%s", name);
}

struct h5_dataset_writer *model_writer(struct model_run *r, struct model *m)
{
	int rc;

	if (m->writer)
		return m->writer;
	rc = h5_dataset_writer_get(r->scratch.file, m->address, true, &m->writer);
	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
	ck_assert_uint_eq(h5_dataset_writer_row(m->writer), m->row);
	ck_assert_uint_eq(h5_dataset_writer_size(m->writer), m->size);
	return m->writer;
}

void model_append_rows(struct model_run *r, struct model *m, const uint8_t *data, uint64_t rows)
{
	size_t n = (size_t)(rows * m->row);
	int rc = h5_dataset_writer_append(model_writer(r, m), data, n);

	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
	ck_assert_uint_le(m->size + n, DATA_MAX);
	memcpy(m->data + m->size, data, n);
	m->size += n;
	m->rows += rows;
}

/* ---- comparing ---- */

void model_compare(struct model_run *r, struct model *m)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint8_t *found = malloc(m->size + 1);
	int rc;

	if (m->writer) {
		ck_assert_uint_eq(h5_dataset_writer_size(m->writer), m->size);
		rc = h5_dataset_writer_settle(m->writer);
		ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
		ck_assert(!h5_dataset_writer_is_dirty(m->writer));
		ck_assert_uint_eq(h5_dataset_writer_held(m->writer), 0);
	}
	rc = h5_dataset_get(r->scratch.file, m->address, &ref, &dataset);
	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
	ck_assert_msg(dataset->size == m->size, "%s: %ju bytes, not %zu", m->name, (uintmax_t)dataset->size,
		      m->size);
	rc = h5_dataset_read(dataset, 0, found, m->size);
	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
	for (size_t i = 0; memcmp(found, m->data, m->size) && i < m->size; i++)
		ck_assert_msg(found[i] == m->data[i], "%s: byte %zu of %zu, row %llu: %u, not %u", m->name, i,
			      m->size, m->row ? i / m->row : 0, found[i], m->data[i]);
	h5_file_put(r->scratch.file, ref);
	free(found);
}

void model_compare_all(struct model_run *r)
{
	for (unsigned i = 0; i < r->count; i++)
		if (!r->models[i].error)
			model_compare(r, &r->models[i]);
}

void model_commit(struct model_run *r)
{
	int rc;

	for (unsigned i = 0; i < r->count; i++)
		if (r->models[i].writer)
			ck_assert_int_eq(h5_dataset_writer_settle(r->models[i].writer), 0);
	rc = h5_tx_commit(r->scratch.file);
	ck_assert_msg(!rc, "%s", h5_error_last()->text);
}

void model_judge(struct model_run *r)
{
	char path[512];

	for (unsigned i = 0; i < r->count; i++) {
		struct model *m = &r->models[i];
		FILE *f;

		if (m->error)
			continue;
		snprintf(path, sizeof path, "%s/%s.model", r->scratch.folder, m->name);
		f = fopen(path, "wb");
		ck_assert_ptr_nonnull(f);
		ck_assert_uint_eq(fwrite(m->data, 1, m->size, f), m->size);
		fclose(f);
	}
	scratch_judge_python("tests/judge/dataset_write_judge.py %s %s/dataset_write.list", r->scratch.path,
			     getenv("H5FS_TEST_DATA"));
}

/* ---- operations on both ---- */

void model_fill(struct model_run *r, uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)(model_draw(r, 3) ? i / 7 : model_draw(r, 256));
}

void model_set_rows(struct model *m, uint64_t rows)
{
	size_t size = (size_t)(rows * m->row);

	ck_assert_uint_le(size, DATA_MAX);
	for (size_t i = m->size; i < size; i++)
		m->data[i] = m->fill[i % m->element];
	m->rows = rows;
	m->size = size;
}

void model_overwrite(struct model_run *r, struct model *m, uint64_t offset, size_t n)
{
	int rc;

	model_fill(r, m->data + offset, n);
	rc = h5_dataset_writer_write(model_writer(r, m), offset, m->data + offset, n);
	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
}

void model_append(struct model_run *r, struct model *m, uint64_t rows)
{
	size_t n = (size_t)(rows * m->row);
	uint8_t *data = malloc(n + 1);
	int rc;

	model_fill(r, data, n);
	rc = h5_dataset_writer_append(model_writer(r, m), data, n);
	if (rows > m->most - m->rows) {
		ck_assert_int_eq(rc, -EFBIG);
	} else {
		ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
		model_set_rows(m, m->rows + rows);
		memcpy(m->data + m->size - n, data, n);
	}
	free(data);
}

void model_resize(struct model_run *r, struct model *m, uint64_t rows)
{
	int rc = h5_dataset_writer_resize(model_writer(r, m), rows);

	if (rows > m->most) {
		ck_assert_int_eq(rc, -EFBIG);
		return;
	}
	ck_assert_msg(!rc, "%s to %ju: %d %s", m->name, (uintmax_t)rows, rc, h5_error_last()->text);
	model_set_rows(m, rows);
}

void model_reopen(struct model_run *r)
{
	model_commit(r);
	model_close(r);
	scratch_open(&r->scratch);
	model_compare_all(r);
}

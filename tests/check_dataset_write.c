/* Datasets of every layout, chunk index and filter (tests/fixtures/dataset_write.py) are written at random,
 * beside a model in memory. What we read must be the model, before and after the file was opened anew; and at
 * the end libhdf5 reads the file, and goes on with it (tests/dataset_write_judge.py). */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/writer.h"
#include "object/path.h"
#include "scratch.h"
#include "store/transaction.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	DATASETS_MAX = 300,
	OPERATIONS = 40,     /* on each dataset */
	SIZE_MOST = 1 << 16, /* bytes that datasets grow to */
	DATA_MAX = 1 << 18,
};

struct model {
	char name[64];
	unsigned long long address, rows, row, most;
	size_t element;
	int error; /* of opening it for writing */
	uint8_t fill[64];
	uint8_t *data;
	size_t size;
	struct h5_dataset_writer *writer;
};

struct run {
	struct scratch scratch;
	char file_name[64];
	struct fault_io fault;
	struct model models[DATASETS_MAX];
	unsigned count;
	uint64_t random;
};

static uint64_t draw(struct run *r, uint64_t below)
{
	r->random = r->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (r->random >> 33) % below;
}

/* ---- files ---- */

static void read_line(struct run *r, const char *line)
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
	m->data = malloc(DATA_MAX);
	m->size = fread(m->data, 1, DATA_MAX, f);
	fclose(f);
	ck_assert_uint_lt(++r->count, DATASETS_MAX);
}

/* A copy of a fixture's file and its raw files, open for writing. */
static void begin(struct run *r, const char *version, uint64_t seed)
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
	scratch_fixture("", path);
	scratch_run("find %s -name '%s_*.raw' -exec cp {} %s \\;", path, r->file_name, r->scratch.folder);
	scratch_fixture("dataset_write.list", path);
	list = fopen(path, "r");
	ck_assert_ptr_nonnull(list);
	while (fgets(line, sizeof line, list))
		read_line(r, line);
	fclose(list);
	scratch_open(&r->scratch);
}

static void close_file(struct run *r)
{
	for (unsigned i = 0; i < r->count; i++) {
		h5_dataset_writer_close(r->models[i].writer);
		r->models[i].writer = NULL;
	}
	scratch_close(&r->scratch);
}

static void end(struct run *r)
{
	close_file(r);
	for (unsigned i = 0; i < r->count; i++)
		free(r->models[i].data);
	scratch_release(&r->scratch);
}

static struct model *find(struct run *r, const char *name)
{
	for (unsigned i = 0; i < r->count; i++)
		if (!strcmp(r->models[i].name, name))
			return &r->models[i];
	ck_abort_msg("%s", name);
}

static struct h5_dataset_writer *writer_of(struct run *r, struct model *m)
{
	int rc;

	if (m->writer)
		return m->writer;
	rc = h5_dataset_writer_open(r->scratch.file, m->address, true, &m->writer);
	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
	ck_assert_uint_eq(h5_dataset_writer_row(m->writer), m->row);
	ck_assert_uint_eq(h5_dataset_writer_size(m->writer), m->size);
	return m->writer;
}

static void append_rows(struct run *r, struct model *m, const uint8_t *data, uint64_t rows)
{
	size_t n = (size_t)(rows * m->row);
	int rc = h5_dataset_writer_append(writer_of(r, m), data, n);

	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
	ck_assert_uint_le(m->size + n, DATA_MAX);
	memcpy(m->data + m->size, data, n);
	m->size += n;
	m->rows += rows;
}

/* ---- comparing ---- */

/* What a reader finds, once the writer has settled. */
static void compare(struct run *r, struct model *m)
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

static void compare_all(struct run *r)
{
	for (unsigned i = 0; i < r->count; i++)
		if (!r->models[i].error)
			compare(r, &r->models[i]);
}

static void commit(struct run *r)
{
	int rc;

	for (unsigned i = 0; i < r->count; i++)
		if (r->models[i].writer)
			ck_assert_int_eq(h5_dataset_writer_settle(r->models[i].writer), 0);
	rc = h5_tx_commit(r->scratch.file);
	ck_assert_msg(!rc, "%s", h5_error_last()->text);
}

/* libhdf5 compares the file with the models, and goes on. */
static void judge(struct run *r)
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
	scratch_python("tests/dataset_write_judge.py %s %s/dataset_write.list", r->scratch.path,
		       getenv("H5FS_TEST_DATA"));
}

/* ---- operations on both ---- */

static void fill_random(struct run *r, uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)(draw(r, 3) ? i / 7 : draw(r, 256));
}

static void model_resize(struct model *m, uint64_t rows)
{
	size_t size = (size_t)(rows * m->row);

	ck_assert_uint_le(size, DATA_MAX);
	for (size_t i = m->size; i < size; i++)
		m->data[i] = m->fill[i % m->element];
	m->rows = rows;
	m->size = size;
}

static void overwrite(struct run *r, struct model *m, uint64_t offset, size_t n)
{
	int rc;

	fill_random(r, m->data + offset, n);
	rc = h5_dataset_writer_write(writer_of(r, m), offset, m->data + offset, n);
	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
}

static void append(struct run *r, struct model *m, uint64_t rows)
{
	size_t n = (size_t)(rows * m->row);
	uint8_t *data = malloc(n + 1);
	int rc;

	fill_random(r, data, n);
	rc = h5_dataset_writer_append(writer_of(r, m), data, n);
	if (rows > m->most - m->rows) {
		ck_assert_int_eq(rc, -EFBIG);
	} else {
		ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
		model_resize(m, m->rows + rows);
		memcpy(m->data + m->size - n, data, n);
	}
	free(data);
}

static void resize(struct run *r, struct model *m, uint64_t rows)
{
	int rc = h5_dataset_writer_resize(writer_of(r, m), rows);

	if (rows > m->most) {
		ck_assert_int_eq(rc, -EFBIG);
		return;
	}
	ck_assert_msg(!rc, "%s to %ju: %d %s", m->name, (uintmax_t)rows, rc, h5_error_last()->text);
	model_resize(m, rows);
}

static void operate(struct run *r, struct model *m)
{
	uint64_t room = m->row && m->size < SIZE_MOST ? (SIZE_MOST - m->size) / m->row : 0;

	room = room > 40 ? 40 : room;
	switch (m->most ? draw(r, 10) : draw(r, 4)) {
	case 0:
	case 1:
		if (m->size) {
			uint64_t offset = draw(r, m->size);

			overwrite(r, m, offset, (size_t)draw(r, m->size - offset) + 1);
		}
		break;
	case 2:
		if (m->size)
			overwrite(r, m, draw(r, m->size), 1);
		break;
	case 3:
		compare(r, m);
		break;
	case 4:
	case 5:
		append(r, m, draw(r, (room < 3 ? room : 3) + 1));
		break;
	case 6:
		append(r, m, draw(r, room + 1));
		break;
	case 7:
		resize(r, m, m->rows + draw(r, room + 1));
		break;
	case 8:
		resize(r, m, m->rows - draw(r, (m->rows < 6 ? m->rows : 6) + 1));
		break;
	default:
		resize(r, m, draw(r, m->rows + (room < 4 ? room : 4) + 1));
	}
}

static void reopen(struct run *r)
{
	commit(r);
	close_file(r);
	scratch_open(&r->scratch);
	compare_all(r);
}

static void live(const char *version, uint64_t seed)
{
	struct run r;

	begin(&r, version, seed);
	for (unsigned round = 0; round < OPERATIONS; round++) {
		for (unsigned i = 0; i < r.count; i++) {
			struct model *m = &r.models[i];

			if (!m->error && draw(&r, 3))
				operate(&r, m);
			if (m->writer && !draw(&r, 20)) {
				compare(&r, m);
				h5_dataset_writer_close(m->writer);
				m->writer = NULL;
			}
		}
		if (!draw(&r, 4))
			commit(&r);
		if (round % 8 == 7)
			reopen(&r);
	}
	reopen(&r);
	close_file(&r);
	judge(&r);
	end(&r);
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
	for (uint64_t seed = 1; seed < 4; seed++)
		live("latest", seed);
}
END_TEST

/* ---- failures ---- */

enum change { APPEND, APPEND_MANY, GROW, SHRINK, SHRINK_TO_CHUNK, OVERWRITE, CHANGES };

static uint64_t shrunk_rows(const struct model *m, enum change what)
{
	return what == SHRINK ? m->rows - 3 : what == SHRINK_TO_CHUNK ? m->rows / 4 * 4 : m->rows;
}

/* The change, of which some call may fail. The model is as it should be, whatever became of it. */
static int change(struct run *r, struct model *m, enum change what)
{
	const uint64_t added[] = {[APPEND] = 3, [APPEND_MANY] = 11, [GROW] = 7};
	uint64_t rows = shrunk_rows(m, what);
	uint8_t *data = malloc(DATA_MAX);
	int rc;

	fill_random(r, data, DATA_MAX);
	if (what == OVERWRITE) {
		rc = h5_dataset_writer_write(m->writer, 0, data, m->size);
		if (!rc)
			memcpy(m->data, data, m->size);
	} else if (what >= SHRINK) {
		rc = h5_dataset_writer_resize(m->writer, rows);
		if (!rc)
			model_resize(m, rows);
	} else {
		size_t before = m->size;

		rows = m->rows + added[what];
		rc = what == GROW ? h5_dataset_writer_resize(m->writer, rows)
				  : h5_dataset_writer_append(m->writer, data, added[what] * m->row);
		if (!rc)
			model_resize(m, rows);
		if (!rc && what != GROW)
			memcpy(m->data + before, data, m->size - before);
	}
	free(data);
	return rc;
}

static struct model copy_model(const struct model *m)
{
	struct model copy = *m;

	copy.data = memcpy(malloc(DATA_MAX), m->data, m->size);
	return copy;
}

/* After a failed commit the file has the rows of the one before, or those of that one. */
static void accept(struct run *r, struct model *m, const struct model *other)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;

	ck_assert_int_eq(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset), 0);
	if (dataset->size == other->size) {
		memcpy(m->data, other->data, other->size);
		m->rows = other->rows;
		m->size = other->size;
	}
	h5_file_put(r->scratch.file, ref);
}

/* The n-th call from the begin of the change fails. False: there are not so many. */
static bool fail_at(const char *version, const char *name, enum change what, unsigned long n)
{
	struct run r;
	struct model *m, original, before, shrunk;
	bool failed, given_up;
	int rc;

	begin(&r, version, what);
	m = find(&r, name);
	original = copy_model(m);
	/* Something of this transaction is there already. */
	append(&r, m, 2);
	before = copy_model(m);
	shrunk = copy_model(m);
	model_resize(&shrunk, shrunk_rows(m, what));
	fault_io_arm(&r.fault, n);
	r.fault.error = -ENOSPC;
	rc = change(&r, m, what);
	if (rc && what == OVERWRITE)
		h5_dataset_writer_write(m->writer, 0, m->data, m->size);
	ck_assert_msg(!rc || rc == -ENOSPC, "%s: %d %s", name, rc, h5_error_last()->text);
	rc = h5_dataset_writer_settle(m->writer);
	ck_assert_msg(!rc || rc == -ENOSPC || !h5_tx_is_writable(r.scratch.file), "%s: %d %s", name, rc,
		      h5_error_last()->text);
	if (!rc)
		h5_tx_commit(r.scratch.file);
	failed = fault_io_disarm(&r.fault);
	given_up = !h5_tx_is_writable(r.scratch.file);
	if (!given_up) {
		compare(&r, m);
		/* What was left behind must not be found. */
		ck_assert_int_eq(h5_dataset_writer_resize(m->writer, m->rows + 8), 0);
		model_resize(m, m->rows + 8);
		compare(&r, m);
		commit(&r);
	}
	close_file(&r);
	scratch_open(&r.scratch);
	if (given_up) {
		accept(&r, m, &original);
		accept(&r, m, &before);
		accept(&r, m, &shrunk);
	}
	if (!given_up || what != OVERWRITE)
		compare(&r, m);
	free(original.data);
	free(before.data);
	free(shrunk.data);
	end(&r);
	return failed;
}

START_TEST(a_failed_change_leaves_the_rows_as_they_were)
{
	static const struct {
		const char *version, *name;
	} datasets[] = {{"earliest", "plain2"},	  {"earliest", "plain2_gzip"}, {"latest", "plain2"},
			{"latest", "plain2_all"}, {"latest", "both_gzip"},     {"latest", "edges"},
			{"latest", "edges1"},	  {"latest", "early_bounded"}, {"latest", "holes_bounded"},
			{"latest", "second"},	  {"latest", "large"}};

	for (unsigned i = 0; i < sizeof datasets / sizeof *datasets; i++)
		for (unsigned what = 0; what < CHANGES; what++)
			for (unsigned long n = 1; fail_at(datasets[i].version, datasets[i].name, what, n);
			     n++)
				;
}
END_TEST

/* The commit of an append is cut short before its n-th call, and the journal is lost: when the dataset grows
 * again, what the append has left in chunks and index is not found. False: there are not so many calls. */
static bool killed_at(const char *version, const char *name, unsigned long n)
{
	struct model *m, before;
	struct run r;
	bool failed;

	begin(&r, version, n);
	m = find(&r, name);
	writer_of(&r, m);
	before = copy_model(m);
	ck_assert_int_eq(change(&r, m, APPEND_MANY), 0);
	ck_assert_int_eq(h5_dataset_writer_settle(m->writer), 0);
	fault_io_arm(&r.fault, n);
	r.fault.lasting = true;
	r.fault.error = -EIO;
	failed = h5_tx_commit(r.scratch.file) != 0;
	close_file(&r);
	fault_io_disarm(&r.fault);
	scratch_run("rm -f %s/*journal*", r.scratch.folder);
	scratch_open(&r.scratch);
	accept(&r, m, &before);
	compare(&r, m);
	resize(&r, m, m->rows + 6);
	compare(&r, m);
	append(&r, m, 1);
	reopen(&r);
	free(before.data);
	end(&r);
	return failed;
}

START_TEST(rows_of_a_killed_append_are_not_found)
{
	static const struct {
		const char *version, *name;
	} datasets[] = {{"earliest", "plain2"},	     {"earliest", "plain2_gzip"}, {"latest", "plain2"},
			{"latest", "plain1_all"},    {"latest", "both"},	  {"latest", "third_gzip"},
			{"latest", "bounded"},	     {"latest", "bounded_gzip"},  {"latest", "second"},
			{"latest", "early_bounded"}, {"latest", "long_runs"}};

	for (unsigned i = 0; i < sizeof datasets / sizeof *datasets; i++)
		for (unsigned long n = 1; killed_at(datasets[i].version, datasets[i].name, n); n++)
			;
}
END_TEST

/* libhdf5 doesn't find any of it either. */
START_TEST(a_failed_append_leaves_nothing_behind)
{
	unsigned failed = 0;

	static const char *const names[] = {"long_runs", "large"};

	for (unsigned long n = 1; n < 5; n++) {
		struct run r;

		begin(&r, "latest", n);
		for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
			struct model *m = find(&r, names[i]);

			writer_of(&r, m);
			fault_io_arm(&r.fault, n);
			r.fault.error = -ENOSPC;
			failed += change(&r, m, APPEND_MANY) != 0;
			fault_io_disarm(&r.fault);
		}
		commit(&r);
		close_file(&r);
		judge(&r);
		end(&r);
	}
	ck_assert_uint_ge(failed, 4);
}
END_TEST

/* ---- kills ---- */

static void write_state(const struct run *r, const struct model *m, unsigned state)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/state-%u", r->scratch.folder, state);
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(m->data, 1, m->size, f), m->size);
	fclose(f);
}

static void write_events(const struct run *r)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/events", r->scratch.folder);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < r->fault.count; i++) {
		const struct fault_event *e = &r->fault.events[i];

		if (e->kind == FAULT_MARK)
			fprintf(f, "mark %ju\n", (uintmax_t)e->offset);
		else if (e->kind == FAULT_RESIZE && !e->file)
			fprintf(f, "resize %ju\n", (uintmax_t)e->offset);
		if (e->kind != FAULT_WRITE || e->file)
			continue;
		fprintf(f, "write %ju ", (uintmax_t)e->offset);
		for (size_t j = 0; j < e->size; j++)
			fprintf(f, "%02x", e->data[j]);
		fputc('\n', f);
	}
	fclose(f);
}

/* A row, a few, many; new rows of the fill value; fewer rows, to the edge of a chunk or not: a commit each.
 * Killed between any two writes, the file has the rows from before or those from after. */
static void kill_between(const char *name)
{
	static const int steps[] = {1, 1, 1, 1, 5, -1, -2, 9, -4, 3, -8, 100, 106, -5, 2, 7, -1, 1};
	struct run r;
	struct model *m;

	begin(&r, "edges", 1);
	m = find(&r, name);
	write_state(&r, m, 0);
	r.fault.record = true;
	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		int step = steps[i];

		fault_io_mark(&r.fault, 2 * (i + 1));
		if (step >= 100)
			resize(&r, m, m->rows + (unsigned)step - 100 + 2);
		else if (step > 0)
			append(&r, m, (unsigned)step);
		else
			resize(&r, m, m->rows - (unsigned)-step);
		write_state(&r, m, i + 1);
		commit(&r);
		fault_io_mark(&r.fault, 2 * (i + 1) + 1);
	}
	r.fault.record = false;
	close_file(&r);
	write_events(&r);
	scratch_python("tests/dataset_write_cuts.py %s %s %zu %s", r.scratch.original, name, m->element,
		       r.scratch.folder);
	fault_io_release(&r.fault);
	end(&r);
}

START_TEST(kills_find_edge_chunks_as_they_are_stored)
{
	static const char *const names[] = {"edges", "edges_even", "edges_both", "edges_bounded", "edges1"};

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		kill_between(names[i]);
}
END_TEST

static int open_rc(struct run *r, const char *name, bool external)
{
	struct h5_dataset_writer *writer = NULL;
	struct h5_file *file;
	uint64_t address;
	int rc = h5_path_find(r->scratch.file, h5_file_superblock(r->scratch.file)->root, name, strlen(name),
			      &file, &address);

	ck_assert_msg(!rc, "%s: %s", name, h5_error_last()->text);
	rc = h5_dataset_writer_open(file, address, external, &writer);
	if (!rc)
		rc = h5_dataset_writer_write(writer, 0, "abcd", 4);
	h5_dataset_writer_close(writer);
	return rc;
}

START_TEST(what_is_no_bytes_is_refused)
{
	struct run r;

	begin(&r, "latest", 1);
	ck_assert_int_eq(open_rc(&r, "text", true), -EPERM);
	ck_assert_int_eq(open_rc(&r, "virtual", true), -EPERM);
	ck_assert_int_eq(open_rc(&r, "external", false), -EPERM);
	ck_assert_int_eq(open_rc(&r, "external", true), 0);
	ck_assert_int_eq(open_rc(&r, "itself", true), -EPERM);
	ck_assert_int_eq(open_rc(&r, "gone", true), -ENOENT);
	ck_assert_int_eq(open_rc(&r, "matrix", false), 0);
	end(&r);
}
END_TEST

START_TEST(what_cannot_change_its_size_is_told)
{
	struct run r;
	struct model *m;

	begin(&r, "latest", 1);
	m = find(&r, "matrix");
	ck_assert_int_eq(h5_dataset_writer_resize(writer_of(&r, m), 7), 0);
	ck_assert_int_eq(h5_dataset_writer_resize(m->writer, 6), -EPERM);
	ck_assert_int_eq(h5_dataset_writer_append(m->writer, m->data, m->row), -EFBIG);
	ck_assert_int_eq(h5_dataset_writer_write(m->writer, m->size, m->data, 1), -EINVAL);
	ck_assert_uint_eq(h5_dataset_writer_max_rows(m->writer), 7);
	m = find(&r, "scalar");
	ck_assert_int_eq(h5_dataset_writer_append(writer_of(&r, m), m->data, 8), -EINVAL);
	ck_assert_int_eq(h5_dataset_writer_resize(m->writer, 1), -EPERM);
	m = find(&r, "bounded");
	ck_assert_uint_eq(h5_dataset_writer_max_rows(writer_of(&r, m)), 40);
	ck_assert_int_eq(h5_dataset_writer_append(m->writer, m->data, m->row - 1), -EINVAL);
	compare_all(&r);
	end(&r);
}
END_TEST

/* More than may be held in memory, row by row. */
START_TEST(long_appends_are_held_in_bounds)
{
	enum { HELD_MOST = 80 << 20, ROWS = 1 << 12 };
	struct run r;
	struct model *m;
	uint8_t *data;

	begin(&r, "latest", 1);
	m = find(&r, "large_gzip");
	free(m->data);
	m->data = data = malloc(120 << 20);
	memset(data, 7, m->row * ROWS);
	h5_dataset_writer_close(m->writer);
	m->writer = NULL;
	ck_assert_int_eq(h5_dataset_writer_resize((m->size = 7 * m->row, writer_of(&r, m)), 0), 0);
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
	reopen(&r);
	end(&r);
}
END_TEST

/* Whole chunks of one append go to the file from where they are, side by side: with one write. */
START_TEST(whole_chunks_take_one_write)
{
	enum { CHUNK = 5, CHUNKS = 100 };
	uint8_t data[4 * CHUNK * CHUNKS];
	unsigned writes = 0;
	struct model *m;
	struct run r;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7);
	begin(&r, "latest", 1);
	m = find(&r, "plain1");
	append_rows(&r, m, data, CHUNK - m->rows % CHUNK);
	r.fault.record = true;
	append_rows(&r, m, data, CHUNK * CHUNKS);
	r.fault.record = false;
	for (size_t i = 0; i < r.fault.count; i++)
		if (r.fault.events[i].kind == FAULT_WRITE) {
			ck_assert_uint_eq(r.fault.events[i].size, sizeof data);
			writes++;
		}
	ck_assert_uint_eq(writes, 1);
	compare(&r, m);
	reopen(&r);
	fault_io_release(&r.fault);
	end(&r);
}
END_TEST

/* What the file holds does not tell how many processors have encoded it. */
START_TEST(workers_make_the_same_file)
{
	static const char *const names[] = {"plain1_gzip", "plain2_all", "both_gzip", "long_runs_all"};
	struct run runs[2];

	for (unsigned k = 0; k < 2; k++) {
		struct run *r = &runs[k];

		begin(r, "latest", 1);
		close_file(r);
		r->scratch.options.workers = k ? 4 : 0;
		scratch_open(&r->scratch);
		for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
			struct model *m = find(r, names[i]);
			size_t rows = h5_min(150, (DATA_MAX - m->size) / m->row);
			uint8_t *data = malloc(rows * m->row);

			for (size_t j = 0; j < rows * m->row; j++)
				data[j] = (uint8_t)(j * j >> 5);
			append_rows(r, m, data, rows);
			free(data);
		}
		ck_assert_int_eq(h5_tx_commit(r->scratch.file), 0);
		close_file(r);
	}
	scratch_run("cmp %s %s", runs[0].scratch.path, runs[1].scratch.path);
	for (unsigned k = 0; k < 2; k++)
		end(&runs[k]);
}
END_TEST

UNIT_MAIN("dataset_write", whole_chunks_take_one_write, workers_make_the_same_file,
	  what_is_no_bytes_is_refused, what_cannot_change_its_size_is_told, long_appends_are_held_in_bounds,
	  a_failed_change_leaves_the_rows_as_they_were, rows_of_a_killed_append_are_not_found,
	  a_failed_append_leaves_nothing_behind, kills_find_edge_chunks_as_they_are_stored,
	  random_changes_of_old_files, random_changes_of_v108_files, random_changes_of_new_files)

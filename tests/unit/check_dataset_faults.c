/* Calls that fail while datasets change, and kills between them: rows are there as before or as after. */
#include "base/error.h"
#include "change/transaction.h"
#include "dataset_model.h"
#include "fault_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum change { APPEND, APPEND_MANY, GROW, SHRINK, SHRINK_TO_CHUNK, OVERWRITE, CHANGES };

static uint64_t shrunk_rows(const struct model *m, enum change what)
{
	return what == SHRINK ? m->rows - 3 : what == SHRINK_TO_CHUNK ? m->rows / 4 * 4 : m->rows;
}

/* The change, of which some call may fail. The model is as it should be, whatever became of it. */
static int change(struct model_run *r, struct model *m, enum change what)
{
	const uint64_t added[] = {[APPEND] = 3, [APPEND_MANY] = 11, [GROW] = 7};
	uint64_t rows = shrunk_rows(m, what);
	size_t n = what == OVERWRITE ? m->size : what <= APPEND_MANY ? (size_t)(added[what] * m->row) : 0;
	uint8_t *data = malloc(n + 1);
	int rc;

	model_fill(r, data, n);
	if (what == OVERWRITE) {
		rc = h5_dataset_writer_write(m->writer, 0, data, m->size);
		if (!rc)
			memcpy(m->data, data, m->size);
	} else if (what >= SHRINK) {
		rc = h5_dataset_writer_resize(m->writer, rows);
		if (!rc)
			model_set_rows(m, rows);
	} else {
		size_t before = m->size;

		rows = m->rows + added[what];
		rc = what == GROW ? h5_dataset_writer_resize(m->writer, rows)
				  : h5_dataset_writer_append(m->writer, data, n);
		if (!rc)
			model_set_rows(m, rows);
		if (!rc && what != GROW)
			memcpy(m->data + before, data, m->size - before);
	}
	free(data);
	return rc;
}

static struct model copy_model(const struct model *m)
{
	struct model copy = *m;

	copy.data = memcpy(malloc(m->size + 1), m->data, m->size);
	return copy;
}

/* After a failed commit the file has the rows of the one before, or those of that one. */
static void accept(struct model_run *r, struct model *m, const struct model *other)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(r->scratch.file, m->address, &ref, &dataset);

	ck_assert_msg(!rc, "%s: %d %s", m->name, rc, h5_error_last()->text);
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
	struct model_run r;
	struct model *m, original, before, shrunk;
	bool failed, given_up;
	int rc;

	model_begin(&r, version, what);
	m = model_find(&r, name);
	original = copy_model(m);
	/* Something of this transaction is there already. */
	model_append(&r, m, 2);
	before = copy_model(m);
	shrunk = copy_model(m);
	model_set_rows(&shrunk, shrunk_rows(m, what));
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
		model_compare(&r, m);
		/* What was left behind must not be found. */
		ck_assert_int_eq(h5_dataset_writer_resize(m->writer, m->rows + 8), 0);
		model_set_rows(m, m->rows + 8);
		model_compare(&r, m);
		model_commit(&r);
	}
	model_close(&r);
	scratch_open(&r.scratch);
	if (given_up) {
		accept(&r, m, &original);
		accept(&r, m, &before);
		accept(&r, m, &shrunk);
	}
	if (!given_up || what != OVERWRITE)
		model_compare(&r, m);
	free(original.data);
	free(before.data);
	free(shrunk.data);
	model_end(&r);
	return failed;
}

START_TEST(a_failed_change_leaves_the_rows_as_they_were)
{
	static const struct {
		const char *version, *name;
	} datasets[] = {
		{"earliest", "plain2"},	  {"earliest", "plain2_gzip"}, {"latest", "plain2"},
		{"latest", "plain2_all"}, {"latest", "both_gzip"},     {"latest", "edges"},
		{"latest", "edges1"},	  {"latest", "early_bounded"}, {"latest", "holes_bounded"},
		{"latest", "second"},	  {"latest", "large"},	       {"earliest", "early_unlimited"},
		{"latest", "early_gzip"}};

	const unsigned long step = fault_step();

	for (unsigned i = 0; i < sizeof datasets / sizeof *datasets; i++)
		for (unsigned what = 0; what < CHANGES; what++)
			for (unsigned long n = 1 + (i + what) % step;
			     fail_at(datasets[i].version, datasets[i].name, what, n); n += step)
				;
}
END_TEST

/* The commit of an append is cut short before its n-th call, and the journal is lost: when the dataset grows
 * again, what the append has left in chunks and index is not found. False: there are not so many calls. */
static bool killed_at(const char *version, const char *name, unsigned long n)
{
	struct model *m, before;
	struct model_run r;
	char journal[192];
	bool failed;

	model_begin(&r, version, n);
	m = model_find(&r, name);
	model_writer(&r, m);
	model_append(&r, m, 1);
	model_commit(&r);
	before = copy_model(m);
	ck_assert_int_eq(change(&r, m, APPEND_MANY), 0);
	ck_assert_int_eq(h5_dataset_writer_settle(m->writer), 0);
	fault_io_arm(&r.fault, n);
	r.fault.lasting = true;
	r.fault.error = -EIO;
	r.fault.torn_at = 4096;
	failed = h5_tx_commit(r.scratch.file) != 0;
	model_close(&r);
	fault_io_disarm(&r.fault);
	snprintf(journal, sizeof journal, "%s.h5fs-journal", r.scratch.path);
	ck_assert(!unlink(journal) || errno == ENOENT);
	scratch_open(&r.scratch);
	accept(&r, m, &before);
	model_compare(&r, m);
	model_resize(&r, m, m->rows + 6);
	model_compare(&r, m);
	model_append(&r, m, 1);
	model_reopen(&r);
	free(before.data);
	model_end(&r);
	return failed;
}

START_TEST(rows_of_a_killed_append_are_not_found)
{
	static const struct {
		const char *version, *name;
	} datasets[] = {{"earliest", "plain2"},
			{"earliest", "plain2_gzip"},
			{"latest", "plain2"},
			{"latest", "plain1_all"},
			{"latest", "both"},
			{"latest", "third_gzip"},
			{"latest", "bounded"},
			{"latest", "bounded_gzip"},
			{"latest", "second"},
			{"latest", "early_bounded"},
			{"earliest", "early_unlimited"},
			{"latest", "long_runs"}};

	const unsigned long step = fault_step();

	/* Without its journal, part of the commit may stand in the index. */
	scratch_keep_no_accounts();
	for (unsigned i = 0; i < sizeof datasets / sizeof *datasets; i++)
		for (unsigned long n = 1 + i % step; killed_at(datasets[i].version, datasets[i].name, n);
		     n += step)
			;
}
END_TEST

/* libhdf5 doesn't find any of it either. */
START_TEST(a_failed_append_leaves_nothing_behind)
{
	unsigned failed = 0;

	static const char *const names[] = {"long_runs", "large"};

	for (unsigned long n = 1; n < 5; n++) {
		struct model_run r;

		model_begin(&r, "latest", n);
		for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
			struct model *m = model_find(&r, names[i]);

			model_writer(&r, m);
			fault_io_arm(&r.fault, n);
			r.fault.error = -ENOSPC;
			failed += change(&r, m, APPEND_MANY) != 0;
			fault_io_disarm(&r.fault);
		}
		model_commit(&r);
		model_close(&r);
		model_judge(&r);
		model_end(&r);
	}
	ck_assert_uint_ge(failed, 4);
}
END_TEST

/* ---- kills ---- */

static void write_state(const struct model_run *r, const struct model *m, unsigned state)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/state-%u", r->scratch.folder, state);
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(m->data, 1, m->size, f), m->size);
	fclose(f);
}

static void write_events(const struct model_run *r)
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
	struct model_run r;
	struct model *m;

	model_begin(&r, "edges", 1);
	m = model_find(&r, name);
	write_state(&r, m, 0);
	r.fault.record = true;
	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		int step = steps[i];

		fault_io_mark(&r.fault, 2 * (i + 1));
		if (step >= 100)
			model_resize(&r, m, m->rows + (unsigned)step - 100 + 2);
		else if (step > 0)
			model_append(&r, m, (unsigned)step);
		else
			model_resize(&r, m, m->rows - (unsigned)-step);
		write_state(&r, m, i + 1);
		model_commit(&r);
		fault_io_mark(&r.fault, 2 * (i + 1) + 1);
	}
	r.fault.record = false;
	model_close(&r);
	write_events(&r);
	scratch_judge_python("tests/judge/dataset_write_cuts.py %s %s %zu %s", r.scratch.original, name,
			     m->element, r.scratch.folder);
	fault_io_release(&r.fault);
	model_end(&r);
}

START_TEST(kills_find_edge_chunks_as_they_are_stored)
{
	static const char *const names[] = {"edges", "edges_even", "edges_both", "edges_bounded", "edges1"};

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		kill_between(names[i]);
}
END_TEST

UNIT_MAIN_AROUND("dataset_faults", scratch_keep_accounts, NULL, a_failed_change_leaves_the_rows_as_they_were,
		 rows_of_a_killed_append_are_not_found, a_failed_append_leaves_nothing_behind,
		 kills_find_edge_chunks_as_they_are_stored)

/* Each call to read, write, resize, sync or allocate fails once, wherever it stands: the error is the right
 * one, what was asked for can be asked for again, and the file is as at the last commit or as at the one that
 * was under way. */
#include "base/error.h"
#include "change/open.h"
#include "change/transaction.h"
#include "dataset/writer.h"
#include "fault_alloc.h"
#include "fault_step.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

/* ---- datasets and what they hold ---- */

enum { DATASETS = 8, ROW = 12, ROWS_MAX = 64 };

struct content {
	size_t rows;
	uint8_t bytes[ROWS_MAX * ROW];
};

struct dataset {
	char name[8];
	uint64_t address;
	bool grows;
	struct h5_dataset_writer *writer;
	struct content now, committed, under_way;
};

struct run {
	struct scratch scratch;
	unsigned count;
	struct dataset datasets[DATASETS];
	struct fault_io fault;
	int error;	 /* that the failing call gives */
	unsigned failed; /* operations that have */
	bool given_up;	 /* the file takes no more changes */
	bool sparse;	 /* structured chunks, which libhdf5 does not read */
};

/* Allocations of the engine's call that is under way may fail, not the test's own. */
static void begin(void)
{
	fault_alloc_count(true);
}

static int end(int rc)
{
	fault_alloc_count(false);
	return rc;
}

/* Copies the file and what is in it. */
static void run_init(struct run *run, const char *name)
{
	const bool sparse = strstr(name, "sparse");
	char list[512], file[64];
	unsigned long long address;
	struct dataset d = {0};
	int grows;
	FILE *f;

	memset(run, 0, sizeof *run);
	run->sparse = sparse;
	scratch_init(&run->scratch, name);
	scratch_fixture(sparse ? "write_faults_sparse.list" : "write_faults.list", list);
	f = fopen(list, "r");
	ck_assert_ptr_nonnull(f);
	while (fscanf(f, "%63s %7s %llu %zu %d", file, d.name, &address, &d.now.rows, &grows) == 5) {
		d.address = address;
		d.grows = grows;
		memset(d.now.bytes, 0, sizeof d.now.bytes);
		for (size_t i = 0; grows && i < d.now.rows * ROW / 2; i++)
			d.now.bytes[2 * i] = (uint8_t)i;
		d.committed = d.under_way = d.now;
		if (!strcmp(file, name))
			run->datasets[run->count++] = d;
	}
	fclose(f);
	ck_assert_uint_gt(run->count, 0);
}

static void run_release(struct run *run)
{
	fault_io_release(&run->fault);
	scratch_release(&run->scratch);
}

/* ---- operations: each may fail once, and is then asked for again ---- */

typedef int operation(struct run *run, struct dataset *d, size_t n);

static int do_open(struct run *run, struct dataset *d, size_t n)
{
	(void)d;
	(void)n;
	return h5_open_file(run->scratch.path, &run->scratch.options, &run->scratch.set, NULL);
}

static int do_writer(struct run *run, struct dataset *d, size_t n)
{
	(void)n;
	return h5_dataset_writer_get(run->scratch.file, d->address, false, &d->writer);
}

static int do_append(struct run *run, struct dataset *d, size_t n)
{
	(void)run;
	return h5_dataset_writer_append(d->writer, d->now.bytes + (d->now.rows - n) * ROW, n * ROW);
}

static int do_write(struct run *run, struct dataset *d, size_t n)
{
	(void)run;
	return h5_dataset_writer_write(d->writer, n, d->now.bytes + n, ROW + 5);
}

static int do_punch(struct run *run, struct dataset *d, size_t n)
{
	(void)run;
	return h5_dataset_writer_punch(d->writer, n, 2 * ROW);
}

static int do_resize(struct run *run, struct dataset *d, size_t n)
{
	(void)run;
	return h5_dataset_writer_resize(d->writer, n);
}

static int do_commit(struct run *run, struct dataset *d, size_t n)
{
	int rc = 0;

	(void)d;
	(void)n;
	for (unsigned i = 0; i < run->count && !rc; i++)
		rc = h5_dataset_writer_settle(run->datasets[i].writer);
	return rc ? rc : h5_tx_commit(run->scratch.file);
}

/* Until it succeeds, or the file takes no more changes. */
static void perform(struct run *run, operation *op, struct dataset *d, size_t n)
{
	int rc;

	if (run->given_up)
		return;
	begin();
	rc = end(op(run, d, n));
	if (!rc)
		return;
	run->failed++;
	/* The clean-up after shrinking fails in silence, but not what comes next. */
	if (rc == -EROFS && run->fault.calls >= run->fault.fail && !h5_tx_is_writable(run->scratch.file)) {
		run->given_up = true;
		return;
	}
	ck_assert_msg(rc == run->error, "%d %s", rc, h5_error_last()->text);
	if (op != do_open && !h5_tx_is_writable(run->scratch.file)) {
		run->given_up = true;
		return;
	}
	begin();
	rc = end(op(run, d, n));
	ck_assert_msg(!rc, "once more: %d %s", rc, h5_error_last()->text);
}

static void append(struct run *run, struct dataset *d, size_t n)
{
	for (size_t i = 0; i < n * ROW; i++)
		d->now.bytes[d->now.rows * ROW + i] = (uint8_t)(i * 31 + d->now.rows);
	d->now.rows += n;
	perform(run, do_append, d, n);
}

static void overwrite(struct run *run, struct dataset *d, size_t offset)
{
	for (size_t i = 0; i < ROW + 5; i++)
		d->now.bytes[offset + i] = (uint8_t)(offset + i * 3);
	perform(run, do_write, d, offset);
}

static void punch(struct run *run, struct dataset *d, size_t offset)
{
	memset(d->now.bytes + offset, 0, 2 * ROW);
	perform(run, do_punch, d, offset);
}

static void shrink(struct run *run, struct dataset *d, size_t rows)
{
	/* It commits what was before, and itself. */
	for (unsigned i = 0; i < run->count && !run->given_up; i++)
		run->datasets[i].under_way = run->datasets[i].now;
	d->now.rows = rows;
	memset(d->now.bytes + rows * ROW, 0, sizeof d->now.bytes - rows * ROW);
	perform(run, do_resize, d, rows);
	for (unsigned i = 0; i < run->count && !run->given_up; i++)
		run->datasets[i].committed = run->datasets[i].under_way = run->datasets[i].now;
}

static void commit(struct run *run)
{
	for (unsigned i = 0; i < run->count && !run->given_up; i++)
		run->datasets[i].under_way = run->datasets[i].now;
	perform(run, do_commit, NULL, 0);
	for (unsigned i = 0; i < run->count && !run->given_up; i++)
		run->datasets[i].committed = run->datasets[i].now;
}

static void open_all(struct run *run)
{
	perform(run, do_open, NULL, 0);
	run->scratch.file = h5_file_set_root(run->scratch.set);
	for (unsigned i = 0; i < run->count; i++)
		perform(run, do_writer, &run->datasets[i], 0);
}

static void close_all(struct run *run)
{
	for (unsigned i = 0; i < run->count; i++)
		h5_dataset_writer_close(run->datasets[i].writer);
	begin();
	scratch_close(&run->scratch);
	end(0);
}

/* Elements that were committed may be overwritten in part: rows before `whole` are not compared. */
static bool holds(const struct content *content, const uint8_t *bytes, uint64_t size)
{
	return size == content->rows * ROW && !memcmp(bytes, content->bytes, (size_t)size);
}

static bool is_mixture(const struct dataset *d, const uint8_t *bytes, uint64_t size)
{
	/* A dataset that shrinks commits what was before, then itself. */
	if (size != d->committed.rows * ROW && size != d->under_way.rows * ROW && size != d->now.rows * ROW)
		return false;
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != d->committed.bytes[i] && bytes[i] != d->under_way.bytes[i] &&
		    bytes[i] != d->now.bytes[i])
			return false;
	return true;
}

static void verify(struct run *run)
{
	uint8_t bytes[ROWS_MAX * ROW];
	int rc;

	/* After a failure in the middle of the cells the journal comes first. */
	scratch_wrap(&run->scratch, NULL);
	scratch_open(&run->scratch);
	for (unsigned i = 0; i < run->count; i++) {
		struct dataset *d = &run->datasets[i];
		const struct h5_dataset *dataset;
		struct h5_lru_entry *ref;

		rc = h5_dataset_get(run->scratch.file, d->address, &ref, &dataset);
		ck_assert_msg(!rc, "%s: %s", d->name, h5_error_last()->text);
		ck_assert_uint_le(dataset->size, sizeof bytes);
		rc = h5_dataset_read(dataset, 0, bytes, (size_t)dataset->size);
		ck_assert_msg(!rc, "%s: %s", d->name, h5_error_last()->text);
		if (run->given_up)
			ck_assert_msg(is_mixture(d, bytes, dataset->size), "%s: %ju bytes", d->name,
				      (uintmax_t)dataset->size);
		else
			ck_assert_msg(holds(&d->now, bytes, dataset->size), "%s: %ju bytes", d->name,
				      (uintmax_t)dataset->size);
		h5_file_put(run->scratch.file, ref);
	}
	scratch_close(&run->scratch);
}

static void judge(const struct run *run)
{
	if (run->sparse)
		scratch_own_judge_python("tests/lib/sparse_walker.py %s", run->scratch.path);
	else
		scratch_judge("h5dump %s >/dev/null", run->scratch.path);
}

/* The test's own memory does not run short. */
static struct h5_io *wrap(void *arg, struct h5_io *io)
{
	bool was = fault_alloc_count(false);

	io = fault_io_wrap(arg, io);
	fault_alloc_count(was);
	return io;
}

static void work(struct run *run)
{
	run->scratch.options.wrap = wrap;
	run->scratch.options.wrap_arg = &run->fault;
	open_all(run);
	for (unsigned i = 0; i < run->count && !run->given_up; i++)
		if (run->datasets[i].grows)
			append(run, &run->datasets[i], 3);
	commit(run);
	for (unsigned i = 0; i < run->count && !run->given_up; i++) {
		overwrite(run, &run->datasets[i], ROW + 3);
		if (run->datasets[i].grows)
			append(run, &run->datasets[i], 2);
	}
	commit(run);
	for (unsigned i = 0; i < run->count && run->sparse && !run->given_up; i++)
		punch(run, &run->datasets[i], ROW);
	for (unsigned i = 0; i < run->count && !run->given_up; i++)
		if (run->datasets[i].grows && i % 2 == 0)
			shrink(run, &run->datasets[i], 4);
	for (unsigned i = 0; i < run->count && !run->given_up; i++)
		if (run->datasets[i].grows)
			append(run, &run->datasets[i], 1);
	commit(run);
	close_all(run);
}

static const char *const files[] = {"write_faults.h5",	       "write_faults_old.h5",
				    "write_faults_sparse.h5",  "write_faults_image.h5",
				    "write_faults_persist.h5", "write_faults_paged.h5"};
enum { FILES = sizeof files / sizeof *files };

/* One in fault_step() of the calls of a kind fails, in each file others, until there are no more. libhdf5
 * judges the first file that a failure leaves, and then one in `judged`. */
static void fail_calls(unsigned which, int error, bool reads, unsigned judged)
{
	const unsigned long step = fault_step();
	unsigned runs = 0;
	bool fired = true;

	for (unsigned long n = 1 + which % step; fired; n += step) {
		struct run run;

		run_init(&run, files[which]);
		run.error = run.fault.error = error;
		run.fault.reads = reads;
		if (error == -ENOMEM)
			fault_alloc_arm(n);
		else
			fault_io_arm(&run.fault, n);
		work(&run);
		fired = error == -ENOMEM ? fault_alloc_disarm() : fault_io_disarm(&run.fault);
		verify(&run);
		ck_assert(fired || !run.failed);
		if (!fired || runs++ % judged == 0)
			judge(&run);
		run_release(&run);
	}
}

/* Calls to write, resize or sync. */
START_TEST(the_medium_fails)
{
	fail_calls((unsigned)_i, -EIO, false, 4);
}
END_TEST

START_TEST(the_medium_is_full)
{
	fail_calls((unsigned)_i, -ENOSPC, false, 4);
}
END_TEST

START_TEST(the_medium_cannot_be_read)
{
	fail_calls((unsigned)_i, -EIO, true, 32);
}
END_TEST

START_TEST(memory_is_short)
{
	fail_calls((unsigned)_i, -ENOMEM, false, 32);
}
END_TEST

UNIT_MAIN_LOOPS("write faults", {the_medium_fails, FILES}, {the_medium_is_full, FILES},
		{the_medium_cannot_be_read, FILES}, {memory_is_short, FILES})

#include "crash_workloads.h"

#include "base/error.h"
#include "change/open.h"
#include "change/transaction.h"
#include "store/file_set.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct program {
	char letter;
	const char *name;
	void (*run)(struct crash_run *run);
};

/* Which programs run on which file; a capital letter: with readers along. */
static const struct {
	const char *file, *programs;
} workloads[] = {
	{"ea", "rbotmRM"},
	{"ea_blocks", "rbot"},
	{"ea_pages", "rboB"},
	{"ea_deflate", "rbotmBOT"},
	{"ea_deflate_blocks", "rbotp"},
	{"ea_deflate_pages", "rbt"},
	{"ea_fill", "rbotmp"},
	{"bt2_plain", "rbotm"},
	{"bt2_lzf", "rbotmRMp"},
	{"fa", "rbotm"},
	{"fa_deflate", "rbotmMp"},
	{"fa_pages", "rbo"},
	{"single", "o"},
	{"single_deflate", "op"},
	{"implicit", "rbotmp"},
	{"contiguous", "op"},
	{"contiguous_v0", "o"},
	{"compact", "op"},
	{"compact_v0", "o"},
	{"bt1", "rbotm"},
	{"bt1_deflate", "rbotmp"},
	{"bt1_many", "rot"},
	{"bt1_checksum", "rotm"},
	{"multi", "rbtmp"},
	{"multi_v0", "rbtm"},
	{"big", "rbtmB"},
	{"big_v0", "rbtm"},
	{"header_60", "rtm"},
	{"header_120", "rtm"},
	{"header_250", "rtm"},
	{"tiny_150", "o"},
	{"tiny_250", "o"},
	{"eahd", "rm"},
	{"fahd", "rm"},
	{"bthd", "rm"},
	{"image", "rbotmp"},
	{"image_split", "rbotmp"},
	{"persist", "rbotmp"},
	{"persist_user", "rtm"},
	{"persist_paged", "rbotmp"},
	{"paged", "rotm"},
	{"sparse_single", "op"},
	{"sparse_fixed", "rbotmp"},
	{"sparse_extensible", "rotmp"},
	{"sparse_btree", "rotmp"},
};

enum { FILES = sizeof workloads / sizeof *workloads };

uint64_t crash_draw(uint64_t *random, uint64_t below)
{
	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (*random >> 33) % below;
}

static void must(struct crash_run *run, int rc, const char *what)
{
	if (rc)
		CRASH_FAILED("%s: %s: %d, %s", run->name, what, rc,
			     h5_error_last()->code == rc ? h5_error_last()->text : "");
}

static void *allocated(void *p)
{
	if (!p)
		CRASH_FAILED("out of memory");
	return p;
}

/* ---- states ---- */

/* Tells dataset, row, column, and how often it was written; as in tests/fixtures/crash_replay.py. */
static uint32_t value(size_t dataset, size_t row, size_t column, size_t generation)
{
	uint32_t x = (uint32_t)(dataset << 29 | (generation & 31) << 24 | row << 8 | column);

	return row & 4 ? x : x * 2654435761u;
}

size_t crash_elements(const struct crash_dataset *d, size_t rows)
{
	return (rows - d->first) * d->columns;
}

static struct crash_content *last_of(struct crash_dataset *d)
{
	return &d->contents[d->count - 1];
}

/* A new state, in which the dataset has so many rows; those that it had are the same, others are fill values.
 */
static struct crash_content *new_state(struct crash_run *run, struct crash_dataset *d, size_t rows)
{
	const struct crash_content *old = d->count ? last_of(d) : NULL;
	struct crash_content new = {.state = d->count ? ++run->state : 0, .rows = rows};
	size_t n = crash_elements(d, rows), kept = old ? crash_elements(d, old->rows) : 0;

	new.values = allocated(malloc((n + 1) * sizeof *new.values));
	kept = kept < n ? kept : n;
	if (kept)
		memcpy(new.values, old->values, kept * sizeof *new.values);
	for (size_t i = kept; i < n; i++)
		new.values[i] = d->fill;
	d->contents = allocated(realloc(d->contents, (d->count + 1) * sizeof *d->contents));
	d->contents[d->count++] = new;
	return last_of(d);
}

/* ---- changes ---- */

static struct crash_dataset *any(struct crash_run *run)
{
	return &run->datasets[crash_draw(&run->random, run->count)];
}

static uint64_t room(struct crash_dataset *d, uint64_t most)
{
	uint64_t left = h5_dataset_writer_max_rows(d->writer) - last_of(d)->rows;

	return left < most ? left : most;
}

/* n elements of the last state from `begin` on. */
static void fill_in(struct crash_run *run, struct crash_dataset *d, size_t begin, size_t n, size_t generation)
{
	uint32_t *values = last_of(d)->values;

	for (size_t i = begin; i < begin + n; i++)
		values[i] = value((size_t)(d - run->datasets), d->first + i / d->columns, i % d->columns,
				  generation);
}

static void append(struct crash_run *run, struct crash_dataset *d, size_t n)
{
	size_t begin = last_of(d)->rows;
	struct crash_content *c;

	if (n > room(d, n))
		n = (size_t)room(d, n);
	if (!n)
		return;
	c = new_state(run, d, begin + n);
	begin = crash_elements(d, begin);
	fill_in(run, d, begin, n * d->columns, 0);
	must(run, h5_dataset_writer_append(d->writer, c->values + begin, n * d->columns * sizeof *c->values),
	     "append");
}

static void overwrite(struct crash_run *run, struct crash_dataset *d, size_t most)
{
	struct crash_content *c = last_of(d);
	size_t elements = crash_elements(d, c->rows), begin, n;

	if (!elements)
		return;
	c = new_state(run, d, c->rows);
	c->overwritten = true;
	begin = (size_t)crash_draw(&run->random, elements);
	n = 1 + (size_t)crash_draw(&run->random, elements - begin < most ? elements - begin : most);
	fill_in(run, d, begin, n, c->state);
	must(run,
	     h5_dataset_writer_write(d->writer, (d->first * d->columns + begin) * sizeof *c->values,
				     c->values + begin, n * sizeof *c->values),
	     "write");
}

static void punch(struct crash_run *run, struct crash_dataset *d)
{
	struct crash_content *c = last_of(d);
	size_t elements = crash_elements(d, c->rows), begin, n;

	if (!elements)
		return;
	c = new_state(run, d, c->rows);
	c->overwritten = true;
	begin = (size_t)crash_draw(&run->random, elements);
	n = 1 + (size_t)crash_draw(&run->random, elements - begin);
	for (size_t i = begin; i < begin + n; i++)
		c->values[i] = d->fill;
	must(run,
	     h5_dataset_writer_punch(d->writer, (d->first * d->columns + begin) * sizeof *c->values,
				     n * sizeof *c->values),
	     "punch");
}

static void resize(struct crash_run *run, struct crash_dataset *d, size_t rows)
{
	if (rows == last_of(d)->rows || rows > last_of(d)->rows + room(d, SIZE_MAX))
		return;
	new_state(run, d, rows);
	must(run, h5_dataset_writer_resize(d->writer, rows), "resize");
}

static void commit(struct crash_run *run)
{
	for (unsigned i = 0; i < run->count; i++)
		must(run, h5_dataset_writer_settle(run->datasets[i].writer), "settle");
	must(run, h5_tx_commit(run->file), "commit");
	fault_io_mark(&run->fault, run->state);
	if (run->look)
		run->look(run);
}

/* Now and then unused space goes back to the file system. */
static void commit_and_give_back(struct crash_run *run)
{
	commit(run);
	if (!crash_draw(&run->random, 3))
		must(run, h5_tx_give_back(run->file, 1), "giving back");
}

/* ---- programs ---- */

static void rows(struct crash_run *run)
{
	for (int i = 0; i < 24; i++) {
		for (unsigned d = 0; d < run->count; d++)
			append(run, &run->datasets[d], 1);
		commit(run);
	}
}

static void blocks(struct crash_run *run)
{
	for (int i = 0; i < 16; i++) {
		append(run, any(run), 1 + (size_t)crash_draw(&run->random, 12));
		if (crash_draw(&run->random, 2))
			commit(run);
	}
	commit(run);
}

static void overwrites(struct crash_run *run)
{
	for (int i = 0; i < 16; i++) {
		overwrite(run, any(run), i % 2 ? 10 : 200);
		if (crash_draw(&run->random, 2))
			commit(run);
	}
	commit(run);
}

static size_t fewer_rows(struct crash_run *run, const struct crash_dataset *d)
{
	size_t rows = d->contents[d->count - 1].rows;

	return rows - (size_t)crash_draw(&run->random, rows - d->first + 1);
}

static void truncations(struct crash_run *run)
{
	for (int i = 0; i < 8; i++) {
		struct crash_dataset *d = any(run);

		append(run, d, 1 + (size_t)crash_draw(&run->random, 9));
		if (crash_draw(&run->random, 2))
			commit_and_give_back(run);
		resize(run, d, fewer_rows(run, d));
		if (crash_draw(&run->random, 2))
			commit_and_give_back(run);
		resize(run, d, last_of(d)->rows + (size_t)crash_draw(&run->random, room(d, 8) + 1));
		commit_and_give_back(run);
	}
}

static void mixture(struct crash_run *run)
{
	for (int i = 0; i < 40; i++) {
		struct crash_dataset *d = any(run);

		switch (crash_draw(&run->random, 6)) {
		case 0:
			overwrite(run, d, 60);
			break;
		case 1:
			resize(run, d, fewer_rows(run, d));
			break;
		case 2:
			resize(run, d, last_of(d)->rows + (size_t)crash_draw(&run->random, room(d, 6) + 1));
			break;
		default:
			append(run, d, 1 + (size_t)crash_draw(&run->random, 5));
		}
		if (crash_draw(&run->random, 3) == 0)
			commit_and_give_back(run);
	}
	commit_and_give_back(run);
}

static void punches(struct crash_run *run)
{
	for (int i = 0; i < 16; i++) {
		if (i % 2)
			overwrite(run, any(run), 60);
		else
			punch(run, any(run));
		if (crash_draw(&run->random, 2))
			commit_and_give_back(run);
	}
	commit(run);
}

static const struct program programs[] = {{'r', "rows", rows},
					  {'b', "blocks", blocks},
					  {'o', "overwrites", overwrites},
					  {'t', "truncations", truncations},
					  {'m', "mixture", mixture},
					  {'p', "punches", punches}};

/* ---- a run ---- */

static uint8_t *load(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;

	if (!f)
		CRASH_FAILED("%s is missing", path);
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	data = allocated(malloc(*size + 1));
	if (fread(data, 1, *size, f) != *size)
		CRASH_FAILED("%s cannot be read", path);
	fclose(f);
	return data;
}

/* One line of the list, where it is about the file. */
static void add_dataset(struct crash_run *run, const char *file, const char *line)
{
	struct crash_dataset *d = &run->datasets[run->count];
	char name[64], path[512];
	unsigned long long address;
	uint8_t *data;
	size_t size, rows;

	if (run->count == CRASH_DATASETS_MAX ||
	    sscanf(line, "%63s %15s %llu %u %u %zu %zu", name, d->name, &address, &d->columns, &d->fill,
		   &d->first, &rows) != 7)
		CRASH_FAILED("%s: what is that?", line);
	if (strcmp(name, file) != 0)
		return;
	d->address = address;
	snprintf(path, sizeof path, "%s/%s.%s.bin", getenv("H5FS_TEST_DATA"), file, d->name);
	data = load(path, &size);
	if (size != crash_elements(d, rows) * 4)
		CRASH_FAILED("%s: %zu bytes", path, size);
	memcpy(new_state(run, d, rows)->values, data, size);
	free(data);
	run->count++;
}

static void add_datasets(struct crash_run *run, const char *file)
{
	char line[256];
	FILE *list;

	snprintf(line, sizeof line, "%s/crash_%s.list", getenv("H5FS_TEST_DATA"),
		 run->is_ours ? "sparse" : "replay");
	list = fopen(line, "r");
	if (!list)
		CRASH_FAILED("%s is missing", line);
	while (fgets(line, sizeof line, list))
		add_dataset(run, file, line);
	fclose(list);
	if (!run->count)
		CRASH_FAILED("%s is not in the list", file);
}

static void record(struct crash_run *run, const struct program *program)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20,
						    .chunk_cache = 1 << 20,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = true,
						    .swmr = run->swmr,
						    .wrap = fault_io_wrap,
						    .wrap_arg = &run->fault};
	struct h5_file_set *set;

	run->fault.record = true;
	must(run, h5_open_file(run->path, &options, &set, NULL), "opening it");
	run->file = h5_file_set_root(set);
	for (unsigned i = 0; i < run->count; i++)
		must(run,
		     h5_dataset_writer_get(run->file, run->datasets[i].address, false,
					   &run->datasets[i].writer),
		     run->datasets[i].name);
	if (run->look)
		run->look(run);
	program->run(run);
	for (unsigned i = 0; i < run->count; i++)
		h5_dataset_writer_close(run->datasets[i].writer);
	h5_file_set_close(set);
	run->file = NULL;
}

unsigned crash_workload_count(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < FILES; i++)
		count += (unsigned)strlen(workloads[i].programs);
	return count;
}

void crash_run_init(struct crash_run *run, unsigned i, uint64_t seed, const char *folder,
		    void (*look)(struct crash_run *run))
{
	const struct program *program = programs;
	char file[64], path[512];
	unsigned f = 0;
	FILE *copy;

	memset(run, 0, sizeof *run);
	run->look = look;
	run->random = i + (seed << 32);
	for (; i >= strlen(workloads[f].programs); f++)
		i -= (unsigned)strlen(workloads[f].programs);
	while (program->letter != tolower(workloads[f].programs[i]))
		program++;
	run->swmr = program->letter != workloads[f].programs[i];
	run->is_ours = !strncmp(workloads[f].file, "sparse", 6);
	snprintf(file, sizeof file, "crash_%s", workloads[f].file);
	snprintf(run->name, sizeof run->name, "%s %s%s", workloads[f].file, program->name,
		 run->swmr ? " swmr" : "");
	add_datasets(run, file);
	snprintf(path, sizeof path, "%s/%s.h5", getenv("H5FS_TEST_DATA"), file);
	run->before = load(path, &run->size);
	snprintf(run->path, sizeof run->path, "%s/run.h5", folder);
	copy = fopen(run->path, "wb");
	if (!copy || fwrite(run->before, 1, run->size, copy) != run->size || fclose(copy))
		CRASH_FAILED("%s cannot be written", run->path);
	record(run, program);
	unlink(run->path);
}

void crash_run_release(struct crash_run *run)
{
	for (unsigned i = 0; i < run->count; i++) {
		for (size_t j = 0; j < run->datasets[i].count; j++)
			free(run->datasets[i].contents[j].values);
		free(run->datasets[i].contents);
	}
	fault_io_release(&run->fault);
	free(run->before);
	memset(run, 0, sizeof *run);
}

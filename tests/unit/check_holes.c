/* Holes of datasets against what the fixture has written (tests/fixtures/holes.py). */
#include "base/checked.h"
#include "base/error.h"
#include "change/open.h"
#include "dataset/dataset.h"
#include "store/file_set.h"
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct run {
	uint64_t begin, end;
};

/* A dataset, and the runs of bytes that nothing is stored for. */
struct model {
	char file[64], name[64];
	uint64_t address, size;
	size_t count;
	struct run *runs;
};

static FILE *open_account(void)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/holes.txt", getenv("H5FS_TEST_DATA"));
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	return f;
}

static bool next_model(FILE *text, struct model *m)
{
	if (fscanf(text, "%63s %63s %" SCNu64 " %" SCNu64 " %zu", m->file, m->name, &m->address, &m->size,
		   &m->count) != 5)
		return false;
	m->runs = calloc(m->count + 1, sizeof *m->runs);
	ck_assert_ptr_nonnull(m->runs);
	for (size_t i = 0; i < m->count; i++)
		ck_assert_int_eq(fscanf(text, "%" SCNu64 " %" SCNu64, &m->runs[i].begin, &m->runs[i].end), 2);
	return true;
}

static uint64_t expected_hole(const struct model *m, uint64_t offset)
{
	for (size_t i = 0; i < m->count; i++) {
		uint64_t begin = offset > m->runs[i].begin ? offset : m->runs[i].begin;

		if (m->runs[i].end >= begin && m->runs[i].end - begin >= H5_HOLE_LEAST)
			return begin;
	}
	return m->size;
}

static uint64_t expected_data(const struct model *m, uint64_t offset)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->runs[i].begin <= offset && m->runs[i].end > offset)
			return m->runs[i].end - offset >= H5_HOLE_LEAST ? m->runs[i].end : offset;
	return offset;
}

static uint64_t seek(const struct h5_dataset *dataset, uint64_t offset, bool hole)
{
	uint64_t found;

	if (h5_dataset_seek(dataset, offset, hole, &found))
		ck_abort_msg("%s", h5_error_last()->text);
	return found;
}

static void probe(const struct model *m, const struct h5_dataset *dataset, uint64_t offset)
{
	uint64_t hole, data;

	if (offset >= m->size)
		return;
	hole = seek(dataset, offset, true);
	data = seek(dataset, offset, false);
	if (hole != expected_hole(m, offset) || data != expected_data(m, offset))
		ck_abort_msg("%s %s at %ju: hole %ju, not %ju; data %ju, not %ju", m->file, m->name,
			     (uintmax_t)offset, (uintmax_t)hole, (uintmax_t)expected_hole(m, offset),
			     (uintmax_t)data, (uintmax_t)expected_data(m, offset));
}

/* Around the ends of runs, and anywhere. */
static void probe_all(const struct model *m, const struct h5_dataset *dataset)
{
	static const int64_t near[] = {
		0, 1, -1, H5_HOLE_LEAST, -H5_HOLE_LEAST, 1 - H5_HOLE_LEAST, -1 - H5_HOLE_LEAST};
	uint64_t state = 1;

	for (size_t i = 0; i < m->count; i += 1 + m->count / 30) {
		for (size_t k = 0; k < sizeof near / sizeof *near; k++) {
			probe(m, dataset, m->runs[i].begin + (uint64_t)near[k]);
			probe(m, dataset, m->runs[i].end + (uint64_t)near[k]);
		}
	}
	for (unsigned i = 0; i < 100; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		probe(m, dataset, (state >> 20) % m->size);
	}
	probe(m, dataset, 0);
	probe(m, dataset, m->size - 1);
}

START_TEST(as_it_was_written)
{
	static const struct h5_file_set_options options = {
		.block_cache = 4 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_NONE};
	unsigned seen[H5_INDEX_BTREE2 + 1] = {0}, datasets = 0;
	struct h5_file_set *set = NULL;
	FILE *text = open_account();
	char open[64] = "";
	struct model m;

	while (next_model(text, &m)) {
		const struct h5_dataset *dataset;
		struct h5_lru_entry *ref;

		if (strcmp(open, m.file)) {
			char path[512];

			h5_file_set_close(set);
			snprintf(path, sizeof path, "%s/%s", getenv("H5FS_TEST_DATA"), m.file);
			ck_assert_int_eq(h5_open_file(path, &options, &set, NULL), 0);
			memcpy(open, m.file, sizeof open);
		}
		ck_assert_int_eq(h5_dataset_get(h5_file_set_root(set), m.address, &ref, &dataset), 0);
		ck_assert_uint_eq(dataset->size, m.size);
		probe_all(&m, dataset);
		if (dataset->index)
			seen[dataset->layout.chunked.index]++;
		datasets++;
		h5_file_put(h5_file_set_root(set), ref);
		free(m.runs);
	}
	fclose(text);
	h5_file_set_close(set);
	ck_assert_uint_gt(datasets, 200);
	ck_assert_uint_gt(seen[H5_INDEX_BTREE1], 20);
	ck_assert_uint_gt(seen[H5_INDEX_FIXED_ARRAY], 20);
	ck_assert_uint_gt(seen[H5_INDEX_EXTENSIBLE_ARRAY], 20);
	ck_assert_uint_gt(seen[H5_INDEX_BTREE2], 20);
}
END_TEST

UNIT_MAIN("holes", as_it_was_written)

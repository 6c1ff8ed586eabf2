#include "base/error.h"
#include "base/writer.h"
#include "change/open.h"
#include "chunk_index/chunk_index.h"
#include "dataset/dataset.h"
#include "dataset/whole_chunk.h"
#include "filter/filter.h"
#include "store/file_set.h"
#include "store/pipeline.h"
#include "unit.h"

#include <endian.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

static const struct h5_file_set_options options = {.block_cache = 1 << 20,
						   .chunk_cache = 1 << 20,
						   .external = H5_EXTERNAL_BENEATH,
						   .lock = H5_LOCK_NONE};

/* One line of dataset.list (tests/fixtures/dataset.py), and the bytes of the dataset. */
struct sample {
	char file[64], name[64];
	unsigned long long address, storage;
	uint8_t *data;
	size_t size;
};

static FILE *open_data(const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", getenv("H5FS_TEST_DATA"), name);
	f = fopen(path, "rb");
	ck_assert_msg(f, "%s", path);
	return f;
}

static struct h5_file_set *open_set(const char *name, const struct h5_file_set_options *with)
{
	char path[512];
	struct h5_file_set *set;

	snprintf(path, sizeof path, "%s/%s", getenv("H5FS_TEST_DATA"), name);
	ck_assert_msg(!h5_open_file(path, with, &set, NULL), "%s: %s", path, h5_error_last()->text);
	return set;
}

static bool next_sample(FILE *list, struct sample *s)
{
	enum { SIZE_MOST = 1 << 20 };
	char name[256];
	FILE *f;

	if (fscanf(list, "%63s %63s %llu %llu", s->file, s->name, &s->address, &s->storage) != 4)
		return false;
	snprintf(name, sizeof name, "%s.%s.bin", s->file, s->name);
	f = open_data(name);
	s->data = malloc(SIZE_MOST);
	s->size = fread(s->data, 1, SIZE_MOST, f);
	fclose(f);
	return true;
}

/* The open dataset of the sample, in a set of its own. */
struct opened {
	struct h5_file_set *set;
	struct h5_lru_entry *ref;
	const struct h5_dataset *dataset;
};

static struct opened open_at(const char *file, uint64_t address, const struct h5_file_set_options *with)
{
	struct opened o;
	char name[128];

	snprintf(name, sizeof name, "%s.h5", file);
	o.set = open_set(name, with);
	ck_assert_msg(!h5_dataset_get(h5_file_set_root(o.set), address, &o.ref, &o.dataset), "%s %llu: %s",
		      file, (unsigned long long)address, h5_error_last()->text);
	return o;
}

static void close_opened(struct opened *o)
{
	h5_file_put(h5_file_set_root(o->set), o->ref);
	h5_file_set_close(o->set);
}

/* Finds the sample in the list. */
static struct sample get_sample(const char *file, const char *name)
{
	FILE *list = open_data("dataset.list");
	struct sample s;

	while (next_sample(list, &s)) {
		if (!strcmp(s.file, file) && !strcmp(s.name, name)) {
			fclose(list);
			return s;
		}
		free(s.data);
	}
	ck_abort_msg("no %s in %s", name, file);
}

/* Reads a range into a buffer of just its size and compares. */
static void check_range(const struct h5_dataset *d, const struct sample *s, uint64_t offset, size_t n)
{
	uint8_t *buf = malloc(n ? n : 1);

	memset(buf, 0xa5, n);
	ck_assert_msg(!h5_dataset_read(d, offset, buf, n), "%s %s: %zu bytes at %llu: %s", s->file, s->name,
		      n, (unsigned long long)offset, h5_error_last()->text);
	ck_assert_msg(!memcmp(buf, s->data + offset, n), "%s %s: %zu bytes at %llu", s->file, s->name, n,
		      (unsigned long long)offset);
	free(buf);
}

static void check_all_datasets(const struct h5_file_set_options *with)
{
	FILE *list = open_data("dataset.list");
	struct sample s;
	uint32_t random = 7;
	unsigned n = 0;

	for (; next_sample(list, &s); n++) {
		struct opened o = open_at(s.file, s.address, with);

		ck_assert_msg(o.dataset->size == s.size, "%s %s: %llu bytes", s.file, s.name,
			      (unsigned long long)o.dataset->size);
		check_range(o.dataset, &s, 0, s.size);
		for (int i = 0; i < 300 && s.size; i++) {
			uint64_t offset;

			random = random * 1664525 + 1013904223;
			offset = (random >> 4) % s.size;
			random = random * 1664525 + 1013904223;
			check_range(o.dataset, &s, offset,
				    1 + (random >> 4) % (i % 2 ? 40 : s.size) % (s.size - offset));
		}
		close_opened(&o);
		free(s.data);
	}
	fclose(list);
	ck_assert_uint_ge(n, 100);
}

START_TEST(every_range_of_every_layout)
{
	check_all_datasets(&options);
}
END_TEST

/* Chunks larger than the whole cache. */
START_TEST(caches_of_no_size)
{
	struct h5_file_set_options none = options;

	none.block_cache = none.chunk_cache = 0;
	check_all_datasets(&none);
}
END_TEST

START_TEST(storage_is_what_libhdf5_counts)
{
	FILE *list = open_data("dataset.list");
	struct sample s;

	while (next_sample(list, &s)) {
		struct opened o = open_at(s.file, s.address, &options);
		uint64_t bytes;

		ck_assert_int_eq(h5_dataset_storage(o.dataset, &bytes), 0);
		ck_assert_msg(bytes == s.storage, "%s %s: %llu instead of %llu", s.file, s.name,
			      (unsigned long long)bytes, s.storage);
		close_opened(&o);
		free(s.data);
	}
	fclose(list);
}
END_TEST

static size_t cost_of_filters(const struct h5_pipeline *pipeline)
{
	size_t values = 0;

	for (unsigned i = 0; i < pipeline->count; i++)
		values += pipeline->filters[i].count;
	return values * sizeof(uint32_t);
}

/* What a dataset without an index, whose object header is in the cache, adds to that. */
START_TEST(a_dataset_costs_what_it_holds)
{
	FILE *list = open_data("dataset.list");
	unsigned filled = 0, filtered = 0, compact = 0;
	size_t entry = SIZE_MAX;
	struct sample s;

	while (next_sample(list, &s)) {
		const struct h5_dataset *dataset;
		const struct h5_object *object;
		struct h5_lru_stats before, after;
		struct h5_lru_entry *ref;
		struct h5_file_set *set;
		struct h5_file *file;
		char name[128];
		size_t cost;

		snprintf(name, sizeof name, "%s.h5", s.file);
		set = open_set(name, &options);
		file = h5_file_set_root(set);
		ck_assert_int_eq(h5_object_get(file, s.address, &ref, &object), 0);
		h5_file_put(file, ref);
		h5_lru_stats(h5_file_set_blocks(set), &before);
		ck_assert_int_eq(h5_dataset_get(file, s.address, &ref, &dataset), 0);
		h5_lru_stats(h5_file_set_blocks(set), &after);
		cost = sizeof *dataset + h5_datatype_cost(dataset->type) +
		       cost_of_filters(&dataset->pipeline);
		if (dataset->fill)
			cost += dataset->type->size;
		if (dataset->layout.class == H5_LAYOUT_COMPACT)
			cost += dataset->layout.compact.size;
		if (after.entries == before.entries + 1 && !dataset->external) {
			/* The cache has an entry beside it. */
			if (entry == SIZE_MAX)
				entry = after.bytes - before.bytes - cost;
			ck_assert_uint_eq(after.bytes - before.bytes, cost + entry);
			filled += dataset->fill != NULL;
			filtered += cost_of_filters(&dataset->pipeline) > 0;
			compact += dataset->layout.class == H5_LAYOUT_COMPACT;
		}
		h5_file_put(file, ref);
		h5_file_set_close(set);
		free(s.data);
	}
	fclose(list);
	ck_assert(filled && filtered && compact);
}
END_TEST

START_TEST(a_range_decodes_the_chunks_that_it_touches)
{
	/* 40 x 50 doubles in chunks of 16 x 16: 3 x 4 chunks */
	struct sample s = get_sample("dataset_latest", "all");
	struct opened o = open_at(s.file, s.address, &options);
	struct h5_lru *chunks = h5_file_set_chunks(o.set);
	struct h5_lru_stats stats;
	const struct {
		size_t offset, n, misses, hits;
	} steps[] = {
		{8, 1, 1, 0},			 /* chunk 0,0 */
		{15 * 8, 8, 1, 1},		 /* again */
		{15 * 8, 16, 2, 2},		 /* and 0,1 */
		{0, 50 * 8, 3, 2},		 /* the first row: the upper four together */
		{17 * 50 * 8, 3 * 50 * 8, 4, 2}, /* three rows of the next band: one look-up */
	};

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		check_range(o.dataset, &s, steps[i].offset, steps[i].n);
		h5_lru_stats(chunks, &stats);
		ck_assert_msg(stats.misses == steps[i].misses && stats.hits == steps[i].hits,
			      "step %u: %llu misses, %llu hits", i, (unsigned long long)stats.misses,
			      (unsigned long long)stats.hits);
	}
	close_opened(&o);
	free(s.data);
	/* Whole runs of unfiltered chunks pass the cache by. */
	s = get_sample("dataset_early", "long_runs");
	o = open_at(s.file, s.address, &options);
	check_range(o.dataset, &s, 0, s.size);
	h5_lru_stats(h5_file_set_chunks(o.set), &stats);
	ck_assert_uint_eq(stats.misses, 0);
	close_opened(&o);
	free(s.data);
}
END_TEST

START_TEST(a_terabyte_of_fill_values_is_read_anywhere)
{
	const uint64_t row = 8 << 17, size = row << 20;
	FILE *f = open_data("dataset_huge.address");
	unsigned long long address;
	struct opened o;
	const uint64_t fill = htole64(0x3ff4000000000000), three = htole64(0x4008000000000000),
		       four = htole64(0x4010000000000000); /* 1.25, 3 and 4 */
	uint64_t v[3];

	ck_assert_int_eq(fscanf(f, "%llu", &address), 1);
	fclose(f);
	o = open_at("dataset_huge", address, &options);
	ck_assert_uint_eq(o.dataset->size, size);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 5 * row + 6 * 8, v, sizeof v), 0);
	ck_assert(v[0] == fill && v[1] == three && v[2] == fill);
	ck_assert_int_eq(h5_dataset_read(o.dataset, size - sizeof v, v, sizeof v), 0);
	ck_assert(v[0] == fill && v[1] == fill && v[2] == four);
	ck_assert_int_eq(h5_dataset_read(o.dataset, size / 3 * 8 / 8 - size / 3 % 8, v, sizeof v), 0);
	ck_assert(v[0] == fill && v[1] == fill && v[2] == fill);
	ck_assert_int_eq(h5_dataset_read(o.dataset, size - 1, v, 2), -EINVAL);
	ck_assert_int_eq(h5_dataset_read(o.dataset, size, v, 0), 0);
	close_opened(&o);
}
END_TEST

/* In the order of dataset_odd.list. */
START_TEST(only_reads_of_what_is_missing_fail)
{
	FILE *list = open_data("dataset_odd.list");
	unsigned long long address[3];
	struct opened o;
	int32_t v[5];

	ck_assert_int_eq(fscanf(list, "%llu %llu %llu", &address[0], &address[1], &address[2]), 3);
	fclose(list);
	/* 39 bytes of a chunk of 40; the other one isn't stored */
	o = open_at("dataset_odd", address[0], &options);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 0, v, 4), 0);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 32, v, 7), 0);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 36, v, 4), -EUCLEAN);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 40, v, 4), 0);
	ck_assert_int_eq(v[0], 0);
	close_opened(&o);
	/* 36 bytes of 40 */
	o = open_at("dataset_odd", address[1], &options);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 32, v, 4), 0);
	ck_assert_int_eq((int32_t)le32toh((uint32_t)v[0]), 9);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 34, v, 4), -EUCLEAN);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 36, v, 4), -EUCLEAN);
	close_opened(&o);
	/* a fill value of two bytes is none */
	o = open_at("dataset_odd", address[2], &options);
	ck_assert(!o.dataset->fill_defined);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 0, v, sizeof v), 0);
	ck_assert(!v[0] && !v[4]);
	close_opened(&o);
}
END_TEST

START_TEST(external_files_obey_the_rule)
{
	struct h5_file_set_options none = options;
	struct sample s = get_sample("dataset_early", "external");
	struct opened o;
	uint8_t byte;

	none.external = H5_EXTERNAL_NONE;
	o = open_at(s.file, s.address, &none);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 0, &byte, 1), -EACCES);
	close_opened(&o);
	free(s.data);
}
END_TEST

/* Every byte of the file is changed in turn: reads fail or give something, and never do harm. */
START_TEST(damaged_files_do_no_harm)
{
	FILE *f = open_data("dataset_latest.h5"), *list = open_data("dataset.list");
	struct sample s;
	size_t size;
	uint8_t *data = malloc(1 << 22), *buf = malloc(1 << 20);
	uint32_t random = 3;

	size = fread(data, 1, 1 << 22, f);
	ck_assert_uint_lt(size, 1 << 22);
	fclose(f);
	while (next_sample(list, &s)) {
		if (strcmp(s.file, "dataset_latest")) {
			free(s.data);
			continue;
		}
		/* The object header, and whatever else. */
		for (int i = 0; i < 150; i++) {
			struct h5_file_set *set;
			struct h5_lru_entry *ref;
			const struct h5_dataset *d;
			size_t at;
			uint8_t was;

			random = random * 1664525 + 1013904223;
			at = i < 100 ? s.address + (random >> 4) % 300 : (random >> 4) % size;
			if (at >= size)
				continue;
			was = data[at];
			data[at] ^= (uint8_t)(1u << random % 8);
			if (!h5_file_set_open_memory(data, size, &options, &set)) {
				if (!h5_dataset_get(h5_file_set_root(set), s.address, &ref, &d)) {
					uint64_t bytes;

					(void)h5_dataset_read(d, 0, buf,
							      d->size < 1 << 20 ? (size_t)d->size : 1 << 20);
					(void)h5_dataset_storage(d, &bytes);
					h5_file_put(h5_file_set_root(set), ref);
				}
				h5_file_set_close(set);
			}
			data[at] = was;
		}
		free(s.data);
	}
	fclose(list);
	free(data);
	free(buf);
}
END_TEST

/* A memory file: the superblock of a fixture with 2048 bytes behind it, of which the last ones are the chunk.
 */
static struct h5_file_set *pipeline_file(uint8_t *data, size_t size, const void *chunk, size_t n)
{
	struct h5_file_set *set;
	FILE *f = open_data("dataset_latest.h5");

	ck_assert_uint_eq(fread(data, 1, size, f), size);
	fclose(f);
	memcpy(data + size - n, chunk, n);
	ck_assert_int_eq(h5_file_set_open_memory(data, size, &options, &set), 0);
	return set;
}

/* A cache of small chunks holds no more than it counts: deflate takes room for what might come out. */
START_TEST(decoded_chunks_take_no_more_than_their_bytes)
{
	struct h5_pipeline p = {.count = 1, .filters = {{.id = 1}}};
	/* a zlib stream with a stored block: "0123456789abcdef" */
	const uint8_t chunk[] = {0x78, 0x01, 0x01, 16,	0,   0xef, 0xff, '0', '1', '2',	 '3',  '4',  '5', '6',
				 '7',  '8',  '9',  'a', 'b', 'c',  'd',	 'e', 'f', 0x1f, 0x6b, 0x04, 0x63};
	uint8_t file_data[2048], *data = NULL;
	struct h5_file_set *set = pipeline_file(file_data, sizeof file_data, chunk, sizeof chunk);

	ck_assert_int_eq(h5_pipeline_read(h5_file_set_root(set), &p, 0, sizeof file_data - sizeof chunk,
					  sizeof chunk, 16, &data),
			 0);
	ck_assert(!memcmp(data, "0123456789abcdef", 16));
	ck_assert_uint_lt(malloc_usable_size(data), 128);
	free(data);
	h5_file_set_close(set);
}
END_TEST

START_TEST(pipelines_are_undone_in_reverse)
{
	/* shuffle of 3, then fletcher32 */
	uint32_t three[] = {3};
	struct h5_pipeline_data got = {.may_stay_shuffled = true};
	struct h5_pipeline p = {.count = 2, .filters = {{.id = 2, .count = 1, .values = three}, {.id = 3}}};
	/* words 0x6164 0x6265 0x6366: sum1 = 0x1272f -> 0x2730, sum2 = 0x6164 + 0xc3c9 + 0x1272f = 0x24c5c ->
	 * 0x4c5e */
	const uint8_t chunk[] = {'a', 'd', 'b', 'e', 'c', 'f', 0x30, 0x27, 0x5e, 0x4c};
	uint8_t file_data[2048], *data = NULL;
	struct h5_file_set *set = pipeline_file(file_data, sizeof file_data, chunk, sizeof chunk);
	struct h5_file *file = h5_file_set_root(set);
	const uint64_t at = sizeof file_data - sizeof chunk;

	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, at, 10, 6, &data), 0);
	ck_assert(!memcmp(data, "abcdef", 6));
	free(data);
	/* the last step can be left to the reader */
	ck_assert_int_eq(h5_pipeline_read_chunk(file, &p, 0, at, 10, 6, 6, &got), 0);
	ck_assert(got.size == 6 && !memcmp(got.bytes, "adbecf", 6) && got.element_size == 3);
	free(got.bytes);
	ck_assert_int_eq(h5_pipeline_read_chunk(file, &p, 1, at, 10, 6, 6, &got), 0);
	ck_assert(got.size == 6 && !memcmp(got.bytes, "adbecf", 6) && got.element_size == 1);
	free(got.bytes);
	/* of another number of bytes the shuffle is undone */
	ck_assert_int_eq(h5_pipeline_read_chunk(file, &p, 0, at, 10, 9, 9, &got), 0);
	ck_assert(got.size == 6 && !memcmp(got.bytes, "abcdef", 6) && got.element_size == 1);
	free(got.bytes);
	ck_assert_int_eq(h5_pipeline_read_chunk(file, &p, 0, at, 10, 4, 4, &got), -EOVERFLOW);
	ck_assert_uint_ge(h5_pipeline_more_room(file, 4), 6);
	ck_assert_int_eq(h5_pipeline_read_chunk(file, &p, 0, at, 10, 4, 100, &got), 0);
	ck_assert(got.size == 4 && !memcmp(got.bytes, "abcd", 4) && got.element_size == 1);
	free(got.bytes);
	ck_assert_uint_eq(h5_pipeline_more_room(file, (size_t)1 << 30), 0);
	three[0] = 0;
	ck_assert_int_eq(h5_pipeline_read_chunk(file, &p, 0, at, 10, 6, 6, &got), -EUCLEAN);
	three[0] = 3;
	/* skipped filters */
	ck_assert_int_eq(h5_pipeline_read(file, &p, 1, at, 10, 6, &data), 0);
	ck_assert(!memcmp(data, "adbecf", 6));
	free(data);
	ck_assert_int_eq(h5_pipeline_read(file, &p, 3, at, 10, 10, &data), 0);
	ck_assert(!memcmp(data, chunk, 10));
	free(data);
	ck_assert_int_eq(h5_pipeline_read(file, NULL, 0, at, 10, 10, &data), 0);
	ck_assert(!memcmp(data, chunk, 10));
	free(data);
	/* not the size that was asked for */
	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, at, 10, 7, &data), -EUCLEAN);
	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, at, 10, 5, &data), -EUCLEAN);
	ck_assert_int_eq(h5_pipeline_read(file, NULL, 0, at, 9, 10, &data), -EUCLEAN);
	/* beyond the end; absurd sizes cost nothing */
	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, at, 11, 6, &data), -EUCLEAN);
	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, UINT64_MAX - 4, 10, 6, &data), -EUCLEAN);
	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, at, UINT64_MAX, 6, &data), -EUCLEAN);
	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, at, 10, (uint64_t)1 << 32, &data), -EFBIG);
	ck_assert_int_eq(h5_pipeline_read(file, NULL, 0, at, 10, (uint64_t)1 << 40, &data), -EUCLEAN);
	h5_file_set_close(set);
}
END_TEST

START_TEST(missing_filters_are_named)
{
	char custom[] = "my filter";
	struct h5_pipeline p = {.count = 1, .filters = {{.id = 40000, .name = custom}}};
	uint8_t file_data[2048], *data;
	struct h5_file_set *set = pipeline_file(file_data, sizeof file_data, "", 1);
	struct h5_file *file = h5_file_set_root(set);
	const struct h5_filter_ops *ops;

	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, 100, 10, 10, &data), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "40000 (my filter)"));
	ck_assert_uint_eq(h5_error_last()->address, 100);
	p.filters[0] = (struct h5_filter_info){.id = 40000};
	ck_assert_int_eq(h5_pipeline_read(file, &p, 0, 100, 10, 10, &data), -ENOTSUP);
	/* the table's name comes before the message's */
	for (ops = h5_filters; ops->name; ops++) {
		char text[64];

		if (ops->decode)
			continue;
		p.filters[0] = (struct h5_filter_info){.id = ops->id, .name = custom};
		ck_assert_int_eq(h5_pipeline_read(file, &p, 0, 100, 10, 10, &data), -ENOTSUP);
		snprintf(text, sizeof text, "%u (%s)", ops->id, ops->name);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, text));
	}
	h5_file_set_close(set);
}
END_TEST

/* ---- whole chunks ---- */

/* The chunks of a grid that come before these coordinates, which may lie outside. */
START_TEST(numbers_of_chunks)
{
	static const uint64_t grid[] = {3, 2, 4};
	uint64_t at[3], scaled[3];

	for (uint64_t number = 0; number < 24; number++) {
		h5_whole_chunk_scaled(grid, 3, number, scaled);
		ck_assert(scaled[0] == number / 8 && scaled[1] == number / 4 % 2 && scaled[2] == number % 4);
	}
	for (at[0] = 0; at[0] < 5; at[0]++)
		for (at[1] = 0; at[1] < 4; at[1]++)
			for (at[2] = 0; at[2] < 6; at[2]++) {
				uint64_t before = 0;

				for (uint64_t number = 0; number < 24; number++) {
					unsigned i = 0;

					h5_whole_chunk_scaled(grid, 3, number, scaled);
					while (i < 3 && scaled[i] == at[i])
						i++;
					before += i < 3 && scaled[i] < at[i];
				}
				ck_assert_uint_eq(h5_whole_chunk_number(grid, 3, at), before);
			}
}
END_TEST

/* Reads n bytes of the chunk from the offset on. Those inside the dataset are its elements. */
static void check_whole(const struct h5_dataset *d, const struct sample *s, const uint64_t *scaled,
			const struct h5_whole_chunk *chunk, uint64_t offset, size_t n)
{
	const struct h5_chunk_layout *layout = &d->layout.chunked;
	const uint64_t size = d->type->size;
	uint8_t *buf = malloc(n + 1);

	memset(buf, 0xa5, n + 1);
	ck_assert_msg(!h5_whole_chunk_read(chunk, offset, buf, n), "%s %s: %s", s->file, s->name,
		      h5_error_last()->text);
	ck_assert_uint_eq(buf[n], 0xa5);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t element = (offset + i) / size, position = 0, step = 1;
		bool inside = true;

		for (unsigned k = layout->rank; k-- > 0; element /= layout->dims[k]) {
			uint64_t index = scaled[k] * layout->dims[k] + element % layout->dims[k];

			inside &= index < d->space.dims[k];
			position += index * step;
			step *= d->space.dims[k];
		}
		if (inside)
			ck_assert_msg(buf[i] == s->data[position * size + (offset + i) % size],
				      "%s %s: byte %ju of a chunk", s->file, s->name,
				      (uintmax_t)(offset + i));
	}
	free(buf);
}

/* All chunks that are stored are found, in their order, and read in whole and in part. */
static void check_whole_chunks(const struct h5_dataset *d, const struct sample *s)
{
	const struct h5_chunk_layout *layout = &d->layout.chunked;
	struct h5_chunk_cursor cursor = {.held = false};
	uint64_t grid[H5_RANK_MAX], all = 1, next, scaled[H5_RANK_MAX];
	uint32_t random = 11;

	for (unsigned i = 0; i < layout->rank; i++) {
		grid[i] = (d->space.dims[i] + layout->dims[i] - 1) / layout->dims[i];
		all *= grid[i];
	}
	for (uint64_t number = all; number-- > 0;) {
		struct h5_whole_chunk chunk;

		h5_whole_chunk_scaled(grid, layout->rank, number, scaled);
		ck_assert_int_eq(h5_whole_chunk_find(d, &cursor, scaled, &chunk), 0);
		next = number;
		ck_assert_int_eq(h5_whole_chunk_next(d, &cursor, grid, &next, all), 0);
		ck_assert((next == number) == (chunk.state != H5_CHUNK_NOT_STORED));
		if (chunk.state == H5_CHUNK_NOT_STORED) {
			uint64_t following = number + 1;

			ck_assert_int_eq(h5_whole_chunk_next(d, &cursor, grid, &following, all), 0);
			ck_assert_uint_eq(next < all ? next : all, following < all ? following : all);
			continue;
		}
		check_whole(d, s, scaled, &chunk, 0, (size_t)d->chunk_size);
		check_whole(d, s, scaled, &chunk, d->chunk_size - 1, 1);
		/* Partial chunks of "edges" are not filtered. */
		if (strcmp(s->name, "edges"))
			ck_assert(h5_whole_chunk_is_filtered(&chunk) == !chunk.wanted.chunk.filter_mask);
		for (unsigned i = 0; i < 10; i++) {
			uint64_t offset;

			random = random * 1664525 + 1013904223;
			offset = (random >> 4) % d->chunk_size;
			random = random * 1664525 + 1013904223;
			check_whole(d, s, scaled, &chunk, offset,
				    1 + (random >> 4) % (d->chunk_size - offset));
		}
	}
	h5_chunk_cursor_release(d->index, &cursor);
}

START_TEST(whole_chunks)
{
	FILE *list = open_data("dataset.list");
	struct sample s;
	unsigned n = 0;

	while (next_sample(list, &s)) {
		struct opened o = open_at(s.file, s.address, &options);

		if (s.size && s.size < 10000 && o.dataset->index && !h5_dataset_is_sparse(o.dataset)) {
			check_whole_chunks(o.dataset, &s);
			n++;
		}
		close_opened(&o);
		free(s.data);
	}
	fclose(list);
	ck_assert_uint_gt(n, 60);
}
END_TEST

/* ---- chunks of which the index says what cannot be ---- */

enum { CHUNKS_MOST = 64 };

/* A file with a version 1 B-tree, which has no checksums, and the chunks that it leads to. */
struct chunked {
	uint8_t bytes[2 << 20];
	size_t size;
	uint64_t address; /* of the dataset */
	unsigned rank;
	struct h5_chunk chunks[CHUNKS_MOST];
	unsigned count;
};

static int add_chunk(void *arg, const struct h5_chunk *chunk)
{
	struct chunked *c = arg;

	ck_assert_uint_lt(c->count, CHUNKS_MOST);
	c->chunks[c->count++] = *chunk;
	return 0;
}

/* The findings of a check of the dataset. */
struct findings {
	unsigned damaged, done;
	uint64_t bytes;
	char text[240];
	int read; /* what comes of reading all */
	int last; /* of reading the last element of the first chunk, and of its last byte as one of a chunk */
	int last_of_chunk;
	int last_row; /* of the last row of the first chunk */
};

static void hear(void *arg, const struct h5_error *error)
{
	struct findings *f = arg;

	snprintf(f->text, sizeof f->text, "%s", error->text);
	f->damaged++;
}

static void chunk_done(void *arg, uint64_t bytes)
{
	struct findings *f = arg;

	f->done++;
	f->bytes += bytes;
}

/* The position in the dataset of the first chunk's last element. */
static uint64_t last_of_first(const struct h5_dataset *dataset)
{
	uint64_t position = 0;

	for (unsigned i = 0; i < dataset->layout.chunked.rank; i++)
		position = position * dataset->space.dims[i] + dataset->layout.chunked.dims[i] - 1;
	return position * dataset->type->size;
}

static void look_at_last(const struct h5_dataset *dataset, struct findings *f)
{
	const uint64_t first[H5_RANK_MAX] = {0};
	const uint64_t row = dataset->layout.chunked.dims[dataset->layout.chunked.rank - 1];
	const size_t n = (size_t)row * dataset->type->size;
	struct h5_whole_chunk chunk;
	uint8_t element[64], *bytes = malloc(n);

	ck_assert_uint_le(dataset->type->size, sizeof element);
	f->last_row = h5_dataset_read(dataset, last_of_first(dataset) + dataset->type->size - n, bytes, n);
	free(bytes);
	f->last = h5_dataset_read(dataset, last_of_first(dataset), element, dataset->type->size);
	ck_assert_int_eq(h5_whole_chunk_find(dataset, NULL, first, &chunk), 0);
	f->last_of_chunk = chunk.state == H5_CHUNK_NOT_STORED
				   ? 0
				   : h5_whole_chunk_read(&chunk, dataset->chunk_size - 1, element, 1);
}

/* `early`: as with early allocation. The chunks are counted in c->chunks the first time. */
static struct findings look_at(struct chunked *c, bool early)
{
	struct findings f = {.damaged = 0};
	struct h5_damage damage = {.heard = hear, .arg = &f};
	const struct h5_dataset *dataset;
	struct h5_dataset copy;
	struct h5_file_set *set;
	struct h5_lru_entry *ref;
	uint8_t *all;

	ck_assert_int_eq(h5_file_set_open_memory(c->bytes, c->size, &options, &set), 0);
	ck_assert_int_eq(h5_dataset_get(h5_file_set_root(set), c->address, &ref, &dataset), 0);
	c->rank = dataset->layout.chunked.rank;
	if (!c->count)
		ck_assert_int_eq(h5_chunk_index_walk(dataset->index, add_chunk, c), 0);
	copy = *dataset;
	copy.early = early;
	ck_assert_int_eq(h5_dataset_check(&copy, &damage, chunk_done, &f), 0);
	all = malloc((size_t)dataset->size);
	f.read = h5_dataset_read(dataset, 0, all, (size_t)dataset->size);
	free(all);
	look_at_last(dataset, &f);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
	return f;
}

static void load_chunked(struct chunked *c, const char *name)
{
	struct sample s = get_sample("dataset_early", name);
	FILE *f = open_data("dataset_early.h5");

	memset(c, 0, sizeof *c);
	c->size = fread(c->bytes, 1, sizeof c->bytes, f);
	ck_assert_uint_lt(c->size, sizeof c->bytes);
	fclose(f);
	c->address = s.address;
	free(s.data);
	look_at(c, false);
	ck_assert_uint_gt(c->count, 1);
}

/* The child of the tree that leads to the chunk: its address, and the key with its size before that. */
static void set_chunk(struct chunked *c, unsigned i, uint64_t address, uint64_t size)
{
	const size_t key = 8 + 8 * (c->rank + 1);
	uint8_t *p = c->bytes + key;

	while (h5_uint_from(p, 8) != c->chunks[i].address || h5_uint_from(p - key, 4) != c->chunks[i].size)
		ck_assert(++p < c->bytes + c->size - 8);
	h5_uint_to(p, address, 8);
	h5_uint_to(p - key, size, 4);
	c->chunks[i].address = address;
	c->chunks[i].size = size;
}

START_TEST(chunks_that_reach_beyond_the_file)
{
	static const char beyond[] = "chunk: it reaches beyond the end of the file";
	static struct chunked c, changed;
	struct findings f;

	for (unsigned filtered = 0; filtered < 2; filtered++) {
		uint64_t size;

		load_chunked(&c, filtered ? "deflate2" : "plain2");
		size = c.chunks[0].size;
		f = look_at(&c, false);
		ck_assert(!f.damaged && !f.read && f.done == (filtered ? c.count : 0));
		for (unsigned i = 0; i < c.count && filtered; i++)
			f.bytes -= c.chunks[i].size;
		ck_assert_uint_eq(f.bytes, 0);
		for (unsigned how = 0; how < 4; how++) {
			const uint64_t places[] = {c.size, c.size - size + 1, UINT64_MAX - 10, c.size + 1};

			changed = c;
			set_chunk(&changed, 0, places[how], size);
			f = look_at(&changed, false);
			ck_assert_uint_eq(f.damaged, 1);
			ck_assert_str_eq(f.text, beyond);
			ck_assert_int_eq(f.read, -EUCLEAN);
			/* Beyond 2^64 nothing of the file's begin is read. */
			ck_assert(f.last == -EUCLEAN && f.last_of_chunk == -EUCLEAN);
			ck_assert_uint_eq(f.done, filtered ? c.count - 1 : 0);
		}
		changed = c;
		set_chunk(&changed, 0, c.size - size, size);
		f = look_at(&changed, false);
		ck_assert(filtered ? f.damaged == 1 && strcmp(f.text, beyond) : !f.damaged && !f.read);
		changed = c;
		set_chunk(&changed, 0, c.chunks[0].address, size - 1);
		f = look_at(&changed, false);
		ck_assert(f.damaged == 1 && f.read == -EUCLEAN);
	}
}
END_TEST

/* The same of chunks whose runs are read without the rest of them. */
START_TEST(runs_beyond_the_last_address)
{
	static struct chunked c;
	struct findings f;

	load_chunked(&c, "long_runs");
	f = look_at(&c, false);
	ck_assert(!f.read && !f.last && !f.last_row);
	set_chunk(&c, 0, UINT64_MAX - 10, c.chunks[0].size);
	f = look_at(&c, false);
	ck_assert(f.read == -EUCLEAN && f.last == -EUCLEAN && f.last_of_chunk == -EUCLEAN);
	ck_assert_int_eq(f.last_row, -EUCLEAN);
}
END_TEST

/* Chunks that share bytes could be more than can ever be decoded. */
START_TEST(chunks_with_more_bytes_than_the_file)
{
	static struct chunked c, changed;
	struct findings f;

	load_chunked(&c, "deflate2");
	for (unsigned more = 0; more < 2; more++) {
		uint64_t left = c.size + more;

		changed = c;
		for (unsigned i = 1; i < c.count; i++)
			left -= c.chunks[i].size;
		/* All of the file, or a byte more; the end is not in the way. */
		set_chunk(&changed, 0, 0, left);
		f = look_at(&changed, false);
		ck_assert_uint_ge(f.damaged, 1);
		ck_assert(more == !strcmp(f.text, "chunks: more bytes than the file has"));
	}
}
END_TEST

START_TEST(chunks_that_early_allocation_misses)
{
	static struct chunked c;
	struct findings f;
	char text[128];

	load_chunked(&c, "plain2");
	f = look_at(&c, true);
	ck_assert(!f.damaged && !f.read);
	load_chunked(&c, "holes");
	f = look_at(&c, false);
	ck_assert(!f.damaged && !f.read);
	f = look_at(&c, true);
	snprintf(text, sizeof text, "chunks: only %u are stored, but with early allocation all must be",
		 c.count);
	ck_assert_uint_eq(f.damaged, 1);
	ck_assert_str_eq(f.text, text);
}
END_TEST

/* Chunks beyond the dataset are in the index, but those inside are verified once each. */
START_TEST(chunks_outside_are_not_verified)
{
	static struct chunked c;
	struct findings f = {.damaged = 0};
	struct h5_damage damage = {.heard = hear, .arg = &f};
	struct h5_dataset smaller;
	struct h5_file_set *set;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	unsigned inside;

	load_chunked(&c, "deflate2");
	ck_assert_int_eq(h5_file_set_open_memory(c.bytes, c.size, &options, &set), 0);
	ck_assert_int_eq(h5_dataset_get(h5_file_set_root(set), c.address, &ref, &dataset), 0);
	smaller = *dataset;
	ck_assert_uint_eq(smaller.space.rank, 2);
	inside = (unsigned)((smaller.space.dims[1] - 1) / smaller.layout.chunked.dims[1] + 1);
	smaller.space.dims[0] = smaller.layout.chunked.dims[0];
	ck_assert_uint_lt(inside, c.count);
	ck_assert_int_eq(h5_dataset_check(&smaller, &damage, chunk_done, &f), 0);
	ck_assert_uint_eq(f.damaged, 0);
	ck_assert_uint_eq(f.done, inside);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
}
END_TEST

UNIT_MAIN("dataset", every_range_of_every_layout, caches_of_no_size, storage_is_what_libhdf5_counts,
	  a_range_decodes_the_chunks_that_it_touches, a_terabyte_of_fill_values_is_read_anywhere,
	  only_reads_of_what_is_missing_fail, external_files_obey_the_rule, damaged_files_do_no_harm,
	  decoded_chunks_take_no_more_than_their_bytes, pipelines_are_undone_in_reverse,
	  missing_filters_are_named, numbers_of_chunks, whole_chunks, chunks_that_reach_beyond_the_file,
	  runs_beyond_the_last_address, chunks_with_more_bytes_than_the_file,
	  chunks_that_early_allocation_misses, chunks_outside_are_not_verified, a_dataset_costs_what_it_holds)

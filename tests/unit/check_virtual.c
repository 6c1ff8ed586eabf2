#include "base/error.h"
#include "base/lookup3.h"
#include "change/open.h"
#include "dataset/virtual_map.h"
#include "dataset/virtual_source.h"
#include "fault_alloc.h"
#include "format/virtual_mapping.h"
#include "object/global_heap.h"
#include "object/path.h"
#include "store/file_set.h"
#include "unit.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

static const struct h5_file_set_options options = {.block_cache = 1 << 20,
						   .chunk_cache = 1 << 20,
						   .external = H5_EXTERNAL_BENEATH,
						   .lock = H5_LOCK_NONE};

/* One line of virtual.list (tests/fixtures/virtual.py), and the bytes of the dataset. */
struct sample {
	char name[64];
	unsigned long long address;
	long long size; /* negative: the errno of reading */
	uint8_t *data;
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

static uint8_t *read_data(const char *name, size_t *size)
{
	FILE *f = open_data(name);
	uint8_t *data;

	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	data = malloc(*size + 1);
	ck_assert_uint_eq(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

static bool next_sample(FILE *list, struct sample *s)
{
	char name[128];
	size_t size;

	if (fscanf(list, "%63s %llu %lld", s->name, &s->address, &s->size) != 3)
		return false;
	s->data = NULL;
	if (s->size <= 0)
		return true;
	snprintf(name, sizeof name, "virtual.%s.bin", s->name);
	s->data = read_data(name, &size);
	ck_assert_uint_eq(size, (size_t)s->size);
	return true;
}

static struct sample get_sample(const char *name)
{
	FILE *list = open_data("virtual.list");
	struct sample s;

	while (next_sample(list, &s)) {
		if (!strcmp(s.name, name)) {
			fclose(list);
			return s;
		}
		free(s.data);
	}
	ck_abort_msg("no %s", name);
}

static struct h5_file_set *open_file(const char *name, const struct h5_file_set_options *with)
{
	char path[512];
	struct h5_file_set *set;

	snprintf(path, sizeof path, "%s/%s", getenv("H5FS_TEST_DATA"), name);
	ck_assert_msg(!h5_open_file(path, with, &set, NULL), "%s: %s", path, h5_error_last()->text);
	return set;
}

static struct h5_file_set *open_set(const struct h5_file_set_options *with)
{
	return open_file("virtual.h5", with);
}

static const struct h5_dataset *open_dataset(struct h5_file_set *set, const struct sample *s,
					     struct h5_lru_entry **ref)
{
	const struct h5_dataset *dataset;
	int rc = h5_dataset_get(h5_file_set_root(set), s->address, ref, &dataset);

	ck_assert_msg(!rc, "%s: %d: %s", s->name, rc, h5_error_last()->text);
	return dataset;
}

/* Reads a range into a buffer of just its size and compares. */
static void check_range(const struct h5_dataset *d, const struct sample *s, uint64_t offset, size_t n)
{
	uint8_t *buf = malloc(n ? n : 1);
	int rc;

	memset(buf, 0xa5, n);
	rc = h5_dataset_read(d, offset, buf, n);
	ck_assert_msg(!rc, "%s: %zu bytes at %llu: %d: %s", s->name, n, (unsigned long long)offset, rc,
		      h5_error_last()->text);
	ck_assert_msg(!memcmp(buf, s->data + offset, n), "%s: %zu bytes at %llu", s->name, n,
		      (unsigned long long)offset);
	free(buf);
}

static void check_sample(struct h5_file_set *set, const struct sample *s)
{
	struct h5_lru_entry *ref;
	const struct h5_dataset *d = open_dataset(set, s, &ref);
	uint32_t random = 7;
	uint64_t stored;

	if (s->size < 0) {
		uint8_t byte;
		int rc = h5_dataset_read(d, 0, &byte, 1);

		ck_assert_msg(rc == s->size, "%s: %d, not %lld: %s", s->name, rc, s->size,
			      h5_error_last()->text);
		ck_assert_int_eq(h5_error_last()->code, rc);
	} else {
		ck_assert_msg(d->size == (uint64_t)s->size, "%s: %llu bytes, not %lld", s->name,
			      (unsigned long long)d->size, s->size);
		ck_assert_int_eq(h5_dataset_storage(d, &stored), 0);
		ck_assert_uint_eq(stored, 0);
		check_range(d, s, 0, (size_t)s->size);
		for (unsigned i = 0; i < 16; i++) {
			uint64_t offset = (random = random * 1664525 + 1013904223) % (uint64_t)s->size;
			uint64_t left = (uint64_t)s->size - offset;

			random = random * 1664525 + 1013904223;
			check_range(d, s, offset, (size_t)(1 + random % (i % 2 && left > 16 ? 16 : left)));
		}
	}
	h5_file_put(h5_file_set_root(set), ref);
}

START_TEST(test_all)
{
	struct h5_file_set *set = open_set(&options);
	FILE *list = open_data("virtual.list");
	struct sample s;
	unsigned n = 0;

	for (; next_sample(list, &s); n++) {
		if (s.size)
			check_sample(set, &s);
		free(s.data);
	}
	ck_assert_uint_gt(n, 140);
	fclose(list);
	h5_file_set_close(set);
}
END_TEST

/* With caches that hold nothing every block is loaded again for each use. */
START_TEST(test_no_cache)
{
	struct h5_file_set_options small = options;
	struct h5_file_set *set;
	FILE *list = open_data("virtual.list");
	struct sample s;

	small.block_cache = small.chunk_cache = 0;
	set = open_set(&small);
	while (next_sample(list, &s)) {
		if (s.size && s.size < 4000)
			check_sample(set, &s);
		free(s.data);
	}
	fclose(list);
	h5_file_set_close(set);
}
END_TEST

/* Sources in other files obey the rule of the mount; those in the same file are no matter of it. */
START_TEST(test_external_none)
{
	struct h5_file_set_options none = options;
	struct h5_file_set *set;
	struct h5_lru_entry *ref;
	struct sample plain = get_sample("plain"), files = get_sample("counted_files");
	const struct h5_dataset *d;
	uint8_t byte;

	none.external = H5_EXTERNAL_NONE;
	set = open_set(&none);
	check_sample(set, &plain);
	/* The extent is what was stored. */
	d = open_dataset(set, &files, &ref);
	ck_assert_uint_eq(d->size, 0);
	h5_file_put(h5_file_set_root(set), ref);
	free(files.data);
	files = get_sample("no_file");
	d = open_dataset(set, &files, &ref);
	ck_assert_int_eq(h5_dataset_read(d, 3 * 4, &byte, 1), 0);
	ck_assert_int_eq(h5_dataset_read(d, 4 * 4, &byte, 1), -EACCES);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
	free(plain.data);
	free(files.data);
}
END_TEST

/* Each of the twelve sources of the dataset has twelve, and so on, sixteen times in a row: the search for its
 * extent ends, and that is what is stored. */
START_TEST(test_sources_without_end)
{
	struct h5_file_set *set = open_file("virtual_often.h5", &options);
	struct h5_file *file = h5_file_set_root(set), *found;
	const struct h5_dataset *d;
	struct h5_lru_entry *ref;
	uint64_t address;

	ck_assert_int_eq(h5_path_find(file, h5_file_superblock(file)->root, "often", 5, &found, &address), 0);
	ck_assert_int_eq(h5_dataset_get(file, address, &ref, &d), 0);
	ck_assert_uint_eq(d->size, 3 * 4);
	h5_file_put(file, ref);
	h5_file_set_close(set);
}
END_TEST

/* What tests/fixtures/virtual.py says of the element. */
static double huge_element(uint64_t i)
{
	static const double real[] = {1.5, -2.7, 3e10};
	uint64_t middle = UINT64_C(1) << 36;

	if (i % 16 >= 3 && i % 16 < 13 && i < (UINT64_C(1) << 37) - 16)
		return 0;
	for (unsigned k = 0; k < 3; k++)
		if (i >= middle + k * 1000 && i < middle + k * 1000 + 3)
			return real[i - middle - k * 1000];
	return 2.5;
}

/* Files have the lowest byte first. */
static double from_file(const double *stored)
{
	uint64_t bits;
	double value;

	memcpy(&bits, stored, sizeof bits);
	bits = le64toh(bits);
	memcpy(&value, &bits, sizeof value);
	return value;
}

START_TEST(test_huge)
{
	enum { N = 16384 };
	struct h5_file_set *set = open_set(&options);
	struct sample s = get_sample("huge");
	struct h5_lru_entry *ref;
	const struct h5_dataset *d = open_dataset(set, &s, &ref);
	double *buf = malloc(N * sizeof *buf);

	ck_assert_uint_eq(d->size, UINT64_C(1) << 40);
	for (unsigned i = 0; i <= 8; i++) {
		uint64_t at = (UINT64_C(1) << 34) * i;

		at -= i == 8 ? N : i ? 100 : 0;
		ck_assert_int_eq(h5_dataset_read(d, at * sizeof *buf, buf, N * sizeof *buf), 0);
		/* The other mappings begin where 1,000 and 2,000 are no multiples of 16. */
		for (unsigned k = 0; k < N; k++)
			if (at + k < (UINT64_C(1) << 36) + 1000 || at + k > (UINT64_C(1) << 36) + 2009)
				ck_assert_msg(from_file(&buf[k]) == huge_element(at + k), "element %llu: %g",
					      (unsigned long long)(at + k), from_file(&buf[k]));
	}
	free(buf);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
}
END_TEST

/* More bytes than are read at once: two times 4 MiB, and some. */
START_TEST(test_long_read)
{
	enum { N = (9 << 20) / 8, FIRST = 100 };
	struct h5_file_set *set = open_set(&options);
	struct sample s = get_sample("huge");
	struct h5_lru_entry *ref;
	const struct h5_dataset *d = open_dataset(set, &s, &ref);
	double *buf = malloc(N * sizeof *buf);

	memset(buf, 0xa5, N * sizeof *buf);
	ck_assert_int_eq(h5_dataset_read(d, FIRST * sizeof *buf, buf, N * sizeof *buf), 0);
	for (unsigned k = 0; k < N; k++)
		if (from_file(&buf[k]) != huge_element(FIRST + k))
			ck_abort_msg("element %u: %g", FIRST + k, from_file(&buf[k]));
	free(buf);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
}
END_TEST

/* Each allocation fails once: there is no memory, and the next try reads all. */
START_TEST(test_short_memory)
{
	static const char *const names[] = {"chance3", "real_as_i8", "counted", "grows_blocks",
					    "points",  "union",	     "nested"};
	uint8_t *buf;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct sample s = get_sample(names[i]);
		unsigned failures = 0;
		bool fired = true;

		buf = malloc((size_t)s.size);
		for (unsigned long n = 1; fired; n++) {
			struct h5_file_set *set = open_set(&options);
			const struct h5_dataset *d;
			struct h5_lru_entry *ref = NULL;
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_dataset_get(h5_file_set_root(set), s.address, &ref, &d);
			if (!rc && d->size == (uint64_t)s.size)
				rc = h5_dataset_read(d, 0, buf, (size_t)s.size);
			else if (!rc) /* a source could not be asked */
				rc = -ENOMEM;
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%s, %lu: %d %s", names[i], n, rc,
				      h5_error_last()->text);
			failures += rc != 0;
			if (!rc)
				ck_assert_mem_eq(buf, s.data, (size_t)s.size);
			/* The next one finds all. */
			if (ref && d->size == (uint64_t)s.size) {
				ck_assert_int_eq(h5_dataset_read(d, 0, buf, (size_t)s.size), 0);
				ck_assert_mem_eq(buf, s.data, (size_t)s.size);
			}
			h5_file_put(h5_file_set_root(set), ref);
			h5_file_set_close(set);
		}
		ck_assert_uint_gt(failures, 10);
		free(buf);
		free(s.data);
	}
}
END_TEST

/* Many mappings may have elements of a read, each a column. The list of them grows, or there is no memory,
 * and nothing of it is left. */
START_TEST(test_many_mappings)
{
	enum { FIRST = 100, N = 30 };
	struct h5_file_set *set = open_set(&options);
	struct sample s = get_sample("columns");
	struct h5_lru_entry *ref, *map_ref;
	const struct h5_dataset *d = open_dataset(set, &s, &ref);
	const struct h5_virtual_map *map;
	unsigned failures = 0;
	bool fired = true;

	ck_assert_int_eq(h5_virtual_map_get(d, &map_ref, &map), 0);
	for (unsigned long n = 1; fired; n++) {
		const struct h5_virtual_entry **found;
		size_t count;
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_virtual_map_find(map, FIRST, FIRST + N, &found, &count);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		failures += rc != 0;
		if (rc)
			continue;
		/* Of mappings that overlap the last one is the first to be asked. */
		ck_assert_uint_eq(count, FIRST + N);
		for (size_t i = 0; i < count; i++)
			ck_assert_uint_eq(found[i]->order, FIRST + N - 1 - i);
		free(found);
	}
	ck_assert_uint_ge(failures, 2);
	h5_file_put(h5_file_set_root(set), map_ref);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
	free(s.data);
}
END_TEST

/* Dimensions of the same hash (FNV-1a) are not those of the mappings in the cache. */
START_TEST(test_same_hash)
{
	const uint64_t basis = UINT64_C(0xcbf29ce484222325), prime = UINT64_C(0x100000001b3);
	struct h5_file_set *set = open_set(&options);
	struct sample s = get_sample("grows_across");
	struct h5_lru_entry *ref, *first, *second = NULL;
	const struct h5_dataset *d = open_dataset(set, &s, &ref);
	const struct h5_virtual_map *map;
	struct h5_dataset other = *d;

	ck_assert_uint_eq(d->space.rank, 2);
	other.space.dims[0]++;
	other.space.dims[1] ^= ((basis ^ d->space.dims[0]) * prime) ^ ((basis ^ other.space.dims[0]) * prime);
	ck_assert_int_eq(h5_virtual_map_get(d, &first, &map), 0);
	ck_assert_int_eq(h5_virtual_map_get(&other, &second, &map), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "virtual dataset: extents with the same hash");
	h5_file_put(h5_file_set_root(set), first);
	ck_assert_int_eq(h5_virtual_map_get(d, &first, &map), 0);
	h5_file_put(h5_file_set_root(set), first);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
	free(s.data);
}
END_TEST

/* ---- damage ---- */

static void set_checksum(uint8_t *block, size_t size)
{
	uint32_t sum = h5_lookup3(block, size - 4, 0);

	for (unsigned i = 0; i < 4; i++)
		block[size - 4 + i] = (uint8_t)(sum >> 8 * i);
}

/* Decodes all mappings. */
static int decode(const uint8_t *data, size_t size)
{
	struct h5_reader r = h5_reader_init(data, size, 0, 8, 8);
	struct h5_virtual_mapping m;
	struct h5_virtual_block block;
	int rc = h5_virtual_block_open(&r, &block);

	if (rc)
		return rc;
	while ((rc = h5_virtual_block_next(&block, &m)) > 0)
		h5_virtual_mapping_release(&m);
	h5_virtual_block_release(&block);
	return rc;
}

/* A copy of the dataset's heap block. */
static uint8_t *get_block(const char *name, size_t *size)
{
	struct h5_file_set *set = open_set(&options);
	struct h5_file *file = h5_file_set_root(set);
	struct sample s = get_sample(name);
	struct h5_lru_entry *ref, *heap;
	const struct h5_dataset *d = open_dataset(set, &s, &ref);
	const uint8_t *data;
	uint8_t *copy;

	ck_assert_int_eq(
		h5_global_heap_get(file, d->layout.virtual.heap, d->layout.virtual.index, &heap, &data, size),
		0);
	copy = malloc(*size);
	memcpy(copy, data, *size);
	h5_file_put(file, heap);
	h5_file_put(file, ref);
	h5_file_set_close(set);
	free(s.data);
	return copy;
}

/* The extent of `counted` if the name of its source is another one of the same length, and if as many
 * elements are stored. */
static uint64_t extent_with_source(const char *name, uint64_t stored)
{
	static const char before[] = "block%b";
	struct sample s = get_sample("counted");
	size_t size, image_size;
	uint8_t *block = get_block("counted", &size), *image = read_data("virtual.h5", &image_size);
	uint8_t *at = memmem(image, image_size, block, size),
		*source = memmem(block, size, before, sizeof before);
	struct h5_dataspace space;
	const struct h5_dataset *d;
	struct h5_lru_entry *ref;
	struct h5_file_set *set;

	ck_assert_uint_eq(strlen(name), strlen(before));
	ck_assert(at && source);
	memcpy(source, name, sizeof before);
	set_checksum(block, size);
	memcpy(at, block, size);
	ck_assert_int_eq(h5_file_set_open_memory(image, image_size, &options, &set), 0);
	d = open_dataset(set, &s, &ref);
	space = d->space;
	space.dims[0] = stored;
	ck_assert_int_eq(h5_virtual_extent(h5_file_set_root(set), &d->layout, &space), 0);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
	free(image);
	free(block);
	free(s.data);
	return space.dims[0];
}

/* Without a number in its name a source cannot be one for each block, which is damage: the stored extent
 * stays. Two percent signs are one of the name. */
START_TEST(test_sources_that_are_not_counted)
{
	ck_assert_uint_eq(extent_with_source("other%b", 7), 0);
	ck_assert_uint_eq(extent_with_source("x%%%b%b", 7), 0);
	ck_assert_uint_eq(extent_with_source("one%%bk", 7), 7);
	ck_assert_uint_eq(extent_with_source("x%%%%bk", 7), 7);
	ck_assert_uint_eq(extent_with_source("oneb%ck", 7), 7);
}
END_TEST

static const char *const blocks[] = {"points",	 "points2",	 "union",   "version1",	   "chance3",
				     "chance17", "grows_blocks", "counted", "grows_apart", "counted_across"};

START_TEST(test_truncated_block)
{
	size_t size;
	uint8_t *block = get_block(blocks[_i], &size);

	ck_assert_int_eq(decode(block, size), 0);
	for (size_t n = 0; n < size; n++) {
		uint8_t *part = malloc(n + 1); /* so that a byte too many is seen */

		memcpy(part, block, n);
		ck_assert_int_eq(decode(part, n), -EUCLEAN);
		if (n >= 4) {
			set_checksum(part, n);
			ck_assert_msg(decode(part, n) == -EUCLEAN, "%s: %zu bytes", blocks[_i], n);
		}
		free(part);
	}
	free(block);
}
END_TEST

START_TEST(test_absurd_count)
{
	size_t size;
	uint8_t *block = get_block("plain", &size);

	for (unsigned i = 1; i <= 8; i++) {
		uint8_t kept = block[i];

		block[i] = 0x7f;
		ck_assert_int_eq(decode(block, size), -EUCLEAN); /* the checksum */
		set_checksum(block, size);
		ck_assert_int_eq(decode(block, size), -EUCLEAN);
		block[i] = kept;
	}
	/* Fewer than there are bytes for */
	block[1] = 0;
	set_checksum(block, size);
	ck_assert_int_eq(decode(block, size), -EUCLEAN);
	free(block);
}
END_TEST

/* Any byte of the block changed: an error or other elements, but no harm. */
START_TEST(test_changed_block)
{
	static const uint8_t values[] = {0x00, 0x01, 0x05, 0x7f, 0x80, 0xff};
	struct sample s = get_sample(blocks[_i]);
	size_t size, image_size;
	uint8_t *block = get_block(blocks[_i], &size), *image = read_data("virtual.h5", &image_size);
	uint8_t *at = memmem(image, image_size, block, size), *buf = malloc(1 << 16);

	ck_assert_ptr_nonnull(at);
	for (size_t i = 0; i < size * sizeof values; i++) {
		struct h5_file_set *set;
		struct h5_lru_entry *ref;
		const struct h5_dataset *d;
		size_t k = i / sizeof values;

		/* The names of sources are padded. */
		if (block[k] == '/' && k && block[k - 1] == '/')
			continue;
		memcpy(at, block, size);
		at[k] = values[i % sizeof values];
		if (k < size - 4)
			set_checksum(at, size);
		ck_assert_int_eq(h5_file_set_open_memory(image, image_size, &options, &set), 0);
		if (!h5_dataset_get(h5_file_set_root(set), s.address, &ref, &d)) {
			size_t n = d->size < 1 << 16 ? (size_t)d->size : 1 << 16;
			int rc = n ? h5_dataset_read(d, 0, buf, n) : 0;

			if (k >= size - 4 && at[k] != block[k] && n)
				ck_assert_int_eq(rc, -EUCLEAN);
			h5_file_put(h5_file_set_root(set), ref);
		}
		h5_file_set_close(set);
	}
	free(buf);
	free(image);
	free(block);
	free(s.data);
}
END_TEST

int main(void)
{
	enum { BLOCKS = sizeof blocks / sizeof *blocks };
	Suite *suite = suite_create("virtual");
	TCase *all = tcase_create("virtual"), *faults = tcase_create("faults");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(all, 120);
	tcase_set_timeout(faults, 120);
	tcase_add_test(all, test_all);
	tcase_add_test(all, test_no_cache);
	tcase_add_test(all, test_external_none);
	tcase_add_test(all, test_sources_without_end);
	tcase_add_test(all, test_sources_that_are_not_counted);
	tcase_add_test(all, test_huge);
	tcase_add_test(all, test_long_read);
	tcase_add_test(faults, test_short_memory);
	tcase_add_test(faults, test_many_mappings);
	tcase_add_test(faults, test_same_hash);
	tcase_add_loop_test(all, test_truncated_block, 0, BLOCKS);
	tcase_add_test(all, test_absurd_count);
	tcase_add_loop_test(all, test_changed_block, 0, BLOCKS);
	suite_add_tcase(suite, all);
	suite_add_tcase(suite, faults);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

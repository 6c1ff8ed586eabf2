#include "base/error.h"
#include "base/lookup3.h"
#include "change/open.h"
#include "dataset/structured.h"
#include "fault_alloc.h"
#include "format/structured_chunk.h"
#include "object/path.h"
#include "store/file_set.h"
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct h5_file_set_options options = {
	.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_NONE};

/* A whole file, in a buffer of just its size. */
static uint8_t *read_path(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;

	ck_assert_msg(f, "%s", path);
	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	*size = (size_t)ftell(f);
	rewind(f);
	data = malloc(*size + 1);
	ck_assert_uint_eq(fread(data, 1, *size, f), *size);
	data[*size] = 0;
	fclose(f);
	return data;
}

static uint8_t *read_data(const char *name, const char *suffix, size_t *size)
{
	char path[512];

	snprintf(path, sizeof path, "%s/structured%s%s", getenv("H5FS_TEST_DATA"), name, suffix);
	return read_path(path, size);
}

static FILE *open_list(const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/structured%s", getenv("H5FS_TEST_DATA"), name);
	f = fopen(path, "r");
	ck_assert_msg(f, "%s", path);
	return f;
}

/* ---- what is to be read right ---- */

static void hear(void *arg, const struct h5_error *error)
{
	ck_abort_msg("%s: %s", (const char *)arg, error->text);
}

static void check_values(const char *name, const struct h5_dataset *dataset, const uint8_t *expected,
			 size_t size)
{
	uint8_t *got = malloc(size + 1);
	uint32_t random = 5;

	ck_assert_msg(dataset->size == size, "%s: %" PRIu64 " bytes", name, dataset->size);
	ck_assert_msg(!h5_dataset_read(dataset, 0, got, size), "%s: %s", name, h5_error_last()->text);
	for (size_t i = 0; i < size; i++)
		ck_assert_msg(got[i] == expected[i], "%s: byte %zu is %u, not %u", name, i, got[i],
			      expected[i]);
	for (int i = 0; i < 30 && size; i++) {
		size_t offset, n;

		random = random * 1664525 + 1013904223;
		offset = (random >> 4) % size;
		random = random * 1664525 + 1013904223;
		n = (random >> 4) % (size - offset + 1);
		ck_assert_int_eq(h5_dataset_read(dataset, offset, got, n), 0);
		ck_assert_msg(!memcmp(got, expected + offset, n), "%s: %zu bytes at %zu", name, n, offset);
	}
	free(got);
}

static unsigned check_all(const struct h5_file_set_options *with)
{
	FILE *list = open_list(".list");
	char name[64];
	uint64_t address, storage, bytes;
	unsigned n = 0;

	for (; fscanf(list, "%63s %" SCNu64 " %" SCNu64, name, &address, &storage) == 3; n++) {
		char file[80];
		size_t size, values_size;
		uint8_t *data, *values;
		struct h5_file_set *set;
		struct h5_lru_entry *ref;
		const struct h5_dataset *dataset;

		snprintf(file, sizeof file, "_%s", name);
		data = read_data(file, ".h5", &size);
		values = read_data(file, ".bin", &values_size);
		ck_assert_int_eq(h5_file_set_open_memory(data, size, with, &set), 0);
		ck_assert_msg(!h5_dataset_get(h5_file_set_root(set), address, &ref, &dataset), "%s: %s", name,
			      h5_error_last()->text);
		ck_assert_int_eq(dataset->layout.class, H5_LAYOUT_STRUCTURED);
		check_values(name, dataset, values, values_size);
		/* Chunks may be missing even if the fill value message tells of early allocation. */
		ck_assert_int_eq(h5_dataset_check(dataset, &(struct h5_damage){.heard = hear, .arg = name},
						  NULL, NULL),
				 0);
		ck_assert_msg(!h5_dataset_storage(dataset, &bytes), "%s: %s", name, h5_error_last()->text);
		ck_assert_msg(bytes == storage, "%s: %" PRIu64 " bytes are stored", name, bytes);
		h5_file_put(h5_file_set_root(set), ref);
		h5_file_set_close(set);
		free(values);
		free(data);
	}
	fclose(list);
	return n;
}

START_TEST(values_of_every_form)
{
	ck_assert_uint_ge(check_all(&options), 100);
}
END_TEST

START_TEST(caches_of_no_size)
{
	struct h5_file_set_options none = options;

	none.block_cache = none.chunk_cache = 0;
	check_all(&none);
}
END_TEST

/* A file of the list, which is opened, and its dataset. */
struct opened {
	uint8_t *data;
	struct h5_file_set *set;
	struct h5_lru_entry *ref;
	const struct h5_dataset *dataset;
};

static int open_dataset(struct opened *o, const char *name, const struct h5_file_set_options *with)
{
	FILE *list = open_list(".list");
	uint64_t address, storage;
	char file[80], found[64];
	size_t size;
	int rc;

	while (fscanf(list, "%63s %" SCNu64 " %" SCNu64, found, &address, &storage) == 3 &&
	       strcmp(found, name) != 0)
		;
	fclose(list);
	ck_assert_str_eq(found, name);
	snprintf(file, sizeof file, "_%s", name);
	o->data = read_data(file, ".h5", &size);
	o->set = NULL;
	o->dataset = NULL;
	fault_alloc_count(true);
	rc = h5_file_set_open_memory(o->data, size, with, &o->set);
	if (!rc)
		rc = h5_dataset_get(h5_file_set_root(o->set), address, &o->ref, &o->dataset);
	fault_alloc_count(false);
	return rc;
}

static void close_dataset(struct opened *o)
{
	if (o->dataset)
		h5_file_put(h5_file_set_root(o->set), o->ref);
	h5_file_set_close(o->set);
	free(o->data);
}

static const char *const forms[] = {"single_now_filtered", "single_early_filtered", "fixed_now_filtered",
				    "single_now"};
enum { FORMS = sizeof forms / sizeof *forms };

/* Each allocation fails once: there is no memory, and the next try finds all values. */
START_TEST(memory_is_short)
{
	char file[80];
	size_t size;
	uint8_t *values, *got;
	unsigned failures = 0;
	int rc = -ENOMEM;

	snprintf(file, sizeof file, "_%s", forms[_i]);
	values = read_data(file, ".bin", &size);
	got = malloc(size);
	for (unsigned long n = 1; rc; n++) {
		struct opened o;

		fault_alloc_arm(n);
		rc = open_dataset(&o, forms[_i], &options);
		fault_alloc_count(true);
		if (!rc)
			rc = h5_dataset_read(o.dataset, 0, got, size);
		fault_alloc_count(false);
		fault_alloc_disarm();
		ck_assert_msg(!rc || rc == -ENOMEM, "%lu: %d %s", n, rc, h5_error_last()->text);
		failures += rc != 0;
		if (o.dataset) {
			ck_assert_int_eq(h5_dataset_read(o.dataset, 0, got, size), 0);
			ck_assert_mem_eq(got, values, size);
		}
		close_dataset(&o);
	}
	ck_assert_uint_gt(failures, 10);
	free(values);
	free(got);
}
END_TEST

/* ---- what is to be refused ---- */

/* Chunks of more bytes than the mount allows. */
START_TEST(chunks_may_be_too_large)
{
	struct h5_file_set_options small = options;
	struct h5_damage damage = {0};
	uint8_t byte;
	char text[80];
	struct opened o;

	ck_assert_int_eq(open_dataset(&o, forms[_i], &options), 0);
	small.max_chunk = (size_t)o.dataset->chunk_size - 1;
	snprintf(text, sizeof text, "a chunk of %zu bytes; max_chunk is %zu", small.max_chunk + 1,
		 small.max_chunk);
	close_dataset(&o);
	ck_assert_int_eq(open_dataset(&o, forms[_i], &small), 0);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 0, &byte, 1), -EFBIG);
	ck_assert_str_eq(h5_error_last()->text, text);
	ck_assert_int_eq(h5_dataset_check(o.dataset, &damage, NULL, NULL), -EFBIG);
	ck_assert_str_eq(h5_error_last()->text, text);
	close_dataset(&o);
}
END_TEST

START_TEST(bad_files_are_refused)
{
	FILE *list = open_list("_bad.list");
	char name[64];
	uint64_t address;
	int opening, reading;
	unsigned n = 0;

	for (; fscanf(list, "%63s %" SCNu64 " %d %d", name, &address, &opening, &reading) == 4; n++) {
		char file[80];
		size_t size;
		uint8_t *data, *values;
		struct h5_file_set *set;
		struct h5_lru_entry *ref;
		const struct h5_dataset *dataset;
		int rc;

		snprintf(file, sizeof file, "_bad_%s", name);
		data = read_data(file, ".h5", &size);
		ck_assert_int_eq(h5_file_set_open_memory(data, size, &options, &set), 0);
		rc = h5_dataset_get(h5_file_set_root(set), address, &ref, &dataset);
		ck_assert_msg(rc == -opening, "%s: opening gives %d: %s", name, rc,
			      rc ? h5_error_last()->text : "");
		if (!rc) {
			values = malloc(dataset->size);
			ck_assert_int_gt(dataset->space.rank, 0);
			rc = h5_dataset_read(dataset, 0, values, dataset->size);
			ck_assert_msg(rc == -reading, "%s: reading gives %d: %s", name, rc,
				      rc ? h5_error_last()->text : "");
			ck_assert_int_eq(h5_error_last()->code, rc);
			free(values);
			h5_file_put(h5_file_set_root(set), ref);
		}
		h5_file_set_close(set);
		free(data);
	}
	fclose(list);
	ck_assert_uint_ge(n, 50);
}
END_TEST

/* Opens, reads and adds up, whatever comes of it. */
static void try_file(const uint8_t *data, size_t size, uint64_t address)
{
	struct h5_file_set *set;
	struct h5_lru_entry *ref;
	const struct h5_dataset *dataset;
	static uint8_t values[1 << 16];
	uint64_t bytes;

	if (h5_file_set_open_memory(data, size, &options, &set))
		return;
	if (!h5_dataset_get(h5_file_set_root(set), address, &ref, &dataset)) {
		(void)h5_dataset_read(dataset, 0, values,
				      dataset->size < sizeof values ? dataset->size : sizeof values);
		(void)h5_dataset_storage(dataset, &bytes);
		h5_file_put(h5_file_set_root(set), ref);
	}
	h5_file_set_close(set);
}

/* Each byte of section 0 takes other values, and the checksum with it. */
START_TEST(damaged_selections_do_no_harm)
{
	static const uint8_t others[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 36, 127, 128, 254, 255};
	FILE *list = open_list(".section");
	char name[64];
	uint64_t address;
	size_t at, n, size;

	while (fscanf(list, "%63s %" SCNu64 " %zu %zu", name, &address, &at, &n) == 4) {
		char file[80];
		uint8_t *data;

		snprintf(file, sizeof file, "_%s", name);
		data = read_data(file, ".h5", &size);
		for (size_t i = at; i < at + n - 4; i++) {
			uint8_t was = data[i];

			for (size_t j = 0; j < sizeof others; j++) {
				uint32_t sum;

				data[i] = others[j];
				sum = h5_lookup3(data + at, n - 4, 0);
				for (unsigned k = 0; k < 4; k++)
					data[at + n - 4 + k] = (uint8_t)(sum >> 8 * k);
				try_file(data, size, address);
			}
			data[i] = was;
		}
		free(data);
	}
	fclose(list);
}
END_TEST

/* Each byte of a file is changed, and each shorter file is read. */
START_TEST(damaged_files_do_no_harm)
{
	FILE *list = open_list(".list");
	char name[64];
	uint64_t address, storage;
	uint32_t random = 9;

	while (fscanf(list, "%63s %" SCNu64 " %" SCNu64, name, &address, &storage) == 3) {
		char file[80];
		size_t size;
		uint8_t *data;

		snprintf(file, sizeof file, "_%s", name);
		data = read_data(file, ".h5", &size);
		for (unsigned i = 0; i < 60; i++) {
			size_t at;
			uint8_t was;

			random = random * 1664525 + 1013904223;
			at = (random >> 4) % size;
			was = data[at];
			data[at] ^= (uint8_t)(1u << random % 8);
			try_file(data, size, address);
			data[at] = was;
			try_file(data, at, address);
		}
		free(data);
	}
	fclose(list);
}
END_TEST

/* ---- bytes by hand ---- */

static const struct h5_pipeline two_filters[H5_SECTIONS] = {{.count = 1}, {.count = 2}};

static int encode_sections(bool early, unsigned offset_size, const struct h5_section *sections,
			   uint8_t *metadata)
{
	struct h5_chunk_layout layout = {
		.structured = {.offset_size = (uint8_t)offset_size, .early = early, .sparse = true}};

	return h5_sections_encode(&layout, true, sections, metadata);
}

static int decode_sections(bool early, const struct h5_pipeline *pipelines, uint64_t size,
			   const char *metadata, struct h5_section *sections)
{
	struct h5_chunk_layout layout = {.structured = {.offset_size = 8, .early = early, .sparse = true}};

	return h5_sections_decode(&layout, (const uint8_t *)metadata, pipelines, size, 0, sections);
}

#define ZERO "\0\0\0\0\0\0\0"

START_TEST(metadata)
{
	/* offset 60; sizes 90, 40; masks 0, 2 */
	static const char now[] = "\x3c" ZERO "\x5a" ZERO "\x28" ZERO "\0\0\0\0\2\0\0";
	static const char early[] = "\0\0\0\0\2\0\0\0\x3c" ZERO "\x5a" ZERO "\x28" ZERO;
	struct h5_section s[H5_SECTIONS];
	uint8_t again[H5_CHUNK_METADATA_MAX];

	for (unsigned i = 0; i < 4; i++) {
		memset(s, 0xff, sizeof s);
		ck_assert_int_eq(decode_sections(i % 2, two_filters, 95, i / 2 ? now : early, s), 0);
		ck_assert(s[0].offset == 0 && s[0].stored == 60 && s[0].size == 90 && s[0].filter_mask == 0);
		ck_assert(s[1].offset == 60 && s[1].stored == 35 && s[1].size == 40 && s[1].filter_mask == 2);
		ck_assert_int_eq(encode_sections(i % 2, 8, s, again), 0);
		ck_assert_mem_eq(again, i % 2 ? early : now, sizeof again);
	}
	s[0].size = 256;
	ck_assert_int_eq(encode_sections(false, 1, s, again), -EOVERFLOW);
	s[0].size = 255;
	ck_assert_int_eq(encode_sections(false, 1, s, again), 0);
	ck_assert_mem_eq(again, "\x3c\xff\x28\0\0\0\0\2\0\0", 11);
	ck_assert_int_eq(decode_sections(false, NULL, 95, now, s), 0);
	ck_assert(s[0].stored == 60 && s[0].size == 60 && s[1].offset == 60 && s[1].size == 35);
	/* an empty section 1, but never an empty section 0 */
	ck_assert_int_eq(decode_sections(false, NULL, 60, now, s), 0);
	ck_assert_uint_eq(s[1].size, 0);
	ck_assert_int_eq(decode_sections(false, NULL, 59, now, s), -EUCLEAN);
	ck_assert_int_eq(decode_sections(false, NULL, 95, ZERO, s), -EUCLEAN);
	/* a section of another size though no filter ran */
	ck_assert_int_eq(decode_sections(false, two_filters, 95,
					 "\x3c" ZERO "\x5a" ZERO "\x28" ZERO "\1\0\0\0\0\0\0", s),
			 -EUCLEAN);
	/* a mask of filters that there are not */
	ck_assert_int_eq(decode_sections(false, two_filters, 95,
					 "\x3c" ZERO "\x5a" ZERO "\x28" ZERO "\0\0\0\0\4\0\0", s),
			 -EUCLEAN);
}
END_TEST

/* If metadata fit both orders, the reader takes the order that goes with the layout message. */
START_TEST(metadata_of_any_order)
{
	/* offset 17; sizes 18, 19; masks 16, 0 - or masks 17, 0; offset 18; sizes 19, 16 */
	static const char either[] = "\x11" ZERO "\x12" ZERO "\x13" ZERO "\x10\0\0\0\0\0\0";
	static const struct h5_pipeline filters[H5_SECTIONS] = {{.count = 6}, {.count = 6}};

	for (unsigned early = 0; early < 2; early++) {
		struct h5_section s[H5_SECTIONS];

		ck_assert_int_eq(decode_sections(early, filters, 95, either, s), 0);
		ck_assert_uint_eq(s[0].stored, early ? 18 : 17);
		ck_assert_uint_eq(s[0].size, early ? 19 : 18);
		ck_assert_uint_eq(s[0].filter_mask, early ? 17 : 16);
		ck_assert_uint_eq(s[1].offset, s[0].stored);
		ck_assert_uint_eq(s[1].size, early ? 16 : 19);
		ck_assert_uint_eq(s[1].filter_mask, 0);
	}
}
END_TEST

#define WORD(n) n, 0, 0, 0
#define PREFIX	1, 0, 8, WORD(20), 2, 2, 0, 1, WORD(3), WORD(0), WORD(4), WORD(0)

static void check_defined(const uint8_t *defined, const uint8_t *expected, size_t n)
{
	const struct h5_chunk_layout layout = {.rank = 2, .dims = {3, 4}};
	uint8_t *data;
	size_t size;

	ck_assert_int_eq(h5_defined_elements_encode(&layout, 8, defined, &data, &size), 0);
	ck_assert_uint_eq(size, n + 4);
	ck_assert_mem_eq(data, expected, n);
	ck_assert_uint_eq(h5_uint_from(data + n, 4), h5_lookup3(expected, n, 0));
	free(data);
}

START_TEST(defined_elements_become_blocks)
{
	static const uint8_t everything[] = {PREFIX, WORD(3), WORD(1), WORD(0), WORD(0)};
	/* rows 0 and 1 are alike */
	static const uint8_t blocks[] = {PREFIX,  WORD(2), WORD(1), WORD(0), WORD(56), WORD(2), WORD(3),
					 WORD(0), WORD(1), WORD(1), WORD(2), WORD(2),  WORD(0), WORD(2),
					 WORD(0), WORD(2), WORD(3), WORD(2), WORD(3)};
	const struct h5_chunk_layout large = {.rank = 1, .dims = {H5_SELECTION_COORDINATES_MAX + 2}};
	const struct h5_chunk_layout most = {.rank = 1, .dims = {65534}}, more = {.rank = 1, .dims = {65535}};
	const struct h5_chunk_layout wide = {.rank = 1, .dims = {UINT64_C(1) << 32}};
	uint8_t *data, *marks = calloc(1, H5_SELECTION_COORDINATES_MAX + 2);
	size_t size;

	check_defined((const uint8_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, everything, sizeof everything);
	check_defined((const uint8_t[]){0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1}, blocks, sizeof blocks);
	/* as many blocks as a reader takes, and one more */
	for (size_t i = 2; i < H5_SELECTION_COORDINATES_MAX + 2; i += 2)
		marks[i] = 1;
	ck_assert_int_eq(h5_defined_elements_encode(&large, 8, marks, &data, &size), 0);
	free(data);
	marks[0] = 1;
	ck_assert_int_eq(h5_defined_elements_encode(&large, 8, marks, &data, &size), -EFBIG);
	ck_assert_int_eq(h5_defined_elements_encode(&wide, 8, marks, &data, &size), -EFBIG);
	/* Lengths have two bytes in the file: 65534 is the largest. */
	memset(marks, 1, 70000);
	ck_assert_int_eq(h5_defined_elements_encode(&most, 2, marks, &data, &size), 0);
	free(data);
	ck_assert_int_eq(h5_defined_elements_encode(&more, 2, marks, &data, &size), -EOVERFLOW);
	free(marks);
}
END_TEST

/* A chunk whose section 1 has more bytes than an offset of one byte can tell: nothing of it is left. */
START_TEST(sections_can_be_too_large)
{
	enum { ELEMENTS = 100, ELEMENT = 8, MOST = 255 / ELEMENT };
	struct h5_datatype type = {.size = ELEMENT};
	struct h5_dataset dataset = {.type = &type, .chunk_size = ELEMENTS * ELEMENT};
	uint8_t data[ELEMENTS * (ELEMENT + 1)] = {0}, *encoded;
	struct h5_pipeline pipelines[H5_SECTIONS] = {{0}};
	struct h5_chunk chunk;
	struct opened o;

	ck_assert_int_eq(open_dataset(&o, "single_now", &options), 0);
	dataset.file = o.dataset->file;
	dataset.section_pipelines = pipelines;
	dataset.layout.class = H5_LAYOUT_STRUCTURED;
	dataset.layout.chunked = (struct h5_chunk_layout){
		.rank = 1,
		.dims = {ELEMENTS},
		.element_size = ELEMENT,
		.structured = {.offset_size = 1, .sparse = true},
	};
	memset(data + ELEMENTS * ELEMENT, 1, MOST);
	ck_assert_int_eq(h5_structured_encode(&dataset, data, false, &chunk, &encoded), 0);
	ck_assert_ptr_nonnull(encoded);
	free(encoded);
	data[ELEMENTS * ELEMENT + MOST] = 1;
	ck_assert_int_eq(h5_structured_encode(&dataset, data, false, &chunk, &encoded), -EOVERFLOW);
	ck_assert_ptr_null(encoded);
	close_dataset(&o);
}
END_TEST

/* ---- files of another writer ---- */

/* The text behind `"key": ` in the JSON object that begins at `json`. */
static const char *member(const char *json, const char *key)
{
	char quoted[64];
	const char *p;

	snprintf(quoted, sizeof quoted, "\"%s\":", key);
	p = strstr(json, quoted);
	ck_assert_msg(p, "no %s", key);
	return p + strlen(quoted);
}

/* The numbers of `[a, b, ...]` or of `a,b,...`. */
static unsigned numbers(const char *text, uint64_t *values)
{
	unsigned n = 0;

	text += strspn(text, " \n[\"");
	for (;; text += strspn(text, ", \n")) {
		char *end;

		ck_assert_uint_lt(n, H5_RANK_MAX);
		values[n++] = strtoull(text, &end, 10);
		ck_assert_ptr_ne(text, end);
		text = end;
		if (*text != ',')
			return n;
	}
}

/* The dataset as the description, an object of values.json, has it. */
static int32_t *expected_values(const char *json, size_t *count)
{
	uint64_t dims[H5_RANK_MAX], at[H5_RANK_MAX];
	unsigned rank = numbers(member(json, "dims"), dims);
	const char *p = member(json, "defined"), *end = strchr(p, '}');
	int32_t *values;

	*count = 1;
	for (unsigned i = 0; i < rank; i++)
		*count *= dims[i];
	values = malloc(*count * sizeof *values);
	for (size_t i = 0; i < *count; i++)
		values[i] = (int32_t)strtol(member(json, "fill"), NULL, 10);
	while ((p = strchr(p, '"')) && p < end) {
		size_t index = 0;

		ck_assert_uint_eq(numbers(p, at), rank);
		for (unsigned i = 0; i < rank; i++)
			index = index * dims[i] + at[i];
		ck_assert_uint_lt(index, *count);
		p = strchr(p + 1, ':') + 1;
		values[index] = (int32_t)strtol(p, NULL, 10);
	}
	return values;
}

static void check_foreign(const char *folder, const char *name, const char *json)
{
	char path[600];
	size_t count;
	int32_t *expected = expected_values(json, &count);
	struct h5_file_set *set;
	struct h5_file *file;
	struct h5_lru_entry *ref;
	const struct h5_dataset *dataset;
	uint64_t address;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	ck_assert_msg(!h5_open_file(path, &options, &set, NULL), "%s: %s", path, h5_error_last()->text);
	file = h5_file_set_root(set);
	ck_assert_int_eq(h5_path_find(file, h5_file_superblock(file)->root, "/sparse", 7, &file, &address),
			 0);
	ck_assert_msg(!h5_dataset_get(file, address, &ref, &dataset), "%s: %s", name, h5_error_last()->text);
	/* both little-endian, as all machines are that this runs on */
	check_values(name, dataset, (const uint8_t *)expected, count * sizeof *expected);
	h5_file_put(file, ref);
	h5_file_set_close(set);
	free(expected);
}

START_TEST(files_of_another_writer)
{
	const char *conformance = getenv("H5FS_CONFORMANCE");
	char folder[512], path[600];
	unsigned n = 0;
	size_t size;
	uint8_t *json;
	FILE *f;

	snprintf(folder, sizeof folder, "%s/sparse", conformance ? conformance : "");
	snprintf(path, sizeof path, "%s/values.json", folder);
	f = conformance ? fopen(path, "r") : NULL;
	if (!f) {
		printf("skipped: no %s (H5FS_CONFORMANCE)\n", path);
		return;
	}
	fclose(f);
	json = read_path(path, &size);
	/* each file's object begins with its name */
	for (const char *p = (const char *)json; (p = strstr(p, ".h5\": {")); p++, n++) {
		const char *begin = p;
		char name[64];

		while (begin[-1] != '"')
			begin--;
		snprintf(name, sizeof name, "%.*s", (int)(p + 3 - begin), begin);
		check_foreign(folder, name, p);
	}
	ck_assert_uint_ge(n, 1);
	free(json);
}
END_TEST

/* ---- marks ---- */

static void check_marks(const uint8_t *marks, const char *expected)
{
	for (size_t i = 0; expected[i]; i++)
		ck_assert_int_eq(marks[i], expected[i] - '0');
}

/* An element is defined once any of its bytes is written, and no more once all of them are erased. */
START_TEST(marks_of_bytes)
{
	enum { ELEMENT = 4, ELEMENTS = 6, SIZE = ELEMENT * ELEMENTS };
	struct h5_datatype type = {.size = ELEMENT};
	struct h5_dataset d = {
		.type = &type,
		.chunk_size = SIZE,
		.layout = {.class = H5_LAYOUT_STRUCTURED,
			   .chunked = {.element_size = ELEMENT, .structured = {.sparse = true}}}};
	uint8_t data[SIZE + ELEMENTS] = {0};
	const uint8_t *marks = data + SIZE;
	bool defined;

	h5_structured_define(&d, data, 6, 11);
	check_marks(marks, "011110");
	ck_assert(h5_structured_erase(&d, data, 6, 11));
	check_marks(marks, "010010");
	ck_assert(!h5_structured_erase(&d, data, 6, 11));
	ck_assert(h5_structured_erase(&d, data, 4, 4));
	check_marks(marks, "000010");
	ck_assert(!h5_structured_erase(&d, data, 16, 3));
	ck_assert(!h5_structured_erase(&d, data, 17, 3));
	ck_assert(!h5_structured_erase(&d, data, 17, 2));
	check_marks(marks, "000010");
	ck_assert_uint_eq(h5_structured_run(&d, data, 5, 10, &defined), 10);
	ck_assert(!defined);
	ck_assert_uint_eq(h5_structured_run(&d, data, 5, 15, &defined), 11);
	ck_assert(!defined);
	ck_assert_uint_eq(h5_structured_run(&d, data, 18, 6, &defined), 2);
	ck_assert(defined);
	/* A dataset that is not structured has no marks. */
	d.layout.class = H5_LAYOUT_CHUNKED;
	ck_assert(!h5_structured_erase(&d, data, 0, SIZE));
	h5_structured_define(&d, data, 0, SIZE);
	check_marks(marks, "000010");
}
END_TEST

/* The elements, a mark for each, two numbers of eight bytes for each four bytes of section 0, and the larger
 * of both sections, as it is stored and as it is decoded. */
START_TEST(memory_that_a_chunk_needs)
{
	enum { ELEMENT = 4, ELEMENTS = 1000, SIZE = ELEMENT * ELEMENTS };
	static const struct {
		uint64_t sizes[H5_SECTIONS], sections;
	} cases[] = {{{100, 400}, 2 * 400}, {{600, 4}, 2 * 600}, {{40, 0}, 2 * 40}, {{500, 500}, 2 * 500}};
	struct h5_pipeline one_filter[H5_SECTIONS] = {{.count = 1}, {.count = 1}};
	struct h5_datatype type = {.size = ELEMENT};
	struct h5_dataset d = {.type = &type,
			       .chunk_size = SIZE,
			       .layout = {.class = H5_LAYOUT_STRUCTURED,
					  .chunked = {.rank = 1,
						      .dims = {ELEMENTS},
						      .element_size = ELEMENT,
						      .structured = {.sparse = true, .offset_size = 8}}}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct h5_section sections[H5_SECTIONS] = {
			{.stored = cases[i].sizes[0], .size = cases[i].sizes[0]},
			{.offset = cases[i].sizes[0],
			 .stored = cases[i].sizes[1],
			 .size = cases[i].sizes[1]}};
		struct h5_chunk chunk = {.address = 4096, .size = cases[i].sizes[0] + cases[i].sizes[1]};

		ck_assert_int_eq(h5_sections_encode(&d.layout.chunked, false, sections, chunk.metadata), 0);
		ck_assert_uint_eq(h5_structured_need(&d, &chunk),
				  SIZE + ELEMENTS + cases[i].sizes[0] / 4 * 16 + cases[i].sections);
		/* One that is damaged is not decoded. */
		chunk.size = cases[i].sizes[0] - 1;
		ck_assert_uint_eq(h5_structured_need(&d, &chunk), SIZE);
	}
	/* What filters make of few bytes: of section 1 no more than the elements, of section 0 64 MiB. */
	d.section_pipelines = one_filter;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t selection = i ? UINT64_C(1) << 30 : 2000, decoded = i ? 64 << 20 : 2000;
		const struct h5_section sections[H5_SECTIONS] = {
			{.stored = 20, .size = selection}, {.offset = 20, .stored = 21, .size = 100000}};
		struct h5_chunk chunk = {.address = 4096, .size = 20 + 21};

		ck_assert_int_eq(h5_sections_encode(&d.layout.chunked, true, sections, chunk.metadata), 0);
		ck_assert_uint_eq(h5_structured_need(&d, &chunk),
				  SIZE + ELEMENTS + decoded / 4 * 16 + (i ? 20 + decoded : 21 + SIZE));
	}
}
END_TEST

UNIT_MAIN_LOOPS("structured", {memory_that_a_chunk_needs, 1}, {marks_of_bytes, 1}, {values_of_every_form, 1},
		{caches_of_no_size, 1}, {memory_is_short, FORMS}, {chunks_may_be_too_large, FORMS},
		{bad_files_are_refused, 1}, {damaged_selections_do_no_harm, 1}, {damaged_files_do_no_harm, 1},
		{metadata, 1}, {metadata_of_any_order, 1}, {defined_elements_become_blocks, 1},
		{sections_can_be_too_large, 1}, {files_of_another_writer, 1})

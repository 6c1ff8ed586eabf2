/* New datasets of all shapes, types, layouts and filters: our writer writes them, and libhdf5 reads, resizes
 * and overwrites them in tests/judge/dataset_create_judge.py. */
#include "base/error.h"
#include "change/transaction.h"
#include "chunk_index/chunk_index.h"
#include "config.h"
#include "crash_image.h"
#include "dataset/create.h"
#include "dataset/rechunk.h"
#include "dataset/removal.h"
#include "dataset/writer.h"
#include "fault_alloc.h"
#include "object/group_write.h"
#include "object/numpy_parse.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

enum { INF = -1, TIME = 1700000000, ELEMENT_MOST = 64 };

/* A dataset, as the judge is told of it: types are NumPy's words. */
struct kind {
	const char *name, *type;
	int rank; /* -1: null */
	int dims[4], max[4], chunk[4];
	const char *filters;
	char layout;	   /* compact, contiguous (n), chunked */
	const char *index; /* with superblock 3 */
	bool fill;
};

#define TABLE "[[\"a\",\"<i4\"],[\"b\",\"<f8\",[3]],[\"c\",\"S4\"]]"

static const struct kind kinds[] = {
	{"scalar", "<f8", 0, {0}, {0}, {0}, "", 'n', NULL, false},
	{"null", "<f8", -1, {0}, {0}, {0}, "", 'n', NULL, false},
	{"compact", "<i2", 2, {3, 5}, {3, 5}, {0}, "", 'c', NULL, true},
	{"compact-large", "|u1", 1, {60000}, {60000}, {0}, "", 'c', NULL, false},
	{"contiguous", "<i4", 2, {30, 50}, {30, 50}, {0}, "", 'n', NULL, false},
	{"contiguous-filled", ">i4", 4, {2, 3, 4, 5}, {2, 3, 4, 5}, {0}, "", 'n', NULL, true},
	{"contiguous-empty", "<i4", 2, {0, 5}, {0, 5}, {0}, "", 'n', NULL, false},
	{"single", "<f4", 2, {20, 30}, {20, 30}, {20, 30}, "", 'k', "single", true},
	{"single-filtered", "<f4", 1, {1000}, {1000}, {1000}, "shuffle,deflate(4)", 'k', "single", false},
	{"array", "<u2", 2, {50, 20}, {50, 20}, {7, 20}, "", 'k', "farray", false},
	{"array-filtered", "<u2", 3, {5, 20, 2}, {9, 20, 2}, {2, 3, 2}, "fletcher32", 'k', "farray", true},
	{"bytes", "|u1", 1, {1024}, {INF}, {1024}, "", 'k', "earray", false},
	{"rows", "<f4", 3, {6, 16, 16}, {INF, 16, 16}, {4, 16, 16}, "lzf", 'k', "earray", true},
	{"empty", "<i8", 1, {0}, {INF}, {8192}, "shuffle,deflate", 'k', "earray", false},
	{"columns", "<i4", 2, {5, 7}, {5, INF}, {2, 3}, "", 'k', "earray", false},
	{"both", "<i4", 2, {5, 7}, {INF, INF}, {2, 3}, "deflate(9),fletcher32", 'k', "btree2", false},
	{"both-plain", "<i4", 4, {2, 3, 4, 5}, {INF, 9, INF, 5}, {1, 3, 2, 5}, "", 'k', "btree2", true},
	{"text", "S10", 1, {30}, {INF}, {16}, "", 'k', "earray", true},
	{"opaque", "V6", 1, {30}, {INF}, {16}, "", 'k', "earray", false},
	{"boolean", "|b1", 1, {30}, {INF}, {16}, "", 'k', "earray", true},
	{"complex", "<c16", 1, {30}, {INF}, {16}, "shuffle,lzf", 'k', "earray", false},
	{"table", TABLE, 1, {30}, {INF}, {16}, "", 'k', "earray", true},
	{"words", "vlen str", 1, {3}, {INF}, {16}, "", 'k', "earray", false},
#ifdef HAVE_ZSTD
	{"zstd", "<i4", 1, {1000}, {INF}, {100}, "zstd(5)", 'k', "earray", false},
#endif
#ifdef HAVE_LZ4
	{"lz4", "<i4", 1, {1000}, {INF}, {100}, "lz4", 'k', "earray", false},
#endif
#ifdef HAVE_BZIP2
	{"bzip2", "<i4", 1, {1000}, {INF}, {100}, "bzip2(3)", 'k', "earray", false},
#endif
#ifdef HAVE_BLOSC
	{"blosc", "<i4", 1, {1000}, {INF}, {100}, "blosc", 'k', "earray", false},
#endif
	{"bitshuffle", "<i4", 1, {1000}, {INF}, {100}, "bitshuffle", 'k', "earray", false},
	{"nbit", "<i4", 1, {1000}, {INF}, {100}, "nbit", 'k', "earray", true},
	{"nbit-table", TABLE, 1, {30}, {INF}, {16}, "nbit,shuffle", 'k', "earray", false},
	{"scaleoffset", "<i4", 1, {1000}, {INF}, {100}, "scaleoffset", 'k', "earray", true},
	{"scaleoffset-big",
	 ">u2",
	 2,
	 {50, 20},
	 {50, 20},
	 {7, 20},
	 "scaleoffset(16),deflate",
	 'k',
	 "farray",
	 false},
#ifdef HAVE_LIBAEC
	{"szip", "<i4", 1, {1000}, {INF}, {100}, "szip", 'k', "earray", true},
	{"szip-big", ">f8", 2, {50, 20}, {INF, 20}, {7, 20}, "szip(ec:16)", 'k', "earray", false},
	{"szip-bytes", "|u1", 2, {50, 20}, {INF, INF}, {7, 20}, "szip(nn:32)", 'k', "btree2", false},
#endif
#ifdef HAVE_LZO
	{"lzo", "<i4", 1, {1000}, {INF}, {100}, "lzo", 'k', "earray", false},
#endif
#ifdef HAVE_ZSTD
	{"vbz", "<i2", 1, {1000}, {INF}, {100}, "vbz", 'k', "earray", false},
	{"bitshuffle-zstd", "<i4", 1, {1000}, {INF}, {100}, "bitshuffle(zstd:3)", 'k', "earray", false},
#endif
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- making them ---- */

static uint64_t extent(int n)
{
	return n == INF ? H5_UNLIMITED : (uint64_t)n;
}

/* Sets all but the fill value; the type is the caller's. */
static void describe(const struct kind *kind, struct h5_new_dataset *how, struct h5_datatype **type)
{
	*how = (struct h5_new_dataset){.time = TIME};
	how->layout = kind->layout == 'c'   ? H5_LAYOUT_COMPACT
		      : kind->layout == 'n' ? H5_LAYOUT_CONTIGUOUS
					    : H5_LAYOUT_CHUNKED;
	how->space.kind = kind->rank < 0 ? H5_SPACE_NULL : kind->rank ? H5_SPACE_SIMPLE : H5_SPACE_SCALAR;
	how->space.rank = kind->rank < 0 ? 0 : (unsigned)kind->rank;
	for (unsigned i = 0; i < how->space.rank; i++) {
		how->space.dims[i] = extent(kind->dims[i]);
		how->space.max[i] = extent(kind->max[i]);
		how->chunk[i] = extent(kind->chunk[i]);
	}
	SUCCEEDS(h5_filter_list_parse(kind->filters, strlen(kind->filters), &how->filters));
	SUCCEEDS(h5_numpy_parse(kind->type, strlen(kind->type), 8, type));
	how->type = *type;
}

static uint8_t *fill_of(const struct kind *kind)
{
	static uint8_t fill[ELEMENT_MOST];

	memset(fill, !strcmp(kind->type, "|b1") ? 1 : 'f', sizeof fill);
	return kind->fill ? fill : NULL;
}

static int name_it(struct scratch *s, const char *name, uint64_t address)
{
	const struct h5_link link = {
		.type = H5_LINK_HARD, .name = name, .name_size = strlen(name), .address = address};

	return h5_group_insert(s->file, h5_file_superblock(s->file)->root, &link);
}

/* Overwrites all elements but the last row: then some of each kind have the fill value. */
static void write_rows(struct scratch *s, const struct kind *kind, uint64_t address)
{
	struct h5_dataset_writer *writer;
	uint64_t size;
	uint8_t *data;

	SUCCEEDS(h5_dataset_writer_get(s->file, address, false, &writer));
	size = h5_dataset_writer_size(writer);
	if (kind->rank > 0 && size)
		size -= h5_dataset_writer_row(writer);
	data = malloc((size_t)size + 1);
	ck_assert_ptr_nonnull(data);
	for (uint64_t i = 0; i < size; i++)
		data[i] = (uint8_t)(!strcmp(kind->type, "|b1") ? i % 2 : 33 + i % 89);
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, (size_t)size));
	h5_dataset_writer_put(writer);
	free(data);
}

static void check_made(struct scratch *s, const struct kind *kind, uint64_t address)
{
	bool latest = h5_file_superblock(s->file)->version == 3;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct h5_header header;

	SUCCEEDS(h5_header_load(s->file, address, &header));
	SUCCEEDS(h5_header_check(s->file, &header));
	h5_header_release(&header);
	SUCCEEDS(h5_dataset_get(s->file, address, &ref, &dataset));
	ck_assert_uint_eq(dataset->layout.version, latest ? 4 : 3);
	if (dataset->type->class == H5_CLASS_ENUM)
		ck_assert_uint_eq(dataset->type->version, latest ? 3 : 1);
	if (kind->layout == 'k')
		ck_assert_str_eq(h5_dataset_index_name(dataset), latest ? kind->index : "btree1");
	h5_file_put(s->file, ref);
}

static void make(struct scratch *s, const struct kind *kind, bool write)
{
	struct h5_new_dataset how;
	struct h5_datatype *type;
	uint64_t address;

	describe(kind, &how, &type);
	how.fill = fill_of(kind);
	SUCCEEDS(h5_dataset_create(s->file, &how, &address));
	check_made(s, kind, address);
	SUCCEEDS(name_it(s, kind->name, address));
	if (write && h5_datatype_is_fixed(type))
		write_rows(s, kind, address);
	h5_datatype_free(type);
}

/* ---- the judge ---- */

static void add_dims(FILE *f, int rank, const int *dims)
{
	for (int i = 0; i < rank; i++)
		fprintf(f, "%s%d", i ? "," : "", dims[i]);
	fputc('|', f);
}

/* Tells what there should be, a line for each dataset. */
static void tell(const char *path)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	for (unsigned k = 0; k < KINDS; k++) {
		const struct kind *kind = &kinds[k];

		fprintf(f, "%s %d %d ", kind->name, kind->rank, kind->fill);
		add_dims(f, kind->rank, kind->dims);
		add_dims(f, kind->rank, kind->max);
		add_dims(f, kind->layout == 'k' ? kind->rank : 0, kind->chunk);
		fprintf(f, " %s %s\n", *kind->filters ? kind->filters : "-", kind->type);
	}
	fclose(f);
}

static void begin(struct scratch *s, bool latest, struct fault_io *fault)
{
	scratch_init(s, latest ? "header_create-latest.h5" : "header_create-v18.h5");
	scratch_wrap(s, fault);
	scratch_open(s);
}

static void commit(struct scratch *s)
{
	SUCCEEDS(h5_tx_commit(s->file));
	h5_dataset_writers_close(s->file);
}

static void judge(struct scratch *s, const char *mode)
{
	char path[128];

	snprintf(path, sizeof path, "%s/expected", scratch_folder());
	tell(path);
	commit(s);
	scratch_close(s);
	scratch_judge_python("tests/judge/dataset_create_judge.py %s %s %s", mode, s->path, path);
}

/* Written by us, and changed by libhdf5. */
START_TEST(datasets_as_libhdf5_has_them)
{
	struct scratch s;

	begin(&s, _i % 2, NULL);
	for (unsigned k = 0; k < KINDS; k++)
		make(&s, &kinds[k], _i < 2);
	judge(&s, _i < 2 ? "written" : "empty");
	scratch_release(&s);
}
END_TEST

/* ---- small files stay small ---- */

START_TEST(small_files_stay_small)
{
	enum { FILES = 100, BYTES = 1024 };
	const struct kind kind = {"x", "|u1", 1, {BYTES}, {INF}, {BYTES}, "", 'k', "earray", false};
	uint64_t before, address;
	struct h5_new_dataset how;
	struct h5_datatype *type;
	char name[32];
	struct scratch s;

	begin(&s, true, NULL);
	before = h5_file_end(s.file);
	describe(&kind, &how, &type);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "file-%u.txt", i);
		SUCCEEDS(h5_dataset_create(s.file, &how, &address));
		SUCCEEDS(name_it(&s, name, address));
		write_rows(&s, &kind, address);
	}
	commit(&s);
	ck_assert_uint_le(h5_file_end(s.file) - before, 2048 * FILES);
	h5_datatype_free(type);
	scratch_release(&s);
}
END_TEST

/* ---- what is not possible ---- */

START_TEST(what_is_refused)
{
	static const struct kind refused[] = {
		{"", "<i4", 1, {5}, {4}, {4}, "", 'k', NULL, false},
		{"", "<i4", 1, {INF}, {INF}, {4}, "", 'k', NULL, false},
		{"", "<i4", 1, {5}, {INF}, {0}, "", 'n', NULL, false},
		{"", "<i4", 1, {5}, {5}, {0}, "shuffle", 'n', NULL, false},
		{"", "<i4", 1, {5}, {5}, {0}, "", 'k', NULL, false},
		{"", "<i4", 1, {5}, {5}, {6}, "", 'k', NULL, false},
		{"", "<i4", 0, {0}, {0}, {0}, "", 'k', NULL, false},
		{"", "<i4", 2, {5, 5}, {INF, INF}, {0x10000, 0x10000}, "", 'k', NULL, false},
		{"",
		 "<i4",
		 4,
		 {0x7fffffff, 0x7fffffff, 0x7fffffff, 1},
		 {INF, INF, INF, INF},
		 {1, 1, 1, 1},
		 "",
		 'k',
		 NULL,
		 false},
		{"", "<i4", 1, {20000}, {20000}, {0}, "", 'c', NULL, false},
	};
	uint64_t address, end;
	struct scratch s;

	begin(&s, _i, NULL);
	end = h5_file_end(s.file);
	for (unsigned k = 0; k < sizeof refused / sizeof *refused; k++) {
		struct h5_new_dataset how;
		struct h5_datatype *type;

		describe(&refused[k], &how, &type);
		ck_assert_int_eq(h5_dataset_create(s.file, &how, &address), -EINVAL);
		h5_datatype_free(type);
	}
	ck_assert_uint_eq(h5_file_end(s.file), end);
	scratch_release(&s);
}
END_TEST

/* The largest numbers that are possible, and one more. */
START_TEST(at_the_limits)
{
	const uint64_t far = UINT64_C(1) << 32;
	static const char
		rank[] = "a new dataset: a dataspace of this rank is not possible",
		bytes[] = "a new dataset: more than 2^63-1 bytes",
		large[] = "a new dataset: chunks of 4 GiB or more",
		chunk[] = "a new dataset: its chunks have a dimension of 0, or are larger than its maximum",
		header[] = "a new dataset: too large for the object header",
		message[] = "a new dataset: a message of its header is too large";
	const struct {
		const char *type;
		enum h5_layout_class layout;
		enum h5_dataspace_kind kind;
		unsigned rank;
		uint64_t dims[3], chunk[3];
		int rc;
		const char *text;
	} cases[] = {
		{"|u1", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 33, {1, 1, 1}, {1, 1, 1}, -EINVAL, rank},
		{"|u1", H5_LAYOUT_CHUNKED, H5_SPACE_SCALAR, 1, {1}, {1}, -EINVAL, rank},
		{"|u1", H5_LAYOUT_CONTIGUOUS, H5_SPACE_SIMPLE, 0, {0}, {0}, -EINVAL, rank},
		{"|u1", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 1, {INT64_MAX}, {1024}, 0, NULL},
		{"|u1", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 1, {far << 31}, {1024}, -EINVAL, bytes},
		{"|u1", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 2, {far, far}, {1, 1}, -EINVAL, bytes},
		{"<i8", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 1, {far << 30}, {1}, -EINVAL, bytes},
		{"|u1", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 1, {5}, {UINT32_MAX}, 0, NULL},
		{"|u1", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 1, {5}, {far}, -EINVAL, chunk},
		{"<i2", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 1, {5}, {far / 2}, -EINVAL, large},
		{"<i8", H5_LAYOUT_CHUNKED, H5_SPACE_SIMPLE, 2, {5, 5}, {far - 1, far - 1}, -EINVAL, large},
		{"|u1",
		 H5_LAYOUT_CHUNKED,
		 H5_SPACE_SIMPLE,
		 3,
		 {5, 5, 5},
		 {far - 1, far - 1, far - 1},
		 -EINVAL,
		 large},
		{"|u1", H5_LAYOUT_COMPACT, H5_SPACE_SIMPLE, 1, {65531}, {0}, 0, NULL},
		{"|u1", H5_LAYOUT_COMPACT, H5_SPACE_SIMPLE, 1, {65532}, {0}, -E2BIG, message},
		{"|u1", H5_LAYOUT_COMPACT, H5_SPACE_SIMPLE, 1, {65535}, {0}, -E2BIG, message},
		{"|u1", H5_LAYOUT_COMPACT, H5_SPACE_SIMPLE, 1, {65536}, {0}, -EINVAL, header},
	};
	uint64_t address, end;
	struct scratch s;

	begin(&s, true, NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_new_dataset how = {.time = TIME, .layout = cases[i].layout};
		struct h5_datatype *type;
		int rc;

		how.space.kind = cases[i].kind;
		how.space.rank = cases[i].rank;
		for (unsigned k = 0; k < 3; k++) {
			how.space.dims[k] = how.space.max[k] = cases[i].dims[k];
			if (cases[i].layout == H5_LAYOUT_CHUNKED)
				how.space.max[k] = H5_UNLIMITED;
			how.chunk[k] = cases[i].chunk[k];
		}
		SUCCEEDS(h5_numpy_parse(cases[i].type, strlen(cases[i].type), 8, &type));
		how.type = type;
		end = h5_file_end(s.file);
		rc = h5_dataset_create(s.file, &how, &address);
		ck_assert_msg(rc == cases[i].rc, "case %zu: %d %s", i, rc, h5_error_last()->text);
		if (rc) {
			ck_assert_str_eq(h5_error_last()->text, cases[i].text);
			ck_assert_uint_eq(h5_file_end(s.file), end);
		}
		h5_datatype_free(type);
	}
	scratch_release(&s);
}
END_TEST

/* ---- faults ---- */

START_TEST(every_allocation_can_fail)
{
	unsigned failures = 0;
	struct scratch s;

	begin(&s, _i, NULL);
	for (unsigned k = 0; k < KINDS; k++) {
		struct h5_new_dataset how;
		struct h5_datatype *type;
		int rc = -ENOMEM;

		describe(&kinds[k], &how, &type);
		how.fill = fill_of(&kinds[k]);
		for (unsigned long n = 1; rc; n++) {
			uint64_t address;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_dataset_create(s.file, &how, &address);
			fault_alloc_count(false);
			fault_alloc_disarm();
			ck_assert(!rc || rc == -ENOMEM);
			failures += rc != 0;
			if (!rc)
				SUCCEEDS(name_it(&s, kinds[k].name, address));
		}
		h5_datatype_free(type);
	}
	ck_assert_uint_gt(failures, 3 * KINDS);
	judge(&s, "empty");
	scratch_release(&s);
}
END_TEST

static int define(struct scratch *s, const struct kind *kind, uint64_t address)
{
	struct h5_new_dataset how;
	struct h5_datatype *type;
	bool counts = fault_alloc_count(false);
	int rc;

	describe(kind, &how, &type);
	how.fill = fill_of(kind);
	fault_alloc_count(counts);
	rc = h5_dataset_define(s->file, address, &how);
	fault_alloc_count(false);
	h5_datatype_free(type);
	return rc;
}

static const char *layout_of(struct scratch *s, uint64_t address)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	const char *name;

	SUCCEEDS(h5_dataset_get(s->file, address, &ref, &dataset));
	name = h5_dataset_layout_name(dataset);
	h5_file_put(s->file, ref);
	return name;
}

/* Each name leads to a dataset of another kind. */
static void make_others(struct scratch *s, uint64_t addresses[KINDS])
{
	for (unsigned k = 0; k < KINDS; k++) {
		struct h5_new_dataset how;
		struct h5_datatype *type;

		describe(&kinds[(k + 7) % KINDS], &how, &type);
		SUCCEEDS(h5_dataset_create(s->file, &how, &addresses[k]));
		SUCCEEDS(name_it(s, kinds[k].name, addresses[k]));
		h5_datatype_free(type);
	}
}

/* Each dataset becomes the next one, from committed space or new one; what fails changes nothing. */
START_TEST(datasets_defined_anew)
{
	uint64_t addresses[KINDS];
	unsigned failures = 0;
	struct scratch s;

	begin(&s, _i % 2, NULL);
	make_others(&s, addresses);
	if (_i < 2)
		SUCCEEDS(h5_tx_commit(s.file));
	for (unsigned k = 0; k < KINDS; k++) {
		const char *before = layout_of(&s, addresses[k]);
		int rc = -ENOMEM;

		for (unsigned long n = 1; rc; n++) {
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = define(&s, &kinds[k], addresses[k]);
			fault_alloc_disarm();
			ck_assert(!rc || rc == -ENOMEM);
			ck_assert(!rc || layout_of(&s, addresses[k]) == before);
			failures += rc != 0;
		}
		check_made(&s, &kinds[k], addresses[k]);
	}
	ck_assert_uint_gt(failures, 3 * KINDS);
	judge(&s, "empty");
	scratch_release(&s);
}
END_TEST

static void read_all(struct scratch *s, uint64_t address, uint8_t *data, size_t n)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_tx_settle(s->file));
	SUCCEEDS(h5_dataset_get(s->file, address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, n);
	SUCCEEDS(h5_dataset_read(dataset, 0, data, n));
	h5_file_put(s->file, ref);
}

/* A dataset with data has other chunks than it shall have; each allocation of the change fails. */
static unsigned rechunk(struct scratch *s, const struct kind *kind, uint64_t address)
{
	static uint8_t before[1 << 16], after[1 << 16];
	uint64_t chunk[4] = {0};
	struct h5_dataset_writer *writer;
	unsigned failures = 0;
	int rc = -ENOMEM;
	size_t n;

	SUCCEEDS(h5_dataset_writer_get(s->file, address, false, &writer));
	n = (size_t)h5_dataset_writer_size(writer);
	ck_assert_uint_le(n, sizeof before);
	read_all(s, address, before, n);
	for (int i = 0; i < kind->rank; i++)
		chunk[i] = extent(kind->chunk[i]);
	for (unsigned long k = 1; rc; k += 1 + k / 8) {
		fault_alloc_arm(k);
		fault_alloc_count(true);
		rc = h5_dataset_rechunk(s->file, address, chunk);
		fault_alloc_count(false);
		fault_alloc_disarm();
		ck_assert(!rc || rc == -ENOMEM);
		read_all(s, address, after, n);
		ck_assert(!memcmp(before, after, n));
		failures += rc != 0;
	}
	SUCCEEDS(h5_dataset_writer_ready(writer));
	h5_dataset_writer_put(writer);
	return failures;
}

START_TEST(chunks_of_another_shape)
{
	enum { LATEST = 1, COMMITTED = 2, FILLED = 4 /* no element is written */ };
	unsigned failures = 0;
	struct scratch s;

	begin(&s, _i & LATEST, NULL);
	for (unsigned k = 0; k < KINDS; k++) {
		struct kind other = kinds[k];
		struct h5_datatype *type;
		struct h5_new_dataset how;
		uint64_t address;
		bool fits;

		describe(&kinds[k], &how, &type);
		fits = kinds[k].layout == 'k' && h5_datatype_is_fixed(type);
		h5_datatype_free(type);
		for (int i = 0; i < other.rank && fits; i++)
			other.chunk[i] = (other.chunk[i] + 1) / 2;
		describe(&other, &how, &type);
		how.fill = fill_of(&other);
		SUCCEEDS(h5_dataset_create(s.file, &how, &address));
		SUCCEEDS(name_it(&s, other.name, address));
		if (h5_datatype_is_fixed(type) && !(_i & FILLED))
			write_rows(&s, &other, address);
		h5_datatype_free(type);
		if (_i & COMMITTED)
			SUCCEEDS(h5_tx_commit(s.file));
		if (fits)
			failures += rechunk(&s, &kinds[k], address);
	}
	ck_assert_uint_gt(failures, 3 * KINDS);
	judge(&s, _i & FILLED ? "empty" : "written");
	scratch_release(&s);
}
END_TEST

/* Objects that are changed and removed before the commit, new ones and (`_i`) older ones. */
START_TEST(written_and_removed)
{
	uint64_t addresses[KINDS];
	struct scratch s;

	begin(&s, true, NULL);
	for (unsigned k = 0; k < KINDS; k++) {
		struct h5_new_dataset how;
		struct h5_datatype *type;

		describe(&kinds[k], &how, &type);
		SUCCEEDS(h5_dataset_create(s.file, &how, &addresses[k]));
		h5_datatype_free(type);
	}
	if (_i)
		SUCCEEDS(h5_tx_commit(s.file));
	for (unsigned k = 0; k < KINDS; k++) {
		if (strcmp(kinds[k].type, "vlen str"))
			write_rows(&s, &kinds[k], addresses[k]);
		SUCCEEDS(h5_tx_settle(s.file));
		SUCCEEDS(h5_object_remove(s.file, addresses[k]));
	}
	make(&s, &kinds[0], true);
	commit(&s);
	scratch_close(&s);
	scratch_own_judge("h5ls %s | grep -q scalar", s.path);
	scratch_release(&s);
}
END_TEST

/* After a kill each name leads to a sound dataset. `_i` 0 and 1: new datasets; 2 and 3: datasets that are
 * defined anew. */
START_TEST(killed_between_cells)
{
	struct fault_io record = {.record = true};
	struct crash_image image = {0};
	uint64_t addresses[KINDS] = {0};
	char prefix[128];
	struct scratch s;

	begin(&s, _i % 2, &record);
	if (_i >= 2)
		make_others(&s, addresses);
	commit(&s);
	crash_image_load(&image, s.path);
	fault_io_release(&record);
	for (unsigned k = 0; k < KINDS; k++)
		if (_i >= 2)
			SUCCEEDS(define(&s, &kinds[k], addresses[k]));
		else
			make(&s, &kinds[k], true);
	commit(&s);
	snprintf(prefix, sizeof prefix, "%s/state", scratch_folder());
	ck_assert_uint_gt(crash_image_save_states(&image, &record, prefix), 1);
	scratch_own_judge_python("tests/judge/dataset_create_judge.py states %s %d", scratch_folder(), KINDS);
	free(image.data);
	scratch_release(&s);
	fault_io_release(&record);
}
END_TEST

UNIT_MAIN_LOOPS("dataset_create", {datasets_as_libhdf5_has_them, 4}, {small_files_stay_small, 1},
		{what_is_refused, 2}, {at_the_limits, 1}, {every_allocation_can_fail, 2},
		{datasets_defined_anew, 4}, {chunks_of_another_shape, 8}, {written_and_removed, 2},
		{killed_between_cells, 4})

/* Datasets at their bounds: messages and indexes that claim more than there is or can be, and memory or files
 * that fail in the midst of a change. Nothing is written elsewhere, nothing is lost, and no space leaks. */
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/reshape.h"
#include "dataset/take_over.h"
#include "dataset/whole_chunk.h"
#include "dataset_model.h"
#include "fault_alloc.h"
#include "object/numpy_parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- messages that lie ---- */

/* Bytes of a message's body that become others. */
struct patch {
	size_t at; /* from the end, if `back` */
	bool back;
	uint64_t value;
	unsigned n;
};

static int patch_body(const void *arg, uint8_t *body, size_t n)
{
	const struct patch *p = arg;

	ck_assert_uint_le(p->at + p->n, n);
	h5_uint_to(body + (p->back ? n - p->n - p->at : p->at), p->value, p->n);
	return 0;
}

static void patch_message(struct model_run *r, const char *name, enum h5_message_type type, struct patch p)
{
	SUCCEEDS(h5_header_update(r->scratch.file, model_find(r, name)->address, type, patch_body, &p));
}

/* The dimension, or the maximum (rank + i), of a dataspace message of version 2. */
static void patch_dim(struct model_run *r, const char *name, unsigned i, uint64_t value)
{
	patch_message(r, name, H5_MSG_DATASPACE, (struct patch){4 + 8 * (size_t)i, false, value, 8});
}

static int read_rc(struct model_run *r, const char *name, uint64_t offset, size_t n)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint8_t data[64];
	int rc;

	SUCCEEDS(h5_dataset_get(r->scratch.file, model_find(r, name)->address, &ref, &dataset));
	rc = h5_dataset_read(dataset, offset, data, n);
	h5_file_put(r->scratch.file, ref);
	return rc;
}

static int write_rc(struct model_run *r, const char *name, uint64_t offset, size_t n)
{
	struct h5_dataset_writer *writer;
	const uint8_t data[64] = {0};
	int rc = h5_dataset_writer_get(r->scratch.file, model_find(r, name)->address, true, &writer);

	if (rc)
		return rc;
	rc = h5_dataset_writer_write(writer, offset, data, n);
	h5_dataset_writer_close(writer);
	return rc;
}

static void refused(int rc, int error, const char *text)
{
	ck_assert_int_eq(rc, error);
	ck_assert_str_eq(h5_error_last()->text, text);
}

START_TEST(no_byte_beyond_the_end)
{
	const char *const text = "dataset: read beyond its end";
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct model_run r;

	model_begin(&r, "latest", 1);
	SUCCEEDS(read_rc(&r, "matrix", 251, 1));
	SUCCEEDS(read_rc(&r, "matrix", 252, 0));
	refused(read_rc(&r, "matrix", 252, 1), -EINVAL, text);
	refused(read_rc(&r, "matrix", 251, 2), -EINVAL, text);
	refused(read_rc(&r, "matrix", 253, 0), -EINVAL, text);
	refused(h5_dataset_get(r.scratch.file, h5_file_superblock(r.scratch.file)->root, &ref, &dataset),
		-EUCLEAN, "object: not a dataset");
	model_end(&r);
}
END_TEST

/* A compact dataset with a byte less than its dataspace needs. */
START_TEST(compact_data_that_are_not_there)
{
	const char *const text = "dataset: 35 bytes are stored of 36";
	struct model_run r;

	model_begin(&r, "latest", 1);
	patch_message(&r, "compact", H5_MSG_LAYOUT, (struct patch){2, false, 35, 2});
	SUCCEEDS(read_rc(&r, "compact", 25, 10));
	SUCCEEDS(write_rc(&r, "compact", 25, 10));
	refused(read_rc(&r, "compact", 25, 11), -EUCLEAN, text);
	refused(write_rc(&r, "compact", 25, 11), -EUCLEAN, text);
	model_end(&r);
}
END_TEST

/* The second of two external files, which has the bytes from 70 on, begins at almost 2^64. */
START_TEST(offsets_in_external_files)
{
	const char *const text = "dataset: an offset in an external file is too large";
	struct model_run r;

	model_begin(&r, "latest", 1);
	patch_message(&r, "external", H5_MSG_EXTERNAL_FILES,
		      (struct patch){16 + 24 + 8, false, UINT64_MAX - 9, 8});
	SUCCEEDS(read_rc(&r, "external", 60, 20));
	refused(read_rc(&r, "external", 80, 1), -EUCLEAN, text);
	refused(write_rc(&r, "external", 80, 1), -EUCLEAN, text);
	model_end(&r);
}
END_TEST

/* Rows, and all of a dataset, are counted in numbers below 2^63. */
START_TEST(sizes_beyond_63_bits)
{
	struct h5_dataset_writer *writer;
	struct model_run r;

	model_begin(&r, "latest", 1);
	patch_dim(&r, "late", 0, UINT64_C(1) << 40);
	patch_dim(&r, "late", 1, UINT64_C(1) << 40);
	refused(read_rc(&r, "late", 0, 1), -EOVERFLOW, "dataset: more than 2^63-1 bytes");
	refused(write_rc(&r, "late", 0, 1), -EOVERFLOW, "dataset: more than 2^63-1 bytes");
	/* Elements of 4 bytes, in no rows. */
	patch_dim(&r, "empty", 1, UINT64_C(1) << 62);
	refused(write_rc(&r, "empty", 0, 0), -EOVERFLOW, "dataset: rows of more than 2^63-1 bytes");
	patch_dim(&r, "empty", 1, UINT64_C(1) << 61);
	refused(write_rc(&r, "empty", 0, 0), -EOVERFLOW, "dataset: rows of more than 2^63-1 bytes");
	patch_dim(&r, "empty", 1, (UINT64_C(1) << 61) - 1);
	SUCCEEDS(h5_dataset_writer_get(r.scratch.file, model_find(&r, "empty")->address, false, &writer));
	ck_assert_uint_eq(h5_dataset_writer_row(writer), INT64_MAX - 3);
	h5_dataset_writer_close(writer);
	/* Of 7 bytes, which divide 2^63-1 */
	patch_message(&r, "empty", H5_MSG_DATATYPE, (struct patch){4, false, 7, 4});
	patch_dim(&r, "empty", 1, INT64_MAX / 7);
	SUCCEEDS(h5_dataset_writer_get(r.scratch.file, model_find(&r, "empty")->address, false, &writer));
	ck_assert_uint_eq(h5_dataset_writer_row(writer), INT64_MAX);
	h5_dataset_writer_close(writer);
	model_end(&r);
}
END_TEST

/* The only chunk of a dataset, of 816 bytes, lies at the end of the file, or a part of it. */
START_TEST(chunks_beyond_the_file)
{
	static const struct {
		unsigned before; /* bytes from the chunk's begin to the end of the file */
		bool refused;
	} cases[] = {{0, true}, {1, true}, {815, true}, {816, false}, {817, false}};
	struct model_run r;
	uint64_t end;

	model_begin(&r, "latest", 1);
	end = h5_file_end(r.scratch.file);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		int rc;

		patch_message(&r, "single", H5_MSG_LAYOUT, (struct patch){0, true, end - cases[i].before, 8});
		rc = write_rc(&r, "single", 0, 1);
		if (cases[i].refused)
			refused(rc, -EUCLEAN, "chunk: it reaches beyond the file");
		else
			SUCCEEDS(rc);
	}
	/* A filtered one of no bytes. The layout message ends with its size, its filter mask and its address.
	 */
	patch_message(&r, "single_gzip", H5_MSG_LAYOUT, (struct patch){12, true, 0, 8});
	patch_message(&r, "single_gzip", H5_MSG_LAYOUT, (struct patch){0, true, end, 8});
	refused(write_rc(&r, "single_gzip", 0, 1), -EUCLEAN, "chunk: it reaches beyond the file");
	ck_assert_uint_eq(h5_file_end(r.scratch.file), end);
	model_end(&r);
}
END_TEST

START_TEST(shapes_beyond_the_maximum)
{
	static const struct {
		const char *name;
		uint64_t dims[2];
		const char *text; /* NULL: it can have this shape */
	} cases[] = {
		{"second", {30, 14}, NULL},
		{"second", {31, 14}, "dataset: dimension 0 is larger than its maximum"},
		{"bounded", {6, 14}, "dataset: dimension 1 is larger than its maximum"},
		{"both", {9, H5_UNLIMITED}, "dataset: dimension 1 is larger than its maximum"},
		{"both", {UINT64_C(1) << 32, UINT64_C(1) << 32}, "dataset: more than 2^63-1 bytes"},
		{"both", {UINT64_C(1) << 31, UINT64_C(1) << 31}, "dataset: more than 2^63-1 bytes"},
		{"both", {UINT64_C(1) << 30, UINT64_C(1) << 31}, "dataset: more than 2^63-1 bytes"},
		{"both", {(UINT64_C(1) << 30) - 1, UINT64_C(1) << 31}, NULL},
	};
	struct model_run r;

	model_begin(&r, "latest", 1);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_dataset_writer *writer = model_writer(&r, model_find(&r, cases[i].name));
		uint64_t size = h5_dataset_writer_size(writer);
		int rc = h5_dataset_reshape(writer, cases[i].dims);

		if (!cases[i].text) {
			SUCCEEDS(rc);
			continue;
		}
		refused(rc, -EINVAL, cases[i].text);
		ck_assert_uint_eq(h5_dataset_writer_size(writer), size);
	}
	model_end(&r);
}
END_TEST

START_TEST(files_that_are_not_written)
{
	struct h5_dataset_writer *writer;
	struct model_run r;
	uint64_t address;

	model_begin(&r, "latest", 1);
	address = model_find(&r, "matrix")->address;
	/* A dataset whose data lie in other files takes over no other dataset's. */
	refused(h5_dataset_take_over(r.scratch.file, model_find(&r, "external")->address, address), -EPERM,
		"its data are elsewhere");
	refused(h5_dataset_take_over(r.scratch.file, model_find(&r, "virtual")->address, address), -EPERM,
		"its data are elsewhere");
	refused(h5_dataset_take_over(r.scratch.file, h5_file_superblock(r.scratch.file)->root, address),
		-EUCLEAN, "object: not a dataset");
	refused(h5_dataset_take_over(r.scratch.file, address, h5_file_superblock(r.scratch.file)->root),
		-EUCLEAN, "object: not a dataset");
	model_compare_all(&r);
	model_close(&r);
	r.scratch.options.writable = false;
	scratch_open(&r.scratch);
	refused(h5_dataset_writer_get(r.scratch.file, address, false, &writer), -EROFS,
		"the file is open for reading only");
	model_end(&r);
}
END_TEST

/* ---- many external files: the linker leads fdatasync() here ---- */

enum { SLOTS = 40, OPEN_MOST = 16 };

int __wrap_fdatasync(int fd);

static unsigned synced;
static bool sync_fails;

int __wrap_fdatasync(int fd)
{
	(void)fd;
	if (sync_fails) {
		errno = EIO;
		return -1;
	}
	synced++;
	return 0;
}

/* "external", with slots of 4 bytes each in its first file. */
static struct h5_dataset_writer *begin_slots(struct model_run *r)
{
	uint8_t body[16 + SLOTS * 24];
	struct h5_new_message new = {.type = H5_MSG_EXTERNAL_FILES, .body = body, .size = sizeof body};
	const struct h5_message *old;
	struct h5_header header;
	struct model *m;

	model_begin(r, "latest", 1);
	m = model_find(r, "external");
	ck_assert_uint_eq(m->size, SLOTS * 4);
	SUCCEEDS(h5_header_load(r->scratch.file, m->address, &header));
	old = h5_header_find(&header, H5_MSG_EXTERNAL_FILES);
	ck_assert_ptr_nonnull(old);
	memcpy(body, old->data, 16 + 24);
	h5_uint_to(body + 4, SLOTS, 2);
	h5_uint_to(body + 6, SLOTS, 2);
	for (unsigned i = 0; i < SLOTS; i++) {
		memcpy(body + 16 + i * 24, body + 16, 8);
		h5_uint_to(body + 16 + i * 24 + 8, 4 + 4 * i, 8);
		h5_uint_to(body + 16 + i * 24 + 16, 4, 8);
	}
	SUCCEEDS(h5_header_set(r->scratch.file, m->address, old, &new));
	h5_header_release(&header);
	SUCCEEDS(h5_tx_commit(r->scratch.file));
	SUCCEEDS(h5_dataset_writer_get(r->scratch.file, m->address, true, &m->writer));
	synced = 0;
	sync_fails = false;
	return m->writer;
}

/* Few files are open at a time, and each is synced before it is closed. */
START_TEST(many_external_files)
{
	struct model_run r;
	struct h5_dataset_writer *writer = begin_slots(&r);
	struct model *m = model_find(&r, "external");
	unsigned before = unit_descriptors();

	for (size_t i = 0; i < m->size; i++)
		m->data[i] = (uint8_t)(i * 3 + 1);
	SUCCEEDS(h5_dataset_writer_write(writer, 0, m->data, OPEN_MOST * 4));
	ck_assert_uint_eq(unit_descriptors(), before + OPEN_MOST);
	ck_assert_uint_eq(synced, 0);
	sync_fails = true;
	ck_assert_int_eq(h5_dataset_writer_write(writer, OPEN_MOST * 4, m->data, 1), -EIO);
	ck_assert_int_eq(h5_dataset_writer_settle(writer), -EIO);
	ck_assert_uint_eq(unit_descriptors(), before + OPEN_MOST);
	ck_assert(h5_dataset_writer_is_dirty(writer));
	sync_fails = false;
	SUCCEEDS(h5_dataset_writer_write(writer, 0, m->data, m->size));
	ck_assert_uint_eq(synced, 2 * OPEN_MOST);
	ck_assert_uint_eq(unit_descriptors(), before + SLOTS - 2 * OPEN_MOST);
	SUCCEEDS(h5_dataset_writer_settle(writer));
	ck_assert_uint_eq(synced, SLOTS);
	ck_assert_uint_eq(unit_descriptors(), before);
	model_compare(&r, m);
	model_end(&r);
}
END_TEST

/* ---- storage of all chunks at once ---- */

/* New rows; and new columns, too. */
static const uint64_t filled[][2] = {{4, 10}, {4, 12}};

/* A dataset with an implicit index and no storage has no rows, and 10 columns instead of 13. */
static struct h5_dataset_writer *begin_without_rows(struct model_run *r)
{
	static const uint64_t empty[] = {0, 10};
	struct h5_dataset_writer *writer;

	model_begin(r, "latest", 1);
	writer = model_writer(r, model_find(r, "early_none"));
	SUCCEEDS(h5_dataset_reshape(writer, empty));
	SUCCEEDS(h5_tx_commit(r->scratch.file));
	ck_assert_uint_eq(h5_dataset_writer_dataset(writer)->layout.chunked.address, H5_UNDEF);
	return writer;
}

/* All elements have the fill value, in chunks of 4 x 5. */
static void check_filled(struct model_run *r, const uint64_t *dims)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint32_t data[4 * 12];
	uint64_t elements = dims[0] * dims[1], bytes;

	SUCCEEDS(h5_tx_settle(r->scratch.file));
	SUCCEEDS(h5_dataset_get(r->scratch.file, model_find(r, "early_none")->address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, elements * sizeof *data);
	ck_assert_mem_eq(dataset->space.dims, dims, 2 * sizeof *dims);
	SUCCEEDS(h5_dataset_read(dataset, 0, data, (size_t)dataset->size));
	for (unsigned i = 0; i < elements; i++)
		ck_assert_uint_eq(h5_uint_from((const uint8_t *)&data[i], 4), 3);
	SUCCEEDS(h5_dataset_storage(dataset, &bytes));
	ck_assert_uint_eq(bytes, (dims[1] + 4) / 5 * 80);
	h5_file_put(r->scratch.file, ref);
}

/* The n-th allocation, or call to write, fails while a new shape needs all chunks: 10 x 3 of 80 bytes, as the
 * maximum has it. Then there are none, and their space is free again, if there is memory to note that. Sets
 * where the file ends after the change. False: none fails. */
static bool fill_with_fault(const uint64_t *dims, unsigned long n, bool memory, uint64_t *end)
{
	struct model_run r;
	struct h5_dataset_writer *writer = begin_without_rows(&r);
	bool failed;
	int rc;

	if (memory)
		fault_alloc_arm(n);
	else
		fault_io_arm(&r.fault, n);
	r.fault.error = -ENOSPC;
	fault_alloc_count(true);
	rc = h5_dataset_reshape(writer, dims);
	fault_alloc_count(false);
	failed = memory ? fault_alloc_disarm() : fault_io_disarm(&r.fault);
	if (rc) {
		ck_assert(failed);
		ck_assert_int_eq(rc, memory ? -ENOMEM : -ENOSPC);
		SUCCEEDS(h5_dataset_writer_ready(writer));
		ck_assert_uint_eq(h5_dataset_writer_size(writer), 0);
		SUCCEEDS(h5_dataset_reshape(writer, dims));
	}
	check_filled(&r, dims);
	SUCCEEDS(h5_tx_commit(r.scratch.file));
	*end = h5_file_end(r.scratch.file);
	model_close(&r);
	scratch_open(&r.scratch);
	check_filled(&r, dims);
	model_end(&r);
	return failed;
}

START_TEST(a_new_shape_stores_all_chunks)
{
	uint64_t whole, end;
	unsigned long n;

	ck_assert(!fill_with_fault(filled[_i], 0, false, &whole));
	for (unsigned memory = 0; memory < 2; memory++) {
		for (n = 1; fill_with_fault(filled[_i], n, memory, &end); n++)
			ck_assert_uint_le(end, whole + (memory ? 10 * 3 * 80 : 0));
		ck_assert_uint_gt(n, 1);
	}
}
END_TEST

/* All chunks that the maximum allows are more than a file can have, or than there can be. */
START_TEST(too_many_chunks_to_store)
{
	static const struct {
		uint64_t rows;
		int error;
		const char *text;
	} cases[] = {{UINT64_C(1) << 62, -EUCLEAN, "dataset: more than 2^64 bytes of chunks"},
		     {UINT64_C(1) << 58, -ENOSPC, "the file has no more addresses"}};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_dataset_writer *writer;
		struct model_run r;
		uint64_t end;

		model_begin(&r, "latest", 1);
		end = h5_file_end(r.scratch.file);
		patch_dim(&r, "early_none", 2, cases[i].rows);
		writer = model_writer(&r, model_find(&r, "early_none"));
		refused(h5_dataset_writer_resize(writer, 1), cases[i].error, cases[i].text);
		ck_assert_uint_eq(h5_dataset_writer_size(writer), 0);
		ck_assert_uint_eq(h5_file_end(r.scratch.file), end);
		model_end(&r);
	}
}
END_TEST

/* All chunks of a larger shape are stored; what the index needed before is used again. */
START_TEST(blocks_of_the_index_are_used_again)
{
	static const uint64_t small[] = {9, 13}, large[] = {21, 73};
	struct h5_dataset_writer *writer;
	struct model_run r;
	uint64_t end = 0;

	model_begin(&r, _i ? "latest" : "earliest", 1);
	writer = model_writer(&r, model_find(&r, "early_second"));
	for (unsigned round = 0; round < 12; round++) {
		SUCCEEDS(h5_dataset_reshape(writer, large));
		SUCCEEDS(h5_tx_commit(r.scratch.file));
		SUCCEEDS(h5_dataset_reshape(writer, small));
		SUCCEEDS(h5_tx_commit(r.scratch.file));
		if (round == 5)
			end = h5_file_end(r.scratch.file);
	}
	ck_assert_uint_eq(h5_file_end(r.scratch.file), end);
	model_end(&r);
}
END_TEST

/* A shape without elements needs no storage. */
START_TEST(an_empty_shape_stores_nothing)
{
	static const uint64_t wide[] = {0, 12};
	struct model_run r;
	struct h5_dataset_writer *writer = begin_without_rows(&r);
	uint64_t end = h5_file_end(r.scratch.file);

	SUCCEEDS(h5_dataset_reshape(writer, wide));
	ck_assert_uint_eq(h5_dataset_writer_dataset(writer)->layout.chunked.address, H5_UNDEF);
	ck_assert_uint_eq(h5_file_end(r.scratch.file), end);
	model_end(&r);
}
END_TEST

/* ---- chunks that are too large for memory ---- */

enum { LARGE_ROWS = 1 << 16, LARGE_ROW = 3 * 8 };

static void check_large(struct model_run *r, uint64_t rows, const uint8_t *bytes)
{
	static const uint8_t fill[] = {0, 0, 0, 0, 0, 0, 4, 0x40}; /* 2.5 */
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	size_t n = (size_t)(rows - LARGE_ROWS) * LARGE_ROW;
	uint8_t *data = malloc(n);
	uint64_t stored;

	SUCCEEDS(h5_tx_settle(r->scratch.file));
	SUCCEEDS(h5_dataset_get(r->scratch.file, model_find(r, "large")->address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, rows * LARGE_ROW);
	SUCCEEDS(h5_dataset_read(dataset, LARGE_ROWS * LARGE_ROW, data, n));
	ck_assert(!memcmp(data, bytes ? bytes : fill, 8));
	for (size_t i = 8; i < n; i++)
		ck_assert_uint_eq(data[i], fill[i % 8]);
	SUCCEEDS(h5_dataset_storage(dataset, &stored));
	ck_assert_uint_eq(stored, 2 * LARGE_ROWS * LARGE_ROW);
	h5_file_put(r->scratch.file, ref);
	free(data);
}

/* The first bytes, or with early allocation the first rows, of a large chunk: the rest has the fill value. */
START_TEST(a_large_chunk_is_stored_at_once)
{
	static const uint8_t bytes[8] = "eight by";
	const uint64_t rows = LARGE_ROWS + 10;
	bool early = _i, failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct h5_dataset_writer *writer;
		struct model_run r;
		int rc;

		model_begin(&r, "latest", 1);
		if (early) /* the space allocation time of a fill value message of version 3 */
			patch_message(&r, "large", H5_MSG_FILL_VALUE, (struct patch){1, false, 0x29, 1});
		SUCCEEDS(h5_dataset_writer_get(r.scratch.file, model_find(&r, "large")->address, false,
					       &writer));
		ck_assert_int_eq(h5_dataset_writer_dataset(writer)->early, early);
		if (!early)
			SUCCEEDS(h5_dataset_writer_resize(writer, rows));
		fault_io_arm(&r.fault, n);
		r.fault.error = -ENOSPC;
		rc = early ? h5_dataset_writer_resize(writer, rows)
			   : h5_dataset_writer_write(writer, LARGE_ROWS * LARGE_ROW, bytes, sizeof bytes);
		failed = fault_io_disarm(&r.fault);
		ck_assert_int_eq(rc, failed ? -ENOSPC : 0);
		ck_assert_uint_eq(h5_dataset_writer_size(writer), (failed && early ? 7 : rows) * LARGE_ROW);
		if (failed && early)
			SUCCEEDS(h5_dataset_writer_resize(writer, rows));
		else if (failed)
			SUCCEEDS(
				h5_dataset_writer_write(writer, LARGE_ROWS * LARGE_ROW, bytes, sizeof bytes));
		check_large(&r, rows, early ? NULL : bytes);
		h5_dataset_writer_close(writer);
		model_end(&r);
	}
}
END_TEST

/* ---- memory that is short ---- */

/* What a writer holds is looked at while memory is short. */
START_TEST(looking_at_what_is_held)
{
	struct h5_dataset_writer *writer;
	unsigned failures = 0;
	struct model_run r;
	struct model *m;
	uint8_t *data;
	int rc = -ENOMEM;

	model_begin(&r, "latest", 1);
	m = model_find(&r, "nothing");
	data = malloc(m->size);
	writer = model_writer(&r, m);
	for (unsigned long n = 1; rc; n++) {
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_dataset_writer_peek(writer, data, m->size);
		fault_alloc_count(false);
		fault_alloc_disarm();
		ck_assert(!rc || rc == -ENOMEM);
		failures += rc != 0;
	}
	ck_assert_uint_gt(failures, 5);
	ck_assert_mem_eq(data, m->data, m->size);
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, m->size));
	SUCCEEDS(h5_dataset_writer_settle(writer));
	ck_assert_int_eq(h5_dataset_writer_peek(writer, data, m->size), -ENODATA);
	free(data);
	model_end(&r);
}
END_TEST

/* Memory is short while the last chunks are stored again, filtered no more. */
START_TEST(edges_are_stored_again)
{
	unsigned failures = 0;
	struct model_run r;
	struct model *m;
	int rc = -ENOMEM;

	model_begin(&r, "edges", 1);
	m = model_find(&r, "edges");
	for (unsigned long n = 1; rc; n++) {
		struct h5_dataset_writer *writer = model_writer(&r, m);

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_dataset_writer_resize(writer, 7);
		fault_alloc_count(false);
		fault_alloc_disarm();
		ck_assert(!rc || rc == -ENOMEM);
		failures += rc != 0;
		if (!rc)
			model_set_rows(m, 7);
		SUCCEEDS(h5_dataset_writer_ready(writer));
		model_compare(&r, m);
		h5_dataset_writer_close(writer);
		m->writer = NULL;
	}
	ck_assert_uint_gt(failures, 5);
	model_resize(&r, m, 12);
	model_compare(&r, m);
	model_reopen(&r);
	model_end(&r);
}
END_TEST

/* ---- a chunk that is short ---- */

enum { SHORT_COLUMNS = 14, SHORT_ROWS = 9 };

/* The last chunk of "both", of which one row of four elements lies in the dataset, is stored with so many
 * bytes: the first field of its key in the version 1 B-tree. */
static struct model *begin_short(struct model_run *r, uint32_t bytes)
{
	static const uint8_t last[] = {8, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0};
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint8_t node[24 + 9 * 40], size[4];
	struct model *m;
	long at;
	FILE *f;

	model_begin(r, "earliest", 1);
	m = model_find(r, "both");
	SUCCEEDS(h5_dataset_get(r->scratch.file, m->address, &ref, &dataset));
	at = (long)dataset->layout.chunked.address;
	SUCCEEDS(h5_file_read(r->scratch.file, (uint64_t)at, node, sizeof node));
	h5_file_put(r->scratch.file, ref);
	ck_assert_mem_eq(node + 24 + 8 * 40 + 8, last, sizeof last);
	scratch_close(&r->scratch);
	h5_uint_to(size, bytes, sizeof size);
	f = fopen(r->scratch.path, "r+");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, at + 24 + 8 * 40, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(size, 1, sizeof size, f), sizeof size);
	fclose(f);
	scratch_open(&r->scratch);
	return m;
}

/* The file may end with the chunk: no byte behind it is asked for. */
START_TEST(bytes_of_a_short_chunk)
{
	enum { STORED = 16 };
	static const uint64_t scaled[] = {2, 2};
	static const uint8_t zeros[80];
	struct h5_chunk_cursor cursor = {.held = false};
	const struct h5_dataset *dataset;
	struct h5_whole_chunk chunk;
	struct h5_lru_entry *ref;
	struct model_run r;
	struct model *m = begin_short(&r, STORED);
	uint8_t data[80], bytes[STORED];

	SUCCEEDS(h5_dataset_get(r.scratch.file, m->address, &ref, &dataset));
	SUCCEEDS(h5_whole_chunk_find(dataset, &cursor, scaled, &chunk));
	if (_i)
		chunk.wanted.chunk.address = h5_file_end(r.scratch.file) - STORED;
	SUCCEEDS(h5_file_read(r.scratch.file, chunk.wanted.chunk.address, bytes, STORED));
	if (!_i)
		ck_assert_mem_eq(bytes, m->data + (8 * SHORT_COLUMNS + 10) * 4, STORED);
	for (unsigned at = 0; at < 80; at += 8) {
		const size_t there = at < STORED ? STORED - at : 0;

		memset(data, 0xa5, sizeof data);
		SUCCEEDS(h5_whole_chunk_read(&chunk, at, data, 80 - at));
		if (there)
			ck_assert_mem_eq(data, bytes + at, there);
		ck_assert_mem_eq(data + there, zeros, 80 - at - there);
	}
	/* Nor if it could not have an address. */
	chunk.wanted.chunk.address = UINT64_MAX - STORED;
	SUCCEEDS(h5_whole_chunk_read(&chunk, STORED + 8, data, 8));
	ck_assert_mem_eq(data, zeros, 8);
	h5_chunk_cursor_release(dataset->index, &cursor);
	h5_file_put(r.scratch.file, ref);
	model_compare(&r, m);
	model_end(&r);
}
END_TEST

/* Two columns less, and two more. The n-th call to write fails. False: there are not so many, and *end is
 * where the file ends. */
static bool narrow_short(unsigned long n, uint64_t *end)
{
	static const uint64_t narrow[] = {SHORT_ROWS, 12}, wide[] = {SHORT_ROWS, SHORT_COLUMNS};
	struct h5_dataset_writer *writer;
	struct model_run r;
	struct model *m = begin_short(&r, 20);
	uint64_t stored;
	bool failed;
	int rc;

	writer = model_writer(&r, m);
	fault_io_arm(&r.fault, n);
	r.fault.error = -ENOSPC;
	rc = h5_dataset_reshape(writer, narrow);
	failed = fault_io_disarm(&r.fault);
	ck_assert(!rc || (failed && rc == -ENOSPC));
	if (h5_tx_is_writable(r.scratch.file)) {
		SUCCEEDS(h5_dataset_writer_ready(writer));
		if (rc)
			SUCCEEDS(h5_dataset_reshape(writer, narrow));
		SUCCEEDS(h5_tx_settle(r.scratch.file));
		SUCCEEDS(h5_tx_commit(r.scratch.file));
		*end = h5_file_end(r.scratch.file);
		/* All chunks have as many bytes as they should have. */
		SUCCEEDS(h5_dataset_storage(h5_dataset_writer_dataset(writer), &stored));
		ck_assert_uint_eq(stored, 9 * 80);
		SUCCEEDS(h5_dataset_reshape(writer, wide));
		for (unsigned i = 0; i < SHORT_ROWS; i++)
			memset(m->data + (i * SHORT_COLUMNS + 12) * 4, 0, 2 * 4);
		model_compare(&r, m);
		model_reopen(&r);
	}
	model_end(&r);
	return failed;
}

START_TEST(a_short_chunk_becomes_narrower)
{
	uint64_t whole = 0, end;
	unsigned n;

	ck_assert(!narrow_short(0, &whole));
	for (n = 1; end = whole, narrow_short(n, &end); n++)
		ck_assert_uint_eq(end, whole);
	ck_assert_uint_gt(n, 5);
}
END_TEST

/* Elements that should be there are not: that stays so. */
START_TEST(a_chunk_that_is_too_short)
{
	static const uint64_t narrow[] = {SHORT_ROWS, 12};
	struct model_run r;

	(void)begin_short(&r, 7);
	ck_assert_int_eq(read_rc(&r, "both", (8 * SHORT_COLUMNS + 10) * 4, 8), -EUCLEAN);
	(void)h5_dataset_reshape(model_writer(&r, model_find(&r, "both")), narrow);
	ck_assert_int_eq(read_rc(&r, "both", (8 * 12 + 10) * 4, 8), -EUCLEAN);
	model_end(&r);
}
END_TEST

/* ---- how much is held ---- */

/* A dataset of bytes in few rows and many columns, and its writer. */
static struct h5_dataset_writer *make_wide(struct scratch *s, uint64_t rows, uint64_t columns,
					   uint64_t chunk_rows, uint64_t chunk_columns)
{
	struct h5_new_dataset how = {
		.space = {.kind = H5_SPACE_SIMPLE,
			  .rank = 2,
			  .dims = {rows, columns},
			  .max = {H5_UNLIMITED, columns}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {chunk_rows, chunk_columns},
	};
	struct h5_dataset_writer *writer;
	struct h5_datatype *type;
	uint64_t address;

	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	SUCCEEDS(h5_filter_list_parse("fletcher32", strlen("fletcher32"), &how.filters));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s->file, &how, &address));
	h5_datatype_free(type);
	SUCCEEDS(h5_tx_commit(s->file));
	SUCCEEDS(h5_dataset_writer_get(s->file, address, false, &writer));
	return writer;
}

/* Chunks at the end of the dataset stay in memory after they were stored, up to 8 MiB of them: so the next
 * rows need no read. */
START_TEST(few_chunks_stay_in_memory)
{
	enum { COLUMNS = 1 << 16 };
	static const uint64_t counts[] = {4, 15, 17, 24}; /* of chunks of 512 KiB */
	struct fault_io fault = {.error = -EIO};
	struct h5_dataset_writer *writer;
	uint8_t *row = malloc(24 * COLUMNS);
	struct scratch s;

	memset(row, 7, 24 * COLUMNS);
	scratch_init(&s, "header_create-latest.h5");
	scratch_wrap(&s, &fault);
	scratch_open(&s);
	writer = make_wide(&s, 0, counts[_i] * COLUMNS, 8, COLUMNS);
	SUCCEEDS(h5_dataset_writer_append(writer, row, counts[_i] * COLUMNS));
	ck_assert_uint_gt(h5_dataset_writer_held(writer), 0);
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_dataset_writer_settle(writer), -EIO);
	fault_io_disarm(&fault);
	SUCCEEDS(h5_dataset_writer_settle(writer));
	ck_assert_uint_eq(h5_dataset_writer_held(writer), 0);
	fault.reads = true;
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_dataset_writer_append(writer, row, counts[_i] * COLUMNS),
			 counts[_i] * (COLUMNS << 3) > 8 << 20 ? -EIO : 0);
	fault_io_disarm(&fault);
	h5_dataset_writer_close(writer);
	scratch_release(&s);
	free(row);
}
END_TEST

/* The writer keeps up to 31 chunks of 2 MiB in memory. With one more it stores the full ones and frees them.
 * It does so with the others, too, if they take more than 32 MiB. */
START_TEST(chunks_that_are_not_full_wait)
{
	enum { COLUMNS = 1 << 20, CHUNK = 2 * COLUMNS };
	static const struct {
		unsigned across,
			full;  /* chunks in a row; rows of full ones, before one of chunks that are not */
		unsigned held; /* chunks in the end */
		bool fails;    /* the first chunk cannot be stored */
	} cases[] = {{33, 0, 1, false}, {16, 1, 0, false}, {15, 2, 15 + 13, false}, {16, 1, 32, true}};
	const size_t row = cases[_i].across * (size_t)COLUMNS, full = 2 * row * cases[_i].full;
	uint8_t *rows = malloc(full + row);
	struct fault_io fault = {.error = -EIO};
	struct h5_dataset_writer *writer;
	struct scratch s;

	memset(rows, 7, full + row);
	scratch_init(&s, "header_create-latest.h5");
	scratch_wrap(&s, &fault);
	scratch_open(&s);
	writer = make_wide(&s, 2 * cases[_i].full + 1, row, 2, COLUMNS);
	SUCCEEDS(h5_dataset_writer_write(writer, full, rows, row));
	if (cases[_i].fails)
		fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_dataset_writer_write(writer, 0, rows, full), cases[_i].fails ? -EIO : 0);
	fault_io_disarm(&fault);
	ck_assert_uint_eq(h5_dataset_writer_held(writer), cases[_i].held * CHUNK);
	h5_dataset_writer_close(writer);
	scratch_release(&s);
	free(rows);
}
END_TEST

UNIT_MAIN_LOOPS("dataset_bounds", {bytes_of_a_short_chunk, 2}, {a_short_chunk_becomes_narrower, 1},
		{a_chunk_that_is_too_short, 1}, {few_chunks_stay_in_memory, 4},
		{chunks_that_are_not_full_wait, 4}, {no_byte_beyond_the_end, 1},
		{compact_data_that_are_not_there, 1}, {offsets_in_external_files, 1},
		{sizes_beyond_63_bits, 1}, {chunks_beyond_the_file, 1}, {shapes_beyond_the_maximum, 1},
		{files_that_are_not_written, 1}, {many_external_files, 1}, {a_new_shape_stores_all_chunks, 2},
		{too_many_chunks_to_store, 1}, {an_empty_shape_stores_nothing, 1},
		{blocks_of_the_index_are_used_again, 2}, {a_large_chunk_is_stored_at_once, 2},
		{looking_at_what_is_held, 1}, {edges_are_stored_again, 1})

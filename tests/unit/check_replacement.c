/* New contents of datasets that keep their size: everything that fails on the way leaves the old contents,
 * and a kill shows either the old ones or the new ones (tests/judge/replacement_judge.py). */
#include "base/error.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "dataset/create.h"
#include "dataset/replacement.h"
#include "dataset/reshape.h"
#include "fault_alloc.h"
#include "object/group_write.h"
#include "object/numpy_parse.h"
#include "object/path.h"
#include "scratch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OLD = 'o', NEW = 'n', PIECE = 700, INF = -1 };

/* A dataset of bytes. */
struct kind {
	const char *name;
	unsigned rank;
	int dims[2], max[2], chunk[2]; /* without chunks: contiguous */
	const char *filters;
	bool compact;
};

static const struct kind kinds[] = {
	{"contiguous", 2, {60, 50}, {60, 50}, {0}, "", false},
	{"compact", 2, {60, 50}, {60, 50}, {0}, "", true},
	{"single", 2, {60, 50}, {60, 50}, {60, 50}, "", false},
	{"single-filtered", 2, {60, 50}, {60, 50}, {60, 50}, "deflate(1)", false},
	{"array", 2, {60, 50}, {60, 50}, {7, 9}, "", false},
	{"array-filtered", 2, {60, 50}, {60, 50}, {7, 9}, "shuffle,deflate(1)", false},
	{"columns", 2, {60, 50}, {60, INF}, {7, 9}, "fletcher32", false},
	{"pages", 1, {2600, 0}, {2600, 0}, {2, 0}, "", false},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t extent(int n)
{
	return n == INF ? H5_UNLIMITED : (uint64_t)n;
}

static size_t size_of(const struct kind *kind)
{
	return (size_t)kind->dims[0] * (kind->rank > 1 ? (size_t)kind->dims[1] : 1);
}

static void write_old(struct scratch *s, const struct kind *kind, uint64_t address)
{
	struct h5_dataset_writer *writer;
	uint8_t data[4096];

	memset(data, OLD, sizeof data);
	SUCCEEDS(h5_dataset_writer_get(s->file, address, false, &writer));
	ck_assert_uint_eq(h5_dataset_writer_size(writer), size_of(kind));
	ck_assert(h5_dataset_keeps_size(writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, size_of(kind)));
	h5_dataset_writer_put(writer);
}

static uint64_t make(struct scratch *s, const struct kind *kind)
{
	struct h5_new_dataset how = {.layout = kind->compact	? H5_LAYOUT_COMPACT
					       : kind->chunk[0] ? H5_LAYOUT_CHUNKED
								: H5_LAYOUT_CONTIGUOUS};
	struct h5_link link = {.type = H5_LINK_HARD, .name = kind->name, .name_size = strlen(kind->name)};
	struct h5_datatype *type;

	how.space.kind = H5_SPACE_SIMPLE;
	how.space.rank = kind->rank;
	for (unsigned i = 0; i < kind->rank; i++) {
		how.space.dims[i] = extent(kind->dims[i]);
		how.space.max[i] = extent(kind->max[i]);
		how.chunk[i] = extent(kind->chunk[i]);
	}
	SUCCEEDS(h5_filter_list_parse(kind->filters, strlen(kind->filters), &how.filters));
	SUCCEEDS(h5_numpy_parse("|u1", 3, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s->file, &how, &link.address));
	SUCCEEDS(h5_group_insert(s->file, h5_file_superblock(s->file)->root, &link));
	h5_datatype_free(type);
	return link.address;
}

/* A file with all datasets, committed. */
static void begin(struct scratch *s, bool latest, struct fault_io *fault, uint64_t addresses[KINDS])
{
	scratch_init(s, latest ? "header_create-latest.h5" : "header_create-v18.h5");
	scratch_wrap(s, fault);
	scratch_open(s);
	for (unsigned k = 0; k < KINDS; k++)
		write_old(s, &kinds[k], addresses[k] = make(s, &kinds[k]));
	SUCCEEDS(h5_tx_commit(s->file));
}

/* Writes all but the last `missing` bytes. */
static int write_new(struct h5_replacement *r, size_t missing)
{
	uint8_t data[PIECE];
	int rc = 0;

	memset(data, NEW, sizeof data);
	for (uint64_t at = 0, n, end = h5_replacement_whole(r) - missing; at < end && !rc; at += n) {
		n = end - at < PIECE ? end - at : PIECE;
		rc = h5_replacement_write(r, at, data, (size_t)n);
	}
	return rc;
}

static int replace(struct scratch *s, uint64_t address, size_t missing)
{
	struct h5_replacement *r;
	int rc = h5_replacement_begin(s->file, address, &r);

	if (rc)
		return rc;
	rc = write_new(r, missing);
	if (!rc)
		rc = h5_replacement_finish(r);
	h5_replacement_end(r);
	return rc;
}

/* All elements are the byte, or (0) all are old or all are new. */
static void check_all(struct scratch *s, const struct kind *kind, uint64_t address, int byte)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint8_t data[4096];

	SUCCEEDS(h5_tx_settle(s->file));
	SUCCEEDS(h5_dataset_get(s->file, address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, size_of(kind));
	SUCCEEDS(h5_dataset_read(dataset, 0, data, size_of(kind)));
	ck_assert(data[0] == OLD || data[0] == NEW);
	for (size_t i = 0; i < size_of(kind); i++)
		ck_assert_int_eq(data[i], byte ? byte : data[0]);
	h5_file_put(s->file, ref);
}

static void judge(struct scratch *s, const char *bytes)
{
	SUCCEEDS(h5_tx_commit(s->file));
	h5_dataset_writers_close(s->file);
	scratch_close(s);
	scratch_judge_python("tests/judge/replacement_judge.py %s %s", bytes, s->path);
}

/* Each allocation fails, while other writers of the datasets wait to be settled. */
START_TEST(every_allocation_can_fail)
{
	uint64_t addresses[KINDS];
	unsigned failures = 0;
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		int rc = -ENOMEM;

		for (unsigned long n = 1; rc; n += 1 + n / 64) {
			write_old(&s, &kinds[k], addresses[k]);
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = replace(&s, addresses[k], 0);
			fault_alloc_count(false);
			fault_alloc_disarm();
			ck_assert(!rc || rc == -ENOMEM);
			failures += rc != 0;
			check_all(&s, &kinds[k], addresses[k], rc ? OLD : NEW);
		}
	}
	ck_assert_uint_gt(failures, 5 * KINDS);
	judge(&s, "n");
	scratch_release(&s);
}
END_TEST

/* What is not complete changes nothing, and leaves nothing behind. */
START_TEST(what_is_not_complete_is_given_up)
{
	uint64_t addresses[KINDS], end;
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	for (unsigned k = 0; k < KINDS; k++)
		ck_assert_int_eq(replace(&s, addresses[k], 1), -EINVAL);
	SUCCEEDS(h5_tx_commit(s.file));
	end = h5_file_end(s.file);
	for (unsigned k = 0; k < KINDS; k++)
		ck_assert_int_eq(replace(&s, addresses[k], 1), -EINVAL);
	SUCCEEDS(h5_tx_commit(s.file));
	ck_assert_uint_eq(h5_file_end(s.file), end);
	judge(&s, "o");
	scratch_release(&s);
}
END_TEST

/* The old contents give up their space. */
START_TEST(space_is_used_again)
{
	uint64_t addresses[KINDS], end = 0;
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned k = 0; k < KINDS; k++)
			SUCCEEDS(replace(&s, addresses[k], 0));
		SUCCEEDS(h5_tx_commit(s.file));
		if (round == 2)
			end = h5_file_end(s.file);
	}
	ck_assert_uint_eq(h5_file_end(s.file), end);
	judge(&s, "n");
	scratch_release(&s);
}
END_TEST

/* A call to write or sync fails, also in the commits, of which there is one in the midst of the new contents.
 */
START_TEST(every_write_can_fail)
{
	for (unsigned k = 0; k < KINDS; k++) {
		int rc = -EIO;

		for (unsigned long n = 1; rc; n++) {
			struct fault_io fault = {.error = -ENOSPC};
			struct h5_replacement *r;
			uint64_t addresses[KINDS];
			struct scratch s;

			begin(&s, _i, &fault, addresses);
			SUCCEEDS(h5_replacement_begin(s.file, addresses[k], &r));
			fault_io_arm(&fault, n);
			rc = write_new(r, PIECE);
			if (!rc)
				rc = h5_tx_commit(s.file);
			if (!rc)
				rc = write_new(r, 0);
			if (!rc)
				rc = h5_replacement_finish(r);
			if (!rc)
				rc = h5_tx_commit(s.file);
			fault_io_disarm(&fault);
			h5_replacement_end(r);
			h5_dataset_writers_close(s.file);
			scratch_close(&s);
			/* After the first cell the journal heals the file. */
			scratch_wrap(&s, NULL);
			scratch_open(&s);
			for (unsigned i = 0; i < KINDS; i++)
				check_all(&s, &kinds[i], addresses[i], rc || i != k ? 0 : NEW);
			if (!rc)
				judge(&s, "on");
			scratch_release(&s);
			fault_io_release(&fault);
			n += n / 4;
		}
	}
}
END_TEST

static void check_read(struct h5_replacement *r, uint64_t offset, size_t n, const uint8_t *expected,
		       size_t most)
{
	uint8_t data[4096];
	size_t got;

	memset(data, 0xa5, sizeof data);
	SUCCEEDS(h5_replacement_read(r, offset, data, n, &got));
	ck_assert_uint_eq(got, most);
	if (most)
		ck_assert_mem_eq(data, expected + offset, most);
	for (size_t i = most; i < sizeof data; i++)
		ck_assert_uint_eq(data[i], 0xa5);
}

/* The new contents, as far as they go, are read before they take their place; a gap has the fill value. */
START_TEST(what_was_written_is_read)
{
	enum { FIRST = 1000, GAP = 1000, SECOND = 100, ALL = FIRST + GAP + SECOND };
	uint64_t addresses[KINDS];
	uint8_t expected[ALL] = {0};
	struct scratch s;

	memset(expected, NEW, FIRST);
	memset(expected + FIRST + GAP, NEW, SECOND);
	begin(&s, _i, NULL, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		struct h5_replacement *r;

		SUCCEEDS(h5_replacement_begin(s.file, addresses[k], &r));
		check_read(r, 0, 10, expected, 0);
		SUCCEEDS(h5_replacement_write(r, 0, expected, FIRST));
		SUCCEEDS(h5_tx_settle(s.file));
		check_read(r, 0, 4000, expected, FIRST);
		check_read(r, FIRST - 10, 20, expected, 10);
		check_read(r, FIRST, 10, expected, 0);
		check_read(r, FIRST + 1, 10, expected, 0);
		check_read(r, UINT64_MAX, 10, expected, 0);
		SUCCEEDS(h5_replacement_write(r, FIRST + GAP, expected, SECOND));
		SUCCEEDS(h5_tx_settle(s.file));
		check_read(r, 0, 4000, expected, ALL);
		check_read(r, ALL - SECOND - 7, 9, expected, 9);
		h5_replacement_end(r);
		check_all(&s, &kinds[k], addresses[k], OLD);
	}
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* The gap does not count if the bytes behind it cannot be written. */
START_TEST(a_write_behind_a_gap_can_fail)
{
	enum { FIRST = 1000, SECOND = 1900, N = 100 };
	const uint8_t data[FIRST] = {0};
	uint64_t addresses[KINDS];
	unsigned failures = 0;
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		int rc = -ENOMEM;

		for (unsigned long n = 1; rc; n++) {
			struct h5_replacement *r;

			SUCCEEDS(h5_replacement_begin(s.file, addresses[k], &r));
			SUCCEEDS(h5_replacement_write(r, 0, data, FIRST));
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_replacement_write(r, SECOND, data, N);
			fault_alloc_count(false);
			fault_alloc_disarm();
			ck_assert(!rc || rc == -ENOMEM);
			ck_assert_uint_eq(h5_replacement_size(r), rc ? FIRST : SECOND + N);
			failures += rc != 0;
			h5_replacement_end(r);
		}
	}
	ck_assert_uint_gt(failures, KINDS);
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* The first bytes of a dataset that has no storage: if a call fails, it has none later either. */
START_TEST(the_first_write_can_fail)
{
	enum { FROM = 500, N = 100 };
	uint8_t expected[4096] = {0}, data[4096];
	struct fault_io fault = {.error = -ENOSPC};
	const struct kind *kind = &kinds[0];
	uint64_t address;
	struct scratch s;
	unsigned long n = 1;
	bool failed;

	scratch_init(&s, _i ? "header_create-latest.h5" : "header_create-v18.h5");
	scratch_wrap(&s, &fault);
	scratch_open(&s);
	address = make(&s, kind);
	SUCCEEDS(h5_tx_commit(s.file));
	do {
		struct h5_dataset_writer *writer;
		const struct h5_dataset *dataset;
		struct h5_lru_entry *ref;
		int rc;

		SUCCEEDS(h5_dataset_writer_get(s.file, address, false, &writer));
		memset(data, NEW, N);
		fault_io_arm(&fault, n++);
		rc = h5_dataset_writer_write(writer, FROM, data, N);
		failed = fault_io_disarm(&fault);
		ck_assert_int_eq(rc, failed ? -ENOSPC : 0);
		SUCCEEDS(h5_dataset_writer_settle(writer));
		h5_dataset_writer_put(writer);
		if (!rc)
			memset(expected + FROM, NEW, N);
		SUCCEEDS(h5_dataset_get(s.file, address, &ref, &dataset));
		ck_assert_int_eq(dataset->layout.contiguous.address == H5_UNDEF, failed);
		SUCCEEDS(h5_dataset_read(dataset, 0, data, size_of(kind)));
		ck_assert_mem_eq(data, expected, size_of(kind));
		h5_file_put(s.file, ref);
	} while (failed);
	ck_assert_uint_gt(n, 3);
	SUCCEEDS(h5_tx_commit(s.file));
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* Chunks that wait in memory are not read past. */
START_TEST(what_is_not_stored_yet_is_not_read)
{
	uint64_t addresses[KINDS];
	struct h5_replacement *r;
	struct scratch s;
	uint8_t byte = NEW;
	size_t got = 7;

	begin(&s, _i, NULL, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		if (strncmp(kinds[k].name, "array", strlen("array")) != 0)
			continue;
		SUCCEEDS(h5_replacement_begin(s.file, addresses[k], &r));
		SUCCEEDS(h5_replacement_write(r, 0, &byte, 1));
		ck_assert_int_eq(h5_replacement_read(r, 0, &byte, 1, &got), -EIO);
		ck_assert_uint_eq(got, 0);
		h5_replacement_end(r);
	}
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* A kill shows the old contents or the new ones of each dataset. */
START_TEST(killed_between_cells)
{
	struct fault_io record = {.record = true};
	struct h5_replacement *r[KINDS];
	struct crash_image image = {0};
	uint64_t addresses[KINDS];
	char prefix[128];
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	h5_dataset_writers_close(s.file);
	scratch_close(&s);
	crash_image_load(&image, s.path);
	scratch_wrap(&s, &record);
	scratch_open(&s);
	for (unsigned k = 0; k < KINDS; k++) {
		SUCCEEDS(h5_replacement_begin(s.file, addresses[k], &r[k]));
		SUCCEEDS(write_new(r[k], PIECE));
		if (k % 3 == 2)
			SUCCEEDS(h5_tx_commit(s.file));
	}
	for (unsigned k = 0; k < KINDS; k++) {
		SUCCEEDS(write_new(r[k], 0));
		SUCCEEDS(h5_replacement_finish(r[k]));
		h5_replacement_end(r[k]);
	}
	SUCCEEDS(h5_tx_commit(s.file));
	h5_dataset_writers_close(s.file);
	snprintf(prefix, sizeof prefix, "%s/state", scratch_folder());
	ck_assert_uint_gt(crash_image_save_states(&image, &record, prefix), KINDS);
	scratch_own_judge_python("tests/judge/replacement_judge.py on %s-*.h5", prefix);
	free(image.data);
	scratch_release(&s);
	fault_io_release(&record);
}
END_TEST

/* All bytes are this one, but for the first and the last. */
static void check_long(struct scratch *s, uint64_t address, int byte, int edges)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint8_t *data;

	SUCCEEDS(h5_tx_settle(s->file));
	SUCCEEDS(h5_dataset_get(s->file, address, &ref, &dataset));
	data = malloc(dataset->size);
	SUCCEEDS(h5_dataset_read(dataset, 0, data, dataset->size));
	for (size_t i = 0; i < dataset->size; i++)
		ck_assert_int_eq(data[i], i && i + 1 < dataset->size ? byte : edges);
	free(data);
	h5_file_put(s->file, ref);
}

/* What is not written, and what is punched, is filled piece by piece. */
START_TEST(much_is_filled)
{
	enum { SIZE = 300000 };
	static const struct kind kind = {"long", 1, {SIZE, 0}, {SIZE, 0}, {0}, "", false};
	static const uint8_t edge = 7;
	struct h5_dataset_writer *writer;
	struct h5_replacement *r;
	uint64_t address;
	struct scratch s;
	uint8_t *data = malloc(SIZE);

	memset(data, OLD, SIZE);
	scratch_init(&s, _i ? "header_create-latest.h5" : "header_create-v18.h5");
	scratch_open(&s);
	address = make(&s, &kind);
	SUCCEEDS(h5_dataset_writer_get(s.file, address, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, SIZE));
	check_long(&s, address, OLD, OLD);
	SUCCEEDS(h5_dataset_writer_punch(writer, 1, SIZE - 2));
	check_long(&s, address, 0, OLD);
	h5_dataset_writer_put(writer);
	/* Then free space has other bytes. */
	for (unsigned i = 0; i < 3; i++) {
		SUCCEEDS(replace(&s, address, 0));
		SUCCEEDS(h5_tx_commit(s.file));
	}
	SUCCEEDS(h5_replacement_begin(s.file, address, &r));
	SUCCEEDS(h5_replacement_write(r, 0, &edge, 1));
	SUCCEEDS(h5_replacement_write(r, SIZE - 1, &edge, 1));
	SUCCEEDS(h5_replacement_finish(r));
	h5_replacement_end(r);
	check_long(&s, address, 0, edge);
	h5_dataset_writers_close(s.file);
	free(data);
	scratch_release(&s);
}
END_TEST

/* What a program has failed to write it may write once more. */
START_TEST(the_last_write_counts)
{
	uint64_t addresses[KINDS];
	struct h5_replacement *r;
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	SUCCEEDS(h5_replacement_begin(s.file, addresses[0], &r));
	SUCCEEDS(write_new(r, 0));
	h5_replacement_note(r, -ENOSPC);
	ck_assert_int_eq(h5_replacement_check(r), -ENOSPC);
	ck_assert_str_eq(h5_error_last()->text, "a part of the new contents could not be written");
	ck_assert_int_eq(h5_replacement_finish(r), -ENOSPC);
	check_all(&s, &kinds[0], addresses[0], OLD);
	h5_replacement_note(r, 0);
	SUCCEEDS(h5_replacement_check(r));
	SUCCEEDS(h5_replacement_finish(r));
	h5_replacement_end(r);
	check_all(&s, &kinds[0], addresses[0], NEW);
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* Contents that cannot be stored are dropped: whatever is asked for next tells the error. */
START_TEST(all_tells_what_is_lost)
{
	const char *const text = "what was written could not be stored, and is lost";
	uint64_t addresses[KINDS];
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		struct h5_tx_participant *p;
		struct h5_replacement *r;
		uint8_t byte = NEW;
		int results[6];
		size_t got;

		SUCCEEDS(h5_replacement_begin(s.file, addresses[k], &r));
		SUCCEEDS(write_new(r, PIECE));
		SUCCEEDS(h5_replacement_check_lost(r));
		for (p = h5_tx_participants(s.file); p != h5_replacement_participant(r);)
			p = p->next;
		p->failure = k % 2 ? -ENOSPC : 0;
		h5_tx_drop(s.file, p);
		results[0] = h5_replacement_write(r, 0, &byte, 1);
		results[1] = h5_replacement_append(r, &byte, 1);
		results[2] = h5_replacement_expect(r, 0);
		results[3] = h5_replacement_resize(r, 1);
		results[4] = h5_replacement_read(r, 0, &byte, 1, &got);
		results[5] = h5_replacement_check(r);
		for (unsigned i = 0; i < sizeof results / sizeof *results; i++)
			ck_assert_int_eq(results[i], k % 2 ? -ENOSPC : -EIO);
		ck_assert_str_eq(h5_error_last()->text, text);
		ck_assert_uint_eq(h5_replacement_whole(r), 0);
		h5_replacement_end(r);
		check_all(&s, &kinds[k], addresses[k], OLD);
	}
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* The same of contents that may have any number of rows. */
START_TEST(all_tells_what_rows_are_lost)
{
	static const struct kind rows = {"rows", 2, {6, 50}, {INF, 50}, {7, 9}, "", false};
	uint64_t addresses[KINDS], address;
	struct h5_tx_participant *p;
	struct h5_replacement *r;
	uint8_t data[50] = {NEW};
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	address = make(&s, &rows);
	SUCCEEDS(h5_replacement_begin_rows(s.file, address, &r));
	SUCCEEDS(h5_replacement_append(r, data, sizeof data));
	for (p = h5_tx_participants(s.file); p != h5_replacement_participant(r);)
		p = p->next;
	p->failure = -ENOSPC;
	h5_tx_drop(s.file, p);
	ck_assert_int_eq(h5_replacement_append(r, data, sizeof data), -ENOSPC);
	ck_assert_str_eq(h5_error_last()->text, "what was written could not be stored, and is lost");
	ck_assert_int_eq(h5_replacement_expect(r, 100), -ENOSPC);
	ck_assert_int_eq(h5_replacement_resize(r, 0), -ENOSPC);
	ck_assert_int_eq(h5_replacement_finish(r), -ENOSPC);
	h5_replacement_end(r);
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* Contents that were cut can be completed. Contents that were too long must begin anew. */
START_TEST(shorter_contents_can_be_completed)
{
	uint64_t addresses[KINDS];
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	for (unsigned k = 0; k < KINDS; k++) {
		struct h5_replacement *r;
		const uint8_t byte = NEW;
		uint64_t whole;

		SUCCEEDS(h5_replacement_begin(s.file, addresses[k], &r));
		whole = h5_replacement_whole(r);
		SUCCEEDS(write_new(r, 0));
		SUCCEEDS(h5_replacement_resize(r, whole - 1));
		ck_assert_int_eq(h5_replacement_check(r), -EINVAL);
		SUCCEEDS(h5_replacement_write(r, whole - 1, &byte, 1));
		SUCCEEDS(h5_replacement_check(r));
		ck_assert_int_eq(h5_replacement_write(r, whole, &byte, 1), -EFBIG);
		SUCCEEDS(h5_replacement_resize(r, whole - 1));
		SUCCEEDS(h5_replacement_write(r, whole - 1, &byte, 1));
		ck_assert_int_eq(h5_replacement_check(r), -EINVAL);
		SUCCEEDS(h5_replacement_resize(r, 0));
		SUCCEEDS(write_new(r, 0));
		SUCCEEDS(h5_replacement_finish(r));
		h5_replacement_end(r);
		check_all(&s, &kinds[k], addresses[k], NEW);
	}
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
}
END_TEST

/* SWMR readers go on to read the old contents. */
START_TEST(no_replacement_for_swmr_readers)
{
	uint64_t addresses[KINDS];
	struct h5_replacement *r;
	struct scratch s;

	begin(&s, true, NULL, addresses);
	h5_dataset_writers_close(s.file);
	scratch_close(&s);
	s.options.swmr = true;
	scratch_open(&s);
	for (unsigned k = 0; k < KINDS; k++) {
		ck_assert_int_eq(h5_replacement_begin(s.file, addresses[k], &r), -EPERM);
		ck_assert_str_eq(h5_error_last()->text,
				 "SWMR readers cannot follow contents that are replaced");
	}
	scratch_release(&s);
}
END_TEST

/* New contents of an external file would be written over the old ones. */
START_TEST(no_replacement_of_external_files)
{
	struct h5_replacement *r;
	struct h5_file *in;
	struct scratch s;
	uint64_t address;

	scratch_init(&s, "object_removal-3.h5");
	scratch_wrap(&s, NULL);
	scratch_open(&s);
	SUCCEEDS(h5_path_find(s.file, h5_file_superblock(s.file)->root, "0/external", 10, &in, &address));
	ck_assert_int_eq(h5_replacement_begin(s.file, address, &r), -EPERM);
	ck_assert_str_eq(h5_error_last()->text, "dataset: external data are not written in this mount");
	ck_assert_int_eq(h5_replacement_begin_rows(s.file, address, &r), -EPERM);
	scratch_release(&s);
}
END_TEST

static int append_rows(struct scratch *s, uint64_t address, size_t n, bool reshaped)
{
	static const uint64_t wider[] = {6, 60};
	struct h5_dataset_writer *writer;
	struct h5_replacement *r;
	uint8_t data[2000];
	int rc;

	memset(data, NEW, sizeof data);
	SUCCEEDS(h5_replacement_begin_rows(s->file, address, &r));
	ck_assert(h5_replacement_grows(r));
	SUCCEEDS(h5_replacement_append(r, data, n));
	if (reshaped) {
		SUCCEEDS(h5_dataset_writer_get(s->file, address, false, &writer));
		SUCCEEDS(h5_dataset_reshape(writer, wider));
		h5_dataset_writer_put(writer);
	}
	rc = h5_replacement_finish(r);
	h5_replacement_end(r);
	return rc;
}

/* The new contents may have any number of rows, but these have the shape that rows have when all is there. */
START_TEST(rows_keep_their_shape)
{
	static const struct kind before = {"rows", 2, {6, 50}, {INF, 90}, {7, 9}, "", false},
				 after = {"rows", 2, {20, 60}, {INF, 90}, {7, 9}, "", false};
	uint64_t addresses[KINDS], address;
	struct scratch s;

	begin(&s, _i, NULL, addresses);
	address = make(&s, &before);
	SUCCEEDS(append_rows(&s, address, 500, false));
	ck_assert_int_eq(append_rows(&s, address, 500, true), -EINVAL);
	ck_assert_str_eq(h5_error_last()->text, "the dataset has got another shape meanwhile");
	SUCCEEDS(append_rows(&s, address, size_of(&after), false));
	check_all(&s, &after, address, NEW);
	SUCCEEDS(h5_tx_commit(s.file));
	h5_dataset_writers_close(s.file);
	scratch_close(&s);
	scratch_release(&s);
}
END_TEST

UNIT_MAIN_LOOPS("replacement", {all_tells_what_rows_are_lost, 2}, {shorter_contents_can_be_completed, 2},
		{every_allocation_can_fail, 2}, {what_is_not_complete_is_given_up, 2},
		{space_is_used_again, 2}, {every_write_can_fail, 2}, {what_was_written_is_read, 2},
		{a_write_behind_a_gap_can_fail, 2}, {the_first_write_can_fail, 2},
		{what_is_not_stored_yet_is_not_read, 2}, {rows_keep_their_shape, 2},
		{the_last_write_counts, 2}, {all_tells_what_is_lost, 2}, {no_replacement_for_swmr_readers, 1},
		{no_replacement_of_external_files, 1}, {much_is_filled, 2}, {killed_between_cells, 2})

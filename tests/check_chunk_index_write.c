/* Changes through the extensible array, against what libhdf5 makes of the same sequence
 * (tests/fixtures/chunk_index_write.py); tests/index_structure.py compares. */
#include "base/error.h"
#include "chunk_index/chunk_index.h"
#include "fault_io.h"
#include "store/file_set.h"
#include "store/object_header.h"
#include "store/transaction.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGED = 131060 }; /* the first chunk in a page */

static struct h5_file_set_options options = {
	.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_ALWAYS, .writable = true};

/* A dataset of a copy of its file. */
struct target {
	char folder[64], path[80];
	uint64_t header;
	struct h5_file_set *set;
	struct h5_file *file;
	struct h5_layout layout;
	struct h5_dataspace space;
	bool filtered;
	struct h5_chunk_index *index;
	uint64_t raw, raw_left; /* space for chunks */
};

static const struct h5_message *message_of(const struct h5_header *header, enum h5_message_type type,
					   const struct target *t, struct h5_reader *r)
{
	const struct h5_message *m = h5_header_find(header, type);

	ck_assert_ptr_nonnull(m);
	*r = h5_file_reader(t->file, m->data, m->size, m->address);
	return m;
}

static void open_file(struct target *t)
{
	struct h5_header header;
	struct h5_reader r;

	ck_assert_msg(!h5_file_set_open(t->path, &options, &t->set), "%s", h5_error_last()->text);
	t->file = h5_file_set_root(t->set);
	ck_assert_int_eq(h5_header_load(t->file, t->header, &header), 0);
	message_of(&header, H5_MSG_LAYOUT, t, &r);
	ck_assert_int_eq(h5_layout_decode(&r, &t->layout), 0);
	message_of(&header, H5_MSG_DATASPACE, t, &r);
	ck_assert_int_eq(h5_dataspace_decode(&r, &t->space), 0);
	t->filtered = h5_header_find(&header, H5_MSG_PIPELINE);
	h5_header_release(&header);
	ck_assert_int_eq(h5_chunk_index_open(t->file, t->layout.version, &t->layout.chunked, &t->space,
					     t->filtered, 1, &t->index),
			 0);
	t->raw_left = 0;
}

static void close_file(struct target *t)
{
	h5_chunk_index_close(t->index);
	h5_file_set_close(t->set);
}

static void open_copy(struct target *t, const char *name)
{
	const char *folder = getenv("H5FS_TEST_DATA");
	char path[4096], command[8192], found[64];
	bool known = false;
	FILE *text;

	*t = (struct target){.folder = "/tmp/check_chunk_index_write.XXXXXX"};
	ck_assert_ptr_nonnull(mkdtemp(t->folder));
	snprintf(t->path, sizeof t->path, "%s/file.h5", t->folder);
	snprintf(path, sizeof path, "%s/chunk_index_write.txt", folder);
	text = fopen(path, "r");
	ck_assert_ptr_nonnull(text);
	while (!known && fscanf(text, "%63s %ju", found, &t->header) == 2)
		known = !strcmp(found, name);
	fclose(text);
	ck_assert(known);
	snprintf(command, sizeof command, "cp %s/chunk_index_write-%s.h5 %s", folder, name, t->path);
	ck_assert_int_eq(system(command), 0);
	open_file(t);
}

static void remove_copy(struct target *t)
{
	char command[128];

	snprintf(command, sizeof command, "rm -r %s", t->folder);
	ck_assert_int_eq(system(command), 0);
}

/* "a" is as the other dataset, and neither has anything wrong with it. */
static void judge(const struct target *t, const char *other)
{
	const char *folder = getenv("srcdir");
	char command[4096];

	snprintf(command, sizeof command, "/usr/bin/python3 %s/tests/index_structure.py %s a %s %s",
		 folder ? folder : ".", t->path, t->path, other);
	ck_assert_int_eq(system(command), 0);
}

/* ---- changes ---- */

static void to_scaled(const struct target *t, uint64_t n, uint64_t *scaled)
{
	scaled[0] = n;
	if (t->space.rank > 1) {
		scaled[0] = n % t->space.dims[0];
		scaled[1] = n / t->space.dims[0];
	}
}

/* Space for one chunk, with its value. Chunks of a filtered dataset have passed no filter. */
static int new_chunk(struct target *t, uint64_t n, struct h5_chunk *chunk)
{
	uint8_t value = (uint8_t)(n * 7 + 3);
	int rc = 0;

	if (!t->raw_left) {
		rc = h5_tx_allocate(t->file, H5_ALLOCATE_RAW, 1000, &t->raw);
		t->raw_left = rc ? 0 : 1000;
	}
	if (!rc)
		rc = h5_tx_write(t->file, t->raw, &value, 1);
	if (rc)
		return rc;
	*chunk = (struct h5_chunk){.address = t->raw++, .size = 1, .filter_mask = t->filtered};
	t->raw_left--;
	return 0;
}

static int set_chunk(struct target *t, uint64_t n)
{
	uint64_t scaled[H5_RANK_MAX];
	struct h5_chunk chunk;
	int rc = new_chunk(t, n, &chunk);

	to_scaled(t, n, scaled);
	return rc ? rc : h5_chunk_index_set(t->index, scaled, &chunk);
}

static void set_chunks(struct target *t, uint64_t first, uint64_t last)
{
	for (uint64_t n = first; n < last; n++)
		ck_assert_msg(!set_chunk(t, n), "chunk %ju: %s", (uintmax_t)n, h5_error_last()->text);
}

/* Publishes so many chunks. */
static int commit(struct target *t, uint64_t n)
{
	const struct h5_superblock *sb = h5_file_superblock(t->file);
	uint8_t body[256];
	struct h5_header header;
	const struct h5_message *m;
	struct h5_reader r;
	size_t size;
	int rc;

	/* What is left of the space is committed with the rest. */
	t->raw_left = 0;
	t->space.dims[t->space.rank - 1] = t->space.rank > 1 ? n / t->space.dims[0] : n;
	if (h5_chunk_index_layout(t->index)->address != t->layout.chunked.address) {
		t->layout.chunked = *h5_chunk_index_layout(t->index);
		ck_assert_int_eq(h5_header_load(t->file, t->header, &header), 0);
		m = message_of(&header, H5_MSG_LAYOUT, t, &r);
		memcpy(body, m->data, size = m->size);
		h5_header_release(&header);
		ck_assert_int_eq(
			h5_layout_update(body, size, sb->size_of_offsets, sb->size_of_lengths, &t->layout),
			0);
		rc = h5_header_replace(t->file, t->header, H5_MSG_LAYOUT, body, size);
		if (rc)
			return rc;
	}
	ck_assert_int_eq(h5_header_load(t->file, t->header, &header), 0);
	m = message_of(&header, H5_MSG_DATASPACE, t, &r);
	memcpy(body, m->data, size = m->size);
	h5_header_release(&header);
	ck_assert_int_eq(h5_dataspace_update(body, size, sb->size_of_lengths, &t->space), 0);
	rc = h5_header_replace(t->file, t->header, H5_MSG_DATASPACE, body, size);
	return rc ? rc : h5_tx_commit(t->file);
}

static void assert_commit(struct target *t, uint64_t n)
{
	ck_assert_msg(!commit(t, n), "%s", h5_error_last()->text);
}

/* ---- what is there ---- */

static uint64_t value_of(const struct target *t, uint64_t n)
{
	uint64_t scaled[H5_RANK_MAX];
	struct h5_chunk chunk;
	uint8_t value;

	to_scaled(t, n, scaled);
	ck_assert_msg(!h5_chunk_index_lookup(t->index, scaled, &chunk), "%s", h5_error_last()->text);
	if (chunk.address == H5_UNDEF)
		return H5_UNDEF;
	ck_assert_uint_eq(chunk.size, 1);
	ck_assert_uint_eq(chunk.filter_mask, t->filtered);
	ck_assert_int_eq(h5_file_read(t->file, chunk.address, &value, 1), 0);
	return value;
}

static void assert_stored(const struct target *t, uint64_t first, uint64_t last)
{
	for (uint64_t n = first; n < last; n++)
		ck_assert_uint_eq(value_of(t, n), (n * 7 + 3) & 0xff);
}

static int count_chunk(void *arg, const struct h5_chunk *chunk)
{
	ck_assert_uint_eq(chunk->size, 1);
	++*(uint64_t *)arg;
	return 0;
}

static uint64_t count(const struct target *t)
{
	uint64_t n = 0;

	ck_assert_int_eq(h5_chunk_index_walk(t->index, count_chunk, &n), 0);
	return n;
}

static uint64_t trim(struct target *t, uint64_t first)
{
	uint64_t n = 0;

	ck_assert_msg(!h5_chunk_index_trim(t->index, first, count_chunk, &n), "%s", h5_error_last()->text);
	return n;
}

/* ---- tests ---- */

/* Commits in between, at numbers that no block ends at. */
static void append_in_steps(struct target *t, uint64_t n, uint64_t step)
{
	for (uint64_t first = 0; first < n; first += step) {
		uint64_t last = first + step < n ? first + step : n;

		set_chunks(t, first, last);
		assert_commit(t, last);
	}
}

START_TEST(appending_makes_what_libhdf5_makes)
{
	static const struct {
		const char *name;
		uint64_t n, step;
	} cases[] = {{"plain", PAGED + 5000, PAGED + 5000},
		     {"plain", PAGED + 5000, 1013},
		     {"filtered", PAGED + 2500, 7919},
		     {"second", 15000, 111}};
	struct target t;

	open_copy(&t, cases[_i].name);
	append_in_steps(&t, cases[_i].n, cases[_i].step);
	ck_assert_uint_eq(count(&t), cases[_i].n);
	close_file(&t);
	judge(&t, "b");
	remove_copy(&t);
}
END_TEST

START_TEST(from_the_end_with_gaps)
{
	struct target t;
	uint64_t n = 200000;

	open_copy(&t, "sparse");
	for (unsigned i = 0; n <= 200000; n -= 997, i++) {
		ck_assert_int_eq(set_chunk(&t, n), 0);
		if (i % 7 == 6)
			assert_commit(&t, 200001);
	}
	assert_commit(&t, 200001);
	ck_assert_uint_eq(value_of(&t, 200000 - 997), ((200000 - 997) * 7 + 3) & 0xff);
	ck_assert_uint_eq(value_of(&t, 200000 - 996), H5_UNDEF);
	close_file(&t);
	judge(&t, "b");
	remove_copy(&t);
}
END_TEST

START_TEST(trimming_leaves_what_libhdf5_leaves)
{
	static const char *const names[] = {"trimmed", "trimmed-filtered"};
	struct target t;

	open_copy(&t, names[_i]);
	set_chunks(&t, 0, PAGED + 3000);
	assert_commit(&t, PAGED + 3000);
	ck_assert_uint_eq(trim(&t, PAGED + 1500), 1500);
	ck_assert_uint_eq(trim(&t, PAGED + 1500), 0);
	assert_stored(&t, PAGED - 10, PAGED + 1500);
	ck_assert_uint_eq(value_of(&t, PAGED + 1500), H5_UNDEF);
	assert_commit(&t, PAGED + 1500);
	ck_assert_uint_eq(trim(&t, 500), PAGED + 1000);
	ck_assert_uint_eq(count(&t), 500);
	set_chunks(&t, 500, 600);
	assert_commit(&t, 600);
	close_file(&t);
	judge(&t, "b");
	remove_copy(&t);
}
END_TEST

START_TEST(only_rows_are_trimmed)
{
	struct target t;
	uint64_t n = 0;

	open_copy(&t, "second");
	set_chunks(&t, 0, 10);
	ck_assert_int_eq(h5_chunk_index_trim(t.index, 1, count_chunk, &n), -ENOTSUP);
	ck_assert_uint_eq(n, 0);
	close_file(&t);
	remove_copy(&t);
}
END_TEST

/* The header lies across a page: with the first change the whole array moves. */
START_TEST(an_array_that_has_to_move)
{
	struct target t;
	uint64_t before;

	open_copy(&t, "crossing");
	before = t.layout.chunked.address;
	ck_assert(!h5_tx_is_safe(t.file, before, 72));
	ck_assert_int_eq(set_chunk(&t, PAGED + 1100), 0);
	ck_assert_uint_ne(h5_chunk_index_layout(t.index)->address, before);
	assert_stored(&t, 0, PAGED + 1101);
	assert_commit(&t, PAGED + 1101);
	before = h5_chunk_index_layout(t.index)->address;
	ck_assert(h5_tx_is_safe(t.file, before, 72));
	ck_assert_int_eq(set_chunk(&t, 7), 0);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, before);
	assert_commit(&t, PAGED + 1101);
	close_file(&t);
	judge(&t, "b");
	remove_copy(&t);
}
END_TEST

static uint8_t *read_all(const struct target *t, size_t *n)
{
	FILE *f = fopen(t->path, "rb");
	struct stat st;
	uint8_t *data;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fstat(fileno(f), &st), 0);
	*n = (size_t)st.st_size;
	data = malloc(*n);
	ck_assert_ptr_nonnull(data);
	ck_assert_uint_eq(fread(data, 1, *n, f), *n);
	fclose(f);
	return data;
}

/* Writes to the first n bytes of the file; each lies in one page. */
static unsigned count_cells(const struct fault_io *record, size_t n)
{
	unsigned cells = 0;

	for (size_t i = 0; i < record->count; i++) {
		const struct fault_event *e = &record->events[i];

		if (e->kind != FAULT_WRITE || e->file || e->offset >= n)
			continue;
		ck_assert_uint_eq(e->offset / H5_CELL, (e->offset + e->size - 1) / H5_CELL);
		cells++;
	}
	return cells;
}

/* Chunks move, are added and removed: until the commit nothing that is in the file changes, and then by cells
 * alone. */
START_TEST(what_is_committed_stays)
{
	struct fault_io record = {.record = true};
	uint8_t *before, *now;
	size_t size, more;
	struct target t;

	options.wrap = fault_io_wrap;
	options.wrap_arg = &record;
	open_copy(&t, "plain");
	set_chunks(&t, 0, PAGED + 3100);
	assert_commit(&t, PAGED + 3100);
	before = read_all(&t, &size);
	set_chunks(&t, 0, 10);
	set_chunks(&t, 1000, 1010);
	set_chunks(&t, PAGED - 10, PAGED + 6000);
	ck_assert_uint_eq(trim(&t, PAGED + 2500), 3500);
	ck_assert_uint_eq(trim(&t, 100000), PAGED + 2500 - 100000);
	assert_stored(&t, 0, 2000);
	now = read_all(&t, &more);
	ck_assert_uint_ge(more, size);
	ck_assert_mem_eq(before, now, size);
	free(before);
	free(now);
	fault_io_release(&record);
	record.record = true;
	assert_commit(&t, 100000);
	ck_assert_uint_gt(count_cells(&record, size), 3);
	close_file(&t);
	fault_io_release(&record);
	judge(&t, "a");
	remove_copy(&t);
}
END_TEST

/* The file as a kill behind the first events leaves it. */
static void write_state(const struct target *t, const struct fault_io *record, size_t events,
			const uint8_t *before, size_t n, unsigned number)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/state-%u.h5", t->folder, number);
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(before, 1, n, f), n);
	for (size_t i = 0; i < events; i++) {
		const struct fault_event *e = &record->events[i];

		if (e->file)
			continue;
		ck_assert_int_eq(fflush(f), 0);
		if (e->kind == FAULT_RESIZE)
			ck_assert_int_eq(ftruncate(fileno(f), (off_t)e->offset), 0);
		if (e->kind != FAULT_WRITE)
			continue;
		ck_assert_int_eq(fseek(f, (long)e->offset, SEEK_SET), 0);
		ck_assert_uint_eq(fwrite(e->data, 1, e->size, f), e->size);
	}
	ck_assert_int_eq(fclose(f), 0);
}

/* Between any two cells of a commit libhdf5 reads the rows of this commit or of the one before. */
START_TEST(killed_between_cells)
{
	static const uint64_t cases[][2] = {{0, 10},
					    {3, 5},
					    {100, 1100},
					    {240, 250},
					    {PAGED - 5, PAGED + 10},
					    {PAGED + 1030, PAGED + 4100}};
	static const char judge_states[] =
		"import sys, glob, h5py, numpy as np\n"
		"lengths = set()\n"
		"for path in glob.glob(sys.argv[1] + '/state-*.h5'):\n"
		"    values = h5py.File(path, 'r')['a'][()]\n"
		"    lengths.add(len(values))\n"
		"    assert (values == (np.arange(len(values)) * 7 + 3).astype('u1')).all(), path\n"
		"assert lengths == {int(n) for n in sys.argv[2:]}, lengths\n";
	const uint64_t *n = cases[_i];
	struct fault_io record = {0};
	char command[2048];
	unsigned states = 0;
	uint8_t *before;
	struct target t;
	size_t size;

	options.wrap = fault_io_wrap;
	options.wrap_arg = &record;
	open_copy(&t, "plain");
	set_chunks(&t, 0, n[0]);
	assert_commit(&t, n[0]);
	before = read_all(&t, &size);
	record.record = true;
	set_chunks(&t, n[0], n[1]);
	assert_commit(&t, n[1]);
	for (size_t i = 0; i < record.count; i++)
		if (record.events[i].kind == FAULT_WRITE && !record.events[i].file &&
		    record.events[i].offset < size)
			write_state(&t, &record, i, before, size, states++);
	write_state(&t, &record, record.count, before, size, states++);
	ck_assert_uint_gt(states, 2);
	snprintf(command, sizeof command, "/usr/bin/python3 -c \"%s\" %s %ju %ju", judge_states, t.folder,
		 (uintmax_t)n[0], (uintmax_t)n[1]);
	ck_assert_int_eq(system(command), 0);
	close_file(&t);
	fault_io_release(&record);
	free(before);
	remove_copy(&t);
}
END_TEST

START_TEST(chunks_that_cannot_be)
{
	const struct h5_chunk absent = {.address = H5_UNDEF, .size = 77},
			      large = {.address = 8, .size = 1 << 24};
	const uint64_t zero = 0, far = 100000, beyond = UINT64_C(1) << 32;
	struct target t;

	open_copy(&t, "filtered");
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &absent), 0);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &large), -EOVERFLOW);
	ck_assert_uint_eq(h5_chunk_index_layout(t.index)->address, H5_UNDEF);
	set_chunks(&t, 0, 3);
	/* What is not there is not made to be absent. */
	ck_assert_int_eq(h5_chunk_index_set(t.index, &far, &absent), 0);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &far, &large), -EOVERFLOW);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &beyond, &absent), 0);
	ck_assert_int_eq(set_chunk(&t, beyond), -EFBIG);
	ck_assert_int_eq(h5_chunk_index_set(t.index, &zero, &absent), 0);
	ck_assert_uint_eq(value_of(&t, 0), H5_UNDEF);
	ck_assert_uint_eq(count(&t), 2);
	set_chunks(&t, 0, 1);
	set_chunks(&t, 3, PAGED + 2500);
	assert_commit(&t, PAGED + 2500);
	close_file(&t);
	judge(&t, "b");
	remove_copy(&t);
}
END_TEST

/* Every call that writes fails once. What was not changed for that is changed by another try; but a block
 * that is new, and was torn while it was written again, is lost with the transaction. */
START_TEST(every_write_can_fail)
{
	static const uint64_t first[] = {3, 1000, PAGED, PAGED + 1};
	static const uint64_t then[] = {4, 1001, 5000, PAGED + 2, PAGED + 1024, PAGED + 4096, PAGED + 4097};
	const size_t firsts = sizeof first / sizeof *first, thens = sizeof then / sizeof *then;
	unsigned mended = 0, lost = 0;
	bool fired = true;

	for (unsigned long fail = 1; fired; fail++) {
		struct fault_io fault = {.error = -EIO};
		struct target t;
		bool torn = false;
		uint64_t n = 0;

		options.wrap = fault_io_wrap;
		options.wrap_arg = &fault;
		open_copy(&t, "plain");
		for (size_t i = 0; i < firsts; i++)
			ck_assert_int_eq(set_chunk(&t, first[i]), 0);
		assert_commit(&t, PAGED + 2);
		fault.calls = 0;
		fault.fail = fail;
		for (size_t i = 0; i < thens && !torn; i++)
			torn = set_chunk(&t, then[i]) && set_chunk(&t, then[i]);
		if (!torn)
			torn = h5_chunk_index_trim(t.index, PAGED + 4097, count_chunk, &n) &&
			       h5_chunk_index_trim(t.index, PAGED + 4097, count_chunk, &n);
		fired = fault.calls >= fail;
		fault.fail = 0;
		if (!torn) {
			ck_assert_uint_eq(n, 1);
			assert_commit(&t, PAGED + 5000);
			mended++;
		}
		lost += torn;
		close_file(&t);
		options.wrap = NULL;
		open_file(&t);
		for (size_t i = 0; i < firsts; i++)
			assert_stored(&t, first[i], first[i] + 1);
		for (size_t i = 0; i + 1 < thens && !torn; i++)
			assert_stored(&t, then[i], then[i] + 1);
		ck_assert_uint_eq(count(&t), torn ? firsts : firsts + thens - 1);
		close_file(&t);
		judge(&t, "a");
		remove_copy(&t);
		fault_io_release(&fault);
	}
	ck_assert_uint_gt(mended, 4);
	ck_assert_uint_le(lost, 6);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("chunk_index_write");
	TCase *all = tcase_create("extensible array");
	SRunner *runner;
	int failed;

	tcase_set_timeout(all, 300);
	tcase_add_loop_test(all, appending_makes_what_libhdf5_makes, 0, 4);
	tcase_add_test(all, from_the_end_with_gaps);
	tcase_add_loop_test(all, trimming_leaves_what_libhdf5_leaves, 0, 2);
	tcase_add_test(all, only_rows_are_trimmed);
	tcase_add_test(all, an_array_that_has_to_move);
	tcase_add_test(all, what_is_committed_stays);
	tcase_add_loop_test(all, killed_between_cells, 0, 6);
	tcase_add_test(all, chunks_that_cannot_be);
	tcase_add_test(all, every_write_can_fail);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#include "dense_model.h"

#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "object/fractal_heap_table.h"
#include "object/group.h"
#include "object/path.h"

#include <stdio.h>
#include <string.h>

/* As tests/fixtures/dense_write.py has them. */
static const unsigned link_sizes[] = {9, 20, 5, 37, 80, 6, 300};
static const unsigned attribute_sizes[] = {10, 40, 5, 300, 1000, 8, 3000, 5000, 60000};

uint64_t dense_choose(struct dense *d, uint64_t n)
{
	d->random = d->random * 6364136223846793005u + 1442695040888963407u;
	return (d->random >> 33) % n;
}

/* ---- messages ---- */

const char *dense_name(unsigned i)
{
	static char name[DENSE_NAME];

	snprintf(name, sizeof name, "m%u", i);
	return name;
}

static void write_content(struct h5_writer *w, unsigned i, unsigned version, unsigned size)
{
	for (unsigned j = 0; j < size; j++)
		h5_write_u8(w, (uint8_t)(97 + (j * 7 + version * 13 + i * 5) % 26));
}

static void write_link(struct h5_writer *w, const struct dense *d, const char *name, int64_t order)
{
	h5_write_u8(w, 1);
	h5_write_u8(w, d->info.tracks_order ? 0x0c : 0x08);
	h5_write_u8(w, H5_LINK_SOFT);
	if (d->info.tracks_order)
		h5_write_u64(w, (uint64_t)order);
	h5_write_u8(w, (uint8_t)strlen(name));
	h5_write_bytes(w, name, strlen(name));
}

static void write_attribute(struct h5_writer *w, const char *name, unsigned size)
{
	static const uint8_t type[] = {0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0}, space[] = {2, 1, 1, 1};

	h5_write_u8(w, 3);
	h5_write_u8(w, 0);
	h5_write_u16(w, (uint16_t)(strlen(name) + 1));
	h5_write_u16(w, sizeof type);
	h5_write_u16(w, sizeof space + 16);
	h5_write_u8(w, 0);
	h5_write_bytes(w, name, strlen(name) + 1);
	h5_write_bytes(w, type, sizeof type);
	h5_write_bytes(w, space, sizeof space);
	h5_write_u64(w, size);
	h5_write_u64(w, size);
}

const uint8_t *dense_message(const struct dense *d, unsigned i, unsigned version, unsigned size,
			     int64_t order, size_t *n)
{
	static uint8_t bytes[DENSE_MESSAGE];
	struct h5_writer w = h5_writer_init(bytes, sizeof bytes, 8, 8);

	if (d->kind == H5_NAMED_LINK) {
		write_link(&w, d, dense_name(i), order);
		h5_write_u16(&w, (uint16_t)size);
	} else {
		write_attribute(&w, dense_name(i), size);
	}
	write_content(&w, i, version, size);
	ck_assert(!w.err);
	*n = h5_writer_at(&w);
	return bytes;
}

/* ---- the file ---- */

int dense_load(struct dense *d)
{
	struct h5_named_storage storage;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(d->file, d->header, &ref, &object);

	if (rc)
		return rc;
	rc = h5_named_storage_find(d->file, object, d->kind, &storage);
	d->info = storage.info;
	h5_file_put(d->file, ref);
	return rc;
}

void dense_open(struct dense *d)
{
	scratch_open(&d->scratch);
	d->file = d->scratch.file;
	SUCCEEDS(dense_load(d));
}

void dense_close(struct dense *d)
{
	scratch_close(&d->scratch);
	d->file = NULL;
}

struct dense *dense_begin(const char *name, unsigned limit, struct fault_io *fault)
{
	return dense_begin_in("dense_write.h5", name, limit, fault);
}

struct dense *dense_begin_in(const char *fixture, const char *name, unsigned limit, struct fault_io *fault)
{
	struct dense *d = calloc(1, sizeof *d);
	unsigned count = (unsigned)atoi(strrchr(name, '-') + 1);
	struct h5_file *file;

	ck_assert_ptr_nonnull(d);
	d->next_order = count;
	/* The model knows none of the 200,000 links of the large group. */
	count = count > DENSE_MAX ? 0 : count;
	ck_assert(limit <= DENSE_MAX && count <= limit);
	snprintf(d->name, sizeof d->name, "%s", name);
	d->kind = *name == 'l' ? H5_NAMED_LINK : H5_NAMED_ATTRIBUTE;
	d->by_order = strstr(name, "tracked");
	d->limit = limit;
	d->sizes = *name == 'l' ? link_sizes : attribute_sizes;
	d->size_count = *name == 'l' ? 7 : 9;
	for (unsigned i = 0; i < count; i++)
		d->messages[i] =
			(struct dense_message){true, 0, d->sizes[i % (count < 1000 ? d->size_count : 3)], i};
	scratch_init(&d->scratch, fixture);
	scratch_wrap(&d->scratch, fault);
	scratch_open(&d->scratch);
	d->file = d->scratch.file;
	SUCCEEDS(h5_path_find(d->file, h5_file_superblock(d->file)->root, name, strlen(name), &file,
			      &d->header));
	SUCCEEDS(dense_load(d));
	return d;
}

void dense_end(struct dense *d)
{
	dense_close(d);
	scratch_release(&d->scratch);
	free(d);
}

static int update_info(const void *arg, uint8_t *body, size_t n)
{
	const struct dense *d = arg;
	struct h5_writer w = h5_writer_init(body + 2, n - 2, 8, 8);

	if (d->info.tracks_order)
		h5_write_uint(&w, (uint64_t)d->next_order, d->kind == H5_NAMED_LINK ? 8 : 2);
	h5_write_offset(&w, d->info.heap);
	h5_write_offset(&w, d->info.name_index);
	if (d->by_order)
		h5_write_offset(&w, d->info.order_index);
	ck_assert(!w.err);
	return 0;
}

int dense_publish(struct dense *d)
{
	return h5_header_update(d->file, d->header,
				d->kind == H5_NAMED_LINK ? H5_MSG_LINK_INFO : H5_MSG_ATTRIBUTE_INFO,
				update_info, d);
}

int dense_commit(struct dense *d)
{
	int rc = dense_publish(d);

	return rc ? rc : h5_tx_commit(d->file);
}

/* ---- changes ---- */

void dense_create(struct dense *d)
{
	if (d->info.heap == H5_UNDEF)
		SUCCEEDS(h5_dense_create(d->file, d->kind, d->info.tracks_order, d->by_order, &d->info));
}

int dense_insert(struct dense *d, unsigned i, unsigned size)
{
	unsigned version = (unsigned)d->next_order % 100;
	size_t n;
	const uint8_t *bytes = dense_message(d, i, version, size, d->next_order, &n);
	const char *name = dense_name(i);
	int rc = h5_dense_insert(d->file, &d->info, d->kind, name, strlen(name), bytes, n, d->next_order);

	if (!rc)
		d->messages[i] = (struct dense_message){true, version, size, d->next_order++};
	return rc;
}

int dense_replace(struct dense *d, unsigned i, unsigned size)
{
	struct dense_message *m = &d->messages[i];
	unsigned version = (m->version + 1) % 100;
	size_t n;
	const uint8_t *bytes = dense_message(d, i, version, size, m->order, &n);
	const char *name = dense_name(i);
	int rc = h5_dense_replace(d->file, &d->info, d->kind, name, strlen(name), bytes, n);

	if (!rc) {
		m->version = version;
		m->size = size;
	}
	return rc;
}

int dense_remove(struct dense *d, unsigned i)
{
	const char *name = dense_name(i);
	int rc = h5_dense_remove(d->file, &d->info, d->kind, name, strlen(name));

	if (!rc)
		d->messages[i].exists = false;
	return rc;
}

int dense_step(struct dense *d, unsigned grow)
{
	unsigned i = (unsigned)dense_choose(d, d->limit), what = (unsigned)dense_choose(d, 100);
	unsigned size = d->sizes[dense_choose(d, d->size_count)];

	if (what < grow)
		return d->messages[i].exists ? dense_replace(d, i, what % 2 ? size : d->messages[i].size)
					     : dense_insert(d, i, size);
	return d->messages[i].exists ? dense_remove(d, i) : 0;
}

void dense_shake(struct dense *d, unsigned times, unsigned grow)
{
	while (times--)
		SUCCEEDS(dense_step(d, grow));
}

/* ---- looking ---- */

/* Bytes of all managed objects, as the model has them. */
static uint64_t managed_bytes(struct dense *d, uint64_t *huge)
{
	uint64_t all = 0;

	*huge = 0;
	for (unsigned i = 0; i < d->limit; i++) {
		const struct dense_message *m = &d->messages[i];
		size_t n;

		if (!m->exists)
			continue;
		dense_message(d, i, m->version, m->size, m->order, &n);
		if (n > 4096)
			++*huge;
		else
			all += n;
	}
	return all;
}

/* The statistic of free space is exact. */
static void check_statistic(struct dense *d)
{
	struct h5_heap_change heap;
	uint64_t huge, managed = managed_bytes(d, &huge), room;

	SUCCEEDS(h5_heap_change_load(&heap, d->file, d->info.heap));
	room = heap.heap.root_rows	    ? heap.capacity[heap.heap.root_rows]
	       : heap.heap.root == H5_UNDEF ? 0
					    : heap.heap.start_size - heap.prefix;
	ck_assert_uint_eq(heap.heap.free, room - managed);
	ck_assert_uint_le(huge, heap.heap.huge_objects);
}

static void check_one(struct dense *d, const struct h5_named_storage *storage, unsigned i)
{
	const struct dense_message *m = &d->messages[i];
	const char *name = dense_name(i);
	struct h5_message_body body;
	int rc = h5_named_find(storage, name, strlen(name), &body);
	const uint8_t *bytes;
	size_t n;

	if (!m->exists) {
		ck_assert_int_eq(rc, -ENOENT);
		return;
	}
	SUCCEEDS(rc);
	bytes = dense_message(d, i, m->version, m->size, m->order, &n);
	ck_assert_uint_eq(h5_reader_left(&body.reader), n);
	ck_assert(!memcmp(body.reader.p, bytes, n));
	h5_message_release(d->file, &body);
}

void dense_check(struct dense *d)
{
	struct h5_named_storage storage;
	struct h5_damage damage = {0};
	uint64_t count, expected = 0;

	h5_named_storage_dense(d->file, d->kind, &d->info, &storage);
	SUCCEEDS(h5_named_check(&storage, &damage));
	ck_assert_msg(!damage.first.code, "%s", damage.first.text);
	for (unsigned i = 0; i < d->limit; i++) {
		check_one(d, &storage, i);
		expected += d->messages[i].exists;
	}
	SUCCEEDS(h5_named_count(&storage, &count));
	ck_assert_uint_eq(count, expected);
	check_statistic(d);
}

static int by_order(const void *a, const void *b)
{
	const struct dense_message *x = *(struct dense_message *const *)a,
				   *y = *(struct dense_message *const *)b;

	return x->order < y->order ? -1 : x->order > y->order;
}

void dense_write_expected(const struct dense *d, const char *path)
{
	const struct dense_message **sorted = calloc(d->limit, sizeof *sorted);
	FILE *text = fopen(path, "w");
	unsigned count = 0;

	ck_assert(sorted && text);
	for (unsigned i = 0; i < d->limit; i++)
		if (d->messages[i].exists)
			sorted[count++] = &d->messages[i];
	if (count)
		qsort(sorted, count, sizeof *sorted, by_order);
	for (unsigned i = 0; i < count; i++) {
		unsigned number = (unsigned)(sorted[i] - d->messages);

		fprintf(text, "%s %u %u %u\n", dense_name(number), number, sorted[i]->version,
			sorted[i]->size);
	}
	ck_assert_int_eq(fclose(text), 0);
	free(sorted);
}

void dense_rest(struct dense *d)
{
	SUCCEEDS(dense_commit(d));
	dense_close(d);
}

void dense_judge(struct dense *d, unsigned seed)
{
	char expected[192];

	dense_rest(d);
	snprintf(expected, sizeof expected, "%s.expected", d->scratch.path);
	dense_write_expected(d, expected);
	scratch_run("cp %s %s.copy", d->scratch.path, d->scratch.path);
	if (seed)
		scratch_judge_python("tests/judge/dense_judge.py %s.copy %s %s %u", d->scratch.path, d->name,
				     expected, seed);
	else
		scratch_judge_python("tests/judge/dense_judge.py %s.copy %s %s", d->scratch.path, d->name,
				     expected);
	dense_open(d);
}

/* Messages of object headers, replaced: of all sizes, wherever they lie. libhdf5 judges, in
 * tests/header_edit_judge.py. */
#include "base/error.h"
#include "fault_io.h"
#include "format/dataspace.h"
#include "format/layout.h"
#include "object/path.h"
#include "store/file_set.h"
#include "store/object_header.h"
#include "store/transaction.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 3 };

/* ---- a copy of the file, open for writing ---- */

struct opened {
	char folder[64], original[512], path[128];
	struct fault_io fault;
	struct h5_file_set *set;
	struct h5_file *file;
};

static void run(const char *command)
{
	ck_assert_msg(system(command) == 0, "%s", command);
}

static struct opened *open_copy(const char *name)
{
	const char *data = getenv("H5FS_TEST_DATA");
	struct opened *o = calloc(1, sizeof *o);
	struct h5_file_set_options options = {
		.block_cache = 4 << 20, .chunk_cache = 1 << 20, .writable = true, .wrap = fault_io_wrap};
	char command[1024];

	strcpy(o->folder, "/tmp/header_edit.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(o->folder));
	snprintf(o->original, sizeof o->original, "%s/%s.h5", data ? data : "tests/data", name);
	snprintf(o->path, sizeof o->path, "%s/copy.h5", o->folder);
	snprintf(command, sizeof command, "cp '%s' '%s'", o->original, o->path);
	run(command);
	o->fault.record = true;
	options.wrap_arg = &o->fault;
	ck_assert_msg(!h5_file_set_open(o->path, &options, &o->set), "%s", h5_error_last()->text);
	o->file = h5_file_set_root(o->set);
	ck_assert(h5_tx_is_writable(o->file));
	return o;
}

static void close_copy(struct opened *o)
{
	char command[256];

	h5_file_set_close(o->set);
	snprintf(command, sizeof command, "rm -r '%s'", o->folder);
	run(command);
	fault_io_release(&o->fault);
	free(o);
}

static void judge(struct opened *o)
{
	const char *source = getenv("srcdir");
	char command[1400];

	h5_file_set_close(o->set);
	o->set = NULL;
	snprintf(command, sizeof command, "/usr/bin/python3 '%s/tests/header_edit_judge.py' '%s' '%s' %d",
		 source ? source : ".", o->original, o->path, ROUNDS);
	run(command);
}

/* Header of a dataset; false: there is none of the name. */
static bool find(struct opened *o, const char *name, uint64_t *address)
{
	const struct h5_superblock *sb = h5_file_superblock(o->file);
	struct h5_file *file;

	return !h5_path_find(o->file, sb->root, name, strlen(name), &file, address);
}

/* ---- changes ---- */

#define SUCCEEDS(call)                                                                                       \
	ck_assert_msg(!(call), "%s at %ju", h5_error_last()->text, (uintmax_t)h5_error_last()->address)

/* A copy of the message's body. */
static uint8_t *body_of(struct opened *o, uint64_t address, enum h5_message_type type, size_t *n)
{
	struct h5_header header;
	const struct h5_message *m;
	uint8_t *body;

	SUCCEEDS(h5_header_load(o->file, address, &header));
	m = h5_header_find(&header, type);
	ck_assert_ptr_nonnull(m);
	*n = m->size;
	body = malloc(m->size);
	memcpy(body, m->data, m->size);
	h5_header_release(&header);
	return body;
}

static void replace(struct opened *o, uint64_t address, enum h5_message_type type, uint8_t *body, size_t n)
{
	uint8_t *again;
	size_t m;

	SUCCEEDS(h5_header_can_replace(o->file, address, type));
	SUCCEEDS(h5_header_replace(o->file, address, type, body, n));
	again = body_of(o, address, type, &m);
	ck_assert_uint_eq(m, n);
	ck_assert_mem_eq(again, body, n);
	free(again);
	free(body);
}

static void set_rows(struct opened *o, uint64_t address, uint64_t rows)
{
	struct h5_dataspace space;
	struct h5_reader r;
	size_t n;
	uint8_t *body = body_of(o, address, H5_MSG_DATASPACE, &n);

	r = h5_file_reader(o->file, body, n, 0);
	SUCCEEDS(h5_dataspace_decode(&r, &space));
	space.dims[0] = rows;
	SUCCEEDS(h5_dataspace_update(body, n, h5_file_superblock(o->file)->size_of_lengths, &space));
	replace(o, address, H5_MSG_DATASPACE, body, n);
}

static void decode_layout(struct opened *o, const uint8_t *body, size_t n, struct h5_layout *layout)
{
	struct h5_reader r = h5_file_reader(o->file, body, n, 0);

	SUCCEEDS(h5_layout_decode(&r, layout));
}

static void set_layout(struct opened *o, uint64_t address, uint8_t *body, size_t n,
		       const struct h5_layout *layout)
{
	const struct h5_superblock *sb = h5_file_superblock(o->file);

	SUCCEEDS(h5_layout_update(body, n, sb->size_of_offsets, sb->size_of_lengths, layout));
	replace(o, address, H5_MSG_LAYOUT, body, n);
}

/* Stores n numbers, from `first` on, in new space. */
static uint64_t store_numbers(struct opened *o, int first, int n)
{
	uint64_t address;
	int numbers[8];

	for (int i = 0; i < n; i++)
		numbers[i] = first + i;
	SUCCEEDS(h5_tx_allocate(o->file, H5_ALLOCATE_RAW, (size_t)n * sizeof *numbers, &address));
	SUCCEEDS(h5_tx_write(o->file, address, numbers, (size_t)n * sizeof *numbers));
	return address;
}

static void move_data(struct opened *o, char kind, uint64_t address, int round)
{
	struct h5_layout layout;
	size_t n;
	uint8_t *body = body_of(o, address, H5_MSG_LAYOUT, &n);

	decode_layout(o, body, n, &layout);
	if (kind == 'a')
		layout.chunked.address = store_numbers(o, round, 8);
	else
		layout.contiguous.address = store_numbers(o, 1000 * round, 5);
	set_layout(o, address, body, n, &layout);
}

static void set_compact(struct opened *o, uint64_t address, int round)
{
	struct h5_layout layout;
	size_t n;
	uint8_t *data, *body = body_of(o, address, H5_MSG_LAYOUT, &n);

	decode_layout(o, body, n, &layout);
	data = malloc(layout.compact.size + 1);
	memset(data, 7 + round, layout.compact.size);
	layout.compact.data = data;
	set_layout(o, address, body, n, &layout);
	free(data);
}

/* What all datasets are after the round, of 1, 2, ... */
static void change(struct opened *o, char kind, uint64_t address, int round)
{
	switch (kind) {
	case 'a':
		move_data(o, kind, address, round);
		set_rows(o, address, (uint64_t)(4 + round));
		break;
	case 'b':
		move_data(o, kind, address, round);
		break;
	case 'c':
		set_compact(o, address, round);
		break;
	default:
		/* twice in a transaction */
		set_rows(o, address, 100);
		set_rows(o, address, (uint64_t)(4 + round));
	}
}

static unsigned change_all(struct opened *o, int round)
{
	uint64_t address;
	unsigned changed = 0;
	char name[16];

	for (const char *kind = "abcd"; *kind; kind++)
		for (unsigned i = 0;; i++, changed++) {
			snprintf(name, sizeof name, "%c%03u", *kind, i);
			if (!find(o, name, &address))
				break;
			change(o, *kind, address, round);
		}
	return changed;
}

/* Writes that are no cells, in one commit, in what was there before. */
static unsigned commit(struct opened *o, uint64_t end)
{
	size_t begin = o->fault.count;
	unsigned torn = 0;

	SUCCEEDS(h5_tx_commit(o->file));
	for (size_t i = begin; i < o->fault.count; i++) {
		const struct fault_event *e = &o->fault.events[i];

		torn += !e->file && e->kind == FAULT_WRITE && e->offset < end &&
			e->offset / H5_CELL != (e->offset + e->size - 1) / H5_CELL;
	}
	return torn;
}

static void edit(const char *name, bool relocates)
{
	struct opened *o = open_copy(name);

	for (int round = 1; round <= ROUNDS; round++) {
		uint64_t end = h5_file_superblock(o->file)->base + h5_file_end(o->file);
		unsigned changed = change_all(o, round), torn = commit(o, end);

		ck_assert_uint_gt(changed, 100);
		if (round == 1 && relocates)
			ck_assert_msg(torn > 0 && torn < changed / 2, "%u of %u", torn, changed);
		else
			ck_assert_msg(torn == 0, "%u of %u in round %d", torn, changed, round);
	}
	judge(o);
	close_copy(o);
}

START_TEST(version_1)
{
	edit("header_edit_v1", false);
}
END_TEST

START_TEST(version_2)
{
	edit("header_edit_v2", true);
}
END_TEST

START_TEST(user_block)
{
	edit("header_edit_block", true);
}
END_TEST

START_TEST(what_cannot_be_replaced)
{
	struct opened *o = open_copy("header_edit_v2");
	uint64_t address;
	uint8_t *body;
	size_t n;

	ck_assert(find(o, "d000", &address));
	ck_assert_int_eq(h5_header_can_replace(o->file, address, H5_MSG_EXTERNAL_FILES), -ENOTSUP);
	ck_assert_int_eq(h5_header_replace(o->file, address, H5_MSG_EXTERNAL_FILES, "", 0), -ENOTSUP);
	body = body_of(o, address, H5_MSG_DATASPACE, &n);
	ck_assert_int_eq(h5_header_replace(o->file, address, H5_MSG_DATASPACE, body, n - 1), -ENOTSUP);
	/* what changes nothing is no change */
	ck_assert_int_eq(h5_header_replace(o->file, address, H5_MSG_DATASPACE, body, n), 0);
	ck_assert(!h5_tx_is_pending(o->file));
	free(body);
	close_copy(o);
}
END_TEST

START_TEST(shared_messages)
{
	struct opened *o = open_copy("object_shared");
	uint64_t address;

	ck_assert(find(o, "data1", &address));
	ck_assert_int_eq(h5_header_can_replace(o->file, address, H5_MSG_DATASPACE), -ENOTSUP);
	ck_assert_int_eq(h5_header_can_replace(o->file, address, H5_MSG_LAYOUT), 0);
	ck_assert_int_eq(h5_header_replace(o->file, address, H5_MSG_DATASPACE, "", 0), -ENOTSUP);
	ck_assert(!h5_tx_is_pending(o->file));
	close_copy(o);
}
END_TEST

UNIT_MAIN("header_edit", version_1, version_2, user_block, what_cannot_be_replaced, shared_messages)

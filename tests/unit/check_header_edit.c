/* Messages of object headers, replaced: of all sizes, wherever they lie. libhdf5 judges, in
 * tests/header_edit_judge.py. */
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "format/dataspace.h"
#include "format/layout.h"
#include "object/own_message.h"
#include "object/path.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 3 };

/* ---- a copy of the file, open for writing, whose calls are recorded ---- */

static void begin(struct scratch *s, struct fault_io *fault, const char *name)
{
	char fixture[64];

	snprintf(fixture, sizeof fixture, "%s.h5", name);
	*fault = (struct fault_io){.record = true};
	scratch_init(s, fixture);
	scratch_wrap(s, fault);
	scratch_open(s);
	ck_assert(h5_tx_is_writable(s->file));
}

static void end(struct scratch *s, struct fault_io *fault)
{
	scratch_release(s);
	fault_io_release(fault);
}

/* Header of a dataset; false: there is none of the name. */
static bool find(struct scratch *s, const char *name, uint64_t *address)
{
	const struct h5_superblock *sb = h5_file_superblock(s->file);
	struct h5_file *file;

	return !h5_path_find(s->file, sb->root, name, strlen(name), &file, address);
}

/* ---- changes ---- */

/* The body that a message gets; nothing changes if its size is another. */
struct body {
	const uint8_t *bytes;
	size_t n;
};

static int set_body(const void *arg, uint8_t *body, size_t n)
{
	const struct body *new = arg;

	if (n != new->n)
		return -EINVAL;
	memcpy(body, new->bytes, n);
	return 0;
}

static int update(struct scratch *s, uint64_t address, enum h5_message_type type, const uint8_t *bytes,
		  size_t n)
{
	return h5_header_update(s->file, address, type, set_body, &(struct body){bytes, n});
}

static void replace(struct scratch *s, uint64_t address, enum h5_message_type type, uint8_t *body, size_t n)
{
	uint8_t *again;
	size_t m;

	SUCCEEDS(h5_own_message_check(s->file, address, type));
	SUCCEEDS(update(s, address, type, body, n));
	again = scratch_message(s, address, type, &m);
	ck_assert_uint_eq(m, n);
	ck_assert_mem_eq(again, body, n);
	free(again);
	free(body);
}

static void set_rows(struct scratch *s, uint64_t address, uint64_t rows)
{
	struct h5_dataspace space;
	struct h5_reader r;
	size_t n;
	uint8_t *body = scratch_message(s, address, H5_MSG_DATASPACE, &n);

	r = h5_file_reader(s->file, body, n, 0);
	SUCCEEDS(h5_dataspace_decode(&r, &space));
	space.dims[0] = rows;
	SUCCEEDS(h5_dataspace_update(body, n, h5_file_superblock(s->file)->size_of_lengths, &space));
	replace(s, address, H5_MSG_DATASPACE, body, n);
}

static void decode_layout(struct scratch *s, const uint8_t *body, size_t n, struct h5_layout *layout)
{
	struct h5_reader r = h5_file_reader(s->file, body, n, 0);

	SUCCEEDS(h5_layout_decode(&r, layout));
}

static void set_layout(struct scratch *s, uint64_t address, uint8_t *body, size_t n,
		       const struct h5_layout *layout)
{
	const struct h5_superblock *sb = h5_file_superblock(s->file);

	SUCCEEDS(h5_layout_update(body, n, sb->size_of_offsets, sb->size_of_lengths, layout));
	replace(s, address, H5_MSG_LAYOUT, body, n);
}

/* Stores n numbers, from `first` on, in new space. */
static uint64_t store_numbers(struct scratch *s, int first, int n)
{
	uint64_t address;
	int numbers[8];

	for (int i = 0; i < n; i++)
		numbers[i] = first + i;
	SUCCEEDS(h5_tx_allocate(s->file, H5_ALLOCATE_RAW, (size_t)n * sizeof *numbers, &address));
	SUCCEEDS(h5_tx_write(s->file, address, numbers, (size_t)n * sizeof *numbers));
	return address;
}

static void move_data(struct scratch *s, char kind, uint64_t address, int round)
{
	struct h5_layout layout;
	size_t n;
	uint8_t *body = scratch_message(s, address, H5_MSG_LAYOUT, &n);

	decode_layout(s, body, n, &layout);
	if (kind == 'a')
		layout.chunked.address = store_numbers(s, round, 8);
	else
		layout.contiguous.address = store_numbers(s, 1000 * round, 5);
	set_layout(s, address, body, n, &layout);
}

static void set_compact(struct scratch *s, uint64_t address, int round)
{
	struct h5_layout layout;
	size_t n;
	uint8_t *data, *body = scratch_message(s, address, H5_MSG_LAYOUT, &n);

	decode_layout(s, body, n, &layout);
	data = malloc(layout.compact.size + 1);
	memset(data, 7 + round, layout.compact.size);
	layout.compact.data = data;
	set_layout(s, address, body, n, &layout);
	free(data);
}

/* What all datasets are after the round, of 1, 2, ... */
static void change(struct scratch *s, char kind, uint64_t address, int round)
{
	switch (kind) {
	case 'a':
		move_data(s, kind, address, round);
		set_rows(s, address, (uint64_t)(4 + round));
		break;
	case 'b':
		move_data(s, kind, address, round);
		break;
	case 'c':
		set_compact(s, address, round);
		break;
	default:
		/* twice in a transaction */
		set_rows(s, address, 100);
		set_rows(s, address, (uint64_t)(4 + round));
	}
}

/* Newer versions of libhdf5 accept the header too, whether they are there to ask or not. */
static void check(struct scratch *s, uint64_t address)
{
	struct h5_header h;

	SUCCEEDS(h5_header_load(s->file, address, &h));
	SUCCEEDS(h5_header_check(s->file, &h));
	h5_header_release(&h);
}

static unsigned change_all(struct scratch *s, int round)
{
	uint64_t address;
	unsigned changed = 0;
	char name[16];

	for (const char *kind = "abcd"; *kind; kind++)
		for (unsigned i = 0;; i++, changed++) {
			snprintf(name, sizeof name, "%c%03u", *kind, i);
			if (!find(s, name, &address))
				break;
			change(s, *kind, address, round);
			check(s, address);
		}
	return changed;
}

/* Writes that are no cells, in one commit, in what was there before. */
static unsigned commit(struct scratch *s, const struct fault_io *fault, uint64_t end)
{
	size_t begin = fault->count;
	unsigned torn = 0;

	SUCCEEDS(h5_tx_commit(s->file));
	for (size_t i = begin; i < fault->count; i++) {
		const struct fault_event *e = &fault->events[i];

		torn += !e->file && e->kind == FAULT_WRITE && e->offset < end &&
			e->offset / H5_CELL != (e->offset + e->size - 1) / H5_CELL;
	}
	return torn;
}

static void edit(const char *name, bool relocates)
{
	struct fault_io fault;
	struct scratch s;

	begin(&s, &fault, name);
	for (int round = 1; round <= ROUNDS; round++) {
		uint64_t until = h5_file_superblock(s.file)->base + h5_file_end(s.file);
		unsigned changed = change_all(&s, round), torn = commit(&s, &fault, until);

		ck_assert_uint_gt(changed, 100);
		if (round == 1 && relocates)
			ck_assert_msg(torn > 0 && torn < changed / 2, "%u of %u", torn, changed);
		else
			ck_assert_msg(torn == 0, "%u of %u in round %d", torn, changed, round);
	}
	scratch_close(&s);
	scratch_judge_python("tests/judge/header_edit_judge.py %s %s %d", s.original, s.path, ROUNDS);
	end(&s, &fault);
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

/* What a message was changed to before it is removed is not written: it could be there before the cell that
 * removes it. */
START_TEST(changed_and_removed)
{
	uint8_t old[40], new[sizeof old], now[sizeof old];
	struct h5_new_message comment = {.type = H5_MSG_COMMENT, .body = old, .size = sizeof old};
	struct fault_io fault;
	struct h5_header h;
	uint64_t header, address;
	struct scratch s;

	memset(old, 'o', sizeof old);
	memset(new, 'n', sizeof new);
	begin(&s, &fault, "header_edit_v1");
	ck_assert(find(&s, "d000", &header));
	SUCCEEDS(h5_header_insert(s.file, header, &comment));
	SUCCEEDS(h5_tx_commit(s.file));
	comment.body = new;
	SUCCEEDS(h5_header_load(s.file, header, &h));
	address = h5_header_find(&h, H5_MSG_COMMENT)->address;
	SUCCEEDS(h5_header_set(s.file, header, h5_header_find(&h, H5_MSG_COMMENT), &comment));
	h5_header_release(&h);
	SUCCEEDS(h5_header_load(s.file, header, &h));
	ck_assert_uint_eq(h5_header_find(&h, H5_MSG_COMMENT)->address, address);
	SUCCEEDS(h5_header_remove(s.file, header, h5_header_find(&h, H5_MSG_COMMENT)));
	h5_header_release(&h);
	SUCCEEDS(h5_tx_commit(s.file));
	SUCCEEDS(h5_tx_read_committed(s.file, address, now, sizeof now));
	ck_assert_mem_eq(now, old, sizeof now);
	end(&s, &fault);
}
END_TEST

START_TEST(what_cannot_be_replaced)
{
	struct fault_io fault;
	struct scratch s;
	uint64_t address;
	uint8_t *body;
	size_t n;

	begin(&s, &fault, "header_edit_v2");
	ck_assert(find(&s, "d000", &address));
	ck_assert_int_eq(h5_own_message_check(s.file, address, H5_MSG_EXTERNAL_FILES), -ENOTSUP);
	ck_assert_int_eq(update(&s, address, H5_MSG_EXTERNAL_FILES, NULL, 0), -ENOTSUP);
	body = scratch_message(&s, address, H5_MSG_DATASPACE, &n);
	body[0] ^= 1;
	ck_assert_int_eq(update(&s, address, H5_MSG_DATASPACE, body, n - 1), -EINVAL);
	body[0] ^= 1;
	/* what changes nothing is no change */
	ck_assert_int_eq(update(&s, address, H5_MSG_DATASPACE, body, n), 0);
	ck_assert(!h5_tx_is_pending(s.file));
	free(body);
	end(&s, &fault);
}
END_TEST

START_TEST(shared_messages)
{
	struct fault_io fault;
	struct scratch s;
	uint64_t address;

	begin(&s, &fault, "object_shared");
	ck_assert(find(&s, "data1", &address));
	SUCCEEDS(h5_own_message_check(s.file, address, H5_MSG_DATASPACE));
	ck_assert_int_eq(h5_own_message_check(s.file, address, H5_MSG_LAYOUT), 0);
	ck_assert_int_eq(update(&s, address, H5_MSG_DATASPACE, NULL, 0), -ENOTSUP);
	ck_assert(!h5_tx_is_pending(s.file));
	end(&s, &fault);
}
END_TEST

/* A message of an unknown type may say so. */
START_TEST(headers_that_are_not_to_be_changed)
{
	static const char *const names[] = {"unknown1_08", "unknown2_08"};
	struct fault_io fault;
	struct scratch s;
	uint64_t address;
	uint8_t *body, *again;
	size_t n, m;

	begin(&s, &fault, "rare_headers");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		ck_assert(find(&s, names[i], &address));
		body = scratch_message(&s, address, H5_MSG_DATASPACE, &n);
		body[n - 1] ^= 1;
		ck_assert_int_eq(update(&s, address, H5_MSG_DATASPACE, body, n), -ENOTSUP);
		ck_assert(!h5_tx_is_pending(s.file));
		again = scratch_message(&s, address, H5_MSG_DATASPACE, &m);
		ck_assert_uint_eq(m, n);
		ck_assert_mem_eq(again, body, n - 1);
		ck_assert_uint_eq(again[n - 1], body[n - 1] ^ 1);
		free(again);
		free(body);
	}
	end(&s, &fault);
}
END_TEST

/* The flags of the message of an unknown type, whose body is as it was. */
static uint8_t flags_of_unknown(const struct scratch *s, uint64_t address)
{
	static const char body[] = "unknown message.";
	struct h5_header header;
	uint8_t flags = 0;
	unsigned count = 0;

	SUCCEEDS(h5_header_load(s->file, address, &header));
	for (unsigned i = 0; i < header.count; i++)
		if (header.messages[i].type == 0x77) {
			ck_assert_uint_ge(header.messages[i].size, strlen(body));
			ck_assert_mem_eq(header.messages[i].data, body, strlen(body));
			flags = header.messages[i].flags;
			count++;
		}
	ck_assert_uint_eq(count, 1);
	h5_header_release(&header);
	return flags;
}

static int patch_it(struct scratch *s, uint64_t address)
{
	size_t n;
	uint8_t *body = scratch_message(s, address, H5_MSG_DATASPACE, &n);
	int rc;

	body[n - 8]++; /* the last dimension */
	rc = update(s, address, H5_MSG_DATASPACE, body, n);
	free(body);
	return rc;
}

static int insert_into_it(struct scratch *s, uint64_t address)
{
	const struct h5_new_message comment = {
		.type = H5_MSG_COMMENT, .body = (const uint8_t *)"changed", .size = 8};

	return h5_header_insert(s->file, address, &comment);
}

static int count_a_link_more(struct scratch *s, uint64_t address)
{
	return h5_header_set_references(s->file, address, 2);
}

/* A message of an unknown type may ask to be marked when the object changes. */
START_TEST(changes_by_who_does_not_know_all)
{
	static int (*const changes[])(struct scratch *, uint64_t) = {patch_it, insert_into_it,
								     count_a_link_more};
	static const struct {
		const char *name;
		uint8_t flags;
	} cases[] = {{"unknown1_00", 0},    {"unknown2_00", 0},	   {"unknown1_04", 4},
		     {"unknown2_04", 4},    {"unknown1_10", 0x30}, {"unknown2_10", 0x30},
		     {"unknown1_40", 0x40}, {"unknown2_40", 0x40}};
	struct fault_io fault;
	struct scratch s;
	uint64_t address;

	for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
		begin(&s, &fault, "rare_headers");
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			ck_assert(find(&s, cases[i].name, &address));
			SUCCEEDS(changes[c](&s, address));
			ck_assert_msg(flags_of_unknown(&s, address) == cases[i].flags, "%zu %s", c,
				      cases[i].name);
		}
		SUCCEEDS(h5_tx_commit(s.file));
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			ck_assert(find(&s, cases[i].name, &address));
			ck_assert_uint_eq(flags_of_unknown(&s, address), cases[i].flags);
		}
		end(&s, &fault);
	}
}
END_TEST

/* The mark comes when headers change: behind what they lead to. */
START_TEST(stage_of_the_mark)
{
	static const char *const names[] = {"unknown1_10", "unknown2_10"};
	struct fault_io fault;
	struct scratch s;
	uint64_t address;

	begin(&s, &fault, "rare_headers");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const uint64_t end = h5_file_end(s.file);

		ck_assert(find(&s, names[i], &address));
		SUCCEEDS(h5_header_mark_unknown(s.file, address));
		ck_assert_uint_eq(flags_of_unknown(&s, address), 0x30);
		ck_assert_uint_eq(h5_tx_latest_stage(s.file, 0, end), H5_STAGE_OBJECT);
		ck_assert(!h5_tx_changes_before(s.file, 0, end, H5_STAGE_OBJECT));
		SUCCEEDS(h5_tx_commit(s.file));
	}
	end(&s, &fault);
}
END_TEST

/* A count of links rises before there are more, and falls after there are fewer. */
START_TEST(stages_of_counts)
{
	static const char *const names[] = {"header_edit_v1", "header_edit_v2"};
	struct fault_io fault;
	struct scratch s;
	uint64_t address;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		begin(&s, &fault, names[i]);
		ck_assert(find(&s, "d000", &address));
		SUCCEEDS(h5_header_set_references(s.file, address, 2));
		SUCCEEDS(h5_tx_commit(s.file));
		SUCCEEDS(h5_header_set_references(s.file, address, 3));
		ck_assert_uint_eq(h5_tx_latest_stage(s.file, 0, h5_file_end(s.file)), H5_STAGE_OBJECT);
		ck_assert(!h5_tx_changes_before(s.file, 0, h5_file_end(s.file), H5_STAGE_OBJECT));
		SUCCEEDS(h5_tx_commit(s.file));
		SUCCEEDS(h5_header_set_references(s.file, address, 2));
		ck_assert_uint_eq(h5_tx_latest_stage(s.file, 0, h5_file_end(s.file)), H5_STAGE_UNCOUNT);
		ck_assert(!h5_tx_changes_before(s.file, 0, h5_file_end(s.file), H5_STAGE_UNCOUNT));
		end(&s, &fault);
	}
}
END_TEST

UNIT_MAIN("header_edit", changes_by_who_does_not_know_all, version_1, version_2, user_block,
	  changed_and_removed, stage_of_the_mark, stages_of_counts, what_cannot_be_replaced, shared_messages,
	  headers_that_are_not_to_be_changed)

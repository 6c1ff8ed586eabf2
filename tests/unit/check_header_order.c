/* What a kill leaves of object headers whose messages move, or are marked, when they change: cells of a
 * commit that come with others, or in their place. */
#include "base/lookup3.h"
#include "change/object_header_create.h"
#include "change/object_header_edit.h"
#include "change/object_header_rewrite.h"
#include "crash_image.h"
#include "format/dataspace.h"
#include "object/group_write.h"
#include "object/path.h"
#include "scratch.h"

#include <errno.h>
#include <string.h>

struct scene {
	struct scratch scratch;
	struct fault_io record;
	struct crash_image image;
	uint64_t header;
	uint64_t index; /* a byte of what is to be there before so many rows are */
	unsigned rows;
};

static void begin(struct scene *s)
{
	*s = (struct scene){.header = H5_UNDEF};
	scratch_init(&s->scratch, "header_create-latest.h5");
	scratch_wrap(&s->scratch, &s->record);
	scratch_open(&s->scratch);
}

static void end(struct scene *s)
{
	scratch_release(&s->scratch);
	fault_io_release(&s->record);
	free(s->image.data);
}

static void commit(struct scene *s, void (*check)(const void *scene, struct h5_file *file))
{
	s->record.record = true;
	SUCCEEDS(h5_tx_commit(s->scratch.file));
	ck_assert_uint_gt(crash_image_look(&s->image, &s->record, check, s), 2);
}

/* ---- a chunk across the edge of a page ---- */

enum { PAGE = 4096, UNKNOWN = 0x30, BEFORE_EDGE = 30, FILLER = 40, ROWS = 7 };

static size_t add_message(uint8_t *bytes, size_t at, unsigned type, unsigned flags, const void *body,
			  size_t n)
{
	bytes[at] = (uint8_t)type;
	h5_uint_to(bytes + at + 1, n, 2);
	bytes[at + 3] = (uint8_t)flags;
	memcpy(bytes + at + 4, body, n);
	return at + 4 + n;
}

static size_t seal(uint8_t *bytes, size_t n)
{
	h5_uint_to(bytes + n, h5_lookup3(bytes, n, 0), 4);
	return n + 4;
}

/* A header by hand, whose other chunk crosses a page, in the filler: a cell can change the dataspace, which
 * is the last message in it, but not the first one, of that type. */
static void put_header(struct scene *s, unsigned type, unsigned flags, unsigned filler)
{
	const uint8_t space[12] = {2, 1, 0, 1, ROWS}, count[5] = {0, 1}, text[FILLER] = "filler";
	uint8_t bytes[2 * PAGE] = {0}, *chunk = bytes + PAGE - BEFORE_EDGE, link[16];
	struct h5_file *file = s->scratch.file;
	uint64_t at, page;
	size_t n = 4;

	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, 4 * PAGE, &at));
	page = at / PAGE * PAGE + PAGE;
	memcpy(chunk, "OCHK", 4);
	n = add_message(chunk, n, type, flags, count, sizeof count);
	n = add_message(chunk, n, filler, 0, text, sizeof text);
	n = seal(chunk, add_message(chunk, n, H5_MSG_DATASPACE, 0, space, sizeof space));
	h5_uint_to(link, page + PAGE - BEFORE_EDGE, 8);
	h5_uint_to(link + 8, n, 8);
	memcpy(bytes, "OHDR\2", 6);
	n = add_message(bytes, 7, H5_MSG_CONTINUATION, 0, link, sizeof link);
	bytes[6] = (uint8_t)(n - 7);
	seal(bytes, n);
	SUCCEEDS(h5_tx_write(file, page, bytes, sizeof bytes));
	s->header = page;
	s->index = page + 2 * PAGE;
	SUCCEEDS(h5_tx_write(file, s->index, "0", 1));
	SUCCEEDS(h5_tx_commit(file));
}

static void check_rows(const void *scene, struct h5_file *file)
{
	const struct scene *s = scene;
	const struct h5_message *message;
	struct h5_header header;
	uint8_t index;

	SUCCEEDS(h5_header_load(file, s->header, &header));
	message = h5_header_find(&header, H5_MSG_DATASPACE);
	ck_assert_ptr_nonnull(message);
	SUCCEEDS(h5_file_read(file, s->index, &index, 1));
	ck_assert(message->data[4] < s->rows || (message->data[4] == s->rows && index == '1'));
	h5_header_release(&header);
}

/* With a change the first message is marked, or it counts a name more. It cannot change where it is, so the
 * chunk moves. Then a name leaves the group, and what changes in new space waits for the name elsewhere. */
START_TEST(changes_after_a_move)
{
	struct h5_file *file;
	struct scene s;

	begin(&s);
	file = s.scratch.file;
	put_header(&s, _i ? H5_MSG_REFERENCE_COUNT : UNKNOWN, _i ? 0 : H5_MSG_FLAG_MARK_UNKNOWN,
		   H5_MSG_COMMENT);
	crash_image_load(&s.image, s.scratch.path);
	s.rows = ROWS + 2;
	SUCCEEDS(
		h5_header_update_at(file, s.header, H5_MSG_DATASPACE, H5_STAGE_BLOCK, scratch_add_row, file));
	if (_i)
		SUCCEEDS(h5_header_set_references(file, s.header, 2));
	SUCCEEDS(h5_tx_patch(file, s.index, "1", 1, H5_STAGE_NAME));
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_leave(file, s.header));
	SUCCEEDS(h5_header_update_at(file, s.header, H5_MSG_DATASPACE, H5_STAGE_UNNAME, scratch_add_row,
				     file));
	SUCCEEDS(h5_unit_end(file, 0));
	commit(&s, check_rows);
	end(&s);
}
END_TEST

static int count_more(const void *arg, uint8_t *body, size_t n)
{
	(void)arg;
	ck_assert_uint_eq(n, 5);
	body[1]++;
	return 0;
}

/* The messages are laid anew, as they are. */
static int rewrite(struct h5_file *file, uint64_t address, unsigned stage)
{
	struct h5_header header;
	int rc = h5_header_load(file, address, &header);

	if (!rc)
		rc = h5_header_rewrite(file, address, header.messages, header.count, stage);
	h5_header_release(&header);
	return rc;
}

static int count_in_place(struct h5_file *file, uint64_t address, unsigned stage)
{
	return h5_header_update_at(file, address, H5_MSG_REFERENCE_COUNT, stage, count_more, NULL);
}

/* What moves the dataspace, before it changes or later, is of an earlier stage than its change, and than what
 * that waits for. */
START_TEST(changes_in_what_moves)
{
	enum { CASES = 3 };
	static const struct {
		unsigned index, space, moves;
		int (*move)(struct h5_file *file, uint64_t address, unsigned stage);
	} cases[CASES] = {{H5_STAGE_INDEX, H5_STAGE_DATASPACE, H5_STAGE_BLOCK, count_in_place},
			  {H5_STAGE_UNNAME, H5_STAGE_UNCOUNT, H5_STAGE_OBJECT, count_in_place},
			  {H5_STAGE_UNNAME, H5_STAGE_UNCOUNT, H5_STAGE_OBJECT, rewrite}};
	const unsigned k = (unsigned)_i % CASES;
	struct h5_file *file;
	struct scene s;

	begin(&s);
	file = s.scratch.file;
	put_header(&s, H5_MSG_REFERENCE_COUNT, 0, H5_MSG_COMMENT);
	crash_image_load(&s.image, s.scratch.path);
	s.rows = ROWS + 1;
	SUCCEEDS(h5_tx_patch(file, s.index, "1", 1, cases[k].index));
	if (_i >= CASES)
		SUCCEEDS(cases[k].move(file, s.header, cases[k].moves));
	SUCCEEDS(
		h5_header_update_at(file, s.header, H5_MSG_DATASPACE, cases[k].space, scratch_add_row, file));
	if (_i < CASES)
		SUCCEEDS(cases[k].move(file, s.header, cases[k].moves));
	commit(&s, check_rows);
	end(&s);
}
END_TEST

/* The bytes before a message that goes or gets smaller are unused, but the page ends in them. So only its own
 * change, in a cell, and the chunk stays where it is. */
START_TEST(changes_behind_an_edge)
{
	const struct h5_new_message small = {
		.type = H5_MSG_COMMENT, .body = (const uint8_t *)"text", .size = 5};
	struct h5_header before, after;
	struct h5_file *file;
	struct scene s;

	begin(&s);
	file = s.scratch.file;
	put_header(&s, H5_MSG_REFERENCE_COUNT, 0, H5_MSG_NIL);
	SUCCEEDS(h5_header_load(file, s.header, &before));
	ck_assert_uint_eq(before.chunk_count, 2);
	ck_assert_uint_eq(before.count, 2);
	if (_i)
		SUCCEEDS(h5_header_set(file, s.header, &before.messages[1], &small));
	else
		SUCCEEDS(h5_header_remove(file, s.header, &before.messages[1]));
	SUCCEEDS(h5_tx_commit(file));
	SUCCEEDS(h5_header_load(file, s.header, &after));
	SUCCEEDS(h5_header_check(file, &after));
	ck_assert_uint_eq(after.chunk_count, 2);
	ck_assert_uint_eq(after.chunks[1].address, before.chunks[1].address);
	ck_assert_uint_eq(after.count, _i ? 2 : 1);
	ck_assert_uint_eq(after.messages[0].type, H5_MSG_REFERENCE_COUNT);
	ck_assert_uint_eq(after.messages[0].address, before.messages[0].address);
	if (_i) {
		ck_assert_uint_eq(after.messages[1].type, H5_MSG_COMMENT);
		ck_assert_uint_eq(after.messages[1].address, before.messages[1].address);
		ck_assert_mem_eq(after.messages[1].data, "text", 5);
	}
	h5_header_release(&before);
	h5_header_release(&after);
	end(&s);
}
END_TEST

/* A message needs all of many small gaps, which become one at the end of the chunk. */
START_TEST(many_gaps_together)
{
	enum { GAPS = 40, GAP = 8, MESSAGE = (GAPS - 1) * GAP };
	static const uint8_t zeros[MESSAGE];
	const struct h5_new_message new = {.type = H5_MSG_COMMENT, .body = zeros, .size = MESSAGE};
	uint8_t bytes[PAGE] = "OHDR\2\1";
	struct h5_header header;
	struct h5_file *file;
	struct scene s;
	size_t n = 8;

	begin(&s);
	file = s.scratch.file;
	for (unsigned i = 0; i < GAPS; i++) {
		n = add_message(bytes, n, UNKNOWN, 0, &i, 1);
		n = add_message(bytes, n, H5_MSG_NIL, 0, zeros, GAP - 4);
	}
	h5_uint_to(bytes + 6, n - 8, 2);
	n = seal(bytes, n);
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_METADATA, n, &s.header));
	SUCCEEDS(h5_tx_put(file, s.header, bytes, n));
	SUCCEEDS(h5_tx_commit(file));
	SUCCEEDS(h5_header_insert(file, s.header, &new));
	SUCCEEDS(h5_tx_commit(file));
	SUCCEEDS(h5_header_load(file, s.header, &header));
	SUCCEEDS(h5_header_check(file, &header));
	ck_assert_uint_eq(header.chunk_count, 1);
	ck_assert_uint_eq(header.count, GAPS + 1);
	for (unsigned i = 0; i < GAPS; i++)
		ck_assert_uint_eq(*header.messages[i].data, i);
	ck_assert_uint_eq(header.messages[GAPS].size, MESSAGE);
	h5_header_release(&header);
	end(&s);
}
END_TEST

/* ---- a link to new space ---- */

enum { FILLED = 24, NEW = 80, OTHERS = UNKNOWN + 1, FILLS = UNKNOWN + 2 };

static size_t add_message_1(uint8_t *bytes, size_t at, unsigned type, size_t size)
{
	h5_uint_to(bytes + at, type, 2);
	h5_uint_to(bytes + at + 2, size, 2);
	return at + 8 + size;
}

/* A version 1 header by hand, with two places for messages. */
static void put_header_1(struct scene *s)
{
	static const struct {
		unsigned type;
		size_t size;
	} messages[] = {{OTHERS, 8}, {H5_MSG_NIL, FILLED}, {OTHERS, 8}, {H5_MSG_NIL, 16}, {OTHERS, 8}};
	struct h5_file *file = s->scratch.file;
	uint8_t bytes[256] = {1, 0, sizeof messages / sizeof *messages, 0, 1};
	size_t n = 16;

	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, PAGE, &s->index));
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_METADATA, sizeof bytes, &s->header));
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
		n = add_message_1(bytes, n, messages[i].type, messages[i].size);
	h5_uint_to(bytes + 8, n - 16, 4);
	SUCCEEDS(h5_tx_put(file, s->header, bytes, sizeof bytes));
	SUCCEEDS(h5_tx_write(file, s->index, "0", 1));
	SUCCEEDS(h5_tx_commit(file));
}

/* What the index waits for is there, and what waits for the index is not. */
static void check_messages(const void *scene, struct h5_file *file)
{
	const struct scene *s = scene;
	const struct h5_message *new;
	struct h5_header header;
	uint8_t index;

	SUCCEEDS(h5_header_load(file, s->header, &header));
	SUCCEEDS(h5_header_check(file, &header));
	SUCCEEDS(h5_file_read(file, s->index, &index, 1));
	new = h5_header_find(&header, (enum h5_message_type)UNKNOWN);
	ck_assert(index != '1' || h5_header_find(&header, (enum h5_message_type)FILLS));
	ck_assert(!new || !*new->data || index == '1');
	h5_header_release(&header);
}

static int set_first(const void *arg, uint8_t *body, size_t n)
{
	(void)arg;
	(void)n;
	*body = 1;
	return 0;
}

/* A message in new space changes, so only what leads there waits for that. */
START_TEST(changes_beside_a_link)
{
	static const uint8_t zeros[NEW];
	struct h5_file *file;
	struct scene s;

	begin(&s);
	file = s.scratch.file;
	put_header_1(&s);
	crash_image_load(&s.image, s.scratch.path);
	SUCCEEDS(h5_header_insert(file, s.header,
				  &(struct h5_new_message){.type = (enum h5_message_type)FILLS,
							   .body = zeros,
							   .size = FILLED}));
	SUCCEEDS(h5_header_insert(
		file, s.header,
		&(struct h5_new_message){.type = (enum h5_message_type)UNKNOWN, .body = zeros, .size = NEW}));
	SUCCEEDS(h5_tx_patch(file, s.index, "1", 1, H5_STAGE_NAME));
	SUCCEEDS(h5_header_update_at(file, s.header, (enum h5_message_type)UNKNOWN, H5_STAGE_UNNAME,
				     set_first, NULL));
	commit(&s, check_messages);
	end(&s);
}
END_TEST

/* ---- marks ---- */

static void insert(struct scene *s, const char *name)
{
	const struct h5_link link = {.address = s->header, .name = name, .name_size = strlen(name)};

	SUCCEEDS(h5_group_insert(s->scratch.file, h5_file_superblock(s->scratch.file)->root, &link));
}

static void check_count(const void *scene, struct h5_file *file)
{
	const struct scene *s = scene;
	struct h5_file *found;
	uint64_t address;
	int rc = h5_path_find(file, h5_file_superblock(file)->root, "second", 6, &found, &address);

	ck_assert(!rc || rc == -ENOENT);
	ck_assert_uint_ge(scratch_references(file, s->header), rc ? 1 : 2);
}

static bool is_to_mark(const struct scene *s)
{
	struct h5_header header;
	bool marks;

	SUCCEEDS(h5_header_load(s->scratch.file, s->header, &header));
	marks = header.is_to_mark;
	h5_header_release(&header);
	return marks;
}

/* The mark is in one cell with the count, which rises before the name comes. */
START_TEST(marks)
{
	const struct h5_new_message unknown = {.type = (enum h5_message_type)UNKNOWN,
					       .flags = H5_MSG_FLAG_MARK_UNKNOWN,
					       .body = (const uint8_t *)"unknown",
					       .size = 8};
	const struct h5_new_header how = {.room = 100};
	struct scene s;

	begin(&s);
	SUCCEEDS(h5_header_create(s.scratch.file, &unknown, 1, &how, &s.header));
	insert(&s, "first");
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	crash_image_load(&s.image, s.scratch.path);
	ck_assert(is_to_mark(&s));
	SUCCEEDS(h5_header_set_references(s.scratch.file, s.header, 2));
	insert(&s, "second");
	commit(&s, check_count);
	ck_assert(!is_to_mark(&s));
	end(&s);
}
END_TEST

/* A message for which there is no place marks nothing. */
START_TEST(marks_of_what_fails)
{
	const struct h5_new_message new = {
		.type = H5_MSG_COMMENT, .body = (const uint8_t *)"comment", .size = 8};
	uint8_t bytes[64] = "OHDR\2";
	struct h5_file *file;
	struct scene s;
	size_t n;

	begin(&s);
	file = s.scratch.file;
	n = add_message(bytes, 7, UNKNOWN, H5_MSG_FLAG_MARK_UNKNOWN, "abc", 4);
	bytes[6] = (uint8_t)(n - 7);
	n = seal(bytes, n);
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_METADATA, n, &s.header));
	SUCCEEDS(h5_tx_put(file, s.header, bytes, n));
	SUCCEEDS(h5_tx_commit(file));
	ck_assert_int_eq(h5_header_insert(file, s.header, &new), -ENOTSUP);
	ck_assert(is_to_mark(&s) && !h5_tx_is_changed(file, s.header, n));
	end(&s);
}
END_TEST

/* The stage of an updated message depends on its type. Messages that show names are written with the names.
 */
START_TEST(stages_of_updates)
{
	static const struct {
		enum h5_message_type type;
		unsigned stage;
	} cases[] = {{H5_MSG_COMMENT, H5_STAGE_OBJECT},
		     {H5_MSG_DATASPACE, H5_STAGE_DATASPACE},
		     {H5_MSG_SYMBOL_TABLE, H5_STAGE_NAME},
		     {H5_MSG_LINK_INFO, H5_STAGE_NAME}};
	enum { CASES = sizeof cases / sizeof *cases };
	static const uint8_t body[16] = {0};
	const struct h5_new_header how = {.room = 0};
	struct h5_new_message messages[CASES];
	struct h5_file *file;
	struct scene s;

	begin(&s);
	file = s.scratch.file;
	for (unsigned i = 0; i < CASES; i++)
		messages[i] =
			(struct h5_new_message){.type = cases[i].type, .body = body, .size = sizeof body};
	SUCCEEDS(h5_header_create(file, messages, CASES, &how, &s.header));
	SUCCEEDS(h5_tx_commit(file));
	for (unsigned i = 0; i < CASES; i++) {
		SUCCEEDS(h5_header_update(file, s.header, cases[i].type, set_first, NULL));
		ck_assert_uint_eq(h5_tx_latest_stage(file, s.header, 256), cases[i].stage);
		ck_assert(!h5_tx_changes_before(file, s.header, 256, cases[i].stage));
		SUCCEEDS(h5_tx_commit(file));
	}
	end(&s);
}
END_TEST

/* More names are counted before they are there, fewer after they have gone. */
START_TEST(stages_of_counts)
{
	static const struct h5_new_message message = {
		.type = H5_MSG_COMMENT, .body = (const uint8_t *)"message", .size = 8};
	static const struct {
		uint32_t count;
		unsigned stage;
	} steps[] = {
		{2, H5_STAGE_OBJECT}, {5, H5_STAGE_OBJECT}, {4, H5_STAGE_UNCOUNT}, {1, H5_STAGE_UNCOUNT}};
	const struct h5_new_header how = {.room = 100};
	struct h5_file *file;
	struct scene s;

	begin(&s);
	file = s.scratch.file;
	SUCCEEDS(h5_header_create(file, &message, 1, &how, &s.header));
	SUCCEEDS(h5_tx_commit(file));
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		SUCCEEDS(h5_header_set_references(file, s.header, steps[i].count));
		ck_assert_uint_eq(scratch_references(file, s.header), steps[i].count);
		ck_assert_uint_eq(h5_tx_latest_stage(file, s.header, 200), steps[i].stage);
		ck_assert(!h5_tx_changes_before(file, s.header, 200, steps[i].stage));
		SUCCEEDS(h5_tx_commit(file));
	}
	end(&s);
}
END_TEST

/* Once a group is left, what shows names in it waits for the names in other groups, whether it has changed
 * before or changes later. What comes later anyway, indexes, and other objects do not. */
START_TEST(stages_of_a_group_that_is_left)
{
	static const unsigned stages[][2] = {
		{H5_STAGE_BLOCK, H5_STAGE_BLOCK},	{H5_STAGE_INDEX, H5_STAGE_INDEX},
		{H5_STAGE_MESSAGES, H5_STAGE_MESSAGES}, {H5_STAGE_OBJECT, H5_STAGE_UNNAME},
		{H5_STAGE_DATASPACE, H5_STAGE_UNNAME},	{H5_STAGE_NAME, H5_STAGE_UNNAME},
		{H5_STAGE_UNNAME, H5_STAGE_UNNAME},	{H5_STAGE_UNCOUNT, H5_STAGE_UNCOUNT},
		{H5_STAGE_DEAD, H5_STAGE_DEAD}};
	enum { STAGES = sizeof stages / sizeof *stages };
	static const struct h5_new_message message = {
		.type = H5_MSG_COMMENT, .body = (const uint8_t *)"message", .size = 8};
	const struct h5_new_header how = {.room = 0};
	struct h5_file *file;
	uint64_t other, raw;
	struct scene s;

	begin(&s);
	file = s.scratch.file;
	SUCCEEDS(h5_header_create(file, &message, 1, &how, &s.header));
	SUCCEEDS(h5_header_create(file, &message, 1, &how, &other));
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, PAGE, &raw));
	SUCCEEDS(h5_tx_write(file, raw, "", 1));
	SUCCEEDS(h5_tx_commit(file));
	for (unsigned object = 0; object < 2; object++)
		for (unsigned leaves = 0; leaves < 2; leaves++)
			for (unsigned i = 0; i < STAGES; i++) {
				const unsigned stage = stages[i][object ? 0 : 1];

				h5_unit_begin(file);
				if (leaves)
					SUCCEEDS(h5_unit_leave(file, s.header));
				SUCCEEDS(h5_tx_touch(file, object ? other : s.header));
				SUCCEEDS(h5_tx_patch(file, raw, "1", 1, stages[i][0]));
				if (!leaves)
					SUCCEEDS(h5_unit_leave(file, s.header));
				SUCCEEDS(h5_unit_end(file, 0));
				ck_assert_uint_eq(h5_tx_latest_stage(file, raw, 1), stage);
				SUCCEEDS(h5_tx_commit(file));
			}
	end(&s);
}
END_TEST

UNIT_MAIN_LOOPS("order of headers", {stages_of_a_group_that_is_left, 1}, {stages_of_updates, 1},
		{stages_of_counts, 1}, {changes_after_a_move, 2}, {changes_in_what_moves, 6},
		{changes_behind_an_edge, 2}, {many_gaps_together, 1}, {changes_beside_a_link, 1}, {marks, 1},
		{marks_of_what_fails, 1})

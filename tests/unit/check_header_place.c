/* Messages that come to an object header without room: where they go, and which headers have no place for
 * them. The test builds the headers by hand behind the end of a file. */
#include "base/error.h"
#include "change/object_header_create.h"
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "change/object_header_layout.h"
#include "change/object_header_rewrite.h"
#include "change/transaction.h"
#include "fault_alloc.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PREFIX = 16, HEAD = 8, EOF_AT = 40, MOST = 1 << 17, MESSAGES = 8 };

struct hand {
	struct scratch s;
	uint64_t address; /* of the header */
	size_t sizes[MESSAGES];
	unsigned count;
};

/* Opens a file that has a header of messages of these sizes (0: the end), which begins so many bytes before
 * the end of a page. Byte k of message i is i + k * 7. */
static void begin(struct hand *hand, const size_t *sizes, unsigned before)
{
	static uint8_t bytes[MOST];
	uint8_t end[8];
	struct stat st;
	size_t n = PREFIX;
	int fd;

	memset(bytes, 0, sizeof bytes);
	*hand = (struct hand){0};
	for (; sizes[hand->count]; hand->count++) {
		const size_t size = hand->sizes[hand->count] = sizes[hand->count];

		h5_uint_to(bytes + n, H5_MSG_ATTRIBUTE, 2);
		h5_uint_to(bytes + n + 2, size, 2);
		for (size_t k = 0; k < size; k++)
			bytes[n + HEAD + k] = (uint8_t)(hand->count + k * 7);
		n += HEAD + size;
	}
	bytes[0] = 1;
	h5_uint_to(bytes + 2, hand->count, 2);
	h5_uint_to(bytes + 4, 1, 4);
	h5_uint_to(bytes + 8, n - PREFIX, 4);
	scratch_init(&hand->s, "header_edit_v1.h5");
	fd = open(hand->s.path, O_RDWR);
	ck_assert_int_eq(fstat(fd, &st), 0);
	hand->address = ((uint64_t)st.st_size / PAGE + 2) * PAGE - before;
	ck_assert_int_eq(pwrite(fd, bytes, n, (off_t)hand->address), (ssize_t)n);
	h5_uint_to(end, hand->address + n, sizeof end);
	ck_assert_int_eq(pwrite(fd, end, sizeof end, EOF_AT), sizeof end);
	close(fd);
	scratch_open(&hand->s);
}

/* All messages of the file's header are there, in whichever chunk, and it states how many there are. */
static void check(struct hand *hand, unsigned count)
{
	unsigned found = 0, all = 0;
	struct h5_header h;

	SUCCEEDS(h5_header_load(hand->s.file, hand->address, &h));
	SUCCEEDS(h5_header_check(hand->s.file, &h));
	ck_assert_uint_eq(h.count, count);
	for (unsigned i = 0; i < h.count; i++) {
		const struct h5_message *m = &h.messages[i];
		const unsigned number = *m->data;

		if (m->type != H5_MSG_ATTRIBUTE)
			continue;
		ck_assert_uint_lt(number, hand->count);
		ck_assert_uint_eq(m->size, hand->sizes[number]);
		for (size_t k = 0; k < m->size; k++)
			ck_assert_uint_eq(m->data[k], (uint8_t)(number + k * 7));
		found |= 1u << number;
	}
	ck_assert_uint_eq(found, (1u << hand->count) - 1);
	for (unsigned i = 0; i < h.chunk_count; i++) {
		struct h5_reader r = h5_header_chunk_messages(hand->s.file, &h.prefix, &h.chunks[i]);
		struct h5_message m;

		while (h5_object_header_next(&r, &h.prefix, &m) > 0)
			all++;
	}
	ck_assert_uint_eq(h.prefix.messages, all);
	h5_header_release(&h);
}

/* Inserts a time of change, which has 8 bytes, and commits. */
static void insert(struct hand *hand)
{
	static const uint8_t body[8] = {1};
	const struct h5_new_message m = {.type = H5_MSG_MTIME, .body = body, .size = sizeof body};

	SUCCEEDS(h5_header_insert(hand->s.file, hand->address, &m));
	SUCCEEDS(h5_tx_commit(hand->s.file));
	check(hand, hand->count + 1);
}

/* The message has not moved. */
static bool stays(struct hand *hand, unsigned number)
{
	uint64_t at = hand->address + PREFIX + HEAD;
	struct h5_header h;
	bool found = false;

	for (unsigned i = 0; i < number; i++)
		at += hand->sizes[i] + HEAD;
	SUCCEEDS(h5_header_load(hand->s.file, hand->address, &h));
	for (unsigned i = 0; i < h.count; i++)
		found |= h.messages[i].address == at && *h.messages[i].data == number;
	h5_header_release(&h);
	return found;
}

/* A continuation message takes 24 bytes: those of two small messages, which are fewer than those of a large
 * one on either side. */
START_TEST(the_least_moves)
{
	static const size_t sizes[][MESSAGES] = {
		{8, 8, 8, 200}, {200, 8, 8, 8}, {200, 8, 8, 200}, {40, 16, 40}, {8, 8, 40}};
	static const unsigned moved[] = {1u << 1 | 1u << 2, 1u << 2 | 1u << 3, 1u << 1 | 1u << 2, 1u << 1,
					 1u << 0 | 1u << 1};
	struct hand hand;

	begin(&hand, sizes[_i], PAGE - 64);
	check(&hand, hand.count);
	insert(&hand);
	for (unsigned i = 0; i < hand.count; i++)
		ck_assert_msg(stays(&hand, i) == !(moved[_i] >> i & 1), "message %u", i);
	scratch_release(&hand.s);
}
END_TEST

/* The continuation message fits before the end of the page, but the NIL message behind it does not: so it has
 * all bytes of the two messages. */
START_TEST(a_continuation_message_with_more_bytes)
{
	static const size_t sizes[] = {8, 200, 0};
	struct hand hand;
	struct h5_header h;

	begin(&hand, sizes, PREFIX + 24);
	insert(&hand);
	ck_assert(!stays(&hand, 0) && !stays(&hand, 1));
	SUCCEEDS(h5_header_load(hand.s.file, hand.address, &h));
	ck_assert_uint_eq(h.chunk_count, 2);
	h5_header_release(&h);
	scratch_release(&hand.s);
}
END_TEST

/* The continuation message fits before the end of the page, but the NIL message behind it does not, and it
 * can not have all bytes of the two messages. So the block that has these is given up, and another one is
 * made. */
START_TEST(a_move_is_given_up)
{
	static const size_t sizes[] = {8, 65528, 0};
	uint64_t end, address = 0;
	struct hand hand;

	begin(&hand, sizes, PREFIX + 24);
	insert(&hand);
	ck_assert(stays(&hand, 0));
	end = h5_file_end(hand.s.file);
	SUCCEEDS(h5_tx_allocate(hand.s.file, H5_ALLOCATE_METADATA, sizes[1], &address));
	ck_assert_uint_lt(address, end);
	h5_tx_free(hand.s.file, address, sizes[1]);
	scratch_release(&hand.s);
}
END_TEST

/* ---- headers of other forms ---- */

struct built {
	uint8_t *bytes;
	size_t n, capacity;
};

static void append(struct built *b, const void *data, size_t n)
{
	while (b->n + n > b->capacity)
		b->bytes = realloc(b->bytes, b->capacity = 2 * b->capacity + n);
	ck_assert_ptr_nonnull(b->bytes);
	if (data)
		memcpy(b->bytes + b->n, data, n);
	else
		memset(b->bytes + b->n, 'x', n);
	b->n += n;
}

static void append_number(struct built *b, uint64_t value, unsigned width)
{
	uint8_t bytes[8];

	h5_uint_to(bytes, value, width);
	append(b, bytes, width);
}

/* A message; data NULL: any. */
static void append_message(struct built *b, unsigned version, unsigned type, uint8_t flags, const void *data,
			   size_t n)
{
	append_number(b, type, version == 1 ? 2 : 1);
	append_number(b, n, 2);
	append_number(b, flags, version == 1 ? 4 : 1);
	append(b, data, n);
}

static void begin_header(struct built *b, unsigned version)
{
	*b = (struct built){0};
	if (version == 1) {
		append_number(b, 1, 2);
		append_number(b, 0, 2 + 4); /* see end_header() */
		append_number(b, 0, 4 + 4);
	} else {
		append(b, "OHDR", 4);
		append_number(b, 2, 1);
		append_number(b, 2, 1); /* four bytes of the size */
		append_number(b, 0, 4);
	}
}

/* Commits the block, so that changes of it are not those of new space. Returns its address. */
static uint64_t put_block(struct scratch *s, struct built *b)
{
	uint64_t address;

	SUCCEEDS(h5_tx_allocate(s->file, H5_ALLOCATE_METADATA, b->n, &address));
	SUCCEEDS(h5_tx_put(s->file, address, b->bytes, b->n));
	SUCCEEDS(h5_tx_commit(s->file));
	free(b->bytes);
	return address;
}

static uint64_t put_header(struct scratch *s, struct built *b, unsigned messages)
{
	if (*b->bytes == 1) {
		h5_uint_to(b->bytes + 2, messages, 2);
		h5_uint_to(b->bytes + 4, 1, 4);
		h5_uint_to(b->bytes + 8, b->n - PREFIX, 4);
	} else {
		h5_uint_to(b->bytes + 6, b->n - 10, 4);
		append_number(b, 0, 4);
		h5_header_seal(b->bytes, b->n);
	}
	return put_block(s, b);
}

static void begin_file(struct scratch *s)
{
	scratch_init(s, "header_edit_v2.h5");
	scratch_open(s);
}

static int insert_comment(struct scratch *s, uint64_t address, size_t n)
{
	static const uint8_t body[1 << 15] = "c";
	const struct h5_new_message m = {.type = H5_MSG_COMMENT, .body = body, .size = n};

	return h5_header_insert(s->file, address, &m);
}

/* The header has so many messages, and the first is of that size. */
static void check_header(struct scratch *s, uint64_t address, unsigned count, size_t size)
{
	struct h5_header h;

	SUCCEEDS(h5_header_load(s->file, address, &h));
	ck_assert_uint_eq(h.count, count);
	ck_assert_uint_eq(h.messages->size, size);
	h5_header_release(&h);
}

/* The call has failed like that. */
static void refused(int rc, int code, const char *text)
{
	ck_assert_msg(rc == code && strstr(h5_error_last()->text, text), "%d: %s", rc, h5_error_last()->text);
}

/* Neither another message nor a continuation message has a place. */
START_TEST(no_place_at_all)
{
	struct h5_message messages[4];
	struct h5_header h;
	struct scratch s;
	struct built b;
	uint64_t address;

	begin_file(&s);
	begin_header(&b, 2);
	append_message(&b, 2, H5_MSG_COMMENT, 0, "abc", 4);
	address = put_header(&s, &b, 1);
	refused(insert_comment(&s, address, 8), -ENOTSUP, "its form does not allow the change");
	check_header(&s, address, 1, 4);
	SUCCEEDS(h5_header_load(s.file, address, &h));
	for (unsigned i = 0; i < 4; i++)
		messages[i] = *h.messages;
	refused(h5_header_rewrite(s.file, address, messages, 4, H5_STAGE_OBJECT), -ENOTSUP,
		"its form does not allow the change");
	SUCCEEDS(h5_header_rewrite(s.file, address, messages, 1, H5_STAGE_OBJECT));
	h5_header_release(&h);
	check_header(&s, address, 1, 4);
	scratch_release(&s);
}
END_TEST

/* Version 1 counts messages in two bytes. */
START_TEST(too_many_messages)
{
	struct scratch s;
	struct built b;
	uint64_t address;

	begin_file(&s);
	for (unsigned less = 2; less < 4; less++) {
		const unsigned count = UINT16_MAX - less;

		begin_header(&b, 1);
		append_message(&b, 1, H5_MSG_COMMENT, 0, NULL, 16);
		for (unsigned i = 1; i < count; i++)
			append_message(&b, 1, H5_MSG_COMMENT, 0, NULL, 0);
		address = put_header(&s, &b, count);
		/* One moves to a block, with free space, and another one leads there. */
		if (less == 3)
			SUCCEEDS(insert_comment(&s, address, 0));
		else
			refused(insert_comment(&s, address, 0), -ENOSPC, "too many messages");
		check_header(&s, address, count + (less == 3), 16);
	}
	scratch_release(&s);
}
END_TEST

START_TEST(too_many_bytes)
{
	enum { LARGE = 65528, HEADER_MAX = 1 << 24, BLOCK = 65528 + 8 };
	struct scratch s;
	struct built b;
	uint64_t address;

	begin_file(&s);
	begin_header(&b, 1);
	append_message(&b, 1, H5_MSG_COMMENT, 0, NULL, 24);
	for (unsigned i = 0; i < HEADER_MAX / BLOCK - 1; i++)
		append_message(&b, 1, H5_MSG_COMMENT, 0, NULL, LARGE);
	append_message(&b, 1, H5_MSG_COMMENT, 0, NULL, 60000);
	address = put_header(&s, &b, HEADER_MAX / BLOCK + 1);
	refused(insert_comment(&s, address, 8000), -E2BIG, "more than 16777216 bytes");
	check_header(&s, address, HEADER_MAX / BLOCK + 1, 24);
	SUCCEEDS(insert_comment(&s, address, 800));
	scratch_release(&s);
}
END_TEST

/* All that lies in the first chunk would move, but then a continuation message and free space cannot fill
 * that. So the block that has it, and the one that leads to that, are given up. */
START_TEST(a_move_of_all_is_given_up)
{
	static const uint8_t body[60000] = "new";
	/* Bytes of the block, and of what leads to it, with room for others. */
	static const uint64_t sizes[] = {8 + 3 * (4 + sizeof body), H5_CELL};
	uint64_t before[2];
	const struct h5_new_message new = {.type = H5_MSG_COMMENT, .body = body, .size = sizeof body};
	uint64_t address, again;
	struct h5_header h;
	struct scratch s;
	struct built b;

	begin_file(&s);
	begin_header(&b, 2);
	for (unsigned i = 0; i < 3; i++)
		append_message(&b, 2, H5_MSG_COMMENT, 0, NULL, sizeof body);
	address = put_header(&s, &b, 3);
	for (unsigned i = 0; i < 2; i++)
		SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_METADATA, sizes[i], &before[i]));
	for (unsigned i = 0; i < 2; i++)
		h5_tx_free(s.file, before[i], sizes[i]);
	SUCCEEDS(h5_header_load(s.file, address, &h));
	SUCCEEDS(h5_header_set(s.file, address, &h.messages[1], &new));
	h5_header_release(&h);
	check_header(&s, address, 3, sizeof body);
	SUCCEEDS(h5_header_load(s.file, address, &h));
	ck_assert_mem_eq(h.messages[1].data, body, sizeof body);
	h5_header_release(&h);
	for (unsigned i = 0; i < 2; i++) {
		SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_METADATA, sizes[i], &again));
		ck_assert_uint_eq(again, before[i]);
	}
	scratch_release(&s);
}
END_TEST

/* A message of a large continuation block grows, so that the block moves. Each allocation of that can fail.
 */
START_TEST(a_block_moves_without_memory)
{
	static const uint8_t body[3000] = "new";
	const struct h5_new_message new = {.type = H5_MSG_COMMENT, .body = body, .size = sizeof body};
	unsigned failed = 0;
	bool fired = true;
	struct h5_header h;
	uint64_t block, address;
	struct scratch s;
	struct built b = {0};
	size_t n;

	begin_file(&s);
	append(&b, "OCHK", 4);
	for (unsigned i = 0; i < 3; i++)
		append_message(&b, 2, H5_MSG_COMMENT, 0, NULL, 2000);
	append_number(&b, 0, 4);
	h5_header_seal(b.bytes, n = b.n);
	block = put_block(&s, &b);
	begin_header(&b, 2);
	append_number(&b, H5_MSG_CONTINUATION, 1);
	append_number(&b, 16, 2);
	append_number(&b, 0, 1);
	append_number(&b, block, 8);
	append_number(&b, n, 8);
	address = put_header(&s, &b, 1);
	for (unsigned long k = 1; fired; k++) {
		int rc;

		SUCCEEDS(h5_header_load(s.file, address, &h));
		ck_assert_uint_eq(h.count, 3);
		h5_unit_begin(s.file);
		fault_alloc_arm(k);
		fault_alloc_count(true);
		rc = h5_header_set(s.file, address, &h.messages[1], &new);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		h5_header_release(&h);
		ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%lu: %d", k, rc);
		ck_assert_int_eq(h5_unit_end(s.file, rc ? rc : -ECANCELED), rc ? rc : -ECANCELED);
		failed += rc != 0;
	}
	ck_assert_uint_gt(failed, 5);
	SUCCEEDS(h5_header_load(s.file, address, &h));
	SUCCEEDS(h5_header_set(s.file, address, &h.messages[1], &new));
	h5_header_release(&h);
	SUCCEEDS(h5_tx_commit(s.file));
	SUCCEEDS(h5_header_load(s.file, address, &h));
	ck_assert_uint_eq(h.count, 3);
	ck_assert_uint_eq(h.messages[1].size, sizeof body);
	h5_header_release(&h);
	scratch_release(&s);
}
END_TEST

/* Many small messages need no block of their own. */
START_TEST(many_small_messages)
{
	enum { COUNT = 600 };
	static const uint8_t comment[16] = "comment";
	const struct h5_new_header how = {.room = 0};
	struct h5_new_message messages[COUNT];
	struct h5_header h;
	struct scratch s;
	uint64_t address;

	begin_file(&s);
	for (unsigned i = 0; i < COUNT; i++)
		messages[i] = (struct h5_new_message){
			.type = H5_MSG_COMMENT, .body = comment, .size = 8 + i % 2 * 8};
	SUCCEEDS(h5_header_create(s.file, messages, COUNT, &how, &address));
	SUCCEEDS(h5_header_load(s.file, address, &h));
	ck_assert_uint_eq(h.count, COUNT);
	ck_assert_uint_eq(h.chunk_count, 1);
	h5_header_release(&h);
	scratch_release(&s);
}
END_TEST

static int keep(const void *arg, uint8_t *body, size_t n)
{
	(void)arg;
	(void)body;
	(void)n;
	return 0;
}

/* Several messages change together, or none; a message of an unknown type is marked, if it asks for that. */
START_TEST(several_together)
{
	enum { UNKNOWN = 0x30 };
	const struct h5_header_update updates[] = {{H5_MSG_COMMENT, keep, NULL}, {H5_MSG_MTIME, keep, NULL}},
				      missing[] = {{H5_MSG_COMMENT, keep, NULL}, {H5_MSG_LAYOUT, keep, NULL}},
				      shared[] = {{H5_MSG_COMMENT, keep, NULL},
						  {H5_MSG_DATATYPE, keep, NULL}};
	struct h5_header h;
	struct scratch s;
	struct built b;
	uint64_t address;

	begin_file(&s);
	begin_header(&b, 2);
	append_message(&b, 2, H5_MSG_COMMENT, 0, NULL, 40);
	append_message(&b, 2, H5_MSG_MTIME, 0, NULL, 8);
	append_message(&b, 2, H5_MSG_DATATYPE, H5_MSG_FLAG_SHARED, NULL, 10);
	append_message(&b, 2, UNKNOWN, H5_MSG_FLAG_MARK_UNKNOWN, NULL, 12);
	append_message(&b, 2, UNKNOWN, 0, NULL, 12);
	address = put_header(&s, &b, 5);
	refused(h5_header_update_together(s.file, address, missing, 2, H5_STAGE_OBJECT), -ENOTSUP,
		"message type 0x8 is not there");
	refused(h5_header_update_together(s.file, address, shared, 2, H5_STAGE_OBJECT), -ENOTSUP,
		"message type 0x3 is shared");
	SUCCEEDS(h5_header_update_together(s.file, address, updates, 2, H5_STAGE_OBJECT));
	SUCCEEDS(h5_header_load(s.file, address, &h));
	ck_assert_uint_eq(h.count, 5);
	ck_assert_uint_eq(h.messages[3].flags, H5_MSG_FLAG_MARK_UNKNOWN | H5_MSG_FLAG_WAS_UNKNOWN);
	ck_assert_uint_eq(h.messages[4].flags, 0);
	h5_header_release(&h);
	scratch_release(&s);
}
END_TEST

/* A message keeps its order of creation when it changes, unless it gets another one. */
START_TEST(orders_of_creation)
{
	static const uint8_t body[40] = {0};
	struct h5_new_message m = {
		.type = H5_MSG_ATTRIBUTE, .has_order = true, .order = 7, .body = body, .size = 24};
	const struct h5_new_header how = {.tracks_order = true, .room = 100};
	struct h5_header h;
	struct scratch s;
	uint64_t address;

	begin_file(&s);
	SUCCEEDS(h5_header_create(s.file, &m, 1, &how, &address));
	for (unsigned i = 0; i < 4; i++) {
		static const uint16_t orders[] = {7, 7, 9, 9};

		SUCCEEDS(h5_tx_commit(s.file));
		SUCCEEDS(h5_header_load(s.file, address, &h));
		ck_assert_uint_eq(h.count, 1);
		ck_assert_uint_eq(h.messages->creation_order, orders[i]);
		m.has_order = i == 1;
		m.order = i == 1 ? 9 : 3;
		m.size = i % 2 ? 24 : 40;
		SUCCEEDS(h5_header_set(s.file, address, h.messages, &m));
		h5_header_release(&h);
	}
	scratch_release(&s);
}
END_TEST

/* Behind the messages of a chunk are some bytes, too few for a message. In version 2 the last message can
 * have them, in version 1 none can. */
START_TEST(gaps)
{
	static const uint8_t body[32] = {1};
	static const struct {
		unsigned version;
		size_t before, gap, size; /* of the last message: before, and then */
	} cases[] = {{2, 20, 3, 23}, {2, 20, 3, 22}, {2, 20, 3, 12}, {1, 16, 4, 8}, {1, 24, 4, 8}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct h5_new_message m = {
			.type = H5_MSG_ATTRIBUTE, .body = body, .size = cases[i].size};
		const struct h5_message *found;
		uint8_t zeros[8] = {0};
		struct h5_header h;
		struct scratch s;
		struct built b;
		uint64_t address;

		begin_file(&s);
		begin_header(&b, cases[i].version);
		append_message(&b, cases[i].version, H5_MSG_COMMENT, 0, NULL, 16);
		append_message(&b, cases[i].version, H5_MSG_ATTRIBUTE, 0, NULL, cases[i].before);
		append(&b, zeros, cases[i].gap);
		address = put_header(&s, &b, 2);
		SUCCEEDS(h5_header_load(s.file, address, &h));
		ck_assert_uint_eq(h.count, 2);
		SUCCEEDS(h5_header_set(s.file, address, &h.messages[1], &m));
		h5_header_release(&h);
		SUCCEEDS(h5_tx_commit(s.file));
		SUCCEEDS(h5_header_load(s.file, address, &h));
		SUCCEEDS(h5_header_check(s.file, &h));
		ck_assert_uint_eq(h.chunk_count, 1);
		found = h5_header_find(&h, H5_MSG_ATTRIBUTE);
		ck_assert_ptr_nonnull(found);
		ck_assert_uint_ge(found->size, m.size);
		ck_assert_mem_eq(found->data, body, m.size);
		h5_header_release(&h);
		scratch_release(&s);
	}
}
END_TEST

/* A message that grows uses what is unused behind it, in both versions; all others stay where they are. */
START_TEST(room_behind_a_message)
{
	static const uint8_t body[40] = {1};

	for (unsigned version = 1; version < 3; version++) {
		const struct h5_new_message m = {.type = H5_MSG_ATTRIBUTE, .body = body, .size = 40};
		uint64_t address, first, second;
		struct h5_header h;
		struct scratch s;
		struct built b;

		begin_file(&s);
		begin_header(&b, version);
		append_message(&b, version, H5_MSG_COMMENT, 0, NULL, 16);
		append_message(&b, version, H5_MSG_ATTRIBUTE, 0, NULL, 8);
		append_message(&b, version, H5_MSG_NIL, 0, NULL, 64);
		append_message(&b, version, H5_MSG_MTIME, 0, NULL, 8);
		address = put_header(&s, &b, 4);
		SUCCEEDS(h5_header_load(s.file, address, &h));
		ck_assert_uint_eq(h.count, 3);
		first = h.messages[0].address;
		second = h.messages[1].address;
		SUCCEEDS(h5_header_set(s.file, address, &h.messages[1], &m));
		h5_header_release(&h);
		SUCCEEDS(h5_tx_commit(s.file));
		SUCCEEDS(h5_header_load(s.file, address, &h));
		SUCCEEDS(h5_header_check(s.file, &h));
		ck_assert_uint_eq(h.chunk_count, 1);
		ck_assert_uint_eq(h.count, 3);
		ck_assert_uint_eq(h5_header_find(&h, H5_MSG_COMMENT)->address, first);
		ck_assert_uint_eq(h5_header_find(&h, H5_MSG_ATTRIBUTE)->address, second);
		ck_assert_mem_eq(h5_header_find(&h, H5_MSG_ATTRIBUTE)->data, body, sizeof body);
		h5_header_release(&h);
		scratch_release(&s);
	}
}
END_TEST

START_TEST(no_reference_count_in_version_1)
{
	static const size_t sizes[MESSAGES] = {40, 40};
	static const uint8_t body[8] = {0, 1};
	const struct h5_new_message m = {.type = H5_MSG_REFERENCE_COUNT, .body = body, .size = 5};
	struct hand hand;

	begin(&hand, sizes, PAGE - 64);
	refused(h5_header_insert(hand.s.file, hand.address, &m), -ENOTSUP,
		"version 1 has no reference count message");
	ck_assert(!h5_tx_is_pending(hand.s.file));
	check(&hand, hand.count);
	scratch_release(&hand.s);
}
END_TEST

/* The first place is across the edge of a page, so the message goes to the second one. Only that one is
 * divided, and counted. */
START_TEST(a_place_that_is_no_cell)
{
	enum { UNUSED = 200, BEFORE = 20 };
	static const uint8_t body[8] = {1};
	const struct h5_new_message m = {.type = H5_MSG_MTIME, .body = body, .size = sizeof body};
	uint64_t address, raw, first, second;
	struct h5_header h;
	struct scratch s;
	struct built b;

	begin_file(&s);
	begin_header(&b, 1);
	append_message(&b, 1, H5_MSG_NIL, 0, NULL, UNUSED);
	append_message(&b, 1, H5_MSG_COMMENT, 0, NULL, 16);
	append_message(&b, 1, H5_MSG_NIL, 0, NULL, UNUSED);
	append_message(&b, 1, H5_MSG_COMMENT, 0, NULL, 16);
	h5_uint_to(b.bytes + 2, 4, 2);
	h5_uint_to(b.bytes + 4, 1, 4);
	h5_uint_to(b.bytes + 8, b.n - PREFIX, 4);
	SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, 3 * PAGE, &raw));
	address = (raw / PAGE + 2) * PAGE - PREFIX - BEFORE;
	SUCCEEDS(h5_tx_write(s.file, address, b.bytes, b.n));
	SUCCEEDS(h5_tx_commit(s.file));
	free(b.bytes);
	first = address + PREFIX + HEAD;
	second = first + UNUSED + HEAD + 16 + HEAD;
	SUCCEEDS(h5_header_insert(s.file, address, &m));
	ck_assert_uint_eq(h5_tx_latest_stage(s.file, address, PREFIX), H5_STAGE_MESSAGES);
	ck_assert_uint_eq(h5_tx_latest_stage(s.file, second, UNUSED), H5_STAGE_OBJECT);
	SUCCEEDS(h5_tx_commit(s.file));
	SUCCEEDS(h5_header_load(s.file, address, &h));
	SUCCEEDS(h5_header_check(s.file, &h));
	ck_assert_uint_eq(h.chunk_count, 1);
	ck_assert_uint_eq(h.count, 3);
	ck_assert_ptr_nonnull(h5_header_find(&h, H5_MSG_MTIME));
	ck_assert_uint_ge(h5_header_find(&h, H5_MSG_MTIME)->address, second);
	ck_assert_uint_eq(h.prefix.messages, 5);
	h5_header_release(&h);
	scratch_release(&s);
}
END_TEST

static int invert(const void *arg, uint8_t *body, size_t n)
{
	(void)arg;
	for (size_t i = 0; i < n; i++)
		body[i] ^= 0xff;
	return 0;
}

/* A message of version 1 that lies in several pages changes in all of them. */
START_TEST(updates_of_several_pages)
{
	static const size_t sizes[MESSAGES] = {2 * PAGE + 2000, 64};
	struct h5_header h;
	struct hand hand;

	begin(&hand, sizes, PREFIX + 30);
	SUCCEEDS(h5_header_update(hand.s.file, hand.address, H5_MSG_ATTRIBUTE, invert, NULL));
	for (int again = 0; again < 2; again++) {
		SUCCEEDS(h5_header_load(hand.s.file, hand.address, &h));
		ck_assert_uint_eq(h.count, 2);
		for (size_t k = 0; k < sizes[0]; k++)
			ck_assert_uint_eq(h.messages[0].data[k], (uint8_t) ~(k * 7));
		for (size_t k = 0; k < sizes[1]; k++)
			ck_assert_uint_eq(h.messages[1].data[k], (uint8_t)(1 + k * 7));
		h5_header_release(&h);
		SUCCEEDS(h5_tx_commit(hand.s.file));
	}
	scratch_release(&hand.s);
}
END_TEST

/* A header across the edge of a page is laid anew all the same: its messages go to a block, and what leads
 * there is in it, though that is no cell. */
START_TEST(laid_anew_across_a_page)
{
	static const size_t sizes[MESSAGES] = {48, 200, 64, 64};
	const unsigned left_out = (unsigned)_i;
	struct h5_message messages[MESSAGES];
	unsigned n = 0, found = 0;
	struct h5_header h;
	struct hand hand;

	begin(&hand, sizes, PREFIX + 30);
	SUCCEEDS(h5_header_load(hand.s.file, hand.address, &h));
	for (unsigned i = 0; i < h.count; i++)
		if (i != left_out)
			messages[n++] = h.messages[i];
	ck_assert_uint_eq(n, hand.count - 1);
	SUCCEEDS(h5_header_rewrite(hand.s.file, hand.address, messages, n, H5_STAGE_OBJECT));
	h5_header_release(&h);
	SUCCEEDS(h5_tx_commit(hand.s.file));
	scratch_close(&hand.s);
	scratch_open(&hand.s);
	SUCCEEDS(h5_header_load(hand.s.file, hand.address, &h));
	SUCCEEDS(h5_header_check(hand.s.file, &h));
	ck_assert_uint_gt(h.chunk_count, 1);
	for (unsigned i = 0; i < h.count; i++) {
		const struct h5_message *m = &h.messages[i];
		const unsigned number = *m->data;

		ck_assert_uint_lt(number, hand.count);
		ck_assert_uint_eq(m->size, sizes[number]);
		for (size_t k = 0; k < m->size; k++)
			ck_assert_uint_eq(m->data[k], (uint8_t)(number + k * 7));
		found |= 1u << number;
	}
	ck_assert_uint_eq(h.count, n);
	ck_assert_uint_eq(found, ((1u << hand.count) - 1) & ~(1u << left_out));
	h5_header_release(&h);
	scratch_release(&hand.s);
}
END_TEST

/* It is all or nothing, wherever memory is short. */
START_TEST(laid_anew_without_memory)
{
	static const size_t sizes[MESSAGES] = {48, 200, 64, 3000, 3000};
	unsigned long failed = 0;

	for (bool fired = true; fired;) {
		struct h5_header h;
		struct hand hand;
		int rc;

		begin(&hand, sizes, PREFIX + 30);
		SUCCEEDS(h5_header_load(hand.s.file, hand.address, &h));
		ck_assert_uint_eq(h.count, hand.count);
		fault_alloc_arm(failed + 1);
		fault_alloc_count(true);
		rc = h5_header_rewrite(hand.s.file, hand.address, h.messages, h.count - 1, H5_STAGE_OBJECT);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		h5_header_release(&h);
		ck_assert(!rc || (fired && rc == -ENOMEM));
		SUCCEEDS(h5_tx_commit(hand.s.file));
		scratch_close(&hand.s);
		scratch_open(&hand.s);
		SUCCEEDS(h5_header_load(hand.s.file, hand.address, &h));
		ck_assert_uint_eq(h.count, hand.count - !rc);
		for (unsigned i = 0; i < h.count; i++) {
			const unsigned number = *h.messages[i].data;

			ck_assert_uint_eq(number, i);
			for (size_t k = 0; k < sizes[i]; k++)
				ck_assert_uint_eq(h.messages[i].data[k], (uint8_t)(i + k * 7));
		}
		h5_header_release(&h);
		scratch_release(&hand.s);
		failed += fired;
	}
	ck_assert_uint_gt(failed, 5);
}
END_TEST

/* A block that cannot be laid. */
START_TEST(blocks_that_cannot_be)
{
	static const uint8_t body[65536] = {0};
	const struct h5_object_header prefix = {.version = 2};
	struct h5_message message = {.type = H5_MSG_COMMENT, .size = sizeof body, .data = body};
	struct h5_continuation block;
	struct scratch s;
	unsigned laid;

	begin_file(&s);
	refused(h5_header_put_block(s.file, &prefix, &message, 1, 0, &block, &laid), -E2BIG,
		"no continuation block for 65548 bytes");
	message.size--;
	SUCCEEDS(h5_header_put_block(s.file, &prefix, &message, 1, 0, &block, &laid));
	ck_assert_uint_eq(laid, 1);
	scratch_release(&s);
}
END_TEST

UNIT_MAIN_LOOPS("header place", {the_least_moves, 5}, {a_continuation_message_with_more_bytes, 1},
		{a_move_is_given_up, 1}, {no_place_at_all, 1}, {too_many_messages, 1}, {too_many_bytes, 1},
		{a_move_of_all_is_given_up, 1}, {a_block_moves_without_memory, 1}, {many_small_messages, 1},
		{several_together, 1}, {orders_of_creation, 1}, {gaps, 1}, {room_behind_a_message, 1},
		{no_reference_count_in_version_1, 1}, {updates_of_several_pages, 1},
		{a_place_that_is_no_cell, 1}, {laid_anew_across_a_page, 4}, {laid_anew_without_memory, 1},
		{blocks_that_cannot_be, 1})

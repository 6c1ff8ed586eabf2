/* Where messages of a version 1 object header go that has no room for more: headers built by hand, put behind
 * what a file has. */
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "scratch.h"

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

UNIT_MAIN_LOOPS("header place", {the_least_moves, 5}, {a_continuation_message_with_more_bytes, 1},
		{a_move_is_given_up, 1})

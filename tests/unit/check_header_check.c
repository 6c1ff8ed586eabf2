/* Object headers that can be read and that libhdf5 refuses, and the limits of those that can be read. */
#include "base/error.h"
#include "base/lookup3.h"
#include "format/superblock.h"
#include "store/file_set.h"
#include "store/object_header.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

enum { SIZE = 1 << 20, HEADER = 100, MESSAGES_MAX = 1 << 17, HEADER_MAX = 1 << 25, NIL_MOST = UINT16_MAX };

static uint8_t bytes[SIZE];
static size_t at;

static void put(uint64_t number, unsigned n)
{
	for (; n--; number >>= 8)
		bytes[at++] = (uint8_t)number;
}

static void begin(void)
{
	const struct h5_superblock sb = {.version = 2,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .extension = H5_UNDEF,
					 .end = SIZE,
					 .driver_info = H5_UNDEF,
					 .root = HEADER};
	struct h5_writer w = h5_writer_init(bytes, H5_SUPERBLOCK_NEW, 8, 8);

	memset(bytes, 0, sizeof bytes);
	h5_superblock_encode(&w, &sb);
	at = HEADER;
}

/* Of version 2, with its chunk's size in four bytes. */
static void begin_2(unsigned flags)
{
	begin();
	memcpy(bytes + at, "OHDR", 4);
	at += 4;
	put(2, 1);
	put(flags | 2, 1);
	put(0, 4);
}

static void message_2(unsigned type, size_t size, unsigned flags)
{
	put(type, 1);
	put(size, 2);
	put(flags, 1);
	at += size;
}

/* The chunk ends here, with a gap of so many bytes. */
static void end_2(unsigned gap)
{
	size_t end;

	at += gap;
	end = at;
	at = HEADER + 6;
	put(end - HEADER - 10, 4);
	at = end;
	put(h5_lookup3(bytes + HEADER, end - HEADER, 0), 4);
}

static void begin_1(unsigned messages)
{
	begin();
	put(1, 2);
	put(messages, 2);
	put(1, 4);
	put(0, 8);
}

static void message_1(unsigned type, size_t size, unsigned flags)
{
	put(type, 2);
	put(size, 2);
	put(flags, 4);
	at += size;
}

static void end_1(void)
{
	size_t end = at;

	at = HEADER + 8;
	put(end - HEADER - 16, 4);
	at = end;
}

/* The error of loading it, or else of checking it. `text`: of the error. */
static void is(int code, const char *text)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	struct h5_file_set *set;
	struct h5_header header;
	int rc;

	ck_assert_int_eq(h5_file_set_open_memory(bytes, SIZE, &options, &set), 0);
	rc = h5_header_load(h5_file_set_root(set), HEADER, &header);
	if (!rc) {
		uint64_t most =
			header.count * sizeof *header.messages + header.chunk_count * sizeof *header.chunks;

		for (unsigned i = 0; i < header.chunk_count; i++)
			most += header.chunks[i].size;
		/* Caches count all that it takes. */
		ck_assert_uint_ge(header.cost, most);
	}
	if (!rc)
		rc = h5_header_check(h5_file_set_root(set), &header);
	h5_header_release(&header);
	ck_assert_msg(rc == code, "%d: %s", rc, rc ? h5_error_last()->text : "");
	ck_assert_msg(!code || strstr(h5_error_last()->text, text), "%s", h5_error_last()->text);
	h5_file_set_close(set);
}

START_TEST(gaps)
{
	for (unsigned gap = 0; gap < 4; gap++)
		for (int has_nil = 0; has_nil < 2; has_nil++) {
			begin_2(0);
			if (has_nil)
				message_2(H5_MSG_NIL, 5, 0);
			message_2(H5_MSG_COMMENT, 3, 0);
			end_2(gap);
			is(gap && has_nil ? -EUCLEAN : 0, "in a chunk that has NIL messages");
			begin_1(3);
			if (has_nil)
				message_1(H5_MSG_NIL, 8, 0);
			message_1(H5_MSG_COMMENT, 8, 0);
			at += gap;
			end_1();
			is(0, NULL);
		}
}
END_TEST

/* Adjacent ones become one message, whose size has 16 bits. */
START_TEST(runs_of_nil_messages)
{
	for (unsigned more = 0; more < 2; more++) {
		begin_2(0);
		message_2(H5_MSG_NIL, 100, 0);
		message_2(H5_MSG_COMMENT, 3, 0);
		message_2(H5_MSG_NIL, 65000, 0);
		message_2(H5_MSG_NIL, 500, 0);
		message_2(H5_MSG_NIL, NIL_MOST - 65000 - 500 - 8 + more, 0);
		message_2(H5_MSG_COMMENT, 3, 0);
		message_2(H5_MSG_NIL, 100, 0);
		end_2(0);
		is(more ? -EUCLEAN : 0, "adjacent NIL messages of 65536 bytes");
		/* One behind it that is a bit shorter. */
		at -= 4;
		message_2(H5_MSG_COMMENT, 3, 0);
		message_2(H5_MSG_NIL, NIL_MOST - 2, 0);
		end_2(0);
		is(more ? -EUCLEAN : 0, "adjacent NIL messages of 65536 bytes");
		begin_2(0);
		message_2(H5_MSG_NIL, 65000, 0);
		message_2(H5_MSG_COMMENT, 3, 0);
		message_2(H5_MSG_NIL, 65000, 0);
		end_2(0);
		is(0, NULL);
		begin_1(4);
		message_1(H5_MSG_NIL, 65000, 0);
		message_1(H5_MSG_NIL, 65528 - 65000 - 8 + 8 * more, 0);
		end_1();
		is(more ? -EUCLEAN : 0, "adjacent NIL messages of 65536 bytes");
	}
}
END_TEST

START_TEST(counts_of_messages)
{
	for (unsigned count = 0; count < 5; count++) {
		begin_1(count);
		message_1(H5_MSG_COMMENT, 8, 0);
		message_1(H5_MSG_NIL, 8, 0);
		message_1(H5_MSG_COMMENT, 8, 0);
		end_1();
		is(count < 3 ? -EUCLEAN : 0, "3 messages in the first chunk, but");
	}
	/* Those behind the first chunk do not count. */
	begin_1(1);
	message_1(H5_MSG_CONTINUATION, 16, 0);
	at -= 16;
	put(1000, 8);
	put(32, 8);
	end_1();
	at = 1000;
	message_1(H5_MSG_COMMENT, 8, 0);
	message_1(H5_MSG_COMMENT, 8, 0);
	is(0, NULL);
}
END_TEST

START_TEST(messages)
{
	begin_1(1);
	message_1(H5_MSG_REFERENCE_COUNT, 8, 0);
	end_1();
	is(-EUCLEAN, "version 1 has a reference count message");
	begin_2(0);
	message_2(H5_MSG_REFERENCE_COUNT, 5, 0);
	end_2(0);
	is(0, NULL);
	/* The order of attributes: whether it is tracked, and indexed. */
	for (unsigned order = 0; order < 4; order++)
		for (unsigned flags = 0; flags < 8; flags++) {
			for (unsigned shared = 0; shared < 2; shared++) {
				begin_2(order << 2);
				put(H5_MSG_ATTRIBUTE_INFO, 1);
				put(18, 2);
				put(shared ? H5_MSG_FLAG_SHARED : 0, 1);
				if (order & 1)
					put(0, 2);
				put(0, 1);
				put(flags, 1);
				at += 16;
				end_2(0);
				is(!shared && (flags & 3) != order ? -EUCLEAN : 0,
				   "of the order of its attributes");
			}
			begin_1(1);
			message_1(H5_MSG_ATTRIBUTE_INFO, 24, 0);
			bytes[at - 23] = (uint8_t)flags;
			end_1();
			is(0, NULL);
		}
	/* One that is too short has no flags. */
	begin_2(1 << 3);
	message_2(H5_MSG_ATTRIBUTE_INFO, 1, 0);
	end_2(0);
	is(0, NULL);
}
END_TEST

/* ---- limits ---- */

START_TEST(most_messages)
{
	for (unsigned count = MESSAGES_MAX; count <= MESSAGES_MAX + 1; count++) {
		begin_2(0);
		for (unsigned i = 0; i < count; i++)
			message_2(H5_MSG_COMMENT, 0, 0);
		end_2(0);
		is(count > MESSAGES_MAX ? -ENOTSUP : 0, "too many messages");
	}
}
END_TEST

START_TEST(most_bytes)
{
	for (unsigned more = 0; more < 2; more++) {
		begin_2(0);
		at = HEADER + 6;
		put(HEADER_MAX - 10 - 4 + more, 4);
		is(more ? -ENOTSUP : -EUCLEAN, more ? "too large" : "beyond the end");
		begin_2(0);
		at = HEADER + 6;
		put(HEADER_MAX + more, 4);
		is(more ? -EUCLEAN : -ENOTSUP, "too large");
		/* Of all chunks together. */
		begin_1(1);
		message_1(H5_MSG_CONTINUATION, 16, 0);
		at -= 16;
		put(1000, 8);
		put(HEADER_MAX - 40 + more, 8);
		end_1();
		is(more ? -ENOTSUP : -EUCLEAN, more ? "too large" : "beyond the end");
	}
}
END_TEST

/* Chunks may touch each other, not more. */
START_TEST(adjacent_chunks)
{
	static const struct {
		uint64_t address, size;
		int rc;
	} cases[] = {{HEADER + 40, 16, 0},
		     {HEADER + 39, 17, -EUCLEAN},
		     {HEADER - 16, 16, 0},
		     {HEADER - 16, 17, -EUCLEAN}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_1(1);
		message_1(H5_MSG_CONTINUATION, 16, 0);
		at -= 16;
		put(cases[i].address, 8);
		put(cases[i].size, 8);
		end_1();
		is(cases[i].rc, "overlapping continuation blocks");
	}
}
END_TEST

/* A header of version 2 goes on in a block with a signature and a checksum. */
START_TEST(damaged_continuations)
{
	enum { BLOCK = 5000, BLOCK_SIZE = 4 + 4 + 8 + 4 };

	for (int damage = 0; damage < 4; damage++) {
		begin_2(0);
		message_2(H5_MSG_CONTINUATION, damage == 3 ? 15 : 16, 0);
		at -= damage == 3 ? 15 : 16;
		put(BLOCK, 8);
		put(BLOCK_SIZE, damage == 3 ? 7 : 8); /* the last time there is no room for the size */
		end_2(0);
		at = BLOCK;
		memcpy(bytes + at, "OCHK", 4);
		at += 4;
		message_2(H5_MSG_NIL, 8, 0);
		bytes[BLOCK] = damage == 1 ? 'x' : 'O';
		put(h5_lookup3(bytes + BLOCK, BLOCK_SIZE - 4, 0) + (damage == 2), 4);
		is(damage ? -EUCLEAN : 0, damage == 2	? "wrong checksum"
					  : damage == 3 ? "continuation message: truncated"
							: "");
	}
}
END_TEST

/* A message of an unknown type may forbid changes. */
START_TEST(fixed_headers)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};

	for (int fixed = 0; fixed < 2; fixed++)
		for (int unknown = 0; unknown < 2; unknown++) {
			struct h5_file_set *set;
			int rc;

			begin_2(0);
			message_2(unknown ? 0x77 : H5_MSG_COMMENT, 3, fixed ? H5_MSG_FLAG_FIX_UNKNOWN : 0);
			message_2(H5_MSG_COMMENT, 3, 0);
			end_2(0);
			ck_assert_int_eq(h5_file_set_open_memory(bytes, SIZE, &options, &set), 0);
			rc = h5_header_may_change(h5_file_set_root(set), HEADER);
			ck_assert_int_eq(rc, fixed && unknown ? -ENOTSUP : 0);
			h5_file_set_close(set);
		}
}
END_TEST

UNIT_MAIN("header_check", gaps, runs_of_nil_messages, counts_of_messages, messages, most_messages, most_bytes,
	  adjacent_chunks, damaged_continuations, fixed_headers)

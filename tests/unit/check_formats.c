/* Structures of a file, byte by byte, by the tables of the specification: all fields at every size of offsets
 * and lengths, numbers at their limits and just beyond, versions and types that there are not. */
#include "examples.h"
#include "format/cache_image.h"
#include "format/free_space.h"
#include "format/header_messages.h"
#include "format/named_message.h"
#include "format/object_header.h"
#include "format/pipeline.h"
#include "format/shared_message.h"
#include "format/superblock.h"
#include "format/symbol_table.h"

/* ---- shared messages ---- */

static int decode_shared(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_shared_message s;
	int rc = h5_shared_message_decode(r, &s);

	if (!rc && s.in_heap)
		h5_buf_printf(out, "heap %.8s", (const char *)s.id);
	else if (!rc)
		h5_buf_printf(out, "header %ju", (uintmax_t)s.address);
	return rc;
}

static int decode_table_message(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_shared_table_message m;
	int rc = h5_shared_table_message_decode(r, &m);

	if (!rc)
		h5_buf_printf(out, "%ju, %u", (uintmax_t)m.address, m.indexes);
	return rc;
}

static int decode_table(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_shared_table t;
	int rc = h5_shared_table_decode(r, 2, &t);

	for (unsigned i = 0; !rc && i < t.count; i++)
		h5_buf_printf(out, "%s %#x, %u of %u at %ju, %ju; ", t.indexes[i].is_list ? "list" : "tree",
			      t.indexes[i].types, t.indexes[i].messages, t.indexes[i].list_max,
			      (uintmax_t)t.indexes[i].index, (uintmax_t)t.indexes[i].heap);
	return rc;
}

static int decode_record(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_shared_record record;
	int rc = h5_shared_record_decode(r, &record);

	if (!rc && record.in_heap)
		h5_buf_printf(out, "%u: %.8s, %u times", record.hash, (const char *)record.id, record.count);
	else if (!rc)
		h5_buf_printf(out, "%u: %ju", record.hash, (uintmax_t)record.address);
	return rc;
}

static int decode_list(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_reader records;
	int rc = h5_shared_list_decode(r, &records);

	if (!rc)
		print_bytes(out, "", records.p, h5_reader_left(&records));
	return rc;
}

START_TEST(shared_messages)
{
	const struct example examples[] = {
		{decode_shared, 8, 8, BYTES(1, 1, 0, 0, 0, 0, 0, 0, U64(7), U64(800)), WHOLE, 0,
		 "header 800"},
		{decode_shared, 2, 4, BYTES(1, 9, 0, 0, 0, 0, 0, 0, U32(7), U16(800)), WHOLE, 0,
		 "header 800"},
		{decode_shared, 8, 8, BYTES(2, 1, U64(800)), WHOLE, 0, "header 800"},
		{decode_shared, 4, 8, BYTES(3, 2, U32(800)), WHOLE, 0, "header 800"},
		{decode_shared, 4, 8, BYTES(3, 1, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'), WHOLE, 0,
		 "heap abcdefgh"},
		{decode_shared, 8, 8, BYTES(3, 0, U64(800)), 0, -EUCLEAN, "shared message: type 0"},
		{decode_shared, 8, 8, BYTES(3, 3, U64(800)), 0, -EUCLEAN, "shared message: type 3"},
		{decode_shared, 8, 8, BYTES(0, 2, U64(800)), 0, -EUCLEAN, "shared message: version 0"},
		{decode_shared, 8, 8, BYTES(4, 2, U64(800)), 0, -EUCLEAN, "shared message: version 4"},
		{decode_table_message, 8, 8, BYTES(0, U64(500), 1), WHOLE, 0, "500, 1"},
		{decode_table_message, 2, 8, BYTES(0, U16(500), 8), WHOLE, 0, "500, 8"},
		{decode_table_message, 8, 8, BYTES(0, U64(500), 0), 0, -EUCLEAN,
		 "shared message table message: 0 indexes"},
		{decode_table_message, 8, 8, BYTES(0, U64(500), 9), 0, -EUCLEAN,
		 "shared message table message: 9 indexes"},
		{decode_table_message, 8, 8, BYTES(1, U64(500), 1), 0, -EUCLEAN,
		 "shared message table message: version 1"},
		{decode_table, 4, 8,
		 BYTES('S', 'M', 'T', 'B', 0, 0, U16(0x12), U32(50), U16(40), U16(39), U16(3), U32(700),
		       U32(900), 0, 1, U16(2), U32(50), U16(41), U16(39), U16(300), U32(1700), U32(1900),
		       SUM),
		 WHOLE | SUMMED, 0, "list 0x12, 3 of 40 at 700, 900; tree 0x2, 300 of 41 at 1700, 1900; "},
		{decode_table, 2, 8,
		 BYTES('S', 'M', 'T', 'B', 0, 0, U16(0x12), U32(50), U16(40), U16(39), U16(3), U16(700),
		       U16(900), 1, 1, U16(2), U32(50), U16(41), U16(39), U16(300), U16(1700), U16(1900),
		       SUM),
		 SUMMED, -EUCLEAN, "shared message table: index of version 1"},
		{decode_record, 8, 8, BYTES(0, U32(77), U32(5), 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
		 WHOLE, 0, "77: abcdefgh, 5 times"},
		{decode_record, 4, 8, BYTES(1, U32(77), 0, 3, U16(1), U32(900)), WHOLE, 0, "77: 900"},
		{decode_record, 4, 8, BYTES(2, U32(77), 0, 3, U16(1), U32(900)), 0, -EUCLEAN,
		 "shared message record: location 2"},
		{decode_list, 8, 8, BYTES('S', 'M', 'L', 'I', 1, 2, 3, SUM), WHOLE | SUMMED, 0, "010203"},
		{decode_list, 8, 8, BYTES('S', 'M', 'L', 'I', SUM), WHOLE | SUMMED, 0, ""},
	};
	uint8_t bytes[28] = "SMTB", list[14] = "SMLI", record[17] = {1};
	struct h5_shared_table table = {.count = 1};

	CHECK(examples);
	ck_assert_uint_eq(h5_shared_table_size(2, 4), 4 + 2 * 22 + 4);
	ck_assert_uint_eq(h5_shared_record_size(8), 17);
	ck_assert_uint_eq(h5_shared_record_size(2), 17);
	ck_assert_uint_eq(h5_shared_list_size(3, 8), 4 + 3 * 17 + 4);
	/* What changes: the number of messages, and the address of the index. */
	table.indexes[0].messages = 0x1234;
	table.indexes[0].index = 0x5678;
	table.indexes[0].heap = 0x9abc;
	bytes[26] = list[12] = 0xaa;
	h5_shared_table_update(bytes, 26, 2, &table);
	for (size_t i = 4; i < 22; i++)
		ck_assert_uint_eq(bytes[i], i == 16   ? 0x34
					    : i == 17 ? 0x12
					    : i == 18 ? 0x78
					    : i == 19 ? 0x56
						      : 0);
	ck_assert_uint_eq(h5_uint_from(bytes + 22, 4), h5_lookup3(bytes, 22, 0));
	ck_assert_uint_eq(bytes[26], 0xaa);
	h5_shared_list_seal(list, 12);
	ck_assert_uint_eq(h5_uint_from(list + 8, 4), h5_lookup3(list, 8, 0));
	ck_assert_uint_eq(list[12], 0xaa);
	h5_shared_record_set_count(record, 0x01020304);
	ck_assert_mem_eq(record, "\1\0\0\0\0\4\3\2\1\0", 10);
	/* Old fill values are counted with new ones. */
	ck_assert_uint_eq(h5_shared_type_flag(H5_MSG_FILL_VALUE_OLD), 1 << 5);
	ck_assert_uint_eq(h5_shared_type_flag(H5_MSG_FILL_VALUE), 1 << 5);
	ck_assert_uint_eq(h5_shared_type_flag(H5_MSG_SHARED_TABLE), 1 << 15);
	ck_assert_uint_eq(h5_shared_type_flag(H5_MSG_CONTINUATION), 0);
}
END_TEST

/* ---- symbol tables ---- */

static int decode_node_size(struct h5_reader *r, struct h5_buf *out)
{
	size_t size;
	int rc = h5_symbol_node_size(r, &size);

	if (!rc)
		h5_buf_printf(out, "%zu", size);
	return rc;
}

static int decode_node(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_symbol_node *node;
	size_t cost;
	int rc = h5_symbol_node_decode(r, &node, &cost);

	if (rc)
		return rc;
	for (unsigned i = 0; i < node->count; i++)
		h5_buf_printf(out, "%ju %ju %u %u; ", (uintmax_t)node->symbols[i].name,
			      (uintmax_t)node->symbols[i].address, node->symbols[i].cache,
			      node->symbols[i].target);
	ck_assert_uint_ge(cost, sizeof *node + node->count * sizeof *node->symbols);
	free(node);
	return 0;
}

static int decode_local_heap(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_local_heap_header heap;
	int rc = h5_local_heap_decode(r, &heap);

	if (!rc)
		h5_buf_printf(out, "%ju %ju %ju", (uintmax_t)heap.size, (uintmax_t)heap.free,
			      (uintmax_t)heap.data);
	return rc;
}

static int decode_local_free(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_local_heap_free block;
	int rc = h5_local_heap_free_decode(r, &block);

	if (!rc)
		h5_buf_printf(out, "%ju %ju", (uintmax_t)block.next, (uintmax_t)block.size);
	return rc;
}

static int decode_symbol_table(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_symbol_table table;
	int rc = h5_symbol_table_decode(r, &table);

	if (!rc)
		h5_buf_printf(out, "%ju %ju", (uintmax_t)table.btree, (uintmax_t)table.heap);
	return rc;
}

START_TEST(symbol_tables)
{
	const struct example examples[] = {
		{decode_symbol_table, 2, 8, BYTES(U16(300), U16(500)), WHOLE, 0, "300 500"},
		{decode_node_size, 8, 8, BYTES('S', 'N', 'O', 'D', 1, 0, U16(3)), WHOLE, 0, "128"},
		{decode_node_size, 2, 4, BYTES('S', 'N', 'O', 'D', 1, 9, U16(300)), WHOLE, 0, "9008"},
		{decode_node_size, 8, 8, BYTES('S', 'N', 'O', 'D', 0, 0, U16(3)), 0, -EUCLEAN,
		 "symbol table node: version 0"},
		{decode_node_size, 8, 8, BYTES('S', 'N', 'O', 'D', 2, 0, U16(3)), 0, -EUCLEAN,
		 "symbol table node: version 2"},
		{decode_node_size, 8, 8, BYTES('S', 'N', 'O', 'e', 1, 0, U16(3)), 0, -EUCLEAN,
		 "symbol table node: wrong signature"},
		{decode_node, 2, 4,
		 BYTES('S', 'N', 'O', 'D', 1, 0, U16(2), U32(8), U16(700), U32(1), U32(9), U64(0), U64(0),
		       U32(16), U16(800), U32(2), U32(9), U32(24), U32(9), U64(9)),
		 WHOLE, 0, "8 700 1 0; 16 800 2 24; "},
		{decode_local_heap, 2, 4, BYTES('H', 'E', 'A', 'P', 0, 9, 9, 9, U32(88), U32(16), U16(500)),
		 WHOLE, 0, "88 16 500"},
		{decode_local_heap, 8, 8, BYTES('H', 'E', 'A', 'P', 1, 0, 0, 0, U64(88), U64(16), U64(500)),
		 0, -EUCLEAN, "local heap: version 1"},
		{decode_local_heap, 8, 8, BYTES('H', 'E', 'A', 'q', 0, 0, 0, 0, U64(88), U64(16), U64(500)),
		 0, -EUCLEAN, "local heap: wrong signature"},
		{decode_local_free, 8, 2, BYTES(U16(1), U16(40)), WHOLE, 0, "1 40"},
	};

	CHECK(examples);
	ck_assert_uint_eq(h5_symbol_node_room(4, 8, 8), 8 + 8 * 40);
	ck_assert_uint_eq(h5_symbol_node_room(1, 2, 4), 8 + 2 * 30);
}
END_TEST

/* ---- object headers ---- */

static int decode_header(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_object_header h;
	int rc = h5_object_header_decode(r, &h);

	if (!rc)
		h5_buf_printf(out, "%u: %#x %u %u %u %ju", h.version, h.flags, h.messages, h.references,
			      h.mtime, (uintmax_t)h.chunk_size);
	return rc;
}

static int decode_messages(struct h5_reader *r, uint8_t version, uint8_t flags, struct h5_buf *out)
{
	const struct h5_object_header header = {.version = version, .flags = flags};
	struct h5_message m;
	int rc;

	while ((rc = h5_object_header_next(r, &header, &m)) > 0) {
		h5_buf_printf(out, "%#x %#x %u at %ju", m.type, m.flags, m.creation_order,
			      (uintmax_t)m.address);
		print_bytes(out, " ", m.data, m.size);
		h5_buf_printf(out, "; ");
	}
	if (!rc)
		h5_buf_printf(out, "%zu left", h5_reader_left(r));
	return rc;
}

static int decode_messages1(struct h5_reader *r, struct h5_buf *out)
{
	return decode_messages(r, 1, 0, out);
}

static int decode_messages2(struct h5_reader *r, struct h5_buf *out)
{
	return decode_messages(r, 2, 0, out);
}

static int decode_messages_in_order(struct h5_reader *r, struct h5_buf *out)
{
	return decode_messages(r, 2, H5_HEADER_ORDER_TRACKED, out);
}

static int decode_continuation(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_continuation c;
	int rc = h5_continuation_decode(r, &c);

	if (!rc)
		h5_buf_printf(out, "%ju %ju", (uintmax_t)c.address, (uintmax_t)c.size);
	return rc;
}

static int decode_continuation_block(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_reader messages;
	int rc = h5_continuation_block_decode(r, &messages);

	if (!rc)
		print_bytes(out, "", messages.p, h5_reader_left(&messages));
	return rc;
}

START_TEST(object_headers)
{
	const struct example examples[] = {
		{decode_header, 8, 8, BYTES(1, 0, U16(3), U32(2), U32(24), U32(0)), WHOLE, 0,
		 "1: 0 3 2 0 24"},
		{decode_header, 8, 8, BYTES('O', 'H', 'D', 'R', 2, 0, 200), WHOLE, 0, "2: 0 0 0 0 200"},
		{decode_header, 8, 8, BYTES('O', 'H', 'D', 'R', 2, 0x1d, U32(8), U16(300)), WHOLE, 0,
		 "2: 0x1d 0 0 0 300"},
		{decode_header, 8, 8,
		 BYTES('O', 'H', 'D', 'R', 2, 0x22, U32(1), U32(70000), U32(3), U32(4), U32(80000)), WHOLE, 0,
		 "2: 0x22 0 0 70000 80000"},
		{decode_header, 8, 8,
		 BYTES('O', 'H', 'D', 'R', 2, 0x33, U32(1), U32(70000), U32(3), U32(4), U32(8), U64(80000)),
		 WHOLE, 0, "2: 0x33 0 0 70000 80000"},
		{decode_header, 8, 8, BYTES('O', 'H', 'D', 'R', 2, 0x40, 200), 0, -EUCLEAN,
		 "object header: unknown flags 0x40"},
		{decode_header, 8, 8, BYTES('O', 'H', 'D', 'R', 1, 0, 200), 0, -EUCLEAN,
		 "object header: version 1"},
		{decode_header, 8, 8, BYTES('O', 'H', 'D', 'R', 3, 0, 200), 0, -EUCLEAN,
		 "object header: version 3"},
		{decode_header, 8, 8, BYTES('O', 'H', 'D', 'S', 2, 0, 200), 0, -EUCLEAN,
		 "object header: wrong signature"},
		/* What is too short for another message is a gap. */
		{decode_messages1, 8, 8,
		 BYTES(U16(0x103), U16(8), 1, 9, 9, 9, U64(5), U16(0), U16(0), 0, 0, 0, 0, 1, 2, 3, 4, 5, 6,
		       7),
		 0, 0, "0x103 0x1 0 at 1008 0500000000000000; 0 0 0 at 1024 ; 7 left"},
		{decode_messages1, 8, 8, BYTES(U16(3), U16(4), 0, 0, 0, 0, U64(5)), 0, -EUCLEAN,
		 "object header: a message of 4 bytes is not aligned"},
		{decode_messages1, 8, 8, BYTES(U16(3), U16(16), 0, 0, 0, 0, U64(5)), 0, -EUCLEAN,
		 "object header: a message of 16 bytes passes the end of its chunk"},
		{decode_messages2, 8, 8, BYTES(3, U16(3), 0x40, 1, 2, 3, 4, U16(0), 0, 1, 2, 3), 0, 0,
		 "0x3 0x40 0 at 1004 010203; 0x4 0 0 at 1011 ; 3 left"},
		{decode_messages2, 8, 8, BYTES(3, U16(3), 0, 1, 2), 0, -EUCLEAN,
		 "object header: a message of 3 bytes passes the end of its chunk"},
		{decode_messages_in_order, 8, 8,
		 BYTES(3, U16(1), 0, U16(300), 7, 4, U16(0), 0, U16(9), 1, 2, 3, 4, 5), 0, 0,
		 "0x3 0 300 at 1006 07; 0x4 0 9 at 1013 ; 5 left"},
		{decode_continuation, 2, 4, BYTES(U16(700), U32(800)), WHOLE, 0, "700 800"},
		{decode_continuation_block, 8, 8, BYTES('O', 'C', 'H', 'K', 1, 2, 3, SUM), WHOLE | SUMMED, 0,
		 "010203"},
		{decode_continuation_block, 8, 8, BYTES('O', 'C', 'H', 'K', SUM), WHOLE | SUMMED, 0, ""},
		{decode_continuation_block, 8, 8, BYTES('O', 'C', 'H', 'L', SUM), SUMMED, -EUCLEAN,
		 "object header continuation: wrong signature"},
		{decode_continuation_block, 8, 8, BYTES('O', 'C', 'H', 'K', 1, 2, 3), 0, -EUCLEAN,
		 "object header continuation: truncated"},
	};

	CHECK(examples);
}
END_TEST

START_TEST(object_headers_written)
{
	static const struct {
		uint64_t size;
		unsigned width;
	} widths[] = {{0, 1},	  {255, 1},	   {256, 2},	    {65535, 2},
		      {65536, 4}, {UINT32_MAX, 4}, {1ull << 32, 8}, {1ull << 60, 8}};
	const struct h5_object_header v1 = {.version = 1}, v2 = {.version = 2},
				      ordered = {.version = 2, .flags = H5_HEADER_ORDER_TRACKED};
	const struct h5_message m = {
		.type = 3, .flags = 1, .creation_order = 300, .size = 2, .data = (const uint8_t *)"xy"};
	struct h5_message empty = m;
	uint8_t room[64];
	struct h5_writer w;

	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		struct h5_object_header h = {.version = 2, .flags = 0x1c, .chunk_size = widths[i].size};
		uint8_t expected[14] = {'O', 'H', 'D', 'R', 2};

		w = begin(room, sizeof room, 8, 8);
		expected[5] = (uint8_t)(0x0c | (widths[i].width == 8 ? 3 : widths[i].width / 2));
		h5_uint_to(expected + 6, widths[i].size, widths[i].width);
		h5_object_header_encode(&w, &h);
		check_written(&w, expected, 6 + widths[i].width);
	}
	w = begin(room, sizeof room, 8, 8);
	h5_object_header_encode(&w, &(struct h5_object_header){.flags = 0x20, .mtime = 7, .chunk_size = 9});
	check_written(&w, BYTES('O', 'H', 'D', 'R', 2, 0x20, U32(7), U32(7), U32(7), U32(7), 9));
	/* The data of a message that has none are zeros. */
	empty.data = NULL;
	w = begin(room, sizeof room, 8, 8);
	h5_message_encode(&w, &v1, &m);
	h5_message_encode(&w, &v1, &empty);
	check_written(&w, BYTES(U16(3), U16(2), 1, 0, 0, 0, 'x', 'y', U16(3), U16(2), 1, 0, 0, 0, 0, 0));
	w = begin(room, sizeof room, 8, 8);
	h5_message_encode(&w, &v2, &m);
	h5_message_encode(&w, &ordered, &empty);
	check_written(&w, BYTES(3, U16(2), 1, 'x', 'y', 3, U16(2), 1, U16(300), 0, 0));
	ck_assert_uint_eq(h5_message_prefix_size(&v1), 8);
	ck_assert_uint_eq(h5_message_prefix_size(&v2), 4);
	ck_assert_uint_eq(h5_message_prefix_size(&ordered), 6);
	w = begin(room, sizeof room, 2, 4);
	h5_continuation_encode(&w, &(struct h5_continuation){700, 800});
	check_written(&w, BYTES(U16(700), U32(800)));
}
END_TEST

/* ---- superblocks ---- */

static int decode_superblock(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_superblock sb;
	int rc = h5_superblock_decode(r->begin, h5_reader_left(r), r->address, &sb);

	if (!rc)
		h5_buf_printf(out, "%u: O %u L %u, K %u %u %u, flags %u, %jd %jd %jd %jd %jd, %zu bytes",
			      sb.version, sb.size_of_offsets, sb.size_of_lengths, sb.group_leaf_k,
			      sb.group_internal_k, sb.chunk_k, sb.consistency, (intmax_t)sb.base,
			      (intmax_t)sb.extension, (intmax_t)sb.end, (intmax_t)sb.driver_info,
			      (intmax_t)sb.root, h5_superblock_size(&sb));
	return rc;
}

#define SIGNATURE 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'
/* Versions 0 and 1 up to the addresses. */
#define OLD(version, offsets, lengths)                                                                       \
	SIGNATURE, version, 0, 0, 0, 0, offsets, lengths, 0, U16(5), U16(17), U32(0x01020304)

START_TEST(superblocks)
{
	const struct example examples[] = {
		{decode_superblock, 8, 8,
		 BYTES(OLD(0, 8, 8), U64(512), NONE64, U64(9000), U64(700), U64(3), U64(96)), WHOLE, 0,
		 "0: O 8 L 8, K 5 17 32, flags 16909060, 512 -1 9000 700 96, 96 bytes"},
		{decode_superblock, 8, 8,
		 BYTES(OLD(1, 4, 2), U16(40), U16(0), U32(0), U32(9), U32(9000), U32(700), U16(3), U32(96)),
		 WHOLE, 0, "1: O 4 L 2, K 5 17 40, flags 16909060, 0 -1 9000 700 96, 74 bytes"},
		{decode_superblock, 8, 8,
		 BYTES(SIGNATURE, 2, 8, 4, 5, U64(0), U64(80), U64(9000), U64(48), SUM), WHOLE | SUMMED, 0,
		 "2: O 8 L 4, K 4 16 32, flags 5, 0 80 9000 -1 48, 48 bytes"},
		{decode_superblock, 8, 8,
		 BYTES(SIGNATURE, 3, 2, 8, 0, U16(0), NONE16, U16(9000), U16(48), SUM), WHOLE | SUMMED, 0,
		 "3: O 2 L 8, K 4 16 32, flags 0, 0 -1 9000 -1 48, 24 bytes"},
		{decode_superblock, 8, 8,
		 BYTES(SIGNATURE, 3, 2, 8, 0, U16(0), NONE16, U16(9000), NONE16, SUM), SUMMED, -EUCLEAN,
		 "superblock: no root group"},
		{decode_superblock, 8, 8,
		 BYTES(SIGNATURE, 3, 2, 8, 0, NONE16, NONE16, U16(9000), U16(48), SUM), SUMMED, -EUCLEAN,
		 "superblock: no base address"},
		{decode_superblock, 8, 8, BYTES(SIGNATURE, 4, 8, 8, 0), 0, -ENOTSUP,
		 "superblock: version 4 is not supported"},
		{decode_superblock, 8, 8, BYTES(SIGNATURE, 2, 16, 8, 0), 0, -ENOTSUP,
		 "superblock: offsets of 16 bytes are not supported"},
		{decode_superblock, 8, 8, BYTES(SIGNATURE, 2, 8, 32, 0), 0, -ENOTSUP,
		 "superblock: lengths of 32 bytes are not supported"},
		{decode_superblock, 8, 8, BYTES(SIGNATURE, 2, 3, 8, 0), 0, -EUCLEAN,
		 "superblock: size of offsets is 3"},
		{decode_superblock, 8, 8, BYTES(OLD(0, 8, 1)), 0, -EUCLEAN,
		 "superblock: size of lengths is 1"},
	};
	struct h5_superblock sb = {.version = 2,
				   .size_of_offsets = 2,
				   .size_of_lengths = 4,
				   .extension = H5_UNDEF,
				   .consistency = 1,
				   .end = 9000,
				   .root = 48};
	uint8_t room[64];
	struct h5_writer w;

	CHECK(examples);
	for (unsigned version = 1; version <= 4; version++) {
		w = begin(room, sizeof room, 2, 4);
		sb.version = (uint8_t)version;
		h5_superblock_encode(&w, &sb);
		if (version == 1 || version == 4) {
			ck_assert(w.err);
			continue;
		}
		w.p -= 4;
		ck_assert_uint_eq(h5_uint_from(w.p, 4), h5_lookup3(room, 20, 0));
		*w.p = 0xaa;
		check_written(
			&w, BYTES(SIGNATURE, (uint8_t)version, 2, 4, 1, U16(0), NONE16, U16(9000), U16(48)));
	}
}
END_TEST

/* ---- free space ---- */

static int decode_space_info(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_file_space_info info;
	int rc = h5_file_space_info_decode(r, &info);

	if (rc)
		return rc;
	h5_buf_printf(out, "%u: %d %ju %ju:", info.version, info.persist, (uintmax_t)info.threshold,
		      (uintmax_t)info.page_size);
	for (unsigned i = 0; i < info.count; i++)
		h5_buf_printf(out, " %jd", (intmax_t)info.managers[i]);
	return 0;
}

static int decode_manager(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_free_space_header h;
	int rc = h5_free_space_header_decode(r, &h);

	if (!rc)
		h5_buf_printf(out, "%u: %ju %ju %ju %u %ju %ju %ju %ju", h.client, (uintmax_t)h.total,
			      (uintmax_t)h.sections, (uintmax_t)h.serialized, h.address_bits,
			      (uintmax_t)h.section_max, (uintmax_t)h.list, (uintmax_t)h.list_size,
			      (uintmax_t)h.list_room);
	return rc;
}

static int decode_section_list(struct h5_reader *r, struct h5_buf *out)
{
	(void)out;
	return h5_free_space_list_check(r, 500);
}

static int walk_sections(struct h5_reader *r, enum h5_free_space_client client, uint16_t address_bits,
			 struct h5_buf *out)
{
	const struct h5_free_space_header header = {.client = (uint8_t)client,
						    .serialized = 300,
						    .address_bits = address_bits,
						    .section_max = 1000};
	struct h5_free_space_walk walk;
	struct h5_free_section section;
	int rc;

	h5_free_space_walk_begin(&walk, *r, &header);
	while ((rc = h5_free_space_walk_next(&walk, &section)) > 0)
		h5_buf_printf(out, "%ju+%ju; ", (uintmax_t)section.offset, (uintmax_t)section.size);
	if (rc)
		h5_buf_printf(out, "then ");
	return rc;
}

static int walk_heap(struct h5_reader *r, struct h5_buf *out)
{
	return walk_sections(r, H5_FREE_SPACE_HEAP, 17, out);
}

static int walk_file(struct h5_reader *r, struct h5_buf *out)
{
	return walk_sections(r, H5_FREE_SPACE_FILE, 16, out);
}

static int walk_large(struct h5_reader *r, struct h5_buf *out)
{
	return walk_sections(r, H5_FREE_SPACE_FILE, 64, out);
}

static int walk_too_large(struct h5_reader *r, struct h5_buf *out)
{
	return walk_sections(r, H5_FREE_SPACE_FILE, 65, out);
}

static int decode_note(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_removed_object objects[2];
	struct h5_removed_note note;

	if (!h5_removed_note_decode(r, &note, objects, 2)) {
		h5_error_clear();
		return -EUCLEAN;
	}
	h5_buf_printf(out, "%u %ju %ju %ju %ju %u:", note.list, (uintmax_t)note.state[0],
		      (uintmax_t)note.state[1], (uintmax_t)note.state[2], (uintmax_t)note.state[3],
		      note.room);
	for (unsigned i = 0; i < note.count; i++)
		h5_buf_printf(out, " %d %ju+%ju", objects[i].is_huge, (uintmax_t)objects[i].offset,
			      (uintmax_t)objects[i].size);
	return 0;
}

#define LIST(...) 'F', 'S', 'S', 'E', 0, U16(500), __VA_ARGS__, SUM
#define NOTE(...) 'h', '5', 'f', 's', U32(77), U64(1), U64(2), U64(3), U64(4), U16(99), __VA_ARGS__, SUM

START_TEST(free_space)
{
	const struct example examples[] = {
		/* Version 0 has six managers if its strategy is 1. */
		{decode_space_info, 2, 4, BYTES(0, 0, U32(9)), WHOLE, 0, "0: 0 9 0:"},
		{decode_space_info, 2, 4, BYTES(0, 2, U32(9)), WHOLE, 0, "0: 0 9 0:"},
		{decode_space_info, 2, 4, BYTES(0, 1, U32(9), U16(1), U16(2), U16(3), U16(4), U16(5), NONE16),
		 WHOLE, 0, "0: 1 9 0: 1 2 3 4 5 -1"},
		/* Version 1 has pages if its strategy is 1. */
		{decode_space_info, 2, 4, BYTES(1, 1, 0, U32(9), U32(4096), U16(0), U16(700)), WHOLE, 0,
		 "1: 0 9 4096:"},
		{decode_space_info, 2, 4, BYTES(1, 2, 0, U32(9), U32(4096), U16(0), U16(700)), WHOLE, 0,
		 "1: 0 9 0:"},
		{decode_space_info, 2, 4,
		 BYTES(1, 0, 1, U32(9), U32(4096), U16(0), U16(700), U16(1), U16(2), U16(3), U16(4), U16(5),
		       NONE16, U16(7), U16(8), U16(9), U16(10), U16(11), U16(12)),
		 WHOLE, 0, "1: 1 9 0: 1 2 3 4 5 -1 7 8 9 10 11 12"},
		{decode_space_info, 2, 4, BYTES(2, 0, U32(9)), 0, -ENOTSUP,
		 "file space info message: version 2 is not supported"},
		{decode_space_info, 2, 4, BYTES(2), 0, -EUCLEAN, "file space info message: truncated"},
		{decode_manager, 2, 4,
		 BYTES('F', 'S', 'H', 'D', 0, 1, U32(1000), U32(5), U32(4), U32(1), U16(3), U16(80), U16(120),
		       U16(32), U32(600), U16(700), U32(80), U32(90), SUM),
		 WHOLE | SUMMED, 0, "1: 1000 5 4 32 600 700 80 90"},
		{decode_manager, 2, 4, BYTES('F', 'S', 'H', 'D', 1), 0, -ENOTSUP,
		 "free-space manager: version 1 is not supported"},
		{decode_section_list, 2, 8, BYTES(LIST(1, 2, 3)), WHOLE | SUMMED, 0, ""},
		{decode_section_list, 2, 8, BYTES('F', 'S', 'S', 'E', 0, U16(500), SUM), WHOLE | SUMMED, 0,
		 ""},
		{decode_section_list, 2, 8, BYTES('F', 'S', 'S', 'E', 0, U16(501), SUM), SUMMED, -EUCLEAN,
		 "free-space section list: it belongs to another manager"},
		{decode_section_list, 2, 8, BYTES('F', 'S', 'S', 'E', 1, U16(500), SUM), SUMMED, -ENOTSUP,
		 "free-space section list: version 1 is not supported"},
		{decode_section_list, 2, 8, BYTES('F', 'S', 'S', 'f', 0, U16(500), SUM), SUMMED, -EUCLEAN,
		 "free-space section list: wrong signature"},
		/* In a heap, rows of blocks are passed over. */
		{walk_heap, 2, 8,
		 BYTES(LIST(U16(2), U16(30), 1, 0, 1, 0, 2, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9, U16(3),
			    U16(50), 3, 0, 0, 2, 4, 0, 0, 3, 9, 9, 9, 9, 9, 9, 9, 9, 9, 5, 0, 0, 0)),
		 0, 0, "65537+30; 5+50; "},
		{walk_heap, 2, 8, BYTES(LIST(U16(2), U16(30), 1, 0, 0, 0, 2, 0, 0, 4)), 0, -EUCLEAN,
		 "1+30; then free-space section list: section of type 4"},
		{walk_heap, 2, 8, BYTES(LIST(U16(0), U16(30), 1, 0, 0, 0)), 0, -EUCLEAN,
		 "then free-space section list: a set of no sections"},
		{walk_heap, 2, 8, BYTES(LIST(U16(1), U16(30), 1, 0, 0)), 0, -EUCLEAN,
		 "then free-space section list: truncated"},
		{walk_heap, 2, 8, BYTES('F', 'S', 'S', 'E', 0, U16(500), 1, 2, 3), 0, 0, ""},
		{walk_file, 2, 8, BYTES(LIST(U16(3), U16(30), U16(700), 0, U16(800), 1, U16(900), 2)), 0, 0,
		 "700+30; 800+30; 900+30; "},
		{walk_file, 2, 8, BYTES(LIST(U16(1), U16(30), U16(700), 3)), 0, -EUCLEAN,
		 "then free-space section list: section of type 3"},
		{walk_large, 2, 8, BYTES(LIST(U16(1), U16(30), U64(70000), 2)), 0, 0, "70000+30; "},
		{walk_too_large, 2, 8, BYTES(LIST(U16(1), U16(30), U64(70000), 0, 2)), 0, -EUCLEAN,
		 "then free-space manager: address space of 65 bits"},
		{decode_note, 2, 8, BYTES(NOTE(U16(0))), WHOLE | SUMMED, 0, "77 1 2 3 4 99:"},
		{decode_note, 2, 8, BYTES(NOTE(U16(2), 1, U64(5), U64(6), 0, U64(7), U64(8))), WHOLE | SUMMED,
		 0, "77 1 2 3 4 99: 1 5+6 0 7+8"},
		{decode_note, 2, 8,
		 BYTES(NOTE(U16(3), 1, U64(5), U64(6), 0, U64(7), U64(8), 0, U64(7), U64(8))), SUMMED,
		 -EUCLEAN, ""},
		{decode_note, 2, 8, BYTES(NOTE(U16(0))), 0, -EUCLEAN, ""},
		{decode_note, 2, 8,
		 BYTES('h', '5', 'f', 't', U32(77), U64(1), U64(2), U64(3), U64(4), U16(99), U16(0), SUM),
		 SUMMED, -EUCLEAN, ""},
	};
	const struct h5_file_space_change change = {.size_of_offsets = 2,
						    .size_of_lengths = 4,
						    .managers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
						    .end = 900};
	const uint8_t info[39] = {1, 0, 1, U32(9), U32(4096), U16(0)};
	uint8_t body[sizeof info];

	CHECK(examples);
	memcpy(body, info, sizeof info);
	ck_assert_int_eq(h5_file_space_info_update(&change, body, sizeof body), 0);
	ck_assert_mem_eq(body, info, 13);
	for (unsigned i = 0; i < 13; i++)
		ck_assert_uint_eq(h5_uint_from(body + 13 + 2 * i, 2), i ? i : 900);
	ck_assert_int_eq(h5_file_space_info_update(&change, body, sizeof body - 1), -ENOTSUP);
	body[0] = 0;
	ck_assert_int_eq(h5_file_space_info_update(&change, body, sizeof body), -ENOTSUP);
	body[0] = 1;
	body[2] = 0;
	ck_assert_int_eq(h5_file_space_info_update(&change, body, sizeof body), -ENOTSUP);
}
END_TEST

/* What is written decodes, and has just the bytes that were said. Sections of one size are a set. */
START_TEST(free_space_written)
{
	static const struct h5_free_section sections[] = {
		{65537, 20}, {9, 20}, {700, 30}, {10, 40}, {11, 40}};
	const uint8_t expected[] = {'F',     'S', 'S', 'E', 0, U16(500), 2,	  U16(20),  1, 0, 1,
				    7,	     9,	  0,   0,   7, 1,	 U16(30), U16(700), 0, 7, 2,
				    U16(40), 10,  0,   0,   7, 11,	 0,	  0,	    7};
	struct h5_free_space_header header = {.client = H5_FREE_SPACE_FILE,
					      .total = 150,
					      .sections = 5,
					      .serialized = 5,
					      .address_bits = 17,
					      .section_max = 256,
					      .list = 300,
					      .list_size = 39,
					      .list_room = 44};
	uint8_t room[128];
	struct h5_writer w = begin(room, sizeof room, 2, 4);

	ck_assert_int_eq(h5_free_space_list_encode(&w, &header, 500, sections, 7), 0);
	ck_assert_uint_eq(h5_writer_at(&w), sizeof expected + 4);
	ck_assert_mem_eq(room, expected, sizeof expected);
	ck_assert_uint_eq(h5_uint_from(room + sizeof expected, 4), h5_lookup3(room, sizeof expected, 0));
	ck_assert_uint_eq(h5_free_space_list_size(&header, sections, 2), sizeof expected + 4);
	ck_assert_uint_eq(h5_free_space_header_size(2, 4), 6 + 7 * 4 + 8 + 2 + 4);
	for (unsigned client = 0; client < 2; client++) {
		const uint8_t manager[] = {'F',
					   'S',
					   'H',
					   'D',
					   0,
					   (uint8_t)client,
					   U32(150),
					   U32(5),
					   U32(5),
					   U32(0),
					   client ? 3 : 4,
					   0,
					   U16(80),
					   U16(120),
					   U16(17),
					   U32(256),
					   U16(300),
					   U32(39),
					   U32(44)};

		header.client = (uint8_t)client;
		w = begin(room, sizeof room, 2, 4);
		ck_assert_int_eq(h5_free_space_header_encode(&w, &header), 0);
		ck_assert_uint_eq(h5_writer_at(&w), sizeof manager + 4);
		ck_assert_mem_eq(room, manager, sizeof manager);
	}
}
END_TEST

/* ---- images of a cache ---- */

static int decode_image_message(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_cache_image_message m;
	int rc = h5_cache_image_message_decode(r, &m);

	if (!rc)
		h5_buf_printf(out, "%jd %ju", (intmax_t)m.address, (uintmax_t)m.size);
	return rc;
}

static int decode_image(struct h5_reader *r, struct h5_buf *out)
{
	uint32_t entries;
	int rc = h5_cache_image_decode(r, &entries);

	if (!rc) {
		h5_buf_printf(out, "%u: ", entries);
		print_bytes(out, "", r->p, h5_reader_left(r));
	}
	return rc;
}

static int decode_image_entry(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_cache_image_entry entry;
	int rc = h5_cache_image_entry_decode(r, &entry);

	if (!rc) {
		h5_buf_printf(out, "%ju: ", (uintmax_t)entry.address);
		print_bytes(out, "", entry.data, (size_t)entry.size);
	}
	return rc;
}

START_TEST(cache_images)
{
	const struct example examples[] = {
		{decode_image_message, 2, 4, BYTES(0, U16(700), U32(80)), WHOLE, 0, "700 80"},
		{decode_image_message, 8, 8, BYTES(0, NONE64, U64(0)), WHOLE, 0, "-1 0"},
		{decode_image_message, 2, 4, BYTES(1, U16(700), U32(80)), WHOLE, -ENOTSUP,
		 "cache image message: version 1 is not supported"},
		{decode_image, 8, 4, BYTES('M', 'D', 'C', 'I', 0, 1, U32(20), U32(3), 'a', 'b', SUM),
		 WHOLE | SUMMED, 0, "3: 6162"},
		{decode_image, 8, 8, BYTES('M', 'D', 'C', 'I', 0, 1, U64(20), U32(0), SUM), WHOLE | SUMMED, 0,
		 "0: "},
		{decode_image, 8, 8, BYTES('M', 'D', 'C', 'I', 1, 1, U64(20), U32(0), SUM), SUMMED, -ENOTSUP,
		 "cache image: version 1 is not supported"},
		{decode_image, 8, 8, BYTES('M', 'D', 'C', 'I', 0, 1, U64(20), U32(0), SUM), 0, -EUCLEAN,
		 "cache image: wrong checksum"},
		{decode_image, 8, 8, BYTES('M', 'D', 'C', 'I', 0, 1, U64(20), U32(0), 1, 2, 3), 0, -EUCLEAN,
		 "cache image: truncated"},
		{decode_image, 8, 8, BYTES('M', 'D', 'C', 'J', 0, 1, U64(20), U32(0), SUM), SUMMED, -EUCLEAN,
		 "cache image: wrong signature"},
		{decode_image_entry, 2, 4,
		 BYTES(9, 9, 9, 9, U16(9), U16(9), U16(3), U32(9), U16(700), U32(2), U16(1), U16(2), U16(3),
		       'a', 'b'),
		 WHOLE, 0, "700: 6162"},
		{decode_image_entry, 8, 8,
		 BYTES(9, 9, 9, 9, U16(9), U16(9), U16(0), U32(9), U64(700), U64(1), 'a'), WHOLE, 0,
		 "700: 61"},
	};

	CHECK(examples);
}
END_TEST

/* ---- small messages ---- */

static int decode_mtime(struct h5_reader *r, struct h5_buf *out)
{
	int64_t seconds;
	int rc = h5_mtime_decode(r, &seconds);

	if (!rc)
		h5_buf_printf(out, "%jd", (intmax_t)seconds);
	return rc;
}

static int decode_mtime_old(struct h5_reader *r, struct h5_buf *out)
{
	int64_t seconds;
	int rc = h5_mtime_old_decode(r, &seconds);

	if (!rc)
		h5_buf_printf(out, "%jd", (intmax_t)seconds);
	return rc;
}

static int decode_references(struct h5_reader *r, struct h5_buf *out)
{
	uint32_t count;
	int rc = h5_reference_count_decode(r, &count);

	if (!rc)
		h5_buf_printf(out, "%u", count);
	return rc;
}

static int decode_group_info(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_group_info info;
	int rc = h5_group_info_decode(r, &info);

	if (!rc)
		h5_buf_printf(out, "%d %u %u, %d %u %u", info.has_limits, info.max_compact, info.min_dense,
			      info.has_estimates, info.entries, info.name_size);
	return rc;
}

#define TEXT(text) (const uint8_t *)(text), sizeof(text) - 1

START_TEST(small_messages)
{
	const struct example examples[] = {
		{decode_mtime, 8, 8, BYTES(1, 9, 9, 9, 0xff, 0xff, 0xff, 0xff), WHOLE, 0, "4294967295"},
		{decode_mtime, 8, 8, BYTES(0, 0, 0, 0, U32(5)), 0, -EUCLEAN,
		 "modification time message: version 0"},
		{decode_mtime, 8, 8, BYTES(2, 0, 0, 0, U32(5)), 0, -EUCLEAN,
		 "modification time message: version 2"},
		{decode_mtime_old, 8, 8, TEXT("19700101000001"), WHOLE, 0, "1"},
		{decode_mtime_old, 8, 8, TEXT("20240229123456"), WHOLE, 0, "1709210096"},
		{decode_mtime_old, 8, 8, TEXT("2024022912345/"), 0, -EUCLEAN,
		 "modification time message: not a date"},
		{decode_mtime_old, 8, 8, TEXT("2024022912345:"), 0, -EUCLEAN,
		 "modification time message: not a date"},
		{decode_mtime_old, 8, 8, TEXT("2/240229123456"), 0, -EUCLEAN,
		 "modification time message: not a date"},
		{decode_references, 8, 8, BYTES(0, U32(70000)), WHOLE, 0, "70000"},
		{decode_references, 8, 8, BYTES(1, U32(70000)), 0, -EUCLEAN,
		 "reference count message: version 1"},
		{decode_group_info, 8, 8, BYTES(0, 0), WHOLE, 0, "0 8 6, 0 4 8"},
		{decode_group_info, 8, 8, BYTES(0, 1, U16(300), U16(200)), WHOLE, 0, "1 300 200, 0 4 8"},
		{decode_group_info, 8, 8, BYTES(0, 2, U16(300), U16(200)), WHOLE, 0, "0 8 6, 1 300 200"},
		{decode_group_info, 8, 8, BYTES(0, 3, U16(9), U16(7), U16(300), U16(200)), WHOLE, 0,
		 "1 9 7, 1 300 200"},
		{decode_group_info, 8, 8, BYTES(0, 4), 0, -EUCLEAN,
		 "group info message: version 0, flags 0x4"},
		{decode_group_info, 8, 8, BYTES(1, 0), 0, -EUCLEAN, "group info message: version 1, flags 0"},
	};

	CHECK(examples);
}
END_TEST

/* ---- links and attributes ---- */

static int decode_link(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_link link;
	int rc = h5_link_decode(r, &link);

	if (!rc) {
		h5_buf_printf(out, "%u %.*s", link.type, (int)link.name_size, link.name);
		if (link.has_order)
			h5_buf_printf(out, " (%jd)", (intmax_t)link.order);
		if (link.type == H5_LINK_HARD)
			h5_buf_printf(out, " at %ju", (uintmax_t)link.address);
		else
			h5_buf_printf(out, " to [%.*s][%.*s]", (int)link.file_size,
				      link.file ? link.file : "", (int)link.target_size, link.target);
	}
	return rc;
}

static int decode_attribute(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_attribute_message a;
	int rc = h5_attribute_decode(r, &a);

	if (!rc) {
		h5_buf_printf(out, "%.*s %d%d", (int)a.name_size, a.name, a.type_shared, a.space_shared);
		print_bytes(out, a.type.err ? " !" : " ", a.type.p, h5_reader_left(&a.type));
		print_bytes(out, a.space.err ? " !" : " ", a.space.p, h5_reader_left(&a.space));
		print_bytes(out, a.data.err ? " !" : " ", a.data.p, h5_reader_left(&a.data));
	}
	return rc;
}

static int print_info(struct h5_buf *out, int rc, const struct h5_named_info *info)
{
	if (!rc)
		h5_buf_printf(out, "%d%d %ju %ju %ju %jd", info->tracks_order, info->indexes_order,
			      (uintmax_t)info->next_order, (uintmax_t)info->heap, (uintmax_t)info->name_index,
			      (intmax_t)info->order_index);
	return rc;
}

static int decode_link_info(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_named_info info;
	int rc = h5_link_info_decode(r, &info);

	return print_info(out, rc, &info);
}

static int decode_attribute_info(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_named_info info;
	int rc = h5_attribute_info_decode(r, &info);

	return print_info(out, rc, &info);
}

static int print_named_record(struct h5_buf *out, int rc, const struct h5_named_record *record)
{
	if (!rc)
		h5_buf_printf(out, "%u %.*s %d %jd", record->hash, (int)record->id_size,
			      (const char *)record->id, record->is_shared, (intmax_t)record->order);
	return rc;
}

static int decode_attribute_record(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_named_record record;
	int rc = h5_attribute_record_decode(r, &record);

	return print_named_record(out, rc, &record);
}

static int decode_attribute_order(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_named_record record;
	int rc = h5_attribute_order_record_decode(r, &record);

	return print_named_record(out, rc, &record);
}

static int decode_link_record(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_named_record record;
	int rc = h5_link_record_decode(r, &record);

	return print_named_record(out, rc, &record);
}

static int decode_link_order(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_named_record record;
	int rc = h5_link_order_record_decode(r, &record);

	return print_named_record(out, rc, &record);
}

START_TEST(links)
{
	const struct example examples[] = {
		{decode_link, 2, 8, BYTES(1, 0, 1, 'a', U16(700)), WHOLE, 0, "0 a at 700"},
		{decode_link, 8, 8, BYTES(1, 4, U64(5), 1, 'a', U64(700)), WHOLE, 0, "0 a (5) at 700"},
		{decode_link, 8, 8, BYTES(1, 0x1d, 1, U64(5), 1, U16(2), 'a', 'b', U16(3), 'x', '/', 'y'),
		 WHOLE, 0, "1 ab (5) to [][x/y]"},
		{decode_link, 8, 8, BYTES(1, 0x0a, 1, U32(1), 'a', U16(0)), WHOLE, 0, "1 a to [][]"},
		{decode_link, 8, 8, BYTES(1, 0x0b, 65, U64(1), 'a', U16(1), 'x'), WHOLE, 0, "65 a to [][x]"},
		{decode_link, 8, 8, BYTES(1, 0x08, 64, 1, 'a', U16(5), 0, 'f', 0, 'p', 0), WHOLE, 0,
		 "64 a to [f][p]"},
		/* External links without their NULs lead nowhere. */
		{decode_link, 8, 8, BYTES(1, 0x08, 64, 1, 'a', U16(4), 0, 'f', 0, 'p'), WHOLE, 0,
		 "64 a to [f][p]"},
		{decode_link, 8, 8, BYTES(1, 0x08, 64, 1, 'a', U16(3), 0, 'f', 0), WHOLE, 0, "64 a to [f][]"},
		{decode_link, 8, 8, BYTES(1, 0x08, 64, 1, 'a', U16(2), 0, 'f'), WHOLE, 0, "64 a to [f][]"},
		{decode_link, 8, 8, BYTES(1, 0x08, 64, 1, 'a', U16(1), 0), WHOLE, 0, "64 a to [][]"},
		{decode_link, 8, 8, BYTES(1, 0x08, 64, 1, 'a', U16(0)), WHOLE, 0, "64 a to [][]"},
		{decode_link, 8, 8, BYTES(1, 0x08, 2, 1, 'a', U16(1), 'x'), 0, -EUCLEAN,
		 "link message: type 2"},
		{decode_link, 8, 8, BYTES(1, 0x08, 63, 1, 'a', U16(1), 'x'), 0, -EUCLEAN,
		 "link message: type 63"},
		{decode_link, 8, 8, BYTES(1, 0x20, 1, 'a', U64(700)), 0, -EUCLEAN,
		 "link message: unknown flags 0x20"},
		{decode_link, 8, 8, BYTES(0, 0, 1, 'a', U64(700)), 0, -EUCLEAN, "link message: version 0"},
		{decode_link, 8, 8, BYTES(2, 0, 1, 'a', U64(700)), 0, -EUCLEAN, "link message: version 2"},
		{decode_link_info, 2, 8, BYTES(0, 0, U16(300), U16(400)), WHOLE, 0, "00 0 300 400 -1"},
		{decode_link_info, 2, 8, BYTES(0, 3, U64(70000), U16(300), U16(400), U16(500)), WHOLE, 0,
		 "11 70000 300 400 500"},
		{decode_link_info, 2, 8, BYTES(1, 0, U16(300), U16(400)), 0, -EUCLEAN,
		 "link info message: version 1"},
		{decode_attribute_info, 2, 8, BYTES(0, 1, U16(7), U16(300), U16(400)), WHOLE, 0,
		 "10 7 300 400 -1"},
		{decode_attribute_info, 2, 8, BYTES(0, 2, U16(300), U16(400), U16(500)), WHOLE, 0,
		 "01 0 300 400 500"},
		{decode_attribute_info, 2, 8, BYTES(1, 0, U16(300), U16(400)), 0, -EUCLEAN,
		 "attribute info message: version 1"},
		{decode_link_record, 8, 8, BYTES(U32(77), 'i', 'd'), 0, 0, "77 id 0 0"},
		{decode_link_order, 8, 8, BYTES(U64(70000), 'i', 'd'), 0, 0, "0 id 0 70000"},
		{decode_attribute_record, 8, 8,
		 BYTES('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 2, U32(5), U32(77)), WHOLE, 0,
		 "77 abcdefgh 1 5"},
		{decode_attribute_order, 8, 8, BYTES('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 0xfd, U32(5)),
		 WHOLE, 0, "0 abcdefgh 0 5"},
	};
	struct h5_named_record record = {
		.hash = 77, .id = (const uint8_t *)"abcdefgh", .id_size = 8, .is_shared = true, .order = 5};
	uint8_t room[64];
	struct h5_writer w = begin(room, sizeof room, 8, 8);

	CHECK(examples);
	ck_assert_int_eq(h5_attribute_record_encode(&w, &record), 0);
	check_written(&w, BYTES('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 2, U32(5), U32(77)));
	w = begin(room, sizeof room, 8, 8);
	record.is_shared = false;
	ck_assert_int_eq(h5_attribute_order_record_encode(&w, &record), 0);
	check_written(&w, BYTES('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 0, U32(5)));
	w = begin(room, sizeof room, 8, 8);
	ck_assert_int_eq(h5_link_record_encode(&w, &record), 0);
	check_written(&w, BYTES(U32(77), 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'));
	w = begin(room, sizeof room, 8, 8);
	ck_assert_int_eq(h5_link_order_record_encode(&w, &record), 0);
	check_written(&w, BYTES(U64(5), 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'));
}
END_TEST

/* The longest names and targets for a width, and one byte more. */
START_TEST(links_of_any_length)
{
	enum { MOST = 1 << 17 };
	char *text = malloc(MOST);
	uint8_t *room = malloc(MOST);
	struct h5_writer w;

	memset(text, 'n', MOST);
	for (unsigned long_one = 0; long_one < 4; long_one++) {
		const size_t sizes[] = {255, 256, 65535, 65536};
		const struct h5_link link = {.name = text, .name_size = sizes[long_one], .address = 700};
		unsigned width = long_one ? long_one == 3 ? 4 : 2 : 1;

		w = begin(room, MOST, 2, 8);
		ck_assert_int_eq(h5_link_encode(&w, &link), 0);
		ck_assert_uint_eq(h5_writer_at(&w), 2 + width + link.name_size + 2);
		ck_assert_uint_eq(room[1], width / 2);
		ck_assert_uint_eq(h5_uint_from(room + 2, width), link.name_size);
		ck_assert_uint_eq(h5_uint_from(room + 2 + width + link.name_size, 2), 700);
		ck_assert_uint_ge(h5_link_room(&link), h5_writer_at(&w));
	}
	for (unsigned external = 0; external < 2; external++) {
		struct h5_link link = {.type = external ? H5_LINK_EXTERNAL : H5_LINK_SOFT,
				       .name = "a",
				       .name_size = 1,
				       .file = "file",
				       .file_size = external ? 4 : 0,
				       .target = text,
				       .target_size = external ? 65535 - 7 : 65535};

		w = begin(room, MOST, 2, 8);
		ck_assert_int_eq(h5_link_encode(&w, &link), 0);
		ck_assert_uint_eq(h5_writer_at(&w), 7 + 65535);
		ck_assert_mem_eq(room, external ? "\1\x08\x40\1a\xff\xff\0file\0n" : "\1\x08\1\1a\xff\xffn",
				 external ? 14 : 8);
		ck_assert_uint_eq(room[7 + 65534], external ? 0 : 'n');
		ck_assert_uint_ge(h5_link_room(&link), h5_writer_at(&w));
		link.target_size++;
		w = begin(room, MOST, 2, 8);
		ck_assert_int_eq(h5_link_encode(&w, &link), -ENAMETOOLONG);
		ck_assert_str_eq(h5_error_last()->text, "link message: a target of 65536 bytes");
	}
	/* The character set is told of what is not ASCII. */
	w = begin(room, MOST, 2, 8);
	ck_assert_int_eq(
		h5_link_encode(&w, &(struct h5_link){.name = "\x7f", .name_size = 1, .address = 700}), 0);
	check_written(&w, BYTES(1, 0, 1, 0x7f, U16(700)));
	w = begin(room, MOST, 2, 8);
	ck_assert_int_eq(h5_link_encode(&w, &(struct h5_link){.name = "\x80",
							      .name_size = 1,
							      .has_order = true,
							      .order = 3,
							      .address = 700}),
			 0);
	check_written(&w, BYTES(1, 0x14, U64(3), 1, 1, 0x80, U16(700)));
	/* There is room for the longest of all forms. */
	ck_assert_uint_ge(h5_link_room(&(struct h5_link){0}), 2 + 1 + 8 + 1 + 8 + 8);
	free(room);
	free(text);
}
END_TEST

/* A copy has all texts of its own, one behind the other. */
START_TEST(copies_of_links)
{
	const struct h5_link link = {.type = H5_LINK_EXTERNAL,
				     .has_order = true,
				     .order = 5,
				     .name = "abc",
				     .name_size = 3,
				     .target = "defg",
				     .target_size = 4,
				     .file = "hi",
				     .file_size = 2};
	struct h5_link copy;

	ck_assert_int_eq(h5_link_copy(&link, &copy), 0);
	ck_assert(copy.type == H5_LINK_EXTERNAL && copy.has_order && copy.order == 5);
	ck_assert(copy.name_size == 3 && copy.target_size == 4 && copy.file_size == 2);
	ck_assert(copy.name == copy.owned && copy.target == copy.name + 3 && copy.file == copy.target + 4);
	ck_assert_mem_eq(copy.owned, "abcdefghi", 9);
	h5_link_release(&copy);
	h5_link_release(&copy);
	ck_assert(!copy.name && !copy.owned);
}
END_TEST

START_TEST(attributes)
{
	const struct example examples[] = {
		/* Version 1: a multiple of 8 each. Its flags mean nothing. */
		{decode_attribute, 8, 8,
		 BYTES(1, 3, U16(3), U16(2), U16(8), 'a', 'b', 0, 9, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 9, 9, 1, 2,
		       3, 4, 5, 6, 7, 8, 0x77),
		 0, 0, "ab 00 0102 0102030405060708 77"},
		/* The padding at the end may be missing. */
		{decode_attribute, 8, 8,
		 BYTES(1, 0, U16(2), U16(1), U16(2), 'a', 0, 9, 9, 9, 9, 9, 9, 1, 9, 9, 9, 9, 9, 9, 9, 1, 2,
		       9),
		 0, 0, "a 00 01 0102 "},
		{decode_attribute, 8, 8, BYTES(2, 1, U16(3), U16(2), U16(1), 'a', 'b', 0, 1, 2, 3, 4, 5), 0,
		 0, "ab 10 0102 03 0405"},
		{decode_attribute, 8, 8, BYTES(3, 2, U16(3), U16(2), U16(1), 9, 'a', 'b', 0, 1, 2, 3, 4, 5),
		 0, 0, "ab 01 0102 03 0405"},
		{decode_attribute, 8, 8, BYTES(3, 0, U16(2), U16(1), U16(1), 9, 'a', 'b', 1, 2), 0, 0,
		 "ab 00 01 02 "},
		{decode_attribute, 8, 8, BYTES(3, 0, U16(2), U16(1), U16(3), 9, 'a', 0, 1, 2), 0, 0,
		 "a 00 01 ! !"},
		{decode_attribute, 8, 8, BYTES(3, 0, U16(3), U16(1), U16(3), 9, 'a', 0), WHOLE, -EUCLEAN,
		 "attribute message: truncated"},
		{decode_attribute, 8, 8, BYTES(0, 0, U16(2), U16(1), U16(1), 'a', 0, 1, 2), 0, -EUCLEAN,
		 "attribute message: version 0"},
		{decode_attribute, 8, 8, BYTES(4, 0, U16(2), U16(1), U16(1), 9, 'a', 0, 1, 2), 0, -EUCLEAN,
		 "attribute message: version 4"},
	};
	uint8_t head[H5_ATTRIBUTE_HEAD + 1] = {0};

	CHECK(examples);
	h5_attribute_head_encode(head, 300, 400, 500);
	ck_assert_mem_eq(head, ((const uint8_t[]){3, 0, U16(300), U16(400), U16(500), 1, 0}), 10);
}
END_TEST

/* ---- filters ---- */

static int print_pipeline(struct h5_buf *out, const struct h5_pipeline *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		const struct h5_filter_info *f = &p->filters[i];

		h5_buf_printf(out, "%u%s%s%s", f->id, f->optional ? "?" : "", f->name ? " " : "",
			      f->name ? f->name : "");
		for (unsigned k = 0; k < f->count; k++)
			h5_buf_printf(out, " %u", f->values[k]);
		h5_buf_printf(out, "; ");
	}
	return 0;
}

static int decode_pipeline(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_pipeline p;
	int rc = h5_pipeline_decode(r, &p);

	if (!rc)
		print_pipeline(out, &p);
	h5_pipeline_release(&p);
	return rc;
}

static int decode_sections(struct h5_reader *r, bool early, struct h5_buf *out)
{
	struct h5_pipeline pipelines[2];
	int rc = h5_section_pipelines_decode(r, early, 2, pipelines);

	for (unsigned i = 0; i < 2 && !rc; i++) {
		h5_buf_printf(out, "%u: ", i);
		print_pipeline(out, &pipelines[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		h5_pipeline_release(&pipelines[i]);
	return rc;
}

static int decode_sections_early(struct h5_reader *r, struct h5_buf *out)
{
	return decode_sections(r, true, out);
}

static int decode_sections_late(struct h5_reader *r, struct h5_buf *out)
{
	return decode_sections(r, false, out);
}

#define FILTER U16(1), U16(0), U16(1), U32(6)
#define FOUR   1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0

START_TEST(filters)
{
	const struct example examples[] = {
		{decode_pipeline, 8, 8,
		 BYTES(1, 3, 9, 9, 9, 9, 9, 9, U16(1), U16(3), U16(3), U16(0), 'a', 'b', 0, 0, 0, 0, 0, 0,
		       U16(2), U16(0), U16(2), U16(1), U32(7), U32(9), U16(300), U16(0), U16(0), U16(2),
		       U32(8), U32(9)),
		 WHOLE, 0, "1? ab; 2 7; 300 8 9; "},
		{decode_pipeline, 8, 8,
		 BYTES(2, 2, U16(255), U16(1), U16(1), U32(7), U16(256), U16(3), U16(0), U16(1), 'a', 'b', 0,
		       U32(8)),
		 WHOLE, 0, "255? 7; 256 ab 8; "},
		{decode_pipeline, 8, 8, BYTES(2, 32, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR), WHOLE,
		 0,
		 "1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; "
		 "1; 1; "},
		{decode_pipeline, 8, 8, BYTES(2, 33, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR), 0,
		 -EUCLEAN, "filter pipeline: 33 filters"},
		{decode_pipeline, 8, 8, BYTES(0, 0), 0, -ENOTSUP,
		 "filter pipeline: version 0 is not supported"},
		{decode_pipeline, 8, 8, BYTES(3, 0), 0, -ENOTSUP,
		 "filter pipeline: version 3 is not supported"},
		{decode_sections_late, 8, 8,
		 BYTES(1, 2, 1, 1, U16(10), FILTER, 0, 2, U16(20), FILTER, FILTER), WHOLE, 0,
		 "0: 1 6; 1 6; 1: 1 6; "},
		{decode_sections_late, 8, 8, BYTES(1, 0), WHOLE, 0, "0: 1: "},
		{decode_sections_early, 8, 8, BYTES(0, 1, 1, 1, U16(10), FILTER), WHOLE, 0, "0: 1: 1 6; "},
		{decode_sections_early, 8, 8, BYTES(3, 1, 1, 1, U16(10), FILTER), WHOLE, 0, "0: 1: 1 6; "},
		{decode_sections_early, 8, 8, BYTES(1, 1, 1, 1, U16(10), FILTER), 0, -ENOTSUP,
		 "filter pipeline: version 1 is not supported for structured chunks"},
		{decode_sections_late, 8, 8, BYTES(0, 1, 1, 1, U16(10), FILTER), 0, -ENOTSUP,
		 "filter pipeline: version 0 is not supported for structured chunks"},
		{decode_sections_late, 8, 8, BYTES(2, 1, 1, 1, U16(10), FILTER), 0, -ENOTSUP,
		 "filter pipeline: version 2 is not supported for structured chunks"},
		{decode_sections_late, 8, 8, BYTES(1, 1, 2, 1, U16(10), FILTER), 0, -EUCLEAN,
		 "filter pipeline: 1 filters for section 2"},
		{decode_sections_late, 8, 8, BYTES(1, 2, 1, 1, U16(10), FILTER, 1, 1, U16(10), FILTER), 0,
		 -EUCLEAN, "filter pipeline: 1 filters for section 1"},
		{decode_sections_late, 8, 8,
		 BYTES(1, 1, 0, 33, U16(198), FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR), 0,
		 -EUCLEAN, "filter pipeline: 33 filters for section 0"},
		{decode_sections_late, 8, 8, BYTES(1, 1, 0, 1, U16(11), FILTER, 0), 0, -EUCLEAN,
		 "filter pipeline: more bytes than filters for section 0"},
		{decode_sections_late, 8, 8, BYTES(1, 1, 0, 1, U16(9), FILTER), 0, -EUCLEAN,
		 "filter pipeline: truncated"},
	};

	CHECK(examples);
}
END_TEST

UNIT_MAIN("formats", shared_messages, symbol_tables, object_headers, object_headers_written, superblocks,
	  free_space, free_space_written, cache_images, small_messages, links, links_of_any_length,
	  copies_of_links, attributes, filters)

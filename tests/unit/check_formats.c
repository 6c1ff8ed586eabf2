/* Shared messages, object headers, filter pipelines, virtual mappings and small messages, byte by byte, by
 * the tables of the specification; and what is written where there is too little room. */
#include "examples.h"
#include "format/btree2.h"
#include "format/fractal_heap.h"
#include "format/header_messages.h"
#include "format/named_message.h"
#include "format/object_header.h"
#include "format/pipeline.h"
#include "format/shared_message.h"
#include "format/symbol_table.h"
#include "format/virtual_mapping.h"

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

/* ---- virtual datasets ---- */

static int decode_mappings(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_virtual_mapping m;
	struct h5_virtual_block block;
	int rc = h5_virtual_block_open(r, &block);

	if (rc)
		return rc;
	while ((rc = h5_virtual_block_next(&block, &m)) > 0) {
		h5_buf_printf(out, "%s %s %u %u; ", m.file, m.dataset, m.source.kind, m.virtual.kind);
		h5_virtual_mapping_release(&m);
		h5_virtual_mapping_release(&m);
	}
	h5_virtual_block_release(&block);
	h5_virtual_block_release(&block);
	return rc;
}

/* Selections of all and of nothing. */
#define ALL  U32(3), U32(1), U64(0)
#define NONE U32(0), U32(1), U64(0)

START_TEST(virtual_mappings)
{
	const struct example examples[] = {
		{decode_mappings, 8, 4, BYTES(0, U32(0), SUM), SUMMED, 0, ""},
		{decode_mappings, 8, 4, BYTES(0, U32(1), 0, 0, ALL, NONE, SUM), SUMMED, 0, "  3 0; "},
		{decode_mappings, 8, 4,
		 BYTES(0, U32(2), 'f', 0, 'd', 0, ALL, NONE, '.', 0, 'e', 0, NONE, ALL, SUM), SUMMED, 0,
		 "f d 3 0; . e 0 3; "},
		{decode_mappings, 8, 2,
		 BYTES(1, U16(4), 0, 'f', 0, 'd', 0, ALL, ALL, 1, U16(0), 'e', 0, ALL, ALL, 3, U16(1), U16(0),
		       ALL, ALL, 6, U16(1), ALL, ALL, SUM),
		 SUMMED, 0, "f d 3 3; f e 3 3; f d 3 3; . e 3 3; "},
		{decode_mappings, 8, 4, BYTES(2, U32(0), SUM), SUMMED, -ENOTSUP,
		 "virtual dataset mappings: version 2 is not supported"},
		/* A mapping has 34 bytes at least. */
		{decode_mappings, 8, 4,
		 BYTES(0, U32(2), 0, 0, ALL, NONE, 0, 0, ALL, U64(0), U32(0), 0, 0, 0, SUM), SUMMED, -EUCLEAN,
		 "virtual dataset mappings: more of them than bytes"},
		{decode_mappings, 8, 4, BYTES(0, U32(1), 0, 0, ALL, NONE, 0, SUM), SUMMED, -EUCLEAN,
		 "  3 0; virtual dataset mappings: bytes after the last"},
		{decode_mappings, 8, 4, BYTES(1, U32(1), 8, 0, 0, ALL, NONE, SUM), SUMMED, -ENOTSUP,
		 "virtual dataset mappings: unknown flags 0x08"},
		{decode_mappings, 8, 2, BYTES(1, U16(1), 1, U16(0), 0, ALL, NONE, SUM), SUMMED, -EUCLEAN,
		 "virtual dataset mappings: a name shared with no earlier one"},
		{decode_mappings, 8, 2, BYTES(1, U16(1), 2, 0, U16(0), ALL, NONE, SUM), SUMMED, -EUCLEAN,
		 "virtual dataset mappings: a name shared with no earlier one"},
		{decode_mappings, 8, 4, BYTES(0, U32(0), SUM), 0, -EUCLEAN,
		 "virtual dataset mappings: wrong checksum"},
		{decode_mappings, 8, 4, BYTES(1, 2, 3), 0, -EUCLEAN, "virtual dataset mappings: truncated"},
		{decode_mappings, 8, 4, BYTES(0, 0, 0, 0, SUM), SUMMED, -EUCLEAN,
		 "virtual dataset mappings: truncated"},
	};

	CHECK(examples);
}
END_TEST

/* ---- too little room ---- */

static int write_symbol_table(struct h5_writer *w)
{
	return h5_symbol_table_encode(w, &(struct h5_symbol_table){1, 2});
}

static int write_local_heap(struct h5_writer *w)
{
	return h5_local_heap_encode(w, &(struct h5_local_heap_header){1, 2, 3});
}

static int write_local_free(struct h5_writer *w)
{
	return h5_local_heap_free_encode(w, &(struct h5_local_heap_free){1, 2});
}

static int write_table_message(struct h5_writer *w)
{
	return h5_shared_table_message_encode(w, &(struct h5_shared_table_message){1, 2});
}

static const struct h5_named_record named = {.id = (const uint8_t *)"abcdefgh", .id_size = 8};

static int write_link_record(struct h5_writer *w)
{
	return h5_link_record_encode(w, &named);
}

static int write_link_order(struct h5_writer *w)
{
	return h5_link_order_record_encode(w, &named);
}

static int write_attribute_record(struct h5_writer *w)
{
	return h5_attribute_record_encode(w, &named);
}

static int write_attribute_order(struct h5_writer *w)
{
	return h5_attribute_order_record_encode(w, &named);
}

static int write_link(struct h5_writer *w)
{
	return h5_link_encode(w, &(struct h5_link){.name = "a", .name_size = 1, .address = 3});
}

static int write_tree(struct h5_writer *w)
{
	return h5_btree2_header_encode(w, &(struct h5_btree2_header){.root = 3});
}

static int write_heap(struct h5_writer *w)
{
	return h5_fractal_heap_encode(w, &(struct h5_fractal_heap){.root = 3});
}

static int write_indirect(struct h5_writer *w)
{
	const struct h5_fractal_heap_entry entries[2] = {{.address = 3}, {.address = 4}};

	return h5_fractal_heap_indirect_encode(w, &(struct h5_fractal_heap){.width = 2, .offset_size = 4}, 5,
					       6, 1, entries);
}

static int write_id(struct h5_writer *w)
{
	return h5_fractal_heap_id_encode(
		w, &(struct h5_fractal_heap){.id_size = 8, .offset_size = 4, .length_size = 2},
		&(struct h5_fractal_heap_id){.offset = 3, .size = 4});
}

static int write_node(struct h5_writer *w)
{
	struct h5_btree2_header h = {
		.node_size = 64, .record_size = 1, .split_percent = 100, .merge_percent = 40};
	const struct h5_btree2_node node = {.count = 2, .records = (uint8_t[]){1, 2}};

	ck_assert_int_eq(h5_btree2_header_compute(&h, 500, 8), 0);
	return h5_btree2_node_encode(w, &h, &node);
}

/* Exactly the bytes that they have, or it is an error, and nothing behind them changes. */
START_TEST(too_little_room)
{
	static const struct {
		int (*write)(struct h5_writer *w);
		size_t size; /* with offsets and lengths of 4 bytes */
	} writers[] = {
		{write_symbol_table, 8},
		{write_local_heap, 20},
		{write_local_free, 8},
		{write_table_message, 6},
		{write_link_record, 12},
		{write_link_order, 16},
		{write_attribute_record, 17},
		{write_attribute_order, 13},
		{write_link, 8},
		{write_tree, 30},
		{write_heap, 86},
		{write_indirect, 25},
		{write_id, 8},
		{write_node, 12},
	};
	uint8_t room[128];

	for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
		for (size_t n = 0; n <= writers[i].size; n++) {
			struct h5_writer w = begin(room, sizeof room, 4, 4);
			int rc;

			w.end = room + n;
			rc = writers[i].write(&w);
			ck_assert_msg(rc == (n < writers[i].size ? -EOVERFLOW : 0), "%zu: %d with %zu bytes",
				      i, rc, n);
			for (size_t k = n; k < sizeof room; k++)
				ck_assert_uint_eq(room[k], 0xaa);
		}
}
END_TEST

UNIT_MAIN("formats", shared_messages, object_headers, object_headers_written, small_messages, filters,
	  virtual_mappings, too_little_room)

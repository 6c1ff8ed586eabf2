/* Links, attributes and symbol tables, byte by byte, by the tables of the specification. */
#include "examples.h"
#include "format/named_message.h"
#include "format/symbol_table.h"

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
	/* There is room for all fields that any form has, and for nothing else: version, flags, type, order
	 * of creation, character set, the length of the name, address, the length of the target, the version
	 * of an external one, and the ends of its two texts. */
	ck_assert_uint_eq(h5_link_room(&(struct h5_link){0}), 1 + 1 + 1 + 8 + 1 + 8 + 8 + 2 + 1 + 2);
	ck_assert_uint_eq(
		h5_link_room(&(struct h5_link){.name_size = 100, .target_size = 20, .file_size = 3}),
		33 + 100 + 20 + 3);
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
	struct h5_link copy, renamed;

	ck_assert_int_eq(h5_link_copy(&link, &copy), 0);
	ck_assert(copy.type == H5_LINK_EXTERNAL && copy.has_order && copy.order == 5);
	ck_assert(copy.name_size == 3 && copy.target_size == 4 && copy.file_size == 2);
	ck_assert(copy.name == copy.owned && copy.target == copy.name + 3 && copy.file == copy.target + 4);
	ck_assert_mem_eq(copy.owned, "abcdefghi", 9);
	renamed = h5_link_renamed(&copy, "jk", 2);
	ck_assert(renamed.name_size == 2 && renamed.target == copy.target && renamed.file == copy.file);
	ck_assert_str_eq(renamed.name, "jk");
	ck_assert(renamed.type == H5_LINK_EXTERNAL && renamed.order == 5);
	h5_link_release(&renamed); /* these texts are not its own */
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

UNIT_MAIN("link formats", symbol_tables, links, links_of_any_length, copies_of_links, attributes)

/* Superblocks, free space, images of a cache, and histories, byte by byte, by the tables of the
 * specification. */
#include "base/fletcher32.h"
#include "examples.h"
#include "format/cache_image.h"
#include "format/free_space.h"
#include "format/onion.h"
#include "format/superblock.h"

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
		{decode_superblock, 8, 8, BYTES(SIGNATURE, 2), 0, -EUCLEAN, "superblock: truncated"},
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

/* The encoders write as many bytes as they said, and these decode to the same sections. Sections of one size
 * form a set. */
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

/* ---- histories ---- */

/* The last four bytes become Fletcher's sum of those before, as the reader has only them. */
static struct h5_reader fletchered(uint8_t *copy, const struct h5_reader *r)
{
	size_t n = h5_reader_left(r);

	memcpy(copy, r->begin, n);
	if (n >= 4)
		h5_uint_to(copy + n - 4, h5_fletcher32(copy, n - 4), 4);
	return h5_reader_init(copy, n, r->address, 8, 8);
}

static int decode_history_header(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_onion_header h;
	uint8_t copy[64];
	struct h5_reader sound = fletchered(copy, r);
	int rc = h5_onion_header_decode(&sound, &h);

	if (!rc)
		h5_buf_printf(out, "%d %ju %ju %ju", h.is_written, (uintmax_t)h.origin_end,
			      (uintmax_t)h.history, (uintmax_t)h.history_size);
	return rc;
}

static int decode_unsound_header(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_onion_header h;

	(void)out;
	return h5_onion_header_decode(r, &h);
}

static int decode_history(struct h5_reader *r, struct h5_buf *out)
{
	uint64_t revisions;
	int rc = h5_onion_history_decode(r, 60, &revisions);

	if (!rc)
		h5_buf_printf(out, "%ju", (uintmax_t)revisions);
	return rc;
}

static int decode_place(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_onion_place p;
	uint8_t copy[64];
	struct h5_reader sound = fletchered(copy, r);
	int rc = h5_onion_place_decode(&sound, &p);

	if (!rc)
		h5_buf_printf(out, "%ju %ju", (uintmax_t)p.offset, (uintmax_t)p.size);
	return rc;
}

static int decode_page(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_onion_page p;
	uint8_t copy[64];
	struct h5_reader sound = fletchered(copy, r);
	int rc = h5_onion_page_decode(&sound, 512, &p);

	if (!rc)
		h5_buf_printf(out, "%ju %ju", (uintmax_t)p.address, (uintmax_t)p.offset);
	return rc;
}

static int decode_revision(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_onion_record record;
	int rc = h5_onion_record_decode(r, 64 + 2 * 20 + 5 + 4, &record);

	if (!rc)
		h5_buf_printf(out, "%s %ju %u %ju", record.time, (uintmax_t)record.end, record.page_size,
			      (uintmax_t)record.pages);
	return rc;
}

#define REVISION(version, page, pages, comment)                                                              \
	'O', 'R', 'R', 'S', version, 0, 0, 0, U64(3), U64(2), '2', '0', '2', '4', '0', '2', '2', '9', 'T',   \
		'1', '2', '3', '4', '5', '6', 'Z', U64(9000), U32(page), U64(pages), U32(comment)

START_TEST(histories)
{
	const struct example examples[] = {
		{decode_history_header, 8, 8,
		 BYTES('O', 'H', 'D', 'H', 1, 1, 9, 9, U32(512), U64(600), U64(700), U64(800), SUM), 0, 0,
		 "1 600 700 800"},
		{decode_history_header, 8, 8,
		 BYTES('O', 'H', 'D', 'H', 1, 2, 0, 0, U32(512), U64(600), U64(700), U64(800), SUM), 0, 0,
		 "0 600 700 800"},
		{decode_history_header, 8, 8,
		 BYTES('O', 'H', 'D', 'H', 2, 0, 0, 0, U32(512), U64(600), U64(700), U64(800), SUM), 0,
		 -ENOTSUP, "header of an onion file: version 2"},
		{decode_history_header, 8, 8,
		 BYTES('O', 'H', 'D', 'H', 0, 0, 0, 0, U32(512), U64(600), U64(700), U64(800), SUM), 0,
		 -ENOTSUP, "header of an onion file: version 0"},
		{decode_unsound_header, 8, 8,
		 BYTES('O', 'H', 'D', 'H', 1, 0, 0, 0, U32(512), U64(600), U64(700), U64(800), SUM), 0,
		 -EUCLEAN, "header of an onion file: wrong checksum"},
		{decode_unsound_header, 8, 8,
		 BYTES('O', 'H', 'D', 'H', 1, 0, 0, 0, U32(512), U64(600), U64(700), U64(800)), 0, -EUCLEAN,
		 "header of an onion file: truncated"},
		{decode_unsound_header, 8, 8, BYTES('O', 'H', 'D', 'H'), 0, -EUCLEAN,
		 "header of an onion file: truncated"},
		{decode_unsound_header, 8, 8, BYTES('O', 'H', 'D', 'I', 1), 0, -EINVAL,
		 "no history of an onion file"},
		{decode_history, 8, 8, BYTES('O', 'W', 'H', 'S', 1, 9, 9, 9, U64(2)), WHOLE, 0, "2"},
		{decode_history, 8, 8, BYTES('O', 'W', 'H', 'S', 1, 9, 9, 9, U64(3)), 0, -EUCLEAN,
		 "history: 3 revisions in 60 bytes"},
		{decode_history, 8, 8, BYTES('O', 'W', 'H', 'S', 2, 9, 9, 9, U64(2)), 0, -ENOTSUP,
		 "history: version 2"},
		{decode_history, 8, 8, BYTES('O', 'W', 'H', 'T', 1, 9, 9, 9, U64(2)), 0, -EUCLEAN,
		 "history: no signature"},
		/* 20 times this number is 40 in 64 bits; the largest such product passes 64 bits with the
		   rest. */
		{decode_history, 8, 8, BYTES('O', 'W', 'H', 'S', 1, 9, 9, 9, 2, 0, 0, 0, 0, 0, 0, 0x40), 0,
		 -EUCLEAN, "history: 4611686018427387906 revisions in 60 bytes"},
		{decode_place, 8, 8, BYTES(U64(700), U64(800), SUM), WHOLE, 0, "700 800"},
		{decode_page, 8, 8, BYTES(U64(1024), U64(800), SUM), WHOLE, 0, "1024 800"},
		{decode_page, 8, 8, BYTES(U64(1025), U64(800), SUM), 0, -EUCLEAN,
		 "index of a revision: a page begins at 1025"},
		{decode_page, 8, 8, BYTES(U64(1280), U64(800), SUM), 0, -EUCLEAN,
		 "index of a revision: a page begins at 1280"},
		{decode_revision, 8, 8, BYTES(REVISION(1, 512, 2, 5)), WHOLE, 0,
		 "20240229T123456Z 9000 512 2"},
		{decode_revision, 8, 8, BYTES(REVISION(1, 1, 2, 5)), 0, 0, "20240229T123456Z 9000 1 2"},
		{decode_revision, 8, 8, BYTES(REVISION(1, 512, 3, 5)), 0, -EUCLEAN,
		 "record of a revision: 3 pages in 113 bytes"},
		{decode_revision, 8, 8, BYTES(REVISION(1, 512, 2, 4)), 0, -EUCLEAN,
		 "record of a revision: 2 pages in 113 bytes"},
		{decode_revision, 8, 8, BYTES(REVISION(1, 0, 2, 5)), 0, -EUCLEAN,
		 "record of a revision: pages of 0 bytes"},
		{decode_revision, 8, 8, BYTES(REVISION(1, 513, 2, 5)), 0, -EUCLEAN,
		 "record of a revision: pages of 513 bytes"},
		{decode_revision, 8, 8, BYTES(REVISION(2, 512, 2, 5)), 0, -ENOTSUP,
		 "record of a revision: version 2"},
		{decode_revision, 8, 8, BYTES('O', 'R', 'R', 'T', 1), 0, -EUCLEAN,
		 "record of a revision: no signature"},
	};

	CHECK(examples);
}
END_TEST

UNIT_MAIN("file formats", superblocks, free_space, free_space_written, cache_images, histories)

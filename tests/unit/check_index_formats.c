/* Indexes of chunks, byte by byte, by the tables of the specification: fixed and extensible arrays, B-trees.
 */
#include "examples.h"
#include "format/btree1.h"
#include "format/btree2.h"
#include "format/extensible_array.h"
#include "format/fixed_array.h"

/* ---- fixed arrays ---- */

static int decode_fixed(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_fixed_array_header h;
	int rc = h5_fixed_array_header_decode(r, &h);

	if (!rc)
		h5_buf_printf(out, "%u %u %u %u %ju at %jd: %ju pages, %ju of %ju bytes", h.version, h.client,
			      h.element_size, h.page_bits, (uintmax_t)h.elements, (intmax_t)h.data_block,
			      (uintmax_t)h.pages, (uintmax_t)h.block_size, (uintmax_t)h.block_space);
	return rc;
}

static int decode_fixed_block(struct h5_reader *r, unsigned client, uint64_t elements, struct h5_buf *out)
{
	struct h5_fixed_array_block block;
	struct h5_fixed_array_header h;
	int rc;

	ck_assert_int_eq(h5_fixed_array_header_init(&h, client, 2, 1, elements, r->size_of_offsets), 0);
	h.address = 500;
	rc = h5_fixed_array_block_decode(r, &h, &block);
	if (!rc && block.bitmap)
		print_bytes(out, "pages ", block.bitmap, 1);
	if (!rc && block.elements)
		print_bytes(out, "elements ", block.elements, 2 * elements);
	return rc;
}

static int decode_fixed_elements(struct h5_reader *r, struct h5_buf *out)
{
	return decode_fixed_block(r, 1, 2, out);
}

static int decode_fixed_pages(struct h5_reader *r, struct h5_buf *out)
{
	return decode_fixed_block(r, 2, 3, out);
}

START_TEST(fixed_arrays)
{
	const struct example examples[] = {
		{decode_fixed, 2, 4, BYTES('F', 'A', 'H', 'D', 0, 1, 12, 10, U32(1024), U16(700), SUM),
		 WHOLE | SUMMED, 0, "0 1 12 10 1024 at 700: 0 pages, 12300 of 12300 bytes"},
		{decode_fixed, 8, 8, BYTES('F', 'A', 'H', 'D', 1, 2, 8, 3, U64(64), NONE64, SUM),
		 WHOLE | SUMMED, 0, "1 2 8 3 64 at -1: 8 pages, 19 of 563 bytes"},
		{decode_fixed, 8, 8, BYTES('F', 'A', 'H', 'D', 0, 0, 8, 3, U64(65), NONE64, SUM),
		 WHOLE | SUMMED, 0, "0 0 8 3 65 at -1: 9 pages, 20 of 576 bytes"},
		{decode_fixed, 8, 8, BYTES('F', 'A', 'H', 'D', 1, 1, 8, 3, U64(65), NONE64, SUM), SUMMED,
		 -ENOTSUP, "fixed array header: version 1 is not supported"},
		{decode_fixed, 8, 8, BYTES('F', 'A', 'H', 'D', 2, 2, 8, 3, U64(65), NONE64, SUM), SUMMED,
		 -ENOTSUP, "fixed array header: version 2 is not supported"},
		/* Its 576 bytes end at 2^64, which is no address. */
		{decode_fixed, 8, 8,
		 BYTES('F', 'A', 'H', 'D', 0, 0, 8, 3, U64(65), 0xc0, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff,
		       0xff, SUM),
		 SUMMED, -EUCLEAN, "fixed array header: the data block reaches beyond 2^64 bytes"},
		{decode_fixed, 8, 8, BYTES('F', 'A', 'H', 'd', 0, 0, 8, 3, U64(65), NONE64, SUM), SUMMED,
		 -EUCLEAN, "fixed array header: no signature"},
		{decode_fixed_elements, 2, 8, BYTES('F', 'A', 'D', 'B', 0, 1, U16(500), 1, 2, 3, 4, SUM),
		 WHOLE | SUMMED, 0, "elements 01020304"},
		{decode_fixed_elements, 2, 8, BYTES('F', 'A', 'D', 'B', 0, 1, U16(501), 1, 2, 3, 4, SUM),
		 SUMMED, -EUCLEAN, "fixed array data block: it belongs to another header"},
		{decode_fixed_elements, 2, 8, BYTES('F', 'A', 'D', 'B', 0, 0, U16(500), 1, 2, 3, 4, SUM),
		 SUMMED, -EUCLEAN, "fixed array data block: it belongs to another header"},
		{decode_fixed_elements, 2, 8, BYTES('F', 'A', 'D', 'B', 1, 1, U16(500), 1, 2, 3, 4, SUM),
		 SUMMED, -ENOTSUP, "fixed array data block: version 1 is not supported"},
		{decode_fixed_pages, 2, 8, BYTES('F', 'A', 'D', 'B', 1, 2, U16(500), 0xc0, SUM),
		 WHOLE | SUMMED, 0, "pages c0"},
		{decode_fixed_pages, 2, 8, BYTES('F', 'A', 'D', 'B', 2, 2, U16(500), 0xc0, SUM), SUMMED,
		 -ENOTSUP, "fixed array data block: version 2 is not supported"},
	};
	const uint64_t half = UINT64_C(1) << 63;
	static const uint8_t bits[] = {0x80, 0x40, 0x20, 0x10, 8, 4, 2, 1};
	struct h5_fixed_array_header h;
	uint8_t bitmap[3];
	uint64_t address, size;

	CHECK(examples);
	/* A page has so many elements, and the last one the rest. */
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 8, 10, 2050, 8), 0);
	h.data_block = 7000;
	for (uint64_t page = 0; page < 3; page++) {
		h5_fixed_array_page(&h, page, &address, &size);
		ck_assert_uint_eq(address, 7000 + h.block_size + page * (1024 * 8 + 4));
		ck_assert_uint_eq(size, page < 2 ? 1024 * 8 : 2 * 8);
	}
	ck_assert_uint_eq(address + size + 4, 7000 + h.block_space);
	for (unsigned page = 0; page < 24; page++) {
		const struct h5_fixed_array_block block = {.bitmap = bitmap};

		memset(bitmap, 0, sizeof bitmap);
		h5_fixed_array_set_page(bitmap, page);
		for (unsigned i = 0; i < 24; i++) {
			ck_assert_uint_eq(bitmap[i / 8], i / 8 == page / 8 ? bits[page % 8] : 0);
			ck_assert(h5_fixed_array_has_page(&block, i) == (i == page));
		}
	}
	/* All has to fit 64 bits. */
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 8, 63, 5, 8), 0);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 8, 64, 5, 8), -EUCLEAN);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 0, 10, 5, 8), -EUCLEAN);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 8, 10, half / 4, 8), -EUCLEAN);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 1, 0, half / 2, 8), -EUCLEAN);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 2, 63, half - 1, 8), -EUCLEAN);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 2, 63, half - 10, 8), 0);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 1, 63, UINT64_MAX - 7, 8), -EUCLEAN);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 1, 63, UINT64_MAX - 26, 8), -EUCLEAN);
	ck_assert_int_eq(h5_fixed_array_header_init(&h, 0, 1, 63, UINT64_MAX - 27, 8), 0);
	ck_assert(h.pages == 2 && h.block_size == 19 && h.block_space == UINT64_MAX);
}
END_TEST

/* ---- extensible arrays ---- */

/* Index elements, and two data blocks of super blocks that the index block has itself. */
static const struct h5_extensible_array_parameters small = {1, 2, 3, 1, 2, 2, 2},
						   paged = {2, 1, 4, 0, 2, 1, 1};

static int decode_extensible(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_extensible_array_header h;
	int rc = h5_extensible_array_header_decode(r, &h);

	if (!rc)
		h5_buf_printf(out, "%u %u %u %u %u %u %u %ju, %ju %ju %ju %ju %ju %ju at %jd", h.version,
			      h.client, h.element_size, h.max_bits, h.index_elements, h.min_elements,
			      h.min_pointers, (uintmax_t)h.page_elements, (uintmax_t)h.super_count,
			      (uintmax_t)h.super_bytes, (uintmax_t)h.data_count, (uintmax_t)h.data_bytes,
			      (uintmax_t)h.max_index, (uintmax_t)h.elements, (intmax_t)h.index_block);
	return rc;
}

static int decode_index_block(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_extensible_array_index_block block;
	struct h5_extensible_array_header h;
	int rc;

	ck_assert_int_eq(h5_extensible_array_header_init(&h, 500, &small, r->size_of_offsets), 0);
	rc = h5_extensible_array_index_block_decode(r, &h, &block);
	if (!rc) {
		print_bytes(out, "", block.elements, 2);
		print_bytes(out, " ", block.data_blocks, 2 * 2);
		print_bytes(out, " ", block.super_blocks, 2);
	}
	return rc;
}

static int decode_super(struct h5_reader *r, const struct h5_extensible_array_parameters *p, unsigned number,
			struct h5_buf *out)
{
	struct h5_extensible_array_super_block block;
	struct h5_extensible_array_super super;
	struct h5_extensible_array_header h;
	int rc;

	ck_assert_int_eq(h5_extensible_array_header_init(&h, 500, p, r->size_of_offsets), 0);
	h5_extensible_array_super(&h, number, r->size_of_offsets, &super);
	rc = h5_extensible_array_super_block_decode(r, &h, &super, &block);
	if (!rc) {
		h5_buf_printf(out, "%ju", (uintmax_t)block.block_offset);
		if (block.bitmap)
			print_bytes(out, " pages ", block.bitmap, (size_t)super.bitmap_size);
		print_bytes(out, " ", block.data_blocks, (size_t)super.data_blocks * r->size_of_offsets);
	}
	return rc;
}

static int decode_small_super(struct h5_reader *r, struct h5_buf *out)
{
	return decode_super(r, &small, 2, out);
}

static int decode_paged_super(struct h5_reader *r, struct h5_buf *out)
{
	return decode_super(r, &paged, 2, out);
}

static int decode_data(struct h5_reader *r, const struct h5_extensible_array_parameters *p, unsigned number,
		       struct h5_buf *out)
{
	struct h5_extensible_array_data_block block;
	struct h5_extensible_array_super super;
	struct h5_extensible_array_header h;
	int rc;

	ck_assert_int_eq(h5_extensible_array_header_init(&h, 500, p, r->size_of_offsets), 0);
	h5_extensible_array_super(&h, number, r->size_of_offsets, &super);
	rc = h5_extensible_array_data_block_decode(r, &h, &super, &block);
	if (!rc)
		h5_buf_printf(out, "%ju", (uintmax_t)block.block_offset);
	if (!rc && block.elements)
		print_bytes(out, " ", block.elements, (size_t)super.elements * p->element_size);
	return rc;
}

static int decode_small_data(struct h5_reader *r, struct h5_buf *out)
{
	return decode_data(r, &small, 0, out);
}

static int decode_paged_data(struct h5_reader *r, struct h5_buf *out)
{
	return decode_data(r, &paged, 2, out);
}

START_TEST(extensible_arrays)
{
	const struct example examples[] = {
		{decode_extensible, 2, 4,
		 BYTES('E', 'A', 'H', 'D', 0, 1, 12, 32, 4, 16, 4, 10, U32(1), U32(2), U32(3), U32(4), U32(5),
		       U32(6), U16(700), SUM),
		 WHOLE | SUMMED, 0, "0 1 12 32 4 16 4 1024, 1 2 3 4 5 6 at 700"},
		{decode_extensible, 2, 2,
		 BYTES('E', 'A', 'H', 'D', 1, 1, 12, 32, 4, 16, 4, 10, U16(1), U16(2), U16(3), U16(4), U16(5),
		       U16(6), U16(700), SUM),
		 SUMMED, -ENOTSUP, "extensible array header: version 1 is not supported"},
		{decode_extensible, 2, 2,
		 BYTES('E', 'A', 'H', 'D', 1, 2, 12, 32, 4, 16, 4, 10, U16(1), U16(2), U16(3), U16(4), U16(5),
		       U16(6), NONE16, SUM),
		 WHOLE | SUMMED, 0, "1 2 12 32 4 16 4 1024, 1 2 3 4 5 6 at -1"},
		{decode_index_block, 2, 8,
		 BYTES('E', 'A', 'I', 'B', 0, 1, U16(500), 1, 2, 3, 4, 5, 6, 7, 8, SUM), WHOLE | SUMMED, 0,
		 "0102 03040506 0708"},
		{decode_index_block, 2, 8,
		 BYTES('E', 'A', 'I', 'B', 0, 1, U16(501), 1, 2, 3, 4, 5, 6, 7, 8, SUM), SUMMED, -EUCLEAN,
		 "extensible array index block: it belongs to another header"},
		{decode_index_block, 2, 8,
		 BYTES('E', 'A', 'I', 'B', 0, 0, U16(500), 1, 2, 3, 4, 5, 6, 7, 8, SUM), SUMMED, -EUCLEAN,
		 "extensible array index block: it belongs to another header"},
		{decode_index_block, 2, 8,
		 BYTES('E', 'A', 'I', 'B', 1, 1, U16(500), 1, 2, 3, 4, 5, 6, 7, 8, SUM), SUMMED, -ENOTSUP,
		 "extensible array index block: version 1 is not supported"},
		{decode_index_block, 2, 8, BYTES('E', 'A', 'I', 'B', 0), 0, -EUCLEAN,
		 "extensible array index block: truncated"},
		{decode_small_super, 2, 8, BYTES('E', 'A', 'S', 'B', 0, 1, U16(500), 6, 1, 2, 3, 4, SUM),
		 WHOLE | SUMMED, 0, "6 01020304"},
		{decode_small_super, 2, 8, BYTES('E', 'A', 'S', 'B', 0, 1, U16(501), 6, 1, 2, 3, 4, SUM),
		 SUMMED, -EUCLEAN, "extensible array super block: it belongs to another header"},
		{decode_paged_super, 2, 8,
		 BYTES('E', 'A', 'S', 'B', 1, 2, U16(500), 6, 0x80, 0xc0, 1, 2, 3, 4, SUM), WHOLE | SUMMED, 0,
		 "6 pages 80c0 01020304"},
		{decode_small_data, 2, 8, BYTES('E', 'A', 'D', 'B', 0, 1, U16(500), 7, 1, 2, 3, 4, SUM),
		 WHOLE | SUMMED, 0, "7 01020304"},
		{decode_small_data, 2, 8, BYTES('E', 'A', 'D', 'B', 0, 1, U16(501), 7, 1, 2, 3, 4, SUM),
		 SUMMED, -EUCLEAN, "extensible array data block: it belongs to another header"},
		{decode_paged_data, 2, 8, BYTES('E', 'A', 'D', 'B', 0, 2, U16(500), 7, SUM), WHOLE | SUMMED,
		 0, "7"},
	};

	CHECK(examples);
}
END_TEST

static int extensible(struct h5_extensible_array_parameters p)
{
	struct h5_extensible_array_header h;

	return h5_extensible_array_header_init(&h, 500, &p, 8);
}

START_TEST(shapes_of_extensible_arrays)
{
	const struct h5_extensible_array_parameters usual = {0, 8, 32, 4, 16, 4, 10};
	uint64_t element = 0, data_block = 0;
	struct h5_extensible_array_header h;

	ck_assert_int_eq(h5_extensible_array_header_init(&h, 500, &usual, 8), 0);
	ck_assert(h.super_blocks == 29 && h.index_super_blocks == 4 && h.index_data_blocks == 6);
	ck_assert(h.index_super_pointers == 25 && h.offset_size == 4 && h.page_elements == 1024);
	ck_assert_uint_eq(h.index_block_size, 6 + 8 + 4 * 8 + (6 + 25) * 8 + 4);
	ck_assert_uint_eq(h5_extensible_array_header_size(2, 4), 12 + 6 * 4 + 2 + 4);
	for (unsigned i = 0; i < h.super_blocks; i++) {
		const uint64_t blocks = UINT64_C(1) << i / 2, elements = UINT64_C(16) << (i + 1) / 2;
		const uint64_t pages = elements > 1024 ? elements / 1024 : 0;
		const uint64_t bitmap = pages ? blocks * ((pages + 7) / 8) : 0;
		struct h5_extensible_array_super s;

		h5_extensible_array_super(&h, i, 8, &s);
		ck_assert(s.number == i && s.data_blocks == blocks && s.elements == elements);
		ck_assert(s.first_element == element && s.first_data_block == data_block);
		ck_assert(s.pages == pages && s.bitmap_size == bitmap);
		ck_assert_uint_eq(s.block_size, 18 + bitmap + blocks * 8 + 4);
		ck_assert_uint_eq(s.data_block_size, 18 + (pages ? 0 : elements * 8) + 4);
		ck_assert_uint_eq(s.data_block_space, s.data_block_size + pages * (1024 * 8 + 4));
		ck_assert_uint_eq(h5_extensible_array_super_of(&h, element), i);
		element += blocks * elements;
		data_block += blocks;
		ck_assert_uint_eq(h5_extensible_array_super_of(&h, element - 1), i);
	}
	/* Index elements, bits, elements of the smallest data block, pointers of the smallest super block,
	 * pages */
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 0, 32, 4, 16, 4, 10}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 0, 4, 1, 1, 10}), -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 1, 4, 1, 1, 10}), 0);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 63, 4, 16, 4, 10}), 0);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 64, 4, 16, 4, 10}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 4, 4, 16, 1, 10}), 0);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 3, 4, 16, 1, 10}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 32, 4, 0, 4, 10}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 32, 4, 3, 4, 10}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 32, 4, 16, 0, 10}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 32, 4, 16, 6, 10}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 17, 4, 16, 128, 63}), 0);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 16, 4, 16, 128, 63}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 32, 4, 16, 4, 64}),
			 -EUCLEAN);
	/* Data blocks of the index block have no pages. */
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 32, 4, 16, 4, 6}), 0);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 32, 4, 16, 4, 5}),
			 -EUCLEAN);
	ck_assert_int_eq(extensible((struct h5_extensible_array_parameters){0, 8, 32, 4, 16, 1, 0}), 0);
}
END_TEST

START_TEST(extensible_arrays_written)
{
	struct h5_extensible_array_super super;
	struct h5_extensible_array_header h;
	uint8_t room[128], bitmap[4] = {0};
	struct h5_writer w;

	ck_assert_int_eq(h5_extensible_array_header_init(&h, 500, &small, 2), 0);
	w = begin(room, sizeof room, 2, 8);
	h5_extensible_array_index_block_encode(&w, &h);
	check_summed(&w, BYTES('E', 'A', 'I', 'B', 0, 1, U16(500), NONE64));
	h5_extensible_array_super(&h, 2, 2, &super);
	w = begin(room, sizeof room, 2, 8);
	h5_extensible_array_super_block_encode(&w, &h, &super);
	check_summed(&w, BYTES('E', 'A', 'S', 'B', 0, 1, U16(500), 6, 0xff, 0xff, 0xff, 0xff));
	/* Behind the index block's own data blocks, they are counted from the first of the super block. */
	w = begin(room, sizeof room, 2, 8);
	h5_extensible_array_data_block_encode(&w, &h, &super, 1);
	check_summed(&w, BYTES('E', 'A', 'D', 'B', 0, 1, U16(500), 10, NONE64));
	h5_extensible_array_super(&h, 1, 2, &super);
	w = begin(room, sizeof room, 2, 8);
	h5_extensible_array_data_block_encode(&w, &h, &super, 0);
	check_summed(&w, BYTES('E', 'A', 'D', 'B', 0, 1, U16(500), 6, NONE64));
	ck_assert_int_eq(h5_extensible_array_header_init(&h, 500, &paged, 2), 0);
	ck_assert_uint_eq(h.version, 1);
	h5_extensible_array_super(&h, 2, 2, &super);
	w = begin(room, sizeof room, 2, 8);
	h5_extensible_array_super_block_encode(&w, &h, &super);
	check_summed(&w, BYTES('E', 'A', 'S', 'B', 1, 2, U16(500), 6, 0, 0, 0xff, 0xff, 0xff, 0xff));
	for (unsigned bit = 0; bit < 2 * super.pages; bit++) {
		const struct h5_extensible_array_super_block block = {.bitmap = bitmap};

		memset(bitmap, 0, sizeof bitmap);
		h5_extensible_array_set_page(&super, bitmap, bit / super.pages, bit % super.pages);
		ck_assert_uint_eq(bitmap[0], 0x80 >> bit);
		for (unsigned i = 0; i < 2 * super.pages; i++)
			ck_assert(h5_extensible_array_has_page(&super, &block, i / super.pages,
							       i % super.pages) == (i == bit));
	}
	h5_extensible_array_block_adopt(room, &(struct h5_extensible_array_header){.address = 700}, 2);
	ck_assert_mem_eq(room, ((const uint8_t[]){'E', 'A', 'S', 'B', 1, 2, U16(700), 6}), 9);
}
END_TEST

/* ---- B-trees ---- */

static int compute_tree(struct h5_btree2_header *h, uint32_t node_size, uint16_t record_size, uint16_t depth)
{
	memset(h, 0, sizeof *h);
	h->node_size = node_size;
	h->record_size = record_size;
	h->depth = depth;
	h->split_percent = 100;
	h->merge_percent = 40;
	return h5_btree2_header_compute(h, 500, 8);
}

START_TEST(shapes_of_trees)
{
	struct h5_btree2_header h;

	ck_assert_int_eq(compute_tree(&h, 512, 11, 2), 0);
	ck_assert(h.levels[0].max_records == 45 && h.levels[0].split_records == 45 &&
		  h.levels[0].merge_records == 18);
	ck_assert(h.levels[1].max_records == 24 && h.levels[1].merge_records == 9 &&
		  h.levels[1].pointer_size == 9);
	ck_assert(h.levels[2].max_records == 22 && h.levels[2].pointer_size == 11);
	ck_assert(h.levels[1].total_size == 2 && h.levels[2].total_size == 2 && h.count_size == 1);
	ck_assert_uint_eq(h5_btree2_node_size(&h, 0, 45), 10 + 45 * 11);
	ck_assert_uint_eq(h5_btree2_node_size(&h, 0, 46), 0);
	ck_assert_uint_eq(h5_btree2_node_size(&h, 2, 22), 10 + 22 * 11 + 23 * 11);
	ck_assert_uint_eq(h5_btree2_node_size(&h, 2, 23), 0);
	/* 256 records need two bytes for their number. */
	ck_assert_int_eq(compute_tree(&h, 10 + 255, 1, 0), 0);
	ck_assert_uint_eq(h.count_size, 1);
	ck_assert_int_eq(compute_tree(&h, 10 + 256, 1, 0), 0);
	ck_assert_uint_eq(h.count_size, 2);
	ck_assert_int_eq(compute_tree(&h, 11, 1, 0), 0);
	ck_assert_int_eq(compute_tree(&h, 10, 1, 0), -EUCLEAN);
	ck_assert_int_eq(compute_tree(&h, 0, 1, 0), -EUCLEAN);
	ck_assert_int_eq(compute_tree(&h, 512, 0, 0), -EUCLEAN);
	ck_assert_int_eq(compute_tree(&h, 30, 20, 0), 0);
	ck_assert_int_eq(compute_tree(&h, 30, 21, 0), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text,
			 "version 2 B-tree: nodes of 30 bytes have no room for records");
	/* An internal node has a pointer more than records: of 9 bytes here. */
	ck_assert_int_eq(compute_tree(&h, 10 + 9 + 9 + 5, 5, 1), 0);
	ck_assert_uint_eq(h.levels[1].max_records, 1);
	ck_assert_int_eq(compute_tree(&h, 10 + 9 + 9 + 4, 5, 1), -EUCLEAN);
	ck_assert_int_eq(compute_tree(&h, 10 + 9, 5, 1), -EUCLEAN);
	ck_assert_int_eq(compute_tree(&h, 10 + 8, 5, 1), -EUCLEAN);
	/* The records of all must be counted in 64 bits. */
	ck_assert_int_eq(compute_tree(&h, 1 << 20, 8, 3), 0);
	ck_assert_int_eq(compute_tree(&h, 1 << 20, 8, 4), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "version 2 B-tree: depth 4");
	ck_assert_int_eq(compute_tree(&h, 64, 8, H5_BTREE2_DEPTH + 1), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text,
			 "version 2 B-tree: nodes of 64 bytes, records of 8, depth 64");
	ck_assert_uint_eq(h5_btree2_version(11), 0);
	ck_assert_uint_eq(h5_btree2_version(12), 1);
	ck_assert_uint_eq(h5_btree2_header_size(2, 4), 28);
}
END_TEST

static int decode_tree(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_btree2_header h;
	int rc = h5_btree2_header_decode(r, &h);

	if (!rc)
		h5_buf_printf(out, "%u %u %u %u %u %u %u %jd %u %ju", h.version, h.type, h.node_size,
			      h.record_size, h.depth, h.split_percent, h.merge_percent, (intmax_t)h.root,
			      h.root_records, (uintmax_t)h.records);
	return rc;
}

/* Two records of 2 bytes in trees of three levels, in which counts have two bytes. */
static int decode_tree_node(struct h5_reader *r, unsigned type, unsigned level, struct h5_buf *out)
{
	struct h5_btree2_header h = {
		.type = (uint8_t)type, .node_size = 1024, .record_size = 2, .depth = 2, .split_percent = 100};
	struct h5_btree2_node *node;
	int rc = h5_btree2_header_compute(&h, 500, 2);

	ck_assert_int_eq(rc, 0);
	node = h5_btree2_node_new(&h, level, 2);
	rc = h5_btree2_node_decode(r, &h, 2, node);
	if (!rc) {
		ck_assert_uint_eq(node->count, 2);
		print_bytes(out, "", node->records, 4);
	}
	for (unsigned i = 0; i < 3 && level && !rc; i++)
		h5_buf_printf(out, " %ju %ju %ju;", (uintmax_t)node->children[i].address,
			      (uintmax_t)node->children[i].records, (uintmax_t)node->children[i].total);
	free(node);
	return rc;
}

static int decode_leaf(struct h5_reader *r, struct h5_buf *out)
{
	return decode_tree_node(r, 5, 0, out);
}

static int decode_structured_leaf(struct h5_reader *r, struct h5_buf *out)
{
	return decode_tree_node(r, 12, 0, out);
}

static int decode_inner(struct h5_reader *r, struct h5_buf *out)
{
	return decode_tree_node(r, 5, 1, out);
}

static int decode_upper(struct h5_reader *r, struct h5_buf *out)
{
	return decode_tree_node(r, 5, 2, out);
}

static int decode_k(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_btree1_k k;
	int rc = h5_btree1_k_decode(r, &k);

	if (!rc)
		h5_buf_printf(out, "%u %u %u", k.chunk, k.group_internal, k.group_leaf);
	return rc;
}

START_TEST(trees)
{
	const struct example examples[] = {
		{decode_tree, 2, 4,
		 BYTES('B', 'T', 'H', 'D', 0, 5, U32(512), U16(11), U16(1), 98, 40, U16(700), U16(3), U32(50),
		       SUM),
		 WHOLE | SUMMED, 0, "0 5 512 11 1 98 40 700 3 50"},
		{decode_tree, 2, 4,
		 BYTES('B', 'T', 'H', 'D', 1, 12, U32(512), U16(11), U16(0), 98, 40, NONE16, U16(0), U32(0),
		       SUM),
		 WHOLE | SUMMED, 0, "1 12 512 11 0 98 40 -1 0 0"},
		{decode_tree, 2, 4,
		 BYTES('B', 'T', 'H', 'D', 1, 11, U32(512), U16(11), U16(0), 98, 40, NONE16, U16(0), U32(0),
		       SUM),
		 SUMMED, -ENOTSUP, "version 2 B-tree header: version 1 is not supported"},
		{decode_leaf, 2, 4, BYTES('B', 'T', 'L', 'F', 0, 5, 1, 2, 3, 4, SUM), WHOLE | SUMMED, 0,
		 "01020304"},
		{decode_leaf, 2, 4, BYTES('B', 'T', 'L', 'F', 0, 6, 1, 2, 3, 4, SUM), SUMMED, -EUCLEAN,
		 "version 2 B-tree node: type 6, not 5"},
		{decode_leaf, 2, 4, BYTES('B', 'T', 'L', 'F', 1, 5, 1, 2, 3, 4, SUM), SUMMED, -ENOTSUP,
		 "version 2 B-tree node: version 1 is not supported"},
		{decode_structured_leaf, 2, 4, BYTES('B', 'T', 'L', 'F', 1, 12, 1, 2, 3, 4, SUM),
		 WHOLE | SUMMED, 0, "01020304"},
		{decode_structured_leaf, 2, 4, BYTES('B', 'T', 'L', 'F', 2, 12, 1, 2, 3, 4, SUM), SUMMED,
		 -ENOTSUP, "version 2 B-tree node: version 2 is not supported"},
		{decode_leaf, 2, 4, BYTES('B', 'T', 'I', 'N', 0, 5, 1, 2, 3, 4, SUM), SUMMED, -EUCLEAN,
		 "version 2 B-tree node: no signature of level 0"},
		{decode_inner, 2, 4, BYTES('B', 'T', 'L', 'F', 0, 5, 1, 2, 3, 4, SUM), SUMMED, -EUCLEAN,
		 "version 2 B-tree node: no signature of level 1"},
		{decode_inner, 2, 4,
		 BYTES('B', 'T', 'I', 'N', 0, 5, 1, 2, 3, 4, U16(600), U16(7), U16(700), U16(300), U16(800),
		       U16(9), SUM),
		 WHOLE | SUMMED, 0, "01020304 600 7 7; 700 300 300; 800 9 9;"},
		{decode_upper, 2, 4,
		 BYTES('B', 'T', 'I', 'N', 0, 5, 1, 2, 3, 4, U16(600), U16(7), U24(70000), U16(700), U16(300),
		       U24(80000), U16(800), U16(9), U24(9), SUM),
		 WHOLE | SUMMED, 0, "01020304 600 7 70000; 700 300 80000; 800 9 9;"},
		{decode_k, 8, 8, BYTES(0, U16(300), U16(400), U16(500)), WHOLE, 0, "300 400 500"},
		{decode_k, 8, 8, BYTES(1, U16(300), U16(400), U16(500)), WHOLE, -ENOTSUP,
		 "B-tree 'K' values: version 1 is not supported"},
	};
	uint8_t room[16];
	struct h5_writer w = begin(room, sizeof room, 8, 8);

	CHECK(examples);
	h5_btree1_k_encode(&w, &(struct h5_btree1_k){300, 400, 500});
	check_written(&w, BYTES(0, U16(300), U16(400), U16(500)));
	ck_assert_uint_eq(h5_btree1_sibling_offset(false, 4), 8);
	ck_assert_uint_eq(h5_btree1_sibling_offset(true, 4), 12);
	ck_assert_uint_eq(h5_btree1_node_room(H5_BTREE1_GROUP, 0, 3, 2, 4), 8 + 2 * 2 + 6 * (4 + 2) + 4);
	ck_assert_uint_eq(h5_btree1_node_room(H5_BTREE1_CHUNK, 2, 3, 2, 4), 8 + 2 * 2 + 6 * (32 + 2) + 32);
}
END_TEST

UNIT_MAIN("index formats", fixed_arrays, extensible_arrays, shapes_of_extensible_arrays,
	  extensible_arrays_written, shapes_of_trees, trees)

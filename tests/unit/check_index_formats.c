/* Headers and blocks of indexes, heaps and histories, byte by byte, by the tables of the specification:
 * numbers at their limits and just beyond. */
#include "base/fletcher32.h"
#include "examples.h"
#include "format/btree1.h"
#include "format/btree2.h"
#include "format/extensible_array.h"
#include "format/fixed_array.h"
#include "format/fractal_heap.h"
#include "format/global_heap.h"
#include "format/named_message.h"
#include "format/onion.h"
#include "format/shared_message.h"
#include "format/symbol_table.h"
#include "format/virtual_mapping.h"

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
		ck_assert(h5_fixed_array_page(&h, page, &address, &size));
		ck_assert_uint_eq(address, 7000 + h.block_size + page * (1024 * 8 + 4));
		ck_assert_uint_eq(size, page < 2 ? 1024 * 8 : 2 * 8);
	}
	ck_assert_uint_eq(address + size + 4, 7000 + h.block_space);
	h.data_block = UINT64_MAX - h.block_size;
	ck_assert(h5_fixed_array_page(&h, 0, &address, &size));
	ck_assert_uint_eq(address, UINT64_MAX);
	ck_assert(!h5_fixed_array_page(&h, 1, &address, &size));
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

/* A summed block, without its sum. */
static void check_summed(struct h5_writer *w, const uint8_t *expected, size_t n)
{
	ck_assert(!w->err);
	ck_assert_uint_eq(h5_writer_at(w), n + 4);
	ck_assert_uint_eq(h5_uint_from(w->p - 4, 4), h5_lookup3(w->begin, n, 0));
	ck_assert_mem_eq(w->begin, expected, n);
	ck_assert_uint_eq(*w->p, 0xaa);
}

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

/* ---- fractal heaps ---- */

static int compute_heap(struct h5_fractal_heap *heap, uint16_t heap_bits, uint64_t direct_max,
			uint16_t root_rows)
{
	*heap = (struct h5_fractal_heap){.id_size = 8,
					 .managed_max = 4096,
					 .width = 4,
					 .start_size = 512,
					 .direct_max = direct_max,
					 .heap_bits = heap_bits,
					 .root_rows = root_rows};
	return h5_fractal_heap_compute(heap, 8, 8, 500);
}

START_TEST(shapes_of_fractal_heaps)
{
	struct h5_fractal_heap heap;

	ck_assert_int_eq(compute_heap(&heap, 32, 65536, 22), 0);
	ck_assert(heap.row_bits == 11 && heap.direct_rows == 9 && heap.rows_max == 22);
	ck_assert(heap.offset_size == 4 && heap.length_size == 2 && !heap.huge_in_id);
	ck_assert_int_eq(compute_heap(&heap, 32, 65536, 23), -EUCLEAN);
	ck_assert_int_eq(compute_heap(&heap, 64, 65536, 0), 0);
	ck_assert_uint_eq(heap.offset_size, 8);
	ck_assert_int_eq(compute_heap(&heap, 65, 65536, 0), -EUCLEAN);
	ck_assert_int_eq(compute_heap(&heap, 33, 65536, 0), 0);
	ck_assert_uint_eq(heap.offset_size, 5);
	/* The address space has at least a row, and a direct block. */
	ck_assert_int_eq(compute_heap(&heap, 11, 512, 1), 0);
	ck_assert_int_eq(compute_heap(&heap, 11, 512, 2), -EUCLEAN);
	ck_assert_int_eq(compute_heap(&heap, 10, 512, 0), -EUCLEAN);
	ck_assert_int_eq(compute_heap(&heap, 16, 65536, 0), 0);
	ck_assert_int_eq(compute_heap(&heap, 15, 65536, 0), -EUCLEAN);
	ck_assert_int_eq(compute_heap(&heap, 32, 1 << 28, 0), 0);
	ck_assert_int_eq(compute_heap(&heap, 32, 1 << 29, 0), -ENOTSUP);
	ck_assert_int_eq(compute_heap(&heap, 32, 256, 0), -EUCLEAN);
	/* Lengths have as many bytes as the largest direct block or object needs. */
	ck_assert_int_eq(compute_heap(&heap, 32, 1 << 24, 0), 0);
	ck_assert_uint_eq(heap.length_size, 2);
	heap.managed_max = UINT32_MAX;
	ck_assert_int_eq(h5_fractal_heap_compute(&heap, 8, 8, 500), 0);
	ck_assert_uint_eq(heap.length_size, 3);
	heap.managed_max = 255;
	ck_assert_int_eq(h5_fractal_heap_compute(&heap, 8, 8, 500), 0);
	ck_assert_uint_eq(heap.length_size, 1);
	/* IDs that have room for an address and a size, with filters also for a mask and another size. */
	for (unsigned filtered = 0; filtered < 2; filtered++) {
		heap.filtered = filtered;
		heap.id_size = filtered ? 8 + 4 + 4 + 4 : 8 + 4;
		ck_assert_int_eq(h5_fractal_heap_compute(&heap, 8, 4, 500), 0);
		ck_assert(!heap.huge_in_id);
		heap.id_size++;
		ck_assert_int_eq(h5_fractal_heap_compute(&heap, 8, 4, 500), 0);
		ck_assert(heap.huge_in_id);
	}
	heap.id_size = 0;
	ck_assert_int_eq(h5_fractal_heap_compute(&heap, 8, 8, 500), -EUCLEAN);
	ck_assert_int_eq(compute_heap(&heap, 32, 65536, 0), 0);
	for (unsigned row = 0; row < 22; row++)
		ck_assert_uint_eq(h5_fractal_heap_row_size(&heap, row), row < 2 ? 512u : 256u << row);
	ck_assert_uint_eq(h5_fractal_heap_header_size(2, 4), 22 + 12 * 4 + 3 * 2 + 4);
	ck_assert_uint_eq(h5_fractal_heap_indirect_size(&heap, 10, 2, 4), 5 + 2 + 4 + 10 * 4 * 2 + 4);
	ck_assert_uint_eq(h5_fractal_heap_direct_prefix(&heap, 2), 5 + 2 + 4);
	heap.filtered = heap.checksums = true;
	ck_assert_uint_eq(h5_fractal_heap_indirect_size(&heap, 10, 2, 4),
			  5 + 2 + 4 + 10 * 4 * 2 + 9 * 4 * 8 + 4);
	ck_assert_uint_eq(h5_fractal_heap_indirect_size(&heap, 3, 2, 4),
			  5 + 2 + 4 + 3 * 4 * 2 + 3 * 4 * 8 + 4);
	ck_assert_uint_eq(h5_fractal_heap_direct_prefix(&heap, 2), 5 + 2 + 4 + 4);
}
END_TEST

static int decode_heap_size(struct h5_reader *r, struct h5_buf *out)
{
	size_t size;
	int rc = h5_fractal_heap_size(r, &size);

	if (!rc)
		h5_buf_printf(out, "%zu", size);
	return rc;
}

static int decode_heap(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_fractal_heap h;
	int rc = h5_fractal_heap_decode(r, &h);

	if (!rc)
		h5_buf_printf(
			out,
			"%u %u %d%d %ju %ju %ju %ju %ju %ju %ju %ju %ju %ju %ju %ju %u %ju %ju %u %u %ju %u",
			h.id_size, h.managed_max, h.huge_wrapped, h.checksums, (uintmax_t)h.huge_last,
			(uintmax_t)h.huge_btree, (uintmax_t)h.free, (uintmax_t)h.free_space,
			(uintmax_t)h.managed, (uintmax_t)h.allocated, (uintmax_t)h.iterator,
			(uintmax_t)h.objects, (uintmax_t)h.huge_bytes, (uintmax_t)h.huge_objects,
			(uintmax_t)h.tiny_bytes, (uintmax_t)h.tiny_objects, h.width, (uintmax_t)h.start_size,
			(uintmax_t)h.direct_max, h.heap_bits, h.start_rows, (uintmax_t)h.root, h.root_rows);
	if (!rc && h.filtered)
		h5_buf_printf(out, ", %ju %u %u", (uintmax_t)h.root_stored, h.root_mask,
			      h.pipeline.filters[0].id);
	h5_fractal_heap_release(&h);
	return rc;
}

/* IDs in heaps that differ in the size of IDs. */
static int decode_id(struct h5_reader *r, uint16_t id_size, bool filtered, struct h5_buf *out)
{
	struct h5_fractal_heap heap = {.id_size = id_size,
				       .managed_max = 4096,
				       .width = 4,
				       .start_size = 512,
				       .direct_max = 65536,
				       .heap_bits = 24,
				       .filtered = filtered};
	struct h5_fractal_heap_id id;
	int rc = h5_fractal_heap_compute(&heap, r->size_of_offsets, r->size_of_lengths, 500);

	ck_assert_int_eq(rc, 0);
	rc = h5_fractal_heap_id_decode(r, &heap, &id);
	if (rc)
		return rc;
	if (id.type == H5_HEAP_ID_TINY)
		print_bytes(out, "tiny ", id.data, (size_t)id.size);
	else if (id.type == H5_HEAP_ID_MANAGED)
		h5_buf_printf(out, "%ju+%ju", (uintmax_t)id.offset, (uintmax_t)id.size);
	else if (!id.direct)
		h5_buf_printf(out, "key %#jx", (uintmax_t)id.key);
	else
		h5_buf_printf(out, "huge %ju+%ju %u %ju", (uintmax_t)id.address, (uintmax_t)id.size, id.mask,
			      (uintmax_t)id.memory_size);
	return 0;
}

static int decode_id4(struct h5_reader *r, struct h5_buf *out)
{
	return decode_id(r, 4, false, out);
}

static int decode_id10(struct h5_reader *r, struct h5_buf *out)
{
	return decode_id(r, 10, false, out);
}

static int decode_id18(struct h5_reader *r, struct h5_buf *out)
{
	return decode_id(r, 18, false, out);
}

static int decode_id19(struct h5_reader *r, struct h5_buf *out)
{
	return decode_id(r, 19, true, out);
}

static int decode_direct(struct h5_reader *r, struct h5_buf *out)
{
	const struct h5_fractal_heap heap = {.offset_size = 3, .checksums = true};
	uint8_t block[64];
	int rc;

	(void)out;
	memcpy(block, r->begin, h5_reader_left(r));
	rc = h5_fractal_heap_direct_check(r, block, &heap, 500, 70000);
	for (unsigned i = 10; i < 14 && !rc; i++)
		ck_assert_uint_eq(block[i], 0);
	return rc;
}

static int decode_direct_unsummed(struct h5_reader *r, struct h5_buf *out)
{
	const struct h5_fractal_heap heap = {.offset_size = 3};
	uint8_t block[64];

	(void)out;
	return h5_fractal_heap_direct_check(r, block, &heap, 500, 70000);
}

/* Numbers that are cut off read as 0, which is where the first block begins. */
static int decode_first_direct(struct h5_reader *r, struct h5_buf *out)
{
	const struct h5_fractal_heap heap = {.offset_size = 3};
	uint8_t block[64];

	(void)out;
	return h5_fractal_heap_direct_check(r, block, &heap, 500, 0);
}

static int decode_indirect(struct h5_reader *r, struct h5_buf *out)
{
	const struct h5_fractal_heap heap = {
		.offset_size = 3, .width = 2, .direct_rows = 1, .filtered = true};
	struct h5_fractal_heap_entry entries[4];
	int rc = h5_fractal_heap_indirect_decode(r, &heap, 500, 70000, 2, entries);

	for (unsigned i = 0; i < 4 && !rc; i++)
		h5_buf_printf(out, "%jd %ju %u; ", (intmax_t)entries[i].address, (uintmax_t)entries[i].stored,
			      entries[i].mask);
	return rc;
}

#define U24(v) U16(v), (v) >> 16 & 0xff
/* A header, with lengths of 4 bytes and offsets of 2, up to the root's rows. */
#define HEAP(filters)                                                                                        \
	'F', 'R', 'H', 'P', 0, U16(7), U16(filters), 3, U32(4096), U32(11), U16(12), U32(13), U16(14),       \
		U32(15), U32(16), U32(17), U32(18), U32(19), U32(20), U32(21), U32(22), U16(4), U32(512),    \
		U32(65536), U16(32), U16(1), U16(600), U16(3)

START_TEST(fractal_heaps)
{
	const struct example examples[] = {
		{decode_heap_size, 2, 4, BYTES('F', 'R', 'H', 'P', 0, U16(7), U16(0)), WHOLE, 0, "80"},
		{decode_heap_size, 2, 4, BYTES('F', 'R', 'H', 'P', 0, U16(7), U16(300)), WHOLE, 0, "388"},
		{decode_heap_size, 2, 4, BYTES('F', 'R', 'H', 'p', 0, U16(7), U16(0)), 0, -EUCLEAN,
		 "fractal heap: wrong signature"},
		{decode_heap, 2, 4, BYTES(HEAP(0), SUM), WHOLE | SUMMED, 0,
		 "7 4096 11 11 12 13 14 15 16 17 18 19 20 21 22 4 512 65536 32 1 600 3"},
		{decode_heap, 2, 4, BYTES(HEAP(8), U32(77), U32(5), 2, 1, U16(1), U16(0), U16(0), SUM),
		 WHOLE | SUMMED, 0,
		 "7 4096 11 11 12 13 14 15 16 17 18 19 20 21 22 4 512 65536 32 1 600 3, 77 5 1"},
		{decode_heap, 2, 4, BYTES('F', 'R', 'H', 'P', 1, U16(7), U16(0)), 0, -EUCLEAN,
		 "fractal heap: version 1"},
		{decode_id4, 8, 8, BYTES(0, U24(70000), U16(300)), WHOLE, 0, "70000+300"},
		{decode_id4, 8, 8, BYTES(0x10, U24(0x123456)), WHOLE, 0, "key 0x123456"},
		{decode_id10, 8, 8, BYTES(0x10, U32(0x12345678), U32(0x9abcdef)), WHOLE, 0,
		 "key 0x9abcdef12345678"},
		{decode_id18, 8, 8, BYTES(0x10, U64(70000), U64(300)), WHOLE, 0, "huge 70000+300 0 300"},
		{decode_id19, 2, 4, BYTES(0x10, U16(700), U32(300), U32(5), U32(400)), WHOLE, 0,
		 "huge 700+300 5 400"},
		{decode_id18, 8, 8, BYTES(0x22, 'a', 'b', 'c'), WHOLE, 0, "tiny 616263"},
		{decode_id19, 8, 8, BYTES(0x20, 2, 'a', 'b', 'c'), WHOLE, 0, "tiny 616263"},
		{decode_id18, 8, 8, BYTES(0x30, 0, 0, 0), 0, -EUCLEAN,
		 "fractal heap: nonsense ID (first byte 0x30)"},
		{decode_id18, 8, 8, BYTES(0x40, 0, 0, 0, 0, 0, 0), 0, -EUCLEAN,
		 "fractal heap: nonsense ID (first byte 0x40)"},
		{decode_direct_unsummed, 2, 8, BYTES('F', 'H', 'D', 'B', 0, U16(500), U24(70000)), WHOLE, 0,
		 ""},
		{decode_first_direct, 2, 8, BYTES('F', 'H', 'D', 'B', 0, U16(500), U24(0)), WHOLE, 0, ""},
		{decode_first_direct, 2, 8, BYTES('F', 'H', 'D', 'B', 0, U16(500), U16(0)), 0, -EUCLEAN,
		 "fractal heap block: truncated"},
		{decode_direct, 2, 8, BYTES('F', 'H', 'D', 'B', 0, U16(500), U24(70000)), 0, -EUCLEAN,
		 "fractal heap block: truncated"},
		{decode_direct, 2, 8, BYTES('F', 'H', 'D', 'B', 0, U16(500), U24(70000), SUM, 1, 2, 3), 0,
		 -EUCLEAN, "fractal heap direct block: wrong checksum"},
		{decode_direct_unsummed, 2, 8, BYTES('F', 'H', 'D', 'c', 0, U16(500), U24(70000)), 0,
		 -EUCLEAN, "fractal heap block: wrong signature"},
		{decode_direct_unsummed, 2, 8, BYTES('F', 'H', 'D', 'B', 1, U16(500), U24(70000)), 0,
		 -EUCLEAN, "fractal heap block: version 1"},
		{decode_direct_unsummed, 2, 8, BYTES('F', 'H', 'D', 'B', 0, U16(501), U24(70000)), 0,
		 -EUCLEAN, "fractal heap block: it belongs to another heap"},
		{decode_direct_unsummed, 2, 8, BYTES('F', 'H', 'D', 'B', 0, U16(500), U24(70001)), 0,
		 -EUCLEAN, "fractal heap block: it belongs to another offset"},
		{decode_indirect, 2, 4,
		 BYTES('F', 'H', 'I', 'B', 0, U16(500), U24(70000), U16(600), U32(77), U32(5), NONE16, U32(0),
		       U32(0), U16(700), U16(800), SUM),
		 WHOLE | SUMMED, 0, "600 77 5; -1 0 0; 700 0 0; 800 0 0; "},
	};
	struct h5_fractal_heap heap = {
		.id_size = 8, .offset_size = 3, .length_size = 2, .width = 2, .checksums = true};
	const struct h5_fractal_heap_entry entries[] = {{.address = 600}, {.address = H5_UNDEF}};
	uint8_t room[64], expected[20] = {'F', 'H', 'D', 'B', 0, U16(500), U24(70000)};
	struct h5_writer w;

	CHECK(examples);
	w = begin(room, 9, 2, 4);
	ck_assert_int_eq(h5_fractal_heap_id_encode(
				 &w, &heap, &(struct h5_fractal_heap_id){.offset = 70000, .size = 300}),
			 0);
	ck_assert_mem_eq(room, ((const uint8_t[]){0, U24(70000), U16(300), 0, 0, 0xaa}), 9);
	w = begin(room, 9, 2, 4);
	ck_assert_int_eq(h5_fractal_heap_id_encode(&w, &heap,
						   &(struct h5_fractal_heap_id){.type = H5_HEAP_ID_HUGE,
										.direct = true,
										.address = 700,
										.size = 300}),
			 0);
	ck_assert_mem_eq(room, ((const uint8_t[]){0x10, U16(700), U32(300), 0, 0xaa}), 9);
	w = begin(room, 9, 2, 4);
	ck_assert_int_eq(
		h5_fractal_heap_id_encode(&w, &heap,
					  &(struct h5_fractal_heap_id){.type = H5_HEAP_ID_HUGE, .key = 300}),
		0);
	ck_assert_mem_eq(room, ((const uint8_t[]){0x10, U64(300), 0xaa}), 8);
	/* The sum of a direct block is of all of it. */
	h5_uint_to(expected + 10, h5_lookup3(expected, 20, 0), 4);
	memset(room, 0, sizeof room);
	w = h5_writer_init(room, 20, 2, 4);
	ck_assert_int_eq(h5_fractal_heap_direct_encode(&w, &heap, 500, 70000), 0);
	ck_assert_mem_eq(room, expected, 20);
	ck_assert_uint_eq(room[20], 0);
	for (unsigned n = 0; n < 14; n++) {
		w = begin(room, n, 2, 4);
		ck_assert_int_eq(h5_fractal_heap_direct_encode(&w, &heap, 500, 70000), -EOVERFLOW);
	}
	w = begin(room, sizeof room, 2, 4);
	ck_assert_int_eq(h5_fractal_heap_indirect_encode(&w, &heap, 500, 70000, 1, entries), 0);
	check_summed(&w, BYTES('F', 'H', 'I', 'B', 0, U16(500), U24(70000), U16(600), NONE16));
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

/* ---- global heaps ---- */

/* What may be free space in a collection of just this size, from which 40 bytes are left. */
static int decode_next(struct h5_reader *r, struct h5_buf *out)
{
	struct h5_global_heap_object o;
	int rc = h5_global_heap_next(r, 40, &o);

	if (!rc)
		h5_buf_printf(out, "%u %u %ju at %zu", o.index, o.references, (uintmax_t)o.size,
			      (size_t)o.offset);
	return rc;
}

START_TEST(global_heaps)
{
	const struct example examples[] = {
		{decode_next, 8, 8, BYTES(U16(300), U16(2), U32(9), U64(24)), WHOLE, 0, "300 2 24 at 16"},
		{decode_next, 8, 8, BYTES(U16(300), U16(2), U32(9), U64(25)), 0, -EUCLEAN,
		 "global heap collection: an object of 25 bytes passes the end"},
		{decode_next, 8, 4, BYTES(U16(300), U16(2), U32(9), U32(24), U32(9)), WHOLE, 0,
		 "300 2 24 at 16"},
		{decode_next, 8, 2, BYTES(U16(0), U16(0), U32(0), U16(40), U32(9), U16(9)), WHOLE, 0,
		 "0 0 40 at 16"},
		{decode_next, 8, 8, BYTES(U16(0), U16(0), U32(0), U64(39)), 0, -EUCLEAN,
		 "global heap collection: free space of 39 bytes, not 40"},
		{decode_next, 8, 8, BYTES(U16(0), U16(0), U32(0), U64(41)), 0, -EUCLEAN,
		 "global heap collection: free space of 41 bytes, not 40"},
	};
	uint8_t room[64];
	struct h5_writer w;

	CHECK(examples);
	ck_assert_int_eq(h5_global_heap_check_size(500, 4096), 0);
	ck_assert_int_eq(h5_global_heap_check_size(500, 4104), 0);
	ck_assert_int_eq(h5_global_heap_check_size(500, 4088), -EUCLEAN);
	ck_assert_int_eq(h5_global_heap_check_size(500, 4100), -EUCLEAN);
	for (uint8_t lengths = 2; lengths <= 8; lengths = (uint8_t)(2 * lengths)) {
		ck_assert_uint_eq(h5_global_heap_header(lengths), 16);
		ck_assert_uint_eq(h5_global_heap_room(lengths, 0), 16);
		ck_assert_uint_eq(h5_global_heap_room(lengths, 1), 24);
		ck_assert_uint_eq(h5_global_heap_room(lengths, 8), 24);
		ck_assert_uint_eq(h5_global_heap_room(lengths, 9), 32);
	}
	w = begin(room, sizeof room, 8, 4);
	h5_global_heap_encode_prefix(&w, 4096);
	h5_global_heap_encode_object(&w, 300, "abcdefghi", 9);
	check_written(&w, BYTES('G', 'C', 'O', 'L', 1, 0, 0, 0, U32(4096), U32(0), U64(300), U32(9), U32(0),
				'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 0, 0, 0, 0, 0, 0, 0));
	w = begin(room, sizeof room, 8, 8);
	h5_global_heap_encode_free(&w, 15);
	ck_assert_uint_eq(h5_writer_at(&w), 0);
	h5_global_heap_encode_free(&w, 16);
	check_written(&w, BYTES(U64(0), U64(16)));
}
END_TEST

/* Objects that fill a collection, but for `rest` bytes, which free space may tell of. */
static int verify(size_t rest, uint64_t told)
{
	enum { SIZE = 4096 };
	static uint8_t data[SIZE], zeros[SIZE];
	struct h5_writer w = h5_writer_init(data, SIZE, 8, 8);
	struct h5_reader r = h5_reader_init(data, SIZE, 500, 8, 8);

	memset(data, 0, SIZE);
	h5_global_heap_encode_prefix(&w, SIZE);
	h5_global_heap_encode_object(&w, 1, zeros, 5);
	h5_global_heap_encode_object(&w, 2, zeros, SIZE - 16 - 24 - 16 - rest);
	if (told)
		h5_global_heap_encode_free(&w, told);
	return h5_global_heap_verify(&r);
}

START_TEST(collections_that_end)
{
	ck_assert_int_eq(verify(0, 0), 0);
	ck_assert_int_eq(verify(8, 0), 0);
	ck_assert_int_eq(verify(16, 16), 0);
	ck_assert_int_eq(verify(24, 24), 0);
	ck_assert_int_eq(verify(16, 0), -EUCLEAN);
	ck_assert_int_eq(verify(24, 16), -EUCLEAN);
	ck_assert_int_eq(verify(24, 32), -EUCLEAN);
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
	struct h5_btree2_header h;
	const struct h5_btree2_node node = {.count = 2, .records = (uint8_t[]){1, 2}};

	ck_assert_int_eq(compute_tree(&h, 64, 1, 0), 0);
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

UNIT_MAIN("index formats", fixed_arrays, extensible_arrays, shapes_of_extensible_arrays,
	  extensible_arrays_written, shapes_of_fractal_heaps, fractal_heaps, shapes_of_trees, trees,
	  global_heaps, collections_that_end, histories, virtual_mappings, too_little_room)

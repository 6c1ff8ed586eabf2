/* Fractal and global heaps, byte by byte, by the tables of the specification. */
#include "examples.h"
#include "format/fractal_heap.h"
#include "format/free_space.h"
#include "format/global_heap.h"

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

/* ---- notes of removed objects ---- */

enum { NOTED = 2, NOTE = H5_REMOVED_NOTE_SIZE + NOTED * H5_REMOVED_OBJECT_SIZE };

static bool read_note(const uint8_t *bytes, size_t n, unsigned most, struct h5_removed_note *note,
		      struct h5_removed_object objects[NOTED])
{
	struct h5_reader r = h5_reader_init(bytes, n, H5_UNDEF, 8, 8);

	memset(note, 0x55, sizeof *note);
	memset(objects, 0x55, NOTED * sizeof *objects);
	return h5_removed_note_decode(&r, note, objects, most);
}

/* Bytes that are no note, or are damaged, are not taken for one; and no more objects than there is room for.
 */
START_TEST(notes_of_removed_objects)
{
	const struct h5_removed_object noted[NOTED] = {{true, 0x1122334455667788, 3}, {false, 7, 1 << 20}};
	const struct h5_removed_note written = {
		.list = 0xa1b2c3d4, .state = {1, UINT64_MAX, 3, 4}, .room = 0x1234, .count = NOTED};
	static const uint8_t begin[] = "h5fs\xd4\xc3\xb2\xa1\1\0\0\0\0\0\0\0\xff";
	struct h5_removed_object objects[NOTED];
	struct h5_removed_note note;
	uint8_t bytes[NOTE];
	struct h5_writer w = h5_writer_init(bytes, sizeof bytes, 8, 8);

	ck_assert_int_eq(h5_removed_note_encode(&w, &written, noted), 0);
	ck_assert_ptr_eq(w.p, w.end);
	ck_assert_mem_eq(bytes, begin, sizeof begin - 1);
	ck_assert(read_note(bytes, NOTE, NOTED, &note, objects));
	ck_assert_uint_eq(note.list, written.list);
	ck_assert_mem_eq(note.state, written.state, sizeof note.state);
	ck_assert_uint_eq(note.room, written.room);
	ck_assert_uint_eq(note.count, NOTED);
	for (unsigned i = 0; i < NOTED; i++) {
		ck_assert_int_eq(objects[i].is_huge, noted[i].is_huge);
		ck_assert_uint_eq(objects[i].offset, noted[i].offset);
		ck_assert_uint_eq(objects[i].size, noted[i].size);
	}
	ck_assert(!read_note(bytes, NOTE, NOTED - 1, &note, objects));
	ck_assert_uint_eq(objects[0].offset, 0x5555555555555555);
	for (unsigned n = 0; n < NOTE; n++) {
		ck_assert(!read_note(bytes, n, NOTED, &note, objects));
		bytes[n] ^= 0x10;
		ck_assert(!read_note(bytes, NOTE, NOTED, &note, objects));
		bytes[n] ^= 0x10;
	}
	w = h5_writer_init(bytes, sizeof bytes - 1, 8, 8);
	ck_assert_int_eq(h5_removed_note_encode(&w, &written, noted), -EOVERFLOW);
	/* With the right checksum, but another signature. */
	w = h5_writer_init(bytes, sizeof bytes, 8, 8);
	h5_write_bytes(&w, "h5fx", 4);
	w.p = bytes + NOTE - 4;
	h5_write_checksum(&w);
	ck_assert(!read_note(bytes, NOTE, NOTED, &note, objects));
}
END_TEST

UNIT_MAIN("heap formats", shapes_of_fractal_heaps, fractal_heaps, global_heaps, collections_that_end,
	  notes_of_removed_objects)

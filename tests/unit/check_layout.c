#include "base/error.h"
#include "base/lookup3.h"
#include "base/writer.h"
#include "format/dataspace.h"
#include "format/external_files.h"
#include "format/fill_value.h"
#include "format/layout.h"
#include "format/pipeline.h"
#include "format/superblock.h"
#include "unit.h"

#include <string.h>

/* Bytes written by hand after the specification; offsets and lengths are of 8 bytes where nothing else is
 * said. */
#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define U16(v)	   (v) & 0xff, (v) >> 8 & 0xff
#define U32(v)	   U16(v), U16((v) >> 16)
#define U64(v)	   U32(v), 0, 0, 0, 0
#define NOWHERE	   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff

static int decode_layout(const uint8_t *data, size_t size, struct h5_layout *layout)
{
	struct h5_reader r = h5_reader_init(data, size, 1000, 8, 8);

	return h5_layout_decode(&r, layout);
}

/* The message decodes; no shorter one does. */
static void check_layout(const uint8_t *data, size_t size, struct h5_layout *layout)
{
	for (size_t n = 0; n < size; n++) {
		/* A buffer of just that size, so that sanitizers see what is read beyond it. */
		uint8_t *copy = malloc(n + 1);

		memcpy(copy + 1, data, n);
		ck_assert_msg(decode_layout(copy + 1, n, layout) == -EUCLEAN, "%zu of %zu bytes", n, size);
		free(copy);
	}
	ck_assert_msg(!decode_layout(data, size, layout), "%s", h5_error_last()->text);
}

START_TEST(layouts_of_versions_1_and_2)
{
	struct h5_layout l;

	check_layout(BYTES(1, 2, 1, 0, 0, 0, 0, 0, U64(2048), U32(7), U32(9)), &l);
	ck_assert(l.version == 1 && l.class == H5_LAYOUT_CONTIGUOUS && l.contiguous.address == 2048);
	ck_assert(l.contiguous.size == UINT64_MAX);
	check_layout(BYTES(2, 3, 2, 0, 0, 0, 0, 0, NOWHERE, U32(4), U32(5), U32(8)), &l);
	ck_assert(l.class == H5_LAYOUT_CHUNKED && l.chunked.index == H5_INDEX_BTREE1);
	ck_assert(l.chunked.rank == 2 && l.chunked.dims[0] == 4 && l.chunked.dims[1] == 5);
	ck_assert(l.chunked.element_size == 8 && l.chunked.address == H5_UNDEF);
	check_layout(BYTES(1, 1, 0, 0, 0, 0, 0, 0, U32(3), U32(3), 'a', 'b', 'c'), &l);
	ck_assert(l.class == H5_LAYOUT_COMPACT && l.compact.size == 3 && !memcmp(l.compact.data, "abc", 3));
	ck_assert_int_eq(decode_layout(BYTES(1, 1, 3, 0, 0, 0, 0, 0, U64(0), U32(3)), &l), -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(1, 1, 2, 0, 0, 0, 0, 0, U64(0), U32(8)), &l), -EUCLEAN);
}
END_TEST

START_TEST(layouts_of_version_3)
{
	struct h5_layout l;

	check_layout(BYTES(3, 0, U16(2), 'x', 'y'), &l);
	ck_assert(l.class == H5_LAYOUT_COMPACT && l.compact.size == 2 && !memcmp(l.compact.data, "xy", 2));
	check_layout(BYTES(3, 1, NOWHERE, U64(40)), &l);
	ck_assert(l.class == H5_LAYOUT_CONTIGUOUS && l.contiguous.address == H5_UNDEF);
	ck_assert_uint_eq(l.contiguous.size, 40);
	check_layout(BYTES(3, 2, 2, U64(512), U32(100), U32(4)), &l);
	ck_assert(l.chunked.rank == 1 && l.chunked.dims[0] == 100 && l.chunked.element_size == 4);
	ck_assert_uint_eq(l.chunked.address, 512);
	ck_assert_int_eq(decode_layout(BYTES(3, 3, U64(512), U32(1)), &l), -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(3, 9, U64(512)), &l), -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(0, 1, U64(512), U64(40)), &l), -ENOTSUP);
	ck_assert_int_eq(decode_layout(BYTES(6, 1, U64(512), U64(40)), &l), -ENOTSUP);
	/* a dimension of 0, an element of no bytes, 34 dimensions */
	ck_assert_int_eq(decode_layout(BYTES(3, 2, 2, U64(512), U32(0), U32(4)), &l), -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(3, 2, 2, U64(512), U32(5), U32(0)), &l), -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(3, 2, 34, U64(512), U32(5), U32(4)), &l), -EUCLEAN);
}
END_TEST

START_TEST(layouts_of_versions_4_and_5)
{
	struct h5_layout l;

	check_layout(BYTES(4, 2, 2, 2, 1, 10, 4, 1, U64(300), U32(5), U64(4096)), &l);
	ck_assert(l.chunked.index == H5_INDEX_SINGLE && l.chunked.single.filtered);
	ck_assert(l.chunked.single.size == 300 && l.chunked.single.filter_mask == 5);
	ck_assert(l.chunked.address == 4096 && l.chunked.dims[0] == 10 && !l.chunked.unfiltered_edges);
	check_layout(BYTES(4, 2, 0, 2, 1, 10, 4, 1, U64(4096)), &l);
	ck_assert(!l.chunked.single.filtered && l.chunked.address == 4096);
	check_layout(BYTES(5, 2, 1, 3, 2, U16(300), U16(7), U16(4), 2, U64(4096)), &l);
	ck_assert(l.version == 5 && l.chunked.index == H5_INDEX_IMPLICIT && l.chunked.unfiltered_edges);
	ck_assert(l.chunked.rank == 2 && l.chunked.dims[0] == 300 && l.chunked.dims[1] == 7);
	check_layout(BYTES(4, 2, 0, 2, 1, 10, 4, 3, 10, NOWHERE), &l);
	ck_assert(l.chunked.index == H5_INDEX_FIXED_ARRAY && l.chunked.address == H5_UNDEF);
	ck_assert_uint_eq(l.chunked.fixed_array.page_bits, 10);
	/* sizes in more bytes than they need */
	check_layout(BYTES(4, 2, 0, 2, 8, U64(10), U64(4), 4, 32, 4, 2, 16, 10, U64(4096)), &l);
	ck_assert(l.chunked.index == H5_INDEX_EXTENSIBLE_ARRAY && l.chunked.dims[0] == 10);
	ck_assert(l.chunked.element_size == 4 && l.chunked.address == 4096);
	ck_assert_uint_eq(l.chunked.extensible_array.max_bits, 32);
	ck_assert_uint_eq(l.chunked.extensible_array.index_elements, 4);
	ck_assert_uint_eq(l.chunked.extensible_array.min_pointers, 2);
	ck_assert_uint_eq(l.chunked.extensible_array.min_elements, 16);
	ck_assert_uint_eq(l.chunked.extensible_array.page_bits, 10);
	check_layout(BYTES(4, 2, 0, 2, 1, 10, 4, 5, U32(2048), 100, 40, U64(4096)), &l);
	ck_assert(l.chunked.index == H5_INDEX_BTREE2 && l.chunked.address == 4096);
	ck_assert(l.chunked.btree2.node_size == 2048 && l.chunked.btree2.split_percent == 100);
	ck_assert_uint_eq(l.chunked.btree2.merge_percent, 40);
	check_layout(BYTES(4, 3, U64(700), U32(3)), &l);
	ck_assert(l.class == H5_LAYOUT_VIRTUAL && l.virtual.heap == 700 && l.virtual.index == 3);
	/* index types that there are not, unknown flags, sizes of 0 and 9 bytes, an element of 2^32 bytes */
	ck_assert_int_eq(decode_layout(BYTES(4, 2, 0, 2, 1, 10, 4, 0, U64(4096)), &l), -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(4, 2, 0, 2, 1, 10, 4, 6, U64(4096)), &l), -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(4, 2, 4, 2, 1, 10, 4, 1, U64(4096)), &l), -ENOTSUP);
	ck_assert_int_eq(decode_layout(BYTES(4, 2, 0, 2, 0, 10, 4, 1, U64(4096)), &l), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "data layout: dimension sizes of 0 bytes");
	ck_assert_int_eq(decode_layout(BYTES(4, 2, 0, 2, 9, U64(10), 0, U64(4), 0, 1, U64(1)), &l), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "data layout: dimension sizes of 9 bytes");
	ck_assert_int_eq(decode_layout(BYTES(4, 2, 0, 2, 8, U64(10), 0, 0, 0, 0, U32(1), 1, U64(1)), &l),
			 -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(4, 4, 0, 0, 0, 0), &l), -EUCLEAN);
}
END_TEST

START_TEST(sizes_of_offsets_count)
{
	const uint8_t data[] = {3, 1, 0xff, 0xff, U32(40)};
	struct h5_reader r = h5_reader_init(data, sizeof data, 0, 2, 4);
	struct h5_layout l;

	ck_assert_int_eq(h5_layout_decode(&r, &l), 0);
	ck_assert(l.contiguous.address == H5_UNDEF && l.contiguous.size == 40);
}
END_TEST

static int decode_pipeline(const uint8_t *data, size_t size, struct h5_pipeline *p)
{
	struct h5_reader r = h5_reader_init(data, size, 1000, 8, 8);

	return h5_pipeline_decode(&r, p);
}

static void check_pipeline(const uint8_t *data, size_t size, struct h5_pipeline *p)
{
	for (size_t n = 0; n < size; n++) {
		uint8_t *copy = malloc(n + 1);

		memcpy(copy + 1, data, n);
		ck_assert_msg(decode_pipeline(copy + 1, n, p) == -EUCLEAN, "%zu of %zu bytes", n, size);
		free(copy);
	}
	ck_assert_msg(!decode_pipeline(data, size, p), "%s", h5_error_last()->text);
}

/* In this order: as the prototype writes it, as RFC version 16 has it. */
START_TEST(layouts_of_structured_chunks)
{
	struct h5_layout l;

	check_layout(BYTES(5, 4, 0, U16(0), 1, 3, 1, 7, 9, 4, 8, 2, 1, 0, 3, 10, U64(4096)), &l);
	ck_assert(l.class == H5_LAYOUT_STRUCTURED && l.chunked.structured.sparse);
	ck_assert(!l.chunked.structured.early && l.chunked.structured.offset_size == 8);
	ck_assert(l.chunked.rank == 2 && l.chunked.dims[0] == 7 && l.chunked.dims[1] == 9);
	ck_assert(l.chunked.index == H5_INDEX_FIXED_ARRAY && l.chunked.address == 4096);
	ck_assert(l.chunked.element_size == 4 && l.chunked.unfiltered_edges);
	check_layout(BYTES(5, 4, 0, U16(1), 0, 2, 1, 7, 4, 5, U32(512), 100, 40, U64(4096), 4, 2, 1, 0), &l);
	ck_assert(l.chunked.structured.sparse && l.chunked.structured.early);
	ck_assert(l.chunked.index == H5_INDEX_BTREE2 && l.chunked.address == 4096);
	ck_assert_uint_eq(l.chunked.structured.offset_size, 4);
	/* a single chunk of 300 bytes, section 1 at 200 */
	check_layout(BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 2, 1, 0, 1, U16(300), U64(200), U64(4096)),
		     &l);
	ck_assert(l.chunked.index == H5_INDEX_SINGLE && l.chunked.single.size == 300);
	ck_assert(l.chunked.single.metadata[0] == 200 && l.chunked.address == 4096);
	ck_assert_int_eq(decode_layout(BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 1, U16(300), U64(200),
					     U64(4096), 8, 2, 1, 0),
				       &l),
			 0);
	ck_assert(l.chunked.structured.sparse && l.chunked.structured.early);
	ck_assert(l.chunked.single.size == 300 && l.chunked.single.metadata[0] == 200);
	ck_assert_uint_eq(l.chunked.address, 4096);
	/* the size in eight bytes; cut, it may be taken for one in two */
	ck_assert_int_eq(decode_layout(BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 2, 1, 0, 1, U64(300),
					     U64(200), U64(4096)),
				       &l),
			 0);
	ck_assert(l.chunked.single.size == 300 && l.chunked.single.metadata[0] == 200);
	/* in two bytes, with a metadatum whose lower bytes are zero, and too few bytes behind it all for more
	 */
	ck_assert_int_eq(decode_layout(BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 2, 1, 0, 1, U16(300), 0, 0,
					     0, 0, 0, 0, 1, 0, U64(4096), 0, 0, 0, 0, 0),
				       &l),
			 0);
	ck_assert_uint_eq(l.chunked.single.size, 300);
	ck_assert_uint_eq(l.chunked.single.metadata[0], 0);
	ck_assert_uint_eq(l.chunked.single.metadata[6], 1);
	ck_assert_uint_eq(l.chunked.address, 4096);
	/* sections of variable-length data: nothing but the shape */
	check_layout(BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 3, 3, 0), &l);
	ck_assert(!l.chunked.structured.sparse && l.chunked.dims[0] == 40 && l.chunked.address == H5_UNDEF);
	/* version 1 B-tree, implicit index; other properties; chunks of more than 2^64 bytes */
	ck_assert_int_eq(decode_layout(BYTES(5, 4, 0, U16(0), 0, 2, 1, 7, 4, 8, 2, 1, 0, 0, U64(4096)), &l),
			 -EUCLEAN);
	ck_assert_int_eq(decode_layout(BYTES(5, 4, 0, U16(0), 0, 2, 1, 7, 4, 2, U64(4096), 8, 2, 1, 0), &l),
			 -EUCLEAN);
	ck_assert_int_eq(
		decode_layout(BYTES(5, 4, 1, U16(0), 0, 2, 1, 7, 4, 8, 2, 1, 0, 3, 10, U64(4096)), &l),
		-ENOTSUP);
	ck_assert_int_eq(
		decode_layout(BYTES(5, 4, 0, U16(0), 0, 2, 8, NOWHERE, U64(4), 8, 2, 1, 0, 3, 10, U64(4096)),
			      &l),
		-EUCLEAN);
}
END_TEST

START_TEST(pipelines_of_both_versions)
{
	struct h5_pipeline p;

	check_pipeline(BYTES(1, 2, 0, 0, 0, 0, 0, 0, /* shuffle with a name and one value, padded */
			     U16(2), U16(8), U16(1), U16(1), 's', 'h', 'u', 'f', 'f', 'l', 'e', 0, U32(8),
			     U32(0), U16(1000), U16(0), U16(0), U16(2), U32(7), U32(0x12345678)),
		       &p);
	ck_assert(p.count == 2 && p.filters[0].id == 2 && p.filters[0].optional && p.filters[0].count == 1);
	ck_assert_str_eq(p.filters[0].name, "shuffle");
	ck_assert_uint_eq(p.filters[0].values[0], 8);
	ck_assert(p.filters[1].id == 1000 && !p.filters[1].optional && !p.filters[1].name);
	ck_assert(p.filters[1].values[0] == 7 && p.filters[1].values[1] == 0x12345678);
	h5_pipeline_release(&p);
	h5_pipeline_release(&p);
	check_pipeline(BYTES(2, 2, U16(1), U16(0), U16(1), U32(6), /* no name below 256 */
			     U16(32000), U16(3), U16(1), U16(1), 'l', 'z', 'f', U32(4)),
		       &p);
	ck_assert(p.count == 2 && p.filters[0].id == 1 && !p.filters[0].name && p.filters[0].values[0] == 6);
	ck_assert_str_eq(p.filters[1].name, "lzf");
	ck_assert(p.filters[1].id == 32000 && p.filters[1].values[0] == 4);
	h5_pipeline_release(&p);
	check_pipeline(BYTES(2, 0), &p);
	ck_assert_uint_eq(p.count, 0);
	ck_assert_int_eq(decode_pipeline(BYTES(2, 33), &p), -EUCLEAN);
	ck_assert_int_eq(decode_pipeline(BYTES(3, 1), &p), -ENOTSUP);
	ck_assert_int_eq(decode_pipeline(BYTES(2, 1, U16(1), U16(0), U16(0xffff), U32(6)), &p), -EUCLEAN);
}
END_TEST

static int decode_fill(const uint8_t *data, size_t size, struct h5_fill_value *fill)
{
	static uint8_t message[32]; /* the value is borrowed from it */
	struct h5_reader r = h5_reader_init(message, size, 1000, 8, 8);

	memcpy(message, data, size);
	return h5_fill_value_decode(&r, fill);
}

START_TEST(fill_values_of_every_version)
{
	const uint8_t old[] = {U32(2), 7, 8};
	struct h5_reader r = h5_reader_init(old, sizeof old, 0, 8, 8);
	struct h5_fill_value f;

	ck_assert_int_eq(h5_fill_value_old_decode(&r, &f), 0);
	ck_assert(f.defined && f.size == 2 && f.value[1] == 8);
	r = h5_reader_init(old, sizeof old - 1, 0, 8, 8);
	ck_assert_int_eq(h5_fill_value_old_decode(&r, &f), -EUCLEAN);
	ck_assert_int_eq(decode_fill((const uint8_t[1]){0}, 0, &f), -EUCLEAN);
	/* version 1 has its size always, version 2 only where defined */
	ck_assert_int_eq(decode_fill(BYTES(1, 2, 0, 1, U32(2), 7, 8), &f), 0);
	ck_assert(f.defined && f.allocation == 2 && f.size == 2 && f.value[0] == 7 && !f.never_written);
	/* libhdf5 takes no value that is said not to be defined, even where one follows */
	ck_assert_int_eq(decode_fill(BYTES(1, 2, 0, 0, U32(2), 7, 8), &f), 0);
	ck_assert(!f.defined);
	ck_assert_int_eq(decode_fill(BYTES(1, 2, 0, 1, U32(0)), &f), 0);
	ck_assert(!f.defined);
	ck_assert_int_eq(decode_fill(BYTES(1, 2, 0, 0, 0xff, 0xff, 0xff, 0xff), &f), 0);
	ck_assert(!f.defined);
	ck_assert_int_eq(decode_fill(BYTES(2, 3, 1, 0), &f), 0);
	ck_assert(!f.defined && f.allocation == 3 && f.never_written);
	ck_assert_int_eq(decode_fill(BYTES(2, 3, 1, 1), &f), -EUCLEAN);
	ck_assert_int_eq(decode_fill(BYTES(2, 3, 2, 1, U32(1), 9), &f), 0);
	ck_assert(f.defined && f.value[0] == 9 && !f.never_written);
	/* version 3: flags */
	ck_assert_int_eq(decode_fill(BYTES(3, 0x21, U32(1), 9), &f), 0);
	ck_assert(f.defined && f.allocation == 1 && f.value[0] == 9 && !f.never_written);
	ck_assert_int_eq(decode_fill(BYTES(3, 0x17), &f), 0);
	ck_assert(!f.defined && f.allocation == 3 && f.never_written);
	ck_assert_int_eq(decode_fill(BYTES(3, 0x31, U32(1), 9), &f), -EUCLEAN);
	ck_assert_int_eq(decode_fill(BYTES(3, 0x21, U32(2), 9), &f), -EUCLEAN);
	ck_assert_int_eq(decode_fill(BYTES(4, 0), &f), -ENOTSUP);
	ck_assert_int_eq(decode_fill(BYTES(3), &f), -EUCLEAN);
}
END_TEST

START_TEST(external_file_lists)
{
	const uint8_t good[] = {1,	0,	0,	 0,	  U16(3), U16(2), U64(800),
				U64(8), U64(4), U64(70), U64(16), U64(0), NOWHERE};
	struct h5_reader r = h5_reader_init(good, sizeof good, 0, 8, 8);
	uint8_t bad[sizeof good];
	struct h5_external_files files;

	ck_assert_int_eq(h5_external_files_decode(&r, &files), 0);
	ck_assert(files.heap == 800 && files.count == 2);
	ck_assert(files.slots[0].name == 8 && files.slots[0].offset == 4 && files.slots[0].size == 70);
	ck_assert(files.slots[1].name == 16 && files.slots[1].size == UINT64_MAX);
	h5_external_files_release(&files);
	h5_external_files_release(&files);
	for (size_t n = 0; n < sizeof good; n++) {
		r = h5_reader_init(good, n, 0, 8, 8);
		ck_assert_int_eq(h5_external_files_decode(&r, &files), -EUCLEAN);
	}
	memcpy(bad, good, sizeof good);
	bad[4] = 1; /* more used than allocated */
	r = h5_reader_init(bad, sizeof bad, 0, 8, 8);
	ck_assert_int_eq(h5_external_files_decode(&r, &files), -EUCLEAN);
	bad[4] = 3;
	bad[0] = 2;
	r = h5_reader_init(bad, sizeof bad, 0, 8, 8);
	ck_assert_int_eq(h5_external_files_decode(&r, &files), -ENOTSUP);
}
END_TEST

/* A message decodes, changes, and is then just what it shall be. */
static void check_layout_update(const uint8_t *data, size_t size, const uint8_t *expected,
				void (*change)(struct h5_layout *layout))
{
	uint8_t body[64];
	struct h5_layout l;

	memcpy(body, data, size);
	ck_assert(!decode_layout(data, size, &l));
	ck_assert(!h5_layout_update(body, size, 8, 8, &l));
	ck_assert_mem_eq(body, data, size);
	change(&l);
	ck_assert_msg(!h5_layout_update(body, size, 8, 8, &l), "%s", h5_error_last()->text);
	ck_assert_mem_eq(body, expected, size);
}

static void change_contiguous(struct h5_layout *l)
{
	l->contiguous.address = 0x1234;
}

static void change_compact(struct h5_layout *l)
{
	l->compact.data = (const uint8_t *)"xyz";
}

static void change_chunked(struct h5_layout *l)
{
	l->chunked.address = 0x1234;
	l->chunked.single.size = 77;
	l->chunked.single.filter_mask = 3;
}

static void change_structured(struct h5_layout *l)
{
	l->chunked.address = 0x1234;
	l->chunked.single.size = 77;
	l->chunked.single.metadata[0] = 60;
}

static void remove_structured(struct h5_layout *l)
{
	l->chunked.address = H5_UNDEF;
	l->chunked.single.size = 0;
	memset(l->chunked.single.metadata, 0, sizeof l->chunked.single.metadata);
}

START_TEST(layouts_of_structured_chunks_change_in_place)
{
	const uint8_t *want;
	struct h5_layout l;
	uint8_t body[64];

#define WANT(...) (want = (const uint8_t[]){__VA_ARGS__})
	WANT(5, 4, 0, U16(0), 1, 3, 1, 7, 9, 4, 8, 2, 1, 0, 3, 10, U64(0x1234));
	check_layout_update(BYTES(5, 4, 0, U16(0), 1, 3, 1, 7, 9, 4, 8, 2, 1, 0, 3, 10, U64(4096)), want,
			    change_structured);
	WANT(5, 4, 0, U16(1), 0, 2, 1, 7, 4, 5, U32(512), 100, 40, U64(0x1234), 4, 2, 1, 0);
	check_layout_update(
		BYTES(5, 4, 0, U16(1), 0, 2, 1, 7, 4, 5, U32(512), 100, 40, U64(4096), 4, 2, 1, 0), want,
		change_structured);
	/* A single chunk, whose size has two bytes or eight. */
	WANT(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 2, 1, 0, 1, U16(77), U64(60), U64(0x1234));
	check_layout_update(
		BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 2, 1, 0, 1, U16(300), U64(200), U64(4096)), want,
		change_structured);
	WANT(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 1, U64(77), U64(60), U64(0x1234), 8, 2, 1, 0);
	check_layout_update(
		BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 1, U64(300), U64(200), U64(4096), 8, 2, 1, 0), want,
		change_structured);
	/* One that is not stored any more, in a padded message. */
	WANT(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 2, 1, 0, 1, U16(0), U64(0), NOWHERE, U64(0));
	check_layout_update(
		BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 2, 1, 0, 1, U16(300), U64(200), U64(4096), U64(0)),
		want, remove_structured);
	ck_assert_int_eq(decode_layout(want, 40, &l), 0);
	ck_assert(l.chunked.address == H5_UNDEF && l.chunked.single.size_width == 2);
	ck_assert_int_eq(
		decode_layout(BYTES(5, 4, 0, U16(0), 0, 2, 1, 40, 4, 8, 2, 1, 0, 1, U64(0), U64(0), NOWHERE),
			      &l),
		0);
	ck_assert(l.chunked.address == H5_UNDEF && l.chunked.single.size_width == 8);
	/* a size that does not fit */
	memcpy(body, want, 40);
	ck_assert_int_eq(decode_layout(want, 40, &l), 0);
	l.chunked.single.size = 1 << 16;
	ck_assert_int_eq(h5_layout_update(body, 40, 8, 8, &l), -EOVERFLOW);
#undef WANT
}
END_TEST

START_TEST(layouts_change_in_place)
{
	const uint8_t *want;
	struct h5_reader r;
	struct h5_layout l;
	uint8_t body[64];

#define WANT(...) (want = (const uint8_t[]){__VA_ARGS__})
	WANT(1, 1, 1, 0, 0, 0, 0, 0, U64(0x1234), U32(9));
	check_layout_update(BYTES(1, 1, 1, 0, 0, 0, 0, 0, NOWHERE, U32(9)), want, change_contiguous);
	WANT(2, 1, 0, 0, 0, 0, 0, 0, U32(3), U32(3), 'x', 'y', 'z');
	check_layout_update(BYTES(2, 1, 0, 0, 0, 0, 0, 0, U32(3), U32(3), 'a', 'b', 'c'), want,
			    change_compact);
	WANT(2, 3, 2, 0, 0, 0, 0, 0, U64(0x1234), U32(4), U32(5), U32(8));
	check_layout_update(BYTES(2, 3, 2, 0, 0, 0, 0, 0, NOWHERE, U32(4), U32(5), U32(8)), want,
			    change_chunked);
	WANT(3, 0, U16(3), 'x', 'y', 'z', 0);
	check_layout_update(BYTES(3, 0, U16(3), 'a', 'b', 'c', 0), want, change_compact);
	WANT(4, 1, U64(0x1234), U64(40));
	check_layout_update(BYTES(4, 1, NOWHERE, U64(40)), want, change_contiguous);
	WANT(3, 2, 2, U64(0x1234), U32(100), U32(4));
	check_layout_update(BYTES(3, 2, 2, NOWHERE, U32(100), U32(4)), want, change_chunked);
	WANT(4, 2, 2, 2, 1, 10, 4, 1, U64(77), U32(3), U64(0x1234));
	check_layout_update(BYTES(4, 2, 2, 2, 1, 10, 4, 1, U64(0), U32(0), NOWHERE), want, change_chunked);
	WANT(4, 2, 0, 2, 1, 10, 4, 1, U64(0x1234));
	check_layout_update(BYTES(4, 2, 0, 2, 1, 10, 4, 1, U64(99)), want, change_chunked);
	WANT(5, 2, 0, 2, 2, U16(10), U16(4), 4, 32, 4, 4, 16, 10, U64(0x1234));
	check_layout_update(BYTES(5, 2, 0, 2, 2, U16(10), U16(4), 4, 32, 4, 4, 16, 10, NOWHERE), want,
			    change_chunked);
	WANT(4, 2, 0, 2, 1, 10, 4, 5, U32(2048), 100, 40, U64(0x1234));
	check_layout_update(BYTES(4, 2, 0, 2, 1, 10, 4, 5, U32(2048), 100, 40, NOWHERE), want,
			    change_chunked);

	/* another form, another class, data of another size, what doesn't change */
	memcpy(body, want, 22);
	ck_assert(!decode_layout(want, 22, &l));
	l.chunked.index = H5_INDEX_FIXED_ARRAY;
	ck_assert_int_eq(h5_layout_update(body, 22, 8, 8, &l), -ENOTSUP);
	ck_assert(!decode_layout(BYTES(4, 1, NOWHERE, U64(40)), &l));
	ck_assert_int_eq(h5_layout_update(body, 22, 8, 8, &l), -ENOTSUP);
	ck_assert(!decode_layout(WANT(3, 0, U16(3), 'a', 'b', 'c'), 7, &l));
	memcpy(body, want, 7);
	l.compact.size = 2;
	ck_assert_int_eq(h5_layout_update(body, 7, 8, 8, &l), -ENOTSUP);
	memcpy(body, WANT(4, 3, U64(700), U32(3)), 14);
	ck_assert(!decode_layout(want, 14, &l));
	ck_assert_int_eq(h5_layout_update(body, 14, 8, 8, &l), -ENOTSUP);
	/* an address that does not fit */
	memcpy(body, WANT(3, 1, U16(500), U16(40)), 6);
	r = h5_reader_init(body, 6, 0, 2, 2);
	ck_assert(!h5_layout_decode(&r, &l));
	l.contiguous.address = 0xffff;
	ck_assert_int_eq(h5_layout_update(body, 6, 2, 2, &l), -EOVERFLOW);
#undef WANT
}
END_TEST

static void check_dataspace_update(const uint8_t *data, size_t size, const uint8_t *expected,
				   uint8_t size_of_lengths)
{
	struct h5_reader r = h5_reader_init(data, size, 0, 8, size_of_lengths);
	struct h5_dataspace space;
	uint8_t body[64];

	memcpy(body, data, size);
	ck_assert(!h5_dataspace_decode(&r, &space));
	space.dims[0] = 0x1234;
	ck_assert(!h5_dataspace_update(body, size, size_of_lengths, &space));
	ck_assert_mem_eq(body, expected, size);
	space.rank++;
	ck_assert_int_eq(h5_dataspace_update(body, size, size_of_lengths, &space), -EUCLEAN);
	ck_assert_mem_eq(body, expected, size);
}

START_TEST(dataspaces_change_in_place)
{
	const uint8_t *want;

	want = (const uint8_t[]){1, 2, 1, 0, 0, 0, 0, 0, U64(0x1234), U64(8), NOWHERE, U64(8)};
	check_dataspace_update(BYTES(1, 2, 1, 0, 0, 0, 0, 0, U64(7), U64(8), NOWHERE, U64(8)), want, 8);
	want = (const uint8_t[]){2, 1, 1, 1, U64(0x1234), NOWHERE};
	check_dataspace_update(BYTES(2, 1, 1, 1, U64(7), NOWHERE), want, 8);
	want = (const uint8_t[]){2, 2, 0, 1, U16(0x1234), U16(6)};
	check_dataspace_update(BYTES(2, 2, 0, 1, U16(7), U16(6)), want, 2);
}
END_TEST

/* Superblocks as h5py writes them, the second with a user block of 512 bytes. */
START_TEST(superblocks_change_in_place)
{
	uint8_t old[96] = {0x89,   'H',	     'D',     'F',	 '\r',	  '\n',	  0x1a,	  '\n',	  0,
			   0,	   0,	     0,	      0,	 8,	  8,	  0,	  U16(4), U16(16),
			   U32(0), U64(512), NOWHERE, U64(3360), NOWHERE, U64(0), U64(96)};
	uint8_t new[48] = {0x89, 'H', 'D', 'F', '\r',	  '\n',	   0x1a,      '\n',
			   3,	 8,   8,   0,	U64(512), NOWHERE, U64(3360), U64(48)};
	uint8_t was[96];
	struct h5_superblock sb, again;
	size_t at, n;

	ck_assert(!h5_superblock_decode(old, sizeof old, 512, &sb));
	ck_assert(sb.end == 3360 && sb.base == 512);
	memcpy(was, old, sizeof was);
	sb.end = 0x1234;
	ck_assert(!h5_superblock_update(old, sizeof old, &sb, &at, &n));
	ck_assert(at == 40 && n == 8);
	h5_uint_to(was + 40, 0x1234, 8);
	ck_assert_mem_eq(old, was, sizeof was);
	/* the user block is gone: store/file.c has moved base and end, the stored ones stay together */
	sb.base = 0;
	sb.consistency = 1;
	ck_assert(!h5_superblock_update(old, sizeof old, &sb, &at, &n));
	ck_assert(at == 20 && n == 28);
	h5_uint_to(was + 40, 0x1234 + 512, 8);
	was[20] = 1;
	ck_assert_mem_eq(old, was, sizeof was);
	ck_assert_int_eq(h5_superblock_update(old, 47, &sb, &at, &n), -EUCLEAN);

	h5_uint_to(new + 44, h5_lookup3(new, 44, 0), 4);
	ck_assert(!h5_superblock_decode(new, sizeof new, 512, &sb));
	sb.end = 0x1234;
	sb.consistency = 5;
	ck_assert(!h5_superblock_update(new, sizeof new, &sb, &at, &n));
	ck_assert(at == 0 && n == 48 && new[11] == 5);
	ck_assert_uint_eq(h5_uint_from(new + 28, 8), 0x1234);
	ck_assert(!h5_superblock_decode(new, sizeof new, 512, &again));
	ck_assert(again.end == 0x1234 && again.consistency == 5 && again.root == 48);
	ck_assert_int_eq(h5_superblock_update(new, 47, &sb, &at, &n), -EOVERFLOW);
}
END_TEST

UNIT_MAIN("layout", layouts_of_versions_1_and_2, layouts_of_version_3, layouts_of_versions_4_and_5,
	  layouts_of_structured_chunks, sizes_of_offsets_count, pipelines_of_both_versions,
	  fill_values_of_every_version, external_file_lists, layouts_change_in_place,
	  layouts_of_structured_chunks_change_in_place, dataspaces_change_in_place,
	  superblocks_change_in_place)

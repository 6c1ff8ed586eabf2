/* Headers of arrays, B-trees and heaps, built by hand from the specification's tables: numbers on both sides
 * of each limit. */
#include "base/lookup3.h"
#include "base/writer.h"
#include "format/btree2.h"
#include "format/extensible_array.h"
#include "format/fixed_array.h"
#include "format/fractal_heap.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

enum { BYTES_MAX = 256, CHANGES = 3 };

/* Fields one after the other, little-endian; the checksum is put behind them. */
struct field {
	unsigned width;
	uint64_t value;
};

/* What a field has instead; at 0, where the signature is: nothing. */
struct change {
	unsigned at, width;
	uint64_t value;
};

struct limit {
	struct change changes[CHANGES];
	int rc;
};

static size_t build(uint8_t *bytes, const char *signature, const struct field *fields,
		    const struct change *changes)
{
	size_t n = strlen(signature);

	memcpy(bytes, signature, n);
	for (; fields->width; n += fields++->width)
		h5_uint_to(bytes + n, fields->value, fields->width);
	for (unsigned i = 0; i < CHANGES && changes[i].at; i++)
		h5_uint_to(bytes + changes[i].at, changes[i].value, changes[i].width);
	h5_uint_to(bytes + n, h5_lookup3(bytes, n, 0), 4);
	return n + 4;
}

typedef int decode_header(struct h5_reader *r);

static void check(decode_header *decode, const char *signature, const struct field *fields,
		  const struct limit *limits, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t bytes[BYTES_MAX];
		size_t size = build(bytes, signature, fields, limits[i].changes);
		struct h5_reader r = h5_reader_init(bytes, size, 0, 8, 8);
		int rc = decode(&r);

		if (rc != limits[i].rc)
			ck_abort_msg("%s, case %zu: %d, not %d", signature, i, rc, limits[i].rc);
	}
}

#define CHECK(decode, signature, fields, limits)                                                             \
	check(decode, signature, fields, limits, sizeof(limits) / sizeof *(limits))

/* ---- extensible array ---- */

static int decode_extensible(struct h5_reader *r)
{
	struct h5_extensible_array_header header;

	return h5_extensible_array_header_decode(r, &header);
}

START_TEST(extensible_array)
{
	enum { VERSION = 4, CLIENT, ELEMENT, BITS, INDEX, ELEMENTS, POINTERS, PAGE };
	static const struct field fields[] = {{1, 0}, {1, 0},  {1, 8},		{1, 32}, {1, 4}, {1, 16},
					      {1, 4}, {1, 10}, {8, 0},		{8, 0},	 {8, 0}, {8, 0},
					      {8, 0}, {8, 0},  {8, UINT64_MAX}, {0, 0}};
	static const struct limit limits[] = {
		{{{0}}, 0},
		{{{VERSION, 1, 1}}, -ENOTSUP},
		{{{VERSION, 1, 1}, {CLIENT, 1, 1}}, -ENOTSUP},
		{{{VERSION, 1, 1}, {CLIENT, 1, 2}}, 0},
		{{{VERSION, 1, 2}, {CLIENT, 1, 2}}, -ENOTSUP},
		{{{ELEMENT, 1, 0}}, -EUCLEAN},
		{{{ELEMENT, 1, 1}}, 0},
		{{{ELEMENT, 1, 255}}, 0},
		{{{INDEX, 1, 0}}, 0},
		{{{INDEX, 1, 255}}, 0},
		/* powers of two */
		{{{ELEMENTS, 1, 0}}, -EUCLEAN},
		{{{ELEMENTS, 1, 24}}, -EUCLEAN},
		{{{POINTERS, 1, 0}}, -EUCLEAN},
		{{{POINTERS, 1, 6}}, -EUCLEAN},
		/* as many bits as the smallest block has, at least */
		{{{BITS, 1, 4}, {POINTERS, 1, 1}}, 0},
		{{{BITS, 1, 3}, {POINTERS, 1, 1}}, -EUCLEAN},
		{{{BITS, 1, 0}, {POINTERS, 1, 1}, {ELEMENTS, 1, 1}}, -EUCLEAN},
		{{{BITS, 1, 1}, {POINTERS, 1, 1}, {ELEMENTS, 1, 1}}, 0},
		{{{BITS, 1, 63}}, 0},
		{{{BITS, 1, 64}}, -EUCLEAN},
		/* 64 pointers: 12 super blocks are in the index block; all have 12 or 11 */
		{{{BITS, 1, 15}, {POINTERS, 1, 64}}, 0},
		{{{BITS, 1, 14}, {POINTERS, 1, 64}}, -EUCLEAN},
		/* the largest data block that the index block leads to has 64 elements */
		{{{PAGE, 1, 6}}, 0},
		{{{PAGE, 1, 5}}, -EUCLEAN},
		{{{PAGE, 1, 63}}, 0},
		{{{PAGE, 1, 64}}, -EUCLEAN},
		{{{PAGE, 1, 63}, {POINTERS, 1, 1}}, 0},
		{{{PAGE, 1, 64}, {POINTERS, 1, 1}}, -EUCLEAN},
	};

	CHECK(decode_extensible, "EAHD", fields, limits);
}
END_TEST

/* ---- fixed array ---- */

static int decode_fixed(struct h5_reader *r)
{
	struct h5_fixed_array_header header;

	return h5_fixed_array_header_decode(r, &header);
}

START_TEST(fixed_array)
{
	enum { VERSION = 4, CLIENT, ELEMENT, PAGE, ELEMENTS };
	static const struct field fields[] = {{1, 0},	{1, 0},		 {1, 8}, {1, 10},
					      {8, 100}, {8, UINT64_MAX}, {0, 0}};
	static const struct limit limits[] = {
		{{{0}}, 0},
		{{{VERSION, 1, 1}}, -ENOTSUP},
		{{{VERSION, 1, 1}, {CLIENT, 1, 1}}, -ENOTSUP},
		{{{VERSION, 1, 1}, {CLIENT, 1, 2}}, 0},
		{{{VERSION, 1, 2}, {CLIENT, 1, 2}}, -ENOTSUP},
		{{{ELEMENT, 1, 0}}, -EUCLEAN},
		{{{ELEMENT, 1, 1}}, 0},
		{{{PAGE, 1, 63}}, 0},
		{{{PAGE, 1, 64}}, -EUCLEAN},
		/* bytes of all elements; with those of the block around them; with the checksums of pages */
		{{{ELEMENTS, 8, UINT64_C(1) << 61}}, -EUCLEAN},
		{{{ELEMENTS, 8, (UINT64_C(1) << 61) - 3}, {PAGE, 1, 63}}, 0},
		{{{ELEMENTS, 8, (UINT64_C(1) << 61) - 2}, {PAGE, 1, 63}}, -EUCLEAN},
		{{{ELEMENTS, 8, (UINT64_C(1) << 61) - 3}}, -EUCLEAN},
		{{{ELEMENTS, 8, UINT64_C(1) << 60}}, 0},
		{{{ELEMENTS, 8, UINT64_MAX}, {ELEMENT, 1, 1}, {PAGE, 1, 0}}, -EUCLEAN},
	};

	CHECK(decode_fixed, "FAHD", fields, limits);
}
END_TEST

/* ---- version 2 B-tree ---- */

static int decode_btree2(struct h5_reader *r)
{
	struct h5_btree2_header header;

	return h5_btree2_header_decode(r, &header);
}

START_TEST(btree2)
{
	enum { VERSION = 4, NODE = 6, RECORD = 10, DEPTH = 12, LINK_ORDER = 6 };
	static const struct field fields[] = {{1, 0},  {1, LINK_ORDER}, {4, 64}, {2, 8}, {2, 0}, {1, 98},
					      {1, 40}, {8, 48},		{2, 0},	 {8, 0}, {0, 0}};
	static const struct limit limits[] = {
		{{{0}}, 0},
		{{{VERSION, 1, 1}}, -ENOTSUP},
		/* 10 bytes are no records */
		{{{NODE, 4, 0}}, -EUCLEAN},
		{{{NODE, 4, 9}}, -EUCLEAN},
		{{{NODE, 4, 10}}, -EUCLEAN},
		{{{NODE, 4, 17}}, -EUCLEAN},
		{{{NODE, 4, 18}}, 0},
		{{{RECORD, 2, 0}}, -EUCLEAN},
		{{{RECORD, 2, 54}}, 0},
		{{{RECORD, 2, 55}}, -EUCLEAN},
		/* a record in each node: two children, and 2^64 - 1 records in a tree of depth 63 */
		{{{NODE, 4, 100}, {RECORD, 2, 50}, {DEPTH, 2, 63}}, 0},
		{{{NODE, 4, 100}, {RECORD, 2, 50}, {DEPTH, 2, 64}}, -EUCLEAN},
		{{{NODE, 4, 100}, {RECORD, 2, 50}, {DEPTH, 2, 65535}}, -EUCLEAN},
		/* inner nodes have no room for a record and two pointers */
		{{{RECORD, 2, 36}, {DEPTH, 2, 1}}, 0},
		{{{RECORD, 2, 37}, {DEPTH, 2, 1}}, -EUCLEAN},
		{{{NODE, 4, 18}, {DEPTH, 2, 1}}, -EUCLEAN},
		/* more than 2^64 - 1 records */
		{{{DEPTH, 2, 63}}, -EUCLEAN},
	};

	CHECK(decode_btree2, "BTHD", fields, limits);
}
END_TEST

/* ---- fractal heap ---- */

static int decode_heap(struct h5_reader *r)
{
	struct h5_fractal_heap heap;
	int rc = h5_fractal_heap_decode(r, &heap);

	h5_fractal_heap_release(&heap);
	return rc;
}

START_TEST(fractal_heap)
{
	enum { VERSION = 4, ID = 5, WIDTH = 110, START = 112, DIRECT = 120, BITS = 128, ROWS = 140 };
	static const struct field fields[] = {
		{1, 0}, {2, 8},		 {2, 0}, {1, 2}, {4, 4096}, {8, 0},	{8, UINT64_MAX},
		{8, 0}, {8, UINT64_MAX}, {8, 0}, {8, 0}, {8, 0},    {8, 0},	{8, 0},
		{8, 0}, {8, 0},		 {8, 0}, {2, 4}, {8, 512},  {8, 65536}, {2, 32},
		{2, 1}, {8, UINT64_MAX}, {2, 0}, {0, 0}};
	static const struct limit limits[] = {
		{{{0}}, 0},
		{{{VERSION, 1, 1}}, -EUCLEAN},
		{{{ID, 2, 0}}, -EUCLEAN},
		{{{ID, 2, 1}}, 0},
		/* powers of two */
		{{{WIDTH, 2, 0}}, -EUCLEAN},
		{{{WIDTH, 2, 3}}, -EUCLEAN},
		{{{WIDTH, 2, 1}}, 0},
		{{{START, 8, 0}}, -EUCLEAN},
		{{{START, 8, 513}}, -EUCLEAN},
		{{{START, 8, 65536}}, 0},
		{{{START, 8, 131072}}, -EUCLEAN},
		{{{DIRECT, 8, 0}}, -EUCLEAN},
		{{{DIRECT, 8, 65537}}, -EUCLEAN},
		{{{DIRECT, 8, H5_FRACTAL_HEAP_DIRECT_MAX}}, 0},
		{{{DIRECT, 8, 2 * (uint64_t)H5_FRACTAL_HEAP_DIRECT_MAX}}, -ENOTSUP},
		/* the address space has a row, and a direct block of each size */
		{{{BITS, 2, 16}}, 0},
		{{{BITS, 2, 15}}, -EUCLEAN},
		{{{BITS, 2, 64}}, 0},
		{{{BITS, 2, 65}}, -EUCLEAN},
		{{{BITS, 2, 24}, {WIDTH, 2, 32768}}, 0},
		{{{BITS, 2, 23}, {WIDTH, 2, 32768}}, -EUCLEAN},
		/* rows of 2^11, 2^11, 2^12, ... bytes: 22 of them have 2^32 */
		{{{ROWS, 2, 22}}, 0},
		{{{ROWS, 2, 23}}, -EUCLEAN},
	};

	CHECK(decode_heap, "FRHP", fields, limits);
}
END_TEST

/* The bytes that a heap's header has are known from its first ones; it may be the last in the file. */
static void check_heap_size(const struct field *fields)
{
	static const struct change none[CHANGES];
	uint8_t bytes[BYTES_MAX];
	size_t n = build(bytes, "FRHP", fields, none), size;
	struct h5_reader r = h5_reader_init(bytes, H5_FRACTAL_HEAP_PREFIX, 0, 8, 8);

	ck_assert_int_eq(h5_fractal_heap_size(&r, &size), 0);
	ck_assert_uint_eq(size, n);
	bytes[0] = 'f';
	r = h5_reader_init(bytes, H5_FRACTAL_HEAP_PREFIX, 0, 8, 8);
	ck_assert_int_eq(h5_fractal_heap_size(&r, &size), -EUCLEAN);
}

START_TEST(sizes_of_fractal_heaps)
{
	enum { FILTERS = 6 };
	/* version, bytes of an ID, bytes of the filters, flags; then as above */
#define FIELDS(filters)                                                                                      \
	{1, 0}, {2, 8}, {2, filters}, {1, 2}, {4, 4096}, {8, 0}, {8, 0}, {8, 0}, {8, 0}, {8, 0}, {8, 0},     \
		{8, 0}, {8, 0}, {8, 0}, {8, 0}, {8, 0}, {8, 0}, {2, 4}, {8, 512}, {8, 65536}, {2, 32},       \
		{2, 1}, {8, 0},                                                                              \
	{                                                                                                    \
		2, 0                                                                                         \
	}
	static const struct field plain[] = {FIELDS(0), {0, 0}};
	/* bytes of the root block, mask, filters */
	static const struct field filtered[] = {FIELDS(FILTERS), {8, 512}, {4, 0}, {FILTERS, 0}, {0, 0}};
#undef FIELDS

	check_heap_size(plain);
	check_heap_size(filtered);
}
END_TEST

UNIT_MAIN("header_limits", extensible_array, fixed_array, btree2, fractal_heap, sizes_of_fractal_heaps)

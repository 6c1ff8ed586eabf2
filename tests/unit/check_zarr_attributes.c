/* Attributes in the metadata of a Zarr array or group: the very text of each kind of value. */
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/writer.h"
#include "format/datatype_make.h"
#include "object/attribute_write.h"
#include "scratch.h"
#include "view/views.h"
#include "view/zarr.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scratch scratch;
static uint64_t address; /* of the object whose attributes are shown */

static void make(struct h5_datatype *type)
{
	const struct h5_new_dataset how = {
		.type = type,
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 1, .dims = {3}, .max = {3}},
		.layout = H5_LAYOUT_CONTIGUOUS};

	SUCCEEDS(h5_dataset_create(scratch.file, &how, &address));
	h5_datatype_free(type);
}

static void setup(void)
{
	scratch_init(&scratch, "header_create-latest.h5");
	scratch_open(&scratch);
	make(h5_datatype_make_float(8, H5_ORDER_LE));
}

static void teardown(void)
{
	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_dataset_writers_close(scratch.file);
	scratch_release(&scratch);
}

/* The text of the object's attributes. */
static void check(bool is_array, enum h5_zarr_version version, const char *expected)
{
	struct h5_view_tree tree = {.file = scratch.file, .root = h5_file_superblock(scratch.file)->root};
	struct h5_view v = {.ops = &h5_view_zarr,
			    .file = scratch.file,
			    .address = address,
			    .tree = &tree,
			    .context = {.file = scratch.file}};
	struct h5_zarr_array array;
	struct h5_buf out;

	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_buf_init(&out, 1000);
	SUCCEEDS(h5_view_begin(&v, NULL));
	SUCCEEDS(h5_view_complete(&v));
	if (is_array)
		SUCCEEDS(h5_zarr_array_init(&array, version, v.dataset));
	SUCCEEDS(h5_zarr_add_attributes(&v, is_array ? &array : NULL, &out));
	h5_buf_byte(&out, 0);
	ck_assert_str_eq(out.data, expected);
	h5_buf_release(&out);
	h5_view_release(&v);
}

/* Makes the attribute; the type is released. */
static void give(const char *name, struct h5_datatype *type, const struct h5_dataspace *space,
		 const void *data)
{
	SUCCEEDS(h5_attribute_create(scratch.file, address, name, type, space, data));
	h5_datatype_free(type);
}

static void take(const char *name)
{
	SUCCEEDS(h5_attribute_remove(scratch.file, address, name));
}

static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};

/* What becomes of one value, without a space. NULL: it is left out. */
static void shows(struct h5_datatype *type, const struct h5_dataspace *space, const void *data,
		  const char *expected)
{
	char all[300];

	give("a", type, space, data);
	snprintf(all, sizeof all, expected ? "{\"a\":%s}" : "{}", expected);
	check(false, 0, all);
	take("a");
}

/* ---- numbers ---- */

START_TEST(floats)
{
	static const struct {
		double value;
		const char *text;
	} all[] = {{0, "0.0"},
		   {-0.0, "-0.0"},
		   {1, "1.0"},
		   {-2.5, "-2.5"},
		   {0.1, "0.1"},
		   {0.1 + 0.2, "0.30000000000000004"},
		   {1e300, "1e+300"},
		   {5e-324, "4.94065645841247e-324"},
		   {123456789012345, "123456789012345.0"},
		   {1234567890123456, "1234567890123456.0"},
		   {9007199254740992, "9007199254740992.0"},
		   {12345678901234568, "12345678901234568.0"},
		   {1e17, "1e+17"},
		   {NAN, "NaN"},
		   {INFINITY, "Infinity"},
		   {-INFINITY, "-Infinity"}};
	const float tenth = 0.1f;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		shows(h5_datatype_make_float(8, H5_ORDER_LE), &scalar, &all[i].value, all[i].text);
	shows(h5_datatype_make_float(4, H5_ORDER_LE), &scalar, &tenth, "0.10000000149011612");
}
END_TEST

/* The upper half of a float. */
static struct h5_datatype *bfloat16(void)
{
	struct h5_datatype *type = h5_datatype_make_float(2, H5_ORDER_LE);

	type->fl.exponent = type->fl.mantissa_size = 7;
	type->fl.exponent_size = 8;
	type->fl.bias = 127;
	return type;
}

START_TEST(floats_that_are_no_doubles)
{
	static const struct {
		uint16_t bits;
		const char *text;
	} all[] = {{0, "0.0"},	     {0x3f80, "1.0"},	   {0xbfc0, "-1.5"},	  {0x4348, "200.0"},
		   {0x7fc0, "NaN"},  {0x7f80, "Infinity"}, {0xff80, "-Infinity"}, {0x714a, "1e+30"},
		   {0x0da2, "1e-30"}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		shows(bfloat16(), &scalar, &all[i].bits, all[i].text);
}
END_TEST

START_TEST(whole_numbers)
{
	const uint64_t most = UINT64_MAX;
	const int8_t bytes[] = {0, 1, -1};
	struct h5_datatype *two;

	shows(h5_datatype_make_integer(8, false, H5_ORDER_LE), &scalar, &most, "18446744073709551615");
	shows(h5_datatype_make_integer(1, true, H5_ORDER_LE), &scalar, bytes + 2, "-1");
	shows(h5_datatype_make_boolean(), &scalar, bytes, "false");
	shows(h5_datatype_make_boolean(), &scalar, bytes + 1, "true");
	/* Those of another enumeration are numbers. */
	two = h5_datatype_make_boolean();
	two->enumeration.members[0].name[0] = 'X';
	shows(two, &scalar, bytes + 1, "1");
}
END_TEST

START_TEST(complex_numbers)
{
	const double numbers[] = {1, -2, NAN, 0.5};
	const float small[] = {3, 4};
	const struct h5_dataspace two = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 2, .dims = {2}, .max = {2}};
	struct h5_datatype *pair = h5_datatype_make_complex(16, H5_ORDER_LE);

	shows(h5_datatype_make_complex(16, H5_ORDER_LE), &scalar, numbers, "[1.0,-2.0]");
	shows(h5_datatype_make_complex(8, H5_ORDER_LE), &scalar, small, "[3.0,4.0]");
	shows(h5_datatype_make_complex(16, H5_ORDER_LE), &two, numbers, "[[1.0,-2.0],[NaN,0.5]]");
	pair->compound.members[1].name[0] = 'x';
	shows(pair, &scalar, numbers, "{\"r\":1,\"x\":-2}");
}
END_TEST

/* ---- shapes ---- */

/* Values of so many dimensions, from 1 on. */
static void shaped(unsigned rank, uint64_t n, uint64_t m, uint64_t k, const char *expected)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE,
					   .rank = rank,
					   .elements = n * m * k,
					   .dims = {n, m, k},
					   .max = {n, m, k}};

	shows(h5_datatype_make_integer(1, false, H5_ORDER_LE), &space, bytes, expected);
}

START_TEST(dimensions)
{
	static const uint64_t dims[] = {2, 2};
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct h5_dataspace null = {.kind = H5_SPACE_NULL}, two = {.kind = H5_SPACE_SIMPLE,
									 .rank = 1,
									 .elements = 2,
									 .dims = {2},
									 .max = {2}};

	shaped(1, 1, 1, 1, "1");
	shaped(3, 1, 1, 1, "1");
	shaped(1, 3, 1, 1, "[1,2,3]");
	shaped(2, 2, 3, 1, "[[1,2,3],[4,5,6]]");
	shaped(2, 1, 2, 1, "[[1,2]]");
	shaped(2, 2, 1, 1, "[[1],[2]]");
	shaped(3, 2, 1, 3, "[[[1,2,3]],[[4,5,6]]]");
	shaped(3, 2, 2, 2, "[[[1,2],[3,4]],[[5,6],[7,8]]]");
	shaped(1, 0, 1, 1, "[]");
	shaped(2, 2, 0, 1, "[]");
	shows(h5_datatype_make_integer(1, false, H5_ORDER_LE), &null, NULL, "null");
	shows(h5_datatype_make_string(3, H5_PAD_NULLPAD, H5_CHARSET_UTF8), &null, NULL, "\"\"");
	/* A type with dimensions of its own. */
	shows(h5_datatype_make_array(2, dims, h5_datatype_make_integer(1, false, H5_ORDER_LE)), &scalar,
	      bytes, "[[1,2],[3,4]]");
	shows(h5_datatype_make_array(1, dims, h5_datatype_make_integer(1, false, H5_ORDER_LE)), &two, bytes,
	      "[[1,2],[3,4]]");
}
END_TEST

START_TEST(texts)
{
	const struct h5_dataspace two = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 2, .dims = {2}, .max = {2}};

	shows(h5_datatype_make_string(3, H5_PAD_NULLPAD, H5_CHARSET_UTF8), &scalar, "x\"\0", "\"x\\\"\"");
	shows(h5_datatype_make_string(2, H5_PAD_NULLPAD, H5_CHARSET_UTF8), &two, "ab\0\0", "[\"ab\",\"\"]");
}
END_TEST

/* ---- which attributes ---- */

START_TEST(types_that_are_left_out)
{
	struct h5_datatype *type = h5_datatype_make_integer(8, false, H5_ORDER_LE), *whole;
	const uint64_t to = address;

	type->class = H5_CLASS_REFERENCE;
	type->reference.kind = H5_REF_OBJECT;
	whole = h5_datatype_make_compound(8, 1);
	SUCCEEDS(h5_datatype_add_member(whole, "m", 0, type));
	shows(whole, &scalar, &to, NULL);
	shows(h5_datatype_make_opaque(1, ""), &scalar, "x", NULL);
}
END_TEST

START_TEST(names_that_are_left_out)
{
	static const char *const internal[] = {"REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates",
					       "_NCProperties",	 "_nc3_strict",	  "_ARRAY_DIMENSIONS"},
				 *const of_scales[] = {"CLASS", "NAME"};
	const uint8_t one = 1;

	for (size_t i = 0; i < sizeof internal / sizeof *internal; i++)
		give(internal[i], h5_datatype_make_integer(1, false, H5_ORDER_LE), &scalar, &one);
	check(false, 0, "{}");
	/* These say something of what is a scale alone. */
	for (size_t i = 0; i < 2; i++)
		give(of_scales[i], h5_datatype_make_integer(1, false, H5_ORDER_LE), &scalar, &one);
	check(false, 0, "{\"CLASS\":1,\"NAME\":1}");
	take("CLASS");
	give("CLASS", h5_datatype_make_string(15, H5_PAD_NULLPAD, H5_CHARSET_ASCII), &scalar,
	     "DIMENSION_SCALE");
	check(false, 0, "{}");
}
END_TEST

/* In version 3 that of an array of floats is the bytes of a double. */
START_TEST(fill_values)
{
	const double value = 1;
	const float narrow = 1;
	const int16_t whole = 1;
	const struct h5_dataspace two = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 2, .dims = {2}, .max = {2}};
	const double both[] = {1, 2};
	static const char encoded[] = "{\"_FillValue\":\"AAAAAAAA8D8=\"}";
	static const char name[] = "_FillValue";

	give(name, h5_datatype_make_float(8, H5_ORDER_LE), &scalar, &value);
	check(true, H5_ZARR_V3, encoded);
	check(true, H5_ZARR_V2, "{\"_FillValue\":1.0,\"_ARRAY_DIMENSIONS\":[\"phony_dim_3\"]}");
	check(false, 0, "{\"_FillValue\":1.0}");
	take(name);
	give(name, h5_datatype_make_float(4, H5_ORDER_LE), &scalar, &narrow);
	check(true, H5_ZARR_V3, encoded);
	take(name);
	give(name, h5_datatype_make_integer(2, true, H5_ORDER_LE), &scalar, &whole);
	check(true, H5_ZARR_V3, encoded);
	take(name);
	/* No value of an element. */
	give(name, h5_datatype_make_float(8, H5_ORDER_LE), &two, both);
	check(true, H5_ZARR_V3, "{\"_FillValue\":[1.0,2.0]}");
	take(name);
	give(name, h5_datatype_make_string(1, H5_PAD_NULLPAD, H5_CHARSET_ASCII), &scalar, "x");
	check(true, H5_ZARR_V3, "{\"_FillValue\":\"x\"}");
	take(name);
	give("_FillValu", h5_datatype_make_float(8, H5_ORDER_LE), &scalar, &value);
	check(true, H5_ZARR_V3, "{\"_FillValu\":1.0}");
	/* An array of whole numbers. */
	make(h5_datatype_make_integer(2, true, H5_ORDER_LE));
	give(name, h5_datatype_make_integer(2, true, H5_ORDER_LE), &scalar, &whole);
	check(true, H5_ZARR_V3, "{\"_FillValue\":1}");
}
END_TEST

UNIT_MAIN_AROUND("zarr attributes", setup, teardown, floats, floats_that_are_no_doubles, whole_numbers,
		 complex_numbers, dimensions, texts, types_that_are_left_out, names_that_are_left_out,
		 fill_values)

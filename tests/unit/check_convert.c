/* Elements of one datatype as elements of another, and when that is needed. Bytes by hand. */
#include "format/convert.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INTEGER(bytes, is_le, sign)                                                                          \
	{                                                                                                    \
		.class = H5_CLASS_INTEGER, .size = (bytes), .order = (is_le) ? H5_ORDER_LE : H5_ORDER_BE,    \
		.precision = 8 * (bytes), .is_signed = (sign)                                                \
	}
#define FLOAT(bytes, is_le, e)                                                                               \
	{                                                                                                    \
		.class = H5_CLASS_FLOAT, .size = (bytes), .order = (is_le) ? H5_ORDER_LE : H5_ORDER_BE,      \
		.precision = 8 * (bytes),                                                                    \
		.fl = {.norm = H5_NORM_IMPLIED,                                                              \
		       .sign = 8 * (bytes)-1,                                                                \
		       .exponent = 8 * (bytes)-1 - (e),                                                      \
		       .exponent_size = (e),                                                                 \
		       .mantissa_size = 8 * (bytes)-1 - (e),                                                 \
		       .bias = (1u << ((e)-1)) - 1 }                                                         \
	}
#define STRING(bytes, pad)                                                                                   \
	{                                                                                                    \
		.class = H5_CLASS_STRING, .size = (bytes), .string = {.padding = (pad) }                     \
	}

static const struct h5_datatype i1 = INTEGER(1, true, true), u1 = INTEGER(1, true, false),
				i2be = INTEGER(2, false, true), u3 = INTEGER(3, true, false),
				i4 = INTEGER(4, true, true), u4 = INTEGER(4, true, false),
				i8 = INTEGER(8, true, true), i8be = INTEGER(8, false, true),
				u8 = INTEGER(8, true, false), u8be = INTEGER(8, false, false),
				f2 = FLOAT(2, false, 5), f4 = FLOAT(4, false, 8), f8 = FLOAT(8, false, 11);

/* ---- elements ---- */

/* Several elements, each of these bytes; nothing behind them is read or written. */
static void check(const struct h5_datatype *from, const char *in, const struct h5_datatype *to,
		  const char *expected)
{
	enum { MANY = 3 };
	uint8_t *source = malloc(MANY * from->size), *out = malloc(MANY * to->size + 1);

	for (unsigned n = 0; n <= MANY; n++) {
		for (unsigned i = 0; i < MANY; i++)
			memcpy(source + i * from->size, in, from->size);
		memset(out, 0xa5, MANY * to->size + 1);
		ck_assert(h5_convert_can(from, to));
		h5_convert(from, source, to, out, n);
		for (unsigned i = 0; i < n; i++)
			ck_assert_mem_eq(out + i * to->size, expected, to->size);
		for (size_t i = n * to->size; i < MANY * to->size + 1; i++)
			ck_assert_uint_eq(out[i], 0xa5);
	}
	free(out);
	free(source);
}

/* What does not fit becomes the nearest that does. */
START_TEST(numbers)
{
	static const struct {
		const struct h5_datatype *from;
		const char *in;
		const struct h5_datatype *to;
		const char *out;
	} cases[] = {
		{&i1, "\x80", &i2be, "\xff\x80"},
		{&i1, "\x80", &u1, "\0"},
		{&i1, "\x7f", &u1, "\x7f"},
		{&u1, "\x7f", &i1, "\x7f"},
		{&u1, "\x80", &i1, "\x7f"},
		{&i2be, "\xff\x81", &i1, "\x81"},
		{&i2be, "\xff\x80", &i1, "\x80"},
		{&i2be, "\xff\x7f", &i1, "\x80"},
		{&i2be, "\x00\xff", &u1, "\xff"},
		{&i2be, "\x01\x00", &u1, "\xff"},
		{&i2be, "\xff\xfe", &f4, "\xc0\0\0\0"},
		{&u8, "\xff\xff\xff\xff\xff\xff\xff\xff", &i8, "\xff\xff\xff\xff\xff\xff\xff\x7f"},
		{&u8, "\xff\xff\xff\xff\xff\xff\xff\xff", &u8be, "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{&u8, "\xff\xff\xff\xff\xff\xff\xff\xff", &u3, "\xff\xff\xff"},
		{&u8, "\xff\xff\xff\xff\xff\xff\xff\xff", &f8, "\x43\xf0\0\0\0\0\0\0"},
		{&u8, "\xff\xff\xff\xff\xff\xff\xff\xff", &f4, "\x5f\x80\0\0"},
		{&u3, "\x01\x02\x83", &u8be, "\0\0\0\0\0\x83\x02\x01"},
		{&i8, "\0\0\0\0\0\0\0\x80", &i1, "\x80"},
		{&i8, "\0\0\0\0\0\0\0\x80", &i8be, "\x80\0\0\0\0\0\0\0"},
		{&i8, "\0\0\0\0\0\0\0\x80", &f8, "\xc3\xe0\0\0\0\0\0\0"},
		{&f8, "\x41\xef\xff\xff\xff\xe0\0\0", &u4, "\xff\xff\xff\xff"},		  /* 2^32 - 1 */
		{&f8, "\x41\xf0\0\0\0\0\0\0", &u4, "\xff\xff\xff\xff"},			  /* 2^32 */
		{&f8, "\x3f\xef\xff\xff\xff\xff\xff\xff", &u1, "\0"},			  /* nearly 1 */
		{&f8, "\x3f\xf0\0\0\0\0\0\0", &u1, "\1"},				  /* 1 */
		{&f8, "\xbf\xef\xff\xff\xff\xff\xff\xff", &i1, "\0"},			  /* nearly -1 */
		{&f8, "\xbf\xf0\0\0\0\0\0\0", &i1, "\xff"},				  /* -1 */
		{&f8, "\xbf\xf8\0\0\0\0\0\0", &i1, "\xff"},				  /* -1.5 */
		{&f8, "\xbf\xf8\0\0\0\0\0\0", &u1, "\0"},				  /* -1.5 */
		{&f8, "\x7f\xf8\0\0\0\0\0\0", &i4, "\0\0\0\0"},				  /* NaN */
		{&f8, "\x7f\xf0\0\0\0\0\0\0", &i4, "\xff\xff\xff\x7f"},			  /* infinity */
		{&f8, "\xff\xf0\0\0\0\0\0\0", &i4, "\0\0\0\x80"},			  /* -infinity */
		{&f8, "\x43\xe0\0\0\0\0\0\0", &u8be, "\x80\0\0\0\0\0\0\0"},		  /* 2^63 */
		{&f8, "\x43\xf0\0\0\0\0\0\0", &u8be, "\xff\xff\xff\xff\xff\xff\xff\xff"}, /* 2^64 */
		{&f8, "\x43\xe0\0\0\0\0\0\0", &i8be, "\x7f\xff\xff\xff\xff\xff\xff\xff"},
		{&f8, "\xc3\xd0\0\0\0\0\0\0", &i8be, "\xc0\0\0\0\0\0\0\0"}, /* -2^62 */
		{&f8, "\xc3\xe0\0\0\0\0\0\0", &i8be, "\x80\0\0\0\0\0\0\0"}, /* -2^63 */
		{&f8, "\xc3\xf0\0\0\0\0\0\0", &i8be, "\x80\0\0\0\0\0\0\0"}, /* -2^64 */
		{&f4, "\x3f\x80\0\0", &f8, "\x3f\xf0\0\0\0\0\0\0"},
		{&f8, "\x3f\xf0\0\0\0\0\0\1", &f4, "\x3f\x80\0\0"},
		{&f8, "\x47\xf0\0\0\0\0\0\0", &f4, "\x7f\x80\0\0"}, /* 2^128 */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(cases[i].from, cases[i].in, cases[i].to, cases[i].out);
}
END_TEST

/* What is too long is cut; a terminated one keeps its NUL. */
START_TEST(strings)
{
	static const struct {
		struct h5_datatype from;
		const char *in;
		struct h5_datatype to;
		const char *out;
	} cases[] = {
		{STRING(4, H5_PAD_NULLTERM), "abc", STRING(5, H5_PAD_SPACEPAD), "abc  "},
		{STRING(4, H5_PAD_NULLTERM), "ab\0x", STRING(3, H5_PAD_NULLPAD), "ab"},
		{STRING(4, H5_PAD_NULLTERM), "ab\0x", STRING(6, H5_PAD_NULLPAD), "ab\0\0\0"},
		{STRING(4, H5_PAD_SPACEPAD), "a b ", STRING(4, H5_PAD_NULLTERM), "a b"},
		{STRING(4, H5_PAD_SPACEPAD), "abcd", STRING(4, H5_PAD_NULLTERM), "abc"},
		{STRING(4, H5_PAD_SPACEPAD), "abcd", STRING(1, H5_PAD_NULLTERM), ""},
		{STRING(4, H5_PAD_NULLPAD), "abcd", STRING(2, H5_PAD_NULLPAD), "ab"},
		{STRING(3, H5_PAD_SPACEPAD), "   ", STRING(2, H5_PAD_NULLPAD), "\0"},
		{STRING(2, H5_PAD_NULLPAD), "ab", STRING(2, H5_PAD_SPACEPAD), "ab"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(&cases[i].from, cases[i].in, &cases[i].to, cases[i].out);
}
END_TEST

START_TEST(which_can_be_converted)
{
	struct h5_datatype text = STRING(4, H5_PAD_NULLPAD), odd = i2be, wide = INTEGER(9, true, false),
			   vax = f4, loose = f8, opaque = {.class = H5_CLASS_OPAQUE, .size = 4};
	const struct h5_datatype *const others[] = {&odd, &wide, &vax, &loose, &opaque, &f2};

	odd.precision = 15;
	vax.order = H5_ORDER_VAX;
	loose.fl.bias++;
	ck_assert(h5_convert_can(&text, &text));
	ck_assert(h5_convert_can(&i1, &f8));
	ck_assert(h5_convert_can(&f4, &u3));
	ck_assert(!h5_convert_can(&text, &i4));
	ck_assert(!h5_convert_can(&i4, &text));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		ck_assert(!h5_convert_can(others[i], &i4));
		ck_assert(!h5_convert_can(&i4, others[i]));
	}
}
END_TEST

START_TEST(as_doubles)
{
	static const struct {
		const char *in;
		double out;
	} halves[] = {{"\x3c\x00", 1},	      {"\xc0\x00", -2},	       {"\x7b\xff", 65504},
		      {"\x04\x00", 0x1p-14},  {"\x03\xff", 0x3ffp-24}, {"\x00\x01", 0x1p-24},
		      {"\x7c\x00", INFINITY}, {"\xfc\x00", -INFINITY}, {"\x80\x00", 0}};
	struct h5_datatype names = {
		.class = H5_CLASS_ENUM, .size = 2, .enumeration = {.base = (void *)&i2be}};
	double found[3] = {-7, -7, -7};

	for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
		h5_convert_to_doubles(&f2, (const uint8_t *)halves[i].in, 1, found);
		ck_assert(found[0] == halves[i].out);
		ck_assert(found[1] == -7);
	}
	/* The least and the most mantissa of no number, with either sign */
	for (unsigned i = 0; i < 4; i++) {
		const uint8_t nan[] = {i % 2 ? 0x7c : 0xff, i / 2 ? 0x01 : 0xff};

		h5_convert_to_doubles(&f2, nan, 1, found);
		ck_assert(isnan(found[0]));
	}
	h5_convert_to_doubles(&f2, (const uint8_t *)"\x80\x00", 1, found);
	ck_assert(found[0] == 0 && signbit(found[0]));
	h5_convert_to_doubles(&f2, (const uint8_t *)"\x7e\x00", 1, found);
	ck_assert(isnan(found[0]));
	h5_convert_to_doubles(&names, (const uint8_t *)"\xff\xfe\0\5", 2, found);
	ck_assert(found[0] == -2 && found[1] == 5 && found[2] == -7);
}
END_TEST

/* ---- the same type ---- */

/* They differ, whichever is asked first; each is as it is itself. */
static void check_differ(const struct h5_datatype *a, const struct h5_datatype *b)
{
	ck_assert(h5_convert_is_needed(a, b) && h5_convert_is_needed(b, a));
	ck_assert(!h5_convert_is_needed(a, a) && !h5_convert_is_needed(b, b));
}

#define DIFFER(original, change)                                                                             \
	do {                                                                                                 \
		struct h5_datatype t = (original);                                                           \
		ck_assert(!h5_convert_is_needed(&t, &(original)));                                           \
		change;                                                                                      \
		check_differ(&t, &(original));                                                               \
	} while (0)

START_TEST(other_numbers)
{
	struct h5_datatype text = STRING(4, H5_PAD_NULLTERM), same = text;

	DIFFER(i4, t.class = H5_CLASS_BITFIELD);
	DIFFER(i4, t.size = 8);
	DIFFER(i4, t.order = H5_ORDER_BE);
	DIFFER(i4, t.bit_offset = 1);
	DIFFER(i4, t.precision = 31);
	DIFFER(i4, t.is_signed = false);
	DIFFER(f8, t.fl.norm = H5_NORM_NONE);
	DIFFER(f8, t.fl.sign--);
	DIFFER(f8, t.fl.exponent++);
	DIFFER(f8, t.fl.exponent_size--);
	DIFFER(f8, t.fl.mantissa++);
	DIFFER(f8, t.fl.mantissa_size--);
	DIFFER(f8, t.fl.bias++);
	DIFFER(text, t.string.padding = H5_PAD_SPACEPAD);
	same.string.charset = H5_CHARSET_UTF8;
	ck_assert(!h5_convert_is_needed(&text, &same));
}
END_TEST

START_TEST(other_parts)
{
	struct h5_member members[2] = {{"a", 0, (void *)&i4}, {"b", 4, (void *)&u4}}, others[2];
	struct h5_datatype compound = {
		.class = H5_CLASS_COMPOUND, .size = 8, .compound = {.count = 2, .members = members}};
	struct h5_datatype array = {.class = H5_CLASS_ARRAY,
				    .size = 24,
				    .array = {.rank = 2, .dims = {2, 3}, .count = 6, .base = (void *)&i4}};
	struct h5_datatype list = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.base = (void *)&i4}};
	struct h5_datatype others_list, time = {.class = H5_CLASS_TIME, .size = 4, .precision = 32};
	struct h5_datatype address = {
		.class = H5_CLASS_REFERENCE, .size = 8, .reference = {.kind = H5_REF_OBJECT}};
	struct h5_datatype complex = {.class = H5_CLASS_COMPLEX, .size = 8, .complex = {.base = (void *)&f4}};

	DIFFER(compound, t.compound.count = 1);
	for (int i = 0; i < 3; i++) {
		memcpy(others, members, sizeof others);
		if (i == 0)
			others[1].name = "c";
		else if (i == 1)
			others[1].offset = 3;
		else
			others[1].type = (void *)&i4;
		DIFFER(compound, t.compound.members = others);
	}
	DIFFER(array, t.array.rank = 1);
	DIFFER(array, t.array.dims[1] = 4);
	DIFFER(array, t.array.base = (void *)&u4);
	DIFFER(list, t.vlen.base = (void *)&u4);
	DIFFER(list, t.vlen.is_string = true);
	/* What strings consist of does not matter, nor the tags of opaque elements. */
	list.vlen.is_string = true;
	others_list = list;
	others_list.vlen.base = (void *)&u4;
	ck_assert(!h5_convert_is_needed(&list, &others_list));
	DIFFER(list, t.vlen.is_string = false);
	ck_assert(!h5_convert_is_needed(&(struct h5_datatype){.class = H5_CLASS_OPAQUE, .size = 4},
					&(struct h5_datatype){.class = H5_CLASS_OPAQUE, .size = 4}));
	DIFFER(time, t.precision = 31);
	DIFFER(address, t.reference.kind = H5_REF_REGION);
	DIFFER(complex, t.complex.base = (void *)&i4);
}
END_TEST

START_TEST(other_names)
{
	uint8_t values[] = {1, 2}, changed[] = {1, 3};
	struct h5_enum_member members[] = {{"one", values}, {"two", values + 1}},
			      renamed[] = {{"one", values}, {"too", values + 1}};
	struct h5_datatype names = {
		.class = H5_CLASS_ENUM,
		.size = 1,
		.enumeration = {.base = (void *)&u1, .count = 2, .members = members, .values = values}};

	DIFFER(names, t.enumeration.count = 1);
	DIFFER(names, t.enumeration.base = (void *)&i1);
	DIFFER(names, t.enumeration.members = renamed);
	DIFFER(names, t.enumeration.values = changed);
}
END_TEST

UNIT_MAIN("convert", numbers, strings, which_can_be_converted, as_doubles, other_numbers, other_parts,
	  other_names)

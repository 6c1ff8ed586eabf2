/* The messages of types, as libhdf5 writes them. */
#include "base/error.h"
#include "fault_alloc.h"
#include "format/convert.h"
#include "format/datatype_make.h"
#include "object/numpy_parse.h"
#include "object/value.h"
#include "scratch.h"
#include "values.h"

static const char *const styles[] = {"earliest", "latest"};

static struct h5_datatype *decode(const void *body, size_t n)
{
	struct h5_reader r = h5_reader_init(body, n, 0, 8, 8);
	struct h5_datatype *type;

	SUCCEEDS(h5_datatype_decode(&r, &type));
	return type;
}

/* Nothing but padding may be behind the message. */
static void encodes_as(const struct h5_datatype *type, bool latest, const uint8_t *body, size_t n,
		       const char *name)
{
	struct h5_buf out;

	h5_buf_init(&out, UINT16_MAX);
	SUCCEEDS(h5_datatype_encode(type, latest, &out));
	if (out.size > n || n - out.size >= 8 || memcmp(out.data, body, out.size))
		ck_abort_msg("%s: other bytes", name);
	for (; n > out.size; n--)
		ck_assert_uint_eq(body[n - 1], 0);
	h5_buf_release(&out);
}

/* What NumPy calls it is read as the same type. */
static void is_parsed(const char *dtype, const struct h5_datatype *type, bool latest, const uint8_t *body,
		      size_t n)
{
	struct h5_datatype *parsed;
	struct h5_buf name;

	if (!strcmp(dtype, "-"))
		return;
	h5_buf_init(&name, 100000);
	if (strcmp(dtype, "?"))
		h5_buf_text(&name, dtype);
	else
		h5_datatype_numpy(type, &name);
	SUCCEEDS(h5_numpy_parse(name.data, name.size, 8, &parsed));
	h5_buf_byte(&name, 0);
	encodes_as(parsed, latest, body, n, name.data);
	h5_datatype_free(parsed);
	h5_buf_release(&name);
}

START_TEST(messages_as_libhdf5_writes_them)
{
	char fixture[64], path[4096], row[400], name[100], dtype[200];
	unsigned long long address;
	struct scratch s;
	unsigned n = 0;
	FILE *f;

	snprintf(fixture, sizeof fixture, "datatype_encode-%s.txt", styles[_i]);
	f = open_data(fixture, path, sizeof path);
	snprintf(fixture, sizeof fixture, "datatype_encode-%s.h5", styles[_i]);
	scratch_init(&s, fixture);
	scratch_open(&s);
	while (fgets(row, sizeof row, f)) {
		struct h5_datatype *type;
		uint8_t *body;
		size_t size;

		ck_assert_int_eq(sscanf(row, "type %llu %99s %199[^\n]", &address, name, dtype), 3);
		body = scratch_message(&s, address, H5_MSG_DATATYPE, &size);
		type = decode(body, size);
		encodes_as(type, _i, body, size, name);
		is_parsed(dtype, type, _i, body, size);
		h5_datatype_free(type);
		free(body);
		n++;
	}
	ck_assert_uint_gt(n, 50);
	fclose(f);
	scratch_release(&s);
}
END_TEST

/* Types that libhdf5 1.10 cannot write, or not with the version that is asked for, are read back by our
 * decoder. */
static void reads_back(const struct h5_datatype *type, unsigned version)
{
	struct h5_datatype *again;
	struct h5_buf out;

	for (unsigned latest = 0; latest < 2; latest++) {
		h5_buf_init(&out, UINT16_MAX);
		SUCCEEDS(h5_datatype_encode(type, latest, &out));
		ck_assert_int_ge((uint8_t)out.data[0] >> 4, (int)version);
		again = decode(out.data, out.size);
		ck_assert(!h5_convert_is_needed(type, again));
		h5_datatype_free(again);
		h5_buf_release(&out);
	}
}

START_TEST(types_of_other_versions)
{
	struct h5_datatype vax = real(4, 8, 23, 129, H5_ORDER_VAX), f8 = real(8, 11, 52, 1023, H5_ORDER_BE);
	struct h5_datatype complex = {.class = H5_CLASS_COMPLEX, .size = 16, .complex = {&f8}};
	struct h5_datatype reference = {
		.class = H5_CLASS_REFERENCE, .size = 18, .reference = {H5_REF_ATTRIBUTE}};
	struct h5_datatype time = integer(8, 0, 64, false, H5_ORDER_BE);
	struct h5_member members[] = {
		{(char *)"v", 0, &vax}, {(char *)"c", 4, &complex}, {(char *)"r", 20, &reference}};
	struct h5_datatype all = {.class = H5_CLASS_COMPOUND, .size = 70000, .compound = {3, members}};

	time.class = H5_CLASS_TIME;
	reads_back(&vax, 3);
	reads_back(&complex, 5);
	reads_back(&reference, 4);
	reads_back(&time, 1);
	reads_back(&all, 5);
	all.compound.count = 1;
	reads_back(&all, 3);
}
END_TEST

START_TEST(too_large_for_a_message)
{
	struct h5_datatype *t = h5_datatype_make_compound(4000, 4000);
	struct h5_buf out;

	for (unsigned i = 0; i < 4000; i++)
		SUCCEEDS(h5_datatype_add_member(t, "a name that is not short", i,
						h5_datatype_make_integer(1, false, H5_ORDER_LE)));
	h5_buf_init(&out, UINT16_MAX);
	ck_assert_int_eq(h5_datatype_encode(t, true, &out), -E2BIG);
	h5_buf_release(&out);
	h5_datatype_free(t);
}
END_TEST

/* The length of a tag is a multiple of eight that one byte holds. A longer tag is cut. */
START_TEST(tags_of_opaque_types)
{
	enum { TAG_MAX = 248 };
	char tag[300] = "";

	for (size_t n = 0; n < sizeof tag - 1; n++) {
		struct h5_datatype *type = h5_datatype_make_opaque(4, tag), *again;
		struct h5_buf out;

		ck_assert_ptr_nonnull(type);
		h5_buf_init(&out, UINT16_MAX);
		SUCCEEDS(h5_datatype_encode(type, true, &out));
		ck_assert_uint_eq(out.size, 8 + (n < TAG_MAX ? (n + 7) / 8 * 8 : TAG_MAX));
		again = decode(out.data, out.size);
		ck_assert_uint_eq(again->size, 4);
		ck_assert_uint_eq(strlen(again->opaque.tag), n < TAG_MAX ? n : TAG_MAX);
		ck_assert_int_eq(strncmp(again->opaque.tag, tag, TAG_MAX), 0);
		h5_datatype_free(again);
		h5_datatype_free(type);
		h5_buf_release(&out);
		tag[n] = (char)('a' + n % 26);
	}
}
END_TEST

/* ---- names ---- */

/* Written again as the same, or as `again`. */
static void is_named(const char *text, const char *again)
{
	struct h5_dataspace space;
	struct h5_datatype *type;
	struct h5_buf name;

	if (h5_numpy_parse_shaped(text, strlen(text), 8, &type, &space))
		ck_abort_msg("%s: %s", text, h5_error_last()->text);
	ck_assert_int_eq(space.kind, *text == '(' ? H5_SPACE_SIMPLE : H5_SPACE_SCALAR);
	ck_assert_int_eq(space.rank > 0, *text == '(');
	ck_assert_mem_eq(space.max, space.dims, space.rank * sizeof *space.dims);
	h5_buf_init(&name, 100000);
	h5_datatype_numpy_shaped(type, &space, &name);
	ends_with(&name, again, strlen(again), text);
	h5_buf_release(&name);
	h5_datatype_free(type);
}

START_TEST(names_of_types)
{
	static const char *const same[] = {
		"<i4",
		">i8",
		"|u1",
		"|i1",
		"<f2",
		">f4",
		"<f8",
		"S1",
		"S4294967295",
		"|V16",
		"vlen str",
		"(3,)<i4",
		"(2,3,4)vlen str",
		"(0,)<f8",
		"(5,0)S3",
		"[[\"a\",\"<i4\"]]",
		"[[\"a\",\"<i4\"],[\"\",\"|V4\"],[\"b\",\"<f8\",[3]]]",
		"[[\"\",\"|V1\"],[\"a\\\"\",\"|u1\"],[\"\",\"|V1\"],[\"b\",\">f8\"],[\"\",\"|V5\"]]",
		"(2,)[[\"in\",[[\"x\",\"S3\"],[\"y\",\"<u2\",[2,3]]],[4]]]",
		"(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)<i2"};
	static const char *const others[][2] = {
		{"u1", "|u1"},
		{"i4", "<i4"},
		{">u1", "|u1"},
		{"|S5", "S5"},
		{"<V2", "|V2"},
		{"|b1", "|i1"},
		{">c16", "[[\"r\",\">f8\"],[\"i\",\">f8\"]]"},
		{"[[\"a\",\"f4\",3]]", "[[\"a\",\"<f4\",[3]]]"},
		{"[[\"s\",\"vlen str\"],[\"n\",\"u1\"]]", "object"},
	};
	static const char *const wrong[] = {
		"",
		"i",
		"i3",
		"i16",
		"u0",
		"f1",
		"f16",
		"c4",
		"c32",
		"b2",
		"S0",
		"S",
		"V0",
		"S4294967296",
		"S99999999999999999999",
		"U5",
		"object",
		"O",
		"<",
		"<>i4",
		"=i4",
		" i4",
		"i4 ",
		"i4x",
		"i-4",
		"vlen",
		"vlen  str",
		"(3,)",
		"(4294967296,4294967296)i1",
		"[]",
		"[[]]",
		"[\"a\",\"i4\"]",
		"[[\"a\"]]",
		"[[\"a\",\"i4\",[3],4]]",
		"[[\"a\",5]]",
		"[[5,\"i4\"]]",
		"[[\"\",\"i4\"]]",
		"[[\"\",\"V4\"]]",
		"[[\"a\",\"i4\"],[\"a\",\"i4\"]]",
		"[[\"a\\u0000\",\"i4\"]]",
		"[[\"a\",\"i4\",[]]]",
		"[[\"a\",\"i4\",[0]]]",
		"[[\"a\",\"i4\",[-1]]]",
		"[[\"a\",\"i4\",[1.5]]]",
		"[[\"a\",\"i4\",[4294967296]]]",
		"[[\"a\",\"i4\",[65536,65536]]]",
		"[[\"a\",\"S4294967295\"],[\"b\",\"u1\"]]",
		"[[\"a\",\"i4\"]",
		"[[\"a\",\"i4\"]]x",
		"[[\"a\",[]]]",
		"[[\"a\",null]]",
		"{}",
	};
	static const char *const no_shapes[] = {
		"()i4",
		"(3)i4",
		"(2,3,)i4",
		"(3,",
		"(,3)i4",
		"(,)i4",
		"(2 3)i4",
		"(-1,)i4",
		"(18446744073709551615,)i1",
		"(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)<i2",
		"(18446744073709551616,)i1",
		"(2,99999999999999999999)i1",
		"(",
	};
	struct h5_dataspace space;
	struct h5_datatype *type;

	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		is_named(same[i], same[i]);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		is_named(others[i][0], others[i][1]);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		if (h5_numpy_parse_shaped(wrong[i], strlen(wrong[i]), 8, &type, &space) != -EINVAL)
			ck_abort_msg("taken: %s", wrong[i]);
		ck_assert_ptr_null(type);
	}
	for (size_t i = 0; i < sizeof no_shapes / sizeof *no_shapes; i++) {
		const char *text = no_shapes[i];

		ck_assert_int_eq(h5_numpy_parse_shaped(text, strlen(text), 8, &type, &space), -EINVAL);
		ck_assert_msg(strstr(h5_error_last()->text, "a shape is written"), "%s: %s", text,
			      h5_error_last()->text);
		ck_assert_ptr_null(type);
	}
}
END_TEST

/* As deep as a type may be, it can be read again. */
START_TEST(names_nested_deep)
{
	char text[2000] = "";
	struct h5_datatype *type, *again;
	struct h5_buf out;
	int rc = 0;

	for (unsigned depth = 1; !rc; depth++) {
		ck_assert_uint_lt(depth, 40);
		*text = 0;
		for (unsigned i = 0; i < depth; i++)
			strcat(text, "[[\"a\",");
		strcat(text, "\"i1\"");
		for (unsigned i = 0; i < depth; i++)
			strcat(text, ",[2]]]");
		rc = h5_numpy_parse(text, strlen(text), 8, &type);
		if (rc)
			continue;
		h5_buf_init(&out, UINT16_MAX);
		SUCCEEDS(h5_datatype_encode(type, true, &out));
		again = decode(out.data, out.size);
		ck_assert(!h5_convert_is_needed(type, again));
		h5_datatype_free(again);
		h5_datatype_free(type);
		h5_buf_release(&out);
	}
	ck_assert_int_eq(rc, -EINVAL);
}
END_TEST

/* Numbers that would be small ones if they wrapped around at 2^64. */
START_TEST(numbers_that_are_too_large)
{
	static const char *const texts[] = {"\"<i18446744073709551620\"",	"<i18446744073709551620",
					    "|S18446744073709551617",		"<f36893488147419103240",
					    "[\"<i4\",[18446744073709551617]]", "|V18446744073709551618"};
	struct h5_datatype *type;

	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
		ck_assert_int_eq(h5_numpy_parse(texts[i], strlen(texts[i]), 8, &type), -EINVAL);
}
END_TEST

START_TEST(names_without_memory)
{
	static const char text[] =
		"[[\"a\",\"<c8\"],[\"\",\"|V4\"],[\"b\",[[\"s\",\"vlen str\"],[\"t\",\"b1\"]],[3]]]";
	struct h5_datatype *type;
	bool fired = true;
	unsigned failed = 0;

	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_numpy_parse(text, strlen(text), 8, &type);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
		failed += rc != 0;
		h5_datatype_free(type);
	}
	ck_assert_uint_gt(failed, 20);
}
END_TEST

/* Each allocation fails while a message of all classes is decoded: a compound of version 1, whose members may
 * be arrays, holds the others. */
static const uint8_t all_classes[] = {
	0x16, 4, 0, 0, 60, 0, 0, 0,							   /* compound */
	'a',  0, 0, 0, 0,  0, 0, 0, 0,	  0,   0,   0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* member at 0 */
	2,    0, 0, 0, 0,  0, 0, 0, 0,	  0,   0,   0, 0, 0, 0, 0, /* of two elements */
	0x10, 0, 0, 0, 4,  0, 0, 0, 0,	  0,   32,  0,		   /* integers */
	'e',  0, 0, 0, 0,  0, 0, 0, 8,	  0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* at 8 */
	0,    0, 0, 0, 0,  0, 0, 0, 0,	  0,   0,   0, 0, 0, 0, 0,			   /* */
	0x18, 2, 0, 0, 1,  0, 0, 0, 0x10, 0,   0,   0, 1, 0, 0, 0, 0, 0, 8, 0,		   /* enumeration */
	'x',  0, 0, 0, 0,  0, 0, 0, 'y',  0,   0,   0, 0, 0, 0, 0, 5, 6, /* of x = 5, y = 6 */
	'o',  0, 0, 0, 0,  0, 0, 0, 12,	  0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* at 12 */
	0,    0, 0, 0, 0,  0, 0, 0, 0,	  0,   0,   0, 0, 0, 0, 0,			   /* */
	0x15, 8, 0, 0, 3,  0, 0, 0, 't',  'a', 'g', 0, 0, 0, 0, 0,			   /* opaque */
	'v',  0, 0, 0, 0,  0, 0, 0, 16,	  0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* at 16 */
	0,    0, 0, 0, 0,  0, 0, 0, 0,	  0,   0,   0, 0, 0, 0, 0,			   /* */
	0x19, 0, 0, 0, 16, 0, 0, 0, 0x2a, 0,   0,   0, 8, 0, 0, 0, /* lists of arrays */
	1,    0, 0, 0, 2,  0, 0, 0, 0,	  0,   0,   0,		   /* of two elements */
	0x10, 0, 0, 0, 4,  0, 0, 0, 0,	  0,   32,  0};		   /* integers */

START_TEST(types_without_memory)
{
	struct h5_datatype *type;
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_reader r = h5_reader_init(all_classes, sizeof all_classes, 0, 8, 8);
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_datatype_decode(&r, &type);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
		ck_assert(fired == !type);
		failed += fired;
	}
	ck_assert_uint_eq(failed, 20);
	ck_assert_uint_eq(type->compound.count, 4);
	ck_assert(type->compound.members[0].type->class == H5_CLASS_ARRAY &&
		  type->compound.members[0].type->size == 8);
	ck_assert_str_eq(h5_datatype_enum_member(type->compound.members[1].type, (const uint8_t[]){6})->name,
			 "y");
	ck_assert_str_eq(type->compound.members[2].type->opaque.tag, "tag");
	ck_assert_uint_eq(type->compound.members[3].type->vlen.base->array.count, 2);
	h5_datatype_free(type);
}
END_TEST

static struct h5_datatype *make(unsigned which)
{
	const uint64_t dims[] = {3, 5};
	struct h5_datatype *base;

	switch (which) {
	case 0:
		return h5_datatype_make_integer(2, true, H5_ORDER_BE);
	case 1:
		return h5_datatype_make_float(4, H5_ORDER_BE);
	case 2:
		return h5_datatype_make_string(7, H5_PAD_SPACEPAD, H5_CHARSET_UTF8);
	case 3:
		return h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8);
	case 4:
		return h5_datatype_make_opaque(7, "tag");
	case 5:
		return h5_datatype_make_boolean();
	case 6:
		return h5_datatype_make_complex(8, H5_ORDER_LE);
	default:
		base = h5_datatype_make_integer(2, true, H5_ORDER_BE);
		return base ? h5_datatype_make_array(2, dims, base) : NULL;
	}
}

START_TEST(types_that_are_made)
{
	static const uint32_t sizes[] = {2, 4, 7, 16, 7, 1, 8, 30};
	const uint64_t none[] = {3, 0}, much[] = {1 << 16, 1 << 15}, more[] = {UINT64_MAX, 3};

	for (unsigned which = 0; which < sizeof sizes / sizeof *sizes; which++) {
		struct h5_datatype *type = NULL;

		for (unsigned long n = 1; !type; n++) {
			fault_alloc_arm(n);
			fault_alloc_count(true);
			type = make(which);
			fault_alloc_count(false);
			ck_assert(fault_alloc_disarm() == !type);
		}
		ck_assert_uint_eq(type->size, sizes[which]);
		h5_datatype_free(type);
	}
	/* 2^31 elements of 1 byte, but not of 2; none at all; more than can be counted. */
	for (unsigned size = 1; size <= 2; size++) {
		struct h5_datatype *type =
			h5_datatype_make_array(2, much, h5_datatype_make_integer(size, false, H5_ORDER_LE));

		ck_assert(!type == (size == 2));
		h5_datatype_free(type);
	}
	ck_assert_ptr_null(h5_datatype_make_array(2, none, h5_datatype_make_integer(1, false, H5_ORDER_LE)));
	ck_assert_ptr_null(h5_datatype_make_array(2, more, h5_datatype_make_integer(1, false, H5_ORDER_LE)));
	ck_assert_ptr_null(h5_datatype_make_array(1, more, h5_datatype_make_integer(2, false, H5_ORDER_LE)));
}
END_TEST

/* ---- what NumPy lacks ---- */

#define INTEGER(bytes, bits, endian)                                                                         \
	{                                                                                                    \
		.class = H5_CLASS_INTEGER, .size = bytes, .precision = bits, .order = endian,                \
		.is_signed = true                                                                            \
	}
#define BINARY(n, e, m, endian)                                                                              \
	{                                                                                                    \
		.class = H5_CLASS_FLOAT, .size = n, .precision = 8 * n, .order = endian,                     \
		.fl = { H5_NORM_IMPLIED,                                                                     \
			8 * n - 1,                                                                           \
			m,                                                                                   \
			e,                                                                                   \
			0,                                                                                   \
			m,                                                                                   \
			(1 << (e - 1)) - 1 }                                                                 \
	}

/* The texts for NumPy of a type, and of an NPY file's and a Zarr array's; NULL: there is none. */
static void expect_numpy(const struct h5_datatype *type, const char *text, const char *npy, const char *zarr)
{
	static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	char header[200];
	struct h5_buf out;

	h5_buf_init(&out, 1000);
	h5_datatype_numpy(type, &out);
	h5_buf_byte(&out, 0);
	ck_assert(!out.err);
	ck_assert_str_eq(out.data, text ? text : "object");
	h5_buf_release(&out);
	h5_buf_init(&out, 1000);
	ck_assert_int_eq(h5_datatype_npy(type, &scalar, &out), !!npy);
	h5_buf_byte(&out, 0);
	ck_assert(!out.err);
	snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (), }",
		 npy ? npy : "");
	if (npy)
		ck_assert_str_eq(out.data, header);
	h5_buf_release(&out);
	h5_buf_init(&out, 1000);
	ck_assert_int_eq(h5_datatype_zarr(type, &out), !!zarr);
	h5_buf_byte(&out, 0);
	ck_assert(!out.err);
	if (zarr)
		ck_assert_str_eq(out.data, zarr);
	h5_buf_release(&out);
}

/* What NumPy lacks, it lacks in a compound, too, and in an array in one. */
START_TEST(types_that_numpy_lacks)
{
	static struct h5_datatype float_le = BINARY(4, 8, 23, H5_ORDER_LE),
				  odd_float = BINARY(4, 7, 24, H5_ORDER_LE);
	static const struct {
		struct h5_datatype type;
		const char *text, *exact; /* NULL: none */
	} cases[] = {
		{INTEGER(4, 32, H5_ORDER_LE), "<i4", "<i4"},
		{INTEGER(8, 64, H5_ORDER_BE), ">i8", ">i8"},
		{INTEGER(4, 31, H5_ORDER_LE), NULL, NULL},
		{INTEGER(3, 24, H5_ORDER_LE), NULL, NULL},
		{INTEGER(16, 128, H5_ORDER_LE), NULL, NULL},
		{INTEGER(4, 32, H5_ORDER_VAX), NULL, NULL},
		{{.class = H5_CLASS_BITFIELD, .size = 2, .precision = 16}, NULL, "<u2"},
		{{.class = H5_CLASS_BITFIELD, .size = 2, .precision = 15}, NULL, NULL},
		{{.class = H5_CLASS_TIME, .size = 4, .precision = 32}, NULL, NULL},
		{BINARY(2, 5, 10, H5_ORDER_LE), "<f2", "<f2"},
		{BINARY(2, 8, 7, H5_ORDER_LE), NULL, NULL},
		{BINARY(4, 7, 24, H5_ORDER_LE), NULL, NULL},
		{BINARY(8, 11, 52, H5_ORDER_VAX), NULL, NULL},
		{{.class = H5_CLASS_COMPLEX, .size = 8, .complex = {&float_le}}, "<c8", "<c8"},
		{{.class = H5_CLASS_COMPLEX, .size = 8, .complex = {&odd_float}}, NULL, NULL},
		{{.class = H5_CLASS_OPAQUE, .size = 7}, "|V7", "|V7"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *text = cases[i].text ? cases[i].text : "",
			   *exact = cases[i].exact ? cases[i].exact : "";
		struct h5_datatype type = cases[i].type;
		struct h5_datatype array = {
			.class = H5_CLASS_ARRAY, .size = 6 * type.size, .array = {2, {2, 3}, 6, &type}};
		struct h5_member member = {(char[]){"a"}, 0, &type};
		struct h5_datatype compound = {
			.class = H5_CLASS_COMPOUND, .size = type.size, .compound = {1, &member}};
		char form[2][80];

		snprintf(form[0], 80, "'%s'", exact);
		snprintf(form[1], 80, "\"%s\"", exact);
		expect_numpy(&type, *text ? text : NULL, *exact ? form[0] : NULL, *exact ? form[1] : NULL);
		for (unsigned within = 0; within < 2; within++) {
			char name[80];

			snprintf(name, 80, "[[\"a\",\"%s\"%s]]", text, within ? ",[2,3]" : "");
			snprintf(form[0], 80, "[(\"a\", '%s'%s)]", exact, within ? ", (2, 3)" : "");
			snprintf(form[1], 80, "[[\"a\",\"%s\"%s]]", exact, within ? ",[2,3]" : "");
			expect_numpy(&compound, *text ? name : NULL, *exact ? form[0] : NULL,
				     *exact ? form[1] : NULL);
			member.type = &array;
			compound.size = array.size;
		}
	}
}
END_TEST

/* Two floats that h5py writes for a complex number, and such as are none. */
START_TEST(pairs_of_floats)
{
	static const struct {
		const char *first, *second;
		struct h5_datatype parts[2];
		unsigned gap, behind; /* bytes between the two, and behind them */
		const char *npy;
	} cases[] = {
#define LE4 BINARY(4, 8, 23, H5_ORDER_LE)
#define LE8 BINARY(8, 11, 52, H5_ORDER_LE)
#define BE8 BINARY(8, 11, 52, H5_ORDER_BE)
		{"r", "i", {LE4, LE4}, 0, 0, "'<c8'"},
		{"r", "i", {BE8, BE8}, 0, 0, "'>c16'"},
		{"i", "r", {LE4, LE4}, 0, 0, "[(\"i\", '<f4'), (\"r\", '<f4')]"},
		{"r", "j", {LE4, LE4}, 0, 0, "[(\"r\", '<f4'), (\"j\", '<f4')]"},
		{"x", "i", {LE4, LE4}, 0, 0, "[(\"x\", '<f4'), (\"i\", '<f4')]"},
		{"r",
		 "i",
		 {BINARY(2, 5, 10, H5_ORDER_LE), BINARY(2, 5, 10, H5_ORDER_LE)},
		 0,
		 0,
		 "[(\"r\", '<f2'), (\"i\", '<f2')]"},
		{"r", "i", {LE4, BINARY(4, 8, 23, H5_ORDER_BE)}, 0, 0, "[(\"r\", '<f4'), (\"i\", '>f4')]"},
		{"r", "i", {LE4, BE8}, 0, 0, "[(\"r\", '<f4'), (\"i\", '>f8')]"},
		{"r", "i", {LE8, LE4}, 0, 4, "[(\"r\", '<f8'), (\"i\", '<f4'), ('', '|V4')]"},
		{"r", "i", {LE4, INTEGER(4, 32, H5_ORDER_LE)}, 0, 0, "[(\"r\", '<f4'), (\"i\", '<i4')]"},
		{"r", "i", {LE4, LE4}, 4, 0, "[(\"r\", '<f4'), ('', '|V4'), (\"i\", '<f4')]"},
		{"r", "i", {LE4, LE4}, 0, 4, "[(\"r\", '<f4'), (\"i\", '<f4'), ('', '|V4')]"},
		{"r", "i", {LE4, BINARY(4, 7, 24, H5_ORDER_LE)}, 0, 0, NULL},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_datatype parts[2] = {cases[i].parts[0], cases[i].parts[1]};
		char first[] = {cases[i].first[0], 0}, second[] = {cases[i].second[0], 0};
		struct h5_member members[] = {{first, 0, &parts[0]},
					      {second, parts[0].size + cases[i].gap, &parts[1]}};
		struct h5_datatype type = {.class = H5_CLASS_COMPOUND, .compound = {2, members}};
		static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
		char header[200];
		struct h5_buf out;

		type.size = (uint32_t)members[1].offset + parts[1].size + cases[i].behind;
		h5_buf_init(&out, 1000);
		ck_assert_int_eq(h5_datatype_npy(&type, &scalar, &out), !!cases[i].npy);
		h5_buf_byte(&out, 0);
		ck_assert(!out.err);
		snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (), }",
			 cases[i].npy ? cases[i].npy : "");
		if (cases[i].npy)
			ck_assert_str_eq(out.data, header);
		h5_buf_release(&out);
	}
}
END_TEST

/* Memory runs out at each allocation in turn: that is told, and no other name of the type. */
START_TEST(numpy_names_without_memory)
{
	static const char text[] = "[[\"a\",\"<i4\"],[\"b\",[[\"c\",\"<f8\"]]]]";
	static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	struct h5_datatype *type;

	SUCCEEDS(h5_numpy_parse(text, strlen(text), 8, &type));
	for (unsigned form = 0; form < 3; form++) {
		struct h5_buf whole, out;
		unsigned failed = 0;
		bool fired = true;

		h5_buf_init(&whole, 1000);
		for (unsigned long n = 0; fired; n++) {
			bool good = true;

			h5_buf_init(&out, 1000);
			if (n)
				fault_alloc_arm(n);
			fault_alloc_count(true);
			if (!form)
				h5_datatype_numpy(type, &out);
			else if (form == 1)
				good = h5_datatype_npy(type, &scalar, &out);
			else
				good = h5_datatype_zarr(type, &out);
			fault_alloc_count(false);
			if (!n) {
				ck_assert(good && !out.err);
				whole = out;
				continue;
			}
			fired = fault_alloc_disarm();
			ck_assert_int_eq(out.err, fired ? -ENOMEM : 0);
			ck_assert(fired || good);
			failed += fired;
			if (!fired)
				ck_assert(out.size == whole.size && !memcmp(out.data, whole.data, out.size));
			h5_buf_release(&out);
		}
		ck_assert_uint_gt(failed, 2);
		h5_buf_release(&whole);
	}
	h5_datatype_free(type);
}
END_TEST

/* As many members as a message can count. */
START_TEST(names_of_many_members)
{
	enum { MOST = UINT16_MAX };
	struct h5_datatype *type;
	struct h5_buf text;

	for (unsigned n = MOST; n <= MOST + 1; n++) {
		int rc;

		h5_buf_init(&text, 20 * MOST);
		for (unsigned i = 0; i < n; i++)
			h5_buf_printf(&text, "%s[\"%x\",\"i1\"]", i ? "," : "[", i);
		h5_buf_text(&text, "]");
		rc = h5_numpy_parse(text.data, text.size, 8, &type);
		h5_buf_release(&text);
		if (n > MOST) {
			ck_assert_int_eq(rc, -EINVAL);
			ck_assert_str_eq(h5_error_last()->text, "type: too many members");
			ck_assert_ptr_null(type);
			continue;
		}
		ck_assert_int_eq(rc, 0);
		ck_assert_uint_eq(type->compound.count, MOST);
		ck_assert_uint_eq(type->size, MOST);
		ck_assert_uint_eq(type->compound.members[MOST - 1].offset, MOST - 1);
		h5_datatype_free(type);
	}
}
END_TEST

UNIT_MAIN_LOOPS("datatype_encode", {messages_as_libhdf5_writes_them, 2}, {types_of_other_versions, 1},
		{tags_of_opaque_types, 1}, {too_large_for_a_message, 1}, {names_of_types, 1},
		{names_nested_deep, 1}, {names_without_memory, 1}, {numbers_that_are_too_large, 1},
		{numpy_names_without_memory, 1}, {names_of_many_members, 1}, {types_without_memory, 1},
		{types_that_are_made, 1}, {types_that_numpy_lacks, 1}, {pairs_of_floats, 1})

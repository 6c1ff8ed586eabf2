#include "bytes.h"
#include "change/open.h"
#include "object/attribute.h"
#include "object/object.h"
#include "unit.h"
#include "values.h"

/* ---- what tests/fixtures/value.py made ---- */

struct fixture {
	struct h5_file_set *set;
	struct h5_file *file;
	FILE *expected;
	struct {
		uint64_t address;
		char path[64];
	} objects[32];
	unsigned count;
};

static void fixture_open(struct fixture *x)
{
	struct h5_file_set_options options = {
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_ALWAYS};
	char path[4096], line[4096];
	unsigned long long address;

	memset(x, 0, sizeof *x);
	fclose(open_data("value.h5", path, sizeof path));
	ck_assert_int_eq(h5_open_file(path, &options, &x->set, NULL), 0);
	x->file = h5_file_set_root(x->set);
	x->expected = open_data("value.txt", path, sizeof path);
	while (fgets(line, sizeof line, x->expected) &&
	       sscanf(line, "path %llu %63[^\n]", &address, x->objects[x->count].path) == 2)
		x->objects[x->count++].address = address;
	rewind(x->expected);
}

static void fixture_close(struct fixture *x)
{
	fclose(x->expected);
	h5_file_set_close(x->set);
}

static int object_path(void *arg, uint64_t address, struct h5_buf *path)
{
	const struct fixture *x = arg;

	for (unsigned i = 0; i < x->count; i++)
		if (x->objects[i].address == address) {
			h5_buf_text(path, x->objects[i].path);
			return 0;
		}
	return -ENOENT;
}

static void check_attribute(struct fixture *x, const struct h5_object *root, const char *name, char *type,
			    const char *hex)
{
	struct h5_value_context context = {x->file, object_path, x};
	struct h5_attribute a;
	struct h5_buf out;
	char text[4096];
	size_t n = 0;
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		text[n++] = (char)byte;
	for (char *c = type; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	h5_buf_init(&out, 100000);
	ck_assert_int_eq(h5_attribute_lookup(x->file, root, name, &a), 0);
	ck_assert_int_eq(h5_value_text(&context, a.type, &a.space, a.data, &out), 0);
	ends_with(&out, text, n, name);
	h5_datatype_numpy_shaped(a.type, &a.space, &out);
	ends_with(&out, type, strlen(type), name);
	h5_buf_release(&out);
	h5_attribute_release(&a);
}

START_TEST(attributes_as_h5py_reads_them)
{
	char line[4096], name[100], type[200], hex[4096];
	const struct h5_object *root;
	struct h5_lru_entry *ref;
	struct fixture x;
	int n = 0;

	fixture_open(&x);
	ck_assert_int_eq(h5_object_get(x.file, h5_file_superblock(x.file)->root, &ref, &root), 0);
	while (fgets(line, sizeof line, x.expected))
		if (sscanf(line, "attribute %99s %199s %4095s", name, type, hex) == 3) {
			check_attribute(&x, root, name, type, hex);
			n++;
		}
	ck_assert_int_gt(n, 40);
	h5_file_put(x.file, ref);
	fixture_close(&x);
}
END_TEST

/* As h5dump 1.10.8 writes the types that the fixture commits. */
static const struct {
	const char *path, *ddl;
} types[] = {
	{"/bits", "H5T_STD_B16BE"},
	{"/enums", "H5T_ARRAY { [2][3] H5T_ENUM {\n"
		   "   H5T_STD_I16LE;\n"
		   "   \"ALSO_GREEN_NOT\"   300;\n"
		   "   \"GREEN\"            1;\n"
		   "   \"RED\"              0;\n"
		   "} }"},
	{"/long_names", "H5T_ENUM {\n"
			"   H5T_STD_I16LE;\n"
			"   \"SEVENTEEN_LETTERS\" -42;\n"
			"   \"SIXTEEN_LETTERS_\" 1;\n"
			"}"},
	{"/nested", "H5T_COMPOUND {\n"
		    "   H5T_STD_I32BE \"a\";\n"
		    "   H5T_ENUM {\n"
		    "      H5T_STD_I16LE;\n"
		    "      \"ALSO_GREEN_NOT\"   300;\n"
		    "      \"GREEN\"            1;\n"
		    "      \"RED\"              0;\n"
		    "   } \"b\";\n"
		    "   H5T_COMPOUND {\n"
		    "      H5T_IEEE_F32LE \"x\";\n"
		    "      H5T_STRING {\n"
		    "         STRSIZE 3;\n"
		    "         STRPAD H5T_STR_NULLPAD;\n"
		    "         CSET H5T_CSET_ASCII;\n"
		    "         CTYPE H5T_C_S1;\n"
		    "      } \"s\";\n"
		    "      H5T_STRING {\n"
		    "         STRSIZE H5T_VARIABLE;\n"
		    "         STRPAD H5T_STR_NULLTERM;\n"
		    "         CSET H5T_CSET_ASCII;\n"
		    "         CTYPE H5T_C_S1;\n"
		    "      } \"v\";\n"
		    "   } \"c\";\n"
		    "   H5T_ARRAY { [2] H5T_COMPOUND {\n"
		    "      H5T_IEEE_F32LE \"x\";\n"
		    "      H5T_STRING {\n"
		    "         STRSIZE 3;\n"
		    "         STRPAD H5T_STR_NULLPAD;\n"
		    "         CSET H5T_CSET_ASCII;\n"
		    "         CTYPE H5T_C_S1;\n"
		    "      } \"s\";\n"
		    "      H5T_STRING {\n"
		    "         STRSIZE H5T_VARIABLE;\n"
		    "         STRPAD H5T_STR_NULLTERM;\n"
		    "         CSET H5T_CSET_ASCII;\n"
		    "         CTYPE H5T_C_S1;\n"
		    "      } \"v\";\n"
		    "   } } \"d\";\n"
		    "   H5T_REFERENCE { H5T_STD_REF_OBJECT } \"r\";\n"
		    "   H5T_REFERENCE { H5T_STD_REF_DSETREG } \"rr\";\n"
		    "   H5T_VLEN { H5T_COMPOUND {\n"
		    "      H5T_IEEE_F32LE \"x\";\n"
		    "      H5T_STRING {\n"
		    "         STRSIZE 3;\n"
		    "         STRPAD H5T_STR_NULLPAD;\n"
		    "         CSET H5T_CSET_ASCII;\n"
		    "         CTYPE H5T_C_S1;\n"
		    "      } \"s\";\n"
		    "      H5T_STRING {\n"
		    "         STRSIZE H5T_VARIABLE;\n"
		    "         STRPAD H5T_STR_NULLTERM;\n"
		    "         CSET H5T_CSET_ASCII;\n"
		    "         CTYPE H5T_C_S1;\n"
		    "      } \"v\";\n"
		    "   }} \"vl\";\n"
		    "}"},
	{"/odd", "32-bit little-endian integer 20-bit precision"},
	{"/odd_float", "32-bit little-endian floating-point 21-bit precision"},
	{"/odd_unsigned", "16-bit big-endian unsigned integer 9-bit precision"},
	{"/opaque", "H5T_OPAQUE {\n"
		    "   OPAQUE_TAG \"a tag\";\n"
		    "}"},
	{"/vlens", "H5T_VLEN { H5T_VLEN { H5T_STD_U64LE}}"},
};

static struct h5_datatype *committed(struct fixture *x, const char *path)
{
	const struct h5_object *object;
	struct h5_message_body body;
	struct h5_lru_entry *ref;
	struct h5_datatype *type;
	unsigned i = 0;

	while (i < x->count && strcmp(x->objects[i].path, path))
		i++;
	ck_assert_uint_lt(i, x->count);
	ck_assert_int_eq(h5_object_get(x->file, x->objects[i].address, &ref, &object), 0);
	ck_assert_int_eq(h5_message_open(x->file, h5_object_find(object, H5_MSG_DATATYPE), &body), 0);
	ck_assert_int_eq(h5_datatype_decode(&body.reader, &type), 0);
	h5_message_release(x->file, &body);
	h5_file_put(x->file, ref);
	return type;
}

/* In one line each run of white space is a space. */
static size_t on_one_line(const char *ddl, char *line)
{
	size_t n = 0;

	for (; *ddl; ddl++)
		if ((*ddl != ' ' && *ddl != '\n') || (n && line[n - 1] != ' '))
			line[n++] = *ddl == '\n' ? ' ' : *ddl;
	return n;
}

START_TEST(types_as_h5dump_writes_them)
{
	struct fixture x;
	struct h5_buf out;

	fixture_open(&x);
	h5_buf_init(&out, 100000);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct h5_datatype *type = committed(&x, types[i].path);
		char line[4096];

		h5_datatype_ddl(type, false, &out);
		ends_with(&out, types[i].ddl, strlen(types[i].ddl), types[i].path);
		h5_datatype_ddl(type, true, &out);
		ends_with(&out, line, on_one_line(types[i].ddl, line), types[i].path);
		h5_datatype_free(type);
	}
	h5_buf_release(&out);
	fixture_close(&x);
}
END_TEST

static struct h5_datatype compound(struct h5_member *members, unsigned count, uint32_t size)
{
	struct h5_datatype t = {.class = H5_CLASS_COMPOUND, .size = size};

	t.compound.count = count;
	t.compound.members = members;
	return t;
}

static void described_as(const struct h5_datatype *t, const char *ddl, const char *numpy)
{
	struct h5_buf out;

	h5_buf_init(&out, 10000);
	h5_datatype_ddl(t, true, &out);
	ends_with(&out, ddl, strlen(ddl), "DDL");
	h5_datatype_numpy(t, &out);
	ends_with(&out, numpy, strlen(numpy), "NumPy");
	h5_buf_release(&out);
}

START_TEST(types_that_h5py_cannot_make)
{
	struct h5_datatype f = real(4, 8, 23, 129, H5_ORDER_VAX), d = real(8, 11, 52, 1023, H5_ORDER_BE);
	struct h5_datatype brain = real(2, 8, 7, 127, H5_ORDER_LE), half = real(2, 5, 10, 15, H5_ORDER_LE);
	struct h5_datatype bits = integer(4, 0, 31, false, H5_ORDER_LE),
			   i3 = integer(3, 0, 24, true, H5_ORDER_VAX);
	struct h5_datatype byte = integer(1, 0, 8, false, H5_ORDER_BE),
			   time = integer(4, 0, 32, false, H5_ORDER_LE);
	struct h5_datatype complex = {.class = H5_CLASS_COMPLEX, .size = 16, .complex = {&d}};
	struct h5_datatype reference = {
		.class = H5_CLASS_REFERENCE, .size = 18, .reference = {H5_REF_ATTRIBUTE}};
	struct h5_datatype string = {.class = H5_CLASS_STRING, .size = 3};
	struct h5_member back[] = {{(char *)"b", 4, &byte}, {(char *)"a", 0, &byte}};
	struct h5_member ahead[] = {{(char *)"a\"", 1, &byte}, {(char *)"b", 3, &d}};
	struct h5_datatype t;

	described_as(&f, "H5T_VAX_F32", "object");
	described_as(&brain, "16-bit little-endian floating-point 16-bit precision", "object");
	described_as(&half, "H5T_IEEE_F16LE", "<f2");
	described_as(&i3, "24-bit VAX-endian integer 24-bit precision", "object");
	described_as(&byte, "H5T_STD_U8BE", "|u1");
	bits.class = H5_CLASS_BITFIELD;
	described_as(&bits, "undefined bitfield", "object");
	time.class = H5_CLASS_TIME;
	described_as(&time, "H5T_TIME: not yet implemented", "object");
	described_as(&complex, "H5T_COMPLEX_IEEE_F64BE", ">c16");
	complex.complex.base = &half;
	complex.size = 4;
	described_as(&complex, "H5T_COMPLEX_IEEE_F16LE", "object");
	complex.complex.base = &brain;
	described_as(&complex, "H5T_COMPLEX { 16-bit little-endian floating-point 16-bit precision }",
		     "object");
	described_as(&reference, "H5T_REFERENCE { H5T_STD_REF }", "object");
	string.string.padding = (enum h5_string_padding)7;
	described_as(&string,
		     "H5T_STRING { STRSIZE 3; STRPAD H5T_STR_ERROR; CSET H5T_CSET_ASCII; CTYPE H5T_C_S1; }",
		     "S3");
	t = compound(back, 2, 8);
	described_as(&t, "H5T_COMPOUND { H5T_STD_U8BE \"b\"; H5T_STD_U8BE \"a\"; }", "object");
	t = compound(ahead, 2, 16);
	described_as(&t, "H5T_COMPOUND { H5T_STD_U8BE \"a\"\"; H5T_IEEE_F64BE \"b\"; }",
		     "[[\"\",\"|V1\"],[\"a\\\"\",\"|u1\"],[\"\",\"|V1\"],[\"b\",\">f8\"],[\"\",\"|V5\"]]");
}
END_TEST

/* ---- variable-length data and references in a file built by hand ---- */

enum { OBJECT = 64, HEAP = 512, HEAP_SIZE = 2048 };

/* Objects of the heap. */
enum {
	STRING = 1,
	SEQUENCE,
	REGION_ALL,
	REGION_UNLIMITED,
	REGION_DAMAGED,
	REGION_NEW,
	ATTRIBUTE,
	REGION_SHORT,
	REGION_OF_LINE,
	ATTRIBUTE_SHORT,
	NOTHING, /* no object */
};

static size_t begin_object(struct bytes *b, unsigned index)
{
	put(b, index, 8);
	put(b, 0, 8);
	return b->n;
}

static void end_object(struct bytes *b, size_t from)
{
	uint64_t size = b->n - from;

	b->n = from - 8;
	put(b, size, 8);
	b->n += size;
	while (b->n % 8)
		put(b, 0, 1);
}

static void put_whole(struct bytes *b)
{
	put(b, 3, 4);
	put(b, 1, 4);
	put(b, 0, 8);
}

static void put_file(struct bytes *b)
{
	size_t at;

	memset(b, 0, sizeof *b);
	put_superblock(b);
	b->n = OBJECT; /* header of version 1 with one message: a dataspace of 6 x 10 */
	put(b, 1 | 1 << 16, 4);
	put(b, 1, 4);
	put(b, 32, 8);
	put(b, 1 | 24 << 16, 8);
	put(b, 1 | 2 << 8, 8);
	put(b, 6, 8);
	put(b, 10, 8);

	b->n = HEAP;
	put(b, 0x14c4f4347, 8); /* GCOL, 1 */
	put(b, HEAP_SIZE, 8);
	at = begin_object(b, STRING);
	put(b, 0x0000006b63756c62, 8); /* bluck, and NULs */
	end_object(b, at);
	at = begin_object(b, SEQUENCE);
	put(b, 0x00030002fffe, 6);
	end_object(b, at);
	at = begin_object(b, REGION_ALL);
	put(b, OBJECT, 8);
	put_whole(b);
	end_object(b, at);
	at = begin_object(b, REGION_UNLIMITED);
	put(b, OBJECT, 8);
	put(b, 2, 4);
	put(b, 2, 4);
	put(b, 1, 1);
	put(b, 0, 4);
	put(b, 2, 4);
	put_all(b, (const uint64_t[]){1, 4, UINT64_MAX, 3, 9, 1, 1, 1}, 8, 8);
	end_object(b, at);
	at = begin_object(b, REGION_DAMAGED);
	put(b, OBJECT, 8);
	put(b, 7, 4);
	put(b, 1, 12);
	end_object(b, at);
	at = begin_object(b, REGION_NEW);
	put(b, 8, 1);
	put(b, OBJECT, 8);
	put(b, 31, 4);
	put(b, 2, 4);
	put(b, 1, 4); /* points, version 2, 2-byte numbers */
	put(b, 2, 4);
	put(b, 2, 1);
	put(b, 2, 4);
	put(b, 2, 2);
	put(b, 0x0000000000090005, 8);
	end_object(b, at);
	at = begin_object(b, ATTRIBUTE);
	put(b, 8, 1);
	put(b, 77, 8);
	put(b, 5, 2);
	put(b, 0x2272747461, 5); /* attr" */
	end_object(b, at);
	at = begin_object(b, ATTRIBUTE_SHORT); /* its name is longer than what there is */
	put(b, 8, 1);
	put(b, 77, 8);
	put(b, 5, 2);
	put(b, 0x72747461, 4);
	end_object(b, at);
	at = begin_object(b, REGION_SHORT);
	put(b, OBJECT, 4);
	end_object(b, at);
	at = begin_object(b, REGION_OF_LINE); /* point 3 of one dimension */
	put(b, OBJECT, 8);
	put(b, 1, 4);
	put(b, 1, 4);
	put(b, 0, 4);
	put(b, 12, 4);
	put(b, 1, 4);
	put(b, 1, 4);
	put(b, 3, 4);
	end_object(b, at);
	put(b, 0, 8);
	put(b, HEAP + HEAP_SIZE + 8 - b->n, 8); /* the rest is free */
}

static struct bytes vlen_element(uint32_t length, uint64_t address, uint32_t index)
{
	struct bytes b = {.n = 0};

	put(&b, length, 4);
	put(&b, address, 8);
	put(&b, index, 4);
	return b;
}

static void json_fails(struct h5_file *file, const struct h5_datatype *type, const void *data, int code)
{
	struct h5_value_context context = {.file = file, .object_path = path_of};
	struct h5_buf out;

	h5_buf_init(&out, 1000);
	ck_assert_int_eq(h5_value_json(&context, type, data, &out), code);
	h5_buf_release(&out);
}

START_TEST(variable_length_data)
{
	struct h5_datatype base = integer(2, 0, 16, true, H5_ORDER_LE),
			   byte = integer(1, 0, 8, false, H5_ORDER_LE);
	struct h5_datatype t = {
		.class = H5_CLASS_VLEN, .size = 16, .vlen = {.is_string = true, .base = &byte}};
	struct h5_file_set *set;
	struct h5_file *file;
	struct h5_buf out;
	struct bytes b;
	uint64_t length;

	put_file(&b);
	set = open_bytes(&b);
	file = h5_file_set_root(set);
	json_is(file, &t, vlen_element(8, HEAP, STRING).data, "\"bluck\"");
	json_is(file, &t, vlen_element(2, HEAP, STRING).data, "\"bl\"");
	json_is(file, &t, vlen_element(0, HEAP, STRING).data, "\"\"");
	json_is(file, &t, vlen_element(5, 0, 0).data, "\"\"");
	json_is(file, &t, vlen_element(5, UINT64_MAX, 0).data, "\"\"");
	json_fails(file, &t, vlen_element(9, HEAP, STRING).data, -EUCLEAN);
	json_fails(file, &t, vlen_element(1, HEAP, NOTHING).data, -EUCLEAN);
	json_fails(file, &t, vlen_element(1, HEAP + 8, STRING).data, -EUCLEAN);
	/* A line of text is what is stored, as long as the element says. */
	h5_buf_init(&out, 100);
	ck_assert_int_eq(h5_value_vlen_string(file, &t, vlen_element(8, HEAP, STRING).data, &out), 0);
	ck_assert_int_eq(h5_value_vlen_string(file, &t, vlen_element(0, 0, 0).data, &out), 0);
	ends_with(&out, "bluck\0\0\0", 8, "string");
	ck_assert_int_eq(h5_value_vlen_length(file, &t, vlen_element(8, HEAP, STRING).data, &length), 0);
	ck_assert_uint_eq(length, 8);
	ck_assert_int_eq(h5_value_vlen_length(file, &t, vlen_element(8, 0, STRING).data, &length), 0);
	ck_assert_uint_eq(length, 0);
	h5_buf_release(&out);

	t.vlen.is_string = false;
	t.vlen.base = &base;
	json_is(file, &t, vlen_element(3, HEAP, SEQUENCE).data, "[-2,2,3]");
	json_is(file, &t, vlen_element(2, HEAP, SEQUENCE).data, "[-2,2]");
	json_is(file, &t, vlen_element(0, 0, 0).data, "[]");
	json_fails(file, &t, vlen_element(4, HEAP, SEQUENCE).data, -EUCLEAN);
	json_fails(file, &t, vlen_element(UINT32_MAX, HEAP, SEQUENCE).data, -EUCLEAN);
	t.size = 12; /* an element that holds no heap ID */
	json_fails(file, &t, vlen_element(1, HEAP, SEQUENCE).data, -EUCLEAN);
	h5_file_set_close(set);
}
END_TEST

/* One string of four is longer than its object: so is no value that has it, wherever it lies. */
START_TEST(one_damaged_string)
{
	struct h5_datatype byte = integer(1, 0, 8, false, H5_ORDER_LE);
	struct h5_datatype string = {
		.class = H5_CLASS_VLEN, .size = 16, .vlen = {.is_string = true, .base = &byte}};
	struct h5_datatype pair = {.class = H5_CLASS_ARRAY, .size = 32, .array = {1, {2}, 2, &string}};
	struct h5_datatype all = {.class = H5_CLASS_ARRAY, .size = 64, .array = {2, {2, 2}, 4, &string}};
	struct h5_member members[] = {{(char[]){"a"}, 0, &pair}, {(char[]){"b"}, 32, &pair}};
	struct h5_datatype compound = {.class = H5_CLASS_COMPOUND, .size = 64, .compound = {2, members}};
	const struct {
		const struct h5_datatype *type;
		struct h5_dataspace space;
		const char *text;
	} cases[] = {
		{&all, {.kind = H5_SPACE_SCALAR}, "[[\"b\",\"bl\"],[\"blu\",\"bluc\"]]"},
		{&compound, {.kind = H5_SPACE_SCALAR}, "{\"a\":[\"b\",\"bl\"],\"b\":[\"blu\",\"bluc\"]}"},
		{&pair,
		 {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {2}},
		 "[[\"b\",\"bl\"],[\"blu\",\"bluc\"]]"},
		{&string,
		 {.kind = H5_SPACE_SIMPLE, .rank = 2, .dims = {2, 2}},
		 "[[\"b\",\"bl\"],[\"blu\",\"bluc\"]]"},
		{&string,
		 {.kind = H5_SPACE_SIMPLE, .rank = 3, .dims = {2, 1, 2}},
		 "[[[\"b\",\"bl\"]],[[\"blu\",\"bluc\"]]]"},
	};
	struct h5_file_set *set;
	struct bytes b;

	put_file(&b);
	set = open_bytes(&b);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (unsigned bad = 0; bad <= 4; bad++) { /* 4: none */
			struct h5_value_context context = {.file = h5_file_set_root(set)};
			struct bytes data = {.n = 0};
			struct h5_buf out;

			for (unsigned k = 0; k < 4; k++) {
				struct bytes element = vlen_element(k == bad ? 9 : k + 1, HEAP, STRING);

				memcpy(data.data + data.n, element.data, element.n);
				data.n += element.n;
			}
			h5_buf_init(&out, 1000);
			ck_assert_int_eq(
				h5_value_text(&context, cases[i].type, &cases[i].space, data.data, &out),
				bad < 4 ? -EUCLEAN : 0);
			if (bad == 4)
				ends_with(&out, cases[i].text, strlen(cases[i].text), "strings");
			h5_buf_release(&out);
		}
	h5_file_set_close(set);
}
END_TEST

static struct bytes heap_id(uint64_t address, uint32_t index)
{
	struct bytes b = {.n = 0};

	put(&b, address, 8);
	put(&b, index, 4);
	return b;
}

START_TEST(references_of_the_old_style)
{
	struct h5_datatype t = {.class = H5_CLASS_REFERENCE, .size = 8, .reference = {H5_REF_OBJECT}};
	struct h5_file_set *set;
	struct h5_file *file;
	struct bytes b;

	put_file(&b);
	set = open_bytes(&b);
	file = h5_file_set_root(set);
	json_is(file, &t, heap_id(7, 0).data, "\"/at \\\"7\\\"\"");
	json_is(file, &t, heap_id(9, 0).data, "null");
	json_is(file, &t, heap_id(0, 0).data, "null");
	json_is(file, &t, heap_id(UINT64_MAX, 0).data, "null");
	t.size = 12;
	t.reference.kind = H5_REF_REGION;
	json_is(file, &t, heap_id(HEAP, REGION_ALL).data,
		"{\"object\":\"/at \\\"64\\\"\",\"blocks\":[[[0,0],[5,9]]]}");
	json_is(file, &t, heap_id(HEAP, REGION_UNLIMITED).data,
		"{\"object\":\"/at \\\"64\\\"\",\"blocks\":[[[1,9],[3,9]],[[5,9],[5,9]]]}");
	json_is(file, &t, heap_id(HEAP, NOTHING).data, "null");
	json_is(file, &t, heap_id(0, 0).data, "null");
	/* What took the place of a lost target is no region of it. */
	json_is(file, &t, heap_id(HEAP, REGION_DAMAGED).data, "null");
	json_is(file, &t, heap_id(HEAP, REGION_SHORT).data, "null");
	json_is(file, &t, heap_id(HEAP, REGION_OF_LINE).data, "null");
	h5_file_set_close(set);
}
END_TEST

static struct bytes new_reference(unsigned kind, unsigned flags, uint32_t index)
{
	struct bytes b = {.n = 0};

	put(&b, kind, 1);
	put(&b, flags, 1);
	put(&b, 0, 4);
	put(&b, HEAP, 8);
	put(&b, index, 4);
	return b;
}

START_TEST(references_of_the_new_style)
{
	struct h5_datatype t = {.class = H5_CLASS_REFERENCE, .size = 18, .reference = {H5_REF_OBJECT2}};
	static const uint8_t object[18] = {2, 0, 8, 77}, elsewhere[18] = {2, 1, 8, 77}, null[18] = {0};
	struct h5_file_set *set;
	struct h5_file *file;
	struct bytes b;

	put_file(&b);
	set = open_bytes(&b);
	file = h5_file_set_root(set);
	json_is(file, &t, object, "\"/at \\\"77\\\"\"");
	json_is(file, &t, elsewhere, "null");
	json_is(file, &t, null, "null");
	json_is(file, &t, new_reference(3, 0, REGION_NEW).data,
		"{\"object\":\"/at \\\"64\\\"\",\"points\":[[5,9],[0,0]]}");
	json_is(file, &t, new_reference(4, 0, ATTRIBUTE).data,
		"{\"object\":\"/at \\\"77\\\"\",\"attribute\":\"attr\\\"\"}");
	json_is(file, &t, new_reference(4, 1, ATTRIBUTE).data, "null");
	json_is(file, &t, new_reference(5, 0, ATTRIBUTE).data, "null");
	json_is(file, &t, new_reference(4, 0, NOTHING).data, "null");
	json_is(file, &t, new_reference(3, 0, ATTRIBUTE).data, "null");
	json_is(file, &t, new_reference(4, 0, ATTRIBUTE_SHORT).data, "null");
	h5_file_set_close(set);
}
END_TEST

/* Shapes and sequences that are small in the file and endless as text. */
START_TEST(output_is_bounded)
{
	struct h5_datatype byte = integer(1, 0, 8, false, H5_ORDER_LE);
	struct h5_dataspace hollow = {
		.kind = H5_SPACE_SIMPLE, .rank = 3, .dims = {1ull << 40, 1ull << 40, 0}};
	struct h5_value_context context = {.object_path = path_of};
	struct h5_buf out;

	h5_buf_init(&out, 1 << 16);
	ck_assert_int_eq(h5_value_text(&context, &byte, &hollow, NULL, &out), -E2BIG);
	h5_buf_release(&out);
}
END_TEST

UNIT_MAIN("value", attributes_as_h5py_reads_them, types_as_h5dump_writes_them, types_that_h5py_cannot_make,
	  variable_length_data, one_damaged_string, references_of_the_old_style, references_of_the_new_style,
	  output_is_bounded)

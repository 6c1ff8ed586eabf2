#include "base/room.h"
#include "change/transaction.h"
#include "fault_alloc.h"
#include "format/datatype_make.h"
#include "object/attribute.h"
#include "object/object.h"
#include "object/value_parse.h"
#include "value_scene.h"

#include <sys/mman.h>
#include <unistd.h>

static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};

static struct h5_dataspace line(uint64_t n)
{
	return (struct h5_dataspace){
		.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {n}, .max = {n}, .elements = n};
}

/* ---- what the printer writes is read as the same ---- */

static bool has_region(const struct h5_datatype *t)
{
	return t->class == H5_CLASS_REFERENCE && t->reference.kind != H5_REF_OBJECT;
}

static void round_trip(struct value_scene *s, const struct h5_attribute *a)
{
	size_t size = (size_t)a->space.elements * a->type->size;
	uint8_t *data = calloc(size + 1, 1);
	const char *written;
	struct h5_buf text;
	int rc;

	h5_buf_init(&text, 1 << 20);
	SUCCEEDS(h5_value_text(&s->context, a->type, &a->space, a->data, &text));
	written = text.size ? text.data : "";
	rc = h5_value_parse(&s->parser, a->type, &a->space, written, text.size, a->data, data);
	if (rc)
		ck_abort_msg("%s: %s", a->name, h5_error_last()->text);
	value_reads_back(&s->context, a->type, &a->space, data, written, text.size, a->name);
	memset(data, 0, size);
	rc = h5_value_parse(&s->parser, a->type, &a->space, written, text.size, NULL, data);
	if (has_region(a->type) && text.size > 10) {
		ck_assert_int_eq(rc, -EINVAL);
	} else {
		ck_assert_int_eq(rc, 0);
		value_reads_back(&s->context, a->type, &a->space, data, written, text.size, a->name);
	}
	h5_buf_release(&text);
	free(data);
}

START_TEST(attributes_of_every_kind)
{
	const struct h5_attribute *a;
	struct h5_attribute_walk walk;
	const struct h5_object *root;
	struct h5_lru_entry *ref;
	struct value_scene s;
	int n = 0, rc;

	value_scene_begin(&s);
	SUCCEEDS(h5_object_get(s.scratch.file, h5_file_superblock(s.scratch.file)->root, &ref, &root));
	rc = h5_attribute_begin(&walk, s.scratch.file, root);
	for (; !rc && (rc = h5_attribute_next(&walk, &a)) > 0; n++, rc = 0)
		round_trip(&s, a);
	ck_assert_int_eq(rc, 0);
	h5_attribute_end(&walk);
	ck_assert_int_gt(n, 40);
	h5_file_put(s.scratch.file, ref);
	value_scene_end(&s);
}
END_TEST

/* ---- tables ---- */

/* `hex`: the bytes of the element; NULL: refused, with this in the detail. */
static void element_is(const struct h5_datatype *t, const char *text, const char *hex, const char *detail)
{
	struct h5_value_context none = {0};
	struct h5_value_parser parser = {.context = &none};
	uint8_t data[64] = {0};
	char found[129] = "";
	int rc = h5_value_parse(&parser, t, &scalar, text, strlen(text), NULL, data);

	if (!hex) {
		if (rc != -EINVAL || !strstr(h5_error_last()->text, detail))
			ck_abort_msg("%s: %d, %s", text, rc, h5_error_last()->text);
		return;
	}
	if (rc)
		ck_abort_msg("%s: %s", text, h5_error_last()->text);
	for (uint32_t i = 0; i < t->size; i++)
		sprintf(found + 2 * i, "%02x", data[i]);
	ck_assert_str_eq(found, hex);
}

START_TEST(strings)
{
	struct h5_datatype t = {.class = H5_CLASS_STRING, .size = 4};

	t.string.padding = H5_PAD_NULLTERM;
	element_is(&t, "abc", "61626300", NULL);
	element_is(&t, "", "00000000", NULL);
	element_is(&t, "abcd", NULL, "4 bytes, where 3 fit");
	t.string.padding = H5_PAD_NULLPAD;
	element_is(&t, "abcd", "61626364", NULL);
	element_is(&t, "a", "61000000", NULL);
	element_is(&t, "abcde", NULL, "5 bytes, where 4 fit");
	element_is(&t, "\"a\"", "22612200", NULL);
	element_is(&t, "\xff\xc3", "ffc30000", NULL);
	t.string.padding = H5_PAD_SPACEPAD;
	element_is(&t, "a b", "61206220", NULL);
	element_is(&t, "a ", NULL, "space at the end");
	element_is(&t, "", "20202020", NULL);
}
END_TEST

/* A NUL that the padding would hide, and an old string that fills its type. */
START_TEST(strings_with_nul)
{
	struct h5_value_context none = {0};
	struct h5_value_parser parser = {.context = &none};
	struct h5_datatype t = {.class = H5_CLASS_STRING, .size = 4};
	uint8_t data[4];

	t.string.padding = H5_PAD_NULLTERM;
	ck_assert_int_eq(h5_value_parse(&parser, &t, &scalar, "a\0b", 3, NULL, data), -EINVAL);
	ck_assert_int_eq(h5_value_parse(&parser, &t, &scalar, "abcd", 4, (const uint8_t *)"abcx", data),
			 -EINVAL);
	ck_assert_int_eq(h5_value_parse(&parser, &t, &scalar, "abcd", 4, (const uint8_t *)"abcd", data), 0);
	t.string.padding = H5_PAD_NULLPAD;
	ck_assert_int_eq(h5_value_parse(&parser, &t, &scalar, "a\0b", 3, NULL, data), 0);
	ck_assert_mem_eq(data, "a\0b", 4);
	ck_assert_int_eq(h5_value_parse(&parser, &t, &scalar, "a\0", 2, NULL, data), -EINVAL);
	t.string.padding = H5_PAD_SPACEPAD;
	ck_assert_int_eq(h5_value_parse(&parser, &t, &scalar, "a\0", 2, NULL, data), 0);
	ck_assert_mem_eq(data, "a\0  ", 4);
}
END_TEST

START_TEST(numbers_and_words)
{
	struct h5_datatype i2 = integer(2, 0, 16, true, H5_ORDER_BE), f4 = real(4, 8, 23, 127, H5_ORDER_LE);
	struct h5_datatype bits = integer(1, 2, 3, false, H5_ORDER_LE),
			   time = integer(4, 0, 32, false, H5_ORDER_LE);
	struct h5_datatype opaque = {.class = H5_CLASS_OPAQUE, .size = 3};
	struct h5_datatype complex = {.class = H5_CLASS_COMPLEX, .size = 8, .complex = {&f4}};

	bits.class = H5_CLASS_BITFIELD;
	time.class = H5_CLASS_TIME;
	element_is(&i2, "-5", "fffb", NULL);
	element_is(&i2, "40000", NULL, "out of range");
	element_is(&i2, "\"5\"", NULL, "not a number");
	element_is(&i2, "", NULL, "not a number");
	element_is(&i2, "null", NULL, "not a number");
	element_is(&bits, "5", "14", NULL);
	element_is(&bits, "8", NULL, "out of range");
	element_is(&time, "-1", "ffffffff", NULL);
	element_is(&f4, "0.1", "cdcccc3d", NULL);
	element_is(&f4, "-Infinity", "000080ff", NULL);
	element_is(&f4, "nan", NULL, "not a number");
	element_is(&f4, "1e39", NULL, "out of range");
	element_is(&opaque, "00abFf", "00abff", NULL);
	element_is(&opaque, "00ab", NULL, "6 hex digits");
	element_is(&opaque, "00abxx", NULL, "hex");
	element_is(&complex, "[1,\"NaN\"]", "0000803f0000c07f", NULL);
	element_is(&complex, "[1]", NULL, "1 elements, not of 2");
	element_is(&complex, "1", NULL, "an array is expected");
	element_is(&complex, "[1,2", NULL, "JSON");
}
END_TEST

START_TEST(enumerations)
{
	struct h5_datatype base = integer(1, 0, 8, true, H5_ORDER_LE);
	struct h5_enum_member members[] = {{(char *)"RED", (const uint8_t *)"\1"},
					   {(char *)"7", (const uint8_t *)"\2"}};
	struct h5_datatype t = {.class = H5_CLASS_ENUM,
				.size = 1,
				.enumeration = {.base = &base, .count = 2, .members = members}};

	element_is(&t, "RED", "01", NULL);
	element_is(&t, "1", "01", NULL);
	element_is(&t, "-3", "fd", NULL);
	element_is(&t, "7", "02", NULL); /* a name */
	element_is(&t, "BLUE", NULL, "no member of the enumeration");
	element_is(&t, "", NULL, "not a number");
	element_is(&t, "300", NULL, "out of range");
}
END_TEST

static struct h5_datatype *make_nested(void)
{
	struct h5_datatype *inner = h5_datatype_make_compound(5, 2), *t = h5_datatype_make_compound(24, 3);

	SUCCEEDS(h5_datatype_add_member(inner, "x", 0, h5_datatype_make_integer(1, true, H5_ORDER_LE)));
	SUCCEEDS(h5_datatype_add_member(inner, "s", 1,
					h5_datatype_make_string(4, H5_PAD_NULLPAD, H5_CHARSET_ASCII)));
	SUCCEEDS(h5_datatype_add_member(t, "a", 0, h5_datatype_make_integer(4, true, H5_ORDER_LE)));
	SUCCEEDS(h5_datatype_add_member(t, "b", 4,
					h5_datatype_make_array(2, (const uint64_t[]){2, 1}, inner)));
	SUCCEEDS(h5_datatype_add_member(t, "c", 16, h5_datatype_make_float(8, H5_ORDER_LE)));
	return t;
}

START_TEST(compounds)
{
	static const struct {
		const char *json, *result; /* as it is written again, or a detail */
	} texts[] = {
		{"{\"a\":1,\"b\":[[{\"x\":2,\"s\":\"t\"}],[{\"x\":3,\"s\":\"\"}]],\"c\":0.5}",
		 "{\"a\":1,\"b\":[[{\"x\":2,\"s\":\"t\"}],[{\"x\":3,\"s\":\"\"}]],\"c\":0.5}"},
		{" { \"c\" : 5e-1 , \"a\" : 1.0 } ",
		 "{\"a\":1,\"b\":[[{\"x\":5,\"s\":\"\\u0005\\u0005\\u0005\\u0005\"}],[{\"x\":5,"
		 "\"s\":\"\\u0005\\u0005\\u0005\\u0005\"}]],\"c\":0.5}"},
		{"{\"b\":[[{}],[{\"s\":\"z\"}]],\"a\":2,\"c\":\"NaN\"}",
		 "{\"a\":2,\"b\":[[{\"x\":5,\"s\":\"\\u0005\\u0005\\u0005\\u0005\"}],[{\"x\":5,\"s\":\"z\"}]]"
		 ",\"c\":\"NaN\"}"},
		{"{\"d\":1}", "no member has the name \"d\""},
		{"{\"a\":1,\"a\":1}", "occurs twice"},
		{"{\"a\":\"1\"}", "member \"a\": a number is expected"},
		{"{\"a\":null}", "member \"a\": a number is expected"},
		{"{\"a\":true}", "member \"a\": a number is expected"},
		{"{\"a\":4294967296}", "member \"a\": the number is out of range"},
		{"{\"b\":[]}", "member \"b\": an array of 0 elements, not of 2"},
		{"{\"b\":[[{}],[{\"x\":200}]]}",
		 "member \"b\": element 1: element 0: member \"x\": the number is out of range"},
		{"{\"b\":[[{}],[{\"s\":5}]]}", "element 0: member \"s\": a string is expected"},
		{"{\"b\":[[{}],5]}", "element 1: an array is expected"},
		{"[1]", "an object is expected"},
		{"{\"a\":1}x", "JSON"},
	};
	struct h5_value_context none = {0};
	struct h5_value_parser parser = {.context = &none};
	struct h5_datatype *t = make_nested();
	uint8_t data[24];

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const char *result = texts[i].result;
		int rc;

		memset(data, 5, sizeof data); /* the fill value */
		rc = h5_value_parse_json(&parser, t, texts[i].json, strlen(texts[i].json), NULL, data);
		if (*result == '{') {
			ck_assert_int_eq(rc, 0);
			value_reads_back(&none, t, &scalar, data, result, strlen(result), texts[i].json);
		} else if (rc != -EINVAL || !strstr(h5_error_last()->text, result)) {
			ck_abort_msg("%s: %d, %s", texts[i].json, rc, h5_error_last()->text);
		}
	}
	h5_datatype_free(t);
}
END_TEST

/* What a member was before stands where the member does. */
START_TEST(old_members)
{
	struct h5_value_context none = {0};
	struct h5_value_parser parser = {.context = &none};
	struct h5_datatype string = {.class = H5_CLASS_STRING, .size = 4};
	struct h5_member members[] = {{.name = "a", .offset = 0, .type = &string},
				      {.name = "b", .offset = 4, .type = &string}};
	struct h5_datatype t = {
		.class = H5_CLASS_COMPOUND, .size = 8, .compound = {.count = 2, .members = members}};
	/* A string without a NUL cannot be given, unless it is the old value. The bytes around that belong to
	 * nobody. */
	const uint8_t around[] = "xxxxABCDabcdxxxx", *old = around + 4;
	uint8_t data[9] = "--------";

	string.string.padding = H5_PAD_NULLTERM;
	SUCCEEDS(h5_value_parse_json(&parser, &t, "{\"b\":\"abcd\"}", 12, old, data));
	ck_assert_mem_eq(data, "----abcd", 8);
	SUCCEEDS(h5_value_parse_json(&parser, &t, "{\"b\":\"abcd\",\"a\":\"ABCD\"}", 23, old, data));
	ck_assert_mem_eq(data, "ABCDabcd", 8);
	ck_assert_int_eq(h5_value_parse_json(&parser, &t, "{\"b\":\"ABCD\"}", 12, old, data), -EINVAL);
	ck_assert_int_eq(h5_value_parse_json(&parser, &t, "{\"b\":\"xxxx\"}", 12, old, data), -EINVAL);
	ck_assert_int_eq(h5_value_parse_json(&parser, &t, "{\"b\":\"abcd\"}", 12, NULL, data), -EINVAL);
}
END_TEST

START_TEST(arrays)
{
	struct h5_value_context none = {0};
	struct h5_value_parser parser = {.context = &none};
	struct h5_datatype t = integer(1, 0, 8, false, H5_ORDER_LE);
	struct h5_dataspace space = line(3), null = {.kind = H5_SPACE_NULL}, empty = line(0);
	struct h5_dataspace grid = {.kind = H5_SPACE_SIMPLE, .rank = 2, .dims = {2, 2}, .elements = 4};
	static const char *const wrong[] = {"[1,2]",	 "[1,2,3,4]",	"1",	"",
					    "[1,2,[3]]", "[1,2,\"3\"]", "{}",	"[1,2,3]]",
					    "[1,2,256]", "[[1,2,3]]",	"null", "[1,2,null]"};
	uint8_t data[4] = {0};

	SUCCEEDS(h5_value_parse(&parser, &t, &space, "[1, 2,3 ]\n", 10, NULL, data));
	ck_assert_mem_eq(data, "\1\2\3", 3);
	SUCCEEDS(h5_value_parse(&parser, &t, &grid, "[[1,2],[3,4]]", 13, NULL, data));
	ck_assert_mem_eq(data, "\1\2\3\4", 4);
	ck_assert_int_eq(h5_value_parse(&parser, &t, &grid, "[[1,2],[3,400]]", 15, NULL, data), -EINVAL);
	ck_assert_str_eq(h5_error_last()->text, "element 1: element 1: the number is out of range");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (h5_value_parse(&parser, &t, &space, wrong[i], strlen(wrong[i]), NULL, data) != -EINVAL)
			ck_abort_msg("taken: %s", wrong[i]);
	SUCCEEDS(h5_value_parse(&parser, &t, &null, "", 0, NULL, data));
	ck_assert_int_eq(h5_value_parse(&parser, &t, &null, "1", 1, NULL, data), -EINVAL);
	SUCCEEDS(h5_value_parse(&parser, &t, &empty, "[]", 2, NULL, data));
}
END_TEST

/* ---- references and variable length ---- */

START_TEST(references)
{
	struct h5_datatype object = {.class = H5_CLASS_REFERENCE, .size = 8, .reference = {H5_REF_OBJECT}};
	struct h5_datatype new = {.class = H5_CLASS_REFERENCE, .size = 18, .reference = {H5_REF_OBJECT2}};
	struct h5_datatype region = {.class = H5_CLASS_REFERENCE, .size = 12, .reference = {H5_REF_REGION}};
	const struct h5_datatype *kinds[] = {&object, &new};
	struct h5_dataspace two = line(2);
	uint8_t data[40], lost[8] = {77};
	struct value_scene s;

	value_scene_begin(&s);
	for (unsigned i = 0; i < 2; i++) {
		memset(data, 255, sizeof data);
		SUCCEEDS(h5_value_parse(&s.parser, kinds[i], &scalar, "/group", 6, NULL, data));
		value_reads_back(&s.context, kinds[i], &scalar, data, "/group", 6, "reference");
		SUCCEEDS(h5_value_parse(&s.parser, kinds[i], &two, "[\"/group\",null]", 15, NULL, data));
		value_reads_back(&s.context, kinds[i], &two, data, "[\"/group\",null]", 15, "references");
		ck_assert_int_eq(h5_value_parse(&s.parser, kinds[i], &scalar, "/none", 5, NULL, data),
				 -EINVAL);
		ck_assert_int_eq(h5_value_parse(&s.parser, kinds[i], &scalar, "group", 5, NULL, data),
				 -EINVAL);
		ck_assert_int_eq(h5_value_parse(&s.parser, kinds[i], &scalar, "", 0, NULL, data), -EINVAL);
		ck_assert_int_eq(h5_value_parse(&s.parser, kinds[i], &scalar, "5", 1, NULL, data), -EINVAL);
	}
	ck_assert_int_eq(h5_value_parse(&s.parser, &region, &scalar, "/data", 5, NULL, data), -EINVAL);
	SUCCEEDS(h5_value_parse(&s.parser, &region, &scalar, "null", 4, NULL, data));
	/* An old one that leads nowhere stays, as the text says no more than that. */
	SUCCEEDS(h5_value_parse(&s.parser, &object, &scalar, "null", 4, lost, data));
	ck_assert_mem_eq(data, lost, 8);
	value_scene_end(&s);
}
END_TEST

static int no_path(void *arg, uint64_t address, struct h5_buf *path)
{
	(void)arg;
	(void)address;
	(void)path;
	return -EIO;
}

static int no_address(void *arg, const char *path, size_t n, uint64_t *address)
{
	(void)arg;
	(void)path;
	(void)n;
	(void)address;
	return -EIO;
}

/* What fails while paths are sought is no fault of the text. */
START_TEST(references_whose_paths_cannot_be_read)
{
	struct h5_datatype t = {.class = H5_CLASS_REFERENCE, .size = 8, .reference = {H5_REF_OBJECT}};
	uint8_t old[8], data[8];
	struct value_scene s;

	value_scene_begin(&s);
	SUCCEEDS(h5_value_parse(&s.parser, &t, &scalar, "/group", 6, NULL, old));
	s.context.object_path = no_path;
	ck_assert_int_eq(h5_value_parse(&s.parser, &t, &scalar, "/group", 6, old, data), -EIO);
	SUCCEEDS(h5_value_parse(&s.parser, &t, &scalar, "/group", 6, NULL, data));
	ck_assert_mem_eq(data, old, 8);
	s.context.object_path = value_scene_path;
	s.parser.object_address = no_address;
	ck_assert_int_eq(h5_value_parse(&s.parser, &t, &scalar, "/group", 6, NULL, data), -EIO);
	memset(data, 0, 8);
	SUCCEEDS(h5_value_parse(&s.parser, &t, &scalar, "/group", 6, old, data)); /* as it is */
	ck_assert_mem_eq(data, old, 8);
	value_scene_end(&s);
}
END_TEST

/* Memory runs out at each allocation in turn, where references become others, stay as they are, and go. */
START_TEST(references_without_memory)
{
	static const char *const texts[] = {"[\"/group\",\"/group\",null]", "/group"};
	struct h5_datatype t = {.class = H5_CLASS_REFERENCE, .size = 8, .reference = {H5_REF_OBJECT}};
	const struct h5_dataspace spaces[] = {line(3), scalar};
	uint8_t old[24] = {0}, data[24];
	struct value_scene s;

	value_scene_begin(&s);
	SUCCEEDS(h5_value_parse(&s.parser, &t, &scalar, "/group", 6, NULL, old + 8));
	memcpy(old + 16, old + 8, 8);
	for (unsigned i = 0; i < 2; i++) {
		unsigned failed = 0;
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_value_parse(&s.parser, &t, &spaces[i], texts[i], strlen(texts[i]), old, data);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
			failed += fired;
		}
		ck_assert_uint_gt(failed, 0);
		value_reads_back(&s.context, &t, &spaces[i], data, texts[i], strlen(texts[i]), "references");
	}
	value_scene_end(&s);
}
END_TEST

static void vlen_is(struct value_scene *s, const struct h5_datatype *t, const char *json)
{
	uint8_t data[64] = {0};
	struct h5_buf out;

	if (h5_value_parse_json(&s->parser, t, json, strlen(json), NULL, data))
		ck_abort_msg("%s: %s", json, h5_error_last()->text);
	h5_buf_init(&out, 1 << 24);
	SUCCEEDS(h5_value_json(&s->context, t, data, &out));
	ends_with(&out, json, strlen(json), "JSON");
	h5_buf_release(&out);
}

START_TEST(variable_length)
{
	struct h5_datatype *string = h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8),
			   *nested = make_nested();
	struct h5_datatype list = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.base = string}};
	struct h5_datatype lists = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.base = &list}};
	struct h5_datatype records = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.base = nested}};
	struct h5_datatype narrow = {.class = H5_CLASS_VLEN, .size = 12, .vlen = {.base = nested}};
	struct h5_value_parser without;
	uint8_t data[16];
	struct value_scene s;

	value_scene_begin(&s);
	vlen_is(&s, string, "\"text \xc3\xa9\\udcff\"");
	vlen_is(&s, string, "\"\"");
	vlen_is(&s, &list, "[]");
	vlen_is(&s, &list, "[\"a\",\"\",\"b\"]");
	vlen_is(&s, &lists, "[[],[\"a\",\"b\"],[\"\"]]");
	vlen_is(&s, &records, "[{\"a\":1,\"b\":[[{\"x\":2,\"s\":\"t\"}],[{\"x\":3,\"s\":\"\"}]],\"c\":0.5}]");
	ck_assert_int_eq(h5_value_parse_json(&s.parser, string, "\"a\\u0000\"", 9, NULL, data), -EINVAL);
	ck_assert_int_eq(h5_value_parse_json(&s.parser, string, "5", 1, NULL, data), -EINVAL);
	ck_assert_int_eq(h5_value_parse_json(&s.parser, &list, "\"a\"", 3, NULL, data), -EINVAL);
	ck_assert_int_eq(h5_value_parse_json(&s.parser, &lists, "[[\"a\"],[\"b\",5]]", 15, NULL, data),
			 -EINVAL);
	ck_assert_str_eq(h5_error_last()->text, "element 1: element 1: a string is expected");
	/* damaged: the type is too small for what it is */
	ck_assert_int_eq(h5_value_parse_json(&s.parser, &narrow, "[{}]", 4, NULL, data), -EUCLEAN);
	without = s.parser;
	without.heap = NULL;
	ck_assert_int_eq(h5_value_parse_json(&without, string, "\"a\"", 3, NULL, data), -ENOTSUP);
	h5_datatype_free(string);
	h5_datatype_free(nested);
	value_scene_end(&s);
}
END_TEST

/* ---- limits ---- */

struct big_sink {
	struct h5_heap_sink sink;
	size_t n;
};

static int note_size(struct h5_heap_sink *sink, const void *data, size_t n, uint64_t *address,
		     uint32_t *index)
{
	(void)data;
	((struct big_sink *)sink)->n = n;
	*address = 48;
	*index = 1;
	return 0;
}

/* An element has 32 bits for its length. The text is one page, many times. */
START_TEST(texts_of_four_gigabytes)
{
	enum { PART = 16 << 20, PARTS = 257 };
	struct h5_datatype *string = h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8);
	struct h5_datatype reference = {.class = H5_CLASS_REFERENCE, .size = 8, .reference = {H5_REF_OBJECT}};
	const size_t most = UINT32_MAX, size = (size_t)PART * PARTS;
	struct big_sink sink = {.sink = {note_size}};
	struct value_scene s;
	int fd = memfd_create("text", MFD_CLOEXEC);
	uint8_t data[16];
	char *text;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, PART), 0);
	text = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(text, MAP_FAILED);
	for (size_t at = 0; at < size; at += PART)
		ck_assert_ptr_ne(mmap(text + at, PART, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
				 MAP_FAILED);
	memset(text, '/', PART);
	value_scene_begin(&s);
	s.parser.heap = &sink.sink;
	SUCCEEDS(h5_value_parse_vlen_string(&s.parser, string, text, most, data));
	ck_assert_uint_eq(sink.n, most);
	ck_assert_uint_eq(h5_uint_from(data, 4), UINT32_MAX);
	sink.n = 0;
	ck_assert_int_eq(h5_value_parse_vlen_string(&s.parser, string, text, most + 1, data), -EINVAL);
	ck_assert_uint_eq(sink.n, 0);
	ck_assert_str_eq(h5_error_last()->text, "4294967296 elements in a variable-length value");
	ck_assert_int_eq(
		h5_value_parse(&s.parser, &reference, &scalar, text, (size_t)INT32_MAX + 1, NULL, data),
		-EINVAL);
	ck_assert_str_eq(h5_error_last()->text, "the path is too long");
	value_scene_end(&s);
	munmap(text, size);
	close(fd);
	h5_datatype_free(string);
}
END_TEST

/* A short text of elements that are large. */
START_TEST(elements_beyond_the_budget)
{
	struct h5_datatype string = {.class = H5_CLASS_STRING, .size = 8 << 20};
	struct h5_datatype list = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.base = &string}};
	static const char few[] = "[\"a\"]", many[] = "[\"a\",\"b\",\"c\",\"d\",\"e\"]";
	struct big_sink sink = {.sink = {note_size}};
	struct h5_account account = {0};
	struct h5_room *room;
	struct value_scene s;
	uint8_t data[16];

	value_scene_begin(&s);
	s.parser.heap = &sink.sink;
	SUCCEEDS(h5_room_open(32 << 20, NULL, NULL, &room));
	h5_account_begin(&account, room);
	SUCCEEDS(h5_value_parse_json(&s.parser, &list, few, sizeof few - 1, NULL, data));
	ck_assert_uint_eq(sink.n, string.size);
	sink.n = 0;
	ck_assert_int_eq(h5_value_parse_json(&s.parser, &list, many, sizeof many - 1, NULL, data), -EFBIG);
	ck_assert_uint_eq(sink.n, 0);
	h5_account_end(&account);
	h5_room_close(room);
	value_scene_end(&s);
}
END_TEST

/* ---- failures ---- */

/* Memory runs out at each allocation in turn, those of json-c among them: the value is the right one, or
 * none. */
START_TEST(every_allocation_can_fail)
{
	static const char json[] =
		"[{\"a\":1,\"b\":[[{\"x\":2,\"s\":\"t\"}],[{\"x\":3,\"s\":\"\"}]],\"c\":0.5},"
		"{\"a\":-1,\"b\":[[{\"x\":2,\"s\":\"\"}],[{\"x\":1,\"s\":\"uuuu\"}]],\"c\":123456789.5}]";
	struct h5_datatype *nested = make_nested();
	struct h5_datatype t = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.base = nested}};
	bool fired = true;
	unsigned failed = 0;
	struct value_scene s;

	value_scene_begin(&s);
	for (unsigned long n = 1; fired; n++) {
		uint8_t data[16] = {0};
		int rc;

		h5_unit_begin(s.scratch.file);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_value_parse(&s.parser, &t, &scalar, json, sizeof json - 1, NULL, data);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		rc = h5_unit_end(s.scratch.file, rc);
		if (rc) {
			if (rc != -ENOMEM)
				ck_abort_msg("allocation %lu: %d, %s", n, rc, h5_error_last()->text);
			failed++;
			continue;
		}
		value_reads_back(&s.context, &t, &scalar, data, json, sizeof json - 1, "value");
	}
	ck_assert_uint_gt(failed, 10);
	h5_datatype_free(nested);
	value_scene_end(&s);
}
END_TEST

UNIT_MAIN("value_parse", attributes_of_every_kind, strings, strings_with_nul, numbers_and_words, enumerations,
	  compounds, old_members, arrays, references, references_whose_paths_cannot_be_read,
	  references_without_memory, variable_length, texts_of_four_gigabytes, elements_beyond_the_budget,
	  every_allocation_can_fail)

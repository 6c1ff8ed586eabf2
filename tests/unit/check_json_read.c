#include "base/error.h"
#include "base/json_read.h"
#include "object/json.h"
#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of what was read, by json-c. */
static void is_read_as(const char *text, const char *expected)
{
	struct h5_json_document document;

	if (h5_json_read(text, strlen(text), &document))
		ck_abort_msg("%s: %s", text, h5_error_last()->text);
	ck_assert_str_eq(json_object_to_json_string_ext(document.root, JSON_C_TO_STRING_NOSLASHESCAPE),
			 expected);
	h5_json_document_release(&document);
	h5_json_document_release(&document);
}

START_TEST(values)
{
	is_read_as("null", "null");
	is_read_as(" true\r\n", "true");
	is_read_as("[]", "[]");
	is_read_as("[[],{}, [ ]]", "[[],{},[]]");
	is_read_as("\t\r\n { \t\"a\"\r:\n1 ,\t\"b\" : [ \r1\n, 2\t] , \"c\" : { } }\n ",
		   "{\"a\":1,\"b\":[1,2],\"c\":{}}");
	is_read_as("{\"a\":1,\"b\":{\"a\":[null]}}", "{\"a\":1,\"b\":{\"a\":[null]}}");
	is_read_as("\"a\\u00e9\\ud83d\\ude00\\n\\/\"", "\"a\xc3\xa9\xf0\x9f\x98\x80\\n/\"");
	is_read_as("[\"a\",\"\"]", "[\"a\",\"\"]");
}
END_TEST

/* The first and the last character of each form of UTF-8, and bytes that are no character. */
START_TEST(characters)
{
	static const char *const texts[][2] = {
		{"\\u0001", "\x01"},
		{"\\u007f", "\x7f"},
		{"\\u0080", "\xc2\x80"},
		{"\\u07ff", "\xdf\xbf"},
		{"\\u0800", "\xe0\xa0\x80"},
		{"\\ud7ff", "\xed\x9f\xbf"},
		{"\\ue000", "\xee\x80\x80"},
		{"\\uFFFF", "\xef\xbf\xbf"},
		{"\\ud800\\udc00", "\xf0\x90\x80\x80"},
		{"\\ud834\\udd1e", "\xf0\x9d\x84\x9e"},
		{"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"},
		{"\\udc80", "\x80"},
		{"\\udcff", "\xff"},
		{"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct h5_json_document document;
		char text[64];

		snprintf(text, sizeof text, "\"<%s>\"", texts[i][0]);
		ck_assert_msg(!h5_json_read(text, strlen(text), &document), "%s", text);
		snprintf(text, sizeof text, "<%s>", texts[i][1]);
		ck_assert_str_eq(json_object_get_string(document.root), text);
		h5_json_document_release(&document);
	}
}
END_TEST

START_TEST(numbers_keep_their_digits)
{
	static const char *const texts[][2] = {
		{"0", "0"},
		{"-0", "-0"},
		{"-5", "-5"},
		{"999999999999999999", "999999999999999999"},
		{"9223372036854775807", "9223372036854775807"},
		{"18446744073709551615", "18446744073709551615"},
		{"340282366920938463463374607431768211456", "340282366920938463463374607431768211456"},
		{"1.50", "1.50"},
		{"1e400", "1e400"},
		{"-12345678901234567890.123456789E-5", "-12345678901234567890.123456789E-5"},
	};
	char room[H5_JSON_INTEGER_ROOM];
	struct h5_json_document document;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		ck_assert_int_eq(h5_json_read(texts[i][0], strlen(texts[i][0]), &document), 0);
		ck_assert_str_eq(h5_json_number_text(document.root, room), texts[i][1]);
		h5_json_document_release(&document);
	}
	/* What fits in 64 bits whatever its digits are is an integer of json-c. */
	for (size_t n = 18; n <= 19; n++) {
		ck_assert_int_eq(h5_json_read("9999999999999999999", n, &document), 0);
		ck_assert_int_eq(json_object_is_type(document.root, json_type_int), n == 18);
		h5_json_document_release(&document);
	}
	ck_assert_int_eq(h5_json_read("\"5\"", 3, &document), 0);
	ck_assert_ptr_null(h5_json_number_text(document.root, room));
	h5_json_document_release(&document);
}
END_TEST

static bool are_equal(const char *a, const char *b)
{
	struct h5_json_document x, y;
	bool equal;

	ck_assert_int_eq(h5_json_read(a, strlen(a), &x), 0);
	ck_assert_int_eq(h5_json_read(b, strlen(b), &y), 0);
	equal = h5_json_equal(x.root, y.root);
	h5_json_document_release(&x);
	h5_json_document_release(&y);
	return equal;
}

START_TEST(equal_values)
{
	static const char *const different[] = {"null",
						"true",
						"false",
						"1",
						"2",
						"1.5",
						"2.5",
						"10000000000000000001",
						"10000000000000000002",
						"\"1\"",
						"[]",
						"[1]",
						"[1,2]",
						"[2,1]",
						"{}",
						"{\"a\":1}",
						"{\"a\":2}",
						"{\"b\":1}",
						"{\"a\":1,\"b\":1}"};
	const size_t n = sizeof different / sizeof *different;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			ck_assert(are_equal(different[i], different[j]) == (i == j));
	ck_assert(are_equal("{\"a\":[1,{}],\"b\":null}", " { \"b\" : null, \"a\":[1 ,{}]}"));
}
END_TEST

START_TEST(length_of_a_number)
{
	static const struct {
		const char *text;
		size_t length;
	} numbers[] = {{"12,", 2}, {"-1.5e+3x", 7}, {"01", 0},	{"0", 1},  {"0.0", 3}, {"1.", 0},
		       {".5", 0},  {"1e", 0},	    {"1e+", 0}, {"-", 0},  {"", 0},    {"--1", 0},
		       {"1-2", 1}, {"+1", 0},	    {"Na", 0},	{"00", 0}, {"-0", 2}};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		ck_assert_uint_eq(h5_json_number_length(numbers[i].text, strlen(numbers[i].text)),
				  numbers[i].length);
}
END_TEST

static void is_refused(const char *text, size_t n)
{
	struct h5_json_document document;

	if (h5_json_read(text, n, &document) != -EINVAL)
		ck_abort_msg("taken: %.*s", (int)n, text);
	ck_assert_ptr_null(document.root);
	ck_assert_int_eq(strncmp(h5_error_last()->text, "JSON", 4), 0);
}

START_TEST(what_is_no_json)
{
	static const char *const texts[] = {
		"",
		" ",
		"nul",
		"nulll",
		"null null",
		"NULL",
		"True",
		"NaN",
		"Infinity",
		"-Infinity",
		"[NaN]",
		"[",
		"]",
		"[1",
		"[1,",
		"[1,]",
		"[,1]",
		"[1 2]",
		"[1]]",
		"[1] 2",
		"[1}",
		"{",
		"}",
		"{]",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{a:1}",
		"{'a':1}",
		"{\"a\" 1}",
		"{\"a\"::1}",
		"{1:2}",
		"{,}",
		":",
		",",
		"\"",
		"\"a",
		"\"a\"b\"",
		"'a'",
		"\"\t\"",
		"\"\n\"",
		"\"\\q\"",
		"\"\\",
		"\"\\u\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"01",
		"-01",
		"1.",
		".5",
		"+1",
		"1e",
		"-",
		"1-2",
		"1 2",
		"0x10",
		"1.5.5",
		"--1",
		"/*a*/1",
		"1/**/",
		"[1]//",
		"1true",
		"true1",
		"\"a\"\"b\"",
		"\xef\xbb\xbf[1]",
		"\v1",
		"\f",
		/* surrogates that stand for nothing */
		"\"\\ud800\"",
		"\"\\ud800x\"",
		"\"\\ud800\\u0041\"",
		"\"\\udfff\"",
		"\"\\udc00\"",
		"\"\\udc7f\"",
		"\"\\udd00\"",
		"\"\\udbff\\ud800\"",
		"\"\\ud800\\ue000\"",
		"\"\\ud800\\n0000\"",
		"\"\\udd00\"",
		"\"\\udfff\"",
		/* names */
		"{\"a\":1,\"a\":1}",
		"[{\"b\":{\"a\":1,\"c\":2,\"\\u0061\":1}}]",
		"{\"a\\u0000b\":1}",
		"{\"\\u0000\":1}",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		is_refused(texts[i], strlen(texts[i]));
	is_refused("1\0", 2);
	is_refused("\0", 1);
	is_refused("\"\0\"", 3);
	is_refused("[1\0]", 4);
	is_refused("\"\\\0\"", 4);
}
END_TEST

START_TEST(a_text_that_is_too_long)
{
	struct h5_json_document document;

	/* It is not looked at. */
	ck_assert_int_eq(h5_json_read("1", (size_t)INT_MAX + 1, &document), -EFBIG);
	ck_assert_str_eq(h5_error_last()->text, "JSON: a text of 2147483648 bytes");
}
END_TEST

START_TEST(nested_deep)
{
	enum { DEEP = 1000000 };
	struct h5_json_document document;
	char *text = malloc(2 * DEEP);

	memset(text, '[', DEEP);
	memset(text + DEEP, ']', DEEP);
	is_refused(text, 2 * DEEP);
	is_refused(text, DEEP);
	is_refused(text + DEEP - H5_JSON_DEPTH - 1, 2 * H5_JSON_DEPTH + 2);
	ck_assert_int_eq(h5_json_read(text + DEEP - H5_JSON_DEPTH, 2 * H5_JSON_DEPTH, &document), 0);
	h5_json_document_release(&document);
	for (size_t i = 0; i + 5 <= 2 * DEEP; i += 5)
		memcpy(text + i, "{\"a\":", 5);
	is_refused(text, 2 * DEEP);
	free(text);
}
END_TEST

/* What h5_json_string() writes is read as the same bytes, whatever they are. */
START_TEST(strings_read_back)
{
	struct h5_json_document document;
	struct h5_buf text;
	char bytes[24];

	h5_buf_init(&text, 1000);
	srandom(1);
	for (unsigned i = 0; i < 20000; i++) {
		size_t n = (size_t)random() % sizeof bytes;

		for (size_t at = 0; at < n; at++)
			bytes[at] = (char)(i & 1 ? random()
						 : "\\\"u\xed\xa0\xb0\x80\xc3\xa9\0dc8"[random() % 14]);
		text.size = 0;
		h5_json_string(&text, bytes, n);
		ck_assert_int_eq(h5_json_read(text.data, text.size, &document), 0);
		ck_assert_int_eq(json_object_get_string_len(document.root), (int)n);
		ck_assert_mem_eq(json_object_get_string(document.root), bytes, n);
		h5_json_document_release(&document);
	}
	h5_buf_release(&text);
}
END_TEST

/* A text ends where it ends, whatever lies behind it. */
START_TEST(what_lies_behind_a_text)
{
	static const char *const texts[] = {
		"{\"a\" : [1, -2.5e+3, 0.25E-7], \"b\\n\\u00e9\\ud83d\\ude00\": {}}",
		" [ true,false , null, \"\" ] ", "-0", "12"};
	static const char behind[] = " \n09.eE+-\"\\u,:[]{}tnfalse";

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (size_t n = 0; n <= strlen(texts[i]); n++) {
			char text[80] = "", wrong[256] = "";
			struct h5_json_document document, other;
			int rc;

			ck_assert_uint_lt(strlen(texts[i]) + 8, sizeof text);
			memcpy(text, texts[i], n);
			rc = h5_json_read(text, n, &document);
			if (rc)
				snprintf(wrong, sizeof wrong, "%s", h5_error_last()->text);
			for (const char *p = behind; *p; p++) {
				memset(text + n, *p, 8);
				ck_assert_int_eq(h5_json_read(text, n, &other), rc);
				if (rc) {
					ck_assert_str_eq(h5_error_last()->text, wrong);
					continue;
				}
				ck_assert(h5_json_equal(document.root, other.root));
				h5_json_document_release(&other);
			}
			if (!rc)
				h5_json_document_release(&document);
		}
}
END_TEST

/* Each part, and each text with another byte, is read or refused. */
START_TEST(damaged_text)
{
	static const char good[] =
		"{\"a\":[1,-2.5e3,\"x\\u00e9\\udc80\",null,true,[[]],{}],\"b\":123456789012345678901}";
	static const char bytes[] = "\"\\,:[]{}0-eEu \n\xff"
				    "nt";
	struct h5_json_document document;
	char *copy = malloc(sizeof good);
	size_t n = sizeof good - 1;

	for (size_t i = 0; i < n; i++) {
		memcpy(copy, good, n);
		for (size_t j = 0; j < sizeof bytes; j++) {
			copy[i] = bytes[j];
			if (!h5_json_read(copy, n, &document))
				h5_json_document_release(&document);
		}
		is_refused(good, i);
	}
	free(copy);
}
END_TEST

START_TEST(memory_is_charged)
{
	struct h5_account account = {0};
	struct h5_json_document document;
	enum { N = 3000000 };
	char *text = malloc(N);
	struct h5_room *room;

	ck_assert_int_eq(h5_room_open(64 << 20, NULL, NULL, &room), 0);
	for (size_t i = 0; i < N; i += 3)
		memcpy(text + i, "{},", 3);
	text[0] = '[';
	text[1] = '0';
	text[N - 1] = ']';
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_json_read(text, N, &document), -EFBIG);
	text[60002] = ']';
	ck_assert_int_eq(h5_json_read(text, 60003, &document), 0);
	ck_assert_uint_gt(document.charge.bytes, 60000);
	h5_json_document_release(&document);
	h5_account_end(&account);
	h5_room_close(room);
	free(text);
}
END_TEST

/* Documents that get longer: each is charged, or refused and nothing of it is left. */
START_TEST(no_memory_is_taken_that_is_not_charged)
{
	enum { MOST = 2 << 20, STEP = 50000, CAPACITY = 1 << 20 };
	static const struct {
		const char *begin, *more, *end;
		size_t charged; /* at least, for each of `more` */
	} forms[] = {
		{"\"", "x", "\"", 1},
		{"{\"", "x", "\":1}", 1},
		{"", "1", "", 1},
		{"[0", ",0", "]", 256},
		{"[0", ",[]", "]", 256},
		{"[0", ",{}", "]", 1024},
		{"[0", ",\"12345678\"", "]", 264},
	};
	char *text = malloc(MOST + 100);

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		const size_t each = strlen(forms[i].more);
		size_t count = 0, n = strlen(forms[i].begin);
		bool refused = false;

		memcpy(text, forms[i].begin, n);
		while (!refused) {
			struct h5_account account = {0};
			struct h5_json_document document;
			struct h5_room *room;
			int rc;

			for (size_t k = 0; k < STEP; k += forms[i].charged, n += each, count++)
				memcpy(text + n, forms[i].more, each);
			ck_assert_uint_lt(n, MOST);
			strcpy(text + n, forms[i].end);
			ck_assert_int_eq(h5_room_open(CAPACITY, NULL, NULL, &room), 0);
			h5_account_begin(&account, room);
			rc = h5_json_read(text, n + strlen(forms[i].end), &document);
			refused = rc;
			if (rc)
				ck_assert_msg(rc == -EFBIG || rc == -ENOMEM, "form %zu: %d", i, rc);
			else
				ck_assert_msg(document.charge.bytes >= count * forms[i].charged,
					      "form %zu, %zu bytes: %zu", i, n, document.charge.bytes);
			h5_json_document_release(&document);
			ck_assert_uint_eq(account.taken, 0);
			h5_account_end(&account);
			h5_room_close(room);
		}
	}
	free(text);
}
END_TEST

UNIT_MAIN("json_read", values, characters, numbers_keep_their_digits, equal_values, length_of_a_number,
	  what_is_no_json, a_text_that_is_too_long, nested_deep, strings_read_back, what_lies_behind_a_text,
	  damaged_text, memory_is_charged, no_memory_is_taken_that_is_not_charged)

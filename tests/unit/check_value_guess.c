/* The type of a new attribute, guessed from its text. */
#include "fault_alloc.h"
#include "value_scene.h"

/* Every text is read as what was guessed from it, and reads back. */
static void is_guessed(struct value_scene *s, const char *text, size_t n, const char *expected)
{
	struct h5_dataspace space;
	struct h5_datatype *type;
	struct h5_buf name;
	uint8_t *data;

	SUCCEEDS(h5_value_guess(text, n, 8, &type, &space));
	h5_buf_init(&name, 1000);
	h5_datatype_numpy_shaped(type, &space, &name);
	if (expected)
		ends_with(&name, expected, strlen(expected), text);
	h5_buf_release(&name);
	data = calloc((size_t)space.elements + 1, type->size);
	SUCCEEDS(h5_value_parse(&s->parser, type, &space, text, n, NULL, data));
	value_reads_back(&s->context, type, &space, data, text, n, "guess");
	free(data);
	h5_datatype_free(type);
}

START_TEST(types_of_texts)
{
	static const char *const guesses[][2] = {
		{"5", "<i8"},
		{"-5", "<i8"},
		{"0", "<i8"},
		{"9223372036854775807", "<i8"},
		{"-9223372036854775808", "<i8"},
		{"1000000000000000000", "<i8"},
		{"9223372036854775808", "<u8"},
		{"18446744073709551615", "<u8"},
		{"18446744073709551616", "vlen str"},
		{"-9223372036854775809", "vlen str"},
		{"0.5", "<f8"},
		{"-0.0", "<f8"},
		{"1e+22", "<f8"},
		{"1e22", "vlen str"},
		{"1.0", "vlen str"},
		{"-0", "vlen str"},
		{"5e0", "vlen str"},
		{"0.10000000000000001", "vlen str"},
		{"1e999", "vlen str"},
		{"5 ", "vlen str"},
		{"5\n", "vlen str"},
		{"+5", "vlen str"},
		{"05", "vlen str"},
		{"[1,2]", "(2,)<i8"},
		{"[1,2.5]", "(2,)<f8"},
		{"[0,18446744073709551615]", "(2,)<u8"},
		{"[-1,18446744073709551615]", "vlen str"},
		{"[1, 2]", "vlen str"},
		{"[[1,2],[3,4],[5,6]]", "(3,2)<i8"},
		{"[[1,2],[3]]", "vlen str"},
		{"[[1],2]", "vlen str"},
		{"[1,[2]]", "vlen str"},
		{"[]", "(0,)<f8"},
		{"[[],[]]", "(2,0)<f8"},
		{"[[],[1]]", "vlen str"},
		{"[\"a\",\"\"]", "(2,)vlen str"},
		{"[\"a\\u0000\"]", "vlen str"},
		{"[\"\\udcff\"]", "(1,)vlen str"},
		{"[\"\xff\"]", "vlen str"},
		{"[\"\\u0041\"]", "vlen str"},
		{"[\"NaN\"]", "(1,)vlen str"},
		{"[\"NaN\",1]", "(2,)<f8"},
		{"[0.5,\"-Infinity\"]", "(2,)<f8"},
		{"[\"NaN\",\"a\"]", "(2,)vlen str"},
		{"[\"NaN\",\"a\",1]", "vlen str"},
		{"[1,\"a\"]", "vlen str"},
		{"[true]", "vlen str"},
		{"[null]", "vlen str"},
		{"[{\"a\":1}]", "vlen str"},
		{"{\"a\":1}", "vlen str"},
		{"\"a\"", "vlen str"},
		{"true", "vlen str"},
		{"NaN", "vlen str"},
		{"null", "vlen str"},
		{"degC", "vlen str"},
		{"", "vlen str"},
		{"[", "vlen str"},
		{"\xff\xfe", "vlen str"},
	};
	struct value_scene s;

	value_scene_begin(&s);
	for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
		is_guessed(&s, guesses[i][0], strlen(guesses[i][0]), guesses[i][1]);
	is_guessed(&s, "a\0b", 3, "S3");
	is_guessed(&s, "a\0", 2, "S2");
	is_guessed(&s, "\0", 1, "S1");
	is_guessed(&s, "5\0", 2, "S2");
	is_guessed(&s, " \0 \0", 4, "S4");
	value_scene_end(&s);
}
END_TEST

START_TEST(any_text_reads_back)
{
	static const char pool[] = "[[[]],,0123456789..--eE\"\"\\u\0\xff a{}:";
	struct value_scene s;
	char text[24];

	value_scene_begin(&s);
	srandom(3);
	for (unsigned i = 0; i < 20000; i++) {
		size_t n = (size_t)random() % sizeof text;

		for (size_t at = 0; at < n; at++)
			text[at] = pool[(size_t)random() % (sizeof pool - 1)];
		is_guessed(&s, text, n, NULL);
	}
	value_scene_end(&s);
}
END_TEST

/* Nested as deep as a dataspace can be, and deeper; and many elements. */
START_TEST(large_guesses)
{
	enum { MANY = 200000 };
	char deep[2 * 40 + 2], *many = malloc(2 * MANY + 2);
	struct value_scene s;

	value_scene_begin(&s);
	for (unsigned depth = 30; depth <= 34; depth++) {
		memset(deep, '[', depth);
		deep[depth] = '7';
		memset(deep + depth + 1, ']', depth);
		is_guessed(&s, deep, 2 * depth + 1, depth > 32 ? "vlen str" : NULL);
	}
	for (unsigned i = 0; i < MANY; i++)
		memcpy(many + 2 * i, ",7", 2);
	many[0] = '[';
	many[2 * MANY] = ']';
	is_guessed(&s, many, 2 * MANY + 1, "(200000,)<i8");
	memset(many, '[', 2 * MANY);
	is_guessed(&s, many, 2 * MANY, "vlen str");
	free(many);
	value_scene_end(&s);
}
END_TEST

/* Nothing of it is read. */
START_TEST(a_text_of_four_gigabytes)
{
	struct h5_dataspace space;
	struct h5_datatype *type;

	ck_assert_int_eq(h5_value_guess("text", (size_t)UINT32_MAX + 1, 8, &type, &space), -EFBIG);
	ck_assert_ptr_null(type);
}
END_TEST

START_TEST(guesses_without_memory)
{
	static const char *const texts[] = {"[[1,2],[3,4]]", "[\"a\",\"b\"]", "0.5",
					    "text",	     "[1,\"a\"]",     "a"};
	bool fired;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct h5_dataspace space, expected;
		struct h5_datatype *type, *wanted;
		size_t size = strlen(texts[i]);

		SUCCEEDS(h5_value_guess(texts[i], size, 8, &wanted, &expected));
		fired = true;
		for (unsigned long n = 1; fired; n++) {
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_value_guess(texts[i], size, 8, &type, &space);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert(!rc || rc == -ENOMEM);
			if (rc)
				continue;
			ck_assert_int_eq(type->class, wanted->class);
			ck_assert_int_eq(space.kind, expected.kind);
			h5_datatype_free(type);
		}
		h5_datatype_free(wanted);
	}
}
END_TEST

UNIT_MAIN("value_guess", types_of_texts, any_text_reads_back, large_guesses, a_text_of_four_gigabytes,
	  guesses_without_memory)

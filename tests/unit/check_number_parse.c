#include "base/writer.h"
#include "object/value_parse_private.h"
#include "unit.h"
#include "values.h"

#include <math.h>

static size_t unhex(const char *hex, uint8_t *data)
{
	size_t n = 0;
	unsigned byte;

	for (; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		data[n] = (uint8_t)byte;
	return n;
}

/* What the printer wrote is read as the same bytes. Only NaN has many. */
static void float_is(const struct h5_datatype *t, const char *text, const uint8_t *expected)
{
	uint8_t data[100] = {0};
	char again[H5_FLOAT_TEXT_MAX];

	if (h5_float_parse(t, text, strlen(text), data))
		ck_abort_msg("%s: %s", text, h5_error_last()->text);
	(void)h5_float_format(t, data, again);
	ck_assert_str_eq(again, text);
	if (strcmp(text, "NaN") && expected && memcmp(data, expected, t->size))
		ck_abort_msg("other bytes of %s", text);
}

START_TEST(floats_of_many_formats)
{
	char path[4096], line[4096], hex[200], text[200], order;
	FILE *f = open_data("value_floats.txt", path, sizeof path);
	struct h5_datatype t = {.class = H5_CLASS_FLOAT};
	unsigned e, m, bias, implied, size;
	uint8_t data[100];
	int n = 0;

	while (fgets(line, sizeof line, f))
		if (sscanf(line, "format %u %u %u %u %u %c", &e, &m, &bias, &implied, &size, &order) == 6) {
			t = real(size, e, m, bias, order == '<' ? H5_ORDER_LE : H5_ORDER_BE);
			t.fl.norm = implied ? H5_NORM_IMPLIED : H5_NORM_NONE;
		} else if (sscanf(line, "value %199s %199s", hex, text) == 2) {
			ck_assert_uint_eq(unhex(hex, data), t.size);
			/* With an explicit bit a value may have several forms. */
			float_is(&t, text, implied ? data : NULL);
			n++;
		}
	ck_assert_int_gt(n, 3000);
	fclose(f);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *state ^ *state >> 29;
}

/* A float of the machine as the element has it, which is little-endian. */
static void store(const struct h5_datatype *t, double d, uint8_t data[8])
{
	float f = (float)d;
	uint64_t bits;
	uint32_t half;

	memcpy(&bits, &d, sizeof bits);
	memcpy(&half, &f, sizeof half);
	h5_uint_to(data, t->size == 4 ? half : bits, t->size);
}

/* By the exact way and by the C library. */
static void same_both_ways(const struct h5_datatype *t, const char *text)
{
	double d = t->size == 4 ? (double)strtof(text, NULL) : strtod(text, NULL);
	uint8_t exact[8] = {0}, expected[8];
	int rc = h5_float_parse_by(t, text, strlen(text), false, exact);

	if (isinf(d)) {
		ck_assert_int_eq(rc, -EINVAL);
		return;
	}
	ck_assert_int_eq(rc, 0);
	store(t, d, expected);
	if (memcmp(exact, expected, t->size))
		ck_abort_msg("%s is not read as %.17g", text, d);
}

/* Just between two floats, and a last digit beside it. */
static void near_the_middle(const struct h5_datatype *t, uint64_t bits)
{
	static const char *const ends[] = {"", "0", "1", "0000000000000000000000000000000000001"};
	uint32_t low = (uint32_t)bits;
	char text[2000];
	double a, b;
	float f, g;

	memcpy(&a, &bits, sizeof a);
	memcpy(&f, &low, sizeof f);
	g = nextafterf(f, INFINITY);
	b = nextafter(a, INFINITY);
	if (t->size == 4)
		snprintf(text, sizeof text, "%.1100e", ((double)f + (double)g) / 2);
	else
		snprintf(text, sizeof text, "%.1100Le", ((long double)a + (long double)b) / 2);
	if (strchr(text, 'n'))
		return; /* not a number */
	for (unsigned i = 0; i < 4; i++) {
		char longer[2100], *exponent = strchr(text, 'e');

		snprintf(longer, sizeof longer, "%.*s%s%s", (int)(exponent - text), text, ends[i], exponent);
		same_both_ways(t, longer);
	}
}

START_TEST(nearest_floats)
{
	struct h5_datatype single = real(4, 8, 23, 127, H5_ORDER_LE),
			   twice = real(8, 11, 52, 1023, H5_ORDER_LE);
	uint64_t state = 1;
	char text[100];

	for (unsigned i = 0; i < 1500; i++) {
		uint64_t bits = next_random(&state) << 32 | next_random(&state) >> 32;

		snprintf(text, sizeof text, "%s%ju.%jue%d", i & 1 ? "-" : "", (uintmax_t)bits,
			 (uintmax_t)next_random(&state), (int)(bits % 700) - 350);
		same_both_ways(&twice, text);
		snprintf(text, sizeof text, "%ju.%jue%d", (uintmax_t)bits % 1000, (uintmax_t)bits,
			 (int)(bits % 100) - 50);
		same_both_ways(&single, text);
		near_the_middle(&single, bits);
		near_the_middle(&twice, i % 10 ? bits : bits & ~(UINT64_C(0x7ff) << 52));
	}
}
END_TEST

START_TEST(floats_at_the_ends)
{
	static const struct {
		const char *text;
		uint16_t half; /* 0xffff: out of range */
	} halves[] = {
		{"65504", 0x7bff},
		{"65519.99", 0x7bff},
		{"65520", 0xffff},
		{"-65520", 0xffff},
		{"0", 0},
		{"-0.0", 0x8000},
		{"-0", 0x8000},
		{"6e-8", 1},
		{"3e-8", 1},
		{"2.9e-8", 0},
		{"-1e-9999999999", 0x8000},
		{"1e99999999999999999999", 0xffff},
		{"1.5", 0x3e00},
		{"0.0015e3", 0x3e00},
		{"15E-1", 0x3e00},
		{"0e99999999999", 0},
		{"NaN", 0x7e00},
		{"Infinity", 0x7c00},
		{"-Infinity", 0xfc00},
	};
	struct h5_datatype t = real(2, 5, 10, 15, H5_ORDER_LE), small = real(1, 4, 3, 7, H5_ORDER_LE);
	uint8_t data[2];

	for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
		int rc = h5_float_parse(&t, halves[i].text, strlen(halves[i].text), data);

		ck_assert_int_eq(rc, halves[i].half == 0xffff ? -EINVAL : 0);
		if (!rc && (data[0] | data[1] << 8) != halves[i].half)
			ck_abort_msg("%s", halves[i].text);
	}
	/* All exponents are numbers here. */
	float_is(&small, "480", (const uint8_t[]){0x7f});
	ck_assert_int_eq(h5_float_parse(&small, "NaN", 3, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&small, "-Infinity", 9, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&small, "500", 3, data), -EINVAL);
}
END_TEST

START_TEST(floats_of_wild_formats)
{
	struct h5_datatype wide = real(8, 20, 43, 0, H5_ORDER_LE),
			   far = real(4, 8, 23, UINT32_MAX, H5_ORDER_LE);
	struct h5_datatype f = real(4, 8, 23, 129, H5_ORDER_VAX), g = real(8, 11, 52, 1025, H5_ORDER_VAX);
	struct h5_datatype x87 = real(16, 15, 64, 16383, H5_ORDER_LE);
	uint8_t data[16];

	float_is(&wide, "0x80000000001p+524244", (const uint8_t[]){1, 0, 0, 0, 0, 0xf8, 0xff, 0x3f});
	float_is(&wide, "-0x80000000001p+524244", (const uint8_t[]){1, 0, 0, 0, 0, 0xf8, 0xff, 0xbf});
	float_is(&far, "0x800000p-4294967317", (const uint8_t[]){0, 0, 0x80, 0});
	ck_assert_int_eq(h5_float_parse(&far, "1e-6000", 7, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&far, "0x1p+99999999999999999999", 25, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&far, "0x1p+", 5, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&far, "0x", 2, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&far, "0xg", 3, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&far, "0xp+1", 5, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&far, "0x1q+1", 6, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&far, "0x1p1", 5, data), -EINVAL);
	ck_assert_int_eq(h5_float_parse(&far, "0x1p+1x", 7, data), -EINVAL);
	float_is(&f, "1", (const uint8_t[]){0x80, 0x40, 0, 0});
	float_is(&f, "-2.5", (const uint8_t[]){0x20, 0xc1, 0, 0});
	float_is(&g, "1.0000000000000002", (const uint8_t[]){0x10, 0x40, 0, 0, 0, 0, 1, 0});
	x87.fl.norm = H5_NORM_NONE;
	float_is(&x87, "1", (const uint8_t[16]){[7] = 0x80, [8] = 0xff, [9] = 0x3f});
	float_is(&x87, "Infinity", (const uint8_t[16]){[7] = 0x80, [8] = 0xff, [9] = 0x7f});
	float_is(&x87, "NaN", NULL);
}
END_TEST

/* The low two bytes of the float that is nearest to the number. */
static void half_is(const struct h5_datatype *t, const char *text, size_t n, unsigned expected)
{
	uint8_t data[4] = {0};

	ck_assert_int_eq(h5_float_parse(t, text, n, data), 0);
	ck_assert_msg(h5_uint_from(data, 2) == expected, "%.40s: %#x, not %#x", text,
		      (unsigned)h5_uint_from(data, 2), expected);
}

/* Hexadecimal numbers near to the least float, 2^-24, and far below it. */
START_TEST(hexadecimals_below_the_least_float)
{
	static const struct {
		const char *text;
		unsigned half;
	} numbers[] = {
		{"0x1p-24", 1},
		{"0x3p-25", 2},
		{"0x1p-25", 0},
		{"0x3p-26", 1},
		{"0x3p-27", 0},
		{"0x1p-26", 0},
		{"0x7p-27", 1},
		{"0x1p-27", 0},
		{"0x1p-999999999999", 0},
		{"-0x1p-70000", 0x8000},
		{"0xffp-31", 2},
		{"0x1p-2147483649", 0},
		{"-0x1p-4294967296", 0x8000},
	};
	const struct h5_datatype half = real(2, 5, 10, 15, H5_ORDER_LE);

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		half_is(&half, numbers[i].text, strlen(numbers[i].text), numbers[i].half);
}
END_TEST

/* The mantissa is the integer bit alone. */
START_TEST(floats_without_a_fraction)
{
	struct h5_datatype t = real(2, 5, 1, 15, H5_ORDER_LE);
	uint8_t data[2];

	t.fl.norm = H5_NORM_NONE;
	float_is(&t, "1", (const uint8_t[]){0x1f, 0});
	float_is(&t, "Infinity", (const uint8_t[]){0x3f, 0});
	float_is(&t, "-Infinity", (const uint8_t[]){0x7f, 0});
	ck_assert_int_eq(h5_float_parse(&t, "NaN", 3, data), -EINVAL);
}
END_TEST

/* The decimal digits of 5^exponent. */
static size_t power_of_five(unsigned exponent, char *text, size_t size)
{
	static struct h5_bignum b;
	size_t at = size;

	h5_bignum_set(&b, 1);
	while (exponent--)
		h5_bignum_mul(&b, 5);
	while (b.n) {
		uint32_t group = h5_bignum_div(&b, 1000000000);

		for (unsigned i = 0; i < 9 && (b.n || group); i++, group /= 10)
			text[--at] = (char)('0' + group % 10);
	}
	memmove(text, text + at, size - at);
	return size - at;
}

/* The middle between two floats, and a digit far behind it that makes it more. */
START_TEST(digits_far_behind_the_middle)
{
	enum { MANY = 12600, EXPONENT = 18026 };
	static char text[2 * MANY];
	/* The least float is 2^-18025, so the middle between it and 0 is 5^18026 x 10^-18026. */
	const struct h5_datatype half = real(2, 5, 10, 15, H5_ORDER_LE),
				 far = real(3, 16, 7, 18019, H5_ORDER_LE);
	size_t n = (size_t)sprintf(text, "2.98023223876953125");

	memset(text + n, '0', sizeof text - n);
	memcpy(text + MANY, "0e-8", 4);
	half_is(&half, text, MANY + 4, 0);
	text[MANY] = '1';
	half_is(&half, text, MANY + 4, 1);

	n = power_of_five(EXPONENT, text, sizeof text);
	ck_assert_uint_eq(n, MANY); /* as many as are looked at */
	ck_assert_int_eq(text[n - 1], '5');
	for (unsigned more = 0; more < 3; more++) {
		/* 0, 1, 01 */
		size_t end = n + (more ? more : 1);

		memset(text + n, '0', 2);
		text[end - 1] = more ? '1' : '0';
		half_is(&far, text, end + (size_t)sprintf(text + end, "e-%zu", EXPONENT + end - n), more > 0);
	}
}
END_TEST

/* ---- integers ---- */

static const struct {
	uint32_t size;
	uint16_t offset, precision;
	bool is_signed;
	enum h5_byte_order order;
	const char *text, *hex; /* NULL: refused */
} integers[] = {
	{1, 0, 8, false, H5_ORDER_LE, "255", "ff"},
	{1, 0, 8, false, H5_ORDER_LE, "256", NULL},
	{1, 0, 8, false, H5_ORDER_LE, "-1", NULL},
	{1, 0, 8, false, H5_ORDER_LE, "-0", "00"},
	{1, 0, 8, true, H5_ORDER_LE, "127", "7f"},
	{1, 0, 8, true, H5_ORDER_LE, "128", NULL},
	{1, 0, 8, true, H5_ORDER_LE, "-128", "80"},
	{1, 0, 8, true, H5_ORDER_LE, "-129", NULL},
	{1, 0, 1, true, H5_ORDER_LE, "-1", "01"},
	{1, 0, 1, true, H5_ORDER_LE, "1", NULL},
	{1, 0, 1, true, H5_ORDER_LE, "0", "00"},
	{2, 0, 16, true, H5_ORDER_BE, "-2", "fffe"},
	{4, 4, 12, false, H5_ORDER_LE, "833", "10340000"},
	{4, 4, 12, false, H5_ORDER_BE, "1383", "00005670"},
	{4, 4, 12, false, H5_ORDER_VAX, "1925", "00005078"},
	{8, 0, 64, true, H5_ORDER_LE, "-9223372036854775808", "0000000000000080"},
	{8, 0, 64, true, H5_ORDER_LE, "9223372036854775808", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "9223372036854775807", "ffffffffffffff7f"},
	{8, 0, 64, false, H5_ORDER_BE, "18446744073709551615", "ffffffffffffffff"},
	{8, 0, 64, false, H5_ORDER_BE, "18446744073709551616", NULL},
	{8, 0, 64, true, H5_ORDER_BE, "1e3", "00000000000003e8"},
	{8, 0, 64, true, H5_ORDER_BE, "1.5e1", "000000000000000f"},
	{8, 0, 64, true, H5_ORDER_BE, "15.000", "000000000000000f"},
	{8, 0, 64, true, H5_ORDER_BE, "1500e-2", "000000000000000f"},
	{8, 0, 64, true, H5_ORDER_BE, "15.5", NULL},
	{8, 0, 64, true, H5_ORDER_BE, "1e-1", NULL},
	{8, 0, 64, true, H5_ORDER_BE, "1e99999999999", NULL},
	{8, 0, 64, true, H5_ORDER_BE, "0e99999999999", "0000000000000000"},
	{16, 0, 128, false, H5_ORDER_LE, "340282366920938463463374607431768211455",
	 "ffffffffffffffffffffffffffffffff"},
	{16, 0, 128, true, H5_ORDER_LE, "-170141183460469231731687303715884105728",
	 "00000000000000000000000000000080"},
	{16, 0, 128, true, H5_ORDER_LE, "-170141183460469231731687303715884105729", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "-", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "+1", NULL},
	{8, 0, 64, true, H5_ORDER_LE, " 1", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "1\n", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "01", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "1.", NULL},
	{8, 0, 64, true, H5_ORDER_LE, ".5", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "1e", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "0x10", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "NaN", NULL},
	{8, 0, 64, true, H5_ORDER_LE, "ten", NULL},
};

/* Words, and hexadecimal numbers, of which every byte counts. */
START_TEST(words_that_are_floats)
{
#define ZEROS "000000000000000000000000000000000000000000000000000000000000000"
	static const struct {
		const char *text;
		uint16_t half; /* 0xffff: refused */
	} words[] = {
		{"0x1p+9", 0x6000},
		{"0x1p-9", 0x1800},
		{"0x2p-1", 0x3c00},
		{"0xap+0", 0x4900},
		{"0xfp+0", 0x4b80},
		{"-0x9p+00", 0xc880},
		{"0x0p+1", 0xffff},
		{"0x1p+/", 0xffff},
		{"0x1p+:", 0xffff},
		{"0x1p+1:", 0xffff},
		{"0x1p*1", 0xffff},
		{"0x1P+1", 0xffff},
		{"0xAp+1", 0xffff},
		{"0x:p+1", 0xffff},
		{"0x1p+1", 0x4000},
		{"NaN", 0x7e00},
		{"Infinity", 0x7c00},
		{"-Infinity", 0xfc00},
		{"-NaN", 0xffff},
		{"--Infinity", 0xffff},
		{"infinity", 0xffff},
		{"0x" ZEROS "1p+0", 0x3c00},
		{"0x0" ZEROS "1p+0", 0xffff},
		{"", 0xffff},
	};
	const struct h5_datatype half = real(2, 5, 10, 15, H5_ORDER_LE);

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
		const size_t n = strlen(words[i].text);
		uint8_t data[2] = {0};
		int rc = h5_float_parse(&half, words[i].text, n, data);

		ck_assert_msg(rc == (words[i].half == 0xffff ? -EINVAL : 0), "%s: %d", words[i].text, rc);
		if (!rc)
			ck_assert_uint_eq(h5_uint_from(data, 2), words[i].half);
		/* with a NUL */
		ck_assert_int_eq(h5_float_parse(&half, words[i].text, n + 1, data), -EINVAL);
	}
}
END_TEST

START_TEST(integers_of_any_width)
{
	for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
		struct h5_datatype t = integer(integers[i].size, integers[i].offset, integers[i].precision,
					       integers[i].is_signed, integers[i].order);
		uint8_t data[16] = {0}, expected[16];
		int rc = h5_integer_parse(&t, integers[i].text, strlen(integers[i].text), data);

		if (rc != (integers[i].hex ? 0 : -EINVAL))
			ck_abort_msg("row %zu, %s: %d", i, integers[i].text, rc);
		if (!rc && memcmp(data, expected, unhex(integers[i].hex, expected)))
			ck_abort_msg("row %zu, %s: other bytes", i, integers[i].text);
	}
}
END_TEST

/* Of any layout, with bits around it that stay. */
START_TEST(integers_read_back)
{
	uint64_t state = 7;
	struct h5_buf text;

	h5_buf_init(&text, 30000);
	for (unsigned i = 0; i < 4000; i++) {
		uint32_t size = 1 + (uint32_t)(next_random(&state) % (i % 100 ? 20 : 8191)), bits = 8 * size;
		uint16_t offset = (uint16_t)(next_random(&state) % bits);
		uint16_t precision = (uint16_t)(1 + next_random(&state) % (bits - offset));
		struct h5_datatype t = integer(size, offset, precision, i & 1,
					       (enum h5_byte_order)(next_random(&state) % 3));
		uint8_t data[8192], copy[8192];

		for (uint32_t at = 0; at < size; at++)
			data[at] = (uint8_t)next_random(&state);
		text.size = 0;
		h5_integer_text(&text, &t, data);
		memcpy(copy, data, size);
		h5_element_set_bits(&t, copy, offset, precision, &(const struct h5_bignum){0});
		ck_assert_int_eq(h5_integer_parse(&t, text.data, text.size, copy), 0);
		ck_assert_mem_eq(copy, data, size);
	}
	h5_buf_release(&text);
}
END_TEST

/* Bits beyond the element are dropped; what lies before and behind it stays. */
START_TEST(bits_beyond_the_element)
{
	static const enum h5_byte_order orders[] = {H5_ORDER_LE, H5_ORDER_BE, H5_ORDER_VAX};
	struct h5_bignum ones = {.n = 2, .limb = {UINT32_MAX, UINT32_MAX}}, bits;

	for (unsigned i = 0; i < 3; i++) {
		const struct h5_datatype t = integer(2, 0, 16, false, orders[i]);
		uint8_t bytes[] = {1, 2, 3, 4, 0, 0, 5, 6, 7, 8}, *data = bytes + 4;

		data[i == 1] = 0x34;
		data[i != 1] = 0x12;
		h5_element_bits(&t, data, 12, 40, &bits);
		ck_assert_uint_eq(bits.n, 1);
		ck_assert_uint_eq(bits.limb[0], 1);
		h5_element_set_bits(&t, data, 13, 40, &ones);
		h5_element_set_bits(&t, data, 16, 8, &ones);
		ck_assert_uint_eq(data[i == 1], 0x34);
		ck_assert_uint_eq(data[i != 1], 0xf2);
		ck_assert_mem_eq(bytes, "\1\2\3\4", 4);
		ck_assert_mem_eq(bytes + 6, "\5\6\7\10", 4);
	}
}
END_TEST

/* More digits than any number needs. */
START_TEST(long_numbers)
{
	struct h5_datatype i64 = integer(8, 0, 64, true, H5_ORDER_LE),
			   wide = integer(8192, 0, 65535, false, H5_ORDER_LE);
	struct h5_datatype f = real(8, 11, 52, 1023, H5_ORDER_LE);
	enum { N = 100000 };
	char *text = malloc(N + 10);
	uint8_t data[8192], ten[8];

	memset(text, '9', N);
	ck_assert_int_eq(h5_integer_parse(&i64, text, N, data), -EINVAL);
	ck_assert_int_eq(h5_integer_parse(&wide, text, N, data), -EINVAL);
	ck_assert_int_eq(h5_integer_parse(&wide, text, 19730, data), -EINVAL);
	ck_assert_int_eq(h5_integer_parse(&wide, text, 19727, data), 0);
	ck_assert_int_eq(h5_float_parse(&f, text, N, data), -EINVAL);
	text[1] = '.';
	ck_assert_int_eq(h5_float_parse(&f, text, N, data), 0);
	store(&f, 10, ten);
	ck_assert_mem_eq(data, ten, sizeof ten);
	memset(text + 2, '0', N);
	ck_assert_int_eq(h5_integer_parse(&i64, text, N, data), 0);
	text[N - 1] = '1';
	ck_assert_int_eq(h5_integer_parse(&i64, text, N, data), -EINVAL);
	free(text);
}
END_TEST

UNIT_MAIN("number_parse", floats_of_many_formats, nearest_floats, floats_at_the_ends, floats_of_wild_formats,
	  words_that_are_floats, hexadecimals_below_the_least_float, floats_without_a_fraction,
	  digits_far_behind_the_middle, integers_of_any_width, integers_read_back, bits_beyond_the_element,
	  long_numbers)

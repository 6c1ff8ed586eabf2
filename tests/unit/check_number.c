#include "object/value_private.h"
#include "unit.h"
#include "values.h"

static void float_text(struct h5_buf *out, const struct h5_datatype *type, const uint8_t *data)
{
	char text[H5_FLOAT_TEXT_MAX];
	bool is_number = h5_float_format(type, data, text);

	/* Others are texts of JSON. */
	ck_assert_int_eq(is_number, !strpbrk(text, "NIx"));
	h5_buf_text(out, text);
}

static size_t unhex(const char *hex, uint8_t *data)
{
	size_t n = 0;
	unsigned byte;

	for (; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		data[n] = (uint8_t)byte;
	return n;
}

START_TEST(floats_of_many_formats)
{
	char path[4096], line[4096], hex[200], text[200], order;
	FILE *f = open_data("value_floats.txt", path, sizeof path);
	struct h5_datatype t = {.class = H5_CLASS_FLOAT};
	unsigned e, m, bias, implied, size;
	struct h5_buf out;
	uint8_t data[100];
	int n = 0;

	h5_buf_init(&out, 1000);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "format %u %u %u %u %u %c", &e, &m, &bias, &implied, &size, &order) == 6) {
			t.size = size;
			t.order = order == '<' ? H5_ORDER_LE : H5_ORDER_BE;
			t.precision = (uint16_t)(1 + e + m);
			t.fl.norm = implied ? H5_NORM_IMPLIED : H5_NORM_NONE;
			t.fl.sign = (uint8_t)(e + m);
			t.fl.exponent = t.fl.mantissa_size = (uint8_t)m;
			t.fl.exponent_size = (uint8_t)e;
			t.fl.bias = bias;
		} else if (sscanf(line, "value %199s %199s", hex, text) == 2) {
			ck_assert_uint_eq(unhex(hex, data), t.size);
			float_text(&out, &t, data);
			ends_with(&out, text, strlen(text), hex);
			n++;
		}
	ck_assert_int_gt(n, 3000);
	fclose(f);
	h5_buf_release(&out);
}
END_TEST

START_TEST(integers_of_any_width)
{
	static const uint8_t ones[40] = {[0 ... 39] = 0xff}, one[40] = {1},
			     mixed[] = {0x12, 0x34, 0x56, 0x78};
	struct h5_datatype t = integer(4, 4, 12, false, H5_ORDER_LE);

	json_is(NULL, &t, mixed, "833"); /* 0x78563412: 0x341 */
	t.order = H5_ORDER_BE;
	json_is(NULL, &t, mixed, "1383"); /* 0x12345678: 0x567 */
	t.order = H5_ORDER_VAX;
	json_is(NULL, &t, mixed, "1925"); /* 0x34127856: 0x785 */
	t = integer(4, 3, 7, true, H5_ORDER_LE);
	json_is(NULL, &t, ones, "-1");
	t.is_signed = false;
	json_is(NULL, &t, ones, "127");
	t.class = H5_CLASS_BITFIELD;
	json_is(NULL, &t, ones, "127");
	t = integer(8, 0, 64, true, H5_ORDER_LE);
	json_is(NULL, &t, (const uint8_t[8]){[7] = 0x80}, "-9223372036854775808");
	t = integer(16, 0, 128, false, H5_ORDER_LE);
	json_is(NULL, &t, ones, "340282366920938463463374607431768211455");
	t.is_signed = true;
	json_is(NULL, &t, (const uint8_t[16]){[15] = 0x80}, "-170141183460469231731687303715884105728");
	t = integer(40, 0, 320, false, H5_ORDER_LE);
	json_is(NULL, &t, one, "1");
	json_is(NULL, &t, ones,
		"213598703592091008239502170616955211460270452235665276994704"
		"1607822219725780640550022962086936575");
	t = integer(4, 0, 32, false, H5_ORDER_LE);
	t.class = H5_CLASS_TIME; /* signed */
	json_is(NULL, &t, ones, "-1");
	json_is(NULL, &t, mixed, "2018915346");
}
END_TEST

/* F- and G-floating as the VAX Architecture Reference Manual has them: words with the most significant one
 * first. */
START_TEST(floats_in_vax_order)
{
	struct h5_datatype f = real(4, 8, 23, 129, H5_ORDER_VAX), g = real(8, 11, 52, 1025, H5_ORDER_VAX);

	json_is(NULL, &f, (const uint8_t[]){0x80, 0x40, 0, 0}, "1");
	json_is(NULL, &f, (const uint8_t[]){0x20, 0xc1, 0, 0}, "-2.5");
	json_is(NULL, &g, (const uint8_t[]){0x10, 0x40, 0, 0, 0, 0, 0, 0}, "1");
	json_is(NULL, &g, (const uint8_t[]){0x10, 0x40, 0, 0, 0, 0, 1, 0}, "1.0000000000000002");
}
END_TEST

START_TEST(floats_of_wild_formats)
{
	struct h5_datatype wide = real(8, 20, 43, 0, H5_ORDER_LE),
			   far = real(4, 8, 23, UINT32_MAX, H5_ORDER_LE);
	struct h5_datatype odd = real(3, 8, 15, 127, H5_ORDER_VAX);

	/* exponent 0x7ffff: (2^43 + 1) x 2^(0x7ffff - 43) */
	json_is(NULL, &wide, (const uint8_t[]){1, 0, 0, 0, 0, 0xf8, 0xff, 0x3f}, "\"0x80000000001p+524244\"");
	text_is(&wide, (const uint8_t[]){1, 0, 0, 0, 0, 0xf8, 0xff, 0xbf}, "-0x80000000001p+524244");
	json_is(NULL, &far, (const uint8_t[]){0, 0, 0x80, 0}, "\"0x800000p-4294967317\"");
	json_is(NULL, &odd, (const uint8_t[]){0, 0, 0}, "0");
}
END_TEST

START_TEST(complex_numbers)
{
	struct h5_datatype half = real(2, 5, 10, 15, H5_ORDER_BE);
	struct h5_datatype t = {.class = H5_CLASS_COMPLEX, .size = 4, .complex = {&half}};

	json_is(NULL, &t, (const uint8_t[]){0x3c, 0, 0x7c, 0}, "[1,\"Infinity\"]");
	text_is(&t, (const uint8_t[]){0x3c, 0, 0xfc, 0}, "[1,\"-Infinity\"]");
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return (*state ^ *state >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* A double by the fast way; and in the lower half of 16 bytes, which no machine has, by the long one. */
static void same_both_ways(uint64_t bits, unsigned size)
{
	struct h5_datatype fast = {.class = H5_CLASS_FLOAT, .size = size}, wide;
	uint8_t data[16] = {0};
	struct h5_buf a, b;

	fast.fl.norm = H5_NORM_IMPLIED;
	fast.fl.exponent_size = size == 2 ? 5 : size == 4 ? 8 : 11;
	fast.fl.mantissa_size = fast.fl.exponent = (uint8_t)(8 * size - 1 - fast.fl.exponent_size);
	fast.fl.sign = (uint8_t)(8 * size - 1);
	fast.fl.bias = (1u << (fast.fl.exponent_size - 1)) - 1;
	fast.precision = (uint16_t)(8 * size);
	wide = fast;
	wide.size = 16;
	for (unsigned i = 0; i < size; i++)
		data[i] = (uint8_t)(bits >> 8 * i);
	h5_buf_init(&a, 100);
	h5_buf_init(&b, 100);
	float_text(&a, &fast, data);
	float_text(&b, &wide, data);
	ck_assert_msg(a.size == b.size && !memcmp(a.data, b.data, a.size), "%u bytes %016llx: %.*s, not %.*s",
		      size, (unsigned long long)bits, (int)a.size, a.data, (int)b.size, b.data);
	h5_buf_release(&a);
	h5_buf_release(&b);
}

START_TEST(machines_floats_fast_and_slow)
{
	uint64_t state = 1;

	for (unsigned i = 0; i < 65536; i++)
		same_both_ways(i, 2);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t r = next_random(&state);

		same_both_ways(r, 8);
		same_both_ways(r & UINT32_MAX, 4);
		/* Few bits of mantissa: powers of two, and what is near to a decimal. */
		same_both_ways(r & UINT64_C(0xfffc000000000001), 8);
		same_both_ways(r & UINT64_C(0xff800003), 4);
	}
	for (uint64_t e = 0; e < 2048; e++) {
		same_both_ways(e << 52, 8);
		same_both_ways((e << 52) + 1, 8);
		same_both_ways((e << 52) - 1, 8);
	}
	for (uint64_t i = 0; i < 20000; i++) {
		double d = (double)i / 1000, big = (double)i * 1e13;
		uint64_t bits;

		memcpy(&bits, &d, sizeof bits);
		same_both_ways(bits, 8);
		memcpy(&bits, &big, sizeof bits);
		same_both_ways(bits, 8);
		same_both_ways(i, 8);
		same_both_ways(i, 4);
	}
}
END_TEST

/* Of formats with large exponents the digits are found by leading bits, or exactly. */
START_TEST(floats_of_large_exponents)
{
	static const uint8_t sizes[][2] = {{14, 1},   {14, 17},	 {15, 64}, {15, 112},
					   {13, 200}, {15, 255}, {11, 52}};
	char quick[H5_FLOAT_TEXT_MAX], exact[H5_FLOAT_TEXT_MAX];
	struct h5_datatype t = {.class = H5_CLASS_FLOAT, .order = H5_ORDER_LE};
	uint64_t seed = 1;

	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		unsigned e = sizes[k][0], m = sizes[k][1];

		t.size = (1 + e + m + 7) / 8;
		t.precision = (uint16_t)(1 + e + m);
		t.fl.norm = H5_NORM_IMPLIED;
		t.fl.sign = (uint8_t)(e + m > 255 ? 255 : e + m);
		t.fl.exponent = t.fl.mantissa_size = (uint8_t)m;
		t.fl.exponent_size = (uint8_t)e;
		t.fl.bias = (1u << (e - 1)) - 1;
		for (unsigned i = 0; i < 600; i++) {
			uint8_t data[40] = {0};

			for (unsigned at = 0; at < t.size; at++) {
				seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
				/* Few bits, too: values at the edges of their intervals. */
				data[at] = i % 3 && at + 2 < t.size ? (i % 3 == 1 ? 0 : 0xff)
								    : (uint8_t)(seed >> 56);
			}
			ck_assert_int_eq(h5_float_format_by(&t, data, true, quick),
					 h5_float_format_by(&t, data, false, exact));
			ck_assert_str_eq(quick, exact);
		}
	}
}
END_TEST

UNIT_MAIN("number", floats_of_large_exponents, machines_floats_fast_and_slow, floats_of_many_formats,
	  integers_of_any_width, floats_in_vax_order, floats_of_wild_formats, complex_numbers)

#include "fault_alloc.h"
#include "filter_data.h"
#include "scratch.h"

#include <math.h>

static int encode(uint16_t id, const uint32_t *values, unsigned count, const void *data, size_t size,
		  struct h5_filter_buf *buf)
{
	/* Exactly as large as the bytes, so that sanitizers see what is read beyond them. */
	uint8_t *copy = malloc(size ? size : 1);
	int rc;

	memcpy(copy, data, size);
	memset(buf, 0, sizeof *buf);
	rc = h5_filter_find(id)->encode(values, count, copy, size, buf);
	free(copy);
	return rc;
}

static bool is_lossy(uint16_t id, const uint32_t *values)
{
	return (id == SCALEOFFSET && !values[0]) || (id == FCIDECOMP && values[7]) || id == JPEG;
}

/* Encodes the bytes and expects them back. */
static void check_round_trip(const char *name, uint16_t id, const uint32_t *values, unsigned count,
			     const void *data, size_t size)
{
	struct h5_filter_buf stored, back;

	ck_assert_msg(!encode(id, values, count, data, size, &stored), "%s, %zu bytes: %s", name, size,
		      h5_error_last()->text);
	ck_assert_msg(!decode(id, values, count, stored.data, stored.size, size, &back), "%s, %zu bytes: %s",
		      name, size, h5_error_last()->text);
	ck_assert_msg(back.size == size && (is_lossy(id, values) || !memcmp(back.data, data, size)),
		      "%s, %zu bytes", name, size);
	h5_filter_buf_release(&stored);
	h5_filter_buf_release(&back);
}

static unsigned samples_come_back(const char *listing)
{
	FILE *list = samples_open(listing);
	struct sample s;
	unsigned n = 0;

	while (sample_next(list, &s)) {
		if (h5_filter_find(s.id)->encode) {
			check_round_trip(s.name, s.id, s.values, s.count, s.out.data, s.out.size);
			n++;
		}
		sample_release(&s);
	}
	fclose(list);
	return n;
}

START_TEST(samples_of_libhdf5_come_back)
{
	ck_assert_uint_ge(samples_come_back("filter.list"), 10);
	samples_come_back("filter_libs.list");
}
END_TEST

/* A filter, and of what size its chunks are multiples. */
static const struct {
	uint16_t id;
	unsigned count;
	uint32_t values[7];
	size_t unit;
} encoders[] = {
	{DEFLATE, 1, {0}, 1},
	{DEFLATE, 1, {6}, 1},
	{SHUFFLE, 1, {1}, 1},
	{SHUFFLE, 1, {2}, 1},
	{SHUFFLE, 1, {3}, 1},
	{SHUFFLE, 1, {4}, 1},
	{SHUFFLE, 1, {8}, 1},
	{SHUFFLE, 1, {50}, 1},
	{SHUFFLE, 1, {UINT32_MAX}, 1},
	{FLETCHER32, 0, {0}, 1},
	{SZIP, 4, {32, 8, 8, 40}, 1},
	{SZIP, 4, {4, 2, 16, 1001}, 2},
	{SZIP, 4, {48, 32, 32, 33}, 4},
	{SZIP, 4, {32, 16, 64, 4096}, 8},
	{LZO, 0, {0}, 1},
	{BZIP2, 0, {0}, 1},
	{LZF, 0, {0}, 1},
	{BLOSC, 7, {2, 2, 4, 0, 5, 1, 0}, 1},
	{BLOSC, 3, {2, 2, 3}, 1},
	{BLOSC2, 7, {1, 0, 4, 0, 5, 1, 1}, 1},
	{BLOSC2, 3, {1, 0, 3}, 1},
	{SNAPPY, 0, {0}, 1},
	{LZ4, 0, {0}, 1},
	{LZ4, 1, {64}, 1},
	{BITSHUFFLE, 5, {0, 4, 4, 0, 0}, 4},
	{BITSHUFFLE, 5, {0, 4, 3, 8, 2}, 3},
	{BITSHUFFLE, 6, {0, 4, 1, 0, 3, 9}, 1},
	{BITSHUFFLE, 5, {0, 4, 100, 0, 2}, 100},
	{ZSTD, 0, {0}, 1},
	{ZSTD, 1, {1}, 1},
	{VBZ, 3, {0, 2, 1}, 2},
	{VBZ, 4, {1, 2, 1, 1}, 2},
	{VBZ, 4, {0, 1, 1, 0}, 1},
	{VBZ, 4, {1, 1, 1, 1}, 1},
	{VBZ, 4, {1, 1, 0, 0}, 1},
	{VBZ, 5, {0, 4, 1, 0, 1}, 4},
	{VBZ, 4, {0, 4, 0, 1}, 4},
	{VBZ, 4, {0, 0, 0, 1}, 1},
	{VBZ, 4, {0, 0, 0, 0}, 1},
};

static bool is_built_in(unsigned encoder)
{
	struct sample s = {.id = encoders[encoder].id, .count = encoders[encoder].count};

	memcpy(s.values, encoders[encoder].values, sizeof encoders[encoder].values);
	return sample_is_built_in(&s);
}

START_TEST(chunks_of_all_sizes_come_back)
{
	static const size_t more[] = {263,  264,  265,	266,  267,  300,  1000,	 4095,	4096,
				      4097, 8191, 8192, 8193, 8194, 8455, 16384, 65535, 100000};
	enum { SMALL = 120, SIZES = SMALL + sizeof more / sizeof *more };
	static uint8_t data[100000];

	for (unsigned i = 0; i < sizeof encoders / sizeof *encoders; i++) {
		if (!is_built_in(i))
			continue;
		for (unsigned k = 0; k < 4 * SIZES; k++) {
			size_t size = k / 4 < SMALL ? k / 4 + 1 : more[k / 4 - SMALL];
			char name[64];

			size = (size + encoders[i].unit - 1) / encoders[i].unit * encoders[i].unit;
			if (size > sizeof data)
				size -= encoders[i].unit;
			filter_data_fill(data, size, k % 4);
			snprintf(name, sizeof name, "encoder %u, pattern %u", i, k % 4);
			check_round_trip(name, encoders[i].id, encoders[i].values, encoders[i].count, data,
					 size);
		}
	}
}
END_TEST

/* What fpzip's plugin gives the filter for a chunk of one dimension. Type and precision, and the side, are in
 * two words that its library has made. */
#define FPZIP_HEADER(precision, side)                                                                        \
	{                                                                                                    \
		0x01100110, 0x29797066, precision, side, 0xff0000, 0xff0000, 0xff0000                        \
	}
enum { FPZIP_VALUES = 7 };
static const uint32_t twelve_floats[FPZIP_VALUES] = FPZIP_HEADER(0xfff00e87, 0xf40b00);

/* Each allocation fails once, of the filter or of its library: it is told, or the bytes come back all the
 * same. */
static unsigned fail_allocations(uint16_t id, const uint32_t *values, unsigned count, const uint8_t *data,
				 size_t size)
{
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_filter_buf stored = {0}, in = {0}, back = {0};
		bool encodes = true, decodes = true;
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_filter_find(id)->encode(values, count, data, size, &stored);
		fault_alloc_count(false);
		encodes = fault_alloc_disarm();
		ck_assert_msg(!rc || (encodes && rc == -ENOMEM), "%u, %lu: %d", id, n, rc);
		failed += rc != 0;
		if (rc) {
			h5_filter_buf_release(&stored);
			SUCCEEDS(encode(id, values, count, data, size, &stored));
		}
		SUCCEEDS(h5_filter_buf_copy(&in, stored.data, stored.size));
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_filter_find(id)->decode(values, count, &in, &back, size);
		fault_alloc_count(false);
		decodes = fault_alloc_disarm();
		ck_assert_msg(!rc || (decodes && rc == -ENOMEM), "decoding, %u, %lu: %d", id, n, rc);
		failed += rc != 0;
		if (!rc) {
			const struct h5_filter_ops *ops = h5_filter_find(id);
			bool in_place = ops->decodes_in_place && ops->decodes_in_place(values, count);

			ck_assert_uint_eq(in_place ? in.size : back.size, size);
			ck_assert_mem_eq(in_place ? in.data : back.data, data, size);
		}
		h5_filter_buf_release(&stored);
		h5_filter_buf_release(&in);
		h5_filter_buf_release(&back);
		fired = encodes || decodes;
	}
	return failed;
}

START_TEST(memory_is_short)
{
	static const size_t sizes[] = {48, 4800};
	uint8_t data[4800];

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * i >> 7);
	for (unsigned k = 0; k < sizeof encoders / sizeof *encoders; k++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			if (h5_filter_find(encoders[k].id)->encode && !(sizes[i] % encoders[k].unit))
				ck_assert_uint_gt(fail_allocations(encoders[k].id, encoders[k].values,
								   encoders[k].count, data, sizes[i]),
						  0);
	ck_assert_uint_gt(fail_allocations(FPZIP, twelve_floats, FPZIP_VALUES, data, 48), 0);
}
END_TEST

/* Decodes a sample whose n-th allocation fails; false: it has fewer. */
static bool decode_without_memory(const struct sample *s, unsigned long n)
{
	struct h5_filter_buf in = {0}, out;
	bool fired;
	int rc;

	SUCCEEDS(h5_filter_buf_copy(&in, s->in.data, s->in.size));
	fault_alloc_arm(n);
	fault_alloc_count(true);
	rc = decode_buf(s->id, s->values, s->count, &in, s->out.size, &out);
	fault_alloc_count(false);
	fired = fault_alloc_disarm();
	/* The library of Blosc does not tell one from the other. */
	ck_assert_msg(!rc || (fired && (rc == -ENOMEM || (s->id == BLOSC && rc == -EUCLEAN))),
		      "%s, %lu: %d %s", s->name, n, rc, h5_error_last()->text);
	if (!rc)
		ck_assert_msg(out.size == s->out.size && !memcmp(out.data, s->out.data, out.size), "%s, %lu",
			      s->name, n);
	h5_filter_buf_release(&out);
	return fired;
}

START_TEST(samples_are_decoded_without_memory)
{
	static const char *const listings[] = {"filter.list", "filter_libs.list"};
	struct sample s;

	for (size_t i = 0; i < sizeof listings / sizeof *listings; i++) {
		FILE *list = samples_open(listings[i]);

		while (sample_next(list, &s)) {
			for (unsigned long n = 1; decode_without_memory(&s, n); n++)
				;
			sample_release(&s);
		}
		fclose(list);
	}
}
END_TEST

/* Another level in the same thread is not the one before. */
START_TEST(deflate_has_levels)
{
	static const uint32_t levels[] = {0, 1, 9, 1, 0};
	static uint8_t data[50000];
	size_t sizes[5];

	filter_data_fill(data, sizeof data, 2);
	for (unsigned i = 0; i < 5; i++) {
		struct h5_filter_buf buf;

		SUCCEEDS(encode(DEFLATE, &levels[i], 1, data, sizeof data, &buf));
		sizes[i] = buf.size;
		h5_filter_buf_release(&buf);
	}
	ck_assert_uint_gt(sizes[0], sizeof data);
	ck_assert_uint_lt(sizes[2], sizes[1]);
	ck_assert_uint_eq(sizes[3], sizes[1]);
	ck_assert_uint_eq(sizes[4], sizes[0]);
}
END_TEST

/* The numbers of each sample become what the library has made of them, but for those in several arrays, which
 * become one. */
START_TEST(fpzip_is_as_its_library_makes_it)
{
	FILE *list = samples_open("filter_libs.list");
	struct sample s;
	unsigned n = 0;

	while (sample_next(list, &s)) {
		struct h5_filter_buf buf;

		if (s.id == FPZIP && !strstr(s.name, "arrays")) {
			SUCCEEDS(encode(FPZIP, s.values, s.count, s.out.data, s.out.size, &buf));
			ck_assert_msg(buf.size == s.in.size && !memcmp(buf.data, s.in.data, buf.size), "%s",
				      s.name);
			h5_filter_buf_release(&buf);
			n++;
		}
		sample_release(&s);
	}
	fclose(list);
	printf("%u chunks of fpzip\n", n);
}
END_TEST

START_TEST(lzf_is_as_written_down)
{
	/* A literal, the longest reference, one of 8 bytes to the same place, literals. */
	static const uint8_t stored[] = {0, 'a', 7 << 5, 255, 0, 6 << 5 | 1, 7, 1, 'b', 'c'};
	uint8_t data[1 + 264 + 8 + 2];
	struct h5_filter_buf buf;

	memset(data, 'a', sizeof data);
	data[sizeof data - 2] = 'b';
	data[sizeof data - 1] = 'c';
	ck_assert_int_eq(encode(LZF, NULL, 0, data, sizeof data, &buf), 0);
	ck_assert_uint_eq(buf.size, sizeof stored);
	ck_assert_mem_eq(buf.data, stored, sizeof stored);
	h5_filter_buf_release(&buf);
}
END_TEST

START_TEST(lzf_reaches_back_8192_bytes)
{
	static uint8_t data[3 * 8193];

	for (size_t period = 8191; period <= 8193; period++) {
		struct h5_filter_buf buf;

		filter_data_fill(data, period, 3);
		for (size_t i = period; i < sizeof data; i++)
			data[i] = data[i - period];
		check_round_trip("lzf", LZF, NULL, 0, data, sizeof data);
		ck_assert_int_eq(encode(LZF, NULL, 0, data, sizeof data, &buf), 0);
		ck_assert((buf.size < sizeof data / 2) == (period <= 8192));
		h5_filter_buf_release(&buf);
	}
}
END_TEST

START_TEST(scaleoffset_keeps_what_it_cannot_scale)
{
	/* Ten to the 2, floats; NaN and infinity are kept by whole elements, whatever the fill value. */
	const float numbers[] = {1.25f, -7, INFINITY, NAN};
	uint32_t values[20] = {0, 2, 4, 1, 4, 1, 0, 0};
	struct h5_filter_buf stored, back;

	for (values[7] = 0; values[7] < 2; values[7]++) {
		ck_assert_int_eq(encode(SCALEOFFSET, values, 20, numbers, sizeof numbers, &stored), 0);
		ck_assert_int_eq(
			decode(SCALEOFFSET, values, 20, stored.data, stored.size, sizeof numbers, &back), 0);
		ck_assert_mem_eq(back.data, numbers, sizeof numbers);
		h5_filter_buf_release(&stored);
		h5_filter_buf_release(&back);
	}
}
END_TEST

/* Two integers of each size, 5 and one whose sign bit is 0, and the bit beside it 1: so the smallest is 5,
 * and the other is two bits shorter than an element. */
START_TEST(scaleoffset_knows_the_sign)
{
	for (uint32_t size = 1; size <= 8; size *= 2) {
		const uint32_t values[20] = {2, 0, 2, 0, size, 1, 0, 0};
		uint8_t data[16] = {5};
		struct h5_filter_buf stored;

		data[2 * size - 1] = 0x40;
		ck_assert_int_eq(encode(SCALEOFFSET, values, 20, data, 2 * (size_t)size, &stored), 0);
		ck_assert_uint_gt(stored.size, 5);
		ck_assert_uint_eq(stored.data[0], 8 * size - 2);
		ck_assert_uint_eq(stored.data[5], 5);
		h5_filter_buf_release(&stored);
	}
}
END_TEST

/* What cannot be encoded: the error, and that nothing is lost. */
START_TEST(wrong_parameters_are_refused)
{
	static const struct {
		const char *what;
		uint16_t id;
		unsigned count;
		uint32_t values[20];
		size_t size;
		int rc;
	} wrong[] = {
		{"no level", DEFLATE, 0, {0}, 16, -ENOTSUP},
		{"level 10", DEFLATE, 1, {10}, 16, -ENOTSUP},
		{"elements of nothing", SHUFFLE, 1, {0}, 16, -ENOTSUP},
		{"no element size", SHUFFLE, 0, {0}, 16, -ENOTSUP},
		{"four parameters", FCIDECOMP, 4, {1, 1, 4, 4}, 16, -ENOTSUP},
		{"9 bits in a byte", FCIDECOMP, 13, {1, 1, 4, 4, 9, 1}, 16, -ENOTSUP},
		{"another size", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1}, 15, -ENOTSUP},
		{"large samples", FCIDECOMP, 13, {1, 1, 4, 4, 4, 1}, 16, -ENOTSUP},
		{"a largest sample", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 100}, 16, -ENOTSUP},
		{"one threshold", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 0, 9}, 16, -ENOTSUP},
		{"three parameters", JPEG, 3, {90, 4, 4}, 16, -ENOTSUP},
		{"no lines", JPEG, 4, {90, 4, 0, 0}, 16, -ENOTSUP},
		{"another size", JPEG, 4, {90, 4, 4, 1}, 16, -ENOTSUP},
		{"three parameters", SZIP, 3, {32, 8, 8}, 16, -EUCLEAN},
		{"blocks of nothing", SZIP, 4, {32, 0, 8, 8}, 16, -EUCLEAN},
		{"a part of a pixel", SZIP, 4, {32, 8, 32, 8}, 15, -ENOTSUP},
		{"more than 4 bits", SZIP, 4, {32, 8, 4, 8}, 16, -ENOTSUP},
		{"no parameters", NBIT, 1, {1}, 16, -EUCLEAN},
		{"another size", NBIT, 8, {8, 0, 5, 1, 4, 0, 4, 0}, 16, -EUCLEAN},
		{"0 bits", NBIT, 8, {8, 0, 4, 1, 4, 0, 0, 0}, 16, -EUCLEAN},
		{"33 bits", NBIT, 8, {8, 0, 4, 1, 4, 0, 32, 1}, 16, -EUCLEAN},
		{"members over each other",
		 NBIT,
		 17,
		 {17, 0, 4, 3, 4, 2, 0, 1, 4, 0, 32, 0, 0, 1, 4, 0, 32},
		 16,
		 -EUCLEAN},
		{"no parameters", SCALEOFFSET, 2, {2, 0}, 16, -EUCLEAN},
		{"another size", SCALEOFFSET, 9, {2, 0, 5, 0, 4, 0, 0, 0}, 16, -EUCLEAN},
		{"a scale type", SCALEOFFSET, 9, {1, 0, 4, 1, 4, 0, 0, 0}, 16, -ENOTSUP},
		{"numbers of 3 bytes", SCALEOFFSET, 9, {2, 0, 5, 0, 3, 0, 0, 0}, 15, -EUCLEAN},
		{"too few bits", SCALEOFFSET, 9, {2, 3, 16, 0, 1, 0, 0, 0}, 16, -ENOTSUP},
		{"too many bits", SCALEOFFSET, 9, {2, 33, 4, 0, 4, 0, 0, 0}, 16, -ENOTSUP},
		{"too many bits", SCALEOFFSET, 9, {2, 33, 4, 0, 4, 0, 0, 0}, 0, -ENOTSUP},
		{"no free number", SCALEOFFSET, 9, {2, 4, 16, 0, 1, 0, 0, 1, 99}, 16, -ENOTSUP},
		{"blocks of nothing", BZIP2, 1, {0}, 16, -ENOTSUP},
		{"blocks of 10", BZIP2, 1, {10}, 16, -ENOTSUP},
		{"elements of nothing", BLOSC, 4, {2, 2, 0, 16}, 16, -ENOTSUP},
		{"a compressor", BLOSC, 7, {2, 2, 4, 16, 5, 1, 99}, 16, -ENOTSUP},
		{"elements of nothing", BLOSC2, 4, {1, 0, 0, 16}, 16, -ENOTSUP},
		{"a compressor", BLOSC2, 7, {1, 0, 4, 16, 5, 1, 6}, 16, -ENOTSUP},
		{"delta", BLOSC2, 7, {1, 0, 4, 16, 5, 3, 1}, 16, -ENOTSUP},
		{"level 10", BLOSC, 7, {2, 2, 4, 16, 10, 1, 0}, 16, -ENOTSUP},
		{"elements of nothing", BITSHUFFLE, 5, {0, 4, 0, 0, 0}, 16, -EUCLEAN},
		{"a part of an element", BITSHUFFLE, 5, {0, 4, 3, 0, 0}, 16, -ENOTSUP},
		{"blocks of 12", BITSHUFFLE, 5, {0, 4, 4, 12, 0}, 16, -ENOTSUP},
		{"large blocks", BITSHUFFLE, 5, {0, 4, 1u << 31, 0, 0}, 16, -ENOTSUP},
		{"large blocks of nothing", BITSHUFFLE, 5, {0, 4, 1u << 29, 8, 0}, 0, -ENOTSUP},
		{"a compression", BITSHUFFLE, 5, {0, 4, 4, 0, 7}, 16, -ENOTSUP},
		{"six parameters", FPZIP, 6, FPZIP_HEADER(0xfff00e87, 0xfc0300), 16, -EUCLEAN},
		{"another size", FPZIP, 7, FPZIP_HEADER(0xfff00e87, 0xfc0300), 12, -ENOTSUP},
		{"1 bit of 32", FPZIP, 7, FPZIP_HEADER(0xfff00e87, 0x400ff), 16, -EUCLEAN},
		{"33 bits of 32", FPZIP, 7, FPZIP_HEADER(0x1ff10e87, 0xfc03df), 16, -EUCLEAN},
		{"3 bits of 64", FPZIP, 7, FPZIP_HEADER(0x81f10e87, 0xfe017d), 16, -EUCLEAN},
		{"no header", FPZIP, 7, {0}, 16, -EUCLEAN},
		{"two parameters", VBZ, 2, {0, 2}, 16, -EUCLEAN},
		{"version 2", VBZ, 4, {2, 2, 1, 1}, 16, -ENOTSUP},
		{"integers of 3 bytes", VBZ, 4, {0, 3, 1, 1}, 15, -EUCLEAN},
		{"a part of an integer", VBZ, 4, {0, 2, 1, 1}, 15, -ENOTSUP},
	};
	const uint8_t data[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 250};
	const uint8_t small[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		bool taken = !strcmp(wrong[i].what, "no free number");
		struct h5_filter_buf buf = {0};

		if (!h5_filter_find(wrong[i].id)->encode)
			continue;
		ck_assert_msg(encode(wrong[i].id, wrong[i].values, wrong[i].count, taken ? small : data,
				     wrong[i].size, &buf) == wrong[i].rc,
			      "%u: %s: %s", wrong[i].id, wrong[i].what, h5_error_last()->text);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

/* Any parameters that a file may bring: an error or bytes. Sanitizers watch the rest. */
START_TEST(damaged_parameters_do_no_harm)
{
	static uint8_t data[1200];
	uint32_t random = 1;

	for (unsigned i = 0; i < 400 * (sizeof encoders / sizeof *encoders); i++) {
		unsigned e = i % (sizeof encoders / sizeof *encoders);
		uint32_t values[7];
		struct h5_filter_buf buf = {0};

		if (!encoders[e].count || !is_built_in(e))
			continue;
		memcpy(values, encoders[e].values, sizeof values);
		values[filter_data_random(&random) % encoders[e].count] ^=
			UINT32_C(1) << filter_data_random(&random) % 32;
		/* The best levels take their time and memory. */
		if (encoders[e].id == ZSTD || (encoders[e].id == VBZ && values[3] > 9) ||
		    (encoders[e].id == BITSHUFFLE && values[4] == 3))
			continue;
		filter_data_fill(data, sizeof data, i % 4);
		encode(encoders[e].id, values, encoders[e].count, data, sizeof data, &buf);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

/* What is at its limit is taken, and one more is not. 13 values of FCIDECOMP: bytes of a sample, components,
 * lines, samples, bits, components, interleaving, error, largest sample, three thresholds. */
START_TEST(images_have_limits)
{
	static const struct {
		const char *what;
		uint16_t id;
		unsigned count;
		uint32_t values[13];
		size_t size;
		int rc;
	} images[] = {
		{"2 bits", FCIDECOMP, 13, {1, 1, 4, 4, 2, 1}, 16, 0},
		{"1 bit", FCIDECOMP, 13, {1, 1, 4, 4, 1, 1}, 16, -ENOTSUP},
		{"8 bits", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1}, 16, 0},
		{"8 bits in 2 bytes", FCIDECOMP, 13, {2, 1, 4, 2, 8, 1}, 16, -ENOTSUP},
		{"9 bits", FCIDECOMP, 13, {2, 1, 4, 2, 9, 1}, 16, 0},
		{"16 bits", FCIDECOMP, 13, {2, 1, 4, 2, 16, 1}, 16, 0},
		{"17 bits", FCIDECOMP, 13, {2, 1, 4, 2, 17, 1}, 16, -ENOTSUP},
		{"no bytes", FCIDECOMP, 13, {0, 1, 4, 4, 8, 1}, 16, -ENOTSUP},
		{"3 bytes", FCIDECOMP, 13, {3, 1, 4, 4, 8, 1}, 48, -ENOTSUP},
		{"12 parameters", FCIDECOMP, 12, {1, 1, 4, 4, 8, 1}, 16, -ENOTSUP},
		{"255 components", FCIDECOMP, 13, {1, 255, 1, 1, 8, 255}, 255, 0},
		{"256 components", FCIDECOMP, 13, {1, 256, 1, 1, 8, 256}, 256, -ENOTSUP},
		{"no component", FCIDECOMP, 13, {1, 0, 4, 4, 8, 0}, 16, -ENOTSUP},
		{"1 or 2 components", FCIDECOMP, 13, {1, 1, 4, 4, 8, 2}, 16, -ENOTSUP},
		{"65535 lines", FCIDECOMP, 13, {1, 1, 65535, 1, 8, 1}, 65535, 0},
		{"65536 lines", FCIDECOMP, 13, {1, 1, 65536, 1, 8, 1}, 65536, -ENOTSUP},
		{"no line", FCIDECOMP, 13, {1, 1, 0, 4, 8, 1}, 16, -ENOTSUP},
		{"65535 samples", FCIDECOMP, 13, {1, 1, 1, 65535, 8, 1}, 65535, 0},
		{"65536 samples", FCIDECOMP, 13, {1, 1, 1, 65536, 8, 1}, 65536, -ENOTSUP},
		{"no sample", FCIDECOMP, 13, {1, 1, 4, 0, 8, 1}, 16, -ENOTSUP},
		{"the largest sample", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 255}, 16, 0},
		{"another largest sample", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 254}, 16, -ENOTSUP},
		{"thresholds", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 0, 3, 7, 21}, 16, 0},
		{"thresholds 1", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 0, 1, 1, 1}, 16, 0},
		{"thresholds 255", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 0, 255, 255, 255}, 16, 0},
		{"a threshold of 256", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 0, 3, 7, 256}, 16, -ENOTSUP},
		{"a first threshold above",
		 FCIDECOMP,
		 13,
		 {1, 1, 4, 4, 8, 1, 0, 0, 0, 8, 7, 21},
		 0,
		 -ENOTSUP},
		{"a second threshold above",
		 FCIDECOMP,
		 13,
		 {1, 1, 4, 4, 8, 1, 0, 0, 0, 3, 22, 21},
		 0,
		 -ENOTSUP},
		{"only the first threshold", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 0, 3}, 16, -ENOTSUP},
		{"only the second threshold", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 0, 0, 7}, 16, -ENOTSUP},
		{"only the last threshold",
		 FCIDECOMP,
		 13,
		 {1, 1, 4, 4, 8, 1, 0, 0, 0, 0, 0, 21},
		 16,
		 -ENOTSUP},
		{"a threshold above the error", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 2, 0, 3, 7, 21}, 16, 0},
		{"a threshold like the error",
		 FCIDECOMP,
		 13,
		 {1, 1, 4, 4, 8, 1, 0, 3, 0, 3, 7, 21},
		 16,
		 -ENOTSUP},
		{"an unknown interleaving", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 3}, 16, -ENOTSUP},
		{"a large error", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 256}, 16, -ENOTSUP},
		{"an odd reset", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1, 0, 0, 0, 0, 0, 0, 2}, 16, -ENOTSUP},
		{"nothing", FCIDECOMP, 13, {1, 1, 4, 4, 8, 1}, 0, 0},
		{"65500 pixels", JPEG, 4, {90, 65500, 1, 0}, 65500, 0},
		{"65501 pixels", JPEG, 4, {90, 65501, 1, 0}, 65501, -ENOTSUP},
		{"no pixel", JPEG, 4, {90, 0, 4, 0}, 16, -ENOTSUP},
		{"65500 lines", JPEG, 4, {90, 1, 65500, 0}, 65500, 0},
		{"65501 lines", JPEG, 4, {90, 1, 65501, 0}, 65501, -ENOTSUP},
		{"no line", JPEG, 4, {90, 4, 0, 0}, 16, -ENOTSUP},
		{"colours", JPEG, 4, {90, 4, 4, 1}, 48, 0},
		{"2 colours", JPEG, 4, {90, 4, 4, 2}, 48, -ENOTSUP},
		{"3 parameters", JPEG, 3, {90, 4, 4}, 16, -ENOTSUP},
		{"5 parameters", JPEG, 5, {90, 4, 4}, 16, -ENOTSUP},
		{"nothing", JPEG, 4, {90, 4, 4}, 0, 0},
	};
	static const uint8_t zeros[65536];

	for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
		const size_t size = images[i].size;
		struct h5_filter_buf stored, back;

		if (!h5_filter_find(images[i].id)->encode)
			continue;
		ck_assert_msg(encode(images[i].id, images[i].values, images[i].count, zeros, size, &stored) ==
				      images[i].rc,
			      "%u: %s: %s", images[i].id, images[i].what, h5_error_last()->text);
		if (!images[i].rc && size) {
			SUCCEEDS(decode(images[i].id, images[i].values, images[i].count, stored.data,
					stored.size, size, &back));
			ck_assert_uint_eq(back.size, size);
			ck_assert_mem_eq(back.data, zeros, size);
			h5_filter_buf_release(&back);
		}
		h5_filter_buf_release(&stored);
	}
}
END_TEST

/* It takes more bytes than it had, of few samples or many. */
START_TEST(noise_in_images_comes_back)
{
	static const uint32_t sides[] = {1, 16, 64, 256};
	static uint8_t data[2 * 256 * 256];

	for (unsigned bytes = 1; bytes <= 2 && h5_filter_find(FCIDECOMP)->encode; bytes++)
		for (unsigned i = 0; i < sizeof sides / sizeof *sides; i++) {
			const uint32_t values[13] = {bytes, 1, sides[i], sides[i], 8 * bytes, 1};

			filter_data_fill(data, sizeof data, 3);
			check_round_trip("noise", FCIDECOMP, values, 13, data,
					 (size_t)bytes * sides[i] * sides[i]);
		}
}
END_TEST

static struct h5_filter_buf encoded(uint16_t id, const uint32_t *values, unsigned count, const uint8_t *data,
				    size_t size)
{
	struct h5_filter_buf buf;

	ck_assert_msg(!encode(id, values, count, data, size, &buf), "%u: %s", id, h5_error_last()->text);
	return buf;
}

static bool are_same(struct h5_filter_buf a, struct h5_filter_buf b)
{
	bool same = a.size == b.size && !memcmp(a.data, b.data, a.size);

	h5_filter_buf_release(&a);
	h5_filter_buf_release(&b);
	return same;
}

/* From 1 to 100; what lies beyond is the next of these. The better, the closer the pixels are to what they
 * were: noise takes more bytes than it had. */
START_TEST(jpeg_has_qualities)
{
	enum { SIDE = 64, PIXELS = SIDE * SIDE };
	static const uint32_t same[][2] = {{0, 1}, {101, 100}, {UINT32_MAX, 100}},
			      differ[][2] = {{1, 2}, {99, 100}, {74, 75}, {75, 76}};
	const uint32_t best[] = {100, SIDE, SIDE, 0};
	uint8_t data[PIXELS];
	struct h5_filter_buf stored, back;

	if (!h5_filter_find(JPEG)->encode)
		return;
	filter_data_fill(data, sizeof data, 3);
	for (unsigned i = 0; i < 7; i++) {
		const uint32_t *pair = i < 3 ? same[i] : differ[i - 3];
		const uint32_t a[] = {pair[0], SIDE, SIDE, 0}, b[] = {pair[1], SIDE, SIDE, 0};

		ck_assert_msg(are_same(encoded(JPEG, a, 4, data, PIXELS),
				       encoded(JPEG, b, 4, data, PIXELS)) == (i < 3),
			      "%u and %u", pair[0], pair[1]);
	}
	stored = encoded(JPEG, best, 4, data, PIXELS);
	ck_assert_uint_gt(stored.size, PIXELS);
	SUCCEEDS(decode(JPEG, best, 4, stored.data, stored.size, PIXELS, &back));
	ck_assert_uint_eq(back.size, PIXELS);
	for (unsigned i = 0; i < PIXELS; i++)
		ck_assert_int_le(abs(back.data[i] - data[i]), 4);
	h5_filter_buf_release(&stored);
	h5_filter_buf_release(&back);
}
END_TEST

/* What a filter takes if it has fewer values. What lies behind them in memory does not matter. */
START_TEST(missing_parameters_are_the_usual_ones)
{
	static const struct {
		uint16_t id;
		unsigned count, usual_count;
		uint32_t values[7], usual[7];
	} cases[] = {
		{BZIP2, 0, 1, {1}, {9}},
		{ZSTD, 0, 1, {19}, {3}},
		{LZ4, 0, 1, {64}, {1 << 30}},
		{LZ4, 1, 1, {0}, {1 << 30}},
		{BLOSC, 3, 7, {2, 2, 4, 16, 9, 2, 5}, {2, 2, 4, 0, 5, 1, 0}},
		{BLOSC, 5, 7, {2, 2, 4, 16, 5, 2, 5}, {2, 2, 4, 0, 5, 1, 0}},
		{BLOSC, 6, 7, {2, 2, 4, 16, 5, 1, 5}, {2, 2, 4, 0, 5, 1, 0}},
		{BITSHUFFLE, 3, 5, {0, 3, 4, 8, 2, 9}, {0, 3, 4, 0, 0}},
		{BITSHUFFLE, 4, 5, {0, 3, 4, 8, 2, 9}, {0, 3, 4, 8, 0}},
		{BITSHUFFLE, 5, 6, {0, 3, 4, 0, 3, 19}, {0, 3, 4, 0, 3, 0}},
		{VBZ, 3, 4, {0, 2, 1, 19}, {0, 2, 1, 1}},
	};
	static uint8_t data[200000];

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i % 4 ? i / 700 : i * 2654435761u >> 27);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (!h5_filter_find(cases[i].id)->encode ||
		    (cases[i].id == BITSHUFFLE && cases[i].usual[4] == 3 && !h5_filter_find(ZSTD)->encode))
			continue;
		ck_assert_msg(
			are_same(encoded(cases[i].id, cases[i].values, cases[i].count, data, sizeof data),
				 encoded(cases[i].id, cases[i].usual, cases[i].usual_count, data,
					 sizeof data)),
			"%zu: %u", i, cases[i].id);
		/* They would matter. */
		ck_assert_msg(cases[i].id == LZ4 ||
				      !are_same(encoded(cases[i].id, cases[i].values, cases[i].usual_count,
							data, sizeof data),
						encoded(cases[i].id, cases[i].usual, cases[i].usual_count,
							data, sizeof data)),
			      "%zu: %u", i, cases[i].id);
	}
}
END_TEST

/* One value less than a filter needs, with good ones behind. */
START_TEST(too_few_parameters_are_refused)
{
	static const struct {
		uint16_t id;
		unsigned count;
		uint32_t values[20];
		int rc;
	} cases[] = {
		{DEFLATE, 1, {6}, -ENOTSUP},	      {SHUFFLE, 1, {4}, -ENOTSUP},
		{SZIP, 4, {169, 8, 8, 16}, -EUCLEAN}, {NBIT, 2, {2, 1}, -EUCLEAN},
		{NBIT, 5, {8, 0, 4, 4, 4}, -EUCLEAN}, {SCALEOFFSET, 8, {2, 0, 4, 0, 4, 0, 0, 0}, -EUCLEAN},
		{BITSHUFFLE, 3, {0, 4, 4}, -EUCLEAN}, {VBZ, 3, {0, 2, 1}, -EUCLEAN},
	};
	const uint8_t data[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_filter_buf buf, back;

		if (!h5_filter_find(cases[i].id)->encode)
			continue;
		buf = encoded(cases[i].id, cases[i].values, cases[i].count, data, sizeof data);
		SUCCEEDS(decode(cases[i].id, cases[i].values, cases[i].count, buf.data, buf.size, sizeof data,
				&back));
		ck_assert_uint_eq(back.size, sizeof data);
		ck_assert_mem_eq(back.data, data, sizeof data);
		h5_filter_buf_release(&back);
		if (cases[i].id != DEFLATE) {
			ck_assert_int_eq(decode(cases[i].id, cases[i].values, cases[i].count - 1, buf.data,
						buf.size, sizeof data, &back),
					 -EUCLEAN);
			h5_filter_buf_release(&back);
		}
		h5_filter_buf_release(&buf);
		ck_assert_msg(encode(cases[i].id, cases[i].values, cases[i].count - 1, data, sizeof data,
				     &buf) == cases[i].rc,
			      "%u: %u", cases[i].id, cases[i].count - 1);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

/* More bytes than a library, or a field of 32 bits, can take. None is read or written. */
START_TEST(very_large_chunks_are_refused)
{
	static const struct {
		uint16_t id;
		unsigned count;
		uint32_t values[5];
		uint64_t size;
	} cases[] = {
		{SZIP, 4, {169, 8, 8, 16}, UINT64_C(1) << 32},
		{BZIP2, 1, {9}, UINT32_MAX},
		{LZF, 0, {0}, UINT32_MAX},
		{BLOSC, 3, {2, 2, 1}, INT32_MAX - 15},
		{SNAPPY, 0, {0}, UINT64_C(1) << 32},
		{LZ4, 1, {UINT32_MAX}, 0x7e000001},
		{VBZ, 4, {0, 0, 0, 0}, UINT64_C(1) << 32},
		{FCIDECOMP, 13, {1, 1, 1, 1, 8}, UINT64_C(1) << 32},
	};
	static const uint8_t byte;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_filter_buf buf = {0};

		if (!h5_filter_find(cases[i].id)->encode || cases[i].size > SIZE_MAX)
			continue;
		ck_assert_msg(h5_filter_find(cases[i].id)
					      ->encode(cases[i].values, cases[i].count, &byte,
						       (size_t)cases[i].size, &buf) == -ENOTSUP,
			      "%u", cases[i].id);
		h5_filter_buf_release(&buf);
	}
	for (unsigned i = 0; i < 2; i++) {
		const uint16_t id = i ? BZIP2 : DEFLATE;
		struct h5_filter_buf in, out = {0};

		if (!h5_filter_find(id)->decode || SIZE_MAX == UINT32_MAX)
			continue;
		in = (struct h5_filter_buf){.data = (uint8_t *)(uintptr_t)&byte,
					    .size = (size_t)(UINT64_C(1) << 32)};
		ck_assert_int_eq(h5_filter_find(id)->decode(NULL, 0, &in, &out, 1), -ENOTSUP);
		in.size = 1;
		ck_assert_int_eq(h5_filter_find(id)->decode(NULL, 0, &in, &out, (size_t)(UINT64_C(1) << 32)),
				 -ENOTSUP);
		ck_assert_ptr_null(out.data);
	}
}
END_TEST

static uint32_t next_number(char **p)
{
	return (uint32_t)strtol(*p, p, 10);
}

/* The filters of a line of the list; *expected: the bits that must be set in the mask, or -1. */
static void parse(char *line, char name[64], struct h5_pipeline *pipeline, int *expected)
{
	int n;
	char *p;

	ck_assert_int_eq(sscanf(line, "%63s %d%n", name, expected, &n), 2);
	p = line + n;
	memset(pipeline, 0, sizeof *pipeline);
	pipeline->count = next_number(&p);
	for (unsigned i = 0; i < pipeline->count; i++) {
		struct h5_filter_info *info = &pipeline->filters[i];

		info->id = (uint16_t)next_number(&p);
		info->optional = next_number(&p);
		info->count = next_number(&p);
		info->values = calloc(info->count + 1, sizeof *info->values);
		for (unsigned k = 0; k < info->count; k++)
			info->values[k] = (uint32_t)strtoul(p, &p, 10);
	}
}

static struct h5_filter_buf read_raw(const char *name)
{
	struct h5_filter_buf buf = {0};
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/filter_encode_%s.raw", getenv("H5FS_TEST_DATA"), name);
	f = fopen(path, "rb");
	ck_assert_msg(f, "%s", path);
	ck_assert_int_eq(h5_filter_buf_reserve(&buf, 1 << 20), 0);
	buf.size = fread(buf.data, 1, buf.capacity, f);
	fclose(f);
	return buf;
}

static void write_chunk(const char *folder, const char *name, const uint8_t *data, size_t size)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s.chunk", folder, name);
	f = fopen(path, "wb");
	ck_assert_uint_eq(fwrite(data, 1, size, f), size);
	fclose(f);
}

/* Encodes the chunk of a line into the folder; false: a filter is not built in. */
static bool encode_line(char *line, const char *folder, FILE *masks)
{
	struct h5_pipeline pipeline;
	struct h5_filter_buf raw, back;
	uint8_t *stored;
	size_t size;
	uint32_t mask;
	char name[64];
	int expected;
	bool can;

	parse(line, name, &pipeline, &expected);
	can = !h5_pipeline_can_encode(&pipeline);
	if (can) {
		raw = read_raw(name);
		ck_assert_msg(!h5_pipeline_encode(&pipeline, raw.data, raw.size, &stored, &size, &mask),
			      "%s: %s", name, h5_error_last()->text);
		ck_assert_msg(expected < 0 || mask == (uint32_t)expected, "%s: mask %u", name, mask);
		back = filter_data_undo(&pipeline, mask, stored, size, raw.size);
		ck_assert_msg(back.size == raw.size &&
				      (is_lossy(pipeline.filters[0].id, pipeline.filters[0].values) ||
				       !memcmp(back.data, raw.data, raw.size)),
			      "%s", name);
		write_chunk(folder, name, stored, size);
		fprintf(masks, "%s %u\n", name, mask);
		h5_filter_buf_release(&back);
		h5_filter_buf_release(&raw);
		free(stored);
	}
	h5_pipeline_release(&pipeline);
	return can;
}

/* All chunks of the folder. */
START_TEST(libhdf5_reads_what_was_encoded)
{
	static char line[1 << 14];
	const char *folder = scratch_folder();
	char path[512];
	FILE *list = samples_open("filter_encode.list"), *masks;
	unsigned n = 0, skipped = 0;

	snprintf(path, sizeof path, "%s/masks", folder);
	masks = fopen(path, "w");
	while (fgets(line, sizeof line, list)) {
		bool can = encode_line(line, folder, masks);

		n += can;
		skipped += !can;
	}
	fclose(masks);
	fclose(list);
	printf("%u chunks for libhdf5, %u of filters that are not built in: not tested\n", n, skipped);
	ck_assert_uint_ge(n, 500);
	scratch_fixture("", path);
	scratch_own_judge_python("tests/fixtures/filter_encode.py %s %s", path, folder);
}
END_TEST

UNIT_MAIN("filter_encode", samples_of_libhdf5_come_back, chunks_of_all_sizes_come_back, memory_is_short,
	  samples_are_decoded_without_memory, deflate_has_levels, fpzip_is_as_its_library_makes_it,
	  lzf_is_as_written_down, lzf_reaches_back_8192_bytes, scaleoffset_keeps_what_it_cannot_scale,
	  scaleoffset_knows_the_sign, wrong_parameters_are_refused, images_have_limits,
	  noise_in_images_comes_back, jpeg_has_qualities, missing_parameters_are_the_usual_ones,
	  too_few_parameters_are_refused, very_large_chunks_are_refused, damaged_parameters_do_no_harm,
	  libhdf5_reads_what_was_encoded)

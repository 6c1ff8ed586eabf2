#include "base/error.h"
#include "base/interrupt.h"
#include "base/reader.h"
#include "fault_alloc.h"
#include "filter/filter.h"
#include "filter/shuffle.h"
#include "filter_samples.h"
#include "unit.h"

#include <string.h>
#include <zlib.h>

START_TEST(filters_are_found_by_id)
{
	unsigned n = 0;

	ck_assert_str_eq(h5_filter_find(1)->name, "deflate");
	ck_assert_str_eq(h5_filter_find(32008)->name, "bitshuffle");
	ck_assert_ptr_null(h5_filter_find(40000));
	for (; h5_filters[n].name; n++)
		ck_assert_ptr_eq(h5_filter_find(h5_filters[n].id), &h5_filters[n]);
	ck_assert_uint_ge(n, 10);
}
END_TEST

/* As the registry of the HDF Group has them, in small letters. */
START_TEST(registered_filters_have_names)
{
	static const struct {
		uint16_t id;
		const char *name;
	} some[] = {{257, "hzip"},
		    {258, "fpzip"},
		    {305, "lzo"},
		    {32000, "lzf"},
		    {32014, "fpzip"},
		    {32022, "bitgroom"},
		    {32023, "granular-bitround"},
		    {32028, "sperr"},
		    {32031, "jpeg2000"},
		    {32032, "bitround"}};

	for (unsigned i = 0; i < sizeof some / sizeof *some; i++)
		ck_assert_str_eq(h5_filter_name(some[i].id), some[i].name);
	for (uint16_t id = 32000; id <= 32032; id++) {
		ck_assert_msg(h5_filter_name(id), "%u", id);
		for (uint16_t other = 32000; other < id; other++)
			ck_assert_str_ne(h5_filter_name(id), h5_filter_name(other));
	}
	ck_assert_ptr_null(h5_filter_name(32033));
	ck_assert_ptr_null(h5_filter_name(40000));
}
END_TEST

START_TEST(chunks_of_libhdf5_are_decoded)
{
	ck_assert_uint_ge(samples_are_decoded("filter.list"), 14);
}
END_TEST

START_TEST(output_stops_at_the_limit)
{
	samples_stop_at_the_limit("filter.list");
}
END_TEST

START_TEST(truncated_chunks_are_seen)
{
	truncated_samples_are_seen("filter.list");
}
END_TEST

START_TEST(damaged_chunks_do_no_harm)
{
	damaged_samples_do_no_harm("filter.list", 3000);
}
END_TEST

START_TEST(deflate_bombs_stop_and_trailing_bytes_pass)
{
	enum { BOMB = 16 << 20 };
	uLongf size = compressBound(BOMB);
	uint8_t *zeros = calloc(1, BOMB), *bomb = malloc(size + 3);
	struct h5_filter_buf buf;

	ck_assert_int_eq(compress2(bomb, &size, zeros, BOMB, 9), Z_OK);
	ck_assert_int_eq(decode(1, NULL, 0, bomb, size, 1000, &buf), -EOVERFLOW);
	h5_filter_buf_release(&buf);
	memset(bomb + size, 0x55, 3);
	ck_assert_int_eq(decode(1, NULL, 0, bomb, size + 3, BOMB, &buf), 0);
	ck_assert_uint_eq(buf.size, BOMB);
	h5_filter_buf_release(&buf);
	/* A limit beyond all that the stream can hold costs no memory. */
	ck_assert_int_eq(decode(1, NULL, 0, bomb, 20, (size_t)1 << 31, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
	free(zeros);
	free(bomb);
}
END_TEST

/* A stream without compression, of one block. */
static size_t stored_stream(uint8_t *to, const uint8_t *data, uint16_t n)
{
	uLong sum = adler32(adler32(0, NULL, 0), data, n);
	const uint8_t header[] = {
		0x78, 0x01, 1, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n, (uint8_t)(~n >> 8)};

	memcpy(to, header, sizeof header);
	memcpy(to + sizeof header, data, n);
	for (unsigned i = 0; i < 4; i++)
		to[sizeof header + n + i] = (uint8_t)(sum >> (24 - 8 * i));
	return sizeof header + n + 4;
}

/* What becomes of the stream: whole, within limits, cut anywhere, with something behind it. */
static void check_stream(const uint8_t *stream, size_t size, const uint8_t *data, size_t n)
{
	uint8_t *damaged = malloc(size + 9);
	struct h5_filter_buf buf;

	for (size_t limit = n; limit < n + 3; limit++) {
		ck_assert_int_eq(decode(1, NULL, 0, stream, size, limit, &buf), 0);
		ck_assert(buf.size == n && !memcmp(buf.data, data, n));
		h5_filter_buf_release(&buf);
	}
	for (size_t less = 1; less <= n; less += 1 + less / 2) {
		ck_assert_int_eq(decode(1, NULL, 0, stream, size, n - less, &buf), -EOVERFLOW);
		h5_filter_buf_release(&buf);
	}
	for (size_t cut = 0; cut < size; cut++) {
		ck_assert_msg(decode(1, NULL, 0, stream, cut, n + 100, &buf) == -EUCLEAN, "%zu of %zu", cut,
			      size);
		h5_filter_buf_release(&buf);
	}
	memcpy(damaged, stream, size);
	memset(damaged + size, 0xff, 9);
	ck_assert_int_eq(decode(1, NULL, 0, damaged, size + 9, n, &buf), 0);
	ck_assert(buf.size == n && !memcmp(buf.data, data, n));
	h5_filter_buf_release(&buf);
	for (unsigned bit = 0; bit < 32; bit++) {
		memcpy(damaged, stream, size);
		damaged[size - 4 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(decode(1, NULL, 0, damaged, size, n, &buf), -EUCLEAN);
		h5_filter_buf_release(&buf);
	}
	free(damaged);
}

START_TEST(zlib_streams_are_checked)
{
	static uint8_t data[3000], stream[4000];

	for (unsigned n = 0; n <= 3000; n = n ? n * 3 + 1 : 1) {
		for (unsigned i = 0; i < n; i++)
			data[i] = (uint8_t)(i % 7 ? i / 50 : i * 2654435761u >> 20);
		check_stream(stream, stored_stream(stream, data, (uint16_t)n), data, n);
		for (int level = 0; level <= 9; level += 3) {
			uLongf size = sizeof stream;

			ck_assert_int_eq(compress2(stream, &size, data, n, level), Z_OK);
			check_stream(stream, size, data, n);
		}
	}
}
END_TEST

START_TEST(zlib_headers_are_checked)
{
	/* compression method 7; a window of 64 KiB; a wrong check; a dictionary that nobody has */
	static const uint8_t headers[][2] = {{0x77, 0x85}, {0x88, 0x1c}, {0x78, 0x02}, {0x78, 0x20}};
	uint8_t stream[100];
	struct h5_filter_buf buf;

	for (unsigned i = 0; i < 4; i++) {
		size_t size = stored_stream(stream, (const uint8_t *)"abc", 3);

		ck_assert_int_eq(decode(1, NULL, 0, stream, size, 3, &buf), 0);
		h5_filter_buf_release(&buf);
		ck_assert(i == 2 || !((headers[i][0] << 8 | headers[i][1]) % 31));
		memcpy(stream, headers[i], 2);
		ck_assert_int_eq(decode(1, NULL, 0, stream, size, 3, &buf), -EUCLEAN);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

/* The other way round: zlib reads what comes out. */
START_TEST(zlib_reads_what_was_deflated)
{
	static uint8_t data[100000], back[sizeof data + 1];

	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i % 5 ? i / 500 : i * 2654435761u >> 20);
	for (uint32_t level = 0; level <= 9; level++)
		for (size_t n = 0; n <= sizeof data; n = n ? n * 10 : 1) {
			struct h5_filter_buf buf = {0};
			uLongf size = sizeof back;

			ck_assert_int_eq(h5_filter_find(1)->encode(&level, 1, data, n, &buf), 0);
			ck_assert_int_eq(uncompress(back, &size, buf.data, buf.size), Z_OK);
			ck_assert(size == n && !memcmp(back, data, n));
			ck_assert(n < 1000 || (buf.size < n) == (level > 0));
			h5_filter_buf_release(&buf);
		}
}
END_TEST

/* As RFC 1146 has it, a word at a time. */
static uint32_t fletcher32(const uint8_t *data, size_t n)
{
	uint32_t sum1 = 0, sum2 = 0;

	for (size_t i = 0; i < n; i += 2) {
		sum1 += (uint32_t)data[i] << 8 | (i + 1 < n ? data[i + 1] : 0u);
		sum1 = (sum1 & 0xffff) + (sum1 >> 16);
		sum2 += sum1;
		sum2 = (sum2 & 0xffff) + (sum2 >> 16);
	}
	return sum2 << 16 | sum1;
}

START_TEST(fletcher32_sums_all_lengths)
{
	static uint8_t data[100000];

	for (unsigned pattern = 0; pattern < 4; pattern++)
		for (size_t n = 1; n <= sizeof data; n += 1 + n / 7) {
			struct h5_filter_buf buf = {0};
			uint32_t sum;

			for (size_t i = 0; i < n; i++)
				data[i] = (uint8_t)(pattern == 0   ? 0
						    : pattern == 1 ? 255
						    : pattern == 2 ? i + 1 == n
								   : i * 2654435761u >> 9);
			sum = fletcher32(data, n);
			ck_assert_int_eq(h5_filter_find(3)->encode(NULL, 0, data, n, &buf), 0);
			ck_assert_uint_eq(buf.size, n + 4);
			for (unsigned i = 0; i < 4; i++)
				ck_assert_msg(buf.data[n + i] == (uint8_t)(sum >> 8 * i),
					      "pattern %u, %zu bytes", pattern, n);
			h5_filter_buf_release(&buf);
		}
}
END_TEST

START_TEST(fletcher32_takes_swapped_halves_and_refuses_damage)
{
	/* Words 0x6162, 0x6364, 0x6500: sum1 = 0x129c7 -> 0x29c8, sum2 = 0x6162 + 0xc4c6 + 0x129c7 = 0x24fef
	 * -> 0x4ff1 */
	uint8_t data[] = {'a', 'b', 'c', 'd', 'e', 0xc7, 0x29, 0xf0, 0x4f};
	struct h5_filter_buf buf;

	ck_assert_int_eq(decode(3, NULL, 0, data, 9, 5, &buf), 0);
	ck_assert_uint_eq(buf.size, 5);
	h5_filter_buf_release(&buf);
	memcpy(data + 5, "\x29\xc7\x4f\xf0", 4);
	ck_assert_int_eq(decode(3, NULL, 0, data, 9, 5, &buf), 0);
	h5_filter_buf_release(&buf);
	data[1]++;
	ck_assert_int_eq(decode(3, NULL, 0, data, 9, 5, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
	ck_assert_int_eq(decode(3, NULL, 0, data, 3, 5, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
}
END_TEST

START_TEST(shuffle_keeps_the_rest_at_the_end)
{
	const uint32_t three[] = {3}, zero[] = {0};
	struct h5_filter_buf buf;

	ck_assert_int_eq(decode(2, three, 1, "adbecfxy", 8, 8, &buf), 0);
	ck_assert(buf.size == 8 && !memcmp(buf.data, "abcdefxy", 8));
	h5_filter_buf_release(&buf);
	ck_assert_int_eq(decode(2, zero, 1, "adbecfxy", 8, 8, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
	ck_assert_int_eq(decode(2, NULL, 0, "adbecfxy", 8, 8, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
}
END_TEST

static void check_shuffle(uint32_t size, size_t n)
{
	uint8_t *data = malloc(n), *shuffled = malloc(n);
	size_t elements = n / size;
	struct h5_filter_buf buf = {0};

	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	memcpy(shuffled, data, n);
	for (size_t e = 0; e < elements; e++)
		for (size_t b = 0; b < size; b++)
			shuffled[b * elements + e] = data[e * size + b];
	ck_assert_int_eq(decode(2, &size, 1, shuffled, n, n, &buf), 0);
	ck_assert_msg(buf.size == n && !memcmp(buf.data, data, n), "%zu bytes by %u", n, size);
	h5_filter_buf_release(&buf);
	ck_assert_int_eq(h5_filter_find(2)->encode(&size, 1, data, n, &buf), 0);
	ck_assert_msg(buf.size == n && !memcmp(buf.data, shuffled, n), "%zu bytes into %u", n, size);
	h5_filter_buf_release(&buf);
	free(data);
	free(shuffled);
}

START_TEST(shuffle_takes_elements_of_all_sizes)
{
	static const size_t elements[] = {1, 2, 15, 16, 17, 31, 63, 64, 65, 79, 80, 127, 129, 1000};

	for (uint32_t size = 1; size <= 33; size++)
		for (unsigned i = 0; i < sizeof elements / sizeof *elements; i++)
			for (size_t rest = 0; rest < size; rest += 1 + size / 3)
				check_shuffle(size, elements[i] * size + rest);
	check_shuffle(1000, 100 * 1000 + 999);
	/* No element at all, and not as much work as bytes of one. */
	for (unsigned i = 0; i < 1000; i++)
		check_shuffle(UINT32_MAX, 100);
}
END_TEST

START_TEST(any_part_of_a_shuffle_can_be_undone)
{
	enum { ELEMENTS = 37, MOST = 18 };
	uint8_t shuffled[(ELEMENTS + 1) * MOST], expected[sizeof shuffled], part[sizeof shuffled + 1];

	for (size_t size = 1; size <= MOST; size++) {
		size_t all = ELEMENTS * size + size / 2;

		for (size_t i = 0; i < all; i++)
			expected[i] = shuffled[i] = (uint8_t)(i * 2654435761u >> 13);
		for (size_t i = 0; i < ELEMENTS * size; i++)
			shuffled[i % size * ELEMENTS + i / size] = expected[i];
		for (size_t from = 0; from <= all; from++)
			for (size_t n = 0; n <= all - from; n++) {
				part[n] = 0xa5;
				h5_unshuffle(shuffled, all, size, from, part, n);
				ck_assert_msg(!memcmp(part, expected + from, n) && part[n] == 0xa5,
					      "%zu bytes at %zu of elements of %zu", n, from, size);
			}
	}
}
END_TEST

START_TEST(quantized_floats_are_stored_as_they_are)
{
	static const uint16_t ids[] = {32022, 32023, 32032};
	const float stored[2] = {0.5f, -3.25f};
	struct h5_filter_buf buf;

	for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
		ck_assert_int_eq(decode(ids[i], NULL, 0, stored, sizeof stored, sizeof stored, &buf), 0);
		ck_assert_uint_eq(buf.size, sizeof stored);
		ck_assert_mem_eq(buf.data, stored, sizeof stored);
		h5_filter_buf_release(&buf);
		ck_assert_int_eq(decode(ids[i], NULL, 0, stored, sizeof stored, 7, &buf), -EOVERFLOW);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

START_TEST(lzf_references_stay_inside)
{
	/* "ab", then 8 bytes from 2 back, then 300 - 10 more in one long reference */
	const uint8_t good[] = {1, 'a', 'b', 6 << 5, 1}, before[] = {0, 'a', 1 << 5, 1},
		      length[] = {0, 'a', 7 << 5}, literals[] = {4, 'a'};
	struct h5_filter_buf buf;

	ck_assert_int_eq(decode(32000, NULL, 0, good, sizeof good, 100, &buf), 0);
	ck_assert(buf.size == 10 && !memcmp(buf.data, "ababababab", 10));
	h5_filter_buf_release(&buf);
	ck_assert_int_eq(decode(32000, NULL, 0, before, sizeof before, 100, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
	ck_assert_int_eq(decode(32000, NULL, 0, length, sizeof length, 100, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
	ck_assert_int_eq(decode(32000, NULL, 0, literals, sizeof literals, 100, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
}
END_TEST

/* References of all lengths from all distances, at the end of the room and before it. */
START_TEST(lzf_copies_what_overlaps)
{
	uint8_t stored[64], data[40 + 264];
	struct h5_filter_buf buf;

	for (unsigned back = 1; back <= 40; back++)
		for (unsigned n = 3; n <= 264; n++) {
			size_t at = 0;

			for (unsigned i = 0; i < 40; i++)
				data[i] = (uint8_t)(i * 7 + 1);
			for (unsigned i = 0; i < n; i++)
				data[40 + i] = data[40 + i - back];
			for (unsigned i = 0; i < 40; i += 20) {
				stored[at++] = 19;
				memcpy(stored + at, data + i, 20);
				at += 20;
			}
			stored[at++] = (uint8_t)((n - 2 < 7 ? n - 2 : 7) << 5);
			if (n - 2 >= 7)
				stored[at++] = (uint8_t)(n - 2 - 7);
			stored[at++] = (uint8_t)(back - 1);
			for (unsigned room = 0; room < 40; room++) {
				ck_assert_int_eq(decode(32000, NULL, 0, stored, at, 40 + n + room, &buf), 0);
				ck_assert_msg(buf.size == 40 + n && !memcmp(buf.data, data, 40 + n),
					      "%u bytes from %u", n, back);
				h5_filter_buf_release(&buf);
			}
			ck_assert_int_eq(decode(32000, NULL, 0, stored, at, 40 + n - 1, &buf), -EOVERFLOW);
			h5_filter_buf_release(&buf);
		}
}
END_TEST

START_TEST(scaleoffset_fill_values_are_all_ones)
{
	/* 2 bits a number, minimum 10, the numbers 0 to 3 */
	const uint8_t data[] = {2, 0, 0, 0, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1b};
	uint32_t values[] = {2, 0, 4, 0, 1, 0, 0, 0, 99};
	struct h5_filter_buf buf;

	ck_assert_int_eq(decode(6, values, 9, data, sizeof data, 4, &buf), 0);
	ck_assert(buf.size == 4 && !memcmp(buf.data, "\12\13\14\15", 4));
	h5_filter_buf_release(&buf);
	values[7] = 1;
	ck_assert_int_eq(decode(6, values, 9, data, sizeof data, 4, &buf), 0);
	ck_assert(!memcmp(buf.data, "\12\13\14c", 4));
	h5_filter_buf_release(&buf);
	values[4] = 3;
	ck_assert_int_eq(decode(6, values, 9, data, sizeof data, 100, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
	values[4] = 1;
	values[0] = 1;
	values[3] = 1;
	ck_assert_int_eq(decode(6, values, 9, data, sizeof data, 100, &buf), -EUCLEAN);
	h5_filter_buf_release(&buf);
}
END_TEST

/* A fill value has two parameters, or only the first of them; what comes behind is none of it. */
START_TEST(scaleoffset_fill_values_have_64_bits)
{
	const uint8_t data[] = {2, 0, 0, 0, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1b};
	const uint32_t values[] = {2, 0, 4, 0, 8, 0, 0, 1, 0x89abcdef, 0x01234567, 0xffffffff};
	static const uint64_t fills[] = {0, 0x89abcdef, 0x0123456789abcdef, 0x0123456789abcdef};

	for (unsigned i = 0; i < 4; i++) {
		struct h5_filter_buf buf;
		uint64_t numbers[4];

		ck_assert_int_eq(decode(6, values, 8 + i, data, sizeof data, 32, &buf), 0);
		ck_assert_uint_eq(buf.size, sizeof numbers);
		for (unsigned k = 0; k < 4; k++)
			numbers[k] = h5_uint_from(buf.data + 8 * k, 8);
		ck_assert(numbers[0] == 10 && numbers[1] == 11 && numbers[2] == 12);
		ck_assert_uint_eq(numbers[3], fills[i]);
		h5_filter_buf_release(&buf);
	}
	/* A number of them must be there. */
	for (unsigned count = 0; count < 8; count++) {
		struct h5_filter_buf buf;

		ck_assert_int_eq(decode(6, values, count, data, sizeof data, 32, &buf), -EUCLEAN);
		ck_assert_str_eq(h5_error_last()->text, "scaleoffset: parameters are missing");
		h5_filter_buf_release(&buf);
	}
}
END_TEST

/* Descriptions that would loop, nest or grow without end. */
START_TEST(nbit_descriptions_are_checked)
{
	const uint32_t many[] = {8, 0, 1u << 31, 1, 1u << 30, 0, 8, 0}, /* elements x size */
		empty[] = {6, 0, 1000, 3, 8, 0},			/* a compound without members */
		base[] = {10, 0, 1, 2, 8, 1, 3, 0, 8, 0},		/* 8 is no multiple of 3 */
		inner[] = {10, 0, 1, 2, 8, 1, 16, 0, 8, 0},		/* the base is larger */
		precise[] = {8, 0, 1, 1, 2, 0, 9, 8},			/* 17 bits of 16 */
		outside[] = {12, 0, 1, 3, 8, 1, 8, 1, 1, 0, 8, 0},	/* a member beyond the compound */
		cut[] = {5, 0, 1, 3, 8}, none[] = {0};
	const struct {
		const uint32_t *values;
		unsigned count;
	} bad[] = {{many, 8},	 {empty, 6},	{base, 10}, {inner, 10},
		   {precise, 8}, {outside, 12}, {cut, 5},   {none, 1}};
	enum { DEEP = 60001 };
	static uint32_t deep[DEEP] = {DEEP, 0, 1};
	uint8_t data[64] = {0};
	struct h5_filter_buf buf;

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert_msg(decode(5, bad[i].values, bad[i].count, data, sizeof data, 1 << 20, &buf) ==
				      (bad[i].values == many ? -EOVERFLOW : -EUCLEAN),
			      "%u", i);
		h5_filter_buf_release(&buf);
	}
	for (unsigned i = 3; i + 1 < DEEP; i += 2) {
		deep[i] = 2;
		deep[i + 1] = 8;
	}
	ck_assert_int_eq(decode(5, deep, DEEP, data, sizeof data, 1 << 20, &buf), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "deep"));
	h5_filter_buf_release(&buf);
}
END_TEST

START_TEST(nbit_types_nest_64_deep)
{
	enum { MOST = 64 };
	uint32_t values[3 + 2 * (MOST + 1) + 5] = {0, 0, 1};
	const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct h5_filter_buf buf;

	for (unsigned deep = MOST; deep <= MOST + 1; deep++) {
		unsigned n = 3;

		for (unsigned i = 0; i < deep; i++) {
			values[n++] = 2;
			values[n++] = 8;
		}
		memcpy(values + n, (const uint32_t[]){1, 8, 1, 64, 0}, 5 * sizeof *values);
		n += 5;
		values[0] = n;
		ck_assert_int_eq(decode(5, values, n, data, sizeof data, sizeof data, &buf),
				 deep > MOST ? -EUCLEAN : 0);
		ck_assert(deep > MOST || (buf.size == sizeof data && !memcmp(buf.data, data, sizeof data)));
		h5_filter_buf_release(&buf);
	}
}
END_TEST

static bool is_unwanted(void *arg)
{
	++*(unsigned *)arg;
	return true;
}

/* It asks after each 65536 types. */
START_TEST(nbit_ends_when_nobody_waits)
{
	enum { ASKED = 1 << 16 };
	static uint8_t data[2 * ASKED];
	static const unsigned counts[] = {ASKED - 1, ASKED};
	struct h5_interrupt interrupt;
	struct h5_filter_buf buf;

	for (unsigned i = 0; i < 2; i++)
		for (unsigned wanted = 0; wanted < 2; wanted++) {
			const uint32_t values[] = {8, 0, counts[i], 1, 1, 0, 4, 0};
			unsigned asked = 0;

			h5_interrupt_begin(wanted ? NULL : is_unwanted, &asked);
			h5_interrupt_get(&interrupt);
			interrupt.begin.tv_sec -= 10;
			h5_interrupt_set(&interrupt);
			ck_assert_int_eq(decode(5, values, 8, data, counts[i], counts[i], &buf),
					 i && !wanted ? -EINTR : 0);
			ck_assert_uint_eq(asked, i && !wanted);
			h5_interrupt_begin(NULL, NULL);
			h5_filter_buf_release(&buf);
		}
}
END_TEST

/* The largest number of bits, and one more; members up to the last byte of a compound. */
START_TEST(nbit_limits)
{
	static const struct {
		const char *what;
		unsigned count;
		uint32_t values[20];
		size_t size;
		int rc;
	} cases[] = {
		{"32 bits", 8, {8, 0, 2, 1, 4, 0, 32, 0}, 8, 0},
		{"32 bits, then no more bytes", 8, {8, 0, 2, 1, 4, 0, 32, 0}, 7, -EUCLEAN},
		{"33 bits", 8, {8, 0, 2, 1, 4, 0, 33, 0}, 9, -EUCLEAN},
		{"31 bits from bit 1 on", 8, {8, 0, 2, 1, 4, 0, 31, 1}, 8, 0},
		{"31 bits from bit 2 on", 8, {8, 0, 2, 1, 4, 0, 31, 2}, 8, -EUCLEAN},
		{"bits that would overflow", 8, {8, 0, 2, 1, 4, 0, 1, UINT32_MAX}, 8, -EUCLEAN},
		{"no bits", 8, {8, 0, 2, 1, 4, 0, 0, 0}, 8, -EUCLEAN},
		{"12 bits in 3 bytes", 8, {8, 0, 2, 1, 4, 0, 12, 0}, 3, 0},
		{"12 bits in 2 bytes", 8, {8, 0, 2, 1, 4, 0, 12, 0}, 2, -EUCLEAN},
		{"other bytes", 5, {5, 0, 2, 4, 4}, 8, 0},
		{"other bytes, one less", 5, {5, 0, 2, 4, 4}, 7, -EUCLEAN},
		{"an unknown class", 5, {5, 0, 2, 5, 4}, 8, -EUCLEAN},
		{"class 0", 5, {5, 0, 2, 0, 4}, 8, -EUCLEAN},
		{"nothing of each", 5, {5, 0, 2, 4, 0}, 8, -EUCLEAN},
		{"an array of two", 10, {10, 0, 1, 2, 8, 1, 4, 0, 32, 0}, 8, 0},
		{"an array of parts", 10, {10, 0, 1, 2, 8, 1, 3, 0, 24, 0}, 8, -EUCLEAN},
		{"an array of larger ones", 10, {10, 0, 1, 2, 8, 1, 16, 0, 32, 0}, 8, -EUCLEAN},
		{"an array without its base", 5, {5, 0, 1, 2, 8}, 8, -EUCLEAN},
		{"a member at the end", 9, {9, 0, 1, 3, 4, 1, 3, 4, 1}, 1, 0},
		{"a member behind the end", 9, {9, 0, 1, 3, 4, 1, 4, 4, 1}, 1, -EUCLEAN},
		{"a member across the end", 9, {9, 0, 1, 3, 4, 1, 3, 4, 2}, 2, -EUCLEAN},
		{"more members than values", 9, {9, 0, 1, 3, 4, 10, 3, 4, 1}, 1, -EUCLEAN},
		{"no members", 9, {9, 0, 1, 3, 4, 0, 3, 4, 1}, 1, -EUCLEAN},
	};
	const uint8_t data[9] = {0xff, 1, 2, 3, 4, 5, 6, 7, 8};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_filter_buf buf;

		ck_assert_msg(decode(5, cases[i].values, cases[i].count, data, cases[i].size, 8, &buf) ==
				      cases[i].rc,
			      "%s: %s", cases[i].what, h5_error_last()->text);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

/* Bits of a number, its elements and the minimum. Header: bits, 8, the minimum. */
START_TEST(scaleoffset_limits)
{
	static const struct {
		const char *what;
		uint32_t values[9];
		uint8_t bits;
		size_t size, limit;
		int rc;
	} cases[] = {
		{"whole elements", {2, 0, 2, 0, 4, 0, 0, 0}, 32, 8, 8, 0},
		{"whole elements, one byte less", {2, 0, 2, 0, 4, 0, 0, 0}, 32, 7, 8, -EUCLEAN},
		{"33 bits", {2, 0, 2, 0, 4, 0, 0, 0}, 33, 16, 8, -EUCLEAN},
		{"two of 12 bits", {2, 0, 2, 0, 4, 0, 0, 0}, 12, 3, 8, 0},
		{"two of 13 bits", {2, 0, 2, 0, 4, 0, 0, 0}, 13, 3, 8, -EUCLEAN},
		{"no bits", {2, 0, 2, 0, 4, 0, 0, 0}, 0, 0, 8, 0},
		{"more than may come out", {2, 0, 2, 0, 4, 0, 0, 0}, 12, 3, 7, -EOVERFLOW},
		{"8 bytes", {2, 0, 1, 0, 8, 0, 0, 0}, 64, 8, 8, 0},
		{"2 bytes", {2, 0, 1, 0, 2, 0, 0, 0}, 16, 2, 8, 0},
		{"1 byte", {2, 0, 1, 0, 1, 0, 0, 0}, 8, 1, 8, 0},
		{"3 bytes", {2, 0, 1, 0, 3, 0, 0, 0}, 8, 3, 8, -EUCLEAN},
		{"16 bytes", {2, 0, 1, 0, 16, 0, 0, 0}, 8, 16, 16, -EUCLEAN},
		{"floats", {0, 2, 1, 1, 4, 0, 0, 0}, 8, 4, 8, 0},
		{"doubles", {0, 2, 1, 1, 8, 0, 0, 0}, 8, 8, 8, 0},
		{"floats of 2 bytes", {0, 2, 1, 1, 2, 0, 0, 0}, 8, 4, 8, -EUCLEAN},
		{"floats of 1 byte", {0, 2, 1, 1, 1, 0, 0, 0}, 8, 4, 8, -EUCLEAN},
		{"integers of scale type 0", {0, 0, 1, 0, 4, 0, 0, 0}, 8, 4, 8, -ENOTSUP},
		{"floats of scale type 1", {1, 2, 1, 1, 4, 0, 0, 0}, 8, 4, 8, -ENOTSUP},
		{"floats of scale type 2", {2, 2, 1, 1, 4, 0, 0, 0}, 8, 4, 8, -ENOTSUP},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t data[21 + 16] = {cases[i].bits, 0, 0, 0, 8, 10};
		struct h5_filter_buf buf;

		ck_assert_msg(decode(6, cases[i].values, 8, data, 21 + cases[i].size, cases[i].limit, &buf) ==
				      cases[i].rc,
			      "%s: %s", cases[i].what, h5_error_last()->text);
		h5_filter_buf_release(&buf);
		if (cases[i].rc)
			continue;
		/* Nothing is decoded without a whole header. */
		ck_assert_int_eq(decode(6, cases[i].values, 8, data, 20, cases[i].limit, &buf), -EUCLEAN);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

START_TEST(buffers_grow_by_halves)
{
	struct h5_filter_buf buf = {0};
	uint8_t *data;

	ck_assert_int_eq(h5_filter_buf_reserve(&buf, 0), 0);
	ck_assert(buf.data && buf.capacity == 1 && !buf.size);
	ck_assert_int_eq(h5_filter_buf_copy(&buf, (const uint8_t *)"0123456789", 10), 0);
	ck_assert(buf.capacity == 10 && buf.size == 10);
	data = buf.data;
	ck_assert_int_eq(h5_filter_buf_reserve(&buf, 10), 0);
	ck_assert_int_eq(h5_filter_buf_grow(&buf, 0), 0);
	ck_assert(buf.data == data && buf.capacity == 10);
	ck_assert_int_eq(h5_filter_buf_grow(&buf, 1), 0);
	ck_assert(buf.capacity == 10 + 5 + 1 && buf.size == 10 && !memcmp(buf.data, "0123456789", 10));
	ck_assert_int_eq(h5_filter_buf_grow(&buf, 6), 0);
	ck_assert_uint_eq(buf.capacity, 16);
	ck_assert_int_eq(h5_filter_buf_grow(&buf, 7), 0);
	ck_assert(buf.capacity == 10 + 5 + 7 && !memcmp(buf.data, "0123456789", 10));
	ck_assert_int_eq(h5_filter_buf_copy(&buf, (const uint8_t *)"ab", 2), 0);
	ck_assert(buf.capacity == 22 && buf.size == 2 && !memcmp(buf.data, "ab", 2));
	ck_assert_int_eq(h5_filter_buf_copy(&buf, (const uint8_t *)"", 0), 0);
	ck_assert(buf.capacity == 22 && !buf.size);
	ck_assert_int_eq(h5_filter_buf_reserve(&buf, 23), 0);
	ck_assert_uint_eq(buf.capacity, 23);
	h5_filter_buf_release(&buf);
	ck_assert(!buf.data && !buf.capacity && !buf.size);
	fault_alloc_arm(1);
	fault_alloc_count(true);
	ck_assert_int_eq(h5_filter_buf_reserve(&buf, 10), -ENOMEM);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	ck_assert_ptr_null(buf.data);
}
END_TEST

START_TEST(elements_are_swapped)
{
	static const struct {
		size_t size, each;
		const char *big;
	} cases[] = {{9, 1, "123456789"}, {9, 2, "214365879"}, {9, 4, "432187659"}, {8, 8, "87654321"},
		     {9, 8, "876543219"}, {7, 8, "1234567"},   {6, 3, "321654"},    {0, 4, ""}};
	const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t data[] = "123456789";

		h5_filter_to_order(data, cases[i].size, cases[i].each, is_big_endian);
		ck_assert_mem_eq(data, "123456789", 9);
		h5_filter_to_order(data, cases[i].size, cases[i].each, !is_big_endian);
		ck_assert_msg(!memcmp(data, cases[i].big, cases[i].size), "%zu", i);
		ck_assert_mem_eq(data + cases[i].size, &"123456789"[cases[i].size], 9 - cases[i].size);
	}
}
END_TEST

UNIT_MAIN("filter", filters_are_found_by_id, registered_filters_have_names, chunks_of_libhdf5_are_decoded,
	  output_stops_at_the_limit, truncated_chunks_are_seen, damaged_chunks_do_no_harm,
	  deflate_bombs_stop_and_trailing_bytes_pass, zlib_streams_are_checked, zlib_headers_are_checked,
	  zlib_reads_what_was_deflated, fletcher32_sums_all_lengths,
	  fletcher32_takes_swapped_halves_and_refuses_damage, shuffle_keeps_the_rest_at_the_end,
	  shuffle_takes_elements_of_all_sizes, any_part_of_a_shuffle_can_be_undone,
	  quantized_floats_are_stored_as_they_are, lzf_copies_what_overlaps, lzf_references_stay_inside,
	  scaleoffset_fill_values_are_all_ones, scaleoffset_fill_values_have_64_bits,
	  nbit_descriptions_are_checked, nbit_types_nest_64_deep, nbit_ends_when_nobody_waits, nbit_limits,
	  scaleoffset_limits, buffers_grow_by_halves, elements_are_swapped)

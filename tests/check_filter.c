#include "base/error.h"
#include "filter/filter.h"
#include "filter_samples.h"
#include "unit.h"

#include <string.h>
#include <zlib.h>

START_TEST(filters_are_found_by_id)
{
	const struct h5_filter_ops *ops;
	unsigned n = 0;

	ck_assert_str_eq(h5_filter_find(1)->name, "deflate");
	ck_assert_str_eq(h5_filter_find(32008)->name, "bitshuffle");
	ck_assert_ptr_null(h5_filter_find(40000));
	for (; (ops = h5_filter_at(n)); n++)
		ck_assert_ptr_eq(h5_filter_find(ops->id), ops);
	ck_assert_uint_ge(n, 10);
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
	ck_assert_int_eq(decode(1, NULL, 0, bomb, size, 1000, &buf), -EUCLEAN);
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

START_TEST(quantized_floats_are_stored_as_they_are)
{
	static const uint16_t ids[] = {32022, 32023};
	const float stored[2] = {0.5f, -3.25f};
	struct h5_filter_buf buf;

	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(decode(ids[i], NULL, 0, stored, sizeof stored, sizeof stored, &buf), 0);
		ck_assert_uint_eq(buf.size, sizeof stored);
		ck_assert_mem_eq(buf.data, stored, sizeof stored);
		h5_filter_buf_release(&buf);
		ck_assert_int_eq(decode(ids[i], NULL, 0, stored, sizeof stored, 7, &buf), -EUCLEAN);
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
				      -EUCLEAN,
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

UNIT_MAIN("filter", filters_are_found_by_id, chunks_of_libhdf5_are_decoded, output_stops_at_the_limit,
	  truncated_chunks_are_seen, damaged_chunks_do_no_harm, deflate_bombs_stop_and_trailing_bytes_pass,
	  fletcher32_takes_swapped_halves_and_refuses_damage, shuffle_keeps_the_rest_at_the_end,
	  quantized_floats_are_stored_as_they_are, lzf_references_stay_inside,
	  scaleoffset_fill_values_are_all_ones, nbit_descriptions_are_checked)

#include "base/error.h"
#include "filter/filter.h"
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { VALUES_MAX = 64 };

/* One line of filter.list (tests/fixtures/dataset.py): a chunk as libhdf5 stored it, and as it was. */
struct sample {
	char name[64];
	uint16_t id;
	uint32_t values[VALUES_MAX];
	unsigned count;
	struct h5_filter_buf in, out;
};

static void read_whole(const char *name, const char *suffix, struct h5_filter_buf *buf)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/filter_%s.%s", getenv("H5FS_TEST_DATA"), name, suffix);
	f = fopen(path, "rb");
	ck_assert_msg(f, "%s", path);
	memset(buf, 0, sizeof *buf);
	ck_assert_int_eq(h5_filter_buf_reserve(buf, 1 << 16), 0);
	buf->size = fread(buf->data, 1, buf->capacity, f);
	fclose(f);
}

static bool next_sample(FILE *list, struct sample *s)
{
	char line[1024], *p = line;
	int n = 0;
	unsigned id;

	if (!fgets(line, sizeof line, list))
		return false;
	memset(s, 0, sizeof *s);
	ck_assert_int_eq(sscanf(p, "%63s %u%n", s->name, &id, &n), 2);
	s->id = (uint16_t)id;
	for (p += n; sscanf(p, "%u%n", &s->values[s->count], &n) == 1; p += n)
		ck_assert_uint_lt(s->count++, VALUES_MAX);
	read_whole(s->name, "in", &s->in);
	read_whole(s->name, "out", &s->out);
	return true;
}

static void release_sample(struct sample *s)
{
	h5_filter_buf_release(&s->in);
	h5_filter_buf_release(&s->out);
}

static FILE *open_list(void)
{
	char path[512];
	FILE *list;

	snprintf(path, sizeof path, "%s/filter.list", getenv("H5FS_TEST_DATA"));
	list = fopen(path, "r");
	ck_assert_msg(list, "%s", path);
	return list;
}

/* Decodes a copy that is exactly as large as the bytes, so that sanitizers see what is read beyond it. */
static int decode(uint16_t id, const uint32_t *values, unsigned count, const void *in, size_t size,
		  size_t limit, struct h5_filter_buf *buf)
{
	memset(buf, 0, sizeof *buf);
	ck_assert_int_eq(h5_filter_buf_reserve(buf, size), 0);
	if (size)
		memcpy(buf->data, in, size);
	buf->size = size;
	return h5_filter_find(id)->decode(values, count, buf, limit);
}

static bool same(const struct h5_filter_buf *a, const struct h5_filter_buf *b)
{
	return a->size == b->size && !memcmp(a->data, b->data, a->size);
}

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
	FILE *list = open_list();
	struct sample s;
	unsigned n = 0;

	for (; next_sample(list, &s); n++) {
		struct h5_filter_buf buf;

		ck_assert_msg(!decode(s.id, s.values, s.count, s.in.data, s.in.size, s.out.size, &buf),
			      "%s: %s", s.name, h5_error_last()->text);
		ck_assert_msg(same(&buf, &s.out), "%s", s.name);
		h5_filter_buf_release(&buf);
		release_sample(&s);
	}
	fclose(list);
	ck_assert_uint_ge(n, 14);
}
END_TEST

/* One byte less than comes out is too little, for every filter. */
START_TEST(output_stops_at_the_limit)
{
	FILE *list = open_list();
	struct sample s;

	while (next_sample(list, &s)) {
		struct h5_filter_buf buf;

		ck_assert_msg(decode(s.id, s.values, s.count, s.in.data, s.in.size, s.out.size - 1, &buf) ==
				      -EUCLEAN,
			      "%s", s.name);
		h5_filter_buf_release(&buf);
		release_sample(&s);
	}
	fclose(list);
}
END_TEST

/* Cut anywhere, a chunk gives an error or fewer bytes, never the whole. (Shuffle just gives fewer.) */
START_TEST(truncated_chunks_are_seen)
{
	FILE *list = open_list();
	struct sample s;

	while (next_sample(list, &s)) {
		/* The last byte may be padding. */
		for (size_t n = 0; n + 2 < s.in.size; n++) {
			struct h5_filter_buf buf;
			int rc = decode(s.id, s.values, s.count, s.in.data, n, s.out.size, &buf);

			ck_assert_msg(rc == -EUCLEAN || (!rc && buf.size < s.out.size) ||
					      !strcmp(s.name, "scale_same"),
				      "%s: %zu of %zu bytes", s.name, n, s.in.size);
			h5_filter_buf_release(&buf);
		}
		release_sample(&s);
	}
	fclose(list);
}
END_TEST

/* Any damage: an error, or some bytes within the limit. Sanitizers watch the rest. */
START_TEST(damaged_chunks_do_no_harm)
{
	FILE *list = open_list();
	struct sample s;
	uint32_t random = 1;

	while (next_sample(list, &s)) {
		for (int i = 0; i < 3000; i++) {
			struct h5_filter_buf buf;
			uint32_t values[VALUES_MAX];
			uint8_t *in = malloc(s.in.size);

			memcpy(in, s.in.data, s.in.size);
			memcpy(values, s.values, sizeof values);
			for (int k = 0; k < 1 + i % 3; k++) {
				random = random * 1664525 + 1013904223;
				in[(random >> 8) % s.in.size] ^= (uint8_t)(1 + random % 255);
			}
			random = random * 1664525 + 1013904223;
			if (i % 2 && s.count)
				values[(random >> 8) % s.count] ^= 1u << random % 32;
			if (!decode(s.id, values, s.count, in, s.in.size, s.out.size, &buf))
				ck_assert_uint_le(buf.size, s.out.size);
			h5_filter_buf_release(&buf);
			free(in);
		}
		release_sample(&s);
	}
	fclose(list);
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
	  lzf_references_stay_inside, scaleoffset_fill_values_are_all_ones, nbit_descriptions_are_checked)

#include "filter_samples.h"

/* A chunk with wrong sizes, and what becomes of it. */
struct wrong {
	const char *what;
	uint16_t id;
	uint32_t values[6];
	unsigned count;
	uint8_t bytes[64];
	size_t size;
	int rc;
};

static const char listing[] = "filter_libs.list";

/* The filters that configure found, so that nobody believes all were tested where they weren't. */
static void print_untested(void)
{
	for (const struct h5_filter_ops *ops = h5_filters; ops->name; ops++)
		if (!ops->decode)
			printf("filter %u (%s) is not built in: not tested\n", ops->id, ops->name);
}

START_TEST(chunks_of_plugins_are_decoded)
{
	print_untested();
	printf("%u chunks\n", samples_are_decoded(listing));
}
END_TEST

START_TEST(output_stops_at_the_limit)
{
	samples_stop_at_the_limit(listing);
}
END_TEST

START_TEST(truncated_chunks_are_seen)
{
	truncated_samples_are_seen(listing);
}
END_TEST

START_TEST(damaged_chunks_do_no_harm)
{
	damaged_samples_do_no_harm(listing, 400);
}
END_TEST

static void check_wrong(const struct wrong *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct h5_filter_buf buf;

		if (!h5_filter_find(w[i].id)->decode)
			continue;
		ck_assert_msg(decode(w[i].id, w[i].values, w[i].count, w[i].bytes, w[i].size, 4096, &buf) ==
				      w[i].rc,
			      "%u: %s: %s", w[i].id, w[i].what, h5_error_last()->text);
		h5_filter_buf_release(&buf);
	}
}

START_TEST(lz4_sizes_are_checked)
{
	static const struct wrong wrong[] = {
		{"nothing", 32004, {0}, 0, {0}, 12, 0},
		{"stored",
		 32004,
		 {0},
		 0,
		 {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2, 'a', 'b', 0, 0, 0, 1, 'c'},
		 23,
		 0},
		{"no header", 32004, {0}, 0, {0}, 11, -EUCLEAN},
		{"no blocks", 32004, {0}, 0, {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0}, 16, -EUCLEAN},
		{"more than all",
		 32004,
		 {0},
		 0,
		 {255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 1},
		 12,
		 -EOVERFLOW},
		{"a long block",
		 32004,
		 {0},
		 0,
		 {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 255, 255, 255, 255, 'a'},
		 17,
		 -EUCLEAN},
		{"a block of nothing",
		 32004,
		 {0},
		 0,
		 {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0},
		 16,
		 -EUCLEAN},
		{"a block that gives less", /* 1 byte of 3 */
		 32004,
		 {0},
		 0,
		 {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0x10, 'a'},
		 18,
		 -EUCLEAN},
	};

	check_wrong(wrong, sizeof wrong / sizeof *wrong);
}
END_TEST

START_TEST(bitshuffle_sizes_are_checked)
{
	static const struct wrong wrong[] = {
		{"plain", 32008, {0, 4, 1, 8}, 4, {1, 2, 4, 8, 16, 32, 64, 128, 'r'}, 9, 0},
		{"empty", 32008, {0, 4, 1, 8}, 4, {0}, 0, 0},
		{"no element size", 32008, {0, 4}, 2, {0}, 8, -EUCLEAN},
		{"elements of nothing", 32008, {0, 4, 0, 8}, 4, {0}, 8, -EUCLEAN},
		{"a block that is no multiple of 8", 32008, {0, 4, 1, 9}, 4, {0}, 9, -EUCLEAN},
		{"an unknown compression", 32008, {0, 4, 1, 8, 1}, 5, {0}, 12, -ENOTSUP},
		{"a compression to come", 32008, {0, 4, 1, 8, 4}, 5, {0}, 12, -ENOTSUP},
		{"huge elements", 32008, {0, 4, 0xffffffff, 0xfffffff8, 0}, 5, {1, 2, 3}, 3, 0},
	};
	static const struct wrong compressed[] = {
		{"no header", 32008, {0, 4, 1, 8, 2}, 5, {0}, 11, -EUCLEAN},
		{"no blocks", 32008, {0, 4, 1, 8, 2}, 5, {0, 0, 0, 0, 0, 0, 0, 8}, 12, -EUCLEAN},
		{"more than all",
		 32008,
		 {0, 4, 1, 8, 2},
		 5,
		 {255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 8},
		 12,
		 -EOVERFLOW},
		{"a block that is no multiple of 8",
		 32008,
		 {0, 4, 1, 8, 2},
		 5,
		 {0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9},
		 12,
		 -EUCLEAN},
		{"a long block",
		 32008,
		 {0, 4, 1, 8, 2},
		 5,
		 {0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 255, 255, 255, 255},
		 16,
		 -EUCLEAN},
		{"a rest that is not there",
		 32008,
		 {0, 4, 1, 8, 2},
		 5,
		 {0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6},
		 18,
		 -EUCLEAN},
	};

	/* a frame of one byte */
	static const struct wrong short_block = {"a block that gives less",
						 32008,
						 {0, 4, 1, 8, 3},
						 5,
						 {0, 0, 0,  0,	  0,	0,    0,    8,	  0, 0, 0, 8, 0,
						  0, 0, 10, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 9, 0, 0, 'a'},
						 26,
						 -EUCLEAN};

	check_wrong(wrong, sizeof wrong / sizeof *wrong);
	if (h5_filter_find(32004)->decode)
		check_wrong(compressed, sizeof compressed / sizeof *compressed);
	if (h5_filter_find(32015)->decode)
		check_wrong(&short_block, 1);
}
END_TEST

START_TEST(bitshuffle_transposes)
{
	/* Eight bytes of which byte i has bit i: the diagonal stays. Bit 0 of all, then bit 7 of all. */
	const uint8_t diagonal[] = {1, 2, 4, 8, 16, 32, 64, 128}, rows[] = {0xff, 0, 0, 0, 0, 0, 0, 0x0f};
	const uint32_t values[] = {0, 4, 1, 8};
	struct h5_filter_buf buf;

	ck_assert_int_eq(decode(32008, values, 4, diagonal, 8, 8, &buf), 0);
	ck_assert_mem_eq(buf.data, diagonal, 8);
	h5_filter_buf_release(&buf);
	ck_assert_int_eq(decode(32008, values, 4, rows, 8, 8, &buf), 0);
	ck_assert_mem_eq(buf.data, "\x81\x81\x81\x81\1\1\1\1", 8);
	h5_filter_buf_release(&buf);
}
END_TEST

/* By hand, without Zstandard around them. */
START_TEST(vbz_numbers)
{
	/* 1, -1, 300: the differences 1, -2, 301 are the numbers 2, 3, 602 */
	const uint32_t two[] = {0, 2, 1, 0}, newer[] = {1, 2, 1, 0};
	const uint8_t words[] = {6, 0, 0, 0, 0x10, 2, 3, 0x5a, 2};
	/* 0, 3, -100, 100: the differences are 0, 6, 0xcd, 0x190, of 0, 1, 2 and 4 half bytes */
	const uint32_t one[] = {1, 1, 1, 0};
	const uint8_t bytes[] = {4, 0, 0, 0, 0xe4, 0xd6, 0x0c, 0x19, 0};
	static const struct wrong wrong[] = {
		{"two parameters", 32020, {0, 2}, 2, {0}, 4, -EUCLEAN},
		{"another version", 32020, {2, 2, 1, 0}, 4, {0}, 4, -ENOTSUP},
		{"integers of 3 bytes", 32020, {0, 3, 1, 0}, 4, {0}, 4, -EUCLEAN},
		{"no size", 32020, {0, 2, 1, 0}, 4, {0}, 3, -EUCLEAN},
		{"nothing", 32020, {0, 2, 1, 0}, 4, {0}, 4, 0},
		{"a part of an integer", 32020, {0, 2, 1, 0}, 4, {3}, 9, -EUCLEAN},
		{"no keys", 32020, {0, 2, 1, 0}, 4, {2}, 4, -EUCLEAN},
		{"no numbers", 32020, {0, 2, 1, 0}, 4, {2, 0, 0, 0, 0}, 5, -EUCLEAN},
		{"a part of a number", 32020, {0, 2, 1, 0}, 4, {2, 0, 0, 0, 3, 1, 2, 3}, 8, -EUCLEAN},
		{"more behind it", 32020, {0, 2, 1, 0}, 4, {2, 0, 0, 0, 0, 1, 2}, 7, -EUCLEAN},
		{"a part of the halves", 32020, {1, 1, 1, 0}, 4, {1, 0, 0, 0, 3, 1}, 6, -EUCLEAN},
		{"more than all", 32020, {0, 2, 1, 0}, 4, {255, 255, 255, 0}, 4, -EUCLEAN},
		{"very much more", 32020, {0, 4, 1, 0}, 4, {0, 0, 255, 255}, 4, -EOVERFLOW},
		{"no frame", 32020, {0, 2, 1, 1}, 4, {2, 0, 0, 0, 0, 1}, 6, -EUCLEAN},
		{"bytes that are too few", 32020, {0, 0, 0, 0}, 4, {2, 0, 0, 0, 1}, 5, -EUCLEAN},
	};
	struct h5_filter_buf buf;

	if (!h5_filter_find(32020)->decode)
		return;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(decode(32020, i ? newer : two, 4, words, sizeof words, 6, &buf), 0);
		ck_assert(buf.size == 6 && !memcmp(buf.data, "\1\0\xff\xff\x2c\1", 6));
		h5_filter_buf_release(&buf);
	}
	ck_assert_int_eq(decode(32020, one, 4, bytes, sizeof bytes, 4, &buf), 0);
	ck_assert(buf.size == 4 && !memcmp(buf.data, "\0\3\x9c\x64", 4));
	h5_filter_buf_release(&buf);
	check_wrong(wrong, sizeof wrong / sizeof *wrong);
}
END_TEST

/* What the library would open files or start programs for is refused before. The header of these frames has
 * 97 bytes, then comes the chunk. */
START_TEST(blosc2_frames_are_checked)
{
	static const struct {
		const char *what;
		size_t at;
		uint8_t byte;
		int rc;
	} wrong[] = {
		{"another magic", 2, 'c', -EUCLEAN},
		{"version 3", 25, 0x13, -ENOTSUP},
		{"a frame in a folder", 26, 1, -ENOTSUP},
		{"a header beyond the end", 11, 1, -EUCLEAN},
		{"stored bytes beyond the end", 39, 1, -EUCLEAN},
		{"several chunks", 58 + 2, 1, -ENOTSUP},
		{"a compressor of a plugin", 97 + 2, 0xc5, -ENOTSUP},
		{"a filter of a plugin", 97 + 16, 34, -ENOTSUP},
		{"a chunk in another file", 97 + 31, 8, -EUCLEAN},
		{"other sizes of the chunk", 97 + 4, 1, -EUCLEAN},
	};
	FILE *list = samples_open(listing);
	struct sample s;

	while (sample_next(list, &s)) {
		for (size_t i = 0; !strcmp(s.name, "blosc2_lz4_1") && i < sizeof wrong / sizeof *wrong; i++) {
			struct h5_filter_buf buf;
			uint8_t before = s.in.data[wrong[i].at];

			s.in.data[wrong[i].at] = wrong[i].byte;
			ck_assert_msg(decode(s.id, s.values, s.count, s.in.data, s.in.size, s.out.size,
					     &buf) == wrong[i].rc,
				      "%s: %s", wrong[i].what, h5_error_last()->text);
			h5_filter_buf_release(&buf);
			s.in.data[wrong[i].at] = before;
		}
		sample_release(&s);
	}
	fclose(list);
}
END_TEST

START_TEST(szip_parameters_are_checked)
{
	static const struct wrong wrong[] = {
		{"nothing", 4, {169, 8, 8, 40}, 4, {0}, 4, 0},
		{"no size", 4, {169, 8, 8, 40}, 4, {0}, 3, -EUCLEAN},
		{"no data", 4, {169, 8, 8, 40}, 4, {40}, 4, -EUCLEAN},
		{"more than all", 4, {169, 8, 8, 40}, 4, {255, 255, 255, 255, 1, 2, 3}, 7, -EOVERFLOW},
		{"three parameters", 4, {169, 8, 8}, 3, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
		{"blocks of nothing", 4, {169, 0, 8, 40}, 4, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
		{"odd blocks", 4, {169, 7, 8, 40}, 4, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
		{"large blocks", 4, {169, 64, 8, 40}, 4, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
		{"scanlines of nothing", 4, {169, 8, 8, 0}, 4, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
		{"short scanlines", 4, {169, 8, 8, 7}, 4, {0}, 4, -EUCLEAN},
		{"long scanlines", 4, {169, 8, 8, 4097}, 4, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
		{"pixels of nothing", 4, {169, 8, 0, 40}, 4, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
		{"pixels of 33 bits", 4, {169, 8, 33, 40}, 4, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
		{"a part of a pixel", 4, {169, 8, 32, 40}, 4, {41, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN},
	};

	check_wrong(wrong, sizeof wrong / sizeof *wrong);
}
END_TEST

START_TEST(zfp_headers_are_checked)
{
	/* Type and dimensions are in the second word, then the mode: 12 bits from bit 20 of the third on. */
	static const struct wrong wrong[] = {
		{"no header", 32013, {0}, 1, {0}, 8, -EUCLEAN},
		{"no magic", 32013, {0, 0x05676767, 786, 32505856}, 4, {0}, 64, -EUCLEAN},
		{"codec 4", 32013, {0, 0x0470667a, 786, 32505856}, 4, {0}, 64, -ENOTSUP},
		{"65536 x 65536 x 65536",
		 32013,
		 {0, 0x0570667a, 0xfffffffa, 0xffffffff, 9},
		 5,
		 {0},
		 64,
		 -EUCLEAN},
		{"50 numbers in nothing", 32013, {0, 0x0570667a, 786, 32505856}, 4, {0}, 0, -EUCLEAN},
		{"50 numbers in 51 bytes", 32013, {0, 0x0570667a, 786, 32505856}, 4, {0}, 51, -EUCLEAN},
		{"50 numbers in 52 bytes", 32013, {0, 0x0570667a, 786, 32505856}, 4, {0}, 52, 0},
	};

	check_wrong(wrong, sizeof wrong / sizeof *wrong);
}
END_TEST

/* 65536 numbers of 64 bits. Each block takes as many bits as it can as long as there are ones, then one for
 * each bit plane of zeros: all of them are within the memory that the filter reckons with. */
START_TEST(zfp_reads_no_further)
{
	enum { NUMBERS = 65536, PRECISION_64 = 2048 + 63, ID = 32013, STEP = 15000, MOST = NUMBERS * 12 };
	static const uint32_t values[] = {0, 0x0570667a, 1 | (NUMBERS - 1u) << 4,
					  (uint32_t)PRECISION_64 << 20};
	uint8_t *ones;
	unsigned decoded = 0;

	if (!h5_filter_find(ID)->decode)
		return;
	ones = malloc(MOST);
	memset(ones, 0xff, MOST);
	for (size_t n = 0; n <= MOST; n += STEP) {
		struct h5_filter_buf buf;
		int rc = decode(ID, values, 4, ones, n, NUMBERS * 8, &buf);

		ck_assert_msg(!rc || rc == -EUCLEAN, "%zu bytes: %d %s", n, rc, h5_error_last()->text);
		decoded += !rc;
		h5_filter_buf_release(&buf);
	}
	ck_assert_uint_gt(decoded, 0);
	free(ones);
}
END_TEST

START_TEST(streams_are_checked)
{
	static const struct wrong wrong[] = {
		{"nothing", 32015, {0}, 0, {0}, 0, 0},
		{"no magic", 32015, {0}, 0, {1, 2, 3, 4, 5, 6, 7, 8, 9}, 9, -EUCLEAN},
		/* a window and a size of 2^60 in the frame's header, then a run of 128 KiB */
		{"a bomb",
		 32015,
		 {0},
		 0,
		 {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x03, 0, 0x10, 0},
		 17,
		 -EOVERFLOW},
		{"nothing", 32003, {0}, 0, {0}, 0, -EUCLEAN},
		{"nothing of nothing", 32003, {0}, 0, {0}, 1, 0},
		{"a literal", 32003, {0}, 0, {3, 2 << 2, 'a', 'b', 'c'}, 5, 0},
		{"a longer literal", 32003, {0}, 0, {2, 2 << 2, 'a', 'b', 'c'}, 5, -EUCLEAN},
		{"a copy from before the first byte", 32003, {0}, 0, {4, 1, 1}, 3, -EUCLEAN},
		{"a bomb", 32003, {0}, 0, {255, 255, 255, 255, 15, 0, 'a'}, 7, -EOVERFLOW},
		{"nothing", 307, {9}, 1, {0}, 0, -EUCLEAN},
		{"no magic", 307, {9}, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9}, 9, -EUCLEAN},
		{"nothing", 305, {0}, 0, {0}, 0, -EUCLEAN},
		{"only an end", 305, {0}, 0, {0x11, 0, 0}, 3, 0},
		{"beyond the end", 305, {0}, 0, {0x11, 0, 0, 0}, 4, -EUCLEAN},
		{"nothing", 32001, {0}, 0, {0}, 0, -EUCLEAN},
		{"a short header",
		 32001,
		 {0},
		 0,
		 {2, 1, 0x21, 4, 8, 0, 0, 0, 8, 0, 0, 0, 15, 0, 0},
		 15,
		 -EUCLEAN},
		{"stored", 32001, {0}, 0, {2, 1, 2, 1, 2, 0, 0, 0, 2, 0, 0, 0, 18, 0, 0, 0, 'a', 'b'}, 18, 0},
		{"another stored size",
		 32001,
		 {0},
		 0,
		 {2, 1, 2, 1, 2, 0, 0, 0, 2, 0, 0, 0, 19, 0, 0, 0, 'a', 'b'},
		 18,
		 -EUCLEAN},
		{"a bomb",
		 32001,
		 {0},
		 0,
		 {2, 1, 0x21, 1, 255, 255, 255, 127, 255, 255, 255, 127, 18, 0, 0, 0, 1, 2},
		 18,
		 -EUCLEAN},
		{"an unknown compressor",
		 32001,
		 {0},
		 0,
		 {2, 1, 0xe1, 4, 0, 2, 0, 0, 0, 2, 0, 0, 24, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0},
		 24,
		 -ENOTSUP},
	};

	check_wrong(wrong, sizeof wrong / sizeof *wrong);
}
END_TEST

START_TEST(images_are_checked)
{
	static const struct wrong wrong[] = {
		{"nothing", 32018, {0}, 0, {0}, 0, -EUCLEAN},
		{"only a beginning", 32018, {0}, 0, {0xff, 0xd8}, 2, -EUCLEAN},
		{"nothing", 32019, {0}, 0, {0}, 0, -EUCLEAN},
		{"only a beginning", 32019, {0}, 0, {0xff, 0xd8}, 2, -EUCLEAN},
		/* frames of one component, of 65535 x 65535 samples of 8 bits and of 65500 x 65500 */
		{"a large image",
		 32018,
		 {0},
		 0,
		 {0xff, 0xd8, 0xff, 0xf7, 0, 11, 8, 0xff, 0xff, 0xff, 0xff, 1, 1,    0x11,
		  0,	0xff, 0xda, 0,	  8, 1,	 1, 0,	  0,	0,    0,    1, 0xff, 0xd9},
		 28,
		 -EOVERFLOW},
		{"a large image",
		 32019,
		 {0},
		 0,
		 {0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0xff, 0xdc, 0xff, 0xdc, 1, 1, 0x11,
		  0,	0xff, 0xda, 0,	  8, 1,	 1, 0,	  0,	63,   0,    1, 2, 3},
		 28,
		 -EOVERFLOW},
	};

	check_wrong(wrong, sizeof wrong / sizeof *wrong);
}
END_TEST

/* A frame may say how many bytes it holds: then no more memory is taken. Else, or if there are several, as
 * much as may come out. */
START_TEST(zstd_frames_take_the_memory_that_they_need)
{
	enum { ZSTD = 32015, LIMIT = 1000 };
#define MAGIC 0x28, 0xb5, 0x2f, 0xfd
#define BLOCK 0x19, 0, 0, 'a', 'b', 'c' /* the last one, of 3 literal bytes */
	static const struct {
		const char *what;
		uint8_t bytes[24];
		size_t size, limit, room;
		int rc;
		const char *decoded;
	} frames[] = {
		{"3 bytes", {MAGIC, 0x20, 3, BLOCK}, 12, LIMIT, 3, 0, "abc"},
		{"3 bytes of 3", {MAGIC, 0x20, 3, BLOCK}, 12, 3, 3, 0, "abc"},
		{"3 bytes of 4", {MAGIC, 0x20, 3, BLOCK}, 12, 4, 3, 0, "abc"},
		{"3 bytes of 2", {MAGIC, 0x20, 3, BLOCK}, 12, 2, 2, -EOVERFLOW, ""},
		{"an unknown size", {MAGIC, 0, 0, BLOCK}, 12, LIMIT, LIMIT, 0, "abc"},
		{"an unknown size of 2", {MAGIC, 0, 0, BLOCK}, 12, 2, 2, -EOVERFLOW, ""},
		{"two frames", {MAGIC, 0x20, 3, BLOCK, MAGIC, 0x20, 3, BLOCK}, 24, LIMIT, LIMIT, 0, "abcabc"},
		{"a part of a second frame", {MAGIC, 0x20, 3, BLOCK, MAGIC}, 16, LIMIT, LIMIT, -EUCLEAN, ""},
		{"2 bytes that are 3", {MAGIC, 0x20, 2, BLOCK}, 12, LIMIT, 2, -EUCLEAN, ""},
		{"4 bytes that are 3", {MAGIC, 0x20, 4, BLOCK}, 12, LIMIT, 4, -EUCLEAN, ""},
	};

	for (size_t i = 0; i < sizeof frames / sizeof *frames && h5_filter_find(ZSTD)->decode; i++) {
		struct h5_filter_buf buf;

		ck_assert_msg(decode(ZSTD, NULL, 0, frames[i].bytes, frames[i].size, frames[i].limit, &buf) ==
				      frames[i].rc,
			      "%s: %s", frames[i].what, h5_error_last()->text);
		ck_assert_msg(buf.capacity == frames[i].room, "%s: %zu", frames[i].what, buf.capacity);
		ck_assert_uint_eq(buf.size, strlen(frames[i].decoded));
		ck_assert(!buf.size || !memcmp(buf.data, frames[i].decoded, buf.size));
		h5_filter_buf_release(&buf);
	}
}
END_TEST

/* What is said of a chunk or of parameters. */
START_TEST(reasons_are_told)
{
	static const struct {
		uint16_t id;
		uint32_t values[6];
		unsigned count;
		uint8_t bytes[40];
		size_t size;
		int rc;
		const char *said;
	} cases[] = {
		{32004, {0}, 0, {0}, 11, -EUCLEAN, "lz4 header: truncated"},
		{32004,
		 {0},
		 0,
		 {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0},
		 16,
		 -EUCLEAN,
		 "lz4: 3 bytes in blocks of nothing"},
		{32004,
		 {0},
		 0,
		 {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0},
		 15,
		 -EUCLEAN,
		 "lz4 block: truncated"},
		{32004,
		 {0},
		 0,
		 {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0x10, 'a'},
		 18,
		 -EUCLEAN,
		 "lz4: bad block, of 3 bytes in 2"},
		{32008, {0, 4, 1, 8, 2}, 5, {0}, 11, -EUCLEAN, "bitshuffle header: truncated"},
		{32008,
		 {0, 4, 1, 8, 2},
		 5,
		 {0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0},
		 14,
		 -EUCLEAN,
		 "bitshuffle block: truncated"},
		{32008,
		 {0, 4, 1, 8, 2},
		 5,
		 {0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 1, 2},
		 14,
		 -EUCLEAN,
		 "bitshuffle: truncated"},
		{32008,
		 {0, 4, 1, 8, 2},
		 5,
		 {0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 9},
		 12,
		 -EUCLEAN,
		 "bitshuffle: 8 bytes in blocks of 9"},
		{32008,
		 {0, 4, 1, 8, 2},
		 5,
		 {0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0},
		 12,
		 -EUCLEAN,
		 "bitshuffle: 8 bytes in blocks of 0"},
		{32008,
		 {0, 4, 1, 8, 1},
		 5,
		 {0},
		 12,
		 -ENOTSUP,
		 "filter 32008 (bitshuffle): compression 1 (unknown) is not available"},
		{32008,
		 {0, 4, 1, 8, 4},
		 5,
		 {0},
		 12,
		 -ENOTSUP,
		 "filter 32008 (bitshuffle): compression 4 (unknown) is not available"},
		{32008,
		 {0, 4, 1, 8, UINT32_MAX},
		 5,
		 {0},
		 12,
		 -ENOTSUP,
		 "filter 32008 (bitshuffle): compression 4294967295 (unknown) is not available"},
		{32008, {0, 4, 1}, 2, {0}, 8, -EUCLEAN, "bitshuffle: no element size"},
		{32001,
		 {0},
		 0,
		 {2, 1, 0xe1, 4, 0, 2, 0, 0, 0, 2, 0, 0, 24, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0},
		 24,
		 -ENOTSUP,
		 "filter 32001 (blosc): compressor 7 (unknown) is not available"},
		{32001,
		 {0},
		 0,
		 {2, 1, 1, 4, 0, 2, 0, 0, 0, 2, 0, 0, 24, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0},
		 24,
		 -EUCLEAN,
		 "blosc: bad data"},
		{32013,
		 {0, 0x0470667a, 786, 32505856},
		 4,
		 {0},
		 40,
		 -ENOTSUP,
		 "filter 32013 (zfp): codec 4 is not available, only 5"},
		{32013, {0, 0x0570667a}, 1, {0}, 40, -EUCLEAN, "zfp: no header"},
		{32018, {0}, 0, {0xff, 0xd8}, 2, -EUCLEAN, "fcidecomp: no end of the image"},
		{32020, {0, 2, 1, 0}, 2, {0}, 4, -EUCLEAN, "vbz: 2 parameters"},
		{32020, {0, 2, 1, 0}, 4, {0}, 3, -EUCLEAN, "vbz: truncated"},
		{32020, {0, 2, 1, 0}, 4, {2}, 4, -EUCLEAN, "vbz: the keys are truncated"},
		{32020,
		 {0, 2, 1, 0},
		 4,
		 {2, 0, 0, 0, 0, 1, 2},
		 7,
		 -EUCLEAN,
		 "vbz: bytes behind the last number"},
		{32020, {0, 0, 0, 0}, 4, {2, 0, 0, 0, 1}, 5, -EUCLEAN, "vbz: 1 bytes instead of 2"},
		{307, {9}, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9}, 9, -EUCLEAN, "bzip2: bad stream"},
		{307, {9}, 1, {'B', 'Z', 'h', '9'}, 4, -EUCLEAN, "bzip2: the stream is truncated"},
		{305, {0}, 0, {0x11, 0, 0, 0}, 4, -EUCLEAN, "lzo: bad stream"},
		{305, {0}, 0, {0x11, 0}, 2, -EUCLEAN, "lzo: the stream is truncated"},
		{4, {169, 8, 8, 40}, 3, {40, 0, 0, 0, 1, 2, 3}, 7, -EUCLEAN, "szip: 3 parameters"},
	};
	static const uint8_t no_image[] = {0xff, 0xd8, 0xff, 0xd9};
	struct h5_filter_buf buf;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (!h5_filter_find(cases[i].id)->decode ||
		    (cases[i].id == 32008 && cases[i].values[4] == 2 && !h5_filter_find(32004)->decode))
			continue;
		ck_assert_int_eq(decode(cases[i].id, cases[i].values, cases[i].count, cases[i].bytes,
					cases[i].size, 4096, &buf),
				 cases[i].rc);
		ck_assert_str_eq(h5_error_last()->text, cases[i].said);
		h5_filter_buf_release(&buf);
	}
	if (h5_filter_find(32018)->decode) {
		ck_assert_int_eq(decode(32018, NULL, 0, no_image, sizeof no_image, 4096, &buf), -EUCLEAN);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

/* The header is coded like all else, so a byte of it that is changed changes the number there and those
 * behind it, such as the arithmetic by which floats were predicted. */
START_TEST(fpzip_arithmetic_is_checked)
{
	enum { FPZIP = 32014, BYTES = 10 };
	unsigned arithmetics = 0, others = 0;
	FILE *list = samples_open(listing);
	struct sample s;

	while (sample_next(list, &s)) {
		for (unsigned i = 0; s.id == FPZIP && !arithmetics && i < 256 * BYTES; i++) {
			struct h5_filter_buf buf;
			uint8_t before = s.in.data[i / 256];

			s.in.data[i / 256] = (uint8_t)i;
			if (decode(s.id, s.values, s.count, s.in.data, s.in.size, s.out.size, &buf) ==
			    -ENOTSUP) {
				const char *text = h5_error_last()->text;
				unsigned version, arithmetic;

				ck_assert_int_eq(sscanf(text, "fpzip: version %x, arithmetic %u", &version,
							&arithmetic),
						 2);
				arithmetics += version == 0x110 && arithmetic != 1;
				others += version == 0x110 && arithmetic == 1;
			}
			h5_filter_buf_release(&buf);
			s.in.data[i / 256] = before;
		}
		sample_release(&s);
	}
	fclose(list);
	if (h5_filter_find(FPZIP)->decode) {
		ck_assert_uint_gt(arithmetics, 0);
		ck_assert_uint_eq(others, 0);
	}
}
END_TEST

/* A range coder, which writes numbers whose values are all equally likely. */
struct range {
	uint32_t low, range;
	uint8_t bytes[128];
	size_t n;
};

static void range_leave(struct range *r, unsigned bytes)
{
	for (; bytes; bytes--) {
		r->bytes[r->n++] = (uint8_t)(r->low >> 24);
		r->low <<= 8;
	}
}

static void range_put(struct range *r, unsigned bits, uint32_t number)
{
	for (unsigned at = 0, n; at < bits; at += n) {
		n = bits - at < 16 ? bits - at : 16;
		r->range >>= n;
		r->low += r->range * (number >> at & ((1u << n) - 1));
		while (!((r->low ^ (r->low + r->range)) >> 24)) {
			range_leave(r, 1);
			r->range <<= 8;
		}
		if (!(r->range >> 16)) {
			range_leave(r, 2);
			r->range = -r->low;
		}
	}
}

/* Decodes a header alone, which says that a thousand numbers follow, into at most a hundred bytes. Returns
 * the error. */
static const char *read_fpzip(const char *name, uint32_t version, uint32_t arithmetic, bool wide,
			      uint32_t precision)
{
	struct range r = {.range = UINT32_MAX};
	struct h5_filter_buf buf;

	for (unsigned i = 0; i < 4; i++)
		range_put(&r, 8, (uint8_t)name[i]);
	range_put(&r, 16, version);
	range_put(&r, 8, arithmetic);
	range_put(&r, 1, wide);
	range_put(&r, 7, precision);
	range_put(&r, 32, 100);
	range_put(&r, 32, 10);
	range_put(&r, 32, 1);
	range_put(&r, 32, 1);
	range_leave(&r, 4);
	ck_assert_int_ne(decode(32014, NULL, 0, r.bytes, r.n, 100, &buf), 0);
	h5_filter_buf_release(&buf);
	return h5_error_last()->text;
}

START_TEST(fpzip_headers_are_checked)
{
	static const struct {
		uint32_t version, arithmetic;
		bool wide;
		uint32_t precision;
		const char *text;
	} cases[] = {
		{0x110, 1, false, 0, "fpzip: more than 100 bytes come out"},
		{0x110, 1, false, 32, "fpzip: more than 100 bytes come out"},
		{0x110, 1, false, 2, "fpzip: more than 100 bytes come out"},
		{0x110, 1, false, 3, "fpzip: more than 100 bytes come out"},
		{0x110, 1, true, 0, "fpzip: more than 100 bytes come out"},
		{0x110, 1, true, 64, "fpzip: more than 100 bytes come out"},
		{0x110, 1, true, 4, "fpzip: more than 100 bytes come out"},
		{0x110, 1, false, 1, "fpzip: 1 bits of numbers of 32"},
		{0x110, 1, false, 33, "fpzip: 33 bits of numbers of 32"},
		{0x110, 1, true, 2, "fpzip: 2 bits of numbers of 64"},
		{0x110, 1, true, 5, "fpzip: 5 bits of numbers of 64"},
		{0x110, 1, true, 63, "fpzip: 63 bits of numbers of 64"},
		{0x110, 1, true, 66, "fpzip: 66 bits of numbers of 64"},
		{0x111, 1, false, 0, "fpzip: version 0x111, arithmetic 1"},
		{0x10f, 1, false, 0, "fpzip: version 0x10f, arithmetic 1"},
		{0x110, 0, false, 0, "fpzip: version 0x110, arithmetic 0"},
		{0x110, 2, false, 0, "fpzip: version 0x110, arithmetic 2"},
	};

	if (!h5_filter_find(32014)->decode)
		return;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		ck_assert_str_eq(read_fpzip("fpz", cases[i].version, cases[i].arithmetic, cases[i].wide,
					    cases[i].precision),
				 cases[i].text);
	for (unsigned i = 0; i < 4; i++)
		for (int change = -1; change <= 1; change += 2) {
			char name[4] = "fpz";

			name[i] = (char)(name[i] + change);
			ck_assert_str_eq(read_fpzip(name, 0x110, 1, false, 0), "fpzip: bad header");
		}
}
END_TEST

/* Noise behind the header, which does not end: in the first two, all bits make some number, but the code has
 * gaps; in the others, differences lead out of the range of numbers soon. */
START_TEST(fpzip_noise_is_damage)
{
	enum { HEADER = 24, MORE = 100000 };
	static const char *const names[] = {"fpzip_f8_300", "fpzip_f8_21_17", "fpzip_f4_precision_8",
					    "fpzip_f4_precision_31", "fpzip_f8_precision_8"};
	static uint8_t data[HEADER + MORE];
	FILE *list = samples_open(listing);
	struct sample s;

	for (size_t i = HEADER; i < sizeof data; i++)
		data[i] = (uint8_t)((uint32_t)i * 2654435761u >> 20);
	while (sample_next(list, &s)) {
		struct h5_filter_buf buf;

		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			if (strcmp(s.name, names[i]) != 0)
				continue;
			memcpy(data, s.in.data, HEADER);
			ck_assert_msg(decode(s.id, s.values, s.count, data, sizeof data, s.out.size, &buf) ==
					      -EUCLEAN,
				      "%s", s.name);
			h5_filter_buf_release(&buf);
		}
		sample_release(&s);
	}
	fclose(list);
}
END_TEST

UNIT_MAIN("filter_libs", chunks_of_plugins_are_decoded, output_stops_at_the_limit, truncated_chunks_are_seen,
	  damaged_chunks_do_no_harm, lz4_sizes_are_checked, bitshuffle_sizes_are_checked,
	  bitshuffle_transposes, vbz_numbers, blosc2_frames_are_checked, szip_parameters_are_checked,
	  zfp_headers_are_checked, zfp_reads_no_further, streams_are_checked, images_are_checked,
	  zstd_frames_take_the_memory_that_they_need, reasons_are_told, fpzip_arithmetic_is_checked,
	  fpzip_headers_are_checked, fpzip_noise_is_damage)

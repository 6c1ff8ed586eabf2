/* Filters one after the other, encoded and read. */
#include "filter_data.h"
#include "store/file_set.h"

START_TEST(optional_compression_is_skipped_where_it_gains_nothing)
{
	static uint32_t element[] = {4};
	struct h5_pipeline pipeline = {
		3,
		{{.id = SHUFFLE, .optional = true, .count = 1, .values = element},
		 {.id = LZF, .optional = true},
		 {.id = FLETCHER32, .optional = true}},
	};
	static uint8_t data[4000];
	struct h5_filter_buf back;
	uint8_t *stored;
	size_t size;
	uint32_t mask;

	ck_assert_int_eq(h5_pipeline_can_encode(&pipeline), 0);
	filter_data_fill(data, sizeof data, 3);
	ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, sizeof data, &stored, &size, &mask), 0);
	ck_assert_uint_eq(mask, 2);
	ck_assert_uint_eq(size, sizeof data + 4);
	back = filter_data_undo(&pipeline, mask, stored, size, sizeof data);
	ck_assert_mem_eq(back.data, data, sizeof data);
	h5_filter_buf_release(&back);
	free(stored);
	/* A mandatory one has its way. */
	pipeline.filters[1].optional = false;
	ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, sizeof data, &stored, &size, &mask), 0);
	ck_assert_uint_eq(mask, 0);
	ck_assert_uint_gt(size, sizeof data + 4);
	back = filter_data_undo(&pipeline, mask, stored, size, sizeof data);
	ck_assert_mem_eq(back.data, data, sizeof data);
	h5_filter_buf_release(&back);
	free(stored);
	/* None at all: a copy. */
	pipeline.count = 0;
	ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, sizeof data, &stored, &size, &mask), 0);
	ck_assert_uint_eq(size, sizeof data);
	ck_assert_mem_eq(stored, data, size);
	free(stored);
}
END_TEST

/* Reads what was stored from a file in memory: the superblock of a fixture with the bytes behind it. */
static void check_read(const struct h5_pipeline *pipeline, uint32_t mask, const uint8_t *stored, size_t n,
		       const uint8_t *data, size_t size)
{
	static const struct h5_file_set_options options;
	enum { SUPERBLOCK = 2048 };
	uint8_t *bytes = malloc(SUPERBLOCK + n), *back = NULL;
	struct h5_file_set *set;
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/dataset_latest.h5", getenv("H5FS_TEST_DATA"));
	f = fopen(path, "rb");
	ck_assert_uint_eq(fread(bytes, 1, SUPERBLOCK, f), SUPERBLOCK);
	fclose(f);
	memcpy(bytes + SUPERBLOCK, stored, n);
	ck_assert_int_eq(h5_file_set_open_memory(bytes, SUPERBLOCK + n, &options, &set), 0);
	ck_assert_msg(!h5_pipeline_read(h5_file_set_root(set), pipeline, mask, SUPERBLOCK, n, size, &back),
		      "%s", h5_error_last()->text);
	ck_assert_mem_eq(back, data, size);
	free(back);
	/* One byte more or less is not what comes out. */
	ck_assert_int_eq(
		h5_pipeline_read(h5_file_set_root(set), pipeline, mask, SUPERBLOCK, n, size - 1, &back),
		-EUCLEAN);
	ck_assert_int_eq(
		h5_pipeline_read(h5_file_set_root(set), pipeline, mask, SUPERBLOCK, n, size + 1, &back),
		-EUCLEAN);
	h5_file_set_close(set);
	free(bytes);
}

/* Filters that move bytes and such that don't, compress or don't, up to three in any order. */
START_TEST(filters_follow_each_other)
{
	static uint32_t four[] = {4}, one[] = {1};
	static const struct h5_filter_info infos[] = {{.id = SHUFFLE, .count = 1, .values = four},
						      {.id = SHUFFLE, .count = 1, .values = one},
						      {.id = DEFLATE, .count = 1, .values = one},
						      {.id = FLETCHER32},
						      {.id = LZF, .optional = true}};
	enum { N = sizeof infos / sizeof *infos };
	static uint8_t data[5003];

	for (unsigned i = 0; i < 2 * N * N * N; i++) {
		struct h5_pipeline pipeline = {
			i % 3 + 1, {infos[i / 2 % N], infos[i / 2 / N % N], infos[i / 2 / N / N]}};
		uint8_t *stored;
		size_t size;
		uint32_t mask;

		/* Noise makes LZF fail. */
		filter_data_fill(data, sizeof data, i % 2 ? 3 : 2);
		ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, sizeof data, &stored, &size, &mask), 0);
		check_read(&pipeline, mask, stored, size, data, sizeof data);
		free(stored);
	}
}
END_TEST

START_TEST(failing_filters_are_skipped_or_fail)
{
	/* 3 bits for numbers up to 9 */
	static uint32_t few[] = {2, 3, 4, 0, 1, 0, 0, 0, 0}, level[] = {6};
	struct h5_pipeline pipeline = {
		2,
		{{.id = SCALEOFFSET, .optional = true, .count = 9, .values = few},
		 {.id = DEFLATE, .count = 1, .values = level}},
	};
	const uint8_t data[] = {0, 9, 3, 3};
	struct h5_filter_buf back;
	uint8_t *stored = NULL;
	size_t size;
	uint32_t mask;

	ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, 4, &stored, &size, &mask), 0);
	ck_assert_uint_eq(mask, 1);
	back = filter_data_undo(&pipeline, mask, stored, size, 4);
	ck_assert_mem_eq(back.data, data, 4);
	h5_filter_buf_release(&back);
	free(stored);
	pipeline.filters[0].optional = false;
	ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, 4, &stored, &size, &mask), -ENOTSUP);
	/* Filters after the first fail with what came of it in hand. */
	pipeline.filters[0] = pipeline.filters[1];
	pipeline.filters[1] = (struct h5_filter_info){.id = SCALEOFFSET, .count = 9, .values = few};
	ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, 4, &stored, &size, &mask), -EUCLEAN);
	ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, (size_t)2 << 30, &stored, &size, &mask), -EFBIG);
}
END_TEST

/* Each makes a little more of what is most of the data already. */
START_TEST(growth_has_an_end)
{
	static uint32_t blocks[] = {1};
	struct h5_pipeline pipeline = {.count = 8};
	static uint8_t data[100000];
	uint8_t *stored;
	size_t size;
	uint32_t mask;

	if (!h5_filter_find(LZ4)->encode)
		return;
	for (unsigned i = 0; i < pipeline.count; i++)
		pipeline.filters[i] = (struct h5_filter_info){.id = LZ4, .count = 1, .values = blocks};
	ck_assert_int_eq(h5_pipeline_encode(&pipeline, data, sizeof data, &stored, &size, &mask), -EFBIG);
}
END_TEST

START_TEST(missing_encoders_are_named)
{
	static uint32_t level[] = {6};
	static char name[] = "a filter of mine";
	const struct h5_filter_info missing[] = {
		{.id = BITGROOM}, {.id = ZFP}, {.id = 40000, .name = name}, {.id = DEFLATE}};
	static const char *const text[] = {"(bitgroom)", "(zfp)", "a filter of mine", "deflate"};

	for (unsigned i = 0; i < 8; i++) {
		struct h5_pipeline pipeline = {
			2, {{.id = DEFLATE, .count = 1, .values = level}, missing[i / 2]}};
		uint8_t *stored;
		size_t size;
		uint32_t mask;

		pipeline.filters[1].optional = i % 2;
		ck_assert_int_eq(h5_pipeline_can_encode(&pipeline), -ENOTSUP);
		ck_assert_msg(strstr(h5_error_last()->text, text[i / 2]), "%s", h5_error_last()->text);
		if (i % 2)
			continue;
		ck_assert_int_eq(
			h5_pipeline_encode(&pipeline, (const uint8_t *)"abc", 3, &stored, &size, &mask),
			-ENOTSUP);
	}
}
END_TEST

UNIT_MAIN("pipeline", optional_compression_is_skipped_where_it_gains_nothing, filters_follow_each_other,
	  failing_filters_are_skipped_or_fail, growth_has_an_end, missing_encoders_are_named)

/* Filters one after the other, encoded and read. */
#include "filter_data.h"
#include "store/file_private.h"
#include "store/file_set.h"
#include "store/statistics.h"

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

/* ---- sizes ---- */

enum { FILE_SIZE = 200000, MAX_CHUNK = 9000, SPARE = 1 << 16 };

static struct h5_file_set *open_bytes(uint8_t *bytes)
{
	const struct h5_superblock sb = {.version = 2,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .extension = H5_UNDEF,
					 .end = FILE_SIZE,
					 .driver_info = H5_UNDEF,
					 .root = 48};
	const struct h5_file_set_options options = {
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .max_chunk = MAX_CHUNK};
	struct h5_writer w = h5_writer_init(bytes, H5_SUPERBLOCK_NEW, 8, 8);
	struct h5_file_set *set;

	h5_superblock_encode(&w, &sb);
	ck_assert_int_eq(h5_file_set_open_memory(bytes, FILE_SIZE, &options, &set), 0);
	return set;
}

START_TEST(memory_that_a_chunk_needs)
{
	static const uint64_t large = (uint64_t)200 << 20, spare = SPARE, half = (uint64_t)64 << 20;
	const struct {
		unsigned filters;
		uint64_t stored, size, need;
	} cases[] = {
		{0, 10, 1000, 1010},
		{1, 10, 1000, 1010},
		{1, 5000000, 1000, 2000 + spare + 1000},
		{2, 10, 1000, 2000 + spare + 1000},
		{2, 1500, 1000, 2000 + spare + 1500},
		{3, 10, 1000, 2 * (2000 + spare)},
		{3, 10, large, 2 * (large + half + spare)},
		{2, 10, large, large + half + spare + large},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct h5_pipeline pipeline = {.count = (uint8_t)cases[i].filters};

		ck_assert_uint_eq(h5_pipeline_need(&pipeline, cases[i].stored, cases[i].size), cases[i].need);
		if (!cases[i].filters)
			ck_assert_uint_eq(h5_pipeline_need(NULL, cases[i].stored, cases[i].size),
					  cases[i].need);
	}
}
END_TEST

/* The option max_chunk is the limit, of fewer bytes if there are many filters. */
START_TEST(largest_chunks)
{
	static uint8_t bytes[FILE_SIZE];
	struct h5_file_set *set = open_bytes(bytes);
	struct h5_file *file = h5_file_set_root(set);

	for (unsigned filters = 0; filters < 10; filters++) {
		uint64_t most = filters <= 8 ? MAX_CHUNK : MAX_CHUNK * 8 / filters;

		ck_assert_int_eq(h5_pipeline_check_size(file, filters, 7, most), 0);
		ck_assert_int_eq(h5_pipeline_check_size(file, filters, 7, most + 1), -EFBIG);
		ck_assert_uint_eq(h5_error_last()->address, 7);
	}
	ck_assert_int_eq(h5_pipeline_check_size(file, 2, 7, UINT64_MAX), -EFBIG);
	ck_assert_uint_eq(h5_pipeline_more_room(file, MAX_CHUNK), 0);
	ck_assert_uint_eq(h5_pipeline_more_room(file, MAX_CHUNK - 1), MAX_CHUNK);
	ck_assert_uint_eq(h5_pipeline_more_room(file, 10), MAX_CHUNK);
	h5_file_set_close(set);
}
END_TEST

/* Without filters a chunk is what is stored; with some, no more is read than they can have made of it. */
START_TEST(stored_sizes)
{
	static uint8_t bytes[FILE_SIZE];
	const struct h5_pipeline none = {0};
	struct h5_file_set *set;
	struct h5_file *file;
	uint8_t *got;

	for (size_t i = 0; i < FILE_SIZE; i++)
		bytes[i] = (uint8_t)(i % 251);
	set = open_bytes(bytes);
	file = h5_file_set_root(set);
	for (int i = 0; i < 2; i++) {
		const struct h5_pipeline *pipeline = i ? &none : NULL;

		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, 500, 100, 100, &got), 0);
		ck_assert_mem_eq(got, bytes + 500, 100);
		free(got);
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, FILE_SIZE - 100, 100, 100, &got), 0);
		ck_assert_mem_eq(got, bytes + FILE_SIZE - 100, 100);
		free(got);
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, FILE_SIZE - 99, 100, 100, &got),
				 -EUCLEAN);
		ck_assert_ptr_nonnull(
			strstr(h5_error_last()->text, "its 100 bytes reach beyond the end of the file"));
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, FILE_SIZE, 0, 0, &got), -EUCLEAN);
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, UINT64_MAX - 5, 100, 100, &got),
				 -EUCLEAN);
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, 500, 99, 100, &got), -EUCLEAN);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "99 bytes instead of 100"));
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, 500, 101, 100, &got), -EUCLEAN);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "101 bytes instead of 100"));
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, 500, 2 * 100 + SPARE, 100, &got),
				 -EUCLEAN);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "65736 bytes instead of 100"));
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, 500, 2 * 100 + SPARE + 1, 100, &got),
				 -EUCLEAN);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "a chunk of 100 bytes, stored in 65737"));
		ck_assert_int_eq(h5_pipeline_read(file, pipeline, 0, 500, MAX_CHUNK + 1, MAX_CHUNK + 1, &got),
				 -EFBIG);
	}
	h5_file_set_close(set);
}
END_TEST

/* Chunks whose stored bytes cannot be: nothing of them is read. */
START_TEST(stored_sizes_of_chunks)
{
	static uint8_t bytes[FILE_SIZE];
	static uint32_t level[] = {1};
	const struct h5_pipeline deflate = {1, {{.id = DEFLATE, .count = 1, .values = level}}};
	const struct h5_pipeline unknown = {1, {{.id = 400}}};
	const struct h5_pipeline *const pipelines[] = {NULL, &deflate};
	struct h5_file_set *set = open_bytes(bytes);
	struct h5_file *file = h5_file_set_root(set);
	struct h5_pipeline_data data = {0};

	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(
			h5_pipeline_read_chunk(file, pipelines[i], 0, FILE_SIZE - 99, 100, 100, 100, &data),
			-EUCLEAN);
		ck_assert_ptr_nonnull(
			strstr(h5_error_last()->text, "its 100 bytes reach beyond the end of the file"));
		ck_assert_int_eq(
			h5_pipeline_read_chunk(file, pipelines[i], 0, 500, 201 + SPARE, 100, 100, &data),
			-EOVERFLOW);
		ck_assert_ptr_null(data.bytes);
	}
	ck_assert_int_eq(h5_pipeline_read_chunk(file, &unknown, 0, 500, 100, 100, 100, &data), -ENOTSUP);
	ck_assert_uint_eq(h5_error_last()->address, 500);
	ck_assert_ptr_null(data.bytes);
	h5_file_set_close(set);
}
END_TEST

static int fails(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	(void)io;
	(void)buf;
	*got = n;
	return h5_fail(-EIO, offset, "the device");
}

/* What the device does not give is no chunk, whatever is in the memory for it. */
START_TEST(chunks_that_cannot_be_read)
{
	static uint8_t bytes[FILE_SIZE];
	static uint32_t level[] = {1};
	const struct h5_pipeline deflate = {1, {{.id = DEFLATE, .count = 1, .values = level}}};
	const struct h5_pipeline *const pipelines[] = {NULL, &deflate, &deflate};
	static const uint32_t masks[] = {0, 0, 1};
	struct h5_file_set *set = open_bytes(bytes);
	struct h5_file *file = h5_file_set_root(set);
	struct h5_io *io = h5_file_io(file);
	const struct h5_io_ops *sound = io->ops;
	struct h5_io_ops broken = *sound;
	struct h5_pipeline_data data = {0};

	broken.read = fails;
	broken.readv = NULL;
	io->ops = &broken;
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(
			h5_pipeline_read_chunk(file, pipelines[i], masks[i], 500, 100, 100, 100, &data),
			-EIO);
		ck_assert_str_eq(h5_error_last()->text, "the device");
		ck_assert_ptr_null(data.bytes);
	}
	io->ops = sound;
	ck_assert_int_eq(h5_pipeline_read_chunk(file, NULL, 0, 500, 100, 100, 100, &data), 0);
	free(data.bytes);
	h5_file_set_close(set);
}
END_TEST

/* A shuffle that is undone last is left, unless the chunk does not have its size. */
START_TEST(a_shuffle_that_is_left)
{
	static uint8_t bytes[FILE_SIZE];
	static uint32_t four[] = {4}, level[] = {1};
	const struct h5_pipeline pipeline = {
		2,
		{{.id = SHUFFLE, .count = 1, .values = four}, {.id = DEFLATE, .count = 1, .values = level}}};
	enum { N = 400, AT = 1000 };
	struct h5_file_set *set;
	uint8_t plain[N], *stored;
	size_t size;
	uint32_t mask;

	for (size_t i = 0; i < N; i++)
		plain[i] = (uint8_t)(i % 4);
	ck_assert_int_eq(h5_pipeline_encode(&pipeline, plain, N, &stored, &size, &mask), 0);
	set = open_bytes(bytes);
	h5_file_set_close(set);
	memcpy(bytes + AT, stored, size);
	set = open_bytes(bytes);
	for (int stays = 0; stays < 2; stays++)
		for (uint64_t n = N; n <= N + 4; n += 4) {
			struct h5_pipeline_data data = {.may_stay_shuffled = stays};
			bool left = stays && n == N;

			ck_assert_int_eq(h5_pipeline_read_chunk(h5_file_set_root(set), &pipeline, mask, AT,
								size, n, n, &data),
					 0);
			ck_assert_uint_eq(data.size, N);
			ck_assert_uint_eq(data.element_size, left ? 4 : 1);
			for (size_t i = 0; i < N; i++)
				ck_assert_uint_eq(data.bytes[i], left ? i / (N / 4) : i % 4);
			free(data.bytes);
		}
	h5_file_set_close(set);
	free(stored);
}
END_TEST

/* The caller undoes the shuffle itself. Without another filter the pipeline decodes nothing, and counts
 * nothing. */
START_TEST(a_shuffle_alone_that_is_left)
{
	static uint8_t bytes[FILE_SIZE];
	static uint32_t four[] = {4};
	const struct h5_pipeline pipeline = {1, {{.id = SHUFFLE, .count = 1, .values = four}}};
	struct h5_file_set *set = open_bytes(bytes);
	struct h5_file *file = h5_file_set_root(set);
	const struct h5_statistics *statistics = h5_file_shared(file)->statistics;

	for (int stays = 1; stays >= 0; stays--) {
		struct h5_pipeline_data data = {.may_stay_shuffled = stays};

		ck_assert_int_eq(h5_pipeline_read_chunk(file, &pipeline, 0, 500, 100, 100, 100, &data), 0);
		ck_assert_uint_eq(data.element_size, stays ? 4 : 1);
		ck_assert_uint_eq(data.size, 100);
		for (size_t i = 0; i < 100; i++)
			ck_assert_uint_eq(data.bytes[i], bytes[500 + (stays ? i : i / 4 + i % 4 * 25)]);
		ck_assert_uint_eq(statistics->decoded.chunks, !stays);
		free(data.bytes);
	}
	h5_file_set_close(set);
}
END_TEST

UNIT_MAIN("pipeline", optional_compression_is_skipped_where_it_gains_nothing, filters_follow_each_other,
	  failing_filters_are_skipped_or_fail, growth_has_an_end, missing_encoders_are_named,
	  memory_that_a_chunk_needs, largest_chunks, stored_sizes, stored_sizes_of_chunks,
	  chunks_that_cannot_be_read, a_shuffle_that_is_left, a_shuffle_alone_that_is_left)

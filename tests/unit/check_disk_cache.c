#include "base/error.h"
#include "base/lookup3.h"
#include "crash_image.h"
#include "remote/disk_file.h"
#include "remote/response.h"
#include "remote/url.h"
#include "unit.h"

#include <string.h>

/* Nine whole blocks and a part of one. */
enum { SIZE = 9 * H5_DISK_BLOCK + 1000, BLOCKS = 10, CRASHES = 400 };

static uint8_t content[BLOCKS * H5_DISK_BLOCK];

static void make_content(void)
{
	uint32_t v = 1;

	for (size_t i = 0; i < SIZE; i++) {
		v = v * 1664525 + 1013904223;
		content[i] = (uint8_t)(v >> 24);
	}
}

static struct h5_disk_header header_of(uint64_t size)
{
	struct h5_disk_header header = {.size = size, .mtime = -5, .tag = "\"a tag\""};

	for (unsigned i = 0; i < H5_SHA256; i++)
		header.url[i] = (uint8_t)(200 + i);
	return header;
}

/* ---- the header ---- */

START_TEST(header_comes_back)
{
	struct h5_disk_header header = header_of(SIZE), got;
	uint8_t bytes[H5_DISK_HEADER];

	for (size_t n = 0; n < 2; n++) {
		h5_disk_encode(&header, bytes);
		ck_assert_int_eq(h5_disk_decode(bytes, &got), 0);
		ck_assert_mem_eq(got.url, header.url, H5_SHA256);
		ck_assert_uint_eq(got.size, header.size);
		ck_assert_int_eq(got.mtime, header.mtime);
		ck_assert_str_eq(got.tag, header.tag);
		memset(header.tag, 'x', H5_DISK_TAG - 1); /* the longest one */
		header.tag[0] = '"';
		header.size = INT64_MAX;
	}
}
END_TEST

START_TEST(changed_header_is_refused)
{
	struct h5_disk_header header = header_of(SIZE), got;
	uint8_t bytes[H5_DISK_HEADER];

	h5_disk_encode(&header, bytes);
	for (size_t i = 0; i < 8 * sizeof bytes; i++) {
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		ck_assert_int_eq(h5_disk_decode(bytes, &got), -EUCLEAN);
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}
END_TEST

/* The signature, the version and the size of blocks; the checksum is right. */
START_TEST(other_files_are_refused)
{
	const struct h5_disk_header header = header_of(SIZE);
	uint8_t bytes[H5_DISK_HEADER];
	struct h5_disk_header got;

	h5_disk_encode(&header, bytes);
	for (size_t i = 0; i < 8 + 4 + 4; i++) {
		bytes[i] ^= 1;
		h5_uint_to(bytes + sizeof bytes - 4, h5_lookup3(bytes, sizeof bytes - 4, 0), 4);
		ck_assert_int_eq(h5_disk_decode(bytes, &got), -EUCLEAN);
		ck_assert_str_eq(h5_error_last()->text, "not a file of this cache");
		bytes[i] ^= 1;
	}
}
END_TEST

/* Their checksum is right. */
START_TEST(header_that_cannot_be_is_refused)
{
	struct h5_disk_header header = header_of((uint64_t)INT64_MAX + 1), got;
	uint8_t bytes[H5_DISK_HEADER];

	h5_disk_encode(&header, bytes);
	ck_assert_int_eq(h5_disk_decode(bytes, &got), -EUCLEAN);
	header = header_of(SIZE);
	strcpy(header.tag, "W/\"weak\"");
	h5_disk_encode(&header, bytes);
	ck_assert_int_eq(h5_disk_decode(bytes, &got), -EUCLEAN);
	header.tag[0] = 0;
	h5_disk_encode(&header, bytes);
	ck_assert_int_eq(h5_disk_decode(bytes, &got), -EUCLEAN);
}
END_TEST

/* A tag has an end. */
START_TEST(long_tags)
{
	enum { LENGTH = 8 + 4 + 4 + H5_SHA256 + 8 + 8, TAG = LENGTH + 2 };
	struct h5_disk_header header = header_of(SIZE);
	struct {
		struct h5_disk_header header;
		char zeros[8];
	} got = {.zeros = {0}};
	uint8_t bytes[H5_DISK_HEADER];

	for (size_t n = H5_DISK_TAG - 1; n <= H5_DISK_TAG; n++) {
		h5_disk_encode(&header, bytes);
		h5_uint_to(bytes + LENGTH, n, 2);
		memset(bytes + TAG, 'a', n);
		bytes[TAG] = bytes[TAG + n - 1] = '"';
		h5_uint_to(bytes + sizeof bytes - 4, h5_lookup3(bytes, sizeof bytes - 4, 0), 4);
		ck_assert_int_eq(h5_disk_decode(bytes, &got.header), n < H5_DISK_TAG ? 0 : -EUCLEAN);
		if (n < H5_DISK_TAG)
			ck_assert_uint_eq(strlen(got.header.tag), n);
		else
			ck_assert_str_eq(h5_error_last()->text, "the header is damaged");
	}
}
END_TEST

/* ---- places, sums, names ---- */

START_TEST(places)
{
	/* The last of these make maps that end with a block, an entry before it, and an entry behind it. */
	const uint64_t full = (H5_DISK_BLOCK - H5_DISK_MAP) / H5_DISK_SUM;
	uint64_t bytes, map, largest = 0,
			     sizes[] = {1,
					H5_DISK_BLOCK - 1,
					H5_DISK_BLOCK,
					H5_DISK_BLOCK + 1,
					UINT64_C(1) << 40,
					full * H5_DISK_BLOCK,
					(full - 1) * H5_DISK_BLOCK,
					full * H5_DISK_BLOCK + 1};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t size = sizes[i], last = h5_disk_blocks(size) - 1;

		ck_assert_uint_eq(last * H5_DISK_BLOCK + h5_disk_block_size(size, last), size);
		map = H5_DISK_MAP + (last + 1) * H5_DISK_SUM;
		ck_assert_uint_ge(h5_disk_offset(size, 0), map);
		ck_assert_uint_lt(h5_disk_offset(size, 0) - map, H5_DISK_BLOCK);
		ck_assert_uint_eq(h5_disk_offset(size, 0) % H5_DISK_BLOCK, 0);
		ck_assert(h5_disk_file_size(size, &bytes));
		ck_assert_uint_eq(bytes, h5_disk_offset(size, last) + h5_disk_block_size(size, last));
	}
	/* The largest file that there can be. */
	for (uint64_t step = UINT64_C(1) << 62; step; step /= 2)
		if (h5_disk_file_size(largest + step, &bytes))
			largest += step;
	ck_assert(h5_disk_file_size(largest, &bytes));
	ck_assert_uint_eq(bytes, INT64_MAX);
	ck_assert_uint_eq(h5_disk_offset(largest, 0) + largest, INT64_MAX);
	ck_assert(!h5_disk_file_size(INT64_MAX, &bytes));
	ck_assert(!h5_disk_file_size((uint64_t)INT64_MAX + 1, &bytes));
	ck_assert(!h5_disk_file_size(UINT64_MAX, &bytes));
}
END_TEST

START_TEST(sums_depend_on_all)
{
	struct h5_disk_header header = header_of(SIZE), other = header;
	uint64_t seed = h5_disk_seed(&header), sum;

	make_content();
	for (size_t n = 0; n < 100; n++) {
		sum = h5_disk_sum(seed, 3, content, n);
		ck_assert_uint_ne(sum, 0);
		ck_assert_uint_ne(h5_disk_sum(seed, 4, content, n), sum);
		ck_assert_uint_ne(h5_disk_sum(seed + 1, 3, content, n), sum);
		ck_assert_uint_ne(h5_disk_sum(seed, 3, content, n + 1), sum);
		for (size_t i = 0; i < 8 * n; i++) {
			content[i / 8] ^= (uint8_t)(1 << i % 8);
			ck_assert_uint_ne(h5_disk_sum(seed, 3, content, n), sum);
			content[i / 8] ^= (uint8_t)(1 << i % 8);
		}
	}
	other.size++;
	ck_assert_uint_ne(h5_disk_seed(&other), seed);
	other = header;
	other.tag[1] = 'b';
	ck_assert_uint_ne(h5_disk_seed(&other), seed);
	other = header;
	other.url[31]++;
	ck_assert_uint_ne(h5_disk_seed(&other), seed);
	/* The last byte of the longest tag. */
	memset(header.tag, 'a', sizeof header.tag - 1);
	header.tag[sizeof header.tag - 1] = 0;
	other = header;
	other.tag[sizeof other.tag - 2]++;
	ck_assert_uint_ne(h5_disk_seed(&other), h5_disk_seed(&header));
}
END_TEST

/* Of the format of the files, which other versions of the program read: computed by another program. */
START_TEST(sums_are_as_before)
{
	uint8_t bytes[100];

	for (uint8_t i = 0; i < sizeof bytes; i++)
		bytes[i] = i;
	ck_assert_uint_eq(h5_disk_sum(UINT64_C(0x0123456789abcdef), 5, bytes, sizeof bytes),
			  UINT64_C(0xdd36da6121ac91a3));
	ck_assert_uint_eq(h5_disk_sum(7, 0, bytes, 0), UINT64_C(0xb24a0cec307f40e6));
	ck_assert_uint_eq(h5_disk_sum(7, 1, bytes, 31), UINT64_C(0x433ddca3cd3b1aab));
	ck_assert_uint_eq(h5_disk_sum(UINT64_C(0x0123456789abcdef), 5, bytes, 32),
			  UINT64_C(0xe6a7dd19d8b39461));
	ck_assert_uint_eq(h5_disk_sum(7, 1, bytes, 64), UINT64_C(0x7c9422f5a2787cfe));
}
END_TEST

START_TEST(names)
{
	struct h5_disk_header header = header_of(SIZE);
	uint8_t other[H5_SHA256] = {1};
	char name[H5_DISK_NAME], second[H5_DISK_NAME];

	h5_disk_name(header.url, header.tag, name);
	ck_assert(h5_disk_is_name(name, NULL) && h5_disk_is_name(name, header.url));
	ck_assert(!h5_disk_is_name(name, other));
	h5_disk_name(header.url, "\"another\"", second);
	ck_assert(h5_disk_is_name(second, header.url));
	ck_assert_str_ne(name, second);
	h5_disk_name(other, header.tag, second);
	ck_assert_str_ne(name, second);
	for (size_t n = 0; n < strlen(name); n++) {
		strcpy(second, name);
		second[n] = 'G';
		ck_assert(!h5_disk_is_name(second, NULL));
		second[n] = 0;
		ck_assert(!h5_disk_is_name(second, NULL));
	}
	strcat(name, "0");
	ck_assert(!h5_disk_is_name(name, NULL));
}
END_TEST

/* ---- blocks ---- */

/* In pieces, one of which is written twice. */
static int write_all(const struct h5_disk_file *file)
{
	static const uint32_t pieces[][2] = {{4, 3}, {0, 1}, {7, 3}, {4, 3}, {1, 3}};
	int rc = 0;

	for (size_t i = 0; i < sizeof pieces / sizeof *pieces && !rc; i++)
		rc = h5_disk_file_write(file, pieces[i][0], pieces[i][1],
					content + pieces[i][0] * (size_t)H5_DISK_BLOCK);
	return rc;
}

/* Each block that counts as here is right, or is found to be damaged; returns how many are right. */
static unsigned check_blocks(const struct h5_disk_file *file)
{
	unsigned right = 0;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint8_t block[H5_DISK_BLOCK];
		uint64_t sum;

		ck_assert_int_eq(h5_disk_file_look(file, i, 1, &sum), 0);
		if (!sum || h5_disk_file_read(file, i, 1, &sum, block))
			continue;
		ck_assert_mem_eq(block, content + i * (size_t)H5_DISK_BLOCK, h5_disk_block_size(SIZE, i));
		right++;
	}
	return right;
}

static void release_file(struct h5_disk_file *file, struct crash_image *image)
{
	h5_io_close(file->io);
	free(image->data);
}

static void make_file(struct h5_disk_file *file, struct crash_image *image, struct fault_io *fault)
{
	make_content();
	*image = (struct crash_image){0};
	*file = (struct h5_disk_file){.io = fault_io_wrap(fault, crash_image_open(image)),
				      .header = header_of(SIZE)};
	ck_assert_int_eq(h5_disk_file_make(file), 0);
}

START_TEST(blocks_come_back)
{
	struct fault_io fault = {0};
	struct crash_image image;
	struct h5_disk_file file, again;
	uint64_t sums[BLOCKS];
	uint8_t all[SIZE];

	make_file(&file, &image, &fault);
	ck_assert_uint_eq(check_blocks(&file), 0);
	ck_assert_int_eq(write_all(&file), 0);
	again = (struct h5_disk_file){.io = file.io};
	ck_assert_int_eq(h5_disk_file_start(&again), 0);
	ck_assert_int_eq(h5_disk_file_look(&again, 0, BLOCKS, sums), 0);
	ck_assert_int_eq(h5_disk_file_read(&again, 0, BLOCKS, sums, all), 0);
	ck_assert_mem_eq(all, content, SIZE);
	ck_assert_uint_eq(check_blocks(&again), BLOCKS);
	crash_image_resize(&image, image.size - 1);
	ck_assert_int_eq(h5_disk_file_start(&again), -EUCLEAN);
	ck_assert_int_eq(h5_disk_file_read(&file, 0, BLOCKS, sums, all), -EUCLEAN);
	release_file(&file, &image);
}
END_TEST

START_TEST(writes_that_fail)
{
	struct fault_io fault = {.error = -ENOSPC};
	struct h5_disk_file file;
	struct crash_image image;
	unsigned before = 0;
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		unsigned right;

		make_file(&file, &image, &fault);
		fault_io_arm(&fault, n);
		ck_assert_int_eq(write_all(&file), fault.calls >= n ? -ENOSPC : 0);
		failed = fault_io_disarm(&fault);
		right = check_blocks(&file);
		ck_assert_uint_ge(right, before);
		before = right;
		release_file(&file, &image);
	}
	ck_assert_uint_eq(before, BLOCKS);
}
END_TEST

/* Nothing is written of a file that cannot be as large, and nothing counts as made if a call fails. */
START_TEST(files_that_cannot_be_made)
{
	const uint64_t sizes[] = {INT64_MAX, UINT64_MAX};
	struct fault_io fault = {.error = -ENOSPC};
	struct crash_image image = {0};
	struct h5_disk_file file = {.io = fault_io_wrap(&fault, crash_image_open(&image))};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		file.header = header_of(sizes[i]);
		ck_assert_int_eq(h5_disk_file_make(&file), -EFBIG);
	}
	ck_assert_uint_eq(fault.calls, 0);
	file.header = header_of(SIZE);
	for (unsigned long n = 1; n <= 2; n++) {
		fault_io_arm(&fault, n);
		ck_assert_int_eq(h5_disk_file_make(&file), -ENOSPC);
		ck_assert(fault_io_disarm(&fault));
	}
	ck_assert_int_eq(h5_disk_file_make(&file), 0);
	release_file(&file, &image);
}
END_TEST

static int start(struct h5_io *io)
{
	struct h5_disk_file file = {.io = io};

	return h5_disk_file_start(&file);
}

/* A file is refused if its header is damaged or its size is wrong. */
START_TEST(files_that_cannot_be_used)
{
	struct fault_io fault = {.error = -EIO};
	struct h5_disk_file file;
	struct crash_image image;

	make_file(&file, &image, &fault);
	ck_assert_int_eq(start(file.io), 0);
	/* That it cannot be read is not that it is damaged. */
	fault.reads = true;
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(start(file.io), -EIO);
	ck_assert(fault_io_disarm(&fault));
	crash_image_resize(&image, image.size + 1);
	ck_assert_int_eq(start(file.io), -EUCLEAN);
	crash_image_resize(&image, image.size - 1);
	for (size_t i = 0; i < H5_DISK_HEADER; i++) {
		image.data[i] ^= 1;
		ck_assert_int_eq(start(file.io), -EUCLEAN);
		image.data[i] ^= 1;
	}
	ck_assert_int_eq(start(file.io), 0);
	crash_image_resize(&image, H5_DISK_HEADER - 1);
	ck_assert_int_eq(start(file.io), -EUCLEAN);
	release_file(&file, &image);
}
END_TEST

/* After a power failure: of each write any sectors may have reached the disk, in any order. */
START_TEST(any_sectors_may_be_lost)
{
	struct fault_io fault = {.record = true};
	struct h5_disk_file file, left;
	struct crash_image image, crash;
	unsigned right = 0;

	make_file(&file, &image, &fault);
	ck_assert_int_eq(write_all(&file), 0);
	srand(5);
	for (unsigned k = 0; k < CRASHES; k++) {
		int chance = 2 + rand() % 60;

		crash = (struct crash_image){0};
		crash_image_resize(&crash, image.size);
		for (size_t i = 0; i < fault.count; i++) {
			const struct fault_event *e = &fault.events[i];

			for (size_t at = 0; e->kind == FAULT_WRITE && at < e->size; at += 512)
				if (!i || rand() % chance)
					crash_image_write(&crash, e->offset + at, e->data + at,
							  e->size - at < 512 ? e->size - at : 512);
		}
		left = (struct h5_disk_file){.io = crash_image_open(&crash)};
		ck_assert_int_eq(h5_disk_file_start(&left), 0);
		right += check_blocks(&left);
		release_file(&left, &crash);
	}
	ck_assert_uint_gt(right, CRASHES);
	ck_assert_uint_lt(right, CRASHES * BLOCKS);
	release_file(&file, &image);
	fault_io_release(&fault);
}
END_TEST

/* ---- what decides about the name and the storing ---- */

START_TEST(identities_of_urls)
{
	static const char *const pairs[][2] = {
		{"https://h/x.h5", "https://h/x.h5"},
		{"https://h/x.h5#part", "https://h/x.h5"},
		{"https://h/x.h5?", "https://h/x.h5?"},
		{"https://h/x?id=1&v=2", "https://h/x?id=1&v=2"},
		{"https://h/x?X-Amz-Date=1&x-amz-signature=ab&X-Amz-Security-Token=c", "https://h/x"},
		{"https://h/x?X-Amz-Date=1&versionId=7&X-Amz-Signature=ab#X-Amz-", "https://h/x?versionId=7"},
		{"https://h/x?X-AmzDate=1", "https://h/x?X-AmzDate=1"},
		{"https://h/x?id=X-Amz-Date", "https://h/x?id=X-Amz-Date"},
		{"https://h/x?AWSAccessKeyId=k&Expires=9&Signature=s%3D", "https://h/x"},
		{"https://h/x?Policy=p&a=b&Key-Pair-Id=k&Signatures=s", "https://h/x?a=b&Signatures=s"},
		{"https://h/x?X-Goog-Signature=s&GoogleAccessId=me", "https://h/x"},
		{"https://a.blob.core.windows.net/x?sv=1&sig=2&se=3&snapshot=4",
		 "https://a.blob.core.windows.net/x?snapshot=4"},
		{"https://h/x?sv=1&sig=2", "https://h/x?sv=1&sig=2"},
		{"https://h/.core.windows.net/x?sv=1", "https://h/.core.windows.net/x?sv=1"},
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		char *got = h5_url_identity(pairs[i][0]);

		ck_assert_str_eq(got, pairs[i][1]);
		free(got);
	}
}
END_TEST

START_TEST(answers_that_may_not_be_stored)
{
	static const struct {
		const char *line;
		bool private;
	} cases[] = {
		{"Cache-Control: no-store\r\n", true},
		{"cache-control: max-age=0 , No-Store\r\n", true},
		{"Cache-Control:no-store,private", true},
		{"Cache-Control: no-cache, private, max-age=10\r\n", false},
		{"Cache-Control: no-stores, xno-store\r\n", false},
		{"Cache-Control: ,,\r\n", false},
		{"Cache-Controls: no-store\r\n", false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_response response = {0};

		ck_assert(h5_response_line(&response, cases[i].line, strlen(cases[i].line)));
		ck_assert_int_eq(response.private, cases[i].private);
	}
}
END_TEST

/* ---- a file whose size cannot be asked for ---- */

static int read_header(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct h5_disk_header header = header_of(SIZE);
	uint8_t bytes[H5_DISK_HEADER];

	(void)io;
	ck_assert_uint_eq(offset, 0);
	ck_assert_uint_le(n, sizeof bytes);
	h5_disk_encode(&header, bytes);
	memcpy(buf, bytes, n);
	*got = n;
	return 0;
}

static int refuse_stat(struct h5_io *io, struct h5_io_stat *st)
{
	(void)io;
	(void)h5_disk_file_size(SIZE, &st->size);
	return h5_fail(-EIO, H5_UNDEF, "no status");
}

START_TEST(a_size_that_is_not_told)
{
	static const struct h5_io_ops ops = {.read = read_header, .stat = refuse_stat};
	struct h5_io io = {&ops};
	struct h5_disk_file file = {.io = &io};

	ck_assert_int_eq(h5_disk_file_start(&file), -EIO);
	ck_assert_str_eq(h5_error_last()->text, "no status");
}
END_TEST

UNIT_MAIN("disk_cache", header_comes_back, changed_header_is_refused, other_files_are_refused,
	  header_that_cannot_be_is_refused, long_tags, a_size_that_is_not_told, places, sums_depend_on_all,
	  sums_are_as_before, names, blocks_come_back, writes_that_fail, files_that_cannot_be_made,
	  files_that_cannot_be_used, any_sectors_may_be_lost, identities_of_urls,
	  answers_that_may_not_be_stored)

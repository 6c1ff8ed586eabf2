/* Messages and blocks of versions and with fields that no writer makes: each is refused with its error.
 * Beside each is a sound one, which differs in what is wrong. */
#include "base/error.h"
#include "base/fletcher32.h"
#include "base/lookup3.h"
#include "bytes.h"
#include "format/btree1.h"
#include "format/cache_image.h"
#include "format/dataspace.h"
#include "format/datatype.h"
#include "format/fractal_heap.h"
#include "format/free_space.h"
#include "format/global_heap.h"
#include "format/header_messages.h"
#include "format/layout.h"
#include "format/object_header.h"
#include "format/onion.h"
#include "format/pipeline.h"
#include "format/selection.h"
#include "format/shared_message.h"
#include "format/virtual_mapping.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

/* ---- decoders with one interface ---- */

typedef int decoder(struct h5_reader *r);

static int btree1_k(struct h5_reader *r)
{
	struct h5_btree1_k k;

	return h5_btree1_k_decode(r, &k);
}

static int cache_image(struct h5_reader *r)
{
	uint32_t entries;

	return h5_cache_image_decode(r, &entries);
}

static int file_space_info(struct h5_reader *r)
{
	struct h5_file_space_info info;

	return h5_file_space_info_decode(r, &info);
}

static int free_space_header(struct h5_reader *r)
{
	struct h5_free_space_header header;

	return h5_free_space_header_decode(r, &header);
}

static int walk_sections(struct h5_reader *r, enum h5_free_space_client client, uint16_t address_bits)
{
	const struct h5_free_space_header header = {
		.client = (uint8_t)client, .serialized = 1, .section_max = 255, .address_bits = address_bits};
	struct h5_free_section section;
	struct h5_free_space_walk walk;
	int rc;

	h5_free_space_walk_begin(&walk, *r, &header);
	do
		rc = h5_free_space_walk_next(&walk, &section);
	while (rc > 0);
	return rc;
}

static int sections_of_file(struct h5_reader *r)
{
	return walk_sections(r, H5_FREE_SPACE_FILE, 16);
}

static int sections_of_heap(struct h5_reader *r)
{
	return walk_sections(r, H5_FREE_SPACE_HEAP, 16);
}

static int sections_of_64_bits(struct h5_reader *r)
{
	return walk_sections(r, H5_FREE_SPACE_FILE, 64);
}

static int sections_of_65_bits(struct h5_reader *r)
{
	return walk_sections(r, H5_FREE_SPACE_FILE, 65);
}

static int mtime(struct h5_reader *r)
{
	int64_t seconds;

	return h5_mtime_decode(r, &seconds);
}

static int reference_count(struct h5_reader *r)
{
	uint32_t references;

	return h5_reference_count_decode(r, &references);
}

static int shared_table_message(struct h5_reader *r)
{
	struct h5_shared_table_message message;

	return h5_shared_table_message_decode(r, &message);
}

static int continuation_block(struct h5_reader *r)
{
	struct h5_reader messages;

	return h5_continuation_block_decode(r, &messages);
}

static int onion_header(struct h5_reader *r)
{
	struct h5_onion_header header;

	return h5_onion_header_decode(r, &header);
}

static int onion_history(struct h5_reader *r)
{
	uint64_t revisions;

	return h5_onion_history_decode(r, h5_reader_left(r) + 4, &revisions);
}

static int onion_place(struct h5_reader *r)
{
	struct h5_onion_place place;

	return h5_onion_place_decode(r, &place);
}

static int onion_record(struct h5_reader *r)
{
	struct h5_onion_record record;

	return h5_onion_record_decode(r, 64 + 4, &record);
}

static int section_pipelines(struct h5_reader *r)
{
	struct h5_pipeline pipelines[2];
	int rc = h5_section_pipelines_decode(r, false, 2, pipelines);

	for (unsigned i = 0; i < 2 && !rc; i++)
		h5_pipeline_release(&pipelines[i]);
	return rc;
}

static int datatype(struct h5_reader *r)
{
	struct h5_datatype *type;
	int rc = h5_datatype_decode(r, &type);

	ck_assert(rc ? !type : !!type);
	h5_datatype_free(type);
	return rc;
}

/* Of the collection's 64 bytes, so many are left from the object on. */
static int global_heap_object(struct h5_reader *r)
{
	struct h5_global_heap_object object;

	return h5_global_heap_next(r, 64, &object);
}

static int heap_block(struct h5_reader *r)
{
	const struct h5_fractal_heap heap = {.checksums = true, .offset_size = 2};
	uint8_t block[64];

	memcpy(block, r->begin, h5_reader_left(r));
	return h5_fractal_heap_direct_check(r, block, &heap, 1000, 0);
}

/* ---- what they get ---- */

struct sample {
	decoder *decode;
	int error;
	const char *text; /* a part of the error's */
	size_t size;
	uint8_t bytes[80];
	enum {
		PLAIN,
		LOOKUP3,
		LOOKUP3_OF_ALL,
		FLETCHER32
	} sum; /* that follows; OF_ALL: also of zeros in its place */
};

#define BYTES(...)                                                                                           \
	sizeof((const uint8_t[]){__VA_ARGS__}),                                                              \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}
#define V16(v) (v) & 0xff, (v) >> 8
#define V32(v) V16((v)&0xffff), V16((v) >> 16)
#define V64(v) V32(v), 0, 0, 0, 0
/* So many bytes, of which the last are zero. */
#define ZEROS(n, ...)                                                                                        \
	(n),                                                                                                 \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}
#define LIST	    'F', 'S', 'S', 'E', 0, V64(1000)
#define FLOAT(bits) 0x11, 0x20, 63, 0, V32(8), V16(0), V16(64), 23, (bits), 0, 23, V32(127)

static const struct sample samples[] = {
	{btree1_k, 0, "", BYTES(0, V16(32), V16(16), V16(4)), PLAIN},
	{btree1_k, -ENOTSUP, "version 1", BYTES(1, V16(32), V16(16), V16(4)), PLAIN},
	{cache_image, 0, "", ZEROS(18, 'M', 'D', 'C', 'I', 0), LOOKUP3},
	{cache_image, -EUCLEAN, "wrong signature", ZEROS(18, 'M', 'D', 'C', 'J', 0), LOOKUP3},
	{cache_image, -ENOTSUP, "version 1", ZEROS(18, 'M', 'D', 'C', 'I', 1), LOOKUP3},
	{cache_image, -EUCLEAN, "wrong checksum", ZEROS(22, 'M', 'D', 'C', 'I', 0), PLAIN},
	{file_space_info, 0, "", BYTES(1, 1, 0, V64(1), V64(4096), V16(0), V64(0)), PLAIN},
	{file_space_info, -ENOTSUP, "version 2", BYTES(2, 1, 0, V64(1), V64(4096), V16(0), V64(0)), PLAIN},
	{free_space_header, 0, "", ZEROS(78, 'F', 'S', 'H', 'D', 0, 1), LOOKUP3},
	{free_space_header, -ENOTSUP, "version 1", ZEROS(78, 'F', 'S', 'H', 'D', 1, 1), LOOKUP3},
	{sections_of_file, 0, "", BYTES(LIST, 1, 100, V16(500), 2), LOOKUP3},
	{sections_of_file, -EUCLEAN, "type 3", BYTES(LIST, 1, 100, V16(500), 3), LOOKUP3},
	{sections_of_file, -EUCLEAN, "no sections", BYTES(LIST, 0, 100, V16(500), 2), LOOKUP3},
	{sections_of_heap, 0, "", BYTES(LIST, 1, 100, V16(500), 3, V16(0), V16(0), V32(0)), LOOKUP3},
	{sections_of_heap, -EUCLEAN, "type 4", BYTES(LIST, 1, 100, V16(500), 4), LOOKUP3},
	{sections_of_64_bits, 0, "", BYTES(LIST, 1, 100, V64(500), 0), LOOKUP3},
	{sections_of_65_bits, -EUCLEAN, "65 bits", BYTES(LIST, 1, 100, V64(500), 0, 0), LOOKUP3},
	{mtime, 0, "", BYTES(1, 0, 0, 0, V32(5)), PLAIN},
	{mtime, -EUCLEAN, "version 0", BYTES(0, 0, 0, 0, V32(5)), PLAIN},
	{mtime, -EUCLEAN, "version 2", BYTES(2, 0, 0, 0, V32(5)), PLAIN},
	{reference_count, 0, "", BYTES(0, V32(2)), PLAIN},
	{reference_count, -EUCLEAN, "version 1", BYTES(1, V32(2)), PLAIN},
	{shared_table_message, 0, "", BYTES(0, V64(1000), 1), PLAIN},
	{shared_table_message, -EUCLEAN, "version 1", BYTES(1, V64(1000), 1), PLAIN},
	{continuation_block, 0, "", BYTES('O', 'C', 'H', 'K'), LOOKUP3},
	{continuation_block, -EUCLEAN, "truncated", BYTES('O', 'C', 'H', 'K', 0, 0, 0), PLAIN},
	{onion_header, 0, "", ZEROS(36, 'O', 'H', 'D', 'H', 1), FLETCHER32},
	{onion_header, -EINVAL, "no history", ZEROS(36, 'O', 'H', 'D', 'X', 1), FLETCHER32},
	{onion_header, -ENOTSUP, "version 2", ZEROS(36, 'O', 'H', 'D', 'H', 2), FLETCHER32},
	{onion_header, -EUCLEAN, "truncated", ZEROS(35, 'O', 'H', 'D', 'H', 1), PLAIN},
	{onion_history, 0, "", ZEROS(16, 'O', 'W', 'H', 'S', 1), PLAIN},
	{onion_history, -ENOTSUP, "version 0", ZEROS(16, 'O', 'W', 'H', 'S', 0), PLAIN},
	{onion_place, 0, "", BYTES(V64(1000), V64(500)), FLETCHER32},
	{onion_place, -EUCLEAN, "wrong checksum", BYTES(V64(1000), V64(500)), LOOKUP3},
	{onion_place, -EUCLEAN, "truncated", ZEROS(15, V64(1000)), PLAIN},
	{onion_record, 0, "", ZEROS(64, 'O', 'R', 'R', 'S', 1, [49] = 16), PLAIN},
	{onion_record, -ENOTSUP, "version 2", ZEROS(64, 'O', 'R', 'R', 'S', 2, [49] = 16), PLAIN},
	{onion_record, -EUCLEAN, "truncated", ZEROS(63, 'O', 'R', 'R', 'S', 1, [49] = 16), PLAIN},
	{section_pipelines, 0, "", BYTES(1, 1, 1, 0, V16(0)), PLAIN},
	{section_pipelines, -ENOTSUP, "version 2", BYTES(2, 1, 1, 0, V16(0)), PLAIN},
	{section_pipelines, -EUCLEAN, "section 2", BYTES(1, 1, 2, 0, V16(0)), PLAIN},
	{section_pipelines, -EUCLEAN, "truncated", BYTES(1, 1, 1, 0, V16(1)), PLAIN},
	{section_pipelines, -EUCLEAN, "truncated", BYTES(1), PLAIN},
	{section_pipelines, -EUCLEAN, "more bytes", BYTES(1, 1, 1, 0, V16(1), 0), PLAIN},
	{datatype, 0, "", BYTES(FLOAT(32)), PLAIN},
	{datatype, -ENOTSUP, "exponent of 33 bits", BYTES(FLOAT(33)), PLAIN},
	{global_heap_object, 0, "", BYTES(V16(1), V16(1), V32(0), V64(48)), PLAIN},
	{global_heap_object, -EUCLEAN, "49 bytes", BYTES(V16(1), V16(1), V32(0), V64(49)), PLAIN},
	{global_heap_object, 0, "", BYTES(V16(0), V16(0), V32(0), V64(64)), PLAIN},
	{global_heap_object, -EUCLEAN, "63 bytes, not 64", BYTES(V16(0), V16(0), V32(0), V64(63)), PLAIN},
	{global_heap_object, -EUCLEAN, "truncated", ZEROS(15, V16(1), V16(1)), PLAIN},
	{heap_block, 0, "", BYTES('F', 'H', 'D', 'B', 0, V64(1000), V16(0)), LOOKUP3_OF_ALL},
	{heap_block, -EUCLEAN, "wrong checksum", BYTES('F', 'H', 'D', 'B', 0, V64(1000), V16(0)), LOOKUP3},
	{heap_block, -EUCLEAN, "truncated", ZEROS(18, 'F', 'H', 'D', 'B', 0, V64(1000)), PLAIN},
};

static uint32_t sum_of(const struct sample *sample)
{
	return sample->sum == FLETCHER32 ? h5_fletcher32(sample->bytes, sample->size)
	       : sample->sum == LOOKUP3	 ? h5_lookup3(sample->bytes, sample->size, 0)
					 : h5_lookup3(sample->bytes, sample->size + 4, 0);
}

START_TEST(each_is_refused)
{
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		const struct sample *sample = &samples[i];
		struct bytes b = {.n = sample->size};
		struct h5_reader r;
		uint8_t *copy;
		int rc;

		memcpy(b.data, sample->bytes, sample->size);
		if (sample->sum != PLAIN)
			put(&b, sum_of(sample), 4);
		/* Of just that size, so that sanitizers see what is read beyond it. */
		copy = malloc(b.n);
		memcpy(copy, b.data, b.n);
		r = h5_reader_init(copy, b.n, 5000, 8, 8);
		h5_error_clear();
		rc = sample->decode(&r);
		ck_assert_msg(rc == sample->error && strstr(h5_error_last()->text, sample->text),
			      "sample %zu: %d %s", i, rc, h5_error_last()->text);
		free(copy);
	}
}
END_TEST

/* ---- sizes ---- */

static int decode_datatype_of(size_t size)
{
	static const uint8_t integer[] = {0x10, 0, 0, 0, V32(4), V16(0), V16(32)};
	uint8_t *data = calloc(1, size);
	struct h5_reader r = h5_reader_init(data, size, 0, 8, 8);
	int rc;

	memcpy(data, integer, sizeof integer);
	rc = datatype(&r);
	free(data);
	return rc;
}

/* Points of 32 coordinates. */
static int decode_points(uint32_t count)
{
	static const uint8_t head[] = {V32(1), V32(2), 4, V32(32)};
	const size_t size = sizeof head + sizeof count + count * 32 * sizeof(uint32_t);
	uint8_t *data = calloc(1, size);
	struct h5_reader r = h5_reader_init(data, size, 0, 8, 8);
	struct h5_selection selection;
	int rc;

	memcpy(data, head, sizeof head);
	memcpy(data + sizeof head, &count, sizeof count);
	rc = h5_selection_decode(&r, &selection);
	if (!rc)
		ck_assert_uint_eq(selection.count, count);
	h5_selection_release(&selection);
	free(data);
	return rc;
}

START_TEST(what_is_too_large_is_refused)
{
	ck_assert_int_eq(decode_datatype_of(1 << 20), 0);
	ck_assert_int_eq(decode_datatype_of((1 << 20) + 1), -EFBIG);
	ck_assert_int_eq(decode_points((1 << 23) / 32), 0);
	ck_assert_int_eq(decode_points((1 << 23) / 32 + 1), -EFBIG);
}
END_TEST

/* ---- changes ---- */

/* A message that cannot be read is not changed. */
START_TEST(damaged_messages_stay)
{
	uint8_t body[200], before[sizeof body];
	const struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {3}, .max = {3}};
	const struct h5_layout layout = {.version = 3, .class = H5_LAYOUT_CONTIGUOUS};
	struct h5_file_space_change change = {.size_of_offsets = 8, .size_of_lengths = 8};

	memset(body, 9, sizeof body);
	memcpy(before, body, sizeof body);
	ck_assert_int_eq(h5_dataspace_update(body, sizeof body, 8, &space), -EUCLEAN);
	ck_assert_int_eq(h5_layout_update(body, sizeof body, 8, 8, &layout), -ENOTSUP);
	ck_assert_int_eq(h5_file_space_info_update(&change, body, sizeof body), -ENOTSUP);
	ck_assert_mem_eq(body, before, sizeof body);
}
END_TEST

/* A file space info message that can be changed: version 1, persistent, of the whole size. */
START_TEST(file_space_info_is_changed_as_a_whole)
{
	enum { AT = 3 + 2 * 8 + 2, ALL = AT + 8 + H5_FREE_SPACE_MANAGERS * 8 };
	struct h5_file_space_change change = {.size_of_offsets = 8, .size_of_lengths = 8, .end = 0x5555};
	uint8_t body[ALL] = {1, 1, 1}, before[ALL];
	static const uint8_t wrong[][3] = {{0, 1, 1}, {2, 1, 1}, {1, 1, 0}};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		memcpy(body, wrong[i], 3);
		memcpy(before, body, ALL);
		ck_assert_int_eq(h5_file_space_info_update(&change, body, ALL), -ENOTSUP);
		ck_assert_mem_eq(body, before, ALL);
	}
	body[0] = body[2] = 1;
	memcpy(before, body, ALL);
	ck_assert_int_eq(h5_file_space_info_update(&change, body, ALL - 1), -ENOTSUP);
	ck_assert_mem_eq(body, before, ALL);
	ck_assert_int_eq(h5_file_space_info_update(&change, body, ALL), 0);
	ck_assert_uint_eq(body[AT], 0x55);
	ck_assert_uint_eq(body[AT + 1], 0x55);
	memset(body + AT, 0, 8);
	ck_assert_mem_eq(body, before, ALL);
}
END_TEST

UNIT_MAIN("refused", each_is_refused, what_is_too_large_is_refused, damaged_messages_stay,
	  file_space_info_is_changed_as_a_whole)

/* Messages that we encode have the bytes that libhdf5 has written: those in the object headers of the
 * fixtures' files, decoded and encoded again. */
#include "base/error.h"
#include "change/open.h"
#include "format/dataspace.h"
#include "format/fill_value.h"
#include "format/header_messages.h"
#include "format/layout.h"
#include "format/named_message.h"
#include "format/pipeline.h"
#include "store/file_set.h"
#include "store/object_header.h"
#include "unit.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

enum { BODY_MAX = 1 << 17, TYPES = H5_MSG_REFERENCE_COUNT + 1 };

struct tally {
	unsigned same[TYPES];
	unsigned layouts[5], indexes[6]; /* by version, by index */
};

/* ---- a message, decoded and encoded again: 0, or it was not decoded, or is of another version ---- */

typedef int recode_function(struct h5_reader *r, struct h5_writer *w, struct tally *tally);

static int recode_dataspace(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	struct h5_dataspace space;
	bool version_2 = *r->p == 2, maximum = h5_reader_left(r) > 2 && r->p[2] & 1;
	int rc = h5_dataspace_decode(r, &space);

	(void)tally;
	/* libhdf5 may state maximum dimensions that are the dimensions */
	if (rc || !version_2 || maximum != (memcmp(space.dims, space.max, sizeof space.dims) != 0))
		return -1;
	h5_dataspace_encode(w, &space);
	return 0;
}

static int recode_fill_value(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	uint8_t version = r->p[0], flags = r->p[1];
	struct h5_fill_value fill;
	int rc = h5_fill_value_decode(r, &fill);

	(void)tally;
	/* a value that is undefined, or always written, is not kept apart */
	if (rc || version != 3 || flags & 0x10 || !(flags & 0x0c))
		return -1;
	h5_fill_value_encode(w, &fill);
	return 0;
}

static int recode_layout(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	struct h5_layout layout;
	int rc = h5_layout_decode(r, &layout);

	if (rc || layout.version < 3 || layout.version > 4 || layout.class > H5_LAYOUT_CHUNKED)
		return -1;
	h5_layout_encode(w, &layout);
	tally->layouts[layout.version]++;
	if (layout.class == H5_LAYOUT_CHUNKED)
		tally->indexes[layout.chunked.index]++;
	return 0;
}

static int recode_pipeline(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	uint8_t version = *r->p;
	struct h5_pipeline pipeline;
	int rc = h5_pipeline_decode(r, &pipeline);

	(void)tally;
	if (!rc && version == 2)
		h5_pipeline_message_encode(w, &pipeline);
	h5_pipeline_release(&pipeline);
	return rc || version != 2;
}

static int recode_link_info(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	struct h5_named_info info;
	int rc = h5_link_info_decode(r, &info);

	(void)tally;
	h5_link_info_encode(w, &info);
	return rc;
}

static int recode_attribute_info(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	struct h5_named_info info;
	int rc = h5_attribute_info_decode(r, &info);

	(void)tally;
	h5_attribute_info_encode(w, &info);
	return rc;
}

static int recode_group_info(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	struct h5_group_info info;
	int rc = h5_group_info_decode(r, &info);

	(void)tally;
	h5_group_info_encode(w, &info);
	return rc;
}

static int recode_references(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	uint32_t count;
	int rc = h5_reference_count_decode(r, &count);

	(void)tally;
	h5_reference_count_encode(w, count);
	return rc;
}

/* Not such as state other flags: a character set, or more bytes for a length than it needs. */
static int recode_link(struct h5_reader *r, struct h5_writer *w, struct tally *tally)
{
	struct h5_link link;
	int rc = h5_link_decode(r, &link);

	(void)tally;
	if (!rc)
		rc = h5_link_encode(w, &link);
	return rc || w->begin[1] != r->begin[1];
}

static recode_function *const recode[TYPES] = {
	[H5_MSG_DATASPACE] = recode_dataspace,
	[H5_MSG_LINK_INFO] = recode_link_info,
	[H5_MSG_FILL_VALUE] = recode_fill_value,
	[H5_MSG_LAYOUT] = recode_layout,
	[H5_MSG_GROUP_INFO] = recode_group_info,
	[H5_MSG_PIPELINE] = recode_pipeline,
	[H5_MSG_ATTRIBUTE_INFO] = recode_attribute_info,
	[H5_MSG_REFERENCE_COUNT] = recode_references,
	[H5_MSG_LINK] = recode_link,
};

/* ---- all messages of all files ---- */

static void check_message(struct h5_file *file, const struct h5_message *m, struct tally *tally)
{
	static uint8_t body[BODY_MAX];
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_reader r = h5_file_reader(file, m->data, m->size, m->address);
	struct h5_writer w = h5_writer_init(body, sizeof body, sb->size_of_offsets, sb->size_of_lengths);

	if (m->type >= TYPES || !recode[m->type] || m->flags & H5_MSG_FLAG_SHARED || m->size < 2 ||
	    recode[m->type](&r, &w, tally))
		return;
	ck_assert(!w.err);
	/* libhdf5 may have left bytes behind a message */
	ck_assert_uint_le(h5_writer_at(&w), m->size);
	if (memcmp(body, m->data, h5_writer_at(&w)))
		ck_abort_msg("a message of type %#x at %ju", m->type, (uintmax_t)m->address);
	tally->same[m->type]++;
}

static void check_header(struct h5_file *file, uint64_t address, struct tally *tally)
{
	struct h5_header h;

	if (h5_header_load(file, address, &h))
		return;
	for (unsigned i = 0; i < h.count; i++)
		check_message(file, &h.messages[i], tally);
	h5_header_release(&h);
}

/* Looks for object headers of version 2 everywhere in a file. */
static void check_file(const char *path, struct tally *tally)
{
	static const struct h5_file_set_options options = {.block_cache = 4 << 20, .chunk_cache = 1 << 20};
	uint64_t base, end;
	struct h5_file_set *set;
	struct h5_file *file;
	uint8_t *bytes;

	if (h5_open_file(path, &options, &set, NULL))
		return;
	file = h5_file_set_root(set);
	base = h5_file_superblock(file)->base;
	end = h5_file_end(file);
	bytes = malloc((size_t)end);
	ck_assert_ptr_nonnull(bytes);
	if (!base && !h5_file_read(file, 0, bytes, (size_t)end))
		for (uint64_t at = 0; at + 4 <= end; at++)
			if (!memcmp(bytes + at, "OHDR", 4))
				check_header(file, at, tally);
	free(bytes);
	h5_file_set_close(set);
}

START_TEST(as_libhdf5_does)
{
	static const char *const patterns[] = {"chunk_index-*", "crash_*",	  "dataset_*",
					       "group_write-*", "header_edit_v2", "object_*"};
	const char *folder = getenv("H5FS_TEST_DATA");
	struct tally tally = {0};

	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		char pattern[512];
		glob_t found;

		snprintf(pattern, sizeof pattern, "%s/%s.h5", folder ? folder : "tests/data", patterns[i]);
		ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
		for (size_t k = 0; k < found.gl_pathc; k++)
			check_file(found.gl_pathv[k], &tally);
		globfree(&found);
	}
	for (unsigned type = 0; type < TYPES; type++)
		ck_assert_msg(!recode[type] || tally.same[type] > 3, "%u messages of type %#x",
			      tally.same[type], type);
	ck_assert_msg(tally.layouts[3] > 3 && tally.layouts[4] > 3, "layouts");
	for (unsigned index = 0; index < 6; index++)
		ck_assert_msg(tally.indexes[index], "no chunk index of type %u", index);
}
END_TEST

/* ---- what no fixture has ---- */

START_TEST(numbers_of_a_group)
{
	const struct h5_group_info info = {.has_limits = true,
					   .max_compact = 300,
					   .min_dense = 2,
					   .has_estimates = true,
					   .entries = 5,
					   .name_size = 77};
	static const uint8_t expected[] = {0, 3, 0x2c, 1, 2, 0, 5, 0, 77, 0};
	uint8_t body[H5_GROUP_INFO_MAX];
	struct h5_writer w = h5_writer_init(body, sizeof body, 8, 8);
	struct h5_group_info again;
	struct h5_reader r;

	h5_group_info_encode(&w, &info);
	ck_assert(!w.err);
	ck_assert_uint_eq(h5_writer_at(&w), sizeof expected);
	ck_assert_mem_eq(body, expected, sizeof expected);
	r = h5_reader_init(body, sizeof body, 0, 8, 8);
	ck_assert_int_eq(h5_group_info_decode(&r, &again), 0);
	ck_assert_uint_eq(again.max_compact, 300);
	ck_assert_uint_eq(again.min_dense, 2);
	ck_assert_uint_eq(again.entries, 5);
	ck_assert_uint_eq(again.name_size, 77);
	body[1] = 4;
	r = h5_reader_init(body, sizeof body, 0, 8, 8);
	ck_assert_int_eq(h5_group_info_decode(&r, &again), -EUCLEAN);
	body[1] = 3;
	r = h5_reader_init(body, sizeof body - 1, 0, 8, 8);
	ck_assert_int_eq(h5_group_info_decode(&r, &again), -EUCLEAN);
}
END_TEST

START_TEST(names_of_links)
{
	static const size_t sizes[] = {1, 255, 256, 65535, 65536};
	static const uint8_t widths[] = {0, 0, 1, 1, 2};
	static char name[65536];

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct h5_link link = {.name = name, .name_size = sizes[i], .address = 77}, again;
		size_t room = h5_link_room(&link);
		uint8_t *body = malloc(room);
		struct h5_writer w = h5_writer_init(body, room, 8, 8);
		struct h5_reader r;

		ck_assert_ptr_nonnull(body);
		memset(name, i % 2 ? 'x' : 0xe4, sizeof name);
		ck_assert_int_eq(h5_link_encode(&w, &link), 0);
		ck_assert_uint_eq(body[1], widths[i] | (i % 2 ? 0 : 0x10));
		r = h5_reader_init(body, h5_writer_at(&w), 0, 8, 8);
		ck_assert_int_eq(h5_link_decode(&r, &again), 0);
		ck_assert_uint_eq(h5_reader_left(&r), 0);
		ck_assert_uint_eq(again.name_size, sizes[i]);
		ck_assert_mem_eq(again.name, name, sizes[i]);
		ck_assert_uint_eq(again.address, 77);
		free(body);
	}
}
END_TEST

/* The names of an external link end with its value, where NULs are missing, whatever follows. */
START_TEST(external_links_without_nuls)
{
	static const uint8_t whole[] = {1,   8,	  64,  1, 'a', 8,   0,	 0,   'f',
					'i', 'l', 'e', 0, 'p', 'q', 'x', 'y', 0};
	static const uint8_t cut[] = {1, 8, 64, 1, 'a', 5, 0, 0, 'f', 'i', 'l', 'e', 'x', 'y', 0};
	struct h5_reader r = h5_reader_init(whole, sizeof whole, 0, 8, 8);
	struct h5_link link;

	ck_assert_int_eq(h5_link_decode(&r, &link), 0);
	ck_assert_uint_eq(link.file_size, 4);
	ck_assert_uint_eq(link.target_size, 2);
	ck_assert_mem_eq(link.target, "pq", 2);
	r = h5_reader_init(cut, sizeof cut, 0, 8, 8);
	ck_assert_int_eq(h5_link_decode(&r, &link), 0);
	ck_assert_uint_eq(link.file_size, 4);
	ck_assert_uint_eq(link.target_size, 0);
}
END_TEST

/* Version 3: the flags have when space is allocated, when the value is written, and whether one follows. */
START_TEST(fill_values_of_every_kind)
{
	static const uint8_t value[] = {7, 8};

	for (unsigned kind = 0; kind < 16; kind++) {
		const struct h5_fill_value fill = {.allocation = kind & 3,
						   .never_written = kind & 4,
						   .defined = kind & 8,
						   .size = kind & 8 ? sizeof value : 0,
						   .value = kind & 8 ? value : NULL};
		const uint8_t expected[] = {
			3, (uint8_t)((kind & 3) | (kind & 4 ? 4 : 8) | (kind & 8 ? 0x20 : 0)), 2, 0, 0, 0, 7,
			8};
		uint8_t body[16];
		struct h5_writer w = h5_writer_init(body, sizeof body, 8, 8);

		h5_fill_value_encode(&w, &fill);
		ck_assert(!w.err);
		ck_assert_uint_eq(h5_writer_at(&w), kind & 8 ? 8 : 2);
		ck_assert_mem_eq(body, expected, h5_writer_at(&w));
	}
}
END_TEST

/* Each differs in one number from a layout that some version has. */
START_TEST(layouts_that_no_version_has)
{
	static uint8_t data[UINT16_MAX + 1], body[UINT16_MAX + 64];
	static const struct {
		struct h5_layout sound, bad;
	} cases[] = {
#define CHUNKED(v, ...)                                                                                      \
	{.version = v, .class = H5_LAYOUT_CHUNKED, .chunked = {.rank = 1, .element_size = 1, __VA_ARGS__}}
		{{.version = 3, .class = H5_LAYOUT_CONTIGUOUS},
		 {.version = 2, .class = H5_LAYOUT_CONTIGUOUS}},
		{{.version = 4, .class = H5_LAYOUT_CONTIGUOUS},
		 {.version = 5, .class = H5_LAYOUT_CONTIGUOUS}},
		{{.version = 4, .class = H5_LAYOUT_CONTIGUOUS}, {.version = 4, .class = H5_LAYOUT_VIRTUAL}},
		{{.version = 3, .class = H5_LAYOUT_COMPACT, .compact = {data, UINT16_MAX}},
		 {.version = 3, .class = H5_LAYOUT_COMPACT, .compact = {data, UINT16_MAX + 1}}},
		{CHUNKED(3, .dims = {UINT32_MAX}), CHUNKED(3, .dims = {UINT64_C(1) << 32})},
		{CHUNKED(3, .dims = {5}), CHUNKED(3, .dims = {5}, .index = H5_INDEX_SINGLE)},
		{CHUNKED(4, .dims = {5}, .index = H5_INDEX_SINGLE), CHUNKED(4, .dims = {5})},
#undef CHUNKED
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_writer w = h5_writer_init(body, sizeof body, 8, 8);

		h5_layout_encode(&w, &cases[i].sound);
		ck_assert_msg(!w.err, "case %zu", i);
		w = h5_writer_init(body, sizeof body, 8, 8);
		h5_layout_encode(&w, &cases[i].bad);
		ck_assert_msg(w.err, "case %zu", i);
	}
}
END_TEST

/* A caller may ask malloc() for `data` and look at the result only in the end. */
START_TEST(nothing_fits_without_memory)
{
	struct h5_writer w = h5_writer_init(NULL, 64, 8, 8);

	h5_write_u8(&w, 1);
	ck_assert(w.err);
	ck_assert_uint_eq(h5_writer_at(&w), 0);
}
END_TEST

UNIT_MAIN("message_encode", nothing_fits_without_memory, as_libhdf5_does, numbers_of_a_group, names_of_links,
	  external_links_without_nuls, fill_values_of_every_kind, layouts_that_no_version_has)

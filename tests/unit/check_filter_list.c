/* Lists of filters as text. */
#include "base/error.h"
#include "filter/client_values.h"
#include "filter/filter.h"
#include "format/datatype_make.h"
#include "object/filter_list.h"
#include "scratch.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static const struct h5_datatype integers = {
	.class = H5_CLASS_INTEGER, .size = 4, .precision = 32, .order = H5_ORDER_LE};
static const struct h5_datatype floats = {
	.class = H5_CLASS_FLOAT, .size = 8, .precision = 64, .order = H5_ORDER_BE};
static const struct h5_datatype words = {.class = H5_CLASS_STRING, .size = 4};

/* What is read is printed so that it can be read again. */
START_TEST(filters_from_text)
{
	static const struct {
		const char *text;
		int rc;
	} texts[] = {{"", 0},
		     {"shuffle", 0},
		     {"shuffle,deflate(4)", 0},
		     {"deflate(0)", 0},
		     {"fletcher32,lzf,bitshuffle", 0},
		     {"deflate(10)", -EINVAL},
		     {"deflate(-1)", -EINVAL},
		     {"deflate()", -EINVAL},
		     {"deflate(4", -EINVAL},
		     {"deflate(4)x", -EINVAL},
		     {"deflate(99999999999)", -EINVAL},
		     {"shuffle(4)", -EINVAL},
		     {",shuffle", -EINVAL},
		     {"shuffle,", -EINVAL},
		     {"shuffle,,lzf", -EINVAL},
		     {"(4)", -EINVAL},
		     {"nothing", -ENOTSUP},
		     {"Shuffle", -ENOTSUP},
		     {"zfp", -ENOTSUP},
		     {"nbit", 0},
		     {"scaleoffset", 0},
		     {"nbit(1)", -EINVAL},
		     {"scaleoffset(65)", -EINVAL},
		     {"bitshuffle(lzo)", -EINVAL},
		     {"bitshuffle(none", -EINVAL},
		     {"bitshuffle(none:)", -EINVAL},
		     {"bitshuffle(none:1:2)", -EINVAL},
		     {"shuffle()", -EINVAL},
		     {"bitgroom", -ENOTSUP},
		     {"32000", -ENOTSUP}};

	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct h5_filter_list list, again;
		struct h5_pipeline pipeline;
		struct h5_buf out;

		ck_assert_int_eq(h5_filter_list_parse(texts[i].text, strlen(texts[i].text), &list),
				 texts[i].rc);
		if (texts[i].rc)
			continue;
		SUCCEEDS(h5_filter_list_make(&list, NULL, &pipeline));
		h5_buf_init(&out, 1000);
		h5_filter_list_print(&pipeline, &out);
		ck_assert_uint_eq(out.size, strlen(texts[i].text));
		ck_assert(!out.size || !memcmp(out.data, texts[i].text, out.size));
		h5_filter_list_of(&pipeline, &again);
		ck_assert_uint_eq(list.count, again.count);
		for (unsigned k = 0; k < list.count; k++)
			ck_assert_uint_eq(list.filters[k].id, again.filters[k].id);
		h5_buf_release(&out);
		h5_pipeline_release(&pipeline);
	}
}
END_TEST

/* What is printed of filters that this machine has not: their names, as far as a list may have them, or their
 * numbers. */
START_TEST(filters_that_nobody_knows)
{
	static const struct {
		const char *name, *text;
	} cases[] = {{NULL, "700"},
		     {"", "700"},
		     {"a", "a"},
		     {"ab (c), d", "ab__c___d"},
		     {"\x1f\x20\x21\x7f", "__\x21\x7f"},
		     {"\xc3\xa9", "\xc3\xa9"}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t level = 7;
		char name[16];
		struct h5_pipeline pipeline = {
			.count = 3,
			.filters = {{.id = 700, .name = cases[i].name ? strcpy(name, cases[i].name) : NULL},
				    {.id = 1, .count = 1, .values = &level},
				    {.id = 701, .count = 1, .values = &level}}};
		char expected[64];
		struct h5_buf out;

		snprintf(expected, sizeof expected, "%s,deflate(7),701", cases[i].text);
		h5_buf_init(&out, 1000);
		h5_filter_list_print(&pipeline, &out);
		h5_buf_byte(&out, 0);
		ck_assert_int_eq(out.err, 0);
		ck_assert_str_eq(out.data, expected);
		h5_buf_release(&out);
	}
}
END_TEST

/* ---- parameters ---- */

struct expected {
	const char *text;
	const struct h5_datatype *type;
	uint64_t chunk[2];
	unsigned count;
	uint32_t values[10]; /* the first ones */
	int rc;
};

/* As libhdf5 and the filters' own programs set them. */
static const struct expected lists[] = {
	{"szip", &integers, {100, 100}, 4, {32 | 128 | 8 | 1, 8, 32, 100}, 0},
	{"szip(ec:16)", &floats, {100, 4}, 4, {4 | 128 | 16 | 1, 16, 64, 400}, 0},
	{"szip(nn:32)", &integers, {1, 9000}, 4, {32 | 128 | 8 | 1, 32, 32, 4096}, 0},
	{"szip(nn:4)", &integers, {1, 9000}, 4, {32 | 128 | 8 | 1, 4, 32, 512}, 0},
	{"szip(nn:16)", &integers, {3, 5}, 0, {0}, -EINVAL},
	{"szip", &words, {30, 50}, 0, {0}, -EINVAL},
	{"szip(nn:5)", &integers, {1, 9000}, 0, {0}, -EINVAL},
	{"szip(nn:6)", &integers, {1, 9000}, 4, {32 | 128 | 8 | 1, 6, 32, 768}, 0},
	{"scaleoffset", &words, {3, 5}, 0, {0}, -EINVAL},
	{"nbit", &integers, {3, 5}, 8, {8, 1, 15, 1, 4, 0, 32, 0}, 0},
	{"nbit", &words, {3, 5}, 5, {5, 1, 15, 4, 4}, 0},
	{"scaleoffset", &integers, {3, 5}, 20, {2, 0, 15, 0, 4, 0, 0, 1, 0}, 0},
	{"scaleoffset(3)", &floats, {3, 5}, 20, {0, 3, 15, 1, 8, 0, 1, 1, 0}, 0},
	{"scaleoffset", &floats, {3, 5}, 0, {0}, -EINVAL},
	{"scaleoffset(33)", &integers, {3, 5}, 0, {0}, -EINVAL},
	{"bitshuffle(zstd:7)", &integers, {3, 5}, 6, {0, 3, 4, 0, 3, 7}, 0},
	{"bitshuffle(lz4)", &integers, {3, 5}, 5, {0, 3, 4, 0, 2}, 0},
	{"blosc(9:bitshuffle:zstd)", &integers, {3, 5}, 7, {2, 2, 4, 60, 9, 2, 5}, 0},
	{"blosc(1)", &integers, {3, 5}, 7, {2, 2, 4, 60, 1, 1, 0}, 0},
	{"snappy", &integers, {3, 5}, 0, {0}, 0},
	{"lz4(65536)", &integers, {3, 5}, 1, {65536}, 0},
	{"lzo", &integers, {3, 5}, 1, {1}, 0},
	{"vbz", &integers, {3, 5}, 4, {0, 4, 0, 1}, 0},
	{"vbz(5)", &floats, {3, 5}, 4, {0, 0, 0, 5}, 0},
};

/* True: the list begins with a filter that this build can encode. */
static bool is_built_in(const char *text)
{
	const size_t n = strcspn(text, "(");

	for (const struct h5_filter_ops *ops = h5_filters; ops->name; ops++)
		if (strlen(ops->name) == n && !memcmp(ops->name, text, n))
			return ops->encode;
	return false;
}

START_TEST(parameters)
{
	for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
		const struct expected *e = &lists[i];
		const struct h5_filtered what = {.type = e->type, .rank = 2, .chunk = e->chunk};
		struct h5_filter_list list, again;
		struct h5_pipeline pipeline;
		int rc;

		if (!is_built_in(e->text))
			continue;
		rc = h5_filter_list_parse(e->text, strlen(e->text), &list);
		if (!rc)
			rc = h5_filter_list_make(&list, &what, &pipeline);
		ck_assert_int_eq(rc, e->rc);
		if (rc)
			continue;
		ck_assert_uint_eq(pipeline.filters[0].count, e->count);
		for (unsigned k = 0; k < e->count; k++)
			ck_assert_uint_eq(pipeline.filters[0].values[k], k < 10 ? e->values[k] : 0);
		/* The same parameters make the filter of another chunk. */
		h5_filter_list_of(&pipeline, &again);
		for (unsigned k = 0; k < list.filters[0].parameters.count; k++)
			ck_assert_uint_eq(list.filters[0].parameters.values[k],
					  again.filters[0].parameters.values[k]);
		h5_pipeline_release(&pipeline);
	}
}
END_TEST

/* With a number that has unused bits, anywhere in the type, n-bit has something to do. */
START_TEST(nbit_leaves_out_bits)
{
	static const struct h5_datatype some = {
		.class = H5_CLASS_INTEGER, .size = 2, .precision = 9, .bit_offset = 3, .order = H5_ORDER_BE};
	static const struct h5_datatype *const members[][3] = {{&some},
							       {&some, &integers},
							       {&integers, &some},
							       {&integers, &some, &floats},
							       {&integers, &floats}};
	const uint64_t chunk = 10;
	const struct h5_filtered alone = {.type = &some, .rank = 1, .chunk = &chunk};
	const uint32_t values[] = {8, 0, 10, 1, 2, 1, 9, 3};
	struct h5_filter_list list;
	struct h5_pipeline pipeline;

	SUCCEEDS(h5_filter_list_parse("nbit", 4, &list));
	SUCCEEDS(h5_filter_list_make(&list, &alone, &pipeline));
	ck_assert_uint_eq(pipeline.filters[0].count, 8);
	ck_assert_mem_eq(pipeline.filters[0].values, values, sizeof values);
	h5_pipeline_release(&pipeline);
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		struct h5_member list_of[3] = {0};
		struct h5_datatype type = {.class = H5_CLASS_COMPOUND, .compound = {.members = list_of}};
		const struct h5_filtered what = {.type = &type, .rank = 1, .chunk = &chunk};
		bool is_full = true;

		for (unsigned k = 0; k < 3 && members[i][k]; k++) {
			list_of[type.compound.count++] = (struct h5_member){
				.offset = type.size, .type = (struct h5_datatype *)members[i][k]};
			type.size += members[i][k]->size;
			is_full &= members[i][k] != &some;
		}
		SUCCEEDS(h5_filter_list_make(&list, &what, &pipeline));
		ck_assert_uint_eq(pipeline.filters[0].count, 6 + 6 * type.compound.count);
		ck_assert_uint_eq(pipeline.filters[0].values[1], is_full);
		h5_pipeline_release(&pipeline);
	}
}
END_TEST

/* Three values of the filter, three of the compound type, six of each member. */
START_TEST(nbit_describes_members)
{
	static const unsigned counts[] = {1, 169, 170, 171, 400};
	const uint64_t chunk = 10;

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct h5_datatype *type = h5_datatype_make_compound(4 * counts[i], counts[i]);
		const struct h5_filtered what = {.type = type, .rank = 1, .chunk = &chunk};
		struct h5_filter_list list;
		struct h5_pipeline pipeline;
		char name[16];
		int rc;

		for (unsigned k = 0; k < counts[i]; k++) {
			snprintf(name, sizeof name, "%u", k);
			SUCCEEDS(h5_datatype_add_member(type, name, 4 * k,
							h5_datatype_make_integer(4, true, H5_ORDER_LE)));
		}
		SUCCEEDS(h5_filter_list_parse("nbit", 4, &list));
		rc = h5_filter_list_make(&list, &what, &pipeline);
		ck_assert_int_eq(rc, 6 + 6 * counts[i] <= H5_CLIENT_VALUES_MAX ? 0 : -EINVAL);
		if (!rc) {
			ck_assert_uint_eq(pipeline.filters[0].count, 6 + 6 * counts[i]);
			ck_assert_uint_eq(pipeline.filters[0].values[0], 6 + 6 * counts[i]);
			/* The offset of the last member. */
			ck_assert_uint_eq(pipeline.filters[0].values[6 * counts[i]], 4 * (counts[i] - 1));
			h5_pipeline_release(&pipeline);
		}
		h5_datatype_free(type);
	}
}
END_TEST

/* Arrays in arrays, as deep as nbit may go, and one level more. */
START_TEST(nbit_of_deep_types)
{
	enum { DEPTH = 32 };
	struct h5_datatype types[DEPTH + 2] = {integers};
	const uint64_t chunk = 10;

	for (unsigned i = 1; i < DEPTH + 2; i++)
		types[i] = (struct h5_datatype){.class = H5_CLASS_ARRAY,
						.size = types[0].size,
						.array = {.base = &types[i - 1], .rank = 1, .dims = {1}}};
	for (unsigned depth = DEPTH; depth < DEPTH + 2; depth++) {
		const struct h5_filtered what = {.type = &types[depth], .rank = 1, .chunk = &chunk};
		struct h5_filter_list list;
		struct h5_pipeline pipeline;

		SUCCEEDS(h5_filter_list_parse("nbit", 4, &list));
		ck_assert_int_eq(h5_filter_list_make(&list, &what, &pipeline), depth > DEPTH ? -EINVAL : 0);
		if (depth > DEPTH)
			ck_assert_str_eq(h5_error_last()->text, "filters: too deep a type for nbit");
		else /* three of the filter, two of each array, five of the number */
			ck_assert_uint_eq(pipeline.filters[0].count, 3 + 2 * DEPTH + 5);
		ck_assert_uint_eq(pipeline.count, depth <= DEPTH);
		h5_pipeline_release(&pipeline);
	}
}
END_TEST

START_TEST(as_many_filters_as_there_can_be)
{
	char text[12 * (H5_FILTERS_MAX + 1)] = "";
	struct h5_filter_list list;

	for (unsigned i = 0; i < H5_FILTERS_MAX; i++)
		strcat(text, i ? ",shuffle" : "shuffle");
	SUCCEEDS(h5_filter_list_parse(text, strlen(text), &list));
	ck_assert_uint_eq(list.count, H5_FILTERS_MAX);
	strcat(text, ",shuffle");
	ck_assert_int_eq(h5_filter_list_parse(text, strlen(text), &list), -EINVAL);
	ck_assert_str_eq(h5_error_last()->text, "filters: more than 32");
}
END_TEST

/* ---- client values ---- */

struct made {
	uint16_t id;
	struct h5_filter_use use;
	int rc;
	bool optional;
	unsigned count;
	uint32_t values[10]; /* the first ones */
};

#define INTS(bytes, n)                                                                                       \
	.element_size = bytes, .chunk_size = bytes * n, .line = n, .numbers = H5_FILTER_INTEGERS,            \
	.bits = 8 * bytes
#define FLOATS(bytes, n)                                                                                     \
	.element_size = bytes, .chunk_size = bytes * n, .line = n, .numbers = H5_FILTER_FLOATS,              \
	.bits = 8 * bytes
#define OTHERS(bytes, n) .element_size = bytes, .chunk_size = bytes * n, .line = n, .bits = 8 * bytes

static const uint8_t fill_8[] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
static const uint32_t described[] = {4, 1, 2, 3, 4, 5};

/* As libhdf5, h5py and the filters' own programs set them; all but checksums, and what has parameters that
 * only some machines can read, may be left out for a chunk. */
static const struct made made[] = {
	{1, {INTS(4, 10)}, 0, true, 1, {4}},
	{1, {INTS(4, 10), .parameters = {1, {9}}}, 0, true, 1, {9}},
	{2, {INTS(4, 10)}, 0, true, 1, {4}},
	{3, {INTS(4, 10)}, 0, false, 0, {0}},
	{305, {INTS(4, 10)}, 0, true, 1, {1}},
	{307, {INTS(4, 10)}, 0, false, 1, {9}},
	{307, {INTS(4, 10), .parameters = {1, {1}}}, 0, false, 1, {1}},
	{32000, {INTS(4, 10)}, 0, true, 3, {4, 0x105, 40}},
	{32001, {INTS(4, 10)}, 0, true, 7, {2, 2, 4, 40, 5, 1, 0}},
	{32001, {INTS(4, 10), .parameters = {3, {9, 2, 3}}}, 0, true, 7, {2, 2, 4, 40, 9, 2, 3}},
	{32001, {INTS(4, 10), .parameters = {1, {9, 2, 3}}}, 0, true, 7, {2, 2, 4, 40, 9, 1, 0}},
	{32003, {INTS(4, 10)}, 0, true, 0, {0}},
	{32004, {INTS(4, 10)}, 0, false, 0, {0}},
	{32004, {INTS(4, 10), .parameters = {1, {16}}}, 0, false, 1, {16}},
	{32008, {INTS(4, 10)}, 0, false, 5, {0, 3, 4, 0, 0}},
	{32008, {INTS(4, 10), .parameters = {1, {2, 9}}}, 0, false, 5, {0, 3, 4, 0, 2}},
	{32008, {INTS(4, 10), .parameters = {2, {3, 9}}}, 0, false, 6, {0, 3, 4, 0, 3, 9}},
	{32015, {INTS(4, 10)}, 0, false, 1, {3}},
	{32020, {INTS(1, 10)}, 0, false, 4, {0, 1, 0, 1}},
	{32020, {INTS(2, 10), .is_signed = true}, 0, false, 4, {0, 2, 1, 1}},
	{32020, {INTS(4, 10), .is_signed = true, .parameters = {1, {7}}}, 0, false, 4, {0, 4, 1, 7}},
	{32020, {INTS(8, 10), .is_signed = true}, 0, false, 4, {0, 0, 0, 1}},
	{32020, {INTS(3, 10), .is_signed = true}, 0, false, 4, {0, 0, 0, 1}},
	{32020, {FLOATS(4, 10), .is_signed = true}, 0, false, 4, {0, 0, 0, 1}},
	{32020, {INTS(4, 10), .is_signed = true, .is_big_endian = true}, 0, false, 4, {0, 0, 0, 1}},
	/* szip: pixels are as wide as numbers are, up to 24 bits. */
	{4, {INTS(4, 100)}, 0, true, 4, {32 | 128 | 8 | 1, 8, 32, 100}},
	{4, {FLOATS(8, 100), .is_big_endian = true}, 0, true, 4, {32 | 128 | 16 | 1, 8, 64, 100}},
	{4,
	 {.element_size = 4, .chunk_size = 400, .line = 100, .numbers = H5_FILTER_INTEGERS, .bits = 24},
	 0,
	 true,
	 4,
	 {169, 8, 24, 100}},
	{4,
	 {.element_size = 4, .chunk_size = 400, .line = 100, .numbers = H5_FILTER_INTEGERS, .bits = 25},
	 0,
	 true,
	 4,
	 {169, 8, 32, 100}},
	{4,
	 {.element_size = 8, .chunk_size = 800, .line = 100, .numbers = H5_FILTER_INTEGERS, .bits = 32},
	 0,
	 true,
	 4,
	 {169, 8, 32, 100}},
	{4,
	 {.element_size = 8, .chunk_size = 800, .line = 100, .numbers = H5_FILTER_INTEGERS, .bits = 33},
	 0,
	 true,
	 4,
	 {169, 8, 64, 100}},
	{4, {OTHERS(4, 100)}, -EINVAL, false, 0, {0}},
	{4, {FLOATS(16, 100)}, -EINVAL, false, 0, {0}},
	{4, {INTS(4, 100), .parameters = {2, {4, 7}}}, -EINVAL, false, 0, {0}},
	/* Lines that are shorter than a block do not count; the chunk must be as long. */
	{4, {INTS(4, 8)}, 0, true, 4, {169, 8, 32, 8}},
	{4,
	 {.element_size = 4, .chunk_size = 32, .line = 7, .numbers = H5_FILTER_INTEGERS, .bits = 32},
	 0,
	 true,
	 4,
	 {169, 8, 32, 8}},
	{4, {INTS(4, 7)}, -EINVAL, false, 0, {0}},
	{4, {INTS(1, 9000)}, 0, true, 4, {169, 8, 8, 1024}},
	{4, {INTS(1, 9000), .parameters = {2, {32, 32}}}, 0, true, 4, {169, 32, 8, 4096}},
	{4, {INTS(1, 1023)}, 0, true, 4, {169, 8, 8, 1023}},
	/* scale-offset */
	{6, {INTS(4, 10), .is_signed = true}, 0, true, 20, {2, 0, 10, 0, 4, 1, 0, 1, 0, 0}},
	{6, {INTS(4, 10), .fill = fill_8}, 0, true, 20, {2, 0, 10, 0, 4, 0, 0, 1, 0x44332211, 0}},
	{6,
	 {INTS(4, 10), .fill = fill_8, .is_big_endian = true},
	 0,
	 true,
	 20,
	 {2, 0, 10, 0, 4, 0, 1, 1, 0x11223344, 0}},
	{6, {INTS(8, 10), .fill = fill_8}, 0, true, 20, {2, 0, 10, 0, 8, 0, 0, 1, 0x44332211, 0x88776655}},
	{6,
	 {INTS(8, 10), .fill = fill_8, .is_big_endian = true},
	 0,
	 true,
	 20,
	 {2, 0, 10, 0, 8, 0, 1, 1, 0x55667788, 0x11223344}},
	{6,
	 {INTS(1, 10), .fill = fill_8, .parameters = {1, {8}}},
	 0,
	 true,
	 20,
	 {2, 8, 10, 0, 1, 0, 0, 1, 0x11, 0}},
	{6, {INTS(1, 10), .parameters = {1, {9}}}, -EINVAL, false, 0, {0}},
	{6, {FLOATS(4, 10), .parameters = {1, {40}}}, 0, true, 20, {0, 40, 10, 1, 4, 0, 0, 1, 0, 0}},
	{6, {FLOATS(8, 10), .parameters = {1, {2}}}, 0, true, 20, {0, 2, 10, 1, 8, 0, 0, 1, 0, 0}},
	{6, {FLOATS(8, 10)}, -EINVAL, false, 0, {0}},
	{6, {FLOATS(2, 10), .parameters = {1, {2}}}, -EINVAL, false, 0, {0}},
	{6, {FLOATS(16, 10), .parameters = {1, {2}}}, -EINVAL, false, 0, {0}},
	{6, {INTS(16, 10)}, -EINVAL, false, 0, {0}},
	{6, {OTHERS(4, 10)}, -EINVAL, false, 0, {0}},
	{5,
	 {OTHERS(4, 10), .description = described, .described = 6},
	 0,
	 true,
	 9,
	 {9, 0, 10, 4, 1, 2, 3, 4, 5}},
	{5,
	 {OTHERS(4, 10), .description = described, .described = 2, .is_full = true},
	 0,
	 true,
	 5,
	 {5, 1, 10, 4, 1}},
	{32013, {INTS(4, 10)}, -ENOTSUP, false, 0, {0}},
	{40000, {INTS(4, 10)}, -ENOTSUP, false, 0, {0}},
};

START_TEST(values_of_new_filters)
{
	for (unsigned i = 0; i < sizeof made / sizeof *made; i++) {
		const struct made *m = &made[i];
		struct h5_client_values values;

		memset(&values, 0xa5, sizeof values);
		ck_assert_msg(h5_filter_values(m->id, &m->use, &values) == m->rc, "%u: %u", i, m->id);
		if (m->rc)
			continue;
		ck_assert_msg(values.optional == m->optional && values.count == m->count, "%u: %u", i, m->id);
		for (unsigned k = 0; k < m->count; k++)
			ck_assert_msg(values.values[k] == (k < 10 ? m->values[k] : 0), "%u: %u: %u", i, m->id,
				      k);
	}
	ck_assert_str_eq(h5_error_last()->text, "filters: filter (40000) cannot be given to new datasets");
}
END_TEST

/* The least and the most of each number, and what is beside them. */
START_TEST(numbers_have_bounds)
{
	static const struct {
		const char *before;
		uint64_t least, most;
	} numbers[] = {
		{"deflate(", 0, 9}, {"szip(ec:", 2, 32}, {"scaleoffset(", 0, 64}, {"lzo(", 1, 9},
		{"bzip2(", 1, 9},   {"blosc(", 0, 9},	 {"lz4(", 0, 1 << 30},	  {"bitshuffle(zstd:", 0, 22},
		{"zstd(", 1, 22},   {"vbz(", 0, 22}};
	static const char *const others[] = {"lz4(;)",
					     "lz4(1/)",
					     "lz4(/1)",
					     "lz4(1:)",
					     "lz4(:1)",
					     "lz4( 1)",
					     "lz4(1 )",
					     "lz4(+1)",
					     "lz4(0x1)",
					     "lz4(4294967296)",
					     "lz4(4294967297)",
					     "lz4(18446744073709551616)",
					     "lz4(18446744073709551617)",
					     "lz4(42949672960)",
					     "lz4(184467440737095516170)",
					     "lz4()"};
	struct h5_filter_list list;
	char text[64];

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		for (unsigned k = 0; k < 4; k++) {
			const uint64_t number = k == 0	 ? numbers[i].least
						: k == 1 ? numbers[i].most
						: k == 2 ? numbers[i].most + 1
							 : numbers[i].least - 1;
			const struct h5_filter_parameters *found = &list.filters[0].parameters;

			snprintf(text, sizeof text, "%s%ju)", numbers[i].before, (uintmax_t)number);
			if (!is_built_in(text))
				continue;
			ck_assert_msg(h5_filter_list_parse(text, strlen(text), &list) ==
					      (k < 2 ? 0 : -EINVAL),
				      "%s", text);
			if (k < 2)
				ck_assert_uint_eq(found->values[found->count - 1], number);
		}
	for (size_t i = 0; is_built_in("lz4") && i < sizeof others / sizeof *others; i++)
		ck_assert_msg(h5_filter_list_parse(others[i], strlen(others[i]), &list) == -EINVAL, "%s",
			      others[i]);
}
END_TEST

START_TEST(what_a_parameter_may_be_is_told)
{
	static const struct {
		uint16_t id;
		unsigned i;
		const char *text, *said;
	} wrong[] = {
		{1, 0, "10", "filters: deflate(10): it is a number from 0 to 9"},
		{1, 1, "1", "filters: deflate has 1 parameters"},
		{3, 0, "1", "filters: fletcher32 has 0 parameters"},
		{4, 0, "e", "filters: szip(e): it is one of ec nn"},
		{4, 0, "ecc", "filters: szip(ecc): it is one of ec nn"},
		{4, 1, "33", "filters: szip(33): it is a number from 2 to 32"},
		{4, 2, "2", "filters: szip has 2 parameters"},
		{32001, 2, "lzo", "filters: blosc(lzo): it is one of blosclz lz4 lz4hc snappy zlib zstd"},
		{32008, 0, "", "filters: bitshuffle(): it is one of none lz4 zstd"}};
	uint32_t value;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		ck_assert_int_eq(h5_filter_parameter(wrong[i].id, wrong[i].i, wrong[i].text,
						     strlen(wrong[i].text), &value),
				 -EINVAL);
		ck_assert_str_eq(h5_error_last()->text, wrong[i].said);
	}
}
END_TEST

/* Those by which a filter can be had again; fewer if it has fewer values. */
START_TEST(parameters_of_values)
{
	static const uint32_t values[] = {1 | 4 | 8 | 128, 8, 3, 5, 6, 7, 2, 9};
	static const struct {
		uint16_t id;
		unsigned count, found;
		uint32_t parameters[3];
	} cases[] = {{1, 1, 1, {141}},	 {1, 0, 0, {0}},	   {4, 4, 2, {4, 8}},
		     {4, 2, 2, {4, 8}},	 {4, 1, 1, {4}},	   {6, 2, 1, {8}},
		     {6, 1, 0, {0}},	 {32001, 7, 3, {6, 7, 2}}, {32001, 6, 2, {6, 7}},
		     {32001, 4, 0, {0}}, {32008, 6, 2, {6, 7}},	   {32008, 5, 1, {6}},
		     {32020, 4, 1, {5}}, {3, 8, 0, {0}},	   {40000, 8, 0, {0}}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_filter_parameters found;

		memset(&found, 0xa5, sizeof found);
		h5_filter_parameters_of(cases[i].id, values, cases[i].count, &found);
		ck_assert_msg(found.count == cases[i].found, "%zu", i);
		for (unsigned k = 0; k < found.count; k++)
			ck_assert_msg(found.values[k] == cases[i].parameters[k], "%zu, %u", i, k);
	}
}
END_TEST

UNIT_MAIN_LOOPS("filter_list", {filters_from_text, 1}, {filters_that_nobody_knows, 1}, {parameters, 1},
		{nbit_describes_members, 1}, {nbit_leaves_out_bits, 1}, {nbit_of_deep_types, 1},
		{as_many_filters_as_there_can_be, 1}, {values_of_new_filters, 1}, {numbers_have_bounds, 1},
		{what_a_parameter_may_be_is_told, 1}, {parameters_of_values, 1})

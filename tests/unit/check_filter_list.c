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

UNIT_MAIN_LOOPS("filter_list", {filters_from_text, 1}, {filters_that_nobody_knows, 1}, {parameters, 1},
		{nbit_describes_members, 1})

/* Text that a user sets: as a value of many types, and as the name of a type; and files that a user writes:
 * the header of an array, and a table. An input is the text or the file. */
#include "base/error.h"
#include "format/datatype_make.h"
#include "fuzz.h"
#include "object/filter_list.h"
#include "object/numpy_parse.h"
#include "object/value_parse.h"
#include "vfs/name.h"
#include "view/csv_read.h"
#include "view/npy_header.h"

#include <stdlib.h>
#include <string.h>

/* What is read is written again, and that is read as the same. */
static void parse(const struct h5_datatype *type, const struct h5_dataspace *space, const char *text,
		  size_t n)
{
	const struct h5_value_context context = {0};
	const struct h5_value_parser parser = {.context = &context};
	size_t size = (size_t)space->elements * type->size;
	uint8_t *data = calloc(size + 1, 1), *again = calloc(size + 1, 1);
	struct h5_buf out, twice;

	FUZZ_HOLDS(data && again);
	h5_buf_init(&out, 1 << 24);
	h5_buf_init(&twice, 1 << 24);
	if (!h5_value_parse(&parser, type, space, text, n, NULL, data)) {
		FUZZ_HOLDS(!h5_value_text(&context, type, space, data, &out));
		FUZZ_HOLDS(!h5_value_parse(&parser, type, space, out.size ? out.data : "", out.size, NULL,
					   again));
		FUZZ_HOLDS(!h5_value_text(&context, type, space, again, &twice));
		FUZZ_HOLDS(out.size == twice.size && (!out.size || !memcmp(out.data, twice.data, out.size)));
	}
	h5_buf_release(&out);
	h5_buf_release(&twice);
	free(data);
	free(again);
}

/* Reads back as it is, if it needs no heap. */
static void guess(const char *text, size_t n)
{
	const struct h5_value_context context = {0};
	const struct h5_value_parser parser = {.context = &context};
	struct h5_dataspace space;
	struct h5_datatype *type;
	struct h5_buf out;
	uint8_t *data;

	FUZZ_HOLDS(!h5_value_guess(text, n, 8, &type, &space));
	FUZZ_HOLDS(space.elements <= n || space.kind == H5_SPACE_SCALAR);
	if (type->class != H5_CLASS_VLEN) {
		data = calloc((size_t)space.elements + 1, type->size);
		FUZZ_HOLDS(data && !h5_value_parse(&parser, type, &space, text, n, NULL, data));
		h5_buf_init(&out, 1 << 24);
		FUZZ_HOLDS(!h5_value_text(&context, type, &space, data, &out));
		FUZZ_HOLDS(out.size == n && (!n || !memcmp(out.data, text, n)));
		h5_buf_release(&out);
		free(data);
	}
	h5_datatype_free(type);
}

static void parse_type(const char *text, size_t n)
{
	struct h5_dataspace space;
	struct h5_datatype *type;
	struct h5_buf out;

	if (h5_numpy_parse_shaped(text, n, 8, &type, &space))
		return;
	FUZZ_HOLDS(type->size);
	h5_buf_init(&out, 1 << 20);
	(void)h5_datatype_encode(type, true, &out);
	h5_buf_release(&out);
	h5_datatype_free(type);
}

/* Any link's name has a file name, which leads back to it. */
static void escape(const char *name, size_t n)
{
	char file_name[H5_NAME_MAX + 1], back[H5_NAME_MAX + 1];
	size_t size = h5_name_escape(name, n, file_name);

	FUZZ_HOLDS(size && size <= H5_NAME_MAX && size == strlen(file_name));
	FUZZ_HOLDS(!strchr(file_name, '/') && strcmp(file_name, ".") && strcmp(file_name, ".."));
	if (h5_name_is_cut(file_name))
		return;
	FUZZ_HOLDS(h5_name_unescape(file_name, back) == n && (!n || !memcmp(back, name, n)));
}

/* A list that new datasets can have prints as one that means the same. */
static void parse_filters(const char *text, size_t n)
{
	struct h5_datatype *type = h5_datatype_make_integer(4, false, H5_ORDER_LE);
	const uint64_t chunk = 1024;
	const struct h5_filtered what = {.type = type, .rank = 1, .chunk = &chunk};
	struct h5_filter_list list, again;
	struct h5_pipeline pipeline;
	struct h5_buf out, twice;

	FUZZ_HOLDS(type);
	if (h5_filter_list_parse(text, n, &list) || h5_filter_list_make(&list, &what, &pipeline)) {
		h5_datatype_free(type);
		return;
	}
	h5_buf_init(&out, 1 << 20);
	h5_buf_init(&twice, 1 << 20);
	h5_filter_list_print(&pipeline, &out);
	h5_pipeline_release(&pipeline);
	FUZZ_HOLDS(!h5_filter_list_parse(out.size ? out.data : "", out.size, &again));
	FUZZ_HOLDS(!h5_filter_list_make(&again, &what, &pipeline));
	h5_datatype_free(type);
	h5_filter_list_print(&pipeline, &twice);
	h5_pipeline_release(&pipeline);
	FUZZ_HOLDS(out.size == twice.size && (!out.size || !memcmp(out.data, twice.data, out.size)));
	h5_buf_release(&out);
	h5_buf_release(&twice);
}

static void run_text(const void *arg, const uint8_t *data, size_t size)
{
	static const char *const types[] = {"<i8",
					    "|u1",
					    "<f2",
					    ">f8",
					    "<c8",
					    "|b1",
					    "S7",
					    "|V3",
					    "(2,)<i2",
					    "(2,3)S2",
					    "[[\"a\",\"<i4\"],[\"b\",[[\"c\",\"S3\",[2]],[\"d\",\"<f4\"]]]]"};
	const char *text = (const char *)data;
	struct h5_dataspace space;
	struct h5_datatype *type;

	(void)arg;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		FUZZ_HOLDS(!h5_numpy_parse_shaped(types[i], strlen(types[i]), 8, &type, &space));
		parse(type, &space, text, size);
		h5_datatype_free(type);
	}
	guess(text, size);
	parse_type(text, size);
	escape(text, size);
	parse_filters(text, size);
}

/* A header is found at the same place however much of the file is there, and has a type and a shape. */
static void run_npy(const void *arg, const uint8_t *data, size_t size)
{
	struct h5_npy_header header;
	size_t n, less;

	(void)arg;
	if (h5_npy_header_size(data, size, &n) || !n)
		return;
	for (size_t i = 0; i < 12 && i < size; i++)
		FUZZ_HOLDS(!h5_npy_header_size(data, i, &less) && (!less || less == n));
	if (n > size || h5_npy_header_read(data, n, 8, &header))
		return;
	FUZZ_HOLDS(header.type->size && header.space.rank <= H5_RANK_MAX);
	h5_npy_header_release(&header);
}

/* The rows of a table, and a sum over what they have. */
struct rows {
	uint64_t count, sum;
};

static int add_row(void *arg, const struct h5_csv_row *row)
{
	struct rows *rows = arg;

	FUZZ_HOLDS(row->count);
	rows->count++;
	for (size_t i = 0, begin = 0; i < row->count; begin = row->end[i++]) {
		FUZZ_HOLDS(row->end[i] >= begin);
		rows->sum = rows->sum * 31 + i;
		for (size_t k = begin; k < row->end[i]; k++)
			rows->sum = rows->sum * 31 + (uint8_t)row->text[k];
	}
	return 0;
}

static int read_table(const char *text, size_t n, size_t piece, struct rows *rows)
{
	struct h5_csv_reader reader = {.row = add_row, .arg = rows};
	int rc = 0;

	for (size_t at = 0; at < n && !rc; at += piece)
		rc = h5_csv_read(&reader, text + at, piece < n - at ? piece : n - at);
	if (!rc)
		rc = h5_csv_end(&reader);
	h5_csv_release(&reader);
	return rc;
}

/* The pieces in which a table comes make no difference. */
static void run_csv(const void *arg, const uint8_t *data, size_t size)
{
	static const size_t pieces[] = {1, 2, 7};
	struct rows whole = {0};
	int rc = read_table((const char *)data, size, size + 1, &whole);

	(void)arg;
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		struct rows rows = {0};

		FUZZ_HOLDS(read_table((const char *)data, size, pieces[i], &rows) == rc);
		FUZZ_HOLDS(rows.count == whole.count && rows.sum == whole.sum);
	}
}

bool fuzz_text_at(unsigned n, struct fuzz_target *target)
{
	static const struct fuzz_target targets[] = {{.name = "text", .run = run_text},
						     {.name = "npy", .run = run_npy},
						     {.name = "csv", .run = run_csv}};

	if (n >= sizeof targets / sizeof *targets)
		return false;
	*target = targets[n];
	return true;
}

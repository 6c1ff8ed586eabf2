/* What a plot keeps of the numbers of a dataset, and how the picture shows it. */
#include "dataset/create.h"
#include "empty_scene.h"
#include "format/datatype_make.h"
#include "object/attribute_write.h"
#include "view/plot.h"
#include "view/views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A dataset of n elements, begun as its plot. The type is released. */
static void begin(struct h5_view *v, struct h5_datatype *type, uint64_t n, const void *data)
{
	struct h5_new_dataset how = {.type = type,
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {n}, .max = {n}},
				     .layout = H5_LAYOUT_CONTIGUOUS};
	struct h5_dataset_writer *writer;

	*v = (struct h5_view){
		.ops = &h5_view_svg, .file = scratch.file, .context = {.file = scratch.file}, .state = 1};
	SUCCEEDS(h5_dataset_create(scratch.file, &how, &v->address));
	if (n) {
		SUCCEEDS(h5_dataset_writer_get(scratch.file, v->address, false, &writer));
		SUCCEEDS(h5_dataset_writer_write(writer, 0, data, n * type->size));
		SUCCEEDS(h5_dataset_writer_settle(writer));
		h5_dataset_writer_put(writer);
	}
	h5_datatype_free(type);
	SUCCEEDS(h5_tx_commit(scratch.file));
	SUCCEEDS(h5_view_begin(v, NULL));
	SUCCEEDS(h5_view_complete(v));
}

/* ---- points ---- */

static void check_point(const struct h5_plot_point *p, const double *data, uint64_t number, const char *what)
{
	ck_assert_msg(p->number == number, "%s: %ju, not %ju", what, (uintmax_t)p->number, (uintmax_t)number);
	ck_assert_double_eq(p->x, (double)number);
	ck_assert_double_eq(p->y, data[number]);
}

/* Element i of n is in bin i * bins / n; a gap is nothing. */
static void check_bins(const struct h5_plot *p, unsigned line, const double *data, uint64_t n)
{
	uint64_t i = 0;

	for (unsigned b = 0; b < p->bins; b++) {
		const struct h5_plot_bin *bin = &p->lines[line].bins[b];
		uint64_t first = UINT64_MAX, least = 0, greatest = 0, last = 0;

		for (; i < n && i * p->bins / n == b; i++) {
			if (isnan(data[i]))
				continue;
			if (first == UINT64_MAX)
				first = least = greatest = i;
			least = data[i] < data[least] ? i : least;
			greatest = data[i] > data[greatest] ? i : greatest;
			last = i;
		}
		ck_assert_int_eq(bin->has_points, first != UINT64_MAX);
		if (!bin->has_points)
			continue;
		check_point(&bin->first, data, first, "first");
		check_point(&bin->least, data, least, "least");
		check_point(&bin->greatest, data, greatest, "greatest");
		check_point(&bin->last, data, last, "last");
	}
	ck_assert_uint_eq(i, n);
}

/* Up to more elements than are read at once, some of which are the same. Every seventh one, and some in a
 * row, are gaps. */
START_TEST(bins_have_four_points)
{
	static const uint64_t sizes[] = {1, 2, 849, 850, 851, 1699, 1700, 1701, 8191, 8192, 8193, 20000};
	double *data = malloc(20000 * sizeof *data);

	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		const uint64_t n = sizes[k];
		double low = INFINITY, high = -INFINITY;
		struct h5_plot plot;
		struct h5_view v;

		for (uint64_t i = 0; i < n; i++)
			data[i] = i % 7 == 1 || (i > 300 && i < 400) ? NAN
								     : (double)(i * 7919 % 1009 / 100) - 5;
		begin(&v, h5_datatype_make_float(8, H5_ORDER_LE), n, data);
		SUCCEEDS(h5_plot_make(&v, &plot));
		ck_assert_uint_eq(plot.count, 1);
		ck_assert_uint_eq(plot.left_out, 0);
		ck_assert_uint_eq(plot.bins, n < 850 ? n : 850);
		check_bins(&plot, 0, data, n);
		for (uint64_t i = 0; i < n; i++) {
			low = data[i] < low ? data[i] : low;
			high = data[i] > high ? data[i] : high;
		}
		ck_assert_double_eq(plot.x.low, 0);
		ck_assert_double_eq(plot.x.high, (double)(n - 1 - ((n - 1) % 7 == 1)));
		ck_assert_double_eq(plot.y.low, low);
		ck_assert_double_eq(plot.y.high, high);
		h5_plot_release(scratch.file, &plot);
		h5_view_release(&v);
	}
	free(data);
}
END_TEST

/* Numbers up to 1e300, so that differences are finite, too. */
START_TEST(infinite_numbers_are_gaps)
{
	const double data[] = {INFINITY, 1e300, 1.1e300, -1e300, -1.1e300, -INFINITY};
	struct h5_plot plot;
	struct h5_view v;

	begin(&v, h5_datatype_make_float(8, H5_ORDER_LE), 6, data);
	SUCCEEDS(h5_plot_make(&v, &plot));
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(plot.lines[0].bins[i].has_points, i == 1 || i == 3);
	ck_assert_double_eq(plot.x.low, 1);
	ck_assert_double_eq(plot.x.high, 3);
	ck_assert_double_eq(plot.y.low, -1e300);
	ck_assert_double_eq(plot.y.high, 1e300);
	h5_plot_release(scratch.file, &plot);
	h5_view_release(&v);
}
END_TEST

/* Columns of a compound, with members between them that are no numbers; eight have lines. */
START_TEST(columns_have_lines)
{
	enum { SIZE = 4 + 8 + 7 + 2, ROWS = 3000 };
	static const char *const expected[] = {"f", "b[0]", "b[1]", "b[2]", "b[3]", "b[4]", "b[5]", "b[6]"};
	uint8_t *data = malloc(ROWS * SIZE);
	double *columns = malloc(8 * ROWS * sizeof *columns);
	struct h5_datatype *type = h5_datatype_make_compound(SIZE, 4);
	struct h5_plot plot;
	struct h5_view v;

	SUCCEEDS(h5_datatype_add_member(type, "s", 0,
					h5_datatype_make_string(4, H5_PAD_NULLPAD, H5_CHARSET_ASCII)));
	SUCCEEDS(h5_datatype_add_member(type, "f", 4, h5_datatype_make_float(8, H5_ORDER_LE)));
	SUCCEEDS(h5_datatype_add_member(
		type, "b", 12,
		h5_datatype_make_array(1, (uint64_t[]){7}, h5_datatype_make_integer(1, false, H5_ORDER_LE))));
	SUCCEEDS(h5_datatype_add_member(
		type, "more", 19,
		h5_datatype_make_array(1, (uint64_t[]){2}, h5_datatype_make_integer(1, true, H5_ORDER_LE))));
	memset(data, 'x', ROWS * SIZE);
	for (unsigned i = 0; i < ROWS; i++) {
		columns[i] = (double)(i * 31 % 101) / 4;
		memcpy(data + i * SIZE + 4, columns + i, 8);
		for (unsigned k = 0; k < 7; k++) {
			data[i * SIZE + 12 + k] = (uint8_t)(i * (k + 3));
			columns[(k + 1) * ROWS + i] = (uint8_t)(i * (k + 3));
		}
	}
	begin(&v, type, ROWS, data);
	SUCCEEDS(h5_plot_make(&v, &plot));
	ck_assert_uint_eq(plot.count, 8);
	ck_assert_uint_eq(plot.left_out, 2);
	for (unsigned k = 0; k < 8; k++) {
		ck_assert_uint_eq(plot.lines[k].name.size, strlen(expected[k]));
		ck_assert_mem_eq(plot.lines[k].name.data, expected[k], strlen(expected[k]));
		check_bins(&plot, k, columns + k * ROWS, ROWS);
	}
	h5_plot_release(scratch.file, &plot);
	h5_view_release(&v);
	free(columns);
	free(data);
}
END_TEST

/* Of an array with more of them than there are lines, the first ones are shown. */
START_TEST(some_columns_of_an_array)
{
	enum { COLUMNS = 10, ROWS = 20 };
	uint8_t data[ROWS * COLUMNS * 2];
	double columns[COLUMNS][ROWS];
	struct h5_datatype *type = h5_datatype_make_compound(COLUMNS * 2, 1);
	struct h5_plot plot;
	struct h5_view v;

	SUCCEEDS(h5_datatype_add_member(
		type, "a", 0,
		h5_datatype_make_array(1, (uint64_t[]){COLUMNS},
				       h5_datatype_make_integer(2, false, H5_ORDER_LE))));
	for (unsigned i = 0; i < ROWS * COLUMNS; i++) {
		columns[i % COLUMNS][i / COLUMNS] = i * 300;
		data[2 * i] = (uint8_t)(i * 300);
		data[2 * i + 1] = (uint8_t)(i * 300 >> 8);
	}
	begin(&v, type, ROWS, data);
	SUCCEEDS(h5_plot_make(&v, &plot));
	ck_assert_uint_eq(plot.count, 8);
	ck_assert_uint_eq(plot.left_out, 2);
	for (unsigned k = 0; k < 8; k++)
		check_bins(&plot, k, columns[k], ROWS);
	h5_plot_release(scratch.file, &plot);
	h5_view_release(&v);
}
END_TEST

/* ---- the picture ---- */

static void check_picture(const double *data, uint64_t n, const char *const *parts)
{
	struct h5_view v;
	char *text;

	begin(&v, h5_datatype_make_float(8, H5_ORDER_LE), n, data);
	SUCCEEDS(h5_view_open(&v, true));
	text = calloc(1, (size_t)v.size + 1);
	SUCCEEDS(h5_view_read(&v, 0, text, (size_t)v.size));
	for (; *parts; parts++)
		ck_assert_msg(strstr(text, *parts), "no %s in %s", *parts, text);
	ck_assert_ptr_null(strstr(text, ">0.5<")); /* between two elements is nothing */
	free(text);
	h5_view_release(&v);
}

/* The picture has 850 pixels from 85 on, and 425 from 470 up to 45, of which 3 % of the range are margins. */
START_TEST(lines_are_drawn_to_scale)
{
	/* From -50 to 50, which are -53 and 53 with margins, so a unit has 425 / 106 pixels. */
	static const double falls[] = {50, 0, NAN, NAN, -50};
	static const char *const path[] = {" d=\"M85.0,57.0L297.5,257.5M935.0,458.0m-3,0h6m-3,-3v6\"/>",
					   "<path d=\"M85.0,45V470\" stroke=\"#ddd\"/><text x=\"85.0\" "
					   "y=\"488\" text-anchor=\"middle\">0<",
					   "<text x=\"935.0\" y=\"488\" text-anchor=\"middle\">4<",
					   "<path d=\"M85,257.5H935\" stroke=\"#ddd\"/><text x=\"79\" "
					   "y=\"261.5\" text-anchor=\"end\">0<",
					   "<text x=\"79\" y=\"101.1\" text-anchor=\"end\">40<",
					   NULL};
	/* A number alone has 1.5 times, and half of it, around it. */
	static const double one[] = {10};
	static const char *const middle[] = {" d=\"M510.0,257.5m-3,0h6m-3,-3v6\"/>", NULL};

	check_picture(falls, 5, path);
	check_picture(one, 1, middle);
	check_picture(NULL, 0, (const char *const[]){" d=\"\"/>", NULL});
}
END_TEST

/* The nine parts of the axis of elements are 1, 2 or 5 wide, and no more than they have to be. */
START_TEST(ticks_are_at_round_numbers)
{
	static const double zeros[46];

	check_picture(zeros, 10,
		      (const char *const[]){"<text x=\"179.4\" y=\"488\" text-anchor=\"middle\">1<", NULL});
	check_picture(zeros, 19,
		      (const char *const[]){"<text x=\"179.4\" y=\"488\" text-anchor=\"middle\">2<", NULL});
	check_picture(zeros, 46,
		      (const char *const[]){"<text x=\"179.4\" y=\"488\" text-anchor=\"middle\">5<", NULL});
}
END_TEST

static void give_text(uint64_t address, const char *name, const char *text)
{
	static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	struct h5_datatype *type =
		h5_datatype_make_string((uint32_t)strlen(text) + 1, H5_PAD_NULLTERM, H5_CHARSET_UTF8);

	(void)h5_attribute_remove(scratch.file, address, name);
	SUCCEEDS(h5_attribute_create(scratch.file, address, name, type, &scalar, text));
	h5_datatype_free(type);
}

static int path_of(void *arg, uint64_t address, struct h5_buf *path)
{
	(void)arg;
	(void)address;
	h5_buf_text(path, "way/to/it");
	return 0;
}

/* The title is the path, and the axis has the name alone, or what the attributes say. */
START_TEST(axes_have_names)
{
#define FORTY "0123456789012345678901234567890123456789"
	static const struct {
		const char *name, *text; /* of an attribute that it gets */
		const char *label;
	} steps[] = {{NULL, NULL, "it"},
		     {"units", "m < s", "it (m &lt; s)"},
		     {"long_name", "wind \"&\t\1", "wind \"&amp; \xef\xbf\xbd (m &lt; s)"},
		     {"long_name", "\u00b0\u20ac\U0001f600", "\u00b0\u20ac\U0001f600 (m &lt; s)"},
		     /* 55 characters, and one more. */
		     {"long_name", FORTY "\u00b0\u00b0\u00b0\u00b0567",
		      FORTY "\u00b0\u00b0\u00b0\u00b0567 (m &lt; s)"},
		     {"long_name", FORTY "\u00b0\u00b0\u00b0\u00b05678",
		      FORTY "\u00b0\u00b0\u00b0\u00b05678 (m &lt; s\u2026"}};
	char expected[200];
	struct h5_view v;

	begin(&v, h5_datatype_make_float(8, H5_ORDER_LE), 0, NULL);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct h5_view again = {.ops = &h5_view_svg,
					.file = scratch.file,
					.address = v.address,
					.context = {.file = scratch.file, .object_path = path_of},
					.state = 2 + i};
		char *text;

		if (steps[i].name)
			give_text(v.address, steps[i].name, steps[i].text);
		SUCCEEDS(h5_tx_commit(scratch.file));
		SUCCEEDS(h5_view_begin(&again, NULL));
		SUCCEEDS(h5_view_open(&again, true));
		text = calloc(1, (size_t)again.size + 1);
		SUCCEEDS(h5_view_read(&again, 0, text, (size_t)again.size));
		snprintf(expected, sizeof expected, "text-anchor=\"middle\">%s</text>\n</svg>\n",
			 steps[i].label);
		ck_assert_msg(strstr(text, expected), "no %s in %s", expected, text);
		ck_assert_ptr_nonnull(strstr(text, "<title>way/to/it</title>"));
		ck_assert_ptr_nonnull(strstr(text, "text-anchor=\"middle\">element</text>"));
		free(text);
		h5_view_release(&again);
	}
	h5_view_release(&v);
}
END_TEST

/* Numbers of one dimension, or a column of them. */
START_TEST(datasets_that_have_plots)
{
	struct h5_datatype *number = h5_datatype_make_integer(2, true, H5_ORDER_BE),
			   *text = h5_datatype_make_string(4, H5_PAD_NULLPAD, H5_CHARSET_ASCII),
			   *texts = h5_datatype_make_compound(8, 2), *mixed = h5_datatype_make_compound(8, 2);
	struct h5_dataset d = {.type = number, .space = {.kind = H5_SPACE_SIMPLE, .rank = 1}};

	for (unsigned i = 0; i < 2; i++)
		SUCCEEDS(
			h5_datatype_add_member(texts, i ? "b" : "a", 4 * i,
					       h5_datatype_make_string(4, H5_PAD_NULLPAD, H5_CHARSET_ASCII)));
	SUCCEEDS(h5_datatype_add_member(mixed, "a", 0, h5_datatype_make_integer(4, true, H5_ORDER_LE)));
	SUCCEEDS(h5_datatype_add_member(mixed, "b", 4,
					h5_datatype_make_string(4, H5_PAD_NULLPAD, H5_CHARSET_ASCII)));
	ck_assert(h5_plot_can(&d));
	d.space.rank = 2;
	ck_assert(!h5_plot_can(&d));
	d.space.rank = 0;
	ck_assert(!h5_plot_can(&d));
	d.space.rank = 1;
	d.type = text;
	ck_assert(!h5_plot_can(&d));
	d.type = texts;
	ck_assert(!h5_plot_can(&d));
	d.type = mixed;
	ck_assert(h5_plot_can(&d));
	h5_datatype_free(number);
	h5_datatype_free(text);
	h5_datatype_free(texts);
	h5_datatype_free(mixed);
}
END_TEST

UNIT_MAIN_AROUND("plot", setup, teardown, bins_have_four_points, infinite_numbers_are_gaps,
		 columns_have_lines, some_columns_of_an_array, lines_are_drawn_to_scale,
		 ticks_are_at_round_numbers, axes_have_names, datasets_that_have_plots)

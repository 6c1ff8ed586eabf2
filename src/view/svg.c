/* A dataset of one dimension as a plot: a picture of its numbers, or of the columns of a compound that are
 * numbers.
 *
 * Scalable Vector Graphics (SVG) 1.1, W3C Recommendation; Extensible Markup Language (XML) 1.0. The file has
 * at most as many points as the plot has room for (plot.h), so it is made as a whole. */
#include "view/views.h"

#include "base/escape.h"
#include "view/document.h"
#include "view/plot.h"

#include <math.h>
#include <string.h>

enum {
	WIDTH = 960,
	HEIGHT = 540,
	LEFT = 85,
	TOP = 45,
	RIGHT = LEFT + H5_PLOT_BINS,
	BOTTOM = 470,
	TICKS_X = 9, /* about */
	TICKS_Y = 7,
	TICKS_MOST = 100,
	TITLE = 110, /* most characters of a text */
	LABEL = 55,
	NAME = 40,
	TEXT_MAX = 1 << 14,
	DOCUMENT_MAX = 1 << 22,
};

static const char *const colours[H5_PLOT_LINES] = {"#1f5fa8", "#c8401f", "#2f8f3f", "#8a4fb0",
						   "#b8860b", "#008b8b", "#c03c7c", "#555555"};

/* ---- texts ---- */

/* Bytes of the character at the begin of the text; 0: it is not UTF-8. */
static size_t character_size(const char *text, size_t size)
{
	for (size_t n = 1; n <= 4 && n <= size; n++)
		if (h5_is_utf8(text, n))
			return n;
	return 0;
}

/* True: XML has no such character, not even escaped. */
static bool is_forbidden(const char *c, size_t n)
{
	return !n || (uint8_t)*c < ' ' || *c == 0x7f || (n == 3 && !memcmp(c, "\xef\xbf\xbe", 3)) ||
	       (n == 3 && !memcmp(c, "\xef\xbf\xbf", 3));
}

static void add_character(struct h5_buf *out, const char *c, size_t n)
{
	switch (*c) {
	case '&':
		h5_buf_text(out, "&amp;");
		break;
	case '<':
		h5_buf_text(out, "&lt;");
		break;
	case '>':
		h5_buf_text(out, "&gt;");
		break;
	case '\t':
	case '\n':
	case '\r':
		h5_buf_byte(out, ' ');
		break;
	default:
		if (is_forbidden(c, n))
			h5_buf_text(out, "\xef\xbf\xbd");
		else
			h5_buf_add(out, c, n);
	}
}

/* Appends the content of an element. A text of more than `most` characters is cut. */
static void add_text(struct h5_buf *out, const struct h5_buf *text, unsigned most)
{
	for (size_t at = 0, n; at < text->size; at += n ? n : 1) {
		if (!most--) {
			h5_buf_text(out, "\xe2\x80\xa6");
			return;
		}
		n = character_size(text->data + at, text->size - at);
		add_character(out, text->data + at, n);
	}
}

/* ---- axes ---- */

struct axis {
	double low, high;
	double step;	 /* from tick to tick: 1, 2 or 5, and zeros before or after it */
	double from, to; /* pixels */
};

static double round_step(double least)
{
	double power = pow(10, floor(log10(least))), part = least / power;

	return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* A range that has no width, or nearly none, is made wider. */
static struct axis make_axis(const struct h5_plot_range *range, double margin, unsigned ticks, double from,
			     double to)
{
	struct axis a = {range->low, range->high, 0, from, to};
	double size;

	if (!(a.low <= a.high))
		a.low = a.high = 0;
	size = fmax(fabs(a.low), fabs(a.high));
	if (!(a.high - a.low > fmax(size * 1e-9, 1e-290))) {
		a.low -= fmax(size / 2, 0.5);
		a.high += fmax(size / 2, 0.5);
	}
	margin *= a.high - a.low;
	a.low -= margin;
	a.high += margin;
	a.step = round_step((a.high - a.low) / ticks);
	return a;
}

static double place(const struct axis *a, double v)
{
	return a->from + (v - a->low) / (a->high - a->low) * (a->to - a->from);
}

/* Twelve digits tell ticks apart, and hide what is not exact in them. */
static void add_ticks(struct h5_buf *out, const struct axis *a, bool is_x)
{
	double first = ceil(a->low / a->step - 1e-9), last = floor(a->high / a->step + 1e-9);

	for (int i = 0; i < TICKS_MOST && first + i <= last; i++) {
		double tick = first + i == 0 ? 0 : (first + i) * a->step, at = place(a, tick);

		if (is_x)
			h5_buf_printf(out,
				      "<path d=\"M%.1f,%dV%d\" stroke=\"#ddd\"/>"
				      "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.12g</text>\n",
				      at, TOP, BOTTOM, at, BOTTOM + 18, tick);
		else
			h5_buf_printf(out,
				      "<path d=\"M%d,%.1fH%d\" stroke=\"#ddd\"/>"
				      "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.12g</text>\n",
				      LEFT, at, RIGHT, LEFT - 6, at + 4, tick);
	}
}

/* ---- lines ---- */

/* A path in the making. */
struct pen {
	struct h5_buf *out;
	const struct axis *x, *y;
	uint64_t number; /* of the last point */
	unsigned points; /* since the last gap */
};

static void draw_point(struct pen *pen, const struct h5_plot_point *p)
{
	if (pen->points && p->number == pen->number)
		return;
	h5_buf_printf(pen->out, "%c%.1f,%.1f", pen->points ? 'L' : 'M', place(pen->x, p->x),
		      place(pen->y, p->y));
	pen->number = p->number;
	pen->points++;
}

/* A point alone is marked, since a line without length may not be seen. */
static void draw_gap(struct pen *pen)
{
	if (pen->points == 1)
		h5_buf_text(pen->out, "m-3,0h6m-3,-3v6");
	pen->points = 0;
}

static void draw_bin(struct pen *pen, const struct h5_plot_bin *bin)
{
	bool falls = bin->greatest.number < bin->least.number;

	if (!bin->has_points) {
		draw_gap(pen);
		return;
	}
	draw_point(pen, &bin->first);
	draw_point(pen, falls ? &bin->greatest : &bin->least);
	draw_point(pen, falls ? &bin->least : &bin->greatest);
	draw_point(pen, &bin->last);
}

static void draw_line(struct h5_buf *out, const struct h5_plot *p, unsigned i, const struct axis *x,
		      const struct axis *y)
{
	struct pen pen = {out, x, y, 0, 0};

	h5_buf_printf(out,
		      "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\" stroke-linecap=\"round\" "
		      "stroke-linejoin=\"round\" d=\"",
		      colours[i]);
	for (unsigned b = 0; b < p->bins; b++)
		draw_bin(&pen, &p->lines[i].bins[b]);
	draw_gap(&pen);
	h5_buf_text(out, "\"/>\n");
}

static void add_names(struct h5_buf *out, const struct h5_plot *p)
{
	unsigned i;

	for (i = 0; i < p->count && p->lines[0].name.size; i++) {
		h5_buf_printf(out,
			      "<text x=\"%d\" y=\"%u\" text-anchor=\"end\" fill=\"%s\" "
			      "stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">",
			      RIGHT - 8, TOP + 18 + 17 * i, colours[i]);
		add_text(out, &p->lines[i].name, NAME);
		h5_buf_text(out, "</text>\n");
	}
	if (p->left_out)
		h5_buf_printf(out, "<text x=\"%d\" y=\"%u\" text-anchor=\"end\">and more</text>\n", RIGHT - 8,
			      TOP + 18 + 17 * i);
}

/* ---- the document ---- */

struct labels {
	struct h5_buf title, x, y;
};

static int find_labels(const struct h5_view *v, const struct h5_plot *p, struct labels *l)
{
	int rc = h5_plot_add_path(v, v->address, false, &l->title);

	if (!rc)
		rc = h5_plot_add_label(v, v->address, &l->y);
	if (!rc && p->scale)
		rc = h5_plot_add_label(v, p->scale_address, &l->x);
	if (!rc && !p->scale)
		h5_buf_text(&l->x, "element");
	return rc ? rc : l->title.err ? l->title.err : l->x.err ? l->x.err : l->y.err;
}

static void draw(struct h5_buf *out, const struct h5_plot *p, const struct labels *l)
{
	struct axis x = make_axis(&p->x, 0, TICKS_X, LEFT, RIGHT);
	struct axis y = make_axis(&p->y, 0.03, TICKS_Y, BOTTOM, TOP);

	if (!p->scale)
		x.step = fmax(x.step, 1); /* between two elements is nothing */

	h5_buf_printf(
		out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"13\">\n<title>",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	add_text(out, &l->title, TITLE);
	h5_buf_printf(out,
		      "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
		      "<text x=\"%d\" y=\"27\" text-anchor=\"middle\" font-size=\"16\">",
		      WIDTH, HEIGHT, (LEFT + RIGHT) / 2);
	add_text(out, &l->title, TITLE);
	h5_buf_text(out, "</text>\n");
	add_ticks(out, &x, true);
	add_ticks(out, &y, false);
	h5_buf_printf(out, "<path d=\"M%d,%dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n", LEFT, TOP, BOTTOM,
		      RIGHT);
	for (unsigned i = 0; i < p->count; i++)
		draw_line(out, p, i, &x, &y);
	add_names(out, p);
	h5_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + RIGHT) / 2,
		      BOTTOM + 45);
	add_text(out, &l->x, TITLE);
	h5_buf_printf(out,
		      "</text>\n<text transform=\"translate(18,%d) rotate(-90)\" text-anchor=\"middle\">",
		      (TOP + BOTTOM) / 2);
	add_text(out, &l->y, LABEL);
	h5_buf_text(out, "</text>\n</svg>\n");
}

static int make(const struct h5_view *v, struct h5_buf *out)
{
	struct h5_plot plot;
	struct labels labels;
	int rc = h5_plot_make(v, &plot);

	h5_buf_init(&labels.title, TEXT_MAX);
	h5_buf_init(&labels.x, TEXT_MAX);
	h5_buf_init(&labels.y, TEXT_MAX);
	if (!rc)
		rc = find_labels(v, &plot, &labels);
	if (!rc)
		draw(out, &plot, &labels);
	h5_buf_release(&labels.title);
	h5_buf_release(&labels.x);
	h5_buf_release(&labels.y);
	h5_plot_release(v->file, &plot);
	return rc;
}

/* ---- the view ---- */

static const struct h5_document document = {H5_DOCUMENT_KIND("plot"), DOCUMENT_MAX, make};

static int svg_shows(const struct h5_view *v)
{
	return v->dataset && h5_plot_can(v->dataset) ? 0 : -ENOENT;
}

static int svg_open(struct h5_view *v, bool reading)
{
	(void)reading;
	return h5_document_open(v, &document, 0);
}

static int svg_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	return h5_document_read(v, &document, 0, offset, buf, n);
}

const struct h5_view_ops h5_view_svg = {
	.name = "svg", .suffix = ".svg", .shows = svg_shows, .open = svg_open, .read = svg_read};

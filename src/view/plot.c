#include "view/plot.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "format/convert.h"
#include "view/csv_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX (UINT64_C(1) << 36) /* to read more would take a day */
#define NUMBER_MAX   1e300		 /* numbers beyond are gaps, so that differences stay finite */

enum {
	SLAB_BYTES = 1 << 18, /* of elements that are read at once, about */
	SLAB_ELEMENTS = 1 << 13,
	NAME_MAX_BYTES = 1 << 12,
	NUMBER_SIZE = 8,
};

/* ---- lines ---- */

static bool is_compound(const struct h5_dataset *d)
{
	return d->type->class == H5_CLASS_COMPOUND;
}

bool h5_plot_can(const struct h5_dataset *d)
{
	bool can = h5_datatype_is_number(d->type);

	if (d->space.rank != 1)
		return false;
	for (unsigned i = 0; is_compound(d) && i < d->type->compound.count && !can; i++)
		can = h5_datatype_is_number(h5_csv_columns_of(&d->type->compound.members[i]).type);
	return can;
}

static void add_line(struct h5_plot *p, const struct h5_datatype *type, uint64_t offset)
{
	struct h5_plot_line *line = &p->lines[p->count++];

	line->type = type;
	line->offset = offset;
	h5_buf_init(&line->name, NAME_MAX_BYTES);
}

static void add_columns(struct h5_plot *p, const struct h5_member *m)
{
	const struct h5_csv_columns columns = h5_csv_columns_of(m);

	for (uint32_t i = 0; i < columns.count && h5_datatype_is_number(columns.type); i++) {
		if (p->count == H5_PLOT_LINES) {
			p->left_out += columns.count - i;
			break;
		}
		add_line(p, columns.type, m->offset + (uint64_t)i * columns.type->size);
		/* A name that is too long is cut. */
		h5_csv_column_name(m, i, &p->lines[p->count - 1].name);
	}
}

static int add_lines(struct h5_plot *p, const struct h5_dataset *d)
{
	p->lines = calloc(H5_PLOT_LINES, sizeof *p->lines);
	if (!p->lines)
		return -ENOMEM;
	if (!is_compound(d))
		add_line(p, d->type, 0);
	for (unsigned i = 0; is_compound(d) && i < d->type->compound.count; i++)
		add_columns(p, &d->type->compound.members[i]);
	for (unsigned i = 0; i < p->count; i++)
		if (p->lines[i].name.err == -ENOMEM)
			return -ENOMEM;
	return 0;
}

/* ---- points ---- */

static void add_point(struct h5_plot_bin *bin, double x, double y, uint64_t number)
{
	const struct h5_plot_point point = {x, y, number};

	if (!bin->has_points)
		bin->first = bin->least = bin->greatest = point;
	if (y < bin->least.y)
		bin->least = point;
	if (y > bin->greatest.y)
		bin->greatest = point;
	bin->last = point;
	bin->has_points = true;
}

static void widen(struct h5_plot_range *range, double v)
{
	range->low = v < range->low ? v : range->low;
	range->high = v > range->high ? v : range->high;
}

/* Elements that are in memory. */
struct slab {
	uint64_t first;
	size_t count;
	size_t capacity; /* elements */
	uint8_t *data;
	uint8_t column[SLAB_ELEMENTS * NUMBER_SIZE];
	double x[SLAB_ELEMENTS], y[SLAB_ELEMENTS];
};

/* Makes the numbers of a column doubles. */
static void convert(struct slab *s, const struct h5_datatype *type, uint64_t offset, size_t stride,
		    double *out)
{
	for (size_t i = 0; i < s->count; i++)
		memcpy(s->column + i * type->size, s->data + offset + i * stride, type->size);
	h5_convert_to_doubles(type, s->column, s->count, out);
}

static int read_x(const struct h5_plot *p, struct slab *s)
{
	const size_t size = p->scale ? p->scale->type->size : 0;
	int rc;

	if (!p->scale) {
		for (size_t i = 0; i < s->count; i++)
			s->x[i] = (double)(s->first + i);
		return 0;
	}
	rc = h5_dataset_read(p->scale, s->first * size, s->column, s->count * size);
	if (!rc)
		h5_convert_to_doubles(p->scale->type, s->column, s->count, s->x);
	return rc;
}

/* The number of the first element behind the bin. */
static uint64_t end_of_bin(const struct h5_plot *p, uint64_t elements, uint64_t bin)
{
	return ((bin + 1) * elements + p->bins - 1) / p->bins;
}

static int add_points(struct h5_plot *p, const struct slab *s, struct h5_plot_line *line, uint64_t elements)
{
	uint64_t bin = 0, end = end_of_bin(p, elements, 0);

	for (size_t i = 0; i < s->count; i++) {
		int rc = i % 1024 ? 0 : h5_interrupt_check();

		if (rc)
			return rc;
		for (; s->first + i >= end; end = end_of_bin(p, elements, bin))
			bin++;
		/* Not so for NaN. */
		if (!(fabs(s->x[i]) <= NUMBER_MAX && fabs(s->y[i]) <= NUMBER_MAX))
			continue;
		add_point(&line->bins[bin], s->x[i], s->y[i], s->first + i);
		widen(&p->x, s->x[i]);
		widen(&p->y, s->y[i]);
	}
	return 0;
}

static int read_points(struct h5_plot *p, const struct h5_dataset *d, struct slab *s)
{
	const uint64_t elements = d->space.elements;
	const size_t size = d->type->size;
	int rc = 0;

	p->bins = (unsigned)h5_min(elements, H5_PLOT_BINS);
	for (s->first = 0; s->first < elements && !rc; s->first += s->count) {
		s->count = (size_t)h5_min(elements - s->first, s->capacity);
		rc = h5_dataset_read(d, s->first * size, s->data, s->count * size);
		if (!rc)
			rc = read_x(p, s);
		for (unsigned i = 0; i < p->count && !rc; i++) {
			convert(s, p->lines[i].type, p->lines[i].offset, size, s->y);
			rc = add_points(p, s, &p->lines[i], elements);
		}
	}
	return rc;
}

static int read_all(struct h5_plot *p, const struct h5_dataset *d)
{
	struct slab *s = malloc(sizeof *s);
	int rc = s ? 0 : -ENOMEM;

	if (rc)
		return rc;
	s->capacity = (size_t)h5_max(1, h5_min(SLAB_BYTES / d->type->size, SLAB_ELEMENTS));
	s->data = malloc(s->capacity * d->type->size);
	rc = s->data ? read_points(p, d, s) : -ENOMEM;
	free(s->data);
	free(s);
	return rc;
}

int h5_plot_make(const struct h5_view *v, struct h5_plot *p)
{
	int rc;

	*p = (struct h5_plot){.x = {INFINITY, -INFINITY}, .y = {INFINITY, -INFINITY}};
	if (v->dataset->space.elements > ELEMENTS_MAX)
		return h5_fail(-EOVERFLOW, v->address, "more elements than a plot may have");
	if (v->dataset->type->size > H5_ELEMENT_MOST)
		return h5_fail(-EFBIG, v->address, "an element of %u bytes", v->dataset->type->size);
	rc = add_lines(p, v->dataset);
	if (!rc)
		rc = h5_plot_find_scale(v, p);
	return rc ? rc : read_all(p, v->dataset);
}

void h5_plot_release(struct h5_file *file, struct h5_plot *p)
{
	for (unsigned i = 0; i < p->count; i++)
		h5_buf_release(&p->lines[i].name);
	free(p->lines);
	h5_file_put(file, p->scale_ref);
	*p = (struct h5_plot){0};
}

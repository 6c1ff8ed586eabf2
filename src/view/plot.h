/* What a plot shows: lines of the numbers of a dataset of one dimension, or of the columns of a compound that
 * are numbers, over the dimension's scale or the numbers of elements.
 *
 * The elements are cut into as many bins as the plot has pixels in a row. Of each bin four points are kept:
 * the first, the least, the greatest and the last. A line through these looks like one through all. */
#ifndef H5_VIEW_PLOT_H
#define H5_VIEW_PLOT_H

#include "base/buf.h"
#include "view/view.h"

enum {
	H5_PLOT_LINES = 8,  /* most lines; columns behind them are left out */
	H5_PLOT_BINS = 850, /* most bins */
};

struct h5_plot_point {
	double x, y;
	uint64_t number; /* of the element */
};

struct h5_plot_bin {
	bool has_points;
	struct h5_plot_point first, least, greatest, last; /* in this order or with the middle two swapped */
};

struct h5_plot_line {
	const struct h5_datatype *type; /* borrowed */
	uint64_t offset;		/* in the element */
	struct h5_buf name;		/* of the column; empty if there are none */
	struct h5_plot_bin bins[H5_PLOT_BINS];
};

struct h5_plot_range {
	double low, high; /* low > high: there are no points */
};

struct h5_plot {
	unsigned count; /* of lines, at least 1 */
	struct h5_plot_line *lines;
	uint64_t left_out; /* columns */
	unsigned bins;
	struct h5_plot_range x, y;

	/* The dimension scale; NULL: x are the numbers of elements. h5_file_put(). */
	const struct h5_dataset *scale;
	struct h5_lru_entry *scale_ref;
	uint64_t scale_address;
};

/* True: the dataset has a plot. */
bool h5_plot_can(const struct h5_dataset *dataset);
/* Reads all elements. h5_plot_release() also after a failure. */
int h5_plot_make(const struct h5_view *view, struct h5_plot *plot);
void h5_plot_release(struct h5_file *file, struct h5_plot *plot);

/* ---- plot_labels.c ---- */

/* Finds the first dimension scale of the view's dataset that has a number for each element. */
int h5_plot_find_scale(const struct h5_view *view, struct h5_plot *plot);
/* Appends the text of a string attribute; nothing if there is none. */
int h5_plot_add_attribute(struct h5_file *file, const struct h5_object *object, const char *name,
			  struct h5_buf *out);
/* Appends what an axis shows: `long_name`, or else the name, and `units`. */
int h5_plot_add_label(const struct h5_view *view, uint64_t address, struct h5_buf *out);
/* Appends the path of the object, or only the last part of it. */
int h5_plot_add_path(const struct h5_view *view, uint64_t address, bool last, struct h5_buf *out);

#endif

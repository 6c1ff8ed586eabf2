/* The views, a file each, and what several of them share. */
#ifndef H5_VIEW_VIEWS_H
#define H5_VIEW_VIEWS_H

#include "view/view.h"

struct h5_page;

extern const struct h5_view_ops h5_view_attrs;
extern const struct h5_view_ops h5_view_csv;
extern const struct h5_view_ops h5_view_ddl;
extern const struct h5_view_ops h5_view_json;
extern const struct h5_view_ops h5_view_jsonl;
extern const struct h5_view_ops h5_view_kerchunk;
extern const struct h5_view_ops h5_view_lines;
extern const struct h5_view_ops h5_view_npy;
extern const struct h5_view_ops h5_view_png;
extern const struct h5_view_ops h5_view_raw;
extern const struct h5_view_ops h5_view_svg;
extern const struct h5_view_ops h5_view_values;
extern const struct h5_view_ops h5_view_zarr;
extern const struct h5_view_ops h5_view_zarr3;

/* Writing a dataset as text: a line is an element (text_write.c). */
struct h5_line_form {
	/* The element that the n bytes of a line are, as h5_value_parse_json(). */
	int (*parse)(const struct h5_value_parser *parser, const struct h5_datatype *type, const char *text,
		     size_t n, const uint8_t *old, uint8_t *data);
};

/* struct h5_view_ops.write, check and finish, for lines of the form. */
int h5_view_text_write(const struct h5_line_form *form, struct h5_view_input *in, const void *data, size_t n,
		       size_t *written);
int h5_view_text_check(const struct h5_line_form *form, struct h5_view_input *in);
int h5_view_text_finish(const struct h5_line_form *form, struct h5_view_input *in);

/* Operations of views that show a dataset as text. `by_names`: it depends on the names of other objects.
 * `page`: what of the dataset is shown, borrowed until the view is released; NULL: all. */
int h5_view_text_open(struct h5_view *view, const struct h5_text_form *form, const struct h5_page *page,
		      bool by_names);
int h5_view_text_read(const struct h5_view *view, uint64_t offset, void *buf, size_t n);
void h5_view_text_release(struct h5_view *view);

#endif

/* The views, a file each, and what several of them share. */
#ifndef H5_VIEW_VIEWS_H
#define H5_VIEW_VIEWS_H

#include "view/view.h"

extern const struct h5_view_ops h5_view_attrs;
extern const struct h5_view_ops h5_view_csv;
extern const struct h5_view_ops h5_view_ddl;
extern const struct h5_view_ops h5_view_json;
extern const struct h5_view_ops h5_view_jsonl;
extern const struct h5_view_ops h5_view_lines;
extern const struct h5_view_ops h5_view_npy;
extern const struct h5_view_ops h5_view_png;
extern const struct h5_view_ops h5_view_raw;

/* Operations of views that show a dataset as text. `state`: the view's, or H5_TEXT_UNCHANGED if nothing in
 * the mount changes the dataset. */
enum { H5_TEXT_UNCHANGED = 0 };
int h5_view_text_open(struct h5_view *view, const struct h5_text_form *form, uint64_t state);
int h5_view_text_read(const struct h5_view *view, uint64_t offset, void *buf, size_t n);
void h5_view_text_release(struct h5_view *view);

#endif

/* The views, a file each. */
#ifndef H5_VIEW_VIEWS_H
#define H5_VIEW_VIEWS_H

#include "view/view.h"

extern const struct h5_view_ops h5_view_attrs;
extern const struct h5_view_ops h5_view_csv;
extern const struct h5_view_ops h5_view_json;
extern const struct h5_view_ops h5_view_npy;
extern const struct h5_view_ops h5_view_png;

#endif

#include "view/views.h"

/* The order is part of inode numbers, so a new one goes last. */
const struct h5_view_ops *const h5_views[] = {
	&h5_view_attrs, &h5_view_csv,	&h5_view_json,	   &h5_view_npy, &h5_view_png, &h5_view_values,
	&h5_view_zarr,	&h5_view_zarr3, &h5_view_kerchunk, &h5_view_svg, NULL};

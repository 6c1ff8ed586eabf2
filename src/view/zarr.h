/* What the views zarr, zarr3 and kerchunk.json say of objects. */
#ifndef H5_VIEW_ZARR_H
#define H5_VIEW_ZARR_H

#include "object/json.h"
#include "view/zarr_array.h"

/* Bytes of the metadata of one object, and of those of all objects in one document. */
enum { H5_ZARR_METADATA_MAX = 1 << 24, H5_ZARR_DOCUMENT_MAX = 1 << 26 };

/* ---- attributes: zarr_attributes.c ---- */

/* Appends a JSON object: the attributes, and in version 2 the names of an array's dimensions. `array` NULL:
 * the object is a group. */
int h5_zarr_add_attributes(const struct h5_view *view, const struct h5_zarr_array *array, struct h5_buf *out);

/* ---- dimensions: zarr_dimensions.c ---- */

/* Appends a JSON array with a name for each dimension. */
int h5_zarr_add_dimensions(const struct h5_view *view, const struct h5_zarr_array *array, struct h5_buf *out);
/* Sets the lengths of dimensions that are netCDF-4's, and unlimited. */
int h5_zarr_find_lengths(const struct h5_view *view, const struct h5_zarr_array *array, uint64_t *shape);
/* *is_one: the object is a dimension scale. */
int h5_zarr_is_scale(struct h5_file *file, const struct h5_object *object, bool *is_one);
/* *is_one: it is a dimension of netCDF-4 that has no variable. */
int h5_zarr_is_bare_dimension(struct h5_file *file, const struct h5_object *object, bool *is_one);

/* True: the attribute is a list of references for each of so many dimensions, as DIMENSION_LIST is. */
static inline bool h5_zarr_is_list_of_scales(const struct h5_attribute *a, uint64_t rank)
{
	return a->type->class == H5_CLASS_VLEN && !a->type->vlen.is_string &&
	       a->type->vlen.base->class == H5_CLASS_REFERENCE && a->space.elements == rank;
}

/* The length of the dimension for which a scale stands (zarr_length.c). -ENOENT: the object is no scale. */
int h5_zarr_dimension_length(const struct h5_view *view, uint64_t scale, uint64_t *length);

/* ---- the array: zarr_shape.c ---- */

/* The dataset of the view, which is whole, as an array. */
int h5_zarr_array_get(const struct h5_view *view, enum h5_zarr_version version, struct h5_zarr_array *array);

/* ---- metadata: zarr_metadata.c ---- */

/* Appends `.zarray` in version 2, `zarr.json` in version 3. */
int h5_zarr_add_array(const struct h5_view *view, const struct h5_zarr_array *array, struct h5_buf *out);
/* Appends `.zgroup`. */
void h5_zarr_add_group(struct h5_buf *out);
/* Appends JSON with all characters but ASCII escaped, which zarr-python wants of version 2. */
void h5_zarr_add_ascii(struct h5_buf *out, const struct h5_buf *json);

/* ---- the tree: zarr_tree.c ---- */

/* An object of the tree, for h5_view_begin(). */
struct h5_view h5_zarr_view(const struct h5_view *root, struct h5_file *file, uint64_t address);

struct h5_zarr_level;

/* Goes over all objects of the tree, from the root on, each before those below it:
 *
 *   h5_zarr_tree_begin(&tree, view);
 *   while (!rc && (rc = h5_zarr_tree_next(&tree)) > 0)
 *           rc = ...;
 *   h5_zarr_tree_end(&tree);
 *
 * A group that holds itself is left out within itself, and so is what cannot be read. */
struct h5_zarr_tree {
	const struct h5_view *view; /* of the root; borrowed */
	struct h5_view object;	    /* the present one, begun */
	struct h5_buf path;	    /* of the present one, without a slash at its begin: empty for the root */
	struct h5_zarr_level *levels;
	size_t depth, capacity;
	bool dimensions; /* datasets that only show a dimension are not left out; set after beginning */
	bool has_begun;
};

void h5_zarr_tree_begin(struct h5_zarr_tree *tree, const struct h5_view *view);
int h5_zarr_tree_next(struct h5_zarr_tree *tree); /* 1: there is another; 0: there are no more */
void h5_zarr_tree_end(struct h5_zarr_tree *tree); /* also after a failure */

#endif

/* What attributes, and other objects, say of a dataset's array: its shape, and whether chunks that are not
 * stored have files. */
#include "base/error.h"
#include "view/zarr.h"

#include <stdlib.h>
#include <string.h>

enum { FILLED_MOST = 1 << 20 }; /* chunks of an array all of which have files */

/* True: the attribute has the value that stands for elements which are not stored. */
static bool is_fill_value(const struct h5_dataset *d, const struct h5_attribute *a)
{
	return d->fill && !d->fill_never && a->space.elements == 1 && a->type->class == d->type->class &&
	       a->type->size == d->type->size && !memcmp(a->data, d->fill, d->type->size);
}

static int find_mark(const struct h5_view *v, struct h5_zarr_array *a)
{
	struct h5_attribute mark = {0};
	int rc = h5_attribute_lookup(v->file, v->object, "_FillValue", &mark);

	a->has_mark = !rc && is_fill_value(a->dataset, &mark);
	h5_attribute_release(&mark);
	return h5_is_passing(rc) ? rc : 0;
}

static int find_shape(const struct h5_view *v, struct h5_zarr_array *a)
{
	const struct h5_dataspace *space = &a->dataset->space;
	uint64_t shape[H5_RANK_MAX];
	bool is_unlimited = false;
	int rc;

	for (unsigned d = 0; d < space->rank; d++)
		is_unlimited |= space->max[d] == H5_UNLIMITED;
	if (!is_unlimited || !a->is_chunked || v->file != v->tree->file)
		return 0;
	memcpy(shape, space->dims, sizeof shape);
	rc = h5_zarr_find_lengths(v, a, shape);
	return rc ? rc : h5_zarr_array_extend(a, shape);
}

/* What the cache makes an array of. */
struct making {
	const struct h5_view *view;
	enum h5_zarr_version version;
};

static int make(const struct making *m, struct h5_zarr_array *a)
{
	const struct h5_view *v = m->view;
	int rc = h5_zarr_array_init(a, m->version, v->dataset);

	if (!rc && v->zarr_decoded)
		h5_zarr_array_decode(a);
	if (!rc)
		rc = find_mark(v, a);
	if (!rc)
		rc = find_shape(v, a);
	if (!rc && v->zarr_decoded)
		h5_zarr_array_join(a);
	if (!rc && a->version == H5_ZARR_V2 && !a->has_mark && a->chunks <= FILLED_MOST)
		rc = h5_zarr_array_can_fill(a, &a->is_filled);
	return rc;
}

/* What the cache has. */
struct known {
	struct h5_zarr_array array;
	struct h5_dataspace space; /* of the dataset */
};

static int array_load(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct making *m = arg;
	struct known *k = malloc(sizeof *k);
	int rc = k ? make(m, &k->array) : -ENOMEM;

	(void)file;
	(void)address;
	if (rc) {
		free(k);
		return rc;
	}
	k->array.dataset = NULL; /* it is of the request */
	k->space = m->view->dataset->space;
	*value = k;
	*cost = sizeof *k;
	return 0;
}

static const struct h5_block_type types[2][2] = {
	{{{"array of Zarr 2", free}, array_load}, {{"array of Zarr 3", free}, array_load}},
	{{{"decoded array of Zarr 2", free}, array_load}, {{"decoded array of Zarr 3", free}, array_load}}};

int h5_zarr_array_get(const struct h5_view *v, enum h5_zarr_version version, struct h5_zarr_array *array)
{
	const struct making m = {v, version};
	const struct known *k;
	struct h5_lru_entry *ref;
	const struct h5_block_type *type = &types[v->zarr_decoded][version == H5_ZARR_V3];
	int rc = h5_file_block(v->file, type, v->address, v->state, &m, &ref);

	if (rc)
		return rc;
	k = h5_lru_value(ref);
	/* Another program that writes may have changed the file since the state was asked for. */
	if (k->space.rank != v->dataset->space.rank ||
	    memcmp(k->space.dims, v->dataset->space.dims, k->space.rank * sizeof *k->space.dims) != 0) {
		rc = make(&m, array);
	} else {
		*array = k->array;
		array->dataset = v->dataset;
	}
	h5_file_put(v->file, ref);
	return rc;
}

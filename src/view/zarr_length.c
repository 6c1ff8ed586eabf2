/* How long the dimensions of netCDF-4 are.
 *
 * An unlimited one is as long as the longest variable that has it. The scale that stands for it may be
 * shorter; if that is no variable, its length stays 0. The scale's attribute REFERENCE_LIST has the other
 * datasets, each with the number of its dimension. It may still list a dataset that was removed, and another
 * object may lie at that address now. So a dataset counts only if its DIMENSION_LIST names the scale. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "view/zarr.h"

#include <stdlib.h>

static bool is_reference_list(const struct h5_attribute *a)
{
	return a->type->class == H5_CLASS_COMPOUND && a->type->compound.count == 2 &&
	       a->type->compound.members[0].type->class == H5_CLASS_REFERENCE &&
	       h5_datatype_is_native_integer(a->type->compound.members[1].type);
}

/* *found: an element of DIMENSION_LIST has a reference to the scale. */
static int find_scale(struct h5_file *file, const struct h5_datatype *type, const uint8_t *element,
		      uint64_t scale, bool *found)
{
	const struct h5_datatype *base = type->vlen.base;
	struct h5_lru_entry *ref;
	const uint8_t *data;
	uint64_t n, address;
	int rc = h5_value_vlen_open(file, type, element, &ref, &data, &n);

	for (uint64_t i = 0; i < n && !rc && !*found; i++) {
		rc = h5_reference_object(file, base, data + i * base->size, &address);
		*found = !rc && address == scale;
	}
	h5_file_put(file, ref);
	return rc;
}

/* *has_it: the scale is one of the dataset's dimension d. */
static int has_scale(struct h5_file *file, uint64_t dataset, uint64_t d, uint64_t scale, bool *has_it)
{
	struct h5_attribute list = {0};
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, dataset, &ref, &object);

	*has_it = false;
	if (rc)
		return rc;
	rc = h5_attribute_lookup(file, object, "DIMENSION_LIST", &list);
	if (!rc && d < list.space.elements && h5_zarr_is_list_of_scales(&list, list.space.elements))
		rc = find_scale(file, list.type, list.data + d * list.type->size, scale, has_it);
	h5_attribute_release(&list);
	h5_file_put(file, ref);
	return rc;
}

static int get_length(struct h5_file *file, uint64_t dataset, uint64_t d, uint64_t *length)
{
	const struct h5_dataset *user;
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(file, dataset, &ref, &user);

	if (rc)
		return rc;
	*length = d < user->space.rank ? user->space.dims[d] : 0;
	h5_file_put(file, ref);
	return 0;
}

/* Raises the length to that of the dataset that an element refers to. One that cannot be read is left out. */
static int raise(struct h5_file *file, uint64_t scale, const struct h5_attribute *list, uint64_t i,
		 uint64_t *length)
{
	const struct h5_member *m = list->type->compound.members;
	const uint8_t *element = list->data + i * list->type->size;
	uint64_t d = h5_datatype_bits(m[1].type, element + m[1].offset), address, other;
	bool has_it = false;
	int rc = h5_reference_object(file, m[0].type, element + m[0].offset, &address);

	if (!rc)
		rc = has_scale(file, address, d, scale, &has_it);
	if (!rc && has_it)
		rc = get_length(file, address, d, &other);
	if (!rc && has_it)
		*length = h5_max(*length, other);
	return h5_is_passing(rc) || rc == -EFBIG ? rc : h5_interrupt_check();
}

static int find_users(struct h5_file *file, uint64_t scale, uint64_t *length)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct h5_attribute list = {0};
	int rc = h5_object_get(file, scale, &ref, &object);

	if (rc)
		return rc;
	rc = h5_attribute_lookup(file, object, "REFERENCE_LIST", &list);
	if (!rc && is_reference_list(&list))
		for (uint64_t i = 0; i < list.space.elements && !rc; i++)
			rc = raise(file, scale, &list, i, length);
	h5_attribute_release(&list);
	h5_file_put(file, ref);
	return h5_is_passing(rc) || rc == -EFBIG ? rc : 0;
}

static int dimension_load(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const uint64_t *own = arg;
	uint64_t *length = malloc(sizeof *length);
	int rc = length ? 0 : -ENOMEM;

	if (!rc) {
		*length = *own;
		rc = find_users(file, address, length);
	}
	if (rc) {
		free(length);
		return rc;
	}
	*value = length;
	*cost = sizeof *length;
	return 0;
}

static const struct h5_block_type dimension_type = {{"length of a Zarr dimension", free}, dimension_load};

int h5_zarr_dimension_length(const struct h5_view *v, uint64_t scale, uint64_t *length)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	bool is_unlimited;
	int rc = h5_dataset_get(v->file, scale, &ref, &dataset);

	if (rc)
		return rc;
	is_unlimited = dataset->space.rank == 1 && dataset->space.max[0] == H5_UNLIMITED;
	*length = dataset->space.rank ? dataset->space.dims[0] : 0;
	if (!dataset->space.rank)
		rc = -ENOENT;
	h5_file_put(v->file, ref);
	if (rc || !is_unlimited)
		return rc;
	rc = h5_file_block(v->file, &dimension_type, scale, v->state, length, &ref);
	if (!rc) {
		*length = *(const uint64_t *)h5_lru_value(ref);
		h5_file_put(v->file, ref);
	}
	return rc;
}

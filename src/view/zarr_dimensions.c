/* Names of dimensions: by the dimension scales of HDF5, which netCDF-4 uses, too. A dimension without a scale
 * gets a name that says how long it is, so that no two dimensions of one name differ. */
#include "base/checked.h"
#include "base/error.h"
#include "view/zarr.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_LIMIT = 1 << 16 };

/* ---- attributes that describe dimensions ---- */

/* 0, or -ENODATA: there is none that can be used. */
static int get_attribute(struct h5_file *file, const struct h5_object *object, const char *name,
			 struct h5_attribute *a)
{
	int rc = h5_attribute_lookup(file, object, name, a);

	if (rc)
		return h5_is_passing(rc) ? rc : -ENODATA;
	if (a->space.elements)
		return 0;
	h5_attribute_release(a);
	return -ENODATA;
}

/* *begins: the attribute is a string of fixed length, or of variable length, that begins with the text.
 * `whole`: and it ends with that, too. */
static int compare(struct h5_file *file, const struct h5_object *object, const char *name, const char *text,
		   bool whole, bool *same)
{
	const struct h5_value_context context = {.file = file};
	const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	size_t n = strlen(text);
	struct h5_attribute a;
	struct h5_buf value;
	int rc = get_attribute(file, object, name, &a);

	*same = false;
	if (rc)
		return rc == -ENODATA ? 0 : rc;
	h5_buf_init(&value, NAME_LIMIT);
	if (a.type->class == H5_CLASS_STRING || (a.type->class == H5_CLASS_VLEN && a.type->vlen.is_string))
		rc = h5_value_text(&context, a.type, &scalar, a.data, &value);
	*same = !rc && value.size >= n && !memcmp(value.data, text, n) && (!whole || value.size == n);
	h5_buf_release(&value);
	h5_attribute_release(&a);
	return h5_is_passing(rc) ? rc : 0;
}

int h5_zarr_is_scale(struct h5_file *file, const struct h5_object *object, bool *is_one)
{
	return compare(file, object, "CLASS", "DIMENSION_SCALE", true, is_one);
}

int h5_zarr_is_bare_dimension(struct h5_file *file, const struct h5_object *object, bool *is_one)
{
	return compare(file, object, "NAME", "This is a netCDF dimension but not a netCDF variable", false,
		       is_one);
}

/* ---- the names of scales ---- */

/* Appends the file name of an object: the last one of its path in the mount. */
static int add_name_of(const struct h5_view *v, uint64_t address, struct h5_buf *name)
{
	struct h5_buf path;
	size_t at;
	int rc;

	h5_buf_init(&path, NAME_LIMIT);
	rc = v->context.object_path ? v->context.object_path(v->context.arg, address, &path) : -ENOENT;
	rc = rc ? rc : path.err;
	for (at = path.size; at && path.data[at - 1] != '/';)
		at--;
	if (!rc)
		h5_buf_add(name, path.data + at, path.size - at);
	h5_buf_release(&path);
	return h5_is_passing(rc) || rc == -EFBIG ? rc : name->err;
}

/* What is wanted of the scales of one dimension. With `name`: the first one of that length; its name is
 * added. Else the first one that is not shorter; `length` becomes the largest that was seen. */
struct scales {
	uint64_t length;
	struct h5_buf *name; /* NULL: no name is wanted */
};

static int look_at_scale(const struct h5_view *v, uint64_t address, struct scales *s, bool *found)
{
	uint64_t length;
	int rc = h5_zarr_dimension_length(v, address, &length);

	if (rc)
		return h5_is_passing(rc) || rc == -EFBIG ? rc : 0;
	if (s->name) {
		*found = length == s->length;
		return *found ? add_name_of(v, address, s->name) : 0;
	}
	*found = length >= s->length;
	s->length = h5_max(s->length, length);
	return 0;
}

/* Looks at the scales in an element of DIMENSION_LIST. */
static int look_at_scales(const struct h5_view *v, const struct h5_datatype *type, const uint8_t *element,
			  struct scales *s)
{
	const struct h5_datatype *base = type->vlen.base;
	struct h5_lru_entry *ref;
	const uint8_t *data;
	bool found = false;
	uint64_t n;
	int rc = h5_value_vlen_open(v->file, type, element, &ref, &data, &n);

	for (uint64_t i = 0; i < n && !rc && !found; i++) {
		uint64_t address;

		rc = h5_reference_object(v->file, base, data + i * base->size, &address);
		if (!rc)
			rc = look_at_scale(v, address, s, &found);
		if (rc == -ENOENT || rc == -EUCLEAN)
			rc = 0;
	}
	h5_file_put(v->file, ref);
	return h5_is_passing(rc) || rc == -EFBIG ? rc : 0;
}

/* ---- netCDF-4: dimensions by number ---- */

static int get_number(const struct h5_view *v, const char *name, unsigned i, uint64_t *number)
{
	struct h5_attribute a;
	int rc = get_attribute(v->file, v->object, name, &a);

	if (rc)
		return rc;
	if (i < a.space.elements && h5_datatype_is_native_integer(a.type))
		*number = h5_datatype_bits(a.type, a.data + (uint64_t)i * a.type->size);
	else
		rc = -ENODATA;
	h5_attribute_release(&a);
	return rc;
}

/* Appends the name of the dimension that has the number. */
static int add_numbered(const struct h5_view *v, uint64_t wanted, uint64_t length, struct h5_buf *name)
{
	const struct h5_view root = {.ops = v->ops,
				     .file = v->tree->file,
				     .address = v->tree->root,
				     .context = v->context,
				     .tree = v->tree};
	struct h5_zarr_tree tree;
	int rc = 0;

	h5_zarr_tree_begin(&tree, &root);
	tree.dimensions = true;
	while (!rc && !name->size && (rc = h5_zarr_tree_next(&tree)) > 0) {
		const struct h5_view *o = &tree.object;
		uint64_t number;

		rc = o->dataset && o->dataset->space.rank && o->dataset->space.dims[0] == length
			     ? get_number(o, "_Netcdf4Dimid", 0, &number)
			     : -ENODATA;
		if (!rc && number == wanted)
			rc = add_name_of(v, o->address, name);
		rc = rc == -ENODATA ? 0 : rc;
	}
	h5_zarr_tree_end(&tree);
	return rc < 0 ? rc : 0;
}

/* ---- all dimensions ---- */

struct naming {
	const struct h5_view *v;
	const struct h5_zarr_array *array;
	bool is_scale, has_list;
	struct h5_attribute list;
};

static int find_name(const struct naming *n, unsigned i, struct h5_buf *name)
{
	const struct h5_datatype *type = n->list.type;
	struct scales scales = {n->array->shape[i], name};
	uint64_t number;
	int rc = 0;

	if (i >= n->array->dataset->space.rank || n->v->file != n->v->tree->file)
		return 0;
	if (n->has_list)
		return look_at_scales(n->v, type, n->list.data + (uint64_t)i * type->size, &scales);
	if (n->is_scale && n->array->rank == 1)
		return add_name_of(n->v, n->v->address, name);
	if (n->is_scale)
		rc = get_number(n->v, "_Netcdf4Coordinates", i, &number);
	if (n->is_scale && !rc)
		rc = add_numbered(n->v, number, n->array->shape[i], name);
	return rc == -ENODATA ? 0 : rc;
}

/* The name of a dimension without a scale. Those of one array differ. */
static void add_phony(const struct h5_zarr_array *a, unsigned i, struct h5_buf *name)
{
	unsigned before = 0;

	for (unsigned d = 0; d < i; d++)
		before += a->shape[d] == a->shape[i];
	h5_buf_printf(name, "phony_dim_%" PRIu64, a->shape[i]);
	if (before)
		h5_buf_printf(name, "_%u", before);
}

static int add_names(const struct naming *n, struct h5_buf *out)
{
	struct h5_json names = h5_json_array(out);
	int rc = 0;

	for (unsigned i = 0; i < n->array->rank && !rc; i++) {
		struct h5_buf name;

		h5_buf_init(&name, NAME_LIMIT);
		rc = find_name(n, i, &name);
		if (!rc && !name.size)
			add_phony(n->array, i, &name);
		rc = rc ? rc : name.err;
		if (!rc)
			h5_json_string(h5_json_item(&names), name.data, name.size);
		h5_buf_release(&name);
	}
	h5_json_close(&names);
	return rc ? rc : out->err;
}

static int naming_init(struct naming *n, const struct h5_view *v, const struct h5_zarr_array *array)
{
	int rc;

	*n = (struct naming){.v = v, .array = array};
	rc = h5_zarr_is_scale(v->file, v->object, &n->is_scale);
	if (!rc)
		rc = get_attribute(v->file, v->object, "DIMENSION_LIST", &n->list);
	n->has_list = !rc;
	if (n->has_list && !h5_zarr_is_list_of_scales(&n->list, array->dataset->space.rank)) {
		h5_attribute_release(&n->list);
		n->has_list = false;
	}
	return rc == -ENODATA ? 0 : rc;
}

static void naming_release(struct naming *n)
{
	if (n->has_list)
		h5_attribute_release(&n->list);
}

int h5_zarr_add_dimensions(const struct h5_view *v, const struct h5_zarr_array *array, struct h5_buf *out)
{
	struct naming n;
	int rc = naming_init(&n, v, array);

	if (!rc)
		rc = add_names(&n, out);
	naming_release(&n);
	return rc;
}

int h5_zarr_find_lengths(const struct h5_view *v, const struct h5_zarr_array *array, uint64_t *shape)
{
	const struct h5_dataspace *space = &array->dataset->space;
	struct naming n;
	int rc = naming_init(&n, v, array);

	for (unsigned d = 0; d < space->rank && !rc; d++) {
		struct scales scales = {space->dims[d], NULL};

		shape[d] = space->dims[d];
		if (space->max[d] != H5_UNLIMITED)
			continue;
		if (n.has_list)
			rc = look_at_scales(v, n.list.type, n.list.data + (uint64_t)d * n.list.type->size,
					    &scales);
		else if (n.is_scale && space->rank == 1)
			rc = h5_zarr_dimension_length(v, v->address, &scales.length);
		shape[d] = scales.length;
	}
	naming_release(&n);
	return rc;
}

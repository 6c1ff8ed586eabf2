/* What the axes of a plot are: the dimension scale, and names and units by attributes, as netCDF and the CF
 * conventions have them. What cannot be read is left out. */
#include "view/plot.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "view/zarr.h"

#include <string.h>

enum { TEXT_MAX = 1 << 12 /* bytes; longer texts are no labels */ };

/* What keeps a plot from being made now. */
static int only_passing(int rc)
{
	return h5_is_passing(rc) || rc == -EFBIG ? rc : 0;
}

/* ---- the dimension scale ---- */

static bool is_scale_of(const struct h5_dataset *scale, const struct h5_dataset *d)
{
	return scale->space.rank == 1 && scale->space.elements == d->space.elements &&
	       h5_datatype_is_number(scale->type);
}

/* Takes the scale if it has a number for each element. */
static int try_scale(const struct h5_view *v, uint64_t address, struct h5_plot *p)
{
	int rc = address == v->address ? -ENOENT : h5_dataset_get(v->file, address, &p->scale_ref, &p->scale);

	if (!rc && is_scale_of(p->scale, v->dataset)) {
		p->scale_address = address;
		return 0;
	}
	if (!rc)
		h5_file_put(v->file, p->scale_ref);
	p->scale_ref = NULL;
	p->scale = NULL;
	return only_passing(rc);
}

/* Looks at the scales in the element of DIMENSION_LIST. */
static int look_at_scales(const struct h5_view *v, const struct h5_attribute *list, struct h5_plot *p)
{
	const struct h5_datatype *base = list->type->vlen.base;
	struct h5_lru_entry *ref;
	const uint8_t *data;
	uint64_t n;
	int rc = h5_value_vlen_open(v->file, list->type, list->data, &ref, &data, &n);

	for (uint64_t i = 0; i < n && !rc && !p->scale; i++) {
		uint64_t address;

		rc = h5_interrupt_check();
		if (rc)
			break;
		rc = h5_reference_object(v->file, base, data + i * base->size, &address);
		rc = rc ? only_passing(rc) : try_scale(v, address, p);
	}
	h5_file_put(v->file, ref);
	return only_passing(rc);
}

int h5_plot_find_scale(const struct h5_view *v, struct h5_plot *p)
{
	struct h5_attribute list;
	int rc = h5_attribute_lookup(v->file, v->object, "DIMENSION_LIST", &list);

	if (rc)
		return only_passing(rc);
	if (h5_zarr_is_list_of_scales(&list, 1))
		rc = look_at_scales(v, &list, p);
	h5_attribute_release(&list);
	return rc;
}

/* ---- texts ---- */

static bool is_string(const struct h5_attribute *a)
{
	return (a->type->class == H5_CLASS_STRING ||
		(a->type->class == H5_CLASS_VLEN && a->type->vlen.is_string)) &&
	       a->space.elements == 1;
}

int h5_plot_add_attribute(struct h5_file *file, const struct h5_object *object, const char *name,
			  struct h5_buf *out)
{
	static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	const struct h5_value_context context = {.file = file};
	struct h5_attribute a;
	struct h5_buf text;
	int rc = h5_attribute_lookup(file, object, name, &a);

	if (rc)
		return only_passing(rc);
	h5_buf_init(&text, TEXT_MAX);
	if (is_string(&a))
		rc = h5_value_text(&context, a.type, &scalar, a.data, &text);
	if (!rc)
		h5_buf_add(out, text.data, text.size);
	h5_buf_release(&text);
	h5_attribute_release(&a);
	return only_passing(rc);
}

int h5_plot_add_path(const struct h5_view *v, uint64_t address, bool last, struct h5_buf *out)
{
	struct h5_buf path;
	size_t at = 0;
	int rc;

	h5_buf_init(&path, TEXT_MAX);
	rc = v->context.object_path ? v->context.object_path(v->context.arg, address, &path) : -ENOENT;
	rc = rc ? rc : path.err;
	for (size_t i = 0; last && i < path.size; i++)
		if (path.data[i] == '/')
			at = i + 1;
	if (!rc)
		h5_buf_add(out, path.data + at, path.size - at);
	h5_buf_release(&path);
	return only_passing(rc);
}

static int add_label(const struct h5_view *v, uint64_t address, const struct h5_object *object,
		     struct h5_buf *out)
{
	size_t before = out->size, named;
	int rc = h5_plot_add_attribute(v->file, object, "long_name", out);

	if (!rc && out->size == before)
		rc = h5_plot_add_path(v, address, true, out);
	if (rc)
		return rc;
	named = out->size;
	h5_buf_text(out, " (");
	before = out->size;
	rc = h5_plot_add_attribute(v->file, object, "units", out);
	if (out->size == before)
		out->size = named;
	else
		h5_buf_byte(out, ')');
	return rc;
}

int h5_plot_add_label(const struct h5_view *v, uint64_t address, struct h5_buf *out)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(v->file, address, &ref, &object);

	if (rc)
		return only_passing(rc);
	rc = add_label(v, address, object, out);
	h5_file_put(v->file, ref);
	return rc;
}

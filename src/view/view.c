#include "view/views.h"

#include "base/error.h"

#include <string.h>

const struct h5_view_ops *const h5_views[] = {&h5_view_attrs, &h5_view_csv, &h5_view_json,
					      &h5_view_npy,   &h5_view_png, NULL};

static int open_object(struct h5_view *v)
{
	int rc;

	v->object_ref = v->dataset_ref = NULL;
	v->object = NULL;
	v->dataset = NULL;
	v->size = 0;
	v->dataset_from = H5_UNDEF;
	h5_buf_init(&v->head, 0);
	rc = h5_object_get(v->file, v->address, &v->object_ref, &v->object);
	/* Its attributes can be read, even if a dataset can't be. */
	if (!rc && v->object->kind == H5_OBJECT_DATASET && !v->ops->of_attributes)
		rc = h5_dataset_get(v->file, v->address, &v->dataset_ref, &v->dataset);
	return rc;
}

static void close_object(struct h5_view *v)
{
	h5_file_put(v->file, v->dataset_ref);
	h5_file_put(v->file, v->object_ref);
	v->dataset_ref = v->object_ref = NULL;
}

int h5_view_shows(const struct h5_view *view)
{
	struct h5_view v = *view;
	int rc = open_object(&v);

	if (!rc)
		rc = v.ops->shows(&v);
	close_object(&v);
	return !rc || h5_is_passing(rc) ? rc : -ENOENT;
}

int h5_view_open(struct h5_view *v, bool reading)
{
	int rc = open_object(v);

	if (!rc)
		rc = v->ops->shows(v);
	if (rc == -ENOENT)
		h5_fail(rc, v->address, "no object for the view %s", v->ops->name);
	if (!rc)
		rc = v->ops->open(v, reading);
	if (!rc && v->size > INT64_MAX)
		rc = h5_fail(-EOVERFLOW, v->address, "a file of more than 2^63-1 bytes");
	h5_file_put(v->file, v->object_ref);
	v->object_ref = NULL;
	v->object = NULL;
	return rc;
}

int h5_view_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	if (offset < v->head.size) {
		size_t left = v->head.size - (size_t)offset, part = n < left ? n : left;

		memcpy(buf, v->head.data + offset, part);
		offset += part;
		buf = (char *)buf + part;
		n -= part;
	}
	return n ? v->ops->read(v, offset, buf, n) : 0;
}

void h5_view_release(struct h5_view *v)
{
	if (v->ops && v->ops->release)
		v->ops->release(v);
	h5_buf_release(&v->head);
	close_object(v);
}

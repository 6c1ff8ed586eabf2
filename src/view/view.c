#include "view/views.h"

#include "base/error.h"

#include <string.h>

/* An object is shown by at most one of these. */
static const struct h5_view_ops *const contents[] = {&h5_view_raw, &h5_view_lines, &h5_view_jsonl,
						     &h5_view_ddl, NULL};

static const struct h5_view_ops *find_contents(const struct h5_view *v)
{
	for (size_t i = 0; contents[i]; i++)
		if (!contents[i]->shows(v))
			return contents[i];
	return NULL;
}

const struct h5_view_ops *h5_view_of_dataset(const struct h5_dataset *dataset)
{
	const struct h5_view v = {.dataset = dataset};

	return find_contents(&v);
}

static int find_object(struct h5_view *v, const struct h5_object *known)
{
	int rc = 0;

	v->dataset_from = H5_UNDEF;
	v->object = known;
	if (!known)
		rc = h5_object_get(v->file, v->address, &v->object_ref, &v->object);
	/* The attributes of a dataset can be read even if the dataset itself can't be. */
	if (rc || v->object->kind != H5_OBJECT_DATASET || (v->ops && v->ops->of_attributes))
		return rc;
	if (!known)
		return h5_dataset_get(v->file, v->address, &v->dataset_ref, &v->dataset);
	rc = h5_dataset_outline(v->file, known, &v->outline);
	v->dataset = v->outline;
	/* The size of a virtual dataset may be that of its sources. */
	if (!rc && h5_dataset_is_virtual(v->dataset))
		rc = h5_dataset_get(v->file, v->address, &v->dataset_ref, &v->dataset);
	return rc;
}

static void put_object(struct h5_view *v)
{
	h5_file_put(v->file, v->object_ref);
	v->object_ref = NULL;
	v->object = NULL;
}

int h5_view_begin(struct h5_view *v, const struct h5_object *known)
{
	int rc = find_object(v, known);

	if (rc)
		return rc;
	if (!v->ops && !(v->ops = find_contents(v)))
		return h5_fail(-EUCLEAN, v->address, "neither group, nor dataset, nor datatype");
	rc = v->ops->shows(v);
	return rc == -ENOENT ? h5_fail(rc, v->address, "no object for the view %s", v->ops->name) : rc;
}

static bool is_directory(const struct h5_view *v)
{
	return v->ops->directory && (!v->ops->directory->is_one || v->ops->directory->is_one(v));
}

int h5_view_shows(const struct h5_view *view, bool as_directory)
{
	struct h5_view v = *view;
	int rc = find_object(&v, NULL);

	if (!rc)
		rc = v.ops->shows(&v);
	if (!rc && is_directory(&v) != as_directory)
		rc = -ENOENT;
	h5_view_release(&v);
	return !rc || h5_is_passing(rc) ? rc : -ENOENT;
}

int h5_view_complete(struct h5_view *v)
{
	return v->dataset && !v->dataset->is_whole ? h5_dataset_complete(v->outline, v->object) : 0;
}

int h5_view_open(struct h5_view *v, bool reading)
{
	int rc = reading || !v->ops->is_sized ? h5_view_complete(v) : 0;

	if (!rc)
		rc = v->ops->open(v, reading);
	put_object(v);
	/* stat() shows a size that is too large, as well as it can, but such a file cannot be read. */
	if (!rc && v->size > INT64_MAX && (reading || !v->ops->is_sized))
		rc = h5_fail(-EOVERFLOW, v->address, "a file of more than 2^63-1 bytes");
	return rc;
}

int h5_view_read_head(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	size_t part = n < v->head.size - offset ? n : v->head.size - (size_t)offset;

	memcpy(buf, v->head.data + offset, part);
	return n > part ? h5_view_read(v, offset + part, (char *)buf + part, n - part) : 0;
}

void h5_view_release(struct h5_view *v)
{
	if (v->ops && v->ops->release)
		v->ops->release(v);
	h5_buf_release(&v->head);
	h5_dataset_free(v->outline);
	h5_file_put(v->file, v->dataset_ref);
	put_object(v);
	free(v->mine);
	v->mine = NULL;
	v->outline = NULL;
	v->dataset_ref = NULL;
	v->dataset = NULL;
}

/* Contents of files: a dataset's bytes or lines, a committed datatype's DDL. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum h5_format h5_content_format(const struct h5_dataset *dataset)
{
	const struct h5_datatype *type = dataset->type;

	if (h5_datatype_is_fixed(type))
		return H5_FORMAT_RAW;
	return type->class == H5_CLASS_VLEN && type->vlen.is_string ? H5_FORMAT_LINES : H5_FORMAT_JSONL;
}

int h5_content_ddl(struct h5_file *file, uint64_t address, struct h5_buf *out)
{
	const struct h5_message *message;
	const struct h5_object *object;
	struct h5_message_body body = {0};
	struct h5_datatype *type = NULL;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, address, &ref, &object);

	if (rc)
		return rc;
	message = h5_object_find(object, H5_MSG_DATATYPE);
	rc = message ? h5_message_open(file, message, &body)
		     : h5_fail(-EUCLEAN, address, "no datatype message");
	if (!rc)
		rc = h5_datatype_decode(&body.reader, &type);
	if (!rc) {
		h5_datatype_ddl(type, false, out);
		h5_buf_byte(out, '\n');
		rc = out->err;
	}
	h5_datatype_free(type);
	h5_message_release(file, &body);
	h5_file_put(file, ref);
	return rc;
}

/* ---- open files ---- */

struct h5_handle {
	struct h5_vfs *vfs;
	struct h5_file *file;
	const struct h5_dataset *dataset; /* NULL: a committed datatype */
	struct h5_lru_entry *dataset_ref;
	const struct h5_text *text; /* NULL: raw */
	struct h5_lru_entry *text_ref;
	struct h5_buf ddl;
	struct h5_handle *prev, *next; /* vfs->lock: in vfs->handles */
};

static int open_dataset(struct h5_handle *h, const struct h5_node *node)
{
	int rc = h5_dataset_get(node->file, node->address, &h->dataset_ref, &h->dataset);

	if (!rc && h->dataset->size > INT64_MAX)
		rc = h5_fail(-EOVERFLOW, node->address, "dataset of more than 2^63-1 bytes");
	if (!rc && h5_content_format(h->dataset) != H5_FORMAT_RAW)
		rc = h5_text_get(h->vfs, h->dataset, &h->text_ref, &h->text);
	return rc;
}

/* An object that was damaged when its name was looked up: why. */
static int open_damaged(const struct h5_node *node)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(node->file, node->address, &ref, &object);

	if (rc)
		return rc;
	h5_file_put(node->file, ref);
	return h5_fail(-EUCLEAN, node->address, "neither group, nor dataset, nor datatype");
}

static int open_node(struct h5_handle *h, const struct h5_node *node)
{
	switch (node->kind) {
	case H5_NODE_DATASET:
		return open_dataset(h, node);
	case H5_NODE_DATATYPE:
		return h5_content_ddl(node->file, node->address, &h->ddl);
	case H5_NODE_DAMAGED:
		return open_damaged(node);
	case H5_NODE_DIRECTORY:
		return -EISDIR;
	default:
		return -ELOOP;
	}
}

static void handle_free(struct h5_handle *h)
{
	h5_file_put(h->file, h->text_ref);
	h5_file_put(h->file, h->dataset_ref);
	h5_buf_release(&h->ddl);
	free(h);
}

int h5_vfs_open_file(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle)
{
	struct h5_handle *h;
	int rc;

	if ((flags & O_ACCMODE) != O_RDONLY)
		return -EROFS;
	h = calloc(1, sizeof *h);
	if (!h)
		return -ENOMEM;
	h->vfs = vfs;
	h->file = node->file;
	h5_buf_init(&h->ddl, SIZE_MAX);
	rc = open_node(h, node);
	if (rc) {
		handle_free(h);
		return rc;
	}
	pthread_mutex_lock(&vfs->lock);
	DL_PREPEND(vfs->handles, h);
	pthread_mutex_unlock(&vfs->lock);
	*handle = h;
	return 0;
}

void h5_vfs_close_file(struct h5_handle *h)
{
	pthread_mutex_lock(&h->vfs->lock);
	DL_DELETE(h->vfs->handles, h);
	pthread_mutex_unlock(&h->vfs->lock);
	handle_free(h);
}

void h5_handles_close(struct h5_vfs *vfs)
{
	while (vfs->handles)
		h5_vfs_close_file(vfs->handles);
}

int h5_vfs_read(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	uint64_t size = h->text ? h5_text_size(h->text) : h->dataset ? h->dataset->size : h->ddl.size;

	*got = 0;
	if (offset >= size)
		return 0;
	n = (size_t)h5_min(n, size - offset);
	*got = n;
	if (h->text)
		return h5_text_read(h->vfs, h->dataset, h->text, offset, buf, n);
	if (h->dataset)
		return h5_dataset_read(h->dataset, offset, buf, n);
	memcpy(buf, h->ddl.data + offset, n);
	return 0;
}

/* Writing to open files, and changing their size: the rules of MAPPING section 6. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "store/statistics.h"
#include "vfs/changes.h"
#include "vfs/handle.h"
#include "vfs/paths.h"

#include <assert.h>

/* ---- what has grown ---- */

/* After a file has grown. If the kernel may have stale pages, keeps the new size from it, and returns the
 * offset from which on they are stale. With the exclusive lock, so no other request has seen the new size. */
static uint64_t hide_growth(struct h5_vfs *vfs, struct h5_node *node, uint64_t before, uint64_t offset,
			    bool truncated)
{
	uint64_t stale = H5_NOT_STALE;

	pthread_mutex_lock(&vfs->lock);
	if (node->cached && !(truncated && node->mapped)) {
		node->told_size = node->growing ? h5_min(node->told_size, before) : before;
		node->growing++;
		stale = h5_min(before, offset);
	}
	pthread_mutex_unlock(&vfs->lock);
	return stale;
}

uint64_t h5_vfs_size_limit(struct h5_vfs *vfs, const struct h5_node *node)
{
	uint64_t limit;

	pthread_mutex_lock(&vfs->lock);
	limit = node->growing ? node->told_size : UINT64_MAX;
	pthread_mutex_unlock(&vfs->lock);
	return limit;
}

void h5_vfs_tell_size(struct h5_vfs *vfs, struct h5_node *node)
{
	pthread_mutex_lock(&vfs->lock);
	assert(node->growing);
	node->growing--;
	pthread_mutex_unlock(&vfs->lock);
}

/* ---- writing ---- */

static int write_all(struct h5_handle *h, uint64_t offset, const void *data, size_t n, bool append,
		     size_t *written)
{
	int rc = h5_changes_begin(h->vfs, h->input.writer);

	if (rc)
		return rc;
	h->unsaved = true;
	rc = h->input.ops->write(&h->input, offset, data, n, append, written);
	h5_changes_end(h->vfs);
	/* As POSIX has it: if a part was written, the next call tells why the rest was not. */
	return *written ? 0 : rc;
}

int h5_vfs_write(struct h5_handle *h, uint64_t offset, const void *buf, size_t n, enum h5_write_where where,
		 size_t *written, uint64_t *stale)
{
	uint64_t size, left = n;
	int rc;

	*written = 0;
	*stale = H5_NOT_STALE;
	if (!h->input.ops)
		return -EBADF;
	h5_lock_to_write(h->vfs);
	rc = h5_dataset_writer_ready(h->input.writer);
	if (rc) {
		h5_unlock(h->vfs);
		return rc;
	}
	size = h5_dataset_writer_size(h->input.writer);
	if (where == H5_WRITE_APPEND)
		offset = size;
	else if (where == H5_WRITE_INSIDE)
		left = offset < size ? h5_min(n, size - offset) : 0;
	rc = write_all(h, offset, buf, (size_t)left, where == H5_WRITE_APPEND, written);
	if (!rc && h->direct && h5_dataset_writer_size(h->input.writer) > size)
		*stale = hide_growth(h->vfs, h->node, size, offset, false);
	h5_unlock(h->vfs);
	h5_count(&h->vfs->bytes_written, *written);
	/* The rest of a mapped page, beyond the end, belongs to no file. */
	if (!rc && where == H5_WRITE_INSIDE && *written == left)
		*written = n;
	return rc;
}

/* ---- committing ---- */

static int check_row(const struct h5_handle *h)
{
	return h->input.filled ? h5_fail(-EINVAL, h->node->address, "the last row is incomplete") : 0;
}

/* Tells each handle once that bytes were lost which it has written: by `rc`, or by its own error. */
static int tell_loss(struct h5_handle *h, int rc)
{
	int lost = h->lost;

	h->lost = 0;
	if (rc || !lost)
		return rc;
	return h5_fail(lost, h->node->address, "what was written could not be stored, and is lost");
}

int h5_vfs_flush(struct h5_handle *h)
{
	int rc = 0;

	if (!h->input.ops)
		return 0;
	h5_lock_to_write(h->vfs);
	if (h->vfs->options.commit_at_close && h->unsaved)
		rc = h5_changes_commit(h->vfs, h->input.writer);
	rc = tell_loss(h, rc);
	if (!rc)
		rc = check_row(h);
	h5_unlock(h->vfs);
	return rc;
}

int h5_vfs_fsync(struct h5_handle *h)
{
	int rc;

	if (!h->vfs->options.writable)
		return 0;
	h5_lock_to_write(h->vfs);
	rc = h5_changes_commit(h->vfs, h->input.writer);
	if (h->input.ops)
		rc = tell_loss(h, rc);
	if (!rc)
		rc = check_row(h);
	h5_unlock(h->vfs);
	return rc;
}

int h5_vfs_commit(struct h5_vfs *vfs)
{
	int rc;

	if (!vfs->options.writable)
		return 0;
	h5_lock_to_write(vfs);
	rc = h5_changes_commit(vfs, NULL);
	h5_unlock(vfs);
	return rc;
}

/* ---- size, opening and closing ---- */

static int set_size(struct h5_vfs *vfs, uint64_t address, struct h5_dataset_writer *writer, uint64_t size)
{
	uint64_t row = h5_dataset_writer_row(writer);
	int rc;

	if (size == h5_dataset_writer_size(writer))
		return 0;
	if (!h5_dataset_writer_can_resize(writer))
		return h5_fail(-EPERM, address, "the size of the dataset cannot change");
	if (size % row)
		return h5_fail(-EINVAL, address, "no whole rows of %ju bytes", (uintmax_t)row);
	rc = h5_changes_begin(vfs, writer);
	if (rc)
		return rc;
	rc = h5_dataset_writer_resize(writer, size / row);
	h5_changes_end(vfs);
	return rc;
}

int h5_vfs_truncate(struct h5_vfs *vfs, struct h5_node *node, struct h5_handle *handle, uint64_t size,
		    uint64_t *stale)
{
	struct h5_view_input input;
	uint64_t before;
	int rc;

	*stale = H5_NOT_STALE;
	if (!vfs->options.writable)
		return -EROFS;
	if (node->kind == H5_NODE_DIRECTORY)
		return -EISDIR;
	h5_lock_to_write(vfs);
	rc = h5_changes_open(vfs, node, &input);
	if (rc)
		goto out;
	before = h5_dataset_writer_size(input.writer);
	rc = set_size(vfs, node->address, input.writer, size);
	if (!rc && size > before)
		*stale = hide_growth(vfs, node, before, before, true);
	if (!rc && handle)
		handle->unsaved = true;
	h5_changes_close(&input);
out:
	h5_unlock(vfs);
	return rc;
}

int h5_write_open(struct h5_handle *h, const struct h5_node *node, bool cut)
{
	struct h5_view_input input;
	int rc = h5_changes_open(h->vfs, node, &input);

	if (rc)
		return rc;
	if (cut)
		rc = set_size(h->vfs, node->address, input.writer, 0);
	if (rc) {
		h5_changes_close(&input);
		return rc;
	}
	h->input = input;
	h->unsaved = cut;
	return 0;
}

void h5_write_close(struct h5_handle *h)
{
	if (h->input.filled) {
		h5_count(&h->vfs->dropped_rows, 1);
		h5_log_about(h->vfs, h->node->address, "an incomplete row was dropped: %zu of %ju bytes",
			     h->input.filled, (uintmax_t)h5_dataset_writer_row(h->input.writer));
	}
	h5_changes_close(&h->input);
}

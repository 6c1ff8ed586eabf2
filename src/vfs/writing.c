/* Requests that write the contents of datasets, by the rules of doc/h5fs.1, Writing. */
#include "vfs/writing.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "store/statistics.h"
#include "vfs/growth.h"
#include "vfs/input.h"
#include "vfs/objects.h"
#include "vfs/paths.h"
#include "vfs/pending.h"
#include "vfs/plain.h"
#include "vfs/replacing.h"
#include "vfs/source.h"

static int write_all(struct h5_handle *h, uint64_t offset, const void *data, size_t n, bool append,
		     size_t *written)
{
	int rc = h5_change_begin_through(h->vfs, h->input.writer);

	if (rc)
		return rc;
	h->unsaved = true;
	rc = h->input.ops->write(&h->input, offset, data, n, append, written);
	if (!h->replacement)
		h5_change_note(h->vfs, h->node);
	h5_change_done(h->vfs);
	/* As POSIX has it: if a part was written, the next call tells why the rest was not. */
	return *written ? 0 : rc;
}

/* The same for new contents of a dataset that keeps its size. */
static int write_new(struct h5_handle *h, uint64_t offset, const void *data, size_t n,
		     enum h5_write_where where, size_t *written)
{
	int rc = h5_change_begin_through(h->vfs, h->input.writer);

	if (rc)
		return rc;
	rc = h5_replacing_write(h, offset, data, n, where, written);
	h5_change_done(h->vfs);
	return rc;
}

/* The bytes of a file of text whose size the kernel has to be told if it grows. */
static int write_text(struct h5_handle *h, uint64_t offset, const void *data, size_t n, bool append,
		      size_t *written, uint64_t *stale)
{
	uint64_t before = H5_NOT_STALE;
	int rc = append ? 0 : h5_input_check_end(h, offset);

	if (!rc && h->direct && !h->replacement && h5_growth_is_watched(h->vfs, h->node))
		rc = h5_input_text_size(h->vfs, h->node, &before);
	if (!rc)
		rc = write_all(h, offset, data, n, append, written);
	h5_input_written(h, rc);
	if (*written)
		h->input.next = offset + *written;
	if (*written && before != H5_NOT_STALE)
		*stale = h5_growth_hide(h->vfs, h->node, before, before, false);
	return rc;
}

/* n bytes of raw elements. */
static int write_raw(struct h5_handle *h, uint64_t offset, const void *data, size_t n, bool append,
		     size_t *written, uint64_t *stale)
{
	uint64_t size = h5_dataset_writer_size(h->input.writer);
	int rc = 0;

	if (append)
		offset = size;
	if (h5_plain_has(h->vfs, h->node->entity.address))
		rc = h5_plain_grow(h->vfs, h->input.writer, offset + n);
	if (!rc)
		rc = write_all(h, offset, data, n, append, written);
	if (!rc && h->direct && h5_dataset_writer_size(h->input.writer) > size &&
	    h5_growth_is_watched(h->vfs, h->node))
		*stale = h5_growth_hide(h->vfs, h->node, size, offset, false);
	return rc;
}

int h5_vfs_write(struct h5_handle *h, uint64_t offset, const void *buf, size_t n, enum h5_write_where where,
		 size_t *written, uint64_t *stale)
{
	const bool append = where == H5_WRITE_APPEND;
	uint64_t size, left = n;
	bool is_new;
	int rc;

	*written = 0;
	*stale = H5_NOT_STALE;
	if (h->source)
		return h5_source_write(h, offset, buf, n, append, written);
	if (!h->input.ops)
		return -EBADF;
	h5_lock_to_write(h->vfs);
	is_new = h->replacement && !h->input.ops->is_text;
	rc = is_new ? write_new(h, offset, buf, n, where, written) : h5_dataset_writer_ready(h->input.writer);
	if (rc || is_new) {
		if (h->replacement)
			h5_replacement_note(h->replacement, rc);
		h5_unlock(h->vfs);
		h5_count(&h->vfs->bytes_written, *written);
		return rc;
	}
	size = h5_dataset_writer_size(h->input.writer);
	if (where == H5_WRITE_INSIDE)
		left = offset < size ? h5_min(n, size - offset) : 0;
	rc = h->input.ops->is_text ? write_text(h, offset, buf, n, append, written, stale)
				   : write_raw(h, offset, buf, (size_t)left, append, written, stale);
	h5_unlock(h->vfs);
	h5_count(&h->vfs->bytes_written, *written);
	/* The rest of a mapped page, beyond the end, belongs to no file. */
	if (!rc && where == H5_WRITE_INSIDE && *written == left)
		*written = n;
	return rc;
}

/* ---- requests that commit ---- */

static int check_row(struct h5_handle *h)
{
	int rc;

	if (h->input.filled && h->input.ops->check) {
		rc = h->input.ops->check(&h->input);
		h5_input_log(h, rc);
		return rc;
	}
	return h->input.filled ? h5_fail(-EINVAL, h->node->entity.address, "the last row is incomplete") : 0;
}

/* Tells each handle once that bytes were lost which it has written: by `rc`, or by its own error. */
static int tell_loss(struct h5_handle *h, int rc)
{
	int lost = h->lost;

	h->lost = 0;
	if (rc || !lost)
		return rc;
	return h5_fail(lost, h->node->entity.address, "what was written could not be stored, and is lost");
}

/* New contents take the place of the old ones. -EINVAL: they are not complete. */
static int finish_new(struct h5_handle *h, bool flush)
{
	int rc;

	if (!h->replacement || (flush && h5_replacing_waits(h)))
		return 0;
	rc = h5_change_begin_through(h->vfs, h->input.writer);
	if (rc)
		return rc;
	rc = h5_replacing_finish(h);
	if (!rc)
		h5_change_note(h->vfs, h->node);
	h5_change_done(h->vfs);
	return rc;
}

/* A descriptor of the file is closed. Unless it is plain, what close() returns for is in the HDF5 file, so
 * there may be no waiting for the last close. */
static int keep_closed(struct h5_handle *h)
{
	struct h5_vfs *vfs = h->vfs;

	if (h5_plain_has(vfs, h->node->entity.address))
		return h->unsaved ? h5_plain_fit(vfs, h->input.writer) : 0;
	if (!vfs->options.commit_at_close)
		return 0;
	h5_pending_end(vfs, h->node->entity.address);
	return h->unsaved ? h5_changes_commit_of(vfs, h->input.writer) : 0;
}

int h5_vfs_flush(struct h5_handle *h)
{
	int rc;

	if (h->source)
		return h5_source_flush(h);
	if (!h->input.ops)
		return 0;
	h5_lock_to_write(h->vfs);
	rc = h->unfinished = finish_new(h, true);
	if (!rc)
		rc = keep_closed(h);
	rc = tell_loss(h, rc);
	if (!rc)
		rc = check_row(h);
	h5_unlock(h->vfs);
	return rc;
}

int h5_vfs_fsync(struct h5_handle *h)
{
	int rc, committed;

	if (!h->vfs->options.writable)
		return 0;
	if (h->source) {
		rc = h5_source_flush(h);
		return rc ? rc : h5_vfs_commit(h->vfs);
	}
	h5_lock_to_write(h->vfs);
	rc = finish_new(h, false);
	if (!rc && h->unsaved && h5_plain_has(h->vfs, h->node->entity.address))
		rc = h5_plain_fit(h->vfs, h->input.writer);
	if (h->node->entity.file == h->vfs->file)
		h5_pending_end(h->vfs, h->node->entity.address);
	committed = h5_changes_commit_of(h->vfs, h->input.writer);
	rc = rc ? rc : committed;
	rc = tell_loss(h, rc);
	if (h->node->shown && h->node->shown->lost)
		rc = h5_objects_tell_loss(h->node, rc);
	if (!rc)
		rc = check_row(h);
	h5_unlock(h->vfs);
	return rc;
}

/* ---- size, opening and closing ---- */

/* `handle` has asked for it; NULL: nobody who has the file open. */
static int set_size(struct h5_vfs *vfs, const struct h5_node *node, struct h5_handle *handle,
		    struct h5_dataset_writer *writer, uint64_t size)
{
	uint64_t row = h5_dataset_writer_row(writer);
	struct h5_view_input *own = handle && handle->input.ops ? &handle->input : NULL;
	bool completes = own && own->ops->is_completed && own->ops->is_completed(own, size);
	int rc;

	if (size == h5_dataset_writer_size(writer) && !completes)
		return 0;
	if (!h5_dataset_writer_can_resize(writer))
		return h5_fail(-EPERM, node->entity.address, "the size of the dataset cannot change");
	if (size % row)
		return h5_fail(-EINVAL, node->entity.address, "no whole rows of %ju bytes", (uintmax_t)row);
	rc = h5_change_begin_through(vfs, writer);
	if (rc)
		return rc;
	if (completes)
		rc = own->ops->complete(own);
	if (!rc)
		rc = h5_plain_grow(vfs, writer, size);
	if (!rc)
		rc = h5_dataset_writer_resize(writer, size / row);
	h5_change_note(vfs, node);
	h5_change_done(vfs);
	return rc;
}

static int set_text_size(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_view_input *input,
			 uint64_t size)
{
	int rc = h5_change_begin_through(vfs, input->writer);

	if (rc)
		return rc;
	rc = h5_replacing_set_text_size(vfs, node, input, size);
	h5_change_note(vfs, node);
	h5_change_done(vfs);
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
	if (handle && handle->source)
		return h5_source_truncate(handle, size);
	if (node->entity.kind == H5_NODE_DIRECTORY)
		return -EISDIR;
	h5_lock_to_write(vfs);
	if (handle && h5_replacing_truncates(handle, size)) {
		rc = h5_change_begin_through(vfs, handle->input.writer);
		if (!rc) {
			rc = handle->input.ops->is_text ? h5_replacing_resize_text(handle, size)
							: h5_replacing_resize(handle, size);
			h5_change_done(vfs);
		}
		goto out;
	}
	rc = h5_input_open(vfs, node, &input);
	if (rc)
		goto out;
	before = h5_dataset_writer_size(input.writer);
	rc = input.ops->is_text ? set_text_size(vfs, node, &input, size)
				: set_size(vfs, node, handle, input.writer, size);
	if (!rc && size > before && !input.ops->is_text)
		*stale = h5_growth_hide(vfs, node, before, before, true);
	if (!rc && handle)
		handle->unsaved = true;
	h5_input_close(&input);
out:
	h5_unlock(vfs);
	return rc;
}

int h5_writing_open(struct h5_handle *h, const struct h5_node *node, bool cut)
{
	struct h5_view_input input;
	int rc = h5_input_open(h->vfs, node, &input);

	if (rc)
		return rc;
	if (cut && (input.ops->is_text || h5_dataset_keeps_size(input.writer)) &&
	    !h5_tx_is_swmr(h->vfs->file))
		rc = h5_replacing_begin(h, &input);
	else if (cut)
		rc = set_size(h->vfs, node, NULL, input.writer, 0);
	if (rc) {
		h5_input_close(&input);
		return rc;
	}
	h->input = input;
	h->input.replacement = h->replacement;
	h->unsaved = cut;
	return 0;
}

/* The last line may end without a newline. */
static void finish(struct h5_handle *h)
{
	int rc = h5_change_begin_through(h->vfs, h->input.writer);

	if (!rc)
		rc = h->input.ops->finish(&h->input);
	h5_change_note(h->vfs, h->node);
	h5_change_done(h->vfs);
	if (!rc && !h->replacement && h->vfs->options.commit_at_close)
		(void)h5_changes_commit_of(h->vfs, h->input.writer);
}

void h5_writing_close(struct h5_handle *h)
{
	h5_pending_closed(h->vfs, h->node->entity.address);
	if (h->input.filled && h->input.ops->finish)
		finish(h);
	if (h->input.filled)
		h5_input_drop(h);
	if (h->replacement && !h->unfinished && !finish_new(h, false) && h->vfs->options.commit_at_close)
		(void)h5_changes_commit_of(h->vfs, h->input.writer);
	if (h->replacement)
		h5_replacing_end(h);
	/* Of plain files there may be thousands in one transaction. */
	if (h5_plain_has(h->vfs, h->node->entity.address)) {
		h5_dataset_writer_put_soon(h->input.writer);
		h5_view_input_release(&h->input);
	} else {
		h5_input_close(&h->input);
	}
}

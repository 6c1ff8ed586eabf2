/* Writing to open files, and changing their size: the rules of MAPPING section 6.
 *
 * A dataset grows by whole rows, bytes come as they like. Those of a row that is not complete stay with their
 * handle (struct h5_row), so that appenders never mix within a row; the dataset gets them when the row is
 * complete. To its handle it looks as if they were there: a write may continue and overwrite them. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "dataset/layouts.h"
#include "store/file.h"
#include "store/statistics.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of an incomplete row. */
enum {
	ROW_LEAST = 4096,    /* that are allocated at least */
	ROW_KEPT = 1 << 20,  /* that stay allocated when it is complete */
	GAP_MAX = 256 << 20, /* that it may have of the fill value: nobody has sent these */
};

/* ---- what cannot grow ---- */

static int refuse_growth(const struct h5_handle *h)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(h->file, h->address, &ref, &dataset);
	unsigned other = 0;

	if (rc)
		return rc;
	for (unsigned i = 1; i < dataset->space.rank; i++)
		if (dataset->space.max[i] == H5_UNLIMITED)
			other = i;
	if (other)
		rc = h5_fail(
			-EFBIG, h->address,
			"only dimension 0 grows by writing: it is at its maximum, dimension %u is unlimited",
			other);
	else
		rc = h5_fail(-EFBIG, h->address, "the dataset has all the rows that it may have");
	h5_file_put(h->file, ref);
	return rc;
}

/* ---- what has grown ---- */

/* With the exclusive lock, so that nobody has seen the new size. Where stale pages begin, if there are any:
 * with what was written, or before. */
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
	node->growing--;
	pthread_mutex_unlock(&vfs->lock);
}

/* ---- the incomplete row ---- */

static int reserve(struct h5_row *row, size_t n, size_t limit)
{
	size_t capacity = row->capacity ? row->capacity : (size_t)h5_min(ROW_LEAST, limit);
	uint8_t *data;

	if (n <= row->capacity)
		return 0;
	if (n - row->filled > GAP_MAX)
		return h5_fail(-ENOMEM, H5_UNDEF, "an incomplete row with a gap of %zu bytes",
			       n - row->filled);
	while (capacity < n)
		capacity = capacity > limit / 2 ? limit : 2 * capacity;
	data = realloc(row->data, capacity);
	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "no memory for an incomplete row of %zu bytes", n);
	row->data = data;
	row->capacity = capacity;
	return 0;
}

/* Fills the row, which begins at the offset, with the fill value up to `end`. */
static int fill_row(struct h5_handle *h, uint64_t begin, size_t end)
{
	struct h5_row *row = &h->row;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc;

	if (end <= row->filled)
		return 0;
	rc = h5_dataset_get(h->file, h->address, &ref, &dataset);
	if (rc)
		return rc;
	h5_dataset_fill(dataset, begin + row->filled, row->data + row->filled, end - row->filled);
	h5_file_put(h->file, ref);
	return 0;
}

/* New rows, of the fill value, up to the offset. */
static int grow_to(struct h5_handle *h, uint64_t offset)
{
	struct h5_dataset_writer *w = h->writer;

	return offset > h5_dataset_writer_size(w)
		       ? h5_dataset_writer_resize(w, offset / h5_dataset_writer_row(w))
		       : 0;
}

/* The row is complete: it goes where it belongs, also if the dataset has got other rows there meanwhile. */
static int put_row(struct h5_handle *h, uint64_t begin, size_t size)
{
	struct h5_dataset_writer *w = h->writer;
	int rc = grow_to(h, begin);

	if (!rc)
		rc = begin < h5_dataset_writer_size(w) ? h5_dataset_writer_write(w, begin, h->row.data, size)
						       : h5_dataset_writer_append(w, h->row.data, size);
	if (rc)
		return rc;
	h->row.filled = 0;
	if (h->row.capacity > ROW_KEPT) {
		free(h->row.data);
		h->row = (struct h5_row){0};
	}
	return 0;
}

/* Writes into the row that begins at `begin`, from its byte `skip` on; before that it has the fill value.
 * *done: how many bytes. On failure the row is no longer than it was. */
static int write_row(struct h5_handle *h, uint64_t begin, size_t skip, const uint8_t *data, size_t n,
		     size_t *done)
{
	size_t size = (size_t)h5_dataset_writer_row(h->writer);
	struct h5_row *row = &h->row;
	int rc;

	n = (size_t)h5_min(n, size - skip);
	rc = reserve(row, skip + n, size);
	if (!rc)
		rc = fill_row(h, begin, skip);
	if (rc)
		return rc;
	memcpy(row->data + skip, data, n);
	if (skip + n == size)
		rc = put_row(h, begin, size);
	else if (skip + n > row->filled)
		row->filled = skip + n;
	*done = rc ? 0 : n;
	return rc;
}

/* Completes the row with the fill value. */
static int fill_up(struct h5_handle *h, uint64_t begin)
{
	size_t size = (size_t)h5_dataset_writer_row(h->writer);
	int rc = reserve(&h->row, size, size);

	if (!rc)
		rc = fill_row(h, begin, size);
	return rc ? rc : put_row(h, begin, size);
}

/* ---- writing ---- */

/* Where the incomplete row begins. */
static uint64_t row_begin(const struct h5_handle *h)
{
	return h->row.floats ? h5_dataset_writer_size(h->writer) : h->row.offset;
}

/* Whole rows, to the end or beyond it: as many as may be. */
static int append_rows(struct h5_handle *h, uint64_t offset, const uint8_t *data, size_t n, size_t *done)
{
	struct h5_dataset_writer *w = h->writer;
	uint64_t row = h5_dataset_writer_row(w), room = h5_dataset_writer_max_rows(w) - offset / row;
	size_t whole = (size_t)(h5_min(n / row, room) * row);
	int rc = grow_to(h, offset);

	if (!rc)
		rc = h5_dataset_writer_append(w, data, whole);
	*done = rc ? 0 : whole;
	return rc;
}

/* At the end, or beyond it; not next to what the handle has of an incomplete row. */
static int write_beyond(struct h5_handle *h, uint64_t offset, const uint8_t *data, size_t n, bool append,
			size_t *done)
{
	struct h5_dataset_writer *w = h->writer;
	uint64_t size = h5_dataset_writer_size(w), row = h5_dataset_writer_row(w), begin;
	bool follows = h->row.filled && row_begin(h) == size; /* the incomplete row is the next one */
	int rc;

	if (!row || offset / row >= h5_dataset_writer_max_rows(w))
		return refuse_growth(h);
	begin = offset - offset % row;
	if (follows)
		return begin > size ? fill_up(h, size)
				    : write_row(h, size, (size_t)(offset - size), data, n, done);
	if (offset == begin && n >= row)
		return append_rows(h, offset, data, n, done);
	if (h->row.filled)
		return h5_fail(-EINVAL, h->address, "another row of this descriptor is incomplete");
	rc = grow_to(h, begin);
	if (rc)
		return rc;
	h->row.offset = begin;
	h->row.floats = append;
	return write_row(h, begin, (size_t)(offset - begin), data, n, done);
}

/* One step of a write: *done bytes of it, or 0 where it has only made the way free. */
static int step(struct h5_handle *h, uint64_t offset, const uint8_t *data, size_t n, bool append,
		size_t *done)
{
	struct h5_dataset_writer *w = h->writer;
	uint64_t size = h5_dataset_writer_size(w), begin = h->row.filled ? row_begin(h) : UINT64_MAX;

	*done = 0;
	if (offset >= begin && offset - begin <= h->row.filled)
		return write_row(h, begin, (size_t)(offset - begin), data, n, done);
	if (offset >= size)
		return write_beyond(h, offset, data, n, append, done);
	n = (size_t)h5_min(n, size - offset);
	if (begin > offset)
		n = (size_t)h5_min(n, begin - offset);
	*done = n;
	return h5_dataset_writer_write(w, offset, data, n);
}

static int write_all(struct h5_handle *h, uint64_t offset, const uint8_t *data, size_t n, bool append,
		     size_t *written)
{
	int rc = h5_written_begin(h->vfs, h->writer);

	if (rc)
		return rc;
	h->unsaved = true;
	while (!rc && *written < n) {
		size_t done;

		rc = step(h, offset + *written, data + *written, n - *written, append, &done);
		*written += rc ? 0 : done;
	}
	h5_written_end(h->vfs);
	/* As POSIX has it: what could not be written is told to who tries again. */
	return *written ? 0 : rc;
}

int h5_vfs_write(struct h5_handle *h, uint64_t offset, const void *buf, size_t n, enum h5_write_place place,
		 size_t *written, uint64_t *stale)
{
	uint64_t size, left = n;
	int rc;

	*written = 0;
	*stale = H5_NOT_STALE;
	if (!h->writer)
		return -EBADF;
	h5_lock_to_write(h->vfs);
	rc = h5_dataset_writer_ready(h->writer);
	if (rc) {
		h5_unlock(h->vfs);
		return rc;
	}
	size = h5_dataset_writer_size(h->writer);
	if (place == H5_WRITE_APPEND)
		offset = size + (h->row.filled && row_begin(h) == size ? h->row.filled : 0);
	else if (place == H5_WRITE_INSIDE)
		left = offset < size ? h5_min(n, size - offset) : 0;
	rc = write_all(h, offset, buf, (size_t)left, place == H5_WRITE_APPEND, written);
	if (!rc && h->direct && h5_dataset_writer_size(h->writer) > size)
		*stale = hide_growth(h->vfs, h->node, size, offset, false);
	h5_unlock(h->vfs);
	h5_count(&h->vfs->bytes_written, *written);
	/* The rest of a page is nobody's. */
	if (!rc && place == H5_WRITE_INSIDE && *written == left)
		*written = n;
	return rc;
}

/* ---- committing ---- */

static int check_row(const struct h5_handle *h)
{
	return h->row.filled ? h5_fail(-EINVAL, h->address, "the last row is incomplete") : 0;
}

/* What was lost is told once to each handle that wrote it: as `rc` right now, or from before. */
static int tell_loss(struct h5_handle *h, int rc)
{
	int lost = h->lost;

	h->lost = 0;
	if (rc || !lost)
		return rc;
	return h5_fail(lost, h->address, "what was written could not be stored, and is lost");
}

int h5_vfs_flush(struct h5_handle *h)
{
	int rc = 0;

	if (!h->writer)
		return 0;
	h5_lock_to_write(h->vfs);
	if (h->vfs->options.commit_at_close && h->unsaved)
		rc = h5_written_commit(h->vfs, h->writer);
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
	rc = h5_written_commit(h->vfs, h->writer);
	if (h->writer)
		rc = tell_loss(h, rc);
	if (!rc)
		rc = check_row(h);
	h5_unlock(h->vfs);
	return rc;
}

/* ---- size, opening and closing ---- */

static int set_size(struct h5_vfs *vfs, uint64_t address, struct h5_dataset_writer *w, uint64_t size)
{
	uint64_t row = h5_dataset_writer_row(w);
	int rc;

	if (size == h5_dataset_writer_size(w))
		return 0;
	if (!h5_dataset_writer_can_resize(w))
		return h5_fail(-EPERM, address, "the size of the dataset cannot change");
	if (size % row)
		return h5_fail(-EINVAL, address, "no whole rows of %ju bytes", (uintmax_t)row);
	rc = h5_written_begin(vfs, w);
	if (rc)
		return rc;
	rc = h5_dataset_writer_resize(w, size / row);
	h5_written_end(vfs);
	return rc;
}

int h5_vfs_truncate(struct h5_vfs *vfs, struct h5_node *node, struct h5_handle *handle, uint64_t size,
		    uint64_t *stale)
{
	struct h5_dataset_writer *w;
	uint64_t before;
	int rc;

	*stale = H5_NOT_STALE;
	if (!vfs->options.writable)
		return -EROFS;
	if (node->kind == H5_NODE_DIRECTORY)
		return -EISDIR;
	h5_lock_to_write(vfs);
	rc = h5_written_get(vfs, node, &w);
	if (rc)
		goto out;
	before = h5_dataset_writer_size(w);
	rc = set_size(vfs, node->address, w, size);
	if (!rc && size > before)
		*stale = hide_growth(vfs, node, before, before, true);
	if (!rc && handle)
		handle->unsaved = true;
	h5_dataset_writer_put(w);
out:
	h5_unlock(vfs);
	return rc;
}

int h5_write_open(struct h5_handle *h, const struct h5_node *node, bool cut)
{
	struct h5_dataset_writer *w;
	int rc = h5_written_get(h->vfs, node, &w);

	if (rc)
		return rc;
	if (cut)
		rc = set_size(h->vfs, node->address, w, 0);
	if (rc) {
		h5_dataset_writer_put(w);
		return rc;
	}
	h->writer = w;
	h->unsaved = cut;
	return 0;
}

void h5_write_close(struct h5_handle *h)
{
	const struct h5_row *row = &h->row;

	if (row->filled) {
		h5_count(&h->vfs->dropped_rows, 1);
		h5_log_about(h->vfs, h->address, "an incomplete row was dropped: %zu of %ju bytes",
			     row->filled, (uintmax_t)h5_dataset_writer_row(h->writer));
	}
	free(h->row.data);
	h->row = (struct h5_row){0};
	h5_dataset_writer_put(h->writer);
	h->writer = NULL;
}

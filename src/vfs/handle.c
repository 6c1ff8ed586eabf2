/* Open files: reading, and looking for holes. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "dataset/writer.h"
#include "store/statistics.h"
#include "vfs/content.h"
#include "vfs/handle.h"
#include "vfs/input.h"
#include "vfs/reading.h"
#include "vfs/source.h"
#include "vfs/writing.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- open files ---- */

static bool is_change(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

static int open_in_mode(struct h5_handle *h, const struct h5_node *node, int flags)
{
	struct h5_reading reading = {.vfs = h->vfs};
	bool change = is_change(flags);
	int rc;

	if (h5_is_directory(node->entity.kind))
		return -EISDIR;
	if (node->entity.kind == H5_NODE_SYMLINK)
		return -ELOOP;
	if (change && h5_input_is_possible(node)) {
		h5_lock_to_write(h->vfs);
		rc = h5_writing_open(h, node, flags & O_TRUNC);
		h5_unlock(h->vfs);
		return rc;
	}
	if (change && node->entity.kind == H5_NODE_VIEW)
		return h5_source_open(h, node, flags & O_TRUNC);
	while (h5_reading_next(&reading, &rc)) {
		h5_view_release(&h->view);
		rc = h5_content_open(h->vfs, node, &h->view);
	}
	return !rc && change ? -EPERM : rc;
}

void h5_handle_free(struct h5_handle *h)
{
	if (h->source)
		h5_source_close(h);
	if (h->input.ops) {
		h5_lock_to_write(h->vfs);
		h5_writing_close(h);
		h5_unlock(h->vfs);
	}
	h5_view_release(&h->view);
	free(h);
}

/* `by` is 1 or -1. With vfs->lock. */
static void count_handle(const struct h5_handle *h, int by)
{
	struct h5_node *node = h->node;

	if (h->mode != O_WRONLY)
		node->cached += (unsigned)by;
	if (h->mode == O_RDWR)
		node->mapped += (unsigned)by;
	if (h->mode != O_RDONLY)
		node->writing += (unsigned)by;
	assert(node->cached <= INT_MAX && node->mapped <= node->cached && node->writing <= INT_MAX);
}

/* Must the kernel read and write without its pages? It adds each byte that it has sent to the size that it
 * knows, also bytes of an incomplete row. So it takes its pages for part of the file up to there, though they
 * have zeros behind the last row, and a program that reads through them gets these zeros. Only h5_vfs_read()
 * knows where a file ends. But some kernels cannot map files shared that they read directly; there files stay
 * mappable until a program writes them. With vfs->lock. */
static bool is_to_be_direct(const struct h5_handle *h)
{
	if (h->mode == O_WRONLY)
		return true;
	return h->vfs->options.writable && (h->vfs->maps_direct || h->node->writing);
}

void h5_vfs_set_maps_direct(struct h5_vfs *vfs)
{
	vfs->maps_direct = true;
}

bool h5_vfs_is_direct(const struct h5_handle *h)
{
	return h->direct;
}

struct h5_node *h5_vfs_handle_node(const struct h5_handle *h)
{
	return h->node;
}

bool h5_vfs_is_source(const struct h5_handle *h)
{
	return h->source;
}

static struct h5_handle *handle_new(struct h5_vfs *vfs, struct h5_node *node, int flags)
{
	struct h5_handle *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	h->vfs = vfs;
	h->node = node;
	h->mode = flags & O_ACCMODE;
	return h;
}

void h5_handle_start(struct h5_handle *h)
{
	pthread_mutex_lock(&h->vfs->lock);
	DL_PREPEND(h->vfs->handles, h);
	h->node->references++;
	h->direct = is_to_be_direct(h);
	count_handle(h, 1);
	pthread_mutex_unlock(&h->vfs->lock);
}

int h5_handle_open(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle)
{
	struct h5_handle *h;
	int rc;

	if (is_change(flags) && !vfs->options.writable)
		return -EROFS;
	h = handle_new(vfs, node, flags);
	if (!h)
		return -ENOMEM;
	rc = open_in_mode(h, node, flags);
	if (rc) {
		h5_handle_free(h);
		return rc;
	}
	*handle = h;
	return 0;
}

int h5_vfs_open_file(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle)
{
	int rc = h5_handle_open(vfs, node, flags, handle);

	if (!rc)
		h5_handle_start(*handle);
	return rc;
}

/* One that is only read opens its view with its first read. */
int h5_handle_open_new(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle)
{
	struct h5_handle *h = handle_new(vfs, node, flags);
	int rc = h ? 0 : -ENOMEM;

	if (!rc && h->mode != O_RDONLY)
		rc = h5_writing_open(h, node, false);
	if (rc)
		free(h);
	else
		*handle = h;
	return rc;
}

/* The node may be gone, and the space of the object is free. */
void h5_handle_cancel(struct h5_handle *h)
{
	if (h && h->input.ops) {
		h5_dataset_writer_put_soon(h->input.writer);
		h5_view_input_release(&h->input);
	}
	free(h);
}

void h5_vfs_close_file(struct h5_handle *h)
{
	struct h5_vfs *vfs = h->vfs;
	struct h5_node *node = h->node;

	pthread_mutex_lock(&vfs->lock);
	DL_DELETE(vfs->handles, h);
	count_handle(h, -1);
	pthread_mutex_unlock(&vfs->lock);
	h5_handle_free(h);
	h5_vfs_forget(vfs, node, 1);
}

void h5_handles_close(struct h5_vfs *vfs)
{
	while (vfs->handles) {
		/* Its program has not closed it, so more was to come. */
		if (vfs->handles->replacement)
			h5_replacement_spoil(vfs->handles->replacement);
		h5_vfs_close_file(vfs->handles);
	}
}

/* ---- reading ---- */

/* The view as it is now: the one that the handle has, or, if something was changed since that was opened,
 * `fresh`. To be given back by put_view() on failure, too. */
static int get_view(const struct h5_handle *h, struct h5_view *fresh, const struct h5_view **view)
{
	if (h->view.ops && h->view.state == h5_state(h->vfs, h->node->entity.file)) {
		*view = &h->view;
		return 0;
	}
	*view = fresh;
	return h5_content_open(h->vfs, h->node, fresh);
}

static void put_view(struct h5_view *fresh, const struct h5_view *view)
{
	if (view == fresh)
		h5_view_release(fresh);
}

/* True: the handle reads the bytes that were written through it, which take the place of others later. New
 * text is read by nobody before that. */
static bool reads_new(const struct h5_handle *h)
{
	return h->replacement && !h->input.ops->is_text;
}

static int read_view(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct h5_view *view;
	struct h5_view fresh;
	int rc;

	if (reads_new(h))
		return h5_replacement_read(h->replacement, offset, buf, n, got);
	rc = get_view(h, &fresh, &view);
	if (!rc && n && offset < view->size) {
		*got = (size_t)h5_min(n, view->size - offset);
		if (offset >= view->dataset_from && !h->vfs->options.writable)
			h5_sequences_read(&h->sequences, view->dataset, offset - view->dataset_from, *got);
		rc = h5_view_read(view, offset, buf, *got);
	}
	put_view(&fresh, view);
	return rc;
}

int h5_vfs_read(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	struct h5_reading reading = {.vfs = h->vfs};
	int rc;

	while (h5_reading_next(&reading, &rc)) {
		*got = 0;
		rc = read_view(h, offset, buf, n, got);
	}
	h5_count(&h->vfs->bytes_read, *got);
	return rc;
}

/* ---- holes ---- */

static bool is_mapped(const struct h5_handle *h)
{
	bool mapped;

	pthread_mutex_lock(&h->vfs->lock);
	mapped = h->node->mapped;
	pthread_mutex_unlock(&h->vfs->lock);
	return mapped;
}

/* -ENXIO: the offset is beyond the end, or no data come after it. */
static int seek_in_view(const struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found)
{
	const uint64_t limit = h5_vfs_size_limit(h->vfs, h->node);
	const struct h5_view *view;
	struct h5_view fresh;
	uint64_t size = 0;
	int rc = get_view(h, &fresh, &view);

	if (!rc) {
		size = h5_min(view->size, limit);
		*found = hole ? size : offset;
	}
	/* The kernel may have dirty pages of a mapped file, and their bytes are data already. */
	if (!rc && offset < size && !is_mapped(h))
		rc = h5_view_seek(view, offset, hole, found);
	*found = h5_min(*found, size);
	put_view(&fresh, view);
	return !rc && (offset >= size || (!hole && *found >= size)) ? -ENXIO : rc;
}

/* New contents of a dataset have no holes. */
static int seek_in_new(const struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found)
{
	const uint64_t size = h5_replacement_size(h->replacement);

	*found = hole ? size : offset;
	return offset < size ? 0 : -ENXIO;
}

int h5_vfs_seek(struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found)
{
	struct h5_reading reading = {.vfs = h->vfs};
	int rc;

	while (h5_reading_next(&reading, &rc)) {
		*found = 0;
		rc = reads_new(h) ? seek_in_new(h, offset, hole, found)
				  : seek_in_view(h, offset, hole, found);
	}
	return rc;
}

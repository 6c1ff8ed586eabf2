/* Open files: those of the folder, and those in HDF5 files. */
#include "base/error.h"
#include "base/wait.h"
#include "tree/file.h"
#include "tree/node.h"
#include "tree/object.h"
#include "tree/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

struct h5_tree_handle {
	struct h5_tree *tree;
	struct h5_tree_node *node; /* the kernel has it as long as the file is open */
	struct h5_tree_file *file; /* in use; NULL: a file of the folder */
	struct h5_handle *inside;
	int fd;				    /* of a file of the folder */
	struct h5_tree_object *object;	    /* in its place, of an object store; NULL: it is none */
	struct h5_tree_handle *prev, *next; /* tree->lock: in tree->handles */
};

static int open_plain(struct h5_tree_handle *handle, struct h5_tree_node *node, int flags)
{
	struct stat st;

	if ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC)
		return -EROFS;
	if (handle->tree->bucket)
		return h5_tree_object_open(handle->tree, node, &handle->object);
	handle->fd = h5_tree_place_open_node(handle->tree, node, O_RDONLY, &st);
	return handle->fd < 0 ? handle->fd : 0;
}

static int open_inside(struct h5_tree_handle *handle, struct h5_tree_node *node, int flags)
{
	struct h5_node *inside;
	int rc = h5_tree_file_enter(handle->tree, node, true);

	if (rc)
		return rc;
	rc = h5_tree_node_resolve(handle->tree, node, &inside);
	if (!rc)
		rc = h5_vfs_open_file(node->file->vfs, inside, flags, &handle->inside);
	if (rc)
		h5_tree_file_leave(handle->tree, node->file, true);
	else
		handle->file = node->file;
	return rc;
}

static int handle_new(struct h5_tree *tree, struct h5_tree_node *node, struct h5_tree_handle **out)
{
	struct h5_tree_handle *handle = calloc(1, sizeof *handle);

	if (!handle)
		return -ENOMEM;
	handle->tree = tree;
	handle->node = node;
	*out = handle;
	return 0;
}

static void enter_handle(struct h5_tree_handle *handle, struct h5_tree_handle **out)
{
	pthread_mutex_lock(&handle->tree->lock);
	DL_PREPEND(handle->tree->handles, handle);
	pthread_mutex_unlock(&handle->tree->lock);
	*out = handle;
}

int h5_tree_open_file(struct h5_tree *tree, struct h5_tree_node *node, int flags, struct h5_tree_handle **out)
{
	struct h5_tree_handle *handle;
	int rc = handle_new(tree, node, &handle);

	if (rc)
		return rc;
	rc = node->kind == H5_TREE_INSIDE  ? open_inside(handle, node, flags)
	     : node->kind == H5_TREE_PLAIN ? open_plain(handle, node, flags)
					   : -EISDIR;
	if (rc) {
		free(handle);
		return rc;
	}
	enter_handle(handle, out);
	return 0;
}

int h5_tree_take_handle(struct h5_tree *tree, struct h5_tree_node *node, struct h5_handle *inside,
			struct h5_tree_handle **out)
{
	struct h5_tree_handle *handle;
	int rc = handle_new(tree, node, &handle);

	if (rc) {
		h5_vfs_close_file(inside);
		return rc;
	}
	h5_tree_file_hold(tree, node->file);
	handle->inside = inside;
	handle->file = node->file;
	enter_handle(handle, out);
	return 0;
}

struct h5_handle *h5_tree_handle_inside(const struct h5_tree_handle *handle)
{
	return handle->inside;
}

void h5_tree_close_file(struct h5_tree_handle *handle)
{
	pthread_mutex_lock(&handle->tree->lock);
	DL_DELETE(handle->tree->handles, handle);
	pthread_mutex_unlock(&handle->tree->lock);
	if (handle->file) {
		h5_vfs_close_file(handle->inside);
		h5_tree_file_leave(handle->tree, handle->file, true);
	} else if (handle->object) {
		h5_tree_object_close(handle->object);
	} else {
		close(handle->fd);
	}
	free(handle);
}

int h5_tree_handles_open(struct h5_tree *tree, const struct h5_tree_node *node)
{
	struct h5_tree_handle *handle;
	int fd = -ESTALE;

	pthread_mutex_lock(&tree->lock);
	DL_FOREACH(tree->handles, handle)
	if (handle->node == node && !handle->file) {
		fd = fcntl(handle->fd, F_DUPFD_CLOEXEC, 0);
		fd = fd < 0 ? -errno : fd;
		break;
	}
	pthread_mutex_unlock(&tree->lock);
	return fd;
}

void h5_tree_handles_close(struct h5_tree *tree)
{
	while (tree->handles)
		h5_tree_close_file(tree->handles);
}

int h5_tree_read(struct h5_tree_handle *handle, uint64_t offset, void *buf, size_t n, size_t *got)
{
	ssize_t done = 1;

	if (handle->file) {
		h5_vfs_refresh(handle->file->vfs);
		return h5_vfs_read(handle->inside, offset, buf, n, got);
	}
	if (handle->object)
		return h5_tree_object_read(handle->object, offset, buf, n, got);
	h5_wait_begins();
	for (*got = 0; *got < n && done > 0; *got += done > 0 ? (size_t)done : 0)
		done = pread(handle->fd, (char *)buf + *got, n - *got, (off_t)(offset + *got));
	return done < 0 && !*got ? h5_fail(-errno, offset, "read: %m") : 0;
}

int h5_tree_seek(struct h5_tree_handle *handle, uint64_t offset, bool hole, uint64_t *found)
{
	off_t at;

	if (handle->file) {
		h5_vfs_refresh(handle->file->vfs);
		return h5_vfs_seek(handle->inside, offset, hole, found);
	}
	if (handle->object)
		return h5_tree_object_seek(handle->object, offset, hole, found);
	/* No other request needs the position of the descriptor. */
	at = lseek(handle->fd, (off_t)offset, hole ? SEEK_HOLE : SEEK_DATA);
	*found = (uint64_t)at;
	return at < 0 ? -errno : 0;
}

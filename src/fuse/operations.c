#include "fuse/operations.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "fuse/directories.h"
#include "fuse/files.h"
#include "fuse/names.h"
#include "fuse/negotiate.h"
#include "fuse/readahead.h"
#include "fuse/request.h"
#include "fuse/xattrs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct h5_handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct h5_handle *)(uintptr_t)fi->fh;
}

/* ---- names and attributes ---- */

/* The kernel does not look up `.` and `..` of paths, but only of file handles: the node itself, which it may
 * have forgotten, and the directory above it. */
static int look_up(struct h5_mount *m, fuse_ino_t parent, const char *name, struct h5_vfs_entry *entry)
{
	if (!strcmp(name, "."))
		return h5_vfs_lookup_id(m->vfs, parent, entry);
	if (!strcmp(name, ".."))
		return h5_vfs_lookup_parent(m->vfs, parent, entry);
	return h5_vfs_lookup(m->vfs, h5_request_node(m, parent), name, entry);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct h5_mount *m = h5_request_begin(req);
	struct fuse_entry_param e;
	struct h5_vfs_entry entry;
	int rc = look_up(m, parent, name, &entry);

	if (rc == -ENOENT) {
		/* With ino 0 the kernel remembers that there is no such name. (It may have forgotten the
		 * directory, if it asked for `.` or `..`.) */
		const struct h5_node *directory = h5_vfs_node(m->vfs, parent);

		e = (struct fuse_entry_param){.entry_timeout =
						      directory ? h5_request_names_timeout(m, directory) : 0};
		fuse_reply_entry(req, &e);
		return;
	}
	if (rc) {
		h5_request_fail(req, "lookup", rc);
		return;
	}
	e = h5_request_entry(m, &entry);
	if (fuse_reply_entry(req, &e))
		h5_vfs_forget(m->vfs, entry.node, 1);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	struct h5_mount *m = fuse_req_userdata(req);

	h5_vfs_forget(m->vfs, h5_request_node(m, ino), nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct h5_mount *m = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++)
		h5_vfs_forget(m->vfs, h5_request_node(m, forgets[i].ino), forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct h5_mount *m = h5_request_begin(req);
	const char *target;
	char *copy = NULL;
	int rc = h5_vfs_readlink(h5_request_node(m, ino), &target);

	/* A copy, since the kernel may forget the node as soon as the reply has arrived, before
	 * fuse_reply_readlink() returns. */
	if (!rc && !(copy = h5_request_buffer(strlen(target) + 1)))
		rc = -ENOMEM;
	if (rc)
		h5_request_fail(req, "readlink", rc);
	else
		fuse_reply_readlink(req, strcpy(copy, target));
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct h5_mount *m = h5_request_begin(req);
	struct statvfs st;
	int rc = h5_vfs_statfs(m->vfs, &st);

	(void)ino;
	if (rc)
		h5_request_fail(req, "statfs", rc);
	else
		fuse_reply_statfs(req, &st);
}

/* ---- files ---- */

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_handle *handle;
	int rc;

	if (!atomic_flag_test_and_set(&m->opened))
		h5_readahead_raise(m->readahead);
	if (m->without_open) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	rc = h5_vfs_open_file(m->vfs, h5_request_node(m, ino), fi->flags, &handle);
	if (rc) {
		h5_request_fail_on(req, ino, "open", rc);
		return;
	}
	fi->fh = (uintptr_t)handle;
	fi->keep_cache = m->locked && !m->writable;
	fi->direct_io = h5_vfs_is_direct(handle);
	fi->noflush = (fi->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY;
	if (!fuse_reply_open(req, fi))
		return;
	h5_interrupt_begin(NULL, NULL); /* the request has been answered */
	h5_vfs_close_file(handle);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	h5_request_begin_release(req);
	h5_vfs_close_file(handle_of(fi));
	fuse_reply_err(req, 0);
}

/* The handle of a request that reads. */
static int get_handle(struct h5_mount *m, fuse_ino_t ino, const struct fuse_file_info *fi,
		      struct h5_handle **handle)
{
	if (m->without_open)
		return h5_vfs_hold_file(m->vfs, h5_request_node(m, ino), handle);
	*handle = handle_of(fi);
	return 0;
}

static void put_handle(const struct h5_mount *m, struct h5_handle *handle)
{
	if (m->without_open)
		h5_vfs_release_file(handle);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);
	char *data = h5_request_buffer(size);
	struct h5_handle *handle;
	size_t got = 0;
	int rc = data ? get_handle(m, ino, fi, &handle) : -ENOMEM;

	if (!rc) {
		rc = h5_vfs_read(handle, (uint64_t)offset, data, size, &got);
		put_handle(m, handle);
	}
	if (rc)
		h5_request_fail_on(req, ino, "read", rc);
	else
		fuse_reply_buf(req, data, got);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_handle *handle;
	uint64_t found;
	int rc = get_handle(m, ino, fi, &handle);

	if (!rc) {
		rc = h5_vfs_seek(handle, (uint64_t)offset, whence == SEEK_HOLE, &found);
		put_handle(m, handle);
	}
	if (rc == -ENXIO)
		fuse_reply_err(req, ENXIO); /* not a failure */
	else if (rc)
		h5_request_fail_on(req, ino, "lseek", rc);
	else
		fuse_reply_lseek(req, (off_t)found);
}

/* ---- the session ---- */

/* If the kernel may keep what it has of files, it need not ask the daemon to open them. Files behind a URL
 * are opened: else the first reads, which the kernel sends side by side, each would ask the server for the
 * same, and each would try again if it does not answer. */
static void negotiate_open(struct h5_mount *m, const struct fuse_conn_info *connection)
{
	bool stays = m->locked && !m->writable && !m->remote;

	m->without_open = stays && connection->capable & FUSE_CAP_NO_OPEN_SUPPORT;
	m->without_opendir = stays && connection->capable & FUSE_CAP_NO_OPENDIR_SUPPORT;
}

static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	/* NFS servers may ask for nodes that the kernel has forgotten. */
	connection->want |= connection->capable & FUSE_CAP_EXPORT_SUPPORT;
	negotiate_open(userdata, connection);
	h5_negotiate(userdata, connection);
}

const struct fuse_lowlevel_ops h5_operations = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.readlink = op_readlink,
	.statfs = op_statfs,
	.opendir = h5_op_opendir,
	.readdir = h5_op_readdir,
	.readdirplus = h5_op_readdirplus,
	.releasedir = h5_op_releasedir,
	.open = op_open,
	.read = op_read,
	.lseek = op_lseek,
	.release = op_release,
	H5_FILE_OPERATIONS,
	H5_NAME_OPERATIONS,
	H5_XATTR_OPERATIONS,
};

#include "fuse/operations.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "fuse/commit.h"
#include "fuse/directories.h"
#include "fuse/invalidate.h"
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

static int get_attr(struct h5_mount *m, fuse_ino_t ino, struct stat *st)
{
	struct h5_node *node = h5_request_node(m, ino);
	uint64_t limit = h5_request_size_limit(m, node);
	int rc = h5_vfs_getattr(m->vfs, node, st);

	if (rc)
		return rc;
	/* The file may have grown meanwhile. The kernel would give the new size to the program, but not keep
	 * it itself, since it ignores attributes that it had asked for before pages were dropped. So the old
	 * limit counts. */
	h5_request_limit_size(st, limit);
	h5_request_limit_size(st, h5_request_size_limit(m, node));
	return 0;
}

static void reply_attr(fuse_req_t req, fuse_ino_t ino, struct h5_mount *m, const struct stat *st,
		       const char *what, int rc)
{
	if (rc)
		h5_request_fail_on(req, ino, what, rc);
	else
		fuse_reply_attr(req, st, h5_request_attr_timeout(m, h5_request_node(m, ino), st));
}

static void reply_getattr(fuse_req_t req, fuse_ino_t ino, size_t written)
{
	const struct h5_stale later = {
		.req = req, .ino = ino, .from = H5_NOT_STALE, .reply = reply_getattr, .written = written};
	struct h5_mount *m = fuse_req_userdata(req);
	struct stat st;
	int rc = get_attr(m, ino, &st);

	if (!m->invalidator || !h5_invalidator_postpone(m->invalidator, &later))
		reply_attr(req, ino, m, &st, "getattr", rc);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	h5_request_begin(req);
	reply_getattr(req, ino, 0);
}

static void reply_setattr(fuse_req_t req, fuse_ino_t ino, size_t written)
{
	struct h5_mount *m = fuse_req_userdata(req);
	struct stat st;
	int rc = get_attr(m, ino, &st);

	(void)written;
	reply_attr(req, ino, m, &st, "setattr", rc);
}

/* Replies at once, or, if a file has grown, after the kernel has dropped its pages of the file's end. */
static void reply_grown(struct h5_mount *m, struct h5_stale *stale)
{
	if (stale->from == H5_NOT_STALE) {
		stale->reply(stale->req, stale->ino, stale->written);
		return;
	}
	stale->node = h5_request_node(m, stale->ino);
	h5_invalidator_add(m->invalidator, stale);
}

/* access(2) and chdir(2). The kernel asks only if it does not check permissions itself. Then the owner alone
 * may enter the mount. */
static void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct h5_mount *m = h5_request_begin(req);
	struct stat st;
	int rc = get_attr(m, ino, &st);

	if (!rc && (mode_t)mask & ~(st.st_mode >> 6))
		rc = -EACCES;
	if (rc == -EACCES)
		fuse_reply_err(req, EACCES); /* not a failure */
	else
		h5_request_reply_done(req, ino, "access", rc);
}

/* Owner, group and mode are the mount's. To set them does nothing, so that `cp -p` and `tar` succeed. But if
 * other users can look, it is an error, so that nobody believes to have shut them out. */
static int check_owner_and_mode(struct h5_mount *m, fuse_ino_t ino, const struct stat *wanted, int to_set)
{
	struct stat st;
	int rc;

	if (!m->allow_other || !(to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		return 0;
	rc = get_attr(m, ino, &st);
	if (rc)
		return rc;
	if ((to_set & FUSE_SET_ATTR_MODE && (wanted->st_mode & 07777) != (st.st_mode & 07777)) ||
	    (to_set & FUSE_SET_ATTR_UID && wanted->st_uid != st.st_uid) ||
	    (to_set & FUSE_SET_ATTR_GID && wanted->st_gid != st.st_gid))
		return -EPERM;
	return 0;
}

/* Setting times succeeds, for programs that copy files, but has no effect. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_stale stale = {.req = req, .ino = ino, .from = H5_NOT_STALE, .reply = reply_setattr};
	struct h5_handle *handle = fi ? handle_of(fi) : NULL;
	int rc = m->writable ? check_owner_and_mode(m, ino, attr, to_set) : -EROFS;

	if (!rc && to_set & FUSE_SET_ATTR_SIZE)
		rc = h5_vfs_truncate(m->vfs, h5_request_node(m, ino), handle, (uint64_t)attr->st_size,
				     &stale.from);
	if (rc)
		h5_request_fail_on(req, ino, "setattr", rc);
	else
		reply_grown(m, &stale);
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
	h5_interrupt_begin(NULL, NULL); /* nobody waits for it */
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

static void reply_write(fuse_req_t req, fuse_ino_t ino, size_t written)
{
	(void)ino;
	fuse_reply_write(req, written);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);
	enum h5_write_where where = fi->writepage	   ? H5_WRITE_INSIDE
				    : fi->flags & O_APPEND ? H5_WRITE_APPEND
							   : H5_WRITE_AT;
	struct h5_stale stale = {.req = req, .ino = ino, .handle = handle_of(fi), .reply = reply_write};
	int rc =
		h5_vfs_write(handle_of(fi), (uint64_t)offset, data, size, where, &stale.written, &stale.from);

	if (rc)
		h5_request_fail_on(req, ino, "write", rc);
	else
		reply_grown(m, &stale);
}

/* The kernel drops its pages of the range. */
static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t n,
			 struct fuse_file_info *fi)
{
	h5_request_begin(req);
	h5_request_reply_done(req, ino, "fallocate",
			      h5_vfs_fallocate(handle_of(fi), mode, (uint64_t)offset, (uint64_t)n));
}

static void reply_flush(fuse_req_t req, fuse_ino_t ino, size_t written)
{
	(void)written;
	h5_request_reply_done(req, ino, "close", 0);
}

/* A file below .h5fs becomes a dataset with a name in another directory. The kernel learns of that name
 * before it gets the reply. */
static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct h5_stale later = {.req = req, .ino = ino, .from = H5_NOT_STALE, .reply = reply_flush};
	struct h5_mount *m = h5_request_begin(req);
	struct h5_handle *handle = handle_of(fi);
	int rc;

	if (m->without_open) { /* the kernel asks no more */
		fuse_reply_err(req, ENOSYS);
		return;
	}
	rc = h5_vfs_flush(handle);
	if (!rc && m->invalidator && h5_vfs_is_source(handle))
		h5_invalidator_add(m->invalidator, &later);
	else
		h5_request_reply_done(req, ino, "close", rc);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);

	(void)datasync;
	h5_request_reply_done(req, ino, "fsync", m->without_open ? 0 : h5_vfs_fsync(handle_of(fi)));
}

/* A directory has no changes of its own: all are committed. */
static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);

	(void)datasync;
	(void)fi;
	h5_request_reply_done(req, ino, "fsync", h5_vfs_fsync_directory(m->vfs, h5_request_node(m, ino)));
}

/* ---- names that are made, moved and removed ---- */

/* Replies with a new name. */
static void reply_entry(fuse_req_t req, const char *what, int rc, struct h5_vfs_entry *entry)
{
	struct h5_mount *m = fuse_req_userdata(req);
	struct fuse_entry_param e;

	if (rc) {
		h5_request_fail(req, what, rc);
		return;
	}
	e = h5_request_entry(m, entry);
	if (fuse_reply_entry(req, &e))
		h5_vfs_forget(m->vfs, entry->node, 1);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_vfs_entry entry;

	(void)mode;
	reply_entry(req, "mkdir", h5_vfs_mkdir(m->vfs, h5_request_node(m, parent), name, &entry), &entry);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_vfs_entry entry;

	reply_entry(req, "symlink", h5_vfs_symlink(m->vfs, target, h5_request_node(m, parent), name, &entry),
		    &entry);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_vfs_entry entry;

	reply_entry(req, "link",
		    h5_vfs_link(m->vfs, h5_request_node(m, ino), h5_request_node(m, parent), name, &entry),
		    &entry);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct h5_mount *m = h5_request_begin(req);

	h5_request_reply_done(req, parent, "unlink", h5_vfs_unlink(m->vfs, h5_request_node(m, parent), name));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct h5_mount *m = h5_request_begin(req);

	h5_request_reply_done(req, parent, "rmdir", h5_vfs_rmdir(m->vfs, h5_request_node(m, parent), name));
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		      const char *new_name, unsigned flags)
{
	struct h5_mount *m = h5_request_begin(req);

	h5_request_reply_done(req, parent, "rename",
			      h5_vfs_rename(m->vfs, h5_request_node(m, parent), name,
					    h5_request_node(m, new_parent), new_name, flags));
}

/* ---- files that are made ---- */

/* Only regular files: HDF5 has no place for others. */
static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_vfs_entry entry;
	int rc = S_ISREG(mode) ? h5_vfs_mknod(m->vfs, h5_request_node(m, parent), name, &entry) : -EPERM;

	(void)device;
	reply_entry(req, "mknod", rc, &entry);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_handle *handle;
	struct fuse_entry_param e;
	struct h5_vfs_entry entry;
	int rc = h5_vfs_create(m->vfs, h5_request_node(m, parent), name, fi->flags, &entry, &handle);

	(void)mode;
	if (rc) {
		h5_request_fail(req, "create", rc);
		return;
	}
	e = h5_request_entry(m, &entry);
	fi->fh = (uintptr_t)handle;
	fi->direct_io = h5_vfs_is_direct(handle);
	if (!fuse_reply_create(req, &e, fi))
		return;
	h5_interrupt_begin(NULL, NULL); /* the request has been answered */
	h5_vfs_close_file(handle);
	h5_vfs_forget(m->vfs, entry.node, 1);
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
	/* No write-back cache: the daemon decides where an append goes, and must see each write at once. */
	connection->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
	/* AUTO_INVAL_DATA: a changed time tells the kernel that its pages of a file are stale.
	 * ATOMIC_O_TRUNC: O_TRUNC comes with open, so that its failure fails that open. */
	connection->want |= connection->capable & (FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC);
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
	.getattr = op_getattr,
	.access = op_access,
	.readlink = op_readlink,
	.statfs = op_statfs,
	.getxattr = h5_op_getxattr,
	.listxattr = h5_op_listxattr,
	.opendir = h5_op_opendir,
	.readdir = h5_op_readdir,
	.readdirplus = h5_op_readdirplus,
	.releasedir = h5_op_releasedir,
	.open = op_open,
	.read = op_read,
	.lseek = op_lseek,
	.release = op_release,
	.setattr = op_setattr,
	.write = op_write,
	.flush = op_flush,
	.fsync = op_fsync,
	.fallocate = op_fallocate,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.create = op_create,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.link = op_link,
	.rename = op_rename,
	.setxattr = h5_op_setxattr,
	.removexattr = h5_op_removexattr,
	.fsyncdir = op_fsyncdir,
};

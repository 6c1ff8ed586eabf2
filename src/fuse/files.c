#include "fuse/files.h"

#include "fuse/invalidate.h"
#include "fuse/request.h"

#include <errno.h>
#include <unistd.h>

/* ---- attributes ---- */

/* True: the request is about an entry of a folder, be it an HDF5 file, and not about what is in one. */
static bool is_of_folder(const struct h5_request *r)
{
	return r->place && h5_tree_kind(r->place) != H5_TREE_INSIDE;
}

static int get_attr(struct h5_request *r, struct stat *st)
{
	uint64_t limit;
	int rc;

	if (is_of_folder(r))
		return h5_tree_getattr(r->m->tree, r->place, st);
	limit = h5_request_size_limit(r->m, r->in.vfs, r->in.node);
	rc = h5_vfs_getattr(r->in.vfs, r->in.node, st);
	if (rc)
		return rc;
	/* The file may have grown meanwhile. The kernel would give the new size to the program, but not keep
	 * it itself, since it ignores attributes that it had asked for before pages were dropped. So the old
	 * limit counts. */
	h5_request_limit_size(st, limit);
	h5_request_limit_size(st, h5_request_size_limit(r->m, r->in.vfs, r->in.node));
	if (r->place)
		h5_tree_show(r->place, st);
	return 0;
}

static void end_with_attr(struct h5_request *r, const struct stat *st, const char *what, int rc)
{
	if (rc) {
		h5_request_end(r, what, rc);
		return;
	}
	fuse_reply_attr(r->req, st,
			r->place ? h5_tree_keep(r->m->tree, r->place)
				 : h5_request_attr_timeout(r->m, r->in.node, st));
	h5_request_leave(r);
}

static void reply_getattr(struct h5_request *r, size_t written)
{
	struct h5_stale later = {.r = *r, .from = H5_NOT_STALE, .reply = reply_getattr, .written = written};
	struct stat st;
	int rc = get_attr(r, &st);

	if (!r->m->invalidator || !h5_invalidator_postpone(r->m->invalidator, &later))
		end_with_attr(r, &st, "getattr", rc);
}

/* Of an entry of a folder: the HDF5 file is not opened. */
static int enter_to_look(struct h5_request *r, fuse_req_t req, fuse_ino_t ino)
{
	h5_request_start(r, req, ino);
	return is_of_folder(r) ? 0 : h5_request_enter(r);
}

void h5_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct h5_request r;
	int rc = enter_to_look(&r, req, ino);

	(void)fi;
	if (rc)
		h5_request_end(&r, "getattr", rc);
	else
		reply_getattr(&r, 0);
}

static void reply_setattr(struct h5_request *r, size_t written)
{
	struct stat st;
	int rc = get_attr(r, &st);

	(void)written;
	end_with_attr(r, &st, "setattr", rc);
}

/* Replies at once, or, if a file has grown, after the kernel has dropped its pages of the file's end. */
static void reply_grown(struct h5_stale *stale)
{
	if (stale->from == H5_NOT_STALE)
		stale->reply(&stale->r, stale->written);
	else
		h5_invalidator_add(stale->r.m->invalidator, stale);
}

/* access(2) and chdir(2). The kernel asks only if it does not check permissions itself. Then the owner alone
 * may enter the mount. */
void h5_op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct h5_request r;
	struct stat st;
	int rc = enter_to_look(&r, req, ino);

	if (!rc && is_of_folder(&r)) {
		/* What may be read, the folder's file system knows: opening tells. */
		rc = mask & W_OK && h5_tree_kind(r.place) != H5_TREE_FILE ? -EROFS : 0;
	} else if (!rc) {
		rc = get_attr(&r, &st);
		if (!rc && (mode_t)mask & ~(st.st_mode >> 6))
			rc = -EACCES; /* not a failure, and not logged */
	}
	h5_request_end(&r, "access", rc);
}

/* Owner, group and mode are the mount's. To set them does nothing, so that `cp -p` and `tar` succeed. But if
 * other users can look, it is an error, so that nobody believes to have shut them out. */
static int check_owner_and_mode(struct h5_request *r, const struct stat *wanted, int to_set)
{
	struct stat st;
	int rc;

	if (!r->m->allow_other || !(to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		return 0;
	rc = get_attr(r, &st);
	if (rc)
		return rc;
	if ((to_set & FUSE_SET_ATTR_MODE && (wanted->st_mode & 07777) != (st.st_mode & 07777)) ||
	    (to_set & FUSE_SET_ATTR_UID && wanted->st_uid != st.st_uid) ||
	    (to_set & FUSE_SET_ATTR_GID && wanted->st_gid != st.st_gid))
		return -EPERM;
	return 0;
}

/* Setting times succeeds, for programs that copy files, but has no effect. */
void h5_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	struct h5_stale stale = {.from = H5_NOT_STALE, .reply = reply_setattr};
	struct h5_request *r = &stale.r;
	struct h5_handle *handle = NULL;
	int rc;

	if (fi)
		h5_request_start_open(r, req, ino, fi, &handle);
	else
		h5_request_start(r, req, ino);
	rc = h5_request_enter(r);
	if (!rc)
		rc = r->m->writable ? check_owner_and_mode(r, attr, to_set) : -EROFS;
	if (!rc && to_set & FUSE_SET_ATTR_SIZE)
		rc = h5_vfs_truncate(r->in.vfs, r->in.node, handle, (uint64_t)attr->st_size, &stale.from);
	if (rc)
		h5_request_end(r, "setattr", rc);
	else
		reply_grown(&stale);
}

/* ---- contents ---- */

static void reply_write(struct h5_request *r, size_t written)
{
	fuse_reply_write(r->req, written);
	h5_request_leave(r);
}

void h5_op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		 struct fuse_file_info *fi)
{
	enum h5_write_where where = fi->writepage	   ? H5_WRITE_INSIDE
				    : fi->flags & O_APPEND ? H5_WRITE_APPEND
							   : H5_WRITE_AT;
	struct h5_stale stale = {.reply = reply_write};
	struct h5_request *r = &stale.r;
	int rc;

	h5_request_start_open(r, req, ino, fi, &stale.handle);
	rc = h5_request_enter(r);
	if (!rc)
		rc = h5_vfs_write(stale.handle, (uint64_t)offset, data, size, where, &stale.written,
				  &stale.from);
	if (rc)
		h5_request_end(r, "write", rc);
	else
		reply_grown(&stale);
}

/* The kernel drops its pages of the range. */
void h5_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t n,
		     struct fuse_file_info *fi)
{
	struct h5_handle *handle;
	struct h5_request r;
	int rc;

	h5_request_start_open(&r, req, ino, fi, &handle);
	rc = h5_request_enter(&r);
	if (!rc)
		rc = h5_vfs_fallocate(handle, mode, (uint64_t)offset, (uint64_t)n);
	h5_request_end(&r, "fallocate", rc);
}

static void reply_flush(struct h5_request *r, size_t written)
{
	(void)written;
	h5_request_end(r, "close", 0);
}

/* A file below .h5fs becomes a dataset with a name in another directory. The kernel learns of that name
 * before it gets the reply. */
void h5_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct h5_stale later = {.from = H5_NOT_STALE, .reply = reply_flush};
	struct h5_request *r = &later.r;
	struct h5_handle *handle;
	int rc;

	h5_request_start_open(r, req, ino, fi, &handle);
	if (r->m->without_open) { /* the kernel asks no more */
		fuse_reply_err(req, ENOSYS);
		return;
	}
	/* The handle keeps its file open. */
	rc = handle ? h5_vfs_flush(handle) : 0;
	if (!rc && handle && r->m->invalidator && h5_vfs_is_source(handle))
		h5_invalidator_add(r->m->invalidator, &later);
	else
		h5_request_end(r, "close", rc);
}

void h5_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct h5_handle *handle;
	struct h5_request r;

	(void)datasync;
	h5_request_start_open(&r, req, ino, fi, &handle);
	h5_request_end(&r, "fsync", handle ? h5_vfs_fsync(handle) : 0);
}

/* A directory has no changes of its own: all of the HDF5 file are committed, and for a directory of a folder
 * those of all files. */
void h5_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct h5_request r;
	int rc;

	(void)datasync;
	(void)fi;
	h5_request_start(&r, req, ino);
	if (r.place && h5_tree_kind(r.place) == H5_TREE_FOLDER) {
		h5_request_end(&r, "fsync", h5_tree_commit(r.m->tree));
		return;
	}
	rc = h5_request_enter(&r);
	if (!rc)
		rc = h5_vfs_fsync_directory(r.in.vfs, r.in.node);
	h5_request_end(&r, "fsync", rc);
}

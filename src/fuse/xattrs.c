#include "fuse/xattrs.h"

#include "base/buf.h"
#include "fuse/log.h"
#include "fuse/request.h"

#include <errno.h>

/* A folder, or a file in it that is passed through. */
static bool is_outside_hdf5(const struct h5_request *r)
{
	return r->place &&
	       (h5_tree_kind(r->place) == H5_TREE_FOLDER || h5_tree_kind(r->place) == H5_TREE_PLAIN);
}

/* Replies with a value or a list, and ends the request. */
static void end_with_value(struct h5_request *r, const char *what, int rc, const struct h5_buf *value,
			   size_t size)
{
	if (rc) {
		h5_request_end(r, what, rc);
		return;
	}
	h5_request_reply_xattr(r->req, value, size);
	h5_request_leave(r);
}

static int get_value(struct h5_request *r, const char *name, struct h5_buf *value)
{
	int rc;

	if (!h5_vfs_may_have_xattr(name))
		return -ENODATA;
	if (is_outside_hdf5(r))
		return h5_tree_getxattr(r->m->tree, r->place, name, value);
	rc = h5_request_enter(r);
	return rc ? rc : h5_vfs_getxattr(r->in.vfs, r->in.node, name, value);
}

void h5_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct h5_request r;
	struct h5_buf value;

	h5_request_start(&r, req, ino);
	h5_buf_init(&value, SIZE_MAX);
	end_with_value(&r, "getxattr", get_value(&r, name, &value), &value, size);
	h5_buf_release(&value);
}

static int list_names(struct h5_request *r, struct h5_buf *names)
{
	int rc;

	if (is_outside_hdf5(r))
		return h5_tree_listxattr(r->m->tree, r->place, names);
	rc = h5_request_enter(r);
	return rc ? rc : h5_vfs_listxattr(r->in.vfs, r->in.node, names);
}

void h5_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct h5_request r;
	struct h5_buf names;
	int rc;

	h5_request_start(&r, req, ino);
	h5_buf_init(&names, SIZE_MAX);
	rc = list_names(&r, &names);
	/* Attributes that are damaged are left out. */
	if (rc == -EUCLEAN && names.size) {
		h5_log_failure("listxattr", rc, NULL);
		rc = 0;
	}
	end_with_value(&r, "listxattr", rc, &names, size);
	h5_buf_release(&names);
}

void h5_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		    int flags)
{
	struct h5_request r;
	int rc = h5_request_change(&r, req, ino);

	if (!rc)
		rc = h5_vfs_may_have_xattr(name)
			     ? h5_vfs_setxattr(r.in.vfs, r.in.node, name, value, size, flags)
			     : -EOPNOTSUPP;
	h5_request_end(&r, "setxattr", rc);
}

void h5_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct h5_request r;
	int rc = h5_request_change(&r, req, ino);

	if (!rc)
		rc = h5_vfs_may_have_xattr(name) ? h5_vfs_removexattr(r.in.vfs, r.in.node, name)
						 : -EOPNOTSUPP;
	h5_request_end(&r, "removexattr", rc);
}

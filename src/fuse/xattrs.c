#include "fuse/xattrs.h"

#include "base/buf.h"
#include "fuse/log.h"
#include "fuse/request.h"

#include <errno.h>

void h5_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_buf value;
	int rc;

	h5_buf_init(&value, SIZE_MAX);
	rc = h5_vfs_may_have_xattr(name) ? h5_vfs_getxattr(m->vfs, h5_request_node(m, ino), name, &value)
					 : -ENODATA;
	if (rc)
		h5_request_fail_on(req, ino, "getxattr", rc);
	else
		h5_request_reply_xattr(req, &value, size);
	h5_buf_release(&value);
}

void h5_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_buf names;
	int rc;

	h5_buf_init(&names, SIZE_MAX);
	rc = h5_vfs_listxattr(m->vfs, h5_request_node(m, ino), &names);
	if (rc == -EUCLEAN && names.size) {
		h5_log_failure("listxattr", rc, NULL);
		rc = 0;
	}
	if (rc)
		h5_request_fail_on(req, ino, "listxattr", rc);
	else
		h5_request_reply_xattr(req, &names, size);
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

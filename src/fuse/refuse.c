#include "fuse/refuse.h"

#include <errno.h>

void h5_refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)device;
	fuse_reply_err(req, EPERM);
}

void h5_refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	h5_refuse_mknod(req, parent, name, mode, 0);
}

void h5_refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	(void)fi;
	h5_refuse_mknod(req, parent, name, mode, 0);
}

void h5_refuse_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	h5_refuse_mknod(req, parent, name, 0, 0);
}

void h5_refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target;
	h5_refuse_unlink(req, parent, name);
}

void h5_refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino;
	h5_refuse_unlink(req, parent, name);
}

void h5_refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		      const char *new_name, unsigned flags)
{
	(void)new_parent;
	(void)new_name;
	(void)flags;
	h5_refuse_unlink(req, parent, name);
}

void h5_refuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
			int flags)
{
	(void)ino;
	(void)name;
	(void)value;
	(void)size;
	(void)flags;
	fuse_reply_err(req, ENOTSUP);
}

void h5_refuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	h5_refuse_setxattr(req, ino, name, NULL, 0, 0);
}

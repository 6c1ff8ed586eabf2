/* Requests that change the tree or its attributes: EPERM, ENOTSUP (MAPPING section 6). */
#ifndef H5_FUSE_REFUSE_H
#define H5_FUSE_REFUSE_H

#include "fuse/options.h"

void h5_refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void h5_refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void h5_refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi);
void h5_refuse_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void h5_refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void h5_refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void h5_refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		      const char *new_name, unsigned flags);
void h5_refuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
			int flags);
void h5_refuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

#endif

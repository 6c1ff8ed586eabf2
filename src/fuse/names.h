/* Requests that make, move and remove names in HDF5 files. They serve the mount of a file and the mount of a
 * folder. */
#ifndef H5_FUSE_NAMES_H
#define H5_FUSE_NAMES_H

#include "fuse/operations.h"

void h5_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void h5_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void h5_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		  struct fuse_file_info *fi);
void h5_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void h5_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void h5_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void h5_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void h5_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		  const char *new_name, unsigned flags);

/* For a table of requests. */
#define H5_NAME_OPERATIONS                                                                                   \
	.mkdir = h5_op_mkdir, .mknod = h5_op_mknod, .create = h5_op_create, .symlink = h5_op_symlink,        \
	.link = h5_op_link, .unlink = h5_op_unlink, .rmdir = h5_op_rmdir, .rename = h5_op_rename

#endif

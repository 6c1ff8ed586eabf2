/* Requests that tell or set attributes of files, write into files, and commit. They serve the mount of a file
 * and the mount of a folder. */
#ifndef H5_FUSE_FILES_H
#define H5_FUSE_FILES_H

#include "fuse/operations.h"

void h5_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void h5_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void h5_op_access(fuse_req_t req, fuse_ino_t ino, int mask);
void h5_op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		 struct fuse_file_info *fi);
void h5_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t n,
		     struct fuse_file_info *fi);
void h5_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void h5_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void h5_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

/* For a table of requests. */
#define H5_FILE_OPERATIONS                                                                                   \
	.getattr = h5_op_getattr, .setattr = h5_op_setattr, .access = h5_op_access, .write = h5_op_write,    \
	.fallocate = h5_op_fallocate, .flush = h5_op_flush, .fsync = h5_op_fsync, .fsyncdir = h5_op_fsyncdir

#endif

/* Requests about open directories. */
#ifndef H5_FUSE_DIRECTORIES_H
#define H5_FUSE_DIRECTORIES_H

#include "fuse/operations.h"

void h5_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void h5_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void h5_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void h5_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);

#endif

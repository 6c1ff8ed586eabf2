/* Requests about extended attributes. They serve the mount of a file and the mount of a folder. */
#ifndef H5_FUSE_XATTRS_H
#define H5_FUSE_XATTRS_H

#include "fuse/operations.h"

void h5_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void h5_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void h5_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		    int flags);
void h5_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* For a table of requests. */
#define H5_XATTR_OPERATIONS                                                                                  \
	.getxattr = h5_op_getxattr, .listxattr = h5_op_listxattr, .setxattr = h5_op_setxattr,                \
	.removexattr = h5_op_removexattr

#endif

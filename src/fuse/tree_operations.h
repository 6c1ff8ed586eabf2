/* FUSE requests to the mount of a folder. Each is one call into src/tree and one reply. The kernel's number
 * for a node is its address. */
#ifndef H5_FUSE_TREE_OPERATIONS_H
#define H5_FUSE_TREE_OPERATIONS_H

#include "fuse/operations.h"

extern const struct fuse_lowlevel_ops h5_tree_operations;

#endif

/* Extended attributes of the folder's own files and directories. */
#ifndef H5_TREE_PLAIN_H
#define H5_TREE_PLAIN_H

#include "tree/private.h"

/* Append what the file has, but only of names that begin with `user.`. The node is not in an HDF5 file. */
int h5_tree_plain_getxattr(struct h5_tree *tree, const struct h5_tree_node *node, const char *name,
			   struct h5_buf *out);
int h5_tree_plain_listxattr(struct h5_tree *tree, const struct h5_tree_node *node, struct h5_buf *out);

#endif

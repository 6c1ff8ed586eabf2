/* Where files of the folder are. Each is found beneath the folder, on its mount, and by no symbolic link. */
#ifndef H5_TREE_PLACE_H
#define H5_TREE_PLACE_H

#include "tree/private.h"

/* Opens a name in the folder of the node (NULL: the node itself). `flags` of open(2). A descriptor, or a
 * negative errno with detail. */
int h5_tree_place_open(const struct h5_tree *tree, const struct h5_tree_node *folder, const char *name,
		       int flags);
/* Opens the file of the node. -ESTALE: its name leads to another one by now. */
int h5_tree_place_open_node(const struct h5_tree *tree, const struct h5_tree_node *node, int flags,
			    struct stat *st);

/* True: a file with that name is looked at, if it is an HDF5 file. */
bool h5_tree_matches(const struct h5_tree *tree, const char *name);

#endif

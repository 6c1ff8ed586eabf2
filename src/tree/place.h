/* Paths in the folder. Opening one never leaves the folder or its mount, and follows no symbolic link. */
#ifndef H5_TREE_PLACE_H
#define H5_TREE_PLACE_H

#include "tree/private.h"

/* Both give a descriptor or a negative errno; `flags` of open(2). -ESTALE: the node's name leads to another
 * file by now, or to none. */

/* Opens a name in the folder of the node. */
int h5_tree_place_open(const struct h5_tree *tree, const struct h5_tree_node *folder, const char *name,
		       int flags);
/* Opens the file of the node, and says what it is. */
int h5_tree_place_open_node(const struct h5_tree *tree, const struct h5_tree_node *node, int flags,
			    struct stat *st);

/* Appends the path of a node of the folder. Of one in an HDF5 file: with tree->lock. */
void h5_tree_place_path(const struct h5_tree_node *node, struct h5_buf *path);

/* True: a file with that name is looked at, if it is an HDF5 file. */
bool h5_tree_matches(const struct h5_tree *tree, const char *name);

#endif

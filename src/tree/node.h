/* Nodes: the inodes that the kernel knows. */
#ifndef H5_TREE_NODE_H
#define H5_TREE_NODE_H

#include "tree/private.h"

/* What a name of a folder leads to. */
struct h5_tree_found {
	enum h5_tree_kind kind;
	uint64_t device, inode;
	struct timespec changed;
	uint64_t size; /* bytes of an object */
};

/* Finds or makes the node of a name in a folder (NULL: the root of the tree), referenced. */
int h5_tree_node_get(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
		     const struct h5_tree_found *found, struct h5_tree_node **node);
/* The kind of the name's node if it shows this version of that file. False: there is no such node. */
bool h5_tree_node_recall(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
			 struct h5_tree_found *found);
/* Finds or makes the node of an entry of an HDF5 file, referenced; from now on it is found again by this
 * name. Takes over the entry's node, also on failure. The file is in use. */
int h5_tree_node_get_inside(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
			    const struct h5_vfs_entry *entry, struct h5_tree_node **node);
/* The node in the open file that it stands for: borrowed as long as the file is in use. */
int h5_tree_node_resolve(struct h5_tree *tree, struct h5_tree_node *node, struct h5_node **inside);
/* Frees all nodes. The files are closed. */
void h5_tree_nodes_free(struct h5_tree *tree);

/* st_ino of a file of the folder. */
uint64_t h5_tree_ino(uint64_t device, uint64_t inode);
/* The same of what is in an HDF5 file, where it has the number `inner`. That is 0 if a damaged link leads to
 * address 0; then it is 0 here, too. */
uint64_t h5_tree_ino_inside(const struct h5_tree_file *file, uint64_t inner);

#endif

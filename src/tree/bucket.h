/* A tree whose entries are the objects of an object store: what the tree asks of it in place of a local
 * folder. */
#ifndef H5_TREE_BUCKET_H
#define H5_TREE_BUCKET_H

#include "tree/bucket_listing.h"
#include "tree/node.h"

/* Opens the prefix that tree->options.set.remote leads to, and says what the root is. */
int h5_tree_bucket_open(struct h5_tree *tree, struct h5_tree_found *root);

/* What a name of a folder leads to, and what the store says of it, as stat(2) says it. No object is opened,
 * so each object is H5_TREE_PLAIN. */
int h5_tree_bucket_look_up(struct h5_tree *tree, const struct h5_tree_node *parent, const char *name,
			   struct h5_tree_found *found, struct stat *st);

/* A name of a folder; `type` as in st_mode. */
typedef int h5_tree_bucket_add(void *arg, const char *name, uint64_t ino, mode_t type);
/* Calls `add` for all names, until it fails. Opens no object. */
int h5_tree_bucket_list(struct h5_tree *tree, const struct h5_tree_node *folder, h5_tree_bucket_add *add,
			void *arg);

#endif

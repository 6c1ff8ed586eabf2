/* Objects of an object store, which nodes of a tree stand for (tree/bucket.h). */
#ifndef H5_TREE_OBJECT_H
#define H5_TREE_OBJECT_H

#include "tree/bucket_listing.h"
#include "tree/node.h"

/* What the key of a name in a folder is behind the mounted prefix, with its NUL; of "", what all keys in the
 * folder begin with. The caller releases it, unless this fails. */
int h5_tree_object_key(const struct h5_tree_node *folder, const char *name, struct h5_buf *key);

/* Opens the object of a name in a folder, as the version that was listed, with its first bytes: so many. */
int h5_tree_object_open_io(struct h5_tree *tree, const struct h5_tree_node *folder, const char *name,
			   uint64_t version, uint64_t first, struct h5_io **io);

/* What was found, as stat(2) says it. */
void h5_tree_object_say(const struct h5_tree_found *found, struct stat *st);
/* The same of a node, a folder or an object, without a request. */
void h5_tree_object_stat(struct h5_tree *tree, const struct h5_tree_node *node, struct stat *st);

/* To be called when the object of the node has been opened, as the version node->device: 0 if it is that
 * version; -ESTALE: it was replaced. */
int h5_tree_object_check(struct h5_tree *tree, const struct h5_tree_node *node);

/* Bytes of an object, for reading. */
struct h5_tree_object;
int h5_tree_object_open(struct h5_tree *tree, const struct h5_tree_node *node,
			struct h5_tree_object **object);
void h5_tree_object_close(struct h5_tree_object *object);
/* As h5_tree_read() and h5_tree_seek(). */
int h5_tree_object_read(struct h5_tree_object *object, uint64_t offset, void *buf, size_t n, size_t *got);
int h5_tree_object_seek(const struct h5_tree_object *object, uint64_t offset, bool hole, uint64_t *found);

#endif

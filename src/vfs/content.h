/* What the file of a node contains. */
#ifndef H5_VFS_CONTENT_H
#define H5_VFS_CONTENT_H

#include "vfs/node.h"

/* The view of a node's contents, as h5_view_begin() finds it. h5_view_release() on failure, too. */
int h5_content_begin(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_object *known,
		     struct h5_view *view);
/* The same, opened to be read. */
int h5_content_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view *view);

#endif

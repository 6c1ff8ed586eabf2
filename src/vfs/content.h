/* What the file of a node contains. */
#ifndef H5_VFS_CONTENT_H
#define H5_VFS_CONTENT_H

#include "vfs/private.h"

/* The node in its view, for h5_view_begin(). */
struct h5_view h5_content_view(struct h5_vfs *vfs, const struct h5_node *node);
/* h5_view_begin() for the contents of the node. The view is to be released on failure, too. */
int h5_content_begin(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_object *known,
		     struct h5_view *view);
/* Opens what the file of the node contains, for reading. The view is to be released on failure, too. */
int h5_content_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view *view);

#endif

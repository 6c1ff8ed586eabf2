/* The kernel's numbers for nodes; node.h has what others may ask. All with vfs->lock. */
#ifndef H5_VFS_NODE_NUMBER_H
#define H5_VFS_NODE_NUMBER_H

#include "vfs/private.h"

/* Gives a new node its id and generation, and puts it into the table of ids. -ENOMEM. */
int h5_number_give(struct h5_vfs *vfs, struct h5_node *node);
/* To be called before a node is freed, so that its id leads back to it. */
void h5_number_remember(struct h5_vfs *vfs, const struct h5_node *node);
void h5_numbers_free(struct h5_vfs *vfs);

#endif

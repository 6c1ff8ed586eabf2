/* The kernel's numbers for nodes; node.h has what others may ask. All with vfs->lock. */
#ifndef H5_VFS_NODE_NUMBER_H
#define H5_VFS_NODE_NUMBER_H

#include "vfs/private.h"

/* The natural ids of a node that a name in a directory makes, and of the file of an object. */
uint64_t h5_number_of_name(const struct h5_vfs *vfs, const struct h5_node *directory, const char *name);
uint64_t h5_number_of_object(const struct h5_vfs *vfs, const struct h5_entity *entity);

/* The nodes of a natural id, linked by `same`; NULL: none. */
struct h5_node *h5_number_first(const struct h5_vfs *vfs, uint64_t natural_id);

/* Gives a new node its id and generation, and puts it into the tables. -ENOMEM. */
int h5_number_give(struct h5_vfs *vfs, struct h5_node *node);
/* To be called before a node is freed. */
void h5_number_take_back(struct h5_vfs *vfs, struct h5_node *node);
/* The node has got another natural id, and keeps its id. -ENOMEM: it is where it was. */
int h5_number_change(struct h5_vfs *vfs, struct h5_node *node, uint64_t natural_id);
/* To be called before that, so that the id of a node that is freed leads back to it. */
void h5_number_remember(struct h5_vfs *vfs, const struct h5_node *node);
void h5_numbers_free(struct h5_vfs *vfs);

#endif

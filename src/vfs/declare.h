/* Declaring: the properties h5fs.* of a dataset that a user may set (doc/h5fs.1, Writing). */
#ifndef H5_VFS_DECLARE_H
#define H5_VFS_DECLARE_H

#include "vfs/private.h"

/* Sets the property `name`, without its prefix h5fs., to the text. With the exclusive lock, in a change
 * (h5_change_begin()).
 *
 * -EPERM: it cannot be set. -EINVAL: the text is nonsense, or there is no such dataset. -EBUSY: the dataset
 * has data, or several names. -ENOTSUP: a filter is missing, or the dataset has a form that cannot be
 * changed. */
int h5_declare(struct h5_vfs *vfs, const struct h5_node *node, const char *name, const char *text, size_t n);

/* To be called for a new dataset: what was said of another one, which had this address, does not count. */
void h5_declared_forget(struct h5_vfs *vfs, uint64_t address);
/* Forgets what was declared, which matters only for later declarations. */
void h5_declared_free(struct h5_vfs *vfs);

#endif

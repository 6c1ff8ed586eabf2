/* Handles through which a dataset is written. */
#ifndef H5_VFS_WRITING_H
#define H5_VFS_WRITING_H

#include "vfs/open_file.h"

/* Opens the handle for writing; with `cut` sets size 0 first. With the exclusive lock. */
int h5_writing_open(struct h5_handle *handle, const struct h5_node *node, bool cut);
/* Ends writing; logs an incomplete row that is dropped. With the exclusive lock. */
void h5_writing_close(struct h5_handle *handle);

#endif

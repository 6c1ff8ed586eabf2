/* Opens files and closes them. */
#ifndef H5_VFS_HANDLE_H
#define H5_VFS_HANDLE_H

#include "vfs/open_file.h"

/* Opens a file that is being made, inside a change; nobody else knows it yet. */
int h5_handle_open_new(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle);
/* Inside the same change: the file was made, or not. */
void h5_handle_start(struct h5_handle *handle);
void h5_handle_cancel(struct h5_handle *handle); /* NULL is fine */
/* As h5_vfs_open_file(), but the handle is in no list. */
int h5_handle_open(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle);
void h5_handle_free(struct h5_handle *handle);
/* Closes files that are still open. */
void h5_handles_close(struct h5_vfs *vfs);

#endif

/* Changes of the mounted file. */
#ifndef H5_VFS_CHANGES_H
#define H5_VFS_CHANGES_H

#include "vfs/node.h"

/* A number for the contents of the file as they are now; another one after each change. */
uint64_t h5_state(const struct h5_vfs *vfs, const struct h5_file *file);

/* True: the dataset can be written in this mount, as far as that is known without its index. */
bool h5_is_writable(const struct h5_vfs *vfs, const struct h5_dataset *dataset);

/* Remembers a virtual dataset, so that it is decoded again after each change: that may be one of a source. */
int h5_changes_follow(struct h5_vfs *vfs, const struct h5_node *node);

/* ---- with the exclusive lock ---- */

/* Opens a node's dataset for writing; on success the caller owes an h5_changes_close(). -EPERM: it can't be
 * written; -EROFS: writing was given up; or as h5_dataset_writer_get(). */
int h5_changes_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view_input *input);
void h5_changes_close(struct h5_view_input *input);
/* To be called before each change. Settles all writers if they have gathered too much in memory. */
int h5_changes_begin(struct h5_vfs *vfs, struct h5_dataset_writer *writer);
/* To be called after each change, also if it failed. */
void h5_changes_end(struct h5_vfs *vfs);
/* Makes all changes durable. If those of a dataset cannot be, they are lost: the dataset is again as the last
 * commit has left it, and its handles remember the failure. Returns the failure of the dataset `of`; if that
 * is NULL, of any dataset. */
int h5_changes_commit(struct h5_vfs *vfs, const struct h5_dataset_writer *of);
void h5_changes_free(struct h5_vfs *vfs);

#endif

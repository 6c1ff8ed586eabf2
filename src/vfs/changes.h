/* What changes the mounted file, and who must hear of it. */
#ifndef H5_VFS_CHANGES_H
#define H5_VFS_CHANGES_H

#include "vfs/node.h"

/* Stands for the contents of the file as they are now. */
uint64_t h5_state(const struct h5_vfs *vfs, const struct h5_file *file);

/* True: its elements can be written in this mount, as far as that is known without its index. */
bool h5_is_writable(const struct h5_vfs *vfs, const struct h5_dataset *dataset);

/* Remembers a virtual dataset: when sources may have changed, it is decoded again. */
int h5_changes_follow(struct h5_vfs *vfs, const struct h5_node *node);

/* The rest is for the holder of the exclusive lock. */

/* Opens a node's dataset to be written; on success for h5_changes_close(). -EPERM: it can't be written;
 * -EROFS, -ENOTSUP, ... */
int h5_changes_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view_input *input);
void h5_changes_close(struct h5_view_input *input);
/* To be called before a dataset is changed: makes room for what small writes gather. */
int h5_changes_begin(struct h5_vfs *vfs, struct h5_dataset_writer *writer);
/* To be called after each change that was tried. */
void h5_changes_end(struct h5_vfs *vfs);
/* Makes everything that was written durable. What cannot be is lost, at once and for good: such a dataset is
 * as the last commit has left it, and its handles remember the failure. The result is the failure of the one
 * dataset, or (NULL) of any. */
int h5_changes_commit(struct h5_vfs *vfs, const struct h5_dataset_writer *of);
void h5_changes_free(struct h5_vfs *vfs);

#endif

/* Opening what the file of a node contains for writing, and what text needs there. */
#ifndef H5_VFS_INPUT_H
#define H5_VFS_INPUT_H

#include "vfs/open_file.h"
#include "vfs/private.h"

/* True: the dataset can be written in this mount, as far as that is known without its index. */
bool h5_is_writable(const struct h5_vfs *vfs, const struct h5_dataset *dataset);
/* The error of a mount that takes no more changes. */
int h5_input_give_up(void);

/* True: the file of the node is a dataset, or a view through which one is written. */
static inline bool h5_input_is_possible(const struct h5_node *node)
{
	return node->entity.kind == H5_NODE_DATASET ||
	       (node->entity.kind == H5_NODE_VIEW && node->entity.view->write);
}

/* Opens a node's dataset for writing; on success the caller owes an h5_input_close(). -EPERM: it can't be
 * written; -EROFS: writing was given up; or as h5_dataset_writer_get(). */
int h5_input_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view_input *input);
/* The same for the dataset at the address, in the mounted file. */
int h5_input_open_dataset(struct h5_vfs *vfs, uint64_t address, struct h5_view_input *input);
void h5_input_close(struct h5_view_input *input);

/* Bytes of the file, which is text. Takes a look at all elements if something has changed. */
int h5_input_text_size(struct h5_vfs *vfs, const struct h5_node *node, uint64_t *size);
/* 0: a write at the offset goes on at the end of the text, as far as this open file knows it. -EOPNOTSUPP: it
 * does not. */
int h5_input_check_end(struct h5_handle *handle, uint64_t offset);
/* Logs why a line was refused, if that is the result. */
void h5_input_log(struct h5_handle *handle, int rc);
/* The same after a write with that result: if a line of new contents was refused, the old ones stay. */
void h5_input_written(struct h5_handle *handle, int rc);
/* Logs what of the last row was incomplete when the file was closed, and is lost. */
void h5_input_drop(struct h5_handle *handle);

#endif

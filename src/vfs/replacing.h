/* Open files that were truncated though their dataset keeps its size. What is written through such a handle
 * are new contents (dataset/replacement.h), which only it reads. They take the place of the old ones at
 * fsync(2) or close(2), if they are as many bytes. All of it with the exclusive lock, in a change. */
#ifndef H5_VFS_REPLACING_H
#define H5_VFS_REPLACING_H

#include "vfs/open_file.h"
#include "vfs/private.h"

/* What is written through the handle, which is being opened with this input, are new contents. */
int h5_replacing_begin(struct h5_handle *handle, const struct h5_view_input *input);
/* As h5_vfs_write(). -EFBIG: more bytes than the dataset has; nothing is written. */
int h5_replacing_write(struct h5_handle *handle, uint64_t offset, const void *data, size_t n,
		       enum h5_write_where where, size_t *written);
/* True: to set this size through the handle is h5_replacing_resize(), not a change of the dataset. */
bool h5_replacing_truncates(const struct h5_handle *handle, uint64_t size);
/* Sets the size of the new contents, which may begin with this. */
int h5_replacing_resize(struct h5_handle *handle, uint64_t size);
/* The same of text: only to 0, or to what it is. */
int h5_replacing_resize_text(struct h5_handle *handle, uint64_t size);
/* The same without a handle: 0 lines take the place of the old ones at once. */
int h5_replacing_set_text_size(struct h5_vfs *vfs, const struct h5_node *node,
			       const struct h5_view_input *input, uint64_t size);
/* True: at close(2) new text is not complete yet, if the file stays open through another descriptor: its last
 * line has no newline, or nothing was written, as when a shell has only duplicated the descriptor. */
bool h5_replacing_waits(const struct h5_handle *handle);
/* The new contents take the place of the old ones, and the handle goes on as any other. -EINVAL: they are not
 * as many bytes; then they stay, and more may come. */
int h5_replacing_finish(struct h5_handle *handle);
/* The handle closes: the same, unless close(2) has just said that it cannot be done; else they are dropped,
 * with a line in the log. */
void h5_replacing_end(struct h5_handle *handle);

#endif

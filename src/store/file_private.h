/* Between file.c and what changes a file. */
#ifndef H5_STORE_FILE_PRIVATE_H
#define H5_STORE_FILE_PRIVATE_H

#include "store/file.h"

/* What the file's own reads go to: offsets are absolute. Borrowed. */
struct h5_io *h5_file_io(const struct h5_file *file);
/* The file is read through `changes` from now on, which has taken the io before over, and is changed by its
 * owner alone. Once. */
void h5_file_lay_over(struct h5_file *file, struct h5_io *changes);
/* What was laid over like that; NULL: nothing. Borrowed. */
struct h5_io *h5_file_changes(const struct h5_file *file);
/* The file reaches at least up to this address now. */
void h5_file_extend(struct h5_file *file, uint64_t end);
/* Finds nothing again that was decoded before. */
void h5_file_renumber(struct h5_file *file);
/* -ENOTSUP: a file that no changes are made to: in pieces, with a cache image. */
int h5_file_can_change(const struct h5_file *file);

#endif

/* Between file.c and what changes a file. */
#ifndef H5_STORE_FILE_PRIVATE_H
#define H5_STORE_FILE_PRIVATE_H

#include "change/transaction.h"
#include "store/file.h"

struct h5_header;

/* What the file's own reads go to: offsets are absolute, and pending changes are not laid over. */
struct h5_io *h5_file_io(const struct h5_file *file);
/* The file reaches at least up to this address now. */
void h5_file_extend(struct h5_file *file, uint64_t end);
/* Finds nothing again that was decoded before. */
void h5_file_renumber(struct h5_file *file);
void h5_file_set_tx(struct h5_file *file, struct h5_tx *tx);
/* -ENOTSUP: a file that no changes are made to: in pieces, with a cache image. */
int h5_file_can_change(const struct h5_file *file);

#endif

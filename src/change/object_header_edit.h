/* Replaces messages of object headers. */
#ifndef H5_CHANGE_OBJECT_HEADER_EDIT_H
#define H5_CHANGE_OBJECT_HEADER_EDIT_H

#include "store/object_header.h"

/* Replaces the body of the first message of the type, n bytes as before, in the transaction
 * (change/transaction.h); a dataspace after all else of the object. Where that is no cell, because the
 * header's checksum lies in another page, the message moves to a continuation block of its own, with a
 * neighbour if it is smaller than a continuation message: the one change that is left to the journal, should
 * a kill tear it; those that follow are cells. -ENOTSUP: the message is not there, is shared, or cannot be
 * replaced safely. */
int h5_header_replace(struct h5_file *file, uint64_t address, enum h5_message_type type, const void *body,
		      size_t n);
/* What h5_header_replace() would answer before anything is changed: 0 or -ENOTSUP. */
int h5_header_can_replace(struct h5_file *file, uint64_t address, enum h5_message_type type);

#endif

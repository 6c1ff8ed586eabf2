/* Replaces messages of object headers. */
#ifndef H5_CHANGE_OBJECT_HEADER_EDIT_H
#define H5_CHANGE_OBJECT_HEADER_EDIT_H

#include "store/object_header.h"

/* Replaces the body of the first message of the type, n bytes as before, in the transaction
 * (change/transaction.h); a dataspace after all else of the object.
 *
 * If that is no cell, since the header's checksum lies in another page, the message moves to a continuation
 * block of its own, with a neighbour if it is smaller than a continuation message. If a kill tears this one
 * write, the journal heals it; all later changes are cells. -ENOTSUP: the message is not there, is shared, or
 * cannot be replaced safely. */
int h5_header_replace(struct h5_file *file, uint64_t address, enum h5_message_type type, const void *body,
		      size_t n);
/* 0: h5_header_replace() would not fail with -ENOTSUP. */
int h5_header_can_replace(struct h5_file *file, uint64_t address, enum h5_message_type type);

#endif

/* Changes messages of object headers. */
#ifndef H5_CHANGE_OBJECT_HEADER_EDIT_H
#define H5_CHANGE_OBJECT_HEADER_EDIT_H

#include "store/object_header.h"

/* Changes the n bytes of a message's body. */
typedef int h5_message_update(const void *arg, uint8_t *body, size_t n);

/* Updates the body of the first message of the type, in the transaction (change/transaction.h). The commit
 * writes a dataspace after the other messages of the object.
 *
 * In version 2 the write reaches from the message to the checksum at the end of its chunk. If these lie in
 * different pages, the write is no cell, and the message moves, as h5_header_set() has it; all later changes
 * are cells. -ENOTSUP: the message is not there, is shared, or cannot be replaced safely. */
int h5_header_update(struct h5_file *file, uint64_t address, enum h5_message_type type,
		     h5_message_update *update, const void *arg);
/* The same, but the commit makes the change at this stage (enum h5_stage). */
int h5_header_update_at(struct h5_file *file, uint64_t address, enum h5_message_type type, unsigned stage,
			h5_message_update *update, const void *arg);

#endif

/* An object header with all its continuation blocks, as it is read from the file. Specification IV.A.1. */
#ifndef H5_STORE_OBJECT_HEADER_H
#define H5_STORE_OBJECT_HEADER_H

#include "format/object_header.h"
#include "store/file.h"

struct h5_header {
	struct h5_object_header prefix;
	unsigned count;
	struct h5_message *messages; /* in the order of the chunks; all but continuations and NIL
					(specification IV.A.2.a) */
	size_t cost;		     /* bytes of memory, beside this struct */
	/* the rest is object_header.c's */
	uint8_t **blocks;
	unsigned block_count;
};

int h5_header_load(struct h5_file *file, uint64_t address, struct h5_header *header);
void h5_header_release(struct h5_header *header); /* may run twice */

/* Replaces the body of the first message of the type, n bytes as before, in the transaction
 * (store/transaction.h). Where that is no cell, because the header's checksum lies in another page, the
 * message moves first to a continuation block of its own, in a commit of its own. -ENOTSUP: the message is
 * shared, or cannot be replaced safely. */
int h5_header_replace(struct h5_file *file, uint64_t address, enum h5_message_type type, const void *body,
		      size_t n);
/* What h5_header_replace() would answer before anything is changed: 0 or -ENOTSUP. */
int h5_header_can_replace(struct h5_file *file, uint64_t address, enum h5_message_type type);

/* First message of the type, NULL: none. */
const struct h5_message *h5_header_find(const struct h5_header *header, enum h5_message_type type);

#endif

/* Gives an object header other messages, all at once. */
#ifndef H5_CHANGE_OBJECT_HEADER_REWRITE_H
#define H5_CHANGE_OBJECT_HEADER_REWRITE_H

#include "change/object_header_edit.h"
#include "store/object_header.h"

/* Makes these the messages of the header, in their order, in one unit. Their data may be borrowed from the
 * header as it was loaded before. One write in the first chunk switches to them at the stage (enum h5_stage):
 * what does not fit there is in new continuation blocks, and the old ones are given up. That write is a cell
 * if the first chunk lies in one page; else all messages move to blocks, and only this one write depends on
 * the journal.
 *
 * -E2BIG: a message of over 65,535 bytes. -ENOSPC: a version 1 header with too many messages. -ENOTSUP: the
 * header has a form in which this is not possible. */
int h5_header_rewrite(struct h5_file *file, uint64_t address, const struct h5_message *messages, size_t count,
		      unsigned stage);

/* An update of the body of the first message of a type. */
struct h5_header_update {
	enum h5_message_type type;
	h5_message_update *update;
	const void *arg;
};

/* Makes these updates, of different messages, by one write as above. -ENOTSUP: as h5_header_update(). */
int h5_header_update_together(struct h5_file *file, uint64_t address, const struct h5_header_update *updates,
			      size_t count, unsigned stage);

#endif

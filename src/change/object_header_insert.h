/* Inserts, removes and resizes messages of object headers. */
#ifndef H5_CHANGE_OBJECT_HEADER_INSERT_H
#define H5_CHANGE_OBJECT_HEADER_INSERT_H

#include "change/object_header_layout.h"
#include "change/transaction.h"

/* Each of these changes the header in one unit. Of a chunk in committed space one range of bytes changes, at
 * one stage: a cell wherever one can be found. So after a kill the header has all of the change or nothing of
 * it. They may move other messages, so a header that was loaded before is no longer valid.
 *
 * A message goes into free space of its chunk; else to a new continuation block, with neighbours if it must;
 * else its continuation block moves. If none of these would be a cell, all messages of a version 2 chunk move
 * to a new block, so that only this one write depends on the journal.
 *
 * The chunks stay as all versions of libhdf5 accept them (h5_header_check()): no gap appears, and NIL
 * messages that are neighbours would fit into one.
 *
 * -E2BIG: a message of over 65,535 bytes, or a header of over 16 MiB. -ENOSPC: a version 1 header with too
 * many messages. -ENOTSUP: the header has a form in which the change is not possible. */

/* When the commit writes a change by which a message of this type comes or goes (enum h5_stage). */
static inline unsigned h5_header_stage(unsigned type, bool comes)
{
	switch (type) {
	case H5_MSG_DATASPACE:
		return H5_STAGE_DATASPACE;
	case H5_MSG_LINK:
	case H5_MSG_LINK_INFO:
	case H5_MSG_SYMBOL_TABLE:
		return comes ? H5_STAGE_NAME : H5_STAGE_UNNAME;
	default:
		return H5_STAGE_OBJECT;
	}
}

/* Inserts a message. It may be anywhere among the others. */
int h5_header_insert(struct h5_file *file, uint64_t address, const struct h5_new_message *message);

/* Removes a message. It must come from the header as it is now (h5_header_load()). A heap or a shared message
 * to which it refers stays. */
int h5_header_remove(struct h5_file *file, uint64_t address, const struct h5_message *message);

/* Replaces a message of the header as it is now by a new one. A message without an order of creation has that
 * of the old one. */
int h5_header_set(struct h5_file *file, uint64_t address, const struct h5_message *old,
		  const struct h5_new_message *message);
/* The same, but the commit makes the change at this stage. */
int h5_header_set_at(struct h5_file *file, uint64_t address, const struct h5_message *old,
		     const struct h5_new_message *message, unsigned stage);

/* The number of hard links to the object, as its header states it; 1 if it states none. */
int h5_header_references(const struct h5_file *file, const struct h5_header *header, uint32_t *count);
/* A count that rises is there before names are, one that falls after they have gone (enum h5_stage). But the
 * later stage holds for all that changes in the same chunk in one transaction. -EINVAL: 0, of which libhdf5
 * could not remove a name. */
int h5_header_set_references(struct h5_file *file, uint64_t address, uint32_t count);

/* In a unit, after another change of the object: sets the flag H5_MSG_FLAG_WAS_UNKNOWN of all messages that
 * ask for it. All changes of headers here and in object_header_edit.h, object_header_rewrite.h do it by
 * themselves. */
int h5_header_mark_unknown(struct h5_file *file, uint64_t address);

#endif

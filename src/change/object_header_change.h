/* Finds out how a header can change, so that one cell makes the change, and makes it. */
#ifndef H5_CHANGE_OBJECT_HEADER_CHANGE_H
#define H5_CHANGE_OBJECT_HEADER_CHANGE_H

#include "change/object_header_layout.h"

/* A change of a header: `old` goes, `new` comes. */
struct h5_header_change {
	struct h5_file *file;
	struct h5_header header;
	struct h5_message old; /* data NULL: none */
	struct h5_message new; /* data NULL: none */
	unsigned stage;
	unsigned messages; /* of all chunks, with those of the change */
	uint64_t bytes;	   /* of all chunks */
};

/* Makes the change by a cell, if there is a way; else by a write that only the journal heals. To be called in
 * a unit. The header must be loaded again afterwards. Errors as in
 * change/object_header_insert.h. */
int h5_header_realize(struct h5_header_change *change);

/* Makes the chunk have these bytes, but for the checksum, which is set: 1; 0: that would be no cell, and
 * unless `any` nothing has happened. The number of messages of a version 1 header rises before. */
int h5_header_put_bytes(const struct h5_header_change *change, const struct h5_header_chunk *chunk,
			uint8_t *bytes, bool any);

/* The bytes at the address, in one of the chunks, have changed. If the chunk is in new space, readers find
 * the change as soon as they find the chunk. So the continuation message that leads from the committed header
 * to new space is written at that stage at the earliest. -ENOMEM. */
int h5_header_delay_link(struct h5_file *file, const struct h5_header *header, uint64_t address,
			 unsigned stage);

/* Messages among the n bytes move to new space. Readers find what has changed in them as soon as they find
 * the new space. So the change gets the latest stage of what has changed there, if its own is earlier. */
void h5_header_delay_change(struct h5_header_change *change, uint64_t address, uint64_t n);

#endif

/* Messages of object headers, laid one after the other: how the bytes of a chunk are shared out between
 * messages and free space. */
#ifndef H5_CHANGE_OBJECT_HEADER_LAYOUT_H
#define H5_CHANGE_OBJECT_HEADER_LAYOUT_H

#include "store/object_header.h"

struct h5_new_message {
	enum h5_message_type type;
	uint8_t flags;	/* of the message */
	bool has_order; /* there is an order of creation; it is stored if the header tracks it */
	uint16_t order;
	const void *body; /* borrowed */
	size_t size;	  /* of the body; a version 1 header pads it to a multiple of 8 */
};
/* -E2BIG: the message has more bytes than one can have; -ENOTSUP: headers of this version have none of its
 * type. */
int h5_new_message_check(const struct h5_object_header *prefix, const struct h5_new_message *message);
/* The message as h5_header_lay() takes it. Its data are not NULL, but they are borrowed. */
struct h5_message h5_new_message_get(const struct h5_new_message *message);

/* Bytes of data that a message of version 1 or 2 has at most. */
unsigned h5_message_size_max(const struct h5_object_header *prefix);
/* Bytes that the message takes in a chunk, prefix and alignment included. */
size_t h5_message_space(const struct h5_object_header *prefix, const struct h5_message *message);

/* Writes the messages one after the other into the n bytes. NIL messages fill the rest; only their prefixes
 * are written, and no two of them are neighbours. A rest that is too small for a NIL message becomes padding
 * of the last message, so there is never a gap. *laid: the number of messages, the NIL ones included.
 *
 * False: they do not fit, or no such layout is possible. Then the bytes may have changed. */
bool h5_header_lay(const struct h5_object_header *prefix, uint8_t *bytes, size_t n,
		   const struct h5_message *messages, size_t count, unsigned *laid);

/* The chunk that has the address. There must be one. */
struct h5_header_chunk *h5_header_chunk_at(const struct h5_header *header, uint64_t address);

/* The n bytes of a version 2 chunk are complete but for the checksum at their end. */
void h5_header_seal(uint8_t *bytes, size_t n);

/* Puts a new continuation block with the messages into the file. `room`: bytes for later messages, 0 or
 * enough for a NIL message. -E2BIG: that is not possible. */
int h5_header_put_block(struct h5_file *file, const struct h5_object_header *prefix,
			const struct h5_message *messages, size_t count, size_t room,
			struct h5_continuation *block, unsigned *laid);

/* Bytes of a continuation block around its messages. */
unsigned h5_header_block_extra(const struct h5_object_header *prefix);
/* Bytes of the body of a continuation message. */
unsigned h5_header_link_size(const struct h5_file *file);
enum { H5_HEADER_LINK_MAX = 2 * 8 };
/* Writes that body. */
int h5_header_encode_link(const struct h5_file *file, const struct h5_continuation *block, uint8_t *body);

#endif

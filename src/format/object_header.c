#include "format/object_header.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

enum {
	CHUNK0_SIZE_WIDTH = 0x03, /* flags of a version 2 header */
	PHASE_CHANGE = 0x10,
	FLAGS_KNOWN = 0x3f,
};

/* Version 1 (IV.A.1.a).
 *
 *   offset  size  field
 *        0     1  version, 1
 *        1     1  reserved
 *        2     2  total number of header messages
 *        4     4  object reference count
 *        8     4  object header size: bytes of messages in this chunk
 *       12     4  padding to a multiple of 8                        */
static int decode_v1(struct h5_reader *r, struct h5_object_header *header)
{
	h5_reader_skip(r, 2);
	header->messages = h5_read_u16(r);
	header->references = h5_read_u32(r);
	header->chunk_size = h5_read_u32(r);
	h5_reader_skip(r, 4);
	header->version = 1;
	return h5_reader_check(r, "object header");
}

/* Version 2 (IV.A.1.b), after the signature.
 *
 *   size  field
 *      1  version, 2
 *      1  flags
 *     16  access, modification, change and birth time: 4 each, if flag bit 5
 *      4  maximum of compact, minimum of dense attributes: 2 each, if flag bit 4
 *   1 << (flags & 3)  size of chunk 0                                          */
static int decode_v2(struct h5_reader *r, struct h5_object_header *header)
{
	header->version = h5_read_u8(r);
	header->flags = h5_read_u8(r);
	if (header->version != 2)
		return h5_fail(-EUCLEAN, r->address, "object header: version %u", header->version);
	if (header->flags & ~FLAGS_KNOWN)
		return h5_fail(-EUCLEAN, r->address, "object header: unknown flags %#x", header->flags);
	if (header->flags & H5_HEADER_TIMES) {
		h5_reader_skip(r, 4);
		header->mtime = h5_read_u32(r);
		h5_reader_skip(r, 8);
	}
	if (header->flags & PHASE_CHANGE)
		h5_reader_skip(r, 4);
	header->chunk_size = h5_read_uint(r, 1u << (header->flags & CHUNK0_SIZE_WIDTH));
	return h5_reader_check(r, "object header");
}

int h5_object_header_decode(struct h5_reader *r, struct h5_object_header *header)
{
	memset(header, 0, sizeof *header);
	if (h5_reader_left(r) && *r->p == 1)
		return decode_v1(r, header);
	if (h5_read_signature(r, "OHDR"))
		return decode_v2(r, header);
	return h5_fail(-EUCLEAN, r->address, "object header: wrong signature");
}

/* The width of the size field follows from the size. */
void h5_object_header_encode(struct h5_writer *w, const struct h5_object_header *header)
{
	unsigned n = h5_limit_size(header->chunk_size), width = n > 4 ? 3 : n > 2 ? 2 : n - 1;

	h5_write_bytes(w, "OHDR", 4);
	h5_write_u8(w, 2);
	h5_write_u8(w, (uint8_t)((header->flags & H5_HEADER_STYLE) | width));
	for (unsigned i = 0; i < 4 && header->flags & H5_HEADER_TIMES; i++)
		h5_write_u32(w, header->mtime);
	h5_write_uint(w, header->chunk_size, 1u << width);
}

/* Of a header of version 2. */
static bool has_order(const struct h5_object_header *header)
{
	return header->flags & H5_HEADER_ORDER_TRACKED;
}

unsigned h5_message_prefix_size(const struct h5_object_header *header)
{
	return header->version == 1 ? 8 : has_order(header) ? 6 : 4;
}

/* A message (IV.A.1).
 *
 *   version 1                      version 2
 *   size  field                    size  field
 *      2  type                        1  type
 *      2  size of the data            2  size of the data
 *      1  flags                       1  flags
 *      3  reserved                    2  creation order, if header flag bit 2
 *         data, a multiple of 8          data
 *
 * Bytes at the end of a chunk that are too few for a message are a gap. */
int h5_object_header_next(struct h5_reader *r, const struct h5_object_header *header,
			  struct h5_message *message)
{
	if (r->err || h5_reader_left(r) < h5_message_prefix_size(header))
		return 0;
	memset(message, 0, sizeof *message);
	message->type = header->version == 1 ? h5_read_u16(r) : h5_read_u8(r);
	message->size = h5_read_u16(r);
	message->flags = h5_read_u8(r);
	if (header->version == 1)
		h5_reader_skip(r, 3);
	else if (has_order(header))
		message->creation_order = h5_read_u16(r);
	if (header->version == 1 && message->size % 8)
		return h5_fail(-EUCLEAN, h5_reader_address(r),
			       "object header: a message of %u bytes is not aligned", message->size);
	message->address = h5_reader_address(r);
	message->data = h5_read_bytes(r, message->size);
	if (!message->data)
		return h5_fail(-EUCLEAN, message->address,
			       "object header: a message of %u bytes passes the end of its chunk",
			       message->size);
	return 1;
}

void h5_message_begin(struct h5_writer *w, const struct h5_object_header *header,
		      const struct h5_message *message)
{
	h5_write_uint(w, message->type, header->version == 1 ? 2 : 1);
	h5_write_u16(w, (uint16_t)message->size);
	h5_write_u8(w, message->flags);
	if (header->version == 1)
		h5_write_fill(w, 0, 3);
	else if (has_order(header))
		h5_write_u16(w, message->creation_order);
}

void h5_message_encode(struct h5_writer *w, const struct h5_object_header *header,
		       const struct h5_message *message)
{
	h5_message_begin(w, header, message);
	if (message->data)
		h5_write_bytes(w, message->data, message->size);
	else
		h5_write_fill(w, 0, message->size);
}

/*   size  field
 *      O  address of the continuation block
 *      L  its length, in version 2 with signature and checksum */
int h5_continuation_decode(struct h5_reader *r, struct h5_continuation *continuation)
{
	continuation->address = h5_read_offset(r);
	continuation->size = h5_read_length(r);
	return h5_reader_check(r, "continuation message");
}

void h5_continuation_encode(struct h5_writer *w, const struct h5_continuation *continuation)
{
	h5_write_offset(w, continuation->address);
	h5_write_length(w, continuation->size);
}

/* A continuation block of version 2 (IV.A.1.b).
 *
 *   size  field
 *      4  signature "OCHK"
 *         messages
 *      4  checksum           */
int h5_continuation_block_decode(struct h5_reader *r, struct h5_reader *messages)
{
	if (!h5_read_signature(r, "OCHK"))
		return h5_fail(-EUCLEAN, r->address, "object header continuation: wrong signature");
	if (h5_reader_left(r) < H5_OBJECT_HEADER_CHECKSUM)
		return h5_fail(-EUCLEAN, r->address, "object header continuation: truncated");
	*messages = h5_reader_sub(r, h5_reader_left(r) - H5_OBJECT_HEADER_CHECKSUM);
	return h5_reader_checksum(r, "object header continuation");
}

#include "base/error.h"
#include "store/object_header.h"

enum { NIL_MOST = UINT16_MAX }; /* bytes of a message's data */

/* What is in a chunk of a header. */
struct contents {
	unsigned messages, nils; /* the NIL messages are among the messages */
	unsigned gap;		 /* bytes behind the last message */
	uint64_t nil_run; /* bytes of data that the longest run of adjacent NIL messages would have as one */
};

static struct contents contents_of(const struct h5_file *file, const struct h5_header *header,
				   const struct h5_header_chunk *chunk)
{
	unsigned head = h5_message_prefix_size(&header->prefix);
	struct h5_reader r = h5_header_chunk_messages(file, &header->prefix, chunk);
	struct contents c = {0};
	struct h5_message message;
	uint64_t run = 0; /* bytes of the NIL messages right before, prefixes included */

	while (h5_object_header_next(&r, &header->prefix, &message) > 0) {
		c.messages++;
		if (message.type != H5_MSG_NIL) {
			run = 0;
			continue;
		}
		c.nils++;
		run += head + message.size;
		if (run - head > c.nil_run)
			c.nil_run = run - head;
	}
	c.gap = (unsigned)h5_reader_left(&r);
	return c;
}

/* Checks for what libhdf5 refuses in a message that can be decoded. */
static int check_message(const struct h5_header *header, const struct h5_message *message)
{
	enum { ATTRIBUTE_ORDER = 0x0c, SHIFT = 2 }; /* of the header's flags; where Attribute Info has them */
	const struct h5_object_header *prefix = &header->prefix;

	if (prefix->version == 1 && message->type == H5_MSG_REFERENCE_COUNT)
		return h5_fail(-EUCLEAN, message->address,
			       "object header: version 1 has a reference count message");
	if (prefix->version > 1 && message->type == H5_MSG_ATTRIBUTE_INFO && message->size > 1 &&
	    !(message->flags & H5_MSG_FLAG_SHARED) &&
	    (message->data[1] & ATTRIBUTE_ORDER >> SHIFT) != (prefix->flags & ATTRIBUTE_ORDER) >> SHIFT)
		return h5_fail(-EUCLEAN, message->address,
			       "object header: flags %#x, but %#x of the order of its attributes",
			       prefix->flags, message->data[1]);
	return 0;
}

int h5_header_check_chunk(const struct h5_file *file, const struct h5_header *header,
			  const struct h5_header_chunk *chunk)
{
	struct contents c = contents_of(file, header, chunk);

	if (header->prefix.version > 1 && c.gap && c.nils)
		return h5_fail(-EUCLEAN, chunk->address,
			       "object header: a gap of %u bytes in a chunk that has NIL messages", c.gap);
	if (c.nil_run > NIL_MOST)
		return h5_fail(
			-EUCLEAN, chunk->address,
			"object header: adjacent NIL messages of %ju bytes, more than one message holds",
			(uintmax_t)c.nil_run);
	if (header->prefix.version == 1 && chunk == header->chunks && header->prefix.messages < c.messages)
		return h5_fail(-EUCLEAN, chunk->address,
			       "object header: %u messages in the first chunk, but %u in all", c.messages,
			       header->prefix.messages);
	return 0;
}

int h5_header_check(const struct h5_file *file, const struct h5_header *header)
{
	int rc = 0;

	for (unsigned i = 0; i < header->chunk_count && !rc; i++)
		rc = h5_header_check_chunk(file, header, &header->chunks[i]);
	for (unsigned i = 0; i < header->count && !rc; i++)
		rc = check_message(header, &header->messages[i]);
	return rc;
}

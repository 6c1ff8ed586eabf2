/* Object header prefix and messages, versions 1 and 2, and continuation messages. Specification IV.A.1.a,
 * IV.A.1.b, IV.A.2.q. */
#ifndef H5_FORMAT_OBJECT_HEADER_H
#define H5_FORMAT_OBJECT_HEADER_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stdint.h>

/* The message types that are used. */
enum h5_message_type {
	H5_MSG_NIL = 0x00,
	H5_MSG_DATASPACE = 0x01,
	H5_MSG_LINK_INFO = 0x02,
	H5_MSG_DATATYPE = 0x03,
	H5_MSG_FILL_VALUE_OLD = 0x04,
	H5_MSG_FILL_VALUE = 0x05,
	H5_MSG_LINK = 0x06,
	H5_MSG_EXTERNAL_FILES = 0x07,
	H5_MSG_LAYOUT = 0x08,
	H5_MSG_GROUP_INFO = 0x0a,
	H5_MSG_PIPELINE = 0x0b,
	H5_MSG_ATTRIBUTE = 0x0c,
	H5_MSG_COMMENT = 0x0d,
	H5_MSG_MTIME_OLD = 0x0e,
	H5_MSG_SHARED_TABLE = 0x0f,
	H5_MSG_CONTINUATION = 0x10,
	H5_MSG_SYMBOL_TABLE = 0x11,
	H5_MSG_MTIME = 0x12,
	H5_MSG_BTREE_K = 0x13,
	H5_MSG_DRIVER_INFO = 0x14,
	H5_MSG_ATTRIBUTE_INFO = 0x15,
	H5_MSG_REFERENCE_COUNT = 0x16,
	H5_MSG_FILE_SPACE_INFO = 0x17,
	H5_MSG_CACHE_IMAGE = 0x18,
	H5_MSG_STRUCTURED_PIPELINE = 0x19,
};

enum {
	H5_MSG_FLAG_SHARED = 0x02,
	H5_MSG_FLAG_FIX_UNKNOWN = 0x08, /* if the type is not known, the object must not be changed */
	H5_MSG_FLAG_MARK_UNKNOWN =
		0x10, /* if the type is not known, and the object changes, to be marked so: */
	H5_MSG_FLAG_WAS_UNKNOWN = 0x20,	 /* the object was changed by a program that does not know the type */
	H5_MSG_FLAG_TRACKED = 0x40,	 /* an index of shared messages has it, or an equal one */
	H5_MSG_FLAG_FAIL_UNKNOWN = 0x80, /* fail always if the type is not known */
};

/* The kind follows from the messages, by the rule of libhdf5: a symbol table or link info makes a group, a
 * dataspace and a datatype make a dataset, and a datatype alone is a committed datatype. */
enum h5_object_kind { H5_OBJECT_UNKNOWN, H5_OBJECT_GROUP, H5_OBJECT_DATASET, H5_OBJECT_DATATYPE };

struct h5_message {
	uint16_t type;
	uint8_t flags;
	uint16_t creation_order;
	uint32_t size;
	const uint8_t *data; /* borrowed from the header's memory */
	uint64_t address;    /* of data in the file */
};

static inline bool h5_message_is_unknown(const struct h5_message *message)
{
	return message->type > H5_MSG_STRUCTURED_PIPELINE;
}

/* True: if the object changes, the message gets the flag H5_MSG_FLAG_WAS_UNKNOWN. */
static inline bool h5_message_is_to_mark(const struct h5_message *message)
{
	return h5_message_is_unknown(message) && message->flags & H5_MSG_FLAG_MARK_UNKNOWN &&
	       !(message->flags & H5_MSG_FLAG_WAS_UNKNOWN);
}

/* Flags of a version 2 header. */
enum {
	H5_HEADER_ORDER_TRACKED = 0x04, /* attributes know their order of creation */
	H5_HEADER_ORDER_INDEXED = 0x08,
	H5_HEADER_TIMES = 0x20,
	H5_HEADER_STYLE = H5_HEADER_ORDER_TRACKED | H5_HEADER_ORDER_INDEXED | H5_HEADER_TIMES,
};

struct h5_object_header {
	uint8_t version;     /* 1 or 2 */
	uint8_t flags;	     /* version 2 */
	uint16_t messages;   /* version 1: total number */
	uint32_t references; /* version 1 */
	uint32_t mtime;	     /* version 2: seconds since 1970; 0: not stored */
	uint64_t chunk_size; /* bytes of messages in chunk 0 */
};

enum {
	H5_OBJECT_HEADER_PREFIX_MAX = 34,
	H5_OBJECT_HEADER_CHECKSUM = 4, /* bytes after the messages of every chunk in version 2 */
};

/* Reads the prefix. Then the reader is at the first message. */
int h5_object_header_decode(struct h5_reader *r, struct h5_object_header *header);
/* Writes the prefix of a new header of version 2: with the flags of H5_HEADER_STYLE, and mtime as each of its
 * times. The messages follow. */
void h5_object_header_encode(struct h5_writer *w, const struct h5_object_header *header);

/* Bytes of a message before its data. */
unsigned h5_message_prefix_size(const struct h5_object_header *header);
/* Takes the next message from a reader over the messages of one chunk: 1, or 0 at the end of the chunk. */
int h5_object_header_next(struct h5_reader *r, const struct h5_object_header *header,
			  struct h5_message *message);
/* Writes what is before the data of a message. */
void h5_message_begin(struct h5_writer *w, const struct h5_object_header *header,
		      const struct h5_message *message);
/* Writes a message as a whole; without data it is filled with zeros. */
void h5_message_encode(struct h5_writer *w, const struct h5_object_header *header,
		       const struct h5_message *message);

struct h5_continuation {
	uint64_t address, size;
};

int h5_continuation_decode(struct h5_reader *r, struct h5_continuation *continuation);
void h5_continuation_encode(struct h5_writer *w, const struct h5_continuation *continuation);

/* Bytes of a continuation block of version 2 around its messages. */
enum { H5_CONTINUATION_BLOCK_EXTRA = 4 + H5_OBJECT_HEADER_CHECKSUM };

/* Verifies the checksum of a continuation block of version 2; then *messages is over its messages. */
int h5_continuation_block_decode(struct h5_reader *r, struct h5_reader *messages);

#endif

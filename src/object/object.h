/* Objects: a decoded object header with all its continuation blocks, and its messages. Specification IV.A. */
#ifndef H5_OBJECT_OBJECT_H
#define H5_OBJECT_OBJECT_H

#include "store/file.h"

#include <stdbool.h>
#include <stdint.h>

/* Message types that the code asks for by name. */
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

enum { H5_MSG_FLAG_SHARED = 0x02 };

/* What an object is, from its messages as libhdf5 tells it: dataspace and datatype: dataset; symbol table or link
 * info: group; datatype alone: committed datatype. */
enum h5_object_kind { H5_OBJECT_UNKNOWN, H5_OBJECT_GROUP, H5_OBJECT_DATASET, H5_OBJECT_DATATYPE };

struct h5_message {
	uint16_t type;
	uint8_t flags;
	uint16_t creation_order;
	uint32_t size;
	const uint8_t *data; /* in the object's memory */
	uint64_t address; /* of data in the file */
};

struct h5_object {
	uint64_t address;
	uint8_t version; /* of the header: 1 or 2 */
	enum h5_object_kind kind;
	uint32_t references; /* hard links */
	bool has_mtime;
	int64_t mtime; /* seconds since 1970 */
	unsigned count;
	const struct h5_message *messages;
	/* the rest is object.c's */
	uint8_t **blocks;
	unsigned block_count;
};

/* A reference to the decoded header, through the block cache; h5_file_put() gives it back. */
int h5_object_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref, const struct h5_object **object);

/* First message of the type, NULL: none. */
const struct h5_message *h5_object_find(const struct h5_object *object, enum h5_message_type type);

/* The body of a message, with sharing resolved: in another object's header, or in the file's shared message heap. */
struct h5_message_body {
	struct h5_reader reader; /* over the body; borrowed until release */
	struct h5_lru_entry *ref; /* the other header, NULL: none */
	uint8_t *copy; /* owned: bytes from a heap, NULL: none */
};

int h5_message_open(struct h5_file *file, const struct h5_message *message, struct h5_message_body *body);
/* For a message inside another one (the datatype and dataspace of an attribute): `r` holds the shared form. */
int h5_message_open_shared(struct h5_file *file, enum h5_message_type type, struct h5_reader *r,
			   struct h5_message_body *body);
void h5_message_release(struct h5_file *file, struct h5_message_body *body); /* may run twice */

#endif

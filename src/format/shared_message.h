/* Shared messages: the form that replaces a message, and the table of the file's shared message heaps.
 * Specification IV.A.2, IV.A.2.p, III.I. */
#ifndef H5_FORMAT_SHARED_MESSAGE_H
#define H5_FORMAT_SHARED_MESSAGE_H

#include "base/reader.h"
#include "base/writer.h"
#include "format/object_header.h"

#include <stdbool.h>
#include <stdint.h>

enum { H5_SHARED_ID_SIZE = 8 };

struct h5_shared_message {
	bool in_heap;
	uint64_t address;	       /* not in_heap: of the object header that holds the message */
	uint8_t id[H5_SHARED_ID_SIZE]; /* in_heap: ID in the file's shared message heap */
};

int h5_shared_message_decode(struct h5_reader *r, struct h5_shared_message *shared);

/* The message 0x000F of the superblock extension. */
struct h5_shared_table_message {
	uint64_t address; /* of the table */
	uint8_t indexes;
};

int h5_shared_table_message_decode(struct h5_reader *r, struct h5_shared_table_message *message);
int h5_shared_table_message_encode(struct h5_writer *w, const struct h5_shared_table_message *message);

enum { H5_SHARED_INDEXES_MAX = 8 };

struct h5_shared_table {
	unsigned count;
	struct {
		bool is_list;	   /* the index is a list, else a version 2 B-tree */
		uint16_t types;	   /* bit t: messages of type t (the specification numbers the bits 0 to 4) */
		uint16_t list_max; /* messages that a list has room for */
		uint16_t messages; /* in the index */
		uint64_t index;	   /* H5_UNDEF: none yet */
		uint64_t heap;	   /* fractal heap, H5_UNDEF: none yet */
	} indexes[H5_SHARED_INDEXES_MAX];
};

/* Bytes of a table. */
size_t h5_shared_table_size(unsigned indexes, uint8_t size_of_offsets);
int h5_shared_table_decode(struct h5_reader *r, unsigned indexes, struct h5_shared_table *table);
/* Changes the table, `size` bytes: numbers of messages, and addresses of indexes. */
void h5_shared_table_update(uint8_t *bytes, size_t size, uint8_t size_of_offsets,
			    const struct h5_shared_table *table);

/* The bit of the message type in the flags of an index, which has 16; 0: no index has such messages. */
static inline unsigned h5_shared_type_flag(enum h5_message_type type)
{
	unsigned bit = type == H5_MSG_FILL_VALUE_OLD ? H5_MSG_FILL_VALUE : type;

	return bit < 16 ? 1u << bit : 0;
}

/* The use of a message that an index has, by a message of an object, or by a part of one. */
struct h5_shared_use {
	enum h5_message_type type;
	uint8_t id[H5_SHARED_ID_SIZE]; /* of the message in a heap */
	/* An object header has the message itself (H5_MSG_FLAG_TRACKED): its bytes, borrowed. NULL: see `id`
	 */
	const uint8_t *body;
	size_t size;
};

/* Where a message is, as an index has it. Specification III.I, shared message record. */
struct h5_shared_record {
	bool in_heap;
	uint32_t hash;
	const uint8_t *id; /* in_heap: H5_SHARED_ID_SIZE bytes, borrowed */
	uint32_t count;	   /* in_heap: how often it is used */
	uint64_t address;  /* not in_heap: of the object header */
};

size_t h5_shared_record_size(uint8_t size_of_offsets);
int h5_shared_record_decode(struct h5_reader *r, struct h5_shared_record *record);
/* Changes the record of a message in a heap. */
void h5_shared_record_set_count(uint8_t *record, uint32_t count);

/* Bytes of an index that is a list. */
size_t h5_shared_list_size(unsigned messages, uint8_t size_of_offsets);
/* Verifies a list; then *records is over its records. */
int h5_shared_list_decode(struct h5_reader *r, struct h5_reader *records);
enum { H5_SHARED_LIST_HEAD = 4 }; /* bytes before the records */
/* Gives a list of n bytes its checksum. */
void h5_shared_list_seal(uint8_t *list, size_t n);

#endif

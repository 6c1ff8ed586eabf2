/* Shared messages: the form that replaces a message, and the table of the file's shared message heaps.
 * Specification IV.A.2, IV.A.2.p, III.I. */
#ifndef H5_FORMAT_SHARED_MESSAGE_H
#define H5_FORMAT_SHARED_MESSAGE_H

#include "base/reader.h"

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

/* Where a message is, as an index has it. Specification III.I, shared message record. */
struct h5_shared_record {
	bool in_heap;
	uint32_t hash;
	const uint8_t *id; /* in_heap: H5_SHARED_ID_SIZE bytes, borrowed */
	uint64_t address;  /* not in_heap: of the object header */
};

size_t h5_shared_record_size(uint8_t size_of_offsets);
int h5_shared_record_decode(struct h5_reader *r, struct h5_shared_record *record);

/* Bytes of an index that is a list. */
size_t h5_shared_list_size(unsigned messages, uint8_t size_of_offsets);
/* Verifies a list; then *records is over its records. */
int h5_shared_list_decode(struct h5_reader *r, struct h5_reader *records);

#endif

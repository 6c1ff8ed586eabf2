/* Shared messages: the form that stands in place of a message, and the table of the file's shared message
 * heaps. Specification IV.A.2, IV.A.2.p, III.I. */
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
		uint16_t types; /* bit t: messages of type t (the specification numbers the bits 0 to 4) */
		uint64_t heap;	/* fractal heap, H5_UNDEF: none yet */
	} indexes[H5_SHARED_INDEXES_MAX];
};

/* Bytes of a table. */
size_t h5_shared_table_size(unsigned indexes, uint8_t size_of_offsets);
int h5_shared_table_decode(struct h5_reader *r, unsigned indexes, struct h5_shared_table *table);

#endif

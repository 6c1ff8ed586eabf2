/* The messages that tell where an object keeps its links or its attributes, and the records of the indexes by
 * name. Specification IV.A.2.c, IV.A.2.v, III.A.2 (record types 5 and 8). */
#ifndef H5_FORMAT_NAMED_MESSAGE_H
#define H5_FORMAT_NAMED_MESSAGE_H

#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h5_named_info {
	bool tracks_order;    /* of creation */
	uint64_t heap;	      /* fractal heap of the messages; H5_UNDEF: they are in the object header */
	uint64_t name_index;  /* version 2 B-tree */
	uint64_t order_index; /* the same by creation order; H5_UNDEF: none */
};

int h5_link_info_decode(struct h5_reader *r, struct h5_named_info *info);
int h5_attribute_info_decode(struct h5_reader *r, struct h5_named_info *info);

struct h5_named_record {
	uint32_t hash;	   /* lookup3 of the name */
	const uint8_t *id; /* borrowed: of the heap object, which is the message */
	size_t id_size;
	bool is_shared; /* the ID is one of the file's heap of shared messages */
};

/* Bytes that a record has at least. */
enum { H5_LINK_RECORD_MIN = 5, H5_ATTRIBUTE_RECORD_MIN = 17 };

int h5_link_record_decode(struct h5_reader *r, struct h5_named_record *record);
int h5_attribute_record_decode(struct h5_reader *r, struct h5_named_record *record);

#endif

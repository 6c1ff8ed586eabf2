/* Version 2 B-trees: header and nodes. Specification III.A.2. */
#ifndef H5_FORMAT_BTREE2_H
#define H5_FORMAT_BTREE2_H

#include "base/reader.h"
#include "base/writer.h"

#include <stddef.h>
#include <stdint.h>

enum {
	H5_BTREE2_HEADER_MAX = 38, /* bytes of the largest header */
	H5_BTREE2_DEPTH = 63,	   /* no deeper tree can count its records in 64 bits */
};

/* The same for all nodes of one level; level 0: leaves. */
struct h5_btree2_level {
	uint64_t max_records;	/* in a node */
	uint64_t split_records; /* a node with this many is split, or gives records away */
	uint64_t merge_records; /* a node with this few is merged, or gets records */
	uint8_t pointer_size;	/* bytes of a pointer to a child; 0 for leaves */
	uint8_t total_size; /* bytes of the number of records in a node and all beneath it; 0 for leaves */
};

struct h5_btree2_header {
	uint8_t version; /* 0, or 1 for structured chunks; nodes that we write have 0 */
	uint8_t type;
	uint32_t node_size;   /* bytes */
	uint16_t record_size; /* bytes */
	uint16_t depth;	      /* level of the root */
	uint8_t split_percent, merge_percent;
	uint64_t root; /* H5_UNDEF: no records */
	uint16_t root_records;
	uint64_t records; /* in all */
	/* computed: */
	uint8_t count_size;				    /* bytes of the number of records in one node */
	struct h5_btree2_level levels[H5_BTREE2_DEPTH + 1]; /* as many as `depth` says, and one more */
};

struct h5_btree2_child {
	uint64_t address;
	uint64_t records; /* in the child itself */
	uint64_t total;	  /* records in the child and all nodes beneath it */
};

struct h5_btree2_node {
	unsigned level;			  /* 0: leaf */
	size_t count;			  /* records */
	size_t bytes;			  /* of memory */
	uint8_t *records;		  /* count x record size */
	struct h5_btree2_child *children; /* count + 1; NULL in a leaf */
};

/* The version of new trees of this type. */
uint8_t h5_btree2_version(unsigned type);

int h5_btree2_header_decode(struct h5_reader *r, struct h5_btree2_header *header);
/* Computes the fields after "computed" from those before. -EUCLEAN with `address`: there is no such tree. */
int h5_btree2_header_compute(struct h5_btree2_header *header, uint64_t address, unsigned size_of_offsets);
/* Bytes of memory of a header, without the levels that it does not use. */
static inline size_t h5_btree2_header_bytes(const struct h5_btree2_header *header)
{
	return offsetof(struct h5_btree2_header, levels) + (header->depth + 1u) * sizeof header->levels[0];
}
/* Bytes of a header in the file. */
size_t h5_btree2_header_size(unsigned size_of_offsets, unsigned size_of_lengths);
int h5_btree2_header_encode(struct h5_writer *w, const struct h5_btree2_header *header);

/* Bytes of a node of `records` records, with its checksum; 0: the level allows no such node. */
size_t h5_btree2_node_size(const struct h5_btree2_header *header, unsigned level, uint64_t records);
/* Makes a node without records that has room for `room`, in one allocation, free(); NULL: out of memory.
 * h5_btree2_node_size() must not be 0 for `room`. */
struct h5_btree2_node *h5_btree2_node_new(const struct h5_btree2_header *header, unsigned level, size_t room);
/* Decodes into a new node that has room for the records. */
int h5_btree2_node_decode(struct h5_reader *r, const struct h5_btree2_header *header, size_t records,
			  struct h5_btree2_node *node);
int h5_btree2_node_encode(struct h5_writer *w, const struct h5_btree2_header *header,
			  const struct h5_btree2_node *node);

#endif

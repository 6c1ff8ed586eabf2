/* Data layout message (0x0008), versions 1 to 5. Specification IV.A.2.i; version 5 and structured chunks:
 * spec notes. */
#ifndef H5_FORMAT_LAYOUT_H
#define H5_FORMAT_LAYOUT_H

#include "base/reader.h"
#include "format/datatype.h"

#include <stdbool.h>
#include <stdint.h>

enum h5_layout_class {
	H5_LAYOUT_COMPACT = 0,
	H5_LAYOUT_CONTIGUOUS = 1,
	H5_LAYOUT_CHUNKED = 2,
	H5_LAYOUT_VIRTUAL = 3,
	H5_LAYOUT_STRUCTURED = 4,
};

/* Chunk index types: those of layout versions 4 and 5, and 0 for the version 1 B-tree of version 3 and
 * before. */
enum h5_index_type {
	H5_INDEX_BTREE1 = 0,
	H5_INDEX_SINGLE = 1,
	H5_INDEX_IMPLICIT = 2,
	H5_INDEX_FIXED_ARRAY = 3,
	H5_INDEX_EXTENSIBLE_ARRAY = 4,
	H5_INDEX_BTREE2 = 5,
};

struct h5_chunk_layout {
	unsigned rank;		    /* of the dataset: without the element size that the message appends */
	uint64_t dims[H5_RANK_MAX]; /* of a chunk, in elements */
	uint32_t element_size;	    /* as the message states it */
	enum h5_index_type index;
	bool unfiltered_edges; /* layout flag bit 0: don't filter partial edge chunks */
	uint64_t address; /* of the index; of the chunk (single), of the chunks (implicit); H5_UNDEF: nothing
			     stored */
	struct {	  /* single chunk that is filtered (flag bit 1) */
		bool filtered;
		uint64_t size;
		uint32_t filter_mask;
	} single;
	/* The creation parameters of the other indexes stand in their headers, which are used instead. */
};

struct h5_layout {
	uint8_t version;
	enum h5_layout_class class;
	union {
		struct {
			const uint8_t *data; /* borrowed from the message */
			uint32_t size;
		} compact;
		struct {
			uint64_t address, size; /* size UINT64_MAX: not stated (versions 1 and 2) */
		} contiguous;
		struct h5_chunk_layout chunked;
		struct { /* global heap ID of the mappings */
			uint64_t heap;
			uint32_t index;
		} virtual;
	};
};

/* `r` holds the message body; compact data are borrowed from it. */
int h5_layout_decode(struct h5_reader *r, struct h5_layout *layout);

#endif

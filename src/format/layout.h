/* Data layout message (0x0008), versions 1 to 5. Specification IV.A.2.i. Structured chunks: the RFC "File
 * Format Changes for Enabling Sparse Storage in HDF5", version 16, and the prototype of 2025, which differs.
 */
#ifndef H5_FORMAT_LAYOUT_H
#define H5_FORMAT_LAYOUT_H

#include "base/reader.h"
#include "base/writer.h"
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

/* Chunk index types of layout versions 4 and 5; 0: the version 1 B-tree of version 3 and before. */
enum h5_index_type {
	H5_INDEX_BTREE1 = 0,
	H5_INDEX_SINGLE = 1,
	H5_INDEX_IMPLICIT = 2,
	H5_INDEX_FIXED_ARRAY = 3,
	H5_INDEX_EXTENSIBLE_ARRAY = 4,
	H5_INDEX_BTREE2 = 5,
};

enum {
	/* Sections of a structured chunk of sparse data: which elements it has, and their values. */
	H5_SECTIONS = 2,
	H5_CHUNK_METADATA_MAX = 8 + H5_SECTIONS * (8 + 4), /* most bytes of a chunk's metadata */
};

struct h5_chunk_layout {
	unsigned rank;		    /* of the dataset: without the element size that the message appends */
	uint64_t dims[H5_RANK_MAX]; /* of a chunk, in elements */
	uint32_t element_size;	    /* as the message states it */
	enum h5_index_type index;
	bool unfiltered_edges; /* layout flag bit 0: don't filter partial edge chunks */
	uint64_t address;      /* of the index, of the chunk (single) or of the chunks (implicit); H5_UNDEF:
				  nothing stored */
	struct {	       /* single chunk; all but the first only if it is filtered or structured */
		bool filtered; /* flag bit 1 */
		uint64_t size;
		uint8_t size_width; /* structured: bytes of the size in the message */
		uint32_t filter_mask;
		uint8_t metadata[H5_CHUNK_METADATA_MAX]; /* structured; as in index records */
	} single;
	struct {		     /* structured chunks */
		uint8_t offset_size; /* bytes of an offset in the metadata of a chunk; 0: not structured */
		bool early;	     /* the message has the form of RFC version 16 */
		bool sparse;	     /* false: sections of another kind; the rest is not decoded */
	} structured;
	/* Creation parameters of the other indexes, for making one. If the index exists, the ones in its
	 * header are used instead. */
	union {
		struct {
			uint8_t page_bits;
		} fixed_array;
		struct {
			uint8_t max_bits, index_elements, min_pointers, min_elements, page_bits;
		} extensible_array;
		struct {
			uint32_t node_size;
			uint8_t split_percent, merge_percent;
		} btree2;
	};
};

struct h5_layout {
	uint8_t version;
	size_t changing; /* offset in the message of what h5_layout_update() writes */
	enum h5_layout_class class;
	union {
		struct {
			const uint8_t *data; /* of a decoded message: borrowed from it */
			uint32_t size;
		} compact;
		struct {
			uint64_t address, size; /* size UINT64_MAX: not stated (versions 1 and 2) */
		} contiguous;
		struct h5_chunk_layout chunked; /* and structured */
		struct {			/* global heap ID of the mappings */
			uint64_t heap;
			uint32_t index;
		} virtual;
	};
};

/* Bytes of the metadata of a structured chunk. */
unsigned h5_chunk_metadata_size(const struct h5_chunk_layout *layout, bool filtered);

/* `r` holds the message body; compact data are borrowed from it. */
int h5_layout_decode(struct h5_reader *r, struct h5_layout *layout);
/* Writes a layout of version 3 or 4: compact, contiguous or chunked. Version 3 has the version 1 B-tree,
 * version 4 the other indexes. Another one sets the writer's error. */
void h5_layout_encode(struct h5_writer *w, const struct h5_layout *layout);
/* Updates the n bytes of a message body after data were written: the address (contiguous, chunked,
 * structured), the single chunk's size and filter mask or metadata, the compact data. The body was decoded to
 * a layout that is otherwise the same. -ENOTSUP: this version has no field for it. */
int h5_layout_update(uint8_t *body, size_t n, uint8_t size_of_offsets, uint8_t size_of_lengths,
		     const struct h5_layout *layout);

#endif

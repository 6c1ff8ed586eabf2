/* Fixed array, the chunk index of datasets whose maximum dimensions are fixed. Specification VII.C (Appendix
 * C).
 *
 * There is a header and a data block. The data block holds the elements. If they do not fit into one page, it
 * holds a bitmap of the initialised pages instead, and the pages follow it at once, each with a checksum of
 * its own. */
#ifndef H5_FORMAT_FIXED_ARRAY_H
#define H5_FORMAT_FIXED_ARRAY_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { H5_FIXED_ARRAY_HEADER_MAX = 28 }; /* bytes */

struct h5_fixed_array_header {
	uint64_t address; /* of the header */
	uint8_t version;  /* of all blocks; 0, or 1 for structured chunks */
	uint8_t client;	  /* client ID */
	uint8_t element_size;
	uint8_t page_bits;
	uint64_t elements;   /* in all: Max Num Entries */
	uint64_t data_block; /* address; H5_UNDEF: nothing stored */
	/* computed: */
	uint64_t page_elements; /* elements of a page but the last */
	uint64_t pages;		/* 0: the data block is not paged */
	uint64_t block_size;	/* bytes of the data block without its pages */
	uint64_t block_space;	/* bytes of the data block with its pages */
};

struct h5_fixed_array_block {
	const uint8_t *bitmap;	 /* paged */
	const uint8_t *elements; /* not paged */
				 /* both borrowed from the reader's memory */
};

/* Makes a new header, which has no address and no data block yet. */
int h5_fixed_array_header_init(struct h5_fixed_array_header *header, unsigned client, unsigned element_size,
			       unsigned page_bits, uint64_t elements, uint8_t size_of_offsets);
int h5_fixed_array_header_decode(struct h5_reader *r, struct h5_fixed_array_header *header);
int h5_fixed_array_block_decode(struct h5_reader *r, const struct h5_fixed_array_header *header,
				struct h5_fixed_array_block *block);

void h5_fixed_array_header_encode(struct h5_writer *w, const struct h5_fixed_array_header *header);
/* Writes the part before the elements or the bitmap. */
void h5_fixed_array_block_encode(struct h5_writer *w, const struct h5_fixed_array_header *header);
void h5_fixed_array_set_page(uint8_t *bitmap, uint64_t page);

bool h5_fixed_array_has_page(const struct h5_fixed_array_block *block, uint64_t page);
/* The address of a page, and the bytes of its elements; a checksum follows them. */
void h5_fixed_array_page(const struct h5_fixed_array_header *header, uint64_t page, uint64_t *address,
			 uint64_t *size);

#endif

/* Extensible array, the chunk index of datasets with one unlimited dimension. Specification VII.D (Appendix
 * C).
 *
 * Elements are numbered through the index block, then through super blocks 0, 1, 2, ... whose data blocks
 * grow in number and in size. The first super blocks are not stored: the index block has the addresses of
 * their data blocks. Large data blocks are divided into pages, which follow the data block's prefix at once;
 * the super block has a bitmap of the initialised pages. */
#ifndef H5_FORMAT_EXTENSIBLE_ARRAY_H
#define H5_FORMAT_EXTENSIBLE_ARRAY_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { H5_EXTENSIBLE_ARRAY_HEADER_MAX = 72 }; /* bytes */

struct h5_extensible_array_header {
	uint64_t address; /* of the header */
	uint64_t shape;	  /* the seven bytes from client ID on, which decide the form of the other blocks
			   */
	uint8_t version;  /* of all blocks; 0, or 1 for structured chunks */
	uint8_t client;	  /* client ID */
	uint8_t element_size;
	uint8_t max_bits;	/* Max Nelmts Bits: elements < 2^bits */
	uint8_t index_elements; /* Index Blk Elmts */
	uint8_t min_elements;	/* Data Blk Min Elmts, a power of two */
	uint8_t min_pointers;	/* Secondary Blk Min Data Ptrs, a power of two */
	/* Num Secondary Blks and their size in bytes; the same of data blocks with their pages; Num Elmts, of
	 * the index block and of all data blocks that exist */
	uint64_t super_count, super_bytes, data_count, data_bytes, elements;
	uint64_t max_index;   /* Max Index Set: elements up to the last one set */
	uint64_t index_block; /* address; H5_UNDEF: nothing stored */
	/* computed: */
	uint64_t page_elements;
	unsigned offset_size;	       /* bytes of a Block Offset */
	unsigned super_blocks;	       /* in all */
	unsigned index_super_blocks;   /* not stored super blocks: the index block has their data blocks */
	unsigned index_data_blocks;    /* data block addresses in the index block */
	unsigned index_super_pointers; /* super block addresses in the index block */
	size_t index_block_size;       /* bytes */
};

/* What follows from the number of a super block. */
struct h5_extensible_array_super {
	unsigned number;
	uint64_t data_blocks;	   /* of the super block */
	uint64_t elements;	   /* of one data block */
	uint64_t first_element;	   /* of the first data block; not counting those of the index block */
	uint64_t first_data_block; /* data blocks of all super blocks before */
	uint64_t pages;		   /* of one data block; 0: not paged */
	uint64_t bitmap_size;	   /* bytes of the page bitmaps of all data blocks together */
	uint64_t block_size;	   /* bytes of the super block */
	uint64_t data_block_size;  /* bytes of a data block without its pages */
	uint64_t page_size;	   /* bytes of a page with its checksum */
	uint64_t data_block_space; /* bytes of a data block with its pages */
};

struct h5_extensible_array_index_block {
	const uint8_t *elements;    /* index_elements x element_size; borrowed from the reader's memory */
	const uint8_t *data_blocks; /* index_data_blocks addresses, encoded */
	const uint8_t *super_blocks;
};

struct h5_extensible_array_super_block {
	uint64_t block_offset;
	const uint8_t *bitmap; /* NULL: not paged */
	const uint8_t *data_blocks;
};

struct h5_extensible_array_data_block {
	uint64_t block_offset;
	const uint8_t *elements; /* NULL: paged */
};

/* Creation parameters, in the order of the header's fields. */
struct h5_extensible_array_parameters {
	uint8_t client, element_size, max_bits, index_elements, min_elements, min_pointers, page_bits;
};

/* Makes the header of an array that has no block yet. -EUCLEAN: there is no such array. */
int h5_extensible_array_header_init(struct h5_extensible_array_header *header, uint64_t address,
				    const struct h5_extensible_array_parameters *parameters,
				    unsigned size_of_offsets);
size_t h5_extensible_array_header_size(unsigned size_of_offsets, unsigned size_of_lengths);
void h5_extensible_array_header_encode(struct h5_writer *w, const struct h5_extensible_array_header *header);
int h5_extensible_array_header_decode(struct h5_reader *r, struct h5_extensible_array_header *header);

/* `number` < super_blocks. */
void h5_extensible_array_super(const struct h5_extensible_array_header *header, unsigned number,
			       unsigned size_of_offsets, struct h5_extensible_array_super *super);
/* The super block of an element, which is counted without those of the index block; < 2^max_bits. */
unsigned h5_extensible_array_super_of(const struct h5_extensible_array_header *header, uint64_t element);

/* All pointers are borrowed from the reader's memory. */
int h5_extensible_array_index_block_decode(struct h5_reader *r,
					   const struct h5_extensible_array_header *header,
					   struct h5_extensible_array_index_block *block);
int h5_extensible_array_super_block_decode(struct h5_reader *r,
					   const struct h5_extensible_array_header *header,
					   const struct h5_extensible_array_super *super,
					   struct h5_extensible_array_super_block *block);
int h5_extensible_array_data_block_decode(struct h5_reader *r,
					  const struct h5_extensible_array_header *header,
					  const struct h5_extensible_array_super *super,
					  struct h5_extensible_array_data_block *block);

/* Writes empty blocks: all bytes of elements and addresses are ones, no page is initialised. `data_block`
 * is the number of the data block in its super block. */
void h5_extensible_array_index_block_encode(struct h5_writer *w,
					    const struct h5_extensible_array_header *header);
void h5_extensible_array_super_block_encode(struct h5_writer *w,
					    const struct h5_extensible_array_header *header,
					    const struct h5_extensible_array_super *super);
void h5_extensible_array_data_block_encode(struct h5_writer *w,
					   const struct h5_extensible_array_header *header,
					   const struct h5_extensible_array_super *super,
					   uint64_t data_block);
/* Makes an encoded block of any kind belong to this header; its checksum is left as it is. */
void h5_extensible_array_block_adopt(uint8_t *block, const struct h5_extensible_array_header *header,
				     unsigned size_of_offsets);

void h5_extensible_array_set_page(const struct h5_extensible_array_super *super, uint8_t *bitmap,
				  uint64_t data_block, uint64_t page);
bool h5_extensible_array_has_page(const struct h5_extensible_array_super *super,
				  const struct h5_extensible_array_super_block *block, uint64_t data_block,
				  uint64_t page);

#endif

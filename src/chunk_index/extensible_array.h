/* Between the files of the extensible array, lowest first: its blocks (extensible_array_blocks.c), moving it
 * as a whole (extensible_array_move.c), changing it (extensible_array_write.c), and the index that is made of
 * these (extensible_array.c). */
#ifndef H5_CHUNK_INDEX_EXTENSIBLE_ARRAY_H
#define H5_CHUNK_INDEX_EXTENSIBLE_ARRAY_H

#include "chunk_index/private.h"

/* What the form of a block depends on. */
struct h5_earray_shape {
	const struct h5_extensible_array_header *header; /* borrowed */
	struct h5_extensible_array_super super;		 /* number 0 for the index block */
};

/* A decoded block. */
struct h5_earray_block {
	uint64_t header; /* address */
	union {
		struct h5_extensible_array_index_block index;
		struct h5_extensible_array_super_block super;
		struct h5_extensible_array_data_block data;
	};
	uint8_t bytes[]; /* verified, and what the decoded block points into */
};

/* Their loaders take a shape. */
extern const struct h5_block_type h5_earray_index_block, h5_earray_super_block, h5_earray_data_block;

void h5_earray_shape_init(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
			  unsigned number, struct h5_earray_shape *shape);
/* Numbers the chunks, for which no header is needed. */
int h5_earray_number(struct h5_chunk_index *index);

/* A reference to the block, which belongs to the shape's header. */
int h5_earray_block_get(const struct h5_chunk_index *index, const struct h5_block_type *type,
			uint64_t address, const struct h5_earray_shape *shape, struct h5_lru_entry **ref,
			const struct h5_earray_block **block);
/* The index block. */
int h5_earray_root_get(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
		       struct h5_lru_entry **ref, const struct h5_earray_block **block);
/* The super block; *ref and *block are NULL where it is not stored, or in the index block. */
int h5_earray_super_get(const struct h5_chunk_index *index, const struct h5_earray_block *root,
			const struct h5_earray_shape *shape, struct h5_lru_entry **ref,
			const struct h5_earray_block **block);
/* Address of data block i of a super block, which is NULL as h5_earray_super_get() leaves it. */
uint64_t h5_earray_data_block_address(const struct h5_chunk_index *index, const struct h5_earray_block *root,
				      const struct h5_earray_shape *shape,
				      const struct h5_earray_block *super, uint64_t i);
uint64_t h5_earray_page_address(const struct h5_earray_shape *shape, uint64_t data_block, uint64_t page);
/* Page `page` of data block i of the super block, whose address that is. *ref and *elements are NULL if it is
 * not initialised. */
int h5_earray_page_get(const struct h5_chunk_index *index, const struct h5_earray_shape *shape,
		       const struct h5_earray_block *super, uint64_t i, uint64_t address, uint64_t page,
		       struct h5_lru_entry **ref, const uint8_t **elements);

/* Where an element lies. The leaf is the index block, a data block or a page. */
struct h5_earray_position {
	bool in_index;		      /* the leaf is the index block: there is no data block and no page */
	struct h5_earray_shape shape; /* of the super block */
	uint64_t data_block;	      /* number in the super block */
	uint64_t page;
	uint64_t at;	   /* number in the leaf */
	uint64_t n;	   /* elements of the leaf */
	uint64_t in_super; /* number in the super block */
	uint64_t number;
};

/* False: the array has no room for so many elements. */
bool h5_earray_locate(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
		      uint64_t number, struct h5_earray_position *position);
/* The elements of the leaf; NULL, *ref too, where it is not stored. Numbers from *first up to *end lie in the
 * leaf, or are not stored for the same reason. */
int h5_earray_leaf_get(const struct h5_chunk_index *index, const struct h5_earray_position *position,
		       struct h5_lru_entry **ref, const uint8_t **elements, uint64_t *first, uint64_t *end);

/* ---- changing ---- */

struct h5_writer h5_earray_writer(const struct h5_chunk_index *index, uint8_t *bytes, size_t n);
size_t h5_earray_header_size(const struct h5_chunk_index *index);
int h5_earray_write_header(const struct h5_chunk_index *index,
			   const struct h5_extensible_array_header *header);

/* A block of the caller's own, to be changed: free(). */
int h5_earray_draft(const struct h5_chunk_index *index, const struct h5_block_type *type, uint64_t address,
		    const struct h5_earray_shape *shape, struct h5_earray_block **draft);
/* A part of the draft, which its decoded form shows read-only. */
uint8_t *h5_earray_part(struct h5_earray_block *draft, const uint8_t *decoded);
/* Every block and page ends with the checksum of the rest. */
void h5_earray_seal(uint8_t *bytes, size_t n);

/* Copies paged data block i with its pages to new space, for this header. */
int h5_earray_copy_paged(const struct h5_chunk_index *index, const struct h5_earray_shape *shape,
			 const struct h5_extensible_array_header *header, const struct h5_earray_block *super,
			 uint64_t i, uint64_t from, uint64_t to);
/* Moves the whole index to new space. */
int h5_earray_move(struct h5_chunk_index *index);

int h5_earray_set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk);
int h5_earray_trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg);

#endif

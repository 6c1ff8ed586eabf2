/* Between the files of the extensible array. Lowest first: extensible_array.c reads it,
 * extensible_array_move.c moves it as a whole, and extensible_array_write.c changes it and has the table of
 * its operations. */
#ifndef H5_CHUNK_INDEX_EXTENSIBLE_ARRAY_H
#define H5_CHUNK_INDEX_EXTENSIBLE_ARRAY_H

#include "chunk_index/private.h"

/* What decides the form of a block. */
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
	uint8_t bytes[]; /* verified; the decoded block points into them */
};

/* Their loaders take a shape. */
extern const struct h5_block_type h5_earray_index_block, h5_earray_super_block, h5_earray_data_block;

void h5_earray_shape_init(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
			  unsigned number, struct h5_earray_shape *shape);
/* Numbers the chunks. Needs no header. */
int h5_earray_number(struct h5_chunk_index *index);

/* A reference to a block. -EUCLEAN: it belongs to another header than the shape's. */
int h5_earray_block_get(const struct h5_chunk_index *index, const struct h5_block_type *type,
			uint64_t address, const struct h5_earray_shape *shape, struct h5_lru_entry **ref,
			const struct h5_earray_block **block);
/* The index block. */
int h5_earray_root_get(const struct h5_chunk_index *index, const struct h5_extensible_array_header *header,
		       struct h5_lru_entry **ref, const struct h5_earray_block **block);
/* The super block. *ref and *block are NULL if it is not stored, or is a part of the index block. */
int h5_earray_super_get(const struct h5_chunk_index *index, const struct h5_earray_block *root,
			const struct h5_earray_shape *shape, struct h5_lru_entry **ref,
			const struct h5_earray_block **block);
/* The address of data block i of a super block; `super` as h5_earray_super_get() sets it. */
uint64_t h5_earray_data_block_address(const struct h5_chunk_index *index, const struct h5_earray_block *root,
				      const struct h5_earray_shape *shape,
				      const struct h5_earray_block *super, uint64_t i);
uint64_t h5_earray_page_address(const struct h5_earray_shape *shape, uint64_t data_block, uint64_t page);

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
/* The elements of the leaf; *elements and *ref are NULL if it is not stored. *first and *end: the numbers of
 * its elements; if it is not stored, of all elements that are not stored for the same reason. */
int h5_earray_leaf_get(const struct h5_chunk_index *index, const struct h5_earray_position *position,
		       struct h5_lru_entry **ref, const uint8_t **elements, uint64_t *first, uint64_t *end);

/* ---- changing ---- */

struct h5_writer h5_earray_writer(const struct h5_chunk_index *index, uint8_t *bytes, size_t n);
size_t h5_earray_header_size(const struct h5_chunk_index *index);
int h5_earray_write_header(const struct h5_chunk_index *index,
			   const struct h5_extensible_array_header *header);

/* A copy of the block that can be changed; the caller's, free(). */
int h5_earray_draft(const struct h5_chunk_index *index, const struct h5_block_type *type, uint64_t address,
		    const struct h5_earray_shape *shape, struct h5_earray_block **draft);
/* The part of the draft that its decoded form points to, to be changed. */
uint8_t *h5_earray_part(struct h5_earray_block *draft, const uint8_t *decoded);
/* Sets the checksum at the end of a block or page. */
void h5_earray_seal(uint8_t *bytes, size_t n);

/* ---- operations of the index ---- */

int h5_earray_open(struct h5_chunk_index *index);
int h5_earray_lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
		     const uint64_t *scaled, struct h5_chunk *chunk);
int h5_earray_walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, h5_extent_visit *block,
		   void *arg);

/* ---- extensible_array_move.c ---- */

/* Copies paged data block i with its pages from one address to another, for this header. */
int h5_earray_copy_paged(const struct h5_chunk_index *index, const struct h5_earray_shape *shape,
			 const struct h5_extensible_array_header *header, const struct h5_earray_block *super,
			 uint64_t i, uint64_t from, uint64_t to);
/* Moves the whole index to new space. */
int h5_earray_move(struct h5_chunk_index *index);

#endif

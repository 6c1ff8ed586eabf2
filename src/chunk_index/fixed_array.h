/* Between fixed_array.c, which reads, and fixed_array_write.c. */
#ifndef H5_CHUNK_INDEX_FIXED_ARRAY_H
#define H5_CHUNK_INDEX_FIXED_ARRAY_H

#include "chunk_index/private.h"

/* The data block; valid until *ref is put. The index has one. */
int h5_farray_block_get(const struct h5_chunk_index *index, struct h5_lru_entry **ref,
			const struct h5_fixed_array_block **block);
/* A page of it. *ref is NULL where the page isn't initialised. *size: bytes of elements. */
int h5_farray_page_get(const struct h5_chunk_index *index, const struct h5_fixed_array_block *block,
		       uint64_t page, struct h5_lru_entry **ref, const uint8_t **elements, uint64_t *size);

/* Operations of the index. */
int h5_farray_set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk);
int h5_farray_trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg);

#endif

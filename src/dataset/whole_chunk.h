/* Chunks of a dataset one by one, as other formats store them: where each is, and all bytes of it, also those
 * that lie outside of the dataset. */
#ifndef H5_DATASET_WHOLE_CHUNK_H
#define H5_DATASET_WHOLE_CHUNK_H

#include "dataset/chunk_cache.h"

struct h5_whole_chunk {
	struct h5_chunk_wanted wanted; /* undefined if the chunk is not stored */
	enum h5_chunk_state state;
	uint64_t needed; /* bytes up to the last one that lies inside the dataset */
};

/* Finds the chunk of these coordinates, which are inside the dataspace. `cursor`: as for
 * h5_chunk_index_lookup(). The dataset, which is chunked, is borrowed. */
int h5_whole_chunk_find(const struct h5_dataset *dataset, struct h5_chunk_cursor *cursor,
			const uint64_t *scaled, struct h5_whole_chunk *chunk);
/* True: the stored bytes are what all filters of the dataset have made, none left out. */
bool h5_whole_chunk_is_filtered(const struct h5_whole_chunk *chunk);
/* n bytes at the offset of the decoded chunk, all inside `chunk_size`. The chunk is stored. Bytes outside of
 * the dataset that are not stored are zeros. -EUCLEAN: others are not stored. */
int h5_whole_chunk_read(const struct h5_whole_chunk *chunk, uint64_t offset, uint8_t *buf, size_t n);

/* A number for each chunk that has elements of the dataset, in row-major order. `grid`: how many chunks there
 * are along each of `rank` dimensions; their product fits 63 bits. */
void h5_whole_chunk_scaled(const uint64_t *grid, unsigned rank, uint64_t number, uint64_t *scaled);
/* The number of the first chunk from these coordinates on, which may lie outside of the grid: then it may be
 * that of no chunk. No dimension of the grid is 0. */
uint64_t h5_whole_chunk_number(const uint64_t *grid, unsigned rank, const uint64_t *scaled);
/* Moves *number to the next chunk that is stored, itself included; `end`, or beyond: there is none before.
 * Looks only at the index. */
int h5_whole_chunk_next(const struct h5_dataset *dataset, struct h5_chunk_cursor *cursor,
			const uint64_t *grid, uint64_t *number, uint64_t end);

#endif

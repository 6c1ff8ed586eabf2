/* The chunks of a dataset: where each is stored, and its decoded bytes, through the cache of chunks. */
#ifndef H5_DATASET_CHUNK_CACHE_H
#define H5_DATASET_CHUNK_CACHE_H

#include "dataset/boxes.h"
#include "dataset/dataset.h"

/* A stored chunk to be read. */
struct h5_chunk_wanted {
	const struct h5_dataset *dataset; /* borrowed */
	struct h5_chunk chunk;
	bool filtered; /* filters were applied, which must be undone */
};

/* True: the dataset has chunks that must be decoded. */
bool h5_chunks_are_decoded(const struct h5_dataset *dataset);

/* Bytes of a band of chunks: as many rows as a chunk has along the first dimension. */
uint64_t h5_chunks_band(const struct h5_dataset *dataset);
/* Most bytes that are decoded ahead. */
uint64_t h5_chunks_ahead_budget(const struct h5_dataset *dataset);
/* Bytes to decode ahead of a reader in order: a band, but not too little, and within the budget. */
uint64_t h5_chunks_window(const struct h5_dataset *dataset);

enum h5_chunk_state {
	H5_CHUNK_NOT_STORED,
	H5_CHUNK_AS_IT_IS, /* the file has its first chunk.size bytes as they are */
	H5_CHUNK_TO_DECODE,
};

/* Chunks without filters are read and written in the file if so many bytes lie together that a system call is
 * worth it, or if the chunk is large. Others are kept in memory: a sweep over the rows comes back to each. */
enum {
	H5_DIRECT_RUN = 1 << 10,
	H5_DIRECT_CHUNK = 1 << 20,
};

/* True: the mask does not skip all filters of the pipeline. */
bool h5_chunk_is_filtered(const struct h5_pipeline *pipeline, uint32_t mask);

/* Sets the grid to the dimensions of the dataset and its chunks. */
void h5_chunk_grid(const struct h5_dataset *dataset, struct h5_grid *grid);
/* Finds out how a chunk is stored. `cursor` as for h5_chunk_index_lookup(). *wanted is set if it is
 * stored. */
int h5_chunk_locate(const struct h5_dataset *dataset, const struct h5_grid *grid,
		    struct h5_chunk_cursor *cursor, const uint64_t *scaled, struct h5_chunk_wanted *wanted,
		    enum h5_chunk_state *state);

/* Reads and decodes a chunk without the cache; meanwhile its memory counts against the budget of the cache.
 * *data: *size bytes, the caller's, free(). A chunk at the edge of the dataset may have been stored without
 * the bytes that lie outside, so *size may be less than chunk_size. Behind chunk_size bytes of a structured
 * chunk are its marks (dataset/structured.h). */
int h5_chunk_read(const struct h5_chunk_wanted *wanted, uint8_t **data, size_t *size);
/* -EUCLEAN: only `size` bytes of the chunk are stored, but `needed` are inside the dataset. */
int h5_chunk_check_size(const struct h5_chunk_wanted *wanted, uint64_t size, uint64_t needed);

/* A reference to a decoded chunk. */
struct h5_chunk_decoded {
	struct h5_lru_entry *ref;
	const uint8_t *data;   /* valid until the reference is put; as h5_chunk_read() */
	size_t size;	       /* bytes of `data`: chunk_size or fewer */
	uint32_t element_size; /* over 1: the bytes are still shuffled, for h5_unshuffle() */
};

/* True: the chunk is in the cache. */
bool h5_chunk_find(const struct h5_chunk_wanted *wanted, struct h5_chunk_decoded *decoded);
/* Takes the chunk from the cache, or reads and decodes it. If another thread is decoding it: waits, or
 * -EAGAIN. */
int h5_chunk_get(const struct h5_chunk_wanted *wanted, bool wait, struct h5_chunk_decoded *decoded);
/* True: it is in the cache, or a thread is decoding it. */
bool h5_chunk_is_under_way(const struct h5_chunk_wanted *wanted);
/* True: h5_chunk_load_ahead() shall decode it. As h5_lru_plan() and h5_lru_load_ahead(). */
bool h5_chunk_plan(const struct h5_chunk_wanted *wanted);
int h5_chunk_load_ahead(const struct h5_chunk_wanted *wanted);
/* Gives the reference back after `taken` bytes were copied, of `all` that lie inside the dataset. Once all
 * bytes of a chunk were copied it leaves the cache early: a program that reads a dataset from begin to end
 * does not come back to it. */
void h5_chunk_put(const struct h5_chunk_wanted *wanted, struct h5_chunk_decoded *decoded, uint64_t taken,
		  uint64_t all);

#endif

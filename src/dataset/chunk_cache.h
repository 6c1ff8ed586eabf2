/* Where the chunks of a dataset are, and what they hold, through the cache of decoded chunks. */
#ifndef H5_DATASET_CHUNK_CACHE_H
#define H5_DATASET_CHUNK_CACHE_H

#include "dataset/boxes.h"
#include "dataset/dataset.h"

/* Which chunk. */
struct h5_chunk_wanted {
	const struct h5_dataset *dataset; /* borrowed */
	struct h5_chunk chunk;
	bool filtered; /* not stored as it is */
};

/* True: it has chunks that are decoded before they can be read. */
bool h5_chunks_are_decoded(const struct h5_dataset *dataset);

enum h5_chunk_state {
	H5_CHUNK_NOT_STORED,
	H5_CHUNK_AS_IT_IS, /* chunk.size bytes in the file, the first ones of the chunk */
	H5_CHUNK_TO_DECODE,
};

/* Chunks without filters are read and written where they lie if so many bytes that are worth a system call
 * lie together, or the chunk is large; the small ones with short runs, of which a sweep over the rows comes
 * back to each, are kept decoded. */
enum {
	H5_DIRECT_RUN = 1 << 10,
	H5_DIRECT_CHUNK = 1 << 20,
};

/* True: the chunk reaches beyond the dataset. Such chunks are stored unfiltered where the layout has
 * unfiltered_edges. */
bool h5_chunk_is_partial(const struct h5_grid *grid, const uint64_t *scaled);
/* True if not all filters of the pipeline were skipped. */
bool h5_chunk_is_filtered(const struct h5_pipeline *pipeline, uint32_t mask);

/* The dataset and its chunks, for walks over its bytes. */
void h5_chunk_grid(const struct h5_dataset *dataset, struct h5_grid *grid);
/* `cursor` as for h5_chunk_index_lookup(). */
int h5_chunk_locate(const struct h5_dataset *dataset, const struct h5_grid *grid,
		    struct h5_chunk_cursor *cursor, const uint64_t *scaled, struct h5_chunk_wanted *wanted,
		    enum h5_chunk_state *state);

/* Reads and decodes a chunk past the cache, whose budget it counts against meanwhile. *data is the caller's,
 * free(): *size bytes, chunk_size or fewer. A chunk at the edge of the dataset may have been stored without
 * the bytes that lie outside. */
int h5_chunk_read(const struct h5_chunk_wanted *wanted, uint8_t **data, size_t *size);
/* -EUCLEAN: `size` bytes are stored of a chunk that has more than these inside the dataset. */
int h5_chunk_check_size(const struct h5_chunk_wanted *wanted, uint64_t size, uint64_t needed);

/* A reference to a decoded chunk. */
struct h5_chunk_decoded {
	struct h5_lru_entry *ref;
	const uint8_t *data;   /* valid until it is put */
	size_t size;	       /* bytes of it: chunk_size or fewer */
	uint32_t element_size; /* over 1: they are shuffled still, as h5_unshuffle() takes them */
};

/* True: it is there. */
bool h5_chunk_find(const struct h5_chunk_wanted *wanted, struct h5_chunk_decoded *decoded);
/* From the cache, or read and decoded. Where another thread is at it: waits, or -EAGAIN. */
int h5_chunk_get(const struct h5_chunk_wanted *wanted, bool wait, struct h5_chunk_decoded *decoded);
/* True: it is there, or somebody is decoding it. */
bool h5_chunk_is_under_way(const struct h5_chunk_wanted *wanted);
/* The reader has taken `taken` bytes of the `all` that lie inside the dataset. Who reads a dataset from begin
 * to end does not come back to a chunk: once all its bytes were taken it is among the first to go. */
void h5_chunk_put(const struct h5_chunk_wanted *wanted, struct h5_chunk_decoded *decoded, uint64_t taken,
		  uint64_t all);

#endif

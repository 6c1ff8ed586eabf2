/* The chunks that a writer has looked up: where each lies in the file, and its bytes if writes to it gather
 * in memory. They are found by their coordinates, and listed in the order in which they were added. */
#ifndef H5_DATASET_KNOWN_CHUNKS_H
#define H5_DATASET_KNOWN_CHUNKS_H

#include "chunk_index/chunk_index.h"

struct h5_known_chunk {
	struct h5_chunk stored;
	uint8_t *data;		      /* owned: the chunk, decoded; NULL: it is not in memory */
	uint64_t begin, end;	      /* bytes of data that the file lacks; begin == end: none */
	struct h5_known_chunk *next;  /* in the list */
	struct h5_known_chunk *chain; /* of the same hash */
	uint64_t scaled[];	      /* rank of them */
};

struct h5_known_chunks {
	unsigned rank;
	uint64_t chunk_size; /* bytes of data */
	size_t bytes;	     /* of memory, in all */
	size_t count, bucket_count;
	struct h5_known_chunk **buckets;
	struct h5_known_chunk *first, **end, *last_found;
};

void h5_known_chunks_init(struct h5_known_chunks *all, unsigned rank, uint64_t chunk_size);
void h5_known_chunks_release(struct h5_known_chunks *all); /* may run twice */

/* NULL: not there. */
struct h5_known_chunk *h5_known_chunk_find(struct h5_known_chunks *all, const uint64_t *scaled);
/* Adds a chunk, which must not be there yet; borrowed until it is removed. */
int h5_known_chunk_add(struct h5_known_chunks *all, const uint64_t *scaled, const struct h5_chunk *stored,
		       struct h5_known_chunk **known);
/* Gives the chunk its data, and takes these over. */
void h5_known_chunk_hold(struct h5_known_chunks *all, struct h5_known_chunk *known, uint8_t *data);
/* Removes the chunk that *at points to, in a walk from &all->first along `next`. */
void h5_known_chunk_remove(struct h5_known_chunks *all, struct h5_known_chunk **at);

#endif

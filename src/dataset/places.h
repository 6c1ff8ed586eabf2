/* The chunks that a writer works on: where each lies, and its bytes where they are gathered in memory. Found
 * by their coordinates, and listed in the order in which they were added. */
#ifndef H5_DATASET_PLACES_H
#define H5_DATASET_PLACES_H

#include "chunk_index/chunk_index.h"

struct h5_place {
	struct h5_chunk stored;
	uint8_t *data;		/* owned: the chunk, decoded; NULL: it is not in memory */
	uint64_t begin, end;	/* bytes of data that the file does not have; begin == end: none */
	struct h5_place *next;	/* in the list */
	struct h5_place *chain; /* of the same hash */
	uint64_t scaled[];	/* rank of them */
};

struct h5_places {
	unsigned rank;
	uint64_t chunk_size; /* bytes of data */
	size_t bytes;	     /* of memory, in all */
	size_t count, bucket_count;
	struct h5_place **buckets;
	struct h5_place *first, **end, *last_found;
};

void h5_places_init(struct h5_places *places, unsigned rank, uint64_t chunk_size);
void h5_places_release(struct h5_places *places); /* may run twice */

/* NULL: not there. */
struct h5_place *h5_places_find(struct h5_places *places, const uint64_t *scaled);
/* A place that is not there yet; borrowed until it is removed. */
int h5_places_add(struct h5_places *places, const uint64_t *scaled, const struct h5_chunk *stored,
		  struct h5_place **place);
/* Gives the place its data, which it takes over. */
void h5_places_hold(struct h5_places *places, struct h5_place *place, uint8_t *data);
/* Takes the place out that *at points to, in a walk from &places->first along `next`. */
void h5_places_remove(struct h5_places *places, struct h5_place **at);

#endif

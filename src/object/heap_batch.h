/* Adds many objects to the global heap: the data of variable-length elements of a dataset.
 *
 * Objects gather in memory, in collections of their own, whose space is allocated at once, so that elements
 * can refer to them. The collections go to the transaction together. The first ones are small, later ones
 * larger, so that a line costs little and a million lines are quick.
 *
 * After a commit, the next objects go to the free space of the last collection: data and the new header of
 * the free space first, then the header of the first object, by a cell that takes the place of the old free
 * space's. */
#ifndef H5_OBJECT_HEAP_BATCH_H
#define H5_OBJECT_HEAP_BATCH_H

#include "change/watch.h"
#include "object/global_heap_write.h"

/* Objects of a collection that the file lacks. */
struct h5_heap_block {
	uint64_t address, size; /* of the collection */
	uint64_t from;		/* the first byte that the file lacks: 0, or where its free space begins */
	uint64_t used;		/* bytes of the collection */
	uint16_t index;		/* of the last object in it */
	uint8_t *data;		/* owned: the bytes up to `used`; those before `from` mean nothing */
	size_t capacity;
};

struct h5_heap_batch {
	struct h5_heap_sink sink; /* takes data */
	struct h5_file *file;
	struct h5_heap_block *blocks; /* owned */
	size_t count, capacity;
	uint64_t next_size; /* bytes of the next collection */
	size_t held;	    /* bytes of memory */
	/* The last collection that went to the transaction: its data are not in memory. */
	struct h5_heap_block last; /* address H5_UNDEF: none, or others have changed it */
	struct h5_tx_watch watch;  /* over it */
	uint64_t transaction;	   /* in which that was; h5_tx_number() */
};

/* A state of the batch, for h5_heap_batch_back(). */
struct h5_heap_mark {
	size_t count;
	uint64_t used, next_size;
	uint16_t index;
};

void h5_heap_batch_init(struct h5_heap_batch *batch, struct h5_file *file);
/* Drops what has not gone to the transaction; its space is lost to the file. May run twice. */
void h5_heap_batch_release(struct h5_heap_batch *batch);

static inline struct h5_heap_mark h5_heap_batch_mark(const struct h5_heap_batch *batch)
{
	const struct h5_heap_block *open = batch->count ? &batch->blocks[batch->count - 1] : NULL;

	return (struct h5_heap_mark){.count = batch->count,
				     .used = open ? open->used : 0,
				     .index = open ? open->index : 0,
				     .next_size = batch->next_size};
}

/* Drops the objects that were put since the mark, to which nothing may refer; also after a put has failed.
 * The batch has not been flushed since. */
void h5_heap_batch_back(struct h5_heap_batch *batch, const struct h5_heap_mark *mark);

/* Brings the objects into the transaction. On failure they stay in the batch. */
int h5_heap_batch_flush(struct h5_heap_batch *batch);

#endif

/* Adds objects to the global heap: the data of variable-length elements.
 *
 * Committed collections are never changed. The objects of a transaction go to new collections, which small
 * ones share. */
#ifndef H5_OBJECT_GLOBAL_HEAP_WRITE_H
#define H5_OBJECT_GLOBAL_HEAP_WRITE_H

#include "store/file.h"

/* What takes the data of variable-length elements; the first member of a struct that does so. */
struct h5_heap_sink {
	/* Takes n > 0 bytes, which are known by the *address of a collection and an *index there. */
	int (*put)(struct h5_heap_sink *sink, const void *data, size_t n, uint64_t *address, uint32_t *index);
};

/* The collection that the next small object goes to; the caller keeps it as long as the file is open.
 *
 * A commit, or changes that are dropped, end the collection by themselves. */
struct h5_global_heap_writer {
	struct h5_heap_sink sink; /* h5_global_heap_put() */
	struct h5_file *file;
	uint64_t transaction; /* of the collection; see h5_tx_number() */
	uint64_t address;     /* of the collection; H5_UNDEF: there is none */
	uint64_t size, used;  /* bytes */
	uint16_t index;	      /* of the last object in it */
};

void h5_global_heap_writer_init(struct h5_global_heap_writer *writer, struct h5_file *file);
/* Nothing more goes to the open collection: to be called before a collection of this transaction is freed. */
void h5_global_heap_writer_forget(struct h5_global_heap_writer *writer);

/* Puts n > 0 bytes into the heap, as a unit of change (change/transaction.h): if it fails, nothing has
 * changed, the writer neither. The object is known by the *address of its collection and its *index there.
 * -EFBIG: more than a collection can hold. */
int h5_global_heap_put(struct h5_global_heap_writer *writer, const void *data, size_t n, uint64_t *address,
		       uint32_t *index);

#endif

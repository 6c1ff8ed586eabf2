/* Adds objects to the global heap: the data of variable-length elements.
 *
 * Nothing is added to committed collections. The objects of a transaction go to new ones, which small objects
 * share. */
#ifndef H5_OBJECT_GLOBAL_HEAP_WRITE_H
#define H5_OBJECT_GLOBAL_HEAP_WRITE_H

#include "change/watch.h"
#include "store/file.h"

/* What takes the data of variable-length elements; the first member of a struct that does so. */
struct h5_heap_sink {
	/* Takes n > 0 bytes, which are known by the *address of a collection and an *index there. */
	int (*put)(struct h5_heap_sink *sink, const void *data, size_t n, uint64_t *address, uint32_t *index);
};

/* The collection that the next small object goes to; the caller keeps it as long as the file is open.
 *
 * A commit, changes that are dropped, and others that free a part of it end the collection by themselves. */
struct h5_global_heap_writer {
	struct h5_heap_sink sink; /* h5_global_heap_put() */
	struct h5_file *file;
	struct h5_heap_open {
		uint64_t transaction; /* of the collection; see h5_tx_number() */
		uint64_t address; /* of the collection; H5_UNDEF: there is none, or others have changed it */
		uint64_t size, used; /* bytes */
		uint16_t index;	     /* of the last object in it */
	} open;
	struct h5_tx_watch watch; /* over it */
};

void h5_global_heap_writer_init(struct h5_global_heap_writer *writer, struct h5_file *file);
/* To be called before the memory of the writer goes, if the file is still open. May run twice. */
void h5_global_heap_writer_release(struct h5_global_heap_writer *writer);

/* Puts n > 0 bytes into the heap, as a unit of change (change/transaction.h): if it fails, nothing has
 * changed, the writer neither. The object is known by the *address of its collection and its *index there.
 * -EFBIG: more than a collection can hold. */
int h5_global_heap_put(struct h5_global_heap_writer *writer, const void *data, size_t n, uint64_t *address,
		       uint32_t *index);

#endif

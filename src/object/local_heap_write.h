/* Changes of local heaps, in the transaction (change/transaction.h): inside a unit of change of the caller.
 * Specification III.D.
 *
 * A text that nothing needs any more stays where it is. When a heap is full, its owner tells which texts are
 * still in use, and the heap is collected: copied to new space, where the room of all other texts is free. So
 * no byte of a text ever changes in place, whatever a commit or a kill leaves of the entries that refer to
 * it, and to remove an entry costs the heap nothing. */
#ifndef H5_OBJECT_LOCAL_HEAP_WRITE_H
#define H5_OBJECT_LOCAL_HEAP_WRITE_H

#include "object/local_heap.h"

/* Bytes that a text of n bytes takes. */
uint64_t h5_local_heap_need(uint64_t n);
/* Stores a text of n bytes, none of them NUL. 1: there is no room, the heap must be collected. -EUCLEAN: the
 * list of free blocks leads nowhere. Looks at a few free blocks only. */
int h5_local_heap_add(struct h5_file *file, uint64_t address, const char *text, size_t n, uint64_t *offset);

/* A heap that is collected:
 *
 *   rc = h5_local_heap_collect_begin(&collect, file, address);
 *   ...h5_local_heap_collect_keep(&collect, offset) for each text in use
 *   if (!rc)
 *           rc = h5_local_heap_collect_end(&collect, need);
 *   h5_local_heap_collect_release(&collect); */
struct h5_local_heap_collect {
	struct h5_local_heap heap;
	uint64_t address; /* of the header */
	uint8_t *bytes;	  /* of the segment */
	uint8_t *used;	  /* a byte for each unit of the segment: a text that is in use has it */
	uint64_t left;	  /* bytes of texts that a sound heap can still have */
};

/* Reads the heap. No text is in use yet but the one at offset 0. */
int h5_local_heap_collect_begin(struct h5_local_heap_collect *collect, struct h5_file *file,
				uint64_t address);
void h5_local_heap_collect_release(struct h5_local_heap_collect *collect);
/* The text at the offset is in use. -EUCLEAN: it does not end within the heap. */
int h5_local_heap_collect_keep(struct h5_local_heap_collect *collect, uint64_t offset);
/* All that the list of free blocks does not have is in use. */
int h5_local_heap_collect_keep_all(struct h5_local_heap_collect *collect);
/* Writes the heap, with a free block of at least `need` bytes. It becomes larger if else no free block had a
 * quarter of it. So collecting takes constant time for each text that is added meanwhile. */
int h5_local_heap_collect_end(struct h5_local_heap_collect *collect, uint64_t need);

#endif

/* Global heap collections. Specification III.E. */
#ifndef H5_FORMAT_GLOBAL_HEAP_H
#define H5_FORMAT_GLOBAL_HEAP_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdint.h>

enum { H5_GLOBAL_HEAP_PREFIX = 16 }; /* bytes that tell a collection's size */

struct h5_global_heap_object {
	uint16_t index;	       /* 1, ...; 0: free space */
	uint16_t references;   /* libhdf5 writes 0 */
	uint64_t offset, size; /* of the data, in the collection */
};

/* `size`: of the whole collection. */
int h5_global_heap_size(struct h5_reader *prefix, uint64_t *size);

/* Bytes of the header of an object; the prefix of a collection takes as many. */
size_t h5_global_heap_header(uint8_t size_of_lengths);
/* The header of the object, or of the free space, that is next in the collection, of which `left` bytes are
 * left from there on. `offset` is that behind the header. -EUCLEAN: some version of libhdf5 refuses it. */
int h5_global_heap_next(struct h5_reader *r, uint64_t left, struct h5_global_heap_object *object);
/* -EUCLEAN: some version of libhdf5 refuses a collection of that size. */
int h5_global_heap_check_size(uint64_t address, uint64_t size);

/* Checks size and free space of the collection that the reader is over. -EUCLEAN: some version of libhdf5
 * refuses the collection, or fails when it adds to it. It may still be readable. */
int h5_global_heap_verify(struct h5_reader *r);

/* The objects of a collection, sorted by index; *objects is owned by the caller, free(). */
int h5_global_heap_decode(struct h5_reader *r, struct h5_global_heap_object **objects, unsigned *count);

/* ---- encoding ---- */

enum { H5_GLOBAL_HEAP_LEAST = 4096 }; /* least bytes of a collection: libhdf5 1.14 refuses smaller ones */

/* Bytes of an object with n bytes of data; n is at most UINT64_MAX / 2. */
uint64_t h5_global_heap_room(uint8_t size_of_lengths, uint64_t n);
/* The prefix of a collection of `size` bytes. */
void h5_global_heap_encode_prefix(struct h5_writer *w, uint64_t size);
void h5_global_heap_encode_object(struct h5_writer *w, uint16_t index, const void *data, size_t n);
/* The `left` bytes up to the end of the collection as free space: its header, if there is room for one; the
 * bytes behind that mean nothing. */
void h5_global_heap_encode_free(struct h5_writer *w, uint64_t left);

#endif

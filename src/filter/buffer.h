/* The buffers that filters work on, and the types of the filters' functions.
 *
 * Decoding undoes one filter on one chunk. All sizes come from the file, so `limit` bounds the output.
 * Encoding runs one filter on one chunk, so that libhdf5's filter of the same id decodes it. */
#ifndef H5_FILTER_BUFFER_H
#define H5_FILTER_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A malloc'ed buffer. */
struct h5_filter_buf {
	uint8_t *data; /* owned */
	size_t size, capacity;
};

/* Makes room for `capacity` bytes, keeping the contents. */
int h5_filter_buf_reserve(struct h5_filter_buf *buf, size_t capacity);
/* Makes room for `more` bytes behind the contents, and some to spare, for buffers that grow piece by piece.
 */
int h5_filter_buf_grow(struct h5_filter_buf *buf, size_t more);
/* Makes the contents a copy of the n bytes. */
int h5_filter_buf_copy(struct h5_filter_buf *buf, const uint8_t *data, size_t n);
/* Numbers of `each` bytes: from that order of bytes to this machine's, or back. */
void h5_filter_to_order(uint8_t *data, size_t size, size_t each, bool big_endian);
void h5_filter_buf_release(struct h5_filter_buf *buf); /* may run twice */

/* Returns -EOVERFLOW, with a detail: the decoder of that name gives more than `limit` bytes. */
int h5_filter_too_long(const char *name, size_t limit);

/* Decodes *in into *out, at most `limit` bytes; no more room is reserved. -EOVERFLOW: the result is larger;
 * -EUCLEAN: damaged. *out is empty, but may have room. The caller releases it, also after an error. */
typedef int h5_filter_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
			     struct h5_filter_buf *out, size_t limit);

/* Encodes the bytes into *out, which is empty, but may have room. The caller releases it, also after an
 * error. The result may be larger than `size`. -ENOTSUP: impossible with these values, or for these bytes.
 * With size 0 it only checks the values. */
typedef int h5_filter_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
			     struct h5_filter_buf *out);

#endif

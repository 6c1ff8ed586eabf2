/* What filters work on: buffers, and the types of their functions.
 *
 * Decoding undoes one filter on one chunk. All sizes come from the file: output is bounded by `limit`.
 * Encoding runs one filter on one chunk, so that libhdf5's filter of the same id decodes it. */
#ifndef H5_FILTER_BUFFER_H
#define H5_FILTER_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/* A malloc'ed buffer. */
struct h5_filter_buf {
	uint8_t *data; /* owned */
	size_t size, capacity;
};

/* Makes room for `capacity` bytes, keeping the contents. */
int h5_filter_buf_reserve(struct h5_filter_buf *buf, size_t capacity);
/* Makes room for `more` bytes behind the contents, with some to spare: for what grows piece by piece. */
int h5_filter_buf_grow(struct h5_filter_buf *buf, size_t more);
/* Fills an empty buffer with a copy of the n bytes. */
int h5_filter_buf_copy(struct h5_filter_buf *buf, const uint8_t *data, size_t n);
void h5_filter_buf_release(struct h5_filter_buf *buf); /* may run twice */

/* -EOVERFLOW, with a detail: the decoder of that name gives more than `limit` bytes. */
int h5_filter_too_long(const char *name, size_t limit);

/* Puts the decoded bytes of *in into *out: at most `limit` bytes, and no more is reserved. -EOVERFLOW: more
 * come out; -EUCLEAN: damaged. *out has no bytes before, but may have room; the caller releases it whatever
 * is returned. */
typedef int h5_filter_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
			     struct h5_filter_buf *out, size_t limit);

/* Puts the encoded bytes into *out, which has no bytes before, but may have room; the caller releases it
 * whatever is returned. They may be more than `size`. -ENOTSUP: not with these values, or not these bytes.
 * Without bytes (size 0) it only tells whether the values will do. */
typedef int h5_filter_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
			     struct h5_filter_buf *out);

#endif

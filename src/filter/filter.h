/* The filters, by their registered ids. One file each; filter.c holds the one table id -> ops.
 *
 * Decoding undoes one filter on one chunk. All sizes come from the file: output is bounded by `limit`.
 * Encoding runs one filter on one chunk, so that libhdf5's filter of the same id decodes it. */
#ifndef H5_FILTER_FILTER_H
#define H5_FILTER_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A malloc'ed buffer. */
struct h5_filter_buf {
	uint8_t *data; /* owned */
	size_t size, capacity;
};

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

struct h5_filter_ops {
	uint16_t id;
	const char *name;	  /* as h5fs.filters shows it */
	h5_filter_decode *decode; /* NULL: known by name alone, or not built in */
	h5_filter_encode *encode; /* NULL: cannot be encoded, or not built in */
	/* libhdf5's filter of this id fails where its result would not be smaller, and is skipped if that may
	 * be. Others keep what they yield: libhdf5 doesn't update the mask of a chunk that it stores in as
	 * many bytes as before, so none may be skipped that it would not skip. */
	bool must_gain;
	/* With these values decoding moves no bytes: it makes *in shorter at most, and does not look at *out.
	 * NULL: with none. */
	bool (*decodes_in_place)(const uint32_t *values, unsigned count);
};

enum { H5_FILTER_SHUFFLE = 2 };

/* NULL: an unknown id. */
const struct h5_filter_ops *h5_filter_find(uint16_t id);

/* Of a filter that this program knows, or that is registered; NULL: none of these. */
const char *h5_filter_name(uint16_t id);

/* The ops of the n-th filter in the table; NULL: no more. */
const struct h5_filter_ops *h5_filter_at(unsigned n);

/* A part of what undoing the shuffle of `size` bytes gives, without the rest: n bytes, the first one at
 * `from`. A reader of a few rows is done with one copy. */
void h5_unshuffle(const uint8_t *shuffled, size_t size, size_t element_size, size_t from, uint8_t *out,
		  size_t n);

/* Makes room for `capacity` bytes, keeping the contents. */
int h5_filter_buf_reserve(struct h5_filter_buf *buf, size_t capacity);
/* Makes room for `more` bytes behind the contents, with some to spare: for what grows piece by piece. */
int h5_filter_buf_grow(struct h5_filter_buf *buf, size_t more);
/* Fills an empty buffer with a copy of the n bytes. */
int h5_filter_buf_copy(struct h5_filter_buf *buf, const uint8_t *data, size_t n);
void h5_filter_buf_release(struct h5_filter_buf *buf); /* may run twice */

#endif

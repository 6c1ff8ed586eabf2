/* The filters, by their registered ids. One file each; filter.c holds the one table id -> ops.
 *
 * Decoding undoes one filter on one chunk. All sizes come from the file: output is bounded by `limit`. */
#ifndef H5_FILTER_FILTER_H
#define H5_FILTER_FILTER_H

#include <stddef.h>
#include <stdint.h>

/* A malloc'ed buffer that a filter works on or replaces. */
struct h5_filter_buf {
	uint8_t *data; /* owned */
	size_t size, capacity;
};

struct h5_filter_ops {
	uint16_t id;
	const char *name; /* as h5fs.filters shows it */
	/* Replaces the bytes in *buf by the decoded ones: at most `limit` bytes, more is -EUCLEAN.
	 * NULL: known by name, but not built in. */
	int (*decode)(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
	/* Replaces the bytes in *buf by the encoded ones, so that libhdf5's filter of the same id decodes
	 * them. -E2BIG: it gains nothing, and an optional filter is skipped then. -ENOTSUP: not with these
	 * values. NULL: cannot be encoded. */
	int (*encode)(const uint32_t *values, unsigned count, struct h5_filter_buf *buf);
};

/* NULL: an unknown id. */
const struct h5_filter_ops *h5_filter_find(uint16_t id);

/* The ops of the n-th filter in the table; NULL: no more. */
const struct h5_filter_ops *h5_filter_at(unsigned n);

/* Makes room for `capacity` bytes, keeping the contents. */
int h5_filter_buf_reserve(struct h5_filter_buf *buf, size_t capacity);
void h5_filter_buf_release(struct h5_filter_buf *buf); /* may run twice */

#endif

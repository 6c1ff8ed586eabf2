/* The table of filters, by their registered ids. Each filter is a file of its own. */
#ifndef H5_FILTER_FILTER_H
#define H5_FILTER_FILTER_H

#include "filter/buffer.h"

#include <stdbool.h>

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

#endif

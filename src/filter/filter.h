/* The table of filters, by their registered ids. Each filter is a file of its own. */
#ifndef H5_FILTER_FILTER_H
#define H5_FILTER_FILTER_H

#include "filter/buffer.h"

#include <stdbool.h>

struct h5_filter_ops {
	uint16_t id;
	const char *name;	  /* as h5fs.filters shows it */
	h5_filter_decode *decode; /* NULL: only the name is known, or it is not built in */
	h5_filter_encode *encode; /* NULL: cannot be encoded, or not built in */
	/* libhdf5's filter of this id fails if its result is not smaller; if the filter is optional, it is
	 * then skipped for that chunk. The other filters must not be skipped: libhdf5 does not update the
	 * mask of a chunk that it stores in as many bytes as before. */
	bool must_gain;
	/* True: with these values decoding moves no bytes. It may make *in shorter, and does not use *out.
	 * NULL: never. */
	bool (*decodes_in_place)(const uint32_t *values, unsigned count);
};

enum { H5_FILTER_SHUFFLE = 2 };

/* The table; the last one has no name. */
extern const struct h5_filter_ops h5_filters[];

/* NULL: an unknown id. */
static inline const struct h5_filter_ops *h5_filter_find(uint16_t id)
{
	for (const struct h5_filter_ops *ops = h5_filters; ops->name; ops++)
		if (ops->id == id)
			return ops;
	return NULL;
}

/* The name of a filter that is in the table or registered; NULL: it is neither. */
const char *h5_filter_name(uint16_t id);

#endif

/* The client data values of filters for a new dataset, as libhdf5 and the filters' own programs set them. */
#ifndef H5_FILTER_CLIENT_VALUES_H
#define H5_FILTER_CLIENT_VALUES_H

#include <stdbool.h>
#include <stdint.h>

enum { H5_CLIENT_VALUES_MAX = 8 };

/* What the values depend on. */
struct h5_filter_use {
	bool has_level; /* the user has chosen one */
	uint32_t level;
	uint32_t element_size;
	uint64_t chunk_size; /* bytes */
};

struct h5_client_values {
	bool optional; /* the filter is skipped for a chunk that gains nothing */
	unsigned count;
	uint32_t values[H5_CLIENT_VALUES_MAX];
};

/* True: one of the values is a level, which the user may choose. */
bool h5_filter_has_level(uint16_t id);
/* -ENOTSUP: this filter cannot be given to new datasets; -EINVAL: it has no such level. */
int h5_filter_values(uint16_t id, const struct h5_filter_use *use, struct h5_client_values *values);

#endif

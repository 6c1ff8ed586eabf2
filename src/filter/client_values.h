/* The client data values of filters for a new dataset, as libhdf5 and the filters' own programs set them. */
#ifndef H5_FILTER_CLIENT_VALUES_H
#define H5_FILTER_CLIENT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { H5_CLIENT_VALUES_MAX = 1024, H5_FILTER_PARAMETERS_MAX = 3 };

/* What a user chooses of a filter, such as its level: its first parameters; the others are the usual ones. */
struct h5_filter_parameters {
	unsigned count;
	uint32_t values[H5_FILTER_PARAMETERS_MAX];
};

enum h5_filter_numbers {
	H5_FILTER_NO_NUMBERS, /* elements that are not one number */
	H5_FILTER_INTEGERS,
	H5_FILTER_FLOATS,
};

/* What the values depend on. All of it is borrowed. */
struct h5_filter_use {
	struct h5_filter_parameters parameters;
	uint32_t element_size;
	uint64_t chunk_size; /* bytes */
	uint64_t line;	     /* elements of a chunk along its last dimension */
	enum h5_filter_numbers numbers;
	bool is_signed, is_big_endian; /* of numbers */
	unsigned bits; /* in which a number is; all of the element if they do not begin with its first one */
	const uint8_t *fill; /* the fill value of numbers; NULL: 0 */
	/* The type, as filter 5 describes it (filter/nbit.c), and whether each number has all bits of its
	 * bytes. */
	const uint32_t *description;
	unsigned described;
	bool is_full;
};

struct h5_client_values {
	bool optional; /* the filter is skipped for a chunk that gains nothing */
	unsigned count;
	uint32_t values[H5_CLIENT_VALUES_MAX];
};

/* Reads the text of the filter's parameter i: a number or a word. -EINVAL: it has no such parameter, or it
 * cannot have this value. */
int h5_filter_parameter(uint16_t id, unsigned i, const char *text, size_t n, uint32_t *value);
/* The parameters of a filter that has these client values: those by which it can be had again. */
void h5_filter_parameters_of(uint16_t id, const uint32_t *values, unsigned count,
			     struct h5_filter_parameters *parameters);
/* -ENOTSUP: this filter cannot be given to new datasets; -EINVAL: not to datasets of this type or with these
 * chunks, or a parameter is missing. */
int h5_filter_values(uint16_t id, const struct h5_filter_use *use, struct h5_client_values *values);

#endif

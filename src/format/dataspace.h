/* Dataspace message (0x0001), versions 1 and 2. Specification IV.A.2.b. */
#ifndef H5_FORMAT_DATASPACE_H
#define H5_FORMAT_DATASPACE_H

#include "base/reader.h"
#include "base/writer.h"
#include "format/datatype.h"

#include <stdbool.h>
#include <stdint.h>

#define H5_UNLIMITED UINT64_MAX

enum h5_dataspace_kind { H5_SPACE_SCALAR = 0, H5_SPACE_SIMPLE = 1, H5_SPACE_NULL = 2 };

struct h5_dataspace {
	enum h5_dataspace_kind kind;
	unsigned rank; /* 0 unless the dataspace is simple */
	uint64_t dims[H5_RANK_MAX];
	uint64_t max[H5_RANK_MAX]; /* or H5_UNLIMITED; the dims if the message has none */
	bool has_max;		   /* the message has maximum dimensions: they stay if the dims change */
	uint64_t elements;	   /* 1 for a scalar, 0 for null; UINT64_MAX if the product is larger */
};

int h5_dataspace_decode(struct h5_reader *r, struct h5_dataspace *space);
/* Writes version 2; the maximum dimensions if they differ, or if `has_max` says so. */
void h5_dataspace_encode(struct h5_writer *w, const struct h5_dataspace *space);
/* Writes the current dimensions into the n bytes of a message body that was decoded to a dataspace of this
 * rank. */
int h5_dataspace_update(uint8_t *body, size_t n, uint8_t size_of_lengths, const struct h5_dataspace *space);

#endif

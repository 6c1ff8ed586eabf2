/* Fill value messages: 0x0005 versions 1 to 3, and the old one 0x0004. Specification IV.A.2.e, IV.A.2.f. */
#ifndef H5_FORMAT_FILL_VALUE_H
#define H5_FORMAT_FILL_VALUE_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stdint.h>

/* When the space of a dataset's elements is allocated. */
enum h5_allocation_time {
	H5_ALLOCATION_EARLY = 1, /* space is allocated when the dataset is made, and whenever it grows */
	H5_ALLOCATION_LATE = 2,	 /* all space when the first element is written */
	H5_ALLOCATION_INCREMENTAL = 3, /* a chunk's space when an element of the chunk is written */
};

struct h5_fill_value {
	bool defined;	    /* user-defined, with bytes */
	uint8_t allocation; /* enum h5_allocation_time; 0: not stated */
	bool never_written; /* fill value write time 1: new storage may hold anything */
	uint32_t size;
	const uint8_t *value; /* borrowed from the message; NULL: not defined */
};

int h5_fill_value_decode(struct h5_reader *r, struct h5_fill_value *fill);
int h5_fill_value_old_decode(struct h5_reader *r, struct h5_fill_value *fill);
/* Writes version 3. If the value is not defined, it is the default: zeros. New storage gets the value only if
 * a program has defined it, unless that is never done. */
void h5_fill_value_encode(struct h5_writer *w, const struct h5_fill_value *fill);

#endif

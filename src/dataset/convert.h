/* Elements of one datatype as elements of another, where a virtual dataset and its source differ: numbers,
 * as C converts them but that what doesn't fit becomes the nearest that does, and strings of fixed length. */
#ifndef H5_DATASET_CONVERT_H
#define H5_DATASET_CONVERT_H

#include "format/datatype.h"

#include <stdbool.h>
#include <stddef.h>

/* True if the bytes of the one mean the same as those of the other. */
bool h5_datatype_is_same(const struct h5_datatype *a, const struct h5_datatype *b);

bool h5_convert_can(const struct h5_datatype *from, const struct h5_datatype *to);
/* n elements; only what h5_convert_can(). */
void h5_convert(const struct h5_datatype *from, const uint8_t *in, const struct h5_datatype *to, uint8_t *out,
		size_t n);

#endif

/* Elements of one datatype as elements of another: numbers, as C converts them, except that a number that
 * does not fit becomes the nearest that does; and strings of fixed length. */
#ifndef H5_FORMAT_CONVERT_H
#define H5_FORMAT_CONVERT_H

#include "format/datatype.h"

#include <stdbool.h>
#include <stddef.h>

/* True unless the bytes of an element mean the same in both types. */
bool h5_convert_is_needed(const struct h5_datatype *from, const struct h5_datatype *to);
/* True if elements of the one type can become elements of the other. */
bool h5_convert_can(const struct h5_datatype *from, const struct h5_datatype *to);
/* n elements; only what h5_convert_can(). */
void h5_convert(const struct h5_datatype *from, const uint8_t *in, const struct h5_datatype *to, uint8_t *out,
		size_t n);

/* n elements, for which h5_datatype_is_number() holds. */
void h5_convert_to_doubles(const struct h5_datatype *type, const uint8_t *data, size_t n, double *out);

#endif

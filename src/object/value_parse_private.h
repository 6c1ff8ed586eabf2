/* Shared by the files that read values from text. */
#ifndef H5_OBJECT_VALUE_PARSE_PRIVATE_H
#define H5_OBJECT_VALUE_PARSE_PRIVATE_H

#include "object/value_parse.h"
#include "object/value_private.h"

/* All of these: -EINVAL if the text is no such value, or one that does not fit. They set the significant bits
 * of the element and leave the others. */

/* An integer, bit field or time. A number with a fraction or an exponent will do if it is whole. */
int h5_integer_parse(const struct h5_datatype *type, const char *text, size_t n, uint8_t *data);
/* A number, or a word. */
int h5_float_parse(const struct h5_datatype *type, const char *text, size_t n, uint8_t *data);
/* A JSON number. `quickly`: by the C library if it knows the format, else always by the exact way. */
int h5_float_parse_by(const struct h5_datatype *type, const char *text, size_t n, bool quickly,
		      uint8_t *data);
/* NaN, Infinity, -Infinity, or a hexadecimal number: what h5_float_format() writes that is no JSON number. */
int h5_float_word(const struct h5_datatype *type, const char *text, size_t n, uint8_t *data);

#endif

/* Shared by the files that write values and types as text. */
#ifndef H5_OBJECT_VALUE_PRIVATE_H
#define H5_OBJECT_VALUE_PRIVATE_H

#include "object/bignum.h"
#include "object/json.h"
#include "object/value.h"

/* An integer, bit field or time in decimal. */
void h5_integer_text(struct h5_buf *out, const struct h5_datatype *type, const uint8_t *data);

enum { H5_FLOAT_TEXT_MAX = 128 };
/* The shortest decimal that reads back as the same value of the type's format; or NaN, Infinity, -Infinity,
 * without quotes. True: it is a JSON number. */
bool h5_float_format(const struct h5_datatype *type, const uint8_t *data, char text[H5_FLOAT_TEXT_MAX]);
/* The same; `quickly`: by the quick way if it is certain, else always by the exact one. */
bool h5_float_format_by(const struct h5_datatype *type, const uint8_t *data, bool quickly,
			char text[H5_FLOAT_TEXT_MAX]);

/* The JSON of a reference; if `bare`, a path has no quotes. */
int h5_reference_json(const struct h5_value_context *context, const struct h5_datatype *type,
		      const uint8_t *data, bool bare, struct h5_buf *out);

/* A string as JSON has it, or if it is `bare` as it is. */
static inline void h5_string_text(struct h5_buf *out, const char *bytes, size_t n, bool bare)
{
	if (bare)
		h5_buf_add(out, bytes, n);
	else
		h5_json_string(out, bytes, n);
}

/* The shortest decimal, digits x 10^power, of mantissa x 2^exponent. The mantissa is not 0 and has at most 53
 * bits. `narrow`: the next smaller value is only half as far away as the next larger one. */
void h5_shortest(uint64_t mantissa, int exponent, bool narrow, uint64_t *digits, int *power);

#endif

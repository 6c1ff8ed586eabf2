/* What the parts of the value module share. */
#ifndef H5_OBJECT_VALUE_PRIVATE_H
#define H5_OBJECT_VALUE_PRIVATE_H

#include "object/bignum.h"
#include "object/json.h"
#include "object/value.h"

/* The n bits from bit `position` up of an element, byte order undone; those beyond the element are 0. */
void h5_element_bits(const struct h5_datatype *type, const uint8_t *data, unsigned position, unsigned n,
		     struct h5_bignum *bits);

/* An integer, bit field or time in decimal. */
void h5_integer_text(struct h5_buf *out, const struct h5_datatype *type, const uint8_t *data);

/* The text of h5_float_text(); true if it is a JSON number. */
enum { H5_FLOAT_TEXT_MAX = 128 };
bool h5_float_format(const struct h5_datatype *type, const uint8_t *data, char text[H5_FLOAT_TEXT_MAX]);
/* The same in either of the ways that it knows: the quick one where it can, or always the exact one. */
bool h5_float_format_by(const struct h5_datatype *type, const uint8_t *data, bool quickly,
			char text[H5_FLOAT_TEXT_MAX]);

/* The JSON of a reference, a path without quotes where `bare`. */
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

/* Of mantissa x 2^exponent, which is not 0 and of at most 53 bits; `narrow`: the value below is only half as
 * far away as the one above. The value is digits x 10^power. */
void h5_shortest(uint64_t mantissa, int exponent, bool narrow, uint64_t *digits, int *power);

#endif

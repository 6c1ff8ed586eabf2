/* Natural numbers of bounded size, for exact decimal text of integers and floats of any width. */
#ifndef H5_OBJECT_BIGNUM_H
#define H5_OBJECT_BIGNUM_H

#include "format/datatype.h"

#include <stdint.h>

/* Limbs: an integer has at most 65,535 bits of precision; floats need less (float_text.c). */
enum { H5_BIGNUM_LIMBS = 2052 };

/* Only the first n limbs, least significant first, hold anything; the last of them is not 0. */
struct h5_bignum {
	unsigned n;
	uint32_t limb[H5_BIGNUM_LIMBS];
};

void h5_bignum_set(struct h5_bignum *b, uint32_t v);
void h5_bignum_copy(struct h5_bignum *to, const struct h5_bignum *from);
void h5_bignum_mul(struct h5_bignum *b, uint32_t v);
void h5_bignum_mul_power10(struct h5_bignum *b, unsigned exponent);
void h5_bignum_shift_left(struct h5_bignum *b, unsigned bits);
void h5_bignum_add(struct h5_bignum *b, const struct h5_bignum *v);
/* v <= b */
void h5_bignum_sub(struct h5_bignum *b, const struct h5_bignum *v);
/* Divides b; the remainder. */
uint32_t h5_bignum_div(struct h5_bignum *b, uint32_t v);
/* Less than 0, 0, or more, as a stands to b. */
int h5_bignum_compare(const struct h5_bignum *a, const struct h5_bignum *b);
/* Bits up to the highest one that is set; 0 for 0. */
unsigned h5_bignum_bits(const struct h5_bignum *b);

/* The n bits of an element from bit `position` up, whatever its byte order. Bits beyond the element are 0. */
void h5_element_bits(const struct h5_datatype *type, const uint8_t *data, unsigned position, unsigned n,
		     struct h5_bignum *bits);
/* Sets these bits, and leaves the others. Bits beyond the element are dropped. */
void h5_element_set_bits(const struct h5_datatype *type, uint8_t *data, unsigned position, unsigned n,
			 const struct h5_bignum *bits);

#endif

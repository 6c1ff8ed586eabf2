#include "object/value_private.h"

/* Byte i of an element, counted from the least significant one. VAX order is big-endian, but with the two
 * bytes of each 16-bit word swapped. */
static uint8_t element_byte(const struct h5_datatype *type, const uint8_t *data, uint32_t i)
{
	uint32_t last = type->size - 1;

	if (i > last)
		return 0;
	if (type->order == H5_ORDER_VAX && (i ^ 1) <= last)
		return data[last - (i ^ 1)];
	return data[type->order == H5_ORDER_LE ? i : last - i];
}

void h5_element_bits(const struct h5_datatype *type, const uint8_t *data, unsigned position, unsigned n,
		     struct h5_bignum *bits)
{
	uint32_t at = position / 8;

	bits->n = 0;
	for (unsigned done = 0; done < n; done += 32) {
		uint64_t limb = 0;

		for (unsigned i = 0; i < 5; i++)
			limb |= (uint64_t)element_byte(type, data, at + i) << (8 * i);
		limb >>= position % 8;
		if (n - done < 32)
			limb &= ((uint64_t)1 << (n - done)) - 1;
		bits->limb[bits->n++] = (uint32_t)limb;
		at += 4;
	}
	while (bits->n && !bits->limb[bits->n - 1])
		bits->n--;
}

/* Makes groups of nine digits, the lowest one first. */
static void decimal(struct h5_buf *out, struct h5_bignum *v)
{
	uint32_t group[H5_BIGNUM_LIMBS * 32 / 29];
	unsigned n = 0;

	do
		group[n++] = h5_bignum_div(v, 1000000000);
	while (v->n);
	h5_buf_printf(out, "%u", group[--n]);
	while (n)
		h5_buf_printf(out, "%09u", group[--n]);
}

static void whole_integer(struct h5_buf *out, uint64_t v, unsigned size, bool is_signed)
{
	uint64_t most = UINT64_MAX >> (64 - 8 * size);
	char text[24], *p = text + sizeof text;
	bool negative = is_signed && v > most / 2;

	if (negative)
		v = most - v + 1;
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	if (negative)
		*--p = '-';
	h5_buf_add(out, p, (size_t)(text + sizeof text - p));
}

void h5_integer_text(struct h5_buf *out, const struct h5_datatype *type, const uint8_t *data)
{
	unsigned precision = type->precision;
	bool is_signed = type->is_signed || type->class == H5_CLASS_TIME;
	struct h5_bignum v, modulus;

	if (h5_datatype_is_native_integer(type)) {
		whole_integer(out, h5_datatype_bits(type, data), type->size, is_signed);
		return;
	}
	h5_element_bits(type, data, type->bit_offset, precision, &v);
	if (is_signed && h5_bignum_bits(&v) == precision) {
		h5_bignum_set(&modulus, 1);
		h5_bignum_shift_left(&modulus, precision);
		h5_bignum_sub(&modulus, &v);
		h5_bignum_copy(&v, &modulus);
		h5_buf_byte(out, '-');
	}
	decimal(out, &v);
}

#include "object/bignum.h"

#include "base/checked.h"

#include <assert.h>
#include <string.h>

/* Appends the carry out of the highest limb. */
static void carry(struct h5_bignum *b, uint64_t v)
{
	if (!v)
		return;
	assert(b->n < H5_BIGNUM_LIMBS);
	b->limb[b->n++] = (uint32_t)v;
}

static void trim(struct h5_bignum *b)
{
	while (b->n && !b->limb[b->n - 1])
		b->n--;
}

void h5_bignum_set(struct h5_bignum *b, uint32_t v)
{
	b->n = 0;
	carry(b, v);
}

void h5_bignum_copy(struct h5_bignum *to, const struct h5_bignum *from)
{
	to->n = from->n;
	memcpy(to->limb, from->limb, from->n * sizeof *from->limb);
}

void h5_bignum_mul(struct h5_bignum *b, uint32_t v)
{
	uint64_t c = 0;

	for (unsigned i = 0; i < b->n; i++) {
		c += (uint64_t)b->limb[i] * v;
		b->limb[i] = (uint32_t)c;
		c >>= 32;
	}
	carry(b, c);
	trim(b);
}

void h5_bignum_mul_power10(struct h5_bignum *b, unsigned exponent)
{
	uint32_t rest = 1;

	for (; exponent >= 9; exponent -= 9)
		h5_bignum_mul(b, 1000000000);
	while (exponent--)
		rest *= 10;
	h5_bignum_mul(b, rest);
}

void h5_bignum_shift_left(struct h5_bignum *b, unsigned bits)
{
	unsigned limbs = bits / 32;

	h5_bignum_mul(b, (uint32_t)1 << bits % 32);
	if (!b->n || !limbs)
		return;
	assert(limbs <= H5_BIGNUM_LIMBS - b->n);
	memmove(b->limb + limbs, b->limb, b->n * sizeof *b->limb);
	memset(b->limb, 0, limbs * sizeof *b->limb);
	b->n += limbs;
}

void h5_bignum_add(struct h5_bignum *b, const struct h5_bignum *v)
{
	uint64_t c = 0;

	while (b->n < v->n)
		b->limb[b->n++] = 0;
	for (unsigned i = 0; i < b->n; i++) {
		c += (uint64_t)b->limb[i] + (i < v->n ? v->limb[i] : 0);
		b->limb[i] = (uint32_t)c;
		c >>= 32;
	}
	carry(b, c);
}

void h5_bignum_sub(struct h5_bignum *b, const struct h5_bignum *v)
{
	uint64_t borrow = 0;

	assert(h5_bignum_compare(b, v) >= 0);
	for (unsigned i = 0; i < b->n; i++) {
		uint64_t d = (uint64_t)b->limb[i] - (i < v->n ? v->limb[i] : 0) - borrow;

		b->limb[i] = (uint32_t)d;
		borrow = d >> 63;
	}
	trim(b);
}

uint32_t h5_bignum_div(struct h5_bignum *b, uint32_t v)
{
	uint64_t rest = 0;

	for (unsigned i = b->n; i--;) {
		rest = rest << 32 | b->limb[i];
		b->limb[i] = (uint32_t)(rest / v);
		rest %= v;
	}
	trim(b);
	return (uint32_t)rest;
}

int h5_bignum_compare(const struct h5_bignum *a, const struct h5_bignum *b)
{
	if (a->n != b->n)
		return h5_compare(a->n, b->n);
	for (unsigned i = a->n; i--;)
		if (a->limb[i] != b->limb[i])
			return h5_compare(a->limb[i], b->limb[i]);
	return 0;
}

unsigned h5_bignum_bits(const struct h5_bignum *b)
{
	return b->n ? 32 * b->n - (unsigned)__builtin_clz(b->limb[b->n - 1]) : 0;
}

/* ---- of an element ---- */

/* The place of byte i of an element; byte 0 is the least significant one. VAX order is big-endian with the
 * two bytes of each 16-bit word swapped. */
static uint32_t byte_at(const struct h5_datatype *type, uint32_t i)
{
	uint32_t last = type->size - 1;

	if (type->order == H5_ORDER_VAX && (i ^ 1) <= last)
		return last - (i ^ 1);
	return type->order == H5_ORDER_LE ? i : last - i;
}

static uint8_t element_byte(const struct h5_datatype *type, const uint8_t *data, uint32_t i)
{
	return i < type->size ? data[byte_at(type, i)] : 0;
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

/* Eight bits from bit `position` up. */
static unsigned byte_of(const struct h5_bignum *bits, unsigned position)
{
	unsigned limb = position / 32, shift = position % 32;
	uint64_t v = limb < bits->n ? bits->limb[limb] : 0;

	if (limb + 1 < bits->n)
		v |= (uint64_t)bits->limb[limb + 1] << 32;
	return (unsigned)(v >> shift) & 255;
}

void h5_element_set_bits(const struct h5_datatype *type, uint8_t *data, unsigned position, unsigned n,
			 const struct h5_bignum *bits)
{
	unsigned count;

	for (unsigned done = 0; done < n; done += count) {
		unsigned at = (position + done) / 8, shift = (position + done) % 8, mask;
		uint8_t *byte;

		if (at >= type->size)
			return;
		count = n - done < 8 - shift ? n - done : 8 - shift;
		mask = ((1u << count) - 1) << shift;
		byte = data + byte_at(type, at);
		*byte = (uint8_t)((*byte & ~mask) | ((byte_of(bits, done) << shift) & mask));
	}
}

#include "format/convert.h"

#include "base/reader.h"
#include "base/writer.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <string.h>

/* ---- the same type ---- */

static bool is_same(const struct h5_datatype *a, const struct h5_datatype *b);

static bool same_float(const struct h5_datatype *a, const struct h5_datatype *b)
{
	return a->fl.norm == b->fl.norm && a->fl.sign == b->fl.sign && a->fl.exponent == b->fl.exponent &&
	       a->fl.exponent_size == b->fl.exponent_size && a->fl.mantissa == b->fl.mantissa &&
	       a->fl.mantissa_size == b->fl.mantissa_size && a->fl.bias == b->fl.bias;
}

static bool same_members(const struct h5_datatype *a, const struct h5_datatype *b)
{
	if (a->compound.count != b->compound.count)
		return false;
	for (unsigned i = 0; i < a->compound.count; i++) {
		const struct h5_member *x = &a->compound.members[i], *y = &b->compound.members[i];

		if (x->offset != y->offset || strcmp(x->name, y->name) || !is_same(x->type, y->type))
			return false;
	}
	return true;
}

static bool same_enum(const struct h5_datatype *a, const struct h5_datatype *b)
{
	if (a->enumeration.count != b->enumeration.count ||
	    !is_same(a->enumeration.base, b->enumeration.base))
		return false;
	for (unsigned i = 0; i < a->enumeration.count; i++)
		if (strcmp(a->enumeration.members[i].name, b->enumeration.members[i].name))
			return false;
	return !memcmp(a->enumeration.values, b->enumeration.values, (size_t)a->enumeration.count * a->size);
}

static bool same_array(const struct h5_datatype *a, const struct h5_datatype *b)
{
	return a->array.rank == b->array.rank &&
	       !memcmp(a->array.dims, b->array.dims, a->array.rank * sizeof *a->array.dims) &&
	       is_same(a->array.base, b->array.base);
}

static bool is_same(const struct h5_datatype *a, const struct h5_datatype *b)
{
	if (a->class != b->class || a->size != b->size)
		return false;
	switch (a->class) {
	case H5_CLASS_INTEGER:
	case H5_CLASS_FLOAT:
	case H5_CLASS_TIME:
	case H5_CLASS_BITFIELD:
		return a->order == b->order && a->bit_offset == b->bit_offset &&
		       a->precision == b->precision && a->is_signed == b->is_signed &&
		       (a->class != H5_CLASS_FLOAT || same_float(a, b));
	case H5_CLASS_STRING:
		return a->string.padding == b->string.padding;
	case H5_CLASS_OPAQUE:
		return true;
	case H5_CLASS_COMPOUND:
		return same_members(a, b);
	case H5_CLASS_REFERENCE:
		return a->reference.kind == b->reference.kind;
	case H5_CLASS_ENUM:
		return same_enum(a, b);
	case H5_CLASS_VLEN:
		return a->vlen.is_string == b->vlen.is_string &&
		       (a->vlen.is_string || is_same(a->vlen.base, b->vlen.base));
	case H5_CLASS_ARRAY:
		return same_array(a, b);
	case H5_CLASS_COMPLEX:
		break;
	}
	return is_same(a->complex.base, b->complex.base);
}

bool h5_convert_is_needed(const struct h5_datatype *from, const struct h5_datatype *to)
{
	return !is_same(from, to);
}

/* ---- numbers ---- */

struct number {
	enum { NEGATIVE, NATURAL, REAL } kind;
	union {
		int64_t negative; /* below zero */
		uint64_t natural;
		double real;
	};
};

static void store_bits(const struct h5_datatype *t, uint8_t *p, uint64_t bits)
{
	if (t->order == H5_ORDER_BE)
		bits = __builtin_bswap64(bits << (64 - 8 * t->size));
	h5_uint_to(p, bits, t->size);
}

/* IEEE 754 half precision. */
static double half(unsigned bits)
{
	unsigned exponent = bits >> 10 & 31, mantissa = bits & 1023;
	double v = !exponent	   ? ldexp(mantissa, -24)
		   : exponent < 31 ? ldexp(mantissa + 1024, (int)exponent - 25)
		   : mantissa	   ? (double)NAN
				   : (double)INFINITY;

	return bits >> 15 ? -v : v;
}

static double as_float(uint64_t bits, unsigned size)
{
	uint32_t low = (uint32_t)bits;
	double d;
	float f;

	if (size == 2)
		return half(low);
	if (size == 4) {
		memcpy(&f, &low, sizeof f);
		return (double)f;
	}
	memcpy(&d, &bits, sizeof d);
	return d;
}

static struct number load_number(const struct h5_datatype *t, const uint8_t *p)
{
	uint64_t bits = h5_datatype_bits(t, p);
	struct number v;

	if (t->class == H5_CLASS_FLOAT) {
		v.kind = REAL;
		v.real = as_float(bits, t->size);
	} else if (t->is_signed && bits >> (8 * t->size - 1)) {
		unsigned unused = 64 - 8 * t->size;

		v.kind = NEGATIVE;
		v.negative = (int64_t)(bits << unused) >> unused;
	} else {
		v.kind = NATURAL;
		v.natural = bits;
	}
	return v;
}

static double as_double(const struct number *v)
{
	return v->kind == REAL ? v->real : v->kind == NEGATIVE ? (double)v->negative : (double)v->natural;
}

void h5_convert_to_doubles(const struct h5_datatype *t, const uint8_t *data, size_t n, double *out)
{
	assert(h5_datatype_is_number(t));
	if (t->class == H5_CLASS_ENUM)
		t = t->enumeration.base;
	for (size_t i = 0; i < n; i++) {
		struct number v = load_number(t, data + i * t->size);

		out[i] = as_double(&v);
	}
}

static void store_float(const struct h5_datatype *t, uint8_t *p, const struct number *v)
{
	uint64_t bits;

	if (t->size == 4) {
		float single = v->kind == REAL	     ? (float)v->real
			       : v->kind == NEGATIVE ? (float)v->negative
						     : (float)v->natural;
		uint32_t half;

		memcpy(&half, &single, sizeof half);
		bits = half;
	} else {
		double real = as_double(v);

		memcpy(&bits, &real, sizeof bits);
	}
	store_bits(t, p, bits);
}

/* Rounds towards zero. NaN becomes 0. */
static struct number truncated(double real)
{
	struct number v = {.kind = NATURAL, .natural = 0};

	if (real <= -0x1p63) {
		v.kind = NEGATIVE;
		v.negative = INT64_MIN;
	} else if (real <= -1) {
		v.kind = NEGATIVE;
		v.negative = (int64_t)real;
	} else if (real >= 0x1p64) {
		v.natural = UINT64_MAX;
	} else if (real >= 1) {
		v.natural = (uint64_t)real;
	}
	return v;
}

static void store_integer(const struct h5_datatype *t, uint8_t *p, struct number v)
{
	unsigned bits = 8 * t->size - t->is_signed;
	uint64_t most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

	if (v.kind == REAL)
		v = truncated(v.real);
	if (v.kind == NATURAL)
		store_bits(t, p, v.natural < most ? v.natural : most);
	else if (!t->is_signed)
		store_bits(t, p, 0);
	else
		store_bits(t, p, v.negative < -(int64_t)most ? ~most : (uint64_t)v.negative);
}

static void convert_numbers(const struct h5_datatype *from, const uint8_t *in, const struct h5_datatype *to,
			    uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++, in += from->size, out += to->size) {
		struct number v = load_number(from, in);

		if (to->class == H5_CLASS_FLOAT)
			store_float(to, out, &v);
		else
			store_integer(to, out, v);
	}
}

/* ---- strings ---- */

static size_t text_size(const struct h5_datatype *t, const uint8_t *text)
{
	size_t n = t->size;

	if (t->string.padding != H5_PAD_SPACEPAD)
		return strnlen((const char *)text, n);
	while (n && text[n - 1] == ' ')
		n--;
	return n;
}

static void convert_strings(const struct h5_datatype *from, const uint8_t *in, const struct h5_datatype *to,
			    uint8_t *out, size_t n)
{
	/* A null-terminated string keeps a byte for its NUL. */
	size_t most = to->size - (to->string.padding == H5_PAD_NULLTERM);

	for (size_t i = 0; i < n; i++, in += from->size, out += to->size) {
		size_t size = text_size(from, in);

		if (size > most)
			size = most;
		memcpy(out, in, size);
		memset(out + size, to->string.padding == H5_PAD_SPACEPAD ? ' ' : 0, to->size - size);
	}
}

/* ---- all ---- */

/* An integer of up to 8 bytes, or a float of the precisions that C computes in. */
static bool is_convertible(const struct h5_datatype *t)
{
	if (t->size > 8 || t->precision != 8 * t->size || t->order == H5_ORDER_VAX)
		return false;
	return t->class == H5_CLASS_INTEGER || (h5_datatype_is_ieee_float(t) && t->size > 2);
}

bool h5_convert_can(const struct h5_datatype *from, const struct h5_datatype *to)
{
	if (from->class == H5_CLASS_STRING)
		return to->class == H5_CLASS_STRING;
	return is_convertible(from) && is_convertible(to);
}

void h5_convert(const struct h5_datatype *from, const uint8_t *in, const struct h5_datatype *to, uint8_t *out,
		size_t n)
{
	assert(h5_convert_can(from, to));
	if (from->class == H5_CLASS_STRING)
		convert_strings(from, in, to, out, n);
	else
		convert_numbers(from, in, to, out, n);
}

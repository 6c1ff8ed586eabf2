/* Decimals as the bits of integers and floats of any layout: the counterpart of float_text.c and of
 * h5_integer_text(). All arithmetic is exact, and a float is the nearest one, of two equally near ones the
 * one with the even mantissa. */
#include "object/value_parse_private.h"

#include "base/error.h"
#include "base/json_read.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	DIGITS_MAX = 19730, /* an integer of 65,535 bits has so many */
	/* More than these of a float do not change where it is rounded: the middle between two floats with 15
	 * bits of exponent and 256 bits of mantissa has fewer. */
	FLOAT_DIGITS = 12600,
	/* h5_float_format() writes numbers beyond 10^5118 and 10^-5118 in hexadecimal. */
	POWER_MAX = 5500,
	HEX_DIGITS_MAX = 64, /* of 256 bits of mantissa */
};

static int out_of_range(void)
{
	return h5_fail(-EINVAL, H5_UNDEF, "the number is out of range");
}

/* ---- decimals ---- */

/* digits x 10^power; the first and the last digit are not 0. No digits: 0. */
struct decimal {
	bool negative;
	unsigned n;
	int64_t power;
	char digit[DIGITS_MAX];
};

/* The exponent of a number, from its first digit or sign on. A huge one is cut, which makes no difference. */
static int64_t exponent_of(const char *p, const char *end)
{
	bool negative = p < end && *p == '-';
	int64_t value = 0;

	for (p += p < end && (*p == '-' || *p == '+'); p < end; p++)
		if (value < INT64_C(1) << 48)
			value = 10 * value + (*p - '0');
	return negative ? -value : value;
}

/* Reads a number for which h5_json_number_length() is n. If it has more than `most` digits, it is rounded to
 * so many, so that its last digit is not 0. */
static void decimal_read(const char *text, size_t n, unsigned most, struct decimal *d)
{
	const char *p = text, *end = text + n;
	bool fraction = false, more = false;

	d->negative = *p == '-';
	d->n = 0;
	d->power = 0;
	for (p += d->negative; p < end && *p != 'e' && *p != 'E'; p++) {
		if (*p == '.') {
			fraction = true;
			continue;
		}
		if (d->n == most) {
			more |= *p != '0';
			d->power += !fraction;
			continue;
		}
		if (d->n || *p != '0')
			d->digit[d->n++] = *p;
		d->power -= fraction;
	}
	if (more && d->digit[d->n - 1] == '0')
		d->digit[d->n - 1] = '1';
	else if (more && d->digit[d->n - 1] == '5')
		d->digit[d->n - 1] = '6';
	for (; d->n && d->digit[d->n - 1] == '0'; d->n--)
		d->power++;
	if (p < end)
		d->power += exponent_of(p + 1, end);
}

static void digits_value(const struct decimal *d, struct h5_bignum *v)
{
	struct h5_bignum add;

	v->n = 0;
	for (unsigned at = 0; at < d->n;) {
		uint32_t group = 0, scale = 1;

		for (unsigned i = 0; i < 9 && at < d->n; i++, scale *= 10)
			group = 10 * group + (uint32_t)(d->digit[at++] - '0');
		h5_bignum_mul(v, scale);
		h5_bignum_set(&add, group);
		h5_bignum_add(v, &add);
	}
}

/* ---- integers ---- */

/* Makes *v the bits of the value, of which it is the magnitude. False: it does not fit. */
static bool two_complement(struct h5_bignum *v, bool negative, bool is_signed, unsigned precision)
{
	struct h5_bignum limit;

	if (!negative || !v->n)
		return h5_bignum_bits(v) <= precision - is_signed;
	if (!is_signed)
		return false;
	h5_bignum_set(&limit, 1);
	h5_bignum_shift_left(&limit, precision - 1u);
	if (h5_bignum_compare(v, &limit) > 0)
		return false;
	h5_bignum_shift_left(&limit, 1);
	h5_bignum_sub(&limit, v);
	h5_bignum_copy(v, &limit);
	return true;
}

int h5_integer_parse(const struct h5_datatype *type, const char *text, size_t n, uint8_t *data)
{
	bool is_signed = type->is_signed || type->class == H5_CLASS_TIME;
	struct h5_bignum v;
	struct decimal d;

	if (!n || h5_json_number_length(text, n) != n)
		return h5_fail(-EINVAL, H5_UNDEF, "not a number");
	decimal_read(text, n, DIGITS_MAX, &d);
	if (d.n && d.power < 0)
		return h5_fail(-EINVAL, H5_UNDEF, "not a whole number");
	if (d.n && d.power > DIGITS_MAX - (int64_t)d.n)
		return out_of_range();
	digits_value(&d, &v);
	if (d.n)
		h5_bignum_mul_power10(&v, (unsigned)d.power);
	if (!two_complement(&v, d.negative, is_signed, type->precision))
		return out_of_range();
	h5_element_set_bits(type, data, type->bit_offset, type->precision, &v);
	return 0;
}

/* ---- floats ---- */

static void set_field(const struct h5_datatype *t, uint8_t *data, unsigned position, unsigned n, uint32_t v)
{
	struct h5_bignum bits;

	h5_bignum_set(&bits, v);
	h5_element_set_bits(t, data, position, n, &bits);
}

static void set_parts(const struct h5_datatype *t, uint8_t *data, bool negative, uint32_t exponent,
		      const struct h5_bignum *mantissa)
{
	set_field(t, data, t->fl.exponent, t->fl.exponent_size, exponent);
	h5_element_set_bits(t, data, t->fl.mantissa, t->fl.mantissa_size, mantissa);
	set_field(t, data, t->fl.sign, 1, negative);
}

/* Formats with fewer bits of exponent have only finite values; see float_text.c. */
static bool has_specials(const struct h5_datatype *t)
{
	return t->fl.exponent_size > 4;
}

static uint32_t all_ones(const struct h5_datatype *t)
{
	return UINT32_MAX >> (32 - t->fl.exponent_size);
}

/* NaN with the highest bit of the fraction, or an infinity. An explicit integer bit is set in both. */
static int set_special(const struct h5_datatype *t, uint8_t *data, bool nan, bool negative)
{
	unsigned explicit = t->fl.norm != H5_NORM_IMPLIED, fraction = t->fl.mantissa_size - explicit;
	struct h5_bignum mantissa;

	if (!has_specials(t) || (nan && !fraction))
		return h5_fail(-EINVAL, H5_UNDEF, "the format has no NaN and no infinity");
	h5_bignum_set(&mantissa, (explicit << 1) + nan);
	if (fraction)
		h5_bignum_shift_left(&mantissa, fraction - 1);
	else
		h5_bignum_set(&mantissa, 1);
	set_parts(t, data, negative, all_ones(t), &mantissa);
	return 0;
}

/* A positive number numerator / denominator x 2^exponent. */
struct ratio {
	struct h5_bignum numerator, denominator;
	int64_t exponent;
};

/* The e for which 2^e is at most the ratio, and 2^(e+1) more than it. */
static int64_t log2_of(const struct ratio *v)
{
	int64_t e = (int64_t)h5_bignum_bits(&v->numerator) - h5_bignum_bits(&v->denominator);
	struct h5_bignum scaled;
	int c;

	if (e >= 0) {
		h5_bignum_copy(&scaled, &v->denominator);
		h5_bignum_shift_left(&scaled, (unsigned)e);
		c = h5_bignum_compare(&v->numerator, &scaled);
	} else {
		h5_bignum_copy(&scaled, &v->numerator);
		h5_bignum_shift_left(&scaled, (unsigned)-e);
		c = h5_bignum_compare(&scaled, &v->denominator);
	}
	return e - (c < 0) + v->exponent;
}

/* Divides the ratio by 2^unit, and rounds it to a whole number, which is less than 2^precision or, after
 * rounding, equal to it. */
static void round_to(struct ratio *v, int64_t unit, unsigned precision, struct h5_bignum *m)
{
	int64_t up = v->exponent - unit;
	struct h5_bignum one;
	int c;

	h5_bignum_set(&one, 1);
	m->n = 0;
	if (up < -(int64_t)h5_bignum_bits(&v->numerator) - 2)
		return; /* less than a half */
	h5_bignum_shift_left(up > 0 ? &v->numerator : &v->denominator, (unsigned)llabs(up));
	h5_bignum_shift_left(&v->denominator, precision);
	for (unsigned i = 0; i < precision; i++) {
		h5_bignum_shift_left(m, 1);
		h5_bignum_shift_left(&v->numerator, 1);
		if (h5_bignum_compare(&v->numerator, &v->denominator) >= 0) {
			h5_bignum_sub(&v->numerator, &v->denominator);
			h5_bignum_add(m, &one);
		}
	}
	h5_bignum_shift_left(&v->numerator, 1);
	c = h5_bignum_compare(&v->numerator, &v->denominator);
	if (c > 0 || (!c && m->n && m->limb[0] & 1))
		h5_bignum_add(m, &one);
}

/* Stores the nearest value of the format. */
static int set_ratio(const struct h5_datatype *t, uint8_t *data, bool negative, struct ratio *v)
{
	unsigned implied = t->fl.norm == H5_NORM_IMPLIED, precision = t->fl.mantissa_size + implied;
	int64_t lowest = 2 - (int64_t)t->fl.bias - precision, unit = log2_of(v) - precision + 1;
	int64_t field = 0, last = (int64_t)all_ones(t) - has_specials(t);
	struct h5_bignum m, top;

	if (unit < lowest)
		unit = lowest;
	round_to(v, unit, precision, &m);
	h5_bignum_set(&top, 1);
	h5_bignum_shift_left(&top, precision);
	if (!h5_bignum_compare(&m, &top)) { /* rounded up to the next power of two */
		h5_bignum_set(&m, 1);
		h5_bignum_shift_left(&m, precision - 1);
		unit++;
	}
	if (h5_bignum_bits(&m) == precision)
		field = unit - lowest + 1;
	if (field > last)
		return out_of_range();
	if (field && implied) {
		h5_bignum_set(&top, 1);
		h5_bignum_shift_left(&top, t->fl.mantissa_size);
		h5_bignum_sub(&m, &top);
	}
	set_parts(t, data, negative, (uint32_t)field, &m);
	return 0;
}

static int set_decimal(const struct h5_datatype *t, uint8_t *data, const struct decimal *d)
{
	int64_t point = d->n + d->power;
	struct ratio v;

	v.exponent = 0;
	if (d->n && point < -POWER_MAX && (int64_t)t->fl.bias > 3 * POWER_MAX)
		return out_of_range();
	if (!d->n || point < -POWER_MAX) {
		h5_bignum_set(&v.numerator, 0);
		set_parts(t, data, d->negative, 0, &v.numerator);
		return 0;
	}
	if (point > POWER_MAX)
		return out_of_range();
	digits_value(d, &v.numerator);
	h5_bignum_set(&v.denominator, 1);
	h5_bignum_mul_power10(d->power > 0 ? &v.numerator : &v.denominator, (unsigned)llabs(d->power));
	return set_ratio(t, data, d->negative, &v);
}

static void set_ieee(const struct h5_datatype *t, uint8_t *data, uint64_t bits)
{
	struct h5_bignum v;

	v.n = 2;
	v.limb[0] = (uint32_t)bits;
	v.limb[1] = (uint32_t)(bits >> 32);
	while (v.n && !v.limb[v.n - 1])
		v.n--;
	h5_element_set_bits(t, data, 0, 8 * t->size, &v);
}

/* A format that the machine has: strtof() and strtod() are exact and quick. */
static int parse_ieee(const struct h5_datatype *t, const char *text, uint8_t *data)
{
	uint64_t bits;
	uint32_t half;
	double d;
	float f;

	if (t->size == 4) {
		f = strtof(text, NULL);
		memcpy(&half, &f, sizeof half);
		d = (double)f;
		bits = half;
	} else {
		d = strtod(text, NULL);
		memcpy(&bits, &d, sizeof bits);
	}
	if (isinf(d))
		return out_of_range();
	set_ieee(t, data, bits);
	return 0;
}

int h5_float_parse_by(const struct h5_datatype *type, const char *text, size_t n, bool quickly, uint8_t *data)
{
	struct decimal d;
	char copy[64];

	assert(n && h5_json_number_length(text, n) == n);
	if (quickly && n < sizeof copy && h5_datatype_is_ieee_float(type) && type->size > 2) {
		memcpy(copy, text, n);
		copy[n] = 0;
		return parse_ieee(type, copy, data);
	}
	decimal_read(text, n, FLOAT_DIGITS, &d);
	return set_decimal(type, data, &d);
}

/* [-]0xDIGITSpEXPONENT, as h5_float_format() writes a value that decimals do not reach. */
static int parse_hexadecimal(const struct h5_datatype *t, const char *p, const char *end, bool negative,
			     uint8_t *data)
{
	static const char digits[] = "0123456789abcdef";
	struct ratio v;
	struct h5_bignum add;
	const char *digit, *begin = p;

	h5_bignum_set(&v.denominator, 1);
	v.numerator.n = 0;
	for (; p < end && p - begin < HEX_DIGITS_MAX && *p && (digit = strchr(digits, *p)); p++) {
		h5_bignum_shift_left(&v.numerator, 4);
		h5_bignum_set(&add, (uint32_t)(digit - digits));
		h5_bignum_add(&v.numerator, &add);
	}
	if (!v.numerator.n || end - p < 3 || p[0] != 'p' || (p[1] != '+' && p[1] != '-') || p[2] < '0' ||
	    p[2] > '9' || (size_t)(end - p) - 2 != strspn(p + 2, "0123456789"))
		return h5_fail(-EINVAL, H5_UNDEF, "not a number");
	v.exponent = exponent_of(p + 1, end);
	return set_ratio(t, data, negative, &v);
}

int h5_float_word(const struct h5_datatype *type, const char *text, size_t n, uint8_t *data)
{
	bool negative = n && *text == '-';
	char word[H5_FLOAT_TEXT_MAX];

	if (n >= sizeof word)
		return h5_fail(-EINVAL, H5_UNDEF, "not a number");
	memcpy(word, text, n);
	word[n] = 0;
	if (strlen(word) == n && !strcmp(word, "NaN"))
		return set_special(type, data, true, false);
	if (strlen(word) == n && !strcmp(word + negative, "Infinity"))
		return set_special(type, data, false, negative);
	if (strlen(word) == n && !strncmp(word + negative, "0x", 2))
		return parse_hexadecimal(type, word + negative + 2, word + n, negative, data);
	return h5_fail(-EINVAL, H5_UNDEF, "not a number");
}

int h5_float_parse(const struct h5_datatype *type, const char *text, size_t n, uint8_t *data)
{
	if (n && h5_json_number_length(text, n) == n)
		return h5_float_parse_by(type, text, n, true, data);
	return h5_float_word(type, text, n, data);
}

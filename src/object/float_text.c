/* Floats of any layout as the shortest decimal that reads back to the same value.
 *
 * The digits come from exact arithmetic, after Steele and White, "How to print floating-point numbers
 * accurately" (1990), with the termination of Burger and Dybvig, "Printing floating-point numbers quickly and
 * accurately" (1996): of the shortest decimals inside the rounding interval the nearest, of two equally near
 * the one with the even digit. */
#include "object/value_private.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* A larger power of two is shown in hexadecimal: no format in use has more than 15 bits of exponent.
	 */
	EXPONENT_MAX = 17000,
	DIGITS_MAX = 80, /* most digits; 256 bits of mantissa need 78 */
	QUICK_LEAST = 512,
};

/* A value mantissa x 2^exponent of a format with `precision` bits and steps of at least 2^lowest. */
struct number {
	struct h5_bignum mantissa;
	int64_t exponent, lowest;
	unsigned precision;
};

/* Digits d1 d2 d3 ... of 0.d1d2d3... x 10^point. */
struct decimal {
	char digit[DIGITS_MAX];
	unsigned n;
	int point;
};

/* Shifts the mantissa so that it has all bits of the format, as far as the lowest exponent allows. */
static void normalise(struct number *v)
{
	unsigned bits = h5_bignum_bits(&v->mantissa);
	int64_t shift = v->precision - (int64_t)bits;

	if (shift > v->exponent - v->lowest)
		shift = v->exponent - v->lowest;
	h5_bignum_shift_left(&v->mantissa, (unsigned)shift);
	v->exponent -= shift;
}

/* The digits are made from this. The value is r / s, and its rounding interval reaches from (r - below) / s
 * to (r + above) / s. */
struct state {
	struct h5_bignum r, s, above, below, sum, difference;
	bool closed; /* the ends of the interval read back as the value, too */
	/* Each of these numbers has an error of at most so many bits; 0: they are exact. */
	unsigned error;
	bool uncertain; /* two numbers were compared whose difference is within the error */
};

static int compare(struct state *x, const struct h5_bignum *a, const struct h5_bignum *b)
{
	int c = h5_bignum_compare(a, b);

	if (!x->error)
		return c;
	h5_bignum_copy(&x->difference, c < 0 ? b : a);
	h5_bignum_sub(&x->difference, c < 0 ? a : b);
	x->uncertain |= h5_bignum_bits(&x->difference) <= x->error;
	return c;
}

/* True if the upper end of the interval is more than 1, or 1 and part of it. */
static bool reaches_one(struct state *x)
{
	int c;

	h5_bignum_copy(&x->sum, &x->r);
	h5_bignum_add(&x->sum, &x->above);
	c = compare(x, &x->sum, &x->s);
	return c > 0 || (!c && x->closed);
}

static bool is_below(struct state *x)
{
	int c = compare(x, &x->r, &x->below);

	return c < 0 || (!c && x->closed);
}

static void times_ten(struct state *x)
{
	h5_bignum_mul(&x->r, 10);
	h5_bignum_mul(&x->above, 10);
	h5_bignum_mul(&x->below, 10);
	x->error += x->error ? 4 : 0;
}

/* The k for which the value / 10^k is less than 1, or one less than it. */
static int estimate_power(const struct number *v)
{
	/* 30103 / 100000 is log10(2) and a little more, log2 rounded down */
	int64_t log2 = (int64_t)h5_bignum_bits(&v->mantissa) - 1 + v->exponent;
	int64_t scaled = log2 * 30103;

	return (int)(scaled / 100000 - (scaled % 100000 < 0));
}

/* Scales so that 0.1 <= r / s < 1. Returns the power of ten. */
static int scale(struct state *x, int k)
{
	for (; compare(x, &x->r, &x->s) >= 0; k++) {
		h5_bignum_mul(&x->s, 10);
		x->error += x->error ? 4 : 0;
	}
	return k;
}

/* Below a power of two the steps are half as wide, except below the lowest power. */
static bool is_narrow(const struct number *v)
{
	bool narrow = v->exponent > v->lowest && h5_bignum_bits(&v->mantissa) == v->precision;

	for (unsigned i = 0; narrow && i < v->mantissa.n; i++)
		narrow = v->mantissa.limb[i] ==
			 (i + 1 < v->mantissa.n ? 0 : (uint32_t)1 << (v->precision - 1) % 32);
	return narrow;
}

static int begin(struct state *x, const struct number *v)
{
	unsigned up = v->exponent > 0 ? (unsigned)v->exponent : 0;
	unsigned down = v->exponent < 0 ? (unsigned)-v->exponent : 0;
	bool narrow = is_narrow(v);
	int k = estimate_power(v);

	x->error = 0;
	x->closed = !(v->mantissa.limb[0] & 1);
	h5_bignum_copy(&x->r, &v->mantissa);
	h5_bignum_shift_left(&x->r, up + 1 + narrow);
	h5_bignum_set(&x->s, 1);
	h5_bignum_shift_left(&x->s, down + 1 + narrow);
	h5_bignum_set(&x->below, 1);
	h5_bignum_shift_left(&x->below, up);
	h5_bignum_copy(&x->above, &x->below);
	h5_bignum_shift_left(&x->above, narrow);
	if (k >= 0)
		h5_bignum_mul_power10(&x->s, (unsigned)k);
	else {
		h5_bignum_mul_power10(&x->r, (unsigned)-k);
		h5_bignum_mul_power10(&x->above, (unsigned)-k);
		h5_bignum_mul_power10(&x->below, (unsigned)-k);
	}
	return scale(x, k);
}

/* ---- the quick way ----
 *
 * If exponents are large, exact numbers have thousands of bits, and a file may hold millions of such floats.
 * The leading bits of the power of ten are nearly always enough. If they are not, two numbers are compared
 * whose difference is within the error. Then the digits are made again from exact numbers. */

enum {
	/* Each power has 9 digits, which are more than 29 bits. */
	POWERS = (EXPONENT_MAX + 256) / 29 + 2,
	POWER_LIMBS = 13, /* beside 256 bits of mantissa and 78 digits, 64 bits and more */
};

/* 10^(9 i) is a little more than limb x 2^exponent. */
static struct power {
	uint32_t limb[POWER_LIMBS];
	unsigned n, exponent;
} powers[POWERS];

/* Drops the lowest limbs, so that POWER_LIMBS stay. */
static void cut(struct h5_bignum *b, unsigned *exponent)
{
	unsigned drop = b->n > POWER_LIMBS ? b->n - POWER_LIMBS : 0;

	memmove(b->limb, b->limb + drop, POWER_LIMBS * sizeof *b->limb);
	b->n -= drop;
	*exponent += 32 * drop;
}

static void make_powers(void)
{
	struct h5_bignum b;
	unsigned exponent = 0;

	h5_bignum_set(&b, 1);
	for (unsigned i = 0; i < POWERS; i++) {
		memcpy(powers[i].limb, b.limb, b.n * sizeof *b.limb);
		powers[i].n = b.n;
		powers[i].exponent = exponent;
		h5_bignum_mul(&b, 1000000000);
		cut(&b, &exponent);
	}
}

/* Returns the e for which 10^k is b x 2^e or a little more: by less than 2^36 of b's lowest bit. */
static unsigned get_power(unsigned k, struct h5_bignum *b)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct power *p = &powers[k / 9];
	unsigned exponent;

	pthread_once(&once, make_powers);
	exponent = p->exponent;
	b->n = p->n;
	memcpy(b->limb, p->limb, p->n * sizeof *b->limb);
	h5_bignum_mul_power10(b, k % 9);
	cut(b, &exponent);
	return exponent;
}

/* to = a x b */
static void multiply(struct h5_bignum *to, const struct h5_bignum *a, const struct h5_bignum *b,
		     struct h5_bignum *work)
{
	h5_bignum_set(to, 0);
	for (unsigned i = 0; i < a->n; i++) {
		h5_bignum_copy(work, b);
		h5_bignum_mul(work, a->limb[i]);
		h5_bignum_shift_left(work, 32 * i);
		h5_bignum_add(to, work);
	}
}

/* As begin(), but with all numbers divided by one power of two. */
static int begin_quickly(struct state *x, const struct number *v)
{
	bool narrow = is_narrow(v);
	int k = estimate_power(v);
	struct h5_bignum *power = k >= 0 ? &x->s : &x->below;
	int64_t exponent = get_power((unsigned)abs(k), power);

	x->closed = !(v->mantissa.limb[0] & 1);
	if (k >= 0) {
		unsigned up = (unsigned)(v->exponent - exponent);

		h5_bignum_copy(&x->r, &v->mantissa);
		h5_bignum_shift_left(&x->r, up + 1 + narrow);
		h5_bignum_shift_left(&x->s, 1u + narrow);
		h5_bignum_set(&x->below, 1);
		h5_bignum_shift_left(&x->below, up);
	} else {
		multiply(&x->r, &v->mantissa, power, &x->sum);
		h5_bignum_shift_left(&x->r, 1u + narrow);
		h5_bignum_set(&x->s, 1);
		h5_bignum_shift_left(&x->s, (unsigned)(1 + narrow - v->exponent - exponent));
	}
	h5_bignum_copy(&x->above, &x->below);
	h5_bignum_shift_left(&x->above, narrow);
	/* Of 40 bits 36 are get_power()'s, 2 the shift's, 1 is for a sum, and 1 for the last doubling. */
	x->error = 40 + h5_bignum_bits(&v->mantissa);
	return scale(x, k);
}

/* With small exponents exact numbers are short. */
static bool may_be_quick(const struct number *v)
{
	return v->exponent > QUICK_LEAST || v->exponent < -QUICK_LEAST;
}

/* Makes the digits from what begin() has set up; `point` is what it returned. */
static void make_digits(struct state *x, int point, struct decimal *d)
{
	bool low, high;
	char digit;

	d->n = 0;
	d->point = point;
	do {
		times_ten(x);
		for (digit = 0; digit < 10 && compare(x, &x->r, &x->s) >= 0; digit++)
			h5_bignum_sub(&x->r, &x->s);
		low = is_below(x);
		high = reaches_one(x);
		if (!low && !high)
			d->digit[d->n++] = (char)('0' + digit);
	} while (!low && !high && !x->uncertain && d->n < DIGITS_MAX - 1);
	h5_bignum_shift_left(&x->r, 1);
	if (high && low) {
		int c = compare(x, &x->r, &x->s);

		high = c > 0 || (!c && digit & 1);
	}
	digit = (char)(digit + high);
	if (digit == 10) { /* can only be the first digit: a digit before it would have been the last */
		digit = 1;
		d->point++;
	}
	d->digit[d->n++] = (char)('0' + digit);
}

static void shortest(const struct number *v, bool quickly, struct decimal *d)
{
	struct state x;

	x.uncertain = false;
	if (quickly && may_be_quick(v)) {
		make_digits(&x, begin_quickly(&x, v), d);
		if (!x.uncertain)
			return;
		x.uncertain = false;
	}
	make_digits(&x, begin(&x, v), d);
}

static char *copy(char *to, const char *from, int n)
{
	memcpy(to, from, (size_t)n);
	return to + n;
}

static char *fill(char *to, int zeros)
{
	memset(to, '0', (size_t)zeros);
	return to + zeros;
}

/* As printf() with %g, but integers below 10^15, which every reader takes exactly, and small fractions are
 * written in full. */
static void write_decimal(const struct decimal *d, bool negative, char *text)
{
	int n = (int)d->n, point = d->point;
	char *p = text;

	if (negative)
		*p++ = '-';
	if (point > 15 || point < -3) {
		*p++ = d->digit[0];
		if (n > 1) {
			*p++ = '.';
			p = copy(p, d->digit + 1, n - 1);
		}
		sprintf(p, "e%+d", point - 1);
		return;
	}
	if (point <= 0) {
		p = fill(copy(p, "0.", 2), -point);
		p = copy(p, d->digit, n);
	} else if (point < n) {
		p = copy(p, d->digit, point);
		*p++ = '.';
		p = copy(p, d->digit + point, n - point);
	} else {
		p = fill(copy(p, d->digit, n), point - n);
	}
	*p = 0;
}

static void write_hexadecimal(const struct number *v, bool negative, char *text)
{
	char *p = text + sprintf(text, "%s0x%x", negative ? "-" : "", v->mantissa.limb[v->mantissa.n - 1]);

	for (unsigned i = v->mantissa.n - 1; i--;)
		p += sprintf(p, "%08x", v->mantissa.limb[i]);
	sprintf(p, "p%+lld", (long long)v->exponent);
}

/* The name of a value whose exponent is all ones: NaN or an infinity. (In narrow formats such values are
 * finite.) */
static const char *special(const struct h5_datatype *t, const struct h5_bignum *mantissa, bool negative)
{
	/* The mantissa that an infinity may have, too: only the explicit integer bit. */
	struct h5_bignum integer;

	h5_bignum_set(&integer, t->fl.norm != H5_NORM_IMPLIED);
	h5_bignum_shift_left(&integer, t->fl.mantissa_size - 1u);
	if (mantissa->n && h5_bignum_compare(mantissa, &integer))
		return "NaN";
	return negative ? "-Infinity" : "Infinity";
}

static void set_digits(struct decimal *d, uint64_t digits, int power)
{
	char reversed[24];
	unsigned n = 0;

	for (; digits; digits /= 10)
		reversed[n++] = (char)('0' + digits % 10);
	d->point = (int)n + power;
	d->n = 0;
	while (n)
		d->digit[d->n++] = reversed[--n];
	while (d->n > 1 && d->digit[d->n - 1] == '0')
		d->n--;
}

/* A format that the machine has. The text is the same as by the long way. */
static bool format_ieee(const struct h5_datatype *t, const uint8_t *data, char *text)
{
	unsigned size = t->fl.mantissa_size, width = t->fl.exponent_size;
	uint64_t bits = h5_datatype_bits(t, data), digits;
	uint64_t mantissa = bits & ((UINT64_C(1) << size) - 1);
	int field = (int)(bits >> size & ((1u << width) - 1)), exponent, power;
	bool negative = bits >> (size + width), narrow = !mantissa && field > 1;
	struct decimal d;

	if (field == (1 << width) - 1) {
		strcpy(text, mantissa ? "NaN" : negative ? "-Infinity" : "Infinity");
		return false;
	}
	if (field)
		mantissa |= UINT64_C(1) << size;
	if (!mantissa) {
		strcpy(text, negative ? "-0.0" : "0");
		return true;
	}
	exponent = (field ? field : 1) - (int)t->fl.bias - (int)size;
	if (exponent <= 0 && -exponent <= (int)size && !(mantissa & ((UINT64_C(1) << -exponent) - 1))) {
		digits = mantissa >> -exponent; /* an integer */
		power = 0;
	} else {
		h5_shortest(mantissa, exponent, narrow, &digits, &power);
	}
	set_digits(&d, digits, power);
	write_decimal(&d, negative, text);
	return true;
}

bool h5_float_format_by(const struct h5_datatype *t, const uint8_t *data, bool quickly,
			char text[H5_FLOAT_TEXT_MAX])
{
	unsigned implied = t->fl.norm == H5_NORM_IMPLIED, width = t->fl.exponent_size;
	struct h5_bignum field, bit;
	struct decimal d;
	struct number v;
	bool negative;

	if (quickly && h5_datatype_is_ieee_float(t))
		return format_ieee(t, data, text);
	h5_element_bits(t, data, t->fl.sign, 1, &field);
	negative = field.n;
	h5_element_bits(t, data, t->fl.mantissa, t->fl.mantissa_size, &v.mantissa);
	h5_element_bits(t, data, t->fl.exponent, width, &field);
	if (width > 4 && field.n && field.limb[0] == UINT32_MAX >> (32 - width)) {
		strcpy(text, special(t, &v.mantissa, negative));
		return false;
	}
	v.precision = t->fl.mantissa_size + implied;
	v.lowest = v.exponent = 2 - (int64_t)t->fl.bias - v.precision;
	if (field.n) {
		v.exponent += (int64_t)field.limb[0] - 1;
		h5_bignum_set(&bit, implied);
		h5_bignum_shift_left(&bit, t->fl.mantissa_size);
		h5_bignum_add(&v.mantissa, &bit);
	}
	if (!v.mantissa.n) {
		strcpy(text, negative ? "-0.0" : "0");
		return true;
	}
	normalise(&v);
	if (v.exponent > EXPONENT_MAX || v.exponent < -EXPONENT_MAX) {
		write_hexadecimal(&v, negative, text);
		return false;
	}
	shortest(&v, quickly, &d);
	write_decimal(&d, negative, text);
	return true;
}

bool h5_float_format(const struct h5_datatype *t, const uint8_t *data, char text[H5_FLOAT_TEXT_MAX])
{
	return h5_float_format_by(t, data, true, text);
}

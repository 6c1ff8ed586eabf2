/* The shortest decimal that reads back as the same value, for the float formats that machines have.
 *
 * After Raffaello Giulietti, "The Schubfach way to render doubles" (2020). 128 bits of a power of
 * ten give the ends of the rounding interval well enough to tell which decimals lie in it: that is proved for
 * double precision, and narrower formats need less. The digits are the same as by float_text.c, which takes
 * all formats and is many times slower. */
#include "object/value_private.h"

#include <pthread.h>

enum { POWER_MIN = -292, POWER_MAX = 324 };

/* 10^k, scaled by a power of two to 128 bits, the highest of which is set, and rounded up. */
static struct power {
	uint64_t high, low;
} powers[POWER_MAX - POWER_MIN + 1];

/* The 64 bits of b from the position up. */
static uint64_t bits_from(const struct h5_bignum *b, unsigned position)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 64; i++) {
		unsigned limb = (position + i) / 32;

		if (limb < b->n)
			v |= (uint64_t)(b->limb[limb] >> (position + i) % 32 & 1) << i;
	}
	return v;
}

/* True if any of the n lowest bits is set. */
static bool has_low_bits(const struct h5_bignum *b, unsigned n)
{
	unsigned i = 0;

	while (i < n / 32 && !b->limb[i])
		i++;
	return i < n / 32 || (n % 32 && b->limb[i] << (32 - n % 32));
}

static void set_power(int k, struct h5_bignum *b, bool exact)
{
	struct power *p = &powers[k - POWER_MIN];
	unsigned bits = h5_bignum_bits(b);

	if (bits < 128) {
		h5_bignum_shift_left(b, 128 - bits);
		bits = 128;
	}
	p->low = bits_from(b, bits - 128);
	p->high = bits_from(b, bits - 64);
	if (!exact || has_low_bits(b, bits - 128))
		p->high += !++p->low;
}

static void make_powers(void)
{
	struct h5_bignum b;

	for (int k = 0; k <= POWER_MAX; k++) {
		h5_bignum_set(&b, 1);
		h5_bignum_mul_power10(&b, (unsigned)k);
		set_power(k, &b, true);
	}
	for (int k = -1; k >= POWER_MIN; k--) {
		/* With 4 bits for each division by 10, at least 128 bits stay. */
		h5_bignum_set(&b, 1);
		h5_bignum_shift_left(&b, 128 + 4 * (unsigned)-k);
		for (int left = -k; left; left--)
			h5_bignum_div(&b, 10);
		set_power(k, &b, false);
	}
}

/* a x b: returns the upper 64 bits, and the lower ones in *low. In halves, since not every compiler has
 * 128-bit integers. */
static uint64_t multiply(uint64_t a, uint64_t b, uint64_t *low)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;

	*low = a * b;
	return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* The upper 64 bits of the product of v and a power. The lowest bit is set if lower bits were lost. */
static uint64_t round_to_odd(const struct power *p, uint64_t v)
{
	uint64_t low, high = multiply(p->high, v, &low), carried;

	high += __builtin_add_overflow(low, multiply(p->low, v, &carried), &low);
	return high | (low > 1);
}

static int floor_log2_power10(int e)
{
	return (e * 1741647) >> 19;
}

void h5_shortest(uint64_t mantissa, int exponent, bool narrow, uint64_t *digits, int *power)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t odd = mantissa & 1, lower, middle, upper, s, tens;
	int k = (exponent * 1262611 - (narrow ? 524031 : 0)) >> 22, h;
	const struct power *p;

	pthread_once(&once, make_powers);
	*power = k;
	h = exponent + floor_log2_power10(-k) + 1;
	p = &powers[-k - POWER_MIN];
	/* The ends of the interval in quarters of 10^k. They belong to it if the mantissa is even. */
	lower = round_to_odd(p, (4 * mantissa - 2 + narrow) << h) + odd;
	middle = round_to_odd(p, (4 * mantissa) << h);
	upper = round_to_odd(p, (4 * mantissa + 2) << h) - odd;
	s = middle / 4;
	tens = s / 10;
	if (s >= 10 && (lower <= 40 * tens) != (40 * tens + 40 <= upper)) {
		*digits = tens + (40 * tens + 40 <= upper);
		++*power;
	} else if ((lower <= 4 * s) != (4 * s + 4 <= upper)) {
		*digits = s + (4 * s + 4 <= upper);
	} else {
		*digits = s + (middle > 4 * s + 2 || (middle == 4 * s + 2 && s & 1));
	}
}

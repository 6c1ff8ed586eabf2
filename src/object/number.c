/* Numbers that a machine has, as it has them. */
#include "object/value_private.h"

#include <endian.h>
#include <math.h>
#include <string.h>

bool h5_datatype_is_boolean(const struct h5_datatype *t)
{
	unsigned seen = 0;

	if (t->class != H5_CLASS_ENUM || t->size != 1 || t->enumeration.count != 2)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		const struct h5_enum_member *m = &t->enumeration.members[i];

		if (*m->value < 2 && !strcmp(m->name, *m->value ? "TRUE" : "FALSE"))
			seen |= 1u << *m->value;
	}
	return seen == 3;
}

bool h5_datatype_is_number(const struct h5_datatype *t)
{
	if (t->class == H5_CLASS_ENUM)
		t = t->enumeration.base;
	if (t->class == H5_CLASS_FLOAT)
		return h5_float_is_ieee(t);
	return t->class == H5_CLASS_INTEGER && h5_integer_is_whole(t);
}

uint64_t h5_element_load(const uint8_t *p, unsigned size, bool big)
{
	uint16_t two;
	uint32_t four;
	uint64_t eight;

	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&two, p, sizeof two);
		return big ? be16toh(two) : le16toh(two);
	case 4:
		memcpy(&four, p, sizeof four);
		return big ? be32toh(four) : le32toh(four);
	default:
		memcpy(&eight, p, sizeof eight);
		return big ? be64toh(eight) : le64toh(eight);
	}
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

/* Two's complement of so many bytes. */
static double as_signed(uint64_t bits, unsigned size)
{
	unsigned unused = 64 - 8 * size;

	return (double)((int64_t)(bits << unused) >> unused);
}

void h5_value_doubles(const struct h5_datatype *t, const uint8_t *data, size_t n, double *out)
{
	bool big;

	if (t->class == H5_CLASS_ENUM)
		t = t->enumeration.base;
	big = t->order == H5_ORDER_BE;
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = h5_element_load(data + i * t->size, t->size, big);

		out[i] = t->class == H5_CLASS_FLOAT ? as_float(bits, t->size)
			 : t->is_signed		    ? as_signed(bits, t->size)
						    : (double)bits;
	}
}

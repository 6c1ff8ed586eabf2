/* Questions about decoded types. */
#include "format/datatype.h"

#include <string.h>

bool h5_datatype_is_fixed(const struct h5_datatype *t)
{
	switch (t->class) {
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++)
			if (!h5_datatype_is_fixed(t->compound.members[i].type))
				return false;
		return true;
	case H5_CLASS_REFERENCE:
	case H5_CLASS_VLEN:
		return false;
	case H5_CLASS_ARRAY:
		return h5_datatype_is_fixed(t->array.base);
	default:
		return true;
	}
}

bool h5_datatype_is_native_integer(const struct h5_datatype *t)
{
	return t->precision == 8 * (uint64_t)t->size && t->order != H5_ORDER_VAX &&
	       (t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8);
}

bool h5_datatype_is_ieee_float(const struct h5_datatype *t)
{
	unsigned bits = 8 * t->size, e = t->size == 2 ? 5 : t->size == 4 ? 8 : 11;

	return (t->size == 2 || t->size == 4 || t->size == 8) && t->order != H5_ORDER_VAX &&
	       t->fl.norm == H5_NORM_IMPLIED && t->fl.sign == bits - 1 && t->fl.exponent_size == e &&
	       t->fl.mantissa_size == bits - e - 1 && t->fl.exponent == t->fl.mantissa_size &&
	       !t->fl.mantissa && t->fl.bias == (1u << (e - 1)) - 1;
}

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
		return h5_datatype_is_ieee_float(t);
	return t->class == H5_CLASS_INTEGER && h5_datatype_is_native_integer(t);
}

/* ---- the same type ---- */

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

		if (x->offset != y->offset || strcmp(x->name, y->name) ||
		    !h5_datatype_is_same(x->type, y->type))
			return false;
	}
	return true;
}

static bool same_enum(const struct h5_datatype *a, const struct h5_datatype *b)
{
	if (a->enumeration.count != b->enumeration.count ||
	    !h5_datatype_is_same(a->enumeration.base, b->enumeration.base))
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
	       h5_datatype_is_same(a->array.base, b->array.base);
}

bool h5_datatype_is_same(const struct h5_datatype *a, const struct h5_datatype *b)
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
		       (a->vlen.is_string || h5_datatype_is_same(a->vlen.base, b->vlen.base));
	case H5_CLASS_ARRAY:
		return same_array(a, b);
	case H5_CLASS_COMPLEX:
		return h5_datatype_is_same(a->complex.base, b->complex.base);
	}
	return false;
}

#include "format/datatype.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/little_endian.h"
#include "base/lower_bound.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Every type starts with
 *
 *   0  1  class (bits 0-3) and version (bits 4-7)
 *   1  3  class bit field
 *   4  4  size of an element in bytes
 *   8     properties of the class */
struct prefix {
	uint8_t version, class;
	uint32_t bits;
	uint32_t size;
};

enum { MESSAGE_MAX = 1 << 20 }; /* bytes; in an object header there is room for 65,535 */

static int decode(struct h5_reader *r, unsigned depth, struct h5_datatype **type);

static int damaged(const struct h5_reader *r, const char *what)
{
	return h5_fail(-EUCLEAN, h5_reader_address(r), "datatype message: %s", what);
}

/* The significant bits lie inside the element. */
static bool bits_inside(const struct h5_datatype *t)
{
	return t->precision && (uint64_t)t->bit_offset + t->precision <= 8 * (uint64_t)t->size;
}

/* Properties of fixed-point numbers and bit fields:   0  2  bit offset    2  2  bit precision */
static int decode_integer(struct h5_reader *r, const struct prefix *p, struct h5_datatype *t)
{
	t->order = p->bits & 1 ? H5_ORDER_BE : H5_ORDER_LE;
	t->is_signed = t->class == H5_CLASS_INTEGER && p->bits & 8;
	t->bit_offset = h5_read_u16(r);
	t->precision = h5_read_u16(r);
	if (!r->err && !bits_inside(t))
		return damaged(r, "bits outside the number");
	return 0;
}

/* Properties of floating-point numbers:
 *
 *   0  2  bit offset               6  1  mantissa location
 *   2  2  bit precision            7  1  mantissa size
 *   4  1  exponent location        8  4  exponent bias
 *   5  1  exponent size */
static int decode_float(struct h5_reader *r, const struct prefix *p, struct h5_datatype *t)
{
	uint32_t norm = p->bits >> 4 & 3;

	t->order = p->bits & 1 ? H5_ORDER_BE : H5_ORDER_LE;
	if (p->version >= 3 && p->bits & 0x40) {
		if (!(p->bits & 1))
			return damaged(r, "reserved byte order");
		t->order = H5_ORDER_VAX;
	}
	if (norm > H5_NORM_IMPLIED)
		return damaged(r, "reserved mantissa normalization");
	t->fl.norm = (enum h5_float_norm)norm;
	t->fl.sign = (uint8_t)(p->bits >> 8);
	t->bit_offset = h5_read_u16(r);
	t->precision = h5_read_u16(r);
	t->fl.exponent = h5_read_u8(r);
	t->fl.exponent_size = h5_read_u8(r);
	t->fl.mantissa = h5_read_u8(r);
	t->fl.mantissa_size = h5_read_u8(r);
	t->fl.bias = h5_read_u32(r);
	if (r->err)
		return 0;
	if (!bits_inside(t) || t->fl.sign >= 8 * (uint64_t)t->size || !t->fl.exponent_size ||
	    !t->fl.mantissa_size || (uint64_t)t->fl.exponent + t->fl.exponent_size > 8 * (uint64_t)t->size ||
	    (uint64_t)t->fl.mantissa + t->fl.mantissa_size > 8 * (uint64_t)t->size)
		return damaged(r, "bits outside the floating-point number");
	if (t->fl.exponent_size > 32)
		return h5_fail(-ENOTSUP, h5_reader_address(r), "datatype message: exponent of %u bits",
			       t->fl.exponent_size);
	return 0;
}

static int decode_time(struct h5_reader *r, const struct prefix *p, struct h5_datatype *t)
{
	t->order = p->bits & 1 ? H5_ORDER_BE : H5_ORDER_LE;
	t->precision = h5_read_u16(r);
	if (!r->err && !bits_inside(t))
		return damaged(r, "bits outside the time");
	return 0;
}

/* A NUL-terminated name, padded with its NUL to a multiple of eight bytes before version 3. */
static int decode_name(struct h5_reader *r, uint8_t version, char **name)
{
	size_t left = h5_reader_left(r), n;
	const char *text = (const char *)r->p;

	if (r->err || !left || (n = strnlen(text, left)) == left)
		return damaged(r, "name without an end");
	*name = strdup(text);
	if (!*name)
		return -ENOMEM;
	h5_reader_skip(r, version >= 3 ? n + 1 : (n / 8 + 1) * 8);
	return 0;
}

static int decode_opaque(struct h5_reader *r, const struct prefix *p, struct h5_datatype *t)
{
	size_t n = p->bits & 0xff;
	const uint8_t *tag = h5_read_bytes(r, n);

	if (!tag)
		return 0;
	t->opaque.tag = strndup((const char *)tag, n);
	return t->opaque.tag ? 0 : -ENOMEM;
}

/* An array type around *base, which it takes over on success. */
static int make_array(struct h5_reader *r, uint8_t version, unsigned rank, const uint64_t *dims,
		      struct h5_datatype **base)
{
	struct h5_datatype *t = calloc(1, sizeof *t);
	uint64_t size;

	if (!t)
		return -ENOMEM;
	t->class = H5_CLASS_ARRAY;
	t->version = version;
	t->array.rank = rank;
	memcpy(t->array.dims, dims, rank * sizeof *dims);
	if (!h5_product(dims, rank, &t->array.count) || !h5_mul(t->array.count, (*base)->size, &size) ||
	    !size || size > UINT32_MAX) {
		free(t);
		return damaged(r, "array of no possible size");
	}
	t->size = (uint32_t)size;
	t->array.base = *base;
	*base = t;
	return 0;
}

/* One member of a compound:
 *
 *   name (decode_name)
 *   byte offset of the member: 4 bytes; from version 3 on the least bytes that hold the compound's size
 *   version 1 only:  1 dimensionality, 3 reserved, 4 permutation, 4 reserved, 4 x 4 dimension sizes
 *   type of the member */
static int decode_member(struct h5_reader *r, const struct h5_datatype *t, unsigned depth,
			 struct h5_member *m)
{
	uint64_t dims[4];
	unsigned rank = 0;
	int rc = decode_name(r, t->version, &m->name);

	if (rc)
		return rc;
	m->offset = h5_read_uint(r, t->version >= 3 ? h5_limit_size(t->size) : 4);
	if (t->version == 1) {
		rank = h5_read_u8(r);
		h5_reader_skip(r, 3 + 4 + 4);
		for (unsigned i = 0; i < 4; i++)
			dims[i] = h5_read_u32(r);
		if (rank > 4)
			return damaged(r, "compound member of more than four dimensions");
	}
	rc = decode(r, depth + 1, &m->type);
	if (!rc && rank)
		rc = make_array(r, t->version, rank, dims, &m->type);
	if (!rc && (m->offset > t->size || m->type->size > t->size - m->offset))
		rc = damaged(r, "member outside its compound");
	return rc;
}

static int decode_compound(struct h5_reader *r, const struct prefix *p, unsigned depth, struct h5_datatype *t)
{
	unsigned count = p->bits & 0xffff;

	/* A member takes ten bytes at least. The check keeps memory in proportion to the message. */
	if (!count || count > h5_reader_left(r) / 10)
		return damaged(r, "number of compound members");
	t->compound.members = calloc(count, sizeof *t->compound.members);
	if (!t->compound.members)
		return -ENOMEM;
	for (t->compound.count = 0; t->compound.count < count;) {
		int rc = decode_member(r, t, depth, &t->compound.members[t->compound.count++]);

		if (rc)
			return rc;
	}
	return 0;
}

/* Members with the same value stay in their order. */
static int compare_members(const void *a, const void *b, void *size)
{
	const struct h5_enum_member *x = *(const struct h5_enum_member *const *)a,
				    *y = *(const struct h5_enum_member *const *)b;
	int c = memcmp(x->value, y->value, *(uint32_t *)size);

	return c ? c : (x > y) - (x < y);
}

static int index_enum(struct h5_datatype *t)
{
	const struct h5_enum_member **index = calloc(t->enumeration.count + 1u, sizeof *index);

	if (!index)
		return -ENOMEM;
	for (unsigned i = 0; i < t->enumeration.count; i++)
		index[i] = &t->enumeration.members[i];
	qsort_r(index, t->enumeration.count, sizeof *index, compare_members, &t->size);
	t->enumeration.by_value = index;
	return 0;
}

const struct h5_enum_member *h5_datatype_enum_member(const struct h5_datatype *t, const uint8_t *value)
{
	const struct h5_enum_member *const *sorted = t->enumeration.by_value;
	size_t i = h5_lower_bound(j, t->enumeration.count, memcmp(sorted[j]->value, value, t->size) < 0);

	return i < t->enumeration.count && !memcmp(sorted[i]->value, value, t->size) ? sorted[i] : NULL;
}

/* Properties of an enumeration: base type, names (decode_name), values of the base type's size. */
static int decode_enum(struct h5_reader *r, const struct prefix *p, unsigned depth, struct h5_datatype *t)
{
	unsigned count = p->bits & 0xffff;
	const uint8_t *values;
	int rc = decode(r, depth + 1, &t->enumeration.base);

	if (rc)
		return rc;
	if (t->enumeration.base->class != H5_CLASS_INTEGER || t->enumeration.base->size != t->size)
		return damaged(r, "base type of an enumeration");
	if (count > h5_reader_left(r))
		return damaged(r, "number of enumeration members");
	t->enumeration.members = calloc(count + 1u, sizeof *t->enumeration.members);
	if (!t->enumeration.members)
		return -ENOMEM;
	while (t->enumeration.count < count) {
		rc = decode_name(r, t->version, &t->enumeration.members[t->enumeration.count++].name);
		if (rc)
			return rc;
	}
	values = h5_read_bytes(r, (uint64_t)count * t->size);
	if (!values)
		return 0;
	t->enumeration.values = malloc((size_t)count * t->size + 1);
	if (!t->enumeration.values)
		return -ENOMEM;
	memcpy(t->enumeration.values, values, (size_t)count * t->size);
	for (unsigned i = 0; i < count; i++)
		t->enumeration.members[i].value = t->enumeration.values + (size_t)i * t->size;
	return index_enum(t);
}

static int decode_vlen(struct h5_reader *r, const struct prefix *p, unsigned depth, struct h5_datatype *t)
{
	uint32_t kind = p->bits & 0xf;

	if (kind > 1)
		return damaged(r, "kind of a variable-length type");
	t->vlen.is_string = kind == 1;
	t->vlen.padding = (enum h5_string_padding)(p->bits >> 4 & 0xf);
	t->vlen.charset = (enum h5_charset)(p->bits >> 8 & 0xf);
	return decode(r, depth + 1, &t->vlen.base);
}

/* Properties of an array: 1 dimensionality; 3 reserved; 4 for each dimension size; 4 for each permutation
 * index, which were never implemented; base type. Version 3 has neither the reserved bytes nor the
 * permutation. Some files have arrays of version 1, in the form of version 2. */
static int decode_array(struct h5_reader *r, const struct prefix *p, unsigned depth, struct h5_datatype *t)
{
	unsigned rank = h5_read_u8(r);
	uint64_t size;
	int rc;

	if (rank > H5_RANK_MAX)
		return damaged(r, "array of more than 32 dimensions");
	if (p->version < 3)
		h5_reader_skip(r, 3);
	t->array.rank = rank;
	for (unsigned i = 0; i < rank; i++)
		t->array.dims[i] = h5_read_u32(r);
	if (p->version < 3)
		h5_reader_skip(r, 4 * (size_t)rank);
	rc = decode(r, depth + 1, &t->array.base);
	if (rc)
		return rc;
	if (!h5_product(t->array.dims, rank, &t->array.count) ||
	    !h5_mul(t->array.count, t->array.base->size, &size) || size != t->size)
		return damaged(r, "size of an array");
	return 0;
}

/* As libhdf5 2.0 writes them: bit 0 homogeneous (the only case), bits 1-2 form (0: rectangular); the property
 * is the parts' type. */
static int decode_complex(struct h5_reader *r, const struct prefix *p, unsigned depth, struct h5_datatype *t)
{
	int rc;

	if ((p->bits & 7) != 1)
		return h5_fail(-ENOTSUP, h5_reader_address(r),
			       "datatype message: complex numbers of another form");
	rc = decode(r, depth + 1, &t->complex.base);
	if (rc)
		return rc;
	if (t->complex.base->class != H5_CLASS_FLOAT || t->size != 2 * (uint64_t)t->complex.base->size)
		return damaged(r, "base type of a complex number");
	return 0;
}

static int decode_class(struct h5_reader *r, const struct prefix *p, unsigned depth, struct h5_datatype *t)
{
	switch (t->class) {
	case H5_CLASS_INTEGER:
	case H5_CLASS_BITFIELD:
		return decode_integer(r, p, t);
	case H5_CLASS_FLOAT:
		return decode_float(r, p, t);
	case H5_CLASS_TIME:
		return decode_time(r, p, t);
	case H5_CLASS_STRING:
		t->string.padding = (enum h5_string_padding)(p->bits & 0xf);
		t->string.charset = (enum h5_charset)(p->bits >> 4 & 0xf);
		return 0;
	case H5_CLASS_OPAQUE:
		return decode_opaque(r, p, t);
	case H5_CLASS_COMPOUND:
		return decode_compound(r, p, depth, t);
	case H5_CLASS_REFERENCE:
		t->reference.kind = (enum h5_reference_kind)(p->bits & 0xf);
		return t->reference.kind > H5_REF_ATTRIBUTE ? damaged(r, "kind of a reference") : 0;
	case H5_CLASS_ENUM:
		return decode_enum(r, p, depth, t);
	case H5_CLASS_VLEN:
		return decode_vlen(r, p, depth, t);
	case H5_CLASS_ARRAY:
		return decode_array(r, p, depth, t);
	case H5_CLASS_COMPLEX:
		return decode_complex(r, p, depth, t);
	}
	return damaged(r, "unknown class");
}

static int decode(struct h5_reader *r, unsigned depth, struct h5_datatype **type)
{
	uint8_t first = h5_read_u8(r);
	struct prefix p = {.version = first >> 4, .class = first & 0xf};
	struct h5_datatype *t;
	int rc;

	*type = NULL;
	p.bits = (uint32_t)h5_read_uint(r, 3);
	p.size = h5_read_u32(r);
	rc = h5_reader_check(r, "datatype message");
	if (rc)
		return rc;
	if (p.version < 1 || p.version > 5)
		return h5_fail(-EUCLEAN, h5_reader_address(r), "datatype message: version %u", p.version);
	if (!p.size)
		return damaged(r, "size 0");
	if (depth > H5_DATATYPE_DEPTH)
		return damaged(r, "nested too deep");
	t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->class = (enum h5_class)p.class;
	t->version = p.version;
	t->size = p.size;
	rc = decode_class(r, &p, depth, t);
	if (!rc)
		rc = h5_reader_check(r, "datatype message");
	if (rc)
		h5_datatype_free(t);
	else
		*type = t;
	return rc;
}

int h5_datatype_decode(struct h5_reader *r, struct h5_datatype **type)
{
	*type = NULL;
	/* The tree takes many times the bytes of its message. */
	if (h5_reader_left(r) > MESSAGE_MAX)
		return h5_fail(-EFBIG, h5_reader_address(r), "datatype message: %zu bytes",
			       h5_reader_left(r));
	return decode(r, 1, type);
}

void h5_datatype_free(struct h5_datatype *t)
{
	if (!t)
		return;
	switch (t->class) {
	case H5_CLASS_OPAQUE:
		free(t->opaque.tag);
		break;
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++) {
			free(t->compound.members[i].name);
			h5_datatype_free(t->compound.members[i].type);
		}
		free(t->compound.members);
		break;
	case H5_CLASS_ENUM:
		for (unsigned i = 0; i < t->enumeration.count; i++)
			free(t->enumeration.members[i].name);
		free(t->enumeration.members);
		free(t->enumeration.values);
		free(t->enumeration.by_value);
		h5_datatype_free(t->enumeration.base);
		break;
	case H5_CLASS_VLEN:
		h5_datatype_free(t->vlen.base);
		break;
	case H5_CLASS_ARRAY:
		h5_datatype_free(t->array.base);
		break;
	case H5_CLASS_COMPLEX:
		h5_datatype_free(t->complex.base);
		break;
	default:
		break;
	}
	free(t);
}

size_t h5_datatype_cost(const struct h5_datatype *t)
{
	size_t cost = sizeof *t;

	switch (t->class) {
	case H5_CLASS_OPAQUE:
		return cost + strlen(t->opaque.tag) + 1;
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++)
			cost += sizeof *t->compound.members + strlen(t->compound.members[i].name) + 1 +
				h5_datatype_cost(t->compound.members[i].type);
		return cost;
	case H5_CLASS_ENUM:
		for (unsigned i = 0; i < t->enumeration.count; i++)
			cost += sizeof *t->enumeration.members + sizeof *t->enumeration.by_value +
				strlen(t->enumeration.members[i].name) + 1 + t->size;
		return cost + h5_datatype_cost(t->enumeration.base);
	case H5_CLASS_VLEN:
		return cost + h5_datatype_cost(t->vlen.base);
	case H5_CLASS_ARRAY:
		return cost + h5_datatype_cost(t->array.base);
	case H5_CLASS_COMPLEX:
		return cost + h5_datatype_cost(t->complex.base);
	default:
		return cost;
	}
}

/* ---- questions ---- */

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

bool h5_datatype_has_references(const struct h5_datatype *t)
{
	switch (t->class) {
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++)
			if (h5_datatype_has_references(t->compound.members[i].type))
				return true;
		return false;
	case H5_CLASS_REFERENCE:
		return true;
	case H5_CLASS_VLEN:
		return !t->vlen.is_string && h5_datatype_has_references(t->vlen.base);
	case H5_CLASS_ARRAY:
		return h5_datatype_has_references(t->array.base);
	default:
		return false;
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

/* ---- elements ---- */

/* Without a loop for the usual sizes, since large datasets become text through this. */
static uint64_t load_bits(const uint8_t *p, unsigned size)
{
	switch (size) {
	case 1:
		return *p;
	case 2:
		return h5_le16(p);
	case 4:
		return h5_le32(p);
	case 8:
		return h5_le64(p);
	default:
		return h5_uint_from(p, size);
	}
}

uint64_t h5_datatype_bits(const struct h5_datatype *t, const uint8_t *p)
{
	uint64_t bits;

	assert(t->size && t->size <= sizeof bits);
	bits = load_bits(p, t->size);
	return t->order == H5_ORDER_BE ? __builtin_bswap64(bits) >> (64 - 8 * t->size) : bits;
}

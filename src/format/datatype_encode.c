/* Writes datatype messages; the forms of all properties are beside their decoders, in datatype.c. */
#include "format/datatype.h"

#include "base/checked.h"
#include "base/writer.h"

#include <string.h>

static void put(struct h5_buf *out, uint64_t v, unsigned n)
{
	uint8_t bytes[8];

	h5_uint_to(bytes, v, n);
	h5_buf_add(out, bytes, n);
}

static void put_zeros(struct h5_buf *out, size_t n)
{
	while (n--)
		h5_buf_byte(out, 0);
}

/* ---- versions ----
 *
 * As libhdf5 has them: most types are of version 1, and compounds, arrays and enumerations of the version
 * that the style of the file asks for, or what is in them. */

enum { STYLE_EARLIEST = 1, STYLE_LATEST = 3 };

static unsigned max(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* The least version that can express the type by itself. */
static unsigned least(const struct h5_datatype *t)
{
	if (t->class == H5_CLASS_COMPLEX)
		return 5;
	if (t->class == H5_CLASS_REFERENCE)
		return t->reference.kind > H5_REF_REGION ? 4 : 1;
	if (t->class == H5_CLASS_FLOAT)
		return t->order == H5_ORDER_VAX ? 3 : 1;
	return t->class == H5_CLASS_ARRAY ? 2 : 1;
}

/* The least version that can express the type and all in it. */
static unsigned needed(const struct h5_datatype *t)
{
	unsigned version = least(t);

	switch (t->class) {
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++)
			version = max(version, needed(t->compound.members[i].type));
		return version;
	case H5_CLASS_VLEN:
		return max(version, needed(t->vlen.base));
	case H5_CLASS_ARRAY:
		return max(version, needed(t->array.base));
	default:
		return version;
	}
}

static unsigned version_of(const struct h5_datatype *t, unsigned style)
{
	switch (t->class) {
	case H5_CLASS_COMPOUND:
	case H5_CLASS_ARRAY:
		return max(style, needed(t));
	case H5_CLASS_ENUM:
		return style;
	case H5_CLASS_VLEN:
		return version_of(t->vlen.base, style);
	default:
		return least(t);
	}
}

/* ---- classes ---- */

static void encode(struct h5_buf *out, const struct h5_datatype *t, unsigned style);

static void put_prefix(struct h5_buf *out, const struct h5_datatype *t, unsigned version, uint32_t bits)
{
	put(out, version << 4 | t->class, 1);
	put(out, bits, 3);
	put(out, t->size, 4);
}

static void encode_float(struct h5_buf *out, const struct h5_datatype *t, unsigned version)
{
	uint32_t order = t->order == H5_ORDER_VAX ? 0x41 : t->order == H5_ORDER_BE;

	put_prefix(out, t, version, order | t->fl.norm << 4 | (uint32_t)t->fl.sign << 8);
	put(out, t->bit_offset, 2);
	put(out, t->precision, 2);
	put(out, t->fl.exponent, 1);
	put(out, t->fl.exponent_size, 1);
	put(out, t->fl.mantissa, 1);
	put(out, t->fl.mantissa_size, 1);
	put(out, t->fl.bias, 4);
}

static void encode_integer(struct h5_buf *out, const struct h5_datatype *t, unsigned version)
{
	put_prefix(out, t, version, (t->order == H5_ORDER_BE) | (uint32_t)t->is_signed << 3);
	put(out, t->bit_offset, 2);
	put(out, t->precision, 2);
}

/* The tag is padded with NULs to a multiple of eight bytes, and need not end in one. */
static void encode_opaque(struct h5_buf *out, const struct h5_datatype *t, unsigned version)
{
	size_t n = strlen(t->opaque.tag), padded = (n + 7) / 8 * 8;

	if (padded > UINT8_MAX)
		n = padded = UINT8_MAX / 8 * 8;
	put_prefix(out, t, version, (uint32_t)padded);
	h5_buf_add(out, t->opaque.tag, n);
	put_zeros(out, padded - n);
}

static void put_name(struct h5_buf *out, const char *name, unsigned version)
{
	size_t n = strlen(name) + 1;

	h5_buf_add(out, name, n);
	if (version < 3)
		put_zeros(out, (8 - n % 8) % 8);
}

static void encode_compound(struct h5_buf *out, const struct h5_datatype *t, unsigned version)
{
	put_prefix(out, t, version, t->compound.count);
	for (unsigned i = 0; i < t->compound.count && !out->err; i++) {
		const struct h5_member *m = &t->compound.members[i];

		put_name(out, m->name, version);
		put(out, m->offset, version >= 3 ? h5_limit_size(t->size) : 4);
		if (version == 1)
			put_zeros(out, 1 + 3 + 4 + 4 + 4 * 4); /* no array */
		encode(out, m->type, version);
	}
}

static void encode_enum(struct h5_buf *out, const struct h5_datatype *t, unsigned version)
{
	put_prefix(out, t, version, t->enumeration.count);
	encode(out, t->enumeration.base, version);
	for (unsigned i = 0; i < t->enumeration.count; i++)
		put_name(out, t->enumeration.members[i].name, version);
	for (unsigned i = 0; i < t->enumeration.count; i++)
		h5_buf_add(out, t->enumeration.members[i].value, t->size);
}

/* Before version 3 also permutation indices, which mean nothing. */
static void encode_array(struct h5_buf *out, const struct h5_datatype *t, unsigned version, unsigned style)
{
	put_prefix(out, t, version, 0);
	put(out, t->array.rank, 1);
	put_zeros(out, version < 3 ? 3 : 0);
	for (unsigned i = 0; i < t->array.rank; i++)
		put(out, t->array.dims[i], 4);
	for (unsigned i = 0; i < t->array.rank && version < 3; i++)
		put(out, i, 4);
	encode(out, t->array.base, style);
}

static void encode(struct h5_buf *out, const struct h5_datatype *t, unsigned style)
{
	unsigned version = version_of(t, style);

	switch (t->class) {
	case H5_CLASS_INTEGER:
	case H5_CLASS_BITFIELD:
		encode_integer(out, t, version);
		break;
	case H5_CLASS_FLOAT:
		encode_float(out, t, version);
		break;
	case H5_CLASS_TIME:
		put_prefix(out, t, version, t->order == H5_ORDER_BE);
		put(out, t->precision, 2);
		break;
	case H5_CLASS_STRING:
		put_prefix(out, t, version, t->string.padding | t->string.charset << 4);
		break;
	case H5_CLASS_OPAQUE:
		encode_opaque(out, t, version);
		break;
	case H5_CLASS_COMPOUND:
		encode_compound(out, t, version);
		break;
	case H5_CLASS_REFERENCE: /* new kinds have a version of their own */
		put_prefix(out, t, version, t->reference.kind | (version == 4 ? 0x10u : 0));
		break;
	case H5_CLASS_ENUM:
		encode_enum(out, t, version);
		break;
	case H5_CLASS_VLEN:
		put_prefix(out, t, version, t->vlen.is_string | t->vlen.padding << 4 | t->vlen.charset << 8);
		encode(out, t->vlen.base, style);
		break;
	case H5_CLASS_ARRAY:
		encode_array(out, t, version, style);
		break;
	case H5_CLASS_COMPLEX:
		put_prefix(out, t, version, 1);
		encode(out, t->complex.base, style);
		break;
	}
}

int h5_datatype_encode(const struct h5_datatype *type, bool latest, struct h5_buf *out)
{
	encode(out, type, latest ? STYLE_LATEST : STYLE_EARLIEST);
	return out->err;
}

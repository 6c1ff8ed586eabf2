/* Types in NumPy's words. */
#include "object/value_private.h"

#include <string.h>

/* False, with part of it written, where NumPy has no such type. In a descr each name stands in quotes. */
static bool type_numpy(struct h5_buf *out, const struct h5_datatype *t, bool in_descr);

static char order(const struct h5_datatype *t)
{
	return t->size == 1 ? '|' : t->order == H5_ORDER_BE ? '>' : '<';
}

static bool word(struct h5_buf *out, bool in_descr, char byte_order, char kind, uint32_t size)
{
	const char *quote = in_descr ? "\"" : "", mark[2] = {byte_order};

	h5_buf_printf(out, "%s%s%c%u%s", quote, mark, kind, size, quote);
	return true;
}

static void padding(struct h5_buf *out, uint64_t from, uint64_t to)
{
	if (to > from)
		h5_buf_printf(out, "[\"\",\"|V%llu\"]", (unsigned long long)(to - from));
}

/* [["a","<i4"],["","|V4"],["b","<f8",[3]]] */
static bool descr(struct h5_buf *out, const struct h5_datatype *t)
{
	uint64_t at = 0;

	h5_buf_byte(out, '[');
	for (unsigned i = 0; i < t->compound.count && !out->err; i++) {
		const struct h5_member *m = &t->compound.members[i];
		bool array = m->type->class == H5_CLASS_ARRAY;

		if (m->offset < at)
			return false; /* members overlap, or stand in another order than their names */
		padding(out, at, m->offset);
		h5_buf_text(out, m->offset > at ? ",[" : "[");
		h5_json_string(out, m->name, strlen(m->name));
		h5_buf_byte(out, ',');
		if (!type_numpy(out, array ? m->type->array.base : m->type, true))
			return false;
		if (array) {
			h5_buf_text(out, ",[");
			for (unsigned k = 0; k < m->type->array.rank; k++)
				h5_buf_printf(out, k ? ",%llu" : "%llu",
					      (unsigned long long)m->type->array.dims[k]);
			h5_buf_byte(out, ']');
		}
		at = m->offset + m->type->size;
		h5_buf_text(out, i + 1 < t->compound.count || at < t->size ? "]," : "]");
	}
	padding(out, at, t->size);
	h5_buf_byte(out, ']');
	return true;
}

static bool type_numpy(struct h5_buf *out, const struct h5_datatype *t, bool in_descr)
{
	switch (t->class) {
	case H5_CLASS_INTEGER:
		return t->precision == 8 * (uint64_t)t->size &&
		       (t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8) &&
		       word(out, in_descr, order(t), t->is_signed ? 'i' : 'u', t->size);
	case H5_CLASS_FLOAT:
		return h5_float_is_ieee(t) && word(out, in_descr, order(t), 'f', t->size);
	case H5_CLASS_STRING:
		return word(out, in_descr, 0, 'S', t->size);
	case H5_CLASS_OPAQUE:
		return word(out, in_descr, '|', 'V', t->size);
	case H5_CLASS_ENUM:
		return type_numpy(out, t->enumeration.base, in_descr);
	case H5_CLASS_COMPOUND:
		return h5_datatype_is_fixed(t) && descr(out, t);
	case H5_CLASS_COMPLEX:
		return h5_float_is_ieee(t->complex.base) && t->complex.base->size > 2 &&
		       word(out, in_descr, order(t->complex.base), 'c', t->size);
	default:
		return false;
	}
}

void h5_datatype_numpy(const struct h5_datatype *type, struct h5_buf *out)
{
	size_t before = out->size;

	if (!type_numpy(out, type, false) && !out->err) {
		out->size = before;
		h5_buf_text(out, "object");
	}
}

void h5_datatype_numpy_shaped(const struct h5_datatype *type, const struct h5_dataspace *space,
			      struct h5_buf *out)
{
	if (space->rank) {
		h5_buf_byte(out, '(');
		for (unsigned i = 0; i < space->rank; i++)
			h5_buf_printf(out, i ? ",%llu" : "%llu", (unsigned long long)space->dims[i]);
		h5_buf_text(out, space->rank == 1 ? ",)" : ")");
	}
	if (type->class == H5_CLASS_VLEN && type->vlen.is_string)
		h5_buf_text(out, "vlen str");
	else
		h5_datatype_numpy(type, out);
}

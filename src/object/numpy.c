/* Types as NumPy names them. */
#include "object/value_private.h"

#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* The form in which a type is written:
 *
 *   WORD     alone
 *   DESCR    in JSON, for h5fs.dtype
 *   LITERAL  in a Python literal, for the header of an NPY file: members in the order of their offsets;
 *            booleans and complex numbers as h5py writes them
 *   ZARR     as LITERAL, but in JSON, and padding has names of its own
 */
enum form { WORD, DESCR, LITERAL, ZARR };

enum { RANK_MAX = 32 }; /* NumPy's */

/* False, after a part has been written, if NumPy has no such type. */
static bool type_numpy(struct h5_buf *out, const struct h5_datatype *t, enum form form);

/* True: the type must mean the same bytes to a program that reads them by it. */
static bool is_exact(enum form form)
{
	return form == LITERAL || form == ZARR;
}

static char order(const struct h5_datatype *t)
{
	return t->size == 1 ? '|' : t->order == H5_ORDER_BE ? '>' : '<';
}

static bool word(struct h5_buf *out, enum form form, char byte_order, char kind, uint32_t size)
{
	const char *quote = form == WORD ? "" : form == LITERAL ? "'" : "\"", mark[2] = {byte_order};

	h5_buf_printf(out, "%s%s%c%u%s", quote, mark, kind, size, quote);
	return !is_exact(form) || size <= INT32_MAX;
}

static void padding(struct h5_buf *out, enum form form, uint64_t from, uint64_t to)
{
	unsigned long long at = from, n = to - from;

	if (to <= from)
		return;
	if (form == ZARR)
		h5_buf_printf(out, "[\"_padding_%llu\",\"|V%llu\"]", at, n);
	else
		h5_buf_printf(out, form == LITERAL ? "('', '|V%llu')" : "[\"\",\"|V%llu\"]", n);
}

static const char *comma(enum form form)
{
	return form == LITERAL ? ", " : ",";
}

/* Appends dimensions, and adds their number to *count. */
static void add_dims(struct h5_buf *out, enum form form, const uint64_t *dims, unsigned n, unsigned *count)
{
	for (unsigned i = 0; i < n; i++)
		h5_buf_printf(out, "%s%llu", (*count)++ ? comma(form) : "", (unsigned long long)dims[i]);
}

/* A tuple of Python: the dimensions of the space, then those of the array type, and of arrays in it. */
static bool tuple(struct h5_buf *out, const struct h5_dataspace *space, const struct h5_datatype *t)
{
	unsigned count = 0;

	h5_buf_byte(out, '(');
	if (space)
		add_dims(out, LITERAL, space->dims, space->rank, &count);
	for (; t->class == H5_CLASS_ARRAY; t = t->array.base)
		add_dims(out, LITERAL, t->array.dims, t->array.rank, &count);
	h5_buf_text(out, count == 1 ? ",)" : ")");
	return count <= RANK_MAX;
}

static const struct h5_datatype *innermost(const struct h5_datatype *t)
{
	while (t->class == H5_CLASS_ARRAY)
		t = t->array.base;
	return t;
}

/* ["b","<f8",[3]] or ("b", '<f8', (3,)) */
static bool field(struct h5_buf *out, const struct h5_member *m, enum form form)
{
	const struct h5_datatype *t = m->type;
	unsigned count = 0;
	bool good = true;

	h5_buf_byte(out, form == LITERAL ? '(' : '[');
	h5_json_string(out, m->name, strlen(m->name)); /* Python reads it as JSON does */
	h5_buf_text(out, comma(form));
	if (t->class != H5_CLASS_ARRAY) {
		good = type_numpy(out, t, form);
	} else if (form == LITERAL) {
		good = type_numpy(out, innermost(t), form);
		h5_buf_text(out, ", ");
		good = tuple(out, NULL, t) && good;
	} else {
		const struct h5_datatype *within = form == ZARR ? innermost(t) : t->array.base;

		good = type_numpy(out, within, form);
		h5_buf_text(out, ",[");
		for (; t != within; t = t->array.base)
			add_dims(out, form, t->array.dims, t->array.rank, &count);
		h5_buf_byte(out, ']');
		good = good && (form != ZARR || count <= RANK_MAX);
	}
	h5_buf_byte(out, form == LITERAL ? ')' : ']');
	return good && (!is_exact(form) || *m->name);
}

/* [["a","<i4"],["","|V4"],["b","<f8",[3]]] */
static bool fields(struct h5_buf *out, const struct h5_datatype *t, const struct h5_member *const *members,
		   enum form form)
{
	uint64_t at = 0;

	h5_buf_byte(out, '[');
	for (unsigned i = 0; i < t->compound.count && !out->err; i++) {
		const struct h5_member *m = members[i];

		if (m->offset < at)
			return false; /* members overlap, or are not in the order of their offsets */
		padding(out, form, at, m->offset);
		if (m->offset > at)
			h5_buf_text(out, comma(form));
		if (!field(out, m, form))
			return false;
		at = m->offset + m->type->size;
		if (i + 1 < t->compound.count || at < t->size)
			h5_buf_text(out, comma(form));
	}
	padding(out, form, at, t->size);
	h5_buf_byte(out, ']');
	return true;
}

static int by_offset(const void *a, const void *b)
{
	const struct h5_member *const *x = a, *const *y = b;

	return h5_compare((*x)->offset, (*y)->offset);
}

static bool compound(struct h5_buf *out, const struct h5_datatype *t, enum form form)
{
	unsigned count = t->compound.count;
	const struct h5_member **members = malloc((count + 1) * sizeof *members);
	bool good;

	if (!members) {
		out->err = -ENOMEM;
		return false;
	}
	for (unsigned i = 0; i < count; i++)
		members[i] = &t->compound.members[i];
	if (is_exact(form) && count)
		qsort(members, count, sizeof *members, by_offset);
	good = fields(out, t, members, form == WORD ? DESCR : form);
	free(members);
	return good;
}

/* h5py writes a complex number as a compound of r and i. Returns their type; NULL: the compound is no such
 * number. */
static const struct h5_datatype *complex_part(const struct h5_datatype *t)
{
	const struct h5_member *m = t->compound.members;

	if (t->compound.count != 2 || strcmp(m[0].name, "r") || strcmp(m[1].name, "i") || m[0].offset ||
	    m[1].offset != m[0].type->size || m[0].type->size != m[1].type->size ||
	    t->size != 2 * (uint64_t)m[0].type->size)
		return NULL;
	for (unsigned i = 0; i < 2; i++)
		if (m[i].type->class != H5_CLASS_FLOAT || !h5_datatype_is_ieee_float(m[i].type) ||
		    m[i].type->order != m[0].type->order || m[i].type->size < 4)
			return NULL;
	return m[0].type;
}

static bool type_numpy(struct h5_buf *out, const struct h5_datatype *t, enum form form)
{
	const struct h5_datatype *part;

	switch (t->class) {
	case H5_CLASS_INTEGER:
		return h5_datatype_is_native_integer(t) &&
		       word(out, form, order(t), t->is_signed ? 'i' : 'u', t->size);
	case H5_CLASS_BITFIELD:
		return is_exact(form) && h5_datatype_is_native_integer(t) &&
		       word(out, form, order(t), 'u', t->size);
	case H5_CLASS_FLOAT:
		return h5_datatype_is_ieee_float(t) && word(out, form, order(t), 'f', t->size);
	case H5_CLASS_STRING:
		return word(out, form, is_exact(form) ? '|' : 0, 'S', t->size);
	case H5_CLASS_OPAQUE:
		return word(out, form, '|', 'V', t->size);
	case H5_CLASS_ENUM:
		if (is_exact(form) && h5_datatype_is_boolean(t))
			return word(out, form, '|', 'b', 1);
		return type_numpy(out, t->enumeration.base, form);
	case H5_CLASS_COMPOUND:
		part = is_exact(form) ? complex_part(t) : NULL;
		if (part)
			return word(out, form, order(part), 'c', t->size);
		return h5_datatype_is_fixed(t) && compound(out, t, form);
	case H5_CLASS_COMPLEX:
		return h5_datatype_is_ieee_float(t->complex.base) && t->complex.base->size > 2 &&
		       word(out, form, order(t->complex.base), 'c', t->size);
	default:
		return false;
	}
}

void h5_datatype_numpy(const struct h5_datatype *type, struct h5_buf *out)
{
	size_t before = out->size;

	if (!type_numpy(out, type, WORD) && !out->err) {
		out->size = before;
		h5_buf_text(out, "object");
	}
}

bool h5_datatype_npy(const struct h5_datatype *type, const struct h5_dataspace *space, struct h5_buf *out)
{
	bool good;

	h5_buf_text(out, "{'descr': ");
	good = space->kind != H5_SPACE_NULL && type_numpy(out, innermost(type), LITERAL);
	h5_buf_text(out, ", 'fortran_order': False, 'shape': ");
	good = tuple(out, space, type) && good;
	h5_buf_text(out, ", }");
	return good;
}

bool h5_datatype_zarr(const struct h5_datatype *type, struct h5_buf *out)
{
	return type_numpy(out, type, ZARR);
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

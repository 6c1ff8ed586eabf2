/* Values as JSON, and as the text of attributes. */
#include "object/value_private.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "object/global_heap.h"

#include <assert.h>
#include <string.h>

/* After so many elements or members h5_interrupt_check() is called: some floats take a tenth of a
 * millisecond. */
enum { CHECKED = 64 };

/* ---- integers ---- */

/* Makes groups of nine digits, the lowest one first. */
static void decimal(struct h5_buf *out, struct h5_bignum *v)
{
	uint32_t group[H5_BIGNUM_LIMBS * 32 / 29];
	unsigned n = 0;

	do
		group[n++] = h5_bignum_div(v, 1000000000);
	while (v->n);
	h5_buf_printf(out, "%u", group[--n]);
	while (n)
		h5_buf_printf(out, "%09u", group[--n]);
}

static void whole_integer(struct h5_buf *out, uint64_t v, unsigned size, bool is_signed)
{
	uint64_t most = UINT64_MAX >> (64 - 8 * size);
	char text[24], *p = text + sizeof text;
	bool negative = is_signed && v > most / 2;

	if (negative)
		v = most - v + 1;
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	if (negative)
		*--p = '-';
	h5_buf_add(out, p, (size_t)(text + sizeof text - p));
}

void h5_integer_text(struct h5_buf *out, const struct h5_datatype *type, const uint8_t *data)
{
	unsigned precision = type->precision;
	bool is_signed = type->is_signed || type->class == H5_CLASS_TIME;
	struct h5_bignum v, modulus;

	if (h5_datatype_is_native_integer(type)) {
		whole_integer(out, h5_datatype_bits(type, data), type->size, is_signed);
		return;
	}
	h5_element_bits(type, data, type->bit_offset, precision, &v);
	if (is_signed && h5_bignum_bits(&v) == precision) {
		h5_bignum_set(&modulus, 1);
		h5_bignum_shift_left(&modulus, precision);
		h5_bignum_sub(&modulus, &v);
		h5_bignum_copy(&v, &modulus);
		h5_buf_byte(out, '-');
	}
	decimal(out, &v);
}

/* ---- values ---- */

/* If `bare`, a string is written without quotes and escapes: that is for a value that stands alone. */
static int value(const struct h5_value_context *context, const struct h5_datatype *t, const uint8_t *data,
		 bool bare, struct h5_buf *out);

/* Writes the elements at *data, nested by dimension, and moves *data behind them. Each of them writes a byte
 * at least, so the limit of the buffer bounds the walk. */
static int array(const struct h5_value_context *context, const struct h5_datatype *base, unsigned rank,
		 const uint64_t *dims, const uint8_t **data, struct h5_buf *out)
{
	struct h5_json list;
	int rc = 0;

	if (!rank) {
		rc = value(context, base, *data, false, out);
		*data += base->size;
		return rc;
	}
	list = h5_json_array(out);
	for (uint64_t i = 0; i < dims[0] && !rc; i++) {
		rc = i % CHECKED ? 0 : h5_interrupt_check();
		if (!rc)
			rc = array(context, base, rank - 1, dims + 1, data, h5_json_item(&list));
		if (!rc)
			rc = out->err;
	}
	h5_json_close(&list);
	return rc;
}

/* The length of a fixed-length string without its padding. */
static size_t string_length(const struct h5_datatype *t, const uint8_t *data)
{
	char pad = t->string.padding == H5_PAD_SPACEPAD ? ' ' : 0;
	size_t n = t->size;

	if (t->string.padding == H5_PAD_NULLTERM)
		return strnlen((const char *)data, (size_t)n);
	while (n && data[n - 1] == pad)
		n--;
	return n;
}

/* A variable-length element, as it is stored. Specification IV.A.2.d, variable-length types.
 *
 *   offset  size  field
 *        0     4  length: number of elements of the base type
 *        4     O  address of the global heap collection, 0 or undefined: nothing is stored
 *              4  index of the object in it                                             */
struct vlen_element {
	uint64_t count, address;
	uint32_t index;
};

static int vlen_decode(struct h5_file *file, const struct h5_datatype *t, const uint8_t *element,
		       struct vlen_element *v)
{
	struct h5_reader r = h5_file_reader(file, element, t->size, H5_UNDEF);

	v->count = h5_read_u32(&r);
	v->address = h5_read_offset(&r);
	v->index = h5_read_u32(&r);
	if (!v->address || v->address == H5_UNDEF)
		v->count = 0;
	return h5_reader_check(&r, "variable-length element");
}

int h5_value_vlen_open(struct h5_file *file, const struct h5_datatype *t, const uint8_t *element,
		       struct h5_lru_entry **ref, const uint8_t **data, uint64_t *count)
{
	struct vlen_element v;
	uint64_t bytes;
	size_t size;
	int rc = vlen_decode(file, t, element, &v);

	*ref = NULL;
	*count = 0;
	if (rc || !v.count)
		return rc;
	rc = h5_interrupt_check();
	if (!rc)
		rc = h5_global_heap_get(file, v.address, v.index, ref, data, &size);
	if (rc)
		return rc;
	if (!h5_mul(v.count, t->vlen.is_string ? 1 : t->vlen.base->size, &bytes) || bytes > size) {
		h5_file_put(file, *ref);
		*ref = NULL;
		return h5_fail(-EUCLEAN, v.address,
			       "variable-length element: longer than its global heap object");
	}
	*count = v.count;
	return 0;
}

static int vlen_string(struct h5_file *file, const struct h5_datatype *t, const uint8_t *element, bool bare,
		       struct h5_buf *out)
{
	struct h5_lru_entry *ref;
	const uint8_t *data;
	uint64_t n;
	int rc = h5_value_vlen_open(file, t, element, &ref, &data, &n);

	if (rc)
		return rc;
	if (n)
		h5_string_text(out, (const char *)data, strnlen((const char *)data, (size_t)n), bare);
	else
		h5_string_text(out, "", 0, bare);
	h5_file_put(file, ref);
	return 0;
}

int h5_value_vlen_string(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			 struct h5_buf *out)
{
	struct h5_lru_entry *ref;
	const uint8_t *bytes;
	uint64_t n;
	int rc = h5_value_vlen_open(file, type, data, &ref, &bytes, &n);

	if (!rc && n)
		h5_buf_add(out, bytes, (size_t)n);
	h5_file_put(file, ref);
	return rc ? rc : out->err;
}

int h5_value_vlen_length(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			 uint64_t *length)
{
	struct vlen_element v;
	int rc = vlen_decode(file, type, data, &v);

	*length = v.count;
	return rc;
}

static int vlen(const struct h5_value_context *context, const struct h5_datatype *t, const uint8_t *element,
		bool bare, struct h5_buf *out)
{
	struct h5_lru_entry *ref;
	const uint8_t *data;
	uint64_t n;
	int rc;

	if (t->vlen.is_string)
		return vlen_string(context->file, t, element, bare, out);
	rc = h5_value_vlen_open(context->file, t, element, &ref, &data, &n);
	if (!rc)
		rc = array(context, t->vlen.base, 1, &n, &data, out);
	h5_file_put(context->file, ref);
	return rc;
}

static void float_json(const struct h5_datatype *t, const uint8_t *data, bool bare, struct h5_buf *out)
{
	char text[H5_FLOAT_TEXT_MAX];

	if (h5_float_format(t, data, text))
		h5_buf_text(out, text);
	else
		h5_string_text(out, text, strlen(text), bare);
}

static void opaque(const struct h5_datatype *t, const uint8_t *data, bool bare, struct h5_buf *out)
{
	static const char digits[] = "0123456789abcdef";

	if (!bare)
		h5_buf_byte(out, '"');
	for (uint32_t i = 0; i < t->size && !out->err; i++)
		h5_buf_add(out, (const char[]){digits[data[i] >> 4], digits[data[i] & 15]}, 2);
	if (!bare)
		h5_buf_byte(out, '"');
}

static void enumeration(const struct h5_datatype *t, const uint8_t *data, bool bare, struct h5_buf *out)
{
	const struct h5_enum_member *m = h5_datatype_enum_member(t, data);

	if (m)
		h5_string_text(out, m->name, strlen(m->name), bare);
	else
		h5_integer_text(out, t->enumeration.base, data);
}

static int compound(const struct h5_value_context *context, const struct h5_datatype *t, const uint8_t *data,
		    struct h5_buf *out)
{
	struct h5_json object = h5_json_object(out);
	int rc = 0;

	for (unsigned i = 0; i < t->compound.count && !rc; i++) {
		const struct h5_member *m = &t->compound.members[i];

		rc = i % CHECKED ? 0 : h5_interrupt_check();
		if (!rc)
			rc = value(context, m->type, data + m->offset, false, h5_json_key(&object, m->name));
		if (!rc)
			rc = out->err;
	}
	h5_json_close(&object);
	return rc;
}

static int value(const struct h5_value_context *context, const struct h5_datatype *t, const uint8_t *data,
		 bool bare, struct h5_buf *out)
{
	switch (t->class) {
	case H5_CLASS_INTEGER:
	case H5_CLASS_BITFIELD:
	case H5_CLASS_TIME:
		h5_integer_text(out, t, data);
		return 0;
	case H5_CLASS_FLOAT:
		float_json(t, data, bare, out);
		return 0;
	case H5_CLASS_STRING:
		h5_string_text(out, (const char *)data, string_length(t, data), bare);
		return 0;
	case H5_CLASS_OPAQUE:
		opaque(t, data, bare, out);
		return 0;
	case H5_CLASS_ENUM:
		enumeration(t, data, bare, out);
		return 0;
	case H5_CLASS_COMPOUND:
		return compound(context, t, data, out);
	case H5_CLASS_REFERENCE:
		return h5_reference_json(context, t, data, bare, out);
	case H5_CLASS_VLEN:
		return vlen(context, t, data, bare, out);
	case H5_CLASS_ARRAY:
		return array(context, t->array.base, t->array.rank, t->array.dims, &data, out);
	case H5_CLASS_COMPLEX:
		return array(context, t->complex.base, 1, &(const uint64_t){2}, &data, out);
	}
	assert(false); /* no decoded type has another class */
	return -EINVAL;
}

int h5_value_json(const struct h5_value_context *context, const struct h5_datatype *type, const uint8_t *data,
		  struct h5_buf *out)
{
	int rc = value(context, type, data, false, out);

	return rc ? rc : out->err;
}

int h5_value_text(const struct h5_value_context *context, const struct h5_datatype *type,
		  const struct h5_dataspace *space, const uint8_t *data, struct h5_buf *out)
{
	int rc = 0;

	if (space->kind == H5_SPACE_SIMPLE)
		rc = array(context, type, space->rank, space->dims, &data, out);
	else if (space->kind == H5_SPACE_SCALAR)
		rc = value(context, type, data, true, out);
	return rc ? rc : out->err;
}

#include "format/datatype_make.h"

#include "base/checked.h"
#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct h5_datatype *make(enum h5_class class, uint32_t size)
{
	struct h5_datatype *t = calloc(1, sizeof *t);

	assert(size);
	if (!t)
		return NULL;
	t->class = class;
	t->version = 1;
	t->size = size;
	return t;
}

struct h5_datatype *h5_datatype_make_integer(uint32_t size, bool is_signed, enum h5_byte_order order)
{
	struct h5_datatype *t = make(H5_CLASS_INTEGER, size);

	assert(size <= 8);
	if (!t)
		return NULL;
	t->order = size > 1 ? order : H5_ORDER_LE;
	t->precision = (uint16_t)(8 * size);
	t->is_signed = is_signed;
	return t;
}

struct h5_datatype *h5_datatype_make_float(uint32_t size, enum h5_byte_order order)
{
	unsigned exponent = size == 2 ? 5 : size == 4 ? 8 : 11;
	struct h5_datatype *t = make(H5_CLASS_FLOAT, size);

	assert(size == 2 || size == 4 || size == 8);
	if (!t)
		return NULL;
	t->order = order;
	t->precision = (uint16_t)(8 * size);
	t->fl.norm = H5_NORM_IMPLIED;
	t->fl.sign = (uint8_t)(8 * size - 1);
	t->fl.exponent_size = (uint8_t)exponent;
	t->fl.mantissa_size = (uint8_t)(8 * size - 1 - exponent);
	t->fl.exponent = t->fl.mantissa_size;
	t->fl.bias = (1u << (exponent - 1)) - 1;
	return t;
}

struct h5_datatype *h5_datatype_make_string(uint32_t size, enum h5_string_padding padding,
					    enum h5_charset charset)
{
	struct h5_datatype *t = make(H5_CLASS_STRING, size);

	if (!t)
		return NULL;
	t->string.padding = padding;
	t->string.charset = charset;
	return t;
}

/* An element is length, address and index. libhdf5 makes such a type of the machine's unsigned char. */
struct h5_datatype *h5_datatype_make_vlen_string(uint8_t size_of_offsets, enum h5_charset charset)
{
	struct h5_datatype *t = make(H5_CLASS_VLEN, 4u + size_of_offsets + 4u);

	if (!t)
		return NULL;
	t->vlen.is_string = true;
	t->vlen.padding = H5_PAD_NULLTERM;
	t->vlen.charset = charset;
	t->vlen.base = h5_datatype_make_integer(1, false, H5_ORDER_LE);
	if (t->vlen.base)
		return t;
	h5_datatype_free(t);
	return NULL;
}

struct h5_datatype *h5_datatype_make_opaque(uint32_t size, const char *tag)
{
	struct h5_datatype *t = make(H5_CLASS_OPAQUE, size);

	if (!t)
		return NULL;
	t->opaque.tag = strdup(tag);
	if (t->opaque.tag)
		return t;
	h5_datatype_free(t);
	return NULL;
}

struct h5_datatype *h5_datatype_make_boolean(void)
{
	/* An enumeration of integers of one byte. */
	static const uint8_t message[] = {0x38, 2,   0,	  0, 1,	  0,   0,   0,	 0x10, 8,   0,
					  0,	1,   0,	  0, 0,	  0,   0,   8,	 0,    'F', 'A',
					  'L',	'S', 'E', 0, 'T', 'R', 'U', 'E', 0,    0,   1};
	struct h5_reader r = h5_reader_init(message, sizeof message, H5_UNDEF, 8, 8);
	struct h5_datatype *t;
	int rc = h5_datatype_decode(&r, &t);

	assert(!rc || rc == -ENOMEM);
	return rc ? NULL : t;
}

struct h5_datatype *h5_datatype_make_array(unsigned rank, const uint64_t *dims, struct h5_datatype *base)
{
	struct h5_datatype *t = NULL;
	uint64_t count, size;

	assert(rank && rank <= H5_RANK_MAX);
	if (h5_product(dims, rank, &count) && h5_mul(count, base->size, &size) && size && size <= UINT32_MAX)
		t = make(H5_CLASS_ARRAY, (uint32_t)size);
	if (!t) {
		h5_datatype_free(base);
		return NULL;
	}
	t->array.rank = rank;
	memcpy(t->array.dims, dims, rank * sizeof *dims);
	t->array.count = count;
	t->array.base = base;
	return t;
}

struct h5_datatype *h5_datatype_make_compound(uint32_t size, unsigned room)
{
	struct h5_datatype *t = make(H5_CLASS_COMPOUND, size);

	if (!t)
		return NULL;
	t->compound.members = calloc(room + 1u, sizeof *t->compound.members);
	if (t->compound.members)
		return t;
	h5_datatype_free(t);
	return NULL;
}

int h5_datatype_add_member(struct h5_datatype *compound, const char *name, uint64_t offset,
			   struct h5_datatype *type)
{
	struct h5_member *m = &compound->compound.members[compound->compound.count];

	assert(offset <= compound->size && type->size <= compound->size - offset);
	m->name = strdup(name);
	if (!m->name) {
		h5_datatype_free(type);
		return -ENOMEM;
	}
	m->offset = offset;
	m->type = type;
	compound->compound.count++;
	return 0;
}

struct h5_datatype *h5_datatype_make_complex(uint32_t size, enum h5_byte_order order)
{
	struct h5_datatype *t = h5_datatype_make_compound(size, 2), *part;

	for (unsigned i = 0; t && i < 2; i++) {
		part = h5_datatype_make_float(size / 2, order);
		if (!part || h5_datatype_add_member(t, i ? "i" : "r", i * size / 2, part)) {
			h5_datatype_free(t);
			t = NULL;
		}
	}
	return t;
}

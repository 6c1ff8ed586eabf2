/* Attributes as JSON, in the form that programs write which convert netCDF-4 and HDF5 files to Zarr. What
 * HDF5 itself keeps in attributes to describe dimensions is left out, since Zarr says it in another way. */
#include "base/base64.h"
#include "base/error.h"
#include "base/writer.h"
#include "format/convert.h"
#include "view/zarr.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	VALUE_MAX = 1 << 20, /* bytes; a longer value is left out */
	DTYPE_MAX = 1 << 16,
};

static bool is_internal(const char *name, bool is_scale)
{
	static const char *const all[] = {"REFERENCE_LIST",	 "DIMENSION_LIST", "_Netcdf4Dimid",
					  "_Netcdf4Coordinates", "_NCProperties",  "_nc3_strict",
					  "_ARRAY_DIMENSIONS"};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(name, all[i]))
			return true;
	return is_scale && (!strcmp(name, "CLASS") || !strcmp(name, "NAME"));
}

static bool has_form(const struct h5_datatype *t)
{
	return !h5_datatype_has_references(t) && t->class != H5_CLASS_OPAQUE && t->class != H5_CLASS_TIME;
}

/* A float that is no double, nor narrower: the shortest decimal of its own. */
static int add_unusual_float(const struct h5_value_context *context, const struct h5_datatype *t,
			     const uint8_t *data, struct h5_buf *out)
{
	size_t begin = out->size;
	bool is_whole = true;
	int rc = h5_value_json(context, t, data, out);

	if (rc)
		return rc;
	if (out->data[begin] == '"') {
		out->size -= 2;
		memmove(out->data + begin, out->data + begin + 1, out->size - begin);
		return 0;
	}
	for (size_t i = begin; i < out->size; i++)
		is_whole &= !strchr(".eE", out->data[i]);
	if (is_whole)
		h5_buf_text(out, ".0");
	return out->err;
}

/* Readers have doubles: the shortest decimal that is the very same double, with a point or an exponent. JSON
 * has no NaN and no infinities, but all who read and write attributes of Zarr take these words. */
static int add_float(const struct h5_value_context *context, const struct h5_datatype *t, const uint8_t *data,
		     struct h5_buf *out)
{
	static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
	double value;
	char text[32];

	if (!h5_datatype_is_ieee_float(t))
		return add_unusual_float(context, t, data, out);
	h5_convert_to_doubles(t, data, 1, &value);
	if (!isfinite(value)) {
		h5_buf_text(out, words[isnan(value) ? 0 : value > 0 ? 1 : 2]);
		return out->err;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	h5_buf_text(out, text);
	if (!strpbrk(text, ".e"))
		h5_buf_text(out, ".0");
	return out->err;
}

/* The type of both parts of a complex number; NULL: it is another type. */
static int part_of_complex(const struct h5_datatype *t, const struct h5_datatype **part)
{
	struct h5_buf dtype;
	int rc;

	*part = t->class == H5_CLASS_COMPLEX ? t->complex.base : NULL;
	if (t->class != H5_CLASS_COMPOUND || t->compound.count != 2)
		return 0;
	h5_buf_init(&dtype, DTYPE_MAX);
	if (h5_datatype_zarr(t, &dtype) && !dtype.err && dtype.data[0] == '"')
		*part = t->compound.members[0].type;
	rc = dtype.err;
	h5_buf_release(&dtype);
	return h5_is_passing(rc) ? rc : 0;
}

/* A complex number is a pair, as in a fill value of version 3. */
static int add_element(const struct h5_value_context *context, const struct h5_datatype *t,
		       const uint8_t *data, struct h5_buf *out)
{
	const struct h5_datatype *part;
	int rc = part_of_complex(t, &part);

	if (!rc && part) {
		h5_buf_byte(out, '[');
		rc = add_element(context, part, data, out);
		h5_buf_byte(out, ',');
		if (!rc)
			rc = add_element(context, part, data + part->size, out);
		h5_buf_byte(out, ']');
	}
	if (rc || part)
		return rc;
	if (t->class == H5_CLASS_FLOAT)
		return add_float(context, t, data, out);
	if (t->class == H5_CLASS_ENUM && h5_datatype_is_boolean(t)) {
		h5_buf_text(out, *data ? "true" : "false");
		return out->err;
	}
	return h5_value_json(context, t->class == H5_CLASS_ENUM ? t->enumeration.base : t, data, out);
}

static void add_brackets(struct h5_buf *out, const uint64_t *dims, unsigned rank, uint64_t i, char bracket)
{
	for (unsigned d = rank; d-- > 0 && i % dims[d] == 0; i /= dims[d])
		h5_buf_byte(out, bracket);
}

/* Elements, at least one, nested by dimension. Those of an array type have dimensions of their own. */
static int add_list(const struct h5_value_context *context, const struct h5_datatype *t, const uint64_t *dims,
		    unsigned rank, uint64_t count, const uint8_t *data, struct h5_buf *out)
{
	int rc = 0;

	for (uint64_t i = 0; i < count && !rc; i++) {
		if (i)
			h5_buf_byte(out, ',');
		add_brackets(out, dims, rank, i, '[');
		if (t->class == H5_CLASS_ARRAY)
			rc = add_list(context, t->array.base, t->array.dims, t->array.rank, t->array.count,
				      data + i * t->size, out);
		else
			rc = add_element(context, t, data + i * t->size, out);
		add_brackets(out, dims, rank, i + 1, ']');
		rc = rc ? rc : out->err;
	}
	return rc;
}

/* A single value stands alone, whatever the rank: netCDF-4 writes all numbers as arrays of one. */
static int add_value(const struct h5_value_context *context, const struct h5_attribute *a, struct h5_buf *out)
{
	const struct h5_dataspace *space = &a->space;

	if (space->kind == H5_SPACE_NULL) {
		h5_buf_text(out, a->type->class == H5_CLASS_STRING ? "\"\"" : "null");
		return out->err;
	}
	if (!space->elements) {
		h5_buf_text(out, "[]");
		return out->err;
	}
	return add_list(context, a->type, space->dims, space->elements == 1 ? 0 : space->rank,
			space->elements, a->data, out);
}

/* In version 3 xarray expects the fill value of floats in this form. */
static bool add_fill(const struct h5_zarr_array *array, const struct h5_attribute *a, struct h5_buf *out)
{
	double value;
	uint64_t bits;
	uint8_t bytes[8];

	if (!array || array->version != H5_ZARR_V3 || h5_zarr_type(array->dataset)->class != H5_CLASS_FLOAT ||
	    strcmp(a->name, "_FillValue") || a->space.elements != 1 || !h5_datatype_is_number(a->type))
		return false;
	h5_convert_to_doubles(a->type, a->data, 1, &value);
	memcpy(&bits, &value, sizeof bits);
	h5_uint_to(bytes, bits, sizeof bytes);
	h5_buf_byte(out, '"');
	h5_base64(out, bytes, sizeof bytes);
	h5_buf_byte(out, '"');
	return true;
}

/* What cannot be read is left out. */
static int add_attribute(const struct h5_view *v, const struct h5_zarr_array *array,
			 const struct h5_attribute *a, struct h5_json *object)
{
	struct h5_buf text;
	int rc = 0;

	h5_buf_init(&text, VALUE_MAX);
	if (!add_fill(array, a, &text))
		rc = add_value(&v->context, a, &text);
	rc = rc ? rc : text.err;
	if (!rc)
		h5_buf_add(h5_json_key(object, a->name), text.data, text.size);
	h5_buf_release(&text);
	return h5_is_passing(rc) ? rc : object->out->err;
}

int h5_zarr_add_attributes(const struct h5_view *v, const struct h5_zarr_array *array, struct h5_buf *out)
{
	struct h5_attribute_walk attributes;
	const struct h5_attribute *a;
	struct h5_json object = h5_json_object(out);
	bool is_scale;
	int rc = h5_zarr_is_scale(v->file, v->object, &is_scale);

	if (rc)
		return rc;
	rc = h5_attribute_begin(&attributes, v->file, v->object);
	while (!rc && (rc = h5_attribute_next(&attributes, &a)) > 0)
		rc = a->type && has_form(a->type) && !is_internal(a->name, is_scale)
			     ? add_attribute(v, array, a, &object)
			     : 0;
	h5_attribute_end(&attributes);
	/* -EFBIG: it would take too long. */
	if (h5_is_passing(rc) || rc == -EFBIG)
		return rc;
	rc = 0;
	if (array && array->version == H5_ZARR_V2)
		rc = h5_zarr_add_dimensions(v, array, h5_json_key(&object, "_ARRAY_DIMENSIONS"));
	h5_json_close(&object);
	return rc ? rc : out->err;
}

/* The metadata of an array: `.zarray` of version 2, `zarr.json` of version 3. */
#include "base/base64.h"
#include "base/checked.h"
#include "view/strings.h"
#include "view/zarr.h"

#include <stdlib.h>
#include <string.h>

enum { DTYPE_MAX = 1 << 20 };

static void add_dims(struct h5_buf *out, const uint64_t *dims, unsigned rank)
{
	struct h5_json list = h5_json_array(out);

	for (unsigned i = 0; i < rank; i++)
		h5_json_number(h5_json_item(&list), dims[i]);
	h5_json_close(&list);
}

static struct h5_buf *add_text(struct h5_json *object, const char *key, const char *text)
{
	struct h5_buf *out = h5_json_key(object, key);

	h5_json_text(out, text);
	return out;
}

/* ---- filters ---- */

static const char *const blosc_names[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
static const char *const blosc_shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};

enum { TYPE_SIZE = 2, LEVEL = 4, SHUFFLE = 5, COMPRESSOR = 6 /* values of blosc */ };

static uint32_t value_of(const struct h5_filter_info *f, unsigned i, uint32_t otherwise)
{
	return i < f->count ? f->values[i] : otherwise;
}

static uint64_t level_of(const struct h5_filter_info *f, unsigned i)
{
	return h5_min(value_of(f, i, 1), 9);
}

/* Decoding depends on none of these values but the size of the elements that were shuffled. */
static void add_blosc(struct h5_json *values, const struct h5_filter_info *f, enum h5_zarr_version version)
{
	uint32_t shuffle = (uint32_t)h5_min(value_of(f, SHUFFLE, 1), 2);

	add_text(values, "cname", blosc_names[h5_min(value_of(f, COMPRESSOR, 0), 5)]);
	h5_json_number(h5_json_key(values, "clevel"), level_of(f, LEVEL));
	if (version == H5_ZARR_V2)
		h5_json_number(h5_json_key(values, "shuffle"), shuffle);
	else
		add_text(values, "shuffle", blosc_shuffles[shuffle]);
	if (version == H5_ZARR_V3)
		h5_json_number(h5_json_key(values, "typesize"), h5_max(value_of(f, TYPE_SIZE, 1), 1));
	h5_json_number(h5_json_key(values, "blocksize"), 0);
}

enum { SHUFFLE_FILTER = 2, DEFLATE = 1, BZIP2 = 307, BLOSC = 32001, ZSTD = 32015 };

static void add_values(struct h5_json *values, const struct h5_filter_info *f, enum h5_zarr_version version)
{
	switch (f->id) {
	case SHUFFLE_FILTER:
		h5_json_number(h5_json_key(values, "elementsize"), value_of(f, 0, 1));
		break;
	case BLOSC:
		add_blosc(values, f, version);
		break;
	case ZSTD:
		h5_buf_printf(h5_json_key(values, "level"), "%d",
			      (int)h5_min(value_of(f, 0, 3) & INT32_MAX, 22));
		if (version == H5_ZARR_V3)
			h5_buf_text(h5_json_key(values, "checksum"), "false");
		break;
	default:
		h5_json_number(h5_json_key(values, "level"), level_of(f, 0));
		break;
	}
}

/* Version 3 has names of its own for some; the others have those of the library numcodecs. */
static const char *name_of(const struct h5_filter_info *f, enum h5_zarr_version version)
{
	bool v3 = version == H5_ZARR_V3;

	switch (f->id) {
	case SHUFFLE_FILTER:
		return v3 ? "numcodecs.shuffle" : "shuffle";
	case BLOSC:
		return "blosc";
	case ZSTD:
		return "zstd";
	case BZIP2:
		return v3 ? "numcodecs.bz2" : "bz2";
	default:
		assert(f->id == DEFLATE);
		return v3 ? "numcodecs.zlib" : "zlib";
	}
}

static void add_codec(struct h5_buf *out, const struct h5_filter_info *f, enum h5_zarr_version version)
{
	struct h5_json codec = h5_json_object(out), values;

	if (version == H5_ZARR_V2) {
		add_text(&codec, "id", name_of(f, version));
		add_values(&codec, f, version);
	} else {
		add_text(&codec, "name", name_of(f, version));
		values = h5_json_object(h5_json_key(&codec, "configuration"));
		add_values(&values, f, version);
		h5_json_close(&values);
	}
	h5_json_close(&codec);
}

/* The last filter is the compressor if it is one; those before are filters. */
static void add_filters_v2(const struct h5_zarr_array *a, struct h5_json *object)
{
	const struct h5_filter_info *f = a->dataset->pipeline.filters;
	unsigned n = a->codecs;
	struct h5_buf *out = h5_json_key(object, "compressor");
	struct h5_json list;

	if (n && f[n - 1].id != SHUFFLE_FILTER)
		add_codec(out, &f[--n], H5_ZARR_V2);
	else
		h5_buf_text(out, "null");
	h5_json_key(object, "filters");
	if (a->is_strings) {
		h5_buf_text(out, "[{\"id\":\"vlen-utf8\"}]");
	} else if (!n) {
		h5_buf_text(out, "null");
	} else {
		list = h5_json_array(out);
		for (unsigned i = 0; i < n; i++)
			add_codec(h5_json_item(&list), &f[i], H5_ZARR_V2);
		h5_json_close(&list);
	}
}

static void add_codecs_v3(const struct h5_zarr_array *a, const struct h5_buf *dtype, struct h5_json *object)
{
	struct h5_json list = h5_json_array(h5_json_key(object, "codecs"));
	struct h5_buf *out = h5_json_item(&list);

	if (a->is_strings)
		h5_buf_text(out, "{\"name\":\"vlen-utf8\",\"configuration\":{}}");
	else if (dtype->data[1] == '|')
		h5_buf_text(out, "{\"name\":\"bytes\"}");
	else
		h5_buf_printf(out, "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"%s\"}}",
			      dtype->data[1] == '>' ? "big" : "little");
	for (unsigned i = 0; i < a->codecs; i++)
		add_codec(h5_json_item(&list), &a->dataset->pipeline.filters[i], H5_ZARR_V3);
	h5_json_close(&list);
}

/* ---- types ---- */

/* As NumPy writes it: a string of JSON, or an array. */
static int make_dtype(const struct h5_zarr_array *a, struct h5_buf *dtype)
{
	h5_buf_init(dtype, DTYPE_MAX);
	if (a->is_strings)
		h5_buf_text(dtype, "\"|O\"");
	else
		h5_datatype_zarr(h5_zarr_type(a->dataset), dtype);
	return dtype->err;
}

static char kind_of(const struct h5_buf *dtype)
{
	return dtype->data[0] == '"' ? dtype->data[2] : 'V';
}

static void add_type_v3(const struct h5_zarr_array *a, const struct h5_buf *dtype, struct h5_buf *out)
{
	unsigned long size = h5_zarr_type(a->dataset)->size;
	char kind = kind_of(dtype);

	if (kind == 'O')
		h5_buf_text(out, "\"string\"");
	else if (kind == 'b')
		h5_buf_text(out, "\"bool\"");
	else if (kind == 'S')
		h5_buf_printf(out,
			      "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":%lu}}",
			      size);
	else
		h5_buf_printf(out, "\"%s%lu\"",
			      kind == 'i'   ? "int"
			      : kind == 'u' ? "uint"
			      : kind == 'f' ? "float"
					    : "complex",
			      8 * size);
}

/* ---- the fill value ---- */

static int add_complex(const struct h5_value_context *context, const struct h5_datatype *t,
		       const uint8_t *data, struct h5_buf *out)
{
	const struct h5_datatype *part =
		t->class == H5_CLASS_COMPOUND ? t->compound.members[0].type : t->complex.base;
	struct h5_json pair = h5_json_array(out);
	int rc = h5_value_json(context, part, data, h5_json_item(&pair));

	if (!rc)
		rc = h5_value_json(context, part, data + part->size, h5_json_item(&pair));
	h5_json_close(&pair);
	return rc;
}

static int add_element(const struct h5_view *v, const struct h5_zarr_array *a, char kind, const uint8_t *data,
		       struct h5_buf *out)
{
	const struct h5_datatype *t = h5_zarr_type(a->dataset);

	switch (kind) {
	case 'O':
		h5_buf_text(out, "\"\"");
		return out->err;
	case 'b':
		h5_buf_text(out, *data ? "true" : "false");
		return out->err;
	case 'c':
		return add_complex(&v->context, t, data, out);
	case 'S':
	case 'V':
		h5_buf_byte(out, '"');
		h5_base64(out, data, t->size);
		h5_buf_byte(out, '"');
		return out->err;
	default:
		return h5_value_json(&v->context, t->class == H5_CLASS_ENUM ? t->enumeration.base : t, data,
				     out);
	}
}

static int add_fill(const struct h5_view *v, const struct h5_zarr_array *a, char kind, struct h5_buf *out)
{
	const struct h5_dataset *d = a->dataset;
	uint8_t *value = calloc(1, d->type->size);
	int rc;

	if (!value)
		return -ENOMEM;
	if (d->fill && !d->fill_never)
		memcpy(value, d->fill, d->type->size);
	if (a->has_padding)
		h5_strings_pad_with_zeros(d->type, value);
	rc = add_element(v, a, kind, value, out);
	free(value);
	return rc;
}

/* xarray takes a fill value for the mark of missing data. So there is none if it is no such mark, and stands
 * for nothing: all chunks are stored, or shown as if they were. */
static int has_fill(const struct h5_zarr_array *a, bool *has)
{
	bool complete;
	int rc;

	*has = a->has_mark;
	if (a->has_mark || a->is_filled)
		return 0;
	rc = h5_zarr_is_complete(a, &complete);
	*has = !complete;
	return rc;
}

/* ---- both versions ---- */

static int add_v2(const struct h5_view *v, const struct h5_zarr_array *a, const struct h5_buf *dtype,
		  struct h5_json *object)
{
	struct h5_buf *out = object->out;
	bool has;
	int rc = has_fill(a, &has);

	h5_json_number(h5_json_key(object, "zarr_format"), 2);
	add_dims(h5_json_key(object, "shape"), a->shape, a->rank);
	add_dims(h5_json_key(object, "chunks"), a->chunk, a->rank);
	h5_buf_add(h5_json_key(object, "dtype"), dtype->data, dtype->size);
	h5_json_key(object, "fill_value");
	if (!rc && has)
		rc = add_fill(v, a, kind_of(dtype), out);
	else
		h5_buf_text(out, "null");
	add_text(object, "order", "C");
	add_text(object, "dimension_separator", ".");
	add_filters_v2(a, object);
	return rc;
}

static int add_v3(const struct h5_view *v, const struct h5_zarr_array *a, const struct h5_buf *dtype,
		  struct h5_json *object)
{
	struct h5_buf *out = object->out;
	int rc;

	h5_json_number(h5_json_key(object, "zarr_format"), 3);
	add_text(object, "node_type", "array");
	add_dims(h5_json_key(object, "shape"), a->shape, a->rank);
	add_type_v3(a, dtype, h5_json_key(object, "data_type"));
	h5_buf_text(h5_json_key(object, "chunk_grid"),
		    "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":");
	add_dims(out, a->chunk, a->rank);
	h5_buf_text(out, "}}");
	h5_buf_text(h5_json_key(object, "chunk_key_encoding"),
		    "{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}}");
	h5_json_key(object, "fill_value");
	rc = add_fill(v, a, kind_of(dtype), out);
	add_codecs_v3(a, dtype, object);
	if (!rc)
		rc = h5_zarr_add_attributes(v, a, h5_json_key(object, "attributes"));
	return rc ? rc : h5_zarr_add_dimensions(v, a, h5_json_key(object, "dimension_names"));
}

int h5_zarr_add_array(const struct h5_view *v, const struct h5_zarr_array *a, struct h5_buf *out)
{
	struct h5_json object;
	struct h5_buf dtype;
	int rc = make_dtype(a, &dtype);

	if (!rc) {
		object = h5_json_object(out);
		rc = a->version == H5_ZARR_V2 ? add_v2(v, a, &dtype, &object) : add_v3(v, a, &dtype, &object);
		h5_json_close(&object);
	}
	h5_buf_release(&dtype);
	return rc ? rc : out->err;
}

void h5_zarr_add_group(struct h5_buf *out)
{
	h5_buf_text(out, "{\"zarr_format\":2}");
}

static void add_escape(struct h5_buf *out, const uint8_t *p, size_t size)
{
	uint32_t c = p[0] & (0x7fu >> size);

	for (size_t i = 1; i < size; i++)
		c = c << 6 | (p[i] & 0x3fu);
	if (c >= 0x10000)
		h5_buf_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	else
		h5_buf_printf(out, "\\u%04x", c);
}

void h5_zarr_add_ascii(struct h5_buf *out, const struct h5_buf *json)
{
	const uint8_t *p = (const uint8_t *)json->data, *plain = p, *end;

	if (!json->size)
		return;
	end = p + json->size;
	while (p < end) {
		/* The text is UTF-8: our own functions have written it. */
		size_t size = h5_utf8_sequence(p, (size_t)(end - p));

		if (size > 1) {
			h5_buf_add(out, plain, (size_t)(p - plain));
			add_escape(out, p, size);
			plain = p + size;
		}
		p += size ? size : 1;
	}
	h5_buf_add(out, plain, (size_t)(p - plain));
	if (json->err && !out->err)
		out->err = json->err;
}

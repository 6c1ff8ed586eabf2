/* The metadata of an object as one JSON document, with a line for each member. */
#include "view/document.h"
#include "view/views.h"

#include "base/error.h"
#include "filter/filter.h"
#include "object/json.h"
#include "object/object.h"

#include <inttypes.h>
#include <string.h>

enum {
	DOCUMENT_MAX = 1 << 26,
	VALUE_MAX = 1 << 20, /* most bytes of the text of an attribute; a longer one is left out */
};

static int json_shows(const struct h5_view *v)
{
	return v->object->kind != H5_OBJECT_UNKNOWN ? 0 : -ENOENT;
}

/* An array on one line. */
static struct h5_json list(struct h5_buf *out)
{
	struct h5_json array = h5_json_array(out);

	array.spaced = true;
	return array;
}

/* An object with a line for each member. */
static struct h5_json document(struct h5_buf *out, unsigned indent)
{
	struct h5_json object = h5_json_object(out);

	object.spaced = true;
	object.indent = indent;
	return object;
}

static void add_dims(struct h5_buf *out, const uint64_t *dims, unsigned rank)
{
	struct h5_json array = list(out);

	for (unsigned i = 0; i < rank; i++) {
		h5_json_item(&array);
		if (dims[i] == H5_UNLIMITED)
			h5_buf_text(out, "null");
		else
			h5_json_number(out, dims[i]);
	}
	h5_json_close(&array);
}

static void add_shape(struct h5_json *doc, const char *name, const struct h5_dataspace *space,
		      const uint64_t *dims)
{
	struct h5_buf *out = h5_json_key(doc, name);

	if (space->kind == H5_SPACE_NULL)
		h5_buf_text(out, "null");
	else
		add_dims(out, dims, space->rank);
}

static void add_type(struct h5_json *doc, const struct h5_datatype *type)
{
	struct h5_buf *out = h5_json_key(doc, "dtype"), text;

	h5_buf_init(&text, DOCUMENT_MAX);
	h5_datatype_numpy(type, &text);
	if (text.size && *text.data == '[')
		h5_buf_add(out, text.data, text.size); /* a descr is JSON */
	else
		h5_json_string(out, text.data, text.size);
	text.size = 0;
	h5_datatype_ddl(type, true, &text);
	h5_json_string(h5_json_key(doc, "type"), text.data, text.size);
	if (text.err)
		out->err = text.err;
	h5_buf_release(&text);
}

static void add_filter(struct h5_buf *out, const struct h5_filter_info *f)
{
	const struct h5_filter_ops *ops = h5_filter_find(f->id);
	const char *name = ops ? ops->name : f->name;
	struct h5_json object = h5_json_object(out), values;

	object.spaced = true;
	h5_json_number(h5_json_key(&object, "id"), f->id);
	h5_json_key(&object, "name");
	if (name)
		h5_json_text(out, name);
	else
		h5_buf_text(out, "null");
	values = list(h5_json_key(&object, "values"));
	for (unsigned i = 0; i < f->count; i++)
		h5_json_number(h5_json_item(&values), f->values[i]);
	h5_json_close(&values);
	h5_json_close(&object);
}

static void add_chunks(struct h5_json *doc, const struct h5_dataset *d)
{
	struct h5_json filters;

	add_dims(h5_json_key(doc, "chunks"), d->layout.chunked.dims, d->layout.chunked.rank);
	h5_json_text(h5_json_key(doc, "index"), h5_dataset_index_name(d));
	filters = list(h5_json_key(doc, "filters"));
	for (unsigned i = 0; i < d->pipeline.count; i++)
		add_filter(h5_json_item(&filters), &d->pipeline.filters[i]);
	h5_json_close(&filters);
}

/* Adds a value, or null if it is too long or cannot be read; then *omitted. */
static int add_value(const struct h5_view *v, const struct h5_datatype *type,
		     const struct h5_dataspace *space, const uint8_t *data, bool *omitted, struct h5_buf *out)
{
	struct h5_buf text;
	int rc = 0;

	h5_buf_init(&text, VALUE_MAX);
	if (space && space->kind == H5_SPACE_NULL)
		h5_buf_text(&text, "null");
	else if (space && space->kind == H5_SPACE_SIMPLE)
		rc = h5_value_text(&v->context, type, space, data, &text);
	else
		rc = h5_value_json(&v->context, type, data, &text);
	/* A value that cannot be read does not keep others from being shown. */
	*omitted = rc || text.err;
	if (*omitted)
		h5_buf_text(out, "null");
	else
		h5_buf_add(out, text.data, text.size);
	rc = rc ? rc : text.err;
	h5_buf_release(&text);
	return h5_is_passing(rc) ? rc : 0;
}

static int add_dataset(const struct h5_view *v, struct h5_json *doc)
{
	const struct h5_dataset *d = v->dataset;
	uint64_t bytes;
	bool omitted;
	int rc = 0;

	add_shape(doc, "shape", &d->space, d->space.dims);
	add_shape(doc, "maxshape", &d->space, d->space.max);
	if (d->size <= INT64_MAX)
		h5_json_number(h5_json_key(doc, "size"), d->size);
	h5_json_text(h5_json_key(doc, "layout"), h5_dataset_layout_name(d));
	if (h5_dataset_chunks(d))
		add_chunks(doc, d);
	if (d->fill_defined && d->fill)
		rc = add_value(v, d->type, NULL, d->fill, &omitted, h5_json_key(doc, "fill"));
	if (!rc)
		rc = h5_dataset_storage(d, &bytes);
	if (!rc)
		h5_json_number(h5_json_key(doc, "storage"), bytes);
	return h5_is_passing(rc) ? rc : 0;
}

/* ---- attributes ---- */

/* Three parts of the document, made by one walk; the latter two in buffers of their own. */
struct attributes {
	const struct h5_view *v;
	struct h5_json values, types, omitted;
};

static int add_attribute(struct attributes *s, const struct h5_attribute *a)
{
	struct h5_buf *out = h5_json_key(&s->values, a->name), type;
	bool omitted = true;
	int rc = 0;

	if (a->type)
		rc = add_value(s->v, a->type, &a->space, a->data, &omitted, out);
	else
		h5_buf_text(out, "null");
	h5_buf_init(&type, VALUE_MAX);
	if (a->type)
		h5_datatype_numpy_shaped(a->type, &a->space, &type);
	h5_json_string(h5_json_key(&s->types, a->name), type.data, type.size);
	if (!rc && h5_is_passing(type.err))
		rc = type.err;
	h5_buf_release(&type);
	if (omitted)
		h5_json_text(h5_json_item(&s->omitted), a->name);
	return rc ? rc : out->err;
}

/* Adds a part that was made in a buffer of its own, unless it is empty. */
static void add_part(struct h5_json *doc, const char *name, struct h5_json *part)
{
	struct h5_buf *text = part->out;

	h5_json_close(part);
	if (part->any) {
		struct h5_buf *out = h5_json_key(doc, name);

		h5_buf_add(out, text->data, text->size);
		if (text->err)
			out->err = text->err;
	}
	h5_buf_release(text);
}

static int add_attributes(const struct h5_view *v, struct h5_json *doc)
{
	struct attributes s = {.v = v};
	struct h5_attribute_walk attributes;
	const struct h5_attribute *a;
	struct h5_buf types, omitted;
	int rc = h5_attribute_begin(&attributes, v->file, v->object);

	h5_buf_init(&types, DOCUMENT_MAX);
	h5_buf_init(&omitted, DOCUMENT_MAX);
	s.values = document(h5_json_key(doc, "attributes"), 4);
	s.types = document(&types, 4);
	s.omitted = list(&omitted);
	s.omitted.indent = 4;
	while (!rc && (rc = h5_attribute_next(&attributes, &a)) > 0)
		rc = add_attribute(&s, a);
	h5_attribute_end(&attributes);
	h5_json_close(&s.values);
	add_part(doc, "attribute_types", &s.types);
	add_part(doc, "omitted", &s.omitted);
	/* Attributes that can't be read are left out. -EFBIG: they would take too long. */
	return h5_is_passing(rc) || rc == -EFBIG ? rc : 0;
}

/* ---- the document ---- */

static int add_object(const struct h5_view *v, struct h5_json *doc)
{
	static const char *const classes[] = {[H5_OBJECT_GROUP] = "group",
					      [H5_OBJECT_DATASET] = "dataset",
					      [H5_OBJECT_DATATYPE] = "datatype"};
	struct h5_datatype *committed = NULL;
	int rc = 0;

	h5_json_text(h5_json_key(doc, "class"), classes[v->object->kind]);
	if (v->object->kind == H5_OBJECT_DATATYPE)
		rc = h5_object_datatype(v->file, v->object, &committed);
	if (!rc && v->object->kind != H5_OBJECT_GROUP)
		add_type(doc, committed ? committed : v->dataset->type);
	if (!rc && v->dataset)
		rc = add_dataset(v, doc);
	h5_datatype_free(committed);
	return rc;
}

static int make_document(const struct h5_view *v, struct h5_buf *out)
{
	struct h5_json doc = document(out, 2);
	int rc = add_object(v, &doc);

	if (!rc)
		rc = add_attributes(v, &doc);
	h5_json_number(h5_json_key(&doc, "address"), v->address);
	if (v->object->has_mtime)
		h5_buf_printf(h5_json_key(&doc, "mtime"), "%" PRId64, v->object->mtime);
	h5_json_close(&doc);
	h5_buf_byte(out, '\n');
	return rc;
}

static const struct h5_document json_document = {H5_DOCUMENT_KIND("JSON of an object"), DOCUMENT_MAX,
						 make_document};

static int json_open(struct h5_view *v, bool reading)
{
	(void)reading;
	return h5_document_open(v, &json_document, 0);
}

static int json_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	return h5_document_read(v, &json_document, 0, offset, buf, n);
}

const struct h5_view_ops h5_view_json = {
	.name = "json", .suffix = ".json", .shows = json_shows, .open = json_open, .read = json_read};

/* What the file says of an object beside its elements, as one JSON object, a member a line. */
#include "view/views.h"

#include "base/error.h"
#include "filter/filter.h"
#include "object/message.h"
#include "store/file_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	DOCUMENT_MAX = 1 << 26,
	VALUE_MAX = 1 << 20, /* bytes of an attribute's value; a longer one is left out */
};

static int json_shows(const struct h5_view *v)
{
	return v->object->kind != H5_OBJECT_UNKNOWN ? 0 : -ENOENT;
}

/* Begins a member of the document. */
static struct h5_buf *member(struct h5_buf *out, const char *name)
{
	h5_buf_printf(out, "%s\n  \"%s\": ", out->size > 1 ? "," : "", name);
	return out;
}

static void text_member(struct h5_buf *out, const char *name, const char *text)
{
	h5_json_string(member(out, name), text, strlen(text));
}

static void add_dims(struct h5_buf *out, const uint64_t *dims, unsigned rank)
{
	h5_buf_byte(out, '[');
	for (unsigned i = 0; i < rank; i++) {
		h5_buf_text(out, i ? ", " : "");
		if (dims[i] == H5_UNLIMITED)
			h5_buf_text(out, "null");
		else
			h5_buf_printf(out, "%" PRIu64, dims[i]);
	}
	h5_buf_byte(out, ']');
}

static void shape_member(struct h5_buf *out, const char *name, const struct h5_dataspace *space,
			 const uint64_t *dims)
{
	member(out, name);
	if (space->kind == H5_SPACE_NULL)
		h5_buf_text(out, "null");
	else
		add_dims(out, dims, space->rank);
}

static void add_type(struct h5_buf *out, const struct h5_datatype *type)
{
	struct h5_buf text;

	h5_buf_init(&text, DOCUMENT_MAX);
	h5_datatype_numpy(type, &text);
	member(out, "dtype");
	if (text.size && *text.data == '[')
		h5_buf_add(out, text.data, text.size); /* a descr is JSON */
	else
		h5_json_string(out, text.data, text.size);
	text.size = 0;
	h5_datatype_ddl(type, true, &text);
	h5_json_string(member(out, "type"), text.data, text.size);
	if (text.err)
		out->err = text.err;
	h5_buf_release(&text);
}

static void add_filter(struct h5_buf *out, const struct h5_filter_info *f)
{
	const struct h5_filter_ops *ops = h5_filter_find(f->id);
	const char *name = ops ? ops->name : f->name;

	h5_buf_printf(out, "{\"id\": %u, \"name\": ", f->id);
	if (name)
		h5_json_string(out, name, strlen(name));
	else
		h5_buf_text(out, "null");
	h5_buf_text(out, ", \"values\": [");
	for (unsigned i = 0; i < f->count; i++)
		h5_buf_printf(out, i ? ", %u" : "%u", f->values[i]);
	h5_buf_text(out, "]}");
}

static void add_chunks(struct h5_buf *out, const struct h5_dataset *d)
{
	add_dims(member(out, "chunks"), d->layout.chunked.dims, d->layout.chunked.rank);
	text_member(out, "index", h5_dataset_index_name(d));
	h5_buf_byte(member(out, "filters"), '[');
	for (unsigned i = 0; i < d->pipeline.count; i++) {
		h5_buf_text(out, i ? ", " : "");
		add_filter(out, &d->pipeline.filters[i]);
	}
	h5_buf_byte(out, ']');
}

/* A value of its own, or null where it is too long; *omitted: it is. */
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
	/* A value that cannot be read takes none of the others with it. */
	*omitted = rc || text.err;
	if (*omitted)
		h5_buf_text(out, "null");
	else
		h5_buf_add(out, text.data, text.size);
	rc = rc ? rc : text.err;
	h5_buf_release(&text);
	return h5_is_passing(rc) ? rc : 0;
}

static int add_dataset(const struct h5_view *v, struct h5_buf *out)
{
	const struct h5_dataset *d = v->dataset;
	uint64_t bytes;
	bool omitted;
	int rc = 0;

	shape_member(out, "shape", &d->space, d->space.dims);
	shape_member(out, "maxshape", &d->space, d->space.max);
	if (d->size <= INT64_MAX)
		h5_buf_printf(member(out, "size"), "%" PRIu64, d->size);
	text_member(out, "layout", h5_dataset_layout_name(d));
	if (d->layout.class == H5_LAYOUT_CHUNKED)
		add_chunks(out, d);
	if (d->fill_defined && d->fill)
		rc = add_value(v, d->type, NULL, d->fill, &omitted, member(out, "fill"));
	if (!rc)
		rc = h5_dataset_storage(d, &bytes);
	if (!rc)
		h5_buf_printf(member(out, "storage"), "%" PRIu64, bytes);
	return h5_is_passing(rc) ? rc : 0;
}

/* ---- attributes ---- */

struct attributes {
	const struct h5_view *v;
	struct h5_buf *out;
	struct h5_buf types, omitted; /* as JSON */
	unsigned count;
};

static void add_name(struct h5_buf *out, const char *name, bool first)
{
	h5_buf_text(out, first ? "" : ",");
	h5_buf_text(out, "\n    ");
	h5_json_string(out, name, strlen(name));
}

static int add_attribute(struct attributes *s, const struct h5_attribute *a)
{
	struct h5_buf type;
	bool omitted = true;
	int rc = 0;

	add_name(s->out, a->name, !s->count);
	h5_buf_text(s->out, ": ");
	if (a->type)
		rc = add_value(s->v, a->type, &a->space, a->data, &omitted, s->out);
	else
		h5_buf_text(s->out, "null");
	h5_buf_init(&type, VALUE_MAX);
	if (a->type)
		h5_datatype_numpy_shaped(a->type, &a->space, &type);
	add_name(&s->types, a->name, !s->count);
	h5_buf_text(&s->types, ": ");
	h5_json_string(&s->types, type.data, type.size);
	h5_buf_release(&type);
	if (omitted)
		add_name(&s->omitted, a->name, !s->omitted.size);
	s->count++;
	return rc ? rc : s->out->err;
}

static void add_list(struct h5_buf *out, const char *name, char open, const struct h5_buf *list, char close)
{
	if (!list->size)
		return;
	h5_buf_byte(member(out, name), open);
	h5_buf_add(out, list->data, list->size);
	h5_buf_text(out, "\n  ");
	h5_buf_byte(out, close);
	if (list->err)
		out->err = list->err;
}

static int add_attributes(const struct h5_view *v, struct h5_buf *out)
{
	struct attributes s = {.v = v, .out = out};
	struct h5_attribute_walk attributes;
	const struct h5_attribute *a;
	int rc = h5_attribute_begin(&attributes, v->file, v->object);

	h5_buf_init(&s.types, DOCUMENT_MAX);
	h5_buf_init(&s.omitted, DOCUMENT_MAX);
	h5_buf_byte(member(out, "attributes"), '{');
	while (!rc && (rc = h5_attribute_next(&attributes, &a)) > 0)
		rc = add_attribute(&s, a);
	h5_attribute_end(&attributes);
	h5_buf_text(out, s.count ? "\n  }" : "}");
	add_list(out, "attribute_types", '{', &s.types, '}');
	add_list(out, "omitted", '[', &s.omitted, ']');
	h5_buf_release(&s.types);
	h5_buf_release(&s.omitted);
	/* What can't be read of them is missing; -EFBIG: it would have taken too long. */
	return h5_is_passing(rc) || rc == -EFBIG ? rc : 0;
}

/* ---- the document ---- */

static int add_object(const struct h5_view *v, struct h5_buf *out)
{
	static const char *const classes[] = {[H5_OBJECT_GROUP] = "group",
					      [H5_OBJECT_DATASET] = "dataset",
					      [H5_OBJECT_DATATYPE] = "datatype"};
	struct h5_datatype *committed = NULL;
	int rc = 0;

	text_member(out, "class", classes[v->object->kind]);
	if (v->object->kind == H5_OBJECT_DATATYPE)
		rc = h5_object_datatype(v->file, v->object, &committed);
	if (!rc && v->object->kind != H5_OBJECT_GROUP)
		add_type(out, committed ? committed : v->dataset->type);
	if (!rc && v->dataset)
		rc = add_dataset(v, out);
	h5_datatype_free(committed);
	return rc;
}

static int make_document(const struct h5_view *v, struct h5_buf *out)
{
	int rc;

	h5_buf_init(out, DOCUMENT_MAX);
	h5_buf_byte(out, '{');
	rc = add_object(v, out);
	if (!rc)
		rc = add_attributes(v, out);
	h5_buf_printf(member(out, "address"), "%" PRIu64, v->address);
	if (v->object->has_mtime)
		h5_buf_printf(member(out, "mtime"), "%" PRId64, v->object->mtime);
	h5_buf_text(out, "\n}\n");
	if (!rc && out->err == -E2BIG)
		rc = h5_fail(-ENOTSUP, v->address, "metadata whose text is over %d bytes", DOCUMENT_MAX);
	return rc ? rc : out->err;
}

static void free_document(void *value)
{
	h5_buf_release(value);
	free(value);
}

static int load_document(void *arg, void **value, size_t *cost)
{
	const struct h5_view *v = arg;
	struct h5_buf *document = calloc(1, sizeof *document);
	int rc = document ? make_document(v, document) : -ENOMEM;

	if (rc) {
		if (document)
			free_document(document);
		return rc;
	}
	/* The cache counts it from here on. */
	h5_charge_release(&document->charge);
	*value = document;
	*cost = sizeof *document + document->capacity;
	return 0;
}

/* Nobody holds it between two requests. put_document() on success. */
static int get_document(struct h5_view *v, struct h5_lru_entry **ref, const struct h5_buf **document)
{
	static const struct h5_lru_kind kind = {"JSON of an object", free_document};
	struct h5_lru_key key = {&kind, h5_file_number(v->file), v->address, v->state};
	int rc = h5_lru_get(h5_file_set_chunks(h5_file_set_of(v->file)), &key, load_document, v, ref);

	*document = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

static void put_document(const struct h5_view *v, struct h5_lru_entry *ref)
{
	h5_lru_put(h5_file_set_chunks(h5_file_set_of(v->file)), ref);
}

static int json_open(struct h5_view *v, bool reading)
{
	const struct h5_buf *document;
	struct h5_lru_entry *ref;
	int rc = get_document(v, &ref, &document);

	(void)reading;
	if (rc)
		return rc;
	v->size = document->size;
	put_document(v, ref);
	return 0;
}

static int json_read(const struct h5_view *view, uint64_t offset, void *buf, size_t n)
{
	struct h5_lru_entry *object_ref, *ref;
	const struct h5_buf *document;
	struct h5_view v = *view;
	int rc = h5_object_get(v.file, v.address, &object_ref, &v.object);

	if (rc)
		return rc;
	rc = get_document(&v, &ref, &document);
	if (!rc && document->size == v.size)
		memcpy(buf, document->data + offset, n);
	else if (!rc)
		rc = h5_fail(-EUCLEAN, v.address, "its JSON has changed");
	if (ref)
		put_document(&v, ref);
	h5_file_put(v.file, object_ref);
	return rc;
}

const struct h5_view_ops h5_view_json = {
	.name = "json", .suffix = ".json", .shows = json_shows, .open = json_open, .read = json_read};

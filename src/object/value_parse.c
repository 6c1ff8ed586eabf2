#include "object/value_parse_private.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/interrupt.h"
#include "base/json_read.h"
#include "base/writer.h"
#include "object/value_heap.h"

#include <assert.h>
#include <string.h>

/* After so many elements or members h5_interrupt_check() is called. */
enum { CHECKED = 64 };

static int invalid(const char *what)
{
	return h5_fail(-EINVAL, H5_UNDEF, "%s", what);
}

/* Bytes of an element that is a JSON string; NULL: the value is none. */
static const char *string_of(struct json_object *json, size_t *n)
{
	if (!json_object_is_type(json, json_type_string))
		return NULL;
	*n = (size_t)json_object_get_string_len(json);
	return json_object_get_string(json);
}

static struct h5_writer element_writer(const struct h5_value_parser *p, const struct h5_datatype *t,
				       uint8_t *data)
{
	const struct h5_superblock *sb = h5_file_superblock(p->context->file);

	return h5_writer_init(data, t->size, sb->size_of_offsets, sb->size_of_lengths);
}

/* ---- text of one element, without quotes ---- */

static int fixed_string(const struct h5_datatype *t, const char *text, size_t n, const uint8_t *old,
			uint8_t *data)
{
	enum h5_string_padding padding = t->string.padding;
	size_t most = t->size - (padding == H5_PAD_NULLTERM);

	/* Some files have null-terminated strings without a NUL. */
	if (old && n == t->size && !memcmp(old, text, n))
		most = n;
	if (n > most)
		return h5_fail(-EINVAL, H5_UNDEF, "a string of %zu bytes, where %zu fit", n, most);
	if ((padding == H5_PAD_NULLTERM && memchr(text, 0, n)) ||
	    (padding == H5_PAD_NULLPAD && n && !text[n - 1]))
		return invalid("a NUL would cut the string");
	if (padding == H5_PAD_SPACEPAD && n && text[n - 1] == ' ')
		return invalid("a space at the end of a string that is padded with spaces");
	memcpy(data, text, n);
	memset(data + n, padding == H5_PAD_SPACEPAD ? ' ' : 0, t->size - n);
	return 0;
}

/* Puts the n bytes of `count` elements of the base type into the heap, and refers to them. Specification
 * IV.A.2.d: see struct vlen_element in value.c. Nothing has length 0 and address 0. */
static int refer(const struct h5_value_parser *p, const struct h5_datatype *t, const void *bytes, size_t n,
		 uint64_t count, uint8_t *data)
{
	struct h5_writer w = element_writer(p, t, data);
	uint64_t address = 0;
	uint32_t index = 0;
	int rc = 0;

	if (!p->heap)
		return h5_fail(-ENOTSUP, H5_UNDEF, "variable-length data cannot be stored here");
	if (count > UINT32_MAX)
		return h5_fail(-EINVAL, H5_UNDEF, "%ju elements in a variable-length value",
			       (uintmax_t)count);
	if (n)
		rc = p->heap->put(p->heap, bytes, n, &address, &index);
	if (rc)
		return rc;
	h5_write_u32(&w, (uint32_t)count);
	h5_write_offset(&w, address);
	h5_write_u32(&w, index);
	h5_write_fill(&w, 0, (size_t)(w.end - w.p));
	return w.err ? h5_fail(-EUCLEAN, H5_UNDEF, "size of a variable-length type") : 0;
}

int h5_value_parse_vlen_string(const struct h5_value_parser *parser, const struct h5_datatype *type,
			       const char *text, size_t n, uint8_t *data)
{
	if (memchr(text, 0, n))
		return invalid("a NUL would cut the string");
	return refer(parser, type, text, n, n, data);
}

static int opaque(const struct h5_datatype *t, const char *text, size_t n, uint8_t *data)
{
	if (n != 2 * (uint64_t)t->size)
		return h5_fail(-EINVAL, H5_UNDEF, "%ju hex digits are expected, not %zu",
			       2 * (uintmax_t)t->size, n);
	for (uint32_t i = 0; i < t->size; i++) {
		int byte = h5_hex_byte(text + 2 * i);

		if (byte < 0)
			return invalid("not a hex digit");
		data[i] = (uint8_t)byte;
	}
	return 0;
}

/* False: no member has the name. */
static bool enum_name(const struct h5_datatype *t, const char *text, size_t n, uint8_t *data)
{
	for (unsigned i = 0; i < t->enumeration.count; i++) {
		const struct h5_enum_member *m = &t->enumeration.members[i];

		if (strlen(m->name) == n && !memcmp(m->name, text, n)) {
			memcpy(data, m->value, t->size);
			return true;
		}
	}
	return false;
}

/* ---- references ---- */

/* *same: the old reference is written as this JSON. On failure it stays as it is. */
static int is_as_old(const struct h5_value_parser *p, const struct h5_datatype *t, struct json_object *json,
		     const uint8_t *old, bool *same)
{
	struct h5_json_document document;
	struct h5_buf text;
	int rc;

	h5_buf_init(&text, SIZE_MAX);
	rc = h5_reference_json(p->context, t, old, false, &text);
	if (!rc)
		rc = text.err;
	if (!rc)
		rc = h5_json_read(text.data, text.size, &document);
	h5_buf_release(&text);
	if (rc)
		return rc;
	*same = h5_json_equal(document.root, json);
	h5_json_document_release(&document);
	return 0;
}

/* An object, as old references and those of libhdf5 1.12 name it; see reference.c. */
static int object_reference(const struct h5_value_parser *p, const struct h5_datatype *t, const char *path,
			    size_t n, uint8_t *data)
{
	struct h5_writer w = element_writer(p, t, data);
	uint64_t address;
	int rc = p->object_address ? p->object_address(p->arg, path, n, &address) : -ENOENT;

	if (rc == -ENOENT)
		return invalid("the path leads to no object of the file");
	if (rc)
		return rc;
	if (t->reference.kind == H5_REF_OBJECT2) {
		h5_write_u8(&w, H5_REF_OBJECT2);
		h5_write_u8(&w, 0);
		h5_write_u8(&w, w.size_of_offsets);
	}
	h5_write_offset(&w, address);
	h5_write_fill(&w, 0, (size_t)(w.end - w.p));
	return w.err ? h5_fail(-EUCLEAN, H5_UNDEF, "size of a reference type") : 0;
}

static int reference(const struct h5_value_parser *p, const struct h5_datatype *t, struct json_object *json,
		     const uint8_t *old, uint8_t *data)
{
	const char *path;
	bool same = false;
	size_t n;
	int rc = old ? is_as_old(p, t, json, old, &same) : 0;

	if (rc)
		return rc;
	if (same) {
		memcpy(data, old, t->size);
		return 0;
	}
	if (!json) {
		memset(data, 0, t->size);
		return 0;
	}
	if (t->reference.kind != H5_REF_OBJECT && t->reference.kind != H5_REF_OBJECT2)
		return invalid("a reference to a region or an attribute can only stay as it is");
	path = string_of(json, &n);
	return path ? object_reference(p, t, path, n, data) : invalid("a path is expected");
}

/* ---- JSON ---- */

/* The element at `data` from its JSON. The depth is that of the type, which is bounded. */
static int value(const struct h5_value_parser *p, const struct h5_datatype *t, struct json_object *json,
		 const uint8_t *old, uint8_t *data);

/* Reads the elements at *data, nested by dimension, and moves *data behind them, and *old, unless it is NULL.
 */
static int array(const struct h5_value_parser *p, const struct h5_datatype *base, unsigned rank,
		 const uint64_t *dims, struct json_object *json, const uint8_t **old, uint8_t **data)
{
	int rc = 0;

	if (!rank) {
		rc = value(p, base, json, *old, *data);
		*data += base->size;
		if (*old)
			*old += base->size;
		return rc;
	}
	if (!json_object_is_type(json, json_type_array))
		return invalid("an array is expected");
	if (json_object_array_length(json) != dims[0])
		return h5_fail(-EINVAL, H5_UNDEF, "an array of %zu elements, not of %ju",
			       json_object_array_length(json), (uintmax_t)dims[0]);
	for (size_t i = 0; i < dims[0] && !rc; i++) {
		rc = i % CHECKED ? 0 : h5_interrupt_check();
		if (!rc)
			rc = array(p, base, rank - 1, dims + 1, json_object_array_get_idx(json, i), old,
				   data);
		if (rc)
			rc = h5_fail_in(rc, "element %zu", i);
	}
	return rc;
}

/* Reads the elements of a sequence. `old`: the first old_count of them as they were. */
static int sequence_elements(const struct h5_value_parser *p, const struct h5_datatype *base,
			     struct json_object *json, const uint8_t *old, uint64_t old_count, uint8_t *data)
{
	const size_t count = json_object_array_length(json), size = base->size;
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		const uint8_t *old_i = i < old_count ? old + i * size : NULL;

		rc = i % CHECKED ? 0 : h5_interrupt_check();
		if (!rc)
			rc = value(p, base, json_object_array_get_idx(json, i), old_i, data + i * size);
		/* Nobody sees later that an element is as it was. */
		if (!rc && old_i && p->heap)
			rc = h5_value_heap_own(p->heap, p->context->file, base, old_i, data + i * size);
		if (rc)
			rc = h5_fail_in(rc, "element %zu", i);
	}
	return rc;
}

static int sequence_beside(const struct h5_value_parser *p, const struct h5_datatype *t,
			   struct json_object *json, const uint8_t *old, uint8_t *data)
{
	struct h5_lru_entry *ref = NULL;
	const uint8_t *elements = NULL;
	uint64_t count = 0;
	int rc = 0;

	if (old && !h5_datatype_is_fixed(t->vlen.base))
		rc = h5_value_vlen_open(p->context->file, t, old, &ref, &elements, &count);
	if (!rc)
		rc = sequence_elements(p, t->vlen.base, json, elements, count, data);
	h5_file_put(p->context->file, ref);
	return rc;
}

static int sequence(const struct h5_value_parser *p, const struct h5_datatype *t, struct json_object *json,
		    const uint8_t *old, uint8_t *data)
{
	struct h5_charge charge = {0};
	uint64_t count, n;
	uint8_t *bytes;
	int rc;

	if (!json_object_is_type(json, json_type_array))
		return invalid("an array is expected");
	count = json_object_array_length(json);
	if (!h5_mul(count, t->vlen.base->size, &n) || n > SIZE_MAX / 2)
		return h5_fail(-EFBIG, H5_UNDEF, "%ju elements in a variable-length value", (uintmax_t)count);
	rc = h5_charge_set(&charge, (size_t)n);
	if (rc)
		return rc;
	bytes = calloc(1, (size_t)n + 1);
	rc = bytes ? sequence_beside(p, t, json, old, bytes) : -ENOMEM;
	if (!rc)
		rc = refer(p, t, bytes, (size_t)n, count, data);
	free(bytes);
	h5_charge_release(&charge);
	return rc;
}

/* The member with the name. `next` is where the search begins: names are mostly in order. */
static const struct h5_member *find_member(const struct h5_datatype *t, const char *name, unsigned *next)
{
	for (unsigned i = 0; i < t->compound.count; i++) {
		unsigned at = (*next + i) % t->compound.count;

		if (!strcmp(t->compound.members[at].name, name)) {
			*next = at + 1;
			return &t->compound.members[at];
		}
	}
	return NULL;
}

static int compound(const struct h5_value_parser *p, const struct h5_datatype *t, struct json_object *json,
		    const uint8_t *old, uint8_t *data)
{
	struct json_object_iterator i, end;
	unsigned next = 0, done = 0;
	int rc = 0;

	if (!json_object_is_type(json, json_type_object))
		return invalid("an object is expected");
	i = json_object_iter_begin(json);
	end = json_object_iter_end(json);
	for (; !rc && !json_object_iter_equal(&i, &end); json_object_iter_next(&i)) {
		const char *name = json_object_iter_peek_name(&i);
		const struct h5_member *m = find_member(t, name, &next);

		rc = done++ % CHECKED ? 0 : h5_interrupt_check();
		if (!rc && !m)
			rc = h5_fail(-EINVAL, H5_UNDEF, "no member has the name \"%.100s\"", name);
		else if (!rc)
			rc = value(p, m->type, json_object_iter_peek_value(&i), old ? old + m->offset : NULL,
				   data + m->offset);
		if (rc && m)
			rc = h5_fail_in(rc, "member \"%.60s\"", name);
	}
	return rc;
}

static int number(const struct h5_datatype *t, struct json_object *json, uint8_t *data)
{
	char room[H5_JSON_INTEGER_ROOM];
	const char *text = h5_json_number_text(json, room);

	if (!text)
		return invalid("a number is expected");
	return t->class == H5_CLASS_FLOAT ? h5_float_parse(t, text, strlen(text), data)
					  : h5_integer_parse(t, text, strlen(text), data);
}

/* What is a string in JSON; `text` is without its quotes. */
static int from_string(const struct h5_value_parser *p, const struct h5_datatype *t, const char *text,
		       size_t n, const uint8_t *old, uint8_t *data)
{
	switch (t->class) {
	case H5_CLASS_STRING:
		return fixed_string(t, text, n, old, data);
	case H5_CLASS_VLEN:
		return h5_value_parse_vlen_string(p, t, text, n, data);
	case H5_CLASS_OPAQUE:
		return opaque(t, text, n, data);
	case H5_CLASS_FLOAT:
		return h5_float_word(t, text, n, data);
	case H5_CLASS_ENUM:
		return enum_name(t, text, n, data) ? 0
						   : invalid("no member of the enumeration has this name");
	default:
		assert(false);
		return -EINVAL;
	}
}

/* True: the JSON of the type is always a string. */
static bool is_text(const struct h5_datatype *t)
{
	return t->class == H5_CLASS_STRING || t->class == H5_CLASS_OPAQUE ||
	       (t->class == H5_CLASS_VLEN && t->vlen.is_string);
}

static int value(const struct h5_value_parser *p, const struct h5_datatype *t, struct json_object *json,
		 const uint8_t *old, uint8_t *data)
{
	const char *text;
	size_t n;

	text = string_of(json, &n);
	if (text && (is_text(t) || t->class == H5_CLASS_FLOAT || t->class == H5_CLASS_ENUM))
		return from_string(p, t, text, n, old, data);
	if (is_text(t))
		return invalid("a string is expected");
	switch (t->class) {
	case H5_CLASS_ENUM:
		return number(t->enumeration.base, json, data);
	case H5_CLASS_COMPOUND:
		return compound(p, t, json, old, data);
	case H5_CLASS_REFERENCE:
		return reference(p, t, json, old, data);
	case H5_CLASS_VLEN:
		return sequence(p, t, json, old, data);
	case H5_CLASS_ARRAY:
		return array(p, t->array.base, t->array.rank, t->array.dims, json, &old, &data);
	case H5_CLASS_COMPLEX:
		return array(p, t->complex.base, 1, &(const uint64_t){2}, json, &old, &data);
	default:
		return number(t, json, data);
	}
}

int h5_value_parse_json(const struct h5_value_parser *parser, const struct h5_datatype *type,
			const char *text, size_t n, const uint8_t *old, uint8_t *data)
{
	struct h5_json_document document;
	int rc = h5_json_read(text, n, &document);

	if (rc)
		return rc;
	rc = value(parser, type, document.root, old, data);
	h5_json_document_release(&document);
	return rc;
}

/* ---- the text of an attribute ---- */

/* A path stands without quotes; null and the other kinds are JSON. */
static int scalar_reference(const struct h5_value_parser *p, const struct h5_datatype *t, const char *text,
			    size_t n, const uint8_t *old, uint8_t *data)
{
	struct json_object *path;
	int rc;

	if (!n || *text != '/')
		return h5_value_parse_json(p, t, text, n, old, data);
	if (n > INT32_MAX)
		return invalid("the path is too long");
	path = json_object_new_string_len(text, (int)n);
	rc = path ? reference(p, t, path, old, data) : -ENOMEM;
	json_object_put(path);
	return rc;
}

static int scalar(const struct h5_value_parser *p, const struct h5_datatype *t, const char *text, size_t n,
		  const uint8_t *old, uint8_t *data)
{
	if (is_text(t))
		return from_string(p, t, text, n, old, data);
	switch (t->class) {
	case H5_CLASS_INTEGER:
	case H5_CLASS_BITFIELD:
	case H5_CLASS_TIME:
		return h5_integer_parse(t, text, n, data);
	case H5_CLASS_FLOAT:
		return h5_float_parse(t, text, n, data);
	case H5_CLASS_ENUM:
		if (enum_name(t, text, n, data))
			return 0;
		if (h5_json_number_length(text, n) != n)
			return invalid("no member of the enumeration has this name");
		return h5_integer_parse(t->enumeration.base, text, n, data);
	case H5_CLASS_REFERENCE:
		return scalar_reference(p, t, text, n, old, data);
	default:
		return h5_value_parse_json(p, t, text, n, old, data);
	}
}

int h5_value_parse(const struct h5_value_parser *parser, const struct h5_datatype *type,
		   const struct h5_dataspace *space, const char *text, size_t n, const uint8_t *old,
		   uint8_t *data)
{
	struct h5_json_document document;
	int rc;

	if (space->kind == H5_SPACE_NULL)
		return n ? invalid("there is no element to take a value") : 0;
	if (space->kind == H5_SPACE_SCALAR)
		return scalar(parser, type, text, n, old, data);
	rc = h5_json_read(text, n, &document);
	if (rc)
		return rc;
	rc = array(parser, type, space->rank, space->dims, document.root, &old, &data);
	h5_json_document_release(&document);
	return rc;
}

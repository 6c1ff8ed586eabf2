#include "object/numpy_parse.h"

#include "base/checked.h"
#include "base/error.h"
#include "format/datatype_make.h"

#include <string.h>

enum {
	MEMBERS_MAX = UINT16_MAX,
	NAME_MAX_BYTES = UINT16_MAX, /* no message holds more */
};

static int invalid(const char *what)
{
	return h5_fail(-EINVAL, H5_UNDEF, "type: %s", what);
}

static int made(const struct h5_datatype *type)
{
	return type ? 0 : h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
}

/* ---- words ---- */

/* Reads digits at *p, and passes them; false: there are none, or too many. */
static bool read_number(const char **p, const char *end, uint64_t *number)
{
	const char *begin = *p;

	*number = 0;
	for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
		if (!h5_mul(*number, 10, number) || !h5_add(*number, (uint64_t)(**p - '0'), number))
			return false;
	return *p > begin;
}

static bool is_power(uint64_t size, unsigned from, unsigned to)
{
	return size >= from && size <= to && !(size & (size - 1));
}

/* A kind of so many bytes. */
static int make_kind(char kind, uint32_t size, enum h5_byte_order order, struct h5_datatype **type)
{
	switch (kind) {
	case 'i':
	case 'u':
		if (!is_power(size, 1, 8))
			return invalid("integers have 1, 2, 4 or 8 bytes");
		*type = h5_datatype_make_integer(size, kind == 'i', order);
		return made(*type);
	case 'f':
		if (!is_power(size, 2, 8))
			return invalid("floats have 2, 4 or 8 bytes");
		*type = h5_datatype_make_float(size, order);
		return made(*type);
	case 'c':
		if (!is_power(size, 8, 16))
			return invalid("complex numbers have 8 or 16 bytes");
		*type = h5_datatype_make_complex(size, order);
		return made(*type);
	case 'b':
		if (size != 1)
			return invalid("booleans have 1 byte");
		*type = h5_datatype_make_boolean();
		return made(*type);
	case 'S':
		*type = h5_datatype_make_string(size, H5_PAD_NULLPAD, H5_CHARSET_ASCII);
		return made(*type);
	case 'V':
		*type = h5_datatype_make_opaque(size, "");
		return made(*type);
	default:
		return invalid("kinds are i, u, f, c, b, S and V");
	}
}

static int parse_word(const char *text, size_t n, uint8_t size_of_offsets, struct h5_datatype **type)
{
	const char *p = text, *end = text + n;
	enum h5_byte_order order = H5_ORDER_LE;
	uint64_t size;
	char kind;

	if (n == 8 && !memcmp(text, "vlen str", 8)) {
		*type = h5_datatype_make_vlen_string(size_of_offsets, H5_CHARSET_UTF8);
		return made(*type);
	}
	if (p < end && (*p == '<' || *p == '>' || *p == '|'))
		order = *p++ == '>' ? H5_ORDER_BE : H5_ORDER_LE;
	if (p == end)
		return invalid("there is no name");
	kind = *p++;
	if (!read_number(&p, end, &size) || p < end || !size || size > UINT32_MAX)
		return h5_fail(-EINVAL, H5_UNDEF, "type: \"%.*s\" is no kind with a number of bytes",
			       (int)h5_min(n, 60), text);
	return make_kind(kind, (uint32_t)size, order, type);
}

/* ---- compounds ---- */

/* A type from its JSON, nested so deep. */
static int parse_json(struct json_object *json, uint8_t size_of_offsets, unsigned depth,
		      struct h5_datatype **type);

/* A dimension of a type or a dataspace. */
static bool is_dimension(struct json_object *json, uint64_t most, uint64_t *dim)
{
	int64_t number = json_object_is_type(json, json_type_int) ? json_object_get_int64(json) : 0;

	*dim = (uint64_t)number;
	return number > 0 && *dim <= most;
}

/* Makes an array of *type, with the dimensions of a member: [2,3] or 3. */
static int add_dims(struct json_object *json, struct h5_datatype **type)
{
	uint64_t dims[H5_RANK_MAX];
	size_t rank = 1;
	bool good;

	if (json_object_is_type(json, json_type_array)) {
		rank = json_object_array_length(json);
		good = rank && rank <= H5_RANK_MAX;
		for (size_t i = 0; i < rank && good; i++)
			good = is_dimension(json_object_array_get_idx(json, i), UINT32_MAX, &dims[i]);
	} else {
		good = is_dimension(json, UINT32_MAX, dims);
	}
	if (good) {
		uint64_t count, size;

		good = h5_product(dims, (unsigned)rank, &count) && h5_mul(count, (*type)->size, &size) &&
		       size <= UINT32_MAX;
	}
	if (!good)
		return invalid("no array has these dimensions");
	*type = h5_datatype_make_array((unsigned)rank, dims, *type);
	return made(*type);
}

/* The type of a member: ["name", TYPE] or ["name", TYPE, DIMENSIONS]. */
static int parse_member(struct json_object *json, uint8_t size_of_offsets, unsigned depth,
			struct h5_datatype **type)
{
	size_t n = json_object_is_type(json, json_type_array) ? json_object_array_length(json) : 0;
	int rc;

	*type = NULL;
	if ((n != 2 && n != 3) || !json_object_is_type(json_object_array_get_idx(json, 0), json_type_string))
		return invalid("a member has a name, a type, and perhaps dimensions");
	rc = parse_json(json_object_array_get_idx(json, 1), size_of_offsets, depth + 1, type);
	if (!rc && n == 3)
		rc = add_dims(json_object_array_get_idx(json, 2), type);
	if (rc) {
		h5_datatype_free(*type);
		*type = NULL;
	}
	return rc;
}

/* A compound whose size is not known before its end. */
struct layout {
	struct h5_datatype *type;
	struct json_object *names; /* that it has, as the keys of an object */
};

static int add_name(struct layout *layout, struct json_object *json)
{
	const char *name = json_object_get_string(json);

	if (strlen(name) != (size_t)json_object_get_string_len(json) || strlen(name) > NAME_MAX_BYTES)
		return invalid("a name with a NUL, or too long");
	if (json_object_object_get_ex(layout->names, name, NULL))
		return h5_fail(-EINVAL, H5_UNDEF, "type: two members have the name \"%.60s\"", name);
	if (json_object_object_add(layout->names, name, NULL))
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	return 0;
}

/* Appends the member, or a gap. */
static int add_member(struct layout *layout, struct json_object *json, uint8_t size_of_offsets,
		      unsigned depth)
{
	struct h5_datatype *member;
	struct json_object *name;
	uint32_t offset = layout->type->size;
	int rc = parse_member(json, size_of_offsets, depth, &member);

	if (rc)
		return rc;
	name = json_object_array_get_idx(json, 0);
	if (member->size > UINT32_MAX - offset)
		rc = invalid("a compound of more than 4 GiB");
	if (!rc && json_object_get_string_len(name)) {
		rc = add_name(layout, name);
	} else if (!rc && member->class == H5_CLASS_OPAQUE) {
		layout->type->size += member->size;
		h5_datatype_free(member);
		return 0;
	} else if (!rc) {
		rc = invalid("a member without a name can only be a gap: V");
	}
	if (rc) {
		h5_datatype_free(member);
		return rc;
	}
	layout->type->size += member->size;
	return h5_datatype_add_member(layout->type, json_object_get_string(name), offset, member);
}

static int parse_compound(struct json_object *json, uint8_t size_of_offsets, unsigned depth,
			  struct h5_datatype **type)
{
	size_t n = json_object_array_length(json);
	struct layout layout = {0};
	int rc = 0;

	if (n > MEMBERS_MAX)
		return invalid("too many members");
	layout.type = h5_datatype_make_compound(1, (unsigned)n);
	layout.names = json_object_new_object();
	if (!layout.type || !layout.names)
		rc = h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	else
		layout.type->size = 0;
	for (size_t i = 0; i < n && !rc; i++)
		rc = add_member(&layout, json_object_array_get_idx(json, i), size_of_offsets, depth);
	if (!rc && !layout.type->compound.count)
		rc = invalid("a compound without members");
	json_object_put(layout.names);
	if (rc)
		h5_datatype_free(layout.type);
	else
		*type = layout.type;
	return rc;
}

static int parse_json(struct json_object *json, uint8_t size_of_offsets, unsigned depth,
		      struct h5_datatype **type)
{
	/* A member may be an array, which is a level of its own. */
	if (depth > H5_DATATYPE_DEPTH / 2)
		return invalid("nested too deep");
	if (json_object_is_type(json, json_type_array))
		return parse_compound(json, size_of_offsets, depth, type);
	if (!json_object_is_type(json, json_type_string))
		return invalid("a name or a list of members is expected");
	return parse_word(json_object_get_string(json), (size_t)json_object_get_string_len(json),
			  size_of_offsets, type);
}

int h5_numpy_parse_json(struct json_object *json, uint8_t size_of_offsets, struct h5_datatype **type)
{
	*type = NULL;
	return parse_json(json, size_of_offsets, 1, type);
}

int h5_numpy_parse(const char *text, size_t n, uint8_t size_of_offsets, struct h5_datatype **type)
{
	struct h5_json_document document;
	int rc;

	*type = NULL;
	if (!n || *text != '[')
		return parse_word(text, n, size_of_offsets, type);
	rc = h5_json_read(text, n, &document);
	if (rc)
		return rc;
	rc = h5_numpy_parse_json(document.root, size_of_offsets, type);
	h5_json_document_release(&document);
	return rc;
}

/* ---- shapes ---- */

/* Reads a tuple of Python, and moves *p behind it: (2,3) or (3,). */
static bool read_shape(const char **p, const char *end, struct h5_dataspace *space)
{
	space->kind = H5_SPACE_SIMPLE;
	for (++*p; *p < end && **p != ')'; *p += *p < end && **p == ',') {
		if ((space->rank && (*p)[-1] != ',') || space->rank == H5_RANK_MAX ||
		    !read_number(p, end, &space->dims[space->rank]) ||
		    space->dims[space->rank] == H5_UNLIMITED)
			return false;
		space->rank++;
	}
	if (*p == end || !space->rank || (space->rank == 1) != ((*p)[-1] == ','))
		return false;
	++*p;
	return true;
}

int h5_numpy_parse_shaped(const char *text, size_t n, uint8_t size_of_offsets, struct h5_datatype **type,
			  struct h5_dataspace *space)
{
	const char *p = text, *end = text + n;

	memset(space, 0, sizeof *space);
	*type = NULL;
	if (n && *text == '(' && !read_shape(&p, end, space))
		return invalid("a shape is written (2,3) or (3,)");
	if (!h5_product(space->dims, space->rank, &space->elements))
		return invalid("too many elements");
	memcpy(space->max, space->dims, sizeof space->dims);
	return h5_numpy_parse(p, (size_t)(end - p), size_of_offsets, type);
}

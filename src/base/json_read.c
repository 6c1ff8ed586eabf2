/* The values are those of json-c. Its own parser is not used: it crashes if memory runs out (0.16), keeps 64
 * bits of integers, replaces lone surrogates, and takes text that is no JSON. */
#include "base/json_read.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/hex.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	EXACT_LENGTH = 18, /* an integer of so many bytes fits in 64 bits */
	/* What json-c allocates at most for a value, its name included, and beside that for an object. */
	VALUE_COST = 256,
	OBJECT_COST = 1024,
};

struct parser {
	const char *begin, *p, *end;
	struct h5_buf text; /* the last string or number */
	size_t cost, charged;
	struct h5_charge charge;
};

static int wrong(const struct parser *p, const char *what)
{
	return h5_fail(-EINVAL, H5_UNDEF, "JSON, byte %zu: %s", (size_t)(p->p - p->begin), what);
}

static int no_memory(void)
{
	return h5_fail(-ENOMEM, H5_UNDEF, "JSON: out of memory");
}

/* Charges bytes before they are allocated. */
static int charge(struct parser *p, size_t n)
{
	p->cost += n;
	if (p->cost <= p->charged)
		return 0;
	p->charged = 2 * p->cost;
	return h5_charge_set(&p->charge, p->charged);
}

static void skip_blanks(struct parser *p)
{
	while (p->p < p->end && (*p->p == ' ' || *p->p == '\t' || *p->p == '\r' || *p->p == '\n'))
		p->p++;
}

/* True: the next byte is c; it is passed. */
static bool take(struct parser *p, char c)
{
	bool is = p->p < p->end && *p->p == c;

	p->p += is;
	return is;
}

/* ---- numbers ---- */

static size_t digits(const char *p, const char *end)
{
	const char *begin = p;

	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return (size_t)(p - begin);
}

size_t h5_json_number_length(const char *text, size_t n)
{
	const char *p = text, *end = text + n;
	size_t count;

	if (p < end && *p == '-')
		p++;
	count = digits(p, end);
	if (!count || (count > 1 && *p == '0'))
		return 0;
	p += count;
	if (p < end && *p == '.') {
		count = digits(++p, end);
		if (!count)
			return 0;
		p += count;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		count = digits(p, end);
		if (!count)
			return 0;
		p += count;
	}
	return (size_t)(p - text);
}

/* json-c keeps the text of a number only as that of a float, whose value is not used. So it is 0. */
static int number(struct parser *p, struct json_object **value)
{
	size_t n = h5_json_number_length(p->p, (size_t)(p->end - p->p));
	int rc;

	if (!n)
		return wrong(p, "not a number");
	rc = charge(p, n);
	if (rc)
		return rc;
	p->text.size = 0;
	h5_buf_add(&p->text, p->p, n);
	h5_buf_byte(&p->text, 0);
	if (p->text.err)
		return p->text.err;
	if (n <= EXACT_LENGTH && strspn(p->text.data, "-0123456789") == n && strcmp(p->text.data, "-0"))
		*value = json_object_new_int64(strtoll(p->text.data, NULL, 10));
	else
		*value = json_object_new_double_s(0, p->text.data);
	if (!*value)
		return no_memory();
	p->p += n;
	return 0;
}

/* ---- strings ---- */

/* The number of the four hex digits behind \u; -1: there is no such escape. */
static int escaped(const char *p, const char *end)
{
	int code = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (unsigned i = 2; i < 6; i++) {
		int digit = h5_hex_digit(p[i]);

		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

static void add_utf8(struct h5_buf *out, unsigned code)
{
	if (code < 0x80) {
		h5_buf_byte(out, (char)code);
		return;
	}
	if (code < 0x800) {
		h5_buf_byte(out, (char)(0xc0 | code >> 6));
	} else {
		if (code < 0x10000) {
			h5_buf_byte(out, (char)(0xe0 | code >> 12));
		} else {
			h5_buf_byte(out, (char)(0xf0 | code >> 18));
			h5_buf_byte(out, (char)(0x80 | (code >> 12 & 63)));
		}
		h5_buf_byte(out, (char)(0x80 | (code >> 6 & 63)));
	}
	h5_buf_byte(out, (char)(0x80 | (code & 63)));
}

/* \uXXXX, or two of them that are a surrogate pair. */
static int unicode(struct parser *p)
{
	int code = escaped(p->p, p->end), low;

	if (code < 0)
		return wrong(p, "four hex digits are expected behind \\u");
	if (code >= 0xdc80 && code <= 0xdcff) {
		h5_buf_byte(&p->text, (char)code);
	} else if (code >= 0xdc00 && code <= 0xdfff) {
		return wrong(p, "a low surrogate without a high one");
	} else if (code >= 0xd800 && code <= 0xdbff) {
		low = escaped(p->p + 6, p->end);
		if (low < 0xdc00 || low > 0xdfff)
			return wrong(p, "a high surrogate without a low one");
		add_utf8(&p->text, 0x10000u + (((unsigned)code & 0x3ff) << 10 | ((unsigned)low & 0x3ff)));
		p->p += 6;
	} else {
		add_utf8(&p->text, (unsigned)code);
	}
	p->p += 6;
	return 0;
}

/* What begins with a backslash. */
static int escape(struct parser *p)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *name;

	if (p->end - p->p < 2)
		return wrong(p, "a string without an end");
	if (p->p[1] == 'u')
		return unicode(p);
	name = p->p[1] ? strchr(names, p->p[1]) : NULL;
	if (!name)
		return wrong(p, "no such escape");
	h5_buf_byte(&p->text, bytes[name - names]);
	p->p += 2;
	return 0;
}

/* The bytes of the string that begins here become p->text, with a NUL behind them. */
static int string(struct parser *p)
{
	int rc = 0;

	p->text.size = 0;
	if (!take(p, '"'))
		return wrong(p, "a string is expected");
	while (!rc && !take(p, '"')) {
		const char *plain = p->p;

		while (p->p < p->end && (unsigned char)*p->p >= 0x20 && *p->p != '"' && *p->p != '\\')
			p->p++;
		h5_buf_add(&p->text, plain, (size_t)(p->p - plain));
		if (p->p == p->end)
			return wrong(p, "a string without an end");
		if ((unsigned char)*p->p < 0x20)
			return wrong(p, "a control character in a string");
		if (*p->p == '\\')
			rc = escape(p);
	}
	h5_buf_byte(&p->text, 0);
	return rc ? rc : p->text.err;
}

static int string_value(struct parser *p, struct json_object **value)
{
	int rc = string(p);

	if (!rc)
		rc = charge(p, p->text.size);
	if (rc)
		return rc;
	*value = json_object_new_string_len(p->text.data, (int)p->text.size - 1);
	return *value ? 0 : no_memory();
}

/* ---- values ---- */

/* Reads a value; *out is owned by the caller, NULL for null. The depth is bounded. */
static int value(struct parser *p, unsigned depth, struct json_object **out);

static int array(struct parser *p, unsigned depth, struct json_object *list)
{
	struct json_object *item;
	int rc;

	skip_blanks(p);
	if (take(p, ']'))
		return 0;
	do {
		rc = value(p, depth, &item);
		if (rc)
			return rc;
		if (json_object_array_add(list, item)) {
			json_object_put(item);
			return no_memory();
		}
		skip_blanks(p);
	} while (take(p, ','));
	return take(p, ']') ? 0 : wrong(p, "a comma or ] is expected");
}

/* Adds a member; `name` is free()d. */
static int add_member(struct parser *p, unsigned depth, struct json_object *object, char *name)
{
	struct json_object *item = NULL;
	int rc = value(p, depth, &item);

	if (!rc && json_object_object_add_ex(object, name, item, JSON_C_OBJECT_ADD_KEY_IS_NEW)) {
		json_object_put(item);
		rc = no_memory();
	}
	free(name);
	return rc;
}

static int member(struct parser *p, unsigned depth, struct json_object *object)
{
	char *name;
	int rc;

	skip_blanks(p);
	rc = string(p);
	if (!rc)
		rc = charge(p, p->text.size);
	if (rc)
		return rc;
	if (memchr(p->text.data, 0, p->text.size - 1))
		return wrong(p, "a NUL in a name");
	if (json_object_object_get_ex(object, p->text.data, NULL))
		return wrong(p, "the name occurs twice in the object");
	skip_blanks(p);
	if (!take(p, ':'))
		return wrong(p, "a colon is expected");
	name = strdup(p->text.data);
	return name ? add_member(p, depth, object, name) : no_memory();
}

static int object(struct parser *p, unsigned depth, struct json_object *members)
{
	int rc;

	skip_blanks(p);
	if (take(p, '}'))
		return 0;
	do {
		rc = member(p, depth, members);
		if (rc)
			return rc;
		skip_blanks(p);
	} while (take(p, ','));
	return take(p, '}') ? 0 : wrong(p, "a comma or } is expected");
}

/* An array or object, from behind its bracket on. */
static int container(struct parser *p, unsigned depth, bool is_object, struct json_object **out)
{
	int rc = charge(p, is_object ? OBJECT_COST : 0);

	if (depth == H5_JSON_DEPTH)
		return wrong(p, "nested too deep");
	if (rc)
		return rc;
	*out = is_object ? json_object_new_object() : json_object_new_array_ext(1);
	if (!*out)
		return no_memory();
	rc = is_object ? object(p, depth + 1, *out) : array(p, depth + 1, *out);
	if (rc) {
		json_object_put(*out);
		*out = NULL;
	}
	return rc;
}

static bool word(struct parser *p, const char *text)
{
	size_t n = strlen(text);
	bool is = (size_t)(p->end - p->p) >= n && !memcmp(p->p, text, n);

	p->p += is ? n : 0;
	return is;
}

static int literal(struct parser *p, struct json_object **out)
{
	bool yes = word(p, "true");

	if (word(p, "null"))
		return 0;
	if (!yes && !word(p, "false"))
		return wrong(p, "a value is expected");
	*out = json_object_new_boolean(yes);
	return *out ? 0 : no_memory();
}

static int value(struct parser *p, unsigned depth, struct json_object **out)
{
	int rc = charge(p, VALUE_COST);

	*out = NULL;
	if (rc)
		return rc;
	skip_blanks(p);
	if (take(p, '['))
		return container(p, depth, false, out);
	if (take(p, '{'))
		return container(p, depth, true, out);
	if (p->p < p->end && *p->p == '"')
		return string_value(p, out);
	if (p->p < p->end && (*p->p == '-' || (*p->p >= '0' && *p->p <= '9')))
		return number(p, out);
	return literal(p, out);
}

int h5_json_read(const char *text, size_t n, struct h5_json_document *document)
{
	struct parser p = {.begin = text, .p = text, .end = text + n};
	int rc;

	/* json-c counts the bytes of a string as an int. */
	if (n > INT_MAX)
		return h5_fail(-EFBIG, H5_UNDEF, "JSON: a text of %zu bytes", n);
	h5_buf_init(&p.text, SIZE_MAX);
	rc = value(&p, 0, &document->root);
	skip_blanks(&p);
	if (!rc && p.p < p.end)
		rc = wrong(&p, "more than one value");
	h5_buf_release(&p.text);
	document->charge = p.charge;
	if (rc)
		h5_json_document_release(document);
	return rc;
}

void h5_json_document_release(struct h5_json_document *document)
{
	json_object_put(document->root);
	document->root = NULL;
	h5_charge_release(&document->charge);
}

/* json-c takes values that it only reads as not const. */
static struct json_object *readable(const struct json_object *value)
{
	return (struct json_object *)(uintptr_t)value;
}

const char *h5_json_number_text(const struct json_object *value, char room[H5_JSON_INTEGER_ROOM])
{
	if (json_object_is_type(value, json_type_int)) {
		snprintf(room, H5_JSON_INTEGER_ROOM, "%" PRId64, json_object_get_int64(value));
		return room;
	}
	/* json-c keeps the text of a number in its user data; see json_object_new_double_s(). */
	return json_object_is_type(value, json_type_double) ? json_object_get_userdata(readable(value))
							    : NULL;
}

static bool equal_arrays(const struct json_object *a, const struct json_object *b)
{
	size_t n = json_object_array_length(a);

	if (n != json_object_array_length(b))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!h5_json_equal(json_object_array_get_idx(a, i), json_object_array_get_idx(b, i)))
			return false;
	return true;
}

static bool equal_objects(const struct json_object *a, const struct json_object *b)
{
	struct json_object_iterator i = json_object_iter_begin(readable(a)), end = json_object_iter_end(a);
	struct json_object *other;

	if (json_object_object_length(a) != json_object_object_length(b))
		return false;
	for (; !json_object_iter_equal(&i, &end); json_object_iter_next(&i))
		if (!json_object_object_get_ex(b, json_object_iter_peek_name(&i), &other) ||
		    !h5_json_equal(json_object_iter_peek_value(&i), other))
			return false;
	return true;
}

bool h5_json_equal(const struct json_object *a, const struct json_object *b)
{
	char rooms[2][H5_JSON_INTEGER_ROOM];

	if (json_object_get_type(a) != json_object_get_type(b))
		return false;
	switch (json_object_get_type(a)) {
	case json_type_array:
		return equal_arrays(a, b);
	case json_type_object:
		return equal_objects(a, b);
	case json_type_double:
		return !strcmp(h5_json_number_text(a, rooms[0]), h5_json_number_text(b, rooms[1]));
	default:
		return json_object_equal(readable(a), readable(b));
	}
}

/* json-c builds the tree. A pass before it checks what json-c takes too easily, and rewrites what it would
 * change. */
#include "object/json_read.h"

#include "base/buf.h"
#include "base/error.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	EXACT_LENGTH = 18, /* an integer of so many bytes fits in 64 bits */
	/* What json-c allocates at most for a value, and beside that for an object. */
	VALUE_COST = 256,
	OBJECT_COST = 1024,
};

static const char blanks[] = " \t\r\n";

struct lexer {
	const char *begin, *p, *end;
	struct h5_buf out; /* what json-c gets */
	unsigned depth, deepest;
	size_t names, values, objects;
	bool has_nul; /* the last string */
};

static int wrong(const struct lexer *l, const char *what)
{
	return h5_fail(-EINVAL, H5_UNDEF, "JSON, byte %zu: %s", (size_t)(l->p - l->begin), what);
}

/* ---- tokens ---- */

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

/* json-c keeps the text of a number if it has an exponent or a fraction. Without one it keeps 64 bits, and no
 * sign of a zero. */
static int number(struct lexer *l)
{
	size_t n = h5_json_number_length(l->p, (size_t)(l->end - l->p));
	bool whole = true;

	if (!n)
		return wrong(l, "not a number");
	for (size_t i = 0; i < n; i++)
		whole &= l->p[i] != '.' && l->p[i] != 'e' && l->p[i] != 'E';
	h5_buf_add(&l->out, l->p, n);
	if (whole && (n > EXACT_LENGTH || (n == 2 && !memcmp(l->p, "-0", 2))))
		h5_buf_text(&l->out, "e0");
	l->p += n;
	return 0;
}

/* The number of the four hex digits behind \u; -1: there is no such escape. */
static int escaped(const char *p, const char *end)
{
	int code = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (unsigned i = 2; i < 6; i++) {
		char c = p[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

/* \uXXXX. Only the lone surrogates that stand for a byte are not copied. */
static int unicode(struct lexer *l)
{
	int code = escaped(l->p, l->end), next;
	size_t n = 6;

	if (code < 0)
		return wrong(l, "four hex digits are expected behind \\u");
	l->has_nul |= !code;
	if (code >= 0xdc80 && code <= 0xdcff) {
		h5_buf_byte(&l->out, (char)code);
		l->p += n;
		return 0;
	}
	if (code >= 0xdc00 && code <= 0xdfff)
		return wrong(l, "a low surrogate without a high one");
	if (code >= 0xd800 && code <= 0xdbff) {
		next = escaped(l->p + n, l->end);
		if (next < 0xdc00 || next > 0xdfff)
			return wrong(l, "a high surrogate without a low one");
		n = 12;
	}
	h5_buf_add(&l->out, l->p, n);
	l->p += n;
	return 0;
}

static int string(struct lexer *l)
{
	int rc = 0;

	l->has_nul = false;
	h5_buf_byte(&l->out, *l->p++);
	while (!rc && l->p < l->end && *l->p != '"') {
		const char *plain = l->p;

		if ((unsigned char)*l->p < 0x20)
			return wrong(l, "a control character in a string");
		if (*l->p != '\\') {
			while (l->p < l->end && (unsigned char)*l->p >= 0x20 && *l->p != '"' && *l->p != '\\')
				l->p++;
			h5_buf_add(&l->out, plain, (size_t)(l->p - plain));
		} else if (l->end - l->p > 1 && l->p[1] == 'u') {
			rc = unicode(l);
		} else if (l->end - l->p > 1 && l->p[1] && strchr("\"\\/bfnrt", l->p[1])) {
			h5_buf_add(&l->out, l->p, 2);
			l->p += 2;
		} else {
			return wrong(l, "no such escape");
		}
	}
	if (rc)
		return rc;
	if (l->p == l->end)
		return wrong(l, "a string without an end");
	h5_buf_byte(&l->out, *l->p++);
	return 0;
}

/* json-c knows more words, like NaN, in capital letters, too. */
static int literal(struct lexer *l)
{
	static const char *const words[] = {"true", "false", "null"};

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(l->end - l->p) >= n && !memcmp(l->p, words[i], n)) {
			h5_buf_add(&l->out, l->p, n);
			l->p += n;
			return 0;
		}
	}
	return wrong(l, "a value is expected");
}

static int punctuation(struct lexer *l)
{
	char c = *l->p;

	if (c == ':') {
		l->names++;
		if (l->has_nul)
			return wrong(l, "a NUL in a name");
	} else if (c == '[' || c == '{') {
		l->values++;
		l->objects += c == '{';
		if (++l->depth > H5_JSON_DEPTH)
			return wrong(l, "nested too deep");
		if (l->depth > l->deepest)
			l->deepest = l->depth;
	} else if ((c == ']' || c == '}') && !l->depth--) {
		return wrong(l, "a bracket too many");
	}
	h5_buf_byte(&l->out, c);
	l->p++;
	return 0;
}

static int token(struct lexer *l)
{
	char c = *l->p;

	if (c && strchr(blanks, c)) {
		h5_buf_byte(&l->out, c);
		l->p++;
		return 0;
	}
	if (c && strchr("[]{},:", c))
		return punctuation(l);
	l->values++;
	if (c == '"')
		return string(l);
	if (c == '-' || (c >= '0' && c <= '9'))
		return number(l);
	return literal(l);
}

static int prepare(struct lexer *l)
{
	int rc = 0;

	/* build() wants to know where the value ends. */
	while (l->end > l->begin && l->end[-1] && strchr(blanks, l->end[-1]))
		l->end--;
	while (!rc && l->p < l->end) {
		rc = token(l);
		if (!rc)
			rc = l->out.err;
	}
	if (!rc && l->depth)
		rc = wrong(l, "a bracket is missing");
	if (!rc && !l->values)
		rc = wrong(l, "a value is expected");
	if (!rc && l->out.size > INT_MAX - 1)
		rc = h5_fail(-EFBIG, H5_UNDEF, "JSON: %zu bytes", l->out.size);
	h5_buf_byte(&l->out, 0);
	return rc ? rc : l->out.err;
}

/* ---- the tree ---- */

/* Names in all objects of the tree. The depth is bounded, as the lexer has refused deeper text. */
static size_t count_names(const struct json_object *value)
{
	struct json_object_iterator i, end;
	size_t count = 0, n;

	if (json_object_is_type(value, json_type_array)) {
		n = json_object_array_length(value);
		for (size_t at = 0; at < n; at++)
			count += count_names(json_object_array_get_idx(value, at));
	} else if (json_object_is_type(value, json_type_object)) {
		struct json_object *object = (struct json_object *)(uintptr_t)value;

		i = json_object_iter_begin(object);
		end = json_object_iter_end(object);
		for (; !json_object_iter_equal(&i, &end); json_object_iter_next(&i))
			count += 1 + count_names(json_object_iter_peek_value(&i));
	}
	return count;
}

static bool is_null(const struct lexer *l)
{
	return l->values == 1 && !l->depth && l->end - l->begin >= 4 && !memcmp(l->end - 4, "null", 4);
}

/* json-c may tell nothing of memory that ran out: then it has not read all, or returns no value. */
static int build(const struct lexer *l, struct json_tokener *tokener, struct json_object **root)
{
	size_t n = l->out.size - 1;
	enum json_tokener_error error;

	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	*root = json_tokener_parse_ex(tokener, l->out.data, (int)n + 1);
	error = json_tokener_get_error(tokener);
	if (error != json_tokener_success)
		return h5_fail(-EINVAL, H5_UNDEF, "JSON: %s", json_tokener_error_desc(error));
	if (json_tokener_get_parse_end(tokener) < n || (!*root && !is_null(l)))
		return h5_fail(-ENOMEM, H5_UNDEF, "JSON: out of memory");
	if (l->names && count_names(*root) != l->names)
		return h5_fail(-EINVAL, H5_UNDEF, "JSON: a name occurs twice in an object");
	return 0;
}

int h5_json_read(const char *text, size_t n, struct h5_json_document *document)
{
	struct lexer l = {.begin = text, .p = text, .end = text + n};
	struct json_tokener *tokener = NULL;
	int rc;

	*document = (struct h5_json_document){0};
	h5_buf_init(&l.out, SIZE_MAX);
	rc = prepare(&l);
	if (!rc)
		rc = h5_charge_set(&document->charge,
				   2 * n + l.values * VALUE_COST + l.objects * OBJECT_COST);
	if (!rc) {
		tokener = json_tokener_new_ex((int)l.deepest + 2);
		rc = tokener ? build(&l, tokener, &document->root)
			     : h5_fail(-ENOMEM, H5_UNDEF, "JSON: out of memory");
	}
	if (tokener)
		json_tokener_free(tokener);
	h5_buf_release(&l.out);
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

const char *h5_json_number_text(const struct json_object *value, char room[H5_JSON_INTEGER_ROOM])
{
	struct json_object *number = (struct json_object *)(uintptr_t)value;

	if (json_object_is_type(value, json_type_int)) {
		snprintf(room, H5_JSON_INTEGER_ROOM, "%" PRId64, json_object_get_int64(value));
		return room;
	}
	/* json-c keeps the text of a number in its user data; see json_object_new_double_s(). */
	return json_object_is_type(value, json_type_double) ? json_object_get_userdata(number) : NULL;
}

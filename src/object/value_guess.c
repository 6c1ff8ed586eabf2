/* The type of a new attribute, guessed from its text. */
#include "object/value_parse_private.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/json_read.h"
#include "format/datatype_make.h"

#include <stdlib.h>
#include <string.h>

/* What elements an array can have; the order is that of join(). */
enum kind {
	NONE,
	NATURAL,  /* an integer that fits in signed and unsigned ones */
	SIGNED,	  /* below zero */
	UNSIGNED, /* more than signed integers hold */
	FLOAT,
	WORD, /* a string that stands for a float in JSON, or for itself: "NaN" */
	STRING,
	OTHER, /* no array can have it */
};

/* The guess from a JSON text, and what it is made from. */
struct guess {
	uint8_t size_of_offsets;
	enum kind kind;
	unsigned rank;
	uint64_t dims[H5_RANK_MAX];
	struct h5_datatype *type; /* owned */
	struct h5_buf text;	  /* as the elements would be written */
};

/* ---- kinds ---- */

/* The kind of an array that has both. */
static enum kind join(enum kind a, enum kind b)
{
	enum kind least = a < b ? a : b, most = a < b ? b : a;

	if (least == most || least == NONE || most == OTHER)
		return most;
	if (most == STRING)
		return least == WORD ? STRING : OTHER;
	return least == NATURAL && most < FLOAT ? most : FLOAT;
}

static enum kind number_kind(const char *text)
{
	bool negative = *text == '-';
	size_t n = strspn(text + negative, "0123456789") + negative;
	unsigned long long value;

	if (text[n])
		return FLOAT;
	errno = 0;
	if (negative) {
		(void)strtoll(text, NULL, 10);
		return errno ? FLOAT : SIGNED;
	}
	value = strtoull(text, NULL, 10);
	return errno ? FLOAT : value > INT64_MAX ? UNSIGNED : NATURAL;
}

static enum kind string_kind(const char *text)
{
	bool negative = *text == '-';

	return !strcmp(text, "NaN") || !strcmp(text + negative, "Infinity") ? WORD : STRING;
}

static enum kind kind_of(struct json_object *json)
{
	char room[H5_JSON_INTEGER_ROOM];
	const char *number = h5_json_number_text(json, room);

	if (number)
		return number_kind(number);
	return json_object_is_type(json, json_type_string) ? string_kind(json_object_get_string(json))
							   : OTHER;
}

/* Finds kind and dimensions. False: the arrays are not of one shape. Nested at most H5_RANK_MAX deep. */
static bool examine(struct guess *g, struct json_object *json, unsigned depth, bool first)
{
	uint64_t n;

	if (!json_object_is_type(json, json_type_array)) {
		g->kind = join(g->kind, kind_of(json));
		return g->rank == depth && g->kind != OTHER;
	}
	n = json_object_array_length(json);
	if (depth == H5_RANK_MAX || (!first && (depth >= g->rank || g->dims[depth] != n)))
		return false;
	g->dims[depth] = n;
	if (first)
		g->rank = depth + 1;
	for (uint64_t i = 0; i < n; i++)
		if (!examine(g, json_object_array_get_idx(json, i), depth + 1, first && !i))
			return false;
	return true;
}

static struct h5_datatype *make_type(const struct guess *g)
{
	switch (g->kind) {
	case NATURAL:
	case SIGNED:
	case UNSIGNED:
		return h5_datatype_make_integer(8, g->kind != UNSIGNED, H5_ORDER_LE);
	case WORD:
	case STRING:
		return h5_datatype_make_vlen_string(g->size_of_offsets, H5_CHARSET_UTF8);
	default: /* as NumPy has it, an array without elements is one of floats */
		return h5_datatype_make_float(8, H5_ORDER_LE);
	}
}

/* ---- what would be read back ---- */

/* Appends the element as it would be written. False: it cannot be stored. */
static bool write_element(struct guess *g, struct json_object *json)
{
	struct h5_value_context none = {0};
	char room[H5_JSON_INTEGER_ROOM];
	const char *text = h5_json_number_text(json, room);
	uint8_t data[8];
	size_t n;
	int rc;

	if (g->type->class == H5_CLASS_VLEN) {
		text = json_object_get_string(json);
		n = (size_t)json_object_get_string_len(json);
		h5_json_string(&g->text, text, n);
		return !memchr(text, 0, n);
	}
	if (!text)
		text = json_object_get_string(json);
	if (g->type->class == H5_CLASS_FLOAT)
		rc = h5_float_parse(g->type, text, strlen(text), data);
	else
		rc = h5_integer_parse(g->type, text, strlen(text), data);
	return !rc && !h5_value_json(&none, g->type, data, &g->text);
}

static bool write_all(struct guess *g, struct json_object *json)
{
	struct h5_json list;
	bool good = true;
	size_t n;

	if (!json_object_is_type(json, json_type_array))
		return write_element(g, json);
	n = json_object_array_length(json);
	list = h5_json_array(&g->text);
	for (size_t i = 0; i < n && good; i++) {
		h5_json_item(&list);
		good = write_all(g, json_object_array_get_idx(json, i)) && !g->text.err;
	}
	h5_json_close(&list);
	return good;
}

/* Guesses from JSON. 0: it cannot be used; 1: g->type is set. */
static int from_json(struct guess *g, struct json_object *json, const char *text, size_t n)
{
	bool same;

	if (!examine(g, json, 0, true) || (!g->rank && g->kind >= WORD))
		return 0;
	g->type = make_type(g);
	if (!g->type)
		return -ENOMEM;
	same = write_all(g, json);
	if (g->text.err == -ENOMEM || g->text.err == -EFBIG)
		return g->text.err;
	return same && !g->text.err && g->text.size == n && !memcmp(g->text.data, text, n);
}

/* ---- all ---- */

static bool may_be_json(const char *text, size_t n)
{
	return n && text[0] && strchr("-[0123456789", text[0]);
}

static int guess_json(struct guess *g, const char *text, size_t n)
{
	struct h5_json_document document;
	int rc = may_be_json(text, n) ? h5_json_read(text, n, &document) : -EINVAL;

	if (rc)
		return rc == -EINVAL ? 0 : rc;
	h5_buf_init(&g->text, n + 1);
	rc = from_json(g, document.root, text, n);
	if (rc != 1) {
		h5_datatype_free(g->type);
		g->type = NULL;
	}
	h5_buf_release(&g->text);
	h5_json_document_release(&document);
	return rc;
}

/* A variable-length string ends at its first NUL. One of fixed length keeps NULs, but not at its end if it is
 * padded with them. */
static struct h5_datatype *make_string(uint8_t size_of_offsets, const char *text, size_t n)
{
	if (!memchr(text, 0, n))
		return h5_datatype_make_vlen_string(size_of_offsets, H5_CHARSET_UTF8);
	return h5_datatype_make_string((uint32_t)n, text[n - 1] ? H5_PAD_NULLPAD : H5_PAD_SPACEPAD,
				       H5_CHARSET_UTF8);
}

static void make_space(const struct guess *g, struct h5_dataspace *space)
{
	memset(space, 0, sizeof *space);
	space->kind = g->type && g->rank ? H5_SPACE_SIMPLE : H5_SPACE_SCALAR;
	space->elements = 1;
	if (space->kind == H5_SPACE_SCALAR)
		return;
	space->rank = g->rank;
	memcpy(space->dims, g->dims, g->rank * sizeof *g->dims);
	memcpy(space->max, g->dims, g->rank * sizeof *g->dims);
	/* The text has each element. */
	(void)h5_product(space->dims, space->rank, &space->elements);
}

int h5_value_guess(const char *text, size_t n, uint8_t size_of_offsets, struct h5_datatype **type,
		   struct h5_dataspace *space)
{
	struct guess g = {.size_of_offsets = size_of_offsets};
	int rc;

	*type = NULL;
	if (n > UINT32_MAX)
		return h5_fail(-EFBIG, H5_UNDEF, "a text of %zu bytes", n);
	rc = guess_json(&g, text, n);
	if (rc < 0)
		return rc;
	make_space(&g, space);
	*type = g.type ? g.type : make_string(size_of_offsets, text, n);
	return *type ? 0 : h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
}

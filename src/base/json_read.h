/* Reads JSON (RFC 8259) strictly, into values of json-c. The text may be hostile.
 *
 * Nothing of the text is lost: numbers keep all their digits, a name occurs once in an object, and lone
 * surrogates \udc80 to \udcff are the bytes 80 to ff, as h5_json_string() writes bytes that are not UTF-8.
 * Other lone surrogates are refused. */
#ifndef H5_BASE_JSON_READ_H
#define H5_BASE_JSON_READ_H

#include "base/room.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	H5_JSON_DEPTH = 1024,	   /* most levels of arrays and objects; deeper text is refused */
	H5_JSON_INTEGER_ROOM = 24, /* bytes of text of an integer that json-c has as such */
};

struct h5_json_document {
	struct json_object *root; /* NULL: the text is `null` */
	struct h5_charge charge;
};

/* Reads a text that is one JSON value; *document is released by the caller. -EINVAL: it is none; the detail
 * says what is wrong, at which byte. -EFBIG: more than INT_MAX bytes. -ENOMEM, -EFBIG (h5_charge_set()):
 * there is nothing to release. */
int h5_json_read(const char *text, size_t n, struct h5_json_document *document);
void h5_json_document_release(struct h5_json_document *document); /* may run twice */

/* True if the values are the same: numbers in the same form, members in any order. (json_object_equal() knows
 * only the beginning of a long number.) */
bool h5_json_equal(const struct json_object *a, const struct json_object *b);

/* The text of a number, as it was read; NULL: the value is no number. It is in `room`, or borrowed from the
 * value. */
const char *h5_json_number_text(const struct json_object *value, char room[H5_JSON_INTEGER_ROOM]);

/* The length of the JSON number at the begin of the n bytes; 0: they begin with none. */
size_t h5_json_number_length(const char *text, size_t n);

#endif

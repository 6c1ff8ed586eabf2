/* Writes JSON to a buffer. The caller writes values; brackets, commas and keys are written here. */
#ifndef H5_OBJECT_JSON_H
#define H5_OBJECT_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An array or object that is being written. To undo what was written since some point, restore a copy of this
 * struct and the size of the buffer. */
struct h5_json {
	struct h5_buf *out;
	char bracket;	 /* that closes the array or object; 0: it is closed */
	bool any;	 /* it has items */
	bool spaced;	 /* spaces after commas and colons; the caller may set it after opening */
	unsigned indent; /* likewise: spaces before each item, which has a line of its own; 0: all on one line
			  */
};

struct h5_json h5_json_array(struct h5_buf *out);
struct h5_json h5_json_object(struct h5_buf *out);
void h5_json_close(struct h5_json *json);

/* Begins an item of an array, or a member of an object. The value is written to the buffer next, which is
 * returned. */
struct h5_buf *h5_json_item(struct h5_json *array);
struct h5_buf *h5_json_key(struct h5_json *object, const char *name);

/* The length of the UTF-8 sequence at the begin of the n > 0 bytes at p; 0: they begin with none. A sequence
 * is well-formed by table 3-7 of the Unicode standard. */
size_t h5_utf8_sequence(const uint8_t *p, size_t n);

/* A string with its quotes; bytes that are not UTF-8 as lone surrogates. */
void h5_json_string(struct h5_buf *out, const char *bytes, size_t n);
void h5_json_text(struct h5_buf *out, const char *text);
void h5_json_number(struct h5_buf *out, uint64_t number);

#endif

/* Reads values from text: the counterpart of object/value.h. The text may be hostile.
 *
 * It is as h5_value_json() and h5_value_text() write it, and more freely what JSON allows: blanks, other
 * forms of numbers and escapes, members of a compound in any order and without some of them. What cannot be
 * stored so that it reads back as the same value is refused: a number out of range, a string that is too long
 * or that the padding would cut. (A float becomes the nearest one.)
 *
 * -EINVAL: the text is no such value; the detail says which member or element, and why. */
#ifndef H5_OBJECT_VALUE_PARSE_H
#define H5_OBJECT_VALUE_PARSE_H

#include "object/global_heap_write.h"
#include "object/value.h"

struct h5_value_parser {
	/* The file that the value becomes a part of, and how `old` elements are written. */
	const struct h5_value_context *context;
	/* Takes variable-length data. NULL: -ENOTSUP for a type that has such. */
	struct h5_heap_sink *heap;
	/* Finds the object that the path leads to: n bytes, as h5_value_context.object_path wrote it.
	 * -ENOENT: none. NULL: no path leads anywhere. */
	int (*object_address)(void *arg, const char *path, size_t n, uint64_t *address);
	void *arg;
};

/* Reads the text of an attribute or fill value: all elements of the dataspace. `data` has room for them, and
 * on entry the bytes that missing members of compounds, and bits without a meaning, have: zeros, or the fill
 * value. `old`: the elements that are to be replaced, NULL: there are none. A reference that is written as
 * the old one is keeps its bytes; so references of kinds that only libhdf5 can make are kept, too.
 *
 * On failure `data` is undefined, and objects may have been put into the heap; so the caller encloses it in a
 * unit of change. */
int h5_value_parse(const struct h5_value_parser *parser, const struct h5_datatype *type,
		   const struct h5_dataspace *space, const char *text, size_t n, const uint8_t *old,
		   uint8_t *data);

/* Reads the JSON of one element, as h5_value_json() writes it. */
int h5_value_parse_json(const struct h5_value_parser *parser, const struct h5_datatype *type,
			const char *text, size_t n, const uint8_t *old, uint8_t *data);
/* The same for a string of variable length, which is the text as it is. */
int h5_value_parse_vlen_string(const struct h5_value_parser *parser, const struct h5_datatype *type,
			       const char *text, size_t n, uint8_t *data);

/* The type and shape of a new attribute with this text: those of a number, or of an array of numbers or of
 * strings, if h5_value_text() writes it as the very same text, else of a string. The text can be read as this
 * type, and reads back unchanged. *type is owned by the caller. */
int h5_value_guess(const char *text, size_t n, uint8_t size_of_offsets, struct h5_datatype **type,
		   struct h5_dataspace *space);

#endif

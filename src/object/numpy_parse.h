/* Types from NumPy's names: the counterpart of the last functions of object/value.h. The text may be hostile.
 *
 *   <i8 >u2 |u1 f4 S10 V16    a word: byte order (without one: little-endian), kind, bytes
 *   |b1                       what h5py makes of a boolean: an enumeration
 *   <c16                      what h5py makes of a complex number: a compound of r and i
 *   vlen str                  a UTF-8 string of variable length
 *   [["a","<i4"],["","V4"],["b","<f8",[3]]]
 *                             a compound: members in the order of their bytes, gaps without a name
 *
 * -EINVAL: there is no such type; the detail says why. */
#ifndef H5_OBJECT_NUMPY_PARSE_H
#define H5_OBJECT_NUMPY_PARSE_H

#include "base/json_read.h"
#include "format/dataspace.h"
#include "format/datatype.h"

#include <stddef.h>

/* h5fs.dtype. *type is owned by the caller. */
int h5_numpy_parse(const char *text, size_t n, uint8_t size_of_offsets, struct h5_datatype **type);

/* The same from JSON that was read: a string, or the list of members of a compound. */
int h5_numpy_parse_json(struct json_object *json, uint8_t size_of_offsets, struct h5_datatype **type);

/* h5fs.type.NAME: the same behind a shape, `(3,)<i4`, or without one: a scalar. */
int h5_numpy_parse_shaped(const char *text, size_t n, uint8_t size_of_offsets, struct h5_datatype **type,
			  struct h5_dataspace *space);

#endif

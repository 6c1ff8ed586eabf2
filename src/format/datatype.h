/* Datatype message (0x0003), versions 1 to 5. Specification IV.A.2.d; version 5 (complex) as libhdf5 2.0
 * writes it.
 *
 * A decoded type is a tree that owns its parts. Version differences end here: array members of version 1
 * compounds become members of array type. */
#ifndef H5_FORMAT_DATATYPE_H
#define H5_FORMAT_DATATYPE_H

#include "base/buf.h"
#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	H5_DATATYPE_DEPTH = 64, /* most levels of nested types; deeper ones are refused */
	H5_RANK_MAX = 32,
};

enum h5_class {
	H5_CLASS_INTEGER = 0,
	H5_CLASS_FLOAT = 1,
	H5_CLASS_TIME = 2,
	H5_CLASS_STRING = 3,
	H5_CLASS_BITFIELD = 4,
	H5_CLASS_OPAQUE = 5,
	H5_CLASS_COMPOUND = 6,
	H5_CLASS_REFERENCE = 7,
	H5_CLASS_ENUM = 8,
	H5_CLASS_VLEN = 9,
	H5_CLASS_ARRAY = 10,
	H5_CLASS_COMPLEX = 11,
};

enum h5_byte_order { H5_ORDER_LE = 0, H5_ORDER_BE = 1, H5_ORDER_VAX = 2 };

enum h5_string_padding { H5_PAD_NULLTERM = 0, H5_PAD_NULLPAD = 1, H5_PAD_SPACEPAD = 2 };

enum h5_charset { H5_CHARSET_ASCII = 0, H5_CHARSET_UTF8 = 1 };

enum h5_float_norm { H5_NORM_NONE = 0, H5_NORM_MSB_SET = 1, H5_NORM_IMPLIED = 2 };

enum h5_reference_kind {
	H5_REF_OBJECT = 0,  /* old-style: the address of an object header */
	H5_REF_REGION = 1,  /* old-style: a global heap ID */
	H5_REF_OBJECT2 = 2, /* new-style, libhdf5 1.12 and later */
	H5_REF_REGION2 = 3,
	H5_REF_ATTRIBUTE = 4,
};

struct h5_datatype;

struct h5_member {
	char *name;	 /* NUL-terminated */
	uint64_t offset; /* bytes within the compound */
	struct h5_datatype *type;
};

struct h5_enum_member {
	char *name;
	const uint8_t *value; /* `size` bytes, as the base type stores them; owned by the enum (`values`) */
};

struct h5_datatype {
	enum h5_class class;
	uint8_t version;
	uint32_t size;			/* bytes of one element as stored */
	enum h5_byte_order order;	/* integer, float, time, bitfield */
	uint16_t bit_offset, precision; /* bits; integer, float, bitfield; time: precision */
	bool is_signed;			/* integer */
	union {
		struct { /* bit positions from the least significant bit of the element, sizes in bits */
			enum h5_float_norm norm;
			uint8_t sign, exponent, exponent_size, mantissa, mantissa_size;
			uint32_t bias;
		} fl;
		struct {
			enum h5_string_padding padding;
			enum h5_charset charset;
		} string;
		struct {
			char *tag;
		} opaque;
		struct {
			unsigned count;
			struct h5_member *members;
		} compound;
		struct {
			enum h5_reference_kind kind;
		} reference;
		struct {
			struct h5_datatype *base; /* an integer */
			unsigned count;
			struct h5_enum_member *members;
			uint8_t *values;			/* count x size bytes */
			const struct h5_enum_member **by_value; /* sorted by their bytes */
		} enumeration;
		struct {
			bool is_string;
			enum h5_string_padding padding; /* strings */
			enum h5_charset charset;
			struct h5_datatype *base;
		} vlen;
		struct {
			unsigned rank;
			uint64_t dims[H5_RANK_MAX];
			uint64_t count; /* product of dims */
			struct h5_datatype *base;
		} array;
		struct {
			struct h5_datatype *base; /* a float, half of size */
		} complex;
	};
};

/* Decodes one type message; *type is owned by the caller. Checks that sizes are not 0, bits lie inside the
 * element and members inside their compound, arrays have the size of their elements, and nesting is not too
 * deep. */
int h5_datatype_decode(struct h5_reader *r, struct h5_datatype **type);
void h5_datatype_free(struct h5_datatype *type); /* NULL is fine */

/* Appends the datatype message to `out`, whose limit is the size of a message. `latest`: writes what
 * libhdf5 1.10 writes with H5F_LIBVER_LATEST; else what it writes by default, which libhdf5 1.8 and earlier
 * can read. The version is higher if the type needs that. Padding bits are zeros. Returns out->err. */
int h5_datatype_encode(const struct h5_datatype *type, bool latest, struct h5_buf *out);

/* The first member of the enumeration that has the value (size bytes); borrowed. NULL: none. */
const struct h5_enum_member *h5_datatype_enum_member(const struct h5_datatype *type, const uint8_t *value);

/* True if an element's bytes mean something outside of the file. Not so: variable-length data, which lie in a
 * heap, and references, which hold addresses; also if only a part of the type is one
 * (doc/h5fs.1, Contents of datasets). */
bool h5_datatype_is_fixed(const struct h5_datatype *type);

/* True if the type, or a part of it, is a reference. */
bool h5_datatype_has_references(const struct h5_datatype *type);

/* True for an integer that C has: 1, 2, 4 or 8 bytes, all bits significant, in little- or big-endian order.
 */
bool h5_datatype_is_native_integer(const struct h5_datatype *type);
/* True for IEEE 754 half, single and double precision in little- or big-endian order. */
bool h5_datatype_is_ieee_float(const struct h5_datatype *type);
/* True for these two, and for enumerations of such integers. */
bool h5_datatype_is_number(const struct h5_datatype *type);
/* True for what h5py writes a boolean as: an enumeration of FALSE and TRUE. */
bool h5_datatype_is_boolean(const struct h5_datatype *type);

/* The bits of an element of up to 8 bytes, whatever its type, in the machine's byte order. */
uint64_t h5_datatype_bits(const struct h5_datatype *type, const uint8_t *data);

/* Bytes of memory of the tree, for cache budgets. */
size_t h5_datatype_cost(const struct h5_datatype *type);

#endif

/* Makes datatypes, as libhdf5 makes them for new objects. Each is owned by the caller, h5_datatype_free().
 * NULL: no memory, unless said otherwise. */
#ifndef H5_FORMAT_DATATYPE_MAKE_H
#define H5_FORMAT_DATATYPE_MAKE_H

#include "format/datatype.h"

/* `size`: 1 to 8 bytes. */
struct h5_datatype *h5_datatype_make_integer(uint32_t size, bool is_signed, enum h5_byte_order order);
/* IEEE 754; `size`: 2, 4 or 8 bytes. */
struct h5_datatype *h5_datatype_make_float(uint32_t size, enum h5_byte_order order);
/* Of fixed length, padded with NULs, as h5py writes it. */
struct h5_datatype *h5_datatype_make_string(uint32_t size, enum h5_string_padding padding,
					    enum h5_charset charset);
struct h5_datatype *h5_datatype_make_vlen_string(uint8_t size_of_offsets, enum h5_charset charset);
struct h5_datatype *h5_datatype_make_opaque(uint32_t size, const char *tag);
/* A native complex number is written by libhdf5 2.0 alone, so this is the compound of r and i that h5py
 * writes. `size`: 8 or 16 bytes. */
struct h5_datatype *h5_datatype_make_complex(uint32_t size, enum h5_byte_order order);

/* What h5py writes a boolean as: h5_datatype_is_boolean(). */
struct h5_datatype *h5_datatype_make_boolean(void);

/* These take over their parts, which are freed if they fail. */

/* NULL also: no array has these dimensions. */
struct h5_datatype *h5_datatype_make_array(unsigned rank, const uint64_t *dims, struct h5_datatype *base);
/* Of no members yet, which `size` bytes have room for. */
struct h5_datatype *h5_datatype_make_compound(uint32_t size, unsigned room);
/* Appends a member. The compound has room for it. -ENOMEM: the compound is as it was. */
int h5_datatype_add_member(struct h5_datatype *compound, const char *name, uint64_t offset,
			   struct h5_datatype *type);

#endif

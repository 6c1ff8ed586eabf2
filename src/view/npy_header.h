/* The header of a file in NumPy's NPY format, as NumPy's numpy/lib/format.py describes it.
 *
 *   size   field
 *      6   signature
 *      2   version: 1.0; 2.0 if the header is long; 3.0 if it is not ASCII
 *    2|4   length of the rest, in little-endian order: 2 bytes in version 1.0
 *          a dictionary in Python's words, spaces and an end of line, so that what comes behind the header
 *          begins at a multiple of 64 */
#ifndef H5_VIEW_NPY_HEADER_H
#define H5_VIEW_NPY_HEADER_H

#include "base/buf.h"
#include "format/dataspace.h"
#include "format/datatype.h"

enum {
	H5_NPY_DICTIONARY_MAX =
		1 << 24,      /* most bytes; NumPy refuses more than 10,000, unless told otherwise */
	H5_NPY_PREAMBLE = 12, /* most bytes before the dictionary */
};

/* Makes the header of that dictionary. *head: h5_buf_release() on failure, too, which head->err tells. */
void h5_npy_header_make(const struct h5_buf *dictionary, struct h5_buf *head);

/* What the header of a file says of its array. */
struct h5_npy_header {
	struct h5_datatype *type;  /* owned */
	struct h5_dataspace space; /* scalar or simple; the maximum is the shape */
	bool is_fortran;	   /* the elements are in column-major order */
};

/* Bytes of the header of a file that begins with these n bytes; 0: more of them are needed to tell. -EINVAL:
 * it is no such file, or its header is too long. */
int h5_npy_header_size(const uint8_t *data, size_t n, size_t *size);
/* Reads a header of that size, which may be hostile. -EINVAL: it is damaged, or HDF5 has no such type; the
 * detail says why. */
int h5_npy_header_read(const uint8_t *data, size_t size, uint8_t size_of_offsets,
		       struct h5_npy_header *header);
void h5_npy_header_release(struct h5_npy_header *header); /* may run twice */

#endif

/* Values as text: the JSON of an element, and the text of an attribute (doc/h5fs.1, EXTENDED ATTRIBUTES).
 * Types as text: HDF5 DDL, and NumPy's names. */
#ifndef H5_OBJECT_VALUE_H
#define H5_OBJECT_VALUE_H

#include "base/buf.h"
#include "format/dataspace.h"
#include "format/datatype.h"
#include "store/file.h"

/* Where the rest of a value is: data in heaps, and paths of objects. */
struct h5_value_context {
	struct h5_file *file; /* for the heaps */
	/* Appends the path of the object at the address to `path` (raw bytes, not quoted).
	 * -ENOENT: no path leads there; then the reference is shown as null. NULL: no path leads anywhere. */
	int (*object_path)(void *arg, uint64_t address, struct h5_buf *path);
	void *arg;
};

/* Appends the JSON of the element at data (type->size bytes). out->limit bounds its depth and size. */
int h5_value_json(const struct h5_value_context *context, const struct h5_datatype *type, const uint8_t *data,
		  struct h5_buf *out);

/* Appends the text of an attribute or fill value: section 4, "Text of an attribute". `data`: all elements. */
int h5_value_text(const struct h5_value_context *context, const struct h5_datatype *type,
		  const struct h5_dataspace *space, const uint8_t *data, struct h5_buf *out);

/* Appends the bytes of a variable-length string element as they are stored, NULs included; nothing for a null
 * one. */
int h5_value_vlen_string(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			 struct h5_buf *out);
/* The number of these bytes, which the element itself tells: no heap is read. */
int h5_value_vlen_length(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			 uint64_t *length);

/* What an element of variable length has: *data are *count x the size of the base type, borrowed until
 * h5_file_put(*ref). *count 0: nothing is stored. -EUCLEAN: it cannot be read. */
int h5_value_vlen_open(struct h5_file *file, const struct h5_datatype *type, const uint8_t *element,
		       struct h5_lru_entry **ref, const uint8_t **data, uint64_t *count);

/* The address of the object that a reference of any kind leads to. -ENOENT: it leads nowhere. */
int h5_reference_object(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			uint64_t *address);

/* HDF5 DDL as h5dump writes it: indented, or on one line, with spaces instead of line ends. */
void h5_datatype_ddl(const struct h5_datatype *type, bool one_line, struct h5_buf *out);

/* h5fs.dtype: NumPy's type string, or descr of a compound; `object` if NumPy has no such type. */
void h5_datatype_numpy(const struct h5_datatype *type, struct h5_buf *out);

/* The dictionary in the header of an NPY file: type, order and shape. False, after a part has been written,
 * if NumPy has no such type or shape. */
bool h5_datatype_npy(const struct h5_datatype *type, const struct h5_dataspace *space, struct h5_buf *out);

/* The same in the form that metadata of Zarr, version 2, have: JSON. False, after a part has been written:
 * NumPy has no such type. */
bool h5_datatype_zarr(const struct h5_datatype *type, struct h5_buf *out);

/* h5fs.type.NAME: `(3,)<i4`, `vlen str`, ... */
void h5_datatype_numpy_shaped(const struct h5_datatype *type, const struct h5_dataspace *space,
			      struct h5_buf *out);

#endif

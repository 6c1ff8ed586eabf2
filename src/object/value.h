/* Values as text: JSON of an element (MAPPING.md, section 5), text of an attribute (section 4), and types as
 * HDF5 DDL and in NumPy's words. */
#ifndef H5_OBJECT_VALUE_H
#define H5_OBJECT_VALUE_H

#include "base/buf.h"
#include "format/dataspace.h"
#include "format/datatype.h"
#include "store/file.h"

/* What a value needs beside its bytes. */
struct h5_value_context {
	struct h5_file *file; /* for the heaps */
	/* Appends the path of the object at the address to `path` (raw bytes, not quoted).
	 * -ENOENT: no path leads there, shown as null. */
	int (*object_path)(void *arg, uint64_t address, struct h5_buf *path);
	void *arg;
};

/* Appends the JSON of one element at data (type->size bytes). Depth and total size are bounded by out->limit.
 */
int h5_value_json(const struct h5_value_context *context, const struct h5_datatype *type, const uint8_t *data,
		  struct h5_buf *out);

/* The text of an attribute or fill value: section 4, "Text of an attribute". data: all elements. */
int h5_value_text(const struct h5_value_context *context, const struct h5_datatype *type,
		  const struct h5_dataspace *space, const uint8_t *data, struct h5_buf *out);

/* The bytes of a variable-length string element as stored, a NUL among them too, appended to out; nothing for
 * a null one. */
int h5_value_vlen_string(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			 struct h5_buf *out);
/* How many these are, by the element alone: no heap is read. */
int h5_value_vlen_length(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			 uint64_t *length);

/* Shortest decimal that reads back to the same value of the type's own format; not quoted: NaN, Infinity,
 * -Infinity. */
void h5_float_text(struct h5_buf *out, const struct h5_datatype *type, const uint8_t *data);

/* HDF5 DDL as h5dump writes it; one line (spaces instead of line ends), or indented as in h5dump. */
void h5_datatype_ddl(const struct h5_datatype *type, bool one_line, struct h5_buf *out);

/* h5fs.dtype: NumPy's type string, or descr for a compound; `object` where NumPy has none. */
void h5_datatype_numpy(const struct h5_datatype *type, struct h5_buf *out);

/* The dictionary in the header of an NPY file: type, order and shape. False, with part of it written, where
 * NumPy has no such type or no such shape. */
bool h5_datatype_npy(const struct h5_datatype *type, const struct h5_dataspace *space, struct h5_buf *out);

/* h5fs.type.NAME: `(3,)<i4`, `vlen str`, ... */
void h5_datatype_numpy_shaped(const struct h5_datatype *type, const struct h5_dataspace *space,
			      struct h5_buf *out);

#endif

/* Names: from link names to file names and back (MAPPING section 1). */
#ifndef H5_VFS_NAME_H
#define H5_VFS_NAME_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { H5_NAME_MAX = 255 };

/* The file name of a link name, NUL-terminated; its length. */
size_t h5_name_escape(const char *name, size_t size, char out[H5_NAME_MAX + 1]);
/* The same for one of at most `limit` bytes, which are less than H5_NAME_MAX by a few. */
size_t h5_name_escape_within(const char *name, size_t size, size_t limit, char out[H5_NAME_MAX + 1]);

/* The link name that a file name could stand for; its size (at most the file name's). Only a name that
 * escapes to the file name again is the right one. */
size_t h5_name_unescape(const char *file_name, char *out);

/* Appends the path of an HDF5 file with each component escaped, without leading, doubled and trailing slashes
 * and `.` components. */
void h5_path_escape(struct h5_buf *out, const char *path, size_t size);

/* True for a name that was cut: which link it is, only a comparison with all of them tells. */
bool h5_name_is_cut(const char *name);

/* The xattr name of an attribute, `user.NAME`, cut where it is over 255 bytes. */
size_t h5_name_of_attribute(const char *name, char out[H5_NAME_MAX + 1]);

#endif

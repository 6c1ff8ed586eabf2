/* From link names to file names, and back (doc/h5fs.1, Names). */
#ifndef H5_VFS_NAME_H
#define H5_VFS_NAME_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { H5_NAME_MAX = 255 };

/* Makes the file name of a link name, NUL-terminated. Returns its length. */
size_t h5_name_escape(const char *name, size_t size, char out[H5_NAME_MAX + 1]);
/* The same for a file name of at most `limit` bytes; `limit` is at most a few bytes below H5_NAME_MAX. */
size_t h5_name_escape_within(const char *name, size_t size, size_t limit, char out[H5_NAME_MAX + 1]);

/* Makes the link name that a file name could stand for. Returns its size, at most that of the file name. It
 * is right only if it escapes to the same file name. */
size_t h5_name_unescape(const char *file_name, char *out);
/* True: a new link can have this file name. Its name is what the file name unescapes to. */
bool h5_name_can_be_new(const char *file_name);

/* Appends the path of an HDF5 file with each component escaped, without leading, doubled and trailing slashes
 * and `.` components. */
void h5_path_escape(struct h5_buf *out, const char *path, size_t size);

/* True: the name was cut, so it must be compared with those of all links. */
bool h5_name_is_cut(const char *name);

/* The xattr name of an attribute, `user.NAME`, cut if it is over 255 bytes. */
size_t h5_name_of_attribute(const char *name, char out[H5_NAME_MAX + 1]);

#endif

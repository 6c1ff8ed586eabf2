/* From an object's address to a path of it in the mount. */
#ifndef H5_VFS_PATHS_H
#define H5_VFS_PATHS_H

#include "object/value.h"
#include "vfs/vfs.h"

struct h5_path_map;

/* Appends the absolute path, escaped, of the object in the mount. -ENOENT: none leads there. */
int h5_paths_find(struct h5_vfs *vfs, struct h5_file *file, uint64_t address, struct h5_buf *path);
/* Logs a line about an object: with the file, the path that was found, and the address. Leaves the thread's
 * error as it is. */
void h5_log_about(struct h5_vfs *vfs, uint64_t address, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void h5_paths_free(struct h5_path_map *map); /* NULL is fine */
/* For the values of a file: references to objects that have a path in the mount are shown as that path. */
struct h5_value_context h5_paths_context(struct h5_vfs *vfs, struct h5_file *file);

#endif

/* From the address of an object to a path that leads to it in the mount. */
#ifndef H5_VFS_PATHS_H
#define H5_VFS_PATHS_H

#include "object/value.h"
#include "vfs/private.h"

struct h5_path_map;

/* Appends the absolute path of the object in the mount, escaped. -ENOENT: no path leads there. -E2BIG: the
 * buffer has no room for it. */
int h5_paths_find(struct h5_vfs *vfs, struct h5_file *file, uint64_t address, struct h5_buf *path);
/* Logs a line about an object, with its file, its path if one is found, and its address. Leaves the thread's
 * error as it is. */
void h5_log_about(struct h5_vfs *vfs, uint64_t address, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void h5_paths_free(struct h5_path_map *map); /* NULL is fine */
/* The same for an object of the mounted file; `vfs` is the struct h5_vfs. */
int h5_paths_find_mounted(void *vfs, uint64_t address, struct h5_buf *path);

/* The address of the object of the mounted file to which a path leads, n bytes as a value shows it. -ENOENT:
 * there is none. `vfs` is the struct h5_vfs. */
int h5_paths_find_object(void *vfs, const char *path, size_t n, uint64_t *address);

/* For values of the file: shows references to objects as paths in the mount. */
static inline struct h5_value_context h5_paths_context(struct h5_vfs *vfs, struct h5_file *file)
{
	return (struct h5_value_context){
		.file = file, .object_path = file == vfs->file ? h5_paths_find_mounted : NULL, .arg = vfs};
}

#endif

/* Paths inside HDF5 files, as soft and external links spell them. */
#ifndef H5_OBJECT_PATH_H
#define H5_OBJECT_PATH_H

#include "store/file.h"
#include "store/file_set.h"

#include <stdbool.h>

/* Follows the path from the group at `group` (from the root, where it begins with a slash) through hard, soft
 * and external links, the latter where the file set's rule lets them. `.` is the group itself; `..` is an
 * ordinary name. *found_in is borrowed from the set. -ENOENT: it leads nowhere; -ELOOP: through too many
 * links. */
int h5_path_find(struct h5_file *file, uint64_t group, const char *path, size_t size,
		 struct h5_file **found_in, uint64_t *address);

/* The object that an external link of `file` names. */
int h5_path_find_external(struct h5_file *file, const char *name, size_t name_size, const char *path,
			  size_t size, struct h5_file **found_in, uint64_t *address);

/* True: these have failed since the path leads to nothing that can be opened, or to what is damaged. Any
 * other failure says nothing about the path, and must not be shown as a link to nowhere. */
bool h5_path_is_dead(int code);

#endif

/* Paths inside HDF5 files, as in soft and external links. */
#ifndef H5_OBJECT_PATH_H
#define H5_OBJECT_PATH_H

#include "format/named_message.h"
#include "store/file.h"
#include "store/file_set.h"

#include <stdbool.h>

/* Follows the path from the group at `group`, or from the root if the path begins with a slash. It may lead
 * through hard and soft links, and through external links if the rule of the file set allows them. `.` is the
 * group itself; `..` is an ordinary name. *found_in is borrowed from the set. -ENOENT: it leads nowhere;
 * -ELOOP: through too many links. */
int h5_path_find(struct h5_file *file, uint64_t group, const char *path, size_t size,
		 struct h5_file **found_in, uint64_t *address);

/* Finds the object that an external link of `file` leads to. */
int h5_path_find_external(struct h5_file *file, const char *name, size_t name_size, const char *path,
			  size_t size, struct h5_file **found_in, uint64_t *address);

/* Finds the object that a link of the group leads to, whatever its type. -ENOENT: nothing is known of links
 * of that type. */
int h5_path_of_link(struct h5_file *file, uint64_t group, const struct h5_link *link,
		    struct h5_file **found_in, uint64_t *address);
/* True for the error codes of these that mean: the path leads to nothing, to a file that cannot be
 * opened, or to damage. Any other failure says nothing about the path, so the link must not be shown as a
 * dangling one. */
bool h5_path_is_dead(int code);

#endif

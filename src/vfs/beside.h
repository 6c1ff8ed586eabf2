/* Files beside those of a view. Programs that rewrite a file make another one in its folder, and rename that:
 * sed -i, editors. Below `.h5fs` such a file is a plain one, whose link is in the root of the mount, by
 * another name. */
#ifndef H5_VFS_BESIDE_H
#define H5_VFS_BESIDE_H

#include "vfs/name.h"
#include "vfs/private.h"

/* True: the name in a directory below `.h5fs` is none that the view could show, but one of a file beside.
 * `flags`: of open(2), with which the file is to be made; an attribute may have any name, so beside one is
 * what is read, too, and what is called like a backup, `NAME~`. */
bool h5_beside_is_name(const struct h5_node *directory, const char *text, int flags);
/* Its name in the root. -ENAMETOOLONG. */
int h5_beside_name(const struct h5_node *directory, const char *text, char name[H5_NAME_MAX + 1]);

#endif

/* Landlock (Linux 5.13): which files can be opened by name. */
#ifndef H5_FUSE_LANDLOCK_H
#define H5_FUSE_LANDLOCK_H

#include "fuse/sandbox.h"

/* Its version in this kernel; 0: there is none. */
int h5_landlock_version(void);
/* Confines this thread. 0, or a negative errno. */
int h5_landlock_enter(const struct h5_sandbox *sandbox);

/* Confines the fetcher (remote/fetcher.h): it may read the files and folders of these paths, as far as they
 * are there, make, change and remove files in `folder` (-1: none), and connect to servers. The list ends with
 * NULL. */
int h5_landlock_enter_fetcher(const char *const *readable, int folder);

#endif

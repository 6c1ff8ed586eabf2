/* Commands about mounts that are there: h5fs -u, and -o remount; and what ends a mount. */
#ifndef H5_FUSE_UNMOUNT_H
#define H5_FUSE_UNMOUNT_H

#include "fuse/options.h"

/* Unmounts as umount(8) does, which refuses if a file is open or a process is inside: -EBUSY. Users other
 * than root do it through fusermount3; if that fails it says why, unless `quiet`, and the result is -EPERM.
 */
int h5_unmount(const char *path, bool quiet);

/* Commits what o->mountpoint has to be committed, unmounts it, and waits until its daemon has closed the
 * file. Returns the exit status. */
int h5_unmount_command(const struct h5_options *o);
/* Makes o->mountpoint read-only, and commits what was written; or writable again. Returns the exit status. */
int h5_remount_command(const struct h5_options *o);

#endif

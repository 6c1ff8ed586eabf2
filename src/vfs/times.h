/* When objects of the mounted file have changed. The file has one time, which changes with each commit; but
 * editors, `make` and others take a file with a later time for one that somebody has changed. So a mount for
 * writing remembers when it has changed which object. Before its first change an object has the time that the
 * file had when it was mounted. */
#ifndef H5_VFS_TIMES_H
#define H5_VFS_TIMES_H

#include "vfs/private.h"

/* With the exclusive lock: the object at the address has changed: its elements, attributes or links. */
void h5_times_note(struct h5_vfs *vfs, uint64_t address);
/* The same for any objects, nobody knows which. */
void h5_times_note_all(struct h5_vfs *vfs);
/* With the lock: sets mtime and ctime of what shows the object (H5_UNDEF: none), of a file that the mount
 * writes. */
void h5_times_get(const struct h5_vfs *vfs, uint64_t address, struct timespec *mtime, struct timespec *ctime);
/* The time of the last change of all; at first that of the file. */
struct timespec h5_times_last(const struct h5_vfs *vfs);
void h5_times_free(struct h5_vfs *vfs);

#endif

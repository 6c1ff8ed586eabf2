/* The directory that is mounted on. */
#ifndef H5_FUSE_MOUNTPOINT_H
#define H5_FUSE_MOUNTPOINT_H

#include "fuse/options.h"

/* Makes o->mountpoint an absolute path: the one given, or a name in the current directory that follows from
 * the file's; the directory is made where there is none (o->mountpoint_made). 0, or an exit status after a
 * line in the log. */
int h5_mountpoint_find(struct h5_options *o);
/* Mounts there, and makes it once more where it has gone meanwhile: the mount before, which had made it, may
 * just have ended. 0, or an exit status after a line in the log. */
int h5_mountpoint_mount(struct h5_options *o, struct fuse_session *session);
/* Takes it away, if it was made. Where it is not empty, or still mounted, it stays. */
void h5_mountpoint_remove(const struct h5_options *o);

#endif

/* The directory that is mounted on. */
#ifndef H5_FUSE_MOUNTPOINT_H
#define H5_FUSE_MOUNTPOINT_H

#include "fuse/mountinfo.h"
#include "fuse/options.h"

/* Makes o->mountpoint an absolute path: the given one, or one in the current directory that is named after
 * the file. 0, or an exit status after a line in the log. */
int h5_mountpoint_find(struct h5_options *o);
/* Mounts there, and makes the directory if there is none (o->mountpoint_made). Not earlier, since the command
 * may wait for the file, and shall leave nothing behind if it is ended meanwhile. 0, or an exit status after
 * a line in the log.
 *
 * An automounter lets only its own process group through to the mount point, until the command that it has
 * started has exited. So all that needs the mount's path is done here: a process that has left the group
 * would wait for itself. */
int h5_mountpoint_mount(struct h5_options *o, struct fuse_session *session, struct h5_mounted *mounted);
/* Removes the directory if it was made, unless it is not empty or still mounted. */
void h5_mountpoint_remove(const struct h5_options *o);

#endif

/* The process that unmounts. It is outside of the sandbox, in which the daemon cannot unmount, and it
 * outlives the daemon: it unmounts also after the daemon has crashed or was killed. It has none of the
 * daemon's files. The daemon sends it only single bytes, and lines for the system log. */
#ifndef H5_FUSE_UNMOUNTER_H
#define H5_FUSE_UNMOUNTER_H

#include "fuse/mountpoint.h"

struct h5_unmounter;

/* Starts it for the session that is mounted at options->mountpoint as `mounted`. To be called before any
 * thread runs and after the log is set up. The process also removes a mount point that was made. */
int h5_unmounter_start(struct fuse_session *session, const struct h5_options *options,
		       const struct h5_mounted *mounted, struct h5_unmounter **unmounter);
/* To be called when the mount can be used: the process leaves its process group. Until now it needed that, to
 * unmount below an automounter if mounting failed. */
void h5_unmounter_detach(struct h5_unmounter *unmounter);
/* Unmounts, unless the mount is in use. NULL is fine. */
void h5_unmounter_try(struct h5_unmounter *unmounter);
/* Lets the kernel abort all requests, if we have the right. NULL is fine. */
void h5_unmounter_abort(struct h5_unmounter *unmounter);
/* Unmounts, unless it is unmounted, and ends the process. After that the session can only be destroyed. NULL:
 * the daemon tries to unmount itself. */
void h5_unmounter_stop(struct h5_unmounter *unmounter, struct fuse_session *session);

#endif

/* The process that unmounts. It stays outside of the sandbox, where the daemon cannot unmount any more, and
 * outlives it: a mount whose daemon has crashed or was killed does not stay behind. It has none of the
 * daemon's files, and all it hears of it is a byte, or a line for the system log. */
#ifndef H5_FUSE_UNMOUNTER_H
#define H5_FUSE_UNMOUNTER_H

#include "fuse/mountpoint.h"

struct h5_unmounter;

/* For the session that is mounted at options->mountpoint as `mounted`. No thread may run yet, but what is
 * logged goes where it will go. A mount point that was made goes with the mount. */
int h5_unmounter_start(struct fuse_session *session, const struct h5_options *options,
		       const struct h5_mounted *mounted, struct h5_unmounter **unmounter);
/* The mount can be used: the process leaves the process group, which it needed until now to unmount a mount
 * of an automounter's that does not come about. */
void h5_unmounter_detach(struct h5_unmounter *unmounter);
/* Unmounts, unless the mount is in use. NULL is fine. */
void h5_unmounter_try(struct h5_unmounter *unmounter);
/* Has the kernel give up all requests, as far as we may. NULL is fine. */
void h5_unmounter_abort(struct h5_unmounter *unmounter);
/* Unmounts, unless somebody has, and ends the process. The session can only be destroyed then. NULL: the
 * daemon unmounts by itself, as far as it may. */
void h5_unmounter_stop(struct h5_unmounter *unmounter, struct fuse_session *session);

#endif

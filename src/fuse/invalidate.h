/* The thread that has the kernel drop pages which a growing file has made stale, before the reply to the
 * request that made it grow.
 *
 * The kernel does so when it has got the locks of these pages. Reads that it has sent hold them, so the
 * threads that serve these must not wait for it; and they must not end while this one does. So on a mount for
 * writing it is this thread that gets the signals which end the mount: it ends the session between two
 * requests of its own. */
#ifndef H5_FUSE_INVALIDATE_H
#define H5_FUSE_INVALIDATE_H

#include "fuse/options.h"

struct h5_invalidator;

/* A request that waits for it. */
struct h5_stale {
	fuse_req_t req;
	fuse_ino_t ino;
	struct h5_node *node;
	struct h5_handle *handle; /* that was written through; NULL: the kernel sets the size itself */
	uint64_t from; /* offset of the first stale page, or in it; H5_NOT_STALE: it is only replied to */
	/* What then replies to the request. */
	void (*reply)(fuse_req_t req, fuse_ino_t ino, size_t written);
	size_t written;
};

/* To be called in the thread that will serve: until h5_invalidator_stop() it gets no signals that end the
 * mount, but SIGRTMIN + 1 to wake it up. */
int h5_invalidator_start(struct fuse_session *session, struct h5_vfs *vfs,
			 struct h5_invalidator **invalidator);
/* Takes the request over. */
void h5_invalidator_add(struct h5_invalidator *invalidator, const struct h5_stale *stale);
/* Takes the request over if a reply with the file's size has to wait: to be asked when the size is known. */
bool h5_invalidator_postpone(struct h5_invalidator *invalidator, const struct h5_stale *stale);
/* To be called when the session has ended. NULL is fine. */
void h5_invalidator_stop(struct h5_invalidator *invalidator);

#endif

/* The thread that replies to requests which make a file grow, or change names of another directory. Before
 * that it has the kernel drop pages that have become stale, and forget names (h5_vfs_take_stale_name()).
 *
 * The kernel waits for the locks of these pages. Reads that it has sent hold these locks, so the threads that
 * serve reads must not wait for this one, and must not end while this one waits. Therefore this thread gets
 * the signals that end a mount for writing, and ends the session between two of its requests. */
#ifndef H5_FUSE_INVALIDATE_H
#define H5_FUSE_INVALIDATE_H

#include "fuse/request.h"

struct h5_invalidator;

/* A request whose reply has to wait. */
struct h5_stale {
	struct h5_request r;	  /* ends with the reply */
	struct h5_handle *handle; /* through which it was written; NULL: the kernel sets the size itself */
	uint64_t from; /* an offset in the first stale page; H5_NOT_STALE: there is none, and it only replies
			*/
	/* Replies to the request, and ends it. */
	void (*reply)(struct h5_request *r, size_t written);
	size_t written;
};

/* `vfs`: has names that the kernel must forget; NULL: the kernel keeps no names.
 *
 * To be called in the main thread. Until h5_invalidator_stop() the main thread does not get the signals that
 * end the mount, but SIGRTMIN + 1, which wakes it up. */
int h5_invalidator_start(struct fuse_session *session, struct h5_vfs *vfs,
			 struct h5_invalidator **invalidator);
/* Takes the request over. */
void h5_invalidator_add(struct h5_invalidator *invalidator, struct h5_stale *stale);
/* Takes the request over if a reply with the file's size has to wait. To be called when the size is known. */
bool h5_invalidator_postpone(struct h5_invalidator *invalidator, struct h5_stale *stale);
/* To be called when the session has ended. NULL is fine. */
void h5_invalidator_stop(struct h5_invalidator *invalidator);

#endif

/* FUSE requests, each answered by one call into src/vfs. */
#ifndef H5_FUSE_OPERATIONS_H
#define H5_FUSE_OPERATIONS_H

#include "fuse/options.h"

#include <stdatomic.h>

/* What every request gets as its userdata. */
struct h5_mount {
	struct h5_vfs *vfs;
	struct fuse_session *session;
	int readahead;	    /* descriptor of that setting until a file is opened; -1: none */
	atomic_flag opened; /* a file was opened */
	/* Seconds that the kernel may keep names and attributes: long while the lock holds writers off, else
	 * 0. */
	double timeout;
	bool locked; /* the file cannot change behind our back */
	bool writable;
	/* Of a mount for writing: */
	struct h5_committer *committer;
	struct h5_invalidator *invalidator;
};

extern const struct fuse_lowlevel_ops h5_operations;

#endif

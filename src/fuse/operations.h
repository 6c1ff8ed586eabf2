/* FUSE requests. Each is one call into src/vfs and one reply. */
#ifndef H5_FUSE_OPERATIONS_H
#define H5_FUSE_OPERATIONS_H

#include "fuse/options.h"

#include <stdatomic.h>
#include <time.h>

/* The mount of a file, or of a folder; every request has it as its userdata. */
struct h5_mount {
	struct h5_vfs *vfs;   /* NULL: a folder is mounted */
	struct h5_tree *tree; /* of a folder */
	struct fuse_session *session;
	int readahead;	    /* descriptor for fuse/readahead until a file is opened; -1: none */
	atomic_flag opened; /* a file was opened */
	/* Seconds that the kernel may keep names and attributes: long if a lock keeps writers away, else 0.
	 */
	double timeout;
	bool locked; /* no other program can change the file */
	bool remote; /* the file is behind a URL */
	bool writable;
	bool io_uring;	      /* requests come through io_uring; until FUSE_INIT is answered: they shall */
	bool without_open;    /* the kernel reads files without opening them */
	bool without_opendir; /* and directories */
	bool allow_other;     /* other users have access */
	_Atomic time_t last_request;	    /* CLOCK_MONOTONIC */
	struct h5_invalidator *invalidator; /* of a mount for writing */
};

extern const struct fuse_lowlevel_ops h5_operations;

#endif

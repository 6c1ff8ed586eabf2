/* Open files. */
#ifndef H5_VFS_HANDLE_H
#define H5_VFS_HANDLE_H

#include "vfs/node.h"

#include <stdatomic.h>

struct h5_handle {
	struct h5_vfs *vfs;
	struct h5_node *node; /* referenced */
	int mode;	      /* O_RDONLY, O_WRONLY, O_RDWR */
	bool direct;	      /* the kernel reads and writes without its pages */
	struct h5_view view;  /* as it was when the file was opened to be read; ops NULL: it was not */
	/* If raw data are read in order: up to where, by how many reads, and up to where chunks were decoded
	 * ahead. Several threads may change these at once, which costs only speed. */
	atomic_uint_fast64_t read_to, ahead;
	atomic_uint in_order;
	/* write_lock: */
	struct h5_view_input input; /* its writer counts as a user; ops NULL: open for reading */
	bool unsaved;		    /* something was written through it since the last commit */
	int lost; /* why some of that will never be committed, until it is told; 0: it will */
	struct h5_handle *prev, *next; /* vfs->lock: in vfs->handles */
};

/* ---- write.c ---- */

/* With the exclusive lock: opens the handle for writing; with `cut` to size 0. */
int h5_write_open(struct h5_handle *handle, const struct h5_node *node, bool cut);
/* The handle is closed. */
void h5_write_close(struct h5_handle *handle);

/* ---- handle.c ---- */

/* Closes files that are still open. */
void h5_handles_close(struct h5_vfs *vfs);

#endif

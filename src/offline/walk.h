/* Goes over a part of the tree that a mount would show, as a program does that lists directories. */
#ifndef H5_OFFLINE_WALK_H
#define H5_OFFLINE_WALK_H

#include "vfs/vfs.h"

struct h5_walk;
struct h5_walk_level;

struct h5_walk_ops {
	/* An entry, whose path is walk->path. *enter is true if it is a directory: its entries come next
	 * unless that is made false. An error ends the walk. */
	int (*visit)(struct h5_walk *walk, const char *name, const struct h5_vfs_entry *entry, bool *enter);
	/* All entries of a directory that was entered were visited; NULL: nobody wants to know. An error ends
	 * the walk. */
	int (*leave)(struct h5_walk *walk, const struct h5_vfs_entry *entry);
	/* Something at walk->path cannot be read; h5_error_last() may tell more. The walk goes on. */
	void (*failed)(struct h5_walk *walk, int code);
};

/* The caller sets the first members, and all others to 0. */
struct h5_walk {
	struct h5_vfs *vfs;
	const struct h5_walk_ops *ops;
	void *arg; /* for the operations */
	/* Each call of vfs/ begins by h5_walk_request(); false: all of them are one request, which the caller
	 * has begun. */
	bool many;

	struct h5_buf path; /* "/", or names with a slash before each; no NUL */
	struct h5_walk_level *levels;
	size_t depth, capacity;
};

/* Visits all below the directory, which is at the path and borrowed; it is neither visited nor left itself.
 * -ENOMEM, -EFBIG, -EINTR: the walk ended early, and `failed` was called; else what an operation returned. */
int h5_walk_run(struct h5_walk *walk, struct h5_node *directory, const char *path);

/* What comes next is a request of its own, as in a mount: with that limit of its work, and wanted until a
 * signal came (offline/stop.h). */
void h5_walk_request(struct h5_vfs *vfs);

/* Finds a path of the tree, with or without a slash before it; symbolic links are followed. *entry as by
 * h5_vfs_lookup(); the reference to the root costs nothing and may be forgotten likewise by h5_walk_forget().
 * `way` gets the path without links, as in struct h5_walk, and a NUL. -ENOENT, -ENOTDIR, -ELOOP, ... */
int h5_walk_find(struct h5_vfs *vfs, const char *path, struct h5_vfs_entry *entry, struct h5_buf *way);
void h5_walk_forget(struct h5_vfs *vfs, struct h5_node *node);

#endif

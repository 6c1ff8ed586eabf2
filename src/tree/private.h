/* The tree of a folder, for the files of src/tree. */
#ifndef H5_TREE_PRIVATE_H
#define H5_TREE_PRIVATE_H

#include "base/hash_table.h"
#include "tree/tree.h"

#include <pthread.h>
#include <stdatomic.h>

enum h5_tree_state {
	H5_TREE_CLOSED,
	H5_TREE_OPENING, /* one thread opens it */
	H5_TREE_OPEN,
	H5_TREE_CLOSING, /* one thread closes it */
};

/* An HDF5 file, open or not. */
struct h5_tree_file {
	/* tree->lock: */
	enum h5_tree_state state;
	uint64_t opening;		  /* number of the present opening; 0: it is not open */
	unsigned uses;			  /* requests and open files and directories that need it open */
	unsigned held;			  /* open files and directories among them */
	bool is_orphan;			  /* its node is gone: freed when it closes */
	time_t last_use;		  /* CLOCK_MONOTONIC */
	struct h5_tree_file *prev, *next; /* in tree->open */
	/* From OPEN to CLOSING: */
	struct h5_file_set *set;
	struct h5_vfs *vfs;
	void *own;	  /* of h5_tree_options.opened */
	char *path, *url; /* owned; the vfs borrows them */
	/* Does not change: which file it is. */
	uint64_t device, inode;
};

struct h5_tree_node {
	enum h5_tree_kind kind;
	uint32_t generation;
	struct h5_tree_node *parent;	  /* referenced; NULL: the root. As `name`, it may change */
	uint64_t references;		  /* tree->lock: look-ups of the kernel, and children */
	UT_hash_handle hh;		  /* tree->lock */
	bool is_detached;		  /* tree->lock: the name leads to something else by now */
	struct h5_tree_node *prev, *next; /* tree->lock: in tree->detached */
	/* Of an HDF5 file, and of what is in it. The node of the file owns it, the others are below that. */
	struct h5_tree_file *file;
	/* In the folder: which file it is; and its last change when it was looked at for a signature. */
	uint64_t device, inode;
	struct timespec seen; /* tree->lock */
	uint64_t size;	      /* bytes of an object */
	/* In an HDF5 file: its inode number and its type there. */
	uint64_t inner;
	mode_t type;
	/* tree->lock: its node, referenced, as long as the opening of the file is this one. */
	struct h5_node *inside;
	uint64_t opening;
	size_t key_size;
	const char
		*name; /* in the parent; in `key`, or `new_name`. In an HDF5 file it may change: tree->lock */
	char *new_name; /* owned; NULL: none */
	uint8_t key[];
};

struct h5_tree {
	struct h5_tree_options options;
	char *path;		  /* owned: the real path of the folder, or its URL */
	int fd;			  /* of the folder: O_PATH; -1: it is in an object store */
	struct h5_bucket *bucket; /* the entries of that; NULL: of a local folder (tree/bucket.h) */
	struct h5_tree_node *root;
	pthread_mutex_t lock;	       /* guards the rest, and what the structures above say */
	pthread_cond_t changed;	       /* broadcast when a file opens, closes, or is used no longer */
	struct h5_tree_node *nodes;    /* hash table by key */
	struct h5_tree_node *detached; /* nodes that the kernel still has, and that are not in the table */
	struct h5_tree_file *open;     /* files that are not closed; the one that was used last is the last */
	/* Open files and directories: a mount may end before the kernel closes them. */
	struct h5_tree_handle *handles;
	struct h5_tree_dir *dirs;
	unsigned open_count;
	uint64_t openings; /* how many there have been */
	uint32_t generations;
	bool ends;		 /* h5_tree_await_none() was called */
	int lost;		 /* why changes were lost when a file closed; 0: none were */
	int untold;		 /* the same since h5_tree_commit() has told it */
	atomic_bool maps_direct; /* h5_tree_set_maps_direct() */
};

/* Another descriptor of a file of the folder that is open as that node; -ESTALE: it is not open. */
int h5_tree_handles_open(struct h5_tree *tree, const struct h5_tree_node *node);
/* Closes open files (content.c) and directories (listing.c). To be called after the last request. */
void h5_tree_handles_close(struct h5_tree *tree);
void h5_tree_dirs_close(struct h5_tree *tree);

#endif

/* The inodes that the kernel knows, and what they stand for. */
#ifndef H5_VFS_NODE_H
#define H5_VFS_NODE_H

#include "object/group.h"
#include "vfs/vfs.h"
#include "view/view.h"

#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

enum h5_node_kind {
	H5_NODE_DIRECTORY,
	H5_NODE_DATASET,
	H5_NODE_DATATYPE,
	H5_NODE_SYMLINK,
	H5_NODE_DAMAGED, /* listed; opening it tells what is wrong */
	H5_NODE_VIEWS,	 /* the directory of the views */
	H5_NODE_VIEW,	 /* an object as a file of a view */
};

/* What a name leads to. */
struct h5_entity {
	enum h5_node_kind kind;
	struct h5_file *file;		/* borrowed; of the object; of a symlink: NULL */
	uint64_t address;		/* of the object */
	char *target;			/* owned; of a symlink; of an attribute's file: its name; else NULL */
	const struct h5_view_ops *view; /* that this is in; NULL: in none */
};

struct h5_node {
	enum h5_node_kind kind;
	struct h5_file *file;
	uint64_t address;
	char *target;
	const struct h5_view_ops *view;
	uint64_t ino;
	uint64_t id; /* the kernel's number of it: see node_id.c */
	uint32_t generation;
	UT_hash_handle by_id; /* vfs->lock */
	uint64_t from;	      /* id of the directory and name that led here, if the id is a hash of them */
	const char *name;     /* of that directory's entry; NULL: the id is no hash. In `key` */
	unsigned depth;	      /* directories: names below the root */
	struct h5_node
		*parent; /* directories and symlinks: referenced; NULL: root, and files, which have many */
	uint64_t references;	     /* vfs->lock: the kernel's lookups, child nodes */
	UT_hash_handle hh;	     /* vfs->lock */
	struct h5_node *prev, *next; /* vfs->lock: in vfs->detached */
	bool is_detached;
	/* vfs->lock: size of the contents, if it took work to find; of the file as it was in that state */
	bool has_size;
	uint64_t size, size_state;
	/* vfs->lock: open files that the kernel keeps pages of, and those of them whose pages may be dirty */
	unsigned cached, mapped;
	unsigned writing; /* vfs->lock: files that are open for writing */
	/* vfs->lock: growths that the kernel has stale pages of; meanwhile the size that is told */
	unsigned growing;
	uint64_t told_size;
	size_t key_size;
	uint8_t key[]; /* what makes it the same node: see node.c */
};

/* The node of what the name in the parent leads to, found or made; takes over entity->target. Referenced. */
int h5_node_get(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_entity *entity,
		struct h5_node **node);
/* Frees all nodes. */
void h5_nodes_free(struct h5_vfs *vfs);
/* st_ino of an entity, without a node. */
uint64_t h5_node_ino(struct h5_vfs *vfs, const struct h5_node *parent, const char *name,
		     const struct h5_entity *entity);

/* ---- numbers; to be called with vfs->lock ---- */

/* Gives a new node its id and its generation, and enters it. -ENOMEM. */
int h5_node_identify(struct h5_vfs *vfs, struct h5_node *node);
/* Before a node is freed: it can be found again by its id. */
void h5_node_remember(struct h5_vfs *vfs, const struct h5_node *node);
void h5_remembered_free(struct h5_vfs *vfs);

/* The directory above the node of that number, referenced; NULL: there is none, or the node was forgotten. */
struct h5_node *h5_node_find_parent(struct h5_vfs *vfs, uint64_t id);

/* A name on the way from a directory to what is beneath. */
struct h5_step {
	struct h5_step *next;
	char name[];
};

/* The names that lead to the node of that number from the next directory above that has a node: `from`,
 * referenced. None, if the node itself is there. h5_steps_free() on failure, too. -ESTALE: not known. */
int h5_node_find_way(struct h5_vfs *vfs, uint64_t id, struct h5_step **steps, struct h5_node **from);
void h5_steps_free(struct h5_step *steps);
/* The object and view that a number stands for, if it says so itself; *view NULL: its contents. -ESTALE. */
int h5_node_id_decode(uint64_t id, uint64_t *address, const struct h5_view_ops **view);

#endif

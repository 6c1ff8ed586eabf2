/* Nodes: the inodes that the kernel knows. */
#ifndef H5_VFS_NODE_H
#define H5_VFS_NODE_H

#include "base/hash_table.h"
#include "object/group.h"
#include "vfs/vfs.h"
#include "view/view.h"

#include <stdbool.h>
#include <stdint.h>

#include <utlist.h>

enum h5_node_kind {
	H5_NODE_DIRECTORY,
	H5_NODE_DATASET,
	H5_NODE_DATATYPE,
	H5_NODE_SYMLINK,
	H5_NODE_DAMAGED,   /* an object that can't be decoded; opening it tells why */
	H5_NODE_VIEWS,	   /* the directory `.h5fs` */
	H5_NODE_VIEW,	   /* a file below `.h5fs` */
	H5_NODE_REVISIONS, /* the directory `.h5fs/revisions` */
};

/* True: a directory that the mount adds: it is no object of the file. */
static inline bool h5_is_added(enum h5_node_kind kind)
{
	return kind == H5_NODE_VIEWS || kind == H5_NODE_REVISIONS;
}

static inline bool h5_is_directory(enum h5_node_kind kind)
{
	return kind == H5_NODE_DIRECTORY || h5_is_added(kind);
}

/* What a name leads to: an object, a symlink, or something below `.h5fs`. */
struct h5_entity {
	enum h5_node_kind kind;
	struct h5_file *file; /* borrowed: the object's; NULL: it is no object */
	uint64_t address;     /* the object's */
	/* Owned. Of a symlink; of the file of an attribute, the attribute's name; of a file or directory that
	 * a view has named, its path below the directory of the object. Else NULL. */
	char *target;
	const struct h5_view_ops *view; /* in whose tree it is; NULL: in that of the mount */
};

/* False: a name that has led to `a` leads to something else by now, `b`, since the file has changed. */
bool h5_entity_is_same(const struct h5_entity *a, const struct h5_entity *b);

/* The size of a file's contents if it took work to find, and h5_state() at that time. */
struct h5_known_size {
	bool is_known;
	uint64_t bytes, state;
};

struct h5_handle;

struct h5_node {
	struct h5_entity entity; /* what it shows */
	uint64_t ino;
	uint64_t natural_id;  /* vfs->lock: see node_number.c, as for the next four */
	uint64_t id;	      /* the kernel's number for it */
	UT_hash_handle hh;    /* vfs->lock: by natural_id, if it is the first of its list */
	struct h5_node *same; /* vfs->lock: the next one with the same natural id */
	uint32_t generation;
	bool is_renumbered; /* vfs->lock */
	bool is_detached;   /* vfs->lock: no name leads to it any more, but the kernel still has it */
	bool is_shared;	    /* vfs->lock: it shows a group that another hard link leads to, too */
	/* vfs->lock, and on a mount for writing vfs->write_lock, as a directory may be renamed: */
	uint64_t from;		/* id of the directory whose entry it is, if the name made the id */
	const char *name;	/* of that entry. NULL: no name made the id */
	struct h5_node *parent; /* referenced; NULL: the root, and files, which may have several */
	uint64_t moved_in;	/* the transaction in which it was renamed last: h5_objects_transaction() */
	uint64_t references;	/* vfs->lock: look-ups of the kernel, children, open files */
	struct h5_shown *shown; /* vfs->lock: the object; NULL: none of the mounted file (vfs/objects.h) */
	struct h5_node *prev_shown, *next_shown; /* vfs->lock: in shown->nodes */
	struct h5_known_size size;		 /* vfs->lock */
	/* vfs->lock: number of open files that the kernel keeps pages of, and of those whose pages may be
	 * dirty */
	unsigned cached, mapped;
	struct h5_handle *held; /* vfs->lock: in vfs->held; NULL: none */
	unsigned writing;	/* vfs->lock: number of open files that may be written */
	/* vfs->lock: how often the file has grown without stale pages being dropped since; the size that the
	 * kernel is told until these pages are dropped */
	unsigned growing;
	uint64_t told_size;
	char first_name[]; /* memory of the name, until it is renamed */
};

/* Finds or makes the node of a name in the parent, which leads to the entity. *node is referenced. Takes over
 * entity->target, also on failure. -ESTALE: the object is about to be removed. */
int h5_node_get(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_entity *entity,
		struct h5_node **node);
/* st_ino of the file that shows the object at the address, if the kernel knows it; else 0. */
uint64_t h5_node_known_file(struct h5_vfs *vfs, struct h5_file *file, uint64_t address);
/* Frees all nodes. */
void h5_nodes_free(struct h5_vfs *vfs);
/* st_ino of an entity, without a node. */
uint64_t h5_node_ino(struct h5_vfs *vfs, const struct h5_node *parent, const char *name,
		     const struct h5_entity *entity);

/* True: it belongs to an object that is a directory of its view, see view_directories.c. */
static inline bool h5_node_is_part(const struct h5_node *node)
{
	return node->entity.target && node->entity.view && node->entity.view->directory;
}

/* Names between the root and a directory; in the tree of a view, the root of that tree counts. With the lock
 * of the mount. */
unsigned h5_node_depth(const struct h5_node *directory);

/* Notes whether several hard links lead to the group of the directory. */
void h5_node_share(struct h5_vfs *vfs, struct h5_node *directory, bool shared);

/* ---- names that change: with the exclusive lock ---- */

/* The node that a name of the directory has made (of a directory, a symlink), referenced; NULL: there is
 * none. */
struct h5_node *h5_node_find(struct h5_vfs *vfs, struct h5_node *directory, const char *name);
/* No name leads to the node any more. NULL is fine. */
void h5_node_detach(struct h5_vfs *vfs, struct h5_node *node);

/* A place for a node, to be had before the file changes. */
struct h5_node_place {
	struct h5_node *parent;
	char *name; /* owned */
};

int h5_node_place_prepare(struct h5_node *parent, const char *name, struct h5_node_place *place);
void h5_node_place_release(struct h5_node_place *place); /* may run twice */
/* Moves the node of a directory, which keeps its number. Empties the place. One that was there is detached
 * already. */
void h5_node_move(struct h5_vfs *vfs, struct h5_node *node, struct h5_node_place *place);

/* The transaction of that number was given up: no name leads any more to nodes that were renamed in it, and
 * none to nodes of objects that were made in it, which no longer exist. */
void h5_nodes_lose(struct h5_vfs *vfs, uint64_t transaction);

/* ---- from a number to the node ---- */

/* The directory above the node of that number, referenced; NULL: there is none, or the node was forgotten. */
struct h5_node *h5_node_find_parent(struct h5_vfs *vfs, uint64_t id);

/* A name on the way from a directory down to a node. */
struct h5_step {
	struct h5_step *next;
	char name[];
};

/* Finds the way to the node of that number: the nearest directory above it that still has a node, *from,
 * which is referenced, and the names from there down. If the node itself is there, it is *from, without
 * names. h5_steps_free() on failure, too. -ESTALE: no way is known. */
int h5_node_find_way(struct h5_vfs *vfs, uint64_t id, struct h5_step **steps, struct h5_node **from);
void h5_steps_free(struct h5_step *steps);
/* The object that a number itself names, and the view; *view NULL: none. -ESTALE: it names no object. */
int h5_node_id_decode(uint64_t id, uint64_t *address, const struct h5_view_ops **view);

#endif

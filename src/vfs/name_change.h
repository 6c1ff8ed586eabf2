/* What requests that change names are made of: mkdir, unlink, ... in name_change.c, symlink in symlink.c,
 * rename in rename.c. All of it happens inside a change (h5_change_begin()), and each request in one unit. */
#ifndef H5_VFS_NAME_CHANGE_H
#define H5_VFS_NAME_CHANGE_H

#include "vfs/directory.h"
#include "vfs/names.h"

/* A name of a directory of the mounted file. */
struct h5_naming {
	struct h5_vfs *vfs;
	struct h5_node *directory;
	const char *text; /* the file name; borrowed */
	bool exists;
	struct h5_link link; /* owned. If the name does not exist: only name and name_size */
	char new_name[H5_NAME_MAX + 1];
	struct h5_changed_name *note; /* owned */
};

/* Looks for the name. The group and its file are such as can be changed. On failure, too,
 * h5_naming_release(). -EPERM: the name belongs to no link; -ENOENT: the directory was removed. */
int h5_naming_find(struct h5_vfs *vfs, struct h5_node *directory, const char *text, struct h5_naming *name);
void h5_naming_release(struct h5_naming *name); /* may run twice */
/* 0: a link of that name can be made. -EEXIST; -EINVAL: no link's name is shown as this. */
int h5_naming_check_new(const struct h5_naming *name);

/* What a request does to names of objects that the last commit knows. */
struct h5_naming_plan {
	const struct h5_node *from, *to; /* directories that lose one, and get one; NULL: none */
	uint64_t more, less;		 /* objects whose counts of names rise and fall; 0: none */
};

/* Commits first if the order of cells needs it. */
int h5_naming_order(struct h5_vfs *vfs, const struct h5_naming_plan *plan);
/* The object that the name leads to; 0: it is no hard link, or the object is new. */
uint64_t h5_naming_counted(const struct h5_naming *name);

/* ---- inside a unit ---- */

/* Inserts the link, whose name is filled in here. */
int h5_naming_insert(const struct h5_naming *name, struct h5_link link);
/* The same for the object at the address. *node is its node, of that kind, referenced; it stays as it is on
 * failure. */
int h5_naming_insert_object(const struct h5_naming *name, uint64_t address, enum h5_node_kind kind,
			    struct h5_node **node);
/* The object that a name has led to. */
struct h5_unnamed {
	uint64_t address; /* 0: there was none, since the link was not hard */
	bool last;	  /* the name was its last one */
};

int h5_naming_remove(const struct h5_naming *name);
/* An object has lost the name's link: it was removed, or leads elsewhere. */
int h5_naming_drop(const struct h5_naming *name, struct h5_unnamed *object);

/* Fills the reply of a request that has made a node, which *entry has. On failure it forgets the node. */
int h5_naming_reply(const struct h5_naming *name, struct h5_vfs_entry *entry);
/* Ends the unit. If it fails, forgets the node that *entry may have. */
int h5_naming_end_unit(struct h5_vfs *vfs, int rc, struct h5_vfs_entry *entry);

/* ---- after a unit that has succeeded ---- */

/* `links`: how many links more its directory has: 1, 0 or -1. */
void h5_naming_changed(struct h5_naming *name, int links);
/* The file gives up the object when nobody has it open. */
void h5_naming_end_object(struct h5_vfs *vfs, const struct h5_unnamed *object);
/* No name leads any more to the node that the name has made, if there is one. */
void h5_naming_detach(const struct h5_naming *name);

/* ---- requests that make a name ---- */

/* Begins the change, and finds the name, which is free. On failure there is nothing to end. */
int h5_naming_begin(struct h5_vfs *vfs, struct h5_node *parent, const char *text, struct h5_naming *name,
		    struct h5_vfs_entry *entry);
/* Ends the change with that result. */
int h5_naming_end(struct h5_naming *name, int rc);

/* Makes the object and inserts its link, in a unit. *node: of the object, or NULL; also on failure. */
typedef int h5_naming_maker(const struct h5_naming *name, struct h5_node **node);
/* Uses the new object before others can. */
typedef int h5_naming_user(void *arg, struct h5_node *node);
/* What comes between h5_naming_begin() and h5_naming_end(). *entry as by h5_vfs_lookup(). `user` NULL: none.
 * If it fails, the name is not made. */
int h5_naming_make_found(struct h5_naming *name, h5_naming_maker *maker, h5_naming_user *user, void *arg,
			 struct h5_vfs_entry *entry);
/* The whole request. *entry as by h5_vfs_lookup(). -EEXIST: the name is taken. */
int h5_naming_make(struct h5_vfs *vfs, struct h5_node *parent, const char *text, h5_naming_maker *maker,
		   struct h5_vfs_entry *entry);

/* ---- requests about names of links ---- */

/* As h5_vfs_unlink() and h5_vfs_rename(), of names that are not below `.h5fs`. */
int h5_naming_unlink(struct h5_vfs *vfs, struct h5_node *parent, const char *text);
int h5_naming_rename(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_node *new_parent,
		     const char *new_name, unsigned flags);

/* To be called before a name is removed. 0: it was the backup NAME~ of a dataset, which has got its name
 * back, from a plain file that was made in its place, and the contents of that; 1: it is none. -EINVAL: they
 * do not fit the dataset. */
int h5_naming_put_back(struct h5_vfs *vfs, struct h5_node *parent, const char *name);

/* ---- questions ---- */

/* True: the object is the directory, or one of those above it. */
bool h5_naming_is_above(const struct h5_node *directory, const struct h5_file *file, uint64_t address);
/* -ENOTEMPTY: the group has links; -EBUSY: it is the root of the mount or of the file. */
int h5_naming_check_removable(const struct h5_vfs *vfs, struct h5_file *file, uint64_t address);
/* What the name leads to; only the kind and the object. */
int h5_naming_resolve(const struct h5_naming *name, struct h5_entity *entity);

#endif

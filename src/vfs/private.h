/* A mount, for the files of src/vfs. */
#ifndef H5_VFS_PRIVATE_H
#define H5_VFS_PRIVATE_H

#include "base/siphash.h"
#include "change/transaction.h"
#include "object/attribute.h"
#include "object/global_heap_write.h"
#include "vfs/changes.h"
#include "vfs/node.h"
#include "vfs/vfs.h"

#include <pthread.h>
#include <stdatomic.h>

struct h5_vfs {
	struct h5_file_set *set; /* borrowed; the next four members belong to it and are borrowed, too */
	struct h5_file *file;	 /* the mounted file */
	struct h5_lru *blocks, *chunks;
	struct h5_room *room;
	struct h5_vfs_options options;
	atomic_uint_fast64_t bytes_read, bytes_written; /* by programs */
	atomic_uint_fast64_t dropped_rows;		/* incomplete rows */
	atomic_uint_fast64_t lost_changes;		/* how often a dataset went back to its last commit */
	atomic_bool maps_direct;			/* h5_vfs_set_maps_direct() */
	struct h5_node *root;
	struct h5_view_tree tree;		    /* for views that describe all of it */
	uint8_t secret[H5_SIPHASH_KEY];		    /* random; of this mount */
	struct timespec opened_mtime, opened_ctime; /* of the file when it was mounted */
	bool may_change;			    /* another program may replace objects of the file */
	char *prefix; /* owned: the escaped path of the root in the file, without slashes at its ends */
	pthread_mutex_t lock; /* guards the tables of nodes, and what struct h5_node says */
	/* vfs/node_number.h: hash tables of nodes by natural id, of those with another id */
	struct h5_node *nodes;
	struct h5_renumbered *renumbered;
	/* vfs/times.h */
	struct h5_kept_time *kept_times;  /* hash table by address */
	struct timespec forgotten_time;	  /* no time that was forgotten is later */
	struct h5_remembered *remembered; /* hash table of nodes that were forgotten */
	/* Of a mount for writing (vfs/objects.h): */
	struct h5_shown *shown;	    /* hash table of the objects that nodes show */
	struct h5_shown *unused;    /* those without names and nodes: to be removed */
	struct h5_removed *removed; /* hash table of addresses of removed objects */
	uint64_t lives;		    /* how often that table was emptied */
	/* Open files and directories: a mount may end before the kernel closes them. */
	struct h5_handle *handles; /* guarded by lock */
	struct h5_handle *held;	   /* guarded by lock: see held.c */
	struct h5_dir *dirs;	   /* guarded by lock */
	struct h5_dir *idle_dirs;  /* guarded by lock, as the next two: see listing.c */
	unsigned idle_dir_count;
	size_t idle_dir_bytes;
	pthread_mutex_t map_lock;   /* guards map, also while it is made */
	struct h5_path_map *map;    /* NULL until it is needed */
	pthread_mutex_t await_lock; /* guards the next three */
	pthread_cond_t await_end;   /* signalled when one of these is set */
	bool is_changed;	    /* since h5_vfs_await_change() has returned */
	bool awaits_none;	    /* h5_vfs_await_none() was called */
	/* On a mount for writing: shared while a request reads, exclusive while one changes something. Guards
	 * the rest. */
	pthread_rwlock_t write_lock;
	struct timespec changed;	   /* time of the last change; 0: none */
	struct timespec all_changed;	   /* of the last change of objects that nobody knows */
	struct h5_global_heap_writer heap; /* where the data of variable-length elements go */
	struct h5_plain *plain;		   /* hash table; see plain.c */
	struct h5_pending *pending;	   /* hash table; see pending.c */
	struct h5_tx_around around;	   /* for these */
	bool gives_back;		   /* the commit gives unused space back */
	struct h5_source *sources;	   /* files of views that are being written; see source.h */
	struct h5_declared *declared;	   /* hash table; see declare.c */
	uint64_t changes;		   /* number of changes */
	uint64_t name_changes;		   /* those of names among them */
	/* since the last commit (vfs/names.h): */
	struct h5_changed_name *changed_names;
	unsigned changed_count;
	struct h5_name_roles *roles; /* hash table by header */
	struct h5_help_name *help_names;
	/* vfs->lock: names that the kernel must forget, and what is called when there are some */
	struct h5_changed_name *stale_names;
	void (*tell_stale)(void *arg);
	void *tell_arg;
	atomic_bool shown_twice; /* a link that is not hard shows a group of the mounted file */
};

/* For assertions: the lock is held; exclusively. If it can be taken instead, nobody holds it, and the
 * assertion ends the process. */
static inline bool h5_is_locked(struct h5_vfs *vfs)
{
	return !vfs->options.writable || pthread_rwlock_trywrlock(&vfs->write_lock);
}

static inline bool h5_is_locked_to_write(struct h5_vfs *vfs)
{
	return vfs->options.writable && pthread_rwlock_tryrdlock(&vfs->write_lock);
}

/* Gives back the shared or the exclusive lock. */
static inline void h5_unlock(struct h5_vfs *vfs)
{
	if (vfs->options.writable)
		pthread_rwlock_unlock(&vfs->write_lock);
}

/* A number for the contents of the file as they are now; another one after each change. */
static inline uint64_t h5_state(const struct h5_vfs *vfs, const struct h5_file *file)
{
	/* Numbers of files fit in 32 bits. */
	return h5_file_number(file) << 32 ^ vfs->changes;
}

/* ---- stat.c ---- */

/* Size and times of a file, kept during one request. */
struct h5_times {
	struct h5_file *file; /* NULL: none */
	struct h5_io_stat st;
};

/* If the size is known, stat() needs no work for it until the file changes. */
void h5_stat_remember_size(struct h5_vfs *vfs, struct h5_node *node, const struct h5_known_size *size);
/* Fills entry->st and entry->size_known for entry->node; on failure gives the reference to the node back.
 * `known`: the node's object, if the caller has decoded it; else NULL. */
int h5_stat_entry(struct h5_vfs *vfs, const struct h5_object *known, struct h5_times *times,
		  struct h5_vfs_entry *entry);

/* ---- attributes.c: the attributes of an object as xattrs ---- */

enum { H5_XATTR_MAX = 65536 }; /* Linux' limit of a value */

enum h5_attribute_form {
	H5_ATTRIBUTE_TEXT,
	H5_ATTRIBUTE_RAW,    /* the attribute's bytes */
	H5_ATTRIBUTE_TYPE,   /* the name of the attribute's type */
	H5_ATTRIBUTE_LISTED, /* text, or raw by an option of the mount: what user.NAME has */
};

/* The attribute that is listed as `user.NAME`; h5_attribute_release(). -ENODATA: there is none. */
int h5_attributes_find(struct h5_file *file, const struct h5_object *object, const char *name,
		       struct h5_attribute *attribute);
/* Appends the value. -ENODATA: there is no attribute that is listed by that name. */
int h5_attributes_get(struct h5_vfs *vfs, struct h5_node *node, const char *name, enum h5_attribute_form form,
		      struct h5_buf *out);
/* Makes the attribute, or gives it that value. Inside a change. */
int h5_attributes_set_text(struct h5_vfs *vfs, const struct h5_node *node, const char *name, const char *text,
			   size_t n);
/* Removes the attribute whose file has that name in the directory, as a request. */
int h5_attributes_remove_file(struct h5_vfs *vfs, const struct h5_node *directory, const char *name);
/* Appends user.NAME with its NUL for each attribute whose value can be got. */
int h5_attributes_list(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out);
/* Number of attributes that the list leaves out. */
int h5_attributes_unlisted(struct h5_vfs *vfs, struct h5_node *node, uint64_t *count);

#endif

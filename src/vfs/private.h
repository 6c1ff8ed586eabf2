/* Between the files of src/vfs. */
#ifndef H5_VFS_PRIVATE_H
#define H5_VFS_PRIVATE_H

#include "base/room.h"
#include "base/siphash.h"
#include "dataset/writer.h"
#include "object/group.h"
#include "object/value.h"
#include "vfs/name.h"
#include "vfs/vfs.h"
#include "view/view.h"

#include <pthread.h>
#include <stdatomic.h>

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

/* Where a link leads. */
struct h5_place {
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
	uint64_t id; /* the kernel's number of it: see ids.c */
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

struct h5_path_map; /* paths.c: from an object's address to a path */

/* A virtual dataset, whose size follows that of its sources. */
struct h5_follower {
	struct {
		struct h5_file *file;
		uint64_t address;
	} key;
	UT_hash_handle hh;
};

struct h5_handle {
	struct h5_vfs *vfs;
	struct h5_node *node; /* referenced */
	int mode;	      /* O_RDONLY, O_WRONLY, O_RDWR */
	bool direct;	      /* the kernel reads and writes without its pages */
	struct h5_file *file;
	uint64_t address;
	struct h5_view view; /* as it was when the file was opened to be read; ops NULL: it was not */
	/* Of one who reads raw data in order: how far, how many reads, how far ahead was decoded. Several
	 * threads may be at it: what gets lost then is speed. */
	atomic_uint_fast64_t read_to, ahead;
	atomic_uint in_order;
	/* write_lock: */
	struct h5_view_input input; /* its writer counts as a user; ops NULL: open for reading */
	bool unsaved;		    /* something was written through it since the last commit */
	int lost; /* why some of that will never be committed, until it is told; 0: it will */
	struct h5_handle *prev, *next; /* vfs->lock: in vfs->handles */
};

struct h5_vfs {
	struct h5_file_set *set; /* borrowed */
	struct h5_vfs_options options;
	atomic_uint_fast64_t bytes_read, bytes_written; /* by users */
	atomic_uint_fast64_t dropped_rows;		/* incomplete ones */
	atomic_uint_fast64_t lost_changes;		/* of a dataset, since its last commit */
	atomic_bool maps_direct;			/* h5_vfs_set_maps_direct() */
	struct h5_node *root;
	uint8_t secret[H5_SIPHASH_KEY]; /* of this mount */
	bool may_change;		/* another program may write objects anew without our notice */
	char *prefix;	      /* owned: the escaped path of the root in the file, without slashes around it */
	pthread_mutex_t lock; /* guards nodes, and what struct h5_node says */
	struct h5_node *nodes;		  /* hash table by key */
	struct h5_node *by_id;		  /* hash table of all nodes */
	struct h5_remembered *remembered; /* hash table of nodes that were forgotten */
	struct h5_node
		*detached; /* nodes whose name leads elsewhere by now: found no more, but not yet forgotten */
	/* Open files and directories (by `prev`, `next`): the kernel may end without a release of them. */
	struct h5_handle *handles;     /* lock */
	struct h5_dir *dirs;	       /* lock */
	struct h5_follower *followers; /* hash table; added to with lock and the shared write_lock */
	pthread_mutex_t map_lock;      /* guards map: held while it is built */
	struct h5_path_map *map;       /* of the mounted file, made when first needed */
	/* Of a mount for writing: shared over what reads, exclusive over what changes; guards all below. */
	pthread_rwlock_t write_lock;
	struct timespec changed; /* when something was last written; 0: never */
	uint64_t changes;	 /* how often */
};

/* ---- node.c ---- */

/* The node of what the name in the parent leads to, found or made; takes over place->target. Referenced. */
int h5_node_get(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_place *place,
		struct h5_node **node);
/* Frees all nodes. */
void h5_nodes_free(struct h5_vfs *vfs);
/* Inode number of a place, without a node. */
uint64_t h5_node_ino(struct h5_vfs *vfs, const struct h5_node *parent, const char *name,
		     const struct h5_place *place);

/* ---- ids.c: the kernel's numbers of nodes. With vfs->lock: ---- */

/* Gives a new node its id and its generation, and enters it. -ENOMEM. */
int h5_node_identify(struct h5_vfs *vfs, struct h5_node *node);
/* Before a node is freed: it can be found again by its id. */
void h5_node_remember(struct h5_vfs *vfs, const struct h5_node *node);
void h5_remembered_free(struct h5_vfs *vfs);

/* ---- dir.c ---- */

/* h5_vfs_lookup() for one who has the lock to read. */
int h5_node_look_up(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry);

/* ---- tree.c ---- */

/* The targets of symlinks to what is not there or not opened begin like this. */
#define H5_DANGLING "extlink:"

/* A symlink in the directory. Takes the target over. One that is longer than a symlink can be becomes a
 * target that exists nowhere; one that leads out of the mount is -EUCLEAN. */
int h5_place_symlink(const struct h5_node *directory, struct h5_place *place, struct h5_buf *target);
int h5_place_kind(struct h5_file *file, uint64_t address, enum h5_node_kind *kind);
/* A directory that is the one itself or one above it becomes a symlink. */
int h5_place_turn_back(const struct h5_node *directory, struct h5_place *place);

/* Where a link of the directory leads, by the rules of MAPPING section 2. */
int h5_tree_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		    struct h5_place *place);
/* The same for a hard link to an object of the directory's file that is at hand. */
int h5_tree_resolve_object(const struct h5_node *directory, const struct h5_object *object,
			   struct h5_place *place);
void h5_place_release(struct h5_place *place); /* may run twice */

/* ---- dir.c ---- */

/* Where a name of the directory leads, as a look-up finds it. */
int h5_dir_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		struct h5_place *place);

/* ---- written.c: the lock, and the datasets that are written ---- */

/* Around a request that reads; first settles what was written, so that it sees it. Such a request runs once
 * more, alone, if there was no room for what it takes (base/room.h):
 *
 *   struct h5_account account = {0};
 *
 *   do {
 *           h5_reading_begin(vfs, &account);
 *           rc = ...
 *   } while (h5_reading_again(vfs, &account, &rc));
 */
void h5_reading_begin(struct h5_vfs *vfs, struct h5_account *account);
bool h5_reading_again(struct h5_vfs *vfs, struct h5_account *account, int *rc);
/* Around one that changes something; only on a mount for writing. */
void h5_lock_to_write(struct h5_vfs *vfs);
void h5_unlock(struct h5_vfs *vfs);

/* Stands for the contents of the file as they are now. */
uint64_t h5_state(const struct h5_vfs *vfs, const struct h5_file *file);

/* True: its elements can be written in this mount, as far as that is known without its index. */
bool h5_is_writable(const struct h5_vfs *vfs, const struct h5_dataset *dataset);

/* Remembers a virtual dataset: when sources may have changed, it is decoded again. */
int h5_written_follow(struct h5_vfs *vfs, const struct h5_node *node);

/* The rest is for the holder of the exclusive lock. */

/* Opens a node's dataset to be written; on success for h5_written_close(). -EPERM: it can't be written;
 * -EROFS, -ENOTSUP, ... */
int h5_written_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view_input *input);
void h5_written_close(struct h5_view_input *input);
/* To be called before a dataset is changed: makes room for what small writes gather. */
int h5_written_begin(struct h5_vfs *vfs, struct h5_dataset_writer *writer);
/* To be called after each change that was tried. */
void h5_written_end(struct h5_vfs *vfs);
/* Makes everything that was written durable. What cannot be is lost, at once and for good: such a dataset is
 * as the last commit has left it, and its handles remember the failure. The result is the failure of the one
 * dataset, or (NULL) of any. */
int h5_written_commit(struct h5_vfs *vfs, const struct h5_dataset_writer *of);
void h5_written_free(struct h5_vfs *vfs);

/* ---- write.c ---- */

/* With the exclusive lock: opens the handle for writing; with `cut` to size 0. */
int h5_write_open(struct h5_handle *handle, const struct h5_node *node, bool cut);
/* The handle is closed. */
void h5_write_close(struct h5_handle *handle);

/* ---- listing.c, handle.c ---- */

/* Close what is still open. */
void h5_dirs_close(struct h5_vfs *vfs);
void h5_handles_close(struct h5_vfs *vfs);

/* ---- views.c: the tree of each view ---- */

#define H5_VIEWS_NAME ".h5fs"

/* The name of a link in a directory of the view: as a file of it, or as a directory. */
size_t h5_views_escape(const struct h5_view_ops *view, bool as_file, const char *name, size_t size,
		       char out[H5_NAME_MAX + 1]);
/* Where a link of the directory, which is in a view, leads, as a file or as a directory. -ENOENT: it is not
 * shown as that. */
int h5_views_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		     bool as_file, struct h5_place *place);
/* Names that no link has. -ENOENT: there is none. */
int h5_views_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		  struct h5_place *place);
/* Every entry of a directory that is in a view, or is that of the views. The place is the visitor's. */
typedef int h5_views_visit(void *arg, const char *name, struct h5_place *place);
int h5_views_iterate(struct h5_vfs *vfs, const struct h5_node *directory, h5_views_visit *visit, void *arg);

/* ---- stat.c ---- */

/* Size and times of the file that was asked last, for one request. */
struct h5_times {
	struct h5_file *file; /* NULL: none */
	struct h5_io_stat st;
};

/* Fills entry->st and entry->size_known for entry->node; on failure gives the node's reference back. `known`:
 * the node's object where it is at hand, else NULL. */
int h5_node_entry(struct h5_vfs *vfs, const struct h5_object *known, struct h5_times *times,
		  struct h5_vfs_entry *entry);

/* ---- content.c ---- */

/* An object's view, by its node: h5_view_begin(). h5_view_release() on failure, too. */
int h5_content_begin(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_object *known,
		     struct h5_view *view);
/* The same, opened to be read. */
int h5_content_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view *view);

/* ---- property.c: the xattrs h5fs.* ---- */

int h5_property_get(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out);

/* ---- attributes.c: the attributes of an object as xattrs ---- */

enum { H5_XATTR_MAX = 65536 }; /* Linux' limit of a value */

enum h5_attribute_form {
	H5_ATTRIBUTE_TEXT,
	H5_ATTRIBUTE_RAW,    /* its bytes */
	H5_ATTRIBUTE_TYPE,   /* the name of its type */
	H5_ATTRIBUTE_LISTED, /* text, or raw by an option of the mount: what user.NAME has */
};

/* Appends the value. -ENODATA: there is no attribute that is listed by that name. */
int h5_attributes_get(struct h5_vfs *vfs, struct h5_node *node, const char *name, enum h5_attribute_form form,
		      struct h5_buf *out);
/* Appends user.NAME with its NUL for each attribute whose value can be got. */
int h5_attributes_list(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out);
/* Number of attributes that the list leaves out. */
int h5_attributes_unlisted(struct h5_vfs *vfs, struct h5_node *node, uint64_t *count);

/* ---- paths.c ---- */

/* Appends the absolute path, escaped, of the object in the mount. -ENOENT: none leads there. */
int h5_paths_find(struct h5_vfs *vfs, struct h5_file *file, uint64_t address, struct h5_buf *path);
/* Logs a line about an object: with the file, the path that was found, and the address. Leaves the thread's
 * error as it is. */
void h5_log_about(struct h5_vfs *vfs, uint64_t address, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void h5_paths_free(struct h5_path_map *map); /* NULL is fine */
/* For the values of a file: references to objects that have a path in the mount are shown as that path. */
struct h5_value_context h5_paths_context(struct h5_vfs *vfs, struct h5_file *file);

#endif

/* Between the files of src/vfs. */
#ifndef H5_VFS_PRIVATE_H
#define H5_VFS_PRIVATE_H

#include "dataset/dataset.h"
#include "object/group.h"
#include "object/value.h"
#include "vfs/vfs.h"

#include <pthread.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

enum h5_node_kind {
	H5_NODE_DIRECTORY,
	H5_NODE_DATASET,
	H5_NODE_DATATYPE,
	H5_NODE_SYMLINK,
	H5_NODE_DAMAGED, /* listed; opening it tells what is wrong */
};

/* Where a link leads. */
struct h5_place {
	enum h5_node_kind kind;
	struct h5_file *file; /* borrowed; of the object; of a symlink: NULL */
	uint64_t address;     /* of the object */
	char *target;	      /* owned; of a symlink */
};

struct h5_node {
	enum h5_node_kind kind;
	struct h5_file *file;
	uint64_t address;
	char *target;
	uint64_t ino;
	unsigned depth; /* directories: names below the root */
	struct h5_node
		*parent; /* directories and symlinks: referenced; NULL: root, and files, which have many */
	uint64_t references;	     /* vfs->lock: the kernel's lookups, child nodes */
	UT_hash_handle hh;	     /* vfs->lock */
	struct h5_node *prev, *next; /* vfs->lock: in vfs->detached */
	bool is_detached;
	/* vfs->lock: size of the contents of a dataset as text, once it was asked for; of the file as it was
	 * under that number */
	bool has_text_size;
	uint64_t text_size, text_number;
	size_t key_size;
	uint8_t key[]; /* what makes it the same node: see node.c */
};

struct h5_path_map; /* paths.c: from an object's address to a path */

struct h5_vfs {
	struct h5_file_set *set; /* borrowed */
	struct h5_vfs_options options;
	struct h5_node *root;
	pthread_mutex_t lock;  /* guards nodes, and what struct h5_node says */
	struct h5_node *nodes; /* hash table by key */
	struct h5_node
		*detached; /* nodes whose name leads elsewhere by now: found no more, but not yet forgotten */
	/* Open files and directories (by `prev`, `next`): the kernel may end without a release of them. */
	struct h5_handle *handles; /* lock */
	struct h5_dir *dirs;	   /* lock */
	pthread_mutex_t map_lock;  /* guards map: held while it is built */
	struct h5_path_map *map;   /* of the mounted file, made when first needed */
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

/* ---- tree.c ---- */

/* Where a link of the directory leads, by the rules of MAPPING section 2. */
int h5_tree_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		    struct h5_place *place);
void h5_place_release(struct h5_place *place); /* may run twice */

/* ---- dir.c, content.c ---- */

/* Close what is still open. */
void h5_dirs_close(struct h5_vfs *vfs);
void h5_handles_close(struct h5_vfs *vfs);

/* ---- stat.c ---- */

/* Fills entry->st and entry->size_known for entry->node; on failure gives the node's reference back. */
int h5_node_entry(struct h5_vfs *vfs, struct h5_vfs_entry *entry);

/* ---- content.c ---- */

enum h5_format { H5_FORMAT_RAW, H5_FORMAT_LINES, H5_FORMAT_JSONL };

enum h5_format h5_content_format(const struct h5_dataset *dataset);
/* The text of a committed datatype. */
int h5_content_ddl(struct h5_file *file, uint64_t address, struct h5_buf *out);

/* ---- text.c: datasets as lines of text ---- */

struct h5_text; /* immutable: an index from elements to offsets */

/* A reference, through the block cache; h5_file_put() gives it back. */
int h5_text_get(struct h5_vfs *vfs, const struct h5_dataset *dataset, struct h5_lru_entry **ref,
		const struct h5_text **text);
uint64_t h5_text_size(const struct h5_text *text);
int h5_text_read(struct h5_vfs *vfs, const struct h5_dataset *dataset, const struct h5_text *text,
		 uint64_t offset, void *buf, size_t n);

/* ---- property.c: the xattrs h5fs.* ---- */

int h5_property_get(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out);

/* ---- xattr.c ---- */

/* Number of attributes that the list of xattrs leaves out. */
int h5_xattr_unlisted(struct h5_vfs *vfs, struct h5_node *node, uint64_t *count);

/* ---- paths.c ---- */

/* Appends the absolute path, escaped, of the object in the mount. -ENOENT: none leads there. */
int h5_paths_find(struct h5_vfs *vfs, struct h5_file *file, uint64_t address, struct h5_buf *path);
void h5_paths_free(struct h5_path_map *map); /* NULL is fine */
/* What the functions of object/value.h need. `arg` keeps the pair that it points at. */
struct h5_value_source {
	struct h5_vfs *vfs;
	struct h5_file *file;
};
struct h5_value_context h5_paths_context(struct h5_value_source *source);

#endif

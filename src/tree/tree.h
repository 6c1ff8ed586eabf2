/* A folder as one tree: each HDF5 file in it is a directory, which has what a mount of that file shows; other
 * files are what they are. On a mount for writing all in the HDF5 files may change, by calls of vfs/vfs.h;
 * the entries of the folder are for reading. The folder is a local one, or what lies below a prefix in an
 * object store.
 *
 * An HDF5 file is opened when a request looks into it, and closed when no request has for some seconds. What
 * the kernel knows of it stays: when it is opened again, the nodes are found again by their names. A file
 * that cannot be opened has a directory that tells the error.
 *
 * All functions may run in several threads at once. Errors are negative errnos, as users see them. -ESTALE:
 * the file is not there any more, or is another one by now; the kernel looks the name up anew then. */
#ifndef H5_TREE_TREE_H
#define H5_TREE_TREE_H

#include "change/open.h"
#include "vfs/vfs.h"

struct h5_tree;
struct h5_tree_node;   /* an inode that the kernel knows */
struct h5_tree_dir;    /* an open directory */
struct h5_tree_handle; /* an open file */

/* Names that HDF5 files have. */
#define H5_TREE_MATCH                                                                                        \
	"*.h5:*.hdf5:*.hdf:*.he5:*.h5ad:*.nc:*.nc4:*.cdf:*.mat:*.nxs:*.cxi:*.cgns:*.jld2:*.loom:*.fast5:"    \
	"*.ims:*.emd:*.mnc:*.bag"

struct h5_tree_options {
	/* Patterns (fnmatch(3), in any case of letters) with a colon between two: files with such a name are
	 * looked at. Borrowed. */
	const char *match;
	unsigned open_files;	   /* HDF5 files that may be open at once */
	bool keeps_uid, keeps_gid; /* files have their own owner, group; else those of `vfs` */
	/* The options of each HDF5 file. All files share the caches. vfs.url is the URL of the folder. */
	struct h5_file_set_options set;
	struct h5_vfs_options vfs;
	/* Called when a file has been opened, with its path. *own is for `closing`. If it fails, the file is
	 * closed again. */
	int (*opened)(void *arg, const char *path, const struct h5_file_set *set,
		      const struct h5_opened *opened, struct h5_vfs *vfs, void **own);
	/* Called before the file closes, when no request uses it any more. Commits; the error: what was
	 * written last is lost. */
	int (*closing)(void *arg, const char *path, struct h5_vfs *vfs, void *own);
	void *arg;
};

/* Opens the folder at the path; with options->set.remote the prefix that this leads to, which lists it. */
int h5_tree_open(const char *path, const struct h5_tree_options *options, struct h5_tree **tree);
/* Closes all HDF5 files. To be called when no requests come any more. Returns why changes of any file were
 * lost when it was closed, now or before; 0: none were. */
int h5_tree_finish(struct h5_tree *tree);
/* Closes all. To be called when no requests come any more. NULL is fine. */
void h5_tree_close(struct h5_tree *tree);
/* The folder: an O_PATH descriptor, borrowed; -1: it is in an object store. */
int h5_tree_folder(const struct h5_tree *tree);
/* Borrowed; lives as long as the tree. */
struct h5_tree_node *h5_tree_root(struct h5_tree *tree);
/* As h5_vfs_set_maps_direct(), for all files that will be opened. */
void h5_tree_set_maps_direct(struct h5_tree *tree);

enum h5_tree_kind {
	H5_TREE_FOLDER,
	H5_TREE_PLAIN,	/* neither a folder nor an HDF5 file */
	H5_TREE_FILE,	/* an HDF5 file, shown as a directory */
	H5_TREE_INSIDE, /* something in an HDF5 file */
};
enum h5_tree_kind h5_tree_kind(const struct h5_tree_node *node);

/* Seconds that the kernel may keep the name and the attributes of the node: other programs change the folder
 * when they like, and to ask an object store takes time. */
double h5_tree_keep(const struct h5_tree *tree, const struct h5_tree_node *node);

/* Waits until an HDF5 file was not used for some seconds, and closes it. False: h5_tree_await_none() was
 * called. */
bool h5_tree_close_idle(struct h5_tree *tree);
void h5_tree_await_none(struct h5_tree *tree);

/* The answer of a look-up. The caller owes an h5_tree_forget() for the node. */
struct h5_tree_entry {
	struct h5_tree_node *node;
	uint32_t generation; /* no other node has the same one and the same address */
	struct stat st;
};

/* Looks a name of a folder up. */
int h5_tree_lookup(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
		   struct h5_tree_entry *entry);
/* Gives n references back. */
void h5_tree_forget(struct h5_tree *tree, struct h5_tree_node *node, uint64_t n);

/* ---- requests to what is in an HDF5 file: calls of vfs/vfs.h ---- */

/* What a node is there. */
struct h5_tree_inside {
	struct h5_tree_file *file;
	struct h5_vfs *vfs;
	struct h5_node *node; /* borrowed as long as the file is in use and the kernel has the node */
};

/* Opens the file if need be; it stays open until h5_tree_leave(). -EROFS: the node is of the folder;
 * -EBUSY: another program has the file locked; else as h5_open_file(). On failure *in stays as it was. */
int h5_tree_enter(struct h5_tree *tree, struct h5_tree_node *node, struct h5_tree_inside *in);
/* Another node of the request. -EXDEV: it is not in the same file. */
int h5_tree_enter_too(struct h5_tree *tree, struct h5_tree_node *node, const struct h5_tree_inside *in,
		      struct h5_node **inside);
void h5_tree_leave(struct h5_tree *tree, const struct h5_tree_inside *in);
/* Makes what the vfs says of a name in the directory, *found, the answer of a look-up. Takes over the node of
 * *found, also on failure. */
int h5_tree_entry(struct h5_tree *tree, struct h5_tree_node *directory, const char *name,
		  const struct h5_vfs_entry *found, struct h5_tree_entry *entry);
/* The directory of the same file has got the name for what was called otherwise: from now on its node is
 * found again by that. */
void h5_tree_note_name(struct h5_tree *tree, struct h5_tree_node *directory, const struct h5_tree_inside *in,
		       const char *name);
/* Makes what the vfs says of the node what the mount says of it. */
void h5_tree_show(const struct h5_tree_node *node, struct stat *st);
/* Commits what was changed in all files. Tells once if changes were lost when a file closed. */
int h5_tree_commit(struct h5_tree *tree);

/* ---- other requests ---- */

/* Of an entry of the folder. */
int h5_tree_getattr(struct h5_tree *tree, struct h5_tree_node *node, struct stat *st);
/* Appends the target, with its NUL. -EACCES: it leads out of the folder, and `external` forbids that. */
int h5_tree_readlink(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *target);
int h5_tree_statfs(struct h5_tree *tree, struct statvfs *st);
/* As h5_vfs_getxattr() and h5_vfs_listxattr(), of a node that is not in an HDF5 file. In a local folder it
 * has its own attributes `user.*`. */
int h5_tree_getxattr(struct h5_tree *tree, const struct h5_tree_node *node, const char *name,
		     struct h5_buf *out);
int h5_tree_listxattr(struct h5_tree *tree, const struct h5_tree_node *node, struct h5_buf *out);
/* Appends the path of the node, relative to the root. */
void h5_tree_path(struct h5_tree *tree, const struct h5_tree_node *node, struct h5_buf *path);
/* As h5_vfs_work_limit(). */
uint64_t h5_tree_work_limit(struct h5_tree *tree, const struct h5_tree_node *node);
/* Appends statistics as a JSON object. */
int h5_tree_statistics(struct h5_tree *tree, struct h5_buf *out);

/* An entry of a directory. */
struct h5_tree_name {
	const char *name; /* borrowed until the next call for this directory */
	uint64_t ino;
	mode_t type;   /* as in st_mode; 0: a look-up tells */
	uint64_t next; /* the position after it */
};

enum { H5_TREE_NAMES = 64 }; /* entries that are read at a time */

/* Lists without opening any HDF5 file, but the one that the directory is in. */
int h5_tree_opendir(struct h5_tree *tree, struct h5_tree_node *node, struct h5_tree_dir **dir);
void h5_tree_closedir(struct h5_tree_dir *dir);
/* Fills *got entries from the position on; the first one is 0. *got 0: there are no more. To read from 0
 * lists anew. */
int h5_tree_readdir(struct h5_tree_dir *dir, uint64_t position, struct h5_tree_name names[H5_TREE_NAMES],
		    size_t *got);

/* `flags` as of h5_vfs_open_file(). -EROFS: it is of the folder, and not opened for reading alone. */
int h5_tree_open_file(struct h5_tree *tree, struct h5_tree_node *node, int flags,
		      struct h5_tree_handle **handle);
/* Makes a handle of one that the vfs has made in a request to the file, which it takes over, also on failure.
 */
int h5_tree_take_handle(struct h5_tree *tree, struct h5_tree_node *node, struct h5_handle *inside,
			struct h5_tree_handle **handle);
/* The vfs' handle, borrowed; NULL: it is of the folder. */
struct h5_handle *h5_tree_handle_inside(const struct h5_tree_handle *handle);
void h5_tree_close_file(struct h5_tree_handle *handle);
int h5_tree_read(struct h5_tree_handle *handle, uint64_t offset, void *buf, size_t n, size_t *got);
/* As lseek(2) with SEEK_HOLE (`hole`) or SEEK_DATA. */
int h5_tree_seek(struct h5_tree_handle *handle, uint64_t offset, bool hole, uint64_t *found);

#endif

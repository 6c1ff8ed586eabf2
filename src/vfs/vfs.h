/* The file tree that a mount shows: nodes, directories, contents and extended attributes.
 *
 * This is the contract with the user (doc/h5fs.1) without FUSE: src/fuse turns each request into one of these
 * calls. All of them may run in several threads at once. Errors are negative errnos, as users see them. */
#ifndef H5_VFS_VFS_H
#define H5_VFS_VFS_H

#include "base/buf.h"
#include "object/filter_list.h"
#include "store/file_set.h"
#include "view/colours.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

struct h5_json;
struct h5_vfs;
struct h5_node;	  /* an inode that the kernel knows */
struct h5_dir;	  /* an open directory */
struct h5_handle; /* an open file */

struct h5_vfs_options {
	const char
		*subdir; /* path of the group that is the root of the tree; NULL: the root group. Borrowed */
	uid_t uid;
	gid_t gid;
	mode_t fmask, dmask;	 /* bits taken out of the modes of files and directories */
	bool order_by_creation;	 /* list links in creation order, if the group tracks it */
	unsigned max_work;	 /* seconds; see h5_vfs_work_limit(). 0: any */
	bool raw_attributes;	 /* user.NAME has the stored bytes, not text */
	enum h5_colours colours; /* of pictures below `.h5fs` */
	bool zarr_decoded;	 /* chunks below `.h5fs/zarr` and zarr3 are not as they are stored */
	/* writing */
	bool writable;	      /* the mounted file was opened for writing */
	bool external_write;  /* external raw files may be written */
	bool commit_at_close; /* sync=close: closing a file that was written commits; else only fsync does */
	size_t gather;	      /* bytes of chunks that small writes may gather in memory, of all datasets */
	const char *file;     /* name of the mounted file, for the log; borrowed. NULL: none */
	const char *url;      /* where other programs find it, for kerchunk.json; borrowed. NULL: none */
	int file_fd;	      /* a descriptor in the file system that holds the file, for statfs; borrowed */
	void (*log)(const char *format, ...)
		__attribute__((format(printf, 1, 2))); /* for errors that no reply can tell */

	struct h5_filter_list filters; /* of new datasets */
};

/* The set is borrowed and must outlive the vfs. -EUCLEAN, ...: the root group cannot be opened. */
int h5_vfs_open(struct h5_file_set *set, const struct h5_vfs_options *options, struct h5_vfs **vfs);
/* Closes all open files and directories, removes the objects that had no name any more, and commits. To be
 * called when no requests come any more. */
int h5_vfs_finish(struct h5_vfs *vfs);
/* Closes all open files and directories, and frees all nodes, also referenced ones. NULL is fine. */
void h5_vfs_close(struct h5_vfs *vfs);

/* Forgets what is cached of files whose size or mtime has changed. To be called before each request, if other
 * programs may write the file. */
void h5_vfs_refresh(struct h5_vfs *vfs);

/* Milliseconds that a request may work; 0: any. There is a limit because a few bytes of a file can ask for
 * hours of work. It grows with the bytes that the open files store. */
uint64_t h5_vfs_work_limit(struct h5_vfs *vfs);

/* Borrowed; lives as long as the vfs. */
struct h5_node *h5_vfs_root(struct h5_vfs *vfs);

/* The answer of look-ups and listings. The caller owes an h5_vfs_forget() for the node. If `size_known` is
 * false, the size takes work: h5_vfs_getattr() tells it. */
struct h5_vfs_entry {
	struct h5_node *node;
	struct stat st;
	bool size_known;
	bool passing; /* the kernel must not keep the name: it may change without a request for this name */
	bool made; /* the request has made the object, so that `st` is true as long as no other one comes */
};

int h5_vfs_lookup(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry);

/* The number of a node. It leads to the node also after that was forgotten. Number and generation together
 * never mean anything else, neither later nor in another mount. The root has H5_ROOT_ID and generation 0. */
enum { H5_ROOT_ID = 1 };
uint64_t h5_vfs_id(const struct h5_node *node);
uint32_t h5_vfs_generation(const struct h5_node *node);
/* The node of that number, borrowed; NULL: there is none now. */
struct h5_node *h5_vfs_node(struct h5_vfs *vfs, uint64_t id);
/* Look-ups by number: of the node itself, and of the directory above it. -ESTALE: there is no such node, or
 * too many others were forgotten since. */
int h5_vfs_lookup_id(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry);
int h5_vfs_lookup_parent(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry);
/* Gives n references back. */
void h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t n);

/* Appends a path that leads to the node's object in the mount. -ENOENT: there is none; -E2BIG: it is longer
 * than *path may be; -EINTR, -EFBIG: finding it takes too long. The first call walks over all groups. */
int h5_vfs_find_path(struct h5_vfs *vfs, const struct h5_node *node, struct h5_buf *path);
int h5_vfs_getattr(struct h5_vfs *vfs, struct h5_node *node, struct stat *st);
/* The target, borrowed as long as the node is referenced; -EINVAL: no symlink. */
int h5_vfs_readlink(struct h5_node *node, const char **target);
/* Appends statistics of the mount as a JSON object: the xattr h5fs.stats of the root. */
int h5_vfs_statistics(struct h5_vfs *vfs, struct h5_buf *out);
/* Of them those of a link to files behind URLs: a member of the object. */
void h5_vfs_remote_statistics(struct h5_json *all, struct h5_remote *link);
int h5_vfs_statfs(struct h5_vfs *vfs, struct statvfs *st);

/* All names of a directory are read when it is opened, but in a long one only some at a time. What they lead
 * to is found when it is asked for. */
int h5_vfs_opendir(struct h5_vfs *vfs, struct h5_node *node, struct h5_dir **dir);
void h5_vfs_closedir(struct h5_dir *dir);
/* For a request that reads a directory which the kernel has not opened, on a mount for reading: takes the one
 * that was returned before, or opens it. To be returned, or closed if its end was told. */
int h5_vfs_take_dir(struct h5_vfs *vfs, struct h5_node *node, struct h5_dir **dir);
void h5_vfs_return_dir(struct h5_dir *dir);
/* To be called when the directory is read from its begin: if names have changed, it is read anew. */
int h5_vfs_dir_rewind(struct h5_dir *dir);
size_t h5_vfs_dir_count(const struct h5_dir *dir);
/* Makes the entries from a position on those at hand: from *first on, up to h5_vfs_dir_count(). None: there
 * are no more. Positions increase from entry to entry, and stay; the first one is 0. */
int h5_vfs_dir_go(struct h5_dir *dir, uint64_t position, size_t *first);
/* The position after entry i. */
uint64_t h5_vfs_dir_next(const struct h5_dir *dir, size_t i);
/* Inode numbers of `.` and `..`; the root is its own parent. */
ino_t h5_vfs_dir_self(const struct h5_dir *dir);
ino_t h5_vfs_dir_parent(const struct h5_dir *dir);
/* To be told after the last entry: why the listing is not complete; 0: it is. */
int h5_vfs_dir_error(const struct h5_dir *dir);
/* File name of entry i; borrowed. */
const char *h5_vfs_dir_name(const struct h5_dir *dir, size_t i);
/* Fills up to `count` entries from `first` on, all of which exist. *got: how many, at least one. With `plus`
 * they have all that h5_vfs_lookup() gives; else inode number and type, but no node, as files that the kernel
 * knows in a mount for writing have always. An entry whose object could not be read this time (the device
 * failed, descriptors ran out, its file is locked) has no node and type 0. */
int h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus, struct h5_vfs_entry *entries,
		    size_t *got);

/* `flags`: access mode and O_TRUNC of open(2). -EROFS: the mount is for reading; -EPERM: the file can't be
 * written, or not be truncated. */
int h5_vfs_open_file(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle);
/* Says that the kernel can map files shared that it reads directly. To be called before any file is opened.
 */
void h5_vfs_set_maps_direct(struct h5_vfs *vfs);
/* True: the kernel must not use pages that it keeps for reads and writes through this handle. */
bool h5_vfs_is_direct(const struct h5_handle *handle);
/* The open file. Borrowed. */
struct h5_node *h5_vfs_handle_node(const struct h5_handle *handle);
/* True: what is written through the handle gets its name in another directory: that of the dataset which is
 * made of it. */
bool h5_vfs_is_source(const struct h5_handle *handle);
/* An incomplete row is dropped, with a line in the log. */
void h5_vfs_close_file(struct h5_handle *handle);
/* A handle for reading a file that the kernel reads without opening it, on a mount for reading; borrowed
 * until it is released by the same request. */
int h5_vfs_hold_file(struct h5_vfs *vfs, struct h5_node *node, struct h5_handle **handle);
void h5_vfs_release_file(struct h5_handle *handle);
/* Reads n bytes at the offset; *got is less only at the end. */
int h5_vfs_read(struct h5_handle *handle, uint64_t offset, void *buf, size_t n, size_t *got);

/* As lseek(2) with SEEK_HOLE (`hole`) or SEEK_DATA. */
int h5_vfs_seek(struct h5_handle *handle, uint64_t offset, bool hole, uint64_t *found);

/* ---- writing: doc/h5fs.1, Writing ---- */

enum h5_write_where {
	H5_WRITE_AT,	 /* at the offset */
	H5_WRITE_APPEND, /* at the end, wherever that is now */
	H5_WRITE_INSIDE, /* at the offset, but no bytes beyond the end: for mapped pages */
};

/* Pages of a file that the kernel keeps have zeros behind its end. When the file grows, they are stale, and
 * must be dropped before the kernel knows of the new size. Until then it is told the old size. *stale says
 * what the caller must do:
 *
 *   H5_NOT_STALE	nothing
 *   other values	drop pages from this offset on, then call h5_vfs_tell_size()
 *
 * H5_NOT_STALE also if dropping pages would wait for the very request: while the kernel writes through a
 * handle that is not direct, it holds the lock of the page; while it truncates a file, it writes no dirty
 * page. */
#define H5_NOT_STALE UINT64_MAX

/* Files below `.h5fs` are written as a whole, in order (-EOPNOTSUPP else): when such a file is flushed or
 * synced, what it says becomes a dataset or an attribute, all at once. -EINVAL then: that cannot be, or the
 * file is not whole. */

/* Writes n bytes; *written is less if no more fit. -EFBIG: nothing fits; -EINVAL: the write would begin a row
 * while another row of the handle is incomplete. *stale: see above. */
int h5_vfs_write(struct h5_handle *handle, uint64_t offset, const void *buf, size_t n,
		 enum h5_write_where where, size_t *written, uint64_t *stale);
/* Sets the bytes of the range to the fill value (FALLOC_FL_PUNCH_HOLE); whole chunks give up their space.
 * -EOPNOTSUPP: another mode; -EPERM: with SWMR readers. */
int h5_vfs_fallocate(struct h5_handle *handle, int mode, uint64_t offset, uint64_t n);
/* One of the handle's descriptors is closed: commits (sync=close). -EINVAL: a row is incomplete; it is kept.
 */
int h5_vfs_flush(struct h5_handle *handle);
int h5_vfs_fsync(struct h5_handle *handle);
/* Commits. If links of the directory have changed and the changes are lost, tells it once. For the root it
 * also gives space back: nothing that was asked for before changes the file any more. */
int h5_vfs_fsync_directory(struct h5_vfs *vfs, const struct h5_node *directory);
/* Sets the size, through the handle, or by name (NULL). -EINVAL: these are no whole rows; -EPERM: the size
 * cannot change. *stale: see above. */
int h5_vfs_truncate(struct h5_vfs *vfs, struct h5_node *node, struct h5_handle *handle, uint64_t size,
		    uint64_t *stale);
/* The largest size of the file that the kernel may be told now. */
uint64_t h5_vfs_size_limit(struct h5_vfs *vfs, const struct h5_node *node);
/* To be called when the stale pages are dropped. */
void h5_vfs_tell_size(struct h5_vfs *vfs, struct h5_node *node);
/* Commits all changes. To be called when h5_vfs_await_change() says so. */
int h5_vfs_commit(struct h5_vfs *vfs);
/* Gives space that nothing refers to any more back to the file system, if there is enough of it. If that
 * fails, the mount takes no more changes. */
int h5_vfs_give_back(struct h5_vfs *vfs);
/* Waits for the first change since the last call, and then so many seconds. False: h5_vfs_await_none() was
 * called. */
bool h5_vfs_await_change(struct h5_vfs *vfs, unsigned seconds);
void h5_vfs_await_none(struct h5_vfs *vfs);

/* ---- names: doc/h5fs.1, Writing ----
 *
 * -EPERM: below `.h5fs`, or with SWMR readers; -EROFS: in another file; -EINVAL: a name that no link can
 * have, or not by this file name. */

/* *entry as by h5_vfs_lookup(). -EEXIST: the name is taken. */
int h5_vfs_mkdir(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry);
/* The same for a file: a dataset of bytes. */
int h5_vfs_mknod(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry);
/* Makes the file and opens it; `flags` of open(2). Without O_EXCL it opens one that is there. */
int h5_vfs_create(struct h5_vfs *vfs, struct h5_node *parent, const char *name, int flags,
		  struct h5_vfs_entry *entry, struct h5_handle **handle);
/* -EPERM: the target is absolute, or leads out of the tree. */
int h5_vfs_symlink(struct h5_vfs *vfs, const char *target, struct h5_node *parent, const char *name,
		   struct h5_vfs_entry *entry);
/* A further name for the node. -EPERM: it is neither a dataset nor a datatype; -EXDEV: it is in another file.
 */
int h5_vfs_link(struct h5_vfs *vfs, struct h5_node *node, struct h5_node *parent, const char *name,
		struct h5_vfs_entry *entry);
int h5_vfs_unlink(struct h5_vfs *vfs, struct h5_node *parent, const char *name);
int h5_vfs_rmdir(struct h5_vfs *vfs, struct h5_node *parent, const char *name);
/* `flags`: RENAME_NOREPLACE, RENAME_EXCHANGE. -ESTALE: the names must be looked up anew; then the same
 * request does it. The kernel does both. */
int h5_vfs_rename(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_node *new_parent,
		  const char *new_name, unsigned flags);

/* The kernel must forget some names, since it was told of changes that are lost, or since a group is shown by
 * several directories. `tell` is called when there are such names, with locks held. */
void h5_vfs_on_stale_names(struct h5_vfs *vfs, void (*tell)(void *arg), void *arg);
/* The next such name, of the directory of that number. False: there is none. */
bool h5_vfs_take_stale_name(struct h5_vfs *vfs, uint64_t *directory, char name[256]);

/* 0: the object with the header at the address is sound. For struct h5_file_set_options. */
int h5_vfs_check_object(struct h5_file *file, uint64_t address);

/* True: the node is `.h5fs`, or lies below it. There names come and go with attributes, too. */
bool h5_vfs_is_in_view(const struct h5_node *node);
/* True: names in the directory may come and go without a request for them: the directory is in the tree of a
 * view, or several paths lead to it. (On a mount for reading no names come and go.) */
bool h5_vfs_is_passing(struct h5_vfs *vfs, const struct h5_node *directory);

/* False: no object has an extended attribute of that name, such as security.capability, for which the kernel
 * asks often. */
static inline bool h5_vfs_may_have_xattr(const char *name)
{
	return !strncmp(name, "user.", 5) || !strncmp(name, "h5fs.", 5);
}

/* Appends the value of an extended attribute. -ENODATA: there is none; -E2BIG: it has over 64 KiB. */
int h5_vfs_getxattr(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out);
/* Sets the attribute of a name that it may have. `flags`: XATTR_CREATE, XATTR_REPLACE. -EINVAL: the attribute
 * that is there cannot have that value; -EPERM: the name is one that cannot be set. */
int h5_vfs_setxattr(struct h5_vfs *vfs, const struct h5_node *node, const char *name, const char *value,
		    size_t size, int flags);
/* -ENODATA: there is no such attribute. */
int h5_vfs_removexattr(struct h5_vfs *vfs, const struct h5_node *node, const char *name);
/* Appends a JSON document of all that is known of an object: what the view `json` shows of it. -ENODATA: the
 * node is no object. */
int h5_vfs_describe(struct h5_vfs *vfs, const struct h5_node *node, struct h5_buf *out);
/* Appends the names, each with its NUL. On failure, too: those that could be read. */
int h5_vfs_listxattr(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out);

#endif

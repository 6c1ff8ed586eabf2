/* The file tree that a mount shows: nodes, directories, contents and extended attributes.
 *
 * This is the contract of MAPPING as an interface without FUSE: src/fuse turns each request into one of
 * these calls. All of them may run in several threads at once. Errors are negative errnos as the user sees
 * them. */
#ifndef H5_VFS_VFS_H
#define H5_VFS_VFS_H

#include "base/buf.h"
#include "store/file_set.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

struct h5_vfs;
struct h5_node;	  /* an inode that the kernel knows; referenced */
struct h5_dir;	  /* an open directory */
struct h5_handle; /* an open file */

struct h5_vfs_options {
	const char
		*subdir; /* path of the group that is the root of the tree; NULL: the root group. Borrowed */
	uid_t uid;
	gid_t gid;
	mode_t fmask, dmask;	/* bits taken out of the modes of files and directories */
	bool order_by_creation; /* listings in creation order where the group tracks it */
	unsigned max_work;	/* seconds; see h5_vfs_work_limit(). 0: any */
	bool raw_attributes;	/* user.NAME is the stored bytes instead of text */
	/* writing */
	bool writable;	      /* the mounted file was opened for writing */
	bool external_write;  /* external raw files may be written */
	bool commit_at_close; /* sync=close: the close of a file that was written commits; else only fsync */
	size_t gather;	      /* bytes of chunks that small writes may gather in, of all datasets together */
	const char *file;     /* name of the mounted file, for the log; borrowed. NULL: not told */
	int file_fd;	      /* a descriptor in the file system that holds the file, for statfs; borrowed */
	void (*waits)(void);  /* called by a thread that has to wait for another one's change; NULL: none */
	void (*log)(const char *format, ...)
		__attribute__((format(printf, 1, 2))); /* for what no reply can tell */
};

/* The set is borrowed and must outlive the vfs. -EUCLEAN, ...: the root group cannot be opened. */
int h5_vfs_open(struct h5_file_set *set, const struct h5_vfs_options *options, struct h5_vfs **vfs);
/* Frees all nodes and closes what is open, whoever holds references. NULL is fine. */
void h5_vfs_close(struct h5_vfs *vfs);

/* To be called before a request is served on a file that others may write: forgets what is cached of files
 * whose size or mtime changed. */
void h5_vfs_refresh(struct h5_vfs *vfs);

/* Milliseconds that a request may work: a few bytes of a file can ask for hours, but bytes that are read, and
 * understood, take time in proportion to their number. 0: any. */
uint64_t h5_vfs_work_limit(struct h5_vfs *vfs);

/* Borrowed; lives as long as the vfs. */
struct h5_node *h5_vfs_root(struct h5_vfs *vfs);

/* What lookup and readdirplus answer: *st without work on contents; *size_known false: st_size must be asked
 * for with h5_vfs_getattr(). *node is referenced: h5_vfs_forget(). */
struct h5_vfs_entry {
	struct h5_node *node;
	struct stat st;
	bool size_known;
};

int h5_vfs_lookup(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry);

/* The number of a node, which leads to it also when it was forgotten meanwhile; with its generation it stands
 * for nothing else as long as the vfs lives, nor in another mount. The root has H5_ROOT_ID and generation 0.
 */
enum { H5_ROOT_ID = 1 };
uint64_t h5_vfs_id(const struct h5_node *node);
uint32_t h5_vfs_generation(const struct h5_node *node);
/* The node of that number, borrowed; NULL: it was forgotten. */
struct h5_node *h5_vfs_node(struct h5_vfs *vfs, uint64_t id);
/* Lookups by number: of the node itself, and of the directory above. -ESTALE: it leads nowhere, or too many
 * others were forgotten since. */
int h5_vfs_lookup_id(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry);
int h5_vfs_lookup_parent(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry);
/* Gives n references back. */
void h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t n);

/* Appends a path of the node's object in the mount. -ENOENT: none is known; -EINTR, -EFBIG: finding it takes
 * too long. The first look-up walks over all groups. */
int h5_vfs_find_path(struct h5_vfs *vfs, const struct h5_node *node, struct h5_buf *path);
int h5_vfs_getattr(struct h5_vfs *vfs, struct h5_node *node, struct stat *st);
/* The target, borrowed as long as the node is referenced; -EINVAL: no symlink. */
int h5_vfs_readlink(struct h5_node *node, const char **target);
/* Appends what has been done since the mount, as a JSON object: the xattr h5fs.stats of the root. */
int h5_vfs_statistics(struct h5_vfs *vfs, struct h5_buf *out);
int h5_vfs_statfs(struct h5_vfs *vfs, struct statvfs *st);

/* A directory's listing is read at once when it is opened; entry i of it is resolved when asked for. */
int h5_vfs_opendir(struct h5_vfs *vfs, struct h5_node *node, struct h5_dir **dir);
void h5_vfs_closedir(struct h5_dir *dir);
size_t h5_vfs_dir_count(const struct h5_dir *dir);
/* Inode numbers of `.` and `..`; the root is its own parent. */
ino_t h5_vfs_dir_self(const struct h5_dir *dir);
ino_t h5_vfs_dir_parent(const struct h5_dir *dir);
/* What a reader shall hear behind the last entry: 0, or why there may have been more. */
int h5_vfs_dir_error(const struct h5_dir *dir);
/* File name of entry i; borrowed. */
const char *h5_vfs_dir_name(const struct h5_dir *dir, size_t i);
/* At most `count` of the entries from `first` on, which are there: *got of them, at least one, with all that
 * h5_vfs_lookup() gives; without `plus` only inode number and type, and no node. Of one that could not be
 * looked at because the device failed, or descriptors ran out, only the name is known: neither node nor
 * inode number, type 0. */
int h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus, struct h5_vfs_entry *entries,
		    size_t *got);

/* `flags`: the access mode and O_TRUNC of open(2). -EROFS: a mount for reading; -EPERM: a file that can't be
 * written, or can't be truncated. */
int h5_vfs_open_file(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle);
/* The kernel can map files shared also if it reads them directly. To be called before any file is opened. */
void h5_vfs_set_maps_direct(struct h5_vfs *vfs);
/* True: the kernel must not serve reads and writes through this handle from pages that it keeps. */
bool h5_vfs_is_direct(const struct h5_handle *handle);
/* An incomplete row vanishes, with a line in the log. */
void h5_vfs_close_file(struct h5_handle *handle);
/* Up to n bytes at the offset; *got is less only at the end. */
int h5_vfs_read(struct h5_handle *handle, uint64_t offset, void *buf, size_t n, size_t *got);

/* As lseek(2) with SEEK_HOLE (`hole`) or SEEK_DATA. */
int h5_vfs_seek(struct h5_handle *handle, uint64_t offset, bool hole, uint64_t *found);

/* ---- writing: MAPPING section 6 ---- */

enum h5_write_where {
	H5_WRITE_AT,	 /* at the offset */
	H5_WRITE_APPEND, /* at the end, wherever that is now */
	H5_WRITE_INSIDE, /* at the offset, without what lies beyond the end: pages that were mapped */
};

/* Where a file has grown, pages that the kernel keeps have zeros behind its old end. They must be dropped
 * before the kernel knows of the new size, so the old one is told meanwhile:
 *
 *   H5_NOT_STALE	there are none
 *   other values	pages from this offset on are to be dropped, then h5_vfs_tell_size() to be called
 *
 * It is not asked for if dropping them would wait for the very request: the kernel holds the lock of the page
 * while it writes through a handle that is not direct; and while a file is truncated, it writes no dirty
 * page.
 */
#define H5_NOT_STALE UINT64_MAX

/* *written may be less than n: what fits. -EFBIG: nothing fits; -EINVAL: it would begin a row while another
 * one is incomplete. *stale: see above. */
int h5_vfs_write(struct h5_handle *handle, uint64_t offset, const void *buf, size_t n,
		 enum h5_write_where where, size_t *written, uint64_t *stale);
/* A close of one of the handle's descriptors: commits (sync=close). -EINVAL: a row is incomplete; it stays.
 */
int h5_vfs_flush(struct h5_handle *handle);
int h5_vfs_fsync(struct h5_handle *handle);
/* `handle`: through which; NULL: by name. -EINVAL: no whole rows; -EPERM: the dataset keeps its size. *stale:
 * see above. */
int h5_vfs_truncate(struct h5_vfs *vfs, struct h5_node *node, struct h5_handle *handle, uint64_t size,
		    uint64_t *stale);
/* The largest size that the kernel may be told of a file now. */
uint64_t h5_vfs_size_limit(struct h5_vfs *vfs, const struct h5_node *node);
/* The stale pages are dropped. */
void h5_vfs_tell_size(struct h5_vfs *vfs, struct h5_node *node);
/* Commits what was written to any file: at the end, and every few seconds. */
int h5_vfs_commit(struct h5_vfs *vfs);

/* Whether an object, by the address of its header, is sound: for struct h5_file_set_options. */
int h5_vfs_check_object(struct h5_file *file, uint64_t address);

/* The value of an extended attribute. -ENODATA: none of that name; -E2BIG: over 64 KiB. */
int h5_vfs_getxattr(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out);
/* The names, each with its NUL; also where it fails: those that could be read. */
int h5_vfs_listxattr(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out);

#endif

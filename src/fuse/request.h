/* The begin and the end of all requests.
 *
 * Those that change something, and some others, are the same for the mount of a file and of a folder: on the
 * latter a request enters the HDF5 file that it is about, which stays open until the request ends. */
#ifndef H5_FUSE_REQUEST_H
#define H5_FUSE_REQUEST_H

#include "base/error.h"
#include "base/interrupt.h"
#include "base/wait.h"
#include "fuse/io_uring.h"
#include "fuse/loop.h"
#include "fuse/operations.h"
#include "tree/tree.h"
#include "vfs/vfs.h"

#include <assert.h>

/* The h5_interrupt_limit of a request. */
uint64_t h5_request_limit(void *request);

/* Notes that the mount is in use. */
static inline void h5_request_touch(struct h5_mount *mount)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	atomic_store_explicit(&mount->last_request, now.tv_sec, memory_order_relaxed);
}

/* To be called first by a request that closes something: nobody waits for it, so nothing ends its work. */
static inline void h5_request_begin_release(fuse_req_t req)
{
	h5_io_uring_keep_thread(fuse_req_userdata(req));
	h5_interrupt_begin(NULL, NULL);
}

/* To be called first. Clears the thread's error, and makes its work end when nobody waits for it any more, or
 * at the limit of work. */
static inline struct h5_mount *h5_request_begin(fuse_req_t req)
{
	struct h5_mount *m = fuse_req_userdata(req);

	h5_io_uring_keep_thread(m);
	h5_request_touch(m);
	h5_error_clear();
	h5_interrupt_begin(h5_is_unwanted, req);
	h5_interrupt_bound(h5_request_limit);
	if (!m->locked) {
		h5_wait_begins(); /* the file's state may come from a server */
		h5_vfs_refresh(m->vfs);
	}
	return m;
}

/* ---- requests to the mount of a file or of a folder ---- */

struct h5_request {
	fuse_req_t req;
	fuse_ino_t ino;
	struct h5_mount *m;
	struct h5_tree_node *place; /* of a folder; NULL: a file is mounted */
	/* The HDF5 file, and what the node is in it; vfs NULL: the request has not entered one. */
	struct h5_tree_inside in;
};

/* To be called first. *r lasts as long as the request, which ends by one of the replies below. If a file is
 * mounted, the request has entered that. */
void h5_request_start(struct h5_request *r, fuse_req_t req, fuse_ino_t ino);
/* The same of an open file, which need not be looked up. *handle: NULL if it is not in an HDF5 file, or if
 * the kernel opens no files. */
void h5_request_start_open(struct h5_request *r, fuse_req_t req, fuse_ino_t ino,
			   const struct fuse_file_info *fi, struct h5_handle **handle);
/* Of a folder: enters the HDF5 file that the node is in. -EROFS: it is in none. */
int h5_request_enter(struct h5_request *r);
/* h5_request_start() and h5_request_enter(), for requests that change something. */
int h5_request_change(struct h5_request *r, fuse_req_t req, fuse_ino_t ino);
/* Another node of a request that has entered. -EXDEV: it is in another file. */
int h5_request_enter_too(struct h5_request *r, fuse_ino_t ino, struct h5_node **node);
/* What the kernel is told about a name of the directory of the request. Takes over the entry's node, also on
 * failure. */
int h5_request_name(struct h5_request *r, const char *name, struct h5_vfs_entry *entry,
		    struct fuse_entry_param *e);

/* Replies. Each ends the request: */

/* Success, or why it has failed, which is logged if need be. */
void h5_request_end(struct h5_request *r, const char *what, int rc);
/* A name of the directory. */
void h5_request_end_with_name(struct h5_request *r, const char *what, int rc, const char *name,
			      struct h5_vfs_entry *entry);
/* For a reply of another kind, after it. */
void h5_request_leave(const struct h5_request *r);
/* The kernel did not take the reply with the name. Before the end. */
void h5_request_unname(struct h5_request *r, const struct fuse_entry_param *e);

/* ---- requests to the mount of a file ---- */

/* Logs the failure if need be, and replies with the error. */
void h5_request_fail(fuse_req_t req, const char *what, int code);
/* The same for a request about one object, whose path is logged. */
void h5_request_fail_on(fuse_req_t req, fuse_ino_t ino, const char *what, int code);
/* Replies with a value or a list. As for getxattr(2), size 0 asks for its length. */
void h5_request_reply_xattr(fuse_req_t req, const struct h5_buf *value, size_t size);

/* The node of a request. The kernel has not forgotten it, unless it looks up `.`. */
static inline struct h5_node *h5_request_node(const struct h5_mount *m, fuse_ino_t ino)
{
	struct h5_node *node = h5_vfs_node(m->vfs, ino);

	assert(node);
	return node;
}

/* What the kernel is told about a name. */
struct fuse_entry_param h5_request_entry(const struct h5_mount *m, struct h5_vfs_entry *entry);
/* Seconds that the kernel may keep attributes of the node: 0 for files that may be written, since it does not
 * know their size and time, and for directories that may change without its knowing. */
double h5_request_attr_timeout(const struct h5_mount *m, const struct h5_node *node, const struct stat *st);
/* Seconds that the kernel may keep that a name is not in the directory, and a listing. */
static inline double h5_request_names_timeout(const struct h5_mount *m, const struct h5_node *directory)
{
	return h5_vfs_is_passing(m->vfs, directory) ? 0 : m->timeout;
}

/* The largest size of the file that the kernel may be told now. */
static inline uint64_t h5_request_size_limit(const struct h5_mount *m, struct h5_vfs *vfs,
					     const struct h5_node *node)
{
	return m->writable ? h5_vfs_size_limit(vfs, node) : UINT64_MAX;
}

/* Makes a file not look larger than the limit. */
void h5_request_limit_size(struct stat *st, uint64_t limit);

/* n bytes for a reply, valid until the thread calls this again or ends; NULL: out of memory. Each thread
 * keeps its buffer, since new memory costs as much as copying into it. */
void *h5_request_buffer(size_t n);

#endif

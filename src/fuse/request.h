/* The begin and the end of all requests. */
#ifndef H5_FUSE_REQUEST_H
#define H5_FUSE_REQUEST_H

#include "base/error.h"
#include "base/interrupt.h"
#include "base/wait.h"
#include "fuse/loop.h"
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

/* To be called first. Clears the thread's error, and makes its work end when nobody waits for it any more, or
 * at the limit of work. */
static inline struct h5_mount *h5_request_begin(fuse_req_t req)
{
	struct h5_mount *m = fuse_req_userdata(req);

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

/* Logs the failure if need be, and replies with the error. */
void h5_request_fail(fuse_req_t req, const char *what, int code);
/* The same for a request about one object, whose path is logged. */
void h5_request_fail_on(fuse_req_t req, fuse_ino_t ino, const char *what, int code);
/* Replies that a request about an object has succeeded, or why not. */
void h5_request_reply_done(fuse_req_t req, fuse_ino_t ino, const char *what, int rc);
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
static inline uint64_t h5_request_size_limit(const struct h5_mount *m, const struct h5_node *node)
{
	return m->writable ? h5_vfs_size_limit(m->vfs, node) : UINT64_MAX;
}

/* Makes a file not look larger than the limit. */
void h5_request_limit_size(struct stat *st, uint64_t limit);

/* n bytes for a reply, valid until the thread calls this again or ends; NULL: out of memory. Each thread
 * keeps its buffer, since new memory costs as much as copying into it. */
void *h5_request_buffer(size_t n);

#endif

/* What the answers to all requests begin and end with. */
#ifndef H5_FUSE_REQUEST_H
#define H5_FUSE_REQUEST_H

#include "fuse/operations.h"

/* To be called first: the thread's error is cleared, and its work ends when nobody waits for it any more, or
 * at the limit of work. */
struct h5_mount *h5_request_begin(fuse_req_t req);
/* The one place that turns the engine's errors into the kernel's. */
void h5_request_fail(fuse_req_t req, const char *what, int code);
/* The same, if the request is about one object: the log names its path. */
void h5_request_fail_on(fuse_req_t req, fuse_ino_t ino, const char *what, int code);

/* The node that a request is about. The kernel has not forgotten it, unless it looks for `.`. */
struct h5_node *h5_request_node(const struct h5_mount *m, fuse_ino_t ino);

/* What the kernel is told of a name. */
struct fuse_entry_param h5_request_entry(const struct h5_mount *m, struct h5_vfs_entry *entry);
/* Seconds that it may keep attributes: of files that may be written it does not know size and time best. */
double h5_request_attr_timeout(const struct h5_mount *m, const struct stat *st);
/* A file is not shown larger than the limit. */
void h5_request_limit_size(struct stat *st, uint64_t limit);

#endif

/* Requests to a mount for writing of a small file, without FUSE: so some come that a kernel keeps away. Each
 * is a line of a table. */
#ifndef H5_TESTS_REQUEST_SCENE_H
#define H5_TESTS_REQUEST_SCENE_H

#include "scratch.h"
#include "vfs_scene.h"

#include <string.h>

enum { NOREPLACE = 1, EXCHANGE = 2 };

/* What all requests go to. */
extern struct vfs_scene scene;
/* Of the datasets data (whose size can change) and fixed; and an array in a file of numpy with three of
 * these. */
extern const int32_t request_elements[6];
extern char request_npy[128 + 12];

/* Around each test: makes the file, and one beside it to which two links lead, and mounts it. */
void request_begin(void);
void request_end(void);
/* Mounts the file; `subdir` NULL: all of it. */
void request_open(const char *path, bool writable, const char *subdir);
void request_close(void);
/* Mounts the file that is open with a group as the root. */
int request_open_group(const char *subdir);

struct request {
	const char *what; /* mkdir, mknod, lookup, symlink, link, create, unlink, rmdir, rename; of what is
			     there: set, remove, open, truncate, readlink, opendir */
	const char *path;
	const char *second; /* the other path, the target or the attribute */
	const char *value;  /* of an attribute; or what is written to the file that was made or opened */
	unsigned flags;
	unsigned size; /* bytes of the value; 0: up to its NUL */
	int error;     /* that is expected */
};

int request_ask(const struct request *r);
#define ASK(...)                                                                                             \
	do {                                                                                                 \
		const struct request request_ = {__VA_ARGS__, .error = 0};                                   \
		int rc_ = request_ask(&request_);                                                            \
		ck_assert_msg(!rc_, "%s %s: %s: %s", request_.what, request_.path, strerror(-rc_),           \
			      h5_error_last()->text);                                                        \
	} while (0)

/* Which allocation, or which call to read, of the next request fails, in the request alone. */
extern struct request_fault {
	unsigned long n; /* 0: none */
	bool reads;
	bool fired; /* it has failed */
} request_fault;
/* Calls that write find no space when this is armed. */
extern struct fault_io request_io;
void request_fault_begin(void);
void request_fault_end(void);

/* Finds the node of a path. The caller forgets it with request_forget(). */
struct h5_node *request_find(const char *path);
void request_forget(struct h5_node *node);
uint64_t request_address(const char *path);
uint64_t request_size(const char *path);
/* Of all that the mount shows. */
uint64_t request_digest(void);
/* Writes all of a file. */
void request_write(const char *path, int flags, const void *data, size_t n);
void request_check_bytes(const char *path, const void *data, size_t n);

#endif

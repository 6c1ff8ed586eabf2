#include "fuse/request.h"

#include "base/error.h"
#include "fuse/log.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static_assert(H5_ROOT_ID == FUSE_ROOT_ID, "the root is the root");

#define AT_ONCE 0.001 /* seconds; the kernel rounds them up */

uint64_t h5_request_limit(void *request)
{
	const struct h5_mount *m = fuse_req_userdata(request);

	return h5_vfs_work_limit(m->vfs);
}

void h5_request_fail(fuse_req_t req, const char *what, int code)
{
	h5_log_failure(what, code, NULL);
	fuse_reply_err(req, -code);
}

void h5_request_fail_on(fuse_req_t req, fuse_ino_t ino, const char *what, int code)
{
	struct h5_mount *m = fuse_req_userdata(req);
	struct h5_error cause = *h5_error_last();
	struct h5_buf path;

	h5_buf_init(&path, PATH_MAX);
	if (!h5_log_wants(code) || h5_vfs_find_path(m->vfs, h5_request_node(m, ino), &path))
		path.size = 0;
	h5_buf_byte(&path, '\0');
	(void)h5_fail(cause.code, cause.address, "%s", cause.text);
	h5_log_failure(what, code, path.size > 1 ? path.data : NULL);
	h5_buf_release(&path);
	fuse_reply_err(req, -code);
}

void h5_request_reply_done(fuse_req_t req, fuse_ino_t ino, const char *what, int rc)
{
	if (rc)
		h5_request_fail_on(req, ino, what, rc);
	else
		fuse_reply_err(req, 0);
}

void h5_request_reply_xattr(fuse_req_t req, const struct h5_buf *value, size_t size)
{
	if (!size)
		fuse_reply_xattr(req, value->size);
	else if (value->size > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, value->data, value->size);
}

double h5_request_attr_timeout(const struct h5_mount *m, const struct h5_node *node, const struct stat *st)
{
	if (!m->writable || m->timeout <= 0)
		return m->timeout;
	return S_ISREG(st->st_mode) || (S_ISDIR(st->st_mode) && h5_vfs_is_passing(m->vfs, node)) ? 0
												 : m->timeout;
}

void h5_request_limit_size(struct stat *st, uint64_t limit)
{
	if (S_ISREG(st->st_mode) && (uint64_t)st->st_size > limit)
		st->st_size = (off_t)limit;
}

/* Programs that make a file open it and look at it at once. */
static double entry_attr_timeout(const struct h5_mount *m, const struct h5_vfs_entry *entry)
{
	if (entry->made && m->timeout > 0)
		return AT_ONCE;
	return entry->size_known ? h5_request_attr_timeout(m, entry->node, &entry->st) : 0;
}

struct fuse_entry_param h5_request_entry(const struct h5_mount *m, struct h5_vfs_entry *entry)
{
	h5_request_limit_size(&entry->st, h5_request_size_limit(m, entry->node));
	return (struct fuse_entry_param){.ino = h5_vfs_id(entry->node),
					 .generation = h5_vfs_generation(entry->node),
					 .attr = entry->st,
					 .attr_timeout = entry_attr_timeout(m, entry),
					 .entry_timeout = entry->passing ? 0 : m->timeout};
}

/* ---- replies ---- */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* frees the buffer with its thread */
static _Thread_local void *buffer;
static _Thread_local size_t buffer_size;

static void make_key(void)
{
	if (pthread_key_create(&key, free))
		abort(); /* all of the more than a thousand keys are taken */
}

void *h5_request_buffer(size_t n)
{
	if (n <= buffer_size)
		return buffer;
	pthread_once(&key_once, make_key);
	free(buffer);
	buffer = malloc(n);
	buffer_size = buffer ? n : 0;
	pthread_setspecific(key, buffer);
	return buffer;
}

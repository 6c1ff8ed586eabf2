#include "fuse/request.h"

#include "base/checked.h"
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
	h5_log_failure(what, code, !path.err && path.size > 1 ? path.data : NULL);
	h5_buf_release(&path);
	fuse_reply_err(req, -code);
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
	if (S_ISREG(st->st_mode))
		st->st_size = (off_t)h5_min((uint64_t)st->st_size, limit);
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
	h5_request_limit_size(&entry->st, h5_request_size_limit(m, m->vfs, entry->node));
	return (struct fuse_entry_param){.ino = h5_vfs_id(entry->node),
					 .generation = h5_vfs_generation(entry->node),
					 .attr = entry->st,
					 .attr_timeout = entry_attr_timeout(m, entry),
					 .entry_timeout = entry->passing ? 0 : m->timeout};
}

/* ---- requests to the mount of a file or of a folder ---- */

static struct h5_tree_node *place_of(const struct h5_mount *m, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? h5_tree_root(m->tree) : (struct h5_tree_node *)(uintptr_t)ino;
}

static bool is_unwanted(void *arg)
{
	return h5_is_unwanted(((const struct h5_request *)arg)->req);
}

static uint64_t work_limit(void *arg)
{
	const struct h5_request *r = arg;

	return h5_tree_work_limit(r->m->tree, r->place);
}

/* All but the node in a file that is mounted. */
static void begin(struct h5_request *r, fuse_req_t req, fuse_ino_t ino)
{
	struct h5_mount *m = fuse_req_userdata(req);

	*r = (struct h5_request){.req = req, .ino = ino, .m = m, .in.vfs = m->vfs};
	if (!m->tree) {
		h5_request_begin(req);
		return;
	}
	h5_io_uring_keep_thread(m);
	r->place = place_of(m, ino);
	h5_request_touch(m);
	h5_error_clear();
	h5_interrupt_begin(is_unwanted, r);
	h5_interrupt_bound(work_limit);
}

void h5_request_start(struct h5_request *r, fuse_req_t req, fuse_ino_t ino)
{
	begin(r, req, ino);
	if (!r->place)
		r->in.node = h5_request_node(r->m, ino);
}

void h5_request_start_open(struct h5_request *r, fuse_req_t req, fuse_ino_t ino,
			   const struct fuse_file_info *fi, struct h5_handle **handle)
{
	begin(r, req, ino);
	*handle = r->m->tree ? h5_tree_handle_inside((const struct h5_tree_handle *)(uintptr_t)fi->fh)
			     : (struct h5_handle *)(uintptr_t)fi->fh;
	if (!r->place && *handle)
		r->in.node = h5_vfs_handle_node(*handle);
}

int h5_request_enter(struct h5_request *r)
{
	return r->place ? h5_tree_enter(r->m->tree, r->place, &r->in) : 0;
}

int h5_request_change(struct h5_request *r, fuse_req_t req, fuse_ino_t ino)
{
	h5_request_start(r, req, ino);
	return h5_request_enter(r);
}

int h5_request_enter_too(struct h5_request *r, fuse_ino_t ino, struct h5_node **node)
{
	if (r->place)
		return h5_tree_enter_too(r->m->tree, place_of(r->m, ino), &r->in, node);
	*node = h5_request_node(r->m, ino);
	return 0;
}

void h5_request_leave(const struct h5_request *r)
{
	if (r->in.file)
		h5_tree_leave(r->m->tree, &r->in);
}

static void fail_in_folder(struct h5_request *r, const char *what, int code)
{
	struct h5_buf path;

	h5_buf_init(&path, PATH_MAX);
	if (h5_log_wants(code))
		h5_tree_path(r->m->tree, r->place, &path);
	h5_buf_byte(&path, 0);
	h5_log_failure(what, code, path.err ? NULL : path.data);
	h5_buf_release(&path);
	fuse_reply_err(r->req, -code);
}

void h5_request_end(struct h5_request *r, const char *what, int rc)
{
	if (!rc)
		fuse_reply_err(r->req, 0);
	else if (r->place)
		fail_in_folder(r, what, rc);
	else
		h5_request_fail_on(r->req, r->ino, what, rc);
	h5_request_leave(r);
}

int h5_request_name(struct h5_request *r, const char *name, struct h5_vfs_entry *entry,
		    struct fuse_entry_param *e)
{
	struct h5_tree_entry shown;
	int rc;

	if (!r->place) {
		*e = h5_request_entry(r->m, entry);
		return 0;
	}
	h5_request_limit_size(&entry->st, h5_request_size_limit(r->m, r->in.vfs, entry->node));
	rc = h5_tree_entry(r->m->tree, r->place, name, entry, &shown);
	if (!rc)
		*e = (struct fuse_entry_param){
			.ino = (uintptr_t)shown.node, .generation = shown.generation, .attr = shown.st};
	return rc;
}

void h5_request_unname(struct h5_request *r, const struct fuse_entry_param *e)
{
	if (r->place)
		h5_tree_forget(r->m->tree, place_of(r->m, e->ino), 1);
	else
		h5_vfs_forget(r->m->vfs, h5_request_node(r->m, e->ino), 1);
}

void h5_request_end_with_name(struct h5_request *r, const char *what, int rc, const char *name,
			      struct h5_vfs_entry *entry)
{
	struct fuse_entry_param e;

	if (!rc)
		rc = h5_request_name(r, name, entry, &e);
	if (rc) {
		h5_request_end(r, what, rc);
		return;
	}
	if (fuse_reply_entry(r->req, &e))
		h5_request_unname(r, &e);
	h5_request_leave(r);
}

/* ---- buffers for replies ---- */

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

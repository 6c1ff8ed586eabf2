#include "fuse/tree_operations.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "fuse/log.h"
#include "fuse/readahead.h"
#include "fuse/request.h"
#include "tree/tree.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

/* Seconds that the kernel may keep names and attributes: other programs change the folder when they like. */
#define KEEP 0.0

/* ---- begin and end of a request ---- */

struct request {
	fuse_req_t req;
	struct h5_mount *m;
	struct h5_tree_node *node;
};

static struct h5_tree_node *node_of(const struct h5_mount *m, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? h5_tree_root(m->tree) : (struct h5_tree_node *)(uintptr_t)ino;
}

static bool is_unwanted(void *arg)
{
	return h5_is_unwanted(((const struct request *)arg)->req);
}

static uint64_t work_limit(void *arg)
{
	const struct request *r = arg;

	return h5_tree_work_limit(r->m->tree, r->node);
}

/* To be called first. *r lasts as long as the request. */
static struct h5_tree *begin(struct request *r, fuse_req_t req, fuse_ino_t ino)
{
	struct h5_mount *m = fuse_req_userdata(req);

	*r = (struct request){.req = req, .m = m, .node = node_of(m, ino)};
	h5_request_touch(m);
	h5_error_clear();
	h5_interrupt_begin(is_unwanted, r);
	h5_interrupt_bound(work_limit);
	return m->tree;
}

static void fail(const struct request *r, const char *what, int code)
{
	struct h5_buf path;

	h5_buf_init(&path, PATH_MAX);
	if (h5_log_wants(code))
		h5_tree_path(r->node, &path);
	h5_buf_byte(&path, 0);
	h5_log_failure(what, code, path.err ? NULL : path.data);
	h5_buf_release(&path);
	fuse_reply_err(r->req, -code);
}

/* ---- names and attributes ---- */

static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	(void)userdata;
	/* A changed time tells the kernel that its pages of a file are stale. */
	connection->want |= connection->capable & FUSE_CAP_AUTO_INVAL_DATA;
	/* A listing with attributes would open files, and the kernel would not keep what it says. */
	connection->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct request r;
	struct h5_tree *tree = begin(&r, req, parent);
	struct fuse_entry_param e = {.attr_timeout = KEEP, .entry_timeout = KEEP};
	struct h5_tree_entry entry;
	int rc = h5_tree_lookup(tree, r.node, name, &entry);

	if (rc) {
		fail(&r, "lookup", rc);
		return;
	}
	e.ino = (uintptr_t)entry.node;
	e.generation = entry.generation;
	e.attr = entry.st;
	if (fuse_reply_entry(req, &e))
		h5_tree_forget(tree, entry.node, 1);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	const struct h5_mount *m = fuse_req_userdata(req);

	h5_tree_forget(m->tree, node_of(m, ino), nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	const struct h5_mount *m = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++)
		h5_tree_forget(m->tree, node_of(m, forgets[i].ino), forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct request r;
	struct h5_tree *tree = begin(&r, req, ino);
	struct stat st;
	int rc = h5_tree_getattr(tree, r.node, &st);

	(void)fi;
	if (rc)
		fail(&r, "getattr", rc);
	else
		fuse_reply_attr(req, &st, KEEP);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct request r;
	struct h5_tree *tree = begin(&r, req, ino);
	struct h5_buf target;
	int rc;

	h5_buf_init(&target, SIZE_MAX);
	rc = h5_tree_readlink(tree, r.node, &target);
	if (rc)
		fail(&r, "readlink", rc);
	else
		fuse_reply_readlink(req, target.data);
	h5_buf_release(&target);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct request r;
	struct h5_tree *tree = begin(&r, req, ino);
	struct statvfs st;
	int rc = h5_tree_statfs(tree, &st);

	if (rc)
		fail(&r, "statfs", rc);
	else
		fuse_reply_statfs(req, &st);
}

/* ---- extended attributes ---- */

static void reply_xattr(const struct request *r, const char *what, int rc, const struct h5_buf *value,
			size_t size)
{
	if (rc)
		fail(r, what, rc);
	else
		h5_request_reply_xattr(r->req, value, size);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct request r;
	struct h5_tree *tree = begin(&r, req, ino);
	struct h5_buf value;
	int rc;

	h5_buf_init(&value, SIZE_MAX);
	rc = h5_vfs_may_have_xattr(name) ? h5_tree_getxattr(tree, r.node, name, &value) : -ENODATA;
	reply_xattr(&r, "getxattr", rc, &value, size);
	h5_buf_release(&value);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct request r;
	struct h5_tree *tree = begin(&r, req, ino);
	struct h5_buf names;
	int rc;

	h5_buf_init(&names, SIZE_MAX);
	rc = h5_tree_listxattr(tree, r.node, &names);
	/* Attributes that are damaged are left out. */
	if (rc == -EUCLEAN && names.size) {
		h5_log_failure("listxattr", rc, NULL);
		rc = 0;
	}
	reply_xattr(&r, "listxattr", rc, &names, size);
	h5_buf_release(&names);
}

/* ---- directories ---- */

static struct h5_tree_dir *dir_of(const struct fuse_file_info *fi)
{
	return (struct h5_tree_dir *)(uintptr_t)fi->fh;
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct request r;
	struct h5_tree *tree = begin(&r, req, ino);
	struct h5_tree_dir *dir;
	int rc = h5_tree_opendir(tree, r.node, &dir);

	if (rc) {
		fail(&r, "opendir", rc);
		return;
	}
	fi->fh = (uintptr_t)dir;
	if (fuse_reply_open(req, fi))
		h5_tree_closedir(dir);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	h5_interrupt_begin(NULL, NULL); /* nobody waits for it */
	h5_tree_closedir(dir_of(fi));
	fuse_reply_err(req, 0);
}

/* A reply that fills with entries. */
struct page {
	const struct request *r;
	char *data;
	size_t size, used;
};

/* False: the page is full. */
static bool add(struct page *p, const struct h5_tree_name *name)
{
	struct stat st = {.st_ino = name->ino, .st_mode = name->type};
	size_t n = fuse_add_direntry(p->r->req, p->data + p->used, p->size - p->used, name->name, &st,
				     (off_t)name->next + 2);

	if (n > p->size - p->used)
		return false;
	p->used += n;
	return true;
}

/* The offset after `.` is 1, after `..` 2, then the position + 2. Nobody looks at the numbers
 * of these two. */
static bool add_dots(struct page *p, off_t offset)
{
	static const char *const names[] = {".", ".."};

	for (; offset < 2; offset++) {
		const struct h5_tree_name dot = {
			.name = names[offset], .ino = 1, .type = S_IFDIR, .next = (uint64_t)(offset - 1)};

		if (!add(p, &dot))
			return false;
	}
	return true;
}

static int fill(struct page *p, struct h5_tree_dir *dir, off_t offset)
{
	uint64_t position = offset > 2 ? (uint64_t)offset - 2 : 0;
	struct h5_tree_name names[H5_TREE_NAMES];
	size_t got, taken;
	int rc = 0;

	if (!add_dots(p, offset))
		return 0;
	do {
		rc = h5_tree_readdir(dir, position, names, &got);
		for (taken = 0; !rc && taken < got && add(p, &names[taken]); taken++)
			position = names[taken].next;
	} while (!rc && got && taken == got);
	/* If there are entries before the one that failed, these are the reply. */
	return p->used ? 0 : rc;
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct request r;
	struct page p = {.r = &r, .data = h5_request_buffer(size), .size = size};
	int rc;

	begin(&r, req, ino);
	rc = p.data ? fill(&p, dir_of(fi), offset) : -ENOMEM;
	if (rc)
		fail(&r, "readdir", rc);
	else
		fuse_reply_buf(req, p.data, p.used);
}

/* ---- files ---- */

static struct h5_tree_handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct h5_tree_handle *)(uintptr_t)fi->fh;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct request r;
	struct h5_tree *tree = begin(&r, req, ino);
	struct h5_tree_handle *handle;
	int rc;

	if (!atomic_flag_test_and_set(&r.m->opened))
		h5_readahead_raise(r.m->readahead);
	rc = h5_tree_open_file(tree, r.node, &handle);
	if (rc) {
		fail(&r, "open", rc);
		return;
	}
	fi->fh = (uintptr_t)handle;
	fi->noflush = true;
	if (!fuse_reply_open(req, fi))
		return;
	h5_interrupt_begin(NULL, NULL); /* the request has been answered */
	h5_tree_close_file(handle);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	h5_interrupt_begin(NULL, NULL); /* nobody waits for it */
	h5_tree_close_file(handle_of(fi));
	fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	char *data = h5_request_buffer(size);
	struct request r;
	size_t got = 0;
	int rc;

	begin(&r, req, ino);
	rc = data ? h5_tree_read(handle_of(fi), (uint64_t)offset, data, size, &got) : -ENOMEM;
	if (rc)
		fail(&r, "read", rc);
	else
		fuse_reply_buf(req, data, got);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi)
{
	struct request r;
	uint64_t found;
	int rc;

	begin(&r, req, ino);
	rc = h5_tree_seek(handle_of(fi), (uint64_t)offset, whence == SEEK_HOLE, &found);
	if (rc == -ENXIO)
		fuse_reply_err(req, ENXIO); /* not a failure */
	else if (rc)
		fail(&r, "lseek", rc);
	else
		fuse_reply_lseek(req, (off_t)found);
}

/* The mount is for reading, so the kernel asks for no changes. */
const struct fuse_lowlevel_ops h5_tree_operations = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.readlink = op_readlink,
	.statfs = op_statfs,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
	.open = op_open,
	.read = op_read,
	.lseek = op_lseek,
	.release = op_release,
};

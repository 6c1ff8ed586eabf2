#include "fuse/tree_operations.h"

#include "base/interrupt.h"
#include "fuse/files.h"
#include "fuse/names.h"
#include "fuse/negotiate.h"
#include "fuse/readahead.h"
#include "fuse/request.h"
#include "fuse/xattrs.h"
#include "tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- names and attributes ---- */

static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	h5_negotiate(userdata, connection);
	/* A listing with attributes would open files, and the kernel would not keep what it says. */
	connection->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
}

static int look_up(struct h5_request *r, const char *name, struct fuse_entry_param *e)
{
	struct h5_tree_entry entry;
	struct h5_vfs_entry found;
	int rc;

	if (h5_tree_kind(r->place) == H5_TREE_FILE || h5_tree_kind(r->place) == H5_TREE_INSIDE) {
		rc = h5_request_enter(r);
		if (!rc)
			rc = h5_vfs_lookup(r->in.vfs, r->in.node, name, &found);
		return rc ? rc : h5_request_name(r, name, &found, e);
	}
	rc = h5_tree_lookup(r->m->tree, r->place, name, &entry);
	if (!rc)
		*e = (struct fuse_entry_param){.ino = (uintptr_t)entry.node,
					       .generation = entry.generation,
					       .attr = entry.st,
					       .attr_timeout = h5_tree_keep(r->m->tree, entry.node),
					       .entry_timeout = h5_tree_keep(r->m->tree, entry.node)};
	return rc;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e;
	struct h5_request r;
	int rc;

	h5_request_start(&r, req, parent);
	rc = look_up(&r, name, &e);
	if (rc) {
		h5_request_end(&r, "lookup", rc);
		return;
	}
	if (fuse_reply_entry(req, &e))
		h5_request_unname(&r, &e);
	h5_request_leave(&r);
}

static void forget(const struct h5_mount *m, fuse_ino_t ino, uint64_t n)
{
	if (ino != FUSE_ROOT_ID)
		h5_tree_forget(m->tree, (struct h5_tree_node *)(uintptr_t)ino, n);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	const struct h5_mount *m = fuse_req_userdata(req);

	forget(m, ino, nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	const struct h5_mount *m = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++)
		forget(m, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct h5_request r;
	struct h5_buf target;
	int rc;

	h5_request_start(&r, req, ino);
	h5_buf_init(&target, SIZE_MAX);
	rc = h5_tree_readlink(r.m->tree, r.place, &target);
	if (rc)
		h5_request_end(&r, "readlink", rc);
	else
		fuse_reply_readlink(req, target.data);
	h5_buf_release(&target);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct h5_request r;
	struct statvfs st;
	int rc;

	h5_request_start(&r, req, ino);
	rc = h5_tree_statfs(r.m->tree, &st);
	if (rc)
		h5_request_end(&r, "statfs", rc);
	else
		fuse_reply_statfs(req, &st);
}

/* ---- directories ---- */

static struct h5_tree_dir *dir_of(const struct fuse_file_info *fi)
{
	return (struct h5_tree_dir *)(uintptr_t)fi->fh;
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct h5_request r;
	struct h5_tree_dir *dir;
	int rc;

	h5_request_start(&r, req, ino);
	rc = h5_tree_opendir(r.m->tree, r.place, &dir);
	if (rc) {
		h5_request_end(&r, "opendir", rc);
		return;
	}
	fi->fh = (uintptr_t)dir;
	if (fuse_reply_open(req, fi))
		h5_tree_closedir(dir);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	h5_request_begin_release(req);
	h5_tree_closedir(dir_of(fi));
	fuse_reply_err(req, 0);
}

/* A reply that fills with entries. */
struct page {
	const struct h5_request *r;
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
	struct h5_request r;
	struct page p = {.r = &r, .data = h5_request_buffer(size), .size = size};
	int rc;

	h5_request_start(&r, req, ino);
	rc = p.data ? fill(&p, dir_of(fi), offset) : -ENOMEM;
	if (rc)
		h5_request_end(&r, "readdir", rc);
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
	struct h5_request r;
	struct h5_tree_handle *handle;
	struct h5_handle *inside;
	int rc;

	h5_request_start(&r, req, ino);
	if (!atomic_flag_test_and_set(&r.m->opened))
		h5_readahead_raise(r.m->readahead);
	rc = h5_tree_open_file(r.m->tree, r.place, fi->flags, &handle);
	if (rc) {
		h5_request_end(&r, "open", rc);
		return;
	}
	inside = h5_tree_handle_inside(handle);
	fi->fh = (uintptr_t)handle;
	fi->direct_io = inside && h5_vfs_is_direct(inside);
	fi->noflush = (fi->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY;
	if (!fuse_reply_open(req, fi))
		return;
	h5_interrupt_begin(NULL, NULL); /* the request has been answered */
	h5_tree_close_file(handle);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	h5_request_begin_release(req);
	h5_tree_close_file(handle_of(fi));
	fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	char *data = h5_request_buffer(size);
	struct h5_request r;
	size_t got = 0;
	int rc;

	h5_request_start(&r, req, ino);
	rc = data ? h5_tree_read(handle_of(fi), (uint64_t)offset, data, size, &got) : -ENOMEM;
	if (rc)
		h5_request_end(&r, "read", rc);
	else
		fuse_reply_buf(req, data, got);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi)
{
	struct h5_request r;
	uint64_t found;
	int rc;

	h5_request_start(&r, req, ino);
	rc = h5_tree_seek(handle_of(fi), (uint64_t)offset, whence == SEEK_HOLE, &found);
	if (rc == -ENXIO)
		fuse_reply_err(req, ENXIO); /* not a failure */
	else if (rc)
		h5_request_end(&r, "lseek", rc);
	else
		fuse_reply_lseek(req, (off_t)found);
}

const struct fuse_lowlevel_ops h5_tree_operations = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.readlink = op_readlink,
	.statfs = op_statfs,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
	.open = op_open,
	.read = op_read,
	.lseek = op_lseek,
	.release = op_release,
	H5_FILE_OPERATIONS,
	H5_NAME_OPERATIONS,
	H5_XATTR_OPERATIONS,
};

#include "fuse/operations.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "fuse/buffer.h"
#include "fuse/commit.h"
#include "fuse/invalidate.h"
#include "fuse/log.h"
#include "fuse/loop.h"
#include "fuse/readahead.h"
#include "fuse/refuse.h"
#include "fuse/watch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- frames ---- */

/* Nobody waits for the answer any more: until the request is replied to, `arg` is it. */
static bool is_unwanted(void *arg)
{
	const struct h5_mount *m = fuse_req_userdata(arg);

	h5_serve_others(); /* that it is interrupted comes as a request, too */
	return fuse_req_interrupted(arg) || fuse_session_exited(m->session);
}

static uint64_t work_limit(void *arg)
{
	const struct h5_mount *m = fuse_req_userdata(arg);

	return h5_vfs_work_limit(m->vfs);
}

static struct h5_mount *begin(fuse_req_t req)
{
	struct h5_mount *m = fuse_req_userdata(req);

	h5_watch_request(m);
	h5_error_clear();
	h5_interrupt_begin(is_unwanted, req);
	h5_interrupt_bound(work_limit);
	if (!m->locked)
		h5_vfs_refresh(m->vfs);
	return m;
}

static struct h5_node *node_of(const struct h5_mount *m, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? h5_vfs_root(m->vfs) : (struct h5_node *)(uintptr_t)ino;
}

static fuse_ino_t ino_of(const struct h5_mount *m, struct h5_node *node)
{
	return node == h5_vfs_root(m->vfs) ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)node;
}

static struct h5_handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct h5_handle *)(uintptr_t)fi->fh;
}

/* After whatever may have changed something. */
static void want_commit(const struct h5_mount *m)
{
	if (m->committer)
		h5_committer_want(m->committer);
}

/* The one place that turns the engine's errors into the kernel's. */
static void fail(fuse_req_t req, const char *what, int code)
{
	h5_log_failure(what, code);
	fuse_reply_err(req, -code);
}

/* Files that may be written have a size and a time that the kernel does not know best. */
static double attr_timeout(const struct h5_mount *m, const struct stat *st)
{
	return m->writable && S_ISREG(st->st_mode) ? 0 : m->timeout;
}

static void limit_size(struct stat *st, uint64_t limit)
{
	if (S_ISREG(st->st_mode) && (uint64_t)st->st_size > limit)
		st->st_size = (off_t)limit;
}

static struct fuse_entry_param entry_param(const struct h5_mount *m, struct h5_vfs_entry *entry)
{
	limit_size(&entry->st, h5_vfs_size_limit(m->vfs, entry->node));
	return (struct fuse_entry_param){.ino = ino_of(m, entry->node),
					 .attr = entry->st,
					 .attr_timeout = entry->size_known ? attr_timeout(m, &entry->st) : 0,
					 .entry_timeout = m->timeout};
}

/* ---- names and attributes ---- */

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct h5_mount *m = begin(req);
	struct fuse_entry_param e;
	struct h5_vfs_entry entry;
	int rc = h5_vfs_lookup(m->vfs, node_of(m, parent), name, &entry);

	if (rc == -ENOENT) {
		/* ino 0: the kernel remembers that there is no such name. */
		e = (struct fuse_entry_param){.entry_timeout = m->timeout};
		fuse_reply_entry(req, &e);
		return;
	}
	if (rc) {
		fail(req, "lookup", rc);
		return;
	}
	e = entry_param(m, &entry);
	if (fuse_reply_entry(req, &e))
		h5_vfs_forget(m->vfs, entry.node, 1);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	struct h5_mount *m = fuse_req_userdata(req);

	h5_vfs_forget(m->vfs, node_of(m, ino), nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct h5_mount *m = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++)
		h5_vfs_forget(m->vfs, node_of(m, forgets[i].ino), forgets[i].nlookup);
	fuse_reply_none(req);
}

static int get_attr(struct h5_mount *m, fuse_ino_t ino, struct stat *st)
{
	struct h5_node *node = node_of(m, ino);
	uint64_t limit = h5_vfs_size_limit(m->vfs, node);
	int rc = h5_vfs_getattr(m->vfs, node, st);

	if (rc)
		return rc;
	/* The new size of a file that grew meanwhile: the kernel would pass it on to who has asked, but drop
	 * it for itself, since dropping pages dates what it had asked for before. */
	limit_size(st, limit);
	limit_size(st, h5_vfs_size_limit(m->vfs, node));
	return 0;
}

static void reply_attr(fuse_req_t req, struct h5_mount *m, const struct stat *st, const char *what, int rc)
{
	if (rc)
		fail(req, what, rc);
	else
		fuse_reply_attr(req, st, attr_timeout(m, st));
}

static void reply_getattr(fuse_req_t req, fuse_ino_t ino, size_t written)
{
	const struct h5_stale later = {
		.req = req, .ino = ino, .from = H5_NOT_STALE, .reply = reply_getattr, .written = written};
	struct h5_mount *m = fuse_req_userdata(req);
	struct stat st;
	int rc = get_attr(m, ino, &st);

	if (!m->invalidator || !h5_invalidator_postpone(m->invalidator, &later))
		reply_attr(req, m, &st, "getattr", rc);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	begin(req);
	reply_getattr(req, ino, 0);
}

static void reply_setattr(fuse_req_t req, fuse_ino_t ino, size_t written)
{
	struct h5_mount *m = fuse_req_userdata(req);
	struct stat st;
	int rc = get_attr(m, ino, &st);

	(void)written;
	reply_attr(req, m, &st, "setattr", rc);
}

/* Replies, where a file has grown not before the kernel has dropped what it has of its end. */
static void reply_grown(struct h5_mount *m, const struct h5_stale *stale)
{
	if (stale->from == H5_NOT_STALE)
		stale->reply(stale->req, stale->ino, stale->written);
	else
		h5_invalidator_add(m->invalidator, stale);
}

/* Times are set to please who copies: what they are, only writing decides. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	struct h5_mount *m = begin(req);
	struct h5_stale stale = {.req = req,
				 .ino = ino,
				 .node = node_of(m, ino),
				 .from = H5_NOT_STALE,
				 .reply = reply_setattr};
	struct h5_handle *handle = fi ? handle_of(fi) : NULL;
	int rc = to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID) ? -EPERM : 0;

	if (!rc && to_set & FUSE_SET_ATTR_SIZE) {
		rc = h5_vfs_truncate(m->vfs, stale.node, handle, (uint64_t)attr->st_size, &stale.from);
		want_commit(m);
	}
	if (rc)
		fail(req, "setattr", rc);
	else
		reply_grown(m, &stale);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct h5_mount *m = begin(req);
	const char *target;
	int rc = h5_vfs_readlink(node_of(m, ino), &target);

	if (rc)
		fail(req, "readlink", rc);
	else
		fuse_reply_readlink(req, target);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct h5_mount *m = begin(req);
	struct statvfs st;
	int rc = h5_vfs_statfs(m->vfs, &st);

	(void)ino;
	if (rc)
		fail(req, "statfs", rc);
	else
		fuse_reply_statfs(req, &st);
}

/* ---- extended attributes ---- */

/* As getxattr(2) has it: size 0 asks for the length. */
static void reply_xattr(fuse_req_t req, const char *what, int rc, const struct h5_buf *value, size_t size)
{
	if (rc)
		fail(req, what, rc);
	else if (!size)
		fuse_reply_xattr(req, value->size);
	else if (value->size > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, value->data, value->size);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct h5_mount *m = begin(req);
	struct h5_buf value;
	int rc;

	h5_buf_init(&value, SIZE_MAX);
	rc = h5_vfs_getxattr(m->vfs, node_of(m, ino), name, &value);
	reply_xattr(req, "getxattr", rc, &value, size);
	h5_buf_release(&value);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct h5_mount *m = begin(req);
	struct h5_buf names;
	int rc;

	h5_buf_init(&names, SIZE_MAX);
	rc = h5_vfs_listxattr(m->vfs, node_of(m, ino), &names);
	if (rc == -EUCLEAN && names.size) {
		h5_log_failure("listxattr", rc);
		rc = 0;
	}
	reply_xattr(req, "listxattr", rc, &names, size);
	h5_buf_release(&names);
}

/* ---- directories ---- */

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct h5_mount *m = begin(req);
	struct h5_dir *dir;
	int rc = h5_vfs_opendir(m->vfs, node_of(m, ino), &dir);

	if (rc) {
		fail(req, "opendir", rc);
		return;
	}
	fi->fh = (uintptr_t)dir;
	fi->cache_readdir = fi->keep_cache = m->locked;
	if (fuse_reply_open(req, fi))
		h5_vfs_closedir(dir);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	h5_vfs_closedir((struct h5_dir *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

/* A reply of directory entries as it fills. Offset 1 and 2 stand behind `.` and `..`, 3 + i behind entry i.
 */
struct page {
	fuse_req_t req;
	struct h5_mount *m;
	struct h5_dir *dir;
	char *data;
	size_t size, used;
	bool plus;
};

static size_t entry_size(const struct page *p, const char *name)
{
	return p->plus ? fuse_add_direntry_plus(p->req, NULL, 0, name, NULL, 0)
		       : fuse_add_direntry(p->req, NULL, 0, name, NULL, 0);
}

/* There is room for it. Of what has no nodeid (`.`, `..`, and what could not be looked at) the kernel makes
 * no inode. */
static void add(struct page *p, const char *name, const struct fuse_entry_param *e, off_t next)
{
	size_t room = p->size - p->used;

	p->used += p->plus ? fuse_add_direntry_plus(p->req, p->data + p->used, room, name, e, next)
			   : fuse_add_direntry(p->req, p->data + p->used, room, name, &e->attr, next);
}

/* false: full. */
static bool add_dots(struct page *p, off_t offset)
{
	static const char *const names[] = {".", ".."};
	const ino_t inodes[] = {h5_vfs_dir_self(p->dir), h5_vfs_dir_parent(p->dir)};

	for (; offset < 2; offset++) {
		struct fuse_entry_param e = {.attr = {.st_ino = inodes[offset], .st_mode = S_IFDIR}};

		if (entry_size(p, names[offset]) > p->size - p->used)
			return false;
		add(p, names[offset], &e, offset + 1);
	}
	return true;
}

/* Number of entries from `first` on that there is room for. */
static size_t count_fitting(const struct page *p, size_t first)
{
	size_t count = h5_vfs_dir_count(p->dir), room = p->size - p->used, i = first;

	for (; i < count; i++) {
		size_t n = entry_size(p, h5_vfs_dir_name(p->dir, i));

		if (n > room)
			break;
		room -= n;
	}
	return i - first;
}

static int add_entries(struct page *p, size_t first, size_t count, struct h5_vfs_entry *entries)
{
	for (size_t got; count; first += got, count -= got) {
		int rc = h5_vfs_dir_read(p->dir, first, count, p->plus, entries, &got);

		if (rc)
			return rc;
		for (size_t i = 0; i < got; i++) {
			struct fuse_entry_param e = {.attr = entries[i].st};

			if (entries[i].node)
				e = entry_param(p->m, &entries[i]);
			add(p, h5_vfs_dir_name(p->dir, first + i), &e, (off_t)(first + i) + 3);
		}
	}
	return 0;
}

static int fill_page(struct page *p, off_t offset)
{
	size_t first = offset > 2 ? (size_t)offset - 2 : 0, count;
	struct h5_vfs_entry *entries;
	int rc = 0;

	if (!add_dots(p, offset))
		return 0;
	count = count_fitting(p, first);
	if (count) {
		entries = malloc(count * sizeof *entries);
		rc = entries ? add_entries(p, first, count, entries) : -ENOMEM;
		free(entries);
	}
	if (!rc && first + count >= h5_vfs_dir_count(p->dir))
		rc = h5_vfs_dir_error(p->dir);
	/* A failure behind entries that are already there shows when the next page begins with it. */
	return p->used ? 0 : rc;
}

static void read_directory(fuse_req_t req, size_t size, off_t offset, const struct fuse_file_info *fi,
			   bool plus)
{
	struct page p = {.req = req,
			 .m = begin(req),
			 .dir = (struct h5_dir *)(uintptr_t)fi->fh,
			 .size = size,
			 .plus = plus};
	int rc = -ENOMEM;

	p.data = malloc(size);
	if (p.data)
		rc = fill_page(&p, offset);
	if (rc)
		fail(req, "readdir", rc);
	else
		fuse_reply_buf(req, p.data, p.used);
	free(p.data);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)ino;
	read_directory(req, size, offset, fi, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			   struct fuse_file_info *fi)
{
	(void)ino;
	read_directory(req, size, offset, fi, true);
}

/* ---- files ---- */

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct h5_mount *m = begin(req);
	struct h5_handle *handle;
	int rc;

	if (!atomic_flag_test_and_set(&m->opened))
		h5_readahead_raise(m->readahead);
	rc = h5_vfs_open_file(m->vfs, node_of(m, ino), fi->flags, &handle);
	if (rc) {
		fail(req, "open", rc);
		return;
	}
	if (fi->flags & O_TRUNC)
		want_commit(m);
	fi->fh = (uintptr_t)handle;
	fi->keep_cache = m->locked && !m->writable;
	/* What is only written goes straight on; who reads, too, may map the file. */
	fi->direct_io = (fi->flags & O_ACCMODE) == O_WRONLY;
	fi->noflush = (fi->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY;
	if (!fuse_reply_open(req, fi))
		return;
	h5_interrupt_begin(NULL, NULL); /* there is no request any more */
	h5_vfs_close_file(handle);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	h5_interrupt_begin(NULL, NULL); /* nobody waits for it */
	h5_vfs_close_file(handle_of(fi));
	fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	char *data = h5_reply_buffer(size);
	size_t got = 0;
	int rc = -ENOMEM;

	(void)ino;
	begin(req);
	if (data)
		rc = h5_vfs_read(handle_of(fi), (uint64_t)offset, data, size, &got);
	if (rc)
		fail(req, "read", rc);
	else
		fuse_reply_buf(req, data, got);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi)
{
	uint64_t found;
	int rc;

	(void)ino;
	begin(req);
	rc = h5_vfs_seek(handle_of(fi), (uint64_t)offset, whence == SEEK_HOLE, &found);
	if (rc == -ENXIO)
		fuse_reply_err(req, ENXIO); /* an answer */
	else if (rc)
		fail(req, "lseek", rc);
	else
		fuse_reply_lseek(req, (off_t)found);
}

static void reply_write(fuse_req_t req, fuse_ino_t ino, size_t written)
{
	(void)ino;
	fuse_reply_write(req, written);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	struct h5_mount *m = begin(req);
	enum h5_write_place place = fi->writepage	   ? H5_WRITE_INSIDE
				    : fi->flags & O_APPEND ? H5_WRITE_APPEND
							   : H5_WRITE_AT;
	struct h5_stale stale = {.req = req,
				 .ino = ino,
				 .node = node_of(m, ino),
				 .handle = handle_of(fi),
				 .reply = reply_write};
	int rc =
		h5_vfs_write(handle_of(fi), (uint64_t)offset, data, size, place, &stale.written, &stale.from);

	want_commit(m);
	if (rc)
		fail(req, "write", rc);
	else
		reply_grown(m, &stale);
}

static void reply_done(fuse_req_t req, const char *what, int rc)
{
	if (rc)
		fail(req, what, rc);
	else
		fuse_reply_err(req, 0);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	begin(req);
	reply_done(req, "close", h5_vfs_flush(handle_of(fi)));
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	begin(req);
	reply_done(req, "fsync", h5_vfs_fsync(handle_of(fi)));
}

/* ---- the session ---- */

static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	(void)userdata;
	/* The daemon decides where an append goes, and shall hear of each write at once. */
	connection->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
	/* A changed time tells the kernel that what it has of a file is stale; that O_TRUNC comes with open
	 * tells us which opening it fails. */
	connection->want |= connection->capable & (FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC);
}

const struct fuse_lowlevel_ops h5_operations = {
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
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.open = op_open,
	.read = op_read,
	.lseek = op_lseek,
	.release = op_release,
	.setattr = op_setattr,
	.write = op_write,
	.flush = op_flush,
	.fsync = op_fsync,
	.mknod = h5_refuse_mknod,
	.mkdir = h5_refuse_mkdir,
	.create = h5_refuse_create,
	.unlink = h5_refuse_unlink,
	.rmdir = h5_refuse_unlink,
	.symlink = h5_refuse_symlink,
	.link = h5_refuse_link,
	.rename = h5_refuse_rename,
	.setxattr = h5_refuse_setxattr,
	.removexattr = h5_refuse_removexattr,
};

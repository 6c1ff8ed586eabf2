#include "fuse/directories.h"

#include "fuse/request.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void h5_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct h5_mount *m = h5_request_begin(req);
	struct h5_dir *dir;
	int rc;

	if (m->without_opendir) { /* the kernel asks no more, nor for releasedir */
		fuse_reply_err(req, ENOSYS);
		return;
	}
	rc = h5_vfs_opendir(m->vfs, h5_request_node(m, ino), &dir);
	if (rc) {
		h5_request_fail_on(req, ino, "opendir", rc);
		return;
	}
	fi->fh = (uintptr_t)dir;
	fi->cache_readdir = fi->keep_cache = h5_request_names_timeout(m, h5_request_node(m, ino)) > 0;
	if (fuse_reply_open(req, fi))
		h5_vfs_closedir(dir);
}

void h5_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	h5_request_begin_release(req);
	h5_vfs_closedir((struct h5_dir *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

/* A reply that fills with directory entries. The offset after `.` is 1, after `..` 2, then it is that of the
 * position + 2.
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

/* Adds an entry, for which there is room. The kernel makes no inode of entries without a nodeid: `.`, `..`,
 * and objects that could not be read. */
static void add(struct page *p, const char *name, const struct fuse_entry_param *e, off_t next)
{
	size_t room = p->size - p->used;

	p->used += p->plus ? fuse_add_direntry_plus(p->req, p->data + p->used, room, name, e, next)
			   : fuse_add_direntry(p->req, p->data + p->used, room, name, &e->attr, next);
	assert(p->used <= p->size);
}

/* False: the page is full. */
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
				e = h5_request_entry(p->m, &entries[i]);
			add(p, h5_vfs_dir_name(p->dir, first + i), &e,
			    (off_t)h5_vfs_dir_next(p->dir, first + i) + 2);
		}
	}
	return 0;
}

static int fill_page(struct page *p, off_t offset)
{
	struct h5_vfs_entry *entries;
	size_t first, count;
	int rc;

	if (!add_dots(p, offset))
		return 0;
	rc = h5_vfs_dir_go(p->dir, offset > 2 ? (uint64_t)offset - 2 : 0, &first);
	if (rc)
		return rc;
	count = count_fitting(p, first);
	if (count) {
		entries = malloc(count * sizeof *entries);
		rc = entries ? add_entries(p, first, count, entries) : -ENOMEM;
		free(entries);
	}
	if (!rc && first >= h5_vfs_dir_count(p->dir))
		rc = h5_vfs_dir_error(p->dir);
	/* If there are entries before the one that failed, these are the reply. The next page begins with the
	 * failure. */
	return p->used ? 0 : rc;
}

static int get_dir(struct h5_mount *m, fuse_ino_t ino, const struct fuse_file_info *fi, struct h5_dir **dir)
{
	if (m->without_opendir)
		return h5_vfs_take_dir(m->vfs, h5_request_node(m, ino), dir);
	*dir = (struct h5_dir *)(uintptr_t)fi->fh;
	return 0;
}

/* `ended`: the reply is that there are no more entries. */
static void put_dir(const struct h5_mount *m, struct h5_dir *dir, bool ended)
{
	if (!m->without_opendir)
		return;
	if (ended)
		h5_vfs_closedir(dir);
	else
		h5_vfs_return_dir(dir);
}

static void read_directory(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			   const struct fuse_file_info *fi, bool plus)
{
	struct page p = {.req = req, .m = h5_request_begin(req), .size = size, .plus = plus};
	int rc = -ENOMEM;

	p.data = malloc(size);
	if (p.data)
		rc = get_dir(p.m, ino, fi, &p.dir);
	if (!rc) {
		rc = offset ? 0 : h5_vfs_dir_rewind(p.dir);
		if (!rc)
			rc = fill_page(&p, offset);
		put_dir(p.m, p.dir, !p.used);
	}
	if (rc)
		h5_request_fail_on(req, ino, "readdir", rc);
	else
		fuse_reply_buf(req, p.data, p.used);
	free(p.data);
}

void h5_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	read_directory(req, ino, size, offset, fi, false);
}

void h5_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	read_directory(req, ino, size, offset, fi, true);
}

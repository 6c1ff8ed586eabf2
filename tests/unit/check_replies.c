/* Replies of the daemon, with files and folders that are none in place of those it shows: pages of
 * directories, what the kernel may keep of open files, errors. */
#include "base/checked.h"
#include "fuse/operations.h"
#include "fuse/request.h"
#include "fuse/tree_operations.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODE = 5, NAMES = 100, MOST = 8192 };

static struct {
	char names[NAMES][64];
	size_t count, at_once; /* entries of the directory; and that are read at a time */
	struct h5_mount m;
	enum h5_tree_kind kind;
	bool direct, inside;
	int enter_rc, attr_rc;
	unsigned changed, released, logged;
	bool no_memory;
	/* Errors of calls: */
	int readlink_rc, seek_rc, list_rc, hold_rc, go_rc, read_rc, dir_rc, rewind_rc;
	const char *attributes; /* the list */
	/* The reply: */
	unsigned replies;
	int error;
	uint8_t data[MOST];
	size_t size;
	struct fuse_file_info opened;
	size_t path_size, logged_path; /* of an object's path; of that in the log; 0: none */
	const char *page; /* of a directory, where its first entry comes to; NULL: not known yet */
	size_t page_size;
} world;

static struct h5_vfs *const vfs = (struct h5_vfs *)&world.names;
static struct h5_tree *const tree = (struct h5_tree *)&world.count;
static struct h5_node *const node = (struct h5_node *)&world.m;
static struct h5_handle *const handle = (struct h5_handle *)&world.data;
static fuse_req_t const request = (fuse_req_t)&world;

void *__wrap_fuse_req_userdata(fuse_req_t req);
int __wrap_fuse_reply_buf(fuse_req_t req, const char *data, size_t n);
int __wrap_fuse_reply_err(fuse_req_t req, int error);
int __wrap_fuse_reply_open(fuse_req_t req, const struct fuse_file_info *fi);
int __wrap_fuse_reply_attr(fuse_req_t req, const struct stat *st, double timeout);
size_t __real_fuse_add_direntry(fuse_req_t req, char *buf, size_t room, const char *name,
				const struct stat *st, off_t next);
size_t __wrap_fuse_add_direntry(fuse_req_t req, char *buf, size_t room, const char *name,
				const struct stat *st, off_t next);
size_t __real_fuse_add_direntry_plus(fuse_req_t req, char *buf, size_t room, const char *name,
				     const struct fuse_entry_param *e, off_t next);
size_t __wrap_fuse_add_direntry_plus(fuse_req_t req, char *buf, size_t room, const char *name,
				     const struct fuse_entry_param *e, off_t next);
ino_t __wrap_h5_vfs_dir_self(const struct h5_dir *dir);
ino_t __wrap_h5_vfs_dir_parent(const struct h5_dir *dir);
int __wrap_h5_vfs_dir_rewind(struct h5_dir *dir);
int __wrap_h5_vfs_dir_go(struct h5_dir *dir, uint64_t position, size_t *first);
size_t __wrap_h5_vfs_dir_count(const struct h5_dir *dir);
uint64_t __wrap_h5_vfs_dir_next(const struct h5_dir *dir, size_t i);
const char *__wrap_h5_vfs_dir_name(const struct h5_dir *dir, size_t i);
int __wrap_h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus,
			   struct h5_vfs_entry *entries, size_t *got);
int __wrap_h5_vfs_dir_error(const struct h5_dir *dir);
struct h5_node *__wrap_h5_vfs_node(struct h5_vfs *of, uint64_t id);
int __wrap_h5_vfs_open_file(struct h5_vfs *of, struct h5_node *n, int flags, struct h5_handle **out);
bool __wrap_h5_vfs_is_direct(const struct h5_handle *h);
void __wrap_h5_vfs_refresh(struct h5_vfs *of);
int __wrap_h5_vfs_fallocate(struct h5_handle *h, int mode, uint64_t offset, uint64_t n);
int __wrap_h5_vfs_fsync(struct h5_handle *h);
uint64_t __wrap_h5_vfs_size_limit(struct h5_vfs *of, const struct h5_node *n);
int __wrap_h5_vfs_getattr(struct h5_vfs *of, struct h5_node *n, struct stat *st);
int __wrap_h5_vfs_find_path(struct h5_vfs *of, const struct h5_node *n, struct h5_buf *path);
struct h5_tree_node *__wrap_h5_tree_root(struct h5_tree *of);
enum h5_tree_kind __wrap_h5_tree_kind(const struct h5_tree_node *n);
int __wrap_h5_tree_enter(struct h5_tree *of, struct h5_tree_node *n, struct h5_tree_inside *in);
int __wrap_h5_tree_readdir(struct h5_tree_dir *dir, uint64_t position,
			   struct h5_tree_name names[H5_TREE_NAMES], size_t *got);
int __wrap_h5_tree_open_file(struct h5_tree *of, struct h5_tree_node *n, int flags,
			     struct h5_tree_handle **out);
struct h5_handle *__wrap_h5_tree_handle_inside(const struct h5_tree_handle *h);

void *__wrap_fuse_req_userdata(fuse_req_t req)
{
	ck_assert(req == request);
	return &world.m;
}

int __wrap_fuse_reply_buf(fuse_req_t req, const char *data, size_t n)
{
	ck_assert(req == request && n <= MOST);
	if (n)
		memcpy(world.data, data, n);
	world.size = n;
	world.replies++;
	return 0;
}

int __wrap_fuse_reply_err(fuse_req_t req, int error)
{
	ck_assert(req == request);
	world.error = error;
	world.replies++;
	return 0;
}

int __wrap_fuse_reply_open(fuse_req_t req, const struct fuse_file_info *fi)
{
	ck_assert(req == request);
	world.opened = *fi;
	world.replies++;
	return 0;
}

int __wrap_fuse_reply_attr(fuse_req_t req, const struct stat *st, double timeout)
{
	(void)st;
	(void)timeout;
	return __wrap_fuse_reply_err(req, 0);
}

/* libfuse takes the room for what is left of the page. */
static void check_room(const char *buf, size_t room)
{
	if (buf && !world.page)
		world.page = buf;
	if (buf)
		ck_assert_uint_eq((size_t)(buf - world.page) + room, world.page_size);
}

size_t __wrap_fuse_add_direntry(fuse_req_t req, char *buf, size_t room, const char *name,
				const struct stat *st, off_t next)
{
	check_room(buf, room);
	return __real_fuse_add_direntry(req, buf, room, name, st, next);
}

size_t __wrap_fuse_add_direntry_plus(fuse_req_t req, char *buf, size_t room, const char *name,
				     const struct fuse_entry_param *e, off_t next)
{
	check_room(buf, room);
	return __real_fuse_add_direntry_plus(req, buf, room, name, e, next);
}

ino_t __wrap_h5_vfs_dir_self(const struct h5_dir *dir)
{
	(void)dir;
	return NODE;
}

ino_t __wrap_h5_vfs_dir_parent(const struct h5_dir *dir)
{
	(void)dir;
	return FUSE_ROOT_ID;
}

int __wrap_h5_vfs_dir_rewind(struct h5_dir *dir)
{
	(void)dir;
	return world.rewind_rc;
}

int __wrap_h5_vfs_dir_go(struct h5_dir *dir, uint64_t position, size_t *first)
{
	(void)dir;
	*first = position;
	return world.go_rc;
}

size_t __wrap_h5_vfs_dir_count(const struct h5_dir *dir)
{
	(void)dir;
	return world.count;
}

uint64_t __wrap_h5_vfs_dir_next(const struct h5_dir *dir, size_t i)
{
	(void)dir;
	return i + 1;
}

const char *__wrap_h5_vfs_dir_name(const struct h5_dir *dir, size_t i)
{
	(void)dir;
	ck_assert_uint_lt(i, world.count);
	return world.names[i];
}

int __wrap_h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus,
			   struct h5_vfs_entry *entries, size_t *got)
{
	(void)dir;
	(void)plus;
	ck_assert(first < world.count && count <= world.count - first);
	*got = count < world.at_once ? count : world.at_once;
	for (size_t i = 0; i < *got; i++)
		entries[i] = (struct h5_vfs_entry){.st = {.st_ino = first + i + 1000, .st_mode = S_IFREG}};
	return first + 1 >= world.count ? world.dir_rc : 0;
}

int __wrap_h5_vfs_dir_error(const struct h5_dir *dir)
{
	(void)dir;
	return world.read_rc;
}

struct h5_node *__wrap_h5_vfs_node(struct h5_vfs *of, uint64_t id)
{
	ck_assert(of == vfs && id == NODE);
	return node;
}

int __wrap_h5_vfs_open_file(struct h5_vfs *of, struct h5_node *n, int flags, struct h5_handle **out)
{
	(void)flags;
	ck_assert(of == vfs && n == node);
	*out = handle;
	return 0;
}

bool __wrap_h5_vfs_is_direct(const struct h5_handle *h)
{
	ck_assert(h == handle);
	return world.direct;
}

void __wrap_h5_vfs_refresh(struct h5_vfs *of)
{
	ck_assert(of == vfs);
}

int __wrap_h5_vfs_fallocate(struct h5_handle *h, int mode, uint64_t offset, uint64_t n)
{
	(void)h;
	(void)mode;
	(void)offset;
	(void)n;
	world.changed++;
	return 0;
}

int __wrap_h5_vfs_fsync(struct h5_handle *h)
{
	ck_assert(h == handle);
	world.changed++;
	return 0;
}

uint64_t __wrap_h5_vfs_size_limit(struct h5_vfs *of, const struct h5_node *n)
{
	(void)of;
	(void)n;
	return UINT64_MAX;
}

int __wrap_h5_vfs_getattr(struct h5_vfs *of, struct h5_node *n, struct stat *st)
{
	(void)of;
	(void)n;
	*st = (struct stat){.st_mode = S_IFREG | 0644};
	return world.attr_rc;
}

int __wrap_h5_vfs_find_path(struct h5_vfs *of, const struct h5_node *n, struct h5_buf *path)
{
	char bytes[1000];

	(void)of;
	(void)n;
	memset(bytes, 'p', sizeof bytes);
	for (size_t done = 0; done < world.path_size; done += h5_min(1000, world.path_size - done))
		h5_buf_add(path, bytes, h5_min(1000, world.path_size - done));
	return world.path_size ? 0 : -ENOENT;
}

struct h5_tree_node *__wrap_h5_tree_root(struct h5_tree *of)
{
	ck_assert(of == tree);
	return (struct h5_tree_node *)NODE;
}

enum h5_tree_kind __wrap_h5_tree_kind(const struct h5_tree_node *n)
{
	ck_assert(n == (struct h5_tree_node *)NODE);
	return world.kind;
}

int __wrap_h5_tree_enter(struct h5_tree *of, struct h5_tree_node *n, struct h5_tree_inside *in)
{
	(void)in;
	ck_assert(of == tree && n == (struct h5_tree_node *)NODE);
	return world.enter_rc;
}

int __wrap_h5_tree_readdir(struct h5_tree_dir *dir, uint64_t position,
			   struct h5_tree_name names[H5_TREE_NAMES], size_t *got)
{
	(void)dir;
	for (*got = 0; *got < world.at_once && position + *got < world.count; (*got)++)
		names[*got] = (struct h5_tree_name){.name = world.names[position + *got],
						    .ino = position + *got + 1000,
						    .type = S_IFREG,
						    .next = position + *got + 1};
	return position + 1 >= world.count ? world.dir_rc : 0;
}

int __wrap_h5_tree_open_file(struct h5_tree *of, struct h5_tree_node *n, int flags,
			     struct h5_tree_handle **out)
{
	(void)flags;
	ck_assert(of == tree && n == (struct h5_tree_node *)NODE);
	*out = (struct h5_tree_handle *)handle;
	return 0;
}

struct h5_handle *__wrap_h5_tree_handle_inside(const struct h5_tree_handle *h)
{
	return h && world.inside ? handle : NULL;
}

/* ---- calls that fail ---- */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
int __wrap_fuse_reply_readlink(fuse_req_t req, const char *target);
int __wrap_fuse_reply_lseek(fuse_req_t req, off_t offset);
int __wrap_fuse_reply_xattr(fuse_req_t req, size_t n);
int __wrap_h5_vfs_readlink(struct h5_node *n, const char **target);
int __wrap_h5_vfs_seek(struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found);
int __wrap_h5_vfs_hold_file(struct h5_vfs *of, struct h5_node *n, struct h5_handle **out);
void __wrap_h5_vfs_release_file(struct h5_handle *h);
int __wrap_h5_vfs_read(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got);
int __wrap_h5_vfs_listxattr(struct h5_vfs *of, struct h5_node *n, struct h5_buf *out);
void __wrap_h5_log_failure(const char *what, int code, const char *path);
void __wrap_h5_tree_path(struct h5_tree *of, const struct h5_tree_node *n, struct h5_buf *path);

void __wrap_h5_tree_path(struct h5_tree *of, const struct h5_tree_node *n, struct h5_buf *path)
{
	ck_assert(of == tree && n == (struct h5_tree_node *)NODE);
	h5_buf_add(path, "folder", 6);
}

void *__wrap_malloc(size_t n)
{
	return world.no_memory ? NULL : __real_malloc(n);
}

int __wrap_fuse_reply_readlink(fuse_req_t req, const char *target)
{
	return __wrap_fuse_reply_buf(req, target, strlen(target));
}

int __wrap_fuse_reply_lseek(fuse_req_t req, off_t offset)
{
	world.size = (size_t)offset;
	return __wrap_fuse_reply_err(req, 0);
}

int __wrap_fuse_reply_xattr(fuse_req_t req, size_t n)
{
	world.size = n;
	return __wrap_fuse_reply_err(req, 0);
}

int __wrap_h5_vfs_readlink(struct h5_node *n, const char **target)
{
	ck_assert(n == node);
	*target = world.readlink_rc ? NULL : world.names[0];
	return world.readlink_rc;
}

int __wrap_h5_vfs_seek(struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found)
{
	ck_assert(h == handle && !world.released);
	*found = offset + (hole ? 100 : 10);
	return world.seek_rc;
}

int __wrap_h5_vfs_hold_file(struct h5_vfs *of, struct h5_node *n, struct h5_handle **out)
{
	ck_assert(of == vfs && n == node);
	*out = world.hold_rc ? NULL : handle;
	return world.hold_rc;
}

void __wrap_h5_vfs_release_file(struct h5_handle *h)
{
	ck_assert(h == handle);
	world.released++;
}

int __wrap_h5_vfs_read(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	ck_assert(h == handle && !world.released && offset == 3);
	*got = n - 1;
	memset(buf, 'r', *got);
	return world.read_rc;
}

int __wrap_h5_vfs_listxattr(struct h5_vfs *of, struct h5_node *n, struct h5_buf *out)
{
	ck_assert(of == vfs && n == node);
	h5_buf_add(out, world.attributes, strlen(world.attributes));
	return world.list_rc;
}

int __wrap_h5_vfs_truncate(struct h5_vfs *of, struct h5_node *n, struct h5_handle *h, uint64_t size,
			   uint64_t *stale);

int __wrap_h5_vfs_truncate(struct h5_vfs *of, struct h5_node *n, struct h5_handle *h, uint64_t size,
			   uint64_t *stale)
{
	ck_assert(of == vfs && n == node && !h && !size);
	*stale = UINT64_MAX;
	world.changed++;
	return 0;
}

void __wrap_h5_log_failure(const char *what, int code, const char *path)
{
	(void)what;
	ck_assert_int_lt(code, 0);
	world.logged++;
	world.logged_path = path ? strlen(path) : 0;
}

/* ---- directories ---- */

static void begin(bool folder)
{
	memset(&world, 0, sizeof world);
	world.m.readahead = -1;
	world.m.locked = true;
	if (folder)
		world.m.tree = tree;
	else
		world.m.vfs = vfs;
	world.at_once = 3;
}

static size_t length(const char *name, bool plus)
{
	return (plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET) + (strlen(name) + 7) / 8 * 8;
}

static const char *name_at(size_t i)
{
	return i == 0 ? "." : i == 1 ? ".." : world.names[i - 2];
}

/* Reads all pages of the size: each has as many entries as fit. */
static void check_pages(const struct fuse_lowlevel_ops *ops, size_t size, bool plus)
{
	struct fuse_file_info fi = {0};
	off_t offset = 0;
	size_t next = 0;

	do {
		world.replies = 0;
		world.page = NULL;
		world.page_size = size;
		(plus ? ops->readdirplus : ops->readdir)(request, NODE, size, offset, &fi);
		ck_assert(world.replies == 1 && !world.error && world.size <= size);
		for (size_t at = 0; at < world.size; next++) {
			struct fuse_dirent entry;
			const size_t header = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;

			memcpy(&entry, world.data + at + header - FUSE_NAME_OFFSET, FUSE_NAME_OFFSET);
			ck_assert_uint_lt(next, world.count + 2);
			ck_assert_uint_eq(entry.namelen, strlen(name_at(next)));
			ck_assert(!memcmp(world.data + at + header, name_at(next), entry.namelen));
			ck_assert_uint_eq(entry.off, next + 1);
			if (next >= 2)
				ck_assert_uint_eq(entry.ino, next + 998);
			at += length(name_at(next), plus);
			offset = (off_t)entry.off;
		}
		if (next < world.count + 2)
			ck_assert_uint_gt(length(name_at(next), plus), size - world.size);
	} while (world.size);
	if (size >= 300)
		ck_assert_uint_eq(next, world.count + 2);
}

START_TEST(pages_of_directories)
{
	for (unsigned kind = 0; kind < 3; kind++) {
		begin(kind == 2);
		for (world.count = 0; world.count < 40; world.count++) {
			memset(world.names[world.count], 'n', world.count * 13 % 40 + 1);
			for (size_t size = 8; size < 600; size += size < 200 ? 8 : 56)
				check_pages(kind == 2 ? &h5_tree_operations : &h5_operations, size,
					    kind == 1);
		}
		check_pages(kind == 2 ? &h5_tree_operations : &h5_operations, MOST, kind == 1);
	}
}
END_TEST

/* Reads a page from the offset. The error; else the entries of the reply, each of which has the same size. */
static int read_page(unsigned kind, off_t offset)
{
	const struct fuse_lowlevel_ops *ops = kind == 2 ? &h5_tree_operations : &h5_operations;
	struct fuse_file_info fi = {0};

	world.replies = world.logged = 0;
	world.error = 0;
	world.size = 0;
	world.page = NULL;
	world.page_size = 4000;
	(kind == 1 ? ops->readdirplus : ops->readdir)(request, NODE, 4000, offset, &fi);
	ck_assert_uint_eq(world.replies, 1);
	ck_assert_uint_eq(world.logged, world.error != 0);
	return world.error ? -world.error : (int)(world.size / length("a", kind == 1));
}

/* Entries before one that fails are the reply; the next page begins with the failure. */
START_TEST(directories_that_fail)
{
	for (unsigned kind = 0; kind < 3; kind++) {
		begin(kind == 2);
		for (world.count = 0; world.count < 7; world.count++)
			memset(world.names[world.count], 'n', 1);
		ck_assert_int_eq(read_page(kind, 0), 9);
		ck_assert_int_eq(read_page(kind, 2), 7);
		ck_assert_int_eq(read_page(kind, 9), 0);
		world.dir_rc = -EIO;
		ck_assert_int_eq(read_page(kind, 0), 8);
		ck_assert_int_eq(read_page(kind, 2), 6);
		ck_assert_int_eq(read_page(kind, 8), -EIO);
		world.dir_rc = 0;
		world.no_memory = true;
		/* The buffer for replies of a folder is there. */
		ck_assert_int_eq(read_page(kind, 2), kind == 2 ? 7 : -ENOMEM);
		world.no_memory = false;
		if (kind == 2)
			continue;
		world.go_rc = -EUCLEAN;
		ck_assert_int_eq(read_page(kind, 0), -EUCLEAN);
		ck_assert_int_eq(read_page(kind, 3), -EUCLEAN);
		world.go_rc = 0;
		world.rewind_rc = -EACCES;
		ck_assert_int_eq(read_page(kind, 0), -EACCES);
		ck_assert_int_eq(read_page(kind, 2), 7);
		world.rewind_rc = 0;
		world.read_rc = -EFBIG;
		ck_assert_int_eq(read_page(kind, 2), 7);
		ck_assert_int_eq(read_page(kind, 9), -EFBIG);
	}
}
END_TEST

/* ---- open files ---- */

/* The kernel may keep what nobody changes; it need not tell that a reader closes. */
START_TEST(open_files)
{
	static const int flags[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC, O_RDONLY | O_NONBLOCK};

	for (unsigned i = 0; i < 32; i++)
		for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
			const bool folder = i & 1;
			struct fuse_file_info fi = {.flags = flags[f]};

			begin(folder);
			world.m.locked = i & 2;
			world.m.writable = i & 4;
			world.direct = i & 8;
			world.inside = i & 16;
			(folder ? h5_tree_operations : h5_operations).open(request, NODE, &fi);
			ck_assert(world.replies == 1 && world.opened.fh == (uintptr_t)handle);
			ck_assert(world.opened.keep_cache == (!folder && i & 2 && !(i & 4)));
			ck_assert(world.opened.direct_io == (i & 8 && (!folder || i & 16)));
			ck_assert(world.opened.noflush == (f == 0 || f == 4));
		}
}
END_TEST

START_TEST(features)
{
	enum {
		OFFERED = FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT |
			  FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_READ,
		WANTED = FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_READ,
	};

	for (unsigned i = 0; i < 16; i++) {
		const bool stays = i & 1 && !(i & 2) && !(i & 4);
		struct fuse_conn_info connection = {.capable = OFFERED, .want = WANTED};

		if (i & 8)
			connection.capable = FUSE_CAP_ASYNC_READ;
		begin(false);
		world.m.locked = i & 1;
		world.m.writable = i & 2;
		world.m.remote = i & 4;
		h5_operations.init(&world.m, &connection);
		ck_assert_uint_eq(connection.want, WANTED | (i & 8 ? 0 : FUSE_CAP_EXPORT_SUPPORT));
		ck_assert(world.m.without_open == (stays && !(i & 8)));
		ck_assert(world.m.without_opendir == (stays && !(i & 8)));
	}
	begin(true);
	for (unsigned offered = 0; offered < 2; offered++) {
		struct fuse_conn_info connection = {.capable = OFFERED, .want = offered ? WANTED : 0};

		h5_tree_operations.init(&world.m, &connection);
		ck_assert_uint_eq(connection.want, offered ? FUSE_CAP_ASYNC_READ : 0);
	}
}
END_TEST

/* ---- errors ---- */

START_TEST(errors)
{
	struct fuse_file_info fi = {0};
	struct stat st = {0};

	/* A file that the kernel does not open has nothing to be synced. */
	begin(false);
	world.error = -1;
	h5_operations.fsync(request, NODE, 0, &fi);
	ck_assert(world.replies == 1 && world.error == 0 && !world.changed);
	/* The attributes that are set cannot be read. */
	world.m.writable = true;
	h5_operations.setattr(request, NODE, &st, 0, NULL);
	ck_assert(world.replies == 2 && world.error == 0);
	world.attr_rc = -EACCES;
	h5_operations.setattr(request, NODE, &st, 0, NULL);
	ck_assert(world.replies == 3 && world.error == EACCES);
	/* If others have access, the owner is compared before the size changes. */
	world.m.allow_other = true;
	h5_operations.setattr(request, NODE, &st, FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE, NULL);
	ck_assert(world.replies == 4 && world.error == EACCES && !world.changed);
	world.attr_rc = 0;
	h5_operations.setattr(request, NODE, &st, FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE, NULL);
	ck_assert(world.replies == 5 && world.error == EPERM && !world.changed);
	st.st_mode = 0644;
	h5_operations.setattr(request, NODE, &st, FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE, NULL);
	ck_assert(world.replies == 6 && world.error == 0 && world.changed == 1);
	/* The root of a mounted folder lies in no HDF5 file. */
	begin(true);
	world.enter_rc = -EACCES;
	h5_tree_operations.fallocate(request, FUSE_ROOT_ID, 0, 0, 1, &fi);
	ck_assert(world.replies == 1 && world.error == EACCES && !world.changed);
	world.error = -1;
	h5_tree_operations.fsync(request, FUSE_ROOT_ID, 0, &fi);
	ck_assert(world.replies == 2 && world.error == 0 && !world.changed);
}
END_TEST

/* Of a folder, only HDF5 files can be changed. */
START_TEST(access_to_folders)
{
	static const enum h5_tree_kind kinds[] = {H5_TREE_FOLDER, H5_TREE_PLAIN, H5_TREE_FILE};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		for (int mask = 0; mask < 8; mask++) {
			begin(true);
			world.kind = kinds[i];
			world.error = -1;
			h5_tree_operations.access(request, FUSE_ROOT_ID, mask);
			ck_assert_uint_eq(world.replies, 1);
			ck_assert_int_eq(world.error, mask & W_OK && kinds[i] != H5_TREE_FILE ? EROFS : 0);
		}
}
END_TEST

static void read_some(size_t n)
{
	struct fuse_file_info fi = {.fh = (uintptr_t)handle};

	world.replies = world.released = 0;
	world.error = 0;
	world.size = 0;
	h5_operations.read(request, NODE, n, 3, &fi);
	ck_assert_uint_eq(world.replies, 1);
}

static void *read_in_thread(void *arg)
{
	read_some(100);
	ck_assert(!world.error && world.size == 99 && world.data[98] == 'r');
	world.no_memory = true;
	read_some(100);
	ck_assert(!world.error && world.size == 99);
	read_some(2000);
	ck_assert_int_eq(world.error, ENOMEM);
	read_some(100);
	ck_assert_int_eq(world.error, ENOMEM);
	h5_operations.readlink(request, NODE);
	ck_assert_int_eq(world.error, ENOMEM);
	world.no_memory = false;
	read_some(2000);
	ck_assert(!world.error && world.size == 1999);
	world.read_rc = -EIO;
	read_some(100);
	ck_assert(world.error == EIO && world.logged == 4);
	return arg;
}

/* The buffer of a thread grows, and is there again after memory was short. */
START_TEST(buffers)
{
	pthread_t thread;

	begin(false);
	ck_assert_int_eq(pthread_create(&thread, NULL, read_in_thread, NULL), 0);
	pthread_join(thread, NULL);
}
END_TEST

/* A process that has no place for the address of its buffers does not go on. */
START_TEST(no_place_for_buffers)
{
	pid_t child;
	int status;

	begin(false);
	child = fork();
	if (!child) {
		pthread_key_t key;

		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		signal(SIGABRT, SIG_DFL);
		while (!pthread_key_create(&key, NULL))
			;
		read_some(100);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status & 0x7f, SIGABRT);
}
END_TEST

START_TEST(links)
{
	begin(false);
	strcpy(world.names[0], "where it leads");
	h5_operations.readlink(request, NODE);
	ck_assert(world.replies == 1 && world.size == 14 && !memcmp(world.data, world.names[0], 14));
	world.readlink_rc = -EINVAL;
	h5_operations.readlink(request, NODE);
	ck_assert(world.replies == 2 && world.error == EINVAL);
}
END_TEST

/* Of a file that the kernel has not opened, it is held as long as it is looked at. */
START_TEST(holes)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fuse_file_info fi = {.fh = i ? 0 : (uintptr_t)handle};

		begin(false);
		world.m.without_open = i;
		h5_operations.lseek(request, NODE, 7, SEEK_DATA, &fi);
		ck_assert(world.replies == 1 && !world.error && world.size == 17 && world.released == i);
		world.released = 0;
		h5_operations.lseek(request, NODE, 7, SEEK_HOLE, &fi);
		ck_assert(world.replies == 2 && !world.error && world.size == 107 && world.released == i);
		world.released = 0;
		world.seek_rc = -ENXIO;
		h5_operations.lseek(request, NODE, 7, SEEK_DATA, &fi);
		ck_assert(world.error == ENXIO && !world.logged && world.released == i);
		world.released = 0;
		world.seek_rc = -EIO;
		h5_operations.lseek(request, NODE, 7, SEEK_DATA, &fi);
		ck_assert(world.error == EIO && world.logged == 1 && world.released == i);
	}
	world.released = 0;
	world.hold_rc = -EUCLEAN;
	h5_operations.lseek(request, NODE, 7, SEEK_DATA, &(struct fuse_file_info){0});
	ck_assert(world.error == EUCLEAN && !world.released);
}
END_TEST

/* Attributes that are damaged are left out, if there are others. */
START_TEST(lists_of_attributes)
{
	static const struct {
		int rc, error;
		const char *names;
		unsigned logged;
	} cases[] = {{0, 0, "user.a", 0},	 {0, 0, "", 0},
		     {-EUCLEAN, 0, "user.a", 1}, {-EUCLEAN, EUCLEAN, "", 1},
		     {-EIO, EIO, "user.a", 1},	 {-EIO, EIO, "", 1}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t size = 0; size <= 6; size++) {
			const size_t n = strlen(cases[i].names);
			const int error = cases[i].error ? cases[i].error : size && size < n ? ERANGE : 0;

			begin(false);
			world.attributes = cases[i].names;
			world.list_rc = cases[i].rc;
			h5_operations.listxattr(request, NODE, size);
			ck_assert_uint_eq(world.replies, 1);
			ck_assert_int_eq(world.error, error);
			ck_assert_uint_eq(world.logged, cases[i].logged);
			ck_assert_uint_eq(world.size, error ? 0 : n);
			ck_assert(error || !size || !memcmp(world.data, cases[i].names, n));
		}
}
END_TEST

/* A path that has no room goes without saying: no part of it is told, nor what is behind that. */
START_TEST(paths_in_the_log)
{
	static const size_t sizes[][2] = {{0, 0},	    {1, 1},
					  {2500, 2500},	    {PATH_MAX - 1, PATH_MAX - 1},
					  {PATH_MAX, 0},    {PATH_MAX + 1, 0},
					  {2 * PATH_MAX, 0}};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		begin(false);
		world.path_size = sizes[i][0];
		h5_request_fail_on(request, NODE, "unit", -EIO);
		ck_assert_int_eq(world.error, EIO);
		ck_assert_uint_eq(world.logged, 1);
		ck_assert_uint_eq(world.logged_path, sizes[i][1]);
	}
}
END_TEST

UNIT_MAIN("replies", no_place_for_buffers, pages_of_directories, directories_that_fail, open_files, features,
	  errors, access_to_folders, buffers, links, holes, lists_of_attributes, paths_in_the_log)

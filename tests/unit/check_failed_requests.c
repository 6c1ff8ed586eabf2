/* A mount of a file and one of a folder get requests. Each call of a request fails once; the request then
 * replies the error, does nothing else, and leaves the file. */
#include "fuse/operations.h"
#include "fuse/request.h"
#include "fuse/tree_operations.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { NODE = 5 };

static struct {
	struct h5_mount m;
	bool folder;
	enum h5_tree_kind kind;
	int fails, enter_fails, enter_too_fails; /* what the calls return */
	unsigned called, entered, left, logged;
	/* The reply: */
	unsigned replies;
	int error; /* -1: none */
	fuse_ino_t entry;
} world;

static struct h5_vfs *const vfs = (struct h5_vfs *)&world.called;
static struct h5_tree *const tree = (struct h5_tree *)&world.entered;
static struct h5_node *const node = (struct h5_node *)&world.kind;
static struct h5_handle *const handle = (struct h5_handle *)&world.left;
static fuse_req_t const request = (fuse_req_t)&world;

static int call(void)
{
	world.called++;
	return world.fails;
}

static int reply(int error)
{
	world.replies++;
	world.error = error;
	return 0;
}

/* ---- calls that fail ---- */

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define FAILS(name, ...)                                                                                     \
	int __wrap_##name(__VA_ARGS__);                                                                      \
	int __wrap_##name(__VA_ARGS__)                                                                       \
	{                                                                                                    \
		return call();                                                                               \
	}

FAILS(h5_vfs_lookup, struct h5_vfs *of, struct h5_node *n, const char *name, struct h5_vfs_entry *entry)
FAILS(h5_vfs_lookup_id, struct h5_vfs *of, uint64_t id, struct h5_vfs_entry *entry)
FAILS(h5_vfs_lookup_parent, struct h5_vfs *of, uint64_t id, struct h5_vfs_entry *entry)
FAILS(h5_vfs_getattr, struct h5_vfs *of, struct h5_node *n, struct stat *st)
FAILS(h5_vfs_truncate, struct h5_vfs *of, struct h5_node *n, struct h5_handle *h, uint64_t size,
      uint64_t *stale)
FAILS(h5_vfs_write, struct h5_handle *h, uint64_t offset, const void *buf, size_t n,
      enum h5_write_where where, size_t *written, uint64_t *stale)
FAILS(h5_vfs_fallocate, struct h5_handle *h, int mode, uint64_t offset, uint64_t n)
FAILS(h5_vfs_flush, struct h5_handle *h)
FAILS(h5_vfs_fsync, struct h5_handle *h)
FAILS(h5_vfs_fsync_directory, struct h5_vfs *of, const struct h5_node *n)
FAILS(h5_vfs_getxattr, struct h5_vfs *of, struct h5_node *n, const char *name, struct h5_buf *out)
FAILS(h5_vfs_listxattr, struct h5_vfs *of, struct h5_node *n, struct h5_buf *out)
FAILS(h5_vfs_setxattr, struct h5_vfs *of, const struct h5_node *n, const char *name, const char *value,
      size_t size, int flags)
FAILS(h5_vfs_removexattr, struct h5_vfs *of, const struct h5_node *n, const char *name)
FAILS(h5_vfs_mkdir, struct h5_vfs *of, struct h5_node *n, const char *name, struct h5_vfs_entry *entry)
FAILS(h5_vfs_mknod, struct h5_vfs *of, struct h5_node *n, const char *name, struct h5_vfs_entry *entry)
FAILS(h5_vfs_create, struct h5_vfs *of, struct h5_node *n, const char *name, int flags,
      struct h5_vfs_entry *entry, struct h5_handle **h)
FAILS(h5_vfs_symlink, struct h5_vfs *of, const char *target, struct h5_node *n, const char *name,
      struct h5_vfs_entry *entry)
FAILS(h5_vfs_link, struct h5_vfs *of, struct h5_node *n, struct h5_node *parent, const char *name,
      struct h5_vfs_entry *entry)
FAILS(h5_vfs_unlink, struct h5_vfs *of, struct h5_node *n, const char *name)
FAILS(h5_vfs_rmdir, struct h5_vfs *of, struct h5_node *n, const char *name)
FAILS(h5_vfs_rename, struct h5_vfs *of, struct h5_node *n, const char *name, struct h5_node *new_parent,
      const char *new_name, unsigned flags)
FAILS(h5_vfs_readlink, struct h5_node *n, const char **target)
FAILS(h5_vfs_statfs, struct h5_vfs *of, struct statvfs *st)
FAILS(h5_vfs_opendir, struct h5_vfs *of, struct h5_node *n, struct h5_dir **dir)
FAILS(h5_vfs_take_dir, struct h5_vfs *of, struct h5_node *n, struct h5_dir **dir)
FAILS(h5_vfs_hold_file, struct h5_vfs *of, struct h5_node *n, struct h5_handle **h)
FAILS(h5_vfs_dir_rewind, struct h5_dir *dir)
FAILS(h5_vfs_open_file, struct h5_vfs *of, struct h5_node *n, int flags, struct h5_handle **h)
FAILS(h5_vfs_read, struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
FAILS(h5_vfs_seek, struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found)
FAILS(h5_tree_lookup, struct h5_tree *of, struct h5_tree_node *n, const char *name,
      struct h5_tree_entry *entry)
FAILS(h5_tree_getattr, struct h5_tree *of, struct h5_tree_node *n, struct stat *st)
FAILS(h5_tree_readlink, struct h5_tree *of, struct h5_tree_node *n, struct h5_buf *target)
FAILS(h5_tree_statfs, struct h5_tree *of, struct statvfs *st)
FAILS(h5_tree_opendir, struct h5_tree *of, struct h5_tree_node *n, struct h5_tree_dir **dir)
FAILS(h5_tree_readdir, struct h5_tree_dir *dir, uint64_t position, struct h5_tree_name names[H5_TREE_NAMES],
      size_t *got)
FAILS(h5_tree_open_file, struct h5_tree *of, struct h5_tree_node *n, int flags, struct h5_tree_handle **h)
FAILS(h5_tree_read, struct h5_tree_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
FAILS(h5_tree_seek, struct h5_tree_handle *h, uint64_t offset, bool hole, uint64_t *found)
FAILS(h5_tree_getxattr, struct h5_tree *of, const struct h5_tree_node *n, const char *name,
      struct h5_buf *out)
FAILS(h5_tree_listxattr, struct h5_tree *of, const struct h5_tree_node *n, struct h5_buf *out)
FAILS(h5_tree_commit, struct h5_tree *of)

/* ---- replies ---- */

#define REPLIES(name, ...)                                                                                   \
	int __wrap_##name(__VA_ARGS__);                                                                      \
	int __wrap_##name(__VA_ARGS__)                                                                       \
	{                                                                                                    \
		return reply(0);                                                                             \
	}

REPLIES(fuse_reply_attr, fuse_req_t req, const struct stat *st, double timeout)
REPLIES(fuse_reply_buf, fuse_req_t req, const char *data, size_t n)
REPLIES(fuse_reply_create, fuse_req_t req, const struct fuse_entry_param *e, const struct fuse_file_info *fi)
REPLIES(fuse_reply_lseek, fuse_req_t req, off_t offset)
REPLIES(fuse_reply_open, fuse_req_t req, const struct fuse_file_info *fi)
REPLIES(fuse_reply_readlink, fuse_req_t req, const char *target)
REPLIES(fuse_reply_statfs, fuse_req_t req, const struct statvfs *st)
REPLIES(fuse_reply_write, fuse_req_t req, size_t n)
REPLIES(fuse_reply_xattr, fuse_req_t req, size_t n)

int __wrap_fuse_reply_err(fuse_req_t req, int error);
int __wrap_fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e);
void *__wrap_fuse_req_userdata(fuse_req_t req);

int __wrap_fuse_reply_err(fuse_req_t req, int error)
{
	return reply(error);
}

int __wrap_fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e)
{
	world.entry = e->ino;
	return reply(0);
}

void *__wrap_fuse_req_userdata(fuse_req_t req)
{
	ck_assert(req == request);
	return &world.m;
}

/* ---- the file, or the folder ---- */

struct h5_node *__wrap_h5_vfs_node(struct h5_vfs *of, uint64_t id);
struct h5_node *__wrap_h5_vfs_handle_node(const struct h5_handle *h);
void __wrap_h5_vfs_refresh(struct h5_vfs *of);
bool __wrap_h5_vfs_is_passing(struct h5_vfs *of, const struct h5_node *n);
int __wrap_h5_vfs_find_path(struct h5_vfs *of, const struct h5_node *n, struct h5_buf *path);
uint64_t __wrap_h5_vfs_size_limit(struct h5_vfs *of, const struct h5_node *n);
enum h5_tree_kind __wrap_h5_tree_kind(const struct h5_tree_node *n);
struct h5_handle *__wrap_h5_tree_handle_inside(const struct h5_tree_handle *h);
int __wrap_h5_tree_enter(struct h5_tree *of, struct h5_tree_node *n, struct h5_tree_inside *in);
int __wrap_h5_tree_enter_too(struct h5_tree *of, struct h5_tree_node *n, const struct h5_tree_inside *in,
			     struct h5_node **inside);
void __wrap_h5_tree_leave(struct h5_tree *of, const struct h5_tree_inside *in);
void __wrap_h5_tree_path(struct h5_tree *of, const struct h5_tree_node *n, struct h5_buf *path);
void __wrap_h5_log_failure(const char *what, int code, const char *path);

struct h5_node *__wrap_h5_vfs_node(struct h5_vfs *of, uint64_t id)
{
	ck_assert(of == vfs && id == NODE);
	return node;
}

struct h5_node *__wrap_h5_vfs_handle_node(const struct h5_handle *h)
{
	ck_assert_ptr_eq(h, handle);
	return node;
}

void __wrap_h5_vfs_refresh(struct h5_vfs *of)
{
	ck_assert_ptr_eq(of, vfs);
}

bool __wrap_h5_vfs_is_passing(struct h5_vfs *of, const struct h5_node *n)
{
	return true;
}

int __wrap_h5_vfs_find_path(struct h5_vfs *of, const struct h5_node *n, struct h5_buf *path)
{
	return -ENOENT;
}

uint64_t __wrap_h5_vfs_size_limit(struct h5_vfs *of, const struct h5_node *n)
{
	return UINT64_MAX;
}

enum h5_tree_kind __wrap_h5_tree_kind(const struct h5_tree_node *n)
{
	ck_assert_uint_eq((uintptr_t)n, NODE);
	return world.kind;
}

struct h5_handle *__wrap_h5_tree_handle_inside(const struct h5_tree_handle *h)
{
	return handle;
}

int __wrap_h5_tree_enter(struct h5_tree *of, struct h5_tree_node *n, struct h5_tree_inside *in)
{
	ck_assert(of == tree && (uintptr_t)n == NODE);
	if (world.enter_fails)
		return world.enter_fails;
	world.entered++;
	*in = (struct h5_tree_inside){.file = (struct h5_tree_file *)tree, .vfs = vfs, .node = node};
	return 0;
}

int __wrap_h5_tree_enter_too(struct h5_tree *of, struct h5_tree_node *n, const struct h5_tree_inside *in,
			     struct h5_node **inside)
{
	ck_assert(of == tree && in->vfs == vfs);
	*inside = node;
	return world.enter_too_fails;
}

void __wrap_h5_tree_leave(struct h5_tree *of, const struct h5_tree_inside *in)
{
	ck_assert(of == tree && in->vfs == vfs);
	world.left++;
}

void __wrap_h5_tree_path(struct h5_tree *of, const struct h5_tree_node *n, struct h5_buf *path)
{
	h5_buf_add(path, "folder", 6);
}

void __wrap_h5_log_failure(const char *what, int code, const char *path)
{
	ck_assert_int_lt(code, 0);
	world.logged++;
}

/* ---- requests ---- */

static const struct fuse_lowlevel_ops *ops;
static struct fuse_file_info fi;
static struct stat size_one = {.st_size = 1};

static void ask_getattr(void)
{
	ops->getattr(request, NODE, NULL);
}

static void ask_setattr(void)
{
	ops->setattr(request, NODE, &size_one, FUSE_SET_ATTR_SIZE, NULL);
}

static void ask_access(void)
{
	ops->access(request, NODE, R_OK);
}

static void ask_write(void)
{
	ops->write(request, NODE, "some", 4, 0, &fi);
}

static void ask_fallocate(void)
{
	ops->fallocate(request, NODE, 0, 0, 1, &fi);
}

static void ask_fsyncdir(void)
{
	ops->fsyncdir(request, NODE, 0, &fi);
}

static void ask_getxattr(void)
{
	ops->getxattr(request, NODE, "user.a", 10);
}

static void ask_listxattr(void)
{
	ops->listxattr(request, NODE, 10);
}

static void ask_setxattr(void)
{
	ops->setxattr(request, NODE, "user.a", "5", 1, 0);
}

static void ask_removexattr(void)
{
	ops->removexattr(request, NODE, "user.a");
}

static void ask_lookup(void)
{
	ops->lookup(request, NODE, "name");
}

static void ask_mkdir(void)
{
	ops->mkdir(request, NODE, "name", 0755);
}

static void ask_mknod(void)
{
	ops->mknod(request, NODE, "name", S_IFREG | 0644, 0);
}

static void ask_symlink(void)
{
	ops->symlink(request, "target", NODE, "name");
}

static void ask_unlink(void)
{
	ops->unlink(request, NODE, "name");
}

static void ask_rmdir(void)
{
	ops->rmdir(request, NODE, "name");
}

static void ask_create(void)
{
	ops->create(request, NODE, "name", 0644, &fi);
}

static void ask_link(void)
{
	ops->link(request, NODE, NODE, "name");
}

static void ask_rename(void)
{
	ops->rename(request, NODE, "name", NODE, "other", 0);
}

static void ask_fsync(void)
{
	ops->fsync(request, NODE, 0, &fi);
}

static void ask_flush(void)
{
	ops->flush(request, NODE, &fi);
}

static void ask_readlink(void)
{
	ops->readlink(request, NODE);
}

static void ask_statfs(void)
{
	ops->statfs(request, NODE);
}

static void ask_opendir(void)
{
	ops->opendir(request, NODE, &fi);
}

static void ask_readdir(void)
{
	/* Behind the dots of a folder. */
	ops->readdir(request, NODE, 4000, world.m.tree ? 2 : 0, &fi);
}

static void ask_open(void)
{
	ops->open(request, NODE, &fi);
}

static void ask_read(void)
{
	ops->read(request, NODE, 10, 0, &fi);
}

static void ask_lseek(void)
{
	ops->lseek(request, NODE, 0, SEEK_DATA, &fi);
}

/* Those to what is in a file of a folder enter that. */
static void (*const entering[])(void) = {
	ask_getattr,   ask_setattr,  ask_access,      ask_write,  ask_fallocate, ask_fsyncdir, ask_getxattr,
	ask_listxattr, ask_setxattr, ask_removexattr, ask_lookup, ask_mkdir,	 ask_mknod,    ask_symlink,
	ask_unlink,    ask_rmdir,    ask_create,      ask_link,	  ask_rename};
static void (*const others[])(void) = {ask_fsync,   ask_flush, ask_readlink, ask_statfs, ask_opendir,
				       ask_readdir, ask_open,  ask_read,     ask_lseek};
enum { ENTERING = sizeof entering / sizeof *entering, OTHERS = sizeof others / sizeof *others };

static void begin(bool folder, enum h5_tree_kind kind)
{
	memset(&world, 0, sizeof world);
	world.m.readahead = -1;
	world.m.writable = true;
	world.m.tree = folder ? tree : NULL;
	world.m.vfs = folder ? NULL : vfs;
	world.kind = kind;
	world.error = -1;
	ops = folder ? &h5_tree_operations : &h5_operations;
	fi = (struct fuse_file_info){.fh = (uintptr_t)handle};
}

static void check(const char *what, unsigned i, unsigned called, int error)
{
	ck_assert_msg(world.replies == 1 && world.error == error, "%s %u: %u replies, %d", what, i,
		      world.replies, world.error);
	ck_assert_msg(world.called == called && world.logged == (error != 0), "%s %u: %u calls", what, i,
		      world.called);
	ck_assert_uint_eq(world.left, world.entered);
}

START_TEST(requests_to_a_file)
{
	for (unsigned i = 0; i < ENTERING + OTHERS; i++) {
		begin(false, H5_TREE_INSIDE);
		world.fails = -EIO;
		(i < ENTERING ? entering[i] : others[i - ENTERING])();
		check("file", i, 1, EIO);
		ck_assert_uint_eq(world.entered, 0);
	}
	/* By number. */
	for (unsigned i = 1; i <= 2; i++) {
		begin(false, H5_TREE_INSIDE);
		world.fails = -ESTALE;
		ops->lookup(request, NODE, i == 1 ? "." : "..");
		check("number", i, 1, ESTALE);
	}
	/* The kernel may remember that there is no such name. */
	begin(false, H5_TREE_INSIDE);
	world.fails = -ENOENT;
	world.entry = 1;
	ask_lookup();
	check("name", 0, 1, 0);
	ck_assert_uint_eq(world.entry, 0);
}
END_TEST

/* The kernel reads files and directories that it has not opened. */
START_TEST(files_that_are_not_opened)
{
	static void (*const asked[])(void) = {ask_read, ask_lseek, ask_readdir};

	for (unsigned i = 0; i < 3; i++) {
		begin(false, H5_TREE_INSIDE);
		world.m.without_open = world.m.without_opendir = true;
		fi.fh = 0;
		world.fails = -EIO;
		asked[i]();
		check("not opened", i, 1, EIO);
	}
}
END_TEST

START_TEST(requests_to_a_folder)
{
	for (unsigned i = 0; i < ENTERING + OTHERS; i++) {
		begin(true, H5_TREE_INSIDE);
		world.fails = -EIO;
		(i < ENTERING ? entering[i] : others[i - ENTERING])();
		check("folder", i, 1, EIO);
		ck_assert_uint_eq(world.entered, i < ENTERING);
	}
	/* To the folder itself. */
	begin(true, H5_TREE_FOLDER);
	world.fails = -EIO;
	ask_lookup();
	check("lookup", 0, 1, EIO);
	begin(true, H5_TREE_FOLDER);
	world.fails = -EIO;
	ask_getattr();
	check("getattr", 0, 1, EIO);
	begin(true, H5_TREE_FOLDER);
	world.fails = -EIO;
	ask_fsyncdir();
	check("fsyncdir", 0, 1, EIO);
	begin(true, H5_TREE_PLAIN);
	world.fails = -EIO;
	ask_getxattr();
	check("getxattr", 0, 1, EIO);
	begin(true, H5_TREE_PLAIN);
	world.fails = -EIO;
	ask_listxattr();
	check("listxattr", 0, 1, EIO);
}
END_TEST

/* Nothing is asked of a file that cannot be opened: there is none. */
START_TEST(files_that_cannot_be_entered)
{
	for (unsigned i = 0; i < ENTERING; i++) {
		begin(true, H5_TREE_INSIDE);
		world.enter_fails = -EIO;
		entering[i]();
		check("enter", i, 0, EIO);
	}
	for (unsigned i = 0; i < 2; i++) {
		begin(true, H5_TREE_INSIDE);
		world.enter_too_fails = -EXDEV;
		(i ? ask_rename : ask_link)();
		check("two files", i, 0, EXDEV);
		ck_assert_uint_eq(world.entered, 1);
	}
}
END_TEST

UNIT_MAIN("failed_requests", requests_to_a_file, files_that_are_not_opened, requests_to_a_folder,
	  files_that_cannot_be_entered)

/* Requests of a mount for writing, without a kernel that keeps some of them away: what is refused, with which
 * error, and that it leaves all as it was. */
#include "base/error.h"
#include "change/new_file.h"
#include "change/open.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "object/group_write.h"
#include "scratch.h"
#include "vfs/private.h"
#include "vfs_digest.h"
#include "vfs_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NOREPLACE = 1, EXCHANGE = 2 };

static struct vfs_scene scene;
static char other_path[512];

static void open_file(const char *path, bool writable, const char *subdir)
{
	const struct h5_file_set_options options = {.block_cache = 8 << 20,
						    .chunk_cache = 8 << 20,
						    .external = H5_EXTERNAL_BENEATH,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = writable,
						    .check = h5_vfs_check_object};
	const struct h5_vfs_options vfs = {
		.writable = writable, .subdir = subdir, .gather = 1 << 20, .file_fd = -1};

	SUCCEEDS(h5_open_file(path, &options, &scene.set, NULL));
	SUCCEEDS(h5_vfs_open(scene.set, &vfs, &scene.vfs));
}

static void close_file(void)
{
	SUCCEEDS(h5_vfs_finish(scene.vfs));
	h5_vfs_close(scene.vfs);
	h5_file_set_close(scene.set);
}

static void forget(struct h5_node *node)
{
	if (node != h5_vfs_root(scene.vfs))
		h5_vfs_forget(scene.vfs, node, 1);
}

static struct h5_node *find(const char *path)
{
	struct h5_node *node = h5_vfs_root(scene.vfs);

	if (*path)
		ck_assert_msg(!vfs_scene_find(&scene, path, &node), "%s", path);
	return node;
}

/* The directory of a path, and the last name in it. */
static struct h5_node *find_parent(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[512] = "";

	if (slash)
		snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
	*name = slash ? slash + 1 : path;
	return find(parent);
}

/* ---- faults ---- */

static struct {
	unsigned long n; /* which allocation, or call to read, of the next request fails; 0: none */
	bool reads;
	bool fired; /* it has failed */
} fault;

static void fault_begin(void)
{
	if (!fault.n)
		return;
	vfs_scene_empty_caches(&scene);
	if (fault.reads)
		fault_call_arm(CALL_FAILS, fault.n, false);
	else
		fault_alloc_arm(fault.n);
	fault_alloc_count(true);
}

static void fault_end(void)
{
	fault_alloc_count(false);
	fault.fired = fault.n && (fault.reads ? fault_call_disarm() : fault_alloc_disarm());
	fault.n = 0;
}

/* ---- requests ---- */

struct request {
	const char *what, *path;
	const char *second; /* the other path, the target or the attribute */
	const char *value;
	unsigned flags, size;
	int error;
};

/* What the other path leads to, or its directory and last name. */
static struct h5_node *second_node, *second_parent;
static const char *second_name;

static int write_value(const struct request *r, struct h5_handle *handle)
{
	const size_t n = r->size ? r->size : strlen(r->value);
	uint64_t stale;
	size_t written;
	int rc = h5_vfs_write(handle, 0, r->value, n, H5_WRITE_APPEND, &written, &stale);

	return rc ? rc : h5_vfs_flush(handle);
}

static int do_open(const struct request *r, struct h5_node *node)
{
	struct h5_handle *handle;
	int rc = h5_vfs_open_file(scene.vfs, node, (int)r->flags, &handle);

	if (rc)
		return rc;
	if (r->value)
		rc = write_value(r, handle);
	h5_vfs_close_file(handle);
	return rc;
}

static int do_create(const struct request *r, struct h5_node *parent, const char *name)
{
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	int rc = h5_vfs_create(scene.vfs, parent, name, (int)r->flags, &entry, &handle);

	if (rc)
		return rc;
	if (r->value)
		rc = write_value(r, handle);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	return rc;
}

static int do_opendir(struct h5_node *node)
{
	struct h5_dir *dir;
	int rc = h5_vfs_opendir(scene.vfs, node, &dir);

	if (!rc)
		h5_vfs_closedir(dir);
	return rc;
}

/* Requests about what is at the path. 1: it is no such request. */
static int ask_about(const struct request *r, struct h5_node *node)
{
	const char *value = r->value ? r->value : "";
	const size_t size = r->size ? r->size : strlen(value);
	uint64_t stale;

	if (!strcmp(r->what, "set"))
		return h5_vfs_setxattr(scene.vfs, node, r->second, value, size, (int)r->flags);
	if (!strcmp(r->what, "remove"))
		return h5_vfs_removexattr(scene.vfs, node, r->second);
	if (!strcmp(r->what, "open"))
		return do_open(r, node);
	if (!strcmp(r->what, "truncate"))
		return h5_vfs_truncate(scene.vfs, node, NULL, r->size, &stale);
	if (!strcmp(r->what, "readlink"))
		return h5_vfs_readlink(node, &value);
	return !strcmp(r->what, "opendir") ? do_opendir(node) : 1;
}

/* Requests that make a name. 1: it is no such request. */
static int make(const struct request *r, struct h5_node *parent, const char *name)
{
	struct h5_vfs_entry entry = {0};
	int rc;

	if (!strcmp(r->what, "mkdir")) {
		rc = h5_vfs_mkdir(scene.vfs, parent, name, &entry);
	} else if (!strcmp(r->what, "mknod")) {
		rc = h5_vfs_mknod(scene.vfs, parent, name, &entry);
	} else if (!strcmp(r->what, "lookup")) {
		rc = h5_vfs_lookup(scene.vfs, parent, name, &entry);
	} else if (!strcmp(r->what, "symlink")) {
		rc = h5_vfs_symlink(scene.vfs, r->second, parent, name, &entry);
	} else if (!strcmp(r->what, "link")) {
		rc = h5_vfs_link(scene.vfs, second_node, parent, name, &entry);
	} else {
		return 1;
	}
	if (!rc)
		h5_vfs_forget(scene.vfs, entry.node, 1);
	return rc;
}

static int do_rename(const struct request *r, struct h5_node *parent, const char *name)
{
	int rc = h5_vfs_rename(scene.vfs, parent, name, second_parent, second_name, r->flags);

	if (rc == -ESTALE) /* the kernel asks again */
		rc = h5_vfs_rename(scene.vfs, parent, name, second_parent, second_name, r->flags);
	return rc;
}

static int ask_in(const struct request *r, struct h5_node *parent, const char *name)
{
	int rc = make(r, parent, name);

	if (rc <= 0)
		return rc;
	if (!strcmp(r->what, "create"))
		return do_create(r, parent, name);
	if (!strcmp(r->what, "unlink"))
		return h5_vfs_unlink(scene.vfs, parent, name);
	if (!strcmp(r->what, "rmdir"))
		return h5_vfs_rmdir(scene.vfs, parent, name);
	ck_assert_str_eq(r->what, "rename");
	return do_rename(r, parent, name);
}

static int ask(const struct request *r)
{
	static const char *const about[] = {"set", "remove", "open", "truncate", "readlink", "opendir"};
	const char *name = NULL;
	struct h5_node *node;
	int rc;

	h5_error_clear();
	for (unsigned i = 0; i < sizeof about / sizeof *about; i++)
		if (!strcmp(about[i], r->what)) {
			node = find(r->path);
			fault_begin();
			rc = ask_about(r, node);
			fault_end();
			forget(node);
			return rc;
		}
	node = find_parent(r->path, &name);
	second_parent = !strcmp(r->what, "rename") ? find_parent(r->second, &second_name) : NULL;
	second_node = !strcmp(r->what, "link") ? find(r->second) : NULL;
	fault_begin();
	rc = ask_in(r, node, name);
	fault_end();
	if (second_parent)
		forget(second_parent);
	if (second_node)
		forget(second_node);
	forget(node);
	return rc;
}

#define ASK(...)                                                                                             \
	do {                                                                                                 \
		const struct request request_ = {__VA_ARGS__, .error = 0};                                   \
		int rc_ = ask(&request_);                                                                    \
		ck_assert_msg(!rc_, "%s %s: %s: %s", request_.what, request_.path, strerror(-rc_),           \
			      h5_error_last()->text);                                                        \
	} while (0)

static uint64_t digest(void)
{
	uint64_t d;

	SUCCEEDS(vfs_digest(scene.vfs, &d));
	return d;
}

/* Writes all of a file. */
static void write_file(const char *path, int flags, const void *data, size_t n)
{
	struct h5_node *node = find(path);
	struct h5_handle *handle;
	uint64_t stale;
	size_t written;

	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, flags, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, data, n, H5_WRITE_AT, &written, &stale));
	ck_assert_uint_eq(written, n);
	SUCCEEDS(h5_vfs_flush(handle));
	h5_vfs_close_file(handle);
	forget(node);
}

static void check_bytes(const char *path, const void *data, size_t n)
{
	struct h5_node *node = find(path);
	struct h5_handle *handle;
	uint8_t bytes[512];
	size_t got;

	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	SUCCEEDS(h5_vfs_read(handle, 0, bytes, sizeof bytes, &got));
	ck_assert_uint_eq(got, n);
	ck_assert(!memcmp(bytes, data, n));
	h5_vfs_close_file(handle);
	forget(node);
}

/* ---- the file, and one beside it ---- */

static const int32_t elements[6] = {1, 2, 3, 40, 50, 60};
static char longest[256], too_long[257]; /* file names */
static char npy[128 + 12];		 /* a file of three elements */
static char too_long_attribute[300], too_long_npy[300];

static void begin(void)
{
	memset(longest, 'n', sizeof longest - 1);
	memset(too_long, 'n', sizeof too_long - 1);
	snprintf(too_long_attribute, sizeof too_long_attribute, ".h5fs/attrs/data/%s", too_long);
	snprintf(too_long_npy, sizeof too_long_npy, ".h5fs/npy/%.252s.npy", too_long);
	memset(npy, ' ', 128);
	memcpy(npy, "\x93NUMPY\1\0\x76\0{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 10 + 57);
	npy[127] = '\n';
	memcpy(npy + 128, elements, 12);
	snprintf(other_path, sizeof other_path, "%s/other.h5", scratch_folder());
	SUCCEEDS(h5_new_file_make(other_path, 3, 1));
	open_file(other_path, true, NULL);
	ASK("mkdir", "below");
	ASK("mknod", "file");
	close_file();
	snprintf(scene.path, sizeof scene.path, "%s/main.h5", scratch_folder());
	SUCCEEDS(h5_new_file_make(scene.path, 3, 1));
	open_file(scene.path, true, NULL);
	ASK("mkdir", "group");
	ASK("mkdir", "group/sub");
	ASK("mkdir", "empty");
	ASK("mknod", "group/file");
	write_file("group/file", O_WRONLY, "some bytes", 10);
	ASK("link", "group/again", "group/file");
	ASK("mknod", "data");
	ASK("set", "data", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":\"6\",\"maxshape\":\"inf\"}");
	write_file("data", O_WRONLY, elements, sizeof elements);
	ASK("mknod", "fixed");
	ASK("set", "fixed", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":\"6\",\"maxshape\":\"6\"}");
	write_file("fixed", O_WRONLY, elements, sizeof elements);
	ASK("mknod", "new");
	ASK("mknod", "declared");
	ASK("set", "declared", "h5fs.dtype", "<i4");
	ASK("set", "data", "user.number", "5");
	ASK("set", "data", "user.text", "words");
	ASK("set", "group", "user.text", "words");
	ASK("symlink", "soft", "group/file");
	ASK("symlink", "into", "group/sub");
	ASK("symlink", "outside", "extlink:other.h5//");
	ASK("symlink", "far", "extlink:other.h5//file");
	SUCCEEDS(h5_vfs_commit(scene.vfs));
}

static void end(void)
{
	close_file();
	ck_assert_int_eq(unlink(scene.path), 0);
	ck_assert_int_eq(unlink(other_path), 0);
}

/* ---- what is refused ---- */

static void check_refused(const struct request *r)
{
	const uint64_t before = digest();
	int rc = ask(r);

	ck_assert_msg(rc == r->error, "%s %s %s %s: %s, not %s", r->what, r->path, r->second ? r->second : "",
		      r->value ? r->value : "", strerror(-rc), strerror(-r->error));
	ck_assert_msg(digest() == before, "%s %s %s has changed something", r->what, r->path,
		      r->second ? r->second : "");
}

static const struct request refused[] = {
	/* names */
	{"lookup", "data/x", .error = -ENOTDIR},
	{"lookup", "group/none", .error = -ENOENT},
	{"opendir", "data", .error = -ENOTDIR},
	{"readlink", "data", .error = -EINVAL},
	{"readlink", "group", .error = -EINVAL},
	{"mkdir", "data/x", .error = -ENOTDIR},
	{"mkdir", "group/sub", .error = -EEXIST},
	{"mkdir", "group/%2Ex", .error = -EINVAL},
	{"mkdir", "outside/x", .error = -EROFS},
	{"mkdir", ".h5fs/x", .error = -EPERM},
	{"mkdir", ".h5fs/csv/x", .error = -EPERM},
	{"mknod", "data/x", .error = -ENOTDIR},
	{"mknod", "data", .error = -EEXIST},
	{"create", "data", .flags = O_WRONLY | O_EXCL, .error = -EEXIST},
	{"create", "group", .flags = O_WRONLY, .error = -EISDIR},
	{"create", "outside/file", .flags = O_WRONLY | O_EXCL, .error = -EROFS},
	{"create", ".h5fs/npy/data.npy", .flags = O_WRONLY | O_EXCL, .error = -EEXIST},
	{"create", ".h5fs/npy/group.npy", .flags = O_WRONLY | O_EXCL, .error = -EEXIST},
	{"create", ".h5fs/npy/outside.npy", .flags = O_WRONLY | O_EXCL, .error = -EEXIST},
	{"create", ".h5fs/npy/x.txt", .flags = O_WRONLY, .error = -EINVAL},
	{"unlink", "group", .error = -EISDIR},
	{"unlink", "none", .error = -ENOENT},
	{"unlink", "outside/file", .error = -EROFS},
	{"unlink", ".h5fs/npy/data.npy", .error = -EPERM},
	{"unlink", ".h5fs/npy", .error = -EPERM},
	{"unlink", ".h5fs/attrs/group", .error = -EISDIR},
	{"unlink", ".h5fs/attrs/soft", .error = -EPERM},
	{"unlink", ".h5fs/npy/into", .error = -EPERM},
	{"rename", ".h5fs/npy/into", ".h5fs/npy/x.npy", .error = -EPERM},
	{"rename", ".h5fs/attrs/soft", ".h5fs/attrs/x", .error = -EPERM},
	{"unlink", ".h5fs/attrs/group/none", .error = -ENOENT},
	{"rmdir", "data", .error = -ENOTDIR},
	{"rmdir", "soft", .error = -ENOTDIR},
	{"rmdir", "none", .error = -ENOENT},
	{"rmdir", "group", .error = -ENOTEMPTY},
	{"rmdir", "outside/below", .error = -EROFS},
	{"rmdir", ".h5fs/csv", .error = -EPERM},
	{"link", "group/x", "group", .error = -EPERM},
	{"link", "group/x", "soft", .error = -EPERM},
	{"link", "group/x", "far", .error = -EXDEV},
	{"link", "group/x", "outside", .error = -EPERM},
	{"link", "group/x", ".h5fs/npy/data.npy", .error = -EPERM},
	{"link", "group/file", "data", .error = -EEXIST},
	{"link", "outside/x", "data", .error = -EROFS},
	{"symlink", "group/file", "x", .error = -EEXIST},
	{"symlink", "x", "/data", .error = -EPERM},
	{"symlink", "x", "../data", .error = -EPERM},
	{"symlink", "group/x", "../../data", .error = -EPERM},
	{"symlink", "x", "group/%2Ex", .error = -EINVAL},
	{"symlink", "x", "extlink://data", .error = -EINVAL},
	{"symlink", "x", too_long, .error = -ENAMETOOLONG},
	{"symlink", "outside/x", "data", .error = -EROFS},
	{"lookup", too_long, .error = -ENAMETOOLONG},
	{"mkdir", too_long, .error = -ENAMETOOLONG},
	{"mknod", too_long, .error = -ENAMETOOLONG},
	{"create", too_long, .flags = O_WRONLY, .error = -ENAMETOOLONG},
	{"symlink", too_long, "data", .error = -ENAMETOOLONG},
	{"link", too_long, "data", .error = -ENAMETOOLONG},
	{"unlink", too_long, .error = -ENAMETOOLONG},
	{"rmdir", too_long, .error = -ENAMETOOLONG},
	{"rename", too_long, "x", .error = -ENAMETOOLONG},
	{"rename", "data", too_long, .error = -ENAMETOOLONG},
	{"create", too_long_attribute, .flags = O_WRONLY, .error = -ENAMETOOLONG},
	{"create", too_long_npy, .flags = O_WRONLY, .error = -ENAMETOOLONG},
	{"mkdir", "ends in a mark%~0123456789abcdef", .error = -EINVAL},
	{"set", "data", "user.ends in a mark%~0123456789abcdef", "5", .error = -EINVAL},
	{"create", ".h5fs/attrs/data/ends in a mark%~0123456789abcdef", .flags = O_WRONLY, .error = -EINVAL},
	{"create", ".h5fs/npy/ends in a mark%~0123456789abcdef.npy", .flags = O_WRONLY, .error = -EINVAL},
	{"create", ".h5fs/attrs/data/%", .flags = O_WRONLY, .error = -EINVAL},
	/* renames */
	{"rename", "none", "x", .error = -ENOENT},
	{"rename", "data", "x", .flags = 4, .error = -EINVAL},
	{"rename", "data", "x", .flags = NOREPLACE | EXCHANGE, .error = -EINVAL},
	{"rename", "data", "fixed", .flags = NOREPLACE, .error = -EEXIST},
	{"rename", "data", "none", .flags = EXCHANGE, .error = -ENOENT},
	{"rename", "data", "%2Ex", .error = -EINVAL},
	{"rename", "empty", "data", .error = -ENOTDIR},
	{"rename", "data", "empty", .error = -EISDIR},
	{"rename", "empty", "group", .error = -ENOTEMPTY},
	{"rename", "group", "group/sub/x", .error = -EINVAL},
	{"rename", "group", "group/sub", .flags = EXCHANGE, .error = -EINVAL},
	{"rename", "group/sub", "group", .flags = EXCHANGE, .error = -EINVAL},
	{"rename", "group/file", "group/again", .error = 0},
	{"rename", "group/file", "group/again", .flags = EXCHANGE, .error = 0},
	{"rename", "group/file", "group/file", .error = 0},
	{"rename", "data", "outside/x", .error = -EXDEV},
	{"rename", "outside/file", "x", .error = -EXDEV},
	{"rename", "outside/file", "outside/x", .error = -EROFS},
	{"rename", ".h5fs/npy/data.npy", "x", .error = -EPERM},
	{"rename", ".h5fs/npy/data.npy", ".h5fs/csv/x.csv", .error = -EPERM},
	{"rename", ".h5fs/npy/data.npy", ".h5fs/npy/x.npy", .flags = NOREPLACE, .error = -EINVAL},
	{"rename", ".h5fs/npy/data.npy", ".h5fs/npy/x.txt", .error = -EPERM},
	{"rename", ".h5fs/attrs/data/text", ".h5fs/attrs/data/x", .error = -EPERM},
	{"rename", ".h5fs/csv", ".h5fs/x", .error = -EPERM},
	/* contents */
	{"open", "group", .flags = O_RDONLY, .error = -EISDIR},
	{"open", "group", .flags = O_WRONLY, .error = -EISDIR},
	{"open", "soft", .flags = O_RDONLY, .error = -ELOOP},
	{"open", "far", .flags = O_WRONLY, .error = -EPERM},
	{"open", ".h5fs/json/data.json", .flags = O_WRONLY, .error = -EPERM},
	{"open", ".h5fs/npy/data.npy", .flags = O_RDWR, .error = -EPERM},
	{"truncate", "group", .size = 0, .error = -EISDIR},
	{"truncate", "fixed", .size = 4, .error = -EPERM},
	{"truncate", "data", .size = 6, .error = -EINVAL},
	{"truncate", "far", .size = 6, .error = -EPERM},
	{"truncate", "soft", .size = 6, .error = -EPERM},
	/* attributes */
	{"set", "data", "user.", "5", .error = -EINVAL},
	{"set", "data", "trusted.x", "5", .error = -EPERM},
	{"set", "data", "h5fs.nonsense", "5", .error = -EPERM},
	{"set", "data", "user.new", "5", .flags = XATTR_REPLACE, .error = -ENODATA},
	{"set", "data", "user.number", "6", .flags = XATTR_CREATE, .error = -EEXIST},
	{"set", "data", "h5fs.shape", "7", .flags = XATTR_CREATE, .error = -EEXIST},
	{"set", "data", "h5fs.raw.new", "x", .error = -ENODATA},
	{"set", "data", "h5fs.raw.number", "123", .error = -EINVAL},
	{"set", "data", "user.number", "words", .error = -EINVAL},
	{"set", "data", "h5fs.type.text", "<i4", .error = -EINVAL},
	{"set", "data", "h5fs.type.new", "nonsense", .error = -EINVAL},
	{"set", "data", "h5fs.type.new", "(65537,)u1", .error = -E2BIG},
	{"set", "data", "h5fs.type.new", "(4611686018427387904,)<i8", .error = -E2BIG},
	{"set", "soft", "user.new", "5", .error = -EPERM},
	{"set", "far", "user.new", "5", .error = -EROFS},
	{"set", ".h5fs/npy/data.npy", "user.new", "5", .error = -EPERM},
	{"set", ".h5fs", "user.new", "5", .error = -EPERM},
	{"remove", "data", "user.none", .error = -ENODATA},
	{"remove", "data", "h5fs.type.text", .error = -EPERM},
	{"remove", "data", "h5fs.shape", .error = -EPERM},
	{"remove", "data", "trusted.x", .error = -EPERM},
	{"remove", "far", "user.x", .error = -EROFS},
	/* declarations */
	{"set", "group", "h5fs.shape", "4", .error = -EPERM},
	{"set", "data", "h5fs.dtype", "<i8", .error = -EBUSY},
	{"set", "group/file", "h5fs.dtype", "<i8", .error = -EBUSY},
	{"set", "data", "h5fs.comment", "a\0b", .size = 3, .error = -EINVAL},
	{"set", "new", "h5fs.shape", "4\0", .size = 2, .error = -EINVAL},
	{"set", "new", "h5fs.info", "[4]", .error = -EINVAL},
	{"set", "new", "h5fs.info", "{", .error = -EINVAL},
	{"set", "new", "h5fs.info", "{\"colour\":\"red\"}", .error = -EINVAL},
	{"set", "new", "h5fs.info", "{\"shape\":[4]}", .error = -EINVAL},
	{"set", "new", "h5fs.info", "{\"shape\":null}", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "4,", .error = -EINVAL},
	{"set", "new", "h5fs.shape", ",4", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "4,,4", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "4x", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "4 ,4", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "-4", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "inf", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "9223372036854775808", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "18446744073709551616", .error = -EINVAL},
	{"set", "new", "h5fs.shape", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
	 .error = -EINVAL},
	{"set", "new", "h5fs.info", "{\"shape\":\"4\",\"maxshape\":\"4,4\"}", .error = -EINVAL},
	{"set", "new", "h5fs.info", "{\"shape\":\"4\",\"chunks\":\"2,2\"}", .error = -EINVAL},
	{"set", "new", "h5fs.info", "{\"dtype\":\"<i4\",\"fill\":\"words\"}", .error = -EINVAL},
	{"set", "new", "h5fs.dtype", "nonsense", .error = -EINVAL},
	{"set", "new", "h5fs.filters", "nonsense", .error = -ENOTSUP},
	{"set", "data", "h5fs.shape", "6,6", .error = -EINVAL},
	{"set", "fixed", "h5fs.shape", "7", .error = -EINVAL},
};

START_TEST(contents)
{
	check_bytes("data", elements, sizeof elements);
}
END_TEST

START_TEST(refusals)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		check_refused(&refused[i]);
}
END_TEST

/* The largest of what is accepted. */
START_TEST(limits)
{
	struct h5_buf value;
	struct h5_node *node;

	ASK("mkdir", longest);
	ASK("rename", longest, "short");
	ASK("rename", "short", longest);
	ASK("rmdir", longest);
	ASK("symlink", "x", longest);
	ASK("set", "data", "h5fs.type.zeros", "(65536,)u1");
	ASK("set", "new", "h5fs.shape", "9223372036854775807");
	node = find("new");
	h5_buf_init(&value, 1 << 16);
	SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, "h5fs.shape", &value));
	ck_assert_uint_eq(value.size, 19);
	ck_assert(!memcmp(value.data, "9223372036854775807", 19));
	h5_buf_release(&value);
	forget(node);
	ASK("set", "new", "h5fs.shape", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
}
END_TEST

/* An array takes the place of one of the same type. A dataset that cannot have so many elements gets the
 * shape of a new one. */
START_TEST(arrays_of_other_sizes)
{
	static const char *const files[] = {"fixed", "data", "chunked"};
	const struct request put = {
		.what = "open", .flags = O_WRONLY | O_TRUNC, .value = npy, .size = sizeof npy};

	ASK("mknod", "chunked");
	ASK("set", "chunked", "h5fs.info",
	    "{\"dtype\":\"<i4\",\"shape\":\"2\",\"maxshape\":\"2\",\"chunks\":\"2\"}");
	write_file("chunked", O_WRONLY, elements, 8);
	for (unsigned i = 0; i < 3; i++) {
		struct request r = put;
		char path[64];

		snprintf(path, sizeof path, ".h5fs/npy/%s.npy", files[i]);
		r.path = path;
		ck_assert_int_eq(ask(&r), 0);
		check_bytes(files[i], elements, 12);
	}
}
END_TEST

/* ---- mounts for reading, and of a group ---- */

START_TEST(mounts_for_reading)
{
	static const struct request changes[] = {
		{"mkdir", "x", .error = -EROFS},
		{"mknod", "x", .error = -EROFS},
		{"create", "x", .flags = O_WRONLY, .error = -EROFS},
		{"symlink", "x", "data", .error = -EROFS},
		{"link", "x", "data", .error = -EROFS},
		{"unlink", "data", .error = -EROFS},
		{"unlink", "data~", .error = -EROFS},
		{"unlink", ".h5fs/attrs/data/text", .error = -EROFS},
		{"rmdir", "empty", .error = -EROFS},
		{"rename", "data", "x", .error = -EROFS},
		{"rename", ".h5fs/npy/data.npy", ".h5fs/npy/x.npy", .error = -EROFS},
		{"create", ".h5fs/npy/x.npy", .flags = O_WRONLY, .error = -EROFS},
		{"open", ".h5fs/npy/data.npy", .flags = O_WRONLY, .error = -EROFS},
		{"open", "data", .flags = O_WRONLY, .error = -EROFS},
		{"open", "data", .flags = O_RDWR, .error = -EROFS},
		{"open", "data", .flags = O_RDONLY | O_TRUNC, .error = -EROFS},
		{"truncate", "data", .size = 4, .error = -EROFS},
		{"truncate", "group", .size = 4, .error = -EROFS},
		{"set", "data", "user.number", "6", .error = -EROFS},
		{"set", "data", "h5fs.shape", "6", .error = -EROFS},
		{"remove", "data", "user.number", .error = -EROFS},
	};
	struct h5_handle *handle;
	struct h5_node *node;
	struct stat st;
	size_t written;
	uint64_t stale;

	close_file();
	open_file(scene.path, false, NULL);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		check_refused(&changes[i]);
	node = find("data");
	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0444);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	ck_assert_int_eq(h5_vfs_write(handle, 0, "x", 1, H5_WRITE_AT, &written, &stale), -EBADF);
	ck_assert_int_eq(h5_vfs_fallocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4), -EBADF);
	ck_assert_int_eq(h5_vfs_flush(handle), 0);
	ck_assert_int_eq(h5_vfs_fsync(handle), 0);
	h5_vfs_close_file(handle);
	forget(node);
	ck_assert_int_eq(h5_vfs_fsync_directory(scene.vfs, h5_vfs_root(scene.vfs)), 0);
	ck_assert_int_eq(h5_vfs_commit(scene.vfs), 0);
	ck_assert_int_eq(h5_vfs_give_back(scene.vfs), 0);
	check_bytes("data", elements, sizeof elements);
}
END_TEST

/* Opens the file in the set with a group as the root. */
static int open_group(const char *subdir)
{
	const struct h5_vfs_options options = {
		.writable = true, .subdir = subdir, .gather = 1 << 20, .file_fd = -1};

	return h5_vfs_open(scene.set, &options, &scene.vfs);
}

START_TEST(mounts_of_groups)
{
	static const struct {
		const char *subdir;
		int error;
	} bad[] = {{"none", -ENOENT},	 {"data", -ENOTDIR},	     {"group/file", -ENOTDIR},
		   {"outside", -ENOENT}, {"outside/below", -ENOENT}, {"group/none", -ENOENT}};
	struct h5_file *file = scene.vfs->file;
	const struct h5_link up = {.type = H5_LINK_HARD,
				   .address = h5_file_superblock(file)->root,
				   .name = "up",
				   .name_size = 2};
	struct h5_node *node = find("group");
	const uint64_t group = node->entity.address;

	forget(node);
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_group_insert(file, group, &up)));
	SUCCEEDS(h5_vfs_finish(scene.vfs));
	h5_vfs_close(scene.vfs);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_int_eq(open_group(bad[i].subdir), bad[i].error);
	SUCCEEDS(open_group("group"));
	ck_assert_uint_eq(scene.vfs->root->entity.address, group);
	/* The root group of the file, which is not empty either. */
	check_refused(&(struct request){"rmdir", "up", .error = -EBUSY});
	check_refused(&(struct request){"rename", "sub", "up", .error = -EBUSY});
	check_refused(&(struct request){"symlink", "x", "../data", .error = -EPERM});
	ASK("symlink", "sub/x", "../file");
}
END_TEST

/* ---- names that are too long for a file name ---- */

static void read_target(const char *path, char target[512])
{
	struct h5_node *node = find(path);
	const char *text;

	SUCCEEDS(h5_vfs_readlink(node, &text));
	snprintf(target, 512, "%s", text);
	forget(node);
}

/* The target of the soft link in the group, as the file has it. */
static void stored_target(uint64_t address, const char *name, char target[1024])
{
	const struct h5_object *group;
	struct h5_link link = {0};
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(scene.vfs->file, address, &ref, &group));
	SUCCEEDS(h5_group_lookup(scene.vfs->file, group, name, strlen(name), &link));
	ck_assert_int_eq(link.type, H5_LINK_SOFT);
	snprintf(target, 1024, "%.*s", (int)link.target_size, link.target);
	h5_link_release(&link);
	h5_file_put(scene.vfs->file, ref);
}

static uint64_t address_of(const char *path)
{
	struct h5_node *node = find(path);
	uint64_t address = node->entity.address;

	forget(node);
	return address;
}

/* A symlink that leads up is stored as a path from the root, with the whole names of its directories. */
START_TEST(symlinks_in_directories_with_cut_names)
{
	char name[301] = "", cut[300] = "", path[400], target[1024], expected[1024];
	struct h5_file *file = scene.vfs->file;
	const uint64_t root = h5_file_superblock(file)->root;
	struct h5_link link = {.type = H5_LINK_HARD, .name = name, .name_size = 300};
	struct h5_dir *dir;
	uint64_t sub;

	ASK("mkdir", "long");
	ASK("mkdir", "long/sub");
	link.address = address_of("long");
	sub = address_of("long/sub");
	memset(name, 'y', 300);
	h5_unit_begin(file);
	SUCCEEDS(h5_group_remove(file, root, "long", 4));
	SUCCEEDS(h5_unit_end(file, h5_group_insert(file, root, &link)));
	SUCCEEDS(h5_vfs_finish(scene.vfs));
	h5_vfs_close(scene.vfs);
	SUCCEEDS(open_group(NULL));
	SUCCEEDS(h5_vfs_opendir(scene.vfs, h5_vfs_root(scene.vfs), &dir));
	for (size_t i = 0; i < h5_vfs_dir_count(dir); i++)
		if (*h5_vfs_dir_name(dir, i) == 'y')
			snprintf(cut, sizeof cut, "%s", h5_vfs_dir_name(dir, i));
	h5_vfs_closedir(dir);
	snprintf(path, sizeof path, "%s/sub/up", cut);
	ASK("symlink", path, "../file");
	stored_target(sub, "up", target);
	snprintf(expected, sizeof expected, "/%s/file", name);
	ck_assert_str_eq(target, expected);
	read_target(path, target);
	ck_assert_str_eq(target, "../file");
}
END_TEST

/* ---- declarations ---- */

static void check_property(const char *path, const char *name, const char *expected)
{
	struct h5_node *node = find(path);
	struct h5_buf value;

	h5_buf_init(&value, 1 << 16);
	SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, name, &value));
	ck_assert_msg(value.size == strlen(expected) && !memcmp(value.data, expected, value.size),
		      "%s of %s is %.*s, not %s", name, path, (int)value.size,
		      value.size ? (const char *)value.data : "", expected);
	h5_buf_release(&value);
	forget(node);
}

/* What is said of a dataset counts until something else is said. */
START_TEST(declarations)
{
	static const int32_t sevens[5] = {7, 7, 7, 7, 7}, zeros[5];
	static const double reals[2] = {1.5, 1.5};

	/* Numbers of JSON are numbers, and what cannot be set is left out. */
	ASK("set", "new", "h5fs.info",
	    "{\"dtype\":\"<i4\",\"shape\":5,\"fill\":7,\"class\":\"float\",\"address\":1}");
	check_bytes("new", sevens, sizeof sevens);
	check_property("new", "h5fs.maxshape", "inf");
	ASK("set", "new", "h5fs.fill", "");
	check_bytes("new", zeros, sizeof zeros);
	ASK("set", "new", "h5fs.fill", "7");
	check_bytes("new", sevens, sizeof sevens);
	/* A maximum that the shape does not fit begins again. */
	ASK("set", "new", "h5fs.shape", "1,5");
	check_property("new", "h5fs.maxshape", "inf,5");
	check_bytes("new", sevens, sizeof sevens);
	ASK("set", "new", "h5fs.shape", "5");
	check_property("new", "h5fs.maxshape", "inf");
	/* The fill value waits for its type, the maximum and the chunks for the number of dimensions. */
	ASK("mknod", "late");
	ASK("set", "late", "h5fs.fill", "1.5");
	ASK("set", "late", "h5fs.maxshape", "3,4");
	ASK("set", "late", "h5fs.chunks", "1,2");
	check_property("late", "h5fs.shape", "0");
	ASK("set", "late", "h5fs.dtype", "<f8");
	ASK("set", "late", "h5fs.shape", "1,2");
	check_property("late", "h5fs.maxshape", "3,4");
	check_property("late", "h5fs.chunks", "1,2");
	check_property("late", "h5fs.fill", "1.5");
	check_bytes("late", reals, sizeof reals);
	ASK("set", "late", "h5fs.filters", "deflate(1)");
	check_property("late", "h5fs.filters", "deflate(1)");
	check_property("late", "h5fs.chunks", "1,2");
	/* Without dimensions it is one element. */
	ASK("set", "new", "h5fs.shape", "");
	check_bytes("new", sevens, 4);
	/* One with nothing in it, whose chunks stay if only its filters are said. */
	ASK("mknod", "packed");
	ASK("set", "packed", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":\"5\",\"chunks\":\"3\"}");
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	close_file();
	open_file(scene.path, true, NULL);
	ASK("set", "packed", "h5fs.filters", "deflate(1)");
	check_property("packed", "h5fs.chunks", "3");
	ASK("set", "packed", "h5fs.fill", "7");
	check_property("packed", "h5fs.chunks", "3");
	check_property("packed", "h5fs.filters", "deflate(1)");
	check_bytes("packed", sevens, sizeof sevens);
}
END_TEST

/* ---- what fails ---- */

/* Requests that come before, and the one that fails. */
struct failing {
	struct request before[3], request;
};

#define BACKUP                                                                                               \
	{                                                                                                    \
		{"rename", "data", "data~", .error = 0}, {"mknod", "data", .error = 0},                      \
		{                                                                                            \
			"open", "data", .flags = O_WRONLY, .value = "12345678"                               \
		}                                                                                            \
	}

static const struct failing failing[] = {
	{.request = {"mkdir", "group/x", .error = 0}},
	{.request = {"mknod", "group/x", .error = 0}},
	{.request = {"create", "group/x", .flags = O_RDWR}},
	{.request = {"create", "group/x", .flags = O_RDONLY}},
	{.request = {"create", "fixed", .flags = O_RDWR}},
	{.request = {"unlink", "group/file", .error = 0}},
	{.request = {"unlink", "data", .error = 0}},
	{.request = {"unlink", "soft", .error = 0}},
	{.request = {"rmdir", "empty", .error = 0}},
	{.request = {"link", "group/x", "data", .error = 0}},
	{.request = {"symlink", "group/x", "../data", .error = 0}},
	{.request = {"symlink", "group/x", "file", .error = 0}},
	{.request = {"symlink", "group/x", "extlink:other.h5//file", .error = 0}},
	{.request = {"rename", "data", "x", .error = 0}},
	{.request = {"rename", "data", "group/x", .error = 0}},
	{.request = {"rename", "group", "empty/x", .error = 0}},
	{.request = {"rename", "data", "fixed", .error = 0}},
	{.request = {"rename", "soft", "data", .error = 0}},
	{.request = {"rename", "group/sub", "empty", .error = 0}},
	{.request = {"rename", "data", "group/file", .flags = EXCHANGE}},
	{.request = {"rename", "soft", "group", .flags = EXCHANGE}},
	{.before = {{"open", "new", .flags = O_WRONLY, .value = "12345678"}},
	 .request = {"rename", "new", "data", .error = 0}},
	{.before = {{"mknod", ".h5fs~", .error = 0}}, .request = {"unlink", ".h5fs~", .error = 0}},
	{.before = BACKUP, .request = {"unlink", "data~", .error = 0}},
	{.request = {"set", "data", "user.new", "5", .error = 0}},
	{.request = {"set", "data", "user.new", "words", .error = 0}},
	{.request = {"set", "data", "user.new", "[1,2,3]", .error = 0}},
	{.request = {"set", "data", "user.number", "7", .error = 0}},
	{.request = {"set", "data", "user.text", "other words", .error = 0}},
	{.request = {"set", "data", "h5fs.raw.new", "x", .error = -ENODATA}},
	{.request = {"set", "data", "h5fs.type.number", "<f8", .error = 0}},
	{.request = {"set", "data", "h5fs.type.new", "(3,)<f8", .error = 0}},
	{.request = {"remove", "data", "user.number", .error = 0}},
	{.request = {"set", "data", "h5fs.comment", "words", .error = 0}},
	{.before = {{"set", "data", "h5fs.comment", "some", .error = 0}},
	 .request = {"set", "data", "h5fs.comment", "words", .error = 0}},
	{.request = {"set", "new", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":5,\"fill\":\"7\"}",
		     .error = 0}},
	{.request = {"set", "declared", "h5fs.fill", "7", .error = 0}},
	{.request = {"set", "declared", "h5fs.shape", "3,4", .error = 0}},
	{.request = {"set", "data", "h5fs.shape", "5", .error = 0}},
	{.request = {"set", "data", "h5fs.shape", "9", .error = 0}},
	{.request = {"open", "fixed", .flags = O_WRONLY | O_TRUNC, .value = "123456781234567812345678"}},
	{.request = {"open", "data", .flags = O_WRONLY | O_TRUNC}},
	{.request = {"truncate", "data", .size = 4}},
	{.request = {"truncate", "data", .size = 40}},
	{.request = {"unlink", ".h5fs/attrs/data/text", .error = 0}},
	{.request = {"create", ".h5fs/attrs/data/new", .flags = O_WRONLY, .value = "some words\n"}},
	{.request = {"open", ".h5fs/attrs/data/text", .flags = O_WRONLY | O_TRUNC, .value = "some words\n"}},
	{.request = {"create", ".h5fs/npy/new.npy", .flags = O_WRONLY, .value = npy, .size = sizeof npy}},
	{.request = {"open", ".h5fs/npy/data.npy", .flags = O_WRONLY | O_TRUNC, .value = npy,
		     .size = sizeof npy}},
	{.request = {"open", ".h5fs/npy/fixed.npy", .flags = O_WRONLY | O_TRUNC, .value = npy,
		     .size = sizeof npy}},
	{.request = {"rename", ".h5fs/npy/data.npy", ".h5fs/npy/x.npy", .error = 0}},
	{.request = {"rename", ".h5fs/npy/fixed.npy", ".h5fs/npy/data.npy", .error = 0}},
};

static char pristine[512];

static void keep_pristine(void)
{
	snprintf(pristine, sizeof pristine, "%s/pristine.h5", scratch_folder());
	close_file();
	scratch_copy(scene.path, pristine);
	open_file(scene.path, true, NULL);
}

static void start_again(const struct failing *f)
{
	h5_vfs_close(scene.vfs);
	h5_file_set_close(scene.set);
	scratch_copy(pristine, scene.path);
	open_file(scene.path, true, NULL);
	for (unsigned i = 0; i < 3 && f->before[i].what; i++)
		ck_assert_int_eq(ask(&f->before[i]), 0);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
}

/* Each allocation fails once, or each call to read: then the request has done all, or nothing. */
static void fail_each(const struct failing *f, bool reads)
{
	const struct request *r = &f->request;
	uint64_t before, after;
	unsigned long n = 0;
	bool failed = true;
	int rc;

	start_again(f);
	rc = ask(r);
	ck_assert_msg(rc == r->error, "%s %s: %s: %s", r->what, r->path, strerror(-rc),
		      h5_error_last()->text);
	after = digest();
	start_again(f);
	before = digest();
	while (failed) {
		ck_assert_uint_lt(++n, 10000);
		fault.n = n;
		fault.reads = reads;
		rc = ask(r);
		failed = fault.fired;
		if (rc && rc != r->error) {
			ck_assert_msg(failed && rc == (reads ? -EIO : -ENOMEM), "%s %s, %lu: %s", r->what,
				      r->path, n, strerror(-rc));
			ck_assert_msg(digest() == before, "%s %s, %lu: it is neither done nor as before",
				      r->what, r->path, n);
		} else {
			/* What has failed may be done by the next commit. */
			if (digest() != after)
				SUCCEEDS(h5_vfs_commit(scene.vfs));
			ck_assert_msg(digest() == after, "%s %s, %lu: it is not done", r->what, r->path, n);
			if (failed)
				start_again(f);
		}
	}
	ck_assert_msg(n > 1, "%s %s %s", r->what, r->path, r->second);
	close_file();
	open_file(scene.path, true, NULL);
	ck_assert_msg(digest() == after, "%s %s: the file has another state", r->what, r->path);
}

START_TEST(failures)
{
	keep_pristine();
	for (size_t i = 0; i < sizeof failing / sizeof *failing; i++)
		fail_each(&failing[i], _i);
}
END_TEST

static bool has_help_name(void)
{
	struct h5_dir *dir;
	bool has = false;

	SUCCEEDS(h5_vfs_opendir(scene.vfs, h5_vfs_root(scene.vfs), &dir));
	for (size_t i = 0; i < h5_vfs_dir_count(dir); i++)
		has |= !strncmp(h5_vfs_dir_name(dir, i), ".h5fs-exchange", 14);
	h5_vfs_closedir(dir);
	return has;
}

static uint64_t size_of(const char *path)
{
	struct h5_node *node = find(path);
	struct stat st;

	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	forget(node);
	return (uint64_t)st.st_size;
}

/* An exchange commits, and with it what was written to another dataset, for which memory is short: whether it
 * is done or not, no name is left that it has made. False: there are not so many allocations. */
static bool exchange_and_fail(unsigned long n)
{
	static const struct failing declared = {.before = {{"mknod", "packed", .error = 0},
							   {"set", "packed", "h5fs.info",
							    "{\"dtype\":\"u1\",\"shape\":\"4000\",\"chunks\":"
							    "\"1000\",\"filters\":\"deflate(1)\"}",
							    .error = 0}}};
	struct h5_node *root, *packed;
	struct h5_handle *handle;
	uint64_t stale;
	size_t written;
	bool failed;
	int rc;

	start_again(&declared);
	root = h5_vfs_root(scene.vfs);
	packed = find("packed");
	SUCCEEDS(h5_vfs_open_file(scene.vfs, packed, O_WRONLY, &handle));
	SUCCEEDS(h5_vfs_write(handle, 10, "bytes", 5, H5_WRITE_AT, &written, &stale));
	fault.n = n;
	fault.reads = false;
	fault_begin();
	rc = h5_vfs_rename(scene.vfs, root, "data", root, "new", EXCHANGE);
	fault_end();
	failed = fault.fired;
	ck_assert(!rc || (failed && rc == -ENOMEM));
	(void)h5_vfs_fsync(handle); /* tells of the loss */
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_msg(!has_help_name(), "%lu: a help name is left", n);
	ck_assert_uint_eq(size_of("data"), rc ? sizeof elements : 0);
	ck_assert_uint_eq(size_of("new"), rc ? 0 : sizeof elements);
	h5_vfs_close_file(handle);
	forget(packed);
	return failed;
}

START_TEST(exchanges_while_others_are_lost)
{
	unsigned long n = 1;

	keep_pristine();
	while (exchange_and_fail(n))
		n++;
	ck_assert_uint_gt(n, 20);
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {{contents, 1},
					  {refusals, 1},
					  {limits, 1},
					  {arrays_of_other_sizes, 1},
					  {mounts_for_reading, 1},
					  {mounts_of_groups, 1},
					  {symlinks_in_directories_with_cut_names, 1},
					  {declarations, 1},
					  {failures, 2},
					  {exchanges_while_others_are_lost, 1}};

	return unit_run("requests", begin, end, tests, sizeof tests / sizeof *tests);
}

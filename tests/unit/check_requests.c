/* Requests of a mount for writing, without a kernel that keeps some of them away: what is refused, with which
 * error, and that it leaves all as it was. */
#include "base/error.h"
#include "change/object_header_insert.h"
#include "fault_alloc.h"
#include "object/group_write.h"
#include "request_scene.h"
#include "vfs/beside.h"
#include "vfs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

static char longest[256], too_long[257]; /* file names */
static char too_long_attribute[300], too_long_npy[300];

static void begin(void)
{
	memset(longest, 'n', sizeof longest - 1);
	memset(too_long, 'n', sizeof too_long - 1);
	snprintf(too_long_attribute, sizeof too_long_attribute, ".h5fs/attrs/data/%s", too_long);
	snprintf(too_long_npy, sizeof too_long_npy, ".h5fs/npy/%.252s.npy", too_long);
	request_begin();
}

/* ---- what is refused ---- */

static void check_refused(const struct request *r)
{
	const uint64_t before = request_digest();
	int rc = request_ask(r);

	ck_assert_msg(rc == r->error, "%s %s %s %s: %s, not %s", r->what, r->path, r->second ? r->second : "",
		      r->value ? r->value : "", strerror(-rc), strerror(-r->error));
	ck_assert_msg(request_digest() == before, "%s %s %s has changed something", r->what, r->path,
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
	{"create", ".h5fs/attrs/data/text", .flags = O_WRONLY | O_EXCL, .error = -EEXIST},
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
	{"symlink", "x", "%2E", .error = -EINVAL},
	{"symlink", "x", "group/a%2Fb", .error = -EINVAL},
	{"symlink", "x", "group/a%00b", .error = -EINVAL},
	{"symlink", "x", "%", .error = -EINVAL},
	{"symlink", "x", "ends in a mark%~0123456789abcdef", .error = -EINVAL},
	{"symlink", "x", "data/../..", .error = -EPERM},
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
	request_check_bytes("data", request_elements, sizeof request_elements);
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
	node = request_find("new");
	h5_buf_init(&value, 1 << 16);
	SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, "h5fs.shape", &value));
	ck_assert_uint_eq(value.size, 19);
	ck_assert(!memcmp(value.data, "9223372036854775807", 19));
	h5_buf_release(&value);
	request_forget(node);
	ASK("set", "new", "h5fs.shape", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
}
END_TEST

/* An array takes the place of one of the same type. A dataset that cannot have so many elements gets the
 * shape of a new one. */
START_TEST(arrays_of_other_sizes)
{
	static const char *const files[] = {"fixed", "data", "chunked"};
	const struct request put = {.what = "open",
				    .flags = O_WRONLY | O_TRUNC,
				    .value = request_npy,
				    .size = sizeof request_npy};

	ASK("mknod", "chunked");
	ASK("set", "chunked", "h5fs.info",
	    "{\"dtype\":\"<i4\",\"shape\":\"2\",\"maxshape\":\"2\",\"chunks\":\"2\"}");
	request_write("chunked", O_WRONLY, request_elements, 8);
	for (unsigned i = 0; i < 3; i++) {
		struct request r = put;
		char path[64];

		snprintf(path, sizeof path, ".h5fs/npy/%s.npy", files[i]);
		r.path = path;
		ck_assert_int_eq(request_ask(&r), 0);
		request_check_bytes(files[i], request_elements, 12);
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

	request_close();
	request_open(scene.path, false, NULL);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		check_refused(&changes[i]);
	node = request_find("data");
	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0444);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	ck_assert_int_eq(h5_vfs_write(handle, 0, "x", 1, H5_WRITE_AT, &written, &stale), -EBADF);
	ck_assert_int_eq(h5_vfs_fallocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4), -EBADF);
	ck_assert_int_eq(h5_vfs_flush(handle), 0);
	ck_assert_int_eq(h5_vfs_fsync(handle), 0);
	h5_vfs_close_file(handle);
	request_forget(node);
	ck_assert_int_eq(h5_vfs_fsync_directory(scene.vfs, h5_vfs_root(scene.vfs)), 0);
	ck_assert_int_eq(h5_vfs_commit(scene.vfs), 0);
	ck_assert_int_eq(h5_vfs_give_back(scene.vfs), 0);
	request_check_bytes("data", request_elements, sizeof request_elements);
}
END_TEST

/* Opens the file in the set with a group as the root. */
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
	struct h5_node *node = request_find("group");
	const uint64_t group = node->entity.address;

	request_forget(node);
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_group_insert(file, group, &up)));
	SUCCEEDS(h5_vfs_finish(scene.vfs));
	h5_vfs_close(scene.vfs);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_int_eq(request_open_group(bad[i].subdir), bad[i].error);
	SUCCEEDS(request_open_group("group"));
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
	struct h5_node *node = request_find(path);
	const char *text;

	SUCCEEDS(h5_vfs_readlink(node, &text));
	snprintf(target, 512, "%s", text);
	request_forget(node);
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
	link.address = request_address("long");
	sub = request_address("long/sub");
	memset(name, 'y', 300);
	h5_unit_begin(file);
	SUCCEEDS(h5_group_remove(file, root, "long", 4));
	SUCCEEDS(h5_unit_end(file, h5_group_insert(file, root, &link)));
	SUCCEEDS(h5_vfs_finish(scene.vfs));
	h5_vfs_close(scene.vfs);
	SUCCEEDS(request_open_group(NULL));
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

/* A target without `..` is stored as it is, one with it as a path from the root. */
START_TEST(targets_of_symlinks)
{
	static const struct {
		const char *path, *target;
		const char *stored, *shown;
	} cases[] = {
		{"x", "data", "data", "data"},
		{"x", "./data", "data", "data"},
		{"x", "group//file/", "group/file", "group/file"},
		{"x", "group/./file", "group/file", "group/file"},
		{"x", "group/../data", "/data", "data"},
		{"x", ".", ".", "."},
		{"x", "", ".", "."},
		{"x", "...", "...", "..."},
		{"x", "group/..", "/", "."},
		{"group/x", "..", "/", ".."},
		{"group/x", "../data", "/data", "../data"},
		{"group/x", "../group/file", "/group/file", "file"},
		{"group/x", "sub/../file", "/group/file", "file"},
		{"group/sub/x", "../file", "/group/file", "../file"},
		{"group/sub/x", "../../data", "/data", "../../data"},
		{"group/sub/x", "../../group", "/group", ".."},
		{"group/x", "%2525", "%25", "%2525"},
	};
	char text[1024];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *name;
		struct h5_node *parent;

		ASK("symlink", cases[i].path, cases[i].target);
		name = strrchr(cases[i].path, '/');
		snprintf(text, sizeof text, "%.*s", name ? (int)(name - cases[i].path) : 0, cases[i].path);
		parent = request_find(text);
		stored_target(parent->entity.address, "x", text);
		request_forget(parent);
		ck_assert_msg(!strcmp(text, cases[i].stored), "%s to %s: %s", cases[i].path, cases[i].target,
			      text);
		read_target(cases[i].path, text);
		ck_assert_msg(!strcmp(text, cases[i].shown), "%s to %s is shown as %s", cases[i].path,
			      cases[i].target, text);
		ASK("unlink", cases[i].path);
	}
}
END_TEST

/* ---- declarations ---- */

static void check_property(const char *path, const char *name, const char *expected)
{
	struct h5_node *node = request_find(path);
	struct h5_buf value;

	h5_buf_init(&value, 1 << 16);
	SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, name, &value));
	ck_assert_msg(value.size == strlen(expected) && !memcmp(value.data, expected, value.size),
		      "%s of %s is %.*s, not %s", name, path, (int)value.size,
		      value.size ? (const char *)value.data : "", expected);
	h5_buf_release(&value);
	request_forget(node);
}

/* What is said of a dataset counts until something else is said. */
START_TEST(declarations)
{
	static const int32_t sevens[5] = {7, 7, 7, 7, 7}, zeros[5];
	static const double reals[2] = {1.5, 1.5};

	/* Numbers of JSON are numbers, and what cannot be set is left out. */
	ASK("set", "new", "h5fs.info",
	    "{\"dtype\":\"<i4\",\"shape\":5,\"fill\":7,\"class\":\"float\",\"address\":1}");
	request_check_bytes("new", sevens, sizeof sevens);
	check_property("new", "h5fs.maxshape", "inf");
	ASK("set", "new", "h5fs.fill", "");
	request_check_bytes("new", zeros, sizeof zeros);
	ASK("set", "new", "h5fs.fill", "7");
	request_check_bytes("new", sevens, sizeof sevens);
	/* A maximum that the shape does not fit begins again. */
	ASK("set", "new", "h5fs.shape", "1,5");
	check_property("new", "h5fs.maxshape", "inf,5");
	request_check_bytes("new", sevens, sizeof sevens);
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
	request_check_bytes("late", reals, sizeof reals);
	ASK("set", "late", "h5fs.filters", "deflate(1)");
	check_property("late", "h5fs.filters", "deflate(1)");
	check_property("late", "h5fs.chunks", "1,2");
	/* Without dimensions it is one element. */
	ASK("set", "new", "h5fs.shape", "");
	request_check_bytes("new", sevens, 4);
	/* One with nothing in it, whose chunks stay if only its filters are said. */
	ASK("mknod", "packed");
	ASK("set", "packed", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":\"5\",\"chunks\":\"3\"}");
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	request_close();
	request_open(scene.path, true, NULL);
	ASK("set", "packed", "h5fs.filters", "deflate(1)");
	check_property("packed", "h5fs.chunks", "3");
	ASK("set", "packed", "h5fs.fill", "7");
	check_property("packed", "h5fs.chunks", "3");
	check_property("packed", "h5fs.filters", "deflate(1)");
	request_check_bytes("packed", sevens, sizeof sevens);
}
END_TEST

/* ---- names of files beside those of a view ---- */

START_TEST(names_beside)
{
	static const struct {
		const char *directory, *name;
		int flags;
		bool is_beside;
	} cases[] = {
		{".h5fs/csv", "sedXXXX", O_WRONLY, true},
		{".h5fs/csv", ".t.csv.swp", O_WRONLY, true},
		{".h5fs/csv", ".t", O_WRONLY, true},
		{".h5fs/csv", "t.csv~", O_WRONLY, true},
		{".h5fs/csv", "t.txt~", O_WRONLY, true},
		{".h5fs/csv", "t.csv.bak", O_WRONLY, true},
		{".h5fs/csv", "t.txt", O_WRONLY, false},
		{".h5fs/csv", "t.csv", O_RDWR, false},
		{".h5fs/csv", ".csv", O_WRONLY, false},
		{".h5fs/csv", "csv", O_WRONLY, true},
		{".h5fs/lines", "t", O_WRONLY, true},
		{".h5fs/json", "t", O_WRONLY, false},
		{".h5fs/zarr", "t", O_WRONLY, false},
		{".h5fs/attrs/data", "t", O_WRONLY, false},
		{".h5fs/attrs/data", "t", O_RDWR, true},
		{".h5fs/attrs/data", "t~", O_WRONLY, true},
		{".h5fs", "t", O_RDWR, false},
		{"group", "t", O_RDWR, false},
		{".h5fs/npy/data.npy", "t", O_RDWR, false},
	};
	char name[256], longest_beside[256];
	struct h5_node *node;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		node = request_find(cases[i].directory);
		ck_assert_msg(h5_beside_is_name(node, cases[i].name, cases[i].flags) == cases[i].is_beside,
			      "%s/%s", cases[i].directory, cases[i].name);
		request_forget(node);
	}
	node = request_find(".h5fs/csv");
	SUCCEEDS(h5_beside_name(node, "x", name));
	snprintf(longest_beside, sizeof longest_beside, "%.*s", (int)(256 - strlen(name)), longest);
	SUCCEEDS(h5_beside_name(node, longest_beside, name));
	ck_assert_uint_eq(strlen(name), 255);
	strcat(longest_beside, "n");
	ck_assert_int_eq(h5_beside_name(node, longest_beside, name), -ENAMETOOLONG);
	request_forget(node);
}
END_TEST

/* ---- numbers of nodes ---- */

START_TEST(numbers_of_objects)
{
	const uint64_t direct = UINT64_C(1) << 62, hashed = UINT64_C(1) << 63, view_of = UINT64_C(1) << 56;
	const uint64_t group = request_address("group"), data = request_address("data");
	const struct h5_view_ops *view;
	struct h5_vfs_entry entry;
	uint64_t address, count = 0;

	while (h5_views[count])
		count++;
	ck_assert_int_eq(h5_node_id_decode(direct | 1234, &address, &view), 0);
	ck_assert_uint_eq(address, 1234);
	ck_assert_ptr_null(view);
	for (uint64_t i = 1; i <= count; i++) {
		ck_assert_int_eq(h5_node_id_decode(direct | i * view_of | (view_of - 1), &address, &view), 0);
		ck_assert_uint_eq(address, view_of - 1);
		ck_assert_ptr_eq(view, h5_views[i - 1]);
	}
	ck_assert_int_eq(h5_node_id_decode(direct | (count + 1) * view_of, &address, &view), -ESTALE);
	ck_assert_int_eq(h5_node_id_decode(direct | hashed | 1234, &address, &view), -ESTALE);
	ck_assert_int_eq(h5_node_id_decode(1234, &address, &view), -ESTALE);
	SUCCEEDS(h5_vfs_lookup_id(scene.vfs, direct | data, &entry));
	ck_assert_uint_eq(entry.node->entity.address, data);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	/* A directory has a number by its name alone. */
	ck_assert_int_eq(h5_vfs_lookup_id(scene.vfs, direct | group, &entry), -ESTALE);
	ck_assert_int_eq(h5_vfs_lookup_id(scene.vfs, hashed | 1234, &entry), -ESTALE);
	ck_assert_int_eq(h5_vfs_lookup_parent(scene.vfs, hashed | 1234, &entry), -ESTALE);
}
END_TEST

/* ---- what has no attributes, no path, nothing to be written ---- */

/* Its type is of no class that there is. */
START_TEST(an_attribute_of_no_type)
{
	static const uint8_t body[] = {3, 0, 4, 0, 8, 0, 4, 0, 0, 'b', 'a', 'd', 0, 0x1f, 0,
				       0, 0, 4, 0, 0, 0, 2, 0, 0, 0,   1,   2,	 3, 4};
	static const struct request bad[] = {
		{"set", "fixed", "user.bad", "5", .error = -EUCLEAN},
		{"set", "fixed", "h5fs.raw.bad", "1234", .error = -EUCLEAN},
		{"set", "fixed", "h5fs.type.bad", "<i4", .error = -EUCLEAN},
	};
	const struct h5_new_message message = {.type = H5_MSG_ATTRIBUTE, .body = body, .size = sizeof body};
	const uint64_t address = request_address("fixed");
	struct h5_file *file = scene.vfs->file;

	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_header_insert(file, address, &message)));
	h5_tx_forget(file, address);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(request_ask(&bad[i]) == bad[i].error, "%s: %s", bad[i].second,
			      h5_error_last()->text);
	ASK("set", "fixed", "user.good", "5");
	check_property("fixed", "user.good", "5");
}
END_TEST

START_TEST(what_has_nothing)
{
	struct h5_node *views = request_find(".h5fs"), *far = request_find("far"),
		       *data = request_find("data");
	struct h5_handle *handle;
	struct h5_buf buf;
	uint64_t stale;

	h5_buf_init(&buf, 1 << 16);
	ck_assert_int_eq(h5_vfs_find_path(scene.vfs, views, &buf), -ENOENT);
	ck_assert_int_eq(h5_vfs_find_path(scene.vfs, far, &buf), -ENOENT);
	ck_assert_int_eq(h5_vfs_find_path(scene.vfs, data, &buf), 0);
	ck_assert(buf.size == 5 && !memcmp(buf.data, "/data", 5));
	buf.size = 0;
	ck_assert_int_eq(h5_vfs_find_path(scene.vfs, h5_vfs_root(scene.vfs), &buf), 0);
	ck_assert(buf.size == 1 && *buf.data == '/');
	buf.size = 0;
	ck_assert_int_eq(h5_vfs_getxattr(scene.vfs, data, "trusted.x", &buf), -ENODATA);
	ck_assert_int_eq(h5_vfs_getxattr(scene.vfs, data, "h5fs.none", &buf), -ENODATA);
	ck_assert_int_eq(h5_vfs_getxattr(scene.vfs, views, "h5fs.class", &buf), -ENODATA);
	ck_assert_int_eq(h5_vfs_describe(scene.vfs, views, &buf), -ENODATA);
	ck_assert_uint_eq(buf.size, 0);
	h5_buf_release(&buf);
	/* Of another file, and through a handle that only reads. */
	SUCCEEDS(h5_vfs_open_file(scene.vfs, far, O_RDONLY, &handle));
	ck_assert_int_eq(h5_vfs_fsync(handle), 0);
	h5_vfs_close_file(handle);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, data, O_RDONLY, &handle));
	ck_assert_int_eq(h5_vfs_fsync(handle), 0);
	SUCCEEDS(h5_vfs_truncate(scene.vfs, data, handle, 8, &stale));
	h5_vfs_close_file(handle);
	request_check_bytes("data", request_elements, 8);
	request_forget(data);
	request_forget(far);
	request_forget(views);
}
END_TEST

/* ---- files that take the place of others ---- */

static void check_gone(const char *name)
{
	ck_assert_int_eq(request_ask(&(struct request){"lookup", name, .error = 0}), -ENOENT);
}

/* An editor renames a dataset, makes it anew, and removes what it has renamed: the dataset has its name back,
 * with the new contents. */
START_TEST(a_backup_that_goes)
{
	const uint64_t address = request_address("data");

	ASK("rename", "data", "data~");
	check_gone("data");
	ASK("create", "data", .flags = O_WRONLY, .value = "12345678");
	ck_assert_uint_ne(request_address("data"), address);
	ASK("unlink", "data~");
	check_gone("data~");
	ck_assert_uint_eq(request_address("data"), address);
	request_check_bytes("data", "12345678", 8);
	check_property("data", "h5fs.dtype", "<i4");
	check_property("data", "user.text", "words");
	/* What is no backup goes. */
	ASK("mknod", "data~");
	ASK("unlink", "data~");
	ASK("mknod", "~");
	ASK("unlink", "~");
	ASK("rename", "fixed", "fixed~");
	ASK("unlink", "fixed~");
	ASK("rename", "declared", "x~");
	ASK("symlink", "x", "data");
	ASK("unlink", "x~");
	ASK("symlink", "group~", "data");
	ASK("unlink", "group~");
	check_gone("fixed~");
	check_gone("x~");
	ck_assert_uint_eq(request_address("data"), address);
	request_check_bytes("data", "12345678", 8);
}
END_TEST

/* Renaming changes names alone, unless a plain file takes the place of a dataset that is none. */
START_TEST(renames)
{
	const uint64_t data = request_address("data"), file = request_address("group/file");
	const uint64_t group = request_address("group");

	ASK("rename", "data", "group/moved");
	check_gone("data");
	ck_assert_uint_eq(request_address("group/moved"), data);
	ASK("rename", "group/moved", "fixed");
	ck_assert_uint_eq(request_address("fixed"), data);
	ASK("rename", "group/file", "empty/file");
	ck_assert_uint_eq(request_address("empty/file"), file);
	ck_assert_uint_eq(request_size("group"), 2);
	ck_assert_uint_eq(request_size("empty"), 1);
	ASK("rename", "empty/file", "fixed", .flags = EXCHANGE);
	ck_assert_uint_eq(request_address("empty/file"), data);
	ck_assert_uint_eq(request_address("fixed"), file);
	ASK("rename", "group", "empty/group");
	ck_assert_uint_eq(request_address("empty/group"), group);
	ASK("rename", "empty/group/sub", "sub");
	ASK("rename", "sub", "empty/group", .flags = EXCHANGE);
	ck_assert_uint_eq(request_address("sub"), group);
	ASK("create", "plain", .flags = O_WRONLY, .value = "87654321");
	ASK("rename", "plain", "empty/file");
	check_gone("plain");
	ck_assert_uint_eq(request_address("empty/file"), data);
	request_check_bytes("empty/file", "87654321", 8);
	check_property("empty/file", "user.text", "words");
}
END_TEST

/* ---- other mounts: data elsewhere ---- */

/* Puts a new plain file of so many bytes in the place of a dataset. */
static int replace_by(struct vfs_scene *s, const char *name, size_t n)
{
	static char bytes[2000];
	struct h5_node *root = h5_vfs_root(s->vfs);
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	uint64_t stale;
	size_t written;
	int rc;

	memset(bytes, 'b', sizeof bytes);
	SUCCEEDS(h5_vfs_create(s->vfs, root, "plain file", O_WRONLY, &entry, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, bytes, n, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_flush(handle));
	h5_vfs_close_file(handle);
	h5_vfs_forget(s->vfs, entry.node, 1);
	rc = h5_vfs_rename(s->vfs, root, "plain file", root, name, 0);
	if (rc == -ESTALE)
		rc = h5_vfs_rename(s->vfs, root, "plain file", root, name, 0);
	if (rc)
		SUCCEEDS(h5_vfs_unlink(s->vfs, root, "plain file"));
	return rc;
}

/* A dataset with its elements in other files has as many as before. */
START_TEST(elements_in_other_files)
{
	static const char *const raw[] = {"raw0", "raw1", "absent"};
	char path[600], original[512];
	struct h5_handle *handle;
	struct vfs_scene s;
	struct h5_node *node;
	uint8_t bytes[1300];
	size_t got;

	scratch_fixture("read_faults/raw0", original);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", scratch_folder(), raw[i]);
		scratch_copy(original, path);
	}
	vfs_scene_open(&s, "read_faults/new.h5");
	s.vfs->options.external_write = true;
	ck_assert_int_eq(replace_by(&s, "external", 1199), -EINVAL);
	ck_assert_int_eq(replace_by(&s, "external", 1204), -EINVAL);
	ck_assert_int_eq(replace_by(&s, "external", 1200), 0);
	SUCCEEDS(vfs_scene_find(&s, "external", &node));
	SUCCEEDS(h5_vfs_open_file(s.vfs, node, O_RDONLY, &handle));
	SUCCEEDS(h5_vfs_read(handle, 0, bytes, sizeof bytes, &got));
	ck_assert_uint_eq(got, 1200);
	for (size_t i = 0; i < got; i++)
		ck_assert_uint_eq(bytes[i], 'b');
	h5_vfs_close_file(handle);
	h5_vfs_forget(s.vfs, node, 1);
	vfs_scene_close(&s);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", scratch_folder(), raw[i]);
		unlink(path);
	}
}
END_TEST

/* A virtual dataset is read on a mount for writing: memory that is short is told, and all is given back. */
START_TEST(virtual_datasets_while_memory_is_short)
{
	struct vfs_scene s;
	struct h5_node *node;
	bool failed = true;

	vfs_scene_open(&s, "read_faults/new.h5");
	for (unsigned long n = 1; failed; n++) {
		struct stat st;
		int rc;

		SUCCEEDS(vfs_scene_find(&s, "contiguous", &node));
		h5_vfs_forget(s.vfs, node, 1);
		vfs_scene_empty_caches(&s);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = vfs_scene_find(&s, "virtual", &node);
		if (!rc) {
			rc = h5_vfs_getattr(s.vfs, node, &st);
			h5_vfs_forget(s.vfs, node, 1);
		}
		fault_alloc_count(false);
		failed = fault_alloc_disarm();
		ck_assert_msg(rc ? failed && rc == -ENOMEM : st.st_size == 1200, "%lu: %s", n, strerror(-rc));
		ck_assert(rc || s.vfs->followers);
	}
	vfs_scene_close(&s);
}
END_TEST

UNIT_MAIN_AROUND("requests", begin, request_end, contents, refusals, limits, arrays_of_other_sizes,
		 mounts_for_reading, mounts_of_groups, symlinks_in_directories_with_cut_names,
		 targets_of_symlinks, declarations, names_beside, numbers_of_objects, an_attribute_of_no_type,
		 what_has_nothing, a_backup_that_goes, renames, elements_in_other_files,
		 virtual_datasets_while_memory_is_short)

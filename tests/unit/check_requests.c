/* Requests of a mount for writing, without a kernel that keeps some of them away: what is refused, with which
 * error, and that it leaves all as it was. */
#include "base/error.h"
#include "change/open.h"
#include "object/group_write.h"
#include "request_scene.h"
#include "vfs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>

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
	{"rename", ".h5fs/npy/data.npy", ".h5fs/npy/ends in a mark%~0123456789abcdef.npy", .error = -EPERM},
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
	{"set", "new", "h5fs.info", "{\"shape\":\"0\",\"maxshape\":\"0\",\"filters\":\"shuffle\"}",
	 .error = -EINVAL},
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

/* A path of a prefix, so many letters, and a suffix. */
static const char *long_path(char path[600], const char *prefix, char letter, int letters, const char *suffix)
{
	char name[256] = "";

	memset(name, letter, (size_t)letters);
	snprintf(path, 600, "%s%s%s", prefix, name, suffix);
	return path;
}

static size_t count_entries(const char *path)
{
	struct h5_node *node = request_find(path);
	struct h5_vfs_entry entries[20];
	struct h5_dir *dir;
	size_t n, got;

	SUCCEEDS(h5_vfs_opendir(scene.vfs, node, &dir));
	n = h5_vfs_dir_count(dir);
	ck_assert(n && n <= 20);
	SUCCEEDS(h5_vfs_dir_read(dir, 0, n, true, entries, &got));
	ck_assert_uint_eq(got, n);
	for (size_t i = 0; i < got; i++)
		if (entries[i].node)
			h5_vfs_forget(scene.vfs, entries[i].node, 1);
	h5_vfs_closedir(dir);
	request_forget(node);
	return n;
}

/* Names that have as many bytes as any can, wherever names are copied. */
START_TEST(longest_names)
{
	char a[600], b[600];
	struct h5_node *node;
	struct h5_buf buf;

	/* in directories */
	ASK("mknod", long_path(a, "", 'd', 255, ""));
	node = request_find(a);
	h5_buf_init(&buf, 1 << 10);
	SUCCEEDS(h5_vfs_find_path(scene.vfs, node, &buf));
	ck_assert_uint_eq(buf.size, 256);
	h5_buf_release(&buf);
	request_forget(node);
	ASK("symlink", "x", long_path(b, "", 'd', 255, "/../data"));
	ASK("unlink", "x");
	ASK("symlink", "x", long_path(b, "group/../", 'd', 255, ""));
	ASK("unlink", a);
	ASK("mknod", long_path(a, "", 'd', 254, "~"));
	ASK("unlink", a);
	/* as attributes */
	ASK("create", long_path(a, ".h5fs/attrs/data/", 'a', 255, ""), .flags = O_WRONLY, .value = "5");
	request_check_bytes(a, "5", 1);
	ck_assert_uint_eq(count_entries(".h5fs/attrs/data"), 3);
	node = request_find("data");
	h5_buf_init(&buf, 1 << 10);
	SUCCEEDS(h5_vfs_listxattr(scene.vfs, node, &buf));
	ck_assert_ptr_nonnull(memmem(buf.data, buf.size, "user.aaaa", 9)); /* cut */
	h5_buf_release(&buf);
	request_forget(node);
	ASK("unlink", a);
	/* as files of views */
	ASK("create", long_path(a, ".h5fs/npy/", 'n', 251, ".npy"), .flags = O_WRONLY, .value = request_npy,
	    .size = sizeof request_npy);
	request_check_bytes(long_path(b, "", 'n', 251, ""), request_elements, 12);
	ASK("symlink", "y", b);
	ASK("lookup", ".h5fs/npy/y.npy");
	ASK("rename", a, long_path(b, ".h5fs/npy/", 'm', 251, ".npy"));
	request_check_bytes(long_path(a, "", 'm', 251, ""), request_elements, 12);
	ASK("mkdir", long_path(a, "", 'g', 255, ""));
	ASK("rename", b, long_path(a, ".h5fs/npy/", 'g', 255, "/x.npy"));
	request_check_bytes(long_path(a, "", 'g', 255, "/x"), request_elements, 12);
	ASK("rename", a, "group/moved");
	ASK("rename", ".h5fs/npy/group/moved.npy", long_path(a, ".h5fs/npy/", 'g', 255, "/z.npy"));
	ck_assert_uint_eq(count_entries(long_path(a, ".h5fs/npy/", 'g', 255, "")), 1);
	ck_assert_uint_ge(count_entries(".h5fs/npy"), 4);
	ck_assert_uint_ge(count_entries(""), 12);
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

static void check_property(const char *path, const char *name, const char *expected)
{
	struct h5_node *node = request_find(path);
	struct h5_buf value;

	h5_buf_init(&value, 1 << 10);
	SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, name, &value));
	h5_buf_byte(&value, 0);
	ck_assert_str_eq(value.data, expected);
	h5_buf_release(&value);
	request_forget(node);
}

/* An array takes the place of one of another type with as many bytes: the dataset gets that type. */
START_TEST(arrays_of_other_types)
{
	static const char *const files[] = {"fixed", "data"};
	char npy[128 + 24], path[64];

	memcpy(npy, request_npy, 128);
	*(char *)memmem(npy, 128, "<i4", 3) = '>';
	memcpy(memmem(npy, 128, "(3,)", 4), "(6,)", 4);
	memcpy(npy + 128, request_elements, 24);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof path, ".h5fs/npy/%s.npy", files[i]);
		ASK("open", path, .flags = O_WRONLY | O_TRUNC, .value = npy, .size = sizeof npy);
		request_check_bytes(files[i], request_elements, 24);
		check_property(files[i], "h5fs.dtype", ">i4");
	}
}
END_TEST

/* ---- types ---- */

START_TEST(types_that_are_shown)
{
	/* As the tools of HDF5 have it, but all in one line. */
	ASK("set", "new", "h5fs.info",
	    "{\"dtype\":\"[[\\\"a\\\",\\\"<i4\\\"],[\\\"b\\\",\\\">f8\\\"]]\",\"shape\":\"2\"}");
	check_property("new", "h5fs.type", "H5T_COMPOUND { H5T_STD_I32LE \"a\"; H5T_IEEE_F64BE \"b\"; }");
	/* Bytes of a file and of an attribute have no signs. */
	ASK("mknod", "bytes");
	check_property("bytes", "h5fs.dtype", "|u1");
	scene.vfs->options.raw_attributes = true;
	ASK("set", "data", "user.bytes", "\xff\x01");
	scene.vfs->options.raw_attributes = false;
	check_property("data", "h5fs.type.bytes", "(2,)|u1");
	check_property("data", "user.bytes", "[255,1]");
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
	struct h5_node *node, *array;
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
	array = request_find(".h5fs/npy/data.npy");
	SUCCEEDS(h5_vfs_getattr(scene.vfs, array, &st));
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0444);
	request_forget(array);
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

/* While other programs read the file, only elements of fixed size change, in place or behind the last ones.
 */
START_TEST(mounts_beside_swmr_readers)
{
	static const struct request changes[] = {
		{"mkdir", "x", .error = -EPERM},
		{"mknod", "x", .error = -EPERM},
		{"create", "x", .flags = O_WRONLY, .error = -EPERM},
		{"symlink", "x", "data", .error = -EPERM},
		{"link", "x", "data", .error = -EPERM},
		{"unlink", "data", .error = -EPERM},
		{"rmdir", "empty", .error = -EPERM},
		{"rename", "data", "x", .error = -EPERM},
		{"rename", "group/file", "data", .error = -EPERM},
		{"create", ".h5fs/npy/x.npy", .flags = O_WRONLY, .error = -EPERM},
		{"open", ".h5fs/npy/data.npy", .flags = O_WRONLY | O_TRUNC, .error = -EPERM},
		{"open", "words", .flags = O_WRONLY, .error = -EPERM},
		{"open", "words", .flags = O_WRONLY | O_TRUNC, .error = -EPERM},
		{"open", "fixed", .flags = O_WRONLY | O_TRUNC, .error = -EPERM},
		{"truncate", "words", .size = 0, .error = -EPERM},
		{"truncate", "fixed", .size = 0, .error = -EPERM},
		{"set", "data", "user.number", "6", .error = -EPERM},
		{"set", "data", "h5fs.shape", "6", .error = -EPERM},
		{"remove", "data", "user.number", .error = -EPERM},
	};
	const struct h5_file_set_options options = {
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .writable = true, .swmr = true};
	int32_t expected[7];
	struct h5_handle *handle;
	struct h5_node *node;
	struct stat st;
	uint64_t stale;

	ASK("mknod", "words");
	ASK("set", "words", "h5fs.info", "{\"dtype\":\"vlen str\",\"shape\":\"0\",\"maxshape\":\"inf\"}");
	request_write("words", O_WRONLY, "one\ntwo\n", 8);
	ASK("mknod", "full");
	ASK("set", "full", "h5fs.info",
	    "{\"dtype\":\"<i4\",\"shape\":\"6\",\"maxshape\":\"6\",\"chunks\":\"2\"}");
	request_write("full", O_WRONLY, request_elements, sizeof request_elements);
	request_close();
	SUCCEEDS(h5_open_file(scene.path, &options, &scene.set, NULL));
	SUCCEEDS(request_open_group(NULL));
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		check_refused(&changes[i]);
	node = request_find("words");
	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0444);
	request_forget(node);
	node = request_find("fixed");
	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY, &handle));
	ck_assert_int_eq(h5_vfs_truncate(scene.vfs, node, handle, 0, &stale), -EPERM);
	h5_vfs_close_file(handle);
	request_forget(node);
	request_check_bytes("fixed", request_elements, sizeof request_elements);
	memcpy(expected, request_elements, sizeof request_elements);
	expected[0] = expected[6] = 7;
	request_write("data", O_WRONLY, expected, sizeof expected);
	request_check_bytes("data", expected, sizeof expected);
	request_write("fixed", O_WRONLY, expected, 4);
	request_check_bytes("fixed", expected, 24);
	ASK("open", "full", .flags = O_WRONLY | O_TRUNC);
	ck_assert_uint_eq(request_size("full"), 0);
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

/* On a mount of a group, a link to an object in the group is shown as a symlink, and one that leads outside
 * as the object itself. */
START_TEST(links_on_mounts_of_groups)
{
	static const struct {
		const char *name, *target, *shown; /* NULL: the object itself */
		const char *object;
	} links[] = {
		{"in", "../group/file", "file", NULL},	 {"self", "../group", ".", NULL},
		{"data", "../data", NULL, "data"},	 {"longer", "../groups/f", NULL, "groups/f"},
		{"others", "../groups", NULL, "groups"},
	};
	uint64_t objects[5] = {0};
	struct h5_vfs_entry entry;
	const char *target;

	ASK("mkdir", "groups");
	ASK("mknod", "groups/f");
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		char path[64];

		snprintf(path, sizeof path, "group/%s", links[i].name);
		ASK("symlink", path, links[i].target);
		if (links[i].object)
			objects[i] = request_address(links[i].object);
	}
	SUCCEEDS(h5_vfs_finish(scene.vfs));
	h5_vfs_close(scene.vfs);
	SUCCEEDS(request_open_group("group"));
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		SUCCEEDS(h5_vfs_lookup(scene.vfs, scene.vfs->root, "file", &entry));
		ck_assert(!entry.passing);
		h5_vfs_forget(scene.vfs, entry.node, 1);
		SUCCEEDS(h5_vfs_lookup(scene.vfs, scene.vfs->root, links[i].name, &entry));
		if (links[i].shown) {
			SUCCEEDS(h5_vfs_readlink(entry.node, &target));
			ck_assert_str_eq(target, links[i].shown);
		} else {
			ck_assert_uint_ne(entry.node->entity.kind, H5_NODE_SYMLINK);
			ck_assert_uint_eq(entry.node->entity.address, objects[i]);
		}
		h5_vfs_forget(scene.vfs, entry.node, 1);
	}
	/* Since a link shows a group, names in it may have changed elsewhere. */
	SUCCEEDS(h5_vfs_lookup(scene.vfs, scene.vfs->root, "file", &entry));
	ck_assert(entry.passing);
	h5_vfs_forget(scene.vfs, entry.node, 1);
}
END_TEST

/* ---- listings ---- */

/* Names that have changed since the list was made are looked up anew. */
START_TEST(names_that_change_while_they_are_listed)
{
	struct h5_vfs_entry entries[32];
	struct h5_dir *dir;
	uint64_t address;
	size_t got;

	SUCCEEDS(h5_vfs_opendir(scene.vfs, h5_vfs_root(scene.vfs), &dir));
	ck_assert_uint_le(h5_vfs_dir_count(dir), 32);
	ASK("unlink", "new");
	ASK("unlink", "fixed");
	ASK("mkdir", "fixed");
	address = request_address("fixed");
	SUCCEEDS(h5_vfs_dir_read(dir, 0, h5_vfs_dir_count(dir), true, entries, &got));
	ck_assert_uint_eq(got, h5_vfs_dir_count(dir));
	for (size_t i = 0; i < got; i++) {
		const char *name = h5_vfs_dir_name(dir, i);

		ck_assert(entries[i].st.st_ino);
		if (!strcmp(name, "fixed")) {
			ck_assert_uint_eq(entries[i].st.st_mode & S_IFMT, S_IFDIR);
			ck_assert_uint_eq(entries[i].node->entity.address, address);
		} else if (!strcmp(name, "new")) {
			ck_assert_ptr_null(entries[i].node);
			ck_assert_uint_eq(entries[i].st.st_mode, 0);
		} else {
			ck_assert_ptr_nonnull(entries[i].node);
		}
		h5_vfs_forget(scene.vfs, entries[i].node, 1);
	}
	h5_vfs_closedir(dir);
}
END_TEST

UNIT_MAIN_AROUND("requests", begin, request_end, contents, refusals, limits, longest_names,
		 arrays_of_other_sizes, arrays_of_other_types, types_that_are_shown, mounts_for_reading,
		 mounts_beside_swmr_readers, mounts_of_groups, links_on_mounts_of_groups,
		 names_that_change_while_they_are_listed)

/* What requests of a mount for writing do: names and targets, declarations, files that take the place of
 * others. */
#include "base/error.h"
#include "change/object_header_insert.h"
#include "fault_alloc.h"
#include "object/group_write.h"
#include "request_scene.h"
#include "store/followers.h"
#include "vfs/beside.h"
#include "vfs/directory.h"
#include "vfs/node_number.h"
#include "vfs/private.h"
#include "view/views.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

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

/* A path has room for so many directories; in one below these no symlink leads up. */
START_TEST(symlinks_in_deep_directories)
{
	enum { DEEP = 4096 / 2 + 1000 };
	static struct h5_node *nodes[DEEP + 1];
	struct h5_vfs_entry entry;

	nodes[0] = h5_vfs_root(scene.vfs);
	for (unsigned i = 0; i < DEEP; i++) {
		SUCCEEDS(h5_vfs_mkdir(scene.vfs, nodes[i], "d", &entry));
		nodes[i + 1] = entry.node;
	}
	ck_assert_int_eq(h5_vfs_symlink(scene.vfs, "../x", nodes[DEEP], "up", &entry), -ENAMETOOLONG);
	ck_assert_int_eq(h5_vfs_lookup(scene.vfs, nodes[DEEP], "up", &entry), -ENOENT);
	SUCCEEDS(h5_vfs_symlink(scene.vfs, "x", nodes[DEEP], "down", &entry));
	h5_vfs_forget(scene.vfs, entry.node, 1);
	for (unsigned i = DEEP; i > 0; i--)
		h5_vfs_forget(scene.vfs, nodes[i], 1);
}
END_TEST

/* Whatever makes a target: the last guard lets none pass that leads out of the mount. */
START_TEST(no_target_leads_out)
{
	static const struct {
		const char *directory, *target, *shown; /* NULL: refused */
	} cases[] = {{"", "..", NULL},
		     {"", "../data", NULL},
		     {"", "/data", NULL},
		     {"", "group/../..", NULL},
		     {"", "./..", NULL},
		     {"", "a//../../b", NULL},
		     {"", "group/..", "group/.."},
		     {"", "", "."},
		     {"", "..x/..", "..x/.."},
		     {"group", "..", ".."},
		     {"group", "../..", NULL},
		     {"group/sub", "../../data", "../../data"},
		     {"group/sub", "../../../data", NULL}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_node *directory = request_find(cases[i].directory);
		struct h5_entity entity = {0};
		struct h5_buf target;
		int rc;

		h5_buf_init(&target, 4096);
		h5_buf_add(&target, cases[i].target, strlen(cases[i].target));
		rc = h5_entity_symlink(directory, &entity, &target);
		ck_assert_msg(rc == (cases[i].shown ? 0 : -EUCLEAN), "%s in %s: %d", cases[i].target,
			      cases[i].directory, rc);
		if (rc)
			ck_assert_str_eq(h5_error_last()->text, "a link that would lead out of the mount");
		else
			ck_assert_str_eq(entity.target, cases[i].shown);
		free(entity.target);
		request_forget(directory);
	}
}
END_TEST

/* The target of a symlink that leads nowhere says where the link would lead. If there is a name like its
 * first component, no `..` of it counts; a name that is too long there is not. */
START_TEST(targets_that_lead_nowhere)
{
	char target[512], long_target[400];

	ASK("symlink", "x", "extlink:none.h5//a/../b");
	read_target("x", target);
	ck_assert_str_eq(target, "extlink:none.h5//a/../b");
	ASK("mkdir", "extlink:none.h5");
	read_target("x", target);
	ck_assert_str_eq(target, "extlink:none.h5/a/%2E%2E/b");
	for (unsigned n = 255; n < 258; n++) {
		snprintf(long_target, sizeof long_target, "extlink:%0*u//a/../b", (int)n - 8, 0);
		ASK("symlink", "y", long_target);
		read_target("y", target);
		ck_assert_str_eq(target, long_target);
		if (n == 255) {
			*strchr(long_target, '/') = 0;
			ASK("mkdir", long_target);
			read_target("y", target);
			ck_assert_str_eq(target + n, "/a/%2E%2E/b");
		}
		ASK("unlink", "y");
	}
}
END_TEST

/* Nothing gets a name in a directory that was removed, though the kernel still knows it. */
START_TEST(directories_that_are_gone)
{
	struct h5_node *gone = request_find("empty"), *data = request_find("data"),
		       *root = h5_vfs_root(scene.vfs);
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	uint64_t before;

	ASK("rmdir", "empty");
	before = request_digest();
	ck_assert_int_eq(h5_vfs_mkdir(scene.vfs, gone, "x", &entry), -ENOENT);
	ck_assert_int_eq(h5_vfs_mknod(scene.vfs, gone, "x", &entry), -ENOENT);
	ck_assert_int_eq(h5_vfs_create(scene.vfs, gone, "x", O_WRONLY, &entry, &handle), -ENOENT);
	ck_assert_int_eq(h5_vfs_symlink(scene.vfs, "data", gone, "x", &entry), -ENOENT);
	ck_assert_int_eq(h5_vfs_link(scene.vfs, data, gone, "x", &entry), -ENOENT);
	ck_assert_int_eq(h5_vfs_rename(scene.vfs, root, "data", gone, "x", 0), -ENOENT);
	ck_assert_int_eq(h5_vfs_unlink(scene.vfs, gone, "x"), -ENOENT);
	ck_assert_int_eq(h5_vfs_rmdir(scene.vfs, gone, "x"), -ENOENT);
	ck_assert_uint_eq(request_digest(), before);
	request_forget(gone);
	request_forget(data);
}
END_TEST

/* The path of a group that is mounted comes before those of its directories. */
START_TEST(symlinks_below_a_mounted_group)
{
	static const struct {
		const char *path, *target;
		const char *stored;
	} cases[] = {
		{"low/x", "../file", "/group/sub/file"},
		{"low/x", "..", "/group/sub"},
		{"x", "low/../file", "/group/sub/file"},
		{"x", "low/file", "low/file"},
	};
	char text[1024];

	ASK("mkdir", "group/sub/low");
	SUCCEEDS(h5_vfs_finish(scene.vfs));
	h5_vfs_close(scene.vfs);
	SUCCEEDS(request_open_group("group/sub"));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const bool low = *cases[i].path == 'l';

		ASK("symlink", cases[i].path, cases[i].target);
		stored_target(request_address(low ? "low" : ""), "x", text);
		ck_assert_str_eq(text, cases[i].stored);
		ASK("unlink", cases[i].path);
	}
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

/* What a refusal says is wrong; the dataset is as it was. */
START_TEST(dimensions_that_are_refused)
{
	static const struct {
		const char *path, *name, *value, *refusal;
	} cases[] = {
		{"new", "h5fs.shape", "inf", "no number: inf"},
		{"new", "h5fs.shape", "4,inf", "no number: inf"},
		{"new", "h5fs.chunks", "inf", "no number: inf"},
		{"new", "h5fs.chunks", "2,inf", "no number: inf"},
		{"data", "h5fs.shape", "inf", "no number: inf"},
		{"new", "h5fs.shape", "4,", "no list of numbers: 4,"},
		{"new", "h5fs.maxshape", "inf,", "no list of numbers: inf,"},
		{"new", "h5fs.maxshape", "infinite", "no list of numbers: infinite"},
		{"new", "h5fs.info", "{\"shape\":\"0\",\"maxshape\":\"0\",\"filters\":\"shuffle\"}",
		 "no chunks are possible: 0"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const uint64_t before = request_digest();
		const struct request request = {"set", cases[i].path, cases[i].name, cases[i].value,
						.error = 0};

		ck_assert_int_eq(request_ask(&request), -EINVAL);
		ck_assert_str_eq(h5_error_last()->text, cases[i].refusal);
		ck_assert_uint_eq(request_digest(), before);
	}
	check_property("data", "h5fs.shape", "6");
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
	char name[256], longest_beside[256] = "";
	struct h5_node *node;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		node = request_find(cases[i].directory);
		ck_assert_msg(h5_beside_is_name(node, cases[i].name, cases[i].flags) == cases[i].is_beside,
			      "%s/%s", cases[i].directory, cases[i].name);
		request_forget(node);
	}
	node = request_find(".h5fs/csv");
	SUCCEEDS(h5_beside_name(node, "x", name));
	memset(longest_beside, 'n', 256 - strlen(name));
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
	for (uint64_t i = 1; i <= count; i++) {
		const uint64_t file = direct | i * view_of | data, none = direct | i * view_of | group;

		if (h5_views[i - 1] != &h5_view_npy)
			continue;
		SUCCEEDS(h5_vfs_lookup_id(scene.vfs, file, &entry));
		SUCCEEDS(h5_vfs_getattr(scene.vfs, entry.node, &entry.st));
		ck_assert_int_eq(entry.st.st_size, 128 + 24);
		h5_vfs_forget(scene.vfs, entry.node, 1);
		ck_assert_int_eq(h5_vfs_lookup_id(scene.vfs, none, &entry), -ESTALE);
	}
	/* A directory has a number by its name alone. */
	ck_assert_int_eq(h5_vfs_lookup_id(scene.vfs, direct | group, &entry), -ESTALE);
	ck_assert_int_eq(h5_vfs_lookup_id(scene.vfs, hashed | 1234, &entry), -ESTALE);
	ck_assert_int_eq(h5_vfs_lookup_parent(scene.vfs, hashed | 1234, &entry), -ESTALE);
}
END_TEST

/* A number that is known by a name is that name's no more. */
START_TEST(a_number_of_another_name)
{
	const uint64_t hashed = UINT64_C(1) << 63;
	struct h5_node other = {.id = hashed | 4711, .name = "data", .from = H5_ROOT_ID},
		       *node = request_find("data");
	const uint64_t id = node->id;
	struct h5_vfs_entry entry;

	request_forget(node);
	h5_number_remember(scene.vfs, &other);
	ck_assert_int_eq(h5_vfs_lookup_id(scene.vfs, other.id, &entry), -ESTALE);
	ck_assert_ptr_null(h5_number_first(scene.vfs, id)); /* nobody holds it */
	SUCCEEDS(h5_vfs_lookup_id(scene.vfs, id, &entry));
	ck_assert_uint_eq(entry.node->id, id);
	h5_vfs_forget(scene.vfs, entry.node, 1);
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

/* An array is written below `.h5fs` for a new dataset, whose name is taken before it is whole: what has the
 * name keeps it. */
START_TEST(a_name_that_is_taken_meanwhile)
{
	struct h5_node *npy = request_find(".h5fs/npy");
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	uint64_t stale, address;
	size_t written;

	SUCCEEDS(h5_vfs_create(scene.vfs, npy, "x.npy", O_WRONLY, &entry, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, request_npy, sizeof request_npy, H5_WRITE_AT, &written, &stale));
	ASK("mkdir", "x");
	address = request_address("x");
	ck_assert_int_eq(h5_vfs_flush(handle), -EEXIST);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	request_forget(npy);
	ck_assert_uint_eq(request_address("x"), address);
	ASK("mkdir", "x/below");
	SUCCEEDS(h5_vfs_commit(scene.vfs));
}
END_TEST

/* Text that is written anew, through a handle whose contents take the place of the old ones: it can be cut to
 * nothing, or to what it is, and to nothing else. */
START_TEST(new_text_is_cut)
{
	struct h5_handle *handle;
	struct h5_node *node;
	uint64_t stale;
	size_t written;

	ASK("set", "new", "h5fs.info", "{\"dtype\":\"vlen str\",\"shape\":\"2\"}");
	request_write("new", O_WRONLY | O_TRUNC, "one\ntwo\n", 8);
	node = request_find("new");
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY | O_TRUNC, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, "six\n", 4, H5_WRITE_AT, &written, &stale));
	ck_assert_uint_eq(written, 4);
	SUCCEEDS(h5_vfs_truncate(scene.vfs, node, handle, 4, &stale));
	ck_assert_int_eq(h5_vfs_truncate(scene.vfs, node, handle, 3, &stale), -EOPNOTSUPP);
	ck_assert_str_eq(h5_error_last()->text, "text is written only at its end");
	ck_assert_int_eq(h5_vfs_truncate(scene.vfs, node, handle, 5, &stale), -EOPNOTSUPP);
	SUCCEEDS(h5_vfs_write(handle, 4, "ten\n", 4, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_flush(handle));
	request_check_bytes("new", "six\nten\n", 8);
	h5_vfs_close_file(handle);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY | O_TRUNC, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, "bad\nba", 6, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_truncate(scene.vfs, node, handle, 0, &stale));
	SUCCEEDS(h5_vfs_write(handle, 0, "yes\n", 4, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_write(handle, 4, "and\n", 4, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_flush(handle));
	h5_vfs_close_file(handle);
	request_check_bytes("new", "yes\nand\n", 8);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY, &handle));
	SUCCEEDS(h5_vfs_truncate(scene.vfs, node, handle, 0, &stale));
	request_check_bytes("new", "yes\nand\n", 8);
	SUCCEEDS(h5_vfs_fsync(handle));
	request_check_bytes("new", "", 0);
	h5_vfs_close_file(handle);
	request_forget(node);
}
END_TEST

/* Memory is short while new text is cut to nothing: what was written is dropped, and the old contents stay.
 * The handle goes on with these, or begins again. */
START_TEST(new_text_is_cut_without_memory)
{
	unsigned refused = 0;
	bool failed = true;

	ASK("set", "new", "h5fs.info", "{\"dtype\":\"vlen str\",\"shape\":\"2\"}");
	for (unsigned long n = 1; failed; n++) {
		for (unsigned again = 0; again < 2; again++) {
			struct h5_handle *handle;
			struct h5_node *node;
			uint64_t stale;
			size_t written;
			int rc;

			request_write("new", O_WRONLY | O_TRUNC, "one\ntwo\n", 8);
			node = request_find("new");
			SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY | O_TRUNC, &handle));
			SUCCEEDS(h5_vfs_write(handle, 0, "six\nse", 6, H5_WRITE_AT, &written, &stale));
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_vfs_truncate(scene.vfs, node, handle, 0, &stale);
			fault_alloc_count(false);
			failed = fault_alloc_disarm();
			ck_assert(!rc || (failed && rc == -ENOMEM));
			refused += rc != 0;
			if (rc && again)
				SUCCEEDS(h5_vfs_truncate(scene.vfs, node, handle, 0, &stale));
			SUCCEEDS(h5_vfs_write(handle, 0, "ten\n", 4, H5_WRITE_APPEND, &written, &stale));
			ck_assert_uint_eq(written, 4);
			SUCCEEDS(h5_vfs_flush(handle));
			h5_vfs_close_file(handle);
			request_forget(node);
			if (rc && !again)
				request_check_bytes("new", "one\ntwo\nten\n", 12);
			else
				request_check_bytes("new", "ten\n", 4);
		}
	}
	ck_assert_uint_gt(refused, 2);
}
END_TEST

static void check_gone(const char *name)
{
	ck_assert_int_eq(request_ask(&(struct request){"lookup", name, .error = 0}), -ENOENT);
}

/* An editor renames a dataset, makes it anew, and removes what it has renamed: the dataset has its name back,
 * with the new contents. */
START_TEST(a_backup_that_goes)
{
	const uint64_t address = request_address("data"), names = request_size("");

	ASK("rename", "data", "data~");
	check_gone("data");
	ASK("create", "data", .flags = O_WRONLY, .value = "12345678");
	ck_assert_uint_ne(request_address("data"), address);
	ck_assert_uint_eq(request_size(""), names + 1);
	ASK("unlink", "data~");
	check_gone("data~");
	ck_assert_uint_eq(request_size(""), names);
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

/* A virtual dataset is read on a mount for writing: memory that is short is told, and all is given back. What
 * was decoded is forgotten when its sources change. */
START_TEST(virtual_datasets_while_memory_is_short)
{
	struct vfs_scene s;
	struct h5_node *node;
	bool failed = true;

	vfs_scene_open(&s, "read_faults/new.h5");
	for (unsigned long n = 1; failed; n++) {
		struct h5_lru_stats before, after;
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
		h5_lru_stats(h5_file_set_blocks(s.set), &before);
		h5_followers_forget(h5_file_set_shared(s.set)->followers);
		h5_lru_stats(h5_file_set_blocks(s.set), &after);
		ck_assert(rc || after.entries < before.entries);
	}
	vfs_scene_close(&s);
}
END_TEST

UNIT_MAIN_AROUND("request_effects", request_begin, request_end, symlinks_in_directories_with_cut_names,
		 symlinks_in_deep_directories, symlinks_below_a_mounted_group, no_target_leads_out,
		 targets_that_lead_nowhere, directories_that_are_gone, a_number_of_another_name,
		 a_name_that_is_taken_meanwhile, new_text_is_cut, new_text_is_cut_without_memory,
		 targets_of_symlinks, declarations, dimensions_that_are_refused, names_beside,
		 numbers_of_objects, an_attribute_of_no_type, what_has_nothing, a_backup_that_goes, renames,
		 elements_in_other_files, virtual_datasets_while_memory_is_short)

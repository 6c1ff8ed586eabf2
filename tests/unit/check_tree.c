/* A folder as one tree: which files are looked at, where they lie, and how they are opened. */
#include "base/buf.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "scratch.h"
#include "tree/node.h"
#include "tree/place.h"
#include "tree/private.h"
#include "vfs/private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

/* ---- names ---- */

START_TEST(patterns)
{
	static const struct {
		const char *match, *name;
		bool matches;
	} cases[] = {
		{H5_TREE_MATCH, "a.h5", true},
		{H5_TREE_MATCH, "A.HDF5", true},
		{H5_TREE_MATCH, "x.bag", true},
		{H5_TREE_MATCH, "h5", false},
		{H5_TREE_MATCH, "a.h5.txt", false},
		{"", "a", false},
		{":", "a", false},
		{"a:b", "a", true},
		{"a:b", "b", true},
		{"a:b", "a:b", false},
		{"a::b", "b", true},
		{"?[0-9]", "x7", true},
		{"?[0-9]", "7x", false},
	};
	char match[NAME_MAX + 8];
	struct h5_tree tree = {0};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tree.options.match = cases[i].match;
		ck_assert_msg(h5_tree_matches(&tree, cases[i].name) == cases[i].matches, "%s, %s",
			      cases[i].match, cases[i].name);
	}
	/* A pattern that is longer than any name matches none, and those behind it count. */
	for (size_t n = NAME_MAX - 1; n < NAME_MAX + 3; n++) {
		memset(match, '*', n);
		strcpy(match + n, ":b");
		tree.options.match = match;
		ck_assert_int_eq(h5_tree_matches(&tree, "a"), n <= NAME_MAX);
		ck_assert(h5_tree_matches(&tree, "b"));
	}
}
END_TEST

START_TEST(paths)
{
	struct h5_tree_node root = {.name = ""}, a = {.parent = &root, .name = "a"},
			    bc = {.parent = &a, .name = "bc"}, d = {.parent = &bc, .name = "d"};
	const struct {
		const struct h5_tree_node *node;
		const char *path;
	} cases[] = {{&root, "x"}, {&a, "xa"}, {&bc, "xa/bc"}, {&d, "xa/bc/d"}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const size_t n = strlen(cases[i].path);

		for (size_t limit = 1; limit <= n; limit++) {
			struct h5_buf path;

			h5_buf_init(&path, limit);
			h5_buf_text(&path, "x");
			h5_tree_place_path(cases[i].node, &path);
			ck_assert_int_eq(path.err, limit < n ? -E2BIG : 0);
			ck_assert(limit < n || (path.size == n && !memcmp(path.data, cases[i].path, n)));
			h5_buf_release(&path);
		}
	}
}
END_TEST

/* ---- a folder ---- */

static bool opening_fails;

static int opened(void *arg, const char *path, const struct h5_file_set *set, const struct h5_opened *what,
		  struct h5_vfs *vfs, void **own)
{
	(void)arg;
	(void)path;
	(void)set;
	(void)what;
	(void)vfs;
	(void)own;
	return opening_fails ? -EPERM : 0;
}

static int closing(void *arg, const char *path, struct h5_vfs *vfs, void *own)
{
	(void)arg;
	(void)path;
	(void)own;
	return h5_vfs_finish(vfs);
}

struct folder {
	char path[160];
	struct h5_tree *tree;
	unsigned descriptors; /* before the tree was opened */
};

static void open_folder(struct folder *folder)
{
	const struct h5_tree_options options = {
		.match = H5_TREE_MATCH,
		.open_files = 2,
		.set = {.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_ALWAYS},
		.vfs = {.url = "file:///folder", .file_fd = -1},
		.opened = opened,
		.closing = closing};

	SUCCEEDS(h5_tree_open(folder->path, &options, &folder->tree));
}

static void begin(struct folder *folder)
{
	snprintf(folder->path, sizeof folder->path, "%s/folder", scratch_folder());
	scratch_run("rm -rf '%s'; mkdir -p '%s/f'; touch '%s/f/x'", folder->path, folder->path, folder->path);
	folder->descriptors = unit_descriptors();
	open_folder(folder);
}

static void end(struct folder *folder)
{
	h5_tree_close(folder->tree);
	ck_assert_uint_eq(unit_descriptors(), folder->descriptors);
	scratch_run("rm -r '%s'", folder->path);
}

static struct h5_tree_node *find(struct folder *folder, const char *name)
{
	struct h5_tree_entry entry;

	SUCCEEDS(h5_tree_lookup(folder->tree, h5_tree_root(folder->tree), name, &entry));
	return entry.node;
}

/* What opening comes to; 0: it succeeds. */
static int open_in(struct folder *folder, const struct h5_tree_node *node, const char *name)
{
	int fd = h5_tree_place_open(folder->tree, node, name, O_RDONLY);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

START_TEST(folders_that_change)
{
	static const char *const changes[] = {
		"mv f g",			       /* gone */
		"mv f g; mkdir f; touch f/x",	       /* another one */
		"mv f g; ln -s g f",		       /* a link to it */
		"mv f g; touch f",		       /* no folder */
		"mv f g; cp -r g f; rm g/x; touch g/x" /* a copy */
	};

	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct h5_tree_node *node;
		struct folder folder;

		begin(&folder);
		node = find(&folder, "f");
		ck_assert_int_eq(open_in(&folder, node, "x"), 0);
		ck_assert_int_eq(open_in(&folder, node, "y"), -ENOENT);
		scratch_run("cd '%s'; %s", folder.path, changes[i]);
		ck_assert_msg(open_in(&folder, node, "x") == -ESTALE, "%s", changes[i]);
		ck_assert_msg(open_in(&folder, node, "y") == -ESTALE, "%s", changes[i]);
		h5_tree_forget(folder.tree, node, 1);
		end(&folder);
	}
}
END_TEST

/* Makes a file whose root group is damaged. */
static void damage_root(const char *path)
{
	enum { ROOT = 36 }; /* its address, in a superblock of version 2 or 3 */
	uint64_t address;
	int fd = open(path, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &address, sizeof address, ROOT), sizeof address);
	ck_assert_int_eq(pwrite(fd, "damage", 6, (off_t)address), 6);
	close(fd);
}

static int enter(struct folder *folder, struct h5_tree_node *node, bool direct)
{
	struct h5_tree_inside in;
	int rc = h5_tree_enter(folder->tree, node, &in);

	if (rc)
		return rc;
	ck_assert_int_eq(in.vfs->maps_direct, direct);
	h5_tree_leave(folder->tree, &in);
	return 0;
}

/* As the kernel of the mount can map them, or not. */
START_TEST(files_are_opened)
{
	struct h5_tree_node *good, *bad;
	struct folder folder;
	char from[512], path[200];

	begin(&folder);
	if (_i)
		h5_tree_set_maps_direct(folder.tree);
	scratch_fixture("read_faults/new.h5", from);
	snprintf(path, sizeof path, "%s/good.h5", folder.path);
	scratch_copy(from, path);
	snprintf(path, sizeof path, "%s/bad.h5", folder.path);
	scratch_copy(from, path);
	damage_root(path);
	good = find(&folder, "good.h5");
	bad = find(&folder, "bad.h5");
	opening_fails = true;
	ck_assert_int_eq(enter(&folder, good, _i), -EPERM);
	opening_fails = false;
	ck_assert_int_eq(enter(&folder, good, _i), 0);
	ck_assert_int_eq(enter(&folder, bad, _i), -EUCLEAN);
	ck_assert_int_eq(enter(&folder, good, _i), 0);
	/* Of a file that is open and of one that is not; after that neither is in use. */
	ck_assert_uint_eq(h5_tree_work_limit(folder.tree, good), h5_tree_work_limit(folder.tree, bad));
	h5_tree_forget(folder.tree, good, 1);
	h5_tree_forget(folder.tree, bad, 1);
	end(&folder);
}
END_TEST

/* Between a look at the name and opening the file. */
START_TEST(files_that_go)
{
	struct h5_tree_entry entry;
	struct folder folder;
	char from[512], path[200];
	bool fired = true;

	begin(&folder);
	scratch_fixture("read_faults/new.h5", from);
	snprintf(path, sizeof path, "%s/good.h5", folder.path);
	scratch_copy(from, path);
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_call_arm(CALL_OPENS_GONE, n, false);
		rc = h5_tree_lookup(folder.tree, h5_tree_root(folder.tree), "good.h5", &entry);
		fired = fault_call_disarm();
		ck_assert_int_eq(!!rc, fired);
		ck_assert(!rc || rc == -ENOENT || rc == -ESTALE);
	}
	h5_tree_forget(folder.tree, entry.node, 1);
	end(&folder);
}
END_TEST

START_TEST(files_that_are_not_used)
{
	enum { LONG = 1000 }; /* seconds */
	const char *const names[] = {"a.h5", "b.h5"};
	struct h5_tree_node *nodes[2];
	struct folder folder;
	struct timespec began;
	char from[512], path[200];

	begin(&folder);
	scratch_fixture("read_faults/new.h5", from);
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", folder.path, names[i]);
		scratch_copy(from, path);
		nodes[i] = find(&folder, names[i]);
		ck_assert_int_eq(enter(&folder, nodes[i], false), 0);
		ck_assert_int_ge(nodes[i]->file->last_use, began.tv_sec);
	}
	nodes[0]->file->last_use += LONG;
	nodes[1]->file->last_use -= LONG;
	ck_assert(h5_tree_close_idle(folder.tree));
	ck_assert_int_eq(nodes[0]->file->state, H5_TREE_OPEN);
	ck_assert_int_eq(nodes[1]->file->state, H5_TREE_CLOSED);
	h5_tree_await_none(folder.tree);
	ck_assert(!h5_tree_close_idle(folder.tree));
	ck_assert_int_eq(nodes[0]->file->state, H5_TREE_OPEN);
	for (unsigned i = 0; i < 2; i++)
		h5_tree_forget(folder.tree, nodes[i], 1);
	end(&folder);
}
END_TEST

/* ---- calls that fail ---- */

/* Looks a name up, in a folder or in an HDF5 file. */
static int look_up(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
		   struct h5_tree_entry *entry)
{
	struct h5_tree_inside in;
	struct h5_vfs_entry found;
	int rc;

	if (h5_tree_kind(parent) == H5_TREE_FOLDER)
		return h5_tree_lookup(tree, parent, name, entry);
	rc = h5_tree_enter(tree, parent, &in);
	if (rc)
		return rc;
	rc = h5_vfs_lookup(in.vfs, in.node, name, &found);
	if (!rc)
		rc = h5_tree_entry(tree, parent, name, &found, entry);
	h5_tree_leave(tree, &in);
	return rc;
}

static int read_file(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out)
{
	struct h5_tree_handle *handle;
	uint64_t hole = 0;
	char bytes[512];
	size_t got = 0, beyond = 0;
	int rc = h5_tree_open_file(tree, node, O_RDONLY, &handle);

	if (rc)
		return rc;
	rc = h5_tree_read(handle, 0, bytes, sizeof bytes, &got);
	errno = EIO;
	if (!rc)
		rc = h5_tree_read(handle, got, bytes + got, sizeof bytes - got, &beyond);
	if (!rc)
		rc = h5_tree_seek(handle, 0, true, &hole);
	h5_tree_close_file(handle);
	ck_assert(!beyond);
	h5_buf_add(out, bytes, got);
	h5_buf_printf(out, "%ju", (uintmax_t)hole);
	return rc;
}

static int list(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out)
{
	struct h5_tree_name names[H5_TREE_NAMES];
	struct h5_tree_dir *dir;
	uint64_t position = 0;
	size_t got = 0;
	int rc = h5_tree_opendir(tree, node, &dir);

	if (rc)
		return rc;
	do {
		rc = h5_tree_readdir(dir, position, names, &got);
		for (size_t i = 0; i < got && !rc; i++)
			h5_buf_printf(out, "%s %o\n", names[i].name, names[i].type);
		position = rc || !got ? position : names[got - 1].next;
	} while (!rc && got);
	h5_tree_closedir(dir);
	return rc;
}

static int tell(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out)
{
	struct stat st;
	int rc = h5_tree_kind(node) == H5_TREE_INSIDE ? 0 : h5_tree_getattr(tree, node, &st);

	if (!rc)
		rc = h5_tree_kind(node) == H5_TREE_INSIDE ? 0 : h5_tree_listxattr(tree, node, out);
	h5_tree_path(tree, node, out);
	return rc;
}

static int follow(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out)
{
	return h5_tree_readlink(tree, node, out);
}

static const struct {
	const char *path;
	int (*ask)(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out);
} questions[] = {
	{"f", list},	       {"f", tell},	  {"f/x", read_file},
	{"f/x", tell},	       {"link", follow},  {"link", tell},
	{"good.h5", list},     {"good.h5", tell}, {"good.h5/few", read_file},
	{"good.h5/few", tell},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* What comes of the question, from the root on. */
static int ask(struct h5_tree *tree, unsigned question, struct h5_buf *out)
{
	struct h5_tree_node *node = h5_tree_root(tree), *found[4];
	char path[64], *rest = path;
	size_t count = 0;
	int rc = 0;

	h5_buf_release(out);
	h5_buf_init(out, 1 << 16);
	snprintf(path, sizeof path, "%s", questions[question].path);
	while (rest && !rc) {
		struct h5_tree_entry entry;

		rc = look_up(tree, node, strsep(&rest, "/"), &entry);
		if (!rc)
			node = found[count++] = entry.node;
	}
	if (!rc)
		rc = questions[question].ask(tree, node, out);
	while (count)
		h5_tree_forget(tree, found[--count], 1);
	return rc ? rc : out->err;
}

static void arm_open(unsigned long n)
{
	fault_call_arm(CALL_OPENS_NONE, n, false);
}

static void arm_read(unsigned long n)
{
	fault_call_arm(CALL_FAILS, n, false);
}

static const struct {
	void (*arm)(unsigned long n);
	bool (*disarm)(void);
	int error;
} faults[] = {{fault_alloc_arm, fault_alloc_disarm, -ENOMEM},
	      {arm_open, fault_call_disarm, -EMFILE},
	      {arm_read, fault_call_disarm, -EIO}};
enum { FAULTS = sizeof faults / sizeof *faults };

/* Whatever failed, no file is kept open for it. */
static void check_unused(const struct h5_tree *tree)
{
	const struct h5_tree_file *file;

	DL_FOREACH(tree->open, file)
	{
		ck_assert_uint_eq(file->uses, 0);
		ck_assert_uint_eq(file->held, 0);
	}
}

/* Opens the folder anew, where nothing is known of it, and asks. False: there is no n-th call. */
static bool fail_call(struct folder *folder, unsigned question, unsigned fault, unsigned long n,
		      const struct h5_buf *expected)
{
	struct h5_buf out;
	bool fired;
	int rc;

	h5_buf_init(&out, 1 << 16);
	h5_tree_close(folder->tree);
	ck_assert_uint_eq(unit_descriptors(), folder->descriptors);
	open_folder(folder);
	fault_alloc_count(true);
	faults[fault].arm(n);
	rc = ask(folder->tree, question, &out);
	fault_alloc_count(false);
	fired = faults[fault].disarm();
	ck_assert_msg(!rc || (fired && rc == faults[fault].error), "question %u, %lu: %d %s", question, n, rc,
		      h5_error_last()->text);
	for (unsigned again = 0; again < 2; again++) {
		if (!rc)
			ck_assert_msg(out.size == expected->size &&
					      !memcmp(out.data, expected->data, out.size),
				      "question %u, %lu: %.*s", question, n, (int)out.size, out.data);
		rc = ask(folder->tree, question, &out);
		ck_assert_msg(!rc, "question %u, after %lu: %d %s", question, n, rc, h5_error_last()->text);
	}
	h5_buf_release(&out);
	check_unused(folder->tree);
	return fired;
}

START_TEST(calls_fail)
{
	const unsigned question = (unsigned)_i % QUESTIONS, fault = (unsigned)_i / QUESTIONS;
	struct folder folder;
	struct h5_buf expected;
	char from[512], path[200];

	h5_buf_init(&expected, 1 << 16);
	begin(&folder);
	scratch_fixture("read_faults/new.h5", from);
	snprintf(path, sizeof path, "%s/good.h5", folder.path);
	scratch_copy(from, path);
	scratch_run("ln -s f/x '%s/link'; echo text >'%s/f/x'", folder.path, folder.path);
	SUCCEEDS(ask(folder.tree, question, &expected));
	ck_assert_uint_gt(expected.size, 0);
	for (unsigned long n = 1; fail_call(&folder, question, fault, n, &expected); n++)
		;
	h5_buf_release(&expected);
	end(&folder);
}
END_TEST

/* ---- nodes in HDF5 files ---- */

static void add_file(struct folder *folder, const char *name)
{
	char from[512], path[200];

	scratch_fixture("check_tree.h5", from);
	snprintf(path, sizeof path, "%s/%s", folder->path, name);
	scratch_copy(from, path);
}

static void begin_with_files(struct folder *folder, struct h5_tree_node *nodes[3])
{
	static const char *const names[] = {"a.h5", "b.h5", "c.h5"};

	begin(folder);
	for (unsigned i = 0; i < 3; i++) {
		add_file(folder, names[i]);
		nodes[i] = find(folder, names[i]);
	}
}

static struct h5_tree_node *find_inside(struct folder *folder, struct h5_tree_node *parent, const char *name)
{
	struct h5_tree_entry entry;

	SUCCEEDS(look_up(folder->tree, parent, name, &entry));
	return entry.node;
}

static unsigned nodes_inside(const struct h5_tree_node *file)
{
	return HASH_COUNT(file->file->vfs->nodes);
}

/* Opens the others, so this file closes. */
static void let_close(struct folder *folder, struct h5_tree_node *nodes[3])
{
	ck_assert_int_eq(enter(folder, nodes[1], false), 0);
	ck_assert_int_eq(enter(folder, nodes[2], false), 0);
	ck_assert_int_eq(nodes[0]->file->state, H5_TREE_CLOSED);
}

/* A node has one reference to its own in the file, however often it is looked up, and gives it back. If the
 * file has another object there by now, nothing is left of the look-up. */
START_TEST(references_to_nodes_in_files)
{
	struct h5_tree_node *nodes[3], *group, *inner;
	struct folder folder;
	unsigned before;

	begin_with_files(&folder, nodes);
	ck_assert_int_eq(enter(&folder, nodes[0], false), 0);
	before = nodes_inside(nodes[0]);
	group = find_inside(&folder, nodes[0], "group");
	ck_assert_ptr_eq(find_inside(&folder, nodes[0], "group"), group);
	ck_assert_uint_eq(group->references, 2);
	ck_assert_uint_eq(group->inside->references, 1);
	h5_tree_forget(folder.tree, group, 2);
	ck_assert_uint_eq(nodes_inside(nodes[0]), before);
	group = find_inside(&folder, nodes[0], "group");
	inner = find_inside(&folder, group, "inner");
	let_close(&folder, nodes);
	ck_assert_int_eq(enter(&folder, inner, false), 0);
	ck_assert_uint_eq(group->references, 2);
	ck_assert_uint_eq(inner->references, 1);
	ck_assert_uint_eq(inner->inside->references, 1);
	ck_assert_uint_eq(nodes_inside(nodes[0]), before + 2);
	h5_tree_forget(folder.tree, inner, 1);
	ck_assert_uint_eq(nodes_inside(nodes[0]), before + 1);
	for (unsigned i = 0; i < 2; i++) {
		let_close(&folder, nodes);
		group->inner += !i;
		group->type ^= i ? S_IFDIR : 0;
		ck_assert_int_eq(enter(&folder, nodes[0], false), 0);
		ck_assert_int_eq(enter(&folder, group, false), -ESTALE);
		ck_assert_uint_eq(nodes_inside(nodes[0]), before);
		ck_assert_uint_eq(group->references, 1);
		group->inner -= !i;
		group->type ^= i ? S_IFDIR : 0;
	}
	ck_assert_int_eq(enter(&folder, group, false), 0);
	h5_tree_forget(folder.tree, group, 1);
	for (unsigned i = 0; i < 3; i++)
		h5_tree_forget(folder.tree, nodes[i], 1);
	end(&folder);
}
END_TEST

/* A listing gives names alone: the kernel would not give its nodes back. */
START_TEST(names_in_files)
{
	struct h5_tree_name names[H5_TREE_NAMES];
	struct h5_tree_node *node;
	struct h5_tree_dir *dir;
	struct folder folder;
	unsigned before;
	size_t got;

	begin(&folder);
	add_file(&folder, "a.h5");
	node = find(&folder, "a.h5");
	ck_assert_int_eq(enter(&folder, node, false), 0);
	before = nodes_inside(node);
	SUCCEEDS(h5_tree_opendir(folder.tree, node, &dir));
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &got));
	ck_assert_uint_gt(got, 2);
	h5_tree_closedir(dir);
	ck_assert_uint_eq(nodes_inside(node), before);
	h5_tree_forget(folder.tree, node, 1);
	end(&folder);
}
END_TEST

/* Another program changes the file. True: the vfs has not seen that yet. */
static bool is_unseen(const struct h5_tree_node *node)
{
	return h5_file_refresh(h5_file_set_root(node->file->vfs->set));
}

/* Requests to a file and those to what is open in it find what another program has changed. */
START_TEST(files_that_other_programs_change)
{
	struct h5_tree_node *file, *node;
	struct h5_tree_handle *handle;
	char from[512], path[200];
	struct folder folder;
	uint64_t found;
	uint8_t byte;
	size_t got;

	begin(&folder);
	scratch_fixture("read_faults/new.h5", from);
	snprintf(path, sizeof path, "%s/x.h5", folder.path);
	scratch_copy(from, path);
	file = find(&folder, "x.h5");
	node = find_inside(&folder, file, "appendable");
	SUCCEEDS(h5_tree_open_file(folder.tree, node, O_RDONLY, &handle));
	for (time_t seconds = 1; seconds <= 6; seconds++) {
		const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

		ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
		if (seconds % 3 == 0)
			SUCCEEDS(h5_tree_read(handle, 0, &byte, 1, &got));
		else if (seconds % 3 == 1)
			SUCCEEDS(h5_tree_seek(handle, 0, true, &found));
		else
			ck_assert_int_eq(enter(&folder, file, false), 0);
		ck_assert(!is_unseen(file));
	}
	h5_tree_close_file(handle);
	h5_tree_forget(folder.tree, node, 1);
	h5_tree_forget(folder.tree, file, 1);
	end(&folder);
}
END_TEST

/* Entries inside a file belong to the owner and the group of the file. */
START_TEST(owners_in_files)
{
	struct h5_tree_node *node;
	struct h5_tree_inside in;
	struct stat named, st;
	struct folder folder;
	char path[200];

	begin(&folder);
	add_file(&folder, "a.h5");
	snprintf(path, sizeof path, "%s/a.h5", folder.path);
	ck_assert_int_eq(stat(path, &named), 0);
	folder.tree->options.keeps_uid = _i & 1;
	folder.tree->options.keeps_gid = _i & 2;
	folder.tree->options.vfs.uid = named.st_uid + 12;
	folder.tree->options.vfs.gid = named.st_gid + 34;
	node = find(&folder, "a.h5");
	SUCCEEDS(h5_tree_enter(folder.tree, node, &in));
	SUCCEEDS(h5_vfs_getattr(in.vfs, in.node, &st));
	ck_assert_uint_eq(st.st_uid, named.st_uid + (_i & 1 ? 0 : 12));
	ck_assert_uint_eq(st.st_gid, named.st_gid + (_i & 2 ? 0 : 34));
	h5_tree_leave(folder.tree, &in);
	h5_tree_forget(folder.tree, node, 1);
	end(&folder);
}
END_TEST

/* The file has another object by the number of the node: that is another node, which gets the number. */
START_TEST(a_number_of_another_object)
{
	struct h5_tree_node *file, *group, *others[2];
	struct h5_tree_inside in;
	struct folder folder;
	unsigned before;

	begin(&folder);
	add_file(&folder, "a.h5");
	file = find(&folder, "a.h5");
	ck_assert_int_eq(enter(&folder, file, false), 0);
	before = nodes_inside(file);
	group = find_inside(&folder, file, "group");
	SUCCEEDS(h5_tree_enter(folder.tree, file, &in));
	for (unsigned i = 0; i < 2; i++) {
		struct h5_vfs_entry found;
		struct h5_tree_entry entry;

		SUCCEEDS(h5_vfs_lookup(in.vfs, in.node, "group", &found));
		found.st.st_ino += !i;
		found.st.st_mode ^= i ? S_IFDIR ^ S_IFREG : 0;
		SUCCEEDS(h5_tree_entry(folder.tree, file, "group", &found, &entry));
		others[i] = entry.node;
	}
	h5_tree_leave(folder.tree, &in);
	ck_assert(others[0] != group && others[1] != group && others[1] != others[0]);
	ck_assert(group->is_detached && others[0]->is_detached && !others[1]->is_detached);
	ck_assert_uint_eq(group->references, 1);
	for (unsigned i = 0; i < 2; i++)
		h5_tree_forget(folder.tree, others[i], 1);
	ck_assert_int_eq(enter(&folder, group, false), 0);
	h5_tree_forget(folder.tree, group, 1);
	ck_assert_uint_eq(nodes_inside(file), before);
	h5_tree_forget(folder.tree, file, 1);
	end(&folder);
}
END_TEST

/* Without memory for another name a node keeps the one it has; or the look-up fails, and nothing is left of
 * it. */
START_TEST(other_names_without_memory)
{
	struct h5_tree_node *file, *group, *data;
	unsigned kept = 0;
	struct h5_tree_inside in;
	struct folder folder;
	bool fired = true;

	begin(&folder);
	add_file(&folder, "a.h5");
	file = find(&folder, "a.h5");
	group = find_inside(&folder, file, "group");
	SUCCEEDS(h5_tree_enter(folder.tree, group, &in));
	for (unsigned long n = 1; fired; n++) {
		struct h5_vfs_entry found;
		struct h5_tree_entry entry;
		int rc;

		data = find_inside(&folder, group, "data");
		ck_assert_str_eq(data->name, "data");
		SUCCEEDS(h5_vfs_lookup(in.vfs, in.node, "third", &found));
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_tree_entry(folder.tree, group, "third", &found, &entry);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || rc == -ENOMEM);
		kept += !rc && fired;
		ck_assert_str_eq(data->name, fired ? "data" : "third");
		ck_assert(rc || entry.node == data);
		ck_assert_ptr_eq(data->parent, group);
		h5_tree_forget(folder.tree, data, 1 + !rc);
		ck_assert_uint_eq(group->references, 1);
	}
	ck_assert_uint_eq(kept, 1);
	h5_tree_leave(folder.tree, &in);
	h5_tree_forget(folder.tree, group, 1);
	h5_tree_forget(folder.tree, file, 1);
	end(&folder);
}
END_TEST

/* Nodes of a file that was closed are found again by their names, which takes memory. */
START_TEST(ways_without_memory)
{
	struct h5_tree_node *nodes[3], *group, *inner;
	struct folder folder;
	unsigned failed = 0;
	bool fired = true;

	begin_with_files(&folder, nodes);
	group = find_inside(&folder, nodes[0], "group");
	inner = find_inside(&folder, group, "inner");
	for (unsigned long n = 1; fired; n++) {
		struct h5_tree_inside in;
		struct h5_node *inside;
		int rc;

		let_close(&folder, nodes);
		SUCCEEDS(h5_tree_enter(folder.tree, nodes[0], &in));
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_tree_enter_too(folder.tree, inner, &in, &inside);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		failed += rc != 0;
		ck_assert_uint_eq(group->references, 2);
		ck_assert_uint_eq(inner->references, 1);
		ck_assert_uint_eq(nodes[0]->references, 2);
		SUCCEEDS(h5_tree_enter_too(folder.tree, inner, &in, &inside));
		ck_assert_ptr_eq(inside, inner->inside);
		h5_tree_leave(folder.tree, &in);
	}
	ck_assert_uint_gt(failed, 1);
	h5_tree_forget(folder.tree, inner, 1);
	h5_tree_forget(folder.tree, group, 1);
	for (unsigned i = 0; i < 3; i++)
		h5_tree_forget(folder.tree, nodes[i], 1);
	end(&folder);
}
END_TEST

/* A name that is longer than any of a local folder is not looked for in the table. */
START_TEST(names_that_are_too_long_for_a_key)
{
	for (size_t n = NAME_MAX - 1; n < NAME_MAX + 3; n++) {
		struct h5_tree_found found = {.kind = H5_TREE_PLAIN, .device = 1, .inode = 2};
		struct h5_tree_node *root, *first, *second;
		char name[NAME_MAX + 4] = "";
		struct folder folder;

		begin(&folder);
		root = h5_tree_root(folder.tree);
		memset(name, 'x', n);
		ck_assert(!h5_tree_node_recall(folder.tree, root, name, &found));
		SUCCEEDS(h5_tree_node_get(folder.tree, root, name, &found, &first));
		SUCCEEDS(h5_tree_node_get(folder.tree, root, name, &found, &second));
		ck_assert_int_eq(first == second, n <= NAME_MAX);
		ck_assert_int_eq(h5_tree_node_recall(folder.tree, root, name, &found), n <= NAME_MAX);
		ck_assert_str_eq(second->name, name);
		h5_tree_forget(folder.tree, first, 1);
		h5_tree_forget(folder.tree, second, 1);
		end(&folder);
	}
}
END_TEST

/* The folder is not there, is none, or cannot be opened: nothing is left of it. */
START_TEST(folders_that_cannot_be_opened)
{
	const struct h5_tree_options options = {.match = H5_TREE_MATCH, .open_files = 2};
	const unsigned descriptors = unit_descriptors();
	struct h5_tree *tree;
	char path[160];
	bool fired;

	snprintf(path, sizeof path, "%s/none", scratch_folder());
	ck_assert_int_eq(h5_tree_open(path, &options, &tree), -ENOENT);
	scratch_run("touch '%s'", path);
	ck_assert_int_eq(h5_tree_open(path, &options, &tree), -ENOTDIR);
	scratch_run("rm '%s'; mkdir '%s'", path, path);
	for (unsigned what = 0; what < 2; what++) {
		unsigned failed = 0;

		fired = true;
		for (unsigned long n = 1; fired; n++) {
			int rc;

			if (what)
				fault_alloc_arm(n);
			else
				fault_call_arm(CALL_OPENS_GONE, n, false);
			fault_alloc_count(true);
			rc = h5_tree_open(path, &options, &tree);
			fault_alloc_count(false);
			fired = what ? fault_alloc_disarm() : fault_call_disarm();
			ck_assert_int_eq(rc, !fired ? 0 : what ? -ENOMEM : -ENOENT);
			failed += fired;
			if (rc)
				ck_assert_uint_eq(unit_descriptors(), descriptors);
		}
		ck_assert_uint_ge(failed, 2);
		h5_tree_close(tree);
	}
	scratch_run("rmdir '%s'", path);
}
END_TEST

/* Handles of files that the vfs has opened are closed if there is no memory for them. */
START_TEST(handles_without_memory)
{
	struct h5_tree_node *file, *data;
	struct folder folder;
	bool fired = true;
	unsigned failed = 0;

	begin(&folder);
	add_file(&folder, "a.h5");
	file = find(&folder, "a.h5");
	data = find_inside(&folder, file, "again");
	for (unsigned long n = 1; fired; n++) {
		struct h5_tree_handle *handle;
		struct h5_tree_inside in;
		struct h5_handle *inside;
		int rc;

		SUCCEEDS(h5_tree_enter(folder.tree, data, &in));
		SUCCEEDS(h5_vfs_open_file(in.vfs, in.node, O_RDONLY, &inside));
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_tree_take_handle(folder.tree, data, inside, &handle);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		h5_tree_leave(folder.tree, &in);
		if (!rc) {
			ck_assert_ptr_eq(h5_tree_handle_inside(handle), inside);
			ck_assert_uint_eq(file->file->held, 1);
			h5_tree_close_file(handle);
		}
		failed += rc != 0;
		check_unused(folder.tree);
		ck_assert_ptr_null(in.vfs->handles);
	}
	ck_assert_uint_gt(failed, 0);
	h5_tree_forget(folder.tree, data, 1);
	h5_tree_forget(folder.tree, file, 1);
	end(&folder);
}
END_TEST

UNIT_MAIN_LOOPS("tree", {patterns, 1}, {paths, 1}, {folders_that_change, 1}, {files_are_opened, 2},
		{files_that_go, 1}, {files_that_are_not_used, 1}, {calls_fail, QUESTIONS *FAULTS},
		{references_to_nodes_in_files, 1}, {names_in_files, 1}, {files_that_other_programs_change, 1},
		{a_number_of_another_object, 1}, {other_names_without_memory, 1}, {ways_without_memory, 1},
		{names_that_are_too_long_for_a_key, 1}, {folders_that_cannot_be_opened, 1},
		{handles_without_memory, 1}, {owners_in_files, 4})

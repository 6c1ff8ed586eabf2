/* Entries of a folder: their numbers and attributes, links, files of other kinds, and what the root tells. */
#include "base/checked.h"
#include "base/wait.h"
#include "fault_call.h"
#include "scratch.h"
#include "tree/object.h"
#include "tree_scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <linux/limits.h>

static unsigned readdir_fails_after = UINT_MAX; /* calls */

struct dirent *__real_readdir64(DIR *stream);
struct dirent *__wrap_readdir64(DIR *stream);

struct dirent *__wrap_readdir64(DIR *stream)
{
	if (readdir_fails_after == UINT_MAX || readdir_fails_after--)
		return __real_readdir64(stream);
	errno = EIO;
	return NULL;
}

static bool fdopendir_fails;

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);

DIR *__wrap_fdopendir(int fd)
{
	if (!fdopendir_fails)
		return __real_fdopendir(fd);
	errno = ENOMEM;
	return NULL;
}

static ssize_t target_is = -1; /* bytes, up to what there is room for; -1: the link's own */

ssize_t __real_readlinkat(int fd, const char *path, char *target, size_t n);
ssize_t __wrap_readlinkat(int fd, const char *path, char *target, size_t n);

ssize_t __wrap_readlinkat(int fd, const char *path, char *target, size_t n)
{
	if (target_is < 0)
		return __real_readlinkat(fd, path, target, n);
	n = (size_t)target_is < n ? (size_t)target_is : n;
	memset(target, 'x', n);
	errno = EIO;
	return (ssize_t)n;
}

/* Attributes that the file system has of each file: what it answers, a list or a value; or the error. */
static struct {
	const char *answer;
	size_t n;
	int error;
	unsigned asked;
	ino_t inode; /* of the file that was asked for last */
} attributes;

ssize_t __wrap_flistxattr(int fd, char *list, size_t n);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t n);

static ssize_t answer_attributes(int fd, void *to, size_t n)
{
	struct stat st;

	ck_assert(!fstat(fd, &st) && n >= attributes.n);
	attributes.asked++;
	attributes.inode = st.st_ino;
	errno = attributes.error;
	if (attributes.error)
		return -1;
	memcpy(to, attributes.answer, attributes.n);
	return (ssize_t)attributes.n;
}

ssize_t __wrap_flistxattr(int fd, char *list, size_t n)
{
	ck_assert_uint_ge(n, XATTR_LIST_MAX);
	return answer_attributes(fd, list, n);
}

ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t n)
{
	ck_assert_uint_ge(n, XATTR_SIZE_MAX);
	ck_assert_str_eq(name, "user.b");
	return answer_attributes(fd, value, n);
}

static int named_fails; /* what opening a path in the folder comes to; 0: what it is */

int __real_h5_named_open_without_links(int at, const char *path, int flags);
int __wrap_h5_named_open_without_links(int at, const char *path, int flags);

int __wrap_h5_named_open_without_links(int at, const char *path, int flags)
{
	return named_fails ? named_fails : __real_h5_named_open_without_links(at, path, flags);
}

/* What these return of a directory in a file; 0: what they find. */
static int go_fails, read_fails;

int __real_h5_vfs_dir_go(struct h5_dir *dir, uint64_t position, size_t *first);
int __wrap_h5_vfs_dir_go(struct h5_dir *dir, uint64_t position, size_t *first);

int __wrap_h5_vfs_dir_go(struct h5_dir *dir, uint64_t position, size_t *first)
{
	int rc = __real_h5_vfs_dir_go(dir, position, first);

	return go_fails ? go_fails : rc;
}

int __real_h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus,
			   struct h5_vfs_entry *entries, size_t *got);
int __wrap_h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus,
			   struct h5_vfs_entry *entries, size_t *got);

int __wrap_h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus,
			   struct h5_vfs_entry *entries, size_t *got)
{
	int rc = __real_h5_vfs_dir_read(dir, first, count, plus, entries, got);

	ck_assert(!plus); /* the nodes would have to be forgotten */
	return read_fails ? read_fails : rc;
}

/* ---- numbers ---- */

/* splitmix64's own first number, for the seed 0. */
START_TEST(numbers_of_files)
{
	const uint64_t gamma = UINT64_C(0x9e3779b97f4a7c15), first = UINT64_C(0xe220a8397b1dcdaf);
	const struct h5_tree_file none = {.device = 0}, within = {.device = first, .inode = gamma};

	ck_assert_uint_eq(h5_tree_ino(0, gamma), first);
	ck_assert_uint_eq(h5_tree_ino(gamma, first ^ gamma), first);
	ck_assert_uint_eq(h5_tree_ino(0, 0), 1);
	ck_assert_uint_eq(h5_tree_ino_inside(&none, 0), 0);
	ck_assert_uint_eq(h5_tree_ino_inside(&within, 0), 0);
	/* mix(first ^ device) is 0, and then gamma is mixed. */
	ck_assert_uint_eq(h5_tree_ino_inside(&within, gamma), first);
}
END_TEST

/* ---- links ---- */

START_TEST(links_that_lead_out)
{
	static const struct {
		const char *place, *target;
		bool out;
	} cases[] = {
		{".", "x", false},
		{".", "/", true},
		{".", "/x", true},
		{".", "..", true},
		{".", "x/..", false},
		{".", "x/../..", true},
		{".", "./..", true},
		{".", "...", false},
		{".", "..x/../x", false},
		{".", ".x/..", false},
		{".", "x//../..", true},
		{"f", "..", false},
		{"f", "../..", true},
		{"f", "../x", false},
		{"f", "../f/../..", true},
		{"f/g", "../..", false},
		{"f/g", "../../", false},
		{"f/g", "../../..", true},
		{"f/g", "./../.././..", true},
		{"f/g", "a/b/../../../../..", true},
		{"f/g", "a/b/../../../..", false},
		{"f", ".a/..b/../../..", false},
		{"f", "a/./../../..", true},
	};

	for (unsigned external = H5_EXTERNAL_NONE; external <= H5_EXTERNAL_ANY; external++) {
		folder.options.set.external = external;
		folder_reopen();
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			struct h5_tree_node *way[4] = {h5_tree_root(folder.tree)};
			char place[8], *rest = place;
			struct h5_buf target;
			unsigned n = 0;
			int rc;

			scratch_run("ln -snf '%s' '%s/%s/link'", cases[i].target, folder.path,
				    cases[i].place);
			strcpy(place, cases[i].place);
			while (rest && *place != '.') {
				way[n + 1] = folder_find(way[n], strsep(&rest, "/"));
				n++;
			}
			way[n + 1] = folder_find(way[n], "link");
			n++;
			h5_buf_init(&target, 64);
			rc = h5_tree_readlink(folder.tree, way[n], &target);
			ck_assert_msg(rc == (cases[i].out && external != H5_EXTERNAL_ANY ? -EACCES : 0),
				      "%s: %s: %d", cases[i].place, cases[i].target, rc);
			ck_assert(rc || (target.size == strlen(cases[i].target) + 1 &&
					 !strcmp(target.data, cases[i].target)));
			h5_buf_release(&target);
			while (n)
				folder_forget(way[n--]);
		}
	}
}
END_TEST

/* A target may be longer than any path, or nothing. One that the buffer has no room for is too long. */
START_TEST(links_of_any_length)
{
	static const ssize_t sizes[] = {0, 1, PATH_MAX - 1, PATH_MAX, PATH_MAX + 1};
	struct h5_tree_node *link;

	scratch_run("ln -s x '%s/link'", folder.path);
	link = folder_find(h5_tree_root(folder.tree), "link");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const size_t n = (size_t)h5_min((uint64_t)sizes[i], PATH_MAX);
		struct h5_buf target;

		h5_buf_init(&target, 2 * PATH_MAX);
		target_is = sizes[i];
		SUCCEEDS(h5_tree_readlink(folder.tree, link, &target));
		target_is = -1;
		ck_assert_uint_eq(target.size, n + 1);
		ck_assert_uint_eq(strlen(target.data), n);
		h5_buf_release(&target);
	}
	folder_forget(link);
}
END_TEST

START_TEST(links_in_files)
{
	struct h5_tree_node *a = folder_find(h5_tree_root(folder.tree), "a.h5"),
			    *link = folder_find(a, "soft"), *group = folder_find(a, "group");
	struct h5_buf target;

	h5_buf_init(&target, 100);
	ck_assert_int_eq(h5_tree_readlink(folder.tree, group, &target), -EINVAL);
	ck_assert_uint_eq(target.size, 0);
	SUCCEEDS(h5_tree_readlink(folder.tree, link, &target));
	ck_assert_uint_eq(target.size, strlen(target.data) + 1);
	h5_buf_release(&target);
	h5_buf_init(&target, 1);
	ck_assert_int_eq(h5_tree_readlink(folder.tree, link, &target), -E2BIG);
	h5_buf_release(&target);
	folder_forget(group);
	folder_forget(link);
	folder_forget(a);
}
END_TEST

/* ---- files of other kinds, and attributes ---- */

static void check_open(struct h5_tree_node *node, int flags, int code)
{
	struct h5_tree_handle *handle;

	ck_assert_int_eq(h5_tree_open_file(folder.tree, node, flags, &handle), code);
	if (!code)
		h5_tree_close_file(handle);
}

/* A file that is open lives on when another one takes its place. */
START_TEST(plain_files)
{
	static const char text[] = "a text of some bytes";
	struct h5_tree_node *root = h5_tree_root(folder.tree), *node, *f, *a;
	struct h5_tree_handle *handle;
	struct h5_tree_entry entry;
	struct h5_tree_dir *dir;
	struct h5_buf out;
	uint64_t found;
	struct stat st;
	char bytes[64];
	size_t got;

	folder_make_file("x", text, 0, strlen(text));
	node = folder_find(root, "x");
	f = folder_find(root, "f");
	a = folder_find(root, "a.h5");
	check_open(node, O_WRONLY, -EROFS);
	check_open(node, O_RDWR, -EROFS);
	check_open(node, O_RDONLY | O_TRUNC, -EROFS);
	check_open(f, O_RDONLY, -EISDIR);
	check_open(a, O_RDONLY, -EISDIR);
	ck_assert_int_eq(h5_tree_opendir(folder.tree, node, &dir), -ENOTDIR);
	ck_assert_int_eq(h5_tree_lookup(folder.tree, node, "y", &entry), -ENOTDIR);
	h5_buf_init(&out, 64);
	ck_assert_int_eq(h5_tree_readlink(folder.tree, node, &out), -EINVAL);
	ck_assert_int_eq(h5_tree_readlink(folder.tree, f, &out), -EINVAL);
	ck_assert_int_eq(h5_tree_readlink(folder.tree, a, &out), -EINVAL);
	h5_buf_release(&out);
	SUCCEEDS(h5_tree_open_file(folder.tree, node, O_RDONLY, &handle));
	fault_call_arm(CALL_SHORT, 1, true);
	SUCCEEDS(h5_tree_read(handle, 2, bytes, sizeof bytes, &got));
	fault_call_disarm();
	ck_assert_uint_eq(got, strlen(text) - 2);
	ck_assert_mem_eq(bytes, text + 2, got);
	fault_call_arm(CALL_FAILS, 1, false);
	ck_assert_int_eq(h5_tree_read(handle, 0, bytes, sizeof bytes, &got), -EIO);
	fault_call_disarm();
	SUCCEEDS(h5_tree_seek(handle, 3, false, &found));
	ck_assert_uint_eq(found, 3);
	SUCCEEDS(h5_tree_seek(handle, 3, true, &found));
	ck_assert_uint_eq(found, strlen(text));
	ck_assert_int_eq(h5_tree_seek(handle, strlen(text), false, &found), -ENXIO);
	scratch_run("echo >'%s/y'; mv '%s/y' '%s/x'", folder.path, folder.path, folder.path);
	SUCCEEDS(h5_tree_getattr(folder.tree, node, &st));
	ck_assert_int_eq(st.st_size, (off_t)strlen(text));
	h5_tree_close_file(handle);
	ck_assert_int_eq(h5_tree_getattr(folder.tree, node, &st), -ESTALE);
	check_open(node, O_RDONLY, -ESTALE);
	folder_forget(node);
	folder_forget(f);
	folder_forget(a);
}
END_TEST

/* What the entry's attributes are, of a file with that mode. */
static void check_attributes(const char *name, mode_t mode, mode_t expected, bool keeps)
{
	struct h5_tree_entry entry;
	struct stat st, again;
	char path[200];

	snprintf(path, sizeof path, "%s/%s", folder.path, name);
	ck_assert_int_eq(chmod(path, mode), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	SUCCEEDS(h5_tree_lookup(folder.tree, h5_tree_root(folder.tree), name, &entry));
	SUCCEEDS(h5_tree_getattr(folder.tree, entry.node, &again));
	ck_assert_msg(entry.st.st_mode == expected, "%s %o: %o", name, mode, entry.st.st_mode);
	ck_assert_uint_eq(again.st_mode, expected);
	ck_assert_uint_eq(again.st_ino, h5_tree_ino(st.st_dev, st.st_ino));
	ck_assert_uint_eq(again.st_uid, keeps ? st.st_uid : 12);
	ck_assert_uint_eq(again.st_gid, keeps ? st.st_gid : 34);
	if (h5_tree_kind(entry.node) == H5_TREE_FILE)
		ck_assert(again.st_nlink == 1 && !again.st_size && !again.st_blocks);
	else
		ck_assert_int_eq(again.st_size, st.st_size);
	ck_assert_int_eq(again.st_mtim.tv_nsec, st.st_mtim.tv_nsec);
	ck_assert_int_eq(again.st_blksize, 1 << 17);
	folder_forget(entry.node);
}

/* A directory of an HDF5 file can be entered by those who may read the file. */
START_TEST(attributes_of_entries)
{
	folder.options.vfs.uid = 12;
	folder.options.vfs.gid = 34;
	folder_make_file("x", "x", 0, 1);
	/* The directory is one all the same. */
	scratch_run("ln '%s/a.h5' '%s/f/same.h5'", folder.path, folder.path);
	for (unsigned keeps = 0; keeps < 2; keeps++) {
		folder.options.keeps_uid = folder.options.keeps_gid = keeps;
		folder.options.vfs.writable = false;
		folder.options.vfs.dmask = folder.options.vfs.fmask = 0;
		folder_reopen();
		check_attributes("x", 0666, S_IFREG | 0444, keeps);
		check_attributes("x", 07755, S_IFREG | 0555, keeps);
		check_attributes("f", 0777, S_IFDIR | 0555, keeps);
		check_attributes("a.h5", 0640, S_IFDIR | 0550, keeps);
		check_attributes("a.h5", 0607, S_IFDIR | 0505, keeps);
		folder.options.vfs.dmask = 011;
		folder.options.vfs.fmask = 044;
		folder_reopen();
		check_attributes("x", 0666, S_IFREG | 0400, keeps);
		check_attributes("f", 0777, S_IFDIR | 0544, keeps);
		check_attributes("a.h5", 0644, S_IFDIR | 0544, keeps);
		folder.options.vfs.writable = true;
		folder.options.vfs.dmask = folder.options.vfs.fmask = 0;
		folder_reopen();
		check_attributes("x", 0666, S_IFREG | 0444, keeps);
		check_attributes("f", 0777, S_IFDIR | 0777, keeps);
		check_attributes("a.h5", 0664, S_IFDIR | 0775, keeps);
	}
}
END_TEST

START_TEST(attributes_of_objects)
{
	static const struct {
		uint64_t size, blocks;
	} cases[] = {{0, 0},
		     {1, 1},
		     {511, 1},
		     {512, 1},
		     {513, 2},
		     {1024, 2},
		     {UINT64_C(1) << 40, UINT64_C(1) << 31}};

	for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
		const struct h5_tree_found found = {.kind = i % 2 ? H5_TREE_FOLDER : H5_TREE_PLAIN,
						    .device = 3,
						    .inode = 4,
						    .changed = {.tv_sec = 5},
						    .size = cases[i / 2].size};
		struct stat st;

		h5_tree_object_say(&found, &st);
		ck_assert_uint_eq(st.st_dev, 3);
		ck_assert_uint_eq(st.st_ino, 4);
		ck_assert_uint_eq(st.st_mode, i % 2 ? S_IFDIR | 0555 : S_IFREG | 0444);
		ck_assert_uint_eq(st.st_nlink, i % 2 ? 2 : 1);
		ck_assert_uint_eq((uint64_t)st.st_size, cases[i / 2].size);
		ck_assert_uint_eq((uint64_t)st.st_blocks, cases[i / 2].blocks);
		ck_assert(st.st_atim.tv_sec == 5 && st.st_mtim.tv_sec == 5 && st.st_ctim.tv_sec == 5);
	}
}
END_TEST

/* Names come in parts; the first part is read anew. */
START_TEST(long_folders)
{
	enum { MORE = 2 * H5_TREE_NAMES };
	struct h5_tree_node *f = folder_find(h5_tree_root(folder.tree), "f");
	struct h5_tree_name names[H5_TREE_NAMES];
	struct h5_tree_dir *dir;
	bool seen[MORE] = {false};
	size_t all = 0;
	uint64_t at = 0;
	char name[16];
	size_t got;

	SUCCEEDS(h5_tree_opendir(folder.tree, f, &dir));
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &got));
	ck_assert_uint_eq(got, 1);
	ck_assert_str_eq(names->name, "g");
	ck_assert_uint_eq(names->type, S_IFDIR);
	ck_assert_uint_eq(names->next, 1);
	for (unsigned i = 0; i < MORE; i++) {
		snprintf(name, sizeof name, "f/%u", i);
		folder_make_file(name, "x", 0, 1);
	}
	SUCCEEDS(h5_tree_readdir(dir, 1, names, &got));
	ck_assert_uint_eq(got, 0);
	do {
		SUCCEEDS(h5_tree_readdir(dir, at, names, &got));
		ck_assert_uint_le(got, MORE + 1 - all);
		for (size_t i = 0; i < got; i++) {
			ck_assert_uint_eq(names[i].next, at + i + 1);
			if (!strcmp(names[i].name, "g"))
				continue;
			ck_assert_uint_eq(names[i].type, S_IFREG);
			ck_assert(!seen[atoi(names[i].name)]);
			seen[atoi(names[i].name)] = true;
		}
		all += got;
		at += got;
	} while (got);
	ck_assert_uint_eq(all, MORE + 1);
	SUCCEEDS(h5_tree_readdir(dir, at + 1, names, &got));
	ck_assert_uint_eq(got, 0);
	h5_tree_closedir(dir);
	folder_forget(f);
}
END_TEST

/* What has a name of an HDF5 file and is no file is not opened to look. */
START_TEST(names_of_all_kinds)
{
	static const struct {
		const char *name;
		enum h5_tree_kind kind;
		mode_t type, listed;
	} cases[] = {
		{"a.h5", H5_TREE_FILE, S_IFDIR, 0},	      {"text.h5", H5_TREE_PLAIN, S_IFREG, 0},
		{"text", H5_TREE_PLAIN, S_IFREG, S_IFREG},    {"folder.h5", H5_TREE_FOLDER, S_IFDIR, S_IFDIR},
		{"fifo.h5", H5_TREE_PLAIN, S_IFIFO, S_IFIFO}, {"link.h5", H5_TREE_PLAIN, S_IFLNK, S_IFLNK}};
	enum { CASES = sizeof cases / sizeof *cases };
	struct h5_tree_node *root;
	struct h5_tree_name names[H5_TREE_NAMES] = {0};
	struct h5_tree_dir *dir;
	unsigned found = 0;
	size_t got;

	scratch_run("cd '%s'; rm -r f b.h5 c.h5; mkdir folder.h5; mkfifo fifo.h5; ln -s a.h5 link.h5; "
		    "echo some text >text; cp text text.h5",
		    folder.path);
	folder_reopen();
	root = h5_tree_root(folder.tree);
	SUCCEEDS(h5_tree_opendir(folder.tree, root, &dir));
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &got));
	ck_assert_uint_eq(got, CASES);
	ck_assert_ptr_null(names[got].name);
	for (unsigned i = 0; i < CASES; i++) {
		struct h5_tree_entry entry;

		SUCCEEDS(h5_tree_lookup(folder.tree, root, cases[i].name, &entry));
		ck_assert_msg(h5_tree_kind(entry.node) == cases[i].kind, "%s", cases[i].name);
		ck_assert_uint_eq(entry.st.st_mode & S_IFMT, cases[i].type);
		for (size_t j = 0; j < got; j++)
			if (!strcmp(names[j].name, cases[i].name)) {
				ck_assert_msg(names[j].type == cases[i].listed, "%s", cases[i].name);
				ck_assert_uint_eq(names[j].ino, entry.st.st_ino);
				found++;
			}
		folder_forget(entry.node);
	}
	ck_assert_uint_eq(found, CASES);
	h5_tree_closedir(dir);
}
END_TEST

/* If open() fails, a plain file stays one: as an HDF5 file it would not show its text any more. */
START_TEST(files_without_a_descriptor)
{
	struct h5_tree_node *root = h5_tree_root(folder.tree);
	struct h5_tree_entry entry;
	unsigned failed = 0;
	bool fired = true;

	folder_make_file("text.h5", "some text", 0, 9);
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_call_arm(CALL_OPENS_NONE, n, false);
		rc = h5_tree_lookup(folder.tree, root, "text.h5", &entry);
		fired = fault_call_disarm();
		ck_assert_int_eq(rc, fired ? -EMFILE : 0);
		failed += fired;
	}
	ck_assert_uint_ge(failed, 4);
	ck_assert_int_eq(h5_tree_kind(entry.node), H5_TREE_PLAIN);
	folder_forget(entry.node);
}
END_TEST

/* What another program has laid in the way. */
START_TEST(places_that_cannot_be_opened)
{
	static const struct {
		int code, told;
		const char *text;
	} cases[] = {{-ELOOP, -ESTALE, ".: a symbolic link has taken a place on its path"},
		     {-EXDEV, -EACCES, ".: it lies on another mount"},
		     {-EACCES, -EACCES, "Permission denied"},
		     {-ENOMEM, -ENOMEM, "Cannot allocate memory"}};
	struct h5_tree_node *root = h5_tree_root(folder.tree);
	struct h5_tree_entry entry;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		named_fails = cases[i].code;
		ck_assert_int_eq(h5_tree_lookup(folder.tree, root, "f", &entry), cases[i].told);
		ck_assert_int_eq(h5_error_last()->code, cases[i].told);
		ck_assert_str_eq(h5_error_last()->text, cases[i].text);
		named_fails = 0;
	}
}
END_TEST

static void note_wait(void)
{
}

/* Without memory for the stream; and it tells that the disk may have to be waited for. */
START_TEST(a_listing_reads_the_folder)
{
	struct h5_tree_node *root = h5_tree_root(folder.tree);
	struct h5_tree_name names[H5_TREE_NAMES];
	struct h5_tree_dir *dir;
	unsigned before;
	size_t got = 1;

	SUCCEEDS(h5_tree_opendir(folder.tree, root, &dir));
	before = unit_descriptors();
	fdopendir_fails = true;
	ck_assert_int_eq(h5_tree_readdir(dir, 0, names, &got), -ENOMEM);
	fdopendir_fails = false;
	ck_assert_uint_eq(unit_descriptors(), before);
	h5_wait_set(note_wait);
	SUCCEEDS(h5_tree_readdir(dir, 4, names, &got));
	ck_assert_uint_eq(got, 0);
	ck_assert(h5_wait_is_noticed());
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &got));
	ck_assert_uint_eq(got, FILES + 1);
	ck_assert(!h5_wait_is_noticed());
	ck_assert_uint_eq(unit_descriptors(), before);
	h5_tree_closedir(dir);
}
END_TEST

START_TEST(directories_in_files)
{
	struct h5_tree_node *a = folder_find(h5_tree_root(folder.tree), "a.h5");
	struct h5_tree_name names[H5_TREE_NAMES] = {0};
	struct h5_tree_dir *dir;
	struct stat st;
	size_t got, all;

	SUCCEEDS(h5_tree_opendir(folder.tree, a, &dir));
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &all));
	ck_assert_uint_gt(all, 2);
	ck_assert_ptr_null(names[all].name);
	for (size_t i = 0; i < all; i++) {
		struct h5_tree_inside in;
		struct h5_tree_node *node = folder_find(a, names[i].name);

		SUCCEEDS(h5_tree_enter(folder.tree, node, &in));
		SUCCEEDS(h5_vfs_getattr(in.vfs, in.node, &st));
		ck_assert_uint_eq(names[i].type, st.st_mode & S_IFMT);
		ck_assert_uint_eq(names[i].ino, h5_tree_ino_inside(a->file, st.st_ino));
		h5_tree_leave(folder.tree, &in);
		folder_forget(node);
	}
	SUCCEEDS(h5_tree_readdir(dir, names[1].next, names, &got));
	ck_assert_uint_eq(got, all - 2);
	go_fails = -ENOMEM;
	ck_assert_int_eq(h5_tree_readdir(dir, 0, names, &got), -ENOMEM);
	go_fails = 0;
	read_fails = -EIO;
	ck_assert_int_eq(h5_tree_readdir(dir, 0, names, &got), -EIO);
	read_fails = 0;
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &got));
	ck_assert_uint_eq(got, all);
	h5_tree_closedir(dir);
	ck_assert_uint_eq(a->file->uses, 0);
	folder_forget(a);
}
END_TEST

/* The mount ends before the kernel has closed what programs had open. */
START_TEST(what_is_open_in_the_end)
{
	struct h5_tree_node *root = h5_tree_root(folder.tree), *a = folder_find(root, "a.h5"),
			    *data = folder_find(a, "again"), *x;
	struct h5_tree_handle *handles[2];
	struct h5_tree_dir *dirs[3];
	uint64_t found;
	char byte;
	size_t got;

	folder_make_file("x", "x", 0, 1);
	x = folder_find(root, "x");
	SUCCEEDS(h5_tree_opendir(folder.tree, root, &dirs[0]));
	SUCCEEDS(h5_tree_opendir(folder.tree, a, &dirs[1]));
	SUCCEEDS(h5_tree_opendir(folder.tree, a, &dirs[2]));
	SUCCEEDS(h5_tree_open_file(folder.tree, data, O_RDONLY, &handles[0]));
	SUCCEEDS(h5_tree_open_file(folder.tree, x, O_RDONLY, &handles[1]));
	h5_wait_set(note_wait);
	SUCCEEDS(h5_tree_read(handles[1], 0, &byte, 1, &got));
	ck_assert(got == 1 && byte == 'x' && !h5_wait_is_noticed());
	ck_assert_int_eq(h5_tree_seek(handles[0], UINT64_C(1) << 40, false, &found), -ENXIO);
	ck_assert_int_eq(h5_tree_finish(folder.tree), 0);
	ck_assert_str_eq(folder.closed, "a");
	ck_assert_ptr_null(folder.tree->dirs);
	ck_assert_ptr_null(folder.tree->handles);
	ck_assert_uint_eq(a->file->uses, 0);
	folder_forget(x);
	folder_forget(data);
	folder_forget(a);
}
END_TEST

/* A folder whose disk fails behind its first names: the listing fails, too, and shows no part as the whole.
 */
START_TEST(a_folder_that_cannot_be_read)
{
	struct h5_tree_node *f = folder_find(h5_tree_root(folder.tree), "f");
	struct h5_tree_name names[H5_TREE_NAMES];
	struct h5_tree_dir *dir;
	size_t got;

	SUCCEEDS(h5_tree_opendir(folder.tree, f, &dir));
	readdir_fails_after = 2;
	ck_assert_int_eq(h5_tree_readdir(dir, 0, names, &got), -EIO);
	readdir_fails_after = UINT_MAX;
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &got));
	ck_assert_uint_eq(got, 1);
	h5_tree_closedir(dir);
	folder_forget(f);
}
END_TEST

static void set_attributes(const char *answer, size_t n, int error)
{
	attributes.answer = answer;
	attributes.n = n;
	attributes.error = error;
	attributes.asked = 0;
}

static void check_list(struct h5_tree_node *node, int code, const char *expected, size_t n)
{
	struct h5_buf out;

	h5_buf_init(&out, 100);
	ck_assert_int_eq(h5_tree_listxattr(folder.tree, node, &out), code);
	ck_assert_uint_eq(out.size, n);
	if (n)
		ck_assert_mem_eq(out.data, expected, n);
	h5_buf_release(&out);
}

static void check_value(struct h5_tree_node *node, const char *name, int code, const char *expected, size_t n)
{
	struct h5_buf out;

	h5_buf_init(&out, 6);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, node, name, &out), code);
	ck_assert_uint_eq(out.size, n);
	if (n)
		ck_assert_mem_eq(out.data, expected, n);
	h5_buf_release(&out);
}

/* Those of users are shown, of files that may be opened; also of one that lives on only since it is open. */
START_TEST(attributes_of_users)
{
	static const char list[] = "security.a\0user.b\0trusted.user.c\0user.dd\0user.\0user";
	static const char shown[] = "user.b\0user.dd\0user.", value[] = "va\0lu";
	struct h5_tree_node *root = h5_tree_root(folder.tree), *x, *y, *fifo;
	struct h5_tree_handle *handle, *other;

	folder_make_file("x", "x", 0, 1);
	scratch_run("mkfifo '%s/fifo'", folder.path);
	x = folder_find(root, "x");
	folder_make_file("y", "y", 0, 1);
	y = folder_find(root, "y");
	fifo = folder_find(root, "fifo");
	set_attributes(list, sizeof list, 0);
	h5_wait_set(note_wait);
	check_list(x, 0, shown, sizeof shown);
	ck_assert(!h5_wait_is_noticed());
	ck_assert_uint_eq(attributes.inode, x->inode);
	check_list(root, 0, shown, sizeof shown);
	ck_assert_uint_eq(attributes.inode, root->inode);
	ck_assert_uint_eq(attributes.asked, 2);
	check_list(fifo, 0, NULL, 0);
	ck_assert_uint_eq(attributes.asked, 2);
	set_attributes(list, 0, 0);
	check_list(x, 0, NULL, 0);
	set_attributes(NULL, 0, ENOTSUP);
	check_list(x, 0, NULL, 0);
	set_attributes(NULL, 0, EIO);
	check_list(x, -EIO, NULL, 0);
	set_attributes(value, sizeof value, 0);
	h5_wait_set(note_wait);
	check_value(x, "user.b", 0, value, sizeof value);
	ck_assert(!h5_wait_is_noticed());
	ck_assert_uint_eq(attributes.asked, 1);
	check_value(x, "users.b", -ENODATA, NULL, 0);
	check_value(x, "security.a", -ENODATA, NULL, 0);
	check_value(fifo, "user.b", -ENODATA, NULL, 0);
	ck_assert_uint_eq(attributes.asked, 1);
	set_attributes("much more", 9, 0);
	check_value(x, "user.b", -E2BIG, NULL, 0);
	set_attributes("", 0, 0);
	check_value(x, "user.b", 0, NULL, 0);
	set_attributes(NULL, 0, ENOTSUP);
	check_value(x, "user.b", -ENODATA, NULL, 0);
	set_attributes(NULL, 0, EIO);
	check_value(x, "user.b", -EIO, NULL, 0);
	set_attributes(value, sizeof value, 0);
	SUCCEEDS(h5_tree_open_file(folder.tree, x, O_RDONLY, &handle));
	SUCCEEDS(h5_tree_open_file(folder.tree, y, O_RDONLY, &other));
	scratch_run("rm '%s/x'", folder.path);
	check_value(x, "user.b", 0, value, sizeof value);
	ck_assert_uint_eq(attributes.inode, x->inode);
	h5_tree_close_file(handle);
	check_value(x, "user.b", -ESTALE, NULL, 0);
	h5_tree_close_file(other);
	folder_forget(y);
	ck_assert_uint_eq(attributes.asked, 1);
	folder_forget(x);
	folder_forget(fifo);
}
END_TEST

/* Only the root tells of the mount. */
START_TEST(what_the_root_tells)
{
	struct h5_tree_node *root = h5_tree_root(folder.tree), *f = folder_find(root, "f"), *files[FILES];
	struct statvfs fs, expected;
	struct h5_buf out;
	char pid[16];

	h5_buf_init(&out, 1 << 16);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, f, "h5fs.pid", &out), -ENODATA);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, f, "h5fs.stats", &out), -ENODATA);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, root, "h5fs.none", &out), -ENODATA);
	ck_assert_uint_eq(out.size, 0);
	SUCCEEDS(h5_tree_getxattr(folder.tree, root, "h5fs.pid", &out));
	h5_buf_byte(&out, 0);
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	ck_assert_str_eq(out.data, pid);
	folder_find_files(files);
	SUCCEEDS(folder_use(files[0]));
	SUCCEEDS(folder_use(files[1]));
	SUCCEEDS(folder_use(files[2]));
	out.size = 0;
	SUCCEEDS(h5_tree_getxattr(folder.tree, root, "h5fs.stats", &out));
	h5_buf_byte(&out, 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\"open_files\":2,"));
	ck_assert_ptr_nonnull(strstr(out.data, "\"opened\":3,"));
	ck_assert_ptr_nonnull(strstr(out.data, "\"nodes\":5}"));
	h5_buf_release(&out);
	h5_buf_init(&out, 10);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, root, "h5fs.stats", &out), -E2BIG);
	h5_buf_release(&out);
	h5_buf_init(&out, 0);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, root, "h5fs.pid", &out), -E2BIG);
	h5_buf_release(&out);
	/* Others may change the folder at any time. */
	ck_assert_double_eq(h5_tree_keep(folder.tree, root), 0);
	ck_assert_double_eq(h5_tree_keep(folder.tree, files[0]), 0);
	ck_assert_int_eq(h5_tree_statfs(folder.tree, &fs), 0);
	ck_assert_int_eq(statvfs(folder.path, &expected), 0);
	ck_assert_uint_eq(fs.f_bsize, expected.f_bsize);
	ck_assert_uint_eq(fs.f_blocks, expected.f_blocks);
	folder_forget_files(files);
	folder_forget(f);
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {{numbers_of_files, 1},
					  {links_that_lead_out, 1},
					  {links_of_any_length, 1},
					  {links_in_files, 1},
					  {plain_files, 1},
					  {attributes_of_entries, 1},
					  {attributes_of_objects, 1},
					  {long_folders, 1},
					  {names_of_all_kinds, 1},
					  {files_without_a_descriptor, 1},
					  {places_that_cannot_be_opened, 1},
					  {a_listing_reads_the_folder, 1},
					  {directories_in_files, 1},
					  {what_is_open_in_the_end, 1},
					  {a_folder_that_cannot_be_read, 1},
					  {attributes_of_users, 1},
					  {what_the_root_tells, 1}};

	return unit_run("tree_entries", folder_begin, folder_end, tests, sizeof tests / sizeof *tests);
}

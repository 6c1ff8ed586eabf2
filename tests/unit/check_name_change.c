/* Requests that change names, without a mount: no kill leaves an object without a name, each failure leaves
 * all as it was, and changes that are lost leave no trace. */
#include "crash_image.h"
#include "fault_alloc.h"
#include "scratch.h"
#include "unit.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXCHANGE 2

enum { TEXT_MAX = 1 << 16, ENTRIES = 128, MOST = 1 << 16 };

struct scene {
	struct scratch scratch;
	struct h5_vfs *vfs;
};

static void scene_open(struct scene *s)
{
	const struct h5_vfs_options options = {.writable = true, .gather = 1 << 20, .file_fd = -1};

	scratch_open(&s->scratch);
	SUCCEEDS(h5_vfs_open(s->scratch.set, &options, &s->vfs));
}

static void scene_init(struct scene *s, const char *style, struct fault_io *fault)
{
	char name[64];

	snprintf(name, sizeof name, "name_change-%s.h5", style);
	*s = (struct scene){0};
	scratch_init(&s->scratch, name);
	scratch_wrap(&s->scratch, fault);
	scene_open(s);
}

static void scene_close(struct scene *s)
{
	SUCCEEDS(h5_vfs_finish(s->vfs));
	h5_vfs_close(s->vfs);
	scratch_close(&s->scratch);
}

static void scene_release(struct scene *s)
{
	scene_close(s);
	scratch_release(&s->scratch);
}

/* ---- requests by paths ---- */

static void forget(struct scene *s, struct h5_node *node)
{
	if (node != h5_vfs_root(s->vfs))
		h5_vfs_forget(s->vfs, node, 1);
}

/* The node at the path, referenced; *last: the part after the last slash, which is not followed. */
static int look_up(struct scene *s, const char *path, struct h5_node **node, const char **last)
{
	char part[256];
	const char *slash;
	int rc = 0;

	*node = h5_vfs_root(s->vfs);
	while (!rc && (slash = strchr(path, '/'))) {
		struct h5_node *above = *node;
		struct h5_vfs_entry entry;

		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		path = slash + 1;
		rc = h5_vfs_lookup(s->vfs, above, part, &entry);
		*node = rc ? NULL : entry.node;
		forget(s, above);
	}
	*last = path;
	return rc;
}

/* A request by its command: mkdir, rm, rmdir; with a second path: mv, ln, and swap. `ln -s` is `sym`. */
static int ask(struct scene *s, const char *command, const char *path, const char *second)
{
	struct h5_node *from = NULL, *to = NULL, *node;
	const char *name, *new_name = NULL, *empty;
	struct h5_vfs_entry entry = {0}, old = {0};
	char whole[256];
	int rc = look_up(s, path, &from, &name);

	if (!rc && second && strcmp(command, "sym") != 0)
		rc = look_up(s, second, &to, &new_name);
	if (rc) {
		if (from)
			forget(s, from);
		return rc;
	}
	fault_alloc_count(true);
	if (!strcmp(command, "mkdir")) {
		rc = h5_vfs_mkdir(s->vfs, from, name, &entry);
	} else if (!strcmp(command, "rm")) {
		rc = h5_vfs_unlink(s->vfs, from, name);
	} else if (!strcmp(command, "rmdir")) {
		rc = h5_vfs_rmdir(s->vfs, from, name);
	} else if (!strcmp(command, "mv")) {
		rc = h5_vfs_rename(s->vfs, from, name, to, new_name, 0);
	} else if (!strcmp(command, "swap")) {
		rc = h5_vfs_rename(s->vfs, from, name, to, new_name, EXCHANGE);
	} else if (!strcmp(command, "sym")) {
		rc = h5_vfs_symlink(s->vfs, second, from, name, &entry);
	} else {
		fault_alloc_count(false);
		snprintf(whole, sizeof whole, "%s/", path);
		SUCCEEDS(look_up(s, whole, &node, &empty));
		old.node = node;
		fault_alloc_count(true);
		rc = h5_vfs_link(s->vfs, node, to, new_name, &entry);
	}
	fault_alloc_count(false);
	if (!rc && entry.node)
		forget(s, entry.node);
	if (old.node)
		forget(s, old.node);
	forget(s, from);
	if (to)
		forget(s, to);
	return rc;
}

/* ---- the tree as text ---- */

static void describe_directory(struct scene *s, struct h5_node *node, const char *path, char text[TEXT_MAX]);

static void describe_entry(struct scene *s, const struct h5_vfs_entry *entry, const char *path,
			   char text[TEXT_MAX])
{
	const char *target = "";

	ck_assert_ptr_nonnull(entry->node);
	if (S_ISLNK(entry->st.st_mode))
		ck_assert_int_eq(h5_vfs_readlink(entry->node, &target), 0);
	snprintf(text + strlen(text), TEXT_MAX - strlen(text), "%s %o %ju %ju %s\n", path,
		 entry->st.st_mode & S_IFMT, (uintmax_t)entry->st.st_ino,
		 S_ISREG(entry->st.st_mode) ? (uintmax_t)entry->st.st_nlink : 0, target);
	if (S_ISDIR(entry->st.st_mode))
		describe_directory(s, entry->node, path, text);
}

static void describe_directory(struct scene *s, struct h5_node *node, const char *path, char text[TEXT_MAX])
{
	struct h5_vfs_entry entries[ENTRIES];
	struct h5_dir *dir;
	size_t count, got = 0;

	SUCCEEDS(h5_vfs_opendir(s->vfs, node, &dir));
	count = h5_vfs_dir_count(dir);
	ck_assert_uint_le(count, ENTRIES);
	if (count)
		SUCCEEDS(h5_vfs_dir_read(dir, 0, count, true, entries, &got));
	ck_assert_uint_eq(got, count);
	for (size_t i = 0; i < got; i++) {
		char below[512];

		snprintf(below, sizeof below, "%s/%s", path, h5_vfs_dir_name(dir, i));
		if (!entries[i].node)
			SUCCEEDS(h5_vfs_lookup(s->vfs, node, h5_vfs_dir_name(dir, i), &entries[i]));
		describe_entry(s, &entries[i], below, text);
		h5_vfs_forget(s->vfs, entries[i].node, 1);
	}
	h5_vfs_closedir(dir);
}

static char *describe(struct scene *s)
{
	char *text = calloc(1, TEXT_MAX);

	describe_directory(s, h5_vfs_root(s->vfs), "", text);
	return text;
}

static void check_tree(struct scene *s, const char *expected)
{
	char *text = describe(s);

	ck_assert_str_eq(text, expected);
	free(text);
}

/* ---- kills ---- */

static const char *const workload[][3] = {
	{"mv", "a/d00", "b/d00"},      {"mv", "b/d01", "a/d01"}, /* the opposite way */
	{"mv", "a/d02", "a/x02"},      {"mv", "a/d04", "a/x04"},  {"mkdir", "n", NULL},
	{"mv", "a/d06", "n/d06"},      {"mv", "n", "b/n"},	  {"mkdir", "b/n/in", NULL},
	{"mv", "b/d03", "b/n/in/d03"}, {"ln", "b/d05", "a/d05"},  {"rm", "b/d05", NULL},
	{"ln", "a/x02", "b/x02"},      {"rm", "a/x02", NULL},	  {"swap", "a/x04", "b/x02"},
	{"swap", "b/n/in", "a/d01"},   {"mv", "b/x02", "a/back"}, {"mkdir", "a/d00", NULL},
	{"rmdir", "a/d00", NULL},      {"mv", "b/d00", "a/d00"},  {"sym", "a/s", "../b/n"},
	{"mv", "a/s", "b/s"},	       {"ln", "b/n/d06", "b/l1"}, {"ln", "b/n/d06", "a/l2"},
	{"rm", "b/l1", NULL},	       {"ln", "a/l2", "a/l3"}, /* the count has fallen before */
	{"ln", "a/l2", "a/l4"},	       {"ln", "a/l2", "a/l5"},	  {"mv", "a/l5", "b/l5"},
};

static const char *const styles[] = {"old", "old-many", "compact", "dense"};

enum { STYLES = sizeof styles / sizeof *styles, REQUESTS = sizeof workload / sizeof *workload };

START_TEST(no_kill_takes_a_name)
{
	struct fault_io record = {0};
	struct crash_image image = {0};
	char prefix[160];
	struct scene s;

	scene_init(&s, styles[_i], &record);
	crash_image_load(&image, s.scratch.path);
	record.record = true;
	for (size_t i = 0; i < REQUESTS; i++)
		ck_assert_msg(!ask(&s, workload[i][0], workload[i][1], workload[i][2]), "%s %s",
			      workload[i][0], workload[i][1]);
	SUCCEEDS(h5_vfs_commit(s.vfs));
	record.record = false;
	snprintf(prefix, sizeof prefix, "%s/state", s.scratch.folder);
	ck_assert_uint_gt(crash_image_save_states(&image, &record, prefix), REQUESTS);
	scratch_own_judge_python("tests/judge/names_judge.py %s %s", s.scratch.folder, s.scratch.original);
	fault_io_release(&record);
	free(image.data);
	scene_release(&s);
}
END_TEST

/* ---- failures ---- */

START_TEST(failing_allocations)
{
	struct scene s;

	scene_init(&s, styles[_i], NULL);
	for (size_t i = 0; i < REQUESTS; i++) {
		bool failed = true;

		/* So no request has to commit first. The commits of an exchange cannot be taken back. */
		SUCCEEDS(h5_vfs_commit(s.vfs));
		if (!strcmp(workload[i][0], "swap"))
			failed = ask(&s, "swap", workload[i][1], workload[i][2]);
		for (unsigned long n = 1; failed && n < MOST; n++) {
			char *before = describe(&s);
			int rc;

			fault_alloc_arm(n);
			rc = ask(&s, workload[i][0], workload[i][1], workload[i][2]);
			failed = fault_alloc_disarm();
			if (rc) {
				ck_assert_int_eq(rc, -ENOMEM);
				check_tree(&s, before);
			}
			free(before);
			if (!rc)
				break;
		}
	}
	SUCCEEDS(h5_vfs_commit(s.vfs));
	scene_close(&s);
	scene_open(&s);
	scene_release(&s);
}
END_TEST

/* The next mount has this tree, too. Takes it over, and releases the scene. */
static void check_stored(struct scene *s, char *tree)
{
	scene_close(s);
	scene_open(s);
	check_tree(s, tree);
	free(tree);
	scene_release(s);
}

/* Changes that a failing commit has lost: names, nodes, and the objects that were to be removed. */
START_TEST(lost_changes)
{
	struct fault_io fault = {.error = -ENOSPC};
	struct h5_vfs_entry kept, made, moved;
	const char *name;
	struct h5_node *a;
	struct stat st;
	struct scene s;
	char *before;

	scene_init(&s, styles[_i], &fault);
	SUCCEEDS(h5_vfs_commit(s.vfs));
	before = describe(&s);
	SUCCEEDS(look_up(&s, "a/", &a, &name));
	SUCCEEDS(h5_vfs_lookup(s.vfs, a, "d00", &kept));
	SUCCEEDS(h5_vfs_mkdir(s.vfs, h5_vfs_root(s.vfs), "made", &made));
	ck_assert_int_eq(ask(&s, "rm", "a/d00", NULL), 0);
	SUCCEEDS(h5_vfs_getattr(s.vfs, kept.node, &st));
	ck_assert_uint_eq(st.st_nlink, 0);
	ck_assert_int_eq(ask(&s, "mv", "b", "made/b"), 0);
	SUCCEEDS(h5_vfs_lookup(s.vfs, made.node, "b", &moved));
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_vfs_commit(s.vfs), -ENOSPC);
	ck_assert(fault_io_disarm(&fault));
	check_tree(&s, before);
	SUCCEEDS(h5_vfs_getattr(s.vfs, kept.node, &st));
	ck_assert_uint_eq(st.st_nlink, 1);
	/* The next group may be where the lost one was. */
	SUCCEEDS(h5_vfs_getattr(s.vfs, moved.node, &st));
	ck_assert_int_eq(ask(&s, "mkdir", "other", NULL), 0);
	ck_assert_int_eq(ask(&s, "mkdir", "other/below", NULL), 0);
	ck_assert_int_ne(h5_vfs_mkdir(s.vfs, made.node, "into the void", &(struct h5_vfs_entry){0}), 0);
	ck_assert_int_eq(ask(&s, "rmdir", "other/below", NULL), 0);
	ck_assert_int_eq(ask(&s, "rmdir", "other", NULL), 0);
	check_tree(&s, before);
	h5_vfs_forget(s.vfs, moved.node, 1);
	h5_vfs_forget(s.vfs, made.node, 1);
	h5_vfs_forget(s.vfs, kept.node, 1);
	h5_vfs_forget(s.vfs, a, 1);
	check_stored(&s, before);
}
END_TEST

/* ---- new files that are being written ---- */

static void write_more(struct h5_handle *handle)
{
	size_t written;
	uint64_t stale;

	SUCCEEDS(h5_vfs_write(handle, 0, "more", 4, H5_WRITE_APPEND, &written, &stale));
	ck_assert_uint_eq(written, 4);
}

/* A commit takes the name of such a file out of its group and brings it back, also if it fails. */
START_TEST(new_files_in_failing_commits)
{
	struct fault_io fault = {.error = -ENOSPC};
	struct h5_vfs_entry entry;
	struct h5_handle *handle;
	bool failed = true;
	const char *name;
	struct h5_node *a;
	struct scene s;
	char *before;

	scene_init(&s, styles[_i], &fault);
	SUCCEEDS(look_up(&s, "a/", &a, &name));
	SUCCEEDS(h5_vfs_create(s.vfs, a, "new", O_RDWR, &entry, &handle));
	write_more(handle);
	SUCCEEDS(h5_vfs_commit(s.vfs));
	before = describe(&s);
	ck_assert_ptr_nonnull(strstr(before, "new"));
	for (unsigned long n = 1; failed && n < MOST; n++) {
		write_more(handle);
		fault_alloc_count(true);
		fault_alloc_arm(n);
		(void)h5_vfs_commit(s.vfs);
		failed = fault_alloc_disarm();
		fault_alloc_count(false);
		check_tree(&s, before);
	}
	write_more(handle);
	fault_io_arm(&fault, 1);
	ck_assert_int_eq(h5_vfs_commit(s.vfs), -ENOSPC);
	ck_assert(fault_io_disarm(&fault));
	check_tree(&s, before);
	(void)h5_vfs_fsync(handle); /* tells of the losses */
	write_more(handle);
	SUCCEEDS(h5_vfs_flush(handle));
	h5_vfs_close_file(handle);
	h5_vfs_forget(s.vfs, entry.node, 1);
	h5_vfs_forget(s.vfs, a, 1);
	check_stored(&s, before);
}
END_TEST

/* Lists the directory, and gives back the nodes unless they are to be kept. */
static void list(struct scene *s, struct h5_node *directory, struct h5_vfs_entry entries[ENTRIES],
		 size_t *count, bool keep)
{
	struct h5_dir *dir;

	SUCCEEDS(h5_vfs_opendir(s->vfs, directory, &dir));
	SUCCEEDS(h5_vfs_dir_read(dir, 0, h5_vfs_dir_count(dir), true, entries, count));
	ck_assert_uint_eq(*count, h5_vfs_dir_count(dir));
	h5_vfs_closedir(dir);
	for (size_t i = 0; i < *count && !keep; i++)
		h5_vfs_forget(s->vfs, entries[i].node, 1);
}

/* A listing has a node of each entry, but for files that the kernel knows already. */
START_TEST(listing_of_known_files)
{
	struct h5_vfs_entry new[ENTRIES], known[ENTRIES], again[ENTRIES];
	size_t count, files = 0;
	const char *name;
	struct h5_node *a;
	struct scene s;

	scene_init(&s, styles[_i], NULL);
	SUCCEEDS(look_up(&s, "a/", &a, &name));
	list(&s, a, new, &count, true);
	list(&s, a, known, &count, false);
	for (size_t i = 0; i < count; i++) {
		bool is_file = S_ISREG(new[i].st.st_mode);

		ck_assert_ptr_nonnull(new[i].node);
		ck_assert_ptr_eq(known[i].node, is_file ? NULL : new[i].node);
		ck_assert_uint_eq(known[i].st.st_ino, new[i].st.st_ino);
		ck_assert_uint_eq(known[i].st.st_mode & S_IFMT, new[i].st.st_mode &S_IFMT);
		files += is_file;
		h5_vfs_forget(s.vfs, new[i].node, 1);
	}
	ck_assert_uint_gt(files, 0);
	list(&s, a, again, &count, false);
	for (size_t i = 0; i < count; i++)
		ck_assert_ptr_nonnull(again[i].node);
	h5_vfs_forget(s.vfs, a, 1);
	scene_release(&s);
}
END_TEST

/* An object that comes to the address of one that was removed gets another generation. */
START_TEST(addresses_that_are_used_again)
{
	uint32_t generations[64];
	uint64_t inodes[64];
	unsigned again = 0;
	struct scene s;

	scene_init(&s, styles[_i], NULL);
	for (unsigned i = 0; i < 64; i++) {
		struct h5_vfs_entry entry;

		SUCCEEDS(h5_vfs_mkdir(s.vfs, h5_vfs_root(s.vfs), "same", &entry));
		generations[i] = h5_vfs_generation(entry.node);
		inodes[i] = entry.st.st_ino;
		for (unsigned j = 0; j < i; j++)
			if (inodes[j] == inodes[i]) {
				again++;
				ck_assert_uint_ne(generations[j], generations[i]);
			}
		ck_assert_int_eq(ask(&s, "rmdir", "same", NULL), 0);
		h5_vfs_forget(s.vfs, entry.node, 1);
		SUCCEEDS(h5_vfs_commit(s.vfs));
	}
	ck_assert_uint_gt(again, 0);
	scene_release(&s);
}
END_TEST

/* The kernel keeps the name of a new file, but not if the file is moved onto a dataset, which keeps its own.
 */
START_TEST(names_of_new_files)
{
	struct h5_vfs_entry made, entry;
	struct scene s;

	scene_init(&s, styles[_i], NULL);
	SUCCEEDS(h5_vfs_mknod(s.vfs, h5_vfs_root(s.vfs), "new", &made));
	ck_assert(!made.passing);
	ck_assert_int_eq(ask(&s, "mv", "new", "renamed"), 0);
	SUCCEEDS(h5_vfs_lookup(s.vfs, h5_vfs_root(s.vfs), "renamed", &entry));
	ck_assert(!entry.passing);
	h5_vfs_forget(s.vfs, entry.node, 1);
	ck_assert_int_eq(ask(&s, "mv", "renamed", "a/d00"), -ESTALE);
	SUCCEEDS(h5_vfs_lookup(s.vfs, h5_vfs_root(s.vfs), "renamed", &entry));
	ck_assert(entry.passing);
	h5_vfs_forget(s.vfs, entry.node, 1);
	ck_assert_int_ne(ask(&s, "mv", "renamed", "a/d00"), -ESTALE);
	h5_vfs_forget(s.vfs, made.node, 1);
	scene_release(&s);
}
END_TEST

UNIT_MAIN_LOOPS("name_change", {no_kill_takes_a_name, STYLES}, {failing_allocations, STYLES},
		{lost_changes, STYLES}, {new_files_in_failing_commits, STYLES},
		{addresses_that_are_used_again, STYLES}, {names_of_new_files, STYLES},
		{listing_of_known_files, STYLES})

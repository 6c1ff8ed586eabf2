#include "tree_scene.h"

#include "scratch.h"
#include "tree/private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct folder folder;

static unsigned descriptors; /* before the tree was opened */

static int opened(void *arg, const char *path, const struct h5_file_set *set, const struct h5_opened *what,
		  struct h5_vfs *vfs, void **own)
{
	(void)arg;
	(void)set;
	(void)what;
	(void)vfs;
	*own = (void *)strrchr(path, '/');
	/* The newest is the last. */
	ck_assert_int_eq(folder.tree->open->prev->state, H5_TREE_OPENING);
	return folder.refuses;
}

static int closing(void *arg, const char *path, struct h5_vfs *vfs, void *own)
{
	int rc = h5_vfs_finish(vfs);

	(void)arg;
	ck_assert_ptr_eq(own, strrchr(path, '/'));
	strncat(folder.closed, strrchr(path, '/') + 1, 1);
	if (folder.on_closing)
		folder.on_closing();
	return rc ? rc : folder.loses;
}

static void open_tree(void)
{
	SUCCEEDS(h5_tree_open(folder.path, &folder.options, &folder.tree));
}

void folder_begin(void)
{
	char from[512], path[200];

	memset(&folder, 0, sizeof folder);
	snprintf(folder.path, sizeof folder.path, "%s/folder", scratch_folder());
	scratch_run("rm -rf '%s'; mkdir -p '%s/f/g'", folder.path, folder.path);
	scratch_fixture("check_tree.h5", from);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path, sizeof path, "%s/%c.h5", folder.path, 'a' + i);
		scratch_copy(from, path);
	}
	folder.options = (struct h5_tree_options){
		.match = H5_TREE_MATCH,
		.open_files = 2,
		.set = {.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_NONE},
		.vfs = {.url = "file:///folder", .file_fd = -1, .max_work = 7},
		.opened = opened,
		.closing = closing};
	descriptors = unit_descriptors();
	open_tree();
}

void folder_end(void)
{
	h5_tree_close(folder.tree);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	scratch_run("rm -r '%s'", folder.path);
}

void folder_reopen(void)
{
	h5_tree_close(folder.tree);
	open_tree();
}

struct h5_tree_node *folder_find(struct h5_tree_node *parent, const char *name)
{
	struct h5_tree_entry entry;
	struct h5_tree_inside in;
	struct h5_vfs_entry found;

	if (h5_tree_kind(parent) == H5_TREE_FOLDER) {
		SUCCEEDS(h5_tree_lookup(folder.tree, parent, name, &entry));
		ck_assert_uint_eq(entry.generation, entry.node->generation);
		return entry.node;
	}
	SUCCEEDS(h5_tree_enter(folder.tree, parent, &in));
	SUCCEEDS(h5_vfs_lookup(in.vfs, in.node, name, &found));
	SUCCEEDS(h5_tree_entry(folder.tree, parent, name, &found, &entry));
	h5_tree_leave(folder.tree, &in);
	ck_assert_uint_eq(entry.generation, entry.node->generation);
	ck_assert_uint_eq(entry.st.st_ino, h5_tree_ino_inside(parent->file, found.st.st_ino));
	return entry.node;
}

void folder_forget(struct h5_tree_node *node)
{
	h5_tree_forget(folder.tree, node, 1);
}

void folder_find_files(struct h5_tree_node *nodes[FILES])
{
	char name[] = "a.h5";

	for (unsigned i = 0; i < FILES; i++) {
		name[0] = (char)('a' + i);
		nodes[i] = folder_find(h5_tree_root(folder.tree), name);
		ck_assert_int_eq(h5_tree_kind(nodes[i]), H5_TREE_FILE);
	}
}

void folder_forget_files(struct h5_tree_node *nodes[FILES])
{
	for (unsigned i = 0; i < FILES; i++)
		folder_forget(nodes[i]);
}

int folder_use(struct h5_tree_node *node)
{
	struct h5_tree_inside in;
	int rc = h5_tree_enter(folder.tree, node, &in);

	if (!rc)
		h5_tree_leave(folder.tree, &in);
	return rc;
}

void folder_check_path(struct h5_tree_node *node, const char *expected)
{
	struct h5_buf path;

	h5_buf_init(&path, 256);
	h5_tree_path(folder.tree, node, &path);
	h5_buf_byte(&path, 0);
	ck_assert_str_eq(path.data, expected);
	h5_buf_release(&path);
}

void folder_make_file(const char *name, const char *signature, uint64_t at, size_t size)
{
	char path[200];
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder.path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, signature, strlen(signature), (off_t)at), (ssize_t)strlen(signature));
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

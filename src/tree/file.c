#include "tree/file.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/thread.h"
#include "base/wait.h"
#include "tree/object.h"
#include "tree/place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

enum { IDLE = 2 }; /* seconds after its last use that a file closes */

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec;
}

int h5_tree_file_new(uint64_t device, uint64_t inode, struct h5_tree_file **out)
{
	struct h5_tree_file *file = calloc(1, sizeof *file);

	if (!file)
		return -ENOMEM;
	file->device = device;
	file->inode = inode;
	*out = file;
	return 0;
}

void h5_tree_file_leave_behind(struct h5_tree_file *file)
{
	if (file->state == H5_TREE_CLOSED)
		free(file);
	else
		file->is_orphan = true;
}

/* ---- closing ---- */

/* Each open file has the same part of the caches. With the lock. */
static void share_caches(struct h5_tree *tree)
{
	struct h5_tree_file *file;

	DL_FOREACH(tree->open, file)
	if (file->state == H5_TREE_OPEN)
		h5_file_set_share(file->set, tree->open_count);
}

/* With the lock, for a file that has just closed, or could not be opened. */
static void set_closed(struct h5_tree *tree, struct h5_tree_file *file)
{
	assert(!file->uses && !file->held);
	DL_DELETE(tree->open, file);
	tree->open_count--;
	file->state = H5_TREE_CLOSED;
	if (file->is_orphan)
		free(file);
	share_caches(tree);
	pthread_cond_broadcast(&tree->changed);
}

static void free_texts(struct h5_tree_file *file)
{
	free(file->path);
	free(file->url);
	file->path = file->url = NULL;
}

/* With the lock, which it gives up meanwhile. */
static void close_file(struct h5_tree *tree, struct h5_tree_file *file)
{
	int rc;

	file->state = H5_TREE_CLOSING;
	file->opening = 0; /* no node leads into it any more */
	pthread_mutex_unlock(&tree->lock);
	rc = tree->options.closing(tree->options.arg, file->path, file->vfs, file->own);
	h5_vfs_close(file->vfs);
	h5_file_set_close(file->set);
	file->vfs = NULL;
	file->set = NULL;
	free_texts(file);
	pthread_mutex_lock(&tree->lock);
	if (rc)
		tree->lost = tree->untold = rc;
	set_closed(tree, file);
}

/* A file that was not used for so many seconds, the one before all others that was used longest ago; NULL:
 * there is none. With the lock. */
static struct h5_tree_file *find_unused(const struct h5_tree *tree, time_t seconds)
{
	struct h5_tree_file *file;

	DL_FOREACH(tree->open, file)
	if (file->state == H5_TREE_OPEN && !file->uses && now() - file->last_use >= seconds)
		return file;
	return NULL;
}

bool h5_tree_close_idle(struct h5_tree *tree)
{
	struct h5_tree_file *file;
	bool goes_on;

	pthread_mutex_lock(&tree->lock);
	while (!tree->ends && !tree->open)
		pthread_cond_wait(&tree->changed, &tree->lock);
	if (!tree->ends)
		h5_thread_wait_a_second(&tree->changed, &tree->lock);
	while (!tree->ends && (file = find_unused(tree, IDLE)))
		close_file(tree, file);
	goes_on = !tree->ends;
	pthread_mutex_unlock(&tree->lock);
	return goes_on;
}

void h5_tree_await_none(struct h5_tree *tree)
{
	pthread_mutex_lock(&tree->lock);
	tree->ends = true;
	pthread_cond_broadcast(&tree->changed);
	pthread_mutex_unlock(&tree->lock);
}

void h5_tree_files_close(struct h5_tree *tree)
{
	pthread_mutex_lock(&tree->lock);
	while (tree->open)
		close_file(tree, tree->open);
	assert(!tree->open_count);
	pthread_mutex_unlock(&tree->lock);
}

/* ---- opening ---- */

static const struct h5_tree_node *node_of_file(const struct h5_tree_node *node)
{
	while (node->kind != H5_TREE_FILE)
		node = node->parent;
	return node;
}

/* The open file must be the one that the node stands for. */
static int check_opened(const struct h5_tree_file *file)
{
	struct h5_io_stat st;
	int rc = h5_file_stat(h5_file_set_root(file->set), &st);

	return rc || (st.device == file->device && st.inode == file->inode) ? rc : -ESTALE;
}

/* `named`: what the file's name leads to. */
static int open_vfs(struct h5_tree *tree, struct h5_tree_file *file, const struct stat *named)
{
	struct h5_vfs_options options = tree->options.vfs;
	int rc;

	options.url = file->url;
	options.file = file->path;
	if (tree->options.keeps_uid)
		options.uid = named->st_uid;
	if (tree->options.keeps_gid)
		options.gid = named->st_gid;
	rc = h5_vfs_open(file->set, &options, &file->vfs);
	if (!rc && tree->maps_direct)
		h5_vfs_set_maps_direct(file->vfs);
	return rc;
}

/* The file has been opened, or has not. */
static int end_opening(struct h5_tree *tree, struct h5_tree_file *file, const struct stat *named, int rc,
		       struct h5_opened *opened)
{
	if (!rc)
		rc = open_vfs(tree, file, named);
	if (!rc)
		rc = tree->options.opened(tree->options.arg, file->path, file->set, opened, file->vfs,
					  &file->own);
	h5_opened_release(opened);
	if (!rc)
		return 0;
	h5_vfs_close(file->vfs);
	h5_file_set_close(file->set);
	file->vfs = NULL;
	file->set = NULL;
	/* Some programs take EWOULDBLOCK for the end of a file. */
	return rc == -EWOULDBLOCK ? h5_fail(-EBUSY, H5_UNDEF, "%s", h5_error_last()->text) : rc;
}

static int open_in(struct h5_tree *tree, struct h5_tree_file *file, int folder, const struct stat *named)
{
	struct h5_opened opened = {.journal_directory = -1};
	int rc = h5_open_file_in(folder, file->path, &tree->options.set, &file->set, &opened);

	if (!rc)
		rc = check_opened(file);
	return end_opening(tree, file, named, rc, &opened);
}

static int open_object(struct h5_tree *tree, struct h5_tree_file *file, const struct h5_tree_node *node)
{
	struct h5_file_set_options options = tree->options.set;
	struct h5_opened opened = {.journal_directory = -1};
	struct stat st;
	int rc;

	options.remote_name = file->path + strlen(tree->path);
	options.remote_version = file->device;
	rc = h5_open_file(file->path, &options, &file->set, &opened);
	if (!rc)
		rc = h5_tree_object_check(tree, node);
	h5_tree_object_stat(tree, node, &st);
	return end_opening(tree, file, &st, rc, &opened);
}

/* *text becomes `begin`, a slash and the path of the node. */
static int join(const char *begin, const struct h5_tree_node *node, char **text)
{
	struct h5_buf path;
	int rc;

	h5_buf_init(&path, PATH_MAX);
	h5_buf_text(&path, begin);
	if (!*begin || begin[strlen(begin) - 1] != '/')
		h5_buf_byte(&path, '/');
	h5_tree_place_path(node, &path);
	h5_buf_byte(&path, 0);
	rc = path.err == -E2BIG ? -ENAMETOOLONG : path.err;
	if (!rc && !(*text = strdup(path.data)))
		rc = -ENOMEM;
	h5_buf_release(&path);
	return rc;
}

static int open_local(struct h5_tree *tree, struct h5_tree_file *file, const struct h5_tree_node *node)
{
	struct stat named, st;
	int fd, folder, rc;

	h5_wait_begins();
	fd = h5_tree_place_open_node(tree, node, O_PATH, &named);
	folder = fd < 0 ? fd : h5_tree_place_open_node(tree, node->parent, O_PATH | O_DIRECTORY, &st);
	rc = folder < 0 ? folder : open_in(tree, file, folder, &named);
	if (folder >= 0)
		close(folder);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int open_file(struct h5_tree *tree, struct h5_tree_file *file, const struct h5_tree_node *node)
{
	int rc = join(tree->path, node, &file->path);

	if (!rc)
		rc = join(tree->options.vfs.url, node, &file->url);
	if (!rc)
		rc = tree->bucket ? open_object(tree, file, node) : open_local(tree, file, node);
	if (rc)
		free_texts(file);
	return rc;
}

/* With the lock, which it gives up meanwhile. */
static int wait_for_change(struct h5_tree *tree)
{
	if (h5_wait_is_noticed()) {
		/* The change may come before we have the lock again, so this does not wait for it. */
		pthread_mutex_unlock(&tree->lock);
		h5_wait_begins();
		pthread_mutex_lock(&tree->lock);
		return 0;
	}
	h5_thread_wait_a_second(&tree->changed, &tree->lock);
	return h5_interrupt_check();
}

/* ---- committing ---- */

/* The first file that was opened after so many others; NULL: there is none. With the lock. */
static struct h5_tree_file *find_opened_after(const struct h5_tree *tree, uint64_t openings)
{
	struct h5_tree_file *file, *found = NULL;

	DL_FOREACH(tree->open, file)
	if (file->state == H5_TREE_OPEN && file->opening > openings &&
	    (!found || file->opening < found->opening))
		found = file;
	return found;
}

/* With the lock. */
static bool is_any_closing(const struct h5_tree *tree)
{
	const struct h5_tree_file *file;

	DL_SEARCH_SCALAR(tree->open, file, state, H5_TREE_CLOSING);
	return file;
}

/* A file that closes commits. With the lock, which it gives up meanwhile. */
static int await_closing(struct h5_tree *tree)
{
	int rc = 0;

	while (!rc && is_any_closing(tree))
		rc = wait_for_change(tree);
	return rc;
}

int h5_tree_commit(struct h5_tree *tree)
{
	struct h5_tree_file *file;
	uint64_t done = 0;
	int rc, code;

	pthread_mutex_lock(&tree->lock);
	rc = await_closing(tree);
	while ((file = find_opened_after(tree, done))) {
		done = file->opening;
		file->uses++;
		pthread_mutex_unlock(&tree->lock);
		code = h5_vfs_fsync_directory(file->vfs, h5_vfs_root(file->vfs));
		rc = rc ? rc : code;
		h5_tree_file_leave(tree, file, false);
		pthread_mutex_lock(&tree->lock);
	}
	if (!rc) {
		rc = tree->untold;
		tree->untold = 0;
	}
	pthread_mutex_unlock(&tree->lock);
	return rc;
}

/* ---- opening what is closed ---- */

/* True: a file will close if we wait, since only requests use it. With the lock. */
static bool will_close(const struct h5_tree *tree)
{
	const struct h5_tree_file *file;

	DL_FOREACH(tree->open, file)
	if (file->state != H5_TREE_OPEN || !file->held)
		return true;
	return false;
}

/* Makes one file less open than may be. 0: look at all anew. With the lock, which it gives up meanwhile. */
static int make_place(struct h5_tree *tree)
{
	struct h5_tree_file *unused = find_unused(tree, 0);

	if (unused) {
		close_file(tree, unused);
		return 0;
	}
	return will_close(tree) ? wait_for_change(tree)
				: h5_fail(-ENFILE, H5_UNDEF, "%u HDF5 files are in use (-o open_files=)",
					  tree->options.open_files);
}

/* The same file, open under another name, or before the kernel forgot its node; NULL: it is not. With the
 * lock. */
static struct h5_tree_file *find_other(const struct h5_tree *tree, const struct h5_tree_file *file)
{
	struct h5_tree_file *other;

	DL_FOREACH(tree->open, other)
	if (other != file && other->device == file->device && other->inode == file->inode)
		return other;
	return NULL;
}

/* Only one may write the file. 0: look at all anew. With the lock, which it gives up meanwhile. */
static int close_other(struct h5_tree *tree, struct h5_tree_file *other)
{
	if (other->held)
		return h5_fail(-EBUSY, H5_UNDEF, "it is open under another name");
	if (other->state != H5_TREE_OPEN || other->uses)
		return wait_for_change(tree);
	close_file(tree, other);
	return 0;
}

/* With the lock, which it gives up meanwhile. */
static int open_closed(struct h5_tree *tree, struct h5_tree_file *file, const struct h5_tree_node *node)
{
	int rc;

	file->state = H5_TREE_OPENING;
	DL_APPEND(tree->open, file);
	tree->open_count++;
	pthread_mutex_unlock(&tree->lock);
	rc = open_file(tree, file, node);
	pthread_mutex_lock(&tree->lock);
	if (rc) {
		set_closed(tree, file);
		return rc;
	}
	file->state = H5_TREE_OPEN;
	file->opening = ++tree->openings;
	share_caches(tree);
	pthread_cond_broadcast(&tree->changed);
	return 0;
}

/* With the lock. */
static int make_open(struct h5_tree *tree, struct h5_tree_file *file, const struct h5_tree_node *node)
{
	struct h5_tree_file *other;
	int rc = 0;

	while (!rc && file->state != H5_TREE_OPEN) {
		if (file->state != H5_TREE_CLOSED)
			rc = wait_for_change(tree);
		else if (tree->options.set.writable && (other = find_other(tree, file)))
			rc = close_other(tree, other);
		else if (tree->open_count >= tree->options.open_files)
			rc = make_place(tree);
		else
			rc = open_closed(tree, file, node);
	}
	return rc;
}

int h5_tree_file_enter(struct h5_tree *tree, struct h5_tree_node *node, bool hold)
{
	struct h5_tree_file *file = node->file;
	int rc;

	pthread_mutex_lock(&tree->lock);
	rc = make_open(tree, file, node_of_file(node));
	if (!rc) {
		file->uses++;
		file->held += hold;
		/* The list is in the order of use. */
		DL_DELETE(tree->open, file);
		DL_APPEND(tree->open, file);
	}
	pthread_mutex_unlock(&tree->lock);
	if (!rc)
		h5_vfs_refresh(file->vfs);
	return rc;
}

void h5_tree_file_hold(struct h5_tree *tree, struct h5_tree_file *file)
{
	pthread_mutex_lock(&tree->lock);
	assert(file->state == H5_TREE_OPEN && file->uses);
	file->uses++;
	file->held++;
	pthread_mutex_unlock(&tree->lock);
}

bool h5_tree_file_stay(struct h5_tree *tree, struct h5_tree_file *file)
{
	bool is_open;

	pthread_mutex_lock(&tree->lock);
	is_open = file->state == H5_TREE_OPEN;
	file->uses += is_open;
	pthread_mutex_unlock(&tree->lock);
	return is_open;
}

void h5_tree_file_leave(struct h5_tree *tree, struct h5_tree_file *file, bool hold)
{
	pthread_mutex_lock(&tree->lock);
	assert(file->uses && file->held >= hold);
	file->uses--;
	file->held -= hold;
	file->last_use = now();
	if (!file->uses && tree->open_count >= tree->options.open_files)
		pthread_cond_broadcast(&tree->changed);
	pthread_mutex_unlock(&tree->lock);
}

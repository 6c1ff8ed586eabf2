/* Directories: of the folder, whose names are read at once, and of HDF5 files. */
#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/wait.h"
#include "tree/bucket.h"
#include "tree/file.h"
#include "tree/node.h"
#include "tree/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

struct item {
	size_t name; /* where it begins in `text` */
	uint64_t ino;
	mode_t type;
};

struct h5_tree_dir {
	struct h5_tree *tree;
	struct h5_tree_node *node; /* the kernel has it as long as the directory is open */
	struct h5_dir *inside;	   /* of an HDF5 file; NULL: of the folder, and the rest is its names */
	struct item *items;	   /* owned */
	size_t count, capacity;
	struct h5_buf text;		 /* names, each with its NUL */
	struct h5_tree_dir *prev, *next; /* tree->lock: in tree->dirs */
};

/* ---- of the folder ---- */

/* A look-up reads the signature of a file with such a name, and a listing does not. */
static int add_item(void *arg, const char *name, uint64_t ino, mode_t type)
{
	struct h5_tree_dir *dir = arg;

	if (S_ISREG(type) && h5_tree_matches(dir->tree, name))
		type = 0;
	if (h5_array_reserve(&dir->items, &dir->capacity, dir->count + 1, NULL))
		return -ENOMEM;
	dir->items[dir->count] = (struct item){.name = dir->text.size, .ino = ino, .type = type};
	h5_buf_add(&dir->text, name, strlen(name) + 1);
	if (!dir->text.err)
		dir->count++;
	return dir->text.err;
}

static int add_name(struct h5_tree_dir *dir, const struct stat *folder, const struct dirent *entry)
{
	if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
		return 0;
	return add_item(dir, entry->d_name, h5_tree_ino(folder->st_dev, entry->d_ino),
			(mode_t)DTTOIF(entry->d_type));
}

/* Names are read when the kernel asks for the first one. */
static int open_folder(struct h5_tree_dir *dir)
{
	struct stat st;
	int fd;

	if (dir->tree->bucket)
		return 0;
	fd = h5_tree_place_open_node(dir->tree, dir->node, O_RDONLY | O_DIRECTORY, &st);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int read_names(struct h5_tree_dir *dir)
{
	struct stat st;
	int fd, rc = 0;
	DIR *stream;
	const struct dirent *entry;

	dir->count = dir->text.size = 0;
	dir->text.err = 0; /* memory may have been short the last time */
	if (dir->tree->bucket)
		return h5_tree_bucket_list(dir->tree, dir->node, add_item, dir);
	h5_wait_begins();
	fd = h5_tree_place_open_node(dir->tree, dir->node, O_RDONLY | O_DIRECTORY, &st);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		rc = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (errno = 0, entry = readdir(stream)))
		rc = add_name(dir, &st, entry);
	if (!rc)
		rc = -errno;
	closedir(stream);
	return rc;
}

static void fill_names(const struct h5_tree_dir *dir, uint64_t position,
		       struct h5_tree_name names[H5_TREE_NAMES], size_t *got)
{
	*got = position < dir->count ? (size_t)h5_min(dir->count - position, H5_TREE_NAMES) : 0;
	for (size_t i = 0; i < *got; i++) {
		const struct item *item = &dir->items[position + i];

		names[i] = (struct h5_tree_name){.name = dir->text.data + item->name,
						 .ino = item->ino,
						 .type = item->type,
						 .next = position + i + 1};
	}
}

/* ---- of an HDF5 file ---- */

/* The file stays open as long as the directory is. */
static int open_inside(struct h5_tree_dir *dir)
{
	struct h5_tree_node *node = dir->node;
	struct h5_node *inside;
	int rc = h5_tree_file_enter(dir->tree, node, true);

	if (rc)
		return rc;
	rc = h5_tree_node_resolve(dir->tree, node, &inside);
	if (!rc)
		rc = h5_vfs_opendir(node->file->vfs, inside, &dir->inside);
	if (rc)
		h5_tree_file_leave(dir->tree, node->file, true);
	return rc;
}

static int fill_inside(struct h5_tree_dir *dir, uint64_t position, struct h5_tree_name names[H5_TREE_NAMES],
		       size_t *got)
{
	struct h5_vfs_entry entries[H5_TREE_NAMES];
	const struct h5_tree_file *file = dir->node->file;
	size_t first, count;
	int rc = position ? 0 : h5_vfs_dir_rewind(dir->inside);

	*got = 0;
	if (!rc)
		rc = h5_vfs_dir_go(dir->inside, position, &first);
	if (rc)
		return rc;
	count = h5_vfs_dir_count(dir->inside) - first;
	if (!count)
		return h5_vfs_dir_error(dir->inside);
	rc = h5_vfs_dir_read(dir->inside, first, (size_t)h5_min(count, H5_TREE_NAMES), false, entries, got);
	for (size_t i = 0; !rc && i < *got; i++)
		names[i] = (struct h5_tree_name){
			.name = h5_vfs_dir_name(dir->inside, first + i),
			.ino = h5_tree_ino_inside(file, entries[i].st.st_ino),
			.type = entries[i].st.st_mode & S_IFMT,
			.next = h5_vfs_dir_next(dir->inside, first + i),
		};
	return rc;
}

/* ---- both ---- */

int h5_tree_opendir(struct h5_tree *tree, struct h5_tree_node *node, struct h5_tree_dir **out)
{
	struct h5_tree_dir *dir = calloc(1, sizeof *dir);
	int rc;

	if (!dir)
		return -ENOMEM;
	dir->tree = tree;
	dir->node = node;
	h5_buf_init(&dir->text, SIZE_MAX);
	rc = node->kind == H5_TREE_PLAIN    ? -ENOTDIR
	     : node->kind == H5_TREE_FOLDER ? open_folder(dir)
					    : open_inside(dir);
	if (rc) {
		h5_buf_release(&dir->text);
		free(dir->items);
		free(dir);
		return rc;
	}
	pthread_mutex_lock(&tree->lock);
	DL_PREPEND(tree->dirs, dir);
	pthread_mutex_unlock(&tree->lock);
	*out = dir;
	return 0;
}

void h5_tree_closedir(struct h5_tree_dir *dir)
{
	pthread_mutex_lock(&dir->tree->lock);
	DL_DELETE(dir->tree->dirs, dir);
	pthread_mutex_unlock(&dir->tree->lock);
	if (dir->inside) {
		h5_vfs_closedir(dir->inside);
		h5_tree_file_leave(dir->tree, dir->node->file, true);
	}
	h5_buf_release(&dir->text);
	free(dir->items);
	free(dir);
}

void h5_tree_dirs_close(struct h5_tree *tree)
{
	while (tree->dirs)
		h5_tree_closedir(tree->dirs);
}

int h5_tree_readdir(struct h5_tree_dir *dir, uint64_t position, struct h5_tree_name names[H5_TREE_NAMES],
		    size_t *got)
{
	int rc = 0;

	if (dir->inside)
		return fill_inside(dir, position, names, got);
	if (!position)
		rc = read_names(dir);
	if (!rc)
		fill_names(dir, position, names, got);
	return rc;
}

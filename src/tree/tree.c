/* Opening and closing of the tree. */
#include "tree/tree.h"

#include "base/error.h"
#include "base/thread.h"
#include "io/named.h"
#include "tree/bucket.h"
#include "tree/file.h"
#include "tree/node.h"
#include "tree/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_root(struct h5_tree *tree, const char *path)
{
	struct h5_tree_found found = {.kind = H5_TREE_FOLDER};
	struct stat st;
	int fd;

	tree->path = realpath(path, NULL);
	tree->fd = tree->path ? open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (tree->fd < 0 || fstat(tree->fd, &st))
		return h5_fail(-errno, H5_UNDEF, "%s", strerror(errno));
	fd = h5_named_open_without_links(tree->fd, ".", O_PATH | O_DIRECTORY);
	if (fd < 0)
		return h5_fail(fd, H5_UNDEF, "openat2: %s", strerror(-fd));
	close(fd);
	found.device = st.st_dev;
	found.inode = st.st_ino;
	return h5_tree_node_get(tree, NULL, "", &found, &tree->root);
}

static int open_prefix(struct h5_tree *tree)
{
	struct h5_tree_found found;
	int rc = h5_tree_bucket_open(tree, &found);

	return rc ? rc : h5_tree_node_get(tree, NULL, "", &found, &tree->root);
}

int h5_tree_open(const char *path, const struct h5_tree_options *options, struct h5_tree **out)
{
	struct h5_tree *tree = calloc(1, sizeof *tree);
	int rc;

	if (!tree)
		return -ENOMEM;
	tree->options = *options;
	tree->fd = -1;
	pthread_mutex_init(&tree->lock, NULL);
	h5_thread_cond_init(&tree->changed);
	rc = options->set.remote ? open_prefix(tree) : open_root(tree, path);
	if (rc)
		h5_tree_close(tree);
	else
		*out = tree;
	return rc;
}

int h5_tree_finish(struct h5_tree *tree)
{
	h5_tree_handles_close(tree);
	h5_tree_dirs_close(tree);
	h5_tree_files_close(tree);
	return tree->lost;
}

void h5_tree_close(struct h5_tree *tree)
{
	if (!tree)
		return;
	h5_tree_finish(tree);
	h5_tree_nodes_free(tree);
	h5_bucket_close(tree->bucket);
	pthread_cond_destroy(&tree->changed);
	h5_mutex_destroy(&tree->lock);
	if (tree->fd >= 0)
		close(tree->fd);
	free(tree->path);
	free(tree);
}

int h5_tree_folder(const struct h5_tree *tree)
{
	return tree->fd;
}

void h5_tree_set_maps_direct(struct h5_tree *tree)
{
	tree->maps_direct = true;
}

double h5_tree_keep(const struct h5_tree *tree, const struct h5_tree_node *node)
{
	return tree->bucket && node->kind != H5_TREE_INSIDE ? H5_BUCKET_KEEP : 0;
}

struct h5_tree_node *h5_tree_root(struct h5_tree *tree)
{
	return tree->root;
}

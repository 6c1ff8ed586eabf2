#include "tree/place.h"

#include "base/error.h"
#include "io/named.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void h5_tree_place_path(const struct h5_tree_node *node, struct h5_buf *path)
{
	const struct h5_tree_node *n;
	size_t size = 0, at = path->size;

	for (n = node; n && n->parent; n = n->parent)
		size += strlen(n->name) + (n->parent->parent ? 1 : 0);
	for (size_t i = 0; i < size && !path->err; i++)
		h5_buf_byte(path, '/');
	if (path->err)
		return;
	for (n = node; n && n->parent; n = n->parent) {
		size_t length = strlen(n->name);

		size -= length;
		memcpy(path->data + at + size, n->name, length);
		size -= size ? 1 : 0; /* the slash before it */
	}
}

void h5_tree_path(struct h5_tree *tree, const struct h5_tree_node *node, struct h5_buf *path)
{
	pthread_mutex_lock(&tree->lock);
	h5_tree_place_path(node, path);
	pthread_mutex_unlock(&tree->lock);
}

bool h5_tree_matches(const struct h5_tree *tree, const char *name)
{
	char pattern[NAME_MAX + 1];
	size_t n;

	for (const char *p = tree->options.match; *p; p += n + (p[n] == ':')) {
		n = strcspn(p, ":");
		if (n >= sizeof pattern)
			continue;
		memcpy(pattern, p, n);
		pattern[n] = 0;
		if (!fnmatch(pattern, name, FNM_CASEFOLD))
			return true;
	}
	return false;
}

/* Opens the path beneath the folder `at`. */
static int open_path(int at, const char *path, int flags)
{
	int fd;

	/* A FIFO must not make us wait. openat2() takes no such flags with O_PATH. */
	flags |= O_CLOEXEC | O_NOFOLLOW | (flags & O_PATH ? 0 : O_NOCTTY | O_NONBLOCK);
	fd = h5_named_open_without_links(at, path, flags);
	/* A step that is a link by now was none when it was looked up. */
	if (fd == -ELOOP)
		return h5_fail(-ESTALE, H5_UNDEF, "%s: a symbolic link has taken a place on its path", path);
	if (fd == -EXDEV)
		return h5_fail(-EACCES, H5_UNDEF, "%s: it lies on another mount", path);
	return fd < 0 ? h5_fail(fd, H5_UNDEF, "%s", strerror(-fd)) : fd;
}

int h5_tree_place_open_node(const struct h5_tree *tree, const struct h5_tree_node *node, int flags,
			    struct stat *st)
{
	struct h5_buf path;
	int fd, rc = 0;

	h5_buf_init(&path, PATH_MAX);
	h5_tree_place_path(node, &path);
	if (!node->parent)
		h5_buf_byte(&path, '.');
	h5_buf_byte(&path, 0);
	fd = path.err == -E2BIG ? -ENAMETOOLONG : path.err;
	if (!fd)
		fd = open_path(tree->fd, path.data, flags);
	h5_buf_release(&path);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? -ESTALE : fd;
	if (fstat(fd, st))
		rc = -errno;
	else if (st->st_dev != node->device || st->st_ino != node->inode)
		rc = -ESTALE;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int h5_tree_place_open(const struct h5_tree *tree, const struct h5_tree_node *folder, const char *name,
		       int flags)
{
	struct stat st;
	int at = h5_tree_place_open_node(tree, folder, O_PATH | O_DIRECTORY, &st), fd;

	if (at < 0)
		return at;
	fd = open_path(at, name, flags);
	close(at);
	return fd;
}

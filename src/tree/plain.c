#include "tree/plain.h"

#include "base/error.h"
#include "base/wait.h"
#include "tree/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <linux/limits.h>

enum { MOST = XATTR_SIZE_MAX > XATTR_LIST_MAX ? XATTR_SIZE_MAX : XATTR_LIST_MAX };

static bool is_of_users(const char *name)
{
	return !strncmp(name, "user.", 5);
}

/* A descriptor, or a negative errno. -ENODATA: it has no attributes of users. */
static int open_node(struct h5_tree *tree, const struct h5_tree_node *node)
{
	struct stat st;
	int fd = h5_tree_place_open_node(tree, node, O_PATH, &st);

	/* It lives on as long as a program has it open. */
	if (fd == -ESTALE)
		return h5_tree_handles_open(tree, node);
	if (fd < 0)
		return fd;
	close(fd);
	/* To open a device may do something. */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return -ENODATA;
	return h5_tree_place_open_node(tree, node, O_RDONLY, &st);
}

/* `name` NULL: the list of names. Returns the number of bytes, or a negative errno. */
static ssize_t read_file(struct h5_tree *tree, const struct h5_tree_node *node, const char *name,
			 char data[MOST])
{
	int fd = open_node(tree, node);
	ssize_t n;

	if (fd < 0)
		return fd;
	h5_wait_begins();
	n = name ? fgetxattr(fd, name, data, MOST) : flistxattr(fd, data, MOST);
	if (n < 0)
		n = errno == ENOTSUP ? -ENODATA : -errno;
	close(fd);
	return n;
}

int h5_tree_plain_getxattr(struct h5_tree *tree, const struct h5_tree_node *node, const char *name,
			   struct h5_buf *out)
{
	char *data;
	ssize_t n;

	if (!is_of_users(name))
		return -ENODATA;
	data = malloc(MOST);
	n = data ? read_file(tree, node, name, data) : -ENOMEM;
	if (n > 0)
		h5_buf_add(out, data, (size_t)n);
	free(data);
	return n < 0 ? (int)n : out->err;
}

int h5_tree_plain_listxattr(struct h5_tree *tree, const struct h5_tree_node *node, struct h5_buf *out)
{
	char *data = malloc(MOST);
	ssize_t n = data ? read_file(tree, node, NULL, data) : -ENOMEM;

	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(data + i) + 1)
		if (is_of_users(data + i))
			h5_buf_add(out, data + i, strlen(data + i) + 1);
	free(data);
	return n == -ENODATA ? 0 : n < 0 ? (int)n : out->err;
}

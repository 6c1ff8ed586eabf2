/* Look-ups, and what is to be said of a node: attributes, targets of links, extended attributes. */
#include "base/error.h"
#include "base/wait.h"
#include "format/onion.h"
#include "format/superblock.h"
#include "object/json.h"
#include "tree/bucket.h"
#include "tree/file.h"
#include "tree/node.h"
#include "tree/object.h"
#include "tree/place.h"
#include "tree/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BLOCK = 1 << 17, /* bytes that programs had better read at a time */
	SIGNATURE = sizeof H5_SIGNATURE - 1,
	/* Signatures behind more bytes are not looked for in an object store: each look would be a request.
	 */
	REMOTE_USER_BLOCK = 1 << 20,
};

_Static_assert(sizeof H5_ONION_STUB - 1 == SIGNATURE, "both are looked for at once");

/* ---- what is found in the folder ---- */

/* A user who may read the file may enter its directory. */
static mode_t directory_mode(mode_t mode)
{
	return S_IFDIR | (mode & 0666) | (mode & 0444) >> 2;
}

/* Makes what the file system says of a file what the mount says of the node. */
static void show(const struct h5_tree *tree, enum h5_tree_kind kind, struct stat *st)
{
	const struct h5_vfs_options *options = &tree->options.vfs;

	st->st_ino = h5_tree_ino(st->st_dev, st->st_ino);
	st->st_blksize = BLOCK;
	if (kind == H5_TREE_FILE) {
		st->st_mode = directory_mode(st->st_mode);
		st->st_nlink = 1;
		st->st_size = st->st_blocks = 0;
	}
	if (!S_ISLNK(st->st_mode))
		st->st_mode &= ~(07000u | (options->writable && S_ISDIR(st->st_mode) ? 0u : 0222u) |
				 (S_ISDIR(st->st_mode) ? options->dmask : options->fmask));
	if (!tree->options.keeps_uid)
		st->st_uid = options->uid;
	if (!tree->options.keeps_gid)
		st->st_gid = options->gid;
}

static int find_in_local_folder(struct h5_tree *tree, const struct h5_tree_node *parent, const char *name,
				struct h5_tree_found *found, struct stat *st)
{
	int fd = h5_tree_place_open(tree, parent, name, O_PATH), rc;

	if (fd < 0)
		return fd;
	rc = fstat(fd, st) ? -errno : 0;
	close(fd);
	*found = (struct h5_tree_found){
		.kind = S_ISDIR(st->st_mode) ? H5_TREE_FOLDER : H5_TREE_PLAIN,
		.device = st->st_dev,
		.inode = st->st_ino,
		.changed = st->st_ctim,
	};
	return rc;
}

/* Opens what was found, to look at its bytes. -ESTALE: the name leads to another file by now. */
static int open_found(struct h5_tree *tree, const struct h5_tree_node *parent, const char *name,
		      const struct h5_tree_found *found, struct h5_io **io)
{
	struct stat now;
	int fd, rc;

	if (tree->bucket)
		return h5_tree_object_open_io(tree, parent, name, found->device, H5_REMOTE_CELL, io);
	h5_wait_begins();
	fd = h5_tree_place_open(tree, parent, name, O_RDONLY);
	if (fd < 0)
		return fd;
	rc = fstat(fd, &now) ? -errno : 0;
	if (!rc && (now.st_dev != found->device || now.st_ino != found->inode))
		rc = -ESTALE;
	if (rc) {
		close(fd);
		return rc;
	}
	return h5_io_open_fd(fd, H5_LOCK_NONE, false, io);
}

/* 0: the bytes begin as those of an HDF5 file, maybe behind a user block, or of one that only has revisions;
 * -EINVAL: they do not. */
static int find_signature(const struct h5_tree *tree, struct h5_io *io, uint64_t size)
{
	uint64_t only = tree->options.set.offset;
	uint64_t last = tree->bucket && !only ? REMOTE_USER_BLOCK : UINT64_MAX;
	char begin[SIGNATURE];

	for (uint64_t at = only; at <= last && at + SIGNATURE <= size; at = at ? 2 * at : 512) {
		size_t got;
		int rc = h5_io_read_some(io, at, begin, SIGNATURE, &got);

		if (rc)
			return rc;
		if (got == SIGNATURE &&
		    (!memcmp(begin, H5_SIGNATURE, SIGNATURE) || !memcmp(begin, H5_ONION_STUB, SIGNATURE)))
			return 0;
		if (only)
			break;
	}
	return -EINVAL;
}

/* Finds whether a file is an HDF5 file, if it has the name of one. One that cannot be read counts as an HDF5
 * file: its directory tells the error when it is opened. */
static int find_kind(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
		     const struct stat *st, struct h5_tree_found *found)
{
	struct h5_io *io;
	int rc;

	if (!S_ISREG(st->st_mode) || st->st_size < SIGNATURE || !h5_tree_matches(tree, name) ||
	    h5_tree_node_recall(tree, parent, name, found))
		return 0;
	rc = open_found(tree, parent, name, found, &io);
	if (!rc) {
		rc = find_signature(tree, io, (uint64_t)st->st_size);
		h5_io_close(io);
	}
	if (rc == -ENOENT || rc == -ESTALE || rc == -ENAMETOOLONG || h5_is_passing(rc))
		return rc;
	if (rc != -EINVAL)
		found->kind = H5_TREE_FILE;
	return 0;
}

int h5_tree_lookup(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
		   struct h5_tree_entry *entry)
{
	struct h5_tree_found found;
	int rc;

	if (parent->kind != H5_TREE_FOLDER)
		return -ENOTDIR;
	rc = tree->bucket ? h5_tree_bucket_look_up(tree, parent, name, &found, &entry->st)
			  : find_in_local_folder(tree, parent, name, &found, &entry->st);
	if (!rc)
		rc = find_kind(tree, parent, name, &entry->st, &found);
	if (!rc)
		rc = h5_tree_node_get(tree, parent, name, &found, &entry->node);
	if (rc)
		return rc;
	entry->generation = entry->node->generation;
	show(tree, found.kind, &entry->st);
	return 0;
}

/* ---- attributes ---- */

/* One that was replaced or removed lives on as long as a program has it open. */
int h5_tree_getattr(struct h5_tree *tree, struct h5_tree_node *node, struct stat *st)
{
	int fd, rc = 0;

	if (tree->bucket) {
		h5_tree_object_stat(tree, node, st);
		show(tree, node->kind, st);
		return 0;
	}
	fd = h5_tree_place_open_node(tree, node, O_PATH, st);
	if (fd == -ESTALE) {
		fd = h5_tree_handles_open(tree, node);
		rc = fd >= 0 && fstat(fd, st) ? -errno : 0;
	}
	if (fd < 0)
		return fd;
	close(fd);
	if (!rc)
		show(tree, node->kind, st);
	return rc;
}

int h5_tree_statfs(struct h5_tree *tree, struct statvfs *st)
{
	if (tree->bucket) {
		*st = (struct statvfs){.f_bsize = BLOCK, .f_frsize = 512, .f_namemax = NAME_MAX};
		return 0;
	}
	return fstatvfs(tree->fd, st) ? -errno : 0;
}

/* ---- symbolic links ---- */

/* True: a link in the directory with that target leads out of the tree, if the links on its way are none. */
static bool leads_out(const struct h5_tree_node *directory, const char *target)
{
	size_t depth = 0, n;

	if (*target == '/')
		return true;
	for (; directory->parent; directory = directory->parent)
		depth++;
	for (const char *p = target; *p; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		if (n == 2 && !memcmp(p, "..", 2) && !depth--)
			return true;
		if (n && !(n == 1 && *p == '.') && !(n == 2 && !memcmp(p, "..", 2)))
			depth++;
	}
	return false;
}

static int read_link_of_folder(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *target)
{
	char text[PATH_MAX + 1];
	struct stat st;
	int fd = h5_tree_place_open_node(tree, node, O_PATH, &st);
	ssize_t n = fd < 0 ? fd : readlinkat(fd, "", text, sizeof text - 1);
	int rc = fd < 0 ? fd : n < 0 ? (errno == ENOENT ? -EINVAL : -errno) : 0;

	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	text[n] = 0;
	if (tree->options.set.external != H5_EXTERNAL_ANY && leads_out(node->parent, text))
		return h5_fail(-EACCES, H5_UNDEF,
			       "a symbolic link that leads out of the folder (-o external=any)");
	h5_buf_add(target, text, (size_t)n + 1);
	return target->err;
}

int h5_tree_readlink(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *target)
{
	struct h5_tree_inside in;
	const char *text;
	int rc;

	if (node->kind != H5_TREE_INSIDE)
		return node->kind == H5_TREE_PLAIN && !tree->bucket ? read_link_of_folder(tree, node, target)
								    : -EINVAL;
	rc = h5_tree_enter(tree, node, &in);
	if (rc)
		return rc;
	rc = h5_vfs_readlink(in.node, &text);
	if (!rc)
		h5_buf_add(target, text, strlen(text) + 1);
	h5_tree_leave(tree, &in);
	return rc ? rc : target->err;
}

/* ---- extended attributes ---- */

int h5_tree_statistics(struct h5_tree *tree, struct h5_buf *out)
{
	struct h5_json all = h5_json_object(out);
	uint64_t open, opened, nodes;

	pthread_mutex_lock(&tree->lock);
	open = tree->open_count;
	opened = tree->openings;
	nodes = HASH_COUNT(tree->nodes);
	pthread_mutex_unlock(&tree->lock);
	h5_json_number(h5_json_key(&all, "open_files"), open);
	h5_json_number(h5_json_key(&all, "opened"), opened);
	h5_json_number(h5_json_key(&all, "nodes"), nodes);
	if (tree->options.set.remote)
		h5_vfs_remote_statistics(&all, tree->options.set.remote);
	h5_json_close(&all);
	return out->err;
}

/* The root also has the statistics of the mount, as the root of a file. */
int h5_tree_getxattr(struct h5_tree *tree, const struct h5_tree_node *node, const char *name,
		     struct h5_buf *out)
{
	if (node == tree->root && !strcmp(name, "h5fs.stats"))
		return h5_tree_statistics(tree, out);
	if (node != tree->root || strcmp(name, "h5fs.pid") != 0)
		return tree->bucket ? -ENODATA : h5_tree_plain_getxattr(tree, node, name, out);
	h5_buf_printf(out, "%d", (int)getpid());
	return out->err;
}

int h5_tree_listxattr(struct h5_tree *tree, const struct h5_tree_node *node, struct h5_buf *out)
{
	return tree->bucket ? 0 : h5_tree_plain_listxattr(tree, node, out);
}

uint64_t h5_tree_work_limit(struct h5_tree *tree, const struct h5_tree_node *node)
{
	uint64_t limit = tree->options.vfs.max_work * UINT64_C(1000);

	if (node->file && h5_tree_file_stay(tree, node->file)) {
		limit = h5_vfs_work_limit(node->file->vfs);
		h5_tree_file_leave(tree, node->file, false);
	}
	return limit;
}

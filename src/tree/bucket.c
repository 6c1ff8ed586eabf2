#include "tree/bucket.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/siphash.h"
#include "format/superblock.h"
#include "io/io.h"
#include "tree/object.h"
#include "tree/place.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	/* Signatures behind more bytes of other kinds are not looked for: each would be a request. */
	USER_BLOCK_MOST = 1 << 20,
};

static uint64_t inode_of(const char *below, const char *name)
{
	static const uint8_t key[H5_SIPHASH_KEY] = "h5fs object";

	return h5_siphash(key, below, strlen(below)) * 31 + h5_siphash(key, name, strlen(name));
}

static struct h5_tree_found found_of(const char *below, const char *name, const struct h5_bucket_entry *entry)
{
	return (struct h5_tree_found){.kind = entry->is_folder ? H5_TREE_FOLDER : H5_TREE_PLAIN,
				      .device = entry->version,
				      .inode = inode_of(below, name),
				      .size = entry->size,
				      .changed.tv_sec = (time_t)entry->modified};
}

/* 0: the object begins as an HDF5 file, maybe behind a user block; -EINVAL: it does not. */
static int find_signature(struct h5_tree *tree, const char *object, const struct h5_tree_found *found)
{
	uint64_t only = tree->options.set.offset, most = h5_min(found->size, USER_BLOCK_MOST + 512);
	char begin[sizeof H5_SIGNATURE - 1];
	struct h5_io *io;
	int rc;

	if (found->size < sizeof begin)
		return -EINVAL;
	rc = h5_io_open_remote_version(h5_bucket_remote(tree->bucket), object, found->device, H5_REMOTE_CELL,
				       &io);
	if (rc)
		return rc;
	rc = -EINVAL;
	for (uint64_t at = only; rc == -EINVAL && (only || at <= most); at = at ? 2 * at : 512) {
		size_t got = 0;

		rc = h5_io_read_some(io, at, begin, sizeof begin, &got);
		if (!rc && (got < sizeof begin || memcmp(begin, H5_SIGNATURE, got) != 0))
			rc = -EINVAL;
		if (only)
			break;
	}
	h5_io_close(io);
	return rc;
}

/* As of a local folder: what cannot be read is a directory, if its name is one of an HDF5 file. */
static int find_kind(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
		     struct h5_tree_found *found)
{
	struct h5_buf object;
	int rc;

	if (found->kind == H5_TREE_FOLDER || !h5_tree_matches(tree, name) ||
	    h5_tree_node_recall(tree, parent, name, found))
		return 0;
	rc = h5_tree_object_folder(parent, &object);
	if (rc)
		return rc;
	object.size--; /* the NUL */
	h5_buf_text(&object, name);
	h5_buf_byte(&object, 0);
	rc = object.err == -E2BIG ? -ENAMETOOLONG : object.err;
	if (!rc)
		rc = find_signature(tree, object.data, found);
	h5_buf_release(&object);
	if (rc == -ENOENT || rc == -ESTALE || rc == -ENAMETOOLONG || h5_is_passing(rc))
		return rc;
	if (rc != -EINVAL)
		found->kind = H5_TREE_FILE;
	return 0;
}

int h5_tree_bucket_look_up(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
			   struct h5_tree_found *found, struct stat *st)
{
	struct h5_bucket_entry entry;
	struct h5_buf below;
	int rc;

	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	rc = h5_tree_object_folder(parent, &below);
	if (rc)
		return rc;
	rc = h5_bucket_find(tree->bucket, below.data, name, false, &entry);
	if (!rc)
		*found = found_of(below.data, name, &entry);
	h5_buf_release(&below);
	if (!rc)
		rc = find_kind(tree, parent, name, found);
	if (!rc)
		h5_tree_object_say(found, st);
	return rc;
}

int h5_tree_bucket_list(struct h5_tree *tree, const struct h5_tree_node *node, h5_tree_bucket_add *add,
			void *arg)
{
	const struct h5_bucket_entry *entries;
	struct h5_bucket_folder *folder;
	struct h5_buf below;
	size_t count = 0;
	int rc = h5_tree_object_folder(node, &below);

	if (rc)
		return rc;
	rc = h5_bucket_list(tree->bucket, below.data, &folder);
	if (rc) {
		h5_buf_release(&below);
		return rc;
	}
	entries = h5_bucket_entries(folder, &count);
	for (size_t i = 0; i < count && !rc; i++) {
		struct h5_tree_found found = found_of(below.data, entries[i].name, &entries[i]);
		mode_t type = found.kind == H5_TREE_FOLDER	       ? S_IFDIR
			      : h5_tree_matches(tree, entries[i].name) ? 0
								       : S_IFREG;

		rc = add(arg, entries[i].name, h5_tree_ino(found.device, found.inode), type);
	}
	h5_bucket_put(tree->bucket, folder);
	h5_buf_release(&below);
	return rc;
}

int h5_tree_bucket_open(struct h5_tree *tree, struct h5_tree_found *root)
{
	int rc = h5_bucket_open(tree->options.set.remote, &tree->bucket);

	*root = (struct h5_tree_found){.kind = H5_TREE_FOLDER, .inode = inode_of("", "")};
	tree->path = strdup(h5_remote_url(tree->options.set.remote));
	return rc || tree->path ? rc : -ENOMEM;
}

#include "tree/bucket.h"

#include "base/error.h"
#include "base/siphash.h"
#include "tree/object.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

int h5_tree_bucket_look_up(struct h5_tree *tree, const struct h5_tree_node *parent, const char *name,
			   struct h5_tree_found *found, struct stat *st)
{
	struct h5_bucket_entry entry;
	struct h5_buf below;
	int rc;

	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	rc = h5_tree_object_key(parent, "", &below);
	if (rc)
		return rc;
	rc = h5_bucket_find(tree->bucket, below.data, name, false, &entry);
	if (!rc) {
		*found = found_of(below.data, name, &entry);
		h5_tree_object_say(found, st);
	}
	h5_buf_release(&below);
	return rc;
}

int h5_tree_bucket_list(struct h5_tree *tree, const struct h5_tree_node *node, h5_tree_bucket_add *add,
			void *arg)
{
	const struct h5_bucket_entry *entries;
	struct h5_bucket_folder *folder;
	struct h5_buf below;
	size_t count = 0;
	int rc = h5_tree_object_key(node, "", &below);

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

		rc = add(arg, entries[i].name, h5_tree_ino(found.device, found.inode),
			 found.kind == H5_TREE_FOLDER ? S_IFDIR : S_IFREG);
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

/* A node of an object has its version as device number, and a hash of its name as inode number. */
#include "tree/object.h"

#include "base/error.h"
#include "io/io.h"
#include "tree/place.h"
#include "vfs/sequence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

int h5_tree_object_key(const struct h5_tree_node *folder, const char *name, struct h5_buf *key)
{
	int rc;

	h5_buf_init(key, H5_REMOTE_NAME);
	h5_tree_place_path(folder, key);
	h5_buf_text(key, folder->parent ? "/" : "");
	h5_buf_text(key, name);
	h5_buf_byte(key, 0);
	rc = key->err == -E2BIG ? -ENAMETOOLONG : key->err;
	if (rc)
		h5_buf_release(key);
	return rc;
}

int h5_tree_object_open_io(struct h5_tree *tree, const struct h5_tree_node *folder, const char *name,
			   uint64_t version, uint64_t first, struct h5_io **io)
{
	struct h5_buf key;
	int rc = h5_tree_object_key(folder, name, &key);

	if (rc)
		return rc;
	rc = h5_io_open_remote_version(h5_bucket_remote(tree->bucket), key.data, version, first, io);
	h5_buf_release(&key);
	return rc;
}

void h5_tree_object_say(const struct h5_tree_found *found, struct stat *st)
{
	bool is_folder = found->kind == H5_TREE_FOLDER;

	*st = (struct stat){.st_dev = found->device,
			    .st_ino = found->inode,
			    .st_mode = is_folder ? S_IFDIR | 0555 : S_IFREG | 0444,
			    .st_nlink = is_folder ? 2 : 1,
			    .st_size = (off_t)found->size,
			    .st_blocks = (blkcnt_t)(found->size / 512 + (found->size % 512 != 0)),
			    .st_atim = found->changed,
			    .st_mtim = found->changed,
			    .st_ctim = found->changed};
}

void h5_tree_object_stat(struct h5_tree *tree, const struct h5_tree_node *node, struct stat *st)
{
	struct h5_tree_found found = {
		.kind = node->kind, .device = node->device, .inode = node->inode, .size = node->size};

	pthread_mutex_lock(&tree->lock);
	found.changed = node->seen;
	pthread_mutex_unlock(&tree->lock);
	h5_tree_object_say(&found, st);
}

/* A store may name the version otherwise in a listing than when the object is opened. So if the names differ,
 * the object is listed anew, which tells whether it was replaced. */
int h5_tree_object_check(struct h5_tree *tree, const struct h5_tree_node *node)
{
	struct h5_bucket_entry entry;
	struct h5_buf key, below;
	uint64_t tag;
	int rc = h5_tree_object_key(node->parent, node->name, &key);

	if (rc)
		return rc;
	tag = h5_remote_tag(h5_bucket_remote(tree->bucket), key.data, node->device);
	h5_buf_release(&key);
	if (!tag || tag == node->device)
		return 0;
	rc = h5_tree_object_key(node->parent, "", &below);
	if (rc)
		return rc;
	rc = h5_bucket_find(tree->bucket, below.data, node->name, true, &entry);
	h5_buf_release(&below);
	if (rc == -ENOENT || (!rc && entry.version != node->device))
		return h5_fail(-ESTALE, H5_UNDEF, "the object was replaced");
	return rc;
}

/* ---- bytes ---- */

struct h5_tree_object {
	struct h5_io *io;
	uint64_t size;
	struct h5_sequences sequences;
};

int h5_tree_object_open(struct h5_tree *tree, const struct h5_tree_node *node, struct h5_tree_object **out)
{
	struct h5_tree_object *object = calloc(1, sizeof *object);
	struct h5_io_stat st = {0};
	int rc;

	if (!object)
		return -ENOMEM;
	rc = h5_tree_object_open_io(tree, node->parent, node->name, node->device, H5_REMOTE_FIRST,
				    &object->io);
	if (!rc)
		rc = h5_tree_object_check(tree, node);
	if (!rc)
		rc = h5_io_stat(object->io, &st);
	if (rc) {
		h5_tree_object_close(object);
		return rc;
	}
	object->size = st.size;
	*out = object;
	return 0;
}

void h5_tree_object_close(struct h5_tree_object *object)
{
	if (object->io)
		h5_io_close(object->io);
	free(object);
}

/* Asks for what comes next, if the object is read in order. */
static void want_next(struct h5_tree_object *o, uint64_t offset, size_t n)
{
	uint64_t most = h5_io_want(o->io, NULL, 0, H5_WANTED_SOON);
	struct h5_io_range range;

	if (h5_sequences_want(&o->sequences, o->size, most, offset, n, &range))
		h5_io_want(o->io, &range, 1, H5_WANTED_SOON);
}

int h5_tree_object_read(struct h5_tree_object *o, uint64_t offset, void *buf, size_t n, size_t *got)
{
	if (offset < o->size)
		want_next(o, offset, n);
	return h5_io_read_some(o->io, offset, buf, n, got);
}

int h5_tree_object_seek(const struct h5_tree_object *o, uint64_t offset, bool hole, uint64_t *found)
{
	if (offset >= o->size)
		return -ENXIO;
	*found = hole ? o->size : offset;
	return 0;
}

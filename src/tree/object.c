/* A node of an object has its version as device number, and a hash of its name as inode number. */
#include "tree/object.h"

#include "base/checked.h"
#include "base/error.h"
#include "io/io.h"
#include "tree/place.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	WINDOW_LEAST = 1 << 20, /* bytes that are announced to begin with, if an object is read in order */
	NEAR = 1 << 20,		/* the kernel asks for parts of a file in any order, but not farther away */
};

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
	/* Of a reader in order. Several requests may change them at once: then less is announced, or more. */
	atomic_uint_fast64_t next;	/* where it goes on */
	atomic_uint_fast64_t announced; /* the end of what was announced */
	atomic_uint_fast64_t window;
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

/* If the reader goes on where it was, announces what comes next: twice as much each time. */
static void announce(struct h5_tree_object *o, uint64_t offset, size_t n)
{
	uint64_t next = atomic_load(&o->next), end = h5_min(o->size, offset + n), from, until, most;
	struct h5_io_range range;

	atomic_store(&o->next, h5_max(next, end));
	if (!offset || offset + NEAR < next || offset > next + NEAR) {
		atomic_store(&o->next, end);
		atomic_store(&o->announced, end);
		atomic_store(&o->window, WINDOW_LEAST);
		return;
	}
	from = h5_max(atomic_load(&o->announced), end);
	most = atomic_load(&o->window);
	until = h5_min(o->size, end + most);
	/* In parts that are worth a request. */
	if (from >= until || (until - from < most / 2 && until < o->size))
		return;
	range = (struct h5_io_range){.offset = from, .n = until - from};
	atomic_store(&o->announced, until);
	atomic_store(&o->window,
		     h5_min(2 * most, h5_max(h5_io_want(o->io, &range, 1, H5_WANTED_SOON), WINDOW_LEAST)));
}

int h5_tree_object_read(struct h5_tree_object *o, uint64_t offset, void *buf, size_t n, size_t *got)
{
	if (offset < o->size)
		announce(o, offset, n);
	return h5_io_read_some(o->io, offset, buf, n, got);
}

int h5_tree_object_seek(const struct h5_tree_object *o, uint64_t offset, bool hole, uint64_t *found)
{
	if (offset >= o->size)
		return -ENXIO;
	*found = hole ? o->size : offset;
	return 0;
}

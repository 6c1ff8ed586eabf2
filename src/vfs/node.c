/* The inode table.
 *
 * A node is an inode that the kernel knows (node_id.c makes its number). Two names have the same node if
 * these are the same:
 *
 *   dataset, committed datatype, damaged object   file and address: hard links share the inode
 *   directory, symlink, file of an attribute      parent node and name: the kernel wants one parent for each
 *                                                 directory; hard-linked groups share st_ino only
 *   file of a view                                file, address and view
 *
 * st_ino of an object of the mounted file is its address; of one of another file a hash of (device, inode,
 * address), marked by bit 62; of a symlink a hash of (parent's st_ino, name), marked by bit 63; of anything
 * below `.h5fs` a hash, marked by both. All stay the same from mount to mount. */
#include "vfs/private.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define FOREIGN_MARK (UINT64_C(1) << 62)
#define SYMLINK_MARK (UINT64_C(1) << 63)
#define VIEW_MARK    (FOREIGN_MARK | SYMLINK_MARK)

enum { KEY_MAX = 24 + 256 };

/* True: parent and name make the node. `target`: of an entity; that of an attribute's file is its name. */
static bool is_of_name(enum h5_node_kind kind, const char *target)
{
	return kind == H5_NODE_DIRECTORY || kind == H5_NODE_VIEWS || target;
}

/* splitmix64's finaliser. */
static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
	v = (v ^ v >> 27) * 0x94d049bb133111eb;
	return v ^ v >> 31;
}

static uint64_t mix_text(uint64_t h, const char *text)
{
	h = mix(h);
	for (const char *p = text; *p; p++)
		h = mix(h ^ (uint8_t)*p);
	return h;
}

static uint64_t object_ino(struct h5_vfs *vfs, const struct h5_entity *entity)
{
	uint64_t h, device, inode;

	if (entity->file == h5_mounted_file(vfs))
		return entity->address & ~(FOREIGN_MARK | SYMLINK_MARK);
	h5_file_identity(entity->file, &device, &inode);
	h = mix(mix(mix(entity->address) ^ device) ^ inode);
	return (h & ~SYMLINK_MARK) | FOREIGN_MARK;
}

uint64_t h5_node_ino(struct h5_vfs *vfs, const struct h5_node *parent, const char *name,
		     const struct h5_entity *entity)
{
	if (entity->kind == H5_NODE_SYMLINK)
		return (mix_text(parent->ino, name) & ~FOREIGN_MARK) | SYMLINK_MARK;
	if (entity->kind == H5_NODE_VIEWS || entity->target)
		return mix_text(parent->ino, name) | VIEW_MARK;
	if (!entity->view)
		return object_ino(vfs, entity);
	/* A view may show an object as a file and as a directory. */
	return mix_text(object_ino(vfs, entity) ^ (entity->kind == H5_NODE_DIRECTORY), entity->view->name) |
	       VIEW_MARK;
}

static size_t make_key(uint8_t key[KEY_MAX], const struct h5_node *parent, const char *name,
		       const struct h5_entity *entity)
{
	size_t n = 0, length = strlen(name);

	key[n++] = is_of_name(entity->kind, entity->target);
	if (key[0]) {
		memcpy(key + n, &parent, sizeof parent);
		n += sizeof parent;
		memcpy(key + n, name, length);
		return n + length;
	}
	memcpy(key + n, &entity->file, sizeof entity->file);
	n += sizeof entity->file;
	memcpy(key + n, &entity->address, sizeof entity->address);
	n += sizeof entity->address;
	memcpy(key + n, &entity->view, sizeof entity->view);
	return n + sizeof entity->view;
}

/* False: the name leads to something else than when the node was made, since the file has changed. */
static bool is_same(const struct h5_node *node, const struct h5_entity *entity)
{
	return node->kind == entity->kind && node->file == entity->file && node->address == entity->address &&
	       node->view == entity->view &&
	       (!node->target || (entity->target && !strcmp(node->target, entity->target)));
}

static struct h5_node *node_new(struct h5_vfs *vfs, struct h5_node *parent, const char *name,
				struct h5_entity *entity, const uint8_t *key, size_t key_size)
{
	bool of_name = is_of_name(entity->kind, entity->target) && parent;
	/* An object of the mounted file needs no name, since its number follows from its address. */
	bool named = of_name || (parent && entity->file != h5_mounted_file(vfs));
	struct h5_node *node = calloc(1, sizeof *node + key_size + (named ? strlen(name) + 1 : 0));

	if (!node)
		return NULL;
	if (named) {
		node->from = parent->id;
		node->name = strcpy((char *)node->key + key_size, name);
	}
	node->kind = entity->kind;
	node->file = entity->file;
	node->address = entity->address;
	node->view = entity->view;
	node->ino = h5_node_ino(vfs, parent, name, entity);
	node->key_size = key_size;
	memcpy(node->key, key, key_size);
	HASH_ADD_KEYPTR(hh, vfs->nodes, node->key, node->key_size, node);
	if (!node->hh.tbl) {
		free(node);
		return NULL;
	}
	node->target = entity->target;
	if (of_name)
		node->parent = parent;
	if (h5_node_identify(vfs, node)) {
		HASH_DEL(vfs->nodes, node);
		free(node);
		return NULL;
	}
	entity->target = NULL;
	if (of_name) {
		/* For links in the tree of a view, the root is that of the tree. */
		node->depth = parent->kind == H5_NODE_VIEWS ? 0 : parent->depth + 1;
		parent->references++;
	}
	return node;
}

int h5_node_get(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_entity *entity,
		struct h5_node **node)
{
	uint8_t key[KEY_MAX];
	size_t key_size = make_key(key, parent, name, entity);
	struct h5_node *n;

	pthread_mutex_lock(&vfs->lock);
	HASH_FIND(hh, vfs->nodes, key, key_size, n);
	if (n && !is_same(n, entity)) {
		HASH_DEL(vfs->nodes, n);
		DL_PREPEND(vfs->detached, n);
		n->is_detached = true;
		n = NULL;
	}
	if (!n)
		n = node_new(vfs, parent, name, entity, key, key_size);
	if (n)
		n->references++;
	pthread_mutex_unlock(&vfs->lock);
	free(entity->target);
	entity->target = NULL;
	*node = n;
	return n ? 0 : -ENOMEM;
}

/* Takes the node out of the tables, and frees it. */
static void node_free(struct h5_vfs *vfs, struct h5_node *node)
{
	if (node->is_detached)
		DL_DELETE(vfs->detached, node);
	else
		HASH_DEL(vfs->nodes, node);
	HASH_DELETE(by_id, vfs->by_id, node);
	free(node->target);
	free(node);
}

void h5_nodes_free(struct h5_vfs *vfs)
{
	struct h5_node *node, *next;

	HASH_ITER(hh, vfs->nodes, node, next)
	node_free(vfs, node);
	DL_FOREACH_SAFE(vfs->detached, node, next)
	node_free(vfs, node);
	h5_remembered_free(vfs);
}

void h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t count)
{
	pthread_mutex_lock(&vfs->lock);
	while (node && node != vfs->root) {
		struct h5_node *parent = node->parent;

		node->references -= count;
		if (node->references)
			break;
		h5_node_remember(vfs, node);
		node_free(vfs, node);
		node = parent; /* gives back the reference that its child had */
		count = 1;
	}
	pthread_mutex_unlock(&vfs->lock);
}

int h5_vfs_readlink(struct h5_node *node, const char **target)
{
	if (node->kind != H5_NODE_SYMLINK)
		return -EINVAL;
	*target = node->target;
	return 0;
}

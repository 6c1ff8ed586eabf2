/* The inode table.
 *
 * A node is an inode that the kernel knows. Two names have the same node if these are the same:
 *
 *   dataset, committed datatype, damaged object   file and address: hard links share the inode
 *   directory, symlink, file of an attribute      parent node and name: the kernel wants one parent for each
 *                                                 directory; hard-linked groups share st_ino only
 *   file of a view                                file, address and view
 *
 * st_ino of an object of the mounted file is its address; of one of another file a hash of (device, inode,
 * address), marked by bit 62; of a symlink a hash of (parent's st_ino, name), marked by bit 63; of anything
 * below `.h5fs` a hash, marked by both. All stay the same from mount to mount.
 *
 * By its number the kernel finds a node again after it has forgotten it. An NFS server, or
 * open_by_handle_at(2), may ask for the number of a node that was forgotten long ago. So a
 * number is made from what the node is, and leads back to it:
 *
 *   1	     the root
 *   DIRECT  a file whose object is in the mounted file: the object's address, and from bit 56 on the view
 *   HASHED  any other. A directory, a symlink or the file of an attribute has a hash of its name and of its
 *	     parent's number; an object of another file has a hash of that file and of its address.
 *
 * A table leads back from a hash to the parent and the name. It holds the nodes that were forgotten last. The
 * number of any older one leads nowhere until its name is looked up again.
 *
 * The generation of a node is a hash of its number and of its object, with a random key of this mount. So a
 * handle of an earlier mount fits no node, nor does one that a program has made up. If the number belongs to
 * another object by now, the generation differs. (Code that frees the address of an object in a mount for
 * writing must make sure that the next object there has another generation, too.) */
#include "vfs/private.h"

#include "base/checked.h"
#include "vfs/name.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FOREIGN_MARK (UINT64_C(1) << 62)
#define SYMLINK_MARK (UINT64_C(1) << 63)
#define VIEW_MARK    (FOREIGN_MARK | SYMLINK_MARK)

#define HASHED	(UINT64_C(1) << 63)
#define DIRECT	(UINT64_C(1) << 62)
#define ADDRESS (VIEW - 1)
#define VIEW	(UINT64_C(1) << 56)

enum {
	KEY_MAX = 24 + 256,
	REMEMBERED_MAX = 1 << 16, /* most forgotten nodes that are remembered, about 120 bytes each */
};

/* True: parent and name make the node. (The target of an attribute's file is its name.) */
static bool is_of_name(const struct h5_entity *entity)
{
	return entity->kind == H5_NODE_DIRECTORY || entity->kind == H5_NODE_VIEWS || entity->target;
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

	if (entity->file == vfs->file)
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

	key[n++] = is_of_name(entity);
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

struct h5_remembered {
	uint64_t id, parent;
	UT_hash_handle hh; /* in the order in which the nodes were forgotten */
	char name[];
};

/* ---- numbers ---- */

/* Number of a view, from 1 on; 0: no view. */
static uint64_t view_number(const struct h5_view_ops *view)
{
	uint64_t n = 0;

	if (view)
		while (h5_views[n++] != view)
			;
	return n;
}

/* What a node is, in numbers that are the same in each mount. */
struct object {
	uint64_t device, inode, address, view, kind;
};

static struct object object_of(const struct h5_entity *entity)
{
	struct object o = {
		.address = entity->address, .view = view_number(entity->view), .kind = entity->kind};

	if (entity->file)
		h5_file_identity(entity->file, &o.device, &o.inode);
	return o;
}

static uint64_t hash_name(const struct h5_vfs *vfs, uint64_t parent, const char *name)
{
	uint8_t data[sizeof parent + H5_NAME_MAX + 1];
	size_t length = strlen(name);

	memcpy(data, &parent, sizeof parent);
	memcpy(data + sizeof parent, name, length);
	return h5_siphash(vfs->secret, data, sizeof parent + length) | HASHED;
}

static uint64_t find_id(const struct h5_vfs *vfs, const struct h5_node *node)
{
	const struct object o = object_of(&node->entity);

	if (node->parent)
		return hash_name(vfs, node->from, node->name);
	if (node->entity.file == vfs->file && node->entity.address <= ADDRESS)
		return DIRECT | o.view * VIEW | node->entity.address;
	return h5_siphash(vfs->secret, &o, sizeof o) | HASHED;
}

/* If another program may change the file, each change gives new generations, since another object may be at
 * the address. */
static uint32_t find_generation(const struct h5_vfs *vfs, const struct h5_node *node)
{
	const struct h5_file *file = node->entity.file ? node->entity.file : vfs->file;
	const char *target = node->entity.target;
	const struct {
		uint64_t id, number, target;
		struct object object;
	} all = {.id = node->id,
		 .number = vfs->may_change ? h5_file_number(file) : 0,
		 .target = target ? h5_siphash(vfs->secret, target, strlen(target)) : 0,
		 .object = object_of(&node->entity)};

	return (uint32_t)h5_siphash(vfs->secret, &all, sizeof all);
}

static struct h5_node *find_node(const struct h5_vfs *vfs, uint64_t id)
{
	struct h5_node *node;

	HASH_FIND(by_id, vfs->by_id, &id, sizeof id, node);
	return node;
}

/* Gives a new node its id and generation, and puts it into the table of ids. -ENOMEM. With vfs->lock. */
static int identify(struct h5_vfs *vfs, struct h5_node *node)
{
	if (!vfs->root) {
		node->id = H5_ROOT_ID;
	} else {
		node->id = find_id(vfs, node);
		/* The kernel still has a node of that number, of an object that was there before. */
		while (find_node(vfs, node->id))
			node->id = (node->id + 1) | HASHED;
		node->generation = find_generation(vfs, node);
	}
	HASH_ADD(by_id, vfs->by_id, id, sizeof node->id, node);
	return node->by_id.tbl ? 0 : -ENOMEM;
}

uint64_t h5_vfs_id(const struct h5_node *node)
{
	return node->id;
}

uint32_t h5_vfs_generation(const struct h5_node *node)
{
	return node->generation;
}

struct h5_node *h5_vfs_node(struct h5_vfs *vfs, uint64_t id)
{
	struct h5_node *node;

	if (id == H5_ROOT_ID)
		return vfs->root;
	pthread_mutex_lock(&vfs->lock);
	node = find_node(vfs, id);
	pthread_mutex_unlock(&vfs->lock);
	return node;
}

struct h5_node *h5_node_find_parent(struct h5_vfs *vfs, uint64_t id)
{
	struct h5_node *node, *parent;

	pthread_mutex_lock(&vfs->lock);
	node = find_node(vfs, id);
	parent = node ? node->parent : NULL;
	if (parent)
		parent->references++;
	pthread_mutex_unlock(&vfs->lock);
	return parent;
}

/* ---- nodes that were forgotten ---- */

static struct h5_remembered *find_remembered(const struct h5_vfs *vfs, uint64_t id)
{
	struct h5_remembered *found;

	HASH_FIND(hh, vfs->remembered, &id, sizeof id, found);
	return found;
}

static void drop(struct h5_vfs *vfs, struct h5_remembered *remembered)
{
	HASH_DEL(vfs->remembered, remembered);
	free(remembered);
}

/* To be called before a node is freed, so that its id leads back to it. With vfs->lock. */
static void remember(struct h5_vfs *vfs, const struct h5_node *node)
{
	struct h5_remembered *remembered;

	if (!node->name || node->is_detached)
		return;
	remembered = find_remembered(vfs, node->id);
	if (remembered)
		drop(vfs, remembered);
	remembered = calloc(1, sizeof *remembered + strlen(node->name) + 1);
	if (!remembered)
		return;
	remembered->id = node->id;
	remembered->parent = node->from;
	strcpy(remembered->name, node->name);
	HASH_ADD(hh, vfs->remembered, id, sizeof remembered->id, remembered);
	if (!remembered->hh.tbl)
		free(remembered);
	else if (HASH_COUNT(vfs->remembered) > REMEMBERED_MAX)
		drop(vfs, vfs->remembered);
}

static void free_remembered(struct h5_vfs *vfs)
{
	struct h5_remembered *remembered, *next;

	HASH_ITER(hh, vfs->remembered, remembered, next)
	drop(vfs, remembered);
}

/* ---- nodes ---- */

/* False: a name that has led to `a` leads to something else by now, since the file has changed. */
static bool is_same(const struct h5_entity *a, const struct h5_entity *b)
{
	return a->kind == b->kind && a->file == b->file && a->address == b->address && a->view == b->view &&
	       (!a->target || (b->target && !strcmp(a->target, b->target)));
}

static struct h5_node *node_new(struct h5_vfs *vfs, struct h5_node *parent, const char *name,
				struct h5_entity *entity, const uint8_t *key, size_t key_size)
{
	bool of_name = is_of_name(entity) && parent;
	/* An object of the mounted file needs no name, since its number follows from its address. */
	bool named = of_name || (parent && entity->file != vfs->file);
	struct h5_node *node = calloc(1, sizeof *node + key_size + (named ? strlen(name) + 1 : 0));

	if (!node)
		return NULL;
	if (named) {
		node->from = parent->id;
		node->name = strcpy((char *)node->key + key_size, name);
	}
	node->entity = *entity;
	node->ino = h5_node_ino(vfs, parent, name, entity);
	node->key_size = key_size;
	memcpy(node->key, key, key_size);
	HASH_ADD_KEYPTR(hh, vfs->nodes, node->key, node->key_size, node);
	if (!node->hh.tbl) {
		free(node);
		return NULL;
	}
	if (of_name)
		node->parent = parent;
	if (identify(vfs, node)) {
		HASH_DEL(vfs->nodes, node);
		free(node);
		return NULL;
	}
	entity->target = NULL;
	if (of_name) {
		/* For links in the tree of a view, the root is that of the tree. */
		node->depth = parent->entity.kind == H5_NODE_VIEWS ? 0 : parent->depth + 1;
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
	if (n && !is_same(&n->entity, entity)) {
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
	free(node->entity.target);
	free(node);
}

void h5_nodes_free(struct h5_vfs *vfs)
{
	struct h5_node *node, *next;

	HASH_ITER(hh, vfs->nodes, node, next)
	node_free(vfs, node);
	DL_FOREACH_SAFE(vfs->detached, node, next)
	node_free(vfs, node);
	free_remembered(vfs);
}

void h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t count)
{
	pthread_mutex_lock(&vfs->lock);
	while (node && node != vfs->root) {
		struct h5_node *parent = node->parent;

		node->references -= count;
		if (node->references)
			break;
		remember(vfs, node);
		node_free(vfs, node);
		node = parent; /* gives back the reference that its child had */
		count = 1;
	}
	pthread_mutex_unlock(&vfs->lock);
}

int h5_vfs_readlink(struct h5_node *node, const char **target)
{
	if (node->entity.kind != H5_NODE_SYMLINK)
		return -EINVAL;
	*target = node->entity.target;
	return 0;
}

bool h5_vfs_is_in_view(const struct h5_node *node)
{
	return node->entity.view || node->entity.kind == H5_NODE_VIEWS;
}

/* ---- from a number to the node ---- */

void h5_steps_free(struct h5_step *steps)
{
	struct h5_step *step, *next;

	LL_FOREACH_SAFE(steps, step, next)
	free(step);
}

/* With vfs->lock. */
static int find_way(struct h5_vfs *vfs, uint64_t id, struct h5_step **steps, struct h5_node **from)
{
	while (!(*from = find_node(vfs, id))) {
		const struct h5_remembered *found = find_remembered(vfs, id);
		struct h5_step *step = found ? malloc(sizeof *step + strlen(found->name) + 1) : NULL;

		if (!found)
			return -ESTALE;
		if (!step)
			return -ENOMEM;
		strcpy(step->name, found->name);
		LL_PREPEND(*steps, step);
		id = found->parent;
	}
	(*from)->references++;
	return 0;
}

int h5_node_find_way(struct h5_vfs *vfs, uint64_t id, struct h5_step **steps, struct h5_node **from)
{
	int rc;

	*steps = NULL;
	pthread_mutex_lock(&vfs->lock);
	rc = find_way(vfs, id, steps, from);
	pthread_mutex_unlock(&vfs->lock);
	return rc;
}

int h5_node_id_decode(uint64_t id, uint64_t *address, const struct h5_view_ops **view)
{
	uint64_t number = (id & ~DIRECT) / VIEW;

	if (!(id & DIRECT) || id & HASHED)
		return -ESTALE;
	*address = id & ADDRESS;
	*view = NULL;
	for (uint64_t i = 0; i < number; i++)
		if (!(*view = h5_views[i]))
			return -ESTALE;
	return 0;
}

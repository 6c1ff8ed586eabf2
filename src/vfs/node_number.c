/* The kernel's numbers for nodes.
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
 * another object by now, the generation differs, also if the object before was at the same address
 * (h5_objects_life()).
 *
 * A directory that is renamed keeps its node, as the kernel keeps its inode. The number of such a node is the
 * hash of a name that it had before. Once it is forgotten, that number leads nowhere. */
#include "vfs/node_number.h"

#include "vfs/name.h"
#include "vfs/objects.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HASHED	(UINT64_C(1) << 63)
#define DIRECT	(UINT64_C(1) << 62)
#define ADDRESS (VIEW - 1)
#define VIEW	(UINT64_C(1) << 56)

enum { REMEMBERED_MAX = 1 << 16 }; /* most forgotten nodes that are remembered, about 120 bytes each */

struct h5_remembered {
	uint64_t id, parent;
	UT_hash_handle hh; /* in the order in which the nodes were forgotten */
	char name[];
};

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
		uint64_t id, number, life, target;
		struct object object;
	} all = {.id = node->id,
		 .number = vfs->may_change ? h5_file_number(file) : 0,
		 .life = vfs->options.writable && file == vfs->file
				 ? h5_objects_life(vfs, node->entity.address)
				 : 0,
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

int h5_number_give(struct h5_vfs *vfs, struct h5_node *node)
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

void h5_number_remember(struct h5_vfs *vfs, const struct h5_node *node)
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

void h5_numbers_free(struct h5_vfs *vfs)
{
	struct h5_remembered *remembered, *next;

	HASH_ITER(hh, vfs->remembered, remembered, next)
	drop(vfs, remembered);
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

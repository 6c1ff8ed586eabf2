/* The kernel's numbers for nodes.
 *
 * By its number, or id, the kernel finds a node again after it has forgotten it. An NFS server, or
 * open_by_handle_at(2), may ask for the id of a node that was forgotten long ago. So each node has
 * a natural id, which is made from what the node is, and leads back to it:
 *
 *   1	     the root
 *   DIRECT  a file whose object is in the mounted file: the object's address, and from bit 56 on the view
 *   HASHED  any other. A directory, a symlink or the file of an attribute has a hash of its name and of its
 *	     parent's id; an object of another file has a hash of that file and of its address.
 *
 * A node has its natural id, but for two kinds, which a table of its own has: a new node while the kernel has
 * another one with that id, of what was there before; and a directory that was renamed, which keeps the id
 * of a name that it had before, as the kernel keeps its inode. Nodes with the same natural id are linked, and
 * the first of them is in the table of nodes.
 *
 * A table leads back from a hash to the parent and the name. It holds the nodes that were forgotten last. The
 * number of any older one leads nowhere until its name is looked up again.
 *
 * The generation of a node is a hash of its number and of its object, with a random key of this mount. So a
 * handle of an earlier mount fits no node, nor does one that a program has made up. If the number belongs to
 * another object by now, the generation differs, also if the object before was at the same address
 * (h5_objects_life()).
 *
 * Once a directory that was renamed is forgotten, its number leads nowhere. */
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

/* A node whose id is not its natural one. */
struct h5_renumbered {
	uint64_t id;
	struct h5_node *node;
	UT_hash_handle hh;
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

uint64_t h5_number_of_name(const struct h5_vfs *vfs, const struct h5_node *directory, const char *name)
{
	uint64_t parent = directory->id;
	uint8_t data[sizeof parent + H5_NAME_MAX + 1];
	size_t length = strlen(name);

	assert(length <= H5_NAME_MAX);
	memcpy(data, &parent, sizeof parent);
	memcpy(data + sizeof parent, name, length);
	return h5_siphash(vfs->secret, data, sizeof parent + length) | HASHED;
}

uint64_t h5_number_of_object(const struct h5_vfs *vfs, const struct h5_entity *entity)
{
	struct object o;

	if (entity->file == vfs->file && entity->address <= ADDRESS)
		return DIRECT | view_number(entity->view) * VIEW | entity->address;
	o = object_of(entity);
	o.kind = 0; /* what is found at the address may be of another kind by now */
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

/* ---- the tables ---- */

struct h5_node *h5_number_first(const struct h5_vfs *vfs, uint64_t natural_id)
{
	struct h5_node *first;

	HASH_FIND(hh, vfs->nodes, &natural_id, sizeof natural_id, first);
	return first;
}

static struct h5_renumbered *find_renumbered(const struct h5_vfs *vfs, uint64_t id)
{
	struct h5_renumbered *found;

	HASH_FIND(hh, vfs->renumbered, &id, sizeof id, found);
	return found;
}

static struct h5_node *find_node(const struct h5_vfs *vfs, uint64_t id)
{
	struct h5_node *node = h5_number_first(vfs, id);
	const struct h5_renumbered *renumbered;

	while (node && node->id != id)
		node = node->same;
	if (node)
		return node;
	renumbered = find_renumbered(vfs, id);
	return renumbered ? renumbered->node : NULL;
}

static int link_node(struct h5_vfs *vfs, struct h5_node *node)
{
	struct h5_node *first = h5_number_first(vfs, node->natural_id);

	if (first) {
		node->same = first->same;
		first->same = node;
		return 0;
	}
	HASH_ADD(hh, vfs->nodes, natural_id, sizeof node->natural_id, node);
	return node->hh.tbl ? 0 : -ENOMEM;
}

/* After unlink_node(). For as many nodes as before the table, which has the root at least, takes no memory.
 */
static void link_again(struct h5_vfs *vfs, struct h5_node *node)
{
	UT_hash_table *table = vfs->nodes->hh.tbl;
	unsigned noexpand = table->noexpand;
	int rc;

	table->noexpand = 1;
	rc = link_node(vfs, node);
	table->noexpand = noexpand;
	assert(!rc);
	(void)rc;
}

static void unlink_node(struct h5_vfs *vfs, struct h5_node *node)
{
	struct h5_node *first = h5_number_first(vfs, node->natural_id);

	if (node != first) {
		LL_DELETE2(first, node, same);
	} else {
		HASH_DEL(vfs->nodes, node);
		if (node->same)
			link_again(vfs, node->same);
	}
	node->same = NULL;
}

static int renumber(struct h5_vfs *vfs, struct h5_node *node)
{
	struct h5_renumbered *new;

	if (node->is_renumbered)
		return 0;
	new = calloc(1, sizeof *new);
	if (!new)
		return -ENOMEM;
	new->id = node->id;
	new->node = node;
	HASH_ADD(hh, vfs->renumbered, id, sizeof new->id, new);
	node->is_renumbered = new->hh.tbl;
	if (!node->is_renumbered) {
		free(new);
		return -ENOMEM;
	}
	return 0;
}

static void forget_number(struct h5_vfs *vfs, const struct h5_node *node)
{
	struct h5_renumbered *renumbered = node->is_renumbered ? find_renumbered(vfs, node->id) : NULL;

	if (!renumbered)
		return;
	HASH_DEL(vfs->renumbered, renumbered);
	free(renumbered);
}

int h5_number_give(struct h5_vfs *vfs, struct h5_node *node)
{
	int rc = 0;

	node->id = node->natural_id;
	/* The kernel still has a node of that number, of what was there before. */
	while (find_node(vfs, node->id))
		node->id = (node->id + 1) | HASHED;
	if (node->id != H5_ROOT_ID)
		node->generation = find_generation(vfs, node);
	if (node->id != node->natural_id)
		rc = renumber(vfs, node);
	if (!rc)
		rc = link_node(vfs, node);
	if (rc)
		forget_number(vfs, node);
	return rc;
}

void h5_number_take_back(struct h5_vfs *vfs, struct h5_node *node)
{
	unlink_node(vfs, node);
	forget_number(vfs, node);
}

int h5_number_change(struct h5_vfs *vfs, struct h5_node *node, uint64_t natural_id)
{
	int rc = renumber(vfs, node);

	if (rc)
		return rc;
	unlink_node(vfs, node);
	node->natural_id = natural_id;
	link_again(vfs, node);
	return 0;
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

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
 * below `.h5fs` a hash, marked by both. All stay the same from mount to mount. */
#include "vfs/private.h"

#include "vfs/name.h"
#include "vfs/node_number.h"
#include "vfs/objects.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FOREIGN_MARK (UINT64_C(1) << 62)
#define SYMLINK_MARK (UINT64_C(1) << 63)
#define VIEW_MARK    (FOREIGN_MARK | SYMLINK_MARK)

/* True: parent and name make the node. (The target of an attribute's file is its name.) */
static bool is_of_name(const struct h5_entity *entity)
{
	return h5_is_directory(entity->kind) || entity->target;
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
	/* The list of revisions opens none of them. */
	if (h5_is_added(entity->kind) || entity->target ||
	    (parent && parent->entity.kind == H5_NODE_REVISIONS))
		return mix_text(parent->ino, name) | VIEW_MARK;
	if (!entity->view)
		return object_ino(vfs, entity);
	/* A view may show an object as a file and as a directory. */
	return mix_text(object_ino(vfs, entity) ^ (entity->kind == H5_NODE_DIRECTORY), entity->view->name) |
	       VIEW_MARK;
}

static uint64_t find_natural_id(const struct h5_vfs *vfs, const struct h5_node *parent, const char *name,
				const struct h5_entity *entity)
{
	if (!parent && is_of_name(entity))
		return H5_ROOT_ID;
	return is_of_name(entity) ? h5_number_of_name(vfs, parent, name) : h5_number_of_object(vfs, entity);
}

/* With vfs->lock. The node that the name has made. NULL: there is none. */
static struct h5_node *find_named(const struct h5_vfs *vfs, uint64_t natural_id, const struct h5_node *parent,
				  const char *name)
{
	struct h5_node *node = h5_number_first(vfs, natural_id);

	while (node && (node->is_detached || node->parent != parent || (parent && strcmp(node->name, name))))
		node = node->same;
	return node;
}

/* With vfs->lock. The node of a file that shows the object. NULL: there is none. */
static struct h5_node *find_file(const struct h5_vfs *vfs, uint64_t natural_id, const struct h5_entity *shows)
{
	struct h5_node *node = h5_number_first(vfs, natural_id);

	while (node && (node->is_detached || node->parent || node->entity.file != shows->file ||
			node->entity.address != shows->address || node->entity.view != shows->view))
		node = node->same;
	return node;
}

bool h5_entity_is_same(const struct h5_entity *a, const struct h5_entity *b)
{
	return a->kind == b->kind && a->file == b->file && a->address == b->address && a->view == b->view &&
	       (!a->target || (b->target && !strcmp(a->target, b->target)));
}

/* Puts the node into the tables. With vfs->lock. */
static int enter(struct h5_vfs *vfs, struct h5_node *node)
{
	int rc = h5_number_give(vfs, node);

	if (rc)
		return rc;
	rc = vfs->options.writable ? h5_objects_join(vfs, node) : 0;
	if (rc)
		h5_number_take_back(vfs, node);
	return rc;
}

static int node_new(struct h5_vfs *vfs, uint64_t natural_id, struct h5_node *parent, const char *name,
		    struct h5_entity *entity, struct h5_node **out)
{
	bool of_name = is_of_name(entity) && parent;
	/* An object of the mounted file needs no name, since its number follows from its address. */
	bool named = of_name || (parent && entity->file != vfs->file);
	struct h5_node *node = calloc(1, sizeof *node + (named ? strlen(name) + 1 : 0));
	int rc;

	if (!node)
		return -ENOMEM;
	if (named) {
		node->from = parent->id;
		node->name = strcpy(node->first_name, name);
	}
	node->entity = *entity;
	node->ino = h5_node_ino(vfs, parent, name, entity);
	node->parent = of_name ? parent : NULL;
	node->natural_id = natural_id;
	rc = enter(vfs, node);
	if (rc) {
		free(node);
		return rc;
	}
	entity->target = NULL;
	if (of_name)
		parent->references++;
	*out = node;
	return 0;
}

int h5_node_get(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_entity *entity,
		struct h5_node **node)
{
	uint64_t id = find_natural_id(vfs, parent, name, entity);
	struct h5_node *n;
	int rc = 0;

	pthread_mutex_lock(&vfs->lock);
	n = is_of_name(entity) ? find_named(vfs, id, parent, name) : find_file(vfs, id, entity);
	if (n && !h5_entity_is_same(&n->entity, entity)) {
		n->is_detached = true;
		n = NULL;
	}
	if (!n)
		rc = node_new(vfs, id, parent, name, entity, &n);
	if (!rc)
		n->references++;
	pthread_mutex_unlock(&vfs->lock);
	free(entity->target);
	entity->target = NULL;
	*node = n;
	return rc;
}

uint64_t h5_node_known_file(struct h5_vfs *vfs, struct h5_file *file, uint64_t address)
{
	const struct h5_entity entity = {.file = file, .address = address};
	const struct h5_node *node;
	uint64_t ino;

	pthread_mutex_lock(&vfs->lock);
	node = find_file(vfs, h5_number_of_object(vfs, &entity), &entity);
	ino = node ? node->ino : 0;
	pthread_mutex_unlock(&vfs->lock);
	return ino;
}

static void free_name(struct h5_node *node)
{
	if (node->name != node->first_name)
		free((char *)node->name);
}

/* Takes the node out of the tables, and frees it. True: its object is to be removed. */
static bool node_free(struct h5_vfs *vfs, struct h5_node *node)
{
	bool unused = node->shown && h5_objects_leave(vfs, node);

	h5_number_take_back(vfs, node);
	free_name(node);
	free(node->entity.target);
	free(node);
	return unused;
}

void h5_nodes_free(struct h5_vfs *vfs)
{
	while (vfs->nodes) {
		while (vfs->nodes->same)
			node_free(vfs, vfs->nodes->same);
		node_free(vfs, vfs->nodes);
	}
	h5_numbers_free(vfs);
	h5_objects_free(vfs);
}

void h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t count)
{
	bool unused = false;

	pthread_mutex_lock(&vfs->lock);
	while (node && node != vfs->root) {
		struct h5_node *parent = node->parent;

		node->references -= count;
		if (node->references)
			break;
		h5_number_remember(vfs, node);
		unused |= node_free(vfs, node);
		node = parent; /* gives back the reference that its child had */
		count = 1;
	}
	pthread_mutex_unlock(&vfs->lock);
	if (unused)
		h5_objects_await(vfs);
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
	return node->entity.view || h5_is_added(node->entity.kind);
}

unsigned h5_node_depth(const struct h5_node *directory)
{
	unsigned depth = 0;

	/* For links in the tree of a view or of a revision, the root is that of the tree. */
	while (directory->parent && !h5_is_added(directory->parent->entity.kind)) {
		directory = directory->parent;
		depth++;
	}
	return depth;
}

bool h5_vfs_is_passing(struct h5_vfs *vfs, const struct h5_node *directory)
{
	bool passing = false;

	if (!vfs->options.writable)
		return false;
	if (vfs->shown_twice || h5_vfs_is_in_view(directory))
		return true;
	pthread_mutex_lock(&vfs->lock);
	for (; directory && !passing; directory = directory->parent)
		passing = directory->is_shared;
	pthread_mutex_unlock(&vfs->lock);
	return passing;
}

void h5_node_share(struct h5_vfs *vfs, struct h5_node *directory, bool shared)
{
	pthread_mutex_lock(&vfs->lock);
	directory->is_shared = shared;
	pthread_mutex_unlock(&vfs->lock);
}

/* ---- names that change ---- */

struct h5_node *h5_node_find(struct h5_vfs *vfs, struct h5_node *directory, const char *name)
{
	struct h5_node *node;

	pthread_mutex_lock(&vfs->lock);
	node = find_named(vfs, h5_number_of_name(vfs, directory, name), directory, name);
	if (node)
		node->references++;
	pthread_mutex_unlock(&vfs->lock);
	return node;
}

void h5_node_detach(struct h5_vfs *vfs, struct h5_node *node)
{
	if (!node)
		return;
	pthread_mutex_lock(&vfs->lock);
	node->is_detached = true;
	pthread_mutex_unlock(&vfs->lock);
}

int h5_node_place_prepare(struct h5_node *parent, const char *name, struct h5_node_place *place)
{
	place->parent = parent;
	place->name = strdup(name);
	return place->name ? 0 : -ENOMEM;
}

void h5_node_place_release(struct h5_node_place *place)
{
	free(place->name);
	place->name = NULL;
}

/* With vfs->lock. */
static void take_place(struct h5_vfs *vfs, struct h5_node *node, struct h5_node_place *place)
{
	free_name(node);
	node->name = place->name;
	node->from = place->parent->id;
	node->parent = place->parent;
	node->parent->references++;
	node->moved_in = h5_objects_transaction(vfs);
	place->name = NULL;
}

void h5_node_move(struct h5_vfs *vfs, struct h5_node *node, struct h5_node_place *place)
{
	uint64_t id = h5_number_of_name(vfs, place->parent, place->name);
	struct h5_node *before = node->parent;

	pthread_mutex_lock(&vfs->lock);
	assert(!find_named(vfs, id, place->parent, place->name));
	/* Out of memory: the next look-up of the name makes another node. */
	node->is_detached = h5_number_change(vfs, node, id);
	take_place(vfs, node, place);
	pthread_mutex_unlock(&vfs->lock);
	h5_vfs_forget(vfs, before, 1);
}

/* With vfs->lock. */
static void lose(struct h5_vfs *vfs, struct h5_node *node, uint64_t transaction)
{
	bool is_gone = node->shown && node->shown->made_in == transaction;

	if (is_gone || node->moved_in == transaction)
		node->is_detached = true;
	if (!is_gone)
		return;
	h5_objects_leave(vfs, node);
	node->entity.address = H5_UNDEF;
}

void h5_nodes_lose(struct h5_vfs *vfs, uint64_t transaction)
{
	pthread_mutex_lock(&vfs->lock);
	for (struct h5_node *first = vfs->nodes; first; first = first->hh.next)
		for (struct h5_node *node = first; node; node = node->same)
			lose(vfs, node, transaction);
	pthread_mutex_unlock(&vfs->lock);
}

/* The table of nodes. Two names have the same node if these are the same:
 *
 *   in the folder		the parent's node and the name
 *   in an HDF5 file	the file, and the number of the node there
 *
 * That number stays the same when the file is opened anew (vfs/node_number.c).
 *
 * The kernel's number for a node is its address: it asks for none that it has forgotten. */
#include "tree/node.h"

#include "tree/file.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* A key begins with the parent or the file, and the number in the file. */
struct begin {
	const void *of;
	uint64_t id;
};

/* splitmix64's finaliser. */
static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
	v = (v ^ v >> 27) * 0x94d049bb133111eb;
	return v ^ v >> 31;
}

static uint64_t mix_ino(uint64_t device, uint64_t inode, uint64_t inner)
{
	uint64_t ino = mix(mix(mix(inner) ^ device) ^ inode);

	return ino ? ino : 1;
}

uint64_t h5_tree_ino(uint64_t device, uint64_t inode)
{
	return mix_ino(device, inode, 0);
}

uint64_t h5_tree_ino_inside(const struct h5_tree_file *file, uint64_t inner)
{
	return inner ? mix_ino(file->device, file->inode, inner) : 0;
}

/* ---- the table; all with tree->lock ---- */

static void detach(struct h5_tree *tree, struct h5_tree_node *node)
{
	assert(!node->is_detached);
	HASH_DEL(tree->nodes, node);
	DL_PREPEND(tree->detached, node);
	node->is_detached = true;
}

static struct h5_tree_node *find(struct h5_tree *tree, const void *of, uint64_t id, const char *name)
{
	uint8_t key[sizeof(struct begin) + NAME_MAX];
	const struct begin begin = {.of = of, .id = id};
	size_t length = name ? strlen(name) : 0;
	struct h5_tree_node *node;

	if (length > NAME_MAX)
		return NULL;
	memcpy(key, &begin, sizeof begin);
	if (name)
		memcpy(key + sizeof begin, name, length);
	HASH_FIND(hh, tree->nodes, key, sizeof begin + length, node);
	return node;
}

/* Makes a node and enters it into the table. Its name belongs to the key unless there is an id. */
static struct h5_tree_node *make(struct h5_tree *tree, struct h5_tree_node *parent, const void *of,
				 uint64_t id, const char *name)
{
	const struct begin begin = {.of = of, .id = id};
	size_t length = strlen(name);
	struct h5_tree_node *node = calloc(1, sizeof *node + sizeof begin + length + 1);

	if (!node)
		return NULL;
	memcpy(node->key, &begin, sizeof begin);
	node->name = memcpy(node->key + sizeof begin, name, length);
	node->key_size = sizeof begin + (id ? 0 : length);
	HASH_ADD_KEYPTR(hh, tree->nodes, node->key, node->key_size, node);
	if (!node->hh.tbl) {
		free(node);
		return NULL;
	}
	node->generation = ++tree->generations;
	node->parent = parent;
	if (parent)
		parent->references++;
	return node;
}

/* True: the node stands for something in the opening of the file that there is now. */
static bool is_resolved(const struct h5_tree_node *node)
{
	return node->inside && node->opening == node->file->opening;
}

static void node_free(struct h5_tree *tree, struct h5_tree_node *node)
{
	if (node->is_detached)
		DL_DELETE(tree->detached, node);
	else
		HASH_DEL(tree->nodes, node);
	if (node->kind == H5_TREE_FILE)
		h5_tree_file_leave_behind(node->file);
	else if (node->file && is_resolved(node))
		h5_vfs_forget(node->file->vfs, node->inside, 1);
	free(node->new_name);
	free(node);
}

static void forget(struct h5_tree *tree, struct h5_tree_node *node, uint64_t n)
{
	while (node && node != tree->root) {
		struct h5_tree_node *parent = node->parent;

		assert(node->references >= n);
		node->references -= n;
		if (node->references)
			break;
		node_free(tree, node);
		node = parent; /* gives back the reference that its child had */
		n = 1;
	}
}

void h5_tree_forget(struct h5_tree *tree, struct h5_tree_node *node, uint64_t n)
{
	pthread_mutex_lock(&tree->lock);
	forget(tree, node, n);
	pthread_mutex_unlock(&tree->lock);
}

void h5_tree_nodes_free(struct h5_tree *tree)
{
	struct h5_tree_node *node, *next;

	/* All files are closed, so no node asks its file, which may be freed before it. */
	HASH_ITER(hh, tree->nodes, node, next)
	detach(tree, node);
	DL_FOREACH_SAFE(tree->detached, node, next)
	{
		if (node->kind == H5_TREE_FILE)
			h5_tree_file_leave_behind(node->file);
		free(node->new_name);
		free(node);
	}
}

/* ---- names of folders ---- */

static bool is_same(const struct h5_tree_node *node, const struct h5_tree_found *found)
{
	return node->kind == found->kind && node->device == found->device && node->inode == found->inode;
}

static int make_found(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
		      const struct h5_tree_found *found, struct h5_tree_node **out)
{
	struct h5_tree_file *file = NULL;
	struct h5_tree_node *node;
	int rc = found->kind == H5_TREE_FILE ? h5_tree_file_new(found->device, found->inode, &file) : 0;

	if (rc)
		return rc;
	node = make(tree, parent, parent, 0, name);
	if (!node) {
		free(file);
		return -ENOMEM;
	}
	node->kind = found->kind;
	node->file = file;
	node->device = found->device;
	node->inode = found->inode;
	node->size = found->size;
	*out = node;
	return 0;
}

int h5_tree_node_get(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
		     const struct h5_tree_found *found, struct h5_tree_node **out)
{
	struct h5_tree_node *node;
	int rc = 0;

	pthread_mutex_lock(&tree->lock);
	node = find(tree, parent, 0, name);
	if (node && !is_same(node, found)) {
		detach(tree, node);
		node = NULL;
	}
	if (!node)
		rc = make_found(tree, parent, name, found, &node);
	if (!rc) {
		node->references++;
		node->seen = found->changed;
		*out = node;
	}
	pthread_mutex_unlock(&tree->lock);
	return rc;
}

bool h5_tree_node_recall(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
			 struct h5_tree_found *found)
{
	const struct h5_tree_node *node;
	bool is_known;

	pthread_mutex_lock(&tree->lock);
	node = find(tree, parent, 0, name);
	is_known = node && node->device == found->device && node->inode == found->inode &&
		   node->seen.tv_sec == found->changed.tv_sec && node->seen.tv_nsec == found->changed.tv_nsec;
	if (is_known)
		found->kind = node->kind;
	pthread_mutex_unlock(&tree->lock);
	return is_known;
}

/* ---- in HDF5 files ---- */

static bool is_above(const struct h5_tree_node *node, const struct h5_tree_node *below)
{
	while (below && below != node)
		below = below->parent;
	return below;
}

/* The node has another name by now, or several. Without memory it keeps the one before. With the lock. */
static void set_name(struct h5_tree *tree, struct h5_tree_node *node, struct h5_tree_node *parent,
		     const char *name)
{
	struct h5_tree_node *before = node->parent;
	char *copy;

	if ((before == parent && !strcmp(node->name, name)) || is_above(node, parent))
		return;
	copy = strdup(name);
	if (!copy)
		return;
	free(node->new_name);
	node->name = node->new_name = copy;
	node->parent = parent;
	parent->references++;
	forget(tree, before, 1);
}

/* With the lock. */
static struct h5_tree_node *find_inside(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
					const struct h5_vfs_entry *entry)
{
	uint64_t id = h5_vfs_id(entry->node);
	struct h5_tree_node *node = find(tree, parent->file, id, NULL);

	if (node && (node->inner != entry->st.st_ino || node->type != (entry->st.st_mode & S_IFMT))) {
		detach(tree, node);
		node = NULL;
	}
	if (node) {
		set_name(tree, node, parent, name);
		return node;
	}
	node = make(tree, parent, parent->file, id, name);
	if (!node)
		return NULL;
	node->kind = H5_TREE_INSIDE;
	node->file = parent->file;
	node->inner = entry->st.st_ino;
	node->type = entry->st.st_mode & S_IFMT;
	return node;
}

int h5_tree_node_get_inside(struct h5_tree *tree, struct h5_tree_node *parent, const char *name,
			    const struct h5_vfs_entry *entry, struct h5_tree_node **out)
{
	struct h5_tree_file *file = parent->file;
	struct h5_tree_node *node;

	pthread_mutex_lock(&tree->lock);
	node = find_inside(tree, parent, name, entry);
	if (node)
		node->references++;
	if (!node || is_resolved(node)) {
		h5_vfs_forget(file->vfs, entry->node, 1);
	} else {
		node->inside = entry->node;
		node->opening = file->opening;
	}
	pthread_mutex_unlock(&tree->lock);
	*out = node;
	return node ? 0 : -ENOMEM;
}

/* Looks the name up in the directory. */
static int look_up_again(struct h5_tree *tree, struct h5_tree_node *node, const char *name,
			 struct h5_node *directory, struct h5_node **inside)
{
	struct h5_vfs *vfs = node->file->vfs;
	struct h5_vfs_entry entry;
	int rc = h5_vfs_lookup(vfs, directory, name, &entry);

	if (rc)
		return rc == -ENOENT ? -ESTALE : rc;
	if (entry.st.st_ino != node->inner || (entry.st.st_mode & S_IFMT) != node->type) {
		h5_vfs_forget(vfs, entry.node, 1);
		return -ESTALE;
	}
	pthread_mutex_lock(&tree->lock);
	if (is_resolved(node)) {
		h5_vfs_forget(vfs, entry.node, 1);
	} else {
		node->inside = entry.node;
		node->opening = node->file->opening;
	}
	*inside = node->inside;
	pthread_mutex_unlock(&tree->lock);
	return 0;
}

/* A name on the way to a node. */
struct step {
	struct step *next;
	struct h5_tree_node *node; /* referenced */
	char name[];
};

/* With the lock. */
static int add_step(struct h5_tree_node *node, struct step **steps)
{
	struct step *step = malloc(sizeof *step + strlen(node->name) + 1);

	if (!step)
		return -ENOMEM;
	strcpy(step->name, node->name);
	step->node = node;
	node->references++;
	LL_PREPEND(*steps, step);
	return 0;
}

/* Finds the names from the nearest directory that is known since the file was opened, *inside, down to the
 * node. *from: its node, referenced. With the lock. */
static int find_way(struct h5_tree_node *node, struct step **steps, struct h5_tree_node **from,
		    struct h5_node **inside)
{
	int rc = 0;

	for (; node->kind == H5_TREE_INSIDE && !is_resolved(node) && !rc; node = node->parent)
		rc = add_step(node, steps);
	*inside = node->kind == H5_TREE_INSIDE ? node->inside : h5_vfs_root(node->file->vfs);
	*from = node;
	node->references++;
	return rc;
}

/* The file may have groups in groups to any depth, so this does not call itself. */
int h5_tree_node_resolve(struct h5_tree *tree, struct h5_tree_node *node, struct h5_node **inside)
{
	struct step *steps = NULL, *step, *next;
	struct h5_tree_node *from;
	int rc;

	pthread_mutex_lock(&tree->lock);
	rc = find_way(node, &steps, &from, inside);
	pthread_mutex_unlock(&tree->lock);
	LL_FOREACH(steps, step)
	if (!rc)
		rc = look_up_again(tree, step->node, step->name, *inside, inside);
	pthread_mutex_lock(&tree->lock);
	LL_FOREACH_SAFE(steps, step, next)
	{
		forget(tree, step->node, 1);
		free(step);
	}
	forget(tree, from, 1);
	pthread_mutex_unlock(&tree->lock);
	return rc;
}

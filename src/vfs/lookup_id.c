/* Look-ups by number: of nodes that the kernel has, and of those that it has forgotten. */
#include "vfs/private.h"

#include "base/error.h"
#include "vfs/directory.h"

/* The object that the number itself names. The kernel compares the generation, which shows if the number was
 * ever given out. */
static int look_at_object(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry)
{
	struct h5_entity entity = {.file = h5_mounted_file(vfs), .kind = H5_NODE_VIEW};
	struct h5_times times = {0};
	int rc = h5_node_id_decode(id, &entity.address, &entity.view);

	if (!rc && entity.view)
		rc = h5_view_shows(&(struct h5_view){
			.ops = entity.view, .file = entity.file, .address = entity.address});
	else if (!rc)
		rc = h5_entity_kind(entity.file, entity.address, &entity.kind);
	if (!rc && entity.kind == H5_NODE_DIRECTORY)
		rc = -ESTALE;
	if (!rc)
		rc = h5_node_get(vfs, NULL, "", &entity, &entry->node);
	return rc ? rc : h5_stat_entry(vfs, NULL, &times, entry);
}

static int look_up_known(struct h5_vfs *vfs, struct h5_node *node, struct h5_vfs_entry *entry)
{
	struct h5_times times = {0};

	entry->node = node;
	return h5_stat_entry(vfs, NULL, &times, entry);
}

/* The node, or what the steps lead to from it. Gives the reference to the node back. */
static int go(struct h5_vfs *vfs, struct h5_node *node, const struct h5_step *steps,
	      struct h5_vfs_entry *entry)
{
	int rc = 0;

	if (!steps)
		return look_up_known(vfs, node, entry);
	for (const struct h5_step *step = steps; step && !rc; step = step->next) {
		rc = h5_lookup_entry(vfs, node, step->name, entry);
		h5_vfs_forget(vfs, node, 1);
		node = entry->node;
	}
	return rc;
}

static int look_up(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry)
{
	struct h5_step *steps;
	struct h5_node *node;
	int rc = h5_node_find_way(vfs, id, &steps, &node);

	if (!rc)
		rc = go(vfs, node, steps, entry);
	else if (rc == -ESTALE)
		rc = look_at_object(vfs, id, entry);
	h5_steps_free(steps);
	if (!rc && entry->node->id != id) {
		h5_vfs_forget(vfs, entry->node, 1);
		rc = -ESTALE;
	}
	/* The name is gone, or leads to something else by now. */
	return rc == -ENOENT || rc == -ENOTDIR ? -ESTALE : rc;
}

int h5_vfs_lookup_id(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry)
{
	struct h5_reading reading = {.vfs = vfs};
	int rc;

	while (h5_reading_next(&reading, &rc))
		rc = look_up(vfs, id, entry);
	return rc;
}

static int look_up_parent(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry)
{
	struct h5_node *parent = h5_node_find_parent(vfs, id);

	return parent ? look_up_known(vfs, parent, entry) : -ESTALE;
}

int h5_vfs_lookup_parent(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry)
{
	struct h5_reading reading = {.vfs = vfs};
	int rc;

	while (h5_reading_next(&reading, &rc))
		rc = look_up_parent(vfs, id, entry);
	return rc;
}

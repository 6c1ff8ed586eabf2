/* Look-ups by name, and by number: of nodes that the kernel has, and of those that it has forgotten. */
#include "vfs/private.h"

#include "base/error.h"
#include "vfs/beside.h"
#include "vfs/directory.h"
#include "vfs/name.h"
#include "vfs/reading.h"

#include <fcntl.h>
#include <string.h>

struct search {
	const char *name;
	struct h5_vfs *vfs;
	const struct h5_node *directory;
	bool as_file;	      /* in the tree of a view: look for its file, not its directory */
	struct h5_link *link; /* becomes the link, and `entity` is not used; NULL: the entity is wanted */
	struct h5_entity entity;
	struct h5_known_size size; /* of the file, if the look-up has found it */
};

/* The file name of a link. */
static void escape(const struct search *s, const char *name, size_t size, char out[H5_NAME_MAX + 1])
{
	if (s->directory->entity.view)
		h5_views_escape(s->directory->entity.view, s->as_file, name, size, out);
	else
		h5_name_escape(name, size, out);
}

static int resolve(struct search *s, const struct h5_link *link)
{
	if (s->link)
		return h5_link_copy(link, s->link);
	return s->directory->entity.view
		       ? h5_views_resolve(s->vfs, s->directory, link, s->as_file, &s->entity)
		       : h5_links_resolve(s->vfs, s->directory, link, &s->entity);
}

/* 1: the link has the name; 0: another. */
static int compare_escaped(struct search *s, const struct h5_link *link)
{
	char name[H5_NAME_MAX + 1];
	int rc;

	escape(s, link->name, link->name_size, name);
	if (strcmp(name, s->name))
		return 0;
	rc = resolve(s, link);
	return rc ? rc : 1;
}

/* Compares a name that was cut with those of all links, since it does not tell the whole name. */
static int find_cut_link(struct search *s, const struct h5_object *group)
{
	const struct h5_link *link;
	struct h5_link_walk links;
	int rc = h5_link_begin(&links, s->directory->entity.file, group, H5_NAMES_SORTED);

	while (!rc && (rc = h5_link_next(&links, &link)) > 0)
		rc = compare_escaped(s, link);
	h5_link_end(&links);
	return rc == 1 ? 0 : rc ? rc : -ENOENT;
}

static int find_link(struct search *s, const struct h5_object *group)
{
	char stem[H5_NAME_MAX + 1], name[H5_NAME_MAX + 1], again[H5_NAME_MAX + 1];
	size_t size = strlen(s->name), suffix = s->as_file ? strlen(s->directory->entity.view->suffix) : 0;
	struct h5_link link = {0};
	int rc;

	if (size <= suffix || (s->directory->entity.view && group->kind != H5_OBJECT_GROUP))
		return -ENOENT;
	memcpy(stem, s->name, size - suffix);
	stem[size - suffix] = 0;
	if (h5_name_is_cut(stem))
		return find_cut_link(s, group);
	size = h5_name_unescape(stem, name);
	escape(s, name, size, again);
	if (strcmp(again, s->name))
		return -ENOENT;
	rc = h5_group_lookup(s->directory->entity.file, group, name, size, &link);
	if (!rc)
		rc = resolve(s, &link);
	h5_link_release(&link);
	return rc;
}

/* Finds a link by its name, which in the tree of a view is that of its directory or of its file; or else one
 * of the names that no link has. */
static int find(struct search *s)
{
	const struct h5_node *directory = s->directory;
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	int rc = -ENOENT;

	if (directory->entity.kind == H5_NODE_DIRECTORY) {
		rc = h5_object_get(directory->entity.file, directory->entity.address, &ref, &group);
		if (rc)
			return rc;
		rc = find_link(s, group);
		s->as_file = directory->entity.view;
		if (rc == -ENOENT && s->as_file)
			rc = find_link(s, group);
		h5_file_put(directory->entity.file, ref);
	}
	return rc == -ENOENT ? h5_views_find(s->vfs, directory, s->name, &s->entity, &s->size) : rc;
}

/* A file that a program has made beside those of a view. */
static int find_beside(struct search *s)
{
	char name[H5_NAME_MAX + 1];
	int rc;

	if (!s->vfs->options.writable || !h5_beside_is_name(s->directory, s->name, O_RDWR))
		return -ENOENT;
	rc = h5_beside_name(s->directory, s->name, name);
	s->directory = s->vfs->root;
	s->name = name;
	s->as_file = false;
	return rc ? -ENOENT : find(s);
}

static int search(struct search *s)
{
	int rc = find(s);

	return rc == -ENOENT ? find_beside(s) : rc;
}

int h5_lookup_name(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		   struct h5_entity *entity)
{
	struct search s = {.name = name, .vfs = vfs, .directory = directory};
	int rc = search(&s);

	*entity = s.entity;
	return rc;
}

int h5_lookup_link(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		   struct h5_link *link)
{
	struct search s = {.name = name, .vfs = vfs, .directory = directory, .link = link};
	int rc = find(&s);

	/* A name that is none of a link: one of those of h5_views_find(). */
	if (!rc && !link->owned) {
		h5_entity_release(&s.entity);
		rc = -EPERM;
	}
	return rc;
}

/* h5_vfs_lookup() inside a request that reads. */
static int look_up_entry(struct h5_vfs *vfs, struct h5_node *parent, const char *name,
			 struct h5_vfs_entry *entry)
{
	struct search s = {.name = name, .vfs = vfs, .directory = parent};
	struct h5_times times = {0};
	int rc;

	if (!h5_is_directory(parent->entity.kind))
		return -ENOTDIR;
	if (strlen(name) > H5_NAME_MAX)
		return -ENAMETOOLONG;
	rc = search(&s);
	if (!rc)
		rc = h5_node_get(vfs, parent, name, &s.entity, &entry->node);
	if (!rc) {
		h5_stat_remember_size(vfs, entry->node, &s.size);
		rc = h5_stat_entry(vfs, NULL, &times, entry);
	}
	if (!rc)
		h5_entry_set_passing(vfs, entry, h5_vfs_is_passing(vfs, parent));
	return rc;
}

int h5_vfs_lookup(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry)
{
	struct h5_reading reading = {.vfs = vfs};
	int rc;

	while (h5_reading_next(&reading, &rc))
		rc = look_up_entry(vfs, parent, name, entry);
	return rc;
}

/* ---- by number ---- */

/* The object that the number itself names. The kernel compares the generation, which shows if the number was
 * ever given out. */
static int look_at_object(struct h5_vfs *vfs, uint64_t id, struct h5_vfs_entry *entry)
{
	struct h5_entity entity = {.file = vfs->file, .kind = H5_NODE_VIEW};
	struct h5_times times = {0};
	int rc = h5_node_id_decode(id, &entity.address, &entity.view);

	if (!rc && entity.view)
		rc = h5_view_shows(
			&(struct h5_view){.ops = entity.view, .file = entity.file, .address = entity.address},
			false);
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
		rc = look_up_entry(vfs, node, step->name, entry);
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

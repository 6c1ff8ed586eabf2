/* Lookup of a name in a directory. */
#include "vfs/private.h"

#include "base/error.h"
#include "vfs/name.h"

#include <string.h>

struct search {
	const char *name;
	struct h5_vfs *vfs;
	const struct h5_node *directory;
	struct h5_place place;
};

static int compare_escaped(void *arg, const struct h5_link *link)
{
	struct search *s = arg;
	char name[H5_NAME_MAX + 1];
	int rc;

	h5_name_escape(link->name, link->name_size, name);
	if (strcmp(name, s->name))
		return 0;
	rc = h5_tree_resolve(s->vfs, s->directory, link, &s->place);
	return rc ? rc : 1;
}

static int find_link(struct search *s, const struct h5_object *group)
{
	char name[H5_NAME_MAX + 1], again[H5_NAME_MAX + 1];
	struct h5_link link = {0};
	size_t size;
	int rc;

	/* Only a comparison with all names tells which one was cut. */
	if (h5_name_is_cut(s->name)) {
		rc = h5_group_iterate(s->directory->file, group, H5_LINKS_BY_NAME, compare_escaped, s);
		return rc == 1 ? 0 : rc ? rc : -ENOENT;
	}
	size = h5_name_unescape(s->name, name);
	h5_name_escape(name, size, again);
	if (strcmp(again, s->name))
		return -ENOENT;
	rc = h5_group_lookup(s->directory->file, group, name, size, &link);
	if (!rc)
		rc = h5_tree_resolve(s->vfs, s->directory, &link, &s->place);
	h5_link_release(&link);
	return rc;
}

static int look_up(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry)
{
	struct search s = {.name = name, .vfs = vfs, .directory = parent};
	struct h5_times times = {0};
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	int rc;

	if (parent->kind != H5_NODE_DIRECTORY)
		return -ENOTDIR;
	if (strlen(name) > H5_NAME_MAX)
		return -ENAMETOOLONG;
	rc = h5_object_get(parent->file, parent->address, &ref, &group);
	if (rc)
		return rc;
	rc = find_link(&s, group);
	h5_file_put(parent->file, ref);
	if (!rc)
		rc = h5_node_get(vfs, parent, name, &s.place, &entry->node);
	if (!rc)
		rc = h5_node_entry(vfs, NULL, &times, entry);
	return rc;
}

int h5_vfs_lookup(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry)
{
	int rc;

	h5_lock_to_read(vfs);
	rc = look_up(vfs, parent, name, entry);
	h5_unlock(vfs);
	return rc;
}

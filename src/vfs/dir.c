/* Directories: lookup of a name, and listings. */
#include "vfs/private.h"

#include "base/error.h"
#include "vfs/name.h"

#include <stdlib.h>
#include <string.h>

/* ---- one name ---- */

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
		rc = h5_node_entry(vfs, entry);
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

/* ---- listings ---- */

struct item {
	struct h5_link link; /* its pointers lead into `text` */
	char *text;	     /* owned: file name with NUL, link name, target, file */
};

struct h5_dir {
	struct h5_vfs *vfs;
	struct h5_node *node; /* referenced by the kernel as long as the directory is open */
	struct item *items;
	size_t count, capacity;
	int error;		    /* why the listing is not complete, 0: it is */
	struct h5_dir *prev, *next; /* vfs->lock: in vfs->dirs */
};

/* A copy of the link that owns its texts, in one allocation. */
static int item_init(struct item *item, const struct h5_link *link)
{
	char name[H5_NAME_MAX + 1];
	size_t n = h5_name_escape(link->name, link->name_size, name) + 1;
	char *p = malloc(n + link->target_size + link->file_size);

	if (!p)
		return -ENOMEM;
	item->text = p;
	item->link = *link;
	memcpy(p, name, n);
	p += n;
	item->link.name = NULL; /* the file name stands for it */
	item->link.name_size = 0;
	if (link->target_size)
		memcpy(p, link->target, link->target_size);
	item->link.target = p;
	p += link->target_size;
	if (link->file_size)
		memcpy(p, link->file, link->file_size);
	item->link.file = p;
	return 0;
}

static int add_item(void *arg, const struct h5_link *link)
{
	struct h5_dir *dir = arg;
	int rc;

	if (dir->count == dir->capacity) {
		size_t capacity = dir->capacity ? 2 * dir->capacity : 16;
		struct item *items = reallocarray(dir->items, capacity, sizeof *items);

		if (!items)
			return -ENOMEM;
		dir->items = items;
		dir->capacity = capacity;
	}
	rc = item_init(&dir->items[dir->count], link);
	if (!rc)
		dir->count++;
	return rc;
}

static void dir_free(struct h5_dir *dir)
{
	for (size_t i = 0; i < dir->count; i++)
		free(dir->items[i].text);
	free(dir->items);
	free(dir);
}

static int read_links(struct h5_dir *dir)
{
	enum h5_link_order order =
		dir->vfs->options.order_by_creation ? H5_LINKS_BY_CREATION : H5_LINKS_BY_NAME;
	struct h5_file *file = dir->node->file;
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, dir->node->address, &ref, &group);

	if (rc)
		return rc;
	rc = h5_group_iterate(file, group, order, add_item, dir);
	h5_file_put(file, ref);
	/* A damaged group shows what is left of it, and then says that this is not all. */
	if (dir->count && (rc == -EUCLEAN || rc == -ENOTSUP)) {
		dir->error = rc;
		rc = 0;
	}
	return rc;
}

int h5_vfs_opendir(struct h5_vfs *vfs, struct h5_node *node, struct h5_dir **out)
{
	struct h5_dir *dir;
	int rc;

	if (node->kind != H5_NODE_DIRECTORY)
		return -ENOTDIR;
	dir = calloc(1, sizeof *dir);
	if (!dir)
		return -ENOMEM;
	dir->vfs = vfs;
	dir->node = node;
	h5_lock_to_read(vfs);
	rc = read_links(dir);
	h5_unlock(vfs);
	if (rc) {
		dir_free(dir);
		return rc;
	}
	pthread_mutex_lock(&vfs->lock);
	DL_PREPEND(vfs->dirs, dir);
	pthread_mutex_unlock(&vfs->lock);
	*out = dir;
	return 0;
}

void h5_vfs_closedir(struct h5_dir *dir)
{
	pthread_mutex_lock(&dir->vfs->lock);
	DL_DELETE(dir->vfs->dirs, dir);
	pthread_mutex_unlock(&dir->vfs->lock);
	dir_free(dir);
}

void h5_dirs_close(struct h5_vfs *vfs)
{
	while (vfs->dirs)
		h5_vfs_closedir(vfs->dirs);
}

size_t h5_vfs_dir_count(const struct h5_dir *dir)
{
	return dir->count;
}

ino_t h5_vfs_dir_self(const struct h5_dir *dir)
{
	return dir->node->ino;
}

ino_t h5_vfs_dir_parent(const struct h5_dir *dir)
{
	return dir->node->parent ? dir->node->parent->ino : dir->node->ino;
}

int h5_vfs_dir_error(const struct h5_dir *dir)
{
	return dir->error
		       ? h5_fail(dir->error, dir->node->address, "damaged group: the listing is not complete")
		       : 0;
}

static int peek(struct h5_dir *dir, size_t i, const char **name, struct stat *st)
{
	const struct item *item = &dir->items[i];
	struct h5_place place;
	int rc = h5_tree_resolve(dir->vfs, dir->node, &item->link, &place);

	if (rc)
		return rc;
	*name = item->text;
	*st = (struct stat){.st_ino = h5_node_ino(dir->vfs, dir->node, item->text, &place)};
	st->st_mode = place.kind == H5_NODE_DIRECTORY ? S_IFDIR
		      : place.kind == H5_NODE_SYMLINK ? S_IFLNK
						      : S_IFREG;
	h5_place_release(&place);
	return 0;
}

int h5_vfs_dir_peek(struct h5_dir *dir, size_t i, const char **name, struct stat *st)
{
	int rc;

	h5_lock_to_read(dir->vfs);
	rc = peek(dir, i, name, st);
	h5_unlock(dir->vfs);
	return rc;
}

static int get_entry(struct h5_dir *dir, size_t i, const char **name, struct h5_vfs_entry *entry)
{
	const struct item *item = &dir->items[i];
	struct h5_place place;
	int rc = h5_tree_resolve(dir->vfs, dir->node, &item->link, &place);

	if (!rc)
		rc = h5_node_get(dir->vfs, dir->node, item->text, &place, &entry->node);
	*name = item->text;
	return rc ? rc : h5_node_entry(dir->vfs, entry);
}

int h5_vfs_dir_entry(struct h5_dir *dir, size_t i, const char **name, struct h5_vfs_entry *entry)
{
	int rc;

	h5_lock_to_read(dir->vfs);
	rc = get_entry(dir, i, name, entry);
	h5_unlock(dir->vfs);
	return rc;
}

/* The tree of each view, below the directory `.h5fs` of the root. No listing shows `.h5fs`.
 *
 * A view's tree is the tree of the mount, but instead of each object that the view shows it has a file: NAME
 * and the suffix of the view. If the name of a directory ends in that suffix, its last dot is written `%2E`,
 * so no two names are the same. In a view of attributes, attributes are the files, and all objects are
 * directories. A soft link is a symlink to the file, or to the directory; there may be both. In a view of
 * directories each object that is shown is one, with files that the view names (view_directories.c), and in
 * some other views a dataset may be one. */
#include "vfs/private.h"

#include "base/error.h"
#include "object/attribute.h"
#include "object/path.h"
#include "vfs/directory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DOT	"%2E"
#define BESIDE	"%~attr"   /* after the name of an attribute, if a link of the group has that name */
#define ESCAPED DOT "h5fs" /* another name for `.h5fs`, if a link is called that */

/* ---- names ---- */

static bool ends_in(const char *name, size_t size, const char *suffix)
{
	size_t n = strlen(suffix);

	return n && size >= n && !memcmp(name + size - n, suffix, n);
}

/* For a short name. */
static size_t escape_last_dot(const char *name, size_t size, char out[H5_NAME_MAX + 1])
{
	size_t dot = size;

	while (name[dot - 1] != '.')
		dot--;
	memcpy(out, name, dot - 1);
	memcpy(out + dot - 1, DOT, sizeof DOT - 1);
	memcpy(out + dot - 1 + sizeof DOT - 1, name + dot, size - dot);
	out[size + sizeof DOT - 2] = 0;
	return size + sizeof DOT - 2;
}

size_t h5_views_escape(const struct h5_view_ops *view, bool as_file, const char *name, size_t size,
		       char out[H5_NAME_MAX + 1])
{
	const char *suffix = view->suffix;
	size_t length = strlen(suffix), n;

	if (as_file) {
		n = h5_name_escape_within(name, size, H5_NAME_MAX - length, out);
		memcpy(out + n, suffix, length + 1);
		return n + length;
	}
	if (h5_view_is_of_directories(view) && view->directory->is_taken(name, size))
		return escape_last_dot(name, size, out);
	if (!ends_in(name, size, suffix))
		return h5_name_escape(name, size, out);
	n = h5_name_escape_within(name, size, H5_NAME_MAX - (sizeof DOT - 2), out);
	if (!ends_in(out, n, suffix))
		return n; /* it was cut */
	memcpy(out + n - length, DOT, sizeof DOT - 1);
	memcpy(out + n - length + sizeof DOT - 1, suffix + 1, length);
	return n + sizeof DOT - 2;
}

size_t h5_views_directory_name(const struct h5_view_ops *view, const char *name, size_t size,
			       char out[H5_NAME_MAX + 1])
{
	return h5_views_escape(view, false, name, size, out);
}

/* ---- links ---- */

static int find_object(const struct h5_node *directory, const struct h5_link *link, struct h5_file **file,
		       uint64_t *address)
{
	int rc = h5_path_of_link(directory->entity.file, directory->entity.address, link, file, address);

	return h5_path_is_dead(rc) ? -ENOENT : rc;
}

/* *has_parts: it is a dataset that the view shows as a directory. */
static int check_directory(const struct h5_view *v, bool *has_parts)
{
	enum h5_node_kind kind;
	int rc = h5_entity_kind(v->file, v->address, &kind);

	*has_parts = false;
	if (rc)
		return rc;
	if (v->ops->of_attributes)
		return kind == H5_NODE_DAMAGED ? -ENOENT : 0;
	if (kind == H5_NODE_DIRECTORY)
		return 0;
	*has_parts = kind == H5_NODE_DATASET && v->ops->directory;
	return *has_parts ? h5_view_shows(v, true) : -ENOENT;
}

/* Appends the path in the tree of the view for a path of the file: to the view's file, or to a directory. */
static void add_path(struct h5_buf *out, const struct h5_view_ops *view, bool as_file, const char *path,
		     size_t size)
{
	const char *end = path + size, *last = NULL;
	char name[H5_NAME_MAX + 1];
	size_t last_size = 0;

	/* A component is added when the next one is known, since the last one has another form. */
	while (path <= end) {
		const char *slash = path < end ? memchr(path, '/', (size_t)(end - path)) : NULL;
		size_t n = (size_t)((slash ? slash : end) - path);
		bool named = n && !(n == 1 && *path == '.');

		if (last && (named || path == end)) {
			h5_buf_text(out, out->size ? "/" : "");
			h5_buf_add(out, name,
				   h5_views_escape(view, as_file && !named, last, last_size, name));
		}
		if (named) {
			last = path;
			last_size = n;
		}
		path = slash ? slash + 1 : path < end ? end : end + 1;
	}
	if (!last && as_file) { /* the directory's own object */
		h5_buf_text(out, out->size ? "/" : "");
		h5_buf_text(out, view->suffix);
	}
}

static int resolve_soft(const struct h5_node *directory, const struct h5_link *link, bool as_file,
			struct h5_entity *entity)
{
	unsigned depth = h5_node_depth(directory);
	struct h5_buf target;

	h5_buf_init(&target, PATH_MAX);
	if (link->target_size && link->target[0] == '/')
		for (unsigned i = 0; i < depth; i++)
			h5_buf_text(&target, i ? "/.." : "..");
	add_path(&target, directory->entity.view, as_file, link->target, link->target_size);
	return h5_entity_symlink(directory, entity, &target);
}

/* False: the soft link is below an external link, or may lead out of the group that is mounted. No symlink
 * can lead there, so it is shown as the object itself. */
static bool is_symlink(const struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link)
{
	bool absolute = link->target_size && link->target[0] == '/';

	return directory->entity.file == vfs->file && !(absolute && *vfs->prefix);
}

/* In a view of directories all links are shown as what they lead to, but none leads back. */
static int resolve_directory(const struct h5_node *directory, const struct h5_view *v,
			     struct h5_entity *entity)
{
	for (const struct h5_node *d = directory; d; d = d->parent)
		if (d->entity.file == v->file && d->entity.address == v->address)
			return -ENOENT;
	*entity = (struct h5_entity){
		.kind = H5_NODE_DIRECTORY, .file = v->file, .address = v->address, .view = v->ops};
	return h5_view_shows(v, true);
}

int h5_views_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		     bool as_file, struct h5_entity *entity)
{
	struct h5_view v = {.ops = directory->entity.view};
	int rc = find_object(directory, link, &v.file, &v.address);
	bool has_parts = false;

	*entity = (struct h5_entity){0};
	if (!rc && h5_view_is_of_directories(v.ops))
		return as_file ? -ENOENT : resolve_directory(directory, &v, entity);
	if (!rc)
		rc = as_file ? h5_view_shows(&v, false) : check_directory(&v, &has_parts);
	if (rc)
		return rc;
	if (link->type == H5_LINK_SOFT && is_symlink(vfs, directory, link))
		return resolve_soft(directory, link, as_file, entity);
	*entity = (struct h5_entity){.kind = as_file ? H5_NODE_VIEW : H5_NODE_DIRECTORY,
				     .file = v.file,
				     .address = v.address,
				     .view = v.ops};
	if (has_parts)
		return (entity->target = strdup("")) ? 0 : -ENOMEM;
	return as_file ? 0 : h5_entity_turn_back(directory, entity);
}

/* ---- attributes ---- */

static int has_link(const struct h5_node *directory, const struct h5_object *object, const char *name)
{
	struct h5_link link = {0};
	int rc = -ENOENT;

	if (object->kind == H5_OBJECT_GROUP)
		rc = h5_group_lookup(directory->entity.file, object, name, strlen(name), &link);
	h5_link_release(&link);
	return rc == -ENOENT ? 0 : rc ? rc : 1;
}

/* The file name of an attribute. */
static int escape_attribute(const struct h5_node *directory, const struct h5_object *object, const char *name,
			    char out[H5_NAME_MAX + 1])
{
	int beside = has_link(directory, object, name);
	size_t n;

	if (beside < 0)
		return beside;
	n = h5_name_escape_within(name, strlen(name), H5_NAME_MAX - (beside ? strlen(BESIDE) : 0), out);
	if (beside)
		memcpy(out + n, BESIDE, sizeof BESIDE);
	return 0;
}

int h5_views_attribute_name(const struct h5_node *directory, const char *text, char **name)
{
	char stem[H5_NAME_MAX + 1], attribute[H5_NAME_MAX + 1], again[H5_NAME_MAX + 1];
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	size_t n = strlen(text);
	int rc;

	if (n > H5_NAME_MAX)
		return -ENAMETOOLONG;
	strcpy(stem, text);
	if (ends_in(stem, n, BESIDE))
		stem[n - strlen(BESIDE)] = 0;
	n = h5_name_unescape(stem, attribute);
	attribute[n] = 0;
	rc = h5_object_get(directory->entity.file, directory->entity.address, &ref, &object);
	if (rc)
		return rc;
	rc = escape_attribute(directory, object, attribute, again);
	h5_file_put(directory->entity.file, ref);
	if (!rc && (!n || strlen(attribute) != n || strcmp(again, text) != 0))
		rc = h5_fail(-EINVAL, directory->entity.address, "%s is no name of a new attribute", text);
	if (rc)
		return rc;
	*name = strdup(attribute);
	return *name ? 0 : -ENOMEM;
}

struct attribute_search {
	const struct h5_node *directory;
	const struct h5_object *object;
	const char *name; /* the file name */
	char *found;	  /* owned: the attribute's name */
};

/* 1: the attribute has the file name; 0: another. */
static int compare_attribute(struct attribute_search *s, const char *attribute)
{
	char name[H5_NAME_MAX + 1];
	int rc = escape_attribute(s->directory, s->object, attribute, name);

	if (rc || strcmp(name, s->name))
		return rc;
	s->found = strdup(attribute);
	return s->found ? 1 : -ENOMEM;
}

static int search_cut_attribute(struct attribute_search *s)
{
	struct h5_attribute_walk attributes;
	const struct h5_attribute *a;
	int rc = h5_attribute_begin(&attributes, s->directory->entity.file, s->object);

	while (!rc && (rc = h5_attribute_next(&attributes, &a)) > 0)
		rc = compare_attribute(s, a->name);
	h5_attribute_end(&attributes);
	return rc == 1 ? 0 : rc ? rc : -ENOENT;
}

static int search_attribute(struct attribute_search *s)
{
	size_t size = strlen(s->name);
	struct h5_attribute a = {0};
	char stem[H5_NAME_MAX + 1], name[H5_NAME_MAX + 1];
	int rc;

	strcpy(stem, s->name);
	if (ends_in(stem, size, BESIDE))
		stem[size - strlen(BESIDE)] = 0;
	if (h5_name_is_cut(stem))
		return search_cut_attribute(s);
	name[h5_name_unescape(stem, name)] = 0;
	rc = h5_attribute_lookup(s->directory->entity.file, s->object, name, &a);
	h5_attribute_release(&a);
	if (rc == -ENODATA)
		return -ENOENT;
	if (!rc || rc == -EUCLEAN || rc == -ENOTSUP) {
		rc = compare_attribute(s, name);
		rc = rc == 1 ? 0 : rc ? rc : -ENOENT;
	}
	return rc;
}

/* Takes the name over, which is the attribute's. */
static struct h5_entity attribute_entity(const struct h5_node *directory, char *name)
{
	return (struct h5_entity){.kind = H5_NODE_VIEW,
				  .file = directory->entity.file,
				  .address = directory->entity.address,
				  .target = name,
				  .view = directory->entity.view};
}

static int find_attribute(const struct h5_node *directory, const char *name, struct h5_entity *entity)
{
	struct attribute_search s = {.directory = directory, .name = name};
	struct h5_lru_entry *ref;
	int rc = h5_object_get(directory->entity.file, directory->entity.address, &ref, &s.object);

	if (rc)
		return rc;
	rc = search_attribute(&s);
	h5_file_put(directory->entity.file, ref);
	if (!rc)
		*entity = attribute_entity(directory, s.found);
	return rc;
}

/* ---- directories ---- */

/* The folder of a view, or its one file. */
static struct h5_entity root_of_view(const struct h5_vfs *vfs, const struct h5_view_ops *view)
{
	return (struct h5_entity){.kind = view->suffix ? H5_NODE_DIRECTORY : H5_NODE_VIEW,
				  .file = vfs->root->entity.file,
				  .address = vfs->root->entity.address,
				  .view = view};
}

static const struct h5_entity revisions = {.kind = H5_NODE_REVISIONS, .address = H5_UNDEF};

/* The file of the directory's own object: its name is the suffix alone. */
static int find_itself(const struct h5_node *directory, struct h5_entity *entity)
{
	const struct h5_view v = {.ops = directory->entity.view,
				  .file = directory->entity.file,
				  .address = directory->entity.address};

	*entity =
		(struct h5_entity){.kind = H5_NODE_VIEW, .file = v.file, .address = v.address, .view = v.ops};
	return h5_view_shows(&v, false);
}

int h5_views_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		  struct h5_entity *entity, struct h5_known_size *size)
{
	if (directory == vfs->root && (!strcmp(name, H5_VIEWS_NAME) || !strcmp(name, ESCAPED))) {
		*entity = (struct h5_entity){.kind = H5_NODE_VIEWS, .address = H5_UNDEF};
		return 0;
	}
	for (size_t i = 0; directory->entity.kind == H5_NODE_VIEWS && h5_views[i]; i++)
		if (!strcmp(h5_views[i]->name, name)) {
			*entity = root_of_view(vfs, h5_views[i]);
			return 0;
		}
	if (directory->entity.kind == H5_NODE_VIEWS && !strcmp(name, H5_REVISIONS_NAME) &&
	    h5_revisions_are_there(vfs)) {
		*entity = revisions;
		return 0;
	}
	if (directory->entity.kind == H5_NODE_REVISIONS)
		return h5_revisions_find(vfs, name, entity);
	if (!directory->entity.view)
		return -ENOENT;
	if (directory->entity.view->of_attributes)
		return find_attribute(directory, name, entity);
	if (h5_view_directory_has_parts(directory))
		return h5_view_directory_find(vfs, directory, name, entity, size);
	return strcmp(name, directory->entity.view->suffix) ? -ENOENT : find_itself(directory, entity);
}

struct listing {
	struct h5_vfs *vfs;
	const struct h5_node *directory;
	const struct h5_object *object; /* of the directory */
	int unread;			/* why an object could not be read; 0: all were read */
	struct h5_dir_list *list;
};

static int list_link_as(struct listing *l, const struct h5_link *link, bool as_file)
{
	char name[H5_NAME_MAX + 1];
	struct h5_entity entity;
	int rc = h5_views_resolve(l->vfs, l->directory, link, as_file, &entity);

	/* One that cannot be read does not keep others from being listed. */
	if (rc && !h5_is_own(rc) && rc != -ENOENT)
		l->unread = rc;
	if (rc)
		return h5_is_own(rc) ? rc : 0;
	h5_views_escape(l->directory->entity.view, as_file, link->name, link->name_size, name);
	return h5_dir_list_add(l->list, name, &entity);
}

static int list_links(struct listing *l)
{
	const struct h5_link *link;
	struct h5_link_walk links;
	int rc = h5_link_begin(&links, l->directory->entity.file, l->object, h5_listing_order(l->vfs));

	while (!rc && (rc = h5_link_next(&links, &link)) > 0) {
		rc = list_link_as(l, link, false);
		if (!rc && !h5_view_is_of_directories(l->directory->entity.view))
			rc = list_link_as(l, link, true);
	}
	h5_link_end(&links);
	return rc;
}

static int list_attribute(struct listing *l, const char *attribute)
{
	char name[H5_NAME_MAX + 1], *copy;
	struct h5_entity entity;
	int rc = escape_attribute(l->directory, l->object, attribute, name);

	if (rc)
		return rc;
	copy = strdup(attribute);
	if (!copy)
		return -ENOMEM;
	entity = attribute_entity(l->directory, copy);
	return h5_dir_list_add(l->list, name, &entity);
}

static int list_attributes(struct listing *l)
{
	struct h5_attribute_walk attributes;
	const struct h5_attribute *a;
	int rc = h5_attribute_begin(&attributes, l->directory->entity.file, l->object);

	while (!rc && (rc = h5_attribute_next(&attributes, &a)) > 0)
		rc = list_attribute(l, a->name);
	h5_attribute_end(&attributes);
	return rc;
}

/* Returns the first failure, but lists all that comes after it. */
static int list_object(struct listing *l)
{
	const struct h5_node *directory = l->directory;
	bool is_root = !h5_node_depth(directory);
	struct h5_entity entity;
	int rc = 0, more = 0;

	if (directory->entity.view->of_attributes)
		rc = list_attributes(l);
	else if (h5_view_directory_has_parts(directory))
		rc = h5_view_directory_list(l->vfs, directory, &(uint64_t){0}, SIZE_MAX, l->list);
	else if (is_root && !find_itself(directory, &entity))
		rc = h5_dir_list_add(l->list, directory->entity.view->suffix, &entity);
	if (l->object->kind == H5_OBJECT_GROUP && !h5_is_passing(rc))
		more = list_links(l);
	return rc ? rc : more ? more : l->unread;
}

static int list_views(struct h5_vfs *vfs, struct h5_dir_list *list)
{
	struct h5_entity all = revisions;
	int rc = 0;

	for (size_t i = 0; h5_views[i] && !rc; i++) {
		struct h5_entity entity = root_of_view(vfs, h5_views[i]);

		rc = h5_dir_list_add(list, h5_views[i]->name, &entity);
	}
	if (!rc && h5_revisions_are_there(vfs))
		rc = h5_dir_list_add(list, H5_REVISIONS_NAME, &all);
	return rc;
}

int h5_views_list(struct h5_vfs *vfs, const struct h5_node *directory, struct h5_dir_list *list)
{
	struct listing l = {.vfs = vfs, .directory = directory, .list = list};
	struct h5_lru_entry *ref;
	int rc;

	if (directory->entity.kind == H5_NODE_VIEWS)
		return list_views(vfs, list);
	if (directory->entity.kind == H5_NODE_REVISIONS)
		return h5_revisions_list(vfs, list);
	rc = h5_object_get(directory->entity.file, directory->entity.address, &ref, &l.object);
	if (rc)
		return rc;
	rc = list_object(&l);
	h5_file_put(directory->entity.file, ref);
	return rc;
}

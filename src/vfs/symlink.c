/* The request that makes symlinks, by the rules of doc/h5fs.1, Writing. A symlink is a soft link. In the
 * paths of soft links `..` is an ordinary name, so a target with `..` is stored as a path from the root
 * group. */
#include "vfs/name_change.h"

#include "base/error.h"
#include "change/transaction.h"
#include "vfs/changes.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static int refuse(const struct h5_naming *name, const char *target, const char *why)
{
	struct h5_vfs *vfs = name->vfs;

	if (vfs->options.log)
		vfs->options.log("%s: symlink %s to %s: the target %s",
				 vfs->options.file ? vfs->options.file : "", name->text, target, why);
	return -EPERM;
}

/* Adds a slash and what the n bytes, a component of a path in the mount, mean in the file. -EINVAL: a path of
 * the file cannot have such a component. */
static int add_component(struct h5_buf *path, const char *text, size_t n)
{
	char component[H5_NAME_MAX + 1], name[H5_NAME_MAX + 1], again[H5_NAME_MAX + 1];
	size_t size;

	if (n > H5_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(component, text, n);
	component[n] = 0;
	size = h5_name_unescape(component, name);
	h5_name_escape(name, size, again);
	if (!size || strcmp(again, component) || h5_name_is_cut(component) || memchr(name, '/', size) ||
	    memchr(name, 0, size) || (size == 1 && *name == '.'))
		return h5_fail(-EINVAL, H5_UNDEF, "no path of the file has a component %s", component);
	h5_buf_byte(path, '/');
	h5_buf_add(path, name, size);
	return path->err == -E2BIG ? -ENAMETOOLONG : path->err;
}

/* Adds the components of a path of the mount, without `..`. */
static int add_components(struct h5_buf *path, const char *text)
{
	int rc = 0;

	for (size_t n; *text && !rc; text += n + (text[n] == '/')) {
		n = strcspn(text, "/");
		if (n)
			rc = add_component(path, text, n);
	}
	return rc;
}

/* Adds the name of a directory, as the link has it. */
static int add_directory(struct h5_vfs *vfs, struct h5_buf *path, const struct h5_node *directory)
{
	struct h5_link link = {0};
	int rc;

	if (!h5_name_is_cut(directory->name))
		return add_component(path, directory->name, strlen(directory->name));
	rc = h5_lookup_link(vfs, directory->parent, directory->name, &link);
	if (rc)
		return rc;
	h5_buf_byte(path, '/');
	h5_buf_add(path, link.name, link.name_size);
	if (memchr(link.name, '/', link.name_size))
		rc = h5_fail(-EINVAL, H5_UNDEF, "no path of the file leads to the directory");
	h5_link_release(&link);
	return rc ? rc : path->err;
}

/* Adds the path from the root of the mount to the directory. */
static int add_way(struct h5_vfs *vfs, struct h5_buf *path, const struct h5_node *directory)
{
	const struct h5_node *chain[PATH_MAX / 2];
	unsigned n = 0;
	int rc = 0;

	for (; directory->parent; directory = directory->parent) {
		if (n == PATH_MAX / 2)
			return -ENAMETOOLONG;
		chain[n++] = directory;
	}
	while (n && !rc)
		rc = add_directory(vfs, path, chain[--n]);
	return rc;
}

/* False: there is no component after `from`. */
static bool drop_component(struct h5_buf *path, size_t from)
{
	if (path->size == from)
		return false;
	while (path->data[--path->size] != '/')
		;
	return true;
}

static bool is_up(const char *text, size_t n)
{
	return n == 2 && !memcmp(text, "..", 2);
}

static bool has_up(const char *text)
{
	for (size_t n; *text; text += n + (text[n] == '/')) {
		n = strcspn(text, "/");
		if (is_up(text, n))
			return true;
	}
	return false;
}

/* Appends to *path what the target means, where the path leads to the directory. */
static int follow(const struct h5_naming *name, const char *target, struct h5_buf *path, size_t root)
{
	int rc = 0;

	for (const char *text = target; *text && !rc;) {
		size_t n = strcspn(text, "/");

		if (is_up(text, n)) {
			if (!drop_component(path, root))
				return refuse(name, target, "leads out of the tree");
		} else if (n && !(n == 1 && *text == '.')) {
			rc = add_component(path, text, n);
		}
		text += n + (text[n] == '/');
	}
	return rc;
}

/* The path of the soft link. */
static int find_path(const struct h5_naming *name, const char *target, struct h5_buf *path)
{
	bool up = has_up(target);
	size_t root = 0;
	int rc = 0;

	if (*target == '/')
		return refuse(name, target, "is an absolute path");
	if (up)
		rc = add_components(path, name->vfs->prefix);
	root = path->size;
	if (!rc && up)
		rc = add_way(name->vfs, path, name->directory);
	if (!rc)
		rc = follow(name, target, path, root);
	if (!rc && !path->size)
		h5_buf_text(path, up ? "/" : "/.");
	return rc ? rc : path->err;
}

/* ---- the request ---- */

static int insert(const struct h5_naming *name, const struct h5_link *link, struct h5_entity *entity,
		  struct h5_vfs_entry *entry)
{
	struct h5_file *file = name->vfs->file;
	int rc;

	h5_unit_begin(file);
	rc = h5_naming_insert(name, *link);
	if (!rc)
		rc = h5_node_get(name->vfs, name->directory, name->text, entity, &entry->node);
	h5_entity_release(entity);
	if (!rc)
		rc = h5_naming_reply(name, entry);
	return h5_naming_end_unit(name->vfs, rc, entry);
}

static int insert_soft(const struct h5_naming *name, const char *target, struct h5_vfs_entry *entry)
{
	struct h5_link link = {.type = H5_LINK_SOFT};
	struct h5_entity entity = {0};
	struct h5_buf path;
	int rc;

	h5_buf_init(&path, PATH_MAX);
	rc = find_path(name, target, &path);
	if (!rc) {
		bool up = has_up(target);

		link.target = path.data + !up;
		link.target_size = path.size - !up;
		rc = h5_links_resolve(name->vfs, name->directory, &link, &entity);
	}
	if (!rc)
		rc = insert(name, &link, &entity, entry);
	h5_buf_release(&path);
	return rc;
}

/* The kernel wants a symlink as the answer, also if the link is shown as an object from now on. */
static int insert_external(const struct h5_naming *name, const char *target, const char *slashes,
			   struct h5_vfs_entry *entry)
{
	const char *file = target + strlen(H5_DANGLING);
	struct h5_link link = {.type = H5_LINK_EXTERNAL,
			       .file = file,
			       .file_size = (size_t)(slashes - file),
			       .target = slashes + 1,
			       .target_size = strlen(slashes + 1)};
	struct h5_entity entity;
	struct h5_buf text;
	int rc;

	if (!link.file_size)
		return h5_fail(-EINVAL, H5_UNDEF, "an external link to no file");
	h5_buf_init(&text, PATH_MAX);
	h5_buf_text(&text, target);
	rc = h5_entity_symlink(name->directory, &entity, &text);
	return rc ? rc : insert(name, &link, &entity, entry);
}

static int make_link(struct h5_naming *name, const char *target, struct h5_vfs_entry *entry)
{
	const char *slashes = strncmp(target, H5_DANGLING, strlen(H5_DANGLING)) ? NULL : strstr(target, "//");
	int rc = slashes ? insert_external(name, target, slashes, entry) : insert_soft(name, target, entry);

	if (!rc)
		h5_naming_changed(name, 1);
	return rc;
}

int h5_vfs_symlink(struct h5_vfs *vfs, const char *target, struct h5_node *parent, const char *text,
		   struct h5_vfs_entry *entry)
{
	struct h5_naming name;
	int rc = h5_naming_begin(vfs, parent, text, &name, entry);

	return rc ? rc : h5_naming_end(&name, make_link(&name, target, entry));
}

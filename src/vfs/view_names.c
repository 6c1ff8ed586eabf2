/* Requests that rename and remove files, below `.h5fs`, too. There a file that is renamed onto one of a view
 * becomes what a program would have written to that: contents change, and all else stays. Everywhere else
 * names are links. */
#include "base/error.h"
#include "vfs/beside.h"
#include "vfs/directory.h"
#include "vfs/name_change.h"
#include "vfs/open_file.h"
#include "vfs/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20 }; /* bytes that are copied at once */

/* ---- copying ---- */

/* What was written is not all, and never will be. */
static void spoil(struct h5_handle *to, int rc)
{
	h5_lock_to_write(to->vfs);
	if (to->replacement)
		h5_replacement_spoil(to->replacement);
	if (to->source)
		to->source->failure = rc;
	h5_unlock(to->vfs);
}

static int write_piece(struct h5_handle *to, const char *piece, size_t n)
{
	uint64_t stale;
	size_t written;
	int rc = 0;

	for (size_t done = 0; done < n && !rc; done += written)
		rc = h5_vfs_write(to, 0, piece + done, n - done, H5_WRITE_APPEND, &written, &stale);
	return rc;
}

static int copy_bytes(struct h5_handle *from, struct h5_handle *to)
{
	char *piece = malloc(PIECE);
	size_t got = 1;
	int rc = piece ? 0 : -ENOMEM;

	for (uint64_t at = 0; got && !rc; at += got) {
		rc = h5_vfs_read(from, at, piece, PIECE, &got);
		if (!rc)
			rc = write_piece(to, piece, got);
	}
	free(piece);
	if (rc)
		spoil(to, rc);
	return rc ? rc : h5_vfs_flush(to);
}

/* Opens the file to be written from its first byte on, and makes it if it is not there. */
static int open_target(struct h5_vfs *vfs, struct h5_node *directory, const char *name,
		       struct h5_vfs_entry *entry, struct h5_handle **to)
{
	int rc = h5_vfs_lookup(vfs, directory, name, entry);

	if (rc == -ENOENT)
		return h5_vfs_create(vfs, directory, name, O_WRONLY | O_CREAT | O_TRUNC, entry, to);
	if (rc)
		return rc;
	rc = h5_vfs_open_file(vfs, entry->node, O_WRONLY | O_TRUNC, to);
	if (rc)
		h5_vfs_forget(vfs, entry->node, 1);
	return rc;
}

static int copy_to(struct h5_handle *from, struct h5_node *directory, const char *name)
{
	struct h5_vfs *vfs = from->vfs;
	struct h5_vfs_entry entry = {0};
	struct h5_handle *to;
	int rc = open_target(vfs, directory, name, &entry, &to);

	if (rc)
		return rc;
	rc = copy_bytes(from, to);
	h5_vfs_close_file(to);
	h5_vfs_forget(vfs, entry.node, 1);
	return rc;
}

/* The file at one name gets the contents of the one at the other. */
static int copy(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_node *new_parent,
		const char *new_name)
{
	struct h5_vfs_entry entry = {0};
	struct h5_handle *from;
	int rc = h5_vfs_lookup(vfs, parent, name, &entry);

	if (rc)
		return rc;
	rc = h5_vfs_open_file(vfs, entry.node, O_RDONLY, &from);
	if (!rc) {
		rc = copy_to(from, new_parent, new_name);
		h5_vfs_close_file(from);
	}
	h5_vfs_forget(vfs, entry.node, 1);
	return rc;
}

/* ---- names ---- */

/* A name as a request has it; if it is that of a file beside those of a view, the one that its link has. */
struct place {
	struct h5_node *directory;
	const char *name;
	bool is_view; /* a view shows a file of that name, or would */
	char own[H5_NAME_MAX + 1];
};

static int find_place(struct h5_vfs *vfs, struct h5_node *directory, const char *name, struct place *place)
{
	struct h5_vfs_entry entry;
	int rc;

	*place =
		(struct place){.directory = directory, .name = name, .is_view = h5_vfs_is_in_view(directory)};
	if (!h5_beside_is_name(directory, name, O_RDWR))
		return 0;
	rc = h5_vfs_lookup(vfs, directory, name, &entry);
	if (rc && rc != -ENOENT)
		return rc;
	if (!rc) {
		/* Files beside those of a view are no symlinks. */
		place->is_view = h5_vfs_is_in_view(entry.node) || entry.node->entity.kind == H5_NODE_SYMLINK;
		h5_vfs_forget(vfs, entry.node, 1);
	} else {
		place->is_view = !h5_beside_is_name(directory, name, O_WRONLY);
	}
	if (place->is_view)
		return 0;
	place->directory = vfs->root;
	place->name = place->own;
	return h5_beside_name(directory, name, place->own);
}

/* Below `.h5fs` only attributes are removed: a file of another view is one way to look at a dataset. */
static int unlink_in_view(struct h5_vfs *vfs, struct h5_node *parent, const char *name)
{
	if (!parent->entity.view || !parent->entity.view->of_attributes)
		return -EPERM;
	return h5_attributes_remove_file(vfs, parent, name);
}

int h5_vfs_unlink(struct h5_vfs *vfs, struct h5_node *parent, const char *name)
{
	struct place place;
	int rc;

	if (!h5_vfs_is_in_view(parent)) {
		rc = h5_naming_put_back(vfs, parent, name);
		return rc <= 0 ? rc : h5_naming_unlink(vfs, parent, name);
	}
	rc = find_place(vfs, parent, name, &place);
	if (rc)
		return rc;
	return place.is_view ? unlink_in_view(vfs, parent, name)
			     : h5_naming_unlink(vfs, place.directory, place.name);
}

/* ---- a file of a view takes the name of another one ---- */

/* The file name in the tree for that of a view's file (or directory). -EPERM: it does not tell the whole
 * name. */
static int name_in_tree(const char *text, const char *suffix, char name[H5_NAME_MAX + 1])
{
	char stem[H5_NAME_MAX + 1], link[H5_NAME_MAX + 1];
	const size_t n = strlen(text), last = strlen(suffix);

	if (n > H5_NAME_MAX || n <= last || strcmp(text + n - last, suffix) != 0)
		return -EPERM;
	memcpy(stem, text, n - last);
	stem[n - last] = 0;
	if (h5_name_is_cut(stem))
		return -EPERM;
	h5_name_escape(link, h5_name_unescape(stem, link), name);
	return 0;
}

static const struct h5_node *above(const struct h5_node *directory, unsigned levels)
{
	while (levels--)
		directory = directory->parent;
	return directory;
}

/* The directory of the tree for one of a view: *found is referenced, or NULL on failure. */
static int find_in_tree(struct h5_vfs *vfs, const struct h5_node *directory, struct h5_node **found)
{
	struct h5_node *at = vfs->root; /* to be forgotten, which the root never is */
	int rc = 0;

	for (unsigned left = h5_node_depth(directory); left-- > 0 && !rc;) {
		char name[H5_NAME_MAX + 1];
		struct h5_vfs_entry entry = {0};

		rc = name_in_tree(above(directory, left)->name, "", name);
		if (!rc)
			rc = h5_vfs_lookup(vfs, at, name, &entry);
		h5_vfs_forget(vfs, at, 1);
		at = entry.node;
	}
	*found = at;
	return rc;
}

static int move_link(struct h5_vfs *vfs, const struct place *from, struct h5_node *group,
		     const struct place *to, struct h5_node *new_group)
{
	const char *suffix = from->directory->entity.view->suffix;
	char name[H5_NAME_MAX + 1], new_name[H5_NAME_MAX + 1];
	struct h5_vfs_entry entry;
	int rc = name_in_tree(from->name, suffix, name);

	if (!rc)
		rc = name_in_tree(to->name, suffix, new_name);
	if (rc)
		return rc;
	rc = h5_vfs_lookup(vfs, to->directory, to->name, &entry);
	if (rc == -ENOENT)
		return h5_naming_rename(vfs, group, name, new_group, new_name, 0);
	if (rc)
		return rc;
	h5_vfs_forget(vfs, entry.node, 1);
	rc = copy(vfs, from->directory, from->name, to->directory, to->name);
	return rc ? rc : h5_naming_unlink(vfs, group, name);
}

static int move_in_view(struct h5_vfs *vfs, const struct place *from, const struct place *to)
{
	struct h5_node *group, *new_group;
	int rc;

	if (from->directory->entity.view != to->directory->entity.view ||
	    from->directory->entity.view->of_attributes || h5_view_directory_has_parts(from->directory) ||
	    h5_view_directory_has_parts(to->directory))
		return -EPERM;
	rc = find_in_tree(vfs, from->directory, &group);
	if (rc)
		return rc;
	rc = find_in_tree(vfs, to->directory, &new_group);
	if (!rc) {
		rc = move_link(vfs, from, group, to, new_group);
		h5_vfs_forget(vfs, new_group, 1);
	}
	h5_vfs_forget(vfs, group, 1);
	return rc;
}

/* A file of a view stays if the new name is not one of that view: there what it shows is a copy. */
static int move(struct h5_vfs *vfs, const struct place *from, const struct place *to)
{
	int rc;

	if (from->is_view && to->is_view)
		return from->directory->entity.view ? move_in_view(vfs, from, to) : -EPERM;
	if (from->is_view && to->name != to->own)
		return -EPERM;
	rc = copy(vfs, from->directory, from->name, to->directory, to->name);
	return rc || from->is_view ? rc : h5_naming_unlink(vfs, from->directory, from->name);
}

int h5_vfs_rename(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_node *new_parent,
		  const char *new_name, unsigned flags)
{
	struct place from, to;
	int rc;

	if (!h5_vfs_is_in_view(parent) && !h5_vfs_is_in_view(new_parent))
		return h5_naming_rename(vfs, parent, name, new_parent, new_name, flags);
	rc = find_place(vfs, parent, name, &from);
	if (!rc)
		rc = find_place(vfs, new_parent, new_name, &to);
	if (rc)
		return rc;
	if (!from.is_view && !to.is_view)
		return h5_naming_rename(vfs, from.directory, from.name, to.directory, to.name, flags);
	return flags ? -EINVAL : move(vfs, &from, &to);
}

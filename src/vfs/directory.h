/* Directories: names, and what they lead to. */
#ifndef H5_VFS_DIRECTORY_H
#define H5_VFS_DIRECTORY_H

#include "vfs/name.h"
#include "vfs/plain.h"
#include "vfs/private.h"

/* ---- the list of an open directory: links.c ---- */

struct h5_dir_item {
	char *text;		 /* owned: file name with NUL, then target and file of the link */
	struct h5_link link;	 /* the link's texts are in `text`; the link's name is not kept */
	struct h5_entity entity; /* below .h5fs, instead of the link */
	uint64_t next;		 /* the position after it: h5_vfs_dir_go() */
};

struct h5_dir_list {
	struct h5_dir_item *items;
	size_t count, capacity;
	size_t text_bytes;
	struct h5_charge items_charge, text_charge;
};

/* Adds a copy of the link. */
int h5_dir_list_add_link(struct h5_dir_list *list, const struct h5_link *link);
/* Adds an entity, and takes over what it owns, also on failure. */
int h5_dir_list_add(struct h5_dir_list *list, const char *name, struct h5_entity *entity);
void h5_dir_list_release(struct h5_dir_list *list); /* may run twice */

/* ---- links: links.c ---- */

/* Symlinks that lead to nothing that can be opened have targets that begin like this. */
#define H5_DANGLING "extlink:"

/* Makes a symlink of the directory, and takes the target over. A target that is too long for a symlink is
 * replaced by one that exists nowhere. -EUCLEAN: the target leads out of the mount. */
int h5_entity_symlink(const struct h5_node *directory, struct h5_entity *entity, struct h5_buf *target);
int h5_entity_kind(struct h5_file *file, uint64_t address, enum h5_node_kind *kind);
/* If the entity is the directory itself or one above it, makes it a symlink to that. */
int h5_entity_turn_back(const struct h5_node *directory, struct h5_entity *entity);

/* What a link of the directory leads to, by the rules of doc/h5fs.1, Links. */
int h5_links_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		     struct h5_entity *entity);
/* The same for a hard link whose object the caller has decoded. */
int h5_links_resolve_object(const struct h5_node *directory, const struct h5_object *object,
			    struct h5_entity *entity);
void h5_entity_release(struct h5_entity *entity); /* may run twice */

/* ---- the tree of each view: view_tree.c ---- */

#define H5_VIEWS_NAME ".h5fs"

/* The file name of a link in the tree of a view, for its file or for its directory; returns the length. */
size_t h5_views_escape(const struct h5_view_ops *view, bool as_file, const char *name, size_t size,
		       char out[H5_NAME_MAX + 1]);
/* The same for its directory, as struct h5_view_tree has it. */
size_t h5_views_directory_name(const struct h5_view_ops *view, const char *name, size_t size,
			       char out[H5_NAME_MAX + 1]);
/* What a link of a directory in the tree of a view leads to: the file, or the directory. -ENOENT: the view
 * shows no such file or directory. */
int h5_views_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		     bool as_file, struct h5_entity *entity);
/* The attribute that the file name would show; free(). -EINVAL: no new attribute has that file name. */
int h5_views_attribute_name(const struct h5_node *directory, const char *text, char **name);
/* What a name leads to that belongs to no link. -ENOENT: nothing. *size: of the file, if the look-up has
 * found that; else nothing is set. */
int h5_views_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		  struct h5_entity *entity, struct h5_known_size *size);
/* Lists all entries of `.h5fs`, or of a directory in the tree of a view. On failure the list has those that
 * could be found. */
int h5_views_list(struct h5_vfs *vfs, const struct h5_node *directory, struct h5_dir_list *list);

/* ---- revisions of the file: revisions.c ---- */

#define H5_REVISIONS_NAME "revisions"

/* True: the mounted file has revisions. */
bool h5_revisions_are_there(const struct h5_vfs *vfs);
/* The directory of the revision of that number. -ENOENT: there is none. */
int h5_revisions_find(struct h5_vfs *vfs, const char *name, struct h5_entity *entity);
/* Lists the names: the entities have no file. */
int h5_revisions_list(struct h5_vfs *vfs, struct h5_dir_list *list);

/* ---- objects that are directories with files that their view names: view_directories.c ---- */

/* True: the directory is one of these, or is below one. */
static inline bool h5_view_directory_has_parts(const struct h5_node *directory)
{
	return h5_view_is_of_directories(directory->entity.view) || h5_node_is_part(directory);
}

/* What a name leads to that is no link's, in a directory of such a view. -ENOENT: nothing. *size: as of
 * h5_views_find(). */
int h5_view_directory_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
			   struct h5_entity *entity, struct h5_known_size *size);
/* Lists what has no links, from *position on, until the list has `most` entries. *position is that of the
 * next entry; if the list has fewer, there are no more. */
int h5_view_directory_list(struct h5_vfs *vfs, const struct h5_node *directory, uint64_t *position,
			   size_t most, struct h5_dir_list *list);
/* *is_long: the directory has no links, and may have any number of entries. */
int h5_view_directory_is_long(const struct h5_node *directory, bool *is_long);

/* ---- look-ups: lookup.c ---- */

/* What a name of the directory leads to. */
int h5_lookup_name(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		   struct h5_entity *entity);

/* The link of that name, h5_link_release(). -EPERM: the name belongs to no link. */
int h5_lookup_link(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		   struct h5_link *link);

/* Sets entry->passing. `passing`: of the directory. */
static inline void h5_entry_set_passing(const struct h5_vfs *vfs, struct h5_vfs_entry *entry, bool passing)
{
	const struct h5_node *node = entry->node;

	/* The target of a symlink depends on where its directory is. */
	entry->passing =
		passing ||
		(vfs->options.writable &&
		 (h5_vfs_is_in_view(node) || node->entity.kind == H5_NODE_SYMLINK ||
		  (node->entity.file == vfs->file && h5_plain_is_released(vfs, node->entity.address))));
}

/* ---- listings: listing.c ---- */

static inline enum h5_name_order h5_listing_order(const struct h5_vfs *vfs)
{
	return vfs->options.order_by_creation ? H5_NAMES_BY_CREATION : H5_NAMES_SORTED;
}

/* Closes directories that are still open. */
void h5_dirs_close(struct h5_vfs *vfs);

#endif

/* What a directory contains: names, and where they lead. */
#ifndef H5_VFS_DIRECTORY_H
#define H5_VFS_DIRECTORY_H

#include "vfs/name.h"
#include "vfs/private.h"

/* ---- what a directory lists: dir_list.c ---- */

struct h5_dir_item {
	char *text; /* owned: file name with NUL, and the texts of the link */
	struct h5_link
		link; /* its pointers lead into `text`; it has no name, the file name stands for that */
	struct h5_entity entity; /* in a view, which has no links */
};

struct h5_dir_list {
	struct h5_dir_item *items;
	size_t count, capacity;
	size_t text_bytes;
	struct h5_charge items_charge, text_charge;
};

/* Adds a copy of the link. */
int h5_dir_list_add_link(struct h5_dir_list *list, const struct h5_link *link);
/* Adds an entity; takes it over, also on failure. */
int h5_dir_list_add(struct h5_dir_list *list, const char *name, struct h5_entity *entity);
void h5_dir_list_release(struct h5_dir_list *list); /* may run twice */

/* ---- links: links.c ---- */

/* The targets of symlinks to what is not there or not opened begin like this. */
#define H5_DANGLING "extlink:"

/* A symlink in the directory. Takes the target over. One that is longer than a symlink can be becomes a
 * target that exists nowhere; one that leads out of the mount is -EUCLEAN. */
int h5_entity_symlink(const struct h5_node *directory, struct h5_entity *entity, struct h5_buf *target);
int h5_entity_kind(struct h5_file *file, uint64_t address, enum h5_node_kind *kind);
/* A directory that is the one itself or one above it becomes a symlink. */
int h5_entity_turn_back(const struct h5_node *directory, struct h5_entity *entity);

/* Where a link of the directory leads, by the rules of MAPPING section 2. */
int h5_links_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		     struct h5_entity *entity);
/* The same for a hard link to an object of the directory's file that is at hand. */
int h5_links_resolve_object(const struct h5_node *directory, const struct h5_object *object,
			    struct h5_entity *entity);
void h5_entity_release(struct h5_entity *entity); /* may run twice */

/* ---- the tree of each view: view_tree.c ---- */

#define H5_VIEWS_NAME ".h5fs"

/* The name of a link in a directory of the view: as a file of it, or as a directory. */
size_t h5_views_escape(const struct h5_view_ops *view, bool as_file, const char *name, size_t size,
		       char out[H5_NAME_MAX + 1]);
/* Where a link of the directory, which is in a view, leads, as a file or as a directory. -ENOENT: it is not
 * shown as that. */
int h5_views_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		     bool as_file, struct h5_entity *entity);
/* Names that no link has. -ENOENT: there is none. */
int h5_views_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		  struct h5_entity *entity);
/* Lists all entries of a directory that is in a view, or is that of the views. On failure, too: those that
 * could be found. */
int h5_views_list(struct h5_vfs *vfs, const struct h5_node *directory, struct h5_dir_list *list);

/* ---- look-ups: lookup.c ---- */

/* Where a name of the directory leads, as a look-up finds it. */
int h5_lookup_name(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		   struct h5_entity *entity);

/* h5_vfs_lookup() for one who has the lock to read. */
int h5_lookup_entry(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry);

/* ---- listings: listing.c ---- */

static inline enum h5_name_order h5_listing_order(const struct h5_vfs *vfs)
{
	return vfs->options.order_by_creation ? H5_NAMES_BY_CREATION : H5_NAMES_SORTED;
}

/* Closes directories that are still open. */
void h5_dirs_close(struct h5_vfs *vfs);

#endif

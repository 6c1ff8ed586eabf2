/* What a directory contains: names, and where they lead. */
#ifndef H5_VFS_DIRECTORY_H
#define H5_VFS_DIRECTORY_H

#include "vfs/name.h"
#include "vfs/node.h"

/* ---- links: links.c ---- */

/* The targets of symlinks to what is not there or not opened begin like this. */
#define H5_DANGLING "extlink:"

/* A symlink in the directory. Takes the target over. One that is longer than a symlink can be becomes a
 * target that exists nowhere; one that leads out of the mount is -EUCLEAN. */
int h5_place_symlink(const struct h5_node *directory, struct h5_place *place, struct h5_buf *target);
int h5_place_kind(struct h5_file *file, uint64_t address, enum h5_node_kind *kind);
/* A directory that is the one itself or one above it becomes a symlink. */
int h5_place_turn_back(const struct h5_node *directory, struct h5_place *place);

/* Where a link of the directory leads, by the rules of MAPPING section 2. */
int h5_tree_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		    struct h5_place *place);
/* The same for a hard link to an object of the directory's file that is at hand. */
int h5_tree_resolve_object(const struct h5_node *directory, const struct h5_object *object,
			   struct h5_place *place);
void h5_place_release(struct h5_place *place); /* may run twice */

/* ---- the tree of each view: view_tree.c ---- */

#define H5_VIEWS_NAME ".h5fs"

/* The name of a link in a directory of the view: as a file of it, or as a directory. */
size_t h5_views_escape(const struct h5_view_ops *view, bool as_file, const char *name, size_t size,
		       char out[H5_NAME_MAX + 1]);
/* Where a link of the directory, which is in a view, leads, as a file or as a directory. -ENOENT: it is not
 * shown as that. */
int h5_views_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		     bool as_file, struct h5_place *place);
/* Names that no link has. -ENOENT: there is none. */
int h5_views_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		  struct h5_place *place);
/* Every entry of a directory that is in a view, or is that of the views. The place is the visitor's. */
typedef int h5_views_visit(void *arg, const char *name, struct h5_place *place);
int h5_views_iterate(struct h5_vfs *vfs, const struct h5_node *directory, h5_views_visit *visit, void *arg);

/* ---- look-ups: lookup.c ---- */

/* Where a name of the directory leads, as a look-up finds it. */
int h5_dir_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
		struct h5_place *place);

/* h5_vfs_lookup() for one who has the lock to read. */
int h5_node_look_up(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_vfs_entry *entry);

/* ---- listings: listing.c ---- */

/* Closes directories that are still open. */
void h5_dirs_close(struct h5_vfs *vfs);

#endif

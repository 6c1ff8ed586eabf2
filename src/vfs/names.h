/* Changes of names since the last commit: what the kernel must be told if they are lost, and in which groups
 * they were, since cells have only so many orders. With the exclusive lock, but for stale names. */
#ifndef H5_VFS_NAMES_H
#define H5_VFS_NAMES_H

#include "vfs/private.h"

/* A name of a directory. */
struct h5_changed_name {
	struct h5_changed_name *next;
	uint64_t directory; /* id of the node */
	char name[];
};

struct h5_changed_name *h5_names_note(const struct h5_node *directory,
				      const char *name); /* NULL: no memory */
/* To be called after the name was made, changed or removed. Takes the note over; NULL: the change is one that
 * is already noted. The kernel is told to forget the name wherever else the group is shown. */
void h5_names_changed(struct h5_vfs *vfs, const struct h5_node *directory, struct h5_changed_name *note);
/* The kernel is told to forget the name, and the listing of the directory: a request in another directory has
 * changed the name. */
void h5_names_tell(struct h5_vfs *vfs, const struct h5_node *directory, const char *name);
/* The kernel is told to forget the name in all other directories that show the same group. */
void h5_names_tell_others(struct h5_vfs *vfs, const struct h5_node *directory, const char *name);
/* True: so much was changed that it should be committed. */
bool h5_names_are_many(const struct h5_vfs *vfs);

/* The changes were committed; or given up, by the transaction of that number (vfs/objects.h). */
void h5_names_committed(struct h5_vfs *vfs);
void h5_names_lost(struct h5_vfs *vfs, uint64_t transaction);
void h5_names_free(struct h5_vfs *vfs);

/* ---- help names ----
 *
 * Two objects that change their names need a third one for a while. It goes with the next commit; if that
 * fails, with a later one. */

struct h5_help_name {
	uint64_t group;	 /* in which it is */
	uint64_t object; /* that counts it as a name; H5_UNDEF: none */
	char name[64];
	bool is_removed; /* since the last commit */
	struct h5_help_name *next;
};

/* The name was committed, and is to go. Takes it over. It must not go with the commit of the exchange. */
void h5_names_add_help(struct h5_vfs *vfs, struct h5_help_name *help);
/* Removes help names. To be called before each commit. */
void h5_names_remove_help(struct h5_vfs *vfs);

/* ---- the order of changes ----
 *
 * An object that moves from one group to another must have its new name before the old one goes. A commit
 * writes all names that come before all that go. But it writes cells, and what comes and what goes may share
 * one, which then is written with what goes; and what goes from new space shows with the cell that leads
 * there, which may be one with what comes: h5_unit_leave() puts it off. So a group from which names have gone
 * gets no object that is known to the last commit, and a group that got such objects loses no names, until
 * the next commit. An object's count of names is likewise: if it has fallen, it does not rise until then, nor
 * the other way round. A name that changes within a group by h5_group_renames_at_once() only goes: it comes
 * with the same cell.
 */
enum h5_name_role {
	H5_NAME_COMES = 1,
	H5_NAME_GOES = 2,
};

/* True: the role does not fit what was done since the last commit, so a commit must come first. `header`: of
 * the group, or of the object that is counted. */
bool h5_names_need_commit(struct h5_vfs *vfs, uint64_t header, enum h5_name_role role);
/* Notes what will be done. -ENOMEM. */
int h5_names_add_role(struct h5_vfs *vfs, uint64_t header, enum h5_name_role role);

#endif

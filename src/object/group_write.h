/* Inserts, changes, renames and removes links of groups, in whatever storage a group has: a symbol table
 * (object/symbol_table_write.h), link messages or dense storage (object/named_message_write.h). A group with
 * a symbol table becomes one of the new style with its first external link (object/group_create.h).
 *
 * Each of these is a unit of change (change/transaction.h). They look before they change: an error for which
 * a number is stated here fails no unit around it, except that of h5_group_remove(). The decoded header of
 * the group is no longer valid afterwards, and what was made of the links is forgotten.
 *
 * Names are any bytes but NUL and '/'; an empty one and "." are -EINVAL, and so is a soft or
 * external link that leads to an empty text, or has a NUL. The caller counts the names of objects
 * (dataset/removal.h), and does not link a group into itself. Of a link, `has_order` and `order` are not
 * used: a new one is the last in the order of creation if the group tracks it, a changed or renamed one keeps
 * its place. (H5Lmove makes it the last.) */
#ifndef H5_OBJECT_GROUP_WRITE_H
#define H5_OBJECT_GROUP_WRITE_H

#include "object/group_create.h"

/* How a new group in this one should be made: as this one is. -ENOTDIR: it is no group. */
int h5_group_style(struct h5_file *file, uint64_t parent, struct h5_new_group *how);

/* Adds a link. -EEXIST: its name is taken. -ENAMETOOLONG: the name and the target have more than about
 * 65,000 bytes. */
int h5_group_insert(struct h5_file *file, uint64_t group, const struct h5_link *link);
/* Makes the link of that name lead elsewhere, in one step. -ENOENT: there is none; else as above. */
int h5_group_change(struct h5_file *file, uint64_t group, const struct h5_link *link);
/* -ENOENT: there is no link of that name. */
int h5_group_remove(struct h5_file *file, uint64_t group, const char *name, size_t size);
/* Puts the link `as` in the place of the one of that name, which it need not resemble. At no instant there is
 * neither of them, nor both. -ENOENT: there is no link of that name. -EEXIST: the
 * new name is taken. Else as h5_group_insert(). */
int h5_group_rename(struct h5_file *file, uint64_t group, const char *name, size_t size,
		    const struct h5_link *as);
/* True: all that h5_group_rename() does in the group takes effect at once in the commit, by one cell: so it
 * is in a symbol table or in dense storage. */
bool h5_group_renames_at_once(struct h5_file *file, uint64_t group);

#endif

/* The request that renames, by the rules of doc/h5fs.1, Writing. At no instant is an object without a name.
 */
#include "vfs/name_change.h"

#include "base/error.h"
#include "change/transaction.h"
#include "dataset/removal.h"
#include "object/group_write.h"
#include "vfs/changes.h"
#include "vfs/pending.h"
#include "vfs/plain.h"
#include "vfs/replace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

struct renaming {
	struct h5_vfs *vfs;
	struct h5_naming from, to;
	struct h5_entity source, target;  /* what the two names lead to; kind and object only */
	struct h5_node_place there, back; /* for the nodes of directories */
	struct h5_unnamed replaced;
};

/* The link of `name` under the name of `as`. */
static struct h5_link link_as(const struct h5_naming *name, const struct h5_naming *as)
{
	return h5_link_renamed(&name->link, as->link.name, as->link.name_size);
}

static uint64_t group_of(const struct h5_naming *name)
{
	return name->directory->entity.address;
}

static bool is_directory(const struct h5_entity *entity)
{
	return entity->kind == H5_NODE_DIRECTORY;
}

/* ---- checks ---- */

static int check_flags(const struct renaming *r, unsigned flags)
{
	if (flags != 0 && flags != RENAME_NOREPLACE && flags != RENAME_EXCHANGE)
		return -EINVAL;
	if (!r->from.exists)
		return -ENOENT;
	if (r->to.exists)
		return flags == RENAME_NOREPLACE ? -EEXIST : 0;
	return flags == RENAME_EXCHANGE ? -ENOENT : h5_naming_check_new(&r->to);
}

static int resolve(struct renaming *r)
{
	int rc = h5_naming_resolve(&r->from, &r->source);

	if (!rc && r->to.exists)
		rc = h5_naming_resolve(&r->to, &r->target);
	return rc;
}

static bool goes_into_itself(const struct h5_entity *entity, const struct h5_naming *to)
{
	return is_directory(entity) && h5_naming_is_above(to->directory, entity->file, entity->address);
}

static int check_replaced(const struct renaming *r)
{
	if (is_directory(&r->source) && !is_directory(&r->target))
		return -ENOTDIR;
	if (!is_directory(&r->target))
		return 0;
	if (!is_directory(&r->source))
		return -EISDIR;
	return h5_naming_check_removable(r->vfs, r->target.file, r->target.address);
}

/* A new file that gets another name, or loses its name, is named in commits as any other. */
static void end_pending(const struct renaming *r)
{
	if (r->from.link.type == H5_LINK_HARD)
		h5_pending_end(r->vfs, r->from.link.address);
	if (r->to.exists && r->to.link.type == H5_LINK_HARD)
		h5_pending_end(r->vfs, r->to.link.address);
}

/* ---- the kernel's nodes ---- */

/* Only nodes of directories are moved: files have none of their names, and the target of a symlink depends on
 * where it is. `entity`: what had the name. */
static void move_node(const struct h5_naming *from, const struct h5_entity *entity, struct h5_node *node,
		      struct h5_node_place *place)
{
	if (!node)
		return;
	if (is_directory(entity) && h5_entity_is_same(&node->entity, entity))
		h5_node_move(from->vfs, node, place);
	else
		h5_node_detach(from->vfs, node);
	h5_vfs_forget(from->vfs, node, 1);
}

static int prepare_places(struct renaming *r)
{
	int rc = h5_node_place_prepare(r->to.directory, r->to.text, &r->there);

	return rc ? rc : h5_node_place_prepare(r->from.directory, r->from.text, &r->back);
}

/* The object has another name. */
static void note_moved(const struct h5_naming *name)
{
	if (name->link.type == H5_LINK_HARD)
		h5_change_note_status(name->vfs, name->link.address);
}

/* After the links have changed. */
static void move_nodes(struct renaming *r, bool exchange)
{
	struct h5_node *source = h5_node_find(r->vfs, r->from.directory, r->from.text);
	struct h5_node *target = h5_node_find(r->vfs, r->to.directory, r->to.text);

	h5_node_detach(r->vfs, target);
	move_node(&r->from, &r->source, source, &r->there);
	if (exchange)
		move_node(&r->to, &r->target, target, &r->back);
	else
		h5_vfs_forget(r->vfs, target, 1);
	h5_naming_changed(&r->from, exchange ? 0 : -1);
	h5_naming_changed(&r->to, r->to.exists ? 0 : 1);
	note_moved(&r->from);
	if (exchange)
		note_moved(&r->to);
}

/* ---- one name takes the place of the other ---- */

static int switch_target(struct renaming *r, const struct h5_link *link)
{
	struct h5_file *file = r->vfs->file;
	int rc = r->to.exists ? h5_group_change(file, group_of(&r->to), link)
			      : h5_group_insert(file, group_of(&r->to), link);

	if (!rc)
		rc = h5_naming_remove(&r->from);
	if (!rc && r->to.exists)
		rc = h5_naming_drop(&r->to, &r->replaced);
	return rc;
}

static int change_links(struct renaming *r)
{
	struct h5_link link = link_as(&r->from, &r->to);
	struct h5_file *file = r->vfs->file;

	if (r->to.exists || group_of(&r->from) != group_of(&r->to))
		return switch_target(r, &link);
	return h5_group_rename(file, group_of(&r->from), r->from.link.name, r->from.link.name_size, &link);
}

/* True: what is renamed was made since the last commit, so a kill may take it away as a whole. */
static bool is_new(const struct renaming *r)
{
	return r->from.link.type == H5_LINK_HARD && !is_directory(&r->source) &&
	       h5_tx_is_new(r->vfs->file, r->from.link.address);
}

/* True: it is one cell that changes the name and those that were changed before. So there is no instant at
 * which the new name must be there already. */
static bool is_at_once(const struct renaming *r)
{
	return !r->to.exists && group_of(&r->from) == group_of(&r->to) &&
	       h5_group_renames_at_once(r->vfs->file, group_of(&r->from));
}

/* True: an object that the last commit knows gets its name in another group. */
static bool leaves_group(const struct renaming *r)
{
	return !is_new(r) && group_of(&r->from) != group_of(&r->to);
}

static int move(struct renaming *r)
{
	const struct h5_naming_plan plan = {.from = r->from.directory,
					    .to = is_new(r) || is_at_once(r) ? NULL : r->to.directory,
					    .less = h5_naming_counted(&r->to)};
	int rc = h5_naming_order(r->vfs, &plan);

	if (rc)
		return rc;
	h5_unit_begin(r->vfs->file);
	if (leaves_group(r))
		rc = h5_unit_leave(r->vfs->file, group_of(&r->from));
	rc = h5_unit_end(r->vfs->file, rc ? rc : change_links(r));
	if (rc)
		return rc;
	end_pending(r);
	move_nodes(r, false);
	h5_naming_end_object(r->vfs, &r->replaced);
	return 0;
}

/* ---- a plain file onto another dataset ----
 *
 * Its contents change, as cp(1) would have it: type, attributes and other names stay. */

static bool only_contents(const struct renaming *r)
{
	return r->to.exists && r->from.link.type == H5_LINK_HARD && r->to.link.type == H5_LINK_HARD &&
	       r->target.kind == H5_NODE_DATASET && h5_plain_has(r->vfs, r->from.link.address) &&
	       !h5_plain_has(r->vfs, r->to.link.address);
}

static int drop_source(void *arg)
{
	struct renaming *r = arg;
	int rc = h5_naming_remove(&r->from);

	return rc ? rc : h5_naming_drop(&r->from, &r->replaced);
}

static int replace_contents(struct renaming *r)
{
	const struct h5_naming_plan plan = {.from = r->from.directory, .less = h5_naming_counted(&r->from)};
	const struct h5_also also = {drop_source, r};
	int rc = h5_plain_release_name(r->vfs, r->from.link.address, r->from.directory, r->from.text);

	if (!rc)
		rc = h5_naming_order(r->vfs, &plan);
	if (!rc)
		rc = h5_replace_contents(r->vfs, r->from.link.address, r->to.link.address, &also);
	if (rc)
		return rc;
	end_pending(r);
	h5_naming_changed(&r->from, -1);
	/* The kernel counts one name less of the dataset, until it looks one of them up. In this directory it
	 * does so by itself. */
	h5_names_tell_others(r->vfs, r->to.directory, r->to.text);
	h5_change_note_contents(r->vfs, r->to.link.address);
	h5_naming_end_object(r->vfs, &r->replaced);
	return 0;
}

/* ---- a backup goes ----
 *
 * Some editors rename the file that they rewrite to NAME~, make it anew, and then remove NAME~. That would
 * leave a plain file in the dataset's place. So the dataset gets its name back, with the new contents. */

static int take_name_back(void *arg)
{
	return change_links(arg);
}

static int put_back(struct renaming *r)
{
	const struct h5_naming_plan plan = {
		.from = r->from.directory, .to = r->to.directory, .less = h5_naming_counted(&r->to)};
	const struct h5_also also = {take_name_back, r};
	int rc = h5_naming_order(r->vfs, &plan);

	if (!rc)
		rc = h5_replace_contents(r->vfs, r->to.link.address, r->from.link.address, &also);
	if (rc)
		return rc;
	move_nodes(r, false);
	h5_change_note_contents(r->vfs, r->from.link.address);
	h5_naming_end_object(r->vfs, &r->replaced);
	return 0;
}

/* True: the other name leads to a plain file. If the first one leads to a dataset, that was made in its
 * place. */
static bool may_be_backup(const struct renaming *r)
{
	return r->from.exists && r->to.exists && r->from.link.type == H5_LINK_HARD &&
	       r->to.link.type == H5_LINK_HARD && !h5_plain_has(r->vfs, r->from.link.address) &&
	       h5_plain_has(r->vfs, r->to.link.address);
}

/* If it is not known what the first name leads to, nothing may be removed. */
static int put_back_if_backup(struct renaming *r)
{
	int rc;

	if (!may_be_backup(r))
		return 1;
	rc = resolve(r);
	if (rc)
		return rc;
	return r->source.kind == H5_NODE_DATASET ? put_back(r) : 1;
}

int h5_naming_put_back(struct h5_vfs *vfs, struct h5_node *parent, const char *name)
{
	struct renaming r = {.vfs = vfs};
	char original[H5_NAME_MAX + 1];
	size_t n = strlen(name);
	int rc;

	if (n < 2 || n > H5_NAME_MAX || name[n - 1] != '~')
		return 1;
	rc = h5_change_begin(vfs, parent);
	if (rc)
		return rc;
	memcpy(original, name, n - 1);
	original[n - 1] = 0;
	rc = h5_naming_find(vfs, parent, name, &r.from);
	if (!rc)
		rc = h5_naming_find(vfs, parent, original, &r.to);
	if (rc == -EPERM)
		rc = 1; /* one of the names belongs to no link */
	else if (!rc)
		rc = put_back_if_backup(&r);
	h5_naming_release(&r.from);
	h5_naming_release(&r.to);
	h5_change_end(vfs);
	return rc;
}

/* ---- two names change places ----
 *
 * Each link is switched by a cell of its own, and after the first one the object that this has named would be
 * without a name. So it gets another one for that time. */

static int add_help(struct renaming *r, const struct h5_link *help)
{
	struct h5_file *file = r->vfs->file;
	int rc = 0;

	h5_unit_begin(file);
	if (help->type == H5_LINK_HARD)
		rc = h5_object_add_name(file, help->address);
	if (!rc)
		rc = h5_group_insert(file, group_of(&r->from), help);
	return h5_unit_end(file, rc);
}

static int exchange_links(struct renaming *r)
{
	const struct h5_link there = link_as(&r->from, &r->to), here = link_as(&r->to, &r->from);
	struct h5_file *file = r->vfs->file;
	int rc;

	h5_unit_begin(file);
	rc = h5_group_change(file, group_of(&r->from), &here);
	if (!rc)
		rc = h5_group_change(file, group_of(&r->to), &there);
	return h5_unit_end(file, rc);
}

/* *help: a name that nothing has, for the link. */
static int make_help(const struct renaming *r, struct h5_link *link, struct h5_help_name **help)
{
	uint64_t number;
	int size;

	*help = NULL;
	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return h5_fail(-EIO, H5_UNDEF, "no random numbers");
	*help = calloc(1, sizeof **help);
	if (!*help)
		return -ENOMEM;
	**help = (struct h5_help_name){.group = group_of(&r->from), .object = H5_UNDEF};
	if (r->from.link.type == H5_LINK_HARD)
		(*help)->object = r->from.link.address;
	size = snprintf((*help)->name, sizeof(*help)->name, ".h5fs-exchange-%016jx", (uintmax_t)number);
	*link = h5_link_renamed(&r->from.link, (*help)->name, (size_t)size);
	return 0;
}

static void end_help(const struct renaming *r, struct h5_help_name *help)
{
	h5_names_add_help(r->vfs, help);
	h5_names_remove_help(r->vfs);
}

static int commit_help(struct renaming *r, struct h5_help_name **help)
{
	const struct h5_naming_plan plan = {.to = r->from.directory, .more = h5_naming_counted(&r->from)};
	struct h5_link link;
	int rc = make_help(r, &link, help);

	if (rc)
		return rc;
	rc = h5_naming_order(r->vfs, &plan);
	if (!rc)
		rc = add_help(r, &link);
	if (rc) {
		free(*help);
		return rc;
	}
	rc = h5_changes_commit(r->vfs);
	/* A commit that lacks the changes of a dataset has the name all the same. */
	if (rc)
		end_help(r, *help);
	return rc;
}

static int exchange(struct renaming *r)
{
	struct h5_help_name *help;
	int rc;

	end_pending(r); /* the commits need both names */
	rc = commit_help(r, &help);
	if (rc)
		return rc;
	rc = exchange_links(r);
	if (!rc)
		rc = h5_changes_commit(r->vfs);
	if (!rc)
		move_nodes(r, true);
	end_help(r, help);
	return rc;
}

/* ---- the request ---- */

/* True: both are the same link, of a group that two directories show. */
static bool is_onto_itself(const struct renaming *r)
{
	return r->to.exists && group_of(&r->from) == group_of(&r->to) &&
	       r->from.link.name_size == r->to.link.name_size &&
	       !memcmp(r->from.link.name, r->to.link.name, r->to.link.name_size);
}

static int rename_found(struct renaming *r, unsigned flags)
{
	int rc = check_flags(r, flags);

	if (rc || is_onto_itself(r))
		return rc;
	rc = resolve(r);
	if (rc)
		return rc;
	if (goes_into_itself(&r->source, &r->to) ||
	    (flags == RENAME_EXCHANGE && goes_into_itself(&r->target, &r->from)))
		return -EINVAL;
	/* Two names of one object, as POSIX has it. */
	if (r->to.exists && r->from.link.type == H5_LINK_HARD && r->to.link.type == H5_LINK_HARD &&
	    r->from.link.address == r->to.link.address && !is_directory(&r->source))
		return 0;
	if (r->to.exists && flags != RENAME_EXCHANGE)
		rc = check_replaced(r);
	if (rc)
		return rc;
	if (!flags && only_contents(r))
		return replace_contents(r);
	rc = prepare_places(r);
	if (rc)
		return rc;
	return flags == RENAME_EXCHANGE ? exchange(r) : move(r);
}

int h5_naming_rename(struct h5_vfs *vfs, struct h5_node *parent, const char *name, struct h5_node *new_parent,
		     const char *new_name, unsigned flags)
{
	struct renaming r = {.vfs = vfs};
	int rc;

	if (parent->entity.file && new_parent->entity.file && parent->entity.file != new_parent->entity.file)
		return -EXDEV;
	rc = h5_change_check(vfs, new_parent);
	if (!rc)
		rc = h5_change_begin(vfs, parent);
	if (rc)
		return rc;
	rc = h5_naming_find(vfs, parent, name, &r.from);
	if (!rc)
		rc = h5_naming_find(vfs, new_parent, new_name, &r.to);
	if (!rc)
		rc = rename_found(&r, flags);
	h5_naming_release(&r.from);
	h5_naming_release(&r.to);
	h5_node_place_release(&r.there);
	h5_node_place_release(&r.back);
	h5_change_end(vfs);
	return rc;
}

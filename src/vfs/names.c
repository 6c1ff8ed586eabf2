#include "vfs/names.h"

#include "base/error.h"
#include "dataset/removal.h"
#include "object/group_write.h"
#include "vfs/name.h"
#include "vfs/objects.h"
#include "vfs/paths.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 1 << 16 }; /* changed names that are noted */

/* What was done since the last commit in a group, or with the count of an object. */
struct h5_name_roles {
	uint64_t header;
	unsigned roles;
	UT_hash_handle hh;
};

/* ---- notes ---- */

struct h5_changed_name *h5_names_note(const struct h5_node *directory, const char *name)
{
	struct h5_changed_name *note = malloc(sizeof *note + strlen(name) + 1);

	if (!note)
		return NULL;
	note->directory = directory->id;
	strcpy(note->name, name);
	return note;
}

static void free_notes(struct h5_changed_name **notes)
{
	struct h5_changed_name *note, *next;

	LL_FOREACH_SAFE(*notes, note, next)
	free(note);
	*notes = NULL;
}

bool h5_names_are_many(const struct h5_vfs *vfs)
{
	return vfs->changed_count >= MANY;
}

/* ---- what the kernel must forget ---- */

void h5_vfs_on_stale_names(struct h5_vfs *vfs, void (*tell)(void *arg), void *arg)
{
	pthread_mutex_lock(&vfs->lock);
	vfs->tell_stale = tell;
	vfs->tell_arg = arg;
	pthread_mutex_unlock(&vfs->lock);
}

bool h5_vfs_take_stale_name(struct h5_vfs *vfs, uint64_t *directory, char name[H5_NAME_MAX + 1])
{
	struct h5_changed_name *note;

	pthread_mutex_lock(&vfs->lock);
	note = vfs->stale_names;
	if (note)
		LL_DELETE(vfs->stale_names, note);
	pthread_mutex_unlock(&vfs->lock);
	if (!note)
		return false;
	*directory = note->directory;
	strcpy(name, note->name);
	free(note);
	return true;
}

/* With vfs->lock. If no memory was found for a note, the kernel keeps what it has. */
static void add_stale(struct h5_vfs *vfs, struct h5_changed_name *note)
{
	if (note && vfs->tell_stale)
		LL_PREPEND(vfs->stale_names, note);
	else
		free(note);
}

static void tell(struct h5_vfs *vfs)
{
	if (vfs->stale_names)
		vfs->tell_stale(vfs->tell_arg);
}

void h5_names_tell(struct h5_vfs *vfs, const struct h5_node *directory, const char *name)
{
	pthread_mutex_lock(&vfs->lock);
	add_stale(vfs, h5_names_note(directory, name));
	tell(vfs);
	pthread_mutex_unlock(&vfs->lock);
}

void h5_names_tell_others(struct h5_vfs *vfs, const struct h5_node *directory, const char *name)
{
	struct h5_node *other;

	if (!directory->shown)
		return;
	pthread_mutex_lock(&vfs->lock);
	DL_FOREACH2(directory->shown->nodes, other, next_shown)
	if (other != directory && other->entity.kind == H5_NODE_DIRECTORY && !other->entity.view)
		add_stale(vfs, h5_names_note(other, name));
	tell(vfs);
	pthread_mutex_unlock(&vfs->lock);
}

static void drop_paths(struct h5_vfs *vfs)
{
	pthread_mutex_lock(&vfs->map_lock);
	h5_paths_free(vfs->map);
	vfs->map = NULL;
	pthread_mutex_unlock(&vfs->map_lock);
}

void h5_names_changed(struct h5_vfs *vfs, const struct h5_node *directory, struct h5_changed_name *note)
{
	vfs->name_changes++;
	drop_paths(vfs);
	if (!note)
		return;
	h5_names_tell_others(vfs, directory, note->name);
	LL_PREPEND(vfs->changed_names, note);
	vfs->changed_count++;
}

/* ---- help names ---- */

void h5_names_add_help(struct h5_vfs *vfs, struct h5_help_name *help)
{
	LL_PREPEND(vfs->help_names, help);
}

static int remove_help(struct h5_vfs *vfs, const struct h5_help_name *help)
{
	struct h5_file *file = vfs->file;
	bool last;
	int rc;

	h5_unit_begin(file);
	rc = h5_group_remove(file, help->group, help->name, strlen(help->name));
	if (!rc && help->object != H5_UNDEF)
		rc = h5_object_drop_name(file, help->object, &last);
	return h5_unit_end(file, rc);
}

void h5_names_remove_help(struct h5_vfs *vfs)
{
	struct h5_help_name *help;
	int rc;

	LL_FOREACH(vfs->help_names, help)
	{
		if (help->is_removed)
			continue;
		rc = remove_help(vfs, help);
		/* The user may have seen it, and have removed it. */
		help->is_removed = !rc || rc == -ENOENT;
	}
}

static void forget_help(struct h5_vfs *vfs, bool all)
{
	struct h5_help_name *help, *next;

	LL_FOREACH_SAFE(vfs->help_names, help, next)
	{
		if (!all && !help->is_removed)
			continue;
		LL_DELETE(vfs->help_names, help);
		free(help);
	}
}

/* ---- after a commit ---- */

static void forget_roles(struct h5_vfs *vfs)
{
	struct h5_name_roles *group, *next;

	HASH_ITER(hh, vfs->roles, group, next)
	{
		HASH_DEL(vfs->roles, group);
		free(group);
	}
}

static void forget_changes(struct h5_vfs *vfs)
{
	free_notes(&vfs->changed_names);
	vfs->changed_count = 0;
	forget_roles(vfs);
}

void h5_names_committed(struct h5_vfs *vfs)
{
	forget_changes(vfs);
	forget_help(vfs, false);
}

void h5_names_lost(struct h5_vfs *vfs, uint64_t transaction)
{
	struct h5_changed_name *note, *next;
	struct h5_help_name *help;

	h5_nodes_lose(vfs, transaction);
	h5_objects_rename_all(vfs, transaction);
	vfs->name_changes++;
	drop_paths(vfs);
	pthread_mutex_lock(&vfs->lock);
	LL_FOREACH_SAFE(vfs->changed_names, note, next)
	add_stale(vfs, note);
	vfs->changed_names = NULL;
	tell(vfs);
	pthread_mutex_unlock(&vfs->lock);
	forget_changes(vfs);
	LL_FOREACH(vfs->help_names, help)
	help->is_removed = false;
}

void h5_names_free(struct h5_vfs *vfs)
{
	forget_changes(vfs);
	forget_help(vfs, true);
	free_notes(&vfs->stale_names);
}

/* ---- the order of changes ---- */

static struct h5_name_roles *find_roles(const struct h5_vfs *vfs, uint64_t header)
{
	struct h5_name_roles *found;

	HASH_FIND(hh, vfs->roles, &header, sizeof header, found);
	return found;
}

bool h5_names_need_commit(struct h5_vfs *vfs, uint64_t header, enum h5_name_role role)
{
	const struct h5_name_roles *found = find_roles(vfs, header);

	return found && found->roles & ~(unsigned)role;
}

int h5_names_add_role(struct h5_vfs *vfs, uint64_t header, enum h5_name_role role)
{
	struct h5_name_roles *found = find_roles(vfs, header);

	if (!found) {
		found = calloc(1, sizeof *found);
		if (!found)
			return -ENOMEM;
		found->header = header;
		HASH_ADD(hh, vfs->roles, header, sizeof found->header, found);
		if (!found->hh.tbl) {
			free(found);
			return -ENOMEM;
		}
	}
	found->roles |= role;
	return 0;
}

/* Requests that make and remove names, and what those have in common with others, by the rules of doc/h5fs.1,
 * Writing. */
#include "vfs/name_change.h"

#include "base/error.h"
#include "change/transaction.h"
#include "dataset/removal.h"
#include "object/group_write.h"
#include "vfs/changes.h"
#include "vfs/objects.h"
#include "vfs/pending.h"
#include "vfs/times.h"

#include <string.h>

/* ---- finding ---- */

/* The link's name that the file name stands for. */
static void read_new_name(struct h5_naming *name)
{
	name->link.name_size = h5_name_unescape(name->text, name->new_name);
	name->link.name = name->new_name;
}

int h5_naming_find(struct h5_vfs *vfs, struct h5_node *directory, const char *text, struct h5_naming *name)
{
	int rc = 0;

	*name = (struct h5_naming){.vfs = vfs, .directory = directory, .text = text};
	if (directory->entity.kind != H5_NODE_DIRECTORY)
		return -ENOTDIR;
	if (strlen(text) > H5_NAME_MAX)
		return -ENAMETOOLONG;
	if (h5_objects_is_nameless(directory))
		return -ENOENT;
	if (h5_names_are_many(vfs))
		rc = h5_changes_commit(vfs);
	if (!rc)
		rc = h5_lookup_link(vfs, directory, text, &name->link);
	name->exists = !rc;
	if (rc == -ENOENT) {
		read_new_name(name);
		rc = 0;
	}
	if (rc)
		return rc;
	name->link.cached_kind = H5_OBJECT_UNKNOWN;
	name->note = h5_names_note(directory, text);
	return name->note ? 0 : -ENOMEM;
}

void h5_naming_release(struct h5_naming *name)
{
	if (name->exists)
		h5_link_release(&name->link);
	free(name->note);
	name->note = NULL;
}

int h5_naming_check_new(const struct h5_naming *name)
{
	if (name->exists)
		return -EEXIST;
	if (!h5_name_can_be_new(name->text))
		return h5_fail(-EINVAL, name->directory->entity.address, "%s is no name of a new link",
			       name->text);
	return 0;
}

bool h5_naming_is_above(const struct h5_node *directory, const struct h5_file *file, uint64_t address)
{
	for (; directory; directory = directory->parent)
		if (directory->entity.file == file && directory->entity.address == address)
			return true;
	return false;
}

static int check_empty(struct h5_file *file, uint64_t address)
{
	const struct h5_object *group;
	const struct h5_link *link;
	struct h5_link_walk links;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, address, &ref, &group);

	if (rc)
		return rc;
	rc = h5_link_begin(&links, file, group, H5_NAMES_SORTED);
	if (!rc)
		rc = h5_link_next(&links, &link);
	h5_link_end(&links);
	h5_file_put(file, ref);
	return rc > 0 ? -ENOTEMPTY : rc;
}

int h5_naming_check_removable(const struct h5_vfs *vfs, struct h5_file *file, uint64_t address)
{
	if (file == vfs->file &&
	    (address == h5_file_superblock(file)->root || address == vfs->root->entity.address))
		return -EBUSY;
	return check_empty(file, address);
}

int h5_naming_resolve(const struct h5_naming *name, struct h5_entity *entity)
{
	int rc = h5_links_resolve(name->vfs, name->directory, &name->link, entity);

	if (!rc)
		h5_entity_release(entity);
	return rc;
}

/* ---- the order of changes ---- */

/* The group whose cell makes the directory's links known: the directory, or, if it is new, the nearest one
 * above that is not. */
static uint64_t known_group(const struct h5_vfs *vfs, const struct h5_node *directory)
{
	while (directory->parent && h5_tx_is_new(vfs->file, directory->entity.address))
		directory = directory->parent;
	return directory->entity.address;
}

uint64_t h5_naming_counted(const struct h5_naming *name)
{
	bool counted = name->exists && name->link.type == H5_LINK_HARD &&
		       !h5_tx_is_new(name->vfs->file, name->link.address);

	return counted ? name->link.address : 0;
}

enum { TOUCHED = 4 };

struct touched {
	uint64_t header; /* of a group, or of an object that is counted */
	enum h5_name_role role;
};

/* The headers whose cells need an order. Returns how many. */
static unsigned find_touched(const struct h5_vfs *vfs, const struct h5_naming_plan *plan,
			     struct touched touched[TOUCHED])
{
	unsigned n = 0;

	if (plan->from)
		touched[n++] = (struct touched){plan->from->entity.address, H5_NAME_GOES};
	if (plan->to)
		touched[n++] = (struct touched){known_group(vfs, plan->to), H5_NAME_COMES};
	if (plan->more)
		touched[n++] = (struct touched){plan->more, H5_NAME_COMES};
	if (plan->less)
		touched[n++] = (struct touched){plan->less, H5_NAME_GOES};
	return n;
}

int h5_naming_order(struct h5_vfs *vfs, const struct h5_naming_plan *plan)
{
	struct touched touched[TOUCHED];
	unsigned n = find_touched(vfs, plan, touched);
	bool first = false;
	int rc = 0;

	for (unsigned i = 0; i < n; i++)
		first |= h5_names_need_commit(vfs, touched[i].header, touched[i].role);
	if (first) {
		rc = h5_changes_commit(vfs);
		n = find_touched(vfs, plan, touched); /* a group that was new is known now */
	}
	for (unsigned i = 0; i < n && !rc; i++)
		rc = h5_names_add_role(vfs, touched[i].header, touched[i].role);
	return rc;
}

/* ---- changing ---- */

int h5_naming_insert(const struct h5_naming *name, struct h5_link link)
{
	link.name = name->link.name;
	link.name_size = name->link.name_size;
	return h5_group_insert(name->vfs->file, name->directory->entity.address, &link);
}

int h5_naming_insert_object(const struct h5_naming *name, uint64_t address, enum h5_node_kind kind,
			    struct h5_node **node)
{
	struct h5_entity entity = {.kind = kind, .file = name->vfs->file, .address = address};
	int rc = h5_naming_insert(name, (struct h5_link){.type = H5_LINK_HARD, .address = address});

	return rc ? rc : h5_node_get(name->vfs, name->directory, name->text, &entity, node);
}

int h5_naming_remove(const struct h5_naming *name)
{
	return h5_group_remove(name->vfs->file, name->directory->entity.address, name->link.name,
			       name->link.name_size);
}

int h5_naming_drop(const struct h5_naming *name, struct h5_unnamed *object)
{
	*object = (struct h5_unnamed){0};
	if (name->link.type != H5_LINK_HARD)
		return 0;
	object->address = name->link.address;
	return h5_object_drop_name(name->vfs->file, object->address, &object->last);
}

void h5_naming_changed(struct h5_naming *name, int links)
{
	h5_objects_add_links(name->vfs, name->directory, links);
	h5_names_changed(name->vfs, name->directory, name->note);
	name->note = NULL;
	h5_change_note_object(name->vfs, name->directory);
}

void h5_naming_end_object(struct h5_vfs *vfs, const struct h5_unnamed *object)
{
	int rc;

	if (object->address && !object->last)
		h5_change_note_status(vfs, object->address);
	if (!object->last || h5_objects_unname(vfs, object->address))
		return;
	rc = h5_object_remove(vfs->file, object->address);
	if (rc && !h5_objects_remove_later(vfs, object->address, rc))
		h5_objects_log_lost(vfs, object->address, rc);
}

void h5_naming_detach(const struct h5_naming *name)
{
	struct h5_node *node = h5_node_find(name->vfs, name->directory, name->text);

	h5_node_detach(name->vfs, node);
	h5_vfs_forget(name->vfs, node, 1);
}

int h5_naming_reply(const struct h5_naming *name, struct h5_vfs_entry *entry)
{
	struct h5_times times = {0};
	int rc = h5_stat_entry(name->vfs, NULL, &times, entry);

	if (rc) {
		entry->node = NULL;
		return rc;
	}
	/* The times are those before this change. */
	entry->size_known = false;
	h5_entry_set_passing(name->vfs, entry, h5_vfs_is_passing(name->vfs, name->directory));
	return 0;
}

int h5_naming_end_unit(struct h5_vfs *vfs, int rc, struct h5_vfs_entry *entry)
{
	rc = h5_unit_end(vfs->file, rc);
	if (rc && entry->node) {
		h5_vfs_forget(vfs, entry->node, 1);
		entry->node = NULL;
	}
	return rc;
}

/* ---- mkdir ---- */

static int make_group(const struct h5_naming *name, struct h5_node **node)
{
	struct h5_file *file = name->vfs->file;
	struct h5_new_group how;
	uint64_t address;
	int rc = h5_group_style(file, name->directory->entity.address, &how);

	if (!rc)
		rc = h5_group_create(file, &how, &address);
	return rc ? rc : h5_naming_insert_object(name, address, H5_NODE_DIRECTORY, node);
}

int h5_naming_make_found(struct h5_naming *name, h5_naming_maker *maker, h5_naming_user *user, void *arg,
			 struct h5_vfs_entry *entry)
{
	int rc;

	h5_unit_begin(name->vfs->file);
	rc = maker(name, &entry->node);
	if (!rc)
		rc = h5_naming_reply(name, entry);
	if (!rc && user)
		rc = user(arg, entry->node);
	rc = h5_naming_end_unit(name->vfs, rc, entry);
	if (rc)
		return rc;
	h5_change_note_object(name->vfs, entry->node);
	entry->made = true;
	h5_times_set(&entry->st, &name->vfs->changed);
	h5_naming_changed(name, 1);
	return 0;
}

int h5_naming_end(struct h5_naming *name, int rc)
{
	h5_naming_release(name);
	h5_change_end(name->vfs);
	return rc;
}

int h5_naming_begin(struct h5_vfs *vfs, struct h5_node *parent, const char *text, struct h5_naming *name,
		    struct h5_vfs_entry *entry)
{
	int rc = h5_change_begin(vfs, parent);

	*entry = (struct h5_vfs_entry){0};
	if (rc)
		return rc;
	rc = h5_naming_find(vfs, parent, text, name);
	if (!rc)
		rc = h5_naming_check_new(name);
	return rc ? h5_naming_end(name, rc) : 0;
}

int h5_naming_make(struct h5_vfs *vfs, struct h5_node *parent, const char *text, h5_naming_maker *maker,
		   struct h5_vfs_entry *entry)
{
	struct h5_naming name;
	int rc = h5_naming_begin(vfs, parent, text, &name, entry);

	return rc ? rc : h5_naming_end(&name, h5_naming_make_found(&name, maker, NULL, NULL, entry));
}

int h5_vfs_mkdir(struct h5_vfs *vfs, struct h5_node *parent, const char *text, struct h5_vfs_entry *entry)
{
	return h5_naming_make(vfs, parent, text, make_group, entry);
}

/* ---- link ---- */

static int check_linkable(const struct h5_vfs *vfs, const struct h5_node *node)
{
	if (node->entity.view)
		return -EPERM;
	if (node->entity.kind != H5_NODE_DATASET && node->entity.kind != H5_NODE_DATATYPE)
		return h5_objects_refuse(node);
	if (node->entity.file != vfs->file)
		return -EXDEV;
	return h5_objects_is_nameless(node) ? -ENOENT : 0;
}

static int add_name(struct h5_naming *name, const struct h5_node *of, struct h5_vfs_entry *entry)
{
	const uint64_t address = of->entity.address;
	struct h5_vfs *vfs = name->vfs;
	int rc = 0;

	if (!h5_tx_is_new(vfs->file, address))
		rc = h5_naming_order(vfs, &(struct h5_naming_plan){.to = name->directory, .more = address});
	if (rc)
		return rc;
	h5_unit_begin(vfs->file);
	rc = h5_object_add_name(vfs->file, address);
	if (!rc)
		rc = h5_naming_insert_object(name, address, of->entity.kind, &entry->node);
	if (!rc)
		rc = h5_naming_reply(name, entry);
	rc = h5_naming_end_unit(vfs, rc, entry);
	if (rc)
		return rc;
	h5_naming_changed(name, 1);
	h5_change_note_status(vfs, address);
	return 0;
}

int h5_vfs_link(struct h5_vfs *vfs, struct h5_node *node, struct h5_node *parent, const char *text,
		struct h5_vfs_entry *entry)
{
	struct h5_naming name;
	int rc = h5_naming_begin(vfs, parent, text, &name, entry);

	if (rc)
		return rc;
	rc = check_linkable(vfs, node);
	if (!rc) {
		h5_pending_end(vfs, node->entity.address);
		rc = add_name(&name, node, entry);
	}
	return h5_naming_end(&name, rc);
}

/* ---- unlink, rmdir ---- */

static int remove_found(struct h5_naming *name)
{
	const struct h5_node *directory = name->directory;
	struct h5_vfs *vfs = name->vfs;
	struct h5_unnamed object;
	int rc = h5_naming_order(
		vfs, &(struct h5_naming_plan){.from = directory, .less = h5_naming_counted(name)});

	if (rc)
		return rc;
	h5_unit_begin(vfs->file);
	rc = h5_naming_remove(name);
	if (!rc)
		rc = h5_naming_drop(name, &object);
	rc = h5_unit_end(vfs->file, rc);
	if (rc)
		return rc;
	if (object.address)
		h5_pending_end(vfs, object.address);
	h5_naming_changed(name, -1);
	h5_naming_detach(name);
	/* One that is above the name has another name, even if its count is wrong. */
	object.last = object.last && !h5_naming_is_above(directory, vfs->file, object.address);
	h5_naming_end_object(vfs, &object);
	return 0;
}

static int check_unlink(const struct h5_naming *name)
{
	struct h5_entity entity;
	int rc;

	/* Of other links only the link goes. */
	if (name->link.type != H5_LINK_HARD)
		return 0;
	rc = h5_naming_resolve(name, &entity);
	if (rc)
		return rc;
	return entity.kind == H5_NODE_DIRECTORY ? -EISDIR : 0;
}

static int check_rmdir(const struct h5_naming *name)
{
	struct h5_entity entity;
	int rc = h5_naming_resolve(name, &entity);

	if (rc)
		return rc;
	if (entity.kind != H5_NODE_DIRECTORY)
		return -ENOTDIR;
	if (name->link.type != H5_LINK_HARD)
		return 0;
	return h5_naming_check_removable(name->vfs, entity.file, entity.address);
}

static int remove_name(struct h5_vfs *vfs, struct h5_node *parent, const char *text,
		       int (*check)(const struct h5_naming *name))
{
	struct h5_naming name;
	int rc = h5_change_begin(vfs, parent);

	if (rc)
		return rc;
	rc = h5_naming_find(vfs, parent, text, &name);
	if (!rc && !name.exists)
		rc = -ENOENT;
	if (!rc)
		rc = check(&name);
	if (!rc)
		rc = remove_found(&name);
	h5_naming_release(&name);
	h5_change_end(vfs);
	return rc;
}

int h5_naming_unlink(struct h5_vfs *vfs, struct h5_node *parent, const char *text)
{
	return remove_name(vfs, parent, text, check_unlink);
}

int h5_vfs_rmdir(struct h5_vfs *vfs, struct h5_node *parent, const char *text)
{
	return remove_name(vfs, parent, text, check_rmdir);
}

#include "vfs/source.h"

#include "base/error.h"
#include "change/transaction.h"
#include "dataset/take_over.h"
#include "object/group_write.h"
#include "vfs/name_change.h"
#include "vfs/objects.h"
#include "vfs/open_file.h"
#include "vfs/paths.h"
#include "vfs/plain.h"
#include "vfs/replace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* ---- beginning and ending ---- */

/* No name leads to the dataset. */
static void remove_made(struct h5_vfs *vfs, uint64_t address)
{
	if (address == H5_UNDEF)
		return;
	h5_dataset_writer_forget(vfs->file, address);
	h5_naming_end_object(vfs, &(struct h5_unnamed){.address = address, .last = true});
}

/* With the exclusive lock. */
static void source_free(struct h5_source *source)
{
	struct h5_vfs *vfs = source->vfs;

	h5_intake_end(&source->intake);
	if (source->intake.dataset != source->shown)
		remove_made(vfs, source->intake.dataset);
	h5_vfs_forget(vfs, source->directory, 1);
	DL_DELETE(vfs->sources, source);
	free(source->name);
	free(source->attribute);
	free(source);
}

/* Inside a change. *out is owned by the list of sources. */
static int source_new(struct h5_vfs *vfs, const struct h5_view_ops *view, struct h5_source **out)
{
	struct h5_source *source = calloc(1, sizeof *source);
	int rc;

	if (!source)
		return -ENOMEM;
	source->vfs = vfs;
	source->shown = source->intake.target = source->intake.dataset = H5_UNDEF;
	source->intake.ops = view->intake;
	source->intake.file = vfs->file;
	source->intake.filters = vfs->options.filters;
	source->intake.gather = vfs->options.gather;
	DL_APPEND(vfs->sources, source);
	rc = h5_intake_begin(&source->intake);
	if (rc)
		source_free(source);
	*out = source;
	return rc;
}

/* ---- making ---- */

/* Sets the name of the link that the file name stands for. -EINVAL: there is none. */
static int set_name(struct h5_source *source, const struct h5_node *directory, const char *text)
{
	const char *suffix = directory->entity.view->suffix;
	char stem[H5_NAME_MAX + 1], name[H5_NAME_MAX + 1];
	size_t size = strlen(text), n = strlen(suffix);

	if (size > H5_NAME_MAX)
		return -ENAMETOOLONG;
	if (size <= n || strcmp(text + size - n, suffix) != 0)
		return h5_fail(-EINVAL, directory->entity.address, "the name does not end in %s", suffix);
	memcpy(stem, text, size - n);
	stem[size - n] = 0;
	if (!h5_name_can_be_new(stem))
		return h5_fail(-EINVAL, directory->entity.address, "%s is no name of a new link", stem);
	source->name_size = h5_name_unescape(stem, name);
	source->name = malloc(source->name_size);
	if (!source->name)
		return -ENOMEM;
	memcpy(source->name, name, source->name_size);
	return 0;
}

/* The dataset that a hard link of that name leads to; H5_UNDEF: the name is free. -EEXIST: it leads to
 * something else. */
static int find_named(const struct h5_source *source, const struct h5_node *directory, uint64_t *address)
{
	struct h5_file *file = source->vfs->file;
	struct h5_link link = {0};
	const struct h5_object *group;
	enum h5_node_kind kind;
	struct h5_lru_entry *ref;
	int rc;

	*address = H5_UNDEF;
	if (h5_objects_is_nameless(directory))
		return -ENOENT;
	rc = h5_object_get(file, directory->entity.address, &ref, &group);
	if (rc)
		return rc;
	rc = group->kind == H5_OBJECT_GROUP
		     ? h5_group_lookup(file, group, source->name, source->name_size, &link)
		     : -ENOTDIR;
	h5_file_put(file, ref);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	*address = link.address;
	if (link.type != H5_LINK_HARD)
		rc = -EEXIST;
	h5_link_release(&link);
	if (!rc)
		rc = h5_entity_kind(file, *address, &kind);
	return rc ? rc : kind == H5_NODE_DATASET ? 0 : -EEXIST;
}

/* -EEXIST: the view shows a file of that name. */
static int check_not_shown(struct h5_vfs *vfs, const struct h5_node *directory, const char *text)
{
	struct h5_entity there = {0};
	int rc = h5_lookup_name(vfs, directory, text, &there);

	h5_entity_release(&there);
	if (!rc)
		return -EEXIST;
	return h5_is_passing(rc) ? rc : 0;
}

/* The file of a dataset, which the view does not show yet. */
static int name_dataset(struct h5_source *source, const struct h5_node *directory, const char *text,
			struct h5_entity *entity)
{
	int rc = set_name(source, directory, text);

	if (!rc)
		rc = find_named(source, directory, &source->shown);
	if (!rc && source->shown != H5_UNDEF)
		rc = check_not_shown(source->vfs, directory, text);
	source->intake.target = source->shown;
	entity->address = source->intake.dataset;
	return rc;
}

static int name_attribute(struct h5_source *source, const struct h5_node *directory, const char *text,
			  struct h5_entity *entity)
{
	int rc = h5_views_attribute_name(directory, text, &source->attribute);

	if (!rc)
		rc = check_not_shown(source->vfs, directory, text);
	if (!rc && !(entity->target = strdup(source->attribute)))
		rc = -ENOMEM;
	entity->address = directory->entity.address;
	return rc;
}

static int make(struct h5_source *source, struct h5_node *directory, const char *text,
		struct h5_vfs_entry *entry)
{
	struct h5_vfs *vfs = source->vfs;
	struct h5_entity entity = {.kind = H5_NODE_VIEW, .file = vfs->file, .view = directory->entity.view};
	struct h5_times times = {0};
	int rc = entity.view->of_attributes ? name_attribute(source, directory, text, &entity)
					    : name_dataset(source, directory, text, &entity);

	if (!rc)
		rc = h5_node_get(vfs, directory, text, &entity, &entry->node);
	if (!rc)
		rc = h5_stat_entry(vfs, NULL, &times, entry);
	if (rc)
		return rc;
	entry->passing = true;
	source->made = entry->node;
	source->directory = directory;
	pthread_mutex_lock(&vfs->lock);
	directory->references++;
	pthread_mutex_unlock(&vfs->lock);
	return 0;
}

int h5_source_make(struct h5_vfs *vfs, struct h5_node *directory, const char *text,
		   struct h5_vfs_entry *entry)
{
	struct h5_source *source;
	int rc;

	*entry = (struct h5_vfs_entry){0};
	if (directory->entity.kind != H5_NODE_DIRECTORY || !directory->entity.view->intake ||
	    h5_node_is_part(directory))
		return -EPERM;
	rc = h5_change_begin_in(vfs, directory);
	if (rc)
		return rc;
	rc = source_new(vfs, directory->entity.view, &source);
	if (!rc) {
		rc = make(source, directory, text, entry);
		if (rc)
			source_free(source);
	}
	h5_change_end(vfs);
	return rc;
}

static struct h5_source *find_made(const struct h5_vfs *vfs, const struct h5_node *node)
{
	struct h5_source *source;

	DL_FOREACH(vfs->sources, source)
	if (source->made == node)
		return source;
	return NULL;
}

void h5_sources_drop(struct h5_vfs *vfs, const struct h5_node *node)
{
	struct h5_source *source;

	h5_lock_to_write(vfs);
	source = find_made(vfs, node);
	if (source)
		source_free(source);
	h5_change_end(vfs);
}

/* ---- opening ---- */

/* The file shows this already. */
static int set_target(struct h5_source *source, const struct h5_node *node)
{
	source->shown = source->intake.target = node->entity.address;
	if (!node->entity.target)
		return 0;
	source->shown = source->intake.target = H5_UNDEF;
	source->attribute = strdup(node->entity.target);
	return source->attribute ? 0 : -ENOMEM;
}

int h5_source_open(struct h5_handle *h, const struct h5_node *node, bool cut)
{
	struct h5_vfs *vfs = h->vfs;
	int rc;

	if (!node->entity.view->intake || h->mode != O_WRONLY || h5_node_is_part(node))
		return h5_fail(-EPERM, node->entity.address, "the file can only be written as a whole");
	rc = h5_change_begin_in(vfs, node);
	if (rc)
		return rc;
	h->source = find_made(vfs, node);
	if (!h->source) {
		rc = source_new(vfs, node->entity.view, &h->source);
		if (rc)
			h->source = NULL;
		else
			rc = set_target(h->source, node);
	}
	if (!rc) {
		h->source->is_cut = cut || h->source->made;
		h->source->made = NULL;
	}
	h5_change_end(vfs);
	return rc;
}

/* ---- writing ---- */

static int take(struct h5_handle *h, uint64_t offset, const void *buf, size_t n, bool append)
{
	struct h5_intake *intake = &h->source->intake;

	if (h->source->is_done && !intake->ops->may_grow)
		return h5_fail(-EINVAL, h->node->entity.address, "the file was whole already");
	if (!append && offset != intake->taken && !intake->failure)
		return h5_fail(-EOPNOTSUPP, h->node->entity.address, "the file is only written in order");
	h->source->failure = h5_intake_take(intake, buf, n);
	return h->source->failure;
}

int h5_source_write(struct h5_handle *h, uint64_t offset, const void *buf, size_t n, bool append,
		    size_t *written)
{
	int rc = h5_change_begin_in(h->vfs, h->node);

	*written = 0;
	if (rc) {
		h5_lock_to_write(h->vfs);
		h->source->failure = rc;
	} else {
		rc = take(h, offset, buf, n, append);
	}
	if (!rc) {
		h->source->is_done = false;
		*written = n;
	}
	h5_change_end(h->vfs);
	return rc;
}

int h5_source_truncate(struct h5_handle *h, uint64_t size)
{
	uint64_t taken;

	h5_lock_to_write(h->vfs);
	taken = h->source->intake.taken;
	h5_unlock(h->vfs);
	return size == taken
		       ? 0
		       : h5_fail(-EOPNOTSUPP, h->node->entity.address, "the file is only written in order");
}

/* ---- when it is whole ---- */

/* Gives the dataset its name. No name of it is known, so this name needs no order, even if a commit knows the
 * dataset already. */
static int insert(struct h5_source *source)
{
	struct h5_vfs *vfs = source->vfs;
	struct h5_node *directory = source->directory;
	const struct h5_link link = {.type = H5_LINK_HARD, .address = source->intake.dataset};
	struct h5_naming name = {.vfs = vfs,
				 .directory = directory,
				 .link = {.name = source->name, .name_size = source->name_size}};
	char text[H5_NAME_MAX + 1];
	uint64_t taken;
	int rc = find_named(source, directory, &taken);

	if (!rc && taken != H5_UNDEF)
		rc = -EEXIST;
	if (rc)
		return rc;
	h5_name_escape(source->name, source->name_size, text);
	name.note = h5_names_note(directory, text);
	if (!name.note)
		return -ENOMEM;
	h5_unit_begin(vfs->file);
	rc = h5_unit_end(vfs->file, h5_naming_insert(&name, link));
	if (!rc) {
		h5_naming_changed(&name, 1);
		h5_names_tell(vfs, directory, text);
	}
	h5_naming_release(&name);
	return rc;
}

/* True: the dataset can have so many rows. */
static bool can_have_rows(const struct h5_dataset *dataset, uint64_t rows)
{
	return h5_dataset_chunks(dataset) && dataset->space.has_max && rows <= dataset->space.max[0];
}

/* The dataset that is there keeps its filters and chunks if it can. */
static int replace(struct h5_source *source)
{
	const struct h5_intake *intake = &source->intake;
	const struct h5_dataset *from, *to;
	struct h5_lru_entry *from_ref, *to_ref;
	bool alike;
	int rc = h5_dataset_get(intake->file, source->shown, &to_ref, &to);

	if (rc)
		return rc;
	rc = h5_dataset_get(intake->file, intake->dataset, &from_ref, &from);
	if (!rc) {
		rc = h5_dataset_is_alike(from, to, &alike);
		alike &= from->size == to->size || can_have_rows(to, from->space.dims[0]);
		h5_file_put(intake->file, from_ref);
	}
	h5_file_put(intake->file, to_ref);
	if (rc)
		return rc;
	if (alike)
		return h5_replace_contents(source->vfs, intake->dataset, source->shown, NULL);
	h5_plain_remove(source->vfs, source->shown);
	return h5_dataset_take_over(intake->file, source->shown, intake->dataset);
}

/* A text editor ends the last line, which the attribute does not have. */
static int set_attribute(struct h5_handle *h)
{
	const struct h5_buf *text = &h->source->intake.text;
	const size_t n = text->size && text->data[text->size - 1] == '\n' ? text->size - 1 : text->size;

	return h5_attributes_set_text(h->vfs, h->node, h->source->attribute, n ? text->data : "", n);
}

static int make_dataset(struct h5_handle *h)
{
	struct h5_source *source = h->source;
	struct h5_intake *intake = &source->intake;
	const uint64_t before = intake->dataset;
	int rc = h5_intake_finish(intake);

	if (before != intake->dataset && before != source->shown)
		remove_made(h->vfs, before);
	if (rc)
		return rc;
	if (source->shown == H5_UNDEF) {
		rc = insert(source);
		if (!rc)
			source->shown = intake->dataset;
	} else {
		rc = replace(source);
	}
	return rc;
}

static int apply(struct h5_handle *h)
{
	int rc = h->source->intake.failure ? h->source->intake.failure : h->source->failure;

	if (rc)
		return h5_fail(rc, h->node->entity.address, "a part of the file could not be written");
	rc = h->source->attribute ? set_attribute(h) : make_dataset(h);
	h->source->is_done = !rc;
	h5_change_note(h->vfs, h->node);
	return rc;
}

int h5_source_flush(struct h5_handle *h)
{
	int rc;

	/* A shell closes the file before the program that it starts has written anything. */
	if (!h->source->intake.taken && !h->source->failure && !h->source->intake.failure)
		return 0;
	rc = h5_change_begin_in(h->vfs, h->node);
	if (rc)
		return rc;
	if (!h->source->is_done)
		rc = apply(h);
	h5_change_end(h->vfs);
	return rc;
}

/* ---- closing ---- */

void h5_source_close(struct h5_handle *h)
{
	struct h5_source *source = h->source;
	const uintmax_t taken = source->intake.taken;
	int rc = 0;

	h5_lock_to_write(h->vfs);
	if (source->attribute && source->is_cut && !taken)
		rc = apply(h);
	if (rc || (taken && !source->is_done))
		h5_log_about(h->vfs, h->node->entity.address,
			     "a file that was not whole was dropped: %ju bytes", taken);
	source_free(source);
	h5_change_end(h->vfs);
}

/* Requests that set and remove extended attributes, by the rules of doc/h5fs.1, Writing. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "format/datatype_make.h"
#include "object/attribute_write.h"
#include "object/numpy_parse.h"
#include "object/value_parse.h"
#include "vfs/changes.h"
#include "vfs/declare.h"
#include "vfs/directory.h"
#include "vfs/name.h"
#include "vfs/paths.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

/* An attribute that is to be set. */
struct setting {
	struct h5_vfs *vfs;
	const struct h5_node *node;
	const char *name; /* of the attribute */
	const char *value;
	size_t size;
};

static int parse(const struct setting *set, const struct h5_datatype *type, const struct h5_dataspace *space,
		 const uint8_t *old, uint8_t *data)
{
	struct h5_value_context context = h5_paths_context(set->vfs, set->vfs->file);
	struct h5_value_parser parser = {.context = &context,
					 .heap = &set->vfs->heap.sink,
					 .object_address = h5_paths_find_object,
					 .arg = set->vfs};

	return h5_value_parse(&parser, type, space, set->value, set->size, old, data);
}

/* Room for all elements, zeros. */
static int allocate(const struct setting *set, const struct h5_datatype *type,
		    const struct h5_dataspace *space, uint8_t **data)
{
	uint64_t n;

	/* The text of an element has at least one byte. A type makes as many as the text of zeros may have.
	 */
	if (!h5_mul(space->elements, type->size, &n) || space->elements > h5_max(set->size, H5_XATTR_MAX))
		return h5_fail(-E2BIG, set->node->entity.address, "attribute %s is too large", set->name);
	*data = calloc(1, (size_t)n + 1);
	return *data ? 0 : h5_fail(-ENOMEM, set->node->entity.address, "attribute: out of memory");
}

/* ---- an attribute that is there keeps its type and shape ---- */

static int set_old_text(const struct setting *set, const struct h5_attribute *old)
{
	uint8_t *data;
	int rc = allocate(set, old->type, &old->space, &data);

	if (rc)
		return rc;
	rc = parse(set, old->type, &old->space, old->data, data);
	if (!rc)
		rc = h5_attribute_update(set->vfs->file, set->node->entity.address, old->name, data,
					 old->size);
	free(data);
	return rc;
}

static int set_old_bytes(const struct setting *set, const struct h5_attribute *old)
{
	if (!h5_datatype_is_fixed(old->type))
		return h5_fail(-EINVAL, set->node->entity.address,
			       "attribute %s cannot be set to bytes: they would be addresses", old->name);
	if (set->size != old->size)
		return h5_fail(-EINVAL, set->node->entity.address, "attribute %s has %zu bytes, not %zu",
			       old->name, old->size, set->size);
	return h5_attribute_update(set->vfs->file, set->node->entity.address, old->name, set->value,
				   set->size);
}

/* ---- new attributes ---- */

static int create_text(const struct setting *set)
{
	const uint64_t address = set->node->entity.address;
	struct h5_datatype *type = NULL;
	struct h5_dataspace space;
	uint8_t *data = NULL;
	int rc = h5_value_guess(set->value, set->size, h5_file_superblock(set->vfs->file)->size_of_offsets,
				&type, &space);

	if (!rc)
		rc = allocate(set, type, &space, &data);
	if (!rc)
		rc = parse(set, type, &space, NULL, data);
	if (!rc)
		rc = h5_attribute_create(set->vfs->file, address, set->name, type, &space, data);
	free(data);
	h5_datatype_free(type);
	return rc;
}

static int create_bytes(const struct setting *set)
{
	struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE,
				     .rank = 1,
				     .dims = {set->size},
				     .max = {set->size},
				     .elements = set->size};
	struct h5_datatype *type = h5_datatype_make_integer(1, false, H5_ORDER_LE);
	int rc = type ? h5_attribute_create(set->vfs->file, set->node->entity.address, set->name, type,
					    &space, set->value)
		      : h5_fail(-ENOMEM, set->node->entity.address, "attribute: out of memory");

	h5_datatype_free(type);
	return rc;
}

/* ---- types ---- */

/* The text of the elements, as it is shown. */
static int print(const struct setting *set, const struct h5_datatype *type, const struct h5_dataspace *space,
		 const uint8_t *data, struct h5_buf *text)
{
	struct h5_value_context context = h5_paths_context(set->vfs, set->vfs->file);
	int rc;

	h5_buf_init(text, H5_XATTR_MAX);
	rc = h5_value_text(&context, type, space, data, text);
	return rc ? rc : text->err;
}

/* The elements that the text stands for; nothing is lost if these show as the same text. */
static int convert_text(const struct setting *set, const struct h5_buf *text, const struct h5_datatype *type,
			const struct h5_dataspace *space, uint8_t *data)
{
	struct setting old = *set;
	struct h5_buf again;
	int rc;

	old.value = text->size ? text->data : "";
	old.size = text->size;
	rc = parse(&old, type, space, NULL, data);
	if (rc)
		return rc;
	rc = print(set, type, space, data, &again);
	if (!rc && h5_name_compare(text->data, text->size, again.data, again.size))
		rc = h5_fail(-EINVAL, set->node->entity.address,
			     "attribute %s: its value would change with its type", set->name);
	h5_buf_release(&again);
	return rc;
}

/* `old` NULL: there is none. */
static int set_parsed_type(const struct setting *set, const struct h5_attribute *old,
			   const struct h5_datatype *type, const struct h5_dataspace *space)
{
	const uint64_t address = set->node->entity.address;
	struct h5_buf text = {0};
	uint8_t *data = NULL;
	int rc = allocate(set, type, space, &data);

	if (!rc && old)
		rc = print(set, old->type, &old->space, old->data, &text);
	if (!rc && old)
		rc = convert_text(set, &text, type, space, data);
	if (!rc)
		rc = old ? h5_attribute_replace(set->vfs->file, address, old->name, type, space, data)
			 : h5_attribute_create(set->vfs->file, address, set->name, type, space, data);
	h5_buf_release(&text);
	free(data);
	return rc;
}

/* Converts the attribute to the type, or makes one of zeros and empty texts. */
static int set_type(const struct setting *set, const struct h5_attribute *old)
{
	struct h5_datatype *type = NULL;
	struct h5_dataspace space;
	int rc;

	rc = h5_numpy_parse_shaped(set->value, set->size, h5_file_superblock(set->vfs->file)->size_of_offsets,
				   &type, &space);
	if (!rc)
		rc = set_parsed_type(set, old, type, &space);
	h5_datatype_free(type);
	return rc;
}

/* ---- requests ---- */

static int find(const struct setting *set, struct h5_attribute *found)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(set->vfs->file, set->node->entity.address, &ref, &object);

	if (rc)
		return rc;
	rc = h5_attributes_find(set->vfs->file, object, set->name, found);
	assert(rc || found->type); /* of one that is damaged it tells the error */
	h5_file_put(set->vfs->file, ref);
	return rc;
}

static int set_found(const struct setting *set, enum h5_attribute_form form, int flags)
{
	struct h5_attribute old = {0};
	int rc = find(set, &old);

	if (!rc && flags & XATTR_CREATE)
		rc = -EEXIST;
	else if (!rc && form == H5_ATTRIBUTE_TYPE)
		rc = set_type(set, &old);
	else if (!rc)
		rc = form == H5_ATTRIBUTE_TEXT ? set_old_text(set, &old) : set_old_bytes(set, &old);
	h5_attribute_release(&old);
	return rc;
}

static int create(const struct setting *set, enum h5_attribute_form form)
{
	if (!*set->name || h5_name_is_cut(set->name))
		return h5_fail(-EINVAL, set->node->entity.address, "%s is no name of a new attribute",
			       set->name);
	if (form == H5_ATTRIBUTE_TYPE)
		return set_type(set, NULL);
	return form == H5_ATTRIBUTE_TEXT ? create_text(set) : create_bytes(set);
}

/* Sets or makes the attribute, in one unit, since its elements may go to the global heap. */
static int set_attribute(const struct setting *set, enum h5_attribute_form form, bool may_create, int flags)
{
	struct h5_file *file = set->vfs->file;
	int rc;

	h5_unit_begin(file);
	rc = set_found(set, form, flags);
	if (rc == -ENODATA && (may_create || form == H5_ATTRIBUTE_TYPE) && !(flags & XATTR_REPLACE))
		rc = create(set, form);
	return h5_unit_end(file, rc);
}

/* Which attribute the name means, and in which form; NULL: none that can be set. */
static const char *attribute_of(const struct h5_vfs *vfs, const char *name, enum h5_attribute_form *form,
				bool *listed)
{
	*listed = !strncmp(name, "user.", 5);
	*form = *listed && !vfs->options.raw_attributes ? H5_ATTRIBUTE_TEXT : H5_ATTRIBUTE_RAW;
	if (*listed)
		return name + 5;
	if (!strncmp(name, "h5fs.type.", 10)) {
		*form = H5_ATTRIBUTE_TYPE;
		return name + 10;
	}
	return strncmp(name, "h5fs.raw.", 9) ? NULL : name + 9;
}

/* Properties are always there, even if they have no value. */
static int set_property(const struct setting *set, const char *name, int flags)
{
	if (flags & XATTR_CREATE)
		return -EEXIST;
	return h5_declare(set->vfs, set->node, name, set->value, set->size);
}

int h5_attributes_set_text(struct h5_vfs *vfs, const struct h5_node *node, const char *name, const char *text,
			   size_t n)
{
	const struct setting set = {.vfs = vfs, .node = node, .name = name, .value = text, .size = n};

	return set_attribute(&set, H5_ATTRIBUTE_TEXT, true, 0);
}

int h5_vfs_setxattr(struct h5_vfs *vfs, const struct h5_node *node, const char *name, const char *value,
		    size_t size, int flags)
{
	struct setting set = {.vfs = vfs, .node = node, .value = value, .size = size};
	enum h5_attribute_form form;
	bool listed;
	int rc = h5_change_begin(vfs, node);

	if (rc)
		return rc;
	set.name = attribute_of(vfs, name, &form, &listed);
	if (set.name)
		rc = set_attribute(&set, form, listed, flags);
	else
		rc = strncmp(name, "h5fs.", 5) ? -EPERM : set_property(&set, name + 5, flags);
	if (!rc && set.name)
		h5_change_note_status(vfs, node->entity.address);
	else if (!rc)
		h5_change_note_object(vfs, node);
	h5_change_end(vfs);
	return rc;
}

int h5_attributes_remove_file(struct h5_vfs *vfs, const struct h5_node *directory, const char *name)
{
	struct h5_entity entity = {0};
	int rc = h5_change_begin_in(vfs, directory);

	if (rc)
		return rc;
	rc = h5_lookup_name(vfs, directory, name, &entity);
	if (!rc && entity.kind != H5_NODE_VIEW)
		rc = entity.kind == H5_NODE_DIRECTORY ? -EISDIR : -EPERM;
	if (!rc)
		rc = h5_attribute_remove(vfs->file, entity.address, entity.target);
	if (!rc)
		h5_change_note_status(vfs, entity.address);
	h5_entity_release(&entity);
	h5_change_end(vfs);
	return rc;
}

int h5_vfs_removexattr(struct h5_vfs *vfs, const struct h5_node *node, const char *name)
{
	struct setting set = {.vfs = vfs, .node = node};
	struct h5_attribute found = {0};
	enum h5_attribute_form form;
	bool listed;
	int rc = h5_change_begin(vfs, node);

	if (rc)
		return rc;
	set.name = attribute_of(vfs, name, &form, &listed);
	rc = set.name && listed ? find(&set, &found) : -EPERM;
	if (!rc)
		rc = h5_attribute_remove(vfs->file, node->entity.address, found.name);
	if (!rc)
		h5_change_note_status(vfs, node->entity.address);
	h5_attribute_release(&found);
	h5_change_end(vfs);
	return rc;
}

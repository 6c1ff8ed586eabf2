/* Attributes of HDF5 as extended attributes (MAPPING section 4). */
#include "vfs/private.h"

#include "base/error.h"
#include "object/attribute.h"
#include "vfs/name.h"

#include <string.h>

enum {
	VALUE_MAX = 65536, /* Linux' limits: of a value, and of the list */
	LIST_MAX = 65535,
	SMALL = 1024 /* bytes of numbers whose text is below VALUE_MAX whatever they are */
};

#define USER "user."
#define OWN  "h5fs."
#define RAW  "h5fs.raw."
#define TYPE "h5fs.type."

/* ---- one attribute ---- */

static int add_value(struct h5_vfs *vfs, struct h5_file *file, const struct h5_attribute *a, bool raw,
		     struct h5_buf *out)
{
	struct h5_value_context context = h5_paths_context(vfs, file);

	if (!a->type)
		return h5_fail(-EUCLEAN, H5_UNDEF, "attribute %s is damaged", a->name);
	if (raw) {
		h5_buf_add(out, a->data, a->size);
		return out->err;
	}
	return h5_value_text(&context, a->type, &a->space, a->data, out);
}

/* An attribute whose name is cut in the list. Only a comparison with all names tells which one it is. */
static int find_cut(struct h5_file *file, const struct h5_object *object, const char *cut,
		    struct h5_attribute *a)
{
	struct h5_attribute_walk attributes;
	const struct h5_attribute *found;
	int rc = h5_attribute_begin(&attributes, file, object);

	while (!rc && (rc = h5_attribute_next(&attributes, &found)) > 0) {
		char name[H5_NAME_MAX + 1];

		h5_name_of_attribute(found->name, name);
		rc = strcmp(name + strlen(USER), cut) ? 0 : 1;
	}
	if (rc == 1)
		rc = h5_attribute_lookup(file, object, found->name, a);
	else if (!rc)
		rc = -ENODATA;
	h5_attribute_end(&attributes);
	return rc;
}

/* The attribute NAME that is listed as `user.NAME`, which may be a cut one. */
static int find_attribute(struct h5_file *file, const struct h5_object *object, const char *name,
			  struct h5_attribute *a)
{
	int rc = h5_attribute_lookup(file, object, name, a);

	return rc == -ENODATA && h5_name_is_cut(name) ? find_cut(file, object, name, a) : rc;
}

/* The file of a view has those of what it shows. */
static bool has_attributes(const struct h5_node *node)
{
	return node->kind != H5_NODE_VIEWS && !node->target;
}

enum form { FORM_VALUE, FORM_RAW, FORM_TYPE };

static int get_attribute(struct h5_vfs *vfs, struct h5_node *node, const char *name, enum form form,
			 struct h5_buf *out)
{
	struct h5_attribute a = {0};
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(node->file, node->address, &ref, &object);

	if (rc)
		return rc;
	rc = find_attribute(node->file, object, name, &a);
	if (!rc && form == FORM_TYPE && a.type)
		h5_datatype_numpy_shaped(a.type, &a.space, out);
	else if (!rc)
		rc = add_value(vfs, node->file, &a, form == FORM_RAW, out);
	h5_attribute_release(&a);
	h5_file_put(node->file, ref);
	return rc ? rc : out->err;
}

static int get(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	if (!has_attributes(node))
		return -ENODATA;
	out->limit = VALUE_MAX;
	if (!strncmp(name, USER, strlen(USER)))
		return get_attribute(vfs, node, name + strlen(USER),
				     vfs->options.raw_attributes ? FORM_RAW : FORM_VALUE, out);
	if (!strncmp(name, RAW, strlen(RAW)))
		return get_attribute(vfs, node, name + strlen(RAW), FORM_RAW, out);
	if (!strncmp(name, TYPE, strlen(TYPE)))
		return get_attribute(vfs, node, name + strlen(TYPE), FORM_TYPE, out);
	if (!strncmp(name, OWN, strlen(OWN)))
		return h5_property_get(vfs, node, name + strlen(OWN), out);
	return -ENODATA;
}

int h5_vfs_getxattr(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	struct h5_account account = {0};
	size_t before = out->size;
	int rc;

	do {
		out->size = before;
		out->err = 0;
		h5_reading_begin(vfs, &account);
		rc = get(vfs, node, name, out);
	} while (h5_reading_again(vfs, &account, &rc));
	return rc;
}

/* ---- the list ---- */

struct listing {
	struct h5_vfs *vfs;
	struct h5_file *file;
	struct h5_buf *out; /* NULL: only counts */
	size_t size;
	uint64_t unlisted;
};

/* -E2BIG: the value cannot be got; what a list names and nobody can get makes rsync -X skip the whole file.
 */
static int check_size(const struct listing *l, const struct h5_attribute *a)
{
	struct h5_buf text;
	bool number;
	int rc;

	if (!a->type)
		return 0; /* getting it tells what is damaged */
	if (l->vfs->options.raw_attributes)
		return a->size <= VALUE_MAX ? 0 : -E2BIG;
	number = a->type->class == H5_CLASS_INTEGER || a->type->class == H5_CLASS_FLOAT;
	if (number && a->size <= SMALL)
		return 0;
	h5_buf_init(&text, VALUE_MAX);
	rc = add_value(l->vfs, l->file, a, false, &text);
	if (!rc)
		rc = text.err;
	h5_buf_release(&text);
	/* Damage is told to who gets it. */
	return rc == -E2BIG || h5_is_passing(rc) ? rc : 0;
}

static int list_attribute(struct listing *l, const struct h5_attribute *a)
{
	char name[H5_NAME_MAX + 1];
	size_t n = h5_name_of_attribute(a->name, name) + 1;
	int rc = l->size + n > LIST_MAX ? -E2BIG : check_size(l, a);

	if (rc == -E2BIG) {
		l->unlisted++;
		return 0;
	}
	if (rc)
		return rc;
	l->size += n;
	if (l->out)
		h5_buf_add(l->out, name, n);
	return l->out ? l->out->err : 0;
}

static int list(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out, uint64_t *unlisted)
{
	struct listing l = {.vfs = vfs, .file = node->file, .out = out};
	struct h5_attribute_walk attributes;
	const struct h5_object *object;
	const struct h5_attribute *a;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(node->file, node->address, &ref, &object);

	if (rc)
		return rc;
	rc = h5_attribute_begin(&attributes, node->file, object);
	while (!rc && (rc = h5_attribute_next(&attributes, &a)) > 0)
		rc = list_attribute(&l, a);
	h5_attribute_end(&attributes);
	h5_file_put(node->file, ref);
	*unlisted = l.unlisted;
	return rc;
}

int h5_vfs_listxattr(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out)
{
	struct h5_account account = {0};
	size_t before = out->size;
	uint64_t unlisted;
	int rc;

	do {
		out->size = before;
		out->err = 0;
		h5_reading_begin(vfs, &account);
		rc = has_attributes(node) ? list(vfs, node, out, &unlisted) : 0;
	} while (h5_reading_again(vfs, &account, &rc));
	return rc;
}

int h5_xattr_unlisted(struct h5_vfs *vfs, struct h5_node *node, uint64_t *count)
{
	return list(vfs, node, NULL, count);
}

/* The attributes of an object as extended attributes: their list, and the value of each.
 *
 * A program that lists the xattrs of an object asks for all values next, and asks twice for each: for its
 * size, and for its bytes. To make a list, all texts are made anyway, since attributes with too long ones are
 * left out. So the texts of a list stay in the cache of chunks, and values come from there. */
#include "vfs/private.h"

#include "base/array.h"
#include "base/error.h"
#include "base/lower_bound.h"
#include "object/attribute.h"
#include "vfs/name.h"
#include "vfs/paths.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	LIST_MAX = 65535,   /* most bytes of a list: the limit of Linux */
	KEPT_MAX = 4 << 20, /* most bytes of texts that one list keeps */
	SMALL = 1024, /* bytes: the text of so many bytes of numbers is never longer than H5_XATTR_MAX */
};

#define USER "user."

/* ---- one attribute ---- */

static int add_value(struct h5_vfs *vfs, struct h5_file *file, const struct h5_attribute *a,
		     enum h5_attribute_form form, struct h5_buf *out)
{
	struct h5_value_context context = h5_paths_context(vfs, file);

	if (!a->type)
		return h5_fail(-EUCLEAN, H5_UNDEF, "attribute %s is damaged", a->name);
	if (form == H5_ATTRIBUTE_TEXT)
		return h5_value_text(&context, a->type, &a->space, a->data, out);
	if (form == H5_ATTRIBUTE_TYPE)
		h5_datatype_numpy_shaped(a->type, &a->space, out);
	else
		h5_buf_add(out, a->data, a->size);
	return out->err;
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

int h5_attributes_find(struct h5_file *file, const struct h5_object *object, const char *name,
		       struct h5_attribute *a)
{
	int rc = h5_attribute_lookup(file, object, name, a);

	return rc == -ENODATA && h5_name_is_cut(name) ? find_cut(file, object, name, a) : rc;
}

/* ---- the texts of all attributes ---- */

struct text {
	uint32_t name; /* offset in the list */
	uint32_t text, size;
};

struct texts {
	struct h5_buf list; /* user.NAME with a NUL, for each attribute */
	uint64_t unlisted;  /* attributes that the list leaves out */
	struct text *kept;  /* owned, sorted by name: attributes with whole names */
	size_t count, capacity;
	struct h5_charge charge; /* of `kept` */
	struct h5_buf values;	 /* texts of `kept` */
};

/* Makes the texts of an object. */
struct maker {
	struct h5_vfs *vfs;
	struct h5_node *node;
	struct texts *texts;
};

static void free_texts(void *value)
{
	struct texts *texts = value;

	h5_buf_release(&texts->list);
	free(texts->kept);
	h5_charge_release(&texts->charge);
	h5_buf_release(&texts->values);
	free(texts);
}

static enum h5_attribute_form listed_form(const struct h5_vfs *vfs)
{
	return vfs->options.raw_attributes ? H5_ATTRIBUTE_RAW : H5_ATTRIBUTE_TEXT;
}

static bool is_short(const struct h5_attribute *a)
{
	return a->type && a->size <= SMALL &&
	       (a->type->class == H5_CLASS_INTEGER || a->type->class == H5_CLASS_FLOAT);
}

/* Appends the value. -E2BIG: it is too long to be got. (If a list named it all the same, rsync -X would skip
 * the whole file.) *good: it has been appended. */
static int try_value(struct maker *maker, const struct h5_attribute *a, bool *good)
{
	struct texts *texts = maker->texts;
	size_t before = texts->values.size;
	int rc;

	*good = false;
	if (before >= KEPT_MAX && is_short(a))
		return 0;
	texts->values.limit = before + H5_XATTR_MAX;
	rc = add_value(maker->vfs, maker->node->entity.file, a, listed_form(maker->vfs), &texts->values);
	*good = !rc;
	if (rc) {
		texts->values.size = before;
		texts->values.err = 0;
	}
	/* A damaged attribute is listed. To get its value then tells of the damage. */
	return rc == -E2BIG || h5_is_passing(rc) ? rc : 0;
}

static int add_attribute(struct maker *maker, const struct h5_attribute *a)
{
	struct texts *texts = maker->texts;
	char name[H5_NAME_MAX + 1];
	size_t n = h5_name_of_attribute(a->name, name) + 1, before = texts->values.size;
	struct text text = {.name = (uint32_t)texts->list.size, .text = (uint32_t)before};
	bool good;
	int rc = texts->list.size + n > LIST_MAX ? -E2BIG : try_value(maker, a, &good);

	if (rc == -E2BIG) {
		texts->unlisted++;
		return 0;
	}
	if (rc)
		return rc;
	h5_buf_add(&texts->list, name, n);
	if (good && before < KEPT_MAX && !h5_name_is_cut(name)) {
		assert(texts->values.size <= KEPT_MAX + H5_XATTR_MAX);
		text.size = (uint32_t)(texts->values.size - before);
		rc = h5_array_reserve(&texts->kept, &texts->capacity, texts->count + 1, &texts->charge);
		if (rc)
			return rc;
		texts->kept[texts->count++] = text;
	} else {
		texts->values.size = before;
	}
	return texts->list.err;
}

static int add_attributes(struct maker *maker)
{
	struct h5_attribute_walk attributes;
	struct h5_file *file = maker->node->entity.file;
	const struct h5_object *object;
	const struct h5_attribute *a;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, maker->node->entity.address, &ref, &object);

	if (rc)
		return rc;
	rc = h5_attribute_begin(&attributes, file, object);
	while (!rc && (rc = h5_attribute_next(&attributes, &a)) > 0)
		rc = add_attribute(maker, a);
	h5_attribute_end(&attributes);
	h5_file_put(file, ref);
	return rc;
}

static int load_texts(void *arg, void **value, size_t *cost)
{
	struct texts *texts = calloc(1, sizeof *texts);
	struct maker *maker = arg;
	int rc;

	if (!texts)
		return -ENOMEM;
	maker->texts = texts;
	h5_buf_init(&texts->list, LIST_MAX);
	h5_buf_init(&texts->values, 0);
	rc = add_attributes(maker);
	if (rc) {
		free_texts(texts);
		return rc;
	}
	/* The cache counts them from here on. */
	h5_charge_release(&texts->list.charge);
	h5_charge_release(&texts->charge);
	h5_charge_release(&texts->values.charge);
	*value = texts;
	*cost = sizeof *texts + texts->list.capacity + texts->capacity * sizeof *texts->kept +
		texts->values.capacity;
	return 0;
}

static const struct h5_lru_kind texts_kind = {"texts of attributes", free_texts};

static struct h5_lru_key texts_key(const struct h5_vfs *vfs, const struct h5_node *node)
{
	return (struct h5_lru_key){&texts_kind, h5_file_number(node->entity.file), node->entity.address,
				   h5_state(vfs, node->entity.file)};
}

/* The caller gives *ref back by h5_lru_put() to the cache of chunks. */
static int get_texts(struct h5_vfs *vfs, struct h5_node *node, struct h5_lru_entry **ref,
		     const struct texts **texts)
{
	struct maker maker = {.vfs = vfs, .node = node};
	struct h5_lru_key key = texts_key(vfs, node);
	int rc = h5_lru_get(vfs->chunks, &key, load_texts, &maker, ref);

	*texts = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

/* The text of the attribute with that whole name; NULL: it is not kept. */
static const struct text *find_text(const struct texts *texts, const char *name)
{
	const char *list = texts->list.data;
	size_t first =
		h5_lower_bound(i, texts->count, strcmp(list + texts->kept[i].name + strlen(USER), name) < 0);

	if (first == texts->count || strcmp(list + texts->kept[first].name + strlen(USER), name) != 0)
		return NULL;
	return &texts->kept[first];
}

/* Appends the value if a list has been made and has it. */
static bool add_kept(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	struct h5_lru *cache = vfs->chunks;
	struct h5_lru_key key = texts_key(vfs, node);
	const struct texts *texts;
	const struct text *text;
	struct h5_lru_entry *ref;

	if (!h5_lru_find(cache, &key, &ref))
		return false;
	texts = h5_lru_value(ref);
	text = find_text(texts, name);
	/* If all texts are empty, they have no memory. */
	if (text && text->size)
		h5_buf_add(out, texts->values.data + text->text, text->size);
	h5_lru_put(cache, ref);
	return text;
}

int h5_attributes_get(struct h5_vfs *vfs, struct h5_node *node, const char *name, enum h5_attribute_form form,
		      struct h5_buf *out)
{
	struct h5_attribute a = {0};
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc;

	if (form == H5_ATTRIBUTE_LISTED) {
		if (add_kept(vfs, node, name, out))
			return out->err;
		form = listed_form(vfs);
	}
	rc = h5_object_get(node->entity.file, node->entity.address, &ref, &object);
	if (rc)
		return rc;
	rc = h5_attributes_find(node->entity.file, object, name, &a);
	if (!rc)
		rc = add_value(vfs, node->entity.file, &a, form, out);
	h5_attribute_release(&a);
	h5_file_put(node->entity.file, ref);
	return rc ? rc : out->err;
}

int h5_attributes_list(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out)
{
	const struct texts *texts;
	struct h5_lru_entry *ref;
	int rc = get_texts(vfs, node, &ref, &texts);

	if (rc)
		return rc;
	h5_buf_add(out, texts->list.data, texts->list.size);
	h5_lru_put(vfs->chunks, ref);
	return out->err;
}

int h5_attributes_unlisted(struct h5_vfs *vfs, struct h5_node *node, uint64_t *count)
{
	const struct texts *texts;
	struct h5_lru_entry *ref;
	int rc = get_texts(vfs, node, &ref, &texts);

	if (rc)
		return rc;
	*count = texts->unlisted;
	h5_lru_put(vfs->chunks, ref);
	return 0;
}

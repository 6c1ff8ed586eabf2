#include "object/attribute.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "format/named_message.h"
#include "format/shared_message.h"
#include "object/object.h"

#include <stdlib.h>
#include <string.h>

void h5_attribute_release(struct h5_attribute *attribute)
{
	free(attribute->name);
	h5_datatype_free(attribute->type);
	h5_heap_object_release(&attribute->memory);
	*attribute = (struct h5_attribute){0};
}

static int open_part(struct h5_file *file, enum h5_message_type type, bool shared, struct h5_reader *part,
		     struct h5_message_body *body)
{
	int rc = h5_reader_check(part, "attribute message");

	*body = (struct h5_message_body){.reader = *part};
	if (rc || !shared)
		return rc;
	return h5_message_open_shared(file, type, part, body);
}

int h5_attribute_committed(struct h5_reader message, uint64_t *address)
{
	struct h5_attribute_message m;
	struct h5_shared_message shared;
	int rc = h5_attribute_decode(&message, &m);

	*address = H5_UNDEF;
	if (rc || !m.type_shared)
		return rc;
	rc = h5_shared_message_decode(&m.type, &shared);
	if (!rc && !shared.in_heap)
		*address = shared.address;
	return rc;
}

unsigned h5_attribute_shared(struct h5_reader message, struct h5_shared_use uses[2])
{
	struct h5_attribute_message m;
	struct h5_shared_message shared;
	unsigned count = 0;

	memset(uses, 0, 2 * sizeof *uses);
	if (h5_attribute_decode(&message, &m))
		return 0;
	if (m.type_shared && !h5_shared_message_decode(&m.type, &shared) && shared.in_heap) {
		uses[count].type = H5_MSG_DATATYPE;
		memcpy(uses[count++].id, shared.id, sizeof shared.id);
	}
	if (m.space_shared && !h5_shared_message_decode(&m.space, &shared) && shared.in_heap) {
		uses[count].type = H5_MSG_DATASPACE;
		memcpy(uses[count++].id, shared.id, sizeof shared.id);
	}
	return count;
}

static int read_type(struct h5_file *file, struct h5_attribute_message *m, struct h5_attribute *attribute)
{
	struct h5_message_body body;
	int rc = open_part(file, H5_MSG_DATATYPE, m->type_shared, &m->type, &body);

	if (!rc)
		rc = h5_datatype_decode(&body.reader, &attribute->type);
	h5_message_release(file, &body);
	return rc;
}

static int read_space(struct h5_file *file, struct h5_attribute_message *m, struct h5_attribute *attribute)
{
	struct h5_message_body body;
	int rc = open_part(file, H5_MSG_DATASPACE, m->space_shared, &m->space, &body);

	if (!rc)
		rc = h5_dataspace_decode(&body.reader, &attribute->space);
	h5_message_release(file, &body);
	return rc;
}

/* The data are borrowed from the message. */
static int read_data(struct h5_attribute_message *m, struct h5_attribute *attribute)
{
	uint64_t size;

	if (!h5_mul(attribute->space.elements, attribute->type->size, &size) ||
	    size > h5_reader_left(&m->data))
		return h5_fail(-EUCLEAN, m->data.address, "attribute message: its data pass its end");
	attribute->size = (size_t)size;
	attribute->data = h5_read_bytes(&m->data, size);
	return 0;
}

/* Type, shape and data; if one of them fails, the attribute has none of these. */
static int read_value(struct h5_file *file, struct h5_attribute_message *m, struct h5_attribute *attribute)
{
	int rc = read_type(file, m, attribute);

	if (!rc)
		rc = read_space(file, m, attribute);
	if (!rc)
		rc = read_data(m, attribute);
	if (rc) {
		h5_datatype_free(attribute->type);
		attribute->type = NULL;
	}
	return rc;
}

int h5_attribute_read(struct h5_file *file, struct h5_reader message, struct h5_attribute *attribute)
{
	struct h5_attribute_message m;
	int rc = h5_attribute_decode(&message, &m);

	*attribute = (struct h5_attribute){0};
	return rc ? rc : read_value(file, &m, attribute);
}

static int copy_name(const struct h5_attribute_message *m, struct h5_attribute *attribute)
{
	attribute->name = malloc(m->name_size + 1);
	if (!attribute->name)
		return h5_fail(-ENOMEM, H5_UNDEF, "attribute: out of memory");
	memcpy(attribute->name, m->name, m->name_size);
	attribute->name[m->name_size] = 0;
	return 0;
}

/* ---- by name ---- */

/* Makes the data the attribute's own. If the message was copied from a heap, it takes over that copy: of a
 * large value one is enough. */
static int own_data(struct h5_message_body *body, struct h5_attribute *attribute)
{
	struct h5_heap_object *memory = &attribute->memory;

	*memory = body->copy;
	body->copy = (struct h5_heap_object){0};
	if (memory->data)
		return 0;
	memory->data = malloc(attribute->size ? attribute->size : 1);
	if (!memory->data)
		return h5_fail(-ENOMEM, H5_UNDEF, "attribute: out of memory");
	if (attribute->size)
		memcpy(memory->data, attribute->data, attribute->size);
	attribute->data = memory->data;
	return 0;
}

static int read_attribute(struct h5_file *file, struct h5_message_body *body, struct h5_attribute *attribute)
{
	struct h5_attribute_message m;
	int rc = h5_attribute_decode(&body->reader, &m);

	if (!rc)
		rc = copy_name(&m, attribute);
	if (!rc)
		rc = read_value(file, &m, attribute);
	if (!rc)
		rc = own_data(body, attribute);
	if (rc)
		h5_attribute_release(attribute);
	return rc;
}

int h5_attribute_lookup(struct h5_file *file, const struct h5_object *object, const char *name,
			struct h5_attribute *attribute)
{
	struct h5_named_storage storage;
	struct h5_message_body body;
	int rc = h5_named_storage_find(file, object, H5_NAMED_ATTRIBUTE, &storage);

	*attribute = (struct h5_attribute){0};
	if (!rc)
		rc = h5_named_find(&storage, name, strlen(name), &body);
	if (rc)
		return rc == -ENOENT ? -ENODATA : rc;
	rc = read_attribute(file, &body, attribute);
	h5_message_release(file, &body);
	return rc;
}

/* ---- all of them ---- */

int h5_attribute_begin(struct h5_attribute_walk *walk, struct h5_file *file, const struct h5_object *object)
{
	struct h5_named_storage storage;
	int rc = h5_named_storage_find(file, object, H5_NAMED_ATTRIBUTE, &storage);

	*walk = (struct h5_attribute_walk){.attribute = {0}};
	return rc ? rc : h5_named_begin(&walk->messages, &storage, H5_NAMES_SORTED);
}

/* Reads name and value; of a damaged value the name alone. An error of the device is also returned at the end
 * of the walk. */
static int read_current(struct h5_attribute_walk *walk, struct h5_reader message)
{
	struct h5_attribute_message m;
	int rc = h5_attribute_decode(&message, &m);

	if (!rc)
		rc = copy_name(&m, &walk->attribute);
	if (rc)
		return rc;
	rc = read_value(walk->messages.storage.file, &m, &walk->attribute);
	if (rc == -EIO)
		rc = h5_damage_note(&walk->messages.damage, rc);
	return h5_is_passing(rc) ? rc : 0;
}

int h5_attribute_next(struct h5_attribute_walk *walk, const struct h5_attribute **attribute)
{
	const struct h5_name *name;
	struct h5_reader message;
	int rc;

	h5_attribute_release(&walk->attribute);
	rc = h5_named_next(&walk->messages, &name, &message);
	if (rc <= 0)
		return rc;
	rc = read_current(walk, message);
	*attribute = &walk->attribute;
	return rc ? rc : 1;
}

void h5_attribute_end(struct h5_attribute_walk *walk)
{
	h5_attribute_release(&walk->attribute);
	h5_named_end(&walk->messages);
}

/* ---- through the cache ---- */

struct wanted {
	struct h5_file *file;
	uint64_t object;
	const char *name;
};

static void free_attribute(void *value)
{
	h5_attribute_release(value);
	free(value);
}

static int load_attribute(void *arg, void **value, size_t *cost)
{
	const struct wanted *wanted = arg;
	struct h5_attribute *attribute = calloc(1, sizeof *attribute);
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc;

	if (!attribute)
		return h5_fail(-ENOMEM, wanted->object, "attribute: out of memory");
	rc = h5_object_get(wanted->file, wanted->object, &ref, &object);
	if (!rc) {
		rc = h5_attribute_lookup(wanted->file, object, wanted->name, attribute);
		h5_file_put(wanted->file, ref);
	}
	if (rc) {
		free(attribute);
		return rc;
	}
	/* The cache counts it from here on. */
	h5_charge_release(&attribute->memory.charge);
	*value = attribute;
	*cost = sizeof *attribute + attribute->size + h5_datatype_cost(attribute->type);
	return 0;
}

int h5_attribute_get(struct h5_file *file, uint64_t object, const char *name, uint64_t state,
		     struct h5_lru_entry **ref, const struct h5_attribute **attribute)
{
	static const struct h5_lru_kind kind = {"attribute", free_attribute};
	struct h5_lru *cache = h5_file_shared(file)->chunks;
	struct wanted wanted = {file, object, name};
	size_t n = strlen(name);
	uint64_t hash = (uint64_t)h5_lookup3(name, n, 0) << 32 | h5_lookup3(name, n, 1);
	struct h5_lru_key key = {&kind, h5_file_number(file), object, hash ^ state};
	int rc = h5_lru_get(cache, &key, load_attribute, &wanted, ref);

	if (rc)
		return rc;
	*attribute = h5_lru_value(*ref);
	if (!strcmp((*attribute)->name, name))
		return 0;
	h5_lru_put(cache, *ref);
	*ref = NULL;
	return h5_fail(-EUCLEAN, object, "attributes: names with the same hash");
}

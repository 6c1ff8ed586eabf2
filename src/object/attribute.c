#include "object/attribute.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/lookup3.h"
#include "format/attribute.h"
#include "object/damage.h"
#include "object/fractal_heap.h"
#include "object/message.h"
#include "object/name.h"
#include "object/shared_table.h"
#include "store/btree2.h"
#include "store/file_set.h"

#include <stdlib.h>
#include <string.h>

enum {
	ID_SIZE = 8,  /* a record of the name index: heap ID, */
	HASH_AT = 13, /* message flags (1), creation order (4), hash of the name (4) */
	RECORD_SIZE = 17,
};

void h5_attribute_release(struct h5_attribute *attribute)
{
	free(attribute->name);
	h5_datatype_free(attribute->type);
	free(attribute->block);
	h5_charge_release(&attribute->charge);
	*attribute = (struct h5_attribute){0};
}

/* Dense storage of the object's attributes; heap H5_UNDEF: they are in its header. */
static int find_storage(struct h5_file *file, const struct h5_object *object, struct h5_attribute_info *info)
{
	const struct h5_message *message = h5_object_find(object, H5_MSG_ATTRIBUTE_INFO);
	struct h5_reader r;

	info->heap = H5_UNDEF;
	if (!message)
		return 0;
	r = h5_message_reader(file, message);
	return h5_attribute_info_decode(&r, info);
}

/* The attribute message of a record of the name index: in the attributes' heap, or shared. */
static int open_record(struct h5_file *file, uint64_t heap, struct h5_reader record,
		       struct h5_message_body *body)
{
	const uint8_t *id = h5_read_bytes(&record, ID_SIZE);
	uint8_t flags = h5_read_u8(&record);
	size_t size;
	int rc = h5_reader_check(&record, "attribute index");

	*body = (struct h5_message_body){0};
	if (rc)
		return rc;
	if (flags & H5_MSG_FLAG_SHARED)
		rc = h5_shared_table_get(file, H5_MSG_ATTRIBUTE, id, &body->copy, &size, &body->charge);
	else
		rc = h5_fractal_heap_get(file, heap, id, ID_SIZE, &body->copy, &size, &body->charge);
	if (!rc)
		body->reader = h5_file_reader(file, body->copy, size, H5_UNDEF);
	return rc;
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

/* Takes over the copy of the message that is in `body`, if there is one: of a large value one is enough. */
static int read_data(struct h5_attribute_message *m, struct h5_message_body *body,
		     struct h5_attribute *attribute)
{
	uint64_t size;

	if (!h5_mul(attribute->space.elements, attribute->type->size, &size) ||
	    size > h5_reader_left(&m->data))
		return h5_fail(-EUCLEAN, m->data.address, "attribute message: its data pass its end");
	attribute->size = (size_t)size;
	attribute->data = h5_read_bytes(&m->data, size);
	if (body->copy) {
		attribute->block = body->copy;
		attribute->charge = body->charge;
		body->copy = NULL;
		body->charge = (struct h5_charge){0};
		return 0;
	}
	attribute->block = malloc(size ? (size_t)size : 1);
	if (!attribute->block)
		return h5_fail(-ENOMEM, H5_UNDEF, "attribute: out of memory");
	if (size)
		memcpy(attribute->block, attribute->data, (size_t)size);
	attribute->data = attribute->block;
	return 0;
}

/* Type, shape and data; the name stays if they fail. */
static int read_value(struct h5_file *file, struct h5_attribute_message *m, struct h5_message_body *body,
		      struct h5_attribute *attribute)
{
	int rc = read_type(file, m, attribute);

	if (!rc)
		rc = read_space(file, m, attribute);
	if (!rc)
		rc = read_data(m, body, attribute);
	if (rc) {
		h5_datatype_free(attribute->type);
		attribute->type = NULL;
	}
	return rc;
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

static int read_attribute(struct h5_file *file, struct h5_attribute_message *m, struct h5_message_body *body,
			  struct h5_attribute *attribute)
{
	int rc;

	h5_attribute_release(attribute);
	rc = copy_name(m, attribute);
	if (!rc)
		rc = read_value(file, m, body, attribute);
	if (rc)
		h5_attribute_release(attribute);
	return rc;
}

/* Lookup */

/* A message whose name cannot be told is none: its neighbours are found. */
static int look_up_compact(struct h5_file *file, const struct h5_object *object, const char *name,
			   struct h5_attribute *attribute)
{
	int rc = -ENODATA;

	for (unsigned i = 0; i < object->count && rc == -ENODATA; i++) {
		struct h5_attribute_message m;
		struct h5_message_body body;
		int unwanted;

		if (object->messages[i].type != H5_MSG_ATTRIBUTE)
			continue;
		unwanted = h5_interrupt_check();
		if (unwanted)
			return unwanted;
		if (!h5_message_open(file, &object->messages[i], &body) &&
		    !h5_attribute_decode(&body.reader, &m) &&
		    !h5_name_compare(name, strlen(name), m.name, m.name_size))
			rc = read_attribute(file, &m, &body, attribute);
		h5_message_release(file, &body);
	}
	return rc;
}

struct dense_search {
	struct h5_file *file;
	uint64_t heap;
	const char *name;
	size_t size;
	uint32_t hash;
	struct h5_attribute *attribute; /* the one found */
};

/* The name index is sorted by the hash of the name, then by the name itself. */
static int compare_record(void *arg, struct h5_reader record, int *rc)
{
	struct dense_search *s = arg;
	struct h5_attribute_message m;
	struct h5_message_body body;
	struct h5_reader r = record;
	uint32_t hash;
	int order = 0;

	h5_reader_skip(&r, HASH_AT);
	hash = h5_read_u32(&r);
	if (s->hash != hash)
		return s->hash < hash ? -1 : 1;
	*rc = open_record(s->file, s->heap, record, &body);
	if (!*rc)
		*rc = h5_attribute_decode(&body.reader, &m);
	if (!*rc) {
		order = h5_name_compare(s->name, s->size, m.name, m.name_size);
		if (!order)
			*rc = read_attribute(s->file, &m, &body, s->attribute);
	}
	h5_message_release(s->file, &body);
	return order;
}

static int look_up_dense(struct h5_file *file, const struct h5_attribute_info *info, const char *name,
			 struct h5_attribute *attribute)
{
	size_t size = strlen(name);
	struct dense_search s = {file, info->heap, name, size, h5_lookup3(name, size, 0), attribute};
	struct h5_btree2 tree;
	uint8_t *record;
	int rc = h5_btree2_open(file, info->name_index, H5_BTREE2_ATTRIBUTE_NAME, RECORD_SIZE, &tree);

	if (rc)
		return rc;
	record = malloc(tree.record_size);
	if (!record)
		return h5_fail(-ENOMEM, H5_UNDEF, "attribute: out of memory");
	rc = h5_btree2_find(&tree, compare_record, &s, record);
	free(record);
	if (rc)
		h5_attribute_release(attribute);
	return rc == -ENOENT ? -ENODATA : rc;
}

int h5_attribute_lookup(struct h5_file *file, const struct h5_object *object, const char *name,
			struct h5_attribute *attribute)
{
	struct h5_attribute_info info;
	int broken = find_storage(file, object, &info), rc;

	*attribute = (struct h5_attribute){0};
	if (!broken && info.heap != H5_UNDEF)
		return look_up_dense(file, &info, name, attribute);
	rc = look_up_compact(file, object, name, attribute);
	/* Where the info cannot be read the attribute may be elsewhere. */
	return rc == -ENODATA && broken ? find_storage(file, object, &info) : rc;
}

/* Through the cache */

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
	int rc = attribute ? h5_object_get(wanted->file, wanted->object, &ref, &object)
			   : h5_fail(-ENOMEM, wanted->object, "attribute: out of memory");

	if (!rc) {
		rc = h5_attribute_lookup(wanted->file, object, wanted->name, attribute);
		h5_file_put(wanted->file, ref);
	}
	if (rc) {
		free(attribute);
		return rc;
	}
	/* The cache counts it from here on. */
	h5_charge_release(&attribute->charge);
	*value = attribute;
	*cost = sizeof *attribute + attribute->size + h5_datatype_cost(attribute->type);
	return 0;
}

int h5_attribute_get(struct h5_file *file, uint64_t object, const char *name, uint64_t state,
		     struct h5_lru_entry **ref, const struct h5_attribute **attribute)
{
	static const struct h5_lru_kind kind = {"attribute", free_attribute};
	struct h5_lru *cache = h5_file_set_chunks(h5_file_set_of(file));
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

/* Listing */

struct item {
	char *name;
	size_t name_size;
	size_t position;		  /* the first of equal names wins */
	const struct h5_message *message; /* in the header; NULL: dense */
	uint8_t record[RECORD_SIZE];
};

struct listing {
	struct h5_file *file;
	uint64_t heap; /* of dense attributes */
	struct item *items;
	size_t count, capacity;
	uint64_t bytes, limit; /* of names */
	struct h5_charge charge;
	struct h5_damage damage;
};

static int open_item(struct listing *l, const struct item *item, struct h5_message_body *body)
{
	if (item->message)
		return h5_message_open(l->file, item->message, body);
	return open_record(l->file, l->heap, h5_file_reader(l->file, item->record, RECORD_SIZE, H5_UNDEF),
			   body);
}

/* A quarter more than there is: it grows. */
static int count_memory(struct listing *l)
{
	size_t need = l->capacity * sizeof *l->items + (size_t)l->bytes;

	return need <= l->charge.bytes ? 0 : h5_charge_set(&l->charge, need + need / 4);
}

static int append_item(struct listing *l, const struct item *item, const struct h5_attribute_message *m)
{
	struct item *added;
	int rc;

	if (l->count == l->capacity) {
		size_t more = l->capacity ? 2 * l->capacity : 16;
		struct item *items = realloc(l->items, more * sizeof *items);

		if (!items)
			return h5_fail(-ENOMEM, H5_UNDEF, "attributes: out of memory");
		l->items = items;
		l->capacity = more;
	}
	l->bytes += m->name_size;
	if (l->bytes > l->limit)
		return h5_fail(-EUCLEAN, H5_UNDEF, "attributes: more names than a file can hold");
	rc = count_memory(l);
	if (rc)
		return rc;
	added = &l->items[l->count];
	*added = *item;
	added->position = l->count;
	added->name_size = m->name_size;
	added->name = malloc(m->name_size + 1);
	if (!added->name)
		return h5_fail(-ENOMEM, H5_UNDEF, "attributes: out of memory");
	memcpy(added->name, m->name, m->name_size);
	l->count++;
	return 0;
}

/* Adds the attribute under its name; one whose name cannot be told is left out. */
static int add_item(struct listing *l, const struct item *item)
{
	struct h5_attribute_message m;
	struct h5_message_body body;
	int rc = h5_interrupt_check();

	if (rc)
		return rc;
	rc = open_item(l, item, &body);
	if (!rc)
		rc = h5_attribute_decode(&body.reader, &m);
	rc = rc ? h5_damage_note(&l->damage, rc) : append_item(l, item, &m);
	h5_message_release(l->file, &body);
	return rc;
}

static int list_record(void *arg, struct h5_reader record)
{
	struct item item = {0};
	const uint8_t *bytes = h5_read_bytes(&record, RECORD_SIZE);

	if (bytes)
		memcpy(item.record, bytes, RECORD_SIZE);
	return add_item(arg, &item);
}

static int list_dense(struct listing *l, const struct h5_attribute_info *info)
{
	struct h5_btree2 tree;
	int rc = h5_btree2_open(l->file, info->name_index, H5_BTREE2_ATTRIBUTE_NAME, RECORD_SIZE, &tree);

	l->heap = info->heap;
	return rc ? rc : h5_btree2_iterate(&tree, list_record, l);
}

static int list_compact(struct listing *l, const struct h5_object *object)
{
	int rc = 0;

	for (unsigned i = 0; i < object->count && !rc; i++)
		if (object->messages[i].type == H5_MSG_ATTRIBUTE)
			rc = add_item(l, &(struct item){.message = &object->messages[i]});
	return rc;
}

static int by_name(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int order = h5_name_compare(x->name, x->name_size, y->name, y->name_size);

	return order ? order : x->position < y->position ? -1 : x->position > y->position;
}

static int visit_item(struct listing *l, const struct item *item, h5_attribute_visit *visit, void *arg)
{
	struct h5_attribute attribute = {0};
	struct h5_attribute_message m;
	struct h5_message_body body;
	int rc = open_item(l, item, &body);

	if (!rc)
		rc = h5_attribute_decode(&body.reader, &m);
	if (!rc)
		rc = copy_name(&m, &attribute);
	if (!rc) {
		rc = read_value(l->file, &m, &body, &attribute);
		/* Its name is told, and at the end what the device said. */
		if (rc == -EIO)
			rc = h5_damage_note(&l->damage, rc);
		if (!h5_is_passing(rc))
			rc = visit(arg, &attribute);
	}
	h5_attribute_release(&attribute);
	h5_message_release(l->file, &body);
	return rc;
}

int h5_attribute_iterate(struct h5_file *file, const struct h5_object *object, h5_attribute_visit *visit,
			 void *arg)
{
	struct listing l = {.file = file, .limit = h5_names_max(file)};
	struct h5_attribute_info info;
	const struct item *last = NULL;
	int rc = find_storage(file, object, &info);

	if (rc)
		info.heap = H5_UNDEF;
	rc = h5_damage_note(&l.damage, rc);
	if (!rc)
		rc = info.heap != H5_UNDEF ? list_dense(&l, &info) : list_compact(&l, object);
	rc = h5_damage_note(&l.damage, rc);
	if (!rc && l.count)
		qsort(l.items, l.count, sizeof *l.items, by_name);
	for (size_t i = 0; i < l.count && !rc; i++) {
		const struct item *item = &l.items[i];

		rc = h5_interrupt_check();
		if (rc)
			break;
		if (!last || h5_name_compare(last->name, last->name_size, item->name, item->name_size))
			rc = visit_item(&l, item, visit, arg);
		last = item;
	}
	for (size_t i = 0; i < l.count; i++)
		free(l.items[i].name);
	free(l.items);
	h5_charge_release(&l.charge);
	return rc ? rc : h5_damage_result(&l.damage);
}

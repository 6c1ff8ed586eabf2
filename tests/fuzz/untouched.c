#include "untouched.h"

#include "base/array.h"
#include "base/lookup3.h"
#include "dataset/dataset.h"
#include "dataset/removal.h"
#include "dataset/values.h"
#include "fuzz.h"
#include "object/attribute.h"
#include "object/file_space.h"
#include "object/global_heap.h"
#include "object/group.h"
#include "object/shared_table.h"
#include "object/value.h"
#include "store/extension.h"

#include <stdlib.h>
#include <string.h>

enum {
	READ = 1 << 14,	    /* bytes of a dataset that are looked at */
	ELEMENTS = 100,	    /* of variable length that are */
	TEXT_MAX = 1 << 20, /* bytes of an element's text */
};

/* ---- what an object says ---- */

struct reading {
	struct h5_file *file;
	uint32_t hash;
	bool is_apart;
};

static void add(struct reading *r, const void *data, size_t n)
{
	fuzz_touch(data, n);
	r->hash = h5_lookup3(data, n, r->hash);
}

static void add_number(struct reading *r, uint64_t n)
{
	add(r, &n, sizeof n);
}

/* Elements: their bytes, or their text if it lies elsewhere. */
static int add_elements(struct reading *r, const struct h5_datatype *type, const uint8_t *data, size_t n)
{
	const struct h5_value_context context = {.file = r->file};
	struct h5_buf text;
	int rc = 0;

	if (h5_datatype_is_fixed(type)) {
		add(r, data, n);
		return 0;
	}
	r->is_apart = false;
	for (size_t i = 0; i < ELEMENTS && (i + 1) * type->size <= n && !rc; i++) {
		h5_buf_init(&text, TEXT_MAX);
		rc = h5_value_json(&context, type, data + i * type->size, &text);
		if (!rc)
			rc = text.err;
		if (!rc && text.size)
			add(r, text.data, text.size);
		h5_buf_release(&text);
	}
	return rc;
}

static int read_attributes(struct reading *r, const struct h5_object *object)
{
	struct h5_attribute_walk walk;
	const struct h5_attribute *attribute;
	int rc = h5_attribute_begin(&walk, r->file, object);

	while (!rc && (rc = h5_attribute_next(&walk, &attribute)) > 0) {
		add(r, attribute->name, strlen(attribute->name));
		rc = attribute->type ? add_elements(r, attribute->type, attribute->data, attribute->size)
				     : -EUCLEAN;
	}
	h5_attribute_end(&walk);
	return rc;
}

static int read_links(struct reading *r, const struct h5_object *object)
{
	const struct h5_link *link;
	struct h5_link_walk walk;
	int rc = h5_link_begin(&walk, r->file, object, H5_NAMES_SORTED);

	while (!rc && (rc = h5_link_next(&walk, &link)) > 0) {
		add(r, link->name, link->name_size);
		add_number(r, link->type == H5_LINK_HARD ? link->address : link->type);
		add(r, link->target, link->target_size);
		add(r, link->file, link->file_size);
		rc = 0;
	}
	h5_link_end(&walk);
	return rc;
}

static int read_elements(struct reading *r, const struct h5_dataset *dataset)
{
	size_t n = dataset->size < READ ? (size_t)dataset->size : READ;
	uint8_t *data = malloc(n ? n : 1);
	int rc;

	FUZZ_HOLDS(data);
	for (unsigned i = 0; i < dataset->space.rank; i++)
		add_number(r, dataset->space.dims[i]);
	rc = h5_dataset_read(dataset, 0, data, n);
	if (!rc)
		rc = add_elements(r, dataset->type, data, n);
	free(data);
	return rc;
}

/* What a virtual dataset says is that of others. */
static int read_dataset(struct reading *r, const struct h5_object *object)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(r->file, object->address, &ref, &dataset);

	if (!rc && !h5_dataset_is_elsewhere(dataset))
		rc = read_elements(r, dataset);
	h5_file_put(r->file, ref);
	return rc;
}

static int read_contents(struct reading *r, const struct h5_object *object)
{
	struct h5_datatype *type;
	int rc;

	switch (object->kind) {
	case H5_OBJECT_GROUP:
		return read_links(r, object);
	case H5_OBJECT_DATASET:
		return read_dataset(r, object);
	case H5_OBJECT_DATATYPE:
		rc = h5_object_datatype(r->file, object, &type);
		if (!rc)
			add_number(r, type->size);
		h5_datatype_free(type);
		return rc;
	default:
		return -EUCLEAN;
	}
}

static int read_object(struct reading *r, uint64_t address)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(r->file, address, &ref, &object);

	if (rc)
		return rc;
	add_number(r, object->kind);
	rc = read_attributes(r, object);
	if (!rc)
		rc = read_contents(r, object);
	h5_file_put(r->file, ref);
	return rc;
}

/* ---- where it lies ---- */

static int add_space(void *arg, uint64_t address, uint64_t n)
{
	return h5_extents_add(arg, address, n);
}

static int add_type(void *arg, uint64_t address)
{
	struct fuzz_object *object = arg;
	int rc = h5_array_reserve(&object->types, &object->type_capacity, object->type_count + 1, NULL);

	if (!rc)
		object->types[object->type_count++] = address;
	return rc;
}

/* The objects of a collection that the values of one object refer to. */
struct heap_space {
	struct h5_file *file;
	struct h5_extents *space;
	uint64_t address; /* of the collection */
	const struct h5_heap_objects *objects;
};

static int add_heap_object(void *arg, const struct h5_global_heap_object *object)
{
	const struct heap_space *heap = arg;

	return h5_heap_objects_have(heap->objects, object->index)
		       ? h5_extents_add(heap->space, heap->address + object->offset, object->size)
		       : 0;
}

static int add_collection(void *arg, uint64_t address, const struct h5_heap_objects *objects)
{
	struct heap_space heap = *(struct heap_space *)arg;
	uint64_t size;
	int rc;

	heap.address = address;
	heap.objects = objects;
	rc = h5_global_heap_each(heap.file, address, add_heap_object, &heap, &size);
	/* Such a collection is not changed. */
	return rc == -EUCLEAN ? 0 : rc;
}

/* Adds what only the values of the object refer to in the global heap, which goes with it. */
static int add_values(struct fuzz_object *object, struct h5_file *file)
{
	struct heap_space heap = {.file = file, .space = &object->space};
	const struct h5_object *header;
	struct h5_heap_dead values;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, object->address, &ref, &header);

	if (rc)
		return rc;
	h5_heap_dead_init(&values, file);
	rc = h5_object_find_values(file, header, &values);
	h5_file_put(file, ref);
	if (!rc)
		rc = h5_heap_set_each(&values.set, add_collection, &heap);
	h5_heap_dead_release(&values);
	return rc;
}

static void find_space(struct fuzz_object *object, struct h5_file *file)
{
	const struct h5_use_visits visits = {.type = add_type};
	int rc = h5_object_extents(file, object->address, add_space, &object->space);

	if (!rc)
		rc = h5_object_uses(file, object->address, &visits, object);
	for (size_t i = 0; i < object->type_count && !rc; i++)
		rc = h5_object_extents(file, object->types[i], add_space, &object->space);
	if (!rc)
		rc = add_values(object, file);
	object->whole = !rc;
}

static bool find_own_space(struct fuzz_objects *objects, struct h5_file *file)
{
	return !h5_extents_add(&objects->own, 0, h5_superblock_size(h5_file_superblock(file))) &&
	       !h5_extension_extents(file, add_space, &objects->own) &&
	       !h5_shared_table_extents(file, add_space, &objects->own) &&
	       !h5_file_space_extents(file, add_space, &objects->own);
}

static bool overlap(const struct h5_extents *a, const struct h5_extents *b)
{
	h5_extents_each(e, b)
	{
		if (h5_extents_touches(a, e->address, e->size))
			return true;
	}
	return false;
}

/* ---- all of them ---- */

static struct fuzz_object *find(struct fuzz_objects *objects, uint64_t address)
{
	for (unsigned i = 0; i < objects->count; i++)
		if (objects->list[i].address == address)
			return &objects->list[i];
	return NULL;
}

static void add_object(struct fuzz_objects *objects, uint64_t address)
{
	if (objects->count < FUZZ_OBJECTS && !find(objects, address))
		objects->list[objects->count++] = (struct fuzz_object){.address = address};
}

static void add_children(struct fuzz_objects *objects, struct h5_file *file, uint64_t address)
{
	const struct h5_object *object;
	const struct h5_link *link;
	struct h5_lru_entry *ref;
	struct h5_link_walk walk;

	if (h5_object_get(file, address, &ref, &object))
		return;
	if (object->kind == H5_OBJECT_GROUP) {
		if (!h5_link_begin(&walk, file, object, H5_NAMES_SORTED))
			while (h5_link_next(&walk, &link) > 0)
				if (link->type == H5_LINK_HARD)
					add_object(objects, link->address);
		h5_link_end(&walk);
	}
	h5_file_put(file, ref);
}

void fuzz_objects_find(struct fuzz_objects *objects, struct h5_file *file, struct fuzz_budget *budget)
{
	memset(objects, 0, sizeof *objects);
	fuzz_request(budget);
	objects->own_whole = find_own_space(objects, file);
	objects->end = h5_file_end(file);
	add_object(objects, h5_file_superblock(file)->root);
	for (unsigned i = 0; i < objects->count; i++) {
		struct fuzz_object *object = &objects->list[i];
		struct reading r = {.file = file, .is_apart = true};

		fuzz_request(budget);
		object->is_readable = !read_object(&r, object->address) && budget->checks > 0;
		object->hash = r.hash;
		object->is_apart = r.is_apart;
		find_space(object, file);
		add_children(objects, file, object->address);
	}
}

void fuzz_objects_release(struct fuzz_objects *objects)
{
	for (unsigned i = 0; i < objects->count; i++) {
		h5_extents_release(&objects->list[i].space);
		free(objects->list[i].types);
	}
	h5_extents_release(&objects->own);
	objects->count = 0;
}

/* True: the address is in space that a request may have made free, so that a new object may be there. */
static bool may_be_new(const struct fuzz_objects *objects, uint64_t address)
{
	for (unsigned i = 0; i < objects->count; i++)
		if (objects->list[i].touched && h5_extents_has(&objects->list[i].space, address))
			return true;
	return address >= objects->end;
}

void fuzz_objects_touch(struct fuzz_objects *objects, uint64_t address)
{
	struct fuzz_object *object = find(objects, address);

	if (object)
		object->touched = true;
	else
		objects->strange |= !may_be_new(objects, address);
}

/* True: what was done to the others cannot be seen in the object. Datatypes are counted, and go with their
 * last use, so who uses one touches it. */
static bool is_out_of_reach(const struct fuzz_objects *objects, const struct fuzz_object *object)
{
	if (!object->is_apart || !object->whole || !objects->own_whole || objects->strange ||
	    overlap(&object->space, &objects->own))
		return false;
	for (unsigned i = 0; i < objects->count; i++) {
		const struct fuzz_object *other = &objects->list[i];

		if (other->touched && (!other->whole || overlap(&object->space, &other->space)))
			return false;
	}
	return true;
}

bool fuzz_objects_open(const struct fuzz_objects *objects)
{
	const struct fuzz_object *root = &objects->list[0];

	for (unsigned i = 0; i < objects->count; i++) {
		const struct fuzz_object *object = &objects->list[i];

		if (!object->touched)
			continue;
		if (!object->whole || overlap(&object->space, &objects->own) ||
		    (object != root && overlap(&object->space, &root->space)))
			return false;
	}
	return objects->own_whole && root->whole && !objects->strange;
}

void fuzz_objects_compare(struct fuzz_objects *objects, bool sound, struct h5_file *file,
			  struct fuzz_budget *budget)
{
	for (unsigned i = 0; i < objects->count; i++) {
		const struct fuzz_object *object = &objects->list[i];
		struct reading r = {.file = file};
		int rc;

		if (object->touched || !object->is_readable || !(sound || is_out_of_reach(objects, object)))
			continue;
		fuzz_request(budget);
		rc = read_object(&r, object->address);
		if (budget->checks <= 0)
			return;
		FUZZ_HOLDS(!rc);
		FUZZ_HOLDS(r.hash == object->hash);
	}
}

#include "base/buf.h"
#include "base/checked.h"
#include "base/interrupt.h"
#include "dataset/dataset.h"
#include "format/symbol_table.h"
#include "object/attribute.h"
#include "object/group.h"
#include "object/local_heap.h"
#include "object/object.h"
#include "object/value.h"
#include "offline/check_private.h"

#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 1 << 20,      /* bytes of elements that are read at once */
	VALUE_MOST = 1 << 26, /* most bytes of one element's text */
	/* Of a dataset, so many elements are checked at most: these, and more for what is stored of it. None
	   of the usual filters makes more elements of a stored byte. */
	ELEMENTS_LEAST = 1 << 20,
	ELEMENTS_A_BYTE = 1 << 10,
};

static int note(struct h5_checker *checker, int rc)
{
	return h5_damage_note(&checker->damage, rc);
}

/* ---- links ---- */

/* If there is an index by name, it must find the link. */
static int check_link(struct h5_checker *checker, const struct h5_object *group, bool has_index,
		      const struct h5_link *link)
{
	struct h5_link found = {0};
	int rc = has_index ? h5_group_lookup(checker->file, group, link->name, link->name_size, &found) : 0;

	h5_link_release(&found);
	if (rc == -ENOENT)
		rc = h5_fail(-EUCLEAN, group->address, "group: the index does not find the link %.*s",
			     (int)h5_min(link->name_size, 100), link->name);
	rc = note(checker, rc);
	if (!rc && link->type == H5_LINK_HARD)
		rc = h5_check_add_link(checker, link->name, link->name_size, link->address);
	return rc;
}

static int check_links(struct h5_checker *checker, const struct h5_object *group, bool has_index)
{
	const struct h5_link *link;
	struct h5_link_walk links;
	int rc = h5_link_begin(&links, checker->file, group, H5_NAMES_SORTED);

	while (!rc && (rc = h5_link_next(&links, &link)) > 0)
		rc = check_link(checker, group, has_index, link);
	h5_link_end(&links);
	return note(checker, rc);
}

/* Checks the names of a group of the old kind. If they are damaged so that they cannot be found, iterating
 * over the group tells. */
static int check_names(struct h5_checker *checker, const struct h5_object *object)
{
	const struct h5_message *message = h5_object_find(object, H5_MSG_SYMBOL_TABLE);
	struct h5_symbol_table table;
	struct h5_local_heap heap;
	struct h5_reader r;
	int rc;

	if (!message)
		return 0;
	r = h5_message_reader(checker->file, message);
	rc = h5_symbol_table_decode(&r, &table);
	if (!rc)
		rc = h5_local_heap_open(checker->file, table.heap, &heap);
	if (rc == -EUCLEAN || rc == -ENOTSUP)
		return 0;
	return note(checker, rc ? rc : h5_local_heap_check(&heap));
}

static int check_group(struct h5_checker *checker, const struct h5_object *object)
{
	struct h5_named_storage storage;
	/* That the link info cannot be decoded, the group itself will tell. */
	int rc = h5_named_storage_find(checker->file, object, H5_NAMED_LINK, &storage);

	if (!rc)
		rc = h5_named_check(&storage, &checker->damage);
	if (!rc)
		rc = check_names(checker, object);
	if (!rc)
		rc = check_links(checker, object,
				 storage.is_dense || h5_object_find(object, H5_MSG_SYMBOL_TABLE));
	return rc;
}

/* ---- values ---- */

/* Checks elements whose data lie in heaps, by making text of them. Those that are the same as `fill` are left
 * out: it is checked itself, and elements that are not stored have its references. NULL: none are. */
static int check_values(struct h5_checker *checker, const struct h5_datatype *type, const uint8_t *fill,
			const uint8_t *data, uint64_t n)
{
	const struct h5_value_context context = {.file = checker->file};
	struct h5_buf text;
	int rc = 0;

	h5_buf_init(&text, VALUE_MOST);
	for (uint64_t i = 0; i < n && !rc; i++, data += type->size) {
		text.size = 0;
		rc = h5_interrupt_check();
		if (!rc && fill && !memcmp(data, fill, type->size))
			continue;
		if (!rc)
			rc = h5_check_add_references(checker, type, data);
		if (!rc)
			rc = note(checker, h5_value_json(&context, type, data, &text));
		if (!rc)
			rc = text.err;
		if (rc == -E2BIG) {
			/* The text is too long to check all of it. */
			h5_buf_release(&text);
			h5_buf_init(&text, VALUE_MOST);
			rc = 0;
		}
	}
	h5_buf_release(&text);
	return rc;
}

/* ---- attributes ---- */

static int check_attribute(struct h5_checker *checker, const struct h5_named_storage *storage,
			   const struct h5_attribute *attribute)
{
	struct h5_attribute found = {0};
	int rc = 0;

	/* h5_error_last() still says what is wrong with it. */
	if (!attribute->type)
		return note(checker, h5_error_last()->code);
	if (storage->is_dense)
		rc = h5_attribute_lookup(checker->file, storage->object, attribute->name, &found);
	h5_attribute_release(&found);
	if (rc == -ENODATA)
		rc = h5_fail(-EUCLEAN, storage->object->address,
			     "attributes: the index does not find the attribute %.100s", attribute->name);
	rc = note(checker, rc);
	if (!rc && !h5_datatype_is_fixed(attribute->type))
		rc = check_values(checker, attribute->type, NULL, attribute->data, attribute->space.elements);
	return rc;
}

static int check_attributes(struct h5_checker *checker, const struct h5_object *object)
{
	struct h5_attribute_walk attributes;
	struct h5_named_storage storage;
	const struct h5_attribute *attribute;
	int rc = h5_named_storage_find(checker->file, object, H5_NAMED_ATTRIBUTE, &storage);

	if (!rc)
		rc = h5_named_check(&storage, &checker->damage);
	if (rc)
		return rc;
	rc = h5_attribute_begin(&attributes, checker->file, object);
	while (!rc && (rc = h5_attribute_next(&attributes, &attribute)) > 0)
		rc = check_attribute(checker, &storage, attribute);
	h5_attribute_end(&attributes);
	return note(checker, rc);
}

/* ---- datasets ---- */

static void chunk_done(void *arg, uint64_t bytes)
{
	struct h5_checker *checker = arg;

	checker->check->chunks++;
	checker->check->bytes += bytes;
	if (checker->check->progress)
		checker->check->progress(checker->check->arg, checker->path, checker->check->bytes);
}

/* Moves to the next element of which a part is stored. */
static int next_stored(const struct h5_dataset *dataset, uint64_t *element)
{
	uint64_t at = *element * dataset->type->size;
	int rc = at < dataset->size ? h5_dataset_seek_stored(dataset, at, &at) : 0;

	*element = h5_max(*element, at / dataset->type->size);
	return rc;
}

static int check_run(struct h5_checker *checker, const struct h5_dataset *dataset, uint64_t first, uint64_t n,
		     uint8_t *data)
{
	size_t size = dataset->type->size;
	int rc = h5_dataset_read(dataset, first * size, data, (size_t)n * size);

	return rc ? rc : check_values(checker, dataset->type, dataset->fill, data, n);
}

/* Checks elements that are stored, and perhaps some that are not. */
static int check_stored(struct h5_checker *checker, const struct h5_dataset *dataset, uint64_t at_once,
			uint8_t *data)
{
	uint64_t left, first = 0, n;
	int rc = h5_dataset_storage(dataset, &left);

	left = h5_max(left < UINT64_MAX / ELEMENTS_A_BYTE ? left * ELEMENTS_A_BYTE : left, ELEMENTS_LEAST);
	while (!rc && !(rc = next_stored(dataset, &first))) {
		if (first >= dataset->space.elements)
			break;
		n = h5_min(h5_min(at_once, left), dataset->space.elements - first);
		if (!n)
			return h5_fail(-EFBIG, dataset->address, "values from element %ju on",
				       (uintmax_t)first);
		rc = check_run(checker, dataset, first, n, data);
		first += n;
		left -= n;
	}
	return rc;
}

static int check_elements(struct h5_checker *checker, const struct h5_dataset *dataset)
{
	size_t size = dataset->type->size;
	uint64_t at_once = size < PIECE ? PIECE / size : 1;
	uint8_t *data;
	int rc;

	if (h5_datatype_is_fixed(dataset->type) || !dataset->size)
		return 0;
	if (dataset->size == UINT64_MAX) {
		checker->values.incomplete = true;
		return 0;
	}
	if (size > H5_ELEMENT_MOST)
		return note(checker, h5_fail(-EFBIG, dataset->address, "an element of %zu bytes", size));
	data = malloc((size_t)h5_min(at_once, dataset->space.elements) * size);
	if (!data)
		return h5_fail(-ENOMEM, dataset->address, "check: out of memory");
	rc = check_stored(checker, dataset, at_once, data);
	free(data);
	return note(checker, rc);
}

/* What the dataset itself refers to in the global heap: its fill value, which is checked, and the mappings of
 * a virtual one. */
static int add_own_references(struct h5_checker *checker, const struct h5_dataset *dataset)
{
	const struct h5_layout *layout = &dataset->layout;
	int rc = 0;

	if (dataset->fill && !h5_datatype_is_fixed(dataset->type))
		rc = check_values(checker, dataset->type, NULL, dataset->fill, 1);
	if (!rc && h5_dataset_is_virtual(dataset) && layout->virtual.heap != H5_UNDEF)
		rc = h5_check_add_reference(checker, layout->virtual.heap, layout->virtual.index);
	return rc;
}

static int check_dataset(struct h5_checker *checker, uint64_t address)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint64_t before;
	int rc = h5_dataset_get(checker->file, address, &ref, &dataset);

	if (rc)
		return note(checker, rc);
	rc = note(checker, add_own_references(checker, dataset));
	before = checker->check->damaged + checker->check->unknown;
	if (!rc)
		rc = h5_dataset_check(dataset, &checker->damage, chunk_done, checker);
	/* If chunks are damaged, their elements would only tell so again. Other files are not checked. */
	if (!rc && before == checker->check->damaged + checker->check->unknown &&
	    !h5_dataset_is_elsewhere(dataset))
		rc = check_elements(checker, dataset);
	h5_file_put(checker->file, ref);
	return rc;
}

/* ---- objects ---- */

static int check_committed(struct h5_checker *checker, const struct h5_object *object)
{
	struct h5_datatype *type;
	int rc = h5_object_datatype(checker->file, object, &type);

	h5_datatype_free(type);
	return note(checker, rc);
}

int h5_check_object(struct h5_checker *checker, uint64_t address)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_object_get(checker->file, address, &ref, &object);
	if (rc)
		return note(checker, rc);
	h5_check_set_count(&checker->walk, object->references);
	rc = note(checker, h5_header_check(checker->file, &object->header));
	if (!rc)
		rc = check_attributes(checker, object);
	if (!rc && object->kind == H5_OBJECT_GROUP)
		rc = check_group(checker, object);
	else if (!rc && object->kind == H5_OBJECT_DATASET)
		rc = check_dataset(checker, address);
	else if (!rc && object->kind == H5_OBJECT_DATATYPE)
		rc = check_committed(checker, object);
	else if (!rc)
		rc = note(checker, h5_fail(-EUCLEAN, address, "object header: of no known kind of object"));
	h5_file_put(checker->file, ref);
	return rc;
}

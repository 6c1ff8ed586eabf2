#include "object/attribute_values.h"

#include "base/interrupt.h"
#include "object/attribute.h"

struct walk {
	struct h5_file *file;
	h5_value_heap_visit *visit;
	void *arg;
};

int h5_values_own(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data, uint64_t n,
		  h5_value_heap_visit *visit, void *arg)
{
	int rc = 0;

	if (h5_datatype_is_fixed(type))
		return 0;
	for (uint64_t i = 0; i < n && !rc; i++) {
		rc = h5_interrupt_check();
		if (!rc)
			rc = h5_value_heap_walk_own(file, type, data + i * type->size, visit, arg);
	}
	return rc;
}

int h5_attribute_own(struct h5_file *file, struct h5_reader message, h5_value_heap_visit *visit, void *arg)
{
	struct h5_attribute attribute;
	int rc = h5_attribute_read(file, message, &attribute);

	if (!rc)
		rc = h5_values_own(file, attribute.type, attribute.data, attribute.space.elements, visit,
				   arg);
	h5_attribute_release(&attribute);
	return rc;
}

static int walk_dense(void *arg, const struct h5_name *name, const struct h5_named_record *record,
		      struct h5_reader message)
{
	const struct walk *walk = arg;

	(void)name;
	return record->is_shared ? 0 : h5_attribute_own(walk->file, message, walk->visit, walk->arg);
}

int h5_attributes_own(struct h5_file *file, const struct h5_object *object, h5_value_heap_visit *visit,
		      void *arg)
{
	struct walk walk = {file, visit, arg};
	struct h5_named_storage storage;
	int rc = h5_named_storage_find(file, object, H5_NAMED_ATTRIBUTE, &storage);

	for (unsigned i = 0; i < object->count && !rc; i++) {
		const struct h5_message *message = &object->messages[i];

		if (message->type == H5_MSG_ATTRIBUTE && !(message->flags & H5_MSG_FLAG_SHARED))
			rc = h5_attribute_own(file, h5_message_reader(file, message), visit, arg);
	}
	return rc || !storage.is_dense ? rc : h5_named_iterate_dense(&storage, walk_dense, &walk);
}

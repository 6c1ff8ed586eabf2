#include "object/object.h"

#include "base/error.h"
#include "format/datatype.h"
#include "format/header_messages.h"
#include "format/shared_message.h"
#include "object/shared_table.h"

#include <stdlib.h>

static void release_object(void *value)
{
	struct h5_object *object = value;

	if (object)
		h5_header_release(&object->header);
	free(object);
}

static enum h5_object_kind kind_of(const struct h5_object *object)
{
	if (h5_object_find(object, H5_MSG_SYMBOL_TABLE) || h5_object_find(object, H5_MSG_LINK_INFO))
		return H5_OBJECT_GROUP;
	if (!h5_object_find(object, H5_MSG_DATATYPE))
		return H5_OBJECT_UNKNOWN;
	return h5_object_find(object, H5_MSG_DATASPACE) ? H5_OBJECT_DATASET : H5_OBJECT_DATATYPE;
}

/* Reads the small messages. A damaged one is as good as missing. */
static void read_facts(struct h5_file *file, struct h5_object *object)
{
	const struct h5_object_header *prefix = &object->header.prefix;
	const struct h5_message *count = h5_object_find(object, H5_MSG_REFERENCE_COUNT);
	const struct h5_message *mtime = h5_object_find(object, H5_MSG_MTIME);
	const struct h5_message *old = h5_object_find(object, H5_MSG_MTIME_OLD);
	uint32_t references;
	int64_t seconds = 0;
	struct h5_reader r;
	int rc = 0;

	object->version = prefix->version;
	object->kind = kind_of(object);
	object->references = object->version == 1 ? prefix->references : 1;
	if (object->version > 1 && count) {
		r = h5_message_reader(file, count);
		if (!h5_reference_count_decode(&r, &references))
			object->references = references;
	}
	if (prefix->mtime) {
		seconds = prefix->mtime;
	} else if (mtime) {
		r = h5_message_reader(file, mtime);
		rc = h5_mtime_decode(&r, &seconds);
	} else if (old) {
		r = h5_message_reader(file, old);
		rc = h5_mtime_old_decode(&r, &seconds);
	}
	object->has_mtime = !rc && seconds;
	object->mtime = object->has_mtime ? seconds : 0;
}

/* Fills all fields except the header, which has been loaded. */
static void complete(struct h5_file *file, uint64_t address, struct h5_object *object)
{
	object->address = address;
	object->count = object->header.count;
	object->messages = object->header.messages;
	read_facts(file, object);
}

static int load_object(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct h5_object *object = calloc(1, sizeof *object);
	int rc;

	(void)arg;
	if (!object)
		return h5_fail(-ENOMEM, address, "object header: out of memory");
	rc = h5_header_load(file, address, &object->header);
	if (rc) {
		release_object(object);
		return rc;
	}
	/* The cache counts it from here on. */
	h5_charge_release(&object->header.charge);
	complete(file, address, object);
	*value = object;
	*cost = sizeof *object + object->header.cost;
	return 0;
}

const struct h5_block_type h5_object_block = {
	.kind = {.name = "object header", .release = release_object},
	.load = load_object,
};

int h5_object_read(const struct h5_window *window, uint64_t address, struct h5_object *object)
{
	int rc;

	*object = (struct h5_object){0};
	rc = h5_header_load_near(window, address, &object->header);
	if (!rc)
		complete(window->file, address, object);
	return rc;
}

void h5_object_release(struct h5_object *object)
{
	h5_header_release(&object->header);
}

/* ---- bodies of messages ---- */

/* Opens the message of that type in the header at the address. It must not be shared itself. */
static int open_in_header(struct h5_file *file, enum h5_message_type type, uint64_t address,
			  struct h5_message_body *body)
{
	const struct h5_message *message;
	const struct h5_object *object;
	int rc = h5_object_get(file, address, &body->ref, &object);

	if (rc)
		return rc;
	message = h5_object_find(object, type);
	if (!message || message->flags & H5_MSG_FLAG_SHARED)
		return h5_fail(-EUCLEAN, address, "shared message: no message of type %#x in this header",
			       type);
	body->reader = h5_message_reader(file, message);
	return 0;
}

int h5_message_open_shared(struct h5_file *file, enum h5_message_type type, struct h5_reader *r,
			   struct h5_message_body *body)
{
	struct h5_shared_message shared;
	int rc;

	*body = (struct h5_message_body){0};
	rc = h5_shared_message_decode(r, &shared);
	if (rc)
		return rc;
	if (shared.in_heap) {
		rc = h5_shared_table_get(file, type, shared.id, &body->copy);
		if (!rc)
			body->reader = h5_file_reader(file, body->copy.data, body->copy.size, H5_UNDEF);
	} else {
		rc = open_in_header(file, type, shared.address, body);
	}
	if (rc)
		h5_message_release(file, body);
	return rc;
}

int h5_object_datatype(struct h5_file *file, const struct h5_object *object, struct h5_datatype **type)
{
	const struct h5_message *message = h5_object_find(object, H5_MSG_DATATYPE);
	struct h5_message_body body = {0};
	int rc = message ? h5_message_open(file, message, &body) : -ENODATA;

	*type = NULL;
	if (!rc)
		rc = h5_datatype_decode(&body.reader, type);
	h5_message_release(file, &body);
	return rc;
}

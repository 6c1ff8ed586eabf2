#include "object/message.h"

#include "base/error.h"
#include "format/datatype.h"
#include "format/shared_message.h"
#include "object/shared_table.h"

#include <string.h>

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

	memset(body, 0, sizeof *body);
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

int h5_message_open(struct h5_file *file, const struct h5_message *message, struct h5_message_body *body)
{
	struct h5_reader r = h5_message_reader(file, message);

	if (message->flags & H5_MSG_FLAG_SHARED)
		return h5_message_open_shared(file, message->type, &r, body);
	memset(body, 0, sizeof *body);
	body->reader = r;
	return 0;
}

void h5_message_release(struct h5_file *file, struct h5_message_body *body)
{
	h5_file_put(file, body->ref);
	h5_heap_object_release(&body->copy);
	memset(body, 0, sizeof *body);
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

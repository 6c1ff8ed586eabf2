#include "object/own_message.h"

#include "base/error.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "object/object.h"
#include "object/shared_table_write.h"

#include <string.h>

/* SWMR readers keep what they know of a header, and of the table of shared messages. */
bool h5_own_message_is_possible(const struct h5_file *file, const struct h5_message *message)
{
	struct h5_reader r = h5_message_reader(file, message);
	struct h5_shared_message shared;

	if (!(message->flags & (H5_MSG_FLAG_SHARED | H5_MSG_FLAG_TRACKED)))
		return true;
	if (h5_tx_is_swmr(file))
		return false;
	return !(message->flags & H5_MSG_FLAG_SHARED) ||
	       (!h5_shared_message_decode(&r, &shared) && shared.in_heap);
}

int h5_own_message_check(struct h5_file *file, uint64_t address, enum h5_message_type type)
{
	const struct h5_message *message;
	struct h5_header header;
	int rc = h5_header_load(file, address, &header);

	message = rc ? NULL : h5_header_find(&header, type);
	if (!rc && (!message || !h5_own_message_is_possible(file, message)))
		rc = h5_fail(-ENOTSUP, address, "object header: message type %#x %s", type,
			     message ? "is shared: changing it is not supported" : "is not there");
	h5_header_release(&header);
	return rc;
}

/* In a unit. */
static int make_own(struct h5_file *file, uint64_t address, const struct h5_message *old)
{
	struct h5_new_message new = {
		.type = old->type,
		.flags = (uint8_t)(old->flags & ~(H5_MSG_FLAG_SHARED | H5_MSG_FLAG_TRACKED)),
	};
	struct h5_message_body body;
	struct h5_shared_use use;
	int rc = h5_shared_use_of(file, old, &use);

	if (!rc)
		rc = h5_message_open(file, old, &body);
	if (rc)
		return rc;
	new.body = body.reader.p;
	new.size = (size_t)(body.reader.end - body.reader.p);
	rc = h5_header_set(file, address, old, &new);
	if (!rc)
		rc = h5_shared_table_drop(file, address, &use, 1, NULL, NULL);
	h5_message_release(file, &body);
	return rc;
}

int h5_own_message(struct h5_file *file, uint64_t address, enum h5_message_type type)
{
	const struct h5_message *message;
	struct h5_header header;
	int rc = h5_header_load(file, address, &header);

	if (rc)
		return rc;
	message = h5_header_find(&header, type);
	if (message && message->flags & (H5_MSG_FLAG_SHARED | H5_MSG_FLAG_TRACKED)) {
		h5_unit_begin(file);
		rc = h5_unit_end(file, make_own(file, address, message));
	}
	h5_header_release(&header);
	return rc;
}

int h5_own_message_update(struct h5_file *file, uint64_t address, enum h5_message_type type,
			  h5_message_update *update, const void *arg)
{
	int rc;

	h5_unit_begin(file);
	rc = h5_own_message(file, address, type);
	if (!rc)
		rc = h5_header_update(file, address, type, update, arg);
	return h5_unit_end(file, rc);
}

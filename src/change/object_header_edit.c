#include "change/object_header_edit.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "change/object_header_change.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"

#include <stdlib.h>
#include <string.h>

/* Version 1 has no checksum. Patches those pages of the message that change. A field that crosses the edge of
 * a page becomes two cells; headers of old files may lie anywhere. */
static int patch_pages(struct h5_file *file, const struct h5_message *message, const uint8_t *body,
		       unsigned stage)
{
	for (size_t at = 0, n; at < message->size; at += n) {
		uint64_t address = message->address + at;
		int rc;

		n = (size_t)h5_min(message->size - at, h5_tx_left_in_cell(file, address));
		if (!memcmp(message->data + at, body + at, n))
			continue;
		rc = h5_tx_patch(file, address, body + at, n, stage);
		if (rc)
			return rc;
	}
	return 0;
}

/* True: all from the message to the checksum at the end of its chunk is a cell. */
static bool is_cell(const struct h5_file *file, const struct h5_header *header,
		    const struct h5_message *message)
{
	const struct h5_header_chunk *chunk = h5_header_chunk_at(header, message->address);
	uint64_t at = message->address - chunk->address;

	return h5_tx_is_safe(file, message->address, (size_t)(chunk->size - at));
}

/* Version 2: patches the message and the checksum of its chunk, as one cell. */
static int patch_cell(struct h5_file *file, const struct h5_header *header, const struct h5_message *message,
		      const uint8_t *body, unsigned stage)
{
	const struct h5_header_chunk *chunk = h5_header_chunk_at(header, message->address);
	size_t at = (size_t)(message->address - chunk->address);
	size_t n = (size_t)chunk->size - H5_OBJECT_HEADER_CHECKSUM;

	memcpy(chunk->bytes + at, body, message->size);
	h5_uint_to(chunk->bytes + n, h5_lookup3(chunk->bytes, n, 0), H5_OBJECT_HEADER_CHECKSUM);
	return h5_tx_patch(file, message->address, chunk->bytes + at, (size_t)chunk->size - at, stage);
}

/* Replaces the message where it is, in a unit, since several pages may change. */
static int patch(struct h5_file *file, uint64_t address, const struct h5_header *header,
		 const struct h5_message *message, const uint8_t *body, unsigned stage)
{
	int rc;

	h5_unit_begin(file);
	rc = h5_tx_touch(file, address);
	if (!rc)
		rc = header->prefix.version == 1 ? patch_pages(file, message, body, stage)
						 : patch_cell(file, header, message, body, stage);
	if (!rc)
		rc = h5_header_delay_link(file, header, message->address, stage);
	if (!rc && header->is_to_mark)
		rc = h5_header_mark_unknown(file, address);
	h5_tx_forget(file, address);
	return h5_unit_end(file, rc);
}

static int replace(struct h5_file *file, uint64_t address, const struct h5_header *header,
		   const struct h5_message *message, const uint8_t *body, unsigned stage)
{
	const struct h5_new_message new = {
		.type = message->type, .flags = message->flags, .body = body, .size = message->size};

	return header->prefix.version == 1 || is_cell(file, header, message)
		       ? patch(file, address, header, message, body, stage)
		       : h5_header_set_at(file, address, message, &new, stage);
}

/* Loads the header and finds the message. The header is to be released even if it fails. */
static int load(struct h5_file *file, uint64_t address, enum h5_message_type type, struct h5_header *header,
		const struct h5_message **message)
{
	int rc = h5_header_load(file, address, header);

	if (rc)
		return rc;
	*message = h5_header_find(header, type);
	if (!*message || (*message)->flags & H5_MSG_FLAG_SHARED)
		return h5_fail(-ENOTSUP, address, "object header: message type %#x %s", type,
			       *message ? "is shared: changing it is not supported" : "is not there");
	return 0;
}

int h5_header_update_at(struct h5_file *file, uint64_t address, enum h5_message_type type, unsigned stage,
			h5_message_update *update, const void *arg)
{
	const struct h5_message *message;
	struct h5_header header;
	uint8_t *body = NULL;
	int rc = load(file, address, type, &header, &message);

	if (!rc) {
		body = malloc(message->size + 1);
		rc = body ? 0 : h5_fail(-ENOMEM, address, "object header: out of memory");
	}
	if (!rc) {
		memcpy(body, message->data, message->size);
		rc = update(arg, body, message->size);
	}
	if (!rc && memcmp(message->data, body, message->size))
		rc = replace(file, address, &header, message, body, stage);
	free(body);
	h5_header_release(&header);
	return rc;
}

int h5_header_update(struct h5_file *file, uint64_t address, enum h5_message_type type,
		     h5_message_update *update, const void *arg)
{
	return h5_header_update_at(file, address, type, h5_header_stage(type, true), update, arg);
}

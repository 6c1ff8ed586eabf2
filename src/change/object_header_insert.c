#include "change/object_header_insert.h"

#include "base/error.h"
#include "change/object_header_change.h"
#include "change/transaction.h"
#include "format/header_messages.h"

#include <assert.h>

/* The number of messages in a chunk. */
static unsigned count_messages(const struct h5_header_change *change, const struct h5_header_chunk *chunk)
{
	struct h5_reader r = h5_header_chunk_messages(change->file, &change->header.prefix, chunk);
	struct h5_message message;
	unsigned count = 0;

	while (h5_object_header_next(&r, &change->header.prefix, &message) > 0)
		count++;
	return count;
}

static int load(struct h5_header_change *change, uint64_t address)
{
	int rc = h5_header_load(change->file, address, &change->header);

	for (unsigned i = 0; !rc && i < change->header.chunk_count; i++) {
		change->messages += count_messages(change, &change->header.chunks[i]);
		change->bytes += change->header.chunks[i].size;
	}
	return rc;
}

/* Finds the message again in the header that was loaded. */
static int find_old(struct h5_header_change *change, const struct h5_message *old)
{
	for (unsigned i = 0; i < change->header.count; i++) {
		const struct h5_message *message = &change->header.messages[i];

		if (message->address == old->address && message->type == old->type &&
		    message->size == old->size) {
			change->old = *message;
			return 0;
		}
	}
	return h5_fail(-EINVAL, old->address, "object header: message type %#x is not there", old->type);
}

static int set_new(struct h5_header_change *change, const struct h5_new_message *new)
{
	int rc = h5_new_message_check(&change->header.prefix, new);

	if (rc)
		return rc;
	change->new = h5_new_message_get(new);
	if (!new->has_order)
		change->new.creation_order = change->old.creation_order;
	return 0;
}

/* True: no message has a byte of this one's body, and no prefix is there: it is inside a NIL message. */
static bool is_unused(const struct h5_file *file, const struct h5_header *header,
		      const struct h5_message *body)
{
	const unsigned head = h5_message_prefix_size(&header->prefix);
	bool unused = true;

	for (unsigned i = 0; i < header->chunk_count && unused; i++) {
		struct h5_reader r = h5_header_chunk_messages(file, &header->prefix, &header->chunks[i]);
		struct h5_message m;

		while (unused && h5_object_header_next(&r, &header->prefix, &m) > 0) {
			const uint64_t end = m.address + (m.type == H5_MSG_NIL ? 0 : m.size);

			unused = end <= body->address || m.address - head >= body->address + body->size;
		}
	}
	return unused;
}

/* Some bytes of the old message may change with the next commit. They mean nothing now, but would be written
 * before the cell that removes the message: after a kill in between it would be there with them, though
 * values that only they refer to are free already. So they are not written. (In version 2 it is one cell,
 * since all changes have the checksum in common.) */
static int ignore_old(struct h5_file *file, uint64_t address, const struct h5_message *old)
{
	struct h5_header header;
	int rc;

	if (h5_tx_is_new(file, old->address) || !h5_tx_is_changed(file, old->address, old->size))
		return 0;
	rc = h5_header_load(file, address, &header);
	if (!rc && header.prefix.version == 1 && is_unused(file, &header, old))
		h5_tx_ignore(file, old->address, old->size);
	h5_header_release(&header);
	return rc;
}

/* In a unit, as make_change(). *marks: messages are to be marked. */
static int change_header(struct h5_file *file, uint64_t address, const struct h5_message *old,
			 const struct h5_new_message *new, unsigned stage, bool *marks)
{
	struct h5_header_change change = {.file = file, .stage = stage};
	int rc = load(&change, address);

	*marks = change.header.is_to_mark;
	if (!rc && old)
		rc = find_old(&change, old);
	if (!rc && new)
		rc = set_new(&change, new);
	if (!rc)
		rc = h5_tx_touch(file, address);
	if (!rc)
		rc = h5_header_realize(&change);
	if (!rc && old)
		rc = ignore_old(file, address, &change.old);
	/* Whatever was decoded from any of its chunks is cached under the header's address. */
	h5_tx_forget(file, address);
	h5_header_release(&change.header);
	return rc;
}

/* Sets the flag of the message, whose body stays. */
static int mark(struct h5_file *file, uint64_t address, const struct h5_message *message)
{
	const struct h5_new_message marked = {.type = message->type,
					      .flags = message->flags | H5_MSG_FLAG_WAS_UNKNOWN,
					      .body = message->data,
					      .size = message->size};
	bool marks;

	return change_header(file, address, message, &marked, H5_STAGE_OBJECT, &marks);
}

int h5_header_mark_unknown(struct h5_file *file, uint64_t address)
{
	bool marks = true;
	int rc = 0;

	/* Messages may move when one is marked, so each is found anew. */
	while (marks && !rc) {
		struct h5_header header;
		unsigned i = 0;

		rc = h5_header_load(file, address, &header);
		if (rc)
			break;
		while (i < header.count && !h5_message_is_to_mark(&header.messages[i]))
			i++;
		marks = i < header.count;
		if (marks)
			rc = mark(file, address, &header.messages[i]);
		h5_header_release(&header);
	}
	return rc;
}

/* Replaces `old` by `new`. Without `old` it inserts, without `new` it removes. `stage`: of the change in the
 * commit; 0: the stage of the message type. */
static int make_change(struct h5_file *file, uint64_t address, const struct h5_message *old,
		       const struct h5_new_message *new, unsigned stage)
{
	bool marks;
	int rc;

	h5_unit_begin(file);
	if (!stage)
		stage = h5_header_stage(new ? new->type : old->type, new);
	rc = change_header(file, address, old, new, stage, &marks);
	if (!rc && marks)
		rc = h5_header_mark_unknown(file, address);
	return h5_unit_end(file, rc);
}

int h5_header_insert(struct h5_file *file, uint64_t address, const struct h5_new_message *message)
{
	return make_change(file, address, NULL, message, 0);
}

int h5_header_remove(struct h5_file *file, uint64_t address, const struct h5_message *message)
{
	return make_change(file, address, message, NULL, 0);
}

int h5_header_set(struct h5_file *file, uint64_t address, const struct h5_message *old,
		  const struct h5_new_message *message)
{
	return make_change(file, address, old, message, 0);
}

int h5_header_set_at(struct h5_file *file, uint64_t address, const struct h5_message *old,
		     const struct h5_new_message *message, unsigned stage)
{
	return make_change(file, address, old, message, stage);
}

/* ---- the number of hard links ---- */

/* *message: where it is; NULL: in the prefix, or nowhere. */
static int find_references(const struct h5_file *file, const struct h5_header *header,
			   const struct h5_message **message, uint32_t *count)
{
	struct h5_reader r;

	*message = NULL;
	*count = header->prefix.version == 1 ? header->prefix.references : 1;
	if (header->prefix.version > 1)
		*message = h5_header_find(header, H5_MSG_REFERENCE_COUNT);
	if (!*message)
		return 0;
	r = h5_file_reader(file, (*message)->data, (*message)->size, (*message)->address);
	return h5_reference_count_decode(&r, count);
}

int h5_header_references(const struct h5_file *file, const struct h5_header *header, uint32_t *count)
{
	const struct h5_message *message;

	return find_references(file, header, &message, count);
}

/* Version 1 has the count in its prefix. */
static int patch_references(struct h5_file *file, uint64_t address, uint32_t count, unsigned stage,
			    bool marks)
{
	uint8_t field[4];
	int rc;

	h5_unit_begin(file);
	h5_uint_to(field, count, sizeof field);
	rc = h5_tx_touch(file, address);
	if (!rc)
		rc = h5_tx_patch(file, address + 4, field, sizeof field, stage);
	if (!rc && marks)
		rc = h5_header_mark_unknown(file, address);
	h5_tx_forget(file, address);
	return h5_unit_end(file, rc);
}

static int put_references(struct h5_file *file, uint64_t address, const struct h5_message *old,
			  uint32_t count, unsigned stage)
{
	uint8_t body[H5_REFERENCE_COUNT_SIZE];
	struct h5_writer w = h5_writer_init(body, sizeof body, 8, 8);
	const struct h5_new_message message = {
		.type = H5_MSG_REFERENCE_COUNT, .body = body, .size = sizeof body};

	h5_reference_count_encode(&w, count);
	assert(!w.err);
	return make_change(file, address, old, &message, stage);
}

int h5_header_set_references(struct h5_file *file, uint64_t address, uint32_t count)
{
	const struct h5_message *message;
	struct h5_header header;
	uint32_t before;
	unsigned stage;
	int rc = h5_header_load(file, address, &header);

	if (rc)
		return rc;
	rc = find_references(file, &header, &message, &before);
	if (!rc && !count)
		rc = h5_fail(-EINVAL, address, "object header: an object with no name");
	if (!rc && count != before) {
		stage = count > before ? H5_STAGE_OBJECT : H5_STAGE_UNCOUNT;
		rc = header.prefix.version == 1
			     ? patch_references(file, address, count, stage, header.is_to_mark)
			     : put_references(file, address, message, count, stage);
	}
	h5_header_release(&header);
	return rc;
}

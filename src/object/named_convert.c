/* The storage is made beside the messages, in new space. Then one write of the header takes all messages away
 * and leads to the storage: messages that stayed would come back when libhdf5 makes them compact again. */
#include "object/named_convert.h"

#include "base/error.h"
#include "change/object_header_insert.h"
#include "change/object_header_rewrite.h"
#include "change/transaction.h"
#include "format/header_messages.h"
#include "object/dense_write.h"

#include <stdlib.h>

enum {
	LIMIT = 8, /* messages that are compact at most, if the object does not say */
	MESSAGE_MAX = UINT16_MAX,
};

int h5_named_info_encode(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
			 uint8_t *body, size_t n, size_t *size)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_writer w = h5_writer_init(body, n, sb->size_of_offsets, sb->size_of_lengths);

	if (kind == H5_NAMED_LINK)
		h5_link_info_encode(&w, info);
	else
		h5_attribute_info_encode(&w, info);
	*size = h5_writer_at(&w);
	return h5_writer_check(&w, "info message");
}

/* ---- when ---- */

static unsigned limit_of(struct h5_file *file, const struct h5_object *object, enum h5_named_kind kind)
{
	const struct h5_message *message = h5_object_find(object, H5_MSG_GROUP_INFO);
	struct h5_group_info info;
	struct h5_reader r;

	if (kind != H5_NAMED_LINK || !message || message->flags & H5_MSG_FLAG_SHARED)
		return LIMIT;
	r = h5_message_reader(file, message);
	return h5_group_info_decode(&r, &info) ? LIMIT : info.max_compact;
}

bool h5_named_wants_dense(struct h5_file *file, const struct h5_object *object, const struct h5_message *old,
			  const struct h5_new_named *message)
{
	unsigned count = 0;

	if (message->kind == H5_NAMED_ATTRIBUTE && object->version == 1)
		return false;
	for (unsigned i = 0; i < object->count; i++) {
		if (object->messages[i].type != h5_named_message_type(message->kind))
			continue;
		if (object->messages[i].flags & (H5_MSG_FLAG_SHARED | H5_MSG_FLAG_TRACKED))
			return false;
		count++;
	}
	return message->size > MESSAGE_MAX || (!old && count >= limit_of(file, object, message->kind));
}

/* ---- how ---- */

struct conversion {
	struct h5_file *file;
	uint64_t address;
	enum h5_named_kind kind;
	struct h5_named_info info;
	struct h5_header header;
	struct h5_message *stay; /* the messages that the header will have */
	size_t count;
	uint8_t flags;			 /* of the info message */
	uint8_t body[H5_NAMED_INFO_MAX]; /* of the new one */
};

/* Puts a message of the header into the storage. */
static int move_message(struct conversion *c, const struct h5_message *message)
{
	struct h5_reader r = h5_message_reader(c->file, message);
	struct h5_attribute_message attribute;
	struct h5_link link;
	int rc;

	if (c->kind == H5_NAMED_LINK) {
		rc = h5_link_decode(&r, &link);
		if (!rc)
			rc = h5_dense_insert(c->file, &c->info, c->kind, link.name, link.name_size,
					     message->data, message->size, link.order);
	} else {
		rc = h5_attribute_decode(&r, &attribute);
		if (!rc)
			rc = h5_dense_insert(c->file, &c->info, c->kind, attribute.name, attribute.name_size,
					     message->data, message->size, message->creation_order);
	}
	if (rc == -EEXIST)
		rc = h5_fail(-EUCLEAN, message->address, "object header: two messages of one name");
	return rc;
}

/* Moves the messages of the kind to dense storage, and lists the other messages of the header. */
static int move_messages(struct conversion *c, const struct h5_message *old)
{
	int rc = 0;

	for (unsigned i = 0; i < c->header.count && !rc; i++) {
		const struct h5_message *message = &c->header.messages[i];

		if (message->type == h5_named_info_type(c->kind))
			c->flags = message->flags;
		else if (message->type != h5_named_message_type(c->kind))
			c->stay[c->count++] = *message;
		else if (!old || message->address != old->address)
			rc = move_message(c, message);
	}
	return rc;
}

static int switch_header(struct conversion *c)
{
	struct h5_new_message info = {
		.type = h5_named_info_type(c->kind), .flags = c->flags, .body = c->body};
	int rc = h5_named_info_encode(c->file, c->kind, &c->info, c->body, sizeof c->body, &info.size);

	if (rc)
		return rc;
	c->stay[c->count++] = h5_new_message_get(&info);
	return h5_header_rewrite(c->file, c->address, c->stay, c->count,
				 h5_header_stage(h5_named_message_type(c->kind), true));
}

static int convert(struct conversion *c, const struct h5_message *old, const struct h5_new_named *message,
		   int64_t order)
{
	int rc = h5_header_load(c->file, c->address, &c->header);

	if (rc)
		return rc;
	c->stay = malloc((c->header.count + 1) * sizeof *c->stay);
	if (!c->stay)
		return h5_fail(-ENOMEM, c->address, "object header: out of memory");
	rc = h5_dense_create(c->file, c->kind, c->info.tracks_order, c->info.indexes_order, &c->info);
	if (!rc)
		rc = move_messages(c, old);
	if (!rc)
		rc = h5_dense_insert(c->file, &c->info, c->kind, message->name, message->name_size,
				     message->body, message->size, order);
	return rc ? rc : switch_header(c);
}

int h5_named_make_dense(struct h5_file *file, uint64_t object, const struct h5_named_info *info,
			const struct h5_message *old, const struct h5_new_named *message, int64_t order)
{
	struct conversion c = {.file = file, .address = object, .kind = message->kind, .info = *info};
	int rc;

	h5_unit_begin(file);
	rc = h5_unit_end(file, convert(&c, old, message, order));
	h5_unit_unsave(file, &c, sizeof c);
	h5_header_release(&c.header);
	free(c.stay);
	return rc;
}

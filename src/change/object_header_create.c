#include "change/object_header_create.h"

#include "base/error.h"
#include "change/object_header_layout.h"
#include "change/transaction.h"

#include <assert.h>
#include <stdlib.h>

/* A header that is being made. */
struct creation {
	struct h5_file *file;
	struct h5_object_header prefix;
	struct h5_message *messages; /* of chunk 0 */
	size_t count;
	uint8_t (*links)[H5_HEADER_LINK_MAX]; /* for each message that moved to a block: the body of the
						 continuation message that leads there */
	size_t space;			      /* bytes of the messages */
};

static size_t prefix_size(const struct creation *creation)
{
	uint8_t bytes[H5_OBJECT_HEADER_PREFIX_MAX];
	struct h5_writer w = h5_writer_init(bytes, sizeof bytes, 8, 8);

	h5_object_header_encode(&w, &creation->prefix);
	return h5_writer_at(&w);
}

/* Bytes of chunk 0 with so many bytes of messages. */
static size_t chunk_size(struct creation *creation, size_t messages)
{
	creation->prefix.chunk_size = messages;
	return prefix_size(creation) + messages + H5_OBJECT_HEADER_CHECKSUM;
}

static int creation_init(struct creation *creation, struct h5_file *file,
			 const struct h5_new_message *messages, size_t count, const struct h5_new_header *how)
{
	*creation = (struct creation){.file = file, .count = count};
	creation->prefix.version = 2;
	creation->prefix.flags = (uint8_t)((how->times ? H5_HEADER_TIMES : 0) |
					   (how->tracks_order ? H5_HEADER_ORDER_TRACKED : 0) |
					   (how->indexes_order ? H5_HEADER_ORDER_INDEXED : 0));
	creation->prefix.mtime = how->time;
	creation->messages = calloc(count + 1, sizeof *creation->messages);
	creation->links = calloc(count + 1, sizeof *creation->links);
	if (!creation->messages || !creation->links)
		return h5_fail(-ENOMEM, H5_UNDEF, "object header: out of memory");
	for (size_t i = 0; i < count; i++) {
		int rc = h5_new_message_check(&creation->prefix, &messages[i]);

		if (rc)
			return rc;
		creation->messages[i] = h5_new_message_get(&messages[i]);
		creation->space += h5_message_space(&creation->prefix, &creation->messages[i]);
	}
	return 0;
}

static void creation_release(struct creation *creation)
{
	free(creation->messages);
	free(creation->links);
}

/* Moves the largest message to a block of its own: 1, or 0 if all are small. */
static int move_largest(struct creation *creation)
{
	struct h5_message *largest = creation->messages;
	struct h5_continuation block;
	unsigned laid;
	uint8_t *body;
	int rc;

	for (size_t i = 1; i < creation->count; i++)
		if (creation->messages[i].size > largest->size)
			largest = &creation->messages[i];
	if (!creation->count || largest->size <= h5_header_link_size(creation->file))
		return 0;
	rc = h5_header_put_block(creation->file, &creation->prefix, largest, 1, 0, &block, &laid);
	if (rc)
		return rc;
	body = creation->links[largest - creation->messages];
	creation->space -= h5_message_space(&creation->prefix, largest);
	*largest = (struct h5_message){
		.type = H5_MSG_CONTINUATION, .size = h5_header_link_size(creation->file), .data = body};
	creation->space += h5_message_space(&creation->prefix, largest);
	rc = h5_header_encode_link(creation->file, &block, body);
	return rc ? rc : 1;
}

/* Bytes to spare in chunk 0. */
static size_t room_for(struct creation *creation, size_t wanted)
{
	unsigned head = h5_message_prefix_size(&creation->prefix);
	size_t room = wanted < head && wanted ? head : wanted;

	while (room >= head && chunk_size(creation, creation->space + room) > H5_CELL)
		room--;
	return room < head ? 0 : room;
}

static int put_first(struct creation *creation, size_t room, uint64_t *address)
{
	size_t messages = creation->space + room, n = chunk_size(creation, messages);
	uint8_t *bytes = calloc(1, n);
	struct h5_writer w = h5_writer_init(bytes, n, 8, 8);
	unsigned laid;
	bool fits;
	int rc;

	if (!bytes)
		return h5_fail(-ENOMEM, H5_UNDEF, "object header: out of memory");
	h5_object_header_encode(&w, &creation->prefix);
	fits = h5_header_lay(&creation->prefix, w.p, messages, creation->messages, creation->count, &laid);
	assert(fits); /* none is too large, and the room takes one NIL message, or none */
	(void)fits;
	h5_header_seal(bytes, n);
	*address = H5_UNDEF;
	rc = h5_tx_shadow(creation->file, address, bytes, n);
	free(bytes);
	return rc;
}

int h5_header_create(struct h5_file *file, const struct h5_new_message *messages, size_t count,
		     const struct h5_new_header *how, uint64_t *address)
{
	struct creation creation;
	int rc, moved = 1;

	h5_unit_begin(file);
	rc = creation_init(&creation, file, messages, count, how);
	while (!rc && moved && chunk_size(&creation, creation.space) > H5_CELL) {
		moved = move_largest(&creation);
		rc = moved < 0 ? moved : 0;
	}
	if (!rc)
		rc = put_first(&creation, room_for(&creation, how->room < H5_CELL ? how->room : H5_CELL),
			       address);
	creation_release(&creation);
	return h5_unit_end(file, rc);
}

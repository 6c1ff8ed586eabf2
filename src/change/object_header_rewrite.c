#include "change/object_header_rewrite.h"

#include "base/error.h"
#include "change/object_header_change.h"
#include "change/transaction.h"

#include <stdlib.h>
#include <string.h>

struct rewriting {
	struct h5_header_change change;
	struct h5_message *messages; /* with place for one more */
	size_t count;
	size_t *starts; /* of each continuation block: the first of its messages; behind the last one: `count`
			 */
	size_t blocks;
	size_t at, n; /* of the messages in the first chunk: offset and bytes */
	struct h5_continuation block;
	uint8_t link[H5_HEADER_LINK_MAX]; /* body of the continuation message that leads to the block */
};

static int rewriting_init(struct rewriting *w, uint64_t address, const struct h5_message *messages,
			  size_t count)
{
	const struct h5_header *header = &w->change.header;
	struct h5_reader r;
	int rc = h5_header_load(w->change.file, address, &w->change.header);

	if (rc)
		return rc;
	w->messages = malloc((count + 1) * sizeof *w->messages);
	w->starts = malloc((count + 2) * sizeof *w->starts);
	if (!w->messages || !w->starts)
		return h5_fail(-ENOMEM, address, "object header: out of memory");
	if (count)
		memcpy(w->messages, messages, count * sizeof *messages);
	for (size_t i = 0; i < count; i++)
		if (h5_message_is_to_mark(&w->messages[i]))
			w->messages[i].flags |= H5_MSG_FLAG_WAS_UNKNOWN;
	r = h5_header_chunk_messages(w->change.file, &header->prefix, header->chunks);
	w->at = (size_t)(r.p - header->chunks->bytes);
	w->n = (size_t)(r.end - r.p);
	if (header->prefix.version == 1)
		w->n = w->n / 8 * 8;
	w->count = count;
	return 0;
}

static void rewriting_release(struct rewriting *w)
{
	h5_header_release(&w->change.header);
	free(w->messages);
	free(w->starts);
}

static struct h5_message link_to_block(const struct rewriting *w)
{
	return (struct h5_message){
		.type = H5_MSG_CONTINUATION, .size = h5_header_link_size(w->change.file), .data = w->link};
}

/* The number of messages, from the one on, that fit into so many bytes; a continuation message fits beside
 * them if they are not all that are left. */
static size_t fitting(const struct rewriting *w, size_t first, size_t room)
{
	const struct h5_object_header *prefix = &w->change.header.prefix;
	const struct h5_message link = link_to_block(w);
	size_t used = 0, with_link = 0, i = first;

	for (; i < w->count; i++) {
		used += h5_message_space(prefix, &w->messages[i]);
		if (used > room)
			return with_link;
		if (used + h5_message_space(prefix, &link) <= room)
			with_link = i + 1 - first;
	}
	return i - first;
}

/* Shares the messages out between the first chunk and blocks. Returns how many the first chunk has. */
static size_t share_out(struct rewriting *w)
{
	const struct h5_header *header = &w->change.header;
	uint64_t address = header->chunks->address + w->at;
	size_t room = H5_CELL - h5_header_block_extra(&header->prefix), first = 0, n;

	if (h5_tx_is_safe(w->change.file, address, (size_t)header->chunks->size - w->at))
		first = fitting(w, 0, w->n);
	for (n = first; n < w->count;) {
		size_t fit = fitting(w, n, room);

		w->starts[w->blocks++] = n;
		n += fit ? fit : 1;
	}
	w->starts[w->blocks] = w->count;
	return first;
}

/* Writes the blocks, the last one first, since each leads to the next. A continuation message takes the place
 * of a message that is in a block already. */
static int put_blocks(struct rewriting *w)
{
	int rc = 0;

	for (size_t b = w->blocks; b-- > 0 && !rc;) {
		size_t first = w->starts[b], n = w->starts[b + 1] - first;
		unsigned laid;

		if (b + 1 < w->blocks)
			w->messages[first + n++] = link_to_block(w);
		rc = h5_header_put_block(w->change.file, &w->change.header.prefix, w->messages + first, n, 0,
					 &w->block, &laid);
		if (rc)
			return rc;
		w->change.messages += laid;
		rc = h5_header_encode_link(w->change.file, &w->block, w->link);
	}
	return rc;
}

/* Writes the first n messages into the first chunk. */
static int put_first(struct rewriting *w, size_t n)
{
	struct h5_header_change *change = &w->change;
	const struct h5_header_chunk *chunk = change->header.chunks;
	struct h5_header_chunk image = *chunk;
	unsigned laid;
	int rc;

	image.bytes = malloc((size_t)chunk->size);
	if (!image.bytes)
		return h5_fail(-ENOMEM, chunk->address, "object header: out of memory");
	memcpy(image.bytes, chunk->bytes, (size_t)chunk->size);
	if (w->blocks)
		w->messages[n++] = link_to_block(w);
	if (h5_header_lay(&change->header.prefix, image.bytes + w->at, w->n, w->messages, n, &laid)) {
		change->messages += laid;
		rc = h5_header_put_bytes(change, chunk, image.bytes, true);
	} else {
		rc = h5_fail(-ENOTSUP, chunk->address, "object header: its form does not allow the change");
	}
	free(image.bytes);
	return rc > 0 ? 0 : rc;
}

static int rewrite(struct rewriting *w)
{
	const struct h5_header *header = &w->change.header;
	size_t first = share_out(w);
	int rc = put_blocks(w);

	for (unsigned i = 0; i < header->chunk_count; i++)
		h5_header_delay_change(&w->change, header->chunks[i].address, header->chunks[i].size);
	if (!rc)
		rc = put_first(w, first);
	for (unsigned i = 1; i < header->chunk_count && !rc; i++)
		h5_tx_free(w->change.file, header->chunks[i].address, header->chunks[i].size);
	return rc;
}

int h5_header_rewrite(struct h5_file *file, uint64_t address, const struct h5_message *messages, size_t count,
		      unsigned stage)
{
	struct rewriting w = {.change = {.file = file, .stage = stage}};
	int rc;

	h5_unit_begin(file);
	rc = rewriting_init(&w, address, messages, count);
	if (!rc)
		rc = h5_tx_touch(file, address);
	if (!rc)
		rc = rewrite(&w);
	/* Whatever was decoded from any of its chunks is cached under the header's address. */
	h5_tx_forget(file, address);
	rewriting_release(&w);
	return h5_unit_end(file, rc);
}

/* ---- several messages at once ---- */

/* Updates a copy of the message's body; *body is owned by the caller. */
static int update_copy(const struct h5_header_update *update, struct h5_message *message, uint8_t **body)
{
	if (message->flags & H5_MSG_FLAG_SHARED)
		return h5_fail(-ENOTSUP, message->address, "object header: message type %#x is shared",
			       message->type);
	*body = malloc(message->size + 1);
	if (!*body)
		return h5_fail(-ENOMEM, message->address, "object header: out of memory");
	memcpy(*body, message->data, message->size);
	message->data = *body;
	return update->update(update->arg, *body, message->size);
}

static int update_messages(struct h5_message *messages, size_t count, const struct h5_header_update *update,
			   uint8_t **body)
{
	for (size_t i = 0; i < count; i++)
		if (messages[i].type == update->type)
			return update_copy(update, &messages[i], body);
	return h5_fail(-ENOTSUP, H5_UNDEF, "object header: message type %#x is not there", update->type);
}

int h5_header_update_together(struct h5_file *file, uint64_t address, const struct h5_header_update *updates,
			      size_t count, unsigned stage)
{
	uint8_t **bodies = calloc(count, sizeof *bodies);
	struct h5_header header;
	int rc = h5_header_load(file, address, &header);

	if (!rc && !bodies)
		rc = h5_fail(-ENOMEM, address, "object header: out of memory");
	for (size_t i = 0; i < count && !rc; i++)
		rc = update_messages(header.messages, header.count, &updates[i], &bodies[i]);
	if (!rc)
		rc = h5_header_rewrite(file, address, header.messages, header.count, stage);
	for (size_t i = 0; bodies && i < count; i++)
		free(bodies[i]);
	free(bodies);
	h5_header_release(&header);
	return rc;
}

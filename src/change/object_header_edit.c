#include "change/object_header_edit.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "change/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A header that is being changed: first its bytes in memory, then the file. */
struct edit {
	struct h5_file *file;
	struct h5_header header;
	unsigned stage;
};

static struct h5_header_chunk *chunk_of(const struct edit *edit, const struct h5_message *message)
{
	struct h5_header_chunk *chunk = edit->header.chunks;

	while (message->address < chunk->address || message->address - chunk->address >= chunk->size)
		chunk++;
	assert(chunk < edit->header.chunks + edit->header.chunk_count);
	return chunk;
}

static uint64_t end_of(const struct h5_header_chunk *chunk)
{
	return chunk->address + chunk->size;
}

/* The chunk's bytes in memory from an address on. */
static uint8_t *bytes_at(const struct h5_header_chunk *chunk, uint64_t address)
{
	return chunk->bytes + (address - chunk->address);
}

/* How many of the first bytes stay as they are. */
static size_t same_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t i = 0;

	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* ---- messages that move together ---- */

/* One message with the bytes of both and of those between, from the first one's data on. */
static struct h5_message joined(const struct h5_message *first, const struct h5_message *last)
{
	struct h5_message span = *first;

	span.size = (uint32_t)(last->address + last->size - first->address);
	return span;
}

/* True: behind a continuation message the span has no bytes left, or enough for a NIL message. */
static bool fits(const struct h5_message *span, unsigned least, unsigned head)
{
	return span->size == least || span->size >= least + head;
}

/* True: the span is large enough, and better than `best`: it leaves nothing or room for a NIL message; if
 * both or neither do, it is shorter. */
static bool is_better(const struct h5_message *span, const struct h5_message *best, unsigned least,
		      unsigned head)
{
	if (span->size < least)
		return false;
	if (!best->size || fits(span, least, head) != fits(best, least, head))
		return !best->size || fits(span, least, head);
	return span->size < best->size;
}

/* Finds the shortest row of neighbours in the chunk, the message among them, in whose place a message with at
 * least `least` bytes of data fits, since a continuation message is larger than some others. Two neighbours
 * are enough.
 *
 * *span becomes one message in the place of these neighbours, with the bytes that are there now as its data.
 * -ENOTSUP: there are no such neighbours. The chunk is of a version 2 header. */
static int find_row(struct h5_file *file, const struct h5_object_header *prefix,
		    const struct h5_header_chunk *chunk, const struct h5_message *message, unsigned least,
		    struct h5_message *span)
{
	struct h5_reader r = h5_header_chunk_messages(file, prefix, chunk);
	unsigned head = h5_message_prefix_size(prefix);
	struct h5_message m, before[2], candidate;
	unsigned count = 0; /* of `before` */
	bool passed = false;

	span->size = 0;
	while (h5_object_header_next(&r, prefix, &m) > 0) {
		passed |= m.address == message->address;
		if (passed) {
			candidate = joined(message, &m);
			if (is_better(&candidate, span, least, head))
				*span = candidate;
			for (unsigned i = 0; i < count; i++) {
				candidate = joined(&before[i], &m);
				if (is_better(&candidate, span, least, head))
					*span = candidate;
			}
			if (span->size && m.address > message->address)
				break;
		} else {
			if (count == 2) {
				before[0] = before[1];
				count = 1;
			}
			before[count++] = m;
		}
	}
	if (span->size)
		return 0;
	return h5_fail(-ENOTSUP, message->address, "object header: a message of %u bytes cannot be moved",
		       message->size);
}

/* ---- version 1: no checksum ---- */

/* Patches those pages of the message that change. A field that crosses the edge of a page becomes two cells;
 * headers of old files may lie anywhere. */
static int patch_pages(const struct edit *edit, const struct h5_message *message, const uint8_t *body)
{
	uint64_t base = h5_file_superblock(edit->file)->base;

	for (size_t at = 0, n; at < message->size; at += n) {
		uint64_t address = message->address + at;
		int rc;

		n = (size_t)h5_min(message->size - at, H5_CELL - (base + address) % H5_CELL);
		if (!memcmp(message->data + at, body + at, n))
			continue;
		rc = h5_tx_patch(edit->file, address, body + at, n, edit->stage);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- version 2: every chunk has a checksum ---- */

/* True: a change from the address to the end of the chunk, where its checksum is, would be a cell. */
static bool is_cell(const struct edit *edit, const struct h5_header_chunk *chunk, uint64_t first)
{
	return h5_tx_is_safe(edit->file, first, (size_t)(end_of(chunk) - first));
}

/* Brings a chunk that was changed in memory, from the address on, into the file. */
static int patch_chunk(const struct edit *edit, const struct h5_header_chunk *chunk, uint64_t first)
{
	size_t n = (size_t)chunk->size - H5_OBJECT_HEADER_CHECKSUM;

	h5_uint_to(chunk->bytes + n, h5_lookup3(chunk->bytes, n, 0), H5_OBJECT_HEADER_CHECKSUM);
	return h5_tx_patch(edit->file, first, bytes_at(chunk, first), (size_t)(end_of(chunk) - first),
			   edit->stage);
}

static struct h5_writer begin_block(const struct edit *edit, uint8_t *block, size_t n,
				    struct h5_continuation *c)
{
	const struct h5_superblock *sb = h5_file_superblock(edit->file);

	*c = (struct h5_continuation){.address = H5_UNDEF, .size = n};
	return h5_writer_init(block, n, sb->size_of_offsets, sb->size_of_lengths);
}

static int end_block(const struct edit *edit, const struct h5_writer *w, const uint8_t *block,
		     struct h5_continuation *c)
{
	int rc = h5_writer_check(w, "object header continuation");

	return rc ? rc : h5_tx_store(edit->file, &c->address, block, (size_t)c->size, edit->stage);
}

/* Puts the message, with the new body, into a continuation block of its own. */
static int put_block(const struct edit *edit, const struct h5_message *message, const uint8_t *body,
		     struct h5_continuation *c)
{
	const struct h5_object_header *prefix = &edit->header.prefix;
	size_t n = H5_CONTINUATION_BLOCK_EXTRA + h5_message_prefix_size(prefix) + message->size;
	struct h5_message moved = *message;
	uint8_t *block = malloc(n);
	struct h5_writer w;
	int rc;

	if (!block)
		return h5_fail(-ENOMEM, message->address, "object header: out of memory");
	w = begin_block(edit, block, n, c);
	moved.data = body;
	h5_continuation_block_encode(&w, prefix, &moved);
	rc = end_block(edit, &w, block, c);
	free(block);
	return rc;
}

/* The same for the messages of a span (find_row()), one of which gets the new body. */
static int put_span(const struct edit *edit, const struct h5_message *span, const struct h5_message *message,
		    const uint8_t *body, struct h5_continuation *c)
{
	const struct h5_header_chunk *chunk = chunk_of(edit, message);
	unsigned head = h5_message_prefix_size(&edit->header.prefix);
	size_t messages = head + span->size, n = H5_CONTINUATION_BLOCK_EXTRA + messages;
	uint8_t *block = malloc(n + messages), *copy = block + n;
	struct h5_writer w;
	int rc;

	if (!block)
		return h5_fail(-ENOMEM, message->address, "object header: out of memory");
	memcpy(copy, bytes_at(chunk, span->address - head), messages);
	memcpy(copy + head + (message->address - span->address), body, message->size);
	w = begin_block(edit, block, n, c);
	h5_continuation_block_wrap(&w, copy, messages);
	rc = end_block(edit, &w, block, c);
	free(block);
	return rc;
}

/* Bytes of the body of a continuation message. */
static unsigned link_size(const struct edit *edit)
{
	const struct h5_superblock *sb = h5_file_superblock(edit->file);

	return (unsigned)sb->size_of_offsets + sb->size_of_lengths;
}

/* Writes a continuation message over the message, with `size` bytes of data, and a NIL message over the rest.
 */
static int write_link(const struct edit *edit, const struct h5_message *message,
		      const struct h5_continuation *c, uint32_t size)
{
	const struct h5_superblock *sb = h5_file_superblock(edit->file);
	const struct h5_object_header *prefix = &edit->header.prefix;
	struct h5_header_chunk *chunk = chunk_of(edit, message);
	unsigned head = h5_message_prefix_size(prefix);
	struct h5_message link = {.type = H5_MSG_CONTINUATION, .size = size};
	struct h5_message nil = {.type = H5_MSG_NIL};
	struct h5_writer w = h5_writer_init(bytes_at(chunk, message->address - head), head + message->size,
					    sb->size_of_offsets, sb->size_of_lengths);

	h5_message_encode(&w, prefix, &link);
	w.p -= link.size;
	h5_continuation_encode(&w, c);
	if (size < message->size) {
		nil.size = message->size - size - head;
		h5_message_encode(&w, prefix, &nil);
	}
	return h5_writer_check(&w, "object header");
}

/* Makes a continuation message of the message. The rest of its bytes become a NIL message, so that libhdf5
 * can use them. They belong to the continuation message instead if they are too few for that, or if the chunk
 * may not have that NIL message: beside a gap, or beside other NIL messages with which it would be too large
 * as one. */
static int make_link(const struct edit *edit, const struct h5_message *message,
		     const struct h5_continuation *c)
{
	unsigned head = h5_message_prefix_size(&edit->header.prefix);
	int rc;

	if (message->size - link_size(edit) < head)
		return write_link(edit, message, c, message->size);
	rc = write_link(edit, message, c, link_size(edit));
	if (!rc && h5_header_check_chunk(edit->file, &edit->header, chunk_of(edit, message)))
		rc = write_link(edit, message, c, message->size);
	return rc;
}

/* Block *c is larger than a cell. Puts the continuation message that leads to it into a small block of its
 * own, which becomes *c. When the large block moves, the small one changes in place. */
static int put_link(const struct edit *edit, struct h5_continuation *c)
{
	const struct h5_superblock *sb = h5_file_superblock(edit->file);
	const struct h5_message link = {.type = H5_MSG_CONTINUATION, .size = link_size(edit)};
	const struct h5_continuation large = *c;
	uint8_t body[2 * 8];
	struct h5_writer w = h5_writer_init(body, sizeof body, sb->size_of_offsets, sb->size_of_lengths);
	int rc;

	h5_continuation_encode(&w, &large);
	rc = h5_writer_check(&w, "continuation message");
	return rc ? rc : put_block(edit, &link, body, c);
}

/* Finds what moves so that a continuation message has room: the message, with neighbours if it is too small.
 */
static int find_span(const struct edit *edit, const struct h5_message *message, struct h5_message *span)
{
	*span = *message;
	if (message->size >= link_size(edit))
		return 0;
	return find_row(edit->file, &edit->header.prefix, chunk_of(edit, message), message, link_size(edit),
			span);
}

/* Moves the message to a continuation block of its own. */
static int relocate(const struct edit *edit, const struct h5_message *message, const uint8_t *body)
{
	struct h5_message span = *message;
	struct h5_continuation c;
	int rc = find_span(edit, message, &span);

	if (!rc)
		rc = put_span(edit, &span, message, body, &c);
	if (!rc && c.size > H5_CELL)
		rc = put_link(edit, &c);
	if (!rc)
		rc = make_link(edit, &span, &c);
	return rc ? rc
		  : patch_chunk(edit, chunk_of(edit, message),
				span.address - h5_message_prefix_size(&edit->header.prefix));
}

static int replace_body(const struct edit *edit, const struct h5_message *message, const uint8_t *body)
{
	struct h5_header_chunk *chunk = chunk_of(edit, message);
	uint64_t first = message->address + same_bytes(message->data, body, message->size);

	if (!is_cell(edit, chunk, first))
		return relocate(edit, message, body);
	memcpy(bytes_at(chunk, message->address), body, message->size);
	return patch_chunk(edit, chunk, first);
}

/* Replaces a message that is alone in a continuation block, and whose change is no cell: a new block takes
 * the place of the old one. */
static int replace_block(const struct edit *edit, const struct h5_message *message, const uint8_t *body)
{
	const struct h5_header_chunk *chunk = chunk_of(edit, message);
	const struct h5_superblock *sb = h5_file_superblock(edit->file);
	struct h5_continuation c;
	struct h5_writer w;
	uint8_t *link;
	int rc = put_block(edit, message, body, &c);

	if (rc)
		return rc;
	link = malloc(chunk->link.size);
	if (link) {
		memcpy(link, chunk->link.data, chunk->link.size);
		w = h5_writer_init(link, chunk->link.size, sb->size_of_offsets, sb->size_of_lengths);
		h5_continuation_encode(&w, &c);
		rc = h5_writer_check(&w, "continuation message");
	} else {
		rc = h5_fail(-ENOMEM, chunk->address, "object header: out of memory");
	}
	if (!rc)
		rc = replace_body(edit, &chunk->link, link);
	free(link);
	h5_tx_free(edit->file, chunk->address, chunk->size);
	return rc;
}

static bool is_alone(const struct edit *edit, const struct h5_message *message)
{
	const struct h5_header_chunk *chunk = chunk_of(edit, message);

	return chunk != edit->header.chunks &&
	       chunk->size == H5_CONTINUATION_BLOCK_EXTRA + h5_message_prefix_size(&edit->header.prefix) +
				      message->size;
}

static int replace(const struct edit *edit, const struct h5_message *message, const uint8_t *body)
{
	if (edit->header.prefix.version == 1)
		return patch_pages(edit, message, body);
	if (is_alone(edit, message) && !is_cell(edit, chunk_of(edit, message), message->address))
		return replace_block(edit, message, body);
	return replace_body(edit, message, body);
}

/* Replaces the message in a unit, since several blocks may change. */
static int replace_at_once(const struct edit *edit, uint64_t address, const struct h5_message *message,
			   const uint8_t *body)
{
	int rc = h5_unit_begin(edit->file);

	if (rc)
		return rc;
	rc = h5_tx_touch(edit->file, address);
	if (!rc)
		rc = replace(edit, message, body);
	/* Whatever was decoded from any of its chunks is cached under the header's address. */
	h5_tx_forget(edit->file, address);
	return h5_unit_end(edit->file, rc);
}

/* Loads the header and finds the message. */
static int edit_init(struct edit *edit, struct h5_file *file, uint64_t address, enum h5_message_type type,
		     const struct h5_message **message)
{
	int rc;

	memset(edit, 0, sizeof *edit);
	edit->file = file;
	/* The dataspace changes last, since it makes visible what the other messages lead to. */
	edit->stage = type == H5_MSG_DATASPACE ? H5_STAGE_OBJECT + 1 : H5_STAGE_OBJECT;
	rc = h5_header_load(file, address, &edit->header);
	if (rc)
		return rc;
	*message = h5_header_find(&edit->header, type);
	if (!*message || (*message)->flags & H5_MSG_FLAG_SHARED)
		return h5_fail(-ENOTSUP, address, "object header: message type %#x %s", type,
			       *message ? "is shared: changing it is not supported" : "is not there");
	return 0;
}

int h5_header_can_update(struct h5_file *file, uint64_t address, enum h5_message_type type)
{
	const struct h5_message *message;
	struct h5_message span;
	struct edit edit;
	int rc = edit_init(&edit, file, address, type, &message);

	if (!rc && edit.header.prefix.version > 1 && !is_alone(&edit, message) &&
	    !is_cell(&edit, chunk_of(&edit, message), message->address))
		rc = find_span(&edit, message, &span);
	h5_header_release(&edit.header);
	return rc;
}

int h5_header_update(struct h5_file *file, uint64_t address, enum h5_message_type type,
		     h5_message_update *update, const void *arg)
{
	const struct h5_message *message;
	struct edit edit;
	uint8_t *body = NULL;
	int rc = edit_init(&edit, file, address, type, &message);

	if (!rc) {
		body = malloc(message->size + 1);
		rc = body ? 0 : h5_fail(-ENOMEM, address, "object header: out of memory");
	}
	if (!rc) {
		memcpy(body, message->data, message->size);
		rc = update(arg, body, message->size);
	}
	if (!rc && memcmp(message->data, body, message->size))
		rc = replace_at_once(&edit, address, message, body);
	free(body);
	h5_header_release(&edit.header);
	return rc;
}

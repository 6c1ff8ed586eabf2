#include "change/object_header_layout.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "change/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

unsigned h5_message_size_max(const struct h5_object_header *prefix)
{
	return prefix->version == 1 ? UINT16_MAX / 8 * 8 : UINT16_MAX;
}

int h5_new_message_check(const struct h5_object_header *prefix, const struct h5_new_message *message)
{
	if (message->size > h5_message_size_max(prefix))
		return h5_fail(-E2BIG, H5_UNDEF, "object header: a message of %zu bytes, but %u are the most",
			       message->size, h5_message_size_max(prefix));
	if (message->type == H5_MSG_REFERENCE_COUNT && prefix->version == 1)
		return h5_fail(-ENOTSUP, H5_UNDEF, "object header: version 1 has no reference count message");
	return 0;
}

struct h5_message h5_new_message_get(const struct h5_new_message *message)
{
	static const uint8_t nothing[1];

	return (struct h5_message){.type = (uint16_t)message->type,
				   .flags = message->flags,
				   .creation_order = message->has_order ? message->order : 0,
				   .size = (uint32_t)message->size,
				   .data = message->size ? message->body : nothing};
}

/* Bytes that n bytes of data take. Version 1 pads data to a multiple of 8. */
static size_t data_space(const struct h5_object_header *prefix, size_t n)
{
	return prefix->version == 1 ? (n + 7) / 8 * 8 : n;
}

size_t h5_message_space(const struct h5_object_header *prefix, const struct h5_message *message)
{
	return h5_message_prefix_size(prefix) + data_space(prefix, message->size);
}

/* Writes a message with n bytes in all; zeros follow the data. */
static void lay_message(struct h5_writer *w, const struct h5_object_header *prefix,
			const struct h5_message *message, size_t n)
{
	struct h5_message padded = *message;

	padded.size = (uint32_t)(n - h5_message_prefix_size(prefix));
	h5_message_begin(w, prefix, &padded);
	assert(message->data);
	h5_write_bytes(w, message->data, message->size);
	h5_write_fill(w, 0, padded.size - message->size);
}

/* Makes a NIL message of as much of the rest as one may have. Its data stay as they are. */
static void lay_nil(struct h5_writer *w, const struct h5_object_header *prefix, size_t *rest)
{
	unsigned head = h5_message_prefix_size(prefix);
	size_t n = h5_min(*rest, head + h5_message_size_max(prefix));
	struct h5_message nil = {.type = H5_MSG_NIL};

	if (*rest > n && *rest - n < head)
		n -= head;
	nil.size = (uint32_t)(n - head);
	h5_message_begin(w, prefix, &nil);
	w->p += nil.size;
	*rest -= n;
}

bool h5_header_lay(const struct h5_object_header *prefix, uint8_t *bytes, size_t n,
		   const struct h5_message *messages, size_t count, unsigned *laid)
{
	unsigned head = h5_message_prefix_size(prefix), most = h5_message_size_max(prefix);
	struct h5_writer w = h5_writer_init(bytes, n, 8, 8);
	size_t rest = n, pad = 0, nils;

	for (size_t i = 0; i < count; i++) {
		size_t space = h5_message_space(prefix, &messages[i]);

		if (messages[i].size > most || space > rest)
			return false;
		rest -= space;
	}
	if (rest < head) {
		pad = rest;
		rest = 0;
	}
	if (pad && (!count || prefix->version == 1 || messages[count - 1].size + pad > most))
		return false;
	/* There is a message between two NIL messages. */
	nils = (rest + head + most - 1) / (head + most);
	for (size_t i = 0; i <= count; i++) {
		if (rest && count - i < nils)
			lay_nil(&w, prefix, &rest);
		if (i < count)
			lay_message(&w, prefix, &messages[i],
				    h5_message_space(prefix, &messages[i]) + (i + 1 == count ? pad : 0));
	}
	*laid = (unsigned)(count + nils);
	return !rest && !w.err;
}

struct h5_header_chunk *h5_header_chunk_at(const struct h5_header *header, uint64_t address)
{
	for (unsigned i = 0;; i++) {
		struct h5_header_chunk *chunk = &header->chunks[i];

		assert(i < header->chunk_count);
		if (address >= chunk->address && address - chunk->address < chunk->size)
			return chunk;
	}
}

void h5_header_seal(uint8_t *bytes, size_t n)
{
	n -= H5_OBJECT_HEADER_CHECKSUM;
	h5_uint_to(bytes + n, h5_lookup3(bytes, n, 0), H5_OBJECT_HEADER_CHECKSUM);
}

unsigned h5_header_block_extra(const struct h5_object_header *prefix)
{
	return prefix->version == 1 ? 0 : H5_CONTINUATION_BLOCK_EXTRA;
}

unsigned h5_header_link_size(const struct h5_file *file)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	return (unsigned)sb->size_of_offsets + sb->size_of_lengths;
}

int h5_header_encode_link(const struct h5_file *file, const struct h5_continuation *block, uint8_t *body)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_writer w =
		h5_writer_init(body, H5_HEADER_LINK_MAX, sb->size_of_offsets, sb->size_of_lengths);

	h5_continuation_encode(&w, block);
	return h5_writer_check(&w, "continuation message");
}

int h5_header_put_block(struct h5_file *file, const struct h5_object_header *prefix,
			const struct h5_message *messages, size_t count, size_t room,
			struct h5_continuation *block, unsigned *laid)
{
	size_t extra = h5_header_block_extra(prefix), n = extra + room, before = 0;
	uint8_t *bytes;
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		n += h5_message_space(prefix, &messages[i]);
	bytes = calloc(1, n);
	if (!bytes)
		return h5_fail(-ENOMEM, H5_UNDEF, "object header: out of memory");
	if (prefix->version > 1) {
		memcpy(bytes, "OCHK", 4);
		before = 4;
	}
	if (!h5_header_lay(prefix, bytes + before, n - extra, messages, count, laid))
		rc = h5_fail(-E2BIG, H5_UNDEF, "object header: no continuation block for %zu bytes", n);
	*block = (struct h5_continuation){.address = H5_UNDEF, .size = n};
	if (!rc) {
		if (prefix->version > 1)
			h5_header_seal(bytes, n);
		rc = h5_tx_shadow(file, &block->address, bytes, n);
	}
	free(bytes);
	return rc;
}

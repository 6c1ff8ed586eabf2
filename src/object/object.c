#include "object/object.h"

#include "base/error.h"
#include "format/header_messages.h"
#include "format/shared_message.h"
#include "object/shared_table.h"
#include "store/block.h"

#include <stdlib.h>
#include <string.h>

enum {
	FIRST_READ = 512,	/* most headers are smaller */
	MESSAGES_MAX = 1 << 17, /* the format numbers messages with 16 bits where it does */
	CHUNKS_MAX = 1 << 16,
};

/* Memory of one header; more than any writer makes. */
static const uint64_t HEADER_MAX = (uint64_t)1 << 28;

struct chunk {
	uint64_t address, size;
};

/* An object header while it is read: chunk 0, then each continuation block in the order of their messages. */
struct loader {
	struct h5_file *file;
	struct h5_object_header header;
	struct h5_object *object;
	struct h5_message *messages;
	unsigned capacity;
	struct chunk *chunks; /* read, and after them those still to read */
	unsigned chunk_count, chunk_capacity;
	uint64_t bytes;
};

static void release_object(void *value)
{
	struct h5_object *object = value;

	if (!object)
		return;
	for (unsigned i = 0; i < object->block_count; i++)
		free(object->blocks[i]);
	free(object->blocks);
	free((void *)object->messages);
	free(object);
}

/* Chunks may not overlap, so that no chain of continuations goes in circles. */
static int add_chunk(struct loader *l, struct chunk chunk)
{
	for (unsigned i = 0; i < l->chunk_count; i++) {
		const struct chunk *other = &l->chunks[i];

		if (chunk.address < other->address ? other->address - chunk.address < chunk.size
						   : chunk.address - other->address < other->size)
			return h5_fail(-EUCLEAN, chunk.address,
				       "object header: overlapping continuation blocks");
	}
	if (l->chunk_count >= CHUNKS_MAX || chunk.size > HEADER_MAX - l->bytes)
		return h5_fail(-ENOTSUP, chunk.address, "object header: too large");
	if (l->chunk_count == l->chunk_capacity) {
		unsigned more = l->chunk_capacity ? 2 * l->chunk_capacity : 4;
		struct chunk *chunks = realloc(l->chunks, more * sizeof *chunks);

		if (!chunks)
			return h5_fail(-ENOMEM, chunk.address, "object header: out of memory");
		l->chunks = chunks;
		l->chunk_capacity = more;
	}
	l->bytes += chunk.size;
	l->chunks[l->chunk_count++] = chunk;
	return 0;
}

static int add_continuation(struct loader *l, const struct h5_message *message)
{
	struct h5_reader r = h5_file_reader(l->file, message->data, message->size, message->address);
	struct h5_continuation c;
	int rc = h5_continuation_decode(&r, &c);

	if (rc)
		return rc;
	if (!c.size)
		return h5_fail(-EUCLEAN, message->address, "object header: empty continuation block");
	return add_chunk(l, (struct chunk){c.address, c.size});
}

static int add_message(struct loader *l, const struct h5_message *message)
{
	if (message->type > H5_MSG_STRUCTURED_PIPELINE && message->flags & H5_MSG_FLAG_FAIL_UNKNOWN)
		return h5_fail(-ENOTSUP, message->address, "object header: message type %#x is not supported",
			       message->type);
	if (l->object->count >= MESSAGES_MAX)
		return h5_fail(-ENOTSUP, message->address, "object header: too many messages");
	if (l->object->count == l->capacity) {
		unsigned more = l->capacity ? 2 * l->capacity : 8;
		struct h5_message *messages = realloc(l->messages, more * sizeof *messages);

		if (!messages)
			return h5_fail(-ENOMEM, message->address, "object header: out of memory");
		l->object->messages = l->messages = messages;
		l->capacity = more;
	}
	l->messages[l->object->count++] = *message;
	return 0;
}

/* The messages of one chunk; `r` is over them alone. */
static int read_messages(struct loader *l, struct h5_reader *r)
{
	struct h5_message message;
	int rc;

	while ((rc = h5_object_header_next(r, &l->header, &message)) > 0) {
		if (message.type == H5_MSG_NIL)
			rc = 0;
		else if (message.type == H5_MSG_CONTINUATION)
			rc = add_continuation(l, &message);
		else
			rc = add_message(l, &message);
		if (rc)
			return rc;
	}
	return rc;
}

/* The block becomes the object's, which frees it. */
static int keep_block(struct h5_object *object, void *block)
{
	uint8_t **blocks = realloc(object->blocks, (object->block_count + 1) * sizeof *blocks);

	if (!blocks) {
		free(block);
		return h5_fail(-ENOMEM, object->address, "object header: out of memory");
	}
	object->blocks = blocks;
	blocks[object->block_count++] = block;
	return 0;
}

/* A continuation block: in version 1 nothing but messages, in version 2 between signature OCHK and checksum.
 */
static int read_continuation(struct loader *l, struct chunk chunk)
{
	struct h5_reader r, messages;
	void *block;
	size_t n = chunk.size;
	int rc = h5_block_read(l->file, chunk.address, 0, n, "object header continuation", &block);

	if (!rc)
		rc = keep_block(l->object, block);
	if (rc)
		return rc;
	r = h5_file_reader(l->file, block, n, chunk.address);
	if (l->header.version == 1)
		return read_messages(l, &r);
	if (!h5_read_signature(&r, "OCHK"))
		return h5_fail(-EUCLEAN, chunk.address, "object header continuation: wrong signature");
	if (n < 4 + (size_t)H5_OBJECT_HEADER_CHECKSUM)
		return h5_fail(-EUCLEAN, chunk.address, "object header continuation: truncated");
	messages = h5_reader_sub(&r, n - 4 - H5_OBJECT_HEADER_CHECKSUM);
	rc = h5_reader_checksum(&r, "object header continuation");
	return rc ? rc : read_messages(l, &messages);
}

/* Prefix and chunk 0. */
static int read_first(struct loader *l, uint64_t address)
{
	struct h5_reader r, messages;
	uint8_t first[FIRST_READ];
	void *block;
	size_t got = 0, prefix, tail;
	int rc = h5_file_read_some(l->file, address, first, sizeof first, &got);

	if (rc)
		return rc;
	r = h5_file_reader(l->file, first, got, address);
	rc = h5_object_header_decode(&r, &l->header);
	if (rc)
		return rc;
	prefix = h5_reader_at(&r);
	tail = l->header.version == 1 ? 0 : H5_OBJECT_HEADER_CHECKSUM;
	if (l->header.chunk_size > HEADER_MAX)
		return h5_fail(-EUCLEAN, address, "object header: too large");
	rc = add_chunk(l, (struct chunk){address, prefix + l->header.chunk_size + tail});
	if (rc)
		return rc;
	if (l->bytes <= got) {
		block = malloc(l->bytes);
		if (!block)
			return h5_fail(-ENOMEM, address, "object header: out of memory");
		memcpy(block, first, l->bytes);
	} else {
		rc = h5_block_read(l->file, address, 0, l->bytes, "object header", &block);
		if (rc)
			return rc;
	}
	rc = keep_block(l->object, block);
	if (rc)
		return rc;
	r = h5_file_reader(l->file, block, l->bytes, address);
	h5_reader_skip(&r, prefix);
	messages = h5_reader_sub(&r, l->header.chunk_size);
	if (l->header.version > 1)
		rc = h5_reader_checksum(&r, "object header");
	return rc ? rc : read_messages(l, &messages);
}

static enum h5_object_kind kind_of(const struct h5_object *object)
{
	if (h5_object_find(object, H5_MSG_SYMBOL_TABLE) || h5_object_find(object, H5_MSG_LINK_INFO))
		return H5_OBJECT_GROUP;
	if (!h5_object_find(object, H5_MSG_DATATYPE))
		return H5_OBJECT_UNKNOWN;
	return h5_object_find(object, H5_MSG_DATASPACE) ? H5_OBJECT_DATASET : H5_OBJECT_DATATYPE;
}

/* What the small messages say. A damaged one tells nothing, and harms nothing else. */
static void read_facts(struct loader *l)
{
	struct h5_object *object = l->object;
	const struct h5_message *count = h5_object_find(object, H5_MSG_REFERENCE_COUNT);
	const struct h5_message *mtime = h5_object_find(object, H5_MSG_MTIME);
	const struct h5_message *old = h5_object_find(object, H5_MSG_MTIME_OLD);
	uint32_t references;
	int64_t seconds = 0;
	struct h5_reader r;
	int rc = 0;

	object->version = l->header.version;
	object->kind = kind_of(object);
	object->references = object->version == 1 ? l->header.references : 1;
	if (object->version > 1 && count) {
		r = h5_file_reader(l->file, count->data, count->size, count->address);
		if (!h5_reference_count_decode(&r, &references))
			object->references = references;
	}
	if (l->header.mtime) {
		seconds = l->header.mtime;
	} else if (mtime) {
		r = h5_file_reader(l->file, mtime->data, mtime->size, mtime->address);
		rc = h5_mtime_decode(&r, &seconds);
	} else if (old) {
		r = h5_file_reader(l->file, old->data, old->size, old->address);
		rc = h5_mtime_old_decode(&r, &seconds);
	}
	object->has_mtime = !rc && seconds;
	object->mtime = object->has_mtime ? seconds : 0;
}

static int load_object(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct loader l = {.file = file, .object = calloc(1, sizeof *l.object)};
	int rc;

	(void)arg;
	if (!l.object)
		return h5_fail(-ENOMEM, address, "object header: out of memory");
	l.object->address = address;
	rc = read_first(&l, address);
	for (unsigned i = 1; !rc && i < l.chunk_count; i++)
		rc = read_continuation(&l, l.chunks[i]);
	free(l.chunks);
	if (rc) {
		release_object(l.object);
		return rc;
	}
	read_facts(&l);
	*value = l.object;
	*cost = sizeof *l.object + l.bytes + l.capacity * sizeof *l.messages +
		l.object->block_count * sizeof *l.object->blocks;
	return 0;
}

static const struct h5_block_type object_block = {
	.kind = {.name = "object header", .release = release_object},
	.load = load_object,
};

int h5_object_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		  const struct h5_object **object)
{
	int rc = h5_file_block(file, &object_block, address, 0, NULL, ref);

	*object = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

const struct h5_message *h5_object_find(const struct h5_object *object, enum h5_message_type type)
{
	for (unsigned i = 0; i < object->count; i++)
		if (object->messages[i].type == type)
			return &object->messages[i];
	return NULL;
}

/* The message of that type in the header at the address; one that is shared in turn is none. */
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
	body->reader = h5_file_reader(file, message->data, message->size, message->address);
	return 0;
}

int h5_message_open_shared(struct h5_file *file, enum h5_message_type type, struct h5_reader *r,
			   struct h5_message_body *body)
{
	struct h5_shared_message shared;
	size_t size;
	int rc;

	memset(body, 0, sizeof *body);
	rc = h5_shared_message_decode(r, &shared);
	if (rc)
		return rc;
	if (shared.in_heap) {
		rc = h5_shared_table_get(file, type, shared.id, &body->copy, &size);
		if (!rc)
			body->reader = h5_file_reader(file, body->copy, size, H5_UNDEF);
	} else {
		rc = open_in_header(file, type, shared.address, body);
	}
	if (rc)
		h5_message_release(file, body);
	return rc;
}

int h5_message_open(struct h5_file *file, const struct h5_message *message, struct h5_message_body *body)
{
	struct h5_reader r = h5_file_reader(file, message->data, message->size, message->address);

	if (message->flags & H5_MSG_FLAG_SHARED)
		return h5_message_open_shared(file, message->type, &r, body);
	memset(body, 0, sizeof *body);
	body->reader = r;
	return 0;
}

void h5_message_release(struct h5_file *file, struct h5_message_body *body)
{
	h5_file_put(file, body->ref);
	free(body->copy);
	memset(body, 0, sizeof *body);
}

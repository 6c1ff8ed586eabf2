#include "store/object_header.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "store/block.h"
#include "store/file.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_READ = 512,	/* bytes that are read of a header at first; most are smaller */
	FIRST_MESSAGES = 8,	/* that room is made for; few headers have more */
	MESSAGES_MAX = 1 << 17, /* most messages of a header; version 1 counts them in 16 bits */
	CHUNKS_MAX = 1 << 16,
	WINDOW_MAX = 1 << 16, /* most bytes of a window */
	/* Reading so many bytes for nothing costs no more than another call. */
	GAP = 1 << 12,
};

/* The most bytes of a header; no writer makes a larger one. */
static const uint64_t HEADER_MAX = (uint64_t)1 << 25;

/* ---- a window ---- */

void h5_window_init(struct h5_window *window, struct h5_file *file)
{
	*window = (struct h5_window){.file = file};
}

void h5_window_release(struct h5_window *window)
{
	free(window->bytes);
	window->bytes = NULL;
	window->size = 0;
}

/* The *n bytes that the window holds from the address on, borrowed until it is moved; NULL: none, or the file
 * has changed since. The window may be NULL. */
static const uint8_t *bytes_at(const struct h5_window *window, uint64_t address, size_t *n)
{
	if (!window || address < window->address || address - window->address >= window->size ||
	    window->number != h5_file_number(window->file))
		return NULL;
	*n = window->size - (size_t)(address - window->address);
	return window->bytes + (address - window->address);
}

/* Bytes from the first address to the end of the last structure that lies close behind; 0: there is none. */
static size_t find_run(const uint64_t *addresses, size_t n, size_t each)
{
	size_t size = each, i = 1;

	for (; i < n && addresses[i] >= addresses[i - 1]; i++) {
		uint64_t distance = addresses[i] - addresses[0];

		if (distance > size + GAP || distance + each > WINDOW_MAX)
			break;
		size = (size_t)distance + each;
	}
	return i > 1 ? size : 0;
}

void h5_window_move(struct h5_window *window, const uint64_t *addresses, size_t n, size_t each)
{
	uint64_t end = h5_file_end(window->file), address = addresses[0];
	size_t held, size;

	if (address >= end ||
	    (bytes_at(window, address, &held) && held >= (size_t)h5_min(each, end - address)))
		return;
	window->size = 0;
	size = find_run(addresses, n, each);
	if (!size || size > WINDOW_MAX)
		return;
	if (!window->bytes)
		window->bytes = malloc(WINDOW_MAX);
	window->number = h5_file_number(window->file);
	window->address = address;
	if (window->bytes && h5_file_read_some(window->file, address, window->bytes, size, &window->size))
		window->size = 0;
}

/* ---- a header ---- */

/* An object header while it is read: chunk 0, then each continuation block in the order of their messages. In
 * the list of chunks, those that are still to be read come last. */
struct loader {
	struct h5_file *file;
	const struct h5_window *window; /* NULL: none */
	struct h5_header *header;
	size_t capacity, chunk_capacity; /* of header->messages, header->chunks */
	uint64_t bytes;
	void *ranges; /* of the chunks, if there are several; see tsearch(3) */
};

struct range {
	uint64_t address, size;
};

/* Ranges that overlap are equal. */
static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->address < y->address)
		return y->address - x->address < x->size ? 0 : -1;
	return x->address - y->address < y->size ? 0 : 1;
}

static int add_range(struct loader *loader, const struct h5_header_chunk *chunk)
{
	struct range *range = malloc(sizeof *range), **found;

	if (!range)
		return h5_fail(-ENOMEM, chunk->address, "object header: out of memory");
	*range = (struct range){chunk->address, chunk->size};
	found = tsearch(range, &loader->ranges, compare_ranges);
	if (found && *found == range)
		return 0;
	free(range);
	return found ? h5_fail(-EUCLEAN, chunk->address, "object header: overlapping continuation blocks")
		     : h5_fail(-ENOMEM, chunk->address, "object header: out of memory");
}

static size_t messages_cost(const struct loader *loader)
{
	return loader->capacity * sizeof *loader->header->messages +
	       loader->chunk_capacity * sizeof *loader->header->chunks;
}

/* Chunks may not overlap, so that no chain of continuations goes in circles. */
static int add_chunk(struct loader *loader, struct h5_header_chunk chunk)
{
	struct h5_header *header = loader->header;
	int rc = 0;

	/* Most headers have only one chunk, which needs no range. */
	if (header->chunk_count == 1)
		rc = add_range(loader, header->chunks);
	if (!rc && header->chunk_count)
		rc = add_range(loader, &chunk);
	if (rc)
		return rc;
	if (header->chunk_count >= CHUNKS_MAX || chunk.size > HEADER_MAX - loader->bytes)
		return h5_fail(-ENOTSUP, chunk.address, "object header: too large");
	rc = h5_array_reserve(&header->chunks, &loader->chunk_capacity, header->chunk_count + 1u, NULL);
	if (rc)
		return rc;
	rc = h5_charge_set(&header->charge, (size_t)(loader->bytes + chunk.size) + messages_cost(loader));
	if (rc)
		return rc;
	loader->bytes += chunk.size;
	header->chunks[header->chunk_count++] = chunk;
	return 0;
}

static int add_continuation(struct loader *loader, const struct h5_message *message)
{
	struct h5_reader r = h5_file_reader(loader->file, message->data, message->size, message->address);
	struct h5_continuation c;
	int rc = h5_continuation_decode(&r, &c);

	if (rc)
		return rc;
	if (!c.size)
		return h5_fail(-EUCLEAN, message->address, "object header: empty continuation block");
	return add_chunk(loader,
			 (struct h5_header_chunk){.address = c.address, .size = c.size, .link = *message});
}

static int add_message(struct loader *loader, const struct h5_message *message)
{
	bool unknown = h5_message_is_unknown(message);
	size_t capacity = loader->capacity;
	int rc;

	loader->header->is_fixed |= unknown && message->flags & H5_MSG_FLAG_FIX_UNKNOWN;
	loader->header->is_to_mark |= h5_message_is_to_mark(message);
	if (unknown && message->flags & H5_MSG_FLAG_FAIL_UNKNOWN)
		return h5_fail(-ENOTSUP, message->address, "object header: message type %#x is not supported",
			       message->type);
	if (loader->header->count >= MESSAGES_MAX)
		return h5_fail(-ENOTSUP, message->address, "object header: too many messages");
	rc = h5_array_reserve(&loader->header->messages, &loader->capacity,
			      loader->header->count ? loader->header->count + 1u : FIRST_MESSAGES, NULL);
	if (!rc && loader->capacity != capacity)
		rc = h5_charge_set(&loader->header->charge, (size_t)loader->bytes + messages_cost(loader));
	if (rc)
		return rc;
	loader->header->messages[loader->header->count++] = *message;
	return 0;
}

/* The messages of one chunk; `r` is over them alone. */
static int read_messages(struct loader *loader, struct h5_reader *r)
{
	struct h5_message message;
	int rc = h5_interrupt_check();

	if (rc)
		return rc;
	while ((rc = h5_object_header_next(r, &loader->header->prefix, &message)) > 0) {
		if (message.type == H5_MSG_NIL)
			rc = 0;
		else if (message.type == H5_MSG_CONTINUATION)
			rc = add_continuation(loader, &message);
		else
			rc = add_message(loader, &message);
		if (rc)
			return rc;
	}
	return rc;
}

/* The bytes of a chunk, owned: from the window, if it holds them all. */
static int read_block(const struct loader *loader, uint64_t address, uint64_t size, const char *what,
		      void **block)
{
	size_t held;
	const uint8_t *bytes = bytes_at(loader->window, address, &held);

	if (!bytes || held < size)
		return h5_block_read(loader->file, address, 0, size, what, block);
	*block = malloc((size_t)size);
	if (!*block)
		return h5_fail(-ENOMEM, address, "%s: out of memory", what);
	memcpy(*block, bytes, (size_t)size);
	return 0;
}

/* Reads a continuation block, which in version 1 has nothing but messages. */
static int read_continuation(struct loader *loader, struct h5_header_chunk *chunk)
{
	struct h5_reader r, messages;
	void *block;
	int rc = read_block(loader, chunk->address, chunk->size, "object header continuation", &block);

	if (rc)
		return rc;
	chunk->bytes = block;
	r = h5_file_reader(loader->file, block, (size_t)chunk->size, chunk->address);
	if (loader->header->prefix.version == 1)
		return read_messages(loader, &r);
	rc = h5_continuation_block_decode(&r, &messages);
	return rc ? rc : read_messages(loader, &messages);
}

/* Bytes that the first read of a header asks for: no more than are in memory, if that is enough to know more.
 */
static size_t first_size(const struct h5_file *file, uint64_t address)
{
	size_t pending = h5_file_pending(file, address);

	return pending < H5_OBJECT_HEADER_PREFIX_MAX ? FIRST_READ : (size_t)h5_min(pending, FIRST_READ);
}

/* Reads the prefix and chunk 0. */
static int read_first(struct loader *loader, uint64_t address)
{
	struct h5_reader r, messages;
	uint8_t own[FIRST_READ];
	void *block;
	size_t got = 0, prefix, tail;
	const uint8_t *first = bytes_at(loader->window, address, &got);
	int rc = 0;

	if (!first || got < H5_OBJECT_HEADER_PREFIX_MAX) {
		first = own;
		rc = h5_file_read_some(loader->file, address, own, first_size(loader->file, address), &got);
	}
	if (rc)
		return rc;
	r = h5_file_reader(loader->file, first, got, address);
	rc = h5_object_header_decode(&r, &loader->header->prefix);
	if (rc)
		return rc;
	prefix = h5_reader_at(&r);
	tail = loader->header->prefix.version == 1 ? 0 : H5_OBJECT_HEADER_CHECKSUM;
	if (loader->header->prefix.chunk_size > HEADER_MAX)
		return h5_fail(-EUCLEAN, address, "object header: too large");
	rc = add_chunk(loader,
		       (struct h5_header_chunk){.address = address,
						.size = prefix + loader->header->prefix.chunk_size + tail});
	if (rc)
		return rc;
	if (loader->bytes <= got) {
		block = malloc((size_t)loader->bytes);
		if (!block)
			return h5_fail(-ENOMEM, address, "object header: out of memory");
		memcpy(block, first, (size_t)loader->bytes);
	} else {
		rc = h5_block_read(loader->file, address, 0, loader->bytes, "object header", &block);
		if (rc)
			return rc;
	}
	loader->header->chunks->bytes = block;
	r = h5_file_reader(loader->file, block, (size_t)loader->bytes, address);
	h5_reader_skip(&r, prefix);
	messages = h5_reader_sub(&r, loader->header->prefix.chunk_size);
	if (loader->header->prefix.version > 1)
		rc = h5_reader_checksum(&r, "object header");
	return rc ? rc : read_messages(loader, &messages);
}

struct h5_reader h5_header_chunk_messages(const struct h5_file *file, const struct h5_object_header *prefix,
					  const struct h5_header_chunk *chunk)
{
	size_t before = 0, after = prefix->version == 1 ? 0 : H5_OBJECT_HEADER_CHECKSUM;
	struct h5_reader r;

	assert(chunk->bytes);
	if (!chunk->link.data)
		before = (size_t)(chunk->size - prefix->chunk_size) - after;
	else if (prefix->version > 1)
		before = H5_CONTINUATION_BLOCK_EXTRA - after;
	r = h5_file_reader(file, chunk->bytes, (size_t)chunk->size - after, chunk->address);
	h5_reader_skip(&r, before);
	return r;
}

void h5_header_release(struct h5_header *header)
{
	for (unsigned i = 0; i < header->chunk_count; i++)
		free(header->chunks[i].bytes);
	free(header->chunks);
	free(header->messages);
	h5_charge_release(&header->charge);
	memset(header, 0, sizeof *header);
}

static int load(struct h5_file *file, const struct h5_window *window, uint64_t address,
		struct h5_header *header)
{
	struct loader loader = {.file = file, .window = window, .header = header};
	int rc;

	memset(header, 0, sizeof *header);
	rc = read_first(&loader, address);
	for (unsigned i = 1; !rc && i < header->chunk_count; i++)
		rc = read_continuation(&loader, &header->chunks[i]);
	tdestroy(loader.ranges, free);
	if (rc) {
		h5_header_release(header);
		return rc;
	}
	header->cost = (size_t)loader.bytes + messages_cost(&loader);
	return 0;
}

int h5_header_load(struct h5_file *file, uint64_t address, struct h5_header *header)
{
	return load(file, NULL, address, header);
}

int h5_header_may_change(struct h5_file *file, uint64_t address)
{
	struct h5_header header;
	int rc = h5_header_load(file, address, &header);

	if (rc)
		return rc;
	if (header.is_fixed)
		rc = h5_fail(-ENOTSUP, address,
			     "object header: it has a message of an unknown type, and must not be changed");
	h5_header_release(&header);
	return rc;
}

int h5_header_load_near(const struct h5_window *window, uint64_t address, struct h5_header *header)
{
	return load(window->file, window, address, header);
}

#include "change/object_header_change.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	TRIES = 32,	 /* layouts of a chunk that are tried */
	ROOM_LEAST = 256 /* bytes of the least continuation block, in which others may follow */
};

static const uint64_t HEADER_MAX = (uint64_t)1 << 24;

/* All messages of a chunk, in their order. */
struct row {
	const struct h5_header_chunk *chunk;
	struct h5_message *items;
	size_t count, capacity;
	size_t end; /* offset behind the messages and the gap */
	size_t old; /* index of the old message; `count`: it is not here */
	unsigned head;
};

/* ---- a chunk ---- */

/* Offset in the chunk of an item; of `count`: the end. The last item has the gap. */
static size_t at(const struct row *row, size_t i)
{
	return i < row->count ? (size_t)(row->items[i].address - row->chunk->address) - row->head : row->end;
}

static bool is_nil(const struct row *row, size_t i)
{
	return row->items[i].type == H5_MSG_NIL;
}

static void row_release(struct row *row)
{
	free(row->items);
}

static int row_init(struct row *row, const struct h5_header_change *change,
		    const struct h5_header_chunk *chunk)
{
	const struct h5_object_header *prefix = &change->header.prefix;
	struct h5_reader r = h5_header_chunk_messages(change->file, prefix, chunk);
	struct h5_message message;
	int rc;

	*row = (struct row){.chunk = chunk, .head = h5_message_prefix_size(prefix), .old = SIZE_MAX};
	row->end = (size_t)(r.end - chunk->bytes);
	while ((rc = h5_object_header_next(&r, prefix, &message)) > 0) {
		rc = h5_array_reserve(&row->items, &row->capacity, row->count + 1, NULL);
		if (rc)
			break;
		if (change->old.data && message.address == change->old.address)
			row->old = row->count;
		row->items[row->count++] = message;
	}
	row->old = row->old < row->count ? row->old : row->count;
	/* In version 1 no message can use the gap, since it is not aligned. */
	if (prefix->version == 1)
		row->end -= h5_reader_left(&r);
	if (rc)
		row_release(row);
	return rc;
}

/* The messages that are to be in the place of the items [first, last): free(), *n of them. */
static struct h5_message *gather(const struct h5_header_change *change, const struct row *row, size_t first,
				 size_t last, size_t *n)
{
	struct h5_message *list = malloc((last - first + 1) * sizeof *list);

	*n = 0;
	for (size_t i = first; list && i < last; i++) {
		if (i != row->old && !is_nil(row, i))
			list[(*n)++] = row->items[i];
		if (i == row->old && change->new.data)
			list[(*n)++] = change->new;
	}
	if (list && !change->old.data)
		list[(*n)++] = change->new;
	return list;
}

static int no_memory(const struct h5_header_change *change)
{
	return h5_fail(-ENOMEM, change->header.chunks->address, "object header: out of memory");
}

/* ---- writing ----
 *
 * What tries to do something returns 1: it is done; 0: it is not possible, and nothing has happened; or an
 * error. Unless `any`, it is possible only by a cell. */

/* True: a change of the bytes from the offset on would be a cell. Version 1: of n bytes; version 2: up to the
 * checksum. */
static bool is_safe(const struct h5_header_change *change, const struct h5_header_chunk *chunk, size_t from,
		    size_t n)
{
	if (change->header.prefix.version > 1)
		n = (size_t)chunk->size - from;
	return h5_tx_is_safe(change->file, chunk->address + from, n);
}

/* The number of messages of a version 1 header rises before they are there. */
static int count_messages(const struct h5_header_change *change)
{
	const struct h5_header *header = &change->header;
	uint8_t field[2];

	if (header->prefix.version > 1 || change->messages <= header->prefix.messages)
		return 0;
	if (change->messages > UINT16_MAX)
		return h5_fail(-ENOSPC, header->chunks->address, "object header: too many messages");
	h5_uint_to(field, change->messages, sizeof field);
	return h5_tx_patch(change->file, header->chunks->address + 2, field, sizeof field, H5_STAGE_MESSAGES);
}

int h5_header_delay_link(struct h5_file *file, const struct h5_header *header, uint64_t address,
			 unsigned stage)
{
	const struct h5_message *link = NULL;

	while (h5_tx_is_new(file, address)) {
		link = &h5_header_chunk_at(header, address)->link;
		if (!link->data)
			return 0;
		address = link->address;
	}
	return link ? h5_tx_delay(file, address, link->size, stage) : 0;
}

int h5_header_put_bytes(const struct h5_header_change *change, const struct h5_header_chunk *chunk,
			uint8_t *bytes, bool any)
{
	size_t n = (size_t)chunk->size, from = 0, to = n;
	int rc;

	if (change->header.prefix.version > 1)
		h5_header_seal(bytes, n);
	while (from < to && bytes[from] == chunk->bytes[from])
		from++;
	while (to > from && bytes[to - 1] == chunk->bytes[to - 1])
		to--;
	if (from == to)
		return 1;
	if (!any && !h5_tx_is_safe(change->file, chunk->address + from, to - from))
		return 0;
	rc = count_messages(change);
	if (!rc)
		rc = h5_tx_patch(change->file, chunk->address + from, bytes + from, to - from, change->stage);
	if (!rc)
		rc = h5_header_delay_link(change->file, &change->header, chunk->address, change->stage);
	return rc ? rc : 1;
}

/* Lays the n messages in the place of the items [first, last). */
static int lay_over(struct h5_header_change *change, const struct row *row, size_t first, size_t last,
		    const struct h5_message *list, size_t n, bool any)
{
	size_t from = at(row, first), before = change->messages;
	uint8_t *bytes = malloc((size_t)row->chunk->size);
	struct h5_header_chunk image;
	unsigned laid;
	int rc = 0;

	if (!bytes)
		return no_memory(change);
	memcpy(bytes, row->chunk->bytes, (size_t)row->chunk->size);
	if (h5_header_lay(&change->header.prefix, bytes + from, at(row, last) - from, list, n, &laid)) {
		image = (struct h5_header_chunk){row->chunk->address, row->chunk->size, bytes,
						 row->chunk->link};
		change->messages += laid;
		change->messages -= (unsigned)(last - first);
		if (!h5_header_check_chunk(change->file, &change->header, &image))
			rc = h5_header_put_bytes(change, row->chunk, bytes, any);
	}
	if (!rc)
		change->messages = (unsigned)before;
	free(bytes);
	return rc;
}

/* ---- in the chunk ---- */

/* Replaces the old message by one of the same size. All else in the chunk stays as it is. */
static int same_size(struct h5_header_change *change, const struct row *row, bool any)
{
	const struct h5_superblock *sb = h5_file_superblock(change->file);
	struct h5_writer w;
	uint8_t *bytes;
	int rc;

	if (!change->old.data || !change->new.data || change->new.size != change->old.size)
		return 0;
	bytes = malloc((size_t)row->chunk->size);
	if (!bytes)
		return no_memory(change);
	memcpy(bytes, row->chunk->bytes, (size_t)row->chunk->size);
	w = h5_writer_init(bytes + at(row, row->old), row->head + change->old.size, sb->size_of_offsets,
			   sb->size_of_lengths);
	h5_message_encode(&w, &change->header.prefix, &change->new);
	assert(!w.err);
	rc = h5_header_put_bytes(change, row->chunk, bytes, any);
	free(bytes);
	return rc;
}

static int try_window(struct h5_header_change *change, const struct row *row, size_t first, size_t last,
		      bool any)
{
	struct h5_message *list;
	size_t n;
	int rc;

	if (!any && change->header.prefix.version > 1 && !is_safe(change, row->chunk, at(row, first), 0))
		return 0;
	list = gather(change, row, first, last, &n);
	if (!list)
		return no_memory(change);
	rc = lay_over(change, row, first, last, list, n, any);
	free(list);
	return rc;
}

/* The items from `first` up to which one are to be laid anew, so that those fit. In version 2 it is the whole
 * rest of the chunk, which is written anyway. */
static size_t window_end(const struct h5_header_change *change, const struct row *row, size_t first)
{
	const struct h5_object_header *prefix = &change->header.prefix;
	size_t used = 0;

	if (prefix->version > 1)
		return row->count;
	for (size_t i = first; i < row->count; i++) {
		const struct h5_message *message = i == row->old ? &change->new : &row->items[i];

		if (message->data && message->type != H5_MSG_NIL)
			used += h5_message_space(prefix, message);
		if (i >= row->old && used <= at(row, i + 1) - at(row, first))
			return i + 1;
	}
	return row->count;
}

/* Replaces or removes the old message: from where it is, from the NIL messages before it, or from further
 * before. */
static int change_in_place(struct h5_header_change *change, const struct row *row, bool any)
{
	size_t first = row->old, step = 1;
	int rc;

	while (first && is_nil(row, first - 1))
		first--;
	rc = try_window(change, row, first, window_end(change, row, first), any);
	for (unsigned i = 0; i < TRIES && !rc; i++) {
		rc = try_window(change, row, row->old - h5_min(row->old, step - 1),
				window_end(change, row, row->old - h5_min(row->old, step - 1)), any);
		if (step > row->old)
			break;
		step += i < TRIES / 2 ? 1 : step;
	}
	return rc;
}

/* Version 2: the messages from some NIL message on move together. */
static int insert_compacting(struct h5_header_change *change, const struct row *row, bool any)
{
	size_t need = h5_message_space(&change->header.prefix, &change->new), space = 0;
	unsigned tries = 0;
	int rc = 0;

	for (size_t i = row->count; i-- > 0 && !rc && tries < TRIES;) {
		if (!is_nil(row, i))
			continue;
		space += row->head + row->items[i].size;
		if (space >= need) {
			rc = try_window(change, row, i, row->count, any);
			tries++;
		}
	}
	return rc;
}

/* Version 1: nothing else moves. */
static int insert_into_nil(struct h5_header_change *change, const struct row *row, bool any)
{
	size_t need = h5_message_space(&change->header.prefix, &change->new), first = 0;
	unsigned tries = 0;
	int rc = 0;

	for (size_t i = 0; i < row->count && !rc && tries < TRIES; i++) {
		if (!is_nil(row, i)) {
			first = i + 1;
		} else if (at(row, i + 1) - at(row, first) >= need) {
			rc = try_window(change, row, first, i + 1, any);
			tries++;
		}
	}
	return rc;
}

static int in_place(struct h5_header_change *change, const struct row *row, bool any)
{
	if (change->old.data)
		return change_in_place(change, row, any);
	return change->header.prefix.version > 1 ? insert_compacting(change, row, any)
						 : insert_into_nil(change, row, any);
}

/* ---- by a new block ---- */

/* Bytes to spare in a new block, so that the blocks of a header that grows do not become many. */
static size_t room_of(const struct h5_header_change *change, const struct h5_message *list, size_t n)
{
	const struct h5_object_header *prefix = &change->header.prefix;
	size_t size = h5_header_block_extra(prefix), most, room;

	for (size_t i = 0; i < n; i++)
		size += h5_message_space(prefix, &list[i]);
	most = (size_t)h5_min(h5_max(change->bytes, ROOM_LEAST), H5_CELL) / 8 * 8;
	if (size >= most || !change->new.data)
		return 0;
	room = most - size;
	return room < h5_message_prefix_size(prefix) ? 0 : room;
}

/* Puts the messages into a new block. */
static int put_block(struct h5_header_change *change, const struct h5_message *list, size_t n,
		     struct h5_continuation *block)
{
	const struct h5_object_header *prefix = &change->header.prefix;
	/* In version 1 an empty block would have no bytes. */
	size_t room = n || prefix->version > 1 ? room_of(change, list, n) : h5_message_prefix_size(prefix);
	unsigned laid;
	int rc = h5_header_put_block(change->file, prefix, list, n, room, block, &laid);

	if (rc)
		return rc;
	change->messages += laid;
	if (block->size <= HEADER_MAX - h5_min(HEADER_MAX, change->bytes))
		return 0;
	return h5_fail(-E2BIG, change->header.chunks->address, "object header: more than %ju bytes",
		       (uintmax_t)HEADER_MAX);
}

/* Makes a continuation message of the items [first, last), if that fits. It has all of their bytes if a NIL
 * message may not be there. */
static int lay_link(struct h5_header_change *change, const struct row *row, size_t first, size_t last,
		    const struct h5_continuation *block, bool any)
{
	size_t from = at(row, first) + row->head, n = at(row, last) - from;
	struct h5_message link = {.type = H5_MSG_CONTINUATION, .size = h5_header_link_size(change->file)};
	uint8_t *body = malloc(n + H5_HEADER_LINK_MAX);
	int rc;

	if (!body)
		return no_memory(change);
	memcpy(body, row->chunk->bytes + from, n);
	link.data = body;
	rc = h5_header_encode_link(change->file, block, body);
	if (!rc)
		rc = lay_over(change, row, first, last, &link, 1, any);
	if (!rc && n > link.size) {
		link.size = (uint32_t)n;
		rc = lay_over(change, row, first, last, &link, 1, any);
	}
	free(body);
	return rc;
}

/* Puts a block that leads to the other one and has nothing else. When the other one moves, this one changes
 * in place. */
static int put_link(struct h5_header_change *change, const struct h5_continuation *to,
		    struct h5_continuation *block)
{
	uint8_t body[H5_HEADER_LINK_MAX];
	const struct h5_message link = {
		.type = H5_MSG_CONTINUATION, .size = h5_header_link_size(change->file), .data = body};
	int rc = h5_header_encode_link(change->file, to, body);

	return rc ? rc : put_block(change, &link, 1, block);
}

void h5_header_delay_change(struct h5_header_change *change, uint64_t address, uint64_t n)
{
	const unsigned latest = h5_tx_latest_stage(change->file, address, n);

	change->stage = latest > change->stage ? latest : change->stage;
}

/* Messages in new space. */
struct moved {
	struct h5_continuation block;
	struct h5_continuation between; /* size 0: none; else it leads to the block */
	unsigned messages;		/* of the header, before */
	unsigned stage;			/* of the change, before */
};

/* Puts the items [first, last), changed, into a new block. If that is larger than a page, and what leads to
 * it is perhaps no cell, another block comes between, so that what leads to this one need not change again.
 */
static int put_items(struct h5_header_change *change, const struct row *row, size_t first, size_t last,
		     bool any, struct moved *moved)
{
	struct h5_message *list;
	size_t n;
	int rc;

	*moved = (struct moved){.messages = change->messages, .stage = change->stage};
	list = gather(change, row, first, last, &n);
	if (!list)
		return no_memory(change);
	h5_header_delay_change(change, row->chunk->address + at(row, first), at(row, last) - at(row, first));
	rc = put_block(change, list, n, &moved->block);
	free(list);
	if (!rc && any && moved->block.size > H5_CELL)
		rc = put_link(change, &moved->block, &moved->between);
	return rc;
}

static const struct h5_continuation *first_of(const struct moved *moved)
{
	return moved->between.size ? &moved->between : &moved->block;
}

static void take_back(struct h5_header_change *change, const struct moved *moved)
{
	h5_tx_free(change->file, moved->block.address, moved->block.size);
	if (moved->between.size)
		h5_tx_free(change->file, moved->between.address, moved->between.size);
	change->messages = moved->messages;
	change->stage = moved->stage;
}

/* Moves the items [first, last), changed, to a new block. */
static int move_items(struct h5_header_change *change, const struct row *row, size_t first, size_t last,
		      bool any)
{
	struct moved moved;
	int rc = put_items(change, row, first, last, any, &moved);

	if (rc)
		return rc;
	rc = lay_link(change, row, first, last, first_of(&moved), any);
	if (!rc)
		take_back(change, &moved);
	return rc;
}

/* Items that make room for a continuation message. */
struct items {
	size_t first, last;
	size_t moved; /* bytes that are no NIL messages */
};

/* True: a continuation message there would be a cell, as far as the space it needs tells. */
static bool link_is_safe(const struct h5_header_change *change, const struct row *row, size_t first)
{
	return is_safe(change, row->chunk, at(row, first), row->head + h5_header_link_size(change->file));
}

/* Finds the items of a chunk in whose place a continuation message fits, so that the least moves. False:
 * there are none. */
static bool find_items(const struct h5_header_change *change, const struct row *row, bool any,
		       struct items *best)
{
	size_t need = row->head + h5_header_link_size(change->file), last = row->count, moved = 0;
	bool found = false;

	for (size_t i = row->count; i-- > 0;) {
		moved += is_nil(row, i) ? 0 : at(row, i + 1) - at(row, i);
		while (last > i + 1 && at(row, last - 1) - at(row, i) >= need) {
			last--;
			moved -= is_nil(row, last) ? 0 : at(row, last + 1) - at(row, last);
		}
		if (at(row, last) - at(row, i) < need || (!any && !link_is_safe(change, row, i)))
			continue;
		if (!found || moved < best->moved)
			*best = (struct items){i, last, moved};
		found = true;
	}
	return found;
}

/* The same, for items of which the old message is one. */
static bool find_items_around(const struct h5_header_change *change, const struct row *row, bool any,
			      struct items *best)
{
	size_t need = row->head + h5_header_link_size(change->file), first = row->old, last = row->old + 1;

	while (last < row->count && at(row, last) - at(row, first) < need)
		last++;
	while (first && at(row, last) - at(row, first) < need)
		first--;
	*best = (struct items){.first = first, .last = last};
	return at(row, last) - at(row, first) >= need && (any || link_is_safe(change, row, first));
}

static int into_new_block(struct h5_header_change *change, const struct row *row, bool any)
{
	bool (*find)(const struct h5_header_change *, const struct row *, bool, struct items *) =
		change->old.data ? find_items_around : find_items;
	struct items items;

	if (!change->new.data || !find(change, row, any, &items))
		return 0;
	return move_items(change, row, items.first, items.last, any);
}

/* ---- by moving a block ---- */

/* Changes the body of the continuation message that leads to the chunk. */
static int switch_link(struct h5_header_change *change, const struct h5_header_chunk *chunk,
		       const struct h5_continuation *block, bool any)
{
	const struct h5_header_chunk *parent = h5_header_chunk_at(&change->header, chunk->link.address);
	size_t n = (size_t)parent->size;
	uint8_t *bytes = malloc(n + H5_HEADER_LINK_MAX);
	int rc;

	if (!bytes)
		return no_memory(change);
	memcpy(bytes, parent->bytes, n);
	rc = h5_header_encode_link(change->file, block, bytes + (chunk->link.address - parent->address));
	if (!rc)
		rc = h5_header_put_bytes(change, parent, bytes, any);
	free(bytes);
	return rc;
}

/* Moves a continuation block, changed, to new space. */
static int move_chunk(struct h5_header_change *change, const struct row *row, bool any)
{
	const struct h5_header_chunk *chunk = row->chunk, *parent;
	struct moved moved;
	int rc;

	if (!chunk->link.data)
		return 0;
	parent = h5_header_chunk_at(&change->header, chunk->link.address);
	if (!any && !is_safe(change, parent, (size_t)(chunk->link.address - parent->address),
			     h5_header_link_size(change->file)))
		return 0;
	rc = put_items(change, row, 0, row->count, any, &moved);
	if (rc)
		return rc;
	rc = switch_link(change, chunk, first_of(&moved), any);
	if (rc)
		h5_tx_free(change->file, chunk->address, chunk->size);
	else
		take_back(change, &moved);
	return rc;
}

/* ---- if nothing is a cell ---- */

/* All messages of a version 2 chunk move to a new block, so that later changes of them are cells. */
static int move_all(struct h5_header_change *change, const struct row *row, bool any)
{
	if (change->header.prefix.version == 1 || !row->count)
		return 0;
	if (!row->chunk->link.data)
		return move_items(change, row, 0, row->count, any);
	return move_chunk(change, row, any);
}

/* ---- the change as a whole ---- */

typedef int change_method(struct h5_header_change *change, const struct row *row, bool any);

/* Tries one method in all chunks that it may change. */
static int try_method(struct h5_header_change *change, change_method *method, bool any)
{
	int rc = 0;

	for (unsigned i = change->header.chunk_count; i-- > 0 && !rc;) {
		struct row row;

		rc = row_init(&row, change, &change->header.chunks[i]);
		if (rc)
			return rc;
		if (!change->old.data || row.old < row.count)
			rc = method(change, &row, any);
		row_release(&row);
	}
	return rc;
}

int h5_header_realize(struct h5_header_change *change)
{
	static change_method *const cells[] = {same_size, in_place, into_new_block, move_chunk};
	static change_method *const others[] = {move_all, same_size, in_place, into_new_block, move_chunk};
	int rc = 0;

	for (unsigned i = 0; i < sizeof cells / sizeof *cells && !rc; i++)
		rc = try_method(change, cells[i], false);
	for (unsigned i = 0; i < sizeof others / sizeof *others && !rc; i++)
		rc = try_method(change, others[i], true);
	if (!rc)
		rc = h5_fail(-ENOTSUP, change->header.chunks->address,
			     "object header: its form does not allow the change");
	return rc > 0 ? 0 : rc;
}

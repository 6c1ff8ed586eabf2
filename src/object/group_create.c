#include "object/group_create.h"

#include "base/error.h"
#include "change/object_header_create.h"
#include "change/object_header_rewrite.h"
#include "change/transaction.h"
#include "format/header_messages.h"
#include "object/dense_write.h"
#include "object/named_convert.h"
#include "object/symbol_table_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	MESSAGE_MAX = UINT16_MAX, /* bytes of a link message */
	COMPACT_MAX = 8, /* links that are messages of the header in a group without limits of its own */
	ROOM = 96,	 /* bytes for the first links of a new group: about four short names */
};

/* ---- messages ---- */

int h5_link_message(const struct h5_file *file, const struct h5_link *link, bool tracks_order, int64_t order,
		    struct h5_new_named *message)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	size_t room = h5_link_room(link);
	struct h5_link ordered = *link;
	uint8_t *body = malloc(room);
	struct h5_writer w;
	int rc;

	if (!body)
		return h5_fail(-ENOMEM, H5_UNDEF, "group: out of memory");
	w = h5_writer_init(body, room, sb->size_of_offsets, sb->size_of_lengths);
	ordered.has_order = tracks_order;
	ordered.order = order;
	rc = h5_link_encode(&w, &ordered);
	if (!rc && h5_writer_at(&w) > MESSAGE_MAX)
		rc = h5_fail(-ENAMETOOLONG, H5_UNDEF, "group: a link of %zu bytes", h5_writer_at(&w));
	if (rc) {
		free(body);
		return rc;
	}
	*message = (struct h5_new_named){.kind = H5_NAMED_LINK,
					 .name = link->name,
					 .name_size = link->name_size,
					 .body = body,
					 .size = h5_writer_at(&w)};
	return 0;
}

/* The messages that each group has. */
struct group_messages {
	uint8_t link_info[H5_NAMED_INFO_MAX], group_info[H5_GROUP_INFO_MAX];
	struct h5_new_message messages[2];
};

static int encode_messages(struct h5_file *file, const struct h5_named_info *links, struct group_messages *m)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	const struct h5_group_info group = {0};
	struct h5_writer w =
		h5_writer_init(m->group_info, sizeof m->group_info, sb->size_of_offsets, sb->size_of_lengths);

	m->messages[0] = (struct h5_new_message){.type = H5_MSG_LINK_INFO, .body = m->link_info};
	m->messages[1] = (struct h5_new_message){.type = H5_MSG_GROUP_INFO, .body = m->group_info};
	h5_group_info_encode(&w, &group);
	assert(!w.err);
	m->messages[1].size = h5_writer_at(&w);
	return h5_named_info_encode(file, H5_NAMED_LINK, links, m->link_info, sizeof m->link_info,
				    &m->messages[0].size);
}

static struct h5_named_info no_links(const struct h5_new_group *how)
{
	return (struct h5_named_info){.tracks_order = how->tracks_order,
				      .indexes_order = how->indexes_order,
				      .heap = H5_UNDEF,
				      .name_index = H5_UNDEF,
				      .order_index = H5_UNDEF};
}

int h5_group_create(struct h5_file *file, const struct h5_new_group *how, uint64_t *address)
{
	const struct h5_new_header header = {.times = true, .time = (uint32_t)time(NULL), .room = ROOM};
	const struct h5_named_info links = no_links(how);
	struct group_messages m;
	int rc = encode_messages(file, &links, &m);

	return rc ? rc : h5_header_create(file, m.messages, 2, &header, address);
}

/* ---- from the old style ---- */

struct renewal {
	struct h5_file *file;
	uint64_t address;
	struct h5_symbol_table table;
	struct h5_named_info info;
	struct h5_header header;
	struct h5_message *messages; /* that the header will have */
	size_t count;
	struct h5_new_named links[COMPACT_MAX]; /* that are messages of the header */
	size_t compact;
};

/* Puts a link into dense storage, or among the messages. */
static int renew_link(struct renewal *r, const struct h5_link *link)
{
	struct h5_new_named message;
	int rc = h5_link_message(r->file, link, false, 0, &message);

	if (rc)
		return rc;
	if (r->info.heap == H5_UNDEF && r->compact < COMPACT_MAX) {
		r->links[r->compact++] = message;
		return 0;
	}
	rc = h5_dense_insert(r->file, &r->info, H5_NAMED_LINK, message.name, message.name_size, message.body,
			     message.size, 0);
	free((void *)message.body);
	return rc;
}

static int renew_links(struct renewal *r, const struct h5_object *group)
{
	const struct h5_link *link;
	struct h5_link_walk walk;
	uint64_t count;
	int rc = h5_group_count(r->file, group, &count);

	if (!rc && count > COMPACT_MAX)
		rc = h5_dense_create(r->file, H5_NAMED_LINK, false, false, &r->info);
	if (rc)
		return rc;
	rc = h5_link_begin(&walk, r->file, group, H5_NAMES_SORTED);
	while (!rc && (rc = h5_link_next(&walk, &link)) > 0)
		rc = renew_link(r, link);
	h5_link_end(&walk);
	return rc;
}

/* Makes the header's messages those of the new style. */
static int renew_header(struct renewal *r)
{
	struct group_messages m;
	int rc = h5_header_load(r->file, r->address, &r->header);

	if (!rc)
		rc = encode_messages(r->file, &r->info, &m);
	if (rc)
		return rc;
	r->messages = malloc((r->header.count + 2 + r->compact) * sizeof *r->messages);
	if (!r->messages)
		return h5_fail(-ENOMEM, r->address, "object header: out of memory");
	for (unsigned i = 0; i < r->header.count; i++)
		if (r->header.messages[i].type != H5_MSG_SYMBOL_TABLE)
			r->messages[r->count++] = r->header.messages[i];
	for (unsigned i = 0; i < 2; i++)
		r->messages[r->count++] = h5_new_message_get(&m.messages[i]);
	for (size_t i = 0; i < r->compact; i++) {
		const struct h5_new_message link = {
			.type = H5_MSG_LINK, .body = r->links[i].body, .size = r->links[i].size};

		r->messages[r->count++] = h5_new_message_get(&link);
	}
	return h5_header_rewrite(r->file, r->address, r->messages, r->count, H5_STAGE_NAME);
}

static int renew(struct renewal *r)
{
	struct h5_group_storage storage;
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(r->file, r->address, &ref, &group);

	if (rc)
		return rc;
	rc = h5_group_storage_find(r->file, group, &storage);
	assert(rc || storage.is_old);
	r->table = storage.table;
	if (!rc)
		rc = renew_links(r, group);
	h5_file_put(r->file, ref);
	if (!rc)
		rc = renew_header(r);
	return rc ? rc : h5_symbol_table_free(r->file, &r->table);
}

int h5_group_renew(struct h5_file *file, uint64_t address)
{
	struct renewal r = {.file = file, .address = address, .info = no_links(&(struct h5_new_group){0})};
	int rc;

	h5_unit_begin(file);
	rc = h5_unit_end(file, renew(&r));
	h5_unit_unsave(file, &r, sizeof r);
	h5_header_release(&r.header);
	for (size_t i = 0; i < r.compact; i++)
		free((void *)r.links[i].body);
	free(r.messages);
	return rc;
}

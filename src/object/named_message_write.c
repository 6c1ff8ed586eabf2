#include "object/named_message_write.h"

#include "base/error.h"
#include "base/writer.h"
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "object/dense_write.h"
#include "object/named_convert.h"

#include <assert.h>
#include <string.h>

enum { ATTRIBUTE_ORDER_MAX = 65535 }; /* orders of creation below this are used */

/* An object whose messages of one kind are changed. */
struct change {
	struct h5_file *file;
	uint64_t address;
	enum h5_named_kind kind;
	struct h5_lru_entry *ref; /* to the object */
	struct h5_named_storage storage;
	bool has_info;		   /* the header has an info message */
	struct h5_named_info info; /* as it is, or as it will be with the first attribute; it changes */
};

static struct h5_named_info info_of(const struct change *change)
{
	const uint8_t flags = change->storage.object->header.prefix.flags;

	if (change->has_info)
		return change->storage.info;
	return (struct h5_named_info){.tracks_order = flags & H5_HEADER_ORDER_TRACKED,
				      .indexes_order = flags & H5_HEADER_ORDER_INDEXED,
				      .heap = H5_UNDEF,
				      .name_index = H5_UNDEF,
				      .order_index = H5_UNDEF};
}

/* Begins the unit of a change. On failure there is nothing to end. */
static int begin(struct change *change, struct h5_file *file, uint64_t address, enum h5_named_kind kind)
{
	const struct h5_object *object;
	int rc;

	h5_unit_begin(file);
	*change = (struct change){.file = file, .address = address, .kind = kind};
	rc = h5_tx_touch(file, address);
	if (!rc)
		rc = h5_object_get(file, address, &change->ref, &object);
	if (!rc)
		rc = h5_named_storage_find(file, object, kind, &change->storage);
	if (!rc && change->storage.damage.first.code)
		rc = h5_fail(-EUCLEAN, address, "its info message is damaged");
	if (!rc)
		change->has_info = h5_object_find(object, h5_named_info_type(kind));
	if (!rc)
		change->info = info_of(change);
	if (rc) {
		h5_file_put(file, change->ref);
		rc = h5_unit_end(file, rc);
	}
	return rc;
}

static int end(struct change *change, int rc)
{
	h5_file_put(change->file, change->ref);
	/* The cache forgets what was decoded from the messages. It keeps the header unless that changed. */
	h5_tx_forget_but(change->file, change->address, &h5_object_block);
	rc = h5_unit_end(change->file, rc);
	h5_unit_unsave(change->file, change, sizeof *change);
	return rc;
}

/* ---- the info message ---- */

static int update_info(const void *arg, uint8_t *body, size_t n)
{
	const struct change *change = arg;
	size_t size;

	return h5_named_info_encode(change->file, change->kind, &change->info, body, n, &size);
}

/* When the commit writes the info message. What counts the orders of creation is there before messages have
 * them. What leads to links is of the stage at which names come or go. */
static unsigned info_stage(const struct change *change, bool comes)
{
	if (!h5_dense_has_moved(&change->storage.info, &change->info))
		return H5_STAGE_BLOCK;
	return h5_header_stage(h5_named_info_type(change->kind), comes);
}

/* Brings the info message up to date. In a header of version 2 it comes with the first attribute. */
static int put_info(const struct change *change, bool comes)
{
	uint8_t body[H5_NAMED_INFO_MAX];
	struct h5_new_message message = {.type = h5_named_info_type(change->kind), .body = body};
	int rc;

	if (change->has_info)
		return h5_header_update_at(change->file, change->address, h5_named_info_type(change->kind),
					   info_stage(change, comes), update_info, change);
	if (change->storage.object->version == 1)
		return 0;
	rc = h5_named_info_encode(change->file, change->kind, &change->info, body, sizeof body,
				  &message.size);
	return rc ? rc : h5_header_insert(change->file, change->address, &message);
}

/* The attribute info message goes with the last attribute: libhdf5 2 does not expect it without any. */
static int drop_info(const struct change *change)
{
	struct h5_header header = {0};
	int rc = h5_header_load(change->file, change->address, &header);

	if (!rc)
		rc = h5_header_remove(change->file, change->address,
				      h5_header_find(&header, h5_named_info_type(change->kind)));
	h5_header_release(&header);
	return rc;
}

/* ---- changes ---- */

/* The messages become dense, with this one in the place of `old`; NULL: it is one more. */
static int make_dense(const struct change *change, const struct h5_message *old,
		      const struct h5_new_named *message)
{
	struct h5_named_info info = change->info;
	int64_t order = old ? old->creation_order : (int64_t)info.next_order;

	if (!old && info.tracks_order)
		info.next_order++;
	return h5_named_make_dense(change->file, change->address, &info, old, message, order);
}

static int insert_compact(const struct change *change, const struct h5_new_named *message)
{
	const struct h5_named_info *info = &change->info;
	struct h5_new_message new = {.type = h5_named_message_type(change->kind),
				     .has_order = change->kind == H5_NAMED_ATTRIBUTE && info->tracks_order,
				     .order = (uint16_t)info->next_order,
				     .body = message->body,
				     .size = message->size};

	return h5_header_insert(change->file, change->address, &new);
}

static int check_new(const struct change *change, const struct h5_new_named *message)
{
	const struct h5_message *old;
	int rc;

	if (change->kind == H5_NAMED_ATTRIBUTE && change->info.tracks_order &&
	    change->info.next_order >= ATTRIBUTE_ORDER_MAX)
		return h5_fail(-ENOSPC, change->address, "no more attributes can be counted");
	if (change->storage.is_dense)
		return 0;
	rc = h5_named_find_compact(&change->storage, message->name, message->name_size, &old);
	return rc == -ENOENT ? 0 : rc ? rc : -EEXIST;
}

static int insert(struct change *change, const struct h5_new_named *message)
{
	const struct h5_named_info before = change->info;
	struct h5_named_info *info = &change->info;
	int rc = check_new(change, message);

	if (rc)
		return rc;
	if (change->storage.is_dense)
		rc = h5_dense_insert(change->file, info, change->kind, message->name, message->name_size,
				     message->body, message->size, (int64_t)info->next_order);
	else if (h5_named_wants_dense(change->file, change->storage.object, NULL, message))
		return make_dense(change, NULL, message);
	else
		rc = insert_compact(change, message);
	if (rc)
		return rc;
	if (info->tracks_order)
		info->next_order++;
	if (change->has_info && info->next_order == before.next_order && !h5_dense_has_moved(&before, info))
		return 0;
	return put_info(change, true);
}

int h5_named_insert(struct h5_file *file, uint64_t object, const struct h5_new_named *message)
{
	struct change change;
	int rc = begin(&change, file, object, message->kind);

	return rc ? rc : end(&change, insert(&change, message));
}

/* True: the object has one message of the kind, which is to be removed. */
static int is_last(const struct change *change, bool *last)
{
	uint64_t count;
	int rc = h5_named_count(&change->storage, &count);

	*last = !rc && count == 1;
	return rc;
}

static int remove_compact(const struct change *change, const struct h5_message *message)
{
	bool last;
	int rc = is_last(change, &last);

	if (!rc)
		rc = h5_header_remove(change->file, change->address, message);
	if (rc || !last || change->kind != H5_NAMED_ATTRIBUTE || !change->has_info)
		return rc;
	return drop_info(change);
}

static int remove_dense(const struct change *change, struct h5_named_info *info, const char *name,
			size_t name_size)
{
	bool last;
	int rc = is_last(change, &last);

	if (!rc)
		rc = h5_dense_remove(change->file, info, change->kind, name, name_size);
	if (rc || !last)
		return rc;
	rc = h5_dense_free(change->file, info, change->kind);
	if (rc || change->kind != H5_NAMED_ATTRIBUTE)
		return rc;
	return drop_info(change);
}

/* Replaces the message by `with`; NULL: removes it. */
static int change_compact(const struct change *change, const char *name, size_t name_size,
			  const struct h5_new_named *with)
{
	struct h5_new_message new = {.type = h5_named_message_type(change->kind)};
	const struct h5_message *old;
	int rc = h5_named_find_compact(&change->storage, name, name_size, &old);

	if (rc)
		return rc;
	if (!with)
		return remove_compact(change, old);
	if (h5_named_wants_dense(change->file, change->storage.object, old, with))
		return make_dense(change, old, with);
	new.flags = (uint8_t)(old->flags & ~(H5_MSG_FLAG_SHARED | H5_MSG_FLAG_TRACKED));
	new.body = with->body;
	new.size = with->size;
	return h5_header_set(change->file, change->address, old, &new);
}

static int change_dense(struct change *change, const char *name, size_t name_size,
			const struct h5_new_named *with)
{
	struct h5_named_info *info = &change->info;
	int rc = with ? h5_dense_rename(change->file, info, change->kind, name, name_size, with->name,
					with->name_size, with->body, with->size)
		      : remove_dense(change, info, name, name_size);

	if (rc || !h5_dense_has_moved(&change->storage.info, info))
		return rc;
	if (info->heap == H5_UNDEF && change->kind == H5_NAMED_ATTRIBUTE)
		return 0; /* the info message has gone */
	return put_info(change, with);
}

static int change_message(struct h5_file *file, uint64_t object, enum h5_named_kind kind, const char *name,
			  size_t name_size, const struct h5_new_named *with)
{
	struct change change;
	int rc = begin(&change, file, object, kind);

	if (rc)
		return rc;
	rc = change.storage.is_dense ? change_dense(&change, name, name_size, with)
				     : change_compact(&change, name, name_size, with);
	return end(&change, rc);
}

int h5_named_replace(struct h5_file *file, uint64_t object, const struct h5_new_named *message)
{
	return change_message(file, object, message->kind, message->name, message->name_size, message);
}

int h5_named_rename(struct h5_file *file, uint64_t object, const char *name, size_t name_size,
		    const struct h5_new_named *message)
{
	return change_message(file, object, message->kind, name, name_size, message);
}

int h5_named_remove(struct h5_file *file, uint64_t object, enum h5_named_kind kind, const char *name,
		    size_t name_size)
{
	return change_message(file, object, kind, name, name_size, NULL);
}

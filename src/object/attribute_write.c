#include "object/attribute_write.h"

#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/writer.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "object/attribute.h"
#include "object/attribute_values.h"
#include "object/heap_dead.h"
#include "object/named_message_write.h"
#include "object/named_record_write.h"
#include "object/shared_table_write.h"

#include <stdlib.h>
#include <string.h>

enum {
	PART_MAX = 65535,		     /* most bytes of a name with its NUL, or of a type */
	SPACE_MAX = 4 + 2 * 8 * H5_RANK_MAX, /* bytes of an encoded dataspace */
};

/* The message as a whole; -E2BIG: it is larger than any message can be. */
static int encode(struct h5_file *file, const char *name, const struct h5_buf *type,
		  const struct h5_dataspace *space, const void *data, size_t n, struct h5_buf *message)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	uint8_t head[H5_ATTRIBUTE_HEAD], body[SPACE_MAX];
	struct h5_writer w = h5_writer_init(body, sizeof body, sb->size_of_offsets, sb->size_of_lengths);
	size_t name_size = strlen(name) + 1;
	int rc;

	h5_dataspace_encode(&w, space);
	rc = h5_writer_check(&w, "dataspace");
	if (rc)
		return rc;
	if (name_size > PART_MAX || type->size > PART_MAX)
		return h5_fail(-E2BIG, H5_UNDEF, "attribute: its name or type is too long");
	h5_attribute_head_encode(head, name_size, type->size, h5_writer_at(&w));
	h5_buf_add(message, head, sizeof head);
	h5_buf_add(message, name, name_size);
	h5_buf_add(message, type->data, type->size);
	h5_buf_add(message, body, h5_writer_at(&w));
	h5_buf_add(message, data, n);
	return message->err;
}

typedef int put_message(struct h5_file *file, uint64_t object, const struct h5_new_named *message);

/* Puts the attribute, made anew, by h5_named_insert() or h5_named_replace(). */
static int put(struct h5_file *file, uint64_t object, const char *name, const struct h5_datatype *type,
	       const struct h5_dataspace *space, const void *data, put_message *insert)
{
	struct h5_new_named new = {.kind = H5_NAMED_ATTRIBUTE, .name = name, .name_size = strlen(name)};
	struct h5_buf encoded, message;
	uint64_t n;
	int rc;

	if (!h5_mul(space->elements, type->size, &n) || n > SIZE_MAX)
		return h5_fail(-E2BIG, object, "attribute: too large");
	h5_buf_init(&encoded, PART_MAX);
	h5_buf_init(&message, SIZE_MAX);
	rc = h5_datatype_encode(type, h5_file_superblock(file)->version >= 3, &encoded);
	if (!rc)
		rc = encode(file, name, &encoded, space, data, (size_t)n, &message);
	if (!rc) {
		new.body = message.data;
		new.size = message.size;
		rc = insert(file, object, &new);
	}
	h5_buf_release(&encoded);
	h5_buf_release(&message);
	return rc;
}

int h5_attribute_create(struct h5_file *file, uint64_t object, const char *name,
			const struct h5_datatype *type, const struct h5_dataspace *space, const void *data)
{
	return put(file, object, name, type, space, data, h5_named_insert);
}

/* Opens the message of the attribute; h5_message_release(). 1: it is in the file's heap of shared messages,
 * or an index of these knows of it, and *use is what the object uses; 0: it is in neither. */
static int open_message(const struct h5_named_storage *storage, const char *name,
			struct h5_message_body *body, struct h5_shared_use *use)
{
	const struct h5_message *message;
	struct h5_named_entry entry;
	int rc = h5_named_find(storage, name, strlen(name), body);

	*use = (struct h5_shared_use){.type = H5_MSG_ATTRIBUTE};
	if (rc)
		return rc;
	if (!storage->is_dense) {
		rc = h5_named_find_compact(storage, name, strlen(name), &message);
		if (!rc)
			rc = h5_shared_use_of(storage->file, message, use);
		return rc == -ENODATA ? 0 : rc ? rc : 1;
	}
	rc = h5_named_index_find(storage->file, H5_NAMED_ATTRIBUTE, &storage->info, name, strlen(name),
				 &entry);
	if (rc || !entry.is_shared)
		return rc;
	if (entry.id_size != H5_SHARED_ID_SIZE)
		return h5_fail(-EUCLEAN, storage->info.name_index, "shared attribute: an ID of %zu bytes",
			       entry.id_size);
	memcpy(use->id, entry.id, sizeof use->id);
	return 1;
}

/* Copies the message, which the caller frees, and finds where its elements are, and whether it is shared as
 * open_message() has it. */
static int copy_message(struct h5_file *file, uint64_t object, const char *name, uint8_t **copy, size_t *size,
			size_t *data, bool *is_shared)
{
	struct h5_shared_use use;
	struct h5_named_storage storage;
	struct h5_attribute_message parts;
	struct h5_message_body body = {0};
	const struct h5_object *found;
	struct h5_lru_entry *ref;
	struct h5_reader r;
	int rc = h5_object_get(file, object, &ref, &found);

	if (rc)
		return rc;
	rc = h5_named_storage_find(file, found, H5_NAMED_ATTRIBUTE, &storage);
	if (!rc)
		rc = open_message(&storage, name, &body, &use);
	*is_shared = rc > 0;
	if (rc >= 0) {
		r = body.reader;
		rc = h5_attribute_decode(&r, &parts);
	}
	if (!rc) {
		*size = (size_t)(body.reader.end - body.reader.begin);
		*data = (size_t)(parts.data.p - body.reader.begin);
		*copy = malloc(*size + 1);
		if (*copy)
			memcpy(*copy, body.reader.begin, *size);
		else
			rc = h5_fail(-ENOMEM, object, "attribute: out of memory");
	}
	h5_message_release(file, &body);
	h5_file_put(file, ref);
	return rc == -ENOENT ? -ENODATA : rc;
}

/* ---- values ---- */

/* If a value is damaged, all that the attribute owns in the global heap stays there. */
static int note_damage(struct h5_heap_dead *dead, int rc)
{
	if (rc)
		h5_heap_dead_release(dead);
	return h5_is_passing(rc) ? rc : 0;
}

/* Adds what the elements of a message own. */
static int find_values(struct h5_reader message, struct h5_heap_dead *dead)
{
	return note_damage(dead, h5_attribute_own(dead->file, message, h5_heap_dead_add, dead));
}

/* The old elements go; some of the new ones may own what they owned. */
static int give_up_values(struct h5_heap_dead *dead, const struct h5_datatype *type, const void *data,
			  uint64_t elements)
{
	int rc = h5_heap_dead_is_empty(dead)
			 ? 0
			 : h5_values_own(dead->file, type, data, elements, h5_heap_dead_remove, dead);

	rc = note_damage(dead, rc);
	return rc ? rc : h5_heap_dead_give_up(dead, h5_tx_free_extent, dead->file);
}

/* ---- new elements ---- */

static int give_up_old(struct h5_heap_dead *dead, struct h5_reader message)
{
	struct h5_attribute attribute;
	int rc = h5_heap_dead_is_empty(dead) ? 1 : h5_attribute_read(dead->file, message, &attribute);

	if (rc)
		return rc == 1 ? 0 : note_damage(dead, rc);
	rc = give_up_values(dead, attribute.type, attribute.data, attribute.space.elements);
	h5_attribute_release(&attribute);
	return rc;
}

/* Puts new elements into the message, whose old ones are at the offset, in a unit. */
static int update(struct h5_file *file, uint64_t object, const struct h5_new_named *new, uint8_t *message,
		  size_t at, const void *data, size_t n)
{
	struct h5_heap_dead dead;
	int rc;

	h5_heap_dead_init(&dead, file);
	rc = find_values(h5_file_reader(file, message, new->size, H5_UNDEF), &dead);
	memcpy(message + at, data, n);
	if (!rc)
		rc = h5_named_replace(file, object, new);
	if (!rc)
		rc = give_up_old(&dead, h5_file_reader(file, message, new->size, H5_UNDEF));
	h5_heap_dead_release(&dead);
	return rc;
}

/* The object gets a message of its own, of which no part is shared. */
static int update_shared(struct h5_file *file, uint64_t object, const char *name, struct h5_reader message)
{
	struct h5_attribute attribute;
	int rc = h5_attribute_read(file, message, &attribute);

	if (!rc)
		rc = h5_attribute_replace(file, object, name, attribute.type, &attribute.space,
					  attribute.data);
	h5_attribute_release(&attribute);
	return rc;
}

int h5_attribute_update(struct h5_file *file, uint64_t object, const char *name, const void *data, size_t n)
{
	struct h5_new_named new = {.kind = H5_NAMED_ATTRIBUTE, .name = name, .name_size = strlen(name)};
	uint8_t *message = NULL;
	bool is_shared = false;
	size_t at = 0;
	int rc = copy_message(file, object, name, &message, &new.size, &at, &is_shared);

	if (rc)
		return rc;
	new.body = message;
	/* Padding may follow the elements. */
	if (n > new.size - at)
		rc = h5_fail(-EINVAL, object, "attribute %s has fewer than %zu bytes", name, n);
	if (!rc)
		h5_unit_begin(file);
	if (!rc && is_shared) {
		memcpy(message + at, data, n);
		rc = h5_unit_end(file, update_shared(file, object, name,
						     h5_file_reader(file, message, new.size, H5_UNDEF)));
	} else if (!rc) {
		rc = h5_unit_end(file, update(file, object, &new, message, at, data, n));
	}
	free(message);
	return rc;
}

/* ---- what an attribute uses ---- */

/* What an attribute uses. One in the file's heap of shared messages, or of which an index of these knows, is
 * itself what its object uses: others may have the same, and go on using its type. Only one that is in no
 * heap gives up what its elements own. */
struct uses {
	struct h5_heap_dead values; /* what its elements own */
	uint64_t type;		    /* a committed datatype; H5_UNDEF: none */
	struct h5_shared_use shared[2];
	unsigned count; /* of these */
	uint8_t *body;	/* of shared[0], owned; NULL: that has none */
};

static int find_in_message(struct h5_reader message, struct uses *uses)
{
	int rc;

	uses->count = h5_attribute_shared(message, uses->shared);
	rc = h5_attribute_committed(message, &uses->type);
	return rc ? rc : find_values(message, &uses->values);
}

static void release_uses(struct uses *uses)
{
	h5_heap_dead_release(&uses->values);
	free(uses->body);
}

/* The attribute is shared itself, as uses->shared[0] has it. */
static int find_in_shared(struct h5_reader message, struct uses *uses)
{
	struct h5_shared_use *use = &uses->shared[0];

	uses->count = 1;
	if (!use->body)
		return 0;
	uses->body = malloc(use->size + 1);
	if (!uses->body)
		return h5_fail(-ENOMEM, H5_UNDEF, "attribute: out of memory");
	memcpy(uses->body, use->body, use->size);
	use->body = uses->body;
	return find_values(message, &uses->values);
}

/* On success release_uses(). */
static int find_uses(struct h5_file *file, uint64_t object, const char *name, struct uses *uses)
{
	struct h5_named_storage storage;
	struct h5_message_body body = {0};
	const struct h5_object *found;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, object, &ref, &found);

	*uses = (struct uses){.type = H5_UNDEF};
	h5_heap_dead_init(&uses->values, file);
	if (rc)
		return rc;
	rc = h5_named_storage_find(file, found, H5_NAMED_ATTRIBUTE, &storage);
	if (!rc)
		rc = open_message(&storage, name, &body, &uses->shared[0]);
	if (rc >= 0)
		rc = rc ? find_in_shared(body.reader, uses) : find_in_message(body.reader, uses);
	h5_message_release(file, &body);
	h5_file_put(file, ref);
	if (rc)
		release_uses(uses);
	return rc;
}

/* A datatype without names that nothing else uses would have to go. It stays, as nobody removes it here. */
static int drop_committed(void *arg, uint64_t type)
{
	struct h5_file *file = arg;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	uint32_t count = 0;
	int rc = h5_object_get(file, type, &ref, &object);

	if (rc)
		return rc == -EUCLEAN || rc == -ENOTSUP ? 0 : rc;
	if (object->kind == H5_OBJECT_DATATYPE)
		count = object->references;
	h5_file_put(file, ref);
	return count > 1 ? h5_header_set_references(file, type, count - 1) : 0;
}

static int drop_uses(struct h5_file *file, uint64_t object, const struct uses *uses)
{
	int rc = uses->type == H5_UNDEF ? 0 : drop_committed(file, uses->type);

	return rc || !uses->count
		       ? rc
		       : h5_shared_table_drop(file, object, uses->shared, uses->count, drop_committed, file);
}

/* In a unit. */
static int remove_attribute(struct h5_file *file, uint64_t object, const char *name, struct uses *uses)
{
	int rc = h5_named_remove(file, object, H5_NAMED_ATTRIBUTE, name, strlen(name));

	if (!rc)
		rc = drop_uses(file, object, uses);
	return rc ? rc : h5_heap_dead_give_up(&uses->values, h5_tx_free_extent, file);
}

int h5_attribute_remove(struct h5_file *file, uint64_t object, const char *name)
{
	struct uses uses;
	int rc = find_uses(file, object, name, &uses);

	if (rc)
		return rc == -ENOENT ? -ENODATA : rc;
	h5_unit_begin(file);
	rc = h5_unit_end(file, remove_attribute(file, object, name, &uses));
	release_uses(&uses);
	return rc;
}

/* In a unit. */
static int replace_attribute(struct h5_file *file, uint64_t object, const char *name,
			     const struct h5_datatype *type, const struct h5_dataspace *space,
			     const void *data, struct uses *before)
{
	int rc = put(file, object, name, type, space, data, h5_named_replace);

	if (!rc)
		rc = drop_uses(file, object, before);
	return rc ? rc : give_up_values(&before->values, type, data, space->elements);
}

int h5_attribute_replace(struct h5_file *file, uint64_t object, const char *name,
			 const struct h5_datatype *type, const struct h5_dataspace *space, const void *data)
{
	struct uses before;
	int rc = find_uses(file, object, name, &before);

	if (rc)
		return rc == -ENOENT ? -ENODATA : rc;
	h5_unit_begin(file);
	rc = h5_unit_end(file, replace_attribute(file, object, name, type, space, data, &before));
	release_uses(&before);
	return rc;
}

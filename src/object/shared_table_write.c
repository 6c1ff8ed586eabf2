#include "object/shared_table_write.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "change/btree2_write.h"
#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "object/attribute.h"
#include "object/fractal_heap_write.h"
#include "store/block.h"
#include "store/extension.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What goes from the table, and the table. */
struct drop {
	struct h5_file *file;
	uint64_t header;
	bool header_goes;
	struct h5_shared_use *uses; /* owned; a use that is found is taken out */
	size_t count, capacity;
	uint64_t *types; /* owned: committed datatypes, one for each use by an attribute that goes */
	size_t type_count, type_capacity;
	struct h5_shared_table_message where;
	struct h5_shared_table table;
	uint8_t *bytes; /* of the table; owned */
	size_t size;
	bool changed;
	unsigned now; /* the index that is changed */
};

/* A record that changes. */
struct change {
	uint8_t *bytes; /* owned: as it will be */
	bool goes;
};

struct changes {
	struct drop *drop;
	struct change *list; /* owned */
	size_t count, capacity;
};

static size_t record_size(const struct drop *d)
{
	return h5_shared_record_size(h5_file_superblock(d->file)->size_of_offsets);
}

/* ---- records ---- */

/* 1: the use is of the message in the heap. */
static int is_equal(const struct drop *d, const struct h5_shared_record *record,
		    const struct h5_shared_use *use)
{
	struct h5_heap_object message;
	int rc;

	if (!use->body)
		return !memcmp(use->id, record->id, sizeof use->id);
	if (h5_lookup3(use->body, use->size, use->type) != record->hash)
		return 0;
	rc = h5_fractal_heap_get(d->file, d->table.indexes[d->now].heap, record->id, H5_SHARED_ID_SIZE,
				 &message);
	if (rc)
		return rc;
	rc = message.size == use->size && !memcmp(message.data, use->body, use->size);
	h5_heap_object_release(&message);
	return rc;
}

/* 1: the use is of the message of the record, which is in the header that has made the uses, if in any. */
static int is_of(const struct drop *d, const struct h5_shared_record *record, const struct h5_shared_use *use)
{
	if (!(d->table.indexes[d->now].types & h5_shared_type_flag(use->type)))
		return 0;
	if (record->in_heap)
		return is_equal(d, record, use);
	return use->body && h5_lookup3(use->body, use->size, use->type) == record->hash;
}

/* Takes the uses of the message out. *last: one of them. */
static int take_uses(struct drop *d, const struct h5_shared_record *record, uint32_t *taken,
		     struct h5_shared_use *last)
{
	*taken = 0;
	for (size_t i = 0; i < d->count;) {
		int found = is_of(d, record, &d->uses[i]);

		if (found < 0)
			return found;
		if (!found) {
			i++;
			continue;
		}
		*last = d->uses[i];
		d->uses[i] = d->uses[--d->count];
		++*taken;
	}
	return 0;
}

/* What the attribute has used goes. */
static int add_parts_of(struct drop *d, struct h5_reader attribute)
{
	struct h5_shared_use parts[2];
	unsigned count = h5_attribute_shared(attribute, parts);
	uint64_t type = H5_UNDEF;
	int rc = h5_array_reserve(&d->uses, &d->capacity, d->count + count, NULL);

	for (unsigned i = 0; i < count && !rc; i++)
		d->uses[d->count++] = parts[i];
	/* If it is damaged, nobody knows its type. */
	if (!rc && !h5_attribute_committed(attribute, &type) && type != H5_UNDEF) {
		rc = h5_array_reserve(&d->types, &d->type_capacity, d->type_count + 1, NULL);
		if (!rc)
			d->types[d->type_count++] = type;
	}
	return rc;
}

/* A message that was used so goes: if it is an attribute, it has used others. */
static int add_parts(struct drop *d, const struct h5_shared_use *use)
{
	struct h5_heap_object message = {0};
	int rc = 0;

	if (use->type != H5_MSG_ATTRIBUTE)
		return 0;
	if (!use->body)
		rc = h5_fractal_heap_get(d->file, d->table.indexes[d->now].heap, use->id, H5_SHARED_ID_SIZE,
					 &message);
	if (!rc)
		rc = add_parts_of(d, h5_file_reader(d->file, use->body ? use->body : message.data,
						    use->body ? use->size : message.size, H5_UNDEF));
	h5_heap_object_release(&message);
	return rc;
}

/* Takes the message out of the heap, whose bytes stay until no record leads to it. If the heap's header is
 * none that a cell could change, it stays. */
static int drop_message(struct drop *d, const struct h5_shared_record *record)
{
	const uint64_t heap = d->table.indexes[d->now].heap;

	return h5_fractal_heap_is_safe(d->file, heap)
		       ? h5_fractal_heap_remove(d->file, heap, record->id, H5_SHARED_ID_SIZE)
		       : 0;
}

/* 1: the record changes, and `bytes` are changed; 2: it goes; 0: neither. */
static int judge(struct drop *d, uint8_t *bytes)
{
	struct h5_reader r = h5_file_reader(d->file, bytes, record_size(d), H5_UNDEF);
	struct h5_shared_record record;
	struct h5_shared_use last;
	uint32_t taken;
	int rc = h5_shared_record_decode(&r, &record);

	if (rc || (!record.in_heap && record.address != d->header))
		return rc;
	rc = take_uses(d, &record, &taken, &last);
	if (!rc && !taken && (record.in_heap || !d->header_goes))
		return 0;
	if (!rc && record.in_heap && record.count > taken) {
		h5_shared_record_set_count(bytes, record.count - taken);
		return 1;
	}
	if (!rc && taken)
		rc = add_parts(d, &last);
	if (!rc && record.in_heap)
		rc = drop_message(d, &record);
	return rc ? rc : 2;
}

/* ---- indexes that are lists ---- */

/* Takes records that go out of the list, and closes up. */
static int judge_all(struct drop *d, uint8_t *records, unsigned *messages, bool *changed)
{
	unsigned left = 0;

	for (unsigned i = 0; i < *messages; i++) {
		uint8_t *record = records + i * record_size(d);
		int verdict = judge(d, record);

		if (verdict < 0)
			return verdict;
		*changed |= verdict;
		if (verdict < 2)
			memmove(records + left++ * record_size(d), record, record_size(d));
	}
	*messages = left;
	return 0;
}

/* The list is written anew, so that the table switches to it, and to its length, at once. */
static int change_list(struct drop *d)
{
	uint8_t offsets = h5_file_superblock(d->file)->size_of_offsets;
	unsigned messages = d->table.indexes[d->now].messages, room = d->table.indexes[d->now].list_max;
	size_t n = h5_shared_list_size(messages, offsets);
	size_t all = h5_shared_list_size(room > messages ? room : messages, offsets);
	struct h5_reader r, records;
	bool changed = false;
	uint8_t *block = calloc(1, all);
	void *data = NULL;
	int rc = block ? h5_block_open(d->file, d->table.indexes[d->now].index, n, "shared message list",
				       &data, &r)
		       : h5_fail(-ENOMEM, H5_UNDEF, "shared message list: out of memory");

	if (!rc)
		rc = h5_shared_list_decode(&r, &records);
	if (!rc) {
		memcpy(block, data, n);
		rc = judge_all(d, block + H5_SHARED_LIST_HEAD, &messages, &changed);
	}
	if (!rc && changed) {
		n = h5_shared_list_size(messages, offsets);
		memset(block + n, 0, all - n);
		h5_shared_list_seal(block, n);
		rc = h5_tx_shadow(d->file, &d->table.indexes[d->now].index, block, all);
		d->table.indexes[d->now].messages = (uint16_t)messages;
		d->changed = true;
	}
	free(data);
	free(block);
	return rc;
}

/* ---- indexes that are B-trees ---- */

static int add_change(void *arg, struct h5_reader record)
{
	struct changes *changes = arg;
	size_t n = record_size(changes->drop);
	uint8_t *bytes = malloc(n);
	int rc = bytes ? h5_array_reserve(&changes->list, &changes->capacity, changes->count + 1, NULL)
		       : h5_fail(-ENOMEM, H5_UNDEF, "shared message record: out of memory");

	if (!rc) {
		memcpy(bytes, record.p, n);
		rc = judge(changes->drop, bytes);
	}
	if (rc > 0)
		changes->list[changes->count++] = (struct change){bytes, rc == 2};
	else
		free(bytes);
	return rc < 0 ? rc : 0;
}

/* The tree is sorted by hash. Two records of one hash differ in where their messages are; libhdf5 makes such
 * records only if two hashes are equal by chance. */
static int compare(void *arg, struct h5_reader r, int *rc)
{
	const struct changes *changes = arg;
	const uint8_t *sought = changes->list[changes->count].bytes;
	struct h5_reader own =
		h5_file_reader(changes->drop->file, sought, record_size(changes->drop), H5_UNDEF);
	struct h5_shared_record a, b;

	*rc = h5_shared_record_decode(&own, &a);
	if (!*rc)
		*rc = h5_shared_record_decode(&r, &b);
	if (*rc)
		return 0;
	if (a.hash != b.hash)
		return h5_compare(a.hash, b.hash);
	if (a.in_heap != b.in_heap)
		return a.in_heap ? -1 : 1;
	if (a.in_heap)
		return memcmp(a.id, b.id, H5_SHARED_ID_SIZE);
	return h5_compare(a.address, b.address);
}

static int change_records(struct changes *changes, struct h5_btree2 *tree)
{
	size_t count = changes->count;
	int rc = 0;

	for (changes->count = 0; changes->count < count && !rc; changes->count++) {
		const struct change *change = &changes->list[changes->count];

		rc = change->goes ? h5_btree2_remove(tree, compare, changes)
				  : h5_btree2_set(tree, compare, changes, change->bytes);
		if (rc == -ENOENT)
			rc = h5_fail(-ENOTSUP, tree->address,
				     "shared message index: messages of equal hash are not supported");
	}
	changes->count = count;
	return rc;
}

static int change_tree(struct drop *d)
{
	struct changes changes = {.drop = d};
	struct h5_btree2 tree;
	bool goes = false;
	int rc = h5_btree2_open(d->file, d->table.indexes[d->now].index, H5_BTREE2_SHARED_MESSAGE,
				(unsigned)record_size(d), &tree);

	if (!rc)
		rc = h5_btree2_iterate(&tree, add_change, &changes);
	/* The table switches to a tree with fewer records, and to their number, at once. */
	for (size_t i = 0; i < changes.count && !rc && !goes; i++)
		goes = changes.list[i].goes;
	if (!rc && goes)
		rc = h5_btree2_move(&tree);
	if (!rc && changes.count)
		rc = change_records(&changes, &tree);
	if (!rc && changes.count) {
		d->changed |= tree.address != d->table.indexes[d->now].index ||
			      tree.records != d->table.indexes[d->now].messages;
		d->table.indexes[d->now].index = tree.address;
		d->table.indexes[d->now].messages = (uint16_t)tree.records;
	}
	h5_unit_unsave(d->file, &tree, sizeof tree);
	for (size_t i = 0; i < changes.count; i++)
		free(changes.list[i].bytes);
	free(changes.list);
	return rc;
}

/* ---- the table ---- */

static int update_message(const void *arg, uint8_t *body, size_t n)
{
	const struct drop *d = arg;
	struct h5_writer w = h5_writer_init(body, n, h5_file_superblock(d->file)->size_of_offsets, 8);

	return h5_shared_table_message_encode(&w, &d->where);
}

/* If the table cannot change in place, the superblock's extension leads to a new one. */
static int put_table(struct drop *d)
{
	uint64_t address = d->where.address;
	int rc;

	h5_shared_table_update(d->bytes, d->size, h5_file_superblock(d->file)->size_of_offsets, &d->table);
	rc = h5_tx_store(d->file, &d->where.address, d->bytes, d->size, H5_STAGE_UNCOUNT);
	if (rc || address == d->where.address)
		return rc;
	return h5_header_update_at(d->file, h5_file_superblock(d->file)->extension, H5_MSG_SHARED_TABLE,
				   H5_STAGE_UNCOUNT, update_message, d);
}

static int get_table(struct drop *d)
{
	struct h5_reader r;
	void *data;
	int rc = h5_extension_shared_table(d->file, &d->where);

	if (rc)
		return rc;
	d->size = h5_shared_table_size(d->where.indexes, h5_file_superblock(d->file)->size_of_offsets);
	rc = h5_block_open(d->file, d->where.address, d->size, "shared message table", &data, &r);
	if (rc)
		return rc;
	d->bytes = data;
	return h5_shared_table_decode(&r, d->where.indexes, &d->table);
}

/* Attributes that go add uses, so there may be a second round: of what is not found the first time. Parts of
 * attributes are no attributes, so there is no third. */
static int drop_all(struct drop *d)
{
	int rc = 0;

	for (int round = 0; round < 2; round++)
		for (d->now = 0; d->now < d->table.count && !rc; d->now++)
			if (d->table.indexes[d->now].index != H5_UNDEF &&
			    (d->count || (d->header_goes && !round)))
				rc = d->table.indexes[d->now].is_list ? change_list(d) : change_tree(d);
	return rc || !d->changed ? rc : put_table(d);
}

static int drop_types(const struct drop *d, h5_type_drop *drop_type, void *arg)
{
	int rc = 0;

	assert(drop_type || !d->type_count);
	for (size_t i = 0; i < d->type_count && !rc; i++)
		rc = drop_type(arg, d->types[i]);
	return rc;
}

static int drop(struct h5_file *file, uint64_t header, bool header_goes, const struct h5_shared_use *uses,
		size_t count, h5_type_drop *drop_type, void *arg)
{
	struct drop d = {.file = file, .header = header, .header_goes = header_goes};
	int rc;

	if (h5_file_superblock(file)->extension == H5_UNDEF)
		return 0;
	rc = get_table(&d);
	if (!rc)
		rc = h5_array_reserve(&d.uses, &d.capacity, count + 1, NULL);
	if (!rc) {
		if (count)
			memcpy(d.uses, uses, count * sizeof *uses);
		d.count = count;
		h5_unit_begin(file);
		rc = drop_all(&d);
		rc = h5_unit_end(file, rc ? rc : drop_types(&d, drop_type, arg));
	}
	free(d.uses);
	free(d.types);
	free(d.bytes);
	return rc == -ENODATA ? 0 : rc;
}

int h5_shared_table_drop(struct h5_file *file, uint64_t header, const struct h5_shared_use *uses,
			 size_t count, h5_type_drop *drop_type, void *arg)
{
	return drop(file, header, false, uses, count, drop_type, arg);
}

int h5_shared_table_drop_header(struct h5_file *file, uint64_t header, const struct h5_shared_use *uses,
				size_t count, h5_type_drop *drop_type, void *arg)
{
	return drop(file, header, true, uses, count, drop_type, arg);
}

int h5_shared_use_of(const struct h5_file *file, const struct h5_message *message, struct h5_shared_use *use)
{
	struct h5_reader r = h5_file_reader(file, message->data, message->size, message->address);
	struct h5_shared_message shared;
	int rc;

	*use = (struct h5_shared_use){.type = message->type};
	if (!(message->flags & H5_MSG_FLAG_SHARED)) {
		use->body = message->data;
		use->size = message->size;
		return message->flags & H5_MSG_FLAG_TRACKED ? 0 : -ENODATA;
	}
	rc = h5_shared_message_decode(&r, &shared);
	if (!rc && !shared.in_heap)
		rc = h5_fail(-ENOTSUP, message->address,
			     "message type %#x of another object header cannot change here", message->type);
	memcpy(use->id, shared.id, sizeof use->id);
	return rc;
}

#include "object/named_message.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/lookup3.h"
#include "object/fractal_heap.h"
#include "object/shared_table.h"
#include "store/btree2.h"
#include "store/want.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Dense messages of up to so many bytes are kept by a walk, which otherwise reads each twice: for its
	 * name, and when it is its turn. */
	KEPT_MESSAGE = 512,
	KEPT_MAX = 32 << 20, /* bytes of names and messages after which a walk keeps no more messages */
};

static int link_name(struct h5_reader r, struct h5_name *name)
{
	struct h5_link m;
	int rc = h5_link_decode(&r, &m);

	*name = (struct h5_name){m.name, m.name_size, m.has_order, m.order};
	return rc;
}

static int attribute_name(struct h5_reader r, struct h5_name *name)
{
	struct h5_attribute_message m;
	int rc = h5_attribute_decode(&r, &m);

	*name = (struct h5_name){.text = m.name, .size = m.name_size};
	return rc;
}

struct h5_named_ops {
	enum h5_message_type type, info;
	enum h5_btree2_type name_index, order_index;
	unsigned record_min;
	int (*decode_info)(struct h5_reader *r, struct h5_named_info *info);
	int (*decode_record)(struct h5_reader *r, struct h5_named_record *record);
	int (*decode_name)(struct h5_reader r, struct h5_name *name);
};

static const struct h5_named_ops kinds[] = {
	[H5_NAMED_LINK] = {H5_MSG_LINK, H5_MSG_LINK_INFO, H5_BTREE2_LINK_NAME, H5_BTREE2_LINK_ORDER,
			   H5_LINK_RECORD_MIN, h5_link_info_decode, h5_link_record_decode, link_name},
	[H5_NAMED_ATTRIBUTE] = {H5_MSG_ATTRIBUTE, H5_MSG_ATTRIBUTE_INFO, H5_BTREE2_ATTRIBUTE_NAME,
				H5_BTREE2_ATTRIBUTE_ORDER, H5_ATTRIBUTE_RECORD_MIN, h5_attribute_info_decode,
				h5_attribute_record_decode, attribute_name},
};

int h5_named_storage_find(struct h5_file *file, const struct h5_object *object, enum h5_named_kind kind,
			  struct h5_named_storage *storage)
{
	const struct h5_message *message = h5_object_find(object, kinds[kind].info);
	struct h5_reader r;
	int rc;

	*storage = (struct h5_named_storage){.ops = &kinds[kind], .file = file, .object = object};
	if (!message)
		return 0;
	r = h5_message_reader(file, message);
	rc = storage->ops->decode_info(&r, &storage->info);
	storage->is_dense = !rc && storage->info.heap != H5_UNDEF;
	return h5_damage_note(&storage->damage, rc);
}

void h5_named_storage_dense(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
			    struct h5_named_storage *storage)
{
	*storage = (struct h5_named_storage){
		.ops = &kinds[kind],
		.file = file,
		.is_dense = true,
		.info = *info,
	};
}

/* Opens the message that a record of the index by name leads to. */
static int open_dense(const struct h5_named_storage *storage, const struct h5_named_record *record,
		      struct h5_message_body *body)
{
	int rc;

	*body = (struct h5_message_body){0};
	if (record->is_shared)
		rc = h5_shared_table_get(storage->file, storage->ops->type, record->id, &body->copy);
	else
		rc = h5_fractal_heap_get(storage->file, storage->info.heap, record->id, record->id_size,
					 &body->copy);
	if (!rc)
		body->reader = h5_file_reader(storage->file, body->copy.data, body->copy.size, H5_UNDEF);
	return rc;
}

static int open_index(const struct h5_named_storage *storage, struct h5_btree2 *tree)
{
	return h5_btree2_open(storage->file, storage->info.name_index, storage->ops->name_index,
			      storage->ops->record_min, tree);
}

/* The next compact message; *at is its index in the header. False: there is none. */
static bool next_compact(const struct h5_named_storage *storage, unsigned *at)
{
	const struct h5_object *object = storage->object;

	while (*at < object->count && object->messages[*at].type != storage->ops->type)
		++*at;
	return *at < object->count;
}

/* ---- by name ---- */

static int find_compact(const struct h5_named_storage *storage, const char *name, size_t size,
			const struct h5_message **message, struct h5_message_body *body)
{
	int failed = 0;

	for (unsigned i = 0; next_compact(storage, &i); i++) {
		struct h5_name found;
		int rc = h5_interrupt_check();

		if (rc)
			return rc;
		*message = &storage->object->messages[i];
		rc = h5_message_open(storage->file, *message, body);
		if (!rc && !storage->ops->decode_name(body->reader, &found) &&
		    !h5_name_compare(name, size, found.text, found.size))
			return 0;
		h5_message_release(storage->file, body);
		/* It may have been the one that is sought. */
		if (h5_is_passing(rc) && !failed)
			failed = rc;
	}
	if (failed)
		return failed;
	/* It may be in dense storage, whose place could not be read. */
	return storage->damage.first.code ? h5_damage_result(&storage->damage) : -ENOENT;
}

struct h5_named_search h5_named_search_init(const struct h5_named_storage *storage, const char *name,
					    size_t size, struct h5_message_body *body)
{
	*body = (struct h5_message_body){0};
	return (struct h5_named_search){
		.storage = storage,
		.name = name,
		.size = size,
		.hash = h5_lookup3(name, size, 0),
		.body = body,
	};
}

static void set_entry(const struct h5_named_search *s, const struct h5_named_record *record,
		      const struct h5_name *name)
{
	assert(record->id_size <= sizeof s->entry->id);
	*s->entry = (struct h5_named_entry){
		.id_size = record->id_size,
		/* Records of links by name have none. */
		.order = s->storage->ops->type == H5_MSG_LINK ? name->order : record->order,
		.is_shared = record->is_shared,
	};
	memcpy(s->entry->id, record->id, record->id_size);
}

int h5_named_compare(void *arg, struct h5_reader r, int *rc)
{
	struct h5_named_search *s = arg;
	const struct h5_named_storage *storage = s->storage;
	struct h5_message_body body = {0};
	struct h5_named_record record;
	struct h5_name found;
	int order = 0;

	*rc = storage->ops->decode_record(&r, &record);
	if (*rc)
		return 0;
	if (s->hash != record.hash)
		return h5_compare(s->hash, record.hash);
	*rc = open_dense(storage, &record, &body);
	if (!*rc)
		*rc = storage->ops->decode_name(body.reader, &found);
	if (!*rc)
		order = h5_name_compare(s->name, s->size, found.text, found.size);
	h5_message_release(storage->file, *rc || order ? &body : s->body);
	if (!*rc && !order) {
		*s->body = body;
		if (s->entry)
			set_entry(s, &record, &found);
	}
	return order;
}

static int find_dense(const struct h5_named_storage *storage, const char *name, size_t size,
		      struct h5_message_body *body)
{
	struct h5_named_search s = h5_named_search_init(storage, name, size, body);
	struct h5_btree2_end end = {.before = NULL};
	struct h5_btree2 tree;
	int rc = open_index(storage, &tree);

	if (!rc)
		rc = h5_btree2_seek(&tree, h5_named_compare, &s, &end);
	if (!rc) {
		rc = end.equal ? 0 : -ENOENT;
		h5_file_put(storage->file, end.ref);
	}
	if (rc)
		h5_message_release(storage->file, body);
	return rc;
}

int h5_named_find(const struct h5_named_storage *storage, const char *name, size_t size,
		  struct h5_message_body *body)
{
	const struct h5_message *message;

	return storage->is_dense ? find_dense(storage, name, size, body)
				 : find_compact(storage, name, size, &message, body);
}

int h5_named_find_compact(const struct h5_named_storage *storage, const char *name, size_t size,
			  const struct h5_message **message)
{
	struct h5_message_body body;
	int rc = find_compact(storage, name, size, message, &body);

	if (!rc)
		h5_message_release(storage->file, &body);
	return rc;
}

int h5_named_count(const struct h5_named_storage *storage, uint64_t *count)
{
	struct h5_btree2 tree;
	int rc = 0;

	*count = 0;
	if (storage->is_dense) {
		rc = open_index(storage, &tree);
		*count = rc ? 0 : tree.records;
	} else {
		for (unsigned i = 0; next_compact(storage, &i); i++)
			++*count;
	}
	return rc;
}

/* ---- all of them ---- */

/* Where a walk finds a message again. */
struct source {
	unsigned compact; /* its index in the header */
	bool is_kept;	  /* dense: the bytes are the message, else its record of the index */
	uint8_t bytes[];
};

static int add_name(struct h5_named_walk *walk, const struct h5_name *name, const struct source *source,
		    const void *bytes, size_t size)
{
	struct source *copy;
	void *data;
	int rc = h5_name_list_add(&walk->names, name, sizeof *source + size, &data);

	if (rc)
		return rc;
	copy = data;
	*copy = *source;
	if (size)
		memcpy(copy->bytes, bytes, size);
	return 0;
}

static int add_compact(struct h5_named_walk *walk, unsigned i)
{
	const struct h5_named_storage *storage = &walk->storage;
	struct source source = {.compact = i};
	struct h5_message_body body;
	struct h5_name name;
	int rc = h5_message_open(storage->file, &storage->object->messages[i], &body);

	if (!rc)
		rc = storage->ops->decode_name(body.reader, &name);
	rc = rc ? h5_damage_note(&walk->damage, rc) : add_name(walk, &name, &source, NULL, 0);
	h5_message_release(storage->file, &body);
	return rc;
}

static int add_dense(void *arg, struct h5_reader r)
{
	struct h5_named_walk *walk = arg;
	const struct h5_named_storage *storage = &walk->storage;
	const struct h5_reader bytes = r;
	struct h5_message_body body = {0};
	struct h5_named_record record;
	struct source source = {0};
	struct h5_name name;
	int rc = h5_interrupt_check();

	if (rc)
		return rc;
	rc = storage->ops->decode_record(&r, &record);
	if (!rc)
		rc = open_dense(storage, &record, &body);
	if (!rc)
		rc = storage->ops->decode_name(body.reader, &name);
	source.is_kept = body.copy.size <= KEPT_MESSAGE && walk->names.bytes < KEPT_MAX;
	if (rc)
		rc = h5_damage_note(&walk->damage, rc);
	else if (source.is_kept)
		rc = add_name(walk, &name, &source, body.copy.data, body.copy.size);
	else
		rc = add_name(walk, &name, &source, bytes.p, h5_reader_left(&bytes));
	h5_message_release(storage->file, &body);
	return rc;
}

static int add_all(struct h5_named_walk *walk)
{
	struct h5_btree2 tree;
	int rc = 0;

	if (walk->storage.is_dense) {
		rc = open_index(&walk->storage, &tree);
		return rc ? rc : h5_btree2_iterate(&tree, add_dense, walk);
	}
	for (unsigned i = 0; !rc && next_compact(&walk->storage, &i); i++) {
		rc = h5_interrupt_check();
		if (!rc)
			rc = add_compact(walk, i);
	}
	return rc;
}

int h5_named_begin(struct h5_named_walk *walk, const struct h5_named_storage *storage,
		   enum h5_name_order order)
{
	int rc;

	*walk = (struct h5_named_walk){.storage = *storage, .damage = storage->damage};
	h5_name_list_init(&walk->names, storage->file);
	if (storage->is_dense)
		h5_want_both(storage->file, storage->info.heap, storage->info.name_index);
	rc = h5_damage_note(&walk->damage, add_all(walk));
	if (!rc)
		h5_name_list_sort(&walk->names, order);
	return rc;
}

struct visitor {
	const struct h5_named_storage *storage;
	h5_named_visit *visit;
	void *arg;
};

static int visit_dense(void *arg, struct h5_reader r)
{
	const struct visitor *visitor = arg;
	const struct h5_named_storage *storage = visitor->storage;
	struct h5_message_body body = {0};
	struct h5_named_record record;
	struct h5_name name;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = storage->ops->decode_record(&r, &record);
	if (!rc)
		rc = open_dense(storage, &record, &body);
	if (!rc)
		rc = storage->ops->decode_name(body.reader, &name);
	if (!rc)
		rc = visitor->visit(visitor->arg, &name, &record, body.reader);
	h5_message_release(storage->file, &body);
	return rc;
}

int h5_named_iterate_dense(const struct h5_named_storage *storage, h5_named_visit *visit, void *arg)
{
	struct visitor visitor = {storage, visit, arg};
	struct h5_btree2 tree;
	int rc = open_index(storage, &tree);

	assert(storage->is_dense);
	return rc ? rc : h5_btree2_iterate(&tree, visit_dense, &visitor);
}

static int open_again(struct h5_named_walk *walk, const struct h5_name_item *item)
{
	const struct h5_named_storage *storage = &walk->storage;
	const struct source *source = item->data;
	struct h5_named_record record;
	struct h5_reader r;
	int rc;

	if (!storage->is_dense)
		return h5_message_open(storage->file, &storage->object->messages[source->compact],
				       &walk->body);
	r = h5_file_reader(storage->file, source->bytes, item->size - sizeof *source, H5_UNDEF);
	if (source->is_kept) {
		walk->body.reader = r;
		return 0;
	}
	rc = storage->ops->decode_record(&r, &record);
	return rc ? rc : open_dense(storage, &record, &walk->body);
}

int h5_named_next(struct h5_named_walk *walk, const struct h5_name **name, struct h5_reader *message)
{
	assert(walk->next <= walk->names.count);
	while (walk->next < walk->names.count) {
		const struct h5_name_item *item = &walk->names.items[walk->next++];
		int rc = h5_interrupt_check();

		if (rc)
			return rc;
		h5_message_release(walk->storage.file, &walk->body);
		rc = open_again(walk, item);
		if (!rc) {
			*name = &item->name;
			*message = walk->body.reader;
			return 1;
		}
		rc = h5_damage_note(&walk->damage, rc);
		if (rc)
			return rc;
	}
	return h5_damage_result(&walk->damage);
}

void h5_named_end(struct h5_named_walk *walk)
{
	h5_message_release(walk->storage.file, &walk->body);
	h5_name_list_release(&walk->names);
}

/* ---- verifying dense storage ---- */

static int count_record(void *arg, struct h5_reader record)
{
	uint64_t *count = arg;

	(void)record;
	++*count;
	return h5_interrupt_check();
}

/* Visits all nodes of a tree; -EUCLEAN if its header counts other records than there are. */
static int count_records(struct h5_file *file, uint64_t address, enum h5_btree2_type type, uint64_t *count)
{
	struct h5_btree2 tree;
	int rc = h5_btree2_open(file, address, type, 1, &tree);

	*count = 0;
	if (!rc)
		rc = h5_btree2_iterate(&tree, count_record, count);
	if (!rc && tree.records != *count)
		rc = h5_fail(-EUCLEAN, address, "version 2 B-tree: %ju records, not %ju", (uintmax_t)*count,
			     (uintmax_t)tree.records);
	return rc;
}

int h5_named_check(const struct h5_named_storage *storage, struct h5_damage *damage)
{
	const struct h5_named_info *info = &storage->info;
	uint64_t names, orders;
	int rc;

	if (!storage->is_dense)
		return 0;
	rc = h5_fractal_heap_check(storage->file, info->heap, damage);
	if (rc)
		return rc;
	rc = count_records(storage->file, info->name_index, storage->ops->name_index, &names);
	if (rc)
		return h5_damage_note(damage, rc);
	if (info->order_index == H5_UNDEF)
		return 0;
	rc = count_records(storage->file, info->order_index, storage->ops->order_index, &orders);
	if (!rc && names != orders)
		rc = h5_fail(-EUCLEAN, info->order_index,
			     "version 2 B-tree: %ju records by creation order, but %ju by name",
			     (uintmax_t)orders, (uintmax_t)names);
	return h5_damage_note(damage, rc);
}

#include "dataset/removal.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/seen.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "dataset/dataset.h"
#include "dataset/values.h"
#include "dataset/writer.h"
#include "format/shared_message.h"
#include "object/attribute.h"
#include "object/dense_write.h"
#include "object/group.h"
#include "object/shared_table_write.h"
#include "object/symbol_table_sweep.h"

#include <stdlib.h>
#include <string.h>

/* True: it is the file that is to blame, so that an object can be removed all the same. */
static bool is_damage(int rc)
{
	return rc == -EUCLEAN || rc == -ENOTSUP;
}

/* ---- names ---- */

/* Counts the object's names. *is_fixed: it must not be changed, as h5_header_may_change() would tell. */
static int count_names(struct h5_file *file, uint64_t address, uint32_t *count, bool *is_fixed)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, address, &ref, &object);

	if (rc)
		return rc;
	rc = h5_header_references(file, &object->header, count);
	*is_fixed = object->header.is_fixed;
	h5_file_put(file, ref);
	return rc;
}

int h5_object_add_name(struct h5_file *file, uint64_t address)
{
	uint32_t count;
	bool is_fixed;
	int rc = count_names(file, address, &count, &is_fixed);

	if (rc)
		return rc;
	if (count == UINT32_MAX)
		return h5_fail(-EMLINK, address, "object header: no more names can be counted");
	return h5_header_set_references(file, address, count ? count + 1 : 2);
}

/* libhdf5 never removes an object whose count is 0, nor do we: it is damaged, and may have other names. */
int h5_object_drop_name(struct h5_file *file, uint64_t address, bool *last)
{
	bool is_fixed;
	uint32_t count;
	int rc = count_names(file, address, &count, &is_fixed);

	*last = !rc && count == 1;
	if (rc)
		return rc == -EUCLEAN ? 0 : rc;
	if (is_fixed)
		return h5_header_may_change(file, address);
	return count > 1 ? h5_header_set_references(file, address, count - 1) : 0;
}

/* ---- gathering ---- */

struct piece {
	uint64_t address, size;
	bool is_data;
};

/* All pieces of the file that only one object uses, or several that go together. */
struct gathering {
	struct h5_file *file;
	struct piece *pieces;
	size_t count, capacity;
	uint64_t *uses; /* addresses of committed datatypes: one for each message that refers to one */
	size_t use_count, use_capacity;
	struct h5_shared_use *shared; /* messages in the file's heaps of shared messages: one for each use */
	size_t shared_count, shared_capacity;
	/* Committed datatypes of attributes of which an index knows are gathered, too. */
	bool all_types;
	struct h5_seen seen; /* addresses of objects that were gathered */
};

static void release(struct gathering *g)
{
	free(g->pieces);
	free(g->uses);
	free(g->shared);
	h5_seen_release(&g->seen);
}

static int gather(struct gathering *g, uint64_t address, uint64_t n, bool is_data)
{
	uint64_t end;
	int rc;

	if (!n)
		return 0;
	if (!h5_add(address, n, &end) || end > h5_file_end(g->file))
		return h5_fail(-EUCLEAN, address, "%ju bytes of an object lie beyond the end of the file",
			       (uintmax_t)n);
	if (address < h5_superblock_size(h5_file_superblock(g->file)))
		return h5_fail(-EUCLEAN, address, "%ju bytes of an object lie over the superblock",
			       (uintmax_t)n);
	rc = h5_array_reserve(&g->pieces, &g->capacity, g->count + 1, NULL);
	if (rc)
		return rc;
	g->pieces[g->count++] = (struct piece){address, n, is_data};
	return 0;
}

static int gather_data(void *arg, uint64_t address, uint64_t n)
{
	return gather(arg, address, n, true);
}

static int gather_block(void *arg, uint64_t address, uint64_t n)
{
	return gather(arg, address, n, false);
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return h5_compare(x->address, y->address);
}

/* Sorts the pieces. -EUCLEAN: some of them overlap. */
static int sort(struct gathering *g)
{
	if (g->count)
		qsort(g->pieces, g->count, sizeof *g->pieces, compare_pieces);
	for (size_t i = 1; i < g->count; i++)
		if (g->pieces[i].address - g->pieces[i - 1].address < g->pieces[i - 1].size)
			return h5_fail(-EUCLEAN, g->pieces[i].address, "two blocks of an object overlap");
	return 0;
}

static int gather_use(void *arg, uint64_t type)
{
	struct gathering *g = arg;
	int rc = h5_array_reserve(&g->uses, &g->use_capacity, g->use_count + 1, NULL);

	if (!rc)
		g->uses[g->use_count++] = type;
	return rc;
}

static int gather_shared(struct gathering *g, const struct h5_shared_use *use)
{
	int rc = h5_array_reserve(&g->shared, &g->shared_capacity, g->shared_count + 1, NULL);

	if (!rc)
		g->shared[g->shared_count++] = *use;
	return rc;
}

/* A message in a heap. */
static int gather_heap_message(struct gathering *g, enum h5_message_type type, const uint8_t *id)
{
	struct h5_shared_use use = {.type = type};

	memcpy(use.id, id, sizeof use.id);
	return gather_shared(g, &use);
}

/* ---- parts of an object ---- */

static int gather_header(struct gathering *g, const struct h5_object *object)
{
	int rc = 0;

	for (unsigned i = 0; i < object->header.chunk_count && !rc; i++)
		rc = gather_block(g, object->header.chunks[i].address, object->header.chunks[i].size);
	return rc;
}

static int gather_dense(struct gathering *g, const struct h5_object *object, enum h5_named_kind kind)
{
	struct h5_named_storage storage;
	int rc = h5_named_storage_find(g->file, object, kind, &storage);

	if (!rc)
		rc = h5_damage_result(&storage.damage);
	return rc || !storage.is_dense ? rc : h5_dense_extents(g->file, kind, &storage.info, gather_block, g);
}

static int gather_links(struct gathering *g, const struct h5_object *object)
{
	return gather_dense(g, object, H5_NAMED_LINK);
}

static int gather_attribute(struct gathering *g, struct h5_reader message)
{
	struct h5_shared_use uses[2];
	unsigned count = h5_attribute_shared(message, uses);
	uint64_t type;
	int rc = h5_attribute_committed(message, &type);

	for (unsigned i = 0; i < count && !rc; i++)
		rc = gather_shared(g, &uses[i]);
	return rc || type == H5_UNDEF ? rc : gather_use(g, type);
}

static int gather_dense_attribute(void *g, const struct h5_name *name, const struct h5_named_record *record,
				  struct h5_reader message)
{
	(void)name;
	if (!record->is_shared)
		return gather_attribute(g, message);
	return record->id_size == H5_SHARED_ID_SIZE ? gather_heap_message(g, H5_MSG_ATTRIBUTE, record->id)
						    : 0;
}

static int gather_attributes(struct gathering *g, const struct h5_object *object)
{
	struct h5_named_storage storage;
	int rc = gather_dense(g, object, H5_NAMED_ATTRIBUTE);

	if (!rc)
		rc = h5_named_storage_find(g->file, object, H5_NAMED_ATTRIBUTE, &storage);
	return rc || !storage.is_dense ? rc : h5_named_iterate_dense(&storage, gather_dense_attribute, g);
}

/* A message in the header, of which an index knows. What an attribute uses goes with the record: other
 * headers may have an equal one, and all of them count as one use of its datatype. */
static int gather_tracked(struct gathering *g, const struct h5_message *message)
{
	const struct h5_shared_use use = {
		.type = message->type, .body = message->data, .size = message->size};
	uint64_t type = H5_UNDEF;
	int rc = gather_shared(g, &use);

	if (!rc && g->all_types && message->type == H5_MSG_ATTRIBUTE)
		rc = h5_attribute_committed(h5_message_reader(g->file, message), &type);
	return rc || type == H5_UNDEF ? rc : gather_use(g, type);
}

static int gather_uses(struct gathering *g, const struct h5_object *object)
{
	int rc = 0;

	for (unsigned i = 0; i < object->count && !rc; i++) {
		const struct h5_message *message = &object->messages[i];
		struct h5_reader r = h5_message_reader(g->file, message);
		struct h5_shared_message shared;

		if (message->flags & H5_MSG_FLAG_SHARED) {
			rc = h5_shared_message_decode(&r, &shared);
			if (!rc)
				rc = shared.in_heap ? gather_heap_message(g, message->type, shared.id)
						    : gather_use(g, shared.address);
		} else if (message->flags & H5_MSG_FLAG_TRACKED) {
			rc = gather_tracked(g, message);
		} else if (message->type == H5_MSG_ATTRIBUTE) {
			rc = gather_attribute(g, r);
		}
	}
	return rc;
}

static int gather_symbols(struct gathering *g, const struct h5_object *object)
{
	const struct h5_message *message = h5_object_find(object, H5_MSG_SYMBOL_TABLE);
	struct h5_symbol_table table;
	struct h5_reader r;
	int rc;

	if (!message)
		return 0;
	r = h5_message_reader(g->file, message);
	rc = h5_symbol_table_decode(&r, &table);
	return rc ? rc : h5_symbol_table_extents(g->file, &table, gather_block, g);
}

static int gather_dataset(struct gathering *g, const struct h5_object *object)
{
	const struct h5_extent_visits visits = {gather_data, gather_block, g};
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc;

	if (object->kind != H5_OBJECT_DATASET)
		return 0;
	rc = h5_dataset_get(g->file, object->address, &ref, &dataset);
	if (!rc && dataset->ops->extents)
		rc = dataset->ops->extents(dataset, &visits);
	h5_file_put(g->file, ref);
	return rc;
}

typedef int gather_part(struct gathering *g, const struct h5_object *object);

static gather_part *const parts[] = {gather_header,	gather_links, gather_symbols,
				     gather_attributes, gather_uses,  gather_dataset};

/* Leaves out a part that is damaged, as a whole. */
static int gather_parts(struct gathering *g, const struct h5_object *object, struct h5_damage *damage)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof parts / sizeof *parts && !rc; i++) {
		size_t count = g->count, use_count = g->use_count, shared_count = g->shared_count;

		rc = parts[i](g, object);
		if (!is_damage(rc))
			continue;
		rc = h5_damage_note(damage, rc);
		g->count = count;
		g->use_count = use_count;
		g->shared_count = shared_count;
	}
	return rc;
}

/* ---- removal ---- */

static int check_empty(struct h5_file *file, const struct h5_object *group)
{
	struct h5_link_walk walk;
	const struct h5_link *link;
	uint64_t count;
	int rc;

	if (group->kind != H5_OBJECT_GROUP)
		return 0;
	rc = h5_group_count(file, group, &count);
	if (!rc && count)
		rc = 1;
	if (!rc) {
		rc = h5_link_begin(&walk, file, group, H5_NAMES_SORTED);
		if (!rc)
			rc = h5_link_next(&walk, &link);
		h5_link_end(&walk);
	}
	return rc > 0 ? h5_fail(-ENOTEMPTY, group->address, "the group has links") : rc;
}

static int check_removable(struct h5_file *file, uint64_t address)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc;

	if (address == h5_file_superblock(file)->root)
		return h5_fail(-EBUSY, address, "the root group cannot be removed");
	rc = h5_object_get(file, address, &ref, &object);
	if (rc)
		return is_damage(rc) ? 0 : rc;
	rc = object->references > 1 ? h5_fail(-EBUSY, address, "the object has other names")
				    : check_empty(file, object);
	h5_file_put(file, ref);
	return rc;
}

/* -EUCLEAN: elements lie where metadata change, which would be lost. */
static int check_pending(const struct gathering *g)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct piece *piece = &g->pieces[i];

		if (piece->is_data && !h5_tx_is_new(g->file, piece->address) &&
		    h5_tx_is_changed(g->file, piece->address, (size_t)piece->size))
			return h5_fail(-EUCLEAN, piece->address, "elements of an object lie over metadata");
	}
	return 0;
}

/* Leaves out everything if some of it overlaps. */
static int give_up(struct gathering *g, struct h5_damage *damage)
{
	int rc = sort(g);

	if (!rc)
		rc = check_pending(g);
	if (rc)
		return h5_damage_note(damage, rc);
	for (size_t i = 0; i < g->count; i++) {
		const struct piece *piece = &g->pieces[i];

		if (piece->is_data)
			h5_tx_discard(g->file, piece->address, piece->size);
		else
			h5_tx_free(g->file, piece->address, piece->size);
	}
	return 0;
}

int h5_dataset_give_up(const struct h5_dataset *dataset)
{
	struct gathering g = {.file = dataset->file};
	const struct h5_extent_visits visits = {gather_data, gather_block, &g};
	struct h5_damage damage = {0};
	int rc = 0;

	h5_unit_begin(g.file);
	if (dataset->ops->extents)
		rc = dataset->ops->extents(dataset, &visits);
	rc = is_damage(rc) ? 0 : rc ? rc : give_up(&g, &damage);
	release(&g);
	return h5_unit_end(dataset->file, rc);
}

/* Gives up what only the object's values refer to in the global heap. */
static int give_up_values(struct gathering *g, const struct h5_object *object)
{
	struct h5_heap_dead dead;
	int rc;

	h5_heap_dead_init(&dead, g->file);
	rc = h5_object_find_values(g->file, object, &dead);
	if (!rc)
		rc = h5_heap_dead_give_up(&dead, gather_block, g);
	h5_heap_dead_release(&dead);
	return rc;
}

/* Nothing of it was gathered before. */
static int gather_object(struct gathering *g, uint64_t address, struct h5_damage *damage)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_seen_add(&g->seen, address);

	if (rc)
		return h5_fail(rc, address, "object: out of memory");
	rc = h5_object_get(g->file, address, &ref, &object);
	if (rc)
		return is_damage(rc) ? h5_damage_note(damage, rc) : rc;
	rc = gather_parts(g, object, damage);
	if (!rc)
		rc = give_up_values(g, object);
	if (!rc)
		rc = h5_shared_table_drop_header(g->file, address, g->shared, g->shared_count, gather_use, g);
	g->shared_count = 0;
	h5_file_put(g->file, ref);
	return rc;
}

/* ---- committed datatypes ---- */

/* Finds how often a committed datatype is used: n times at least. */
static int count_uses(struct h5_file *file, uint64_t type, uint64_t n, uint32_t *count)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, type, &ref, &object);

	if (rc)
		return rc;
	*count = object->references;
	if (object->kind != H5_OBJECT_DATATYPE || *count < n)
		rc = h5_fail(-EUCLEAN, type, "committed datatype: %u uses, of which %ju go", *count,
			     (uintmax_t)n);
	h5_file_put(file, ref);
	return rc;
}

/* A committed datatype is used n times less. If nothing uses it any more, it goes, too. */
static int drop_uses(struct gathering *g, uint64_t type, uint64_t n, struct h5_damage *damage)
{
	uint32_t count;
	int rc;

	if (h5_seen_has(&g->seen, type))
		return 0;
	rc = count_uses(g->file, type, n, &count);
	if (rc)
		return is_damage(rc) ? h5_damage_note(damage, rc) : rc;
	return count > n ? h5_header_set_references(g->file, type, (uint32_t)(count - n))
			 : gather_object(g, type, damage);
}

static int compare_uses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return h5_compare(*x, *y);
}

/* Drops the uses, which are sorted. */
static int drop_sorted(struct gathering *g, const uint64_t *uses, size_t count, struct h5_damage *damage)
{
	int rc = 0;

	for (size_t i = 0, n; i < count && !rc; i += n) {
		for (n = 1; i + n < count && uses[i + n] == uses[i];)
			n++;
		rc = drop_uses(g, uses[i], n, damage);
	}
	return rc;
}

/* Drops the gathered uses, and those of the datatypes that go because of that, and so on. Each goes once, so
 * this ends. */
static int drop_all_uses(struct gathering *g, struct h5_damage *damage)
{
	int rc = 0;

	while (g->use_count && !rc) {
		uint64_t *uses = g->uses;
		size_t count = g->use_count;

		g->uses = NULL;
		g->use_count = g->use_capacity = 0;
		qsort(uses, count, sizeof *uses, compare_uses);
		rc = drop_sorted(g, uses, count, damage);
		free(uses);
	}
	return rc;
}

static int remove_object(struct gathering *g, uint64_t address)
{
	struct h5_damage damage = {0};
	int rc = check_removable(g->file, address);

	if (!rc)
		rc = gather_object(g, address, &damage);
	if (!rc)
		rc = drop_all_uses(g, &damage);
	return rc ? rc : give_up(g, &damage);
}

int h5_object_remove(struct h5_file *file, uint64_t address)
{
	struct gathering g = {.file = file};
	int rc;

	if (h5_tx_is_writable(file))
		h5_dataset_writer_forget(file, address);
	h5_unit_begin(file);
	rc = h5_unit_end(file, remove_object(&g, address));
	release(&g);
	return rc;
}

/* ---- visits ---- */

int h5_object_extents(struct h5_file *file, uint64_t address, h5_extent_visit *visit, void *arg)
{
	struct gathering g = {.file = file};
	struct h5_damage damage = {0};
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, address, &ref, &object);

	if (rc)
		return rc;
	rc = gather_parts(&g, object, &damage);
	if (!rc)
		rc = h5_damage_result(&damage);
	if (!rc)
		rc = sort(&g);
	h5_file_put(file, ref);
	for (size_t i = 0; i < g.count && !rc; i++)
		rc = visit(arg, g.pieces[i].address, g.pieces[i].size);
	release(&g);
	return rc;
}

int h5_object_uses(struct h5_file *file, uint64_t address, const struct h5_use_visits *visits, void *arg)
{
	struct gathering g = {.file = file, .all_types = true};
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, address, &ref, &object);

	if (rc)
		return rc;
	rc = gather_uses(&g, object);
	if (!rc)
		rc = gather_attributes(&g, object);
	for (size_t i = 0; i < g.use_count && !rc; i++)
		rc = visits->type(arg, g.uses[i]);
	for (size_t i = 0; i < g.shared_count && visits->shared && !rc; i++)
		rc = visits->shared(arg, &g.shared[i]);
	h5_file_put(file, ref);
	release(&g);
	return rc;
}

#include "object/group.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/lookup3.h"
#include "object/damage.h"
#include "object/fractal_heap.h"
#include "object/name.h"
#include "object/symbol_table.h"
#include "store/btree2.h"

#include <stdlib.h>

enum {
	TEXT_MAX = 1 << 20, /* bytes of a name or soft link in a local heap */
	HASH_SIZE = 4,	    /* a record of the name index: hash, heap ID */
};

/* Where a group keeps its links. */
struct storage {
	struct h5_damage damage; /* a message that could not be read */
	bool old;		 /* symbol table, else link info */
	struct h5_symbol_table table;
	struct h5_link_info info;
};

static int find_storage(struct h5_file *file, const struct h5_object *group, struct storage *storage)
{
	const struct h5_message *message = h5_object_find(group, H5_MSG_LINK_INFO);
	struct h5_reader r;
	int rc;

	*storage = (struct storage){.info = {.heap = H5_UNDEF}};
	if (group->kind != H5_OBJECT_GROUP)
		return h5_fail(-ENOTDIR, group->address, "not a group");
	if (message) {
		r = h5_message_reader(file, message);
		rc = h5_link_info_decode(&r, &storage->info);
		if (rc)
			storage->info.heap = H5_UNDEF;
		return h5_damage_note(&storage->damage, rc);
	}
	message = h5_object_find(group, H5_MSG_SYMBOL_TABLE);
	r = h5_message_reader(file, message);
	storage->old = true;
	return h5_symbol_table_decode(&r, &storage->table);
}

static struct h5_link from_message(const struct h5_link_message *m)
{
	return (struct h5_link){
		.type = m->type,
		.name = m->name,
		.name_size = m->name_size,
		.has_order = m->has_order,
		.order = m->order,
		.address = m->address,
		.target = m->target,
		.target_size = m->target_size,
		.file = m->file,
		.file_size = m->file_size,
	};
}

static const char *copy_text(char **to, const char *from, size_t n)
{
	const char *at = *to;

	if (n)
		memcpy(*to, from, n);
	*to += n;
	return at;
}

/* A link with texts of its own. */
static int copy_link(const struct h5_link *from, struct h5_link *to)
{
	char *text = malloc(from->name_size + from->target_size + from->file_size + 1);

	if (!text)
		return h5_fail(-ENOMEM, H5_UNDEF, "link: out of memory");
	*to = *from;
	to->owned = text;
	to->name = copy_text(&text, from->name, from->name_size);
	to->target = copy_text(&text, from->target, from->target_size);
	to->file = copy_text(&text, from->file, from->file_size);
	return 0;
}

void h5_link_release(struct h5_link *link)
{
	free(link->owned);
	*link = (struct h5_link){0};
}

/* The link that an entry of a symbol table stands for; its texts are in the buffer, which is emptied before.
 */
static int from_symbol(const struct h5_local_heap *heap, const struct h5_symbol *symbol, struct h5_buf *text,
		       struct h5_link *link)
{
	int rc;

	*link = (struct h5_link){.type = H5_LINK_HARD, .address = symbol->address};
	text->size = 0;
	rc = h5_local_heap_text(heap, symbol->name, text);
	link->name_size = text->size;
	if (!rc && symbol->cache == H5_SYMBOL_SOFT) {
		link->type = H5_LINK_SOFT;
		rc = h5_local_heap_text(heap, symbol->target, text);
		link->target_size = text->size - link->name_size;
	} else if (symbol->cache == H5_SYMBOL_GROUP) {
		link->cached_kind = H5_OBJECT_GROUP;
	}
	link->name = text->data;
	link->target = link->target_size ? text->data + link->name_size : NULL;
	return rc;
}

/* Lookup */

static int look_up_old(struct h5_file *file, const struct h5_symbol_table *table, const char *name,
		       size_t size, struct h5_link *link)
{
	struct h5_local_heap heap;
	struct h5_symbol symbol;
	struct h5_link found;
	struct h5_buf text;
	int rc = h5_symbol_table_lookup(file, table, name, size, &symbol);

	if (!rc)
		rc = h5_local_heap_open(file, table->heap, &heap);
	if (rc)
		return rc;
	h5_buf_init(&text, TEXT_MAX);
	rc = from_symbol(&heap, &symbol, &text, &found);
	if (!rc)
		rc = copy_link(&found, link);
	h5_buf_release(&text);
	return rc;
}

static int decode_message(struct h5_file *file, const struct h5_message *message, struct h5_link *link)
{
	struct h5_reader r = h5_message_reader(file, message);
	struct h5_link_message m;
	int rc = h5_link_decode(&r, &m);

	if (!rc)
		*link = from_message(&m);
	return rc;
}

/* A message that cannot be read is none: its neighbours are found. */
static int look_up_compact(struct h5_file *file, const struct h5_object *group, const char *name, size_t size,
			   struct h5_link *link)
{
	struct h5_link found;

	for (unsigned i = 0; i < group->count; i++) {
		const struct h5_message *message = &group->messages[i];
		int rc;

		if (message->type != H5_MSG_LINK)
			continue;
		rc = h5_interrupt_check();
		if (rc)
			return rc;
		if (!decode_message(file, message, &found) &&
		    !h5_name_compare(name, size, found.name, found.name_size))
			return copy_link(&found, link);
	}
	return -ENOENT;
}

/* The link message of a record of the name index. */
/* The bytes of a link message in a heap. */
struct stored {
	uint8_t *data; /* owned */
	struct h5_charge charge;
};

static void stored_release(struct stored *stored)
{
	free(stored->data);
	h5_charge_release(&stored->charge);
}

/* The link borrows from what is stored, which is to be released on success only. */
static int read_record(struct h5_file *file, uint64_t heap, struct h5_reader record, struct stored *stored,
		       struct h5_link *link)
{
	struct h5_link_message m;
	struct h5_reader r;
	size_t size;
	int rc;

	*stored = (struct stored){0};
	h5_reader_skip(&record, HASH_SIZE);
	rc = h5_fractal_heap_get(file, heap, record.p, h5_reader_left(&record), &stored->data, &size,
				 &stored->charge);
	if (rc)
		return rc;
	r = h5_file_reader(file, stored->data, size, H5_UNDEF);
	rc = h5_link_decode(&r, &m);
	if (rc)
		stored_release(stored);
	else
		*link = from_message(&m);
	return rc;
}

struct dense_search {
	struct h5_file *file;
	uint64_t heap;
	const char *name;
	size_t size;
	uint32_t hash;
	struct h5_link *link; /* the one found */
};

/* The name index is sorted by the hash of the name, then by the name itself. */
static int compare_record(void *arg, struct h5_reader record, int *rc)
{
	struct dense_search *s = arg;
	struct h5_reader r = record;
	uint32_t hash = h5_read_u32(&r);
	struct stored stored;
	struct h5_link link;
	int order;

	if (s->hash != hash)
		return s->hash < hash ? -1 : 1;
	*rc = read_record(s->file, s->heap, record, &stored, &link);
	if (*rc)
		return 0;
	order = h5_name_compare(s->name, s->size, link.name, link.name_size);
	if (!order) {
		h5_link_release(s->link);
		*rc = copy_link(&link, s->link);
	}
	stored_release(&stored);
	return order;
}

static int look_up_dense(struct h5_file *file, const struct h5_link_info *info, const char *name, size_t size,
			 struct h5_link *link)
{
	struct dense_search s = {file, info->heap, name, size, h5_lookup3(name, size, 0), link};
	struct h5_btree2 tree;
	uint8_t *record;
	int rc = h5_btree2_open(file, info->name_index, H5_BTREE2_LINK_NAME, HASH_SIZE + 1, &tree);

	if (rc)
		return rc;
	record = malloc(tree.record_size + 1u);
	if (!record)
		return h5_fail(-ENOMEM, H5_UNDEF, "link: out of memory");
	rc = h5_btree2_find(&tree, compare_record, &s, record);
	free(record);
	if (rc)
		h5_link_release(link);
	return rc;
}

int h5_group_lookup(struct h5_file *file, const struct h5_object *group, const char *name, size_t size,
		    struct h5_link *link)
{
	struct storage storage;
	int rc = find_storage(file, group, &storage);

	*link = (struct h5_link){0};
	if (rc)
		return rc;
	if (storage.old)
		return look_up_old(file, &storage.table, name, size, link);
	if (storage.info.heap != H5_UNDEF)
		return look_up_dense(file, &storage.info, name, size, link);
	rc = look_up_compact(file, group, name, size, link);
	/* A group whose link info cannot be read may have the link elsewhere. */
	return rc == -ENOENT && storage.damage.first.code ? h5_damage_result(&storage.damage) : rc;
}

/* Listing */

struct item {
	struct h5_link link;
	size_t position; /* the first of equal names wins */
};

struct listing {
	struct h5_file *file;
	struct item *items;
	size_t count, capacity;
	uint64_t bytes, limit; /* of texts */
	struct h5_charge charge;
	struct h5_damage damage;
	struct h5_local_heap heap; /* old storage */
	struct h5_buf text;
	uint64_t fractal_heap; /* dense storage */
};

/* A quarter more than there is: it grows. */
static int count_memory(struct listing *l)
{
	size_t need = l->capacity * sizeof *l->items + (size_t)l->bytes;

	return need <= l->charge.bytes ? 0 : h5_charge_set(&l->charge, need + need / 4);
}

static int add_link(struct listing *l, const struct h5_link *link)
{
	int rc;

	if (l->count == l->capacity) {
		size_t more = l->capacity ? 2 * l->capacity : 16;
		struct item *items = realloc(l->items, more * sizeof *items);

		if (!items)
			return h5_fail(-ENOMEM, H5_UNDEF, "group: out of memory");
		l->items = items;
		l->capacity = more;
	}
	l->bytes += link->name_size + link->target_size + link->file_size;
	if (l->bytes > l->limit)
		return h5_fail(-EUCLEAN, H5_UNDEF, "group: more names than a file can hold");
	l->items[l->count].position = l->count;
	rc = count_memory(l);
	if (!rc)
		rc = copy_link(link, &l->items[l->count].link);
	l->count += !rc;
	return rc;
}

static int list_symbol(void *arg, const struct h5_symbol *symbol)
{
	struct listing *l = arg;
	struct h5_link link;
	int rc = from_symbol(&l->heap, symbol, &l->text, &link);

	if (rc) {
		/* The buffer keeps its error. */
		h5_buf_release(&l->text);
		h5_buf_init(&l->text, TEXT_MAX);
		return h5_damage_note(&l->damage, rc);
	}
	return add_link(l, &link);
}

static int list_record(void *arg, struct h5_reader record)
{
	struct listing *l = arg;
	struct stored stored;
	struct h5_link link;
	int rc = read_record(l->file, l->fractal_heap, record, &stored, &link);

	if (rc)
		return h5_damage_note(&l->damage, rc);
	rc = add_link(l, &link);
	stored_release(&stored);
	return rc;
}

static int list_compact(struct listing *l, const struct h5_object *group)
{
	int rc = 0;

	for (unsigned i = 0; i < group->count && !rc; i++) {
		struct h5_link link;

		if (group->messages[i].type != H5_MSG_LINK)
			continue;
		rc = h5_interrupt_check();
		if (rc)
			break;
		rc = decode_message(l->file, &group->messages[i], &link);
		rc = rc ? h5_damage_note(&l->damage, rc) : add_link(l, &link);
	}
	return rc;
}

static int list_dense(struct listing *l, const struct h5_link_info *info)
{
	struct h5_btree2 tree;
	int rc = h5_btree2_open(l->file, info->name_index, H5_BTREE2_LINK_NAME, HASH_SIZE + 1, &tree);

	l->fractal_heap = info->heap;
	if (!rc)
		rc = h5_btree2_iterate(&tree, list_record, l);
	return rc;
}

static int list_old(struct listing *l, const struct h5_symbol_table *table)
{
	int rc = h5_local_heap_open(l->file, table->heap, &l->heap);

	if (rc)
		return rc;
	h5_buf_init(&l->text, TEXT_MAX);
	rc = h5_symbol_table_iterate(l->file, table, list_symbol, l);
	h5_buf_release(&l->text);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int order = h5_name_compare(x->link.name, x->link.name_size, y->link.name, y->link.name_size);

	return order ? order : x->position < y->position ? -1 : x->position > y->position;
}

static int by_creation(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->link.order != y->link.order)
		return x->link.order < y->link.order ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* By name, without doubles; then by creation where that is asked for and every link has it. */
static void sort(struct listing *l, enum h5_link_order order)
{
	bool ordered = order == H5_LINKS_BY_CREATION;
	size_t kept = 0;

	if (!l->count)
		return;
	qsort(l->items, l->count, sizeof *l->items, by_name);
	for (size_t i = 0; i < l->count; i++) {
		struct item *item = &l->items[i], *last = kept ? &l->items[kept - 1] : NULL;

		if (last && !h5_name_compare(last->link.name, last->link.name_size, item->link.name,
					     item->link.name_size)) {
			h5_link_release(&item->link);
			continue;
		}
		ordered = ordered && item->link.has_order;
		l->items[kept++] = *item;
	}
	l->count = kept;
	if (ordered)
		qsort(l->items, l->count, sizeof *l->items, by_creation);
}

int h5_group_iterate(struct h5_file *file, const struct h5_object *group, enum h5_link_order order,
		     h5_link_visit *visit, void *arg)
{
	struct listing l = {.file = file, .limit = h5_names_max(file)};
	struct storage storage;
	int rc = find_storage(file, group, &storage);

	if (rc)
		return rc;
	l.damage = storage.damage;
	if (storage.old)
		rc = list_old(&l, &storage.table);
	else if (storage.info.heap != H5_UNDEF)
		rc = list_dense(&l, &storage.info);
	else
		rc = list_compact(&l, group);
	rc = h5_damage_note(&l.damage, rc);
	if (!rc)
		sort(&l, order);
	for (size_t i = 0; i < l.count && !rc; i++)
		rc = visit(arg, &l.items[i].link);
	for (size_t i = 0; i < l.count; i++)
		h5_link_release(&l.items[i].link);
	free(l.items);
	h5_charge_release(&l.charge);
	return rc ? rc : h5_damage_result(&l.damage);
}

static int count_symbol(void *arg, const struct h5_symbol *symbol)
{
	uint64_t *count = arg;

	(void)symbol;
	++*count;
	return 0;
}

int h5_group_count(struct h5_file *file, const struct h5_object *group, uint64_t *count)
{
	struct storage storage;
	struct h5_btree2 tree;
	int rc = find_storage(file, group, &storage);

	*count = 0;
	if (rc)
		return rc;
	if (storage.old)
		return h5_symbol_table_iterate(file, &storage.table, count_symbol, count);
	if (storage.info.heap != H5_UNDEF) {
		rc = h5_btree2_open(file, storage.info.name_index, H5_BTREE2_LINK_NAME, HASH_SIZE + 1, &tree);
		*count = rc ? 0 : tree.records;
		return rc;
	}
	for (unsigned i = 0; i < group->count; i++)
		*count += group->messages[i].type == H5_MSG_LINK;
	return 0;
}

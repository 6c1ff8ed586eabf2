#include "object/group.h"

#include "base/error.h"
#include "object/symbol_table.h"
#include "store/want.h"

#include <assert.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20 }; /* bytes of a name or soft link in a local heap */

int h5_group_storage_find(struct h5_file *file, const struct h5_object *group,
			  struct h5_group_storage *storage)
{
	const struct h5_message *message;
	struct h5_reader r;

	*storage = (struct h5_group_storage){.is_old = false};
	if (group->kind != H5_OBJECT_GROUP)
		return h5_fail(-ENOTDIR, group->address, "not a group");
	if (h5_object_find(group, H5_MSG_LINK_INFO))
		return h5_named_storage_find(file, group, H5_NAMED_LINK, &storage->messages);
	message = h5_object_find(group, H5_MSG_SYMBOL_TABLE);
	assert(message); /* or it would be no group */
	r = h5_message_reader(file, message);
	storage->is_old = true;
	return h5_symbol_table_decode(&r, &storage->table);
}

/* The link that an entry of a symbol table stands for. Its texts are in the buffer, which is emptied first.
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

/* ---- by name ---- */

static int find_symbol(struct h5_file *file, const struct h5_symbol_table *table, const char *name,
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
		rc = h5_link_copy(&found, link);
	h5_buf_release(&text);
	return rc;
}

static int find_message(const struct h5_named_storage *storage, const char *name, size_t size,
			struct h5_link *link)
{
	struct h5_message_body body;
	struct h5_link found;
	int rc = h5_named_find(storage, name, size, &body);

	if (rc)
		return rc;
	rc = h5_link_decode(&body.reader, &found);
	if (!rc)
		rc = h5_link_copy(&found, link);
	h5_message_release(storage->file, &body);
	return rc;
}

int h5_group_lookup(struct h5_file *file, const struct h5_object *group, const char *name, size_t size,
		    struct h5_link *link)
{
	struct h5_group_storage storage;
	int rc = h5_group_storage_find(file, group, &storage);

	*link = (struct h5_link){0};
	if (rc)
		return rc;
	return storage.is_old ? find_symbol(file, &storage.table, name, size, link)
			      : find_message(&storage.messages, name, size, link);
}

/* ---- all of them ---- */

/* The data that a list of names has for each entry of a symbol table. */
struct entry {
	struct h5_link link; /* its `name` and `target` pointers are stale; the walk sets them anew */
	char target[];
};

static int add_link(struct h5_name_list *names, const struct h5_link *link)
{
	const struct h5_name name = {.text = link->name, .size = link->name_size};
	struct entry *entry;
	void *data;
	int rc = h5_name_list_add(names, &name, sizeof *entry + link->target_size, &data);

	if (rc)
		return rc;
	entry = data;
	entry->link = *link;
	if (link->target_size)
		memcpy(entry->target, link->target, link->target_size);
	return 0;
}

static int add_symbol(struct h5_link_walk *walk, const struct h5_local_heap *heap,
		      const struct h5_symbol *symbol, struct h5_buf *text)
{
	struct h5_link link;
	int rc = from_symbol(heap, symbol, text, &link);

	if (!rc)
		return add_link(&walk->symbols, &link);
	/* A buffer's error is sticky, so the next entry gets a fresh buffer. */
	h5_buf_release(text);
	h5_buf_init(text, TEXT_MAX);
	return h5_damage_note(&walk->damage, rc);
}

static int add_symbols(struct h5_link_walk *walk, struct h5_file *file, const struct h5_symbol_table *table)
{
	const struct h5_symbol *symbol;
	struct h5_symbol_walk symbols;
	struct h5_local_heap heap;
	struct h5_buf text;
	int rc;

	h5_want_both(file, table->btree, table->heap);
	rc = h5_local_heap_open(file, table->heap, &heap);
	if (rc)
		return rc;
	h5_buf_init(&text, TEXT_MAX);
	rc = h5_symbol_begin(&symbols, file, table);
	while (!rc && (rc = h5_symbol_next(&symbols, &symbol)) > 0)
		rc = add_symbol(walk, &heap, symbol, &text);
	h5_symbol_end(&symbols);
	h5_buf_release(&text);
	return rc;
}

int h5_link_begin(struct h5_link_walk *walk, struct h5_file *file, const struct h5_object *group,
		  enum h5_name_order order)
{
	struct h5_group_storage storage;
	int rc = h5_group_storage_find(file, group, &storage);

	*walk = (struct h5_link_walk){.is_old = storage.is_old};
	if (rc)
		return rc;
	if (!storage.is_old)
		return h5_named_begin(&walk->messages, &storage.messages, order);
	h5_name_list_init(&walk->symbols, file);
	rc = h5_damage_note(&walk->damage, add_symbols(walk, file, &storage.table));
	if (!rc)
		h5_name_list_sort(&walk->symbols, order);
	return rc;
}

static int next_symbol(struct h5_link_walk *walk)
{
	const struct h5_name_item *item;
	const struct entry *entry;

	if (walk->next == walk->symbols.count)
		return h5_damage_result(&walk->damage);
	item = &walk->symbols.items[walk->next++];
	entry = item->data;
	walk->link = entry->link;
	walk->link.name = item->name.text;
	walk->link.target = entry->target;
	return 1;
}

static int next_message(struct h5_link_walk *walk)
{
	const struct h5_name *name;
	struct h5_reader message;
	int rc = h5_named_next(&walk->messages, &name, &message);

	if (rc <= 0)
		return rc;
	rc = h5_link_decode(&message, &walk->link);
	return rc ? rc : 1;
}

int h5_link_next(struct h5_link_walk *walk, const struct h5_link **link)
{
	*link = &walk->link;
	return walk->is_old ? next_symbol(walk) : next_message(walk);
}

void h5_link_end(struct h5_link_walk *walk)
{
	h5_name_list_release(&walk->symbols);
	h5_named_end(&walk->messages);
}

static int count_symbols(struct h5_file *file, const struct h5_symbol_table *table, uint64_t *count)
{
	const struct h5_symbol *symbol;
	struct h5_symbol_walk walk;
	int rc = h5_symbol_begin(&walk, file, table);

	for (; !rc && (rc = h5_symbol_next(&walk, &symbol)) > 0; rc = 0)
		++*count;
	h5_symbol_end(&walk);
	return rc;
}

int h5_group_count(struct h5_file *file, const struct h5_object *group, uint64_t *count)
{
	struct h5_group_storage storage;
	int rc = h5_group_storage_find(file, group, &storage);

	*count = 0;
	if (rc)
		return rc;
	return storage.is_old ? count_symbols(file, &storage.table, count)
			      : h5_named_count(&storage.messages, count);
}

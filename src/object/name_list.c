#include "object/name_list.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int h5_name_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t common = a_size < b_size ? a_size : b_size;
	int order = common ? memcmp(a, b, common) : 0;

	return order ? order : h5_compare(a_size, b_size);
}

/* Bytes of data of each name that the limit does not count: they tell where its message is. */
enum { ALLOWANCE = 64 };

/* Names are in the file too, none of them twice, but perhaps compressed; and a file with holes may be of any
 * size. */
void h5_name_list_init(struct h5_name_list *list, const struct h5_file *file)
{
	const uint64_t low = (uint64_t)96 << 20, high = (uint64_t)288 << 20;

	*list = (struct h5_name_list){.limit = h5_min(h5_max(h5_file_size(file), low), high)};
}

void h5_name_list_release(struct h5_name_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].data);
	free(list->items);
	h5_charge_release(&list->charge);
	*list = (struct h5_name_list){0};
}

/* A quarter more than there is: it grows. */
static int charge_memory(struct h5_name_list *list)
{
	size_t need = list->capacity * sizeof *list->items + (size_t)list->bytes;

	return need <= list->charge.bytes ? 0 : h5_charge_set(&list->charge, need + need / 4);
}

int h5_name_list_add(struct h5_name_list *list, const struct h5_name *name, size_t size, void **data)
{
	int rc = h5_array_reserve(&list->items, &list->capacity, list->count + 1, NULL);
	char *memory, *text;

	if (rc)
		return rc;
	assert(name->text || !name->size);
	list->bytes += name->size + size;
	if (list->bytes > list->limit + list->count * ALLOWANCE)
		return h5_fail(-EUCLEAN, H5_UNDEF, "list of names: more than a file can hold");
	rc = charge_memory(list);
	if (rc)
		return rc;
	memory = malloc(size + name->size + 1);
	if (!memory)
		return h5_fail(-ENOMEM, H5_UNDEF, "list of names: out of memory");
	text = memory + size;
	if (name->size)
		memcpy(text, name->text, name->size);
	text[name->size] = 0;
	list->items[list->count] =
		(struct h5_name_item){.name = *name, .data = memory, .size = size, .position = list->count};
	list->items[list->count++].name.text = text;
	*data = memory;
	return 0;
}

static int by_position(const struct h5_name_item *x, const struct h5_name_item *y)
{
	return h5_compare(x->position, y->position);
}

static int by_text(const void *a, const void *b)
{
	const struct h5_name_item *x = a, *y = b;
	int order = h5_name_compare(x->name.text, x->name.size, y->name.text, y->name.size);

	return order ? order : by_position(x, y);
}

static int by_creation(const void *a, const void *b)
{
	const struct h5_name_item *x = a, *y = b;

	if (x->name.order != y->name.order)
		return h5_compare_signed(x->name.order, y->name.order);
	return by_position(x, y);
}

/* Of a sorted list. */
static void drop_doubles(struct h5_name_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct h5_name_item *item = &list->items[i], *last = kept ? &list->items[kept - 1] : NULL;

		if (last &&
		    !h5_name_compare(last->name.text, last->name.size, item->name.text, item->name.size))
			free(item->data);
		else
			list->items[kept++] = *item;
	}
	list->count = kept;
}

void h5_name_list_sort(struct h5_name_list *list, enum h5_name_order order)
{
	bool ordered = order == H5_NAMES_BY_CREATION;

	if (!list->count)
		return;
	qsort(list->items, list->count, sizeof *list->items, by_text);
	drop_doubles(list);
	for (size_t i = 0; i < list->count; i++)
		ordered = ordered && list->items[i].name.has_order;
	if (ordered)
		qsort(list->items, list->count, sizeof *list->items, by_creation);
}

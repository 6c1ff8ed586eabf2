#include "vfs/directory.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more item, with n bytes of text. */
static int reserve(struct h5_dir_list *list, size_t n)
{
	int rc = h5_array_reserve(&list->items, &list->capacity, list->count + 1, &list->items_charge);
	size_t need = list->text_bytes + n;

	if (!rc && need > list->text_charge.bytes)
		rc = h5_charge_set(&list->text_charge, need + need / 4);
	return rc;
}

int h5_dir_list_add_link(struct h5_dir_list *list, const struct h5_link *link)
{
	char name[H5_NAME_MAX + 1], *text;
	size_t size = h5_name_escape(link->name, link->name_size, name) + 1;
	size_t n = size + link->target_size + link->file_size;
	int rc = reserve(list, n);
	struct h5_dir_item *item;

	if (rc)
		return rc;
	text = malloc(n);
	if (!text)
		return -ENOMEM;
	item = &list->items[list->count++];
	*item = (struct h5_dir_item){.text = text, .link = *link};
	list->text_bytes += n;
	memcpy(text, name, size);
	text += size;
	item->link.name = NULL;
	item->link.name_size = 0;
	if (link->target_size)
		memcpy(text, link->target, link->target_size);
	item->link.target = text;
	text += link->target_size;
	if (link->file_size)
		memcpy(text, link->file, link->file_size);
	item->link.file = text;
	return 0;
}

int h5_dir_list_add(struct h5_dir_list *list, const char *name, struct h5_entity *entity)
{
	size_t n = strlen(name) + 1;
	char *text = strdup(name);
	int rc = text ? reserve(list, n) : -ENOMEM;

	if (rc) {
		free(text);
		h5_entity_release(entity);
		return rc;
	}
	list->text_bytes += n;
	list->items[list->count++] = (struct h5_dir_item){.text = text, .entity = *entity};
	return 0;
}

void h5_dir_list_release(struct h5_dir_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].text);
		h5_entity_release(&list->items[i].entity);
	}
	free(list->items);
	h5_charge_release(&list->items_charge);
	h5_charge_release(&list->text_charge);
	*list = (struct h5_dir_list){0};
}

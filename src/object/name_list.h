/* A list of the names of links or attributes, in memory, each with data of the list's owner. */
#ifndef H5_OBJECT_NAME_LIST_H
#define H5_OBJECT_NAME_LIST_H

#include "base/room.h"
#include "store/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h5_name {
	const char *text; /* any bytes; in a list with a NUL behind them */
	size_t size;
	bool has_order;
	int64_t order; /* of creation */
};

enum h5_name_order {
	H5_NAMES_SORTED,      /* by bytes, increasing */
	H5_NAMES_BY_CREATION, /* if all have an order of creation; else as H5_NAMES_SORTED */
};

struct h5_name_item {
	struct h5_name name;
	void *data; /* `size` bytes of the owner's, aligned for any type */
	size_t size;
	size_t position; /* in the order in which names were added */
};

struct h5_name_list {
	struct h5_name_item *items;
	size_t count, capacity;
	uint64_t bytes, limit; /* of names and data */
	struct h5_charge charge;
};

void h5_name_list_init(struct h5_name_list *list, const struct h5_file *file);
void h5_name_list_release(struct h5_name_list *list); /* may run twice */

/* Adds a copy of the name. The caller fills the `size` bytes at *data. -EUCLEAN: these are more bytes
 * than the names of a sound file have. */
int h5_name_list_add(struct h5_name_list *list, const struct h5_name *name, size_t size, void **data);

/* Sorts the list. Of equal names the one that was added first stays. */
void h5_name_list_sort(struct h5_name_list *list, enum h5_name_order order);

/* <0, 0, >0: by bytes; a shorter name comes before a longer one that begins with it. */
int h5_name_compare(const char *a, size_t a_size, const char *b, size_t b_size);

#endif

/* Growing arrays.
 *
 * A growing array is three members of a struct: a pointer to the items, their count, and the capacity. The
 * items are free()d by their owner. To append:
 *
 *	rc = h5_array_reserve(&list->items, &list->capacity, list->count + 1, NULL);
 *	if (rc)
 *		return rc;
 *	list->items[list->count++] = item; */
#ifndef H5_BASE_ARRAY_H
#define H5_BASE_ARRAY_H

#include "base/room.h"

#include <stddef.h>

/* Makes room for at least `count` items in all. `items`: address of the pointer to them, which may move;
 * `capacity`: address of a size_t. The room at least doubles, so that appending n items one by one copies
 * O(n). `charge`: used for this array and nothing else; the array's memory is charged to the request through
 * it; NULL: not charged. -ENOMEM, -EFBIG (h5_charge_set()): the array is as it was. */
#define h5_array_reserve(items, capacity, count, charge)                                                     \
	h5_array_reserve_bytes((items), sizeof **(items), (capacity), (count), (charge))

/* The same for items whose size is not known to the compiler. `items`: address of a pointer to any type. */
int h5_array_reserve_bytes(void *items, size_t item_size, size_t *capacity, size_t count,
			   struct h5_charge *charge);

#endif

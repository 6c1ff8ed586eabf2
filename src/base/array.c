#include "base/array.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 64 }; /* the first capacity */

/* A capacity of at least `count`; 0: too many bytes for the address space. */
static size_t larger_capacity(size_t capacity, size_t count, size_t item_size)
{
	if (count > SIZE_MAX / item_size)
		return 0;
	/* malloc() gives at most PTRDIFF_MAX bytes, so that twice as many can be counted. */
	capacity *= 2;
	if (capacity < LEAST_BYTES / item_size)
		capacity = LEAST_BYTES / item_size;
	return capacity < count ? count : capacity;
}

int h5_array_reserve_bytes(void *items, size_t item_size, size_t *capacity, size_t count,
			   struct h5_charge *charge)
{
	size_t larger;
	void *moved;
	int rc;

	assert(item_size);
	if (count <= *capacity)
		return 0;
	larger = larger_capacity(*capacity, count, item_size);
	if (!larger)
		return h5_fail(-ENOMEM, H5_UNDEF, "no memory for %zu items of %zu bytes", count, item_size);
	rc = charge ? h5_charge_set(charge, larger * item_size) : 0;
	if (rc)
		return rc;
	/* The pointer is copied, not cast: its type may be any. */
	memcpy(&moved, items, sizeof moved);
	moved = realloc(moved, larger * item_size);
	if (!moved) {
		/* To make a charge smaller never fails. */
		if (charge)
			h5_charge_set(charge, *capacity * item_size);
		return h5_fail(-ENOMEM, H5_UNDEF, "no memory for %zu items of %zu bytes", larger, item_size);
	}
	memcpy(items, &moved, sizeof moved);
	*capacity = larger;
	return 0;
}

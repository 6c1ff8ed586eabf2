#include "object/heap_set.h"

#include "base/error.h"
#include "base/hash_table.h"
#include "format/global_heap.h"

#include <stdlib.h>
#include <string.h>

enum {
	BITS_LEAST = 256,
	BYTES_MOST = 64 << 20, /* of memory */
};

struct h5_heap_objects {
	uint64_t address;
	uint32_t capacity; /* bits */
	uint8_t *bits;	   /* owned; by index: the object is in the set */
	UT_hash_handle hh;
};

void h5_heap_set_init(struct h5_heap_set *set, struct h5_file *file)
{
	*set = (struct h5_heap_set){.most = h5_file_end(file) / H5_GLOBAL_HEAP_PREFIX + 1};
}

void h5_heap_set_release(struct h5_heap_set *set)
{
	struct h5_heap_objects *c, *next;

	HASH_ITER(hh, set->collections, c, next)
	{
		HASH_DEL(set->collections, c);
		free(c->bits);
		free(c);
	}
	set->bytes = 0;
}

static struct h5_heap_objects *find(const struct h5_heap_set *set, uint64_t address)
{
	struct h5_heap_objects *c;

	HASH_FIND(hh, set->collections, &address, sizeof address, c);
	return c;
}

static int add_collection(struct h5_heap_set *set, uint64_t address, struct h5_heap_objects **out)
{
	struct h5_heap_objects *c = calloc(1, sizeof *c);

	if (!c)
		return h5_fail(-ENOMEM, address, "out of memory");
	c->address = address;
	HASH_ADD(hh, set->collections, address, sizeof c->address, c);
	if (!c->hh.tbl) {
		free(c);
		return h5_fail(-ENOMEM, address, "out of memory");
	}
	set->bytes += sizeof *c;
	*out = c;
	return 0;
}

static int make_room(struct h5_heap_set *set, struct h5_heap_objects *c, uint32_t index)
{
	uint32_t capacity = c->capacity ? c->capacity : BITS_LEAST;
	uint8_t *bits;

	while (capacity <= index)
		capacity *= 2;
	if (capacity == c->capacity)
		return 0;
	bits = realloc(c->bits, capacity / 8);
	if (!bits)
		return h5_fail(-ENOMEM, c->address, "out of memory");
	memset(bits + c->capacity / 8, 0, (capacity - c->capacity) / 8);
	set->bytes += (capacity - c->capacity) / 8;
	c->bits = bits;
	c->capacity = capacity;
	return 0;
}

int h5_heap_set_add(struct h5_heap_set *set, uint64_t address, uint32_t index)
{
	struct h5_heap_objects *c = find(set, address);
	int rc = 0;

	if (!index || index > UINT16_MAX || (!c && HASH_COUNT(set->collections) >= set->most))
		return h5_fail(-EUCLEAN, address, "global heap: there can be no object %u", index);
	if (set->bytes > BYTES_MOST && (!c || index >= c->capacity)) {
		set->is_full = true;
		return 0;
	}
	if (!c)
		rc = add_collection(set, address, &c);
	if (!rc)
		rc = make_room(set, c, index);
	if (!rc)
		c->bits[index / 8] |= (uint8_t)(1u << index % 8);
	return rc;
}

void h5_heap_set_remove(struct h5_heap_set *set, uint64_t address, uint32_t index)
{
	struct h5_heap_objects *c = find(set, address);

	if (c && index < c->capacity)
		c->bits[index / 8] &= (uint8_t) ~(1u << index % 8);
}

const struct h5_heap_objects *h5_heap_set_find(const struct h5_heap_set *set, uint64_t address)
{
	return find(set, address);
}

bool h5_heap_objects_have(const struct h5_heap_objects *objects, uint32_t index)
{
	return objects && index < objects->capacity && objects->bits[index / 8] >> index % 8 & 1;
}

bool h5_heap_set_has(const struct h5_heap_set *set, uint64_t address, uint32_t index)
{
	return h5_heap_objects_have(find(set, address), index);
}

int h5_heap_set_each(const struct h5_heap_set *set, h5_heap_set_visit *visit, void *arg)
{
	const struct h5_heap_objects *c, *next;
	int rc = 0;

	HASH_ITER(hh, set->collections, c, next)
	{
		if (!rc)
			rc = visit(arg, c->address, c);
	}
	return rc;
}

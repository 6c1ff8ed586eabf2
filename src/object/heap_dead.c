#include "object/heap_dead.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "format/global_heap.h"
#include "object/global_heap.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { BITS_LEAST = 256 };

struct h5_dead_collection {
	uint64_t address;
	uint32_t capacity; /* bits */
	uint8_t *bits;	   /* owned; by index: the object is dead */
	UT_hash_handle hh;
};

void h5_heap_dead_init(struct h5_heap_dead *dead, struct h5_file *file)
{
	*dead = (struct h5_heap_dead){.file = file, .most = h5_file_end(file) / H5_GLOBAL_HEAP_PREFIX + 1};
}

void h5_heap_dead_release(struct h5_heap_dead *dead)
{
	struct h5_dead_collection *c, *next;

	HASH_ITER(hh, dead->collections, c, next)
	{
		HASH_DEL(dead->collections, c);
		free(c->bits);
		free(c);
	}
}

static struct h5_dead_collection *find(const struct h5_heap_dead *dead, uint64_t address)
{
	struct h5_dead_collection *c;

	HASH_FIND(hh, dead->collections, &address, sizeof address, c);
	return c;
}

static int add_collection(struct h5_heap_dead *dead, uint64_t address, struct h5_dead_collection **out)
{
	struct h5_dead_collection *c = calloc(1, sizeof *c);

	if (!c)
		return h5_fail(-ENOMEM, address, "out of memory");
	c->address = address;
	HASH_ADD(hh, dead->collections, address, sizeof c->address, c);
	if (!c->hh.tbl) {
		free(c);
		return h5_fail(-ENOMEM, address, "out of memory");
	}
	*out = c;
	return 0;
}

static int make_room(struct h5_dead_collection *c, uint32_t index)
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
	c->bits = bits;
	c->capacity = capacity;
	return 0;
}

int h5_heap_dead_add(void *arg, uint64_t address, uint32_t index)
{
	struct h5_heap_dead *dead = arg;
	struct h5_dead_collection *c = find(dead, address);
	int rc = 0;

	if (!index || index > UINT16_MAX || (!c && HASH_COUNT(dead->collections) >= dead->most))
		return h5_fail(-EUCLEAN, address, "global heap: there can be no object %u", index);
	if (!c)
		rc = add_collection(dead, address, &c);
	if (!rc)
		rc = make_room(c, index);
	if (!rc)
		c->bits[index / 8] |= (uint8_t)(1u << index % 8);
	return rc;
}

int h5_heap_dead_remove(void *arg, uint64_t address, uint32_t index)
{
	struct h5_dead_collection *c = find(arg, address);

	if (c && index < c->capacity)
		c->bits[index / 8] &= (uint8_t) ~(1u << index % 8);
	return 0;
}

/* 1: the object lives. */
static int is_alive(void *arg, uint32_t index)
{
	const struct h5_dead_collection *c = arg;

	return index >= c->capacity || !(c->bits[index / 8] >> index % 8 & 1);
}

static int give_up(const struct h5_heap_dead *dead, struct h5_dead_collection *c)
{
	uint64_t size = 0, end = h5_file_end(dead->file);
	int rc = h5_global_heap_each(dead->file, c->address, is_alive, c, &size);

	if (rc == 1 || rc == -EUCLEAN)
		return 0;
	if (!rc && (c->address > end || size > end - c->address || size % 8))
		return 0;
	if (!rc)
		h5_tx_free(dead->file, c->address, size);
	return rc;
}

int h5_heap_dead_give_up(struct h5_heap_dead *dead)
{
	struct h5_dead_collection *c, *next;
	int rc = h5_unit_begin(dead->file);

	if (rc)
		return rc;
	HASH_ITER(hh, dead->collections, c, next)
	{
		if (!rc)
			rc = give_up(dead, c);
	}
	return h5_unit_end(dead->file, rc);
}

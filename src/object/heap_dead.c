#include "object/heap_dead.h"

#include "base/array.h"
#include "base/error.h"
#include "change/transaction.h"
#include "format/global_heap.h"
#include "object/global_heap.h"
#include "object/heap_compact.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum {
	BITS_LEAST = 256,
	BYTES_MOST = 64 << 20, /* of memory for collections */
	CHANGES_MOST =
		1 << 13, /* of collections at once: each takes up to two pages of memory until the commit */
};

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
	dead->bytes = 0;
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
	dead->bytes += sizeof *c;
	*out = c;
	return 0;
}

static int make_room(struct h5_heap_dead *dead, struct h5_dead_collection *c, uint32_t index)
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
	dead->bytes += (capacity - c->capacity) / 8;
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
	if (dead->bytes > BYTES_MOST && (!c || index >= c->capacity))
		return 0;
	if (!c)
		rc = add_collection(dead, address, &c);
	if (!rc)
		rc = make_room(dead, c, index);
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

/* ---- collections ---- */

/* The objects of a collection. */
struct survey {
	const struct h5_dead_collection *collection;
	uint8_t size_of_lengths;
	struct h5_heap_part *parts; /* owned */
	size_t count, capacity;
	size_t going;
};

static bool is_dead(const struct h5_dead_collection *c, const struct h5_global_heap_object *object)
{
	return object->references < 2 && object->index < c->capacity &&
	       c->bits[object->index / 8] >> object->index % 8 & 1;
}

static int add_part(void *arg, const struct h5_global_heap_object *object)
{
	struct survey *s = arg;
	const bool goes = is_dead(s->collection, object);
	int rc = h5_array_reserve(&s->parts, &s->capacity, s->count + 1, NULL);

	if (!rc)
		s->parts[s->count++] = (struct h5_heap_part){
			.begin = object->offset - h5_global_heap_header(s->size_of_lengths),
			.size = h5_global_heap_room(s->size_of_lengths, object->size),
			.goes = goes};
	s->going += goes;
	return rc;
}

static int give_up(const struct h5_heap_dead *dead, const struct h5_dead_collection *c, size_t *changes,
		   h5_extent_visit *visit, void *arg)
{
	struct survey s = {.collection = c,
			   .size_of_lengths = h5_file_superblock(dead->file)->size_of_lengths};
	uint64_t size = 0;
	int rc = h5_global_heap_each(dead->file, c->address, add_part, &s, &size);

	if (rc == -EUCLEAN) {
		rc = 0; /* it stays as it is */
	} else if (!rc && s.count && s.going == s.count) {
		rc = visit(arg, c->address, size);
	} else if (!rc && s.going && *changes) {
		--*changes;
		rc = h5_heap_compact(dead->file, c->address, size, s.parts, s.count);
	}
	free(s.parts);
	return rc;
}

int h5_heap_dead_give_up(struct h5_heap_dead *dead, h5_extent_visit *visit, void *arg)
{
	struct h5_dead_collection *c, *next;
	size_t changes = CHANGES_MOST;
	int rc;

	if (!dead->collections || h5_tx_is_swmr(dead->file))
		return 0;
	rc = h5_unit_begin(dead->file);
	if (rc)
		return rc;
	HASH_ITER(hh, dead->collections, c, next)
	{
		if (!rc)
			rc = give_up(dead, c, &changes, visit, arg);
	}
	return h5_unit_end(dead->file, rc);
}

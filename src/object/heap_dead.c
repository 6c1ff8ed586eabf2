#include "object/heap_dead.h"

#include "base/array.h"
#include "base/error.h"
#include "change/transaction.h"
#include "format/global_heap.h"
#include "object/global_heap.h"
#include "object/heap_compact.h"

#include <stdlib.h>

enum {
	CHANGES_MOST = 1 << 13
}; /* of collections at once: each takes up to two pages of memory until the commit */

void h5_heap_dead_init(struct h5_heap_dead *dead, struct h5_file *file)
{
	*dead = (struct h5_heap_dead){.file = file};
	h5_heap_set_init(&dead->set, file);
}

void h5_heap_dead_release(struct h5_heap_dead *dead)
{
	h5_heap_set_release(&dead->set);
}

bool h5_heap_dead_is_empty(const struct h5_heap_dead *dead)
{
	return !dead->set.collections;
}

int h5_heap_dead_add(void *dead, uint64_t address, uint32_t index)
{
	return h5_heap_set_add(&((struct h5_heap_dead *)dead)->set, address, index);
}

int h5_heap_dead_remove(void *dead, uint64_t address, uint32_t index)
{
	h5_heap_set_remove(&((struct h5_heap_dead *)dead)->set, address, index);
	return 0;
}

/* ---- giving up ---- */

/* The objects of a collection. */
struct survey {
	const struct h5_heap_objects *dead;
	uint8_t size_of_lengths;
	struct h5_heap_part *parts; /* owned */
	size_t count, capacity;
	size_t going;
};

static int add_part(void *arg, const struct h5_global_heap_object *object)
{
	struct survey *s = arg;
	const bool goes = object->references < 2 && h5_heap_objects_have(s->dead, object->index);
	int rc = h5_array_reserve(&s->parts, &s->capacity, s->count + 1, NULL);

	if (!rc)
		s->parts[s->count++] = (struct h5_heap_part){
			.begin = object->offset - h5_global_heap_header(s->size_of_lengths),
			.size = h5_global_heap_room(s->size_of_lengths, object->size),
			.goes = goes};
	s->going += goes;
	return rc;
}

struct giving {
	struct h5_file *file;
	size_t changes; /* of collections that may still be made */
	h5_extent_visit *visit;
	void *arg;
};

static int give_up(void *arg, uint64_t address, const struct h5_heap_objects *objects)
{
	struct giving *g = arg;
	struct survey s = {.dead = objects, .size_of_lengths = h5_file_superblock(g->file)->size_of_lengths};
	uint64_t size = 0;
	int rc = h5_global_heap_each(g->file, address, add_part, &s, &size);

	if (rc == -EUCLEAN) {
		rc = 0; /* it stays as it is */
	} else if (!rc && s.count && s.going == s.count) {
		rc = g->visit(g->arg, address, size);
	} else if (!rc && s.going && g->changes) {
		g->changes--;
		rc = h5_heap_compact(g->file, address, size, s.parts, s.count);
	}
	free(s.parts);
	return rc;
}

int h5_heap_dead_give_up(struct h5_heap_dead *dead, h5_extent_visit *visit, void *arg)
{
	struct giving g = {.file = dead->file, .changes = CHANGES_MOST, .visit = visit, .arg = arg};

	if (h5_heap_dead_is_empty(dead) || h5_tx_is_swmr(dead->file))
		return 0;
	h5_unit_begin(dead->file);
	return h5_unit_end(dead->file, h5_heap_set_each(&dead->set, give_up, &g));
}

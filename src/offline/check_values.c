#include "offline/check_values.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "object/global_heap.h"

void h5_check_values_init(struct h5_check_values *values, struct h5_file *file)
{
	*values = (struct h5_check_values){.incomplete = false};
	h5_heap_set_init(&values->found, file);
	h5_heap_set_init(&values->several, file);
}

void h5_check_values_release(struct h5_check_values *values)
{
	h5_heap_set_release(&values->found);
	h5_heap_set_release(&values->several);
}

bool h5_check_values_are_known(const struct h5_check_values *values)
{
	return !values->incomplete && !values->found.is_full && !values->several.is_full;
}

int h5_check_values_add(struct h5_check_values *values, uint64_t address, uint32_t index, bool *first)
{
	*first = !h5_heap_set_find(&values->found, address);
	if (h5_heap_set_has(&values->found, address, index))
		return h5_heap_set_add(&values->several, address, index);
	return h5_heap_set_add(&values->found, address, index);
}

/* The objects of a collection. */
struct counting {
	struct h5_check_values *values;
	uint64_t address;
	const struct h5_heap_objects *found; /* in it */
	uint64_t objects, bytes;	     /* that nothing refers to */
	h5_check_values_wrong *wrong;
	void *arg;
};

static int count_object(void *arg, const struct h5_global_heap_object *object)
{
	struct counting *c = arg;
	unsigned at_least = 1;

	if (!h5_heap_objects_have(c->found, object->index)) {
		c->objects++;
		c->bytes += object->size;
		return 0;
	}
	if (h5_heap_set_has(&c->values->several, c->address, object->index))
		at_least = 2;
	if (!object->references || !c->wrong || (at_least == 1) == (object->references == 1))
		return 0;
	return c->wrong(c->arg, c->address, object->index, object->references, at_least);
}

static void add(struct h5_check_values *values, const struct counting *c)
{
	values->lost += c->objects;
	values->lost_bytes += c->bytes;
}

bool h5_check_values_lose(struct h5_check_values *values, struct h5_file *file, uint64_t address,
			  uint64_t size)
{
	struct counting c = {.values = values, .address = address};
	uint64_t bytes;

	/* A collection from which all was removed has no object. */
	if (h5_heap_set_find(&values->found, address) ||
	    h5_global_heap_each(file, address, count_object, &c, &bytes) || bytes != size)
		return false;
	add(values, &c);
	return true;
}

struct visit {
	struct h5_check_values *values;
	struct h5_file *file;
	h5_check_values_wrong *wrong;
	void *arg;
};

static int count_collection(void *arg, uint64_t address, const struct h5_heap_objects *objects)
{
	const struct visit *visit = arg;
	struct counting c = {.values = visit->values,
			     .address = address,
			     .found = objects,
			     .wrong = visit->wrong,
			     .arg = visit->arg};
	uint64_t size;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_global_heap_each(visit->file, address, count_object, &c, &size);
	/* That the collection is damaged, reading its objects has told. */
	if (rc == -EUCLEAN)
		return 0;
	if (!rc)
		add(visit->values, &c);
	return rc;
}

int h5_check_values_count(struct h5_check_values *values, struct h5_file *file, h5_check_values_wrong *wrong,
			  void *arg)
{
	struct visit visit = {values, file, wrong, arg};

	return h5_heap_set_each(&values->found, count_collection, &visit);
}

#include "dataset/values.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "object/attribute_values.h"
#include "object/value_heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB_BYTES = 1 << 18 }; /* of elements that are read at once, about */

/* ---- elements ---- */

/* Elements of a dataset that go. */
struct going {
	const struct h5_dataset *dataset;
	const uint64_t *dims; /* elements inside of these stay; NULL: none does */
	struct h5_heap_dead *dead;
};

/* True: the element, by its number, lies inside of the dimensions. */
static bool is_inside(const struct going *g, uint64_t element)
{
	const struct h5_dataspace *space = &g->dataset->space;

	for (unsigned i = space->rank; i-- > 0; element /= space->dims[i])
		if (element % space->dims[i] >= g->dims[i])
			return false;
	return true;
}

static int add_elements(const struct going *g, uint64_t first, const uint8_t *data, size_t n)
{
	const struct h5_datatype *type = g->dataset->type;
	int rc = h5_interrupt_check();

	for (size_t i = 0; i < n && !rc; i++)
		if (!g->dims || !is_inside(g, first + i))
			rc = h5_value_heap_walk_own(g->dataset->file, type, data + i * type->size,
						    h5_heap_dead_add, g->dead);
	return rc;
}

/* The first byte of an element that may go. */
static uint64_t first_byte(const struct going *g)
{
	const struct h5_dataspace *space = &g->dataset->space;

	if (!g->dims || !space->rank || !space->dims[0] ||
	    memcmp(g->dims + 1, space->dims + 1, (space->rank - 1) * sizeof *g->dims))
		return 0;
	return g->dataset->size / space->dims[0] * h5_min(g->dims[0], space->dims[0]);
}

/* Elements that are not stored own nothing. */
static int add_all(const struct going *g)
{
	const struct h5_dataset *dataset = g->dataset;
	const size_t size = dataset->type->size, fit = h5_max(SLAB_BYTES / size, 1);
	uint64_t at = first_byte(g);
	uint8_t *slab;
	int rc = 0;

	if (size > H5_ELEMENT_MOST)
		return h5_fail(-EFBIG, dataset->address, "an element of %zu bytes", size);
	slab = malloc(fit * size);
	if (!slab)
		return h5_fail(-ENOMEM, dataset->address, "out of memory");
	while (!rc && at < dataset->size) {
		size_t n;

		rc = h5_dataset_seek_stored(dataset, at, &at);
		if (rc || at >= dataset->size)
			break;
		assert(!(at % size));
		n = (size_t)h5_min(fit, (dataset->size - at) / size);
		rc = h5_dataset_read(dataset, at, slab, n * size);
		if (!rc)
			rc = add_elements(g, at / size, slab, n);
		at += n * size;
	}
	free(slab);
	return rc;
}

static int visit_fill(const struct h5_dataset *dataset, h5_value_heap_visit *visit, struct h5_heap_dead *dead)
{
	if (!dataset->fill)
		return 0;
	return h5_value_heap_walk_own(dataset->file, dataset->type, dataset->fill, visit, dead);
}

/* Elements in other files lead nowhere in this one. */
static bool owns(const struct h5_dataset *dataset)
{
	return !h5_datatype_is_fixed(dataset->type) && !h5_dataset_is_elsewhere(dataset);
}

/* Nothing is added if something is wrong with the file. */
static int all_or_nothing(struct h5_heap_dead *dead, int rc)
{
	if (rc)
		h5_heap_dead_release(dead);
	return h5_is_passing(rc) ? rc : 0;
}

int h5_dataset_find_outside(struct h5_file *file, uint64_t address, const uint64_t *dims,
			    struct h5_heap_dead *dead)
{
	struct going g = {.dims = dims, .dead = dead};
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(file, address, &ref, &g.dataset);

	if (rc)
		return rc;
	if (owns(g.dataset)) {
		rc = add_all(&g);
		if (!rc)
			rc = visit_fill(g.dataset, h5_heap_dead_remove, dead);
		rc = all_or_nothing(dead, rc);
	}
	h5_file_put(file, ref);
	return rc;
}

int h5_dataset_give_up_values(const struct h5_dataset *dataset)
{
	struct h5_heap_dead dead;
	const struct going g = {.dataset = dataset, .dead = &dead};
	int rc;

	if (!owns(dataset))
		return 0;
	h5_heap_dead_init(&dead, dataset->file);
	rc = add_all(&g);
	if (!rc)
		rc = visit_fill(dataset, h5_heap_dead_remove, &dead);
	rc = all_or_nothing(&dead, rc);
	if (!rc)
		rc = h5_heap_dead_give_up(&dead, h5_tx_free_extent, dataset->file);
	h5_heap_dead_release(&dead);
	return h5_is_passing(rc) ? rc : 0;
}

/* ---- objects ---- */

static int add_mappings(const struct h5_dataset *dataset, struct h5_heap_dead *dead)
{
	const uint64_t heap = dataset->layout.virtual.heap;
	const uint32_t index = dataset->layout.virtual.index;

	return heap == H5_UNDEF || !index ? 0 : h5_heap_dead_add(dead, heap, index);
}

static int add_dataset(struct h5_file *file, uint64_t address, struct h5_heap_dead *dead)
{
	struct going g = {.dead = dead};
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(file, address, &ref, &g.dataset);

	if (rc)
		return rc;
	if (owns(g.dataset))
		rc = add_all(&g);
	if (!rc && h5_dataset_is_virtual(g.dataset))
		rc = add_mappings(g.dataset, dead);
	if (!rc && !h5_datatype_is_fixed(g.dataset->type))
		rc = visit_fill(g.dataset, h5_heap_dead_add, dead);
	h5_file_put(file, ref);
	return rc;
}

int h5_object_find_values(struct h5_file *file, const struct h5_object *object, struct h5_heap_dead *dead)
{
	struct h5_interrupt request, alone;
	int rc = 0;

	h5_interrupt_get(&request);
	alone = request;
	alone.ask = NULL;
	h5_interrupt_set(&alone);
	if (object->kind == H5_OBJECT_DATASET)
		rc = add_dataset(file, object->address, dead);
	if (!rc)
		rc = h5_attributes_own(file, object, h5_heap_dead_add, dead);
	h5_interrupt_set(&request);
	return all_or_nothing(dead, rc);
}

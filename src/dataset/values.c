#include "dataset/values.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "object/heap_dead.h"
#include "object/value_heap.h"

#include <stdlib.h>

enum { SLAB_BYTES = 1 << 18 }; /* of elements that are read at once, about */

/* Adds what n elements own. */
static int add_elements(const struct h5_dataset *dataset, const uint8_t *data, size_t n,
			struct h5_heap_dead *dead)
{
	int rc = h5_interrupt_check();

	for (size_t i = 0; i < n && !rc; i++)
		rc = h5_value_heap_walk(dataset->file, dataset->type, data + i * dataset->type->size,
					h5_heap_dead_add, dead);
	return rc;
}

/* Elements that are not stored own nothing. */
static int add_all(const struct h5_dataset *dataset, struct h5_heap_dead *dead)
{
	const size_t size = dataset->type->size, fit = h5_max(SLAB_BYTES / size, 1);
	uint8_t *slab = malloc(fit * size);
	uint64_t at = 0;
	int rc = slab ? 0 : h5_fail(-ENOMEM, dataset->address, "out of memory");

	while (!rc && at < dataset->size) {
		size_t n;

		rc = h5_dataset_seek_stored(dataset, at, &at);
		if (rc || at >= dataset->size)
			break;
		at -= at % size;
		n = (size_t)h5_min(fit, (dataset->size - at) / size);
		rc = h5_dataset_read(dataset, at, slab, n * size);
		if (!rc)
			rc = add_elements(dataset, slab, n, dead);
		at += n * size;
	}
	free(slab);
	return rc;
}

static int give_up(const struct h5_dataset *dataset, struct h5_heap_dead *dead)
{
	int rc = add_all(dataset, dead);

	if (!rc && dataset->fill)
		rc = h5_value_heap_walk(dataset->file, dataset->type, dataset->fill, h5_heap_dead_remove,
					dead);
	return rc ? rc : h5_heap_dead_give_up(dead);
}

int h5_dataset_give_up_values(const struct h5_dataset *dataset)
{
	struct h5_heap_dead dead;
	int rc;

	if (h5_datatype_is_fixed(dataset->type))
		return 0;
	h5_heap_dead_init(&dead, dataset->file);
	rc = give_up(dataset, &dead);
	h5_heap_dead_release(&dead);
	return h5_is_passing(rc) ? rc : 0;
}

#include "view/range.h"

#include "base/checked.h"
#include "base/interrupt.h"
#include "format/convert.h"

#include <math.h>
#include <stdlib.h>

enum {
	PIECE = 1 << 13, /* elements that are read at once */
	ELEMENT_MAX = 8,
	LOW = 2,
	HIGH = 98,
};

struct search {
	double least, greatest;
	bool found;
	uint64_t step; /* one of so many elements is kept */
	size_t count;  /* finite numbers that are kept */
	double kept[H5_RANGE_SAMPLES];
	uint8_t elements[PIECE * ELEMENT_MAX];
	double values[PIECE];
};

/* True: the element is the one of its run of `step` elements that is kept. It is another one in each run,
 * since elements at equal distances may all be in one column. */
static bool is_kept(uint64_t step, uint64_t element)
{
	uint64_t mixed = element / step * UINT64_C(0x9e3779b97f4a7c15);

	return element % step == (mixed >> 32) % step;
}

static void look_at(struct search *s, double value, uint64_t element)
{
	if (!isfinite(value))
		return;
	s->least = s->found && s->least < value ? s->least : value;
	s->greatest = s->found && s->greatest > value ? s->greatest : value;
	s->found = true;
	if (s->step && is_kept(s->step, element))
		s->kept[s->count++] = value;
}

static int look_at_all(struct search *s, const struct h5_dataset *d, uint64_t first, uint64_t n)
{
	const size_t size = d->type->size;
	int rc = 0;

	for (uint64_t i = 0, part; i < n && !rc; i += part) {
		part = h5_min(n - i, PIECE);
		rc = h5_interrupt_check();
		if (!rc)
			rc = h5_dataset_read(d, (first + i) * size, s->elements, (size_t)part * size);
		if (rc)
			break;
		h5_convert_to_doubles(d->type, s->elements, (size_t)part, s->values);
		for (size_t k = 0; k < part; k++)
			look_at(s, s->values[k], i + k);
	}
	return rc;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct h5_range find_range(struct search *s)
{
	size_t last = s->count - 1;
	double low, high;

	if (!s->found)
		return (struct h5_range){0};
	if (s->count) {
		qsort(s->kept, s->count, sizeof *s->kept, compare);
		low = s->kept[last * LOW / 100];
		high = s->kept[(last * HIGH + 99) / 100];
		if (low < high)
			return (struct h5_range){low, high};
	}
	return (struct h5_range){s->least, s->greatest};
}

int h5_range_find(const struct h5_dataset *dataset, uint64_t first, uint64_t n, bool without_extremes,
		  struct h5_range *range)
{
	struct search *s = malloc(sizeof *s);
	int rc;

	if (!s)
		return -ENOMEM;
	s->found = false;
	s->count = 0;
	s->step = without_extremes ? n / H5_RANGE_SAMPLES + (n % H5_RANGE_SAMPLES != 0) : 0;
	rc = look_at_all(s, dataset, first, n);
	if (!rc)
		*range = find_range(s);
	free(s);
	return rc;
}

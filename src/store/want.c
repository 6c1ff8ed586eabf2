#include "store/want.h"

#include "base/array.h"
#include "base/checked.h"
#include "store/block.h"

#include <stdlib.h>

void h5_want_add(struct h5_want *want, uint64_t address, uint64_t n)
{
	if (want->count < H5_WANT_MAX &&
	    !h5_array_reserve(&want->list, &want->capacity, want->count + 1, NULL))
		want->list[want->count++] = (struct h5_io_range){address, n};
}

static int by_offset(const void *a, const void *b)
{
	const struct h5_io_range *x = a, *y = b;

	return h5_compare(x->offset, y->offset);
}

void h5_want_tell(const struct h5_want *want, enum h5_wanted when)
{
	struct h5_want copy = {.file = want->file};

	for (size_t i = 0; i < want->count; i++)
		h5_want_add(&copy, want->list[i].offset, want->list[i].n);
	h5_want_send(&copy, when);
}

void h5_want_send(struct h5_want *want, enum h5_wanted when)
{
	if (want->count) {
		qsort(want->list, want->count, sizeof *want->list, by_offset);
		h5_file_want(want->file, want->list, want->count, when);
	}
	h5_want_release(want);
}

void h5_want_release(struct h5_want *want)
{
	free(want->list);
	want->list = NULL;
	want->count = want->capacity = 0;
}

void h5_want_both(struct h5_file *file, uint64_t first, uint64_t second)
{
	struct h5_want want = {.file = file};

	if (!h5_file_is_far(file))
		return;
	h5_want_add(&want, first, H5_BLOCK_HEADER_MAX);
	h5_want_add(&want, second, H5_BLOCK_HEADER_MAX);
	h5_want_send(&want, H5_WANTED_AROUND);
}

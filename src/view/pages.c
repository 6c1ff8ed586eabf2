#include "view/pages.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

enum { DIGITS_LEAST = 4 };

#define INDEX_MAX (UINT64_C(1) << 61) /* positions in a directory must be far below 2^63 */

bool h5_pages_can_list(const struct h5_dataset *d, unsigned leading)
{
	for (unsigned i = 0; i < leading; i++)
		if (d->space.dims[i] > INDEX_MAX)
			return false;
	return true;
}

/* Digits of all names for the indices of a dimension. */
static int count_digits(uint64_t dim)
{
	int n = 1;

	for (uint64_t last = dim ? dim - 1 : 0; last >= 10; last /= 10)
		n++;
	return n > DIGITS_LEAST ? n : DIGITS_LEAST;
}

/* The index at the begin of a path; NULL: there is none, or it is not as we write it. */
static const char *read_index(const char *p, uint64_t dim, uint64_t *index)
{
	*index = 0;
	for (int left = count_digits(dim); left > 0; left--, p++) {
		if (*p < '0' || *p > '9' || !h5_mul(*index, 10, index) ||
		    !h5_add(*index, (uint64_t)(*p - '0'), index))
			return NULL;
	}
	return *index < dim ? p : NULL;
}

static void write_name(uint64_t index, uint64_t dim, const char *suffix, char name[256])
{
	int digits = count_digits(dim);

	for (int i = digits; i-- > 0; index /= 10)
		name[i] = (char)('0' + index % 10);
	strcpy(name + digits, suffix);
}

/* How many indices the path has, and the number of the first page that begins with them, of all pages with so
 * many indices. -ENOENT: it is no path of a page, or of a directory. */
static int read_path(const struct h5_view *v, unsigned leading, const char *path, unsigned *count,
		     uint64_t *number)
{
	const uint64_t *dims = v->dataset->space.dims;

	*number = 0;
	for (*count = 0; *count < leading && *path; ++*count) {
		bool last = *count + 1 == leading;
		uint64_t index;

		if (*count && *path++ != '/')
			return -ENOENT;
		path = read_index(path, dims[*count], &index);
		if (!path || (last && strcmp(path, v->ops->suffix) != 0))
			return -ENOENT;
		if (last)
			path += strlen(path);
		/* If it wraps around, the dataset is too large to be read, or has no elements. */
		*number = *number * dims[*count] + index;
	}
	return *path ? -ENOENT : 0;
}

int h5_pages_find(const struct h5_view *v, unsigned leading, const char *path, bool *is_directory)
{
	uint64_t number;
	unsigned count;
	int rc = leading ? read_path(v, leading, path, &count, &number) : -ENOENT;

	*is_directory = !rc && count < leading;
	return rc;
}

int h5_pages_next(const struct h5_view *v, unsigned leading, uint64_t *position, char name[256],
		  bool *is_directory)
{
	uint64_t number, dim;
	unsigned count;
	int rc = read_path(v, leading, v->part ? v->part : "", &count, &number);

	if (rc || count >= leading)
		return rc;
	dim = v->dataset->space.dims[count];
	if (*position >= dim)
		return 0;
	*is_directory = count + 1 < leading;
	write_name((*position)++, dim, *is_directory ? "" : v->ops->suffix, name);
	return 1;
}

int h5_page_get(const struct h5_view *v, unsigned leading, struct h5_page *page)
{
	const struct h5_dataspace *space = &v->dataset->space;
	uint64_t number;
	unsigned count;
	int rc;

	*page = (struct h5_page){.space = *space};
	if (!leading && !v->part)
		return 0;
	rc = leading && v->part ? read_path(v, leading, v->part, &count, &number) : -ENOENT;
	if (!rc && count < leading)
		rc = -ENOENT;
	if (rc)
		return h5_fail(rc, v->address, "no such page");
	if (v->dataset->size == UINT64_MAX)
		return h5_dataset_refuse_read(v->dataset);
	page->space.rank -= leading;
	for (unsigned i = 0; i < page->space.rank; i++) {
		page->space.dims[i] = space->dims[leading + i];
		page->space.max[i] = space->max[leading + i];
	}
	if (space->elements && h5_product(page->space.dims, page->space.rank, &page->space.elements))
		page->first = number * page->space.elements;
	return 0;
}

uint64_t h5_page_state(const struct h5_page *page, uint64_t state)
{
	/* An odd factor, so no two pages have the same in one state; a large one, since states differ in the
	 * low bits. */
	return state ^ page->first * UINT64_C(0x9e3779b97f4a7c15);
}

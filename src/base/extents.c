#include "base/extents.h"

#include "base/array.h"
#include "base/lower_bound.h"

#include <stdlib.h>
#include <string.h>

void h5_extents_release(struct h5_extents *extents)
{
	free(extents->list);
	memset(extents, 0, sizeof *extents);
}

static uint64_t end_of(const struct h5_extent *extent)
{
	return extent->address + extent->size;
}

/* Index of the first extent that ends at the address or behind it; count: none. */
static size_t first_from(const struct h5_extents *extents, uint64_t address)
{
	return h5_lower_bound(i, extents->count, end_of(&extents->list[i]) < address);
}

/* Puts m extents in the place of the n from i on. */
static int replace(struct h5_extents *extents, size_t i, size_t n, const struct h5_extent *with, size_t m)
{
	size_t count = extents->count - n + m;
	int rc = h5_array_reserve(&extents->list, &extents->capacity, count, NULL);

	if (rc)
		return rc;
	if (n != m)
		memmove(extents->list + i + m, extents->list + i + n,
			(extents->count - i - n) * sizeof *with);
	if (m)
		memcpy(extents->list + i, with, m * sizeof *with);
	extents->count = count;
	return 0;
}

int h5_extents_add(struct h5_extents *extents, uint64_t address, uint64_t size)
{
	struct h5_extent whole = {address, size};
	size_t i = first_from(extents, address), n = 0;

	if (!size)
		return 0;
	for (; i + n < extents->count && extents->list[i + n].address <= end_of(&whole); n++) {
		const struct h5_extent *e = &extents->list[i + n];
		uint64_t end = end_of(e) > end_of(&whole) ? end_of(e) : end_of(&whole);

		if (e->address < whole.address)
			whole.address = e->address;
		whole.size = end - whole.address;
	}
	return replace(extents, i, n, &whole, 1);
}

/* Bytes that are removed lie in n extents from i on, of which `count` parts are left. */
struct removal {
	size_t i, n, count;
	struct h5_extent rest[2];
};

static struct removal plan_removal(const struct h5_extents *extents, uint64_t address, uint64_t size)
{
	struct removal r = {.i = first_from(extents, address)};
	uint64_t end = address + size;

	if (r.i < extents->count && end_of(&extents->list[r.i]) == address)
		r.i++;
	for (; size && r.i + r.n < extents->count && extents->list[r.i + r.n].address < end; r.n++) {
		const struct h5_extent *e = &extents->list[r.i + r.n];

		if (e->address < address)
			r.rest[r.count++] = (struct h5_extent){e->address, address - e->address};
		if (end_of(e) > end)
			r.rest[r.count++] = (struct h5_extent){end, end_of(e) - end};
	}
	return r;
}

int h5_extents_remove(struct h5_extents *extents, uint64_t address, uint64_t size)
{
	const struct removal r = plan_removal(extents, address, size);

	return r.n ? replace(extents, r.i, r.n, r.rest, r.count) : 0;
}

void h5_extents_drop(struct h5_extents *extents, uint64_t address, uint64_t size)
{
	const struct removal r = plan_removal(extents, address, size);

	/* Memory is needed only if one extent becomes two. */
	if (r.n && replace(extents, r.i, r.n, r.rest, r.count))
		(void)replace(extents, r.i, r.n, &r.rest[r.rest[1].size > r.rest[0].size], 1);
}

/* The extent that holds the address, or else the first one behind it; NULL: none. */
static const struct h5_extent *at_or_behind(const struct h5_extents *extents, uint64_t address)
{
	size_t i = first_from(extents, address);

	if (i < extents->count && end_of(&extents->list[i]) == address)
		i++;
	return i < extents->count ? &extents->list[i] : NULL;
}

size_t h5_extents_from(const struct h5_extents *extents, uint64_t address)
{
	return h5_lower_bound(i, extents->count, extents->list[i].address < address);
}

const struct h5_extent *h5_extents_find(const struct h5_extents *extents, uint64_t address)
{
	const struct h5_extent *e = at_or_behind(extents, address);

	return e && e->address <= address ? e : NULL;
}

bool h5_extents_has(const struct h5_extents *extents, uint64_t address)
{
	return h5_extents_covers(extents, address, 1);
}

bool h5_extents_covers(const struct h5_extents *extents, uint64_t address, uint64_t size)
{
	const struct h5_extent *e = at_or_behind(extents, address);

	return e && e->address <= address && end_of(e) - address >= size;
}

bool h5_extents_touches(const struct h5_extents *extents, uint64_t address, uint64_t size)
{
	const struct h5_extent *e = at_or_behind(extents, address);

	return e && (e->address <= address || e->address - address < size);
}

void h5_extents_move(struct h5_extents *to, struct h5_extents *from)
{
	struct h5_extents empty = {0};

	if (!to->count) {
		h5_extents_release(to);
		*to = *from;
		*from = empty;
		return;
	}
	for (size_t i = 0; i < from->count; i++)
		h5_extents_add(to, from->list[i].address, from->list[i].size);
	h5_extents_release(from);
}

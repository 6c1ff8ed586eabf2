#include "change/space.h"

#include "base/checked.h"
#include "base/error.h"

#include <assert.h>

enum {
	FRAGMENT = 64,	   /* bytes of the smallest gap that is allocated from */
	PAGES_IN_CELL = 8, /* the smallest pages of file space have 512 bytes; see H5_CELL */
};

void h5_space_release(struct h5_space *space)
{
	for (int i = 0; i < 2; i++) {
		h5_extents_release(&space->free[i]);
		h5_extents_release(&space->pages[i]);
	}
	h5_extents_release(&space->scraps);
	h5_extents_release(&space->holes);
	h5_extents_release(&space->fresh);
	h5_extents_release(&space->given);
	h5_extents_release(&space->cooling);
}

/* The last area that does not start after the address. */
static const struct h5_area *area_of(const struct h5_space *space, uint64_t address)
{
	const struct h5_area *area = &space->areas[space->others];

	while (area->start > address)
		area--;
	return area;
}

/* Bytes from the address on up to the next area. */
static uint64_t left_in_area(const struct h5_space *space, const struct h5_area *area, uint64_t address)
{
	return (area == &space->areas[space->others] ? UINT64_MAX : area[1].start) - address;
}

bool h5_space_has(const struct h5_space *space, uint64_t address, uint64_t n)
{
	uint64_t end;

	return h5_add(address, n, &end) && end <= area_of(space, address)->end;
}

bool h5_space_had(const struct h5_space *space, uint64_t address, uint64_t n)
{
	uint64_t end;

	return h5_add(address, n, &end) && end <= area_of(space, address)->committed_end;
}

bool h5_space_ends_as_committed(const struct h5_space *space)
{
	const struct h5_area *area = space->areas;

	while (area < &space->areas[space->others] && area->end == area->committed_end)
		area++;
	return area->end == area->committed_end;
}

/* The first address from `at` on that, plus `origin`, is a multiple of `size`. */
static uint64_t align(uint64_t at, uint64_t origin, uint64_t size)
{
	uint64_t rest = (at + origin) % size;

	return rest ? at + (size - rest) : at;
}

static bool crosses(uint64_t at, uint64_t n, uint64_t origin, uint64_t size)
{
	return (at + origin) / size != (at + origin + n - 1) / size;
}

static uint64_t left_in_cell(const struct h5_space *space, uint64_t at)
{
	return h5_io_left_in_block(&space->pieces, space->base + at, H5_CELL);
}

/* True: a cell holds n bytes, wherever it is. In pieces of an odd size, cells begin at no multiple of 8. */
static bool is_for_cell(const struct h5_space *space, uint64_t n)
{
	return n <= (space->pieces.size % 8 ? H5_CELL - 7 : H5_CELL);
}

/* The first address from `at` on where n bytes may lie. Metadata begins at a multiple of 8; if it fits
 * into one cell, it does not cross into the next. In a paged file, all that is smaller than a page lies
 * inside one page. */
static uint64_t fit(const struct h5_space *space, enum h5_allocation kind, uint64_t n, uint64_t at)
{
	bool cell = kind == H5_ALLOCATE_METADATA && is_for_cell(space, n);
	bool moved = true;

	if (space->page && n >= space->page) {
		at = align(at, 0, space->page);
		for (int i = 0; i < PAGES_IN_CELL && cell && n > left_in_cell(space, at); i++)
			at += space->page;
		return at;
	}
	while (moved) {
		uint64_t before = at;

		if (kind != H5_ALLOCATE_RAW)
			at = align(at, 0, 8);
		if (cell && n > left_in_cell(space, at))
			at += left_in_cell(space, at);
		if (space->page && crosses(at, n, 0, space->page))
			at = align(at, 0, space->page);
		moved = at != before;
	}
	return at;
}

/* What a paged file has pages for. */
static enum h5_allocation page_kind(enum h5_allocation kind)
{
	return kind == H5_ALLOCATE_RAW ? H5_ALLOCATE_RAW : H5_ALLOCATE_METADATA;
}

/* Which list of free extents serves an allocation. */
static struct h5_extents *free_list(struct h5_space *space, enum h5_allocation kind, uint64_t n)
{
	return &space->free[space->page && n < space->page ? page_kind(kind) : H5_ALLOCATE_RAW];
}

/* Adds free space to the list. */
static void add_free(struct h5_extents *free, uint64_t address, uint64_t n)
{
	h5_extents_add(free, address, n); /* without memory it is lost */
}

/* Takes n bytes out of the free extents of the area. */
static bool take_free(struct h5_space *space, const struct h5_area *area, enum h5_allocation kind, uint64_t n,
		      uint64_t *address)
{
	struct h5_extents *free = free_list(space, kind, n);

	for (const struct h5_extent *e = h5_extents_large_from(free, area->start, n);
	     e && e->address < area->end; e = h5_extents_large_from(free, e->address + 1, n)) {
		uint64_t at = fit(space, kind, n, e->address);

		if (at - e->address > e->size || e->size - (at - e->address) < n)
			continue;
		*address = at;
		return !h5_extents_remove(free, at, n);
	}
	return false;
}

static int fail_full(const struct h5_area *area)
{
	return h5_fail(-ENOSPC, area->end, "the file has no more addresses");
}

/* Moves the end of the area behind n bytes. */
static int grow(struct h5_space *space, struct h5_area *area, uint64_t at, uint64_t n)
{
	uint64_t end;

	/* `at` is less than the end if there is no such place before addresses end. */
	if (at < area->end || !h5_add(at, n, &end) || end > area->limit)
		return fail_full(area);
	/* The gap is unused; without memory it is lost. */
	if (at - area->end >= FRAGMENT)
		add_free(&space->free[H5_ALLOCATE_RAW], area->end, at - area->end);
	else
		h5_extents_add(&space->scraps, area->end, at - area->end);
	area->end = end;
	return 0;
}

static int allocate_at_end(struct h5_space *space, struct h5_area *area, enum h5_allocation kind, uint64_t n,
			   uint64_t *address)
{
	uint64_t at = fit(space, kind, n, area->end);
	int rc;

	if (!space->page || n >= space->page) {
		uint64_t whole = space->page ? align(n, 0, space->page) : n;

		*address = at;
		rc = grow(space, area, at, whole);
		return rc ? rc : h5_extents_add(&space->scraps, at + n, whole - n);
	}
	/* A new page for this kind; the rest of it is free. */
	at = align(area->end, 0, space->page);
	rc = grow(space, area, at, space->page);
	if (rc)
		return rc;
	*address = fit(space, kind, n, at);
	if (*address + n > at + space->page)
		return h5_fail(-ENOSPC, at, "no place in a page of %ju bytes", (uintmax_t)space->page);
	h5_extents_add(&space->pages[page_kind(kind)], at, space->page);
	add_free(free_list(space, kind, n), *address + n, at + space->page - *address - n);
	return 0;
}

int h5_space_allocate(struct h5_space *space, enum h5_allocation kind, uint64_t n, uint64_t *address)
{
	struct h5_area *area = &space->areas[kind == H5_ALLOCATE_RAW ? space->raw : 0];
	int rc = 0;

	if (n > area->limit - area->start)
		return fail_full(area);
	if (!take_free(space, area, kind, n, address))
		rc = allocate_at_end(space, area, kind, n, address);
	if (!rc)
		h5_extents_drop(&space->holes, *address, n);
	return rc ? rc : h5_extents_add(&space->fresh, *address, n);
}

/* Makes space free, together with scraps beside it. */
static void join_scraps(struct h5_space *space, uint64_t address, uint64_t n)
{
	struct h5_extent all;

	if (h5_extents_add(&space->scraps, address, n))
		return; /* without memory it is lost */
	all = *h5_extents_find(&space->scraps, address);
	h5_extents_drop(&space->scraps, all.address, all.size);
	add_free(&space->free[H5_ALLOCATE_RAW], all.address, all.size);
}

/* Makes a page for small allocations, all of which is free, one for all purposes. */
static void release_page(struct h5_space *space, enum h5_allocation kind, uint64_t page)
{
	if (h5_extents_remove(&space->pages[kind], page, space->page) || kind == H5_ALLOCATE_RAW)
		return;
	if (!h5_extents_remove(&space->free[kind], page, space->page))
		add_free(&space->free[H5_ALLOCATE_RAW], page, space->page);
}

/* Makes space inside one page free. */
static void recycle_in_page(struct h5_space *space, uint64_t address, uint64_t n)
{
	uint64_t page = address - address % space->page;
	bool metadata = h5_extents_has(&space->pages[H5_ALLOCATE_METADATA], address);
	enum h5_allocation kind = metadata ? H5_ALLOCATE_METADATA : H5_ALLOCATE_RAW;

	if (metadata || n == space->page || h5_extents_has(&space->pages[H5_ALLOCATE_RAW], address) ||
	    h5_extents_touches(&space->free[H5_ALLOCATE_RAW], page, space->page)) {
		add_free(&space->free[kind], address, n);
		if (h5_extents_covers(&space->free[kind], page, space->page))
			release_page(space, kind, page);
	} else if (!h5_extents_add(&space->scraps, address, n) &&
		   h5_extents_covers(&space->scraps, page, space->page)) {
		h5_extents_drop(&space->scraps, page, space->page);
		add_free(&space->free[H5_ALLOCATE_RAW], page, space->page);
	}
}

/* Makes space free. In a paged file that is done page by page: bytes in a page of small
 * allocations serve only small ones of the same kind; of larger allocations, only whole pages become free. */
static void recycle(struct h5_space *space, uint64_t address, uint64_t n)
{
	if (!space->page) {
		join_scraps(space, address, n);
		return;
	}
	for (uint64_t part; n; address += part, n -= part) {
		part = h5_min(n, space->page - address % space->page);
		recycle_in_page(space, address, part);
	}
}

void h5_space_free(struct h5_space *space, uint64_t address, uint64_t n, bool *committed)
{
	*committed = false;
	if (!n)
		return;
	if (h5_extents_covers(&space->fresh, address, n)) {
		if (!h5_extents_remove(&space->fresh, address, n))
			recycle(space, address, n);
		return;
	}
	/* In a damaged file, chunks may overlap other space, which stays as it is. */
	if (!h5_space_had(space, address, n) || h5_extents_touches(&space->fresh, address, n))
		return;
	*committed = true;
	h5_extents_add(&space->given, address, n);
}

void h5_space_cooled(struct h5_space *space)
{
	if (!space->keeps)
		h5_extents_each(e, &space->cooling) recycle(space, e->address, e->size);
	h5_extents_release(&space->cooling);
}

void h5_space_committed(struct h5_space *space, bool all)
{
	h5_extents_release(&space->fresh);
	if (all)
		h5_extents_move(&space->cooling, &space->given);
	h5_space_each_area(area, space)
	{
		assert(area->end >= area->committed_end);
		area->committed_end = area->end;
	}
}

void h5_space_unneeded(struct h5_space *space)
{
	h5_extents_move(&space->cooling, &space->given);
}

/* Forgets all that is known of space behind the new end. */
static void set_end(struct h5_space *space, struct h5_area *area, uint64_t end)
{
	uint64_t behind = left_in_area(space, area, end);

	for (int i = 0; i < 2; i++) {
		h5_extents_remove(&space->free[i], end, behind);
		h5_extents_remove(&space->pages[i], end, behind);
	}
	h5_extents_remove(&space->scraps, end, behind);
	h5_extents_remove(&space->holes, end, behind);
	area->end = end;
}

void h5_space_rollback(struct h5_space *space)
{
	h5_extents_each(e, &space->fresh) recycle(space, e->address, e->size);
	h5_extents_release(&space->fresh);
	h5_extents_release(&space->given);
	h5_space_each_area(area, space) set_end(space, area, h5_max(area->committed_end, area->least));
}

void h5_space_keep_given(struct h5_space *space)
{
	h5_extents_release(&space->given);
}

/* ---- what a file keeps track of ---- */

int h5_space_page_for(struct h5_space *space, enum h5_allocation kind, uint64_t address)
{
	uint64_t page = address - address % space->page;

	return h5_extents_add(&space->pages[kind], page, space->page);
}

static int add_all(struct h5_extents *to, const struct h5_extents *from)
{
	int rc = 0;

	h5_extents_each(e, from) rc = rc ? rc : h5_extents_add(to, e->address, e->size);
	return rc;
}

/* Moves what is in pages for small raw data out of the rest. */
static int sort_out_raw(const struct h5_space *space, struct h5_space_kinds *kinds)
{
	int rc = add_all(&kinds->raw, &space->free[H5_ALLOCATE_RAW]);

	h5_extents_each(page, &space->pages[H5_ALLOCATE_RAW]) rc =
		rc ? rc : h5_extents_remove(&kinds->rest, page->address, page->size);
	h5_extents_each(e, &kinds->rest) rc = rc ? rc : h5_extents_remove(&kinds->raw, e->address, e->size);
	return rc;
}

int h5_space_list(const struct h5_space *space, struct h5_space_kinds *kinds)
{
	int rc = add_all(&kinds->rest, &space->free[H5_ALLOCATE_RAW]);

	if (rc)
		return rc;
	if (!space->page)
		return add_all(&kinds->rest, &space->scraps);
	rc = add_all(&kinds->metadata, &space->free[H5_ALLOCATE_METADATA]);
	return rc ? rc : sort_out_raw(space, kinds);
}

/* ---- giving it back ---- */

void h5_space_reclaim(struct h5_space *space, uint64_t address, uint64_t n)
{
	recycle(space, address, n);
}

uint64_t h5_space_least_end(const struct h5_space *space, const struct h5_area *area)
{
	const struct h5_extents *free = &space->free[H5_ALLOCATE_RAW];
	const struct h5_extent *last = area->end > area->start ? h5_extents_find(free, area->end - 1) : NULL;
	uint64_t least = area->start + (area == space->areas ? 0 : H5_FILE_AREA_LEAST);

	if (space->fixed_end || !last)
		return area->end;
	return space->page ? align(last->address, 0, space->page) : h5_max(last->address, least);
}

void h5_space_cut(struct h5_space *space, struct h5_area *area, uint64_t end)
{
	assert(end <= area->end && !h5_extents_touches(&space->fresh, end, left_in_area(space, area, end)));
	set_end(space, area, end);
	area->committed_end = h5_min(area->committed_end, end);
	area->least = h5_min(area->least, end);
}

int h5_space_find_pages(const struct h5_space *space, struct h5_extents *pages)
{
	int rc = 0;

	for (int kind = 0; kind < 2; kind++)
		h5_extents_each(e, &space->free[kind])
		{
			uint64_t origin = space->base - area_of(space, e->address)->start;
			uint64_t begin = align(e->address, origin, H5_CELL);
			uint64_t end = e->address + e->size;

			end -= h5_min(end, (end + origin) % H5_CELL);
			if (begin < end && !rc)
				rc = h5_extents_add(pages, begin, end - begin);
		}
	h5_extents_each(e, &space->holes) rc = rc ? rc : h5_extents_remove(pages, e->address, e->size);
	return rc;
}

uint64_t h5_space_waste(const struct h5_space *space, bool punched)
{
	struct h5_extents pages = {0};
	uint64_t bytes = 0;

	for (const struct h5_area *area = space->areas; area <= &space->areas[space->others]; area++)
		bytes += area->end - h5_space_least_end(space, area);
	/* Without memory they are not counted. */
	if (punched && !h5_space_find_pages(space, &pages))
		h5_extents_each(e, &pages)
		{
			const struct h5_area *area = area_of(space, e->address);

			bytes += e->address < h5_space_least_end(space, area) ? e->size : 0;
		}
	h5_extents_release(&pages);
	return bytes;
}

void h5_space_punched(struct h5_space *space, uint64_t address, uint64_t n)
{
	h5_extents_add(&space->holes, address, n);
}

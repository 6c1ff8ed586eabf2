#include "base/extents.h"

#include "base/array.h"
#include "base/error.h"
#include "base/lower_bound.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 60 }; /* most extents of a page */

/* Extents lie in pages, so that a change of a large set moves few of them. No page is empty. */
struct extents {
	size_t count;
	struct h5_extent list[PAGE];
};

struct h5_extents_page {
	struct extents *in; /* owned */
	uint64_t largest;   /* bytes of the largest extent */
};

/* The position of an extent. The position behind the last extent is slot 0 of a page that does not exist yet.
 */
struct place {
	size_t page, slot;
};

void h5_extents_release(struct h5_extents *extents)
{
	for (size_t i = 0; i < extents->page_count; i++)
		free(extents->pages[i].in);
	free(extents->pages);
	memset(extents, 0, sizeof *extents);
}

static uint64_t end_of(const struct h5_extent *extent)
{
	return extent->address + extent->size;
}

static const struct h5_extent *last_of(const struct extents *page)
{
	return &page->list[page->count - 1];
}

/* ---- places ---- */

/* NULL: behind the last one. */
static struct h5_extent *at(const struct h5_extents *extents, struct place p)
{
	return p.page < extents->page_count ? &extents->pages[p.page].in->list[p.slot] : NULL;
}

static struct place after(const struct h5_extents *extents, struct place p)
{
	return p.slot + 1 < extents->pages[p.page].in->count ? (struct place){p.page, p.slot + 1}
							     : (struct place){p.page + 1, 0};
}

/* The first extent that ends at the address or behind it. */
static struct place first_from(const struct h5_extents *extents, uint64_t address)
{
	const struct extents *page;
	struct place p;

	p.page = h5_lower_bound(i, extents->page_count, end_of(last_of(extents->pages[i].in)) < address);
	if (p.page == extents->page_count)
		return (struct place){p.page, 0};
	page = extents->pages[p.page].in;
	p.slot = h5_lower_bound(i, page->count, end_of(&page->list[i]) < address);
	return p;
}

/* The extent that holds the address, or else the first one behind it. */
static struct place at_or_behind(const struct h5_extents *extents, uint64_t address)
{
	struct place p = first_from(extents, address);
	const struct h5_extent *e = at(extents, p);

	return e && end_of(e) == address ? after(extents, p) : p;
}

/* ---- pages ---- */

/* Sets the size of the largest extent of page i. */
static void measure(struct h5_extents *extents, size_t i)
{
	const struct extents *page = extents->pages[i].in;
	uint64_t largest = 0;

	for (size_t k = 0; k < page->count; k++)
		largest = page->list[k].size > largest ? page->list[k].size : largest;
	extents->pages[i].largest = largest;
}

/* An empty page i. */
static int add_page(struct h5_extents *extents, size_t i)
{
	int rc = h5_array_reserve(&extents->pages, &extents->capacity, extents->page_count + 1, NULL);
	struct extents *page = rc ? NULL : malloc(sizeof *page);

	if (!page)
		return rc ? rc : h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	page->count = 0;
	memmove(extents->pages + i + 1, extents->pages + i,
		(extents->page_count - i) * sizeof *extents->pages);
	extents->pages[i] = (struct h5_extents_page){page, 0};
	extents->page_count++;
	return 0;
}

/* The extents of page i from the slot on go to a page of their own. */
static int split(struct h5_extents *extents, size_t i, size_t slot)
{
	struct extents *page, *new;
	int rc = add_page(extents, i + 1);

	if (rc)
		return rc;
	page = extents->pages[i].in;
	new = extents->pages[i + 1].in;
	new->count = page->count - slot;
	memcpy(new->list, page->list + slot, new->count * sizeof *new->list);
	page->count = slot;
	measure(extents, i);
	measure(extents, i + 1);
	return 0;
}

/* Puts the extent before the one at the place. */
static int insert(struct h5_extents *extents, struct place p, struct h5_extent extent)
{
	struct extents *page;
	int rc = extents->page_count ? 0 : add_page(extents, 0);

	if (rc)
		return rc;
	if (!p.slot && p.page)
		p = (struct place){p.page - 1, extents->pages[p.page - 1].in->count};
	if (extents->pages[p.page].in->count == PAGE) {
		/* Sets mostly grow at their end. */
		size_t slot = p.slot == PAGE ? PAGE - 1 : PAGE / 2;

		rc = split(extents, p.page, slot);
		if (rc)
			return rc;
		if (p.slot > slot)
			p = (struct place){p.page + 1, p.slot - slot};
	}
	page = extents->pages[p.page].in;
	memmove(page->list + p.slot + 1, page->list + p.slot, (page->count - p.slot) * sizeof extent);
	page->list[p.slot] = extent;
	page->count++;
	extents->count++;
	if (extent.size > extents->pages[p.page].largest)
		extents->pages[p.page].largest = extent.size;
	return 0;
}

static void set(struct h5_extents *extents, struct place p, struct h5_extent extent)
{
	struct h5_extents_page *page = &extents->pages[p.page];
	bool was_largest = page->in->list[p.slot].size == page->largest;

	page->in->list[p.slot] = extent;
	if (extent.size >= page->largest)
		page->largest = extent.size;
	else if (was_largest)
		measure(extents, p.page);
}

static void remove_page(struct h5_extents *extents, size_t i)
{
	free(extents->pages[i].in);
	extents->page_count--;
	memmove(extents->pages + i, extents->pages + i + 1,
		(extents->page_count - i) * sizeof *extents->pages);
	if (!extents->page_count)
		h5_extents_release(extents);
}

/* Page i + 1 goes into page i if both are small. */
static void merge(struct h5_extents *extents, size_t i)
{
	struct extents *page, *next;

	if (i + 1 >= extents->page_count)
		return;
	page = extents->pages[i].in;
	next = extents->pages[i + 1].in;
	if (page->count + next->count > PAGE / 2)
		return;
	memcpy(page->list + page->count, next->list, next->count * sizeof *page->list);
	page->count += next->count;
	remove_page(extents, i + 1);
	measure(extents, i);
}

/* Takes out extents of one page: n of them, or all from the place on, if these are less. Returns how many. */
static size_t take_from_page(struct h5_extents *extents, struct place p, size_t n)
{
	struct extents *page = extents->pages[p.page].in;
	size_t here = page->count - p.slot < n ? page->count - p.slot : n;

	memmove(page->list + p.slot, page->list + p.slot + here,
		(page->count - p.slot - here) * sizeof *page->list);
	page->count -= here;
	extents->count -= here;
	if (page->count)
		measure(extents, p.page);
	else
		remove_page(extents, p.page);
	return here;
}

/* Takes n extents from the place on out. */
static void take_out(struct h5_extents *extents, struct place p, size_t n)
{
	const size_t first = p.page;

	while (n) {
		const size_t pages = extents->page_count;

		n -= take_from_page(extents, p, n);
		p = (struct place){p.page + (extents->page_count == pages), 0};
	}
	merge(extents, first);
	if (first)
		merge(extents, first - 1);
}

/* ---- changes ---- */

int h5_extents_add(struct h5_extents *extents, uint64_t address, uint64_t size)
{
	const struct place p = first_from(extents, address);
	struct h5_extent whole = {address, size}, *e;
	size_t n = 0;

	if (!size)
		return 0;
	for (struct place q = p; (e = at(extents, q)) && e->address <= end_of(&whole); n++) {
		uint64_t end = end_of(e) > end_of(&whole) ? end_of(e) : end_of(&whole);

		if (e->address < whole.address)
			whole.address = e->address;
		whole.size = end - whole.address;
		q = after(extents, q);
	}
	if (!n)
		return insert(extents, p, whole);
	set(extents, p, whole);
	take_out(extents, after(extents, p), n - 1);
	return 0;
}

/* Bytes that are removed lie in n extents from the place on, of which `count` parts are left. */
struct removal {
	struct place p;
	size_t n, count;
	struct h5_extent rest[2];
};

static struct removal plan_removal(const struct h5_extents *extents, uint64_t address, uint64_t size)
{
	struct removal r = {.p = at_or_behind(extents, address)};
	uint64_t end = address + size;
	const struct h5_extent *e;

	for (struct place q = r.p; size && (e = at(extents, q)) && e->address < end; r.n++) {
		if (e->address < address)
			r.rest[r.count++] = (struct h5_extent){e->address, address - e->address};
		if (end_of(e) > end)
			r.rest[r.count++] = (struct h5_extent){end, end_of(e) - end};
		q = after(extents, q);
	}
	return r;
}

/* Puts what is left in the place of what was there. Memory is needed only if one extent becomes two. */
static int replace(struct h5_extents *extents, const struct removal *r)
{
	struct place p = r->p;

	if (r->n < r->count) {
		int rc = insert(extents, p, r->rest[0]);

		if (!rc) /* it may be in another page by now */
			set(extents, at_or_behind(extents, end_of(&r->rest[0])), r->rest[1]);
		return rc;
	}
	for (size_t i = 0; i < r->count; i++) {
		set(extents, p, r->rest[i]);
		p = after(extents, p);
	}
	take_out(extents, p, r->n - r->count);
	return 0;
}

int h5_extents_remove(struct h5_extents *extents, uint64_t address, uint64_t size)
{
	const struct removal r = plan_removal(extents, address, size);

	return r.n ? replace(extents, &r) : 0;
}

void h5_extents_drop(struct h5_extents *extents, uint64_t address, uint64_t size)
{
	struct removal r = plan_removal(extents, address, size);

	if (!r.n || !replace(extents, &r))
		return;
	r.rest[0] = r.rest[r.rest[1].size > r.rest[0].size];
	r.count = 1;
	(void)replace(extents, &r);
}

/* ---- questions ---- */

/* The first extent that begins at the address or behind it. */
static struct place begins_from(const struct h5_extents *extents, uint64_t address)
{
	struct place p = at_or_behind(extents, address);
	const struct h5_extent *e = at(extents, p);

	return e && e->address < address ? after(extents, p) : p;
}

const struct h5_extent *h5_extents_from(const struct h5_extents *extents, uint64_t address)
{
	return at(extents, begins_from(extents, address));
}

static const struct h5_extent *find_large(const struct extents *page, size_t slot, uint64_t least)
{
	for (; slot < page->count; slot++)
		if (page->list[slot].size >= least)
			return &page->list[slot];
	return NULL;
}

const struct h5_extent *h5_extents_large_from(const struct h5_extents *extents, uint64_t address,
					      uint64_t least)
{
	const struct h5_extent *found = NULL;

	for (struct place p = begins_from(extents, address); p.page < extents->page_count && !found;
	     p.page++) {
		if (extents->pages[p.page].largest >= least)
			found = find_large(extents->pages[p.page].in, p.slot, least);
		p.slot = 0;
	}
	return found;
}

const struct h5_extent *h5_extents_last(const struct h5_extents *extents)
{
	return extents->count ? last_of(extents->pages[extents->page_count - 1].in) : NULL;
}

const struct h5_extent *h5_extents_find(const struct h5_extents *extents, uint64_t address)
{
	const struct h5_extent *e = at(extents, at_or_behind(extents, address));

	return e && e->address <= address ? e : NULL;
}

bool h5_extents_has(const struct h5_extents *extents, uint64_t address)
{
	return h5_extents_covers(extents, address, 1);
}

bool h5_extents_covers(const struct h5_extents *extents, uint64_t address, uint64_t size)
{
	const struct h5_extent *e = at(extents, at_or_behind(extents, address));

	return e && e->address <= address && end_of(e) - address >= size;
}

bool h5_extents_touches(const struct h5_extents *extents, uint64_t address, uint64_t size)
{
	const struct h5_extent *e = at(extents, at_or_behind(extents, address));

	return e && (e->address <= address || e->address - address < size);
}

void h5_extents_move(struct h5_extents *to, struct h5_extents *from)
{
	if (!to->count) {
		struct h5_extents empty = *to;

		*to = *from;
		*from = empty;
		return;
	}
	h5_extents_each(e, from) h5_extents_add(to, e->address, e->size);
	h5_extents_release(from);
}

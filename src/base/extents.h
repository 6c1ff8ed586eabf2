/* A set of numbers, such as addresses of bytes, kept as extents that neither overlap nor touch, in ascending
 * order. */
#ifndef H5_BASE_EXTENTS_H
#define H5_BASE_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h5_extent {
	uint64_t address, size;
};

/* Called for each extent of something. A result other than 0 ends the visits and is returned. */
typedef int h5_extent_visit(void *arg, uint64_t address, uint64_t n);

/* Two visits: one for data, one for the blocks that lead to them. */
struct h5_extent_visits {
	h5_extent_visit *data;	/* elements */
	h5_extent_visit *block; /* metadata */
	void *arg;
};

/* All zero: empty. */
struct h5_extents {
	struct h5_extents_page *pages; /* owned */
	size_t page_count, capacity;
	size_t count; /* of extents */
};

void h5_extents_release(struct h5_extents *extents); /* may run twice */
/* Adds the bytes, some of which may be there already. -ENOMEM: nothing is added. */
int h5_extents_add(struct h5_extents *extents, uint64_t address, uint64_t size);
/* Takes those of the bytes out that are there. -ENOMEM: nothing is taken. */
int h5_extents_remove(struct h5_extents *extents, uint64_t address, uint64_t size);
/* The same, and never fails: without memory, more of the extent that the bytes lie in is taken out with them.
 */
void h5_extents_drop(struct h5_extents *extents, uint64_t address, uint64_t size);
bool h5_extents_covers(const struct h5_extents *extents, uint64_t address,
		       uint64_t size); /* all of the bytes */
bool h5_extents_touches(const struct h5_extents *extents, uint64_t address, uint64_t size); /* some of them */
bool h5_extents_has(const struct h5_extents *extents, uint64_t address);
/* The first extent that begins at the address or behind it; NULL: none. Borrowed until the set changes. */
const struct h5_extent *h5_extents_from(const struct h5_extents *extents, uint64_t address);
/* The same with the first one of at least so many bytes. */
const struct h5_extent *h5_extents_large_from(const struct h5_extents *extents, uint64_t address,
					      uint64_t least);
/* The same with the last of all. */
const struct h5_extent *h5_extents_last(const struct h5_extents *extents);
/* Goes over all extents, in ascending order. */
#define h5_extents_each(e, extents)                                                                          \
	for (const struct h5_extent *e = h5_extents_from((extents), 0); e;                                   \
	     e = h5_extents_from((extents), e->address + e->size))
/* The extent that holds the address; NULL: none. Borrowed until the set changes. */
const struct h5_extent *h5_extents_find(const struct h5_extents *extents, uint64_t address);
/* Moves all extents of `from` into `to`, so that `from` is empty. Without memory some are lost. */
void h5_extents_move(struct h5_extents *to, struct h5_extents *from);

#endif

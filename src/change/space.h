/* Space of a file that is open for writing: what is free, what is new, and where the file ends. */
#ifndef H5_CHANGE_SPACE_H
#define H5_CHANGE_SPACE_H

#include "base/extents.h"
#include "change/transaction.h"

/* A range of addresses with an end of its own. Behind the limit of one that is not the last, at least one
 * byte is never allocated, so no extent reaches from one into another. */
struct h5_area {
	uint64_t start;
	uint64_t end;		/* first address behind all that is allocated */
	uint64_t committed_end; /* `end` at the last commit */
	/* A rollback leaves at least this `end`: that at opening, or what it was cut to since. If a SWMR
	 * writer did not store the end, that at opening is the size of the file. */
	uint64_t least;
	uint64_t limit;	 /* the largest end that the offsets of the file, and of the medium, can hold */
	unsigned member; /* multi driver: its number in the driver information */
};

/* All addresses relative to `base`. */
struct h5_space {
	uint64_t base;
	struct h5_io_pieces pieces; /* no cell lies in two of them */
	/* The whole file, or one for each member of the multi driver, ascending. Metadata go to the first. */
	struct h5_area areas[H5_FILE_AREAS_MAX];
	unsigned others;	   /* areas after the first */
	unsigned raw;		   /* in which raw data go */
	uint64_t page;		   /* paged files: bytes of a page of the file space; 0: not paged */
	bool fixed_end;		   /* the end stays: free-space managers of the file know it */
	bool keeps;		   /* committed space is never used again, since readers may need it (swmr) */
	struct h5_extents free[2]; /* by enum h5_allocation; in a file without pages, one for both */
	struct h5_extents pages[2]; /* paged files: pages for small allocations of a kind */
	struct h5_extents
		scraps; /* unused, but too few bytes to be allocated; their neighbours make them more */
	struct h5_extents holes;   /* parts of `free` that take no room on the medium */
	struct h5_extents fresh;   /* allocated since the last commit */
	struct h5_extents given;   /* committed space that was given up since the last commit */
	struct h5_extents cooling; /* given up by the last commit, whose replay may need it */
};

#define h5_space_each_area(area, space)                                                                      \
	for (struct h5_area *area = (space)->areas; area <= &(space)->areas[(space)->others]; area++)

void h5_space_release(struct h5_space *space); /* may run twice */
/* True: the n bytes lie before the end of their area. */
bool h5_space_has(const struct h5_space *space, uint64_t address, uint64_t n);
/* The same with the ends at the last commit. */
bool h5_space_had(const struct h5_space *space, uint64_t address, uint64_t n);
/* True: all ends are those at the last commit. */
bool h5_space_ends_as_committed(const struct h5_space *space);
int h5_space_allocate(struct h5_space *space, enum h5_allocation kind, uint64_t n, uint64_t *address);
/* Gives space up. *committed: it was not new, so it waits for the commit. */
void h5_space_free(struct h5_space *space, uint64_t address, uint64_t n, bool *committed);
/* The last commit no longer needs its journal: the space that it gave up is free. */
void h5_space_cooled(struct h5_space *space);
/* A commit was made: no space is new any more. If `all`, nothing refers to the space that was given up, so it
 * cools; else it waits for the next commit. */
void h5_space_committed(struct h5_space *space, bool all);
/* No commit is needed: nothing that is pending, and nothing of the last commit, refers to the space that was
 * given up since, so it cools. */
void h5_space_unneeded(struct h5_space *space);
/* Takes back all that has happened since the last commit. */
void h5_space_rollback(struct h5_space *space);
/* Something may still refer to space that was given up since the last commit, so it is never used again. */
void h5_space_keep_given(struct h5_space *space);

/* In a paged file: the page that these bytes are in is for small allocations of that kind. */
int h5_space_page_for(struct h5_space *space, enum h5_allocation kind, uint64_t address);
/* Free space as the file keeps track of it: pieces of pages for small allocations of metadata (or, in a file
 * without pages, nothing) and of raw data; and the rest. The caller releases them, also on failure. */
struct h5_space_kinds {
	struct h5_extents metadata, raw, rest;
};
int h5_space_list(const struct h5_space *space, struct h5_space_kinds *kinds);

/* Nothing refers to these bytes, which were not given up by this mount. */
void h5_space_reclaim(struct h5_space *space, uint64_t address, uint64_t n);
/* The least end that the area could have: behind it, all is free. */
uint64_t h5_space_least_end(const struct h5_space *space, const struct h5_area *area);
/* The area ends there from now on. Nothing behind it is in use. */
void h5_space_cut(struct h5_space *space, struct h5_area *area, uint64_t end);
/* Adds to `pages` the pages of the file (H5_CELL) that are free and still take room on the medium. */
int h5_space_find_pages(const struct h5_space *space, struct h5_extents *pages);
/* Bytes that could be given back: free ones at the ends of areas, and, if `punched`, free pages that still
 * take room on the medium. */
uint64_t h5_space_waste(const struct h5_space *space, bool punched);
/* These bytes of free space take no room on the medium any more. */
void h5_space_punched(struct h5_space *space, uint64_t address, uint64_t n);

#endif

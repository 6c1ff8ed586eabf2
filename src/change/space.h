/* Space of a file that is open for writing: what is free, what is new, and where the file ends. */
#ifndef H5_CHANGE_SPACE_H
#define H5_CHANGE_SPACE_H

#include "change/extents.h"
#include "change/transaction.h"

/* All addresses relative to `base`. */
struct h5_space {
	uint64_t base;
	uint64_t end;		/* first address behind all that is allocated */
	uint64_t committed_end; /* the same as the last commit has published it */
	uint64_t least;		/* the end is never before this: what an other writer has left unpublished */
	uint64_t limit;		/* addresses that the file's offsets can hold */
	uint64_t page;		/* paged files: bytes of a page of the file space; 0: not paged */
	bool keeps;		/* committed space is never used again: readers may still look at it (swmr) */
	struct h5_extents free[2];  /* by enum h5_allocation; one for both where the file is not paged */
	struct h5_extents pages[2]; /* paged files: pages for small allocations of a kind */
	struct h5_extents fresh;    /* allocated since the last commit */
	struct h5_extents given;    /* committed space that the next commit gives up */
	struct h5_extents cooling;  /* given up by the last commit, which may yet be replayed */
};

void h5_space_release(struct h5_space *space); /* may run twice */
int h5_space_allocate(struct h5_space *space, enum h5_allocation kind, uint64_t n, uint64_t *address);
/* Gives space up. *committed: it was not new, and waits for the commit. */
void h5_space_free(struct h5_space *space, uint64_t address, uint64_t n, bool *committed);
/* The commit before is durable without its journal: what it gave up can be used. */
void h5_space_cooled(struct h5_space *space);
/* A commit was made: nothing is new, and what was given up cools; but where not `all` of it is certain to be
 * referred to no more, it waits for the next commit. */
void h5_space_committed(struct h5_space *space, bool all);
/* Nothing since the last commit has happened. */
void h5_space_rollback(struct h5_space *space);
/* What was given up since may be referred to after all: it is never used again. */
void h5_space_keep_given(struct h5_space *space);

#endif

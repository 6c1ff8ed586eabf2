/* A line on the terminal that says how far a long command is: bytes, rate, time left, and what it works on.
 *
 * It is drawn on standard error, some times a second at most, and never wider than the terminal. Nothing is
 * drawn if standard error is no terminal. Whoever prints something else meanwhile erases the line before. */
#ifndef H5_OFFLINE_PROGRESS_H
#define H5_OFFLINE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct h5_progress {
	bool wanted; /* the caller sets it; false: nothing is drawn, and all calls do nothing */
	bool drawn;  /* the line is on the terminal */
	uint64_t total;
	struct timespec begin, last; /* of the work; of the last drawing */
};

/* Work begins that takes `total` bytes; 0: nobody knows how many. */
void h5_progress_begin(struct h5_progress *progress, uint64_t total);
/* So many bytes are done of the total, and `what` is worked on: `size` bytes of any text, which is escaped.
 * It may be called very often: most calls draw nothing. `progress` NULL: does nothing. */
void h5_progress_show(struct h5_progress *progress, uint64_t done, const char *what, size_t size);
/* Takes the line away; the next h5_progress_show() may draw it again. NULL is fine. */
void h5_progress_erase(struct h5_progress *progress);

#endif

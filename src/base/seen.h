/* The numbers that a walk has met, so that it goes nowhere twice, whatever the file says. */
#ifndef H5_BASE_SEEN_H
#define H5_BASE_SEEN_H

#include <stdbool.h>
#include <stdint.h>

struct h5_seen {
	uint64_t few[8];		/* the first ones */
	unsigned count;			/* of these */
	struct h5_seen_number *numbers; /* all others; NULL: none yet */
};

/* 0; -EEXIST if the number was added before; -ENOMEM. */
int h5_seen_add(struct h5_seen *seen, uint64_t number);
/* True: the number was added. */
bool h5_seen_has(const struct h5_seen *seen, uint64_t number);
void h5_seen_release(struct h5_seen *seen); /* may run twice */

#endif
